"""Kernel archives: files of position-independent machine code, checked, mapped executable and shared by processes."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from gossamer.config import cache_dir
from gossamer.errors import CompileError
from gossamer.programs import host
from gossamer.targets import Target

# A file is a header, the day each kernel was last used, a record for each, their names, and from the next page on
# their code. The check of the header covers all but the days; that of a record covers name, place and code, so that
# code under another name is as wrong as damaged code. The file is never changed but for the days: a new one takes its
# place, and who has mapped the old one keeps it.
_MAGIC = b"GOSSAMER KERNELS"
_FORMAT = 1
_HEADER = struct.Struct("<16sIIIII")  # magic, format, kernels, bytes of the key, bytes of the names, check
_DAY = struct.Struct("<I")
_RECORD = struct.Struct("<QIIIII")  # offset of the code, its bytes, entry, alignment, bytes of the name, check
_PAGE = 4096
_LARGEST_ALIGNMENT = _PAGE

DEFAULT_LIMIT = 32 << 20
"""Bytes that the archives of a directory may take. The kernels of five CNNs are 0.2 MB."""

LOCK_TIMEOUT = 5.0
"""Seconds to wait for another process that writes. It takes milliseconds."""


@dataclass(frozen=True)
class Blob:
    """Position-independent machine code without external references; ``entry`` is the offset of its function."""

    code: bytes
    entry: int
    alignment: int = 64


class _Record(NamedTuple):
    """Where a kernel lies in an archive."""

    offset: int
    size: int
    entry: int
    alignment: int
    check: int
    number: int
    day: int


class _File(NamedTuple):
    """An archive as it is mapped."""

    memory: host.ExecutableMemory
    records: dict[str, _Record]

    def code(self, record: _Record) -> memoryview:
        return self.memory.view()[record.offset : record.offset + record.size]


def archive_key(target: Target, generator: str) -> str:
    """What machine code depends on, beyond the name of its kernel."""
    return "\n".join((target.name, target.triple, target.cpu, ",".join(target.features), generator))


class KernelArchive:
    """The kernels of one key in one directory, by name.

    ``find`` gives the address of a kernel, good for the rest of the process. ``add`` makes kernels available here and,
    where the directory lets it, to every process from now on. Nothing that is damaged, of another key, or may have been
    written by another user is ever run: it is as if it were not there, ``problem`` says why, and the next ``add``
    replaces it.

    Where ``writable`` is false, the directory is as trusted as the program that names it, and is only read. Without a
    directory, kernels are kept in memory only.
    """

    def __init__(self, path: Path | None, key: str, *, writable: bool = True, limit: int = DEFAULT_LIMIT) -> None:
        self.key = key
        self.limit = limit
        self.problem: str | None = None
        self._addresses: dict[str, int] = {}
        self._file: _File | None = None
        self._unsaved: dict[str, Blob] = {}
        # The name only finds the file; the key inside decides.
        family = key.partition("\n")[0]
        self.path = None if path is None else Path(path) / f"{family}-{crc32(key.encode()):08x}.kernels"
        self.writable = writable and path is not None
        if self.path is None:
            self.problem = "There is no directory for compiled kernels (GOSSAMER_CACHE_DIR)"
            return
        if self.writable:
            try:
                host.private_directory(self.path.parent)
            except OSError as error:
                self._complain(error)
                self.writable = False
                return
        self._open()
        if self.writable:
            self._prune()

    def find(self, name: str) -> int | None:
        """The address of a kernel, or ``None`` if it is not here or not as it was written."""
        address = self._addresses.get(name)
        if address is not None:
            return address
        file = self._file
        record = file.records.get(name) if file is not None else None
        if file is None or record is None:
            return None
        if _check(name, record, file.code(record)) != record.check:
            self._forget_damaged(file, name)
            return None
        self._addresses[name] = address = file.memory.address + record.offset + record.entry
        self._mark_used(file, record)
        return address

    def add(self, kernels: Mapping[str, Blob]) -> bool:
        """Take kernels in. They can be found afterwards; the answer is whether other processes will find them too."""
        if not kernels:
            return True
        saved = self.writable and self._save({**self._unsaved, **kernels})
        if saved:
            self._unsaved.clear()
            self._open()
        missing = {name: blob for name, blob in kernels.items() if self.find(name) is None}
        if missing:
            self._load(missing)
        if not saved:
            self._unsaved.update(missing)
        return saved

    def names(self) -> tuple[str, ...]:
        """The kernels that are here, in alphabetical order."""
        return tuple(sorted({*(self._file.records if self._file else ()), *self._addresses}))

    def check(self) -> tuple[str, ...]:
        """The kernels of the file that are damaged. They are not found from now on, and ``add`` may replace them."""
        file = self._file
        if file is None:
            return ()
        records = file.records.items()
        damaged = tuple(name for name, record in records if _check(name, record, file.code(record)) != record.check)
        for name in damaged:
            self._forget_damaged(file, name)
        return damaged

    def clear(self) -> None:
        """Forget every kernel, here and on disk. Addresses already given stay good."""
        self._file = None
        self._addresses.clear()
        self._unsaved.clear()
        if self.writable and self.path is not None:
            with self._lock():
                self.path.unlink(missing_ok=True)

    # Reading

    def _open(self) -> None:
        if self.path is None:
            return
        try:
            file = host.open_private(self.path) if self.writable else os.open(self.path, os.O_RDONLY | _BINARY)
        except FileNotFoundError:
            return
        except OSError as error:
            self._complain(error)
            return
        try:
            memory = host.ExecutableMemory.from_file(file, os.fstat(file).st_size)
        except OSError as error:
            self._complain(f"{self.path} cannot be mapped: {error}")
            return
        finally:
            os.close(file)
        try:
            self._file = _File(memory, _read_index(memory.view(), self.key))
        except ValueError as error:
            memory.close()
            self._complain(f"{self.path} {error}")

    def _mark_used(self, file: _File, record: _Record) -> None:
        # At most once a day for each kernel; who loses the race with a new file loses nothing.
        if not self.writable or self.path is None or record.day == _today():
            return
        with suppress(OSError):
            archive = os.open(self.path, os.O_RDWR | _BINARY)
            try:
                if os.read(archive, _HEADER.size) == file.memory.view()[: _HEADER.size]:  # still the one that is mapped
                    os.lseek(archive, _HEADER.size + _DAY.size * record.number, os.SEEK_SET)
                    os.write(archive, _DAY.pack(_today()))
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

    def _forget_damaged(self, file: _File, name: str) -> None:
        file.records.pop(name, None)
        self._addresses.pop(name, None)
        self._complain(f"{self.path}: kernel {name} is damaged")

    # Writing

    def _lock(self) -> AbstractContextManager[None]:
        if self.path is None:
            raise FileNotFoundError(self.problem)
        return host.file_lock(self.path.parent / "lock", LOCK_TIMEOUT)

    def _save(self, kernels: Mapping[str, Blob]) -> bool:
        try:
            with self._lock():
                kept, days = self._read_to_rewrite()
                self._replace({**kernels, **kept}, days)
        except OSError as error:
            self._complain(f"Compiled kernels were not kept: {error}")
            return False
        return True

    def _read_to_rewrite(self) -> tuple[dict[str, Blob], dict[str, int]]:
        """The sound kernels that the file has now, perhaps from another process, and the days of their last use."""
        kernels: dict[str, Blob] = {}
        days: dict[str, int] = {}
        if self.path is not None:
            with suppress(OSError, ValueError), os.fdopen(host.open_private(self.path), "rb") as stream:
                content = memoryview(stream.read())
                for name, record in _read_index(content, self.key).items():
                    code = content[record.offset : record.offset + record.size]
                    if _check(name, record, code) == record.check:
                        kernels[name] = Blob(bytes(code), record.entry, record.alignment)
                        days[name] = record.day
        return kernels, days

    def _replace(self, kernels: Mapping[str, Blob], days: Mapping[str, int]) -> None:
        if self.path is None:
            return
        # Whoever writes holds the lock, so another temporary file belongs to a process that died. Without fsync, a
        # power cut may leave a damaged file: the next process notices.
        for left in self.path.parent.glob("*.new"):
            left.unlink()
        new = self.path.with_suffix(".new")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600), "wb") as stream:
                stream.write(_encode(self.key, kernels, days))
            os.replace(new, self.path)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise

    def _prune(self) -> None:
        """Keep the directory within the limit: archives of other keys go first, then kernels, longest unused first."""
        if self.path is None:
            return
        try:
            files = [(found.stat(), found) for found in self.path.parent.glob("*.kernels")]
            total = sum(stat.st_size for stat, _ in files)
            if total <= self.limit:
                return
            with self._lock():
                for stat, path in sorted(files, key=lambda file: file[0].st_mtime):
                    if total > self.limit and path != self.path:
                        path.unlink(missing_ok=True)
                        total -= stat.st_size
                if total > self.limit:
                    kernels, days = self._read_to_rewrite()
                    self._replace(_most_recent(kernels, days, self.limit // 2), days)
        except OSError as error:
            self._complain(f"Compiled kernels were not pruned: {error}")
            return
        self._open()

    def _complain(self, problem: object) -> None:
        if self.problem is None:
            self.problem = str(problem)


def user_directory() -> Path | None:
    """Where the kernels of this user are kept, if there is a place: a directory of their own, which is made private."""
    place = cache_dir()
    return None if place is None else place / "kernels"


class KernelLibrary:
    """Several archives, searched in order; what is new goes into the last."""

    def __init__(self, archives: Iterable[KernelArchive]) -> None:
        self.archives = tuple(archives)

    def find(self, name: str) -> int | None:
        """The address of a kernel in the first archive that has it."""
        for archive in self.archives:
            address = archive.find(name)
            if address is not None:
                return address
        return None

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that no archive has, each once."""
        return tuple(name for name in dict.fromkeys(names) if self.find(name) is None)

    def add(self, kernels: Mapping[str, Blob]) -> bool:
        """Take kernels into the last archive."""
        return self.archives[-1].add(kernels)


_BINARY = getattr(os, "O_BINARY", 0)


def _today() -> int:
    return int(time.time()) // 86400


def _check(name: str, record: _Record, code: memoryview | bytes) -> int:
    about = f"{name} {record.size} {record.entry} {record.alignment}".encode()
    return crc32(code, crc32(about))


def _most_recent(kernels: Mapping[str, Blob], days: Mapping[str, int], room: int) -> dict[str, Blob]:
    kept = {}
    for name in sorted(kernels, key=lambda name: days[name], reverse=True):
        room -= len(kernels[name].code) + kernels[name].alignment
        if room < 0:
            break
        kept[name] = kernels[name]
    return kept


def _encode(key: str, kernels: Mapping[str, Blob], days: Mapping[str, int]) -> bytes:
    names = "".join(kernels).encode()
    front = _HEADER.size + len(kernels) * (_DAY.size + _RECORD.size) + len(key.encode()) + len(names)
    code = bytearray()
    start = -(-front // _PAGE) * _PAGE
    stamps, records = [], []
    for number, (name, blob) in enumerate(kernels.items()):
        if not 0 < blob.alignment <= _LARGEST_ALIGNMENT or not 0 <= blob.entry < len(blob.code):
            raise CompileError(f"Kernel {name} has entry {blob.entry} and alignment {blob.alignment}.")
        code += b"\xcc" * (-len(code) % blob.alignment)
        record = _Record(start + len(code), len(blob.code), blob.entry, blob.alignment, 0, number, 0)
        records.append(_RECORD.pack(*record[:4], len(name.encode()), _check(name, record, blob.code)))
        stamps.append(_DAY.pack(days.get(name, _today())))
        code += blob.code
    index = b"".join((*records, key.encode(), names))
    fields = (_MAGIC, _FORMAT, len(kernels), len(key.encode()), len(names))
    header = _HEADER.pack(*fields, crc32(index, crc32(repr(fields).encode())))
    content = b"".join((header, *stamps, index))
    return content + bytes(start - len(content)) + bytes(code)


def _read_index(content: memoryview, key: str) -> dict[str, _Record]:
    """The records of a file, or a `ValueError` that says what is wrong with it."""
    if len(content) < _HEADER.size:
        raise ValueError("is too short")
    magic, version, count, key_size, names_size, check = _HEADER.unpack_from(content)
    if magic != _MAGIC or version != _FORMAT:
        raise ValueError("is not an archive of kernels of this format")
    index_at = _HEADER.size + count * _DAY.size
    key_at = index_at + count * _RECORD.size
    names_at = key_at + key_size
    if names_at + names_size > len(content):
        raise ValueError("is truncated")
    fields = (magic, version, count, key_size, names_size)
    if crc32(content[index_at : names_at + names_size], crc32(repr(fields).encode())) != check:
        raise ValueError("is damaged")
    if bytes(content[key_at:names_at]) != key.encode():
        raise ValueError("was made for another CPU or by another version")
    names = bytes(content[names_at : names_at + names_size])
    days = content[_HEADER.size : index_at].cast("I")
    records = {}
    at = 0
    for number, record in enumerate(_RECORD.iter_unpack(content[index_at:key_at])):
        offset, size, entry, alignment, name_size, check = record
        if offset + size > len(content):
            raise ValueError("is truncated")
        name = names[at : at + name_size].decode()
        records[name] = _Record(offset, size, entry, alignment, check, number, days[number])
        at += name_size
    return records
