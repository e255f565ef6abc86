"""Functions of float32 that are no instructions, for scalars and vectors of any length; NaN stays NaN.

Polynomials and rational functions, without branches and tables. Bounds on errors are in units of the last place.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from gossamer.codegen.ir import I64, Function, Value, vector

GREATEST = float.fromhex("0x1.FFFFFEp+127")
"""The greatest number."""

_TWO_OVER_PI = (0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041)
"""2 / pi in pieces of 24 bits."""

_HALF_PI = tuple(map(float.fromhex, ("0x1.921FB6p+0", "-0x1.778p-25", "0x1.68C234p-39")))
"""pi / 2 as the sum of floats. Products of the second with integers up to 2^12 are exact."""

_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62E430p-1"), -float.fromhex("0x1.05C610p-29")
_LN2_DOUBLE_HIGH, _LN2_DOUBLE_LOW = float.fromhex("0x1.62E42FEFA3800p-1"), float.fromhex("0x1.EF35793C76730p-45")
_LARGE = 12582912.0  # 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits


def exp(f: Function, x: Value, *, positive: bool = True) -> Value:
    """e^x within 2 units; 0 for results below 2^-126.5. ``positive``: x may be above 0."""
    # e^x = 2^n e^r, n an integer, |r| <= ln 2 / 2: twice a polynomial of r, times 2^(n - 1), which is made of bits. It
    # is 0 for n = -126, and for n = 128 the product overflows where it must.
    if positive:
        x = f.at_most(x, 89.0)
    n, r = _reduced(f, f.at_least(x, -87.5), 126.0)
    p = polynomial(f, r, [2.0 * coefficient for coefficient in (*_EXP, 1.0)])
    return p * f.bits(n << 23, "float")


def exp_of_double(f: Function, x: Value) -> Value:
    """e^x of float64 within 1 unit; 0 for results below 2^-1021."""
    # As `exp`, with a series that ends where a double does; adding 1.5 * 2^52 rounds.
    is_tiny = f.compare("olt", x, -708.0)
    x = f.at_most(f.select(is_tiny, f.constant(x.type, -708.0), x), 710.0)
    large = f.constant(x.type, 1.5 * 2.0**52)
    shifted = f.fma(x, f.constant(x.type, 1 / math.log(2)), large)
    n = shifted - large
    r = f.fma(n, f.constant(x.type, -_LN2_DOUBLE_HIGH), x)
    r = f.fma(n, f.constant(x.type, -_LN2_DOUBLE_LOW), r)
    p = polynomial(f, r, [2.0 / math.factorial(degree) for degree in range(13, -1, -1)])
    power = f.bits(f.wrapping("shl", f.wrapping("add", f.bits(shifted, "i64"), 1022), 52), "double")
    return f.select(is_tiny, f.constant(x.type, 0.0), p * power)


def exp_minus_1(f: Function, x: Value) -> Value:
    """e^x - 1 for x up to 0, within 4 units."""
    # 2^n e^r - 1 = 2^n (e^r - 1) + (2^n - 1): nothing cancels near 0, where n is 0.
    n, r = _reduced(f, f.at_least(x, -87.3), 127.0)
    coefficients = ("0x1.6B7338p-10", "0x1.12278Ep-7", "0x1.555716p-5", "0x1.5554B0p-3", "0x1.FFFFFEp-2", "0x1p+0")
    q = polynomial(f, r, [float.fromhex(coefficient) for coefficient in coefficients])  # XNNPACK's f32-velu rr2-p6
    power = f.bits(n << 23, "float")
    return f.fma(q * r, power, power - 1.0)


def logistic(f: Function, x: Value) -> Value:
    """1 / (1 + e^-x), within 5 units above -20 and 8 above -87."""
    p, power = _powers(f, f.at_most(f.at_least(x, -87.0), 87.0))
    return reciprocal(f, f.fma(p, power, f.constant(x.type, 1.0)))


def _powers(f: Function, x: Value) -> tuple[Value, Value]:
    """Two factors of e^-x, for x from -87 to 87."""
    # e^-x = e^r 2^(n / steps), n an integer: the smaller the steps, the shorter the polynomial of r. The other factor
    # is made of bits, an exponent and a fraction that is looked up. This follows products and keeps what multiplies
    # from the next ones, so that every operation counts; 16 registers hold all constants.
    steps = _STEPS[f.target.vector_bits]
    large = f.constant(x.type, _LARGE)
    shifted = f.fma(x, f.constant(x.type, -steps / math.log(2)), large)
    r = f.fma(shifted - large, f.constant(x.type, -math.log(2) / steps), -x)
    number, fraction_bits = f.bits(shifted, "i32"), 24 - steps.bit_length()
    fractions = [_bits(2.0 ** (step / steps)) - (step << fraction_bits) for step in range(steps)]
    power = f.wrapping("add", f.wrapping("shl", number, fraction_bits), _looked_up(f, fractions, number))
    return polynomial(f, r, _near_0(math.log(2) / steps / 2)), f.bits(power, "float")


_STEPS = {128: 1, 256: 8, 512: 32}
"""Powers between two of 2, by the bits of registers: one register of them, two where one instruction reads both."""


def _near_0(most: float) -> Sequence[float]:
    """Coefficients of e^r for |r| up to ``most``: a series of as many terms as it takes, of which the last is told by
    those of lower degree as well as may be (Chebyshev)."""
    if most < 0.02:
        return 0.5, 1 + most**2 / 8, 1.0
    if most < 0.05:
        return 1 / 6, 0.5 + most**2 / 24, 1.0, 1.0
    return *_EXP, 1.0


def _looked_up(f: Function, table: Sequence[int], index: Value) -> Value:
    """The words of a table by the low bits of the index: one, as many as there are in a register, or twice that."""
    if len(table) == 1:
        return f.constant(index.type, table[0])
    lanes, whole = index.type.lanes, vector("i32", f.lanes)
    registers = [
        Value(f, whole, f"<{', '.join(f'i32 {word}' for word in table[at : at + f.lanes])}>")
        for at in range(0, len(table), f.lanes)
    ]
    wide = index if lanes == f.lanes else f.widened(index, f.lanes)
    name = "llvm.x86.avx2.permd" if len(registers) == 1 else "llvm.x86.avx512.vpermi2var.d.512"
    operands = [registers[0], wide, *registers[1:]]
    f.module.declare(f"declare {whole} @{name}({', '.join([whole.text] * len(operands))})")
    found = f.emit(whole, f"call {whole} @{name}({', '.join(map(str, operands))})")
    return found if lanes == f.lanes else f.narrowed(found, lanes)


def _bits(number: float) -> int:
    """Of a float32, as an integer."""
    return int.from_bytes(struct.pack("<f", number), "little")


_EXP = [float.fromhex(c) for c in ("0x1.0F9F9Cp-7", "0x1.573A1Ap-5", "0x1.555A80p-3", "0x1.FFFDC6p-2", "0x1.FFFFF6p-1")]
"""Those of XNNPACK's f32-vscaleexpminusmax rr2-p5; 1 follows."""


def _reduced(f: Function, x: Value, bias: float) -> tuple[Value, Value]:
    """x = n ln 2 + r: n + bias in the low bits of an integer, and r."""
    large = f.constant(x.type, _LARGE + bias)
    shifted = f.fma(x, f.constant(x.type, 1 / math.log(2)), large)
    n = shifted - large
    r = f.fma(n, f.constant(x.type, -_LN2_HIGH), x)
    r = f.fma(n, f.constant(x.type, -_LN2_LOW), r)
    return f.bits(shifted, "i32"), r


def reciprocal(f: Function, x: Value) -> Value:
    """1 / x within 2 units, for normal numbers with a normal reciprocal."""
    one = f.constant(x.type, 1.0)
    if f.target.vector_bits == 512 and 1 < x.type.lanes < f.lanes:
        # Below, LLVM estimates with 14 bits in a whole register, but with 12 in a part of one: other bits.
        name = f"llvm.x86.avx512.rcp14.ps.{32 * x.type.lanes}"
        f.module.declare(f"declare {x.type} @{name}({x.type}, {x.type}, i8)")
        estimate = f.emit(x.type, f"call {x.type} @{name}({x}, {x}, i8 -1)")
        return f.fma(estimate, f.fma(-x, estimate, one), estimate)
    return f.emit(x.type, f"fdiv arcp contract ninf nnan {one}, {x.text}")


# The two rational functions were fitted with weights for the relative error (Sanathanan-Koerner and Lawson iterations),
# with bounds chosen such that rounded coefficients lose least, and checked at every float.


def tanh(f: Function, x: Value) -> Value:
    """Within 5 units; 1 above 8.93."""
    size = f.intrinsic("llvm.fabs", x)
    over = (0.01721903495490551, 26.44570541381836, 4473.568359375, 171048.28125, 1277871.25)
    under = (420.9520263671875, 33092.7578125, 597005.1875, 1277871.375)
    result = f.at_most(_odd_rational(f, f.at_most(size, 8.93266778673015), over, under), 1.0)
    return f.intrinsic("llvm.copysign", result, x)


def gelu(f: Function, x: Value) -> Value:
    """x P(X <= x) for a normal X: x / 2 + |x| erf(|x| / sqrt(2)) / 2, the last factor within 5 units; 0 below -5.48."""
    size = f.intrinsic("llvm.fabs", x)
    over = (0.019172314554452896, 5.23960018157959, 136.0169219970703, 3860.8408203125, 27722.064453125, 331501.46875)
    under = (59.77444839477539, 1541.9229736328125, 23567.884765625, 207980.53125, 830950.9375)
    half_erf = f.at_most(_odd_rational(f, f.at_most(size, 5.47825702235737), over, under), 0.5)
    return f.fma(size, half_erf, x * 0.5)


def _odd_rational(f: Function, x: Value, over: Sequence[float], under: Sequence[float]) -> Value:
    """x P(x²) / Q(x²), the highest coefficient of Q being 1."""
    square = x * x
    denominator = square + under[0]
    for coefficient in under[1:]:
        denominator = f.fma(denominator, square, f.constant(x.type, coefficient))
    return x * polynomial(f, square, over) / denominator


def rsqrt(f: Function, x: Value) -> Value:
    """1 / sqrt(x) within 1.5 units; infinite at 0, with its sign, NaN below."""
    one = f.constant(x.type, 1.0)
    if not f.target.triple.startswith("x86_64"):
        return one / f.intrinsic("llvm.sqrt", x)
    # An estimate e times a series of 1 / sqrt(1 - h), where h = 1 - x e² is small.
    estimate = _estimate_of_rsqrt(f, x)
    h = f.fma(-(x * estimate), estimate, one)
    if f.target.vector_bits == 512:
        y = f.fma(estimate, h * 0.5, estimate)
        return f.select(f.compare("uno", h, h), estimate, y)  # of 0 and inf it is exact
    y = f.fma(estimate * h, f.fma(h, f.constant(x.type, 0.375), f.constant(x.type, 0.5)), estimate)
    # The estimate takes denormals for 0.
    above = f.wrapping("sub", f.bits(x, "i32"), f.constant(x.type.with_element("i32"), 0x00800000))
    strange = f.compare("uge", above, 0x7F000000)
    return _where_any(f, strange, y, lambda y: f.select(strange, one / f.intrinsic("llvm.sqrt", x), y))


def _estimate_of_rsqrt(f: Function, x: Value) -> Value:
    """1 / sqrt(x) to 14 bits with registers of 512 bits, to 12 with smaller ones."""
    if f.target.vector_bits == 512:
        return _masked(f, "rsqrt14", x)
    name = "llvm.x86.avx.rsqrt.ps.256" if x.type.lanes == 8 else "llvm.x86.sse.rsqrt.ps"
    return _of_registers(f, name, x)


def _masked(f: Function, name: str, x: Value, *numbers: int) -> Value:
    """What an instruction of AVX-512 that takes a mask makes of x and numbers, in all lanes."""
    lanes = max(x.type.lanes, 4)
    rest = [
        *(f"i32 {number}" for number in numbers),
        f"{vector('float', lanes)} zeroinitializer",
        f"i{max(lanes, 8)} -1",
    ]
    if name.startswith("mask") and lanes == f.lanes:
        rest.append("i32 4")  # rounded as ever
    return _of_registers(f, f"llvm.x86.avx512.{name}.ps.{32 * lanes}", x, *rest)


def _of_registers(f: Function, name: str, x: Value, *more: str) -> Value:
    """What an intrinsic of a whole register, if only of four lanes, makes of x and more operands."""
    lanes = x.type.lanes
    wide = x if lanes >= 4 else f.widened(x, 4)
    types = ", ".join([str(wide.type), *(operand.rpartition(" ")[0] for operand in more)])
    f.module.declare(f"declare {wide.type} @{name}({types})")
    found = f.emit(wide.type, f"call {wide.type} @{name}({', '.join([str(wide), *more])})")
    return found if wide is x else f.narrowed(found, lanes)


def log(f: Function, x: Value) -> Value:
    """The natural logarithm within 1 unit; -inf at 0, NaN below."""
    type, integers = x.type, x.type.with_element("i32")
    strange = f.compare("uge", f.wrapping("sub", f.bits(x, "i32"), 0x00800000), 0x7F000000)
    with f.loop(0, f.emit(I64, f"zext {f.any(strange)} to i64"), carry=[x, f.constant(type, 0.0)]) as once:
        once.hand_on(_normal(f, x))
    x, more = once.results
    # Cephes: x = 2^e m with sqrt(1/2) <= m < sqrt(2); log m is a polynomial in m - 1.
    bits = f.bits(x, "i32")
    shifted = bits - f.constant(integers, 0x3F3504F3)
    exponent = f.emit(integers, f"ashr {shifted}, {f.constant(integers, 23).text}")
    e = f.emit(type, f"sitofp {exponent} to {type}") + more
    m = f.bits(bits - (exponent << 23), "float") - 1.0
    p = polynomial(f, m, (
        7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1, -0.5,
    ))  # fmt: skip
    return f.fma(e, f.constant(type, math.log(2)), f.fma(m * m, p, m))


def _normal(f: Function, x: Value) -> list[Value]:
    """y and e of |x| = 2^e y, y having a normal exponent. Where that is not so, e is log x: NaN below 0."""
    if f.target.vector_bits == 512:
        y, e = _masked(f, "mask.getmant", x, 0b0100), _masked(f, "mask.getexp", x)  # 1 <= y < 2
    else:
        denormal = f.compare("olt", x, 2.0**-126)
        y = f.select(denormal, x * 2.0**24, x)
        e = f.select(denormal, f.constant(x.type, -24.0), f.constant(x.type, 0.0))
        e = f.select(f.compare("oeq", x, 0.0), f.constant(x.type, float("-inf")), e)
        e = f.select(f.compare("ueq", x, float("inf")), x, e)
    return [y, f.select(f.compare("olt", x, 0.0), f.constant(x.type, float("nan")), e)]


def sin(f: Function, x: Value) -> Value:
    """Within 2 units for |x| < 2^40; within 2^-24 beyond, where floats are far more than a turn apart."""
    return _sine(f, x, 0.0)


def cos(f: Function, x: Value) -> Value:
    """See `sin`."""
    return _sine(f, x, 0.5)


def _sine(f: Function, x: Value, ahead: float) -> Value:
    """sin(x + ahead pi)."""
    # x + ahead pi = n pi + r. The first subtraction is exact, and so is the second where little is left of x.
    turned = f.fma(x, f.constant(x.type, 1 / math.pi), f.constant(x.type, ahead or _LARGE))
    turned = turned + _LARGE if ahead else turned
    n, r = turned - _LARGE - ahead if ahead else turned - _LARGE, x
    for part in _HALF_PI:
        r = f.fma(n, f.constant(x.type, -2 * part), r)
    far = f.compare("oge", f.intrinsic("llvm.fabs", x), 2.0**10)
    with f.loop(0, f.emit(I64, f"zext {f.any(far)} to i64"), carry=[turned, r]) as once:
        half, rest = _reduced_in_double(f, x, ahead)
        reduced = half + _LARGE, f.at_most(f.at_least(rest, -1.6), 1.6)
        once.hand_on([f.select(far, *pair) for pair in zip(reduced, once.values, strict=True)])
    turned, r = once.results
    square = r * r
    # Fitted to the relative error for |r| <= pi / 2, which is 2^-27.
    p = polynomial(f, square, (2.606081807e-6, -1.980977395e-4, 8.333069272e-3, -1.666665971e-1))
    value = f.fma(p * square, r, r)
    return f.bits(f.bits(value, "i32") ^ (f.bits(turned, "i32") << 31), "float")  # `_LARGE` is even


def _reduced_in_double(f: Function, x: Value, ahead: float) -> tuple[Value, Value]:
    """n modulo 2, and r, of x + ahead pi = n pi + r."""
    wide = widened(f, x)
    large = f.compare("oge", f.intrinsic("llvm.fabs", wide), 2.0**40)
    wide = _where_any(f, large, wide, lambda angle: f.select(large, _within_a_turn(f, angle), angle))
    n = f.intrinsic("llvm.roundeven", wide * (1 / math.pi) + ahead)
    r = f.fma(n - ahead, f.constant(wide.type, -math.pi), wide)
    r = f.fma(n - ahead, f.constant(wide.type, -1.2246467991473532e-16), r)
    return narrowed(f, n - f.intrinsic("llvm.floor", n * 0.5) * 2.0), narrowed(f, r)


def _within_a_turn(f: Function, angle: Value) -> Value:
    """The angle less whole turns."""
    # Products of 24 bits with 24 bits are exact, and so is what is left of them modulo 4.
    quarters = f.constant(angle.type, 0.0)
    for number, bits in enumerate(_TWO_OVER_PI, 1):
        product = angle * (bits * 2.0 ** (-24 * number))
        quarters = quarters + (product - f.intrinsic("llvm.floor", product * 0.25) * 4.0)
    return (quarters - f.intrinsic("llvm.floor", quarters * 0.25) * 4.0) * (math.pi / 2)


def arctan2(f: Function, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), from -pi to pi, within 4 units; signs of zero count, as in C."""
    size_x, size_y = f.intrinsic("llvm.fabs", x), f.intrinsic("llvm.fabs", y)
    least, most = f.minimum(size_x, size_y), f.maximum(size_y, size_x)
    # 0 / 0 is 0, inf / inf is 1.
    quotient = least / f.select(f.compare("oeq", most, 0.0), f.constant(x.type, 1.0), most)
    quotient = f.select(f.compare("oeq", least, float("inf")), f.constant(x.type, 1.0), quotient)
    square = quotient * quotient
    coefficients = ("0x1.7ed1ccp-9", "-0x1.0c2c08p-6", "0x1.61fdd0p-5", "-0x1.3556b2p-4", "0x1.b4e128p-4",
                    "-0x1.230ad2p-3", "0x1.9978ecp-3", "-0x1.5554dcp-2")  # fmt: skip
    p = polynomial(f, square, [float.fromhex(coefficient) for coefficient in coefficients])
    angle = f.fma(p * square, quotient, quotient)
    angle = f.select(f.compare("ogt", size_y, size_x), math.pi / 2 - angle, angle)
    negative = f.compare("slt", f.bits(x, "i32"), 0)
    angle = f.select(negative, math.pi - angle, angle)
    angle = f.intrinsic("llvm.copysign", angle, y)
    return f.select(f.compare("uno", x, y), x + y, angle)


def power(f: Function, x: Value, y: Value) -> Value:
    """x^y within 1 unit, with C's special cases: 1 where x is 1 or y is 0, NaN for a negative x and a fraction y."""
    # 2^(y log2 |x|) in double precision, which leaves room for the 7 digits before the point that y may have.
    size = widened(f, f.intrinsic("llvm.fabs", x))
    wide = size.type
    long = wide.with_element("i64")
    logarithm = _log2_of_double(f, size)
    for number in (0.0, float("inf")):
        limit = f.constant(wide, -float("inf") if number == 0.0 else number)
        logarithm = f.select(f.compare("oeq", size, number), limit, logarithm)
    wide_y = widened(f, y)
    t = f.at_most(f.at_least(wide_y * logarithm, -1000.0), 1000.0)
    large = f.constant(wide, 6755399441055744.0 + 1023)  # as `_LARGE`
    shifted = t + large
    fraction = t - (shifted - large)
    scale = f.bits(f.emit(long, f"shl {f.bits(shifted, 'i64')}, {f.constant(long, 52).text}"), "double")
    taylor = [math.log(2) ** k / math.factorial(k) for k in range(9, -1, -1)]
    result = narrowed(f, polynomial(f, fraction, taylor) * scale)

    # Even, odd or neither; all floats from 2^24 on are even.
    half = y * 0.5
    whole = f.compare("oeq", f.intrinsic("llvm.floor", y), y)
    odd = whole & f.compare("une", f.intrinsic("llvm.floor", half), half)
    negative = f.compare("slt", f.bits(x, "i32"), 0)
    result = f.select(odd & negative, -result, result)
    finite = f.compare("olt", f.intrinsic("llvm.fabs", x), float("inf"))
    invalid = f.compare("olt", x, 0.0) & finite & f.compare("une", f.intrinsic("llvm.floor", y), y)
    result = f.select(invalid, f.constant(x.type, float("nan")), result)
    one = f.constant(x.type, 1.0)
    infinite = f.compare("oeq", f.intrinsic("llvm.fabs", y), float("inf"))
    result = f.select(infinite & f.compare("oeq", x, -1.0), one, result)
    result = f.select(f.compare("uno", x, y), x + y, result)
    return f.select(f.compare("oeq", x, 1.0) | f.compare("oeq", y, 0.0), one, result)


def log_rounded_once(f: Function, x: Value) -> Value:
    """The natural logarithm of a positive normal number, from double precision."""
    return narrowed(f, _log2_of_double(f, widened(f, x)) * math.log(2))


def _log2_of_double(f: Function, x: Value) -> Value:
    """Of positive normal numbers, within some units."""
    wide = x.type
    long = wide.with_element("i64")
    bits = f.bits(x, "i64")
    shifted = f.wrapping("sub", bits, f.constant(long, 0x3FE6A09E667F3BCD))  # sqrt(1/2)
    exponent = f.emit(long, f"ashr {shifted}, {f.constant(long, 52).text}")
    m = f.bits(f.wrapping("sub", bits, f.emit(long, f"shl {exponent}, {f.constant(long, 52).text}")), "double")
    # log m = 2 artanh s.
    s = (m - 1.0) / (m + 1.0)
    series = polynomial(f, s * s, [2 / (2 * k + 1) / math.log(2) for k in range(8, -1, -1)])
    e = f.emit(wide, f"sitofp {exponent} to {wide}")
    return f.fma(series, s, e)


def floor_divide(f: Function, x: Value, y: Value) -> Value:
    """floor(x / y), divided in double precision and rounded once."""
    return narrowed(f, f.intrinsic("llvm.floor", widened(f, x) / widened(f, y)))


def floor_modulo(f: Function, x: Value, y: Value) -> Value:
    """C's remainder of x / y, plus y where it is not 0 and its sign is not that of y. Exact."""
    a, b = (f.intrinsic("llvm.fabs", widened(f, value)) for value in (x, y))

    def from_above(r: Value) -> Value:
        # Quotients reach 2^277: divided by large multiples of b, they stay below 2^48.
        for power in (240, 192, 144, 96, 48):
            r = _remainder(f, r, b * 2.0**power)
        return r

    r = _where_any(f, f.compare("oge", a, b * 2.0**48), a, from_above)
    r = _remainder(f, r, b)
    r = f.select(f.compare("oeq", b, float("inf")), a, r)
    remainder = f.intrinsic("llvm.copysign", narrowed(f, r), x)
    remainder = f.select(f.compare("oeq", f.intrinsic("llvm.fabs", x), float("inf")), x - x, remainder)
    other_side = f.compare("une", remainder, 0.0) & (f.compare("olt", y, 0.0) ^ f.compare("olt", remainder, 0.0))
    return f.select(other_side, remainder + y, remainder)


def _remainder(f: Function, a: Value, b: Value) -> Value:
    """Of doubles that were floats, from 0 on, for a / b < 2^48. The quotient is rounded, perhaps up to an integer."""
    r = f.fma(-f.intrinsic("llvm.floor", a / b), b, a)
    return f.select(f.compare("olt", r, 0.0), r + b, r)


def _where_any(f: Function, condition: Value, value: Value, rare: Callable[[Value], Value]) -> Value:
    """The value, or what ``rare`` makes of it if the condition holds in any lane."""
    with f.loop(0, f.emit(I64, f"zext {f.any(condition)} to i64"), carry=[value]) as once:
        once.hand_on([rare(once.values[0])])
    return once.results[0]


def polynomial(f: Function, x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule, the highest coefficient first."""
    p = f.constant(x.type, coefficients[0])
    for coefficient in coefficients[1:]:
        p = f.fma(p, x, f.constant(x.type, coefficient))
    return p


def widened(f: Function, x: Value) -> Value:
    """In double precision."""
    type = x.type.with_element("double")
    return f.emit(type, f"fpext {x} to {type}")


def narrowed(f: Function, x: Value) -> Value:
    """In single precision: rounded, infinite where that is too large."""
    type = x.type.with_element("float")
    return f.emit(type, f"fptrunc {x} to {type}")
