"""LSH_PROJECTION: locality-sensitive hashing, bits that are alike for inputs that are alike.

``seeds`` is float32 [functions, bits], bits <= 32; ``input`` has n >= 1 rows of any type; ``weights`` float32 [n],
all 1 if left out. The bit of a seed is the sign (1 for > 0) of ``sum(weights[i] * h(seed, row i))`` in float64, in the
order of rows, where h is the FarmHash fingerprint of the 4 bytes of the seed and the bytes of the row, as a signed
64-bit integer. Rows of strings are equal parts of the serialized string buffer.

SPARSE: int32 [functions], function k gives its bits as a number, the first bit highest, plus ``k << bits`` (modulo
2**32; 32 bits shift by 0, as on x86). DENSE: int32 [functions * bits], the bits themselves.
"""

from __future__ import annotations

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import encode_strings, is_packed, pack
from gossamer.ops._farm_hash import signs_of_hashes
from gossamer.ops._layout import NUMBER_TYPES, checked_shape, require_rank, require_shape
from gossamer.ops._reduce import folded
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import LSHProjectionType, TensorType
from gossamer.schema.options import LSHProjectionOptions

op = OpDef(
    "LSH_PROJECTION",
    inputs=("seeds", "input", "weights?"),
    outputs=("output",),
    versions=versions("1.5.0"),
    types={
        "seeds": (TensorType.FLOAT32,),
        "input": (*NUMBER_TYPES, TensorType.STRING),
        "weights": (TensorType.FLOAT32,),
        "output": (TensorType.INT32,),
    },
    options=LSHProjectionOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    seeds, source = ctx.input(0), ctx.input(1)
    require_rank(ctx, "seeds", seeds, 2)
    functions, bits = seeds.shape
    ctx.require(bits <= 32, f"seeds must make at most 32 bits for each function, got {bits}")
    ctx.require(
        source.shape and source.shape[0] >= 1, f"input must have at least one row, got shape {list(source.shape)}"
    )
    if len(ctx.inputs) == 3:
        require_shape(ctx, "weights", ctx.input(2), source.shape[:1])
    kind = ctx.options.type
    if kind == LSHProjectionType.SPARSE:
        ctx.set_shape(0, (functions,))
    elif kind == LSHProjectionType.DENSE:
        ctx.set_shape(0, checked_shape(ctx, [functions * bits]))
    else:
        ctx.fail(f"type must be SPARSE or DENSE, got {getattr(kind, 'name', kind)}")


@op.reference
def reference(ctx: InvokeContext) -> Array:
    seeds, rows, weights = ctx.value(0), _rows(ctx), ctx.optional_value(2)
    bits = np.array([signs_of_hashes(function, rows, weights) for function in seeds], np.int32).reshape(seeds.shape)
    if ctx.options.type == LSHProjectionType.DENSE:
        return bits.reshape(-1)
    functions, width = seeds.shape
    places = np.arange(width - 1, -1, -1, dtype=np.uint32)
    signatures = (bits.astype(np.uint32) << places).sum(1, dtype=np.uint32)
    offsets = np.arange(functions, dtype=np.uint32) << np.uint32(width % 32)
    numbers: Array = (signatures + offsets).view(np.int32)
    return numbers


def _rows(ctx: InvokeContext) -> NDArray[np.uint8]:
    """The bytes of the input, row by row, as they lie in memory."""
    value, source = ctx.value(1), ctx.input(1)
    if source.type == TensorType.STRING:
        data = np.frombuffer(encode_strings(value), np.uint8)
    elif is_packed(source.type):
        data = pack(value, source.type)
    else:
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    count = source.shape[0]
    width = data.size // count
    return data[: count * width].reshape(count, width)


@op.lower
def lower(graph: Lowering) -> None:
    source, seeds = graph.input(1), graph.value(0)
    rows = graph.packed(1) if is_packed(source.type) else graph.value(1)
    weights = graph.optional_value(2) if len(graph.inputs) == 3 else None
    if weights is None:
        weights = graph.array(np.ones(source.shape[0], np.float32))
    bits = graph.kernel("hashsigns", seeds, rows, weights, shape=seeds.shape, type=TensorType.INT32)
    if graph.options.type == LSHProjectionType.DENSE:
        graph.result(graph.reshape(bits, graph.output().shape))
        return
    functions, width = seeds.shape
    places = graph.array(np.arange(width - 1, -1, -1, dtype=np.int32))
    numbers = folded(graph, "add", graph.map("shiftleft", bits, places), 1)
    offsets = (np.arange(functions, dtype=np.uint32) << np.uint32(width % 32)).view(np.int32)
    graph.result(graph.map("add", graph.reshape(numbers, (functions,)), graph.array(offsets)))
