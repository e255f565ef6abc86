"""Small models for the tests of the tools, each with an answer that one can work out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.model import read_model
from gossamer.model.metadata import append_files, with_min_runtime_version, with_model_metadata
from gossamer.model.writer import write_model
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    ArgMaxOptions,
    Conv2DOptions,
    QuantizationParameters,
    ReducerOptions,
    SoftmaxOptions,
    SVDFOptions,
    TensorType,
)
from gossamer.schema.flexbuffers import dumps
from gossamer.schema.metadata import (
    AssociatedFile,
    AssociatedFileType,
    AudioProperties,
    Content,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    SubGraphMetadata,
    TensorMetadata,
)
from tests.runtime.graphs import ModelMaker

FLOAT, UINT8, INT8 = TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8


def quantization(scale: float, zero_point: int) -> QuantizationParameters:
    """One scale and zero point for a tensor."""
    return QuantizationParameters(scale=np.array([scale], np.float32), zero_point=np.array([zero_point], np.int64))


def echo(shape: Sequence[int], type: TensorType = FLOAT, name: str = "x", **fields: Any) -> bytes:
    """A model whose output is its input: what comes out is what a tool put in."""
    make = ModelMaker()
    x = make.tensor(shape, type, name=name, **fields)
    make.io([x], [x])
    return make.model()


def colors(type: TensorType = UINT8, stored: QuantizationParameters | None = None) -> bytes:
    """Which of red, green and blue a picture [1, 4, 6, 3] has most of: SOFTMAX of 4 times the mean of each."""
    make = ModelMaker()
    fields = {} if stored is None else {"quantization": stored}
    image = make.tensor((1, 4, 6, 3), type, name="image", **fields)
    real = image
    if type != FLOAT:
        real = make.tensor((1, 4, 6, 3), name="real")
        make.op("DEQUANTIZE", [image], [real], version=2 if type == INT8 else 1)
    axes = make.constant([1, 2], np.int32, TensorType.INT32, name="axes")
    mean, scores = make.tensor((1, 3), name="mean"), make.tensor((1, 3), name="scores")
    make.op("MEAN", [real, axes], [mean], ReducerOptions(keep_dims=False))
    make.op("SOFTMAX", [mean], [scores], SoftmaxOptions(beta=4.0))
    make.io([image], [scores])
    make.signature("serving_default", {"picture": image}, {"probabilities": scores})
    return make.model()


def color_mask() -> bytes:
    """The color that each pixel of a picture [1, 4, 6, 3] has most of: ARG_MAX, int64 [1, 4, 6]."""
    make = ModelMaker()
    image = make.tensor((1, 4, 6, 3), UINT8, name="image", quantization=quantization(1 / 255, 0))
    axis = make.constant(3, np.int32, TensorType.INT32, name="axis")
    mask = make.tensor((1, 4, 6), TensorType.INT64, name="mask")
    make.op("ARG_MAX", [image, axis], [mask], ArgMaxOptions(output_type=TensorType.INT64))
    make.io([image], [mask])
    return make.model()


def says(outputs: dict[str, Any], size: tuple[int, int] = (4, 6), type: TensorType = UINT8) -> bytes:
    """A model that takes a picture of a size and always gives these float32 outputs."""
    make = ModelMaker()
    fields = {"quantization": quantization(1 / 255, 0)} if type == UINT8 else {}
    image = make.tensor((1, *size, 3), type, name="image", **fields)
    constants = [make.constant(value, np.float32, FLOAT, name=name) for name, value in outputs.items()]
    make.io([image], constants)
    return make.model()


def addition() -> bytes:
    """sum = a + b of float32 [n, 2]; with a signature ``add`` that calls them left, right and total."""
    make = ModelMaker()
    a = make.tensor((1, 2), name="a", shape_signature=(-1, 2))
    b = make.tensor((1, 2), name="b", shape_signature=(-1, 2))
    c = make.tensor((1, 2), name="sum", shape_signature=(-1, 2))
    make.op("ADD", [a, b], [c], AddOptions())
    make.io([a, b], [c])
    make.signature("add", {"left": a, "right": b}, {"total": c})
    return make.model()


def convolution() -> bytes:
    """y = relu(conv(x)) + rotated: nodes CONV_2D, aeq.hadamard_rotation (which has no machine code) and ADD of
    [1, 4, 4, 8]."""
    make = ModelMaker()
    x = make.tensor((1, 4, 4, 3), name="x")
    weights = make.constant(np.ones((8, 3, 3, 3)), np.float32, FLOAT, name="weights")
    bias = make.constant(np.zeros(8), np.float32, FLOAT, name="bias")
    numbers = make.constant(np.ones((4, 4, 8)), np.float32, FLOAT, name="numbers")
    a, rotated, y = make.tensor((1, 4, 4, 8), name="a"), make.tensor((4, 4, 8)), make.tensor((1, 4, 4, 8), name="y")
    relu = ActivationFunctionType.RELU
    make.op("CONV_2D", [x, weights, bias], [a], Conv2DOptions(stride_w=1, stride_h=1, fused_activation_function=relu))
    size = dumps({"hadamard_size": 8})
    make.op("aeq.hadamard_rotation", [numbers], [rotated], custom=True, custom_options=size)
    make.op("ADD", [a, rotated], [y], AddOptions())
    make.io([x], [y])
    return make.model()


def memory() -> bytes:
    """A model that adds to a sample the one before it, which it remembers: SVDF of rank 1 with a memory of 2."""
    make = ModelMaker()
    sample, total = make.tensor((1, 1), name="sample"), make.tensor((1, 1), name="total")
    feature = make.constant([[1.0]], np.float32, FLOAT, name="feature")
    time = make.constant([[1.0, 1.0]], np.float32, FLOAT, name="time")
    state = make.tensor((1, 2), name="state", is_variable=True)
    make.op("SVDF", [sample, feature, time, -1, state], [total], SVDFOptions(rank=1))
    make.io([sample], [total])
    return make.model()


def described(
    model: bytes,
    labels: Sequence[str] = (),
    normalization: tuple[Sequence[float], Sequence[float]] | None = None,
    rate: int = 0,
    output_names: Sequence[str] = (),
) -> bytes:
    """A model with metadata, and its labels appended as ``labels.txt``."""
    units: tuple[ProcessUnit, ...] = ()
    if normalization is not None:
        mean, std = (np.array(values, np.float32) for values in normalization)
        units = (ProcessUnit(options=NormalizationOptions(mean=mean, std=std)),)
    content: dict[str, Any] = {"content": Content(content_properties=AudioProperties(sample_rate=rate))} if rate else {}
    files = (AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS),) if labels else ()
    outputs = tuple(TensorMetadata(name=name) for name in output_names) or (TensorMetadata(associated_files=files),)
    metadata = ModelMetadata(
        name="test model",
        author="somebody",
        subgraph_metadata=(
            SubGraphMetadata(
                input_tensor_metadata=(TensorMetadata(name="input", process_units=units, **content),),
                output_tensor_metadata=outputs,
            ),
        ),
    )
    content_of_file = write_model(with_min_runtime_version(with_model_metadata(read_model(model), metadata), "2.3.0"))
    if not labels:
        return content_of_file
    return append_files(content_of_file, {"labels.txt": "".join(f"{label}\n" for label in labels).encode()})
