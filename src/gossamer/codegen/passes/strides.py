"""What only pointwise convolutions of stride 2 read is computed at even pixels only.

Residual networks halve their images so: the last block of a stage, and in it the convolution before the last, make four
times the pixels that anybody looks at. In ResNet-50 that is a tenth of all multiplications.
"""

from __future__ import annotations

from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.kinds import kind_of, window_of, with_window
from gossamer.records import replace
from gossamer.views import Buffer, View


def run(graph: KernelGraph) -> None:
    """Hand strides up, from the last kernel to the first: a kernel that got one may hand it on."""
    readers, writers = graph.readers(), graph.writers()
    for kernel in reversed(graph.kernels):
        buffer = kernel.y.buffer
        if not kind_of(kernel).thins or not kernel.y.is_whole or len(buffer.shape) != 4:
            continue
        if graph.is_boundary(buffer) or len(writers[buffer]) > 1:
            continue
        found = readers.get(buffer, [])
        if not found or not all(_skips(reader, buffer) for reader in found):
            continue
        images, _, _, channels = buffer.shape
        rows, columns = window_of(found[0]).output
        smaller = Buffer((images, rows, columns, channels), buffer.type).view()
        geometry = window_of(kernel)
        stride = (2 * geometry.stride[0], 2 * geometry.stride[1])
        kernel.settings = with_window(kernel, replace(geometry, stride=stride, output=(rows, columns)))
        kernel.operands[kernel.arity :] = [_even(view, rows, columns) for view in kernel.extras]
        kernel.y = smaller
        writers[smaller.buffer], readers[smaller.buffer] = [kernel], found
        for reader in found:
            reader.settings = with_window(reader, replace(window_of(reader), stride=(1, 1)))
            reader.operands[0] = smaller


def _skips(reader: Kernel, buffer: Buffer) -> bool:
    """Whether it reads the even pixels of the whole image, and that is all it reads of it."""
    if not kind_of(reader).thins or sum(view.buffer is buffer for view in reader.operands) > 1:
        return False
    geometry = window_of(reader)
    x = reader.operands[0]
    return (
        x.buffer is buffer
        and x.is_whole
        and x.shape == buffer.shape
        and geometry.kernel == (1, 1)
        and geometry.stride == (2, 2)
        and geometry.before == (0, 0)
        and geometry.output == ((buffer.shape[1] + 1) // 2, (buffer.shape[2] + 1) // 2)
    )


def _even(view: View, rows: int, columns: int) -> View:
    return view.slice(1, 0, rows, 2).slice(2, 0, columns, 2)
