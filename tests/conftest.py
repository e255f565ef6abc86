"""Options and paths that all tests share."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = ("peer", "slow", "release", "corpus", "browser", "engines", "emulator")

MANY = (
    "tests/codegen/",
    "tests/convert/",
    "tests/delegates/",
    "tests/flex/kernels/",
    "tests/micro/kernels/",
    "tests/ops/",
    "tests/runtime/test_edited_files.py",
    "tests/test_docs.py::test_a_row_of_the_page_on_operators",
    "tests/test_versions.py",
)
"""Where parametrised tests have more cases than have to run each time."""

EVERY = 7
"""Which of those cases run by default: the first, and each that is so many behind; a prime, so that every value of
every parameter has its turn. All of them run with any option of `OPTIONAL`, as ``--corpus`` in `.ci/run`, and in files
that are picked by hand."""

HANGS = 1800.0
"""Seconds after which something is taken for hanging. No test says how fast anything is: others may want the CPUs."""

# Kernels are compiled once, and not into the archive of whoever runs the tests.
os.environ.setdefault("GOSSAMER_CACHE_DIR", str(ROOT / ".pytest_cache" / "kernels"))

# Modules are compiled once, and not again in each of the processes that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What fails on its way to machine code fails the test, which the reference kernels would pass.
os.environ.setdefault("GOSSAMER_STRICT", "1")

hypothesis.settings.register_profile("gossamer", deadline=None)
hypothesis.settings.load_profile("gossamer")


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker in OPTIONAL:
        parser.addoption(f"--{marker}", action="store_true", help=f"run the tests marked {marker} too")
    words = "keep the kernels' IR as it is; then look at git diff"
    parser.addoption("--update-goldens", action="store_true", help=words)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process for each CPU if everything runs; what is picked by hand runs in one, where a debugger works."""
    picked = config.args != config.getini("testpaths") or config.option.keyword or config.option.update_goldens
    return 0 if picked else os.cpu_count() or 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {marker for marker in OPTIONAL if not config.getoption(f"--{marker}")}
    picked = config.option.keyword or any(".py" in argument for argument in config.args)
    many = () if picked or len(left_out) < len(OPTIONAL) else MANY
    seen: Counter[str] = Counter()
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        is_left = not left_out.isdisjoint(mark.name for mark in item.iter_markers())
        if not is_left and item.nodeid.startswith(many):
            test, _, case = item.nodeid.partition("[")
            is_left = bool(case) and seen[test] % EVERY != 0
            seen[test] += 1
        (deselected if is_left else selected).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = selected


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    # Tests and modules stay until the end; looking through them again and again is a sixth of the time.
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # nothing is old then: whole collections would be due every few tests


def seeds(few: int, most: int) -> list[Any]:
    """Of random cases: a few by default, ``most`` with the slow tests."""
    return thinned(range(most), range(few))


def thinned(values: Iterable[Any], kept: Container[Any]) -> list[Any]:
    """Values of a parameter: those in ``kept`` by default, all of them with the slow tests."""
    return [value if value in kept else pytest.param(value, marks=pytest.mark.slow) for value in values]


def corpus_directory() -> Path | None:
    """The conformance corpus: ``GOSSAMER_CORPUS``, or where it lies beside a checkout; ``None`` if it is not there."""
    for place in (os.environ.get("GOSSAMER_CORPUS"), ROOT.parent / "shared" / "corpus"):
        if place and (Path(place) / "run_corpus.py").exists():
            return Path(place)
    return None


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have it: the reference kernels run where machine code fails, and nothing is raised."""
    monkeypatch.setenv("GOSSAMER_STRICT", "0")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The conformance corpus; the test is skipped where there is none."""
    place = corpus_directory()
    if place is None:
        pytest.skip("the conformance corpus is not here (GOSSAMER_CORPUS or ../shared/corpus)")
    return place


_STATES: dict[tuple[str, str], Any] = {}
"""Of generators of random numbers in modules of tests, as they were before any test."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Each test draws the numbers that it draws alone, whatever ran before it."""
    module = getattr(item, "module", None)
    for name, generator in vars(module).items() if module is not None else ():
        if isinstance(generator, np.random.Generator):
            key = item.nodeid.partition("::")[0], name
            generator.bit_generator.state = _STATES.setdefault(key, generator.bit_generator.state)
