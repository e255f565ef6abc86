from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.model import Model, read_model
from gossamer.model.writer import write_model
from gossamer.schema import Buffer, BuiltinOperator, ExternalBuffer, Operator, OperatorCode, Tensor, TensorType
from tests.model.arbitrary import add_model


def _named(**code: object) -> tuple[int, str]:
    model = add_model(operator_codes=(OperatorCode(**code),))
    operator = model.subgraphs[0].operators[0]
    return model.builtin_code(operator), model.operator_name(operator)


def test_the_greater_builtin_code_counts() -> None:
    assert _named(deprecated_builtin_code=3) == (BuiltinOperator.CONV_2D, "CONV_2D")
    assert _named(deprecated_builtin_code=127, builtin_code=BuiltinOperator.GELU) == (BuiltinOperator.GELU, "GELU")
    assert _named(builtin_code=BuiltinOperator.CUSTOM, custom_code="Mine") == (BuiltinOperator.CUSTOM, "Mine")
    assert _named(builtin_code=300) == (300, "BUILTIN_300")


def test_operators_without_a_code() -> None:
    with pytest.raises(ModelError, match="Missing registration for opcode_index 4: the model has 1 operator codes"):
        add_model().operator_name(Operator(opcode_index=4))


def test_buffers() -> None:
    model = add_model()
    data = model.buffer_data(1)
    assert data is not None
    assert data.view(np.float32).tolist() == [0, 1, 2]
    assert model.buffer_data(0) is None
    assert model.replace(buffers=(Buffer(), Buffer())).buffer_data(1) is None
    with pytest.raises(ModelError, match=r"buffers\[2\] does not exist: the model has 2 buffers"):
        model.buffer_data(2)
    with pytest.raises(ModelError, match=r"buffers\[1\]: 8 bytes at byte 16 end outside the file \(0 bytes\)"):
        Model(buffers=(Buffer(), Buffer(offset=16, size=8))).buffer_data(1)


@pytest.mark.parametrize(
    ("kind", "shape", "size"),
    [
        (TensorType.FLOAT32, (), 4),
        (TensorType.FLOAT32, (2, 3), 24),
        (TensorType.INT4, (3,), 2),
        (TensorType.INT2, (5,), 2),
        (TensorType.COMPLEX128, (2,), 32),
        (TensorType.BOOL, (0, 1 << 30), 0),
        (TensorType.STRING, (2,), None),
    ],
)
def test_bytes_of_tensors(kind: TensorType, shape: tuple[int, ...], size: int | None) -> None:
    assert add_model().tensor_bytes(Tensor(type=kind, shape=shape)) == size


def test_bytes_of_impossible_tensors() -> None:
    with pytest.raises(ModelError, match=r"shape \[-1\] has a negative dimension"):
        add_model().tensor_bytes(Tensor(shape=(-1,)))
    with pytest.raises(ModelError, match="Unsupported data type 99 in tensor"):
        add_model().tensor_bytes(Tensor(type=99))


def test_external_buffers() -> None:
    record = ExternalBuffer(id=7, length=5)
    model = add_model(external_buffers=(record,))
    assert model.external_buffer(Tensor(external_buffer=7)) == record
    assert model.external_buffer(Tensor()) is None
    with pytest.raises(ModelError, match="tensor 't' asks for external buffer 8, the model has 7"):
        model.external_buffer(Tensor(name="t", external_buffer=8))


def test_signatures() -> None:
    assert list(add_model().signatures) == ["serving_default"]


def test_a_changed_copy_keeps_the_source() -> None:
    model = read_model(write_model(add_model()), path="m.tflite")
    changed = model.replace(description="x")
    assert (changed.source, changed.path) == (model.source, "m.tflite")
    assert (model.unchanged, changed.unchanged) == (True, False)
