from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.model import Model, read_model, verify_model
from gossamer.model.reader import read_root
from gossamer.model.writer import write_model, write_root
from gossamer.schema import (
    Buffer,
    BuiltinOperator,
    Conv2DOptions,
    FakeQuantOptions,
    Metadata,
    Operator,
    OperatorCode,
    StablehloSortOptions,
    SubGraph,
    Tensor,
)
from tests.model.arbitrary import add_model


def test_a_model_survives() -> None:
    content = write_model(add_model())
    assert content[4:8] == b"TFL3"
    model = read_model(content)
    assert model == add_model()
    assert verify_model(model) == ()


def test_an_unchanged_model_keeps_its_bytes() -> None:
    content = write_model(add_model()) + b"anything behind the end"
    model = read_model(content)
    assert write_model(model) == content
    assert write_model(model.replace(description="other")) != content


def test_equal_models_give_equal_bytes() -> None:
    assert write_model(add_model()) == write_model(read_model(write_model(add_model())).replace())


def test_defaults_are_not_written_but_empty_vectors_are() -> None:
    assert len(write_root(Conv2DOptions(stride_w=0, dilation_w_factor=1), b"TEST")) == len(
        write_root(Conv2DOptions(), b"TEST")
    )
    model = read_model(write_model(Model(version=3, subgraphs=(SubGraph(tensors=(), inputs=()),), buffers=())))
    assert model.subgraphs[0].has("tensors")
    assert not model.subgraphs[0].has("operators")
    assert model.has("buffers")
    assert not model.has("operator_codes")


def test_minus_zero_is_not_the_default() -> None:
    options = read_root(FakeQuantOptions, memoryview(write_root(FakeQuantOptions(min=-0.0), b"TEST")), b"TEST")
    assert str(options.min) == "-0.0"


def test_constants_are_aligned_to_16_bytes() -> None:
    for padding in range(20):
        content = write_model(add_model(description="x" * padding))
        data = read_model(content).buffer_data(1)
        assert data is not None
        start = np.frombuffer(content, np.uint8).__array_interface__["data"][0]
        assert (data.__array_interface__["data"][0] - start) % 16 == 0


def test_equal_layouts_share_a_vtable() -> None:
    sizes = [
        len(write_model(add_model(subgraphs=(SubGraph(tensors=(Tensor(shape=(1,), buffer=1),) * 1),) * n)))
        for n in (1, 2)
    ]
    assert sizes[1] - sizes[0] <= 16

    def size(count: int) -> int:
        return len(write_root(SubGraph(tensors=tuple(Tensor(buffer=i + 1) for i in range(count))), b"TEST"))

    assert size(1004) - size(4) == 1000 * (4 + 8)  # offset in the vector; offset of the vtable and the buffer


def test_fields_of_eight_bytes_and_of_one_and_nothing_between() -> None:
    options = StablehloSortOptions(dimension=1, is_stable=True)
    again = read_root(StablehloSortOptions, memoryview(write_root(options, b"TEST")), b"TEST")
    assert again == options


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (OperatorCode(builtin_code=BuiltinOperator.CONV_2D), (3, 3)),
        (OperatorCode(deprecated_builtin_code=3), (3, 3)),
        (OperatorCode(builtin_code=BuiltinOperator.GELU), (127, 150)),
        (OperatorCode(builtin_code=300, deprecated_builtin_code=5), (127, 300)),
    ],
)
def test_both_builtin_codes_are_written(written: OperatorCode, stored: tuple[int, int]) -> None:
    (code,) = read_model(write_model(add_model(operator_codes=(written,)))).operator_codes
    assert (code.deprecated_builtin_code, code.builtin_code) == stored


def _custom_model() -> Model:
    subgraph = add_model().subgraphs[0]
    operator = Operator(inputs=(0, 1), outputs=(2,), custom_options=np.arange(5, dtype=np.uint8))
    return add_model(
        operator_codes=(OperatorCode(builtin_code=BuiltinOperator.CUSTOM, custom_code="Mine"),),
        subgraphs=(subgraph.replace(operators=(operator,)),),
        buffers=(*add_model().buffers, Buffer(data=np.arange(3, dtype=np.uint8)), Buffer(data=np.arange(0))),
        metadata=(Metadata(name="note", buffer=2),),
    )


def test_external_data_and_back() -> None:
    inside = write_model(_custom_model())
    outside = write_model(_custom_model(), external_data=True)
    model = read_model(outside)
    assert verify_model(model) == ()
    assert not model.buffers[1].has("data")
    assert model.buffers[1].offset % 16 == 0
    assert model.buffers[2].has("data"), "metadata stay where TFLite looks for them"
    operator = model.subgraphs[0].operators[0]
    assert operator.large_custom_options_offset % 16 == 0
    assert model.custom_options(operator).tolist() == [0, 1, 2, 3, 4]
    assert model.metadata_data("note") is not None
    data = model.tensor_data(model.subgraphs[0].tensors[1])
    assert data is not None
    assert data.view(np.float32).tolist() == [0, 1, 2]
    assert write_model(model.replace()) == inside
    with pytest.raises(ModelError, match="Constant buffer 1 specified an out of range offset"):
        verify_model(read_model(outside[: model.buffers[1].offset]))


def test_equal_views_are_stored_once() -> None:
    data = np.zeros(1000, np.uint8)
    for external in (False, True):
        sizes = [
            len(
                write_model(
                    add_model(buffers=(Buffer(), *(Buffer(data=data) for _ in range(n)))), external_data=external
                )
            )
            for n in (1, 2)
        ]
        assert sizes[1] - sizes[0] < 100


def test_values_that_a_field_cannot_hold() -> None:
    subgraph = add_model().subgraphs[0]

    def written(tensor: Tensor) -> bytes:
        return write_model(add_model(subgraphs=(subgraph.replace(tensors=(tensor,)),)))

    with pytest.raises(ModelError, match=r"Tensor cannot hold buffer=5000000000: "):
        written(Tensor(buffer=5_000_000_000))
    with pytest.raises(ModelError, match=r"Tensor\.shape cannot hold \(1\.5,\): required argument is not an integer"):
        written(Tensor(shape=(1.5,)))
    with pytest.raises(ModelError, match=r"Tensor\.name cannot hold 3: "):
        written(Tensor(name=3))
    with pytest.raises(
        ModelError, match=r"Tensor\.quantization cannot hold .*: expected QuantizationParameters, got Buffer"
    ):
        written(Tensor(quantization=Buffer()))
    with pytest.raises(
        ModelError, match=r"Operator\.builtin_options cannot hold .*: Buffer is not a member of the union"
    ):
        write_root(Operator(builtin_options=Buffer()), b"TEST")
    with pytest.raises(ModelError, match=r"Buffer\.data cannot hold .*: int64 values do not fit uint8"):
        write_root(Buffer(data=np.array([300])), b"TEST")


def test_a_file_is_written_completely_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.tflite"
    content = write_model(add_model(), path)
    assert path.read_bytes() == content

    def fail(source: str, target: str) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_model(add_model(description="other"), path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "m.tflite"
    with pytest.raises(FileNotFoundError) as error:
        add_model().save(path)
    assert error.value.filename == str(path)


def test_a_mapped_file_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    write_model(add_model(), path)
    model = read_model(path)
    write_model(model.replace(description="other"), path)
    assert model.description == "adds"
    assert read_model(path).description == "other"


def test_the_root_is_where_the_head_says() -> None:
    content = write_model(add_model())
    (root,) = struct.unpack_from("<I", content)
    (distance,) = struct.unpack_from("<i", content, root)
    assert 8 <= root - distance < len(content)


@pytest.mark.peer
def test_litert_runs_what_is_written() -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    for content in (write_model(add_model()), write_model(add_model(), external_data=True)):
        runner = interpreter(model_content=content)
        runner.allocate_tensors()
        runner.set_tensor(0, np.ones((2, 3), np.float32))
        runner.invoke()
        assert runner.get_tensor(2).tolist() == [[1, 2, 3], [1, 2, 3]]
