"""Operands that are written over: TFLite's calibrator sees the output there."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.graph import Graph
from gossamer.model.reader import read_model
from gossamer.quantize import quantize
from gossamer.quantize.parameters import asymmetric
from gossamer.schema import TensorType
from tests.quantize.test_quantize import stored

F32, I8 = TensorType.FLOAT32, TensorType.INT8


@pytest.mark.parametrize("is_read_again", [False, True])
@pytest.mark.parametrize("ranges", ["min_max", "percentile"])
def test_an_operand_that_is_written_over(is_read_again: bool, ranges: str) -> None:
    graph = Graph()
    x = graph.input("x", F32, (1, 8))
    inner = graph.add("RELU", x, name="inner")
    y = graph.add("ADD", inner, np.float32(-3))
    y = graph.add("MUL", y, inner) if is_read_again else graph.add("ABS", y)
    model = read_model(quantize(stored(graph, y), "int8", [{"x": np.ones((1, 8), np.float32)}], ranges=ranges))
    (tensor,) = [tensor for tensor in model.subgraphs[0].tensors if tensor.name == "inner"]
    is_seen = ranges == "min_max" and not is_read_again
    assert tensor.quantization is not None
    assert tensor.quantization.scale == asymmetric(-2.0 if is_seen else 0.0, 1.0, I8).scales
