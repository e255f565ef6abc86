"""ELF objects to blobs: code and constants in one piece, with every relocation applied and no reference outside."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gossamer.codegen.spec import ENTRY
from gossamer.errors import CompileError
from gossamer.programs.kernel_file import Blob

_X86_64, _AARCH64 = 62, 183  # e_machine
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8  # sh_type
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4  # sh_flags
_UNDEFINED = 0
_GLOBAL = 1
_PADDING = {_X86_64: b"\xcc", _AARCH64: b"\0"}  # traps; an instruction of zeros is undefined

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_PAGE = 4096
_CACHE_LINE = 64


class _Section(NamedTuple):
    name: str
    type: int
    flags: int
    content: memoryview
    link: int
    info: int
    alignment: int


class _Symbol(NamedTuple):
    name: str
    is_global: bool
    section: int
    value: int


def extract(object_file: bytes) -> Blob:
    """The blob of an object file for x86-64 or AArch64 that defines one global symbol, ``k``.

    `CompileError` for everything that would need a linker or a loader: references to other objects, writable or
    unwind data, relocations of other kinds.
    """
    try:
        return _extract(memoryview(object_file))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise CompileError(f"The object file is damaged ({error}).") from error


def _extract(content: memoryview) -> Blob:
    if bytes(content[:6]) != b"\x7fELF\x02\x01":
        raise CompileError("The object file is not a little-endian 64-bit ELF file.")
    (machine,) = struct.unpack_from("<H", content, 18)
    if machine not in _PADDING:
        raise CompileError(f"The object file is for machine {machine}; known are x86-64 (62) and AArch64 (183).")
    sections = _sections(content)
    code, places = _lay_out(sections, _PADDING[machine])
    tables = [section for section in sections if section.type == _SYMTAB]
    if len(tables) != 1:
        raise CompileError(f"The object file has {len(tables)} symbol tables.")
    symbols = _symbols(tables[0], sections[tables[0].link])
    entry = _entry(symbols, places)
    alignment = max([_CACHE_LINE, *(sections[index].alignment for index in places)])
    for section in sections:
        if section.type != _RELA or section.info not in places:
            continue
        for offset, info, addend in _RELOCATION.iter_unpack(section.content):
            kind, symbol = info & 0xFFFFFFFF, symbols[info >> 32]
            if symbol.section not in places:
                raise CompileError(f"The kernel refers to {symbol.name or 'something'}, which is not part of it.")
            at = places[section.info] + offset
            target = places[symbol.section] + symbol.value + addend
            apply = _RELOCATIONS[machine].get(kind)
            if apply is None:
                raise CompileError(f"The kernel needs a relocation of type {kind}, which is not position-independent.")
            if kind in _IN_PAGES and machine == _AARCH64:
                alignment = max(alignment, _PAGE)
            apply(code, at, target)
    return Blob(bytes(code), entry, alignment)


def _sections(content: memoryview) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", content, 40)
    size, count, names = struct.unpack_from("<HHH", content, 58)
    headers = [_SECTION.unpack_from(content, start + size * number) for number in range(count)]
    strings = _bytes_of(content, headers[names])
    return [
        _Section(_string(strings, name), type, flags, _bytes_of(content, header), link, info, max(alignment, 1))
        for header in headers
        for name, type, flags, _, _, _, link, info, alignment, _ in [header]
    ]


def _bytes_of(content: memoryview, header: tuple[int, ...]) -> memoryview:
    _, type, _, _, offset, size, *_ = header
    if type == _NOBITS:
        return memoryview(bytes(min(size, 1)))
    if offset + size > len(content):
        raise ValueError("a section lies outside")
    return content[offset : offset + size]


def _string(strings: memoryview, start: int) -> str:
    return bytes(strings[start:]).split(b"\0", 1)[0].decode()


def _lay_out(sections: list[_Section], padding: bytes) -> tuple[bytearray, dict[int, int]]:
    """Everything that is loaded, code first, and where each section begins."""
    code = bytearray()
    places: dict[int, int] = {}
    loaded = [index for index, section in enumerate(sections) if section.flags & _ALLOC and len(section.content)]
    for index in sorted(loaded, key=lambda index: not sections[index].flags & _EXECUTE):
        section = sections[index]
        if section.type != _PROGBITS or section.flags & _WRITE or section.name.startswith(".eh_frame"):
            raise CompileError(f"The kernel has a section {section.name}; it may have code and constants only.")
        if section.alignment > _PAGE:
            raise CompileError(f"The kernel has a section {section.name} aligned to {section.alignment} bytes.")
        code += padding * (-len(code) % section.alignment)
        places[index] = len(code)
        code += section.content
    return code, places


def _symbols(table: _Section, strings: _Section) -> list[_Symbol]:
    return [
        _Symbol(_string(strings.content, name), info >> 4 == _GLOBAL, section, value)
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(table.content)
    ]


def _entry(symbols: list[_Symbol], places: Mapping[int, int]) -> int:
    for symbol in symbols[1:]:
        if symbol.section == _UNDEFINED:
            raise CompileError(f"The kernel refers to {symbol.name}, which is not part of it.")
    found = [symbol for symbol in symbols if symbol.is_global]
    if [symbol.name for symbol in found] != [ENTRY] or found[0].section not in places:
        raise CompileError(f"The kernel must define {ENTRY} and nothing else, got {[symbol.name for symbol in found]}.")
    return places[found[0].section] + found[0].value


# Relocations, by the names of the ABIs' documents: S + A is the target, P the place. Both are offsets in the blob,
# which may be loaded anywhere, so only differences can be applied.


def _relative_32(code: bytearray, place: int, target: int) -> None:
    struct.pack_into("<i", code, place, target - place)


def _relative_64(code: bytearray, place: int, target: int) -> None:
    struct.pack_into("<q", code, place, target - place)


def _insert(code: bytearray, place: int, value: int, bits: int, shift: int) -> None:
    (instruction,) = struct.unpack_from("<I", code, place)
    mask = (1 << bits) - 1
    struct.pack_into("<I", code, place, instruction & ~(mask << shift) | (value & mask) << shift)


def _adr(code: bytearray, place: int, distance: int) -> None:
    if not -(1 << 20) <= distance < 1 << 20:
        raise CompileError("The kernel is too large for its relocations.")
    _insert(code, place, distance, 2, 29)
    _insert(code, place, distance >> 2, 19, 5)


def _page_of(code: bytearray, place: int, target: int) -> None:
    _adr(code, place, target // _PAGE - place // _PAGE)


def _nearby(code: bytearray, place: int, target: int) -> None:
    _adr(code, place, target - place)


def _branch(bits: int, shift: int) -> Callable[[bytearray, int, int], None]:
    def apply(code: bytearray, place: int, target: int) -> None:
        distance = target - place
        if distance % 4 or not -(1 << bits + 1) <= distance < 1 << bits + 1:
            raise CompileError("The kernel is too large for its relocations.")
        _insert(code, place, distance >> 2, bits, shift)

    return apply


def _within_page(size: int) -> Callable[[bytearray, int, int], None]:
    def apply(code: bytearray, place: int, target: int) -> None:
        if target % size:
            raise CompileError("The kernel loads a constant that is not aligned.")
        _insert(code, place, target % _PAGE // size, 12, 10)

    return apply


_RELOCATIONS: Mapping[int, Mapping[int, Callable[[bytearray, int, int], None]]] = {
    _X86_64: {
        2: _relative_32,  # PC32
        4: _relative_32,  # PLT32, of a symbol that is here
        24: _relative_64,  # PC64
    },
    _AARCH64: {
        260: _relative_64,  # PREL64
        261: _relative_32,  # PREL32
        273: _branch(19, 5),  # LD_PREL_LO19
        274: _nearby,  # ADR_PREL_LO21
        275: _page_of,  # ADR_PREL_PG_HI21
        277: _within_page(1),  # ADD_ABS_LO12_NC
        278: _within_page(1),  # LDST8_ABS_LO12_NC
        280: _branch(19, 5),  # CONDBR19
        282: _branch(26, 0),  # JUMP26
        283: _branch(26, 0),  # CALL26
        284: _within_page(2),  # LDST16_ABS_LO12_NC
        285: _within_page(4),  # LDST32_ABS_LO12_NC
        286: _within_page(8),  # LDST64_ABS_LO12_NC
        299: _within_page(16),  # LDST128_ABS_LO12_NC
    },
}
_IN_PAGES = {275, 277, 278, 284, 285, 286, 299}
"""Relocations that split an address into its page and the rest: the blob must lie at the start of a page."""
