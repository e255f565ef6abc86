"""Strings: cut, joined, counted, and made of numbers and into them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.kernels._checks import axes_of, checked_shape, require_range
from gossamer.flex.objects import strings
from gossamer.flex.text import summary

SPACES = b" \t\n\v\f\r"


@kernel("StringLower", "StringUpper", shape=like_first)
def change_case(call: Call, input: Array) -> Array:
    """In lower or upper case: of ASCII alone, or with the encoding UTF-8 as Unicode has it."""
    encoding = call.attributes.text("encoding")
    call.require(encoding in ("", "utf-8"), f"encoding must be '' or 'utf-8', got {encoding!r}")
    is_lower = call.op == "StringLower"
    if not encoding:
        return _each(input, bytes.lower if is_lower else bytes.upper)
    change = str.lower if is_lower else str.upper
    return _each(input, lambda text: change(text.decode(errors="replace")).encode())


@kernel("StringStrip", shape=like_first)
def strip(call: Call, input: Array) -> Array:
    """Without white space at both ends."""
    return _each(input, lambda text: text.strip(SPACES))


@kernel("StringLength", shape=like_first)
def length(call: Call, input: Array) -> Array:
    """Bytes, or characters of UTF-8: bytes that do not go on with one."""
    count: Callable[[bytes], int] = len
    if call.attributes.text("unit") != "BYTE":
        count = _characters
    items = input.reshape(-1).tolist()
    return np.fromiter(map(count, items), np.int32, len(items)).reshape(input.shape)


@kernel("StringJoin")
def join(call: Call, inputs: Sequence[Array]) -> Array:
    """Strings at the same place, joined; scalars are at every place."""
    call.require(inputs, "there must be an input")
    shapes = {one.shape for one in inputs if one.ndim}
    call.require(len(shapes) <= 1, f"inputs have shapes {sorted(map(list, shapes))}")
    shape = next(iter(shapes), ())
    parts = [np.broadcast_to(one, shape).reshape(-1).tolist() for one in inputs]
    return strings(list(map(call.attributes.bytes("separator").join, zip(*parts, strict=True))), shape)


@kernel("ReduceJoin")
def reduce_join(call: Call, inputs: Array, reduction_indices: Array) -> Array:
    """Strings along dimensions, joined: along the first that is named, then those along the next."""
    axes = axes_of(call, reduction_indices, inputs.ndim, "reduction_indices")
    kept = [axis for axis in range(inputs.ndim) if axis not in axes]
    shape = [inputs.shape[axis] for axis in kept]
    rows = inputs.transpose([*kept, *reversed(axes)]).reshape(math.prod(shape), -1 if inputs.size else 0)
    joined = strings(list(map(call.attributes.bytes("separator").join, rows.tolist())), shape)
    return np.expand_dims(joined, axes) if call.attributes.bool("keep_dims") else joined


@kernel("UnsortedSegmentJoin")
def segment_join(call: Call, inputs: Array, segment_ids: Array, num_segments: Array) -> Array:
    """Strings of each segment, joined."""
    rank, count = segment_ids.ndim, int(num_segments.item())
    call.require(
        inputs.shape[:rank] == segment_ids.shape,
        f"inputs of shape {list(inputs.shape)} must begin as segment_ids {list(segment_ids.shape)}",
    )
    call.require(count >= 0, f"num_segments must not be negative, got {count}")
    require_range(call, "segment_ids", segment_ids, count)
    shape = checked_shape(call, (count, *inputs.shape[rank:]))
    rows = inputs.reshape(segment_ids.size, -1) if inputs.size else np.empty((segment_ids.size, 0), object)
    parts: list[list[bytes]] = [[] for _ in range(math.prod(shape))]
    for segment, row in zip(segment_ids.reshape(-1).tolist(), rows.tolist(), strict=True):
        for at, item in enumerate(row, segment * rows.shape[1]):
            parts[at].append(item)
    # No separator stands before the first string that is not empty.
    begun = [list(itertools.dropwhile(lambda item: not item, part)) for part in parts]
    return strings(list(map(call.attributes.bytes("separator").join, begun)), shape)


@kernel("StringSplit")
def split(call: Call, input: Array, delimiter: Array) -> tuple[Array, Array, Array]:
    """Parts between any of the bytes of a delimiter, or all bytes, as a sparse matrix."""
    between = delimiter.item()
    skips = call.attributes.bool("skip_empty")

    def parts(text: bytes) -> list[bytes]:
        if not between:
            return [text[at : at + 1] for at in range(len(text))]
        for other in between[1:]:
            text = text.replace(bytes([other]), between[:1])
        found = text.split(between[:1])
        return [part for part in found if part] if skips or not text else found

    return _sparse(call, input, parts)


@kernel("StringSplitV2")
def split_v2(call: Call, input: Array, sep: Array) -> tuple[Array, Array, Array]:
    """Parts between separators, or between white space, ``maxsplit`` + 1 of them at most, as a sparse matrix."""
    call.require(sep.size == 1, f"sep must be one string, got shape {list(sep.shape)}")
    between, most = sep.item(), call.attributes.int("maxsplit")

    def parts(text: bytes) -> list[bytes]:
        if between or not most:
            return text.split(between, most) if most else [text]
        found = text.split(None, max(most, -1))
        # What is left behind the last split counts, also if it is empty.
        return [*found, b""] if len(found) == most else found

    return _sparse(call, input, parts)


@kernel("Substr")
def substr(call: Call, input: Array, pos: Array, size: Array) -> Array:
    """``size`` bytes or characters from ``pos`` on, which counts from the end if it is negative."""
    call.require(pos.shape == size.shape, f"pos and len have shapes {list(pos.shape)} and {list(size.shape)}")
    texts, starts, sizes = np.broadcast_arrays(input, pos, size)
    by_byte = call.attributes.text("unit") == "BYTE"
    found = []
    for text, start, count in zip(texts.ravel().tolist(), starts.ravel().tolist(), sizes.ravel().tolist(), strict=True):
        bounds: Sequence[int] = range(len(text) + 1) if by_byte else _starts(text)
        last = len(bounds) - 1
        call.require(-last <= start <= last, f"pos {start} is not within {text!r}")
        first = start + last if start < 0 else start
        behind = last if count < 0 and by_byte else min(first + max(count, 0), last)
        found.append(text[bounds[first] : bounds[behind]])
    return strings(found, texts.shape)


@kernel("AsString", shape=like_first)
def as_string(call: Call, input: Array) -> Array:
    """Numbers as C's printf writes them."""
    attributes = call.attributes
    precision, width, fill = attributes.int("precision"), attributes.int("width"), attributes.text("fill")
    kind = input.dtype.kind
    is_integer, is_float = kind in "iu", kind in "fc" or input.dtype.name == "bfloat16"
    call.require(len(fill) <= 1 and fill in " +-0#", f"fill must be one of ' ', '+', '-', '0' and '#', got {fill!r}")
    shortest, scientific = attributes.bool("shortest"), attributes.bool("scientific")
    call.require(not (shortest and scientific), "scientific and shortest are not for both")
    call.require(
        is_float or not (precision > -1 or shortest or scientific), "precision, scientific and shortest are of floats"
    )
    call.require(max(width, precision) <= 1 << 16, f"a number of {max(width, precision)} places is too long")
    sign = fill.strip("+ ") if kind == "u" else fill
    form = "%" + sign + (str(width) if width > -1 else "")
    if is_integer:
        texts = [(form + "d") % item for item in input.reshape(-1).tolist()]
    elif is_float:
        form += (f".{precision}" if precision > -1 else "") + ("g" if shortest else "e" if scientific else "f")
        if kind == "c":
            texts = [f"({_printed(form, z.real)},{_printed(form, z.imag)})" for z in input.reshape(-1).tolist()]
        else:
            texts = [_printed(form, item) for item in input.astype(np.float64).reshape(-1).tolist()]
    elif kind == "b":
        texts = ["true" if item else "false" for item in input.reshape(-1).tolist()]
    else:
        aligned = max(width, 0)
        return _each(input, lambda text: text.ljust(aligned) if fill == "-" else text.rjust(aligned))
    return strings([text.encode() for text in texts], input.shape)


@kernel("StringToNumber", shape=like_first)
def to_number(call: Call, string_tensor: Array) -> Array:
    """Numbers of texts: white space may stand around one."""
    dtype = call.dtype("out_type")
    items = string_tensor.reshape(-1).tolist()
    numbers = []
    for item in items:
        number = _float(item) if dtype.kind == "f" else _integer(item, dtype)
        if number is None:
            call.fail(f"{item!r} is no number of type {dtype}")
        numbers.append(number)
    with np.errstate(over="ignore"):
        return np.array(numbers, dtype if dtype.kind != "f" else np.float64).astype(dtype).reshape(string_tensor.shape)


@kernel("StringFormat")
def format(call: Call, inputs: Sequence[Any]) -> Array:
    """A text with a summary of a tensor in the place of each placeholder."""
    parts = call.attributes.bytes("template").split(call.attributes.bytes("placeholder") or b"\0no placeholder")
    call.require(
        len(parts) == len(inputs) + 1, f"the template has {len(parts) - 1} placeholders for {len(inputs)} inputs"
    )
    most = call.attributes.int("summarize")
    texts = [summary(np.asarray(one), most) for one in inputs]
    return strings([b"".join([parts[0], *[a + b for a, b in zip(texts, parts[1:], strict=True)]])], ())


@kernel("StringNGrams")
def ngrams(call: Call, data: Array, data_splits: Array) -> tuple[Array, Array]:
    """Neighbouring strings of each row of a ragged matrix, joined, with pads at both ends."""
    attributes = call.attributes
    splits = data_splits.tolist()
    call.require(data.ndim == 1 and data_splits.ndim == 1, "data and data_splits must be vectors")
    call.require(
        not splits or (splits[0] == 0 and splits[-1] == data.size and sorted(splits) == splits),
        f"data_splits must grow from 0 to {data.size}",
    )
    if not data.size:
        return data, np.zeros_like(data_splits)
    widths, pad = attributes.ints("ngram_widths"), attributes.int("pad_width")
    left, right = attributes.bytes("left_pad"), attributes.bytes("right_pad")
    separator, keeps_short = attributes.bytes("separator"), attributes.bool("preserve_short_sequences")
    call.require(all(width > 0 for width in widths), f"ngram_widths must be positive, got {widths}")
    call.require(max([0, pad, *widths]) <= 1 << 16, "ngrams are too wide")
    items, ends = data.tolist(), [0]
    found: list[bytes] = []
    for first, last in itertools.pairwise(splits):
        row, before = items[first:last], len(found)
        for width in widths:
            pads = min(width - 1 if pad < 0 else pad, width - 1)
            padded = [left] * pads + row + [right] * pads
            found += [separator.join(padded[at : at + width]) for at in range(len(padded) - width + 1)]
        if keeps_short and row and len(found) == before:
            call.require(pad >= 0, "pad_width must not be negative where short sequences are preserved")
            found.append(separator.join([left] * pad + row + [right] * pad))
        ends.append(len(found))
        call.poll()
    return strings(found, (len(found),)), np.array(ends if splits else [])


def _each(texts: Array, function: Callable[[bytes], bytes]) -> Array:
    return strings(list(map(function, texts.reshape(-1).tolist())), texts.shape)


def _characters(text: bytes) -> int:
    return sum(byte & 0xC0 != 0x80 for byte in text)


def _starts(text: bytes) -> list[int]:
    """Where characters of UTF-8 begin, and the end."""
    return [*[at for at, byte in enumerate(text) if not at or byte & 0xC0 != 0x80], len(text)]


def _sparse(call: Call, input: Array, parts: Callable[[bytes], list[bytes]]) -> tuple[Array, Array, Array]:
    call.require(input.ndim == 1, f"input must be a vector, got shape {list(input.shape)}")
    rows = [parts(text) for text in input.tolist()]
    sizes = np.array([len(row) for row in rows], np.int64)
    total = int(sizes.sum())
    indices = np.empty((total, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), sizes)
    indices[:, 1] = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    flat = [part for row in rows for part in row]
    return indices, strings(flat, (total,)), np.array([len(rows), sizes.max(initial=0)])


def _printed(form: str, number: float) -> str:
    """What C's printf writes: a NaN has a sign, and zeros stand before numbers alone."""
    if math.isfinite(number):
        return form % number
    name = "inf" if math.isinf(number) else "nan"
    flags = form[1:].lstrip("+- 0#")
    sign = "-" if math.copysign(1, number) < 0 else form[1] if form[1] in "+ " else ""
    width = int(flags.partition(".")[0].rstrip("efg") or 0)
    return (sign + name).ljust(width) if form[1] == "-" else (sign + name).rjust(width)


def _float(text: bytes) -> float | None:
    word = text.strip(SPACES)
    if b"_" in word or not word.isascii():
        return None
    try:
        return float.fromhex(word.decode()) if b"x" in word.lower() else float(word)
    except (ValueError, OverflowError):
        return None


def _integer(text: bytes, dtype: np.dtype[Any]) -> int | None:
    word = text.strip(SPACES)
    if not word[word[:1] in (b"+", b"-") :].isdigit():
        return None
    number, info = int(word), np.iinfo(dtype)
    return number if info.min <= number <= info.max else None
