"""Fused expressions: what a kernel computes of the elements that it reads, as a value.

An expression is an operand number, or a function and its arguments, which are expressions: relu(x + y) is
``("relu", ("add", 0, 1))``. Kernels say what their operands are: those of a map are tensors; operand 0 of an epilogue
is what the kernel has accumulated. A constant is an operand like any other, so that kernels are shared.

Every part of an expression has an element type (`gossamer.codegen.elements`). Functions take arguments of one type and
convert nothing by themselves; ``toi32`` and its like do, as CAST does. float16 and bfloat16 are float32 here.

Some functions have an array of parameters as their last argument (`gossamer.codegen.quantized`): an operand that is
read once, before the loops of the kernel, and the same for all elements.

Expressions are part of kernel names, in postfix notation (`name_of`): the example is ``add_relu``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Union, get_args

from gossamer.codegen import complex_numbers, elements, fixed_point, floats, ir, quantized
from gossamer.codegen.elements import ELEMENTS, Kind
from gossamer.codegen.ir import Value
from gossamer.errors import CompileError

# Read when this module is imported, so not the | of annotations.
Expression = Union[int, tuple[Any, ...]]  # noqa: UP007
"""An operand number, or ``(function, *arguments)``."""

IDENTITY: Expression = 0
"""The epilogue that changes nothing."""

Emit = Callable[..., Value]
"""Instructions of a function: from an `ir.Function` and the arguments to the result."""


class Function(NamedTuple):
    """A function of expressions."""

    arity: int
    emit: Mapping[Kind, Emit]
    """By the kind of the arguments (of all but the first, if ``chooses``)."""
    result: str = ""
    """The element type of the result, if it is not that of the arguments."""
    chooses: bool = False
    """The first argument is a bool."""
    reads: quantized.Read | None = None
    """How the last argument is read, if that is no tensor but parameters: an operand, and nothing else."""
    of_parameters: bool = False
    """The result has the type of the parameters."""
    bits: int = 0
    """Of the arguments; 0: any."""


def _of_floats(arity: int, emit: Emit) -> Function:
    return Function(arity, {"float": emit})


def _arithmetic(operation: str) -> dict[Kind, Emit]:
    """``add``, ``sub`` or ``mul`` of numbers; integers wrap."""

    def floating(f: ir.Function, x: Value, y: Value) -> Value:
        return f.binary(operation, x, y)

    def wrapping(f: ir.Function, x: Value, y: Value) -> Value:
        return f.wrapping(operation, x, y)

    return {"float": floating, "double": floating, "signed": wrapping, "unsigned": wrapping}


def _comparison(condition: str) -> Function:
    """``lt``, ``le``, ``gt``, ``ge``; of NaN, none holds."""

    def comparison(prefix: str) -> Emit:
        return lambda f, x, y: f.compare(prefix + condition, x, y)

    return Function(
        2,
        {"float": comparison("o"), "double": comparison("o"), "signed": comparison("s"), "unsigned": comparison("u")},
        "bool",
    )


def _equality(condition: str, of_floats: str) -> Function:
    def integers(f: ir.Function, x: Value, y: Value) -> Value:
        return f.compare(condition, x, y)

    def floating(f: ir.Function, x: Value, y: Value) -> Value:
        return f.compare(of_floats, x, y)

    return Function(
        2,
        {"float": floating, "double": floating, "signed": integers, "unsigned": integers, "bool": integers},
        "bool",
    )


def _extreme(condition: str) -> Function:
    """x if it is on that side of y, else y: so y where either is NaN."""

    def extreme(prefix: str) -> Emit:
        return lambda f, x, y: f.select(f.compare(prefix + condition, x, y), x, y)

    return Function(
        2, {"float": extreme("o"), "double": extreme("o"), "signed": extreme("s"), "unsigned": extreme("u")}
    )


def _clamp(low: int, high: int | None = None) -> Function:
    def floating(f: ir.Function, x: Value) -> Value:
        x = f.at_least(x, low)
        return x if high is None else f.at_most(x, high)

    def signed(f: ir.Function, x: Value) -> Value:
        x = f.select(f.compare("slt", x, low), f.constant(x.type, low), x)
        return x if high is None else f.select(f.compare("sgt", x, high), f.constant(x.type, high), x)

    return Function(1, {"float": floating, "signed": signed})


def _bitwise(operation: str) -> Function:
    def emit(f: ir.Function, x: Value, y: Value) -> Value:
        return f.binary(operation, x, y)

    return Function(2, {"signed": emit, "unsigned": emit, "bool": emit})


def _shift_right(operation: str) -> Emit:
    """By at least 0 and at most all bits but one."""

    def emit(f: ir.Function, x: Value, y: Value) -> Value:
        most = ir.BYTES[x.type.element] * 8 - 1
        if operation == "ashr":
            y = f.select(f.compare("slt", y, 0), f.constant(y.type, 0), y)
        y = f.select(f.compare("ugt", y, most), f.constant(y.type, most), y)
        return f.wrapping(operation, x, y)

    return emit


def _shift_left(f: ir.Function, x: Value, y: Value) -> Value:
    """In at least 32 bits, by the low bits of y: what C++ on x86 makes of it."""
    type, wide = x.type, x.type.with_element("i32")
    if ir.BYTES[type.element] >= 4:
        return f.wrapping("shl", x, y & (8 * ir.BYTES[type.element] - 1))
    x, y = (f.emit(wide, f"sext {value} to {wide}") for value in (x, y))
    return f.emit(type, f"trunc {f.wrapping('shl', x, y & 31)} to {type}")


def _negated(f: ir.Function, x: Value) -> Value:
    return f.wrapping("sub", f.constant(x.type, 0), x)


def _sign(f: ir.Function, x: Value) -> Value:
    one, zero = f.constant(x.type, 1.0), f.constant(x.type, 0.0)
    positive = f.select(f.compare("ogt", x, 0.0), one, x * zero)  # NaN stays
    return f.select(f.compare("olt", x, 0.0), -one, positive)


def _sign_of_integer(f: ir.Function, x: Value) -> Value:
    positive = f.select(f.compare("sgt", x, 0), f.constant(x.type, 1), f.constant(x.type, 0))
    return f.select(f.compare("slt", x, 0), f.constant(x.type, -1), positive)


def _quotient(f: ir.Function, x: Value, y: Value) -> Value:
    """Truncated; the least integer over -1 wraps, over 0 is anything. CPUs trap in both cases."""
    minus_one = f.compare("eq", y, -1)
    divisor = f.select(minus_one | f.compare("eq", y, 0), f.constant(y.type, 1), y)
    size = ir.BYTES[x.type.element]
    if size == 8:
        quotient = f.wrapping("sdiv", x, divisor)
    else:  # one by one; of so few bits, a float is as near to a whole number as the quotient is
        wide = x.type.with_element("double" if size == 4 else "float")
        dividend, by = (f.emit(wide, f"sitofp {value} to {wide}") for value in (x, divisor))
        quotient = f.emit(x.type, f"fptosi {dividend / by} to {x.type}")
    return f.select(minus_one, _negated(f, x), quotient)


def _divide(f: ir.Function, x: Value, y: Value) -> Value:
    """Truncated; the least integer over -1 is the greatest."""
    least = -(1 << (ir.BYTES[x.type.element] * 8 - 1))
    overflows = f.compare("eq", y, -1) & f.compare("eq", x, least)
    return f.select(overflows, f.constant(x.type, -least - 1), _quotient(f, x, y))


def _floor_divide(f: ir.Function, x: Value, y: Value) -> Value:
    quotient = _quotient(f, x, y)
    rest = f.wrapping("sub", x, f.wrapping("mul", quotient, y))
    below = f.compare("ne", rest, 0) & (f.compare("slt", rest, 0) ^ f.compare("slt", y, 0))
    return f.select(below, f.wrapping("sub", quotient, 1), quotient)


def _floor_modulo(f: ir.Function, x: Value, y: Value) -> Value:
    return f.wrapping("sub", x, f.wrapping("mul", _floor_divide(f, x, y), y))


def _divide_unsigned(operation: str) -> Emit:
    def emit(f: ir.Function, x: Value, y: Value) -> Value:
        return f.wrapping(operation, x, f.select(f.compare("eq", y, 0), f.constant(y.type, 1), y))

    return emit


def _hard_swish(f: ir.Function, x: Value) -> Value:
    """Rounded as XNNPACK's (``xnn_f32_vhswish_ukernel``)."""
    factor = f.fma(x, f.constant(x.type, 1.0 / 6.0), f.constant(x.type, 0.5))
    return x * f.at_most(f.at_least(factor, 0.0), 1.0)


def _elu(f: ir.Function, x: Value) -> Value:
    return f.select(f.compare("olt", x, 0.0), floats.exp_minus_1(f, f.at_most(x, 0.0)), x)


def _gelu_tanh(f: ir.Function, x: Value) -> Value:
    cubic = x * x * x * 0.044715
    return (x * 0.5) * (floats.tanh(f, (x + cubic) * math.sqrt(2 / math.pi)) + 1.0)


def _conversions(target: str) -> dict[Kind, Emit]:
    """From any element type: all of a kind and size convert alike."""

    def emit(kind: Kind) -> Emit:
        def convert(f: ir.Function, x: Value) -> Value:
            source = next(e.computed for e in ELEMENTS.values() if (e.kind, e.register) == (kind, x.type.element))
            return elements.convert(x, source, target)

        return convert

    return {kind: emit(kind) for kind in get_args(Kind)}


def _quantize(target: str) -> Function:
    """QUANTIZE: x / scale, rounded with halves away from 0, plus a zero point, saturated; NaN is the least integer."""
    bits = ELEMENTS[target].bits
    low = -(2 ** (bits - 1)) if ELEMENTS[target].kind == "signed" else 0

    def emit(f: ir.Function, x: Value, scale: Value, zero_point: Value) -> Value:
        level = f.intrinsic("llvm.round", x / scale)
        # Bounds that make the sum fit. Integers of 16 bits and their sums are floats.
        level = f.maximum(level, low - zero_point)
        level = f.minimum(level, low + 2**bits - 1 - zero_point)
        return elements.convert(level + zero_point, "f32", target)

    return Function(3, {"float": emit}, target)


def _select(f: ir.Function, condition: Value, x: Value, y: Value) -> Value:
    return f.select(condition, x, y)


FUNCTIONS: dict[str, Function] = {
    # Of numbers
    "add": Function(2, _arithmetic("add")),
    "sub": Function(2, _arithmetic("sub")),
    "mul": Function(2, {**_arithmetic("mul"), "complex": complex_numbers.multiply}),
    "div": Function(
        2,
        {
            **dict.fromkeys(("float", "double"), lambda f, x, y: x / y),
            "signed": _divide,
            "unsigned": _divide_unsigned("udiv"),
        },
    ),
    "floordiv": Function(
        2, {"float": floats.floor_divide, "signed": _floor_divide, "unsigned": _divide_unsigned("udiv")}
    ),
    "floormod": Function(
        2, {"float": floats.floor_modulo, "signed": _floor_modulo, "unsigned": _divide_unsigned("urem")}
    ),
    "max": _extreme("gt"),
    "min": _extreme("lt"),
    "abs": Function(
        1,
        {
            **dict.fromkeys(("float", "double"), lambda f, x: f.intrinsic("llvm.fabs", x)),
            "signed": lambda f, x: f.select(f.compare("slt", x, 0), _negated(f, x), x),
        },
    ),
    "neg": Function(1, {"float": lambda f, x: -x, "signed": _negated}),
    "sign": Function(1, {"float": _sign, "double": _sign, "signed": _sign_of_integer}),
    "square": Function(1, {kind: (lambda f, x, e=e: e(f, x, x)) for kind, e in _arithmetic("mul").items()}),
    "sqrdiff": Function(
        2,
        {
            "float": lambda f, x, y: (x - y) * (x - y),
            "signed": lambda f, x, y: f.wrapping("mul", d := f.wrapping("sub", x, y), d),
        },
    ),
    "relu": _clamp(0),
    "relu01": _clamp(0, 1),
    "relu6": _clamp(0, 6),
    "relun1": _clamp(-1, 1),
    # Of float32
    "atan2": _of_floats(2, floats.arctan2),
    "ceil": _of_floats(1, lambda f, x: f.intrinsic("llvm.ceil", x)),
    "cos": _of_floats(1, floats.cos),
    "elu": _of_floats(1, _elu),
    "exp": Function(1, {"float": floats.exp, "double": floats.exp_of_double}),
    "finite": _of_floats(1, lambda f, x: f.at_most(f.at_least(x, -floats.GREATEST), floats.GREATEST)),
    "floor": _of_floats(1, lambda f, x: f.intrinsic("llvm.floor", x)),
    "fma": _of_floats(3, lambda f, x, y, z: f.fma(x, y, z)),
    "gelu": _of_floats(1, floats.gelu),
    "gelutanh": _of_floats(1, _gelu_tanh),
    "hardswish": _of_floats(1, _hard_swish),
    "log": _of_floats(1, floats.log),
    "logistic": _of_floats(1, floats.logistic),
    "pow": _of_floats(2, floats.power),
    "prelu": _of_floats(2, lambda f, x, y: f.select(f.compare("olt", x, 0.0), x * y, x)),
    "round": _of_floats(1, lambda f, x: f.intrinsic("llvm.roundeven", x)),
    "roundaway": _of_floats(1, lambda f, x: f.intrinsic("llvm.round", x)),
    "rsqrt": _of_floats(1, floats.rsqrt),
    "sin": _of_floats(1, floats.sin),
    "sqrt": Function(1, dict.fromkeys(("float", "double"), lambda f, x: f.intrinsic("llvm.sqrt", x))),
    "tanh": _of_floats(1, floats.tanh),
    **{f"quantize{target}": _quantize(target) for target in ("i8", "u8", "i16")},
    # Comparisons, logic, bits
    "less": _comparison("lt"),
    "lessequal": _comparison("le"),
    "greater": _comparison("gt"),
    "greaterequal": _comparison("ge"),
    "equal": _equality("eq", "oeq"),
    "notequal": _equality("ne", "une"),
    "and": _bitwise("and"),
    "or": _bitwise("or"),
    "xor": _bitwise("xor"),
    "not": Function(1, {"bool": lambda f, x: x ^ 1}),
    "shiftleft": Function(2, {"signed": _shift_left}),
    "shiftright": Function(2, {"signed": _shift_right("ashr"), "unsigned": _shift_right("lshr")}),
    "select": Function(3, dict.fromkeys(get_args(Kind), _select), chooses=True),
    # Of quantized bytes, with parameters
    "qadd": Function(3, quantized.by_sign(quantized.add), reads=quantized.read_sum, bits=8),
    "qmul": Function(3, quantized.by_sign(quantized.multiply), reads=quantized.read_product, bits=8),
    "lookup": Function(
        2,
        dict.fromkeys(("signed", "unsigned"), quantized.lookup),
        reads=quantized.read_table,
        of_parameters=True,
        bits=8,
    ),
    "lookuprow": Function(
        3,
        dict.fromkeys(("signed", "unsigned"), quantized.lookup_in_row),
        reads=fixed_point.read_table,
        of_parameters=True,
        bits=8,
    ),
    # Of fixed-point integers
    "requant": Function(3, {"signed": fixed_point.requantized}, bits=32),
    "requantup": Function(3, {"signed": fixed_point.requantized_up}, bits=32),
    "requant64": Function(3, {"signed": fixed_point.requantized_64}, "i32", bits=64),
    "invsqrt": Function(1, {"signed": lambda f, x: fixed_point.inverse_square_root(f, x)[0]}, bits=32),
    "invsqrtexponent": Function(1, {"signed": lambda f, x: fixed_point.inverse_square_root(f, x)[1]}, bits=32),
    "roundi32": Function(1, dict.fromkeys(("float", "double"), fixed_point.rounded("llvm.roundeven")), "i32"),
    "roundawayi32": Function(1, dict.fromkeys(("float", "double"), fixed_point.rounded("llvm.round")), "i32"),
    "roundshift": Function(2, {"signed": fixed_point.rounding_shift}, bits=32),
    "scalein": Function(2, {"signed": fixed_point.scale_in}, reads=quantized.words(4), bits=32),
    "scaleout": Function(2, {"signed": fixed_point.scale_out}, reads=quantized.words(6), bits=32),
    "limit": Function(2, {"signed": fixed_point.limit}, reads=quantized.words(3), bits=32),
    "quotient": Function(3, {"signed": fixed_point.quotient}, reads=quantized.words(6), bits=32),
    "product16": Function(2, {"signed": fixed_point.product_16}, bits=32),
    "saturate16": Function(1, {"signed": fixed_point.saturate_16}, bits=32),
    "interpolate": Function(2, {"signed": fixed_point.interpolate}, reads=fixed_point.read_table, bits=32),
    "sigmoid16": Function(2, {"signed": fixed_point.sigmoid_16}, reads=fixed_point.read_sigmoid, bits=32),
    "tanh16": Function(2, {"signed": fixed_point.tanh_16}, reads=fixed_point.read_sigmoid, bits=32),
    "fixedlogistic": Function(1, {"signed": fixed_point.logistic_16}, bits=32),
    **{f"fixedtanh{bits}": Function(1, {"signed": fixed_point.tanh_of(bits)}, bits=32) for bits in range(7)},
    # Other types
    **{f"to{name}": Function(1, _conversions(name), name) for name, e in ELEMENTS.items() if e.computed == name},
}
"""Every function, by the name that expressions and kernels call it."""

ALIASES: dict[str, Expression] = {
    "silu": ("mul", 0, ("logistic", 0)),
}
"""Short names of well-known expressions of one operand."""


COMMUTATIVE = frozenset({"add", "mul"})
"""Functions whose arguments may change places without changing a bit."""


@cache
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


@cache
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


def type_of(expression: Expression, types: Sequence[str]) -> str:
    """The element type of the result, given those of the operands; of float16, float32. Raises `CompileError`."""
    return _type_of(expression, tuple(types))


def apply(expression: Expression, f: ir.Function, operands: Sequence[Any], types: Sequence[str] | None = None) -> Value:
    """Emit the expression of values of element types (default: all of float32).

    What occurs in it more than once is computed once. The result has the type that `type_of` says. For parameters there
    is what `parameters` has read.
    """
    count = operand_count(expression)
    if count > len(operands):
        raise CompileError(f"{expression} needs {count} operands, and here there are {len(operands)}.")
    of_operands = ("f32",) * len(operands) if types is None else tuple(types)
    known: dict[Expression, Value] = {}

    def value(part: Expression) -> Any:
        if isinstance(part, int):
            return operands[part]
        if part not in known:
            name, *arguments = part
            function = FUNCTIONS[name]
            kind = ELEMENTS[_argument_type(part, of_operands)].kind
            known[part] = function.emit[kind](f, *(value(argument) for argument in arguments))
        return known[part]

    result: Value = value(expression)
    return result


def calls(expression: Expression) -> Iterator[tuple[Any, ...]]:
    """Every function that is applied in it, with its arguments."""
    if not isinstance(expression, int):
        yield expression
        for argument in expression[1:]:
            yield from calls(argument)


@cache
def parameters_of(expression: Expression) -> Mapping[int, quantized.Read]:
    """The operands that are parameters, and how they are read.

    Raises `CompileError` for one that is something else too.
    """
    found: dict[int, quantized.Read] = {}
    if isinstance(expression, int):
        return found
    elements: set[int] = set()
    for function, *arguments in calls(expression):
        reads = FUNCTIONS[function].reads
        if reads is not None:
            number = arguments.pop()
            if not isinstance(number, int) or found.setdefault(number, reads) is not reads:
                raise CompileError(f"The parameters of {function} must be an operand for it alone, in {expression}.")
        elements.update(argument for argument in arguments if isinstance(argument, int))
    if found.keys() & elements:
        raise CompileError(f"Operands are either tensors or parameters, in {expression}.")
    return found


def parameters(expression: Expression, f: ir.Function, pointers: Mapping[int, Value]) -> dict[int, quantized.Words]:
    """Read the parameters, given where they lie: what takes the place of these operands in `apply`."""
    return {number: read(f, pointers[number]) for number, read in parameters_of(expression).items()}


def substitute(expression: Expression, operands: Mapping[int, Expression]) -> Expression:
    """The expression with other expressions in the place of operands; operands that are not named stay."""
    if isinstance(expression, int):
        return operands.get(expression, expression)
    function, *arguments = expression
    return (function, *(substitute(argument, operands) for argument in arguments))


@cache
def canonical(expression: Expression) -> Expression:
    """The same with the arguments of sums and products in order, so that there is one kernel for both; and what is so
    and so again is so."""
    if isinstance(expression, int):
        return expression
    function, *arguments = expression
    ordered = [canonical(argument) for argument in arguments]
    if function == "and" and ordered[0] == ordered[1]:
        return ordered[0]
    if function in COMMUTATIVE:
        ordered.sort(key=lambda argument: (_leftmost(argument), not isinstance(argument, int)))
    return (function, *ordered)


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


@cache
def _type_of(expression: Expression, types: tuple[str, ...]) -> str:
    operand_count(expression)
    if isinstance(expression, int):
        return elements.element(types[expression]).computed
    of_arguments = _argument_type(expression, types)
    function = FUNCTIONS[expression[0]]
    if function.of_parameters:
        return types[expression[-1]]
    return function.result or of_arguments


def _argument_type(call: tuple[Any, ...], types: tuple[str, ...]) -> str:
    """The type of a function's arguments; of those between which it chooses, if it does."""
    name, *arguments = call
    function = FUNCTIONS[name]
    if function.reads is not None:
        arguments = arguments[:-1]
    of_arguments = [_type_of(argument, types) for argument in arguments]
    if function.chooses and of_arguments.pop(0) != "bool":
        raise CompileError(f"The first argument of {name} must be a bool, in {call} of {', '.join(types)}.")
    if len(set(of_arguments)) != 1:
        raise CompileError(f"{name} takes arguments of one type, got {' and '.join(of_arguments)}.")
    if ELEMENTS[of_arguments[0]].kind not in function.emit or function.bits not in (0, ELEMENTS[of_arguments[0]].bits):
        raise CompileError(f"There is no {name} of {of_arguments[0]}.")
    return of_arguments[0]
