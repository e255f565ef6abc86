"""Functions of expressions on quantized bytes: sums, products and tables, with their numbers as parameters.

Scales, zero points and bounds of a model are in no kernel. A function that needs them takes them as its last argument:
an operand that is no tensor but an array, which a kernel reads once, before its loops. What is in it, the builder of
operators says (`gossamer.ops.lowering.Lowering`); its words here are in the same order.

Vectors may have any number of lanes. A register full of bytes is computed on x86 in parts that are taken from within
128 bits, and put back by packing: nothing moves across. Others are widened lane by lane, and so are all on AArch64,
whose instructions widen and saturate in order.

Any kernel may have these in its epilogue: ``("lookup", ("qadd", 0, 1, 2), 3)`` of its result, of a further tensor of
bytes and of two arrays. It gives `gossamer.codegen.expression.apply` a register of bytes for each of the first two, and
for the others what `gossamer.codegen.expression.parameters` has read. Or it calls `add` and `lookup` itself, with what
`words` and `read_table` have read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gossamer.codegen.dots import narrowed, rounded
from gossamer.codegen.elements import Kind
from gossamer.codegen.ir import I32, Function, Value, vector

Words = Sequence[Value]
Read = Callable[[Function, Value], Words]

TABLE = 256
"""Entries of a table."""


def words(count: int) -> Read:
    """How a function reads so many parameters, words of 32 bits, from a pointer."""

    def read(f: Function, pointer: Value) -> Words:
        return [f.load(I32, f.at(pointer, number, "i32")) for number in range(count)]

    return read


# Sums and products


def add(f: Function, x: Value, y: Value, words: Words, *, signed: bool) -> Value:
    """((m x + n y + bias) >> shift) + zero point, clamped, of bytes; words m, n, bias, shift, zero point, low, high.

    As XNNPACK adds and subtracts (``qs8_vadd_minmax``, ``qu8_vadd_minmax``). m and n have 21 bits and a sign.
    """
    bounds: Words
    times_x, times_y, bias, shift, *bounds = words[:7]
    if not _is_register(x):
        terms = [f.wrapping("mul", _wide(value, signed), f.splat(times, value.type.lanes))
                 for value, times in ((x, times_x), (y, times_y))]  # fmt: skip
        total = f.wrapping("add", f.wrapping("add", *terms), f.splat(bias, x.type.lanes))
        return _narrow(f.wrapping("ashr", total, f.splat(shift, x.type.lanes)), bounds, signed)
    fine, coarse, bias, unsigned_bias, *bounds = words[7:]
    if not signed:  # as signed bytes, which are 128 less
        x, y, bias = x ^ -128, y ^ -128, unsigned_bias
    lanes = x.type.lanes // 4
    zero = f.constant(x.type, 0)
    totals = []
    for pairs in (_unpack(zero, half, high) for half in _unpacked(x, y) for high in (False, True)):
        total = _add_bytes(_add_pairs(bias, _as(pairs, "i16"), coarse), pairs, fine)
        totals.append(f.wrapping("ashr", total, f.splat(shift, lanes)))
    return _pack(totals, bounds, signed)


def read_sum(f: Function, pointer: Value) -> Words:
    """What `add` takes: the words, and what it makes of them for registers full of bytes."""
    scalars = list(words(7)(f, pointer))
    if not _is_x86(f):
        return scalars
    times_x, times_y, bias, _, *bounds = scalars
    lanes = f.target.lanes(32)
    # Numbers of 16 bits are multiplied and added in pairs, so multipliers come in two parts. Bytes have 8 bits of 0
    # below them: 256 times as much.
    fine = _pair(times_x & 0xFF, times_y & 0xFF, lanes)
    coarse = _pair(f.wrapping("ashr", times_x, 8), f.wrapping("ashr", times_y, 8), lanes)
    unsigned_bias = f.wrapping("add", bias, f.wrapping("shl", f.wrapping("add", times_x, times_y), 7))
    return [*scalars, fine, coarse, f.splat(bias, lanes), f.splat(unsigned_bias, lanes), *_splats(bounds)]


def multiply(f: Function, x: Value, y: Value, words: Words, *, signed: bool) -> Value:
    """(x - x's zero point) (y - y's zero point) times a float32 scale, rounded to the nearest (halves to even), plus
    zero point, clamped, of bytes; words both zero points, scale, zero point, low, high.

    As XNNPACK multiplies (``qs8_vmul_minmax_fp32``, ``qu8_vmul_minmax_fp32``).
    """
    bounds: Words
    zero_x, zero_y, scale, *bounds = words[:6]
    if not _is_register(x):
        product = f.wrapping("mul", *(_from_zero(value, zero, signed) for value, zero in ((x, zero_x), (y, zero_y))))
        return _narrow(_scaled(product, f.splat(f.bits(scale, "float"), x.type.lanes)), bounds, signed)
    zero_points, scale = words[6 + 2 * signed : 8 + 2 * signed], words[10]
    bounds = words[11:]
    zeros = f.constant(x.type, 0)
    left, right = (
        [f.wrapping("sub", _as(half, "i16"), zero) for half in _unpacked(value ^ -128 if signed else value, zeros)]
        for value, zero in zip((x, y), zero_points, strict=True)
    )
    results = []
    for a, b in zip(left, right, strict=True):
        low, high = f.wrapping("mul", a, b), _multiply_high(a, b)
        results += [_scaled(_as(part, "i32"), scale) for part in _unpacked(low, high)]
    return _pack(results, bounds, signed)


def read_product(f: Function, pointer: Value) -> Words:
    """What `multiply` takes: the words; for registers full of bytes, zero points of unsigned and signed ones, the
    scale, and the bounds."""
    scalars = list(words(6)(f, pointer))
    if not _is_x86(f):
        return scalars
    *zeros, scale = scalars[:3]
    zeros += [f.wrapping("add", zero, 128) for zero in zeros]
    splat = [f.splat(_truncated(zero, "i16"), f.target.lanes(16)) for zero in zeros]
    return [*scalars, *splat, f.splat(f.bits(scale, "float")), *_splats(scalars[3:])]


def _scaled(x: Value, scale: Value) -> Value:
    """Integers times a float, rounded to integers."""
    f = x.function
    floats = x.type.with_element("float")
    return nearest(f, f.emit(floats, f"sitofp {x} to {floats}") * scale)


def nearest(f: Function, x: Value) -> Value:
    """Floats that fit as 32-bit integers: to the nearest, halves to even."""
    to, lanes = x.type.with_element("i32"), x.type.lanes
    if not _is_x86(f) and lanes % f.target.lanes() == 0:
        if lanes > f.target.lanes():
            low, high = (nearest(f, half) for half in _halves(x))
            return f.shuffle(low, high, range(lanes))
        return rounded(f, x)  # of which LLVM makes two instructions otherwise
    name = f"@llvm.lrint.{to.suffix}.{x.type.suffix}"
    f.module.declare(f"declare {to} {name}({x.type})")
    return f.emit(to, f"call {to} {name}({x})")


# Tables


def lookup(f: Function, x: Value, table: Words) -> Value:
    """The entries of a table for bytes, whatever these mean; ``table`` is what `read_table` has read."""
    lanes, width = x.type.lanes, f.target.lanes(8)
    if lanes == 1:
        (pointer,) = table[:1]
        return f.load(x.type, f.at(pointer, f.emit(vector("i64", 1), f"zext {x} to i64"), "i8"))
    if lanes > width:
        low, high = (lookup(f, f.shuffle(x, x, range(at, at + lanes // 2)), table) for at in (0, lanes // 2))
        return f.shuffle(low, high, range(lanes))
    if lanes < width:
        x = f.shuffle(x, x, [*range(lanes), *[-1] * (width - lanes)])
    found = _find(f)(x, table)
    return found if lanes == width else f.shuffle(found, found, range(lanes))


def lookup_in_row(f: Function, x: Value, row: Value, table: Words) -> Value:
    """The entries that a row of a matrix has for bytes: of a map, which reads the row as the table for `lookup`."""
    return lookup(f, x, table)


def read_row(f: Function, pointer: Value, row: Value) -> Words:
    """A row of a matrix of 256 x 256 bytes at a pointer, in registers, given a byte, its number."""
    number = f.emit(vector("i64", 1), f"zext {row} to i64")
    return read_table(f, f.offset(pointer, number * TABLE))


def read_table(f: Function, pointer: Value) -> Words:
    """A table of 256 bytes at a pointer: what `lookup` takes, the pointer and, where there are registers for it, the
    table."""
    find = _find(f)
    if find is _find_by_shuffle:
        return [pointer, *([_repeated(f, pointer, number) for number in range(16)] if f.target.registers > 16 else ())]
    step = TABLE // _ROWS[find]
    return [pointer, *(f.load(vector("i8", step), f.offset(pointer, at)) for at in range(0, TABLE, step))]


def _repeated(f: Function, pointer: Value, number: int) -> Value:
    """16 entries of the table at a pointer, in every 128 bits."""
    row = f.load(vector("i8", 16), f.offset(pointer, 16 * number))
    return f.shuffle(row, row, [lane % 16 for lane in range(f.target.lanes(8))])


def _find_by_permutation(x: Value, rows: Words) -> Value:
    """``vpermi2b``: 128 entries at a time, by the low seven bits; the top bit chooses."""
    f, rows = x.function, rows[1:]
    name = "@llvm.x86.avx512.vpermi2var.qi.512"
    f.module.declare(f"declare {x.type} {name}({x.type}, {x.type}, {x.type})")
    low, high = (f.emit(x.type, f"call {x.type} {name}({a}, {x}, {b})") for a, b in (rows[:2], rows[2:]))
    return f.select(f.compare("slt", x, 0), high, low)


def _find_by_shuffle(x: Value, rows: Words) -> Value:
    """``pshufb``: 16 entries at a time, by the low four bits; an index with its top bit set finds 0. So the top bit
    chooses between two rows by itself, and the three in between choose between the results, which takes half as many
    instructions again as there are rows."""
    f = x.function
    name = {32: "@llvm.x86.avx2.pshuf.b", 64: "@llvm.x86.avx512.pshuf.b.512"}[x.type.lanes]
    f.module.declare(f"declare {x.type} {name}({x.type}, {x.type})")
    pointer, *rows = rows
    (x,) = f.pinned([x])  # or what moved its bytes would move those of all that is made of it
    flipped = x ^ -128
    moved = [x]
    for _ in range(3):
        moved.append(f.wrapping("add", moved[-1], moved[-1]))
    is_set = [f.compare("slt", bits, 0) for bits in moved[1:]]

    def found(number: int, bit: int) -> Value:
        """By the bits below a bit, and the top one."""
        if bit < 4:
            halves = []
            for at, index in ((number, x), (number + 8, flipped)):
                row = rows[at] if rows else _repeated(f, pointer, at)
                halves.append(f.emit(x.type, f"call {x.type} {name}({row}, {index})"))
            return halves[0] | halves[1]
        low, high = (found(at, bit - 1) for at in (number, number + (1 << (bit - 4))))
        return f.select(is_set[6 - bit], high, low)

    return found(0, 6)


def _find_by_lookup(x: Value, rows: Words) -> Value:
    """``tbl`` and ``tbx``: 64 entries at a time; an index behind them finds 0, or leaves what was found."""
    f, rows = x.function, rows[1:]
    tbl, tbx = "@llvm.aarch64.neon.tbl4.v16i8", "@llvm.aarch64.neon.tbx4.v16i8"
    f.module.declare(f"declare {x.type} {tbl}({', '.join([x.type.text] * 5)})")
    f.module.declare(f"declare {x.type} {tbx}({', '.join([x.type.text] * 6)})")
    found = f.emit(x.type, f"call {x.type} {tbl}({', '.join(map(str, [*rows[:4], x]))})")
    for start in (4, 8, 12):
        x = f.wrapping("sub", x, 64)
        found = f.emit(x.type, f"call {x.type} {tbx}({', '.join(map(str, [found, *rows[start : start + 4], x]))})")
    return found


_ROWS: dict[Callable[[Value, Words], Value], int] = {_find_by_permutation: 4, _find_by_lookup: 16}


def _find(f: Function) -> Callable[[Value, Words], Value]:
    if not _is_x86(f):
        return _find_by_lookup
    return _find_by_permutation if f.target.has("avx512vbmi") else _find_by_shuffle


# Bytes to wider numbers and back


def _is_x86(f: Function) -> bool:
    """Whether registers full of bytes are computed in parts."""
    return f.target.triple.startswith("x86_64")


def _is_register(x: Value) -> bool:
    return _is_x86(x.function) and x.type.lanes == x.function.target.lanes(8)


def _wide(x: Value, signed: bool, element: str = "i32") -> Value:
    type = x.type.with_element(element)
    return x.function.emit(type, f"{'sext' if signed else 'zext'} {x} to {type}")


def _from_zero(x: Value, zero: Value, signed: bool) -> Value:
    """How far bytes are from a zero point, in 32 bits; on AArch64 with the other sign, which is one instruction and
    makes another one multiply and widen."""
    f, lanes = x.function, x.type.lanes
    if _is_x86(f):
        return f.wrapping("sub", _wide(x, signed), f.splat(zero, lanes))
    difference = f.wrapping("sub", f.splat(_truncated(zero, "i16"), lanes), _wide(x, signed, "i16"))
    return _wide(difference, signed=True)


def _halves(x: Value) -> list[Value]:
    half = x.type.lanes // 2
    return [x.function.shuffle(x, x, range(start, start + half)) for start in (0, half)]


def _narrow(x: Value, bounds: Words, signed: bool) -> Value:
    """Integers of 32 bits plus a zero point, clamped, as bytes."""
    f = x.function
    if not _is_x86(f) and x.type.lanes == f.target.lanes(8):
        quarters = [quarter for half in _halves(x) for quarter in _halves(half)]
        zero, low, high = _splats(bounds)
        return _clamped(narrowed(f, quarters, zero, "i8" if signed else "u8"), low, high, signed)
    zero, low, high = (f.splat(bound, x.type.lanes) for bound in bounds)
    x = f.wrapping("add", x, zero)
    x = f.intrinsic("llvm.smin", f.intrinsic("llvm.smax", x, low), high)
    return f.emit(x.type.with_element("i8"), f"trunc {x} to {x.type.with_element('i8')}")


def _pack(parts: Sequence[Value], bounds: Words, signed: bool) -> Value:
    """The same of four registers, each of which has a quarter of every 128 bits."""
    f, lanes = parts[0].function, parts[0].type.lanes
    bits = "512" if lanes == 16 else ""
    isa = "avx512" if lanes == 16 else "avx2"
    words, bytes = vector("i16", 2 * lanes), vector("i8", 4 * lanes)

    def packed(name: str, type: str, a: Value, b: Value) -> Value:
        function = f"@llvm.x86.{isa}.{name}" + (f".{bits}" if bits else "")
        to = words if type == "i16" else bytes
        f.module.declare(f"declare {to} {function}({a.type}, {b.type})")
        return f.emit(to, f"call {to} {function}({a}, {b})")

    zero, low, high = bounds
    first, second = (
        f.intrinsic("llvm.sadd.sat", packed("packssdw", "i16", *parts[at : at + 2]), zero) for at in (0, 2)
    )
    x = packed("packsswb" if signed else "packuswb", "i8", first, second)
    return _clamped(x, low, high, signed)


def _clamped(x: Value, low: Value, high: Value, signed: bool) -> Value:
    kind = "s" if signed else "u"
    return x.function.intrinsic(f"llvm.{kind}min", x.function.intrinsic(f"llvm.{kind}max", x, low), high)


def _splats(bounds: Words) -> Words:
    """Zero point, low and high as `_pack` takes them."""
    f = bounds[0].function
    types = ("i16", "i8", "i8")
    widths = (f.target.lanes(16), *[f.target.lanes(8)] * 2)
    return [f.splat(_truncated(bound, type), lanes) for bound, type, lanes in zip(bounds, types, widths, strict=True)]


def _truncated(x: Value, element: str) -> Value:
    return x.function.emit(vector(element, 1), f"trunc {x} to {element}")


def _unpack(x: Value, y: Value, high: bool) -> Value:
    """The low or high halves of every 128 bits of two registers, one element of each after the other."""
    lanes = x.type.lanes
    group = lanes * {"i8": 8, "i16": 16}[x.type.element] // 128
    size = lanes // group
    start = size // 2 if high else 0
    order = [number for at in range(group) for lane in range(size // 2)
             for number in (at * size + start + lane, lanes + at * size + start + lane)]  # fmt: skip
    return x.function.shuffle(x, y, order)


def _unpacked(x: Value, y: Value) -> tuple[Value, Value]:
    return _unpack(x, y, False), _unpack(x, y, True)


def _as(x: Value, element: str) -> Value:
    """Bits as wider elements."""
    size = {"i8": 1, "i16": 2, "i32": 4}
    type = vector(element, x.type.lanes * size[x.type.element] // size[element])
    return x.function.emit(type, f"bitcast {x} to {type}")


def _as_bytes(x: Value) -> Value:
    """Bits as bytes."""
    type = vector("i8", x.type.lanes * {"i16": 2, "i32": 4}[x.type.element])
    return x.function.emit(type, f"bitcast {x} to {type}")


def _pair(first: Value, second: Value, lanes: int) -> Value:
    """Two numbers of 16 bits, over and over."""
    f = first.function
    both = (first & 0xFFFF) | f.wrapping("shl", second, 16)
    both = f.splat(both, lanes)
    return f.emit(vector("i16", 2 * lanes), f"bitcast {both} to {vector('i16', 2 * lanes)}")


def _add_pairs(total: Value, x: Value, y: Value) -> Value:
    """The total plus the sums of the products of two neighbours."""
    f, to = x.function, total.type
    if f.target.dot:
        # No sum is so large that it saturates. LLVM takes the instruction that does not into two, needlessly.
        name = f"@llvm.x86.avx512.vpdpwssds.{f.target.vector_bits}"
        f.module.declare(f"declare {to} {name}({to}, {x.type}, {x.type})")
        return f.emit(to, f"call {to} {name}({total}, {x}, {y})")
    name = {32: "@llvm.x86.avx512.pmaddw.d.512", 16: "@llvm.x86.avx2.pmadd.wd"}[x.type.lanes]
    f.module.declare(f"declare {to} {name}({x.type}, {x.type})")
    return f.wrapping("add", total, f.emit(to, f"call {to} {name}({x}, {y})"))


def _add_bytes(total: Value, x: Value, y: Value) -> Value:
    """The total plus the sums of the products of two neighbours: signed bytes, each above a byte of 0, times what `y`
    has in its low bytes, which are unsigned and below a byte of 0."""
    f, to = x.function, total.type
    if not f.target.dot:
        return _add_pairs(total, f.wrapping("ashr", _as(x, "i16"), 8), y)
    # Shifts, which share two units with unpacking and packing, would take the longest.
    upper = _as_bytes(f.wrapping("shl", y, 8))
    name = f"@llvm.x86.avx512.vpdpbusd.{f.target.vector_bits}"
    f.module.declare(f"declare {to} {name}({to}, {x.type}, {x.type})")
    return f.emit(to, f"call {to} {name}({total}, {upper}, {x})")


def _multiply_high(x: Value, y: Value) -> Value:
    """The upper 16 bits of products."""
    f = x.function
    name = {32: "@llvm.x86.avx512.pmulh.w.512", 16: "@llvm.x86.avx2.pmulh.w"}[x.type.lanes]
    f.module.declare(f"declare {x.type} {name}({x.type}, {x.type})")
    return f.emit(x.type, f"call {x.type} {name}({x}, {y})")


def by_sign(emit: Callable[..., Value]) -> dict[Kind, Callable[..., Value]]:
    """Instructions for signed and unsigned bytes."""
    return {"signed": partial(emit, signed=True), "unsigned": partial(emit, signed=False)}
