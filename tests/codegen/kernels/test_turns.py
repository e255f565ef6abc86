from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import compile_kernel
from gossamer.codegen.kernels.turns import Statement, Turns
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, place, run

TYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u8": np.uint8, "i64": np.int64}


def counting(target: Target, type: str, count: int) -> Turns:
    """n, x -> n + 1, x * a + x while n + 1 < limit; a has one element."""
    return Turns(
        target.name,
        variables=(("i32", 1), (type, count)),
        others=(("i32", 1), ("i32", 1), (type, 1)),
        statements=(
            Statement(("add", 0, 1), (0, 2), ("i32", 1)),
            Statement(("add", ("mul", 0, 1), 0), (1, 4), (type, count)),
            Statement(("less", 0, 1), (5, 3), ("bool", 1)),
        ),
        following=(5, 6),
        going=7,
    )


@on_every_target
@pytest.mark.parametrize("count", [1, 3, 8, 16, 17, 64])
@pytest.mark.parametrize("type", TYPES)
def test_variables_follow_each_other(target: Target, type: str, count: int) -> None:
    dtype = TYPES[type]
    for begin, limit, most, turns in ((0, 5, 100, 5), (0, 5, 2, 2), (4, 5, 100, 1), (9, 5, 100, 1)):
        n, x = guarded(np.array([begin], np.int32)), guarded((np.arange(count) % 7).astype(dtype))
        one, end = guarded(np.array([1], np.int32)), guarded(np.array([limit], np.int32))
        a, flag = guarded(np.array([2], dtype)), guarded(np.array([True]))
        places = np.array([place(array) for array in (n, x, one, end, a)], np.int64)
        expected = x.copy()
        for _ in range(turns):
            expected = (expected * a + expected).astype(dtype)
        spec = counting(target, type, count)
        run(spec, block(spec.arguments, places=places, flag=flag, turns=most))
        np.testing.assert_array_equal(x, expected)
        assert (n[0], bool(flag[0])) == (begin + turns, begin + turns < limit)


@on_every_target
def test_variables_may_change_places(target: Target) -> None:
    spec = Turns(
        target.name,
        variables=(("f32", 3), ("f32", 3), ("bool", 1)),
        others=(("i32", 1),),
        statements=(Statement(("add", 0, 1), (0, 1), ("f32", 3)), Statement(("equal", 0, 0), (3,), ("bool", 1))),
        following=(1, 4, 5),
        going=5,
    )
    a, b = (guarded(np.full(3, value, np.float32)) for value in (0, 1))
    true, flag, number = guarded(np.array([False])), guarded(np.array([True])), guarded(np.zeros(1, np.int32))
    places = np.array([place(array) for array in (a, b, true, number)], np.int64)
    run(spec, block(spec.arguments, places=places, flag=flag, turns=10))
    assert (a.tolist(), b.tolist(), true.tolist(), flag.tolist()) == ([55] * 3, [89] * 3, [True], [True])


def test_names_differ_by_all_that_a_turn_does() -> None:
    target = all_targets()["avx2"]
    names = {counting(target, type, count).name for type in TYPES for count in (1, 2)}
    assert len(names) == 2 * len(TYPES)
    assert all(name.startswith("turns_3_i32x1") for name in names)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_is_compiled_for_every_target(target: Target) -> None:
    assert len(compile_kernel(counting(target, "f32", 64), target).code) < 2048
