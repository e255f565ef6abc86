"""Convolutions and pools against sums over windows that NumPy takes, in all layouts and paddings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Array, DataType, Fixed, run_one

LAST = {4: "NHWC", 5: "NDHWC"}
FIRST = {4: "NCHW", 5: "NCDHW"}


def random(*shape: int, seed: int = 0) -> Array:
    """Small whole numbers: sums of products are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def pads(padding: Any, size: int, taps: int, stride: int) -> tuple[int, int]:
    """Elements before and after an axis for a window that is ``taps`` wide."""
    if padding == "VALID":
        return 0, 0
    if padding == "SAME":
        total = max((-(-size // stride) - 1) * stride + taps - size, 0)
        return total // 2, total - total // 2
    return padding  # type: ignore[no-any-return]


def windows(
    x: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int], padding: Any, fill: float
) -> Array:
    """Values N...C as [N, ..., C, *window]."""
    wide = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    rules = padding if isinstance(padding, list) else [padding] * len(window)
    around = [pads(r, s, w, t) for r, s, w, t in zip(rules, x.shape[1:-1], wide, strides, strict=True)]
    x = np.pad(x, [(0, 0), *around, (0, 0)], constant_values=fill)
    axes = tuple(range(1, x.ndim - 1))
    view = np.lib.stride_tricks.sliding_window_view(x, wide, axes)
    view = view[(slice(None), *[slice(None, None, s) for s in strides], slice(None))]
    return view[(..., *[slice(None, None, d) for d in dilations])]


def convolved(x: Array, filters: Array, strides: Any, dilations: Any, padding: Any) -> Array:
    """``filters``: [*window, channels / groups, outputs]."""
    taken = windows(x, filters.shape[:-2], strides, dilations, padding, 0)
    depth, outputs = filters.shape[-2:]
    groups = x.shape[-1] // depth
    n = len(strides)
    parts = []
    for g in range(groups):
        own = taken[(*[slice(None)] * (n + 1), slice(g * depth, (g + 1) * depth))]
        kernel = filters[..., g * outputs // groups : (g + 1) * outputs // groups]
        axes = [*range(n + 2, 2 * n + 2), n + 1], [*range(n), n]
        parts.append(np.tensordot(own, kernel, axes))
    return np.concatenate(parts, -1)


def whole(numbers: Sequence[int], layout: str) -> list[int]:
    return [1, 1, *numbers] if layout[1] == "C" else [1, *numbers, 1]


def in_layout(x: Array, layout: str) -> Array:
    return np.moveaxis(x, -1, 1) if layout[1] == "C" else x


def attributes(layout: str, strides: Sequence[int], dilations: Sequence[int], padding: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "data_format": layout,
        "strides": whole(strides, layout),
        "dilations": whole(dilations, layout),
        "padding": padding,
    }
    if isinstance(padding, list):
        flat = dict(zip(layout.replace("N", "").replace("C", ""), padding, strict=True))
        found["padding"] = "EXPLICIT"
        found["explicit_paddings"] = [n for letter in layout for n in flat.get(letter, (0, 0))]
    return found


GEOMETRY = [
    ((1, 1), (1, 1), "SAME"),
    ((2, 1), (1, 1), "VALID"),
    ((1, 1), (2, 3), "SAME"),
    ((2, 2), (1, 1), [(1, 0), (2, 1)]),
]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("strides", "dilations", "padding"), GEOMETRY)
@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("depth", [4, 2, 1])
def test_conv_2d(
    depth: int, computed: bool, strides: Any, dilations: Any, padding: Any, layout: str, tmp_path: Path
) -> None:
    x, filters = random(2, 9, 8, 4), random(3, 2, depth, 8, seed=1)
    result = run_one(
        "Conv2D",
        in_layout(x, layout),
        filters if computed else Fixed(filters),
        path=tmp_path,
        opened={0: [0, 2] if layout == "NHWC" else [0]},
        **attributes(layout, strides, dilations, padding),
    )
    expected = in_layout(convolved(x, filters, strides, dilations, padding), layout)
    np.testing.assert_array_equal(result.value, expected)
    assert ("DEPTHWISE_CONV_2D" if depth == 1 else "CONV_2D") in result.operators


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("strides", "dilations", "padding"), GEOMETRY)
def test_depthwise(strides: Any, dilations: Any, padding: Any, layout: str, tmp_path: Path) -> None:
    x, filters = random(1, 9, 8, 3), random(3, 2, 3, 2, seed=1)
    result = run_one(
        "DepthwiseConv2dNative",
        in_layout(x, layout),
        Fixed(filters),
        path=tmp_path,
        **attributes(layout, strides, dilations, padding),
    )
    expected = convolved(x, filters.reshape(3, 2, 1, 6), strides, dilations, padding)
    np.testing.assert_array_equal(result.value, in_layout(expected, layout))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int32])
def test_other_types(dtype: Any, tmp_path: Path) -> None:
    x, filters = random(1, 5, 5, 2).astype(dtype), random(2, 2, 2, 3, seed=1).astype(dtype)
    result = run_one("Conv2D", x, Fixed(filters), path=tmp_path, **attributes("NHWC", (1, 1), (1, 1), "VALID"))
    assert result.value.dtype == dtype
    expected = convolved(x.astype(np.float32), filters.astype(np.float32), (1, 1), (1, 1), "VALID")
    np.testing.assert_array_equal(result.value.astype(np.float32), expected)


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_channels_that_are_open_are_asked_for(op: str, tmp_path: Path) -> None:
    options = attributes("NHWC", (1, 1), (1, 1), "VALID")
    with pytest.raises(ConvertError, match="the number of channels of its input is open; give the shape"):
        run_one(op, random(1, 5, 5, 2), Fixed(random(2, 2, 2, 3)), path=tmp_path, opened={0: [0, 3]}, **options)


def transposed(x: Array, filters: Array, shape: Sequence[int], strides: Any, dilations: Any, padding: Any) -> Array:
    """The gradient of a convolution by its input: every element of ``x`` adds its multiple of the filter.

    ``filters``: [*window, outputs, channels].
    """
    window = filters.shape[:-2]
    wide = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    rules = padding if isinstance(padding, list) else [padding] * len(window)
    around = [pads(r, s, w, t) for r, s, w, t in zip(rules, shape[1:-1], wide, strides, strict=True)]
    made = np.zeros((shape[0], *[s + b + a for s, (b, a) in zip(shape[1:-1], around, strict=True)], shape[-1]))
    for tap in itertools.product(*map(range, window)):
        part = [
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilations, x.shape[1:-1], strides, strict=True)
        ]
        made[(slice(None), *part)] += x @ filters[tap].T
    box = [slice(b, b + s) for s, (b, _) in zip(shape[1:-1], around, strict=True)]
    return made[(slice(None), *box)].astype(np.float32)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("size", "strides", "dilations", "padding"),
    [
        ((8, 6), (2, 2), (1, 1), "SAME"),
        ((9, 7), (2, 2), (1, 1), "VALID"),
        ((6, 5), (1, 1), (2, 2), "VALID"),
        ((7, 6), (2, 2), (1, 1), [(1, 1), (1, 0)]),
    ],
)
@pytest.mark.parametrize("computed", [False, True])
def test_conv_2d_backprop_input(
    size: Any, strides: Any, dilations: Any, padding: Any, layout: str, computed: bool, tmp_path: Path
) -> None:
    filters, shape = random(3, 3, 2, 4, seed=1), (2, *size, 2)
    forward = convolved(np.zeros(shape), filters.transpose(0, 1, 2, 3), strides, dilations, padding)
    x = random(*forward.shape, seed=2)
    sizes = np.array([2, 2, *size] if layout == "NCHW" else shape, np.int32)
    result = run_one(
        "Conv2DBackpropInput",
        sizes if computed else Fixed(sizes),
        Fixed(filters),
        in_layout(x, layout),
        path=tmp_path,
        **attributes(layout, strides, dilations, padding),
    )
    expected = transposed(x, filters, shape, strides, dilations, padding)
    np.testing.assert_array_equal(result.value, in_layout(expected, layout))


def test_sizes_of_space_alone(tmp_path: Path) -> None:
    filters, x = random(2, 2, 3, 1), random(2, 3, 3, 1)
    result = run_one(
        "Conv2DBackpropInput",
        Fixed([6, 6]),
        Fixed(filters),
        x,
        path=tmp_path,
        opened={2: [0]},
        **attributes("NHWC", (2, 2), (1, 1), "SAME"),
    )
    np.testing.assert_array_equal(result.value, transposed(x, filters, (2, 6, 6, 3), (2, 2), (1, 1), "SAME"))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_depthwise_backprop_input(strides: Any, padding: str, tmp_path: Path) -> None:
    filters, shape = random(3, 2, 3, 2, seed=1), (1, 7, 6, 3)
    forward = convolved(np.zeros(shape), filters.reshape(3, 2, 1, 6), strides, (1, 1), padding)
    x = random(*forward.shape, seed=2)
    result = run_one(
        "DepthwiseConv2dNativeBackpropInput",
        Fixed(shape),
        Fixed(filters),
        x,
        path=tmp_path,
        **attributes("NHWC", strides, (1, 1), padding),
    )
    parts = [
        transposed(x[..., 2 * c : 2 * c + 2], filters[:, :, c : c + 1], (1, 7, 6, 1), strides, (1, 1), padding)
        for c in range(3)
    ]
    np.testing.assert_array_equal(result.value, np.concatenate(parts, -1))


@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize(
    ("strides", "dilations", "padding"),
    [((1, 1, 1), (1, 1, 1), "SAME"), ((2, 1, 2), (1, 1, 1), "VALID"), ((1, 1, 1), (1, 2, 1), "SAME")],
)
def test_conv_3d(strides: Any, dilations: Any, padding: Any, layout: str, tmp_path: Path) -> None:
    x, filters = random(1, 5, 6, 5, 2), random(2, 3, 2, 2, 3, seed=1)
    options = attributes(layout, strides, dilations, padding)
    result = run_one("Conv3D", in_layout(x, layout), Fixed(filters), path=tmp_path, **options)
    expected = convolved(x, filters, strides, dilations, padding)
    np.testing.assert_array_equal(result.value, in_layout(expected, layout))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv_3d_backprop_input(padding: str, tmp_path: Path) -> None:
    filters, shape, strides = random(2, 3, 2, 2, 3, seed=1), (1, 4, 7, 6, 2), (2, 1, 2)
    forward = convolved(np.zeros(shape), filters, strides, (1, 1, 1), padding)
    x = random(*forward.shape, seed=2)
    result = run_one(
        "Conv3DBackpropInputV2",
        Fixed(shape),
        Fixed(filters),
        x,
        path=tmp_path,
        **attributes("NDHWC", strides, (1, 1, 1), padding),
    )
    np.testing.assert_array_equal(result.value, transposed(x, filters, shape, strides, (1, 1, 1), padding))


def test_what_grappler_fuses(tmp_path: Path) -> None:
    x, filters, bias = random(1, 5, 5, 2), random(3, 3, 2, 4, seed=1), random(4, seed=2)
    options = attributes("NHWC", (1, 1), (1, 1), "SAME")
    expected = convolved(x, filters, (1, 1), (1, 1), "SAME")
    result = run_one(
        "_FusedConv2D",
        x,
        Fixed(filters),
        Fixed(bias),
        path=tmp_path,
        fused_ops=["BiasAdd", "Relu"],
        num_args=1,
        **options,
    )
    np.testing.assert_array_equal(result.value, np.maximum(expected + bias, 0))
    assert result.operators == ["CONV_2D"]
    scale, offset, mean, variance = (np.abs(random(4, seed=n)) + 1 for n in range(4))
    result = run_one(
        "_FusedConv2D",
        x,
        Fixed(filters),
        *map(Fixed, (scale, offset, mean, variance)),
        path=tmp_path,
        fused_ops=["FusedBatchNorm"],
        epsilon=0.5,
        num_args=4,
        **options,
    )
    normal = (expected - mean) / np.sqrt(variance + 0.5) * scale + offset
    np.testing.assert_allclose(result.value, normal, rtol=1e-5, atol=1e-4)
    volume = random(1, 3, 4, 4, 1)
    kernel = random(2, 2, 2, 1, 4, seed=1)
    result = run_one(
        "_FusedConv3D",
        volume,
        Fixed(kernel),
        Fixed(bias),
        path=tmp_path,
        fused_ops=["BiasAdd"],
        **attributes("NDHWC", (1, 1, 1), (1, 1, 1), "VALID"),
    )
    np.testing.assert_array_equal(result.value, convolved(volume, kernel, (1, 1, 1), (1, 1, 1), "VALID") + bias)
    y = random(2, 3)
    result = run_one("_FusedMatMul", y, Fixed(random(3, 4)), Fixed(bias), path=tmp_path, fused_ops=["BiasAdd", "Relu6"])
    np.testing.assert_array_equal(result.value, np.clip(y @ random(3, 4) + bias, 0, 6))
    with pytest.raises(ConvertError, match="Magic is fused to it"):
        run_one("_FusedConv2D", x, Fixed(filters), path=tmp_path, fused_ops=["Magic"], **options)


def test_batch_normalization_with_an_activation(tmp_path: Path) -> None:
    x, side = random(1, 2, 2, 3), random(1, 2, 2, 3, seed=1)
    scale, offset, mean, variance = (np.abs(random(3, seed=n)) + 1 for n in range(4))
    result = run_one(
        "_FusedBatchNormEx",
        x,
        *map(Fixed, (scale, offset, mean, variance)),
        side,
        path=tmp_path,
        epsilon=0.5,
        num_side_inputs=1,
        activation_mode="Relu",
        is_training=False,
        outputs=6,
    )
    normal = (x - mean) / np.sqrt(variance + 0.5) * scale + offset
    np.testing.assert_allclose(result.values[0], np.maximum(normal + side, 0), rtol=1e-5, atol=1e-5)


REDUCED: dict[str, tuple[float, Callable[..., Array]]] = {"Max": (-math.inf, np.max), "Avg": (math.nan, np.nanmean)}


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", REDUCED)
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 0), (1, 1)]])
def test_pool(padding: Any, kind: str, layout: str, tmp_path: Path) -> None:
    if kind == "Avg" and isinstance(padding, list):
        return  # TensorFlow has none
    x, fill, reduce = random(2, 7, 8, 3), *REDUCED[kind]
    options = attributes(layout, (2, 3), (1, 1), padding)
    del options["dilations"]
    result = run_one(f"{kind}Pool", in_layout(x, layout), path=tmp_path, ksize=whole((3, 2), layout), **options)
    expected = reduce(windows(x, (3, 2), (2, 3), (1, 1), padding, fill), (-2, -1))
    np.testing.assert_allclose(result.value, in_layout(expected, layout), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize("kind", REDUCED)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pool_3d(padding: str, kind: str, layout: str, tmp_path: Path) -> None:
    x, fill, reduce = random(2, 5, 7, 6, 2), *REDUCED[kind]
    options = attributes(layout, (2, 1, 2), (1, 1, 1), padding)
    del options["dilations"]
    result = run_one(
        f"{kind}Pool3D",
        in_layout(x, layout),
        path=tmp_path,
        opened={0: [0]},
        ksize=whole((2, 3, 2), layout),
        **options,
    )
    expected = reduce(windows(x, (2, 3, 2), (2, 1, 2), (1, 1, 1), padding, fill), (-3, -2, -1))
    np.testing.assert_allclose(result.value, in_layout(expected, layout), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint8, np.int32])
def test_pools_of_other_types(dtype: Any, tmp_path: Path) -> None:
    x = (random(1, 4, 4, 2) + 4).astype(dtype)
    result = run_one("MaxPool", x, path=tmp_path, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    assert result.value.dtype == dtype
    np.testing.assert_array_equal(result.value, windows(x, (2, 2), (2, 2), (1, 1), "VALID", 0).max((-2, -1)))


def test_a_pool_with_operands(tmp_path: Path) -> None:
    x = random(1, 4, 4, 2)
    result = run_one("MaxPoolV2", x, Fixed([1, 2, 2, 1]), Fixed([1, 1, 2, 1]), path=tmp_path, padding="VALID")
    np.testing.assert_array_equal(result.value, windows(x, (2, 2), (1, 2), (1, 1), "VALID", 0).max((-2, -1)))


def test_groups_of_channels(tmp_path: Path) -> None:
    x = random(1, 2, 3, 6)
    result = run_one("MaxPool", x, path=tmp_path, ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="VALID")
    np.testing.assert_array_equal(result.value, x.reshape(1, 2, 3, 2, 3).max(-1))


def test_windows_drawn_by_chance_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="drawn by chance"):
        run_one("FractionalMaxPool", random(1, 4, 4, 1), path=tmp_path, pooling_ratio=[1.0, 1.5, 1.5, 1.0])


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_a_convolution_with_mirrored_edges(mode: str, tmp_path: Path) -> None:
    x, filters, around = random(1, 5, 6, 2), random(3, 3, 2, 4, seed=1), [(0, 0), (1, 2), (1, 1), (0, 0)]
    options: dict[str, Any] = {"mode": mode, "strides": [1, 2, 2, 1], "padding": "VALID"}
    result = run_one("FusedPadConv2D", x, Fixed(around), Fixed(filters), path=tmp_path, **options)
    wide = np.pad(x, around, mode=mode.lower())  # type: ignore[call-overload]
    np.testing.assert_array_equal(result.value, convolved(wide, filters, (2, 2), (1, 1), "VALID"))
    result = run_one(
        "FusedResizeAndPadConv2D", x[:, :, ::2], Fixed([5, 3]), Fixed(around), Fixed(filters), path=tmp_path, **options
    )
    wide = np.pad(x[:, :, ::2], around, mode=mode.lower())  # type: ignore[call-overload]
    np.testing.assert_array_equal(result.value, convolved(wide, filters, (2, 2), (1, 1), "VALID"))


def test_the_first_version_has_a_value_for_its_shape(tmp_path: Path) -> None:
    filters, like = random(2, 3, 2, 2, 3, seed=1), np.zeros((1, 4, 7, 6, 2), np.float32)
    x = random(*convolved(like, filters, (1, 1, 1), (1, 1, 1), "SAME").shape, seed=2)
    result = run_one(
        "Conv3DBackpropInput", like, Fixed(filters), x, path=tmp_path, strides=[1, 1, 1, 1, 1], padding="SAME"
    )
    np.testing.assert_array_equal(result.value, transposed(x, filters, like.shape, (1, 1, 1), (1, 1, 1), "SAME"))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("with_batch", [False, True])
def test_where_the_maximum_is(with_batch: bool, padding: str, tmp_path: Path) -> None:
    x = random(2, 5, 6, 3)
    result = run_one(
        "MaxPoolWithArgmax",
        x,
        path=tmp_path,
        outputs=2,
        ksize=[1, 2, 3, 1],
        strides=[1, 2, 2, 1],
        padding=padding,
        include_batch_in_index=with_batch,
        Targmax=DataType.DT_INT32,
    )
    taken = windows(x, (2, 3), (2, 2), (1, 1), padding, -math.inf)
    np.testing.assert_array_equal(result.values[0], taken.max((-2, -1)))
    numbers = (
        np.arange(x.size).reshape(x.shape) if with_batch else np.tile(np.arange(90).reshape(1, 5, 6, 3), (2, 1, 1, 1))
    )
    places = windows(numbers, (2, 3), (2, 2), (1, 1), padding, -1)
    first = taken.reshape(*taken.shape[:4], 6).argmax(-1)
    expected = np.take_along_axis(places.reshape(*taken.shape[:4], 6), first[..., None], -1)[..., 0]
    np.testing.assert_array_equal(result.values[1], expected)
    assert result.values[1].dtype == np.int32
