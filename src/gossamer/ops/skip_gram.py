"""SKIP_GRAM: the n-grams of a text, with words left out between them.

Only the first string of the input counts. It is split at ASCII white space; a first word that starts with white space
is dropped if another word follows. An n-gram is ``ngram_size`` words in the order of the text, joined by single blanks,
with at most ``max_skip_size`` words left out between any two neighbours; with ``include_all_ngrams`` shorter ones, down
to single words, count too. They come in lexicographic order of word positions, longer ones before their beginnings.
A text of fewer words than ``ngram_size`` has none at all. The output is a vector of strings.

n-grams multiply quickly: an output of more than 512 MiB is refused (TFLite would try).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from gossamer.arrays import NDArray
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SkipGramOptions

_SPACE = re.compile(rb"[ \t-\r]")
_BYTES_OF_A_STRING = 64
_MAX_MEMORY = 1 << 29
_SHORT = 8

op = OpDef(
    "SKIP_GRAM",
    inputs=("input",),
    outputs=("output",),
    versions=versions("1.5.0"),
    types={"input": (TensorType.STRING,), "output": (TensorType.STRING,)},
    options=SkipGramOptions,
    reference_only="strings live in Python",
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    ctx.set_dynamic(0)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    options: SkipGramOptions = ctx.options
    texts = ctx.value(0).reshape(-1)
    ctx.require(texts.size, "input must hold a string, got none")
    words = _words(texts[0])
    size, reach = options.ngram_size, options.max_skip_size + 1
    smallest = 1 if options.include_all_ngrams else size
    if not 0 < size <= len(words):
        return np.empty(0, object)
    if not _are_few(len(words), size, reach) and _memory(len(words), size, smallest, reach) > _MAX_MEMORY:
        ctx.fail(f"{len(words)} words have too many n-grams of size {size} with {options.max_skip_size} words skipped")
    grams = list(_texts(words, size, smallest, max(reach, 0)))
    output = np.empty(len(grams), object)
    output[:] = grams
    return output


def _words(text: bytes) -> list[bytes]:
    first, *others = _SPACE.split(text[1:])
    if others and _SPACE.match(text):
        return [word for word in others if word]
    return [word for word in (text[:1] + first, *others) if word]


def _texts(words: list[bytes], size: int, smallest: int, reach: int) -> Iterator[bytes]:
    """The n-grams. Those that end differently are made together."""
    if size == 1:
        yield from words
        return
    is_exact = smallest == size
    for gram in _grams(len(words) - is_exact, size - 1, smallest - is_exact, reach):
        text = b" ".join([words[place] for place in gram])
        if len(gram) == size - 1:
            following = gram[-1] + 1
            beginning = text + b" "
            yield from [beginning + word for word in words[following : following + reach]]
        if not is_exact:
            yield text


def _grams(count: int, size: int, smallest: int, reach: int) -> Iterator[list[int]]:
    """The n-grams as positions of words; a list is valid until the next one is asked for."""
    for first in range(count - smallest + 1):
        gram, following = [first], [first + 1]
        while gram:
            word = following[-1]
            last = count - 1 - max(smallest - len(gram) - 1, 0)  # leaves enough words to complete the n-gram
            if len(gram) < size and word - gram[-1] <= reach and word <= last:
                following[-1] += 1
                gram.append(word)
                following.append(word + 1)
            else:
                if len(gram) >= smallest:
                    yield gram
                gram.pop()
                following.pop()


def _are_few(count: int, size: int, reach: int) -> bool:
    """Whether it is plain that n-grams do not take too much."""
    most = size * (_BYTES_OF_A_STRING + 2 * size)
    return size < _SHORT and count * max(reach, 1) ** (size - 1) * most <= _MAX_MEMORY


def _memory(count: int, size: int, smallest: int, reach: int) -> int:
    """Bytes that all n-grams take at least; stops counting when they are too many."""
    total = 0
    # How many begun n-grams end at each word, the words that are left for their beginnings and ends taken away.
    ends: NDArray[np.int64] = np.ones(count - smallest + 1, np.int64)
    for length in range(1, size + 1):
        if length > 1:
            sums = ends.cumsum()
            ends = sums.copy()
            ends[max(reach, 0) :] -= sums[: max(sums.size - max(reach, 0), 0)]
            ends = ends[: count - max(length, smallest) + 1]
        made = int(ends.sum()) * (_BYTES_OF_A_STRING + 2 * length)
        total += made if length >= smallest else 0
        if max(total, made) > _MAX_MEMORY:
            return max(total, made)
    return total
