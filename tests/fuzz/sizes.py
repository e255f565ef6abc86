"""One model at many shapes: what it gives at each is what an interpreter gives that has known no other.

Interpreters of the model are resized, allocated, fed, invoked, tapped, reset and thrown away in any order, by a seed.
Beside each goes one that has no memory of shapes: no template, no plan of a file, nothing that is kept of an
allocation. Without variables that one is made for the call; with variables it is told the same, in step.
"""

from __future__ import annotations

import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import gossamer
from gossamer.delegates.jit.delegate import JitDelegate
from gossamer.delegates.jit.sizing import Sizing
from gossamer.delegates.jit.template import Templates
from gossamer.model.reader import read_model
from gossamer.runtime.allocations import Allocations
from gossamer.schema import BuiltinOperator
from tests.fuzz.driving import LOOP_SECONDS, LOOPS, NOISE, REFERENCE, _unlike
from tests.fuzz.guards import guards, model

Array = NDArray[Any]
Shape = tuple[int, ...]
Results = list[Array] | str
"""Outputs, or the name of an error."""

LARGEST_INPUT = 1 << 17
"""Elements of an input above which a shape is not tried."""

TAME = 1e6
"""Floats below which paths of other arithmetic are compared."""

SLOW = 1.5
"""Seconds of a call after which sizes are to be half as large."""

MANY = 150
"""Shapes, more than allocations are kept for."""

KEPT_CALLS = 24

OF_A_KIND = 3
"""Findings of a kind that are told of a model."""

STATE = (
    *(BuiltinOperator.VAR_HANDLE, BuiltinOperator.HASHTABLE, BuiltinOperator.CALL_ONCE, BuiltinOperator.SVDF),
    *(BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM, BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_RNN),
    *(BuiltinOperator.BIDIRECTIONAL_SEQUENCE_LSTM, BuiltinOperator.BIDIRECTIONAL_SEQUENCE_RNN),
    *(BuiltinOperator.RNN, BuiltinOperator.LSTM),
)
"""Operators that keep something, as the custom ones of signals do."""

WAYS = ("same", "by axis", "by size", "each", "one more")
"""In which sizes of inputs that are open may belong together: all are one; those of an axis; those that the file has
alike; none; or one axis changes."""

FIXED_WAYS = ("batch", "any", "given")
"""Of models that leave none open."""


@dataclass
class Report:
    """What came of a sequence. ``found``: kinds of differences, with details; ``calls``: what can be compared with
    other runtimes; then how often templates were filled in, programs fitted, allocations restored."""

    comparisons: int = 0
    refusals: int = 0
    filled: int = 0
    fitted: int = 0
    restored: int = 0
    found: list[tuple[str, str]] = field(default_factory=list)
    calls: list[tuple[list[Array], list[Array]]] = field(default_factory=list)

    def find(self, kind: str, detail: str, values: Sequence[Array]) -> None:
        """Note a difference, if there are not many like it."""
        if sum(known == kind for known, _ in self.found) < OF_A_KIND:
            self.found.append((kind, f"{detail} at {[list(value.shape) for value in values]}"))


def _nothing(*_: Any) -> None:
    return None


@contextmanager
def forgetful() -> Iterator[None]:
    """Whoever is prepared or runs meanwhile makes everything for the shapes that it has."""
    memories = (Templates, "known"), (Templates, "found"), (Allocations, "restored"), (Sizing, "fitting")
    with ExitStack() as stack:
        for owner, name in (*memories, (JitDelegate, "plan")):
            stack.enter_context(patch.object(owner, name, lambda *_, **__: None))
        yield


@contextmanager
def counted(report: Report) -> Iterator[None]:
    """Counts what comes of templates and of what is kept."""
    with ExitStack() as stack:
        for owner, name, of in (
            (Templates, "found", "filled"),
            (Sizing, "fitting", "fitted"),
            (Allocations, "restored", "restored"),
        ):
            function = getattr(owner, name)

            def count(*arguments: Any, function: Callable[..., Any] = function, of: str = of) -> Any:
                result = function(*arguments)
                setattr(report, of, getattr(report, of) + (result is not None))
                return result

            stack.enter_context(patch.object(owner, name, count))
        yield


def called(
    interpreter: Any,
    values: Sequence[Array],
    *,
    resize: bool = True,
    allocate: bool = True,
    times: int = 1,
    limit: float | None = None,
) -> list[Array]:
    """Resize to the values, allocate, set, invoke; copies of the outputs. ``limit``: seconds of the first invoke."""
    details = interpreter.get_input_details()
    if resize:
        for one, value in zip(details, values, strict=True):
            interpreter.resize_tensor_input(one["index"], value.shape)
    if allocate:
        interpreter.allocate_tensors()
    for turn in range(times):
        for one, value in zip(details, values, strict=True):
            interpreter.set_tensor(one["index"], value)
        interpreter.invoke(**({} if limit is None or turn else {"timeout": limit}))
    return [np.array(interpreter.get_tensor(one["index"])) for one in interpreter.get_output_details()]


def result_of(call: Callable[[], list[Array]]) -> tuple[Results, str]:
    """The outputs, or what was raised and its message."""
    try:
        with np.errstate(all="ignore"):
            return call(), ""
    except (ValueError, RuntimeError) as error:
        return type(error).__name__, str(error)


def apart(results: Results, others: Results) -> str:
    """In what two results differ bit by bit, NaNs being one; nothing if they do not."""
    if isinstance(results, str) or isinstance(others, str):
        told = [one if isinstance(one, str) else "ran" for one in (results, others)]
        return "" if told[0] == told[1] else f"{told[0]} and {told[1]}"
    for at, (x, y) in enumerate(zip(results, others, strict=True)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"output {at}: {x.dtype}{list(x.shape)} and {y.dtype}{list(y.shape)}"
        if x.dtype.kind in "OSU":
            if x.tolist() != y.tolist():
                return f"output {at}: strings"
            continue
        if x.tobytes() == y.tobytes():
            continue
        bytes_of = [value.reshape(-1, 1).view(np.uint8).reshape(x.size, -1) for value in (x, y)]
        differs = (bytes_of[0] != bytes_of[1]).any(axis=1).reshape(x.shape)
        with np.errstate(all="ignore"):
            differs &= ~((x != x) & (y != y))
        if differs.any():
            first = np.argwhere(differs)[0].tolist() if differs.ndim else []
            pair = f"{x[differs][0]} and {y[differs][0]}"
            return f"output {at} {x.dtype}{list(x.shape)}: {differs.sum()} of {x.size}, first at {first}: {pair}"
    return ""


def near(results: Sequence[Array], others: Sequence[Array]) -> str:
    """In what results of other arithmetic differ: integers not at all, floats to a tolerance."""
    for one, other in zip(results, others, strict=True):
        if one.size and (how := _unlike(*[("", str(v.dtype), v.shape, v) for v in (one, other)])):
            return f"{how} ({apart([one], [other])})"
    return ""


def is_tame(values: Sequence[Array]) -> bool:
    """Whether floats are such that all arithmetic agrees on them."""
    floats = [value for value in values if value.dtype.kind == "f"]
    return all(np.isfinite(value).all() and np.abs(value).max(initial=0) < TAME for value in floats)


def _left(interpreter: gossamer.Interpreter) -> int:
    """How many operators the reference kernels run."""
    return interpreter._engine.coverage().left.total()


class Player:
    """An interpreter, the shapes that it is allocated for, and where there are variables what goes beside it."""

    def __init__(self, content: Any, threads: int, *, has_twin: bool) -> None:
        self.interpreter = gossamer.Interpreter(model_content=content, num_threads=threads)
        self.shapes: list[Shape] | None = None
        self.twin: gossamer.Interpreter | None = None
        if has_twin:
            with forgetful():
                self.twin = gossamer.Interpreter(model_content=bytes(content))

    def both(self, call: Callable[[Any], Any]) -> None:
        """Call something with the interpreter, and with the twin, whatever comes of it."""
        for one in (self.interpreter, self.twin):
            if one is not None:
                result_of(lambda one=one: call(one) or [])  # type: ignore[misc]


class Sequencer:
    """A sequence of calls of a model. ``say`` is told each before it is made."""

    def __init__(
        self, content: bytes, seed: int, say: Callable[[str], None] = _nothing, *, share: float = 0.04
    ) -> None:
        """``share``: of the calls, those that the reference kernels make too."""
        self.report = Report()
        self._rng, self._draw = random.Random(seed), np.random.default_rng(seed)
        self._content, self._say, self._share = content, say, share
        self._is_guarded = self._rng.random() < 0.35
        stored = read_model(content)
        codes = [code.builtin_code for code in stored.operator_codes]
        names = [f"{getattr(one.builtin_code, 'name', '')}{one.custom_code}" for one in stored.operator_codes]
        self._limit = LOOP_SECONDS if any(code in LOOPS for code in codes) else None
        self._is_noisy = any(NOISE.search(name) for name in names)
        self._has_state = (
            any(code in STATE for code in codes)
            or any("Signal" in name for name in names)
            or any(tensor.is_variable for graph in stored.subgraphs for tensor in graph.tensors)
        )
        tensors = [tensor for graph in stored.subgraphs for tensor in graph.tensors]
        # Rounded as LiteRT's kernels do by default, which are not its reference kernels.
        self._share *= all(tensor.quantization is None or not tensor.quantization.scale.size for tensor in tensors)
        self._inputs = gossamer.Interpreter(model_content=content).get_input_details()
        self._given: list[Shape] = [tuple(one["shape"].tolist()) for one in self._inputs]
        self._open = [
            [axis for axis, size in enumerate(np.asarray(one["shape_signature"]).tolist()) if size < 0]
            for one in self._inputs
        ]
        self._way = ""
        self._good: list[tuple[str, list[Shape]]] = []
        self._largest = 300
        self._players: list[Player] = []

    def run(self, steps: int, seconds: float) -> Report:
        """So many steps, or until the time is up; then threads, or many shapes, now and then."""
        begin = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with guards(self._rng.randrange(1 << 30)) if self._is_guarded else nullcontext(), counted(self.report):
                for _ in range(steps):
                    if time.monotonic() > begin + seconds:
                        break
                    self._step()
                self._players.clear()
            if not self._has_state and not self._is_noisy and time.monotonic() < begin + seconds / 2:
                if self._rng.random() < 0.3:
                    self._threads()
                if any(self._open) and self._rng.random() < 0.3:
                    self._many()
        return self.report

    # What goes in

    def _size(self) -> int:
        rng, how = self._rng, self._rng.random()
        if how < 0.14:
            return int(how >= 0.04)
        return rng.randint(2, 9 if how < 0.5 else max(2, min(70, self._largest) if how < 0.85 else self._largest))

    def _shapes(self) -> list[Shape]:
        """Shapes for the inputs; some that have been right before."""
        rng = self._rng
        if self._good and rng.random() < 0.4:
            self._way, shapes = rng.choice(self._good)
            return shapes
        ways = WAYS if any(self._open) else FIXED_WAYS
        self._way = rng.choice(self._good)[0] if self._good and rng.random() < 0.8 else rng.choice(ways)
        for _ in range(20):
            shapes = self._shapes_in(self._way)
            if all(np.prod(shape, dtype=float) <= LARGEST_INPUT for shape in shapes):
                return shapes
        return self._given

    def _shapes_in(self, way: str) -> list[Shape]:
        rng, known, one = self._rng, dict[Any, int](), self._size()
        last = rng.choice(self._good)[1] if self._good else self._given
        changing = rng.choice(sorted({axis for axes in self._open for axis in axes}) or [0])
        shapes = []
        for number, shape in enumerate(self._given):
            sizes = list(last[number] if way == "one more" else shape)
            for axis in self._open[number]:
                if way == "same" or (way == "one more" and axis == changing):
                    sizes[axis] = one
                elif way == "each":
                    sizes[axis] = self._size()
                elif way != "one more":
                    key = axis if way == "by axis" else (axis, sizes[axis])
                    sizes[axis] = known[key] if key in known else known.setdefault(key, self._size())
            if sizes and way == "batch":
                sizes[0] = one
            elif sizes and way == "any" and rng.random() < 0.7:
                sizes[rng.randrange(len(sizes))] = self._size()
            shapes.append(tuple(sizes))
        return shapes

    def _values(self, shapes: Sequence[Shape]) -> list[Array]:
        is_wild = self._rng.random() < 0.08
        return [self._value(one, shape, is_wild) for one, shape in zip(self._inputs, shapes, strict=True)]

    def _value(self, details: Mapping[str, Any], shape: Shape, is_wild: bool) -> Array:
        rng, draw = self._rng, self._draw
        if details["dtype"] in (np.object_, np.bytes_):
            words = np.empty(shape, object)
            for at in np.ndindex(*shape):
                words[at] = rng.choice([b"a", b"", b"the end", "\u00e9t\u00e9".encode(), b"0"])
            return words
        dtype = np.dtype(details["dtype"])
        if dtype.kind == "b":
            return draw.random(shape) < rng.choice([0.0, 0.1, 0.5, 0.5, 0.9, 1.0])
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            is_level = np.asarray(details["quantization_parameters"]["scales"]).size > 0
            if is_level or (shape and rng.random() < 0.05):
                return draw.integers(limits.min, limits.max, shape, dtype, endpoint=True)
            if is_wild and shape:  # a single one may say how large a result is to be
                return draw.choice(np.array([limits.min, limits.max, 0, 1, 2, 3], dtype), shape)
            low, high = rng.choice([(0, 1), (0, 4), (0, 4), (0, 9), (1, 3), (0, 30), (0, 2)])
            low = -2 if limits.min < 0 and rng.random() < 0.1 else low
            return draw.integers(low, high, shape, dtype, endpoint=True)
        values = draw.standard_normal(shape)
        if dtype.kind == "c":
            return (values + 1j * draw.standard_normal(shape)).astype(dtype)
        how = rng.random()
        values = np.abs(values) if how < 0.1 else np.round(values * 3) if how < 0.2 else values * (how >= 0.25)
        if is_wild:
            wild = draw.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 1e38, 1e-42, -5e9]), shape)
            values = np.where(draw.random(shape) < 0.2, wild, values)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(dtype)

    # What is done

    def _step(self) -> None:
        rng, report = self._rng, self.report
        if not self._players or (len(self._players) < 3 and rng.random() < 0.08):
            content: Any = model(self._content) if self._is_guarded else self._content
            self._players.append(Player(content, 2 if rng.random() < 0.2 else 1, has_twin=self._has_state))
        player = rng.choice(self._players)
        if rng.random() < 0.03:
            self._players.remove(player)
            return
        self._disturb(player)
        stays = player.shapes is not None and rng.random() < 0.3
        shapes = player.shapes if stays and player.shapes is not None else self._shapes()
        values = self._values(shapes)
        how: dict[str, Any] = {"resize": not stays, "allocate": not stays or rng.random() < 0.2, "limit": self._limit}
        how["times"] = rng.choice([1, 1, 1, 2, 3])
        tap = self._tap(player.interpreter) if rng.random() < 0.06 and not self._is_guarded else None
        self._say(f"call at {[list(shape) for shape in shapes]}, {how}, {'tapped' * (tap is not None)}")
        begin = time.perf_counter()
        results, message = result_of(lambda: called(player.interpreter, values, **how))
        seconds = time.perf_counter() - begin
        if tap is not None:
            tap.remove()
        if seconds > SLOW:
            self._largest = max(4, self._largest // 2)
        if results == "DeadlineExceededError":
            self._players.remove(player)
            return
        self._say("the same with nothing known")
        if player.twin is not None:
            with forgetful():
                wanted, other = result_of(lambda: called(player.twin, values, **how))
        else:
            wanted, other = self._fresh(values)
        report.comparisons += 1
        if not self._is_noisy and wanted != "DeadlineExceededError" and (difference := apart(results, wanted)):
            report.find("apart", f"{difference}: {message or other}", values)
        if isinstance(results, str) or isinstance(wanted, str):
            report.refusals += 1
            player.shapes = None
            if player.twin is not None:  # each may have changed something before
                self._players.remove(player)
            return
        player.shapes = shapes
        if all(shapes != known for _, known in self._good):
            self._good.append((self._way, shapes))
        if player.twin is not None or self._is_noisy:
            return
        if _left(player.interpreter) > self._left_to_reference:
            report.find("left", "more operators run on the reference kernels than would", values)
        if len(report.calls) < KEPT_CALLS:
            report.calls.append((values, results))
        if rng.random() < self._share and seconds < SLOW / 5 and is_tame(values):
            self._say("the same on the reference kernels")
            others, said = self._fresh(values, experimental_op_resolver_type=REFERENCE)
            report.comparisons += 1
            if difference := others + said if isinstance(others, str) else near(results, others):
                report.find("reference", difference, values)

    def _disturb(self, player: Player) -> None:
        """Reset variables, or resize to what may be wrong, and perhaps go on from there, now and then."""
        rng, action = self._rng, self._rng.random()
        if action < 0.05:
            player.both(lambda one: one.reset_all_variables())
        elif action < 0.1 and self._inputs:
            index = rng.choice(self._inputs)["index"]
            shape = rng.choice([[-1], [1 << 30, 1 << 30], [3, 0, 5, 7, 1, 2, 9], [], [2, 3]])
            player.both(lambda one: one.resize_tensor_input(index, shape))
            if action < 0.08:
                player.both(lambda one: one.allocate_tensors())
            if action < 0.07:
                player.both(lambda one: one.invoke())
            player.shapes = None

    def _tap(self, interpreter: gossamer.Interpreter) -> Any:
        try:
            return interpreter.tap(self._rng.choice(interpreter.get_tensor_details())["index"], _nothing)
        except (ValueError, RuntimeError):
            return None

    def _fresh(self, values: Sequence[Array], **arguments: Any) -> tuple[Results, str]:
        """What a new interpreter makes of values."""
        with forgetful():
            made = gossamer.Interpreter(model_content=self._content, **arguments)
            found = result_of(lambda: called(made, values, limit=self._limit))
            self._left_to_reference = _left(made)
        return found

    def _threads(self) -> None:
        """Interpreters in threads of their own, at shapes that are known."""
        if not (calls := self.report.calls):
            return
        self._say("threads")
        wrong: list[tuple[str, list[Array]]] = []

        def work(seed: int) -> None:
            rng = random.Random(seed)
            interpreter = gossamer.Interpreter(model_content=self._content)
            for _ in range(12):
                values, wanted = rng.choice(calls)
                results, message = result_of(lambda values=values: called(interpreter, values))  # type: ignore[misc]
                if difference := apart(results, wanted):
                    wrong.append((f"{difference}: {message}", values))

        workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.report.comparisons += 36
        for detail, values in wrong:
            self.report.find("threads", detail, values)

    def _many(self) -> None:
        """More shapes than anything is kept for, and back to some of them."""
        self._say("many shapes")
        interpreter = gossamer.Interpreter(model_content=self._content)
        runs: list[tuple[list[Array], list[Array]]] = []
        for _ in range(MANY):
            values = self._values(self._shapes())
            results, _ = result_of(lambda values=values: called(interpreter, values, limit=self._limit))  # type: ignore[misc]
            if not isinstance(results, str):
                runs.append((values, results))
        for values, before in [*runs[:12], *self._rng.sample(runs, min(len(runs), 12))]:
            again, message = result_of(lambda values=values: called(interpreter, values))  # type: ignore[misc]
            self.report.comparisons += 1
            if difference := apart(again, before):
                self.report.find("many", f"{difference}: {message}", values)


def beside_litert(content: bytes, report: Report, say: Callable[[str], None] = _nothing) -> tuple[int, Report]:
    """Make the calls of a report in LiteRT: how many it could, and what differed. It may not survive them."""
    from ai_edge_litert.interpreter import Interpreter

    compared, interpreter, found = 0, None, Report()
    for values, results in report.calls:
        if any(value.size == 0 for value in values):
            continue
        say(f"LiteRT at {[list(value.shape) for value in values]}")
        try:
            interpreter = interpreter or Interpreter(model_content=content, num_threads=1)
            others = called(interpreter, values)
        except (ValueError, RuntimeError, TypeError):
            interpreter = None
            continue
        compared += 1
        if difference := near(results, others):
            found.find("litert" if is_tame(values) else "wild", difference, values)
    return compared, found
