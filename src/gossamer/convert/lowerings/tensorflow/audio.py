"""Sound: TFLite's own operators for spectra and what speech models take of them."""

from __future__ import annotations

from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.schema import flexbuffers
from gossamer.schema.enums import TensorType


@lowers("AudioSpectrogram")
def audio_spectrogram(call: Call) -> Value:
    x = call.value(0)
    size, stride = call.attributes.int("window_size"), call.attributes.int("stride")
    samples = x.dims[0]
    if samples is None:
        refuse("the number of samples is open; give it with --shape")
    windows = max((samples - size) // stride + 1, 0)
    options = {
        "window_size": size,
        "stride": stride,
        "magnitude_squared": call.attributes.bool("magnitude_squared", False),
    }
    bins = (1 << (size - 1).bit_length()) // 2 + 1
    shape = (x.size(1), windows, bins)
    return call.graph.add_custom(call.op, [x], [(TensorType.FLOAT32, shape)], flexbuffers.dumps(options))[0]


@lowers("Mfcc")
def mfcc(call: Call) -> Value:
    spectrogram, rate = call.values()
    count = call.attributes.int("dct_coefficient_count", 13)
    options = {
        "upper_frequency_limit": int(call.attributes.float("upper_frequency_limit", 4000.0)),
        "lower_frequency_limit": int(call.attributes.float("lower_frequency_limit", 20.0)),
        "filterbank_channel_count": call.attributes.int("filterbank_channel_count", 40),
        "dct_coefficient_count": count,
    }
    shape = (spectrogram.size(0), spectrogram.size(1), count)
    operands = [spectrogram, rate]
    return call.graph.add_custom(call.op, operands, [(TensorType.FLOAT32, shape)], flexbuffers.dumps(options))[0]
