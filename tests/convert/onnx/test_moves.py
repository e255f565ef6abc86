"""ONNX's shapes, slices, positions and reductions against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.onnx.one_node import TYPES, run

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
WIDER, AROUND = [(0, 0), (1, 0), (0, 2)], [(0, 0), (1, 1), (1, 2)]
OPEN = {"x": ["n", 3, "t"]}


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


CASES: list[tuple[str, int, dict[str, Any], dict[str, Any], Any]] = [
    ("Reshape", 13, {"s": ints(0, -1)}, {}, X.reshape(2, 12)),
    ("Reshape", 13, {"s": ints(-1, 4)}, {}, X.reshape(6, 4)),
    ("Reshape", 1, {}, {"shape": [3, 8]}, X.reshape(3, 8)),
    ("Flatten", 13, {}, {"axis": 2}, X.reshape(6, 4)),
    ("Flatten", 13, {}, {"axis": -1}, X.reshape(6, 4)),
    ("Flatten", 9, {}, {"axis": 0}, X.reshape(1, 24)),
    ("Unsqueeze", 11, {}, {"axes": [0, 3]}, X[None, :, :, None]),
    ("Unsqueeze", 13, {"a": ints(-1, 0)}, {}, X[None, ..., None]),
    ("Transpose", 13, {}, {"perm": [2, 0, 1]}, X.transpose(2, 0, 1)),
    ("Transpose", 13, {}, {}, X.transpose()),
    ("Slice", 9, {}, {"starts": [0, -2], "ends": [2, 100], "axes": [0, 2]}, X[0:2, :, -2:]),
    ("Slice", 13, {"s": ints(1), "e": ints(2**62), "a": ints(1)}, {}, X[:, 1:]),
    ("Slice", 13, {"s": ints(-1, 3), "e": ints(-100, 0), "a": ints(1, 2), "t": ints(-1, -2)}, {}, X[:, ::-1, 3:0:-2]),
    ("Slice", 13, {"s": ints(2**40), "e": ints(-(2**40)), "a": ints(2), "t": ints(-1)}, {}, X[:, :, ::-1]),
    ("Gather", 13, {"i": ints(-1, 0)}, {"axis": 1}, X[:, [-1, 0]]),
    ("Gather", 13, {"i": np.array(2)}, {"axis": -1}, X[:, :, 2]),
    ("Tile", 13, {"r": ints(1, 2, 3)}, {}, np.tile(X, (1, 2, 3))),
    ("Expand", 13, {"s": ints(2, 1, 3, 1)}, {}, np.broadcast_to(X, (2, 2, 3, 4))),
    (
        "Pad",
        2,
        {},
        {"pads": [0, 1, 0, 0, 0, 2], "value": 1.5},
        np.pad(X, [(0, 0), (1, 0), (0, 2)], constant_values=1.5),
    ),
    ("Pad", 13, {"p": ints(0, 1, 0, 0, -1, 2)}, {}, np.pad(X, WIDER)[:, :3]),
    (
        "Pad",
        13,
        {"p": ints(0, 1, 1, 0, 1, 2)},
        {"mode": "reflect"},
        np.pad(X, AROUND, mode="reflect"),
    ),
    ("Pad", 13, {"p": ints(0, 1, 1, 0, 1, 2)}, {"mode": "edge"}, np.pad(X, AROUND, mode="edge")),
    ("Pad", 19, {"p": ints(0, 1, 1, 0, 1, 2)}, {"mode": "wrap"}, np.pad(X, AROUND, mode="wrap")),
    ("Trilu", 14, {"k": np.array(1)}, {}, np.triu(X, 1)),
    ("Trilu", 14, {}, {"upper": 0}, np.tril(X)),
    ("Shape", 15, {}, {"start": -2}, np.array([3, 4])),
    ("Shape", 15, {}, {"start": 0, "end": 1}, np.array([2])),
    ("Size", 13, {}, {}, np.array(24)),
    ("ArgMax", 13, {}, {"axis": 1, "keepdims": 0}, X.argmax(1)),
    ("ArgMin", 13, {}, {"axis": -1}, X.argmin(-1)[..., None]),
    ("CumSum", 14, {"a": np.array(1)}, {}, X.cumsum(1)),
    ("CumSum", 14, {"a": np.array(-2)}, {"reverse": 1}, X[:, ::-1].cumsum(1)[:, ::-1]),
    ("ReduceSum", 11, {}, {"axes": [0, 2], "keepdims": 0}, X.sum((0, 2))),
    ("ReduceSum", 13, {"a": ints(-1)}, {}, X.sum(-1, keepdims=True)),
    ("ReduceSum", 13, {}, {"noop_with_empty_axes": 1}, X),
    ("ReduceMean", 18, {"a": ints(1)}, {"keepdims": 0}, X.mean(1)),
    ("ReduceMean", 13, {}, {"axes": [1]}, X.mean(1, keepdims=True)),
    ("ReduceMax", 13, {}, {}, X.max(keepdims=True)),
    ("ReduceMin", 13, {}, {"keepdims": 0}, X.min()),
    ("ReduceProd", 13, {}, {"axes": [2]}, X.prod(2, keepdims=True)),
    ("ReduceL1", 13, {}, {"axes": [2]}, np.abs(X).sum(2, keepdims=True)),
    ("ReduceL2", 13, {}, {"axes": [2]}, np.sqrt((X**2).sum(2, keepdims=True))),
    ("ReduceSumSquare", 13, {}, {"axes": [2]}, (X**2).sum(2, keepdims=True)),
    ("ReduceLogSum", 13, {}, {"axes": [2]}, np.log(X.sum(2, keepdims=True))),
    ("ReduceLogSumExp", 13, {}, {"axes": [2]}, np.log(np.exp(X.astype(float)).sum(2, keepdims=True))),
    ("Softmax", 11, {}, {"axis": 1}, (lambda e: e / e.sum((1, 2), keepdims=True))(np.exp(X - 24.0))),
    ("Softmax", 13, {}, {"axis": 1}, (lambda e: e / e.sum(1, keepdims=True))(np.exp(X - 24.0))),
    ("LogSoftmax", 13, {}, {}, X - np.log(np.exp(X.astype(float)).sum(-1, keepdims=True))),
    ("Dropout", 13, {}, {}, X),
    ("Compress", 11, {"c": np.array([True, False, True])}, {"axis": 1}, X[:, [0, 2]]),
    ("DepthToSpace", 13, {}, {}, None),
]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_moves(tmp_path: Path, number: int, is_open: bool) -> None:
    """The same whether sizes are known or not."""
    op, opset, constants, attributes, want = CASES[number]
    if is_open and attributes.get("shape") == [3, 8]:
        with pytest.raises(ConvertError, match="cannot reshape"):  # that many elements are not what is open
            run(tmp_path, op, {"x": X}, [("float32", None)], opset=opset, shapes=OPEN, **attributes)
        return
    if want is None:
        x = np.arange(64, dtype=np.float32).reshape(1, 16, 2, 2)
        for mode, order in (("DCR", (0, 3, 4, 1, 5, 2)), ("CRD", (0, 1, 4, 2, 5, 3))):
            shape = (1, 2, 2, 4, 2, 2) if mode == "DCR" else (1, 4, 2, 2, 2, 2)
            want = x.reshape(shape).transpose(order).reshape(1, 4, 4, 4)
            shapes = {"x": ["n", 16, "h", "w"]} if is_open else None
            ran = run(tmp_path, op, {"x": x}, [("float32", None)], shapes=shapes, blocksize=2, mode=mode)
            np.testing.assert_array_equal(ran.outputs["out0"], want)
            back = run(tmp_path, "SpaceToDepth", {"x": want}, [("float32", None)], blocksize=2)
            assert back.outputs["out0"].shape == x.shape
        return
    kind = "float32" if want.dtype.kind == "f" else "int64"
    shapes = OPEN if is_open else None
    ran = run(tmp_path, op, {"x": X}, [(kind, None)], constants=constants, opset=opset, shapes=shapes, **attributes)
    np.testing.assert_allclose(ran.outputs["out0"], want, rtol=1e-5, atol=1e-6)


DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_moves(tmp_path: Path, dtype: str) -> None:
    """Slices, joins, pads and positions of whatever type."""
    x = (X % 2 if dtype == "bool" else X).astype(dtype)
    cases: list[tuple[str, dict[str, Any], dict[str, Any], Any]] = [
        ("Transpose", {}, {"perm": [1, 0, 2]}, x.transpose(1, 0, 2)),
        ("Slice", {"s": ints(1), "e": ints(3), "a": ints(2)}, {}, x[:, :, 1:3]),
        ("Gather", {"i": ints(2, 0)}, {"axis": 1}, x[:, [2, 0]]),
        ("Concat", {"y": x}, {"axis": 1}, np.concatenate([x, x], 1)),
        ("Pad", {"p": ints(0, 0, 1, 0, 0, 1)}, {}, np.pad(x, [(0, 0), (0, 0), (1, 1)])),
        ("Tile", {"r": ints(1, 1, 2)}, {}, np.tile(x, (1, 1, 2))),
        ("Expand", {"s": ints(2, 2, 3, 4)}, {}, np.broadcast_to(x, (2, 2, 3, 4))),
        ("Where", {"c": x, "d": x}, {}, None),
    ]
    for op, constants, attributes, want in cases:
        given = x
        if want is None:
            given, want = np.array(True), x
        ran = run(tmp_path, op, {"x": given}, [(dtype, want.shape)], constants=constants, **attributes)
        assert ran.outputs["out0"].dtype == dtype
        np.testing.assert_array_equal(ran.outputs["out0"], want, op)


def test_split(tmp_path: Path) -> None:
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    three = [("float32", None)] * 3
    for constants, attributes, opset, cuts in (
        ({}, {"split": [1, 2, 4]}, 11, [1, 3]),
        ({"s": ints(1, 2, 4)}, {}, 13, [1, 3]),
        ({}, {"num_outputs": 3}, 18, [3, 6]),
    ):
        ran = run(tmp_path, "Split", {"x": x}, three, constants=constants, opset=opset, **attributes)
        for n, part in enumerate(np.split(x, cuts)):
            np.testing.assert_array_equal(ran.outputs[f"out{n}"], part)


def test_scatter_and_gather(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    i = np.array([[0, -1, 2, 1], [2, 0, 0, 0]])
    np.testing.assert_array_equal(
        run(tmp_path, "GatherElements", {"x": x, "i": i}, [("float32", i.shape)], axis=0).outputs["out0"],
        np.take_along_axis(x, i, 0),
    )
    u = np.array([[9, 8, 7, 6], [5, 4, 3, 2]], np.float32)
    for reduction, function in (("none", None), ("add", np.add), ("mul", np.multiply), ("max", np.maximum)):
        want = x.copy()
        for place in np.ndindex(2, 4):
            at = (i[place], place[1])
            want[at] = u[place] if function is None else function(want[at], u[place])
        ran = run(
            tmp_path, "ScatterElements", {"x": x, "i": i, "u": u}, [("float32", x.shape)], axis=0, reduction=reduction
        )
        np.testing.assert_array_equal(ran.outputs["out0"], want)
    places, rows = np.array([[1], [-1]]), np.full((2, 4), 5, np.float32)
    want = x.copy()
    want[[1, 2]] = 5
    ran = run(tmp_path, "ScatterND", {"x": x, "i": places, "u": rows}, [("float32", x.shape)])
    np.testing.assert_array_equal(ran.outputs["out0"], want)
    y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    ran = run(tmp_path, "GatherND", {"x": y, "i": np.array([[1], [-1]])}, [("float32", (2, 4))], batch_dims=1)
    np.testing.assert_array_equal(ran.outputs["out0"], np.stack([y[0, 1], y[1, 2]]))


def test_one_hot_and_top(tmp_path: Path) -> None:
    i = np.array([1, -1, 2])
    for axis in (-1, 0):
        ran = run(
            tmp_path,
            "OneHot",
            {"i": i},
            [("float32", None)],
            constants={"d": np.array(4), "v": np.array([2, 5], np.float32)},
            axis=axis,
        )
        want = np.where(np.eye(4)[i] > 0, 5, 2)
        np.testing.assert_array_equal(ran.outputs["out0"], want if axis else want.T)
    x = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]], np.float32)
    for largest in (0, 1):
        ran = run(
            tmp_path,
            "TopK",
            {"x": x},
            [("float32", None), ("int64", None)],
            constants={"k": ints(2)},
            largest=largest,
            axis=-1,
        )
        order = np.argsort(-x if largest else x, -1, kind="stable")[:, :2]
        np.testing.assert_array_equal(ran.outputs["out0"], np.take_along_axis(x, order, -1))
        np.testing.assert_array_equal(ran.outputs["out1"], order)


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(tmp_path: Path, axis: int | None, is_sorted: int) -> None:
    x = np.array([[2, 0, 2], [1, 1, 1], [2, 0, 2], [1, 0, 1]], np.float32)
    attributes: dict[str, Any] = {"sorted": is_sorted} | ({} if axis is None else {"axis": axis})
    outputs: list[tuple[str, Any]] = [("float32", None), *[("int64", None)] * 3]
    ran = run(tmp_path, "Unique", {"x": x}, outputs, **attributes)
    values, first, inverse, counts = np.unique(x, True, True, True, axis)
    if not is_sorted:
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse.reshape(-1)]
    for n, want in enumerate((values, first, inverse.reshape(-1), counts)):
        np.testing.assert_array_equal(ran.outputs[f"out{n}"], want)


def test_made(tmp_path: Path) -> None:
    """What is made of shapes and numbers, known or not."""
    value = np.array([2.5], np.float32)
    ran = run(tmp_path, "ConstantOfShape", {"s": ints(2, 3)}, [("float32", None)], shapes={"s": [2]}, value=value)
    np.testing.assert_array_equal(ran.outputs["out0"], np.full((2, 3), 2.5))
    numbers = {"a": np.array(3), "b": np.array(11), "c": np.array(3)}
    np.testing.assert_array_equal(run(tmp_path, "Range", numbers, [("int64", ["n"])]).outputs["out0"], [3, 6, 9])
    ran = run(
        tmp_path, "EyeLike", {"x": np.zeros((3, 4), np.int32)}, [("float64", None)], dtype=int(TYPES["float64"]), k=1
    )
    np.testing.assert_array_equal(ran.outputs["out0"], np.eye(3, 4, 1))
    x = np.array([[0, 3, 0], [5, 0, 6]], np.float32)
    ran = run(tmp_path, "NonZero", {"x": x}, [("int64", [2, "k"])])
    np.testing.assert_array_equal(ran.outputs["out0"], np.stack(np.nonzero(x)))
    lengths = ints(2, 3)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)[:, :2]
    ran = run(tmp_path, "ReverseSequence", {"x": x, "l": lengths}, [("float32", x.shape)], time_axis=0, batch_axis=1)
    np.testing.assert_array_equal(ran.outputs["out0"], np.stack([x[[1, 0, 2], 0], x[::-1, 1]], 1))


def test_axes_that_come_late(tmp_path: Path) -> None:
    """Axes and bounds as inputs: the model states the shape."""
    ran = run(tmp_path, "ReduceMax", {"x": X, "a": ints(1)}, [("float32", (2, 4))], keepdims=0)
    np.testing.assert_array_equal(ran.outputs["out0"], X.max(1))
    given = {"x": X, "s": ints(-1, 1), "e": ints(-100, 9), "a": ints(1, 2), "t": ints(-1, 2)}
    ran = run(tmp_path, "Slice", given, [("float32", (2, 3, 2))])
    np.testing.assert_array_equal(ran.outputs["out0"], X[:, ::-1, 1:9:2])
    with pytest.raises(ConvertError, match="state its shape"):
        run(tmp_path, "Squeeze", {"x": X[:, :1], "a": ints(1)}, [("float32", None)])
