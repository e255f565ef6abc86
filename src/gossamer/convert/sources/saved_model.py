"""TensorFlow's SavedModels: a directory with ``saved_model.pb``, ``variables/`` and ``assets/``.

The trailing arguments of a function are what it captured. ``concrete_functions`` of the object graph says which
objects these are; a variable's value is found by walking the object graphs of SavedModel and checkpoint side by side
along the names of the children. Files of TensorFlow 1 have no object graph. There, and in the function that restores
a file of TensorFlow 2, the outputs of ``RestoreV2`` are assigned to the nodes that stand for variables.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from gossamer.arrays import NDArray
from gossamer.convert.elements import of_strings
from gossamer.convert.files import inside, map_file
from gossamer.convert.messages import tensorflow as tf
from gossamer.convert.sources.graph_def import Edge, Graph, parse_edge, whole_graph
from gossamer.convert.sources.tensor_bundle import TensorBundle
from gossamer.convert.sources.tensor_proto import shape_of, tensor_array, type_name
from gossamer.convert.wire import read
from gossamer.errors import ConvertError

INITIALIZER = "__saved_model_init_op"
MAIN_OPS = ("saved_model_main_op", "legacy_init_op")
ASSETS = "saved_model_assets"
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

MAX_PATHS = 1 << 26
"""Characters of the paths of all objects: each contains that of the object around it."""

Shape = tuple[int | None, ...] | None


class TensorSpec(NamedTuple):
    """A tensor of the graph: ``name`` as ``node:index``, sizes ``None`` where they are not known, so a whole shape."""

    name: str
    dtype: tf.DataType
    shape: Shape


class Signature(NamedTuple):
    """What can be called from outside: tensors of the graph by the names of arguments and results."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    method_name: str


class Variable(NamedTuple):
    """A variable: its name for TensorFlow, its path in the object graph ("" in TensorFlow 1), and where its value is.

    ``key`` is that of the checkpoint, ``None`` for a variable that was not saved.
    """

    name: str
    path: str
    dtype: tf.DataType
    shape: Shape
    key: str | None
    checkpoint: TensorBundle | None

    def value(self) -> NDArray[Any]:
        """The saved value, a read-only view of the file. Raises `ConvertError` if it is not there or damaged."""
        if self.checkpoint is None or self.key not in self.checkpoint.entries or self.key is None:
            raise ConvertError(f"variable {self.path or self.name!r} is not in the checkpoint")
        array = self.checkpoint.read(self.key)
        dtype = self.checkpoint.entries[self.key].dtype
        fits = self.shape is None or (
            len(self.shape) == array.ndim
            and all(size in (None, found) for size, found in zip(self.shape, array.shape, strict=True))
        )
        if dtype != self.dtype or not fits:
            raise ConvertError(
                f"variable {self.path or self.name!r} is {type_name(self.dtype)} {self.shape}; "
                f"the checkpoint has {type_name(dtype)} {array.shape}"
            )
        return array


class Asset(NamedTuple):
    """A file that belongs to the model."""

    path: str

    def content(self) -> memoryview:
        """The mapped bytes. Raises `ConvertError` if there is no such file."""
        return map_file(self.path)


class Constant(NamedTuple):
    """A node of the graph whose value a function captured."""

    node: tf.NodeDef


Captured = Variable | Asset | Constant | tf.SavedObject
"""What a function captured: an object of the SavedModel where it is none of the first three (a table, say)."""


class SavedModel(NamedTuple):
    """One graph of a SavedModel and what belongs to it.

    ``variables`` are by their nodes in the graph, as far as the file says how they are restored (which is looked at
    when one is asked for); ``objects`` by their number in the object graph, as functions capture them. ``assets`` are
    by the name of the tensor that holds their path. ``initializer`` is the node to run first, if there is one.
    """

    directory: str
    meta_graph: tf.MetaGraphDef
    graph: Graph
    signatures: Mapping[str, Signature]
    variables: Mapping[str, Variable]
    objects: tuple[Captured, ...]
    assets: Mapping[str, Asset]
    initializer: str | None

    @property
    def served(self) -> Graph:
        """The graph without the functions that only save and restore it."""
        saver = self.meta_graph.saver_def or tf.SaverDef()
        names = [parse_edge(text).node for text in (saver.save_tensor_name, saver.restore_op_name)]
        calls = [called(self.graph.nodes[name]) for name in names if name in self.graph.nodes]
        return self.graph._replace(functions=self.graph.functions.without([call.name for call in calls if call]))

    def captures(self, function: str) -> Mapping[str, Captured]:
        """What the trailing arguments of a function are, by their names. Empty if the file does not say.

        Raises `KeyError` for a function that the graph does not have.
        """
        if function not in self.graph.functions:
            raise KeyError(function)
        stored = self.meta_graph.object_graph_def
        if stored is None or function not in stored.concrete_functions:
            return {}
        arguments = [argument.name for argument in _signature(self.graph.functions[function]).input_arg]
        bound = stored.concrete_functions[function].bound_inputs
        return dict(zip(arguments[len(arguments) - len(bound) :], [self.objects[i] for i in bound], strict=True))


def read_saved_model(directory: str | os.PathLike[str], tags: Iterable[str] = ("serve",)) -> SavedModel:
    """Reads the graph with exactly these tags. Files are mapped; values of variables are looked at when asked for.

    Raises `ConvertError` for a directory that is no SavedModel, has no such graph, is damaged, contradicts itself, or
    lacks its checkpoint.
    """
    place = os.fspath(directory)
    path = os.path.join(place, "saved_model.pb")
    if not os.path.isfile(path):
        raise ConvertError(f"{place}: no SavedModel: there is no file saved_model.pb{_instead(place)}")
    stored = read(tf.SavedModel, map_file(path), path)
    meta_graph = _tagged(stored, set(tags), path)
    info = meta_graph.meta_info_def
    op_defs = {op.name: op for op in (info.stripped_op_list.op if info is not None and info.stripped_op_list else ())}
    graph = whole_graph(meta_graph.graph_def or tf.GraphDef(), op_defs, path)
    checkpoint = _checkpoint(place)
    assets = _assets(meta_graph, place)
    objects = tuple(_objects(meta_graph, graph, checkpoint, assets, path))
    for name, concrete in (meta_graph.object_graph_def or tf.SavedObjectGraph()).concrete_functions.items():
        _check_bound(name, concrete, graph, len(objects), path)
    variables = _Restored(graph, checkpoint, path)
    lost = [node.name for node in graph.nodes.values() if node.op in VARIABLES]
    lost += [item.path for item in objects if isinstance(item, Variable)]
    if checkpoint is None and lost:
        raise ConvertError(f"{place}: variables/variables.index is missing; the model has variables, like {lost[0]!r}")
    signatures = {name: _read_signature(name, item, graph, path) for name, item in meta_graph.signature_def.items()}
    return SavedModel(
        place, meta_graph, graph, signatures, variables, objects, assets, _initializer(meta_graph, graph, path)
    )


def _instead(place: str) -> str:
    """What else is there."""
    if not os.path.isdir(place):
        return "; it is no directory"
    for name, why in (("saved_model.pbtxt", "text"), ("saved_model.cpb", "a file in chunks")):
        if os.path.exists(os.path.join(place, name)):
            return f"; {name} ({why}) is not read"
    return ""


def _tagged(stored: tf.SavedModel, tags: set[str], path: str) -> tf.MetaGraphDef:
    found = [sorted(item.meta_info_def.tags if item.meta_info_def is not None else ()) for item in stored.meta_graphs]
    if sorted(tags) not in found:
        raise ConvertError(f"{path}: no graph has the tags {sorted(tags)}; there are {found}")
    return stored.meta_graphs[found.index(sorted(tags))]


def _checkpoint(place: str) -> TensorBundle | None:
    prefix = os.path.join(place, "variables", "variables")
    return TensorBundle(prefix) if os.path.exists(f"{prefix}.index") else None


def _signature(function: tf.FunctionDef) -> tf.OpDef:
    return function.signature or tf.OpDef()


def _assets(meta_graph: tf.MetaGraphDef, place: str) -> dict[str, Asset]:
    """The assets in the order of the file, by the name of the tensor with the path."""
    stored = meta_graph.asset_file_def
    collected = meta_graph.collection_def.get(ASSETS, tf.CollectionDef()).any_list
    if not stored and collected is not None:  # as TensorFlow 1 keeps them
        stored = tuple([read(tf.AssetFileDef, item.value, f"{place}: {ASSETS}") for item in collected.value])
    assets: dict[str, Asset] = {}
    for item in stored:
        name = item.tensor_info.name if item.tensor_info is not None else ""
        asset = Asset(inside(os.path.join(place, "assets"), item.filename, f"{place}: asset {name!r}"))
        if assets.setdefault(name, asset) != asset:
            raise ConvertError(
                f"{place}: two assets belong to the tensor {name!r}: {assets[name].path} and {asset.path}"
            )
    return assets


def _spec(info: tf.TensorInfo, graph: Graph, what: str) -> TensorSpec:
    if info.which("encoding") != "name":
        raise ConvertError(f"{what} is a {info.which('encoding') or 'tensor without a name'}; a dense tensor is read")
    if parse_edge(info.name, what).node not in graph.nodes:
        raise ConvertError(f"{what} is {info.name!r}, which the graph does not have")
    return TensorSpec(info.name, info.dtype, shape_of(info.tensor_shape))


def _read_signature(name: str, stored: tf.SignatureDef, graph: Graph, path: str) -> Signature:
    what = f"{path}: signature {name!r}"
    inputs = {key: _spec(info, graph, f"{what}: input {key!r}") for key, info in stored.inputs.items()}
    outputs = {key: _spec(info, graph, f"{what}: output {key!r}") for key, info in stored.outputs.items()}
    return Signature(inputs, outputs, stored.method_name)


def _initializer(meta_graph: tf.MetaGraphDef, graph: Graph, path: str) -> str | None:
    """The node that sets up tables; of TensorFlow 1 it is in a collection."""
    name = ""
    if INITIALIZER in meta_graph.signature_def:
        info = meta_graph.signature_def[INITIALIZER].outputs.get(INITIALIZER)
        name = info.name if info is not None else ""
    for collection in MAIN_OPS:
        nodes = meta_graph.collection_def.get(collection, tf.CollectionDef()).node_list
        name = name or (nodes.value[0] if nodes is not None and nodes.value else "")
    if not name:
        return None
    node = parse_edge(name, path).node
    if node not in graph.nodes:
        raise ConvertError(f"{path}: the initializer {name!r} is no node of the graph")
    return node


def _objects(
    meta_graph: tf.MetaGraphDef, graph: Graph, checkpoint: TensorBundle | None, assets: Mapping[str, Asset], path: str
) -> Iterator[Captured]:
    """The objects of the SavedModel as functions capture them."""
    nodes = (meta_graph.object_graph_def or tf.SavedObjectGraph()).nodes
    trackable = _trackable(checkpoint)
    paths, saved = _walk(nodes, trackable, path)
    for number, node in enumerate(nodes):
        if node.variable is not None:
            keys = [
                item.checkpoint_key
                for item in (trackable[saved[number]].attributes if number in saved else ())
                if item.name == "VARIABLE_VALUE"
            ]
            stored = node.variable
            key = keys[0] if keys else None
            yield Variable(stored.name, paths.get(number, ""), stored.dtype, shape_of(stored.shape), key, checkpoint)
        elif node.asset is not None:
            index = node.asset.asset_file_def_index
            if not 0 <= index < len(meta_graph.asset_file_def):
                raise ConvertError(
                    f"{path}: object {number} is asset {index}; there are {len(meta_graph.asset_file_def)}"
                )
            info = meta_graph.asset_file_def[index].tensor_info
            yield assets[info.name if info is not None else ""]
        elif node.constant is not None:
            if node.constant.operation not in graph.nodes:
                raise ConvertError(
                    f"{path}: object {number} is the constant {node.constant.operation!r}, which is no node"
                )
            yield Constant(graph.nodes[node.constant.operation])
        else:
            yield node


def _trackable(checkpoint: TensorBundle | None) -> tuple[tf.TrackableObjectGraph.TrackableObject, ...]:
    """The object graph of the checkpoint."""
    if checkpoint is None or OBJECT_GRAPH not in checkpoint:
        return ()
    what = f"{checkpoint.prefix}: {OBJECT_GRAPH}"
    stored = checkpoint.read(OBJECT_GRAPH)
    if stored.shape or not stored.dtype.hasobject:
        raise ConvertError(f"{what} is {stored.dtype}{list(stored.shape)}, must be one string")
    return read(tf.TrackableObjectGraph, stored.item(), what).nodes


def _walk(
    nodes: tuple[tf.SavedObject, ...], trackable: tuple[tf.TrackableObjectGraph.TrackableObject, ...], path: str
) -> tuple[dict[int, str], dict[int, int]]:
    """The path of every object that can be reached from the root, and its number in the checkpoint's object graph."""
    children = [{child.local_name: child.node_id for child in node.children} for node in trackable]
    paths = {0: ""}
    saved = {0: 0} if trackable else {}
    waiting = [0] if nodes else []
    characters = 0
    for number in waiting:  # at most twice: for its path, and when its twin is found later
        twins = children[saved[number]] if number in saved else {}
        for child in nodes[number].children:
            if not 0 <= child.node_id < len(nodes):
                raise ConvertError(f"{path}: object {number} has the child {child.node_id}; there are {len(nodes)}")
            new = False
            if child.local_name in twins and child.node_id not in saved:
                twin = twins[child.local_name]
                if not 0 <= twin < len(trackable):
                    raise ConvertError(f"{path}: the checkpoint has {len(trackable)} objects, not number {twin}")
                saved[child.node_id] = twin
                new = True
            if child.node_id not in paths:
                paths[child.node_id] = f"{paths[number]}/{child.local_name}".lstrip("/")
                characters += len(paths[child.node_id])
                if characters > MAX_PATHS:
                    raise ConvertError(f"{path}: the paths of its objects have more than {MAX_PATHS} characters")
                new = True
            if new:
                waiting.append(child.node_id)
    return paths, saved


def _check_bound(name: str, concrete: tf.SavedConcreteFunction, graph: Graph, objects: int, path: str) -> None:
    """A function has as many arguments as it captured objects, at least, and these exist."""
    what = f"{path}: function {name!r}"
    if name not in graph.functions:
        raise ConvertError(f"{what} has captured objects, but is not in the graph")
    arguments = len(_signature(graph.functions[name]).input_arg)
    if len(concrete.bound_inputs) > arguments:
        raise ConvertError(f"{what} has {arguments} arguments and {len(concrete.bound_inputs)} captured objects")
    for number in concrete.bound_inputs:
        if not 0 <= number < objects:
            raise ConvertError(f"{what} captured object {number}; there are {objects}")


VARIABLES = {"VarHandleOp", "VariableV2", "Variable"}
ASSIGNMENTS = {"AssignVariableOp", "Assign"}
CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
PASSING = {"Identity", "IdentityN"}
MAX_PASSES = 64
"""Nodes between a restored value and its variable; there is one as a rule."""


def called(node: tf.NodeDef) -> tf.NameAttrList | None:
    """The function that a node calls."""
    return node.attr["f"].func if node.op in CALLS and "f" in node.attr else None


class _Restored(Mapping[str, Variable]):
    """The variables that the file's own restore assigns, by their nodes, found when the first one is asked for: a file
    with an object graph says the same there."""

    def __init__(self, graph: Graph, checkpoint: TensorBundle | None, path: str) -> None:
        self._found = lru_cache(maxsize=1)(lambda: dict(_restored(graph, checkpoint, path)))

    def __getitem__(self, node: str) -> Variable:
        return self._found()[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


def _restored(graph: Graph, checkpoint: TensorBundle | None, path: str) -> Iterator[tuple[str, Variable]]:
    bodies: list[tuple[Mapping[str, tf.NodeDef], Mapping[str, str]]] = [(graph.nodes, {})]
    restoring = {
        name: function
        for name, function in graph.functions.items()
        if any(node.op == "RestoreV2" for node in function.node_def)
    }
    for node in graph.nodes.values():
        call = called(node)
        function = restoring.pop(call.name, None) if call is not None else None
        if function is not None:
            arguments = [argument.name for argument in _signature(function).input_arg]
            given = [text for text in node.input if not text.startswith("^")]
            named = dict(zip(arguments, given, strict=False))
            bodies.append(({inner.name: inner for inner in function.node_def}, named))
    for nodes, arguments_of in bodies:
        constants: dict[str, NDArray[Any]] = {}
        for node in nodes.values():
            if node.op not in ASSIGNMENTS or len(node.input) < 2:
                continue
            target = parse_edge(node.input[0], path)
            handle = graph.nodes.get(parse_edge(arguments_of.get(target.node, target.node), path).node)
            key = _restored_key(parse_edge(node.input[1], path), nodes, constants, path)
            if handle is None or handle.op not in VARIABLES or key is None:
                continue
            dtype = handle.attr.get("dtype", tf.AttrValue()).type
            shape = shape_of(handle.attr.get("shape", tf.AttrValue()).shape)
            name = str(handle.attr.get("shared_name", tf.AttrValue()).s, "utf-8", "replace") or handle.name
            yield handle.name, Variable(name, "", dtype, shape, key, checkpoint)


def _restored_key(
    edge: Edge, nodes: Mapping[str, tf.NodeDef], constants: dict[str, NDArray[Any]], path: str
) -> str | None:
    """The key of the checkpoint whose value comes along this edge, if it is one."""
    for _ in range(MAX_PASSES):
        node = nodes.get(edge.node)
        if node is None or edge.control:
            return None
        if node.op in PASSING and edge.number < len(node.input):
            edge = parse_edge(node.input[edge.number], path)
        elif node.op == "RestoreV2" and len(node.input) > 2:
            names, slices = (_strings(parse_edge(text, path).node, nodes, constants) for text in node.input[1:3])
            if edge.number >= min(len(names), len(slices)):
                raise ConvertError(f"{path}: {node.name!r} restores {len(names)} tensors, not number {edge.number}")
            if slices[edge.number]:
                raise ConvertError(
                    f"{path}: {node.name!r} restores a slice of {names[edge.number]!r}, which is not read"
                )
            return str(names[edge.number], "utf-8", "surrogateescape")
        else:
            return None
    return None


def _strings(name: str, nodes: Mapping[str, tf.NodeDef], constants: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """The strings of a constant vector, found once; none of another node."""
    if name not in constants:
        value = nodes[name].attr.get("value") if name in nodes else None
        tensor = value.tensor if value is not None else None
        strings = of_strings([]) if tensor is None else tensor_array(tensor, f"constant {name!r}")
        constants[name] = strings if strings.ndim == 1 and strings.dtype.hasobject else of_strings([])
    return constants[name]
