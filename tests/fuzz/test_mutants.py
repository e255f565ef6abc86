"""Mutants of good models: each is run or turned down in good order, within its time and memory."""

from __future__ import annotations

import random
import time

import pytest

from gossamer.model.reader import read_model
from tests.conftest import corpus_directory
from tests.fuzz.driving import ORDERLY, drive
from tests.fuzz.mutations import damaged_bytes, damaged_model, mutant
from tests.fuzz.sandbox import Sandbox
from tests.fuzz.seeds import corpus_seeds, own_seeds
from tests.runtime.graphs import adder


def failures(seeds: list[tuple[str, bytes]], numbers: range, until: float = float("inf")) -> list[str]:
    """The mutants that did not go in good order, one line each."""
    found = []
    with Sandbox() as sandbox:
        for number in numbers:
            name, content = random.Random(number).choice(seeds)
            outcome = sandbox.drive(mutant(content, number), number)
            if outcome.verdict not in ORDERLY:
                found.append(f"{name}, seed {number}: {outcome.verdict} in {outcome.stage}: {outcome.detail}")
            if time.monotonic() > until:
                break
    return found


def test_a_few_hundred_mutants() -> None:
    assert failures(list(own_seeds(1)), range(400)) == []


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
    assert (outcome.verdict, outcome.stage) == (verdict, "invoke")


def test_tripping_in_a_kernel_is_clumsy(monkeypatch: pytest.MonkeyPatch) -> None:
    import gossamer.ops.add as add

    def kernel(_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(add.op, "reference_function", kernel)
    monkeypatch.setattr(add.op, "lower_function", None)
    outcome = drive(adder())
    assert (outcome.verdict, outcome.stage) == ("clumsy", "invoke")
    assert "ADD (node 0" in outcome.detail


def test_a_worker_that_dies_costs_one_mutant() -> None:
    with Sandbox() as sandbox:
        assert sandbox.drive(adder()).verdict == "ran"
        assert sandbox._worker is not None
        sandbox._worker.kill()
        sandbox._worker.wait()
        assert sandbox.drive(adder()).verdict == "crash"
        assert sandbox.drive(adder()).verdict == "ran"
