"""``gossamer benchmark``: its loop, its figures, its flags. Nothing here depends on how long anything takes."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from gossamer import Interpreter, OpResolverType
from gossamer.inputs import session as _session
from gossamer.inputs.random_values import random_input
from gossamer.phases import NAMES
from gossamer.schema import TensorType
from gossamer.tools._benchmark_flags import IGNORED, REFUSED
from gossamer.tools.benchmark import Limits, Timings, command, measure
from tests.conftest import ROOT
from tests.inputs.ports import port
from tests.programs.kernels import target_here
from tests.tools import models
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]
SHORT = ("--num_runs=3", "--min_secs=0", "--warmup_runs=1", "--warmup_min_secs=0")


class Clock:
    """A clock that only moves when somebody works or sleeps."""

    def __init__(self, durations: Iterator[float]) -> None:
        self.now = 0.0
        self.durations = durations
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def work(self) -> None:
        self.now += next(self.durations)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def run(limits: Limits, *durations: float) -> tuple[list[float], Clock]:
    clock = Clock(iter(durations))
    return measure(clock.work, limits, clock, clock.sleep).microseconds, clock


def test_runs_until_count_and_time_are_reached() -> None:
    assert run(Limits(3, 0, 100), 0.5, 0.25, 0.125)[0] == [5e5, 2.5e5, 1.25e5]
    assert len(run(Limits(1, 1.0, 100), *[0.25] * 9)[0]) == 4
    assert len(run(Limits(9, 0, 1.0), *[0.5] * 9)[0]) == 3
    assert run(Limits(0, 0, 100))[0] == []


def test_pauses_between_runs_are_not_measured() -> None:
    timings, clock = run(Limits(3, 0, 100, delay=0.25), *[0.5] * 3)
    assert timings == [5e5] * 3
    assert clock.slept == [0.25] * 3
    timings, clock = run(Limits(3, 0, 100, frequency=1.0), 0.5, 1.25, 0.5)
    assert timings == [5e5, 1.25e6, 5e5]
    assert clock.slept == [0.5, 0.25]  # the third run begins at once and still ends before 3 s


def test_statistics() -> None:
    timings = Timings([float(value) for value in range(100, -1, -1)])
    assert [timings.percentile(percent) for percent in (0, 5, 50, 95, 100)] == [0, 5, 50, 95, 100]
    assert timings.average == 50
    assert timings.deviation == pytest.approx(math.sqrt(850))
    assert Timings([1, 2, 3, 4]).percentile(50) == 2
    assert timings.data() == {
        "count": 101,
        "avg_us": 50.0,
        "std_us": pytest.approx(math.sqrt(850)),
        "min_us": 0.0,
        "max_us": 100.0,
        "p5_us": 5.0,
        "p50_us": 50.0,
        "p95_us": 95.0,
    }
    assert Timings().data() == {"count": 0}
    assert math.isnan(Timings().average)


def test_lines_of_benchmark_model() -> None:
    assert Timings([3.0, 1.0]).line() == "count=2 first=3 curr=1 min=1 max=3 avg=2 std=1 p5=1 median=1 p95=1"
    assert Timings([2.0]).line() == "count=1 curr=2"
    assert Timings([2.0, 2.0]).line() == "count=2 curr=2(all same)"
    assert Timings().line() == "count=0"


def test_figures_as_json(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    result = gossamer("benchmark", path, *SHORT, "--json")
    assert (result.code, result.err) == (0, "")
    report = result.json
    assert list(report) == [
        "model",
        "signature",
        "model_bytes",
        "init_us",
        "phases_us",
        "first_inference_us",
        "warmup",
        "inference",
        "throughput_per_s",
        "memory",
        "coverage",
    ]
    assert (report["model"], report["signature"], report["model_bytes"]) == (str(path), None, path.stat().st_size)
    assert list(report["init_us"]) == ["load", "allocate", "total"]
    assert list(report["phases_us"]) == list(NAMES)
    assert {"file", "model", "subgraphs", "delegates", "prepare"} <= {n for n, us in report["phases_us"].items() if us}
    assert sum(report["phases_us"].values()) <= report["init_us"]["total"]
    assert (report["warmup"]["count"], report["inference"]["count"]) == (1, 3)
    assert report["throughput_per_s"] == pytest.approx(1e6 / report["inference"]["avg_us"])
    assert list(report["memory"]) == ["init_bytes", "overall_bytes", "peak_bytes"]


def test_lines_and_table_for_people(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    result = gossamer("benchmark", f"--graph={path}", "--num_threads=1", *SHORT)
    assert (result.code, result.err) == (0, "")
    lines = [line.strip() for line in result.out.splitlines() if line.strip()]
    beginnings = [
        f"Graph: [{path}]",
        "Num threads: [1]",
        f"The input model file size (MB): {path.stat().st_size / 1e6:g}",
        "Initialized session in ",
        "Running benchmark for at least 1 iterations and at least 0 seconds but terminate if exceeding 150 seconds.",
        "count=1 ",
        "Running benchmark for at least 3 iterations and at least 0 seconds but terminate if exceeding 150 seconds.",
        "count=3 ",
        "Inference timings in us: Init: ",
    ]
    for line, beginning in zip(lines, beginnings, strict=False):
        assert line.startswith(beginning)
    names = [line.split("  ")[0] for line in lines]
    rows = ["load", "allocate", "first call", "average", "standard deviation", "least", "5 %", "median", "95 %", "most"]
    assert [name for name in names if name in rows] == rows


def test_a_dry_run_only_loads(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    for flag in ("--dry_run", "--dry_run=true"):
        report = gossamer("benchmark", path, flag, "--json").json
        assert "inference" not in report
        assert "init_us" in report
    assert "inference" in gossamer("benchmark", path, "--dry_run=false", *SHORT, "--json").json
    assert "average" not in gossamer("benchmark", path, "--dry_run").out


def test_a_signature_is_measured(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    report = gossamer("benchmark", path, "--signature_to_run_for=add", *SHORT, "--json").json
    assert (report["signature"], report["inference"]["count"]) == ("add", 3)


def test_without_warm_up_the_first_run_is_the_first_call(gossamer: Run, place: Place) -> None:
    arguments = ("--num_runs=1", "--min_secs=0", "--warmup_runs=0", "--warmup_min_secs=0", "--json")
    report = gossamer("benchmark", place("m.tflite", models.addition()), *arguments).json
    assert report["warmup"] == {"count": 0}
    assert report["first_inference_us"] == report["inference"]["avg_us"]


def test_allow_fp16_allows_reduced_precision(gossamer: Run, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = []

    class Watched(Interpreter):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            allowed.append(options["allow_reduced_precision"])
            super().__init__(*arguments, **options)

    monkeypatch.setattr(_session, "Interpreter", Watched)
    path = place("m.tflite", models.addition())
    for flags in ([], ["--allow_fp16"], ["--allow_fp16=true"], ["--allow_fp16=false"]):
        result = gossamer("benchmark", path, "--dry_run", *flags)
        assert ("Allow fp16: [1]" in result.out) == allowed[-1]
    assert allowed == [False, True, True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give one model, as MODEL or as --graph=MODEL."),
        (["m.tflite", "--graph=m.tflite"], "Give one model, as MODEL or as --graph=MODEL."),
        (["m.tflite", "--use_gpu=true"], "--use_gpu of benchmark_model is not here: there is no GPU delegate."),
        (["m.tflite", "--op_profiling_output_mode=proto"], "'proto' is not one of 'stdout', 'csv'."),
        (["m.tflite", "--report=figures.txt"], "'figures.txt' must end with .json or .csv."),
        (["m.tflite", "--num_thread=1"], "--num_threads"),
        (["m.tflite", "--num_threads=0"], "0 threads cannot run anything; -1 leaves the number to the runtime."),
        (["m.tflite", "--num_runs=x"], "'x' is not a valid integer"),
    ],
)
def test_flags_that_are_refused(gossamer: Run, arguments: list[str], message: str) -> None:
    result = gossamer("benchmark", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_every_flag_of_benchmark_model_is_taken_ignored_or_refused(gossamer: Run, place: Place) -> None:
    options = {name.removeprefix("--") for one in command.params for name in one.opts if name.startswith("--")}
    assert not options & IGNORED.keys()
    assert not options & REFUSED.keys()
    assert not IGNORED.keys() & REFUSED.keys()
    path = place("m.tflite", models.addition())
    for flag, reason in REFUSED.items():
        result = gossamer("benchmark", path, f"--{flag}=true")
        assert (result.code, result.out) == (2, "")
        assert f"--{flag} of benchmark_model is not here: {reason}" in " ".join(result.err.split())
    unasked = [f"--{flag}=false" for flag in REFUSED]
    out = gossamer("benchmark", path, "--dry_run", *[f"--{flag}=1" for flag in IGNORED], *unasked).out
    for flag, reason in IGNORED.items():
        assert f"--{flag} changes nothing: {reason}\n" in out
    assert not any(flag in out for flag in REFUSED)


def test_the_page_lists_all_flags(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "benchmark.md"
    said = page.read_text()
    found = FLAGS.sub(lambda match: match[1] + flag_table() + match[3], said)
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
    else:
        assert found == said


FLAGS = re.compile(r"^(<!-- flags -->\n)(.*?)(^<!-- end of flags -->)", re.DOTALL | re.MULTILINE)

OURS = {"--trace", "--report", "--reference", "--json"}
"""Options that benchmark_model does not have."""


def flag_table() -> str:
    rows = {
        option.opts[0]: (option.help or "") + (" Not of benchmark_model." if option.opts[0] in OURS else "")
        for option in command.params
        if isinstance(option, click.Option)
    }
    rows |= {f"--{flag}": f"*changes nothing:* {reason}" for flag, reason in IGNORED.items()}
    rows |= {f"--{flag}": f"*refused:* {reason}" for flag, reason in REFUSED.items()}
    lines = [f"| `{flag}` | {text} |" for flag, text in sorted(rows.items(), key=lambda row: row[0])]
    return "\n".join(["", "| flag | |", "|---|---|", *lines, "", ""])


def test_names_and_all_options(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    out = gossamer("benchmark", path, "--dry_run", "--benchmark_name=nightly").out
    assert out.startswith("Benchmark name: [nightly]\n")
    assert "num_runs: " not in out
    assert "num_runs: [50]\n" in gossamer("benchmark", path, "--dry_run", "--verbose").out
    assert gossamer("benchmark", path, "--dry_run", "--benchmark_name=nightly", "--json").json["benchmark_name"] == (
        "nightly"
    )


def test_the_line_on_the_peak(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    line = "Overall peak memory footprint (MB): "
    assert line in gossamer("benchmark", path, "--dry_run", "--report_peak_memory_footprint=true").out
    assert line not in gossamer("benchmark", path, "--dry_run").out


def test_full_delegation_can_be_required(gossamer: Run, place: Place) -> None:
    target_here()
    path = place("c.tflite", models.convolution())
    result = gossamer("benchmark", path, "--dry_run", "--require_full_delegation")
    assert (result.code, result.out) == (1, "")
    assert "--require_full_delegation: " in result.err
    assert "aeq.hadamard_rotation" in result.err
    path = place("m.tflite", models.addition())
    assert gossamer("benchmark", path, "--dry_run", "--require_full_delegation").code == 0


def test_settings_of_the_interpreter(gossamer: Run, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    class Watched(Interpreter):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            seen.append(options)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(_session, "Interpreter", Watched)
    path = place("m.tflite", models.addition())
    for flags in ([], ["--disable_delegate_clustering"], ["--use_xnnpack=false"], ["--use_xnnpack=true"]):
        assert gossamer("benchmark", path, "--dry_run", *flags).code == 0
    assert [one["experimental_disable_delegate_clustering"] for one in seen] == [False, True, False, False]
    automatic, none = OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    resolvers = [one["experimental_op_resolver_type"] for one in seen]
    assert resolvers == [automatic, automatic, none, automatic]


def test_outputs_are_written(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path, there = place("m.tflite", models.addition()), tmp_path / "out.bin"
    place("a.bin", np.array([1, 2], np.float32).tobytes())
    files = f"--input_layer_value_files=a:{tmp_path / 'a.bin'},b:{tmp_path / 'a.bin'}"
    for signature in ([], ["--signature_to_run_for=add"]):
        names = files if not signature else files.replace("a:", "left:").replace("b:", "right:")
        assert gossamer("benchmark", path, *SHORT, names, *signature, f"--output_filepath={there}").code == 0
        assert np.frombuffer(there.read_bytes(), np.float32).tolist() == [2, 4]
        there.unlink()


def test_signatures_are_listed(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    assert gossamer("benchmark", path, "--list_signatures").out == "add: left, right -> total\n"
    report = gossamer("benchmark", path, "--list_signatures=true", "--json").json
    assert report == {"signatures": {"add": {"inputs": ["left", "right"], "outputs": ["total"]}}}
    path = place("e.tflite", models.echo((1,)))
    assert gossamer("benchmark", path, "--list_signatures").out == "The model has no signatures.\n"


def test_tensors_are_shown(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    widths = ("--tensor_name_display_length=2", "--tensor_type_display_length=5", "--alloc_type_display_length=5")
    for flag, when in (("--print_preinvoke_state", "before the first"), ("--print_postinvoke_state", "after the last")):
        out = gossamer("benchmark", path, *SHORT, flag, *widths).out
        assert f"Tensors of subgraph 0 {when} run:\n    0 a  FLOAT ARENA            8 1x2\n" in out
        assert "    2 su FLOAT ARENA            8 1x2\n" in out


def test_figures_in_a_file(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = place("m.tflite", models.addition())
    there = tmp_path / "figures.json"
    assert gossamer("benchmark", path, *SHORT, f"--report={there}").code == 0
    assert json.loads(there.read_text())["inference"]["count"] == 3
    there = tmp_path / "figures.csv"
    assert gossamer("benchmark", path, *SHORT, f"--report={there}").code == 0
    rows = dict(csv.reader(there.read_text().splitlines()))
    assert (rows["figure"], rows["model"], rows["inference.count"]) == ("value", str(path), "3")
    assert float(rows["phases_us.model"]) > 0


def test_the_phases_for_people(gossamer: Run, place: Place) -> None:
    out = gossamer("benchmark", place("m.tflite", models.addition()), *SHORT).out
    after = out[out.index("From the file to the result") :]
    names = [line.strip().split("  ")[0] for line in after.splitlines()]
    known = [*NAMES, "first run", "steady state"]
    shown = [name for name in names if name in known]
    assert shown == [name for name in known if name in shown]
    assert {"model", "prepare", "first run", "steady state"} <= set(shown)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--input_layer=a", "--input_layer has 1 names and --input_layer_shape 0 shapes; each name needs a shape."),
        ("--input_layer=q --input_layer_shape=1,2", "the model has no input 'q'. Its inputs are a, b."),
        ("--input_layer=a --input_layer_shape=1,x", "'1,x' must be whole numbers separated by commas."),
        ("--input_layer=a --input_layer_shape=1,-2", "'1,-2' has a negative dimension."),
        ("--input_layer_value_range=a,0,1", "'a' is float32; ranges are for integer inputs."),
        ("--input_layer_value_files=a", "'a' must be NAME:FILE."),
    ],
)
def test_inputs_that_are_refused(gossamer: Run, place: Place, flag: str, message: str) -> None:
    result = gossamer("benchmark", place("m.tflite", models.addition()), *flag.split())
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_shapes_and_files_of_inputs(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = place("m.tflite", models.addition())
    np.save(tmp_path / "b.npy", np.ones((5, 2), np.float32))
    place("a.bin", np.ones(10, np.float32).tobytes())
    flags = [
        "--input_layer=left,b",
        "--input_layer_shape=5,2:5,2",
        f"--input_layer_value_files=a:{tmp_path / 'a.bin'},right:{tmp_path / 'b.npy'}",
    ]
    assert gossamer("benchmark", path, *flags, *SHORT).code == 0
    result = gossamer("benchmark", path, flags[0], "--input_layer_shape=4,2:4,2", flags[2], *SHORT)
    assert result.code == 1
    assert 'a.bin: 40 bytes, the input "a" float32 [?, 2] takes 32.' in result.err


def test_ranges_of_integer_inputs(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.echo((1, 2), TensorType.INT32))
    assert gossamer("benchmark", path, "--input_layer_value_range=x,5,5", *SHORT).code == 0
    for text, message in (
        ("x,5", "'x,5' must be NAME,LOW,HIGH with LOW <= HIGH."),
        ("x,6,5", "'x,6,5' must be NAME,LOW,HIGH with LOW <= HIGH."),
        ("x,0,3000000000", "'x,0,3000000000' exceeds int32, -2147483648 to 2147483647."),
    ):
        result = gossamer("benchmark", path, f"--input_layer_value_range={text}")
        assert result.code == 2
        assert message in result.err


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.float32, -0.5, 0.5),
        (np.uint8, 0, 254),
        (np.int8, -127, 127),
        (np.int16, 0, 99),
        (np.int64, 0, 99),
        (np.bool_, 0, 1),
    ],
)
def test_random_inputs(dtype: type[np.generic], low: float, high: float) -> None:
    values = random_input(port(1000, dtype=dtype), (1000,))
    assert values.dtype == np.dtype(dtype)
    assert values.shape == (1000,)
    assert low <= values.min() < values.max() <= high
    np.testing.assert_array_equal(values, random_input(port(1000, dtype=dtype), (1000,)))
    if dtype is np.int64:
        assert np.unique(random_input(port(1000, dtype=dtype), (1000,), (3, 4))).tolist() == [3, 4]


def test_random_text_and_complex_numbers() -> None:
    assert random_input(port(2, dtype=np.object_), (2,)).tolist() == [b"gossamer"] * 2
    assert random_input(port(2, dtype=np.complex64), (2,)).dtype == np.complex64


def test_what_is_slow_is_said(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.addition())
    result = gossamer("benchmark", path, *SHORT, "--reference")
    assert "operators run" in result.out or "operator runs" in result.out
    assert "The default delegate is not wanted." in " ".join(result.out.split())
    assert "reference kernels" not in gossamer("benchmark", path, *SHORT).out
