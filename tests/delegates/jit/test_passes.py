"""What the passes make of the shapes that they are there for: the kernels that are left compute the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    MulOptions,
    Padding,
    PadOptions,
    ReducerOptions,
    Table,
    TensorType,
)
from tests.delegates.jit.running import TARGETS, check, machine_code
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

RELU6 = ActivationFunctionType.RELU6
RELU = ActivationFunctionType.RELU
NONE = ActivationFunctionType.NONE


class Layers(ModelMaker):
    """Layers on random weights; every method returns the tensor that the layer writes."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(0)

    def shape(self, tensor: int) -> tuple[int, ...]:
        return tuple(int(size) for size in self.graphs[-1].tensors[tensor].shape)

    def numbers(self, *shape: int) -> int:
        return self.constant(self.rng.standard_normal(shape) / 4, np.float32, TensorType.FLOAT32)

    def made(self, name: str, inputs: Sequence[int], shape: Sequence[int], options: Table | None = None) -> int:
        y = self.tensor(shape)
        self.op(name, inputs, [y], options)
        return y

    def convolution(
        self,
        x: int,
        channels: int,
        kernel: int = 1,
        stride: int = 1,
        activation: ActivationFunctionType = NONE,
        padding: Padding = Padding.SAME,
    ) -> int:
        batch, height, width, depth = self.shape(x)
        less = kernel - 1 if padding == Padding.VALID else 0
        size = (batch, -(-(height - less) // stride), -(-(width - less) // stride), channels)
        options = Conv2DOptions(padding=padding, stride_h=stride, stride_w=stride, fused_activation_function=activation)
        return self.made(
            "CONV_2D", [x, self.numbers(channels, kernel, kernel, depth), self.numbers(channels)], size, options
        )

    def depthwise(self, x: int, kernel: int = 3, stride: int = 1) -> int:
        batch, height, width, channels = self.shape(x)
        options = DepthwiseConv2DOptions(
            padding=Padding.SAME,
            stride_h=stride,
            stride_w=stride,
            depth_multiplier=1,
            fused_activation_function=RELU6,
        )
        size = (batch, -(-height // stride), -(-width // stride), channels)
        return self.made(
            "DEPTHWISE_CONV_2D", [x, self.numbers(1, kernel, kernel, channels), self.numbers(channels)], size, options
        )

    def add(self, x: int, y: int, activation: ActivationFunctionType = NONE) -> int:
        shape = np.broadcast_shapes(self.shape(x), self.shape(y))
        return self.made("ADD", [x, y], shape, AddOptions(fused_activation_function=activation))

    def multiply(self, x: int, y: int) -> int:
        return self.made("MUL", [x, y], np.broadcast_shapes(self.shape(x), self.shape(y)), MulOptions())

    def activation(self, name: str, x: int) -> int:
        return self.made(name, [x], self.shape(x))

    def mean(self, x: int) -> int:
        batch, _, _, channels = self.shape(x)
        axes = self.constant([1, 2], np.int32, TensorType.INT32)
        return self.made("MEAN", [x, axes], (batch, 1, 1, channels), ReducerOptions(keep_dims=True))

    def pad(self, x: int, *amounts: tuple[int, int]) -> int:
        constant = self.constant(amounts, np.int32, TensorType.INT32)
        shape = [b + size + a for (b, a), size in zip(amounts, self.shape(x), strict=True)]
        return self.made("PAD", [x, constant], shape, PadOptions())


def kinds(make: Layers, x: int, *outputs: int, within: float = 2e-6) -> dict[str, int]:
    """The kernels of the model by kind, once it has been seen to compute what the reference kernels compute."""
    make.io([x], outputs)
    value = np.random.default_rng(1).standard_normal(make.shape(x)).astype(np.float32)
    model = make.model()
    for target in TARGETS:
        check(model, {x: value}, within=within, target=target)
    _, kernel = machine_code(model)
    assert kernel.built is not None
    return dict(Counter(node.kind for node in kernel.built.graph.kernels))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [56, 61])
def test_an_inverted_residual_is_one_kernel(stride: int, size: int) -> None:
    make = Layers()
    x = make.tensor((1, size, size, 8))
    y = make.convolution(make.depthwise(make.convolution(x, 40, activation=RELU6), stride=stride), 8)
    assert kinds(make, x, make.add(y, x) if stride == 1 else y) == {"rows": 1}


def test_where_nothing_becomes_narrower_nothing_is_fused() -> None:
    make = Layers()
    x = make.tensor((1, 56, 56, 8))
    y = make.convolution(make.depthwise(make.convolution(x, 16, activation=RELU6)), 16)
    assert kinds(make, x, y) == {"contract": 2, "depthwise": 1}


def test_an_image_that_is_read_twice_is_not_fused_away() -> None:
    make = Layers()
    x = make.tensor((1, 16, 16, 8))
    wide = make.convolution(x, 24, activation=RELU6)
    y = make.convolution(make.depthwise(wide), 8)
    assert kinds(make, x, y, make.mean(wide)) == {"contract": 2, "depthwise": 1, "reduce": 1}


def test_a_stem_may_be_the_expansion() -> None:
    make = Layers()
    x = make.tensor((2, 65, 63, 3))
    stem = make.convolution(x, 16, kernel=3, stride=2, activation=RELU6)
    assert kinds(make, x, make.convolution(make.depthwise(stem), 8)) == {"copy": 1, "rows": 1}


def test_a_depthwise_result_is_kept_from_memory_if_it_is_large() -> None:
    make = Layers()
    x = make.tensor((1, 96, 96, 32))
    assert kinds(make, x, make.convolution(make.depthwise(x), 8)) == {"copy": 1, "rows": 1}
    make = Layers()
    x = make.tensor((1, 32, 32, 32))
    assert kinds(make, x, make.convolution(make.depthwise(x), 8)) == {"copy": 1, "depthwise": 1, "contract": 1}


def test_squeeze_and_excitation_scales_the_weights() -> None:
    make = Layers()
    x = make.tensor((1, 20, 20, 24))
    gate = make.activation("LOGISTIC", make.convolution(make.mean(x), 24))
    y = make.convolution(make.multiply(x, gate), 13)
    assert kinds(make, x, y) == {"reduce": 1, "contract": 2}
    # Where there are more weights than pixels, it is quicker to scale these.
    make = Layers()
    x = make.tensor((1, 2, 2, 24))
    gate = make.activation("LOGISTIC", make.convolution(make.mean(x), 24))
    y = make.convolution(make.multiply(x, gate), 13)
    assert kinds(make, x, y) == {"reduce": 1, "contract": 2, "map": 1}


@pytest.mark.parametrize("size", [7, pytest.param(10, marks=pytest.mark.slow), 14])
@pytest.mark.parametrize(("channels", "reductions"), [(96, 2), (640, 1)])
def test_an_image_is_reduced_in_bands_unless_threads_have_written_channels(
    size: int, channels: int, reductions: int
) -> None:
    make = Layers()
    x = make.tensor((1, size, size, 200))
    wide = make.depthwise(make.convolution(x, channels), kernel=5)
    gate = make.activation("LOGISTIC", make.mean(wide))
    y = make.convolution(make.multiply(wide, gate), 24)
    kinds(make, x, y)
    _, kernel = machine_code(make.model())
    assert kernel.built is not None
    assert sum(step.node.kind == "reduce" for step in kernel.built.steps) == reductions


def test_strides_are_handed_up_through_a_residual_block() -> None:
    make = Layers()
    x = make.tensor((1, 15, 14, 16))
    inner = make.convolution(make.convolution(x, 8, activation=RELU), 8, kernel=3, activation=RELU)
    y = make.add(make.convolution(inner, 16), x, RELU)
    main, shortcut = make.convolution(y, 8, stride=2), make.convolution(y, 32, stride=2)
    make.io([x], [main, shortcut])
    _, kernel = machine_code(make.model())
    assert kernel.built is not None
    shapes = [(node.kind, node.y.shape[1:3]) for node in kernel.built.graph.kernels]
    assert shapes == [("contract", (15, 14)), *[("contract", (8, 7))] * 4]
    kinds(make, x, main, shortcut)


@pytest.mark.parametrize("size", [7, 8, 13])
def test_winograd(size: int) -> None:
    make = Layers()
    x = make.tensor((2, size, size + 2, 32))
    y = make.convolution(x, 40, kernel=3)
    assert kinds(make, x, make.add(y, make.convolution(x, 40), RELU6), within=1e-5) == {
        "copy": 1,
        "contract": 1,
        "winograd": 1,
    }


@pytest.mark.parametrize("size", [14, 15])
def test_strassen(size: int) -> None:
    make = Layers()
    x = make.tensor((1, size, size, 256))
    y = make.convolution(x, 192)
    assert kinds(make, x, make.add(y, make.convolution(x, 192), RELU6), within=1e-5) == {"strassen": 2}


@pytest.mark.parametrize(("pixels", "kernel"), [(100, "x8_strassen_twice"), (98, "x8_strassen")])
def test_products_of_strassen_are_made_of_seven_if_they_are_large(pixels: int, kernel: str) -> None:
    make = Layers()
    x = make.tensor((1, 2, pixels // 2, 256))
    assert kinds(make, x, make.convolution(x, 320, activation=RELU), within=1e-5) == {"strassen": 1}
    _, made = machine_code(make.model())
    assert made.built is not None
    assert made.built.steps[0].kernel.split("__")[0] == kernel


def test_strassen_into_an_image_with_a_border() -> None:
    make = Layers()
    x = make.tensor((1, 14, 14, 256))
    wide = make.convolution(x, 160, activation=RELU)
    y = make.convolution(make.depthwise(wide), 160, kernel=3)
    assert kinds(make, x, y, within=1e-5) == {"strassen": 1, "depthwise": 1, "winograd": 1}


def test_strassen_needs_pixels_that_lie_evenly() -> None:
    make = Layers()
    x = make.tensor((1, 14, 14, 64))
    wide = make.convolution(x, 256, activation=RELU)
    y = make.convolution(wide, 160)
    make.io([x], [y, make.depthwise(wide)])
    _, kernel = machine_code(make.model())
    assert kernel.built is not None
    assert [step.kernel.split("__")[0] for step in kernel.built.steps if step.node.kind == "strassen"] == [
        "x8_contract_tiles"
    ]
    kinds(make, x, y)


def test_small_convolutions_stay_direct() -> None:
    make = Layers()
    x = make.tensor((1, 6, 8, 32))
    assert kinds(make, x, make.convolution(x, 40, kernel=3)) == {"copy": 1, "contract": 1}


def test_zeros_around_an_image_become_padding() -> None:
    make = Layers()
    x = make.tensor((1, 9, 10, 5))
    padded = make.pad(x, (0, 0), (2, 1), (0, 3), (0, 0))
    y = make.convolution(padded, 7, kernel=3, stride=2, padding=Padding.VALID)
    assert kinds(make, x, y) == {"copy": 1, "contract": 1}


def test_zeros_that_others_read_stay() -> None:
    make = Layers()
    x = make.tensor((1, 9, 10, 5))
    padded = make.pad(x, (0, 0), (1, 1), (1, 1), (0, 0))
    y = make.convolution(padded, 7, kernel=3, padding=Padding.VALID)
    assert kinds(make, x, y, make.mean(padded))["contract"] == 1


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["LOGISTIC"], {"contract": 1}),
        (["HARD_SWISH", "ABS", "NEG"], {"contract": 1}),
        (["TANH", "SQUARE"], {"contract": 1}),
    ],
)
def test_chains_of_maps_go_into_the_kernel_before_them(names: list[str], left: dict[str, int]) -> None:
    make = Layers()
    x = make.tensor((1, 5, 6, 7))
    y = make.convolution(x, 9)
    for name in names:
        y = make.activation(name, y)
    assert kinds(make, x, y) == left


def test_an_operand_by_channel_goes_along() -> None:
    make = Layers()
    x = make.tensor((1, 5, 6, 7))
    y = make.activation("RELU", make.multiply(make.convolution(x, 9), make.numbers(9)))
    assert kinds(make, x, y) == {"contract": 1}


def test_a_gate_of_its_own_result() -> None:
    make = Layers()
    x = make.tensor((1, 5, 6, 7))
    y = make.convolution(x, 9)
    assert kinds(make, x, make.multiply(y, make.activation("LOGISTIC", y))) == {"contract": 1}


def test_what_others_read_is_written() -> None:
    make = Layers()
    x = make.tensor((1, 5, 6, 7))
    y = make.convolution(x, 9)
    assert kinds(make, x, make.activation("ABS", y), make.activation("NEG", y)) == {"contract": 1, "map": 2}


def test_pixels_are_kept_apart_where_they_would_meet_in_the_cache() -> None:
    make = Layers()
    x = make.tensor((1, 12, 12, 16))
    wide = make.convolution(x, 256, activation=RELU6)
    y = make.convolution(make.depthwise(make.depthwise(wide)), 16)
    make.io([x], [y])
    _, kernel = machine_code(make.model())
    assert kernel.built is not None
    commands = [step.node for step in kernel.built.steps if step.node.kind == "depthwise"]
    assert len(commands) == 2
    assert kernel.built.plan.sizes["arena"] >= 12 * 12 * (1024 + 64)
    kinds(make, x, y)
