"""GELU: exact and approximate, in floats and in tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gossamer.ops import gelu
from gossamer.ops.gelu import erfc, op
from gossamer.schema import GeluOptions
from tests.ops.cases import Case, model_of, run_case, tensor
from tests.ops.reference import assert_refused, output_of

QS = [-128, -100, -60, -20, -5, 0, 3, 12, 50, 127]
US = [0, 28, 68, 108, 123, 128, 131, 140, 178, 255]
WS = [-32768, -20000, -6000, -700, -1, 0, 2, 900, 9000, 32767]

EXACT, APPROXIMATE = GeluOptions(), GeluOptions(approximate=True)

CASES = [
    Case(
        "float",
        [tensor([-5, -1, 0, 1, 5, np.inf, np.nan])],
        [tensor([-1.4332584e-06, -0.15865526, 0, 0.8413447, 4.9999986, np.inf, np.nan])],
        EXACT,
        rtol=1e-5,
        atol=1e-7,
    ),
    Case(
        "float_approximate",
        [tensor([-1, 0, 1, 5, np.inf, np.nan])],
        [tensor([-0.15880801, 0, 0.841192, 4.9999998, np.inf, np.nan])],
        APPROXIMATE,
        rtol=1e-5,
    ),
    Case("float16", [tensor([-1, 1, 4], np.float16)], [tensor([-0.1587, 0.8413, 4], np.float16)], EXACT, 2, rtol=1e-3),
    Case(
        "int8",
        [tensor(QS, np.int8, scale=0.04, zero_point=-5)],
        [tensor([-120, -120, -122, -128, -120, -114, -110, -94, -12, 127], np.int8, scale=0.02, zero_point=-120)],
        EXACT,
        2,
    ),
    Case(
        "uint8_approximate",
        [tensor(US, np.uint8, scale=0.04, zero_point=128)],
        [tensor([6, 6, 5, 0, 3, 6, 8, 17, 71, 175], np.uint8, scale=0.03, zero_point=6)],
        APPROXIMATE,
        2,
    ),
    Case(
        "int16",
        [tensor(WS, np.int16, scale=2**-13)],
        [tensor([-1, -146, -1392, -326, 0, 0, 1, 488, 7776, 32765], np.int16, scale=2**-13)],
        EXACT,
        2,
    ),
    Case(
        "int16_approximate",
        [tensor(WS, np.int16, scale=2**-13)],
        [tensor([-1, -143, -1393, -326, 0, 0, 1, 488, 7774, 32766], np.int16, scale=2**-13)],
        APPROXIMATE,
        2,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


SCALES = [
    (0.0002065904118353501, 0.0002065904118353501, EXACT),
    (4.096130214747973e-05, 3.026771628356073e-05, APPROXIMATE),
]
"""Of inputs and outputs, with which an entry of the table is next to a half: the last bit of C's functions decides."""


@pytest.mark.peer
@pytest.mark.parametrize(("scale", "output_scale", "options"), SCALES)
def test_all_of_int16(scale: float, output_scale: float, options: GeluOptions) -> None:
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    x = np.arange(-32768, 32768).astype(np.int16)
    case = Case("", [tensor(x, np.int16, scale=scale)], [tensor(x, np.int16, scale=output_scale)], options, 2)
    interpreter = peer.Interpreter(model_content=model_of(op, case))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    np.testing.assert_array_equal(
        output_of(op, case), interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    )


def test_tables_are_of_the_functions_of_c(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def single(name: str, double: Any) -> Any:
        asked.append(name)
        return double

    monkeypatch.setattr(gelu, "single", single)
    for options in (EXACT, APPROXIMATE):
        output_of(op, Case("", [tensor(WS, np.int16, scale=0.01)], [tensor(WS, np.int16, scale=0.01)], options, 2))
    assert set(asked) == {"erfcf", "tanhf"}


def test_erfc_is_erfc() -> None:
    x = np.linspace(-12, 12, 2001)
    np.testing.assert_allclose(erfc(x), [math.erfc(value) for value in x], rtol=1e-8, atol=1e-46)


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("got int32", Case("", [tensor([1], np.int32)], [tensor([1], np.int32)], EXACT)),
        (
            "output of type int16 needs one finite scale",
            Case("", [tensor([1], np.int16, scale=1)], [tensor([1], np.int16)], EXACT),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)
