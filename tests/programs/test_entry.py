"""The short way from Python into a program, and ctypes' where there is none."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable

import pytest

from gossamer.codegen.compiler import compile_kernels
from gossamer.codegen.kernels.enter import EnterSpec
from gossamer.programs import entry, host, program
from gossamer.programs.archive import KernelArchive
from gossamer.programs.program import ARENA, Address, Program, ProgramBuilder, enter_name
from gossamer.targets import Target, all_targets
from tests.programs.kernels import Meet, Rotate, kernels_in_memory, target_here

CONVENTION = "win64" if sys.platform == "win32" else ""

needs_entry = pytest.mark.skipif(not entry.IS_POSSIBLE, reason="this Python has no such functions: ctypes calls")


@pytest.fixture(scope="module")
def target() -> Target:
    return target_here()


@pytest.fixture(scope="module")
def kernels(target: Target) -> KernelArchive:
    return kernels_in_memory([Rotate(target.name), Meet(target.name), EnterSpec(target.plain.name, CONVENTION)], target)


def turning(kernels: KernelArchive, target: Target) -> tuple[Program, Callable[[], object]]:
    """A program that turns a word of its arena on by one with every run, and what runs it again."""
    rotate = Rotate(target.name)
    builder = ProgramBuilder()
    word = Address(ARENA)
    builder.command(rotate.name, builder.block(rotate.arguments.words(x=word, y=word, count=1, shift=0)))
    made = Program(builder.plan(arena=8), kernels, target)
    again = made.again()
    assert again is not None
    return made, again


def word_of(made: Program) -> int:
    return made.memory[ARENA].view().cast("q")[0]


@pytest.mark.parametrize("target", all_targets().values(), ids=list(all_targets()))
def test_programs_ask_for_it_by_its_name(target: Target) -> None:
    assert EnterSpec(target.plain.name, CONVENTION).name == enter_name(target)


@needs_entry
def test_it_runs_the_program(target: Target, kernels: KernelArchive) -> None:
    made, again = turning(kernels, target)
    assert type(again) is type(len)
    before = sys.getrefcount(None)
    assert [again() for _ in range(1000)] == [None] * 1000
    assert word_of(made) == 1000
    assert abs(sys.getrefcount(None) - before) < 100


@needs_entry
def test_each_program_has_its_own(target: Target, kernels: KernelArchive) -> None:
    turned = [turning(kernels, target) for _ in range(5)]
    for number, (_, again) in enumerate(turned):
        for _ in range(number):
            again()
    assert [word_of(made) for made, _ in turned] == [0, 1, 2, 3, 4]
    del turned[:]
    gc.collect()


@needs_entry
def test_other_threads_run_meanwhile(target: Target, kernels: KernelArchive) -> None:
    flags = host.Memory(24)
    words = flags.view().cast("q")
    meet = Meet(target.name)

    def meeting(own: int, other: int) -> Callable[[], object]:
        builder = ProgramBuilder()
        places = {"own": Address("flags", own), "other": Address("flags", other), "met": Address("flags", 16)}
        builder.command(meet.name, builder.block(meet.arguments.words(**places)))
        made = Program(builder.plan(), kernels, target)
        made.bind("flags", flags)
        programs.append(made)
        again = made.again()
        assert again is not None
        return again

    programs: list[Program] = []
    there, here = meeting(0, 8), meeting(8, 0)
    thread = threading.Thread(target=there)
    thread.start()
    here()
    thread.join()
    assert words[2] == 1


@pytest.mark.parametrize("lacks", ["the Python", "the kernel"])
def test_ctypes_calls_where_there_is_none(
    target: Target, kernels: KernelArchive, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    if lacks == "the Python":
        monkeypatch.setattr(program, "IS_POSSIBLE", False)
    else:
        kernels = kernels_in_memory([Rotate(target.name)], target)
    made, again = turning(kernels, target)
    assert type(again) is not type(len)
    again()
    assert word_of(made) == 1


@pytest.mark.parametrize("target", [each for each in all_targets().values() if each.plain is each],
                         ids=lambda target: target.name)  # fmt: skip
def test_it_is_compiled_for_every_system(target: Target) -> None:
    x86 = target.triple.startswith("x86_64")
    specs = [EnterSpec(target.name), *[EnterSpec(target.name, "win64")] * x86]
    assert all(len(blob.code) < 256 for blob in compile_kernels(specs, target, 1).values())
