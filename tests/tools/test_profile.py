"""``gossamer benchmark --enable_op_profiling``: the time of each kernel. Nothing here depends on how long it takes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.codegen import peak
from gossamer.codegen.peak import Peak
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.errors import CompileError
from gossamer.programs.program import CommandTime, Program
from gossamer.tools._profile import kernel_tables, peak_line, profile
from tests.programs.kernels import target_here
from tests.tools import models
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]
SHORT = ("--num_runs=3", "--min_secs=0", "--warmup_runs=1", "--warmup_min_secs=0")


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 8 GFLOP/s that reads 4 GB/s."""
    target_here()
    monkeypatch.setattr(peak, "measure_peak", lambda target, num_threads: Peak(8e9, 4e9, 32e9))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command takes 1 us more than the one before it, the first 1 us."""
    plain = Program.profile

    def timed(program: Program, *arguments: Any, **settings: Any) -> list[CommandTime]:
        times = plain(program, *arguments, **settings)
        return [CommandTime(name, 1000 * (at + 1), runs) for at, (name, _, runs) in enumerate(times)]

    monkeypatch.setattr(Program, "profile", timed)


def allocated(model: bytes) -> Interpreter:
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((1, 4, 4, 3), np.float32))
    return interpreter


def test_time_of_every_command(clock: None) -> None:
    interpreter = allocated(models.convolution())
    report = profile(interpreter, interpreter.invoke, 5)
    convolution, addition = report["programs"]
    (add,) = addition["commands"]
    assert (report["runs"], report["peak"]) == (5, {"flops_per_s": 8e9, "bytes_per_s": 4e9, "byte_flops_per_s": 32e9})
    assert [c["us"] for c in convolution["commands"]] == [float(n + 1) for n in range(len(convolution["commands"]))]
    assert (add["us"], add["operators"]) == (1.0, ["ADD 2"])
    assert add["flops_per_s"] == pytest.approx(128e6)
    assert add["bytes_per_s"] == pytest.approx((1024 + 512) * 1e6)
    inside = sum(c["us"] for program in report["programs"] for c in program["commands"])
    (rotation,) = (one for one in report["operators"] if one["runs_by"] == "reference")
    assert (rotation["type"], rotation["nodes"]) == ("aeq.hadamard_rotation", (1,))
    assert report["us"] == pytest.approx(inside + rotation["us"] + report["outside_us"])
    assert [one["nodes"] for one in report["operators"]] == [(0,), (1,), (2,)]
    shares = sum(one["share"] for one in report["operators"])
    assert shares + report["outside_us"] / report["us"] == pytest.approx(1)
    kernels = report["kernels"]
    assert [kernel["us"] for kernel in kernels] == sorted((kernel["us"] for kernel in kernels), reverse=True)
    assert sum(kernel["us"] for kernel in kernels) == pytest.approx(inside)
    assert sum(kernel["commands"] for kernel in kernels) == len(convolution["commands"]) + 1
    assert {tuple(kernel["kernels"]) for kernel in kernels} == {
        (c["kernel"], *c["calls"]) for program in report["programs"] for c in program["commands"]
    }


def test_every_call_computes_what_it_computes_without_a_clock() -> None:
    interpreter = allocated(models.convolution())
    results: list[np.ndarray] = []

    def call() -> None:
        interpreter.set_tensor(0, np.full((1, 4, 4, 3), len(results), np.float32))
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))

    profile(interpreter, call, 2)
    assert len(results) == 4
    reference = allocated(models.convolution())
    for number, result in enumerate(results):
        reference.set_tensor(0, np.full((1, 4, 4, 3), number, np.float32))
        reference.invoke()
        np.testing.assert_array_equal(result, reference.get_tensor(reference.get_output_details()[0]["index"]))
    kernels = interpreter.delegate_kernels()
    assert all(isinstance(kernel, JitKernel) and kernel._observer is None for kernel in kernels)


def test_every_run_of_a_model_counts(clock: None) -> None:
    interpreter = allocated(models.convolution())

    def twice() -> None:
        interpreter.invoke()
        interpreter.invoke()

    report = profile(interpreter, twice, 3)
    (add,) = report["programs"][1]["commands"]
    assert (add["us"], add["runs"], report["runs"]) == (1.0, 1, 6)
    assert add["flops_per_s"] == pytest.approx(128e6)


def test_tables(clock: None) -> None:
    interpreter = allocated(models.convolution())
    report = profile(interpreter, interpreter.invoke, 5)
    (title, (columns, rows)), (_, (_, kernels)) = kernel_tables(report)
    assert title == "Commands in their order, median of 5 runs"
    (add,) = report["programs"][1]["commands"]
    share = f"{add['share']:.1%}"
    assert columns[-7:] == (">us", ">share", ">GFLOP/s", ">of peak", ">GB/s", ">of memory", ">of roofline")
    assert rows[-2] == ("1.0", add["kernel"], "ADD 2", "1x4x4x8", "1.0", share, "0.1", "2%", "1.5", "38%", "38%")
    assert rows[-1][1] == "outside the programs"
    assert all(len(row) == len(columns) for row in rows)
    assert (1, add["kernel"], "1.0", share, "0.1", "2%", "1.5", "38%", "38%") in kernels
    assert peak_line(report["peak"]).startswith(
        "peak: 8.0 GFLOP/s of multiply-adds, 32.0 of products of bytes; memory: 4.0 GB/s "
    )


def test_without_peaks_there_are_no_shares_of_them(clock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Peak:
        raise CompileError("no compiler")

    monkeypatch.setattr(peak, "measure_peak", fail)
    interpreter = allocated(models.convolution())
    report = profile(interpreter, interpreter.invoke, 1)
    assert report["peak"] is None
    (_, (_, rows)), _ = kernel_tables(report)
    assert rows[-2][-5:] == ("0.1", "", "1.5", "", "")
    assert peak_line(None).startswith("peaks were not measured")


@pytest.mark.parametrize("flag", ["--enable_op_profiling", "--enable_op_profiling=true", "--profile"])
def test_the_flag_of_benchmark_model(gossamer: Run, place: Place, flag: str) -> None:
    path = place("m.tflite", models.convolution())
    report = gossamer("benchmark", path, *SHORT, flag, "--json").json
    assert report["profile"]["runs"] == 3
    assert [program["nodes"] for program in report["profile"]["programs"]] == [[0], [2]]
    outcome = gossamer("benchmark", path, *SHORT, flag)
    assert (outcome.code, outcome.err) == (0, "")
    assert "Commands in their order, median of 3 runs" in outcome.out
    assert "outside the programs" in outcome.out
    assert "ADD 2" in outcome.out


def test_without_programs_the_reference_kernels_are_timed(gossamer: Run, place: Place) -> None:
    path = place("m.tflite", models.convolution())
    arguments = ("benchmark", path, *SHORT, "--reference", "--profile")
    report = gossamer(*arguments, "--json").json["profile"]
    assert [(one["nodes"], one["runs_by"]) for one in report["operators"]] == [([n], "reference") for n in range(3)]
    assert (report["programs"], report["kernels"], report["peak"]) == ([], [], None)
    assert "no program of machine code runs" in gossamer(*arguments).out
    assert "profile" not in gossamer("benchmark", path, *SHORT, "--json").json
    assert "profile" not in gossamer("benchmark", path, "--dry_run", "--profile", "--json").json


def test_the_tables_of_benchmark_model(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = place("m.tflite", models.convolution())
    out = gossamer("benchmark", path, *SHORT, "--profile").out
    places = [
        out.index(text)
        for text in (
            "Operator-wise Profiling Info for Regular Benchmark Runs:",
            "=== Run Order ===",
            "[node type]",
            "\t[y]:2",
            "=== Top by Computation Time ===",
            "Number of nodes executed: 3",
            "=== Summary by node type ===",
            "[Node type]",
            "Commands in their order",
        )
    ]
    assert places == sorted(places)
    there = tmp_path / "table.txt"
    out = gossamer("benchmark", path, *SHORT, "--profile", f"--op_profiling_output_file={there}").out
    assert "Run Order" not in out
    assert "Run Order" in there.read_text()


def test_csv(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path = place("m.tflite", models.convolution())
    files = [tmp_path / name for name in ("a.csv", "b.csv")]
    for flags in (
        ["--profile", "--op_profiling_output_mode=csv", f"--op_profiling_output_file={files[0]}"],
        [f"--profiling_output_csv_file={files[1]}"],
    ):
        assert gossamer("benchmark", path, *SHORT, *flags).code == 0
    out = gossamer("benchmark", path, *SHORT, "--profile", "--op_profiling_output_mode=csv").out
    for text in (*[file.read_text() for file in files], out[out.index("node type,") :]):
        rows = list(csv.reader(text.splitlines()))
        assert rows[0] == ["node type", "start", "first", "avg_ms", "%", "cdf%", "mem KB", "times called", "name"]
        assert [(row[0], row[7], row[8]) for row in rows[1:4]] == [
            ("CONV_2D", "1", "[a]:0"), ("aeq.hadamard_rotation", "1", "[t5]:1"), ("ADD", "1", "[y]:2"),
        ]  # fmt: skip
        assert float(rows[3][5]) == pytest.approx(100, abs=0.01)
        assert rows[5] == ["node type", "count", "avg_ms", "avg %", "cdf%", "mem KB", "times called"]
        assert {row[0] for row in rows[6:9]} == {row[0] for row in rows[1:4]}


def test_a_trace(gossamer: Run, place: Place, tmp_path: Path) -> None:
    path, there = place("m.tflite", models.convolution()), tmp_path / "trace.json"
    assert gossamer("benchmark", path, *SHORT, f"--trace={there}").code == 0
    events = json.loads(there.read_text())["traceEvents"]
    assert len([event for event in events if event.get("cat") == "invoke"]) == 3
