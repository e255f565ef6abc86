"""Programs: commands for kernels and the arguments they read, linked to memory and run by the walker."""

from __future__ import annotations

import os
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from itertools import accumulate
from typing import NamedTuple, Protocol, Union
from weakref import WeakSet

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import CompileError, InvokeError
from gossamer.phases import phase
from gossamer.programs import host
from gossamer.programs.entry import IS_POSSIBLE, entry
from gossamer.programs.team import CALL_SIZE, JUMP, Call, Jump, Walker, run_together, walker_at
from gossamer.programs.throttle import Throttle
from gossamer.records import record
from gossamer.targets import Target

ARENA, WEIGHTS, MODEL, SCRATCH = "arena", "weights", "model", "scratch"
"""Bases that most programs have. Inputs and outputs have names of their own."""

FAULT = "fault"
"""The base of a word that is 0 until a kernel meets an index out of range; it then reads nothing, and sets it."""

CONSTANTS = "constants"
"""The base of values that lie in no file: computed when operators are lowered, or when commands are made."""

COMPUTED = "computed"
"""The base of what kernels compute once, of constants that are others for other shapes, where ``weights`` are the
same."""

KERNELS, BLOCKS = "kernels", "blocks"
"""Bases inside a program: its kernels, by number, and its argument blocks."""

SLACK = 256
"""Bytes behind each memory of a program that kernels may read and never use."""

RELEASE_STEP = 4 << 20
"""Bytes of the model file that are packed before their pages are given back."""

_ALIGNMENT = 64
_COMMAND_SIZE = 24

NO_KERNEL = -1
"""In the place of a kernel's number: the command is a jump."""

TARGET = list(JUMP).index("target")
"""Which of a jump's words says where it goes."""

_CONVENTION = "_win64" if sys.platform == "win32" else ""

_FEW = 16
"""Up to so many words are written faster one by one than by NumPy."""


class Address(NamedTuple):
    """A place in an argument block that is known when the program is linked: bytes behind a base."""

    base: str
    offset: int = 0


# Read when this module is imported, so not the | of annotations.
Word = Union[int, Address]  # noqa: UP007


class IndexFault(InvokeError):
    """A kernel met an index out of range, or a divisor of 0. What the program has written is of no use."""

    def __init__(self) -> None:
        super().__init__("An index is out of range.")


class CommandTime(NamedTuple):
    """The time that a command took in a run, until every thread had done its share if a barrier follows: the sum of all
    the times that it ran. A jump has no kernel, but a time."""

    kernel: str
    ns: int
    runs: int = 1


class Kernels(Protocol):
    """Where kernels are found: a `KernelArchive` or a `KernelLibrary`."""

    def find(self, name: str) -> int | None: ...


@record(frozen=True, eq=False)
class ProgramPlan:
    """A program before it meets memory: plain values that can be kept and sent."""

    kernels: tuple[str, ...]
    words: NDArray[np.int64]
    """The argument blocks. A word that is an address holds its offset, one that is a kernel holds its number."""

    relocations: Mapping[str, NDArray[np.int64]]
    """By base, the numbers of the words to which its address is added."""

    packing: NDArray[np.int64]
    """The commands that run once, before the first run: kernel, block (its offset in bytes), barrier."""

    packed: NDArray[np.int64]
    """For each of them, what it reads of the model file and nobody reads again: offset, bytes."""

    computing: NDArray[np.int64]
    """The commands that fill ``computed``, once, after packing."""

    commands: NDArray[np.int64]
    """The commands of a run. A jump has -1 for a kernel, and its block the words of `JUMP`."""

    sizes: Mapping[str, int]
    """Bytes of each memory that the program owns; of ``scratch``, for one thread."""

    packs: int = 0
    """A checksum of what packing does. Plans with the same one fill ``weights`` alike from the same model."""

    @property
    def bases(self) -> tuple[str, ...]:
        """What must be bound before a run, beyond what the program owns."""
        return tuple(base for base in self.relocations if base not in (*self.sizes, KERNELS, BLOCKS))

    @property
    def has_loops(self) -> bool:
        """Whether a jump goes back, so that nobody can say how long a run takes."""
        jumps = self.commands[self.commands[:, 0] == NO_KERNEL, 1] // 8
        return bool(self.words[jumps + list(JUMP).index("cost")].any())


def readers_of(base: str) -> str:
    """What the table of words behind a base that is told in a run is called until it is there."""
    return f"readers of {base}"


class ProgramBuilder:
    """Collects argument blocks and commands, in order, and makes a plan of them."""

    def __init__(self) -> None:
        self._kernels: dict[str, int] = {}
        self._words: list[int] = []
        self._relocations: dict[str, list[int]] = {}
        self._placed: dict[tuple[tuple[int, ...], tuple[str, ...]], list[int]] = {}
        """Where blocks begin of which words at the same places are offsets behind the same bases."""
        self._packing: list[tuple[int, int, int]] = []
        self._packed: list[tuple[int, int]] = []
        self._computing: list[tuple[int, int, int]] = []
        self._commands: list[tuple[int, int, int]] = []
        self._aimed: dict[str, Address] = {}

    def kernel(self, name: str) -> Address:
        """A kernel, for an argument block whose kernel calls it."""
        return Address(KERNELS, self._kernels.setdefault(name, len(self._kernels)))

    def block(self, words: Iterable[Word]) -> Address:
        """A new argument block, or a table for one."""
        start = len(self._words)
        for at, word in enumerate(words, start):
            if isinstance(word, Address):
                base, word = word
                self._relocations.setdefault(base, []).append(at)
            self._words.append(word)
        return Address(BLOCKS, 8 * start)

    def placed(self, words: Sequence[int], at: tuple[int, ...], bases: tuple[str, ...]) -> int:
        """The same of words of which those ``at`` some places are offsets behind bases. Where it is, in bytes."""
        start = len(self._words)
        self._words += words
        key = at, bases
        if key in self._placed:
            self._placed[key].append(start)
        else:
            self._placed[key] = [start]
        return 8 * start

    def aimed(self, base: str, of: Address) -> Address:
        """Let a base be told in a run: ``of`` and some bytes more. A table for the command that tells it to words
        behind that base: their number, then of each its address, and what it is without these bytes."""
        self._aimed[base] = of
        return Address(readers_of(base))

    def tell_readers(self) -> None:
        """Write down who reads behind such bases, when all is there."""
        if self._aimed:
            self.relocations()
        for base, of in self._aimed.items():
            at, tables = (self._relocations.pop(name, []) for name in (base, readers_of(base)))
            words: list[Word] = [len(at)]
            for place in at:
                words += [Address(BLOCKS, 8 * place), Address(of.base, of.offset + self._words[place])]
            table = self.block(words) if tables else Address(BLOCKS)
            for place in tables:
                self._words[place] = table.offset
                self._relocations[BLOCKS].append(place)
            self._relocations[BLOCKS].sort()
        self._aimed.clear()

    def relocations(self) -> Mapping[str, list[int]]:
        """By base, the words that are offsets behind it."""
        if self._placed:
            for (at, bases), starts in self._placed.items():
                for place, base in zip(at, bases, strict=True):
                    self._relocations.setdefault(base, []).extend([start + place for start in starts])
            self._placed.clear()
            for places in self._relocations.values():
                places.sort()
        return self._relocations

    def command(self, kernel: str, block: Address, *, barrier: bool = True) -> None:
        """Run a kernel. Without a barrier, the next may begin in one thread while this still runs in another."""
        self._commands.append(self._command(kernel, block, barrier))

    def placed_command(self, kernel: str, block: int, barrier: int) -> None:
        """The same of a block by its place in bytes."""
        kernels = self._kernels
        self._commands.append((kernels.setdefault(kernel, len(kernels)), block, barrier))

    @property
    def kernels(self) -> Iterable[str]:
        """Those that are called, by number."""
        return self._kernels

    @property
    def next_command(self) -> int:
        """The number of the next command."""
        return len(self._commands)

    def jump(self, kind: Jump, flag: Address | None = None, *, target: int = -1, cost: int = 0) -> int:
        """Go on at another command, as the kind says.

        Without a ``target`` it goes where `land` is called with the number that this returns. ``flag``: a byte, for
        kinds that ask. All threads meet there, so what comes before needs no barrier; each turn of a loop needs one
        more. ``cost``: a guess how many ns a turn of the loop takes that goes back here, without loops inside.
        """
        asks, goes_back = kind >= Jump.IF, kind is Jump.BACK
        if asks != (flag is not None) or goes_back != (target >= 0) or goes_back != (cost > 0):
            raise CompileError(f"A jump of the kind {kind.name} has no such arguments.")
        if asks and self._commands and self._commands[-1][0] != NO_KERNEL:
            kernel, block, _ = self._commands[-1]
            self._commands[-1] = (kernel, block, 0)
        fault = Address(FAULT) if goes_back and FAULT in self.relocations() else 0
        words = self.block((int(kind), target, flag or 0, cost, fault))
        self._commands.append((NO_KERNEL, words.offset, 0))
        return len(self._commands) - 1

    def land(self, jump: int) -> None:
        """Let a jump that has no target go to the next command."""
        self.aim(jump, len(self._commands))

    def aim(self, jump: int, command: int) -> None:
        """Let a jump go to a command."""
        self._words[self._commands[jump][1] // 8 + TARGET] = command

    @phase("pack")
    def pack(
        self,
        kernel: str,
        block: Address,
        *,
        barrier: bool = False,
        reads: tuple[Address, int] | None = None,
        waits: bool = False,
    ) -> None:
        """Run a kernel once, before the first run: it reads the model file and the memories of the program.

        ``reads``: where in the model file it reads how many bytes, if nobody needs them afterwards. ``waits``: threads
        meet before it, for it reads what has been packed before.
        """
        place, size = reads or (Address(MODEL), 0)
        if place.base != MODEL:
            raise CompileError(f"What is packed is read in the model file, got an address in {place.base}.")
        if waits and self._packing:
            before, its_block, _ = self._packing[-1]
            self._packing[-1] = before, its_block, 1
        self._packing.append(self._command(kernel, block, barrier))
        self._packed.append((place.offset, size))

    def compute(self, kernel: str, block: Address) -> None:
        """Run a kernel once, after all that is packed: it reads constants, and what has been computed so."""
        self._computing.append(self._command(kernel, block, barrier=True))

    def mark(self) -> tuple[int, ...]:
        """How far it has come, for `reset`."""
        return tuple([len(one) for one in (*self._grown(), *self._relocations.values())])

    def _grown(self) -> tuple[Sized, ...]:
        return self._kernels, self._words, self._packing, self._packed, self._computing, self._commands

    def reset(self, mark: tuple[int, ...]) -> None:
        """Forget what has come since `mark` said this."""
        kernels, words, packing, packed, computing, commands, *relocations = mark
        while len(self._kernels) > kernels:
            self._kernels.popitem()
        del self._words[words:], self._packing[packing:], self._packed[packed:]
        del self._computing[computing:], self._commands[commands:]
        while len(self._relocations) > len(relocations):
            self._relocations.popitem()
        for places, size in zip(self._relocations.values(), relocations, strict=True):
            del places[size:]

    def plan(self, packs: int = 0, **sizes: int) -> ProgramPlan:
        """The plan, of a program that owns memories of these sizes in bytes; ``packs`` as there."""
        self.tell_readers()
        words = np.array(self._words, np.int64)
        relocations = {base: np.array(at, np.int64) for base, at in self.relocations().items()}
        packing, computing, commands = (
            np.array(table, np.int64).reshape(-1, 3) for table in (self._packing, self._computing, self._commands)
        )
        packed = np.array(self._packed, np.int64).reshape(-1, 2)
        kernels = tuple(self._kernels)
        return checked(ProgramPlan(kernels, words, relocations, packing, packed, computing, commands, sizes, packs))

    def _command(self, kernel: str, block: Address, barrier: bool) -> tuple[int, int, int]:
        if block.base != BLOCKS:
            raise CompileError(f"A command reads an argument block, got an address in {block.base}.")
        return self.kernel(kernel).offset, block.offset, int(barrier)


def checked(plan: ProgramPlan) -> ProgramPlan:
    """A plan whose arguments lie in the memories that it owns. Raises `CompileError` for another one."""
    known = {**plan.sizes, KERNELS: len(plan.kernels) - 1, BLOCKS: 8 * len(plan.words)}
    for base, at in plan.relocations.items():
        if base in known and at.size:
            offsets = plan.words[at]
            if not 0 <= offsets.min() <= offsets.max() <= known[base]:
                raise CompileError(f"An argument lies outside {base}, which has {known[base]} bytes.")
    scratch = plan.sizes.get(SCRATCH, 0)
    if scratch % _ALIGNMENT:
        raise CompileError(f"The scratch memory of a thread has {scratch} bytes, not a multiple of 64.")
    return plan


class Program:
    """A plan linked to kernels and memory. It holds its memories, and what it is bound to if that is `Memory`.

    Memories that the plan sizes are allocated, unless ``memory`` gives them: weights that another program has packed
    need no second ``pack``. What else the plan refers to must be bound: a model file, inputs, outputs.

    Threads may share a program: a call waits until the one before has ended. Different programs run at the same time,
    and may share kernels, weights and the model file.
    """

    def __init__(
        self, plan: ProgramPlan, kernels: Kernels, target: Target, memory: Mapping[str, host.Memory] | None = None
    ) -> None:
        self.plan = plan
        *addresses, self._walker_address = _find(kernels, *plan.kernels, walker_name(target))
        self._walker = walker_at(self._walker_address)
        self._kernels, self._target = kernels, target
        self._throttles: dict[int, Throttle] = {}
        self._lock = threading.Lock()
        _programs.add(self)
        self.memory: dict[str, host.Memory] = dict(memory or {})
        tables = np.concatenate((plan.packing, plan.computing, plan.commands))
        self._blocks = host.Memory(plan.words.nbytes + tables.nbytes + CALL_SIZE)
        self._packing = self._blocks.address + plan.words.nbytes
        self._computing = self._packing + plan.packing.nbytes
        self._commands = self._computing + plan.computing.nbytes
        # One word at a time and many at once.
        self._word = self._blocks.view().cast("q")
        everything = np.frombuffer(self._word, np.int64)
        self._words = everything[: plan.words.size]
        self._words[:] = plan.words
        numbers = np.array([*addresses, 0], np.int64)  # the last for jumps
        calls = plan.relocations.get(KERNELS)
        if calls is not None:
            self._words[calls] = numbers[plan.words[calls]]
        tables[:, 0] = numbers[tables[:, 0]]
        tables[:, 1] += self._blocks.address
        everything[plan.words.size : -CALL_SIZE // 8] = tables.reshape(-1)
        self._loops = plan.has_loops
        # The call of a thread that runs them alone; it has no team.
        count = len(plan.commands)
        self._alone = Call(self._commands + plan.commands.nbytes, 0, self._commands, count, 0, 1).pointer
        self._places: dict[str, int] = {}
        self._few = {
            base: list(zip(at.tolist(), plan.words[at].tolist(), strict=True))
            for base, at in plan.relocations.items()
            if len(at) <= _FEW
        }
        self._open: list[tuple[str, int]] | None = None
        """Which of the words that `write` is given are addresses, each with its base."""
        self._written: tuple[Sequence[int], Sequence[int]] = (), ()
        self._unbound = set(plan.bases)
        self._bind(BLOCKS, self._blocks.address)
        for base, size in plan.sizes.items():
            if base not in self.memory:
                self.memory[base] = host.Memory(size + SLACK)
        for base, place in self.memory.items():
            self._bind(base, place)
        self._fault = self.memory[FAULT].view().cast("q") if FAULT in self.memory else None
        self.is_faulty = False
        """Whether what `again` gave has met a fault."""

    @property
    def memories(self) -> list[host.Memory]:
        """What it holds: its commands and arguments, its own memories and those that it was given."""
        return [self._blocks, *self.memory.values()]

    @property
    def arguments(self) -> memoryview:
        """Its argument blocks: what they hold decides which sizes it is fitted to, and what it is bound to."""
        return self._word[: self.plan.words.size]

    def again_among(self, first: int) -> tuple[Program, NDArray[np.int64]]:
        """One that does the same in the same memory, with argument blocks of its own, for who runs its commands among
        others, from number ``first`` on; and these: addresses of kernels and of blocks, and barriers.

        It is bound to the same, and is not to be run by itself.
        """
        made = Program(self.plan, self._kernels, self._target, self.memory)
        for base, place in self._places.items():
            if base != BLOCKS:
                made._bind(base, place)
        commands = np.frombuffer(made._word, np.int64)[-3 * len(self.plan.commands) - CALL_SIZE // 8 : -CALL_SIZE // 8]
        commands = commands.reshape(-1, 3).copy()
        jumps = self.plan.commands[:, 0] == NO_KERNEL
        made._words[self.plan.commands[jumps, 1] // 8 + TARGET] += first
        commands[~jumps & (np.arange(len(commands)) == len(commands) - 1), 2] = 1
        return made, commands

    @property
    def fault_address(self) -> int | None:
        """Where the word lies that is not 0 after a fault, if there is one."""
        return self._places.get(FAULT)

    def arguments_at(self, word: int) -> int:
        """Where a word of its argument blocks lies."""
        return self._blocks.address + 8 * word

    def has_met_fault(self) -> bool:
        """Whether there is a fault, which is forgotten."""
        met = self._fault is not None and self._fault[0] != 0
        if self._fault is not None:
            self._fault[0] = 0
        return met

    def reserve(self, num_threads: int) -> None:
        """Have memory for so many threads."""
        with self._lock:
            self._prepare(num_threads, set())

    def bind(self, base: str, place: host.Memory | int) -> None:
        """Say where a base lies. The caller keeps what lies at an address."""
        with self._lock:
            self._bind(base, place)

    def write(self, at: Sequence[int], words: Sequence[int]) -> None:
        """Have other words at some places of the argument blocks, the same ones each time; of addresses, other
        offsets."""
        with self._lock:
            if self._open is None:
                bases = {place: base for base, all in self.plan.relocations.items() for place in all.tolist()}
                self._open = [(bases[place], number) for number, place in enumerate(at) if place in bases]
            all_words = self._word
            for place, word in zip(at, words):  # noqa: B905 (often, and as many)
                all_words[place] = word
            self._written = at, words
            for base in {base for base, _ in self._open}:
                if base in self._places:
                    self._move(base, self._places[base])

    def _move(self, base: str, place: int) -> None:
        """Add where a base lies to the offsets that have been written last."""
        at, words = self._written
        for of, number in self._open or ():
            if of == base:
                self._word[at[number]] = words[number] + place

    def pack(self, num_threads: int = 1, *, release: bool = False) -> None:
        """Do what is done once, before the first run, perhaps before inputs and outputs are bound; with no more threads
        than CPUs.

        ``release``: the model is a file that is mapped to be read, and what has been packed of it shall not stay in
        memory (`host.release_pages`).
        """
        packed, sizes = self.plan.packed.tolist(), self.plan.packed[:, 1].tolist()
        num_threads = min(num_threads, host.usable_cpus())
        with self._lock:
            self._prepare(num_threads, self._unbound & {MODEL})
            for step in _steps(sizes, RELEASE_STEP if release else sys.maxsize):
                run_together(num_threads, self._walker, self._packing + step.start * _COMMAND_SIZE, len(step))
                if release:
                    for offset, size in _joined(packed[step.start : step.stop]):
                        host.release_pages(self._places[MODEL] + offset, size)

    def compute(self, num_threads: int = 1) -> None:
        """Do what is computed once, after `pack`, with no more threads than CPUs; weights may be another program's."""
        if not len(self.plan.computing):
            return
        num_threads = min(num_threads, host.usable_cpus())
        with self._lock:
            self._prepare(num_threads, self._unbound & {MODEL})
            run_together(num_threads, self._walker, self._computing, len(self.plan.computing))

    def run(
        self,
        num_threads: int = 1,
        places: Mapping[str, host.Memory | int] | None = None,
        poll: Callable[[], object] | None = None,
    ) -> None:
        """Run all commands with so many threads, or fewer where these are quicker. Other Python threads run meanwhile.

        ``places`` are bound before, and stay for this run whatever others bind. ``poll`` is called every few
        milliseconds that a loop takes, and may raise: the run is not over then, and nothing that it has written is of
        use. Raises `IndexFault`, without a run if what `again` gave has met one.
        """
        with self._lock:
            if self.is_faulty or not self._loops:
                self.is_faulty = False
                self._check_indices()
            self._bind_all(places)
            self._prepare(self._throttle(num_threads).most, self._unbound)
            self._run(num_threads, poll)
            self._check_indices()

    def _run(self, num_threads: int, poll: Callable[[], object] | None = None) -> None:
        """Run what is bound, and do not look for a fault."""
        if num_threads == 1:
            if self._loops:
                self._run_loops(1, poll)
            else:
                self._walker(self._alone)
            return
        throttle = self._throttle(num_threads)
        start = time.perf_counter_ns()
        if self._loops:
            waited = self._run_loops(throttle.threads, poll)
        else:
            waited = run_together(throttle.threads, self._walker, self._commands, len(self.plan.commands)).waited
        throttle.ran(time.perf_counter_ns() - start, waited)

    def _throttle(self, num_threads: int) -> Throttle:
        throttle = self._throttles.get(num_threads)
        if throttle is None:
            throttle = self._throttles[num_threads] = Throttle(min(num_threads, host.usable_cpus()))
        return throttle

    def again(self, num_threads: int = 1, poll: Callable[[], object] | None = None) -> Callable[[], object] | None:
        """What does what `run` would do now, in the least time, for as long as nothing is bound anew and nobody else
        runs the program; ``None`` if something is not bound.

        It returns a truth if an index was out of range: `run`, which is to be called next, then raises `IndexFault`.
        """
        if self._unbound:
            return None
        code = self._kernels.find(enter_name(self._target)) if IS_POSSIBLE else None
        enter: Callable[[], object]
        is_entry = code is not None and num_threads == 1 and not self._loops
        if num_threads > 1 or self._loops:
            enter = partial(self._run, num_threads, poll)
        elif code is not None:
            enter = entry(code, self._walker_address, self._alone.value or 0)
        else:
            enter = partial(self._walker, self._alone)
        fault = self._fault
        if fault is None and is_entry:
            return enter  # which returns nothing

        def checked() -> bool:
            enter()
            self.is_faulty = fault is not None and fault[0] != 0
            return self.is_faulty

        return checked

    def profile(
        self,
        num_threads: int = 1,
        places: Mapping[str, host.Memory | int] | None = None,
        poll: Callable[[], object] | None = None,
    ) -> list[CommandTime]:
        """Run all commands with exactly so many threads, and say what each took: the times of the first thread.

        ``poll`` is that of `run`. Needs the walker's timed form among the kernels. Raises `IndexFault`.
        """
        with self._lock:
            self._bind_all(places)
            self._prepare(num_threads, self._unbound)
            (walker,) = _find(self._kernels, walker_name(self._target, timed=True))
            times = np.zeros(1 + 2 * len(self.plan.commands), np.int64)
            self._run_loops(num_threads, poll, walker_at(walker), times.ctypes.data)
            self._check_indices()
        kernels, clock = (*self.plan.kernels, ""), host.clock()  # the last for jumps
        return [
            CommandTime(kernels[number], clock.ns(ticks), runs)
            for number, (ticks, runs) in zip(self.plan.commands[:, 0], times[1:].reshape(-1, 2).tolist(), strict=True)
        ]

    def _run_loops(
        self, threads: int, poll: Callable[[], object] | None, walker: Walker | None = None, times: int = 0
    ) -> int:
        """Run until it is over, with a look around whenever the walker lets us; how long threads waited, in ns."""
        waited = first = 0
        alone = False
        if self._fault is not None:
            self._fault[0] = 0  # of a run that was given up
        while True:
            # A loop that one thread runs goes on so, until it joins the others.
            ran = run_together(
                1 if alone else threads,
                walker or self._walker,
                *(self._commands, len(self.plan.commands), times, first, alone),
            )
            waited, first, alone = waited + ran.waited, ran.next, ran.alone
            if not first:
                return waited
            if poll is not None:
                poll()

    def _check_indices(self) -> None:
        if self._fault is not None and self._fault[0]:
            self._fault[0] = 0
            raise IndexFault

    def _prepare(self, num_threads: int, unbound: set[str]) -> None:
        if num_threads < 1:
            raise InvokeError(f"A program runs with one thread or more, got {num_threads}.")
        if unbound:
            raise InvokeError(f"The program is not bound to {', '.join(sorted(unbound))}.")
        if SCRATCH in self.plan.sizes:
            scratch = self.plan.sizes[SCRATCH] * num_threads + SLACK
            if self.memory[SCRATCH].size < scratch:
                self._bind(SCRATCH, host.Memory(scratch))

    def _bind_all(self, places: Mapping[str, host.Memory | int] | None) -> None:
        if places is not None:
            for base, place in places.items():
                self._bind(base, place)

    def _bind(self, base: str, place: host.Memory | int) -> None:
        if isinstance(place, host.Memory):
            self.memory[base] = place
            place = place.address
        if self._places.get(base) == place:
            return
        few = self._few.get(base)
        if few is not None:
            for at, offset in few:
                self._word[at] = offset + place
        elif base in self.plan.relocations:
            at_all = self.plan.relocations[base]
            self._words[at_all] = self.plan.words[at_all] + place
        self._move(base, place)
        self._places[base] = place
        self._unbound.discard(base)


def walker_name(target: Target, *, timed: bool = False) -> str:
    """The kernel that runs programs on this system, or the one that `Program.profile` needs."""
    return f"walk{'_timed' * timed}__{target.plain.name}{_CONVENTION}"


def advance_name(target: Target) -> str:
    """The kernel that `gossamer.programs.circuit` has words advance with."""
    return f"advance__{target.plain.name}"


def enter_name(target: Target) -> str:
    """The kernel that `gossamer.programs.entry` makes a function of."""
    return f"enter__{target.plain.name}{_CONVENTION}"


def _find(kernels: Kernels, *names: str) -> list[int]:
    found = [kernels.find(name) for name in names]
    addresses = [address for address in found if address is not None]
    if len(addresses) < len(names):
        missing = [name for name, address in zip(names, found, strict=True) if address is None]
        raise CompileError(f"No archive has the kernels {', '.join(missing)}.")
    return addresses


def _steps(sizes: list[int], limit: int) -> Iterator[range]:
    """Successive numbers of ``sizes``, as few as together reach the limit."""
    totals = list(accumulate(sizes))
    start = before = 0
    while start < len(sizes):
        stop = min(bisect_left(totals, before + limit, start) + 1, len(sizes))
        yield range(start, stop)
        start, before = stop, totals[stop - 1]


def _joined(parts: Iterable[list[int]]) -> Iterator[tuple[int, int]]:
    """Parts of a file, offset and bytes, where those with less than a page between them are one."""
    gap = host.page_size()
    start = end = -gap
    for offset, size in sorted(part for part in parts if part[1]):
        if offset - end >= gap:
            if end > start:
                yield start, end - start
            start = end = offset
        end = max(end, offset + size)
    if end > start:
        yield start, end - start


_programs: WeakSet[Program] = WeakSet()


def _unlock_programs() -> None:
    """In a child process: whoever ran a program stayed behind."""
    for program in _programs:
        program._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_programs)
