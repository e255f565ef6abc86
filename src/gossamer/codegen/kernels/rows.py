"""`rows`: expand, depthwise and project as one kernel that keeps what lies between them in the cache.

The blocks of MobileNet and its kin widen an image by a pointwise convolution, filter it channel by channel and make it
narrow again. Row by row, the wide image never exists: expanded rows live in a ring of as many as the depthwise kernel
spans, one depthwise row in a buffer, both in the scratch memory of the thread. `RowPipeline` is the driver; the work is
done by the microkernels of `contract` and `depthwise`.
"""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen.ir import I64, PTR, Function, Module, Value
from gossamer.codegen.kernels.depthwise import MAX_KERNEL_ROWS
from gossamer.codegen.kernels.move import fill
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

CONTRACT_ROW = ArgumentBlock(
    "*b *bias *kernel *shape *ragged_kernel *ragged_shape tiles tile_columns last_column a_column c_column "
    "residual_column panels panel_bytes panel_channels"
)
"""A contraction of one row of pixels, as `contract.ContractTiles` does it: see there what the words mean.

All tiles have the same number of rows, so the last overlaps unless it fits.
"""


@record(frozen=True)
class RowPipeline(KernelSpec):
    """A driver: y = project(depthwise(expand(x))), row by row; without ``expand``, y = project(depthwise(x)).

    ``expand`` and ``project`` are blocks `CONTRACT_ROW`, ``depthwise`` a `DepthwiseRow` with its ``depthwise_shape``,
    ``weights`` and ``bias``. All strides are in bytes. There are ``rows`` rows of y in each of ``images``. The first
    kernel row that y's row r sees is r x ``stride`` - ``pad_rows``; there are ``kernel_rows`` of them, ``dilation``
    rows apart.

    With ``expand``, these are rows of the expanded image, of which there are ``height``; row i of it is made from
    ``x`` + i x ``x_row``. (A convolution can expand, too: then x is the first element that its first pixel reads, in
    an image with a border, and ``x_row`` its stride x row.) A row of the ring has ``slot`` bytes: ``left`` bytes of
    border, the expanded pixels, ``right`` bytes of border. Borders, and rows outside the image, hold the byte
    ``border``. Without ``expand`` they are rows of ``x``, an image with a border, and x is the first element that the
    first output pixel reads; ``pad_rows`` is 0.

    ``scratch`` has `scratch_bytes` bytes for every thread, ``scratch_thread`` apart. y overlaps neither x nor the
    residual, which may be x. Threads share images x rows; rows between two shares are expanded by both.
    """

    expand: bool

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*expand *project *depthwise *depthwise_shape *weights *bias *x *y *residual *scratch scratch_thread images "
        "rows height kernel_rows stride dilation pad_rows x_image x_row y_image y_row residual_image residual_row slot "
        "left right border"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "rows", "expand" * self.expand, "dwconv", "project")

    def emit(self, target: Target) -> str:
        module = Module(target)
        _contract_row(module)
        f = module.driver()
        g = f.arguments(self.arguments)
        pointers = f.stack(PTR, MAX_KERNEL_ROWS)
        kernel_rows = f.least(g.kernel_rows, MAX_KERNEL_ROWS)
        _, tid, _ = f.parameters
        ring = f.offset(g.scratch, tid * g.scratch_thread)
        outside, wide = ring, ring  # without a ring, the row is all there is
        done, span = ring, g.height
        if self.expand:
            span = (kernel_rows - 1) * g.dilation + 1
            outside = f.offset(ring, span * g.slot)
            wide = f.offset(outside, g.slot)
            fill(f, outside, g.slot, g.border)
            with f.loop(0, span) as slots:
                slot = f.offset(ring, slots.index * g.slot)
                fill(f, slot, g.left, g.border)
                fill(f, f.offset(slot, g.slot - g.right), g.right, g.border)
            done = f.stack(I64, 1)  # rows of the image before this one have been expanded
            f.store(f.integer(0), done)

        with f.share(g.images * g.rows) as task:
            image = task // g.rows
            row = task - image * g.rows
            first = row * g.stride - g.pad_rows
            x = f.offset(g.x, image * g.x_image)
            if self.expand:
                before = f.select(f.compare("eq", row, 0), f.integer(0), f.load(I64, done))
                end = f.least(first + span, g.height)
                with f.loop(f.greatest(f.greatest(first, 0), before), end) as expanding:
                    slot = f.offset(ring, expanding.index % span * g.slot)
                    source = f.offset(x, expanding.index * g.x_row)
                    _call_row(f, g.expand, source, f.offset(slot, g.left), Value(f, PTR, "null"))
                f.store(end, done)
            with f.loop(0, kernel_rows) as kernel:
                at = first + kernel.index * g.dilation
                if self.expand:
                    slot = f.offset(ring, at % span * g.slot)
                    pointer = f.select(f.compare("ult", at, g.height), slot, outside)  # -1 is a large number
                else:
                    pointer = f.offset(x, at * g.x_row)
                f.store(pointer, f.at(pointers, kernel.index, "ptr"))
            f.call(g.depthwise, pointers, g.weights, g.bias, wide, g.depthwise_shape)
            y = f.offset(g.y, image * g.y_image + row * g.y_row)
            residual = f.offset(g.residual, image * g.residual_image + row * g.residual_row)
            _call_row(f, g.project, wide, y, residual)
        return module.text()


def scratch_bytes(kernel_rows: int, dilation: int, slot: int, depthwise_row: int) -> int:
    """Scratch memory of a thread: the ring, a row of border, and a depthwise row of so many bytes; without ``expand``
    (``slot`` is 0), that row only."""
    return ((kernel_rows - 1) * dilation + 2) * slot + depthwise_row


def _contract_row(module: Module) -> None:
    """The function that does a `CONTRACT_ROW`."""
    f = module.function("row", (PTR, "args"), (PTR, "a"), (PTR, "c"), (PTR, "residual"), internal=True)
    g = f.arguments(CONTRACT_ROW)
    _, a, c, residual = f.parameters
    none = Value(f, PTR, "null")
    ragged = f.compare("ne", g.ragged_kernel, none)
    with f.loop(0, g.tiles) as tiles:
        column = f.least(tiles.index * g.tile_columns, g.last_column)
        at = f.offset(a, column * g.a_column)
        to = f.offset(c, column * g.c_column)
        other = f.offset(residual, column * g.residual_column)

        def call(kernel: Value, shape: Value, panel: Value) -> None:
            channels = panel * g.panel_channels
            b, bias = f.offset(g.b, panel * g.panel_bytes), f.offset(g.bias, channels)
            f.call(kernel, at, b, bias, f.offset(to, channels), f.offset(other, channels), none, shape)

        with f.loop(0, g.panels) as panels:
            call(g.kernel, g.shape, panels.index)
        with f.when(ragged):
            call(g.ragged_kernel, g.ragged_shape, g.panels)


def _call_row(f: Function, row: Value, a: Value, c: Value, residual: Value) -> None:
    f.call(Value(f, PTR, "@row"), row, a, c, residual)
