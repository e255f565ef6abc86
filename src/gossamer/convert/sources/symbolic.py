"""Sizes that are known when a model runs: small expressions of symbols.

torch writes them as SymPy's ``srepr`` has them: ``Add(FloorDiv(Symbol('s0', positive=True), Integer(2)), Integer(1))``.
That is Python's syntax, so its parser reads it; it is never evaluated as Python.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from gossamer.errors import ConvertError
from gossamer.records import record


@record(frozen=True)
class Symbol:
    """A number that is known when the model runs."""

    name: str


@record(frozen=True)
class Expression:
    """An operation by SymPy's name, or torch's, on integers, symbols and expressions."""

    operator: str
    operands: tuple[Size, ...]


Size = int | float | Fraction | Symbol | Expression
"""A size or a number that sizes are computed with; those of shapes are integers where they are known."""

_LIMIT = 1 << 63
_LONGEST = 10_000
_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": lambda *numbers: sum(numbers),
    "Mul": lambda *numbers: math.prod(numbers),
    "Min": lambda *numbers: min(numbers),
    "Max": lambda *numbers: max(numbers),
    "Pow": lambda base, exponent: base ** _small(exponent),
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: Fraction(a) / b,
    "CeilDiv": lambda a, b: -(-a // b),
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "ModularIndexing": lambda a, divisor, modulus: a // divisor % modulus,
}


def parse(text: str) -> Size:
    """What ``srepr`` wrote. Raises `ConvertError` for anything else."""
    if len(text) > _LONGEST or not re.fullmatch(r"[\w ,()'=.+-]*", text):
        raise _unreadable(text)
    try:
        return _size(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, IndexError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise _unreadable(text) from error


def evaluate(size: Size, symbols: Mapping[str, int]) -> int:
    """The integer that it is with these symbols. Raises `ConvertError` if it is none, or a symbol is missing."""
    number = _number(size, symbols)
    if number != number // 1:
        raise ConvertError(f"the size {shown(size)} is no integer with {dict(symbols)}: {number}")
    return int(number)


def symbols_of(size: Size) -> set[str]:
    """The names of the symbols that it depends on."""
    if isinstance(size, Expression):
        return {name for operand in size.operands for name in symbols_of(operand)}
    return {size.name} if isinstance(size, Symbol) else set()


def shown(size: Size) -> str:
    """The expression in a few characters, for messages."""
    if isinstance(size, Expression):
        return f"{size.operator}({', '.join([shown(operand) for operand in size.operands])})"
    return size.name if isinstance(size, Symbol) else str(size)


def _number(size: Size, symbols: Mapping[str, int]) -> Any:
    if isinstance(size, Symbol):
        if size.name not in symbols:
            raise ConvertError(f"the size {size.name} is not known")
        return symbols[size.name]
    if not isinstance(size, Expression):
        return size
    operands = [_number(operand, symbols) for operand in size.operands]
    try:
        number = _OPERATORS[size.operator](*operands)
    except KeyError:
        raise ConvertError(f"sizes are computed with {size.operator}, which is not known: {shown(size)}") from None
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ConvertError(f"the size {shown(size)} cannot be computed of {operands}: {error}") from error
    if not -_LIMIT <= number < _LIMIT:
        raise ConvertError(f"the size {shown(size)} does not fit 64 bits")
    return number


def _small(exponent: int) -> int:
    if exponent != exponent // 1 or not -64 <= exponent <= 64:
        raise ValueError(f"the power of {exponent}")
    return int(exponent)


def _size(node: ast.expr) -> Size:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError("no call")
    name, arguments = node.func.id, node.args
    if name == "Symbol":
        (argument,) = arguments
        return Symbol(_constant(argument, str))
    if name == "Float":
        return float(_constant(arguments[0], str))
    if node.keywords:
        raise ValueError("keywords")
    if name in ("Integer", "Rational"):
        numbers = [_constant(argument, int) for argument in arguments]
        if len(numbers) != (1 if name == "Integer" else 2) or not all(-_LIMIT <= n < _LIMIT for n in numbers):
            raise ValueError("no number")
        return numbers[0] if name == "Integer" else Fraction(*numbers)
    if not arguments:
        raise ValueError("no operands")
    return Expression(name, tuple([_size(argument) for argument in arguments]))


def _constant(node: ast.expr, kind: type) -> Any:
    if kind is int and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_constant(node.operand, int)
    if not isinstance(node, ast.Constant) or type(node.value) is not kind:
        raise ValueError(f"no {kind.__name__}")
    return node.value


def _unreadable(text: str) -> ConvertError:
    return ConvertError(f"a symbolic size cannot be read: {text[:80]!r}")
