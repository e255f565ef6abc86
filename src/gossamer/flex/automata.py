"""Regular expressions by automata, over bytes: time in proportion to the text, whatever the pattern is.

A pattern is a program of threads, which is simulated: all threads go through the text side by side, in the order in
which a backtracking engine would try them (Rob Pike's; Russ Cox, "Regular Expression Matching: the Virtual Machine
Approach"). Lists of threads that come up are states of a deterministic automaton, which is made as far as texts need
it. Where a match ends is found forwards; where it begins, backwards from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gossamer.flex.re2_syntax import (
    Alternate,
    AnyByte,
    Assertion,
    Chars,
    Concat,
    Empty,
    Group,
    PatternError,
    Ranges,
    Repeat,
    Tree,
)

Poll = Callable[[], None]

MOST_STEPS = 80_000
"""Steps of a program: RE2's limit for the memory that it has by default."""

MOST_THREADS = 1 << 22
"""Threads in all states that are kept."""

STRIDE = 1 << 14
"""Bytes between two looks whether the invocation is to end."""

END = 256
"""What comes where no byte is."""


class Bytes(NamedTuple):
    """A byte in one of these ranges, and where it leads."""

    targets: tuple[tuple[int, int, int], ...]


class Split(NamedTuple):
    """Threads, the best first."""

    targets: tuple[int, ...]


class Check(NamedTuple):
    """An assertion, and what comes then."""

    kind: str
    target: int


class Save(NamedTuple):
    """Here a group begins or ends: its place among the ends of all, and what comes then."""

    place: int
    target: int


class Match(NamedTuple):
    """The end."""


Step = Bytes | Split | Check | Save | Match


class State:
    """A list of threads that are about to go on, the class of the byte before, and whether matches may still begin;
    ``row``: for each next byte, whether there is a match here, and the state behind it."""

    __slots__ = ("before", "row", "searches", "threads")

    def __init__(self, threads: tuple[int, ...], before: int, searches: bool) -> None:
        self.threads, self.before, self.searches = threads, before, searches
        self.row: list[tuple[bool, State | None] | None] = [None] * (END + 1)


class Program:
    """A pattern for one direction. ``searches``: matches may begin anywhere. ``prefers``: what a better thread matches
    counts, and not what is longer."""

    def __init__(self, tree: Tree, *, backwards: bool = False, searches: bool = False, prefers: bool = True) -> None:
        self.steps: list[Step] = [Match()]
        self._backwards = backwards
        self._searches, self._prefers = searches, prefers
        self._chains: dict[tuple[tuple[tuple[int, int], ...], int], int] = {}
        self.start = self._emit(tree, 0)
        self._looks = any(isinstance(step, Check) for step in self.steps)
        self._states: dict[tuple[tuple[int, ...], int, bool], State] = {}
        self._kept = 0

    def ends(self, data: bytes, places: range, poll: Poll) -> int | None:
        """The last place of those in order where the best match ends (the longest, unless it ``prefers``)."""
        step = 1 if places.step > 0 else -1
        behind = 0 if step > 0 else -1  # of a place, the byte that comes next, and before
        first = places.start
        state: State | None = self._state((self.start,), self._class(_at(data, first - 1 - behind)), self._searches)
        found = None
        for begin in range(0, len(places), STRIDE):
            poll()
            for at in places[begin : begin + STRIDE]:
                byte = data[at + behind] if 0 <= at + behind < len(data) else END
                if state is None:
                    return found
                move = state.row[byte]
                if move is None:
                    move = self._move(state, byte, poll)
                matched, state = move
                if matched:
                    found = at
        return found

    def groups(self, data: bytes, start: int, end: int, count: int, poll: Poll) -> list[int]:
        """Where the groups of the match between two places begin and end, -1 if they are not in it."""
        best = [-1] * (2 * count + 2)
        threads: list[tuple[int, tuple[int, ...]]] = [(self.start, tuple(best))]
        for at in range(start, end + 1):
            if not at % STRIDE:
                poll()
            before, byte = self._class(_at(data, at - 1)), _at(data, at)
            following: list[tuple[int, tuple[int, ...]]] = []
            reached: set[int] = set()
            for pc, saved in self._saving(threads, before, byte, at):
                step = self.steps[pc]
                if isinstance(step, Match):
                    best = list(saved)
                    break
                for low, high, target in step.targets if isinstance(step, Bytes) else ():
                    if low <= byte <= high and target not in reached:
                        reached.add(target)
                        following.append((target, saved))
            threads = following
        best[:2] = start, end
        return best

    def _saving(
        self, threads: Sequence[tuple[int, tuple[int, ...]]], before: int, byte: int, at: int
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        seen: set[int] = set()
        for thread in threads:
            stack = [thread]
            while stack:
                pc, saved = stack.pop()
                if pc in seen:
                    continue
                seen.add(pc)
                step = self.steps[pc]
                if isinstance(step, Split):
                    stack += [(target, saved) for target in reversed(step.targets)]
                elif isinstance(step, Save):
                    stack.append((step.target, (*saved[: step.place], at, *saved[step.place + 1 :])))
                elif isinstance(step, Check):
                    if self._holds(step.kind, before, byte):
                        stack.append((step.target, saved))
                else:
                    yield pc, saved

    def _state(self, threads: tuple[int, ...], before: int, searches: bool) -> State:
        key = threads, before, searches
        state = self._states.get(key)
        if state is None:
            self._kept += len(threads) + END
            if self._kept > MOST_THREADS:
                self._states.clear()
                self._kept = 0
            state = self._states[key] = State(*key)
        return state

    def _move(self, state: State, byte: int, poll: Poll) -> tuple[bool, State | None]:
        """What a state becomes by a byte: made once."""
        poll()
        following: dict[int, None] = {}
        matched = False
        for pc in self._reached(state, byte):
            step = self.steps[pc]
            if isinstance(step, Match):
                matched = True
                if self._prefers:
                    break
            elif isinstance(step, Bytes):
                for low, high, target in step.targets:
                    if low <= byte <= high:
                        following[target] = None
        searches = state.searches and not matched
        if searches:
            following[self.start] = None
        after = self._state(tuple(following), self._class(byte), searches) if following else None
        move = state.row[byte] = matched, after
        return move

    def _reached(self, state: State, byte: int) -> Iterator[int]:
        """The threads of a state at bytes, or the end, in order."""
        seen: set[int] = set()
        for thread in state.threads:
            stack = [thread]
            while stack:
                pc = stack.pop()
                if pc in seen:
                    continue
                seen.add(pc)
                step = self.steps[pc]
                if isinstance(step, Split):
                    stack += reversed(step.targets)
                elif isinstance(step, Save):
                    stack.append(step.target)
                elif isinstance(step, Check):
                    if self._holds(step.kind, state.before, byte):
                        stack.append(step.target)
                else:
                    yield pc

    def _class(self, byte: int) -> int:
        """What assertions tell of a byte: the end, a newline, a letter of a word or another one."""
        if not self._looks or byte == 10 or byte == END:
            return byte if self._looks else 0
        return ord("a") if _is_word(byte) else 0

    def _holds(self, kind: str, before: int, byte: int) -> bool:
        left, right = (byte, before) if self._backwards else (before, byte)
        if kind == "begin_text":
            return left == END
        if kind == "end_text":
            return right == END
        if kind == "begin_line":
            return left in (END, 10)
        if kind == "end_line":
            return right in (END, 10)
        return (_is_word(left) != _is_word(right)) == (kind == "word")

    def _add(self, step: Step) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise PatternError("the pattern is too large")
        self.steps.append(step)
        return len(self.steps) - 1

    def _emit(self, tree: Tree, target: int) -> int:
        """The step with which a tree begins, behind which ``target`` comes."""
        match tree:
            case Empty():
                return target
            case Chars(ranges):
                return self._characters(ranges, target)
            case AnyByte():
                return self._add(Bytes(((0, 255, target),)))
            case Assertion(kind):
                return self._add(Check(kind, target))
            case Group(item, number):
                if self._backwards:
                    return self._emit(item, target)
                return self._add(Save(2 * number, self._emit(item, self._add(Save(2 * number + 1, target)))))
            case Concat(items):
                for item in items if self._backwards else reversed(items):
                    target = self._emit(item, target)
                return target
            case Alternate(items):
                return self._add(Split(tuple([self._emit(item, target) for item in items])))
            case Repeat():
                return self._repeat(tree, target)

    def _repeat(self, tree: Repeat, target: int) -> int:
        item, least, most, greedy = tree
        begin = target
        if most is None:
            loop = self._add(Split(()))
            body = self._emit(item, loop)
            ways = (body, target) if greedy else (target, body)
            self.steps[loop] = Split(ways)
            # Who comes to the loop by matching nothing has been there, and goes on: not by the way in.
            begin = body if least else self._add(Split(ways))
            least -= 1
        else:
            for _ in range(most - least):
                body = self._emit(item, begin)
                begin = self._add(Split((body, target) if greedy else (target, body)))
        for _ in range(least):
            begin = self._emit(item, begin)
        return begin

    def _characters(self, ranges: Ranges, target: int) -> int:
        targets = []
        for first, last in ranges:
            for sequence in utf8_sequences(first, last):
                chain = sequence[::-1] if self._backwards else sequence
                low, high = chain[0]
                targets.append((low, high, self._chain(chain[1:], target)))
        return self._add(Bytes(tuple(targets)))

    def _chain(self, chain: tuple[tuple[int, int], ...], target: int) -> int:
        """A step for each range of a sequence; what ends in the same way shares it."""
        if not chain:
            return target
        known = self._chains.get((chain, target))
        if known is None:
            low, high = chain[0]
            known = self._add(Bytes(((low, high, self._chain(chain[1:], target)),)))
            self._chains[chain, target] = known
        return known


def utf8_sequences(first: int, last: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Sequences of ranges of bytes that together are the characters from ``first`` to ``last`` in UTF-8."""
    for low, high in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)):
        if max(first, low) <= min(last, high):
            yield from _sequences(max(first, low), min(last, high))


def _sequences(first: int, last: int) -> Iterator[tuple[tuple[int, int], ...]]:
    size = len(chr(first).encode())
    for bits in range(6, 6 * size, 6):
        mask = (1 << bits) - 1
        if first | mask != last | mask:
            if first & mask:
                yield from _sequences(first, first | mask)
                yield from _sequences((first | mask) + 1, last)
                return
            if last & mask != mask:
                yield from _sequences(first, (last & ~mask) - 1)
                yield from _sequences(last & ~mask, last)
                return
    yield tuple(zip(chr(first).encode(), chr(last).encode(), strict=True))


def _at(data: bytes, place: int) -> int:
    return data[place] if 0 <= place < len(data) else END


def _is_word(byte: int) -> bool:
    return byte == 95 or 48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122
