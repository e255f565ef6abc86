"""Activations."""

from __future__ import annotations

import math

import numpy as np

from gossamer.convert.blocks import special
from gossamer.convert.blocks.attention import log_softmax as log_softmax_over
from gossamer.convert.blocks.attention import softmax as softmax_over
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import slice_axis
from gossamer.convert.blocks.normalization import along
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.graph import Value
from gossamer.convert.lowerings.torch import Call, Number, is_float, lowers
from gossamer.convert.lowerings.torch.elementwise import clamp

_NEGLIGIBLE = 16
"""exp(-16) is what float32 does not tell from nothing beside 16."""


@lowers("aten.relu")
def relu(call: Call, self: Value) -> Value:
    return call.add("RELU", self) if is_float(self) else widened(call.graph, "MAXIMUM", self, np.zeros((), self.dtype))


@lowers("aten.relu6")
def relu6(call: Call, self: Value) -> Value:
    return call.add("RELU6", self) if is_float(self) else clamp(call, self, 0, 6)


@lowers("aten.hardswish")
def hardswish(call: Call, self: Value) -> Value:
    return call.add("HARD_SWISH", self)


@lowers("aten.hardsigmoid")
def hardsigmoid(call: Call, self: Value) -> Value:
    return call.add("MUL", call.add("RELU6", call.add("ADD", self, 3.0)), 1 / 6)


@lowers("aten.hardtanh")
def hardtanh(call: Call, self: Value, min_val: Number = -1.0, max_val: Number = 1.0) -> Value:
    return clamp(call, self, min_val, max_val)


@lowers("aten.leaky_relu")
def leaky_relu(call: Call, self: Value, negative_slope: float = 0.01) -> Value:
    return call.add("LEAKY_RELU", self, alpha=float(negative_slope))


@lowers("aten.prelu", "aten._prelu_kernel")
def prelu(call: Call, self: Value, weight: Value) -> Value:
    slope = along(call.graph, weight, 1, self.rank) if self.rank > 1 else weight
    if slope is None or slope.data is None:
        negative = call.add("MUL", self, slope)
        return call.add("SELECT_V2", call.add("GREATER", self, 0.0), self, negative)
    if slope.data.size == 1:
        return call.add("LEAKY_RELU", self, alpha=float(slope.data.reshape(())))
    return call.add("PRELU", self, slope.data[0] if slope.data.ndim > 1 else slope.data)


@lowers("aten.elu")
def elu(call: Call, self: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    x = self if input_scale == 1 else call.add("MUL", self, float(input_scale))
    if alpha == 1 and input_scale == 1:
        found = call.add("ELU", self)
        return found if scale == 1 else call.add("MUL", found, float(scale))
    negative = call.add("MUL", call.add("ELU", call.add("MINIMUM", x, 0.0)), float(alpha * scale))
    positive = call.add("MAXIMUM", self, 0.0)
    return call.add("ADD", positive if scale == 1 else call.add("MUL", positive, float(scale)), negative)


@lowers("aten.celu")
def celu(call: Call, self: Value, alpha: float = 1.0) -> Value:
    return elu(call, self, alpha, 1.0, 1 / alpha)


@lowers("aten.selu")
def selu(call: Call, self: Value) -> Value:
    return elu(call, self, special.SELU_ALPHA, special.SELU_SCALE)


@lowers("aten.gelu")
def gelu(call: Call, self: Value, approximate: str = "none") -> Value:
    return call.add("GELU", self, approximate=approximate == "tanh")


@lowers("aten.silu")
def silu(call: Call, self: Value) -> Value:
    return call.add("MUL", self, call.add("LOGISTIC", self))


@lowers("aten.mish")
def mish(call: Call, self: Value) -> Value:
    return call.add("MUL", self, call.add("TANH", softplus(call, self)))


@lowers("aten.softplus")
def softplus(call: Call, self: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + exp(beta * x)) / beta, and x where beta * x is over the threshold: where that is high, they are equal."""
    x = self if beta == 1 else call.add("MUL", self, float(beta))
    found = special.softplus(call.graph, x)
    found = found if beta == 1 else call.add("MUL", found, 1 / beta)
    if threshold >= _NEGLIGIBLE:
        return found
    return call.add("SELECT_V2", call.add("GREATER", x, float(threshold)), self, found)


@lowers("aten.log_sigmoid", "aten.log_sigmoid_forward")
def log_sigmoid(call: Call, self: Value) -> Value | tuple[Value, None]:
    found = call.add("NEG", softplus(call, call.add("NEG", self)))
    return (found, None) if call.packet.endswith("forward") else found


@lowers("aten.hardshrink", "aten.softshrink")
def shrink(call: Call, self: Value, lambd: float = 0.5) -> Value:
    if call.packet == "aten.hardshrink":
        return call.add("SELECT_V2", call.add("GREATER", call.add("ABS", self), float(lambd)), self, 0.0)
    inner = call.add("MINIMUM", call.add("MAXIMUM", self, -float(lambd)), float(lambd))
    return call.add("SUB", self, inner)


@lowers("aten.softsign")
def softsign(call: Call, self: Value) -> Value:
    return call.add("DIV", self, call.add("ADD", call.add("ABS", self), 1.0))


@lowers("aten.tanhshrink")
def tanhshrink(call: Call, self: Value) -> Value:
    return call.add("SUB", self, call.add("TANH", self))


@lowers("aten.threshold")
def threshold(call: Call, self: Value, threshold: Number, value: Number) -> Value:
    above = widened(call.graph, "GREATER", self, call.operand(threshold, self.type))
    return call.add("SELECT_V2", above, self, call.operand(value, self.type))


@lowers("aten.glu")
def glu(call: Call, self: Value, dim: int = -1) -> Value:
    half = self.shapes[0][dim] // 2
    gate = slice_axis(call.graph, self, dim, half, None)
    return call.add("MUL", slice_axis(call.graph, self, dim, 0, half), call.add("LOGISTIC", gate))


@lowers("aten.logit", "aten.special_logit")
def logit(call: Call, self: Value, eps: float | None = None) -> Value:
    x = call.operand(self)
    if eps is not None:
        x = call.add("MINIMUM", call.add("MAXIMUM", x, float(eps)), 1 - float(eps))
    return call.add("LOG", call.add("DIV", x, call.add("SUB", 1.0, x)))


@lowers("aten.softmax", "aten._softmax", "aten.special_softmax")
def softmax(call: Call, self: Value, dim: int, dtype: object = None, half_to_float: bool = False) -> Value:
    return softmax_over(call.graph, call.operand(self), dim)


@lowers("aten.log_softmax", "aten._log_softmax", "aten.special_log_softmax")
def log_softmax(call: Call, self: Value, dim: int, dtype: object = None, half_to_float: bool = False) -> Value:
    return log_softmax_over(call.graph, call.operand(self), dim)


@lowers("aten._safe_softmax")
def safe_softmax(call: Call, self: Value, dim: int, dtype: object = None) -> Value:
    """As softmax, and 0 where every element is -inf."""
    x = call.operand(self)
    largest = reduce(call.graph, "REDUCE_MAX", x, [dim], keepdims=True)
    empty = call.add("EQUAL", largest, -math.inf)
    found = softmax_over(call.graph, call.add("SELECT_V2", empty, 0.0, x), dim)
    return call.add("SELECT_V2", empty, 0.0, found)
