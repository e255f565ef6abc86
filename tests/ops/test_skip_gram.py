"""SKIP_GRAM: words, skips, orders, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.skip_gram import op
from gossamer.schema import SkipGramOptions
from tests.ops.cases import Case, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused


def grams(id: str, text: str, expected: list[str], size: int, skip: int = 0, shorter: bool = False) -> Case:
    return Case(
        id,
        [tensor([text.encode()], object)],
        [tensor([gram.encode() for gram in expected], object)],
        SkipGramOptions(ngram_size=size, max_skip_size=skip, include_all_ngrams=shorter),
    )


CASES = [
    grams("pairs", "the quick brown fox", ["the quick", "quick brown", "brown fox"], 2),
    grams("skip", "a b c d", ["a b", "a c", "b c", "b d", "c d"], 2, skip=1),
    grams("three", "a b c d", ["a b c", "a b d", "a c d", "b c d"], 3, skip=1),
    grams("all", "a b c", ["a b", "a", "b c", "b", "c"], 2, shorter=True),
    grams("all_with_skips", "a b c", ["a b c", "a b", "a c", "a", "b c", "b", "c"], 3, skip=1, shorter=True),
    grams("white_space", "a  b\tc\n d\v", ["a b", "b c", "c d"], 2),
    grams("first_word_after_white_space", " a b c", ["b c"], 2, skip=5),
    grams("only_word_after_white_space", " a", [" a"], 1),
    grams("too_few_words", "a b", [], 3, shorter=True),
    grams("no_words", "", [], 1),
    grams("no_size", "a b", [], 0),
    grams("negative_skip", "a b", [], 2, skip=-1),
    Case(
        "first_string_only",
        [tensor([[b"a b"], [b"c d"]], object)],
        [tensor([b"a b"], object)],
        SkipGramOptions(ngram_size=2),
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_refuses_numbers() -> None:
    assert_refused(op, Case("", [tensor([1.0])], [tensor([b""], object)]), "input must be string, got float32")


REFUSED_BY_INVOKE = [
    ("input must hold a string", Case("", [tensor(np.zeros(0, object), object)], [tensor([b""], object)])),
    (
        "60 words have too many n-grams of size 30 with 60 words skipped",
        grams("", " ".join("abcdefghij" * 6), [], 30, skip=60),
    ),
    ("too many n-grams of size 60", grams("", " ".join("abcdefghij" * 6), [], 60, skip=60, shorter=True)),
    ("too many n-grams of size 2 ", grams("", "a " * 100000, [], 2, skip=100000)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)
