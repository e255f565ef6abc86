"""Sums of products of int16 activations with int8 weights, or with int16, and what becomes of them.

Sums are int32 where they cannot leave it or may wrap there, else int64. `gossamer.codegen.kernels.outputs` makes int16
of them; without that, they are the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, Literal, get_args

from gossamer.codegen.basis import WORDS_ADDED
from gossamer.codegen.expression import IDENTITY, name_of
from gossamer.codegen.ir import F32, I32, I64, Arguments, Function, Module, Part, Value, vector
from gossamer.codegen.kernels.outputs import WALK, Rescaled, Rounding, rows_at
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

BLOCK = 128
"""Pairs of products that int32 holds for certain: 2^7 x 2 x 2^15 x 2^7 = 2^30."""

UNROLL = 2

ROWS = 4
"""Pixels of a tile, if there are so many."""


def vectors_of(target: Target) -> int:
    """Vectors of channels of a tile, if there are so many."""
    return 2 if target.lanes() >= 8 else 4


def _named(output: Rescaled | None) -> tuple[str, ...]:
    """An output in a kernel's name."""
    return ("sums",) if output is None else (output.rounding, name_of(output.epilogue))


@record(frozen=True)
class PairGemm(KernelSpec):
    """A microkernel: c = output(a b) for mr rows of int16 and nv vectors of channels with int8 weights.

    ``void k(ptr a, ptr b, ptr bias, ptr c, ptr residual, ptr next, ptr shape)``. b is a panel of weights, [tap][pair of
    depth][channel][2]: what `Pack` makes of pairs, as if they were float16; an odd depth ends with a pair whose second
    weight is read and not used. ``bias`` are the numbers of its channels that the output takes, of whole vectors.
    ``shape`` is the argument block of `WALK`, with ``depth`` in elements and ``tail``, the channels in the last vector
    if the kernel is ragged, and what the output asks for.

    Sums have 32 bits and wrap, or, ``wide``, 64. Without an ``output`` they are the result, of 32 bits.
    """

    mr: int
    nv: int
    output: Rescaled | None = None
    wide: bool = False
    ragged: bool = False

    targets = "bytes"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(WALK, Rescaled.words)

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i16", "gemm", "wide" * self.wide, *_named(self.output), f"{self.mr}x{self.nv}")

    @property
    def variant(self) -> str:
        return "ragged" * self.ragged

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        outputs: list[tuple[Rescaled | None, bool]] = [(None, False)]
        for rounding, ending in product(get_args(Rounding), (IDENTITY, WORDS_ADDED)):
            outputs += [(Rescaled(rounding, ending), wide) for wide in {False, rounding != "twice"}]
        for mr, nv, ragged in product((1, ROWS), {1, vectors_of(target)}, (False, True)):
            yield from (cls(target.name, mr, nv, output, wide, ragged) for output, wide in outputs)

    def emit(self, target: Target) -> str:
        if (self.mr + 1) * self.nv + 1 > target.registers:
            raise CompileError(f"{self.name}: {target.name} has {target.registers} registers.")
        module = Module(target)
        f = module.microkernel("a", "b", "bias", "c", "residual", "next", "shape")
        x, b, bias, c, residual, _, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        mr, nv = self.mr, self.nv
        pairs = (shape.depth + 1) // 2
        total = vector("i64" if self.wide else "i32", f.lanes)
        with f.loop(0, shape.taps, carry=[f.constant(total, 0)] * (mr * nv)) as taps:
            tap = f.offset(x, f.load(I64, f.at(shape.tap_offsets, taps.index, "i64")))
            weights = f.offset(b, taps.index * (pairs * (nv * f.lanes * 2)))
            taps.hand_on(self._tap(f, rows_at(f, tap, shape.a_stride, mr), weights, shape.depth, taps.values))
        self._finish(f, shape, taps.results, bias, c, residual)
        return module.text()

    def _finish(self, f: Function, shape: Arguments, sums: list[Value], bias: Value, c: Value, residual: Value) -> None:
        """Make the result of the sums and store it."""
        output, lanes = self.output, f.lanes
        rows, others = (
            rows_at(f, start, stride, self.mr)
            for start, stride in ((c, shape.c_stride), (residual, shape.residual_stride))
        )
        store = None if output is None else output.storing(f, shape, shape.parameters)
        for v in range(self.nv):
            part = Part(f, f.f32, shape.tail if self.ragged and v == self.nv - 1 else None)
            numbers = []
            if output is not None:
                numbers = output.numbers(Part(f, f.f32), f.offset(bias, output.item * lanes * v), shape.numbers)
            for i, row in enumerate(rows):
                sum = sums[i * self.nv + v]
                if store is None:
                    part.store(sum, f.offset(row, 4 * lanes * v))
                else:
                    store(part, sum, numbers, f.offset(row, 2 * lanes * v), f.offset(others[i], 2 * lanes * v))

    def _tap(self, f: Function, x: list[Value], w: Value, depth: Value, sums: list[Value]) -> list[Value]:
        """The sums plus one tap."""
        nv, lanes = self.nv, f.lanes

        def add(index: Value, sums: list[Value], pair: Callable[[Value], tuple[Value, Value]]) -> list[Value]:
            rows = [pair(f.offset(start, index * 4)) for start in x]
            weights = [
                _widened(f, f.load(vector("i8", 2 * lanes), f.offset(w, (index * nv + v) * (2 * lanes))), "i16")
                for v in range(nv)
            ]
            return [
                f.wrapping("add", sums[i * nv + v], _products(f, rows[i], weights[v]))
                for i in range(len(x))
                for v in range(nv)
            ]

        def whole(index: Value, sums: list[Value]) -> list[Value]:
            return add(index, sums, lambda at: _pair(f, at))

        def some(first: Value, last: Value, sums: list[Value]) -> list[Value]:
            most = first + ((last - first) & -UNROLL)
            with f.loop(first, most, UNROLL, carry=sums) as loop:
                inside = loop.values
                for at in range(UNROLL):
                    inside = whole(loop.index + at, inside)
                loop.hand_on(inside)
            with f.loop(most, last, carry=loop.results) as rest:
                rest.hand_on(whole(rest.index, rest.values))
            return rest.results

        pairs = depth // 2
        if self.wide:
            zeros = [f.constant(vector("i32", lanes), 0)] * len(sums)
            with f.loop(0, pairs, BLOCK, carry=sums) as blocks:
                narrow = some(blocks.index, f.least(blocks.index + BLOCK, pairs), zeros)
                blocks.hand_on(
                    [f.wrapping("add", s, _widened(f, n, "i64")) for s, n in zip(blocks.values, narrow, strict=True)]
                )
            sums = blocks.results
        else:
            sums = some(f.integer(0), pairs, sums)
        with f.loop(pairs, (depth + 1) // 2, carry=sums) as odd:
            if self.wide:
                last = add(odd.index, zeros, lambda at: _single(f, at))
                odd.hand_on(
                    [f.wrapping("add", s, _widened(f, n, "i64")) for s, n in zip(odd.values, last, strict=True)]
                )
            else:
                odd.hand_on(add(odd.index, odd.values, lambda at: _single(f, at)))
        return odd.results


def _widened(f: Function, x: Value, element: str) -> Value:
    type = x.type.with_element(element)
    return f.emit(type, f"sext {x} to {type}")


def _pair(f: Function, pointer: Value) -> tuple[Value, Value]:
    """Two neighbours in every pair of lanes; where nothing multiplies pairs, each in every lane."""
    if f.target.triple.startswith("x86_64"):
        both = f.splat(f.emit(I32, f"load i32, {pointer}, align 2"))
        type = vector("i16", 2 * f.lanes)
        return (f.emit(type, f"bitcast {both} to {type}"),) * 2
    first, second = (f.splat(f.load(vector("i16", 1), f.at(pointer, at, "i16"))) for at in (0, 1))
    return first, second


def _single(f: Function, pointer: Value) -> tuple[Value, Value]:
    """The same of one element and a 0."""
    one = f.load(vector("i16", 1), pointer)
    if f.target.triple.startswith("x86_64"):
        both = f.splat(f.emit(I32, f"zext {one} to i32"))
        type = vector("i16", 2 * f.lanes)
        return (f.emit(type, f"bitcast {both} to {type}"),) * 2
    return f.splat(one), f.constant(vector("i16", f.lanes), 0)


def _products(f: Function, x: tuple[Value, Value], w: Value) -> Value:
    """The sums of pairs of products, in int32."""
    result = vector("i32", f.lanes)
    if f.target.triple.startswith("x86_64"):
        name = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd"}[f.lanes]
        f.module.declare(f"declare {result} @{name}({w.type}, {w.type})")
        return f.emit(result, f"call {result} @{name}({x[0]}, {w})")
    products = [
        f.wrapping("mul", _widened(f, one, "i32"), _widened(f, f.shuffle(w, w, range(first, w.type.lanes, 2)), "i32"))
        for first, one in enumerate(x)
    ]
    return f.wrapping("add", *products)


def _storing(f: Function, a: Arguments, output: Rescaled | None, item: int) -> tuple[Callable[..., None], int]:
    """How a driver stores a vector of sums, of ``item`` bytes each, at an address, for channels from one on, with a
    residual; and the bytes of an element of what it stores."""
    if output is None:
        return lambda part, sum, to, first, residual=None: part.store(sum, to), item
    store = output.storing(f, a, a.parameters)

    def rescaled(part: Part, sum: Value, to: Value, first: Value, residual: Value | None = None) -> None:
        store(part, sum, output.numbers(part, f.offset(a.bias, first * output.item), a.numbers), to, residual)

    return rescaled, 2


@record(frozen=True)
class Depthwise16(KernelSpec):
    """y[pixel, channel] = output(sum over the kernel of x w), channel by channel: int16 and int8 to int16, or int32.

    There are at most 256 taps. Channels are contiguous everywhere. Strides are in bytes: from image to image, from
    pixel to pixel of y (``x_step_row``, ``x_step_column``), and from tap to tap (``x_row``, ``x_column``; ``w_row``,
    ``w_column``). ``bias`` are the numbers of the channels that the output takes. Threads share images x rows.
    """

    output: Rescaled | None = None

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"output": (None, Rescaled("once"))}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *w *bias *y images rows columns channels kernel_rows kernel_columns x_image x_step_row x_step_column x_row "
        "x_column w_row w_column y_image y_row y_column",
        Rescaled.words,
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i16", "dwconv", *_named(self.output))

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        store, item = _storing(f, a, self.output, 4)
        with f.share(a.images * a.rows) as task:
            image = task // a.rows
            row = task - image * a.rows
            x = f.offset(f.offset(a.x, image * a.x_image), row * a.x_step_row)
            y = f.offset(f.offset(a.y, image * a.y_image), row * a.y_row)
            with f.loop(0, a.columns) as columns:
                corner = f.offset(x, columns.index * a.x_step_column)
                to = f.offset(y, columns.index * a.y_column)

                def channels(at: Value, parts: list[Part], _: list[Value]) -> None:
                    (part,) = parts
                    zero = f.constant(part.type.with_element("i32"), 0)
                    with f.loop(0, a.kernel_rows, carry=[zero]) as kernel:
                        x_row = f.offset(corner, kernel.index * a.x_row)
                        w_row = f.offset(a.w, kernel.index * a.w_row)
                        with f.loop(0, a.kernel_columns, carry=kernel.values) as taps:
                            x_at = f.at(f.offset(x_row, taps.index * a.x_column), at, "i16")
                            w_at = f.at(f.offset(w_row, taps.index * a.w_column), at, "i8")
                            value = _widened(f, part.load(x_at, 0, "i16"), "i32")
                            weight = _widened(f, part.load(w_at, 0, "i8"), "i32")
                            taps.hand_on([f.wrapping("add", taps.values[0], f.wrapping("mul", value, weight))])
                        kernel.hand_on(taps.results)
                    store(part, kernel.results[0], f.offset(to, at * item), at)

                f.vectors(a.channels, channels, size=1, masked=target.vector_bits == 512)
        return module.text()


@record(frozen=True)
class Product16(KernelSpec):
    """y[row, column] = output(sum over depth of x[row, depth] w[depth, column]): int16 and int16 to int16, or int64.

    Columns are contiguous in w and y; all else has a stride in bytes. ``bias`` are the numbers of the columns that the
    output takes. Threads share the rows.
    """

    output: Rescaled | None = None

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"output": (None, *map(Rescaled, get_args(Rounding)))}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *w *bias *y *residual rows depth columns x_row x_depth w_depth y_row residual_row",
        Rescaled.words,
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i16", "product", *_named(self.output))

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        store, item = _storing(f, a, self.output, 8)
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)
            residual = f.offset(a.residual, row * a.residual_row)

            def columns(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                with f.loop(0, a.depth, carry=[f.constant(part.type.with_element("i64"), 0)]) as depth:
                    one = f.load(vector("i16", 1), f.offset(x, depth.index * a.x_depth))
                    value = part.splat(f.emit(I32, f"sext {one} to i32"))
                    others = part.load(f.at(f.offset(a.w, depth.index * a.w_depth), at, "i16"), 0, "i16")
                    product = f.wrapping("mul", value, _widened(f, others, "i32"))
                    depth.hand_on([f.wrapping("add", depth.values[0], _widened(f, product, "i64"))])
                store(part, depth.results[0], f.offset(y, at * item), at, f.offset(residual, at * item))

            f.vectors(a.columns, columns, size=1, masked=target.vector_bits == 512)
        return module.text()


@record(frozen=True)
class Dot16(KernelSpec):
    """y[row, column] = sum over depth of x[row, column, depth] w[column, depth], to int32 sums that may wrap.

    x and w are int8 or int16 (``type``), of contiguous depth; all else has a stride in bytes. Threads share the rows.
    """

    type: Literal["i8", "i16"] = "i16"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *w *y rows columns depth x_row x_column w_column y_row y_column"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "dot", "i32")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        sums = vector("i32", f.lanes)
        whole = a.depth & -f.lanes
        with f.share(a.rows) as row, f.loop(0, a.columns) as columns:
            x = f.offset(f.offset(a.x, row * a.x_row), columns.index * a.x_column)
            w = f.offset(a.w, columns.index * a.w_column)

            def product(at: Value, part: Part) -> Value:
                x_at, w_at = (f.at(pointer, at, self.type) for pointer in (x, w))
                one, other = (_widened(f, part.load(pointer, 0, self.type), "i32") for pointer in (x_at, w_at))
                return f.wrapping("mul", one, other)

            with f.loop(0, whole, f.lanes, carry=[f.constant(sums, 0)]) as loop:
                loop.hand_on([f.wrapping("add", loop.values[0], product(loop.index, Part(f, f.f32)))])

            def add_up(x: Value) -> Value:
                return f.fold(lambda one, other: f.wrapping("add", one, other), x)

            if target.vector_bits == 512:
                tail = a.depth - whole
                with f.loop(0, tail, f.lanes, carry=loop.results) as last:
                    last.hand_on([f.wrapping("add", last.values[0], product(whole, Part(f, f.f32, tail)))])
                total = add_up(last.results[0])
            else:
                with f.loop(whole, a.depth, carry=[add_up(loop.results[0])]) as rest:
                    rest.hand_on([f.wrapping("add", rest.values[0], product(rest.index, Part(f, F32)))])
                total = rest.results[0]
            f.store(total, f.offset(f.offset(a.y, row * a.y_row), columns.index * a.y_column))
        return module.text()
