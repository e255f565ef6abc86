"""The three allocators of an arena: head up, tail down, temporary memory between."""

from __future__ import annotations

import pytest

from gossamer.errors import ArenaError
from gossamer.micro.arena import (
    NonPersistentArenaBufferAllocator,
    PersistentArenaBufferAllocator,
    SingleArenaBufferAllocator,
)


def test_head_and_tail_grow_towards_each_other() -> None:
    arena = SingleArenaBufferAllocator(256)
    assert arena.resize_buffer(40, 16) == 0
    assert arena.allocate_persistent_buffer(10, 16) == 240
    assert arena.allocate_persistent_buffer(3, 1) == 237
    assert (arena.non_persistent_used_bytes, arena.persistent_used_bytes, arena.used_bytes) == (40, 19, 59)
    assert arena.slack == 237 - 40


def test_the_head_shrinks_too() -> None:
    arena = SingleArenaBufferAllocator(256)
    arena.resize_buffer(100, 16)
    arena.resize_buffer(0, 1)
    assert (arena.head, arena.used_bytes) == (0, 0)
    assert arena.slack == 156


def test_temporary_memory_is_stacked_above_the_head() -> None:
    arena = SingleArenaBufferAllocator(256)
    arena.resize_buffer(20, 4)
    first, second = arena.allocate_temp(8, 16), arena.allocate_temp(8, 8)
    assert (first, second, arena.non_persistent_used_bytes) == (32, 40, 48)
    arena.deallocate_temp(first)
    assert not arena.is_all_temp_deallocated()
    with pytest.raises(ArenaError, match=r"Number of allocated temp buffers: 1\. Checksum passing status: 0"):
        arena.reset_temp_allocations()
    arena.deallocate_temp(second)
    arena.reset_temp_allocations()
    assert arena.temp == arena.head == 20


def test_giving_back_what_was_not_taken_shows() -> None:
    arena = SingleArenaBufferAllocator(256)
    arena.allocate_temp(8, 8)
    arena.allocate_temp(8, 8)
    arena.deallocate_temp(8)
    arena.deallocate_temp(8)
    with pytest.raises(ArenaError, match="Checksum passing status: 0"):
        arena.resize_buffer(0, 1) if arena.is_all_temp_deallocated() else arena.reset_temp_allocations()


def test_the_head_cannot_be_resized_under_temporary_memory() -> None:
    arena = SingleArenaBufferAllocator(256)
    arena.allocate_temp(8, 8)
    with pytest.raises(ArenaError, match="cannot be resized before reset_temp_allocations"):
        arena.resize_buffer(16, 16)


def test_a_persistent_buffer_may_run_over_temporary_memory() -> None:
    arena = SingleArenaBufferAllocator(64)
    arena.resize_buffer(16, 16)
    arena.allocate_temp(32, 8)
    assert arena.allocate_persistent_buffer(32, 16) == 32
    assert arena.slack == -16


@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda arena: arena.resize_buffer(70, 16), "Failed to resize buffer. Requested: 70, available 64, missing: 6"),
        (
            lambda arena: arena.allocate_persistent_buffer(65, 1),
            "Failed to allocate tail memory. Requested: 65, available 64, missing: 1",
        ),
        (
            lambda arena: arena.allocate_temp(65, 1),
            "Failed to allocate temp memory. Requested: 65, available 64, missing: 1",
        ),
    ],
)
def test_too_much_says_how_much(take: object, message: str) -> None:
    arena = SingleArenaBufferAllocator(64)
    with pytest.raises(ArenaError, match=message):
        take(arena)  # type: ignore[operator]
    assert (arena.head, arena.temp, arena.tail) == (0, 0, 64)


def test_what_is_available_is_aligned() -> None:
    arena = SingleArenaBufferAllocator(100)
    arena.resize_buffer(3, 1)
    arena.allocate_persistent_buffer(1, 1)
    assert arena.available_memory(16) == 96 - 16
    arena.allocate_temp(80, 16, spare=48)
    assert arena.slack == 3 + 48


def test_separate_arenas() -> None:
    tail, head = PersistentArenaBufferAllocator(64), NonPersistentArenaBufferAllocator(64)
    assert tail.allocate_persistent_buffer(20, 16) == 32
    head.resize_buffer(48, 16)
    assert head.allocate_temp(16, 16) == 48
    assert (tail.persistent_used_bytes, head.non_persistent_used_bytes) == (32, 64)
    with pytest.raises(ArenaError, match="missing: 16"):
        tail.allocate_persistent_buffer(40, 16)
