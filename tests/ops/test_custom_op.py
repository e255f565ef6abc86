"""`gossamer.custom_op`: functions and classes as operators, their options, their versions, their errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.ops.op_def import OpDef
from gossamer.schema import TensorType
from gossamer.schema.flexbuffers import dumps
from tests.ops.cases import Case, Operand, model_of, run_case, tensor
from tests.runtime.graphs import ModelMaker

X = tensor([1, 2, 3])


def interpreter_of(op: OpDef, case: Case) -> gossamer.Interpreter:
    return gossamer.Interpreter(model_content=model_of(op, case), custom_ops=[op])


def check(op: OpDef, case: Case) -> None:
    run_case(partial(gossamer.Interpreter, custom_ops=[op]), op, case)


def refusal(op: OpDef, case: Case) -> str:
    with pytest.raises(gossamer.PrepareError) as error:
        interpreter_of(op, case).allocate_tensors()
    return str(error.value)


def failure(op: OpDef, inputs: Sequence[Operand], output: Operand) -> str:
    interpreter = interpreter_of(op, Case("", inputs, [output]))
    interpreter.allocate_tensors()
    with pytest.raises(gossamer.InvokeError) as error:
        interpreter.invoke()
    return str(error.value)


@gossamer.custom_op("Scale", shape="x")
def scale(x: Any, bias: Any = None, *, factor: float = 2.0, names: tuple[str, ...] = ()) -> Any:
    """Multiplies and adds."""
    y = x * np.float32(factor)
    return y if bias is None else y + bias


def test_a_function_is_an_op_def() -> None:
    assert isinstance(scale, OpDef)
    assert (scale.name, scale.inputs, scale.outputs, scale.custom) == ("Scale", ("x", "bias?"), ("output",), True)
    assert (scale.min_version, scale.max_version, scale.doc) == (1, 1, "Multiplies and adds.")


CASES = [
    Case("defaults", [X], [tensor([2, 4, 6])]),
    Case("an_optional_input", [X, tensor([1, 1, 1])], [tensor([3, 5, 7])]),
    Case("an_optional_input_left_out", [X, None], [tensor([2, 4, 6])]),
    Case("an_option", [X], [tensor([0.5, 1, 1.5])], custom_options=dumps({"factor": 0.5})),
    Case("an_integer_for_a_float", [X], [tensor([3, 6, 9])], custom_options=dumps({"factor": 3})),
    Case("a_list_for_a_tuple", [X], [tensor([2, 4, 6])], custom_options=dumps({"names": ["a"]})),
    Case("what_the_converter_left", [X], [tensor([2, 4, 6])], custom_options=dumps({"_output_quantized": True})),
    Case("an_empty_map", [X], [tensor([2, 4, 6])], custom_options=dumps({})),
]


def test_a_function(case: Case) -> None:
    check(scale, case)


def test_a_function_with_a_shape_is_static_and_one_without_is_dynamic() -> None:
    double = gossamer.custom_op("Double", trace=False)(lambda x: x * np.float32(2))
    planned = {}
    for op in (scale, double):
        interpreter = interpreter_of(op, Case("", [X], [tensor([0, 0, 0])]))
        interpreter.allocate_tensors()
        planned[op.name] = sorted(interpreter.memory_plan().offsets)
    assert planned == {"Scale": [0, 1], "Double": [0]}


def test_a_shape_function_is_given_every_input_and_option() -> None:
    seen = []

    def shape(x: Any, bias: Any, *, times: int) -> Any:
        seen.append((x, bias, times))
        return (x[0] * times,)

    @gossamer.custom_op("Repeat", shape=shape)
    def repeat(x: Any, bias: Any = None, *, times: int = 2) -> Any:
        return np.tile(x, times)

    check(repeat, Case("", [X], [tensor([1, 2, 3, 1, 2, 3])]))
    check(repeat, Case("", [X, X], [X], custom_options=dumps({"times": 1})))
    assert list(dict.fromkeys(seen)) == [((3,), None, 2), ((3,), (3,), 1)]


def test_shapes_follow_a_resize() -> None:
    interpreter = interpreter_of(scale, Case("", [X], [tensor([0, 0, 0])]))
    interpreter.resize_tensor_input(0, [5])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones(5, np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.full(5, 2))


def test_a_dynamic_result_has_its_own_shape() -> None:
    positive = gossamer.custom_op("Positive")(lambda x: x[x > 0])
    check(positive, Case("", [tensor([-1, 2, -3, 4])], [tensor([2, 4])]))


def test_several_outputs_and_any_number_of_inputs() -> None:
    @gossamer.custom_op("Extremes", outputs=("low", "high"), shape=lambda *inputs: (inputs[0], inputs[0]))
    def extremes(*inputs: Any) -> Any:
        return np.minimum.reduce(inputs), np.maximum.reduce(inputs)

    assert extremes.inputs == ("inputs*",)
    inputs = [tensor([1, 5]), tensor([2, 4]), tensor([3, 3])]
    check(extremes, Case("", inputs, [tensor([1, 3]), tensor([3, 5])]))


def test_strings_and_packed_integers() -> None:
    @gossamer.custom_op("Lengths", types={"x": str, "output": np.int32})
    def lengths(x: Any) -> Any:
        return np.array([len(text) for text in x], np.int32)

    @gossamer.custom_op("Upper", types={"x": str, "output": TensorType.STRING}, shape="x")
    def upper(x: Any) -> Any:
        return np.array([text.decode().upper() for text in x])

    negate = gossamer.custom_op("Negate", types={"x": TensorType.INT4}, shape="x")(lambda x: -x)
    words = tensor(["ab", "c"], object)
    check(lengths, Case("", [words], [tensor([2, 1], np.int32)]))
    check(upper, Case("", [words], [tensor([b"AB", b"C"], object)]))
    int4 = [tensor(values, np.int8, type=TensorType.INT4) for values in ([1, -2, 3], [-1, 2, -3])]
    check(negate, Case("", int4[:1], int4[1:]))


# A class.


@gossamer.custom_op("Counter", versions=(2, 3), inputs=("x", "values*"), types={"x": np.float32})
@dataclass
class Counter:
    """Adds how often it has run."""

    start: int = 0
    step: float = 1.0

    def prepare(self, ctx: gossamer.ops.op_def.PrepareContext) -> None:
        ctx.require(len(ctx.input(0).shape) == 1, "x must be a vector")
        ctx.set_shape(0, ctx.input(0).shape)

    def invoke(self, ctx: gossamer.ops.op_def.InvokeContext) -> Any:
        self.start += 1
        return ctx.value(0) + np.float32(self.start * self.step)


counter: OpDef = Counter  # type: ignore[assignment]


def test_a_class_is_made_once_for_each_node() -> None:
    options = dumps({"start": 10})
    case = Case("", [X], [tensor([0, 0, 0])], version=3, custom_options=options)
    interpreter = interpreter_of(counter, case)
    for size, result in ((3, 11), (3, 12), (2, 13)):
        interpreter.resize_tensor_input(0, [size])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.zeros(size, np.float32))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(1), np.full(size, result))
    check(counter, Case("", [X], [tensor([12, 13, 14])], version=2, custom_options=options))


def test_a_class_behind_a_dynamic_result_keeps_its_state() -> None:
    make = ModelMaker()
    x, y, z = make.tensor((3,)), make.tensor((3,)), make.tensor((3,))
    make.op("Positive", [x], [y], custom=True)
    make.op("Counter", [y], [z], custom=True, version=2)
    make.io([x], [z])
    positive = gossamer.custom_op("Positive")(lambda x: x[x > 0])
    interpreter = gossamer.Interpreter(model_content=make.model(), custom_ops=[positive, counter])
    interpreter.allocate_tensors()
    for values, result in (([1, 0, 2], [2, 3]), ([0, 5, 0], [7])):
        interpreter.set_tensor(x, np.float32(values))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(z), result)


def test_a_class_without_prepare_is_dynamic() -> None:
    class Twice:
        def invoke(self, ctx: Any) -> Any:
            return np.concatenate([ctx.value(0), ctx.value(0)])

    check(gossamer.custom_op("Twice")(Twice), Case("", [X], [tensor([1, 2, 3, 1, 2, 3])]))


def test_state_in_a_variable_tensor_is_reset_with_the_others() -> None:
    class Total:
        def prepare(self, ctx: Any) -> None:
            ctx.set_shape(0, ctx.input(0).shape)

        def invoke(self, ctx: Any) -> Any:
            total = ctx.variable(1)
            total += ctx.value(0)
            return total

    total = gossamer.custom_op("Total", inputs=("x", "total"))(Total)
    case = Case("", [X, tensor([2, 4, 6], variable=True)], [tensor([2, 4, 6])], calls=2)
    check(total, case)
    interpreter = interpreter_of(total, case)
    interpreter.allocate_tensors()
    for _ in range(2):
        interpreter.reset_all_variables()
        interpreter.set_tensor(0, X.value)
        interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), [1, 2, 3])


# Options.


def with_options(options: bytes) -> Case:
    return Case("", [X], [tensor([0, 0, 0])], custom_options=options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dumps({"facter": 1.0}), "unknown custom option facter: it knows factor, names (did you mean factor?)"),
        (dumps({"T": 1}), "unknown custom option T: it knows factor, names [version 1]"),
        (dumps({"factor": "much"}), "custom option factor must be float, got str"),
        (dumps({"factor": True}), "custom option factor must be float, got bool"),
        (dumps({"names": "a"}), "custom option names must be tuple, got str"),
        (dumps([1, 2]), "its custom options must be a flexbuffer map, got list"),
        (
            b"ABC",
            "its custom options are no flexbuffer: its root is 67 bytes wide. An operator with a keyword argument",
        ),
    ],
)
def test_options_that_are_refused_with_the_place(options: bytes, message: str) -> None:
    text = refusal(scale, with_options(options))
    assert text.startswith('Scale (node 0, output "output_0"): ')
    assert message in text
    assert "Node number 0 (Scale) failed to prepare." in text


def test_an_option_without_a_default_must_be_there() -> None:
    op = gossamer.custom_op("Needs")(lambda x, *, much: x * np.float32(much))
    check(op, Case("", [X], [tensor([3, 6, 9])], custom_options=dumps({"much": 3})))
    assert "custom option much is missing: it has no default" in refusal(op, with_options(b""))


def test_an_operator_that_takes_no_options() -> None:
    op = gossamer.custom_op("Plain")(lambda x: x)
    assert "unknown custom option a: it takes none" in refusal(op, with_options(dumps({"a": 1})))


def test_any_options_or_their_bytes() -> None:
    seen: list[Any] = []
    anything = gossamer.custom_op("Any")(lambda x, **options: (seen.append(options), x)[1])
    raw = gossamer.custom_op("Raw")(lambda x, *, custom_options: (seen.append(custom_options), x)[1])
    for op, options in ((anything, dumps({"a": 1, "_b": [2]})), (raw, b"ABC"), (raw, b""), (raw, dumps(["Sin"]))):
        check(op, Case("", [X], [X], custom_options=options))
    assert seen == [{"a": 1, "_b": [2]}, b"ABC", b"", dumps(["Sin"])]


def test_options_named_like_inputs_are_refused() -> None:
    op = gossamer.custom_op("Any")(lambda x, **options: x)
    assert "custom option x has the name of an input" in refusal(op, with_options(dumps({"x": 1})))


@pytest.mark.parametrize(
    ("default", "stored", "given"),
    [(False, 1, True), (b"", "text", b"text"), (None, [1], [1]), ("", "a", "a"), (1, 2, 2), ([], [1], [1])],
)
def test_options_take_the_type_of_their_default(default: Any, stored: Any, given: Any) -> None:
    seen = []

    def kept(x: Any, *, option: Any = default) -> Any:
        seen.append(option)
        return x

    check(gossamer.custom_op("Kept")(kept), Case("", [X], [X], custom_options=dumps({"option": stored})))
    assert seen == [given]
    assert type(seen[0]) is type(given)


# Operands.


@gossamer.custom_op("Typed", types={"x": (np.float32, "int8"), "y": TensorType.INT32}, shape="x")
def typed(x: Any, y: Any) -> Any:
    return x


INT = tensor([1], np.int32)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([X], [X], "needs 2 inputs (x, y), got 1"),
        ([X, INT, INT], [X], "needs 2 inputs (x, y), got 3"),
        ([X, INT], [X, X], "needs 1 outputs (output), got 2"),
        ([None, INT], [X], "input 0 (x) is missing"),
        ([INT, INT], [X], "x must be float32 or int8, got int32"),
        ([X, X], [X], "y must be int32, got float32"),
    ],
)
def test_operands_are_checked_by_what_is_declared(inputs: Any, outputs: Any, message: str) -> None:
    assert message in refusal(typed, Case("", inputs, outputs))


# What goes wrong inside.


def test_what_a_function_raises_names_the_operator_and_is_the_cause() -> None:
    op = gossamer.custom_op("Broken", shape="x")(lambda x: {}["key"])
    interpreter = interpreter_of(op, Case("", [X], [X]))
    interpreter.allocate_tensors()
    with pytest.raises(gossamer.InvokeError, match=r'Broken \(node 0, output "output_0"\): KeyError') as error:
        interpreter.invoke()
    assert isinstance(error.value.__context__, KeyError)


def test_what_a_shape_function_raises_or_returns() -> None:
    broken = gossamer.custom_op("Broken", shape=lambda x: 1 // 0)(lambda x: x)
    assert "ZeroDivisionError: integer division" in refusal(broken, Case("", [X], [X]))
    two = gossamer.custom_op("Two", outputs=("a", "b"), shape=lambda x: [x])(lambda x: (x, x))
    assert "returned 1 shapes for 2 outputs" in refusal(two, Case("", [X], [X, X]))
    odd = gossamer.custom_op("Odd", shape=lambda x: (-1,))(lambda x: x)
    assert "negative dimension" in refusal(odd, Case("", [X], [X]))


def test_what_a_class_raises() -> None:
    class Broken:
        def __init__(self, *, size: int = 0) -> None:
            if size < 0:
                raise AttributeError("size")

        def invoke(self, ctx: Any) -> Any:
            ctx.fail("not today")

    op = gossamer.custom_op("Broken")(Broken)
    assert "AttributeError: size" in refusal(op, with_options(dumps({"size": -1})))
    assert 'Broken (node 0, output "output_0"): not today [version 1]' in failure(op, [X], X)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: None, "returned nothing for output 0"),
        (lambda x: x.astype(np.float64), "output 0 is float32, the kernel returned float64"),
        (lambda x: x[:1], "output 0 has shape [3], the kernel returned [1]"),
        (lambda x: (x, x), "kernel returned 2 arrays for 1 outputs"),
        (lambda x: ([[1], [2, 3]],), "returned what is no array"),
    ],
)
def test_results_that_do_not_fit(function: Any, message: str) -> None:
    assert message in failure(gossamer.custom_op("Odd", shape="x")(function), [X], X)


def test_inputs_cannot_be_written_to() -> None:
    def careless(x: Any) -> Any:
        x += 1
        return x

    assert "ValueError: output array is read-only" in failure(gossamer.custom_op("Careless")(careless), [X], X)


# Declarations.


@pytest.mark.parametrize(
    ("arguments", "target", "message"),
    [
        ({"versions": 0}, len, "versions is a number from 1 on"),
        ({"versions": (3, 2)}, len, "versions is a number from 1 on, or the first and the last, got (3, 2)"),
        ({"inputs": ("x",)}, lambda x: x, "inputs= is for classes"),
        ({}, lambda x, y=1.0: x, "input y is optional with the default None, got 1.0"),
        ({"types": {"z": np.int8}}, lambda x: x, "types names 'z', the operands are x, output"),
        ({"types": {"x": "m8[s]"}}, lambda x: x, "no tensor has elements of dtype"),
        ({}, lambda x, *, custom_options, more=1: x, "custom_options takes all custom options"),
        ({"shape": "y"}, lambda x: x, "shape names 'y', the inputs are x"),
        ({"shape": len}, type("Op", (), {"invoke": len}), "shape= is for functions"),
        ({}, type("Op", (), {}), "class Op must have a method invoke(ctx)"),
        ({}, type("Op", (), {"invoke": len, "__init__": lambda self, *a: None}), "which are passed by name"),
    ],
)
def test_declarations_that_make_no_operator(arguments: Any, target: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        gossamer.custom_op("Op", **arguments)(target)


@pytest.mark.parametrize("name", ["", None, lambda x: x])
def test_an_operator_has_a_name(name: Any) -> None:
    with pytest.raises(ValueError, match="the name of a custom operator is a text"):
        gossamer.custom_op(name)


# How it reaches an interpreter.


def test_versions_are_exact() -> None:
    case = partial(Case, "", [X], [tensor([0, 0, 0])])
    for version in (2, 3):
        interpreter_of(counter, case(version=version)).allocate_tensors()
    for version in (1, 4):
        text = refusal(counter, case(version=version))
        assert "it is registered, but only in version 2, 3" in text
        assert f"[version {version}]" in text


def test_ways_to_an_interpreter() -> None:
    model = model_of(scale, Case("", [X], [X]))
    resolver = gossamer.MutableOpResolver()
    resolver.add(scale)
    added = gossamer.MutableOpResolver()
    added.add_custom("Scale", scale)
    for arguments in ({"experimental_op_resolver_type": resolver}, {"experimental_op_resolver_type": added}):
        gossamer.Interpreter(model_content=model, **arguments).allocate_tensors()
    gossamer.Interpreter(model_content=model, custom_ops=iter([scale])).allocate_tensors()
    gossamer.InterpreterWithCustomOps(custom_op_registerers=[scale], model_content=model).allocate_tensors()
    with pytest.raises(gossamer.PrepareError, match="Encountered unresolved custom op: Scale"):
        gossamer.Interpreter(model_content=model).allocate_tensors()


def test_custom_ops_go_before_those_that_ship() -> None:
    mine = gossamer.custom_op("Mfcc", outputs=("output",), shape=lambda *x, **options: (1, 1, 1))(lambda *x: x[0])
    model = model_of(mine, Case("", [tensor([[[7]]])], [tensor([[[0]]])]))
    interpreter = gossamer.Interpreter(model_content=model, custom_ops=[mine])
    interpreter.allocate_tensors()
    assert interpreter._get_ops_details()[0]["op_name"] == "Mfcc"


def test_what_is_no_operator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"custom_ops takes what @gossamer.custom_op\(name\) makes, got <built-in"):
        gossamer.Interpreter(model_content=model_of(scale, Case("", [X], [X])), custom_ops=[len])  # type: ignore[list-item]
