"""``gossamer micro``: whether a model fits, in exact bytes; TFLite Micro itself was asked for every figure."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gossamer.micro import measure
from gossamer.micro.boards import BOARDS
from gossamer.micro.kernels.cmsis_nn import Extension
from gossamer.model import read_model
from gossamer.model.writer import write_model
from gossamer.schema import FullyConnectedOptions, QuantizationParameters, TensorType
from tests.conftest import ROOT
from tests.micro.compressed import compressed
from tests.micro.models import chain, chooser, multiplier
from tests.micro.test_decompression import weighted
from tests.runtime.graphs import ModelMaker
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]

CHAIN = """\
model           {path}
board           your board lacks 9,520 bytes of flash
does not fit    900 bytes, 60 are missing
smallest arena  960 bytes, 128 of them only while memory is planned
used            832 bytes: 256 of head, 576 of tail
head            256 bytes, 192 are alive at once
could save      64 bytes of head with a better plan of the same buffers; --write-offline-plan writes it
with CMSIS-NN   smallest arena 1,040 on Cortex-M4/M7/M33, 1,040 on Cortex-M55/M85
flash           about 25,904 bytes: 5,360 of model, 20,544 of code (32,100 with CMSIS-NN)
multiply-adds   1,152: FULLY_CONNECTED 100 %

  tail                                    bytes
 ───────────────────────────────────────────────
  TfLiteEvalTensor data                      84
  Persistent TfLiteTensor data               64
  Persistent buffer data                    185
  NodeAndRegistration struct                 96
  the allocator itself, options, tables     147


  alive at FULLY_CONNECTED (node 2)   bytes
 ───────────────────────────────────────────
  x32_3                                 128
  x16_2                                  64

in the firmware
  tflite::MicroMutableOpResolver<1> resolver;
  resolver.AddFullyConnected();

head over time, 256 bytes from left to right, and the bytes alive
     inputs               0000000000000000............................       96
   0 FULLY_CONNECTED      0000000000000000.................11111111111      160
   1 FULLY_CONNECTED      ......................2222222222211111111111      128
   2 FULLY_CONNECTED      **********************22222222222...........      192
"""


def test_everything_for_people(gossamer: Run, place: Place) -> None:
    path = place("chain.tflite", chain())
    result = gossamer("micro", path, "--arena-size", "900", "--ram", "2K", "--flash", "16K")
    assert (result.code, result.err) == (1, "")
    assert [line.rstrip() for line in result.out.splitlines()] == CHAIN.format(path=path).splitlines()


CHIPS = ("kernels", "model_bytes", "flash_bytes", "code", "multiply_adds", "cmsis_nn", "boards")


def test_everything_as_json(gossamer: Run, place: Place) -> None:
    path = place("chain.tflite", chain())
    result = gossamer("micro", path, "--pointer-size", "8", "--json")
    assert (result.code, result.err) == (0, "")
    report = result.json
    assert report.pop("plan") == measure(read_model(path), pointer_size=8).plan.to_json()
    categories = {name: used["used"] for name, used in report.pop("categories").items() if used["used"]}
    chips = {name: report.pop(name) for name in CHIPS}
    assert {entry["processors"] for entry in chips["cmsis_nn"]} == {extension.value for extension in Extension}
    assert len(chips["boards"]) == len(BOARDS)
    assert chips["flash_bytes"] == chips["model_bytes"] + sum(
        chips["code"]["tflm"][name] for name in ("interpreter_bytes", "operators_bytes")
    )
    assert categories == {"eval_tensors": 168, "persistent_tensors": 128, "persistent_buffers": 224, "nodes": 192}
    assert report == {
        "model": str(path),
        "pointer_size": 8,
        "arena_used_bytes": 1264,
        "minimum_arena_bytes": 1440,
        "head_bytes": 256,
        "tail_bytes": 1008,
        "lower_bound_bytes": 192,
        "operators": ["FULLY_CONNECTED"],
        "scratch_requests": 0,
        "registration": ["tflite::MicroMutableOpResolver<1> resolver;", "resolver.AddFullyConnected();"],
        "planned_offline": False,
        "peak": {
            "operator": "FULLY_CONNECTED (node 2)",
            "bytes": 192,
            "buffers": [{"name": "x32_3", "bytes": 128}, {"name": "x16_2", "bytes": 64}],
        },
        "savings": {"better_plan": 64, "in_place": 0},
    }


@pytest.mark.parametrize(
    ("size", "code", "line"),
    [
        ("944", 0, "fits            944 bytes, 0 to spare"),
        # Between two multiples of 16 it depends on where the allocations of the tail begin.
        ("943", 0, "fits            943 bytes, 0 to spare"),
        ("928", 1, "does not fit    928 bytes, 16 are missing"),
        ("2K", 0, "fits            2,048 bytes, 1,104 to spare"),
        ("1M", 0, "fits            1,048,576 bytes, 1,047,632 to spare"),
        ("1 KiB", 0, "fits            1,024 bytes, 80 to spare"),
        ("0", 1, "does not fit    0 bytes, 944 are missing"),
    ],
)
def test_arena_sizes(gossamer: Run, place: Place, size: str, code: int, line: str) -> None:
    result = gossamer("micro", place("m.tflite", multiplier()), "--arena-size", size)
    assert (result.code, result.out.splitlines()[1]) == (code, line)


@pytest.mark.parametrize("size", ["64Q", "-1", "K", "1.5K"])
def test_what_is_no_size(gossamer: Run, place: Place, size: str) -> None:
    result = gossamer("micro", place("m.tflite", multiplier()), "--arena-size", size)
    assert result.code == 2
    assert f"'{size}' is no number of bytes; write 65536, 64K or 1M." in result.err


def test_operators_that_could_write_over_their_inputs(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", multiplier())
    assert gossamer("micro", path, "--json").json["savings"] == {"better_plan": 0, "in_place": 256}
    assert "could save      256 bytes of head if operators wrote over their inputs" in gossamer("micro", path).out


def test_the_offline_plan(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path, out = place("chain.tflite", chain()), tmp_path / "planned.tflite"
    written = gossamer("micro", path, "--write-offline-plan", out, "--json").json["written"]
    assert written == {
        "model": str(out),
        "head_bytes": 192,
        "arena_used_bytes": 768,
        "minimum_arena_bytes": 960,
    }
    planned = gossamer("micro", out)
    assert "head            192 bytes by the model's offline plan, 192 are alive at once" in planned.out
    assert "could save" not in planned.out
    text = gossamer("micro", path, "--write-offline-plan", out).out
    assert f"written         {out}, smallest arena: 960 bytes" in text
    none = gossamer("micro", place("m.tflite", multiplier()), "--write-offline-plan", out).out
    assert f"written         {out}, smallest arena: no smaller one" in none


def test_subgraphs_run_within_their_caller(gossamer: Run, place: Place) -> None:
    result = gossamer("micro", place("m.tflite", chooser()))
    chart = result.out.partition("and the bytes alive\n")[2].splitlines()
    assert [line[:26].rstrip() for line in chart] == [
        "     inputs",
        "   0 IF",
        "     inputs",
        "   0 FULLY_CONNECTED [1]",
        "   1 FULLY_CONNECTED [1]",
        "   2 FULLY_CONNECTED [1]",
        "     inputs",
        "   0 FULLY_CONNECTED [2]",
    ]
    assert "alive at FULLY_CONNECTED (node 0) of subgraph 2" in result.out


def test_pictures(gossamer: Run, place: Place, tmp_path: Path) -> None:
    from PIL import Image

    path = place("chain.tflite", chain())
    svg, png = tmp_path / "head.svg", tmp_path / "head.png"
    assert gossamer("micro", path, "--picture", svg).code == 0
    assert "<title>x16_1: 64 bytes at 192</title>" in svg.read_text()
    assert gossamer("micro", path, "--picture", png).code == 0
    with Image.open(png) as image:
        assert image.format == "PNG"
    result = gossamer("micro", path, "--picture", tmp_path / "head.nothing")
    assert result.code == 1
    assert "the name should end in .svg or .png." in result.err


def test_bad_models(gossamer: Run, place: Place) -> None:
    result = gossamer("micro", place("m.tflite", b"nothing at all"))
    assert (result.code, result.out) == (1, "")
    assert "is this a .tflite file?" in result.err
    make = ModelMaker()
    x, y, z = (make.tensor((1, 4), name=name) for name in "xyz")
    make.op("GELU", [x], [y])
    make.op("Mine", [y], [z], custom=True)
    make.io([x], [z])
    path = place("m.tflite", make.model())
    assert gossamer("micro", path).err == f"Error: {path}: TFLite Micro does not have GELU, Mine.\n"


def test_a_tensor_that_is_not_there(gossamer: Run, place: Place) -> None:
    make = ModelMaker()
    x, y = (make.tensor((1, 4), name=name) for name in "xy")
    make.op("LOGISTIC", [x], [y])
    make.io([x], [y])
    model = read_model(make.model())
    (subgraph,) = model.subgraphs
    damaged = subgraph.replace(operators=(subgraph.operators[0].replace(inputs=np.array([9], np.int32)),))
    result = gossamer("micro", place("m.tflite", write_model(model.replace(subgraphs=(damaged,)))))
    assert (result.code, result.out) == (1, "")
    assert "9" in result.err


def test_help_shows_an_example(gossamer: Run) -> None:
    result = gossamer("micro", "--help")
    assert result.code == 0
    assert "Example: gossamer micro person_detect.tflite --arena-size 96K --picture head.svg" in result.out


def test_flash_and_multiply_adds(gossamer: Run, place: Place) -> None:
    path = place("chain.tflite", chain())
    report = gossamer("micro", path, "--json").json
    assert report["model_bytes"] == path.stat().st_size
    code = report["code"]["tflm"]
    assert code["estimated"] is True
    assert code["alone"] == {"FULLY_CONNECTED": code["operators_bytes"]}
    table = gossamer("micro", path).out
    assert all(f"  {board.name}  " in table for board in BOARDS)
    assert report["flash_bytes"] == path.stat().st_size + code["interpreter_bytes"] + code["operators_bytes"]
    assert report["code"]["cmsis-nn"]["operators_bytes"] > code["operators_bytes"]
    counted = report["multiply_adds"]
    assert [node["multiply_adds"] for node in counted["nodes"]] == [24 * 16, 16 * 16, 16 * 32]
    assert counted["by_operator"] == {"FULLY_CONNECTED": counted["total"]}
    assert not counted["subgraphs_counted_once"]
    once = gossamer("micro", place("m.tflite", chooser())).out
    assert "multiply-adds   1,920: FULLY_CONNECTED 100 %; each subgraph once" in once


def test_narrow_terminals(gossamer: Run, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.tools.micro.console", lambda: Console(width=80, highlight=False))
    lines = gossamer("micro", place("chain.tflite", chain())).out.splitlines()
    start = lines.index("boards, without stack, drivers and heap") + 1
    assert [line[2:22].rstrip() for line in lines[start : start + len(BOARDS)]] == [board.name for board in BOARDS]
    assert lines[start].rstrip() == "  STM32F103 Blue Pill  fits: 5 % of RAM, 40 % of flash"
    assert max(map(len, lines)) <= 80


def test_cmsis_nn(gossamer: Run, place: Place) -> None:
    path = place("chain.tflite", chain())
    own = gossamer("micro", path, "--json").json
    for cpu, extension in (("cortex-m3", 0), ("cortex-m4", 1), ("cortex-m55", 2)):
        report = gossamer("micro", path, "--kernels", "cmsis-nn", "--cpu", cpu, "--json").json
        assert report["arena_used_bytes"] == own["cmsis_nn"][extension]["arena_used_bytes"] > own["arena_used_bytes"]
        assert report["kernels"] == "cmsis-nn"
        assert report["flash_bytes"] > own["flash_bytes"]
    text = gossamer("micro", path, "--kernels", "cmsis-nn").out
    assert "with CMSIS-NN" not in text.split("flash")[0]
    assert "of code (20,544 with TFLite Micro's own kernels)" in text
    assert "--cpu is for --kernels cmsis-nn" in gossamer("micro", path, "--cpu", "cortex-m4").err
    refused = gossamer("micro", path, "--kernels", "cmsis-nn", "--board", "esp32")
    assert (refused.code, refused.out) == (2, "")
    assert "CMSIS-NN is for Arm's processors, and ESP32 has none." in refused.err


def test_a_board(gossamer: Run, place: Place) -> None:
    path = place("chain.tflite", chain())
    result = gossamer("micro", path, "--board", "blue pill", "--json")
    (board,) = result.json["boards"]
    assert result.code == 0
    assert (board["name"], board["fits"], board["fits_if"]) == ("STM32F103 Blue Pill", True, None)
    assert (board["ram_bytes"], board["flash_bytes"]) == (20 << 10, 64 << 10)
    unknown = gossamer("micro", path, "--board", "nothing")
    assert unknown.code == 2
    assert "no board is called 'nothing'" in unknown.err
    assert "more than one board is called 'pico'" in gossamer("micro", path, "--board", "pico").err
    both = gossamer("micro", path, "--board", "esp32", "--ram", "1K")
    assert "leave --board out" in both.err


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (("--ram", "960"), "fits: 100 % of RAM"),
        (("--flash", "64K"), "fits: 40 % of flash"),
        (("--ram", "256"), "lacks 704 bytes of RAM"),
        (("--ram", "800"), "lacks 160 bytes of RAM; should fit as int8 (gossamer quantize)"),
        (("--flash", "25000"), "lacks 904 bytes of flash; should fit as int8 (gossamer quantize)"),
    ],
)
def test_what_would_make_it_fit(gossamer: Run, place: Place, limits: tuple[str, str], words: str) -> None:
    result = gossamer("micro", place("chain.tflite", chain()), *limits)
    assert result.out.splitlines()[1] == f"board           your board {words}"
    assert result.code == (0 if words.startswith("fits") else 1)


def test_the_offline_plan_makes_it_fit(gossamer: Run) -> None:
    path = _real("vww_96_int8")
    missing = gossamer("micro", path, "--ram", "90K", "--json")
    assert missing.code == 1
    (board,) = missing.json["boards"]
    assert (board["missing_ram_bytes"], board["fits_if"]["how"]) == (100672 - (90 << 10), "with --write-offline-plan")
    assert not board["fits_if"]["estimated"]
    assert board["fits_if"]["arena"] == 82240


def test_its_own_kernels_make_it_fit(gossamer: Run, place: Place) -> None:
    path = place("chain.tflite", chain())
    (board,) = gossamer("micro", path, "--kernels", "cmsis-nn", "--flash", "30000", "--json").json["boards"]
    assert board["fits_if"]["how"] == "with TFLite Micro's own kernels"


def test_a_c_array(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = place("chain.tflite", chain())
    source, planned = tmp_path / "my-model 2.cc", tmp_path / "planned.tflite"
    result = gossamer("micro", path, "--c-array", source, "--json")
    assert result.json["c_array"] == {"file": str(source), "name": "g_my_model_2"}
    text = source.read_text()
    assert "alignas(16) const unsigned char g_my_model_2[] = {" in text
    assert f"const unsigned int g_my_model_2_len = {path.stat().st_size};" in text
    assert _bytes_of(text) == path.read_bytes()
    out = gossamer("micro", path, "--c-array", source, "--write-offline-plan", planned).out
    assert f"C array         {source}: g_my_model_2" in out
    assert _bytes_of(source.read_text()) == planned.read_bytes() != path.read_bytes()
    refused = gossamer("micro", path, "--c-array", tmp_path / "model.txt")
    assert refused.code == 1
    assert "should end in .cc, .cpp, .c or .h." in refused.err
    assert list(tmp_path.glob("*.part")) == []


def _bytes_of(source: str) -> bytes:
    array = source.partition("[] = {")[2]
    return bytes(int(value, 16) for value in re.findall(r"0x[0-9a-f]{2}", array))


def test_uint8_becomes_int8(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path, out = place("old.tflite", uint8_layer()), tmp_path / "old_int8.tflite"
    result = gossamer("micro", path)
    assert (result.code, result.out) == (1, "")
    command = f"gossamer quantize {path} --mode requantize -o {out}"
    assert result.err == (
        f"Error: {path}: TFLite Micro has FULLY_CONNECTED for int8, not for uint8. "
        f"Requantise the model and ask again:\n  {command}\n"
    )
    assert gossamer(*command.split()[1:]).code == 0
    assert "smallest arena" in gossamer("micro", out).out


def uint8_layer() -> bytes:
    """A fully connected layer as TensorFlow 1 quantized them."""
    make = ModelMaker()

    def scale(value: float, zero_point: int) -> QuantizationParameters:
        return QuantizationParameters(scale=np.array([value], np.float32), zero_point=np.array([zero_point], np.int64))

    x = make.tensor((1, 8), TensorType.UINT8, name="x", quantization=scale(0.5, 128))
    y = make.tensor((1, 4), TensorType.UINT8, name="y", quantization=scale(1.0, 120))
    weights = np.arange(32).reshape(4, 8)
    filter_ = make.constant(weights, np.uint8, TensorType.UINT8, quantization=scale(0.25, 16))
    bias = make.constant(np.zeros(4), np.int32, TensorType.INT32, quantization=scale(0.125, 0))
    make.op("FULLY_CONNECTED", [x, filter_, bias], [y], FullyConnectedOptions())
    make.io([x], [y])
    return make.model()


def _real(name: str) -> Path:
    path = ROOT.parent / "shared" / "micro" / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path.name} is not here (../shared/micro)")
    return path


FIGURES = {
    # model: smallest arena, used bytes, head with 32-bit pointers, saved by a better plan
    "hello_world_int8": (1072, 676, 32, 0),
    "person_detect": (82304, 82292, 55296, 0),
    "keyword_scrambled_8bit": (10400, 8052, 672, 0),
    "vww_96_int8": (100672, 100660, 73728, 18432),
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_real_models(gossamer: Run, name: str) -> None:
    report = gossamer("micro", _real(name), "--json").json
    figures = (report["minimum_arena_bytes"], report["arena_used_bytes"], report["head_bytes"])
    assert (*figures, report["savings"]["better_plan"]) == FIGURES[name]


def test_a_model_of_compressed_tensors(gossamer: Run, place: Place) -> None:
    model, _, constants = weighted("CONV_2D/1")
    result = gossamer("micro", place("m.tflite", compressed(model, constants)))
    assert result.code == 0
    assert "Persistent compression data" in result.out
    assert result.out.count("CONV_2D (node 0) scratch") == 2
