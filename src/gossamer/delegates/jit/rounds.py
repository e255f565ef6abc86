"""Turns of a loop whose shapes change, which the walker takes without Python: a `Circuit`.

Where lengths grow by the same from turn to turn, what differs are words of argument blocks, and these grow by the same,
too. For which lengths that is so, and how far, is told by what programs have been fitted by (`Fitted`): of all sizes
that are ahead at once, whether the same is decided, and whether numbers are what they are to be. So a turn with lengths
that have never been takes no more than others. Branches are ways, which may grow by different numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalledPartition
from gossamer.delegates.jit.steps import Look, SteppedKernel
from gossamer.delegates.jit.template import Fitted, Template
from gossamer.dtypes import numpy_dtype
from gossamer.errors import CompileError
from gossamer.ops.op_def import Shape
from gossamer.programs.circuit import Advancing, Circuit, Row
from gossamer.programs.program import Program
from gossamer.programs.team import Jump
from gossamer.schema.enums import TensorType

Array = NDArray[Any]

Shapes = tuple[Shape, ...]

MOST_TURNS = 63
"""So many are taken before Python looks again; they are counted in a byte."""

FEWEST_TURNS = 24
"""Fewer are not worth it."""

MOST_AHEAD = (0, MOST_TURNS, 20, 9)
"""Turns ahead that are looked at, by how many ends a turn may have: all that they may lead to."""

LINE = 64
"""Bytes of a line of the cache."""

MOST_LAPS = 8
"""Circuits of a loop that are kept."""

MOST_ROOM = 64 << 10
"""Bytes that a variable may grow by, beyond twice what it has."""

MOST_STARTS = 256
"""Lengths to begin with of which it is known how turns go on."""


class Way(NamedTuple):
    """A program in a turn. ``sizes``: what it is fitted to; ``words``: what that makes of it; ``ends``: what it reads
    and writes, tensors, bases and bytes; ``following``: what comes behind it, unless it is the last."""

    program: Program
    fitted: tuple[Template, Fitted] | None
    sizes: list[int]
    words: list[int]
    ends: list[tuple[int, str, int]]
    shapes: Mapping[int, Shape]
    following: Fork | None


class Fork(NamedTuple):
    """Ways, by what the bytes of ``asked`` are; ``None`` for one that has not been gone."""

    asked: list[int]
    ways: Mapping[bytes, Way | None]

    def flags(self) -> Iterator[int]:
        """All that is asked."""
        yield from self.asked
        for _, way in self.each():
            if way is not None and way.following is not None:
                yield from way.following.asked

    def each(self, path: tuple[bytes, ...] = ()) -> Iterator[tuple[tuple[bytes, ...], Way | None]]:
        """All ways, each behind those before it."""
        for key, way in self.ways.items():
            yield (*path, key), way
            if way is not None and way.following is not None:
                yield from way.following.each((*path, key))


def traced(kernel: SteppedKernel, shapes: Mapping[int, Shape]) -> Fork | None:
    """How a routine goes on for shapes of its inputs, as far as that is known; ``None`` if not at all."""
    look, count = kernel.course()
    return None if look is None else _fork(look, count, shapes, frozenset(shapes))


def _fork(look: Look, count: int, shapes: Mapping[int, Shape], there: frozenset[int]) -> Fork | None:
    asked = [one.index for one in look.asked]
    flags = all(one.type == TensorType.BOOL and prod(shapes.get(one.index, (0,))) == 1 for one in look.asked)
    if look.handles or not flags or len(asked) > 2 or not there.issuperset(asked):
        return None
    ways = {bytes(key): _way(look, bytes(key), count, shapes, there) for key in product((0, 1), repeat=len(asked))}
    return Fork(asked, ways) if any(ways.values()) else None


def _way(look: Look, key: bytes, count: int, shapes: Mapping[int, Shape], there: frozenset[int]) -> Way | None:
    if any(one.index not in shapes for one in look.sized):
        return None
    found = None if look.sizing is None else look.sizing.known(shapes, look.asked, key)
    if found is not None:
        template, sizes, shared, fit = found
        if shared.fitted is None or look.sizing is None:
            return None
        program, words, fitted, stop = shared.program, fit.words, (template, shared.fitted), look.sizing.nodes.stop
        ends = [(one.tensor, one.base, size) for one, size in zip(shared.boundaries, fit.bytes, strict=True)]
        written = dict(zip(look.sizing.outputs, fit.shapes, strict=True))
    else:
        step = look.steps.get((tuple([shapes[one.index] for one in look.sized]), tuple([bytes([b]) for b in key]), ()))
        if step is None or step.program is None or step.shared or step.variables or step.counted or step.keeps:
            return None
        program, words, fitted, stop, sizes = step.program, [], None, step.stop, []
        ends = [(tensor.index, base, size) for tensor, base, size, _ in step.boundaries]
        written = {tensor.index: shape for tensor, shape in step.shapes}
    bound = {tensor for tensor, *_ in ends}
    if not bound <= there | written.keys():
        return None
    shapes, there = {**shapes, **written}, there | (written.keys() & bound)
    following = None
    if stop < count:
        after = look.after.get(stop)
        following = None if after is None else _fork(after, count, shapes, there)
        if following is None:
            return None
    return Way(program, fitted, sizes, words, ends, {index: shapes[index] for index in there}, following)


Path = tuple[int, tuple[bytes, ...]]
"""Of a program: its routine, and which way is gone at each fork."""


class Plan(NamedTuple):
    """What a turn is for some shapes of variables, and for those behind it. ``ends``: these, others than it begins
    with; ``leaves``: which of them each way ends with, -1 for what it begins with."""

    ways: Mapping[Path, Way | None]
    others: list[Mapping[Path, Way | None]]
    forks: tuple[Fork, Fork]
    shapes: Shapes
    ends: list[Shapes]
    leaves: Mapping[tuple[bytes, ...], int]

    def growth(self, path: Path, end: int) -> list[int]:
        """What is added to the words of a program."""
        one, other = self.ways[path], self.others[end][path]
        return [] if one is None or other is None else [b - a for a, b in zip(one.words, other.words, strict=True)]

    @property
    def key(self) -> Any:
        """What tells circuits apart: programs, and by how much their words grow."""
        grown = [tuple(self.growth(path, end)) for path in self.ways for end in range(len(self.ends))]
        return _programs(self.ways), tuple(self.leaves.items()), tuple(grown)


def _programs(ways: Mapping[Path, Way | None]) -> Any:
    return tuple([(path, way and id(way.program)) for path, way in ways.items()])


class Start(NamedTuple):
    """Shapes to begin with, and the turns that can be taken from there. ``variables``: those that change, with their
    types, shapes, and what each end of a turn adds to these. ``first``: what makes words those of the first turn, as
    long as nothing moves."""

    plan: Plan
    turns: int
    variables: list[tuple[int, np.dtype[Any], Shape, list[list[int]]]]
    first: dict[int, Advancing]


class Rounds:
    """What takes turns of a loop. ``taken``: how many it has taken."""

    def __init__(self, condition: CalledPartition, body: CalledPartition, make: Callable[[], Circuit]) -> None:
        """``make``: an empty circuit. Raises `ValueError` for a loop that never goes so."""
        given = [tensor.index for tensor in body.given]
        self.taken_by = [tensor.index for tensor in condition.taken], [tensor.index for tensor in body.taken]
        self.given = given
        self.changing = [at for at, index in enumerate(self.taken_by[1]) if given[at] != index]
        new = [given[at] for at in self.changing]
        if len({*new}) < len(new) or {*new}.intersection(self.taken_by[1]) or len(condition.given) != 1:
            raise ValueError("variables change places")
        self.flag = condition.given[0].index
        if self.flag in self.taken_by[0]:
            raise ValueError("the condition is a variable")
        self.kinds = body.taken
        self.taken = 0
        self.moment = 0
        """It is another one whenever more is known."""
        self._routines = condition, body
        self._make = make
        self._laps: dict[Any, Lap] = {}
        self._starts: dict[Shapes, tuple[Lap, Start]] = {}
        self._in_vain: dict[Shapes, int] = {}
        """The moments when there was nothing for these."""

    def go(
        self, values: Sequence[Array], poll: Callable[[], object], moment: int, *, plans: bool
    ) -> tuple[list[Array], int, bool] | None:
        """Take turns, as many as can be: the variables behind these, how many there were, and whether that is all.
        ``None`` if nothing has been done; else variables are no more where they were.

        ``plans``: whether it may be found out what shapes lead to. ``moment``: how much is known, of which twice as
        much must be until that is tried again.
        """
        shapes = self._shapes(values)
        known = self._starts.get(shapes)
        if known is None and plans and moment >= 2 * self._in_vain.get(shapes, 0):
            known = self._planned(shapes)
            if known is None:
                self._in_vain = {**self._in_vain, shapes: moment} if len(self._in_vain) < MOST_STARTS else {}
        if known is None:
            return None
        lap, start = known
        values, turns, is_over = lap.go(start, values, poll)
        self.taken += turns
        if not is_over and turns < start.turns:
            del self._starts[shapes]  # there may be a way that was not gone before
        return values, turns, is_over

    def begins(self, values: Sequence[Array]) -> bool:
        """Whether it is known how turns go on from these variables."""
        return self._shapes(values) in self._starts

    def _shapes(self, values: Sequence[Array]) -> Shapes:
        return tuple([self._declared(at, value.shape) for at, value in enumerate(values)])

    def _declared(self, at: int, shape: Shape) -> Shape:
        own = self.kinds[at].shape
        return own if own in ((), (1,)) and prod(shape) == 1 else shape

    def _planned(self, shapes: Shapes) -> tuple[Lap, Start] | None:
        plan = self._plan(shapes)
        turns = 0 if plan is None else _turns(plan)
        if plan is None or turns < FEWEST_TURNS:
            return None
        if len(self._laps) >= MOST_LAPS or len(self._starts) >= MOST_STARTS:
            for one in (self._laps, self._starts, self._in_vain):
                one.clear()
        lap = self._laps.get(plan.key)
        if lap is None:
            try:
                lap = self._laps[plan.key] = Lap(self, plan, turns, self._make())
            except CompileError:  # programs alone do it, too
                return None
        lap.reserve(plan, turns)
        variables = [
            (
                at,
                np.dtype(numpy_dtype(self.kinds[at].type)),
                shapes[at],
                [[b - a for a, b in zip(shapes[at], end[at], strict=True)] for end in plan.ends],
            )
            for at in self.changing
        ]
        self.moment += 1
        known = self._starts[shapes] = lap, Start(plan, turns, variables, {})
        return known

    def _traced(self, shapes: Shapes) -> tuple[tuple[Fork, Fork], Mapping[Path, Way | None]] | None:
        condition, body = [
            traced(cast(SteppedKernel, routine.kernel), dict(zip(taken, shapes, strict=True)))
            for routine, taken in zip(self._routines, self.taken_by, strict=True)
        ]
        if condition is None or body is None:
            return None
        forks = condition, body
        return forks, {(number, path): way for number, fork in enumerate(forks) for path, way in fork.each()}

    def _plan(self, shapes: Shapes) -> Plan | None:
        found = self._traced(shapes)
        if found is None:
            return None
        forks, ways = found
        asked = [(routine, one) for routine, fork in enumerate(forks) for one in fork.flags()]
        if any(one in self.taken_by[r] and self.taken_by[r].index(one) not in self.changing for r, one in asked):
            return None  # a flag that never changes lies elsewhere in each run
        ends: list[Shapes] = []
        leaves: dict[tuple[bytes, ...], int] = {}
        for (routine, path), way in ways.items():
            if way is None or way.following is not None:
                continue
            if not {*([self.flag], self.given)[routine]} <= way.shapes.keys():
                return None
            if routine:
                end = tuple([self._declared(at, way.shapes[given]) for at, given in enumerate(self.given)])
                if end not in (shapes, *ends):
                    ends.append(end)
                leaves[path] = -1 if end == shapes else ends.index(end)
        others = []
        for end in ends:
            other = self._traced(end) if [*map(len, end)] == [*map(len, shapes)] else None
            if other is None or _programs(other[1]) != _programs(ways):
                return None
            others.append(other[1])
        return Plan(ways, others, forks, shapes, ends, leaves)


def _points(ends: int) -> NDArray[np.int64]:
    """How many turns have had each end, for all that is ahead, fewer turns first."""
    if not ends:
        return np.zeros((1, 0), np.int64)
    grid = np.stack(np.meshgrid(*[np.arange(MOST_AHEAD[ends] + 1)] * ends, indexing="ij"), -1).reshape(-1, ends)
    turns = grid.sum(1)
    order = np.argsort(turns, kind="stable")
    ahead: NDArray[np.int64] = grid[order[turns[order] <= MOST_AHEAD[ends]]]
    return ahead


def _turns(plan: Plan) -> int:
    """For how many turns all is as it is told: programs are the same, and their words grow by the same."""
    if len(plan.ends) >= len(MOST_AHEAD):
        return 0
    points = _points(len(plan.ends))
    holds = np.ones(len(points), bool)
    for path, way in plan.ways.items():
        others = [other for found in plan.others if (other := found[path]) is not None]
        if way is None:
            continue
        if way.fitted is None:
            if any(other.ends != way.ends for other in others):
                return 0
            continue
        steps = np.array([other.sizes for other in others], np.int64).reshape(len(others), len(way.sizes)) - way.sizes
        for one in way.fitted:
            holds &= one.ahead(way.sizes, steps, points)
    turns = points.sum(1)
    most = MOST_TURNS if not plan.ends else int(turns[-1]) if holds.all() else int(turns[~holds][0])
    most = most if holds[0] else 0
    while most >= FEWEST_TURNS and any(
        prod(_reached(shape, [end[at] for end in plan.ends], most)) > 2 * prod(shape) + MOST_ROOM
        for at, shape in enumerate(plan.shapes)
    ):
        most //= 2
    return most


def _reached(shape: Shape, ends: Sequence[Shape], turns: int) -> Shape:
    """The largest that a shape is after so many turns."""
    grown = [[size + turns * (end[axis] - size) for end in ends] for axis, size in enumerate(shape)]
    return tuple([max(size, *sizes) if sizes else size for size, sizes in zip(shape, grown, strict=True)])


class Lap:
    """A circuit for two turns, and where variables lie: in two places each, of which one is read, the other written."""

    def __init__(self, rounds: Rounds, plan: Plan, turns: int, circuit: Circuit) -> None:
        self._rounds = rounds
        self._circuit = circuit
        self._places: dict[tuple[int, int, int], NDArray[np.uint8]] = {}
        """By routine, tensor and parity, less for what never changes."""
        self._plan = plan
        self._counts = np.zeros(1 + len(plan.ends), np.int64)
        """The turns that are left, and how many have had each end."""
        self._programs: list[tuple[Program, Path, int]] = []
        """With the parity of their turns."""
        self._ends = {path: [one[:2] for one in way.ends] for path, way in plan.ways.items() if way is not None}
        self._constant: list[tuple[int, Array]] = []
        """Variables that never change, as programs are bound to them."""
        self._has_moved = True
        self._moment = 0
        """It is another one whenever something lies elsewhere."""
        self.reserve(plan, turns)
        self._flag = self._places[0, rounds.flag, 0]
        left = _address(self._counts)
        starts: list[int] = []
        ended: list[tuple[int, int]] = []
        again: list[tuple[int, int]] = []
        circuit.advance()
        for parity in (0, 1):
            starts.append(circuit.here)
            met: list[int] = []

            def decide(path: tuple[bytes, ...], met: list[int] = met, parity: int = parity) -> None:
                circuit.jump(Jump.UNLESS, self._flag_at(0, rounds.flag, parity))
                met.append(circuit.jump(Jump.GO))

            def end(path: tuple[bytes, ...], parity: int = parity) -> None:
                ended.append((circuit.here, plan.leaves[path]))
                circuit.advance()
                again.append((circuit.jump(Jump.BACK, left), 1 - parity))
                circuit.jump(Jump.GO)

            self._emit(0, plan.forks[0], parity, decide)
            for jump in met:
                circuit.land(jump, circuit.here)
            self._emit(1, plan.forks[1], parity, end)
        for jump, parity in again:
            circuit.land(jump, starts[parity])
        for command, leaf in ended:
            rows: list[Row] = [(left, -1, -1)]
            if leaf >= 0:
                rows.append((left + 8 * (1 + leaf), -1, 1))
                for program, path, _ in self._programs:
                    at = self._words_of(plan, path)[0]
                    grown = zip(at, plan.growth(path, leaf), strict=True)
                    rows += [(program.arguments_at(word), -1, more) for word, more in grown if more]
            circuit.set(command, Advancing(rows))
        circuit.close()

    @staticmethod
    def _words_of(plan: Plan, path: Path) -> tuple[Sequence[int], Sequence[int]]:
        """Which words of a program are others for other sizes, and what they are."""
        way = plan.ways[path]
        return ((), ()) if way is None or way.fitted is None else (way.fitted[1].at, way.words)

    def _emit(
        self,
        routine: int,
        fork: Fork,
        parity: int,
        end: Callable[[tuple[bytes, ...]], None],
        before: tuple[bytes, ...] = (),
        key: bytes = b"",
    ) -> None:
        """Commands of a fork; ``end`` makes those behind the last program of a way."""
        if len(key) < len(fork.asked):
            jump = self._circuit.jump(Jump.UNLESS, self._flag_at(routine, fork.asked[len(key)], parity))
            self._emit(routine, fork, parity, end, before, key + b"\1")
            self._circuit.land(jump, self._circuit.here)
            self._emit(routine, fork, parity, end, before, key + b"\0")
            return
        way, path = fork.ways[key], (*before, key)
        if way is None:
            self._circuit.jump(Jump.GO)
            return
        self._programs.append((self._circuit.run(way.program), (routine, path), parity))
        if way.following is None:
            end(path)
        else:
            self._emit(routine, way.following, parity, end, path)

    def _flag_at(self, routine: int, tensor: int, parity: int) -> int:
        return _address(self._places[self._place(routine, tensor, parity)])

    def _place(self, routine: int, tensor: int, parity: int) -> tuple[int, int, int]:
        """The key of where a tensor lies in turns of this parity."""
        rounds = self._rounds
        if tensor in rounds.taken_by[routine]:
            return -1, rounds.taken_by[routine].index(tensor), parity
        if routine and tensor in rounds.given:
            return -1, rounds.given.index(tensor), 1 - parity
        return routine, tensor, 0

    def reserve(self, plan: Plan, turns: int) -> None:
        """Have room for what so many turns need."""
        rounds = self._rounds
        needs: dict[tuple[int, int, int], int] = {}
        for at in rounds.changing:
            shape = _reached(plan.shapes[at], [end[at] for end in plan.ends], turns)
            size = prod(shape) * numpy_dtype(rounds.kinds[at].type).itemsize
            needs[-1, at, 0] = needs[-1, at, 1] = size
        for path, way in plan.ways.items():
            others = [other for found in plan.others if (other := found[path]) is not None]
            for number, (tensor, _, size) in enumerate(way.ends if way is not None else ()):
                most = max([size, *[size + turns * (other.ends[number][2] - size) for other in others]])
                for parity in (0, 1):
                    place = self._place(path[0], tensor, parity)
                    if place[0] >= 0 or place[1] in rounds.changing:
                        needs[place] = max(most, needs.get(place, 0))
        for place, size in needs.items():
            if place not in self._places or self._places[place].nbytes < size:
                self._places[place] = _room(2 * size)
                self._has_moved = True
        self._begins = [self._places[-1, at, 0] for at in rounds.changing]

    def go(self, start: Start, values: Sequence[Array], poll: Callable[[], object]) -> tuple[list[Array], int, bool]:
        """Take turns from there: variables, how many turns, and whether that is all."""
        changing = self._rounds.changing
        for at, place in zip(changing, self._begins, strict=True):
            value = values[at]
            if value.base is not place.base or value.__array_interface__["data"] != place.__array_interface__["data"]:
                place[: value.nbytes] = value.reshape(-1).view(np.uint8)
        values = list(values)
        if self._has_moved or any(values[at] is not value for at, value in self._constant):
            self._bind(values)
        first = start.first.get(self._moment)
        if first is None:
            start.first.clear()
            first = start.first[self._moment] = self._begin(start)
        self._flag[0] = 1
        is_right = self._circuit.go(first, poll)
        left, *counts = self._counts.tolist()
        turns = start.turns - left
        for at, dtype, shape, grown in start.variables:
            now = list(shape)
            for count, more in zip(counts, grown, strict=True):
                now = [size + count * one for size, one in zip(now, more, strict=True)]
            place = self._places[-1, at, turns % 2]
            values[at] = np.ndarray(now, dtype, place)
        return values, turns, is_right and left > 0 and not self._flag[0]

    def _bind(self, values: list[Array]) -> None:
        """Have programs read and write where variables lie."""
        for at, value in enumerate(values):
            if not value.flags.c_contiguous:
                values[at] = np.ascontiguousarray(value)
        self._constant = [(at, value) for at, value in enumerate(values) if at not in self._rounds.changing]
        self._has_moved = False
        for program, path, parity in self._programs:
            for tensor, base in self._ends[path]:
                place = self._place(path[0], tensor, parity)
                program.bind(base, _address(self._places[place] if place in self._places else values[place[1]]))
        self._moment += 1

    def _begin(self, start: Start) -> Advancing:
        """What makes words those of the first turn."""
        rows: list[Row] = [(_address(self._counts), 0, start.turns)]
        rows += [(_address(self._counts) + 8 * at, 0, 0) for at in range(1, len(self._counts))]
        for program, path, _ in self._programs:
            at, words = self._words_of(start.plan, path)
            program.write(at, words)
            rows += [(program.arguments_at(word), 0, program.arguments[word]) for word in at]
        return Advancing(rows)


def _room(size: int) -> NDArray[np.uint8]:
    """Memory that lives as long as something in it is looked at, and begins with a line of the cache."""
    raw = np.zeros(size + LINE, np.uint8)
    start = -_address(raw) % LINE
    return raw[start : start + size]


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
