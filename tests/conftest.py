"""Options and paths that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = ("peer", "slow", "corpus", "emulator")

# Kernels are compiled once, and not into the archive of whoever runs the tests.
os.environ.setdefault("GOSSAMER_CACHE_DIR", str(ROOT / ".pytest_cache" / "kernels"))


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker in OPTIONAL:
        parser.addoption(f"--{marker}", action="store_true", help=f"run the tests marked {marker} too")
    words = "keep the kernels' IR as it is; then look at git diff"
    parser.addoption("--update-goldens", action="store_true", help=words)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {marker for marker in OPTIONAL if not config.getoption(f"--{marker}")}
    deselected = [item for item in items if left_out & {mark.name for mark in item.iter_markers()}]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in set(deselected)]


def corpus_directory() -> Path | None:
    """The conformance corpus: ``GOSSAMER_CORPUS``, or where it lies beside a checkout; ``None`` if it is not there."""
    for place in (os.environ.get("GOSSAMER_CORPUS"), ROOT.parent / "shared" / "corpus"):
        if place and (Path(place) / "run_corpus.py").exists():
            return Path(place)
    return None


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The conformance corpus; the test is skipped where there is none."""
    place = corpus_directory()
    if place is None:
        pytest.skip("the conformance corpus is not here (GOSSAMER_CORPUS or ../shared/corpus)")
    return place
