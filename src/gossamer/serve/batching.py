"""Requests on their way through a model: a bounded queue, threads with instances, batches, deadlines.

A request waits in a `_Group` with those that may run together with it. A worker takes from the group whose first
request is oldest, among those that are due: as many as fit one run, or one whose first request has waited for
``batch_delay``. While all workers run, groups grow by themselves; no delay is needed for that.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import CancelledError
from gossamer.limits import memory_limit
from gossamer.log import logger
from gossamer.serve.model import Instance, ServedModel, Signature
from gossamer.serve.protocol import (
    Abandoned,
    InferenceFailed,
    InferenceRequest,
    InferenceResponse,
    NotReady,
    Overloaded,
    RequestError,
    TimedOut,
)
from gossamer.serve.rows import decide

Array = NDArray[Any]
Observer = Callable[[str, str, Sequence[float], float], None]
"""Called after each run with the model's name and version, the seconds that each of its requests has waited, and the
seconds that it took."""

_NEVER = float("inf")
_AGAIN = 0.05
"""Seconds after which a run that nobody wants is told again to end: it may not have begun the first time."""


class Pending(Future[InferenceResponse]):
    """An answer to come. `cancel` takes a request that waits out of the queue; one that runs goes on for those who
    share its run, and is ended if there are none."""

    request: InferenceRequest
    signature: Signature
    rows: int
    arrived: float
    deadline: float
    group: _Group | None
    run: _Run | None
    is_settled: bool

    def __init__(self, scheduler: Scheduler, request: InferenceRequest, signature: Signature, rows: int) -> None:
        super().__init__()
        self._scheduler = scheduler
        self.request, self.signature, self.rows = request, signature, rows
        self.deadline = _NEVER if request.deadline is None else request.deadline
        self.arrived = time.monotonic()
        self.group = self.run = None
        self.is_settled = False

    def cancel(self) -> bool:
        """Whether it had not begun to run, and will not."""
        if not self._scheduler.withdraw(self):
            return False
        super().cancel()
        self.set_running_or_notify_cancel()
        return True


class _Group:
    """Requests that wait and may run together: their first sizes are open, and the others are the same."""

    __slots__ = ("key", "most", "rows", "waiting")

    def __init__(self, key: Any, most: int) -> None:
        self.key = key
        self.most = most
        self.waiting: deque[Pending] = deque()
        self.rows = 0

    def take(self) -> list[Pending]:
        """The requests of the next run: as many as fit, of which the rows are a power of two if that can be. For these
        numbers of rows instances have interpreters ready."""
        total = count = best = 0
        for pending in self.waiting:
            total += pending.rows
            if total > self.most and count:
                break
            count += 1
            if total & (total - 1) == 0:
                best = count
        taken = [self.waiting.popleft() for _ in range(best or count)]
        self.rows -= sum([pending.rows for pending in taken])
        return taken


class _Run:
    """Requests that run together. ``wanted``: how many of them somebody still waits for."""

    __slots__ = ("instance", "pending", "wanted")

    def __init__(self, instance: Instance, pending: list[Pending]) -> None:
        self.instance = instance
        self.pending = pending
        self.wanted = len(pending)


class Scheduler:
    """Runs requests to one `ServedModel` on ``workers`` threads of its options. Closed by `drain`."""

    def __init__(self, model: ServedModel, observe: Observer | None = None) -> None:
        self.model = model
        self._options = model.options
        self._observe = observe
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        """There is something to run, or no more to come."""
        self._expiry = threading.Condition(self._lock)
        """Somebody may have to be told earlier that time is up."""
        self._idle = threading.Condition(self._lock)
        """A run has ended, and nothing waits."""
        self._groups: dict[Any, _Group] = {}
        self._waiting = 0
        self._sleeping = 0
        self._runs: set[_Run] = set()
        self._next_expiry = _NEVER
        self._watcher: threading.Thread | None = None
        self._seconds = 0.0
        """Of compute for one request, lately."""
        self._draining = self._ended = False
        self._batch_delay = self._options.batch_delay
        for signature in model.signatures.values():
            decide(model, signature)
        instances = [Instance(model) for _ in range(self._options.workers)]
        self._threads = [
            threading.Thread(target=self._serve, args=(instance,), name=f"{model.name}-{number}", daemon=True)
            for number, instance in enumerate(instances)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def queue_length(self) -> int:
        """Requests that wait."""
        return self._waiting

    @property
    def running(self) -> int:
        """Runs that are under way."""
        return len(self._runs)

    def submit(self, request: InferenceRequest) -> Pending:
        """Accept a request; its answer is the future's result, or a `RequestError` its exception.

        Raises what is wrong with it at once: `InvalidRequest`, `TooLarge`, `Overloaded`, `TimedOut` for a deadline that
        has passed, `NotReady` while it drains.
        """
        signature = self.model.check(request)
        rows, key = 1, None
        if signature.max_rows > 1:
            rows, key = self._rows(signature, request)
        pending = Pending(self, request, signature, rows)
        with self._lock:
            if self._draining:
                raise NotReady(f"model {self.model.name!r} version {self.model.version} is being unloaded")
            if self._waiting >= self._options.max_queue_size:
                raise Overloaded(
                    f"model {self.model.name!r} has {self._waiting} requests waiting, which is all it takes",
                    self._retry_after(),
                )
            if pending.deadline < _NEVER:
                if pending.deadline <= pending.arrived:
                    raise TimedOut("the deadline had passed when the request was here")
                self._watch_until(pending.deadline)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group(key, signature.max_rows if key is not None else 1)
            pending.group = group
            group.waiting.append(pending)
            group.rows += rows
            self._waiting += 1
            # Who sleeps is told of the first of a group, for which a time begins, and when there is enough for a run.
            if self._sleeping and (not self._batch_delay or len(group.waiting) == 1 or group.rows >= group.most):
                self._work.notify()
        return pending

    def hurry(self) -> None:
        """Let no request wait for others any more: those who asked want to leave."""
        with self._lock:
            self._batch_delay = 0.0
            self._work.notify_all()

    def drain(self, timeout: float | None = None) -> bool:
        """Refuse new requests, finish those that are accepted, and end the threads. ``False`` if that has not come to
        its end after so many seconds; it may be called again."""
        limit = _NEVER if timeout is None else time.monotonic() + timeout
        with self._lock:
            self._draining = True
            self._batch_delay = 0.0
            self._work.notify_all()
            while self._waiting or self._runs:
                left = limit - time.monotonic()
                if left <= 0:
                    return False
                self._idle.wait(None if left == _NEVER else left)
            self._ended = True
            self._work.notify_all()
            self._expiry.notify_all()
        for thread in (*self._threads, self._watcher):
            if thread is not None and thread is not threading.current_thread():
                thread.join()
        return True

    def abort(self) -> None:
        """Refuse new requests, and end those that are accepted: they fail with `NotReady`. `drain` waits for what
        cannot be ended."""
        with self._lock:
            self._draining = True
            waiting = [(pending, group) for group in self._groups.values() for pending in group.waiting]
            for pending, group in waiting:
                self._remove(pending, group)
            running = [(pending, run) for run in self._runs for pending in run.pending if not pending.is_settled]
            for pending, run in running:
                self._let_go(pending, run)
        for pending, _ in (*waiting, *running):
            _fail(pending, NotReady(f"model {self.model.name!r} was stopped before the answer was there"))

    def withdraw(self, pending: Pending) -> bool:
        """Nobody wants this request any more. Whether it was still waiting, and is not any more."""
        with self._lock:
            group, run = pending.group, pending.run
            if group is not None:
                self._remove(pending, group)
                return True
            if run is None or pending.is_settled:
                return False
            self._let_go(pending, run)
        _fail(pending, Abandoned("nobody waits for the answer any more"))
        return False

    # -- all of these with the lock

    def _watch_until(self, deadline: float) -> None:
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name=f"{self.model.name}-deadlines", daemon=True)
            self._watcher.start()
        if deadline < self._next_expiry:
            self._next_expiry = deadline
            self._expiry.notify()

    def _remove(self, pending: Pending, group: _Group) -> None:
        """Take a request out of its group."""
        pending.group = None
        group.waiting.remove(pending)
        group.rows -= pending.rows
        self._left(group, 1)

    def _left(self, group: _Group, count: int) -> None:
        self._waiting -= count
        if not group.waiting:
            del self._groups[group.key]
        if not self._waiting and self._draining:
            self._idle.notify_all()

    def _let_go(self, pending: Pending, run: _Run) -> None:
        """Have a run end if this request was the last that wanted it. Its future is the caller's now."""
        pending.is_settled = True
        run.wanted -= 1
        if not run.wanted:
            run.instance.cancel()
            self._watch_until(time.monotonic() + _AGAIN)

    def _retry_after(self) -> float:
        """Seconds until a place in the queue is free, as fast as it has been lately."""
        rounds = -(-(self._waiting + 1) // self._options.workers)
        return min(max(rounds * self._seconds, 0.1), 60.0)

    def _next(self) -> list[Pending] | None:
        """The requests of the next run, as soon as there are any; ``None`` when no more come."""
        while True:
            wait = None
            if self._groups:
                group = next(iter(self._groups.values())) if len(self._groups) == 1 else self._oldest()
                first = group.waiting[0]
                if self._batch_delay and group.rows < group.most:
                    wait = first.arrived + self._batch_delay - time.monotonic()
                if wait is None or wait <= 0:
                    taken = group.take()
                    self._left(group, len(taken))
                    if self._groups and self._sleeping:
                        self._work.notify()  # what is left is for somebody else
                    return taken
            elif self._ended:
                return None
            self._sleeping += 1
            try:
                self._work.wait(wait)
            finally:
                self._sleeping -= 1

    def _oldest(self) -> _Group:
        """The group whose turn it is: the oldest of those that fill a run or have waited, else the oldest."""
        groups = self._groups.values()
        due = time.monotonic() - self._batch_delay
        return min(
            groups,
            key=lambda group: (group.rows < group.most and group.waiting[0].arrived > due, group.waiting[0].arrived),
        )

    # -- threads

    def _serve(self, instance: Instance) -> None:
        """What a worker does until the end."""
        with memory_limit(self._options.max_memory):
            while self._serve_one(instance):
                self._renew(instance)

    def _renew(self, instance: Instance) -> None:
        try:
            instance.renew()
        except Exception as error:  # the next run makes what is missing, or says why not
            logger.error("A worker of model %s cannot be made as it was: %r", self.model.name, error)

    def _serve_one(self, instance: Instance) -> bool:
        """Run the next requests; ``False`` if no more come. No error of theirs gets out of here."""
        with self._lock:
            taken = self._next()
            if taken is None:
                return False
            now = time.monotonic()
            expired = [pending for pending in taken if pending.deadline <= now]
            run = _Run(instance, [pending for pending in taken if pending.deadline > now])
            for pending in taken:
                pending.group, pending.run = None, run
                pending.set_running_or_notify_cancel()
            for pending in expired:
                pending.is_settled = True
            self._runs.add(run)
        try:
            for pending in expired:
                _fail(pending, TimedOut("the deadline passed while the request waited"))
            if run.pending:
                self._run(run, now)
        except BaseException as error:  # what nobody has thought of: the requests are told, and the worker goes on
            logger.error("A worker of model %s failed: %r", self.model.name, error)
            self._settle(run, [InferenceFailed(f"model {self.model.name!r} failed: {error!r}")] * len(run.pending))
        finally:
            with self._lock:
                self._runs.discard(run)
                if self._draining and not self._waiting and not self._runs:
                    self._idle.notify_all()
        return True

    def _run(self, run: _Run, began: float) -> None:
        """Run requests together, or one by one if that fails; tell their futures."""
        answers: list[list[Array] | RequestError]
        taken = run.pending
        try:
            answers = self._answers(run.instance, taken)
        except (CancelledError, RequestError) as error:
            if len(taken) == 1 or not run.wanted:
                answers = [_told(error)] * len(taken)
            else:
                answers = [self._alone(run, pending) for pending in taken]
        seconds = time.monotonic() - began
        self._settle(run, answers)
        each = seconds / len(taken)
        self._seconds = each if not self._seconds else self._seconds + 0.1 * (each - self._seconds)
        if self._observe is not None:
            waited = [began - pending.arrived for pending in taken]
            try:
                self._observe(self.model.name, self.model.version, waited, seconds)
            except Exception as error:
                logger.error("What observes the runs of model %s failed: %r", self.model.name, error)

    def _alone(self, run: _Run, pending: Pending) -> list[Array] | RequestError:
        if pending.is_settled:
            return Abandoned("nobody waits for the answer any more")
        try:
            return self._answers(run.instance, [pending])[0]
        except (CancelledError, RequestError) as error:
            return _told(error)

    def _answers(self, instance: Instance, taken: Sequence[Pending]) -> list[list[Array] | RequestError]:
        """The outputs of each request. Raises what `Instance.run` raises."""
        first = taken[0]
        signature = first.signature
        if len(taken) == 1:
            inputs = first.request.inputs
            return [instance.run(signature, [inputs[name] for name in signature.names], first.rows)]
        values = [np.concatenate([pending.request.inputs[name] for pending in taken]) for name in signature.names]
        outputs = instance.run(signature, values, len(values[0]))
        answers: list[list[Array] | RequestError] = []
        start = 0
        for pending in taken:
            stop = start + pending.rows
            answers.append([output[start:stop] for output in outputs])
            start = stop
        return answers

    def _settle(self, run: _Run, answers: Sequence[list[Array] | RequestError]) -> None:
        """Give the answers to those who still wait for them."""
        taken = run.pending
        with self._lock:
            told = [not pending.is_settled for pending in taken]
            for pending in taken:
                pending.is_settled = True
            self._runs.discard(run)
        for pending, answer, is_told in zip(taken, answers, told, strict=True):
            if not is_told:
                continue
            if isinstance(answer, RequestError):
                _fail(pending, answer)
            else:
                pending.set_result(self._response(pending, answer))

    def _response(self, pending: Pending, outputs: list[Array]) -> InferenceResponse:
        request, positions = pending.request, pending.signature.positions
        wanted = positions if request.outputs is None else request.outputs
        named = {name: outputs[positions[name]] for name in wanted}
        return InferenceResponse(self.model.name, self.model.version, request.id, named)

    def _rows(self, signature: Signature, request: InferenceRequest) -> tuple[int, Any]:
        """How many rows a request has, and what those of others have to be like to run with them."""
        arrays = [request.inputs[name] for name in signature.names]
        rows = len(arrays[0])
        if not 0 < rows <= signature.max_rows or any(len(array) != rows for array in arrays):
            return 1, None  # it runs alone, and the model says what it thinks of it
        return rows, (signature.key, *[array.shape[1:] for array in arrays])

    def _watch(self) -> None:
        """Tell those whose time is up; end runs that nobody waits for any more."""
        while self._wait_for_expiry():
            self._expire()

    def _wait_for_expiry(self) -> bool:
        with self._lock:
            while not self._ended:
                left = self._next_expiry - time.monotonic()
                if left <= 0:
                    return True
                self._expiry.wait(None if self._next_expiry == _NEVER else left)
            return False

    def _expire(self) -> None:
        expired = []
        with self._lock:
            now, self._next_expiry = time.monotonic(), _NEVER
            for group in list(self._groups.values()):
                for pending in list(group.waiting):
                    if pending.deadline <= now:
                        self._remove(pending, group)
                        expired.append((pending, "waited"))
            for run in self._runs:
                for pending in run.pending:
                    if not pending.is_settled and pending.deadline <= now:
                        self._let_go(pending, run)
                        expired.append((pending, "ran"))
                if not run.wanted:
                    run.instance.cancel()
                    self._next_expiry = now + _AGAIN
            self._next_expiry = min([self._next_expiry, *self._deadlines()])
        for pending, did in expired:
            _fail(pending, TimedOut(f"the deadline passed while the request {did}"))

    def _deadlines(self) -> list[float]:
        waiting = [pending.deadline for group in self._groups.values() for pending in group.waiting]
        return waiting + [p.deadline for run in self._runs for p in run.pending if not p.is_settled]


def _fail(pending: Pending, error: RequestError) -> None:
    if not pending.running():
        pending.set_running_or_notify_cancel()
    pending.set_exception(error)


def _told(error: Exception) -> RequestError:
    return error if isinstance(error, RequestError) else Abandoned("nobody waits for the answer any more")
