from __future__ import annotations

import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gossamer.codegen.compiler import compile_kernels
from gossamer.codegen.kernels.walk import WalkSpec
from gossamer.errors import CompileError, InvokeError
from gossamer.programs import host, team
from gossamer.programs.archive import KernelArchive, archive_key
from gossamer.programs.generator import generator_version
from gossamer.programs.program import (
    ARENA,
    FAULT,
    MODEL,
    SCRATCH,
    WEIGHTS,
    Address,
    CommandTime,
    IndexFault,
    Program,
    ProgramBuilder,
    ProgramPlan,
    _steps,
    walker_name,
)
from gossamer.programs.team import Jump
from gossamer.programs.throttle import Throttle
from gossamer.targets import Target
from tests.conftest import HANGS
from tests.programs.kernels import Add, Meet, Rotate, WaitInOthers, kernels_in_memory, rotating, target_here

CONVENTION = "win64" if sys.platform == "win32" else ""


@pytest.fixture(scope="module")
def target() -> Target:
    return target_here()


@pytest.fixture(scope="module")
def kernels(target: Target) -> KernelArchive:
    timed = WalkSpec(target.plain.name, CONVENTION, timed=True)
    return kernels_in_memory([Add(target.name), Rotate(target.name), Meet(target.name), timed], target)


@pytest.fixture
def as_many_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs have all threads, however few CPUs there are and however long they wait."""
    monkeypatch.setattr(host, "usable_cpus", lambda: 100)
    monkeypatch.setattr(Throttle, "ran", lambda *_: None)


def adding(target: Target, count: int) -> ProgramPlan:
    """t = x + y + c, z = t + t + c, in several commands that need barriers where they share."""
    add = Add(target.name)
    builder = ProgramBuilder()
    middle = Address(ARENA, 0)
    first = add.arguments.words(x=Address("x"), y=Address("y"), z=middle, count=count)
    second = add.arguments.words(x=middle, y=middle, z=Address("z"), count=count)
    builder.command(add.name, builder.block(first))
    builder.command(add.name, builder.block(second))
    return builder.plan(arena=4 * count)


def expected_sum(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32], lanes: int) -> npt.NDArray[np.float32]:
    number = np.arange(len(x))
    constant = np.array([0.5, 1.5, 2.5, 4.5], np.float32)[number // lanes % 4]
    ramp = (number % lanes + 0.25).astype(np.float32)
    return x + y + constant + ramp


def arrays(count: int) -> tuple[npt.NDArray[np.float32], ...]:
    random = np.random.default_rng(1)
    x, y = (random.normal(size=count).astype(np.float32) for _ in range(2))
    return x, y, np.zeros(count, np.float32)


def bind(program: Program, **places: npt.NDArray[np.float32]) -> None:
    for base, array in places.items():
        program.bind(base, array.ctypes.data)


@pytest.mark.usefixtures("as_many_as_asked")
@pytest.mark.parametrize("num_threads", [1, 2, 3, 4])
def test_every_number_of_threads_gives_the_same_bits(target: Target, kernels: KernelArchive, num_threads: int) -> None:
    count = 64 * 101
    x, y, z = arrays(count)
    program = Program(adding(target, count), kernels, target)
    bind(program, x=x, y=y, z=z)
    t = expected_sum(x, y, target.lanes())
    for _ in range(3):
        z[:] = 0
        program.run(num_threads)
        assert z.tobytes() == expected_sum(t, t, target.lanes()).tobytes()


def test_inputs_and_outputs_can_be_bound_again(target: Target, kernels: KernelArchive) -> None:
    x, y, z = arrays(64)
    other = np.zeros_like(z)
    program = Program(adding(target, 64), kernels, target)
    bind(program, x=x, y=y, z=z)
    program.run()
    bind(program, x=y, y=x, z=other)
    z_before = z.copy()
    program.run()
    assert other.tobytes() == z_before.tobytes() == z.tobytes()


def test_places_may_come_with_the_run(target: Target, kernels: KernelArchive) -> None:
    x, y, z = arrays(64)
    program = Program(adding(target, 64), kernels, target)
    bind(program, x=x)
    program.run(places={"y": y.ctypes.data, "z": z.ctypes.data})
    t = expected_sum(x, y, target.lanes())
    assert z.tobytes() == expected_sum(t, t, target.lanes()).tobytes()
    memory = host.Memory(z.nbytes)
    program.run(places={"z": memory})
    assert bytes(memory.view()) == z.tobytes()


@pytest.mark.parametrize("words", [1, 16, 17, 100])
def test_few_and_many_words_follow_their_base(target: Target, kernels: KernelArchive, words: int) -> None:
    builder = ProgramBuilder()
    builder.block([7, *(Address("x", 3 * number) for number in range(words)), -1])
    program = Program(builder.plan(), kernels, target)
    for place in (1000, 2**47, 1000, 1000):
        program.bind("x", place)
        assert list(program._words) == [7, *(place + 3 * number for number in range(words)), -1]


def test_what_is_not_bound_is_named(target: Target, kernels: KernelArchive) -> None:
    plan = adding(target, 64)
    assert plan.bases == ("x", "y", "z")
    program = Program(plan, kernels, target)
    program.bind("y", 0)
    with pytest.raises(InvokeError, match="not bound to x, z"):
        program.run()


def test_kernels_that_are_not_there_are_named(target: Target) -> None:
    with pytest.raises(CompileError, match=f"f32_vadd_ramp__{target.name}, {walker_name(target)}"):
        Program(adding(target, 64), KernelArchive(None, "empty"), target)


def test_a_program_runs_with_one_thread_or_more(target: Target, kernels: KernelArchive) -> None:
    program = rotating(kernels, target, count=8, rounds=1)
    for num_threads in (0, -1):
        with pytest.raises(InvokeError, match="one thread or more"):
            program.run(num_threads)


def test_a_program_of_no_commands_does_nothing(target: Target, kernels: KernelArchive) -> None:
    for num_threads in (1, 2):
        Program(ProgramBuilder().plan(), kernels, target).run(num_threads)


def test_arguments_outside_their_memory_are_refused() -> None:
    builder = ProgramBuilder()
    builder.block([Address(ARENA, 65)])
    with pytest.raises(CompileError, match="outside arena, which has 64 bytes"):
        builder.plan(arena=64)
    with pytest.raises(CompileError, match="not a multiple of 64"):
        ProgramBuilder().plan(scratch=100)
    with pytest.raises(CompileError, match="reads an argument block, got an address in arena"):
        builder.command("k", Address(ARENA, 0))


def test_blocks_hold_numbers_kernels_and_other_blocks(target: Target, kernels: KernelArchive) -> None:
    builder = ProgramBuilder()
    table = builder.block([7, -1])
    block = builder.block([builder.kernel(Add(target.name).name), table, Address(MODEL, 12), Address(SCRATCH, 64)])
    builder.command(Rotate(target.name).name, block)
    program = Program(builder.plan(scratch=128), kernels, target)
    program.bind(MODEL, 1000)
    words = program._words
    start = program._blocks.address
    assert list(words[:5]) == [7, -1, kernels.find(Add(target.name).name), start, 1012]
    assert words[5] == program.memory[SCRATCH].address + 64


def test_plans_can_be_sent(target: Target, kernels: KernelArchive) -> None:
    x, y, z = arrays(64)
    plan = pickle.loads(pickle.dumps(adding(target, 64)))
    program = Program(plan, kernels, target)
    bind(program, x=x, y=y, z=z)
    program.run(2)
    t = expected_sum(x, y, target.lanes())
    assert z.tobytes() == expected_sum(t, t, target.lanes()).tobytes()


def test_weights_are_packed_once_and_shared(target: Target, kernels: KernelArchive) -> None:
    add = Add(target.name)
    builder = ProgramBuilder()
    weights, model = Address(WEIGHTS), Address(MODEL)
    builder.pack(add.name, builder.block(add.arguments.words(x=model, y=model, z=weights, count=64)))
    builder.command(add.name, builder.block(add.arguments.words(x=weights, y=weights, z=Address("z"), count=64)))
    plan = builder.plan(weights=256)
    stored, _, z = arrays(64)
    first = Program(plan, kernels, target)
    with pytest.raises(InvokeError, match="not bound to model"):
        first.pack()
    bind(first, model=stored)
    first.pack(2)
    packed = expected_sum(stored, stored, target.lanes())
    assert bytes(first.memory[WEIGHTS].view()[:256]) == packed.tobytes()
    second = Program(plan, kernels, target, {WEIGHTS: first.memory[WEIGHTS]})
    bind(second, model=stored, z=z)
    second.run()
    assert z.tobytes() == expected_sum(packed, packed, target.lanes()).tobytes()


def test_pages_of_the_model_are_given_back_as_they_are_packed(
    target: Target, kernels: KernelArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Add(target.name)
    builder = ProgramBuilder()
    for number in range(5):
        place = Address(MODEL, 256 * number)
        block = builder.block(add.arguments.words(x=place, y=place, z=Address(WEIGHTS, 256 * number), count=64))
        builder.pack(add.name, block, reads=None if number == 2 else (place, 256))
    with pytest.raises(CompileError, match="packed is read in the model file, got an address in arena"):
        builder.pack(add.name, block, reads=(Address(ARENA), 4))
    plan = builder.plan(weights=5 * 256)
    stored = np.arange(5 * 64, dtype=np.float32)
    released: list[tuple[int, int]] = []
    monkeypatch.setattr(host, "release_pages", lambda *part: released.append(part))
    monkeypatch.setattr(host, "page_size", lambda: 256)
    packed = []
    for release in (False, True):
        program = Program(plan, kernels, target)
        bind(program, model=stored)
        program.pack(2, release=release)
        packed.append(bytes(program.memory[WEIGHTS].view()))
    assert packed[0] == packed[1]
    assert any(packed[0])
    assert released == [(stored.ctypes.data + 256 * number, 512) for number in (0, 3)]  # together what lies together


def test_packing_goes_in_steps() -> None:
    assert list(_steps([], 10)) == []
    assert list(_steps([3, 0, 4], 10)) == [range(3)]
    assert list(_steps([3, 7, 20, 9, 0, 1, 2], 10)) == [range(2), range(2, 3), range(3, 6), range(6, 7)]


@pytest.mark.usefixtures("as_many_as_asked")
def test_scratch_grows_with_the_threads(target: Target, kernels: KernelArchive) -> None:
    rotate = Rotate(target.name)
    builder = ProgramBuilder()
    place = Address(SCRATCH)
    builder.command(rotate.name, builder.block(rotate.arguments.words(x=place, y=place, count=1, shift=0)))
    program = Program(builder.plan(scratch=4096), kernels, target)
    sizes = []
    for num_threads in (1, 3, 2):
        program.run(num_threads)
        sizes.append(program.memory[SCRATCH].size)
    assert sizes[0] < 3 * 4096 <= sizes[1] == sizes[2]


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_fault_is_told_once(target: Target, kernels: KernelArchive, num_threads: int) -> None:
    rotate = Rotate(target.name)
    builder = ProgramBuilder()
    words = rotate.arguments.words(x=Address("x"), y=Address(FAULT), count=1, shift=0)
    builder.command(rotate.name, builder.block(words))
    program = Program(builder.plan(fault=8), kernels, target)
    x = host.Memory(8)
    program.bind("x", x)
    for value in (-1, 0, -1):
        x.view().cast("q")[0] = value
        for run in (program.run, program.profile):
            if value < 0:
                run(num_threads)
                continue
            with pytest.raises(IndexFault, match="out of range"):
                run(num_threads)
            assert program.memory[FAULT].view().cast("q")[0] == 0


@pytest.mark.usefixtures("as_many_as_asked")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_fault_that_the_short_way_meets_is_raised_by_the_next_run(
    target: Target, kernels: KernelArchive, num_threads: int
) -> None:
    rotate = Rotate(target.name)
    builder = ProgramBuilder()
    words = rotate.arguments.words(x=Address("x"), y=Address(FAULT), count=1, shift=0)
    builder.command(rotate.name, builder.block(words))
    program = Program(builder.plan(fault=8), kernels, target)
    x = host.Memory(8)
    program.bind("x", x)
    x.view().cast("q")[0] = -1
    program.run(num_threads)
    again = program.again(num_threads)
    assert again is not None
    assert not again()
    x.view().cast("q")[0] = 0
    assert again()
    x.view().cast("q")[0] = -1
    with pytest.raises(IndexFault):
        program.run(num_threads)
    assert not again()


def test_every_command_has_its_time(target: Target, kernels: KernelArchive) -> None:
    x, y, z = arrays(64)
    builder = ProgramBuilder()
    rotate, add = Rotate(target.name), Add(target.name)
    words = add.arguments.words(x=Address("x"), y=Address("y"), z=Address("z"), count=64)
    nothing = builder.block(rotate.arguments.words(x=Address(ARENA), y=Address(ARENA), count=0, shift=0))
    builder.command(rotate.name, nothing)
    builder.command(add.name, builder.block(words), barrier=False)
    builder.command(rotate.name, nothing)
    program = Program(builder.plan(arena=64), kernels, target)
    with pytest.raises(InvokeError, match="not bound to x, y, z"):
        program.profile()
    bind(program, x=x, y=y)
    for num_threads in (1, 2):
        z[:] = 0
        start = time.perf_counter_ns()
        times = program.profile(num_threads, {"z": z.ctypes.data})
        lasted = time.perf_counter_ns() - start
        assert [time.kernel for time in times] == [rotate.name, add.name, rotate.name]
        assert all(time.ns >= 0 for time in times)
        assert sum(time.ns for time in times) <= lasted
        assert z.tobytes() == expected_sum(x, y, target.lanes()).tobytes()
    assert Program(ProgramBuilder().plan(), kernels, target).profile() == []


def test_more_threads_than_cpus_are_not_started(
    target: Target, kernels: KernelArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team, "_idle", defaultdict(list))
    monkeypatch.setattr(host, "usable_cpus", lambda: 3)
    rotate = Rotate(target.name)
    builder = ProgramBuilder()
    block = builder.block(rotate.arguments.words(x=Address(SCRATCH), y=Address(SCRATCH), count=1, shift=0))
    builder.pack(rotate.name, block)
    builder.command(rotate.name, block)
    program = Program(builder.plan(scratch=64), kernels, target)
    program.pack(1000)
    program.run(1000)
    assert {size: len(found) for size, found in team._idle.items()} == {3: 1}
    assert program.memory[SCRATCH].size < 4 * 4096
    for each in team._idle[3]:
        each.stop()
        each.join(HANGS)


def interrupted(action: Callable[[], object], line: int) -> bool:
    """Whether a function is interrupted where it comes to the line of this number of those of the team's file."""
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != team.__file__:
            return None
        left -= event == "line"
        if left < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.usefixtures("as_many_as_asked")
@pytest.mark.parametrize("first", [True, False])
def test_an_interrupt_leaves_no_threads_behind(
    target: Target, kernels: KernelArchive, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    monkeypatch.setattr(team, "_idle", defaultdict(list))
    before = set(threading.enumerate())
    program = rotating(kernels, target, count=10, rounds=1)
    gc.collect()
    gc.freeze()  # below, only what is new is looked through
    for line in range(1000):
        if first:
            team._idle.clear()
        else:
            program.run(3)
        if not interrupted(lambda: program.run(3), line):
            break
        gc.collect()
        waiting = {thread for found in team._idle.values() for one in found for thread in one._threads}
        for thread in set(threading.enumerate()) - before - waiting:
            thread.join(HANGS)
            assert not thread.is_alive()
        rotate_and_check(program, 10, 1, 3)
    else:
        pytest.fail("it never came to an end")
    assert line > 20
    team._idle.clear()
    for thread in set(threading.enumerate()) - before:
        thread.join(HANGS)


def address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def fake_clock(monkeypatch: pytest.MonkeyPatch, readings: list[tuple[int, int]]) -> None:
    """Let the clock of new teams say these seconds and nanoseconds."""
    left = iter(readings)

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64))
    def clock(which: int, now: Any) -> int:
        assert which == 77
        now[0], now[1] = next(left)
        return 0

    HELD.append(clock)
    monkeypatch.setattr(host, "clock", lambda: host.Clock(address_of(clock), 77, 10**9))
    monkeypatch.setattr(team, "_idle", defaultdict(list))


HELD: list[Any] = []


@pytest.mark.skipif(sys.platform == "win32", reason="the clock has another form")
def test_times_are_those_of_the_clock(target: Target, kernels: KernelArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_clock(monkeypatch, [(7, 999_999_990), (8, 10), (8, 1010), (9, 10)])
    builder = ProgramBuilder()
    nothing = builder.block(Rotate.arguments.words(x=0, y=0, count=0, shift=0))
    for _ in range(3):
        builder.command(Rotate(target.name).name, nothing)
    times = Program(builder.plan(), kernels, target).profile()
    assert times == [CommandTime(Rotate(target.name).name, ns) for ns in (20, 1000, 999_999_000)]


def test_a_profile_needs_the_timed_walker(target: Target) -> None:
    program = rotating(kernels_in_memory([Rotate(target.name)], target), target, count=8, rounds=1)
    with pytest.raises(CompileError, match=f"No archive has the kernels walk_timed__{target.plain.name}"):
        program.profile()
    program.run()


def rotated(count: int, rounds: int, shift: int = 17) -> npt.NDArray[np.int64]:
    return (np.arange(count) + 2 * rounds * shift) % count + 2 * rounds


def rotate_and_check(program: Program, count: int, rounds: int, num_threads: int) -> None:
    words = np.frombuffer(program.memory[ARENA].view(), np.int64, 2 * count)
    words[:count] = np.arange(count)
    program.run(num_threads)
    assert np.array_equal(words[:count], rotated(count, rounds))


@pytest.mark.usefixtures("as_many_as_asked")
@pytest.mark.parametrize("num_threads", [2, 3, 4, 8])
def test_barriers_hold(target: Target, kernels: KernelArchive, num_threads: int) -> None:
    # One word per thread and one more: almost nothing but barriers. A thread that is early or late reads a wrong word.
    count = num_threads + 1
    program = rotating(kernels, target, count=count, rounds=200)
    for _ in range(2):
        rotate_and_check(program, count, 200, num_threads)


@pytest.mark.slow
@pytest.mark.usefixtures("as_many_as_asked")
def test_barriers_hold_for_a_million_times(target: Target, kernels: KernelArchive) -> None:
    program = rotating(kernels, target, count=3, rounds=5000)
    for _ in range(100):
        rotate_and_check(program, 3, 5000, 2)


@pytest.mark.usefixtures("as_many_as_asked")
def test_many_more_threads_than_cpus_come_to_an_end(target: Target, kernels: KernelArchive) -> None:
    num_threads = 8 * (os.cpu_count() or 1)
    program = rotating(kernels, target, count=100, rounds=20)
    for _ in range(3):
        rotate_and_check(program, 100, 20, num_threads)


@pytest.mark.usefixtures("as_many_as_asked")
def test_threads_that_the_system_does_not_give_are_done_without(
    target: Target, kernels: KernelArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team, "_idle", defaultdict(list))
    start, started = threading.Thread.start, []

    def start_two(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_two)
    rotate_and_check(rotating(kernels, target, count=100, rounds=5), 100, 5, 6)
    assert len(started) == 2


@pytest.mark.usefixtures("as_many_as_asked")
def test_threads_are_started_once(target: Target, kernels: KernelArchive) -> None:
    programs = [rotating(kernels, target, count=10, rounds=1) for _ in range(3)]
    programs[0].run(4)
    threads = set(threading.enumerate())
    for _ in range(5):
        for program in programs:
            program.run(4)
    assert not set(threading.enumerate()) - threads  # those that other tests have left may end


@pytest.mark.usefixtures("as_many_as_asked")
def test_the_number_of_threads_may_change_from_run_to_run(target: Target, kernels: KernelArchive) -> None:
    program = rotating(kernels, target, count=100, rounds=3)
    for num_threads in (1, 4, 2, 3, 1, 4):
        rotate_and_check(program, 100, 3, num_threads)


def meeting(target: Target, kernels: KernelArchive, own: int, other: int, met: int) -> Program:
    meet = Meet(target.name)
    builder = ProgramBuilder()
    words = meet.arguments.words(own=Address("flags", own), other=Address("flags", other), met=Address("flags", met))
    builder.command(meet.name, builder.block(words))
    return Program(builder.plan(), kernels, target)


@pytest.mark.skipif(host.usable_cpus() < 2, reason="one CPU")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_two_programs_run_at_the_same_time(target: Target, kernels: KernelArchive, num_threads: int) -> None:
    # Each waits inside a kernel until the other is inside too.
    flags = np.zeros(64, np.int64)
    programs = [meeting(target, kernels, 0, 128, 256), meeting(target, kernels, 128, 0, 384)]
    for program in programs:
        program.bind("flags", flags.ctypes.data)
    threads = [threading.Thread(target=program.run, args=(num_threads,)) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS)
    assert list(flags[[32, 48]]) == [1, 1]


def test_one_program_asked_by_two_threads_runs_once_at_a_time(target: Target, kernels: KernelArchive) -> None:
    count, rounds = 100, 20
    program = rotating(kernels, target, count=count, rounds=rounds)
    words = np.frombuffer(program.memory[ARENA].view(), np.int64, 2 * count)
    words[:count] = np.arange(count)
    threads = [threading.Thread(target=lambda: [program.run(2) for _ in range(10)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS)
    assert np.array_equal(words[:count], rotated(count, 20 * rounds))


def test_two_threads_may_run_one_program_each_at_its_own_places(target: Target, kernels: KernelArchive) -> None:
    count = 64 * 20
    program = Program(adding(target, count), kernels, target)
    y = np.ones(count, np.float32)

    def run_often(number: int) -> bool:
        for turn in range(100):
            x, z = np.full(count, 1000 * number + turn, np.float32), np.zeros(count, np.float32)
            program.run(2, {"x": x.ctypes.data, "y": y.ctypes.data, "z": z.ctypes.data})
            t = expected_sum(x, y, target.lanes())
            if z.tobytes() != expected_sum(t, t, target.lanes()).tobytes():
                return False
        return True

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(run_often, range(3))) == [True] * 3


@pytest.mark.parametrize("num_threads", [1, 2])
def test_programs_of_many_threads_share_weights_and_kernels(
    target: Target, kernels: KernelArchive, num_threads: int
) -> None:
    count = 64 * 20
    add = Add(target.name)
    builder = ProgramBuilder()
    model, weights, x, z = Address(MODEL), Address(WEIGHTS), Address("x"), Address("z")
    builder.pack(add.name, builder.block(add.arguments.words(x=model, y=model, z=weights, count=count)))
    builder.command(add.name, builder.block(add.arguments.words(x=x, y=weights, z=z, count=count)))
    plan = builder.plan(weights=4 * count)
    stored = np.arange(count, dtype=np.float32)
    first = Program(plan, kernels, target)
    bind(first, model=stored)
    first.pack(2)
    packed = expected_sum(stored, stored, target.lanes())

    def run_often(number: int) -> bool:
        program = Program(plan, kernels, target, {WEIGHTS: first.memory[WEIGHTS]})
        for turn in range(100):
            x, z = np.full(count, 1000 * number + turn, np.float32), np.zeros(count, np.float32)
            bind(program, model=stored, x=x, z=z)
            program.run(num_threads)
            if z.tobytes() != expected_sum(x, packed, target.lanes()).tobytes():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run_often, range(4))) == [True] * 4


def test_results_do_not_depend_on_how_many_threads_are_left(
    target: Target, kernels: KernelArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def ran(throttle: Throttle, ns: int, waited: int) -> None:
        seen.append((throttle.threads, ns > 0, waited >= 0))
        throttle.threads = throttle.threads % 4 + 1

    monkeypatch.setattr(host, "usable_cpus", lambda: 4)
    monkeypatch.setattr(Throttle, "ran", ran)
    program = rotating(kernels, target, count=100, rounds=5)
    for _ in range(6):
        rotate_and_check(program, 100, 5, 7)
    assert seen == [(threads, True, True) for threads in (4, 1, 2, 3, 4, 1)]


@pytest.mark.skipif(sys.platform == "win32", reason="the clock has another form")
def test_the_time_that_threads_wait_is_known(
    target: Target, kernels: KernelArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other thread arrives after this one has yielded 100 times. It looked at the clock when it began to yield.
    here, yields = threading.get_ident(), 0
    flag = np.zeros(64, np.int64)

    @ctypes.CFUNCTYPE(ctypes.c_int)
    def give_way() -> int:
        nonlocal yields
        if threading.get_ident() == here:
            yields += 1
            flag[0] = yields >= 100
        return 0

    monkeypatch.setattr(host, "yield_address", lambda: address_of(give_way))
    fake_clock(monkeypatch, [(7, 999_999_990), (8, 20)])
    wait = WaitInOthers(target.name)
    kernels.add(compile_kernels([wait], target))
    builder = ProgramBuilder()
    builder.command(wait.name, builder.block(wait.arguments.words(flag=Address("flag"))))
    program = Program(builder.plan(), kernels, target)
    bind(program, flag=flag)
    pair = team.Team(2)
    assert pair.run(program._walker, program._commands, 1) == (30, 0, False)
    assert yields >= 100
    assert team.Team(1).run(program._walker, program._commands, 1) == (0, 0, False)
    pair.stop()
    pair.join(HANGS)


def counting_up(target: Target, count: int, *, cost: int = 1, alone: bool = False) -> ProgramPlan:
    """Rotate ``count`` words to and fro until a counter, which each turn raises, is a multiple of 256; once more behind
    the loop."""
    rotate = Rotate(target.name)
    builder = ProgramBuilder()
    counter, here, there = Address(ARENA), Address(ARENA, 64), Address(ARENA, 64 + 8 * count)
    rise = builder.block(rotate.arguments.words(x=counter, y=counter, count=1, shift=0))
    forth = builder.block(rotate.arguments.words(x=here, y=there, count=count, shift=17))
    back = builder.block(rotate.arguments.words(x=there, y=here, count=count, shift=17))
    part = builder.jump(Jump.PART) if alone else None
    enter = builder.jump(Jump.GO)
    start = builder.next_command
    for block in (forth, back, rise):
        builder.command(rotate.name, block)
    builder.land(enter)
    builder.jump(Jump.BACK, counter, target=start, cost=cost)
    if part is not None:
        builder.land(part)
        builder.jump(Jump.JOIN)
    for block in (forth, back):
        builder.command(rotate.name, block)
    return builder.plan(arena=64 + 16 * count)


def count_and_check(
    program: Program, count: int, turns: int, *threads: int, run: Callable[..., Any] | None = None, **settings: Any
) -> None:
    words = np.frombuffer(program.memory[ARENA].view(), np.int64, 8 + count)
    words[0], words[8:] = -turns, np.arange(count)
    assert not (run or program.run)(*threads, **settings)
    assert words[0] == 0
    assert np.array_equal(words[8:], rotated(count, turns + 1))


@pytest.mark.usefixtures("as_many_as_asked")
@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("alone", [False, True])
def test_loops_run_as_long_as_their_flag_is_set(
    target: Target, kernels: KernelArchive, num_threads: int, alone: bool
) -> None:
    program = Program(counting_up(target, 50, alone=alone), kernels, target)
    for turns in (0, 1, 2, 100):
        count_and_check(program, 50, turns, num_threads)
    again = program.again(num_threads)
    assert again is not None
    for turns in (0, 1, 2, 100):
        count_and_check(program, 50, turns, run=again)


@pytest.mark.usefixtures("as_many_as_asked")
@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("alone", [False, True])
def test_loops_stop_for_a_look_around_and_go_on(
    target: Target, kernels: KernelArchive, num_threads: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team, "SLICES", 10**12)
    monkeypatch.setattr(team, "_idle", defaultdict(list))
    program = Program(counting_up(target, 50, cost=10**6, alone=alone), kernels, target)
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 7:
            raise InterruptedError

    count_and_check(program, 50, 5, num_threads, poll=lambda: looks.append(0))
    others = alone and num_threads > 1  # who are looked for where they join
    assert looks == [0] * (3 + others)
    with pytest.raises(InterruptedError):
        count_and_check(program, 50, 100, num_threads, poll=look)
    count_and_check(program, 50, 100, num_threads)
    times = defaultdict(int)
    words = program.memory[ARENA].view().cast("q")
    words[0] = -5
    for command in program.profile(num_threads):
        times[command.kernel] += command.runs
    assert times[Rotate(target.name).name] == 3 * 5 + 2
    for each in [one for found in team._idle.values() for one in found]:
        each.stop()
        each.join(HANGS)


@pytest.mark.usefixtures("as_many_as_asked")
@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_branches_follow_their_flag(target: Target, kernels: KernelArchive, num_threads: int) -> None:
    rotate = Rotate(target.name)
    builder = ProgramBuilder()
    flag, word = Address(ARENA), Address(ARENA, 64)
    once = builder.block(rotate.arguments.words(x=word, y=word, count=1, shift=0))
    past = builder.jump(Jump.UNLESS, flag)
    builder.command(rotate.name, once)
    end = builder.jump(Jump.GO)
    builder.land(past)
    builder.command(rotate.name, once)
    builder.command(rotate.name, once)
    builder.land(end)
    more = builder.jump(Jump.IF, flag)
    builder.command(rotate.name, once)
    builder.land(more)
    program = Program(builder.plan(arena=128), kernels, target)
    assert not program.plan.has_loops
    assert program.again(num_threads) is not None
    memory = program.memory[ARENA].view()
    for flag_byte, turns in ((0, 3), (1, 1), (128, 1)):
        memory[0], memory[64] = flag_byte, 0
        program.run(num_threads)
        assert memory[64] == turns


def test_a_fault_ends_a_loop(target: Target, kernels: KernelArchive) -> None:
    rotate = Rotate(target.name)
    builder = ProgramBuilder()
    counter, fault = Address(ARENA), Address(FAULT)
    start = builder.next_command
    for place in (counter, fault):
        builder.command(rotate.name, builder.block(rotate.arguments.words(x=place, y=place, count=1, shift=0)))
    builder.jump(Jump.BACK, counter, target=start, cost=1)
    program = Program(builder.plan(arena=64, fault=8), kernels, target)
    words = program.memory[ARENA].view().cast("q")
    for threads in (1, 2):
        words[0] = -100
        with pytest.raises(IndexFault):
            program.run(threads)
        assert words[0] == -99


def test_jumps_have_what_their_kind_needs() -> None:
    builder = ProgramBuilder()
    flag = Address(ARENA)
    for kind, place, settings in (
        (Jump.GO, flag, {}),
        (Jump.IF, None, {}),
        (Jump.BACK, flag, {"target": 0}),
        (Jump.BACK, flag, {"cost": 1}),
        (Jump.UNLESS, flag, {"target": 0, "cost": 1}),
    ):
        with pytest.raises(CompileError, match=f"A jump of the kind {kind.name} has no such arguments"):
            builder.jump(kind, place, **settings)  # type: ignore[arg-type]


FORK = """
import os, sys, warnings
import numpy as np
from tests.programs.kernels import *
from tests.programs.test_program import rotate_and_check
warnings.simplefilter("ignore", DeprecationWarning)  # threads are the point here
target = target_here()
program = rotating(kernels_in_memory([Rotate(target.name)], target), target, count=50, rounds=10)
rotate_and_check(program, 50, 10, 2)
for _ in range(5):
    child = os.fork()
    if child == 0:
        rotate_and_check(program, 50, 10, 2)
        rotate_and_check(program, 50, 10, 3)
        os._exit(0)
    rotate_and_check(program, 50, 10, 2)
    assert os.waitpid(child, 0)[1] == 0
"""

FORK_WHILE_OTHERS_RUN = """
import os, sys, threading, warnings
import numpy as np
from tests.programs.kernels import *
from tests.programs.test_program import rotate_and_check
warnings.simplefilter("ignore", DeprecationWarning)  # threads are the point here
target = target_here()
kernels = kernels_in_memory([Rotate(target.name)], target)
programs = [rotating(kernels, target, count=50, rounds=100) for _ in range(3)]
stop, failed = threading.Event(), []
def run_for_ever(program, num_threads):
    try:
        while not stop.is_set():
            rotate_and_check(program, 50, 100, num_threads)
    except BaseException:
        failed.append(num_threads)
        raise
others = [threading.Thread(target=run_for_ever, args=(programs[n], n)) for n in (1, 2)]
for thread in others:
    thread.start()
for turn in range(6):
    child = os.fork()
    if child == 0:
        for program in programs:
            for num_threads in (1, 2, 3):
                rotate_and_check(program, 50, 100, num_threads)
        again = rotating(kernels, target, count=50, rounds=100)
        rotate_and_check(again, 50, 100, 2)
        os._exit(0)
    rotate_and_check(programs[0], 50, 100, 2)
    assert os.waitpid(child, 0)[1] == 0, turn
stop.set()
for thread in others:
    thread.join()
assert not failed
"""

WITHOUT_LLVM = """
import sys
from pathlib import Path
from types import FrameType
sys.modules["llvmlite"] = None
import numpy as np
from gossamer.programs import host
from gossamer.programs.archive import KernelArchive
from gossamer.programs.program import Program, walker_name
from gossamer.targets import host_target
import pickle
target = host_target(host.cpu_features())
place, key, plan = Path(sys.argv[1]), sys.argv[2], pickle.loads(bytes.fromhex(sys.argv[3]))
program = Program(plan, KernelArchive(place, key), target)
x, y, z = np.arange(64, dtype=np.float32), np.ones(64, np.float32), np.zeros(64, np.float32)
for base, array in (("x", x), ("y", y), ("z", z)):
    program.bind(base, array.ctypes.data)
program.run(2)
sys.stdout.write(z.tobytes().hex())
assert not [name for name in sys.modules if name.startswith(("llvmlite.", "gossamer.codegen"))]
"""

AT_EXIT = """
import sys, threading
from tests.programs.kernels import *
target = target_here()
program = rotating(kernels_in_memory([Rotate(target.name)], target), target, count=50, rounds=10)
for _ in range(100):
    program.run(3)
del program
"""


def run_python(code: str, *arguments: str) -> str:
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-X", "faulthandler", "-c", code, *arguments]
    return subprocess.run(command, cwd=root, timeout=HANGS, check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_may_fork_after_its_threads_were_started(target: Target) -> None:
    run_python(FORK)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_may_fork_while_others_of_its_threads_run_programs(target: Target) -> None:
    run_python(FORK_WHILE_OTHERS_RUN)


def test_a_process_ends_while_its_threads_still_wait(target: Target) -> None:
    run_python(AT_EXIT)


def test_a_program_runs_where_llvm_cannot_be_imported(target: Target, tmp_path: Path) -> None:
    key = archive_key(target, generator_version())
    specs = [Add(target.name), WalkSpec(target.plain.name, CONVENTION)]
    assert KernelArchive(tmp_path / "kernels", key).add(compile_kernels(specs, target))
    plan = pickle.dumps(adding(target, 64)).hex()
    x = np.arange(64, dtype=np.float32)
    t = expected_sum(x, np.ones(64, np.float32), target.lanes())
    found = run_python(WITHOUT_LLVM, str(tmp_path / "kernels"), key, plan)
    assert found == expected_sum(t, t, target.lanes()).tobytes().hex()
