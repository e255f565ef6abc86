"""Symbolic sizes: read as text, evaluated as integers, and nothing else."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gossamer.convert.sources.symbolic import Expression, Size, Symbol, evaluate, parse, shown, symbols_of
from gossamer.errors import ConvertError

S = "Symbol('s0', positive=True, integer=True)"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Integer(-3)", -3),
        ("Rational(1, 2)", Fraction(1, 2)),
        ("Float('1.5', precision=53)", 1.5),
        (S, Symbol("s0")),
        (f"Mul(Integer(2), {S})", Expression("Mul", (2, Symbol("s0")))),
        (f"Other({S})", Expression("Other", (Symbol("s0"),))),
    ],
)
def test_what_srepr_writes_is_read(text: str, size: Size) -> None:
    assert parse(text) == size


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"Add(FloorDiv(Add({S}, Integer(-1)), Integer(2)), Integer(1))", 4),
        (f"Mul(Integer(3), Pow({S}, Integer(2)))", 147),
        (f"Mul(Rational(1, 7), {S})", 1),
        (f"Pow(Mul({S}, Rational(1, 7)), Integer(-1))", 1),
        (f"Min(Integer(4), Max({S}, Integer(5)))", 4),
        (f"CleanDiv(Mul({S}, Integer(6)), Integer(2))", 21),
        (f"CeilDiv({S}, Integer(2))", 4),
        (f"Mod({S}, Integer(4))", 3),
        (f"PythonMod(Mul({S}, Integer(-1)), Integer(4))", 1),
        (f"ModularIndexing({S}, Integer(2), Integer(2))", 1),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(parse(text), {"s0": 7}) == value


def test_symbols_and_words() -> None:
    size = parse(f"Mul({S}, Add(Symbol('b'), Integer(1)))")
    assert symbols_of(size) == {"s0", "b"}
    assert shown(size) == "Mul(s0, Add(b, 1))"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "s0",
        "Integer(1) + Integer(2)",
        "Integer('1')",
        "Integer(True)",
        "Integer(99999999999999999999)",
        "Integer(1, 2)",
        "Rational(1, 0)",
        "Float()",
        "Float('x')",
        "Symbol(1)",
        "Symbol('a', 'b')",
        "Add()",
        "Add(Integer(1), x=Integer(2))",
        "Add(*Integer(1))",
        "Integer.__class__(1)",
        "(lambda: Integer(1))()",
        "__import__('os').system('true')",
        "Add(\\Integer(1))",
        "Integer(1)\0",
        "Add(" * 2000 + "Integer(1)" + ")" * 2000,
        "Add(" * 150 + "Integer(1)",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConvertError, match="cannot be read"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Symbol('b')", "b is not known"),
        ("FloorDiv(Integer(1), Integer(0))", "cannot be computed"),
        ("Pow(Integer(10), Integer(1000000000))", "cannot be computed"),
        ("Pow(Pow(Integer(10), Integer(18)), Integer(64))", "64 bits"),
        ("Pow(Integer(1))", "cannot be computed"),
        ("Rational(1, 2)", "no integer"),
        ("Float('nan')", "no integer"),
        ("Float('inf')", "no integer"),
        ("Exotic(Integer(1))", "Exotic"),
    ],
)
def test_what_is_no_size(text: str, words: str) -> None:
    with pytest.raises(ConvertError, match=words):
        evaluate(parse(text), {"s0": 7})
