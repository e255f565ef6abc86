"""Graphs before and after their rewriting, run on the same random inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer import Interpreter
from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Signature, Size, Value
from gossamer.convert.patterns import rewrite
from gossamer.dtypes import numpy_dtype
from gossamer.model.writer import write_model
from gossamer.schema.enums import TensorType

F32 = TensorType.FLOAT32


def graph_of(
    *shapes: Sequence[int | Size], make: Callable[..., Value | Sequence[Value]], type: TensorType = F32
) -> Graph:
    """A graph whose outputs ``make`` makes of the graph and its inputs."""
    graph = Graph()
    inputs = [graph.input(f"x{n}", type, shape) for n, shape in enumerate(shapes)]
    made = make(graph, *inputs)
    graph.outputs = [made] if isinstance(made, Value) else list(made)
    return graph


def ops_of(graph: Graph) -> list[str]:
    """The operators in the order of execution."""
    return [node.op for node in graph.ordered()]


def run(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """What the exported graph gives for these inputs."""
    signature = Signature(
        "serving_default",
        graph,
        {f"x{n}": value for n, value in enumerate(graph.inputs)},
        {f"y{n}": value for n, value in enumerate(graph.outputs)},
    )
    interpreter = Interpreter(model_content=write_model(to_model([signature])))
    places = [detail["index"] for detail in interpreter.get_input_details()]
    for place, value in zip(places, inputs, strict=True):
        interpreter.resize_tensor_input(place, value.shape)
    interpreter.allocate_tensors()
    for place, value in zip(places, inputs, strict=True):
        interpreter.set_tensor(place, value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def random_inputs(graph: Graph, sizes: Mapping[Size, int], low: float = -3, high: float = 3) -> list[Any]:
    """Values for the inputs of a graph; ``sizes`` says how large open ones are, else 2."""
    rng = np.random.default_rng(7)
    found = []
    for value in graph.inputs:
        shape = [size if isinstance(size, int) else sizes.get(size, 2) for size in map(value.size, range(value.rank))]
        array = rng.uniform(low, high, math.prod(shape)).reshape(shape)
        found.append((array > 0) if value.type == TensorType.BOOL else array.astype(numpy_dtype(value.type)))
    return found


def rewritten(
    graph: Graph,
    sizes: Mapping[Size, int] | None = None,
    *,
    low: float = -3,
    high: float = 3,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> list[str]:
    """The operators of a graph after its rewriting, which must not have changed what it computes.

    Floats may differ by rounding, all else not at all.
    """
    inputs = random_inputs(graph, sizes or {}, low, high)
    before = run(graph, inputs)
    rewrite(graph)
    after = run(graph, inputs)
    for one, other in zip(before, after, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        if one.dtype.kind == "f":
            np.testing.assert_allclose(other, one, rtol, atol)
        else:
            np.testing.assert_array_equal(other, one)
    return ops_of(graph)
