"""Who hands out the bytes of the arena: from the head upwards what does not last, from the tail downwards what does.

Addresses are offsets from the beginning of a buffer, which stands for an address that is a multiple of 16. The head is
one buffer that grows and shrinks: scratch requests while a model is prepared, then the planned tensors. Temporary
memory is stacked above it and given back all at once.
"""

from __future__ import annotations

from typing import NoReturn

from gossamer.errors import ArenaError
from gossamer.micro.abi import align_down, align_up

ALIGNMENT = 16
"""Of every buffer that operators and tensors get (MicroArenaBufferAlignment)."""


class _Arena:
    """``slack``: the bytes that were left over when the arena was fullest. So many fewer would have done."""

    def __init__(self, size: int) -> None:
        self.size = self.slack = size

    def _note(self, left: int) -> None:
        self.slack = min(self.slack, left)


class PersistentArenaBufferAllocator(_Arena):
    """A tail in a buffer of ``size`` bytes: memory that is never given back."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.tail = size

    @property
    def _floor(self) -> int:
        return 0

    @property
    def _occupied(self) -> int:
        return 0

    @property
    def persistent_used_bytes(self) -> int:
        """Bytes of the tail."""
        return self.size - self.tail

    def allocate_persistent_buffer(self, size: int, alignment: int) -> int:
        """The address of so many bytes. Raises `ArenaError` if there are not so many."""
        address = align_down(self.tail - size, alignment)
        if address < self._floor:
            missing = self._floor - address
            _fail("allocate tail memory", size, size - missing, missing)
        self.tail = address
        self._note(address - self._occupied)
        return address


class NonPersistentArenaBufferAllocator(_Arena):
    """A head and temporary memory in a buffer of ``size`` bytes.

    A count and the exclusive or of the addresses tell whether all temporary buffers were given back.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.head = self.temp = self._unread = 0
        self.temp_buffer_count = self.temp_buffer_check_sum = 0

    @property
    def _ceiling(self) -> int:
        return self.size

    @property
    def non_persistent_used_bytes(self) -> int:
        """Bytes of the head, with what is stacked above it."""
        return self.temp

    def resize_buffer(self, size: int, alignment: int) -> int:
        """Make the one buffer at the head so large, and return its address.

        Raises `ArenaError` if there are not so many bytes, or if temporary memory is stacked above it.
        """
        if self.head != self.temp:
            raise ArenaError("the head cannot be resized before reset_temp_allocations()")
        if self._ceiling < size:
            _fail("resize buffer", size, self._ceiling, size - self._ceiling)
        self.head = self.temp = size
        self._note(self._ceiling - size)
        return 0

    def allocate_temp(self, size: int, alignment: int, *, spare: int = 0, unread: int = 0) -> int:
        """The address of so many bytes on top of the stack.

        ``spare`` of them are only taken because they are there; the last ``unread`` bytes of the stack do not matter
        any more once they are written. Raises `ArenaError` if there are not so many.
        """
        address = align_up(self.temp, alignment)
        available = self._ceiling - address
        if available < size:
            _fail("allocate temp memory", size, max(available, 0), size - available)
        self.temp, self._unread = address + size, unread
        self.temp_buffer_check_sum ^= address
        self.temp_buffer_count += 1
        self._note(available - size + spare)
        return address

    def deallocate_temp(self, address: int) -> None:
        """Say that a temporary buffer is not needed any more; `reset_temp_allocations` makes it free."""
        self.temp_buffer_check_sum ^= address
        self.temp_buffer_count -= 1

    def is_all_temp_deallocated(self) -> bool:
        """Whether every temporary buffer was given back."""
        return self.temp_buffer_count == 0 and self.temp_buffer_check_sum == 0

    def reset_temp_allocations(self) -> None:
        """Free all temporary memory. Raises `ArenaError` if some of it was not deallocated."""
        if not self.is_all_temp_deallocated():
            raise ArenaError(
                "All temp buffers must be freed before calling reset_temp_allocations(). Number of allocated temp "
                f"buffers: {self.temp_buffer_count}. Checksum passing status: {int(not self.temp_buffer_check_sum)}"
            )
        self.temp, self._unread = self.head, 0

    def available_memory(self, alignment: int) -> int:
        """Bytes between the temporary memory and the end, both aligned."""
        return max(align_down(self._ceiling, alignment) - align_up(self.temp, alignment), 0)


class SingleArenaBufferAllocator(NonPersistentArenaBufferAllocator, PersistentArenaBufferAllocator):
    """Head and tail in one buffer of ``size`` bytes.

    A persistent allocation is checked against the head, not against the temporary memory above it, as on the device:
    what an operator stacks there while it is prepared may be overwritten by what it then takes from the tail. So an
    arena can be large enough though the two overlap for a moment, and on a device the tensors that a Prepare still
    reads are damaged then. Here temporary memory is counted only, so that nothing is.
    """

    @property
    def _floor(self) -> int:
        return self.head

    @property
    def _occupied(self) -> int:
        return max(self.temp - self._unread, self.head)

    @property
    def _ceiling(self) -> int:
        return self.tail

    @property
    def used_bytes(self) -> int:
        """Bytes of the head, with what is stacked above it, and of the tail."""
        return self.non_persistent_used_bytes + self.persistent_used_bytes


def _fail(what: str, requested: int, available: int, missing: int) -> NoReturn:
    raise ArenaError(f"Failed to {what}. Requested: {requested}, available {available}, missing: {missing}")
