"""`winograd`: 3x3 convolutions of stride 1 with a quarter of the multiplications, by the minimal filtering algorithm.

F(4x4, 3x3) makes 4x4 output pixels of 6x6 input pixels: both are transformed, channel by channel, to 36 planes, in
which a convolution is a product: one matrix product for each plane. F(2x2, 3x3) has 16 planes for 2x2 pixels. The
points of the smaller are 0, 1, -1 and infinity, those of the larger 0, the roots of 1/2 and 2, and infinity: with 1 and
2 instead of the roots, the rounding errors are twice as large. As it is, results differ from those of a direct sum by
some 5e-6 of the largest (2x2: 2e-6).

`Winograd` is the driver: for a group of tiles at a time it calls the microkernels `WinogradInput`, `contract.Gemm` for
every plane, and `WinogradOutput`, with what lies between in scratch memory that fits the second-level cache.
`WinogradWeights` transforms and packs weights, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from gossamer.codegen.basis import ENDINGS
from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import BYTES, F32, I64, PTR, Function, Module, Part, Value, vector
from gossamer.codegen.kernels.groups import Groups
from gossamer.codegen.kernels.pack import transpose
from gossamer.codegen.spec import ENTRY, ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

Size = Literal[2, 4]
"""Output pixels of a tile, in each direction. The input has 2 more."""


def planes_of(size: Size) -> int:
    """How many matrix products a tile is."""
    return (size + 2) ** 2


def plane_bytes(rows: int, channels: int) -> int:
    """Bytes from plane to plane of ``rows`` x ``channels`` floats: whole lines, and an odd number of them, so that the
    planes of a pixel do not meet in the cache."""
    lines = -(-4 * rows * channels // 64)
    return 64 * (lines + 1 - lines % 2)


@record(frozen=True)
class WinogradWeights(KernelSpec):
    """Weights [channels, 3, 3, depth], transformed and packed: planes of panels [panel][depth][nv x lanes].

    As `pack.Pack` packs them; a plane has ``destination_plane`` bytes. ``depth`` is a multiple of the lanes. Threads
    share vectors of channels. ``weights`` is the type in the model.
    """

    size: Size
    weights: Literal["f32", "f16"] = "f32"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *destination channels depth nv panels rest_nv destination_plane"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (*((self.weights,) if self.weights != "f32" else ()), "f32", "winograd", "weights", _shape(self.size))

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        lanes, planes = f.lanes, planes_of(self.size)
        stored = vector("float" if self.weights == "f32" else "half", lanes)
        bytes = BYTES[stored.element]
        square = f.stack(F32, planes * lanes * lanes)  # [plane][channel][depth]
        with f.share((a.channels + (lanes - 1)) // lanes) as number:
            panel = number // a.nv
            inside = number - panel * a.nv
            width = f.select(f.compare("eq", panel, a.panels), a.rest_nv, a.nv)
            step = width * (4 * lanes)
            destination = f.offset(a.destination, panel * a.nv * a.depth * (4 * lanes) + inside * (4 * lanes))
            with f.loop(0, a.depth, lanes) as blocks:
                with f.loop(0, lanes) as channels:
                    channel = f.least(number * lanes + channels.index, a.channels - 1)  # behind the last, that again
                    first = f.offset(a.source, (channel * 9 * a.depth + blocks.index) * bytes)
                    filter = []
                    for tap in range(9):
                        value = f.load(stored, f.offset(first, a.depth * (tap * bytes)))
                        filter.append(value if stored is f.f32 else f.emit(f.f32, f"fpext {value} to {f.f32}"))
                    rows = [filter[:3], filter[3:6], filter[6:]]
                    for plane, value in enumerate(_transformed(f, _WEIGHTS[self.size], rows)):
                        f.store(value, f.at(square, channels.index * lanes + plane * lanes * lanes))
                with f.loop(0, planes) as plane_loop:
                    here = f.at(square, plane_loop.index * (lanes * lanes))
                    to = f.offset(destination, plane_loop.index * a.destination_plane + blocks.index * step)
                    for column in transpose(f, [f.load(f.f32, f.at(here, lane * lanes)) for lane in range(lanes)]):
                        f.store(column, to)
                        to = f.offset(to, step)
        return module.text()


@record(frozen=True)
class WinogradInput(KernelSpec):
    """A microkernel: the planes of a tile of input pixels. ``void k(ptr x, ptr v, ptr shape)``.

    ``shape`` is the argument block: ``channels``; ``x_row`` and ``x_column``, bytes between pixels of x; ``v_plane``,
    bytes between planes of v.
    """

    size: Size

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("channels x_row x_column v_plane")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "winograd", "input", _shape(self.size))

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.microkernel("x", "v", "shape")
        x, v, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)

        def channels(at: Value, parts: list[Part], _: list[Value]) -> None:
            (part,) = parts
            pixels = _grid(f, part, f.offset(x, at), self.size + 2, shape.x_row, shape.x_column)
            to = f.offset(v, at)
            for value in _transformed(f, _INPUT[self.size], pixels):
                part.store(value, to)
                to = f.offset(to, shape.v_plane)

        f.vectors(shape.channels, channels)
        return module.text()


@record(frozen=True)
class WinogradOutput(KernelSpec):
    """A microkernel: a tile of output pixels from their planes.

    ``void k(ptr m, ptr bias, ptr y, ptr residual, ptr shape, i64 rows, i64 columns)``: the first ``rows`` rows and
    ``columns`` columns of the tile are not written, for they belong to the tile before. m is not the same afterwards.

    Operand 0 of the epilogue is the sum with its bias, operand 1 the residual. ``shape`` is the argument block:
    ``channels``; ``m_plane``, bytes between planes of m; the bytes between pixels of y and of the residual.
    """

    size: Size
    epilogue: Expression = IDENTITY

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"epilogue": ENDINGS}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("channels m_plane y_row y_column residual_row residual_column")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "winograd", "output", name_of(self.epilogue), _shape(self.size))

    def emit(self, target: Target) -> str:
        if operand_count(self.epilogue) > 2:
            raise CompileError(f"{self.name}: there is one operand beside the sum, the residual.")
        module = Module(target)
        pointers = [(PTR, name) for name in ("m", "bias", "y", "residual", "shape")]
        f = module.function(ENTRY, *pointers, (I64, "rows"), (I64, "columns"))
        m, bias, y, residual, shape_pointer, skipped_rows, skipped_columns = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        side = self.size + 2
        row_is_mine, column_is_mine = (
            [f.compare("sge", f.integer(at), skipped) for at in range(self.size)]
            for skipped in (skipped_rows, skipped_columns)
        )

        def channels(at: Value, parts: list[Part], _: list[Value]) -> None:
            (part,) = parts
            planes = _grid(f, part, f.offset(m, at), side, shape.m_plane * side, shape.m_plane)
            begin = part.load(f.offset(bias, at))
            values = iter(_transformed(f, _OUTPUT[self.size], planes))
            nowhere = f.offset(m, at)  # which has been read
            for row in range(self.size):
                to = f.offset(y, at + shape.y_row * row)
                other = f.offset(residual, at + shape.residual_row * row)
                for column in range(self.size):
                    operands = [next(values) + begin]
                    if operand_count(self.epilogue) == 2:
                        operands.append(part.load(other))
                    is_mine = row_is_mine[row] & column_is_mine[column]
                    part.store(apply(self.epilogue, f, operands), f.select(is_mine, to, nowhere))
                    to, other = f.offset(to, shape.y_column), f.offset(other, shape.residual_column)

        f.vectors(shape.channels, channels)
        return module.text()


@record(frozen=True)
class Winograd(KernelSpec):
    """A driver: y = epilogue(bias + x * weights) for 3x3 kernels of stride 1, tile by tile.

    ``images`` images are cut into ``tile_rows`` x ``tile_columns`` tiles of ``size`` x ``size`` output pixels. A tile
    begins at a multiple of ``size``, but not behind ``last_row`` and ``last_column``; where the last ones overlap those
    before, they write only what is new. ``x`` is the first element that the first output pixel reads, in an image with
    its border.

    The tiles are done in groups: ``groups`` or more (see `Groups`). For a group, ``input`` with ``input_shape``
    transforms them to v, ``kernel`` with ``shape`` (``ragged_kernel``, null: none, with ``ragged_shape`` for the last
    panel) multiplies them by b to m, ``output`` with ``output_shape`` transforms these. In v a tile has ``v_tile``
    bytes and a plane ``v_plane``, in m ``m_tile`` and ``m_plane``, of ``planes``; b has ``b_plane`` bytes in a plane.
    The microkernels do ``kernel_tiles`` tiles at a time; their ``next`` is ``next_stride`` for each call behind the
    next panel. ``zeros`` is the bias that they add, ``bias`` that of the output.

    ``scratch`` has ``m_offset`` bytes for v and then m, for every thread, ``scratch_thread`` bytes apart. All strides
    are in bytes. y overlaps neither x nor the residual. Threads share the groups.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*input *input_shape *kernel *shape *ragged_kernel *ragged_shape *output *output_shape *x *b *zeros *bias *y "
        "*residual *scratch scratch_thread m_offset images tile_rows tile_columns size last_row last_column groups "
        "x_image x_row x_column y_image y_row y_column residual_image residual_row residual_column planes v_plane "
        "v_tile m_plane m_tile b_plane kernel_tiles next_stride panels panel_bytes panel_channels"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "winograd")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        g = f.arguments(self.arguments)
        _, tid, _ = f.parameters
        none = Value(f, PTR, "null")
        v = f.offset(g.scratch, tid * g.scratch_thread)
        m = f.offset(v, g.m_offset)
        across = g.tile_columns
        each = g.tile_rows * across
        ragged = f.compare("ne", g.ragged_kernel, none)

        def place(tile: Value) -> tuple[Value, Value, Value, Value, Value]:
            """Image, row and column of the first pixel of a tile, and how far it is behind where it should be."""
            image = tile // each
            inside = tile - image * each
            down = inside // across
            row, column = down * g.size, (inside - down * across) * g.size
            first_row, first_column = f.least(row, g.last_row), f.least(column, g.last_column)
            return image, first_row, first_column, row - first_row, column - first_column

        def pixel(name: str, image: Value, row: Value, column: Value) -> Value:
            down = image * getattr(g, f"{name}_image") + row * getattr(g, f"{name}_row")
            return f.offset(getattr(g, name), down + column * getattr(g, f"{name}_column"))

        all_tiles = g.images * each
        groups = Groups(f, all_tiles, g.kernel_tiles, g.groups, all_tiles // g.kernel_tiles)
        with f.share(groups.count) as group:
            first, count, kernel_calls = groups[group]
            with f.loop(0, count) as tiles:
                image, row, column, _, _ = place(first + tiles.index)
                f.call(g.input, pixel("x", image, row, column), f.offset(v, tiles.index * g.v_tile), g.input_shape)
            with f.loop(0, g.planes) as planes:

                def call(kernel: Value, shape: Value, panel: Value) -> None:
                    b = f.offset(g.b, planes.index * g.b_plane + panel * g.panel_bytes)
                    following = f.offset(b, g.panel_bytes)
                    channels = panel * g.panel_channels
                    with f.loop(0, kernel_calls) as calls:
                        tile = f.least(calls.index * g.kernel_tiles, count - g.kernel_tiles)
                        f.call(
                            kernel,
                            f.offset(v, planes.index * g.v_plane + tile * g.v_tile),
                            b,
                            g.zeros,
                            f.offset(m, planes.index * g.m_plane + tile * g.m_tile + channels),
                            none,
                            f.offset(following, calls.index * g.next_stride),
                            shape,
                        )

                with f.loop(0, g.panels) as panels:
                    call(g.kernel, g.shape, panels.index)
                with f.when(ragged):
                    call(g.ragged_kernel, g.ragged_shape, g.panels)
            with f.loop(0, count) as tiles:
                image, row, column, *skipped = place(first + tiles.index)
                y, residual = pixel("y", image, row, column), pixel("residual", image, row, column)
                f.call(g.output, f.offset(m, tiles.index * g.m_tile), g.bias, y, residual, g.output_shape, *skipped)
        return module.text()


def _shape(size: Size) -> str:
    return f"{size}x{size}"


def _grid(f: Function, part: Part, first: Value, side: int, row: Value, column: Value) -> list[list[Value]]:
    """A square of vectors in memory."""
    grid = []
    for _ in range(side):
        at, values = first, []
        for _ in range(side):
            values.append(part.load(at))
            at = f.offset(at, column)
        grid.append(values)
        first = f.offset(first, row)
    return grid


_NEAR, _FAR = math.sqrt(0.5), math.sqrt(2)

Transform = Callable[[Function, Sequence[Value]], list[Value]]
"""A matrix times a vector of vectors."""


def _transformed(f: Function, transform: Transform, grid: list[list[Value]]) -> list[Value]:
    """The matrix from both sides of a grid, row by row."""
    columns = [transform(f, [row[column] for row in grid]) for column in range(len(grid[0]))]
    return [value for row in zip(*columns, strict=True) for value in transform(f, row)]


# The matrices that Lavin and Gray call B^T, G and A^T, by what their rows share.


def _input_2(f: Function, d: Sequence[Value]) -> list[Value]:
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _input_4(f: Function, d: Sequence[Value]) -> list[Value]:
    near, far = _add(f, d[4], -2, d[2]), _add(f, d[4], -0.5, d[2])
    near_odd, far_odd = _add(f, d[3], -2, d[1]), _add(f, d[3], -0.5, d[1])
    return [
        _add(f, d[0] + d[4], -2.5, d[2]),
        _add(f, near, _NEAR, near_odd),
        _add(f, near, -_NEAR, near_odd),
        _add(f, far, _FAR, far_odd),
        _add(f, far, -_FAR, far_odd),
        _add(f, d[1] + d[5], -2.5, d[3]),
    ]


def _weights_2(f: Function, g: Sequence[Value]) -> list[Value]:
    even, odd = (g[0] + g[2]) * 0.5, g[1] * 0.5
    return [g[0], even + odd, even - odd, g[2]]


def _weights_4(f: Function, g: Sequence[Value]) -> list[Value]:
    near, near_odd = _add(f, g[0], 0.5, g[2]) * (-2 / 3), g[1] * (-2 / 3 * _NEAR)
    far, far_odd = _add(f, g[0], 2, g[2]) * (1 / 6), g[1] * (1 / 6 * _FAR)
    return [g[0], near + near_odd, near - near_odd, far + far_odd, far - far_odd, g[2]]


def _output_2(f: Function, m: Sequence[Value]) -> list[Value]:
    return [m[0] + (m[1] + m[2]), (m[1] - m[2]) - m[3]]


def _output_4(f: Function, m: Sequence[Value]) -> list[Value]:
    near, near_odd = m[1] + m[2], m[1] - m[2]
    far, far_odd = m[3] + m[4], m[3] - m[4]
    # The far points are twice as far as the near ones.
    return [
        m[0] + near + far,
        _add(f, near_odd, 2, far_odd) * _NEAR,
        _add(f, near * 0.5, 2, far),
        _add(f, m[5], _NEAR**3, _add(f, near_odd, 8, far_odd)),
    ]


def _add(f: Function, x: Value, factor: float, y: Value) -> Value:
    """x + factor y."""
    return f.fma(y, f.constant(y.type, factor), x)


_INPUT: dict[Size, Transform] = {2: _input_2, 4: _input_4}
_WEIGHTS: dict[Size, Transform] = {2: _weights_2, 4: _weights_4}
_OUTPUT: dict[Size, Transform] = {2: _output_2, 4: _output_4}
