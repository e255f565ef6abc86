"""What becomes of sums of products: the last part of a kernel, put together with its products when it is emitted.

`Requantized` are bytes:
``clamp(round(float32(sum) * scale) + zero_point)``, rounded to nearest even, with a scale for each channel, which is
what XNNPACK computes. `Dequantized` are float32, of rows or images that bring a scale and a zero point, as XNNPACK's
``qd8-f32-qc8w`` has it:

    y = fma(float32(sum of level * weight - zero point * sum of weights) * row scale, weight scale, bias)

in this order, so that results are determined bit by bit. `Rescaled` are int16, by TFLite's fixed-point multiplication
(`gossamer.codegen.fixed_point`). `Sums` are the sums. All but these go through an epilogue, whose operand 0 they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from gossamer.codegen import fixed_point
from gossamer.codegen.dots import Byte, groups, has_rows, narrowed, narrowed_row, offset, rounded
from gossamer.codegen.elements import convert
from gossamer.codegen.expression import (
    IDENTITY,
    Expression,
    apply,
    operand_count,
    parameters,
    parameters_of,
    type_of,
)
from gossamer.codegen.ir import F32, I32, PTR, Arguments, Function, Part, Type, Value, vector
from gossamer.codegen.kernels.dynamic import HEADER, ZERO_POINT
from gossamer.codegen.kernels.move import in_pieces
from gossamer.codegen.spec import ArgumentBlock
from gossamer.errors import CompileError
from gossamer.records import record, replace

WALK = "depth taps *tap_offsets a_stride c_stride residual_stride tail"
"""What every microkernel is told of depth and rows."""


class Tile(NamedTuple):
    """Sums of ``mr`` rows and ``nv`` vectors of channels. ``type``: of what was multiplied.

    ``ragged``: only ``tail`` channels are there, which ``shape`` says. ``half``: of the last vector, the first half.
    """

    f: Function
    shape: Arguments
    type: Byte
    mr: int
    nv: int
    ragged: bool = False
    half: bool = False

    def words(self, v: int) -> Type:
        """Sums of a vector of channels."""
        return vector("i32", self.f.lanes // 2 if self.half and v == self.nv - 1 else self.f.lanes)


class Pointers(NamedTuple):
    """What a microkernel is given: the first row of each tensor, a panel, and what else belongs to its channels."""

    a: Value
    b: Value
    bias: Value
    c: Value
    residual: Value
    c_gaps: Sequence[Value] = ()
    residual_gaps: Sequence[Value] = ()
    """How much further on rows are than a stride for each of those before; empty: they are not."""


def rows_at(f: Function, first: Value, stride: Value, count: int, gaps: Sequence[Value] = ()) -> list[Value]:
    """Pointers to rows that are a stride apart, and gaps further on."""
    rows = [first]
    for _ in range(count - 1):
        rows.append(f.offset(rows[-1], stride))
    return [f.offset(row, gap) for row, gap in zip(rows, gaps, strict=True)] if gaps else rows


def residual_of(epilogue: Expression) -> int:
    """The operand of an epilogue that is a tensor beside the sums; 0: there is none."""
    return max(set(range(1, operand_count(epilogue))) - parameters_of(epilogue).keys(), default=0)


def parameters_at(epilogue: Expression, f: Function, table: Value) -> dict[int, Any]:
    """The parameters of an epilogue, whose addresses are in a table in the order of their numbers."""
    places = enumerate(sorted(parameters_of(epilogue)))
    return dict(parameters(epilogue, f, {number: f.load(PTR, f.offset(table, 8 * at)) for at, number in places}))


def prefetch_rows(f: Function, rows: Sequence[Value], vectors: int = 1) -> None:
    """Fetch what is read of rows at the end: so many vectors of words."""
    for row in rows:
        for v in range(vectors):
            f.prefetch(f.offset(row, 4 * f.lanes * v))


def store_floats(
    f: Function,
    epilogue: Expression,
    parts: Sequence[Part],
    rows: Sequence[Value],
    residuals: Sequence[Value],
    value: Callable[[int, int], Value],
) -> None:
    """Apply an epilogue to ``value(row, vector)``, float32, and the residual, if it has one, and store."""
    for i, row in enumerate(rows):
        for v, part in enumerate(parts):
            operands = [value(i, v)]
            if residuals:
                operands.append(part.load(f.offset(residuals[i], 4 * f.lanes * v)))
            part.store(apply(epilogue, f, operands), f.offset(row, 4 * f.lanes * v))


class Output:
    """What sums of products of bytes become. ``arguments`` are those of the microkernel, ``words`` what is told beside
    `WALK`."""

    words: ClassVar[str] = "zero_point low high weight_zero nudge *parameters"
    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(WALK, words)
    epilogue: Expression = IDENTITY
    flags: tuple[str, ...] = ()
    """The forms, for a kernel's name."""

    def label(self, type: Byte) -> tuple[str, ...]:
        """The beginning of a kernel's name."""
        return (type,)

    def general(self) -> Iterator[Output]:
        """This one, and others that may take its place."""
        yield self

    def check(self, name: str, tile: Tile) -> None:
        """Raise `CompileError` for what there is not."""
        if operand_count(self.epilogue) - len(parameters_of(self.epilogue)) > 2:
            raise CompileError(f"{name}: there is one operand beside the sum, the residual.")

    def begin(self, tile: Tile, b: Value) -> list[Value]:
        """What the sums of a row begin with: the bias, in front of the panel."""
        return [tile.f.load(tile.words(v), tile.f.offset(b, 4 * tile.f.lanes * v)) for v in range(tile.nv)]

    def fetch(self, tile: Tile, at: Pointers) -> None:
        """Prefetch what is read at the end."""

    def finish(self, tile: Tile, totals: list[Value], at: Pointers) -> None:
        """Make the result of the sums and store it."""
        raise NotImplementedError


class Numbers(NamedTuple):
    """What all sums have in common, in vectors: the zero point of what they become, the bounds of bytes, the upper one
    of floats, what they are nudged by, and the parameters of the epilogue by the number of their operand."""

    zero_point: Value
    low: Value
    high: Value
    most: Value
    nudge: Value | None
    parameters: Mapping[int, Any]


@record(frozen=True)
class Requantized(Output):
    """Bytes of the type that was multiplied; another operand of the epilogue may be the residual, of bytes too, all
    others are parameters.

    Words: ``zero_point``, ``low``, ``high`` of the result; ``nudge``, if the sums are ``nudged``: of
    `gossamer.views.Requantization`, the bits of a float32; ``parameters``: a table of the addresses of those that the
    epilogue takes, in the order of its operands. Channels lie as `gossamer.codegen.dots.order` says; behind the bias
    in the panel are the scales.

    ``clamps``: low and high are not those of the type. ``large``: scales may be 1 or more, so that a product may be too
    large for 32 bits. ``relu``: the zero point is the least number of the type, as it is behind a ReLU, so that it
    needs no sum. ``together``: rows of the result, and of the residual, lie one behind the other without a gap, so that
    several are stored and added as one vector.
    """

    epilogue: Expression = IDENTITY
    clamps: bool = False
    large: bool = False
    nudged: bool = False
    relu: bool = False
    together: bool = False

    @property
    def flags(self) -> tuple[str, ...]:  # type: ignore[override]  # which is read only
        """The forms, for a kernel's name."""
        names = ("clamp", "large", "nudged", "relu", "together")
        forms = (self.clamps, self.large, self.nudged, self.relu, self.together)
        return tuple([name for name, has in zip(names, forms, strict=True) if has])

    def general(self) -> Iterator[Requantized]:
        """Bounds, nudges and zero points that change nothing may be applied."""
        yield self
        yield replace(self, together=False)
        yield replace(self, relu=False)
        plain = replace(self, together=False, relu=False)
        yield from (plain, replace(plain, clamps=True), replace(plain, clamps=True, large=True))

    def check(self, name: str, tile: Tile) -> None:
        """Raise `CompileError` for what there is not."""
        super().check(name, tile)
        if tile.half and (self.large or self.nudged):
            raise CompileError(
                f"{name}: half a vector is the last of a ragged kernel that is neither shifted, large nor nudged."
            )
        if self.together and (tile.nv > 2 or tile.ragged):
            raise CompileError(f"{name}: pixels of one or two whole vectors of bytes can lie together.")

    def fetch(self, tile: Tile, at: Pointers) -> None:
        """Prefetch what is read at the end."""
        if residual_of(self.epilogue):
            prefetch_rows(tile.f, rows_at(tile.f, at.residual, tile.shape.residual_stride, tile.mr, at.residual_gaps))

    def finish(self, tile: Tile, totals: list[Value], at: Pointers) -> None:
        """Make the result of the sums and store it."""
        f, shape = tile.f, tile.shape
        rows = rows_at(f, at.c, shape.c_stride, tile.mr, at.c_gaps)
        others = rows_at(f, at.residual, shape.residual_stride, tile.mr, at.residual_gaps)
        self.store(tile, self.numbers(tile), totals, f.offset(at.b, 4 * f.lanes * tile.nv), rows, others)

    def numbers(self, tile: Tile) -> Numbers:
        """What `store` reads beside sums and scales."""
        f, shape = tile.f, tile.shape
        lanes, size = f.lanes, 4 * f.lanes
        zero_point = splat_bits(f, shape.zero_point, "i16", 2 * lanes)
        low, high = (splat_bits(f, bound, "i8", size) for bound in (shape.low, shape.high))
        most = f.splat(f.to_float(shape.high - shape.zero_point), lanes)
        nudge = None
        if self.nudged:
            nudge = f.splat(f.bits(f.emit(I32, f"trunc {shape.nudge} to i32"), "float"), lanes)
        return Numbers(zero_point, low, high, most, nudge, parameters_at(self.epilogue, f, shape.parameters))

    def store(
        self,
        tile: Tile,
        numbers: Numbers,
        totals: list[Value],
        scales: Value,
        rows: list[Value],
        residual_rows: list[Value],
    ) -> None:
        """Requantize, apply the epilogue and store."""
        f, lanes, size, residual = tile.f, tile.f.lanes, 4 * tile.f.lanes, residual_of(self.epilogue)
        read: dict[int, Any] = dict(numbers.parameters)
        types = [tile.type] * operand_count(self.epilogue)
        levels = self._levels(tile, numbers, totals, scales)
        zero_point = None if self.relu else numbers.zero_point
        found = groups(tile.nv, tile.half)
        quantized = []
        for first, count in found:
            # So many bytes of a row are together in a vector of those of several rows.
            run, start = count * lanes, first * lanes
            here = f.least(tile.shape.tail - start, run) if tile.ragged and (first, count) == found[-1] else None
            if count < 4 and self._makes_rows(tile):
                for i, row in enumerate(rows):
                    of_row = levels[i * tile.nv + first : i * tile.nv + first + count]
                    bytes = self._clamped(tile, numbers, narrowed_row(f, of_row, zero_point))
                    _store(f, bytes, f.offset(row, start), here)
                continue
            for top in range(0, tile.mr, 4 // count):
                members = range(top, min(top + 4 // count, tile.mr))
                four = [levels[i * tile.nv + first + v] for i in members for v in range(count)]
                bytes = narrowed(f, four, zero_point, tile.type)
                bytes = f.shuffle(bytes, bytes, _by_rows(lanes, count))
                bytes = self._clamped(tile, numbers, bytes)
                pieces = (members[:1], run * len(members)) if self.together else (members, run)
                quantized.append((bytes, *pieces, start, here))
        for bytes, members, run, start, here in quantized:
            read[0] = bytes
            if residual:
                parts = [_load(f, f.offset(residual_rows[i], start), run, here) for i in members]
                read[residual] = _joined(f, parts, size)
            result = apply(self.epilogue, f, [read[number] for number in range(len(types))], types)
            for number, i in enumerate(members):
                part = f.shuffle(result, result, range(number * run, (number + 1) * run)) if run < size else result
                _store(f, part, f.offset(rows[i], start), here)

    def _levels(self, tile: Tile, numbers: Numbers, totals: list[Value], scales: Value) -> list[Value]:
        """Sums times scales, rounded.

        All are multiplied before the first one goes on: so more of what is behind the depth overlaps with the dot
        products of the next tile (a vector of 14x2 takes 6.2 instead of 6.5 cycles on Zen 4 at a depth of 16).
        """
        f = tile.f
        types = [tile.words(v).with_element("float") for v in range(tile.nv)]
        scale = [f.load(type, f.offset(scales, 4 * f.lanes * v)) for v, type in enumerate(types)] * tile.mr
        reals = [f.emit(type, f"sitofp {total} to {type}") for total, type in zip(totals, types * tile.mr, strict=True)]
        if numbers.nudge is None:
            reals = [real * by for real, by in zip(reals, scale, strict=True)]
        else:
            nudges = [f.intrinsic("llvm.copysign", numbers.nudge, real) for real in reals]
            reals = [f.fma(real, by, nudge) for real, by, nudge in zip(reals, scale, nudges, strict=True)]
        if f.target.vector_bits == 512:
            reals = f.pinned(reals)
        if self.large:
            reals = [f.minimum(real, numbers.most) for real in reals]
        levels = [rounded(f, real) for real in reals]
        return [x if x.type.lanes == f.lanes else f.shuffle(x, x, _wider(f.lanes)) for x in levels]

    def _makes_rows(self, tile: Tile) -> bool:
        """Whether less than four vectors of a row become bytes by themselves, so that none have to be moved apart."""
        return has_rows(tile.f.target, tile.type) and not (self.together or self.large) and self.epilogue == IDENTITY

    def _clamped(self, tile: Tile, numbers: Numbers, bytes: Value) -> Value:
        """Bytes within the bounds."""
        if not self.clamps:
            return bytes
        prefix, lanes = "s" if tile.type == "i8" else "u", range(bytes.type.lanes)
        low, high = (tile.f.shuffle(bound, bound, lanes) for bound in (numbers.low, numbers.high))
        return tile.f.intrinsic(f"llvm.{prefix}min", tile.f.intrinsic(f"llvm.{prefix}max", bytes, low), high)


@record(frozen=True)
class Sums(Output):
    """The sums themselves, int32, of channels in their order."""

    def label(self, type: Byte) -> tuple[str, ...]:
        """The beginning of a kernel's name."""
        return (type, "sums")

    def finish(self, tile: Tile, totals: list[Value], at: Pointers) -> None:
        """Store the sums."""
        f, words = tile.f, vector("i32", tile.f.lanes)
        parts = [Part(f, words) for _ in range(tile.nv)]
        if tile.ragged:
            parts[-1] = Part(f, words, tile.shape.tail - (tile.nv - 1) * f.lanes)
        for i, row in enumerate(rows_at(f, at.c, tile.shape.c_stride, tile.mr, at.c_gaps)):
            for v, part in enumerate(parts):
                part.store(totals[i * tile.nv + v], f.offset(row, 4 * f.lanes * v))


@record(frozen=True)
class Dequantized(Output):
    """float32 of rows that bring a scale and a zero point in front of their first level, or, ``image``, of an image
    that has one ``header``.

    In the panel are sums of weights where the bias would be, and behind them the weights' scales; the bias, float32,
    stays outside. Channels are in their order; ``tail`` of them are in the last vector.
    """

    epilogue: Expression = IDENTITY
    image: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(WALK, "*header")

    def label(self, type: Byte) -> tuple[str, ...]:
        """The beginning of a kernel's name."""
        return ("f32", "hybrid", "image" * self.image, type)

    def begin(self, tile: Tile, b: Value) -> list[Value]:
        """What the sums of a row begin with."""
        return [tile.f.constant(tile.words(v), 0) for v in range(tile.nv)]

    def fetch(self, tile: Tile, at: Pointers) -> None:
        """Prefetch what is read at the end."""
        if operand_count(self.epilogue) > 1:
            prefetch_rows(tile.f, rows_at(tile.f, at.residual, tile.shape.residual_stride, tile.mr), tile.nv)

    def finish(self, tile: Tile, totals: list[Value], at: Pointers) -> None:
        """Make the result of the sums and store it."""
        f, shape, mr, nv, size = tile.f, tile.shape, tile.mr, tile.nv, 4 * tile.f.lanes
        parts = [Part(f, f.f32) for _ in range(nv)]
        if tile.ragged:
            parts[-1] = Part(f, f.f32, shape.tail)
        of_weights = [f.load(tile.words(v), f.offset(at.b, size * v)) for v in range(nv)]
        scales = [f.load(f.f32, f.offset(at.b, size * (nv + v))) for v in range(nv)]
        biases = [part.load(f.offset(at.bias, size * v)) for v, part in enumerate(parts)]
        if self.image:
            grids = [self._grid(tile, shape.header)] * mr
        else:
            headers = rows_at(f, f.offset(at.a, -HEADER), shape.a_stride, mr)
            grids = [self._grid(tile, header) for header in headers]

        def real(i: int, v: int) -> Value:
            scale, point = grids[i]
            exact = f.wrapping("sub", totals[i * nv + v], f.wrapping("mul", of_weights[v], point))
            return f.fma(f.emit(f.f32, f"sitofp {exact} to {f.f32}") * scale, scales[v], biases[v])

        residuals = rows_at(f, at.residual, shape.residual_stride, mr) if operand_count(self.epilogue) > 1 else []
        store_floats(f, self.epilogue, parts, rows_at(f, at.c, shape.c_stride, mr), residuals, real)

    def _grid(self, tile: Tile, header: Value) -> tuple[Value, Value]:
        """The scale and the zero point of levels as they are multiplied, in every lane."""
        f = tile.f
        zero_point = f.load(I32, f.offset(header, ZERO_POINT))
        moved = offset(f.target, tile.type, 0)
        if moved:
            zero_point = zero_point + moved
        return f.splat(f.load(F32, header)), f.splat(zero_point)


Rounding = Literal["once", "twice", "double"]
"""Of a `Rescaled`: the sum, of 64 bits, times a multiplier of 16, rounded once; of 32 bits, which wraps, times one of
32, rounded twice; of 64 bits, times a real number in double precision, rounded once."""


@record(frozen=True)
class Rescaled:
    """int16, of sums of int32 or int64; another operand of the epilogue may be the residual, of int16 too, all others
    are parameters.

    Words: ``low``, ``high`` of the result; ``parameters`` as of `Requantized`. What belongs to channels lies in rows
    that are ``numbers`` bytes apart: their bias, their multiplier and, but for "double", the exponent (of "once", how
    far it is shifted to the right). Numbers have 32 bits where sums have, else 64.
    """

    rounding: Rounding
    epilogue: Expression = IDENTITY

    words: ClassVar[str] = "low high numbers *parameters"

    @property
    def item(self) -> int:
        """Bytes of a number."""
        return 4 if self.rounding == "twice" else 8

    def numbers(self, part: Part, at: Value, stride: Value) -> list[Value]:
        """Those of a vector of channels, as `storing` has them."""
        types = {"once": ("i64",) * 3, "twice": ("i32",) * 3, "double": ("i64", "double")}[self.rounding]
        return [part.load(part.function.offset(at, stride * row), 0, type) for row, type in enumerate(types)]

    def storing(self, f: Function, shape: Arguments, table: Value) -> Callable[..., None]:
        """What makes the result of a vector of sums and stores it: ``store(part, sum, numbers, to, residual)``."""
        low, high = (f.emit(I32, f"trunc {bound} to i32") for bound in (shape.low, shape.high))
        read = parameters_at(self.epilogue, f, table)
        types, extra = ["i16"] * operand_count(self.epilogue), residual_of(self.epilogue)

        def store(part: Part, sum: Value, numbers: Sequence[Value], to: Value, residual: Value | None) -> None:
            lanes = sum.type.lanes
            scaled = self._scaled(f, sum, *numbers)
            bounded = fixed_point.clamped(f, scaled, f.splat(low, lanes), f.splat(high, lanes))
            values: dict[int, Any] = {**read, 0: convert(bounded, "i32", "i16")}
            if extra and residual is not None:
                values[extra] = part.load(residual, 0, "i16")
            result = apply(self.epilogue, f, [values.get(number) for number in range(len(types))], types)
            part.store(convert(result, type_of(self.epilogue, types), "i16"), to)

        return store

    def _scaled(self, f: Function, sum: Value, bias: Value, multiplier: Value, *exponent: Value) -> Value:
        total = f.wrapping("add", convert(sum, sum.type.element, bias.type.element), bias)
        if self.rounding == "twice":
            return fixed_point.requantized_up(f, total, multiplier, *exponent)
        if self.rounding == "once":
            return fixed_point.requantized_64(f, total, multiplier, *exponent)
        return fixed_point.rounded("llvm.round")(f, f.binary("mul", convert(total, "i64", "f64"), multiplier))


def splat_bits(f: Function, number: Value, element: str, lanes: int) -> Value:
    """The low bits of an i64 in every lane."""
    return f.splat(f.emit(vector(element, 1), f"trunc {number} to {element}"), lanes)


def _wider(lanes: int) -> list[int]:
    """Half a vector, and behind it what is easiest."""
    return [*range(lanes // 2), *[-1] * (lanes // 2)]


def _by_rows(lanes: int, count: int) -> list[int]:
    """Where the bytes of the first row are among those of four vectors, ``count`` of each row, then the second's."""
    rows, piece = 4 // count, 4 * count
    return [
        16 * block + piece * row + byte for row in range(rows) for block in range(lanes // 4) for byte in range(piece)
    ]


def _joined(f: Function, parts: list[Value], size: int) -> Value:
    """Runs of bytes one after the other; what there is not is poison."""
    while len(parts) > 1:
        if len(parts) % 2:
            parts.append(Value(f, parts[0].type, "poison"))
        parts = [f.shuffle(a, b, range(2 * a.type.lanes)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    (whole,) = parts
    lanes = whole.type.lanes
    return whole if lanes == size else f.shuffle(whole, whole, [*range(lanes), *[-1] * (size - lanes)])


def _load(f: Function, pointer: Value, count: int, here: Value | None) -> Value:
    type = vector("i8", count)
    if here is None:
        return f.load(type, pointer)
    if f.target.vector_bits == 512:
        return Part(f, type, here).load(pointer)
    buffer = f.stack(type, 1)

    def move(piece: Type, at: Value) -> None:
        f.store(f.load(piece, f.offset(pointer, at)), f.offset(buffer, at))

    in_pieces(f, here, move)
    return f.load(type, buffer)


def _store(f: Function, value: Value, pointer: Value, here: Value | None) -> None:
    if here is None:
        f.store(value, pointer)
        return
    if f.target.vector_bits == 512:
        Part(f, value.type, here).store(value, pointer)
        return
    # Other targets have no masks for bytes.
    buffer = f.stack(value.type, 1)
    f.store(value, buffer)

    def move(piece: Type, at: Value) -> None:
        f.store(f.load(piece, f.offset(buffer, at)), f.offset(pointer, at))

    in_pieces(f, here, move)
