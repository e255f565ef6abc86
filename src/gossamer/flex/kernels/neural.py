"""Biases, normalizations and losses of neural networks, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel, like_first
from gossamer.flex.kernels._checks import require_least_rank, require_range, require_rank, require_same_shape, widened
from gossamer.flex.kernels._windows import channels_as, channels_last
from gossamer.flex.kernels.activations import log_softmax_of
from gossamer.flex.node import FlexNode


def _format(call: Call) -> str:
    return call.attributes.text("data_format") if "data_format" in call.attributes else "NHWC"


@kernel("BiasAdd", "BiasAddV1", shape=like_first)
def bias_add(call: Call, value: Array, bias: Array) -> Array:
    """One number added to each channel."""
    require_least_rank(call, "value", value, 2)
    require_rank(call, "bias", bias, 1)
    last = channels_last(value, _format(call))
    call.require(bias.size == last.shape[-1], f"bias must have {last.shape[-1]} elements, got {bias.size}")
    return channels_as(last + bias, _format(call))


def _channels(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    (shape,) = shapes
    if len(shape) < 2:
        raise ValueError(f"out_backprop must have 2 dimensions or more, got shape {list(shape)}")
    return [(shape[-1] if node.attributes.text("data_format").endswith("C") else shape[1],)]


@kernel("BiasAddGrad", shape=_channels)
def bias_add_grad(call: Call, gradient: Array) -> Array:
    """The sum over everything but the channels."""
    require_least_rank(call, "out_backprop", gradient, 2)
    last = widened(channels_last(gradient, _format(call)))
    total: Array = last.sum(tuple(range(last.ndim - 1)), dtype=last.dtype)
    return total


@kernel("LRN", shape=like_first)
def local_response_normalization(call: Call, x: Array) -> Array:
    """``x / (bias + alpha * sum of squares of the channels within depth_radius) ** beta`` (Krizhevsky et al. 2012)."""
    require_rank(call, "input", x, 4)
    wide = widened(x)
    radius = min(max(call.attributes.int("depth_radius"), 0), x.shape[-1])
    bias, alpha, beta = [np.asarray(call.attributes.float(name), wide.dtype) for name in ("bias", "alpha", "beta")]
    squares = np.pad(np.square(wide), [(0, 0)] * 3 + [(radius, radius)])
    sums = np.zeros_like(wide)
    for start in range(2 * radius + 1):
        sums += squares[..., start : start + x.shape[-1]]
        call.poll()
    result: Array = wide / (bias + alpha * sums) ** beta
    return result


def _norm_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    results: list[Shape] = [tuple(shapes[0]), *[tuple(shapes[1])] * 4]
    return [*results, ()] if node.op == "FusedBatchNormV3" else results


@kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", shape=_norm_shape)
def fused_batch_norm(call: Call, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Any:
    """Channels normalized by the given statistics, or those of the batch (in training), scaled and moved.

    In training the second and third result are the moving statistics, with the variance of a sample (n - 1), and the
    next two those of the batch for the gradient.
    """
    require_rank(call, "x", x, 4, 5)
    last = widened(channels_last(x, _format(call)))
    channels = last.shape[-1]
    training = call.attributes.bool("is_training")
    for name, one in (("scale", scale), ("offset", offset), ("mean", mean), ("variance", variance)):
        fits = one.shape == (channels,) or (training and one.size == 0 and name in ("mean", "variance"))
        call.require(fits, f"{name} must have shape {[channels]}, got {list(one.shape)}")
    epsilon = np.float32(call.attributes.float("epsilon"))
    used_mean, used_variance = mean, variance
    new_mean, new_variance = mean, variance
    if training:
        axes = tuple(range(last.ndim - 1))
        count = max(last.size // max(channels, 1), 1)
        used_mean = last.sum(axes) / np.float32(count)
        used_variance = np.square(last - used_mean).sum(axes) / np.float32(count)
        factor = np.float32(call.attributes.float("exponential_avg_factor"))
        new_mean, new_variance = used_mean, used_variance * np.float32(count / max(count - 1, 1))
        if factor != 1:
            new_mean = (1 - factor) * mean + factor * new_mean
            new_variance = (1 - factor) * variance + factor * new_variance
        if not last.size:
            new_mean = used_mean = np.full(channels, np.nan, np.float32)
            new_variance = used_variance = new_mean
    y = (last - used_mean) * (scale / np.sqrt(used_variance + epsilon)) + offset
    results = (channels_as(y, _format(call)), new_mean, new_variance, used_mean, used_variance)
    return (*results, np.zeros((), np.float32)) if call.op == "FusedBatchNormV3" else results


@kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(
    call: Call, gradient: Array, x: Array, scale: Array, mean: Array, variance: Array, *_: Array
) -> Any:
    """The gradients for x, scale and offset, and two empty ones for the statistics."""
    require_rank(call, "x", x, 4, 5)
    require_same_shape(call, "y_backprop and x", gradient, x)
    format = _format(call)
    dy, last = [widened(channels_last(one, format)).astype(np.float32) for one in (gradient, x)]
    channels = last.shape[-1]
    for name, one in (("scale", scale), ("reserve_space_1", mean), ("reserve_space_2", variance)):
        call.require(one.shape == (channels,), f"{name} must have shape {[channels]}, got {list(one.shape)}")
    axes = tuple(range(last.ndim - 1))
    spread = 1 / np.sqrt(variance + np.float32(call.attributes.float("epsilon")))
    centred = last - mean
    d_offset = dy.sum(axes)
    d_scale = (dy * centred).sum(axes) * spread
    dx = dy
    if call.attributes.bool("is_training"):
        count = np.float32(max(last.size // max(channels, 1), 1))
        dx = dy - d_offset / count - centred * (d_scale * spread / count)
    nothing = np.zeros(0, np.float32)
    return channels_as(dx * (scale * spread), format), d_scale, d_offset, nothing, nothing


@kernel("BatchNormWithGlobalNormalization", shape=like_first)
def batch_norm(call: Call, t: Array, m: Array, v: Array, beta: Array, gamma: Array) -> Array:
    """``(t - m) / sqrt(v + epsilon)``, by gamma if ``scale_after_normalization``, plus beta."""
    require_rank(call, "t", t, 4)
    wide = widened(t)
    factor = 1 / np.sqrt(v + np.asarray(call.attributes.float("variance_epsilon"), wide.dtype))
    if call.attributes.bool("scale_after_normalization"):
        factor = factor * gamma
    result: Array = (wide - m) * factor + beta
    return result


@kernel("BatchNormWithGlobalNormalizationGrad")
def batch_norm_grad(call: Call, t: Array, m: Array, v: Array, gamma: Array, backprop: Array) -> Any:
    """The gradients for t, m, v, beta and gamma."""
    require_rank(call, "t", t, 4)
    wide, dy = widened(t), widened(backprop)
    spread = 1 / np.sqrt(v + np.asarray(call.attributes.float("variance_epsilon"), wide.dtype))
    scaled = call.attributes.bool("scale_after_normalization")
    factor = spread * gamma if scaled else spread
    axes = (0, 1, 2)
    total, moment = dy.sum(axes), (dy * (wide - m)).sum(axes)
    d_gamma = moment * spread if scaled else np.zeros_like(gamma)
    d_variance = moment * (gamma if scaled else 1) * np.asarray(-0.5, wide.dtype) * spread**3
    return dy * factor, -total * factor, d_variance, total, d_gamma


def _loss_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    whole = np.broadcast_shapes(*shapes)
    if len(whole) != 2:
        raise ValueError(f"features and labels must be matrices, got shapes {list(shapes[0])} and {list(shapes[1])}")
    return [whole[:1], whole]


@kernel("SoftmaxCrossEntropyWithLogits", shape=_loss_shape)
def softmax_cross_entropy(call: Call, features: Array, labels: Array) -> Any:
    """``-sum(labels * log softmax)`` of each row, and its gradient."""
    shape = _loss_shape(call.node, [features.shape, labels.shape])[1]
    logs = log_softmax_of(np.broadcast_to(features, shape))
    labels = np.broadcast_to(widened(labels), shape)
    return -np.where(labels == 0, 0, labels * logs).sum(-1), np.exp(logs) - labels


@kernel("SparseSoftmaxCrossEntropyWithLogits", shape=lambda node, shapes: [tuple(shapes[1]), tuple(shapes[0])])
def sparse_softmax_cross_entropy(call: Call, features: Array, labels: Array) -> Any:
    """``-log softmax`` at the label of each row, and its gradient."""
    require_rank(call, "features", features, 2)
    call.require(
        labels.shape == features.shape[:1],
        f"labels must have shape {list(features.shape[:1])}, got {list(labels.shape)}",
    )
    require_range(call, "labels", labels, features.shape[1])
    logs = log_softmax_of(features)
    rows = np.arange(len(labels))
    gradient = np.exp(logs)
    gradient[rows, labels] -= 1
    return -logs[rows, labels], gradient
