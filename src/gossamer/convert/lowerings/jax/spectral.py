"""Fourier transforms along the last axes."""

from __future__ import annotations

from gossamer.convert.blocks.fourier import along, half, whole
from gossamer.convert.blocks.shapes import cast
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.jax import Call, lowers
from gossamer.schema.enums import TensorType

_FORMS = ("FFT", "IFFT", "RFFT", "IRFFT")


@lowers("fft")
def fft(call: Call) -> Value:
    graph, x = call.graph, call.value(0)
    lengths = [int(length) for length in call.params["fft_lengths"]]
    form = call.params["fft_type"]
    name = str(getattr(form, "name", form)) if not isinstance(form, int) else _FORMS[int(form)]
    if name not in _FORMS:
        refuse(f"the transform {name} is not known")
    axes = range(-len(lengths), 0)
    if name == "RFFT":
        x = half(graph, cast(graph, x, TensorType.FLOAT32), lengths[-1])
        axes = axes[:-1]
    elif name == "IRFFT":
        axes = axes[:-1]
    for axis in axes:
        x = along(graph, x, axis, inverse=name.startswith("I"))
    return whole(graph, x, lengths[-1]) if name == "IRFFT" else x
