"""Small kernels to make programs of, and what it takes to run them here."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterable
from typing import ClassVar

import pytest

from gossamer.codegen.compiler import compile_kernel
from gossamer.codegen.kernels.walk import WalkSpec
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.programs import host
from gossamer.programs.archive import Blob, KernelArchive
from gossamer.programs.program import ARENA, Address, Program, ProgramBuilder
from gossamer.records import record
from gossamer.targets import Target, host_target


def target_here() -> Target:
    """The target of this machine; the test is skipped where there is none."""
    target = host_target(host.cpu_features())
    if target is None:
        pytest.skip("no target for this CPU, or its features are not told")
    return target


def returning(number: int) -> Blob:
    """``int k()`` for this machine, without LLVM. The number has 16 bits."""
    if platform.machine() in ("aarch64", "arm64"):
        return Blob((0x52800000 | number << 5).to_bytes(4, "little") + bytes.fromhex("c0035fd6"), 0)
    return Blob(b"\xb8" + number.to_bytes(4, "little") + b"\xc3", 0)


def call(address: int | None) -> int:
    """Call an ``int k()``."""
    assert address is not None
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(address)())


@record(frozen=True)
class Add(KernelSpec):
    """z[i] = x[i] + y[i] + a constant of the lane, for floats."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *z count")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "vadd", "ramp")

    def emit(self, target: Target) -> str:
        lanes = target.lanes()
        vector = f"<{lanes} x float>"
        ramp = ", ".join(f"float {lane}.25" for lane in range(lanes))
        return f"""
@table = internal constant [4 x float] [float 0.5, float 1.5, float 2.5, float 4.5]
define void @k(ptr %args, i64 %tid, i64 %nt) nounwind {{
entry:
  %y_at = getelementptr i8, ptr %args, i64 {self.arguments["y"].offset}
  %z_at = getelementptr i8, ptr %args, i64 {self.arguments["z"].offset}
  %count_at = getelementptr i8, ptr %args, i64 {self.arguments["count"].offset}
  %x = load ptr, ptr %args
  %y = load ptr, ptr %y_at
  %z = load ptr, ptr %z_at
  %count = load i64, ptr %count_at
  %vectors = udiv i64 %count, {lanes}
  %a = mul i64 %vectors, %tid
  %first = udiv i64 %a, %nt
  %following = add i64 %tid, 1
  %b = mul i64 %vectors, %following
  %end = udiv i64 %b, %nt
  %some = icmp ult i64 %first, %end
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %xp = getelementptr {vector}, ptr %x, i64 %i
  %yp = getelementptr {vector}, ptr %y, i64 %i
  %zp = getelementptr {vector}, ptr %z, i64 %i
  %xv = load {vector}, ptr %xp, align 4
  %yv = load {vector}, ptr %yp, align 4
  %which = and i64 %i, 3
  %entry_at = getelementptr float, ptr @table, i64 %which
  %constant = load float, ptr %entry_at
  %lane = insertelement {vector} poison, float %constant, i32 0
  %all = shufflevector {vector} %lane, {vector} poison, <{lanes} x i32> zeroinitializer
  %sum = fadd {vector} %xv, %yv
  %more = fadd {vector} %sum, %all
  %most = fadd {vector} %more, <{ramp}>
  store {vector} %most, ptr %zp, align 4
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %end
  br i1 %again, label %loop, label %done
done:
  ret void
}}
"""


@record(frozen=True)
class Rotate(KernelSpec):
    """y[i] = x[(i + shift) mod count] + 1, for words: every thread reads what others wrote."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y count shift")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x64", "rotate")

    def emit(self, target: Target) -> str:
        return f"""
define void @k(ptr %args, i64 %tid, i64 %nt) nounwind {{
entry:
  %y_at = getelementptr i8, ptr %args, i64 {self.arguments["y"].offset}
  %count_at = getelementptr i8, ptr %args, i64 {self.arguments["count"].offset}
  %shift_at = getelementptr i8, ptr %args, i64 {self.arguments["shift"].offset}
  %x = load ptr, ptr %args
  %y = load ptr, ptr %y_at
  %count = load i64, ptr %count_at
  %shift = load i64, ptr %shift_at
  %a = mul i64 %count, %tid
  %first = udiv i64 %a, %nt
  %following = add i64 %tid, 1
  %b = mul i64 %count, %following
  %end = udiv i64 %b, %nt
  %some = icmp ult i64 %first, %end
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %far = add i64 %i, %shift
  %from = urem i64 %far, %count
  %xp = getelementptr i64, ptr %x, i64 %from
  %yp = getelementptr i64, ptr %y, i64 %i
  %old = load i64, ptr %xp
  %new = add i64 %old, 1
  store i64 %new, ptr %yp
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %end
  br i1 %again, label %loop, label %done
done:
  ret void
}}
"""


@record(frozen=True)
class Meet(KernelSpec):
    """Raise the own flag and wait, not for ever, for the other; ``met`` becomes 1 if it came."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*own *other *met")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("meet",)

    def emit(self, target: Target) -> str:
        return f"""
define void @k(ptr %args, i64 %tid, i64 %nt) nounwind {{
entry:
  %other_at = getelementptr i8, ptr %args, i64 {self.arguments["other"].offset}
  %met_at = getelementptr i8, ptr %args, i64 {self.arguments["met"].offset}
  %own = load ptr, ptr %args
  %other = load ptr, ptr %other_at
  %met = load ptr, ptr %met_at
  store atomic i64 1, ptr %own seq_cst, align 8
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %next, %wait ]
  %flag = load atomic i64, ptr %other seq_cst, align 8
  %there = icmp ne i64 %flag, 0
  br i1 %there, label %done, label %wait
wait:
  %next = add i64 %turn, 1
  %enough = icmp uge i64 %next, 20000000000
  br i1 %enough, label %alone, label %look
done:
  store atomic i64 1, ptr %met seq_cst, align 8
  ret void
alone:
  ret void
}}
"""


@record(frozen=True)
class WaitInOthers(KernelSpec):
    """Wait until the flag is raised, in all threads but the first."""

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*flag")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("wait", "others")

    def emit(self, target: Target) -> str:
        return """
define void @k(ptr %args, i64 %tid, i64 %nt) nounwind {
entry:
  %flag = load ptr, ptr %args
  %first = icmp eq i64 %tid, 0
  br i1 %first, label %done, label %look
look:
  %raised = load atomic i64, ptr %flag seq_cst, align 8
  %there = icmp ne i64 %raised, 0
  br i1 %there, label %done, label %look
done:
  ret void
}
"""


def kernels_in_memory(specs: Iterable[KernelSpec], target: Target) -> KernelArchive:
    """An archive of these kernels and the walker, which nobody else sees."""
    archive = KernelArchive(None, "test")
    archive.add(
        {
            spec.name: compile_kernel(spec, target)
            for spec in (*specs, WalkSpec(target.plain.name, "win64" if sys.platform == "win32" else ""))
        }
    )
    return archive


def rotating(archive: KernelArchive, target: Target, *, count: int, rounds: int, shift: int = 17) -> Program:
    """A program that rotates ``count`` words to and fro between two buffers; the result is in "arena"."""
    builder = ProgramBuilder()
    here, there = Address(ARENA, 0), Address(ARENA, 8 * count)
    forth = builder.block(Rotate.arguments.words(x=here, y=there, count=count, shift=shift))
    back = builder.block(Rotate.arguments.words(x=there, y=here, count=count, shift=shift))
    for _ in range(rounds):
        builder.command(Rotate(target.name).name, forth)
        builder.command(Rotate(target.name).name, back)
    return Program(builder.plan(arena=16 * count), archive, target)
