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
PRELU: Expression = ("sub", ("relu", 0), ("mul", ("relu", ("neg", 0)), 1))
"""PRELU, as those write it whose operators do not have it."""

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

_RELEASED: Expression = ("fixedlogistic", ("toi32", 0))
_DEVIATION: Expression = ("requant", ("toi32", ("sub", ("mul", ("toi64", 0), 1), 2)), 3, 4)
_VARIANCE: Expression = ("div", ("sub", ("mul", ("add", 0, 1), 2), ("mul", 3, 3)), 4)
_HALF: Expression = ("select", ("greater", 0, 1), ("add", 0, 2), ("sub", 0, 2))


def _renewed(admitted: Expression) -> Expression:
    added = ("roundshift", ("mul", admitted, ("fixedtanh3", ("toi32", 2))), 4)
    return ("limit", ("add", ("roundshift", ("mul", _RELEASED, ("toi32", 1)), 3), ("toi32", ("toi16", added))), 6)


_INTEGERS, _STATES, _WIDE = ("i32", "i32"), ("i16", "i16", "i16", "i32", "i32"), ("i64",) * 4
LSTM_MAPS: tuple[tuple[Expression, str, tuple[str, ...]], ...] = (
    (("sub", ("toi32", 0), 1), "vs", ("i8", "i32", "i16")),
    (("saturate16", ("requant", ("add", 0, 1), 2, 3)), "vvvv", (*_INTEGERS, *_INTEGERS, "i16")),
    (("saturate16", ("add", ("requant", 0, 2, 3), ("toi32", 1))), "vvvv", ("i32", "i16", *_INTEGERS, "i16")),
    (_renewed(("fixedlogistic", ("toi32", 5))), "vvvssvp", (*_STATES, "i16", "i32", "i16")),
    (_renewed(("sub", 5, _RELEASED)), "vvvsssp", (*_STATES, "i32", "i32", "i16")),
    *(
        (("scaleout", ("mul", _RELEASED, (f"fixedtanh{bits}", ("toi32", 1))), 2), "vvp", ("i16", "i16", "i32", "i8"))
        for bits in range(7)
    ),
    (("scaleout", ("add", 0, 1), 2), "vvp", (*_INTEGERS, "i32", "i8")),
    (("saturate16", ("add", ("toi32", 0), ("requant", ("mul", ("toi32", 1), ("toi32", 2)), 3, 4))), "vvvss",
     (*_STATES, "i16")),
    (("div", ("mul", ("add", 0, 1), 2), 3), "vvvv", (*_WIDE, "i64")),
    (("toi32", ("select", ("less", _VARIANCE, 5), 6, _VARIANCE)), "v" * 7, (*_WIDE, "i64", "i64", "i64", "i32")),
    (("toi64", ("add", ("mul", _DEVIATION, ("toi32", 5)), 6)), "vssssvv",
     ("i16", "i64", "i64", *_INTEGERS, "i16", "i32", "i64")),
    (("saturate16", ("requant", ("toi32", ("div", _HALF, 3)), 4, 5)), "vsssss", (*_WIDE, *_INTEGERS, "i16")),
    (("select", ("equal", 0, 1), 2, 0), "vss", ()),
    (("roundaway", ("mul", 0, ("div", 2, 1))), "vss", ("f32", "f32", "f32", "i16")),
    (("add", 0, ("mul", ("tof32", 1), ("mul", 3, 2))), "vvsv", ("f32", "i32", "f32", "f32", "f32")),
)  # fmt: skip
"""What cells of LSTM operators are made of, as these are lowered: integers, and the last three with dynamic range."""

TO_LEVELS: Expression = ("add", ("round", ("mul", 0, 1)), 2)
FROM_LEVELS: Expression = ("mul", ("sub", ("tof32", 0), 1), 2)
"""Integers of reals and reals of integers, as QUANTIZE and DEQUANTIZE are lowered where they fuse with others."""

TO_WORDS: Expression = ("saturate16", ("roundi32", ("mul", 0, 1)))
"""int16 of reals, as QUANTIZE is lowered."""

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
NUMBERS = tuple(
    name
    for name in ELEMENT_OF.values()
    if ELEMENTS[name].kind not in ("bool", "complex") and ELEMENTS[name].computed == name
)
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
            is_class = issubclass(type(kind), type)  # `isinstance` takes `tuple[int]` for one in Python 3.10
            is_kernel = is_class and issubclass(kind, KernelSpec) and not isabstract(kind)
            if is_kernel and kind.__module__ == module.name and kind.targets in wanted:
                found |= {spec.name: spec for spec in kind.ships(target)}
    return iter(found.values())
