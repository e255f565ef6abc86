"""What patterns ask of nodes and values, and how they make a node like another one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from gossamer.convert.blocks.shapes import sizes
from gossamer.convert.graph import Array, Graph, Node, Size, Value
from gossamer.convert.infer import Call, Operand, evaluate
from gossamer.dtypes import numpy_dtype
from gossamer.errors import GossamerError, PrepareError
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef
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


def options(node: Node) -> Any:
    """The options of a builtin."""
    return node.options


def option_values(node: Node) -> dict[str, Any]:
    """The options that are set, by name."""
    found = node.options
    return {} if found is None else {name: getattr(found, name) for name in found.FIELD if found.has(name)}


def again_many(
    graph: Graph,
    node: Node,
    inputs: Sequence[Any],
    op: str = "",
    shapes: Sequence[Sequence[int | Size]] | None = None,
    **changes: Any,
) -> list[Value]:
    """A node like another one on other inputs, or with other options: its outputs. ``shapes`` of the outputs, where
    values decide them, are as they were unless they are given."""
    return graph.add_many(
        op or node.op,
        inputs,
        len(node.outputs),
        types=[value.type for value in node.outputs],
        quantization=node.output.quantization,
        shapes=[sizes(value) for value in node.outputs] if shapes is None else shapes,
        **{**option_values(node), **changes},
    )


def again(graph: Graph, node: Node, *inputs: Any, op: str = "", **changes: Any) -> Value:
    """`again_many` of a node with one output. Without ``inputs``, on the same ones."""
    return again_many(graph, node, inputs or node.inputs, op, **changes)[0]


@cache
def is_elementwise(name: str) -> bool:
    """Whether an element of an operator's result depends on the elements of its inputs in the same place alone: so says
    its kernel of shuffled numbers, of parts of them, and of those with their axes exchanged."""
    return _is_elementwise(name)


@cache
def broadcasts(name: str) -> bool:
    """Whether an operator is elementwise and takes sizes of one, and fewer dimensions, for larger ones."""
    return _is_elementwise(name, broadcast=True)


_TRIED = (TensorType.FLOAT32, TensorType.BOOL, TensorType.INT32)


def _is_elementwise(name: str, *, broadcast: bool = False) -> bool:
    op = find_op(name)
    if op is None or op.side_effects or len(op.outputs) > 1 or any(one[-1] == "*" for one in op.inputs):
        return False
    return any(_works_on(op, type, broadcast) for type in _TRIED)


def _works_on(op: OpDef, type: TensorType, broadcast: bool) -> bool:
    arrays, types = [], []
    shuffled = np.array([2**n % 13 for n in range(12)])  # NumPy's random numbers take long to import
    for n, name in enumerate(op.inputs):
        legal = op.types.get(name.rstrip("?"), ())
        found = next((one for one in (type, *_TRIED) if not legal or one in legal), None)
        if found is None:
            return False
        array: Array = shuffled.reshape(3, 4) + n
        if found == TensorType.FLOAT32:
            array = array / 12
        arrays.append(array % 2 == 1 if found == TensorType.BOOL else array.astype(numpy_dtype(found)))
        types.append(found)

    def result(views: Sequence[Array]) -> Array:
        operands = [Operand(one, view.shape, view) for one, view in zip(types, views, strict=True)]
        value = evaluate(Call(op, op.options(), operands))[0].value
        if value is None:
            raise PrepareError("no value")
        return value

    try:
        whole, turned = result(arrays), result([array.T for array in arrays])
        part, one = result([array[:, 1:3] for array in arrays]), result([array[:, :1] for array in arrays])
        if broadcast and len(arrays) > 1 and whole[0, 0] != result([arrays[0], *[a[0, :1] for a in arrays[1:]]])[0, 0]:
            return False
    except (GossamerError, NotImplementedError):
        return False
    return (
        whole.shape == (3, 4)
        and one.shape == (3, 1)
        and np.array_equal(whole[:, 1:3], part)
        and np.array_equal(whole.T, turned)
    )
