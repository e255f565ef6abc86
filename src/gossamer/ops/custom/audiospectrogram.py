"""AudioSpectrogram: how loud each frequency is in sound, window by window.

``input`` is float32 [samples, channels]; custom options: ``window_size`` (at least 2), ``stride`` (at least 1),
``magnitude_squared`` (default false). Each channel is cut into windows of ``window_size`` samples, ``stride`` apart, as
many as fit. A window is multiplied by ``0.5 - 0.5 cos(2 pi i / window_size)``, filled with zeros to the next power of
two f and transformed (discrete Fourier transform, float64). The output [channels, windows, f / 2 + 1] is the squared
magnitude of each frequency, rounded to float32, or its square root.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._fourier import transform
from gossamer.ops._layout import checked_shape, require_rank
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.views import View

FLOAT = (TensorType.FLOAT32,)
_MAX_WINDOW = 1 << 30

op = OpDef(
    "AudioSpectrogram",
    inputs=("input",),
    outputs=("output",),
    versions=versions("1.9.0"),
    types={"input": FLOAT, "output": FLOAT},
    custom=True,
)


@record(frozen=True)
class Settings:
    """The custom options, and the number of samples in a transform."""

    window_size: int
    stride: int
    magnitude_squared: bool
    fft_length: int


@op.prepare
def prepare(ctx: PrepareContext) -> Settings:
    """Returns the custom options."""
    source = ctx.input(0)
    require_rank(ctx, "input", source, 2)
    options = ctx.attributes()
    try:
        window_size, stride = int(options.get("window_size") or 0), int(options.get("stride") or 0)
    except (TypeError, ValueError, OverflowError) as error:
        ctx.fail(f"custom options: {error}")
    ctx.require(2 <= window_size <= _MAX_WINDOW, f"window_size must be in [2, {_MAX_WINDOW}], got {window_size}")
    ctx.require(stride >= 1, f"stride must be at least 1, got {stride}")
    fft_length = 1 << (window_size - 1).bit_length()
    samples, channels = source.shape
    windows = 1 + (samples - window_size) // stride if samples >= window_size else 0
    ctx.set_shape(0, checked_shape(ctx, (channels, windows, fft_length // 2 + 1)))
    return Settings(window_size, stride, bool(options.get("magnitude_squared")), fft_length)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return spectrogram(ctx.value(0), ctx.output().shape[1], ctx.data)


def spectrogram(sound: Array, count: int, settings: Settings) -> Array:
    """What the operator gives for float32 [samples, channels], in which ``count`` windows fit."""
    size = settings.window_size
    if not count:
        return np.zeros((sound.shape[1], 0, settings.fft_length // 2 + 1), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(sound.T, size, 1)[:, :: settings.stride]
    spectrum = np.fft.rfft(windows * _taper(size), settings.fft_length)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    return power if settings.magnitude_squared else np.sqrt(power)


@op.lower
def lower(graph: Lowering) -> None:
    settings: Settings = graph.data
    x, (channels, windows, frequencies) = graph.value(0), graph.output().shape
    sample, channel = x.strides
    shape, strides = (channels, windows, settings.window_size), (channel, settings.stride * sample, sample)
    tapered = graph.map(
        "mul", View(x.buffer, shape, strides, x.offset), graph.array(_taper(settings.window_size).astype(np.float32))
    )
    spectrum = transform(graph, tapered, settings.fft_length, frequencies)
    real, imaginary = (graph.reshape(spectrum.slice(3, part, 1), graph.output().shape) for part in range(2))
    power = graph.map(("add", ("square", 0), ("square", 1)), real, imaginary)
    graph.result(power if settings.magnitude_squared else graph.map("sqrt", power))


def _taper(size: int) -> Array:
    """Hann's window, periodic, in float64."""
    taper: Array = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(size) / size)
    return taper
