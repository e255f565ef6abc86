"""`contract16`: sums of products of int16 activations and int8 weights, or of int16 with int16.

Sums stay integers: int32 where they cannot leave it or may wrap there, else int64. Maps that follow make something of
them; so rows of sums are as long as panels are, and their last channels are for nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

from gossamer.codegen.ir import F32, I32, I64, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

BLOCK = 128
"""Pairs of products that int32 holds for certain: 2^7 x 2 x 2^15 x 2^7 = 2^30."""

UNROLL = 2


@record(frozen=True)
class Contract16(KernelSpec):
    """y[pixel, channel] = sum over taps and depth of x w, for tiles of ``mr`` pixels and panels of ``nv`` vectors.

    ``x`` are int16 pixels, whose taps begin ``tap_offsets`` bytes behind them and are ``depth`` elements deep. ``w``
    are int8 panels [panel][tap][pair of depth][channel][2]: what `Pack` makes of pairs, as if they were float16; an
    odd depth ends with a pair whose second weight is read and not used. ``y`` has whole panels, of int32 sums that may
    wrap, or, ``wide``, of int64.

    A tile begins at column t x mr of a row; those that would be behind the last column are the last column again.
    Threads share panels x tiles.
    """

    mr: int
    nv: int
    wide: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        x="ptr",
        w="ptr",
        y="ptr",
        images="i64",
        rows="i64",
        columns="i64",
        x_image="i64",
        x_row="i64",
        x_column="i64",
        y_image="i64",
        y_row="i64",
        y_column="i64",
        taps="i64",
        tap_offsets="ptr",
        depth="i64",
        panels="i64",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i16", "contract", "i64" if self.wide else "i32", f"{self.mr}x{self.nv}")

    def emit(self, target: Target) -> str:
        if (self.mr + 1) * self.nv + 1 > target.registers:
            raise CompileError(f"{self.name}: {target.name} has {target.registers} registers.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        mr, nv, lanes = self.mr, self.nv, f.lanes
        narrow = vector("i32", lanes)
        total = vector("i64", lanes) if self.wide else narrow
        pairs = (a.depth + 1) // 2
        step = nv * lanes * 2
        tiles = (a.columns + (mr - 1)) // mr
        with f.share(a.panels * a.images * a.rows * tiles) as task:
            line = task // tiles
            first = (task - line * tiles) * mr
            row = line % a.rows
            image = (line // a.rows) % a.images
            panel = line // (a.rows * a.images)
            columns = [f.least(first + i, a.columns - 1) for i in range(mr)]
            x = f.offset(f.offset(a.x, image * a.x_image), row * a.x_row)
            y = f.offset(f.offset(a.y, image * a.y_image), row * a.y_row)
            y = f.offset(y, panel * (nv * lanes * (8 if self.wide else 4)))
            w = f.offset(a.w, panel * (a.taps * pairs * step))
            pixels = [f.offset(x, column * a.x_column) for column in columns]

            with f.loop(0, a.taps, carry=[f.constant(total, 0)] * (mr * nv)) as taps:
                move = f.load(I64, f.at(a.tap_offsets, taps.index, "i64"))
                starts = [f.offset(pixel, move) for pixel in pixels]
                panel_w = f.offset(w, taps.index * (pairs * step))
                taps.hand_on(self._tap(f, starts, panel_w, a.depth, taps.values))
            for i, column in enumerate(columns):
                to = f.offset(y, column * a.y_column)
                for v in range(nv):
                    f.store(taps.results[i * nv + v], f.at(to, v * lanes, total.element))
        return module.text()

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


@record(frozen=True)
class Depthwise16(KernelSpec):
    """y[pixel, channel] = sum over the kernel of x w, channel by channel: int16 and int8 to int32.

    There are at most 256 taps. Channels are contiguous everywhere. Strides are in bytes: from image to image, from
    pixel to pixel of y (``x_step_row``, ``x_step_column``), and from tap to tap (``x_row``, ``x_column``; ``w_row``,
    ``w_column``). Threads share images x rows.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        x="ptr",
        w="ptr",
        y="ptr",
        images="i64",
        rows="i64",
        columns="i64",
        channels="i64",
        kernel_rows="i64",
        kernel_columns="i64",
        x_image="i64",
        x_step_row="i64",
        x_step_column="i64",
        x_row="i64",
        x_column="i64",
        w_row="i64",
        w_column="i64",
        y_image="i64",
        y_row="i64",
        y_column="i64",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i16", "depthwise", "i32")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
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
                    part.store(kernel.results[0], f.at(to, at, "i32"))

                f.vectors(a.channels, channels, size=1, masked=target.vector_bits == 512)
        return module.text()


@record(frozen=True)
class Product16(KernelSpec):
    """y[row, column] = sum over depth of x[row, depth] w[depth, column]: int16 and int16 to int64.

    Columns are contiguous in w and y; all else has a stride in bytes. Threads share the rows.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        x="ptr",
        w="ptr",
        y="ptr",
        rows="i64",
        depth="i64",
        columns="i64",
        x_row="i64",
        x_depth="i64",
        w_depth="i64",
        y_row="i64",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("i16", "product", "i64")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)

            def columns(at: Value, parts: list[Part], _: list[Value]) -> None:
                (part,) = parts
                with f.loop(0, a.depth, carry=[f.constant(part.type.with_element("i64"), 0)]) as depth:
                    one = f.load(vector("i16", 1), f.offset(x, depth.index * a.x_depth))
                    value = part.splat(f.emit(I32, f"sext {one} to i32"))
                    others = part.load(f.at(f.offset(a.w, depth.index * a.w_depth), at, "i16"), 0, "i16")
                    product = f.wrapping("mul", value, _widened(f, others, "i32"))
                    depth.hand_on([f.wrapping("add", depth.values[0], _widened(f, product, "i64"))])
                part.store(depth.results[0], f.at(y, at, "i64"))

            f.vectors(a.columns, columns, size=1, masked=target.vector_bits == 512)
        return module.text()


@record(frozen=True)
class Dot16(KernelSpec):
    """y[row, column] = sum over depth of x[row, column, depth] w[column, depth], to int32 sums that may wrap.

    x and w are int8 or int16 (``type``), of contiguous depth; all else has a stride in bytes. Threads share the rows.
    """

    type: Literal["i8", "i16"] = "i16"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        x="ptr",
        w="ptr",
        y="ptr",
        rows="i64",
        columns="i64",
        depth="i64",
        x_row="i64",
        x_column="i64",
        w_column="i64",
        y_row="i64",
        y_column="i64",
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
