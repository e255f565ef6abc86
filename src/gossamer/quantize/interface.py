"""The types of inputs and outputs: what was float there becomes integers with the parameters that the value has within,
so that nothing need be converted; uint8 is int8 and 128."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gossamer.convert.graph import Graph, Signature, Value
from gossamer.dtypes import type_name
from gossamer.errors import ConvertError
from gossamer.quantize.calls import Calls, Range, range_of
from gossamer.quantize.parameters import Typed, of_range, shifted
from gossamer.quantize.recipe import INPUT, OUTPUT, Rule
from gossamer.quantize.scheme import FLOAT
from gossamer.quantize.static import Parameters
from gossamer.schema.enums import TensorType

TYPES = {
    "float32": TensorType.FLOAT32,
    "int8": TensorType.INT8,
    "uint8": TensorType.UINT8,
    "int16": TensorType.INT16,
}

OF_ANY_TYPE = ("SHAPE", "RANK")
"""Operators that give the same whatever the type of their operand."""

Ends = Callable[[Graph], tuple[TensorType, TensorType]]
"""The types that the inputs and outputs of a graph get if they are float."""


def rules_of(signatures: Sequence[Signature], input_type: str | None, output_type: str | None) -> Iterator[Rule]:
    """The rules for types that are asked for. Raises `ConvertError` for those that there are not."""
    for op, name in ((INPUT, input_type), (OUTPUT, output_type)):
        values = [value for one in signatures for value in (one.inputs if op == INPUT else one.outputs).values()]
        if name is not None:
            yield Rule(FLOAT._replace(activations=_type(name, values)), op)


def _type(name: str, values: Iterable[Value]) -> TensorType:
    """The type of float values. One that they all have without being float asks for nothing."""
    if name in TYPES:
        return TYPES[name]
    if all(type_name(value.type) == name for value in values):
        return TensorType.FLOAT32
    raise ConvertError(f"inputs and outputs are {', '.join(TYPES)}, not {name!r}")


def tie_ends(
    tied: Calls, signatures: Sequence[Signature], ends: Ends, seen: Mapping[Value, Range], parameters: Parameters
) -> None:
    """Gives inputs and outputs their types. Raises `ConvertError` where no range of one is known."""

    def typed(value: Value, type: TensorType, what: str) -> Typed:
        kind = TensorType.INT8 if type == TensorType.UINT8 else type
        found = parameters.get(kind, {}).get(value)
        if found is None:
            known = range_of(value, seen)
            if known is None:
                raise ConvertError(f"{what} {value.name!r} is used as float: it cannot be {type.name.lower()}")
            found = of_range(*known, kind)
        if kind != type:
            found = shifted(found, 128)
        return type, found

    for graph in {id(signature.graph): signature.graph for signature in signatures}.values():
        given, result = ends(graph)
        for value in graph.inputs if given != TensorType.FLOAT32 else ():
            if value.type == TensorType.FLOAT32:
                tied.values.setdefault(value, typed(value, given, "input"))
        for position, value in enumerate(graph.outputs) if result != TensorType.FLOAT32 else ():
            if value.type == TensorType.FLOAT32:
                tied.outputs.setdefault((graph, position), typed(value, result, "output"))
