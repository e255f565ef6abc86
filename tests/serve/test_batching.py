"""Requests on their way: each gets its own answer, once, whatever becomes of the others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from gossamer.model import Model
from gossamer.serve import batching
from gossamer.serve.batching import Pending, Scheduler
from gossamer.serve.model import Instance, ModelOptions, ServedModel, Signature
from gossamer.serve.protocol import (
    Abandoned,
    InferenceFailed,
    InferenceRequest,
    InvalidRequest,
    NotReady,
    Overloaded,
    TimedOut,
    TooLarge,
)
from tests.serve import models

PATIENCE = 60.0
"""Seconds after which something is taken for hanging."""

ENDLESS = np.array(2**31 - 1, np.int32)


class Gate:
    """Holds runs back until it is opened; ``runs``: how many rows each had."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()
        self.runs: list[int] = []
        self.failures: list[BaseException] = []

    def wait_for_a_run(self) -> None:
        assert self.entered.acquire(timeout=PATIENCE)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """What runs waits for."""
    gate = Gate()

    class Held(Instance):
        def run(self, signature: Signature, values: Sequence[Any], rows: int = 1) -> list[Any]:
            gate.runs.append(rows)
            gate.entered.release()
            assert gate.opened.wait(PATIENCE)
            if gate.failures:
                raise gate.failures.pop(0)
            return super().run(signature, values, rows)

    monkeypatch.setattr(batching, "Instance", Held)
    return gate


@contextmanager
def scheduler(model: Model, observe: Any = None, **options: Any) -> Iterator[Scheduler]:
    made = Scheduler(ServedModel(bytes(model), "m", "1", ModelOptions(**{"workers": 1, **options})), observe)
    try:
        yield made
    finally:
        made.abort()
        assert made.drain(PATIENCE)
    assert not any(thread.is_alive() for thread in made._threads)


def request(id: str = "", deadline: float | None = None, outputs: Any = None, **inputs: Any) -> InferenceRequest:
    return InferenceRequest("m", inputs, id=id, deadline=deadline, outputs=outputs)


def rows(*values: float) -> np.ndarray:
    return np.repeat(np.float32(values)[:, None], 4, axis=1)


def answer(pending: Pending) -> Any:
    return pending.result(PATIENCE).outputs["y"][:, 0].tolist()


def test_an_answer() -> None:
    with scheduler(models.double_net()) as made:
        response = made.submit(request("7", x=rows(1, 2))).result(PATIENCE)
        assert (response.model_name, response.model_version, response.id) == ("m", "1", "7")
        assert response.outputs["y"].tolist() == rows(2, 4).tolist()
        assert made.submit(request(x=rows(1), outputs=["y"])).result(PATIENCE).outputs.keys() == {"y"}
        assert made.submit(request(x=rows(1), outputs=[])).result(PATIENCE).outputs == {}


@pytest.mark.parametrize("max_batch_size", [1, 8])
def test_many_threads_get_each_their_own(max_batch_size: int) -> None:
    model = models.int8_net()
    values = np.random.default_rng(0).integers(-128, 128, (64, 16), np.int8)
    with scheduler(model, workers=3, max_batch_size=max_batch_size, batch_delay=0.001) as made:
        expected = [made.submit(request(x=value[None])).result(PATIENCE).outputs["y"].tolist() for value in values]

        def work(start: int) -> int:
            wrong = 0
            for turn in range(0, 40, 4):
                asked = [(start * 7 + turn + each) % 60 for each in range(4)]
                pending = [made.submit(request(x=values[at : at + 1 + at % 3])) for at in asked]
                for at, each in zip(asked, pending, strict=True):
                    got = each.result(PATIENCE).outputs["y"].tolist()
                    wrong += got != [row for one in expected[at : at + 1 + at % 3] for row in one]
            return wrong

        with ThreadPoolExecutor(16) as threads:
            assert sum(threads.map(work, range(16))) == 0
        assert made.queue_length == made.running == 0


def test_what_waits_runs_together(gate: Gate) -> None:
    with scheduler(models.double_net(), max_batch_size=4) as made:
        first = made.submit(request(x=rows(0)))
        gate.wait_for_a_run()
        waiting = [made.submit(request(x=rows(number))) for number in range(1, 8)]
        assert made.queue_length == 7
        gate.opened.set()
        assert answer(first) == [0]
        assert [answer(each) for each in waiting] == [[2 * number] for number in range(1, 8)]
        assert gate.runs == [1, 4, 2, 1]


def test_rows_of_a_request_stay_together(gate: Gate) -> None:
    with scheduler(models.double_net(), max_batch_size=4) as made:
        made.submit(request(x=rows(0)))
        gate.wait_for_a_run()
        sizes = [3, 1, 2, 3, 4, 1]
        waiting = [made.submit(request(x=rows(*range(size)))) for size in sizes]
        gate.opened.set()
        assert [answer(each) for each in waiting] == [[2.0 * row for row in range(size)] for size in sizes]
        assert gate.runs == [1, 4, 2, 3, 4, 1]
        assert answer(made.submit(request(x=rows(*range(9))))) == [2.0 * row for row in range(9)]


def test_other_sizes_run_apart(gate: Gate) -> None:
    with scheduler(models.double_net(shape=("n", "m")), max_batch_size=8) as made:
        made.submit(request(x=np.ones((1, 1), np.float32)))
        gate.wait_for_a_run()
        waiting = [made.submit(request(x=np.ones((1, size), np.float32))) for size in (2, 3, 2, 3, 2, 2)]
        gate.opened.set()
        shapes = [each.result(PATIENCE).outputs["y"].shape for each in waiting]
        assert shapes == [(1, size) for size in (2, 3, 2, 3, 2, 2)]
        assert gate.runs == [1, 4, 2]


def test_an_idle_worker_waits_for_more(gate: Gate) -> None:
    gate.opened.set()
    with scheduler(models.double_net(), max_batch_size=4, batch_delay=PATIENCE) as made:
        waiting = [made.submit(request(x=rows(number))) for number in range(4)]
        assert [answer(each) for each in waiting] == [[0], [2], [4], [6]]
        assert gate.runs == [4]


def test_the_first_waits_no_longer_than_the_delay(gate: Gate) -> None:
    gate.opened.set()
    with scheduler(models.double_net(), max_batch_size=4, batch_delay=0.01) as made:
        assert answer(made.submit(request(x=rows(3)))) == [6]
        assert gate.runs == [1]


@pytest.mark.parametrize("end", [Scheduler.hurry, Scheduler.drain])
def test_nobody_waits_for_more_at_the_end(gate: Gate, end: Callable[[Scheduler], object]) -> None:
    gate.opened.set()
    with scheduler(models.double_net(), max_batch_size=4, batch_delay=1e6) as made:
        pending = made.submit(request(x=rows(3)))
        end(made)
        assert answer(pending) == [6]


def test_a_full_queue(gate: Gate) -> None:
    with scheduler(models.double_net(), max_queue_size=2) as made:
        running = made.submit(request(x=rows(0)))
        gate.wait_for_a_run()
        waiting = [made.submit(request(x=rows(number))) for number in (1, 2)]
        with pytest.raises(Overloaded, match="model 'm' has 2 requests waiting, which is all it takes") as refused:
            made.submit(request(x=rows(3)))
        assert 0.1 <= refused.value.retry_after <= 60
        assert waiting[0].cancel()
        waiting[0] = made.submit(request(x=rows(4)))
        gate.opened.set()
        assert [answer(each) for each in (running, *waiting)] == [[0], [8], [4]]


def test_retry_after_is_as_long_as_what_waits_takes() -> None:
    with scheduler(models.double_net(), workers=2) as made:
        made._seconds, made._waiting = 3.0, 9
        assert made._retry_after() == 15.0
        made._waiting = 0


def test_a_deadline_that_has_passed() -> None:
    with scheduler(models.double_net()) as made, pytest.raises(TimedOut):
        made.submit(request(x=rows(1), deadline=time.monotonic() - 1))


def test_a_request_whose_time_is_up_while_it_waits_is_never_run(gate: Gate) -> None:
    with scheduler(models.double_net()) as made:
        running = made.submit(request(x=rows(0)))
        gate.wait_for_a_run()
        late = made.submit(request(x=rows(1), deadline=time.monotonic() + 0.02))
        patient = made.submit(request(x=rows(2), deadline=time.monotonic() + PATIENCE))
        with pytest.raises(TimedOut, match="the deadline passed while the request waited"):
            late.result(PATIENCE)
        assert made.queue_length == 1
        gate.opened.set()
        assert [answer(running), answer(patient)] == [[0], [4]]
        assert gate.runs == [1, 1]


def test_a_run_ends_when_its_time_is_up() -> None:
    with scheduler(models.count_net()) as made:
        late = made.submit(request(limit=ENDLESS, deadline=time.monotonic() + 0.05))
        with pytest.raises(TimedOut, match="the deadline passed while the request ran"):
            late.result(PATIENCE)
        # The only worker is free again.
        assert made.submit(request(limit=np.array(5, np.int32))).result(PATIENCE).outputs["counted"] == 5


def test_a_run_ends_when_nobody_waits_for_it() -> None:
    with scheduler(models.count_net()) as made:
        pending = made.submit(request(limit=ENDLESS))
        while not pending.running():
            time.sleep(0.001)
        assert not pending.cancel()
        with pytest.raises(Abandoned):
            pending.result(PATIENCE)
        assert made.submit(request(limit=np.array(5, np.int32))).result(PATIENCE).outputs["counted"] == 5


def test_one_who_goes_does_not_end_the_run_of_others(gate: Gate) -> None:
    with scheduler(models.double_net(), max_batch_size=4) as made:
        made.submit(request(x=rows(0)))
        gate.wait_for_a_run()
        late = made.submit(request(x=rows(1), deadline=time.monotonic() + PATIENCE))
        others = [made.submit(request(x=rows(number))) for number in (2, 3)]
        gone = made.submit(request(x=rows(4)))
        gate.opened.set()
        assert answer(others[0]) == [4]
        assert not gone.cancel()
        assert answer(late) == [2]
        assert answer(others[1]) == [6]


def test_a_task_that_is_cancelled_takes_its_request_with_it(gate: Gate) -> None:
    async def ask(made: Scheduler) -> None:
        running = asyncio.wrap_future(made.submit(request(x=rows(0))))
        await asyncio.to_thread(gate.wait_for_a_run)
        pending = made.submit(request(x=rows(1)))
        waiting = asyncio.wrap_future(pending)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while not pending.cancelled():
            await asyncio.sleep(0)
        assert made.queue_length == 0
        gate.opened.set()
        assert (await running).outputs["y"].tolist() == rows(0).tolist()

    with scheduler(models.double_net()) as made:
        asyncio.run(ask(made))
        assert gate.runs == [1]


def test_cancelled_while_it_waits(gate: Gate) -> None:
    with scheduler(models.double_net()) as made:
        running = made.submit(request(x=rows(0)))
        gate.wait_for_a_run()
        pending = made.submit(request(x=rows(1)))
        assert pending.cancel()
        assert not pending.cancel()
        with pytest.raises(FutureCancelled):
            pending.result(PATIENCE)
        gate.opened.set()
        assert answer(running) == [0]
        assert not running.cancel()
        assert gate.runs == [1]


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), SystemExit(3), MemoryError()])
def test_a_worker_outlives_everything(gate: Gate, error: BaseException) -> None:
    gate.failures.append(error)
    gate.opened.set()
    with scheduler(models.double_net()) as made:
        with pytest.raises(InferenceFailed, match=f"model 'm' failed: {type(error).__name__}"):
            made.submit(request(x=rows(1))).result(PATIENCE)
        assert answer(made.submit(request(x=rows(2)))) == [4]


def test_what_one_request_has_wrong_the_others_of_its_run_do_not_suffer(gate: Gate) -> None:
    with scheduler(models.lookup_net(), max_batch_size=4) as made:
        made.submit(request(i=np.int32([0])))
        gate.wait_for_a_run()
        waiting = [made.submit(request(i=np.int32([place]))) for place in (1, 9, 2, 0)]
        gate.opened.set()
        expected = [models.weights(3, 2)[place].tolist() for place in (1, 2, 0)]
        with pytest.raises(InvalidRequest, match="model 'm' refuses these inputs"):
            waiting.pop(1).result(PATIENCE)
        assert [each.result(PATIENCE).outputs["row"][0].tolist() for each in waiting] == expected
        assert gate.runs == [1, 4, 1, 1, 1, 1]


def test_drain_finishes_what_is_accepted_and_refuses_what_is_new(gate: Gate) -> None:
    with scheduler(models.double_net()) as made:
        accepted = [made.submit(request(x=rows(number))) for number in range(5)]
        gate.wait_for_a_run()
        assert not made.drain(timeout=0)
        with pytest.raises(NotReady, match="model 'm' version 1 is being unloaded"):
            made.submit(request(x=rows(9)))
        gate.opened.set()
        assert made.drain(PATIENCE)
        assert [answer(each) for each in accepted] == [[2 * number] for number in range(5)]
        assert not any(thread.is_alive() for thread in made._threads)


def test_abort_ends_what_is_accepted() -> None:
    with scheduler(models.count_net()) as made:
        accepted = [made.submit(request(limit=ENDLESS)) for _ in range(3)]
        made.abort()
        for pending in accepted:
            with pytest.raises(NotReady, match="model 'm' was stopped before the answer was there"):
                pending.result(PATIENCE)
        assert made.drain(PATIENCE)


def test_runs_are_observed(gate: Gate) -> None:
    seen: list[tuple[str, str, list[float], float]] = []
    with scheduler(models.double_net(), lambda *what: seen.append(what), max_batch_size=4) as made:
        made.submit(request(x=rows(0)))
        gate.wait_for_a_run()
        waiting = [made.submit(request(x=rows(number))) for number in range(4)]
        gate.opened.set()
        for each in waiting:
            answer(each)
        assert made.drain(PATIENCE)
    assert [(name, version, len(waited)) for name, version, waited, _ in seen] == [("m", "1", 1), ("m", "1", 4)]
    assert all(second >= 0 for _, _, waited, seconds in seen for second in (*waited, seconds))


def test_an_observer_that_fails_fails_alone() -> None:
    def observe(*_: Any) -> None:
        raise ZeroDivisionError

    with scheduler(models.double_net(), observe) as made:
        for number in range(3):
            assert answer(made.submit(request(x=rows(number)))) == [2 * number]


def test_nothing_that_is_done_is_kept() -> None:
    """Not requests, nor answers: a server that runs for months holds what is under way."""
    import gc
    import weakref

    with scheduler(models.double_net()) as made:
        pending = made.submit(request(x=rows(1), deadline=time.monotonic() + PATIENCE))
        answer(pending)
        gone = weakref.ref(pending)
        del pending
        while gone() is not None:  # the worker has told the answer, and is about to look for more
            gc.collect()


@pytest.mark.parametrize("sizes", [(1, 2**31 - 1), (2**31 - 1, 1), (2**12, 2**11)])
def test_memory_that_values_decide_has_a_limit(sizes: tuple[int, int]) -> None:
    """It is refused before anything is allocated; so much more would end the process."""
    model = ServedModel(bytes(models.grown_net()), "m", options=ModelOptions(workers=1, max_memory=1 << 24))
    scheduler = Scheduler(model)

    def ask(rows: int, columns: int) -> Any:
        inputs = {"rows": np.int32([rows]), "columns": np.int32([columns])}
        return scheduler.submit(InferenceRequest("m", inputs)).result(PATIENCE).outputs["sum"]

    try:
        for _ in range(2):
            np.testing.assert_allclose(ask(10, 10), 100 * np.sin(0.5), rtol=1e-5)
            with pytest.raises(TooLarge, match="bytes are wanted at a time, at most 16777216 are given"):
                ask(*sizes)
    finally:
        scheduler.drain()
