from __future__ import annotations

import ctypes
import struct
from contextlib import suppress

import pytest

from gossamer.codegen.blob import extract
from gossamer.errors import CompileError
from gossamer.programs import host
from gossamer.programs.archive import Blob
from gossamer.targets import Target, all_targets
from tests.codegen.texts import object_of
from tests.programs.kernels import target_here

TARGETS = all_targets()

PLAIN = "define void @k(ptr %a) nounwind { store i64 7, ptr %a\n ret void }"
CONSTANTS = """
@table = internal constant [8 x i64] [i64 3, i64 1, i64 4, i64 1, i64 5, i64 9, i64 2, i64 6]
@more = internal constant <4 x i32> <i32 10, i32 20, i32 30, i32 40>, align 64
define internal i64 @pick(i64 %i) nounwind noinline {
  %p = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define void @k(ptr %a) nounwind {
  %i = load i64, ptr %a
  %v = call i64 @pick(i64 %i)
  store i64 %v, ptr %a
  %q = getelementptr i32, ptr @more, i64 %i
  %half = load i32, ptr %q
  %w = zext i32 %half to i64
  %p1 = getelementptr i64, ptr %a, i64 1
  store i64 %w, ptr %p1
  ret void
}
"""
SWITCH = """
define void @k(ptr %a) nounwind {{
  %i = load i64, ptr %a
  switch i64 %i, label %d [{cases}]
{blocks}
d:
  ret void
}}
"""


def switch(count: int) -> str:
    """A jump table."""
    cases = " ".join(f"i64 {number}, label %c{number}" for number in range(count))
    blocks = "\n".join(
        f"c{number}:\n store i64 {number * number + 3}, ptr %a\n %r{number} = load volatile i64, ptr %a\n br label %d"
        for number in range(count)
    )
    return SWITCH.format(cases=cases, blocks=blocks)


def call_with(blob: Blob, *words: int) -> list[int]:
    """Run a blob of this machine, at an address that is no better aligned than it asks for."""
    memory = host.ExecutableMemory.from_bytes(bytes(blob.alignment) + blob.code)
    array = (ctypes.c_int64 * len(words))(*words)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(memory.address + blob.alignment + blob.entry)(array)
    return list(array)


@pytest.fixture(scope="module")
def target() -> Target:
    return target_here()


def test_code_runs_where_it_is_put(target: Target) -> None:
    blob = extract(object_of(PLAIN, target))
    assert call_with(blob, 0) == [7]
    assert call_with(blob, 0) == [7]


@pytest.mark.parametrize("number", range(4))
def test_constants_and_inner_functions_come_along(target: Target, number: int) -> None:
    blob = extract(object_of(CONSTANTS, target))
    assert blob.alignment >= 64
    assert call_with(blob, number, 0) == [[3, 1, 4, 1][number], 10 * (number + 1)]


def test_jump_tables_come_along(target: Target) -> None:
    blob = extract(object_of(switch(12), target))
    assert [call_with(blob, number) for number in range(13)] == [[n * n + 3] for n in range(12)] + [[12]]


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
@pytest.mark.parametrize("text", [PLAIN, CONSTANTS, switch(12)], ids=["plain", "constants", "switch"])
def test_every_target_has_blobs(target: Target, text: str) -> None:
    blob = extract(object_of(text, target))
    assert 0 <= blob.entry < len(blob.code)
    assert blob.alignment in (64, 4096)


def test_constants_in_pages_need_the_start_of_a_page() -> None:
    neon = TARGETS["neon"]
    assert extract(object_of(CONSTANTS, neon)).alignment == 4096
    assert extract(object_of(PLAIN, neon)).alignment == 64


OUTSIDE = {
    "a function of libc": ("declare void @memcpy(ptr, ptr, i64)\ndefine void @k(ptr %a) nounwind {\n"
                           " call void @memcpy(ptr %a, ptr %a, i64 9)\n ret void\n}", "refers to memcpy"),
    "a variable": ("@x = external global i64\ndefine void @k(ptr %a) nounwind {\n %v = load i64, ptr @x\n"
                   " store i64 %v, ptr %a\n ret void\n}", "refers to x"),
    "writable data": ("@x = internal global i64 5\ndefine void @k(ptr %a) nounwind {\n %v = load volatile i64, ptr @x\n"
                      " store volatile i64 %v, ptr @x\n ret void\n}", "section .data"),
    "zeroed data": ("@x = internal global i64 0\ndefine void @k(ptr %a) nounwind {\n"
                    " store volatile i64 1, ptr @x\n ret void\n}", "section .bss"),
    "an absolute address": ("@t = internal constant [2 x ptr] [ptr @k, ptr null]\ndefine void @k(ptr %a) nounwind {\n"
                            " %i = load i64, ptr %a\n %p = getelementptr ptr, ptr @t, i64 %i\n %v = load ptr, ptr %p\n"
                            " store ptr %v, ptr %a\n ret void\n}", "section .data.rel.ro"),
    "a thread's variable": ("@x = internal thread_local global i64 5\ndefine void @k(ptr %a) nounwind {\n"
                            " %v = load volatile i64, ptr @x\n store i64 %v, ptr %a\n ret void\n}",
                            "__tls_get_addr|section .tdata"),
    "unwinding": ("define void @k(ptr %a) uwtable {\n ret void\n}", "section .eh_frame"),
    "a second function": (PLAIN + "\ndefine void @other() nounwind { ret void }", r"got \['k', 'other'\]"),
    "no function k": ("define void @other() nounwind { ret void }", r"got \['other'\]"),
    "a second name": ("@alias = alias void (ptr), ptr @k\n" + PLAIN, r"\['alias', 'k'\]|\['k', 'alias'\]"),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
@pytest.mark.parametrize(("text", "message"), OUTSIDE.values(), ids=list(OUTSIDE))
def test_what_needs_a_linker_is_refused(target: Target, text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        extract(object_of(text, target))


def test_relocations_of_other_kinds_are_refused(target: Target) -> None:
    whole = object_of(CONSTANTS, target)
    (sections,) = struct.unpack_from("<Q", whole, 40)
    size, count = struct.unpack_from("<HH", whole, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", whole, sections + size * number) for number in range(count)]
    table = next(header for header in headers if header[1] == 4)
    damaged = bytearray(whole)
    struct.pack_into("<I", damaged, table[4] + 8, 1)  # R_X86_64_64, an absolute address; unknown to AArch64
    with pytest.raises(CompileError, match="relocation of type 1,"):
        extract(bytes(damaged))


def test_objects_of_other_formats_and_machines_are_refused(target: Target) -> None:
    for content in (
        b"",
        b"\x7fELF",
        b"MZ" + bytes(100),
        b"\x7fELF\x01\x01" + bytes(100),
        b"\x7fELF\x02\x02" + bytes(99),
    ):
        with pytest.raises(CompileError, match="not a little-endian"):
            extract(content)
    whole = bytearray(object_of(PLAIN, target))
    whole[18:20] = struct.pack("<H", 243)
    with pytest.raises(CompileError, match="machine 243"):
        extract(bytes(whole))


def test_a_damaged_object_is_an_error_and_nothing_worse(target: Target) -> None:
    whole = object_of(CONSTANTS, target)
    for size in range(0, len(whole), 7):
        with pytest.raises(CompileError):
            extract(whole[:size])
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 255
        with suppress(CompileError):
            extract(bytes(damaged))
