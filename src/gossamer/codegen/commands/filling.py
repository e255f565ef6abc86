"""Commands that have been told become part of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gossamer.arrays import NDArray
from gossamer.codegen.commands import Build
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.program import BLOCKS, COMPUTED, MODEL, WEIGHTS, Address, Word
from gossamer.programs.team import Jump
from gossamer.sizes import Size, told
from gossamer.views import Buffer


class Value(NamedTuple):
    """A constant that is the same for all sizes and lies in no file."""

    content: bytes
    array: NDArray[Any]


class Stored(NamedTuple):
    """A constant that lies in the file, and where."""

    buffer: Buffer
    offset: int


class Filling:
    """What told commands become part of."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.builder = build._builder
        self.there: set[int] = set()
        """Offsets of weights that others have packed."""
        self.alike: dict[Any, Any] = {}
        """What is made once for all kernels of the same key."""
        self.place: Callable[[tuple[int, ...], tuple[int, ...], tuple[str, ...]], int] = self.table
        """As `table`, of one that is like no other of its kernel."""
        self._tables: dict[Any, int] = {}
        self._jumps: list[tuple[int, int]] = []
        self._starts: list[int] = []

    def begin(self, base_of_known: str) -> None:
        """The commands of another kernel of the graph, which may run once, for this base."""
        self._starts.append(self.builder.next_command)
        self.build._is_known = base_of_known
        self.place = self.table if base_of_known == WEIGHTS else self.builder.placed
        self._tables.clear()
        self.build._blocks.clear()

    def constant(self, buffer: Buffer | Value | Stored) -> tuple[str, int]:
        if isinstance(buffer, Stored):
            return MODEL, buffer.offset
        if isinstance(buffer, Value):
            return self.build.kept(buffer.content, buffer.array)
        place = self.build.place(buffer)
        return place.base, place.offset

    def aligned(self, buffer: Buffer | Value | Stored, inside: int, is_whole: bool) -> tuple[str, int]:
        base, offset = self.constant(buffer)
        if is_whole and isinstance(buffer, Stored):
            return self.build.at_line(Address(base, offset + inside), buffer.buffer)
        return base, offset + inside

    def aimed(self, base: str, of: Address) -> Address:
        return self.builder.aimed(base, of)

    def weights(self, bytes: int, key: Any) -> Address:
        known = None if key is None else self.build.packed(key)
        if known is not None:
            self.there.add(known.offset)
            return known
        address = self.build.weights(bytes, key)
        self.there.discard(address.offset)
        return address

    def kernel(self, named: tuple[str, KernelSpec]) -> int:
        name, spec = named
        self.build.specs[name] = spec
        return self.builder.kernel(name).offset

    def table(self, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> int:
        key = words, bases
        known = self._tables.get(key)
        if known is None:
            known = self._tables[key] = self.builder.placed(words, at, bases)
            if self.build._is_known == WEIGHTS:
                self._pack_reads(known, words, at, bases)
        return known

    def packing_table(self, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> int:
        offset = self.table(words, at, bases)
        self._pack_reads(offset, words, at, bases)
        return offset

    def _pack_reads(self, offset: int, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> None:
        meant: list[Word] = list(words)
        for place, base in zip(at, bases, strict=True):
            meant[place] = Address(base, words[place])
        self.build._tables[offset] = tuple(meant)

    def pack(
        self,
        named: tuple[str, KernelSpec],
        block: int,
        source: tuple[str, int] | tuple[()],
        reads: int,
        waits: int,
    ) -> None:
        name, spec = named
        self.build.specs[name] = spec
        at = Address(BLOCKS, block)
        gone = (Address(*source), reads) if source and source[0] == MODEL and reads else None
        self.builder.pack(name, at, reads=gone, waits=bool(waits))
        self.build._packing.append((name, at))

    def jump(self, kind: Jump, target: int, flag: tuple[str, int] | None, cost: int) -> None:
        """Go on at the commands of the kernel of the graph, or the jump, of this number."""
        start = self.builder.next_command if kind is Jump.BACK else -1  # until all have begun
        place = None if flag is None else Address(*flag)
        self._jumps.append((self.builder.jump(kind, place, target=start, cost=cost), target))

    def land(self) -> None:
        """Let jumps go where they are to go, and gathers know who reads their rows, when all is there."""
        self.builder.tell_readers()
        starts = [*self._starts, self.builder.next_command]
        for jump, target in self._jumps:
            if target >= 0:
                self.builder.aim(jump, starts[target])

    def command(self, named: tuple[str, KernelSpec], block: int, barrier: int) -> None:
        name, spec = named
        self.build.specs[name] = spec
        known = self.build._is_known
        if not known:
            self.builder.placed_command(name, block, barrier)
        elif known == COMPUTED:
            self.builder.compute(name, Address(BLOCKS, block))
        else:
            at = Address(BLOCKS, block)
            self.builder.pack(name, at, barrier=True)
            self.build._packing.append((name, at))


LEAST_ROOM = 16384
"""Bytes that there is room for, so that what begins with a few elements is the same program for some time."""

LINE = 64
"""What a room has besides: rows that lie a power of two apart would share lines of the cache."""


def room_for(bytes: int) -> int:
    """Bytes that suffice for a number of them, of which that is noted, and for some more."""
    if not isinstance(bytes, Size):
        return bytes
    room = max(1 << (bytes.value - 1).bit_length(), LEAST_ROOM)
    return room + LINE if bytes <= room else 0  # which it is


class OpenBuild(Build):
    """Words may be open; what they say of memory is right for all sizes for which that suffices."""

    def passing(self, bytes: int) -> Address:
        return super().passing(room_for(bytes))

    def held(self, bytes: int) -> Address:
        return super().held(room_for(bytes))

    def scratch(self, bytes: int) -> int:
        return super().scratch(room_for(bytes))

    def closed(self) -> tuple[list[int], list[Size]]:
        """Close the words that are open: which ones, and the sizes that they were."""
        words = self._builder._words
        at = [place for place, word in enumerate(words) if isinstance(word, Size)]
        numbers: list[Any] = [words[place] for place in at]
        for place in at:
            words[place] = numbers[at.index(place)].value
        return at, numbers


class _AsTold(dict[Any, Any]):
    """By keys in which sizes may be open."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(told(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(told(key), value)


class OpenFilling(Filling):
    """The same with sizes that stay open."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        self.alike = _AsTold()

    def table(self, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> int:
        key = told(words), bases
        known = self._tables.get(key)
        if known is None:
            known = self._tables[key] = self.builder.placed(words, at, bases)
        return known
