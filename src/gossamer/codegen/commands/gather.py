"""`gather`: boxes of operand 0 from where the index vectors of operand 1 say. Settings are `Boxes`.

With index vectors [*P, components] the result is [*P, *sizes]: along axis ``axes[k]`` of operand 0 a box begins at
component k, along the others at 0. The first ``batch_dims`` of P walk through the same dimensions of operand 0.
"""

from __future__ import annotations

from typing import Any

from gossamer.codegen.commands import MANY, SMALL, Build, blocks_of
from gossamer.codegen.graph import Boxes, Kernel
from gossamer.codegen.kernels.gather import AXIS, Aim, Gather
from gossamer.codegen.layout import item_bytes, merged
from gossamer.programs.program import Address
from gossamer.views import View

_ONE = (1, 0, 0, 0)


def commands(node: Kernel, build: Build) -> None:
    """One command. A box that need not be moved (`gossamer.codegen.aims`) is read where it is."""
    if node.y.buffer in build.layout.aimed:
        _aim(node.operands[0], node.operands[1], node.y, node.settings, build)
        return
    move(node.operands[0], node.operands[1], node.y, node.settings, build, puts=False)


def _aim(tensor: View, indices: View, box: View, settings: Boxes, build: Build) -> None:
    build.command(
        Aim(build.target.name, 8 * item_bytes(indices.buffer), settings.clamps),
        indices=build.address(indices),
        axes=_axes(tensor, settings, build),
        fault=build.fault(),
        components=len(settings.axes),
        index_component=build.strides(indices)[-1],
        readers=build.aimed(box.buffer, build.address(tensor)),
    )


def _axes(tensor: View, settings: Boxes, build: Build) -> Address:
    strides = build.strides(tensor)
    words = [
        AXIS.words(limit=tensor.shape[axis] - settings.sizes[axis] + 1, step=strides[axis]) for axis in settings.axes
    ]
    return build.table([word for axis in words for word in axis])


def move(tensor: View, indices: View, boxes: View, settings: Boxes, build: Build, *, puts: bool) -> None:
    """Move boxes [*P, *sizes] from a tensor, or to it."""
    item = item_bytes(tensor.buffer)
    strides, box_strides = build.strides(tensor), build.strides(boxes)
    *index_strides, component = build.strides(indices)
    count = len(index_strides)
    walked = [strides[axis] if axis < settings.batch_dims else 0 for axis in range(count)]
    positions = merged(indices.shape[:-1], tuple(walked), box_strides[:count], tuple(index_strides)) or [_ONE]
    inside = merged(settings.sizes, strides, box_strides[count:])
    runs = bool(inside) and inside[-1][1:] == (item, item)
    columns = inside.pop() if inside else (1, item, item)
    if runs and columns[0] != 1:
        columns = (columns[0] * item, 1, 1)
        item = 1
    position = positions.pop()
    is_one = position is _ONE and bool(inside)
    if is_one:  # of which the kernel walks through three more dimensions
        position = (*inside.pop(), 0)
    row = inside.pop() if inside else _ONE
    group = positions.pop() if positions else _ONE
    if is_one and inside:
        group = (*inside.pop(), 0)
    block, blocks = blocks_of(columns[0], group[0] * row[0], 4096)
    last = position[0]
    if group[0] == 1 and row[0] * blocks < MANY:  # threads share groups
        count, *steps = position
        length = min(max(SMALL // (block * item), 1), count)
        group, position = (-(-count // length), *(length * step for step in steps)), (length, *steps)
        last = count - (group[0] - 1) * length
    spec = Gather(build.target.name, 8 * item, 8 * item_bytes(indices.buffer), settings.clamps, puts)
    sides = ("y", "x") if puts else ("x", "y")
    values: dict[str, Any] = {}
    for side, (name, view) in enumerate(zip(sides, (tensor, boxes), strict=True), 1):
        values[name] = build.address(view)
        values[f"{name}_group"], values[f"{name}_position"] = group[side], position[side]
        values[f"{name}_row"], values[f"{name}_column"] = row[side], columns[side]
    build.repeat(
        spec,
        [*positions, *((*dimension, 0) for dimension in inside)],
        (*sides, "indices"),
        indices=build.address(indices),
        axes=_axes(tensor, settings, build),
        fault=build.fault(),
        components=len(settings.axes),
        groups=group[0],
        positions=position[0],
        last=last,
        rows=row[0],
        columns=columns[0],
        block=block,
        blocks=blocks,
        index_group=group[3],
        index_position=position[3],
        index_component=component,
        **values,
    )
