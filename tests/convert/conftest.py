"""Of the many cases of a test, some by default: all of them run with ``--corpus`` and with ``--slow``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent

EVERY = 6
"""Which cases of a parametrised test run by default: the first, and each that is so many behind."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    picked = config.option.keyword or any("::" in argument for argument in config.args)
    if picked or config.getoption("--corpus") or config.getoption("--slow"):
        return
    seen: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        if HERE not in item.path.parents:
            kept.append(item)
            continue
        name, _, case = item.nodeid.partition("[")
        (left if case and seen[name] % EVERY else kept).append(item)
        seen[name] += 1
    config.hook.pytest_deselected(items=left)
    items[:] = kept
