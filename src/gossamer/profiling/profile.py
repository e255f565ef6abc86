"""`profile`: what an interpreter does, node by node and kernel by kernel, and how long it takes."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from gossamer.delegates.jit.delegate import JitKernel
from gossamer.errors import CompileError
from gossamer.profiling.programs import running
from gossamer.profiling.roofline import Roofline, measured
from gossamer.profiling.spans import Span, placed
from gossamer.profiling.tables import Order, Table, as_html, as_rich, table_of
from gossamer.profiling.times import KernelTime, OperatorTime
from gossamer.profiling.trace import Event, write
from gossamer.runtime.interpreter import Interpreter

if TYPE_CHECKING:
    from gossamer.codegen.report import Command
    from gossamer.programs.program import CommandTime, Program
    from gossamer.runtime.graph import RunningGraph
    from gossamer.runtime.node import Node


class Profile:
    """What calls of an interpreter do, and how long that takes. See `profile`.

    It may be entered again: the calls add up. An interpreter has one profile at a time.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        if not isinstance(interpreter, Interpreter):
            raise TypeError(f"profile takes a gossamer.Interpreter, got {type(interpreter).__name__}")
        self.calls: list[Span] = []
        """Each call that was seen, with what happened in it."""
        self.failure: str | None = None
        """Why programs are not looked into, if so: no archive has the kernel for it, and there is no compiler."""
        self._interpreter = interpreter
        self._open: list[Span] = []
        self._observed: dict[JitKernel, None] = {}
        self._roofline: list[Roofline | None] = []
        self._described: dict[Program, list[Command]] = {}
        self._members: dict[int, tuple[int, ...]] = {}
        self._gathered: tuple[int, list[OperatorTime], list[KernelTime]] = (0, [], [])

    def __enter__(self) -> Profile:
        """Begin. Raises `RuntimeError` if the interpreter has a profile already."""
        engine = self._interpreter._engine
        if engine.recorder is not None:
            raise RuntimeError("this interpreter is being profiled already")
        self._open.clear()
        engine.recorder = self
        for part in running(self._interpreter):
            self._observe(part.kernel)
        return self

    def __exit__(self, *_: object) -> None:
        """End: nothing is left in the way of the next call."""
        self._interpreter._engine.recorder = None
        for kernel in self._observed:
            kernel.observe(None)
        self._observed.clear()

    def __repr__(self) -> str:
        """``<Profile of 50 calls: 1.234 ms each, 65 operators, 70 kernels>``."""
        if not self.calls:
            return "<Profile of no call>"
        count = f"{len(self.calls)} call{'s' * (len(self.calls) != 1)}"
        kinds = f"{len(self.operators)} operators, {len(self.kernels)} kernels"
        return f"<Profile of {count}: {self.invoke_us / 1e3:.3f} ms each, {kinds}>"

    # What an interpreter tells.

    def begin(self, graph: RunningGraph, node: Node | None) -> None:
        """See `gossamer.runtime.graph.Recorder`."""
        span = Span(graph.index, node)
        if node is not None and node.delegate is not None:
            span.kernel = self._kernel_of(span)
            if span.kernel is not None:
                self._observe(span.kernel)  # one that is new, for other shapes
        (self._open[-1].children if self._open else self.calls).append(span)
        self._open.append(span)
        span.begin = time.perf_counter_ns()

    def end(self) -> None:
        """See `gossamer.runtime.graph.Recorder`."""
        now = time.perf_counter_ns()
        self._open.pop().end = now

    def _kernel_of(self, span: Span) -> JitKernel | None:
        for part in self._interpreter._subgraphs[span.subgraph].delegation.partitions:
            if part.node is span.node and isinstance(part.kernel, JitKernel):
                return part.kernel
        return None

    def _observe(self, kernel: JitKernel) -> None:
        if kernel not in self._observed and self.failure is None:
            try:
                kernel.observe(self._took)
            except CompileError as error:
                self.failure = str(error)
            else:
                self._observed[kernel] = None

    def _took(self, times: list[CommandTime]) -> None:
        span = self._open[-1]
        if span.kernel is not None:
            span.took(times, span.kernel.program, time.perf_counter_ns())

    # What comes of it.

    @property
    def invoke_us(self) -> float:
        """Microseconds that a call takes, the clock being read in it: the median. NaN without a call."""
        return median(call.ns for call in self.calls) / 1e3 if self.calls else math.nan

    @property
    def outside_us(self) -> float:
        """What of it no operator takes: Python's way to them, and reading the clock."""
        return self.invoke_us - math.fsum(operator.us for operator in self.operators)

    @property
    def operators(self) -> list[OperatorTime]:
        """Every node of the calls, in the order in which they ran; nodes that are computed as one, as one."""
        return self._all()[1]

    @property
    def kernels(self) -> list[KernelTime]:
        """Every command of the programs of machine code that ran, in their order."""
        return self._all()[2]

    @property
    def roofline(self) -> Roofline | None:
        """What this machine attains with as many threads, measured when it is asked for; ``None`` without programs, or
        where it cannot be measured."""
        if not self._roofline:
            kernel = next((span.kernel for span in self._spans() if span.kernel is not None), None)
            threads = self._interpreter._engine.settings.num_threads
            self._roofline.append(None if kernel is None else measured(kernel.target, threads))
        return self._roofline[0]

    def table(self, by: Order = "order") -> Table:
        """Operators in the ``order`` in which they ran, by ``time``, or in sums for each ``type``; or every ``kernel``,
        the longest first, with its place under the roofline. Raises `ValueError` for another word."""
        return table_of(self, by)

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write all calls as a trace, in JSON, for Perfetto (https://ui.perfetto.dev) or chrome://tracing.

        Events lie in one another: a call, its nodes and partitions, the kernels of these. The clock in a program says
        how long each command took, not when it began: commands stand one after the other, those of a loop as one.
        """
        write([self._event(call) for call in self.calls], path)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __rich__(self) -> Any:
        """For consoles of rich."""
        return as_rich(self)

    def _event(self, span: Span) -> Event:
        nodes, inner = self._members_of(span), []
        # What clocks round must not end behind the span.
        for command, took, begin in zip(*self._commands(span), strict=True):
            args = {"operators": command.operators, "calls": command.calls, "shape": command.shape, "runs": took.runs}
            ns = max(0, min(took.ns, span.end - begin))
            inner.append(Event(command.kernel or "jump", "kernel", begin, ns, {**args, **command.work._asdict()}))
        inner += [self._event(child) for child in span.children]
        if span.node is None:
            return Event(f"invoke subgraph {span.subgraph}", "invoke", span.begin, span.ns, {}, inner)
        types, name = self._names_of(span.subgraph, nodes)
        args = {"subgraph": span.subgraph, "nodes": nodes, "operators": types, "outputs": name}
        title = f"{span.node.op.name} {span.node.index}"
        if span.node.delegate is not None:
            title = f"{span.node.delegate.name}: {len(nodes)} node{'s' * (len(nodes) != 1)}"
        return Event(title, "node", span.begin, span.ns, args, inner)

    def _commands(self, span: Span) -> tuple[list[Command], Sequence[CommandTime], list[int]]:
        """The commands of a program, what each took, and when they began."""
        described = self._commands_of(span)
        return described, span.times if described else (), placed(span) if described else []

    def _commands_of(self, span: Span) -> list[Command]:
        """The commands of the program that ran there; none if it has another one now, for other shapes."""
        kernel, program = span.kernel, span.program
        if kernel is None or program is None or kernel.program is not program or kernel.built is None:
            return []
        if program not in self._described:
            from gossamer.codegen.report import commands_of

            self._described[program] = commands_of(kernel.built)
        return self._described[program]

    def _members_of(self, span: Span) -> tuple[int, ...]:
        """The nodes that run there: itself, or those of a partition."""
        if span.node is None:
            return ()
        if id(span.node) not in self._members:
            parts = self._interpreter._subgraphs[span.subgraph].delegation.partitions
            self._members |= {id(part.node): part.node_numbers for part in parts}
        return self._members.setdefault(id(span.node), (span.node.index,))

    def _names_of(self, subgraph: int, nodes: Sequence[int]) -> tuple[list[str], str]:
        """The operators of nodes, and the names of the tensors that the last one writes."""
        model = self._interpreter.model
        stored = model.subgraphs[subgraph]
        known = [stored.operators[node] for node in nodes if node < len(stored.operators)]
        names = [stored.tensors[index].name for index in known[-1].outputs if index >= 0] if known else []
        return [model.operator_name(operator) for operator in known], ";".join(names)

    def _spans(self) -> Iterator[Span]:
        waiting = [*reversed(self.calls)]
        while waiting:
            span = waiting.pop()
            yield span
            waiting += reversed(span.children)

    def _all(self) -> tuple[int, list[OperatorTime], list[KernelTime]]:
        if self._gathered[0] != len(self.calls):
            self._gathered = (len(self.calls), *self._gather())
        return self._gathered

    def _gather(self) -> tuple[list[OperatorTime], list[KernelTime]]:
        # By what ran: a node, or operators of a program (those of a command, or one that has none); and a command.
        operators: dict[Any, _Sum] = {}
        commands: dict[tuple[Program, int], _Sum] = {}
        seen: set[Program] = set()
        numbers = {part.kernel: part.number for part in running(self._interpreter)}
        for call_number, call in enumerate(self.calls):
            for span, node in _within(call):
                members, by = self._members_of(span), "reference" if node.delegate is None else node.delegate.name
                (described, times, begins), program = self._commands(span), span.program
                if not described or program is None or span.kernel is None:
                    types, name = self._names_of(span.subgraph, members)
                    what = _What(span.subgraph, members, types or [node.op.name], name)
                    one = operators.setdefault(id(node), _Sum(what, by))
                    one.add(call_number, span.own_ns, 1, span.begin - call.begin)
                    continue
                number = numbers.get(span.kernel, 0)
                for at, (command, took, begin) in enumerate(zip(described, times, begins, strict=True)):
                    taken = call_number, took.ns, took.runs, begin - call.begin
                    if (program, at) not in commands:
                        what = self._of_command(span, command)
                        operators.setdefault((program, command.operators or command.kind), _Sum(what, by))
                        commands[program, at] = _Sum(what, by, command, span.subgraph, number)
                    commands[program, at].add(*taken)
                    operators[program, command.operators or command.kind].add(*taken)
                made = {text for command in described for text in command.operators}
                for node_number in members if program not in seen else ():
                    types, name = self._names_of(span.subgraph, [node_number])
                    if f"{types[0]} {node_number}" not in made:
                        operators[program, node_number] = _Sum(_What(span.subgraph, (node_number,), types, name), by)
                seen.add(program)
        kernels = {key: one.kernel_time(key[1]) for key, one in commands.items()}
        parts: dict[Any, list[KernelTime]] = {}
        for (program, _), kernel in kernels.items():
            parts.setdefault((program, kernel.operators or kernel.kind), []).append(kernel)
        return [one.operator_time(parts.get(key, ())) for key, one in operators.items()], list(kernels.values())

    def _of_command(self, span: Span, command: Command) -> _What:
        """What its operators are."""
        said = [_ORIGIN.fullmatch(text) for text in command.operators]
        found = [(match[1], int(match[2]), int(match[3] or span.subgraph)) for match in said if match is not None]
        if not found:
            return _What(span.subgraph, (), (command.kind,), "")
        types, nodes, subgraphs = zip(*found, strict=True)
        _, name = self._names_of(subgraphs[-1], nodes[-1:])
        return _What(subgraphs[-1], nodes, types, name)


_ORIGIN = re.compile(r"(.+?) (\d+)(?: of subgraph (\d+))?")
"""How commands name an operator: ``ADD 3``, ``ADD 3 of subgraph 1``."""


class _What(NamedTuple):
    """Operators: the subgraph of the last one, node numbers, types, and the names of what the last one writes."""

    subgraph: int
    nodes: tuple[int, ...]
    types: Sequence[str]
    name: str


class _Sum:
    """What operators, or one ``command`` of theirs in a program of a subgraph, took in each call: nanoseconds, runs."""

    def __init__(
        self, what: _What, by: str, command: Command | None = None, subgraph: int = 0, program: int = 0
    ) -> None:
        self.what, self.by = what, by
        self.command, self.subgraph, self.program = command, subgraph, program
        self.by_call: dict[int, list[int]] = {}
        self.start_us = 0.0

    def add(self, call: int, ns: int, runs: int, start: int) -> None:
        """Something of it ran in a call, so long after the begin of that."""
        if not self.by_call:
            self.start_us = start / 1e3
        taken = self.by_call.setdefault(call, [0, 0])
        taken[0] += ns
        taken[1] += runs

    def operator_time(self, kernels: Sequence[KernelTime]) -> OperatorTime:
        """``kernels``: what computes the operators, if programs do."""
        runs = max([kernel.runs for kernel in kernels], default=self._runs)
        work = [math.fsum(getattr(kernel, name) for kernel in kernels) for name in ("flops", "read", "written")]
        times = self._us, self._first_us, self.start_us, runs
        what = self.what
        return OperatorTime(what.subgraph, what.nodes, ", ".join(what.types), what.name, self.by, *times, *work)

    def kernel_time(self, at: int) -> KernelTime:
        """Of its command, which has this number."""
        if self.command is None:
            raise ValueError("this is no command")
        one = self.command
        what = one.kernel or "jump", one.kind, one.calls, one.operators, one.shape
        work = [self._runs * value for value in one.work]
        return KernelTime(self.subgraph, self.program, at, *what, self._us, self._first_us, self._runs, *work)

    @property
    def _us(self) -> float:
        return median(ns for ns, _ in self.by_call.values()) / 1e3 if self.by_call else 0.0

    @property
    def _first_us(self) -> float:
        return next((ns for ns, _ in self.by_call.values()), 0) / 1e3

    @property
    def _runs(self) -> float:
        return median(runs for _, runs in self.by_call.values()) if self.by_call else 0


def _within(call: Span) -> Iterator[tuple[Span, Node]]:
    """The nodes of a call, in their order."""
    for span in call.children:
        if span.node is not None:
            yield span, span.node
        yield from _within(span)


def profile(interpreter: Interpreter) -> Profile:
    """What an interpreter does in a ``with`` statement, node by node and kernel by kernel, with the time of each.

    Programs of machine code are run with the clock read after each command, on exactly ``num_threads`` threads. After
    the ``with`` statement nothing of that is left: a call takes the same way as before. A notebook shows a profile as
    tables. Raises `TypeError` for what is no interpreter, and `RuntimeError` for one that is being profiled.

    >>> interpreter = gossamer.Interpreter("digits.tflite")
    >>> interpreter.allocate_tensors()
    >>> with gossamer.profile(interpreter) as p:
    ...     interpreter.invoke()
    >>> sorted({operator.type.split(",")[0] for operator in p.operators})[0]
    'CONV_2D'
    """
    return Profile(interpreter)
