"""`quantized_contract`: the tiles of `contract` for bytes: sums of products in 32 bits, brought back to bytes.

``c = clamp(round(float32(bias + sum of (a - a_zero) * (b - b_zero)) * scale) + c_zero)``: rounded to nearest even, with
a scale for each channel, which is what XNNPACK computes. Drivers are those of `contract`, which know bytes only.

A panel of nv vectors of channels holds all that belongs to its channels, in vectors one after the other: nv of the bias
(int32), nv of the scales (float32), and then for every step of depth nv vectors of words, each of four bytes of a
channel. `QuantizedPack` makes it of the weights as the model has them. It folds zero points into the bias, and puts
channels where they have to be for bytes to come out in order (`gossamer.codegen.dots`).

A step of depth is four bytes of a tap. Where the depth of a tap is no multiple of four, the last step reads the last
four bytes of the tap again, and the weights of those that have been counted are the zero point of the weights; taps of
less than four bytes are read byte by byte. Nothing is read that is not there.

A kernel for another result needs no other drivers and no other tiles: `QuantizedGemm._sums` makes the sums, and a
panel has what there is to know of its channels (`gossamer.codegen.kernels.hybrid` makes floats of them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, ClassVar, Literal, NamedTuple

from gossamer.codegen.dots import (
    BLOCK,
    Byte,
    Dots,
    groups,
    has_halves,
    has_rows,
    is_paired,
    narrowed,
    narrowed_row,
    rounded,
)
from gossamer.codegen.expression import (
    IDENTITY,
    Expression,
    apply,
    name_of,
    operand_count,
    parameters,
    parameters_of,
)
from gossamer.codegen.ir import F32, I32, I64, PTR, Arguments, Function, Module, Part, Type, Value, vector
from gossamer.codegen.kernels.contract import LINE, ROW_ADDRESS, UNROLL, rows_at
from gossamer.codegen.kernels.move import in_pieces
from gossamer.codegen.kernels.pack import transpose
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record, replace
from gossamer.targets import Target

STEP = 4
"""Bytes of depth of a step."""

Walk = Literal["", "taps", "steps"]

TOP_BITS = -0x7F7F7F80
"""Of the bytes of a word, as int32."""

HEADER = 2
"""Vectors of a panel, for every vector of channels, in front of the weights."""


def panel_bytes(lanes: int, nv: int, steps: int) -> int:
    """Bytes of a panel of ``nv`` vectors."""
    return 4 * lanes * nv * (HEADER + steps)


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
class QuantizedGemm(KernelSpec):
    """A microkernel: c = epilogue(requantized(bias + a b)) for mr rows and nv vectors of channels.

    ``void k(ptr a, ptr b, ptr bias, ptr c, ptr residual, ptr next, ptr shape)``; b is a panel, ``bias`` is not read.
    ``shape`` is the argument block:

    - ``depth``: bytes of a tap, a multiple of `STEP`; ``taps`` and ``tap_offsets``: their number and offsets in bytes.
    - ``a_stride``, ``c_stride``, ``residual_stride``: bytes from row to row.
    - ``tail``: channels in the panel, if the kernel is ragged. It writes no others of c and reads none of residual.
    - ``zero_point``, ``low``, ``high``: of c. ``weight_zero``: the zero point of the signed weights.
    - ``nudge``, if the kernel is ``nudged``: of `gossamer.views.Requantizing`, the bits of a float32.
    - ``parameters``: a table of the addresses of those that the epilogue takes, in the order of its operands.

    ``type``: that of a, c and the residual. ``walk``: how depth is walked through. "": there is one tap, at offset 0;
    "taps": there is a table of them; "steps": it has an offset for every step. ``short``: a step has only so many
    bytes. ``shifted``: weights have a zero point that is not 0. ``clamps``: low and high are not those of the type.
    ``large``: scales may be 1 or more, so that a product may be too large for 32 bits. ``epilogue``: operand 0 is the
    requantized sum, another may be the residual, of bytes too; all others are parameters. ``prefetch`` as in `Gemm`.
    ``relu``: the zero point is the least number of the type, as it is behind a ReLU, so that it needs no sum.
    ``sums``: c are the sums themselves, int32, and the channels of a panel are in their order. ``half``: of the last
    vector only the first half of the channels is there, at most; such a kernel is ragged, and neither shifted, large
    nor nudged. ``together``: the rows of c, and of the residual, lie one behind the other without a gap, so that
    several are stored and added as one vector.
    """

    mr: int
    nv: int
    type: Byte = "i8"
    epilogue: Expression = IDENTITY
    walk: Walk = ""
    short: int = 0
    ragged: bool = False
    clamps: bool = False
    large: bool = False
    shifted: bool = False
    prefetch: int = 0
    sums: bool = False
    nudged: bool = False
    half: bool = False
    together: bool = False
    relu: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        depth="i64",
        taps="i64",
        tap_offsets="ptr",
        a_stride="i64",
        c_stride="i64",
        residual_stride="i64",
        tail="i64",
        zero_point="i64",
        low="i64",
        high="i64",
        weight_zero="i64",
        nudge="i64",
        parameters="ptr",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        kind = {"": "gemm", "taps": "conv", "steps": "steps"}[self.walk] + str(self.short or "")
        return (self.type, "sums" * self.sums, kind, name_of(self.epilogue), f"{self.mr}x{self.nv}")

    @property
    def residual(self) -> int:
        """Its number among the operands of the epilogue; 0: there is none."""
        others = set(range(1, operand_count(self.epilogue))) - parameters_of(self.epilogue).keys()
        return max(others, default=0)

    @property
    def variant(self) -> str:
        forms = (
            "clamp" * self.clamps,
            "half" * self.half,
            "large" * self.large,
            "nudged" * self.nudged,
            "ragged" * self.ragged,
            "relu" * self.relu,
            "shifted" * self.shifted,
            "together" * self.together,
            f"p{self.prefetch}" * bool(self.prefetch),
        )
        return "_".join(filter(None, forms))

    def general(self) -> Iterator[KernelSpec]:
        # Bounds, nudges and zero points that change nothing may be applied; there is always a table of taps.
        walk: Walk = self.walk or "taps"
        for prefetch, other in product(dict.fromkeys((self.prefetch, 0)), dict.fromkeys((self.walk, walk))):
            plain = replace(self, prefetch=prefetch, walk=other)
            yield plain
            if not self.sums:
                yield replace(plain, together=False)
                yield replace(plain, relu=False)
                yield (plain := replace(plain, together=False, relu=False))
                yield (plain := replace(plain, clamps=True))
                if not self.half:
                    yield (plain := replace(plain, large=True))
                    yield replace(plain, shifted=True, nudged=True)
            else:
                yield replace(plain, shifted=True)

    def emit(self, target: Target) -> str:
        self._check(target)
        module = Module(target)
        f = module.microkernel("a", "b", "bias", "c", "residual", "next", "shape")
        a, b, _, c, residual, following, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        dots = Dots(f, self.type)
        size, vectors = 4 * f.lanes, self.mr * self.nv
        bias = [f.load(self._words(f, v), f.offset(b, size * v)) for v in range(self.nv)]
        sums = bias * self.mr
        # Those of rows too, which are quicker to make from whole vectors where rows lie in one piece.
        apart = self.shifted and self.walk == "" and not dots.widens
        if self.shifted and not apart:
            sums += [f.constant(dots.words, 0)] * self.mr
        if self.residual:
            for row in rows_at(f, residual, shape.residual_stride, self.mr):
                f.prefetch(row)
        weights = f.offset(b, HEADER * self.nv * size)
        sums = self._sums(f, dots, shape, a, weights, following, sums)

        totals = sums[:vectors]
        if self.shifted:
            zero = _splat(f, shape.weight_zero, "i32", f.lanes)
            of_rows = self._row_sums(f, dots, shape, a) if apart else sums[vectors:]
            for i in range(self.mr):
                of_row = f.wrapping("mul", of_rows[i], zero)
                for v in range(self.nv):
                    totals[i * self.nv + v] = f.wrapping("sub", totals[i * self.nv + v], of_row)
        if self.sums:
            parts = [Part(f, dots.words) for _ in range(self.nv)]
            if self.ragged:
                parts[-1] = Part(f, dots.words, shape.tail - (self.nv - 1) * f.lanes)
            for i, row in enumerate(rows_at(f, c, shape.c_stride, self.mr)):
                for v, part in enumerate(parts):
                    part.store(totals[i * self.nv + v], f.offset(row, size * v))
        else:
            rows = rows_at(f, c, shape.c_stride, self.mr)
            others = rows_at(f, residual, shape.residual_stride, self.mr)
            self.finish(f, shape, self.numbers(f, shape), totals, f.offset(b, self.nv * size), rows, others)
        return module.text()

    def _words(self, f: Function, v: int) -> Type:
        """Sums of a vector of channels."""
        return vector("i32", f.lanes // 2 if self.half and v == self.nv - 1 else f.lanes)

    def _sums(
        self, f: Function, dots: Dots, shape: Arguments, a: Value, b: Value, following: Value, sums: list[Value]
    ) -> list[Value]:
        """The sums plus all of the depth."""
        panel_step = self.nv * 4 * f.lanes
        if self.walk == "":
            return self._depth(f, dots, shape, a, b, following, sums)
        with f.loop(0, shape.taps, carry=sums) as taps:
            tap = f.offset(a, f.load(I64, f.at(shape.tap_offsets, taps.index, "i64")))
            if self.walk == "steps":
                carried = self._step(f, dots, shape, tap, f.offset(b, taps.index * panel_step), taps.values)
            else:
                panel = f.offset(b, taps.index * (shape.depth * (panel_step // STEP)))
                fetch = f.offset(following, taps.index * shape.depth * (self.prefetch * LINE // (STEP * UNROLL)))
                carried = self._depth(f, dots, shape, tap, panel, fetch, taps.values)
            taps.hand_on(carried)
        return taps.results

    def _row_sums(self, f: Function, dots: Dots, shape: Arguments, a: Value) -> list[Value]:
        """The sums of the only tap of every row, in all lanes."""
        ones, zeros = dots.ones(), [f.constant(dots.words, 0)] * self.mr
        rows = rows_at(f, a, shape.a_stride, self.mr)
        whole = shape.depth & -dots.bytes.lanes
        with f.loop(0, whole, dots.bytes.lanes, carry=zeros) as blocks:
            parts = [dots.activations(f.offset(row, blocks.index)) for row in rows]
            blocks.hand_on([dots.add(sum, x, ones) for sum, x in zip(blocks.values, parts, strict=True)])
        sums = [f.splat(f.fold(lambda a, b: f.wrapping("add", a, b), sum), f.lanes) for sum in blocks.results]
        with f.loop(whole, shape.depth, dots.depth, carry=sums) as rest:
            words = [dots.activation(self._word(f, f.offset(row, rest.index), 0, dots.depth)) for row in rows]
            rest.hand_on([dots.add(sum, x, ones) for sum, x in zip(rest.values, words, strict=True)])
        return rest.results

    def _depth(
        self, f: Function, dots: Dots, shape: Arguments, a: Value, b: Value, following: Value, sums: list[Value]
    ) -> list[Value]:
        """The sums plus one tap."""
        panel_byte = self.nv * f.lanes
        if dots.widens:
            with f.loop(0, shape.depth, BLOCK, carry=sums) as blocks:
                bytes = f.least(shape.depth - blocks.index, BLOCK)
                self._widen(f, dots, rows_at(f, f.offset(a, blocks.index), shape.a_stride, self.mr), bytes)
                panel = f.offset(b, blocks.index * panel_byte)
                fetch = f.offset(following, blocks.index * (self.prefetch * LINE // (STEP * UNROLL)))
                with f.loop(0, bytes, STEP, carry=blocks.values) as loop:
                    self._prefetch(f, fetch, loop.index)
                    here, index = f.offset(panel, loop.index * panel_byte), loop.index
                    loop.hand_on(self._products(f, dots, partial(dots.widened, index), here, loop.values))
                blocks.hand_on(loop.results)
            return blocks.results
        with f.loop(0, shape.depth, STEP, carry=sums) as loop:
            self._prefetch(f, following, loop.index)
            x, panel = f.offset(a, loop.index), f.offset(b, loop.index * panel_byte)
            loop.hand_on(self._step(f, dots, shape, x, panel, loop.values))
        return loop.results

    def _prefetch(self, f: Function, following: Value, index: Value) -> None:
        """Fetch what belongs to a step of depth."""
        if self.prefetch:
            fetch = f.offset(following, index * (self.prefetch * LINE // (STEP * UNROLL)))
            for line in range(-(-self.prefetch // UNROLL)):
                f.prefetch(f.offset(fetch, line * LINE))

    def _widen(self, f: Function, dots: Dots, rows: Sequence[Value], bytes: Value) -> None:
        """Widen so many bytes of every row, a multiple of `STEP`."""
        whole = bytes & -16
        for start, stop, count in ((f.integer(0), whole, 16), (whole, bytes, STEP)):
            with f.loop(start, stop, count) as loop:
                for i, row in enumerate(rows):
                    dots.widen(i, f.load(vector("i8", count), f.offset(row, loop.index)), loop.index)

    def _step(self, f: Function, dots: Dots, shape: Arguments, a: Value, b: Value, sums: list[Value]) -> list[Value]:
        """The sums plus one step of depth."""
        if dots.widens:
            for i, row in enumerate(rows_at(f, a, shape.a_stride, self.mr)):
                four = vector("i8", STEP)
                dots.widen(i, f.emit(four, f"bitcast {self._word(f, row, 0, STEP)} to {four}"), 0)
                f.keep_order()
            return self._products(f, dots, partial(dots.widened, f.integer(0)), b, sums)
        stride = shape.a_stride
        strides = {0: f.integer(0), 1: stride, 3: stride * 3, 5: stride * 5}
        starts = {0: a, 7: f.offset(a, stride * 7)}

        def word(i: int, first: int) -> Value:
            start, multiple, scale = ROW_ADDRESS[i]
            return self._word(f, f.offset(starts[start], strides[multiple] * scale), first, dots.depth)

        return self._products(f, dots, word, b, sums)

    def _products(
        self, f: Function, dots: Dots, word: Callable[[int, int], Value], b: Value, sums: list[Value]
    ) -> list[Value]:
        """The sums plus one step of depth: ``word(row, first byte)`` are activations."""
        sums = list(sums)
        for first in range(0, STEP, dots.depth):
            whole = self.nv - self.half
            weights = [dots.weights(f.offset(b, (STEP * v + first) * f.lanes)) for v in range(whole)]
            if self.half:
                weights.append(dots.half_weights(f.offset(b, (STEP * whole + first) * f.lanes)))
            for i in range(self.mr):
                x = dots.activation(word(i, first))
                for v in range(self.nv):
                    of_vector = x if v < whole else dots.half(x)
                    sums[i * self.nv + v] = dots.add(sums[i * self.nv + v], of_vector, weights[v])
                row = self.mr * self.nv + i
                if row < len(sums):
                    sums[row] = dots.add(sums[row], x, dots.ones())
        return sums

    def _word(self, f: Function, pointer: Value, first: int, count: int) -> Value:
        """So many bytes of a step, 0 for those that it has not."""
        type = vector(f"i{8 * count}", 1)
        if not self.short:
            return f.emit(type, f"load {type}, {f.offset(pointer, first)}, align 1")
        word = f.constant(type, 0)
        for at in range(first, min(first + count, self.short)):
            byte = f.load(vector("i8", 1), f.offset(pointer, at))
            word = word | (f.emit(type, f"zext {byte} to {type}") << 8 * (at - first))
        return word

    def numbers(self, f: Function, shape: Arguments) -> Numbers:
        """What `finish` reads beside sums and scales."""
        lanes, size = f.lanes, 4 * f.lanes
        zero_point = _splat(f, shape.zero_point, "i16", 2 * lanes)
        low, high = (_splat(f, bound, "i8", size) for bound in (shape.low, shape.high))
        most = f.splat(f.to_float(shape.high - shape.zero_point), lanes)
        nudge = None
        if self.nudged:
            nudge = f.splat(f.bits(f.emit(I32, f"trunc {shape.nudge} to i32"), "float"), lanes)
        tables = sorted(parameters_of(self.epilogue))
        addresses = {number: f.load(PTR, f.offset(shape.parameters, 8 * at)) for at, number in enumerate(tables)}
        return Numbers(zero_point, low, high, most, nudge, parameters(self.epilogue, f, addresses))

    def finish(
        self,
        f: Function,
        shape: Arguments,
        numbers: Numbers,
        totals: list[Value],
        scales: Value,
        rows: list[Value],
        residual_rows: list[Value],
    ) -> None:
        """Requantize, apply the epilogue and store."""
        lanes, size = f.lanes, 4 * f.lanes
        read: dict[int, Any] = dict(numbers.parameters)
        types = [self.type] * operand_count(self.epilogue)
        levels = self._levels(f, numbers, totals, scales)
        zero_point = None if self.relu else numbers.zero_point
        found = groups(self.nv, self.half)
        quantized = []
        for first, count in found:
            # So many bytes of a row are together in a vector of those of several rows.
            run, start = count * lanes, first * lanes
            here = f.least(shape.tail - start, run) if self.ragged and (first, count) == found[-1] else None
            if count < 4 and self._makes_rows(f.target):
                for i, row in enumerate(rows):
                    of_row = levels[i * self.nv + first : i * self.nv + first + count]
                    bytes = self._clamped(f, numbers, narrowed_row(f, of_row, zero_point))
                    _store(f, bytes, f.offset(row, start), here)
                continue
            for top in range(0, self.mr, 4 // count):
                members = range(top, min(top + 4 // count, self.mr))
                four = [levels[i * self.nv + first + v] for i in members for v in range(count)]
                bytes = narrowed(f, four, zero_point, self.type)
                bytes = f.shuffle(bytes, bytes, _by_rows(lanes, count))
                bytes = self._clamped(f, numbers, bytes)
                pieces = (members[:1], run * len(members)) if self.together else (members, run)
                quantized.append((bytes, *pieces, start, here))
        for bytes, members, run, start, here in quantized:
            read[0] = bytes
            if self.residual:
                parts = [_load(f, f.offset(residual_rows[i], start), run, here) for i in members]
                read[self.residual] = _joined(f, parts, size)
            result = apply(self.epilogue, f, [read[number] for number in range(len(types))], types)
            for number, i in enumerate(members):
                part = f.shuffle(result, result, range(number * run, (number + 1) * run)) if run < size else result
                _store(f, part, f.offset(rows[i], start), here)

    def _levels(self, f: Function, numbers: Numbers, totals: list[Value], scales: Value) -> list[Value]:
        """Sums times scales, rounded.

        All are multiplied before the first one goes on: so more of what is behind the depth overlaps with the dot
        products of the next tile (a vector of 14x2 takes 6.2 instead of 6.5 cycles on Zen 4 at a depth of 16).
        """
        types = [self._words(f, v).with_element("float") for v in range(self.nv)]
        scale = [f.load(type, f.offset(scales, 4 * f.lanes * v)) for v, type in enumerate(types)] * self.mr
        reals = [f.emit(type, f"sitofp {total} to {type}") for total, type in zip(totals, types * self.mr, strict=True)]
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

    def _makes_rows(self, target: Target) -> bool:
        """Whether less than four vectors of a row become bytes by themselves, so that none have to be moved apart."""
        return has_rows(target, self.type) and not (self.together or self.large) and self.epilogue == IDENTITY

    def _clamped(self, f: Function, numbers: Numbers, bytes: Value) -> Value:
        """Bytes within the bounds."""
        if not self.clamps:
            return bytes
        prefix, lanes = "s" if self.type == "i8" else "u", range(bytes.type.lanes)
        low, high = (f.shuffle(bound, bound, lanes) for bound in (numbers.low, numbers.high))
        return f.intrinsic(f"llvm.{prefix}min", f.intrinsic(f"llvm.{prefix}max", bytes, low), high)

    def _check(self, target: Target) -> None:
        if not 1 <= self.mr <= len(ROW_ADDRESS):
            raise CompileError(f"{self.name}: mr must be 1 to {len(ROW_ADDRESS)}, got {self.mr}.")
        if not 0 <= self.short < STEP or (self.short and self.walk != "steps"):
            raise CompileError(f"{self.name}: short steps have 1 to {STEP - 1} bytes and a table.")
        if self.half and not has_halves(target):
            raise CompileError(f"{self.name}: {target.name} has no halves of vectors.")
        if self.half and (not self.ragged or self.shifted or self.large or self.nudged):
            raise CompileError(
                f"{self.name}: half a vector is the last of a ragged kernel that is neither shifted, large nor nudged."
            )
        if self.together and (self.nv > 2 or self.ragged or self.sums):
            raise CompileError(f"{self.name}: pixels of one or two whole vectors of bytes can lie together.")
        if self.sums and self.epilogue != IDENTITY:
            raise CompileError(f"{self.name}: sums have no epilogue.")
        if operand_count(self.epilogue) - len(parameters_of(self.epilogue)) > 2:
            raise CompileError(f"{self.name}: there is one operand beside the sum, the residual.")


def _splat(f: Function, number: Value, element: str, lanes: int) -> Value:
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


@record(frozen=True)
class QuantizedPack(KernelSpec):
    """Panels of weights with what belongs to their channels. They may also be computed in every run.

    ``channels`` rows of ``taps`` x ``depth`` weights are read at ``source``, ``source_row`` bytes apart; or,
    ``by_depth``, ``depth`` rows (of one tap), in which channels are neighbours. There are ``panels`` whole panels of
    ``nv`` vectors, and one of ``rest_nv``; ``order`` and ``rest_order`` are tables of what
    `gossamer.codegen.dots.order` says for both. ``source`` and ``destination`` may be the first of ``images`` matrices,
    ``source_image`` and ``destination_image`` bytes apart. Threads share images x vectors.

    ``bias`` are int32, ``scales`` float32, ``bias_step`` and ``scale_step`` bytes apart (0: one for all channels).
    ``offset`` is the zero point of activations as they are multiplied, ``weight_zero`` that of weights as signed bytes.
    ``unsigned``: weights are uint8, of which the top bit is changed. Channels that do not exist repeat the last one.
    """

    unsigned: bool = False
    by_depth: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        source="ptr",
        destination="ptr",
        bias="ptr",
        scales="ptr",
        bias_step="i64",
        scale_step="i64",
        channels="i64",
        taps="i64",
        depth="i64",
        source_row="i64",
        nv="i64",
        panels="i64",
        rest_nv="i64",
        order="ptr",
        rest_order="ptr",
        offset="i64",
        weight_zero="i64",
        images="i64",
        source_image="i64",
        destination_image="i64",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("u8" if self.unsigned else "i8", "pack", "depth" if self.by_depth else "channel")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        lanes = f.lanes
        size = 4 * lanes
        vectors = (a.channels + (lanes - 1)) // lanes
        steps = a.taps * ((a.depth + (STEP - 1)) // STEP)
        with f.share(a.images * vectors) as task:
            image = task // vectors
            number = task - image * vectors
            panel = number // a.nv
            inside = number - panel * a.nv
            is_last = f.compare("eq", panel, a.panels)
            stride = f.select(is_last, a.rest_nv, a.nv) * size
            row = f.offset(f.select(is_last, a.rest_order, a.order), inside * 16)
            first = panel * a.nv * lanes + f.load(I64, row)
            channels = _Channels(f, a.channels, first, f.load(I64, f.offset(row, 8)))
            source = f.offset(a.source, image * a.source_image)
            destination = f.offset(a.destination, image * a.destination_image)
            destination = f.offset(destination, panel * a.nv * size * (steps + HEADER) + inside * size)
            weights = f.offset(destination, stride * HEADER)
            if self.by_depth:
                sums = self._by_depth(f, a, source, channels, weights, stride)
            else:
                sums = self._by_channel(f, a, source, channels, weights, stride)
            # Less the zero point of the weights, as often as there are bytes of depth.
            sums = f.wrapping("sub", sums, _splat(f, steps * STEP * a.weight_zero, "i32", lanes))
            sums = f.wrapping("mul", sums, _splat(f, a.offset, "i32", lanes))
            bias = f.gathered(vector("i32", 1), [f.offset(a.bias, one * a.bias_step) for one in channels.numbers])
            f.store(f.wrapping("sub", bias, sums), destination)
            scales = f.gathered(F32, [f.offset(a.scales, one * a.scale_step) for one in channels.numbers])
            f.store(scales, f.offset(destination, stride))
        return module.text()

    def _by_channel(
        self, f: Function, a: Arguments, source: Value, channels: _Channels, to: Value, stride: Value
    ) -> Value:
        """Write all steps; the sums of the weights."""
        lanes, words = f.lanes, vector("i32", f.lanes)
        whole, rest = a.depth & -STEP, a.depth & (STEP - 1)
        blocks, fours = whole & -(STEP * lanes), whole & -(4 * STEP)
        rows = [f.offset(source, number * a.source_row) for number in channels.numbers]
        tap_bytes = ((a.depth + (STEP - 1)) // STEP) * stride
        with f.loop(0, a.taps, carry=[f.constant(words, 0)]) as taps:
            at = taps.index * a.depth
            tap = f.offset(to, taps.index * tap_bytes)
            with f.loop(0, blocks, STEP * lanes, carry=taps.values) as loop:
                columns = [f.load(words, f.offset(row, at + loop.index)) for row in rows]
                place, sums = f.offset(tap, (loop.index // STEP) * stride), loop.values[0]
                for column in transpose(f, columns):
                    sums = self._store(f, column, place, sums)
                    place = f.offset(place, stride)
                loop.hand_on([sums])
            with f.loop(blocks, fours, 4 * STEP, carry=loop.results) as four:
                parts = [f.load(vector("i32", 4), f.offset(row, at + four.index)) for row in rows]
                place, sums = f.offset(tap, (four.index // STEP) * stride), four.values[0]
                for column in columns_of_four(f, parts):
                    sums = self._store(f, column, place, sums)
                    place = f.offset(place, stride)
                four.hand_on([sums])
            with f.loop(fours, whole, STEP, carry=four.results) as single:
                column = f.gathered(I32, [f.offset(row, at + single.index) for row in rows])
                place = f.offset(tap, (single.index // STEP) * stride)
                single.hand_on([self._store(f, column, place, single.values[0])])
            with f.loop(0, rest, STEP, carry=single.results) as last:
                column = f.constant(words, 0)
                for byte, (index, is_new) in enumerate(_last_step(f, a.depth)):
                    bytes = f.gathered(vector("i8", 1), [f.offset(row, at + index) for row in rows])
                    column = self._with_byte(f, a, column, bytes, byte, is_new)
                place = f.offset(tap, (whole // STEP) * stride)
                last.hand_on([self._store(f, column, place, last.values[0], flipped=True)])
            taps.hand_on(last.results)
        return taps.results[0]

    def _by_depth(
        self, f: Function, a: Arguments, source: Value, channels: _Channels, to: Value, stride: Value
    ) -> Value:
        """Write all steps; the sums of the weights."""
        words = vector("i32", f.lanes)
        whole, rest = a.depth & -STEP, a.depth & (STEP - 1)
        is_inside = f.compare("slt", channels.last, a.channels)
        sums = f.constant(words, 0)
        # Four neighbours at a time, unless the last of them are not there.
        fast, slow = f.select(is_inside, whole, 0), f.select(is_inside, f.integer(0), whole)
        for end, in_fours in ((fast, True), (slow, False)):
            with f.loop(0, end, STEP, carry=[sums]) as loop:
                rows = [f.offset(source, (loop.index + byte) * a.source_row) for byte in range(STEP)]
                column = _words(f, [channels.load(row, in_fours) for row in rows])
                place = f.offset(to, (loop.index // STEP) * stride)
                loop.hand_on([self._store(f, column, place, loop.values[0])])
            sums = loop.results[0]
        with f.loop(0, rest, STEP, carry=[sums]) as last:
            column = f.constant(words, 0)
            for byte, (index, is_new) in enumerate(_last_step(f, a.depth)):
                bytes = channels.load(f.offset(source, index * a.source_row), False)
                column = self._with_byte(f, a, column, bytes, byte, is_new)
            place = f.offset(to, (whole // STEP) * stride)
            last.hand_on([self._store(f, column, place, last.values[0], flipped=True)])
        return last.results[0]

    def _with_byte(self, f: Function, a: Arguments, column: Value, bytes: Value, byte: int, is_new: Value) -> Value:
        """A byte of every word of the last step: what is counted elsewhere is the zero point."""
        if self.unsigned:
            bytes = bytes ^ -128
        wide = f.emit(column.type, f"zext {bytes} to {column.type}")
        zero = f.splat(f.emit(I32, f"trunc {a.weight_zero & 0xFF} to i32"), column.type.lanes)
        return column | (f.select(f.splat(is_new, column.type.lanes), wide, zero) << 8 * byte)

    def _store(self, f: Function, column: Value, to: Value, sums: Value, flipped: bool = False) -> Value:
        """Write a step; the sums with its weights."""
        if self.unsigned and not flipped:
            column = column ^ f.constant(column.type, TOP_BITS)
        f.store(_in_pairs(f, column) if is_paired(f.target) else column, to)
        if f.target.dot:
            dots = Dots(f, "i8")
            return dots.add(sums, dots.ones(), f.emit(dots.bytes, f"bitcast {column} to {dots.bytes}"))
        for shift in (24, 16, 8, 0):
            high = f.wrapping("shl", column, shift) if shift else column
            sums = f.wrapping("add", sums, f.wrapping("ashr", high, 24))
        return sums


def columns_of_four(f: Function, rows: list[Value]) -> list[Value]:
    """The four columns of rows of four."""
    lanes = len(rows)
    # The rows whose numbers differ by multiples of four become one vector; then blocks of four by four are transposed.
    found = []
    for first in range(4):
        parts = rows[first::4]
        while len(parts) > 1:
            parts = [f.shuffle(a, b, range(2 * a.type.lanes)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        found += parts
    columns = []
    for half in (0, 2):
        left, right = (
            f.shuffle(
                a, b, [block + half + lane // 2 + lane % 2 * lanes for block in range(0, lanes, 4) for lane in range(4)]
            )
            for a, b in (found[:2], found[2:])
        )
        for start in (0, 2):
            order = [block + start + lane % 2 + lane // 2 * lanes for block in range(0, lanes, 4) for lane in range(4)]
            columns.append(f.shuffle(left, right, order))
    return columns


def _words(f: Function, bytes: list[Value]) -> Value:
    """The lanes of four vectors of bytes as the bytes of words."""
    lanes = f.lanes
    low, high = (f.shuffle(a, b, range(2 * lanes)) for a, b in (bytes[:2], bytes[2:]))
    together = f.shuffle(low, high, [byte * lanes + lane for lane in range(lanes) for byte in range(STEP)])
    return f.emit(vector("i32", lanes), f"bitcast {together} to {vector('i32', lanes)}")


def _in_pairs(f: Function, column: Value) -> Value:
    """The first two bytes of every word, then the other two."""
    lanes = column.type.lanes
    pairs = f.emit(vector("i16", 2 * lanes), f"bitcast {column} to {vector('i16', 2 * lanes)}")
    return f.shuffle(pairs, pairs, [*range(0, 2 * lanes, 2), *range(1, 2 * lanes, 2)])


class _Channels:
    """Which channels the lanes of a vector have: runs of four neighbours, and the last for what is behind."""

    def __init__(self, f: Function, count: Value, first: Value, step: Value) -> None:
        self.f = f
        self.runs = [first + step * run for run in range(f.lanes // 4)]
        self.last = self.runs[-1] + 3
        self.numbers = [f.least(run + lane, count - 1) for run in self.runs for lane in range(4)]

    def load(self, row: Value, in_fours: bool) -> Value:
        """Their bytes in a row."""
        f = self.f
        if not in_fours:
            return f.gathered(vector("i8", 1), [f.offset(row, number) for number in self.numbers])
        words = f.gathered(I32, [f.offset(row, run) for run in self.runs])
        type = vector("i8", f.lanes)
        return f.emit(type, f"bitcast {words} to {type}")


def _last_step(f: Function, depth: Value) -> list[tuple[Value, Value]]:
    """For each byte of a last step that is not like the others, where it is in depth and whether it counts: of a short
    depth its bytes, then the last one again; else the last four bytes."""
    start = f.greatest(depth - STEP, 0)
    counted = depth & -STEP
    found = []
    for byte in range(STEP):
        at = start + byte
        found.append((f.least(at, depth - 1), f.compare("sge", at, counted) & f.compare("slt", at, depth)))
    return found
