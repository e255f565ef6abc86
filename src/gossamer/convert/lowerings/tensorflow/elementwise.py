"""Functions of each element."""

from __future__ import annotations

from gossamer.convert.graph import Value
from gossamer.convert.lowerings.tensorflow import Call, lowers

SAME = {
    "Abs": "ABS",
    "Ceil": "CEIL",
    "Cos": "COS",
    "Elu": "ELU",
    "Exp": "EXP",
    "Floor": "FLOOR",
    "Log": "LOG",
    "LogicalNot": "LOGICAL_NOT",
    "Neg": "NEG",
    "Relu": "RELU",
    "Relu6": "RELU6",
    "Rint": "ROUND",
    "Round": "ROUND",
    "Rsqrt": "RSQRT",
    "Sigmoid": "LOGISTIC",
    "Sign": "SIGN",
    "Sin": "SIN",
    "Sqrt": "SQRT",
    "Square": "SQUARE",
    "Tanh": "TANH",
    "Add": "ADD",
    "AddV2": "ADD",
    "Sub": "SUB",
    "Mul": "MUL",
    "RealDiv": "DIV",
    "Div": "DIV",
    "Maximum": "MAXIMUM",
    "Minimum": "MINIMUM",
    "BiasAdd": "ADD",
}
"""Operators that TFLite has under another name."""


@lowers(*SAME)
def same(call: Call) -> Value:
    return call.add(SAME[call.op], *call.values())


@lowers("MatMul")
def mat_mul(call: Call) -> Value:
    return call.add(
        "BATCH_MATMUL",
        *call.values(),
        adj_x=call.attributes.bool("transpose_a", False),
        adj_y=call.attributes.bool("transpose_b", False),
    )


@lowers("Softmax")
def softmax(call: Call) -> Value:
    return call.add("SOFTMAX", call.value(0), beta=1.0)
