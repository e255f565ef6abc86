"""The paths on which a model can run: each tells what every tensor of the main graph was."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

import numpy as np

from gossamer.arrays import NDArray
from gossamer.compare.matching import results
from gossamer.edit.references import constant_data, given, taken
from gossamer.errors import InvokeError, UnsupportedOpError, did_you_mean
from gossamer.micro.interpreter import MicroInterpreter
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.ops.op_def import TensorInfo
from gossamer.resolver import OpResolverType
from gossamer.runtime.interpreter import Interpreter

Array = NDArray[Any]
Values = dict[int, Array]
"""What tensors were, by their numbers in the main graph."""


class Runner(Protocol):
    """Runs the main graph of one model, again and again; state lasts from one run to the next."""

    def run(self, inputs: Sequence[Array]) -> Values:
        """What every tensor was that the run wrote, the inputs among them."""


class Peer(NamedTuple):
    """Another runtime of .tflite models: the module with its ``Interpreter``, and that with its resolver types."""

    module: str
    resolvers: str


PEERS = {
    "litert": Peer("ai_edge_litert.interpreter", "ai_edge_litert.interpreter"),
    "tflite_runtime": Peer("tflite_runtime.interpreter", "tflite_runtime.interpreter"),
    "tensorflow": Peer("tensorflow.lite", "tensorflow.lite.experimental"),
}
"""Runtimes that are compared with where they are installed."""

PLAIN = "-reference"
"""The end of the name of a peer that runs its reference kernels, without delegates."""

PATHS = ("default", "reference", "micro", *(f"{peer}{end}" for peer in PEERS for end in ("", PLAIN)))
"""``default``: machine code; ``reference``: the reference kernels; ``micro``: TFLite Micro's interpreter and kernels;
and the peers, each with the delegate that it applies by default, or with its reference kernels."""


def checked_path(name: str) -> str:
    """The name itself. Raises `ValueError` for one that is no path, or a peer that is not installed."""
    if name not in PATHS:
        raise ValueError(f"there is no path {name!r}{did_you_mean(name, PATHS)} The paths are {', '.join(PATHS)}.")
    peer = PEERS.get(name.removesuffix(PLAIN))
    if peer is not None and find_spec(peer.module.partition(".")[0]) is None:
        raise ValueError(f"the path {name!r} needs the package {peer.module.partition('.')[0]}, which is not installed")
    return name


def runner(path: str, model: Model) -> Runner:
    """What runs a model on a path. Raises what its interpreter raises, and as `checked_path`."""
    peer = PEERS.get(checked_path(path).removesuffix(PLAIN))
    if peer is not None:
        return _Peer(path, peer, model)
    if path == "micro":
        return _Micro(model)
    return _Own(model, OpResolverType.AUTO if path == "default" else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


class _Own:
    """An `Interpreter` with a tap."""

    def __init__(self, model: Model, resolver: OpResolverType) -> None:
        interpreter = Interpreter(model_content=write_model(model), experimental_op_resolver_type=resolver)
        interpreter.tap(self._keep)
        self._driven = _Driven(interpreter, model)
        self._values: Values = {}

    def _keep(self, tensor: TensorInfo, value: Array) -> None:
        self._values[tensor.index] = value

    def run(self, inputs: Sequence[Array]) -> Values:
        self._values = {}
        return {**self._driven.run(inputs), **self._values}


class _Micro:
    """A `MicroInterpreter` that preserves all tensors."""

    def __init__(self, model: Model) -> None:
        measured = MicroInterpreter(model, preserve_all_tensors=True)
        measured.allocate_tensors()
        self._interpreter = MicroInterpreter(model, arena=measured.minimum_arena_bytes, preserve_all_tensors=True)
        self._interpreter.allocate_tensors()
        self._model = model

    def run(self, inputs: Sequence[Array]) -> Values:
        for position, value in enumerate(inputs):
            self._interpreter.input(position).store(value)
        self._interpreter.invoke()
        values = dict(zip(self._model.subgraphs[0].inputs, inputs, strict=True))
        for _, _, index in results(self._model):
            tensor = self._interpreter.tensor(index)
            if tensor.data is not None:
                values[index] = np.array(tensor.array())
        return values


class _Peer:
    """An interpreter of another runtime. It is given a model whose results are all outputs: of others, its delegates
    leave what they fuse unwritten. What follows from constants alone is left out."""

    def __init__(self, path: str, peer: Peer, model: Model) -> None:
        subgraph = model.subgraphs[0]
        folded = _folded(model)
        self._told = [index for _, _, index in results(model) if index not in folded]
        outputs = tuple(dict.fromkeys([*subgraph.outputs, *self._told]))
        open_model = model.replace(subgraphs=(subgraph.replace(outputs=outputs), *model.subgraphs[1:]))
        interpreters, resolvers = import_module(peer.module), import_module(peer.resolvers).OpResolverType
        resolver = resolvers.BUILTIN_REF if path.endswith(PLAIN) else resolvers.AUTO
        try:
            interpreter = interpreters.Interpreter(
                model_content=write_model(open_model), experimental_op_resolver_type=resolver
            )
        except (ValueError, RuntimeError) as error:
            raise UnsupportedOpError(f"{path} does not take the model: {error}") from error
        self._path = path
        self._driven = _Driven(interpreter, model)

    def run(self, inputs: Sequence[Array]) -> Values:
        try:
            values = self._driven.run(inputs)
        except (ValueError, RuntimeError) as error:
            raise InvokeError(f"{self._path} does not run the model: {error}") from error
        for index in self._told:
            with suppress(ValueError):
                values[index] = self._driven.interpreter.get_tensor(index)
        return values


def _folded(model: Model) -> set[int]:
    """The tensors that follow from constants alone: delegates compute them once, and do not write them."""
    tensors = model.subgraphs[0].tensors
    known = {index for index, tensor in enumerate(tensors) if not tensor.is_variable and constant_data(model, tensor)}
    found: set[int] = set()
    for operator in model.subgraphs[0].operators:
        inputs = set(taken(operator))
        if inputs and inputs <= known | found:
            found.update(given(operator))
    return found


class _Driven:
    """An interpreter with the API of TFLite's, which allocates its tensors when shapes change."""

    def __init__(self, interpreter: Any, model: Model) -> None:
        self.interpreter = interpreter
        self._indices = model.subgraphs[0].inputs
        self._shapes: list[tuple[int, ...]] | None = None

    def run(self, inputs: Sequence[Array]) -> Values:
        """Runs it; the inputs by their numbers."""
        shapes = [value.shape for value in inputs]
        if shapes != self._shapes:
            details = self.interpreter.get_input_details()
            for index, detail, shape in zip(self._indices, details, shapes, strict=True):
                if tuple(detail["shape"]) != shape:
                    self.interpreter.resize_tensor_input(index, shape)
            self.interpreter.allocate_tensors()
            self._shapes = shapes
        values = dict(zip(self._indices, inputs, strict=True))
        for index, value in values.items():
            self.interpreter.set_tensor(index, value)
        self.interpreter.invoke()
        return values
