"""Trains the digit classifier of the examples and writes it: ``digits.tflite``, ``digits_int8.tflite`` and PNG digits.

    python -m pip install ".[examples]"
    python examples/train_digits.py

The data are scikit-learn's 1,797 handwritten digits of 8 x 8 pixels (UCI ML hand-written digits, CC BY 4.0); the last
360, by other writers than the rest, are kept for the test. The network is a 3 x 3 convolution whose filters are the
principal components of image patches and their negatives, max pooling, and a fully connected layer found by logistic
regression, which has one solution: the same files come out on any machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gossamer
from gossamer.model.metadata import append_files, with_min_runtime_version, with_model_metadata
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.schema import (
    ActivationFunctionType,
    Buffer,
    BuiltinOperator,
    Conv2DOptions,
    FullyConnectedOptions,
    Operator,
    OperatorCode,
    Padding,
    Pool2DOptions,
    QuantizationParameters,
    ReshapeOptions,
    SignatureDef,
    SoftmaxOptions,
    SubGraph,
    Table,
    Tensor,
    TensorMap,
    TensorType,
)
from gossamer.schema import metadata as meta

FloatArray = NDArray[np.float32]

COMPONENTS = 6
TEST_IMAGES = 360
LABELS = [str(digit) for digit in range(10)]


@dataclass
class Network:
    """The trained weights. ``filters`` [out, 3, 3, 1], ``weights`` [10, 4 * 4 * out], biases [out] and [10]."""

    filters: FloatArray
    filter_bias: FloatArray
    weights: FloatArray
    bias: FloatArray


def on_grid(values: NDArray[Any], step: float) -> FloatArray:
    """Rounded to multiples of a step, so that the last bits of a solver on some machine do not show in the file."""
    return (np.round(np.asarray(values, np.float64) / step) * step).astype(np.float32)


def hidden(images: NDArray[Any], filters: NDArray[Any], bias: NDArray[Any]) -> NDArray[Any]:
    """Convolution (SAME), ReLU and 2 x 2 max pooling of [n, 8, 8] images: [n, 4 * 4 * out]."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2)).reshape(len(images), 8, 8, 9)
    maps = np.maximum(windows @ filters.reshape(-1, 9).T + bias, 0)
    pooled: NDArray[Any] = maps.reshape(len(images), 4, 2, 4, 2, -1).max(axis=(2, 4)).reshape(len(images), -1)
    return pooled


def train(images: NDArray[np.float64], digits: NDArray[np.int64]) -> Network:
    """Filters from the principal components of patches, the last layer by logistic regression."""
    from sklearn.linear_model import LogisticRegression

    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2)).reshape(-1, 9)
    mean = patches.mean(axis=0)
    variance, components = np.linalg.eigh(np.cov(patches.T))
    strongest = np.argsort(-variance)[:COMPONENTS]
    # An eigenvector is known up to its sign: the largest entry shall be positive.
    largest = components[np.abs(components).argmax(axis=0), np.arange(9)]
    directions = (components * np.sign(largest))[:, strongest] / np.sqrt(variance[strongest])
    filters = on_grid(np.concatenate([directions, -directions], axis=1).T, 2.0**-8)
    filter_bias = on_grid(-(filters @ mean) - 0.25, 2.0**-8)
    features = hidden(images, filters.astype(np.float64), filter_bias.astype(np.float64))
    # Newton's method converges far below the grid, wherever it runs.
    last = LogisticRegression(C=0.3, solver="newton-cholesky", tol=1e-10).fit(features, digits)
    return Network(
        filters.reshape(-1, 3, 3, 1), filter_bias, on_grid(last.coef_, 2.0**-10), on_grid(last.intercept_, 2.0**-10)
    )


class Writer:
    """Collects tensors and operators of the one subgraph."""

    def __init__(self) -> None:
        self.buffers = [Buffer()]
        self.tensors: list[Tensor] = []
        self.codes: list[OperatorCode] = []
        self.operators: list[Operator] = []

    def tensor(self, name: str, shape: Sequence[int], type: TensorType, quantization: Table | None = None) -> int:
        quantized: dict[str, Any] = {} if quantization is None else {"quantization": quantization}
        self.tensors.append(Tensor(name=name, shape=tuple(shape), type=type, **quantized))
        return len(self.tensors) - 1

    def constant(self, name: str, values: NDArray[Any], type: TensorType, quantization: Table | None = None) -> int:
        self.buffers.append(Buffer(data=np.frombuffer(values.tobytes(), np.uint8)))
        index = self.tensor(name, values.shape, type, quantization)
        self.tensors[index] = self.tensors[index].replace(buffer=len(self.buffers) - 1)
        return index

    def op(self, code: BuiltinOperator, version: int, inputs: Sequence[int], output: int, options: Table) -> None:
        self.codes.append(OperatorCode(builtin_code=code, deprecated_builtin_code=int(code), version=version))
        self.operators.append(
            Operator(opcode_index=len(self.codes) - 1, inputs=tuple(inputs), outputs=(output,), builtin_options=options)
        )

    def model(self, image: int, scores: int, description: str) -> Model:
        signature = SignatureDef(
            signature_key="serving_default",
            inputs=(TensorMap(name="image", tensor_index=image),),
            outputs=(TensorMap(name="probabilities", tensor_index=scores),),
        )
        graph = SubGraph(
            name="main",
            tensors=tuple(self.tensors),
            inputs=(image,),
            outputs=(scores,),
            operators=tuple(self.operators),
        )
        return Model(
            version=3,
            operator_codes=tuple(self.codes),
            subgraphs=(graph,),
            description=description,
            buffers=tuple(self.buffers),
            signature_defs=(signature,),
        )


def layers(w: Writer, tensors: dict[str, int], versions: tuple[int, int, int, int, int]) -> None:
    """The five operators, from named tensors."""
    relu, conv, pool, reshape, dense, softmax = ActivationFunctionType.RELU, *versions
    w.op(
        BuiltinOperator.CONV_2D,
        conv,
        [tensors["image"], tensors["filters"], tensors["filter_bias"]],
        tensors["maps"],
        Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1, fused_activation_function=relu),
    )
    w.op(
        BuiltinOperator.MAX_POOL_2D,
        pool,
        [tensors["maps"]],
        tensors["pooled"],
        Pool2DOptions(padding=Padding.VALID, stride_w=2, stride_h=2, filter_width=2, filter_height=2),
    )
    size = w.tensors[tensors["features"]].shape
    w.op(
        BuiltinOperator.RESHAPE,
        reshape,
        [tensors["pooled"], tensors["features_shape"]],
        tensors["features"],
        ReshapeOptions(new_shape=size),
    )
    w.op(
        BuiltinOperator.FULLY_CONNECTED,
        dense,
        [tensors["features"], tensors["weights"], tensors["bias"]],
        tensors["logits"],
        FullyConnectedOptions(),
    )
    w.op(BuiltinOperator.SOFTMAX, softmax, [tensors["logits"]], tensors["probabilities"], SoftmaxOptions(beta=1.0))


def float_model(network: Network) -> Model:
    """The network in float32."""
    w, out = Writer(), len(network.filters)
    f32 = TensorType.FLOAT32
    shape = np.array([1, 16 * out], np.int32)
    tensors = {
        "image": w.tensor("image", (1, 8, 8, 1), f32),
        "filters": w.constant("filters", network.filters, f32),
        "filter_bias": w.constant("filter_bias", network.filter_bias, f32),
        "maps": w.tensor("maps", (1, 8, 8, out), f32),
        "pooled": w.tensor("pooled", (1, 4, 4, out), f32),
        "features_shape": w.constant("features_shape", shape, TensorType.INT32),
        "features": w.tensor("features", (1, 16 * out), f32),
        "weights": w.constant("weights", network.weights, f32),
        "bias": w.constant("bias", network.bias, f32),
        "logits": w.tensor("logits", (1, 10), f32),
        "probabilities": w.tensor("probabilities", (1, 10), f32),
    }
    layers(w, tensors, (1, 1, 1, 1, 1))
    return w.model(tensors["image"], tensors["probabilities"], "Handwritten digits, float32")


def affine(low: float, high: float) -> QuantizationParameters:
    """int8 quantization of a range of real values that includes 0."""
    scale = np.float32((high - low) / 255)
    return _record([scale], [round(-128 - low / float(scale))])


def _record(scales: Sequence[Any], zero_points: Sequence[int], dimension: int = 0) -> QuantizationParameters:
    return QuantizationParameters(
        scale=np.asarray(scales, np.float32),
        zero_point=np.asarray(zero_points, np.int64),
        quantized_dimension=dimension,
    )


def symmetric(values: FloatArray, *, per_channel: bool) -> tuple[NDArray[np.int8], FloatArray]:
    """int8 weights and their scales, one for each index of the first dimension or one for all."""
    axes = tuple(range(1, values.ndim)) if per_channel else None
    scales = np.atleast_1d(np.abs(values).max(axis=axes) / np.float32(127)).astype(np.float32)
    column = scales.reshape(-1, *[1] * (values.ndim - 1)) if per_channel else scales[0]
    return np.clip(np.round(values / column), -127, 127).astype(np.int8), scales


def int8_model(network: Network, images: NDArray[np.float64]) -> Model:
    """The network in int8; the ranges of activations are those that the training images reach."""
    w, out = Writer(), len(network.filters)
    i8, i32 = TensorType.INT8, TensorType.INT32
    features = hidden(images, network.filters.astype(np.float64), network.filter_bias.astype(np.float64))
    logits = features @ network.weights.T.astype(np.float64) + network.bias
    image_q = affine(0, 1)
    hidden_q = affine(0, float(on_grid(features.max(), 2.0**-6)))
    logits_q = affine(float(on_grid(logits.min(), 2.0**-6)), float(on_grid(logits.max(), 2.0**-6)))
    filters, filter_scales = symmetric(network.filters, per_channel=True)
    weights, weight_scales = symmetric(network.weights, per_channel=False)
    filter_bias_scales = image_q.scale[0] * filter_scales
    bias_scale = hidden_q.scale[0] * weight_scales
    tensors = {
        "image": w.tensor("image", (1, 8, 8, 1), i8, image_q),
        "filters": w.constant("filters", filters, i8, _record(filter_scales, [0] * out)),
        "filter_bias": w.constant(
            "filter_bias",
            np.round(network.filter_bias / filter_bias_scales).astype(np.int32),
            i32,
            _record(filter_bias_scales, [0] * out),
        ),
        "maps": w.tensor("maps", (1, 8, 8, out), i8, hidden_q),
        "pooled": w.tensor("pooled", (1, 4, 4, out), i8, hidden_q),
        "features_shape": w.constant("features_shape", np.array([1, 16 * out], np.int32), i32),
        "features": w.tensor("features", (1, 16 * out), i8, hidden_q),
        "weights": w.constant("weights", weights, i8, _record(weight_scales, [0])),
        "bias": w.constant("bias", np.round(network.bias / bias_scale).astype(np.int32), i32, _record(bias_scale, [0])),
        "logits": w.tensor("logits", (1, 10), i8, logits_q),
        "probabilities": w.tensor("probabilities", (1, 10), i8, _record([1 / 256], [-128])),
    }
    layers(w, tensors, (3, 2, 1, 4, 2))
    return w.model(tensors["image"], tensors["probabilities"], "Handwritten digits, int8")


def described(model: Model) -> bytes:
    """The model's bytes with TFLite metadata: how to normalise the image, and the labels, in a file behind it."""
    normalization = meta.ProcessUnit(options=meta.NormalizationOptions(mean=_floats(0), std=_floats(255)))
    image = meta.TensorMetadata(
        name="image",
        description="a grey picture of one digit, bright on dark",
        content=meta.Content(content_properties=meta.ImageProperties(color_space=meta.ColorSpaceType.GRAYSCALE)),
        process_units=(normalization,),
        stats=meta.Stats(min=_floats(0), max=_floats(1)),
    )
    file = meta.AssociatedFile(name="labels.txt", type=meta.AssociatedFileType.TENSOR_AXIS_LABELS)
    scores = meta.TensorMetadata(name="probabilities", associated_files=(file,))
    record = meta.ModelMetadata(
        name="digits",
        description=model.description,
        version="1",
        author="The Gossamer authors",
        license="Apache-2.0",
        subgraph_metadata=(meta.SubGraphMetadata(input_tensor_metadata=(image,), output_tensor_metadata=(scores,)),),
    )
    written = write_model(with_model_metadata(with_min_runtime_version(model, "1.14.0"), record))
    return append_files(written, {"labels.txt": "\n".join(LABELS).encode()})


def _floats(*values: float) -> FloatArray:
    return np.array(values, np.float32)


def accuracy(model: bytes, images: NDArray[np.float64], digits: NDArray[np.int64]) -> float:
    """The share of images whose most probable digit is the right one."""
    interpreter = gossamer.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (image,), (scores,) = interpreter.get_input_details(), interpreter.get_output_details()
    scale, zero_point = image["quantization"]
    right = 0
    for pixels, digit in zip(images, digits, strict=True):
        x = pixels[None, :, :, None].astype(np.float32)
        if image["dtype"] is np.int8:
            x = np.clip(np.round(x / np.float32(scale)) + zero_point, -128, 127).astype(np.int8)
        interpreter.set_tensor(image["index"], x)
        interpreter.invoke()
        right += int(interpreter.get_tensor(scores["index"]).argmax()) == digit
    return right / len(images)


def write_pictures(directory: Path, images: NDArray[np.float64], digits: NDArray[np.int64]) -> None:
    """The first test image of some digits as PNG of 128 x 128 pixels."""
    from PIL import Image

    for digit in (0, 3, 7, 9):
        pixels = np.round(images[np.flatnonzero(digits == digit)[0]] * 255).astype(np.uint8)
        Image.fromarray(np.kron(pixels, np.ones((16, 16), np.uint8))).save(directory / f"digit_{digit}.png")


def main() -> None:
    """Train, write the files, print the test accuracy of both models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="directory for the files")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    from sklearn.datasets import load_digits

    data = load_digits()
    images, digits = data.images / 16.0, data.target
    known, unseen = slice(None, -TEST_IMAGES), slice(-TEST_IMAGES, None)
    network = train(images[known], digits[known])
    models = {"digits.tflite": float_model(network), "digits_int8.tflite": int8_model(network, images[known])}
    for name, model in models.items():
        content = described(model)
        (out / name).write_bytes(content)
        right = accuracy(content, images[unseen], digits[unseen])
        print(f"{name}: {len(content)} bytes, {right:.1%} of {TEST_IMAGES} unseen digits right")
    write_pictures(out, images[unseen], digits[unseen])


if __name__ == "__main__":
    main()
