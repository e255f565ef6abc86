"""What patterns ask of nodes and values, and how they make a node like another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.graph import Array, Graph, Node, Value
from gossamer.schema.enums import TensorType

FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16)


def made_by(value: Value | None, *ops: str) -> Node | None:
    """The node that makes a value, if it is one of these operators."""
    node = None if value is None else value.node
    return node if node is not None and node.op in ops and not node.is_custom else None


def only_use(graph: Graph, value: Value) -> bool:
    """Whether a value is taken once, and no output."""
    return len(value.users) == 1 and value not in graph.outputs


def number(value: Value | None) -> float | None:
    """The one element of a constant, if there is one element."""
    data = None if value is None else value.data
    return float(data.reshape(())) if data is not None and data.size == 1 and data.dtype.kind in "fiu" else None


def is_close(value: Value | None, to: float) -> bool:
    """Whether a value is a constant with one element that is a number to six digits or so."""
    found = number(value)
    return found is not None and bool(np.isclose(found, to, rtol=2e-6, atol=0))


def sides(node: Node) -> list[tuple[Value, Value]]:
    """Both inputs of a commutative operator, in both orders."""
    x, y = node.input(0), node.input(1)
    return [(x, y), (y, x)]


def constant_side(node: Node) -> tuple[Value, Value, Array] | None:
    """Of two inputs the one that is computed and the one that is constant, and its value; ``None`` if not so."""
    for x, c in sides(node):
        if x.data is None and c.data is not None:
            return x, c, c.data
    return None


def activation(node: Node) -> int:
    """The fused activation, 0 where the operator has none."""
    return int(getattr(node.options, "fused_activation_function", 0))


def option_values(node: Node) -> dict[str, Any]:
    """The options that are set, by name."""
    options = node.options
    return {} if options is None else {name: getattr(options, name) for name in options.FIELD if options.has(name)}


def again_many(
    graph: Graph, node: Node, inputs: Sequence[Any], op: str = "", **changes: Any
) -> list[Value]:
    """A node like another one on other inputs, or with other options: its outputs."""
    return graph.add_many(
        op or node.op,
        inputs,
        len(node.outputs),
        types=[value.type for value in node.outputs],
        quantization=node.output.quantization,
        **{**option_values(node), **changes},
    )


def again(graph: Graph, node: Node, *inputs: Any, op: str = "", **changes: Any) -> Value:
    """`again_many` of a node with one output. Without ``inputs``, on the same ones."""
    return again_many(graph, node, inputs or node.inputs, op, **changes)[0]
