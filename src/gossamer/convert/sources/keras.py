"""Keras models without Keras: ``.keras`` archives and legacy ``.h5`` files, through h5py (the extra ``keras``).

Both hold the layers as JSON and the variables as HDF5 data sets. In a ``.keras`` archive the data sets lie by the tree
of objects: ``layers/<class in snake case>[_k]/vars/0``, k counted per class among the layers of a model, and nested
objects in groups of their own (``layers/lstm/cell/vars/0``), numbered as the layer created them. In a ``.h5`` file each
layer of the outermost model has a group with the attribute ``weight_names``: its variables and those of all layers
within it, the trainable ones first. Which variables a layer has, and their names, follows from its class and config
(`_OWN`, `_parts`); files that have others are refused, because nothing else says what they mean.

Python that a model carries (``Lambda``, custom classes and functions) is refused: nothing is unmarshalled or run.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.sources.archive import Archive, Source, Window, mapped, name_of
from gossamer.convert.sources.json_value import Json
from gossamer.dtypes import numpy_dtype
from gossamer.errors import ConvertError
from gossamer.records import field, record, replace
from gossamer.schema.enums import TensorType

_DEEPEST = 12
"""Layers within layers: wrappers, cells and models."""
_MOST_GROUPS = 1000
"""Groups of a file that are looked into for one layer: a file can be made to have no end of them."""

MODELS = ("Functional", "Model", "Sequential")
"""Classes whose layers are in their config; Keras 2 wrote functional models as "Model" at first."""


@record(frozen=True)
class KerasTensor:
    """Output number ``index`` of call number ``call`` of the layer of this name."""

    layer: str
    call: int
    index: int


@record(frozen=True, eq=False)
class Call:
    """A call of a layer. Tensors are `KerasTensor`, in lists and dictionaries as the layer takes them; the rest is
    plain Python, with `slice` and `Ellipsis`."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@record(frozen=True, eq=False)
class Variable:
    """A variable under its name in the layer: ``kernel``; ``cell/kernel`` of an LSTM."""

    name: str
    value: NDArray[Any]


@record(frozen=True, eq=False)
class Layer:
    """A layer with its variables in Keras' order and its calls in theirs: a shared layer has several.

    ``build``: what it was built with (``{"input_shape": [None, 8]}``), empty if the file does not say. ``model``: the
    layers of one that is a model itself. ``parts``: the layers that one is made of, by what it calls them: the
    ``cell`` of an LSTM, whose variable ``kernel`` is ``cell/kernel`` of the LSTM. ``is_operation``: a function of
    ``keras.ops`` in the place of a layer.
    """

    name: str
    class_name: str
    config: dict[str, Any]
    build: dict[str, Any]
    variables: tuple[Variable, ...]
    calls: tuple[Call, ...]
    model: KerasModel | None
    is_operation: bool
    parts: dict[str, Layer] = field(default_factory=dict)

    def variable(self, name: str) -> NDArray[Any] | None:
        """The value of the variable of this name; ``None`` if the layer has none."""
        return next((variable.value for variable in self.variables if variable.name == name), None)


@record(frozen=True, eq=False)
class KerasModel:
    """Layers by their names, in the file's order, and the calls in an order in which they can run: (layer, number).

    ``inputs`` and ``outputs``: `KerasTensor`, in lists and dictionaries as the model takes and returns them.
    ``version``: that of the Keras that wrote the file, of which some functions changed their meaning.
    """

    name: str
    class_name: str
    layers: dict[str, Layer]
    inputs: Any
    outputs: Any
    order: tuple[tuple[str, int], ...] = field(default=())
    version: tuple[int, ...] = (3,)


@record(frozen=True)
class _Own:
    """A variable that a layer creates where its config has ``when`` and not ``unless``: "key" or "key=value"."""

    name: str
    when: str = ""
    unless: str = ""
    trainable: bool = True


@record(frozen=True)
class _Slot:
    """Where a variable is in a ``.keras`` archive, its name in the layer, and whether training changes it."""

    path: str
    name: str
    trainable: bool


_BIAS = _Own("bias", when="use_bias")
_SCALE_AND_CENTER = (_Own("gamma", when="scale"), _Own("beta", when="center"))
_CELL = (_Own("kernel"), _Own("recurrent_kernel"), _BIAS)
_MOVING = [_Own(name, trainable=False) for name in ("moving_mean", "moving_variance")]
_RENORM = [_Own(name, when="renorm", trainable=False) for name in ("moving_stddev", "renorm_mean", "renorm_stddev")]
_CONVOLUTIONS = [f"{kind}Conv{n}D{back}" for kind in ("", "Depthwise") for n in (1, 2, 3) for back in ("", "Transpose")]

_OWN: dict[str, tuple[_Own, ...]] = {
    "Dense": (_Own("kernel"), _BIAS),
    "EinsumDense": (_Own("kernel"), _Own("bias", when="bias_axes")),
    "Embedding": (_Own("embeddings"),),
    "ReversibleEmbedding": (_Own("embeddings"), _Own("reverse_embeddings", unless="tie_weights")),
    "SpectralNormalization": (_Own("kernel"), _Own("vector_u", trainable=False)),
    **dict.fromkeys(_CONVOLUTIONS, (_Own("kernel"), _BIAS)),
    **dict.fromkeys(
        ["SeparableConv1D", "SeparableConv2D"], (_Own("depthwise_kernel"), _Own("pointwise_kernel"), _BIAS)
    ),
    "BatchNormalization": (*_SCALE_AND_CENTER, *_MOVING, *_RENORM),
    "LayerNormalization": (
        _Own("gamma", when="scale"),
        _Own("beta", when="center", unless="rms_scaling"),
    ),
    "GroupNormalization": _SCALE_AND_CENTER,
    "RMSNormalization": (_Own("scale"),),
    "Normalization": tuple([_Own(name, unless="mean", trainable=False) for name in ("mean", "variance", "count")]),
    "PReLU": (_Own("alpha"),),
    "LayerScale": (_Own("variable"),),
    "AdditiveAttention": (_Own("scale", when="use_scale"),),
    "Attention": (_Own("scale", when="use_scale"), _Own("concat_score_weight", when="score_mode=concat")),
    **dict.fromkeys(["SimpleRNNCell", "LSTMCell", "GRUCell", "ConvLSTMCell"], _CELL),
}
"""The variables that a layer of a class creates, in that order."""

_CLASSES = {"GroupQueryAttention": "GroupedQueryAttention"}
"""Classes that an archive's paths call by another name than its config."""

_OF_TRAINING = ("_initializer", "_regularizer", "_constraint", "compile_config")
"""Ends of the names of what a config says about training, where Python does not matter."""
_ATTENTION = ("query_dense", "key_dense", "gate_dense", "value_dense", "output_dense")


def read(source: Source) -> KerasModel:
    """The model in a ``.keras`` or ``.h5`` file. Raises `ConvertError` for anything else, or if h5py is missing."""
    place = name_of(source)
    try:
        return _read(source, place)
    except RecursionError as error:
        raise ConvertError(f"{place}: values within values, without end") from error


def _read(source: Source, place: str) -> KerasModel:
    if mapped(source)[:4].tobytes() == b"PK\3\4":
        archive = Archive(source, "archive of Keras")
        config = Json.parse(archive.read("config.json"), f"{place}: config.json")
        with _Hdf5(archive, "model.weights.h5") as file:
            _refuse_python(config)
            model = _model(config, _Grouped(file), "", {})
            metadata = Json.parse(archive.read("metadata.json"), f"{place}: metadata.json")
            version = metadata.get("keras_version")
            return model if version is None else replace(model, version=_version(version.text()))
    with _Hdf5(source) as file:
        config = Json.parse(file.attribute("", "model_config"), f"{place}: model_config")
        _refuse_python(config)
        model = _model(config, _named(file, config), "", {})
        return replace(model, version=_version(file.attribute("", "keras_version", "2")))


def _version(text: str) -> tuple[int, ...]:
    return tuple([int(number) for number in re.findall(r"\d+", text)[:3]]) or (3,)


def _parts(class_name: str, config: Json) -> Iterator[tuple[str, str, Json]]:
    """The layers within a layer: path in an archive, name, and config with class name; in the order of creation."""
    if class_name in MODELS:
        for path, layer in _layers(config):
            yield path, _layer_name(layer), layer
    elif class_name in ("LSTM", "GRU", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"):
        cell = f"{re.sub('[123]D$', '', class_name)}Cell"
        yield "cell", "cell", Json({"class_name": cell, "config": config.value}, config.place)
    elif class_name == "RNN":
        yield "cell", "cell", config["cell"]
    elif class_name == "StackedRNNCells":
        for path, part in _counted(config["cells"].elements()):
            yield f"cells/{path}", f"cells/{path}", part
    elif class_name == "Bidirectional":
        yield "forward_layer", "forward_layer", config["layer"]
        yield "backward_layer", "backward_layer", config.get("backward_layer") or config["layer"]
    elif class_name in ("TimeDistributed", "SpectralNormalization"):
        yield "layer", "layer", config["layer"]
    elif class_name == "Pipeline":
        for path, part in _counted(config["layers"].elements()):
            yield f"layers/{path}", f"layers/{path}", part
    elif class_name in ("MultiHeadAttention", "GroupQueryAttention"):
        bias = config.get("use_bias")
        einsum = {"bias_axes": bias is None or bias.boolean()}
        hidden = "" if class_name == "MultiHeadAttention" else "_"
        for name in _ATTENTION:
            if name == "gate_dense" and not _has(config, "use_gate"):
                continue
            path = f"_{name}" if name == "gate_dense" else f"{hidden}{name}"
            yield path, name, Json({"class_name": "EinsumDense", "config": einsum}, config.place)


def _slots(
    spec: Json, path: str, name: str, seen: dict[int, str], depth: int, trainable: bool = True
) -> Iterator[_Slot]:
    """The variables of a layer and of those within it, in the order of ``layer.weights``."""
    if depth == _DEEPEST:
        raise ConvertError(f"{spec.place}: layers within layers, more than {_DEEPEST} deep")
    class_name, config = spec["class_name"].text(), spec["config"]
    path = _shared(spec, path, seen)
    flag = config.get("trainable")
    trainable = trainable and (flag is None or flag.boolean())
    number = 0
    for own in _OWN.get(class_name, ()):
        if (not own.when or _has(config, own.when)) and not (own.unless and _has(config, own.unless)):
            yield _Slot(f"{path}/vars/{number}", f"{name}{own.name}", trainable and own.trainable)
            number += 1
    for part_path, part_name, part in _parts(class_name, config):
        yield from _slots(part, f"{path}/{part_path}", f"{name}{part_name}/", seen, depth + 1, trainable)


def _shared(spec: Json, path: str, seen: dict[int, str]) -> str:
    """The path of a layer: of one that several models share, that of the first place."""
    identity = spec.get("shared_object_id")
    return path if identity is None else seen.setdefault(identity.integer(), path)


def _has(config: Json, condition: str) -> bool:
    key, equals, wanted = condition.partition("=")
    value = config.members().get(key)
    return value == wanted if equals else value is not None and value is not False


def _layers(config: Json) -> Iterator[tuple[str, Json]]:
    """The layers of a model, each with its path in an archive; operations of ``keras.ops`` have none."""
    specs = config["layers"].elements()
    paths = iter(_counted([spec for spec in specs if not _is_operation(spec)]))
    for spec in specs:
        yield ("", spec) if _is_operation(spec) else (f"layers/{(found := next(paths))[0]}", found[1])


def _counted(specs: list[Json]) -> list[tuple[str, Json]]:
    counts: dict[str, int] = {}
    counted = []
    for spec in specs:
        name = re.sub(r"\W+", "", spec["class_name"].text())
        name = _CLASSES.get(name, name)
        name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
        name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
        number = counts[name] = counts.get(name, -1) + 1
        counted.append((f"{name}_{number}" if number else name, spec))
    return counted


def _is_operation(spec: Json) -> bool:
    """Whether this is a function of ``keras.ops``. Legacy files do not say where a class is from, but layers have
    members in their configs that functions have not."""
    module = spec.get("module")
    if module is not None:
        return module.text().startswith(("keras.src.ops", "keras.ops"))
    if spec.get("inbound_nodes") is None or spec["class_name"].value in (*MODELS, "InputLayer"):
        return False
    return not {"trainable", "dtype", "batch_input_shape"} & spec["config"].members().keys()


def _layer_name(spec: Json) -> str:
    name = spec.get("name") or spec["config"]["name"]
    return name.text()


def _refuse_python(json: Json) -> None:
    """That no part of a config is Python code, or the name of a class or function that only Python has."""
    if isinstance(json.value, dict):
        class_name = json.value.get("class_name")
        if isinstance(class_name, str):
            registered, module = json.value.get("registered_name"), json.value.get("module")
            custom = any(isinstance(word, str) and ">" in word for word in (class_name, registered))
            custom |= isinstance(module, str) and module.partition(".")[0] not in ("keras", "tf_keras", "builtins")
            if class_name in ("Lambda", "__lambda__", "function") or custom:
                kind = "a function" if class_name == "function" else "Python code"
                config = json.value.get("config")
                name = json.value.get("name") or (config.get("name") if isinstance(config, dict) else None)
                which = f" (the layer {name!r})" if isinstance(name, str) else ""
                raise ConvertError(
                    f"{json.place}{which} is {kind} that the file does not describe: class_name {class_name!r}, "
                    f"registered_name {registered!r}. Replace it by layers of Keras or keras.ops, or export the model "
                    "as a SavedModel (model.export) and convert that"
                )
        for key in json.value:
            if not key.endswith(_OF_TRAINING):
                _refuse_python(Json(json.value[key], f"{json.place}.{key}"))
    elif isinstance(json.value, list):
        for element in json.elements():
            _refuse_python(element)


def _model(spec: Json, store: _Store, path: str, seen: dict[int, str]) -> KerasModel:
    class_name, config = spec["class_name"].text(), spec["config"]
    if class_name not in MODELS or config.get("layers") is None:
        raise ConvertError(
            f"{spec.place}: {class_name} is no graph of layers (Functional or Sequential): its Python code says what "
            "it computes. Export it as a SavedModel (model.export) and convert that"
        )
    specs = dict[str, tuple[str, Json]]()
    for layer_path, layer in [*_unwritten_input(class_name, config), *_layers(config)]:
        name = _layer_name(layer)
        if name in specs:
            raise ConvertError(f"{layer.place}: two layers have the name {name!r}")
        specs[name] = (layer_path, layer)
    if class_name == "Sequential":
        calls, inputs, outputs = _chain(config, specs)
    else:
        calls = {name: _calls(layer, specs) for name, (_, layer) in specs.items()}
        inputs = _structure(config["input_layers"], specs, 1)
        outputs = _structure(config["output_layers"], specs, 1)
    layers = {}
    for name, (layer_path, layer) in specs.items():
        layers[name] = _layer(name, layer, store, f"{path}{layer_path}", calls[name], seen)
    sources = {(name, 0) for name, layer in layers.items() if layer.class_name == "InputLayer"}
    order = _order(spec, calls, sources)
    for tensors, known in ((inputs, sources), (outputs, sources | order.keys())):
        for tensor in _tensors(tensors):
            if (tensor.layer, tensor.call) not in known:
                raise ConvertError(f"{spec.place}: {tensor} is no input or output that it can have")
    own = config.get("name")
    return KerasModel(own.text() if own is not None else "", class_name, layers, inputs, outputs, tuple(order))


def _unwritten_input(class_name: str, config: Json) -> Iterator[tuple[str, Json]]:
    """The input of a Sequential model of an older Keras, which only its first layer describes."""
    for first in config["layers"].elements()[:1] if class_name == "Sequential" else []:
        shape = first["config"].members().get("batch_input_shape")
        if shape is not None and first["class_name"].text() != "InputLayer":
            dtype = first["config"].members().get("dtype", "float32")
            given = {"name": f"{_layer_name(first)}_input", "batch_input_shape": shape, "dtype": dtype}
            yield "", Json({"class_name": "InputLayer", "config": given}, first.place)


def _layer(name: str, spec: Json, store: _Store, path: str, calls: tuple[Call, ...], seen: dict[int, str]) -> Layer:
    class_name, config, build = spec["class_name"].text(), spec["config"], spec.get("build_config")
    path = _shared(spec, path, seen)
    model, variables = None, []
    is_operation = _is_operation(spec)
    if class_name in MODELS:
        model = _model(spec, store, f"{path}/", seen)
    elif not is_operation and not is_quantized(config.members()):
        slots = list(_slots(spec, path, "", seen, 0))
        store.check(path, slots, f"the layer {name!r} ({class_name})")
        variables = [Variable(slot.name, store.value(slot.path)) for slot in slots]
    plain = {key: value for key, value in config.members().items() if key != "layers"}
    built = build.members() if build is not None else {}
    parts = {}
    for part_path, part_name, part in _parts(class_name, config) if model is None else ():
        parts[part_name] = _layer(part_name, part, store, f"{path}/{part_path}", (), seen)
    return Layer(name, class_name, plain, built, tuple(variables), calls, model, is_operation, parts)


def is_quantized(config: Mapping[str, Any]) -> bool:
    """Whether the weights of a layer are not what it computes with, but integers and scales."""
    dtype = config.get("dtype")
    policy = dtype.get("class_name") if isinstance(dtype, dict) else None
    return bool(config.get("quantization_mode")) or (isinstance(policy, str) and policy.startswith("Quantized"))


_Specs = Mapping[str, tuple[str, Json]]


def _chain(config: Json, specs: _Specs) -> tuple[dict[str, tuple[Call, ...]], Any, Any]:
    """The calls of a Sequential model: each layer once, of what the one before it gives."""
    if not specs:
        raise ConvertError(f"{config.place}: a model without layers")
    calls: dict[str, tuple[Call, ...]] = {}
    names = list(specs)
    if specs[names[0]][1]["class_name"].text() != "InputLayer":
        raise ConvertError(f"{config.place}: the shape of the input is not known: build the model before it is saved")
    for before, name in zip([None, *names], names, strict=False):
        calls[name] = (Call((KerasTensor(before, 0, 0),), {}),) if before is not None else ()
    return calls, [KerasTensor(names[0], 0, 0)], [KerasTensor(names[-1], 0, 0)]


def _calls(spec: Json, specs: _Specs) -> tuple[Call, ...]:
    calls = []
    for node in spec["inbound_nodes"].elements():
        if isinstance(node.value, list):
            calls.append(_legacy_call(node, specs))
        else:
            args = [_argument(arg, specs) for arg in node["args"].elements()]
            calls.append(Call(tuple(args), {key: _argument(value, specs) for key, value in node["kwargs"].items()}))
    return tuple(calls)


def _legacy_call(node: Json, specs: _Specs) -> Call:
    """A call as Keras 2 wrote it: a list of ``[layer, node, tensor, kwargs]``, or one of them."""
    entries = node.elements()
    if entries and isinstance(entries[0].value, str):
        entries = [node]
    tensors, kwargs = [], dict[str, Any]()
    for entry in entries:
        parts = entry.elements()
        if len(parts) not in (3, 4):
            raise entry.wrong("[layer, node, tensor, arguments]")
        tensors.append(_history(parts[:3], specs, _built_in(parts[0], specs)))
        if len(parts) == 4:
            kwargs = {key: _legacy_argument(value, specs) for key, value in parts[3].items()}
    return Call((tensors[0] if len(tensors) == 1 else tensors,), kwargs)


def _legacy_argument(value: Json, specs: _Specs) -> Any:
    if isinstance(value.value, list):
        parts = value.elements()
        if len(parts) >= 3 and isinstance(parts[0].value, str) and parts[0].value in specs:
            return _history(parts[:3], specs, _built_in(parts[0], specs))
        return [_legacy_argument(part, specs) for part in parts]
    return value.value


def _built_in(layer: Json, specs: _Specs) -> int:
    """The number of a model's first call in a legacy file: Keras 2 counted the model's own graph as its call 0."""
    spec = specs.get(layer.text(), ("", None))[1]
    return int(spec is not None and spec["class_name"].text() in MODELS)


def _argument(value: Json, specs: _Specs) -> Any:
    if isinstance(value.value, list):
        return [_argument(element, specs) for element in value.elements()]
    if not isinstance(value.value, dict):
        return value.value
    class_name = value.value.get("class_name")
    if class_name == "__keras_tensor__":
        return _history(value["config"]["keras_history"].elements(), specs, 0)
    if class_name == "__slice__":
        config = value["config"]
        return slice(*[_argument(config[k], specs) if config.get(k) else None for k in ("start", "stop", "step")])
    if class_name == "__ellipsis__":
        return ...
    if class_name in ("__tensor__", "__numpy__"):
        return _literal(value["config"])
    return {key: _argument(element, specs) for key, element in value.items()}


def _literal(config: Json) -> NDArray[Any]:
    try:
        return np.array(config["value"].value, np.dtype(config["dtype"].text()))
    except (TypeError, ValueError, OverflowError) as error:
        raise ConvertError(f"{config.place} is no array: {error}") from error


def _history(parts: list[Json], specs: _Specs, first: int) -> KerasTensor:
    if len(parts) != 3:
        raise ConvertError(f"{parts[0].place if parts else 'a tensor'}: a tensor is [layer, call, index]")
    name, call, index = parts[0].text(), parts[1].integer(0), parts[2].integer(0)
    if name not in specs:
        raise ConvertError(f"{parts[0].place}: there is no layer {name!r}")
    return KerasTensor(name, max(call - first, 0), index)


def _structure(json: Json, specs: _Specs, first: int) -> Any:
    """``input_layers`` or ``output_layers``, where functional models count their own graph as their call 0."""
    if isinstance(json.value, dict):
        return {key: _structure(value, specs, first) for key, value in json.items()}
    parts = json.elements()
    if len(parts) == 3 and isinstance(parts[0].value, str):
        is_functional = parts[0].value in specs and specs[parts[0].value][1]["class_name"].value in (
            "Functional",
            "Model",
        )
        return _history(parts, specs, first if is_functional else 0)
    return [_structure(part, specs, first) for part in parts]


def _tensors(value: Any) -> Iterator[KerasTensor]:
    if isinstance(value, KerasTensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for element in value.values() if isinstance(value, dict) else value:
            yield from _tensors(element)


def _order(
    spec: Json, calls: Mapping[str, tuple[Call, ...]], sources: set[tuple[str, int]]
) -> dict[tuple[str, int], None]:
    """The calls, each after those that it takes something of."""
    waiting: dict[tuple[str, int], set[tuple[str, int]]] = {}
    readers: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for name, its in calls.items():
        for number, call in enumerate(its):
            needed = {(t.layer, t.call) for t in _tensors([call.args, call.kwargs])} - sources
            waiting[name, number] = needed
            for key in needed:
                readers.setdefault(key, []).append((name, number))
    order = dict.fromkeys([key for key, needed in waiting.items() if not needed])
    running = list(order)
    for key in running:  # which grows
        for reader in readers.get(key, ()):
            waiting[reader].discard(key)
            if not waiting[reader] and reader not in order:
                order[reader] = None
                running.append(reader)
    if len(order) < len(waiting):
        name, number = next(key for key in waiting if key not in order)
        raise ConvertError(f"{spec.place}: call {number} of {name!r} waits for itself, or for a call that is not there")
    return order


PROBE = """
import io, sys, h5py
with h5py.File(io.BytesIO(sys.stdin.buffer.read()), "r") as file:
    dict(file.attrs)
    file.visititems(lambda name, item: dict(item.attrs) and None)
"""
PROBE_SECONDS = 60.0
"""For attributes alone, which take milliseconds."""


def _look_ahead(memory: NDArray[np.uint8], place: str) -> None:
    """Has another process read all attributes of an HDF5 file first: libhdf5 goes round in circles over some damaged
    ones, and holds the whole interpreter while it does. Raises `ConvertError` if it does not come back."""
    try:
        subprocess.run(  # whether it is a good file is for this process to find out
            [sys.executable, "-c", PROBE], input=memory.data, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConvertError(f"{place} is damaged: libhdf5 does not come back from its attributes") from None
    except OSError:
        return  # no process can be had: it is read without


class _Hdf5:
    """An HDF5 file, by h5py, which is closed at the end of the block.

    What this class asks of a damaged file is checked; libhdf5 checks what it follows, and not always well.
    """

    def __init__(self, source: Source | Archive, member: str = "") -> None:
        try:
            import h5py
        except ImportError as error:
            raise ConvertError("Keras files are read by h5py: install gossamer[keras]") from error
        self._h5py = h5py
        self._opened: dict[str, Any] = {}
        if isinstance(source, Archive):
            stored = source.stored(member)
            self._memory = np.frombuffer(source.read(member), np.uint8) if stored is None else stored
            self._place = member
        else:
            self._memory, self._place = mapped(source), name_of(source)
            _look_ahead(self._memory, self._place)
        try:
            self._file = h5py.File(Window(self._memory), "r")
        except Exception as error:  # HDF5 has no list of what it raises
            raise ConvertError(f"{self._place} is no HDF5 file, or a part of one: {error}") from error

    def __enter__(self) -> _Hdf5:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def attribute(self, path: str, name: str, default: str | None = None) -> str:
        """A text of a group."""
        value = self._ask(lambda: self._at(path).attrs.get(name, default))
        value = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if not isinstance(value, str):
            raise ConvertError(
                f"{self._place} has no {name}: it holds weights alone. Save the whole model (model.save)"
            )
        return value

    def texts(self, path: str, name: str) -> list[str]:
        """A list of texts of a group; what does not fit one attribute is in several, numbered ones."""

        def read() -> list[str]:
            attributes = self._at(path).attrs
            parts = [attributes[name]] if name in attributes else []
            while not parts or (name not in attributes and f"{name}{len(parts)}" in attributes):
                parts.append(attributes[f"{name}{len(parts)}"])
            texts = [text for part in parts for text in np.asarray(part).ravel()]
            return [text.decode() if isinstance(text, bytes) else str(text) for text in texts]

        return self._ask(read)  # type: ignore[no-any-return]

    def has(self, path: str) -> bool:
        """Whether there is something at the path."""
        return self._ask(lambda: self._has(path))  # type: ignore[no-any-return]

    def data_sets(self, path: str) -> set[str]:
        """The paths of all data sets below a group, but for the states of random generators."""

        def find() -> set[str]:
            waiting, found = [path] if self._has(path) else [], set()
            for count, place in enumerate(waiting):  # which grows
                if count > _MOST_GROUPS or place.count("/") > 8 * _DEEPEST:
                    raise ValueError(f"{path} has groups without end")
                at = self._at(place)
                if not isinstance(at, self._h5py.Group):
                    found.add(place)
                elif not place.endswith("/seed_generator"):
                    waiting += [f"{place}/{name}" for name in at]
            return found

        return self._ask(find)  # type: ignore[no-any-return]

    def value(self, path: str) -> NDArray[Any]:
        """A data set: a view of the file if it lies there in one piece."""
        return self._ask(lambda: self._value(path))  # type: ignore[no-any-return]

    def _value(self, path: str) -> NDArray[Any]:
        data = self._at(path)
        if not isinstance(data, self._h5py.Dataset) or data.is_virtual or data.external or data.shape is None:
            raise ValueError(f"{path} is no data set of this file")
        dtype, size, stored = data.dtype, math.prod(data.shape), data.id.get_storage_size()
        if data.attrs.get("dtype") == "bfloat16":
            known = dtype.itemsize == 2
        else:
            known = dtype.kind in "biufc"
        if not known or size * dtype.itemsize > 1100 * stored:  # zlib makes no more than 1032 bytes of one
            raise ValueError(f"{path}: {dtype}{data.shape} of {stored} bytes")
        offset = data.id.get_offset()
        if offset is not None and dtype.kind != "b" and stored == size * dtype.itemsize:
            value: NDArray[Any] = self._memory[offset : offset + stored].view(dtype).reshape(data.shape)
        else:
            value = np.asarray(data[()])
        if data.attrs.get("dtype") == "bfloat16":
            value = value.view(numpy_dtype(TensorType.BFLOAT16))
        value.flags.writeable = False
        return value

    def _has(self, path: str) -> bool:
        return self._find("/".join(filter(None, path.split("/")))) is not None

    def _at(self, path: str) -> Any:
        found = self._find("/".join(filter(None, path.split("/"))))
        if found is None:
            raise ValueError(f"there is no {path}")
        return found

    def _find(self, path: str) -> Any:
        """What is at a path, opened once; ``None`` if nothing is."""
        if not path:
            return self._file
        if path not in self._opened:
            above, _, name = path.rpartition("/")
            group = self._find(above)
            is_there = isinstance(group, self._h5py.Group) and name in group
            self._opened[path] = self._inside(group, name) if is_there else None
        return self._opened[path]

    def _inside(self, group: Any, name: str) -> Any:
        """A member; links lead to other files, or in circles."""
        if not isinstance(group.get(name, getlink=True), self._h5py.HardLink):
            raise ValueError(f"{name} is a link")
        return group[name]

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except Exception as error:  # HDF5 has no list of what it raises
            raise ConvertError(f"{self._place} is damaged: {error}") from error


class _Store:
    """Where values are, by the paths that they have in an archive."""

    def check(self, path: str, slots: list[_Slot], layer: str) -> None:
        """That a layer has these variables and no others."""

    def value(self, path: str) -> NDArray[Any]:
        """The value of a variable."""
        raise NotImplementedError


class _Grouped(_Store):
    """A ``.keras`` archive, which has the paths."""

    def __init__(self, file: _Hdf5) -> None:
        self._file = file

    def check(self, path: str, slots: list[_Slot], layer: str) -> None:
        """See `_Store.check`."""
        found, known = self._file.data_sets(path), {slot.path for slot in slots}
        if not known.issuperset(found):
            raise ConvertError(f"{layer} has the variables {sorted(found)}, of which {sorted(known)} are known")

    def value(self, path: str) -> NDArray[Any]:
        """See `_Store.value`."""
        return self._file.value(path)


class _Named(_Store):
    """A legacy file, whose lists of names have been matched with the paths."""

    def __init__(self, file: _Hdf5, places: dict[str, str]) -> None:
        self._file, self._places = file, places

    def value(self, path: str) -> NDArray[Any]:
        """See `_Store.value`."""
        if path not in self._places:
            raise ConvertError(f"the file has no variable for {path}")
        return self._file.value(self._places[path])


def _named(file: _Hdf5, spec: Json) -> _Named:
    places: dict[str, str] = {}
    for path, layer in _layers(spec["config"]):
        name = _layer_name(layer)
        group = f"model_weights/{name}"
        names = file.texts(group, "weight_names") if file.has(group) else []
        slots = list(_slots(layer, path, "", {}, 0))
        slots.sort(key=lambda slot: not slot.trainable)
        ends = [text.rpartition("/")[2].partition(":")[0] for text in names]
        ends = [re.sub(r"^variable_\d+$", "variable", end) for end in ends]  # those that a layer gives no name
        expected = [slot.name.rpartition("/")[2] for slot in slots]
        if any(end.startswith("lora_") for end in ends):
            raise ConvertError(f"the layer {name!r} has LoRA weights apart from its own; save the model as .keras")
        if ends != expected:
            raise ConvertError(f"the layer {name!r} has the variables {names}, and {expected} are known")
        places |= {slot.path: f"{group}/{text}" for slot, text in zip(slots, names, strict=True)}
    return _Named(file, places)
