"""Gradients of functions of one element at a time, and of what repeats elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.kernels._checks import require_same_shape, widened
from gossamer.flex.kernels.activations import SELU_ALPHA, SELU_SCALE, sigmoid_of
from gossamer.flex.kernels.arrays import mirrored

_OF_RESULT: dict[str, Callable[[Array, Array], Any]] = {
    "InvGrad": lambda y, dy: -dy * np.conj(y) * np.conj(y),
    "ReciprocalGrad": lambda y, dy: -dy * np.conj(y) * np.conj(y),
    "RsqrtGrad": lambda y, dy: dy * np.conj(y) ** 3 / -2,
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: dy / 2 / np.conj(y),
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
}


@kernel(*_OF_RESULT, shape=like_first)
def of_result(call: Call, y: Array, dy: Array) -> Any:
    """The gradient of the function for its operand, by its result y."""
    require_same_shape(call, "y and dy", y, dy)
    return _OF_RESULT[call.op](widened(y), widened(dy))


def _selu(g: Array, y: Array) -> Array:
    return np.where(y < 0, g * (y + SELU_SCALE * SELU_ALPHA), g * SELU_SCALE)


_OF_FEATURES: dict[str, Callable[[Array, Array], Any]] = {
    "EluGrad": lambda g, y: np.where(y < 0, (y + 1) * g, g),
    "Relu6Grad": lambda g, x: np.where((x > 0) & (x < 6), g, 0),
    "ReluGrad": lambda g, x: np.where(x > 0, g, 0),
    "SeluGrad": _selu,
    "SoftplusGrad": lambda g, x: g * sigmoid_of(x),
    "SoftsignGrad": lambda g, x: g / np.square(1 + np.abs(x)),
}


@kernel(*_OF_FEATURES, shape=like_first)
def of_features(call: Call, gradients: Array, features: Array) -> Any:
    """The gradient of the activation for its operand, by the operand, or of ELU and SELU by the result."""
    require_same_shape(call, "gradients and features", gradients, features)
    return _OF_FEATURES[call.op](widened(gradients), widened(features))


@kernel("LeakyReluGrad", shape=like_first)
def leaky_relu_grad(call: Call, gradients: Array, features: Array) -> Array:
    """``alpha`` times the gradient where the feature is not positive."""
    require_same_shape(call, "gradients and features", gradients, features)
    g = widened(gradients)
    return np.where(features > 0, g, g * np.asarray(call.attributes.float("alpha"), g.dtype))


@kernel("MirrorPadGrad")
def mirror_pad_grad(call: Call, x: Array, paddings: Array) -> Array:
    """The sums of the gradients of an element and its mirror images."""
    call.require(paddings.shape == (x.ndim, 2), f"paddings must have shape [{x.ndim}, 2], got {list(paddings.shape)}")
    sizes = [size - int(pair.sum()) for size, pair in zip(x.shape, paddings, strict=True)]
    call.require(all(size >= 0 for size in sizes), f"paddings {paddings.tolist()} are more than shape {list(x.shape)}")
    pairs, mode = mirrored(call, tuple(sizes), paddings)
    result = widened(x)
    for axis, (size, pair) in enumerate(zip(sizes, pairs, strict=True)):
        if any(pair):
            source = np.pad(np.arange(size), pair, mode)  # type: ignore[call-overload]  # it is one of two modes
            moved = np.moveaxis(result, axis, 0)
            summed = np.zeros((size, *moved.shape[1:]), moved.dtype)
            np.add.at(summed, source, moved)
            result = np.moveaxis(summed, 0, axis)
    return result


@kernel("TileGrad")
def tile_grad(call: Call, x: Array, multiples: Array) -> Array:
    """The sums of the gradients of an element and its repetitions."""
    call.require(multiples.shape == (x.ndim,), f"multiples must have {x.ndim} elements, got {multiples.tolist()}")
    times = multiples.tolist()
    fits = all(count > 0 and size % count == 0 for size, count in zip(x.shape, times, strict=True))
    call.require(fits, f"shape {list(x.shape)} is no multiple of {times}")
    parts = [one for size, count in zip(x.shape, times, strict=True) for one in (count, size // count)]
    total: Array = widened(x).reshape(parts).sum(tuple(range(0, 2 * x.ndim, 2)))
    return total
