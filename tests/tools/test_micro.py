"""``gossamer micro``: whether a model fits, in exact bytes; TFLite Micro itself was asked for every figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.micro import measure
from gossamer.model import read_model
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
does not fit    900 bytes, 60 are missing
smallest arena  960 bytes, 128 of them only while memory is planned
used            832 bytes: 256 of head, 576 of tail
head            256 bytes, 192 are alive at once
could save      64 bytes of head with a better plan of the same buffers; --write-offline-plan writes it

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
    result = gossamer("micro", path, "--arena-size", "900")
    assert (result.code, result.err) == (1, "")
    assert [line.rstrip() for line in result.out.splitlines()] == CHAIN.format(path=path).splitlines()


def test_everything_as_json(gossamer: Run, place: Place) -> None:
    path = place("chain.tflite", chain())
    result = gossamer("micro", path, "--pointer-size", "8", "--json")
    assert (result.code, result.err) == (0, "")
    report = result.json
    assert report.pop("plan") == measure(read_model(path), pointer_size=8).plan.to_json()
    categories = {name: used["used"] for name, used in report.pop("categories").items() if used["used"]}
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


def test_help_shows_an_example(gossamer: Run) -> None:
    result = gossamer("micro", "--help")
    assert result.code == 0
    assert "Example: gossamer micro person_detect.tflite --arena-size 96K --picture head.svg" in result.out


FIGURES = {
    # model: smallest arena, used bytes, head with 32-bit pointers, saved by a better plan
    "hello_world_int8": (1072, 676, 32, 0),
    "person_detect": (82304, 82292, 55296, 0),
    "keyword_scrambled_8bit": (10400, 8052, 672, 0),
    "vww_96_int8": (100672, 100660, 73728, 18432),
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_real_models(gossamer: Run, name: str) -> None:
    path = ROOT.parent / "shared" / "micro" / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path.name} is not here (../shared/micro)")
    report = gossamer("micro", path, "--json").json
    figures = (report["minimum_arena_bytes"], report["arena_used_bytes"], report["head_bytes"])
    assert (*figures, report["savings"]["better_plan"]) == FIGURES[name]


def test_a_model_of_compressed_tensors(gossamer: Run, place: Place) -> None:
    model, _, constants = weighted("CONV_2D/1")
    result = gossamer("micro", place("m.tflite", compressed(model, constants)))
    assert result.code == 0
    assert "Persistent compression data" in result.out
    assert result.out.count("CONV_2D (node 0) scratch") == 2
