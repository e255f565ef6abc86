"""Kernel archives: files of position-independent machine code, checked, mapped executable and shared by processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from gossamer.disk_cache import BINARY, NO_LINK, NO_WAIT
from gossamer.errors import CompileError
from gossamer.log import logger
from gossamer.programs import host
from gossamer.programs.kernel_file import HEADER_SIZE, Blob, KernelFile, Record, day_place, encode
from gossamer.targets import Target

SUFFIX = ".kernels"
"""How the files of archives end."""

_NEW = ".new"
"""How one ends that is being written."""

DEFAULT_LIMIT = 32 << 20
"""Bytes that the archives of a directory may take. The kernels of five CNNs are 0.2 MB."""

LOCK_TIMEOUT = 1.0
"""Seconds to wait for another process that writes. It takes milliseconds."""

_hung: set[Path] = set()
"""Directories whose lock was waited for in vain: who comes again only tries."""

# Threads of this process that change archives do it one after the other; other processes are locked out by a file.
_writing = threading.RLock()


class _Mapped(NamedTuple):
    """A file as it is mapped. It is never changed but for the days: a new one takes its place.

    ``code`` is its address where it is executable. ``inode``: its device and number, which no other file has meanwhile.
    """

    file: KernelFile
    code: int | None
    inode: tuple[int, int]


def archive_key(target: Target, generator: str) -> str:
    """What machine code depends on, beyond the name of its kernel, in lines."""
    return "\n".join((target.name, target.triple, target.cpu, ",".join(target.features), generator))


def archive_path(directory: Path, key: str) -> Path:
    """The file of a key. The name only finds it; the key inside decides."""
    family = key.partition("\n")[0]
    return directory / f"{family}-{crc32(key.encode()):08x}{SUFFIX}"


class KernelArchive:
    """The kernels of one key in one directory, by name.

    ``find`` gives the address of a kernel, good for the rest of the process. ``add`` makes kernels available here and,
    where the directory lets it, to every process from now on. Nothing that is damaged, of another key, or may have been
    written by another user is ever run: it is as if it were not there, ``problem`` says why, and the next ``add``
    replaces it. Threads may share an archive.

    Where ``writable`` is false, the directory is as trusted as the program that names it, and is only read. Without a
    directory, kernels are kept in memory only.
    """

    def __init__(self, path: Path | None, key: str, *, writable: bool = True, limit: int = DEFAULT_LIMIT) -> None:
        self.key = key
        self.limit = limit
        self.problem: str | None = None
        self._addresses: dict[str, int] = {}
        self._mapped: _Mapped | None = None
        self._damaged: set[str] = set()
        self._refused = False
        self._unsaved: dict[str, Blob] = {}
        self.path = None if path is None else archive_path(path, key)
        self.writable = writable and path is not None
        if self.path is None:
            self.problem = "There is no directory for compiled kernels (GOSSAMER_CACHE_DIR)"
            return
        if self.writable:
            try:
                host.private_directory(self.path.parent)
            except OSError as error:
                logger.warning("%s: compiled kernels are neither read nor kept there (GOSSAMER_CACHE_DIR).", error)
                self._complain(error)
                self.writable = False
                return
        self.refresh()

    def find(self, name: str) -> int | None:
        """The address of a kernel, or ``None`` if it is not here or not as it was written."""
        address = self._addresses.get(name)
        if address is not None or self._mapped is None:
            return address
        file, code, _ = mapped = self._mapped
        record = file.find(name)
        if record is None or name in self._damaged:
            return None
        if not file.is_sound(name, record):
            self._forget_damaged(name)
            return None
        if code is None:
            with _writing:
                code = self._load_or_map(mapped, name, record)
        if code is not None:
            self._addresses[name] = code + record.offset + record.entry
        if self.writable:
            self._mark_used(file, record)
        return self._addresses.get(name)

    def add(self, kernels: Mapping[str, Blob]) -> bool:
        """Take kernels in. They can be found afterwards; the answer is whether other processes will find them too.

        Raises `CompileError` if they cannot be run.
        """
        if not kernels:
            return True
        with _writing:
            saved = self.writable and self._save({**self._unsaved, **kernels})
            missing = {name: blob for name, blob in kernels.items() if self.find(name) is None}
            if saved:
                self._unsaved.clear()
            else:
                self._unsaved.update(missing)
            if missing:
                try:
                    self._load(missing)
                except CompileError:
                    if saved:
                        self.refresh(executable=True)
                    if any(self.find(name) is None for name in missing):
                        self._refused = True
                        raise
        return saved

    @property
    def runs_new_kernels(self) -> bool:
        """Whether those that are added can be run, in memory or from the file that has them then."""
        kept = self.writable and self.path is not None and os.access(self.path.parent, os.W_OK)
        return not self._refused and (kept or host.runs_new_code())

    def names(self) -> tuple[str, ...]:
        """The kernels that are here, in alphabetical order."""
        stored = () if self._mapped is None else (name for name, _ in self._mapped.file if name not in self._damaged)
        return tuple(sorted({*stored, *self._addresses}))

    def check(self) -> tuple[str, ...]:
        """The kernels of the file that are damaged. They are not found from now on, and ``add`` may replace them."""
        if self._mapped is None:
            return ()
        file = self._mapped.file
        damaged = tuple(name for name, record in file if not file.is_sound(name, record))
        for name in damaged:
            self._forget_damaged(name)
        return damaged

    def clear(self) -> None:
        """Forget every kernel, here and on disk. Addresses already given stay good."""
        with _writing:
            self._mapped = None
            self._addresses.clear()
            self._unsaved.clear()
            if self.writable and self.path is not None:
                with _locked(self.path.parent):
                    self.path.unlink(missing_ok=True)

    def refresh(self, *, executable: bool = False) -> None:
        """Take the file as it is now: other processes may have added to it.

        Only the first one, from which kernels run as long as the process does, is mapped executable, unless another has
        to be: what later ones have is copied when it is looked for, so that those that were replaced go.
        """
        if self.path is None:
            return
        try:
            opened = (
                host.open_private(self.path) if self.writable else os.open(self.path, os.O_RDONLY | NO_WAIT | BINARY)
            )
        except FileNotFoundError:
            return
        except OSError as error:
            self._complain(error)
            return
        executable = executable or self._mapped is None
        memory = None
        try:
            found = os.fstat(opened)
            inode = (found.st_dev, found.st_ino)
            if self._mapped is not None and inode == self._mapped.inode and not executable:
                return
            if executable:
                memory = host.ExecutableMemory.from_file(opened, found.st_size)
            content = host.file_content(opened, found.st_size) if memory is None else memory.view()
            file = _of_key(KernelFile(content), self.key)
        except OSError as error:
            self._complain(f"{self.path} cannot be mapped: {error}")
        except ValueError as error:
            if memory is not None:
                memory.close()
            self._complain(f"{self.path} {error}")
        else:
            self._mapped = _Mapped(file, None if memory is None else memory.address, inode)
            self._damaged = set()
        finally:
            os.close(opened)

    def _load_or_map(self, mapped: _Mapped, name: str, record: Record) -> int | None:
        """Copy a kernel of a file that is not executable, or make it so: then the answer is where it is."""
        file = mapped.file
        try:
            self._load({name: Blob(bytes(file.code(record)), record.entry, record.alignment)})
        except CompileError:
            self.refresh(executable=True)
            if self._mapped is not None and self._mapped.inode == mapped.inode:
                return self._mapped.code
        return None

    def _mark_used(self, file: KernelFile, record: Record) -> None:
        # At most once a day for each kernel; who loses the race with a new file loses nothing.
        if self.path is None or file.day(record) == _today():
            return
        with suppress(OSError):
            archive = os.open(self.path, os.O_RDWR | NO_LINK | NO_WAIT | BINARY)
            try:
                is_ours = os.fstat(archive).st_nlink == 1  # else it is a file of another place too
                if is_ours and os.read(archive, HEADER_SIZE) == file.content[:HEADER_SIZE]:  # which is mapped
                    at, day = day_place(record, _today())
                    os.lseek(archive, at, os.SEEK_SET)
                    os.write(archive, day)
            finally:
                os.close(archive)

    def _load(self, kernels: Mapping[str, Blob]) -> None:
        code = bytearray()
        starts = {}
        for name, blob in kernels.items():
            code += bytes(-len(code) % blob.alignment)
            starts[name] = len(code)
            code += blob.code
        try:
            memory = host.ExecutableMemory.from_bytes(bytes(code))
        except OSError as error:
            raise CompileError(f"Compiled kernels cannot be run: {error}.") from error
        for name, blob in kernels.items():
            self._addresses[name] = memory.address + starts[name] + blob.entry

    def _forget_damaged(self, name: str) -> None:
        self._damaged.add(name)
        self._addresses.pop(name, None)
        self._complain(f"{self.path}: kernel {name} is damaged")

    def _save(self, kernels: Mapping[str, Blob]) -> bool:
        if self.path is None:
            return False
        self._keep_within_limit(self.path.parent)
        try:
            with _locked(self.path.parent):
                kept, days = _read_to_rewrite(self.path, self.key)
                _replace(self.path, self.key, {**kernels, **kept}, days)
        except OSError as error:
            self._complain(f"Compiled kernels were not kept: {error}")
            return False
        return True

    def _keep_within_limit(self, directory: Path) -> None:
        try:
            if sum(size for _, size, _ in _by_age(directory)) > self.limit:
                # What is left of this archive is much less than the limit, so that the next time is not soon.
                prune_directory(directory, self.key, self.limit, self.limit // 2)
        except OSError as error:
            self._complain(f"Compiled kernels were not pruned: {error}")

    def _complain(self, problem: object) -> None:
        if self.problem is None:
            self.problem = str(problem)


class KernelLibrary:
    """Several archives, searched in order; what is new goes into the last."""

    def __init__(self, archives: Iterable[KernelArchive]) -> None:
        self.archives = tuple(archives)
        self._found_in: dict[str, KernelArchive] = {}
        """Where kernels were found last: programs of many shapes ask again and again."""

    def find(self, name: str) -> int | None:
        """The address of a kernel in the first archive that has it."""
        known = self._found_in.get(name)
        for archive in self.archives if known is None else (known, *self.archives):
            address = archive.find(name)
            if address is not None:
                self._found_in[name] = archive
                return address
        return None

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that no archive has, each once."""
        return tuple(name for name in dict.fromkeys(names) if self.find(name) is None)

    @property
    def runs_new_kernels(self) -> bool:
        """Whether those that are added can be run."""
        return self.archives[-1].runs_new_kernels

    def add(self, kernels: Mapping[str, Blob]) -> bool:
        """Take kernels into the last archive. Raises `CompileError` if they cannot be run."""
        return self.archives[-1].add(kernels)

    def refresh(self) -> None:
        """See what other processes have added to the last archive."""
        self.archives[-1].refresh()


def archive_files(directory: Path) -> tuple[Path, ...]:
    """The archives of a directory, of every key, longest unwritten first; none if it cannot be read."""
    with suppress(OSError):
        return tuple(path for path, _, _ in _by_age(directory))
    return ()


def read_archive(path: Path, *, private: bool) -> KernelFile:
    """What is in the file of an archive, of any key.

    Raises `OSError` if it cannot be read, or if it is to be ``private`` and others may have written it; `ValueError`,
    with the rest of a sentence, if it is no archive.
    """
    opened = host.open_private(path) if private else os.open(path, os.O_RDONLY | NO_WAIT | BINARY)
    with os.fdopen(opened, "rb") as stream:
        return KernelFile(memoryview(stream.read()))


def prune_directory(directory: Path, key: str, limit: int, leave: int) -> None:
    """Bring the archives of a directory down to ``limit`` bytes, for somebody who uses those of this key.

    Archives of other keys go first, longest unwritten first. If that is not enough, only the kernels of this key that
    were used last stay, in ``leave`` bytes. Raises `OSError`.
    """
    own = archive_path(directory, key)
    with _writing, _locked(directory):
        _remove_leftovers(directory)
        archives = _by_age(directory)
        total = sum(size for _, size, _ in archives)
        for path, size, _ in archives:
            if total > limit and path != own:
                path.unlink(missing_ok=True)
                total -= size
        if total > limit:
            kernels, days = _read_to_rewrite(own, key)
            _replace(own, key, _most_recent(kernels, days, leave), days)


def clear_directory(directory: Path) -> None:
    """Delete the archives of a directory, of every key. Processes that use them keep what they have. `OSError`."""
    with _writing, _locked(directory):
        _remove_leftovers(directory)
        for path, _, _ in _by_age(directory):
            path.unlink(missing_ok=True)


def _by_age(directory: Path) -> list[tuple[Path, int, float]]:
    """Paths, bytes and times of last writing, the oldest first."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                with suppress(FileNotFoundError):
                    stat = entry.stat(follow_symlinks=False)
                    found.append((directory / entry.name, stat.st_size, stat.st_mtime))
    return sorted(found, key=lambda archive: archive[2])


def _of_key(file: KernelFile, key: str) -> KernelFile:
    if file.key != key:
        raise ValueError("was made for another CPU or by another version")
    return file


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(host.file_lock(directory / "lock", 0 if directory in _hung else LOCK_TIMEOUT))
        except TimeoutError as error:
            if directory not in _hung:
                logger.warning("%s. Compiled kernels are not kept until it lets go.", error)
            _hung.add(directory)
            raise
        _hung.discard(directory)
        yield


def _read_to_rewrite(path: Path, key: str) -> tuple[dict[str, Blob], dict[str, int]]:
    """The sound kernels that the file has now, perhaps from another process, and the days of their last use."""
    with suppress(OSError, ValueError):
        file = _of_key(read_archive(path, private=True), key)
        return file.kernels(), file.days()
    return {}, {}


def _remove_leftovers(directory: Path) -> None:
    """Whoever writes holds the lock, so a temporary file belongs to a process that died."""
    for left in directory.glob(f"*{_NEW}"):
        with suppress(OSError):
            left.unlink()


def _replace(path: Path, key: str, kernels: Mapping[str, Blob], days: Mapping[str, int]) -> None:
    # Without fsync, a power cut may leave a damaged file: the next process notices.
    _remove_leftovers(path.parent)
    content = encode(key, kernels, {**dict.fromkeys(kernels, _today()), **days})
    new = path.with_suffix(_NEW)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | BINARY, 0o600), "wb") as stream:
            stream.write(content)
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def _most_recent(kernels: Mapping[str, Blob], days: Mapping[str, int], room: int) -> dict[str, Blob]:
    kept = {}
    for name in sorted(kernels, key=lambda name: days[name], reverse=True):
        room -= len(kernels[name].code) + kernels[name].alignment
        if room < 0:
            break
        kept[name] = kernels[name]
    return kept


def _today() -> int:
    return int(time.time()) // 86400


def _unlock() -> None:
    """In a child process: the thread that was writing stayed behind."""
    global _writing
    _writing = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
