"""A model that is served: loaded once, checked requests in, outputs by name out."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import is_packed, numpy_dtype, type_name
from gossamer.errors import CancelledError, InvokeError, ModelError, PrepareError
from gossamer.inputs.port import DEFAULT_SIGNATURE
from gossamer.log import logger
from gossamer.records import field, record, replace
from gossamer.runtime.interpreter import Interpreter
from gossamer.runtime.signature import SignatureRunner
from gossamer.runtime.state import lasting_state
from gossamer.runtime.subgraph import Subgraph
from gossamer.schema.enums import TensorType
from gossamer.serve.protocol import (
    MAX_SIZE,
    InferenceFailed,
    InferenceRequest,
    InvalidRequest,
    ModelMetadata,
    Parameter,
    RequestError,
    TensorMetadata,
    TooLarge,
    datatype_of,
    named_once,
)

Array = NDArray[Any]
Shape = tuple[int, ...]

PLATFORM = "gossamer_tflite"


def available_cpus() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@record(frozen=True)
class ModelOptions:
    """How models are served.

    ``workers``: runs side by side, by default one a CPU, each with ``num_threads`` threads. ``max_queue_size``:
    requests that may wait. ``max_elements``: of a tensor of a request whose shape is open. ``max_memory``: bytes that
    the tensors of one run may take for the shapes that a request asks for, and each of those whose shapes its values
    decide.

    ``max_batch_size``: rows that run together where rows are independent (`gossamer.serve.rows`); 1: requests run
    alone. ``batch_delay``: seconds that the first of them waits for others, while a worker is idle. ``exact_batches``:
    only where results have the bits of those alone, which sums of floats in another order do not.
    """

    workers: int = field(default_factory=available_cpus)
    num_threads: int = 1
    max_queue_size: int = 1024
    max_elements: int = 1 << 26
    max_memory: int = 2 << 30
    max_batch_size: int = 1
    batch_delay: float = 0.0
    exact_batches: bool = False

    def __post_init__(self) -> None:
        for name in ("workers", "num_threads", "max_queue_size", "max_elements", "max_memory", "max_batch_size"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        if not 0 <= self.batch_delay < math.inf:
            raise ValueError(f"batch_delay must be 0 seconds or more, got {self.batch_delay!r}")


@record(frozen=True)
class Port:
    """An input or output of a signature: its place in the subgraph, and what the protocol says of it. ``limits``: the
    least and the greatest value, where they are fewer than the dtype has."""

    name: str
    index: int
    dtype: np.dtype[Any]
    metadata: TensorMetadata
    default: Shape
    limits: tuple[int, int] | None

    @property
    def shape(self) -> Shape:
        """The sizes, -1 for those that are open."""
        return self.metadata.shape

    @property
    def is_open(self) -> bool:
        """Whether a size is open."""
        return -1 in self.metadata.shape


@record
class Signature:
    """A way to call a model. ``key``: "" for the first subgraph of a model that has none. ``max_rows``: rows that may
    run together, which `gossamer.serve.rows` decides, and ``batching`` says why, in words."""

    key: str
    subgraph: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    max_rows: int = 1
    batching: str = "off"

    def __post_init__(self) -> None:
        self.names = tuple(port.name for port in self.inputs)
        self.positions = {port.name: position for position, port in enumerate(self.outputs)}
        self.is_open = any(port.is_open for port in self.inputs)


class ServedModel:
    """One version of a model, loaded and run once.

    ``content``: the bytes of a .tflite file. A file that is mapped would end the process when somebody overwrites it in
    place. ``signatures`` by key; those with types that the protocol has no name for are left out, and ``left_out`` says
    why.

    Raises `ModelError`, `UnsupportedOpError`, `PrepareError` and the like for a model that cannot run, or be served.
    """

    def __init__(self, content: Any, name: str, version: str = "1", options: ModelOptions | None = None) -> None:
        self.name, self.version = name, version
        self.options = ModelOptions() if options is None else options
        self._lock = threading.Lock()
        self._content = content
        self._prototype = Interpreter(model_content=content, num_threads=self.options.num_threads)
        self.model = self._prototype.model
        self.left_out: dict[str, str] = {}
        self.signatures = {signature.key: signature for signature in self._signatures()}
        if not self.signatures:
            raise ModelError(f"model {name!r} cannot be served: {'; '.join(self.left_out.values())}")
        key = DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in self.signatures else next(iter(self.signatures))
        self.default = self.signatures[key]
        self._is_stateful, self._keeps_resources = lasting_state(self.model, self._prototype._engine.settings.resolver)
        self._allocate()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} version {self.version}: {', '.join(self.signatures) or 'main'}>"

    @property
    def metadata(self) -> ModelMetadata:
        """What clients are told: inputs and outputs of the default signature; in ``properties`` those of the others."""
        properties = {"batching": self.default.batching}
        if self.default.key:
            properties["signature"] = self.default.key
        others = {key: _described(each) for key, each in self.signatures.items() if each is not self.default}
        if others:
            properties["signatures"] = json.dumps(others)
        if self.left_out:
            properties["left_out"] = json.dumps(self.left_out)
        return ModelMetadata(
            self.name,
            (self.version,),
            PLATFORM,
            tuple(port.metadata for port in self.default.inputs),
            tuple(port.metadata for port in self.default.outputs),
            properties,
        )

    @property
    def is_stateful(self) -> bool:
        """Whether something outlives a run in the interpreter: it is reset before the next one."""
        return self._is_stateful or self._keeps_resources

    def check(self, request: InferenceRequest) -> Signature:
        """The signature that a request calls. Raises `InvalidRequest` or `TooLarge` for all that does not fit it."""
        signature = self.default
        if request.parameters:
            chosen = request.parameters.get("signature")
            if chosen is not None:
                signature = self._chosen(chosen)
        inputs = request.inputs
        if len(inputs) != len(signature.names):
            raise self._wrong_inputs(signature, inputs)
        for port in signature.inputs:
            array = inputs.get(port.name)
            if array is None:
                raise self._wrong_inputs(signature, inputs)
            if array.dtype is not port.dtype and array.dtype != port.dtype:
                raise self._wrong_type(port, array)
            if array.shape != port.metadata.shape:
                self._check_shape(port, array.shape)
            if port.limits is not None:
                _check_limits(port, port.limits, array)
        if request.outputs is not None:
            self._check_outputs(signature, request.outputs)
        return signature

    def interpreter(self) -> Interpreter:
        """An interpreter of its own for whoever asks, allocated for the shapes of the file. Raises as its `clone`."""
        with self._lock:
            return self._prototype.clone()

    def shapes_for(self, subgraph: int, shapes: Mapping[int, Shape]) -> Subgraph:
        """A subgraph whose inputs have these shapes, and whose other tensors have those that follow, as far as they can
        be known before a run. Raises `PrepareError`."""
        interpreter = Interpreter(model_content=self._content)
        for index, shape in shapes.items():
            interpreter._resize_input(index, shape, subgraph)
        found = interpreter._subgraph(subgraph)
        found.propagate_shapes()
        return found

    # -- how

    def _signatures(self) -> Iterator[Signature]:
        model = self.model
        if not model.signatures:
            first = model.subgraphs[0]
            names = [
                _unique([model.subgraphs[0].tensors[i].name for i in side]) for side in (first.inputs, first.outputs)
            ]
            sides = [
                list(zip(side_names, side, strict=True))
                for side_names, side in zip(names, (first.inputs, first.outputs), strict=True)
            ]
            yield from self._signature("", 0, sides)
        for key, stored in model.signatures.items():
            sides = [[(entry.name, entry.tensor_index) for entry in side] for side in (stored.inputs, stored.outputs)]
            yield from self._signature(key, stored.subgraph_index, sides)

    def _signature(self, key: str, subgraph: int, sides: Sequence[Sequence[tuple[str, int]]]) -> Iterator[Signature]:
        tensors = self.model.subgraphs[subgraph].tensors
        ports: list[list[Port]] = [[], []]
        for side, made in zip(sides, ports, strict=True):
            for name, index in side:
                if index < 0 or (made is ports[0] and self.model.tensor_data(tensors[index]) is not None):
                    continue
                port = _port(name, index, tensors[index])
                if isinstance(port, str):
                    self.left_out[key] = f"{'input' if made is ports[0] else 'output'} {name!r} is {port}"
                    return
                made.append(port)
        if not ports[1]:
            self.left_out[key] = "it has no outputs"
            return
        yield Signature(key, subgraph, tuple(ports[0]), tuple(ports[1]))

    def _allocate(self) -> None:
        """Prepare for the shapes of the file, and run once, so that what is compiled is there for the first request."""
        prototype = self._prototype
        try:
            prototype.allocate_tensors()
        except PrepareError:
            if not self.default.is_open or self.default.subgraph:
                raise
            return  # the shapes that stand for those that are open do not fit; those of requests may
        inputs = [np.zeros(port.default, port.dtype) for port in self.default.inputs]
        for port, zeros in zip(self.default.inputs, inputs, strict=True):
            if port.dtype.hasobject:
                zeros[...] = b""
        try:
            outputs = Instance(self).run(self.default, inputs)
        except InvalidRequest as error:  # values that an operator refuses
            logger.info("%s version %s does not run on zeros: %s", self.name, self.version, error)
            return
        self.default.outputs = tuple(
            _as_it_is(port, output.shape, self.default.is_open)
            for port, output in zip(self.default.outputs, outputs, strict=True)
        )

    def _chosen(self, key: Any) -> Signature:
        found = self.signatures.get(key) if isinstance(key, str) else None
        if found is None:
            known = ", ".join(map(repr, self.signatures))
            raise InvalidRequest(f"model {self.name!r} has no signature {key!r}; it has {known}")
        return found

    def _wrong_inputs(self, signature: Signature, given: Mapping[str, Array]) -> InvalidRequest:
        unknown = [name for name in given if name not in signature.names]
        missing = [name for name in signature.names if name not in given]
        what = [f"unknown: {', '.join(unknown)}"] if unknown else []
        what += [f"missing: {', '.join(missing)}"] if missing else []
        others = [key for key, each in self.signatures.items() if set(each.names) == set(given)]
        what += [f"signature {key!r} takes these: name it in the parameter 'signature'" for key in others]
        takes = ", ".join(signature.names) or "none"
        return InvalidRequest(f"model {self.name!r} takes the inputs {takes}; {'; '.join(what)}")

    def _wrong_type(self, port: Port, array: Array) -> InvalidRequest:
        got = datatype_of(array.dtype) or array.dtype.name
        return InvalidRequest(
            f"model {self.name!r}: input {port.name!r} has datatype {port.metadata.datatype}, got {got}"
        )

    def _check_shape(self, port: Port, shape: Shape) -> None:
        wanted = port.metadata.shape
        fits = len(shape) == len(wanted) and all(
            got == size or size == -1 for got, size in zip(shape, wanted, strict=True)
        )
        if not fits:
            is_open = " (-1: any size)" if port.is_open else ""
            raise InvalidRequest(
                f"model {self.name!r}: input {port.name!r} has shape {list(wanted)}{is_open}, got {list(shape)}"
            )
        count = math.prod(shape)
        if count > self.options.max_elements or max(shape, default=0) > MAX_SIZE:
            raise TooLarge(
                f"model {self.name!r}: input {port.name!r} of shape {list(shape)} has {count} elements; at most "
                f"{self.options.max_elements} are taken"
            )

    def _check_outputs(self, signature: Signature, outputs: Sequence[str]) -> None:
        if not signature.positions.keys() >= set(outputs):
            unknown = [name for name in outputs if name not in signature.positions]
            raise InvalidRequest(
                f"model {self.name!r} has no output {unknown[0]!r}; it has {', '.join(signature.positions)}"
            )
        named_once(outputs, "output")


class Instance:
    """What runs a model in one thread at a time: interpreters, one for each signature and number of rows up to a power
    of two, so that batches of different sizes need not be planned anew each time."""

    def __init__(self, model: ServedModel) -> None:
        self.model = model
        self._runners: dict[tuple[str, int], _Runner] = {}
        self._running: _Runner | None = None
        self._used = ("", 0)
        signature = model.default
        sizes = [1 << power for power in range(signature.max_rows.bit_length())]
        for rows in sizes:
            runner = self._runner(signature, rows)
            if rows > 1:
                with suppress(PrepareError):  # the sizes that stand for open ones do not fit
                    runner.resize([(rows, *port.default[1:]) for port in signature.inputs])

    def run(self, signature: Signature, values: Sequence[Array], rows: int = 1) -> list[Array]:
        """The outputs for inputs that `ServedModel.check` has seen. ``rows``: how many of them run together.

        Raises `CancelledError` after `cancel`, else `RequestError`: `TooLarge` if there is not so much memory,
        `InvalidRequest` for shapes and values that an operator refuses, `InferenceFailed`.
        """
        key = self._used = signature.key, rows.bit_length()
        try:
            runner = self._runners.get(key) or self._runner(signature, rows)
            self._running = runner
            return runner.run(values)
        except BaseException as error:
            if not isinstance(error, PrepareError | InvokeError):  # after which an interpreter goes on
                self._runners.pop(key, None)
            refused = _refusal(error, self.model.name)
            if refused is None:
                raise
            raise refused from error
        finally:
            self._running = None

    def renew(self) -> None:
        """Forget what the last run has left behind. Called before the next one, when nobody waits."""
        if self.model._keeps_resources and self._used in self._runners:
            del self._runners[self._used]
            key, rows = self._used
            self._runner(self.model.signatures[key], rows)

    def cancel(self) -> None:
        """End the run that is under way in another thread, where its interpreter looks for it."""
        runner = self._running
        if runner is not None:
            runner.interpreter.cancel()

    def _runner(self, signature: Signature, rows: int) -> _Runner:
        runner = self._runners[signature.key, rows.bit_length()] = _Runner(self.model, signature)
        return runner


class _Runner:
    """An interpreter that keeps the shapes of its last run."""

    def __init__(self, model: ServedModel, signature: Signature) -> None:
        self.model = model
        self.interpreter = model.interpreter()
        self._inputs = [port.index for port in signature.inputs]
        self._outputs = [port.index for port in signature.outputs]
        self._signature = signature
        self._is_fixed = not signature.is_open
        self._shapes = [port.default for port in signature.inputs]
        self._is_ready = False
        self._resets = model._is_stateful and not model._keeps_resources
        self._called = self.interpreter.get_signature_runner(signature.key) if signature.subgraph else None

    def run(self, values: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs."""
        interpreter = self.interpreter
        if self._called is not None:
            return self._call(self._called, values)
        if not (self._is_fixed and self._is_ready):
            shapes = [value.shape for value in values]
            if not self._is_ready or shapes != self._shapes:
                self.resize(shapes)
        if self._resets:
            interpreter.reset_all_variables()
        for index, value in zip(self._inputs, values, strict=True):
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        return [np.asarray(interpreter.get_tensor(index)) for index in self._outputs]

    def resize(self, shapes: Sequence[Shape]) -> None:
        """Be ready for inputs of these shapes. Raises `TooLarge`, and what `Interpreter.allocate_tensors` raises."""
        self._is_ready = False
        changed = [tuple(shape) for shape in shapes] != self._shapes
        for index, shape in zip(self._inputs, shapes, strict=True):
            self.interpreter.resize_tensor_input(index, shape)
        self.interpreter.allocate_tensors()
        if changed:
            self._check_memory()
        self._shapes, self._is_ready = [tuple(shape) for shape in shapes], True

    def _call(self, called: SignatureRunner, values: Sequence[Array]) -> list[Array]:
        signature = self._signature
        called.set_inputs(dict(zip(signature.names, values, strict=True)))
        if self._resets:
            self.interpreter.reset_all_variables()
        if signature.is_open:
            self._check_memory()
        called.invoke()
        outputs = called.get_outputs()
        return [np.asarray(outputs[port.name]) for port in signature.outputs]

    def _check_memory(self) -> None:
        """Memory that is planned is not used yet: what is too much is given back."""
        needed = self.interpreter.memory_report().total
        for subgraph in range(self.interpreter.num_subgraphs()):
            for kernel in self.interpreter.delegate_kernels(subgraph):
                program = getattr(kernel, "program", None)
                arena = program.memory.get("arena") if program is not None else None
                needed += arena.size if arena is not None else 0
        if needed > self.model.options.max_memory:
            raise TooLarge(
                f"model {self.model.name!r} takes {needed} bytes for inputs of these shapes; at most "
                f"{self.model.options.max_memory} are given"
            )


def _refusal(error: BaseException, name: str) -> RequestError | None:
    """What a client is told of an error; ``None`` for those that go on as they are."""
    if isinstance(error, CancelledError | RequestError) or not isinstance(error, Exception):
        return None
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return TooLarge(f"model {name!r}: there is not enough memory for it: {cause}")
        cause = cause.__cause__ or cause.__context__
    text = str(error).partition("\n")[0]
    if isinstance(error, PrepareError | InvokeError):
        return InvalidRequest(f"model {name!r} refuses these inputs: {text}")
    return InferenceFailed(f"model {name!r} failed: {type(error).__name__}: {text}")


def _port(name: str, index: int, tensor: Any) -> Port | str:
    """A tensor as the protocol has it, or the type that it has no name for."""
    kind = TensorType(tensor.type)
    if kind in (TensorType.RESOURCE, TensorType.VARIANT):
        return f"{type_name(kind)}, which stays inside of the model"
    dtype = numpy_dtype(kind)
    datatype = datatype_of(dtype)
    if datatype is None:
        return f"{type_name(kind)}, for which the Open Inference Protocol has no datatype"
    shape = tuple(map(int, tensor.shape))
    signature = tuple(map(int, tensor.shape_signature))
    limits = None
    if is_packed(kind):
        bits = 2 if kind == TensorType.INT2 else 4
        limits = (0, (1 << bits) - 1) if kind == TensorType.UINT4 else (-(1 << bits - 1), (1 << bits - 1) - 1)
    parameters: dict[str, Parameter] = {}
    quantization = tensor.quantization
    if quantization is not None and dtype.kind in "iu" and len(quantization.scale) == 1:
        parameters["scale"] = float(quantization.scale[0])
        parameters["zero_point"] = int(quantization.zero_point[0]) if len(quantization.zero_point) else 0
    if limits is not None:
        parameters["type"] = type_name(kind)
    metadata = TensorMetadata(name, datatype, signature if len(signature) == len(shape) else shape, parameters)
    return Port(name, index, dtype, metadata, shape, limits)


def _as_it_is(port: Port, shape: Shape, is_open: bool) -> Port:
    """An output whose file does not know its shape: a stored scalar may stand for any rank, a size for any number."""
    known = port.shape
    if len(known) != len(shape):
        known = (-1,) * len(shape) if is_open else shape
    elif any(size not in (-1, got) for size, got in zip(known, shape, strict=True)):
        known = tuple(size if size == got else -1 for size, got in zip(known, shape, strict=True))
    return port if known == port.shape else replace(port, metadata=replace(port.metadata, shape=known))


def _check_limits(port: Port, limits: tuple[int, int], array: Array) -> None:
    low, high = limits
    if array.size and not low <= int(array.min()) <= int(array.max()) <= high:
        kind = port.metadata.parameters["type"]
        raise InvalidRequest(f"input {port.name!r} is {kind}: values are from {low} to {high}")


def _unique(names: Sequence[str]) -> list[str]:
    """Names of tensors, which need not be there, nor differ, as keys."""
    made: list[str] = []
    for position, name in enumerate(names):
        name = name or f"{position}"
        made.append(f"{name}:{position}" if name in made else name)
    return made


def _described(signature: Signature) -> dict[str, Any]:
    sides = {"inputs": signature.inputs, "outputs": signature.outputs}
    return {
        side: [
            {
                "name": port.name,
                "datatype": port.metadata.datatype,
                "shape": list(port.shape),
                **({"parameters": dict(port.metadata.parameters)} if port.metadata.parameters else {}),
            }
            for port in ports
        ]
        for side, ports in sides.items()
    }
