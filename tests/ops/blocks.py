"""Models of one operator whose constant input is quantized in blocks, with scales in a tensor of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.ops.op_def import OpDef
from gossamer.schema import BlockwiseQuantization, Buffer, QuantizationParameters, Tensor, TensorType
from tests.ops.cases import Case, model_of

_TYPES = {"float16": TensorType.FLOAT16, "float32": TensorType.FLOAT32, "int32": TensorType.INT32}


def model_in_blocks(
    op: OpDef,
    case: Case,
    size: int,
    scales: NDArray[Any],
    zero_points: Sequence[int] = (),
    *,
    dimension: int = 0,
    position: int = 1,
    stored: bool = True,
) -> bytes:
    """The model of a case whose input at a position has these scales, stored in the file or not."""
    model = read_model(model_of(op, case))
    (graph,) = model.subgraphs
    tensors, buffers = list(graph.tensors), list(model.buffers)
    numbers = []
    for values in (scales, np.array(zero_points, np.int32)):
        numbers.append(len(tensors) if values.size else -1)
        if values.size:
            data = len(buffers) * stored
            tensors.append(Tensor(name="of_blocks", shape=values.shape, type=_TYPES[values.dtype.name], buffer=data))
            buffers.append(Buffer(data=np.frombuffer(values.tobytes(), np.uint8)))
    quantization = QuantizationParameters(
        quantized_dimension=dimension,
        details=BlockwiseQuantization(scales=numbers[0], zero_points=numbers[1], block_size=size),
    )
    at = graph.operators[0].inputs[position]
    tensors[at] = tensors[at].replace(quantization=quantization)
    changed = graph.replace(tensors=tuple(tensors))
    return write_model(model.replace(subgraphs=(changed,), buffers=tuple(buffers)))


def run_model(interpreter: Any, *inputs: ArrayLike) -> NDArray[Any]:
    """The first output for these inputs."""
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], np.asarray(value, details["dtype"]))
    interpreter.invoke()
    output: NDArray[Any] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return output
