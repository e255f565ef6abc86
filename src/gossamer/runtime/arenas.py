"""Arenas in which subgraphs take turns: those that operators call at one depth never run at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from gossamer.arrays import NDArray
from gossamer.limits import require_memory
from gossamer.model.model import Model
from gossamer.records import record
from gossamer.schema.fields import Table

ALIGNMENT = 64


def aligned_memory(size: int) -> NDArray[np.uint8]:
    """Zeroed memory that starts at a multiple of 64 bytes. Raises `MemoryError` if there is not so much."""
    require_memory(size)
    try:
        raw = np.zeros(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:
        raise MemoryError(f"the arena needs {size} bytes") from error
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


class Holder(Protocol):
    """A subgraph as what its memory lies in sees it."""

    index: int
    busy: bool
    shared_arena: SharedArena | None

    def move_arena(self, memory: NDArray[np.uint8]) -> None:
        """Have the arena, but not the one for what stays, at the beginning of this memory."""

    @property
    def arena_bytes(self) -> tuple[int, int] | None:
        """Bytes of the arena and of the one for what stays; ``None`` before they are planned."""

    @property
    def room_bytes(self) -> int:
        """Bytes of what lies beside."""


class SharedArena:
    """The block in which some subgraphs have their arenas, each from its first byte: as large as the largest of them.

    Nothing in it outlives the call of a subgraph. It only grows; then all move to the new block.
    """

    def __init__(self) -> None:
        self.memory = aligned_memory(0)
        self.holders: list[Holder] = []

    @property
    def is_in_use(self) -> bool:
        """Whether one of the subgraphs runs."""
        return any(holder.busy for holder in self.holders)

    def take(self, subgraph: Holder, size: int) -> NDArray[np.uint8]:
        """The block, of so many bytes at least. What a subgraph has in it moves along. Raises `MemoryError`."""
        if subgraph not in self.holders:
            self.holders.append(subgraph)
        if self.memory.size < size:
            grown = aligned_memory(size)
            grown[: self.memory.size] = self.memory
            self.memory = grown
            for holder in self.holders:
                if holder is not subgraph:
                    holder.move_arena(grown)
        return self.memory

    def leave(self, subgraph: Holder) -> None:
        """A subgraph has memory of its own from now on."""
        if subgraph in self.holders:
            self.holders.remove(subgraph)


@record(frozen=True)
class SharedBytes:
    """Subgraphs that take turns in one block of so many bytes."""

    subgraphs: tuple[int, ...]
    bytes: int


@record(frozen=True)
class MemoryReport:
    """The bytes of the arenas of an interpreter.

    ``arenas`` and ``persistent``: what the plan of each subgraph needs, by its index, for what lives in an invocation
    and for what stays. ``shared``: the blocks in which the former lie; those of other subgraphs lie alone. ``loops``:
    what loops take beside, for values that the body reads while it writes those of the next iteration.
    """

    arenas: Mapping[int, int]
    persistent: Mapping[int, int]
    shared: tuple[SharedBytes, ...]
    loops: int

    @property
    def saved(self) -> int:
        """The bytes that shared blocks save. A block may be larger than it need be: it was needed before."""
        return sum(max(0, self._alone(block) - block.bytes) for block in self.shared)

    @property
    def total(self) -> int:
        """The bytes that are allocated."""
        shared = sum(block.bytes - self._alone(block) for block in self.shared)
        return sum(self.arenas.values()) + sum(self.persistent.values()) + shared + self.loops

    def _alone(self, block: SharedBytes) -> int:
        return sum(self.arenas[index] for index in block.subgraphs)


def memory_report(subgraphs: Sequence[Holder]) -> MemoryReport:
    """See `MemoryReport`; subgraphs that are not allocated are left out."""
    planned = {subgraph.index: subgraph.arena_bytes for subgraph in subgraphs}
    sizes = {index: bytes for index, bytes in planned.items() if bytes is not None}
    blocks = {id(subgraph.shared_arena): subgraph.shared_arena for subgraph in subgraphs}
    shared = [
        SharedBytes(tuple(sorted(holder.index for holder in block.holders)), block.memory.size)
        for block in blocks.values()
        if block is not None and block.holders
    ]
    return MemoryReport(
        {index: arena for index, (arena, _) in sizes.items()},
        {index: persistent for index, (_, persistent) in sizes.items()},
        tuple(sorted(shared, key=lambda block: block.subgraphs)),
        sum(subgraph.room_bytes for subgraph in subgraphs),
    )


def called_subgraphs(options: Table | None) -> Iterator[int]:
    """The indices of the subgraphs that the options of an operator name."""
    for field in () if options is None else options.FIELDS:
        if field.name.endswith("subgraph_index"):
            yield getattr(options, field.name)
        elif field.name.endswith("subgraph_indices"):
            yield from getattr(options, field.name)


def call_depths(model: Model) -> list[int | None]:
    """How deep each subgraph lies below those that nobody calls, by the longest way; ``None`` for those that call
    themselves, and what they call. Of subgraphs at one depth, none calls another, directly or through others."""
    count = len(model.subgraphs)
    calls = [
        {
            index
            for node in subgraph.operators
            for options in (node.builtin_options, node.builtin_options_2)
            if options is not None
            for index in called_subgraphs(options)
            if 0 <= index < count
        }
        for subgraph in model.subgraphs
    ]
    waiting = [0] * count
    for callee in _all(calls):
        waiting[callee] += 1
    depths: list[int | None] = [0 if not callers else None for callers in waiting]
    ready = [index for index, callers in enumerate(waiting) if not callers]
    deepest = [0] * count
    for caller in ready:
        for callee in calls[caller]:
            deepest[callee] = max(deepest[callee], deepest[caller] + 1)
            waiting[callee] -= 1
            if not waiting[callee]:
                depths[callee] = deepest[callee]
                ready.append(callee)
    return depths


def _all(calls: Iterable[set[int]]) -> Iterator[int]:
    for callees in calls:
        yield from callees
