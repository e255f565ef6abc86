"""ELU: both branches and the table. LiteRT has it in its builtin resolver only."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from gossamer.ops.elu import op
from tests.ops.cases import Case, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused, output_of

QS = [-128, -100, -60, -20, -5, 0, 3, 12, 50, 127]

CASES = [
    Case(
        "float",
        [tensor([-np.inf, -np.log(2), -1e-6, 0, 3, np.inf, np.nan])],
        [tensor([-1, -0.5, -1e-6, 0, 3, np.inf, np.nan])],
        atol=1e-12,
    ),
    Case(
        "int8",
        [tensor(QS, np.int8, scale=0.05, zero_point=-5)],
        [tensor([-123, -123, -121, -108, -90, -82, -77, -62, 2, 127], np.int8, scale=0.03, zero_point=-90)],
    ),
]


def test_case(case: Case) -> None:
    run_case(REFERENCE, op, case)


@pytest.mark.peer
def test_case_on_litert(case: Case) -> None:
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    builtin = peer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    run_case(partial(peer.Interpreter, experimental_op_resolver_type=builtin), op, case)


def test_float16() -> None:
    case = Case("", [tensor([-20, 3], np.float16)], [tensor([0, 0], np.float16)])
    np.testing.assert_array_equal(output_of(op, case), np.array([-1, 3], np.float16))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "must be float32, float16 or int8, got uint8",
            Case("", [tensor([1], np.uint8, scale=1)], [tensor([1], np.uint8, scale=1)]),
        ),
        (
            "output of type int8 needs one finite scale",
            Case("", [tensor([1], np.int8, scale=1)], [tensor([1], np.int8)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
