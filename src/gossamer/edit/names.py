"""How a user says which tensor, operator or subgraph: by name, by number, as ``node:7``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from gossamer.edit.references import given, taken
from gossamer.errors import EditError
from gossamer.model.model import Model
from gossamer.schema.tables import SignatureDef, SubGraph

Name = int | str
"""A tensor: its name, that of an argument or result of its signature, its number, or its number as text."""

NODE = "node:"
"""Before the number of an operator."""


class Graph:
    """A subgraph of a model with the names of what is in it.

    ``signature``: the first one that calls it, if there is one.
    """

    def __init__(self, model: Model, number: int) -> None:
        if not 0 <= number < len(model.subgraphs):
            raise EditError(f"there is no subgraph {number}; the model has {len(model.subgraphs)}")
        self.model = model
        self.number = number
        self.subgraph: SubGraph = model.subgraphs[number]
        self.signature: SignatureDef | None = next(
            (signature for signature in model.signature_defs if signature.subgraph_index == number), None
        )

    def tensor(self, name: Name) -> int:
        """The number of a tensor. Raises `EditError` with near names if there is none, or several."""
        tensors = self.subgraph.tensors
        if isinstance(name, str):
            found = [number for number, tensor in enumerate(tensors) if tensor.name == name]
            if not found and self.signature is not None:
                entries = (*self.signature.inputs, *self.signature.outputs)
                found = list(dict.fromkeys(entry.tensor_index for entry in entries if entry.name == name))
            if not found:  # one of the names of operators that a converter made one of
                computed = {*self.subgraph.inputs, *[n for one in self.subgraph.operators for n in given(one)]}
                found = [number for number in sorted(computed) if name in tensors[number].name.split(";")]
            if len(found) > 1:
                raise EditError(f"several tensors are called {name!r}: say which by number, {_listed(found)}")
            if found:
                return found[0]
            if not name.isdecimal():
                raise EditError(f"there is no tensor {name!r}{self._near(name)}")
        if not 0 <= int(name) < len(tensors):
            raise EditError(f"there is no tensor {int(name)}: the subgraph has {len(tensors)}, 0 to {len(tensors) - 1}")
        return int(name)

    def before(self, name: Name) -> list[int]:
        """A tensor, or what the operator ``node:7`` takes and is not constant."""
        node = self._node(name)
        if node is None:
            return [self.tensor(name)]
        tensors = self.subgraph.tensors
        return [
            number
            for number in dict.fromkeys(taken(self.subgraph.operators[node]))
            if not tensors[number].is_variable and self.model.tensor_data(tensors[number]) is None
        ]

    def behind(self, name: Name) -> list[int]:
        """A tensor, or what the operator ``node:7`` gives."""
        node = self._node(name)
        return [self.tensor(name)] if node is None else list(given(self.subgraph.operators[node]))

    def node(self, name: Name) -> int:
        """The number of an operator: ``7``, ``node:7``, or the tensor that it gives."""
        if isinstance(name, int) or name.isdecimal():
            name = f"{NODE}{name}"
        node = self._node(name)
        if node is not None:
            return node
        tensor = self.tensor(name)
        for number, operator in enumerate(self.subgraph.operators):
            if tensor in operator.outputs:
                return number
        raise EditError(f"no operator gives the tensor {self.subgraph.tensors[tensor].name!r}")

    def _node(self, name: Name) -> int | None:
        if isinstance(name, int) or not name.startswith(NODE):
            return None
        count = len(self.subgraph.operators)
        text = name[len(NODE) :]
        if not text.isdecimal() or int(text) >= count:
            raise EditError(f"there is no operator {text!r}: the subgraph has {count}, {NODE}0 to {NODE}{count - 1}")
        return int(text)

    def input(self, name: Name | None) -> int:
        """The tensor that is an input: that of the name, or the only one."""
        return self._end(name, self.subgraph.inputs, "input")

    def output(self, name: Name | None) -> int:
        """The tensor that is an output: that of the name, or the only one."""
        return self._end(name, self.subgraph.outputs, "output")

    def _end(self, name: Name | None, ends: Sequence[int], what: str) -> int:
        if name is None:
            if len(ends) != 1:
                raise EditError(f"the model has {len(ends)} {what}s, say which: {self.shown(ends)}")
            return ends[0]
        number = self.tensor(name)
        if number not in ends:
            raise EditError(f"{self.brief(number)} is no {what}; the {what}s are {self.shown(ends)}")
        return number

    def name(self, tensor: int) -> str:
        """What a tensor is called, or its number."""
        return self.subgraph.tensors[tensor].name or str(tensor)

    def brief(self, tensor: int) -> str:
        """What a tensor is called, for a message: of many names that a converter joined, the first."""
        return repr(self.name(tensor).partition(";")[0])

    def argument(self, tensor: int, outputs: bool) -> str:
        """What the signature calls an input or an output, or else its own name."""
        if self.signature is not None:
            for entry in self.signature.outputs if outputs else self.signature.inputs:
                if entry.tensor_index == tensor:
                    return entry.name
        return self.name(tensor)

    def shown(self, tensors: Iterable[int]) -> str:
        """Names of tensors for a message."""
        return _listed([self.brief(number) for number in tensors])

    def _near(self, name: str) -> str:
        names = [part for tensor in self.subgraph.tensors for part in tensor.name.split(";") if part]
        near = get_close_matches(name, names, 3) or [other for other in names if name.lower() in other.lower()][:3]
        if not near:  # a part of a path
            pieces = {piece: other for other in names for piece in re.split("[/_:.]", other)}
            near = [pieces[piece] for piece in get_close_matches(name, list(pieces), 3)]
        return f"; near it: {_listed(list(map(repr, dict.fromkeys(near))))}" if near else "."


def subgraph_of(model: Model, subgraph: int | str) -> int:
    """The number of a subgraph: itself, or that of a signature by its key. Raises `EditError` if there is none."""
    if isinstance(subgraph, str):
        if subgraph.isdecimal():
            return subgraph_of(model, int(subgraph))
        if subgraph not in model.signatures:
            raise EditError(f"there is no signature {subgraph!r}; the model has {_listed(list(model.signatures))}")
        return model.signatures[subgraph].subgraph_index
    if not 0 <= subgraph < len(model.subgraphs):
        raise EditError(f"there is no subgraph {subgraph}; the model has {len(model.subgraphs)}")
    return subgraph


def _listed(items: Sequence[object]) -> str:
    shown = ", ".join(map(str, items[:8]))
    return f"{shown or 'none'} …" if len(items) > 8 else shown or "none"


def unique(name: str, used: Iterable[str] | Mapping[str, object]) -> str:
    """The name, with a number behind it if it is used."""
    taken_names = set(used)
    found, tries = name, 0
    while found in taken_names:
        tries += 1
        found = f"{name}_{tries}"
    return found
