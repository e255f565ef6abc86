"""What ONNX's operators become. See `Call` for what a lowering is given.

A lowering is found by the operator's name, of another domain than ONNX's own with that before it:
``"com.microsoft.Gelu"``. It returns a value, or a list of as many outputs as it has, ``None`` for those that nobody
names. What an operator means follows from `Call.version`, that of the operator set, where it changed.

Elements: TFLite computes in float32, so every float of the source is float32 here, whatever it is there; integers
that TFLite's operators do not have are wider ones (`CARRIERS`). Inputs and outputs of the model have their own types.
`Call.source_type` tells the type in the source, `Call.gives` says that of an output where it is not that of the inputs.

Axes are ONNX's: channels come before places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gossamer.convert.blocks.vectors import open_size
from gossamer.convert.graph import Graph, Refused, Size, Value
from gossamer.convert.lowerings import Lowerings
from gossamer.convert.messages.onnx import AttributeProto, DataType, GraphProto
from gossamer.dtypes import numpy_dtype
from gossamer.schema.enums import TensorType

if TYPE_CHECKING:
    from gossamer.arrays import NDArray
    from gossamer.convert.messages.onnx import NodeProto

CARRIERS: Mapping[DataType, TensorType] = {
    DataType.FLOAT: TensorType.FLOAT32,
    DataType.FLOAT16: TensorType.FLOAT32,
    DataType.BFLOAT16: TensorType.FLOAT32,
    DataType.DOUBLE: TensorType.FLOAT32,
    DataType.FLOAT8E4M3FN: TensorType.FLOAT32,
    DataType.FLOAT8E4M3FNUZ: TensorType.FLOAT32,
    DataType.FLOAT8E5M2: TensorType.FLOAT32,
    DataType.FLOAT8E5M2FNUZ: TensorType.FLOAT32,
    DataType.FLOAT8E8M0: TensorType.FLOAT32,
    DataType.FLOAT4E2M1: TensorType.FLOAT32,
    DataType.INT2: TensorType.INT8,
    DataType.INT4: TensorType.INT8,
    DataType.INT8: TensorType.INT8,
    DataType.INT16: TensorType.INT16,
    DataType.INT32: TensorType.INT32,
    DataType.INT64: TensorType.INT64,
    DataType.UINT2: TensorType.UINT8,
    DataType.UINT4: TensorType.UINT8,
    DataType.UINT8: TensorType.UINT8,
    DataType.UINT16: TensorType.INT32,
    DataType.UINT32: TensorType.INT64,
    DataType.UINT64: TensorType.INT64,
    DataType.BOOL: TensorType.BOOL,
    DataType.STRING: TensorType.STRING,
    DataType.COMPLEX64: TensorType.COMPLEX64,
    DataType.COMPLEX128: TensorType.COMPLEX64,
}
"""The type of a value that stands for elements of a type of the source."""

SOURCES: Mapping[TensorType, DataType] = {
    TensorType.FLOAT32: DataType.FLOAT,
    TensorType.INT8: DataType.INT8,
    TensorType.INT16: DataType.INT16,
    TensorType.INT32: DataType.INT32,
    TensorType.INT64: DataType.INT64,
    TensorType.UINT8: DataType.UINT8,
    TensorType.BOOL: DataType.BOOL,
    TensorType.STRING: DataType.STRING,
    TensorType.COMPLEX64: DataType.COMPLEX64,
}
"""The type of the source that a value has if nothing says otherwise."""

BITS: Mapping[DataType, int] = {
    DataType.INT2: 2,
    DataType.UINT2: 2,
    DataType.INT4: 4,
    DataType.UINT4: 4,
    DataType.INT8: 8,
    DataType.UINT8: 8,
    DataType.INT16: 16,
    DataType.UINT16: 16,
    DataType.INT32: 32,
    DataType.UINT32: 32,
    DataType.INT64: 64,
    DataType.UINT64: 64,
}
"""The width of integers."""

UNSIGNED = (DataType.UINT2, DataType.UINT4, DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64)


Integers = list[int]
Floats = list[float]


class TensorList(tuple[Any, ...]):
    """A sequence of tensors, which exists only while a model is converted."""

    __slots__ = ()


class Nothing:
    """An optional that holds nothing."""


class Importer(Protocol):
    """Who walks the graph, as lowerings of control flow see it."""

    quantized: dict[int, tuple[Value, Value, tuple[float, int]]]
    """Floats by the quantized values that were made of them, with scale and zero point."""

    def free_names(self, body: GraphProto) -> list[str]:
        """What a body takes from around it."""

    def value(self, scope: Any, name: str) -> Any:
        """What a name stands for in a scope."""

    def declared(self, scope: Any, name: str) -> list[int | Size | None] | None:
        """The shape that the model says a tensor has."""

    def inline(self, scope: Any, graph: Graph, body: GraphProto, given: Mapping[str, Any]) -> list[Any]:
        """The results of a body, its operators put into a graph. ``given`` are its inputs, and what it takes from
        around it if the graph is another one than the scope's."""


class Call:
    """A node to be lowered: ``inputs`` are values, `TensorList`, `Nothing` or ``None`` where one is left out;
    ``outputs`` how many there are, ``wanted`` which of them have a name; ``version`` that of the operator set."""

    def __init__(
        self,
        importer: Importer,
        scope: Any,
        node: NodeProto,
        version: int,
        inputs: Sequence[Any],
        types: Sequence[DataType | None],
        attributes: Mapping[str, AttributeProto],
        arrays: Any,
    ) -> None:
        self.importer = importer
        self.scope = scope
        self.graph: Graph = scope.graph
        self.node = node
        self.op = node.op_type
        self.version = version
        self.inputs = inputs
        self.outputs = len(node.output)
        self.wanted = [bool(name) for name in node.output]
        self.given: dict[int, DataType] = {}
        self.known_types = types
        self._attributes = attributes
        self._arrays = arrays

    # -- inputs

    def value(self, position: int) -> Value:
        """An input that is a tensor. Raises `Refused`."""
        found = self.inputs[position] if position < len(self.inputs) else None
        if not isinstance(found, Value):
            what = "missing" if found is None else f"a {type(found).__name__}, no tensor"
            raise Refused(f"input {position} is {what}")
        return found

    def optional(self, position: int) -> Value | None:
        """An input that may be left out."""
        found = self.inputs[position] if position < len(self.inputs) else None
        return None if found is None else self.value(position)

    def values(self, start: int = 0) -> list[Value]:
        """The inputs from one on, all tensors."""
        return [self.value(position) for position in range(start, len(self.inputs))]

    def constant(self, position: int, what: str) -> NDArray[Any]:
        """The value of an input that must be a constant. Raises `Refused`; ``what`` names it."""
        found = self.value(position).data
        if found is None:
            raise Refused(f"{what} (input {position}) must be a constant, it is computed; fold the model before")
        return found

    def numbers(self, position: int, what: str, name: str = "") -> Integers | None:
        """Integers that are an attribute ``name`` in old versions and an input, which must be a constant, in others;
        ``None`` if they are left out."""
        if name and self.has(name):
            found = self._attributes[name]
            return [int(n) for n in found.ints] if found.ints or not found.has("i") else [int(found.i)]
        if self.optional(position) is None:
            return None
        if 0 in self.value(position).dims:
            return []
        return [int(n) for n in self.constant(position, what).reshape(-1).tolist()]

    def source_type(self, position: int) -> DataType:
        """The type of an input's elements in the source."""
        known = self.known_types[position] if position < len(self.known_types) else None
        value = self.value(position)
        return known if known is not None and CARRIERS[known] == value.type else SOURCES[value.type]

    def gives(self, type: DataType, position: int = 0) -> None:
        """Say what type of the source an output has."""
        self.given[position] = type

    def declared(self, rank: int | None = None, position: int = 0) -> list[int | Size]:
        """The shape that the model says an output has, sizes that it does not say open: for what depends on values.

        Raises `Refused` if nothing tells the number of dimensions.
        """
        found = self.importer.declared(self.scope, self.node.output[position])
        if found is None or (rank is not None and len(found) != rank):
            if rank is None:
                raise Refused("the number of dimensions of its result depends on values; state its shape in the model")
            found = [None] * rank
        return [open_size() if size is None else size for size in found]

    # -- attributes

    def has(self, name: str) -> bool:
        """Whether an attribute is there."""
        return name in self._attributes

    def int(self, name: str, default: int = 0) -> int:
        """A number."""
        return int(self._attributes[name].i) if name in self._attributes else default

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether a number is not 0."""
        return bool(self.int(name, int(default)))

    def float(self, name: str, default: float = 0.0) -> float:
        """A number."""
        return float(self._attributes[name].f) if name in self._attributes else default

    def string(self, name: str, default: str = "") -> str:
        """A text."""
        return bytes(self._attributes[name].s).decode() if name in self._attributes else default

    def ints(self, name: str, default: Sequence[Any] = ()) -> Integers:
        """Numbers."""
        return [int(n) for n in self._attributes[name].ints] if name in self._attributes else list(default)

    def floats(self, name: str, default: Sequence[Any] = ()) -> Floats:
        """Numbers."""
        return [float(n) for n in self._attributes[name].floats] if name in self._attributes else list(default)

    def strings(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """Texts."""
        if name not in self._attributes:
            return list(default)
        return [bytes(text).decode() for text in self._attributes[name].strings]

    def attribute(self, name: str) -> AttributeProto | None:
        """An attribute as it is stored."""
        return self._attributes.get(name)

    def array(self, name: str) -> tuple[NDArray[Any], DataType]:
        """A tensor in the elements that stand for it, and their type in the source. Raises `Refused`."""
        stored = self._attributes.get(name)
        if stored is None:
            raise Refused(f"attribute {name!r} is missing")
        found: tuple[NDArray[Any], DataType] = self._arrays(stored)
        return found

    def body(self, name: str) -> GraphProto:
        """A graph. Raises `Refused`."""
        stored = self._attributes.get(name)
        if stored is None or stored.g is None:
            raise Refused(f"attribute {name!r}, a graph, is missing")
        return stored.g

    # -- building

    def add(self, op: str, *operands: Any, **options: Any) -> Value:
        """`Graph.add`."""
        return self.graph.add(op, *operands, **options)

    def scalar(self, number: Any, like: Value) -> Value:
        """A constant of the type of a value."""
        return self.graph.constant(np.asarray(number).astype(numpy_dtype(like.type)), like.type)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the first. Raises `Refused` if there is no such one."""
    if not -rank <= axis < max(rank, 1):
        raise Refused(f"axis {axis} of a tensor of {rank} dimensions")
    return axis % rank if rank else 0


def opened(size: int | Size) -> bool:
    """Whether a size is open."""
    return isinstance(size, Size)


lowers: Lowerings[Call] = Lowerings(__name__)
