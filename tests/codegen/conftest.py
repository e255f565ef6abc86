"""What is marked ``emulator`` runs its kernels there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.codegen import emulator
from tests.codegen.kernels import harness


@pytest.fixture(autouse=True)
def on_the_emulator(request: pytest.FixtureRequest) -> Iterator[None]:
    """`harness.machine` for tests that are marked; they are skipped where there is no emulator."""
    if request.node.get_closest_marker("emulator") is None:
        yield
    else:
        with harness.on(emulator.machine()):
            yield
