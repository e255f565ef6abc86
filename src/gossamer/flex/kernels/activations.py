"""Activation functions and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.kernels._checks import require_least_rank, widened

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
"""Of Klambauer et al., Self-Normalizing Neural Networks (2017)."""


def sigmoid_of(x: Array) -> Any:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def _selu(x: Array) -> Array:
    return SELU_SCALE * np.where(x < 0, SELU_ALPHA * np.expm1(x), x)


_FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "Elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "Relu": lambda x: np.maximum(x, np.zeros((), x.dtype)),
    "Relu6": lambda x: np.minimum(np.maximum(x, np.zeros((), x.dtype)), np.array(6, x.dtype)),
    "Selu": _selu,
    "Sigmoid": sigmoid_of,
    "Softplus": lambda x: np.logaddexp(x, np.zeros((), x.dtype)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
}


@kernel(*_FUNCTIONS, shape=like_first)
def activation(call: Call, x: Array) -> Any:
    """The function that the operator is named after."""
    return _FUNCTIONS[call.op](widened(x))


@kernel("LeakyRelu", shape=like_first)
def leaky_relu(call: Call, features: Array) -> Array:
    """``alpha`` times the feature where that is not positive."""
    x = widened(features)
    return np.where(x > 0, x, x * np.asarray(call.attributes.float("alpha"), x.dtype))


@kernel("Softmax", shape=like_first)
def softmax(call: Call, logits: Array) -> Array:
    """exp(logits), divided by their sum in the last dimension."""
    require_least_rank(call, "logits", logits, 1)
    powers = np.exp(_shifted(logits))
    quotient: Array = powers / powers.sum(-1, keepdims=True)
    return quotient


@kernel("LogSoftmax", shape=like_first)
def log_softmax(call: Call, logits: Array) -> Array:
    """The logarithm of softmax."""
    require_least_rank(call, "logits", logits, 1)
    return log_softmax_of(logits)


def log_softmax_of(logits: Array) -> Array:
    """The logarithm of softmax in the last dimension, in float32 at least."""
    shifted = _shifted(logits)
    result: Array = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return result


def _shifted(logits: Array) -> Array:
    """The same logits with a maximum of 0."""
    x = widened(logits)
    shifted: Array = x - x.max(-1, keepdims=True) if x.size else x
    return shifted
