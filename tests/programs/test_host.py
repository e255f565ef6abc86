from __future__ import annotations

import ctypes
import io
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gossamer.programs import host
from gossamer.targets import all_targets
from tests.conftest import HANGS
from tests.programs.kernels import call, returning

INTEL = "processor\t: 0\nflags\t\t: fpu pni sse4_1 avx2 abm avx512_vnni avx512f amx_tile bmi1\nflags\t\t: other\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm asimdhp\nCPU implementer\t: 0x41\n"


def test_features_are_spelt_as_llvm_spells_them() -> None:
    spelt = {"fpu", "sse3", "sse4.1", "avx2", "lzcnt", "avx512vnni", "avx512f", "amx-tile", "bmi"}
    assert host._linux_features(INTEL.splitlines()) == spelt
    assert host._linux_features([]) == frozenset()


def test_features_of_another_cpu_are_not_believed(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What /proc/cpuinfo tells an emulated process, and one of 32 bits, is not what it runs."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    _with_cpuinfo(monkeypatch, ARM)
    assert host.cpu_features() == frozenset()
    host.cpu_features.cache_clear()
    _with_cpuinfo(monkeypatch, INTEL)
    monkeypatch.setattr(sys, "maxsize", 2**31 - 1)
    assert host.cpu_features() == frozenset()


def test_a_process_of_aarch64_is_told_what_it_runs(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {16: 1 << 0 | 1 << 1 | 1 << 10 | 1 << 20, 26: 1 << 13}
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(host, "_libc", lambda: SimpleNamespace(getauxval=words.__getitem__))
    _with_cpuinfo(monkeypatch, INTEL)
    assert host.cpu_features() == {"neon", "fullfp16", "dotprod", "i8mm"}


def test_features_that_targets_require_are_known_to_llvm() -> None:
    import llvmlite.binding as llvm

    here = llvm.get_host_cpu_features()
    required = frozenset().union(*(target.requires for target in all_targets().values()))
    told = host.cpu_features()
    if not told:
        pytest.skip("this system does not tell the features of the CPU")
    assert required & told == {name for name in required if here.get(name)}


@pytest.fixture
def fresh() -> Iterator[None]:
    """Features that are asked for anew, and afterwards."""
    host.cpu_features.cache_clear()
    yield
    host.cpu_features.cache_clear()


@pytest.fixture
def asked(fresh: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The system calls of a Linux that grants what it is asked for."""
    calls: list[tuple[int, ...]] = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(host, "_libc", lambda: SimpleNamespace(syscall=lambda *arguments: calls.append(arguments) or 0))
    return calls


def _with_cpuinfo(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("builtins.open", lambda *_: io.StringIO(text))


def test_linux_is_asked_for_tiles_once(asked: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    _with_cpuinfo(monkeypatch, INTEL)
    assert "amx-tile" in host.cpu_features()
    assert "amx-tile" in host.cpu_features()
    assert asked == [(158, 0x1023, 18)]


def test_tiles_that_linux_refuses_are_not_there(asked: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_libc", lambda: SimpleNamespace(syscall=lambda *_: -1))
    _with_cpuinfo(monkeypatch, INTEL.replace("amx_tile", "amx_tile amx_int8 amx_bf16"))
    features = host.cpu_features()
    assert "avx512vnni" in features
    assert not [feature for feature in features if feature.startswith("amx")]


def test_linux_is_not_asked_for_what_the_cpu_has_not(
    asked: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_cpuinfo(monkeypatch, INTEL.replace("amx_tile", ""))
    assert host.cpu_features()
    assert asked == []


def test_the_system_is_known() -> None:
    assert host.page_size() >= 4096
    assert 1 <= host.usable_cpus() <= (os.cpu_count() or 1)
    assert host.yield_address()
    ctypes.CFUNCTYPE(ctypes.c_int)(host.yield_address())()


@pytest.mark.skipif(sys.platform == "win32", reason="the clock has another form")
def test_the_clock_is_that_of_python() -> None:
    clock = host.clock()
    read = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(clock.address)
    time_ = np.zeros(2, np.int64)
    before = time.perf_counter_ns()
    assert read(clock.which, time_.ctypes.data) == 0
    assert before <= clock.ns(int(time_[0]) * 10**9 + int(time_[1])) <= time.perf_counter_ns()


def test_ticks_are_nanoseconds() -> None:
    assert host.Clock(0, 0, 10**9).ns(2**62) == 2**62
    assert host.Clock(0, 0, 24_000_000).ns(7) == 291


@pytest.mark.parametrize(
    "size", [0, 1, 4096, 4097, 600_000, host.HUGE_PAGE, host.HUGE_PAGE + 1, host.HUGE_PAGE + 600_000]
)
def test_memory_is_zeroed_and_aligned(size: int) -> None:
    memory = host.Memory(size)
    assert memory.size == size
    assert memory.address % (host.HUGE_PAGE if size >= host.HUGE_PAGE else host.page_size()) == 0
    bytes_of = np.frombuffer(memory.view(), np.uint8)
    assert not bytes_of.any()
    bytes_of[:] = 255


def resident_pages(path: Path) -> int:
    """Pages of a mapped file that are in the memory of this process."""
    maps = Path("/proc/self/smaps").read_text()
    size = next(line for line in maps.partition(str(path))[2].splitlines() if line.startswith("Rss:")).split()[1]
    return 1024 * int(size) // host.page_size()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_pages_of_a_file_leave_memory_and_come_back(tmp_path: Path) -> None:
    page, path = host.page_size(), tmp_path / "model"
    path.write_bytes(bytes(range(256)) * (16 * page // 256))
    model = np.memmap(path, np.uint8, "r")
    address = model.ctypes.data
    for offset, size, left in (
        *((0, 0, 16), (0, page - 1, 16), (0, page, 15), (1, 2 * page, 15), (1, 2 * page - 2, 16)),
        *((3 * page, 4 * page + 5, 12), (0, 16 * page, 0)),
    ):
        assert model.tobytes() == path.read_bytes()
        host.release_pages(address + offset, size)
        assert resident_pages(path) == left


def test_memory_that_is_not_to_be_had_is_an_error() -> None:
    with pytest.raises(MemoryError, match="not to be had"):
        host.Memory(1 << 60)


def test_code_runs_and_cannot_be_written() -> None:
    memory = host.ExecutableMemory.from_bytes(returning(41).code)
    assert call(memory.address) == 41
    assert bytes(memory.view()) == returning(41).code
    with pytest.raises(TypeError):
        memory.view()[0] = 0
    memory.close()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_no_memory_is_writable_and_executable(tmp_path: Path) -> None:
    path = tmp_path / "code"
    path.write_bytes(returning(1).code)
    with path.open("rb") as stream:
        mapped = host.ExecutableMemory.from_file(stream.fileno(), 6)
    copied = host.ExecutableMemory.from_bytes(returning(1).code)
    for memory in (mapped, copied):
        lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
        (modes,) = (line[1] for line in lines if int(line[0].split("-")[0], 16) <= memory.address
                    < int(line[0].split("-")[1], 16))  # fmt: skip
        assert modes == "r-xp"


def test_a_file_that_shrinks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "code"
    path.write_bytes(b"abc")
    monkeypatch.setattr(host.sys, "platform", "win32")  # which copies
    with path.open("rb") as stream, pytest.raises(OSError, match="shorter"):
        host.ExecutableMemory.from_file(stream.fileno(), 6)


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
def test_private_places_are_private(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    host.private_directory(place)
    assert place.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch(0o600)
    with pytest.raises(OSError, match="not a directory"):
        host.private_directory(tmp_path / "file")
    os.close(host.open_private(tmp_path / "file"))
    with pytest.raises(OSError, match="not a file"):
        host.open_private(place)


def test_a_lock_is_held_against_others_until_let_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with host.file_lock(path, 1), pytest.raises(TimeoutError, match="locked by"), host.file_lock(path, 0.01):
        pass
    with host.file_lock(path, 0):
        pass


def test_a_process_that_dies_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = "import sys, time; from pathlib import Path; from gossamer.programs import host\n"
    code += "with host.file_lock(Path(sys.argv[1]), 1): print('held', flush=True); time.sleep(1e4)"
    holder = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(TimeoutError), host.file_lock(path, 0.01):
            pass
        holder.kill()
        with host.file_lock(path, HANGS):
            pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_lock_is_let_go_though_a_process_was_forked_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    read, write = os.pipe()
    with warnings.catch_warnings(), host.file_lock(path, 1):
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
        if child == 0:
            os.read(read, 1)  # holds whatever it has inherited
            os._exit(0)
    try:
        with host.file_lock(path, 0):
            pass
    finally:
        os.write(write, b"!")
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)
