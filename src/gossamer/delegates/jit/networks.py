"""The networks of `gossamer.codegen.networks` as converters quantise them, by the operators themselves.

Every layer is a TFLite operator that is prepared and lowered as those of models are, so it asks for the same kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import Any, NoReturn

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.build import PASSES, Passes, build
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.networks import HARD_SIGMOID, LOGISTIC, MOST_WEIGHTS, RELU, RELU6, SILU, Network
from gossamer.codegen.spec import KernelSpec
from gossamer.delegates.jit.lowering import Lowered, lower
from gossamer.dtypes import numpy_dtype
from gossamer.errors import PrepareError
from gossamer.ops import find_op
from gossamer.ops.op_def import Array, OpDef, PrepareContext, Shape
from gossamer.quantization import UNQUANTIZED, Quantization, per_tensor
from gossamer.records import record
from gossamer.schema import options as schema
from gossamer.schema.enums import ActivationFunctionType, Padding, TensorType
from gossamer.schema.fields import Table
from gossamer.targets import Target
from gossamer.views import Buffer, View

_VALUES = np.zeros(4 * MOST_WEIGHTS, np.uint8)
_ACTIVATIONS = {
    IDENTITY: ActivationFunctionType.NONE,
    RELU: ActivationFunctionType.RELU,
    RELU6: ActivationFunctionType.RELU6,
}
_FUNCTIONS = {
    "add": "ADD",
    "sub": "SUB",
    "mul": "MUL",
    "sqrdiff": "SQUARED_DIFFERENCE",
    "rsqrt": "RSQRT",
    "hardswish": "HARD_SWISH",
    "logistic": "LOGISTIC",
    "tanh": "TANH",
    "gelu": "GELU",
    "gelutanh": "GELU",
    "relu": "RELU",
    "relu6": "RELU6",
}
_OPTIONS: dict[str, type[Table]] = {"ADD": schema.AddOptions, "SUB": schema.SubOptions, "MUL": schema.MulOptions}

_FINE = per_tensor(1 / 256, -128)
"""What the results of some functions must have."""

SMALL = 1024
"""Elements up to which converters leave weights as they are where they are asked for dynamic ranges."""


class Form(Enum):
    """How a network is quantised: the types of activations, weights and biases.

    ``DYNAMIC``: weights only, `dynamic range quantisation`.
    """

    INT8 = TensorType.INT8, TensorType.INT8, TensorType.INT32
    UINT8 = TensorType.UINT8, TensorType.UINT8, TensorType.INT32
    INT16 = TensorType.INT16, TensorType.INT8, TensorType.INT64
    DYNAMIC = TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32


@record(eq=False)
class _Tensor:
    """See `gossamer.ops.op_def.TensorInfo`."""

    index: int
    type: TensorType
    shape: Shape
    quantization: Quantization
    array: Array | None = None
    is_variable: bool = False
    is_dynamic: bool = False
    sparsity: Table | None = None

    @property
    def name(self) -> str:
        return f"{self.index}"

    @property
    def shape_signature(self) -> Shape:
        return self.shape

    @property
    def is_constant(self) -> bool:
        return self.array is not None

    is_stored = is_constant


class _Node(PrepareContext):
    """An operator, as its prepare and its lowering see it."""

    inputs: Sequence[_Tensor | None]
    outputs: Sequence[_Tensor]
    data: Any = None
    fingerprint = None
    is_prepared = True

    def constant(self, position: int) -> Array | None:
        tensor = self.inputs[position] if position < len(self.inputs) else None
        return None if tensor is None else tensor.array

    def set_shape(self, position: int, shape: Sequence[int]) -> None:
        self.outputs[position].shape = tuple(shape)

    def set_constant(self, position: int, value: Array) -> None:
        self.outputs[position].array = value

    def set_persistent(self, position: int) -> None:
        """Memory is not planned."""

    def temporary(self, tensor_type: TensorType, shape: Sequence[int], *, persistent: bool = False) -> None:
        """Memory is not planned."""

    def propagate_shapes(self) -> None:
        """They are known."""

    def set_dynamic(self, position: int) -> NoReturn:
        raise PrepareError(f"The shape of output {position} is only known when it runs.")

    def subgraph(self, index: int) -> NoReturn:
        raise PrepareError("There are no subgraphs.")

    resources: Any = None


class QuantizedNetwork(Network):
    """A network of quantised operators. Scales and zero points are made up, but those that converters always choose.

    ``clamped``: the range of what activations bound is wider than their bounds, as after training that only pretends to
    be quantised. ``weights_zero``: the zero point of unsigned weights. ``large``: scales of weights.
    """

    def __init__(self, form: Form, *, clamped: bool = False, weights_zero: int = 120, large: bool = False) -> None:
        super().__init__()
        self._weights_zero, self._weights_scale = weights_zero, 50.0 if large else 0.005
        self.type, self._weights_type, self._bias_type = form.value
        self._clamped = clamped
        self._lowered = Lowered(self.graph)
        self._known: dict[int, Quantization] = {}
        self._variables: set[int] = set()
        self._tensors = 10_000

    @property
    def is_dynamic(self) -> bool:
        """Whether only weights are quantised."""
        return self.type == TensorType.FLOAT32

    def input(self, *shape: int, type: TensorType | None = None) -> View:
        """See `Network.input`."""
        return super().input(*shape, type=self.type if type is None else type)

    def variable(self, *shape: int, type: TensorType) -> View:
        """A value that stays from one invocation to the next."""
        view = super().input(*shape, type=type)
        self._variables.add(id(view.buffer))
        return view

    def constant(self, *shape: int) -> View:
        """A constant beside activations: of their type."""
        return self.stored(shape, self.type)

    def stored(self, shape: Shape, type: TensorType) -> View:
        """A constant of any type."""
        dtype = numpy_dtype(type)
        array: NDArray[Any] = _VALUES[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
        return Buffer(shape, type, -1, array).view()

    def output(self, view: View) -> None:
        """See `Network.output`."""
        super().output(view if view.is_whole and view.buffer.tensor < 0 else self.copy(view))

    def quantized(self, view: View, scale: float, zero_point: int = 0) -> View:
        """The same, quantised otherwise than usual."""
        self._known[id(view.buffer)] = per_tensor(scale, zero_point)
        return view

    def convolution(
        self, x: View, channels: int, kernel: int = 1, stride: int = 1, activation: Expression = IDENTITY
    ) -> View:
        """See `Network.convolution`."""
        return self.filtered(x, channels, (kernel, kernel), (stride, stride), activation)

    def filtered(
        self,
        x: View,
        channels: int,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        activation: Expression = IDENTITY,
    ) -> View:
        """The same with a window of any shape."""
        options = schema.Conv2DOptions(
            padding=Padding.SAME, stride_h=stride[0], stride_w=stride[1], **_fused(activation)
        )
        operands = self._with_weights(x, (channels, *kernel, x.shape[3]), 0)
        return self._unfused(self.operator("CONV_2D", operands, options), activation)

    def depthwise(self, x: View, kernel: int, stride: int = 1, activation: Expression = IDENTITY) -> View:
        """See `Network.depthwise`."""
        return self.filtered_by_channel(x, (kernel, kernel), (stride, stride), activation)

    def filtered_by_channel(
        self,
        x: View,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        activation: Expression = IDENTITY,
        each: int = 1,
    ) -> View:
        """The same with a window of any shape, and ``each`` filters for a channel."""
        options = schema.DepthwiseConv2DOptions(
            padding=Padding.SAME, stride_h=stride[0], stride_w=stride[1], depth_multiplier=each, **_fused(activation)
        )
        operands = self._with_weights(x, (1, *kernel, each * x.shape[3]), 3)
        return self._unfused(self.operator("DEPTHWISE_CONV_2D", operands, options), activation)

    def dense(self, x: View, channels: int, activation: Expression = IDENTITY) -> View:
        """See `Network.dense`."""
        options = schema.FullyConnectedOptions(keep_num_dims=True, **_fused(activation))
        operands = self._with_weights(x, (channels, x.shape[-1]), 0)
        return self._unfused(self.operator("FULLY_CONNECTED", operands, options), activation)

    def matmul(self, x: View, y: View) -> View:
        """See `Network.matmul`."""
        return self.operator("BATCH_MATMUL", [x, y], schema.BatchMatMulOptions())

    def pool(self, x: View, kernel: int, stride: int) -> View:
        """See `Network.pool`."""
        return self.pooled("MAX_POOL_2D", x, kernel, stride)

    def pooled(self, name: str, x: View, kernel: int, stride: int, padding: Padding = Padding.SAME) -> View:
        """An operator over square windows."""
        options = schema.Pool2DOptions(
            padding=padding, stride_h=stride, stride_w=stride, filter_height=kernel, filter_width=kernel
        )
        return self.operator(name, [x], options, result=self._quantization(x))

    def mean(self, x: View, axes: tuple[int, ...] = (1, 2)) -> View:
        """See `Network.mean`."""
        along = Buffer((len(axes),), TensorType.INT32, -1, np.array(axes, np.int32)).view()
        return self.operator("MEAN", [x, along], schema.ReducerOptions(keep_dims=True))

    def softmax(self, x: View) -> View:
        """See `Network.softmax`."""
        return self.operator("SOFTMAX", [x], schema.SoftmaxOptions(beta=1.0), result=self._fine())

    def activated(self, x: View, activation: Expression) -> View:
        """See `Network.activated`; here, one that has not been fused."""
        if activation == SILU:
            return self.map(("mul", 0, 1), x, self.map(LOGISTIC, x))
        if activation == HARD_SIGMOID:
            return self.map(("mul", 0, 1), self.map(RELU6, x), self.constant())
        return x if activation == IDENTITY else self.map(activation, x)

    def map(self, expression: Expression, *operands: View, activation: Expression = IDENTITY) -> View:
        """See `Network.map`; expressions of one function."""
        if isinstance(expression, int):
            return operands[expression]
        function = expression[0]
        if function == "neg":
            return self._negated(*operands)
        name = _FUNCTIONS[function]
        fused = name in _OPTIONS and activation in _ACTIVATIONS
        options = _OPTIONS.get(name, Table)(**_fused(activation) if fused else {})
        if name == "GELU":
            options = schema.GeluOptions(approximate=function == "gelutanh")
        if function == "rsqrt" and self.type == TensorType.INT8:  # it is of positive numbers
            self._known[id(operands[0].buffer)] = per_tensor(0.02, -128)
        fine = function in ("logistic", "tanh")
        y = self.operator(name, list(operands), options, result=self._fine(function) if fine else None)
        return y if fused else self.activated(y, activation)

    def converted(self, x: View, type: TensorType) -> View:
        """Quantised otherwise, or to or from floats."""
        name = "DEQUANTIZE" if type == TensorType.FLOAT32 else "QUANTIZE"
        result = per_tensor(0.02) if type == TensorType.INT32 else None
        return self.operator(name, [x], Table(), type, result)

    def specs(self, target: Target, passes: Passes = PASSES) -> dict[str, KernelSpec]:
        """See `Network.specs`."""
        self.graph.remove_unread()
        start = _VALUES.ctypes.data
        return dict(build(self.graph, target, (start, start + _VALUES.nbytes), passes).specs)

    def _negated(self, x: View) -> View:
        """By way of floats, as converters write it: integers have no NEG."""
        if self.is_dynamic:
            return self.operator("NEG", [x], Table())
        negative = self.operator("NEG", [self.converted(x, TensorType.FLOAT32)], Table(), type=TensorType.FLOAT32)
        return self.converted(negative, self.type)

    def _weights(self, shape: Shape, dimension: int) -> View:
        if self.is_dynamic and prod(shape) < SMALL:
            return self.stored(shape, TensorType.FLOAT32)
        view = self.stored(shape, self._weights_type)
        if self.type == TensorType.UINT8:
            self._known[id(view.buffer)] = per_tensor(self._weights_scale, self._weights_zero)
        else:
            scales = np.linspace(self._weights_scale, 1.2 * self._weights_scale, shape[dimension], dtype=np.float32)
            self._known[id(view.buffer)] = Quantization(scales, np.zeros(shape[dimension], np.int32), dimension)
        return view

    def _with_weights(self, x: View, shape: Shape, dimension: int) -> list[View | None]:
        """An operand, weights and a bias."""
        weights = self._weights(shape, dimension)
        bias = self.stored((shape[dimension],), self._bias_type)
        if not self.is_dynamic:
            scale, scales = self._quantization(x).scales, self._quantization(weights).scales
            self._known[id(bias.buffer)] = Quantization(scale * scales, np.zeros(scales.size, np.int32))
        return [x, weights, bias]

    def _fine(self, function: str = "") -> Quantization:
        if self.type == TensorType.INT16:
            return per_tensor(1 / 32768)
        if function == "tanh":
            return per_tensor(1 / 128, 0 if self.type == TensorType.INT8 else 128)
        return _FINE if self.type == TensorType.INT8 else per_tensor(1 / 256)

    def _quantization(self, view: View) -> Quantization:
        known = self._known.get(id(view.buffer))
        return self._usual(view.type) if known is None else known

    def _usual(
        self, type: TensorType, activation: ActivationFunctionType = ActivationFunctionType.NONE
    ) -> Quantization:
        if type == TensorType.INT16:
            return per_tensor(0.0005)
        if type not in (TensorType.INT8, TensorType.UINT8):
            return UNQUANTIZED
        least = -128 if type == TensorType.INT8 else 0
        if activation == ActivationFunctionType.NONE:
            return per_tensor(0.02, least + 126)
        return per_tensor(0.03, least + 3) if self._clamped else per_tensor(6 / 255, least)

    def _unfused(self, y: View, activation: Expression) -> View:
        if activation == HARD_SIGMOID:
            return self.map(("mul", 0, 1), y, self.constant())
        return y if activation in _ACTIVATIONS else self.activated(y, activation)

    def operator(
        self,
        name: str,
        operands: Sequence[View | None],
        options: Table,
        type: TensorType | None = None,
        result: Quantization | None = None,
    ) -> View:
        """An operator with one output, of the type of activations unless given."""
        op = find_op(name)
        if op is None or op.prepare_function is None:
            raise PrepareError(f"There is no {name}.")
        type = self.type if type is None else type
        activation = getattr(options, "fused_activation_function", ActivationFunctionType.NONE)
        made = self._usual(type, activation) if result is None else result
        inputs = [None if view is None else self._tensor(view) for view in operands]
        y = _Tensor(self._number(), type, (), made)
        node = _node(op, y.index, options, inputs, y)
        node.data = op.prepare_function(node)
        lower(node, self._lowered)  # type: ignore[arg-type]  # which is all of a NodeInfo that counts
        view = self._lowered.values[y.index]
        self._known[id(view.buffer)] = made
        return view

    def _tensor(self, view: View) -> _Tensor:
        array = view.buffer.array
        is_variable = id(view.buffer) in self._variables
        tensor = _Tensor(self._number(), view.type, view.shape, self._quantization(view), array, is_variable)
        self._lowered.values[tensor.index] = view
        return tensor

    def _number(self) -> int:
        self._tensors += 1
        return self._tensors


def _node(op: OpDef, number: int, options: Table, inputs: Sequence[_Tensor | None], y: _Tensor) -> _Node:
    return _Node(op, op.max_version, number, options, b"", inputs, [y])


def _fused(activation: Expression) -> dict[str, ActivationFunctionType]:
    """The option that says it, or its beginning, if there is one."""
    activation = RELU6 if activation == HARD_SIGMOID else activation
    return {"fused_activation_function": _ACTIVATIONS.get(activation, ActivationFunctionType.NONE)}
