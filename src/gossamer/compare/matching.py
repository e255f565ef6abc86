"""Which tensor of one model is compared with which of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gossamer.edit.cut import HANDLES
from gossamer.edit.references import given
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.quantize.debugger.pairs import pairs, plain_name, root

NUMBER = "number"
"""Both models have the same operators on the same tensors: matched by the number."""
NAME = "name"
"""The operators do the same to the same values, and the tensors have one name."""
SUFFIX = "name without suffix"
"""Likewise, and the names are one but for what converters add to make them unique."""
POSITION = "position"
"""The operators do the same to the same values, or both tensors are the same output; names say nothing."""


class Match(NamedTuple):
    """A tensor of ``b`` that is compared: made by operator ``node`` of its main graph, which is tensor ``a`` of the
    other; ``how`` that was found."""

    node: int
    operator: str
    a: int
    b: int
    how: str


class Matching(NamedTuple):
    """``matches`` in the order in which ``b`` executes; ``partners``: by tensor of ``b``, that of ``a``, the inputs
    among them; ``inputs``: for each input of ``b`` the position of that of ``a``."""

    matches: list[Match]
    partners: Mapping[int, int]
    inputs: list[int]


def matching(a: Model, b: Model) -> Matching:
    """Matches the main graphs of two models: by numbers if they have the same operators on the same tensors, else as
    `gossamer.quantize.debugger.pairs` does, by what is done to what, and by names.

    Raises `ConvertError` if inputs or outputs differ in number, or nothing is found.
    """
    if is_same_structure(a, b):
        matches = [Match(node, name, index, index, NUMBER) for node, name, index in results(b)]
        partners = {index: index for index in range(len(b.subgraphs[0].tensors))}
        return Matching(matches, partners, list(range(len(b.subgraphs[0].inputs))))
    first, second = a.subgraphs[0], b.subgraphs[0]
    for what, one, other in (("inputs", first.inputs, second.inputs), ("outputs", first.outputs, second.outputs)):
        if len(one) != len(other):
            raise ConvertError(f"A has {len(one)} {what}, B has {len(other)}: they are not forms of one model")
    try:
        found = pairs(a, b)
    except ConvertError as error:
        raise ConvertError(f"A and B cannot be matched ({error})") from error
    partners = {}
    for index, value in enumerate(found.quantized.values[0]):
        partner = found.values.get(root(value))
        key = None if partner is None else found.float_keys.get(partner)
        if key is not None and key[0] == 0 and value.data is None:
            partners[index] = key[1]
    matches = []
    for node, name, index in results(b):
        if index in partners:
            how = _how(first.tensors[partners[index]].name, second.tensors[index].name)
            matches.append(Match(node, name, partners[index], index, how))
    inputs = [first.inputs.index(partners[index]) for index in second.inputs]
    return Matching(matches, partners, inputs)


def is_same_structure(a: Model, b: Model) -> bool:
    """Whether the main graphs have the same operators on the same tensors."""
    return _structure(a) == _structure(b)


def _structure(model: Model) -> tuple[object, ...]:
    subgraph = model.subgraphs[0]
    operators = [(model.operator_name(one), tuple(one.inputs), tuple(one.outputs)) for one in subgraph.operators]
    return tuple(subgraph.inputs), tuple(subgraph.outputs), operators


def results(model: Model) -> Iterator[tuple[int, str, int]]:
    """The results of the operators of the main graph, in the order of execution: node, operator and tensor. What only
    names something that an interpreter keeps is none."""
    subgraph = model.subgraphs[0]
    for node, operator in enumerate(subgraph.operators):
        for index in given(operator):
            if subgraph.tensors[index].type not in HANDLES:
                yield node, model.operator_name(operator), index


def _how(one: str, other: str) -> str:
    if one == other:
        return NAME
    return SUFFIX if plain_name(one) == plain_name(other) else POSITION
