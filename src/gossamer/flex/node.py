"""The options of a Flex operator: a flexbuffer of the operator's name and its serialized ``NodeDef``, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gossamer.convert.flex_operators import KNOWN_OPERATORS, flex_operator
from gossamer.convert.messages.tensorflow import AttrValue, DataType, NodeDef, OpDef
from gossamer.convert.sources.attributes import Attributes
from gossamer.convert.sources.tensor_proto import tensor_type, type_name
from gossamer.convert.wire import read
from gossamer.errors import ConvertError
from gossamer.schema import flexbuffers
from gossamer.schema.enums import TensorType

MOST_OPERANDS = 1 << 16
"""More operands than any operator of a model has: a number in an attribute above it is no number of operands."""

_FIELD = {
    "type": "type",
    "string": "s",
    "int": "i",
    "bool": "b",
    "float": "f",
    "shape": "shape",
    "func": "func",
    "tensor": "tensor",
}
"""The field of an AttrValue by the kind of the attribute."""


class Argument(NamedTuple):
    """An operand or a result of an operator's definition: its name and the types of the tensors that it is.
    ``is_list``: the definition says that it may be any number of them."""

    name: str
    types: tuple[TensorType, ...]
    is_list: bool


class FlexNode(NamedTuple):
    """An operator of TensorFlow with its attributes, and what it takes and gives; ``is_known``: whether its definition
    is, which says that."""

    op: str
    node: NodeDef
    attributes: Attributes
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    is_known: bool = True


def flex_node(options: bytes) -> FlexNode:
    """The operator that the custom options of a Flex operator describe.

    Raises `ConvertError`: they are not a flexbuffer of a name and a NodeDef, or an attribute of a known operator is
    missing, of another kind, or has a value that it must not have.
    """
    name, node = _stored(options)
    if name != node.op:
        raise ConvertError(f"its options name the operator {name!r}, its NodeDef {node.op!r}")
    if node.op not in KNOWN_OPERATORS:
        return FlexNode(node.op, node, Attributes(node), (), (), False)
    definition = flex_operator(node.op)
    attributes = Attributes(node, definition)
    _check_attributes(node, definition, attributes)
    inputs = tuple([_argument(argument, attributes) for argument in definition.input_arg])
    outputs = tuple([_argument(argument, attributes) for argument in definition.output_arg])
    return FlexNode(node.op, node, attributes, inputs, outputs)


def _stored(options: bytes) -> tuple[str, NodeDef]:
    try:
        values = flexbuffers.loads(options)
    except ValueError as error:
        raise ConvertError(f"its options are no flexbuffer ({error})") from error
    if not isinstance(values, list) or len(values) != 2 or not all(isinstance(one, (str, bytes)) for one in values):
        raise ConvertError("its options must be a flexbuffer of two strings: the operator's name and its NodeDef")
    name, content = [one.encode() if isinstance(one, str) else one for one in values]
    return name.decode(errors="replace"), read(NodeDef, content)


def _check_attributes(node: NodeDef, definition: OpDef, attributes: Attributes) -> None:
    declared = {attribute.name: attribute for attribute in definition.attr}
    for name in node.attr:
        if name not in declared and not name.startswith("_"):
            raise ConvertError(f"{node.op} has no attribute {name!r}; it has {', '.join(declared) or 'none'}")
    for name, attribute in declared.items():
        value = attributes.values.get(name)
        if value is None:
            raise ConvertError(f"attribute {name!r} of {node.op} is missing, and has no default")
        _check_value(node.op, attribute, value)


def _check_value(op: str, attribute: OpDef.AttrDef, value: AttrValue) -> None:
    what = f"attribute {attribute.name!r} of {op}"
    kind = attribute.type.removeprefix("list(").rstrip(")")
    field, is_list = _FIELD[kind], attribute.type.startswith("list")
    found = value.which("value")
    if found != ("list" if is_list else field):
        raise ConvertError(f"{what} must be of kind {attribute.type}, it is {found or 'empty'}")
    stored = getattr(value.list, field) if is_list else (getattr(value, field),)
    minimum = attribute.minimum if attribute.has_minimum else None
    measured = len(stored) if is_list else stored[0]
    if minimum is not None and measured < minimum:
        raise ConvertError(f"{what} must be {minimum} or more{' elements' if is_list else ''}, got {measured}")
    allowed = getattr(attribute.allowed_values.list, field) if attribute.allowed_values is not None else ()
    for one in stored:
        if allowed and one not in allowed:
            names = ", ".join([_named(other) for other in allowed])
            raise ConvertError(f"{what} is {_named(one)}, it must be one of {names}")


def _named(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return type_name(value).removeprefix("DT_").lower() if isinstance(value, (DataType, int)) else repr(value)


def _argument(argument: OpDef.ArgDef, attributes: Attributes) -> Argument:
    if argument.type_list_attr:
        return Argument(argument.name, attributes.types(argument.type_list_attr), True)
    if argument.type_attr:
        type = attributes.type(argument.type_attr)
    else:
        type = tensor_type(argument.type, f"operand {argument.name!r}")
    count = attributes.int(argument.number_attr) if argument.number_attr else 1
    if not 0 <= count <= MOST_OPERANDS:
        raise ConvertError(f"attribute {argument.number_attr!r} says that there are {count} {argument.name!r}")
    return Argument(argument.name, (type,) * count, bool(argument.number_attr))


def types_of(arguments: Sequence[Argument]) -> list[TensorType]:
    """The types of all tensors in order."""
    return [type for argument in arguments for type in argument.types]
