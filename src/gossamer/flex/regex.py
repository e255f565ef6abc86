"""Regular expressions as RE2 matches them: the leftmost match, and of these the one that comes first.

Python's ``re`` is quick, but tries one way after the other: a pattern may take it time that grows exponentially. So it
has only patterns of which is shown that there is never a second way to try, and among these those that may look through
the text again from every place only for short texts. All others run in automata (`gossamer.flex.automata`), as do
texts that are no UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import AnyStr, NamedTuple

from gossamer.flex.automata import Poll, Program
from gossamer.flex.re2_syntax import (
    LAST,
    Alternate,
    AnyByte,
    Assertion,
    Chars,
    Concat,
    Empty,
    Group,
    PatternError,
    Ranges,
    Repeat,
    Tree,
    merged,
    parse,
)

SHORT = 2048
"""Characters of a text that may be looked through again from each of them."""

FEW = 64
"""Ways that are tried in vain, in all, are no harm."""

WIDE = 128
"""Characters that a match in vain may have at most, where it is tried at every place."""


class Regex:
    """A pattern. Raises `PatternError` for one that RE2 would not take."""

    def __init__(self, pattern: bytes) -> None:
        try:
            self._tree, self.groups = parse(pattern.decode())
        except UnicodeDecodeError:
            raise PatternError(f"{pattern!r} is no UTF-8") from None
        except RecursionError:
            raise PatternError("the pattern is nested too deeply") from None
        self._effort = effort(self._tree)
        self._splits = b"\\B" in pattern
        Program(self._tree)  # which refuses what is too large

    def matches(self, text: bytes, poll: Poll) -> bool:
        """Whether it matches the text as a whole."""
        decoded = self._decoded(text) if self._effort is not None else None
        if decoded is not None:
            return self._compiled.fullmatch(decoded) is not None
        return self._whole.ends(text, range(len(text) + 1), poll) == len(text)

    def replaced(self, text: bytes, rewrite: bytes, everywhere: bool, poll: Poll) -> bytes:
        r"""The text with the first match, or each, replaced; ``\0`` to ``\9`` in ``rewrite`` stand for it and for its
        groups. Nothing is replaced where there is no such group."""
        new, is_cut = parse_rewrite(rewrite)
        highest = max([int(digit) for digit in re.findall(rb"\\(?:(\d)|.)", rewrite, re.DOTALL) if digit], default=0)
        if highest > self.groups or (is_cut and not everywhere):
            return text
        decoded = self._decoded(text) if self._effort is not None and self._effort.allows(len(text)) else None
        if decoded is None:
            return b"".join(_parts(text, new, everywhere, partial(self._find, text, highest, poll)))
        compiled = self._compiled

        def find(at: int) -> Sequence[int] | None:
            match = compiled.search(decoded, at)
            return None if match is None else [place for group in range(highest + 1) for place in match.span(group)]

        texts = [part.decode(errors="surrogateescape") if isinstance(part, bytes) else part for part in new]
        return "".join(_parts(decoded, texts, everywhere, find)).encode(errors="surrogateescape")

    def _find(self, text: bytes, groups: int, poll: Poll, at: int) -> Sequence[int] | None:
        """Where the first match from a place on begins and ends, and its groups."""
        end = self._forwards.ends(text, range(at, len(text) + 1), poll)
        if end is None:
            return None
        start = self._backwards.ends(text, range(end, at - 1, -1), poll)
        if start is None:
            raise AssertionError("a match that ends begins")
        return self._anchored.groups(text, start, end, self.groups, poll) if groups else (start, end)

    def _decoded(self, text: bytes) -> str | None:
        """The text, if it is UTF-8 and no place between bytes of a character may match."""
        return _decoded(text) if text.isascii() or not self._splits else None

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(_python(self._tree), re.ASCII)

    @cached_property
    def _whole(self) -> Program:
        return Program(self._tree, prefers=False)

    @cached_property
    def _forwards(self) -> Program:
        return Program(self._tree, searches=True)

    @cached_property
    def _backwards(self) -> Program:
        return Program(self._tree, backwards=True, prefers=False)

    @cached_property
    def _anchored(self) -> Program:
        return Program(self._tree)


@lru_cache(maxsize=64)
def regex(pattern: bytes) -> Regex:
    """The pattern, made once."""
    return Regex(pattern)


def parse_rewrite(rewrite: bytes) -> tuple[list[bytes | int], bool]:
    r"""What a match is replaced by: texts and numbers of groups. ``True`` if it ends before what is no escape: RE2 goes
    on with what there is, but does not replace a single match."""
    parts: list[bytes | int] = []
    at = 0
    while at < len(rewrite):
        escape = rewrite.find(b"\\", at)
        if escape < 0:
            return [*parts, rewrite[at:]], False
        parts.append(rewrite[at:escape])
        letter = rewrite[escape + 1 : escape + 2]
        if letter.isdigit():
            parts.append(int(letter))
        elif letter == b"\\":
            parts.append(letter)
        else:
            return parts, True
        at = escape + 2
    return parts, False


def _parts(
    text: AnyStr, new: Sequence[AnyStr | int], everywhere: bool, find: Callable[[int], Sequence[int] | None]
) -> Iterator[AnyStr]:
    """The text in parts, with matches replaced (RE2::GlobalReplace)."""
    at, behind = 0, -1
    while at <= len(text):
        ends = find(at)
        if ends is None:
            break
        start, end = ends[:2]
        if start == end == behind:  # an empty match right behind another one: on by a character
            step = 1 if isinstance(text, str) else _character(text, at)
            yield text[at : at + step]
            at += step
            continue
        yield text[at:start]
        for part in new:
            if not isinstance(part, int):
                yield part
            elif ends[2 * part] >= 0:
                yield text[ends[2 * part] : ends[2 * part + 1]]
        at = behind = end
        if not everywhere:
            break
    yield text[at:]


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _character(text: bytes, at: int) -> int:
    """How many bytes the character at a place has; 1 if it is none."""
    for size in (1, 2, 3, 4):
        if _decoded(text[at : at + size]) is not None:
            return size
    return 1


class Effort(NamedTuple):
    """How many ways a backtracking engine may try at a place, and whether looking for a match takes time in proportion
    to the text."""

    ways: int
    is_linear: bool

    def allows(self, size: int) -> bool:
        """Whether a text of this size may be looked through."""
        return self.is_linear or size * self.ways <= SHORT


class _Unsafe(Exception):
    """There may be too many ways to try."""


def effort(tree: Tree) -> Effort | None:
    """What a search takes a backtracking engine, ``None`` if that may be too much: then automata search."""
    try:
        ways, is_linear = _effort(tree, (), False, True)
    except _Unsafe:
        return None
    if ways > FEW:
        return None
    return Effort(ways, (is_linear and _width(tree) <= WIDE) or _begins_text(tree))


def _effort(tree: Tree, follow: Ranges, in_loop: bool, succeeds: bool) -> tuple[int, bool]:
    """`Effort` of a part, behind which one of the characters ``follow`` comes, if any. ``succeeds``: what comes behind
    it matches in any case."""
    match tree:
        case Empty() | Assertion() | Chars():
            return 1, True
        case AnyByte():
            raise _Unsafe
        case Group(item, _):
            return _effort(item, follow, in_loop, succeeds)
        case Concat(items):
            ways, is_linear = 1, True
            for item in reversed(items):
                more, fine = _effort(item, follow, in_loop, succeeds)
                ways, is_linear = ways * more, is_linear and fine
                follow = merged([*_first(item), *follow]) if _is_nullable(item) else _first(item)
                succeeds = succeeds and _always(item)
            return ways, is_linear
        case Alternate(items):
            found = [_effort(item, follow, in_loop, succeeds) for item in items]
            heads = [merged([*_first(item), *(follow if _is_nullable(item) else ())]) for item in items]
            ways = max(more for more, _ in found)
            if sum(map(_is_nullable, items)) > 1 or _overlap(heads):
                if in_loop:
                    raise _Unsafe
                ways = sum(more for more, _ in found)
            return ways, all(fine for _, fine in found)
        case Repeat(item, least, most, _):
            repeats = most is None or most > 1
            head = _first(item)
            if repeats and _is_nullable(item):
                raise _Unsafe
            inner = merged([*head, *follow]) if repeats else follow
            ways, is_linear = _effort(item, inner, in_loop or repeats, succeeds and not repeats)
            if least != most and _overlap([head, follow]):
                if most is None or in_loop:
                    raise _Unsafe
                ways *= most - least + 1
            return ways, is_linear and (most is not None or succeeds)


def _first(tree: Tree) -> Ranges:
    """The characters with which a match may begin."""
    match tree:
        case Chars(ranges):
            return ranges
        case Group(item, _) | Repeat(item, _, _, _):
            return _first(item)
        case Alternate(items):
            return merged([piece for item in items for piece in _first(item)])
        case Concat(items):
            found: list[tuple[int, int]] = []
            for item in items:
                found += _first(item)
                if not _is_nullable(item):
                    break
            return merged(found)
        case AnyByte():
            return ((0, LAST),)
        case _:
            return ()


def _is_nullable(tree: Tree) -> bool:
    """Whether it may match nothing."""
    match tree:
        case Chars() | AnyByte():
            return False
        case Group(item, _):
            return _is_nullable(item)
        case Repeat(item, least, _, _):
            return not least or _is_nullable(item)
        case Concat(items):
            return all(map(_is_nullable, items))
        case Alternate(items):
            return any(map(_is_nullable, items))
        case _:
            return True


def _always(tree: Tree) -> bool:
    """Whether it matches everywhere, if only nothing."""
    match tree:
        case Empty():
            return True
        case Group(item, _):
            return _always(item)
        case Repeat(item, least, _, _):
            return not least or _always(item)
        case Concat(items):
            return all(map(_always, items))
        case Alternate(items):
            return any(map(_always, items))
        case _:
            return False


def _width(tree: Tree) -> int:
    """Characters of the longest match, but for those in loops."""
    match tree:
        case Chars() | AnyByte():
            return 1
        case Group(item, _):
            return _width(item)
        case Repeat(item, least, most, _):
            return _width(item) * (least if most is None else most)
        case Concat(items):
            return sum(map(_width, items))
        case Alternate(items):
            return max(map(_width, items))
        case _:
            return 0


def _begins_text(tree: Tree) -> bool:
    match tree:
        case Assertion(kind):
            return kind == "begin_text"
        case Group(item, _):
            return _begins_text(item)
        case Concat(items):
            return _begins_text(items[0])
        case _:
            return False


def _overlap(heads: Sequence[Ranges]) -> bool:
    """Whether a character is in two of them."""
    pieces = sorted(piece for head in heads for piece in head)
    return any(second[0] <= first[1] for first, second in pairwise(pieces))


_ASSERTIONS = {
    "begin_text": r"\A",
    "end_text": r"\Z",
    "begin_line": r"(?<![^\n])",
    "end_line": r"(?![^\n])",
    "word": r"\b",
    "no_word": r"(?!\b)",
}


def _python(tree: Tree) -> str:
    """The pattern in Python's syntax."""
    match tree:
        case Empty():
            return ""
        case Chars(ranges):
            return _class(ranges)
        case Assertion(kind):
            return _ASSERTIONS[kind]
        case Group(item, _):
            return f"({_python(item)})"
        case Concat(items):
            return "".join(map(_python, items))
        case Alternate(items):
            return f"(?:{'|'.join(map(_python, items))})"
        case Repeat(item, least, most, greedy):
            upper = "" if most is None else most
            return f"(?:{_python(item)}){{{least},{upper}}}{'' if greedy else '?'}"
        case AnyByte():
            raise _Unsafe


def _class(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    pieces = [re.escape(chr(first)) + (f"-{re.escape(chr(last))}" if last > first else "") for first, last in ranges]
    return f"[{''.join(pieces)}]"
