from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.tensorflow import DataType, TensorProto, TensorShapeProto
from gossamer.convert.sources.tensor_proto import numpy_dtype, shape_of, tensor_array
from gossamer.convert.wire import read, write
from gossamer.errors import ConvertError
from tests.convert.arbitrary import shape

D = DataType


def stored(dtype: DataType, sizes: tuple[int, ...], **values: Any) -> TensorProto:
    return read(TensorProto, write(TensorProto(dtype=dtype, tensor_shape=shape(*sizes), **values)))


@pytest.mark.parametrize(
    ("dtype", "field", "values", "expected"),
    [
        (D.DT_FLOAT, "float_val", np.float32([1.5, 2]), np.float32([1.5, 2])),
        (D.DT_DOUBLE, "double_val", np.float64([1.5, 2]), np.float64([1.5, 2])),
        (D.DT_INT32, "int_val", np.int32([-1, 2]), np.int32([-1, 2])),
        (D.DT_INT8, "int_val", np.int32([-128, 127]), np.int8([-128, 127])),
        (D.DT_UINT16, "int_val", np.int32([1, 65535]), np.uint16([1, 65535])),
        (D.DT_QUINT8, "int_val", np.int32([1, 255]), np.uint8([1, 255])),
        (D.DT_INT4, "int_val", np.int32([-8, 7]), np.int8([-8, 7])),
        (D.DT_INT64, "int64_val", np.int64([-1, 1 << 40]), np.int64([-1, 1 << 40])),
        (D.DT_UINT32, "uint32_val", np.uint32([1, 1 << 31]), np.uint32([1, 1 << 31])),
        (D.DT_UINT64, "uint64_val", np.uint64([1, 1 << 63]), np.uint64([1, 1 << 63])),
        (D.DT_BOOL, "bool_val", np.array([True, False]), np.array([True, False])),
        (D.DT_HALF, "half_val", np.int32([0x3C00, 0xC000]), np.float16([1, -2])),
        (D.DT_COMPLEX64, "scomplex_val", np.float32([1, 2, 3, 4]), np.complex64([1 + 2j, 3 + 4j])),
        (D.DT_COMPLEX128, "dcomplex_val", np.float64([1, 2, 3, 4]), np.complex128([1 + 2j, 3 + 4j])),
        (D.DT_STRING, "string_val", (b"a", b"\xff"), np.array([b"a", b"\xff"], object)),
    ],
)
def test_values_that_are_written_out(dtype: DataType, field: str, values: Any, expected: np.ndarray) -> None:
    array = tensor_array(stored(dtype, (2,), **{field: values}))
    assert array.dtype == expected.dtype == numpy_dtype(dtype)
    assert array.tolist() == expected.tolist()


def test_types_of_ml_dtypes() -> None:
    array = tensor_array(stored(D.DT_BFLOAT16, (2,), half_val=np.int32([0x3F80, 0xC000])))
    assert (array.dtype.name, array.astype(float).tolist()) == ("bfloat16", [1, -2])
    array = tensor_array(stored(D.DT_FLOAT8_E4M3FN, (1,), float8_val=b"\x38"))
    assert (array.dtype.name, array.astype(float).tolist()) == ("float8_e4m3fn", [1])


def test_content_is_a_view_in_the_shape() -> None:
    values = np.arange(6, dtype="<i2").reshape(2, 3)
    tensor = stored(D.DT_INT16, (2, 3), tensor_content=values.tobytes())
    array = tensor_array(tensor)
    assert array.tolist() == values.tolist()
    assert np.shares_memory(array, np.frombuffer(tensor.tensor_content, np.uint8))
    assert not array.flags.writeable


def test_scalars_empty_tensors_and_values_left_out() -> None:
    assert tensor_array(TensorProto(dtype=D.DT_INT32, int_val=np.int32([7]))).tolist() == 7
    assert tensor_array(stored(D.DT_FLOAT, (0, 2))).shape == (0, 2)
    assert tensor_array(stored(D.DT_FLOAT, (2,))).tolist() == [0, 0]
    assert tensor_array(stored(D.DT_STRING, (2,))).tolist() == [b"", b""]
    assert tensor_array(stored(D.DT_FLOAT, (3,), float_val=np.float32([1, 2]))).tolist() == [1, 2, 2]


def test_shapes_that_are_not_known() -> None:
    assert shape_of(None) is None
    assert shape_of(TensorShapeProto(unknown_rank=True)) is None
    assert shape_of(shape()) == ()
    assert shape_of(shape(-1, 3)) == (None, 3)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (TensorProto(dtype=D.DT_RESOURCE), "weights is of DT_RESOURCE, which has no values"),
        (TensorProto(dtype=99), "weights is of DataType 99"),
        (stored(D.DT_FLOAT, (2,), tensor_content=b"abc"), r"weights has 3 bytes; float32\[2\] takes 8"),
        (stored(D.DT_FLOAT, (1,), float_val=np.float32([1, 2])), "weights has 2 values"),
        (stored(D.DT_FLOAT, (-1,)), "not all sizes"),
        (stored(D.DT_STRING, (1,), tensor_content=b"abc"), "strings as tensor_content"),
        (stored(D.DT_COMPLEX64, (1,), scomplex_val=np.float32([1])), "complex numbers take two"),
        (TensorProto(dtype=D.DT_FLOAT, tensor_shape=TensorShapeProto(unknown_rank=True)), "shape is not known"),
    ],
)
def test_what_does_not_fit_together(tensor: TensorProto, words: str) -> None:
    with pytest.raises(ConvertError, match=words):
        tensor_array(tensor, "weights")
