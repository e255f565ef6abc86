"""The graph of a Keras model: its layers in an order in which they can run, each lowered by the name of its class."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gossamer.convert.graph import Graph, Origin, Signature, Size, Value, refuse, unknown
from gossamer.convert.lowerings.keras import Call, Masked, lowers, tensors
from gossamer.convert.report import Report, Unavailable
from gossamer.convert.request import Imported, Request
from gossamer.convert.sources.keras import KerasModel, KerasTensor, Layer, is_quantized, read
from gossamer.errors import ConvertError
from gossamer.schema.enums import TensorType

SIGNATURE = "serving_default"


class _Tensor(NamedTuple):
    """What is known of a tensor of the model while its layers are lowered."""

    value: Value
    mask: Value | None


_Known = dict[tuple[str, int], "list[_Tensor | Unavailable]"]
"""What calls of layers give: (layer, number of the call)."""


def import_source(source: str | os.PathLike[str], format: str, request: Request) -> Imported:
    """The graph of a ``.keras`` or ``.h5`` file. Raises `ConvertError`."""
    return import_model(read(source), request)


def import_model(model: KerasModel, request: Request) -> Imported:
    """The graph of a model. Inputs have the names of its input layers, outputs those of a dictionary that the model
    returns, else ``output_0`` and so on. Raises `ConvertError`."""
    if request.signature_keys is not None and list(request.signature_keys) != [SIGNATURE]:
        raise ConvertError(f"a Keras model has the signature {SIGNATURE!r} alone, not {list(request.signature_keys)}")
    importer = _Importer(model.version, request)
    known: _Known = {}
    inputs = {}
    for tensor in _flat(model.inputs):
        value = _input(importer.graph, model.layers[tensor.layer], request)
        known[tensor.layer, 0] = [_Tensor(value, None)]
        inputs[tensor.layer] = value
    importer.run(model, known, "")
    outputs = {}
    for name, tensor in _named(model.outputs).items():
        found = _find(known, tensor)
        if isinstance(found, _Tensor):
            outputs[name] = _stored(importer.graph, found.value, _policy(model, tensor))
    importer.graph.outputs = list(outputs.values())
    return Imported([Signature(SIGNATURE, importer.graph, inputs, outputs)], importer.report)


class _Importer:
    """The graph in the making and the notes of it."""

    def __init__(self, version: tuple[int, ...], request: Request) -> None:
        self.graph = Graph()
        self.report = Report()
        self.version = version
        self.request = request

    def run(self, model: KerasModel, known: _Known, path: str) -> None:
        """Lower the calls of a model; ``known`` has its inputs and gets all else. ``path`` stands before names."""
        for count, (name, number) in enumerate(model.order):
            if self.request.progress is not None and not path:
                self.request.progress(name, count, len(model.order))
            layer = model.layers[name]
            call = layer.calls[number]
            origin = Origin(layer.class_name, f"{path}{name}" + (f"_{number}" if number else ""))
            taken = {tensor: _find(known, tensor) for tensor in _flat([call.args, call.kwargs])}
            known[name, number] = [Unavailable(origin)]
            if any(isinstance(value, Unavailable) for value in taken.values()):
                continue
            args, kwargs = _of(call.args, taken, 0), _of(call.kwargs, taken, 0)
            masks = _of(call.args, taken, 1), _of(call.kwargs, taken, 1)
            if layer.model is not None:
                with self.report.lowering(self.graph, origin):
                    known[name, number] = self._nested(layer.model, args, kwargs, masks, f"{path}{name}/")
                continue
            with self.report.lowering(self.graph, origin):
                known[name, number] = _results(self.lower(layer, args, kwargs, masks))

    def lower(
        self,
        layer: Layer,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        masks: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
    ) -> Masked:
        """What a layer gives, and its masks. Raises `Refused`."""
        kwargs = kwargs or {}
        masks = masks or (tuple([_without(arg) for arg in args]), {key: _without(arg) for key, arg in kwargs.items()})
        if layer.model is not None:
            found = self._nested(layer.model, args, kwargs, masks, f"{layer.name}/")
            known = [value for value in found if isinstance(value, _Tensor)]
            if len(known) < len(found):
                refuse(f"the model {layer.name!r} in it cannot be converted")
            values, its = tuple([value.value for value in known]), tuple([value.mask for value in known])
            return Masked(values[0], its[0]) if len(values) == 1 else Masked(values, its)
        if is_quantized(layer.config):
            refuse("its weights are quantized; convert the model as it was before, and quantize what comes of it")
        key = f"ops.{layer.class_name}" if layer.is_operation else layer.class_name
        function = lowers.find(key)
        if function is None:
            refuse(f"{'operations' if layer.is_operation else 'layers'} of the class {layer.class_name} are not known")
        result = function(Call(self.graph, layer, args, kwargs, masks, self.lower, self.version))
        return result if isinstance(result, Masked) else Masked(result, None)

    def _nested(
        self, model: KerasModel, args: Any, kwargs: Any, masks: tuple[tuple[Any, ...], dict[str, Any]], path: str
    ) -> list[_Tensor | Unavailable]:
        plain = {key: value for key, value in kwargs.items() if key != "mask"}
        values, their = list(tensors([args, plain])), _masks_of([args, plain], [*masks])
        inputs = _flat(model.inputs)
        if len(values) != len(inputs):
            refuse(f"is a model of {len(inputs)} inputs and called with {len(values)}")
        known: _Known = {}
        for tensor, value, mask in zip(inputs, values, their, strict=True):
            known[tensor.layer, 0] = [_Tensor(_asked(self.graph, model.layers[tensor.layer], value), mask)]
        self.run(model, known, path)
        return [_find(known, tensor) for tensor in _flat(model.outputs)]


def _find(known: _Known, tensor: KerasTensor) -> _Tensor | Unavailable:
    """What is known of a tensor. Raises `ConvertError` if its layer gives fewer."""
    found = known[tensor.layer, tensor.call]
    if isinstance(found[0], Unavailable) or tensor.index < len(found):
        return found[0] if isinstance(found[0], Unavailable) else found[tensor.index]
    raise ConvertError(f"the layer {tensor.layer!r} gives {len(found)} tensors, none of number {tensor.index}")


def _input(graph: Graph, layer: Layer, request: Request) -> Value:
    """A new input of the graph for an input layer. Raises `ConvertError`."""
    shape, dtype = _declared(layer)
    given = request.given_shape(layer.name, len(shape))
    shape = list(given) if given is not None else shape
    if shape and shape[0] is None and request.batch is not None:
        shape[0] = request.batch
    sizes: list[int | Size] = []
    for axis, size in enumerate(shape):
        large = len(shape) > 3 and 0 < axis < len(shape) - 1
        sizes.append(unknown(axis, large=large) if size is None else size)
    return graph.input(layer.name, dtype, sizes)


def _declared(layer: Layer) -> tuple[list[int | None], TensorType]:
    shape = layer.config.get("batch_shape") or layer.config.get("batch_input_shape")
    if not isinstance(shape, list) or not all(size is None or type(size) is int for size in shape):
        raise ConvertError(f"input {layer.name!r} has no shape: {shape!r}")
    if layer.config.get("sparse") or layer.config.get("ragged"):
        raise ConvertError(f"input {layer.name!r} is sparse or ragged; only dense tensors can be converted")
    dtype = dtype_of(layer.config.get("dtype"))
    return shape, dtype


def dtype_of(config: Any) -> TensorType:
    """The type of a dtype or a policy in a config. Raises `ConvertError`."""
    while isinstance(config, dict):
        config = config.get("config", {}).get("name", config.get("config", {}).get("source_name"))
    name = str(config or "float32").removeprefix("mixed_").upper()
    if name not in TensorType.__members__:
        raise ConvertError(f"dtype {config!r} is no type of TensorFlow Lite")
    return TensorType[name]


def _policy(model: KerasModel, tensor: KerasTensor) -> TensorType:
    """The type in which the layer that makes a tensor computes floats."""
    layer = model.layers[tensor.layer]
    if layer.model is not None:
        return _policy(layer.model, _flat(layer.model.outputs)[tensor.index])
    return TensorType.FLOAT32 if layer.class_name == "InputLayer" else dtype_of(layer.config.get("dtype"))


def _stored(graph: Graph, value: Value, type: TensorType) -> Value:
    """Everything is computed in float32; what the source has in half as many bits comes out like that."""
    if value.type != TensorType.FLOAT32 or type not in (TensorType.FLOAT16, TensorType.BFLOAT16):
        return value
    return graph.add("CAST", value, type=type, in_data_type=value.type)


def _asked(graph: Graph, layer: Layer, value: Value) -> Value:
    """What is given to a model in a model, which casts it to what its input says, and adds or drops a last 1."""
    shape, dtype = _declared(layer)
    if value.type != dtype and not {value.type, dtype} & {TensorType.STRING}:
        value = graph.add("CAST", value, type=dtype, in_data_type=value.type)
    if value.rank == len(shape) - 1 and shape[-1] == 1:
        return graph.add("EXPAND_DIMS", value, -1)
    if value.rank == len(shape) + 1 and value.dims[-1] == 1:
        return graph.add("SQUEEZE", value, squeeze_dims=(value.rank - 1,))
    return value


# -- structures of tensors


def _flat(structure: Any) -> list[KerasTensor]:
    """Keras' order: dictionaries by their sorted keys."""
    if isinstance(structure, KerasTensor):
        return [structure]
    if isinstance(structure, dict):
        structure = [structure[key] for key in sorted(structure)]
    if isinstance(structure, (list, tuple)):
        return [tensor for element in structure for tensor in _flat(element)]
    return []


def _named(outputs: Any) -> Mapping[str, KerasTensor]:
    if isinstance(outputs, dict) and all(isinstance(tensor, KerasTensor) for tensor in outputs.values()):
        return {key: outputs[key] for key in sorted(outputs)}
    return {f"output_{number}": tensor for number, tensor in enumerate(_flat(outputs))}


def _mapped(structure: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(structure, dict):
        return {key: _mapped(value, function) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        return type(structure)([_mapped(value, function) for value in structure])
    return function(structure)


def _of(structure: Any, taken: Mapping[KerasTensor, _Tensor | Unavailable], field: int) -> Any:
    """Tensors as their values (field 0) or masks (1), of which what is no tensor has none."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, KerasTensor):
            return None if field else leaf
        return taken[leaf][field]

    return _mapped(structure, one)


def _without(structure: Any) -> Any:
    """No mask for anything."""
    return _mapped(structure, lambda _: None)


def _masks_of(values: Any, masks: Any) -> list[Value | None]:
    """The masks of the values in a structure, in their order."""
    if isinstance(values, Value):
        return [masks]
    if isinstance(values, dict):
        values = [values[key] for key in sorted(values)]
        masks = [masks[key] for key in sorted(masks)] if isinstance(masks, dict) else [None] * len(values)
    if isinstance(values, (list, tuple)):
        masks = masks if isinstance(masks, (list, tuple)) and len(masks) == len(values) else [None] * len(values)
        return [mask for value, its in zip(values, masks, strict=True) for mask in _masks_of(value, its)]
    return []


def _results(found: Masked) -> list[_Tensor | Unavailable]:
    values = list(tensors(found.result))
    masks: list[Value | None] = _masks_of(found.result, found.mask)
    return [
        _Tensor(value, mask if isinstance(mask, Value) else None) for value, mask in zip(values, masks, strict=True)
    ]
