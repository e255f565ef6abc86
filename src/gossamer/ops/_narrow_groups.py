"""Convolutions of many groups of few channels, as depthwise convolutions.

The products of a group fill a vector only as far as it has filters. So the channels of a group become pixels of a row,
next to each other: image [N, H, W, G D] is [N, H, W D, G], the filters that are the first of their groups are a
depthwise one [h, w D, G] that goes D pixels at a time, and so are the second ones. Vectors then go along groups.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array
from gossamer.records import replace
from gossamer.views import Geometry, View

LEAST_GROUPS = {2: 8, 3: 16, 4: 32}
"""By the channels or filters of a group, whichever are more: what more of them fill of a vector, groups must, too."""

MOST_ROWS = 64
"""Of a filter of a depthwise convolution."""

Depthwise = Callable[[View, Array, slice, Geometry], View]
"""Of an image and filters [h, w, G], which are those of a slice of all."""


def are_narrow(x: View, filter: Array, windows: Geometry) -> bool:
    """Whether `convolution` is for these. x [N, H, W, C], filter [O, h, w, C / groups]."""
    filters, rows, columns, depth = filter.shape
    groups = x.shape[3] // depth if depth else 0
    if depth == 1 or groups < LEAST_GROUPS.get(max(depth, filters // max(groups, 1)), groups + 1):
        return False
    return rows <= MOST_ROWS and (columns == 1 or windows.dilation[1] == 1)


def convolution(graph: Lowering, x: View, filter: Array, windows: Geometry, depthwise: Depthwise) -> View:
    """[N, H', W', O], of what ``depthwise`` makes of the first filters of all groups, the second, and so on."""
    filters, rows, columns, depth = filter.shape
    images, height, width, channels = x.shape
    groups = channels // depth
    each = filters // groups
    image = graph.copy(graph.reshape(x, (images, height, width, groups, depth)).permute((0, 1, 2, 4, 3)))
    image = graph.reshape(image, (images, height, width * depth, groups))
    wide = replace(
        windows,
        kernel=(rows, columns * depth),
        stride=(windows.stride[0], windows.stride[1] * depth),
        dilation=(windows.dilation[0], 1),
        before=(windows.before[0], windows.before[1] * depth),
    )
    flat = filter.reshape(filters, rows, columns * depth)
    parts = []
    for first in range(each):
        chosen = slice(first, None, each)
        parts.append(depthwise(image, np.ascontiguousarray(flat[chosen].transpose(1, 2, 0)), chosen, wide))
    y = graph.concat(parts, 3)
    y = graph.reshape(y, (*y.shape[:3], each, groups)).permute((0, 1, 2, 4, 3))
    return graph.reshape(y, (*y.shape[:3], filters))
