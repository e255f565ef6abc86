from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.micro import MicroInterpreter, measure
from gossamer.micro.offline import is_planned_offline, smallest_plan, smallest_plan_in_place, with_offline_plan
from gossamer.model import read_model
from gossamer.model.metadata import OfflineAllocation, offline_allocation, with_metadata, with_offline_allocation
from gossamer.model.writer import write_model
from tests.micro.models import chain, chooser, multiplier


def test_the_written_plan_is_obeyed() -> None:
    model = read_model(chain())
    before = measure(model)
    assert (before.head_bytes, before.lower_bound_bytes) == (256, 192)
    planned = read_model(write_model(with_offline_plan(model)))
    after = measure(planned)
    assert (after.head_bytes, after.tail_bytes) == (192, before.tail_bytes)
    after.plan.check()
    assert offline_allocation(planned) == OfflineAllocation((64, 0, 128, 0, -1, -1, -1))
    assert {buffer.tensor: buffer.offset for buffer in after.buffers} == {0: 64, 1: 0, 2: 128, 3: 0}


def test_a_plan_has_the_tensors_of_all_subgraphs() -> None:
    model = read_model(chooser())
    before = measure(model, pointer_size=8)
    assert (before.used_bytes, before.minimum_arena_bytes, before.head_bytes) == (2000, 2256, 528)
    planned = with_offline_plan(model)
    after = measure(planned, pointer_size=8)
    assert (after.used_bytes, after.minimum_arena_bytes, after.head_bytes) == (1936, 2256, 464)
    assert offline_allocation(planned) == OfflineAllocation(
        (448, 352, 128, *(256, 0, 256, 0, -1, -1, -1), *(256, 0, -1))
    )


def test_results_do_not_change() -> None:
    model = read_model(chain())
    outputs = []
    for each in (model, with_offline_plan(model)):
        interpreter = MicroInterpreter(each, arena=measure(each).minimum_arena_bytes)
        interpreter.allocate_tensors()
        interpreter.input(0).store(np.arange(24, dtype=np.float32).reshape(1, 24))
        interpreter.invoke()
        outputs.append(interpreter.output(0).array().tolist())
    assert outputs[0] == outputs[1] == [[*range(16), *[0] * 16]]


def test_without_a_gain_the_plan_is_left_open() -> None:
    planned = with_offline_plan(read_model(multiplier()))
    assert offline_allocation(planned) == OfflineAllocation((-1, -1, -1, -1))
    assert not is_planned_offline(planned)
    assert measure(planned).head_bytes == 512


def test_an_older_plan_is_dropped() -> None:
    # Every tensor has bytes of its own.
    wasteful = with_offline_allocation(read_model(chain()), OfflineAllocation((0, 96, 160, 224, -1, -1, -1)))
    report = measure(wasteful)
    assert (report.head_bytes, smallest_plan(report).size) == (352, 192)
    assert measure(with_offline_plan(wasteful)).head_bytes == 192


def test_operators_that_could_write_over_their_input() -> None:
    model = read_model(multiplier())
    report = measure(model)
    assert smallest_plan(report).size == 512
    plan = smallest_plan_in_place(model, report)
    assert (plan.size, len(plan.placements)) == (256, 1)


def test_is_planned_offline() -> None:
    model = read_model(chain())
    assert not is_planned_offline(model)
    assert is_planned_offline(with_offline_plan(model))
    wrong = with_metadata(model, "OfflineMemoryAllocation", np.array([1, 1, 2, 0, 0], "<i4"))
    with pytest.raises(ModelError, match="has 2 offsets for the 7 tensors of the model"):
        is_planned_offline(wrong)
    with pytest.raises(ModelError, match="has 2 offsets"):
        measure(wrong)
