"""What the operators of ATen become, in the dialect that torch exports and in the core one.

A lowering is found by the operator's name, ``"aten.softmax.int"``, or by that of all its overloads, ``"aten.softmax"``.
It receives a `Call` and the arguments under their names in the operator's schema, whose defaults are its own: tensors
are values; numbers are Python's, or, if they follow from open sizes, int32 scalars. It returns a value, a number, or a
sequence of them. What does not change a result, such as devices and memory formats, is not handed on.

Floats of every type are float32: inputs and outputs of a program have their own types, nothing between them does. Axes
are torch's: channels come before places.

In-place operators have no lowerings of their own: the functional one's result takes the place of the tensor. So views
must say what a change of them makes of what they show: functions in `undoes`, see there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.indexing import vector
from gossamer.convert.graph import Graph, Size, Value, refuse
from gossamer.convert.infer import tensor_type
from gossamer.convert.lowerings import Lowerings
from gossamer.records import record
from gossamer.schema.enums import TensorType

Number = int | float | bool | Value
"""A plain number, or a scalar that follows from open sizes."""


@record(frozen=True, eq=False)
class Meta:
    """What torch says of a result."""

    type: TensorType
    shape: tuple[int | Size, ...]


@record(frozen=True, eq=False)
class Call:
    """A call of an operator: its name, and what torch says of the results that are tensors (``None`` of others).

    ``run`` puts the operators of a graph that the operator calls into one of ours: it takes both, and values for its
    inputs, and returns its outputs.
    """

    graph: Graph
    target: str
    results: tuple[Meta | None, ...]
    run: Callable[[Any, Graph, Sequence[Any]], list[Any]]

    @property
    def packet(self) -> str:
        """The name without the overload."""
        return packet_of(self.target)

    @property
    def result(self) -> Meta:
        """What torch says of the first result. Raises `Refused` if that is no tensor."""
        first = self.results[0] if self.results else None
        return first if first is not None else refuse("gives no tensor")

    @property
    def type(self) -> TensorType:
        """The type of the first result."""
        return self.result.type

    def add(self, op: str, *operands: Any, **options: Any) -> Value:
        """As `Graph.add`."""
        return self.graph.add(op, *operands, **options)

    def operand(self, x: Number, type: TensorType | None = None) -> Value:
        """A tensor or number as a value of a type, that of the first result unless it is given."""
        type = self.type if type is None else type
        if isinstance(x, Value):
            return shapes.cast(self.graph, x, type)
        return self.graph.constant(np.array(x).astype(dtype_of(type)), type)

    def shape(self, sizes: Sequence[Number]) -> Value | list[int]:
        """Sizes as a list if all are plain, else as a vector."""
        plain = [size for size in sizes if not isinstance(size, Value)]
        return [int(size) for size in plain] if len(plain) == len(sizes) else self.vector(sizes)

    def vector(self, sizes: Sequence[Number]) -> Value:
        """Sizes as an int32 vector."""
        return vector(self.graph, [size if isinstance(size, Value) else int(size) for size in sizes])


def packet_of(target: str) -> str:
    """An operator's name without its overload: "aten.add" of "aten.add.Tensor"."""
    return ".".join(target.split(".")[:2])


def dtype_of(type: TensorType) -> np.dtype[Any]:
    """NumPy's dtype."""
    return np.dtype(np.float32) if type == TensorType.FLOAT32 else np.dtype(type.name.lower())


def type_of(dtype: np.dtype[Any]) -> TensorType:
    """The type that tensors of a dtype have between inputs and outputs: floats are float32, complex numbers
    complex64."""
    type = tensor_type(dtype)
    if type in (TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT64):
        return TensorType.FLOAT32
    return TensorType.COMPLEX64 if type == TensorType.COMPLEX128 else type


def plain(number: Number, what: str) -> int:
    """A number that must be known. Raises `Refused` if it follows from open sizes."""
    if isinstance(number, Value):
        refuse(f"its {what} follows from sizes that are open; give them with --shape")
    return int(number)


def integers(given: Number | Sequence[Number], rank: int, what: str = "sizes") -> tuple[int, ...]:
    """A number for each axis; one stands for all."""
    if not isinstance(given, (list, tuple)):
        return (plain(given, what),) * rank  # type: ignore[arg-type]
    numbers = tuple([plain(number, what) for number in given])
    return numbers * rank if len(numbers) == 1 else numbers


def is_float(x: Value) -> bool:
    """Whether elements are floats."""
    return x.type == TensorType.FLOAT32


def promoted(*operands: Number) -> TensorType:
    """The type in which torch computes with these: tensors decide it, those without axes and plain numbers only if
    they are of a higher kind (bool, integer, float, complex)."""
    found: TensorType | None = None
    for level in (
        [x.type for x in operands if isinstance(x, Value) and x.rank],
        [x.type for x in operands if isinstance(x, Value) and not x.rank],
        [_number_type(x) for x in operands if not isinstance(x, Value)],
    ):
        if not level:
            continue
        here = tensor_type(np.result_type(*[dtype_of(type) for type in level]))
        here = type_of(dtype_of(here))
        if found is None or _kind(here) > _kind(found):
            found = here
    return found if found is not None else TensorType.FLOAT32


def _kind(type: TensorType) -> int:
    return {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}[dtype_of(type).kind]


def _number_type(number: int | float | bool) -> TensorType:
    if isinstance(number, bool):
        return TensorType.BOOL
    return TensorType.INT64 if isinstance(number, int) else TensorType.FLOAT32


lowers = Lowerings[Call](__name__)

undoes = Lowerings[Call](__name__)
"""What a change of a view makes of what it shows, by the name of the operator that made the view: functions of the
call, the new value of the view (and its number among the results, ``position``), and the arguments; ``self`` is what
the view shows as it was before."""
