"""Functions of expressions on fixed-point integers: TFLite's requantization in 32 and 64 bits, gemmlowp's functions of
16 bits, and functions of int16 by tables.

`gossamer.quantization` and `gossamer.ops._fixed_point` define the numbers; here they are instructions on int32 lanes.
Numbers that a model decides are parameters, or, where they differ from channel to channel, arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gossamer.codegen.ir import BYTES, I32, Function, Value, vector

Words = Sequence[Value]

_STEPS = 5
"""Of Newton's method for inverse square roots."""
_SQUARE_ROOT_OF_HALF = 1518500250


def read_table(f: Function, pointer: Value) -> Words:
    """A table stays in memory."""
    return [pointer]


# Requantization


def high_product(f: Function, x: Value, multiplier: Value) -> Value:
    """x * multiplier / 2^31, rounded to nearest, halves upwards; the multiplier is not negative.

    gemmlowp's SaturatingRoundingDoublingHighMul, which saturates nothing then.
    """
    if x.type.lanes > 1 and f.target.triple.startswith("x86_64"):
        # x86 multiplies every other lane. The products of those between are already where they belong, but for a bit.
        lanes = vector("i64", x.type.lanes // 2)
        pairs = [f.emit(lanes, f"bitcast {value} to {lanes}") for value in (x, multiplier)]
        low = f.wrapping("mul", *(f.wrapping("ashr", f.wrapping("shl", pair, 32), 32) for pair in pairs))
        high = f.wrapping("mul", *(f.wrapping("ashr", pair, 32) for pair in pairs))
        low, high = (f.wrapping("add", product, 1 << 30) for product in (low, high))
        whole = (f.wrapping("lshr", low, 31) & 0xFFFFFFFF) | (f.wrapping("shl", high, 1) & -(1 << 32))
        return f.emit(x.type, f"bitcast {whole} to {x.type}")
    wide = _extended(f, x, "i64")
    product = f.wrapping("mul", wide, _extended(f, multiplier, "i64"))
    return _shortened(f, f.wrapping("ashr", f.wrapping("add", product, 1 << 30), 31), "i32")


def rounding_shift(f: Function, x: Value, by: Value) -> Value:
    """x / 2^by rounded to nearest, halves away from zero; gemmlowp's RoundingDivideByPOT."""
    mask = f.wrapping("sub", f.wrapping("shl", f.constant(x.type, 1), by), 1)
    threshold = f.wrapping("add", f.wrapping("lshr", mask, 1), f.wrapping("lshr", x, 8 * BYTES[x.type.element] - 1))
    up = f.compare("sgt", x & mask, threshold)
    return f.wrapping("add", f.wrapping("ashr", x, by), f.emit(x.type, f"zext {up} to {x.type}"))


def rounding_shift_up(f: Function, x: Value, by: Value) -> Value:
    """The same with halves upwards; ruy's."""
    half = f.wrapping("lshr", f.wrapping("shl", f.constant(x.type, 1), by), 1)
    return f.wrapping("ashr", f.wrapping("add", x, half), by)


Shift = Callable[[Function, Value, Value], Value]


def _requantized(shift: Shift) -> Callable[[Function, Value, Value, Value], Value]:
    """x * multiplier * 2^(exponent - 31) in 32 bits, rounded twice: MultiplyByQuantizedMultiplier."""

    def emit(f: Function, x: Value, multiplier: Value, exponent: Value) -> Value:
        zero = f.constant(x.type, 0)
        positive = f.compare("sgt", exponent, 0)
        left, right = f.select(positive, exponent, zero), f.select(positive, zero, f.wrapping("sub", zero, exponent))
        return shift(f, high_product(f, f.wrapping("shl", x, left), multiplier), right)

    return emit


requantized = _requantized(rounding_shift)
requantized_up = _requantized(rounding_shift_up)


def requantized_64(f: Function, x: Value, multiplier: Value, exponent: Value) -> Value:
    """x * multiplier / 2^exponent for int64 x of 48 bits and a multiplier of 16, rounded once, halves upwards.

    TFLite's MultiplyByQuantizedMultiplier of int64.
    """
    half = f.wrapping("lshr", f.wrapping("shl", f.constant(x.type, 1), exponent), 1)
    total = f.wrapping("add", f.wrapping("mul", x, multiplier), half)
    return _shortened(f, f.wrapping("ashr", total, exponent), "i32")


def inverse_square_root(f: Function, x: Value) -> tuple[Value, Value]:
    """(multiplier, exponent) with 1 / sqrt(x) = multiplier * 2^(exponent - 31), of integers of 32 bits.

    See `gossamer.ops._fixed_point.inverse_sqrt_multiplier`.
    """
    two = f.constant(x.type, 2)
    large = f.compare("sge", x, 1 << 29)
    scaled = f.select(large, f.wrapping("ashr", x, 2), f.select(f.compare("sgt", x, two), x, two))
    f.module.declare(f"declare {x.type} @llvm.ctlz.{x.type.suffix}({x.type}, i1)")
    zeros = f.emit(x.type, f"call {x.type} @llvm.ctlz.{x.type.suffix}({scaled}, i1 true)")
    pairs = f.wrapping("sub", f.wrapping("lshr", f.wrapping("sub", zeros, 1), 1), 1)
    shift = f.wrapping("sub", f.select(large, f.constant(x.type, 12), 11), pairs)
    number = f.wrapping("lshr", f.wrapping("shl", scaled, f.wrapping("shl", pairs, 1)), 1)
    half = rounding_shift(f, number, f.constant(x.type, 1))
    guess = f.constant(x.type, 1 << 28)
    for _ in range(_STEPS):
        cube = _saturated_left(f, high_product(f, high_product(f, guess, guess), guess), 6)
        more = high_product(f, f.constant(x.type, 3 << 27), guess)
        guess = _saturated_left(f, f.wrapping("sub", more, high_product(f, half, cube)), 3)
    guess = high_product(f, guess, f.constant(x.type, _SQUARE_ROOT_OF_HALF))
    guess = f.wrapping("shl", guess, positive(f, f.wrapping("sub", f.constant(x.type, 0), shift)))
    exponent = f.wrapping("sub", f.constant(x.type, 0), positive(f, shift))
    at_most_1 = f.compare("sle", x, 1)
    return f.select(at_most_1, f.constant(x.type, (1 << 31) - 1), guess), f.select(
        at_most_1, f.constant(x.type, 0), exponent
    )


def quotient(f: Function, x: Value, y: Value, words: Words) -> Value:
    """x / y of quantized integers, by the reciprocal of y; words zero point of x, multiplier, exponent, zero point,
    low, high. y is not 0.

    See `gossamer.ops._fixed_point.quotients`.
    """
    zero, multiplier, exponent, *bounds = _splat(f, x, words)
    x = f.wrapping("sub", x, zero)
    nothing = f.constant(x.type, 0)
    x, y = (f.select(f.compare("slt", y, 0), f.wrapping("sub", nothing, value), value) for value in (x, y))
    leading, headroom = _leading_zeros(f, y), _leading_zeros(f, f.select(f.compare("slt", x, 0), x ^ -1, x))
    headroom = f.wrapping("sub", headroom, 1)
    # Newton's method for 2 / (1 + fraction), with two integer bits.
    fraction = f.wrapping("shl", y, leading & 31) & 0x7FFFFFFF
    half = f.wrapping("lshr", f.wrapping("add", fraction, -(1 << 31)), 1)
    guess = f.wrapping("add", high_product(f, f.constant(x.type, -1010580540), half), 1515870810)
    for _ in range(3):
        error = f.wrapping("sub", f.constant(x.type, 1 << 29), high_product(f, half, guess))
        guess = f.wrapping("add", guess, _saturated_left(f, high_product(f, error, guess), 2))
    product = high_product(f, f.wrapping("shl", x, headroom), _saturated_left(f, guess, 1))
    product = high_product(f, product, multiplier)
    by = f.wrapping("sub", f.wrapping("sub", f.wrapping("add", headroom, 31), leading), exponent)
    # What C++ leaves undefined, and what comes of it.
    least = f.wrapping("ashr", product, by & 31)
    beyond = f.wrapping("add", least, f.emit(x.type, f"zext {f.compare('sge', product, 0)} to {x.type}"))
    result = f.select(f.compare("ult", by, 32), rounding_shift(f, product, by & 31), beyond)
    zero, low, high = bounds
    return clamped(f, f.intrinsic("llvm.sadd.sat", result, zero), low, high)


def _leading_zeros(f: Function, x: Value) -> Value:
    f.module.declare(f"declare {x.type} @llvm.ctlz.{x.type.suffix}({x.type}, i1)")
    return f.emit(x.type, f"call {x.type} @llvm.ctlz.{x.type.suffix}({x}, i1 false)")


def positive(f: Function, x: Value) -> Value:
    """x, or 0 where it is less."""
    return f.select(f.compare("sgt", x, 0), x, f.constant(x.type, 0))


def _saturated_left(f: Function, x: Value, by: int) -> Value:
    """x * 2^by, saturated."""
    return f.intrinsic("llvm.sshl.sat", x, f.constant(x.type, by))


def rounded(rounding: str) -> Callable[[Function, Value], Value]:
    """Floats to int32 by a rounding intrinsic; what does not fit, and NaN, is the least, as x86 converts."""

    def emit(f: Function, x: Value) -> Value:
        if rounding == "llvm.roundeven" and x.type.element == "float" and f.target.triple.startswith("x86_64"):
            return _nearest(f, x)
        whole = f.intrinsic(rounding, x)
        fits = f.compare("olt", f.intrinsic("llvm.fabs", whole), 2.0**31)
        inside = f.select(fits, whole, -(2.0**31))
        type = x.type.with_element("i32")
        return f.emit(type, f"fptosi {inside} to {type}")

    return emit


def _nearest(f: Function, x: Value) -> Value:
    """The one instruction that does it."""
    type = x.type.with_element("i32")
    name = f"llvm.lrint.{type.suffix}.{x.type.suffix}"
    f.module.declare(f"declare {type} @{name}({x.type})")
    return f.emit(type, f"call {type} @{name}({x})")


def scale_in(f: Function, x: Value, words: Words) -> Value:
    """(x - zero point) 2^left * multiplier / 2^(31 + right), rounded twice: an operand on a common scale.

    MultiplyByQuantizedMultiplierSmallerThanOneExp; words zero point, left, multiplier, right.
    """
    zero, left, multiplier, right = _splat(f, x, words)
    shifted = f.wrapping("shl", f.wrapping("sub", x, zero), left)
    return rounding_shift(f, high_product(f, shifted, multiplier), right)


def scale_out(f: Function, x: Value, words: Words) -> Value:
    """x 2^left * multiplier / 2^(31 + right), rounded twice, plus a zero point, clamped.

    MultiplyByQuantizedMultiplier; words multiplier, left, right, zero point, low, high.
    """
    multiplier, left, right, *limits = _splat(f, x, words)
    product = high_product(f, f.wrapping("shl", x, left), multiplier)
    return _limited(f, rounding_shift(f, product, right), *limits)


def limit(f: Function, x: Value, words: Words) -> Value:
    """x plus a zero point, clamped; words zero point, low, high."""
    return _limited(f, x, *_splat(f, x, words))


def _limited(f: Function, x: Value, zero: Value, low: Value, high: Value) -> Value:
    return clamped(f, f.wrapping("add", x, zero), low, high)


# Tables


def interpolate(f: Function, x: Value, words: Words) -> Value:
    """int16 values through a table of TFLite's 513 entries; a word of it is an entry and the step to the next.

    LUTLookup for int16: entry + (step * (x % 128) + 64) / 128.
    """
    (table,) = words
    entry = _entries(f, table, f.wrapping("add", f.wrapping("ashr", x, 7), 256))
    base = _low_half(f, entry)
    delta = f.wrapping("mul", f.wrapping("ashr", entry, 16), x & 0x7F)
    return _low_half(f, f.wrapping("add", base, f.wrapping("ashr", f.wrapping("add", delta, 64), 7)))


def read_sigmoid(f: Function, pointer: Value) -> Words:
    """A multiplier and a right shift to steps of 1 / (3 * 4096), and a table of 255 words: each two neighbours."""
    return [*(f.load(I32, f.at(pointer, number, "i32")) for number in range(2)), f.at(pointer, 2, "i32")]


def _from_table(f: Function, x: Value, words: Words, bits: int) -> tuple[Value, Value]:
    """The scaled x, and the table at its magnitude, with ``bits`` bits more than the entries have."""
    multiplier, shift = _splat(f, x, words[:2])
    scaled = rounding_shift_up(f, f.wrapping("mul", x, multiplier), shift)
    magnitude = f.select(f.compare("slt", scaled, 0), f.wrapping("sub", f.constant(x.type, 0), scaled), scaled)
    index = f.wrapping("lshr", magnitude, bits)
    beyond = f.compare("ugt", index, 254)
    entry = _entries(f, words[2], f.select(beyond, f.constant(x.type, 254), index))
    low = entry & 0xFFFF
    slope = f.wrapping("sub", f.wrapping("lshr", entry, 16), low)
    inside = f.wrapping("mul", magnitude & ((1 << bits) - 1), slope)
    value = f.wrapping("add", f.wrapping("shl", low, bits), inside)
    greatest = 0x7FFF << 10 if bits == 9 else 0xFFFF << bits
    return scaled, f.select(beyond, f.constant(x.type, greatest), value)


def sigmoid_16(f: Function, x: Value, words: Words) -> Value:
    """`gossamer.ops._lookup_tables.table_logistic`."""
    scaled, value = _from_table(f, x, words, 9)
    upper = f.wrapping("add", value, 1 << 9)
    lower = f.wrapping("sub", f.constant(x.type, (1 << 25) + (1 << 9) - 1), value)
    return _low_half(f, f.wrapping("lshr", f.select(f.compare("sge", scaled, 0), upper, lower), 10))


def tanh_16(f: Function, x: Value, words: Words) -> Value:
    """`gossamer.ops._lookup_tables.table_tanh`."""
    scaled, value = _from_table(f, x, words, 8)
    upper = f.wrapping("add", value, (1 << 7) - (1 << 23))
    lower = f.wrapping("sub", f.constant(x.type, (1 << 23) + (1 << 7) - 1), value)
    return _low_half(f, f.wrapping("ashr", f.select(f.compare("sge", scaled, 0), upper, lower), 8))


def _entries(f: Function, table: Value, index: Value) -> Value:
    """Words of a table."""
    if index.type.lanes == 1:
        wide = f.emit(vector("i64", 1), f"sext {index} to i64")
        return f.load(I32, f.at(table, wide, "i32"))
    pointers = f.emit(index.type.with_element("ptr"), f"getelementptr i32, {table}, {index}")
    name = f"llvm.masked.gather.{index.type.suffix}.{pointers.type.suffix}"
    mask = index.type.with_element("i1")
    f.module.declare(f"declare {index.type} @{name}({pointers.type}, {mask}, {index.type})")
    address = f"{pointers.type} align 4 {pointers.text}"
    return f.emit(
        index.type, f"call {index.type} @{name}({address}, {mask} splat (i1 true), {index.type} zeroinitializer)"
    )


# gemmlowp's functions of 16 bits. A number of n integer bits stands for x / 2^(15 - n).


def product_16(f: Function, x: Value, y: Value) -> Value:
    """The product of two fixed-point numbers: rounded to nearest, halves upwards. Not both are -32768."""
    return f.wrapping("ashr", f.wrapping("add", f.wrapping("mul", x, y), 1 << 14), 15)


def logistic_16(f: Function, x: Value) -> Value:
    """Of 3 integer bits, to none."""
    magnitude = f.select(f.compare("sgt", x, 0), f.wrapping("sub", f.constant(x.type, 0), x), x)
    half = _half_reciprocal(f, _exp(f, magnitude, 3))
    positive = _shifted_left(f, half, 1)
    negative = f.wrapping("sub", f.constant(x.type, 32767), positive)
    result = f.select(f.compare("sgt", x, 0), positive, negative)
    return f.select(f.compare("eq", x, 0), f.constant(x.type, 16384), result)


def tanh_of(integer_bits: int) -> Callable[[Function, Value], Value]:
    """tanh of so many integer bits, to none."""

    def emit(f: Function, x: Value) -> Value:
        zero = f.constant(x.type, 0)
        magnitude = f.select(f.compare("sgt", x, 0), f.wrapping("sub", zero, x), x)
        half = _half_reciprocal(f, _exp(f, magnitude, integer_bits + 1))  # of exp(-2 |x|)
        positive = _shifted_left(f, f.wrapping("sub", half, 1 << 13), 2)
        result = f.select(f.compare("slt", x, 0), f.wrapping("sub", zero, positive), positive)
        return f.select(f.compare("eq", x, 0), zero, result)

    return emit


def _exp(f: Function, x: Value, integer_bits: int) -> Value:
    """exp(x) for x <= 0, to no integer bits."""
    fraction = 15 - integer_bits
    type, quarter = x.type, 1 << (fraction - 2)
    rest = f.wrapping("sub", x & (quarter - 1), quarter)
    around = f.wrapping("add", _shifted_left(f, rest, integer_bits), 1 << 12)  # a Taylor series around -1/8
    square = product_16(f, around, around)
    cube = product_16(f, square, around)
    fourth = rounding_shift(f, product_16(f, square, square), f.constant(type, 2))
    third = product_16(f, f.wrapping("add", fourth, cube), f.constant(type, _rounded(715827883)))
    tail = rounding_shift(f, f.wrapping("add", third, square), f.constant(type, 1))
    first = f.constant(type, _rounded(1895147668))
    result = f.wrapping("add", first, product_16(f, f.wrapping("add", around, tail), first))
    result = _at_most(f, result, 32767)
    quarters = f.wrapping("sub", rest, x)
    for exponent, factor in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242), -2):
        if integer_bits > exponent:
            bit = quarters & (1 << (fraction + exponent))
            taken = product_16(f, result, f.constant(type, _rounded(factor)))
            result = f.select(f.compare("ne", bit, 0), taken, result)
    if integer_bits > 5:
        result = f.select(f.compare("slt", x, -(32 << fraction)), f.constant(type, 0), result)
    return f.select(f.compare("eq", x, 0), f.constant(type, 32767), result)


def _half_reciprocal(f: Function, x: Value) -> Value:
    """2 / (1 + x) for x in [0, 1) without integer bits, by Newton's method; the result has two."""
    type = x.type
    half = f.wrapping("ashr", f.wrapping("add", x, 32768), 1)  # (x + 32767) / 2 rounded upwards
    guess = f.wrapping("add", product_16(f, half, f.constant(type, _rounded(-1010580540))), _rounded(1515870810))
    for _ in range(3):
        error = f.wrapping("sub", f.constant(type, 1 << 13), product_16(f, half, guess))
        guess = f.wrapping("add", guess, _shifted_left(f, product_16(f, guess, error), 2))
    return guess


def _rounded(value: int) -> int:
    """A constant of 32 bits in 16."""
    magnitude = (abs(value) + (1 << 15)) >> 16
    return magnitude if value >= 0 else -magnitude


def _shifted_left(f: Function, x: Value, by: int) -> Value:
    """x 2^by, saturated to 16 bits."""
    if not by:
        return x
    shifted = f.wrapping("shl", x, by)
    return _at_most(f, f.select(f.compare("slt", shifted, -32768), f.constant(x.type, -32768), shifted), 32767)


def saturate_16(f: Function, x: Value) -> Value:
    """Clamped to int16."""
    return clamped(f, x, f.constant(x.type, -32768), f.constant(x.type, 32767))


# Helpers


def _at_most(f: Function, x: Value, bound: int) -> Value:
    return f.select(f.compare("sgt", x, bound), f.constant(x.type, bound), x)


def clamped(f: Function, x: Value, low: Value, high: Value) -> Value:
    x = f.select(f.compare("slt", x, low), low, x)
    return f.select(f.compare("sgt", x, high), high, x)


def _splat(f: Function, like: Value, words: Words) -> list[Value]:
    return [f.splat(word, like.type.lanes) for word in words]


def _low_half(f: Function, x: Value) -> Value:
    """The low 16 bits, as signed."""
    return f.wrapping("ashr", f.wrapping("shl", x, 16), 16)


def _extended(f: Function, x: Value, element: str) -> Value:
    type = x.type.with_element(element)
    return x if x.type == type else f.emit(type, f"sext {x} to {type}")


def _shortened(f: Function, x: Value, element: str) -> Value:
    type = x.type.with_element(element)
    return x if x.type == type else f.emit(type, f"trunc {x} to {type}")
