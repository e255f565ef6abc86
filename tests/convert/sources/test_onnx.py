from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.onnx import (
    DataType,
    FunctionProto,
    GraphProto,
    ModelProto,
    OperatorSetIdProto,
    SparseTensorProto,
    StringStringEntryProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)
from gossamer.convert.sources.onnx import read_onnx, sparse_array, tensor_array
from gossamer.convert.wire import read, write
from gossamer.errors import ConvertError
from tests.convert.arbitrary import KERNEL, onnx_model

D = DataType


def test_what_a_model_says(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(write(onnx_model()))
    for source in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), write(onnx_model())):
        model = read_onnx(source)
        assert model.definition == onnx_model()
        assert model.opsets == {"": 21, "local": 1}
        assert {name: (spec.dtype, spec.shape) for name, spec in model.inputs.items()} == {"x": (D.FLOAT, ("batch", 3))}
        assert {name: (spec.dtype, spec.shape) for name, spec in model.defaults.items()} == {"factor": (D.FLOAT, ())}
        assert {name: (spec.dtype, spec.shape) for name, spec in model.outputs.items()} == {
            "y": (D.FLOAT, ("batch", 2))
        }
        assert list(model.functions) == [("local", "Scale", "")]
        assert list(model.initializers) == ["w", "factor"]
        assert model.array(model.initializers["w"]).tolist() == KERNEL.tolist()
        assert model.array(model.initializers["factor"]).tolist() == 2
        assert model.sparse_array(model.sparse_initializers["s"]).tolist() == [[0, 0, 0], [0, 0, 7]]


def test_raw_data_are_a_view() -> None:
    model = read_onnx(write(onnx_model()))
    array = model.array(model.initializers["w"])
    assert np.shares_memory(array, np.frombuffer(model.initializers["w"].raw_data, np.uint8))
    assert not array.flags.writeable


def test_shapes_that_are_not_known_and_values_that_are_no_tensors() -> None:
    sequence = TypeProto(sequence_type=TypeProto.Sequence(elem_type=TypeProto()))
    values = (
        ValueInfoProto(name="a"),
        ValueInfoProto(name="b", type=TypeProto(tensor_type=TypeProto.Tensor(elem_type=D.INT8))),
        ValueInfoProto(name="c", type=sequence),
    )
    model = read_onnx(write(onnx_model(graph=GraphProto(input=values))))
    assert [(spec.dtype, spec.shape) for spec in model.inputs.values()] == [
        (D.UNDEFINED, None),
        (D.INT8, None),
        (D.UNDEFINED, None),
    ]
    assert model.inputs["c"].stored.type == sequence


def stored(data_type: DataType, dims: tuple[int, ...], **values: Any) -> TensorProto:
    return read(TensorProto, write(TensorProto(name="t", data_type=data_type, dims=dims, **values)))


@pytest.mark.parametrize(
    ("data_type", "field", "values", "expected"),
    [
        (D.FLOAT, "float_data", np.float32([1.5, -2]), np.float32([1.5, -2])),
        (D.DOUBLE, "double_data", np.float64([1.5, -2]), np.float64([1.5, -2])),
        (D.INT64, "int64_data", np.int64([1 << 40, -2]), np.int64([1 << 40, -2])),
        (D.UINT64, "uint64_data", np.uint64([1 << 63, 2]), np.uint64([1 << 63, 2])),
        (D.UINT32, "uint64_data", np.uint64([1 << 31, 2]), np.uint32([1 << 31, 2])),
        (D.INT32, "int32_data", np.int32([-1, 2]), np.int32([-1, 2])),
        (D.INT8, "int32_data", np.int32([-128, 127]), np.int8([-128, 127])),
        (D.UINT16, "int32_data", np.int32([65535, 2]), np.uint16([65535, 2])),
        (D.BOOL, "int32_data", np.int32([1, 0]), np.array([True, False])),
        (D.FLOAT16, "int32_data", np.int32([0x3C00, 0xC000]), np.float16([1, -2])),
        (D.COMPLEX64, "float_data", np.float32([1, 2, 3, 4]), np.complex64([1 + 2j, 3 + 4j])),
        (D.COMPLEX128, "double_data", np.float64([1, 2, 3, 4]), np.complex128([1 + 2j, 3 + 4j])),
        (D.STRING, "string_data", (b"a", b"\0"), np.array([b"a", b"\0"], object)),
        (D.INT4, "int32_data", np.int32([0x78]), np.int8([-8, 7])),
        (D.UINT4, "int32_data", np.int32([0xF1]), np.uint8([1, 15])),
        (D.INT2, "int32_data", np.int32([0b0110]), np.int8([-2, 1])),
        (D.UINT2, "int32_data", np.int32([0b0110]), np.uint8([2, 1])),
    ],
)
def test_values_that_are_written_out(data_type: DataType, field: str, values: Any, expected: np.ndarray) -> None:
    array = tensor_array(stored(data_type, (2,), **{field: values}))
    assert array.dtype == expected.dtype
    assert array.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("data_type", "raw", "dtype", "expected"),
    [
        (D.FLOAT16, "003c 00c0 0000", "float16", [1, -2, 0]),
        (D.BFLOAT16, "803f 00c0 0000", "bfloat16", [1, -2, 0]),
        (D.FLOAT8E4M3FN, "38 c0 00", "float8_e4m3fn", [1, -2, 0]),
        (D.FLOAT8E5M2, "3c c0 00", "float8_e5m2", [1, -2, 0]),
        (D.BOOL, "01 00 01", "bool", [1, 0, 1]),
        (D.INT4, "78 0f", "int8", [-8, 7, -1]),
        (D.UINT4, "78 0f", "uint8", [8, 7, 15]),
        (D.INT2, "39", "int8", [1, -2, -1]),
        (D.UINT2, "39", "uint8", [1, 2, 3]),
    ],
)
def test_raw_data(data_type: DataType, raw: str, dtype: str, expected: list[float]) -> None:
    array = tensor_array(stored(data_type, (3,), raw_data=bytes.fromhex(raw)))
    assert array.dtype.name == dtype
    assert array.astype(float).tolist() == expected


def external(**entries: str) -> TensorProto:
    listed = tuple([StringStringEntryProto(key=key, value=value) for key, value in entries.items()])
    return stored(D.FLOAT, (2,), data_location=1, external_data=listed)


def test_external_data_are_mapped(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(np.float32([0, 1, 2, 3]).tobytes())
    array = tensor_array(external(location="sub/w.bin", offset="4", length="8"), tmp_path)
    assert array.tolist() == [1, 2]
    assert not array.flags.owndata
    assert not array.flags.writeable
    assert tensor_array(external(location="sub/w.bin", offset="8"), tmp_path).tolist() == [2, 3]
    graph = onnx_model().graph.replace(initializer=(external(location="sub/w.bin", length="8"),))  # type: ignore[union-attr]
    (tmp_path / "m.onnx").write_bytes(write(onnx_model(graph=graph)))
    model = read_onnx(tmp_path / "m.onnx")
    assert model.array(model.initializers["t"]).tolist() == [0, 1]
    model = read_onnx(write(onnx_model(graph=graph)), tmp_path)
    assert model.array(model.initializers["t"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "nothing"}, "cannot be read: No such file"),
        ({"location": "../w.bin"}, r"at '\.\./w\.bin', which is no path inside"),
        ({"location": "/etc/hosts"}, "is no path inside"),
        ({}, "is at '', which is no path inside"),
        ({"location": "w.bin", "offset": "16"}, "is at bytes 16 to .* of a file that has 8"),
        ({"location": "w.bin", "length": "9"}, "is at bytes 0 to 9 of a file that has 8"),
        ({"location": "w.bin", "length": "4"}, r"has 4 bytes; float32\[2\] takes 8"),
        ({"location": "w.bin", "offset": "-1"}, "offset of its data is '-1', must be a number"),
        ({"location": "w.bin", "length": "many"}, "length of its data is 'many', must be a number"),
        ({"location": "w.bin", "length": "9" * 5000}, "must be a number"),
    ],
)
def test_external_data_that_are_refused(tmp_path: Path, entries: dict[str, str], words: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(8))
    with pytest.raises(ConvertError, match=words):
        tensor_array(external(**entries), tmp_path)


def test_external_data_of_bytes_need_a_directory() -> None:
    with pytest.raises(ConvertError, match=r"data in 'w\.bin'; say in which directory that is"):
        tensor_array(external(location="w.bin"))


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (TensorProto(name="t"), "tensor 't' is of UNDEFINED, which is not read"),
        (TensorProto(data_type=99), "tensor '' is of type 99"),
        (stored(D.FLOAT, (2,), segment=TensorProto.Segment()), "is a segment"),
        (stored(D.FLOAT, (2,), raw_data=b"abc"), r"has 3 bytes; float32\[2\] takes 8"),
        (stored(D.FLOAT, (2,), float_data=np.float32([1])), r"has 1 values in float_data; \[2\] has 2 elements"),
        (stored(D.FLOAT, (2,)), "has 0 values in float_data"),
        (stored(D.FLOAT, (-2,)), "not all sizes"),
        (stored(D.STRING, (1,), raw_data=b"a"), "strings as raw data"),
        (stored(D.INT4, (3,), raw_data=b"a"), r"has 1 bytes; INT4\[3\] takes 2"),
        (stored(D.COMPLEX64, (1,), float_data=np.float32([1])), "complex numbers take two"),
        (stored(D.INT8, (1 << 50,), int32_data=np.int32([1])), "has 1 values"),
    ],
)
def test_tensors_that_do_not_fit_together(tensor: TensorProto, words: str) -> None:
    with pytest.raises(ConvertError, match=words):
        tensor_array(tensor)


def sparse(dims: tuple[int, ...], values: Any, indices: Any) -> SparseTensorProto:
    values, indices = np.float32(values), np.int64(indices)
    return SparseTensorProto(
        values=stored(D.FLOAT, values.shape, float_data=values.ravel()),
        indices=stored(D.INT64, indices.shape, int64_data=indices.ravel()),
        dims=dims,
    )


def test_sparse_tensors() -> None:
    assert sparse_array(sparse((2, 2), [5, 6], [0, 3])).tolist() == [[5, 0], [0, 6]]
    assert sparse_array(sparse((2, 2), [5, 6], [[0, 1], [1, 0]])).tolist() == [[0, 5], [6, 0]]
    assert sparse_array(sparse((3,), [], [])).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (SparseTensorProto(), "no values or no indices"),
        (sparse((2, 2), [5], [4]), "an index outside of its shape"),
        (sparse((2, 2), [5], [[0, 2]]), "an index outside of its shape"),
        (sparse((2, 2), [5], [-1]), "an index outside of its shape"),
        (sparse((2, 2), [5, 6], [0]), r"indices int64\[1\] for values \[2\]"),
        (sparse((), [5], [0]), "a scalar, which cannot be sparse"),
        (sparse((1 << 40,), [5], [0]), "at most 268435456 are allowed"),
    ],
)
def test_sparse_tensors_that_are_refused(tensor: SparseTensorProto, words: str) -> None:
    with pytest.raises(ConvertError, match=words):
        sparse_array(tensor)


def graph(**changes: Any) -> ModelProto:
    whole = onnx_model().graph
    assert whole is not None
    return onnx_model(graph=whole.replace(**changes))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ModelProto(), "model: a ModelProto without a graph"),
        (onnx_model(opset_import=()), "no operator set is imported"),
        (
            onnx_model(opset_import=(OperatorSetIdProto(version=1), OperatorSetIdProto(domain="ai.onnx", version=2))),
            "imports versions 1 and 2 of domain ''",
        ),
        (onnx_model(functions=(FunctionProto(), FunctionProto())), "two functions have the same domain"),
        (graph(initializer=(TensorProto(),)), "an initializer has no name, or that of another one"),
        (graph(initializer=(TensorProto(name="s"),)), "an initializer has no name, or that of another one"),
        (graph(input=(ValueInfoProto(name="x"), ValueInfoProto(name="x"))), "an input has no name, or that"),
        (graph(output=(ValueInfoProto(),)), "an output has no name, or that"),
    ],
)
def test_models_that_are_refused(model: ModelProto, words: str) -> None:
    with pytest.raises(ConvertError, match=words):
        read_onnx(write(model))
