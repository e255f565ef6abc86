"""The facts of an allocated model."""

from __future__ import annotations

import pytest

from gossamer.errors import ArenaError
from gossamer.micro import MicroInterpreter, measure
from gossamer.micro.report import count_resource_variables, report
from gossamer.model import read_model
from tests.micro.models import WIDTHS, chain
from tests.micro.test_interpreter import counter


def test_what_a_chain_of_layers_takes() -> None:
    facts = measure(read_model(chain()))
    assert [buffer.size for buffer in facts.buffers] == [-(-4 * width // 16) * 16 for width in WIDTHS]
    assert facts.used_bytes == facts.head_bytes + facts.tail_bytes
    assert facts.minimum_arena_bytes >= facts.used_bytes
    assert facts.operators == ("FULLY_CONNECTED",)
    scope, alive = facts.peak
    assert alive == facts.lower_bound_bytes
    assert sum(b.size for b in facts.buffers if b.first_use <= scope <= b.last_use) == alive


def test_no_two_buffers_that_are_alive_at_once_overlap() -> None:
    buffers = measure(read_model(chain())).buffers
    for a in buffers:
        for b in buffers:
            if a is not b and a.first_use <= b.last_use and b.first_use <= a.last_use:
                assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


def test_the_smallest_arena_is_the_smallest() -> None:
    model = read_model(chain())
    smallest = measure(model).minimum_arena_bytes
    MicroInterpreter(model, arena=smallest).allocate_tensors()
    with pytest.raises(ArenaError):
        MicroInterpreter(model, arena=smallest - 16).allocate_tensors()


def test_before_there_is_a_plan() -> None:
    with pytest.raises(ValueError, match="call allocate_tensors first"):
        report(MicroInterpreter(chain(), arena=8192))


def test_resource_variables_are_counted_by_name() -> None:
    assert count_resource_variables(read_model(counter())) == 1
    assert count_resource_variables(read_model(chain())) == 0
