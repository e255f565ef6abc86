"""What the operating system decides: CPU features, executable and large memory, private files, locks, yielding."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import sys
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gossamer.disk_cache import NO_LINK, NO_WAIT
from gossamer.disk_cache import open_private as open_private  # here too: it is what the operating system decides
from gossamer.disk_cache import private_directory as private_directory
from gossamer.limits import require_memory

# LLVM's spelling of the features that Linux, and Windows for us, spell otherwise. The rest is spelt alike.
_LINUX_FEATURES = {
    "abm": "lzcnt",
    "pni": "sse3",
    "bmi1": "bmi",
    "lahf_lm": "sahf",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
    "avx_vnni": "avxvnni",
}
# The same by the bits that Linux gives each process of AArch64, two words.
_AT_HWCAP = 16
_AT_HWCAP2 = 26
_AARCH64_FEATURES = {
    _AT_HWCAP: {1: "neon", 10: "fullfp16", 20: "dotprod"},
    _AT_HWCAP2: {13: "i8mm", 14: "bf16"},
}
_PERMITTED = frozenset({"amx-tile", "amx-int8", "amx-bf16", "amx-fp16", "amx-complex"})
"""Features that a process has to ask Linux for, because their registers take kilobytes of every thread."""

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18
_DARWIN_FEATURES = {"FEAT_DotProd": "dotprod", "FEAT_I8MM": "i8mm", "FEAT_FP16": "fullfp16", "FEAT_BF16": "bf16"}

HUGE_PAGE = 2 << 20
_WORTH_HUGE_PAGE = 512 << 10
"""Bytes whose small pages cost more than a huge one when they are first touched (2 and 200 us under a hypervisor)."""

_MADV_HUGEPAGE = 14
_MADV_POPULATE_WRITE = 23
"""Since Linux 5.14; before that, it does nothing."""

_MAP_POPULATE = 0x8000 if sys.platform == "linux" else 0
_MAP_JIT = 0x800


@cache
def cpu_features() -> frozenset[str]:
    """What this CPU can execute and this system lets it, in LLVM's spelling; empty where nobody tells.

    The name of the CPU is never asked: hypervisors invent it. Where there are tiles, Linux is asked for them, once: the
    answer holds for all threads, and for child processes. A process of 32 bits is told nothing: our code has 64.
    """
    if sys.maxsize < 2**32:
        return frozenset()
    if sys.platform == "linux":
        if platform.machine() == "aarch64":
            return _aarch64_features()
        with suppress(OSError), open("/proc/cpuinfo") as cpuinfo:
            features = _linux_features(cpuinfo)
            return features if "amx-tile" not in features or _may_use_tiles() else features - _PERMITTED
    elif sys.platform == "darwin":
        return _darwin_features()
    return frozenset()


def _aarch64_features() -> frozenset[str]:
    # Emulators of a process (qemu-user, with it containers of other CPUs) show it the host's /proc/cpuinfo.
    ask = _libc().getauxval
    return frozenset(
        name for word, bits in _AARCH64_FEATURES.items() for bit, name in bits.items() if ask(word) >> bit & 1
    )


def _linux_features(cpuinfo: Iterable[str]) -> frozenset[str]:
    # The first CPU speaks for all: the kernel lists what every one of them has. (Reading on asks each for its clock.)
    for line in cpuinfo:
        if line.startswith("flags"):
            flags = frozenset(line.partition(":")[2].replace("avx512_", "avx512").split())
            spelt = _LINUX_FEATURES.keys() & flags
            return flags - spelt | {_LINUX_FEATURES[flag] for flag in spelt}
    return frozenset()


def _may_use_tiles() -> bool:
    """Ask Linux for the registers of tiles. Before 5.16 it cannot be asked, and does not give them."""
    return bool(_libc().syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0)


def _darwin_features() -> frozenset[str]:
    if platform.machine() != "arm64":
        return frozenset()  # sysctl's lists say less than is needed to be sure
    libc, has = _libc(), {"neon"}
    for key, feature in _DARWIN_FEATURES.items():
        value, size = ctypes.c_int(0), ctypes.c_size_t(4)
        found = libc.sysctlbyname(
            f"hw.optional.arm.{key}".encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
        )
        if found == 0 and value.value:
            has.add(feature)
    return frozenset(has)


def address_of(function: Any) -> int:
    """The address of a function that ctypes has found."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def page_size() -> int:
    """Bytes of a page of memory."""
    return mmap.PAGESIZE


def usable_cpus() -> int:
    """CPUs that this process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def yield_address() -> int:
    """The address of the function, of no arguments, that gives the CPU to another thread."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").SwitchToThread
    else:
        function = _libc().sched_yield
    return address_of(function)


class Clock(NamedTuple):
    """The clock of ``time.perf_counter_ns``, for machine code: a function that writes the time where it is told."""

    address: int
    """``int clock_gettime(int which, int64_t time[2])``, or on Windows ``int QueryPerformanceCounter(int64_t *)``."""

    which: int
    frequency: int
    """Ticks of a second."""

    def ns(self, ticks: int) -> int:
        """Nanoseconds, rounded down."""
        return ticks * 10**9 // self.frequency


@cache
def clock() -> Clock:
    """The clock of this system."""
    if sys.platform == "win32":
        kernel32, frequency = _kernel32(), ctypes.c_int64()
        kernel32.QueryPerformanceFrequency(ctypes.byref(frequency))
        return Clock(address_of(kernel32.QueryPerformanceCounter), 0, frequency.value)
    if sys.platform == "darwin":
        which = time.CLOCK_UPTIME_RAW  # the monotonic one counts microseconds there
    else:
        which = time.CLOCK_MONOTONIC
    return Clock(address_of(_libc().clock_gettime), which, 10**9)


class Memory:
    """Zeroed bytes at an address, for as long as somebody holds this object. Large ones lie on huge pages.

    Small pages are all there from the beginning: one that comes when it is touched costs up to five times as much.
    Raises `MemoryError` if there are not so many.
    """

    def __init__(self, size: int) -> None:
        require_memory(size)
        self.size = size
        large = size >= _WORTH_HUGE_PAGE
        reserved = _round_up(max(size, 1), HUGE_PAGE) + HUGE_PAGE if large else _round_up(max(size, 1), page_size())
        start = _map_anonymous(reserved, 0 if large else _MAP_POPULATE)
        self.address = _round_up(start, HUGE_PAGE) if large else start
        if large and sys.platform == "linux":
            # What lies before and behind is never backed by memory.
            rest = size % HUGE_PAGE
            huge = _round_up(size, HUGE_PAGE) if rest >= _WORTH_HUGE_PAGE else size - rest
            _libc().madvise(ctypes.c_void_p(self.address), ctypes.c_size_t(huge), _MADV_HUGEPAGE)
            if huge < size:
                _libc().madvise(ctypes.c_void_p(self.address + huge), ctypes.c_size_t(rest), _MADV_POPULATE_WRITE)
        # Not at exit: a thread may still be at work there.
        weakref.finalize(self, _unmap, start, reserved).atexit = False

    def view(self) -> memoryview:
        """The bytes, to read and write. The view does not keep them alive."""
        return memoryview((ctypes.c_ubyte * self.size).from_address(self.address)).cast("B")


def release_pages(address: int, size: int) -> None:
    """Let the pages that lie wholly in a part of a mapped file leave memory. Who reads them gets them back.

    The file must be mapped to be read: what was written to private memory would be lost.
    """
    start = _round_up(address, page_size())
    end = (address + size) // page_size() * page_size()
    if sys.platform == "linux" and start < end:
        _libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


class ExecutableMemory:
    """Machine code in memory: readable and executable, never writable at the same time.

    It stays until it is closed: an address of code outlives many an object, and the memory of a file costs little.
    """

    def __init__(self, address: int, size: int, mapped: int) -> None:
        self.address = address
        self.size = size
        self._mapped = mapped

    @classmethod
    def from_file(cls, file: int, size: int) -> ExecutableMemory:
        """The first ``size`` bytes of an open file, mapped where the system allows it, else copied."""
        if sys.platform not in ("win32", "darwin"):
            protection = mmap.PROT_READ | mmap.PROT_EXEC
            address = _libc().mmap(None, size, protection, mmap.MAP_PRIVATE, file, 0)
            if address != _FAILED:
                return cls(address, size, size)
        # A noexec file system, or a system that runs signed files only.
        os.lseek(file, 0, os.SEEK_SET)
        parts = []
        while size > 0 and (part := os.read(file, size)):
            parts.append(part)
            size -= len(part)
        if size:
            raise OSError("The file became shorter while it was read")
        return cls.from_bytes(b"".join(parts))

    @classmethod
    def from_bytes(cls, code: bytes) -> ExecutableMemory:
        """A copy of ``code``: written first, made executable then."""
        mapped = _round_up(max(len(code), 1), page_size())
        if sys.platform == "win32":
            return cls(_executable_windows(code, mapped), len(code), mapped)
        if sys.platform == "darwin" and platform.machine() == "arm64":
            return cls(_executable_darwin(code, mapped), len(code), mapped)
        address = _map_anonymous(mapped)
        ctypes.memmove(address, code, len(code))
        if _libc().mprotect(address, mapped, mmap.PROT_READ | mmap.PROT_EXEC):
            number = ctypes.get_errno()
            _unmap(address, mapped)
            raise OSError(number, f"This system does not let memory become executable ({os.strerror(number)})")
        _flush_instructions(address, len(code))
        return cls(address, len(code), mapped)

    def close(self) -> None:
        """Give the memory back. Nothing of it may run, now or later."""
        _unmap(self.address, self._mapped)

    def view(self) -> memoryview:
        """The bytes."""
        return memoryview((ctypes.c_ubyte * self.size).from_address(self.address)).cast("B").toreadonly()


@cache
def runs_new_code() -> bool:
    """Whether this system lets memory become executable that was written to. Policies may forbid it, as Linux's
    PR_SET_MDWE; then only files can be run."""
    try:
        ExecutableMemory.from_bytes(bytes(1)).close()
    except OSError:
        return False
    return True


def file_content(file: int, size: int) -> memoryview:
    """The first ``size`` bytes of an open file, mapped where that does not keep others from replacing it."""
    if sys.platform != "win32":
        return memoryview(mmap.mmap(file, size, access=mmap.ACCESS_READ))
    with os.fdopen(os.dup(file), "rb") as stream:
        stream.seek(0)
        return memoryview(stream.read(size))


@contextmanager
def file_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold a file against other processes; `TimeoutError` after ``timeout`` seconds. A process that dies lets go."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK | NO_WAIT, 0o600)
    try:
        until = time.monotonic() + timeout
        while not _try_lock(file):
            if time.monotonic() > until:
                raise TimeoutError(f"{path} has been locked by another process for {timeout:g} s")
            time.sleep(0.002)
        try:
            yield
        finally:
            _unlock(file)  # closing would not be enough if the process was forked meanwhile
    finally:
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> bool:
        os.lseek(file, 0, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


_FAILED = 2 ** (8 * struct.calcsize("P")) - 1
"""What mmap returns when it fails."""


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _map_anonymous(size: int, extra_flags: int = 0, protection: int = 3) -> int:
    if sys.platform == "win32":
        address = _kernel32().VirtualAlloc(None, size, 0x3000, 0x04)  # MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE
        if not address:
            raise MemoryError(f"{size} bytes of memory are not to be had")
        return int(address)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | extra_flags
    address = _libc().mmap(None, size, protection, flags, -1, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        raise MemoryError(f"{size} bytes of memory are not to be had ({os.strerror(number)})")
    return int(address)


def _unmap(address: int, size: int) -> None:
    if sys.platform == "win32":
        _kernel32().VirtualFree(address, 0, 0x8000)  # MEM_RELEASE
    else:
        _libc().munmap(address, size)


def _flush_instructions(address: int, size: int) -> None:
    # x86 keeps its caches equal, and Linux does it for fresh pages that become executable. The compiler's runtime,
    # where it can be had, does it for sure.
    if platform.machine() == "aarch64":
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL("libgcc_s.so.1"), "__clear_cache")(
                ctypes.c_void_p(address), ctypes.c_void_p(address + size)
            )


def _executable_darwin(code: bytes, mapped: int) -> int:
    # Apple's CPUs: such pages are writable for a thread or executable for it, by a switch of the thread.
    libc = _libc()
    address = _map_anonymous(mapped, _MAP_JIT, protection=7)
    libc.pthread_jit_write_protect_np(0)
    ctypes.memmove(address, code, len(code))
    libc.pthread_jit_write_protect_np(1)
    libc.sys_icache_invalidate(ctypes.c_void_p(address), ctypes.c_size_t(len(code)))
    return address


@cache
def _kernel32() -> ctypes.CDLL:
    if sys.platform != "win32":
        raise OSError("kernel32 is Windows'")
    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.VirtualAlloc.restype = ctypes.c_void_p
    kernel32.VirtualAlloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint32]
    kernel32.VirtualProtect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_void_p]
    kernel32.VirtualFree.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32]
    kernel32.FlushInstructionCache.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    kernel32.GetCurrentProcess.restype = ctypes.c_void_p
    return kernel32


def _executable_windows(code: bytes, mapped: int) -> int:
    kernel32 = _kernel32()
    address = _map_anonymous(mapped)
    ctypes.memmove(address, code, len(code))
    before = ctypes.c_uint32()
    if not kernel32.VirtualProtect(address, mapped, 0x20, ctypes.byref(before)):  # PAGE_EXECUTE_READ
        _unmap(address, mapped)
        raise OSError("This system does not let memory become executable")
    kernel32.FlushInstructionCache(kernel32.GetCurrentProcess(), address, len(code))
    return address
