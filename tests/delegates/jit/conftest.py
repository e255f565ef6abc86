"""What is marked ``emulator`` runs its programs there: AArch64 is the CPU of this system then."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest

from gossamer.delegates.jit import delegate
from gossamer.programs import host, library, program, team
from gossamer.programs.team import Walker
from gossamer.programs.throttle import Throttle
from gossamer.runtime import arenas
from tests.codegen import emulator
from tests.codegen.emulator import DOTPROD, EXECUTE, NEON, READ, THREADS, machine
from tests.codegen.kernels import harness
from tests.conftest import HANGS
from tests.delegates.jit.running import TARGETS


class EmulatedMemory(host.Memory):
    """Memory of the machine."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._bytes = machine().memory(size, to_the_end=False)
        self.address = self._bytes.ctypes.data


class EmulatedCode(host.ExecutableMemory):
    """Machine code in the memory of the machine, until the end of the test."""

    kept: ClassVar[list[np.ndarray]] = []

    @classmethod
    def from_file(cls, file: int, size: int) -> host.ExecutableMemory:
        os.lseek(file, 0, os.SEEK_SET)
        return cls.from_bytes(os.read(file, size))

    @classmethod
    def from_bytes(cls, code: bytes) -> host.ExecutableMemory:
        memory = machine().memory(len(code), READ | EXECUTE, to_the_end=False)
        memory[:] = np.frombuffer(code, np.uint8)
        cls.kept.append(memory)
        return cls(memory.ctypes.data, len(code), 0)

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def on_the_emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs, their memory and that of tensors are there; the test is skipped where there is no emulator."""
    if request.node.get_closest_marker("emulator") is None:
        yield
        return
    emulated = machine()

    def walker_at(address: int) -> Walker:
        return lambda call: emulated.call(address, call.value)

    monkeypatch.setattr(delegate, "host_target", lambda _: DOTPROD)
    clock = host.Clock(emulator.system_call(emulator.CLOCK_GETTIME), 1, 10**9)
    monkeypatch.setattr(host, "Memory", EmulatedMemory)
    monkeypatch.setattr(host, "ExecutableMemory", EmulatedCode)
    monkeypatch.setattr(host, "yield_address", lambda: emulator.system_call(emulator.SCHED_YIELD))
    monkeypatch.setattr(host, "clock", lambda: clock)
    monkeypatch.setattr(host, "usable_cpus", lambda: THREADS)
    monkeypatch.setattr(program, "walker_at", walker_at)
    monkeypatch.setattr(Throttle, "ran", lambda *_: None)
    monkeypatch.setattr(library, "_libraries", {})
    monkeypatch.setattr(arenas, "aligned_memory", lambda size: emulated.memory(size, to_the_end=False))
    idle: defaultdict[int, list[team.Team]] = defaultdict(list)
    monkeypatch.setattr(team, "_idle", idle)
    here, TARGETS[:] = TARGETS[:], [NEON, DOTPROD]
    with harness.on(emulated):
        yield
    TARGETS[:] = here
    teams = [member for members in idle.values() for member in members]
    for each in teams:
        each.stop()
    for each in teams:
        each.join(HANGS)
    EmulatedCode.kept.clear()
