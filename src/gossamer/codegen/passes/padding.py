"""Zeros that are padded around an image only for convolutions to read become the padding of these convolutions; zero
points, where numbers are quantized.

The padded image is neither written nor read: its border is stored around the image itself.
"""

from __future__ import annotations

from gossamer.codegen.graph import PAD, Kernel, KernelGraph
from gossamer.codegen.kinds import kind_of, window_of, with_window
from gossamer.records import replace


def run(graph: KernelGraph) -> None:
    """Leave pads that others read, too; what nobody reads any more goes."""
    readers = graph.readers()
    absorbed: set[int] = set()
    for pad in graph.kernels:
        if pad.kind != PAD or not _is_border(pad) or graph.is_boundary(pad.y.buffer):
            continue
        found = readers.get(pad.y.buffer, [])
        if not found or not all(_convolves(reader, pad) for reader in found):
            continue
        (x, _), (_, top, left, _) = pad.operands, pad.settings
        for reader in found:
            geometry = window_of(reader)
            before = (geometry.before[0] + top, geometry.before[1] + left)
            reader.settings = with_window(reader, replace(geometry, before=before))
            reader.operands[0] = x
            reader.origin = (*pad.origin, *reader.origin)
        absorbed.add(id(pad))
    graph.kernels = [kernel for kernel in graph.kernels if id(kernel) not in absorbed]


def _is_border(pad: Kernel) -> bool:
    x = pad.operands[0]
    return len(x.shape) == 4 and (x.shape[0], x.shape[3]) == (pad.y.shape[0], pad.y.shape[3])


def _convolves(reader: Kernel, pad: Kernel) -> bool:
    """Whether it reads all of the padded image as an image, and the value is what it pads with itself."""
    window = kind_of(reader).window
    if window is None or not window.stored:
        return False
    y, value = pad.y, pad.operands[1].buffer.array
    whole = reader.operands[0].is_whole and reader.operands[0].shape == y.shape
    alone = all(view.buffer is not y.buffer for view in reader.operands[1:])
    return whole and alone and value is not None and bool((value == window.zero(reader.settings)).all())
