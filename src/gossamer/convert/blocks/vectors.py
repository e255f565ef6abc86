"""Vectors of sizes and bounds, of which some elements may be known although the vector is not."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import WORLDS, Graph, Size, Value, unknown
from gossamer.schema.enums import TensorType


class Hidden(NamedTuple):
    """An element that only values decide: number ``position`` of those of ``vector``."""

    vector: Value
    position: int


Element = int | Size | Hidden

_next_open = itertools.count()


def open_size(*, high: int | None = None) -> Size:
    """A size that only values decide, and that is no other open size. ``high`` bounds it."""
    return _open(str(next(_next_open))) if high is None else unknown(300, high=high)


def decided(*by: Element | None) -> int | Size:
    """A size that these elements decide: the same for the same ones. A single number is the size itself."""
    if len(by) == 1 and isinstance(by[0], (int, Size)):
        return by[0]
    return _open(repr([_name(element) if isinstance(element, Hidden) else element for element in by]))


def _open(key: str) -> Size:
    """A size that hardly any other key has, small enough for squares of it, and a multiple of 12, so that it can be
    divided by what vectors have elements of."""
    first, second = divmod(zlib.crc32(key.encode()) % 24000, 200)
    return Size((12 * (9 + first), 12 * (140 + second)))


def _name(element: Hidden) -> tuple[object, int]:
    node = element.vector.node
    return (element.vector.name if node is None else (node.order, element.vector.index)), element.position


def elements(vector: Value) -> list[Element]:
    """The elements of a vector or scalar: numbers where they are known."""
    if vector.known is not None:
        worlds = [[int(number) for number in known.reshape(-1)] for known in vector.known]
        return [size_of(numbers) for numbers in zip(*worlds, strict=True)]
    if vector.node is not None:
        inputs = [value for value in vector.node.inputs if value is not None]
        if vector.node.op in ("PACK", "CONCATENATION") and vector.rank == 1:
            return [element for value in inputs for element in elements(value)]
        if vector.node.op == "STRIDED_SLICE" and not vector.rank and inputs[0].rank == 1 and inputs[1].data is not None:
            return [elements(inputs[0])[int(inputs[1].data[0])]]
        if vector.node.op in ("CAST", "RESHAPE", "SQUEEZE", "EXPAND_DIMS") and vector.rank <= 1 >= inputs[0].rank:
            return elements(inputs[0])
    return [Hidden(vector, position) for position in range(math.prod(vector.shape))]


def scalar(graph: Graph, element: int | Hidden) -> Value:
    """An element as an int32 scalar."""
    if isinstance(element, int):
        return graph.constant(np.array(element, np.int32))
    vector = cast(graph, element.vector, TensorType.INT32)
    if not vector.rank:
        return vector
    place = element.position
    return graph.add("STRIDED_SLICE", vector, [place], [place + 1], [1], shrink_axis_mask=1)


def as_sizes(found: Sequence[Element]) -> list[int | Size]:
    """What a shape made of these elements can be: those that are not known are open."""
    return [decided(element) for element in found]


def per_world(size: int | Size) -> tuple[int, ...]:
    """A size in each world."""
    return size.worlds if isinstance(size, Size) else (int(size),) * WORLDS


def size_of(worlds: Sequence[int]) -> int | Size:
    """The size that is these numbers."""
    return worlds[0] if len(set(worlds)) == 1 else Size(tuple(worlds))


def int32(graph: Graph, x: Value) -> Value:
    """Integers as int32. Constants are clipped: a bound beyond all sizes stays one."""
    if x.data is not None and x.type != TensorType.INT32:
        info = np.iinfo(np.int32)
        return graph.constant(np.clip(x.data, info.min, info.max).astype(np.int32), name=x.name)
    return cast(graph, x, TensorType.INT32)


def index_type(graph: Graph, x: Value) -> Value:
    """Positions in a type that operators of TFLite take: int32 or int64."""
    return x if x.type in (TensorType.INT32, TensorType.INT64) else cast(graph, x, TensorType.INT32)
