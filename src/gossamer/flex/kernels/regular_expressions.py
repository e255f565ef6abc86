"""Regular expressions, as RE2 has them."""

from __future__ import annotations

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.objects import strings
from gossamer.flex.re2_syntax import PatternError
from gossamer.flex.regex import Regex, regex


@kernel("RegexFullMatch")
def full_match(call: Call, input: Array, pattern: Array) -> Array:
    """Whether a pattern matches each string as a whole."""
    return _matches(call, input, _regex(call, pattern.item()))


@kernel("StaticRegexFullMatch", shape=like_first)
def static_full_match(call: Call, input: Array) -> Array:
    """The same, with the pattern as an attribute."""
    return _matches(call, input, _regex(call, call.attributes.bytes("pattern")))


@kernel("RegexReplace")
def replace(call: Call, input: Array, pattern: Array, rewrite: Array) -> Array:
    """Each string with what a pattern matches, all of it or the first, replaced."""
    return _replaced(call, input, _regex(call, pattern.item()), rewrite.item())


@kernel("StaticRegexReplace", shape=like_first)
def static_replace(call: Call, input: Array) -> Array:
    """The same, with the pattern as an attribute."""
    return _replaced(call, input, _regex(call, call.attributes.bytes("pattern")), call.attributes.bytes("rewrite"))


def _regex(call: Call, pattern: bytes) -> Regex:
    try:
        return regex(pattern)
    except PatternError as error:
        call.fail(f"the pattern is no regular expression: {error}")


def _matches(call: Call, input: Array, found: Regex) -> Array:
    items = input.reshape(-1).tolist()
    matches = [found.matches(item, call.poll) for item in items]
    return np.array(matches, np.bool_).reshape(input.shape)


def _replaced(call: Call, input: Array, found: Regex, rewrite: bytes) -> Array:
    everywhere = call.attributes.bool("replace_global")
    items = [found.replaced(item, rewrite, everywhere, call.poll) for item in input.reshape(-1).tolist()]
    return strings(items, input.shape)
