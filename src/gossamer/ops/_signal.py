"""What the operators of TFLite Micro's signal library share: how they read their options."""

from __future__ import annotations

from gossamer.dtypes import type_name
from gossamer.ops.op_def import Context
from gossamer.schema.enums import TensorType

MAX_ELEMENTS = 1 << 24
"""How many elements an option may ask for: a device has less, and a hostile file must not get more."""


def integers(ctx: Context, *names: str) -> list[int]:
    """Custom options by name, integers of 32 bits or booleans. Raises for one that is missing or something else."""
    options = ctx.attributes()
    found = []
    for name in names:
        value = options.get(name)
        if not isinstance(value, int) or not -(1 << 31) <= value < 1 << 31:
            ctx.fail(f"custom option {name} must be an integer of 32 bits, got {value!r}")
        found.append(int(value))
    return found


def sizes(ctx: Context, *names: str) -> list[int]:
    """Custom options that count elements, at least 1."""
    found = integers(ctx, *names)
    for name, value in zip(names, found, strict=True):
        ctx.require(1 <= value <= MAX_ELEMENTS, f"{name} must be in [1, {MAX_ELEMENTS}], got {value}")
    return found


def shift(ctx: Context, name: str) -> int:
    """A custom option that shifts numbers of 32 bits."""
    (bits,) = integers(ctx, name)
    ctx.require(0 <= bits < 32, f"{name} must be in [0, 31], got {bits}")
    return bits


def require_type_option(ctx: Context) -> None:
    """Raise unless the custom option T is the type of the input."""
    (stored,) = integers(ctx, "T")
    got = ctx.input(0).type
    ctx.require(stored == got, f"custom option T is {_name(stored)}, the input is {type_name(got)}")


def _name(stored: int) -> str:
    return type_name(TensorType(stored)) if stored in set(TensorType) else str(stored)
