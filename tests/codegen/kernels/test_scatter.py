from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.scatter import COMBINES, Combine, Scatter, known_as
from gossamer.errors import CompileError
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

TYPES = {
    "f32": "float32",
    "f16": "float16",
    "i8": "int8",
    "u8": "uint8",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
}
FUNCTIONS = {"add": np.add, "mul": np.multiply, "max": np.fmax, "min": np.fmin}


def scatter(spec: Scatter, x: np.ndarray, places: np.ndarray, y: np.ndarray, size: int = 0, threads: int = 1) -> int:
    """Whether a place was outside."""
    columns, fault = x.shape[1], guarded(np.zeros(1, np.int64))
    size = size or columns
    arguments = block(
        spec.arguments,
        x=x,
        places=places,
        y=y,
        fault=fault,
        count=len(x),
        rows=len(y),
        columns=columns,
        block=size,
        blocks=-(-columns // size),
        x_row=x.strides[0],
        y_row=y.strides[0],
    )
    run(spec, arguments, threads)
    return int(fault[0])


@on_every_target
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("combine", COMBINES)
def test_rows_are_combined_in_order(target: Target, type: str, combine: Combine) -> None:
    rng = np.random.default_rng(0)
    spec = Scatter(target.name, known_as(type, combine), combine)
    places = guarded(np.array([2, 0, 2, 4, 2], np.int32))
    for columns in (1, target.lanes() - 1, target.lanes(), 3 * target.lanes() + 2):
        x = guarded((rng.standard_normal((5, columns)) * 5).astype(np.int64).astype(TYPES[type]))
        start = (rng.standard_normal((5, columns)) * 5).astype(np.int64).astype(TYPES[type])
        want = start.copy()
        for place, row in zip(places, x, strict=True):
            want[place] = row if combine == "set" else FUNCTIONS[combine](want[place], row)
        for size, threads in ((0, 1), (16, 2), (0, 3)):
            y = guarded(start)
            assert not scatter(spec, x, places, y, size, threads)
            np.testing.assert_array_equal(y, want)


@on_every_target
def test_a_place_outside_is_told_and_left_out(target: Target) -> None:
    x = guarded(np.arange(8, dtype=np.float32).reshape(4, 2))
    for outside in (-1, 3, -(2**31), 2**31 - 1):
        y = guarded(np.zeros((3, 2), np.float32))
        places = guarded(np.array([0, outside, 2, 0], np.int32))
        assert scatter(Scatter(target.name, "f32", "add"), x, places, y) == 1
        np.testing.assert_array_equal(y, [x[0] + x[3], [0, 0], x[2]])


@on_every_target
@pytest.mark.parametrize("combine", ["max", "min"])
def test_a_nan_stays_and_none_comes(target: Target, combine: Combine) -> None:
    x = guarded(np.array([[np.nan, 1]], np.float32))
    y = guarded(np.array([[1, np.nan]], np.float32))
    scatter(Scatter(target.name, "f32", combine), x, guarded(np.zeros(1, np.int32)), y)
    np.testing.assert_array_equal(y, [[1, np.nan]])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles(target: Target) -> None:
    assert Scatter(target.name, "f32", "add").name == f"f32_scatter_add__{target.name}"
    for combine in COMBINES:
        assembly(Scatter(target.name, known_as("f16", combine), combine), target)


def test_kernels_are_shared_where_the_sign_does_not_matter() -> None:
    assert known_as("u32", "add") == "i32"
    assert known_as("u32", "max") == "u32"
    assert known_as("bool", "max") == "u8"
    assert known_as("f16", "set") == "i16"
    with pytest.raises(CompileError, match="no such combination"):
        Scatter(PLAIN[0].name, "u32", "add").emit(PLAIN[0])
