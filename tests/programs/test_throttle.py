from __future__ import annotations

from collections.abc import Callable

import pytest

from gossamer.programs.throttle import ENOUGH, PATIENCE, TRIAL, WINDOW, Throttle

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


def rounded_up(runs: float) -> int:
    """Runs until a window ends."""
    return -(-int(runs) // WINDOW) * WINDOW


def test_some_slow_runs_in_a_row_say_nothing() -> None:
    throttle = Throttle(2)
    for _ in range(100):
        assert play(throttle, quiet, WINDOW - ENOUGH + 1) == [2] * (WINDOW - ENOUGH + 1)
        assert play(throttle, occupied, ENOUGH - 1) == [2] * (ENOUGH - 1)


def test_fewer_threads_run_while_somebody_else_has_a_cpu() -> None:
    throttle = Throttle(2)
    assert PATIENCE == 16
    # Runs stall; four with one thread take 48 ms, not 160. For 16 runs it is left at that.
    assert play(throttle, occupied, ENOUGH + TRIAL + 16) == [2] * ENOUGH + [1] * (TRIAL + 16)
    # Two threads are tried. After two runs, they have taken longer than one thread took for four: 80 ms, not 24. One
    # runs for 16 times the difference.
    rest = rounded_up(16 * 56 / 12 + 1)
    for _ in range(10):
        assert play(throttle, occupied, 2 + rest) == [2, 2] + [1] * rest


def test_all_threads_run_again_when_it_is_over() -> None:
    throttle = Throttle(2)
    play(throttle, occupied, 1000)
    threads = play(throttle, quiet, 1000)
    back = threads.index(2)
    assert 12 * back <= 16 * 56 + 12 * WINDOW
    assert threads[back:] == [2] * (1000 - back)


def test_a_disturbance_that_passes_costs_few_runs() -> None:
    throttle = Throttle(2)
    play(throttle, occupied, ENOUGH)
    threads = play(throttle, quiet, 100)
    assert threads == [1] * (TRIAL + PATIENCE) + [2] * (100 - TRIAL - PATIENCE)


def test_a_program_whose_threads_wait_for_each_other_keeps_them() -> None:
    throttle = Throttle(2)
    # One thread needs 48 ms for four runs, not 36. It is not tried again for 32, 64 ... times the difference.
    assert play(throttle, lopsided, ENOUGH) == [2] * ENOUGH
    for patience in (32, 64, 128, 256, 512, 512, 512):
        rest = -(-patience * 12 // (9 * ENOUGH)) * ENOUGH
        assert play(throttle, lopsided, TRIAL + rest) == [1] * TRIAL + [2] * rest
    # But it is known: if somebody interferes, one thread runs at once.
    assert play(throttle, lopsided, TRIAL) == [1] * TRIAL
    assert play(throttle, occupied, ENOUGH + 1) == [2] * ENOUGH + [1]


def test_unequal_shares_of_many_threads_are_not_stalls() -> None:
    def uneven(threads: int) -> tuple[int, int]:
        return 10 * MS, 10 * MS * (threads - 1) // threads

    assert play(Throttle(8), uneven, 100) == [8] * 100


def test_many_threads_become_fewer_by_a_quarter() -> None:
    def three_taken(threads: int) -> tuple[int, int]:
        return (120 * MS // threads, 0) if threads <= 5 else (100 * MS, (threads - 3) * 80 * MS)

    throttle = Throttle(8)
    # 8 and 6 take equally long, and fewer are preferred; then 5.
    assert play(throttle, three_taken, ENOUGH + TRIAL) == [8] * ENOUGH + [6] * TRIAL
    threads = play(throttle, three_taken, 1000)
    assert threads.count(5) > 900
    # All are tried from time to time.
    assert {6, 8} & set(threads[100:])


def test_a_slow_run_is_not_a_stalled_one() -> None:
    def slow(threads: int) -> tuple[int, int]:
        ns, _ = quiet(threads)
        return 5 * ns, ns // 4

    throttle = Throttle(2)
    play(throttle, quiet, 100)
    assert play(throttle, slow, 100) == [2] * 100
