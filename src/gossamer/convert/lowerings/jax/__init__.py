"""What the primitives of JAX become. See `Call` for what a lowering is given.

A lowering is found by the primitive's name, ``"dot_general"``, and returns a value, or a list of as many as the
equation has outputs. A result may be smaller than JAX says where it broadcasts to that.

Floats of every type are float32: inputs and outputs of the function have their own types, nothing between them does.
Constants that repeat their elements along an axis are views of those elements: `Call.operand` gives them without the
repetitions, to operators that broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.indexing import broadcast_to
from gossamer.convert.blocks.shapes import shape_value
from gossamer.convert.graph import MOST_FOLDED, Array, Graph, Size, Value, shapes_of
from gossamer.convert.infer import tensor_type
from gossamer.convert.lowerings import Lowerings
from gossamer.records import record
from gossamer.schema.enums import TensorType

_CARRIED = {
    TensorType.FLOAT16: TensorType.FLOAT32,
    TensorType.BFLOAT16: TensorType.FLOAT32,
    TensorType.FLOAT64: TensorType.FLOAT32,
    TensorType.COMPLEX128: TensorType.COMPLEX64,
}


@record(frozen=True, eq=False)
class Meta:
    """What JAX says of a result."""

    type: TensorType
    shape: tuple[int | Size, ...]


@record(frozen=True, eq=False)
class Call:
    """An equation: the primitive's name and parameters, its operands, and what JAX says of its results.

    ``run`` puts the equations of a jaxpr into a graph: it takes both, and values for the inputs, and returns the
    outputs. ``size`` tells what a size of JAX, which may have symbols, is in each world, and ``number`` computes it in
    a graph as an int32 scalar.
    """

    graph: Graph
    name: str
    params: Mapping[str, Any]
    inputs: tuple[Value, ...]
    results: tuple[Meta, ...]
    run: Callable[[Any, Graph, Sequence[Value]], list[Value]]
    size: Callable[[Any], int | Size]
    number: Callable[[Graph, Any], Value]

    @property
    def result(self) -> Meta:
        """What JAX says of the first result."""
        return self.results[0]

    @property
    def type(self) -> TensorType:
        """The type of the first result."""
        return self.results[0].type

    def add(self, op: str, *operands: Any, **options: Any) -> Value:
        """As `Graph.add`."""
        return self.graph.add(op, *operands, **options)

    def value(self, number: int) -> Value:
        """An operand in its whole shape."""
        return stored(self.graph, self.inputs[number])

    def values(self) -> list[Value]:
        """All operands in their whole shapes."""
        return [stored(self.graph, value) for value in self.inputs]

    def operand(self, number: int) -> Value:
        """An operand for an operator that broadcasts."""
        return bare(self.graph, self.inputs[number])

    def operands(self) -> list[Value]:
        """All operands for an operator that broadcasts."""
        return [bare(self.graph, value) for value in self.inputs]

    def sizes(self, shape: Sequence[Any]) -> list[int | Size]:
        """A shape of JAX in all worlds."""
        return [self.size(size) for size in shape]

    def shape(self, sizes: Sequence[int | Size]) -> Value:
        """Sizes as a vector; open ones are found in the shapes of operands or of the graph's inputs."""
        return shape_value(self.graph, sizes, *self.inputs, *self.graph.inputs)


def type_of(dtype: np.dtype[Any]) -> TensorType:
    """The type that values of a dtype have between inputs and outputs. Raises `KeyError` if no tensor has it."""
    type = tensor_type(dtype)
    return _CARRIED.get(type, type)


def is_float(x: Value) -> bool:
    """Whether elements are floats."""
    return x.type == TensorType.FLOAT32


def spread(graph: Graph, x: Value, shape: Sequence[int | Size], *sources: Value) -> Value:
    """A value repeated to a shape: of a constant a view, which takes no memory. Open sizes are found in the shapes of
    ``sources``. Raises `Refused` if it does not broadcast to that."""
    if x.shapes == shapes_of(shape):
        return x
    if x.data is not None and all(isinstance(size, int) for size in shape):
        return graph.constant(np.broadcast_to(x.data, shapes_of(shape)[0]), x.type, x.name)
    return broadcast_to(graph, x, shape_value(graph, shape, x, *sources))


def bare(graph: Graph, x: Value) -> Value:
    """A constant without the repetitions that `spread` made; a scalar if one element is all that is left."""
    if x.data is None:
        return x
    least = _least(x.data)
    return x if least.shape == x.data.shape else graph.constant(least.reshape(()) if least.size == 1 else least, x.type)


def stored(graph: Graph, x: Value) -> Value:
    """A value for an operator that needs it whole: large repetitions are made when the model runs."""
    if x.data is None or x.data.nbytes <= MOST_FOLDED:
        return x
    least = _least(x.data)
    if least.nbytes > x.data.nbytes // 2:
        return x
    return graph.add("BROADCAST_TO", graph.constant(least, x.type), np.array(x.data.shape, np.int32))


def _least(data: Array) -> Array:
    repeats = [size > 1 and stride == 0 for size, stride in zip(data.shape, data.strides, strict=True)]
    found: Array = data[tuple([slice(0, 1) if repeated else slice(None) for repeated in repeats])]
    return found


def like(graph: Graph, x: Value, number: float) -> Value:
    """A scalar of the type of a value."""
    return graph.constant(np.array(number).astype(x.dtype), x.type)


lowers = Lowerings[Call](__name__)
