"""Optimizers: a step on variables (TensorFlow's training_ops.cc).

A formula takes the variables and the numbers by the names that TensorFlow's operators give them, and returns the new
values of the variables in order. The sparse operators apply it to rows, one update of a row after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.convert.flex_operators import KNOWN_OPERATORS
from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import require_range
from gossamer.flex.kernels.variables import variable
from gossamer.schema.enums import TensorType

Formula = Callable[..., tuple[Any, ...]]

DENSE, SPARSE = "ResourceApply", "ResourceSparseApply"

SWITCHES = ("update_slots", "use_nesterov", "multiply_linear_by_lr")
"""Attributes that formulas ask for."""


def _gradient_descent(var: Any, alpha: Any, delta: Any) -> tuple[Any, ...]:
    return (var - alpha * delta,)


def _proximal_gradient_descent(
    var: Any, alpha: Any, l1: Any, l2: Any, delta: Any = None, grad: Any = None
) -> tuple[Any, ...]:
    change = grad if delta is None else delta
    return (_shrunk(var - change * alpha, alpha * l1, alpha * l2, l1),)


def _adadelta(var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any) -> tuple[Any, ...]:
    one = rho.dtype.type(1)
    accum = accum * rho + grad * grad * (one - rho)
    update = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (one - rho)


def _adagrad(var: Any, accum: Any, lr: Any, grad: Any, update_slots: bool) -> tuple[Any, ...]:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / np.sqrt(accum), accum


def _adagrad_v2(var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any, update_slots: bool) -> tuple[Any, ...]:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / (np.sqrt(accum) + epsilon), accum


def _proximal_adagrad(var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any) -> tuple[Any, ...]:
    accum = accum + grad * grad
    rate = lr / np.sqrt(accum)
    return _shrunk(var - grad * rate, rate * l1, rate * l2, l1), accum


def _adagrad_da(
    var: Any,
    gradient_accumulator: Any,
    gradient_squared_accumulator: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    global_step: Any,
) -> tuple[Any, ...]:
    step = global_step.astype(lr.dtype)
    total, squares = gradient_accumulator + grad, gradient_squared_accumulator + grad * grad
    scale = l2 * step * lr + np.sqrt(squares)
    pull = np.sign(total) * np.maximum(np.abs(total) - l1 * step, 0) if l1 > 0 else total
    return -lr * pull / scale, total, squares


def _ftrl(
    var: Any,
    accum: Any,
    linear: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    lr_power: Any,
    multiply_linear_by_lr: bool,
    l2_shrinkage: Any = None,
) -> tuple[Any, ...]:
    def power(value: Any) -> Any:
        return np.sqrt(value) if lr_power == -0.5 else value ** (-lr_power)

    two = lr.dtype.type(2)
    pull = grad if l2_shrinkage is None else grad + two * l2_shrinkage * var
    total = accum + grad * grad
    if multiply_linear_by_lr:
        linear = linear + pull * lr - (power(total) - power(accum)) * var
        bound, scale = l1 * lr, power(total) + two * l2 * lr
    else:
        linear = linear + pull - (power(total) - power(accum)) / lr * var
        bound, scale = l1, power(total) / lr + two * l2
    return np.where(np.abs(linear) > bound, (np.sign(linear) * bound - linear) / scale, 0), total, linear


def _momentum(var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, use_nesterov: bool) -> tuple[Any, ...]:
    accum = accum * momentum + grad
    return var - (grad * lr + accum * momentum * lr if use_nesterov else accum * lr), accum


def _keras_momentum(var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, use_nesterov: bool) -> tuple[Any, ...]:
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if use_nesterov else accum), accum


def _adam(
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    use_nesterov: bool = False,
) -> tuple[Any, ...]:
    one = lr.dtype.type(1)
    rate = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    m, v = m + (grad - m) * (one - beta1), v + (grad * grad - v) * (one - beta2)
    ahead = grad * (one - beta1) + beta1 * m if use_nesterov else m
    return var - ahead * rate / (np.sqrt(v) + epsilon), m, v


def _adam_with_amsgrad(
    var: Any,
    m: Any,
    v: Any,
    vhat: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> tuple[Any, ...]:
    one = lr.dtype.type(1)
    rate = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    m, v = m + (grad - m) * (one - beta1), v + (grad * grad - v) * (one - beta2)
    vhat = np.maximum(vhat, v)
    return var - m * rate / (np.sqrt(vhat) + epsilon), m, v, vhat


def _ada_max(
    var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    one = lr.dtype.type(1)
    m, v = m + (grad - m) * (one - beta1), np.maximum(beta2 * v, np.abs(grad))
    return var - lr / (one - beta1_power) * (m / (v + epsilon)), m, v


def _rms_prop(
    var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    ms = ms + (grad * grad - ms) * (lr.dtype.type(1) - rho)
    mom = mom * momentum + grad * lr / np.sqrt(ms + epsilon)
    return var - mom, ms, mom


def _centered_rms_prop(
    var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    rest = lr.dtype.type(1) - rho
    ms, mg = ms + (grad * grad - ms) * rest, mg + (grad - mg) * rest
    mom = mom * momentum + grad * lr / np.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def _add_sign(var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> tuple[Any, ...]:
    m = m * beta + grad * (lr.dtype.type(1) - beta)
    return var - lr * (alpha + sign_decay * np.sign(grad) * np.sign(m)) * grad, m


def _power_sign(var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any) -> tuple[Any, ...]:
    m = m * beta + grad * (lr.dtype.type(1) - beta)
    return var - lr * np.exp(logbase * sign_decay * np.sign(grad) * np.sign(m)) * grad, m


def _shrunk(value: Any, by: Any, scale: Any, l1: Any) -> Any:
    """The proximal operator of ``l1 |x| + l2 x^2 / 2``."""
    one = value.dtype.type(1)
    return (np.sign(value) * np.maximum(np.abs(value) - by, 0) if l1 > 0 else value) / (one + scale)


FORMULAS: dict[str, Formula] = {
    "AdaMax": _ada_max,
    "Adadelta": _adadelta,
    "Adagrad": _adagrad,
    "AdagradDA": _adagrad_da,
    "AdagradV2": _adagrad_v2,
    "Adam": _adam,
    "AdamWithAmsgrad": _adam_with_amsgrad,
    "AddSign": _add_sign,
    "CenteredRMSProp": _centered_rms_prop,
    "Ftrl": _ftrl,
    "FtrlV2": _ftrl,
    "GradientDescent": _gradient_descent,
    "KerasMomentum": _keras_momentum,
    "Momentum": _momentum,
    "PowerSign": _power_sign,
    "ProximalAdagrad": _proximal_adagrad,
    "ProximalGradientDescent": _proximal_gradient_descent,
    "RMSProp": _rms_prop,
}
"""By the end of the operator's name."""


@kernel(*[start + name for start in (DENSE, SPARSE) for name in FORMULAS if start + name in KNOWN_OPERATORS])
def step(call: Call, *operands: Any) -> None:
    """A step of an optimizer; of a sparse one on the rows at ``indices``."""
    formula = FORMULAS[call.op.removeprefix(SPARSE).removeprefix(DENSE)]
    names = [argument.name for argument in call.node.inputs]
    handles = [n for n, argument in enumerate(call.node.inputs) if argument.types == (TensorType.RESOURCE,)]
    given = dict(zip(names, operands, strict=True))
    indices: Array | None = given.pop("indices", None)
    slots = {names[n]: variable(call, operands[n], call.dtype("T")) for n in handles}
    shape = slots["var"].shape
    change = "delta" if "delta" in given else "grad"
    rows = shape if indices is None else (*indices.shape, *shape[1:])
    call.require(given[change].shape == rows, f"{change} must have shape {list(rows)}, got {list(given[change].shape)}")
    for name, value in slots.items():
        call.require(value.shape == shape, f"{name} must have the shape of var, {list(shape)}, got {list(value.shape)}")
    numbers = {name: value for name, value in given.items() if name not in slots}
    for name, value in numbers.items():
        call.require(name == change or not value.ndim, f"{name} must be a scalar, got shape {list(value.shape)}")
    numbers |= {name: call.attributes.bool(name) for name in SWITCHES if name in call.attributes}
    if indices is None:
        results = formula(**slots, **numbers)
    else:
        call.require(indices.ndim == 1 and shape, "indices must be a vector, and var have rows")
        require_range(call, "indices", indices, shape[0])
        results = tuple([value.copy() for value in slots.values()])
        grad = numbers.pop(change)
        for turn in _turns(indices):
            places = indices[turn]
            held = {name: value[places] for name, value in zip(slots, results, strict=True)}
            for value, new in zip(results, formula(**held, **numbers, **{change: grad[turn]}), strict=True):
                value[places] = new
    for n, name, value in zip(handles, slots, results, strict=True):
        call.resources.variables[operands[n]] = np.asarray(value, slots[name].dtype)


def _turns(indices: Array) -> list[Array]:
    """Places of indices: first those of each first one, then those of each second one."""
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if indices.size else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[starts, indices.size])
    number = np.arange(indices.size) - np.repeat(starts, sizes)
    return [order[number == turn] for turn in range(int(sizes.max(initial=0)))]
