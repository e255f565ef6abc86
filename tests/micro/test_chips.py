"""What a chip must have for a model: code, multiply-adds, boards, the model as a C array."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gossamer.micro import all_ops
from gossamer.micro.adders import ADDERS
from gossamer.micro.boards import BOARDS, Needs, find_board, judge
from gossamer.micro.c_array import c_array, identifier
from gossamer.micro.code_size import Library, code_size
from gossamer.micro.multiply_adds import count_multiply_adds
from gossamer.model import read_model
from tests.runtime.test_memory_plan import model_path

LINKED = {
    # operators: bytes of firmware with TFLite Micro's own kernels and with CMSIS-NN's, as the linker made them
    "FULLY_CONNECTED": (21152, 32608),
    "RESHAPE DEPTHWISE_CONV_2D FULLY_CONNECTED SOFTMAX": (34236, 58304),
    "CONV_2D DEPTHWISE_CONV_2D AVERAGE_POOL_2D RESHAPE FULLY_CONNECTED SOFTMAX": (42148, 84908),
    "CONV_2D ADD AVERAGE_POOL_2D RESHAPE FULLY_CONNECTED SOFTMAX": (46560, 79800),
    "SVDF SPLIT FULLY_CONNECTED SOFTMAX QUANTIZE": (35732, 50196),
    "UNIDIRECTIONAL_SEQUENCE_LSTM FULLY_CONNECTED TANH UNPACK PACK": (37272, 53016),
}


@pytest.mark.parametrize("operators", LINKED)
@pytest.mark.parametrize("library", Library)
def test_code_is_what_the_linker_makes_of_it(operators: str, library: Library) -> None:
    linked = LINKED[operators][list(Library).index(library)]
    assert code_size(operators.split(), library).total == pytest.approx(linked, rel=0.05)


def test_all_operators_were_built() -> None:
    for library in Library:
        assert code_size([name for name in all_ops() if name in ADDERS], library).unknown == ()
    code = code_size(["CONV_2D", "Mine"])
    assert code.unknown == ("Mine",)
    assert code.operators == code.alone["CONV_2D"] == code_size(["CONV_2D"]).operators


MULTIPLY_ADDS = {
    "ad01_int8": 264_192,
    "hello_world_int8": 288,
    "kws_ref_model": 2_656_768,
    "pretrainedResnet_quant": 12_501_632,
    "vww_96_int8": 7_489_664,
}


@pytest.mark.parametrize("name", MULTIPLY_ADDS)
def test_multiply_adds(name: str) -> None:
    counted = count_multiply_adds(read_model(model_path(f"{name}.tflite")))
    assert sum(map(sum, counted)) == MULTIPLY_ADDS[name]


def test_a_keyword_model_of_svdf() -> None:
    model = read_model(model_path("keyword_scrambled_8bit.tflite"))
    (counts,) = count_multiply_adds(model)
    for operator, count in zip(model.subgraphs[0].operators, counts, strict=True):
        if model.operator_name(operator) == "SVDF":
            shapes = [model.subgraphs[0].tensors[i].shape for i in operator.inputs[1:3]]
            assert count == sum(rows * columns for rows, columns in shapes)


def test_boards() -> None:
    assert len({board.name for board in BOARDS}) == len(BOARDS)
    for board in BOARDS:
        assert find_board(board.name) is board
        assert 0 < board.largest <= board.ram
    assert find_board("NANO 33").name == "Arduino Nano 33 BLE"
    with pytest.raises(ValueError, match=r"did you mean 'Teensy 4\.1'"):
        find_board("Tensy 4.1")


def test_verdicts() -> None:
    board = find_board("ESP32")
    assert judge(board, Needs(160 << 10, 4 << 20), []).fits
    small, large = Needs(100, 100, "small"), Needs(1 << 30, 100, "large")
    verdict = judge(board, Needs(161 << 10, (4 << 20) + 5), [large, small])
    assert (verdict.fits, verdict.missing_ram, verdict.missing_flash) == (False, 1 << 10, 5)
    assert verdict.remedy is small


def test_names_of_c_arrays() -> None:
    assert identifier("some/folder/2-more.x.cc") == "g_2_more_x"
    text = c_array(b"ab", "m.h", "evil */ name")
    assert text.splitlines()[0] == "/* evil * / name: 2 bytes, written by gossamer micro. */"
    assert "#ifndef G_M_H_\n#define G_M_H_\n" in text
    assert text.endswith("};\n#endif\n")
    with pytest.raises(ValueError, match="should end in"):
        c_array(b"", "model.py", "")


@pytest.mark.parametrize("suffix", [".c", ".cc", ".h"])
def test_c_arrays_compile(suffix: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc" if suffix == ".c" else "c++")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = tmp_path / f"model{suffix}"
    source.write_text(c_array(bytes(range(256)), source.name, "model.tflite"))
    using = source
    if suffix == ".h":
        using = tmp_path / "using.cc"
        using.write_text('#include "model.h"\n#include "model.h"\nstatic_assert(sizeof(g_model) == 256);\n')
    command = [compiler, *(["-std=c++17"] if suffix != ".c" else []), "-Wall", "-fsyntax-only", str(using)]
    subprocess.run(command, check=True)
