"""AArch64 blobs run under qemu-user: a static executable around them, put together here."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gossamer.programs.archive import Blob
from gossamer.targets import all_targets

NEON = all_targets()["neon"]
_CODE, _DATA = 0x400000, 0x10000000

_BLR_X16, _SVC = 0xD63F0200, 0xD4000001
_WRITE, _EXIT = 64, 93


def emulator() -> str:
    """The emulator; the test is skipped where it is not installed."""
    found = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if found is None:
        pytest.skip("qemu-aarch64 is not installed (Debian: qemu-user)")
    return found


def data_address(offset: int) -> int:
    """Where this byte of the data is while the kernel runs."""
    return _DATA + offset


def kernel_address(blobs: Sequence[Blob], index: int) -> int:
    """Where the function of a blob is while the kernels run."""
    return _CODE + _place(blobs, index) + blobs[index].entry


def run(blobs: Sequence[Blob], data: bytes, directory: Path, *arguments: int) -> bytes:
    """The data after the first blob's function was called with the address of the data and these arguments."""
    main = _set(16, kernel_address(blobs, 0))
    for register, argument in enumerate((_DATA, *arguments)):
        main += _set(register, argument)
    main += [_BLR_X16, *_set(8, _WRITE), *_set(0, 1), *_set(1, _DATA), *_set(2, len(data)), _SVC]
    main += [*_set(8, _EXIT), *_set(0, 0), _SVC]
    start = _place(blobs, len(blobs))
    code = bytearray(start)
    for index, blob in enumerate(blobs):
        place = _place(blobs, index)
        code[place : place + len(blob.code)] = blob.code
    code += struct.pack(f"<{len(main)}I", *main)
    data_at = -(-len(code) // 4096) * 4096
    # The header of an executable for AArch64, and two segments: code to read and execute, data to read and write.
    headers = struct.pack("<16sHHIQQQI6H", b"\x7fELF\2\1\1", 2, 183, 1, _CODE + start, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    for flags, at, address, size in ((5, 0, _CODE, len(code)), (6, data_at, _DATA, len(data))):
        headers += struct.pack("<IIQQQQQQ", 1, flags, at, address, address, size, size, 4096)
    code[: len(headers)] = headers
    path = directory / "main"
    path.write_bytes(bytes(code).ljust(data_at, b"\0") + data)
    path.chmod(0o700)
    return subprocess.run([emulator(), str(path)], capture_output=True, check=True, timeout=60).stdout


def _set(register: int, value: int) -> list[int]:
    """The instructions that load a register: movz and three movk."""
    return [
        (0xF2800000 if half else 0xD2800000) | half << 21 | (value >> 16 * half & 0xFFFF) << 5 | register
        for half in range(4)
    ]


def _place(blobs: Sequence[Blob], index: int) -> int:
    # A page for the headers, then each blob where its alignment lets it, and no better.
    place = 4096
    for blob in blobs[:index]:
        place += -place % blob.alignment + len(blob.code) + 4
    return place + (-place % blobs[index].alignment if index < len(blobs) else -place % 64)
