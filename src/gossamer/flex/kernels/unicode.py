"""Strings as numbers of characters, in the encodings of Unicode and in others."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.objects import strings
from gossamer.flex.scripts import script_of

UTF8 = "utf-8"

MARKED = {"utf-16": codecs.BOM_UTF16_LE, "utf-32": codecs.BOM_UTF32_LE}
"""Encodings that begin with a mark, and how it is with the little end first."""


@kernel("UnicodeDecode", "UnicodeDecodeWithOffsets")
def decode(call: Call, input: Array) -> tuple[Array, ...]:
    """The characters of each string as a ragged matrix: row splits, numbers, and at which byte each begins."""
    encoding = _encoding(call)
    characters, starts, ends = [], [], [0]
    for text in input.reshape(-1).tolist():
        for character, start in _handled(call, text, encoding):
            characters.append(character)
            starts.append(start)
        ends.append(len(characters))
        call.poll()
    splits, numbers = np.array(ends), np.array(characters, np.int32)
    if call.op == "UnicodeDecode":
        return splits, numbers
    return splits, numbers, np.array(starts, np.int64)


@kernel("UnicodeEncode")
def encode(call: Call, input_values: Array, input_splits: Array) -> Array:
    """The strings of a ragged matrix of characters."""
    splits = input_splits.tolist()
    call.require(input_values.ndim == 1 and input_splits.ndim == 1, "values and splits must be vectors")
    call.require(
        splits and splits[0] == 0 and splits[-1] == input_values.size and sorted(splits) == splits,
        f"input_splits must grow from 0 to {input_values.size}",
    )
    encoding, errors = _codec(call.attributes.text("output_encoding")), call.attributes.text("errors")
    other = call.attributes.int("replacement_char")
    call.require(_is_character(other), f"replacement_char {other} is no character")
    characters = []
    for number in input_values.tolist():
        is_one = _is_character(number)
        call.require(is_one or errors != "strict", f"{number} is no character")
        characters.append(chr(number) if is_one else chr(other) if errors == "replace" else "")
    rows = ["".join(characters[first:last]) for first, last in pairwise(splits)]
    return strings([row.encode(encoding) for row in rows], (len(rows),))


@kernel("UnicodeTranscode", shape=like_first)
def transcode(call: Call, input: Array) -> Array:
    """Strings in another encoding."""
    encoding, wanted = _encoding(call), _codec(call.attributes.text("output_encoding"))
    found = []
    for text in input.reshape(-1).tolist():
        found.append("".join([chr(character) for character, _ in _handled(call, text, encoding)]).encode(wanted))
        call.poll()
    return strings(found, input.shape)


@kernel("UnicodeScript", shape=like_first)
def script(call: Call, input: Array) -> Array:
    """The numbers of the scripts that characters are of (ICU's UScriptCode), -1 of what is no character."""
    return script_of(input)


def _handled(call: Call, text: bytes, encoding: str) -> Iterator[tuple[int, int]]:
    """The characters of a text and where each begins; faults in it are handled as the attributes say."""
    errors = call.attributes.text("errors")
    hides_control = call.attributes.bool("replace_control_characters")
    instead = call.attributes.int("replacement_char")
    for character, start in _characters(text, encoding):
        is_hidden = character is not None and hides_control and character < 0x20
        is_fault = character is None or (is_hidden and call.op == "UnicodeTranscode")
        call.require(errors != "strict" or not is_fault, f"{text!r} is no {encoding} (byte {start})")
        if character is not None and not is_hidden:
            yield character, start
        elif errors != "ignore":
            yield instead, start


def _characters(text: bytes, encoding: str) -> Iterator[tuple[int | None, int]]:
    """The characters of a text and where each begins, ``None`` for what is none."""
    behind_mark = 0
    if encoding in MARKED:  # the order of bytes is said by a mark, and else the big end comes first
        is_little = text.startswith(MARKED[encoding])
        behind_mark = len(MARKED[encoding]) if is_little or text.startswith(MARKED[encoding][::-1]) else 0
        encoding += "-le" if is_little else "-be"
    at = behind_mark
    while at < len(text):
        try:
            part, end, fault = text[at:].decode(encoding), len(text), len(text)
        except UnicodeDecodeError as error:
            end, fault = at + error.start, at + error.end
            part = text[at:end].decode(encoding)
        for character, start in zip(part, accumulate([_size(one, encoding) for one in part], initial=at), strict=False):
            yield ord(character), 0 if start == behind_mark else start  # the first begins with the mark
        if fault > end:
            yield None, end
        at = fault


def _size(character: str, encoding: str) -> int:
    return 1 if character < "\x80" and encoding == UTF8 else len(character.encode(encoding))


def _encoding(call: Call) -> str:
    return _codec(call.attributes.text("input_encoding"), call)


def _codec(name: str, call: Call | None = None) -> str:
    """Python's name of an encoding. UTF-16 and UTF-32 say their order of bytes."""
    try:
        info: Any = codecs.lookup(name.lower())
        known = info.name if info._is_text_encoding else ""
    except LookupError:
        known = ""
    if not known and call is not None:
        call.fail(f"the encoding {name!r} is not known")
    return known


def _is_character(number: int) -> bool:
    """Whether a number is one of a character, and no surrogate."""
    return 0 <= number <= 0x10FFFF and not 0xD800 <= number < 0xE000
