"""AArch64 code under qemu-user: an emulator that stays alive, calls what it is told, and shares memory with the test.

It runs a small static executable that is put together here: each of its threads reads calls from a pipe, a function and
seven arguments, and answers with what the function returned. Memory that is allocated here is at the same address
there, and around it is nothing: code that reads or writes beside its buffers does not survive.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import select
import shutil
import struct
import subprocess
import tempfile
import threading
import weakref
from collections import defaultdict, deque
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from gossamer.codegen.compiler import compile_text
from gossamer.programs.archive import Blob
from gossamer.targets import all_targets

NEON, DOTPROD = all_targets()["neon"], all_targets()["dotprod"]

THREADS = 4
"""Calls that may be under way at the same time."""

TIMEOUT = 100
"""Seconds that a call may take."""

READ, WRITE, EXECUTE = 1, 2, 4

# System calls of AArch64, and arguments of theirs.
SCHED_YIELD, CLOCK_GETTIME = 124, 113
_READ, _WRITE, _EXIT, _MUNMAP, _CLONE, _MMAP = 63, 64, 94, 215, 220, 222
_SHARED, _PRIVATE, _FIXED, _ANONYMOUS, _FIXED_NOREPLACE = 0x1, 0x2, 0x10, 0x20, 0x100000
_A_THREAD = 0x50F00  # memory, files and signals are those of the process

_PAGE = 4096
_START, _SIZE = 1 << 40, 1 << 35  # of the memory that is shared; only what is touched is there
_STACK = 1 << 20

# The executable: a page of headers, one of instructions that are written here, and the function that serves.
_EXECUTABLE = 0x400000
_CALL_SYSTEM, _SPAWN, _MAIN, _SERVE = (_EXECUTABLE + offset for offset in (0x1000, 0x1100, 0x1200, 0x2000))
_SVC, _RET, _BR_X16 = 0xD4000001, 0xD65F03C0, 0xD61F0200

_SERVING = """\
define void @k(i64 %in, i64 %out) nounwind {{
entry:
  %request = alloca [8 x i64]
  %reply = alloca i64
  %system = inttoptr i64 {system} to ptr
  br label %read
read:
  %so_far = phi i64 [ 0, %entry ], [ 0, %call ], [ %more, %partly ]
  %to = getelementptr i8, ptr %request, i64 %so_far
  %rest = sub i64 64, %so_far
  %count = call i64 %system(i64 {read}, i64 %in, ptr %to, i64 %rest)
  %is_some = icmp sgt i64 %count, 0
  br i1 %is_some, label %partly, label %end
partly:
  %more = add i64 %so_far, %count
  %is_all = icmp eq i64 %more, 64
  br i1 %is_all, label %call, label %read
call:
  %function = load ptr, ptr %request
  {loads}
  %result = call i64 %function({arguments})
  store i64 %result, ptr %reply
  call i64 %system(i64 {write}, i64 %out, ptr %reply, i64 8)
  br label %read
end:
  call i64 %system(i64 {exit}, i64 0)
  ret void
}}
""".format(
    system=_CALL_SYSTEM,
    read=_READ,
    write=_WRITE,
    exit=_EXIT,
    loads="\n  ".join(
        f"%at{n} = getelementptr i64, ptr %request, i64 {n}\n  %a{n} = load i64, ptr %at{n}" for n in range(1, 8)
    ),
    arguments=", ".join(f"i64 %a{n}" for n in range(1, 8)),
)


class Died(RuntimeError):
    """The emulator is no more: what it ran has touched memory that is not there, or ran for too long."""


class _Block(NamedTuple):
    start: int
    """Where its memory begins, in pages that nothing else is in."""

    size: int
    access: int
    pages: int
    """Of the block: a power of two, and the last is never mapped."""


class Machine:
    """An emulated machine: memory, code in it, and calls from any thread. It is started again after it died."""

    def __init__(self) -> None:
        self._file = os.memfd_create("gossamer-emulator")
        os.ftruncate(self._file, _SIZE)
        _map_window(self._file)
        self._lock = threading.RLock()
        self._next = _START
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._blocks: dict[int, _Block] = {}
        self._given_back: deque[int] = deque()  # whoever collects garbage may hold the lock
        self._pending: list[tuple[int, ...]] = []
        self._code: list[np.ndarray] = []
        self._process: _Process | None = None
        atexit.register(self.stop)

    def memory(self, size: int, access: int = READ | WRITE, to_the_end: bool = True) -> np.ndarray:
        """Zeroed bytes that end, or else begin, where a page does, and may be accessed like this by emulated code."""
        with self._lock:
            self._collect()
            pages = -(-max(size, 1) // _PAGE)
            whole = 1 << pages.bit_length()
            if self._free[whole]:
                start = self._free[whole].pop()
            else:
                start, self._next = self._next, self._next + whole * _PAGE
                assert self._next <= _START + _SIZE, "the memory of the emulator is used up"
            block = self._blocks[start] = _Block(start, pages * _PAGE, access, whole)
            self._pending.append(self._mapping(block))
        owner = (ctypes.c_ubyte * block.size).from_address(start)
        ctypes.memset(start, 0, block.size)
        weakref.finalize(owner, self._given_back.append, start).atexit = False
        return np.frombuffer(owner, np.uint8, size, block.size - size if to_the_end else 0)

    def has(self, address: int) -> bool:
        """Whether it is one of this machine's memory."""
        return _START <= address < _START + _SIZE

    def load(self, blob: Blob) -> int:
        """The address of the function of a blob, from now on."""
        memory = self.memory(len(blob.code), READ | EXECUTE, to_the_end=False)
        memory[:] = np.frombuffer(blob.code, np.uint8)
        self._code.append(memory)
        return int(memory.ctypes.data) + blob.entry

    def call(self, function: int, *arguments: int) -> int:
        """What a function returns to up to seven integers."""
        with self._lock:
            self._collect()
            if self._process is not None and self._process.has_died:
                self.stop()
            if self._process is None:
                self._pending = [self._mapping(block) for block in self._blocks.values()]
                self._process = _Process(self._file)
            process, pending = self._process, self._pending
            channel = process.take()
            try:
                if pending:
                    self._pending = []
                    for result in process.calls(channel, pending):
                        assert result >= 0, f"the emulator could not map memory: {os.strerror(-result)}"
            except BaseException:
                process.give_back(channel)
                raise
        try:
            return process.calls(channel, [(function, *arguments)])[0]
        finally:
            process.give_back(channel)

    def stop(self) -> None:
        """End the emulator. The memory stays."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _collect(self) -> None:
        while self._given_back:
            start = self._given_back.popleft()
            block = self._blocks.pop(start)
            self._pending.append((_CALL_SYSTEM, _MUNMAP, start, block.size))
            self._free[block.pages].append(start)

    def _mapping(self, block: _Block) -> tuple[int, ...]:
        place = block.start - _START
        return (_CALL_SYSTEM, _MMAP, block.start, block.size, block.access, _SHARED | _FIXED, self._file, place)


@cache
def machine() -> Machine:
    """The machine of this process; the test is skipped where there is no emulator."""
    _emulator()
    return Machine()


@cache
def system_call(number: int) -> int:
    """The address of a function of the machine that makes a system call of its arguments."""
    return machine().load(Blob(_words(*_set(8, number), _SVC, _RET), 0))


class _Process:
    """A running emulator."""

    def __init__(self, file: int) -> None:
        self.has_died = False
        requests, replies = ([os.pipe() for _ in range(THREADS)] for _ in range(2))
        theirs = [(read, write) for (read, _), (_, write) in zip(requests, replies, strict=True)]
        self._channels = [(write, read) for (_, write), (read, _) in zip(requests, replies, strict=True)]
        self._free = list(self._channels)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "serve"
            path.write_bytes(_executable(*theirs[0]))
            path.chmod(0o700)
            passed = [file, *(end for channel in theirs for end in channel)]
            self._process = subprocess.Popen([_emulator(), str(path)], pass_fds=passed, stderr=subprocess.DEVNULL)
            import resource  # not on every system

            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
            for channel in theirs:
                for end in channel:
                    os.close(end)
            first = self._channels[0]
            for ends in theirs[1:]:
                size_and_kind = (_STACK, READ | WRITE, _PRIVATE | _ANONYMOUS, -1, 0)
                (stack,) = self.calls(first, [(_CALL_SYSTEM, _MMAP, 0, *size_and_kind)])
                (thread,) = self.calls(first, [(_SPAWN, stack + _STACK, *ends)])
                assert thread > 0, f"the emulator could not start a thread: {os.strerror(-thread)}"

    def take(self) -> tuple[int, int]:
        """A thread that waits, for whoever gives it back."""
        return self._free.pop()

    def give_back(self, channel: tuple[int, int]) -> None:
        """It waits again."""
        self._free.append(channel)

    def calls(self, channel: tuple[int, int], calls: list[tuple[int, ...]]) -> list[int]:
        """What functions return, one called after the other."""
        write, read = channel
        request = b"".join(struct.pack("<8q", *call, *[0] * (8 - len(call))) for call in calls)
        reply = b""
        try:
            while request:
                request = request[os.write(write, request) :]
            while len(reply) < 8 * len(calls):
                if not select.select([read], [], [], TIMEOUT)[0]:
                    self._process.kill()
                part = os.read(read, 8 * len(calls) - len(reply))
                if not part:
                    raise BrokenPipeError
                reply += part
        except BrokenPipeError:
            self.has_died = True
            code = self._process.wait()
            raise Died(
                f"The emulator has ended with {code} (-11: what it ran touched memory that is not there)."
            ) from None
        return list(struct.unpack(f"<{len(calls)}q", reply))

    def stop(self) -> None:
        """Let it end."""
        for channel in self._channels:
            for end in channel:
                os.close(end)
        self._channels = []
        self._process.wait()


def _emulator() -> str:
    found = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if found is None:
        pytest.skip("qemu-aarch64 is not installed (Debian: qemu-user)")
    return found


def _map_window(file: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mmap.restype = ctypes.c_void_p
    found = libc.mmap(_START, _SIZE, READ | WRITE, _SHARED | _FIXED_NOREPLACE, file, 0)
    if found != _START:
        raise OSError(ctypes.get_errno(), "the memory that is shared with the emulator cannot be where it must be")


def _executable(read: int, write: int) -> bytes:
    """A static executable that answers the calls from one file in another."""
    serve = compile_text(_SERVING, NEON, "serve")
    content = bytearray(_SERVE - _EXECUTABLE) + serve.code
    # The header of an executable for AArch64, and one segment, to read and execute.
    header = struct.pack("<16sHHIQQQI6H", b"\x7fELF\2\1\1", 2, 183, 1, _MAIN, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    header += struct.pack("<IIQQQQQQ", 1, 5, 0, _EXECUTABLE, _EXECUTABLE, len(content), len(content), _PAGE)
    go = [*_set(16, _SERVE + serve.entry), _BR_X16]
    # A thread is its parent's copy, but for its stack and what clone returns.
    spawn = [_move(9, 1), _move(10, 2), _move(1, 0), *_set(0, _A_THREAD), *_set(2, 0), *_set(3, 0), *_set(4, 0)]
    spawn += [*_set(8, _CLONE), _SVC, _skip_if_x0_is_zero(2), _RET, _move(0, 9), _move(1, 10), *go]
    for place, words in (
        (_CALL_SYSTEM, [_move(8, 0), *(_move(to, to + 1) for to in range(6)), _SVC, _RET]),
        (_SPAWN, spawn),
        (_MAIN, [*_set(0, read), *_set(1, write), *go]),
    ):
        code = _words(*words)
        content[place - _EXECUTABLE : place - _EXECUTABLE + len(code)] = code
    content[: len(header)] = header
    return bytes(content)


def _words(*instructions: int) -> bytes:
    return struct.pack(f"<{len(instructions)}I", *instructions)


def _set(register: int, value: int) -> list[int]:
    """The instructions that load a register: movz and three movk."""
    return [
        (0xF2800000 if half else 0xD2800000) | half << 21 | (value >> 16 * half & 0xFFFF) << 5 | register
        for half in range(4)
    ]


def _move(to: int, register: int) -> int:
    return 0xAA0003E0 | register << 16 | to


def _skip_if_x0_is_zero(instructions: int) -> int:
    return 0xB4000000 | instructions << 5
