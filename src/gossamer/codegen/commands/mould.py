"""What is the same of told commands wherever they are, with what depends on sizes or on places left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.filling import Value
from gossamer.codegen.commands.telling import Told
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.program import ARENA, COMPUTED, CONSTANTS, NO_KERNEL, WEIGHTS, readers_of
from gossamer.programs.team import JUMP, Jump
from gossamer.records import record

JUMP_WORDS = list(JUMP)

MOST_KERNELS = 1 << 10
"""More than there are in any form."""

NUMBER, KERNEL, MEMORY, PLACE, PUT, PACKED, SPARE, HELD, COMMON, BLOCK = range(10)
"""What a word is left out for: a number or a kernel of the form, memory between its commands, the place of a buffer, a
constant that is put somewhere, weights, memory of each thread, memory between commands that run once, what a kernel
before has in common with it, and another table of it."""


@record(frozen=True)
class Open:
    """A word that is a number and what is left out: kinds and numbers of that."""

    plus: int
    slots: tuple[tuple[int, int], ...]

    def __add__(self, other: Any) -> Open:
        if isinstance(other, Open):
            return Open(self.plus + other.plus, self.slots + other.slots)
        return Open(self.plus + int(other), self.slots)


class _All(set[Any]):
    """Has everything."""

    def __contains__(self, thing: object) -> bool:
        return True


class _Common:
    """What kernels have in common, as a mould asks for it. ``found``: of which that is there already, and what it
    consists of."""

    def __init__(self, found: Sequence[tuple[Any, ...] | None]) -> None:
        self._found = found
        self.keys: list[Any] = []
        self.made: dict[int, tuple[Any, ...]] = {}
        self.count = 0

    def get(self, key: Any) -> tuple[Any, ...] | None:
        """See `dict.get`."""
        at = len(self.keys)
        self.keys.append(key)
        made = self._found[at] if at < len(self._found) else None
        if made is None:
            return None
        self.made[at] = made
        first = self.count
        self.count += len(made)
        return tuple([Open(0, ((COMMON, first + n),)) if isinstance(one, Open) else one for n, one in enumerate(made)])

    def __setitem__(self, key: Any, made: tuple[Any, ...]) -> None:
        at = next(at for at, one in enumerate(self.keys) if at not in self.made and one == key)
        self.made[at] = made


class Mould:
    """What is the same of a form's commands wherever they are. It passes for a `Filling`, and for its `Build`.

    ``is_once``: they run once. ``is_packed``: the weights are there already; ``found``: as in `_Common`. Raises
    `TypeError` for what is not the same.
    """

    def __init__(
        self,
        told: Told,
        places: int,
        is_once: bool,
        is_packed: bool,
        found: Sequence[tuple[Any, ...] | None] = (),
    ) -> None:
        self.told = told
        self.is_once = is_once
        self.build = self
        self.alike = _Common(found)
        self.there: set[Any] = _All() if is_packed else set()
        self.words: list[int] = []
        self.open: list[tuple[int, tuple[int, int]]] = []
        """Words, by their places, and what is to be added to them."""
        self.bases: list[tuple[int, str]] = []
        """Words that are addresses, and of what."""
        self.commands: list[tuple[int, int, int]] = []
        """Which of the kernels, the block in bytes, and whether a barrier follows."""
        self.packing: list[tuple[int, int, tuple[str, Open] | None, int, int]] = []
        """Which of the kernels, the block, what it reads, and how many bytes of that nobody reads again."""
        self.packing_tables: list[tuple[int, int, tuple[int, ...], tuple[str, ...]]] = []
        """Those blocks, and those in them: where they begin and end, in words, and their addresses."""
        self.kernels: list[tuple[str, KernelSpec] | int] = []
        """In the order in which they are used: what is known of them, or which one of those that depend on numbers."""
        self.puts: list[tuple[str, tuple[Any, ...]]] = []
        """Constants in the order in which they are asked for: how, and of what."""
        self.weights_of: list[tuple[int, Any]] = []
        """Bytes, and their keys."""
        self.memory: list[tuple[str, Any]] = []
        """What is asked of the memory behind the arena, step by step."""
        self.spare: list[Any] = []
        """Bytes of what threads have for themselves."""
        self.between: list[Any] = []
        """Bytes of what is between commands that run once."""
        self.may_fault = False
        self.jump_to: tuple[Jump, int] | None = None
        """Of a jump, which has no other commands: its kind, and the number of the kernel where it goes."""
        self.aims: list[tuple[str, tuple[str, Open]]] = []
        """Bases that are told in a run, and behind what."""
        self.like: list[tuple[int, int, tuple[str, ...]]] = []
        """Tables that may be equal to others: where they begin and end, and the bases."""
        self._tables: dict[Any, Open] = {}
        self._known_kernels: dict[Any, int] = {}
        numbers = [Open(0, ((NUMBER, at),)) for at in range(len(told.numbers))]
        told.fill(self, numbers, range(MOST_KERNELS), [(f"p{at}", Open(0, ((PLACE, at),))) for at in range(places)])

    @property
    def count(self) -> int:
        """Of numbers, kernels and memory."""
        return len(self.told.numbers) + len(self.kernels) + len(self.memory)

    def constant(self, place: Any) -> tuple[str, Open]:
        """See `Filling.constant` and `Build.constant`."""
        if isinstance(place, tuple):
            (_, at), *_ = place[1].slots
            self.puts.append(("place", (at,)))
            return place
        self.puts.append(("value", (Value(place.tobytes(), place),)))
        return CONSTANTS, Open(0, ((PUT, len(self.puts) - 1),))

    def aligned(self, place: tuple[str, Open], inside: int, is_whole: bool) -> tuple[str, Open]:
        """See `Filling.aligned`."""
        (_, at), *_ = place[1].slots
        if isinstance(inside, Open):
            raise TypeError("where a constant begins depends on sizes")
        self.puts.append(("aligned", (at, inside, is_whole)))
        return f"c{len(self.puts) - 1}", Open(0, ((PUT, len(self.puts) - 1),))

    def aimed(self, base: str, of: tuple[str, Open]) -> tuple[str, int]:
        """See `ProgramBuilder.aimed`."""
        self.aims.append((base, of))
        return readers_of(base), 0

    def fault(self) -> None:
        """See `Build.fault`."""
        self.may_fault = True

    def passing(self, bytes: Any) -> tuple[str, Open]:
        """See `Build.passing`."""
        self.memory.append(("passing", bytes))
        return ARENA, Open(0, ((MEMORY, len(self.memory) - 1),))

    def held(self, bytes: Any) -> tuple[str, Open]:
        """See `Build.held`."""
        if self.is_once:
            self.between.append(bytes)
            return COMPUTED, Open(0, ((HELD, len(self.between) - 1),))
        self.memory.append(("held", bytes))
        return ARENA, Open(0, ((MEMORY, len(self.memory) - 1),))

    @property
    def _held(self) -> int:
        return len(self.memory)

    @_held.setter
    def _held(self, before: int) -> None:
        if not self.is_once:
            self.memory.append(("back", before))

    def scratch(self, bytes: Any) -> Open:
        """See `Build.scratch`."""
        self.spare.append(bytes)
        return Open(0, ((SPARE, len(self.spare) - 1),))

    def weights(self, bytes: int, key: Any) -> tuple[str, Open]:
        """See `Filling.weights`."""
        if isinstance(bytes, Open) or key is None:
            raise TypeError("how many weights there are depends on sizes")
        self.weights_of.append((bytes, key))
        return WEIGHTS, Open(0, ((PACKED, len(self.weights_of) - 1),))

    def _kernel(self, named: Any) -> int:
        key = named if isinstance(named, int) else named[0]
        if key not in self._known_kernels:
            self._known_kernels[key] = len(self.kernels)
            self.kernels.append(named)
        return self._known_kernels[key]

    def kernel(self, named: Any) -> Open:
        """See `Filling.kernel`."""
        return Open(0, ((KERNEL, self._kernel(named)),))

    def table(self, words: tuple[Any, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> Open:
        """See `Filling.table`."""
        key = words, bases
        if key not in self._tables:
            self.like.append((len(self.words), len(self.words) + len(words), bases))
            self._tables[key] = self.place(words, at, bases)
        return self._tables[key]

    def place(self, words: tuple[Any, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> Open:
        """See `Filling.place`."""
        start = len(self.words)
        for number, word in enumerate(words, start):
            if isinstance(word, Open):
                self.open += [(number, slot) for slot in word.slots]
                word = word.plus
            elif type(word) is not int:
                raise TypeError(f"a {type(word).__name__} among words")
            self.words.append(word)
        self.bases += [(start + place, base) for place, base in zip(at, bases, strict=True)]
        return Open(8 * start, ((BLOCK, 0),))

    def packing_table(self, words: tuple[Any, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> Open:
        """See `Filling.packing_table`."""
        block = self.table(words, at, bases)
        start = block.plus // 8
        self.packing_tables.append((start, start + len(words), at, bases))
        return block

    def pack(self, named: Any, block: Open, source: tuple[str, Open] | tuple[()], reads: Any, waits: int) -> None:
        """See `Filling.pack`."""
        if [kind for kind, _ in block.slots] != [BLOCK] or isinstance(named, int) or isinstance(reads, Open):
            raise TypeError("what is packed depends on sizes")
        if waits:
            if not self.packing:
                raise TypeError("it waits for what others pack")
            self.packing[-1] = *self.packing[-1][:-1], 1
        self.packing.append((self._kernel(named), block.plus, source or None, reads, 0))

    def jump(self, kind: Jump, target: int, flag: tuple[str, Open] | None, cost: int) -> None:
        """See `Filling.jump`."""
        base, offset = flag or ("", 0)
        at, bases = ((JUMP_WORDS.index("flag"),), (base,)) if flag else ((), ())
        block = self.place((int(kind), 0, offset, cost, 0), at, bases)
        self.jump_to = kind, target
        self.commands.append((NO_KERNEL, block.plus, 0))

    def command(self, named: Any, block: Open, barrier: int) -> None:
        """See `Filling.command`."""
        if [kind for kind, _ in block.slots] != [BLOCK]:
            raise TypeError("a command reads what kernels have in common")
        self.commands.append((self._kernel(named), block.plus, barrier))

    def places_in(self, build: Build, arena: int, numbers: Sequence[int]) -> list[int]:
        """Where the memory lies that is asked for, behind an arena of so many bytes."""
        places: list[int] = []
        held = [0]
        for how, of in self.memory:
            build._held = held[-1]
            if how == "back":
                held.append(held[of])
            elif how == "held":
                build.held(value_of(of, numbers))
                held.append(build._held)
            else:
                build.passing(value_of(of, numbers))
                held.append(held[-1])
            places.append(arena + held[-2])
        build._held = 0
        return places


def value_of(number: Any, numbers: Sequence[int]) -> int:
    """What a number of a form is."""
    if not isinstance(number, Open):
        return int(number)
    return number.plus + sum([numbers[at] for _, at in number.slots])


def resolved(key: Any, numbers: Sequence[int]) -> Any:
    """A key with numbers in the place of what is left out for them."""
    if isinstance(key, Open):
        if any(kind != NUMBER for kind, _ in key.slots):
            raise TypeError("what kernels have in common depends on where they are")
        return value_of(key, numbers)
    return (type(key), *[resolved(one, numbers) for one in key]) if isinstance(key, tuple) else key
