"""What a model says about itself: TFLite metadata, labels, appended files, runtime version, offline memory plans.

Metadata entries are buffers with a name. The files that some of them name are appended to the model (`appended`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.errors import ModelError
from gossamer.model.appended import append_files as append_files
from gossamer.model.appended import associated_files as associated_files
from gossamer.model.appended import file_names as file_names
from gossamer.model.appended import read_file as read_file
from gossamer.model.appended import with_files as with_files
from gossamer.model.model import Model
from gossamer.model.reader import read_root
from gossamer.model.writer import write_root
from gossamer.records import record
from gossamer.schema.metadata import METADATA_IDENTIFIER, AssociatedFile, AssociatedFileType, ModelMetadata
from gossamer.schema.tables import Buffer, Metadata

if TYPE_CHECKING:
    from gossamer.arrays import NDArray

MODEL_METADATA = "TFLITE_METADATA"
MIN_RUNTIME_VERSION = "min_runtime_version"
CONVERSION_METADATA = "CONVERSION_METADATA"
OFFLINE_ALLOCATION = "OfflineMemoryAllocation"

_MIN_RUNTIME_BYTES = 16


def model_metadata(model: Model) -> ModelMetadata | None:
    """The TFLite metadata of a model, ``None`` if it has none. Raises `ModelError` if they are damaged."""
    data = model.metadata_data(MODEL_METADATA)
    if data is None or not data.size:
        return None
    try:
        return read_root(ModelMetadata, data.data, METADATA_IDENTIFIER)
    except ModelError as error:
        raise ModelError(f"metadata {MODEL_METADATA!r}: {error}") from None


def with_model_metadata(model: Model, metadata: ModelMetadata) -> Model:
    """A copy of a model with these TFLite metadata. Raises `ModelError` if they cannot be stored."""
    return with_metadata(model, MODEL_METADATA, write_root(metadata, METADATA_IDENTIFIER))


def with_metadata(model: Model, name: str, data: bytes | NDArray[Any]) -> Model:
    """A copy of a model whose metadata entry of a name holds these bytes; the entry is added if there is none."""
    content = np.frombuffer(bytes(data), np.uint8)
    # The buffer of the old entry may serve others too, so the new one gets its own.
    buffers = [*(model.buffers or (Buffer(),)), Buffer(data=content)]
    entry = Metadata(name=name, buffer=len(buffers) - 1)
    place = next((i for i, old in enumerate(model.metadata) if old.name == name), len(model.metadata))
    if place < len(model.metadata):
        old = model.metadata[place].buffer
        if 0 < old < len(model.buffers) and _uses(model, old) == 1:
            buffers[old] = buffers.pop()
            entry = Metadata(name=name, buffer=old)
    entries = [*model.metadata[:place], entry, *model.metadata[place + 1 :]]
    return model.replace(buffers=tuple(buffers), metadata=tuple(entries))


def _uses(model: Model, buffer: int) -> int:
    return sum(entry.buffer == buffer for entry in model.metadata) + sum(
        tensor.buffer == buffer for subgraph in model.subgraphs for tensor in subgraph.tensors
    )


def min_runtime_version(model: Model) -> str | None:
    """The oldest runtime that knows every operator version of a model, as its converter found; ``None`` if not said."""
    data = model.metadata_data(MIN_RUNTIME_VERSION)
    if data is None:
        return None
    text = data[:_MIN_RUNTIME_BYTES].tobytes().split(b"\0", 1)[0]
    return text.decode("utf-8", "replace") or None


def with_min_runtime_version(model: Model, version: str) -> Model:
    """A copy of a model that names the oldest runtime for it. Raises `ValueError` for more than 15 bytes."""
    text = version.encode()
    if len(text) >= _MIN_RUNTIME_BYTES:
        raise ValueError(f"min_runtime_version {version!r} has {len(text)} bytes, at most {_MIN_RUNTIME_BYTES - 1} fit")
    return with_metadata(model, MIN_RUNTIME_VERSION, text.ljust(_MIN_RUNTIME_BYTES, b"\0"))


def conversion_metadata(model: Model) -> bytes | None:
    """What the converter noted, as it is stored (a FlatBuffer of its own); ``None`` if there is nothing."""
    data = model.metadata_data(CONVERSION_METADATA)
    return None if data is None else data.tobytes()


@record(frozen=True)
class OfflineAllocation:
    """Offsets in TFLite Micro's arena, in bytes, decided before run time; -1 leaves one open.

    There is one for each tensor of each subgraph, those of the first subgraph first. ``version`` is that of the format,
    which nobody reads.
    """

    offsets: tuple[int, ...]
    version: int = 1


def offline_allocation(model: Model) -> OfflineAllocation | None:
    """The offline memory plan of a model, ``None`` if it has none. Raises `ModelError` if it does not fit the model."""
    data = model.metadata_data(OFFLINE_ALLOCATION)
    if data is None:
        return None
    if data.size < 12 or data.size % 4:
        raise ModelError(f"metadata {OFFLINE_ALLOCATION!r} has {data.size} bytes; it is a vector of at least 3 int32")
    # The second number is that of the subgraphs, by TFLite Micro's manual; TFLite Micro does not look at it.
    version, _, count, *offsets = np.frombuffer(data.tobytes(), "<i4").tolist()
    if not 0 <= count <= len(offsets):
        raise ModelError(f"metadata {OFFLINE_ALLOCATION!r} says {count} offsets and holds {len(offsets)}")
    allocation = OfflineAllocation(tuple(offsets[:count]), version)
    _check_allocation(model, allocation)
    return allocation


def with_offline_allocation(model: Model, allocation: OfflineAllocation) -> Model:
    """A copy of a model with an offline memory plan. Raises `ModelError` if the plan does not fit the model."""
    _check_allocation(model, allocation)
    values = [allocation.version, len(model.subgraphs), len(allocation.offsets), *allocation.offsets]
    return with_metadata(model, OFFLINE_ALLOCATION, np.array(values, "<i4").tobytes())


def _check_allocation(model: Model, allocation: OfflineAllocation) -> None:
    what = f"metadata {OFFLINE_ALLOCATION!r}"
    count = sum(len(subgraph.tensors) for subgraph in model.subgraphs)
    if len(allocation.offsets) != count:
        raise ModelError(f"{what} has {len(allocation.offsets)} offsets for the {count} tensors of the model")
    for i, offset in enumerate(allocation.offsets):
        if not -1 <= offset < 1 << 31:
            raise ModelError(f"{what} has offset {offset} for tensor {i}; allowed are -1 and above")


def labels(model: Model) -> list[str] | None:
    """The labels of a model's first labelled output, one per index; ``None`` if it has none.

    They are looked for where the metadata say; failing that, in `exporter_facts`, and at last a single appended
    ``.txt`` file is taken for them. Raises `ModelError` for damaged metadata and for a label file that is named but not
    there.
    """
    for file in _label_files(model_metadata(model)):
        content = read_file(model, file.name)
        return _names(_facts_in(content)) or _lines(content)
    facts = exporter_facts(model)
    if facts:
        return _names(facts)
    texts = [name for name in file_names(model) if name.lower().endswith(".txt")]
    return _lines(read_file(model, texts[0])) if len(texts) == 1 else None


_MAX_FACTS = 1 << 20


def exporter_facts(model: Model) -> dict[str, Any]:
    """What Ultralytics' exporter notes in an appended file: ``names`` (of classes, by number), ``kpt_shape`` and more.

    It is a dictionary with ``names``, as JSON or as Python writes it; empty if there is none.
    """
    for name in file_names(model):
        if name.lower().endswith((".txt", ".json")):
            facts = _facts_in(read_file(model, name))
            if facts:
                return facts
    return {}


def _facts_in(content: bytes) -> dict[str, Any]:
    if not content.startswith(b"{") or len(content) > _MAX_FACTS:
        return {}
    import ast
    import json

    text = content.decode("utf-8", "replace")
    facts = None
    for parse in (json.loads, ast.literal_eval):
        try:
            facts = parse(text)
            break
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return facts if isinstance(facts, dict) and isinstance(facts.get("names"), dict | list) else {}


def _names(facts: Mapping[str, Any]) -> list[str] | None:
    names = facts.get("names", ())
    pairs = names.items() if isinstance(names, dict) else enumerate(names)
    by_number = {str(number): str(name) for number, name in pairs}
    complete = bool(by_number) and all(str(number) in by_number for number in range(len(by_number)))
    return [by_number[str(number)] for number in range(len(by_number))] if complete else None


def _label_files(metadata: ModelMetadata | None) -> Iterator[AssociatedFile]:
    for subgraph in metadata.subgraph_metadata if metadata is not None else ():
        for tensor in subgraph.output_tensor_metadata:
            for file in tensor.associated_files:
                if file.type in (AssociatedFileType.TENSOR_AXIS_LABELS, AssociatedFileType.TENSOR_VALUE_LABELS):
                    yield file


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8-sig", "replace").rstrip().splitlines()
