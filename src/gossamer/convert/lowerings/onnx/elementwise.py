"""Functions of each element: arithmetic, comparisons, activations, bits and types. Operands broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.convert.blocks import special
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import broadcast_together
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.graph import Graph, Refused, Value
from gossamer.convert.lowerings.onnx import BITS, CARRIERS, UNSIGNED, Call, lowers
from gossamer.convert.messages.onnx import DataType
from gossamer.schema.enums import TensorType as T

UNARY = {
    "Abs": "ABS",
    "Ceil": "CEIL",
    "Cos": "COS",
    "Exp": "EXP",
    "Floor": "FLOOR",
    "HardSwish": "HARD_SWISH",
    "Log": "LOG",
    "Neg": "NEG",
    "Not": "LOGICAL_NOT",
    "Round": "ROUND",
    "Sigmoid": "LOGISTIC",
    "Sign": "SIGN",
    "Sin": "SIN",
    "Sqrt": "SQRT",
    "Tanh": "TANH",
}

BINARY = {
    "Add": "ADD",
    "And": "LOGICAL_AND",
    "Div": "DIV",
    "Mul": "MUL",
    "Or": "LOGICAL_OR",
    "Sub": "SUB",
    "Xor": "NOT_EQUAL",
}

COMPARED = {
    "Equal": "EQUAL",
    "Greater": "GREATER",
    "GreaterOrEqual": "GREATER_EQUAL",
    "Less": "LESS",
    "LessOrEqual": "LESS_EQUAL",
}

FUNCTIONS: dict[str, Callable[[Graph, Value], Value]] = {
    "Acos": special.acos,
    "Acosh": special.acosh,
    "Asin": special.asin,
    "Asinh": special.asinh,
    "Atan": special.atan,
    "Atanh": special.atanh,
    "Cosh": special.cosh,
    "Erf": special.erf,
    "Selu": special.selu,
    "Sinh": special.sinh,
    "Softplus": special.softplus,
    "Softsign": special.softsign,
    "Tan": special.tan,
}

VARIADIC = {"Max": "MAXIMUM", "Min": "MINIMUM", "Sum": "ADD", "Mean": "ADD"}


@lowers(*UNARY)
def unary(call: Call) -> Value:
    x = call.value(0)
    if call.op == "Abs" and call.source_type(0) in UNSIGNED:
        return x
    return widened(call.graph, UNARY[call.op], x)


@lowers(*BINARY)
def binary(call: Call) -> Value:
    x, y = _old_broadcast(call)
    return widened(call.graph, BINARY[call.op], x, y)


@lowers(*COMPARED)
def compared(call: Call) -> Value:
    x, y = _old_broadcast(call)
    if call.source_type(0) == DataType.UINT64 and call.op != "Equal":  # the same order as signed numbers
        lowest = call.scalar(np.iinfo(np.int64).min, x)
        x, y = call.add("ADD", x, lowest), call.add("ADD", y, lowest)
    return widened(call.graph, COMPARED[call.op], x, y)


def _old_broadcast(call: Call) -> tuple[Value, Value]:
    """Operands; before version 7 the second one lies along the axes of the first from ``axis`` on."""
    x, y = call.value(0), call.value(1)
    axis = call.int("axis", -1)
    if call.version < 7 and call.flag("broadcast") and axis >= 0 and y.rank + axis < x.rank:
        y = reshape(call.graph, y, [*[y.size(n) for n in range(y.rank)], *[1] * (x.rank - axis - y.rank)])
    return x, y


@lowers(*FUNCTIONS)
def function(call: Call) -> Value:
    if call.op == "Selu" and (call.has("alpha") or call.has("gamma")):
        return selu(call)
    return FUNCTIONS[call.op](call.graph, call.value(0))


@lowers(*VARIADIC)
def variadic(call: Call) -> Value:
    """Of any number of operands."""
    first, *others = call.values()
    for other in others:
        first = widened(call.graph, VARIADIC[call.op], first, other)
    if call.op == "Mean" and others:
        first = call.add("MUL", first, 1 / len(call.inputs))
    return first


@lowers("Identity")
def identity(call: Call) -> Any:
    return call.inputs[0]


@lowers("Reciprocal")
def reciprocal(call: Call) -> Value:
    return call.add("DIV", 1.0, call.value(0))


@lowers("Pow")
def pow(call: Call) -> Value:
    """The result has the type of the base."""
    x, y = call.value(0), call.value(1)
    if x.type == T.FLOAT32:
        known = None if y.data is None or y.data.size != 1 else float(y.data.reshape(()))
        if y.rank == 0 and known in (2.0, 0.5):
            return call.add("SQUARE" if known == 2 else "SQRT", x)
        return call.add("POW", x, cast(call.graph, y, T.FLOAT32))
    if y.type == T.FLOAT32:
        return cast(call.graph, call.add("POW", cast(call.graph, x, T.FLOAT32), y), x.type)
    result = call.add("POW", cast(call.graph, x, T.INT32), cast(call.graph, y, T.INT32))
    return cast(call.graph, result, x.type)


@lowers("Mod")
def mod(call: Call) -> Value:
    """The remainder with the sign of the divisor; with ``fmod`` that of the dividend."""
    graph, x, y = call.graph, call.value(0), call.value(1)
    if not call.flag("fmod"):
        return widened(graph, "FLOOR_MOD", x, y)
    sizes = [widened(graph, "MAXIMUM", one, widened(graph, "NEG", one)) for one in (x, y)]
    rest = widened(graph, "FLOOR_MOD", *sizes)
    negative = widened(graph, "LESS", x, call.scalar(0, x))
    return widened(graph, "SELECT_V2", negative, widened(graph, "NEG", rest), rest)


@lowers("Where")
def where(call: Call) -> Value:
    condition, x, y = call.value(0), call.value(1), call.value(2)
    if x.type == T.STRING:
        known = [one.data for one in (condition, x, y) if one.data is not None]
        if len(known) < 3:
            raise Refused("chooses between strings, which TFLite cannot")
        return call.graph.constant(np.where(known[0], known[1], known[2]))
    return call.add("SELECT_V2", condition, x, y)


@lowers("Clip")
def clip(call: Call) -> Value:
    """Bounds are attributes before version 11; an operator of TFLite where there is one for them."""
    x = call.value(0)
    low, high = call.optional(1), call.optional(2)
    if call.version < 11:
        low = call.graph.constant(call.float("min")) if call.has("min") else None
        high = call.graph.constant(call.float("max")) if call.has("max") else None
    bounds = [None if one is None or one.data is None else float(one.data.reshape(())) for one in (low, high)]
    known = (low is None or bounds[0] is not None) and (high is None or bounds[1] is not None)
    named = {(0.0, None): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1", (0.0, 1.0): "RELU_0_TO_1"}
    if x.type == T.FLOAT32 and known and tuple(bounds) in named:
        return call.add(named[bounds[0], bounds[1]], x)  # type: ignore[index]
    if low is not None:
        x = widened(call.graph, "MAXIMUM", x, low)
    return x if high is None else widened(call.graph, "MINIMUM", x, high)


# -- activations


@lowers("Relu")
def relu(call: Call) -> Value:
    x = call.value(0)
    if x.type == T.FLOAT32:
        return call.add("RELU", x)
    return widened(call.graph, "MAXIMUM", x, call.scalar(0, x))


@lowers("LeakyRelu")
def leaky_relu(call: Call) -> Value:
    return call.add("LEAKY_RELU", call.value(0), alpha=call.float("alpha", 0.01))


@lowers("PRelu")
def prelu(call: Call) -> Value:
    """PRELU, whose slope must have the axes of the input but the first; else by its parts."""
    graph, x, slope = call.graph, call.value(0), call.value(1)
    if slope.rank == 1 and x.rank > 2 and call.version < 7 and slope.size(0) == x.size(1):
        slope = reshape(graph, slope, [slope.size(0), *[1] * (x.rank - 2)])
    if x.type == T.FLOAT32 and 1 < x.rank <= 4 and slope.rank < x.rank:
        return call.add("PRELU", x, reshape(graph, slope, [*[1] * (x.rank - 1 - slope.rank), *_sizes(slope)]))
    zero = call.scalar(0, x)
    negative = widened(graph, "MUL", widened(graph, "MINIMUM", x, zero), slope)
    return widened(graph, "ADD", widened(graph, "MAXIMUM", x, zero), negative)


def _sizes(x: Value) -> list[Any]:
    return [x.size(axis) for axis in range(x.rank)]


@lowers("Elu")
def elu(call: Call) -> Value:
    x, alpha = call.value(0), call.float("alpha", 1.0)
    if alpha == 1:
        return call.add("ELU", x)
    return call.add("ADD", call.add("RELU", x), _below(call, x, alpha))


@lowers("Celu")
def celu(call: Call) -> Value:
    x, alpha = call.value(0), call.float("alpha", 1.0)
    scaled = x if alpha == 1 else call.add("MUL", x, 1 / alpha)
    return call.add("ADD", call.add("RELU", x), _below(call, scaled, alpha))


def selu(call: Call) -> Value:
    """gamma * x, and gamma * alpha * (exp(x) - 1) below 0."""
    x = call.value(0)
    alpha, gamma = call.float("alpha", special.SELU_ALPHA), call.float("gamma", special.SELU_SCALE)
    return call.add("MUL", call.add("ADD", call.add("RELU", x), _below(call, x, alpha)), gamma)


def _below(call: Call, x: Value, alpha: float) -> Value:
    """alpha * (exp(x) - 1) where x is below 0, else 0."""
    return call.add("MUL", call.add("MINIMUM", call.add("ELU", x), 0.0), alpha)


@lowers("Gelu", "com.microsoft.Gelu")
def gelu(call: Call) -> Value:
    return call.add("GELU", call.value(0), approximate=call.string("approximate", "none") == "tanh")


@lowers("com.microsoft.FastGelu", "com.microsoft.BiasGelu")
def bias_gelu(call: Call) -> Value:
    x = call.value(0) if call.optional(1) is None else call.add("ADD", call.value(0), call.value(1))
    return call.add("GELU", x, approximate=call.op == "FastGelu")


@lowers("com.microsoft.QuickGelu")
def quick_gelu(call: Call) -> Value:
    return _swish(call, call.value(0), call.float("alpha", 1.702))


@lowers("HardSigmoid")
def hard_sigmoid(call: Call) -> Value:
    scaled = call.add("MUL", call.value(0), call.float("alpha", 0.2))
    return call.add("RELU_0_TO_1", call.add("ADD", scaled, call.float("beta", 0.5)))


@lowers("Mish")
def mish(call: Call) -> Value:
    x = call.value(0)
    return call.add("MUL", x, call.add("TANH", special.softplus(call.graph, x)))


@lowers("Swish")
def swish(call: Call) -> Value:
    return _swish(call, call.value(0), call.float("alpha", 1.0))


@lowers("SwiGLU")
def swiglu(call: Call) -> Value:
    return call.add("MUL", _swish(call, call.value(0), call.float("alpha", 1.0)), call.value(1))


def _swish(call: Call, x: Value, alpha: float) -> Value:
    inside = x if alpha == 1 else call.add("MUL", x, alpha)
    return call.add("MUL", x, call.add("LOGISTIC", inside))


@lowers("ThresholdedRelu")
def thresholded_relu(call: Call) -> Value:
    x = call.value(0)
    return call.add("SELECT_V2", call.add("GREATER", x, call.float("alpha", 1.0)), x, 0.0)


@lowers("Shrink")
def shrink(call: Call) -> Value:
    """x + bias below -lambd, x - bias above lambd, 0 between."""
    x, edge, bias = cast(call.graph, call.value(0), T.FLOAT32), call.float("lambd", 0.5), call.float("bias")
    high = call.add("SELECT_V2", call.add("GREATER", x, edge), call.add("SUB", x, bias), 0.0)
    result = call.add("SELECT_V2", call.add("LESS", x, -edge), call.add("ADD", x, bias), high)
    return cast(call.graph, result, call.value(0).type)


@lowers("IsNaN")
def is_nan(call: Call) -> Value:
    return call.add("NOT_EQUAL", call.value(0), call.value(0))


@lowers("IsInf")
def is_inf(call: Call) -> Value:
    x = call.value(0)
    if call.source_type(0) == DataType.BFLOAT16 and x.type != T.FLOAT32:
        x = cast(call.graph, x, T.FLOAT32)
    positive, negative = call.flag("detect_positive", True), call.flag("detect_negative", True)
    if positive and negative:
        return call.add("EQUAL", call.add("ABS", x), float("inf"))
    if not positive and not negative:
        return call.add("LESS", call.add("ABS", x), -1.0)
    return call.add("EQUAL", x, float("inf") if positive else float("-inf"))


# -- types


@lowers("Cast", "CastLike")
def cast_(call: Call) -> Value:
    """What a type cannot hold wraps around, floats lose what is behind the point."""
    target = DataType(call.int("to")) if call.op == "Cast" else call.source_type(1)
    return converted(call, call.value(0), call.source_type(0), target)


def converted(call: Call, x: Value, source: DataType, target: DataType) -> Value:
    """The elements as another type of the source. Raises `Refused` for strings."""
    if target not in CARRIERS:
        raise Refused(f"casts to {target.name}, which TFLite does not have")
    call.gives(target)
    if source == target:
        return x
    if DataType.STRING in (source, target):
        return _strings(call, x, target)
    if target in _SMALL:
        small = _SMALL[target]
        return cast(call.graph, cast(call.graph, cast(call.graph, x, T.FLOAT32), small), T.FLOAT32)
    if target == DataType.BOOL:
        return widened(call.graph, "NOT_EQUAL", x, call.scalar(0, x))
    wide = CARRIERS[target]
    result = cast(call.graph, x, wide)
    given, taken = BITS.get(source, 128), BITS.get(target, 128)
    if source == DataType.BOOL or taken == 128 or target == DataType.UINT64:
        return result
    if taken < 8 * result.dtype.itemsize and (given > taken or (target in UNSIGNED and source not in UNSIGNED)):
        return wrapped(call, result, target)
    return result


_SMALL = {DataType.FLOAT8E4M3FN: T.FLOAT8_E4M3FN, DataType.FLOAT8E5M2: T.FLOAT8_E5M2}


def wrapped(call: Call, x: Value, target: DataType) -> Value:
    """Integers modulo what a narrower type can hold, which the type of their elements could."""
    bits = BITS[target]
    count = call.scalar(0, x).dtype.type(1 << bits) if bits < 63 else None
    if count is None or 1 << bits > np.iinfo(x.dtype).max:
        return x
    half = 0 if target in UNSIGNED else 1 << bits - 1
    shifted = widened(call.graph, "ADD", x, call.scalar(half, x)) if half else x
    rest = widened(call.graph, "FLOOR_MOD", shifted, call.scalar(1 << bits, x))
    return widened(call.graph, "SUB", rest, call.scalar(half, x)) if half else rest


def _strings(call: Call, x: Value, target: DataType) -> Value:
    if x.data is None:
        raise Refused("casts strings, which TFLite cannot; do it before the model")
    if target == DataType.STRING:
        texts = np.array([str(item).encode() for item in x.data.reshape(-1).tolist()], object)
        return call.graph.constant(texts.reshape(x.shape), T.STRING)
    numbers = [float(bytes(item)) for item in x.data.reshape(-1).tolist()]
    array = np.array(numbers).reshape(x.shape)
    return call.graph.constant(array.astype(call.graph.constant(0, CARRIERS[target]).dtype), CARRIERS[target])


@lowers("BitCast")
def bit_cast(call: Call) -> Value:
    """The same bits as another type of the same width."""
    source, target = call.source_type(0), DataType(call.int("to"))
    call.gives(target)
    x = call.value(0)
    own = cast(call.graph, x, _OWN.get(source, x.type)) if source != DataType.UINT64 else x
    wanted = T.INT64 if target == DataType.UINT64 else _OWN.get(target, CARRIERS[target])
    result = own if own.type == wanted else call.add("BITCAST", own, type=wanted)
    return cast(call.graph, result, CARRIERS[target])


_OWN = {
    DataType.FLOAT16: T.FLOAT16,
    DataType.BFLOAT16: T.BFLOAT16,
    DataType.DOUBLE: T.FLOAT64,
    DataType.UINT16: T.UINT16,
    DataType.UINT32: T.UINT32,
}
"""Types that others stand for."""


# -- bits


@lowers("BitwiseNot")
def bitwise_not(call: Call) -> Value:
    """-1 - x, or the largest number - x."""
    x, source = call.value(0), call.source_type(0)
    if source in UNSIGNED and source != DataType.UINT64:
        return widened(call.graph, "SUB", call.scalar((1 << BITS[source]) - 1, x), x)
    return widened(call.graph, "SUB", call.scalar(-1, x), x)


@lowers("BitwiseAnd")
def bitwise_and(call: Call) -> Value:
    return _and(call, call.value(0), call.value(1))


@lowers("BitwiseOr")
def bitwise_or(call: Call) -> Value:
    """x + y - (x and y), which has the same bits."""
    x, y = call.value(0), call.value(1)
    both = _and(call, x, y)
    return widened(call.graph, "ADD", widened(call.graph, "SUB", x, both), y)


@lowers("BitwiseXor")
def bitwise_xor(call: Call) -> Value:
    x, y = call.value(0), call.value(1)
    if x.type != T.INT64:
        return call.add("BITWISE_XOR", x, y)
    both = _and(call, x, y)
    return call.add("ADD", call.add("SUB", x, both), call.add("SUB", y, both))


def _and(call: Call, x: Value, y: Value) -> Value:
    return call.add("STABLEHLO_AND", *broadcast_together(call.graph, [x, y]))


@lowers("BitShift")
def bit_shift(call: Call) -> Value:
    """A product with a power of two, or RIGHT_SHIFT."""
    graph, x, y, source = call.graph, call.value(0), call.value(1), call.source_type(0)
    if BITS[source] == 64:
        return _shift_64(call, x, y)
    wide = T.INT64 if source == DataType.UINT32 else T.INT32
    if call.string("direction") == "RIGHT":
        if source == DataType.UINT32:
            shifted = call.add("RIGHT_SHIFT", cast(graph, x, T.UINT32), cast(graph, y, T.UINT32))
            return cast(graph, shifted, T.INT64)
        return call.add("RIGHT_SHIFT", x, y)
    result = widened(graph, "MUL", cast(graph, x, wide), cast(graph, _power(call, y), wide))
    bits = BITS[source]
    if bits == 32 and wide == T.INT32:
        return result
    return cast(graph, wrapped(call, result, source), x.type) if bits > 8 else cast(graph, result, x.type)


def _power(call: Call, y: Value) -> Value:
    """2 ** y, int64, up to 2 ** 62."""
    powers = np.array([1 << n for n in range(63)], np.int64)
    number = call.add("MINIMUM", cast(call.graph, y, T.INT32), 62)
    return call.add("GATHER", powers, number)


def _shift_64(call: Call, x: Value, y: Value) -> Value:
    """The halves of 32 bits, each shifted, and what goes from one to the other."""
    graph = call.graph
    x, y = broadcast_together(graph, [x, y])
    left = call.string("direction") == "LEFT"
    pairs = call.add("BITCAST", x, type=T.UINT32)
    axis = x.rank
    low, high = [call.add("GATHER", call.add("BITCAST", pairs, type=T.INT32), n, axis=axis) for n in (0, 1)]
    far = call.add("GREATER_EQUAL", y, call.scalar(32, y))
    rest = cast(graph, call.add("FLOOR_MOD", y, call.scalar(32, y)), T.INT32)
    zero = call.add("SUB", low, low)
    if left:
        near, away = call.add("SELECT_V2", far, zero, low), call.add("SELECT_V2", far, low, high)
    else:
        near, away = call.add("SELECT_V2", far, zero, high), call.add("SELECT_V2", far, high, low)
    none = call.add("EQUAL", rest, 0)
    up, down = (rest, call.add("SUB", 32, rest)) if left else (call.add("SUB", 32, rest), rest)

    def raised(value: Value, by: Value) -> Value:
        powers = np.array([1 << n for n in range(32)], np.int64).astype(np.uint32).view(np.int32)
        return call.add("MUL", value, call.add("GATHER", powers, call.add("MINIMUM", by, 31)))

    def lowered(value: Value, by: Value) -> Value:
        bits = call.add("BITCAST", value, type=T.UINT32)
        shifted = call.add("RIGHT_SHIFT", bits, cast(graph, call.add("MINIMUM", by, 31), T.UINT32))
        return call.add("BITCAST", shifted, type=T.INT32)

    if left:
        over = call.add("SELECT_V2", none, zero, lowered(near, down))
        halves = [raised(near, up), call.add("BITWISE_XOR", raised(away, up), over)]
    else:
        over = call.add("SELECT_V2", none, zero, raised(near, up))
        halves = [call.add("BITWISE_XOR", lowered(away, down), over), lowered(near, down)]
    return call.add("BITCAST", call.add("PACK", *halves, values_count=2, axis=axis), type=T.INT64)
