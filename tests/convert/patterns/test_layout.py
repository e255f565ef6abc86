"""Nets with channels first, as ONNX and PyTorch have them: only their inputs and outputs are transposed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gossamer.convert.blocks.shapes import channels_first, channels_last, transpose
from gossamer.convert.graph import Graph, Value, unknown
from gossamer.convert.patterns.cut import Network
from gossamer.schema.enums import Padding
from tests.convert.patterns.running import graph_of, rewritten

RNG = np.random.default_rng(11)
BATCH = unknown(0)
Make = Callable[[Graph, Value], Value]


def array(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def conv(g: Graph, x: Value, outputs: int, size: int = 3, stride: int = 1) -> Value:
    """Channels first on both sides."""
    weights = array(outputs, x.size(1), size, size).transpose(0, 2, 3, 1)
    y = g.add(
        "CONV_2D", channels_last(g, x), weights, array(outputs), stride_h=stride, stride_w=stride, padding=Padding.SAME
    )
    return channels_first(g, y)


def pool(g: Graph, x: Value) -> Value:
    y = g.add("MAX_POOL_2D", channels_last(g, x), filter_height=2, filter_width=2, stride_h=2, stride_w=2)
    return channels_first(g, y)


def resized(g: Graph, x: Value) -> Value:
    sizes = [x.size(2) * 2, x.size(3) * 2]
    return channels_first(g, g.add("RESIZE_NEAREST_NEIGHBOR", channels_last(g, x), sizes))


def normalized(g: Graph, x: Value) -> Value:
    shape = (x.size(1), 1, 1)
    return g.add("ADD", g.add("MUL", x, array(*shape)), array(*shape))


def residual(g: Graph, x: Value) -> Value:
    for _ in range(2):
        y = g.add("RELU", normalized(g, conv(g, x, 4)))
        x = g.add("RELU", g.add("ADD", x, normalized(g, conv(g, y, 4))))
    return x


def dense(g: Graph, x: Value) -> Value:
    x = conv(g, x, 4)
    for _ in range(3):
        y = g.add("RELU", normalized(g, x))
        x = g.add("CONCATENATION", x, conv(g, y, 3), axis=1)
    return conv(g, g.add("TANH", x), 4)


def u_net(g: Graph, x: Value) -> Value:
    top = g.add("RELU", conv(g, x, 4))
    low = g.add("RELU", conv(g, pool(g, top), 6))
    return conv(g, g.add("CONCATENATION", top, resized(g, low), axis=1), 3)


def excited(g: Graph, x: Value) -> Value:
    x = conv(g, x, 8)
    s = g.add("MEAN", x, [2, 3], keep_dims=True)
    s = g.add("RELU", conv(g, s, 2, 1))
    s = g.add("LOGISTIC", conv(g, s, 8, 1))
    return conv(g, g.add("MUL", x, s), 4)


def excited_rows(g: Graph, x: Value) -> Value:
    x = conv(g, x, 8)
    s = g.add("MEAN", x, [2, 3])
    s = g.add("LOGISTIC", g.add("FULLY_CONNECTED", s, array(8, 8)))
    return conv(g, g.add("MUL", x, g.add("RESHAPE", s, [-1, 8, 1, 1])), 4)


def sliced(g: Graph, x: Value) -> Value:
    x = conv(g, x, 6)
    x = g.add("PAD", x, np.array([(0, 0), (0, 2), (1, 0), (0, 1)], np.int32))
    x = g.add("STRIDED_SLICE", x, [0, 1, 0, 0], [0, 7, 9, 8], [1, 1, 2, 1], begin_mask=1, end_mask=1)
    a, b = g.add_many("SPLIT", [np.array(1, np.int32), x], 2, num_splits=2)
    x = g.add("MAXIMUM", g.add("SLICE", a, [0, 0, 0, 0], [-1, 3, 4, 8]), g.add("SLICE", b, [0, 0, 0, 0], [-1, 3, 4, 8]))
    return conv(g, g.add("PRELU", x, array(3, 1, 1)), 4)


NETS: dict[str, Make] = {
    "residual": residual,
    "dense": dense,
    "u-net": u_net,
    "squeeze and excite": excited,
    "squeeze and excite by rows": excited_rows,
    "sliced": sliced,
}


@pytest.mark.parametrize("make", NETS.values(), ids=NETS)
def test_only_inputs_and_outputs_are_transposed(make: Make) -> None:
    ops = rewritten(graph_of((BATCH, 4, 8, 8), make=make), rtol=1e-4, atol=1e-4)
    assert ops.count("TRANSPOSE") == 2
    assert (ops[0], ops[-1]) == ("TRANSPOSE", "TRANSPOSE")


@pytest.mark.parametrize("make", NETS.values(), ids=NETS)
def test_nothing_is_transposed_with_channels_last_outside(make: Make) -> None:
    graph = graph_of((BATCH, 8, 8, 4), make=lambda g, x: channels_last(g, make(g, channels_first(g, x))))
    assert "TRANSPOSE" not in rewritten(graph, rtol=1e-4, atol=1e-4)


def test_a_picture_that_is_flattened_for_weights() -> None:
    """The weights are permuted."""

    def make(g: Graph, x: Value) -> Value:
        x = g.add("RELU", conv(g, x, 5))
        return g.add("FULLY_CONNECTED", g.add("RESHAPE", x, [-1, 5 * 6 * 6]), array(3, 5 * 6 * 6))

    ops = rewritten(graph_of((BATCH, 4, 6, 6), make=make), rtol=1e-4, atol=1e-4)
    assert ops == ["TRANSPOSE", "CONV_2D", "RESHAPE", "FULLY_CONNECTED"]


def test_what_an_operator_takes_in_comes_before_the_transpose() -> None:
    graph = graph_of((BATCH, 4, 6, 6), make=lambda g, x: g.add("RELU", normalized(g, conv(g, x, 5))))
    assert rewritten(graph, rtol=1e-4, atol=1e-4) == ["TRANSPOSE", "CONV_2D", "TRANSPOSE"]


def test_a_picture_that_is_flattened_for_others() -> None:
    def make(g: Graph, x: Value) -> Value:
        x = g.add("RESHAPE", conv(g, x, 5), [-1, 5 * 6 * 6])
        return g.add("ADD", g.add("FULLY_CONNECTED", x, array(1, 5 * 6 * 6)), x)

    ops = rewritten(graph_of((BATCH, 4, 6, 6), make=make), rtol=1e-4, atol=1e-4)
    assert ops.count("TRANSPOSE") == 2


def test_pieces_of_a_picture_as_a_sequence() -> None:
    """[N, C, H, W] as [N, C, H W], and that as [N, H W, C]."""

    def make(g: Graph, x: Value) -> Value:
        y = g.add("RESHAPE", conv(g, x, 5), [-1, 5, 36])
        return g.add("SOFTMAX", transpose(g, y, (0, 2, 1)), beta=1.0)

    ops = rewritten(graph_of((BATCH, 4, 6, 6), make=make), rtol=1e-4, atol=1e-4)
    assert ops == ["TRANSPOSE", "CONV_2D", "RESHAPE", "SOFTMAX"]


def test_shuffled_channels_move_once() -> None:
    def make(g: Graph, x: Value) -> Value:
        y = g.add("RESHAPE", conv(g, x, 6), [-1, 2, 3, 6, 6])
        y = g.add("RESHAPE", transpose(g, y, (0, 2, 1, 3, 4)), [-1, 6, 6, 6])
        return conv(g, y, 4)

    graph = graph_of((BATCH, 6, 6, 4), make=lambda g, x: channels_last(g, make(g, channels_first(g, x))))
    assert rewritten(graph, rtol=1e-4, atol=1e-4).count("TRANSPOSE") == 1


def test_an_axis_that_must_stay_the_last() -> None:
    graph = graph_of((BATCH, 4, 6, 6), make=lambda g, x: g.add("SOFTMAX", conv(g, x, 4), beta=1.0))
    ops = rewritten(graph, rtol=1e-4, atol=1e-4)
    assert ops == ["TRANSPOSE", "CONV_2D", "TRANSPOSE", "SOFTMAX"]


def test_open_sizes() -> None:
    height, width = unknown(2, large=True), unknown(3, large=True)
    graph = graph_of((BATCH, 4, height, width), make=residual)
    assert rewritten(graph, {height: 6, width: 10}, rtol=1e-4, atol=1e-4).count("TRANSPOSE") == 2


def test_sizes_that_are_asked_for() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        y = g.add("RELU", conv(g, x, 4))
        return [g.add("SHAPE", y), channels_last(g, y)]

    height = unknown(2, large=True)
    ops = rewritten(graph_of((BATCH, 4, height, 8), make=make), {height: 6}, rtol=1e-4, atol=1e-4)
    assert ops.count("TRANSPOSE") == 1


def test_volumes_and_rows() -> None:
    def volume(g: Graph, x: Value) -> Value:
        y = g.add("CONV_3D", channels_last(g, x), array(1, 1, 1, 4, 4), array(4), stride_d=1, stride_h=1, stride_w=1)
        return g.add("ADD", channels_first(g, y), x)

    assert rewritten(graph_of((2, 4, 3, 3, 3), make=volume), rtol=1e-4, atol=1e-4).count("TRANSPOSE") == 2

    def row(g: Graph, x: Value) -> Value:
        for _ in range(2):
            y = transpose(g, x, (0, 2, 1))
            y = g.add("RESHAPE", y, [-1, 1, 9, 4])
            y = g.add("CONV_2D", y, array(4, 1, 3, 4), array(4), stride_h=1, stride_w=1, padding=Padding.SAME)
            x = g.add("RELU", transpose(g, g.add("RESHAPE", y, [-1, 9, 4]), (0, 2, 1)))
        return x

    assert rewritten(graph_of((BATCH, 4, 9), make=row), rtol=1e-4, atol=1e-4).count("TRANSPOSE") == 2


def test_regions_that_meet_where_axes_are_dropped() -> None:
    def make(g: Graph, x: Value) -> list[Value]:
        y = conv(g, g.add("ABS", conv(g, x, 4)), 4)
        rows = transpose(g, g.add("ABS", transpose(g, g.add("SUM", y, [2, 3]), (1, 0))), (1, 0))
        return [y, g.add("ADD", rows, g.add("SUM", y, [2, 3]))]

    ops = rewritten(graph_of((BATCH, 4, 6, 6), make=make), rtol=1e-4, atol=1e-4)
    assert ops.count("TRANSPOSE") == 2


def test_a_transpose_that_nothing_undoes_stays() -> None:
    graph = graph_of((3, 4), (4, 3), make=lambda g, x, y: g.add("ADD", transpose(g, x, (1, 0)), y))
    assert rewritten(graph) == ["TRANSPOSE", "ADD"]


def test_cuts() -> None:
    network = Network()
    a, b = network.node(), network.node()
    network.edge(network.SOURCE, a, 3)
    network.edge(a, b, 2)
    network.edge(b, network.SINK, 5)
    network.edge(network.SOURCE, b, 1)
    network.edge(a, network.SINK, 4)
    paid, with_source = network.cut()
    assert paid == 4
    assert with_source == [True, False, False, False]
