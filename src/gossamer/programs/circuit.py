"""Commands of several programs one after the other, in turns: the walker goes round without Python.

A turn may have other sizes than the one before, as long as what differs are words of argument blocks that grow by the
same numbers: `Circuit.advance` adds these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import CompileError
from gossamer.programs.program import TARGET, Kernels, Program, advance_name, walker_name
from gossamer.programs.team import JUMP, Jump, run_together, walker_at
from gossamer.targets import Target

_COST = 100
"""Nanoseconds that a command is taken to last, for who decides when to look at the clock."""

Row = tuple[int, int, int]
"""An address, the bits that stay, and what is added: see `gossamer.codegen.kernels.advance`."""


class Advancing:
    """How words become others, for the kernel that does it, at an ``address``."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._table = np.array(rows, np.int64).reshape(-1, 3)
        self._block = np.array([self._table.ctypes.data, len(rows)], np.int64)
        self.address = self._block.ctypes.data


class Circuit:
    """Commands that are put together, then run by so many threads. Raises `CompileError` if a kernel is missing."""

    def __init__(self, kernels: Kernels, target: Target, num_threads: int) -> None:
        advance, walker = kernels.find(advance_name(target)), kernels.find(walker_name(target))
        if advance is None or walker is None:
            raise CompileError(f"No archive has {advance_name(target)}.")
        self._advance = advance
        self._walker = walker_at(walker)
        self._num_threads = num_threads
        self._rows: list[Sequence[int]] = []
        self._held: list[Advancing] = []
        self._jumps: list[tuple[NDArray[np.int64], int | None]] = []
        """Their words, and the commands where they go, if not to the end."""
        self._table = np.zeros((0, 3), np.int64)
        self._faulty: list[Program] = []
        """Those that may meet a fault."""

    @property
    def here(self) -> int:
        """The number of the next command."""
        return len(self._rows)

    def run(self, program: Program) -> Program:
        """Run a program as it is bound now. The one that does so, which may be bound anew. A fault in it ends all."""
        made, commands = program.again_among(self.here)
        made.reserve(self._num_threads)
        self._rows += commands.tolist()
        if made.fault_address is not None:
            self._faulty.append(made)
            self.jump(Jump.IF, made.fault_address)
        return made

    def advance(self) -> None:
        """Have words be others, which `set` or `go` say."""
        self._rows.append((self._advance, 0, 1))

    def set(self, command: int, advancing: Advancing) -> None:
        """Say so for the command of this number."""
        self._held.append(advancing)
        self._rows[command] = (self._advance, advancing.address, 1)

    def jump(self, kind: Jump, flag: int = 0) -> int:
        """Go to the end by a byte at an address, unless it lands elsewhere. The number of the jump."""
        cost = _COST * self.here if kind is Jump.BACK else 0
        named = {"kind": int(kind), "target": 0, "flag": flag, "cost": cost, "fault": 0}
        words = np.array([named[name] for name in JUMP], np.int64)
        self._jumps.append((words, None))
        self._rows.append((0, words.ctypes.data, 0))
        return len(self._jumps) - 1

    def land(self, jump: int, command: int) -> None:
        """Let a jump go to the command of this number."""
        self._jumps[jump] = self._jumps[jump][0], command

    def close(self) -> None:
        """Make commands of it all."""
        self._table = np.array(self._rows, np.int64)
        for words, command in self._jumps:
            words[TARGET] = self.here if command is None else command

    def go(self, first: Advancing, poll: Callable[[], object]) -> bool:
        """Run all, where the first command is one that advances words so; whether there was no fault. ``poll``: see
        `Program.run`."""
        self._table[0, 1] = first.address
        following, alone = 0, False
        table, count = self._table.ctypes.data, len(self._table)
        while True:
            ran = run_together(1 if alone else self._num_threads, self._walker, table, count, 0, following, alone)
            following, alone = ran.next, ran.alone
            if not following:
                break
            poll()
        return not any(program.has_met_fault() for program in self._faulty) if self._faulty else True
