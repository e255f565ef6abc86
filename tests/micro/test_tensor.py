"""Tensors as a device sees them."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.micro.tensor import EvalTensor
from gossamer.schema import QuantizationParameters, Tensor, TensorType


def quantized(*zero_points: int) -> QuantizationParameters:
    return QuantizationParameters(
        scale=np.full(len(zero_points), 0.5, np.float32), zero_point=np.array(zero_points, np.int64)
    )


def test_a_packed_constant_is_unpacked_and_takes_a_byte_each_in_the_arena() -> None:
    tensor = EvalTensor(0, Tensor(shape=(3,), type=TensorType.INT4, name="w"), np.array([0x21, 0x0F], np.uint8))
    assert tensor.array().tolist() == [1, 2, -1]
    assert tensor.bytes == 3


def test_a_constant_that_is_too_short() -> None:
    with pytest.raises(ModelError, match='tensor 4 "w" needs 8 bytes, its buffer has 4'):
        EvalTensor(4, Tensor(shape=(2,), type=TensorType.FLOAT32, name="w"), np.zeros(4, np.uint8))


def test_an_empty_buffer_is_no_constant() -> None:
    assert not EvalTensor(0, Tensor(shape=(2,), type=TensorType.INT8, name="x"), np.zeros(0, np.uint8)).is_stored


def test_storing() -> None:
    tensor = EvalTensor(0, Tensor(shape=(2, 2), type=TensorType.INT16, name="x"), None)
    with pytest.raises(ValueError, match="has no value"):
        tensor.array()
    tensor.data = np.zeros(8, np.uint8)
    tensor.store(np.arange(4, dtype=np.int16))
    assert tensor.array().tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="is int16, got int32"):
        tensor.store(np.zeros((2, 2), np.int32))


def test_resetting() -> None:
    for type_, expected in ((TensorType.INT8, -3), (TensorType.INT16, 0)):
        tensor = EvalTensor(0, Tensor(shape=(2,), type=type_, name="v", quantization=quantized(-3)), None)
        tensor.data = np.full(tensor.bytes, 9, np.uint8)
        tensor.reset()
        assert tensor.array().tolist() == [expected] * 2


def test_what_a_tfl_tensor_carries_of_the_scales() -> None:
    both = Tensor(shape=(2,), type=TensorType.INT8, name="x", quantization=quantized(1, 2))
    assert EvalTensor(0, both, None).scale_count == 2
    only = QuantizationParameters(scale=np.ones(1, np.float32))
    assert EvalTensor(0, Tensor(shape=(2,), type=TensorType.INT8, name="x", quantization=only), None).scale_count == 0


def test_more_bytes_than_a_device_can_count() -> None:
    tensor = EvalTensor(0, Tensor(shape=(1 << 16, 1 << 15), type=TensorType.INT8, name="x"), None)
    with pytest.raises(ModelError, match="needs 2147483648 bytes"):
        _ = tensor.bytes
