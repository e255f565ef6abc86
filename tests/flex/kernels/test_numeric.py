"""What recorded cases cannot say: old names, large numbers in operands, files, what operators print or refuse."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from gossamer.errors import InvokeError, PrepareError
from gossamer.flex.kernels import all_kernels
from gossamer.flex.refused import refusal
from tests.flex.models import FlexMaker, run

F32, I32, I64 = np.float32, np.int32, np.int64


def i32(*values: int) -> Any:
    return np.array(values, I32)


SAME = [
    ("BatchCholesky", "Cholesky", [np.array([[4, 2], [2, 3]], F32)]),
    ("BatchMatrixInverse", "MatrixInverse", [np.array([[4, 2], [2, 3]], F32)]),
    ("BatchMatrixDeterminant", "MatrixDeterminant", [np.array([[4, 2], [2, 3]], F32)]),
    ("BatchMatrixTriangularSolve", "MatrixTriangularSolve", [np.array([[2, 0], [1, 4]], F32), np.ones((2, 1), F32)]),
    ("BatchMatrixDiag", "MatrixDiag", [np.arange(3, dtype=F32)]),
    ("BatchMatrixDiagPart", "MatrixDiagPart", [np.arange(6, dtype=F32).reshape(2, 3)]),
    ("BatchMatrixSetDiag", "MatrixSetDiag", [np.ones((2, 2), F32), np.zeros(2, F32)]),
    ("BatchMatrixBandPart", "MatrixBandPart", [np.ones((3, 3), F32), np.array(0, I64), np.array(1, I64)]),
]


@pytest.mark.parametrize(("old", "new", "operands"), SAME)
def test_old_names_compute_the_same(old: str, new: str, operands: list[Any]) -> None:
    np.testing.assert_array_equal(run(old, *operands), run(new, *operands))


HANDMADE = [
    ("Select", [np.array([True, False]), np.ones((2, 2), I32), np.zeros((2, 2), I32)], {}, [[1, 1], [0, 0]]),
    ("TopK", [i32(3, 1, 3, 2)], {"k": 3}, [[3, 3, 2], [0, 2, 3]]),
    ("Where", [np.array([[True, False], [True, True]])], {}, [[0, 0], [1, 0], [1, 1]]),
    ("TileGrad", [np.arange(4, dtype=I32).reshape(4, 1), i32(2, 1)], {}, [[2], [4]]),
    ("ParallelConcat", [i32(1, 2).reshape(1, 2), i32(3, 4).reshape(1, 2)], {"shape": [2, 2]}, [[1, 2], [3, 4]]),
    ("AdjustContrast", [np.arange(4, dtype=np.uint8).reshape(2, 2, 1), *np.array([2, 0, 3], F32)], {},
     [[[0], [0.5]], [[2.5], [3]]]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands", "attributes", "wanted"), HANDMADE, ids=[case[0] for case in HANDMADE])
def test_kernel_by_hand(op: str, operands: list[Any], attributes: dict[str, Any], wanted: Any) -> None:
    results = run(op, *operands, **attributes)
    assert [one.tolist() for one in results] == wanted if isinstance(results, list) else results.tolist() == wanted


LARGE = [
    ("Fill", [i32(1 << 30, 1 << 30), np.array(1, F32)], {}),
    ("Range", [np.array(0, I64), np.array(1 << 60, I64), np.array(1, I64)], {}),
    ("OneHot", [i32(1), np.array(1 << 30, I32), np.array(1, F32), np.array(0, F32)], {}),
    ("LinSpace", [np.array(0, F32), np.array(1, F32), np.array(1 << 30, I32)], {}),
    ("Tile", [np.ones(9, F32), i32(1 << 30)], {}),
    ("PadV2", [np.ones(1, F32), i32(1 << 30, 0).reshape(1, 2), np.array(0, F32)], {}),
    ("BroadcastTo", [np.ones(1, F32), i32(1 << 30)], {}),
    ("ScatterNd", [i32(0).reshape(1, 1), np.ones(1, F32), i32(1 << 30)], {}),
    ("UnsortedSegmentSum", [np.ones(1, F32), i32(0), np.array(1 << 30, I32)], {}),
    ("SegmentSum", [np.ones(1, F32), i32(1 << 30)], {}),
    ("Bincount", [i32(0), np.array(1 << 30, I32), np.ones(1, F32)], {}),
    ("DynamicStitch", [i32(1 << 30), np.ones(1, F32)], {"N": 1}),
    ("ResizeBilinear", [np.ones((1, 2, 2, 1), F32), i32(1 << 16, 1 << 16)], {}),
    ("SparseToDense", [i32(0), i32(1 << 30), np.array(1, F32), np.array(0, F32)], {}),
    ("RaggedRange", [np.array(0, I64), np.array(1 << 60, I64), np.array(1, I64)], {}),
    ("SpaceToBatchND", [np.ones((1, 2, 2, 1), F32), i32(1, 1), i32(0, 1 << 30, 0, 0).reshape(2, 2)], {}),
    ("NonMaxSuppressionV4", [np.zeros((1, 4), F32), np.ones(1, F32), np.array(1 << 30, I32), *np.zeros(2, F32)],
     {"pad_to_max_output_size": True}),
    ("MatrixDiagV3", [np.ones(2, F32), np.array(0, I32), np.array(2, I32), np.array(1 << 30, I32), np.array(0, F32)],
     {}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands", "attributes"), LARGE, ids=[case[0] for case in LARGE])
def test_large_numbers_are_refused_before_memory_is_taken(
    op: str, operands: list[Any], attributes: dict[str, Any]
) -> None:
    with pytest.raises(InvokeError, match=r"more than 134217728 elements|is too large"):
        run(op, *operands, **attributes)


def test_ragged_tensors_go_through_variants() -> None:
    make = FlexMaker()
    splits, values = make.tensor((4,), 4, "splits", has_rank=True), make.tensor((5,), 0, "values", has_rank=True)
    (rows,) = make.flex(
        "RaggedTensorToVariant", [splits, values], [(-1,)], RAGGED_RANK=1, Tvalues="float", Tsplits="int64",
        batched_input=True,
    )  # fmt: skip
    whole = make.flex(
        "RaggedTensorFromVariant", [rows], input_ragged_rank=0, output_ragged_rank=1, Tvalues="float", Tsplits="int64"
    )
    make.io([splits, values], whole)
    from gossamer import Interpreter

    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(splits, np.array([0, 2, 2, 5], I64))
    interpreter.set_tensor(values, np.arange(5, dtype=F32))
    interpreter.invoke()
    assert interpreter.get_tensor(whole[0]).tolist() == [0, 2, 2, 5]
    assert interpreter.get_tensor(whole[1]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_png_files_come_back(channels: int, dtype: Any) -> None:
    pytest.importorskip("PIL", reason="Pillow decodes pictures")
    image = (np.arange(5 * 7 * channels) * 977 % np.iinfo(dtype).max).astype(dtype).reshape(5, 7, channels)
    content = run("EncodePng", image, T=dtype)
    decoded = run("DecodePng", content, dtype=dtype)
    np.testing.assert_array_equal(decoded, image)


def test_jpeg_files_come_back_nearly() -> None:
    pytest.importorskip("PIL", reason="Pillow encodes pictures")
    image = np.broadcast_to(np.arange(32, dtype=np.uint8)[:, None, None] * 7, (32, 40, 3)).copy()
    for content in (run("EncodeJpeg", image), run("EncodeJpegVariableQuality", image, np.array(95, I32))):
        decoded = run("DecodeJpeg", content)
        assert np.abs(decoded.astype(int) - image).max() <= 4
        window = run("DecodeAndCropJpeg", content, i32(3, 4, 10, 11))
        np.testing.assert_array_equal(window, decoded[3:13, 4:15])


def test_frames_of_a_gif() -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow decodes pictures")
    frames = [image.new("RGB", (4, 3), colour) for colour in ((255, 0, 0), (0, 0, 255))]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    decoded = run("DecodeGif", file.getvalue())
    assert decoded.shape == (2, 3, 4, 3)
    assert decoded[:, 0, 0].tolist() == [[255, 0, 0], [0, 0, 255]]
    assert run("DecodeImage", file.getvalue(), expand_animations=False).shape == (3, 4, 3)


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("Print", i32(1), i32(2, 3), message="seen: ", U=[I32]).tolist() == [1]
    assert capsys.readouterr().err == "seen: [2 3]\n"
    run("PrintV2", b"text", output_stream="stdout")
    assert capsys.readouterr().out == "text\n"


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("Switch", "control flow of TensorFlow 1"),
        ("TensorSliceDataset", "input pipelines"),
        ("RestoreV2", "files"),
        ("QuantizedAdd", "quantized types"),
        ("_Recv", "own runtime"),
        ("GetSessionHandle", "session"),
        ("PyFunc", "Python function"),
    ],
)
def test_what_has_no_kernel_says_why(op: str, reason: str) -> None:
    assert reason in refusal(op)
    assert f"gossamer.flex_op({op!r})" in refusal(op)


def test_a_model_with_it_is_refused() -> None:
    assert "Switch" not in all_kernels()
    with pytest.raises(PrepareError, match="control flow of TensorFlow 1"):
        run("Switch", np.ones(2, F32), np.array(True))
