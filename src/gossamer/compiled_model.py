"""The names of ``ai_edge_litert.compiled_model``: a model that is run by buffers, on the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.environment import Environment, EnvironmentOptions
from gossamer.errors import CompiledModelError
from gossamer.hardware_accelerator import HardwareAccelerator
from gossamer.options import (
    CpuKernelMode,
    CpuOptions,
    GpuOptions,
    IntelOpenVinoOptions,
    Options,
    QualcommOptions,
)
from gossamer.resolver import OpResolverType
from gossamer.runtime import arenas
from gossamer.runtime.interpreter import Interpreter
from gossamer.runtime.subgraph import Subgraph
from gossamer.runtime.tensor import Tensor
from gossamer.tensor_buffer import HostMemory, TensorBuffer

__all__ = [
    "CompiledModel",
    "CpuKernelMode",
    "CpuOptions",
    "Environment",
    "EnvironmentOptions",
    "GpuOptions",
    "HardwareAccelerator",
    "IntelOpenVinoOptions",
    "Options",
    "QualcommOptions",
    "TensorBuffer",
]

UNNAMED = "<placeholder signature>"
"""The key of the signature that a model without one gets."""

HOST_MEMORY = 1
"""The type of all buffers, by its number in LiteRT."""

INVALID_ARGUMENT, RUNTIME_FAILURE, NOT_FOUND, INDEX_OUT_OF_RANGE = 1, 3, 6, 1000
"""LiteRT's codes of errors."""

_RESOLVERS = {
    None: OpResolverType.AUTO,
    CpuKernelMode.DELEGATE: OpResolverType.AUTO,
    CpuKernelMode.REFERENCE: OpResolverType.BUILTIN_REF,
    CpuKernelMode.BUILTIN: OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
}


class _Signature(NamedTuple):
    key: str
    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


class CompiledModel:
    """A model, and its signatures by their keys or by their places in the file; made by `from_file` or `from_buffer`.

    What cannot be done raises `CompiledModelError`, a `RuntimeError`, with LiteRT's code and words.
    """

    def __init__(self, interpreter: Interpreter, environment: Environment) -> None:
        self._model: Interpreter | None = interpreter
        self._environment = environment
        self._signatures = _signatures(interpreter)

    def __repr__(self) -> str:
        """What goes in and out: ``<CompiledModel of m.tflite: x float32[1, 4] -> y float32[1, 2]>``."""
        name = type(self).__name__
        if self._model is None:
            return f"<{name}: closed>"
        return repr(self._model).replace(type(self._model).__name__, name, 1).rpartition(", ")[0] + ">"

    @classmethod
    def from_file(
        cls,
        model_path: str | os.PathLike[str],
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> CompiledModel:
        """The model of a file. ``hardware_accel``: short for options that have this one, and one thread.

        Raises `ValueError` for both of them and for an environment that is closed.
        """
        return cls._made({"model_path": model_path}, "file", hardware_accel, environment, options)

    @classmethod
    def from_buffer(
        cls,
        model_data: Any,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> CompiledModel:
        """The model in a buffer; otherwise as `from_file`."""
        return cls._made({"model_content": model_data}, "buffer", hardware_accel, environment, options)

    @classmethod
    def _made(
        cls,
        source: Mapping[str, Any],
        what: str,
        hardware_accel: HardwareAccelerator | None,
        environment: Environment | None,
        options: Options | None,
    ) -> CompiledModel:
        environment = environment or Environment.create()
        if options is not None and hardware_accel is not None:
            raise ValueError("Pass either options or hardware_accel, not both.")
        if options is None:
            options = Options(HardwareAccelerator.CPU if hardware_accel is None else hardware_accel)
        _ = environment.capsule
        if not options.hardware_accelerators:
            raise CompiledModelError("No acceleration provided.")
        if not options.hardware_accelerators & HardwareAccelerator.CPU:
            raise CompiledModelError(
                "Some ops are not accelerated. Add kLiteRtHwAcceleratorCpu to the compilation accelerator set to allow "
                "using the CPU to run those: there are no kernels for anything else here."
            )
        cpu = options.cpu_options
        try:
            interpreter = Interpreter(
                **source,
                num_threads=max(cpu.num_threads, 1),
                experimental_op_resolver_type=_RESOLVERS[cpu.kernel_mode],
            )
        except ValueError as error:
            raise CompiledModelError(f"Failed to load model from {what}\n└ {error}") from error
        return cls(interpreter, environment)

    def __enter__(self) -> CompiledModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the model. Nothing can be done with it after that."""
        self._model = None

    @property
    def environment(self) -> Environment:
        """The one that it was made with."""
        return self._environment

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """``{key: {"inputs": [names], "outputs": [names]}}``."""
        return {
            signature.key: {"inputs": list(signature.inputs), "outputs": list(signature.outputs)}
            for signature in self._signatures
        }

    def get_signature_by_index(self, index: int) -> dict[str, Any]:
        """The ``key`` of a signature, and the names of its ``inputs`` and ``outputs``."""
        signature = self._at(index)
        return {"key": signature.key, "inputs": list(signature.inputs), "outputs": list(signature.outputs)}

    def get_num_signatures(self) -> int:
        """How many there are: at least one."""
        return len(self._signatures)

    def get_signature_index(self, key: str) -> int:
        """The place of a signature, -1 if there is none."""
        return next((at for at, signature in enumerate(self._signatures) if signature.key == key), -1)

    def get_input_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """By the names of the inputs: ``name`` and ``index`` of the tensor, ``dtype`` by name, ``shape`` as it is
        now."""
        signature = self._named(signature_key)
        return {name: self._details(signature, index) for name, index in signature.inputs.items()}

    def get_output_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """The same of the outputs."""
        signature = self._named(signature_key)
        return {name: self._details(signature, index) for name, index in signature.outputs.items()}

    def get_input_buffer_requirements(self, input_index: int, signature_index: int = 0) -> dict[str, Any]:
        """``buffer_size`` in bytes, and ``supported_types``: host memory."""
        signature = self._at(signature_index)
        return self._requirements(signature, _pick(signature.inputs, input_index, "Input"))

    def get_output_buffer_requirements(self, output_index: int, signature_index: int = 0) -> dict[str, Any]:
        """The same of an output."""
        signature = self._at(signature_index)
        return self._requirements(signature, _pick(signature.outputs, output_index, "Output"))

    def is_fully_accelerated(self) -> bool:
        """Whether what was asked for runs all of it: the CPU does."""
        return self._open() is not None

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """A buffer for an input, as large as that is now."""
        signature = self._named(signature_key)
        if input_name not in signature.inputs:
            raise _error(NOT_FOUND, f"Input tensor not found: {input_name}")
        return self._buffer(signature, signature.inputs[input_name])

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """A buffer for an output, as large as that is now."""
        signature = self._named(signature_key)
        if output_name not in signature.outputs:
            raise _error(NOT_FOUND, f"Output tensor not found: {output_name}")
        return self._buffer(signature, signature.outputs[output_name])

    def create_input_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """One for each input."""
        signature = self._at(signature_index)
        return [self._buffer(signature, index) for index in signature.inputs.values()]

    def create_output_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """One for each output."""
        signature = self._at(signature_index)
        return [self._buffer(signature, index) for index in signature.outputs.values()]

    def resize_input_tensor(
        self, input_index: int, dims: Sequence[int], signature_index: int = 0, strict: bool = True
    ) -> None:
        """Give an input another shape. ``strict``: only where the file leaves dimensions open."""
        signature = self._at(signature_index)
        index, shape = _pick(signature.inputs, input_index, "Input"), tuple(int(size) for size in dims)
        if any(size <= 0 for size in shape):
            raise _error(INVALID_ARGUMENT, "Dimensions must be positive.")
        subgraph = self._subgraph(signature)
        subgraph.resize_input(index, shape, strict=strict)
        self._allocate(signature)

    def resize_input_tensor_by_name(
        self, signature_key: str, input_name: str, dims: Sequence[int], strict: bool = True
    ) -> None:
        """The same of an input by name. Raises `ValueError` for names that do not exist."""
        at = self.get_signature_index(signature_key)
        if at < 0:
            raise ValueError(f"Unknown signature: {signature_key}")
        names = list(self._signatures[at].inputs)
        if input_name not in names:
            raise ValueError(f"Unknown input '{input_name}' for signature '{signature_key}'")
        self.resize_input_tensor(names.index(input_name), dims, at, strict)

    def run_by_name(
        self, signature_key: str, input_map: Mapping[str, TensorBuffer], output_map: Mapping[str, TensorBuffer]
    ) -> None:
        """Run a signature on buffers by the names of its inputs and outputs; all of them must be there."""
        if self.get_signature_index(signature_key) < 0:
            raise _error(NOT_FOUND, "Failed to get signature_index")
        signature = self._named(signature_key)
        for what, names, given in (("input", signature.inputs, input_map), ("output", signature.outputs, output_map)):
            if not given.keys() >= names.keys():
                raise _error(NOT_FOUND, f"The given map is missing some {what} TensorBuffers: it takes {list(names)}")
        self._run(
            signature,
            [input_map[name].capsule for name in signature.inputs],
            [output_map[name].capsule for name in signature.outputs],
        )

    def run_by_index(
        self, signature_index: int, input_buffers: Sequence[TensorBuffer], output_buffers: Sequence[TensorBuffer]
    ) -> None:
        """Run a signature on buffers in the order of its inputs and outputs."""
        memories = [[buffer.capsule for buffer in buffers] for buffers in (input_buffers, output_buffers)]
        signature = self._at(signature_index)
        declared = ("Input", signature.inputs), ("Output", signature.outputs)
        for (what, names), given in zip(declared, memories, strict=True):
            if len(given) != len(names):
                raise _error(
                    RUNTIME_FAILURE,
                    f"{what} buffer size mismatch: number of {what.lower()}s:{len(names)} vs buffers:{len(given)}",
                )
        self._run(signature, *memories)

    def _run(self, signature: _Signature, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory]) -> None:
        model, subgraph = self._open(), self._subgraph(signature)
        fed = list(zip(signature.inputs.items(), inputs, strict=True))
        for (name, index), memory in fed:
            tensor = subgraph.tensor(index)
            if len(memory.shape) != len(tensor.shape):
                raise _error(
                    RUNTIME_FAILURE,
                    f"Cannot auto-resize tensor {name}: rank mismatch, {list(memory.shape)} and {list(tensor.shape)}",
                )
            if memory.dtype != _name_of(tensor):
                raise _error(RUNTIME_FAILURE, f"tensor {name} is {_name_of(tensor)}, the buffer {memory.dtype}")
            if memory.shape != tensor.shape:
                subgraph.resize_input(index, memory.shape)
        self._allocate(signature)
        for (_, index), memory in fed:
            tensor = subgraph.tensor(index)
            value = memory.content[: tensor.bytes].view(tensor.dtype).reshape(tensor.shape)
            model._set_tensor(index, value, subgraph.index)
        if signature.subgraph:
            with model._invocation(None):
                subgraph.invoke()
        else:
            model.invoke()
        for (name, index), memory in zip(signature.outputs.items(), outputs, strict=True):
            content = np.ascontiguousarray(model.get_tensor(index, subgraph.index)).reshape(-1).view(np.uint8)
            if content.size > memory.content.size:
                raise _error(
                    RUNTIME_FAILURE, f"output {name} has {content.size} bytes, its buffer {memory.content.size}"
                )
            memory.content[: content.size] = content

    def _open(self) -> Interpreter:
        if self._model is None:
            raise CompiledModelError("the model is closed")
        return self._model

    def _at(self, index: int) -> _Signature:
        self._open()
        if not 0 <= index < len(self._signatures):
            raise _error(INDEX_OUT_OF_RANGE, "Signature index is out of range of signature keys")
        return self._signatures[index]

    def _named(self, key: str) -> _Signature:
        self._open()
        at = self.get_signature_index(key)
        if at < 0:
            raise _error(NOT_FOUND, f"Signature not found: {key}")
        return self._signatures[at]

    def _subgraph(self, signature: _Signature) -> Subgraph:
        return self._open()._subgraph(signature.subgraph)

    def _allocate(self, signature: _Signature) -> None:
        if signature.subgraph:
            self._subgraph(signature).allocate_tensors()
        else:
            self._open().allocate_tensors()

    def _tensor(self, signature: _Signature, index: int) -> Tensor:
        return self._subgraph(signature).tensor(index)

    def _details(self, signature: _Signature, index: int) -> dict[str, Any]:
        tensor = self._tensor(signature, index)
        return {"name": tensor.name, "index": index, "dtype": _name_of(tensor), "shape": list(tensor.shape)}

    def _requirements(self, signature: _Signature, index: int) -> dict[str, Any]:
        return {"buffer_size": self._tensor(signature, index).bytes, "supported_types": [HOST_MEMORY]}

    def _buffer(self, signature: _Signature, index: int) -> TensorBuffer:
        tensor = self._tensor(signature, index)
        if tensor.has_objects:
            raise _error(RUNTIME_FAILURE, f'there are no buffers for "{tensor.name}", which holds strings')
        memory = HostMemory(arenas.aligned_memory(tensor.bytes), _name_of(tensor), tensor.shape)
        return TensorBuffer(memory, self._environment)


def _signatures(interpreter: Interpreter) -> list[_Signature]:
    stored = interpreter.model.signatures
    if stored:
        return [
            _Signature(
                key,
                signature.subgraph_index,
                {entry.name: entry.tensor_index for entry in signature.inputs},
                {entry.name: entry.tensor_index for entry in signature.outputs},
            )
            for key, signature in stored.items()
        ]
    graph = interpreter.model.subgraphs[0]
    inputs, outputs = (
        {graph.tensors[index].name: index for index in indices if index >= 0}
        for indices in (graph.inputs, graph.outputs)
    )
    return [_Signature(UNNAMED, 0, inputs, outputs)]


def _name_of(tensor: Tensor) -> str:
    return "unknown" if tensor.has_objects else str(tensor.dtype)


def _pick(tensors: Mapping[str, int], at: int, what: str) -> int:
    if not 0 <= at < len(tensors):
        raise _error(INDEX_OUT_OF_RANGE, f"{what} index out of range")
    return list(tensors.values())[at]


def _error(code: int, message: str) -> CompiledModelError:
    return CompiledModelError(f"CompiledModel error: code={code}, message={message}")
