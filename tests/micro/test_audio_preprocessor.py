"""From sound to what a network for speech commands hears: the graph of TFLite Micro's audio preprocessor.

Its example micro_speech feeds 30 ms of sound, every 20 ms, through the operators for signals: a window, the spectrum,
its energies in 40 bands on the mel scale, less the noise, with automatic gain, as logarithms in int8. The graph here
has the same operators, options and shapes; its window, bands and gains come from their formulas. The digests are those
of what TFLite Micro, the package tflite-micro of October 2026, made of this model.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.arrays import NDArray
from gossamer.micro import MicroInterpreter
from gossamer.schema import (
    AddOptions,
    CastOptions,
    ConcatenationOptions,
    DivOptions,
    MulOptions,
    StridedSliceOptions,
    TensorType,
    flexbuffers,
)
from tests.ops.reference import REFERENCE
from tests.runtime.graphs import ModelMaker

INT8, INT16, INT32 = TensorType.INT8, TensorType.INT16, TensorType.INT32
UINT32, UINT64, FLOAT32 = TensorType.UINT32, TensorType.UINT64, TensorType.FLOAT32

RATE, WINDOW, LENGTH, CHANNELS = 16000, 480, 512, 40
FIRST, LAST = 5, 241
"""The frequencies that the bands cover, of LENGTH / 2 + 1."""

DIGESTS = {INT8: "37dd7b842e635048", FLOAT32: "b8965554212891ac"}
"""The first 64 bits of the SHA-256 of 200 outputs, for `sound`, with a reset before the last 50."""


def bands() -> tuple[list[int], list[int], list[int], NDArray[np.int16], NDArray[np.int16]]:
    """Where each of the bands begins, in frequencies and in weights, how wide it is, weights and unweights."""
    mel = lambda hertz: 1127 * np.log1p(hertz / 700)  # noqa: E731  # the definition of the scale
    edges = np.linspace(mel(125), mel(7600), CHANNELS + 2)
    at = mel(np.arange(LENGTH // 2 + 1) * RATE / LENGTH)
    band = np.searchsorted(edges, at, "right") - 1
    within = np.arange(FIRST, LAST)
    band, at = band[within], at[within]
    share = (edges[band + 1] - at) / (edges[band + 1] - edges[band])
    weights = np.floor(share * 4096 + 0.5).astype(np.int16)
    widths = [int(np.sum(band == b)) for b in range(CHANNELS + 1)]
    starts = np.cumsum([0, *widths[:-1]]).tolist()
    return [FIRST + start for start in starts], starts, widths, weights, (4096 - weights).astype(np.int16)


def gains() -> NDArray[np.int16]:
    """The gain ``(noise / 2^10 + 80)^-0.95 2^21`` at powers of 2, and parabolas through it in between."""
    gain = lambda x: np.floor((x / 1024 + 80.0) ** -0.95 * 2**21 + 0.5)  # noqa: E731
    table = np.zeros(125)
    table[:3] = [gain(0), gain(1), gain(2)]
    for bits in range(2, 33):
        low, middle, high = (min(gain(x), 32767) for x in (2.0 ** (bits - 1), 1.5 * 2 ** (bits - 1), 2.0**bits))
        start = 4 * bits - 6
        curve = 2 * (low - 2 * middle + high)
        table[start : start + 3] = low, high - low - curve, curve
    return table.clip(-32768, 32767).astype(np.int16)


@cache
def preprocessor(result: TensorType) -> bytes:
    """The model, with an output of int8 [40], or of float32 [40], which has the logarithms alone."""
    make = ModelMaker()

    def op(name: str, inputs: list[int], *outputs: tuple[tuple[int, ...], TensorType], how: Any = None) -> Any:
        made = [make.tensor(shape, type_) for shape, type_ in outputs]
        if name.startswith("Signal"):
            make.op(name, inputs, made, custom=True, custom_options=flexbuffers.dumps(how or {}))
        else:
            make.op(name, inputs, made, how)
        return made if len(made) > 1 else made[0]

    def cast(x: int, shape: tuple[int, ...], type_: TensorType) -> int:
        made: int = op("CAST", [x], (shape, type_), how=CastOptions())
        return made

    def number(value: int) -> int:
        return make.constant(value, np.int32, INT32)

    hann = np.floor((0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(WINDOW) + 0.5) / WINDOW)) * 4096 + 0.5)
    sound = make.tensor((1, WINDOW), INT16, name="sound")
    x = op("SignalWindow", [sound, make.constant(hann, np.int16, INT16)], ((1, WINDOW), INT16), how={"shift": 12})
    x = op("RESHAPE", [x, make.constant([WINDOW], np.int32, INT32)], ((WINDOW,), INT16))
    x, scale_bits = op("SignalFftAutoScale", [x], ((WINDOW,), INT16), ((), INT32))
    x = op("SignalRfft", [x], ((LENGTH + 2,), INT16), how={"T": int(INT16), "fft_length": LENGTH})
    frequencies = LENGTH // 2 + 1
    x = op("SignalEnergy", [x], ((frequencies,), UINT32), how={"start_index": FIRST, "end_index": LAST})
    x = cast(x, (frequencies,), INT32)
    ends = [make.constant([value], np.int32, INT32) for value in (FIRST, LAST, 1)]
    x = op("STRIDED_SLICE", [x, *ends], ((LAST - FIRST,), INT32), how=StridedSliceOptions())
    zeros = [make.constant([0] * count, np.int32, INT32) for count in (FIRST, frequencies - LAST)]
    x = op("CONCATENATION", [zeros[0], x, zeros[1]], ((frequencies,), INT32), how=ConcatenationOptions())
    x = cast(x, (frequencies,), UINT32)
    *places, weights, unweights = bands()
    operands = [make.constant(values, np.int16, INT16) for values in (weights, unweights, *places)]
    x = op("SignalFilterBank", [x, *operands], ((CHANNELS,), UINT64), how={"num_channels": CHANNELS})
    x = op("SignalFilterBankSquareRoot", [x, scale_bits], ((CHANNELS,), UINT32))
    smoothing = {"smoothing": 409, "one_minus_smoothing": 15975, "smoothing_bits": 10, "spectral_subtraction_bits": 14}
    alternate = {"alternate_smoothing": 983, "alternate_one_minus_smoothing": 15401}
    rest = {"min_signal_remaining": 819, "num_channels": CHANNELS, "clamping": False}
    x, noise = op(
        "SignalFilterBankSpectralSubtraction",
        [x],
        ((CHANNELS,), UINT32),
        ((CHANNELS,), UINT32),
        how={**smoothing, **alternate, **rest},
    )
    x = op(
        "SignalPCAN", [x, noise, make.constant(gains(), np.int16, INT16)], ((CHANNELS,), UINT32), how={"snr_shift": 6}
    )
    options = {"input_correction_bits": 3, "output_scale": 64}
    x = op("SignalFilterBankLog", [x], ((CHANNELS,), INT16), how=options)
    if result == FLOAT32:
        x = cast(x, (CHANNELS,), FLOAT32)
        tenth = make.constant(1 / 25.6, np.float32, FLOAT32)
        x = op("MUL", [x, tenth], ((CHANNELS,), FLOAT32), how=MulOptions())
    else:
        # (x * 256 + 333) / 666 - 128, within int8.
        x = cast(x, (CHANNELS,), INT32)
        for name, value, how in (
            ("MUL", 256, MulOptions()),
            ("ADD", 333, AddOptions()),
            ("DIV", 666, DivOptions()),
            ("ADD", -128, AddOptions()),
            ("MINIMUM", 127, None),
            ("MAXIMUM", -128, None),
        ):
            x = op(name, [x, number(value)], ((CHANNELS,), INT32), how=how)
        x = cast(x, (CHANNELS,), INT8)
    make.io([sound], [x])
    return make.model()


@cache
def sound() -> list[NDArray[np.int16]]:
    """200 frames: a tone that rises, in noise, louder and softer, silence, and what no microphone records."""
    random = np.random.RandomState(0)
    frames = []
    for i in range(200):
        tone = np.sin(np.arange(WINDOW) * np.pi * (i + 1) / 250) * 2.0 ** (i % 16)
        noise = random.standard_normal(WINDOW) * 2.0 ** (5 + i % 7)
        frames.append((tone + noise).clip(-32768, 32767).astype(np.int16)[None])
    frames[20] = frames[21] = np.zeros((1, WINDOW), np.int16)
    frames[30] = np.full((1, WINDOW), -32768, np.int16)
    frames[31] = random.randint(-32768, 32768, (1, WINDOW)).astype(np.int16)
    return frames


@pytest.mark.parametrize("result", DIGESTS)
def test_micro(result: TensorType) -> None:
    interpreter = MicroInterpreter(preprocessor(result), arena=1 << 14)
    interpreter.allocate_tensors()
    digest = hashlib.sha256()
    for i, frame in enumerate(sound()):
        if i == 150:
            interpreter.reset()
        interpreter.input(0).store(frame)
        interpreter.invoke()
        digest.update(interpreter.output(0).array().tobytes())
    assert digest.hexdigest()[:16] == DIGESTS[result]


@pytest.mark.parametrize("make", [gossamer.Interpreter, REFERENCE], ids=["default", "reference"])
@pytest.mark.parametrize("result", DIGESTS)
def test_the_full_runtime(result: TensorType, make: Any) -> None:
    interpreter = make(model_content=preprocessor(result))
    interpreter.allocate_tensors()
    digest = hashlib.sha256()
    for i, frame in enumerate(sound()):
        if i == 150:
            interpreter.reset_all_variables()
        interpreter.set_tensor(0, frame)
        interpreter.invoke()
        digest.update(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tobytes())
    assert digest.hexdigest()[:16] == DIGESTS[result]
