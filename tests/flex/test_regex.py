"""Regular expressions: two engines that must agree, and patterns that would take one of them for ever.

What RE2 itself says is in tests/flex/kernels/recorded_texts.jsonl."""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest

from gossamer.flex.automata import utf8_sequences
from gossamer.flex.re2_syntax import PatternError, folded, negated, parse, property_ranges, ranges
from gossamer.flex.regex import Effort, Regex, effort

PARTS = ["a", "b", ".", r"\w", "[ab]", "[^a]", "(a)", "(b|c)", "(?:ab)", r"\b", "^", "$", "é", r"\pL", "(?i)A", "(b*)"]
SIGNS = ["", "", "*", "+", "?", "{2}", "{1,3}", "*?", "+?", "??", "|"]


def nothing() -> None:
    """Nobody ends the invocation."""


def pattern(draw: random.Random) -> bytes:
    return "".join(draw.choice(PARTS) + draw.choice(SIGNS) for _ in range(draw.randint(1, 5))).encode()


@pytest.mark.parametrize("seed", range(20))
def test_both_engines_agree(seed: int) -> None:
    draw, compared = random.Random(seed), 0
    while compared < 5:
        made = Regex(pattern(draw))
        if effort(made._tree) is None:
            continue
        compared += 1
        rewrite = rb"<\0|\1>" if made.groups else rb"<\0>"
        for _ in range(5):
            text = "".join(draw.choices("aabbcé \n", k=draw.randint(0, 8))).encode()
            quick = made.matches(text, nothing), made.replaced(text, rewrite, True, nothing)
            with patch.object(made, "_effort", None):
                assert (made.matches(text, nothing), made.replaced(text, rewrite, True, nothing)) == quick


HOSTILE = [rb"(a+)+b", rb"(a|aa)+$", rb"(a*)*c", rb"([a-z]+)*\d", rb"(.*)*=(.*)*", rb"(a|a)*b", rb"(a?){60}a{60}b"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_patterns_that_a_backtracking_engine_would_not_survive(hostile: bytes) -> None:
    made = Regex(hostile)
    text = b"a" * 3000 + b"!"
    assert effort(made._tree) is None
    assert not made.matches(text, nothing)
    made.replaced(text, b"", True, nothing)


EFFORTS = [
    (r"\s+", Effort(1, True)),
    (r"[^a-z]+|x", Effort(1, True)),
    (r"<[^>]*>", Effort(1, False)),
    (r"^<[^>]*>", Effort(1, True)),
    (r"foo|fob", Effort(2, True)),
    (r"a{2,5}a", Effort(4, True)),
    (r".*foo", None),
    (r"\C", None),
]


@pytest.mark.parametrize(("text", "want"), EFFORTS)
def test_what_a_backtracking_engine_may_have(text: str, want: Effort | None) -> None:
    assert effort(parse(text).tree) == want


def test_who_takes_long_is_asked_whether_to_end() -> None:
    class EndedError(Exception):
        pass

    def end() -> None:
        raise EndedError

    with pytest.raises(EndedError):
        Regex(rb".*foo").replaced(b"x" * 10, b"", True, end)


TOO_LARGE = [r"((x{100}){100})", r"(\pL{30}){30}", "(" * 200 + ")" * 200]


@pytest.mark.parametrize("text", TOO_LARGE)
def test_patterns_that_are_too_large(text: str) -> None:
    with pytest.raises(PatternError):
        Regex(text.encode())


def test_sets_of_characters() -> None:
    assert negated(ranges("\0`", "c\U0010ffff")) == ((ord("a"), ord("b")),)
    assert folded(ranges("k")) == ((ord("K"), ord("K")), (ord("k"), ord("k")), (0x212A, 0x212A))
    assert any(first <= 0x391 <= last for first, last in property_ranges("Greek"))
    assert property_ranges("Nd")[0] == (ord("0"), ord("9"))


@pytest.mark.parametrize(("first", "last"), [(0, 0x10FFFF), (0x7F, 0x801), (0xFFF, 0x10FFF), (0x20AC, 0x20AC)])
def test_sequences_of_bytes_are_the_characters(first: int, last: int) -> None:
    sequences = list(utf8_sequences(first, last))
    for code in {first, last, (first + last) // 2, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x41}:
        encoded = chr(code).encode() if not 0xD800 <= code < 0xE000 else b""
        matching = [
            one
            for one in sequences
            if len(one) == len(encoded) and all(a <= byte <= b for (a, b), byte in zip(one, encoded, strict=True))
        ]
        assert len(matching) == (first <= code <= last and bool(encoded))
