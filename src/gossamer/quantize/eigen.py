"""Products of floats and some functions, to the last bit as TensorFlow's calibrator computes them: by Eigen, compiled
for AVX, which has no fused multiply-add. Each step is a product and a sum, rounded twice; the bias comes last.

How a sum over k is ordered depends on where its row is among the units (general_block_panel_kernel.h): 16 rows at a
time add up one after the other; 8, and then 4, the even and the odd k of whole eights apart, and then the rest; what
is left of rows adds up 2 x 4 sums. Columns beyond a multiple of 4 add up one after the other. A single column
(general_matrix_vector.h) adds up 8 sums, halves them three times, and then adds the rest. Depths that Eigen would
divide into blocks for a cache, of more than about 400, may be off by a bit.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.model.model import Model
from gossamer.ops import find_op
from gossamer.ops._activation import activate
from gossamer.ops._conv_geometry import taps
from gossamer.ops._vector_activation import logistic, tanh
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.schema import tables
from gossamer.schema.enums import BuiltinOperator, CustomOptionsFormat, TensorType

Floats = NDArray[np.float32]


def _hard_swish(x: Floats) -> Floats:
    result: Floats = x * (np.minimum(np.maximum(x + np.float32(3), 0), 6) * np.float32(1 / 6))
    return result


FUNCTIONS = {"TANH": tanh, "LOGISTIC": logistic, "HARD_SWISH": _hard_swish}
NAMES = ("CONV_2D", "FULLY_CONNECTED", *FUNCTIONS)


def products(model: Model) -> int:
    """How many products of two floats are added up when all subgraphs run once, with 1 for sizes that are open."""
    return sum(
        math.prod(subgraph.tensors[operator.outputs[0]].shape) * math.prod(weights.shape[1:])
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if model.operator_name(operator) in ("CONV_2D", "FULLY_CONNECTED")
        for weights in (subgraph.tensors[operator.inputs[1]],)
    )


def with_eigen(model: Model) -> tuple[Model, list[OpDef]]:
    """The model with its float products and functions as a custom operator, and this."""
    kept: list[tuple[OpDef, Any]] = []
    subgraphs = []
    for subgraph in model.subgraphs:
        operators = []
        for operator in subgraph.operators:
            op = find_op(model.operator_name(operator))
            types = {subgraph.tensors[index].type for index in operator.inputs if index >= 0}
            if op is not None and op.name in NAMES and types == {TensorType.FLOAT32}:
                number = np.frombuffer(json.dumps(len(kept)).encode(), np.uint8)
                kept.append((op, operator.builtin_options))
                operator = tables.Operator(
                    opcode_index=len(model.operator_codes),
                    inputs=operator.inputs,
                    outputs=operator.outputs,
                    custom_options=number,
                    custom_options_format=CustomOptionsFormat.FLEXBUFFERS,
                )
            operators.append(operator)
        subgraphs.append(subgraph.replace(operators=tuple(operators)))
    code = tables.OperatorCode(builtin_code=BuiltinOperator.CUSTOM, custom_code=PRODUCT)
    changed = model.replace(subgraphs=tuple(subgraphs), operator_codes=(*model.operator_codes, code))
    return changed, [_product(kept)]


PRODUCT = "PRODUCT_OF_EIGEN"


def _product(kept: list[tuple[OpDef, Any]]) -> OpDef:
    """A custom operator for all of them, which are told apart by their custom options."""
    custom = OpDef(PRODUCT, ("x", "weights?", "bias?"), ("output",), (Version(1, ""),), custom=True)

    @custom.prepare
    def prepare(ctx: PrepareContext) -> Any:
        op, ctx.options = kept[json.loads(bytes(ctx.custom_options))]
        return None if op.prepare_function is None else op.prepare_function(ctx)

    @custom.reference
    def reference(ctx: InvokeContext) -> Array:
        op, options = kept[json.loads(bytes(ctx.custom_options))]
        if op.name in FUNCTIONS:
            return FUNCTIONS[op.name](ctx.value(0))
        x, weights, bias = ctx.value(0), ctx.value(1), ctx.optional_value(2)
        rows = weights.reshape(len(weights), -1)
        if op.name == "CONV_2D" and x.shape[3] != weights.shape[3]:  # groups
            ctx.options = options
            return op.reference_function(ctx)  # type: ignore[no-any-return]  # the operator's word
        columns = _patches(x, weights, ctx.data.windows) if op.name == "CONV_2D" else x.reshape(-1, rows.shape[1])
        sums = matrix_product(columns, rows)
        sums = sums if bias is None else sums + bias.reshape(-1)
        return activate(sums, options.fused_activation_function).reshape(ctx.output().shape)

    return custom


def _patches(x: Floats, weights: Floats, windows: Any) -> Floats:
    """What each place of a picture is multiplied with: [places, elements of a filter]."""
    places = x.shape[0], windows[0].output, windows[1].output
    found = np.zeros((*places, *weights.shape[1:]), np.float32)
    for (row, column), elements, (rows, columns) in taps(*windows):
        found[:, rows, columns, row, column] = x[:, elements[0], elements[1]]
    return found.reshape(int(np.prod(places)), -1)


def matrix_product(columns: Floats, rows: Floats) -> Floats:
    """[n, units] of columns [n, depth] and rows [units, depth]."""
    if len(columns) == 1:
        return _one_column(columns, rows)
    units, whole = len(rows), len(columns) // 4 * 4
    result = np.empty((len(columns), units), np.float32)
    first = 0
    while first < units:
        size = next((size for size in (16, 8, 4) if units - first >= size), units - first)
        part = slice(first, first + size)
        several = _one_by_one if size == 16 else _two_by_two if size in (8, 4) else _eight_by_eight
        result[:whole, part] = several(columns[:whole], rows[part])
        result[whole:, part] = _one_by_one(columns[whole:], rows[part])
        first += size
    return result


def _one_by_one(columns: Floats, rows: Floats, total: Floats | None = None, first: int = 0) -> Floats:
    """``total`` and the products from ``first`` on, one after the other."""
    found = np.zeros((len(columns), len(rows)), np.float32) if total is None else total
    for k in range(first, columns.shape[1]):
        found = found + columns[:, k, None] * rows[None, :, k]
    return found


def _two_by_two(columns: Floats, rows: Floats) -> Floats:
    whole = columns.shape[1] // 8 * 8
    even, odd = (_one_by_one(columns[:, n:whole:2], rows[:, n:whole:2]) for n in (0, 1))
    return _one_by_one(columns, rows, even + odd, whole)


def _eight_by_eight(columns: Floats, rows: Floats) -> Floats:
    depth = columns.shape[1]
    whole, pairs = depth // 8 * 8, depth // 2 * 2
    sums = [_one_by_one(columns[:, n:whole:8], rows[:, n:whole:8]) for n in range(8)]
    halves = []
    for n in (0, 1):
        total = (sums[n] + sums[n + 2]) + (sums[n + 4] + sums[n + 6])
        halves.append(_one_by_one(columns[:, n:pairs:2], rows[:, n:pairs:2], total, whole // 2))
    return _one_by_one(columns, rows, halves[0] + halves[1], pairs)


def _one_column(columns: Floats, rows: Floats) -> Floats:
    whole = columns.shape[1] // 8 * 8
    sums = np.stack([_one_by_one(columns[:, n:whole:8], rows[:, n:whole:8]) for n in range(8)])
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return _one_by_one(columns, rows, sums[0], whole)
