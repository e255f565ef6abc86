"""`flex_op`: a Python function becomes one of TensorFlow's operators, beside those that ship or instead of one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from gossamer.convert.sources.attributes import Attributes
from gossamer.convert.sources.tensor_proto import shape_of, tensor_array, tensor_type
from gossamer.dtypes import numpy_dtype
from gossamer.flex.kernels import Call, Kernel, Shape, ShapeRule
from gossamer.flex.node import FlexNode
from gossamer.flex.operator import arrays_of, define, grouped
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import OpDef

_Kind = inspect.Parameter


def flex_op(
    name: str, *, shape: Callable[..., Sequence[Shape]] | None = None, trace: bool = True
) -> Callable[[Callable[..., Any]], OpDef]:
    """Decorator: makes TensorFlow's operator ``name`` of a function, for the ``custom_ops`` of an `Interpreter`::

        @gossamer.flex_op("Cross")
        def cross(a, b):
            return np.cross(a, b)

        Interpreter("model.tflite", custom_ops=[cross])

    The function takes arrays as TensorFlow declares the operands (a list where it declares one; strings are ``bytes``
    in an array of objects) and returns an array, or a tuple of them. Its keyword-only parameters are attributes of the
    operator, with their defaults: numbers, booleans and texts, a NumPy dtype for a type, a tuple for a list, a tuple
    with ``None`` for unknown sizes, or ``None``, for a shape. ``shape`` is a function of the operands' shapes that
    returns those of the results; without it, they are known when the operator has run. ``trace``: whether it may become
    machine code, as a function of `gossamer.custom_op`.

    Raises `TypeError` for a name that is no text.

    >>> gossamer.flex_op("Cross")(lambda a, b: np.cross(a, b)).name
    'FlexCross'
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of an operator is a text such as 'Erf', got {name!r}")

    def make(function: Callable[..., Any]) -> OpDef:
        wanted = [p for p in inspect.signature(function).parameters.values() if p.kind is _Kind.KEYWORD_ONLY]

        def given(attributes: Attributes, fail: Callable[[str], NoReturn]) -> dict[str, Any]:
            found = {p.name: attribute(attributes, p.name) for p in wanted if p.name in attributes}
            for parameter in wanted:
                if parameter.name not in found and parameter.default is _Kind.empty:
                    fail(f"{function.__name__}() takes the attribute {parameter.name!r}, which it does not have")
            return found

        def run(call: Call, *operands: Any) -> Any:
            return function(*operands, **given(call.attributes, call.fail))

        op = define(name.removeprefix("Flex"), Kernel(run, None if shape is None else _rule(shape)))
        if not trace:
            return op

        @op.lower
        def lower(graph: Lowering) -> None:
            from gossamer.ops.tracing import lower_traced

            node: FlexNode = graph.data.node

            def results(*operands: Any, **attributes: Any) -> Any:
                return tuple(arrays_of(function(*operands, **attributes), node.outputs))

            results.__wrapped__ = function  # type: ignore[attr-defined]  # what it stands for
            positions = grouped(range(len(graph.inputs)), node.inputs)
            lower_traced(graph, results, list(positions), given(node.attributes, graph.refuse))

        op.is_checked = op.tells_shapes = True
        return op

    return make


def _rule(shape: Callable[..., Sequence[Shape]]) -> ShapeRule:
    def told(node: FlexNode, shapes: Sequence[Shape]) -> Sequence[Shape]:
        found = shape(*shapes)
        return [tuple(one) for one in found]

    return told


def attribute(attributes: Attributes, name: str) -> Any:
    """An attribute as Python has it."""
    stored = attributes.values[name]
    kind = stored.which("value")
    if kind == "list":
        each = stored.list
        for field in each.FIELD if each is not None else ():
            if getattr(each, field):
                return tuple([_plain(field, one) for one in getattr(each, field)])
        return ()
    return None if kind is None else _plain(kind, getattr(stored, kind))


def _plain(kind: str, value: Any) -> Any:
    if kind == "type":
        return numpy_dtype(tensor_type(value))
    if kind == "s":
        return value.decode(errors="surrogateescape")
    if kind == "shape":
        return shape_of(value)
    if kind == "tensor":
        return tensor_array(value)
    return value.name if kind == "func" else value


def said(node: FlexNode) -> dict[str, str]:
    """The attributes of an operator in words, types by their names; those that belong to the graph are left out."""
    names = [name for name in node.attributes.values if not name.startswith("_")]
    return {name: _word(attribute(node.attributes, name)) for name in names}


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_word, value))}]"
    return value.name if isinstance(value, np.dtype) else str(value)
