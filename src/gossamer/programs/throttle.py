"""How many threads a run gets: as many as it may have, and fewer while something else occupies CPUs."""

from __future__ import annotations

# The shares of threads are fixed, so a run takes as long as its slowest thread. Where another process has taken a CPU,
# the thread there gets half of it, in slices of milliseconds, and the others wait for it at every barrier. Fewer
# threads are quicker then. The walker adds up the time that threads wait at barriers; whether fewer are quicker is
# tried; and now and then it is tried whether more are again.

WINDOW, ENOUGH = 4, 2
"""Runs that are judged together, and how many of them must have stalled: one says nothing. A run has stalled if its
threads have waited for half of its time: one of two might as well not have been there."""

LEAST_PATIENCE, MOST_PATIENCE = 4, 16
"""How many times as long as a trial took nothing else is tried; twice as many after each that failed."""


class Throttle:
    """The threads of the runs of one program, of which all take equally long if nobody interferes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.threads = most
        """Threads for the next run."""

        self._settled = most
        """Other than ``threads`` while these are tried."""

        self._means: dict[int, float] = {}
        self._patience = LEAST_PATIENCE
        self._rest = 0
        self._clear()

    def ran(self, ns: int, waited: int) -> None:
        """Learn from a run with ``threads`` threads: the time that it took, and the sum of what its threads waited."""
        self._runs += 1
        self._ns += ns
        self._rest -= ns
        self._stalled += 2 * waited > ns
        if self.threads != self._settled:
            self._judge_trial()
        elif self._runs == WINDOW or self._stalled == ENOUGH:
            self._judge_window()

    def _judge_trial(self) -> None:
        lost = self._ns > WINDOW * self._means[self._settled]
        if not lost and self._runs < WINDOW:
            return
        self._means[self.threads] = self._ns / self._runs
        self._patience = min(2 * self._patience, MOST_PATIENCE) if lost else max(self._patience // 2, LEAST_PATIENCE)
        self._rest = self._patience * self._ns
        if lost:
            self.threads = self._settled
        self._settled = self.threads
        self._clear()

    def _judge_window(self) -> None:
        mean = self._means[self.threads] = self._ns / self._runs
        fewer = self.threads - max(1, self.threads // 4)
        if self._stalled == ENOUGH and fewer and (self._rest <= 0 or self._means.get(fewer, 0) < mean):
            self.threads = fewer
        elif self._rest <= 0:
            self.threads = self.most
        self._clear()

    def _clear(self) -> None:
        self._runs = self._ns = self._stalled = 0
