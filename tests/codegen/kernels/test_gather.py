from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.gather import AXIS, Aim, Gather
from gossamer.codegen.kernels.move import SIZES
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run


def axes(*pairs: tuple[int, int]) -> np.ndarray:
    return np.concatenate([block(AXIS, limit=limit, step=step) for limit, step in pairs])


def gather(spec: Gather, x: np.ndarray, y: np.ndarray, indices: np.ndarray, table: np.ndarray, **more: Any) -> int:
    """Run it, x and y being [positions, rows, columns], or more said; the word at ``fault``."""
    fault = guarded(np.zeros(1, np.int64))
    values = {
        f"{side}_{name}": array.strides[at]
        for side, array in (("x", x), ("y", y))
        for at, name in enumerate(("position", "row", "column"))
    }
    positions, rows, columns = y.shape
    arguments = {
        "x": x,
        "y": y,
        "indices": indices,
        "axes": table,
        "fault": fault,
        "components": len(table) // len(AXIS),
        "groups": 1,
        "positions": positions,
        "last": more.get("positions", positions),
        "rows": rows,
        "columns": columns,
        "block": max(columns, 1),
        "blocks": 1,
        "index_group": 0,
        "index_position": indices.strides[0],
        "index_component": indices.strides[-1],
        "x_group": 0,
        "y_group": 0,
        **values,
        **more,
    }
    run(spec, block(spec.arguments, **arguments), 3)
    return int(fault[0])


def numbers(*shape: int, dtype: Any = "u1") -> np.ndarray:
    return guarded(np.random.default_rng(0).integers(0, 200, shape).astype(dtype))


@on_every_target
@pytest.mark.parametrize("index", ["i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("size", [1, 4, 15, 16, 64, 200])
def test_rows(target: Target, index: str, size: int) -> None:
    spec = Gather(target.name, 8, 8 * np.dtype(index).itemsize)
    x = numbers(7, size)
    indices = guarded(np.array([6, 0, 3, 3, 5], index))
    for each in (size, 7):
        y = guarded(np.full((5, 1, size), 255, "u1"))
        more = {"x_position": 0, "block": each, "blocks": -(-size // each)}
        assert gather(spec, x[:, None], y, indices, axes((7, size)), **more) == 0
        np.testing.assert_array_equal(y[:, 0], x[indices])


@on_every_target
@pytest.mark.parametrize("bits", SIZES)
def test_elements_along_the_last_axis(target: Target, bits: int) -> None:
    x = numbers(3, 9, 8, dtype=f"u{bits // 8}")
    indices = guarded(np.array([[1, 7, 0], [2, 2, 5]], np.int32))
    y = guarded(np.zeros((3, 9, 2, 3), x.dtype))
    more = {
        "groups": 2,
        "positions": 3,
        "rows": 9,
        "columns": 3,
        "block": 2,
        "blocks": 2,
        "index_group": indices.strides[0],
        "index_position": indices.strides[1],
        "x_position": 0,
        "x_row": x.strides[1],
        "x_column": x.strides[0],
        "y_group": y.strides[2],
        "y_position": y.strides[3],
        "y_row": y.strides[1],
        "y_column": y.strides[0],
    }
    assert gather(Gather(target.name, bits), x, y[..., 0], indices, axes((8, x.itemsize)), **more) == 0
    np.testing.assert_array_equal(y, x[..., indices])


@on_every_target
def test_index_vectors(target: Target) -> None:
    x = numbers(4, 5, 6, 33)
    vectors = guarded(np.array([[3, 0, 5], [0, 4, 0], [1, 2, 3]]))
    y = guarded(np.zeros((3, 1, 33), "u1"))
    table = axes(*zip(x.shape[:3], x.strides[:3], strict=True))
    spec = Gather(target.name, 8, 64)
    assert gather(spec, x.reshape(-1, 1, 33), y, vectors, table, x_position=0) == 0
    np.testing.assert_array_equal(y[:, 0], x[tuple(vectors.T)])


WILD = [0, 5, -1, 4, 2**31 - 1, -(2**31), 2**62, -(2**63), 6]


@on_every_target
def test_a_wild_index_is_a_fault_and_reads_nothing(target: Target) -> None:
    x = numbers(5, 20)
    for wild in WILD:
        y = guarded(np.zeros((2, 1, 20), "u1"))
        outside = not 0 <= wild < 5
        indices = guarded(np.array([wild, 4]))
        assert gather(Gather(target.name, 8, 64), x[:, None], y, indices, axes((5, 20)), x_position=0) == outside
        np.testing.assert_array_equal(y[:, 0], x[[0 if outside else wild, 4]])


@on_every_target
def test_a_wild_index_is_clamped(target: Target) -> None:
    x = numbers(5, 20)
    for wild in WILD:
        y = guarded(np.zeros((1, 1, 20), "u1"))
        indices = guarded(np.array([wild]))
        spec = Gather(target.name, 8, 64, clamps=True)
        assert gather(spec, x[:, None], y, indices, axes((5, 20)), x_position=0) == 0
        np.testing.assert_array_equal(y[0, 0], x[min(max(wild, 0), 4)])


@on_every_target
@pytest.mark.parametrize("bits", SIZES)
def test_put(target: Target, bits: int) -> None:
    box = numbers(1, 3, 4, dtype=f"u{bits // 8}")
    for start in ((0, 0), (2, 3), (9, -1), (-5, 9)):
        y = numbers(5, 7, dtype=box.dtype)
        want = y.copy()
        first, second = min(max(start[0], 0), 2), min(max(start[1], 0), 3)
        want[first : first + 3, second : second + 4] = box[0]
        vector = guarded(np.array([start], np.int32))
        spec = Gather(target.name, bits, 32, clamps=True, puts=True)
        table = axes((3, y.strides[0]), (4, y.strides[1]))
        place = np.lib.stride_tricks.as_strided(y, (1, 3, 4), (0, *y.strides))
        assert gather(spec, box, place, vector, table) == 0
        np.testing.assert_array_equal(y, want)


@on_every_target
@pytest.mark.parametrize("clamps", [False, True])
def test_who_reads_a_box_is_told_where_it_is(target: Target, clamps: bool) -> None:
    places = [0, 1000, 16, 2000, 24]  # what words are for an index of 0
    for index in WILD:
        words, fault = guarded(np.full(len(places), -1)), guarded(np.zeros(1, np.int64))
        told = [word for at, place in enumerate(places[:-1]) for word in (words.ctypes.data + 8 * at, place)]
        spec = Aim(target.name, 64, clamps)
        arguments = {
            "indices": guarded(np.array([index])),
            "axes": axes((5, 20)),
            "fault": fault,
            "components": 1,
            "index_component": 8,
            "readers": guarded(np.array([len(places) - 1, *told])),
        }
        run(spec, block(spec.arguments, **arguments), 3)
        inside = min(max(index, 0), 4) if clamps else index * (0 <= index < 5)
        assert fault[0] == (not clamps and inside != index)
        assert words.tolist() == [*(place + 20 * inside for place in places[:-1]), -1]


def test_names_and_refusals() -> None:
    assert Gather("avx2", 8).name == "x8_gather_i32__avx2"
    assert Gather("avx2", 32, 64, clamps=True, puts=True).name == "x32_put_i64__avx2_clamped"
    assert Aim("avx2", 64, clamps=True).name == "x64_aim_i64__avx2_clamped"
    for spec in (Gather("avx2", 12), Gather("avx2", 8, 128)):
        with pytest.raises(CompileError, match="8, 16, 32, 64"):
            spec.emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for bits in SIZES:
        assembly(Gather(target.name, bits), target)
        assembly(Gather(target.name, bits, 64, clamps=True, puts=True), target)
