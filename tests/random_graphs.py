"""Models that nobody has drawn up: a few operators at random, of random shapes, windows, types and fusions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    Padding,
    Pool2DOptions,
    QuantizationParameters,
    ReducerOptions,
    SoftmaxOptions,
    SubOptions,
    Table,
    TensorType,
)
from tests.runtime.graphs import ModelMaker

Form = Literal["float", "int8", "uint8", "int16", "dynamic"]
FORMS: tuple[Form, ...] = ("float", "int8", "uint8", "int16", "dynamic")

_TYPES = {
    "float": TensorType.FLOAT32,
    "int8": TensorType.INT8,
    "uint8": TensorType.UINT8,
    "int16": TensorType.INT16,
    "dynamic": TensorType.FLOAT32,
}
_NONE = ActivationFunctionType.NONE
_ACTIVATIONS = (_NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6)
_UNARY = {
    "float": ("RELU", "RELU6", "HARD_SWISH", "LOGISTIC", "TANH", "GELU", "ABS", "EXP", "SQRT", "ELU", "NEG"),
    "int8": ("HARD_SWISH", "LOGISTIC", "TANH", "RELU", "GELU"),
    "uint8": ("HARD_SWISH", "LOGISTIC", "TANH"),
    "int16": ("LOGISTIC", "TANH"),
}


class RandomGraph:
    """A model of ``count`` random operators in a form. Images are small; every node can be machine code."""

    def __init__(self, seed: int, form: Form, count: int = 4) -> None:
        self.rng = np.random.default_rng((seed, FORMS.index(form)))
        self.form: Form = form
        self.type = _TYPES[form]
        self.make = ModelMaker()
        self.shape: tuple[int, ...] = (
            int(self.rng.integers(1, 3)),
            *(int(size) for size in self.rng.integers(1, 20, 2)),
            int(self.rng.choice([1, 2, 3, 4, 7, 8, 9, 16, 17, 24, 32, 33, 48, 64, 72])),
        )
        self.input_shape = self.shape
        self.quantization: QuantizationParameters | None = self._quantized()
        first = self.at = self.make.tensor(self.shape, self.type, quantization=self.quantization)
        steps: list[Callable[[], None]] = [
            *(self._convolution, self._convolution, self._depthwise, self._binary, self._binary, self._unary),
            *(self._pool, self._connected, self._concatenation, self._mean, self._softmax, self._pad),
        ]
        for _ in range(count):
            self.rng.choice(np.array(steps, object))()
        self.make.io([first], [self.at])

    def model(self) -> bytes:
        """The model file."""
        return self.make.model()

    def input(self) -> np.ndarray:
        """Something to run it on."""
        if self.type == TensorType.FLOAT32:
            return self.rng.standard_normal(self.input_shape).astype(np.float32)
        dtype = np.dtype(self.type.name.lower())
        least = max(int(np.iinfo(dtype).min), -32767)
        return self.rng.integers(least, int(np.iinfo(dtype).max), self.input_shape, dtype, endpoint=True)

    def _quantized(self, scale: float | None = None) -> QuantizationParameters | None:
        if self.type == TensorType.FLOAT32:
            return None
        zero = {"int8": int(self.rng.choice([-128, -3, 5])), "uint8": int(self.rng.choice([0, 120, 128])), "int16": 0}
        return _parameters([self.rng.uniform(0.01, 0.05) if scale is None else scale], [zero[self.form]])

    def _scale(self) -> float:
        assert self.quantization is not None
        return float(self.quantization.scale[0])

    def _put(
        self,
        name: str,
        inputs: list[int],
        shape: tuple[int, ...],
        options: Table | None = None,
        quantization: QuantizationParameters | None = None,
        version: int = 1,
    ) -> None:
        if self.type != TensorType.FLOAT32 and quantization is None:
            quantization = self._quantized()
        y = self.make.tensor(shape, self.type, quantization=quantization)
        self.make.op(name, inputs, [y], options, version)
        self.at, self.shape, self.quantization = y, shape, quantization

    def _weights(self, shape: tuple[int, ...], dimension: int) -> list[int]:
        """Of a product, and a bias."""
        channels = shape[dimension]
        if self.form == "float" or (self.form == "dynamic" and dimension == 3):
            values = self.rng.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(np.prod(shape)))
            weights = self.make.constant(values, np.float32, TensorType.FLOAT32)
        elif self.form == "uint8":
            bytes = self.rng.integers(0, 255, shape, np.uint8, endpoint=True)
            zero = int(self.rng.choice([110, 128]))
            weights = self.make.constant(bytes, np.uint8, TensorType.UINT8, quantization=_parameters([0.004], [zero]))
        else:
            bytes = self.rng.integers(-127, 127, shape, np.int8, endpoint=True)
            several = channels if self.rng.integers(2) else 1
            parameters = _parameters(self.rng.uniform(0.002, 0.01, several).tolist(), [0] * several, dimension)
            weights = self.make.constant(bytes, np.int8, TensorType.INT8, quantization=parameters)
        if self.type == TensorType.FLOAT32:
            bias = self.make.constant(self.rng.standard_normal(channels), np.float32, TensorType.FLOAT32)
        else:
            scales = self.make.graphs[-1].tensors[weights].quantization.scale * np.float32(self._scale())
            wide = self.form == "int16"
            bias = self.make.constant(
                self.rng.integers(-2000, 2000, channels),
                np.int64 if wide else np.int32,
                TensorType.INT64 if wide else TensorType.INT32,
                quantization=_parameters(scales.tolist(), [0] * len(scales)),
            )
        return [weights, bias]

    def _window(self) -> tuple[list[int], list[int], list[int], Padding]:
        """A kernel, strides, dilations that fit the image, and a padding."""
        kernel = [int(size) for size in self.rng.choice([1, 1, 2, 3, 3, 3, 4, 5, 7], 2)]
        stride = [int(self.rng.choice([1, 1, 2, 3]))] * 2
        dilation = [1, 1] if max(stride) > 1 else [int(self.rng.choice([1, 1, 1, 2]))] * 2
        fits = all((k - 1) * d < n for k, d, n in zip(kernel, dilation, self.shape[1:3], strict=True))
        return kernel, stride, dilation, Padding.SAME if not fits or self.rng.integers(2) else Padding.VALID

    def _output(self, kernel: list[int], stride: list[int], dilation: list[int], padding: Padding) -> tuple[int, int]:
        spans = [(k - 1) * d if padding == Padding.VALID else 0 for k, d in zip(kernel, dilation, strict=True)]
        rows, columns = (-(-(n - span) // s) for n, span, s in zip(self.shape[1:3], spans, stride, strict=True))
        return rows, columns

    def _activation(self) -> ActivationFunctionType:
        return ActivationFunctionType(_ACTIVATIONS[int(self.rng.integers(3))])

    def _wide(self) -> QuantizationParameters | None:
        """For sums of many products."""
        return self._quantized(0.5) if self.type != TensorType.FLOAT32 else None

    def _convolution(self) -> None:
        channels = int(self.rng.choice([1, 2, 3, 5, 8, 10, 16, 17, 24, 31, 32, 40, 64, 100]))
        window = self._window()
        kernel, stride, dilation, padding = window
        options = Conv2DOptions(
            padding=padding,
            stride_h=stride[0],
            stride_w=stride[1],
            dilation_h_factor=dilation[0],
            dilation_w_factor=dilation[1],
            fused_activation_function=self._activation(),
        )
        operands = [self.at, *self._weights((channels, *kernel, self.shape[3]), 0)]
        self._put("CONV_2D", operands, (self.shape[0], *self._output(*window), channels), options, self._wide(), 5)

    def _depthwise(self) -> None:
        multiplier = int(self.rng.choice([1, 1, 1, 2, 3, 5]))
        channels = multiplier * self.shape[3]
        window = self._window()
        kernel, stride, dilation, padding = window
        options = DepthwiseConv2DOptions(
            padding=padding,
            stride_h=stride[0],
            stride_w=stride[1],
            dilation_h_factor=dilation[0],
            dilation_w_factor=dilation[1],
            depth_multiplier=multiplier,
            fused_activation_function=self._activation(),
        )
        operands = [self.at, *self._weights((1, *kernel, channels), 3)]
        shape = (self.shape[0], *self._output(*window), channels)
        self._put("DEPTHWISE_CONV_2D", operands, shape, options, self._wide(), 5)

    def _connected(self) -> None:
        channels = int(self.rng.choice([1, 3, 8, 10, 16, 33, 64, 130]))
        options = FullyConnectedOptions(keep_num_dims=True, fused_activation_function=self._activation())
        operands = [self.at, *self._weights((channels, self.shape[3]), 0)]
        self._put("FULLY_CONNECTED", operands, (*self.shape[:3], channels), options, self._wide(), 5)

    def _binary(self) -> None:
        name = str(self.rng.choice(["ADD", "SUB", "MUL"]))
        options = {"ADD": AddOptions, "SUB": SubOptions, "MUL": MulOptions}[name](
            fused_activation_function=self._activation()
        )
        shape = self.shape if self.rng.integers(2) else (1, 1, 1, self.shape[3])
        if self.rng.integers(3) == 0 and shape == self.shape:
            other = self.at
        elif self.type == TensorType.FLOAT32:
            other = self.make.constant(self.rng.standard_normal(shape), np.float32, TensorType.FLOAT32)
        else:
            dtype = np.dtype(self.type.name.lower())
            values = self.rng.integers(-100 if dtype.kind == "i" else 0, 100, shape)
            other = self.make.constant(values, dtype, self.type, quantization=self._quantized())
        operands = [self.at, other] if self.rng.integers(2) else [other, self.at]
        self._put(name, operands, self.shape, options, version=2)

    def _unary(self) -> None:
        name = str(self.rng.choice(_UNARY["float" if self.form == "dynamic" else self.form]))
        quantization = None
        if self.type != TensorType.FLOAT32 and name in ("LOGISTIC", "TANH"):
            scale, zero = {
                ("int8", "LOGISTIC"): (1 / 256, -128),
                ("int8", "TANH"): (1 / 128, 0),
                ("uint8", "LOGISTIC"): (1 / 256, 0),
                ("uint8", "TANH"): (1 / 128, 128),
            }.get((self.form, name), (1 / 32768, 0))
            quantization = _parameters([scale], [zero])
        version = 3 if self.form == "int16" else 2 if self.type != TensorType.FLOAT32 and name != "HARD_SWISH" else 1
        self._put(name, [self.at], self.shape, None, quantization, version)

    def _pool(self) -> None:
        name = str(self.rng.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))
        kernel, stride, _, padding = self._window()
        if any(k > n for k, n in zip(kernel, self.shape[1:3], strict=True)):
            padding = Padding.SAME
        options = Pool2DOptions(
            padding=padding,
            stride_h=stride[0],
            stride_w=stride[1],
            filter_height=kernel[0],
            filter_width=kernel[1],
            fused_activation_function=self._activation(),
        )
        rows, columns = self._output(kernel, stride, [1, 1], padding)
        shape = (self.shape[0], rows, columns, self.shape[3])
        self._put(name, [self.at], shape, options, self.quantization, 3 if self.form == "int16" else 2)

    def _concatenation(self) -> None:
        first, quantization = self.at, self.quantization
        self._put("MUL", [first, first], self.shape, MulOptions(), quantization, 2)
        shape = (*self.shape[:3], 2 * self.shape[3])
        options = ConcatenationOptions(axis=3)
        self._put("CONCATENATION", [first, self.at], shape, options, quantization, 3 if self.form == "int16" else 2)

    def _mean(self) -> None:
        axes = self.make.constant([1, 2], np.int32, TensorType.INT32)
        shape = (self.shape[0], 1, 1, self.shape[3])
        self._put("MEAN", [self.at, axes], shape, ReducerOptions(keep_dims=True), version=2)

    def _softmax(self) -> None:
        quantization = {
            "int8": _parameters([1 / 256], [-128]),
            "uint8": _parameters([1 / 256], [0]),
            "int16": _parameters([1 / 32768], [0]),
        }.get(self.form)
        self._put("SOFTMAX", [self.at], self.shape, SoftmaxOptions(beta=1.0), quantization, 3)

    def _pad(self) -> None:
        before = [[0, 0], *([int(n) for n in self.rng.integers(0, 3, 2)] for _ in range(2)), [0, 0]]
        sizes = self.make.constant(before, np.int32, TensorType.INT32)
        shape = tuple(n + sum(pair) for n, pair in zip(self.shape, before, strict=True))
        self._put("PAD", [self.at, sizes], shape, None, self.quantization, 2)


def _parameters(scales: list[float], zeros: list[int], dimension: int = 0) -> Any:
    return QuantizationParameters(
        scale=np.array(scales, np.float32), zero_point=np.array(zeros, np.int64), quantized_dimension=dimension
    )
