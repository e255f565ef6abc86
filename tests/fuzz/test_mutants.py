"""Mutants of good models: each is run or turned down in good order, within its time and memory."""

from __future__ import annotations

import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from gossamer.delegates.jit import default_delegate
from gossamer.errors import ModelError
from gossamer.model.reader import read_model
from gossamer.programs.program import ARENA, Program
from gossamer.schema import AddOptions, MulOptions, TensorType
from tests.conftest import ROOT, corpus_directory
from tests.fuzz.compound import KINDS, Damage, Draft, compound
from tests.fuzz.driving import ORDERLY, Outcome, difference, drive
from tests.fuzz.guards import Context, guards, model
from tests.fuzz.mutations import damaged_bytes, damaged_model, mutant
from tests.fuzz.peer import judge
from tests.fuzz.sandbox import Sandbox
from tests.fuzz.seeds import corpus_seeds, own_seeds
from tests.runtime.graphs import ModelMaker, adder


def single(content: bytes, donor: bytes, seed: int) -> bytes:
    return mutant(content, seed)


def failures(
    seeds: list[tuple[str, bytes]],
    numbers: range,
    until: float = float("inf"),
    damage: Callable[[bytes, bytes, int], bytes] = single,
) -> list[str]:
    """The mutants that did not go in good order, one line each."""
    found = []
    with Sandbox() as sandbox:
        for number in numbers:
            rng = random.Random(number)
            name, content = rng.choice(seeds)
            outcome = sandbox.drive(damage(content, rng.choice(seeds)[1], number), number)
            if outcome.verdict not in (*ORDERLY, "unlike"):
                found.append(f"{name}, seed {number}: {outcome.verdict} in {outcome.stage}: {outcome.detail}")
            if time.monotonic() > until:
                break
    return found


def test_a_few_hundred_mutants() -> None:
    assert failures(list(own_seeds(1)), range(200)) == []


@pytest.mark.slow
def test_many_mutants() -> None:
    corpus = corpus_directory()
    seeds = [*own_seeds(), *(corpus_seeds(corpus) if corpus is not None else ())]
    assert failures(seeds, range(1_000_000, 1_050_000), time.monotonic() + 1800) == []


def test_the_same_seed_makes_the_same_mutant() -> None:
    for number in range(50):
        assert mutant(adder(), number) == mutant(adder(), number)


def test_damage_to_structure_leaves_a_model() -> None:
    rng = random.Random(5)
    for _ in range(200):
        read_model(damaged_model(adder(), rng))


def test_damage_to_bytes_is_mostly_noticed() -> None:
    rng = random.Random(5)
    noticed = [drive(damaged_bytes(adder(), rng)).stage == "construct" for _ in range(200)]
    assert 50 < sum(noticed) < 200


def test_good_models_run() -> None:
    assert drive(adder()).verdict == "ran"


# The judge and the sandbox judge rightly.


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(KeyError("x"), "leak"), (ValueError("x"), "leak"), (UserWarning("x"), "noise"), (AttributeError("x"), "leak")],
)
def test_what_is_not_documented_is_found(monkeypatch: pytest.MonkeyPatch, error: Exception, verdict: str) -> None:
    def trip(*_: object) -> None:
        raise error

    monkeypatch.setattr("gossamer.runtime.subgraph.Subgraph.invoke", trip)
    outcome = drive(adder())
    assert (outcome.verdict, outcome.stage) == (verdict, "invoke 0")


def test_tripping_in_a_kernel_is_clumsy(monkeypatch: pytest.MonkeyPatch) -> None:
    import gossamer.ops.add as add

    def kernel(_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(add.op, "reference_function", kernel)
    monkeypatch.setattr(add.op, "lower_function", None)
    outcome = drive(adder())
    assert (outcome.verdict, outcome.stage) == ("clumsy", "invoke 0")
    assert "ADD (node 0" in outcome.detail


def test_a_worker_that_dies_costs_one_mutant() -> None:
    with Sandbox() as sandbox:
        assert sandbox.drive(adder()).verdict == "ran"
        assert sandbox._worker is not None
        sandbox._worker.kill()
        sandbox._worker.wait()
        assert sandbox.drive(adder()).verdict == "crash"
        assert sandbox.drive(adder()).verdict == "ran"


# Several things at once.


def test_a_few_hundred_compound_mutants() -> None:
    assert failures(list(own_seeds(1)), range(200), damage=compound) == []


@pytest.mark.parametrize("damage", [damage for _, damage in KINDS], ids=lambda damage: damage.__name__)
def test_each_kind_of_damage_changes_a_model(damage: Damage) -> None:
    model, donor = read_model(two_operators()), read_model(adder())
    rng = random.Random(3)
    changed: set[bytes] = set()
    for _ in range(40):
        draft = Draft(model, donor)
        damage(draft, rng)
        with suppress(ModelError, struct.error):  # a value that the format cannot express
            changed.add(draft.written())
    assert changed - {Draft(model, donor).written()}


def test_the_same_seed_makes_the_same_compound_mutant() -> None:
    for number in range(50):
        assert compound(two_operators(), adder(), number) == compound(two_operators(), adder(), number)


def two_operators() -> bytes:
    make = ModelMaker()
    x, y, z = make.tensor((2, 3)), make.tensor((2, 3)), make.tensor((2, 3))
    one = make.constant(np.ones(3), np.float32, TensorType.FLOAT32)
    make.op("ADD", [x, one], [y], AddOptions())
    make.op("MUL", [y, y], [z], MulOptions())
    make.io([x], [z])
    return make.model()


# Guards.


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by mprotect")
@pytest.mark.parametrize("place", ["memory[8]", "memory[-1]"])
def test_a_guard_is_deadly(place: str) -> None:
    before = place == "memory[-1]"
    program = (
        "import ctypes; from tests.fuzz.guards import guarded\n"
        f"held = guarded(8, before={before})\n"
        "memory = ctypes.cast(held.ctypes.data, ctypes.POINTER(ctypes.c_ubyte))\n"
        "print(memory[0], memory[7], flush=True)\n"
        f"{place}"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert (ended.stdout, ended.returncode) == ("0 0\n", -signal.SIGSEGV)


@pytest.mark.skipif(default_delegate() is None, reason="no machine code for this CPU")
def test_a_program_between_guards_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Any] = []
    copied = Context.memory

    def memory(context: Context, tensor: Any) -> Any:
        held.append(copied(context, tensor))
        return held[-1]

    monkeypatch.setattr(Context, "memory", memory)
    for seed in range(4):
        wanted = drive(two_operators(), seed)
        before = len(held)
        with guards(seed):
            got = drive(model(two_operators()), seed)
        assert wanted.results
        assert difference(got, wanted) is None
        assert len(held) > before


@pytest.mark.skipif(default_delegate() is None, reason="no machine code for this CPU")
def test_who_writes_into_the_slack_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Program.run

    def write(program: Program, *arguments: object, **named: object) -> None:
        run(program, *arguments, **named)  # type: ignore[arg-type]
        program.memory[ARENA].view()[program.plan.sizes[ARENA] + 3] = 0

    monkeypatch.setattr(Program, "run", write)
    with guards(0):
        outcome = drive(two_operators())
    assert (outcome.verdict, outcome.stage) == ("clumsy", "invoke 0")
    assert "has written behind its memory arena" in outcome.detail


# LiteRT as the judge.


class Bench:
    """What LiteRT says, by resolver; in memory that held something else before, the other thing."""

    def __init__(self, **outcomes: Outcome) -> None:
        self.outcomes = outcomes

    def drive(self, content: bytes, seed: int, resolver: str, memory: int = 0) -> Outcome:
        name = {"AUTO": "auto", "BUILTIN_REF": "ref"}.get(resolver, "optimized")
        return self.outcomes.get(f"{name}_again" if memory else name) or self.outcomes[name]


def ran(*levels: int, stage: str = "get 1") -> Outcome:
    value = np.array(levels, np.int8)
    return Outcome("ran", "end", results=[(stage, "int8", value.shape, value)])


@pytest.mark.parametrize(
    ("default", "reference", "bench", "verdict"),
    [
        (ran(1), ran(2), Bench(auto=ran(1), optimized=ran(3), ref=ran(2)), "settled"),
        (ran(1), ran(2), Bench(auto=ran(3), optimized=ran(1), ref=ran(2)), "settled"),
        (ran(1), ran(2), Bench(auto=ran(2), optimized=ran(2), ref=ran(2)), "unlike"),
        (ran(1), ran(2), Bench(auto=ran(1, 1), optimized=ran(2), ref=ran(2)), "apart"),
        (ran(1), ran(2), Bench(auto=ran(2), auto_again=ran(3), optimized=ran(2), ref=ran(2)), "undefined"),
        (ran(1), ran(2), Bench(auto=Outcome("crash"), optimized=Outcome("crash"), ref=ran(2)), "unjudged"),
        (ran(1), ran(2), Bench(auto=ran(1), optimized=ran(2), ref=ran(3)), "optimized"),
        (ran(1), ran(2), Bench(auto=ran(1), optimized=ran(1), ref=Outcome("refused", "invoke 1")), "broader"),
        (ran(1), Outcome("refused", "invoke 1"), Bench(auto=ran(1), optimized=ran(1), ref=ran(1)), "apart"),
        (ran(1, stage="get 2"), ran(2), Bench(auto=ran(7), optimized=ran(7), ref=ran(2)), "extreme"),
    ],
)
def test_litert_judges(default: Outcome, reference: Outcome, bench: Any, verdict: str) -> None:
    found = difference(default, reference)
    assert found is not None
    found.paths = (default, reference)
    assert judge(found, bench, b"", 0).verdict == verdict
