"""The allocator of a model: what it takes, in which order, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import ArenaError
from gossamer.micro import Category, MicroAllocator, MicroInterpreter, RecordingMicroAllocator
from gossamer.micro.abi import ARM, X86_64
from gossamer.micro.allocator import MAX_SCRATCH_BUFFERS_PER_OP, UNLIMITED
from gossamer.model import read_model
from gossamer.planner.linear import LinearMemoryPlanner
from gossamer.planner.search import SearchMemoryPlanner
from tests.micro.models import chain
from tests.runtime.graphs import adder

LOG = """\
Arena allocation total 1056 bytes
Arena allocation head 64 bytes
Arena allocation tail 992 bytes
'TfLiteEvalTensor data' used 96 bytes with alignment overhead (requested 96 bytes for 4 allocations)
'Persistent TfLiteTensor data' used 128 bytes with alignment overhead (requested 128 bytes for 2 tensors)
'Persistent buffer data' used 168 bytes with alignment overhead (requested 136 bytes for 4 allocations)
'NodeAndRegistration struct' used 128 bytes with alignment overhead (requested 128 bytes for \
2 NodeAndRegistration structs)
"""
"""Of the model `adder`, without the tag that begins each line."""


@pytest.mark.parametrize(("abi", "own"), [(ARM, 36 + 44 + 36), (X86_64, 72 + 72 + 72)])
def test_its_own_objects_lie_in_the_tail(abi: object, own: int) -> None:
    assert MicroAllocator(1024, abi=abi).tail_bytes == own  # type: ignore[arg-type]


def test_the_linear_planner_carries_its_table() -> None:
    assert MicroAllocator(8192, planner=LinearMemoryPlanner()).tail_bytes == 36 + (4 + 4096 + 8) + 36


def test_a_planner_of_the_user_s_own_takes_nothing() -> None:
    assert MicroAllocator(1024, planner=SearchMemoryPlanner()).tail_bytes == 36 + 36


def test_an_arena_that_does_not_hold_the_allocator() -> None:
    with pytest.raises(ArenaError, match="Failed to allocate tail memory"):
        MicroAllocator(100)


def test_two_arenas() -> None:
    allocator = MicroAllocator(1024, non_persistent=1024)
    MicroInterpreter(read_model(chain()), arena=allocator).allocate_tensors()
    single = MicroAllocator(2048)
    MicroInterpreter(read_model(chain()), arena=single).allocate_tensors()
    assert allocator.head_bytes == single.head_bytes == 256
    # 16 and 28 bytes of two allocators for the 36 of one.
    assert allocator.tail_bytes == 592


def test_starting_twice() -> None:
    allocator, model = MicroAllocator(4096), read_model(adder())
    allocator.start_model_allocation(model)
    with pytest.raises(ArenaError, match="started before finishing previously allocated model"):
        allocator.start_model_allocation(model)


def test_finishing_what_was_not_started() -> None:
    with pytest.raises(ArenaError, match="finished before starting allocating model"):
        MicroAllocator(4096).finish_model_allocation(read_model(adder()), [])


def test_twelve_scratch_requests_and_no_more() -> None:
    allocator = MicroAllocator(8192)
    allocator.start_model_allocation(read_model(adder()))
    for _ in range(MAX_SCRATCH_BUFFERS_PER_OP):
        allocator.request_scratch_buffer(8, 0)
    with pytest.raises(ArenaError, match=r"exceeds limit per operator \(12\)"):
        allocator.request_scratch_buffer(8, 0)
    allocator.finish_prepare_node_allocations(0)
    assert allocator.request_scratch_buffer(8, 0) == 12
    assert [request.node for request in allocator.scratch_requests] == [0] * 12 + [-1]


def test_the_log_is_tflite_micro_s() -> None:
    recording = RecordingMicroAllocator(4096, abi=X86_64)
    MicroInterpreter(read_model(adder()), arena=recording).allocate_tensors()
    assert recording.log() == [f"[RecordingMicroAllocator] {line}" for line in LOG.splitlines()]


def test_two_models_share_the_head() -> None:
    allocator = MicroAllocator(8192)
    small = MicroInterpreter(read_model(adder()), arena=allocator)
    small.allocate_tensors()
    assert allocator.head_bytes == 64
    MicroInterpreter(read_model(chain()), arena=allocator).allocate_tensors()
    assert allocator.head_bytes == 256
    small.input(0).store(np.ones((2, 3), np.float32))
    small.invoke()
    assert np.array_equal(small.output(0).array(), np.full((2, 3), 3, np.float32))


def test_an_arena_without_limits_has_no_memory() -> None:
    allocator = MicroAllocator(UNLIMITED)
    MicroInterpreter(read_model(chain()), arena=allocator).allocate_tensors()
    assert allocator.is_measured_only
    assert allocator.recorded[Category.EVAL_TENSORS] == (84, 84, 7)
    assert allocator.minimum_arena_bytes == 960
