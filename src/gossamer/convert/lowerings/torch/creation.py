"""Tensors that are made of nothing: of one number, of ranges, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.indexing import pad
from gossamer.convert.blocks.shapes import cast, size_vector, transpose
from gossamer.convert.graph import Refused, Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, dtype_of, lowers, plain
from gossamer.convert.lowerings.torch.views import diagonal as view_of_diagonal
from gossamer.schema.enums import TensorType


def filled(call: Call, value: Number, shape: Value | list[int]) -> Value:
    """One number everywhere, of the type of the result."""
    number = call.operand(value)
    if isinstance(shape, list) and number.data is not None:
        return call.graph.constant(np.broadcast_to(number.data, shape), call.type)
    return call.add("FILL", shape if isinstance(shape, Value) else np.array(shape, np.int32), number)


@lowers("aten.full")
def full(call: Call, size: Sequence[Number], fill_value: Number, **others: Any) -> Value:
    return filled(call, fill_value, call.shape(size))


@lowers("aten.zeros", "aten.empty", "aten.empty_permuted", "aten.empty_strided")
def zeros(call: Call, size: Sequence[Number], *ignored: Any, **others: Any) -> Value:
    return filled(call, 0, call.shape(size))


@lowers("aten.ones")
def ones(call: Call, size: Sequence[Number], **others: Any) -> Value:
    return filled(call, 1, call.shape(size))


_LIKE = {"zeros": 0, "ones": 1, "empty": 0}


@lowers("aten.zeros_like", "aten.ones_like", "aten.empty_like", "aten.full_like")
def like(call: Call, self: Value, fill_value: Number | None = None, **others: Any) -> Value:
    number = _LIKE[call.packet[5:-5]] if fill_value is None else fill_value
    return filled(call, number, list(self.shape) if self.is_static else size_vector(call.graph, self))


@lowers("aten.new_zeros", "aten.new_ones", "aten.new_empty", "aten.new_full", "aten.new_empty_strided")
def new(call: Call, self: Value, size: Sequence[Number], fill_value: Number | None = None, **others: Any) -> Value:
    number = _LIKE.get(call.packet[9:], 0) if fill_value is None else fill_value
    return filled(call, number, call.shape(size))


@lowers("aten.scalar_tensor")
def scalar_tensor(call: Call, s: Number, **others: Any) -> Value:
    return call.operand(s)


@lowers("aten.arange")
def arange(call: Call, end: Number | None = None, start: Number = 0, step: Number = 1, dtype: Any = None) -> Value:
    if end is None:
        refuse("a range without an end")
    if not any(isinstance(number, Value) for number in (start, end, step)):
        numbers: Any = (start, end, step)
        return call.graph.constant(np.arange(*numbers).astype(dtype_of(call.type)), call.type)
    type = call.type if call.type in (TensorType.FLOAT32, TensorType.INT64) else TensorType.INT32
    bounds = [call.operand(number, type) for number in (start, end, step)]
    return cast(call.graph, call.add("RANGE", *bounds), call.type)


@lowers("aten.linspace", "aten.logspace")
def linspace(call: Call, start: Number, end: Number, steps: Number, base: float = 10.0, dtype: Any = None) -> Value:
    count = plain(steps, "number of steps")
    if isinstance(start, Value) or isinstance(end, Value):
        first, last = [call.operand(number, TensorType.FLOAT32) for number in (start, end)]
        share = call.graph.constant(np.linspace(0, 1, count, dtype=np.float32))
        span = call.add("MUL", share, call.add("SUB", last, first))
        made = call.add("ADD", first, span)
        return made if call.packet == "aten.linspace" else call.add("POW", float(base), made)
    points = np.linspace(start, end, count)
    points = points if call.packet == "aten.linspace" else base**points
    return call.graph.constant(points.astype(dtype_of(call.type)), call.type)


@lowers("aten.eye")
def eye(call: Call, n: Number, m: Number | None = None, **others: Any) -> Value:
    columns = n if m is None else m
    if not isinstance(n, Value) and not isinstance(columns, Value):
        return call.graph.constant(np.eye(int(n), int(columns)).astype(dtype_of(call.type)), call.type)
    rows, across = [call.add("RANGE", 0, call.operand(one, TensorType.INT32), 1) for one in (n, columns)]
    same = call.add("EQUAL", call.add("EXPAND_DIMS", rows, 1), call.add("EXPAND_DIMS", across, 0))
    return cast(call.graph, same, call.type)


def distance(call: Call, x: Value) -> Value:
    """Column less row of the last two axes: int32 [rows, columns]."""
    numbers = []
    for axis in (x.rank - 2, x.rank - 1):
        size = x.dims[axis]
        if size is None:
            whole = size_vector(call.graph, x)
            length = call.add("STRIDED_SLICE", whole, [axis], [axis + 1], [1], shrink_axis_mask=1)
            numbers.append(call.add("RANGE", 0, length, 1))
        else:
            numbers.append(call.graph.constant(np.arange(size, dtype=np.int32)))
    return call.add("SUB", call.add("EXPAND_DIMS", numbers[1], 0), call.add("EXPAND_DIMS", numbers[0], 1))


@lowers("aten.tril", "aten.triu")
def triangle(call: Call, self: Value, diagonal: Number = 0) -> Value:
    op = "LESS_EQUAL" if call.packet == "aten.tril" else "GREATER_EQUAL"
    kept = call.add(op, distance(call, self), call.operand(diagonal, TensorType.INT32))
    if self.type == TensorType.BOOL:
        return call.add("LOGICAL_AND", self, kept)
    return call.add("SELECT_V2", kept, self, np.zeros((), self.dtype))


@lowers("aten.tril_indices", "aten.triu_indices")
def triangle_indices(call: Call, row: int, col: int, offset: int = 0, **others: Any) -> Value:
    rows, columns = (np.tril_indices if "tril" in call.packet else np.triu_indices)(row, offset, col)
    return call.graph.constant(np.stack([rows, columns]).astype(dtype_of(call.type)), call.type)


@lowers("aten.diag", "aten.diag_embed")
def diag(call: Call, self: Value, diagonal: int = 0, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    offset = offset or diagonal
    if call.packet == "aten.diag" and self.rank == 2:
        return view_of_diagonal(call, self, offset)
    x = self
    if offset:
        x = pad(call.graph, self, [*[(0, 0)] * (self.rank - 1), (max(offset, 0), max(-offset, 0))])
    size = x.shapes[0][-1]
    across = call.add("EXPAND_DIMS", x, np.array(x.rank - 1, np.int32))
    place = np.eye(size, k=0, dtype=bool) if not offset else np.roll(np.eye(size, dtype=bool), -offset, 0)
    made = call.add("SELECT_V2", place, across, np.zeros((), x.dtype))
    order = list(range(made.rank - 2))
    for place_, axis in sorted([(dim1 % made.rank, made.rank - 2), (dim2 % made.rank, made.rank - 1)]):
        order.insert(place_, axis)
    return transpose(call.graph, made, order)


@lowers("aten.rand", "aten.rand_like", "aten.randn", "aten.randn_like", "aten.randint", "aten.randint_like")
@lowers("aten.randperm")
def random(call: Call, *ignored: Any, **others: Any) -> Value:
    """Numbers at random are other ones than torch's: equal distributions are all that can be had."""
    if "randint" in call.packet or "randperm" in call.packet:
        refuse("draws integers at random as torch's generator has them, which no other has")
    given, self = others.get("size"), others.get("self")
    if given is not None:
        shape: Any = call.shape(given)
        shape = shape if isinstance(shape, Value) else np.array(shape, np.int32)
    elif isinstance(self, Value):
        shape = size_vector(call.graph, self)
    else:
        raise Refused("random numbers without a shape")
    op = "RANDOM_UNIFORM" if call.packet.startswith("aten.rand_like") or call.packet == "aten.rand" else None
    return call.add(op or "RANDOM_STANDARD_NORMAL", shape, shape=call.result.shape)
