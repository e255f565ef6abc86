"""The declarations against the published ones, and every one of them there and back.

``tensorflow.txt`` and ``onnx.txt`` have a line for every published field: message, number, name, how often, of what,
how numbers are packed, and its oneof. They were taken from the descriptors of TensorFlow 2.21 and onnx 1.23.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from gossamer.convert.messages import onnx, tensorflow
from gossamer.convert.wire import Field, Message, Scalar, fields_of, read, write
from tests.convert.arbitrary import all_messages, filled, message_class

MODULES = {"tensorflow": tensorflow, "onnx": onnx}
ALL = [(module, name) for module in MODULES for name in all_messages(MODULES[module])]
OFTEN = {"scalar": "one", "message": "one", "scalars": "repeated", "array": "repeated", "messages": "repeated"}


def spelled(field: Field) -> str:
    """The field as the listing says it; an enumeration is its number there."""
    if field.kind == "map":
        return "map " + ",".join([spelled(part).split()[1] for part in fields_of(field.of)]) + " - -"
    of = field.of.name.replace("enum", "int32") if isinstance(field.of, Scalar) else field.of.__qualname__
    return f"{OFTEN[field.kind]} {of} {'packed' if field.packed else '-'} {field.oneof or '-'}"


@pytest.mark.parametrize("module", MODULES)
def test_the_fields_are_the_published_ones(module: str) -> None:
    published = set(Path(__file__).with_name(f"{module}.txt").read_text().splitlines())
    declared = {
        f"{name} {field.number} {field.name} {spelled(field)}"
        for name, cls in all_messages(MODULES[module]).items()
        for field in fields_of(cls)
    }
    assert declared == published


@pytest.mark.parametrize(("module", "name"), ALL)
def test_every_message_comes_back(module: str, name: str) -> None:
    message = filled(message_class(MODULES[module], name))
    data = write(message)
    back = read(type(message), data)
    assert back == message
    assert write(back) == data
    assert back.__dict__.keys() == message.__dict__.keys()


@pytest.mark.parametrize(("module", "name"), ALL)
def test_an_empty_message_has_the_defaults(module: str, name: str) -> None:
    message = read(message_class(MODULES[module], name), b"")
    assert message == type(message)()
    assert write(message) == b""
    assert not any(message.has(field.name) for field in message.FIELDS)


def test_numbers_of_fields_are_given_once() -> None:
    for module in (tensorflow, onnx):
        for cls in all_messages(module).values():
            numbers = [field.number for field in fields_of(cls)]
            assert len(set(numbers)) == len(numbers)


def test_all_messages_finds_those_inside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("somewhere")
    outer = type("Outer", (Message,), {"__module__": "somewhere", "__qualname__": "Outer"})
    inner = type("Inner", (Message,), {"__module__": "somewhere", "__qualname__": "Outer.Inner"})
    monkeypatch.setattr(outer, "Inner", inner, raising=False)
    module.Outer = outer  # type: ignore[attr-defined]
    assert all_messages(module) == {"Outer": outer, "Outer.Inner": inner}
