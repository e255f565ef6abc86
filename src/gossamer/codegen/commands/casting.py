"""Commands that have been told, as arrays, of which only some words are others for other sizes.

To fill in every kernel of a graph (`gossamer.codegen.commands.filling`) takes a call for each of its tables, and most
of what comes out is the same for all sizes. So each form of a kernel's commands is filled in once with what depends on
sizes, or on where something lies, left out: that is its `Mould`. A program consists of such arrays, one after the
other, and what was left out is added to all words at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.build import Emitted
from gossamer.codegen.commands import Build
from gossamer.codegen.commands.filling import Filling, Stored, Value
from gossamer.codegen.commands.mould import (
    BLOCK,
    COMMON,
    HELD,
    JUMP_WORDS,
    KERNEL,
    MEMORY,
    NUMBER,
    PACKED,
    PLACE,
    PUT,
    SPARE,
    Mould,
    Open,
    resolved,
    value_of,
)
from gossamer.codegen.commands.telling import Told
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.program import (
    ARENA,
    BLOCKS,
    COMPUTED,
    CONSTANTS,
    FAULT,
    MODEL,
    NO_KERNEL,
    TARGET,
    Address,
    ProgramPlan,
    checked,
    readers_of,
)
from gossamer.programs.team import Jump

_ALIGNMENT = 64

MOST_JOINED = 16
"""Programs of other forms that are kept."""

_Asked = tuple[int, int]
"""A kernel of the graph, and the how manieth time that it asks for something that is in common."""


class _Part(NamedTuple):
    """A mould for one kernel of the graph. What is added to words has numbers among all that is added anywhere."""

    mould: Mould
    is_packed: bool
    numbers: Mapping[int, int]
    """By kind, the first number of what is added."""
    bases_of: Mapping[str, str]
    """By their names in the mould."""
    words: NDArray[np.int64]
    open: NDArray[np.int64]
    """Words, and the numbers of what is added to them."""
    addresses: NDArray[np.int64]
    """Words that are addresses, and the numbers of their bases."""
    commands: NDArray[np.int64]
    """When they run, the numbers of what is added for kernels, blocks, and barriers."""
    counts: tuple[int, ...]
    """Of words, open ones, addresses and commands."""
    start: int
    """The number of where its words begin, in bytes."""
    is_plain: bool
    """Whether there is nothing of what follows."""
    packed: list[tuple[int, int]]
    puts: list[tuple[int, str, tuple[Any, ...], str]]
    """Constants: the number, how they are asked for, of what, and the base that is expected."""
    weights: list[tuple[int, int, Any]]
    """The number, the bytes, and the key."""
    spare: list[tuple[int, Any]]
    """The number, and the bytes."""
    between: list[tuple[int, Any]]
    """The same of what is between commands that run once."""
    like: list[tuple[int, int, int]]
    """Tables that would be one if they were equal: where two begin, and of how many words."""
    packing_open: list[int]
    """What is added to words that packing reads."""
    aims: list[tuple[str, str, int, list[int]]]
    """Bases that are told in a run, behind what, what more, and the numbers of what is added to that."""


class _Joined(NamedTuple):
    """Parts one after the other, with what is the same for all sizes."""

    parts: list[_Part]
    starts: list[int]
    of_starts: NDArray[np.int64]
    moulds: list[tuple[Mould, int]]
    """With the first number of what is added for each."""
    of_moulds: NDArray[np.int64]
    """The numbers of what is added for each of them: numbers, kernels and memory."""
    puts: list[tuple[str, tuple[Any, ...], str]]
    of_puts: NDArray[np.int64]
    spare: list[tuple[int, Any, Told]]
    words: NDArray[np.int64]
    open: NDArray[np.int64]
    added: NDArray[np.int64]
    """The numbers of what is added to open words."""
    relocations: dict[str, NDArray[np.int64]]
    packing: NDArray[np.int64]
    computing: NDArray[np.int64]
    commands: NDArray[np.int64]
    packed: NDArray[np.int64]
    like: list[tuple[int, int, int]]
    weights: tuple[list[int], list[int], int]
    """The numbers of weights, where they are, and the bytes of all."""
    common: list[tuple[int, int, list[int]]]
    """Numbers of what is added that a kernel before has added: what more, and those."""
    packs: tuple[tuple[int, int], ...] | None
    """What tells what packing does from others; ``None`` if that depends on sizes."""


class Casting:
    """Programs for any sizes of kernels of a graph. ``places``: for each, where its buffers are, as `OpenCommands` has
    it; ``once``: the base of what it computes and the number of that, if it runs once; ``inner``: of how many buffers
    sizes tell where they are.

    Raises `TypeError` for what is made in another way.
    """

    def __init__(self, places: Sequence[Sequence[Any]], once: Sequence[tuple[str, int] | None], inner: int) -> None:
        if any(one is not None and one[0] != COMPUTED for one in once):
            raise TypeError("weights are computed")
        self._places = places
        self._once = once
        self._computed = {one[1] for one in once if one is not None}
        self._count = self._inner = inner
        """Of what is added to words: first where buffers lie, then what moulds and parts need."""
        self._moulds: dict[tuple[int, bool, bool, tuple[bool, ...]], tuple[Mould, int]] = {}
        self._parts: dict[tuple[int, int], _Part] = {}
        self._keys: dict[int, list[Any]] = {}
        """Of what kernels may have in common, by what is told of them."""
        self._plain: dict[tuple[int, int], _Part] = {}
        """Parts that are the same whatever comes before."""
        self._packs_known: dict[tuple[tuple[int, int], ...], int] = {}
        """Checksums of what packing does."""
        self._joined: dict[Any, _Joined] = {}
        self._bases: dict[str, int] = {}

    def emitted(
        self,
        to: Filling,
        forms: Sequence[tuple[Told, Sequence[int], Sequence[tuple[str, KernelSpec]]]],
        offsets: Sequence[int],
        bytes: Sequence[int],
        instead: Mapping[int, Any],
    ) -> Emitted | None:
        """The program; ``None`` for sizes for which tables are one that are several for others.

        ``to``: it fills in a new program. ``forms``: what is told of each kernel of the graph, the numbers, and the
        kernels that depend on these. ``offsets``: where buffers are in the arena; ``bytes``: of these and of what is
        computed once. ``instead``: constants for these sizes, by the ids of others.
        """
        known = {id(told): (told, numbers, kernels) for told, numbers, kernels in forms}
        common = self._in_common(forms)
        key = tuple([id(told) for told, *_ in forms]), tuple(common.items())
        joined = self._joined.get(key)
        if joined is None:
            joined = self._joined[key] = self._join([told for told, *_ in forms], common, to)
            if len(self._joined) > MOST_JOINED:
                del self._joined[next(iter(self._joined))]
        build = to.build
        added = np.zeros(self._count + 1, np.int64)
        added[-1] = NO_KERNEL
        added[: len(offsets)] = offsets
        for part, one in zip(joined.parts, self._once, strict=True):
            if one is not None:
                added[one[1]] = build.computed(bytes[one[1]]).offset
                for number, size in part.between:
                    added[number] = build.computed(value_of(size, known[id(part.mould.told)][1])).offset
        numbering: dict[str, int] = {}
        arena = build.layout.arena_bytes
        of_moulds: list[int] = []
        for mould, _ in joined.moulds:
            _, numbers, kernels = known[id(mould.told)]
            of_moulds += numbers
            for named in mould.kernels:
                name, spec = kernels[named] if isinstance(named, int) else named
                build.specs[name] = spec
                of_moulds.append(numbering.setdefault(name, len(numbering)))
            if mould.memory:
                of_moulds += mould.places_in(build, arena, numbers)
            if mould.may_fault:
                build.fault()
        added[joined.of_moulds] = of_moulds
        of_puts: list[int] = []
        for how, of, base in joined.puts:
            one = instead.get(id(of[0]), of[0])
            put = to.aligned(one, *of[1:]) if how == "aligned" else to.constant(one)
            if put[0] != base:
                raise TypeError("a constant is elsewhere")
            of_puts.append(put[1])
        added[joined.of_puts] = of_puts
        for number, size, told in joined.spare:
            added[number] = build.scratch(value_of(size, known[id(told)][1]))
        added[joined.of_starts] = joined.starts
        of_weights, weights, build._weights = joined.weights
        added[of_weights] = weights
        for number, plus, others in joined.common:
            added[number] = plus + added[others].sum()
        words = joined.words.copy()
        np.add.at(words, joined.open, added[joined.added])
        if any((words[a : a + count] == words[b : b + count]).all() for a, b, count in joined.like):
            return None
        tables = []
        for table in (joined.packing, joined.computing, joined.commands):
            table = table.copy()
            table[:, 0] = added[table[:, 0]]
            tables.append(table)
        packs = self._packs_known.get(joined.packs) if joined.packs is not None else None
        if packs is None:
            packs = self._packs(joined, build, list(numbering), words, tables[0])
            if joined.packs is not None:
                self._packs_known[joined.packs] = packs
        packing, computing, commands = tables
        sizes = build.sizes()
        plan = ProgramPlan(
            tuple(numbering),
            words,
            joined.relocations,
            packing,
            joined.packed,
            computing,
            commands,
            sizes,
            packs,
        )
        return Emitted(checked(plan), build.specs, build.constants())

    def _packs(
        self, joined: _Joined, build: Build, names: Sequence[str], words: NDArray[np.int64], packing: NDArray[np.int64]
    ) -> int:
        for part, start in zip(joined.parts, joined.starts, strict=True):
            for first, end, at, bases in part.mould.packing_tables:
                begin = start // 8 + first
                meant: list[Any] = words[begin : begin + end - first].tolist()
                for place, base in zip(at, bases, strict=True):
                    meant[place] = Address(part.bases_of.get(base, base), meant[place])
                build._tables[8 * begin] = tuple(meant)
        for name in names:
            build._builder.kernel(name)
        build._packing += [(names[kernel], Address(BLOCKS, block)) for kernel, block, _ in packing.tolist()]
        return build._checksum_of_packing()

    def _in_common(self, forms: Sequence[tuple[Told, Sequence[int], Any]]) -> dict[_Asked, _Asked]:
        """For what a kernel has in common with one before: where that is."""
        made: dict[Any, _Asked] = {}
        common: dict[_Asked, _Asked] = {}
        for step, (told, numbers, _) in enumerate(forms):
            keys = self._keys.get(id(told))
            if keys is None:
                mould, _ = self._mould(told, step, False, ())
                keys = self._keys[id(told)] = mould.alike.keys
            for at, key in enumerate(keys):
                first = made.setdefault(resolved(key, numbers), (step, at))
                if first != (step, at):
                    common[step, at] = first
        return common

    def _taken(
        self, parts: Sequence[_Part], common: Mapping[_Asked, _Asked], starts: Sequence[int]
    ) -> list[tuple[int, int, list[int]]]:
        """See `_Joined.common`."""
        taken = []
        number = dict.fromkeys(range(len(parts)), 0)
        for (step, _), (first, of) in common.items():
            part, before = parts[step], parts[first]
            for value in before.mould.alike.made[of]:
                if isinstance(value, Open):
                    blocks = [kind for kind, _ in value.slots if kind == BLOCK]
                    plus = value.plus + starts[first] * len(blocks)
                    others = [before.numbers[kind] + n for kind, n in value.slots if kind != BLOCK]
                    taken.append((part.numbers[COMMON] + number[step], plus, others))
                number[step] += 1
        return taken

    def _mould(self, told: Told, step: int, is_packed: bool, found: tuple[bool, ...]) -> tuple[Mould, int]:
        """A mould, and the first number of its numbers, kernels and memory. ``found``: as in `_Common`, whether."""
        is_once = self._once[step] is not None
        key = id(told), is_once, is_packed, found
        known = self._moulds.get(key)
        if known is None:
            made: Mapping[int, tuple[Any, ...]] = {}
            if any(found):
                made = self._mould(told, step, False, ())[0].alike.made
            parts = [made[at] if there else None for at, there in enumerate(found)]
            mould = Mould(told, len(self._places[step]), is_once, is_packed, parts)
            known = self._moulds[key] = mould, self._count
            self._count += mould.count
        return known

    def _join(self, told: Sequence[Told], common: Mapping[_Asked, _Asked], to: Filling) -> _Joined:
        parts: list[_Part] = []
        moulds: dict[int, tuple[Mould, int]] = {}
        packed: dict[Any, int] = {}
        numbers_of_weights: list[int] = []
        where: list[int] = []
        end = 0
        for step, one in enumerate(told):
            plain = self._plain.get((step, id(one)))
            if plain is not None:
                parts.append(plain)
                moulds.setdefault(id(plain.mould), self._mould(one, step, False, ()))
                continue
            found = tuple([(step, at) in common for at in range(len(self._keys[id(one)]))])
            found = found if any(found) else ()
            part = self._part(step, one, False, found, to)
            there = [key in packed for _, _, key in part.weights]
            if any(there):
                if not all(there):
                    raise TypeError("some weights are packed")
                part = self._part(step, one, True, found, to)
            for number, bytes, key in part.weights:
                if key not in packed:
                    packed[key] = end
                    end += -(-bytes // _ALIGNMENT) * _ALIGNMENT
                numbers_of_weights.append(number)
                where.append(packed[key])
            if part.is_plain and not self._keys[id(one)]:
                self._plain[step, id(one)] = part
            parts.append(part)
            moulds.setdefault(id(part.mould), self._mould(one, step, part.is_packed, found))
        counts = np.array([part.counts for part in parts], np.int64).T
        ends = np.cumsum(counts[0])
        starts = ends - counts[0]
        words = np.concatenate([part.words for part in parts])
        open = np.concatenate([part.open for part in parts]).T.copy()
        open[0] += np.repeat(starts, counts[1])
        at, of = np.concatenate([part.addresses for part in parts]).T.copy()
        at += np.repeat(starts, counts[2])
        names = list(self._bases)
        _, first = np.unique(of, return_index=True)
        relocations = {names[number]: at[of == number] for number in of[np.sort(first)].tolist()}
        commands = np.concatenate([part.commands for part in parts])
        commands[:, 2] += 8 * np.repeat(starts, counts[3])
        tables = [commands[commands[:, 0] == when, 1:] for when in range(3)]
        if any(part.mould.jump_to for part in parts):
            _land(parts, starts, words, tables[2], relocations)
        for aim in [aim for part in parts for aim in part.aims]:
            words, open = _told_readers(aim, words, open, relocations)
        more = [(part, start) for part, start in zip(parts, starts.tolist(), strict=True) if not part.is_plain]
        puts = [put for part, _ in more for put in part.puts]
        byte_starts = (8 * starts).tolist()
        depends = any(not set(part.packing_open) <= {number for number, *_ in part.weights} for part, _ in more)
        return _Joined(
            parts,
            byte_starts,
            np.array([part.start for part in parts], np.int64),
            list(moulds.values()),
            np.concatenate([np.arange(first, first + mould.count) for mould, first in moulds.values()]),
            [(how, of, base) for _, how, of, base in puts],
            np.array([number for number, *_ in puts], np.int64),
            [(*spare, part.mould.told) for part, _ in more for spare in part.spare],
            words,
            open[0],
            open[1],
            relocations,
            tables[0],
            tables[1],
            tables[2],
            np.array([one for part, _ in more for one in part.packed], np.int64).reshape(-1, 2),
            [(a + start, b + start, count) for part, start in more for a, b, count in part.like],
            (numbers_of_weights, where, end),
            self._taken(parts, common, byte_starts),
            None
            if depends
            else (
                *[(part.start, -1) for part, _ in more if part.mould.packing],
                *zip(numbers_of_weights, where, strict=True),
            ),
        )

    def _part(self, step: int, told: Told, is_packed: bool, found: tuple[bool, ...], to: Filling) -> _Part:
        """A mould for a kernel of the graph."""
        places, once = self._places[step], self._once[step]
        mould, first = self._mould(told, step, is_packed, found)
        part = self._parts.get((step, id(mould)))
        if part is not None:
            return part
        asked = mould.puts, mould.weights_of, mould.spare, mould.between
        puts_at, counts = self._count, (*[len(one) for one in asked], mould.alike.count)
        self._count += sum(counts) + 1
        starts = {NUMBER: first, KERNEL: first + len(told.numbers)}
        starts[MEMORY] = starts[KERNEL] + len(mould.kernels)
        kinds = PUT, PACKED, SPARE, HELD, COMMON, BLOCK
        starts.update(zip(kinds, accumulate(counts, initial=puts_at), strict=True))
        bases = {f"p{at}": self._base_of(place) for at, place in enumerate(places)}
        bases.update({readers_of(box): readers_of(bases[box]) for box, _ in mould.aims})
        puts: list[tuple[int, str, tuple[Any, ...], str]] = []
        of_place: dict[int, int] = {}
        for number, (how, of) in enumerate(mould.puts, puts_at):
            if how == "value":
                puts.append((number, how, of, CONSTANTS))
                continue
            at = of[0]
            if how == "aligned":
                bases[f"c{number - puts_at}"] = to.aligned(places[at], *of[1:])[0]
                puts.append((number, how, (places[at], *of[1:]), bases[f"c{number - puts_at}"]))
            elif not isinstance(places[at], Stored):
                of_place[at] = number
                puts.append((number, how, (places[at],), CONSTANTS))
        words = np.array(mould.words, np.int64)
        open: list[tuple[int, int]] = []

        def left(kind: int, at: int) -> tuple[int, list[int]]:
            """What is left out: what is known of it, and the numbers of what is not."""
            if kind != PLACE:
                return 0, [starts[kind] + at]
            place = places[at]
            if isinstance(place, (Stored, Address)):
                return (place.offset if isinstance(place, Stored) else 0), []
            return 0, [place if type(place) is int else of_place[at]]

        for word, slot in mould.open:
            plus, others = left(*slot)
            words[word] += plus
            open += [(word, number) for number in others]
        aims = []
        for box, (base, offset) in mould.aims:
            parts = [left(*slot) for slot in offset.slots]
            plus = offset.plus + sum([known for known, _ in parts])
            aims.append((bases[box], bases.get(base, base), plus, [number for _, others in parts for number in others]))

        def fixed(number: Any) -> int:
            """What is known where a constant of the file is read."""
            plus = number.plus if isinstance(number, Open) else number
            for kind, at in number.slots if isinstance(number, Open) else ():
                if kind != PLACE or not isinstance(places[at], Stored):
                    raise TypeError("where weights are depends on sizes")
                plus += places[at].offset
            return int(plus)

        def known(key: Any) -> Any:
            if isinstance(key, Open):
                values = [
                    places[at].content for kind, at in key.slots if kind == PLACE and isinstance(places[at], Value)
                ]
                return (values[0], key.plus) if values else fixed(key)
            if isinstance(key, tuple):
                return type(key), tuple([known(one) for one in key])
            return bases.get(key, key) if isinstance(key, str) else key

        packed = []
        for _, _, source, reads, _ in mould.packing:
            if source is not None and reads and bases.get(source[0], source[0]) == MODEL:
                packed.append((fixed(source[1]), reads))
            else:
                packed.append((0, 0))
        addresses = sorted((at, bases.get(base, base)) for at, base in mould.bases)
        numbered = [(at, self._bases.setdefault(base, len(self._bases))) for at, base in addresses]
        kernel = starts[KERNEL]
        commands = [(0, kernel + one, block, barrier) for one, block, *_, barrier in mould.packing]
        if once is None:
            commands += [
                (2, NO_KERNEL if one == NO_KERNEL else kernel + one, block, barrier)
                for one, block, barrier in mould.commands
            ]
        else:
            commands += [(1, kernel + one, block, 1) for one, block, _ in mould.commands]
        like = [
            (a, b, end - a)
            for index, (a, end, of) in enumerate(mould.like)
            for b, last, others in mould.like[index + 1 :]
            if last - b == end - a and [bases.get(x, x) for x in of] == [bases.get(x, x) for x in others]
        ]
        inside = {word for first_word, last, *_ in mould.packing_tables for word in range(first_word, last)}
        part = self._parts[step, id(mould)] = _Part(
            mould,
            is_packed,
            starts,
            bases,
            words,
            np.array(open, np.int64).reshape(-1, 2),
            np.array(numbered, np.int64).reshape(-1, 2),
            np.array(commands, np.int64).reshape(-1, 4),
            (len(words), len(open), len(numbered), len(commands)),
            starts[BLOCK],
            not (puts or packed or mould.weights_of or mould.spare or like or mould.packing_tables),
            packed,
            puts,
            [(starts[PACKED] + at, bytes, known(key)) for at, (bytes, key) in enumerate(mould.weights_of)],
            [(starts[SPARE] + at, bytes) for at, bytes in enumerate(mould.spare)],
            [(starts[HELD] + at, bytes) for at, bytes in enumerate(mould.between)],
            like,
            [number for word, number in open if word in inside and number != starts[BLOCK]],
            aims,
        )
        return part

    def _base_of(self, place: Any) -> str:
        if type(place) is int:
            return COMPUTED if place in self._computed else ARENA
        if isinstance(place, Address):
            return place.base
        return MODEL if isinstance(place, Stored) else CONSTANTS


def _told_readers(
    aim: tuple[str, str, int, list[int]],
    words: NDArray[np.int64],
    open: NDArray[np.int64],
    relocations: dict[str, NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Words and what is open of them with the table of who reads behind a base that is told in a run: what
    `ProgramBuilder.tell_readers` does."""
    base, of, plus, others = aim
    readers, tables = relocations.pop(base), relocations.pop(readers_of(base))
    start, count = len(words), len(readers)
    addresses, values = start + 1 + 2 * np.arange(count), start + 2 + 2 * np.arange(count)
    words[tables] += 8 * start
    table = np.stack([8 * readers, words[readers] + plus], 1).reshape(-1)
    more = [open[:, open[0] == reader][1] for reader in readers]
    at = np.repeat(values, [len(others) + len(numbers) for numbers in more])
    added = np.array([number for numbers in more for number in (*others, *numbers.tolist())], np.int64)
    for name, places in ((BLOCKS, np.append(tables, addresses)), (of, values)):
        relocations[name] = np.sort(np.append(relocations.get(name, places[:0]), places))
    return np.concatenate([words, [count], table]), np.concatenate([open, [at, added]], 1)


def _land(
    parts: Sequence[_Part],
    starts: NDArray[np.int64],
    words: NDArray[np.int64],
    commands: NDArray[np.int64],
    relocations: dict[str, NDArray[np.int64]],
) -> None:
    """Let jumps go where they are to go, and do what `ProgramBuilder.jump` does."""
    counts = [int(np.count_nonzero(part.commands[:, 0] == 2)) for part in parts]
    firsts = [0, *accumulate(counts)]
    watched: list[int] = []
    may_fault = False
    for part, start, first in zip(parts, starts.tolist(), firsts, strict=False):
        may_fault |= any(part.bases_of.get(base, base) == FAULT for _, base in part.mould.bases)
        if part.mould.jump_to is None:
            continue
        kind, target = part.mould.jump_to
        words[start + TARGET] = target if target < 0 else firsts[target]
        if kind >= Jump.IF and first and commands[first - 1, 0] != NO_KERNEL:
            commands[first - 1, 2] = 0  # all threads meet at the jump
        if kind is Jump.BACK and may_fault:
            watched.append(start + JUMP_WORDS.index("fault"))
    if watched:
        relocations[FAULT] = np.sort(np.concatenate([relocations[FAULT], np.array(watched, np.int64)]))
