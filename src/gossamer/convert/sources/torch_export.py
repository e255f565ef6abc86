"""``.pt2`` files, which ``torch.export.save`` writes, without torch (archives of torch 2.13, schema 8).

A ZIP whose members lie under one directory, named by the first of them:

- ``models/model.json``: the program: its graph, signature and the ranges of its symbolic sizes;
- ``data/weights/model_weights_config.json``: for each parameter and persistent buffer the file of its storage and how
  it is a strided view of it; several share a storage where torch did;
- ``data/constants/model_constants_config.json``: the same for constants and the other buffers.

Every union of the schema is an object of one member, ``{"as_int": 3}``. Arguments at their default are not written:
the operator's schema knows them. Nothing is unpickled and nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.sources import symbolic
from gossamer.convert.sources.archive import Archive, Source, name_of
from gossamer.convert.sources.json_value import Json
from gossamer.convert.sources.symbolic import Size
from gossamer.dtypes import numpy_dtype
from gossamer.errors import ConvertError
from gossamer.records import field, record
from gossamer.schema.enums import TensorType

SCHEMA_MAJOR = 8

# torch._export.serde.schema.ScalarType
_SCALAR_TYPES = {
    1: TensorType.UINT8,
    2: TensorType.INT8,
    3: TensorType.INT16,
    4: TensorType.INT32,
    5: TensorType.INT64,
    6: TensorType.FLOAT16,
    7: TensorType.FLOAT32,
    8: TensorType.FLOAT64,
    10: TensorType.COMPLEX64,
    11: TensorType.COMPLEX128,
    12: TensorType.BOOL,
    13: TensorType.BFLOAT16,
    28: TensorType.UINT16,
    29: TensorType.FLOAT8_E4M3FN,
    30: TensorType.FLOAT8_E5M2,
}
_LAYOUTS = ("unknown", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "mkldnn", "strided")
_STRIDED = _LAYOUTS.index("strided")
_MEMORY_FORMATS = ("unknown", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format")

STORED = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}
"""Kinds of inputs whose values the archive holds, and the member of their specification that names them."""
MUTATED = {
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
}
"""Kinds of outputs that are new values of something, and the member of their specification that names it."""


@record(frozen=True)
class Value:
    """A value of a graph, by its name: a tensor, or a number that is known when the model runs."""

    name: str


@record(frozen=True, eq=False)
class TensorMeta:
    """What torch knows of a tensor: strides and the offset into its storage count elements."""

    dtype: np.dtype[Any]
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    storage_offset: Size
    layout: str


@record(frozen=True, eq=False)
class Argument:
    """An argument under its name in the operator's schema, empty for those of ``higher_order`` operators.

    ``value``: `Value`, plain Python values, lists of them, `Graph`; dtypes are NumPy's, and devices, layouts and memory
    formats torch's names ("cpu", "strided", "channels_last").
    """

    name: str
    value: Any
    is_keyword: bool


@record(frozen=True, eq=False)
class Node:
    """A call of an operator (``aten.conv2d.default``, ``_operator.mul``, ``higher_order.cond``).

    ``outputs`` are flat: an operator that returns a list of tensors has each of them, ``None`` for one that is none.
    """

    target: str
    arguments: tuple[Argument, ...]
    outputs: tuple[Value | None, ...]
    metadata: dict[str, str]

    def argument(self, name: str, default: Any = None) -> Any:
        """The argument of this name; ``default`` where it is at the operator's default."""
        return next((argument.value for argument in self.arguments if argument.name == name), default)


@record(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which they can run. A graph that a node calls takes its ``inputs`` by position and sees
    nothing else. ``numbers``: what the values that are no tensors are in terms of the symbols."""

    name: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    nodes: tuple[Node, ...]
    tensors: dict[str, TensorMeta]
    numbers: dict[str, Size | bool]


@record(frozen=True, eq=False)
class InputSpec:
    """What an input of the graph is: ``kind`` as the schema calls it; ``target`` names what is stored."""

    kind: str
    value: Any
    target: str | None = None


@record(frozen=True, eq=False)
class OutputSpec:
    """What an output of the graph is: ``kind`` as the schema calls it; ``target`` names what it is the new value of."""

    kind: str
    value: Any
    target: str | None = None


@record(frozen=True, eq=False)
class ExportedProgram:
    """A program with its weights.

    ``state``: parameters, buffers and constants by their name in the module, read-only views of the file; those that
    torch had in one storage share their memory. ``ranges``: smallest and largest value of each symbol, ``None`` for no
    bound. ``dialects``: "TRAINING" as exported, "ATEN" after ``run_decompositions``.
    """

    graph: Graph
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    state: dict[str, NDArray[Any]]
    ranges: dict[str, tuple[int | None, int | None]]
    dialects: tuple[str, ...]
    torch_version: str
    forward_arguments: tuple[str, ...] = field(default=())

    @property
    def constants(self) -> dict[str, NDArray[Any]]:
        """The values of the graph's inputs that are stored, by the name of the input."""
        return {spec.value.name: self.state[spec.target] for spec in self.inputs if spec.target is not None}

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """What a caller gives, in order: values, and constants that the program was exported for."""
        return tuple([spec.value for spec in self.inputs if spec.kind in ("user_input", "constant_input")])

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """What a caller gets, in order: values, and plain constants."""
        return tuple([spec.value for spec in self.outputs if spec.kind == "user_output"])


def read(source: Source) -> ExportedProgram:
    """The program in a ``.pt2`` file. Raises `ConvertError` for anything else, before it is used."""
    try:
        return _Reader(source).program()
    except RecursionError as error:
        raise ConvertError(f"{name_of(source)}: graphs or values within others, without end") from error


class _Reader:
    def __init__(self, source: Source) -> None:
        self.place = name_of(source)
        self.archive = Archive(source, "ZIP archive of torch.export.save")
        self.root = self.archive.names[0].partition("/")[0] if self.archive.names else ""
        if self._member("archive_format") not in self.archive:
            raise self._foreign()
        for name, expected in (("archive_format", b"pt2"), ("archive_version", b"0"), ("byteorder", b"little")):
            got = self.archive.read(self._member(name)).strip()
            if got != expected:
                raise ConvertError(f"{self.place}: {name} is {got[:20]!r}, and only {expected!r} is read")

    def program(self) -> ExportedProgram:
        document = self._json("models/model.json")
        major = document["schema_version"]["major"].integer()
        if major != SCHEMA_MAJOR:
            raise ConvertError(
                f"{self.place}: its schema is {major}, and {SCHEMA_MAJOR} is read: export again with torch 2.13"
            )
        module = document["graph_module"]
        graph = _graph("", module["graph"])
        signature = module["signature"]
        inputs = [_input_spec(spec) for spec in signature["input_specs"].elements()]
        outputs = [_output_spec(spec) for spec in signature["output_specs"].elements()]
        for words, specs, values in (("inputs", inputs, graph.inputs), ("outputs", outputs, graph.outputs)):
            if [spec.value for spec in specs] != list(values):
                raise ConvertError(f"{self.place}: the {words} of the graph are not those of its signature")
        stored = {spec.target: spec for spec in inputs if spec.target is not None}
        state = self._state(set(stored))
        for name, spec in stored.items():
            meta, array = graph.tensors.get(spec.value.name), state[name]
            if meta is None or meta.shape != array.shape or meta.dtype != array.dtype:
                raise ConvertError(
                    f"{self.place}: {name} is {array.dtype}{array.shape}, and its graph has it otherwise"
                )
        for output in outputs:
            known = (
                stored
                if output.kind != "user_input_mutation"
                else [spec.value.name for spec in inputs if _is_name(spec)]
            )
            if output.target is not None and output.target not in known:
                raise ConvertError(f"{self.place}: an output is the new value of {output.target}, which is no input")
        calls = module["module_call_graph"].elements()
        call = calls[0].get("signature") if calls else None
        names = call.get("forward_arg_names") if call is not None else None
        return ExportedProgram(
            graph,
            tuple(inputs),
            tuple(outputs),
            state,
            {name: _range(limits) for name, limits in document["range_constraints"].items()},
            tuple([dialect.text() for dialect in document["verifiers"].elements()]),
            document["torch_version"].text(),
            tuple([name.text() for name in names.elements()]) if names is not None else (),
        )

    def _state(self, wanted: set[str]) -> dict[str, NDArray[Any]]:
        state = {}
        for kind in ("weights", "constants"):
            for name, entry in self._json(f"data/{kind}/model_{kind}_config.json")["config"].items():
                if name in wanted:
                    state[name] = self._array(name, entry, f"data/{kind}/")
        missing = sorted(wanted - state.keys())
        if missing:
            raise ConvertError(f"{self.place} has no weights for {', '.join(missing[:5])}: save the program again")
        return state

    def _array(self, name: str, entry: Json, directory: str) -> NDArray[Any]:
        if entry["use_pickle"].boolean() or entry.get("tensor_meta") is None:
            raise ConvertError(
                f"{self.place}: {name} is pickled, as a tensor of a subclass or a custom object is, and nothing is "
                "unpickled here: replace it by a plain tensor before torch.export.export"
            )
        meta = _tensor_meta(entry["tensor_meta"])
        if meta.layout != "strided":
            raise ConvertError(f"{self.place}: {name} has the layout {meta.layout}: make it dense before the export")
        member = self._member(directory + entry["path_name"].text())
        if member not in self.archive:
            raise ConvertError(f"{self.place}: {member}, where the weights of {name} are, is missing")
        storage = self.archive.stored(member)
        if storage is None:
            storage = np.frombuffer(self.archive.read(member), np.uint8)
        return _view(storage, meta, f"{self.place}: {name}")

    def _json(self, name: str) -> Json:
        return Json.parse(self.archive.read(self._member(name)), f"{self.place}: {name}")

    def _member(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _foreign(self) -> ConvertError:
        if self._member("data.pkl") in self.archive:
            words = "a pickled module of torch.save or TorchScript, which only torch can read"
        elif "serialized_exported_program.json" in self.archive:
            words = "an exported program in the layout of an older torch"
        else:
            words = "no archive of torch.export.save"
        return ConvertError(f"{self.place} is {words}: write it with torch.export.save (torch 2.13)")


def _view(storage: NDArray[np.uint8], meta: TensorMeta, place: str) -> NDArray[Any]:
    numbers = [n for n in (*meta.shape, *meta.strides, meta.storage_offset) if isinstance(n, int) and n >= 0]
    if len(numbers) < 2 * len(meta.shape) + 1:
        raise ConvertError(f"{place} has sizes, strides or an offset that no stored tensor has")
    rank = len(meta.shape)
    shape, strides, offset = numbers[:rank], numbers[rank:-1], numbers[-1]
    itemsize = meta.dtype.itemsize
    last = offset + sum([(size - 1) * stride for size, stride in zip(shape, strides, strict=True)])
    if rank > 32 or math.prod(shape) * itemsize >= 1 << 31:
        raise ConvertError(f"{place} of the shape {shape} is larger than any tensor of a .tflite file")
    if 0 in shape:
        return np.empty(shape, meta.dtype)
    if (last + 1) * itemsize > storage.size:
        raise ConvertError(
            f"{place}: a tensor of shape {shape}, strides {strides} and offset {offset} ends behind its storage of "
            f"{storage.size // itemsize} elements"
        )
    steps = [stride * itemsize for stride in strides]
    array: NDArray[Any] = np.ndarray(shape, meta.dtype, storage, offset * itemsize, steps)
    array.flags.writeable = False
    return array


def _graph(name: str, json: Json) -> Graph:
    tensors = {key: _tensor_meta(meta) for key, meta in json["tensor_values"].items()}
    numbers: dict[str, Size | bool] = {}
    for kind in ("sym_int_values", "sym_float_values", "sym_bool_values"):
        values = json.get(kind)
        numbers |= {key: _symbolic(value) for key, value in values.items()} if values is not None else {}
    inputs = tuple([_value(value) for value in json["inputs"].elements()])
    known = {value.name for value in inputs if isinstance(value, Value)}
    if len(known) != sum(isinstance(value, Value) for value in inputs):
        raise ConvertError(f"{json['inputs'].place} names a value twice")
    nodes = []
    for place in json["nodes"].elements():
        node = _node(place)
        _require([argument.value for argument in node.arguments], known, place)
        for output in node.outputs:
            if output is not None:
                if output.name in known:
                    raise ConvertError(f"{place.place} makes {output.name}, which is there already")
                known.add(output.name)
        nodes.append(node)
    outputs = tuple([_value(value) for value in json["outputs"].elements()])
    _require(outputs, known, json["outputs"])
    return Graph(name, inputs, outputs, tuple(nodes), tensors, numbers)


def _require(value: Any, known: set[str], json: Json) -> None:
    """That every value that is used has been made before: so no order is wrong and there is no circle."""
    if isinstance(value, Value) and value.name not in known:
        raise ConvertError(f"{json.place} uses {value.name}, which nothing before it makes")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for element in value:
            _require(element, known, json)


def _node(json: Json) -> Node:
    arguments = []
    for entry in json["inputs"].elements():
        kind = entry.get("kind")
        is_keyword = kind is not None and kind.integer() == 2
        arguments.append(Argument(entry["name"].text(), _value(entry["arg"]), is_keyword))
    names = [argument.name for argument in arguments if argument.name]
    if len(set(names)) != len(names):
        raise ConvertError(f"{json['inputs'].place} names an argument twice")
    outputs: list[Value | None] = []
    for entry in json["outputs"].elements():
        value = _value(entry)
        for output in value if isinstance(value, list) else [value]:
            if output is not None and not isinstance(output, Value):
                raise entry.wrong("a value")
            outputs.append(output)
    metadata = json.get("metadata")
    words = {key: text.text() for key, text in metadata.items()} if metadata is not None else {}
    return Node(json["target"].text().removeprefix("torch.ops."), tuple(arguments), tuple(outputs), words)


def _value(json: Json) -> Any:
    """An argument as Python has it: see `Argument`."""
    kind, value = json.only()
    if kind in _LISTS:
        return [_LISTS[kind](element) for element in value.elements()]
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind == "as_graph":
        return _graph(value["name"].text(), value["graph"])
    if kind == "as_string_to_argument":
        return {key: _value(element) for key, element in value.items()}
    raise ConvertError(f"{json.place}: an argument of the kind {kind!r} is not known")


def _name(json: Json) -> Value:
    return Value(json["name"].text())


def _choice(*kinds: str) -> Callable[[Json], Any]:
    """A union of fewer kinds than arguments have."""

    def read(json: Json) -> Any:
        kind, value = json.only()
        if kind not in kinds:
            raise json.wrong(f"one of {', '.join(kinds)}")
        return Value(value.text()) if kind == "as_name" else _SCALARS[kind](value)

    return read


def _one_of(names: tuple[str, ...]) -> Callable[[Json], str]:
    def read(json: Json) -> str:
        number = json.integer(0)
        if number >= len(names):
            raise json.wrong(f"below {len(names)}")
        return names[number]

    return read


def _device(json: Json) -> str:
    index = json.get("index")
    return json["type"].text() + (f":{index.integer()}" if index is not None else "")


def _dtype(json: Json) -> np.dtype[Any]:
    number = json.integer()
    if number not in _SCALAR_TYPES:
        raise ConvertError(f"{json.place}: torch's ScalarType {number} is not known")
    return numpy_dtype(_SCALAR_TYPES[number])


_SCALARS: dict[str, Callable[[Json], Any]] = {
    "as_none": lambda json: None,
    "as_tensor": _name,
    "as_int": Json.integer,
    "as_float": Json.number,
    "as_bool": Json.boolean,
    "as_string": Json.text,
    "as_operator": Json.text,
    "as_complex": lambda json: complex(json["real"].number(), json["imag"].number()),
    "as_scalar_type": _dtype,
    "as_memory_format": _one_of(_MEMORY_FORMATS),
    "as_layout": _one_of(_LAYOUTS),
    "as_device": _device,
    "as_sym_int": _choice("as_name", "as_int"),
    "as_sym_float": _choice("as_name", "as_float"),
    "as_sym_bool": _choice("as_name", "as_bool"),
    "as_optional_tensor": _choice("as_tensor", "as_none"),
}
_LISTS: dict[str, Callable[[Json], Any]] = {
    "as_tensors": _name,
    "as_optional_tensors": _SCALARS["as_optional_tensor"],
    "as_nested_tensors": lambda json: [_name(element) for element in json.elements()],
    "as_int_lists": lambda json: [element.integer() for element in json.elements()],
    **{f"{kind}s": _SCALARS[kind] for kind in ("as_int", "as_float", "as_bool", "as_string")},
    **{f"{kind}s": _SCALARS[kind] for kind in ("as_sym_int", "as_sym_float", "as_sym_bool")},
}


def _tensor_meta(json: Json) -> TensorMeta:
    shape = tuple([_symbolic(size) for size in json["sizes"].elements()])
    strides = tuple([_symbolic(stride) for stride in json["strides"].elements()])
    if len(shape) != len(strides):
        raise ConvertError(f"{json.place} has {len(shape)} sizes and {len(strides)} strides")
    layout = _one_of(_LAYOUTS)(json["layout"])
    return TensorMeta(_dtype(json["dtype"]), shape, strides, _symbolic(json["storage_offset"]), layout)


def _symbolic(json: Json) -> Any:
    """A number that may be an expression."""
    kind, value = json.only()
    if kind == "as_expr":
        return symbolic.parse(value["expr_str"].text())
    return _choice("as_int", "as_float", "as_bool")(json)


def _input_spec(json: Json) -> InputSpec:
    kind, spec = json.only()
    if kind in STORED:
        return InputSpec(kind, _name(spec["arg"]), spec[STORED[kind]].text())
    if kind == "user_input":
        return InputSpec(kind, _value(spec["arg"]))
    if kind == "constant_input":
        return InputSpec(kind, _value(spec["value"]))
    raise ConvertError(
        f"{json.place}: an input of the kind {kind!r} cannot be converted: export without custom objects"
    )


def _output_spec(json: Json) -> OutputSpec:
    kind, spec = json.only()
    if kind in MUTATED:
        return OutputSpec(kind, _name(spec["arg"]), spec[MUTATED[kind]].text())
    if kind == "user_output":
        return OutputSpec(kind, _value(spec["arg"]))
    raise ConvertError(
        f"{json.place}: an output of the kind {kind!r} cannot be converted: export the module for inference"
    )


def _is_name(spec: InputSpec) -> bool:
    return isinstance(spec.value, Value)


def _range(json: Json) -> tuple[int | None, int | None]:
    least, most = json.get("min_val"), json.get("max_val")
    return least.integer() if least is not None else None, most.integer() if most is not None else None
