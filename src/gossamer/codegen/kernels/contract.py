"""`contract`: sums of products. GEMM, convolution over bordered images and fully connected layers, from two parts.

A microkernel (`Gemm`) computes one tile: ``mr`` rows (pixels) times ``nv`` vectors of output channels. A driver walks
over the tiles of a tensor and calls microkernels through pointers. Drivers know bytes and no types, so that they serve
every data type.

Weights lie in panels of nv vectors of output channels (`pack.py`): panel, then depth, then channel, the last panel
filled up to whole vectors. Depth runs over taps and input channels in the order of the model's weights.

A convolution reads an image in whose border the padding is stored. Seen from an output pixel, the elements that one
row of a dense kernel covers are adjacent: they are one *tap*, ``kernel width x input channels`` deep. Dilated or
grouped kernels have one tap for every kernel element. The taps of a kernel are a table of offsets in bytes from the
first element that the output pixel reads; strides, dilation and groups are nothing but other offsets and strides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import ClassVar, Literal, NamedTuple

from gossamer.codegen.basis import ENDINGS
from gossamer.codegen.bf16 import add_products
from gossamer.codegen.dots import crosses
from gossamer.codegen.expression import IDENTITY, Expression, name_of, operand_count
from gossamer.codegen.ir import F32, I64, PTR, Arguments, Function, Module, Part, Type, Value, vector
from gossamer.codegen.kernels.groups import PREFETCH, Groups
from gossamer.codegen.kernels.outputs import prefetch_rows, rows_at, store_floats
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.codegen.tiles import closed_tiles
from gossamer.errors import CompileError
from gossamer.records import record, replace
from gossamer.targets import Target

UNROLL = 4
"""Steps of depth in one turn of the inner loop; what is left over runs one by one."""

LINE = 64
"""Bytes that one prefetch brings."""

# Rows are addressed with few registers: from the row pointers 0 and 7, plus 0, 1, 3 or 5 strides, times 1, 2, 4 or 8
# (which the address modes of x86 contain).
ROW_ADDRESS = {
    0: (0, 0, 1), 1: (0, 1, 1), 2: (0, 1, 2), 3: (0, 3, 1), 4: (0, 1, 4), 5: (0, 5, 1), 6: (0, 3, 2), 7: (7, 0, 1),
    8: (0, 1, 8), 9: (7, 1, 2), 10: (0, 5, 2), 11: (7, 1, 4), 12: (0, 3, 4), 13: (7, 3, 2),
}  # fmt: skip
MAX_ROWS = len(ROW_ADDRESS)


class Panels(NamedTuple):
    """How output channels lie in panels of ``nv`` vectors: ``whole`` panels, and one of ``rest_nv`` vectors (0: none).

    ``tail`` channels are in the last vector of all; the microkernel of the last panel is ragged unless it is full.
    """

    whole: int
    rest_nv: int
    tail: int
    vectors: int
    """Of all channels; a vector has as many floats as the depth for each of its lanes."""


def panels_of(channels: int, nv: int, lanes: int) -> Panels:
    """The panels of ``channels`` output channels. A last panel that is not full is never a whole one."""
    vectors = -(-channels // lanes)
    whole = channels // (nv * lanes)
    return Panels(whole, vectors - whole * nv, channels - (vectors - 1) * lanes, vectors)


@record(frozen=True)
class Gemm(KernelSpec):
    """A microkernel: c = epilogue(bias + a b) for mr rows and nv vectors of channels.

    ``void k(ptr a, ptr b, ptr bias, ptr c, ptr residual, ptr next, ptr shape)``. ``shape`` is the argument block:

    - ``depth``: elements of a tap; ``taps`` and ``tap_offsets``: their number and their offsets in bytes, unless
      the kernel is a gemm, which has one tap at offset 0.
    - ``a_stride``, ``c_stride``, ``residual_stride``: bytes from row to row.
    - ``tail``: channels in the last vector, if the kernel is ragged. It reads and writes no others of bias, c and
      residual; b is always read in whole vectors.

    ``half``: the last vector has half the lanes (b does not change): where 512 bits are computed in two steps of 256,
    as on Zen 4, a panel of 24 channels takes three quarters of the time. It may be ragged, too.

    ``conv``: there is a table of taps. ``accumulate``: begin with what is in c instead of the bias. ``prefetch``:
    lines fetched from ``next`` in every turn of `UNROLL` steps. ``epilogue``: operand 0 is the sum, operand 1 the
    residual, which may be c itself. ``weights``: the type of b, which is computed with as f32; or bf16, which both are:
    then a step of depth is a pair of them, in a and in b, in the place of a float.
    """

    mr: int
    nv: int
    epilogue: Expression = IDENTITY
    conv: bool = False
    ragged: bool = False
    accumulate: bool = False
    prefetch: int = 0
    half: bool = False
    weights: Literal["f32", "f16", "bf16"] = "f32"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("depth taps *tap_offsets a_stride c_stride residual_stride tail")

    @property
    def parts(self) -> tuple[str, ...]:
        type = "f32_f16w" if self.weights == "f16" else self.weights
        return (type, "conv" if self.conv else "gemm", name_of(self.epilogue), f"{self.mr}x{self.nv}")

    @property
    def variant(self) -> str:
        forms = (
            "accumulate" * self.accumulate,
            "half" * self.half,
            "ragged" * self.ragged,
            f"p{self.prefetch}" * bool(self.prefetch),
        )
        return "_".join(filter(None, forms))

    def general(self) -> Iterator[KernelSpec]:
        # A tail says all that is said by a half; what is fetched is not read; there is always a table of taps.
        lasts = dict.fromkeys(
            ((self.ragged, self.half), (self.ragged or self.half, self.half), (self.ragged or self.half, False))
        )
        for (ragged, half), prefetch, conv in product(
            lasts, dict.fromkeys((self.prefetch, 0)), dict.fromkeys((self.conv, True))
        ):
            yield replace(self, ragged=ragged, half=half, prefetch=prefetch, conv=conv)

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        isa, lasts = target.name, [(False, False), (True, False)] + [(True, True)] * (target.vector_bits == 512)
        for (mr, nv), (ragged, half) in product(closed_tiles(target, "gemm"), lasts):
            yield cls(isa, mr, nv, IDENTITY, ragged=ragged, half=half, prefetch=PREFETCH)
            yield cls(isa, mr, nv, IDENTITY, True, ragged, True, half=half)
            yield from (cls(isa, mr, nv, ending, True, ragged, half=half) for ending in ENDINGS)

    def emit(self, target: Target) -> str:
        self._check(target)
        module = Module(target)
        f = module.microkernel("a", "b", "bias", "c", "residual", "next", "shape")
        a, b, bias, c, residual, following, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        mr, nv, size = self.mr, self.nv, 4 * f.lanes
        parts = [Part(f, f.f32) for _ in range(nv)]
        if self.ragged or self.half:
            last = vector("float", f.lanes // 2) if self.half else f.f32
            parts[-1] = Part(f, last, shape.tail if self.ragged else None)

        rows = rows_at(f, c, shape.c_stride, mr)
        if self.accumulate:
            sums = [part.load(f.offset(row, size * v)) for row in rows for v, part in enumerate(parts)]
        else:
            sums = [part.load(f.offset(bias, size * v)) for v, part in enumerate(parts)] * mr
        reads_residual = operand_count(self.epilogue) == 2
        residual_rows = rows_at(f, residual, shape.residual_stride, mr) if reads_residual else []
        if reads_residual:
            # Both are needed at the end, together, and may lie in memory: 56x56x64 to 256 takes 0.7 of the time.
            prefetch_rows(f, [*residual_rows, *rows], nv)

        if self.conv:
            with f.loop(0, shape.taps, carry=sums) as taps:
                tap = f.offset(a, f.load(I64, f.at(shape.tap_offsets, taps.index, "i64")))
                panel = f.offset(b, taps.index * (shape.depth * (nv * self._vector_bytes(f))))
                fetch = f.offset(following, taps.index * ((shape.depth & -UNROLL) * (self.prefetch * LINE // UNROLL)))
                taps.hand_on(self._depth(f, shape, parts, tap, panel, fetch, taps.values))
            sums = taps.results
        else:
            sums = self._depth(f, shape, parts, a, b, following, sums)

        store_floats(f, self.epilogue, parts, rows, residual_rows, lambda i, v: sums[i * nv + v])
        return module.text()

    def _depth(
        self,
        f: Function,
        shape: Arguments,
        parts: list[Part],
        a: Value,
        b: Value,
        following: Value,
        sums: list[Value],
    ) -> list[Value]:
        """The sums plus one tap."""
        nv, size = self.nv, self._vector_bytes(f)
        stride = shape.a_stride
        strides = {0: f.integer(0), 1: stride, 3: stride * 3, 5: stride * 5}
        starts = {0: a, 7: f.offset(a, stride * 7)}
        add = partial(add_products, f) if self.weights == "bf16" else f.fma
        rows = rows_at(f, a, stride, self.mr) if self._takes_elements(f) else []

        def step(index: Value, at: int, sums: list[Value], blocks: Sequence[Value] = ()) -> list[Value]:
            pointers = {start: f.at(pointer, index) for start, pointer in starts.items()} if not rows else {}
            panel = f.offset(b, index * (nv * size))
            weights = [
                self._weights(f, part.type, f.offset(panel, (at * nv + v) * size)) for v, part in enumerate(parts)
            ]
            sums = list(sums)
            for i in range(self.mr):
                if blocks:
                    value = f.emit(F32, f"extractelement {blocks[i]}, i32 {at}")
                elif rows:
                    value = f.load(F32, f.at(rows[i], index))
                else:
                    start, multiple, scale = ROW_ADDRESS[i]
                    row = f.offset(pointers[start], strides[multiple] * scale)
                    value = f.load(F32, f.at(row, at))
                for v, part in enumerate(parts):
                    sums[i * nv + v] = add(f.splat(value, part.type.lanes), weights[v], sums[i * nv + v])
            return sums

        most = shape.depth & -UNROLL
        with f.loop(0, most, UNROLL, carry=sums) as loop:
            if self.prefetch:
                fetch = f.offset(following, loop.index * (self.prefetch * LINE // UNROLL))
                for line in range(self.prefetch):
                    f.prefetch(f.offset(fetch, line * LINE))
            sums = loop.values
            blocks = [f.load(vector("float", UNROLL), f.at(row, loop.index)) for row in rows]
            for at in range(UNROLL):
                sums = step(loop.index, at, sums, blocks)
                f.keep_order()
            loop.hand_on(sums)
        with f.loop(most, shape.depth, carry=loop.results) as rest:
            rest.hand_on(step(rest.index, 0, rest.values))
        return rest.results

    def _takes_elements(self, f: Function) -> bool:
        """Whether `UNROLL` steps of every row are loaded at once, and multiplied by element."""
        return f.target.by_element and self.mr * (self.nv + 1) + self.nv <= f.target.registers

    def _vector_bytes(self, f: Function) -> int:
        """Of b."""
        return (2 if self.weights == "f16" else 4) * f.lanes

    def _weights(self, f: Function, type: Type, pointer: Value) -> Value:
        if self.weights != "f16":
            return f.load(type, pointer)
        return f.emit(type, f"fpext {f.load(type.with_element('half'), pointer)} to {type}")

    def _check(self, target: Target) -> None:
        if not 1 <= self.mr <= MAX_ROWS:
            raise CompileError(f"{self.name}: mr must be 1 to {MAX_ROWS}, got {self.mr}.")
        # The value of a row can take the place of a weight; a pair needs one of its own.
        needed = self.mr * self.nv + self.nv + (self.weights == "bf16")
        if self.nv < 1 or needed > target.registers:
            raise CompileError(f"{self.name}: the tile needs {needed} registers, {target.name} has {target.registers}.")
        if operand_count(self.epilogue) > 2:
            raise CompileError(f"{self.name}: there is one operand beside the sum, the residual.")


# What both drivers say about the tensors. All offsets and strides are in bytes.
_GEOMETRY = (
    "*a *b *bias *c *residual images rows tiles tile_columns large_tiles last_column a_image a_row a_column b_image "
    "c_image c_row c_column residual_image residual_row residual_column panels panel_bytes panel_bias panel_c "
    "panel_residual"
)
"""The tensors of a contraction. Rows of output pixels, ``rows`` in each of ``images``, are cut into ``tiles``.

``large_tiles`` of a row have ``tile_columns`` columns. Those behind have one less, each beginning where the one before
ends; or there is one only, which has what is left. No tile begins behind ``last_column``: so the last one may be large,
too, and overlap the one before (it computes some pixels again). ``a`` is the first element that the first output pixel
reads; ``c`` and ``residual`` belong to the first output pixel. From image to image, row to row and column to column
they move by their own strides. ``b_image`` is 0, or, in a batch of matrix products, the bytes from one packed matrix to
the next.

There are ``panels`` of ``panel_bytes`` bytes in b, which make so many bytes of bias, c and residual. What is left of
the channels is one more, ragged, panel (it follows in b).
"""

_OF_A_TILE = "*a *b *bias *c *residual panels panel_bytes panel_bias panel_c panel_residual"
"""What counts where there is one tile."""

_KERNELS = "*kernel *shape *ragged_kernel *ragged_shape"
"""What makes the whole panels, and (null: there is none) the last one."""


@record(frozen=True)
class _Position:
    """Where a tile lies."""

    a: Value
    c: Value
    residual: Value


def _row(f: Function, g: Arguments, image: Value, row: Value) -> _Position:
    a, c, residual = (
        f.offset(f.offset(getattr(g, name), image * getattr(g, f"{name}_image")), row * getattr(g, f"{name}_row"))
        for name in ("a", "c", "residual")
    )
    return _Position(a, c, residual)


def _column(f: Function, g: Arguments, tile: Value) -> Value:
    return tile * g.tile_columns - f.greatest(tile - g.large_tiles, 0)


def _tile(f: Function, g: Arguments, row: _Position, tile: Value) -> _Position:
    column = f.least(_column(f, g, tile), g.last_column)
    return _Position(
        f.offset(row.a, column * g.a_column),
        f.offset(row.c, column * g.c_column),
        f.offset(row.residual, column * g.residual_column),
    )


def _null(f: Function) -> Value:
    return Value(f, PTR, "null")


def _panels(f: Function, g: Arguments, ragged: Value) -> Value:
    """How many panels there are, with the ragged one, if what makes it is not null."""
    has_ragged = f.compare("ne", ragged, _null(f))
    return g.panels + f.emit(I64, f"zext {has_ragged} to i64")


@contextmanager
def _share(f: Function, g: Arguments, panels: Value) -> Iterator[tuple[Value, _Position, Value, Value, Value]]:
    """The share of this thread of all tiles x panels: a tile, with its image and row, the first of its panels, and
    their end.

    Where there are few tiles, shares of whole ones are unequal. Nothing is divided between a tile and the next, which
    would wait for it.
    """
    _, tid, threads = f.parameters
    begin, stop = (g.images * g.rows * g.tiles * panels * at // threads for at in (tid, tid + 1))
    size = f.greatest(panels, 1)
    first, end = begin // size, (stop + size - 1) // size
    with f.loop(first // g.tiles, (end + g.tiles - 1) // g.tiles) as lines:
        image = lines.index // g.rows
        row = _row(f, g, image, lines.index - image * g.rows)
        done = lines.index * g.tiles
        with f.loop(f.greatest(first - done, 0), f.least(end - done, g.tiles)) as tiles:
            before = (done + tiles.index) * panels
            yield image, row, tiles.index, f.greatest(begin - before, 0), f.least(stop - before, panels)


@record(frozen=True)
class ContractTiles(KernelSpec):
    """A driver: for every tile all panels. For weights that stay in the second-level cache.

    ``smaller_kernel`` and ``smaller_ragged_kernel`` make the tiles behind the large ones. The kernels may not
    accumulate, and a residual may be c itself only where no tiles overlap. Threads share tiles x panels.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(_GEOMETRY, _KERNELS, "*smaller_kernel *smaller_ragged_kernel")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "contract", "tiles")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)
        panels_of_all = _panels(f, g, g.ragged_kernel)
        with _share(f, g, panels_of_all) as (image, row, tile, first, end):
            at = _tile(f, g, row, tile)
            is_large = f.compare("slt", tile, g.large_tiles)
            kernel = f.select(is_large, g.kernel, g.smaller_kernel)
            ragged_kernel = f.select(is_large, g.ragged_kernel, g.smaller_ragged_kernel)

            def call(kernel: Value, shape: Value, panel: Value) -> None:
                b = f.offset(g.b, image * g.b_image + panel * g.panel_bytes)
                bias = f.offset(g.bias, panel * g.panel_bias)
                c, residual = f.offset(at.c, panel * g.panel_c), f.offset(at.residual, panel * g.panel_residual)
                f.call(kernel, at.a, b, bias, c, residual, _null(f), shape)

            with f.loop(first, f.least(end, g.panels)) as panels:
                call(kernel, g.shape, panels.index)
            with f.when(f.compare("sgt", end, g.panels)):
                call(ragged_kernel, g.ragged_shape, g.panels)
        return module.text()


@record(frozen=True)
class ContractSingle(KernelSpec):
    """A driver: a single tile, all panels. What `ContractTiles` does, where there are no others: the first weights are
    read at once, which models of some microseconds feel (0.02 us for a layer). Threads share panels.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(_OF_A_TILE, _KERNELS)

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "contract", "single")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)
        _single(f, g, g.a, g.bias, g.shape, g.ragged_shape)
        return module.text()


def _single(f: Function, g: Arguments, a: Value, bias: Value, shape: Value, ragged_shape: Value) -> None:
    """All panels of a single tile."""
    with f.share(_panels(f, g, g.ragged_kernel)) as panel:
        is_ragged = f.compare("eq", panel, g.panels)
        f.call(
            f.select(is_ragged, g.ragged_kernel, g.kernel),
            a,
            f.offset(g.b, panel * g.panel_bytes),
            f.offset(bias, panel * g.panel_bias),
            f.offset(g.c, panel * g.panel_c),
            f.offset(g.residual, panel * g.panel_residual),
            _null(f),
            f.select(is_ragged, ragged_shape, shape),
        )


@record(frozen=True)
class ContractState(KernelSpec):
    """A driver: what `ContractSingle` does for a row that may be zeros, as the state is with which recurrent layers
    begin: then weights need not be read.

    The row has ``words`` of 32 bits; all of them are ``word`` in a row of zeros, and at ``first`` there is
    ``first_word``. Then ``zeros`` takes the place of the bias, which is what the weights make of such a row, with the
    bias; ``empty`` that of the shapes, which is one without depth; and ``row`` that of the row.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        _OF_A_TILE, _KERNELS, "*zeros *empty *row *first first_word words word"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "contract", "state")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)

        def beside(place: Value, word: Value) -> Value:
            return f.emit(I64, f"zext {f.load(vector('i32', 1), place)} to i64") - word

        first = beside(g.first, g.first_word)
        with f.loop(0, f.select(f.compare("eq", first, 0), g.words, 0), carry=[first]) as words:
            difference = beside(f.at(g.a, words.index), g.word)
            words.hand_on([difference])
            words.goes_on = f.compare("eq", difference, 0)
        is_zero = f.compare("eq", words.results[0], 0)
        a, bias = f.select(is_zero, g.row, g.a), f.select(is_zero, g.zeros, g.bias)
        shape, ragged_shape = (f.select(is_zero, g.empty, each) for each in (g.shape, g.ragged_shape))
        _single(f, g, a, bias, shape, ragged_shape)
        return module.text()


DEPTH_BLOCK = ArgumentBlock("*kernel *last_kernel *shape a_offset b_offset next_stride next_offset")
"""A row of the tables of `ContractPanels`: a block of the depth, and the microkernels that add it.

``last_kernel`` makes the tiles of a row behind the large ones. ``next`` is the block of b plus ``next_offset`` plus
``next_stride`` for every tile: tiles share the prefetching of the next block among themselves.
"""


@record(frozen=True)
class ContractPanels(KernelSpec):
    """A driver: for every panel all blocks of the depth, for every block all tiles. For weights that are streamed.

    ``blocks`` (``ragged_blocks`` for the last panel; null: there is none) is a table of ``block_count`` rows
    `DEPTH_BLOCK`. From the second block on the kernels accumulate; then tiles may not overlap. Threads share panels x
    tiles, in the order of panel x ``panel_tasks`` + tile x ``tile_tasks``, one of which is 1.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        _GEOMETRY, "*blocks *ragged_blocks block_count panel_tasks tile_tasks"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "contract", "panels")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)
        panels_of_all = _panels(f, g, g.ragged_blocks)
        tiles_of_all = g.images * g.rows * g.tiles
        _, tid, threads = f.parameters
        share = [panels_of_all * tiles_of_all * at // threads for at in (tid, tid + 1)]
        with f.loop(0, panels_of_all) as panels:
            panel = panels.index
            before = panel * g.panel_tasks
            first, end = (
                f.least(f.greatest(bound - before + g.tile_tasks - 1, 0) // g.tile_tasks, tiles_of_all)
                for bound in share
            )
            table = f.select(f.compare("eq", panel, g.panels), g.ragged_blocks, g.blocks)
            b, bias = f.offset(g.b, panel * g.panel_bytes), f.offset(g.bias, panel * g.panel_bias)
            in_c, in_residual = panel * g.panel_c, panel * g.panel_residual
            with f.loop(0, g.block_count) as blocks:
                block = f.arguments(DEPTH_BLOCK, f.offset(table, blocks.index * DEPTH_BLOCK.size))
                with f.loop(first // g.tiles, (end + g.tiles - 1) // g.tiles) as lines:
                    image = lines.index // g.rows
                    weights = f.offset(b, image * g.b_image + block.b_offset)
                    first_next = f.offset(weights, block.next_offset)
                    row = _row(f, g, image, lines.index - image * g.rows)
                    done = lines.index * g.tiles
                    with f.loop(f.greatest(first - done, 0), f.least(end - done, g.tiles)) as tiles:
                        at = _tile(f, g, row, tiles.index)
                        is_large = f.compare("slt", tiles.index, g.large_tiles)
                        f.call(
                            f.select(is_large, block.kernel, block.last_kernel),
                            f.offset(at.a, block.a_offset),
                            weights,
                            bias,
                            f.offset(at.c, in_c),
                            f.offset(at.residual, in_residual),
                            f.offset(first_next, (done + tiles.index) * block.next_stride),
                            block.shape,
                        )
        return module.text()


GROUP_PANEL = ArgumentBlock("*kernel *smaller_kernel *shape")
"""What makes panels for `ContractGroups`; ``smaller_kernel`` makes the tiles behind the large ones."""


@record(frozen=True)
class ContractGroups(KernelSpec):
    """A driver: for every group of tiles first their rows of ``a``, as ``input`` brings them to its form, then all
    panels. The kernels do not accumulate.

    ``void input(ptr a, ptr rows, ptr input_shape, i64 count)`` makes rows of ``row_bytes`` bytes that follow each other
    in ``scratch``, of the ``columns`` pixels of a row; every thread has ``scratch_thread`` bytes there. There are
    ``groups`` groups, or up to ``most_groups`` (see `Groups`). ``panel`` (`GROUP_PANEL`) makes the whole panels,
    ``ragged_panel`` (null: there is none) the last one. Kernels make ``many`` tiles of a row
    (`gossamer.codegen.kernels.inner_products.InnerProductGemm`), which fetch the next panel; or one, whose ``next`` is
    that panel plus ``next_stride`` for each of ``next_tiles`` tiles, a power of 2, which so fetch all of it, and the
    tiles behind them again. Threads share groups x panels.
    """

    many: bool = True

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        _GEOMETRY,
        "*panel *ragged_panel *input *input_shape columns row_bytes *scratch scratch_thread groups most_groups "
        "next_tiles next_stride",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "contract", "groups", "" if self.many else "single")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        yield from (cls(target.name),) if crosses(target) else ()

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)
        _, tid, _ = f.parameters
        rows, tile_bytes = f.offset(g.scratch, tid * g.scratch_thread), g.tile_columns * g.row_bytes
        made = f.stack(I64, 1)  # the group whose rows are in the scratch memory
        f.store(f.integer(-1), made)
        panels_of_all = _panels(f, g, g.ragged_panel)
        groups = Groups(f, g.images * g.rows * g.tiles, f.integer(1), g.groups, g.most_groups)
        with f.share(groups.count * panels_of_all) as task:
            group = task // panels_of_all
            number = task - group * panels_of_all
            first, count, _ = groups[group]
            first_line = first // g.tiles

            @contextmanager
            def lines() -> Iterator[tuple[_Position, Value, Value, Value, Value]]:
                """Each row of the group: where it lies, its image, its first tile and the end of its tiles there, and
                how many tiles of the group are before that one."""
                with f.loop(first_line, (first + count + g.tiles - 1) // g.tiles) as loop:
                    image = loop.index // g.rows
                    row = _row(f, g, image, loop.index - image * g.rows)
                    before = loop.index * g.tiles - first
                    begin = f.greatest(-before, 0)
                    yield row, image, begin, f.least(count - before, g.tiles), before + begin

            with f.when(f.compare("ne", group, f.load(I64, made))):
                with lines() as (row, _, begin, end, before):
                    column = _column(f, g, begin)
                    a, to = f.offset(row.a, column * g.a_column), f.offset(rows, before * tile_bytes)
                    f.call(g.input, a, to, g.input_shape, f.least(_column(f, g, end), g.columns) - column)
                f.store(group, made)
            panel = f.arguments(GROUP_PANEL, f.select(f.compare("eq", number, g.panels), g.ragged_panel, g.panel))
            b, bias = f.offset(g.b, number * g.panel_bytes), f.offset(g.bias, number * g.panel_bias)
            in_c, in_residual = number * g.panel_c, number * g.panel_residual
            with lines() as (row, image, begin, end, before):
                weights = f.offset(b, image * g.b_image)
                first_column, middle = _column(f, g, begin), f.least(f.greatest(begin, g.large_tiles), end)
                a = f.offset(rows, before * tile_bytes - first_column * g.row_bytes)
                c, residual = f.offset(row.c, in_c), f.offset(row.residual, in_residual)

                def call(kernel: Value, column: Value, following: Value, *tiles: Value) -> None:
                    f.call(
                        kernel,
                        f.offset(a, column * g.row_bytes),
                        weights,
                        bias,
                        f.offset(c, column * g.c_column),
                        f.offset(residual, column * g.residual_column),
                        following,
                        panel.shape,
                        *tiles,
                    )

                for kernel, start, stop in (
                    (panel.kernel, begin, middle),
                    (panel.smaller_kernel, middle, end),
                ):
                    number, following = before + (start - begin), f.offset(weights, g.panel_bytes)
                    if self.many:
                        with f.when(f.compare("slt", start, stop)):
                            column = _column(f, g, start)
                            call(kernel, column, following, number, stop - start, column)
                    else:
                        with f.loop(start, stop) as loop:
                            line = (number + (loop.index - start)) & (g.next_tiles - 1)
                            call(kernel, _column(f, g, loop.index), f.offset(following, line * g.next_stride))
        return module.text()
