"""Zeros that are padded around an image only for convolutions to read become the padding of these convolutions.

The padded image is neither written nor read: its border is stored around the image itself.
"""

from __future__ import annotations

from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.records import replace
from gossamer.views import View


def run(graph: KernelGraph) -> None:
    """Leave pads that others read, too; what nobody reads any more goes."""
    readers = graph.readers()
    absorbed: set[int] = set()
    for pad in graph.kernels:
        if pad.kind != "pad" or not _is_border_of_zeros(pad) or graph.is_boundary(pad.y.buffer):
            continue
        found = readers.get(pad.y.buffer, [])
        if not found or not all(_convolves(reader, pad.y) for reader in found):
            continue
        (x, _), (_, top, left, _) = pad.operands, pad.settings
        for reader in found:
            before = reader.settings.before
            reader.settings = replace(reader.settings, before=(before[0] + top, before[1] + left))
            reader.operands[0] = x
            reader.origin = (*pad.origin, *reader.origin)
        absorbed.add(id(pad))
    graph.kernels = [kernel for kernel in graph.kernels if id(kernel) not in absorbed]


def _is_border_of_zeros(pad: Kernel) -> bool:
    x, value = pad.operands
    same = len(x.shape) == 4 and (x.shape[0], x.shape[3]) == (pad.y.shape[0], pad.y.shape[3])
    return same and value.buffer.array is not None and not value.buffer.array.any()


def _convolves(reader: Kernel, y: View) -> bool:
    whole = reader.operands[0].is_whole and reader.operands[0].shape == y.shape
    return (
        reader.kind in ("contract", "depthwise")
        and whole
        and all(v.buffer is not y.buffer for v in reader.operands[1:])
    )
