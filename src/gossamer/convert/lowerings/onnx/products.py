"""Products of matrices."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks import products as blocks
from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.elimination import MOST_ROWS, eliminated
from gossamer.convert.blocks.shapes import cast, transpose
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.onnx import Call, lowers
from gossamer.schema.enums import TensorType as T


@lowers("MatMul")
def matmul(call: Call) -> Value:
    return blocks.matmul(call.graph, call.value(0), call.value(1))


@lowers("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def fused_matmul(call: Call) -> Value:
    x, y = call.value(0), call.value(1)
    result = blocks.matmul(call.graph, x, y, adj_x=call.flag("transA"), adj_y=call.flag("transB"))
    alpha = call.float("alpha", 1.0)
    return result if alpha == 1 else call.add("MUL", result, alpha)


@lowers("com.microsoft.GemmFastGelu")
def gemm_fast_gelu(call: Call) -> Value:
    total = blocks.matmul(call.graph, call.value(0), call.value(1))
    bias = call.optional(2)
    return call.add("GELU", total if bias is None else call.add("ADD", total, bias), approximate=True)


@lowers("Gemm")
def gemm(call: Call) -> Value:
    """alpha * A B + beta * C: FULLY_CONNECTED, with its bias where C is a constant for each column."""
    graph, x, y = call.graph, call.value(0), call.value(1)
    own = x.type
    if own != T.FLOAT32:
        x, y = cast(graph, x, T.FLOAT32), cast(graph, y, T.FLOAT32)
    alpha, beta = call.float("alpha", 1.0), call.float("beta", 1.0)
    if call.flag("transA"):
        x = transpose(graph, x, (1, 0))
    c = call.optional(2)
    if c is not None and 0 in c.dims:
        c = None
    if c is not None and (c.type != T.FLOAT32 or beta != 1):
        c = graph.add("MUL", cast(graph, c, T.FLOAT32), beta)
    weights = y if call.flag("transB") else transpose(graph, y, (1, 0))
    units = weights.dims[0]
    if y.data is None:
        product = graph.add("BATCH_MATMUL", x, y, adj_y=call.flag("transB"))
        product = product if alpha == 1 else graph.add("MUL", product, alpha)
        return _plus(call, product, c, own)
    if alpha != 1:
        weights = graph.add("MUL", weights, alpha)
    flat = c is not None and c.data is not None and c.dims in ((units,), (1, units), (), (1,), (1, 1))
    if c is None or c.data is None or not flat or units is None:
        return _plus(call, graph.add("FULLY_CONNECTED", x, weights), c, own)
    bias = graph.constant(np.broadcast_to(c.data.reshape(-1), (units,)), c.type, c.name)
    return cast(graph, graph.add("FULLY_CONNECTED", x, weights, bias), own)


def _plus(call: Call, product: Value, c: Value | None, type: T) -> Value:
    total = product if c is None else widened(call.graph, "ADD", product, c)
    return cast(call.graph, total, type)


@lowers("Einsum")
def einsum_(call: Call) -> Value:
    values = call.values()
    own = values[0].type
    floats = [cast(call.graph, value, T.FLOAT32) for value in values]
    return cast(call.graph, einsum(call.graph, call.string("equation"), *floats), own)


@lowers("com.microsoft.Inverse")
def inverse(call: Call) -> Value:
    x = call.value(0)
    count = x.shape[-1]
    if count > MOST_ROWS:
        refuse(f"matrices of {count} rows; up to {MOST_ROWS} can be inverted step by step")
    wide = cast(call.graph, x, T.FLOAT32)
    return cast(call.graph, eliminated(call.graph, wide, None, count)[0], x.type)
