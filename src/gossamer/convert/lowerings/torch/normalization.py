"""Normalizations, for inference; channels are axis 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import normalization as norm
from gossamer.convert.blocks.reductions import norm as vector_norm
from gossamer.convert.blocks.shapes import reshape
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers


@lowers("aten.batch_norm", "aten._native_batch_norm_legit", "aten.native_batch_norm", "aten.cudnn_batch_norm")
@lowers("aten._native_batch_norm_legit_no_training", "aten._batch_norm_no_update", "aten._batch_norm_with_update")
@lowers("aten._native_batch_norm_legit_functional")
def batch_norm(
    call: Call,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    running_mean: Value | None = None,
    running_var: Value | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    **others: Any,
) -> Value | tuple[Value, ...]:
    """With the statistics of training; of what is there, where torch has none."""
    if running_mean is None or running_var is None:
        found, *statistics = norm.standardized(call.graph, input, [0, *range(2, input.rank)], eps)
        scale, shift = [norm.along(call.graph, x, 1, input.rank) for x in (weight, bias)]
        found = norm.scaled(call.graph, found, scale, shift)
        flat = [reshape(call.graph, x, [input.size(1)]) for x in statistics]
        return (found, *flat) if len(call.results) > 1 else found
    if training or call.packet == "aten._batch_norm_with_update":
        refuse("is in training, and changes the statistics of its batches: call eval() before the export")
    found = norm.batch_norm(call.graph, input, running_mean, running_var, weight, bias, eps, 1)
    return (found,) if len(call.results) > 1 else found


@lowers("aten.instance_norm")
def instance_norm(
    call: Call,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    running_mean: Value | None = None,
    running_var: Value | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    if not use_input_stats and running_mean is not None and running_var is not None:
        return norm.batch_norm(call.graph, input, running_mean, running_var, weight, bias, eps, 1)
    return norm.instance_norm(call.graph, input, 1, weight, bias, eps)


@lowers("aten.layer_norm", "aten.native_layer_norm")
def layer_norm(
    call: Call,
    input: Value,
    normalized_shape: Sequence[Number],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value | tuple[Value, ...]:
    axes = range(input.rank - len(normalized_shape), input.rank)
    found, mean, factor = norm.standardized(call.graph, input, axes, eps)
    found = norm.scaled(call.graph, found, weight, bias)
    return found if call.packet == "aten.layer_norm" else (found, mean, factor)


@lowers("aten.group_norm")
def group_norm(
    call: Call,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    return norm.group_norm(call.graph, input, num_groups, 1, weight, bias, eps)[0]


@lowers("aten.native_group_norm")
def native_group_norm(
    call: Call,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: Number,
    C: Number,
    HxW: Number,
    group: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    return norm.group_norm(call.graph, input, group, 1, weight, bias, eps)


@lowers("aten.rms_norm", "aten._fused_rms_norm")
def rms_norm(
    call: Call, input: Value, normalized_shape: Sequence[Number], weight: Value | None = None, eps: float | None = None
) -> Value | tuple[Value, None]:
    axes = range(input.rank - len(normalized_shape), input.rank)
    found = norm.rms_norm(call.graph, input, axes, weight, float(np.finfo(np.float32).eps) if eps is None else eps)
    return found if call.packet == "aten.rms_norm" else (found, None)


@lowers("aten.renorm")
def renorm(call: Call, self: Value, p: float, dim: int, maxnorm: float) -> Value:
    axes = [axis for axis in range(self.rank) if axis != dim % self.rank]
    size = vector_norm(call.graph, self, float(p), axes, keepdims=True)
    factor = call.add("DIV", float(maxnorm), call.add("ADD", size, 1e-7))
    return call.add("MUL", self, call.add("SELECT_V2", call.add("GREATER", size, float(maxnorm)), factor, 1.0))


@lowers("aten._weight_norm", "aten._weight_norm_interface")
def weight_norm(call: Call, v: Value, g: Value, dim: int = 0) -> Value | tuple[Value, None]:
    axes = [axis for axis in range(v.rank) if axis != dim % v.rank]
    found = call.add("MUL", v, call.add("DIV", g, vector_norm(call.graph, v, 2, axes, keepdims=True)))
    return found if call.packet == "aten._weight_norm" else (found, None)
