"""Methods that keep accuracy: changes of a float model, or of how it becomes integers, that make the result err less.

Each has a file here with a function ``apply`` of a `Work`, and its source. They are carried out in the order of
`METHODS`, whatever order they are asked for in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gossamer.errors import ConvertError
from gossamer.quantize.methods import (
    adaptive_rounding,
    bias_correction,
    cross_layer_equalization,
    gptq,
    normalizations,
    sixteen_bits,
    smooth_quant,
)
from gossamer.quantize.methods.work import Work

__all__ = ["AFTER", "BEFORE", "BEST", "METHODS", "Work", "named", "ranges_for"]

Method = Callable[[Work], None]

BEFORE: Mapping[str, Method] = {
    "normalizations": normalizations.apply,
    "cross_layer_equalization": cross_layer_equalization.apply,
    "smooth_quant": smooth_quant.apply,
    "sixteen_bits": sixteen_bits.apply,
}
"""What is done to the float model before its values are watched."""

AFTER: Mapping[str, Method] = {
    "gptq": gptq.apply,
    "adaptive_rounding": adaptive_rounding.apply,
    "bias_correction": bias_correction.apply,
}
"""What is done to its weights afterwards."""

METHODS: Mapping[str, Method] = {**BEFORE, **AFTER}

BEST = "best"
BEST_METHODS = (
    "normalizations",
    "cross_layer_equalization",
    "smooth_quant",
    "sixteen_bits",
    "gptq",
    "bias_correction",
)
"""What `BEST` stands for, with ranges by the mean squared error: all that is measured to help before it is done, or
helps on the samples by construction. The operators that get 16 bits are what costs time when the model runs, at most a
quarter of its operations; the others cost nothing then."""

BEST_RANGES = "mse"


def named(methods: str | Iterable[str]) -> list[str]:
    """Methods by their names, in their order. Raises `ConvertError` for one that is not known."""
    asked = _listed(methods)
    for name in asked:
        if name not in METHODS and name != BEST:
            raise ConvertError(f"method {name!r} is not known; there are {BEST}, {', '.join(METHODS)}")
    chosen = {*asked, *(BEST_METHODS if BEST in asked else ())}
    return [name for name in METHODS if name in chosen]


def ranges_for(methods: str | Iterable[str]) -> str:
    """The statistic of ranges that goes with methods, where none is named."""
    return BEST_RANGES if BEST in _listed(methods) else "min_max"


def _listed(methods: str | Iterable[str]) -> list[str]:
    return [methods] if isinstance(methods, str) else list(methods)
