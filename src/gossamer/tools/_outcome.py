"""What a model says of one set of inputs: a run, a run for each window of a sound, or an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError, InvokeError, PrepareError, explain
from gossamer.inputs.port import Port
from gossamer.inputs.session import Seconds, Session
from gossamer.records import record
from gossamer.tools._answers import Answer, Classification, Question, answer
from gossamer.tools._clip import Clip
from gossamer.tools._command import Failure
from gossamer.tools._draw import draw
from gossamer.tools._inputs import Call, InputSet

if TYPE_CHECKING:
    from rich.console import Console

Array = NDArray[Any]


@record(frozen=True)
class Run:
    """A call of the model: its outputs, what it took and what the outputs say."""

    call: Call
    outputs: list[Array]
    took: Seconds
    answer: Answer


@record(frozen=True)
class Outcome:
    """The runs of a set of inputs, and what was heard in a sound of several windows; or why there are none.

    ``sources``: the arguments by the names of the inputs.
    """

    sources: Mapping[str, str]
    runs: Sequence[Run]
    clip: Clip | None = None
    error: str | None = None

    @property
    def took(self) -> Seconds:
        """Of all runs together."""
        return Seconds(sum(run.took.plan for run in self.runs), sum(run.took.inference for run in self.runs))

    def data(self, ports: Sequence[Port]) -> dict[str, Any]:
        """As plain values for JSON; ``windows`` has those of a sound that has several."""
        if self.error is not None:
            return {"inputs": dict(self.sources), "error": self.error}
        first = self.runs[0]
        sources = dict(self.sources)
        if len(self.runs) == 1:
            sources = dict(zip((port.name for port in ports), first.call.sources, strict=True))
        found = {"inputs": sources, **_times(self.took), "task": self._task}
        if self.clip is not None:
            found |= self.clip.data()
        elif len(self.runs) == 1:
            found |= first.answer.data()
        if len(self.runs) > 1:
            found["windows"] = [
                {"start_seconds": at.start, "end_seconds": at.end, **_times(run.took), **run.answer.data()}
                for run in self.runs
                if (at := run.call.window)
            ]
        elif self.clip is not None:
            found["windows"] = self.clip.windows()
        return found

    def print(self, out: Console, loaded: float | None) -> None:
        """For people. ``loaded``: what loading took, before the first run."""
        if self.error is not None:
            return
        first, several = self.runs[0], len(self.runs) > 1
        sources = self.sources.values() if several else first.call.sources
        times = {"load": loaded, "plan": self.took.plan, "inference": self.took.inference}
        told = ", ".join(f"{name} {1e3 * time:.1f} ms" for name, time in times.items() if time is not None)
        head = f" ({first.answer.head})" if first.answer.head else ""
        windows = f" of {len(self.runs)} windows" if several else ""
        name = ", ".join(source for source in sources if source != "zeros")
        out.print(f"{name}: {self._task}{head}{windows}; {told}", markup=False)
        if self.clip is not None:
            out.print(self.clip.show())
            return
        for run in self.runs:
            if several:
                out.print(", ".join(run.call.sources), markup=False)
            out.print(run.answer.show())

    @property
    def _task(self) -> str:
        return "classification" if self.clip is not None else self.runs[0].answer.task


def _times(took: Seconds) -> dict[str, float]:
    return {"plan_milliseconds": 1e3 * took.plan, "milliseconds": 1e3 * took.inference}


def run_set(session: Session, inputs: InputSet, drawing: str | None, task: str | None, question: Question) -> Outcome:
    """Run a set of inputs, and draw the answer to ``drawing``.

    What is wrong with an input is in the outcome. Raises `PrepareError` for a model that cannot run, and `Failure` for
    outputs that cannot be read or drawn as they should.
    """
    runs = []
    try:
        try:
            calls = inputs.read()
        except (ValueError, OSError, MemoryError, Failure) as error:
            raise InputError(error.message if isinstance(error, Failure) else explain(error)) from error
        session.reset()
        for call in calls:
            try:
                outputs = session.call(call.values)
            except (InvokeError, PrepareError) as error:
                if isinstance(error, PrepareError) and all(-1 not in port.signature for port in session.inputs):
                    raise  # no input has a say in it
                raise InputError(f"{call.sources[0]}: {error}") from error
            said = answer(session.outputs, outputs, question, call.picture, task)
            runs.append(Run(call, outputs, session.took, said))
            if drawing is not None:
                draw(said, call.picture, drawing)
    except InputError as error:
        return Outcome(inputs.sources, [], error=str(error))
    return Outcome(inputs.sources, runs, _clip(session.outputs, runs, question))


def _clip(ports: Sequence[Port], runs: Sequence[Run], question: Question) -> Clip | None:
    """What is heard in the windows of a sound, where the answers are classes; the rows [windows, classes] of a model
    that cuts a sound into windows itself are evenly spread."""
    spans = [(at.start, at.end) for run in runs if (at := run.call.window)]
    if not spans or not runs[0].outputs:
        return None
    said, scores = runs[0].answer, ports[0].dequantize(runs[0].outputs[0])
    if len(runs) > 1 and isinstance(said, Classification):
        all_scores = np.stack([ports[0].dequantize(run.outputs[0]).reshape(-1) for run in runs])
        return Clip(all_scores, spans, question.labels, said.quantity, question.top_k)
    if len(runs) == 1 and scores.ndim == 2 and len(scores) > 1 and scores.shape[1] == len(question.labels) > 1:
        edges = np.linspace(*spans[0], len(scores) + 1).tolist()
        within = bool((scores >= 0).all() and (scores <= 1).all())
        times = list(pairwise(edges))
        return Clip(scores, times, question.labels, "probability" if within else "score", question.top_k)
    return None
