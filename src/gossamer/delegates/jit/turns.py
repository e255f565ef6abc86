"""Loops whose shapes change from one turn to the next: turn by turn, each a few programs that are entered again.

How a turn goes on is decided by shapes, by where its variables lie, and by those small values that decide shapes: what
has come once comes again, since a sequence that grows has had all lengths below. So a turn that has been run by its
kernel is a few stages the next time: the words that a program had, and the call. Nothing is looked up. The condition is
decided by those variables alone that it reads: a turn that is new has hardly ever one that is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalledPartition, Delegate, PartitionInvokeContext
from gossamer.delegates.jit.rounds import Rounds
from gossamer.delegates.jit.steps import Step, SteppedKernel
from gossamer.errors import InvokeError
from gossamer.ops.op_def import Shape
from gossamer.programs.circuit import Circuit
from gossamer.programs.library import can_compile, kernel_library
from gossamer.programs.program import Program, advance_name
from gossamer.schema import WhileOptions
from gossamer.targets import Target

Array = NDArray[Any]

Places = tuple[tuple[Shape, int], ...]
"""Of arrays, their shapes and addresses."""

MOST_BEGUN = 64
"""So many places of variables are known before these are copied."""

FIRST_TRIED = 4
"""Stages that are made before circuits are thought of, and twice as many each time that there is none."""

FIRST_TURNS = 2
"""Behind so many it is looked whether a circuit begins there."""

MOST_KEPT = 32 << 20
"""Bytes of the words of stages that a loop keeps."""


class Stage:
    """A step that has a program, as it ran once: ``kept`` are the words of that then, ``words`` is where they were.

    ``asked``: the values that decide which stage follows, of ``following``. ``flag``: the condition, where one ends.
    ``after``: where a turn ends, the variables, and what comes before the body of the next one. ``begins``: before a
    body, when it was looked whether a circuit begins there, and whether one does.
    """

    __slots__ = ("after", "asked", "begins", "enter", "flag", "following", "kept", "step", "words")

    def __init__(self, step: Step | None, words: memoryview, kept: memoryview, enter: Callable[[], object]) -> None:
        self.step = step
        self.words = words
        self.kept = kept
        self.enter = enter
        self.asked: list[Array] = []
        self.following: dict[bytes, Stage] = {}
        self.flag: memoryview | None = None
        self.after: tuple[list[Array], Stage] | None = None
        self.begins = (0, False)


def _nothing() -> Stage:
    """What comes before the first one, or cannot be entered again."""
    return Stage(None, memoryview(b""), memoryview(b""), lambda: None)


class Turns:
    """A loop, turn by turn. ``made``: how many stages it has made. ``kept_bytes``: of the words of those that it
    keeps."""

    def __init__(
        self, ctx: PartitionInvokeContext, delegate: Delegate, target: Target, num_threads: int, loop: WhileOptions
    ) -> None:
        """``delegate``: whose kernels go step by step. Raises `InvokeError` for subgraphs that have what a partition
        alone cannot have, and `DelegateError`."""
        self._condition = ctx.routine(loop.cond_subgraph_index, delegate)
        self._body = ctx.routine(loop.body_subgraph_index, delegate)
        for routine in (self._condition, self._body):
            _kernel(routine).is_patient = True  # what has been used again has not been looked up
        self._num_threads = num_threads
        self._target = target
        self._stages: dict[tuple[bool, Places], Stage] = {}
        """What comes before the body, or the condition, for variables at these places."""
        self._begun: set[Places] = set()
        self._own: dict[tuple[Shape, ...], list[Array]] = {}
        self._last: dict[Program, memoryview] = {}
        """The words of each program when its kernel ran it last, by which that knows what it is bound to."""
        self._enters: dict[Program, Callable[[], object]] = {}
        """What runs each program again, whatever its words are."""
        self._is_astray = False
        """Whether programs have words that their kernels do not know of."""
        self._rounds = self._made_round()
        self._tried = FIRST_TRIED
        """So many stages are made before circuits are thought of again, if there never was one."""
        self.kept_bytes = 0
        self.made = 0

    def _made_round(self) -> Rounds | None:
        def circuit() -> Circuit:
            library = kernel_library(self._target)
            if library.missing([advance_name(self._target)]) and can_compile(self._target):
                from gossamer.codegen.kernels.advance import Advance
                from gossamer.codegen.library import ensure

                ensure([Advance(self._target.plain.name)], self._target)
            return Circuit(library, self._target, self._num_threads)

        try:
            return Rounds(self._condition, self._body, circuit)
        except ValueError:
            return None

    @property
    def taken(self) -> int:
        """How many turns circuits have taken."""
        return 0 if self._rounds is None else self._rounds.taken

    def run(self, ctx: PartitionInvokeContext, values: Sequence[Array]) -> list[Array]:
        """The variables after the last turn, where they lie until the next run. Raises `InvokeError`."""
        values, behind, is_over, known = list(values), 0, False, True
        try:
            while not is_over:
                went, turns = None, 0
                if self._rounds is not None:
                    # What comes first, or behind a circuit, comes again.
                    plans = self.made >= self._tried or (self.taken > 0 and (known or behind < FIRST_TURNS))
                    went = self._rounds.go(values, ctx.poll, self.made, plans=plans)
                    if went is None and plans:
                        self._tried = max(self._tried, 2 * self.made)
                if went is not None:
                    values, turns, is_over = went
                    behind += turns
                known = turns > 0
                if not turns and not is_over:
                    at = None
                    if not behind and went is None:
                        values, at = self._entered(values)
                    most = 1 if self.taken and behind < FIRST_TURNS else sys.maxsize
                    values, is_over = self._run(ctx, values, at or _places(values), most)
                    behind += 1
            return values
        finally:
            self._recall()

    def _run(
        self, ctx: PartitionInvokeContext, values: list[Array], places: Places, most: int
    ) -> tuple[list[Array], bool]:
        """The variables after so many turns, or fewer, and whether it was the last."""
        routine = self._condition
        stage, body = self._before(places)
        begun = stage
        turns, made = 0, self.made
        while True:
            asked = stage.asked
            following = stage.following.get(b"".join([one.tobytes() for one in asked]) if asked else b"")
            if following is not None:
                following.words[:] = following.kept
                self._is_astray = True
                if following.enter():  # a fault, which the kernel meets again
                    following = None
            if following is None:
                following = self._made(routine, begun, values)
            stage = following
            if stage.flag is not None:
                if not stage.flag[0]:
                    return values, True
                ctx.poll()
                stage = begun = body
                routine = self._body
            elif stage.after is not None:
                values, body = stage.after
                begun, routine = stage, self._condition
                turns += 1
                if turns >= most or (made < self.made and self.made >= self._tried) or self._begins(body, values):
                    return values, False

    def _begins(self, body: Stage, values: Sequence[Array]) -> bool:
        """Whether a circuit begins with these variables."""
        moment = 0 if self._rounds is None else self._rounds.moment
        if self._rounds is not None and body.begins[0] != moment:
            body.begins = moment, self._rounds.begins(values)
        return body.begins[1]

    def _entered(self, values: Sequence[Array]) -> tuple[list[Array], Places]:
        """What lies at the same places as in a run before, or is copied there, and these."""
        values = list(values)
        places = _places(values)
        if places not in self._begun and len(self._begun) >= MOST_BEGUN:
            own = self._own.setdefault(tuple([value.shape for value in values]), [])
            own[:] = own or [np.empty_like(value) for value in values]
            for place, value in zip(own, values, strict=True):
                place[...] = value
            values, places = list(own), _places(own)
        self._begun.add(places)
        return values, places

    def _before(self, places: Places) -> tuple[Stage, Stage]:
        """What comes before the condition and the body that are given the variables there, in whatever way these have
        become what they are."""
        condition, body = [
            self._stages.get(key) or self._stages.setdefault(key, _nothing())
            for key in ((False, tuple([places[at] for at in self._condition.reads])), (True, places))
        ]
        return condition, body

    def _recall(self) -> None:
        """Have programs be what their kernels know of."""
        if self._is_astray:
            for program, kept in self._last.items():
                program.arguments[:] = kept
            self._is_astray = False

    def _made(self, routine: CalledPartition, begun: Stage, values: Sequence[Array]) -> Stage:
        """Have a routine run by its kernel, and what runs it again put behind a stage; the last one of it."""
        self._recall()
        results = routine.call(values)
        stage = self._followed(routine, begun)
        if routine is self._body:
            before, body = self._before(_places(results))
            stage.after = results, body
            stage.asked, stage.following = before.asked, before.following
        elif results[0].size != 1:
            raise InvokeError(f"condition must give one element, got shape {list(results[0].shape)}")
        else:
            stage.flag = results[0].reshape(-1).view(np.uint8).data
        return stage

    def _followed(self, routine: CalledPartition, begun: Stage) -> Stage:
        if self.kept_bytes > MOST_KEPT:
            for known in (self._stages, self._begun, self._own, self._last, self._enters):
                known.clear()
            self.kept_bytes = 0
        stage = begun if self._stages else None
        for look, step in _kernel(routine).path():
            made = self._stage(step)
            if stage is not None and made is not None:
                made = _linked(stage, [routine.value(tensor) for tensor in look.asked], made)
            stage = made
        return _nothing() if stage is None or stage is begun else stage

    def _stage(self, step: Step) -> Stage | None:
        """What runs a step as it has just run; ``None`` if only its kernel can."""
        program = step.program
        if program is None:
            return None
        words = program.arguments
        kept = self._last[program] = memoryview(words.tobytes()).cast("q")
        enter = self._enters.get(program) or program.again(self._num_threads)
        if enter is None or step.variables or step.counted or step.keeps:
            return None
        self.kept_bytes += kept.nbytes
        self._enters[program] = enter
        self.made += 1
        return Stage(step, words, kept, enter)


def _kernel(routine: CalledPartition) -> SteppedKernel:
    return cast(SteppedKernel, routine.kernel)


def _linked(stage: Stage, asked: list[Array], following: Stage) -> Stage:
    """What follows a stage for these values: what has done so before, if it is the same."""
    if _places(asked) != _places(stage.asked):
        stage.asked[:] = asked
        stage.following.clear()
    key = b"".join([one.tobytes() for one in asked])
    known = stage.following.get(key)
    if known is None or known.step is not following.step or known.kept != following.kept:
        known = stage.following[key] = following
    return known


def _places(values: Sequence[Array]) -> Places:
    return tuple([(value.shape, value.__array_interface__["data"][0] if value.size else 0) for value in values])
