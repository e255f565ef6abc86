"""Products of matrices, dense layers, sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import products
from gossamer.convert.blocks.einsum import einsum as sum_of_products
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import roll
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.shapes import reshape, sizes, transpose
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers


@lowers("aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.linalg_matmul", "aten.chain_matmul")
def matmul(
    call: Call,
    self: Value,
    other: Value | None = None,
    mat2: Value | None = None,
    vec: Value | None = None,
    tensor2: Value | None = None,
) -> Value:
    right = next(x for x in (other, mat2, vec, tensor2) if x is not None)
    return products.matmul(call.graph, call.operand(self), call.operand(right))


@lowers("aten.dot", "aten.vdot", "aten.inner", "aten.linalg_vecdot")
def dot(call: Call, self: Value, tensor: Value | None = None, other: Value | None = None, dim: int = -1) -> Value:
    right = tensor if tensor is not None else other
    if right is None:
        refuse("a product with nothing")
    if call.packet == "aten.inner" and self.rank and right.rank:
        order = [*range(right.rank - 2), right.rank - 1, right.rank - 2] if right.rank > 1 else [0]
        return products.matmul(call.graph, self, transpose(call.graph, right, order))
    product = widened(call.graph, "MUL", call.operand(self), call.operand(right))
    return reduce(call.graph, "SUM", product, [dim]) if product.rank and call.packet != "aten.inner" else product


@lowers("aten.outer", "aten.ger")
def outer(call: Call, self: Value, vec2: Value) -> Value:
    column = call.add("EXPAND_DIMS", call.operand(self), np.array(1, np.int32))
    return widened(call.graph, "MUL", column, call.add("EXPAND_DIMS", call.operand(vec2), np.array(0, np.int32)))


@lowers("aten.linear")
def linear(call: Call, input: Value, weight: Value, bias: Value | None = None) -> Value:
    if weight.rank == 1:
        made = products.matmul(call.graph, input, weight)
        return made if bias is None else call.add("ADD", made, bias)
    if input.dtype.kind != "f":
        made = products.matmul(call.graph, input, weight, adj_y=True)
        return made if bias is None else widened(call.graph, "ADD", made, bias)
    return products.fully_connected(call.graph, input, weight, bias)


@lowers("aten.bilinear")
def bilinear(call: Call, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    made = sum_of_products(call.graph, "...i,oij,...j->...o", input1, weight, input2)
    return made if bias is None else call.add("ADD", made, bias)


@lowers("aten.addmm", "aten.addmv", "aten.baddbmm", "aten.addbmm", "aten.addr", "aten._addmm_activation")
def addmm(
    call: Call,
    self: Value,
    mat1: Value | None = None,
    mat2: Value | None = None,
    mat: Value | None = None,
    vec: Value | None = None,
    batch1: Value | None = None,
    batch2: Value | None = None,
    vec1: Value | None = None,
    vec2: Value | None = None,
    beta: Number = 1,
    alpha: Number = 1,
    use_gelu: bool = False,
) -> Value:
    graph = call.graph
    left = next(x for x in (mat1, mat, batch1, vec1) if x is not None)
    right = next(x for x in (mat2, vec, batch2, vec2) if x is not None)
    if (
        call.packet == "aten.addmm"
        and (beta, alpha) == (1, 1)
        and self.rank == 1
        and self.data is not None
        and self.data.size == right.shapes[0][-1]
        and left.dtype.kind == "f"
    ):
        return products.fully_connected(graph, left, transpose(graph, right, (1, 0)), self)
    if call.packet == "aten.addr":
        product = outer(call, left, right)
    else:
        product = products.matmul(graph, call.operand(left), call.operand(right))
    if call.packet == "aten.addbmm":
        product = reduce(graph, "SUM", product, [0])
    if isinstance(alpha, Value) or alpha != 1:
        product = widened(graph, "MUL", product, call.operand(alpha))
    if not isinstance(beta, Value) and beta == 0:
        return product
    added = call.operand(self)
    if isinstance(beta, Value) or beta != 1:
        added = widened(graph, "MUL", added, call.operand(beta))
    product = widened(graph, "ADD", product, added)
    if call.packet == "aten._addmm_activation":
        return call.add("GELU", product) if use_gelu else call.add("RELU", product)
    return product


@lowers("aten.einsum")
def einsum(call: Call, equation: str, tensors: Sequence[Value], path: Any = None) -> Value:
    return sum_of_products(call.graph, equation, *[call.operand(tensor) for tensor in tensors])


@lowers("aten.tensordot")
def tensordot(call: Call, self: Value, other: Value, dims_self: Sequence[int], dims_other: Sequence[int]) -> Value:
    letters = "abcdefghijklmnopqrstuvwxyz"
    left, right = list(letters[: self.rank]), list(letters[self.rank : self.rank + other.rank])
    for mine, theirs in zip(dims_self, dims_other, strict=True):
        right[theirs % other.rank] = left[mine % self.rank]
    result = [x for x in left if x not in right] + [x for x in right if x not in left]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(result)}"
    return sum_of_products(call.graph, equation, call.operand(self), call.operand(other))


@lowers("aten.kron")
def kron(call: Call, self: Value, other: Value) -> Value:
    rank = max(self.rank, other.rank)
    x, y = [[*[1] * (rank - one.rank), *sizes(one)] for one in (self, other)]
    left = reshape(call.graph, call.operand(self), [size for one in x for size in (one, 1)])
    right = reshape(call.graph, call.operand(other), [size for one in y for size in (1, one)])
    return reshape(call.graph, widened(call.graph, "MUL", left, right), list(call.result.shape))


@lowers("aten.cross", "aten.linalg_cross")
def cross(call: Call, self: Value, other: Value, dim: int | None = None) -> Value:
    axis = next(n for n, size in enumerate(self.dims) if size == 3) if dim is None else dim
    axis = -1 if dim is None and call.packet == "aten.linalg_cross" else axis
    x, y = call.operand(self), call.operand(other)
    first = widened(call.graph, "MUL", roll(call.graph, x, -1, axis), roll(call.graph, y, -2, axis))
    second = widened(call.graph, "MUL", roll(call.graph, x, -2, axis), roll(call.graph, y, -1, axis))
    return widened(call.graph, "SUB", first, second)


@lowers("aten._trilinear")
def trilinear(
    call: Call,
    i1: Value,
    i2: Value,
    i3: Value,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Value:
    """The sum of products of three tensors, each with new axes where it is said."""
    wide = []
    for x, axes in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for axis in sorted(axes):
            x = call.add("EXPAND_DIMS", x, np.array(axis, np.int32))
        wide.append(call.operand(x))
    product = widened(call.graph, "MUL", widened(call.graph, "MUL", wide[0], wide[1]), wide[2])
    return reduce(call.graph, "SUM", product, sumdim)
