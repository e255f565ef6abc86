"""How many threads a run gets: as many as it may have, and fewer while something else occupies CPUs."""

from __future__ import annotations

# The shares of threads are fixed, so a run takes as long as its slowest thread. Where another process has taken a CPU,
# the thread there gets half of it, in slices of milliseconds, and the others wait for it at every barrier. Fewer
# threads are quicker then.
#
# If one of n threads is held up for an nth of a run, n - 1 threads would have been as quick. The others wait for it
# meanwhile: together for (n - 1) / n of the run. The walker measures that. But threads may also wait because shares are
# unequal. So it is tried whether fewer are quicker; and later, whether more are again.

WINDOW, ENOUGH = 8, 6
"""Runs that are judged together, and how many of them must have stalled. A few stall on any machine, often in a row: a
fortieth of them beside other libraries, whose threads spin for a while."""

TRIAL = 4
"""Runs of a trial."""

PATIENCE, MOST_PATIENCE = 16, 512
"""How many times what a trial lost must pass before the next, so that trials cost no more than a sixteenth of the time,
or how many runs after one that gained. It doubles while fewer threads are tried in vain."""


class Throttle:
    """The threads of the runs of one program, of which all take equally long if nobody interferes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.threads = most
        """Threads for the next run."""

        self._settled = most
        """Other than ``threads`` while these are tried."""

        self._means: dict[int, float] = {}
        self._patience = PATIENCE
        self._rest = 0.0
        self._clear()

    def ran(self, ns: int, waited: int) -> None:
        """Learn from a run with ``threads`` threads: the time that it took, and the sum of what its threads waited."""
        self._runs += 1
        self._ns += ns
        self._rest -= ns
        self._stalled += self.threads * waited > (self.threads - 1) * ns
        if self.threads != self._settled:
            self._judge_trial()
        elif self._runs == WINDOW or self._stalled == ENOUGH:
            self._judge_window()

    def _judge_trial(self) -> None:
        before = self._means[self._settled]
        lost = self._ns > TRIAL * before
        if not lost and self._runs < TRIAL:
            return
        self._means[self.threads] = self._ns / self._runs
        if not lost:
            self._patience = PATIENCE
        elif self.threads < self._settled:
            self._patience = min(2 * self._patience, MOST_PATIENCE)
        self._rest = self._patience * (self._ns - self._runs * before if lost else self._ns / self._runs)
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
