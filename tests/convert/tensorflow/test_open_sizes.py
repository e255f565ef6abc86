"""Sizes that only values decide: what the same values decide fits together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gossamer import Interpreter
from gossamer.convert import convert
from gossamer.convert.messages.tensorflow import GraphDef, NodeDef
from gossamer.convert.wire import write
from tests.convert.tensorflow.one_node import Array, DataType, Fixed, attribute, graph_of, of_type

BOXES = np.arange(20, dtype=np.float32).reshape(5, 4)
SCORES = np.array([0.1, 0.9, 0.3, 0.8, 0.2], np.float32)

Row = tuple[str, str, list[str], dict[str, Any]]


def run(rows: Sequence[Row], operands: Sequence[Any], path: Path, opened: Mapping[int, Sequence[int]]) -> Array:
    """The last of several nodes: their names, operators, inputs and attributes. Operands are called x0, x1, ..."""
    nodes = list(graph_of("NoOp", operands, opened, {}).node)[:-1]
    for name, op, inputs, attributes in rows:
        attr = {key: attribute(value) for key, value in attributes.items()}
        nodes.append(NodeDef(name=name, op=op, input=tuple(inputs), attr=attr))
    source = path / "nodes.pb"
    source.write_bytes(write(GraphDef(node=tuple(nodes))))
    runner = Interpreter(model_content=convert(source, output_arrays=[rows[-1][0]])).get_signature_runner()
    given = {f"x{n}": of_type(value) for n, value in enumerate(operands) if not isinstance(value, Fixed)}
    found: Array = runner(**given)[rows[-1][0]]
    return found


def test_two_values_by_the_same_mask(tmp_path: Path) -> None:
    """As tf.boolean_mask does it, each with its own operators."""
    rows: list[Row] = [("mask", "Greater", ["x1", "x2"], {})]
    for name, value in (("b", "x0"), ("s", "x1")):
        rows += [
            (f"{name}1", "Reshape", ["mask", "x3"], {}),
            (f"{name}2", "Where", [f"{name}1"], {}),
            (f"{name}3", "Squeeze", [f"{name}2"], {"squeeze_dims": [1]}),
            (name, "GatherV2", [value, f"{name}3", "x4"], {}),
        ]
    rows += [("column", "ExpandDims", ["s", "x5"], {}), ("both", "ConcatV2", ["b", "column", "x5"], {"N": 2})]
    operands = [BOXES, SCORES, Fixed(0.25), Fixed([-1]), Fixed(0), Fixed(1)]
    found = run(rows, operands, tmp_path, {0: [0], 1: [0]})
    kept = SCORES > 0.25
    np.testing.assert_array_equal(found, np.concatenate([BOXES[kept], SCORES[kept, None]], 1))


def test_as_many_as_a_number_says(tmp_path: Path) -> None:
    rows: list[Row] = [
        ("end", "Pack", ["x1"], {"N": 1, "axis": 0}),
        ("a", "StridedSlice", ["x0", "x2", "end", "x3"], {}),
        ("b", "StridedSlice", ["x4", "x2", "end", "x3"], {}),
        ("count", "Range", ["x5", "x1", "x6"], {}),
        ("numbers", "Cast", ["count"], {"DstT": DataType.DT_FLOAT, "SrcT": DataType.DT_INT32}),
        ("column", "ExpandDims", ["numbers", "x6"], {}),
        ("sum", "AddV2", ["a", "b"], {}),
        ("result", "AddV2", ["sum", "column"], {}),
    ]
    operands = [BOXES, np.int32(3), Fixed([0]), Fixed([1]), Fixed(BOXES * 2), Fixed(0), Fixed(1)]
    found = run(rows, operands, tmp_path, {})
    np.testing.assert_array_equal(found, BOXES[:3] * 3 + np.arange(3)[:, None])


def test_what_is_left_of_boxes(tmp_path: Path) -> None:
    """Boxes and scores by the indices of a suppression, put together."""
    rows: list[Row] = [
        ("chosen", "NonMaxSuppressionV3", ["x0", "x1", "x2", "x3", "x4"], {}),
        ("b", "GatherV2", ["x0", "chosen", "x5"], {}),
        ("s", "GatherV2", ["x1", "chosen", "x5"], {}),
        ("column", "ExpandDims", ["s", "x6"], {}),
        ("both", "ConcatV2", ["column", "b", "x6"], {"N": 2}),
    ]
    boxes = np.concatenate([BOXES[:, :2], BOXES[:, :2] + 10], 1)
    operands = [boxes, SCORES, *map(Fixed, (4, 0.9, 0.15, 0, 1))]
    found = run(rows, operands, tmp_path, {})
    order = [1, 3, 2, 4]
    np.testing.assert_array_equal(found, np.concatenate([SCORES[order, None], boxes[order]], 1))
