from __future__ import annotations

import sys

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly, compile_kernel
from gossamer.codegen.kernels.walk import WalkSpec
from gossamer.programs.kernel_file import Blob
from gossamer.programs.program import walker_name
from gossamer.programs.team import CLOCK, TEAM_SIZE, TIMES, WHICH_CLOCK
from gossamer.targets import Target, all_targets
from tests.codegen.emulator import NEON, Died, Machine, machine
from tests.codegen.texts import Text
from tests.programs.kernels import Add, Rotate

# At every look at this clock, as many seconds and 3 times as many ns have passed as its first argument says.
CLOCK_THAT_COUNTS = """
define i32 @k(i32 %which, ptr %time) nounwind {
  %count_at = inttoptr i64 PLACE to ptr
  %before = load i64, ptr %count_at
  %step = zext i32 %which to i64
  %now = add i64 %before, %step
  store i64 %now, ptr %count_at
  %nanoseconds = mul i64 %now, 3
  %nanoseconds_at = getelementptr i8, ptr %time, i64 8
  store i64 %now, ptr %time
  store i64 %nanoseconds, ptr %nanoseconds_at
  ret i32 0
}
"""

LOAD = """
define i64 @k(ptr %at) nounwind {
  %word = load i64, ptr %at
  ret i64 %word
}
"""

TARGETS = all_targets()


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_programs_ask_for_the_walker_by_its_name(target: Target) -> None:
    convention = "win64" if sys.platform == "win32" else ""
    assert WalkSpec(target.plain.name, convention).name == walker_name(target)
    assert WalkSpec(target.plain.name, convention, timed=True).name == walker_name(target, timed=True)
    assert WalkSpec(target.plain.name, timed=True).name == f"walk_timed__{target.plain.name}"


def test_the_timed_walker_is_the_plain_one_and_looks_at_the_clock() -> None:
    plain, timed = (WalkSpec("avx2", timed=timed).emit(TARGETS["avx2"]) for timed in (False, True))
    before, looking = timed.split("define internal void @begin_look(", 1)
    _, _, after = looking.split("}\n", 2)
    lines = [line for line in (before + after).splitlines() if line]
    calls = [line for line in lines if "look(" in line]
    assert [line for line in lines if line not in calls] == [line for line in plain.splitlines() if line]
    look = "  call void @look(i64 %number, ptr %team, i64 %tid)"
    assert calls == ["  call void @begin_look(ptr %team, i64 %tid)", look, look]


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_both_forms_are_compiled_for_every_system(target: Target) -> None:
    x86 = target.triple.startswith("x86_64")
    for spec in (WalkSpec(target.name, "win64", timed) for timed in (False, True) if x86):
        assert len(compile_kernel(spec, target).code) < 2048
    assert len(compile_kernel(WalkSpec(target.name, timed=True), target).code) < 2048


@pytest.mark.parametrize(("name", "pause"), [("avx512", "\tpause\n"), ("avx2", "\tpause\n"), ("neon", "\tisb\n")])
def test_waiting_threads_pause(name: str, pause: str) -> None:
    assert pause in assembly(WalkSpec(name), TARGETS[name])


def test_windows_registers_are_kept() -> None:
    assert "%xmm6" not in assembly(WalkSpec("avx2"), TARGETS["avx2"])
    assert "%xmm6" in assembly(WalkSpec("avx2", "win64"), TARGETS["avx2"])


@pytest.fixture
def aarch64() -> Machine:
    return machine()


def words(machine: Machine, *values: int) -> np.ndarray:
    """Words in the memory of the machine."""
    array = machine.memory(8 * len(values)).view(np.int64)
    array[:] = values
    return array


def test_the_walker_runs_on_aarch64(aarch64: Machine) -> None:
    # Two commands with one thread: y = rotate(x), x = rotate(y).
    rotate = Rotate("neon")
    walk, kernel = (aarch64.load(compile_kernel(spec, NEON)) for spec in (WalkSpec("neon"), rotate))
    count, shift = 5, 2
    x, y, team = words(aarch64, *range(count)), words(aarch64, *[0] * count), words(aarch64, *[0] * (TEAM_SIZE // 8))
    places = [(x.ctypes.data, y.ctypes.data), (y.ctypes.data, x.ctypes.data)]
    blocks = [words(aarch64, *rotate.arguments.words(x=a, y=b, count=count, shift=shift)) for a, b in places]
    table = words(aarch64, *(word for block in blocks for word in (kernel, block.ctypes.data, 1)))
    call = words(aarch64, team.ctypes.data, table.ctypes.data, 2, 0, 1, 9, 0, 0)
    assert aarch64.call(walk, call.ctypes.data) == 9
    assert x.tolist() == [(i + 2 * shift) % count + 2 for i in range(count)]
    # Who runs alone announces nothing.
    assert not team.any()


def test_the_timed_walker_runs_on_aarch64(aarch64: Machine) -> None:
    rotate = Rotate("neon")
    walk, kernel = (aarch64.load(compile_kernel(spec, NEON)) for spec in (WalkSpec("neon", timed=True), rotate))
    team, times, counter = (words(aarch64, *[0] * count) for count in (TEAM_SIZE // 8, 7, 1))
    clock = Text("neon", "clock", CLOCK_THAT_COUNTS.replace("PLACE", str(counter.ctypes.data)))
    team[CLOCK // 8], team[WHICH_CLOCK // 8] = aarch64.load(compile_kernel(clock, NEON)), 2
    team[TIMES // 8] = times.ctypes.data
    block = words(aarch64, *rotate.arguments.words(x=0, y=0, count=0, shift=0))
    table = words(aarch64, *(kernel, block.ctypes.data, 1) * 3)
    call = words(aarch64, team.ctypes.data, table.ctypes.data, 3, 0, 1, 9, 0, 0)
    aarch64.call(walk, call.ctypes.data)
    assert counter[0] == 8
    assert times.tolist() == [4 * 2_000_000_006, *(2_000_000_006, 1) * 3]


@pytest.mark.parametrize("padding", [0, 3 * 4096])
def test_constants_are_reached_on_aarch64(aarch64: Machine, padding: int) -> None:
    add = Add("neon")
    blob = compile_kernel(add, NEON)
    assert blob.alignment == 4096
    kernel = aarch64.load(Blob(bytes(padding) + blob.code, padding + blob.entry, blob.alignment))
    count = 24
    x, y, z = (aarch64.memory(4 * count).view(np.float32) for _ in range(3))
    x[:], y[:] = np.arange(count), 100
    block = words(aarch64, *add.arguments.words(x=x.ctypes.data, y=y.ctypes.data, z=z.ctypes.data, count=count))
    aarch64.call(kernel, block.ctypes.data, 0, 1)
    assert z.tolist() == [i + 100 + (0.5, 1.5, 2.5, 4.5)[i // 4 % 4] + i % 4 + 0.25 for i in range(count)]


def test_calls_and_jump_tables_work_on_aarch64(aarch64: Machine) -> None:
    from tests.codegen.test_blob import CONSTANTS, switch

    kernel = aarch64.load(compile_kernel(Text("neon", "constants", CONSTANTS), NEON))
    for number in range(4):
        data = words(aarch64, number, 0)
        aarch64.call(kernel, data.ctypes.data)
        assert data.tolist() == [(3, 1, 4, 1)[number], 10 * (number + 1)]
    kernel = aarch64.load(compile_kernel(Text("neon", "switch", switch(12)), NEON))
    for number in (0, 5, 11, 12):
        data = words(aarch64, number)
        aarch64.call(kernel, data.ctypes.data)
        assert data.tolist() == [number * number + 3 if number < 12 else 12]


def test_memory_on_aarch64_ends_where_it_ends(aarch64: Machine) -> None:
    kernel = aarch64.load(compile_kernel(Text("neon", "load", LOAD), NEON))
    data = words(aarch64, 7, 8)
    end = data.ctypes.data + data.nbytes
    assert aarch64.call(kernel, end - 8) == 8
    with pytest.raises(Died):
        aarch64.call(kernel, end)
    assert aarch64.call(kernel, end - 16) == 7  # in another emulator
