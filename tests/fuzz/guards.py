"""Machine code between pages that may not be touched.

What a program reads and writes at its boundary, and the model, end where such a page begins, or begin where one ends.
What it owns ends there too, behind the slack that it may read, and never write (`gossamer.programs.program.SLACK`).
Nothing of this is for memory that Python alone touches.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from gossamer.delegates.jit.delegate import JitKernel
from gossamer.programs import host
from gossamer.programs.program import SCRATCH, SLACK, Program

PATTERN = 0xFE
"""What lies in the slack."""

MODEL_ALIGNMENT = 16
"""Of the bytes of a model: what every allocator gives, and the format asks for."""

_PROT_NONE = 0

Bytes = NDArray[np.uint8]


def guarded(size: int, alignment: int = 1, *, before: bool = False) -> Bytes:
    """Zeroed memory that ends within ``alignment`` before a page that cannot be touched, or begins behind one."""
    page = mmap.PAGESIZE
    room = -(-max(size, 1) // page) * page
    start = host._map_anonymous(room + 2 * page)
    for at in (start, start + page + room):
        if host._libc().mprotect(at, page, _PROT_NONE):
            raise MemoryError("mprotect")
    offset = 0 if before else room - -(-size // alignment) * alignment
    address = start + page + offset
    raw = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(raw, host._unmap, start, room + 2 * page).atexit = False
    return np.frombuffer(raw, np.uint8)


def model(content: bytes) -> Bytes:
    """A copy of a model that ends before such a page."""
    memory = guarded(len(content), MODEL_ALIGNMENT)
    memory[:] = np.frombuffer(content, np.uint8)
    return memory


class Context:
    """What a kernel of a partition is called with, and memory of its own for each tensor at its boundary."""

    def __init__(self, ctx: Any, sizes: dict[int, int], *, before: bool) -> None:
        self._ctx, self._sizes, self._before = ctx, sizes, before
        self._copies: dict[int, tuple[Bytes, Bytes]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def memory(self, tensor: Any) -> Bytes:
        """A copy of a tensor between guards."""
        if tensor.index not in self._copies:
            there: Bytes = self._ctx.memory(tensor)
            if there.nbytes < self._sizes[tensor.index]:
                return there
            there = there[: self._sizes[tensor.index]]
            copy = guarded(there.nbytes, before=self._before)
            copy[:] = there
            self._copies[tensor.index] = there, copy
        return self._copies[tensor.index][1]

    def run(self, node: Any) -> None:
        """A reference kernel after all."""
        self.copy_back()
        self._ctx.run(node)

    def copy_back(self) -> None:
        """What was written is in the tensors, as it would have been."""
        for there, copy in self._copies.values():
            if there.flags.writeable:
                there[:] = copy
        self._copies.clear()


@contextmanager
def guards(seed: int) -> Iterator[None]:
    """Programs that are made meanwhile run between guards."""
    rng = random.Random(seed)
    invoke: Callable[..., None] = JitKernel.invoke
    run: Callable[..., None] = Program.run

    def invoke_guarded(kernel: JitKernel, ctx: Any) -> None:
        if kernel.program is None:
            invoke(kernel, ctx)
            return
        sizes = {tensor.index: size for tensor, _, size in kernel._tensors}
        between = Context(ctx, sizes, before=rng.random() < 0.3)
        invoke(kernel, between)
        between.copy_back()
        kernel._bound = [None] * len(kernel._bound)

    def run_guarded(program: Program, *arguments: Any, **named: Any) -> None:
        slacks = []
        for base, size in program.plan.sizes.items():
            memory = np.frombuffer(program.memory[base].view(), np.uint8)
            if base != SCRATCH and memory.size == size + SLACK:
                memory[size:] = PATTERN
                slacks.append((base, memory[size:]))
        run(program, *arguments, **named)
        for base, slack in slacks:
            if not (slack == PATTERN).all():
                raise AssertionError(f"a program has written behind its memory {base}")

    def make(memory: host.Memory, size: int) -> None:
        held = guarded(size, 64)
        memory.size, memory.address = size, held.ctypes.data
        memory.held = held  # type: ignore[attr-defined]

    with (
        patch.object(JitKernel, "invoke", invoke_guarded),
        patch.object(Program, "run", run_guarded),
        patch.object(host.Memory, "__init__", make),
    ):
        yield
