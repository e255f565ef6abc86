"""Loops and choices."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.report import RefusedError
from tests.convert.jax.jaxprs import Jaxpr, converted, run

F32, I32 = np.float32, np.int32
X = np.arange(6, dtype=F32).reshape(2, 3) + 1


def doubled(limit_is_const: bool) -> Jaxpr:
    """Doubled until the sum is above a limit, which the condition is given; also how often."""
    test = Jaxpr(((), F32), ((2, 3), F32), ((), I32))
    total = test.add("reduce_sum", test.invars[1], gives=(), axes=(0, 1))
    test.returns(test.add("lt", total, test.invars[0], gives=(), dtype=bool))
    body = Jaxpr(((2, 3), F32), ((), I32))
    twice = body.add("mul", body.invars[0], 2.0, gives=(2, 3))
    body.returns(twice, body.add("add", body.invars[1], 1, gives=(), dtype=I32))
    jaxpr = Jaxpr(((2, 3), F32), ((), F32))
    limit = F32(500) if limit_is_const else jaxpr.invars[1]
    made = jaxpr.many(
        "while", limit, jaxpr.invars[0], 0, gives=[((2, 3), F32), ((), I32)],
        cond_jaxpr=test, cond_nconsts=1, body_jaxpr=body, body_nconsts=0,
    )  # fmt: skip
    return jaxpr.returns(*made)


@pytest.mark.parametrize("limit_is_const", [False, True])
def test_a_loop_of_which_values_decide_the_turns(limit_is_const: bool) -> None:
    expected, turns = X, 0
    while expected.sum() < 500:
        expected, turns = expected * 2, turns + 1
    values, count = run(doubled(limit_is_const), X, np.array(500, F32)).values
    np.testing.assert_array_equal(values, expected)
    assert count == turns


def test_a_loop_that_exchanges_what_it_carries() -> None:
    """The same value is carried twice, and the turns read both."""
    test = Jaxpr(((), I32), ((), F32), ((), F32))
    test.returns(test.add("lt", test.invars[0], 5, gives=(), dtype=bool))
    body = Jaxpr(((), I32), ((), F32), ((), F32))
    total = body.add("add", body.invars[1], body.invars[2], gives=())
    body.returns(body.add("add", body.invars[0], 1, gives=(), dtype=I32), body.invars[2], total)
    jaxpr = Jaxpr(((), F32))
    one = jaxpr.invars[0]
    made = jaxpr.many(
        "while", 0, one, one, gives=[((), I32), ((), F32), ((), F32)],
        cond_jaxpr=test, cond_nconsts=0, body_jaxpr=body, body_nconsts=0,
    )  # fmt: skip
    assert [float(value) for value in run(jaxpr.returns(*made[1:]), np.array(1, F32)).values] == [8, 13]


def recurrence(length: int, reverse: bool, scale: bool = True) -> Jaxpr:
    """c = c / 2 + x, and what it was before, times a constant that the turns are given."""
    body = Jaxpr(((3,), F32), ((3,), F32), ((3,), F32))
    factor, carry, element = body.invars
    half = body.add("mul", carry, 0.5, gives=(3,))
    body.returns(body.add("add", half, element, gives=(3,)), body.add("mul", carry, factor, gives=(3,)))
    jaxpr = Jaxpr(((length, 3), F32), ((3,), F32))
    zero = jaxpr.add("broadcast_in_dim", 0.0, gives=(3,), broadcast_dimensions=())
    made = jaxpr.many(
        "scan", jaxpr.invars[1], zero, jaxpr.invars[0], gives=[((3,), F32), ((length, 3), F32)],
        jaxpr=body, length=length, reverse=reverse, num_consts=1, num_carry=1,
    )  # fmt: skip
    return jaxpr.returns(*made)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [4, 20])
def test_a_scan(length: int, reverse: bool) -> None:
    xs = np.random.default_rng(1).normal(size=(length, 3)).astype(F32)
    factor = np.array([1, 2, 3], F32)
    carry, outputs = np.zeros(3, F32), np.zeros((length, 3), F32)
    for n in reversed(range(length)) if reverse else range(length):
        outputs[n] = carry * factor
        carry = carry / 2 + xs[n]
    jaxpr = recurrence(length, reverse)
    found = run(jaxpr, xs, factor)
    np.testing.assert_allclose(found.values[0], carry, rtol=1e-5)
    np.testing.assert_allclose(found.values[1], outputs, rtol=1e-5, atol=1e-6)
    assert ("WHILE" in found.operators) == (length == 20)


def test_a_scan_over_nothing_but_its_length() -> None:
    body = Jaxpr(((), F32))
    body.returns(body.add("mul", body.invars[0], 1.5, gives=()))
    jaxpr = Jaxpr(((), F32))
    made = jaxpr.many(
        "scan", jaxpr.invars[0], gives=[((), F32)], jaxpr=body, length=12, reverse=False, num_consts=0, num_carry=1
    )
    np.testing.assert_allclose(run(jaxpr.returns(*made), np.array(2, F32)).value, 2 * 1.5**12, rtol=1e-6)


def branches(count: int) -> list[Jaxpr]:
    """x times the number of the branch."""
    made = []
    for number in range(count):
        branch = Jaxpr(((2, 3), F32))
        made.append(branch.returns(branch.add("mul", branch.invars[0], float(number), gives=(2, 3))))
    return made


@pytest.mark.parametrize("which", [-2, 0, 1, 2, 9])
def test_a_choice_by_number_takes_the_nearest_branch(which: int) -> None:
    jaxpr = Jaxpr(((), I32), ((2, 3), F32))
    made = jaxpr.many("cond", *jaxpr.invars, gives=[((2, 3), F32)], branches=branches(3))
    result = run(jaxpr.returns(*made), np.array(which, I32), X)
    np.testing.assert_array_equal(result.value, X * min(max(which, 0), 2))
    assert "IF" in result.operators


@pytest.mark.parametrize("truth", [False, True])
def test_a_choice_by_truth(truth: bool) -> None:
    jaxpr = Jaxpr(((), bool), ((2, 3), F32))
    which = jaxpr.add("convert_element_type", jaxpr.invars[0], gives=(), dtype=I32, new_dtype=I32)
    made = jaxpr.many("cond", which, jaxpr.invars[1], gives=[((2, 3), F32)], branches=branches(2))
    result = run(jaxpr.returns(*made), np.array(truth), X)
    np.testing.assert_array_equal(result.value, X * truth)
    assert "CAST" not in result.operators


def test_a_choice_that_is_known_is_made() -> None:
    jaxpr = Jaxpr(((2, 3), F32))
    here = jaxpr.add("platform_index", gives=(), dtype=I32, platforms=(("tpu",), ("cpu", "cuda"), None))
    made = jaxpr.many("cond", here, jaxpr.invars[0], gives=[((2, 3), F32)], branches=branches(3))
    result = run(jaxpr.returns(*made), X)
    np.testing.assert_array_equal(result.value, X)
    assert "IF" not in result.operators


def test_what_is_refused_inside_of_a_loop_is_named() -> None:
    jaxpr = doubled(True)
    body = jaxpr.eqns[0].params["body_jaxpr"]
    odd = body.add("igamma", body.invars[0], body.invars[0], gives=(2, 3))
    body.returns(odd, body.outvars[1])
    with pytest.raises(RefusedError, match="igamma is no primitive that can be converted"):
        converted(jaxpr)
    jaxpr.eqns[0].primitive.name = "shard_map"
    with pytest.raises(RefusedError, match="shard_map has no counterpart in TFLite"):
        converted(jaxpr)
