"""Numbers rounded as quantization will round them, with gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.kernels._checks import require_least_rank, require_same_shape

F32 = np.float32


class _Range(NamedTuple):
    """Ranges moved so that 0 is a step: low, high, step; and where there is no range at all."""

    low: Array
    high: Array
    step: Array
    is_empty: Array


def _nudged(call: Call, low: Array, high: Array) -> _Range:
    """The range whose 0 is exact (Jacob et al., Quantization and Training of Neural Networks, 2017)."""
    bits = call.attributes.int("num_bits")
    call.require(2 <= bits <= 16, f"num_bits must be in [2, 16], got {bits}")
    empty = (low == 0) & (high == 0)
    call.require(np.all((low < high) | empty), f"min {low} must be less than max {high}")
    first, last = F32(call.attributes.bool("narrow_range")), F32((1 << bits) - 1)
    step = (high - low) / (last - first)
    zero = first - low / step
    zero = np.clip(np.floor(zero + F32(0.5)), first, last)
    return _Range((first - zero) * step, (last - zero) * step, step, empty)


def _rounded(x: Array, range: _Range) -> Array:
    inverse = 1 / range.step
    zero = np.floor(-range.low * inverse + F32(0.5))
    shifted = np.clip(x, range.low, range.high) - range.low
    steps = np.floor(shifted * inverse - zero + F32(0.5))
    return np.where(range.is_empty, F32(0), steps * range.step)


def _of_attributes(call: Call) -> tuple[Any, Any]:
    return F32(call.attributes.float("min")), F32(call.attributes.float("max"))


def _limits(call: Call, x: Array, low: Array, high: Array) -> _Range:
    """The range of operands: one number each, or one for each channel."""
    if call.op.startswith("FakeQuantWithMinMaxVarsPerChannel"):
        require_least_rank(call, "inputs", x, 1)
        wanted: tuple[int, ...] = x.shape[-1:]
    else:
        wanted = ()
    for name, one in (("min", low), ("max", high)):
        call.require(one.shape == wanted, f"{name} must have shape {list(wanted)}, got {list(one.shape)}")
    return _nudged(call, low, high)


@kernel("FakeQuantWithMinMaxArgs", shape=like_first)
def fake_quant_args(call: Call, x: Array) -> Array:
    """The nearest of ``2 ** num_bits`` numbers between min and max."""
    return _rounded(x, _nudged(call, *_of_attributes(call)))


@kernel("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel", shape=like_first)
def fake_quant_vars(call: Call, x: Array, low: Array, high: Array) -> Array:
    """The same with the range as operands, one or one for each channel."""
    return _rounded(x, _limits(call, x, low, high))


@kernel("FakeQuantWithMinMaxArgsGradient", shape=like_first)
def fake_quant_args_gradient(call: Call, gradient: Array, x: Array) -> Array:
    """The gradient where x is within the range."""
    require_same_shape(call, "gradients and inputs", gradient, x)
    range = _nudged(call, *_of_attributes(call))
    return np.where((x >= range.low) & (x <= range.high), gradient, F32(0))


@kernel("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_vars_gradient(call: Call, gradient: Array, x: Array, low: Array, high: Array) -> Any:
    """The same, and the sums of the gradients below and above the range."""
    require_same_shape(call, "gradients and inputs", gradient, x)
    range = _limits(call, x, low, high)
    below, above = (x < range.low) & ~range.is_empty, (x > range.high) & ~range.is_empty
    axes = tuple(np.arange(x.ndim - low.ndim).tolist())
    sums = [np.where(outside, gradient, F32(0)).sum(axes) for outside in (below, above)]
    return np.where(below | above, F32(0), gradient), *sums
