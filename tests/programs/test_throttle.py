from __future__ import annotations

from collections.abc import Callable

import pytest

from gossamer.programs.throttle import ENOUGH, LEAST_PATIENCE, MOST_PATIENCE, WINDOW, Throttle

Machine = Callable[[int], tuple[int, int]]
"""From the threads of a run to the time that it takes and the sum of what its threads waited, in ns."""

MS = 10**6


def quiet(threads: int) -> tuple[int, int]:
    return 12 * MS // threads, 0


def occupied(threads: int) -> tuple[int, int]:
    """One of two CPUs is taken by somebody else: a second thread does harm."""
    return (12 * MS, 0) if threads == 1 else (40 * MS, 34 * MS)


def lopsided(threads: int) -> tuple[int, int]:
    """Nobody interferes. Thread 0 does three quarters of the work, and the other waits for it."""
    return (12 * MS, 0) if threads == 1 else (9 * MS, 6 * MS)


def play(throttle: Throttle, machine: Machine, runs: int) -> list[int]:
    """The threads of so many runs."""
    threads = []
    for _ in range(runs):
        threads.append(throttle.threads)
        throttle.ran(*machine(throttle.threads))
    return threads


@pytest.mark.parametrize("most", [1, 2, 4])
def test_where_nobody_interferes_all_threads_run(most: int) -> None:
    assert play(Throttle(most), quiet, 1000) == [most] * 1000


def test_one_slow_run_in_four_says_nothing() -> None:
    throttle = Throttle(2)
    for _ in range(100):
        assert play(throttle, quiet, WINDOW - 1) == [2] * (WINDOW - 1)
        assert play(throttle, occupied, 1) == [2]


def test_fewer_threads_run_while_somebody_else_has_a_cpu() -> None:
    throttle = Throttle(2)
    # Runs stall; one thread is quicker; it is left alone for four times as long as it took to find out.
    assert play(throttle, occupied, ENOUGH) == [2] * ENOUGH
    assert play(throttle, occupied, WINDOW + LEAST_PATIENCE * WINDOW) == [1] * (WINDOW + LEAST_PATIENCE * WINDOW)
    # Two threads are tried. After two runs, they have taken longer than one thread took for four.
    assert play(throttle, occupied, 3) == [2, 2, 1]


def test_trials_that_fail_become_rare() -> None:
    throttle = Throttle(2)
    assert play(throttle, occupied, 1000).count(2) == 22
    # Two runs of 40 ms, then 16 times as long with runs of 12 ms.
    assert MOST_PATIENCE == 16
    cycle = 2 + -(-16 * 80 // (12 * WINDOW)) * WINDOW
    assert play(throttle, occupied, 10 * cycle).count(2) == 20


def test_all_threads_run_again_when_it_is_over() -> None:
    throttle = Throttle(2)
    play(throttle, occupied, 1000)
    threads = play(throttle, quiet, 1000)
    back = threads.index(2)
    assert back * 12 <= MOST_PATIENCE * 80
    assert threads[back:] == [2] * (1000 - back)


def test_a_program_whose_threads_wait_for_each_other_keeps_them() -> None:
    throttle = Throttle(2)
    assert play(throttle, lopsided, ENOUGH + WINDOW + 1) == [2] * ENOUGH + [1] * WINDOW + [2]
    threads = play(throttle, lopsided, 10_000)
    assert threads.count(1) < 500
    assert max(len(run) for run in "".join(map(str, threads)).split("2")) == WINDOW


def test_many_threads_become_fewer_by_a_quarter() -> None:
    def three_taken(threads: int) -> tuple[int, int]:
        return (120 * MS // threads, 0) if threads <= 5 else (100 * MS, 80 * MS)

    threads = play(Throttle(8), three_taken, 30)
    assert threads == [8] * ENOUGH + [6] * (WINDOW + ENOUGH) + [5] * (WINDOW + LEAST_PATIENCE * WINDOW) + [8, 5]


def test_a_slow_run_is_not_a_stalled_one() -> None:
    def slow(threads: int) -> tuple[int, int]:
        ns, _ = quiet(threads)
        return 5 * ns, ns // 4

    throttle = Throttle(2)
    play(throttle, quiet, 100)
    assert play(throttle, slow, 100) == [2] * 100
