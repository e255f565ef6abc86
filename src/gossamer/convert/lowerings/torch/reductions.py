"""Reductions, positions of extremes, running results, sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import reductions as over
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import gather, slice_axis
from gossamer.convert.blocks.shapes import cast, reshape, transpose
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers
from gossamer.convert.lowerings.torch.views import diagonal
from gossamer.schema.enums import TensorType

Dim = int | Sequence[int] | None


def axes_of(dim: Dim, *, empty_is_all: bool = True) -> list[int] | None:
    """Axes, ``None`` for all: so torch means an empty list in most places."""
    if dim is None or (empty_is_all and not isinstance(dim, int) and not dim):
        return None
    return [dim] if isinstance(dim, int) else list(dim)


_PLAIN = {
    "sum": "SUM",
    "mean": "MEAN",
    "prod": "REDUCE_PROD",
    "amax": "REDUCE_MAX",
    "amin": "REDUCE_MIN",
    "any": "REDUCE_ANY",
    "all": "REDUCE_ALL",
}


@lowers(*[f"aten.{name}" for name in _PLAIN])
def reduced(call: Call, self: Value, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Value:
    op = _PLAIN[call.packet[5:]]
    x = self if op in ("REDUCE_ANY", "REDUCE_ALL") else call.operand(self)
    return over.reduce(call.graph, op, x, axes_of(dim), keepdims=keepdim)


@lowers("aten.nansum", "aten.nanmean")
def without_nan(call: Call, self: Value, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Value:
    x = call.operand(self)
    if x.dtype.kind != "f":
        return over.reduce(call.graph, "SUM", x, axes_of(dim), keepdims=keepdim)
    real = call.add("EQUAL", x, x)
    total = over.reduce(call.graph, "SUM", call.add("SELECT_V2", real, x, 0.0), axes_of(dim), keepdims=keepdim)
    if call.packet == "aten.nansum":
        return total
    count = over.reduce(call.graph, "SUM", cast(call.graph, real, x.type), axes_of(dim), keepdims=keepdim)
    return call.add("DIV", total, count)


@lowers("aten.trace")
def trace(call: Call, self: Value) -> Value:
    return over.reduce(call.graph, "SUM", diagonal(call, call.operand(self)))


@lowers("aten.count_nonzero")
def count_nonzero(call: Call, self: Value, dim: Dim = None) -> Value:
    hits = cast(call.graph, over.truth(call.graph, self), call.type)
    return over.reduce(call.graph, "SUM", hits, axes_of(dim))


@lowers("aten.max", "aten.min")
def extreme(
    call: Call, self: Value, dim: int | None = None, keepdim: bool = False, other: Value | None = None
) -> Value | tuple[Value, Value]:
    name = call.packet[5:].upper()
    if other is not None:
        return widened(call.graph, f"{name}IMUM", call.operand(self), call.operand(other))
    value = over.reduce(call.graph, f"REDUCE_{name}", self, axes_of(dim), keepdims=keepdim)
    if dim is None:
        return value
    return value, over.position(call.graph, f"ARG_{name}", self, dim, keepdims=keepdim)


@lowers("aten.aminmax")
def aminmax(call: Call, self: Value, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    found = [over.reduce(call.graph, op, self, axes_of(dim), keepdims=keepdim) for op in ("REDUCE_MIN", "REDUCE_MAX")]
    return found[0], found[1]


@lowers("aten.argmax", "aten.argmin")
def arg(call: Call, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return over.position(call.graph, f"ARG_{call.packet[-3:].upper()}", self, dim, keepdims=keepdim)


@lowers("aten.var", "aten.std", "aten.var_mean", "aten.std_mean")
def variance(
    call: Call,
    self: Value,
    dim: Dim | bool = None,
    unbiased: bool = True,
    correction: Number | None = None,
    keepdim: bool = False,
) -> Value | tuple[Value, Value]:
    if isinstance(dim, bool):
        unbiased = dim
        dim = None
    less = float(unbiased) if correction is None else correction
    if isinstance(less, Value):
        refuse("a correction that follows from open sizes")
    found = over.variance(call.graph, self, axes_of(dim), keepdims=keepdim, correction=float(less))
    found = call.add("SQRT", found) if "std" in call.packet else found
    if not call.packet.endswith("_mean"):
        return found
    return found, over.reduce(call.graph, "MEAN", self, axes_of(dim), keepdims=keepdim)


@lowers("aten.logsumexp", "aten.special_logsumexp")
def logsumexp(call: Call, self: Value, dim: Dim, keepdim: bool = False) -> Value:
    return over.log_sum_exp(call.graph, call.operand(self), axes_of(dim), keepdims=keepdim)


@lowers("aten.norm", "aten.linalg_vector_norm", "aten.linalg_norm", "aten.linalg_matrix_norm", "aten.frobenius_norm")
def norm(
    call: Call,
    self: Value,
    p: Number | str | None = None,
    ord: Number | str = 2,
    dim: Dim = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Value:
    order = ord if call.packet.startswith("aten.linalg") else 2 if p is None else p
    if call.packet == "aten.linalg_matrix_norm" or isinstance(order, str):
        if order not in ("fro", 2) or (call.packet == "aten.linalg_matrix_norm" and order != "fro"):
            refuse(f"the matrix norm {order!r}")
        order = 2
        dim = (-2, -1) if dim is None and call.packet == "aten.linalg_matrix_norm" else dim
    if isinstance(order, Value):
        refuse("an order that follows from open sizes")
    return over.norm(call.graph, call.operand(self), float(order), axes_of(dim), keepdims=keepdim)


@lowers("aten.dist", "aten._cdist_forward", "aten.cdist", "aten._euclidean_dist", "aten.pairwise_distance")
def distances(
    call: Call,
    self: Value | None = None,
    other: Value | None = None,
    p: float = 2,
    x1: Value | None = None,
    x2: Value | None = None,
    compute_mode: int | None = None,
    eps: float = 1e-6,
    keepdim: bool = False,
) -> Value:
    x, y = (self if self is not None else x1), (other if other is not None else x2)
    if x is None or y is None:
        refuse("distances of nothing")
    if call.packet == "aten.dist":
        return over.norm(call.graph, call.add("SUB", x, y), float(p))
    if call.packet == "aten.pairwise_distance":
        gap = call.add("ADD", call.add("SUB", x, y), float(eps))
        return over.norm(call.graph, gap, float(p), [-1], keepdims=keepdim)
    rows = call.add("EXPAND_DIMS", x, np.array(x.rank - 1, np.int32))
    columns = call.add("EXPAND_DIMS", y, np.array(y.rank - 2, np.int32))
    return over.norm(call.graph, call.add("SUB", rows, columns), float(p), [-1])


@lowers("aten.cosine_similarity")
def cosine_similarity(call: Call, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    product = over.reduce(call.graph, "SUM", call.add("MUL", x1, x2), [dim])
    sizes = [call.add("MAXIMUM", over.norm(call.graph, x, 2, [dim]), float(eps)) for x in (x1, x2)]
    return call.add("DIV", product, call.add("MUL", *sizes))


# -- along an axis


@lowers("aten.cumsum")
def cumsum(call: Call, self: Value, dim: int, dtype: Any = None) -> Value:
    return over.cumulative_sum(call.graph, call.operand(self), dim)


@lowers("aten.cumprod")
def cumprod(call: Call, self: Value, dim: int, dtype: Any = None) -> Value:
    return over.cumulative(call.graph, "MUL", call.operand(self), dim, 1)


@lowers("aten.cummax", "aten.cummin")
def cumulative_extreme(call: Call, self: Value, dim: int) -> tuple[Value, Value]:
    return over.running_extreme(call.graph, f"{call.packet[-3:].upper()}IMUM", self, dim)


@lowers("aten.logcumsumexp")
def logcumsumexp(call: Call, self: Value, dim: int) -> Value:
    if not self.rank:
        return self
    most = over.reduce(call.graph, "REDUCE_MAX", self, [dim], keepdims=True)
    powers = over.cumulative_sum(call.graph, call.add("EXP", call.add("SUB", self, most)), dim)
    return call.add("ADD", call.add("LOG", powers), most)


@lowers("aten.diff")
def diff(
    call: Call, self: Value, n: int = 1, dim: int = -1, prepend: Value | None = None, append: Value | None = None
) -> Value:
    parts = [part for part in (prepend, self, append) if part is not None]
    x = self if len(parts) == 1 else call.add("CONCATENATION", *parts, axis=dim % self.rank)
    for _ in range(n):
        later, before = slice_axis(call.graph, x, dim, 1, None), slice_axis(call.graph, x, dim, 0, -1)
        x = widened(call.graph, "NOT_EQUAL" if x.type == TensorType.BOOL else "SUB", later, before)
    return x


@lowers("aten.sort", "aten.argsort", "aten.msort")
def sort(
    call: Call, self: Value, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> Value | tuple[Value, Value]:
    if call.packet == "aten.msort":
        dim = 0
    values, places = over.top(call.graph, self, None, dim, largest=descending)
    if call.packet == "aten.argsort":
        return places
    return values if call.packet == "aten.msort" else (values, places)


@lowers("aten.topk")
def topk(
    call: Call, self: Value, k: Number, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    return over.top(call.graph, self, k if isinstance(k, Value) else int(k), dim, largest=largest)


@lowers("aten.kthvalue")
def kthvalue(call: Call, self: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    values, places = over.top(call.graph, self, int(k), dim, largest=False)
    if not self.rank:
        return values, places
    found = [slice_axis(call.graph, x, dim, int(k) - 1, None) for x in (values, places)]
    if keepdim:
        return found[0], found[1]
    return over.without(call.graph, found[0], [dim]), over.without(call.graph, found[1], [dim])


@lowers("aten.median", "aten.nanmedian")
def median(call: Call, self: Value, dim: int | None = None, keepdim: bool = False) -> Value | tuple[Value, Value]:
    x = over.flat(call.graph, self) if dim is None else self
    axis = 0 if dim is None else dim
    if not x.rank:
        return x, call.graph.constant(0)
    size = x.dims[axis]
    if size is None:
        refuse("the median over an open size; give it with --shape")
    values, places = kthvalue(call, x, (size + 1) // 2, axis, keepdim and dim is not None)
    return values if dim is None else (values, places)


@lowers("aten.bucketize", "aten.searchsorted")
def searchsorted(
    call: Call,
    self: Value | Number | None = None,
    boundaries: Value | None = None,
    sorted_sequence: Value | None = None,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
    input: Value | None = None,
) -> Value:
    """How many boundaries are less than (with ``right``, or equal to) each element."""
    edges = boundaries if boundaries is not None else sorted_sequence
    if edges is None or self is None or sorter is not None:
        refuse("looks for places in a sequence that is sorted by another one")
    x = self if isinstance(self, Value) else call.graph.value(self)
    if edges.type != x.type:
        x, edges = cast(call.graph, x, TensorType.FLOAT32), cast(call.graph, edges, TensorType.FLOAT32)
    if edges.rank > 1:
        edges = call.add("EXPAND_DIMS", edges, np.array(edges.rank - 1, np.int32))
    wide = call.add("EXPAND_DIMS", x, np.array(x.rank, np.int32))
    below = widened(call.graph, "LESS_EQUAL" if right or side == "right" else "LESS", edges, wide)
    return over.reduce(call.graph, "SUM", cast(call.graph, below, TensorType.INT32), [-1])


@lowers("aten.bincount", "aten.histc", "aten.unique_consecutive", "aten._unique2", "aten.unique_dim")
def of_data(call: Call, *ignored: Any, **others: Any) -> Value:
    refuse("the size of the result depends on values")


@lowers("aten.mode", "aten.quantile", "aten.nanquantile")
def quantile(
    call: Call,
    self: Value,
    q: Value | float | int = 0,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Value:
    if (isinstance(q, Value) and q.data is None) or call.packet != "aten.quantile" or interpolation != "linear":
        refuse(f"{call.packet}, and quantile of shares that are not known or without interpolation")
    share = np.asarray(q.data if isinstance(q, Value) else q, np.float64)
    x, axis = (over.flat(call.graph, self), 0) if dim is None else (self, dim % self.rank)
    size = x.shape[axis]
    place = share * (size - 1)
    low = np.floor(place).astype(np.int32)
    values, _ = over.top(call.graph, x, None, axis, largest=False)
    below = gather(call.graph, values, low.reshape(-1), axis)
    above = gather(call.graph, values, np.minimum(low + 1, size - 1).reshape(-1), axis)
    weight = (place - low).reshape(-1).astype(np.float32).reshape([-1 if n == axis else 1 for n in range(x.rank)])
    found = call.add("ADD", below, call.add("MUL", call.add("SUB", above, below), weight))
    if share.ndim:
        found = transpose(call.graph, found, [axis, *[n for n in range(found.rank) if n != axis]])
    return reshape(call.graph, found, list(call.result.shape))
