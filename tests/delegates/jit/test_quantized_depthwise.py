"""DEPTHWISE_CONV_2D of bytes: every way in which channels and pixels are cut, against XNNPACK's formula and LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.codegen.commands.quantized_depthwise import Piece, pieces_of, pixels_together
from gossamer.ops.depthwise_conv_2d import op
from gossamer.schema import ActivationFunctionType, DepthwiseConv2DOptions, Padding
from gossamer.targets import all_targets
from gossamer.views import Geometry
from tests.ops.cases import Case, const, model_of, tensor

NONE, RELU, RELU6 = (ActivationFunctionType[name] for name in ("NONE", "RELU", "RELU6"))

# (images, rows, columns, channels), filter, then what differs from stride 1, multiplier 1, SAME, no activation.
LAYERS: list[tuple[tuple[int, int, int, int], tuple[int, int], dict[str, Any]]] = [
    *(((1, 5, 7, channels), (3, 3), {}) for channels in (1, 3, 7, 8, 12, 16, 24, 32, 40, 48, 64, 72, 100, 150)),
    *(((1, 6, 11, channels), (3, 3), {"stride": 2}) for channels in (1, 4, 8, 12, 16, 32, 40, 64, 96)),
    *(((2, 8, 8, channels), (5, 5), {"stride": stride}) for channels in (8, 64, 88) for stride in (1, 2)),
    ((1, 1, 1, 64), (3, 3), {}),
    ((3, 2, 5, 1040), (3, 3), {}),
    ((1, 9, 9, 20), (7, 7), {}),
    ((1, 9, 9, 70), (3, 3), {"stride": 3}),
    ((1, 9, 12, 16), (3, 3), {"dilation": 2}),
    ((1, 12, 12, 65), (3, 3), {"dilation": 3, "padding": Padding.VALID}),
    ((1, 9, 9, 4), (3, 3), {"multiplier": 3}),
    ((1, 20, 10, 1), (10, 8), {"multiplier": 8, "stride": 2}),
    ((1, 6, 6, 48), (3, 3), {"activation": RELU}),
    ((1, 6, 6, 48), (3, 3), {"activation": RELU6}),
    ((1, 6, 6, 48), (3, 3), {"padding": Padding.VALID}),
    ((1, 6, 6, 48), (3, 3), {"finer": 3000.0}),
    ((1, 6, 6, 33), (1, 1), {}),
    ((1, 6, 6, 33), (2, 4), {}),
]
IDS = ["x".join(map(str, (*shape, *filter))) + "".join(f"-{k}-{v}" for k, v in more.items())
       for shape, filter, more in LAYERS]  # fmt: skip


def layer(
    seed: int,
    type: type,
    shape: tuple[int, int, int, int],
    filter: tuple[int, int],
    stride: int = 1,
    dilation: int = 1,
    multiplier: int = 1,
    padding: Padding = Padding.SAME,
    activation: ActivationFunctionType = NONE,
    finer: float = 1.0,
) -> Case:
    """A layer of random numbers; ``finer``: how much more so than usual is the output's scale. Its output is XNNPACK's:
    ``clamp(rne(float32(sum) * (x_scale * w_scale / y_scale)) + zero_point)``."""
    rng = np.random.default_rng(seed)
    least, greatest = np.iinfo(type).min, np.iinfo(type).max
    channels = shape[3] * multiplier
    per_channel = type is np.int8 and bool(rng.integers(2))
    x_scale = np.float32(rng.uniform(0.01, 0.05))
    w_scales = rng.uniform(0.002, 0.02, channels if per_channel else 1).astype(np.float32)
    y_scale = np.float32(x_scale * w_scales.mean() * np.sqrt(np.prod(filter)) * 130 / finer)
    x_zero, y_zero = (int(n) for n in rng.integers(least, greatest, 2, endpoint=True))
    w_zero = 0 if type is np.int8 else int(rng.integers(100, 150))
    x = rng.integers(least, greatest, shape, type, endpoint=True)
    w = rng.integers(max(least, -127), greatest, (1, *filter, channels), type, endpoint=True)
    bias = rng.integers(-3000, 3000, channels, np.int32)

    output, pads = [], []
    for size, taps in zip(shape[1:3], filter, strict=True):
        reach = (taps - 1) * dilation + 1
        count = -(-size // stride) if padding == Padding.SAME else (size - reach) // stride + 1
        pad = max(0, (count - 1) * stride + reach - size) if padding == Padding.SAME else 0
        output.append(count)
        pads.append((pad // 2, pad - pad // 2))
    centred = np.repeat(np.pad(x.astype(np.int32) - x_zero, ((0, 0), *pads, (0, 0))), multiplier, 3)
    sums = np.zeros((shape[0], *output, channels), np.int32) + bias
    for i in range(filter[0]):
        for j in range(filter[1]):
            met = centred[:, i * dilation :: stride, j * dilation :: stride][:, : output[0], : output[1]]
            sums += met * (w[0, i, j].astype(np.int32) - w_zero)
    levels = np.rint(sums.astype(np.float32) * (x_scale * w_scales / y_scale)).astype(np.float64) + y_zero
    low = y_zero if activation != NONE else least
    high = min(greatest, np.rint(np.float32(6) / y_scale + y_zero)) if activation == RELU6 else greatest
    y = np.clip(levels, low, high).astype(type)

    scales = w_scales if per_channel else float(w_scales[0])
    options = DepthwiseConv2DOptions(
        padding=padding,
        stride_h=stride,
        stride_w=stride,
        depth_multiplier=multiplier,
        dilation_h_factor=dilation,
        dilation_w_factor=dilation,
        fused_activation_function=activation,
    )
    return Case(
        "",
        [
            tensor(x, type, scale=float(x_scale), zero_point=x_zero),
            const(w, type, scale=scales, zero_point=w_zero, dimension=3 if per_channel else 0),
            const(bias, scale=x_scale * w_scales if per_channel else float(x_scale * w_scales[0])),
        ],
        [tensor(y, type, scale=float(y_scale), zero_point=y_zero)],
        options,
        version=3,
    )


def answer(make_interpreter: Any, case: Case) -> np.ndarray:
    interpreter = make_interpreter(model_content=model_of(op, case))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], case.inputs[0].value)  # type: ignore[union-attr]
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])  # type: ignore[no-any-return]


@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize(("shape", "filter", "more"), LAYERS, ids=IDS)
def test_every_layer(shape: Any, filter: Any, more: dict[str, Any], type: type) -> None:
    for seed in range(2):
        case = layer(seed, type, shape, filter, **more)
        np.testing.assert_array_equal(answer(gossamer.Interpreter, case), case.outputs[0].value)


@pytest.mark.peer
@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize(("shape", "filter", "more"), LAYERS, ids=IDS)
def test_litert_computes_the_same(shape: Any, filter: Any, more: dict[str, Any], type: type) -> None:
    from ai_edge_litert.interpreter import Interpreter

    for seed in range(2, 5):
        case = layer(seed, type, shape, filter, **more)
        np.testing.assert_array_equal(answer(Interpreter, case), case.outputs[0].value)


def test_what_is_left_of_the_channels_overlaps() -> None:
    vnni = all_targets()["avx512vnni"]
    assert pieces_of(vnni, 128) == [Piece(64, 0, 2, 64)]
    assert pieces_of(vnni, 96) == [Piece(64, 0, 1, 64), Piece(32, 64, 1, 32)]
    assert pieces_of(vnni, 144) == [Piece(64, 0, 2, 64), Piece(32, 112, 1, 32)]
    assert pieces_of(vnni, 88) == [Piece(64, 0, 1, 64), Piece(32, 56, 1, 32)]
    assert pieces_of(vnni, 5) == [Piece(16, 0, 1, 5)]
    assert pieces_of(all_targets()["avx2"], 40) == [Piece(16, 0, 2, 16), Piece(16, 24, 1, 16)]


def test_few_channels_are_those_of_several_pixels() -> None:
    vnni = all_targets()["avx512vnni"]
    plain, halving = (Geometry((3, 3), (stride, stride), (1, 1), (1, 1), (48, 48)) for stride in (1, 2))
    assert [pixels_together(vnni, plain, channels, 48) for channels in (8, 16, 32, 64)] == [8, 4, 1, 1]
    assert [pixels_together(vnni, halving, channels, 24) for channels in (8, 16, 24, 32, 64)] == [8, 4, 1, 2, 1]
    assert pixels_together(vnni, plain, 8, 3) == 2
