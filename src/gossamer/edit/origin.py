"""What a part remembers of the model that it was cut from: its file, but for the weights that are in the parts.

The order of tables, unused constants, what another program wrote between them: no part has all that, and a merge that
put it together anew would give a model that does the same in other bytes. So each part has a metadata entry
``gossamer_origin``: the bytes of the file without the large constants of the subgraph (compressed), where those were,
and which operators and tensors the part has. `restored` puts the file together and cuts it again. If that gives just
these parts, merging them gives that file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.edit.documented import without_metadata
from gossamer.edit.edited import finished
from gossamer.edit.portion import ORIGIN, Part, Portion, portion
from gossamer.edit.references import all_called, inline
from gossamer.errors import GossamerError
from gossamer.model.metadata import associated_files, with_metadata
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.structure import LARGE

MOST = 16 << 20
"""Bytes of a file besides the weights of the parts; a file that has more is not remembered."""

Hole = tuple[int, int, int]
"""First byte of a constant in the file, its size, the number of its buffer."""


class Origin(NamedTuple):
    """The file of a whole model: ``rest`` are its bytes without ``holes``. ``whole`` is all of it as it is stored in
    each part, ``part`` what the one has that it was read from."""

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
    if len(source) - sum(size for _, size, _ in holes) > MOST:
        return model
    rest, at = [], 0
    for start, size, _ in holes:
        rest.append(source[at:start])
        at = start + size
    rest.append(source[at:])
    head = json.dumps({"size": len(source), "holes": holes}).encode()
    stored = zlib.compress(b"".join([head, b"\0", *rest]), 9)
    of_part = zlib.compress(json.dumps([part.subgraph, *map(_runs, part[1:])]).encode(), 9)
    return with_metadata(model, ORIGIN, len(stored).to_bytes(4, "little") + stored + of_part)


def _holes(whole: Model, source: memoryview, subgraph: int) -> list[Hole]:
    """Where the large constants of a subgraph and of those that it calls lie, each place once, in ascending order."""
    first = np.frombuffer(source, np.uint8).ctypes.data
    found: dict[int, Hole] = {}
    used = {t.buffer for number in all_called(whole, [subgraph]) for t in whole.subgraphs[number].tensors}
    for number in sorted(used):
        data = whole.buffer_data(number)
        if data is not None and data.size >= LARGE:
            start = data.ctypes.data - first
            found.setdefault(start, (start, data.size, number))
    holes: list[Hole] = []
    for hole in sorted(found.values()):
        if not holes or holes[-1][0] + holes[-1][1] <= hole[0]:  # constants that overlap: the second stays
            holes.append(hole)
    return holes


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
    if origin.size != len(origin.rest) + sum(size for _, size, _ in origin.holes) or origin.size > sum(sizes) + MOST:
        return None
    content = np.zeros(origin.size, np.uint8)
    at = taken = 0
    for start, size, _ in (*origin.holes, (origin.size, 0, 0)):
        if start < at:
            return None
        content[at:start] = np.frombuffer(origin.rest, np.uint8)[taken : taken + start - at]
        taken, at = taken + start - at, start + size
    # Constants decide nothing about how a model is cut, so it is known where they belong before they are there.
    empty = read_model(content.data)
    if not _is_all(empty, parts):
        return None
    open_ = {number: (start, size) for start, size, number in origin.holes}
    for model, part in zip(models, parts, strict=True):
        for number, old in enumerate(portion(empty, part).buffers):
            if old in open_:
                start, size = open_.pop(old)
                data = model.buffer_data(number)
                if data is None or data.size != size:
                    return None
                content[start : start + size] = data
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
    holes = tuple([(int(start), int(size), int(number)) for start, size, number in said["holes"]])
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
