"""XLA's operators in TensorFlow's graphs, as JAX's models have them. Numbers of dimensions are messages in attributes.

Functions that reduce are known by what they become for two scalars.
"""

from __future__ import annotations

import string
from collections.abc import Container, Sequence
from typing import Any, TypeVar

import numpy as np

from gossamer.convert.blocks.convolution import conv, conv_transpose
from gossamer.convert.blocks.einsum import einsum
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.indexing import flip
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.reductions import reduce
from gossamer.convert.blocks.shapes import cast, transpose
from gossamer.convert.blocks.vectors import index_type
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.convert.lowerings.tensorflow.padding import padded
from gossamer.convert.lowerings.tensorflow.pooling import pooled
from gossamer.convert.messages.xla import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)
from gossamer.convert.wire import Message, read
from gossamer.schema.enums import Padding, ReduceWindowFunction, TensorType

T = TensorType
M = TypeVar("M", bound=Message)

REDUCERS = {
    "ADD": ("SUM", ReduceWindowFunction.ADD),
    "MUL": ("REDUCE_PROD", ReduceWindowFunction.MUL),
    "MAXIMUM": ("REDUCE_MAX", ReduceWindowFunction.MAXIMUM),
    "MINIMUM": ("REDUCE_MIN", ReduceWindowFunction.MINIMUM),
    "LOGICAL_AND": ("REDUCE_ALL", ReduceWindowFunction.ALL),
    "LOGICAL_OR": ("REDUCE_ANY", ReduceWindowFunction.ANY),
}
"""What reduces an axis, and a window, by an operator of two numbers."""


def dimension_numbers(call: Call, kind: type[M]) -> M:
    """The message in the attribute ``dimension_numbers``."""
    return read(kind, call.attributes.bytes("dimension_numbers"), call.node.name)


def numbers(call: Call, position: int, what: str) -> list[int]:
    return [int(number) for number in call.constant(position, what).reshape(-1)]


@lowers("XlaSharding", "XlaOptimizationBarrier", "XlaSpmdFullToShardShape", "XlaSpmdShardToFullShape")
def unchanged(call: Call) -> Any:
    return call.inputs if call.op == "XlaOptimizationBarrier" else call.inputs[0]


@lowers("XlaCallModule")
def call_module(call: Call) -> Value:
    refuse(
        "its body is StableHLO, which is not read; convert the JAX function with "
        "jax2tf.convert(..., native_serialization=False)"
    )


@lowers("XlaSelectAndScatter")
def select_and_scatter(call: Call) -> Value:
    refuse("the gradient of a pool, which models that are run do not need; save the model for inference")


@lowers("XlaDot", "XlaDotV2")
def dot(call: Call) -> Value:
    """Dimensions of the result: those of the batch, then what is left of both operands."""
    graph, (x, y) = call.graph, call.values()
    dims = dimension_numbers(call, DotDimensionNumbers)
    letters = iter(string.ascii_letters)
    left, right = ([next(letters) for _ in range(value.rank)] for value in (x, y))
    batch = list(zip(dims.lhs_batch_dimensions, dims.rhs_batch_dimensions, strict=True))
    inner = list(zip(dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, strict=True))
    for first, second in [*batch, *inner]:
        right[second] = left[first]
    kept = [left[first] for first, _ in batch]
    kept += [letter for letter in [*left, *right] if (letter in left) != (letter in right)]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(kept)}"
    found = einsum(graph, equation, *[cast(graph, value, T.FLOAT32) for value in (x, y)])
    return cast(graph, found, call.attributes.type("preferred_element_type", x.type))


@lowers("XlaEinsum")
def xla_einsum(call: Call) -> Value:
    return einsum(call.graph, call.attributes.text("equation"), *call.values())


@lowers("XlaConv", "XlaConvV2")
def xla_conv(call: Call) -> Value:
    """Elements of the input may be spread (``lhs_dilation``): then it is a transposed convolution."""
    graph = call.graph
    x, filters = (cast(graph, value, T.FLOAT32) for value in call.values(0, 2))
    strides, padding = numbers(call, 2, "the strides"), numbers(call, 3, "the padding")
    spread, dilations = numbers(call, 4, "lhs_dilation"), numbers(call, 5, "rhs_dilation")
    groups = int(call.constant(6, "feature_group_count"))
    if call.attributes.int("batch_group_count", 1) != 1:
        refuse("groups of the batch, as gradients have them; save the model for inference")
    dims = dimension_numbers(call, ConvolutionDimensionNumbers)
    last = [dims.input_batch_dimension, *dims.input_spatial_dimensions, dims.input_feature_dimension]
    kernel = [
        dims.kernel_output_feature_dimension,
        *dims.kernel_spatial_dimensions,
        dims.kernel_input_feature_dimension,
    ]
    x, filters = transpose(graph, x, last), transpose(graph, filters, kernel)
    pairs = list(zip(padding[::2], padding[1::2], strict=True))
    if any(step != 1 for step in spread):
        if any(step != 1 for step in strides) or groups != 1:
            refuse(f"a convolution with strides {strides}, lhs_dilation {spread} and {groups} groups")
        wide = [(size - 1) * dilation for size, dilation in zip(filters.shape[1:-1], dilations, strict=True)]
        cuts = [(w - low, w - high) for w, (low, high) in zip(wide, pairs, strict=True)]
        turned = flip(graph, filters, range(1, filters.rank - 1))
        found = conv_transpose(graph, x, turned, strides=spread, dilations=dilations, padding=cuts)
    else:
        found = conv(graph, x, filters, strides=strides, dilations=dilations, padding=pairs, groups=groups)
    result = [dims.output_batch_dimension, *dims.output_spatial_dimensions, dims.output_feature_dimension]
    found = transpose(graph, found, np.argsort(result).tolist())
    return cast(graph, found, call.attributes.type("preferred_element_type", call.value(0).type))


@lowers("XlaPad")
def xla_pad(call: Call) -> Value:
    low, high, between = (numbers(call, position, "the padding") for position in (2, 3, 4))
    x, fill = call.values(0, 2)
    if not any(between) and min(*low, *high, 0) >= 0:
        return padded(call.graph, x, call.graph.constant(np.array([low, high], np.int32).T), fill)
    return moved(
        call.graph,
        "STABLEHLO_PAD",
        x,
        fill,
        data=(0, 1),
        edge_padding_low=low,
        edge_padding_high=high,
        interior_padding=between,
    )


@lowers("XlaGather")
def xla_gather(call: Call) -> Value:
    dims = dimension_numbers(call, GatherDimensionNumbers)
    return moved(
        call.graph,
        "STABLEHLO_GATHER",
        call.value(0),
        index_type(call.graph, call.value(1)),
        offset_dims=dims.offset_dims,
        collapsed_slice_dims=dims.collapsed_slice_dims,
        start_index_map=dims.start_index_map,
        index_vector_dim=dims.index_vector_dim,
        slice_sizes=numbers(call, 2, "the sizes of slices"),
        indices_are_sorted=call.attributes.bool("indices_are_sorted", False),
    )


UPDATES = {
    "ADD": "STABLEHLO_ADD",
    "MUL": "STABLEHLO_MULTIPLY",
    "MAXIMUM": "STABLEHLO_MAXIMUM",
    "MINIMUM": "STABLEHLO_MINIMUM",
}
"""How an update is combined with what is there, as the body of a scatter says it."""


@lowers("XlaScatter")
def xla_scatter(call: Call) -> Value:
    """What a place becomes of an old and a new element is a graph of its own; without operators it is the new one."""
    graph, (x, indices, updates) = call.graph, call.values()
    dims = dimension_numbers(call, ScatterDimensionNumbers)
    body = Graph(f"{call.node.name}/update")
    scalars = [body.input(name, x.type, []) for name in ("old", "new")]
    found = call.importer.inline(body, call.attributes.function("update_computation").name, scalars)[0]
    if found is scalars[1]:
        body.outputs = [found]
    else:
        body.outputs = [body.add(UPDATES[_operator(found, scalars, UPDATES)], *scalars)]
    return graph.call(
        "STABLEHLO_SCATTER",
        [x, index_type(graph, indices), updates],
        [x],
        {"update_computation_subgraph_index": body},
        {
            "update_window_dims": dims.update_window_dims,
            "inserted_window_dims": dims.inserted_window_dims,
            "scatter_dims_to_operand_dims": dims.scatter_dims_to_operand_dims,
            "index_vector_dim": dims.index_vector_dim,
            "indices_are_sorted": call.attributes.bool("indices_are_sorted", False),
        },
    )[0]


def reducer(call: Call, name: str, type: TensorType) -> str:
    """TFLite's operator that a function of two scalars is. Raises `Refused` if it is not one."""
    scratch = Graph(name)
    scalars = [scratch.input(letter, type, []) for letter in "ab"]
    found = call.importer.inline(scratch, call.attributes.function(name).name, scalars)
    return _operator(found[0], scalars, REDUCERS)


def _operator(found: Any, scalars: Sequence[Value], known: Container[str]) -> str:
    node = found.node if isinstance(found, Value) else None
    if node is None or node.op not in known or set(node.inputs) != set(scalars):
        refuse("what it combines elements with is no sum, product, maximum or minimum of two")
    return node.op


@lowers("XlaReduce", "XlaVariadicReduceV2")
def xla_reduce(call: Call) -> Value:
    if len(call.inputs) != 2:
        refuse("several values are reduced together; reduce each by itself")
    x, start = call.values()
    op = reducer(call, "reducer", x.type)
    found = reduce(call.graph, REDUCERS[op][0], x, call.attributes.ints("dimensions_to_reduce"))
    return _begun(call.graph, op, found, start)


def _begun(graph: Graph, op: str, x: Value, start: Value) -> Value:
    """What is reduced, together with what it begins with, if that says anything."""
    if start.data is not None and _is_neutral(op, start):
        return x
    return widened(graph, op, x, start)


def _is_neutral(op: str, start: Value) -> bool:
    if start.data is None:
        return False
    number = start.data.reshape(())
    if op in ("MAXIMUM", "MINIMUM"):
        ends = np.finfo(number.dtype) if number.dtype.kind in "fV" else np.iinfo(number.dtype)
        return bool(number <= ends.min if op == "MAXIMUM" else number >= ends.max)
    return bool(number == {"ADD": 0, "MUL": 1, "LOGICAL_AND": True, "LOGICAL_OR": False}[op])


@lowers("XlaReduceWindow")
def xla_reduce_window(call: Call) -> Value:
    """A window over every dimension; over those of pictures alone it is a pool."""
    graph, (x, start) = call.graph, call.values(0, 2)
    window, strides, spread, dilations, padding = (numbers(call, n, "the window") for n in range(2, 7))
    op = reducer(call, "computation", x.type)
    if any(step != 1 for step in spread):
        refuse(f"base_dilations {spread}: elements are spread; only windows may be")
    x = padded(graph, x, graph.constant(np.array(padding, np.int32).reshape(-1, 2)), start)
    is_picture = x.rank == 4 and window[0] == window[3] == strides[0] == strides[3] == 1
    if is_picture and x.type == T.FLOAT32 and set(dilations) == {1} and _is_neutral(op, start):
        if op == "MAXIMUM":
            return pooled(graph, "MAX_POOL_2D", x, window[1:3], strides[1:3], Padding.VALID)
        if op == "ADD":
            mean = pooled(graph, "AVERAGE_POOL_2D", x, window[1:3], strides[1:3], Padding.VALID)
            return graph.add("MUL", mean, np.array(window[1] * window[2], np.float32))
    vectors = [np.array(vector, np.int64) for vector in (window, strides, dilations)]
    return widened(graph, "REDUCE_WINDOW", x, start, *vectors, reduce_function=REDUCERS[op][1])
