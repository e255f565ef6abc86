from __future__ import annotations

from itertools import product

import pytest

from gossamer.codegen.expression import (
    ALIASES,
    FUNCTIONS,
    Expression,
    apply,
    canonical,
    name_of,
    operand_count,
    substitute,
    type_of,
)
from gossamer.codegen.ir import Module
from gossamer.errors import CompileError
from gossamer.targets import all_targets

SILU: Expression = ("mul", 0, ("logistic", 0))


@pytest.mark.parametrize(("expression", "name"), [
    (0, ""),
    (1, "x1"),
    (("relu", 0), "relu"),
    (("relu", ("add", 0, 1)), "add_relu"),
    (("add", ("mul", 0, 1), 2), "mul_add"),
    (("add", 0, 2), "x2_add"),
    (("sub", 1, 0), "x1_x0_sub"),
    (("add", ("mul", 0, 1), ("mul", 2, 3)), "mul_x2_x3_mul_add"),
    (("add", ("mul", 0, 1), ("mul", 0, 2)), "mul_x0_x2_mul_add"),
    (("add", ("mul", ("mul", 0, 0), 1), 2), "x0_mul_mul_add"),
    (SILU, "silu"),
    (("add", ("mul", ("add", 0, 1), ("logistic", ("add", 0, 1))), 2), "add_silu_add"),
    (("mul", 0, ("logistic", 1)), "x1_logistic_mul"),
    (("sub", 0, ("mul", 1, ("logistic", 1))), "x1_silu_sub"),
])  # fmt: skip
def test_names(expression: Expression, name: str) -> None:
    assert name_of(expression) == name


def test_no_two_share_a_name() -> None:
    # All expressions of two functions of each arity, to a depth of 2.
    leaves: list[Expression] = [0, 1, 2, 3]
    once = [("neg", x) for x in leaves] + [("mul", x, y) for x, y in product(leaves, repeat=2)]
    all_once = leaves + once
    twice = [("neg", x) for x in all_once] + [("mul", x, y) for x, y in product(all_once, repeat=2)]
    three = [("add", x, y) for x, y in product(twice, leaves)] + [("add", y, x) for x, y in product(twice, leaves)]
    expressions = set(all_once + twice + three)
    assert len({name_of(expression) for expression in expressions}) == len(expressions)


def test_names_are_words_of_their_own() -> None:
    names = [*FUNCTIONS, *ALIASES]
    assert len(set(names)) == len(names)
    assert all(name.isalnum() and name.islower() and name.strip("vs") for name in names)
    assert all(operand_count(expression) == 1 for expression in ALIASES.values())


def test_operands_are_counted() -> None:
    assert operand_count(0) == 1
    assert operand_count(("add", 0, ("mul", 4, 1))) == 5


@pytest.mark.parametrize(("expression", "types", "result"), [
    (0, ["i8"], "i8"),
    (("add", 0, 1), ["f16", "bf16"], "f32"),
    (("less", 0, 1), ["i64", "i64"], "bool"),
    (("select", ("equal", 0, 1), 2, 2), ["i32", "i32", "u8"], "u8"),
    (("mul", ("tof32", ("sub", ("toi32", 0), 1)), 2), ["i8", "i32", "f32"], "f32"),
    (("quantizeu8", 0, 1, 2), ["f32"] * 3, "u8"),
])  # fmt: skip
def test_types(expression: Expression, types: list[str], result: str) -> None:
    assert type_of(expression, types) == result


@pytest.mark.parametrize(("expression", "types", "message"), [
    (("add", 0, 1), ["i8", "i16"], "add takes arguments of one type, got i8 and i16"),
    (("less", ("exp", 0), 0), ["i32"], "There is no exp of i32"),
    (("select", 0, 0, 0), ["f32"], "The first argument of select must be a bool"),
    (0, ["int8"], "An element type is one of f32, .*, got 'int8'"),
])  # fmt: skip
def test_types_that_do_not_fit(expression: Expression, types: list[str], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        type_of(expression, types)


def test_substitution() -> None:
    assert substitute(("add", 0, 1), {0: ("relu", 0), 1: 2}) == ("add", ("relu", 0), 2)
    assert substitute(SILU, {0: 3}) == ("mul", 3, ("logistic", 3))
    assert substitute(2, {0: 1}) == 2


def test_what_occurs_twice_is_computed_once() -> None:
    f = Module(all_targets()["avx2"]).driver()
    x, y = f.constant(f.f32, 2.0), f.constant(f.f32, 3.0)
    total: Expression = ("add", 0, 1)
    apply(("mul", total, ("sub", total, 0)), f, [x, y])
    assert f.text().count("fadd") == 1


def test_identity_emits_nothing() -> None:
    f = Module(all_targets()["avx2"]).driver()
    x = f.constant(f.f32, 2.0)
    assert apply(0, f, [x]) is x


@pytest.mark.parametrize(("expression", "message"), [
    (("frobnicate", 0), "no function 'frobnicate'; there are add, "),
    (("add", 0), "add takes 2 arguments, got 1"),
    (("relu", -1), "counted from 0, got operand -1"),
])  # fmt: skip
def test_what_is_no_expression(expression: Expression, message: str) -> None:
    for check in (operand_count, name_of):
        with pytest.raises(CompileError, match=message):
            check(expression)


def test_operands_that_are_missing() -> None:
    f = Module(all_targets()["avx2"]).driver()
    with pytest.raises(CompileError, match="needs 3 operands, and here there are 1"):
        apply(("add", 0, 2), f, [f.constant(f.f32, 1.0)])


def test_sums_and_products_have_one_order() -> None:
    assert canonical(("add", 1, 0)) == ("add", 0, 1)
    assert canonical(("mul", ("logistic", 0), 0)) == ("mul", 0, ("logistic", 0))
    assert canonical(("sub", 1, 0)) == ("sub", 1, 0)
    assert canonical(("and", ("less", 0, 1), ("less", 0, 1))) == ("less", 0, 1)
    assert canonical(("relu", ("add", 2, ("mul", 1, 0)))) == ("relu", ("add", ("mul", 0, 1), 2))
