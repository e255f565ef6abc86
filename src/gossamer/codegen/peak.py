"""How fast this machine multiplies and reads, measured with kernels made for that, as those of models are made."""

from __future__ import annotations

from typing import NamedTuple

from gossamer.codegen.dots import depth
from gossamer.codegen.kernels.peak import CHAINS, MultiplyAdd, MultiplyAddBytes, Read
from gossamer.codegen.library import ensure, walker
from gossamer.programs.program import ARENA, Address, Program, ProgramBuilder
from gossamer.targets import Target

READ = 128 << 20
"""Bytes that are read: more than most caches hold."""

TURNS = 1 << 18
ROUNDS = 15


class Peak(NamedTuple):
    """Floating-point operations, bytes read, and operations of products of bytes per second, of all threads."""

    flops: float
    bytes: float
    byte_flops: float


def measure_peak(target: Target, num_threads: int = 1) -> Peak:
    """The best of a few rounds, some tens of milliseconds in all.

    Raises `CompileError` if the kernels are in no archive and there is no compiler.
    """
    multiply, read = MultiplyAdd(target.plain.name), Read(target.plain.name)
    dot = MultiplyAddBytes(target.name if target.dot else target.plain.name)
    kernels = ensure([multiply, read, dot, walker(target, timed=True)], target)
    builder = ProgramBuilder()
    y = Address(ARENA, READ)
    builder.command(multiply.name, builder.block(multiply.arguments.words(y=y, turns=TURNS)))
    builder.command(read.name, builder.block(read.arguments.words(x=Address(ARENA), y=y, count=READ // 4)))
    builder.command(dot.name, builder.block(dot.arguments.words(y=y, turns=TURNS)))
    program = Program(builder.plan(**{ARENA: READ + 64 * num_threads}), kernels, target)
    # Pages that nobody has written are all the same one. The floats are small, and not denormal.
    program.memory[ARENA].view()[:READ] = b"\x01" * READ
    rounds = [program.profile(num_threads) for _ in range(ROUNDS)]
    seconds = [max(min(times[command].ns for times in rounds), 1) / 1e9 for command in range(3)]
    sums = CHAINS * TURNS * target.lanes() * num_threads
    return Peak(2 * sums / seconds[0], READ / seconds[1], 2 * depth(target) * sums / seconds[2])
