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

__all__ = ["BEFORE", "METHODS", "Work", "named"]

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


def named(methods: str | Iterable[str]) -> list[str]:
    """Methods by their names, in their order. Raises `ConvertError` for one that is not known."""
    asked = [methods] if isinstance(methods, str) else list(methods)
    for name in asked:
        if name not in METHODS:
            raise ConvertError(f"method {name!r} is not known; there are {', '.join(METHODS)}")
    return [name for name in METHODS if name in asked]
