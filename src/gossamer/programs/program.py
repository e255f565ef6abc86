"""Programs: commands for kernels and the arguments they read, linked to memory and run by the walker."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Union
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from gossamer.errors import CompileError, InvokeError
from gossamer.programs import host
from gossamer.programs.team import Walker, run_together, walker_at
from gossamer.targets import Target

ARENA, WEIGHTS, MODEL, SCRATCH = "arena", "weights", "model", "scratch"
"""Bases that most programs have. Inputs and outputs have names of their own."""

KERNELS, BLOCKS = "kernels", "blocks"
"""Bases inside a program: its kernels, by number, and its argument blocks."""

SLACK = 256
"""Bytes behind each memory of a program that kernels may read and never use."""

_ALIGNMENT = 64


class Address(NamedTuple):
    """A place in an argument block that is known when the program is linked: bytes behind a base."""

    base: str
    offset: int = 0


# Read when this module is imported, so not the | of annotations.
Word = Union[int, Address]  # noqa: UP007


class Kernels(Protocol):
    """Where kernels are found: a `KernelArchive` or a `KernelLibrary`."""

    def find(self, name: str) -> int | None: ...


@dataclass(frozen=True, eq=False)
class ProgramPlan:
    """A program before it meets memory: plain values that can be kept and sent."""

    kernels: tuple[str, ...]
    words: npt.NDArray[np.int64]
    """The argument blocks. A word that is an address holds its offset, one that is a kernel holds its number."""

    relocations: Mapping[str, npt.NDArray[np.int64]]
    """By base, the numbers of the words to which its address is added."""

    packing: npt.NDArray[np.int64]
    """The commands that run once, before the first run: kernel, block (its offset in bytes), barrier."""

    commands: npt.NDArray[np.int64]
    """The commands of a run."""

    sizes: Mapping[str, int]
    """Bytes of each memory that the program owns; of ``scratch``, for one thread."""

    @property
    def bases(self) -> tuple[str, ...]:
        """What must be bound before a run, beyond what the program owns."""
        return tuple(base for base in self.relocations if base not in (*self.sizes, KERNELS, BLOCKS))


class ProgramBuilder:
    """Collects argument blocks and commands, in order, and makes a plan of them."""

    def __init__(self) -> None:
        self._kernels: dict[str, int] = {}
        self._words: list[int] = []
        self._relocations: dict[str, list[int]] = {}
        self._packing: list[tuple[int, int, int]] = []
        self._commands: list[tuple[int, int, int]] = []

    def kernel(self, name: str) -> Address:
        """A kernel, for an argument block whose kernel calls it."""
        return Address(KERNELS, self._kernels.setdefault(name, len(self._kernels)))

    def block(self, words: Iterable[Word]) -> Address:
        """A new argument block, or a table for one."""
        start = len(self._words)
        for word in words:
            if isinstance(word, Address):
                self._relocations.setdefault(word.base, []).append(len(self._words))
                word = word.offset
            self._words.append(word)
        return Address(BLOCKS, 8 * start)

    def command(self, kernel: str, block: Address, *, barrier: bool = True) -> None:
        """Run a kernel. Without a barrier, the next may begin in one thread while this still runs in another."""
        self._commands.append(self._command(kernel, block, barrier))

    def pack(self, kernel: str, block: Address, *, barrier: bool = False) -> None:
        """Run a kernel once, before the first run: it reads the model file and the memories of the program."""
        self._packing.append(self._command(kernel, block, barrier))

    def plan(self, **sizes: int) -> ProgramPlan:
        """The plan, of a program that owns memories of these sizes in bytes."""
        words = np.array(self._words, np.int64)
        relocations = {base: np.array(at, np.int64) for base, at in self._relocations.items()}
        known = {**sizes, KERNELS: len(self._kernels) - 1, BLOCKS: 8 * len(words)}
        for base, at in relocations.items():
            if base in known and at.size and not 0 <= words[at].min() <= words[at].max() <= known[base]:
                raise CompileError(f"An argument lies outside {base}, which has {known[base]} bytes.")
        if sizes.get(SCRATCH, 0) % _ALIGNMENT:
            raise CompileError(f"The scratch memory of a thread has {sizes[SCRATCH]} bytes, not a multiple of 64.")
        packing, commands = (np.array(table, np.int64).reshape(-1, 3) for table in (self._packing, self._commands))
        return ProgramPlan(tuple(self._kernels), words, relocations, packing, commands, sizes)

    def _command(self, kernel: str, block: Address, barrier: bool) -> tuple[int, int, int]:
        if block.base != BLOCKS:
            raise CompileError(f"A command reads an argument block, got an address in {block.base}.")
        return self.kernel(kernel).offset, block.offset, int(barrier)


class Program:
    """A plan linked to kernels and memory. It holds its memories, and what it is bound to if that is `Memory`.

    Memories that the plan sizes are allocated, unless ``memory`` gives them: weights that another program has packed
    need no second ``pack``. What else the plan refers to must be bound: a model file, inputs, outputs.
    """

    def __init__(
        self, plan: ProgramPlan, kernels: Kernels, target: Target, memory: Mapping[str, host.Memory] | None = None
    ) -> None:
        self.plan = plan
        found = {name: kernels.find(name) for name in (*plan.kernels, walker_name(target))}
        missing = [name for name, address in found.items() if address is None]
        if missing:
            raise CompileError(f"No archive has the kernels {', '.join(missing)}.")
        *addresses, walker = (address for address in found.values() if address is not None)
        self._walker: Walker = walker_at(walker)
        self._lock = threading.Lock()
        _programs.add(self)
        self.memory: dict[str, host.Memory] = dict(memory or {})
        self._blocks = host.Memory(plan.words.nbytes)
        self._words = np.frombuffer(self._blocks.view(), np.int64, len(plan.words))
        self._words[:] = plan.words
        self._unbound = set(plan.bases)
        self._packing, self._commands = (self._linked(table, addresses) for table in (plan.packing, plan.commands))
        calls = plan.relocations.get(KERNELS)
        if calls is not None:
            self._words[calls] = np.array(addresses, np.int64)[plan.words[calls]]
        self._bind(BLOCKS, self._blocks.address)
        for base, size in plan.sizes.items():
            if base not in self.memory:
                self.memory[base] = host.Memory(size + SLACK)
        for base, place in self.memory.items():
            self._bind(base, place.address)

    def bind(self, base: str, place: host.Memory | int) -> None:
        """Say where a base lies. The caller keeps what lies at an address."""
        with self._lock:
            if isinstance(place, host.Memory):
                self.memory[base] = place
                place = place.address
            self._bind(base, place)

    def pack(self, num_threads: int = 1) -> None:
        """Do what is done once, before the first run, perhaps before inputs and outputs are bound."""
        self._run(self._packing, num_threads, self._unbound & {MODEL})

    def run(self, num_threads: int = 1) -> None:
        """Run all commands with so many threads. Other Python threads run meanwhile."""
        self._run(self._commands, num_threads, self._unbound)

    def _run(self, table: npt.NDArray[np.int64], num_threads: int, unbound: set[str]) -> None:
        if num_threads < 1:
            raise InvokeError(f"A program runs with one thread or more, got {num_threads}.")
        if unbound:
            raise InvokeError(f"The program is not bound to {', '.join(sorted(unbound))}.")
        with self._lock:
            scratch = self.plan.sizes.get(SCRATCH, 0) * num_threads + SLACK
            if SCRATCH in self.plan.sizes and self.memory[SCRATCH].size < scratch:
                self.memory[SCRATCH] = host.Memory(scratch)
                self._bind(SCRATCH, self.memory[SCRATCH].address)
            run_together(num_threads, self._walker, table.ctypes.data, len(table))

    def _bind(self, base: str, address: int) -> None:
        at = self.plan.relocations.get(base)
        if at is not None:
            self._words[at] = self.plan.words[at] + address
            self._unbound.discard(base)

    def _linked(self, table: npt.NDArray[np.int64], addresses: list[int]) -> npt.NDArray[np.int64]:
        linked: npt.NDArray[np.int64] = table.copy()
        if len(table):
            linked[:, 0] = np.array(addresses, np.int64)[table[:, 0]]
            linked[:, 1] += self._blocks.address
        return linked


def walker_name(target: Target) -> str:
    """The kernel that runs programs on this system."""
    return f"walk__{target.name}" + ("_win64" if sys.platform == "win32" else "")


_programs: WeakSet[Program] = WeakSet()


def _unlock_programs() -> None:
    """In a child process: whoever ran a program stayed behind."""
    for program in _programs:
        program._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_programs)
