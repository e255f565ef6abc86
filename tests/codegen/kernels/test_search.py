from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.search import TYPES, Search
from gossamer.errors import CompileError
from gossamer.ops._search import found_at, place_of
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

DTYPES = {"f32": "float32", "f64": "float64", "i32": "int32"}


def searched(
    target: Target, rule: str, type: str, keys: np.ndarray, x: np.ndarray, size: int, threads: int
) -> np.ndarray:
    spec = Search(target.name, rule, type)
    y = guarded(np.full(x.shape, -7, np.int32))
    numbers = {
        "rows": len(x),
        "size": keys.shape[1],
        "count": x.shape[1],
        "block": size,
        "blocks": -(-x.shape[1] // size),
    }
    strides = {"keys_row": keys.strides[0], "x_row": x.strides[0], "y_row": y.strides[0]}
    run(spec, block(spec.arguments, keys=keys, x=x, y=y, **numbers, **strides), threads)
    return y


@on_every_target
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(("rule", "want"), [("upper", place_of), ("equal", found_at)])
def test_places(target: Target, type: str, rule: str, want: object) -> None:
    rng = np.random.default_rng(0)
    x = guarded(rng.integers(-2, 22, (2, 70)).astype(DTYPES[type]))
    if type != "i32" and rule == "upper":
        x[0, :3] = np.nan, np.inf, -np.inf
    for size in (0, 1, 2, 7, 16, 33):
        keys = guarded(np.sort(rng.integers(0, 20, (2, size)), 1).astype(DTYPES[type]))
        for per_block, threads in ((70, 1), (64, 3)):
            expected = (
                np.stack([want(*row) for row in zip(keys, x, strict=True)])
                if size
                else np.full(x.shape, -(rule == "equal"))
            )
            np.testing.assert_array_equal(searched(target, rule, type, keys, x, per_block, threads), expected)


@on_every_target
def test_keys_in_no_order_are_searched_as_bsearch_does(target: Target) -> None:
    keys = guarded(np.random.default_rng(0).integers(-50, 50, (1, 41)).astype(np.int32))
    x = guarded(np.arange(-51, 52, dtype=np.int32)[None])
    np.testing.assert_array_equal(searched(target, "equal", "i32", keys, x, 103, 1)[0], found_at(keys[0], x[0]))


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles_for_every_target(target: Target) -> None:
    for type in TYPES:
        assembly(Search(target.name, "upper", type), target)


def test_names_and_refusals() -> None:
    assert Search("avx2", "equal", "i32").name == "i32_search_equal__avx2"
    with pytest.raises(CompileError, match="nothing is searched so"):
        Search("avx2", "upper", "i8").emit(all_targets()["avx2"])
