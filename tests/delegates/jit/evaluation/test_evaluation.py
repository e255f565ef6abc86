"""Kernel graphs on arrays: every integer is that of machine code, for models that nobody has drawn up."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any, Literal, get_args

import numpy as np
import pytest

import gossamer
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.kernels.depthwise import MAX_KERNEL_ROWS
from gossamer.codegen.kernels.scatter import Combine
from gossamer.codegen.kinds import KINDS as DECLARED
from gossamer.codegen.passes import common_subexpressions, copies, fuse, pads, tables
from gossamer.delegates.jit import compiling, evaluation
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.delegates.jit.evaluation import Fault, evaluate
from gossamer.delegates.jit.evaluation.kinds import KINDS
from gossamer.delegates.jit.lowered import Lowered
from gossamer.delegates.jit.lowering import lower
from gossamer.dtypes import numpy_dtype
from gossamer.errors import CompileError, InvokeError
from gossamer.schema import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    LeakyReluOptions,
    Padding,
    QuantizationParameters,
    RandomOptions,
    ReducerOptions,
    Table,
    TensorType,
    TransposeConvOptions,
)
from gossamer.views import Buffer
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, machine_code, outputs, reference
from tests.random_graphs import FORMS, Form, RandomGraph
from tests.runtime.graphs import ModelMaker

MADE_BY_PASSES = {"rows", "strassen", "winograd"}
REGIONS = {"branch", "loop"}

I8, I32 = TensorType.INT8, TensorType.INT32
Array = np.ndarray[Any, Any]

on_this_cpu = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")


def test_there_is_every_kind() -> None:
    assert KINDS.keys() == DECLARED.keys() - MADE_BY_PASSES - REGIONS


def graph_of(kernel: JitKernel) -> Any:
    """What the nodes of a partition lower to."""
    assert kernel._partition is not None
    lowered = Lowered()
    for node in kernel._partition.nodes:
        lower(node, lowered)
    return lowered.finish(kernel._partition.outputs)


def assert_near(got: Array, wanted: Array) -> None:
    """The same integers, or floats but for the order of their sums."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if got.dtype == np.float32:
        largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * largest)
    else:
        np.testing.assert_array_equal(got, wanted)


@on_this_cpu
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", seeds(4, 100))
def test_graphs_compute_what_their_machine_code_does(form: Form, seed: int) -> None:
    graph = RandomGraph(seed, form)
    value = graph.input()
    interpreter, kernel = machine_code(graph.model())
    (wanted,) = outputs(interpreter, {0: value})
    ((tensor, _),) = graph_of(kernel).outputs.items()
    steps = [lambda _: None, common_subexpressions.run, fuse.run, tables.run, pads.run, copies.run]
    for last in (0, len(steps)):  # as it is, and as passes leave it
        lowered = graph_of(kernel)
        for step in steps[:last]:
            step(lowered)
        with np.errstate(all="ignore"):
            result = evaluate(lowered, {0: value})[tensor]
        assert_near(result.reshape(wanted.shape), wanted)


def grid(scale: float, zero_point: int) -> QuantizationParameters:
    return QuantizationParameters(scale=np.array([scale], np.float32), zero_point=np.array([zero_point], np.int64))


SHAPE = (1, 12, 13, 16)


class Step:
    """An int8 operator whose default path differs from the reference kernels by some levels."""

    def __init__(self, name: str, output: tuple[int, ...], options: Table, version: int, *constants: Array) -> None:
        self.name, self.output, self.options, self.version, self.constants = name, output, options, version, constants

    def put(self, make: ModelMaker, x: int) -> int:
        weights = {np.dtype(np.int8): (I8, grid(0.007, 0)), np.dtype(np.int32): (I32, grid(0.0002, 0))}
        operands = [
            make.constant(value, value.dtype, weights[value.dtype][0], quantization=weights[value.dtype][1])
            if self.name != "MEAN"
            else make.constant(value, np.int32, I32)
            for value in self.constants
        ]
        y = make.tensor(self.output, I8, quantization=grid(0.0173, 3))
        both = [x, x] if self.name == "ADD" else [x, *operands]
        make.op(self.name, both, [y], self.options, self.version)
        return y


rng = np.random.default_rng(3)
STEPS = [
    Step(
        "CONV_2D", (*SHAPE[:3], 24), Conv2DOptions(stride_h=1, stride_w=1), 3,
        rng.integers(-127, 128, (24, 3, 3, 16)).astype(np.int8), rng.integers(-2000, 2000, 24).astype(np.int32),
    ),
    Step(
        "FULLY_CONNECTED", (*SHAPE[:3], 24), FullyConnectedOptions(keep_num_dims=True), 4,
        rng.integers(-127, 128, (24, 16)).astype(np.int8), rng.integers(-2000, 2000, 24).astype(np.int32),
    ),
    Step("LEAKY_RELU", SHAPE, LeakyReluOptions(alpha=0.3), 2),
    Step("ADD", SHAPE, AddOptions(), 2),
    Step("MEAN", (1, 1, 1, 16), ReducerOptions(keep_dims=True), 2, np.array([1, 2], np.int32)),
]  # fmt: skip
of_each = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)


def model_of(step: Step, *, computed_shape: bool = False) -> bytes:
    """The operator; behind one, too, whose result has a shape that the model computes."""
    make = ModelMaker()
    x = make.tensor(SHAPE, I8, quantization=grid(0.0213, -5))
    inputs, results = [x], [step.put(make, x)]
    if computed_shape:
        shape, reshaped = make.tensor((4,), I32), make.tensor(SHAPE, I8, quantization=grid(0.0213, -5))
        make.op("RESHAPE", [x, shape], [reshaped])
        inputs.append(shape)
        results.append(step.put(make, reshaped))
    make.io(inputs, results)
    return make.model()


def image() -> Array:
    return np.random.default_rng(2).integers(-128, 128, SHAPE, np.int8)


def results_of(model: bytes, interpreter: Any = gossamer.Interpreter, **arguments: Any) -> list[Array]:
    """What an interpreter makes of the image."""
    made = interpreter(model_content=model, **arguments)
    made.allocate_tensors()
    values = [image(), np.array(SHAPE, np.int32)]
    details = made.get_input_details()
    return outputs(made, {one["index"]: value for one, value in zip(details, values, strict=False)})


@on_this_cpu
@of_each
@pytest.mark.parametrize("target", ["", "none"])
def test_behind_a_shape_that_is_computed(monkeypatch: pytest.MonkeyPatch, step: Step, target: str) -> None:
    evaluated = []
    monkeypatch.setenv("GOSSAMER_TARGET", target)
    monkeypatch.setattr(evaluation, "evaluate", lambda *of: evaluated.append(of) or evaluate(*of))
    before, behind = results_of(model_of(step, computed_shape=True))
    assert bool(evaluated) == (target == "none")
    np.testing.assert_array_equal(behind, before)
    (alone,) = results_of(model_of(step))
    np.testing.assert_array_equal(before, alone)


@on_this_cpu
def test_behind_a_shape_that_is_computed_a_node_is_lowered_once_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_TARGET", "none")
    interpreter = gossamer.Interpreter(model_content=model_of(STEPS[2], computed_shape=True))
    interpreter.allocate_tensors()
    lowered = []
    lower = evaluation.lower
    monkeypatch.setattr(evaluation, "lower", lambda node, into: lowered.append(node.op.name) or lower(node, into))
    image_details, shape_details = interpreter.get_input_details()
    flat = (1, 1, SHAPE[1] * SHAPE[2], SHAPE[3])
    for shape, count in ((SHAPE, 1), (SHAPE, 1), (flat, 2), (flat, 2), (SHAPE, 3)):
        found = outputs(
            interpreter, {image_details["index"]: image(), shape_details["index"]: np.array(shape, np.int32)}
        )
        np.testing.assert_array_equal(found[1], found[0].reshape(shape))
        assert lowered.count("LEAKY_RELU") == 1 + count  # one is before it


@pytest.mark.peer
@of_each
def test_litert_claims_what_is_behind_a_computed_shape_too(step: Step) -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    model = model_of(step, computed_shape=True)
    wanted = results_of(model, Interpreter)
    for ours, theirs in zip(results_of(model), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    without = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    if step.name in ("CONV_2D", "LEAKY_RELU"):  # whose rounding shows
        assert any((a != b).any() for a, b in zip(results_of(model, Interpreter, experimental_op_resolver_type=without),
                                                  wanted, strict=True))  # fmt: skip


@on_this_cpu
@of_each
def test_without_machine_code(monkeypatch: pytest.MonkeyPatch, step: Step) -> None:
    model = model_of(step)
    wanted = results_of(model)
    monkeypatch.setenv("GOSSAMER_TARGET", "none")
    np.testing.assert_array_equal(results_of(model), wanted)


PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
Way = Literal["no scale", "computed weights", "computed bias", "computed shape"]


def product(name: str, type: TensorType, way: Way, depth: int = 19) -> tuple[bytes, dict[int, Array]]:
    """A product of bytes that XNNPACK does not take, and its inputs."""
    rng, dtype = np.random.default_rng(6), numpy_dtype(type)
    shape = (1, 9, 11, depth)
    filter = {"FULLY_CONNECTED": (21, depth), "DEPTHWISE_CONV_2D": (1, 3, 3, depth)}.get(name, (21, 3, 3, depth))
    channels = depth if name == "DEPTHWISE_CONV_2D" else 21
    make, values = ModelMaker(), {}

    def given(value: Array, type: TensorType, quantization: QuantizationParameters | None, *, fed: bool) -> int:
        fields = {} if quantization is None else {"quantization": quantization}
        if not fed:
            return make.constant(value, value.dtype, type, **fields)
        tensor = make.tensor(value.shape, type, **fields)
        values[tensor] = value
        return tensor

    def levels(shape: tuple[int, ...]) -> Array:
        return rng.integers(0, 256, shape).astype(np.uint8).view(dtype)

    x = given(levels(shape), type, grid(0.0213, 5), fed=True)
    zero = 0 if type == I8 else 117
    weights = given(levels(filter), type, grid(0.007, zero), fed=way == "computed weights")
    sums = None if way == "no scale" else grid(0.0213 * 0.007, 0)
    bias = given(rng.integers(-2000, 2000, channels).astype(np.int32), I32, sums, fed=way == "computed bias")
    y = make.tensor((*shape[:3], channels), type, quantization=grid(0.0413, 3))
    windows: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "padding": Padding.SAME}
    options: Table = FullyConnectedOptions(keep_num_dims=True)
    operands = [x, weights, bias]
    if name == "CONV_2D":
        options = Conv2DOptions(**windows)
    elif name == "DEPTHWISE_CONV_2D":
        options = DepthwiseConv2DOptions(depth_multiplier=1, **windows)
    elif name == "TRANSPOSE_CONV":
        options = TransposeConvOptions(**windows)
        size = given(np.array([*shape[:3], channels], np.int32), I32, None, fed=way == "computed shape")
        operands = [size, weights, x, bias]
    make.op(name, operands, [y], options, {"FULLY_CONNECTED": 5, "TRANSPOSE_CONV": 4}.get(name, 3))
    make.io(list(values), [y])
    return make.model(), values


def computed(model: bytes, values: dict[int, Array], interpreter: Any = gossamer.Interpreter, **how: Any) -> Array:
    """What an interpreter makes of inputs."""
    made = interpreter(model_content=model, **how)
    made.allocate_tensors()
    return outputs(made, values)[0]


of_each_depth = pytest.mark.parametrize(
    ("name", "depth"), [*((name, 19) for name in PRODUCTS), ("CONV_2D", 600), ("FULLY_CONNECTED", 600)]
)
of_bytes = pytest.mark.parametrize("type", [I8, TensorType.UINT8], ids=["int8", "uint8"])


@on_this_cpu
@of_bytes
@of_each_depth
def test_products_that_xnnpack_does_not_take(
    monkeypatch: pytest.MonkeyPatch, name: str, type: TensorType, depth: int
) -> None:
    # Machine code computes all of them, and so do arrays. Sums of 600 products are those of several parts.
    models = [product(name, type, way, depth) for way in get_args(Way) if way != "computed shape"]
    found = [outputs(machine_code(model)[0], values)[0] for model, values in models]
    monkeypatch.setenv("GOSSAMER_TARGET", "none")
    found += [computed(*each) for each in models]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@on_this_cpu
@of_bytes
def test_xnnpack_does_not_take_a_transposed_convolution_of_a_computed_shape(type: TensorType) -> None:
    ways: tuple[Way, ...] = ("no scale", "computed shape")
    wanted, found = [computed(*product("TRANSPOSE_CONV", type, way)) for way in ways]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.peer
@of_bytes
@pytest.mark.parametrize("way", get_args(Way))
@of_each_depth
def test_products_that_xnnpack_does_not_take_are_those_of_litert(
    name: str, type: TensorType, way: Way, depth: int
) -> None:
    from ai_edge_litert.interpreter import Interpreter

    model, values = product(name, type, way, depth)
    np.testing.assert_array_equal(computed(model, values), computed(model, values, Interpreter))


def tall_filter() -> tuple[bytes, Array, Array]:
    """A depthwise filter of more rows than machine code takes; an image, and what XNNPACK makes of it."""
    rows, rng = MAX_KERNEL_ROWS + 1, np.random.default_rng(4)
    weights = rng.integers(-127, 128, (1, rows, 1, 4)).astype(np.int8)
    bias = rng.integers(-500, 500, 4).astype(np.int32)
    make = ModelMaker()
    x = make.tensor((1, rows + 40, 1, 4), I8, quantization=grid(0.0213, -5))
    operands = [
        x,
        make.constant(weights, np.int8, I8, quantization=grid(0.007, 0)),
        make.constant(bias, np.int32, I32, quantization=grid(0.0213 * 0.007, 0)),
    ]
    y = make.tensor((1, 41, 1, 4), I8, quantization=grid(0.31, 3))
    options = DepthwiseConv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1, depth_multiplier=1)
    make.op("DEPTHWISE_CONV_2D", operands, [y], options, 3)
    make.io([x], [y])
    image = rng.integers(-128, 128, (1, rows + 40, 1, 4)).astype(np.int8)
    sums = np.stack([((image[0, at : at + rows, 0] + 5.0) * weights[0, :, 0]).sum(0) + bias for at in range(41)])
    scale = np.float32(0.0213) * np.float32(0.007) / np.float32(0.31)
    levels = np.rint(sums.astype(np.float32) * scale) + 3
    return make.model(), image, np.clip(levels, -128, 127).astype(np.int8).reshape(1, 41, 1, 4)


@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=pytest.mark.peer)], ids=["ours", "litert"])
def test_limits_of_machine_code_are_none_of_arrays(peer: bool) -> None:
    model, image, wanted = tall_filter()
    made: Any = gossamer.Interpreter(model_content=model)
    if peer:
        from ai_edge_litert.interpreter import Interpreter

        made = Interpreter(model_content=model)
    made.allocate_tensors()
    assert peer or not made.delegate_claims() or made.delegate_claims()[0].refusals
    np.testing.assert_array_equal(outputs(made, {0: image})[0], wanted)


def test_nothing_of_it_is_imported_where_machine_code_runs() -> None:
    code = """
import sys
import gossamer
from tests.delegates.jit.evaluation.test_evaluation import STEPS, model_of, results_of
for module in [name for name in sys.modules if name.startswith("gossamer.delegates.jit.evaluation")]:
    del sys.modules[module]
results_of(model_of(STEPS[0]))
print([name for name in sys.modules if name.startswith("gossamer.delegates.jit.evaluation")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n" or not TARGETS


@on_this_cpu
@of_each
@pytest.mark.usefixtures("lenient")
def test_where_nothing_can_be_compiled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: Step
) -> None:
    model = model_of(step)
    wanted = results_of(model)

    def strike(*_: object) -> None:
        raise CompileError("the compiler is on strike again")

    monkeypatch.setattr(compiling, "compiled_of", strike)
    with caplog.at_level(logging.WARNING, logger="gossamer"):
        np.testing.assert_array_equal(results_of(model), wanted)


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"])
def test_the_reference_path_rounds_as_the_reference_kernels(monkeypatch: pytest.MonkeyPatch, resolver: str) -> None:
    model, choice = model_of(STEPS[2]), gossamer.OpResolverType[resolver]
    monkeypatch.setattr(evaluation, "kernel_of", lambda _: pytest.fail("a kernel graph was evaluated"))
    reference = results_of(model, experimental_op_resolver_type=choice)
    monkeypatch.undo()
    assert (reference[0] != results_of(model)[0]).any()


def test_what_is_wrong_the_reference_kernel_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_TARGET", "none")
    make = ModelMaker()
    x, places, y = make.tensor((3, 2), I32), make.tensor((1,), I32), make.tensor((1, 2), I32)
    make.op("GATHER", [x, places], [y])
    make.io([x, places], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match="out of"):
        outputs(interpreter, {0: np.zeros((3, 2), np.int32), 1: np.array([3], np.int32)})


@pytest.mark.usefixtures("lenient")
def test_what_nobody_foresaw_the_reference_kernel_computes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = model_of(STEPS[2])
    reference = results_of(model, experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_REF)
    monkeypatch.setenv("GOSSAMER_TARGET", "none")
    monkeypatch.setitem(KINDS, "map", lambda *_: 1 // 0)
    with caplog.at_level(logging.WARNING, logger="gossamer"):
        np.testing.assert_array_equal(results_of(model), reference)
    message = caplog.records[-1].getMessage()  # behind what is said once in a process
    assert message.startswith("LEAKY_RELU runs on its reference kernel: ZeroDivisionError: ")


@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8])
@pytest.mark.parametrize("combine", get_args(Combine))
def test_rows_are_combined_in_order(combine: Combine, type: TensorType) -> None:
    rng, dtype = np.random.default_rng(7), numpy_dtype(type)
    x, before = (rng.integers(-100, 100, (rows, 3)).astype(dtype) for rows in (40, 6))
    places = rng.integers(-1, 8, 40).astype(np.int32)
    if type == TensorType.FLOAT32:
        before[0, 0] = x[0, 1] = np.nan
    function = {"add": np.add, "mul": np.multiply, "set": lambda _, new: new}.get(
        combine, lambda old, new: np.where(new > old if combine == "max" else new < old, new, old)
    )
    wanted = before.copy()
    for place, row in zip(places, x, strict=True):
        if 0 <= place < 6:
            wanted[place] = function(wanted[place], row)
    for skips in (True, False):
        graph, table = KernelGraph(), Buffer(before.shape, type, 2)
        operands = [Buffer(one.shape, TensorType[one.dtype.name.upper()], at) for at, one in enumerate((x, places))]
        graph.inputs = dict(enumerate((*operands, table)))
        graph.outputs[2] = table
        settings = {"combine": combine, "skips": skips}
        graph.kernels.append(Kernel("scatter", [buffer.view() for buffer in operands], table.view(), settings))
        inputs = {0: x, 1: places, 2: before.copy()}
        if skips:
            np.testing.assert_array_equal(evaluate(graph, inputs)[2], wanted)
        else:
            with pytest.raises(Fault):
                evaluate(graph, inputs)


@pytest.mark.parametrize("sigma", [0, 0.4])
def test_boxes(monkeypatch: pytest.MonkeyPatch, sigma: float) -> None:
    rng = np.random.default_rng(5)
    boxes, scores = rng.random((200, 4)).astype(np.float32), rng.permutation(200).astype(np.float32) / 200
    make = ModelMaker()
    operands = [make.tensor((200, 4)), make.tensor((200,)), make.constant(30, np.int32, I32)]
    operands += [make.constant(number, np.float32, TensorType.FLOAT32) for number in (0.5, 0.1, sigma)]
    results = [make.tensor((30,), I32), make.tensor((30,)), make.tensor((), I32)]
    make.op("NON_MAX_SUPPRESSION_V5", operands, results)
    make.io(operands[:2], results)

    evaluated = []
    monkeypatch.setattr(evaluation, "evaluate", lambda *of: evaluated.append(of) or evaluate(*of))
    monkeypatch.setenv("GOSSAMER_TARGET", "none")
    ours, theirs = gossamer.Interpreter(model_content=make.model()), reference(make.model())
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
    for given in (scores, np.full_like(scores, 0.5)):  # in which order equal scores are, the reference kernel says
        found, wanted = (outputs(interpreter, {0: boxes, 1: given}) for interpreter in (ours, theirs))
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6)
        assert found[2] == wanted[2] > 0
    assert len(evaluated) == 2


@pytest.mark.parametrize("name", ["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"])
def test_random_numbers_go_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make = ModelMaker()
    y = make.tensor((11,))
    make.op(name, [make.constant([11], np.int32, I32)], [y], RandomOptions(seed=3, seed2=5))
    make.io([], [y])
    interpreter = reference(make.model())
    interpreter.allocate_tensors()
    wanted = [outputs(interpreter, {})[0] for _ in range(3)]
    evaluated = []
    monkeypatch.setattr(evaluation, "evaluate", lambda *of: evaluated.append(of) or evaluate(*of))
    monkeypatch.setenv("GOSSAMER_TARGET", "none")
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    for numbers in wanted:
        np.testing.assert_allclose(outputs(interpreter, {})[0], numbers, rtol=1e-6)
    assert len(evaluated) == 3


def test_a_zero_is_a_fault() -> None:
    graph, x = KernelGraph(), Buffer((2,), I32, 0)
    graph.inputs[0] = x
    y = graph.add("nonzero", [x.view()], (2,), I32)
    y.buffer.tensor, graph.outputs[1] = 1, y.buffer
    np.testing.assert_array_equal(evaluate(graph, {0: np.array([3, -1], np.int32)})[1], [3, -1])
    with pytest.raises(Fault):
        evaluate(graph, {0: np.array([3, 0], np.int32)})
