"""Reductions, windows, running results, positions of extremes, sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.convert.blocks import reductions as over
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import product, take_along
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.pooling import pool
from gossamer.convert.blocks.shapes import cast, reshape, sizes, transpose
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.jax import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType

REDUCED = {
    "reduce_sum": "SUM",
    "reduce_max": "REDUCE_MAX",
    "reduce_min": "REDUCE_MIN",
    "reduce_prod": "REDUCE_PROD",
    "reduce_and": "REDUCE_ALL",
    "reduce_or": "REDUCE_ANY",
}

OF_BOOL = {"SUM": "REDUCE_ANY", "REDUCE_MAX": "REDUCE_ANY", "REDUCE_MIN": "REDUCE_ALL", "REDUCE_PROD": "REDUCE_ALL"}

BY_ADDING = {"add": "reduce_sum", "max": "reduce_max", "min": "reduce_min", "mul": "reduce_prod", "and": "reduce_and"}
BY_ADDING |= {"or": "reduce_or"}
"""The reduction by the primitive that joins two elements."""


@lowers(*REDUCED)
def reduced(call: Call) -> Value:
    return _reduced(call.graph, REDUCED[call.name], call.value(0), call.params["axes"])


def _reduced(graph: Graph, op: str, x: Value, axes: Any) -> Value:
    if x.type == T.BOOL:
        op = OF_BOOL.get(op, op)
    elif op in ("REDUCE_ALL", "REDUCE_ANY"):
        refuse("joins the bits of integers")
    return over.reduce(graph, op, x, [int(axis) for axis in axes])


@lowers("reduce")
def reduce(call: Call) -> Value:
    """A reduction that is spelled as a function of two elements."""
    if len(call.inputs) != 2:
        refuse("reduces several operands at once")
    x, start = call.value(0), call.operand(1)
    name = _joined(call.params["jaxpr"])
    found = _reduced(call.graph, REDUCED[BY_ADDING[name]], x, call.params["dimensions"])
    if x.type == T.BOOL:
        return call.add("LOGICAL_AND" if name in ("and", "min", "mul") else "LOGICAL_OR", found, start)
    return widened(call.graph, {"add": "ADD", "mul": "MUL", "max": "MAXIMUM", "min": "MINIMUM"}[name], found, start)


def _joined(jaxpr: Any) -> str:
    """The one primitive of a function of two elements. Raises `Refused` if it is none that reduces."""
    equations = getattr(jaxpr, "jaxpr", jaxpr).eqns
    if len(equations) != 1 or equations[0].primitive.name not in BY_ADDING:
        refuse("reduces with a function that is no sum, product, maximum or minimum")
    return str(equations[0].primitive.name)


@lowers("argmax", "argmin")
def arg(call: Call) -> Value:
    (axis,) = call.params["axes"]
    found = over.position(call.graph, f"ARG_{call.name[3:].upper()}", call.value(0), int(axis), type=T.INT32)
    return cast(call.graph, found, call.type)


# -- windows

WINDOWS = {"reduce_window_sum": "SUM", "reduce_window_max": "MAX", "reduce_window_min": "MIN"}


@lowers(*WINDOWS)
def reduce_window(call: Call) -> Value:
    return _pooled(call, WINDOWS[call.name])


@lowers("reduce_window")
def reduce_window_of(call: Call) -> Value:
    if len(call.inputs) != 2:
        refuse("reduces several operands at once")
    name = _joined(call.params["jaxpr"])
    if name not in ("add", "max", "min"):
        refuse(f"windows joined by {name}")
    start = call.operand(1).data
    least, most = (-math.inf, math.inf) if call.inputs[0].dtype.kind == "f" else _ends(call.inputs[0])
    if start is None or start.reshape(()).item() != {"add": 0, "max": least, "min": most}[name]:
        refuse("windows that start with another number than one that changes nothing")
    return _pooled(call, WINDOWS[f"reduce_window_{name.replace('add', 'sum')}"])


def _pooled(call: Call, kind: str) -> Value:
    """The axes that windows are over become places, others the batch, and the last of them the channels."""
    graph, x, params = call.graph, call.value(0), call.params
    if kind == "MIN":
        x = widened(graph, "NEG", x)
    ones = [1] * x.rank
    window, strides = list(params["window_dimensions"]), list(params["window_strides"] or ones)
    dilations, padding = list(params.get("window_dilation") or ones), [tuple(pads) for pads in params["padding"]]
    if any(step != 1 for step in params.get("base_dilation") or ones):
        refuse("windows over an input with elements put between")
    places = [n for n in range(x.rank) if (window[n], strides[n], *padding[n]) != (1, 1, 0, 0)]
    if not places:
        return call.value(0)
    others = [n for n in range(x.rank) if n not in places]
    order = [*others[:-1], *places, *others[-1:]]
    moved_x = transpose(graph, x, order)
    batch, channels = sizes(moved_x)[: len(others[:-1])], sizes(moved_x)[x.rank - len(others[-1:]) :]
    inner = [x.size(n) for n in places]
    flat = reshape(graph, moved_x, [product(batch), *inner, product(channels)])
    found = pool(
        graph,
        "SUM" if kind == "SUM" else "MAX",
        flat,
        [int(window[n]) for n in places],
        [int(strides[n]) for n in places],
        [(int(padding[n][0]), int(padding[n][1])) for n in places],
        dilations=[int(dilations[n]) for n in places],
    )
    found = reshape(graph, found, [*batch, *sizes(found)[1:-1], *channels], moved_x, *graph.inputs)
    found = transpose(graph, found, [int(n) for n in np.argsort(order)])
    return widened(graph, "NEG", found) if kind == "MIN" else found


def _ends(x: Value) -> tuple[int, int]:
    """The least and the largest of integers."""
    return int(np.iinfo(x.dtype).min), int(np.iinfo(x.dtype).max)


# -- running results

RUNNING = {"cumprod": ("MUL", 1), "cummax": ("MAXIMUM", -math.inf), "cummin": ("MINIMUM", math.inf)}


@lowers("cumsum")
def cumsum(call: Call) -> Value:
    axis, backwards = int(call.params["axis"]), bool(call.params.get("reverse"))
    return over.cumulative_sum(call.graph, call.value(0), axis, reverse=backwards)


@lowers(*RUNNING)
def cumulative(call: Call) -> Value:
    op, identity = RUNNING[call.name]
    x = call.value(0)
    if x.dtype.kind != "f" and math.isinf(identity):
        identity = _ends(x)[int(identity > 0)]
    return _both_ways(call, x, lambda y, axis: over.cumulative(call.graph, op, y, axis, identity))


@lowers("cumlogsumexp")
def cumlogsumexp(call: Call) -> Value:
    x, axis = call.value(0), int(call.params["axis"])
    most = over.reduce(call.graph, "REDUCE_MAX", x, [axis], keepdims=True)
    powers = call.add("EXP", call.add("SUB", x, most))
    total = over.cumulative_sum(call.graph, powers, axis, reverse=bool(call.params.get("reverse")))
    return call.add("ADD", call.add("LOG", total), most)


def _both_ways(call: Call, x: Value, running: Any) -> Value:
    axis = int(call.params["axis"])
    if not call.params.get("reverse"):
        return running(x, axis)  # type: ignore[no-any-return]
    turned = moved(call.graph, "REVERSE_V2", x, np.array([axis], np.int32))
    return moved(call.graph, "REVERSE_V2", running(turned, axis), np.array([axis], np.int32))


# -- order


@lowers("sort")
def sort(call: Call) -> list[Value]:
    """All operands in the order of the first ones: sorted by the last key first, which the ones before leave as it is
    where they are equal."""
    axis, keys = int(call.params["dimension"]), int(call.params.get("num_keys", 1))
    found = call.values()
    if len(found) == 1:
        return [_sorted(call.graph, found[0], axis)[0]]
    for key in range(keys - 1, -1, -1):
        ordered, places = _sorted(call.graph, found[key], axis)
        found = [
            ordered if n == key else places if _counts(one, axis) else take_along(call.graph, one, places, axis)
            for n, one in enumerate(found)
        ]
    return [cast(call.graph, one, meta.type) for one, meta in zip(found, call.results, strict=True)]


def _sorted(graph: Graph, x: Value, axis: int) -> tuple[Value, Value]:
    return over.top(graph, x, None, axis, largest=False)


def _counts(x: Value, axis: int) -> bool:
    """Whether a value is the positions along an axis, as they are before they are sorted."""
    if x.data is None or x.dtype.kind not in "iu":
        return False
    places = np.arange(x.data.shape[axis]).reshape([-1 if n == axis else 1 for n in range(x.rank)])
    return bool((x.data == places).all())


@lowers("top_k")
def top_k(call: Call) -> list[Value]:
    k, axis = int(call.params["k"]), int(call.params.get("axis", -1))
    values, places = over.top(call.graph, call.value(0), k, axis)
    return [values, cast(call.graph, places, call.results[1].type)]


@lowers("approx_top_k")
def approx_top_k(call: Call) -> list[Value]:
    """Exactly."""
    axis, k = int(call.params["reduction_dimension"]), int(call.params["k"])
    values, places = over.top(call.graph, call.value(0), k, axis, largest=bool(call.params["is_max_k"]))
    return [values, cast(call.graph, places, call.results[1].type)]
