"""What a model can do without."""

from __future__ import annotations

from typing import Any

from gossamer.edit.documented import without_metadata
from gossamer.edit.draft import without_unused
from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.portion import ORIGIN
from gossamer.model.metadata import (
    CONVERSION_METADATA,
    MIN_RUNTIME_VERSION,
    MODEL_METADATA,
    OFFLINE_ALLOCATION,
    file_names,
    with_files,
)
from gossamer.model.model import Model

FOR_PEOPLE = (MODEL_METADATA, CONVERSION_METADATA, MIN_RUNTIME_VERSION, ORIGIN)
"""Metadata entries that no runtime reads."""


PARTS = ("unused", "metadata", "files", "description")
"""What is stripped unless something else is said."""


def strip(
    source: Source,
    *,
    unused: bool = True,
    metadata: bool = True,
    files: bool = True,
    description: bool = True,
    names: bool = False,
    signatures: bool = False,
) -> Model:
    """A model without what no run needs: ``unused`` tensors, constants and operator codes; ``metadata`` that no runtime
    reads, what a part remembers of its origin among them; appended ``files``; the ``description``. If it is asked for
    also the ``names`` of tensors, but those of inputs and outputs, and of subgraphs; and the ``signatures``."""
    model = opened(source)
    stripped = model
    if metadata:
        for name in FOR_PEOPLE:
            stripped = without_metadata(stripped, name)
    if files and file_names(stripped):
        stripped = with_files(stripped, {})
    if description and stripped.description:
        stripped = stripped.replace(description="")
    if signatures and stripped.signature_defs:
        stripped = stripped.replace(signature_defs=())
    if names:
        stripped = _without_names(stripped)
    if unused or stripped.metadata != model.metadata:
        cleared = without_unused(stripped, None if unused else model)
        if cleared is not stripped and any(
            len(one.tensors) != len(other.tensors)
            for one, other in zip(cleared.subgraphs, stripped.subgraphs, strict=True)
        ):
            cleared = without_metadata(cleared, OFFLINE_ALLOCATION)  # it counts the tensors
        stripped = cleared
    return finished(model, stripped)


def _without_names(model: Model) -> Model:
    subgraphs = []
    for subgraph in model.subgraphs:
        ends = {*subgraph.inputs, *subgraph.outputs}
        tensors: list[Any] = [
            tensor if number in ends or not tensor.name else tensor.replace(name="")
            for number, tensor in enumerate(subgraph.tensors)
        ]
        fields: dict[str, Any] = {"tensors": tuple(tensors)}
        if subgraph.name:
            fields["name"] = ""
        subgraphs.append(subgraph.replace(**fields))
    return model.replace(subgraphs=tuple(subgraphs))
