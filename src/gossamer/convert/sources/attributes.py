"""The attributes of a TensorFlow node, each as what it is said to be.

A writer may leave out an attribute that has its default (SavedModels do): the operator's definition has it then.
"""

from __future__ import annotations

import builtins
from typing import Any

from gossamer.arrays import NDArray
from gossamer.convert.messages.tensorflow import AttrValue, NameAttrList, NodeDef, OpDef
from gossamer.convert.sources.tensor_proto import shape_of, tensor_array, tensor_type
from gossamer.errors import ConvertError
from gossamer.schema.enums import TensorType

Shape = tuple[int | None, ...] | None

_KINDS = {
    "i": "an integer",
    "f": "a float",
    "b": "a boolean",
    "s": "a text",
    "type": "a type",
    "shape": "a shape",
    "tensor": "a tensor",
    "func": "a function",
    "list": "a list",
    "placeholder": "a parameter of the function",
    None: "empty",
}


class Attributes:
    """The attributes of ``node``: its own, and the defaults of ``op_def`` for those that it does not have.

    ``default`` is for an attribute that neither has; without it, and for an attribute of another kind, every method
    raises `ConvertError`.
    """

    def __init__(self, node: NodeDef, op_def: OpDef | None = None) -> None:
        self.node = node
        self.op_def = op_def

    @property
    def values(self) -> dict[str, AttrValue]:
        """All of them."""
        return {**self._defaults(), **self.node.attr}

    def _defaults(self) -> dict[str, AttrValue]:
        attributes = self.op_def.attr if self.op_def is not None else ()
        return {item.name: item.default_value for item in attributes if item.default_value is not None}

    def __contains__(self, name: object) -> builtins.bool:
        return name in self.node.attr or name in self._defaults()

    def __getitem__(self, name: str) -> AttrValue:
        """An attribute of whatever kind. Raises `KeyError`."""
        return self.node.attr[name] if name in self.node.attr else self._defaults()[name]

    def int(self, name: str, default: builtins.int | None = None) -> builtins.int:
        return self._one("i", name, default)  # type: ignore[no-any-return]

    def float(self, name: str, default: builtins.float | None = None) -> builtins.float:
        return self._one("f", name, default)  # type: ignore[no-any-return]

    def bool(self, name: str, default: builtins.bool | None = None) -> builtins.bool:
        return self._one("b", name, default)  # type: ignore[no-any-return]

    def text(self, name: str, default: str | None = None) -> str:
        return self._decoded(name, self._one("s", name, default))

    def bytes(self, name: str, default: builtins.bytes | None = None) -> builtins.bytes:
        """A text as it is in the file, which need not be UTF-8."""
        return self._one("s", name, default)  # type: ignore[no-any-return]

    def type(self, name: str, default: TensorType | None = None) -> TensorType:
        found = self._one("type", name, default)
        return found if isinstance(found, TensorType) else tensor_type(found, self._what(name))

    def shape(self, name: str) -> Shape:
        """The sizes, ``None`` for those that are not known; ``None`` if the rank is not known."""
        return shape_of(self._one("shape", name, None))

    def tensor(self, name: str) -> NDArray[Any]:
        """The values, as `gossamer.convert.sources.tensor_proto.tensor_array` reads them."""
        return tensor_array(self._one("tensor", name, None), self._what(name))

    def function(self, name: str) -> NameAttrList:
        return self._one("func", name, None)  # type: ignore[no-any-return]

    def ints(self, name: str, default: tuple[builtins.int, ...] | None = None) -> tuple[builtins.int, ...]:
        return self._many("i", name, default)

    def floats(self, name: str, default: tuple[builtins.float, ...] | None = None) -> tuple[builtins.float, ...]:
        return self._many("f", name, default)

    def bools(self, name: str, default: tuple[builtins.bool, ...] | None = None) -> tuple[builtins.bool, ...]:
        return self._many("b", name, default)

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        return tuple([self._decoded(name, item) for item in self._many("s", name, default)])

    def types(self, name: str, default: tuple[TensorType, ...] | None = None) -> tuple[TensorType, ...]:
        found = self._many("type", name, default)
        return tuple([i if isinstance(i, TensorType) else tensor_type(i, self._what(name)) for i in found])

    def shapes(self, name: str) -> tuple[Shape, ...]:
        return tuple([shape_of(item) for item in self._many("shape", name, None)])

    def functions(self, name: str) -> tuple[NameAttrList, ...]:
        return self._many("func", name, None)

    def _what(self, name: str) -> str:
        return f"attribute {name!r} of node {self.node.name!r} ({self.node.op})"

    def _one(self, kind: str, name: str, default: Any) -> Any:
        """What the attribute is; ``kind`` is a field of AttrValue."""
        if name not in self:
            if default is None:
                raise ConvertError(f"{self._what(name)} is missing; it must be {_KINDS[kind]}")
            return default
        value = self[name]
        found = value.which("value")
        if found != kind:
            raise ConvertError(f"{self._what(name)} is {_KINDS[found]}, must be {_KINDS[kind]}")
        return getattr(value, kind)

    def _many(self, kind: str, name: str, default: tuple[Any, ...] | None) -> tuple[Any, ...]:
        """The elements of a list."""
        if name not in self and default is not None:
            return default
        stored = self._one("list", name, None)
        others = [field for field in AttrValue.ListValue.FIELD if field != kind and getattr(stored, field)]
        if others:
            raise ConvertError(f"{self._what(name)} is a list with {_KINDS[others[0]]}, must be one of {_KINDS[kind]}")
        found: tuple[Any, ...] = getattr(stored, kind)
        return found

    def _decoded(self, name: str, text: str | builtins.bytes) -> str:
        try:
            return text if isinstance(text, str) else text.decode()
        except UnicodeDecodeError:
            raise ConvertError(f"{self._what(name)} is {text!r}, which is no UTF-8") from None
