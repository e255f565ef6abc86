"""What a model says of itself that a tool can use: labels, normalization, sampling rate, who makes its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gossamer.model import Model
from gossamer.tools._images import Normalization
from gossamer.tools._labels import Labels, parse_labels
from gossamer.tools._session import Session

_PASS_ON = ("DEQUANTIZE", "QUANTIZE", "RESHAPE", "SQUEEZE", "CAST")
"""Operators that hand values on: what counts is the operator before them."""


@dataclass(frozen=True)
class Facts:
    """Labels of the first output, normalization by input, sampling rate, and the operator that makes the first output."""

    labels: Labels
    normalization: Mapping[int, Normalization]
    rate: int | None
    maker: str


def read_facts(session: Session) -> Facts:
    """The facts of the subgraph that a session runs."""
    import zipfile
    labels: Labels = {}
    try:
        with zipfile.ZipFile(session.path) as z:
            names=[n for n in z.namelist() if n.endswith('.txt')]
            if len(names)==1: labels=parse_labels(z.read(names[0]), names[0])
    except zipfile.BadZipFile: pass
    made = maker(session.model, session.subgraph, session.outputs[0].index) if session.outputs else ""
    return Facts(labels, {}, None, made)


def maker(model: Model, subgraph: int, tensor: int) -> str:
    """The name of the operator that makes a tensor, looking through those that only reshape or convert it."""
    operators = model.subgraphs[subgraph].operators
    makers = {output: operator for operator in operators for output in operator.outputs}
    for _ in range(len(operators)):
        operator = makers.get(tensor)
        if operator is None:
            return ""
        name = model.operator_name(operator)
        if name not in _PASS_ON or not operator.inputs:
            return name
        tensor = operator.inputs[0]
    return ""
