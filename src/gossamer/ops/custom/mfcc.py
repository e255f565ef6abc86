"""Mfcc: the mel-frequency cepstral coefficients of a spectrogram, the usual input of speech models.

``spectrogram`` is float32 [channels, windows, bins], squared magnitudes as AudioSpectrogram gives them; ``rate`` one
int32, samples per second. Custom options: ``lower_frequency_limit``, ``upper_frequency_limit`` (Hz, whole numbers),
``filterbank_channel_count`` (n), ``dct_coefficient_count``. The output is [channels, windows, coefficients]; all
arithmetic is in float64:

- mel(f) = 1127 ln(1 + f / 700); n triangular filters have their centres evenly spaced in mel between the limits.
- Bin i stands for ``i * rate / 2 / (bins - 1)`` Hz. Its magnitude is divided between the two filters whose centres
  enclose it, by its distance in mel; bins outside the limits, and bin 0, do not count. If the upper limit lies beyond
  the last bin, all coefficients are 0.
- Coefficient k is ``sqrt(2 / n) * sum(ln(max(filter j, 1e-12)) * cos(k pi / n (j + 0.5)))`` over the filters j.
"""

from __future__ import annotations

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.ops._layout import checked_shape, require_rank, require_single
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.records import record
from gossamer.schema.enums import TensorType

FLOAT = (TensorType.FLOAT32,)
MAX_FILTERS = 4096
_FLOOR = 1e-12

Real = NDArray[np.float64]

op = OpDef(
    "Mfcc",
    inputs=("spectrogram", "rate"),
    outputs=("output",),
    versions=versions("1.9.0"),
    types={"spectrogram": FLOAT, "rate": (TensorType.INT32,), "output": FLOAT},
    custom=True,
    reference_only="rare: it runs once for each slice of sound",
)


@record(frozen=True)
class Settings:
    """The custom options."""

    lower_limit: float
    upper_limit: float
    filters: int
    coefficients: int


@op.prepare
def prepare(ctx: PrepareContext) -> Settings:
    """Returns the custom options."""
    spectrogram = ctx.input(0)
    require_rank(ctx, "spectrogram", spectrogram, 3)
    require_single(ctx, "rate", ctx.input(1))
    options = ctx.attributes()
    names = ("lower_frequency_limit", "upper_frequency_limit", "filterbank_channel_count", "dct_coefficient_count")
    try:
        settings = Settings(*(int(options.get(name) or 0) for name in names))
    except (TypeError, ValueError, OverflowError) as error:
        ctx.fail(f"custom options: {error}")
    ctx.require(
        0 <= settings.lower_limit < settings.upper_limit,
        f"frequency limits must be 0 <= lower < upper, got {settings.lower_limit} and {settings.upper_limit}",
    )
    ctx.require(
        1 <= settings.coefficients <= settings.filters <= MAX_FILTERS,
        f"dct_coefficient_count {settings.coefficients} must be in [1, filterbank_channel_count] and that at most "
        f"{MAX_FILTERS}, got {settings.filters}",
    )
    channels, windows, bins = spectrogram.shape
    ctx.require_shapes(bins >= 2, f"spectrogram must have at least 2 bins, got {bins}")
    ctx.set_shape(0, checked_shape(ctx, (channels, windows, settings.coefficients)))
    return settings


@op.reference
def reference(ctx: InvokeContext) -> Array:
    rate = int(ctx.value(1).reshape(-1)[0])
    ctx.require(rate > 0, f"rate must be positive, got {rate}")
    return coefficients(ctx.value(0), rate, ctx.data)


def coefficients(spectrogram: Array, rate: int, settings: Settings) -> Array:
    """float32 [channels, windows, coefficients] of a spectrogram with this rate of samples."""
    shape = (*spectrogram.shape[:2], settings.coefficients)
    bands = _bands(spectrogram, rate, settings)
    if bands is None:
        return np.zeros(shape, np.float32)
    n = settings.filters
    angles = np.arange(settings.coefficients)[:, None] * (np.pi / n) * (np.arange(n) + 0.5)
    cosines = np.sqrt(2.0 / n) * np.cos(angles)
    found: Array = (cosines @ np.log(np.maximum(bands, _FLOOR))).T
    return found.reshape(shape).astype(np.float32)


def _mel(frequencies: ArrayLike) -> Real:
    mel: Real = 1127.0 * np.log1p(np.asarray(frequencies) / 700.0)
    return mel


def _bands(spectrogram: Array, rate: int, settings: Settings) -> Real | None:
    """The output of every filter for every window, [filters, windows]; ``None`` if there are too few bins."""
    bins, filters = spectrogram.shape[2], settings.filters
    width = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + settings.lower_limit / width), int(settings.upper_limit / width)
    if last >= bins:
        return None
    low = _mel(settings.lower_limit)
    spacing = (_mel(settings.upper_limit) - low) / (filters + 1)
    edges = low + spacing * np.arange(filters + 2)  # the centres are edges[1:-1]
    heights = _mel(np.arange(first, last + 1) * width)
    left = np.minimum(np.searchsorted(edges[1:], heights, "left"), filters)
    share = (edges[left + 1] - heights) / (edges[left + 1] - edges[left])
    magnitudes = np.sqrt(spectrogram.reshape(-1, bins)[:, first : last + 1].astype(np.float64)).T
    falling = magnitudes * share[:, None]
    # Row j + 1 is filter j: the rows before and behind take what belongs to no filter.
    bands = np.zeros((filters + 2, magnitudes.shape[1]))
    np.add.at(bands, left + 1, magnitudes - falling)
    np.add.at(bands, left, falling)
    return bands[1:-1]
