"""What a part remembers of the model that it was cut from: its file, but for the weights that are in the parts.

The order of tables, unused constants, what another program wrote between them: no part has all that, and a merge that
put it together anew would give a model that does the same in other bytes. So each part has a metadata entry
``gossamer_origin``: the bytes of the file without constants and scales of the subgraph (compressed), where those were,
and which operators and tensors the part has. `restored` puts the file together and cuts it again. If that gives just
these parts, merging them gives that file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.edit.documented import without_metadata
from gossamer.edit.edited import finished
from gossamer.edit.portion import ORIGIN, Part, Portion, portion
from gossamer.edit.references import all_called, called, inline, scales_of, tensors_of
from gossamer.errors import GossamerError
from gossamer.model.metadata import associated_files, with_metadata
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.schema.tables import Tensor

MOST = 16 << 20
"""Bytes of a file besides the weights of the parts; a file that has more is not remembered."""

SHORT = 64
"""Bytes of constants that are remembered with the rest: to say where they were takes as much."""

Hole = tuple[int, int]
"""First byte in the file of what the parts have, and its size."""


class Origin(NamedTuple):
    """The file of a whole model: ``rest`` are its bytes without those in ``holes``. ``whole`` is all of it as it is
    stored in each part, ``part`` what the one has that it was read from."""

    whole: bytes
    size: int
    holes: tuple[Hole, ...]
    rest: bytes
    part: Part


def remembering(whole: Model, part: Part, model: Model) -> Model:
    """A part that remembers the whole; as it is if there would be too much to remember."""
    if whole.source is None or not whole.unchanged:
        whole = read_model(bytes(whole))
    source = whole.source or memoryview(b"")
    holes = _holes(whole, source, part.subgraph)
    if len(source) - sum(size for _, size in holes) > MOST:
        return model
    rest, at = [], 0
    for start, size in holes:
        rest.append(source[at:start])
        at = start + size
    rest.append(source[at:])
    head = json.dumps({"size": len(source), "holes": holes}).encode()
    stored = zlib.compress(b"".join([head, b"\0", *rest]), 9)
    of_part = zlib.compress(json.dumps([part.subgraph, *map(_runs, part[1:])]).encode(), 9)
    return with_metadata(model, ORIGIN, len(stored).to_bytes(4, "little") + stored + of_part)


def _holes(whole: Model, source: memoryview, subgraph: int) -> list[Hole]:
    """Where constants and scales of a subgraph, and constants of those that it calls, lie: in ascending order, each
    place once."""
    graph = whole.subgraphs[subgraph]
    named = {number for operator in graph.operators for number in tensors_of(operator)}
    named |= {number for tensor in named for number in scales_of(graph.tensors[tensor])}
    buffers = {graph.tensors[number].buffer for number in named}
    for number in all_called(whole, [other for operator in graph.operators for other in called(operator)]):
        buffers |= {tensor.buffer for tensor in whole.subgraphs[number].tensors}
    arrays = [*map(whole.buffer_data, sorted(buffers)), *[_scales(graph.tensors[number]) for number in sorted(named)]]
    first = np.frombuffer(source, np.uint8).ctypes.data
    found = {array.ctypes.data - first: array.nbytes for array in arrays if array is not None and array.nbytes >= SHORT}
    holes: list[Hole] = []
    for start, size in sorted(found.items()):
        if not holes or sum(holes[-1]) <= start:  # of two that overlap, the second stays
            holes.append((start, size))
    return holes


def _scales(tensor: Tensor) -> NDArray[Any] | None:
    return None if tensor.quantization is None else tensor.quantization.scale


def restored(parts: Sequence[Model]) -> Model | None:
    """The model that all these are parts of, if that is all that it does, and they are just as they were cut; else
    ``None``."""
    try:
        origins = [_origin(part) for part in parts]
        first = origins[0]
        if first is None or any(one is None or one.whole != first.whole for one in origins):
            return None
        return _rebuilt(first, parts, [one.part for one in origins if one is not None])
    except (GossamerError, ValueError, TypeError, LookupError, zlib.error):
        return None  # whatever the entry is, it is not what was written here


def _rebuilt(origin: Origin, models: Sequence[Model], parts: Sequence[Part]) -> Model | None:
    sizes = [
        data.size for model in models for n in range(len(model.buffers)) if (data := model.buffer_data(n)) is not None
    ]
    if origin.size != len(origin.rest) + sum(size for _, size in origin.holes) or origin.size > sum(sizes) + MOST:
        return None
    content = np.zeros(origin.size, np.uint8)
    at = taken = 0
    for start, size in (*origin.holes, (origin.size, 0)):
        if start < at:
            return None
        content[at:start] = np.frombuffer(origin.rest, np.uint8)[taken : taken + start - at]
        taken, at = taken + start - at, start + size
    # Constants decide nothing about how a model is cut, so it is known where they belong before they are there.
    empty = read_model(content.data)
    if not _is_all(empty, parts):
        return None
    open_ = dict(origin.holes)
    for model, part in zip(models, parts, strict=True):
        cut = portion(empty, part)
        # What has a place in the file, and what the part has for it.
        pairs = [(empty.buffer_data(old), model.buffer_data(number)) for number, old in enumerate(cut.buffers)]
        tensors = empty.subgraphs[part.subgraph].tensors
        for number, old in enumerate(cut.tensors):
            pairs.append((_scales(tensors[old]), _scales(model.subgraphs[0].tensors[number])))
        for there, here in pairs:
            start = -1 if there is None else there.ctypes.data - content.ctypes.data
            if start in open_:
                size = open_.pop(start)
                if here is None or here.nbytes != size:
                    return None
                content[start : start + size] = np.ascontiguousarray(here).view(np.uint8)
    if open_:
        return None
    content.flags.writeable = False
    whole = read_model(content.data)
    for model, part in zip(models, parts, strict=True):
        if not _is_portion(model, portion(whole, part)):
            return None
    return whole


def _is_portion(model: Model, cut: Portion) -> bool:
    bare = inline(without_metadata(model, ORIGIN))
    last = model.buffers[-1]
    if any(entry.name == ORIGIN and model.buffers[entry.buffer] is last for entry in model.metadata):
        bare = bare.replace(buffers=bare.buffers[:-1])
    again = finished(bare, cut.model)
    return again == bare and associated_files(again) == associated_files(bare)


def _is_all(whole: Model, parts: Sequence[Part]) -> bool:
    """Whether parts of a model, put together, do all that it does: what goes into one comes out of another one or into
    the model, and each operator that the model needs is in one of them."""
    (number,) = {part.subgraph for part in parts}
    if {signature.subgraph_index for signature in whole.signature_defs} - {number} or number:
        return False
    graph = whole.subgraphs[number]
    gives = {tensor for part in parts for tensor in part.outputs}
    takes = {tensor for part in parts for tensor in part.inputs}
    if not (takes <= gives | set(graph.inputs) and set(graph.outputs) <= gives):
        return False
    inside = {operator for part in parts for operator in part.operators}
    if len(inside) != sum(len(part.operators) for part in parts):
        return False
    outside = [one for n, one in enumerate(graph.operators) if n not in inside]
    needed = {tensor for n in inside for tensor in graph.operators[n].inputs} | set(graph.outputs)
    return not any(needed & set(one.outputs) or not one.outputs for one in outside)


def _origin(model: Model) -> Origin | None:
    data = model.metadata_data(ORIGIN)
    if data is None:
        return None
    stored = data.tobytes()
    end = 4 + int.from_bytes(stored[:4], "little")
    head, _, rest = _unpacked(stored[4:end]).partition(b"\0")
    said = json.loads(head)
    subgraph, *numbers = json.loads(_unpacked(stored[end:]))
    operators, inputs, outputs = map(_numbers, numbers)
    holes = tuple([(int(start), int(size)) for start, size in said["holes"]])
    return Origin(stored[:end], int(said["size"]), holes, rest, Part(int(subgraph), operators, inputs, outputs))


def _unpacked(stored: bytes) -> bytes:
    """Raises `ValueError` for more bytes than are ever stored."""
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(stored, 2 * MOST)
    if not unpacking.eof:
        raise ValueError("cut short, or too long")
    return content


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers as pairs: the first of a run, and how many follow it."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def _numbers(runs: Any) -> tuple[int, ...]:
    if sum(int(count) for _, count in runs) > MOST:
        raise ValueError("too many")
    return tuple([int(first) + n for first, count in runs for n in range(int(count))])
