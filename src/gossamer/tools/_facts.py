"""What a model says of itself that a tool can use: labels, normalization, sampling rate, who makes its output."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.errors import ModelError
from gossamer.inputs.pictures import Normalization
from gossamer.inputs.properties import properties
from gossamer.model import Model
from gossamer.model.metadata import labels as stored_labels
from gossamer.model.metadata import model_metadata
from gossamer.records import record
from gossamer.tools._labels import Labels, numbered
from gossamer.tools._session import Session

_PASS_ON = ("DEQUANTIZE", "QUANTIZE", "RESHAPE", "SQUEEZE", "CAST")
"""Operators that hand values on: what counts is the operator before them."""


@record(frozen=True)
class Facts:
    """Facts of the subgraph that a session runs; ``fault`` says why the metadata could not be read.

    ``normalization`` is by position of the input; ``maker`` is the operator that makes the first output.
    """

    labels: Labels
    normalization: Mapping[int, Normalization]
    rate: int | None
    maker: str
    fault: str | None = None


def read_facts(session: Session) -> Facts:
    """The facts in the metadata, the appended files and the operators of a model."""
    model = session.model
    made = maker(model, session.subgraph, session.outputs[0].index) if session.outputs else ""
    try:
        metadata = model_metadata(model)
        labels = numbered(stored_labels(model) or [])
    except ModelError as error:
        return Facts({}, {}, None, made, str(error))
    normalization, rate = properties(metadata, model, session.subgraph, session.inputs)
    return Facts(labels, normalization, rate, made)


def maker(model: Model, subgraph: int, tensor: int) -> str:
    """The name of the operator that makes a tensor, looking through those that only reshape or convert it."""
    operators = model.subgraphs[subgraph].operators
    makers = {output: operator for operator in operators for output in operator.outputs}
    for _ in operators:
        operator = makers.get(tensor)
        if operator is None:
            return ""
        name = model.operator_name(operator)
        if name not in _PASS_ON or not operator.inputs:
            return name
        tensor = operator.inputs[0]
    return ""
