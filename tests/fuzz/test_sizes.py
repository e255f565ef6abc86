"""Sequences of shapes, a few; ``python -m tests.fuzz --sizes`` makes them as long as you like, of all models."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.delegates.jit.running import TARGETS
from tests.delegates.jit.test_template import attention
from tests.delegates.jit.test_turns import rows
from tests.fuzz.sizes import Sequencer
from tests.runtime.test_allocations import quantized, remembering

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")


@pytest.mark.parametrize(
    "make",
    [remembering, *(pytest.param(make, marks=pytest.mark.slow) for make in (attention, quantized, rows))],
    ids=lambda make: make.__name__,
)
def test_no_shape_before_changes_a_result(make: Callable[[], bytes]) -> None:
    report = Sequencer(make(), 2, share=0).run(12, 60)
    assert report.found == []
    assert report.comparisons > 6
    assert report.filled + report.fitted + report.restored
