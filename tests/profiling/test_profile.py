"""`gossamer.profile`: what is in it. Nothing here depends on how long anything takes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Interpreter, OpResolverType
from gossamer.codegen import library, peak
from gossamer.codegen.peak import Peak
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.errors import CompileError
from gossamer.profiling import KernelTime, Profile, Roofline
from gossamer.programs.program import Program
from gossamer.records import replace
from gossamer.schema import AddOptions, ReshapeOptions, TensorType, WhileOptions
from tests.programs.kernels import target_here
from tests.runtime.graphs import ModelMaker
from tests.tools import models


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 8 GFLOP/s that reads 4 GB/s."""
    target_here()
    monkeypatch.setattr(peak, "measure_peak", lambda target, num_threads: Peak(8e9, 4e9, 32e9))


def allocated(model: bytes, **settings: Any) -> Interpreter:
    interpreter = Interpreter(model_content=model, **settings)
    interpreter.allocate_tensors()
    for one in interpreter.get_input_details():
        interpreter.set_tensor(one["index"], np.ones(one["shape"], one["dtype"]))
    return interpreter


def doubling(limit: float) -> bytes:
    """x is doubled as long as it is below the limit."""
    make = ModelMaker()
    x, y = make.tensor(()), make.tensor((), name="y")
    make.op("WHILE", [x], [y], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x], [y])
    make.subgraph("condition")
    x, less = make.tensor(()), make.tensor((), TensorType.BOOL)
    make.op("LESS", [x, make.constant(limit, np.float32, TensorType.FLOAT32)], [less])
    make.io([x], [less])
    make.subgraph("body")
    x, twice = make.tensor(()), make.tensor((), name="twice")
    make.op("ADD", [x, x], [twice], AddOptions())
    make.io([x], [twice])
    return make.model()


def test_every_node_and_every_command_is_in_it_once_a_run() -> None:
    interpreter = allocated(models.convolution())
    with gossamer.profile(interpreter) as p:
        for _ in range(3):
            interpreter.invoke()
    assert len(p.calls) == 3
    assert [(one.nodes, one.type, one.runs_by, one.runs) for one in p.operators] == [
        ((0,), "CONV_2D", "jit", 1),
        ((1,), "aeq.hadamard_rotation", "reference", 1),
        ((2,), "ADD", "jit", 1),
    ]
    assert p.operators[2].name == "y"
    kernels = [kernel for kernel in interpreter.delegate_kernels() if isinstance(kernel, JitKernel)]
    commands = [len(kernel.program.plan.commands) for kernel in kernels if kernel.program is not None]
    expected = [(program, command) for program, count in enumerate(commands) for command in range(count)]
    assert [(one.program, one.command) for one in p.kernels] == expected
    assert {one.runs for one in p.kernels} == {1}
    assert math.fsum(one.flops for one in p.operators) == math.fsum(one.flops for one in p.kernels) > 0


def test_the_parts_of_a_call_lie_in_it_and_add_up() -> None:
    interpreter = allocated(models.convolution())
    with gossamer.profile(interpreter) as p:
        interpreter.invoke()
    (call,) = p.calls
    inside = sum(sum(time.ns for time in span.times) for span in call.children)
    for before, after in zip(call.children, call.children[1:], strict=False):
        assert call.begin <= before.begin <= before.end <= after.begin <= after.end <= call.end
    assert 1e3 * math.fsum(one.us for one in p.operators) == pytest.approx(inside + call.children[1].ns)
    assert p.outside_us == pytest.approx(p.invoke_us - math.fsum(one.us for one in p.operators))


def test_a_node_without_a_command_is_there_too() -> None:
    make = ModelMaker()
    x, flat, y = make.tensor((2, 2)), make.tensor((4,)), make.tensor((4,))
    shape = make.constant([4], np.int32, TensorType.INT32)
    make.op("RESHAPE", [x, shape], [flat], ReshapeOptions(new_shape=np.array([4], np.int32)))
    make.op("ADD", [flat, flat], [y], AddOptions())
    make.io([x], [y])
    interpreter = allocated(make.model())
    with gossamer.profile(interpreter) as p:
        interpreter.invoke()
    assert {(one.type, one.nodes): one.runs for one in p.operators} == {("ADD", (1,)): 1, ("RESHAPE", (0,)): 0}


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
def test_what_a_loop_runs_counts_as_often(resolver: OpResolverType) -> None:
    interpreter = allocated(doubling(20), experimental_op_resolver_type=resolver)
    with gossamer.profile(interpreter) as p:
        interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]) == 32
    runs = {(one.subgraph, one.type, one.nodes): one.runs for one in p.operators}
    assert runs[0, "WHILE", (0,)] >= 1
    if resolver is OpResolverType.AUTO:  # where a single kernel takes all turns
        assert runs.keys() == {(0, "WHILE", (0,)), (1, "LESS", (0,))}
        return
    assert runs == {(0, "WHILE", (0,)): 1, (1, "LESS", (0,)): 6, (2, "ADD", (0,)): 5}
    assert [one.name for one in p.operators if one.type == "ADD"] == ["twice"]
    # What the loop runs is no part of its own time.
    (call,) = p.calls
    assert 1e3 * math.fsum(one.us for one in p.operators) <= call.ns


def test_off_nothing_is_in_the_way_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = allocated(models.addition())
    interpreter.invoke()
    interpreter.invoke()
    engine = interpreter._engine
    was = engine.executor.sole
    assert was is not None
    assert was.again is not None  # which `invoke` calls, and nothing else
    with gossamer.profile(interpreter):
        assert engine.executor.sole is None
        interpreter.invoke()
        assert engine.executor.sole is None
    interpreter.invoke()
    interpreter.invoke()
    assert engine.recorder is None
    assert all(subgraph.recorder is None for subgraph in engine.subgraphs)
    assert all(kernel._observer is None for kernel in interpreter.delegate_kernels() if isinstance(kernel, JitKernel))
    now = engine.executor.sole
    assert type(now) is type(was)
    assert now is not None
    assert type(now.again) is type(was.again)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a hook was called")

    for name in ("begin", "end", "_took"):
        monkeypatch.setattr(Profile, name, fail)
    monkeypatch.setattr(Program, "profile", fail)
    monkeypatch.setattr(Program, "run", fail)
    interpreter.invoke()


def test_results_are_the_same() -> None:
    plain, profiled = allocated(models.convolution()), allocated(models.convolution())
    plain.invoke()
    with gossamer.profile(profiled):
        profiled.invoke()
    (index,) = [one["index"] for one in plain.get_output_details()]
    np.testing.assert_array_equal(profiled.get_tensor(index), plain.get_tensor(index))


def test_new_shapes_in_the_middle() -> None:
    interpreter = allocated(models.addition())
    with gossamer.profile(interpreter) as p:
        interpreter.invoke()
        for index in (0, 1):
            interpreter.resize_tensor_input(index, [3, 2])
        interpreter.allocate_tensors()
        for index in (0, 1):
            interpreter.set_tensor(index, np.ones((3, 2), np.float32))
        interpreter.invoke()
    assert len(p.calls) == 2
    assert {one.type for one in p.operators} == {"ADD"}
    assert [one.shape for one in p.kernels][-1] == (3, 2)


def test_a_signature_is_seen() -> None:
    interpreter = Interpreter(model_content=models.addition())
    runner = interpreter.get_signature_runner("add")
    with gossamer.profile(interpreter) as p:
        runner(left=np.ones((1, 2), np.float32), right=np.ones((1, 2), np.float32))
    assert [one.type for one in p.operators] == ["ADD"]


def test_entered_again_calls_add_up() -> None:
    interpreter = allocated(models.addition())
    p = gossamer.profile(interpreter)
    assert repr(p) == "<Profile of no call>"
    for _ in range(2):
        with p:
            interpreter.invoke()
        interpreter.invoke()
    assert len(p.calls) == 2
    assert repr(p).startswith("<Profile of 2 calls: ")


def test_one_profile_at_a_time_of_an_interpreter() -> None:
    interpreter = allocated(models.addition())
    with gossamer.profile(interpreter), pytest.raises(RuntimeError, match="is being profiled already"):
        gossamer.profile(interpreter).__enter__()
    with pytest.raises(TypeError, match=r"profile takes a gossamer\.Interpreter, got str"):
        gossamer.profile("m.tflite")  # type: ignore[arg-type]


def test_what_fails_leaves_nothing_behind() -> None:
    interpreter = allocated(models.addition())
    with pytest.raises(ZeroDivisionError), gossamer.profile(interpreter):
        raise ZeroDivisionError
    assert interpreter._engine.recorder is None


def test_without_the_walker_that_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = allocated(models.addition())

    def fail(*_: object) -> None:
        raise CompileError("no compiler")

    monkeypatch.setattr(library, "ensure", fail)
    with gossamer.profile(interpreter) as p:
        interpreter.invoke()
    assert p.failure == "no compiler"
    assert [(one.type, one.runs_by) for one in p.operators] == [("ADD", "jit")]
    assert p.kernels == []


def test_a_trace_nests(tmp_path: Path) -> None:
    interpreter = allocated(models.convolution())
    with gossamer.profile(interpreter) as p:
        interpreter.invoke()
        interpreter.invoke()
    p.to_chrome_trace(tmp_path / "trace.json")
    events = [event for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if event["ph"] == "X"]
    names = [(event["cat"], event["name"]) for event in events if event["cat"] != "kernel"]
    assert names == 2 * [
        ("invoke", "invoke subgraph 0"),
        ("node", "jit: 1 node"),
        ("node", "aeq.hadamard_rotation 1"),
        ("node", "jit: 1 node"),
    ]
    assert len([event for event in events if event["cat"] == "kernel"]) == 2 * len(p.kernels)
    open_until: list[tuple[str, float]] = []
    for event in events:
        while open_until and event["ts"] >= open_until[-1][1] - 1e-3:
            open_until.pop()
        end = event["ts"] + event["dur"]
        if open_until:
            assert end <= open_until[-1][1] + 1e-3
        depth = ["invoke", "node", "kernel"].index(event["cat"])
        assert len(open_until) == depth
        if event["dur"] > 0:
            open_until.append((event["name"], end))


def kernel(us: float, flops: float, moved: float) -> KernelTime:
    return KernelTime(0, 0, 0, "k", "map", (), ("ADD 2",), (1,), us, us, 1, flops, moved, 0.0)


def test_roofline() -> None:
    roofline = Roofline(8e9, 4e9, 32e9)
    assert [roofline.attainable(intensity) for intensity in (0.5, 2, 4)] == [2e9, 8e9, 8e9]
    assert kernel(2.0, 8000, 1000).intensity == 8
    assert roofline.share(kernel(2.0, 8000, 1000)) == 0.5  # 4 of 8 GFLOP/s
    assert roofline.share(kernel(2.0, 1000, 4000)) == 0.5  # 0.5 of 0.25 * 4 GFLOP/s
    assert roofline.share(kernel(1.0, 0, 4000)) == 1  # a copy
    assert math.isnan(roofline.share(kernel(0.0, 1, 1)))
    assert math.isnan(roofline.share(kernel(1.0, 0, 0)))
    assert roofline.attainable(16, multiplies_bytes=True) == 32e9
    one = kernel(2.0, 8000, 1000)
    bytes = replace(one, calls=("i8_gemm_14x2__avx512vnni",))
    assert (one.multiplies_bytes, bytes.multiplies_bytes) == (False, True)
    assert roofline.share(bytes) == 0.125
    assert (one.flops_per_s, one.bytes_per_s) == (4e9, 0.5e9)


def test_tables() -> None:
    interpreter = allocated(models.convolution())
    with gossamer.profile(interpreter) as p:
        interpreter.invoke()
    assert p.roofline == Roofline(8e9, 4e9, 32e9)
    order = p.table()
    assert [row[0] for row in order.rows] == ["CONV_2D", "aeq.hadamard_rotation", "ADD"]
    times = [one.us for one in sorted(p.operators, key=lambda one: -one.us)]
    assert [row[2] for row in p.table("time").rows] == [f"{us:,.1f}" for us in times]
    assert {row[0] for row in p.table("type").rows} == {row[0] for row in order.rows}
    kernels = p.table("kernel")
    assert kernels.title == "Kernels by time; roofline: 8.0 GFLOP/s (32.0 of bytes), 4.0 GB/s"
    assert len(kernels.rows) == len(p.kernels)
    for table in (order, p.table("type"), kernels):
        assert len(str(table).splitlines()) == 2 + len(table.rows)
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert table._repr_html_().count("<tr>") == 1 + len(table.rows)
    with pytest.raises(ValueError, match="a table is by 'order', 'time', 'type', 'kernel', got 'name'"):
        p.table("name")  # type: ignore[arg-type]


def test_shown_in_a_notebook_and_on_a_console(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    make = ModelMaker()
    x, y = make.tensor((2,)), make.tensor((2,), name="<y> & co")
    make.op("ADD", [x, x], [y], AddOptions())
    make.io([x], [y])
    interpreter = allocated(make.model())
    with gossamer.profile(interpreter) as p:
        interpreter.invoke()
    html = p._repr_html_()
    assert html.startswith("<p>&lt;Profile of 1 call: ")
    assert "&lt;y&gt; &amp; co" in html
    assert html.count("<table>") == 2
    Console(width=200).print(p)
    assert "Operators by time" in capsys.readouterr().out
