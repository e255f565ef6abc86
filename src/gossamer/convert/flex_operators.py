"""The operators of TensorFlow that a model may have as Flex operators: their definitions, from their texts.

Operands, attributes and their defaults are those that TensorFlow 2.21 registers. A SavedModel leaves out attributes at
their default and brings definitions, but not of every operator that only the body of a loop or a branch contains; a
Flex operator brings none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from gossamer.convert.flex_registry import ALLOWED, BEYOND
from gossamer.convert.messages.tensorflow import AttrValue, DataType, OpDef
from gossamer.convert.wire import read

_KINDS = {"t": "type", "s": "string", "i": "int", "b": "bool", "f": "float", "h": "shape", "F": "func", "T": "tensor"}

_LETTERS = {
    "f": DataType.DT_FLOAT,
    "d": DataType.DT_DOUBLE,
    "h": DataType.DT_HALF,
    "g": DataType.DT_BFLOAT16,
    "c": DataType.DT_INT8,
    "w": DataType.DT_INT16,
    "i": DataType.DT_INT32,
    "l": DataType.DT_INT64,
    "B": DataType.DT_UINT8,
    "W": DataType.DT_UINT16,
    "I": DataType.DT_UINT32,
    "L": DataType.DT_UINT64,
    "C": DataType.DT_COMPLEX64,
    "Z": DataType.DT_COMPLEX128,
    "b": DataType.DT_BOOL,
    "s": DataType.DT_STRING,
    "q": DataType.DT_QINT8,
    "r": DataType.DT_QINT16,
    "e": DataType.DT_QINT32,
    "Q": DataType.DT_QUINT8,
    "R": DataType.DT_QUINT16,
    "x": DataType.DT_RESOURCE,
    "v": DataType.DT_VARIANT,
}

_ATTRIBUTE = re.compile(r"(\w+):(\[?)(\w)\]?(?:=(\w*))?(?:>=(-?\d+))?(?:\{(.*)\})?")


def _items(table: str) -> Iterator[tuple[str, str]]:
    for item in re.split(r"\n(?! )", table)[1:-1]:
        name, _, rest = item.partition(" ")
        yield name.rstrip("!"), item if name.endswith("!") else f"{name} {rest}"


FLEX_OPERATORS = dict(_items(ALLOWED))
"""Definitions of the allowed operators as they are in the table, by name."""

KNOWN_OPERATORS = {**FLEX_OPERATORS, **dict(_items(BEYOND))}
"""Those of all operators that are known here."""


@cache
def flex_operator(name: str) -> OpDef:
    """The operator's definition. Raises `KeyError` for one that is not known."""
    first, *parts = KNOWN_OPERATORS[name].split()
    fields: list[list[str]] = [[]]
    for part in parts:
        if part in (">", "|"):
            fields.append([])
        else:
            fields[-1].append(part)
    inputs, outputs, attributes = [*fields, []][:3]
    attr = tuple(map(_attribute, attributes))
    names = {item.name for item in attr}
    return OpDef(
        name=name,
        input_arg=tuple([_argument(text, names) for text in inputs]),
        output_arg=tuple([_argument(text, names) for text in outputs]),
        attr=attr,
        is_stateful=first.endswith("!"),
    )


def _argument(text: str, attributes: set[str]) -> OpDef.ArgDef:
    name, _, type = text.partition(":")
    number, _, type = type.lstrip("&").rpartition("*")
    argument = OpDef.ArgDef(name=name, number_attr=number, is_ref=":&" in text)
    if type.startswith("["):
        return argument.replace(type_list_attr=type[1:-1])
    if type in attributes:
        return argument.replace(type_attr=type)
    return argument.replace(type=DataType[f"DT_{type.upper()}"])


def _attribute(text: str) -> OpDef.AttrDef:
    matched = _ATTRIBUTE.fullmatch(text)
    if matched is None:
        raise ValueError(f"attribute {text!r} of the table of operators")
    name, is_list, kind, default, minimum, allowed = matched.groups()
    found = OpDef.AttrDef(name=name, type=f"list({_KINDS[kind]})" if is_list else _KINDS[kind])
    if default is not None:
        found = found.replace(default_value=read(AttrValue, bytes.fromhex(default)))
    if minimum is not None:
        found = found.replace(has_minimum=True, minimum=int(minimum))
    if allowed is not None:
        if kind == "s":
            values = AttrValue.ListValue(s=tuple([word.encode() for word in allowed.split(",")]))
        else:
            values = AttrValue.ListValue(type=tuple([_LETTERS[letter] for letter in allowed]))
        found = found.replace(allowed_values=AttrValue(list=values))
    return found
