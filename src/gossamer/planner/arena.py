"""TFLite's memory planner, byte for byte: `SimpleMemoryArena` and `ArenaPlanner`.

Source of every rule: simple_memory_arena.cc and arena_planner.cc of TFLite, the quirks included, so that a user may
compare plans with LiteRT's. Only offsets are worked out here; the memory is the caller's.
"""

from __future__ import annotations

import sys
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ArenaError
from gossamer.planner import libstdcxx
from gossamer.planner.lifetimes import GraphInfo, Lifetimes, lifetimes
from gossamer.planner.planner import NEVER, AllocationType, BufferRequest, Placement, Plan

ALIGNMENT = 64
"""Bytes to which LiteRT aligns tensors and arenas."""

UNALLOCATED = -1
"""The offset of a tensor without memory in an arena."""

_ARENA_RW = int(AllocationType.ARENA_RW)
_PERSISTENT = int(AllocationType.ARENA_RW_PERSISTENT)
# Allocations that live for more nodes than this are not listed under each of them.
_SHORT = 16
# Of more than so many at one node, the others are not listed there either. So many that are not are searched on
# arrays, unless they reach further than so many bytes.
_MANY = 256
_VAST = 1 << 61

Allocation = tuple[int, int, int, int]
"""First byte, byte after the last, first node, last node."""


class SimpleMemoryArena:
    """Gives out bytes of one block for spans of nodes; what is not alive together may lie in the same place.

    ``high_water`` is the number of bytes that the allocations since `clear_plan` need. ``size`` is the size of the
    block in bytes: it grows to the high-water mark at `commit` and shrinks only at `release`.
    """

    def __init__(self, alignment: int = ALIGNMENT) -> None:
        self.alignment = alignment
        self.high_water = 0
        self.size = 0
        self._set_active(())

    def allocate(self, size: int, first_node: int, last_node: int) -> int:
        """The offset of ``size`` bytes that are free from ``first_node`` to ``last_node``: the best gap, or the end.

        Nothing is needed for a size of 0; its offset, 0, means nothing.
        """
        if size == 0:
            return 0
        fit = self._best_fit if len(self._long) < _MANY else self._best_fit_of_many
        best = fit(size, first_node, last_node)
        self._add((best, best + size, first_node, last_node))
        self.high_water = max(self.high_water, best + size)
        return best

    def _best_fit(self, size: int, first_node: int, last_node: int) -> int:
        alignment = self.alignment
        best = best_fit = sys.maxsize
        end = 0
        for start, stop, _, _ in sorted(self._overlapping(first_node, last_node)):
            aligned = -(-end // alignment) * alignment
            if aligned + size <= start and start - aligned < best_fit:
                # TFLite compares the aligned gap with the unaligned gap of the best so far.
                best, best_fit = aligned, start - end
            if stop > end:
                end = stop
        return -(-end // alignment) * alignment if best == sys.maxsize else best

    def _best_fit_of_many(self, size: int, first_node: int, last_node: int) -> int:
        # The same on arrays, or a graph of many tensors that live long would take the square of their number.
        if self._is_vast or size > _VAST:
            return self._best_fit(size, first_node, last_node)
        alignment = self.alignment
        spans = self._long_spans[:, : len(self._long)]
        spans = spans[:2, (spans[2] <= last_node) & (first_node <= spans[3])]
        short = self._overlapping_short(first_node, last_node)
        if short:
            spans = np.concatenate([spans, np.array(short, np.int64).T[:2]], 1)
            spans = spans[:, np.argsort(spans[0], kind="stable")]
        starts = spans[0]
        ends = np.maximum.accumulate(np.concatenate([[0], spans[1]]))
        aligned = -(-ends // alignment) * alignment
        best, best_fit = int(aligned[-1]), sys.maxsize
        for gap in np.flatnonzero(aligned[:-1] + size <= starts).tolist():
            if starts[gap] - aligned[gap] < best_fit:
                best, best_fit = int(aligned[gap]), int(starts[gap] - ends[gap])
        return best

    def commit(self) -> None:
        """Grow the block to the high-water mark. Raises `ArenaError` past the address space."""
        if self.high_water > sys.maxsize:
            raise ArenaError(f"the tensors need {self.high_water} bytes; at most {sys.maxsize} can be addressed")
        self.size = max(self.size, self.high_water)

    def release(self) -> None:
        """Give the block back. The plan stays, and `commit` brings the block back."""
        self.size = 0

    def clear_plan(self) -> None:
        """Forget the allocations and the high-water mark; keep the block."""
        self.high_water = 0
        self._set_active(())

    def reset_allocations(self) -> None:
        """Forget the allocations; the next ones are placed as if there were none."""
        self._set_active(())

    def purge_before(self, node: int) -> None:
        """Forget the allocations that are freed before ``node``."""
        self._set_active([a for a in self._active() if a[3] >= node])

    def purge_after(self, node: int) -> None:
        """Forget the allocations that are made after ``node``."""
        self._set_active([a for a in self._active() if a[2] <= node])

    def set_active(self, allocations: Iterable[Allocation], node: int) -> None:
        """Forget the allocations and take those of ``allocations`` that are alive at ``node`` instead."""
        self._set_active([a for a in allocations if a[2] <= node <= a[3]])

    # TFLite walks all active allocations for each new one. Most live for two or three nodes, so here they are listed
    # under the nodes they live at; the few that live long are in a list of their own, to bound the size of the index.
    # That list is searched on arrays when it is long: time must not grow with the square of a file.

    def _set_active(self, allocations: Iterable[Allocation]) -> None:
        self._long: list[Allocation] = []
        self._long_spans: NDArray[np.int64] = np.empty((4, 0), np.int64)  # the same, once there are many
        self._is_vast = False
        self._alive_at: defaultdict[int, list[Allocation]] = defaultdict(list)
        self._last_node = -1
        for allocation in allocations:
            self._add(allocation)

    def _add(self, allocation: Allocation) -> None:
        _, _, first, last = allocation
        if last - first >= _SHORT or len(self._alive_at.get(first, ())) >= _MANY:
            at = bisect(self._long, allocation)
            self._long.insert(at, allocation)
            if len(self._long) >= _MANY:
                self._add_long_span(at, allocation)
            return
        for node in range(first, last + 1):
            self._alive_at[node].append(allocation)
        if last > self._last_node:
            self._last_node = last

    def _add_long_span(self, at: int, allocation: Allocation) -> None:
        count = len(self._long)
        self._is_vast = self._is_vast or any(a[1] > _VAST for a in (self._long if count == _MANY else (allocation,)))
        if self._is_vast:
            return
        if count == _MANY or count > self._long_spans.shape[1]:
            self._long_spans = np.zeros((4, 2 * count), np.int64)
            self._long_spans[:, :count] = np.array(self._long, np.int64).T
            return
        self._long_spans[:, at + 1 : count] = self._long_spans[:, at : count - 1]
        self._long_spans[:, at] = allocation

    def _overlapping(self, first_node: int, last_node: int) -> list[Allocation]:
        # Some come more than once, which is cheaper than finding out, and changes nothing.
        found = [a for a in self._long if a[2] <= last_node and first_node <= a[3]]
        return found + self._overlapping_short(first_node, last_node)

    def _overlapping_short(self, first_node: int, last_node: int) -> list[Allocation]:
        found: list[Allocation] = []
        for node in range(first_node, min(last_node, self._last_node) + 1):
            found += self._alive_at.get(node, ())
        return found

    def _active(self) -> set[Allocation]:
        return {*self._long, *chain.from_iterable(self._alive_at.values())}


class ArenaPlanner:
    """Gives the tensors of a graph their places in two arenas: one for an invocation, one for what stays.

    `plan_allocations` works out lifetimes once the nodes are prepared (again whenever the nodes change), and
    `execute_allocations` the offsets of a range of nodes: of all of them, or as far as shapes are known. ``offsets``
    holds, for each tensor, its first byte in the arena that its allocation type names, or `UNALLOCATED`.
    """

    def __init__(self, graph: GraphInfo, *, preserve_all_tensors: bool = False, alignment: int = ALIGNMENT) -> None:
        self.graph = graph
        self.preserve_all_tensors = preserve_all_tensors
        self.arena = SimpleMemoryArena(alignment)
        self.persistent_arena = SimpleMemoryArena(alignment)
        self.has_non_persistent_memory = False
        self.offsets: list[int] = []
        # Of each tensor, what was allocated: TFLite's ArenaAllocWithUsageInterval.
        self._sizes: list[int] = []
        self._spans: list[tuple[int, int]] = []
        self._lifetimes = Lifetimes([], [], {})
        # Of each node, the tensors that need memory when it runs.
        self._needed: list[list[int]] = [[]]
        self._last_active_node = NEVER

    def plan_allocations(self) -> None:
        """Work out when each tensor needs memory, and which tensors share. Drops all offsets."""
        graph = self.graph
        self.reset_allocations()
        self._lifetimes = lifetimes(graph, self.preserve_all_tensors)
        self._needed = [_distinct(node.outputs) for node in graph.nodes] or [[]]
        self._needed[0] = _distinct([*graph.variables, *graph.inputs, *self._needed[0]])

    def execute_allocations(self, first_node: int, last_node: int) -> list[int]:
        """Place the tensors that are new at these nodes, temporaries among them; the indices of those placed.

        Both nodes are included. A tensor that has memory is placed again only if it needs more bytes. Where an arena's
        ``size`` has grown, whoever holds its block must move it. Raises `ArenaError` when tensors have vanished since
        the last call, or need more bytes than can be addressed.
        """
        tensors = self.graph.tensors
        self._grow(len(tensors))
        last_node = max(last_node, 0)  # inputs need memory where there is no node, too
        first_use, last_use = self._lifetimes.first_use, self._lifetimes.last_use
        for node in range(first_node, min(last_node + 1, len(self.graph.nodes))):
            for tensor in self.graph.nodes[node].temporaries:
                if tensor not in self._needed[node]:
                    self._needed[node].append(tensor)
                first_use[tensor] = node
                if not self.preserve_all_tensors:
                    last_use[tensor] = node

        pending = []
        for node in range(first_node, min(last_node + 1, len(self._needed))):
            for tensor in self._needed[node]:
                kind = tensors[tensor].allocation_type
                if kind == _PERSISTENT or (kind == _ARENA_RW and self._sizes[tensor] < tensors[tensor].bytes):
                    pending.append(tensor)
        if pending:
            if first_node < self._last_active_node:
                self.arena.reset_allocations()
            else:
                self.arena.purge_before(first_node)
            pending = self._in_order(pending, first_node, last_node)
            self._place(pending)
        self._last_active_node = last_node
        self.arena.commit()
        self.persistent_arena.commit()
        self.has_non_persistent_memory = True
        return pending

    def reset_allocations(self) -> None:
        """Drop all offsets, in both arenas; lifetimes stay."""
        self.arena.clear_plan()
        self.persistent_arena.clear_plan()
        self.offsets, self._sizes, self._spans = [], [], []
        self._grow(len(self.graph.tensors))
        self._last_active_node = NEVER

    def reset_allocations_after(self, node: int) -> None:
        """Drop the offsets of tensors that are first used after ``node``, except in the persistent arena."""
        for tensor, (first, _) in enumerate(self._spans):
            if first > node and self._sizes[tensor] and self.graph.tensors[tensor].allocation_type == _ARENA_RW:
                self._sizes[tensor] = 0
                self._spans[tensor] = (-1, -1)
                self.offsets[tensor] = UNALLOCATED
        for tensor, owner in self._lifetimes.owners.items():
            if self.offsets[owner] == UNALLOCATED:
                self.offsets[tensor] = UNALLOCATED
        if self._last_active_node > node:
            # TFLite hands over what lives in the persistent arena as well, so its bytes stay free in this one.
            allocated = zip(self.offsets, self._sizes, self._spans, strict=True)
            self.arena.set_active([(offset, offset + size, *span) for offset, size, span in allocated if size], node)
        else:
            self.arena.purge_after(node)
        self._last_active_node = node

    def release_non_persistent_memory(self) -> None:
        """Give back the memory of an invocation; the offsets stay valid for when it is acquired again."""
        self.arena.release()
        self.has_non_persistent_memory = False

    def acquire_non_persistent_memory(self) -> None:
        """Take the memory of an invocation again."""
        self.arena.commit()
        self.has_non_persistent_memory = True

    def plan(self, kind: AllocationType = AllocationType.ARENA_RW) -> Plan:
        """The tensors that have a place in one of the arenas, as a `Plan`; its size is the arena's high-water mark."""
        arena, name = (self.arena, "arena") if kind == _ARENA_RW else (self.persistent_arena, "persistent arena")
        life = self._lifetimes
        placements: list[Placement] = []
        for index, offset in enumerate(self.offsets):
            tensor = self.graph.tensors[index]
            if offset == UNALLOCATED or tensor.allocation_type != kind:
                continue
            owner = life.owners.get(index)
            if owner is None:
                request = BufferRequest(index, self._sizes[index], *self._spans[index])
            else:
                request = BufferRequest(index, tensor.bytes, life.first_use[index], self._spans[owner][1], owner)
            placements.append(Placement(offset, request))
        return Plan(name, arena.high_water, tuple(placements), arena.alignment)

    def _grow(self, count: int) -> None:
        new = count - len(self.offsets)
        if new < 0:
            raise ArenaError(f"the graph has {count} tensors, {-new} fewer than when memory was planned; plan again")
        self.offsets += [UNALLOCATED] * new
        self._sizes += [0] * new
        self._spans += [(-1, -1)] * new
        for uses in (self._lifetimes.first_use, self._lifetimes.last_use):
            uses += [NEVER] * (count - len(uses))

    def _in_order(self, pending: Sequence[int], first_node: int, last_node: int) -> list[int]:
        # First what lives from the first node to the end, by index; then the largest first, and the earlier of equals.
        first_use, last_use = self._lifetimes.first_use, self._lifetimes.last_use
        tensors = self.graph.tensors
        keys = [
            (-1, 0, tensor)
            if first_use[tensor] == 0 and last_use[tensor] == NEVER
            else (0, -tensors[tensor].bytes, first_use[tensor])
            for tensor in pending
        ]
        ordered = sorted(set(keys))
        if len(ordered) == len(pending):
            return [tensor for _, tensor in sorted(zip(keys, pending, strict=True))]
        ranks = {key: rank for rank, key in enumerate(ordered)}
        rank_of = {tensor: ranks[key] for tensor, key in zip(pending, keys, strict=True)}
        needed = self._needed[first_node : last_node + 1]
        visited = (tensor for tensors in needed for tensor in libstdcxx.unordered_set(tensors))
        items = [(rank_of[tensor], tensor) for tensor in visited if tensor in rank_of]
        libstdcxx.sort(items)
        return [tensor for _, tensor in items]

    def _place(self, pending: Sequence[int]) -> None:
        tensors = self.graph.tensors
        first_use, last_use, owners = self._lifetimes.first_use, self._lifetimes.last_use, self._lifetimes.owners
        for index in pending:
            tensor = tensors[index]
            if index in owners:
                # Shapes and allocation types may have changed since the sharing was planned.
                owner = tensors[owners[index]]
                if owner.allocation_type == _ARENA_RW and owner.bytes == tensor.bytes:
                    continue
                del owners[index]
            size = tensor.bytes
            if tensor.allocation_type == _ARENA_RW:
                span = first_use[index], last_use[index]
                offset = self.arena.allocate(size, *span)
            elif self._sizes[index] == 0 and size:
                span = first_use[index], NEVER
                offset = self.persistent_arena.allocate(size, *span)
            else:
                continue
            self._sizes[index], self._spans[index], self.offsets[index] = size, span, offset
        for index in pending:
            if index in owners and tensors[index].allocation_type == _ARENA_RW:
                self.offsets[index] = self.offsets[owners[index]]


def _distinct(tensors: Sequence[int]) -> list[int]:
    if len(tensors) > 1:
        tensors = list(dict.fromkeys(tensors))
    return [tensor for tensor in tensors if tensor >= 0]
