"""Fused expressions: what a kernel computes of the elements that it reads, as a value.

An expression is an operand number, or a function and its arguments, which are expressions: relu(x + y) is
``("relu", ("add", 0, 1))``. Kernels say what their operands are: those of a map are tensors; operand 0 of an epilogue
is what the kernel has accumulated. A constant is an operand like any other, so that kernels are shared.

Expressions are part of kernel names, in postfix notation (`name_of`): the example is ``add_relu``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from gossamer.codegen import floats, ir
from gossamer.codegen.ir import Value
from gossamer.errors import CompileError

# Read when this module is imported, so not the | of annotations.
Expression = Union[int, tuple[Any, ...]]  # noqa: UP007
"""An operand number, or ``(function, *arguments)``."""

IDENTITY: Expression = 0
"""The epilogue that changes nothing."""


class Function(NamedTuple):
    """A function of expressions: how many arguments it takes, and how its instructions are emitted."""

    arity: int
    emit: Callable[..., Value]
    """Of an `ir.Function` and ``arity`` values of one type; the result."""


def _unary(emit: Callable[[ir.Function, Value], Value]) -> Function:
    return Function(1, emit)


def _binary(emit: Callable[[ir.Function, Value, Value], Value]) -> Function:
    return Function(2, emit)


def _clamp(low: float, high: float) -> Function:
    return _unary(lambda f, x: f.at_most(f.at_least(x, low), high))


def _sign(f: ir.Function, x: Value) -> Value:
    one, zero = f.constant(x.type, 1.0), f.constant(x.type, 0.0)
    positive = f.select(f.compare("ogt", x, 0.0), one, x * zero)  # NaN stays
    return f.select(f.compare("olt", x, 0.0), -one, positive)


def _hard_swish(f: ir.Function, x: Value) -> Value:
    return x * (f.at_most(f.at_least(x + 3.0, 0.0), 6.0) * (1.0 / 6.0))


def _elu(f: ir.Function, x: Value) -> Value:
    return f.select(f.compare("olt", x, 0.0), floats.exp_minus_1(f, f.at_most(x, 0.0)), x)


def _gelu_tanh(f: ir.Function, x: Value) -> Value:
    cubic = x * x * x * 0.044715
    return (x * 0.5) * (floats.tanh(f, (x + cubic) * math.sqrt(2 / math.pi)) + 1.0)


FUNCTIONS: dict[str, Function] = {
    "abs": _unary(lambda f, x: f.intrinsic("llvm.fabs", x)),
    "ceil": _unary(lambda f, x: f.intrinsic("llvm.ceil", x)),
    "elu": _unary(_elu),
    "exp": _unary(floats.exp),
    "floor": _unary(lambda f, x: f.intrinsic("llvm.floor", x)),
    "gelu": _unary(floats.gelu),
    "gelutanh": _unary(_gelu_tanh),
    "hardswish": _unary(_hard_swish),
    "log": _unary(floats.log),
    "logistic": _unary(floats.logistic),
    "neg": _unary(lambda f, x: -x),
    "relu": _unary(lambda f, x: f.at_least(x, 0.0)),
    "relu01": _clamp(0.0, 1.0),
    "relu6": _clamp(0.0, 6.0),
    "relun1": _clamp(-1.0, 1.0),
    "round": _unary(lambda f, x: f.intrinsic("llvm.roundeven", x)),
    "rsqrt": _unary(lambda f, x: 1.0 / f.intrinsic("llvm.sqrt", x)),
    "sign": _unary(_sign),
    "sqrt": _unary(lambda f, x: f.intrinsic("llvm.sqrt", x)),
    "square": _unary(lambda f, x: x * x),
    "tanh": _unary(floats.tanh),
    "add": _binary(lambda f, x, y: x + y),
    "div": _binary(lambda f, x, y: x / y),
    "max": _binary(lambda f, x, y: f.maximum(x, y)),
    "min": _binary(lambda f, x, y: f.minimum(x, y)),
    "mul": _binary(lambda f, x, y: x * y),
    "prelu": _binary(lambda f, x, y: f.select(f.compare("olt", x, 0.0), x * y, x)),
    "sqrdiff": _binary(lambda f, x, y: (x - y) * (x - y)),
    "sub": _binary(lambda f, x, y: x - y),
}
"""Every function, by the name that expressions and kernels call it."""

ALIASES: dict[str, Expression] = {
    "silu": ("mul", 0, ("logistic", 0)),
}
"""Short names of well-known expressions of one operand."""


def operand_count(expression: Expression) -> int:
    """1 + the highest operand number. Raises `CompileError` for what is not an expression."""
    if isinstance(expression, int):
        if expression < 0:
            raise CompileError(f"Operands are counted from 0, got operand {expression}.")
        return expression + 1
    function, *arguments = expression
    known = FUNCTIONS.get(function)
    if known is None:
        raise CompileError(f"There is no function {function!r}; there are {', '.join(FUNCTIONS)}.")
    if len(arguments) != known.arity:
        raise CompileError(f"{function} takes {known.arity} arguments, got {len(arguments)} in {expression}.")
    return max(operand_count(argument) for argument in arguments)


def name_of(expression: Expression) -> str:
    """The expression in postfix notation, as part of a kernel's name; nothing for operand 0. No two share a name.

    The first operand is not spelled if it is operand 0. Where a function is applied to what has been computed from it,
    and its last arguments are the next new operands, they are not spelled either: ``add_relu``, ``mul_add``. All other
    operands are ``x1``, ``x2`` …
    """
    operand_count(expression)
    if _leftmost(expression) != 0:
        return "_".join(_postfix(expression))
    words: list[str] = []
    _spine(expression, words)
    return "_".join(words)


def apply(expression: Expression, f: ir.Function, operands: Sequence[Value]) -> Value:
    """Emit the expression of values of one type. What occurs in it more than once is computed once."""
    count = operand_count(expression)
    if count > len(operands):
        raise CompileError(f"{expression} needs {count} operands, and here there are {len(operands)}.")
    known: dict[Expression, Value] = {}

    def value(part: Expression) -> Value:
        if isinstance(part, int):
            return operands[part]
        if part not in known:
            function, *arguments = part
            known[part] = FUNCTIONS[function].emit(f, *(value(argument) for argument in arguments))
        return known[part]

    return value(expression)


def substitute(expression: Expression, operands: Mapping[int, Expression]) -> Expression:
    """The expression with other expressions in the place of operands; operands that are not named stay."""
    if isinstance(expression, int):
        return operands.get(expression, expression)
    function, *arguments = expression
    return (function, *(substitute(argument, operands) for argument in arguments))


def _leftmost(expression: Expression) -> int:
    while not isinstance(expression, int):
        expression = expression[1]
    return expression


def _aliased(expression: Expression) -> tuple[str, Expression] | None:
    """Short name and argument, if this is a well-known expression of one."""
    for name, known in ALIASES.items():
        argument = _match(known, expression)
        if argument is not None:
            return name, argument
    return None


def _match(known: Expression, expression: Expression) -> Expression | None:
    """What takes the place of operand 0 of the known expression in this one."""
    if known == 0:
        return expression
    if isinstance(known, int) or isinstance(expression, int):
        return None
    if known[0] != expression[0] or len(known) != len(expression):
        return None
    found = [_match(inner, other) for inner, other in zip(known[1:], expression[1:], strict=True)]
    return found[0] if all(other == found[0] for other in found) else None


def _postfix(expression: Expression) -> list[str]:
    if isinstance(expression, int):
        return [f"x{expression}"]
    alias = _aliased(expression)
    name, arguments = (alias[0], alias[1:]) if alias else (expression[0], expression[1:])
    return [*(word for argument in arguments for word in _postfix(argument)), name]


def _spine(expression: Expression, words: list[str]) -> int:
    """Spell what is computed from operand 0, along the first arguments; 1 + the highest operand number until there."""
    if isinstance(expression, int):
        return 1
    alias = _aliased(expression)
    if alias:
        following = _spine(alias[1], words)
        words.append(alias[0])
        return following
    function, first, *others = expression
    following = _spine(first, words)
    # Reading left to right, a function takes the newest values; it takes the one that came of operand 0 only if there
    # are not enough others. Then what is missing are new operands: so a name means one expression.
    spelled = len(others)
    while spelled and _counts_on(others[spelled - 1 :], max([following, *map(operand_count, others[: spelled - 1])])):
        spelled -= 1
    for other in others[:spelled]:
        words.extend(_postfix(other))
    words.append(function)
    return max([following, *map(operand_count, others)])


def _counts_on(operands: Sequence[Expression], start: int) -> bool:
    return list(operands) == list(range(start, start + len(operands)))
