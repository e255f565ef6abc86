"""Activations: functions of `keras.activations` by their names, as other layers have them, and layers of their own.

`activation` is what other lowerings call: with a name, or with the object that a config holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.convert.blocks.reductions import cumulative_sum, reduce, top
from gossamer.convert.blocks.shapes import transpose
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.keras import Call, Masked, floating, lowers
from gossamer.convert.sources.keras import Layer
from gossamer.schema.enums import TensorType

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""Of Klambauer et al., Self-Normalizing Neural Networks."""

Function = Callable[..., Value]

_FUNCTIONS: dict[str, Function] = {}


def _named(*names: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        _FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def activation(graph: Graph, x: Value, spec: Any, version: tuple[int, ...] = (3,), **arguments: Any) -> Value:
    """``spec`` of x: a name, ``None``, or ``{"class_name": ..., "config": ...}``. Raises `Refused`."""
    config: Any = {}
    while isinstance(spec, dict):
        if not isinstance(spec.get("class_name"), str):
            refuse("its activation is a Python function; use one of keras.activations")
        config = spec.get("config", {})
        spec = config if isinstance(config, str) else spec["class_name"]
    if not isinstance(config, dict):
        config = {}
    if spec is None:
        return x
    if version < (3,) and spec == "hard_sigmoid":
        return _clip(graph, graph.add("ADD", graph.add("MUL", x, 0.2), 0.5), 0.0, 1.0)
    function = _FUNCTIONS.get(spec)
    if function is None:
        layer = lowers.find(spec)
        if layer is None or layer.__module__ != __name__:
            refuse(f"the activation {spec!r} is not known")
        return _as_layer(graph, x, layer, spec, config, version)
    options = getattr(function, "__kwdefaults__", None) or {}
    known = {key: value for key, value in config.items() if key in options}
    return function(graph, floating(graph, x), **known, **arguments)


def _as_layer(
    graph: Graph, x: Value, lowering: Callable[[Call], Any], name: str, config: dict[str, Any], version: tuple[int, ...]
) -> Value:
    """An activation that is a layer without variables."""
    layer = Layer(name, name, config, {}, (), (), None, False)
    found: Masked | Value = lowering(Call(graph, layer, (x,), {}, ((None,), {}), _none_within, version))
    result: Value = found.result if isinstance(found, Masked) else found
    return result


def _none_within(*_: Any) -> Masked:
    refuse("an activation has no layers")


def _clip(graph: Graph, x: Value, low: float | None, high: float | None) -> Value:
    if low == 0 and high == 6:
        return graph.add("RELU6", x)
    if low == -1 and high == 1:
        return graph.add("RELU_N1_TO_1", x)
    if low == 0:
        x = graph.add("RELU", x)
    elif low is not None:
        x = graph.add("MAXIMUM", x, low)
    return x if high is None else graph.add("MINIMUM", x, high)


def _where(graph: Graph, condition: Value, x: Any, y: Any) -> Value:
    return graph.add("SELECT_V2", condition, x, y)


@_named("linear", "identity")
def linear(graph: Graph, x: Value) -> Value:
    return x


@_named("relu")
def relu(
    graph: Graph, x: Value, *, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Value:
    """max(x, 0) with bends: 0 between 0 and the threshold, ``negative_slope * (x - threshold)`` below."""
    if not negative_slope and not threshold:
        return _clip(graph, x, 0.0, max_value)
    if not threshold and max_value is None:
        return graph.add("LEAKY_RELU", x, alpha=negative_slope)
    if threshold:
        positive = _where(graph, graph.add("GREATER", x, threshold), x, 0.0)
        if max_value is not None:
            positive = _clip(graph, positive, 0.0, max_value)
    else:
        positive = _clip(graph, x, 0.0, max_value)
    if not negative_slope:
        return positive
    negative = graph.add("RELU", graph.add("SUB", threshold, x))
    return graph.add("SUB", positive, graph.add("MUL", negative, negative_slope))


@_named("relu6")
def relu6(graph: Graph, x: Value) -> Value:
    return graph.add("RELU6", x)


@_named("leaky_relu")
def leaky_relu(graph: Graph, x: Value, *, negative_slope: float = 0.2) -> Value:
    return graph.add("LEAKY_RELU", x, alpha=negative_slope)


@_named("sigmoid")
def sigmoid(graph: Graph, x: Value) -> Value:
    return graph.add("LOGISTIC", x)


@_named("tanh")
def tanh(graph: Graph, x: Value) -> Value:
    return graph.add("TANH", x)


@_named("exponential", "exp")
def exponential(graph: Graph, x: Value) -> Value:
    return graph.add("EXP", x)


@_named("softmax")
def softmax(graph: Graph, x: Value, *, axis: int | None = -1) -> Value:
    if axis is None:
        return _of_all(graph, x, softmax)
    return _last(graph, x, axis, lambda rows: graph.add("SOFTMAX", rows, beta=1.0))


@_named("log_softmax")
def log_softmax(graph: Graph, x: Value, *, axis: int | None = -1) -> Value:
    if axis is None:
        return _of_all(graph, x, log_softmax)
    return _last(graph, x, axis, lambda rows: graph.add("LOG_SOFTMAX", rows))


def _last(graph: Graph, x: Value, axis: int, function: Callable[[Value], Value]) -> Value:
    """A function of the last axis, along another one."""
    axis %= x.rank
    order = list(range(x.rank))
    order[axis], order[-1] = order[-1], order[axis]
    return transpose(graph, function(transpose(graph, x, order)), order)


def _of_all(graph: Graph, x: Value, function: Function) -> Value:
    row = graph.add("RESHAPE", x, np.array([1, -1], np.int32), new_shape=(1, -1))
    return graph.add("RESHAPE", function(graph, row), graph.add("SHAPE", x))


@_named("elu")
def elu(graph: Graph, x: Value, *, alpha: float = 1.0) -> Value:
    result = graph.add("ELU", x)
    if alpha == 1:
        return result
    return _where(graph, graph.add("GREATER", x, 0.0), x, graph.add("MUL", result, alpha))


@_named("selu")
def selu(graph: Graph, x: Value) -> Value:
    return graph.add("MUL", elu(graph, x, alpha=SELU_ALPHA), SELU_SCALE)


@_named("celu")
def celu(graph: Graph, x: Value, *, alpha: float = 1.0) -> Value:
    """x, or alpha * (exp(x / alpha) - 1) below 0."""
    if alpha == 1:
        return graph.add("ELU", x)
    return graph.add("MUL", graph.add("ELU", graph.add("MUL", x, 1 / alpha)), alpha)


@_named("softplus")
def softplus(graph: Graph, x: Value) -> Value:
    """log(1 + exp(x)), without overflow: max(x, 0) + log(1 + exp(-abs(x)))."""
    small = graph.add("EXP", graph.add("NEG", graph.add("ABS", x)))
    return graph.add("ADD", graph.add("RELU", x), graph.add("LOG", graph.add("ADD", small, 1.0)))


@_named("log_sigmoid")
def log_sigmoid(graph: Graph, x: Value) -> Value:
    return graph.add("NEG", softplus(graph, graph.add("NEG", x)))


@_named("softsign")
def softsign(graph: Graph, x: Value) -> Value:
    return graph.add("DIV", x, graph.add("ADD", graph.add("ABS", x), 1.0))


@_named("squareplus")
def squareplus(graph: Graph, x: Value, *, b: float = 4) -> Value:
    root = graph.add("SQRT", graph.add("ADD", graph.add("MUL", x, x), float(b)))
    return graph.add("MUL", graph.add("ADD", x, root), 0.5)


@_named("silu", "swish")
def silu(graph: Graph, x: Value) -> Value:
    return graph.add("MUL", x, graph.add("LOGISTIC", x))


@_named("hard_sigmoid")
def hard_sigmoid(graph: Graph, x: Value) -> Value:
    return graph.add("MUL", graph.add("RELU6", graph.add("ADD", x, 3.0)), 1 / 6)


@_named("hard_silu", "hard_swish")
def hard_silu(graph: Graph, x: Value) -> Value:
    return graph.add("HARD_SWISH", x)


@_named("gelu")
def gelu(graph: Graph, x: Value, *, approximate: bool = False) -> Value:
    return graph.add("GELU", x, approximate=approximate)


@_named("mish")
def mish(graph: Graph, x: Value) -> Value:
    return graph.add("MUL", x, graph.add("TANH", softplus(graph, x)))


@_named("glu")
def glu(graph: Graph, x: Value, *, axis: int = -1) -> Value:
    """The first half of an axis, as much of it as the sigmoid of the second half says."""
    first, second = graph.add_many("SPLIT", [np.array(axis % x.rank, np.int32), x], 2, num_splits=2)
    return graph.add("MUL", first, graph.add("LOGISTIC", second))


@_named("tanh_shrink")
def tanh_shrink(graph: Graph, x: Value) -> Value:
    return graph.add("SUB", x, graph.add("TANH", x))


@_named("hard_tanh")
def hard_tanh(graph: Graph, x: Value) -> Value:
    return graph.add("RELU_N1_TO_1", x)


@_named("hard_shrink")
def hard_shrink(graph: Graph, x: Value, *, threshold: float = 0.5) -> Value:
    return _where(graph, graph.add("GREATER", graph.add("ABS", x), threshold), x, 0.0)


@_named("soft_shrink")
def soft_shrink(graph: Graph, x: Value, *, threshold: float = 0.5) -> Value:
    """What x exceeds the threshold by, on either side of 0."""
    inside = graph.add("MAXIMUM", graph.add("MINIMUM", x, threshold), -threshold)
    return graph.add("SUB", x, inside)


@_named("threshold")
def threshold(graph: Graph, x: Value, *, threshold: float = 0.0, default_value: float = 0.0) -> Value:
    return _where(graph, graph.add("GREATER", x, float(threshold)), x, float(default_value))


@_named("sparse_plus")
def sparse_plus(graph: Graph, x: Value) -> Value:
    """0 up to -1, x from 1 on, (x + 1)**2 / 4 between."""
    more = graph.add("ADD", x, 1.0)
    between = graph.add("MUL", graph.add("MUL", more, more), 0.25)
    upper = _where(graph, graph.add("LESS", x, 1.0), between, x)
    return _where(graph, graph.add("LESS_EQUAL", x, -1.0), 0.0, upper)


@_named("sparse_sigmoid")
def sparse_sigmoid(graph: Graph, x: Value) -> Value:
    return graph.add("MUL", graph.add("ADD", graph.add("RELU_N1_TO_1", x), 1.0), 0.5)


@_named("sparsemax")
def sparsemax(graph: Graph, x: Value, *, axis: int = -1) -> Value:
    """After Martins and Astudillo, From Softmax to Sparsemax; but Keras' threshold is made of the sum of all running
    sums where the paper has the last one, and that is what its models were trained with."""
    axis %= x.rank
    size = x.dims[axis]
    if size is None:
        refuse("sparsemax along an axis whose size is open; give it with --shape")
    ordered, _ = top(graph, x, size, axis)
    sums = cumulative_sum(graph, ordered, axis)
    numbers = np.arange(1, size + 1, dtype=np.float32).reshape([-1 if n == axis else 1 for n in range(x.rank)])
    distance = graph.add("SUB", ordered, graph.add("DIV", graph.add("SUB", sums, 1.0), numbers))
    support = graph.add("CAST", graph.add("GREATER", distance, 0.0), type=x.type)
    count = reduce(graph, "SUM", support, [axis], keepdims=True)
    total = reduce(graph, "SUM", graph.add("MUL", support, sums), [axis], keepdims=True)
    tau = graph.add("DIV", graph.add("SUB", total, 1.0), count)
    return graph.add("RELU", graph.add("SUB", x, tau))


@lowers("Activation")
def activation_layer(call: Call) -> Masked:
    return call.keeping_mask(activation(call.graph, call.x, call.layer.config.get("activation"), call.version))


@lowers("ReLU")
def relu_layer(call: Call) -> Masked:
    slope, bend = float(call.config("negative_slope", 0.0)), float(call.config("threshold", 0.0))
    most = call.config("max_value")
    x = floating(call.graph, call.x)
    return call.keeping_mask(relu(call.graph, x, negative_slope=slope, max_value=most, threshold=bend))


@lowers("LeakyReLU")
def leaky_relu_layer(call: Call) -> Masked:
    slope = call.config("negative_slope", call.config("alpha", 0.3))
    return call.keeping_mask(leaky_relu(call.graph, floating(call.graph, call.x), negative_slope=float(slope)))


@lowers("ELU")
def elu_layer(call: Call) -> Masked:
    return call.keeping_mask(elu(call.graph, floating(call.graph, call.x), alpha=float(call.config("alpha", 1.0))))


@lowers("ThresholdedReLU")
def thresholded_relu(call: Call) -> Masked:
    bend = float(call.config("theta", 1.0))
    return call.keeping_mask(relu(call.graph, floating(call.graph, call.x), threshold=bend))


@lowers("PReLU")
def prelu(call: Call) -> Masked:
    alpha = call.constant(call.weight("alpha"), "alpha")
    return call.keeping_mask(call.graph.add("PRELU", floating(call.graph, call.x), alpha))


@lowers("Softmax")
def softmax_layer(call: Call) -> Masked:
    """Where the mask is false, the input is so low that nothing is left of it."""
    graph, x = call.graph, floating(call.graph, call.x)
    mask = call.argument(1, "mask", call.mask)
    if isinstance(mask, Value):
        if mask.type != TensorType.BOOL:
            mask = graph.add("GREATER", floating(graph, mask), 0.5)
        x = _where(graph, mask, x, -1e9)
    axis = call.config("axis", -1)
    if isinstance(axis, list) and len(axis) == 1:
        axis = axis[0]
    if not isinstance(axis, list):
        return call.keeping_mask(softmax(graph, x, axis=axis))
    powers = graph.add("EXP", graph.add("SUB", x, reduce(graph, "REDUCE_MAX", x, axis, keepdims=True)))
    return call.keeping_mask(graph.add("DIV", powers, reduce(graph, "SUM", powers, axis, keepdims=True)))


_OPERATIONS = {
    "Relu": "relu", "Relu6": "relu6", "Sigmoid": "sigmoid", "SparseSigmoid": "sparse_sigmoid", "Softplus": "softplus",
    "Softsign": "softsign", "SoftShrink": "soft_shrink", "SparsePlus": "sparse_plus", "Silu": "silu",
    "Squareplus": "squareplus", "LogSigmoid": "log_sigmoid", "LeakyRelu": "leaky_relu", "HardSigmoid": "hard_sigmoid",
    "HardSilu": "hard_silu", "Elu": "elu", "Selu": "selu", "Gelu": "gelu", "Celu": "celu", "Glu": "glu",
    "TanhShrink": "tanh_shrink", "HardTanh": "hard_tanh", "HardShrink": "hard_shrink", "Threshold": "threshold",
    "Softmax": "softmax", "LogSoftmax": "log_softmax", "Sparsemax": "sparsemax",
}  # fmt: skip


@lowers(*[f"ops.{name}" for name in _OPERATIONS], "ops.ReLU", "ops.Mish")
def operation(call: Call) -> Value:
    name = _OPERATIONS.get(call.layer.class_name, call.layer.class_name.lower())
    function = _FUNCTIONS[name]
    names = getattr(function, "__kwdefaults__", None) or {}
    options = {key: call.layer.config[key] for key in names if key in call.layer.config}
    return function(call.graph, floating(call.graph, call.x), **options)
