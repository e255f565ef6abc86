"""STABLEHLO_SCATTER: bodies, windows, what falls outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.stablehlo_scatter import op
from gossamer.schema import StablehloScatterOptions
from tests.ops.bodies import BodyCase, assert_body_refused, run_body_case
from tests.ops.cases import Operand, tensor
from tests.ops.reference import REFERENCE

ZEROS = np.zeros((3, 4))


def indices(values: Any, dtype: Any = np.int32) -> Operand:
    return tensor(values, dtype)


def scattering(
    window: tuple[int, ...] = (),
    inserted: tuple[int, ...] = (0,),
    operand: tuple[int, ...] = (0,),
    vector: int = 1,
    body: int = 1,
) -> StablehloScatterOptions:
    return StablehloScatterOptions(
        update_window_dims=window,
        inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=operand,
        index_vector_dim=vector,
        update_computation_subgraph_index=body,
    )


def combining(body: str, expected: Any, dtype: Any = np.float32, updates: Any = (2, 3, 4)) -> BodyCase:
    """[5, 6] with updates at 0, 1 and 0."""
    return BodyCase(
        f"{body.lower()}_{np.dtype(dtype)}",
        [tensor([5, 6], dtype), indices([[0], [1], [0]]), tensor(updates, dtype)],
        [tensor(expected, dtype)],
        scattering(),
        body=(body,),
    )


CASES = [
    BodyCase(
        "last_update_stays",
        [tensor([5, 6]), indices([[0], [1], [0]]), tensor([2, 3, 4])],
        [tensor([4, 3])],
        scattering(),
    ),
    combining("STABLEHLO_ADD", [11, 9]),
    combining("STABLEHLO_MULTIPLY", [40, 18]),
    combining("STABLEHLO_MAXIMUM", [7, 6], updates=(2, 3, 7)),
    combining("STABLEHLO_MINIMUM", [2, 3]),
    combining("STABLEHLO_ADD", [-123, 9], np.int8, (2, 3, 126)),
    combining("STABLEHLO_ADD", [11, 9], np.uint64),
    combining("STABLEHLO_ADD", [11, 9], np.float16),
    combining("STABLEHLO_MAXIMUM", [5, 6], updates=(np.nan, np.nan, 2)),
    BodyCase(
        "maximum_of_nan",
        [tensor([np.nan, 6]), indices([[0], [1]]), tensor([2, 7])],
        [tensor([np.nan, 7])],
        scattering(),
        body=("STABLEHLO_MAXIMUM",),
    ),
    BodyCase(
        "or",
        [tensor([False, True], bool), indices([[0], [1]]), tensor([True, True], bool)],
        [tensor([True, True], bool)],
        scattering(),
        body=("STABLEHLO_ADD",),
    ),
    BodyCase(
        "rows",
        [tensor(ZEROS), indices([[2], [0]]), tensor([[1, 2, 3, 4], [5, 6, 7, 8]])],
        [tensor([[5, 6, 7, 8], [0, 0, 0, 0], [1, 2, 3, 4]])],
        scattering((1,)),
    ),
    BodyCase(
        "windows_partly_outside",
        [
            tensor(ZEROS, np.int32),
            indices([[2, 3], [-1, 0]], np.int64),
            tensor(np.arange(1, 9).reshape(2, 2, 2), np.int32),
        ],
        [tensor([[7, 8, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]], np.int32)],
        scattering((1, 2), (), (0, 1)),
    ),
    BodyCase(
        "windows_before_the_batch",
        [tensor(ZEROS), indices([[0, 1], [2, 0]]), tensor([[1, 2], [3, 4]])],
        [tensor([[0, 0, 1, 3], [2, 4, 0, 0], [0, 0, 0, 0]])],
        scattering((0,), (0,), (0, 1), vector=0),
        notes="vectors are columns: (0, 2) and (1, 0)",
    ),
    BodyCase(
        "window_dimensions_out_of_order",
        [tensor(ZEROS), indices([1, 1]), tensor([[1, 2], [3, 4]])],
        [tensor([[0, 0, 0, 0], [0, 1, 3, 0], [0, 2, 4, 0]])],
        scattering((1, 0), (), (0, 1), vector=0),
    ),
    BodyCase(
        "far_outside",
        [tensor([5, 6], np.int16), indices([[2**63 - 1], [-(2**63)]], np.int64), tensor([[1, 2], [3, 4]], np.int16)],
        [tensor([5, 6], np.int16)],
        scattering((1,), ()),
        body=("STABLEHLO_ADD",),
    ),
    BodyCase("no_updates", [tensor([5]), indices(np.zeros((0, 1))), tensor(np.zeros(0))], [tensor([5])], scattering()),
]


def test_case(case: BodyCase, backend: Any) -> None:
    run_body_case(backend, op, case)


def test_vector_dimension_may_be_left_out() -> None:
    case = BodyCase("", [tensor([5, 6]), indices([1, 0]), tensor([2, 3])], [tensor([3, 2])], scattering())
    run_body_case(REFERENCE, op, case)


AT, UPDATES = indices([[0], [1]]), tensor([1, 2])
REFUSED = [
    ("the body (subgraph 1) must be empty or one of", AT, UPDATES, scattering(), ("ADD",)),
    ("it is STABLEHLO_ADD, STABLEHLO_ADD", AT, UPDATES, scattering(), ("STABLEHLO_ADD", "STABLEHLO_ADD")),
    ("subgraph 2 does not exist: the model has 2", AT, UPDATES, scattering(body=2), ()),
    ("updates must be float32 here, got int32", AT, tensor([1, 2], np.int32), scattering(), ()),
    ("indices must be int32 or int64, got int8", tensor([[0], [1]], np.int8), UPDATES, scattering(), ()),
    ("update_window_dims [1] must be different dimensions in [0, 1)", AT, UPDATES, scattering((1,)), ()),
    ("inserted_window_dims [1] must be", AT, UPDATES, scattering(inserted=(1,)), ()),
    ("scatter_dims_to_operand_dims [-1] must be", AT, UPDATES, scattering(operand=(-1,)), ()),
    ("must be 1 together, the rank of the operand, got 0", AT, UPDATES, scattering(inserted=()), ()),
    ("index vectors have 2 components, the options map 1", AT, UPDATES, scattering(vector=0), ()),
    ("updates have batch dimensions [3], the indices [2]", AT, tensor([1, 2, 3]), scattering(), ()),
]


@pytest.mark.parametrize(("message", "at", "updates", "options", "body"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refuses(
    message: str, at: Operand, updates: Operand, options: StablehloScatterOptions, body: tuple[str, ...]
) -> None:
    case = BodyCase("", [tensor([5, 6]), at, updates], [tensor([5, 6])], options, body=body)
    assert_body_refused(op, case, message)
