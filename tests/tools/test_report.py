"""``gossamer report``: its data, and the page as far as no browser is needed."""

from __future__ import annotations

import gzip
import json
import re
import sys
from base64 import b64decode
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import ConvertError
from gossamer.inputs.samples import samples_from
from gossamer.schema import AddOptions, TensorType
from gossamer.tools._report.data import EXPANDED, MOST_SHOWN, describe
from gossamer.tools._report.page import library, page
from gossamer.tools._report.statistics import BARS
from tests.flex.models import FlexMaker
from tests.runtime.graphs import ModelMaker
from tests.runtime.test_control_flow import nested
from tests.tools import models
from tests.tools.conftest import Outcome
from tests.tools.test_inspect import chain

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]


def packed(html: str, part: str) -> str:
    """What the page has packed under a name."""
    found = re.search(rf'id="{part}">([A-Za-z0-9+/=]*)</script>', html)
    assert found is not None
    return gzip.decompress(b64decode(found[1])).decode()


def named(html: Any, name: str) -> Any:
    (found,) = (row for row in html if row["name"] == name)
    return found


def test_the_graph(place: Place) -> None:
    """x -> ADD a -> MUL b -> ADD y, where y takes a too."""
    (graph,) = describe(str(place("m.tflite", chain())))["subgraphs"]
    boxes = graph["boxes"]
    assert [(b["title"], b["below"], b["y"]) for b in boxes] == [
        ("input", "float32 1x100", 0),
        ("ADD", "float32 1x100", 1),
        ("MUL", "float32 1x100", 2),
        ("ADD", "float32 1x100", 3),
        ("output", "float32 1x100", 4),
    ]
    assert [b.get("operator") for b in boxes] == [None, 0, 1, 2, None]
    x, a, b, y = (named(graph["tensors"], name)["index"] for name in "xaby")
    assert (boxes[0]["input"], boxes[-1]["output"]) == (x, y)
    assert [edge[:3] for edge in graph["edges"]] == [[0, 1, x], [1, 2, a], [2, 3, b], [1, 3, a], [3, 4, y]]
    assert [len(edge[3]) for edge in graph["edges"]] == [0, 0, 0, 1, 0]  # the long one goes around MUL


def test_options_and_what_runs_an_operator(place: Place) -> None:
    (graph,) = describe(str(place("m.tflite", models.convolution())))["subgraphs"]
    convolution, rotation, addition = graph["operators"]
    assert convolution["options"]["padding"] == "SAME"
    assert convolution["options"]["fused_activation_function"] == "RELU"
    assert rotation["options"] == {"hadamard_size": 8}
    assert (rotation["delegate"], convolution["why"]) == (None, None)
    assert rotation["why"] == "rare: there is no kernel of butterflies"
    assert convolution["delegate"] is not None
    assert addition["delegate"] is not None
    json.dumps(graph, allow_nan=False)


def test_operators_whose_shapes_are_known_late(place: Place) -> None:
    """The delegate comes a second time, when there is a node that stands for what it took first."""
    make = ModelMaker()
    x, shape = make.tensor((6,), name="x"), make.tensor((2,), TensorType.INT32, name="shape")
    a, b, y = (
        make.tensor((6,)),
        make.tensor((1, 1), shape_signature=(-1, -1)),
        make.tensor((1, 1), shape_signature=(-1, -1)),
    )
    make.op("NEG", [x], [a])
    make.op("RESHAPE", [a, shape], [b])
    make.op("NEG", [b], [y])
    make.io([x, shape], [y])
    (graph,) = describe(str(place("m.tflite", make.model())))["subgraphs"]
    assert [operator["delegate"] for operator in graph["operators"]] == ["jit 0", "jit late 0", "jit late 0"]


def test_custom_options_that_are_no_flexbuffer(place: Place) -> None:
    make = ModelMaker()
    x, y = make.tensor((2,), name="x"), make.tensor((2,), name="y")
    make.op("Mine", [x], [y], custom=True, custom_options=b"\1\2\0")
    make.io([x], [y])
    (graph,) = describe(str(place("m.tflite", make.model())))["subgraphs"]
    assert graph["operators"][0]["options"] == {"custom_options": "3 bytes"}


def test_operators_that_run_as_several_others(place: Place) -> None:
    """Softplus of TensorFlow runs as builtin operators, whose numbers are not those of the file."""
    make = FlexMaker()
    x = make.tensor((2, 3), name="x", has_rank=True)
    make.io([x], make.flex("Softplus", [x], [(2, 3)]))
    (graph,) = describe(str(place("m.tflite", make.model())))["subgraphs"]
    ((name, delegate, why),) = [(row["name"], row["delegate"], row["why"]) for row in graph["operators"]]
    assert (name, delegate, why) == ("FlexSoftplus", None, EXPANDED)


def test_long_options_are_cut(place: Place) -> None:
    make = ModelMaker()
    x, y = make.tensor((200,), name="x"), make.tensor((200,), name="y")
    make.op("RESHAPE", [x], [y], _reshape(list(range(200))))
    make.io([x], [y])
    shape = describe(str(place("m.tflite", make.model())))["subgraphs"][0]["operators"][0]["options"]["new_shape"]
    assert shape == [*range(MOST_SHOWN), "and 136 more"]


def _reshape(shape: list[int]) -> Any:
    from gossamer.schema import ReshapeOptions

    return ReshapeOptions(new_shape=np.array(shape, np.int32))


def test_planners_are_compared_on_the_same_buffers(place: Place) -> None:
    make = ModelMaker()
    tensors = [make.tensor((100,), name=name) for name in "xabcdy"]
    for one, other in pairwise(tensors):
        make.op("NEG", [one], [other])
    make.io(tensors[:1], tensors[-1:])
    (arena,) = describe(str(place("m.tflite", make.model())))["arenas"]
    assert (arena["subgraph"], arena["steps"]) == (0, 5)
    assert {plan["planner"]: plan["bytes"] for plan in arena["plans"]} == {
        "TFLite": 1296,  # offsets are multiples of 64
        "TFLite Micro, greedy": 1200,
        "searched": 1200,
        "TFLite Micro, linear": 2400,
    }
    assert {plan["lower_bound"] for plan in arena["plans"]} == {1200}
    for plan in arena["plans"]:
        assert sorted((size, first, last) for _, _, size, first, last in plan["buffers"]) == sorted(
            (size, first, last) for _, _, size, first, last in arena["plans"][0]["buffers"]
        )


def test_statistics_of_constants(place: Place) -> None:
    make = ModelMaker()
    real = make.constant(np.arange(-50, 50), np.float32, TensorType.FLOAT32, name="real")
    stored = models.quantization(0.5, 10)
    levels = make.constant(np.arange(-28, 72), np.int8, TensorType.INT8, name="levels", quantization=stored)
    few = make.constant([1, 2, 3], np.float32, TensorType.FLOAT32, name="few")
    wild = make.constant([np.nan, np.inf] * 8 + [1.0], np.float32, TensorType.FLOAT32, name="wild")
    make.io([real], [levels, few, wild])
    report = describe(str(place("m.tflite", make.model())))
    tensors = report["subgraphs"][0]["tensors"]
    found = named(tensors, "real")["statistics"]
    assert (found["count"], found["min"], found["max"], found["mean"], found["zeros"]) == (100, -50, 49, -0.5, 0.01)
    assert found["std"] == pytest.approx(np.arange(100).std())
    assert (len(found["bars"]), sum(found["bars"]), found["between"]) == (BARS, 100, [-50, 49])
    assert "at_limits" not in found
    found = named(tensors, "levels")["statistics"]
    assert (found["min"], found["max"], found["at_limits"]) == (-19, 30.5, 0)
    assert found["bars"] == [3] * 33 + [1]  # a bar is three levels
    assert "statistics" not in named(tensors, "few")
    assert named(tensors, "wild")["statistics"] == {
        "count": 17, "not_finite": 16, "min": 1, "max": 1, "mean": 1, "std": 0, "zeros": 0,
        "between": [1, 1], "bars": [1],
    }  # fmt: skip
    assert report["summary"]["parameters"] == 100 + 100 + 3 + 17


def test_statistics_of_samples(place: Place, tmp_path: Path) -> None:
    path = place("m.tflite", chain())
    samples = np.arange(200, dtype=np.float32).reshape(2, 1, 100)
    np.save(tmp_path / "samples.npy", samples)
    done: list[int] = []
    report = describe(str(path), samples=samples_from(str(tmp_path / "samples.npy"), str(path)), progress=done.append)
    assert (report["sampled"], done) == (True, [1, 2])
    for name, low, high in (("x", 0, 199), ("a", 1, 200), ("b", 1, 200), ("y", 2, 400)):
        found = named(report["subgraphs"][0]["tensors"], name)["statistics"]
        assert (found["count"], found["min"], found["max"]) == (200, low, high)


def test_samples_that_do_not_fit(place: Place) -> None:
    with pytest.raises(ConvertError, match="sample 0"):
        describe(str(place("m.tflite", chain())), samples=[[np.zeros(3, np.float32)] * 2])


def test_a_model_that_cannot_be_allocated_has_a_report(place: Place) -> None:
    make = ModelMaker()
    x, y = make.tensor((2, 3), name="x"), make.tensor((5,), name="y")
    other = make.constant(np.zeros(5), np.float32, TensorType.FLOAT32)
    make.op("ADD", [x, other], [y], AddOptions())
    make.io([x], [y])
    report = describe(str(place("m.tflite", make.model())), profile=lambda: pytest.fail("there is nothing to measure"))
    assert "ADD (node 0" in report["summary"]["failure"]
    assert (report["arenas"], report["profile"]) == ([], None)
    assert "ADD" in report["micro"]["error"]
    assert [box["title"] for box in report["subgraphs"][0]["boxes"]] == ["input", "ADD", "output"]


def test_subgraphs_and_circles(place: Place) -> None:
    """Each subgraph has its drawing, and an output that is an input too is an edge."""
    assert len(describe(str(place("m.tflite", nested())))["subgraphs"]) > 1
    (graph,) = describe(str(place("e.tflite", models.echo((1, 2)))))["subgraphs"]
    assert ([box["title"] for box in graph["boxes"]], graph["edges"]) == (["input", "output"], [[0, 1, 0, []]])


def test_times_and_kernels(place: Place, gossamer: Run) -> None:
    result = gossamer("report", place("m.tflite", models.convolution()), "--profile", "--runs", 3, "--json")
    assert (result.code, result.err) == (0, "")
    profile, operators = result.json["profile"], result.json["subgraphs"][0]["operators"]
    assert profile["runs"] == 3
    assert sum(operator["us"] for operator in operators) == pytest.approx(profile["us"] - profile["outside_us"])
    assert all(operator["us"] > 0 for operator in operators if operator["kernels"])
    assert "arguments" not in profile["programs"][0]["commands"][0]


def test_a_page_has_all_within(place: Place) -> None:
    pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
    data = describe(str(place("m.tflite", chain())))
    html = page(data, library())
    assert not re.search(r"<(link|img|iframe)\b|<script[^>]*\bsrc=|url\(|@import", html)
    assert "default-src 'none'" in html
    assert json.loads(packed(html, "data"))["subgraphs"][0]["boxes"] == data["subgraphs"][0]["boxes"]
    assert "Bokeh" in packed(html, "library")
    assert html == page(data, library())


def test_names_are_text(place: Place) -> None:
    pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
    evil = "</script><script>alert(1)</script>$style"
    html = page(describe(str(place("<b>&.tflite", models.echo((1, 2), name=evil)))), library())
    assert "alert(1)" not in html
    assert "<title>&lt;b>&amp;.tflite</title>" in html
    assert json.loads(packed(html, "data"))["subgraphs"][0]["tensors"][0]["name"] == evil


def test_the_command_writes_a_page(
    gossamer: Run, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
    monkeypatch.chdir(tmp_path)
    path = place("digits.tflite", chain())
    result = gossamer("report", path)
    written = tmp_path / "digits.html"
    assert (result.code, result.err) == (0, "")
    assert result.out == f"wrote digits.html, {written.stat().st_size:,} bytes\n"
    result = gossamer("report", path, "--json", "-o", "other.html")
    assert result.json["summary"]["model"] == str(path)
    assert (tmp_path / "other.html").read_text() == written.read_text()
    assert gossamer("report", path, "--json").code == 0
    assert len(list(tmp_path.glob("*.html"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "report.pdf"], "report.pdf: the report is a page of HTML; give it a name that ends in .html."),
        (["--data", "nowhere.npy"], "nowhere.npy"),
    ],
)
def test_what_cannot_be_done(
    gossamer: Run, place: Place, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = gossamer("report", place("m.tflite", models.echo((1, 2))), *arguments)
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert not list(tmp_path.glob("*.html"))


def test_without_the_library(gossamer: Run, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data need none; a page says how to get it, before anything is measured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "bokeh.resources", None)
    path = place("m.tflite", models.echo((1, 2)))
    assert gossamer("report", path, "--json").code == 0
    result = gossamer("report", path)
    assert (result.code, list(tmp_path.glob("*.html"))) == (1, [])
    assert "gossamer[report]" in result.err
