"""`strassen`: products of large matrices with seven eighths of the multiplications, by Strassen's algorithm in the form
of Winograd.

Pixels, depth and channels are halved: each pixel goes with another one, the first half of its channels with the second.
(Neighbours make pairs, so that threads read and write what lies together.) A product of halves of a, b and c takes
eight products of quarters; here there are seven, of sums of quarters:

    s1 = a21 + a22    s2 = s1 - a11     s3 = a11 - a21    s4 = a12 - s2
    t1 = b12 - b11    t2 = b22 - t1     t3 = b22 - b12    t4 = b21 - t2
    m1 = a11 b11      m2 = a12 b21      m3 = a22 t4       m4 = s1 t1
    m5 = s2 t2        m6 = s3 t3        m7 = s4 b22
    c11 = m1 + m2     u = m1 + m5       c12 = (u + m4) + m7
    v = u + m6        c21 = v + m3      c22 = v + m4

`Strassen` is the driver: for a group of pairs of pixels it calls the microkernel `StrassenInput`, and for every panel
of channels `contract.Gemm` for all products and `StrassenOutput`, so that sums and products stay in the cache.
`StrassenWeights` makes and packs the sums of weights, once: seven quarters of the memory. Results differ from those of
a direct sum by some 1e-6 of the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.basis import ENDINGS
from gossamer.codegen.dots import crosses
from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import F32, I64, PTR, Module, Value
from gossamer.codegen.kernels.contract import LINE
from gossamer.codegen.kernels.groups import Groups, even_tile
from gossamer.codegen.kernels.pack import AHEAD, transpose
from gossamer.codegen.spec import ENTRY, ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

PRODUCTS = 7
"""Of quarters."""

SUMS = 4
"""Of quarters of a."""

PAIRS_AHEAD = 16
"""Pairs of output pixels after which lines are written, or read of a residual, that have been fetched."""


@record(frozen=True)
class StrassenWeights(KernelSpec):
    """Weights [2 x channels, 2 x depth] as the second factors of all products: [panel][product][depth][nv x lanes].

    ``channels`` and ``depth``, those of a quarter, are multiples of the lanes. There are ``panels`` panels of ``nv``
    vectors; what is left makes one of ``rest_nv``. Threads share vectors of channels.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *destination channels depth source_row nv panels rest_nv"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "strassen", "weights")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        lanes = f.lanes
        square = f.stack(F32, PRODUCTS * lanes * lanes)  # [product][channel][depth]
        with f.share(a.channels // lanes) as number:
            panel = number // a.nv
            width = f.select(f.compare("eq", panel, a.panels), a.rest_nv, a.nv)
            step = width * (4 * lanes)
            start = panel * a.nv * a.depth * (PRODUCTS * 4 * lanes) + (number - panel * a.nv) * (4 * lanes)
            destination = f.offset(a.destination, start)
            with f.loop(0, a.depth, lanes) as blocks:
                with f.loop(0, lanes) as channels:
                    left = f.offset(a.source, (number * lanes + channels.index) * a.source_row + blocks.index * 4)
                    right = f.offset(left, a.channels * a.source_row)
                    b11, b12 = f.load(f.f32, left), f.load(f.f32, right)
                    b21, b22 = (f.load(f.f32, f.offset(upper, a.depth * 4)) for upper in (left, right))
                    for ahead in (f.offset(upper, AHEAD) for upper in (left, right)):
                        f.prefetch(ahead)
                        f.prefetch(f.offset(ahead, a.depth * 4))
                    for product, value in enumerate(weight_sums(b11, b12, b21, b22)):
                        f.store(value, f.at(square, channels.index * lanes + product * lanes * lanes))
                with f.loop(0, PRODUCTS) as products:
                    here = f.at(square, products.index * (lanes * lanes))
                    to = f.offset(destination, (products.index * a.depth + blocks.index) * step)
                    for column in transpose(f, [f.load(f.f32, f.at(here, lane * lanes)) for lane in range(lanes)]):
                        f.store(column, to)
                        to = f.offset(to, step)
        return module.text()


@record(frozen=True)
class StrassenInput(KernelSpec):
    """A microkernel: the sums of pairs of pixels. ``void k(ptr x, ptr below, ptr s, ptr shape, i64 pixels)``.

    ``x`` and ``below`` are the pixels of the first pair. ``shape`` is the argument block: ``depth``, that of a quarter,
    a multiple of the lanes; ``x_pair``, bytes between pairs; ``s_plane``, bytes between the sums, of which each is
    dense.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("depth x_pair s_plane")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "strassen", "input")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.function(ENTRY, *((PTR, name) for name in ("x", "below", "s", "shape")), (I64, "pixels"))
        x, below, s, shape_pointer, count = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        half = shape.depth * 4
        with f.loop(0, count) as pixels:
            above, under = (f.offset(start, pixels.index * shape.x_pair) for start in (x, below))
            row = f.offset(s, pixels.index * half)
            with f.loop(0, shape.depth, f.lanes) as channels:
                at = channels.index * 4
                a11, a21 = (f.load(f.f32, f.offset(start, at)) for start in (above, under))
                a12, a22 = (f.load(f.f32, f.offset(f.offset(start, half), at)) for start in (above, under))
                to = f.offset(row, at)
                for value in input_sums(a11, a12, a21, a22):
                    f.store(value, to)
                    to = f.offset(to, shape.s_plane)
        return module.text()


@record(frozen=True)
class StrassenOutput(KernelSpec):
    """A microkernel: pairs of output pixels of a panel from their products.

    ``void k(ptr m, ptr bias, ptr y, ptr y_below, ptr residual, ptr residual_below, ptr shape, i64 pixels, i64 column,
    i64 column_below, i64 skip)`` for so many pairs: the second pixels of the first ``skip`` are not written. m is not
    the same afterwards.

    Operand 0 of the epilogue is the sum with its bias, operand 1 the residual. ``shape`` is the argument block:

    - ``channels`` of the panel, a multiple of the lanes; ``right``, bytes from its bias and pixels to those of the
      other half; ``m_plane``, bytes between products, of which each is dense.
    - ``width``: pixels of a row. The first pair is in the columns ``column`` and ``column_below`` of their rows.
    - ``step``: pixels from pair to pair, in one row or from a row to the next; ``y_pair``, ``residual_pair``: the bytes
      of that; ``y_turn``, ``residual_turn``: further bytes to the next row.
    """

    epilogue: Expression = IDENTITY

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"epilogue": ENDINGS}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "channels right m_plane width step y_pair y_turn residual_pair residual_turn"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "strassen", "output", name_of(self.epilogue))

    def emit(self, target: Target) -> str:
        if operand_count(self.epilogue) > 2:
            raise CompileError(f"{self.name}: there is one operand beside the sum, the residual.")
        reads_residual = operand_count(self.epilogue) == 2
        module = Module(target)
        pointers = ("m", "bias", "y", "y_below", "residual", "residual_below", "shape")
        numbers = ("pixels", "column", "column_below", "skip")
        f = module.function(ENTRY, *((PTR, name) for name in pointers), *((I64, name) for name in numbers))
        m, bias, y, y_below, residual, residual_below, shape_pointer, count, column, column_below, skip = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        starts = [y, residual, column, y_below, residual_below, column_below]
        with f.loop(0, count, carry=starts) as pixels:
            halves = (pixels.values[:3], pixels.values[3:])
            products = f.offset(m, pixels.index * (shape.channels * 4))
            is_mine = f.compare("sge", pixels.index, skip)
            with f.loop(0, shape.channels, LINE // 4) as lines:
                for pixel, other, _ in halves:
                    for at in (lines.index * 4, lines.index * 4 + shape.right):
                        f.prefetch(f.offset(pixel, shape.y_pair * PAIRS_AHEAD + at))
                        if reads_residual:
                            f.prefetch(f.offset(other, shape.residual_pair * PAIRS_AHEAD + at))
            with f.loop(0, shape.channels, f.lanes) as channels:
                left = channels.index * 4
                right = left + shape.right
                first = f.offset(products, left)
                factors = [f.load(f.f32, f.offset(first, shape.m_plane * number)) for number in range(PRODUCTS)]
                values = iter(quarters(factors))
                begin = {at: f.load(f.f32, f.offset(bias, at)) for at in (left, right)}
                for is_below, (pixel, other, _) in enumerate(halves):
                    for at in (left, right):
                        operands = [next(values) + begin[at]]
                        if reads_residual:
                            operands.append(f.load(f.f32, f.offset(other, at)))
                        to = f.offset(pixel, at)
                        if is_below:
                            to = f.select(is_mine, to, first)  # which has been read
                        f.store(apply(self.epilogue, f, operands), to)
            following = []
            for pixel, other, number in halves:
                column = number + shape.step
                turns = f.compare("sge", column, shape.width)
                following.append(f.offset(pixel, shape.y_pair + f.select(turns, shape.y_turn, 0)))
                following.append(f.offset(other, shape.residual_pair + f.select(turns, shape.residual_turn, 0)))
                following.append(column - f.select(turns, shape.width, 0))
            pixels.hand_on(following)
        return module.text()


STRASSEN_PANEL = ArgumentBlock("*kernel *smaller_kernel *x_shape *s_shape *output_shape bytes channels y_channels")
"""A panel for `Strassen`: ``bytes`` in b for each product, ``channels`` bytes of a pixel of a product and of the bias,
``y_channels`` of a pixel of y and of the residual.

``kernel`` and ``smaller_kernel`` multiply, with ``x_shape`` where the first factor is part of x and ``s_shape`` where
it is a sum.
"""


@record(frozen=True)
class Strassen(KernelSpec):
    """A driver: y = epilogue(bias + x * weights) for ``pairs`` pairs of pixels, some of them at a time.

    Pair p is pixels p x ``step`` and p x ``step`` + ``below`` of ``x``, ``y`` and ``residual``: of an even number of
    pixels 2 p and 2 p + 1. Of an odd number, one belongs to two pairs: as the second of pair 0 it is not written, and
    ``skip`` is 1. Pixels of x are ``x_column`` bytes apart; those of the others lie in rows of ``width``, not less than
    ``step``, ``y_column`` and ``y_row`` bytes apart.

    The pairs are done in groups: ``groups``, or up to ``most_groups`` (see `Groups`). ``input`` with ``input_shape``
    makes their sums, the kernels of a panel all products, ``output`` the pixels. Kernels multiply ``kernel_pairs`` at a
    time, the smaller ones ``smaller_pairs`` (see `even_tile`); their ``next`` is ``next_stride`` for each call behind
    the next product's part of b. ``half_depth``: bytes of half a pixel of x, and from pair to pair of a sum. ``zeros``
    is the bias that kernels add, ``bias`` that of the output.

    ``widened``: ``input`` makes the first factors of all products, sums or not, one behind the other, and kernels are
    `gossamer.codegen.kernels.inner_products.InnerProductGemm`, which make many tiles; smaller ones have a pair less.

    There are ``panels`` panels in half of the channels, all like ``panel`` (`STRASSEN_PANEL`), but the last like
    ``last_panel``.

    ``scratch`` has ``m_offset`` bytes for sums, ``s_plane`` for each, and then the products, ``m_plane`` for each; for
    every thread, ``scratch_thread`` bytes apart. All strides are in bytes. y overlaps neither x nor the residual.
    Threads share groups x panels.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*input *input_shape *output *panel *last_panel *x *b *zeros *bias *y *residual *scratch scratch_thread "
        "m_offset s_plane m_plane pairs step below skip groups most_groups width x_column y_row y_column residual_row "
        "residual_column half_depth kernel_pairs smaller_pairs next_stride panels"
    )

    widened: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "strassen")

    @property
    def variant(self) -> str:
        return "widened" * self.widened

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from (cls(target.name, widened) for widened in (False, True)[: 1 + crosses(target)])

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)
        _, tid, _ = f.parameters
        s = f.offset(g.scratch, tid * g.scratch_thread)
        m = f.offset(s, g.m_offset)
        whole = f.arguments(STRASSEN_PANEL, g.panel)
        summed = f.stack(I64, 1)  # the group whose sums are in the scratch memory
        f.store(f.integer(-1), summed)

        groups = Groups(f, g.pairs, g.kernel_pairs, g.groups, g.most_groups)
        x_pair = g.x_column * g.step

        with f.share(groups.count * g.panels) as task:
            group = task // g.panels
            number = task - group * g.panels
            first_pair, pairs, kernel_calls = groups[group]
            first = first_pair * g.step
            x = f.offset(g.x, first * g.x_column)
            below = f.offset(x, g.below * g.x_column)
            with f.when(f.compare("ne", group, f.load(I64, summed))):
                f.call(g.input, x, below, s, g.input_shape, pairs)
                f.store(group, summed)

            is_last = f.compare("eq", number + 1, g.panels)
            panel = f.arguments(STRASSEN_PANEL, f.select(is_last, g.last_panel, g.panel))
            b = f.offset(g.b, number * (whole.bytes * PRODUCTS))

            following = f.offset(b, panel.bytes)
            if self.widened:
                # Tiles of two sizes, which are never cut off: there are enough pairs.
                tiles = (pairs + g.kernel_pairs - 1) // g.kernel_pairs
                large = pairs - tiles * g.smaller_pairs
                behind = large * g.kernel_pairs
                with f.loop(0, PRODUCTS, carry=[s, b, m, following]) as products:
                    start, weights, c, following = products.values
                    for kernel, pair, first_tile, count in (
                        (panel.kernel, f.integer(0), f.integer(0), large),
                        (panel.smaller_kernel, behind, large, tiles - large),
                    ):
                        f.call(
                            kernel,
                            f.offset(start, pair * g.half_depth),
                            weights,
                            g.zeros,
                            f.offset(c, pair * panel.channels),
                            Value(f, PTR, "null"),
                            following,
                            panel.s_shape,
                            first_tile,
                            count,
                        )
                    steps = (g.s_plane, panel.bytes, g.m_plane, panel.bytes)
                    products.hand_on([f.offset(*pair) for pair in zip(products.values, steps, strict=True)])
            else:
                factors = [(start, x_pair, panel.x_shape) for start in (x, f.offset(x, g.half_depth))]
                factors.append((f.offset(below, g.half_depth), x_pair, panel.x_shape))
                factors += [(f.offset(s, g.s_plane * sum), g.half_depth, panel.s_shape) for sum in range(SUMS)]
                c = m
                for start, step, shape in factors:
                    with f.loop(0, kernel_calls) as calls:
                        pair, is_large = even_tile(f, calls.index, pairs, g.kernel_pairs, g.smaller_pairs)
                        f.call(
                            f.select(is_large, panel.kernel, panel.smaller_kernel),
                            f.offset(start, pair * step),
                            b,
                            g.zeros,
                            f.offset(c, pair * panel.channels),
                            Value(f, PTR, "null"),
                            f.offset(following, calls.index * g.next_stride),
                            shape,
                        )
                    b, c, following = following, f.offset(c, g.m_plane), f.offset(following, panel.bytes)

            at = number * whole.y_channels
            rows = [pixel // g.width for pixel in (first, first + g.below)]
            columns = [first - rows[0] * g.width, first + g.below - rows[1] * g.width]
            pixels = [
                f.offset(f.offset(getattr(g, name), row * getattr(g, f"{name}_row")), column * stride + at)
                for name, stride in (("y", g.y_column), ("residual", g.residual_column))
                for row, column in zip(rows, columns, strict=True)
            ]
            skip = f.select(f.compare("eq", first, 0), g.skip, 0)
            f.call(
                g.output,
                m,
                f.offset(g.bias, number * whole.channels),
                *pixels,
                panel.output_shape,
                pairs,
                *columns,
                skip,
            )
        return module.text()


def input_sums(a11: Value, a12: Value, a21: Value, a22: Value) -> list[Value]:
    """s1, s2, s3 and s4."""
    s1 = a21 + a22
    s2 = s1 - a11
    return [s1, s2, a11 - a21, a12 - s2]


def weight_sums(b11: Value, b12: Value, b21: Value, b22: Value) -> list[Value]:
    """The second factors of all products."""
    t1 = b12 - b11
    t2 = b22 - t1
    return [b11, b21, b21 - t2, t1, t2, b22 - b12, b22]


def quarters(m: list[Value]) -> list[Value]:
    """c11, c12, c21 and c22."""
    u = m[0] + m[4]
    v = u + m[5]
    return [m[0] + m[1], (u + m[3]) + m[6], v + m[2], v + m[3]]
