"""SignalFilterBank (TFLite Micro): how much energy there is in each band of a spectrum.

``input`` uint32 [frequencies]; ``weights`` and ``unweights`` int16 [w]; ``channel_frequency_starts``,
``channel_weight_starts`` and ``channel_widths`` int16 [c + 1], where c is the custom option ``num_channels``; the
output is uint64 [c]. Band b, of c + 1, has ``channel_widths[b]`` energies from ``channel_frequency_starts[b]`` on, and
as many weights and unweights from ``channel_weight_starts[b]`` on. A triangular filter rises over one band and falls
over the next: ``output[i]`` is the sum of band i times its unweights plus the sum of band i + 1 times its weights. Sums
wrap around at 64 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer.ops._layout import require_rank
from gossamer.ops._signal import sizes
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

INT16 = (TensorType.INT16,)
NAMES = ("weights", "unweights", "channel_frequency_starts", "channel_weight_starts", "channel_widths")

op = OpDef(
    "SignalFilterBank",
    inputs=("input", *NAMES),
    outputs=("output",),
    versions=versions(""),
    types={"input": (TensorType.UINT32,), **dict.fromkeys(NAMES, INT16), "output": (TensorType.UINT64,)},
    custom=True,
    reference_only="operators for signals have no machine code",
)


class Bands(NamedTuple):
    """All bands one after the other: where their energies and weights lie, and where each ends."""

    frequencies: Array
    weights: Array
    ends: Array


def num_channels(ctx: Context) -> int:
    """The custom option ``num_channels``."""
    return sizes(ctx, "num_channels")[0]


@op.prepare
def prepare(ctx: PrepareContext) -> Bands | None:
    """Returns the bands if they are known."""
    channels = num_channels(ctx)
    for position, name in enumerate(("input", *NAMES)):
        require_rank(ctx, name, ctx.input(position), 1)
    ctx.require(ctx.input(1).shape == ctx.input(2).shape, "weights and unweights must have the same length")
    for position in (3, 4, 5):
        got = ctx.input(position).shape[0]
        ctx.require(got > channels, f"{NAMES[position - 1]} must have {channels + 1} elements, got {got}")
    ctx.set_shape(0, (channels,))
    known = ctx.all_known(3, 4, 5)
    return None if known is None else _bands(ctx, channels, *known)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    channels = ctx.output().shape[0]
    bands: Bands = ctx.data or _bands(ctx, channels, *(ctx.value(position) for position in (3, 4, 5)))
    energies = ctx.value(0)[bands.frequencies].astype(np.uint64)
    weighted, unweighted = (_sums(energies * _unsigned(ctx.value(i)[bands.weights]), bands.ends) for i in (1, 2))
    total: Array = weighted[1:] + unweighted[:-1]
    return total


def _bands(ctx: Context, channels: int, frequency_starts: Array, weight_starts: Array, widths: Array) -> Bands:
    counts = np.maximum(widths[: channels + 1].astype(np.int64), 0)
    ends = np.cumsum(counts)
    within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
    found = []
    for name, starts, size in (
        ("input", frequency_starts, ctx.input(0).shape[0]),
        ("weights", weight_starts, ctx.input(1).shape[0]),
    ):
        places = np.repeat(starts[: channels + 1].astype(np.int64), counts) + within
        if places.size and not (places.min() >= 0 and places.max() < size):
            ctx.fail(f"a band needs elements {places.min()} to {places.max()} of {name}, which has {size}")
        found.append(places)
    return Bands(found[0], found[1], ends)


def _unsigned(weights: Array) -> Array:
    """Signed numbers modulo 2^64, as C multiplies them."""
    return weights.astype(np.int64).view(np.uint64)


def _sums(products: Array, ends: Array) -> Array:
    """The sum of each band. Differences of sums that wrap around are exact."""
    so_far = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products, dtype=np.uint64)])
    sums: Array = np.diff(so_far[np.concatenate([[0], ends])])
    return sums
