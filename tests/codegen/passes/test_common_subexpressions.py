from __future__ import annotations

from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.passes import common_subexpressions
from gossamer.schema import TensorType
from gossamer.views import Buffer, View

F32, I8 = TensorType.FLOAT32, TensorType.INT8


def quantized(graph: KernelGraph, x: View) -> View:
    return graph.add("quantize", [x], (*x.shape[:-1], x.shape[-1] + 16), I8, {})


def read(graph: KernelGraph, *views: View) -> list[str]:
    """The kinds of what is left, after somebody has read all of these."""
    for view in views:
        graph.add("copy", [view], view.shape, view.type)
    common_subexpressions.run(graph)
    return [kernel.kind for kernel in graph.kernels]


def test_equal_kernels_are_one() -> None:
    graph, x = KernelGraph(), Buffer((4, 32), F32).view()
    first, second, other = quantized(graph, x), quantized(graph, x), quantized(graph, x.slice(0, 0, 2))
    assert read(graph, first, second, other) == ["quantize", "quantize", "copy", "copy", "copy"]
    assert [kernel.operands[0].buffer for kernel in graph.kernels[2:]] == [first.buffer, first.buffer, other.buffer]


def test_settings_count() -> None:
    graph, x = KernelGraph(), Buffer((1, 2, 16), F32).view()
    headers = [graph.add("dynamic_parameters", [x], (1, 16), I8, {"rule": rule}) for rule in ("qd8", "builtin", "qd8")]
    assert read(graph, *headers) == ["dynamic_parameters", "dynamic_parameters", "copy", "copy", "copy"]


def test_types_count() -> None:
    graph, x = KernelGraph(), Buffer((4, 32), F32).view()
    rows = [graph.add("quantize", [x], (4, 48), type, {}) for type in (I8, TensorType.UINT8)]
    assert read(graph, *rows) == ["quantize", "quantize", "copy", "copy"]


def test_a_variable_may_change_between_them() -> None:
    graph, x = KernelGraph(), Buffer((4, 32), F32, 3).view()
    graph.inputs[3] = x.buffer
    first = quantized(graph, x)
    graph.copy(Buffer((4, 32), F32).view(), x)
    second = quantized(graph, x)
    assert read(graph, first, second) == ["quantize", "copy", "quantize", "copy", "copy"]


def test_what_is_written_in_pieces_may_change() -> None:
    graph, x = KernelGraph(), Buffer((4, 32), F32).view()
    for start in (0, 2):
        graph.copy(Buffer((2, 32), F32).view(), x.slice(0, start, 2))
    both = [quantized(graph, x), quantized(graph, x)]
    assert read(graph, *both) == ["copy", "copy", "quantize", "quantize", "copy", "copy"]
