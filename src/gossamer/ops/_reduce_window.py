"""Reducing what a sliding window shows: REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import prod

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Shape
from gossamer.records import record
from gossamer.schema.enums import ReduceWindowFunction, TensorType
from gossamer.views import View

TYPES = (
    TensorType.BOOL,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT8,
    TensorType.FLOAT32,
    TensorType.FLOAT64,
)
MAX_RANK = 6


def _larger(a: Array, b: Array) -> Array:
    return np.where(a >= b, a, b)  # unlike np.maximum, what follows a NaN counts again


def _smaller(a: Array, b: Array) -> Array:
    return np.where(a <= b, a, b)


_STEPS: dict[ReduceWindowFunction, Callable[[Array, Array], Array]] = {
    ReduceWindowFunction.ADD: np.add,
    ReduceWindowFunction.MUL: np.multiply,
    ReduceWindowFunction.MINIMUM: _smaller,
    ReduceWindowFunction.MAXIMUM: _larger,
    ReduceWindowFunction.ALL: np.logical_and,
    ReduceWindowFunction.ANY: np.logical_or,
}

_FUNCTIONS = {
    ReduceWindowFunction.ADD: "add",
    ReduceWindowFunction.MUL: "mul",
    ReduceWindowFunction.MINIMUM: "min",
    ReduceWindowFunction.MAXIMUM: "max",
    ReduceWindowFunction.ALL: "and",
    ReduceWindowFunction.ANY: "or",
}

MOST_ELEMENTS = 64
"""Of a window that machine code goes through, one after the other."""


@record(frozen=True)
class Window:
    """Its shape, by how much it moves, and how far apart the elements are that it shows; all positive."""

    shape: Shape
    strides: Shape
    dilations: Shape

    def output_shape(self, shape: Shape) -> Shape:
        """How many places it has in a tensor, along each dimension."""
        extents = [(size - 1) * dilation + 1 for size, dilation in zip(self.shape, self.dilations, strict=True)]
        return tuple(
            (size - extent) // stride + 1 if size >= extent else 0
            for size, extent, stride in zip(shape, extents, self.strides, strict=True)
        )

    def reduce(self, value: Array, start: Array, function: ReduceWindowFunction) -> Array:
        """At each place: ``start`` combined with the elements in the window, one after the other, in order.

        Booleans are added and multiplied as int8.
        """
        wide = value.view(np.int8) if value.dtype == np.bool_ else value
        places = self.output_shape(value.shape)
        result = np.full(places, start, wide.dtype)
        step = _STEPS[function]
        for offset in itertools.product(*map(range, self.shape)) if result.size else ():
            seen = wide[
                tuple(
                    slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride)
                    for at, dilation, count, stride in zip(offset, self.dilations, places, self.strides, strict=True)
                )
            ]
            result = step(result, seen).astype(wide.dtype, copy=False)
        return result.astype(value.dtype, copy=False)

    def lower(self, graph: Lowering, x: View, start: View, function: ReduceWindowFunction) -> View:
        """The same in terms of the kernel graph. Refused for large windows, and functions that need another type."""
        logic = function in (ReduceWindowFunction.ALL, ReduceWindowFunction.ANY)
        if logic != (x.type == TensorType.BOOL):
            graph.refuse(f"there is no {function.name} of {type_name(x.type)}")
        if prod(self.shape) > MOST_ELEMENTS:
            graph.refuse(f"the window has more than {MOST_ELEMENTS} elements")
        places = self.output_shape(x.shape)
        result = graph.reshape(start, ()).broadcast(places)
        for offset in itertools.product(*map(range, self.shape)):
            seen = x
            for axis, at in enumerate(offset):
                seen = seen.slice(axis, at * self.dilations[axis], places[axis], self.strides[axis])
            result = graph.map(_FUNCTIONS[function], result, seen)
        return result
