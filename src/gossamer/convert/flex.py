"""Operators that stay TensorFlow's: custom operators ``Flex`` + name, which the Flex delegate runs.

Their options are a flexbuffer: a vector of two strings, the operator's name and its serialized ``NodeDef``.
"""

from __future__ import annotations

from gossamer.convert.flex_operators import FLEX_OPERATORS, flex_operator
from gossamer.convert.messages.tensorflow import AttrValue, NodeDef, OpDef
from gossamer.convert.wire import write
from gossamer.errors import ConvertError
from gossamer.schema import flexbuffers

PREFIX = "Flex"
"""What the custom code begins with."""


def flex_options(node: NodeDef, op_def: OpDef | None = None, function: str = "") -> bytes:
    """The ``custom_options`` of a Flex operator, as TensorFlow's converter writes them.

    The ``NodeDef`` in them has no name and no device; an empty string stands for every input that is no control edge.
    Its attributes are those that ``op_def`` declares, also where they are at their default; those that begin with an
    underscore belong to the graph and are left out. Without ``op_def`` the definition is that of
    `gossamer.convert.flex_operators`, and for an operator that is not there the attributes are those of ``node``. The
    node's name and the ``function`` it was in are kept as debug information.

    TensorFlow writes the attributes in an order of no meaning; here they are sorted. Raises `ConvertError` if a
    declared attribute is missing and has no default.
    """
    debug = NodeDef.ExperimentalDebugInfo(original_node_names=(node.name,))
    stored = NodeDef(
        op=node.op,
        input=("",) * sum(not text.startswith("^") for text in node.input),
        attr=dict(sorted(_attributes(node, op_def).items())),
        experimental_debug_info=debug.replace(original_func_names=(function,)) if function else debug,
    )
    return flexbuffers.dumps([node.op, flexbuffers.String(write(stored))])


def _attributes(node: NodeDef, op_def: OpDef | None) -> dict[str, AttrValue]:
    if op_def is None and node.op in FLEX_OPERATORS:
        op_def = flex_operator(node.op)
    if op_def is None:
        return {name: value for name, value in node.attr.items() if not name.startswith("_")}
    found = {}
    for declared in op_def.attr:
        value = node.attr.get(declared.name, declared.default_value)
        if value is None:
            raise ConvertError(
                f"node {node.name!r} ({node.op}) has no attribute {declared.name!r}, and this has no default"
            )
        found[declared.name] = value
    return found
