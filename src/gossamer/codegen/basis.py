"""What ships: for every kind of kernel, general forms that do whatever a model may ask for, and the forms that most
models ask for. No list of networks: tiles, functions and types are taken from where they are declared, and each kind
of kernel says itself what of it ships (`KernelSpec.ships`).

A *basis* is closed: with its kernels and no compiler, every graph that can be lowered runs as machine code, with the
same bits (`gossamer.codegen.commands.Build`, `gossamer.codegen.split`). `tests/codegen/test_basis.py` holds it to that.
What is quicker than general forms is there where it pays for many shapes: epilogues that are common, and tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import get_args

from gossamer.codegen import kernels
from gossamer.codegen.dots import Byte
from gossamer.codegen.elements import ELEMENT_OF, ELEMENTS
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.spec import KernelSpec
from gossamer.targets import Target

RELU, RELU6, SILU = ("relu", 0), ("relu6", 0), ("mul", 0, ("logistic", 0))
ACTIVATIONS: tuple[Expression, ...] = (RELU, RELU6, ("hardswish", 0), SILU)
"""What follows most convolutions of floats."""

SCALED: Expression = ("add", ("mul", 0, 1), 2)
"""A batch normalization."""

_UPDATE: Expression = ("logistic", ("add", 0, 1))
CELLS: tuple[tuple[Expression, str], ...] = (
    (("add", ("mul", ("logistic", 0), 1), ("mul", ("logistic", 2), ("tanh", 3))), "vvvv"),
    (("mul", ("logistic", 0), ("tanh", 1)), "vv"),
    (("tanh", ("add", ("mul", ("logistic", ("add", 0, 1)), 2), 3)), "vvvv"),
    (("add", ("mul", _UPDATE, 2), ("mul", ("sub", 3, _UPDATE), 4)), "vvvsv"),
    (("mul", ("logistic", ("add", 0, 1)), 2), "vvv"),
)
"""What recurrent cells are made of, and their operands: an LSTM's cell state and its output; a GRU's candidate, its
state, of both and a one, and what it resets before a product. Larger maps of floats fall apart into these."""

TO_LEVELS: Expression = ("add", ("round", ("mul", 0, 1)), 2)
FROM_LEVELS: Expression = ("mul", ("sub", ("tof32", 0), 1), 2)
"""Integers of reals and reals of integers, as QUANTIZE and DEQUANTIZE are lowered where they fuse with others."""

ENDINGS: tuple[Expression, ...] = (IDENTITY, *ACTIVATIONS, ("add", 0, 1), ("relu", ("add", 0, 1)))
"""What follows most products of floats, but GELU: its code is longer than theirs, so that a map behind costs little."""

BYTE_ENDINGS: tuple[Expression, ...] = (IDENTITY, ("qadd", 0, 1, 2), ("qadd", 1, 0, 2), ("lookup", 0, 1))
"""What follows most products of bytes: a residual sum, and any function of a byte."""

WORDS_ADDED: Expression = ("scaleout", ("add", ("scalein", ("toi32", 0), 2), ("scalein", ("toi32", 1), 3)), 4)
"""A residual sum of int16, as ADD is lowered."""

WORD_MAPS: tuple[tuple[Expression, str], ...] = (
    (WORDS_ADDED, "ppp"),
    (("scaleout", ("sub", ("scalein", ("toi32", 0), 2), ("scalein", ("toi32", 1), 3)), 4), "ppp"),
    (("scaleout", ("mul", ("sub", ("toi32", 0), 2), ("sub", ("toi32", 1), 3)), 4), "ssp"),
)
"""Sums, differences and products of int16, as operators are lowered, and what their numbers are."""

BYTES: tuple[Byte, ...] = get_args(Byte)
NUMBERS = tuple(name for name in ELEMENT_OF.values() if name != "bool" and ELEMENTS[name].computed == name)
COMPARED = tuple(name for name in NUMBERS if name != "f64")

WINDOWS = tuple((size, size, stride) for size in (3, 5, 7) for stride in (1, 2))
"""Depthwise kernels, and the steps between pixels, for which there are kernels that have them written out."""

PIXELS = (7, 4, 1)
"""Of a depthwise row at a time."""


def basis(target: Target) -> Iterator[KernelSpec]:
    """The specs of everything that ships for a target, each once; not what one that it extends has."""
    wanted = {"tiles"} if target.tiles else {"bytes"} | ({"plain"} if target.base is None else set())
    found: dict[str, KernelSpec] = {}
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for kind in vars(import_module(module.name)).values():
            is_kernel = isinstance(kind, type) and issubclass(kind, KernelSpec) and not isabstract(kind)
            if is_kernel and kind.__module__ == module.name and kind.targets in wanted:
                found |= {spec.name: spec for spec in kind.ships(target)}
    return iter(found.values())
