from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gossamer.config import user_directory
from gossamer.errors import CompileError
from gossamer.programs import archive as archives
from gossamer.programs import host
from gossamer.programs.archive import (
    KernelArchive,
    KernelLibrary,
    archive_files,
    archive_key,
    clear_directory,
    prune_directory,
)
from gossamer.programs.kernel_file import Blob, KernelFile, Record, day_place
from gossamer.targets import all_targets
from tests.conftest import HANGS
from tests.programs.kernels import call, returning

KEY = "here\ntest 1"

posix = pytest.mark.skipif(os.name != "posix", reason="owners, modes and limits are POSIX's")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "kernels"


def filled(place: Path, count: int = 3, key: str = KEY) -> KernelArchive:
    archive = KernelArchive(place, key)
    assert archive.add({f"k{number}": returning(number) for number in range(count)})
    return archive


def path_of(archive: KernelArchive) -> Path:
    assert archive.path is not None
    return archive.path


def run_python(code: str, *arguments: object, stdout: int | None = None) -> subprocess.Popen[str]:
    script = "import sys\nfrom pathlib import Path\nfrom gossamer.programs.archive import *\n"
    script += "from gossamer.programs.kernel_file import Blob\n"
    script += "from tests.programs.kernels import call, returning\n" + textwrap.dedent(code)
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=root, text=True, stdout=stdout)


def test_kernels_are_found_in_this_and_in_later_archives(place: Path) -> None:
    first = filled(place)
    assert [call(first.find(f"k{number}")) for number in range(3)] == [0, 1, 2]
    later = KernelArchive(place, KEY)
    assert later.names() == ("k0", "k1", "k2")
    assert [call(later.find(f"k{number}")) for number in range(3)] == [0, 1, 2]
    assert later.find("k3") is None
    assert later.check() == ()
    assert later.problem is None


def test_an_archive_that_is_not_there_is_empty(place: Path) -> None:
    archive = KernelArchive(place, KEY)
    assert archive.names() == ()
    assert archive.find("k0") is None
    assert archive.problem is None


def test_addresses_stay_good_when_kernels_are_added_and_cleared(place: Path) -> None:
    archive = filled(place)
    address = archive.find("k1")
    archive.add({"k7": returning(7)})
    assert archive.find("k1") == address
    archive.clear()
    assert archive.find("k1") is None
    assert not path_of(archive).exists()
    assert call(address) == 1


def test_kernels_lie_at_their_alignment_and_entry(place: Path) -> None:
    code = returning(9).code
    blobs = {
        f"a{alignment}_{entry}": Blob(b"\xcc" * entry + code, entry, alignment)
        for alignment in (1, 64, 4096)
        for entry in (0, 16, 4096)
    }
    saved, in_memory = KernelArchive(place, KEY), KernelArchive(None, KEY)
    for archive in (saved, in_memory):
        archive.add(blobs)
    for archive in (saved, in_memory, KernelArchive(place, KEY)):
        for name, blob in blobs.items():
            address = archive.find(name)
            assert address is not None
            assert (address - blob.entry) % blob.alignment == 0
            assert call(address) == 9


def test_the_first_kernel_of_a_name_stays(place: Path) -> None:
    archive = filled(place)
    archive.add({"k1": returning(99)})
    assert call(archive.find("k1")) == 1


def test_nonsense_is_not_taken(place: Path) -> None:
    archive = KernelArchive(place, KEY)
    with pytest.raises(CompileError, match="entry 6"):
        archive.add({"k": Blob(returning(1).code, 6)})
    with pytest.raises(CompileError, match="alignment 8192"):
        archive.add({"k": Blob(returning(1).code, 0, 8192)})
    assert not path_of(archive).exists()


def test_processes_that_add_at_once_lose_nothing(place: Path) -> None:
    code = """
    place, first = Path(sys.argv[1]), int(sys.argv[2])
    for number in range(first, first + 20):
        archive = KernelArchive(place, "here\\ntest 1")
        assert archive.add({f"k{number}": returning(number)}), archive.problem
        assert call(archive.find(f"k{number}")) == number
    """
    processes = [run_python(code, place, first) for first in (0, 10, 20, 30)]
    assert [process.wait(HANGS) for process in processes] == [0] * 4
    archive = KernelArchive(place, KEY)
    assert archive.check() == ()
    assert {name: call(archive.find(name)) for name in archive.names()} == {f"k{n}": n for n in range(50)}


@posix
def test_a_writer_that_is_killed_leaves_what_was_there(place: Path) -> None:
    filled(place)
    code = """
    import os, signal
    os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    KernelArchive(Path(sys.argv[1]), "here\\ntest 1").add({"k3": returning(3)})
    """
    assert run_python(code, place).wait(HANGS) == -signal.SIGKILL
    assert len(list(place.glob("*.new"))) == 1
    archive = KernelArchive(place, KEY)
    assert archive.names() == ("k0", "k1", "k2")
    assert archive.add({"k4": returning(4)})
    assert not list(place.glob("*.new"))
    assert KernelArchive(place, KEY).names() == ("k0", "k1", "k2", "k4")


@posix
def test_writers_killed_at_any_moment_leave_only_sound_kernels(place: Path) -> None:
    code = """
    place, first = Path(sys.argv[1]), int(sys.argv[2])
    archive = KernelArchive(place, "here\\ntest 1")
    print("adding", flush=True)
    for number in range(first, 65536, 2):
        assert archive.add({f"k{number}": returning(number)}), archive.problem
    """
    for moment in range(0, 8, 2):
        writers = [
            run_python(code, place, first, stdout=subprocess.PIPE) for first in (1000 * moment, 1000 * moment + 1)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "adding\n"
        time.sleep(0.003 * moment)
        for writer in writers:
            writer.kill()
            writer.communicate()
        archive = KernelArchive(place, KEY)
        assert archive.problem is None
        assert archive.check() == ()
        assert [call(archive.find(name)) for name in archive.names()] == [int(name[1:]) for name in archive.names()]
    # Nobody holds the lock, and what the dead left is cleared away.
    assert archive.add({"k0": returning(0)})
    assert sorted(path.name for path in place.iterdir()) == sorted([path_of(archive).name, "lock"])


def test_threads_that_add_at_once_lose_nothing(place: Path) -> None:
    archive = KernelArchive(place, KEY)

    def add(first: int) -> None:
        for number in range(first, first + 10):
            archive.add({f"k{number}": returning(number)})
            assert call(archive.find(f"k{number}")) == number

    threads = [threading.Thread(target=add, args=(first,)) for first in (0, 5, 10, 15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: call(archive.find(name)) for name in archive.names()} == {f"k{n}": n for n in range(25)}
    assert KernelArchive(place, KEY).names() == archive.names()


def test_what_another_process_adds_is_seen_on_request(place: Path) -> None:
    archive = filled(place, 1)
    address = archive.find("k0")
    assert KernelArchive(place, KEY).add({"k1": returning(1)})
    assert archive.find("k1") is None
    archive.refresh()
    assert call(archive.find("k1")) == 1
    assert archive.find("k0") == address


def test_an_archive_cut_anywhere_is_not_run_and_is_rebuilt(place: Path) -> None:
    path = path_of(filled(place))
    whole = path.read_bytes()
    for size in (0, 1, 39, 40, 60, 200, 4095, 4096, 4100, len(whole) - 1):
        path.write_bytes(whole[:size])
        path.chmod(0o600)
        archive = KernelArchive(place, KEY)
        assert archive.problem is not None
        assert archive.names() == ()
        assert archive.add({"k2": returning(2)})
        assert KernelArchive(place, KEY).names() == ("k2",)


def test_no_flipped_bit_is_ever_run(place: Path) -> None:
    archive = filled(place, 2)
    path = path_of(archive)
    whole = path.read_bytes()
    used = [at for at in range(len(whole)) if at < 300 or at >= 4096]
    for at in used:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        damaged = KernelArchive(place, KEY)
        for number in range(2):
            address = damaged.find(f"k{number}")
            assert address is None or call(address) == number


def test_a_damaged_kernel_is_replaced_and_the_others_stay(place: Path) -> None:
    path = path_of(filled(place))
    whole = path.read_bytes()
    at = whole.index(returning(1).code, 4096)
    path.write_bytes(whole[:at] + b"\xcc" + whole[at + 1 :])
    archive = KernelArchive(place, KEY)
    assert archive.find("k1") is None
    assert archive.problem is not None
    assert "k1 is damaged" in archive.problem
    assert KernelArchive(place, KEY).check() == ("k1",)
    assert archive.add({"k1": returning(1)})
    again = KernelArchive(place, KEY)
    assert again.check() == ()
    assert [call(again.find(f"k{number}")) for number in range(3)] == [0, 1, 2]


def test_code_under_another_name_is_not_run(place: Path) -> None:
    path = path_of(filled(place))
    whole = path.read_bytes()
    one, two = returning(1).code, returning(2).code
    swapped = whole[:4096] + whole[4096:].replace(one, b"?" * len(one)).replace(two, one).replace(b"?" * len(one), two)
    path.write_bytes(swapped)
    archive = KernelArchive(place, KEY)
    assert [archive.find("k1"), archive.find("k2")] == [None, None]
    assert call(archive.find("k0")) == 0


def test_an_entry_of_another_archive_is_not_run(place: Path, tmp_path: Path) -> None:
    mine, other = path_of(filled(place)), path_of(filled(tmp_path / "other", key="here\ntest 2"))
    # Kernels of one name and size, which return something else there.
    code, foreign = returning(1).code, returning(77).code
    content = other.read_bytes()
    other.write_bytes(content[:4096] + content[4096:].replace(code, foreign))
    whole = mine.read_bytes()
    at = record_of(mine, "k1").offset
    mine.write_bytes(whole[:at] + foreign + whole[at + len(foreign) :])
    archive = KernelArchive(place, KEY)
    assert [archive.find(name) is None for name in ("k0", "k1", "k2")] == [False, True, False]
    # With its record as well.
    mine.write_bytes(other.read_bytes()[:4096] + whole[4096:])
    assert KernelArchive(place, KEY).names() == ()


def test_the_archive_of_another_key_is_not_run(place: Path, tmp_path: Path) -> None:
    other = filled(tmp_path / "other", key="here\ntest 2")
    mine = KernelArchive(place, KEY)
    path_of(mine).write_bytes(path_of(other).read_bytes())
    path_of(mine).chmod(0o600)
    archive = KernelArchive(place, KEY)
    assert archive.problem is not None
    assert "another version" in archive.problem
    assert archive.find("k0") is None
    assert archive.add({"k5": returning(5)})
    assert KernelArchive(place, KEY).names() == ("k5",)


def test_keys_tell_targets_features_and_generators_apart(place: Path) -> None:
    keys = {archive_key(target, generator) for target in all_targets().values() for generator in ("1", "2")}
    assert len(keys) == 2 * len(all_targets())
    for number, key in enumerate(sorted(keys)):
        KernelArchive(place, key).add({"k": returning(number)})
    assert [call(KernelArchive(place, key).find("k")) for key in sorted(keys)] == list(range(len(keys)))


@posix
def test_a_directory_with_open_permissions_is_closed(place: Path) -> None:
    path = path_of(filled(place))
    place.chmod(0o777)
    archive = KernelArchive(place, KEY)
    assert place.stat().st_mode & 0o777 == 0o700
    assert archive.names() == ("k0", "k1", "k2")
    # Others may have written it while the directory was open.
    path.chmod(0o666)
    archive = KernelArchive(place, KEY)
    assert archive.names() == ()
    assert archive.problem is not None
    assert "written by other users" in archive.problem
    assert archive.add({"k0": returning(0)})
    assert path.stat().st_mode & 0o777 == 0o600


@posix
def test_nothing_of_another_user_is_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(place)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    archive = KernelArchive(place, KEY)
    assert archive.names() == ()
    assert archive.problem is not None
    assert "belongs to another user" in archive.problem
    assert not archive.add({"k0": returning(0)})
    assert call(archive.find("k0")) == 0  # in memory


@posix
def test_links_are_not_followed(place: Path, tmp_path: Path) -> None:
    path = path_of(filled(tmp_path / "elsewhere"))
    place.symlink_to(tmp_path / "elsewhere")
    archive = KernelArchive(place, KEY)
    assert archive.names() == ()
    assert archive.problem is not None
    place.unlink()
    place.mkdir(mode=0o700)
    (place / path.name).symlink_to(path)
    archive = KernelArchive(place, KEY)
    assert archive.names() == ()
    assert archive.add({"k0": returning(0)})
    assert not (place / path.name).is_symlink()


@posix
@pytest.mark.parametrize("name", ["archive", "lock", "new"])
def test_pipes_and_directories_are_not_waited_for(place: Path, name: str) -> None:
    path = path_of(filled(place))
    place_of = {"archive": path, "lock": place / "lock", "new": path.with_suffix(".new")}[name]
    code = """
    archive = KernelArchive(Path(sys.argv[1]), "here\\ntest 1")
    archive.add({"k5": returning(5)})
    assert call(archive.find("k5")) == 5
    """
    for make in (os.mkfifo, os.mkdir):
        place_of.unlink(missing_ok=True)
        make(place_of)
        assert run_python(code, place).wait(HANGS) == 0


@posix
def test_days_are_not_written_through_links(place: Path, tmp_path: Path) -> None:
    for link in (os.link, os.symlink):
        archive = filled(place / link.__name__)
        path, outside = path_of(archive), tmp_path / link.__name__
        set_day(path, "k1", 10)
        archive = KernelArchive(path.parent, KEY)
        path.rename(outside)
        link(outside, path)
        before = outside.read_bytes()
        assert call(archive.find("k1")) == 1
        assert outside.read_bytes() == before


def test_a_read_only_directory_gives_kernels_and_takes_none(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(place)

    @contextmanager
    def refuse(path: Path, timeout: float) -> Iterator[None]:
        raise OSError(errno.EROFS, "Read-only file system", str(path))
        yield

    monkeypatch.setattr(host, "file_lock", refuse)
    archive = KernelArchive(place, KEY)
    assert call(archive.find("k1")) == 1
    assert archive.problem is None
    assert not archive.add({"k3": returning(3)})
    assert call(archive.find("k3")) == 3
    assert archive.problem is not None
    assert "Read-only" in archive.problem
    monkeypatch.undo()
    assert archive.add({"k4": returning(4)})  # and with it what could not be kept before
    assert KernelArchive(place, KEY).names() == ("k0", "k1", "k2", "k3", "k4")


def test_without_a_directory_kernels_are_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for archive in (KernelArchive(None, KEY), KernelArchive(tmp_path / "file" / "kernels", KEY)):
        assert archive.problem is not None
        assert not archive.add({"k3": returning(3)})
        assert call(archive.find("k3")) == 3
        assert archive.names() == ("k3",)
        archive.clear()
        assert archive.names() == ()


@posix
def test_a_full_disk_leaves_what_was_there(place: Path) -> None:
    path = path_of(filled(place))
    before = path.read_bytes()
    code = """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (4200, 4200))
    archive = KernelArchive(Path(sys.argv[1]), "here\\ntest 1")
    assert not archive.add({"k9": returning(9)})
    assert "not kept" in archive.problem, archive.problem
    assert call(archive.find("k9")) == 9 and call(archive.find("k1")) == 1
    """
    assert run_python(code, place).wait(HANGS) == 0
    assert path.read_bytes() == before
    assert not list(place.glob("*.new"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_is_full_takes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of(filled(place))
    before = path.read_bytes()
    opening = os.open

    def open_full(path: object, flags: int, *mode: int) -> int:
        return opening("/dev/full", os.O_WRONLY) if str(path).endswith(".new") else opening(path, flags, *mode)

    monkeypatch.setattr(os, "open", open_full)
    archive = KernelArchive(place, KEY)
    assert not archive.add({"k9": returning(9)})
    assert archive.problem is not None
    assert "No space left on device" in archive.problem
    assert [call(archive.find(name)) for name in ("k1", "k9")] == [1, 9]
    assert path.read_bytes() == before
    monkeypatch.undo()
    assert archive.add({"k8": returning(8)})
    assert KernelArchive(place, KEY).names() == ("k0", "k1", "k2", "k8", "k9")


@posix
def test_a_directory_without_permission_to_write(place: Path) -> None:
    filled(place)
    place.chmod(0o500)
    try:
        if os.access(place, os.W_OK):
            pytest.skip("this user may write everywhere")
        archive = KernelArchive(place, KEY)
        assert call(archive.find("k1")) == 1
        assert not archive.add({"k3": returning(3)})
        assert call(archive.find("k3")) == 3
    finally:
        place.chmod(0o700)


@posix
def test_a_file_system_that_forbids_execution_is_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(place)
    forbid_files(monkeypatch)
    archive = KernelArchive(place, KEY)
    assert [call(archive.find(f"k{number}")) for number in range(3)] == [0, 1, 2]
    assert archive.problem is None


@posix
def test_a_system_that_forbids_execution_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(place)
    forbid_files(monkeypatch)
    monkeypatch.setattr(host._libc(), "mprotect", lambda *_: -1)
    archive = KernelArchive(place, KEY)
    assert archive.find("k1") is None
    assert archive.problem is not None
    assert "does not let memory become executable" in archive.problem
    with pytest.raises(CompileError, match="cannot be run"):
        archive.add({"k1": returning(1)})


def forbid_files(monkeypatch: pytest.MonkeyPatch) -> None:
    libc = host._libc()
    real: Callable[..., int] = libc.mmap
    monkeypatch.setattr(libc, "mmap", lambda *args: host._FAILED if args[4] >= 0 else real(*args))


def test_a_writer_that_hangs_is_not_waited_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = filled(place)
    monkeypatch.setattr(archives, "LOCK_TIMEOUT", 0.05)
    with host.file_lock(place / "lock", 1):
        assert not archive.add({"k3": returning(3)})
    assert archive.problem is not None
    assert "locked by another process" in archive.problem
    assert call(archive.find("k3")) == 3


def test_who_has_waited_for_a_writer_that_hangs_does_not_wait_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    archive = filled(place)
    locking, waits = host.file_lock, []

    def file_lock(path: Path, timeout: float) -> Any:
        waits.append(timeout)
        return locking(path, min(timeout, 0.02))

    monkeypatch.setattr(host, "file_lock", file_lock)
    with locking(place / "lock", 1):
        assert not archive.add({"k3": returning(3)})
        assert not archive.add({"k4": returning(4)})
        assert not KernelArchive(place, KEY, limit=1).add({"k5": returning(5)})
        assert len(waits) > 3
        assert waits == [archives.LOCK_TIMEOUT] + [0] * (len(waits) - 1)
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert str(place / "lock") in record.message
        assert "not kept" in record.message
    waits.clear()
    assert archive.add({"k6": returning(6)})
    assert archive.add({"k7": returning(7)})
    assert waits == [0, archives.LOCK_TIMEOUT], "who gets the lock is patient again"
    assert KernelArchive(place, KEY).names() == ("k0", "k1", "k2", "k3", "k4", "k6", "k7")


HELD = """
def held(place):
    size = 0
    for line in open("/proc/self/maps"):
        if str(place) in line:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            size += end - start
    return size

place = Path(sys.argv[1])
large = Blob(returning(7).code + bytes(1 << 20), 0)
KernelArchive(place, "here\\ntest 1").add({f"large{n}": large for n in range(4)})
mine, other = KernelArchive(place, "here\\ntest 1"), KernelArchive(place, "here\\ntest 1")
assert call(mine.find("large0")) == call(other.find("large1")) == 7
for number in range(20):
    other.refresh() if sys.argv[2] == "several" else None
    assert mine.add({f"k{number}": returning(number)})
    assert call(mine.find(f"k{number}")) == number
    if sys.argv[2] == "several":
        other.refresh()
        assert call(other.find(f"k{number}")) == number
        assert other.add({f"o{number}": returning(number)})
        mine.refresh()
        assert call(mine.find(f"o{number}")) == number
assert call(mine.find("large2")) == call(other.find("large3")) == 7
size = mine.path.stat().st_size
assert held(place) < 4.1 * size, held(place) / size
assert set(KernelArchive(place, "here\\ntest 1").names()) == {*mine.names(), *other.names()}
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")
@pytest.mark.parametrize("writers", ["one", "several"])
def test_archives_that_were_replaced_are_not_held(place: Path, writers: str) -> None:
    assert run_python(HELD, place, writers).wait(HANGS) == 0


def file_of(path: Path) -> KernelFile:
    return KernelFile(memoryview(path.read_bytes()))


def record_of(path: Path, name: str) -> Record:
    record = file_of(path).find(name)
    assert record is not None
    return record


def set_day(path: Path, name: str, day: int) -> None:
    with path.open("r+b") as stream:
        at, stamp = day_place(record_of(path, name), day)
        stream.seek(at)
        stream.write(stamp)


def test_the_day_of_the_last_use_is_kept(place: Path) -> None:
    archive = filled(place)
    set_day(path_of(archive), "k1", 10)
    later = KernelArchive(place, KEY)
    content = path_of(archive).read_bytes()
    later.find("k1")
    assert path_of(archive).read_bytes() != content
    assert file_of(path_of(archive)).days()["k1"] == archives._today()
    assert KernelArchive(place, KEY).check() == ()


def test_a_large_archive_loses_what_was_not_used_for_longest(place: Path) -> None:
    archive = KernelArchive(place, KEY)
    code = returning(1).code
    archive.add({f"k{number}": Blob(code + bytes(4000), 0) for number in range(10)})
    for number in range(10):
        set_day(path_of(archive), f"k{number}", 1000 - number)
    assert KernelArchive(place, KEY, limit=40_000).add({"new": returning(1)})
    pruned = KernelArchive(place, KEY)
    assert pruned.names() == ("k0", "k1", "k2", "k3", "new")
    assert path_of(archive).stat().st_size <= 40_000
    assert [call(pruned.find(name)) for name in pruned.names()] == [1] * 5


def test_archives_of_other_keys_go_first(place: Path) -> None:
    paths = []
    for number in range(4):
        archive = KernelArchive(place, f"key {number}")
        archive.add({"k": Blob(returning(1).code + bytes(10_000), 0)})
        os.utime(path_of(archive), (number, number))
        paths.append(path_of(archive))
    last = KernelArchive(place, "key 0", limit=30_000)
    assert last.add({"new": returning(1)})
    assert last.names() == ("k", "new")
    assert [path.exists() for path in paths] == [True, False, False, True]


def test_a_directory_is_pruned_on_request(place: Path) -> None:
    for number in range(3):
        archive = KernelArchive(place, f"key {number}")
        archive.add({f"k{letter}": Blob(returning(1).code + bytes(4000), 0) for letter in "abcd"})
        os.utime(path_of(archive), (number, number))
    for day, letter in enumerate("abcd"):
        set_day(path_of(archive), f"k{letter}", 100 - day)
    assert [file_of(path).key for path in archive_files(place)] == ["key 0", "key 1", "key 2"]
    prune_directory(place, "key 2", 100_000, 100_000)
    assert len(archive_files(place)) == 3
    prune_directory(place, "key 2", 50_000, 50_000)
    assert [file_of(path).key for path in archive_files(place)] == ["key 1", "key 2"]
    prune_directory(place, "key 2", 10_000, 10_000)
    assert KernelArchive(place, "key 2").names() == ("ka", "kb")
    prune_directory(place, "key 2", 0, 0)
    assert KernelArchive(place, "key 2").names() == ()
    assert len(archive_files(place)) == 1


def test_a_directory_is_cleared_on_request(place: Path) -> None:
    mine, other = filled(place), filled(place, key="other key")
    address = mine.find("k1")
    (place / "notes.txt").touch()
    clear_directory(place)
    assert archive_files(place) == ()
    assert (place / "notes.txt").exists()
    assert call(address) == 1
    assert other.add({"k9": returning(9)})
    assert [file_of(path).key for path in archive_files(place)] == ["other key"]
    assert archive_files(place / "none") == ()


def test_an_archive_that_is_shipped_is_only_read(place: Path, tmp_path: Path) -> None:
    filled(place)
    if os.name == "posix":
        place.chmod(0o755)
        for path in place.iterdir():
            path.chmod(0o644)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in place.iterdir())
    shipped = KernelArchive(place, KEY, writable=False)
    mine = KernelArchive(tmp_path / "mine", KEY)
    library = KernelLibrary([shipped, mine])
    assert library.missing(["k0", "k9", "k1", "k9"]) == ("k9",)
    assert library.add({"k9": returning(9)})
    assert [call(library.find(name)) for name in ("k0", "k9")] == [0, 9]
    assert mine.names() == ("k9",)
    assert not shipped.add({"k8": returning(8)})
    assert before == sorted((path.name, path.stat().st_mtime_ns) for path in place.iterdir())


def test_the_directory_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    assert user_directory() == tmp_path / "kernels"
    monkeypatch.delenv("GOSSAMER_CACHE_DIR")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert user_directory() == tmp_path / "cache" / "gossamer" / "kernels"


@posix
def test_a_directory_of_another_user_is_told(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    filled(place)
    assert not caplog.records
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    KernelArchive(place, KEY)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"{place} belongs to another user (uid {os.getuid()}): compiled kernels are neither read" in record.message


@posix
def test_kernels_that_cannot_be_run_are_not_asked_for_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_files(monkeypatch)
    monkeypatch.setattr(host._libc(), "mprotect", lambda *_: -1)
    archive = KernelArchive(place, KEY)
    assert archive.runs_new_kernels
    with pytest.raises(CompileError, match="cannot be run"):
        archive.add({"k1": returning(1)})
    assert not archive.runs_new_kernels
