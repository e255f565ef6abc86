"""The order of operators beyond their data: the metadata entry ``model_control_dependencies``.

A converter writes it for operators whose order can be observed. The entry is a version, which is 1, and for each
subgraph a list of pairs: the second operator runs after the first. Counts and numbers are varints, 7 bits to the
byte, low bits first; operator numbers are zigzag encoded, as they are signed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gossamer.model.model import Model

CONTROL_DEPENDENCIES = "model_control_dependencies"

ControlEdge = tuple[int, int]
Edges = tuple[ControlEdge, ...]


def control_dependencies(model: Model) -> tuple[Edges, ...] | None:
    """The pairs of each subgraph, by operator number; ``None`` if there are none, or, as in TFLite, if the entry is
    damaged or for another number of subgraphs."""
    data = model.metadata_data(CONTROL_DEPENDENCIES)
    if data is None:
        return None
    edges = decode(data.tobytes())
    return edges if edges is not None and len(edges) == len(model.subgraphs) else None


def encode(edges: Sequence[Sequence[ControlEdge]]) -> bytes:
    """The entry for these pairs, one list for each subgraph."""
    numbers = [1, len(edges)]
    for pairs in edges:
        numbers.append(len(pairs))
        numbers += [-2 * number - 1 if number < 0 else 2 * number for pair in pairs for number in pair]
    stored = bytearray()
    for number in numbers:
        while number >= 128:
            stored.append(number % 128 + 128)
            number //= 128
        stored.append(number)
    return bytes(stored)


def decode(stored: bytes) -> tuple[Edges, ...] | None:
    """The pairs of an entry, or ``None`` if it is not one."""
    numbers = _varints(stored)
    try:
        if next(numbers) != 1:
            return None
        edges = tuple([tuple([(_signed(numbers), _signed(numbers)) for _ in _times(numbers)]) for _ in _times(numbers)])
    except StopIteration:
        return None
    return edges if next(numbers, None) is None else None


def _varints(stored: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in stored:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value & 0xFFFFFFFF
            value = shift = 0


def _times(numbers: Iterator[int]) -> range:
    return range(next(numbers))


def _signed(numbers: Iterator[int]) -> int:
    number = next(numbers)
    return -(number // 2) - 1 if number % 2 else number // 2
