"""What TFLite metadata say of inputs and outputs, when a model has others: the records in their order, and the files
that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gossamer.errors import ModelError
from gossamer.model.metadata import (
    associated_files,
    file_names,
    model_metadata,
    with_files,
    with_model_metadata,
)
from gossamer.model.model import Model
from gossamer.schema.metadata import AssociatedFile, ModelMetadata, SubGraphMetadata, TensorMetadata

Records = tuple[TensorMetadata, ...]


def records_of(model: Model, subgraph: int = 0) -> tuple[Records, Records] | None:
    """What the metadata say of each input and output of a subgraph; ``None`` if there are none, or they are damaged."""
    metadata = _readable(model)
    if metadata is None:
        return None
    stored = metadata.subgraph_metadata[subgraph] if subgraph < len(metadata.subgraph_metadata) else SubGraphMetadata()
    graph = model.subgraphs[subgraph]
    return _as_many(stored.input_tensor_metadata, graph.inputs), _as_many(stored.output_tensor_metadata, graph.outputs)


def _as_many(records: Records, ends: Sequence[int]) -> Records:
    return records if len(records) == len(ends) else tuple([TensorMetadata()] * len(ends))


def _readable(model: Model) -> ModelMetadata | None:
    try:
        return model_metadata(model)
    except ModelError:
        return None


def with_records(model: Model, inputs: Records, outputs: Records, change: Model | None = None) -> Model:
    """A model whose first subgraph has these records, and the files of ``change``, or its own, but those that only
    records name which it has no more."""
    whole = model if change is None else change
    old, metadata = _readable(whole), _readable(model)
    if metadata is None or old is None:
        return model
    first, *rest = metadata.subgraph_metadata or (SubGraphMetadata(),)
    first = first.replace(input_tensor_metadata=inputs, output_tensor_metadata=outputs)
    metadata = metadata.replace(subgraph_metadata=(first, *rest))
    if metadata != _readable(model):
        model = with_model_metadata(model, metadata)
    files = associated_files(whole)
    gone = {file.name for file in _files(old)} - {file.name for file in _files(metadata)}
    kept = {name: content for name, content in files.items() if name not in gone}
    return model if list(kept) == list(file_names(model)) else with_files(model, kept)


def with_ends_of(whole: Model, model: Model, subgraph: int, inputs: Sequence[int], outputs: Sequence[int]) -> Model:
    """A portion of a model with the records of those of its ends that are ends of a subgraph of the whole."""
    metadata = _readable(whole)
    records = records_of(whole, subgraph)
    if metadata is None or records is None:
        return model
    graph = whole.subgraphs[subgraph]
    stored = metadata.subgraph_metadata[subgraph : subgraph + 1]
    if metadata.subgraph_metadata != stored:
        model = with_model_metadata(model, metadata.replace(subgraph_metadata=stored))
    if not stored:
        return model
    taken = tuple([_record(number, graph.inputs, records[0]) for number in inputs])
    given = tuple([_record(number, graph.outputs, records[1]) for number in outputs])
    return with_records(model, taken, given, whole)


def _record(number: int, ends: Sequence[int], records: Records) -> TensorMetadata:
    return records[ends.index(number)] if number in ends else TensorMetadata()


def _files(metadata: ModelMetadata) -> Iterator[AssociatedFile]:
    yield from metadata.associated_files
    for subgraph in metadata.subgraph_metadata:
        yield from subgraph.associated_files
        for record in (*subgraph.input_tensor_metadata, *subgraph.output_tensor_metadata):
            yield from record.associated_files
            for unit in record.process_units:
                for field in () if unit.options is None else unit.options.FIELDS:
                    if field.of is AssociatedFile:
                        yield from getattr(unit.options, field.name)


def changed_metadata(model: Model, change: Callable[[ModelMetadata], ModelMetadata]) -> Model:
    """A model with other metadata; with new ones if it has none. Raises `ModelError` if they are damaged."""
    old = model_metadata(model)
    new = change(ModelMetadata() if old is None else old)
    return model if new == old else with_model_metadata(model, new)


def without_metadata(model: Model, name: str) -> Model:
    """A model without a metadata entry; its buffer is left empty where nobody else has it."""
    entries = tuple([entry for entry in model.metadata if entry.name != name])
    return model if len(entries) == len(model.metadata) else model.replace(metadata=entries)
