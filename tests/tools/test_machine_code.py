"""``gossamer inspect --partitions --kernels --dump-ir --dump-asm``: the machine code of a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer import Interpreter
from gossamer.codegen import library
from gossamer.codegen.compiler import compile_kernel, compile_text
from gossamer.codegen.library import walker
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.errors import CompileError
from gossamer.programs.program import walker_name
from gossamer.runtime import engine
from gossamer.schema import TensorType
from gossamer.targets import all_targets
from gossamer.tools._machine_code import describe_partitions, node_ranges, partition_tables
from tests.programs.kernels import target_here
from tests.runtime.graphs import ModelMaker
from tests.tools import models
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]

NO_CODE = "rare: there is no kernel of butterflies"


@pytest.fixture
def model(place: Place) -> Path:
    """CONV_2D, aeq.hadamard_rotation, ADD; the test is skipped where there is no machine code."""
    target_here()
    return place("m.tflite", models.convolution())


def lines(outcome: Outcome) -> list[str]:
    assert (outcome.code, outcome.err) == (0, "")
    return [" ".join(line.split()) for line in outcome.out.splitlines()]


def test_partitions(gossamer: Run, model: Path) -> None:
    (claims,) = gossamer("inspect", model, "--partitions", "--json").json["partitions"]
    first, second = claims.pop("partitions")
    assert claims == {
        "subgraph": 0,
        "delegate": "jit",
        "operators": 3,
        "refusals": [{"node": 1, "operator": "aeq.hadamard_rotation", "reason": NO_CODE}],
    }
    assert (first["nodes"], first["operators"], first["failure"]) == ([0], {"CONV_2D": 1}, None)
    assert (second["nodes"], second["operators"], second["failure"]) == ([2], {"ADD": 1}, None)
    assert (second["commands"], second["kernels"]) == (1, 1)
    printed = lines(gossamer("inspect", model, "--partitions"))
    assert "subgraph 0: jit runs 2 of 3 operators in 2 programs" in printed
    assert f"0 0 1 CONV_2D {first['commands']} {first['kernels']}" in printed
    assert "1 2 1 ADD 1 1" in printed
    assert f"1 aeq.hadamard_rotation {NO_CODE} 1" in printed


def test_kernels(gossamer: Run, model: Path) -> None:
    report = gossamer("inspect", model, "--json").json
    convolution, addition = report["programs"]
    (kernel,) = addition["kernels"]
    assert addition == {
        "subgraph": 0,
        "program": 1,
        "nodes": [2],
        "target": target_here().name,
        "memory": {"arena": 0, "weights": 0, "constants": addition["memory"]["constants"]},
        "kernels": [kernel],
        "total": {"flops": 128, "read": 1024, "written": 512},
        "commands": [
            {
                "kernel": kernel,
                "calls": [],
                "kind": "map",
                "operators": ["ADD 2"],
                "shape": [1, 4, 4, 8],
                "operands": [[1, 4, 4, 8], [1, 4, 4, 8]],
                "flops": 128,
                "read": 1024,
                "written": 512,
                "barrier": True,
                "arguments": addition["commands"][0]["arguments"],
            }
        ],
    }
    assert addition["commands"][0]["arguments"]["y"] == "tensor6+0"
    *_, command = convolution["commands"]
    assert (command["kind"], command["operators"]) == ("contract", ["CONV_2D 0"])
    assert command["flops"] == convolution["total"]["flops"] == 128 * (2 * 27 + 2)
    assert set(command["calls"]) <= set(convolution["kernels"])
    printed = lines(gossamer("inspect", model, "--kernels"))
    assert f"1.0 {kernel} ADD 2 1x4x4x8 0.000 1.02 0.51" in printed
    calls = ", ".join((command["kernel"], *command["calls"]))
    assert any(line.startswith(f"0.{len(convolution['commands']) - 1} {calls} CONV_2D 0 1x4x4x8 ") for line in printed)
    read, written = (sum(program["total"][name] for program in (convolution, addition)) for name in ("read", "written"))
    assert f"total 0.007 {read / 1e3:,.2f} {written / 1e3:,.2f}" in printed


def test_nothing_is_compiled_unless_asked(gossamer: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JitKernel, "prepare", lambda *_: pytest.fail("compiled"))
    assert gossamer("inspect", model, "--operators").code == 0


def test_texts_are_written_and_compile_to_the_same_code(gossamer: Run, model: Path, tmp_path: Path) -> None:
    outcome = gossamer("inspect", model, "--dump-ir", tmp_path / "a" / "ir", "--dump-asm", tmp_path / "asm")
    target = target_here()
    interpreter = Interpreter(str(model))
    interpreter.allocate_tensors()
    specs: dict[str, Any] = {walker_name(target): walker(target)}
    for kernel in interpreter.delegate_kernels():
        assert isinstance(kernel, JitKernel)
        assert kernel.built is not None
        specs |= kernel.built.specs
    assert lines(outcome)[-2:] == [
        f"wrote {len(specs)} files to {tmp_path / 'a' / 'ir'}",
        f"wrote {len(specs)} files to {tmp_path / 'asm'}",
    ]
    assert {path.stem for path in (tmp_path / "asm").glob("*.s")} == set(specs)
    assert all("\nk:\n" in path.read_text() for path in (tmp_path / "asm").iterdir())
    kept = {path.stem: path.read_text() for path in (tmp_path / "a" / "ir").glob("*.ll")}
    assert kept.keys() == specs.keys()
    for name, text in kept.items():
        assert text.splitlines()[0].startswith(f"; llc -O1 -mtriple={target.triple} -mcpu={target.cpu} ")
        assert compile_text(text, target, name) == compile_kernel(specs[name], target)


@pytest.mark.parametrize("name", all_targets())
def test_the_code_for_another_target(gossamer: Run, model: Path, tmp_path: Path, name: str) -> None:
    arguments = ("inspect", model, "--target", name)
    programs = gossamer(*arguments, "--json", "--dump-asm", tmp_path / "asm").json["programs"]
    assert {program["target"] for program in programs} == {name}
    kernels = {kernel for program in programs for kernel in program["kernels"]}
    assert all(f"__{all_targets()[name].plain.name}" in kernel for kernel in kernels)
    assert {path.stem for path in (tmp_path / "asm").iterdir()} == kernels | {walker(all_targets()[name]).name}
    assert f"{programs[1]['kernels'][0]} ADD 2" in "\n".join(lines(gossamer(*arguments, "--kernels")))
    assert gossamer("inspect", model, "--target", "z80").code == 2


@pytest.mark.usefixtures("lenient")
def test_a_program_that_cannot_be_made_is_shown_with_the_reason(
    gossamer: Run, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise CompileError("the compiler is on strike")

    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "compile_kernels", fail)
    report = gossamer("inspect", model, "--json").json
    assert [made["failure"] for made in report["partitions"][0]["partitions"]] == ["the compiler is on strike"] * 2
    assert report["programs"] == []
    printed = lines(gossamer("inspect", model, "--partitions", "--kernels"))
    assert "subgraph 0: jit runs 0 of 3 operators in 0 programs" in printed
    assert "0 0 1 CONV_2D none: the compiler is on strike" in printed
    refused = gossamer("inspect", model, "--dump-ir", tmp_path / "ir")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        f"Error: {model}: no machine code runs it, so there is nothing to write; --partitions says why.\n"
    )


def test_a_cpu_without_a_target(gossamer: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_default_delegate", lambda num_threads: None)
    assert "no delegate: there is no machine code for this CPU" in lines(gossamer("inspect", model, "--partitions"))
    report = gossamer("inspect", model, "--json").json
    assert (report["partitions"], report["programs"]) == ([], [])


def test_a_model_that_cannot_be_allocated(gossamer: Run, place: Place) -> None:
    make = models.ModelMaker()
    x, y = make.tensor((1,), name="x"), make.tensor((1,), name="y")
    make.op("MyOp", [x], [y], custom=True)
    make.io([x], [y])
    path = place("m.tflite", make.model())
    assert "partitions" not in gossamer("inspect", path, "--json").json
    result = gossamer("inspect", path, "--partitions")
    assert (result.code, result.out) == (1, "")
    assert "MyOp" in result.err


def test_node_ranges() -> None:
    assert node_ranges([8, 2, 3, 4, 0]) == "0, 2-4, 8"
    assert node_ranges([]) == ""
    assert node_ranges(range(0, 40, 2)) == "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, …"


def test_what_is_made_when_it_runs() -> None:
    make = ModelMaker()
    x, times, y = make.tensor((2,)), make.tensor((1,), TensorType.INT32), make.tensor((2,))
    make.op("TILE", [x, times], [y])
    make.io([x, times], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    _, late = describe_partitions(interpreter)
    (_, rows), _ = partition_tables(late)
    assert rows == [(0, "0", "1 TILE", "made when it runs", "")]
