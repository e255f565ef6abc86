"""Products of matrices, and convolutions."""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks.complex_numbers import of_parts, parts
from gossamer.convert.blocks.convolution import conv, conv_transpose
from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.indexing import flip, pad
from gossamer.convert.blocks.shapes import cast, transpose
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.jax import Call, lowers
from gossamer.schema.enums import TensorType

T = TensorType


@lowers("dot_general")
def dot_general(call: Call) -> Value:
    """The axes of the result are the common ones, then what is left of the left operand, then of the right one."""
    (inner_left, inner_right), (batch_left, batch_right) = call.params["dimension_numbers"]
    x, y = call.values()
    letters = iter(string.ascii_letters)
    left, right = [next(letters) for _ in range(x.rank)], [next(letters) for _ in range(y.rank)]
    for mine, theirs in zip([*inner_left, *batch_left], [*inner_right, *batch_right], strict=True):
        right[theirs] = left[mine]
    common = [left[axis] for axis in batch_left]
    rows, columns = [x for x in left if x not in right], [x for x in right if x not in left]
    equation = f"{''.join(left)},{''.join(right)}->{''.join([*common, *rows, *columns])}"
    if call.type == T.COMPLEX64:
        return _complex(call.graph, equation, x, y)
    wide = call.type if call.type in (T.FLOAT32, T.INT64) else T.INT32
    product = einsum(call.graph, equation, cast(call.graph, x, wide), cast(call.graph, y, wide))
    return cast(call.graph, product, call.type)


def _complex(graph: Graph, equation: str, x: Value, y: Value) -> Value:
    (a, b), (c, d) = [parts(graph, cast(graph, one, T.COMPLEX64)) for one in (x, y)]
    real = graph.add("SUB", einsum(graph, equation, a, c), einsum(graph, equation, b, d))
    return of_parts(graph, real, graph.add("ADD", einsum(graph, equation, a, d), einsum(graph, equation, b, c)))


@lowers("conv_general_dilated")
def conv_general_dilated(call: Call) -> Value:
    """A convolution of any layout; with elements between those of the input a transposed one."""
    graph, params = call.graph, call.params
    numbers, groups = params["dimension_numbers"], int(params["feature_group_count"])
    if int(params.get("batch_group_count", 1)) != 1:
        refuse("groups of the batch, which only gradients have")
    x = transpose(graph, cast(graph, call.value(0), T.FLOAT32), _last_channels(numbers.lhs_spec))
    filter = transpose(graph, cast(graph, call.value(1), T.FLOAT32), _last_channels(numbers.rhs_spec))
    rank = x.rank - 2
    if not rank:
        refuse("a convolution without places; write it as a product")
    strides, steps = _integers(params["window_strides"], rank), _integers(params["rhs_dilation"], rank)
    between = _integers(params["lhs_dilation"], rank)
    padding = [(int(before), int(after)) for before, after in params["padding"]]
    if any(step != 1 for step in between) and groups == 1 and all(stride == 1 for stride in strides):
        spans = [(window - 1) * step for window, step in zip(filter.shape[1:-1], steps, strict=True)]
        cuts = [(span - before, span - after) for span, (before, after) in zip(spans, padding, strict=True)]
        turned = flip(graph, filter, range(1, rank + 1))
        result = conv_transpose(graph, x, turned, strides=between, dilations=steps, padding=cuts)
    else:
        if any(step != 1 for step in between):
            x = graph.add("DILATE", x, np.array([1, *between, 1], np.int32), np.zeros((), np.float32))
        x = pad(graph, x, [(0, 0), *[(min(before, 0), min(after, 0)) for before, after in padding], (0, 0)])
        more = [(max(before, 0), max(after, 0)) for before, after in padding]
        result = conv(graph, x, filter, strides=strides, dilations=steps, padding=more, groups=groups)
    result = transpose(graph, result, [int(n) for n in np.argsort(_last_channels(numbers.out_spec))])
    return cast(graph, result, call.type)


def _last_channels(spec: Sequence[int]) -> list[int]:
    """Batch or outputs, places, channels, of a specification in the order batch, channels, places."""
    first, channels, *places = [int(axis) for axis in spec]
    return [first, *places, channels]


def _integers(given: Sequence[int] | None, rank: int) -> list[int]:
    return [1] * rank if given is None else [int(number) for number in given]
