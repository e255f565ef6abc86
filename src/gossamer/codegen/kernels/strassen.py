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

``twice``: each of the seven products is made of seven in the same way (`StrassenInnerOutput`): two pairs of pixels make
four, and weights take 49 sixteenths of their memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.basis import ENDINGS
from gossamer.codegen.dots import crosses
from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import F32, I64, PTR, Arguments, Function, Module, Value
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
    """Weights [2 x channels, 2 x depth] as the second factors of all products: [panel][product][depth][nv x lanes];
    ``twice``: [4 x channels, 4 x depth], of seven products for each of seven.

    ``channels`` and ``depth``, those of a part, are multiples of the lanes. There are ``panels`` panels of ``nv``
    vectors; what is left makes one of ``rest_nv``. Threads share vectors of channels.
    """

    twice: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *destination channels depth source_row nv panels rest_nv"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "strassen", "weights", "twice" * self.twice)

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        lanes, size = f.lanes, 4 if self.twice else 2
        count = PRODUCTS**2 if self.twice else PRODUCTS
        square = f.stack(F32, count * lanes * lanes)  # [product][channel][depth]
        with f.share(a.channels // lanes) as number:
            panel = number // a.nv
            width = f.select(f.compare("eq", panel, a.panels), a.rest_nv, a.nv)
            step = width * (4 * lanes)
            start = panel * a.nv * a.depth * (count * 4 * lanes) + (number - panel * a.nv) * (4 * lanes)
            destination = f.offset(a.destination, start)
            with f.loop(0, a.depth, lanes) as blocks:
                with f.loop(0, lanes) as channels:
                    row = f.offset(a.source, (number * lanes + channels.index) * a.source_row + blocks.index * 4)
                    matrix = []
                    for _ in range(size):
                        parts = [f.offset(row, a.depth * (4 * part)) for part in range(size)]
                        for part in parts:
                            f.prefetch(f.offset(part, AHEAD))
                        matrix.append([f.load(f.f32, part) for part in parts])
                        row = f.offset(row, a.channels * a.source_row)
                    for product, value in enumerate(_second_factors(matrix)):
                        f.store(value, f.at(square, channels.index * lanes + product * lanes * lanes))
                with f.loop(0, count) as products:
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


@record(frozen=True)
class StrassenInnerOutput(KernelSpec):
    """A microkernel: pairs of rows of a product from the seven that it is made of.

    ``void k(ptr m, ptr y, ptr shape, i64 pairs)``. ``shape`` is the argument block: ``channels`` of the panel, a
    multiple of the lanes; ``right``, bytes to the other half of them in y; ``m_plane``, bytes between products. Rows
    are dense, in y as in products.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("channels right m_plane")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "strassen", "inner", "output")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.function(ENTRY, *((PTR, name) for name in ("m", "y", "shape")), (I64, "pairs"))
        m, y, shape_pointer, pairs = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        row = shape.channels * 4
        with f.loop(0, pairs) as loop:
            products, above = f.offset(m, loop.index * row), f.offset(y, loop.index * (row * 2))
            with f.loop(0, shape.channels, f.lanes) as channels:
                at = channels.index * 4
                first, to = f.offset(products, at), f.offset(above, at)
                values = quarters([f.load(f.f32, f.offset(first, shape.m_plane * each)) for each in range(PRODUCTS)])
                below = f.offset(to, row)
                places = (to, f.offset(to, shape.right), below, f.offset(below, shape.right))
                for value, place in zip(values, places, strict=True):
                    f.store(value, place)
        return module.text()


STRASSEN_PANEL = ArgumentBlock(
    "*kernel *smaller_kernel *x_shape *s_shape *output_shape bytes channels y_channels *inner_shape *inner_output_shape"
)
"""A panel for `Strassen`: ``bytes`` in b for each product, ``channels`` bytes of a pixel of a product and of the bias,
``y_channels`` of a pixel of y and of the residual.

``kernel`` and ``smaller_kernel`` multiply, with ``x_shape`` where the first factor is part of x and ``s_shape`` where
it is a sum; ``inner_shape`` where it is a sum of parts of these.
"""


_TWICE = (
    "*inner_x_shape *inner_s_shape *inner_output inner_offset inner_s_plane inner_m_plane chunks quarter quarter_depth"
)

TWICE_WORDS = tuple([word.lstrip("*") for word in _TWICE.split()])
"""Words that `Strassen` reads only if products are made of products, too."""


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

    There are ``panels`` panels in half of the channels, all like ``panel`` (`STRASSEN_PANEL`), but the last like
    ``last_panel``.

    ``scratch`` has ``m_offset`` bytes for sums, ``s_plane`` for each, and then the products, ``m_plane`` for each; for
    every thread, ``scratch_thread`` bytes apart. All strides are in bytes. y overlaps neither x nor the residual.
    Threads share groups x panels.

    ``twice``: each product is made of seven, tile by tile. Panels are those of a quarter of the channels, ``quarter``
    bytes, and the products of the second half of the channels follow those of the first. There is an even number of
    pairs; what groups consist of, and kernels multiply, are two pairs each. ``input`` makes the sums of a first factor,
    a part of x or a sum, with ``inner_x_shape`` or ``inner_s_shape``, for some panels at a time, and ``inner_output``
    the product. Between are ``inner_s_plane`` bytes for each sum, from ``inner_offset`` on in the scratch memory, then
    ``inner_m_plane`` for each product. ``quarter_depth``: bytes of a quarter of a pixel of x. Threads share groups x
    ``chunks`` of the panels, of which the scratch memory has room for the products: or more, up to panels, if there are
    more threads. These words are not read otherwise.

    ``widened``: ``input`` makes the first factors of all products, sums or not, one behind the other, and kernels are
    `gossamer.codegen.kernels.inner_products.InnerProductGemm`, which make many tiles; smaller ones have a pair less.
    """

    twice: bool = False
    widened: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*input *input_shape *output *panel *last_panel *x *b *zeros *bias *y *residual *scratch scratch_thread "
        "m_offset s_plane m_plane pairs step below skip groups most_groups width x_column y_row y_column residual_row "
        "residual_column half_depth kernel_pairs smaller_pairs next_stride panels",
        _TWICE,
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "strassen", "twice" * self.twice)

    @property
    def variant(self) -> str:
        return "widened" * self.widened

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from (cls(target.name, twice) for twice in (False, True))
        if crosses(target):
            yield cls(target.name, widened=True)

    def emit(self, target: Target) -> str:
        module = Module(target)
        if self.twice:
            _product(module)
        f = module.driver()
        g = f.arguments(self.arguments)
        arguments, tid, threads = f.parameters
        s = f.offset(g.scratch, tid * g.scratch_thread)
        m = f.offset(s, g.m_offset)
        whole = f.arguments(STRASSEN_PANEL, g.panel)
        summed = f.stack(I64, 1)  # the group whose sums are in the scratch memory
        f.store(f.integer(-1), summed)

        pairs_of_each = 2 if self.twice else 1
        groups = Groups(f, g.pairs // pairs_of_each, g.kernel_pairs, g.groups, g.most_groups)
        x_pair = g.x_column * g.step
        chunks = g.panels
        if self.twice:
            wanted = (threads + groups.count - 1) // groups.count
            chunks = f.least(f.greatest(wanted, g.chunks), g.panels)

        with f.share(groups.count * chunks) as task:
            group = task // chunks
            number = task - group * chunks
            start, rows, kernel_calls = groups[group]
            pairs = rows * pairs_of_each
            first = start * pairs_of_each * g.step
            x = f.offset(g.x, first * g.x_column)
            below = f.offset(x, g.below * g.x_column)
            with f.when(f.compare("ne", group, f.load(I64, summed))):
                f.call(g.input, x, below, s, g.input_shape, pairs)
                f.store(group, summed)
            lines = [pixel // g.width for pixel in (first, first + g.below)]
            columns = [first - lines[0] * g.width, first + g.below - lines[1] * g.width]
            skip = f.select(f.compare("eq", first, 0), g.skip, 0)

            def panel_of(number: Value) -> Value:
                return f.select(f.compare("eq", number + 1, g.panels), g.last_panel, g.panel)

            def output(products: Value, panel: Arguments, at: Value, bias: Value) -> None:
                """The pixels of a panel, ``at`` bytes from the first channel, ``bias`` bytes from its bias."""
                pixels = [
                    f.offset(f.offset(getattr(g, name), line * getattr(g, f"{name}_row")), column * stride + at)
                    for name, stride in (("y", g.y_column), ("residual", g.residual_column))
                    for line, column in zip(lines, columns, strict=True)
                ]
                f.call(g.output, products, f.offset(g.bias, bias), *pixels, panel.output_shape, pairs, *columns, skip)

            parts = [x, f.offset(x, g.half_depth), f.offset(below, g.half_depth)]
            parts += [f.offset(s, g.s_plane * sum) for sum in range(SUMS)]
            steps = [x_pair] * (PRODUCTS - SUMS) + [g.half_depth] * SUMS
            if not self.twice:
                panel = f.arguments(STRASSEN_PANEL, panel_of(number))
                b = f.offset(g.b, number * (whole.bytes * PRODUCTS))
                if self.widened:
                    _multiply_widened(f, g, panel, s, b, m, rows)
                else:
                    shapes = [panel.x_shape] * (PRODUCTS - SUMS) + [panel.s_shape] * SUMS
                    _multiply(f, g, panel, zip(parts, steps, shapes, strict=True), b, m, rows, kernel_calls)
                output(m, panel, number * whole.y_channels, number * whole.channels)
            else:
                begin, end = (g.panels * at // chunks for at in (number, number + 1))
                for at, (part, step) in enumerate(zip(parts, steps, strict=True)):
                    is_sum = f.integer(int(at >= PRODUCTS - SUMS))
                    f.call(
                        Value(f, PTR, "@product"),
                        *(arguments, part, f.offset(m, g.m_plane * at), f.offset(s, g.inner_offset)),
                        *(f.integer(at), is_sum, step, rows, kernel_calls, begin, end),
                    )
                with f.loop(begin, end) as loop:
                    panel = f.arguments(STRASSEN_PANEL, panel_of(loop.index))
                    products = f.offset(m, (loop.index - begin) * g.m_plane * (2 * PRODUCTS))
                    left = loop.index * whole.channels
                    right = left + g.quarter
                    output(products, panel, left, left)
                    output(f.offset(products, g.m_plane * PRODUCTS), panel, right, right)
        return module.text()


def _product(module: Module) -> None:
    """The function that makes one of the seven products, the one with this ``number``, of seven: for panels from
    ``begin`` to ``end``. The rows of its first factor are ``step`` bytes apart."""
    pointers, numbers = ("args", "x", "c", "s"), ("number", "is_sum", "step", "pairs", "calls", "begin", "end")
    f = module.function(
        "product", *((PTR, name) for name in pointers), *((I64, name) for name in numbers), internal=True
    )
    arguments, x, c, s, number, is_sum, step, pairs, calls, begin, end = f.parameters
    g = f.arguments(Strassen.arguments, arguments)
    whole = f.arguments(STRASSEN_PANEL, g.panel)
    m = f.offset(s, g.inner_s_plane * SUMS)
    none, is_sum = Value(f, PTR, "null"), f.compare("ne", is_sum, 0)
    input_shape = f.select(is_sum, g.inner_s_shape, g.inner_x_shape)
    # Tile by tile: what lies between is small then, and stays in the first-level cache.
    with f.loop(0, calls) as tiles:
        row, is_large = even_tile(f, tiles.index, pairs, g.kernel_pairs, g.smaller_pairs)
        rows = f.select(is_large, g.kernel_pairs, g.smaller_pairs)
        above = f.offset(x, row * step * 2)
        below = f.offset(above, step)
        f.call(g.input, above, below, s, input_shape, rows)
        factors = [above, f.offset(above, g.quarter_depth), f.offset(below, g.quarter_depth)]
        factors += [f.offset(s, g.inner_s_plane * sum) for sum in range(SUMS)]
        with f.loop(begin, end) as panels:
            at = panels.index
            panel = f.arguments(STRASSEN_PANEL, f.select(f.compare("eq", at + 1, g.panels), g.last_panel, g.panel))
            kernel = f.select(is_large, panel.kernel, panel.smaller_kernel)
            shape = f.select(is_sum, panel.s_shape, panel.x_shape)
            shapes = [shape] * (PRODUCTS - SUMS) + [panel.inner_shape] * SUMS
            b = f.offset(g.b, at * (whole.bytes * PRODUCTS**2) + number * panel.bytes * PRODUCTS)
            following = f.offset(b, panel.bytes * PRODUCTS + tiles.index * g.next_stride)
            for inner, (factor, shape) in enumerate(zip(factors, shapes, strict=True)):
                of_b, to = f.offset(b, panel.bytes * inner), f.offset(m, g.inner_m_plane * inner)
                f.call(kernel, factor, of_b, g.zeros, to, none, f.offset(following, panel.bytes * inner), shape)
            y = f.offset(c, (at - begin) * g.m_plane * (2 * PRODUCTS) + row * panel.channels * 2)
            f.call(g.inner_output, m, y, panel.inner_output_shape, rows)


def _multiply(
    f: Function,
    g: Arguments,
    panel: Arguments,
    factors: Iterable[tuple[Value, Value, Value]],
    b: Value,
    c: Value,
    rows: Value,
    calls: Value,
) -> None:
    """All products of a panel, of first factors whose rows are a step apart."""
    for start, step, shape in factors:
        following = f.offset(b, panel.bytes)
        with f.loop(0, calls) as loop:
            row, is_large = even_tile(f, loop.index, rows, g.kernel_pairs, g.smaller_pairs)
            f.call(
                f.select(is_large, panel.kernel, panel.smaller_kernel),
                f.offset(start, row * step),
                b,
                g.zeros,
                f.offset(c, row * panel.channels),
                Value(f, PTR, "null"),
                f.offset(following, loop.index * g.next_stride),
                shape,
            )
        b, c = following, f.offset(c, g.m_plane)


def _multiply_widened(
    f: Function, g: Arguments, panel: Arguments, factors: Value, b: Value, c: Value, pairs: Value
) -> None:
    """All products of a panel, in tiles of two sizes, which are never cut off: there are enough pairs."""
    tiles = (pairs + g.kernel_pairs - 1) // g.kernel_pairs
    large = pairs - tiles * g.smaller_pairs
    behind = large * g.kernel_pairs
    with f.loop(0, PRODUCTS, carry=[factors, b, c, f.offset(b, panel.bytes)]) as products:
        start, weights, to, following = products.values
        for kernel, pair, first_tile, count in (
            (panel.kernel, f.integer(0), f.integer(0), large),
            (panel.smaller_kernel, behind, large, tiles - large),
        ):
            f.call(
                kernel,
                f.offset(start, pair * g.half_depth),
                weights,
                g.zeros,
                f.offset(to, pair * panel.channels),
                Value(f, PTR, "null"),
                following,
                panel.s_shape,
                first_tile,
                count,
            )
        steps = (g.s_plane, panel.bytes, g.m_plane, panel.bytes)
        products.hand_on([f.offset(*pair) for pair in zip(products.values, steps, strict=True)])


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


def _second_factors(matrix: Sequence[Sequence[Value]]) -> Iterator[Value]:
    """Of all products, of parts of the second factor: a row for each part of the channels."""
    half = len(matrix) // 2
    if not half:
        yield matrix[0][0]
        return
    each = [
        [weight_sums(left[at], right[at], left[half + at], right[half + at]) for at in range(half)]
        for left, right in zip(matrix[:half], matrix[half:], strict=True)
    ]
    for product in range(PRODUCTS):
        yield from _second_factors([[sums[product] for sums in row] for row in each])


def quarters(m: list[Value]) -> list[Value]:
    """c11, c12, c21 and c22."""
    u = m[0] + m[4]
    v = u + m[5]
    return [m[0] + m[1], (u + m[3]) + m[6], v + m[2], v + m[3]]
