from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from gossamer.codegen.blob import extract
from gossamer.codegen.compiler import assembly, compile_kernel
from gossamer.codegen.kernels.walk import WalkSpec
from gossamer.programs.program import walker_name
from gossamer.programs.team import CLOCK, COMMANDS, COUNT, TEAM_SIZE, TICKET, TIMES, WHICH_CLOCK
from gossamer.targets import Target, all_targets
from tests.codegen.emulator import NEON, data_address, kernel_address, run
from tests.codegen.texts import Text, object_of
from tests.programs.kernels import Add, Rotate

# Every look at this clock takes a second and 3 ns. It counts where its first argument says.
COUNTING_CLOCK = """
define i32 @k(i32 %which, ptr %time) nounwind {
  %wide = zext i32 %which to i64
  %count_at = inttoptr i64 %wide to ptr
  %before = load i64, ptr %count_at
  %now = add i64 %before, 1
  store i64 %now, ptr %count_at
  %nanoseconds = mul i64 %now, 3
  %nanoseconds_at = getelementptr i8, ptr %time, i64 8
  store i64 %now, ptr %time
  store i64 %nanoseconds, ptr %nanoseconds_at
  ret i32 0
}
"""

TARGETS = all_targets()


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_programs_ask_for_the_walker_by_its_name(target: Target) -> None:
    convention = "win64" if sys.platform == "win32" else ""
    assert WalkSpec(target.name, convention).name == walker_name(target)
    assert WalkSpec(target.name, convention, timed=True).name == walker_name(target, timed=True)
    assert WalkSpec(target.name, timed=True).name == f"walk_timed__{target.name}"


def test_the_timed_walker_is_the_plain_one_and_looks_at_the_clock() -> None:
    plain, timed = (WalkSpec("avx2", timed=timed).emit(TARGETS["avx2"]) for timed in (False, True))
    before, looking = timed.split("define internal void @look(", 1)
    looking, after = looking.split("}\n", 1)
    lines = [line for line in (before + after).splitlines() if line]
    calls = [line for line in lines if "@look" in line]
    assert [line for line in lines if line not in calls] == [line for line in plain.splitlines() if line]
    assert calls == [f"  call void @look(i64 {number}, ptr %team, i64 %tid)" for number in ("0", "%next")]


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_both_forms_are_compiled_for_every_system(target: Target) -> None:
    x86 = target.triple.startswith("x86_64")
    for spec in (WalkSpec(target.name, "win64", timed) for timed in (False, True) if x86):
        assert len(compile_kernel(spec, target).code) < 1024
    assert len(compile_kernel(WalkSpec(target.name, timed=True), target).code) < 1024


@pytest.mark.parametrize(("name", "pause"), [("avx512", "\tpause\n"), ("avx2", "\tpause\n"), ("neon", "\tisb\n")])
def test_waiting_threads_pause(name: str, pause: str) -> None:
    assert pause in assembly(WalkSpec(name), TARGETS[name])


def test_windows_registers_are_kept() -> None:
    assert "%xmm6" not in assembly(WalkSpec("avx2"), TARGETS["avx2"])
    assert "%xmm6" in assembly(WalkSpec("avx2", "win64"), TARGETS["avx2"])


def test_the_walker_runs_on_aarch64(tmp_path: Path) -> None:
    # Two commands with one thread: y = rotate(x), x = rotate(y).
    rotate = Rotate("neon")
    blobs = [compile_kernel(WalkSpec("neon"), NEON), compile_kernel(rotate, NEON)]
    count, shift = 5, 2
    table, blocks, x, y = TEAM_SIZE, TEAM_SIZE + 48, TEAM_SIZE + 112, TEAM_SIZE + 152
    layout = rotate.arguments
    forth = layout.words(x=data_address(x), y=data_address(y), count=count, shift=shift)
    back = layout.words(x=data_address(y), y=data_address(x), count=count, shift=shift)
    kernel = kernel_address(blobs, 1)
    words = [kernel, data_address(blocks), 1, kernel, data_address(blocks + 32), 1, *forth, *back, *range(count)]
    data = bytes(TEAM_SIZE) + struct.pack(f"<{len(words)}q", *words) + bytes(8 * count)
    after = run(blobs, data, tmp_path, data_address(table), 2, 0, 1, 9, 0)
    assert struct.unpack_from("<5q", after, x) == tuple((i + 2 * shift) % count + 2 for i in range(count))
    assert struct.unpack_from("<q", after, TICKET) == (9,)
    assert struct.unpack_from("<qq", after, COMMANDS) == (data_address(table), 2)
    assert COUNT == COMMANDS + 8


def test_the_timed_walker_runs_on_aarch64(tmp_path: Path) -> None:
    rotate = Rotate("neon")
    clock = compile_kernel(Text("neon", "clock", COUNTING_CLOCK), NEON)
    blobs = [compile_kernel(WalkSpec("neon", timed=True), NEON), compile_kernel(rotate, NEON), clock]
    table, block, times, counter = TEAM_SIZE, TEAM_SIZE + 72, TEAM_SIZE + 104, TEAM_SIZE + 136
    team = bytearray(TEAM_SIZE)
    for at, word in (
        (CLOCK, kernel_address(blobs, 2)),
        (WHICH_CLOCK, data_address(counter)),
        (TIMES, data_address(times)),
    ):
        struct.pack_into("<q", team, at, word)
    nothing = rotate.arguments.words(x=0, y=0, count=0, shift=0)
    commands = [kernel_address(blobs, 1), data_address(block), 1] * 3
    words = [*commands, *nothing, *[0] * 4, 1000]
    data = bytes(team) + struct.pack(f"<{len(words)}q", *words)
    after = run(blobs, data, tmp_path, data_address(table), 3, 0, 1, 9, 0)
    assert struct.unpack_from("<q", after, counter) == (1004,)
    assert struct.unpack_from("<4q", after, times) == tuple(n * 1_000_000_003 for n in range(1001, 1005))


@pytest.mark.parametrize("padding", [0, 5000])
def test_constants_are_reached_on_aarch64(tmp_path: Path, padding: int) -> None:
    add = Add("neon")
    blobs = [compile_kernel(add, NEON)]
    assert blobs[0].alignment == 4096
    if padding:  # somewhere else
        empty = extract(object_of("define void @k() nounwind { ret void }", NEON))
        blobs = [blobs[0], empty, blobs[0]]
    count = 24
    x, y, z = 32, 32 + 4 * count, 32 + 8 * count
    words = add.arguments.words(x=data_address(x), y=data_address(y), z=data_address(z), count=count)
    data = (
        struct.pack("<4q", *words)
        + struct.pack(f"<{count}f", *range(count))
        + struct.pack(f"<{count}f", *[100] * count)
    )
    after = run(blobs, data + bytes(4 * count), tmp_path, 0, 1)
    expected = [i + 100 + (0.5, 1.5, 2.5, 4.5)[i // 4 % 4] + i % 4 + 0.25 for i in range(count)]
    assert list(struct.unpack_from(f"<{count}f", after, z)) == expected


def test_calls_and_jump_tables_work_on_aarch64(tmp_path: Path) -> None:
    from tests.codegen.test_blob import CONSTANTS, switch

    blob = compile_kernel(Text("neon", "constants", CONSTANTS), NEON)
    for number in range(4):
        after = run([blob], struct.pack("<qq", number, 0), tmp_path)
        assert struct.unpack("<qq", after) == ((3, 1, 4, 1)[number], 10 * (number + 1))
    blob = compile_kernel(Text("neon", "switch", switch(12)), NEON)
    for number in (0, 5, 11, 12):
        after = run([blob], struct.pack("<q", number), tmp_path)
        assert struct.unpack("<q", after) == (number * number + 3 if number < 12 else 12,)
