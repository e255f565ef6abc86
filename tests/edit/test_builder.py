"""`gossamer.Builder`: what it makes runs, and what it refuses it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Builder, EditError
from gossamer.model import verify_model
from gossamer.model.metadata import min_runtime_version
from gossamer.schema import ActivationFunctionType, TensorType, flexbuffers
from tests.edit.models import counter_net, integer_net, loop_net, reread, run


def test_a_model_in_a_few_lines() -> None:
    weights, bias = np.float32([[1, 2], [3, -4], [5, 6]]), np.float32([1, 0, 0])
    b = Builder()
    x = b.input("x", (1, 2))
    b.output("y", b.add("FULLY_CONNECTED", x, weights, bias, activation="RELU"))
    model = reread(b.finish())
    assert np.array_equal(run(model, np.float32([[1, 1]]))[0], np.float32([[4, 0, 11]]))
    assert verify_model(model) == ()
    (operator,) = model.subgraphs[0].operators
    assert operator.builtin_options is not None
    assert operator.builtin_options.fused_activation_function == ActivationFunctionType.RELU  # type: ignore[attr-defined]
    assert (model.operator_codes[0].version, min_runtime_version(model)) == (1, "1.5.0")
    runner = gossamer.Interpreter(model_content=bytes(model)).get_signature_runner()
    assert np.array_equal(runner(x=np.float32([[1, 1]]))["y"], np.float32([[4, 0, 11]]))


def test_types_shapes_and_quantization_follow() -> None:
    b = Builder(signature=None)
    x = b.input("x", (1, 4), "int8", scale=0.5, zero_point=3)
    y = b.add("RESHAPE", x, [2, 2])
    assert (y.type, y.shape, y.quantization) == (TensorType.INT8, (2, 2), x.quantization)
    z = b.add("SOFTMAX", y, beta=1.0)
    assert (z.quantization.scale, z.quantization.zero_point) == (1 / 256, -128)
    values, places = b.add("TOPK_V2", z, 1)
    assert (values.type, places.type, places.shape) == (TensorType.INT8, TensorType.INT32, (2, 1))
    b.output("places", places)
    assert not b.finish().signature_defs


def test_operators_with_many_outputs() -> None:
    b = Builder()
    x = b.input("x", (6, 2))
    parts = b.add("SPLIT", 0, x, num_splits=3)
    assert [part.shape for part in parts] == [(2, 2)] * 3
    one, two = b.add("UNPACK", parts[0], num=2, axis=1)
    b.output("one", one)
    b.output("two", two)
    value = np.arange(12, dtype=np.float32).reshape(6, 2)
    assert [array.tolist() for array in run(b.finish(), value)] == [[0, 2], [1, 3]]


def test_open_sizes_of_a_name_are_the_same() -> None:
    b = Builder()
    x, y = b.input("x", ("batch", "time", 3)), b.input("y", ("batch", 1, 3))
    z = b.add("ADD", x, y)
    assert z.dims == (None, None, 3)
    b.output("z", b.add("CONCATENATION", z, x, axis=1))
    model = b.finish()
    tensor = model.subgraphs[0].tensors[model.subgraphs[0].outputs[0]]
    assert (tensor.shape, tensor.shape_signature) == ((1, 1, 3), (-1, -1, 3))
    assert run(model, np.ones((2, 5, 3), np.float32), np.ones((2, 1, 3), np.float32))[0].shape == (2, 10, 3)


def test_what_is_known_is_run_all_the_same() -> None:
    b = Builder()
    x = b.input("x", (2, 3))
    shape = b.add("SHAPE", x, out_type="int32")
    b.output("y", b.add("RESHAPE", x, b.add("REVERSE_V2", shape, [0])))
    model = b.finish()
    assert [model.operator_name(one) for one in model.subgraphs[0].operators] == ["SHAPE", "REVERSE_V2", "RESHAPE"]
    assert run(model, np.ones((2, 3), np.float32))[0].shape == (3, 2)


def test_loops_and_state() -> None:
    assert run(loop_net(), np.float32([1, 5]), np.int32(0))[0].tolist() == [17, 81]
    assert [graph.name for graph in loop_net().subgraphs] == ["main", "condition", "body"]
    interpreter = gossamer.Interpreter(model_content=bytes(counter_net()))
    interpreter.allocate_tensors()
    runner = interpreter.get_signature_runner()
    assert [float(runner(x=np.float32([3]))["sum"][0]) for _ in range(3)] == [6, 12, 18]


def test_quantized_models() -> None:
    (y,) = run(integer_net(), np.float32([[1, -1, 0.5, 2]]))
    assert y.shape == (1, 5)
    assert abs(float(y.sum()) - 1) < 0.02


def test_custom_operators() -> None:
    @gossamer.custom_op("Soften", shape="x")
    def soften(x: Any, *, alpha: float = 1.0) -> Any:
        return x / (np.float32(alpha) + np.abs(x))

    b = Builder()
    x = b.input("x", (3,))
    y = b.add(soften, x, alpha=0.5)
    z = b.custom("Mine", y, outputs=[("int32", (2, None)), ("float32", ())], options={"k": 1}, version=3)
    for number, value in enumerate((y, *z)):
        b.output(f"y{number}", value)
    model = reread(b.finish())
    main = model.subgraphs[0]
    assert flexbuffers.loads(model.custom_options(main.operators[1]).tobytes()) == {"k": 1}
    assert [(code.custom_code, code.version) for code in model.operator_codes] == [("Soften", 1), ("Mine", 3)]
    assert [main.tensors[number].shape_signature for number in main.outputs] == [(), (2, -1), ()]
    assert b.custom("Other", x).shape == (3,)


def built() -> tuple[Builder, Any]:
    b = Builder()
    return b, b.input("x", (2, 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b, x: b.add("ADDD", x, x), "there is no operator 'ADDD'; did you mean 'ADD'?"),
        (lambda b, x: b.add("add", x, x), "there is no operator 'add'; did you mean 'ADD'?"),
        (lambda b, x: b.add("ADD", x, x, activatoin="RELU"), "no option 'activatoin'; did you mean 'activation'?"),
        (lambda b, x: b.add("ADD", x, x, activation="RELU7"), "cannot be 'RELU7'; it is NONE, RELU"),
        (lambda b, x: b.add("MEAN", x, 0, keep_dims="perhaps"), "keep_dims cannot be 'perhaps'; it is true or false"),
        (lambda b, x: b.add("GATHER", x, 0, axis=0.5), "axis cannot be 0.5; it is an integer"),
        (lambda b, x: b.add("GATHER", x, 0, axis=1 << 40), "it is an integer from -2147483648 to 2147483647"),
        (lambda b, x: b.add("SOFTMAX", x, beta="hot"), "beta cannot be 'hot'; it is a number"),
        (lambda b, x: b.add("ADD", x), "ADD: needs 2 inputs"),
        (lambda b, x: b.add("ADD", x, np.ones(7, np.float32)), "do not broadcast"),
        (lambda b, x: b.add("ADD", x, 1), "inputs must have the same type, got float32 and int32"),
        (lambda b, x: b.input("x", (1,)), "there is an input 'x' already"),
        (lambda b, x: b.input("z", (1,), "float33"), "there is no type 'float33'; did you mean 'float32'?"),
        (lambda b, x: b.finish(), "the model has no output"),
        (lambda b, x: (b.output("y", x), b.output("y", x)), "there is an output 'y' already"),
        (lambda b, x: b.add("UNPACK", x, num=3), "UNPACK: "),
        (lambda b, x: b.custom("Mine"), "say what comes out"),
        (lambda b, x: b.add("WHILE", x, cond_subgraph_index=b.graph("c")), "WHILE calls cond_subgraph_index, body"),
    ],
)  # fmt: skip
def test_what_is_refused(make: Callable[[Builder, Any], Any], message: str) -> None:
    with pytest.raises(EditError) as caught:
        make(*built())
    assert message in str(caught.value)
