"""Teams of threads that run programs together: started once, spinning briefly between runs, asleep otherwise."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Literal, NamedTuple
from weakref import WeakSet

from gossamer.programs import host

# The words that a team shares with the walker (codegen/kernels/walk.py), by their offsets in bytes. What is written at
# different times lies two cache lines apart, because the prefetcher takes pairs: the announcement of a run, the count
# of a barrier, its generation, the time that threads waited, what stays as it is during a run, why one that loops ends
# early, and what thread 0 alone counts: when it looks at the clock again, since when it runs, and where it goes on.
TICKET, COMMANDS, COUNT, FIRST = 0, 8, 16, 24
ARRIVED = 128
GENERATION = 256
WAITED = 384
YIELD, CLOCK, WHICH_CLOCK, TIMES, SLICE = 512, 520, 528, 536, 544
ENDED = 640
CREDIT, SINCE, NEXT, ALONE = 768, 776, 784, 792
TEAM_SIZE = 896

CALL: Mapping[str, str] = {
    "team": "ptr",
    "commands": "ptr",
    "count": "i64",
    "tid": "i64",
    "nt": "i64",
    "ticket": "i64",
    "patience": "i64",
    "first": "i64",
}
"""The words of a call of the walker, with their LLVM types."""

JUMP: Mapping[str, Literal["ptr", "i64"]] = {
    "kind": "i64",
    "target": "i64",
    "flag": "ptr",
    "cost": "i64",
    "fault": "ptr",
}
"""What the walker (codegen/kernels/walk.py) reads of a jump, with LLVM types; see `ProgramBuilder.jump`."""

PAUSED, FAULTY = 1, 2
"""Why a run that loops has ended early: its time is up, or a kernel has met a fault."""

SLICES = 100
"""Of a second: how long a run that loops goes on until Python may look around."""

CALL_SIZE = 128
"""Bytes from the call of a thread to that of the next. They lie behind the words of the team."""

PATIENCE = 400
"""Turns that a thread waits inside the walker for the next run before it sleeps: some hundred microseconds."""

IMPATIENCE = 16
"""The same where there are more threads than CPUs."""


class Jump(IntEnum):
    """Where a run goes on: elsewhere, always (``GO``), or by a flag (``IF`` it is not 0, ``UNLESS`` it is, or ``BACK``,
    which is an ``IF`` that may end the run early). ``PART``: thread 0 goes on as if it were alone, the others at the
    target. ``JOIN``: all are together again.
    """

    GO = 0
    PART = 1
    JOIN = 2
    IF = 3
    UNLESS = 4
    BACK = 5


Walker = Callable[[ctypes.c_void_p], int]


class Ran(NamedTuple):
    """Nanoseconds that threads stood at barriers, the command where the run goes on, 0 if it is over, and whether one
    thread goes on as if it were alone."""

    waited: int
    next: int
    alone: bool = False


_WALKER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


def walker_at(address: int) -> Walker:
    """The walker as a function, which lets other Python threads run."""
    return _WALKER(address)


class Call:
    """The words that a thread hands to the walker, at an address."""

    def __init__(self, address: int, *words: int) -> None:
        self.pointer = ctypes.c_void_p(address)
        self._words = (ctypes.c_int64 * len(CALL)).from_address(address)
        self.set(*words)

    def set(self, *words: int) -> None:
        """The words in order; those that are not given stay 0, or what they were."""
        self._words[: len(words)] = list(words)


class Team:
    """Thread 0, which is whoever calls ``run``, and ``size - 1`` others, which wait inside the walker or sleep.

    They end when nobody holds the team any more: an interrupt may come anywhere.
    """

    def __init__(self, size: int) -> None:
        self._memory = host.Memory(TEAM_SIZE + CALL_SIZE * size)
        self._calls = [Call(self._memory.address + TEAM_SIZE + CALL_SIZE * tid) for tid in range(size)]
        self._clock = clock = host.clock()
        self._words = words = (ctypes.c_int64 * (TEAM_SIZE // 8)).from_address(self._memory.address)
        words[YIELD // 8] = host.yield_address()
        words[CLOCK // 8], words[WHICH_CLOCK // 8] = clock.address, clock.which
        words[SLICE // 8] = clock.frequency // SLICES
        self._walker: Walker | None = None
        self._ticket = 0
        self.is_stopping = False
        # A thread that sleeps, or is about to, is in the set. Who takes it out must open its lock.
        self._asleep: set[int] = set()
        self._locks = [threading.Lock() for _ in range(size)]
        self._threads: list[threading.Thread] = []
        for lock in self._locks:
            lock.acquire()
        weakref.finalize(self, _open, self._locks).atexit = False
        for tid in range(1, size):
            arguments = (weakref.ref(self), self._locks[tid], tid)
            thread = threading.Thread(target=_work, args=arguments, name=f"gossamer-{tid}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no more: these will do
                break
            self._threads.append(thread)
        self.size = 1 + len(self._threads)
        _workers.update(self._threads)
        _teams.add(self)

    def run(
        self, walker: Walker, commands: int, count: int, times: int = 0, first: int = 0, alone: bool = False
    ) -> Ran:
        """Run the commands at an address, from number ``first`` on, all threads together. One run at a time.

        Waits of a few microseconds do not count. Where there are loops, the run may end before it is over; with
        ``alone``, which is for a team of one, also where others would join. ``times`` is an address, if wanted, of a
        word for the walker and two for each command: to the first it adds the ticks of the clock that the command took,
        in thread 0, to the other how often it ran.
        """
        if count == 0:
            return Ran(0, 0)  # it would have no barrier, and a thread might come for it when the next has begun
        self._words[TIMES // 8] = times
        if alone:
            self._words[ALONE // 8] = 1
        waited = self._words[WAITED // 8]
        self._walker = walker
        self._ticket += 1
        if self._asleep:
            for tid in tuple(self._asleep):
                self._wake(tid)
        call = self._calls[0]
        call.set(self._memory.address, commands, count, 0, self.size, self._ticket, 0, first)
        walker(call.pointer)
        words = self._words
        waited = self._clock.ns(words[WAITED // 8] - waited)
        if words[ENDED // 8] == words[SINCE // 8] == 0 and not alone:  # it never went back
            return Ran(waited, 0)
        following, goes_alone = words[NEXT // 8], words[ALONE // 8] != 0
        is_over = words[ENDED // 8] != PAUSED or following >= count
        words[SINCE // 8] = words[CREDIT // 8] = words[ENDED // 8] = words[ALONE // 8] = 0
        return Ran(waited, 0) if is_over else Ran(waited, following, goes_alone)

    def stop(self) -> None:
        """Let the threads end, at the latest when they lose patience."""
        self.is_stopping = True
        _open(self._locks)

    def join(self, timeout: float) -> None:
        """Wait until the threads have ended."""
        for thread in self._threads:
            thread.join(timeout)

    def _wake(self, tid: int) -> None:
        try:
            self._asleep.remove(tid)
        except KeyError:
            return  # somebody else does it
        self._locks[tid].release()

    def follow(self, tid: int, ticket: int) -> int | None:
        """For a thread of the team: run what has come after a ticket, and wait a while for more. The last ticket then;
        ``None`` if there was nothing, and it is to sleep until its lock is opened."""
        if ticket == self._ticket:
            # First into the set, then a look at the ticket. Who posts a ticket does it the other way round, so one of
            # the two sees the other.
            self._asleep.add(tid)
            if ticket != self._ticket or self.is_stopping:
                self._wake(tid)
            return None
        if self._walker is None:
            return ticket
        patience = PATIENCE if self.size <= host.usable_cpus() else IMPATIENCE
        call = self._calls[tid]
        call.set(self._memory.address, 0, 0, tid, self.size, ticket, patience)
        return self._walker(call.pointer)


def _work(of: weakref.ref[Team], lock: threading.Lock, tid: int) -> None:
    """What a thread does. Asleep, it does not hold the team."""
    ticket = 0
    while (team := of()) is not None and not team.is_stopping:
        following = team.follow(tid, ticket)
        team = None
        if following is None:
            lock.acquire()
        else:
            ticket = following


def _open(locks: Iterable[threading.Lock]) -> None:
    for lock in locks:
        with suppress(RuntimeError):  # it is open
            lock.release()


_idle: defaultdict[int, list[Team]] = defaultdict(list)
_teams: WeakSet[Team] = WeakSet()
_workers: WeakSet[threading.Thread] = WeakSet()


def run_together(
    num_threads: int, walker: Walker, commands: int, count: int, times: int = 0, first: int = 0, alone: bool = False
) -> Ran:
    """`Team.run` with a team of ``num_threads``, which nobody else has meanwhile."""
    idle = _idle[num_threads]
    team = None
    try:
        while team is None or team.is_stopping:
            team = idle.pop() if idle else Team(num_threads)
        ran = team.run(walker, commands, count, times, first, alone)
        idle.append(team)
        return ran
    except BaseException:  # an interrupt; what is left of the run is not to be met by the next
        if team is not None:
            team.stop()
        raise


def worker_threads() -> int:
    """How many threads of this process wait in teams. They hold no lock that anybody else wants."""
    return sum(thread.is_alive() for thread in _workers)


def _forget_teams() -> None:
    """In a child process: the threads stayed behind."""
    _idle.clear()
    _teams.clear()
    _workers.clear()


def _stop_teams() -> None:
    teams = tuple(_teams)
    for team in teams:
        team.stop()
    for team in teams:
        team.join(timeout=1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_teams)
atexit.register(_stop_teams)
