"""The Python API of TFLite Micro, ``tflite_micro.runtime``, on this interpreter.

What is wrong raises what it raises there: `ValueError` or `IndexError` for a call that cannot be right, and for a model
that does not run an error that is also a `RuntimeError`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gossamer.arrays import NDArray
from gossamer.errors import RegistererError
from gossamer.micro.abi import abi
from gossamer.micro.allocator import MicroAllocator, RecordingMicroAllocator
from gossamer.micro.interpreter import MicroInterpreter
from gossamer.micro.kernels.kernel import MicroKernel
from gossamer.micro.report import count_resource_variables
from gossamer.micro.resolver import MicroMutableOpResolver, MicroOpResolver, all_ops
from gossamer.micro.resource_variables import MicroResourceVariables
from gossamer.micro.tensor import EvalTensor
from gossamer.model import read_model
from gossamer.planner.linear import LinearMemoryPlanner

OK, ABORT = 0, 15
"""The statuses kTfLiteOk and kTfLiteAbort."""

MODEL_SIZES = 10
"""Without a size an arena is so many times as large as the model."""


class InterpreterConfig(Enum):
    """Record what the arena is used for, or keep every tensor so that `Interpreter.GetTensor` can read it."""

    kAllocationRecording = 0
    kPreserveAllTensors = 1


class Interpreter:
    """A model that is ready to run, in an arena of ``arena_size`` bytes; by default 10 times the size of the model.

    ``custom_op_registerers`` are kernels of operators that do not ship; the names that TFLite Micro's runtime takes
    there are those of C++ functions, which this one has none of. ``alt_decompression_memory_size`` is how many bytes
    there are besides the arena for tensors that are decompressed, which this runtime, as TFLite Micro's, is built for.
    ``pointer_size`` is that of the device; TFLite Micro's own runtime has that of the PC, 8.

    Raises `ValueError` for arguments that are not of these kinds, `RegistererError` for a name, `ModelError` for a
    damaged model, `PrepareError` if an operator refuses, and `ArenaError`, which says how much is missing, if the arena
    is too small.
    """

    def __init__(
        self,
        model_data: bytes | bytearray | memoryview,
        custom_op_registerers: Sequence[MicroKernel | str] = (),
        arena_size: int | None = None,
        intrepreter_config: InterpreterConfig = InterpreterConfig.kAllocationRecording,
        alt_decompression_memory_size: int = 0,
        *,
        pointer_size: int = 8,
    ) -> None:
        if model_data is None:
            raise ValueError("Model must not be None")
        custom_ops = _checked(custom_op_registerers)
        size = len(model_data) * MODEL_SIZES if arena_size is None else arena_size
        self.recording: RecordingMicroAllocator | None = None
        if intrepreter_config is InterpreterConfig.kAllocationRecording:
            allocator: MicroAllocator = RecordingMicroAllocator(size, abi=abi(pointer_size, compression=True))
            self.recording = allocator  # type: ignore[assignment]
        else:
            allocator = MicroAllocator(size, abi=abi(pointer_size, compression=True), planner=LinearMemoryPlanner())
        model = read_model(model_data)
        count = count_resource_variables(model)
        self.interpreter = MicroInterpreter(
            model,
            _resolver(custom_ops),
            allocator,
            resource_variables=MicroResourceVariables(allocator, count) if count else 0,
            decompression_memory=alt_decompression_memory_size,
        )
        self.interpreter.allocate_tensors()

    @classmethod
    def from_file(cls, model_path: str | os.PathLike[str], *arguments: Any, **named: Any) -> Interpreter:
        """The model of a .tflite file; the other arguments are those of the class."""
        if model_path is None or not os.path.isfile(model_path):
            raise ValueError("Invalid model file path")
        with open(model_path, "rb") as file:
            return cls(file.read(), *arguments, **named)

    @classmethod
    def from_bytes(cls, model_data: bytes | bytearray | memoryview, *arguments: Any, **named: Any) -> Interpreter:
        """The model in a buffer; the other arguments are those of the class."""
        return cls(model_data, *arguments, **named)

    def print_allocations(self) -> None:
        """Write to stderr what the arena is used for. Raises `ValueError` if nothing was recorded."""
        if self.recording is None:
            raise ValueError("Cannot print allocations as they were not recorded")
        sys.stderr.write("\n".join([*self.recording.log(), ""]))

    def invoke(self) -> int:
        """Run the model. Returns 0 for success, or 15 if CIRCULAR_BUFFER stopped it. Raises `InvokeError`."""
        return OK if self.interpreter.invoke() else ABORT

    def reset(self) -> int:
        """Bring a model with state to where it was at first. Returns 0, the status of success."""
        self.interpreter.reset()
        return OK

    def set_input(self, input_data: ArrayLike, index: int) -> None:
        """Copy a value into an input, by its place in the model's list of inputs.

        Raises `ValueError` for another type or shape, and `IndexError` for an input that does not exist.
        """
        if input_data is None:
            raise ValueError("Input data must not be None")
        tensor, value = self._operand(self.interpreter.input, index), np.asarray(input_data)
        if value.dtype != tensor.dtype:
            raise ValueError(
                f"Cannot set tensor: Got value of type {value.dtype} but expected type {tensor.dtype} for input {index}"
            )
        if value.shape != tensor.shape:
            raise ValueError(
                f"Cannot set tensor: Dimension mismatch. Got {list(value.shape)} but expected {list(tensor.shape)} "
                f"for input {index}"
            )
        tensor.store(value)

    def get_output(self, index: int) -> NDArray[Any]:
        """A copy of an output, by its place in the model's list of outputs. Raises `IndexError` if there are fewer."""
        return self._operand(self.interpreter.output, index).array().copy()

    def GetTensor(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        """Type, shape and a copy of the value of any tensor. Raises `InvokeError` unless all are preserved."""
        tensor = self.interpreter.tensor(tensor_index, subgraph_index)
        return {"dtype": tensor.dtype.type, "shape": _shape(tensor), "tensor_data": tensor.array().copy()}

    def get_input_details(self, index: int) -> dict[str, Any]:
        """Its ``dtype``, ``shape`` and ``quantization_parameters``: scales, zero points and quantized dimension."""
        return _details(self._operand(self.interpreter.input, index))

    def get_output_details(self, index: int) -> dict[str, Any]:
        """The same of an output."""
        return _details(self._operand(self.interpreter.output, index))

    @staticmethod
    def _operand(find: Any, index: int) -> EvalTensor:
        if index is None or index < 0:
            raise ValueError("Index must be a non-negative integer")
        try:
            tensor: EvalTensor = find(index)
        except RuntimeError as error:
            raise IndexError(f"Tensor is out of bound, please check tensor index. {error}") from None
        return tensor


def _checked(registerers: Sequence[MicroKernel | str]) -> list[MicroKernel]:
    listed = [] if isinstance(registerers, str) else list(registerers)
    if isinstance(registerers, str) or not all(isinstance(one, MicroKernel | str) for one in listed):
        raise ValueError(
            f"Custom ops registerers must be a list of strings, or here of MicroKernel records; got {registerers!r}"
        )
    for name in listed:
        if isinstance(name, str):
            raise RegistererError(
                f"TFLM could not register custom op via {name}: it names a function of a C++ library; here a custom "
                "operator is a MicroKernel"
            )
    return [kernel for kernel in listed if isinstance(kernel, MicroKernel)]


def _resolver(custom_ops: Sequence[MicroKernel]) -> MicroOpResolver:
    if not custom_ops:
        return MicroOpResolver()
    shipped = [name for name in all_ops() if name not in {kernel.name for kernel in custom_ops}]
    return MicroMutableOpResolver(len(shipped) + len(custom_ops), [*shipped, *custom_ops])


def _shape(tensor: EvalTensor) -> NDArray[np.int32]:
    return np.array(tensor.shape, np.int32)


def _details(tensor: EvalTensor) -> dict[str, Any]:
    known = tensor.scale_count > 0
    quantization = tensor.quantization
    scales = quantization.scales if known else np.empty(0, np.float32)
    zero_points = quantization.zero_points if known else np.empty(0, np.int32)
    return {
        "dtype": tensor.dtype.type,
        "shape": _shape(tensor),
        "quantization_parameters": {
            "scales": np.array(scales, np.float32),
            "zero_points": np.array(zero_points, np.int32),
            "quantized_dimension": quantization.dimension if known else 0,
        },
    }
