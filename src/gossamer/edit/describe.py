"""What a model says of itself: metadata, labels, files, signatures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.edit.documented import changed_metadata, records_of, without_metadata
from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.merge import signature_of
from gossamer.edit.names import Graph, Name, subgraph_of
from gossamer.errors import EditError, did_you_mean
from gossamer.model.metadata import associated_files, with_files, with_metadata
from gossamer.model.model import Model
from gossamer.schema.metadata import (
    AssociatedFile,
    AssociatedFileType,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    SubGraphMetadata,
    TensorMetadata,
)
from gossamer.schema.tables import SignatureDef, TensorMap

LABELS = "labels.txt"
"""The file in which labels are appended."""


def describe(
    source: Source,
    *,
    name: str | None = None,
    description: str | None = None,
    author: str | None = None,
    version: str | None = None,
    license: str | None = None,
    tensors: Mapping[Name, str] | None = None,
    normalization: Mapping[Name, tuple[Any, Any]] | None = None,
    labels: Mapping[Name, Sequence[str]] | Sequence[str] | None = None,
    files: Mapping[str, bytes] | None = None,
    entries: Mapping[str, bytes | None] | None = None,
) -> Model:
    """A model with TFLite metadata, as TFLite's tools read them: ``name`` … ``license`` of the model; ``tensors``: what
    inputs and outputs are; ``normalization``: mean and std that an input has gone through; ``labels`` of an output, one
    for each class: a list for the only one, or one by name. ``files`` are appended; ``entries`` are metadata entries of
    other names, ``None`` takes one away. What is not given stays.

    Raises `EditError` for what is no input or output, and `ModelError` if the metadata that it has are damaged.
    """
    model = opened(source)
    graph = Graph(model, 0)
    said = {"name": name, "description": description, "author": author, "version": version, "license": license}
    given = {field: text for field, text in said.items() if text is not None}
    records = _Records(model, graph)
    for tensor, text in (tensors or {}).items():
        records.change(tensor, description=text)
    for tensor, (mean, std) in (normalization or {}).items():
        options = NormalizationOptions(mean=_floats(mean), std=_floats(std))
        records.change(tensor, process_units=(ProcessUnit(options=options),))
    appended = dict(files or {})
    listed = {} if labels is None else labels if isinstance(labels, Mapping) else {_only(graph): labels}
    for tensor, lines in listed.items():
        file = LABELS if len(listed) == 1 else f"{graph.name(graph.output(tensor))}_{LABELS}"
        appended[file] = "".join(f"{line}\n" for line in _lines(lines)).encode()
        record = AssociatedFile(name=file, type=AssociatedFileType.TENSOR_AXIS_LABELS, description="labels of classes")
        records.change(tensor, associated_files=(record,))
    changed = model
    if given or records.changed:
        changed = changed_metadata(changed, lambda metadata: records.written(metadata.replace(**given)))
    for entry, content in (entries or {}).items():
        changed = without_metadata(changed, entry) if content is None else with_metadata(changed, entry, content)
    if appended:
        old = associated_files(changed)
        if any(old.get(file) != content for file, content in appended.items()):
            changed = with_files(changed, {**old, **appended})
    return finished(model, changed)


def _floats(values: Any) -> Any:
    return np.atleast_1d(np.asarray(values, np.float32))


def _lines(labels: Iterable[str]) -> list[str]:
    found = [str(label) for label in labels]
    for label in found:
        if "\n" in label or "\r" in label:
            raise EditError(f"a label is one line, got {label!r}")
    return found


def _only(graph: Graph) -> Name:
    return graph.output(None)


class _Records:
    """What the metadata say of each input and output."""

    def __init__(self, model: Model, graph: Graph) -> None:
        ends = graph.subgraph.inputs, graph.subgraph.outputs
        known = records_of(model) or ((), ())
        self.graph = graph
        self.ends = ends
        self.sides = [list(side) or [TensorMetadata()] * len(of) for side, of in zip(known, ends, strict=True)]
        self.changed = False

    def change(self, tensor: Name, **fields: Any) -> None:
        """Say something of an input or an output."""
        number = self.graph.tensor(tensor)
        places = [(side, ends.index(number)) for side, ends in enumerate(self.ends) if number in ends]
        if not places:
            raise EditError(
                f"{self.graph.brief(number)} is no input and no output; "
                f"they are {self.graph.shown([*self.ends[0], *self.ends[1]])}"
            )
        side, place = places[-1]
        old = self.sides[side][place]
        named = {} if old.name else {"name": self.graph.argument(number, bool(side))}
        self.sides[side][place] = old.replace(**named, **fields)
        self.changed = True

    def written(self, metadata: ModelMetadata) -> ModelMetadata:
        if not self.changed:
            return metadata
        first, *rest = metadata.subgraph_metadata or (SubGraphMetadata(),)
        first = first.replace(input_tensor_metadata=tuple(self.sides[0]), output_tensor_metadata=tuple(self.sides[1]))
        return metadata.replace(subgraph_metadata=(first, *rest))


def sign(
    source: Source,
    key: str = "serving_default",
    inputs: Mapping[str, Name] | None = None,
    outputs: Mapping[str, Name] | None = None,
    *,
    subgraph: int = 0,
) -> Model:
    """A model with a signature of this key: names of arguments and results, and the tensors that they are; left out,
    those of the subgraph under their own names. It takes the place of one with the same key.

    Raises `EditError` if there is no such tensor, or an input is left out.
    """
    model = opened(source)
    graph = Graph(model, subgraph_of(model, subgraph))
    whole = signature_of(graph, key)
    sides: dict[str, tuple[TensorMap, ...]] = {"inputs": whole.inputs, "outputs": whole.outputs}
    for side, names in (("inputs", inputs), ("outputs", outputs)):
        if names is not None:
            find = graph.input if side == "inputs" else graph.tensor
            sides[side] = tuple([TensorMap(name=one, tensor_index=find(tensor)) for one, tensor in names.items()])
    missing = set(graph.subgraph.inputs) - {entry.tensor_index for entry in sides["inputs"]}
    if missing:
        raise EditError(f"the signature {key!r} leaves out inputs: {graph.shown(sorted(missing))}")
    signature = SignatureDef(signature_key=key, subgraph_index=graph.number, **sides)
    others = list(model.signature_defs)
    place = next((n for n, one in enumerate(others) if one.signature_key == key), len(others))
    if place == len(others) or others[place] != signature:
        others[place : place + 1] = [signature]
    return finished(model, model.replace(signature_defs=tuple(others)))


def unsign(source: Source, key: str) -> Model:
    """A model without a signature. Raises `EditError` if there is none of this key."""
    model = opened(source)
    if key not in model.signatures:
        raise EditError(f"there is no signature {key!r}{did_you_mean(key, model.signatures)}")
    return finished(
        model, model.replace(signature_defs=tuple([one for one in model.signature_defs if one.signature_key != key]))
    )
