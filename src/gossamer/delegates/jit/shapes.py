"""The shapes for which a partition is prepared, and what tells its programs for them apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer.delegates.delegate import Partition
from gossamer.ops.op_def import Shape

Shapes = Mapping[int, Shape]
"""By tensor, what a partition reads that is no constant."""

MOST_SEEN = 8
"""Shapes that are compared to tell which sizes change."""


def shapes_of(partition: Partition) -> Shapes | None:
    """What a partition reads that is no constant; ``None`` if something else may decide what it is."""
    if any(one.is_dynamic or one.is_constant for one in partition.fed):
        return None
    return {tensor.index: tensor.shape for tensor in partition.fed}


def shapes_out_of(partition: Partition) -> list[Shape] | None:
    """Of the outputs of a partition that is prepared; ``None`` if there is more to say of one than its shape."""
    outputs = partition.outputs
    return None if any(one.is_constant or one.is_dynamic for one in outputs) else [one.shape for one in outputs]


def key_of(partition: Partition) -> Any:
    """What tells a program from others of the same graph: its nodes, the shapes of what they read, and what it writes,
    which may be only something in between."""
    shapes = [tensor.shape for tensor in partition.fed if not tensor.is_constant]
    return partition.node_numbers, tuple(shapes), tuple([tensor.index for tensor in partition.outputs])


def key_for_shapes(partition: Partition) -> Any:
    """What decides the program of a partition, among all shapes that its graph may have; ``None`` if more does."""
    if any(one.is_dynamic for one in partition.fed):
        return None  # shapes that may be others the next time
    if partition.fingerprint is None and any(one.is_constant for one in partition.fed):
        return None  # a value that some operator has worked out, perhaps from shapes
    return partition.fingerprint, key_of(partition)
