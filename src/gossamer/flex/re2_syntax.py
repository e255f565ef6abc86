"""Regular expressions as RE2 has them (Perl's syntax without what needs backtracking): text to tree.

Characters are ranges of code points, whatever the syntax says of them: case, classes and negation are gone.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from gossamer.flex.scripts import script_ranges

Ranges = tuple[tuple[int, int], ...]

LAST = sys.maxunicode
MOST_REPEATS = 1000
"""How often something may be repeated in all, as RE2 has it."""
DEEPEST = 100
"""Groups in groups."""


class PatternError(ValueError):
    """A pattern that RE2 would not take, or that is too large."""


class Empty(NamedTuple):
    """Nothing."""


class Chars(NamedTuple):
    """One character of these ranges."""

    ranges: Ranges


class AnyByte(NamedTuple):
    """One byte, of a character or not."""


class Assertion(NamedTuple):
    """A place: ``begin_text``, ``end_text``, ``begin_line``, ``end_line``, ``word`` (a boundary), ``no_word``."""

    kind: str


class Concat(NamedTuple):
    """One after the other."""

    items: tuple[Tree, ...]


class Alternate(NamedTuple):
    """The first of them that leads to a match."""

    items: tuple[Tree, ...]


class Repeat(NamedTuple):
    """So many times; ``most`` is ``None`` for any number. The more the better if it is greedy."""

    item: Tree
    least: int
    most: int | None
    greedy: bool


class Group(NamedTuple):
    """What is remembered under a number."""

    item: Tree
    number: int


Tree = Empty | Chars | AnyByte | Assertion | Concat | Alternate | Repeat | Group


class Flags(NamedTuple):
    """Whether case makes no difference (i), ``^`` and ``$`` are of lines (m), ``.`` is also a newline (s), and repeats
    are greedy only with a question mark (U)."""

    i: bool = False
    m: bool = False
    s: bool = False
    U: bool = False


def ranges(*pairs: str) -> Ranges:
    """Ranges of pairs of characters, as in ``"az"``."""
    return tuple([(ord(pair[0]), ord(pair[-1])) for pair in pairs])


PERL = {"d": ranges("09"), "s": ranges("\t\n", "\f\r", " "), "w": ranges("09", "AZ", "_", "az")}

POSIX = {
    "alnum": ranges("09", "AZ", "az"),
    "alpha": ranges("AZ", "az"),
    "ascii": ranges("\0\x7f"),
    "blank": ranges("\t", " "),
    "cntrl": ranges("\0\x1f", "\x7f"),
    "digit": ranges("09"),
    "graph": ranges("!~"),
    "lower": ranges("az"),
    "print": ranges(" ~"),
    "punct": ranges("!/", ":@", "[`", "{~"),
    "space": ranges("\t\r", " "),
    "upper": ranges("AZ"),
    "word": PERL["w"],
    "xdigit": ranges("09", "AF", "af"),
}

LETTERS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def merged(pieces: Iterable[tuple[int, int]]) -> Ranges:
    """The same characters in ranges that grow and do not touch."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(pieces):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def negated(pieces: Iterable[tuple[int, int]]) -> Ranges:
    """All other characters."""
    found, begin = [], 0
    for first, last in merged(pieces):
        if begin < first:
            found.append((begin, first - 1))
        begin = last + 1
    if begin <= LAST:
        found.append((begin, LAST))
    return tuple(found)


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """Characters that differ in case alone: for each all of them."""
    groups: dict[str, list[int]] = {}
    for code in range(LAST + 1):
        letter = chr(code)
        simple = next((form for form in (letter.casefold(), letter.lower()) if len(form) == 1), letter)
        if simple != letter or letter.upper() != letter:
            groups.setdefault(simple, []).append(code)
    for simple, codes in groups.items():
        if ord(simple) not in codes:
            codes.append(ord(simple))
    return {code: tuple(codes) for codes in groups.values() if len(codes) > 1 for code in codes}


def folded(pieces: Iterable[tuple[int, int]]) -> Ranges:
    """The characters, and those that differ from them in case alone."""
    given = merged(pieces)
    more = [
        (other, other)
        for code, others in _orbits().items()
        if any(first <= code <= last for first, last in given)
        for other in others
    ]
    return merged([*given, *more])


@cache
def property_ranges(name: str) -> Ranges:
    """The characters of a general category of Unicode, or of a script. Raises `PatternError` for another name."""
    if name == "Any":
        return ((0, LAST),)
    if len(name) <= 2:
        codes = [code for code in range(LAST + 1) if unicodedata.category(chr(code)).startswith(name)]
        if codes and name != "Cn" and name:
            left_out = {"C": "Cn"}.get(name, "")
            return merged((code, code) for code in codes if unicodedata.category(chr(code)) != left_out)
    try:
        return script_ranges(name)
    except KeyError:
        raise PatternError(f"there is no class of characters {name!r}") from None


class Pattern(NamedTuple):
    """A tree, and how many groups it has."""

    tree: Tree
    groups: int


def parse(pattern: str) -> Pattern:
    """The tree of a regular expression. Raises `PatternError`."""
    parser = _Parser(pattern)
    tree = parser.alternate(Flags(), 0)
    if parser.at < len(pattern):
        raise PatternError(f"there is an unexpected ) in {pattern!r}")
    if _repeats(tree) > MOST_REPEATS:
        raise PatternError(f"{pattern!r} repeats something more than {MOST_REPEATS} times")
    return Pattern(tree, parser.groups)


def _repeats(tree: Tree) -> int:
    """How often the innermost part is written down, where repeats are in others."""
    match tree:
        case Concat(items) | Alternate(items):
            return max(map(_repeats, items), default=1)
        case Group(item, _):
            return _repeats(item)
        case Repeat(item, least, most, _):
            return _repeats(item) * max(least if most is None else most, 1)
        case _:
            return 1


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups = 0
        self.flags = Flags()

    def fail(self, what: str) -> PatternError:
        return PatternError(f"{what} at {self.at} of {self.pattern!r}")

    def ahead(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def taken(self, text: str) -> bool:
        """Whether this comes next, which is passed then."""
        if self.ahead(text):
            self.at += len(text)
            return True
        return False

    def next(self) -> str:
        if self.at >= len(self.pattern):
            raise self.fail("something is missing")
        self.at += 1
        return self.pattern[self.at - 1]

    def alternate(self, flags: Flags, depth: int) -> Tree:
        """Up to a closing parenthesis, or the end. What flags are set is set up to there."""
        if depth > DEEPEST:
            raise PatternError(f"groups are nested more than {DEEPEST} deep")
        self.flags = flags
        branches = [self.concat(depth)]
        while self.taken("|"):
            branches.append(self.concat(depth))
        return branches[0] if len(branches) == 1 else Alternate(tuple(branches))

    def concat(self, depth: int) -> Tree:
        items: list[Tree] = []
        while self.at < len(self.pattern) and not self.ahead("|") and not self.ahead(")"):
            if self.taken(r"\Q"):
                end = self.pattern.find(r"\E", self.at)
                text = self.pattern[self.at :] if end < 0 else self.pattern[self.at : end]
                self.at = len(self.pattern) if end < 0 else end + 2
                items += [self.literal(ord(character)) for character in text]
            else:
                if (counts := self.counts()) is not None:
                    raise self.fail("there is nothing to repeat")
                items.append(self.atom(depth))
            if items and (counts := self.counts()) is not None:
                greedy = not self.taken("?")
                items.append(Repeat(items.pop(), *counts, greedy != self.flags.U))
                if self.counts() is not None:
                    raise self.fail("a repeat is repeated")
        return items[0] if len(items) == 1 else Concat(tuple(items)) if items else Empty()

    def counts(self) -> tuple[int, int | None] | None:
        """How often what stands before is repeated, if that comes next."""
        for sign, found in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.taken(sign):
                return found
        if not self.ahead("{"):
            return None
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        if end < 0 or not (low.isascii() and low.isdigit()) or (high and not (high.isascii() and high.isdigit())):
            return None
        self.at = end + 1
        if max(len(low), len(high)) > 6:
            raise self.fail("a repeat is too large")
        least = int(low)
        most = int(high) if high else None if comma else least
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise self.fail(f"a repeat must be of up to {MOST_REPEATS}, and not fall")
        return least, most

    def atom(self, depth: int) -> Tree:
        if self.taken("("):
            return self.group(depth)
        if self.ahead("["):
            return Chars(self.bracket())
        if self.ahead("\\"):
            return self.escape()
        character = self.next()
        if character == ".":
            return Chars(((0, LAST),) if self.flags.s else negated(ranges("\n")))
        if character == "^":
            return Assertion("begin_line" if self.flags.m else "begin_text")
        if character == "$":
            return Assertion("end_line" if self.flags.m else "end_text")
        return self.literal(ord(character))

    def literal(self, code: int) -> Tree:
        return Chars(self.cased(((code, code),)))

    def cased(self, pieces: Ranges) -> Ranges:
        return folded(pieces) if self.flags.i else pieces

    def group(self, depth: int) -> Tree:
        outer = self.flags
        if self.taken("?P<"):
            end = self.pattern.find(">", self.at)
            name = self.pattern[self.at : max(end, self.at)]
            if not name or not name.replace("_", "a").isalnum():
                raise self.fail("a name must be of letters, digits and _")
            self.at = end + 1
        elif self.taken("?"):
            flags = self.changed()
            if self.next() == ")":
                self.flags = flags
                return Empty()
            tree = self.alternate(flags, depth + 1)
            self.close(outer)
            return tree
        self.groups += 1
        number = self.groups
        tree = self.alternate(outer, depth + 1)
        self.close(outer)
        return Group(tree, number)

    def close(self, outer: Flags) -> None:
        if not self.taken(")"):
            raise self.fail("a ) is missing")
        self.flags = outer

    def changed(self) -> Flags:
        """The flags with those that are written here, up to the end of them."""
        flags, value, count = self.flags, True, 0
        while not self.ahead(":") and not self.ahead(")"):
            letter = self.next()
            if letter == "-" and value:
                value, count = False, 0
            elif letter in Flags._fields:
                flags, count = flags._replace(**{letter: value}), count + 1
            else:
                raise self.fail("an unknown flag or group")
        if not value and not count:
            raise self.fail("flags are missing")
        return flags

    def escape(self) -> Tree:
        for text, kind in ((r"\A", "begin_text"), (r"\z", "end_text"), (r"\b", "word"), (r"\B", "no_word")):
            if self.taken(text):
                return Assertion(kind)
        if self.taken(r"\C"):
            return AnyByte()
        named = self.named()
        if named is not None:
            return Chars(named)
        return self.literal(self.code())

    def named(self) -> Ranges | None:
        r"""The class behind a backslash: ``\d``, ``\pN``, ``\p{Greek}``, or their opposites, if that comes next."""
        kind = self.pattern[self.at + 1 : self.at + 2]
        if not self.ahead("\\") or kind == "" or kind not in "dDsSwWpP":
            return None
        self.at += 2
        if kind.lower() != "p":
            positive = self.cased(PERL[kind.lower()])
            return positive if kind.islower() else negated(positive)
        name, is_other = self.next(), kind == "P"
        if name == "{":
            end = self.pattern.find("}", self.at)
            if end < 0:
                raise self.fail("a } is missing")
            name, self.at = self.pattern[self.at : end], end + 1
            if name.startswith("^"):
                name, is_other = name[1:], not is_other
        positive = self.cased(property_ranges(name))
        return negated(positive) if is_other else positive

    def code(self) -> int:
        """The character that an escape stands for."""
        self.at += 1
        letter = self.next()
        digits = "01234567"
        if letter == "0" or (letter in digits[1:] and self.pattern[self.at : self.at + 1] in tuple(digits)):
            while len(letter) < 3 and self.pattern[self.at : self.at + 1] in tuple(digits):
                letter += self.next()
            return int(letter, 8)
        if letter == "x":
            if self.taken("{"):
                end = self.pattern.find("}", self.at)
                text, self.at = self.pattern[self.at : max(end, self.at)], end + 1
            else:
                text = self.next() + self.next()
            if not text or not set(text) <= set("0123456789abcdefABCDEF") or int(text, 16) > LAST:
                raise self.fail("no hexadecimal number of a character")
            return int(text, 16)
        if letter in LETTERS:
            return LETTERS[letter]
        if letter < "\x80" and not letter.isalnum():
            return ord(letter)
        raise self.fail(f"\\{letter} is no escape")

    def bracket(self) -> Ranges:
        self.at += 1
        is_other = self.taken("^")
        pieces: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self.ahead("]"):
            is_first = False
            found = self.posix() or self.named()
            if found is not None:
                pieces += found
                continue
            first = self.member()
            last = first
            if self.ahead("-") and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self.member()
                if last < first:
                    raise self.fail("a range falls")
            pieces += self.cased(((first, last),))
        self.at += 1
        return negated(pieces) if is_other else merged(pieces)

    def member(self) -> int:
        if self.ahead("\\"):
            return self.code()
        return ord(self.next())

    def posix(self) -> Ranges | None:
        if not self.ahead("[:"):
            return None
        end = self.pattern.find(":]", self.at + 2)
        if end < 0:
            return None
        name, self.at = self.pattern[self.at + 2 : end], end + 2
        positive = POSIX.get(name.removeprefix("^"))
        if positive is None:
            raise self.fail(f"there is no class [:{name}:]")
        positive = self.cased(positive)
        return negated(positive) if name.startswith("^") else positive
