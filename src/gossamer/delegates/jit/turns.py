"""Loops whose shapes change from one turn to the next: turn by turn, each a few programs that are entered again.

How a turn goes on is decided by shapes, by where its variables lie, and by those small values that decide shapes: what
has come once comes again, since a sequence that grows has had all lengths below. So a turn that has been run by its
kernel is a `Stage` the next time: the words that its program had, and the call. Nothing is looked up, and nothing asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalledPartition, PartitionInvokeContext
from gossamer.delegates.jit.delegate import JitDelegate
from gossamer.delegates.jit.late import LateDelegate, LateKernel, Look, Step
from gossamer.delegates.jit.lowered import TurnByTurn
from gossamer.errors import InvokeError
from gossamer.ops.op_def import Shape
from gossamer.programs.program import Program

Array = NDArray[Any]

Places = tuple[tuple[Shape, int], ...]
"""Of arrays, their shapes and addresses."""

MOST_ENTRIES = 64
"""So many places of variables are known before these are copied."""

MOST_KEPT = 32 << 20
"""Bytes of the words of stages that a loop keeps."""


class Stage:
    """A step that has a program, as it ran once: ``kept`` are the words of that then, ``words`` is where they were.

    ``asked``: the values that decide which stage follows, of ``following``. ``flag``: the condition, where one ends;
    ``values``: the variables, where a turn ends.
    """

    __slots__ = ("asked", "enter", "flag", "following", "kept", "step", "values", "words")

    def __init__(
        self, step: Step | None, words: memoryview, kept: memoryview, enter: Callable[[], object]
    ) -> None:
        self.step = step
        self.words = words
        self.kept = kept
        self.enter = enter
        self.asked: list[Array] = []
        self.following: dict[bytes, Stage] = {}
        self.flag: memoryview | None = None
        self.values: list[Array] | None = None


def _nothing() -> Stage:
    """What comes before the first one, or cannot be entered again."""
    return Stage(None, memoryview(b""), memoryview(b""), lambda: None)


class Turns:
    """A loop, turn by turn. ``made``: how many stages it has made."""

    def __init__(self, ctx: PartitionInvokeContext, jit: JitDelegate, loop: TurnByTurn) -> None:
        """Raises `InvokeError` for subgraphs that have what a partition alone cannot have."""
        delegate = LateDelegate(jit)
        self._condition = ctx.routine(loop.condition, delegate)
        self._body = ctx.routine(loop.body, delegate)
        self._num_threads = jit.num_threads
        self._entries: dict[Places, Stage] = {}
        self._own: dict[tuple[Shape, ...], list[Array]] = {}
        self._last: dict[Program, memoryview] = {}
        """The words of each program when its kernel ran it last, by which that knows what it is bound to."""
        self._size = 0
        self.made = 0

    def run(self, ctx: PartitionInvokeContext, values: Sequence[Array]) -> list[Array]:
        """The variables after the last turn, where they lie until the next run. Raises `InvokeError`."""
        values, stage = self._entered(values)
        routine, begun, is_astray = self._condition, stage, False
        while True:
            asked = stage.asked
            following = stage.following.get(b"".join([one.tobytes() for one in asked]) if asked else b"")
            if following is not None:
                following.words[:] = following.kept
                is_astray = True
                if following.enter():  # a fault, which the kernel meets again
                    following = None
            if following is None:
                following = self._made(routine, begun, values, is_astray)
                is_astray = False
            stage = following
            if stage.flag is not None:
                if not stage.flag[0]:
                    break
                ctx.poll()
                begun, routine = stage, self._body
            elif stage.values is not None:
                begun, routine, values = stage, self._condition, stage.values
        if is_astray:
            self._recall()
        return values

    def _entered(self, values: Sequence[Array]) -> tuple[list[Array], Stage]:
        """What lies at the same places as in a run before, or is copied there, and what comes before its first turn."""
        values = list(values)
        entry = self._entries.get(_places(values))
        if entry is None and len(self._entries) >= MOST_ENTRIES:
            own = self._own.setdefault(tuple([value.shape for value in values]), [])
            own[:] = own or [np.empty_like(value) for value in values]
            for place, value in zip(own, values, strict=True):
                place[...] = value
            values = list(own)
            entry = self._entries.get(_places(values))
        if entry is None:
            entry = self._entries[_places(values)] = _nothing()
        return values, entry

    def _recall(self) -> None:
        """Have programs be what their kernels know of."""
        for program, kept in self._last.items():
            program.arguments[:] = kept

    def _made(self, routine: CalledPartition, begun: Stage, values: Sequence[Array], is_astray: bool) -> Stage:
        """Have a routine run by its kernel, and what runs it again put behind a stage; the last one of it.
        ``is_astray``: programs have words that their kernels do not know of."""
        if is_astray:
            self._recall()
        results = routine.call(values)
        stage = self._followed(routine, begun)
        if routine is self._body:
            stage.values = results
        elif results[0].size != 1:
            raise InvokeError(f"condition must give one element, got shape {list(results[0].shape)}")
        else:
            stage.flag = results[0].reshape(-1).view(np.uint8).data
        return stage

    def _followed(self, routine: CalledPartition, begun: Stage) -> Stage:
        if self._size > MOST_KEPT:
            self._entries.clear()
            self._size = 0
        kernel, stage = routine.kernel, begun if self._entries else None
        for look, step in kernel.path() if isinstance(kernel, LateKernel) else ():
            made = self._stage(step)
            if stage is not None and made is not None:
                _link(stage, [routine.value(tensor) for tensor in look.asked], made)
            stage = made
        return _nothing() if stage is None or stage is begun else stage

    def _stage(self, step: Step) -> Stage | None:
        """What runs a step as it has just run; ``None`` if only its kernel can."""
        program = step.program
        if program is None:
            return None
        words = program.arguments
        kept = self._last[program] = memoryview(words.tobytes()).cast("q")
        enter = program.again(self._num_threads)
        if enter is None or step.variables or step.counted:
            return None
        self._size += kept.nbytes
        self.made += 1
        return Stage(step, words, kept, enter)


def _link(stage: Stage, asked: list[Array], following: Stage) -> None:
    if _places(asked) != _places(stage.asked):
        stage.asked = asked
        stage.following.clear()
    stage.following[b"".join([one.tobytes() for one in asked])] = following


def _places(values: Sequence[Array]) -> Places:
    return tuple([(value.shape, value.__array_interface__["data"][0]) for value in values])
