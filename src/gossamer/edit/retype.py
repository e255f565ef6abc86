"""Other types of inputs and outputs: floats for quantized values and back, int8 for uint8, int32 for int64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer.dtypes import type_name
from gossamer.edit.draft import Draft, one_scale, operator_of
from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.names import Graph, Name, subgraph_of
from gossamer.edit.options import tensor_type
from gossamer.errors import EditError
from gossamer.model.model import Model
from gossamer.schema.enums import TensorType
from gossamer.schema.options import CastOptions, DequantizeOptions, QuantizeOptions
from gossamer.schema.tables import QuantizationParameters

QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
FLOATS = (TensorType.FLOAT32,)

Type = Any
"""A type by its name, or with scale and zero point: ``("int8", 0.5, -3)``."""


def retype(
    source: Source,
    inputs: Mapping[Name, Type] | Type | None = None,
    outputs: Mapping[Name, Type] | Type | None = None,
    *,
    subgraph: int | str = 0,
) -> Model:
    """A model whose inputs and outputs have other types: a type for all that can have it, or one for each by name.

    - float32 to int8, uint8 or int16: a QUANTIZE that comes first, a DEQUANTIZE that comes last, is left out; where
      there is none, scale and zero point must be said, ``("uint8", 1 / 255, 0)``, and a DEQUANTIZE is put before
      what takes floats.
    - int8, uint8, int16 to float32: a QUANTIZE or DEQUANTIZE is put there, or left out.
    - int8 to uint8 and back: a QUANTIZE that adds 128, which loses nothing.
    - other numbers, int64 to int32: a CAST.

    Names stay those of inputs and outputs. Raises `EditError` for a type that one cannot have.
    """
    model = opened(source)
    number = subgraph_of(model, subgraph)
    changed = model
    for what, output in ((inputs, False), (outputs, True)):
        if what is None:
            continue
        graph = Graph(changed, number)
        ends = graph.subgraph.outputs if output else graph.subgraph.inputs
        find = graph.output if output else graph.input
        if isinstance(what, Mapping):
            places = [(ends.index(find(name)), type) for name, type in what.items()]
        else:
            places = [(n, what) for n, end in enumerate(ends) if _can_have(graph.subgraph.tensors[end].type, what)]
            if not places:
                raise EditError(f"no {'output' if output else 'input'} can be {_said(what)[0].name.lower()}")
        for place, type in places:
            changed = _retyped(changed, number, place, type, output)
    return finished(model, changed)


def _said(type: Type) -> tuple[TensorType, QuantizationParameters | None]:
    if isinstance(type, (tuple, list)):
        name, scale, zero_point = type
        return tensor_type(name), one_scale(scale, zero_point)
    return tensor_type(type), None


def _can_have(old: TensorType, type: Type) -> bool:
    new, _ = _said(type)
    kinds = (*QUANTIZED, *FLOATS)
    return (old in kinds) == (new in kinds)


def _retyped(model: Model, number: int, place: int, type: Type, output: bool) -> Model:
    graph = Graph(model, number)
    draft = Draft(graph)
    tensor = (draft.outputs if output else draft.inputs)[place]
    old = draft.tensors[tensor]
    new, quantization = _said(type)
    if new == old.type and quantization is None:
        return model
    name = graph.name(tensor)
    what = f"{'output' if output else 'input'} {name!r}"
    if (output and tensor in draft.inputs) or any(tensor in operator.outputs for operator in draft.operators) != output:
        raise EditError(f"{what} is input and output at once, or nothing gives it: it has no other type")
    kept = _without_conversion(draft, tensor, new, quantization, output)
    if kept is not None:
        return kept
    end_quantization = quantization or _end_quantization(old.type, new, old.quantization, what)
    op, options = _conversion(old.type, new, output, what)
    draft.rename(tensor, draft.free(f"{name}_{type_name(old.type)}"))
    outer = draft.tensor(name, new, old, end_quantization)
    draft.replace_end(tensor, outer, output=output)
    if output:
        draft.insert(len(draft.operators), operator_of(draft.code(op), [tensor], [outer], options))
    else:
        draft.insert(0, operator_of(draft.code(op), [outer], [tensor], options))
    return draft.model()


def _without_conversion(
    draft: Draft, tensor: int, new: TensorType, quantization: QuantizationParameters | None, output: bool
) -> Model | None:
    """The model without the operator that makes an end what it is, if what is behind it is what is wanted."""
    model = draft.graph.model
    users = [n for n, operator in enumerate(draft.operators) if tensor in operator.inputs]
    makers = [n for n, operator in enumerate(draft.operators) if tensor in operator.outputs]
    if output:
        if len(makers) != 1 or users or draft.outputs.count(tensor) != 1:
            return None
        place = makers[0]
    else:
        if len(users) != 1 or tensor in draft.outputs:
            return None
        place = users[0]
    operator = draft.operators[place]
    name = model.operator_name(operator)
    if (len(operator.inputs), len(operator.outputs)) != (1, 1):
        return None
    if name not in ("QUANTIZE", "DEQUANTIZE", "CAST") or (name == "CAST" and not _widens(draft, operator)):
        return None
    inner = operator.inputs[0] if output else operator.outputs[0]
    stored = draft.tensors[inner]
    if stored.type != new or inner in draft.inputs or (not output and inner in draft.outputs):
        return None
    if quantization is not None and not _same(stored.quantization, quantization):
        return None
    if output and inner in draft.outputs:
        return None
    if model.tensor_data(stored) is not None:
        return None
    called = draft.graph.name(tensor)
    draft.replace_end(tensor, inner, output=output)
    draft.remove(place)
    draft.rename(tensor, draft.free(f"{called}_{type_name(draft.tensors[tensor].type)}"))
    draft.rename(inner, called)
    return draft.model()


def _widens(draft: Draft, operator: Any) -> bool:
    """Whether a CAST loses nothing, so that without it values are the same."""
    one, other = (draft.tensors[n].type for n in (operator.inputs[0], operator.outputs[0]))
    return {one, other} == {TensorType.INT32, TensorType.INT64}


def _same(one: QuantizationParameters | None, other: QuantizationParameters) -> bool:
    return one is not None and (one.scale.tolist(), one.zero_point.tolist()) == (
        other.scale.tolist(),
        other.zero_point.tolist(),
    )


def _end_quantization(
    old: TensorType, new: TensorType, stored: QuantizationParameters | None, what: str
) -> QuantizationParameters | None:
    """Scale and zero point of an end that is quantized otherwise."""
    if new not in QUANTIZED or (old not in QUANTIZED and old not in FLOATS):
        return None
    if stored is None or not stored.scale.size:
        raise EditError(f"{what} is {type_name(old)}: say scale and zero point of {type_name(new)}, as uint8,0.0039,0")
    if {old, new} == {TensorType.INT8, TensorType.UINT8}:
        shift = 128 if new == TensorType.UINT8 else -128
        return stored.replace(zero_point=stored.zero_point + shift)
    raise EditError(f"{what} is {type_name(old)}: say scale and zero point of {type_name(new)}")


def _conversion(old: TensorType, new: TensorType, output: bool, what: str) -> tuple[str, Any]:
    """The operator between an end of a type and what was the end."""
    source, target = (old, new) if output else (new, old)
    if source in FLOATS and target in QUANTIZED:
        return "QUANTIZE", QuantizeOptions()
    if source in QUANTIZED and target in FLOATS:
        return "DEQUANTIZE", DequantizeOptions()
    if source in QUANTIZED and target in QUANTIZED:
        return "QUANTIZE", QuantizeOptions()
    if TensorType.STRING in (source, target) or source in QUANTIZED or target in QUANTIZED:
        raise EditError(f"{what} is {type_name(old)}, it cannot be {type_name(new)}")
    return "CAST", CastOptions(in_data_type=source, out_data_type=target)
