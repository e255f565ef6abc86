from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod

import pytest

from gossamer.codegen.build import PASSES, PLAIN, Passes
from gossamer.codegen.networks import (
    RELU,
    RELU6,
    SILU,
    Network,
    efficientnet,
    mobilenet_v1,
    mobilenet_v2,
    mobilenet_v3,
    resnet,
    rounded,
    transformer,
)
from gossamer.targets import all_targets


def made(fill: Callable[[Network], None]) -> Network:
    net = Network()
    fill(net)
    return net


# Convolutions and fully connected layers, depthwise convolutions, and millions of multiplications: the papers' numbers,
# and for those that count batch normalisations or other resolutions, what their architectures come to.
@pytest.mark.parametrize(
    ("fill", "contractions", "depthwise", "millions"),
    [
        (partial(mobilenet_v1, size=224, width=1.0), 15, 13, 569),
        (partial(mobilenet_v1, size=192, width=0.5), 15, 13, 110),
        (partial(mobilenet_v2, size=224, width=1.0), 36, 17, 301),
        (partial(mobilenet_v2, size=224, width=1.4), 36, 17, 582),
        (partial(mobilenet_v3, size=224, width=1.0, large=False), 43, 11, 57),
        (partial(mobilenet_v3, size=224, width=1.0, large=True), 49, 15, 217),
        (partial(efficientnet, size=224, width=1.0), 66, 16, 386),
        (partial(efficientnet, size=224, width=1.0, lite=True), 34, 16, 385),
        (partial(resnet, size=224, blocks=(3, 4, 6, 3), bottleneck=True), 54, 0, 3858),
        (partial(resnet, size=224, blocks=(2, 2, 2, 2), bottleneck=False), 21, 0, 1814),
    ],
)
def test_networks_are_those_of_the_papers(
    fill: Callable[[Network], None], contractions: int, depthwise: int, millions: int
) -> None:
    graph = made(fill).graph
    kinds = Counter(kernel.kind for kernel in graph.kernels)
    assert (kinds["contract"], kinds["depthwise"]) == (contractions, depthwise)
    products = 0
    for kernel in graph.kernels:
        if kernel.kind in ("contract", "depthwise"):
            weights = kernel.operands[1].shape
            products += prod(kernel.y.shape) * prod(weights[1:] if kernel.kind == "contract" else weights[:2])
    assert round(products / 1e6) == millions


def test_a_transformer_has_two_blocks_of_attention() -> None:
    fill = partial(transformer, length=128, width=256, heads=4, activation=("gelu", 0), shifts=True)
    kinds = Counter(kernel.kind for kernel in made(fill).graph.kernels)
    assert (kinds["contract"], kinds["matmul"], kinds["softmax"], kinds["reduce"]) == (12, 4, 2, 10)


@pytest.mark.parametrize("passes", [PASSES, PLAIN])
def test_a_fused_activation_is_part_of_its_operator(passes: Passes) -> None:
    net = Network()
    x = net.convolution(net.input(1, 8, 8, 16), 16, activation=RELU6)
    net.output(net.activated(net.map(("add", 0, 1), x, net.input(1, 8, 8, 16)), RELU))
    names = {name.rsplit("_", 3)[0] for name in net.specs(all_targets()["avx2"], passes) if "_gemm_" in name}
    assert names == {"f32_gemm_relu6" if passes is PLAIN else "f32_gemm_relu6_add_relu"}


def test_an_activation_of_its_own_is_not() -> None:
    net = Network()
    net.output(net.convolution(net.input(1, 8, 8, 16), 16, activation=SILU))
    origins = [kernel.origin for kernel in net.graph.kernels]
    assert len(set(origins)) == 3


def test_channels_are_rounded_as_in_the_papers() -> None:
    assert [rounded(32 * width) for width in (0.25, 0.35, 0.5, 0.75, 1.0, 1.4)] == [8, 16, 16, 24, 32, 48]
