"""`quantized_contract`: the tiles of `contract` for bytes: sums of products in 32 bits, and what becomes of them.

``bias + sum of (a - a_zero) * (b - b_zero)`` is exact. Drivers are those of `contract`, which know bytes only.

A panel of nv vectors of channels holds all that belongs to its channels, in vectors one after the other: nv of the bias
(int32), nv of the scales (float32), and then for every step of depth nv vectors of words, each of four bytes of a
channel. `QuantizedPack` makes it of the weights as the model has them. It folds zero points into the bias, and puts
channels where they have to be for bytes to come out in order (`gossamer.codegen.dots`).

A step of depth is four bytes of a tap. Where the depth of a tap is no multiple of four, the last step reads the last
four bytes of the tap again, and the weights of those that have been counted are the zero point of the weights; taps of
less than four bytes are read byte by byte. Nothing is read that is not there.

What sums become is the kernel's output (`gossamer.codegen.kernels.outputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, product
from typing import ClassVar, Literal

from gossamer.codegen.basis import BYTE_ENDINGS, BYTES, RELU, RELU6
from gossamer.codegen.dots import (
    BLOCK,
    Byte,
    Dots,
    adds_pairs,
    crosses,
    has_halves,
    is_paired,
    multiplies_pairs,
    products_of_pairs,
    takes_signs,
)
from gossamer.codegen.expression import IDENTITY, name_of
from gossamer.codegen.ir import F32, I32, I64, Arguments, Function, Module, Value, vector
from gossamer.codegen.kernels.contract import LINE, ROW_ADDRESS, UNROLL
from gossamer.codegen.kernels.dynamic import levels_of
from gossamer.codegen.kernels.outputs import (
    Dequantized,
    Output,
    Pointers,
    Requantized,
    Sums,
    Tile,
    rows_at,
    splat_bits,
)
from gossamer.codegen.kernels.pack import transpose
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.codegen.tiles import WIDENED_ROWS, closed_tiles, few_tiles
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


@record(frozen=True)
class QuantizedGemm(KernelSpec):
    """A microkernel: c = output(bias + a b) for mr rows and nv vectors of channels.

    ``void k(ptr a, ptr b, ptr bias, ptr c, ptr residual, ptr next, ptr shape)``; b is a panel, ``bias`` is not read.
    ``shape`` is the argument block:

    - ``depth``: bytes of a tap, a multiple of `STEP`; ``taps`` and ``tap_offsets``: their number and offsets in bytes.
    - ``a_stride``, ``c_stride``, ``residual_stride``: bytes from row to row.
    - ``tail``: channels in the panel, if the kernel is ragged. It writes no others of c and reads none of residual.
    - ``weight_zero``: the zero point of the signed weights; and what the ``output`` asks for.

    ``type``: that of a. ``walk``: how depth is walked through. "": there is one tap, at offset 0; "taps": there is a
    table of them; "steps": it has an offset for every step. ``short``: a step has only so many bytes. ``shifted``:
    weights have a zero point that is not 0. ``prefetch`` as in `Gemm`. ``half``: of the last vector only the first half
    of the channels is there, at most; such a kernel is ragged, and not shifted. ``by_sign``: as `takes_signs` tells, of
    panels that are so, too. ``widened``: elements of a have 16 bits (`gossamer.codegen.kernels.widen`), so that they
    are multiplied as they are. ``narrow``: no weight is -128, which `adds_pairs` makes use of.
    """

    mr: int
    nv: int
    type: Byte = "i8"
    output: Output = Requantized()
    walk: Walk = ""
    short: int = 0
    ragged: bool = False
    shifted: bool = False
    prefetch: int = 0
    half: bool = False
    by_sign: bool = False
    widened: bool = False
    narrow: bool = False

    targets = "bytes"

    @property
    def arguments(self) -> ArgumentBlock:  # type: ignore[override]  # of each output others
        """Those of `WALK`, and the output's."""
        return self.output.arguments

    @property
    def parts(self) -> tuple[str, ...]:
        kind = {"": "gemm", "taps": "conv", "steps": "steps"}[self.walk] + str(self.short or "")
        return (*self.output.label(self.type), kind, name_of(self.output.epilogue), f"{self.mr}x{self.nv}")

    @property
    def variant(self) -> str:
        own = [name for name in ("by_sign", "half", "narrow", "ragged", "shifted", "widened") if getattr(self, name)]
        return "_".join(filter(None, (*sorted((*self.output.flags, *own)), f"p{self.prefetch}" * bool(self.prefetch))))

    def general(self) -> Iterator[KernelSpec]:
        if self.narrow:
            yield from (spec for one in self._wider() for spec in (one, replace(one, narrow=False)))
            yield replace(self, narrow=False)
        else:
            yield from self._wider()

    def _wider(self) -> Iterator[QuantizedGemm]:
        # There is always a table of taps; and a zero point that changes nothing may be applied.
        walk: Walk = self.walk or "taps"
        for prefetch, other in product(dict.fromkeys((self.prefetch, 0)), dict.fromkeys((self.walk, walk))):
            for output in self.output.general():
                yield replace(self, prefetch=prefetch, walk=other, output=output)
            yield replace(self, prefetch=prefetch, walk=other, output=output, shifted=True)
            if isinstance(output, Requantized):
                yield replace(self, prefetch=prefetch, walk=other, output=replace(output, nudged=True), shifted=True)

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        narrow = adds_pairs(target)
        for spec in chain((replace(spec, narrow=narrow) for spec in cls._frequent(target)), cls._any(target)):
            spec = replace(spec, by_sign=not spec.widened and takes_signs(target, spec.type, spec.mr))
            # Of wide panels in 16 registers only what is most frequent.
            is_frequent = spec.nv == 8 and spec.walk == "taps" and spec.by_sign and not spec.ragged
            if spec.nv <= 4 or target.vector_bits > 256 or is_frequent:
                yield spec

    @classmethod
    def _frequent(cls, target: Target) -> Iterator[QuantizedGemm]:
        """What ships of all tiles, before it is known which are ``by_sign`` and ``narrow``."""
        isa, levels = target.name, levels_of(target)
        clamped, large = Requantized(clamps=True), Requantized(clamps=True, large=True)
        lasts = [(False, False), (True, False)] + [(True, True)] * has_halves(target)
        for (mr, nv), (ragged, half) in product(closed_tiles(target, "quantized_gemm"), lasts):
            if not half:
                for output in (
                    Dequantized(RELU6),
                    Dequantized(("add", 0, 1)),
                    *(Dequantized(*form) for form in product((IDENTITY, RELU), (False, True))),
                ):
                    yield cls(isa, mr, nv, levels, output, "taps", ragged=ragged)
            if min(mr, nv) > 1 and crosses(target):
                continue  # these are `gossamer.codegen.kernels.inner_products`
            for ending in BYTE_ENDINGS:
                yield cls(isa, mr, nv, "i8", Requantized(ending), "taps", ragged=ragged, half=half)
            walks: tuple[Walk, ...] = ("taps", "steps")
            yield from (cls(isa, mr, nv, "i8", clamped, walk, ragged=ragged, half=half) for walk in walks)
            if not half:
                # Unsigned weights have a zero point; few are 128, which is none.
                yield from (cls(isa, mr, nv, "u8", large, walk, ragged=ragged, shifted=True) for walk in walks)
        if crosses(target):
            plain = [replace(clamped, epilogue=ending, clamps=False) for ending in (IDENTITY, BYTE_ENDINGS[-1])]
            for mr, ragged, of_bytes in product(WIDENED_ROWS, (False, True), (clamped, *plain)):
                yield cls(isa, mr, 1, "i8", of_bytes, "steps", ragged=ragged, widened=True)

    @classmethod
    def _any(cls, target: Target) -> Iterator[QuantizedGemm]:
        """What ships of a few tiles, and is anything, before it is known which are ``by_sign``."""
        isa, levels = target.name, levels_of(target)
        large = Requantized(clamps=True, large=True)
        # Any depth is one of these ways.
        depths: list[tuple[Walk, int]] = [("taps", 0), *(("steps", short) for short in range(STEP))]
        for (mr, nv), ragged, depth in product(few_tiles(target, "quantized_gemm"), (False, True), depths):
            yield from (cls(isa, mr, nv, levels, Dequantized(image=image), *depth, ragged) for image in (False, True))
            if min(mr, nv) > 1 and crosses(target):
                continue
            for type in BYTES:
                yield cls(isa, mr, nv, type, large, *depth, ragged)
                yield cls(isa, mr, nv, type, replace(large, nudged=True), *depth, ragged, True)
                yield cls(isa, mr, nv, type, Sums(), *depth, ragged, True)

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.microkernel("a", "b", "bias", "c", "residual", "next", "shape")
        a, b, bias, c, residual, following, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        tile = Tile(f, shape, self.type, self.mr, self.nv, self.ragged, self.half)
        self._check(tile)
        at = Pointers(a, b, bias, c, residual)
        dots = Dots(f, self.type, self.by_sign, self.narrow)
        size, vectors = 4 * f.lanes, self.mr * self.nv
        sums = self.output.begin(tile, b) * self.mr
        # Those of rows too, which are quicker to make from whole vectors where rows lie in one piece.
        apart = self.shifted and self.walk == "" and not (dots.widens or self.by_sign)
        if self.shifted and not apart:
            sums += [f.constant(dots.words, 0)] * self.mr
        # So is what a single row adds too much, where taps are not cut into steps.
        alone = self.by_sign and self.walk != "steps"
        if self.by_sign and not alone:
            sums.append(f.constant(dots.words, 0))
        self.output.fetch(tile, at)
        weights = f.offset(b, HEADER * self.nv * size)
        sums = self._sums(f, dots, shape, a, weights, following, sums)

        if alone:
            sums.extend(self._over_rows(f, dots, shape, a, dots.add_excess))
        if self.by_sign:
            *sums, excess = sums
            sums = [f.wrapping("sub", sum, excess) for sum in sums]
        totals = sums[:vectors]
        if self.shifted:
            zero = splat_bits(f, shape.weight_zero, "i32", f.lanes)
            of_rows = self._over_rows(f, dots, shape, a, dots.add_one) if apart else sums[vectors:]
            for i in range(self.mr):
                of_row = f.wrapping("mul", of_rows[i], zero)
                for v in range(self.nv):
                    totals[i * self.nv + v] = f.wrapping("sub", totals[i * self.nv + v], of_row)
        self.output.finish(tile, totals, at)
        return module.text()

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

    def _over_rows(
        self, f: Function, dots: Dots, shape: Arguments, a: Value, add: Callable[[Value, Value], Value]
    ) -> list[Value]:
        """What ``add`` makes of 0 and all of the depth of every row, in all lanes."""
        zeros = [f.constant(dots.words, 0)] * self.mr
        if self.walk == "":
            return self._over_tap(f, dots, shape, a, add, zeros)
        with f.loop(0, shape.taps, carry=zeros) as taps:
            tap = f.offset(a, f.load(I64, f.at(shape.tap_offsets, taps.index, "i64")))
            taps.hand_on(self._over_tap(f, dots, shape, tap, add, taps.values))
        return taps.results

    def _over_tap(
        self,
        f: Function,
        dots: Dots,
        shape: Arguments,
        a: Value,
        add: Callable[[Value, Value], Value],
        sums: Sequence[Value],
    ) -> list[Value]:
        rows = rows_at(f, a, shape.a_stride, self.mr)
        whole = shape.depth & -dots.bytes.lanes
        with f.loop(0, whole, dots.bytes.lanes, carry=[f.constant(dots.words, 0)] * self.mr) as blocks:
            parts = [dots.activations(f.offset(row, blocks.index)) for row in rows]
            blocks.hand_on([add(sum, x) for sum, x in zip(blocks.values, parts, strict=True)])
        whole_sums = [f.splat(f.fold(lambda a, b: f.wrapping("add", a, b), sum), f.lanes) for sum in blocks.results]
        sums = [f.wrapping("add", sum, more) for sum, more in zip(sums, whole_sums, strict=True)]
        with f.loop(whole, shape.depth, dots.depth, carry=sums) as rest:
            words = [dots.activation(self._word(f, f.offset(row, rest.index), 0, dots.depth)) for row in rows]
            rest.hand_on([add(sum, x) for sum, x in zip(rest.values, words, strict=True)])
        return rest.results

    def _depth(
        self, f: Function, dots: Dots, shape: Arguments, a: Value, b: Value, following: Value, sums: list[Value]
    ) -> list[Value]:
        """The sums plus one tap."""
        panel_byte = self.nv * f.lanes
        if dots.widens and not self.widened:
            with f.loop(0, shape.depth, BLOCK, carry=sums) as blocks:
                bytes = f.least(shape.depth - blocks.index, BLOCK)
                self._widen(f, dots, rows_at(f, f.offset(a, blocks.index), shape.a_stride, self.mr), bytes)
                panel = f.offset(b, blocks.index * panel_byte)
                fetch = f.offset(following, blocks.index * (self.prefetch * LINE // (STEP * UNROLL)))
                with f.loop(0, bytes, STEP, carry=blocks.values) as loop:
                    self._prefetch(f, fetch, loop.index)
                    here, index = f.offset(panel, loop.index * panel_byte), loop.index
                    loop.hand_on(self._products(f, dots, partial(_widened, dots, index), here, loop.values))
                blocks.hand_on(loop.results)
            return blocks.results
        whole = f.integer(0)
        if dots.takes_elements and len(sums) + self.mr + self.nv <= f.target.registers:
            whole = shape.depth & -dots.bytes.lanes
            sums = self._blocks(f, dots, rows_at(f, a, shape.a_stride, self.mr), whole, b, following, sums)
        with f.loop(whole, shape.depth, STEP, carry=sums) as loop:
            self._prefetch(f, following, loop.index)
            x, panel = f.offset(a, loop.index * self._item), f.offset(b, loop.index * panel_byte)
            loop.hand_on(self._step(f, dots, shape, x, panel, loop.values))
        return loop.results

    def _blocks(
        self,
        f: Function,
        dots: Dots,
        rows: Sequence[Value],
        depth: Value,
        b: Value,
        following: Value,
        sums: list[Value],
    ) -> list[Value]:
        """The sums plus so much of a tap, in whole vectors of every row."""
        count = dots.bytes.lanes
        with f.loop(0, depth, count, carry=sums) as loop:
            self._prefetch(f, following, loop.index, count // STEP)
            blocks = [dots.activations(f.offset(row, loop.index)) for row in rows]
            sums = loop.values
            for at in range(count // STEP):
                panel = f.offset(b, (loop.index + STEP * at) * (self.nv * f.lanes))
                sums = self._products(f, dots, partial(_element, dots, blocks, at), panel, sums)
                f.keep_order()
            loop.hand_on(sums)
        return loop.results

    def _prefetch(self, f: Function, following: Value, index: Value, steps: int = 1) -> None:
        """Fetch what belongs to so many steps of depth."""
        if self.prefetch:
            fetch = f.offset(following, index * (self.prefetch * LINE // (STEP * UNROLL)))
            for line in range(-(-self.prefetch * steps // UNROLL)):
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
        if dots.widens and not self.widened:
            for i, row in enumerate(rows_at(f, a, shape.a_stride, self.mr)):
                four = vector("i8", STEP)
                dots.widen(i, f.emit(four, f"bitcast {self._word(f, row, 0, STEP)} to {four}"), 0)
                f.keep_order()
            return self._products(f, dots, partial(_widened, dots, f.integer(0)), b, sums)
        stride = shape.a_stride
        strides = {0: f.integer(0), 1: stride, 3: stride * 3, 5: stride * 5}
        starts = {0: a, 7: f.offset(a, stride * 7)}

        def activation(i: int, first: int) -> Value:
            start, multiple, scale = ROW_ADDRESS[i]
            row = f.offset(starts[start], strides[multiple] * scale)
            return dots.activation(self._word(f, row, first, dots.depth))

        return self._products(f, dots, activation, b, sums)

    def _products(
        self, f: Function, dots: Dots, activation: Callable[[int, int], Value], b: Value, sums: list[Value]
    ) -> list[Value]:
        """The sums plus one step of depth: ``activation(row, first byte)`` as `Dots.add` takes them."""
        sums = list(sums)
        for first in range(0, STEP, dots.depth):
            whole = self.nv - self.half
            weights = [dots.weights(f.offset(b, (STEP * v + first) * f.lanes)) for v in range(whole)]
            if self.half:
                weights.append(dots.half_weights(f.offset(b, (STEP * whole + first) * f.lanes)))
            for rows in self._in_groups(f.target):
                known = [activation(i, first) for i in rows]
                if self.narrow:
                    known = f.pinned(known)
                for i, x in zip(rows, known, strict=True):
                    for v in range(self.nv):
                        of_vector = x if v < whole else dots.half(x)
                        sums[i * self.nv + v] = dots.add(sums[i * self.nv + v], of_vector, weights[v])
                    row = self.mr * self.nv + i
                    in_steps = self.by_sign and self.walk == "steps"
                    if in_steps:
                        sums[-1] = dots.add_excess(sums[-1], x)
                    if row < len(sums) - in_steps:
                        sums[row] = dots.add_one(sums[row], x)
                if self.narrow:
                    done = slice(rows[0] * self.nv, (rows[-1] + 1) * self.nv)
                    sums[done] = f.pinned(sums[done])
        return sums

    def _in_groups(self, target: Target) -> list[range]:
        """Rows whose products may wait to be added while others are multiplied. Where two are added before, LLVM's
        scheduler would multiply all rows first: as many are together as there are registers for."""
        free = target.registers - (self.mr + 1) * self.nv - 1
        count = max(1, free // (self.nv + 1)) if self.narrow else 1
        return [range(first, min(first + count, self.mr)) for first in range(0, self.mr, count)]

    def _word(self, f: Function, pointer: Value, first: int, count: int) -> Value:
        """So many bytes of a step, 0 for those that it has not."""
        type = vector(f"i{8 * self._item * count}", 1)
        if not self.short:
            return f.emit(type, f"load {type}, {f.offset(pointer, self._item * first)}, align 1")
        word = f.constant(type, 0)
        for at in range(first, min(first + count, self.short)):
            byte = f.load(vector("i8", 1), f.offset(pointer, at))
            word = word | (f.emit(type, f"zext {byte} to {type}") << 8 * (at - first))
        return word

    @property
    def _item(self) -> int:
        """Bytes of an element of a."""
        return 2 if self.widened else 1

    def _check(self, tile: Tile) -> None:
        target = tile.f.target
        if not 1 <= self.mr <= len(ROW_ADDRESS):
            raise CompileError(f"{self.name}: mr must be 1 to {len(ROW_ADDRESS)}, got {self.mr}.")
        if not 0 <= self.short < STEP or (self.short and self.walk != "steps"):
            raise CompileError(f"{self.name}: short steps have 1 to {STEP - 1} bytes and a table.")
        if self.half and not has_halves(target):
            raise CompileError(f"{self.name}: {target.name} has no halves of vectors.")
        if self.half and (not self.ragged or self.shifted):
            raise CompileError(
                f"{self.name}: half a vector is the last of a ragged kernel that is neither shifted, large nor nudged."
            )
        if self.by_sign and not takes_signs(target, self.type, self.mr):
            raise CompileError(f"{self.name}: only a row of int8 is multiplied by sign, and not on {target.name}.")
        if self.narrow and not adds_pairs(target):
            raise CompileError(f"{self.name}: {target.name} multiplies -128 as any other weight.")
        if self.widened and (not multiplies_pairs(target) or self.short or self.by_sign or self.shifted):
            raise CompileError(f"{self.name}: what is widened before are whole steps of pairs that are not shifted.")
        self.output.check(self.name, tile)


def _element(dots: Dots, blocks: Sequence[Value], number: int, row: int, _: int) -> Value:
    return dots.element(blocks[row], number)


def _widened(dots: Dots, start: Value, row: int, first: int) -> Value:
    return dots.activation(dots.widened(start, row, first))


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
    ``wide``: weights become 16 bits, less their zero point, and the sum of their own products comes off the bias, for
    `gossamer.codegen.kernels.inner_products`. ``by_sign``: the four bytes of a channel are neighbours, where they are
    pairs otherwise.
    """

    unsigned: bool = False
    by_depth: bool = False
    wide: bool = False
    by_sign: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *destination *bias *scales bias_step scale_step channels taps depth source_row nv panels rest_nv "
        "*order *rest_order offset weight_zero images source_image destination_image"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("u8" if self.unsigned else "i8", "pack", "depth" if self.by_depth else "channel")

    @property
    def variant(self) -> str:
        return "wide" * self.wide + "by_sign" * self.by_sign

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        ways = ((False, False), (True, False), (False, True))[: 3 if crosses(target) else 1]
        for unsigned, by_depth, (wide, by_sign) in product((False, True), (False, True), ways):
            yield cls(target.name, unsigned, by_depth, wide, by_sign)

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
            in_panels = panel * a.nv * size * ((steps * 2 if self.wide else steps) + HEADER)
            destination = f.offset(destination, in_panels + inside * size)
            weights = f.offset(destination, stride * HEADER)
            if self.wide:
                weights = f.offset(weights, inside * size)
            if self.by_depth:
                sums, *own = self._by_depth(f, a, source, channels, weights, stride)
            else:
                sums, *own = self._by_channel(f, a, source, channels, weights, stride)
            if not self.wide:
                # Less the zero point of the weights, as often as there are bytes of depth.
                sums = f.wrapping("sub", sums, splat_bits(f, steps * STEP * a.weight_zero, "i32", lanes))
            sums = f.wrapping("mul", sums, splat_bits(f, a.offset, "i32", lanes))
            for of_products in own:
                sums = f.wrapping("add", sums, of_products)
            bias = f.gathered(vector("i32", 1), [f.offset(a.bias, one * a.bias_step) for one in channels.numbers])
            f.store(f.wrapping("sub", bias, sums), destination)
            scales = f.gathered(F32, [f.offset(a.scales, one * a.scale_step) for one in channels.numbers])
            f.store(scales, f.offset(destination, stride))
        return module.text()

    def _by_channel(
        self, f: Function, a: Arguments, source: Value, channels: _Channels, to: Value, stride: Value
    ) -> list[Value]:
        """Write all steps; the sums of the weights and, if they are wide, of their own products."""
        lanes, words = f.lanes, vector("i32", f.lanes)
        whole, rest = a.depth & -STEP, a.depth & (STEP - 1)
        blocks, fours = whole & -(STEP * lanes), whole & -(4 * STEP)
        rows = [f.offset(source, number * a.source_row) for number in channels.numbers]
        stride = self._step_bytes(stride)
        tap_bytes = ((a.depth + (STEP - 1)) // STEP) * stride
        with f.loop(0, a.taps, carry=self._begin(f)) as taps:
            at = taps.index * a.depth
            tap = f.offset(to, taps.index * tap_bytes)
            with f.loop(0, blocks, STEP * lanes, carry=taps.values) as loop:
                columns = [f.load(words, f.offset(row, at + loop.index)) for row in rows]
                place, sums = f.offset(tap, (loop.index // STEP) * stride), loop.values
                for column in transpose(f, columns):
                    sums = self._store(f, a, column, place, sums)
                    place = f.offset(place, stride)
                loop.hand_on(sums)
            with f.loop(blocks, fours, 4 * STEP, carry=loop.results) as four:
                parts = [f.load(vector("i32", 4), f.offset(row, at + four.index)) for row in rows]
                place, sums = f.offset(tap, (four.index // STEP) * stride), four.values
                for column in columns_of_four(f, parts):
                    sums = self._store(f, a, column, place, sums)
                    place = f.offset(place, stride)
                four.hand_on(sums)
            with f.loop(fours, whole, STEP, carry=four.results) as single:
                column = f.gathered(I32, [f.offset(row, at + single.index) for row in rows])
                place = f.offset(tap, (single.index // STEP) * stride)
                single.hand_on(self._store(f, a, column, place, single.values))
            with f.loop(0, rest, STEP, carry=single.results) as last:
                column = f.constant(words, 0)
                for byte, (index, is_new) in enumerate(_last_step(f, a.depth)):
                    bytes = f.gathered(vector("i8", 1), [f.offset(row, at + index) for row in rows])
                    column = self._with_byte(f, a, column, bytes, byte, is_new)
                place = f.offset(tap, (whole // STEP) * stride)
                last.hand_on(self._store(f, a, column, place, last.values, flipped=True))
            taps.hand_on(last.results)
        return taps.results

    def _by_depth(
        self, f: Function, a: Arguments, source: Value, channels: _Channels, to: Value, stride: Value
    ) -> list[Value]:
        """Write all steps; the sums of the weights and, if they are wide, of their own products."""
        words, stride = vector("i32", f.lanes), self._step_bytes(stride)
        whole, rest = a.depth & -STEP, a.depth & (STEP - 1)
        is_inside = f.compare("slt", channels.last, a.channels)
        sums = self._begin(f)
        # Four neighbours at a time, unless the last of them are not there.
        fast, slow = f.select(is_inside, whole, 0), f.select(is_inside, f.integer(0), whole)
        for end, in_fours in ((fast, True), (slow, False)):
            with f.loop(0, end, STEP, carry=sums) as loop:
                rows = [f.offset(source, (loop.index + byte) * a.source_row) for byte in range(STEP)]
                column = _words(f, [channels.load(row, in_fours) for row in rows])
                place = f.offset(to, (loop.index // STEP) * stride)
                loop.hand_on(self._store(f, a, column, place, loop.values))
            sums = loop.results
        with f.loop(0, rest, STEP, carry=sums) as last:
            column = f.constant(words, 0)
            for byte, (index, is_new) in enumerate(_last_step(f, a.depth)):
                bytes = channels.load(f.offset(source, index * a.source_row), False)
                column = self._with_byte(f, a, column, bytes, byte, is_new)
            place = f.offset(to, (whole // STEP) * stride)
            last.hand_on(self._store(f, a, column, place, last.values, flipped=True))
        return last.results

    def _with_byte(self, f: Function, a: Arguments, column: Value, bytes: Value, byte: int, is_new: Value) -> Value:
        """A byte of every word of the last step: what is counted elsewhere is the zero point."""
        if self.unsigned:
            bytes = bytes ^ -128
        wide = f.emit(column.type, f"zext {bytes} to {column.type}")
        zero = f.splat(f.emit(I32, f"trunc {a.weight_zero & 0xFF} to i32"), column.type.lanes)
        return column | (f.select(f.splat(is_new, column.type.lanes), wide, zero) << 8 * byte)

    def _step_bytes(self, stride: Value) -> Value:
        """Bytes of a step of a panel whose vectors have so many."""
        return stride * 2 if self.wide else stride

    def _begin(self, f: Function) -> list[Value]:
        """The sums of nothing."""
        return [f.constant(vector("i32", f.lanes), 0)] * (1 + self.wide)

    def _store(
        self, f: Function, a: Arguments, column: Value, to: Value, sums: list[Value], flipped: bool = False
    ) -> list[Value]:
        """Write a step; the sums with its weights."""
        if self.unsigned and not flipped:
            column = column ^ f.constant(column.type, TOP_BITS)
        if self.wide:
            return self._store_wide(f, a, column, to, sums)
        (sum,) = sums
        f.store(_in_pairs(f, column) if is_paired(f.target) and not self.by_sign else column, to)
        if f.target.dot:
            dots = Dots(f, "i8")
            return [dots.add(sum, dots.ones(), f.emit(dots.bytes, f"bitcast {column} to {dots.bytes}"))]
        for shift in (24, 16, 8, 0):
            high = f.wrapping("shl", column, shift) if shift else column
            sum = f.wrapping("add", sum, f.wrapping("ashr", high, 24))
        return [sum]

    def _store_wide(self, f: Function, a: Arguments, column: Value, to: Value, sums: list[Value]) -> list[Value]:
        """Write a step in 16 bits: of all channels the first two weights, then the other two."""
        count = 4 * f.lanes
        pairs, zero = _in_pairs(f, column), splat_bits(f, a.weight_zero, "i16", count // 2)
        bytes = f.emit(vector("i8", count), f"bitcast {pairs} to {vector('i8', count)}")
        halves = []
        for start in (0, count // 2):
            half = f.shuffle(bytes, bytes, range(start, start + count // 2))
            wide = f.wrapping("sub", f.emit(zero.type, f"sext {half} to {zero.type}"), zero)
            f.store(wide, f.offset(to, 2 * start))
            halves.append(wide)
        ones = f.constant(zero.type, 1)
        of_all = products_of_pairs(f, f.wrapping("add", *halves), ones)
        return [
            f.wrapping("add", sum, more)
            for sum, more in zip(sums, (of_all, products_of_pairs(f, *halves)), strict=True)
        ]


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
