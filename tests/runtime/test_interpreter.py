"""The API of `tf.lite.Interpreter`: arguments, details, views and copies, and every documented error."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gossamer
from gossamer import Interpreter, OpResolverType
from gossamer.schema import ReshapeOptions, RNNOptions, TensorType
from tests.runtime.graphs import ModelMaker, adder


@pytest.fixture
def interpreter() -> Interpreter:
    made = Interpreter(model_content=adder())
    made.allocate_tensors()
    return made


def test_five_lines(interpreter: Interpreter) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), x + 2)


def test_from_a_path_and_from_any_buffer(tmp_path: Path) -> None:
    path = tmp_path / "adder.tflite"
    path.write_bytes(adder())
    sources = [{"model_path": path}, {"model_path": str(path)}]
    sources += [{"model_content": kind(adder())} for kind in (bytes, bytearray, memoryview)]
    for source in sources:
        made = Interpreter(**source)
        assert made.get_input_details()[0]["name"] == "x"


def test_input_details(interpreter: Interpreter) -> None:
    (details,) = interpreter.get_input_details()
    assert list(details) == [
        "name",
        "index",
        "shape",
        "shape_signature",
        "dtype",
        "quantization",
        "quantization_parameters",
        "sparsity_parameters",
    ]
    assert details["name"] == "x"
    assert details["index"] == 0
    assert details["dtype"] is np.float32
    assert details["shape"].dtype == np.int32
    np.testing.assert_array_equal(details["shape"], [2, 3])
    np.testing.assert_array_equal(details["shape_signature"], [-1, 3])
    assert details["quantization"] == (0.0, 0)
    parameters = details["quantization_parameters"]
    assert list(parameters) == ["scales", "zero_points", "quantized_dimension", "block_size"]
    assert parameters["scales"].dtype == np.float32
    assert parameters["zero_points"].dtype == np.int32
    assert details["sparsity_parameters"] == {}


def test_tensor_details_of_every_tensor(interpreter: Interpreter) -> None:
    assert [details["name"] for details in interpreter.get_tensor_details()] == ["x", "one", "middle", "y"]
    with pytest.raises(ValueError, match="subgraph_index is out of range: 3 for the model, which has 1 subgraphs"):
        interpreter.get_tensor_details(3)


def test_op_details() -> None:
    interpreter = Interpreter(
        model_content=adder(), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.allocate_tensors()
    first, second = interpreter._get_ops_details()
    assert first["op_name"] == second["op_name"] == "ADD"
    np.testing.assert_array_equal(first["inputs"], [0, 1])
    np.testing.assert_array_equal(second["outputs"], [3])
    assert first["operand_types"] == [np.float32, np.float32]
    with pytest.raises(ValueError, match="Invalid node index"):
        interpreter._get_op_details(2)


def test_get_tensor_copies_and_tensor_views(interpreter: Interpreter) -> None:
    copy = interpreter.get_tensor(0)
    copy[...] = 7
    np.testing.assert_array_equal(interpreter.get_tensor(0), np.zeros((2, 3)))
    access = interpreter.tensor(0)
    access()[...] = 5
    np.testing.assert_array_equal(interpreter.get_tensor(0), np.full((2, 3), 5))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.tensor(3)(), np.full((2, 3), 7))


@pytest.mark.parametrize("hold", [lambda view: view, lambda view: view[:1], lambda view: view.T])
@pytest.mark.parametrize("call", ["invoke", "allocate_tensors", "resize_tensor_input"])
def test_a_held_view_forbids_what_could_move_memory(interpreter: Interpreter, hold, call) -> None:
    view = hold(interpreter.tensor(0)())
    arguments = (0, [4, 3]) if call == "resize_tensor_input" else ()
    with pytest.raises(RuntimeError, match="There is at least 1 reference to internal data"):
        getattr(interpreter, call)(*arguments)
    assert view.base is not None
    del view
    getattr(interpreter, call)(*arguments)


def test_views_of_constants_are_read_only(interpreter: Interpreter) -> None:
    assert not interpreter.tensor(1)().flags.writeable
    with pytest.raises(ValueError, match="is a constant of the model"):
        interpreter.set_tensor(1, np.ones(1, np.float32))


def test_resize(interpreter: Interpreter) -> None:
    interpreter.resize_tensor_input(0, [4, 3])
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((4, 3), np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(3), np.full((4, 3), 3))
    np.testing.assert_array_equal(interpreter.get_output_details()[0]["shape"], [4, 3])


def test_resize_to_the_same_shape_keeps_the_interpreter_ready(interpreter: Interpreter) -> None:
    interpreter.set_tensor(0, np.ones((2, 3), np.float32))
    interpreter.resize_tensor_input(0, [2, 3])
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(3), np.full((2, 3), 3))


def test_resize_to_nothing(interpreter: Interpreter) -> None:
    interpreter.resize_tensor_input(0, [0, 3])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(3).shape == (0, 3)


def test_resize_strict(interpreter: Interpreter) -> None:
    interpreter.resize_tensor_input(0, [5, 3], strict=True)
    with pytest.raises(RuntimeError, match="Attempting to resize dimension 1 of tensor 0 with value 3 to 4"):
        interpreter.resize_tensor_input(0, [5, 4], strict=True)
    with pytest.raises(RuntimeError, match="ResizeInputTensorStrict only allows mutating unknown dimensions"):
        interpreter.resize_tensor_input(0, [5], strict=True)


def test_resize_errors(interpreter: Interpreter) -> None:
    with pytest.raises(ValueError, match=r"Shape should be 1D instead of 2\."):
        interpreter.resize_tensor_input(0, [[1]])
    with pytest.raises(RuntimeError, match="Invalid tensor index 99"):
        interpreter.resize_tensor_input(99, [1])
    with pytest.raises(RuntimeError, match="Attempting to resize a fixed-size tensor"):
        interpreter.resize_tensor_input(1, [5])
    with pytest.raises(RuntimeError, match="negative dimension"):
        interpreter.resize_tensor_input(0, [-2, 3])


def test_a_size_beyond_memory_is_an_error_and_not_an_allocation() -> None:
    interpreter = Interpreter(model_content=adder())
    interpreter.resize_tensor_input(0, [1 << 30, 3])
    with pytest.raises(RuntimeError, match=r"needs .* bytes: too large"):
        interpreter.resize_tensor_input(0, [1 << 30] * 3)
    interpreter.resize_tensor_input(0, [1, 3])
    interpreter.allocate_tensors()
    interpreter.invoke()


def test_before_allocation() -> None:
    interpreter = Interpreter(model_content=adder())
    with pytest.raises(ValueError, match=r"Tensor data is null\. Run allocate_tensors\(\) first"):
        interpreter.get_tensor(0)
    with pytest.raises(ValueError, match=r"Cannot set tensor: Tensor is unallocated\. Try calling allocate_tensors"):
        interpreter.set_tensor(0, np.zeros((2, 3), np.float32))
    with pytest.raises(RuntimeError, match=r"Invoke called on model that is not ready\."):
        interpreter.invoke()
    with pytest.raises(RuntimeError, match="There is no memory plan yet"):
        interpreter.memory_plan()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((2, 3)), "Got value of type FLOAT64 but expected type FLOAT32 for input 0, name: x"),
        ([[1, 2, 3], [4, 5, 6]], "Got value of type INT64 but expected type FLOAT32"),
        (np.zeros((2, 3), "S1"), "Got value of type STRING but expected type FLOAT32"),
        (np.zeros(3, np.float32), r"Dimension mismatch\. Got 1 but expected 2 for input 0\."),
        (np.zeros((2, 4), np.float32), r"Dimension mismatch\. Got 4 but expected 3 for dimension 1 of input 0\."),
        (np.zeros((2, 0), np.float32), r"Dimension mismatch\. Got 0 but expected 3 for dimension 1 of input 0\."),
    ],
)
def test_set_tensor_errors(interpreter: Interpreter, value, message) -> None:
    with pytest.raises(ValueError, match=message):
        interpreter.set_tensor(0, value)


@pytest.mark.parametrize("index", [77, -1])
def test_bad_tensor_index(interpreter: Interpreter, index: int) -> None:
    for call in (interpreter.get_tensor, interpreter.tensor(index).__call__):
        with pytest.raises(ValueError, match=f"Invalid tensor index {index} exceeds max tensor index 4"):
            call(index) if call == interpreter.get_tensor else call()


def test_bad_subgraph_index(interpreter: Interpreter) -> None:
    with pytest.raises(ValueError, match="Invalid subgraph index 5 exceeds max subgraph index 1"):
        interpreter.get_tensor(0, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`model_path` or `model_content` must be specified."),
        ({"model_content": b""}, "`model_path` or `model_content` must be specified."),
        ({"model_path": "a", "model_content": b"x"}, "Can't both provide `model_path` and `model_content`"),
        ({"model_path": "no/such.tflite"}, "Could not open 'no/such.tflite'"),
        ({"model_content": b"garbage"}, "The model is not a valid Flatbuffer buffer"),
        ({"model_content": adder(), "num_threads": 0}, "num_threads should >= 1"),
        ({"model_content": adder(), "num_threads": "2"}, "type of num_threads should be int"),
        ({"model_content": adder(), "experimental_op_resolver_type": 5}, "Unrecognized passed in op resolver type: 5"),
    ],
)
def test_constructor_errors(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Interpreter(**arguments)


def test_a_version_that_is_not_registered() -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("ADD", [x, x], [y], version=99)
    make.io([x], [y])
    with pytest.raises(gossamer.UnsupportedOpError) as error:
        Interpreter(model_content=make.model())
    assert str(error.value).startswith(
        "Didn't find op for builtin opcode 'ADD' version '99'. An older version of this builtin might be supported. "
        "Are you using an old TFLite binary with a newer model?\nRegistration failed."
    )
    assert "ADD up to version 6" in str(error.value)


def test_an_unresolved_custom_operator_fails_when_allocated() -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("MyOp", [x], [y], custom=True)
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(RuntimeError) as error:
        interpreter.allocate_tensors()
    assert "Encountered unresolved custom op: MyOp." in str(error.value)
    assert "Node number 0 (MyOp) failed to prepare." in str(error.value)


def test_a_flex_operator_fails_when_allocated() -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("FlexNoSuchOp", [x], [y], custom=True)
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(RuntimeError, match="Select TensorFlow op"):
        interpreter.allocate_tensors()


def test_a_custom_operator_of_ones_own() -> None:
    op = gossamer.ops.op_def.OpDef("Twice", ("x",), ("y",), (gossamer.ops.op_def.Version(1, ""),), custom=True)
    op.prepare(lambda ctx: ctx.set_shape(0, ctx.input(0).shape))
    op.reference(lambda ctx: ctx.value(0) * np.float32(2))
    make = ModelMaker()
    x, y = make.tensor((2,)), make.tensor((2,))
    make.op("Twice", [x], [y], custom=True)
    make.io([x], [y])
    interpreter = gossamer.InterpreterWithCustomOps(
        custom_op_registerers=[lambda resolver: resolver.add_custom("Twice", op)], model_content=make.model()
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.array([1, 2], np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(y), [2, 4])


def test_an_inconsistent_graph_fails_when_allocated() -> None:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("RELU", [77], [y])
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(RuntimeError, match=r"AllocateTensors\(\) called on inconsistent model\.(.|\n)*77"):
        interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match=r"Invoke called on model that is not consistent\.(.|\n)*77"):
        interpreter.invoke()


def test_preserve_all_tensors_keeps_intermediates_and_the_result() -> None:
    with pytest.warns(UserWarning, match="experimental_preserve_all_tensors"):
        interpreter = Interpreter(model_content=adder(), experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((2, 3), np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.full((2, 3), 2))
    np.testing.assert_array_equal(interpreter.get_tensor(3), np.full((2, 3), 3))
    interpreter.memory_plan().check()


@pytest.mark.parametrize("resolver", list(OpResolverType))
def test_every_resolver_type_runs(resolver: OpResolverType) -> None:
    interpreter = Interpreter(model_content=adder(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(3), np.full((2, 3), 2))


def test_quantization_in_details() -> None:
    from gossamer.schema import QuantizationParameters

    make = ModelMaker()
    record = QuantizationParameters(
        scale=np.array([0.5, 0.25], np.float32), zero_point=np.zeros(2, np.int64), quantized_dimension=1
    )
    x = make.tensor((1, 2), TensorType.INT8, quantization=record)
    y = make.tensor((1, 2), TensorType.INT8, quantization=record)
    make.op("RESHAPE", [x], [y])
    make.io([x], [y])
    for compress, zero_points in ((False, [0, 0]), (True, [0])):
        interpreter = Interpreter(model_content=make.model(), experimental_compress_quantization_zero_points=compress)
        details = interpreter.get_input_details()[0]
        assert details["quantization"] == (0.0, 0)
        np.testing.assert_array_equal(details["quantization_parameters"]["scales"], [0.5, 0.25])
        np.testing.assert_array_equal(details["quantization_parameters"]["zero_points"], zero_points)
        assert details["quantization_parameters"]["quantized_dimension"] == 1
        assert interpreter.experimental_compress_quantization_zero_points is compress


def test_load_delegate() -> None:
    with pytest.raises(OSError, match="cannot open shared object file"):
        gossamer.load_delegate("/no/such/library.so")
    with pytest.raises(ValueError, match="Failed to load delegate from libedgetpu"):
        gossamer.load_delegate("libedgetpu.so.1")
    with pytest.raises(ValueError, match="experimental_delegates"):
        Interpreter(model_content=adder(), experimental_delegates=[object()])


def test_the_names_of_tflite_runtime() -> None:
    import gossamer.interpreter as tflite

    assert tflite.Interpreter is gossamer.Interpreter
    assert tflite.load_delegate is gossamer.load_delegate


def test_strings_in_and_out() -> None:
    make = ModelMaker()
    x, y = make.tensor((2,), TensorType.STRING), make.tensor((2, 1), TensorType.STRING)
    make.op("RESHAPE", [x], [y], ReshapeOptions(new_shape=(2, 1)))
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    for value in (np.array(["a", "bc"]), np.array([b"a", b"bc"]), np.array([b"a", "bc"], object)):
        interpreter.set_tensor(x, value)
        interpreter.invoke()
        assert interpreter.get_tensor(y).tolist() == [[b"a"], [b"bc"]]
    with pytest.raises(ValueError, match="Got value of type object holding int but expected type STRING"):
        interpreter.set_tensor(x, np.array([1, 2], object))


def test_packed_integers_are_given_and_come_as_int8() -> None:
    make = ModelMaker()
    x, y = make.tensor((3,), TensorType.INT4), make.tensor((3, 1), TensorType.INT4)
    make.op("RESHAPE", [x], [y], ReshapeOptions(new_shape=(3, 1)))
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.array([-8, 7, 1], np.int8))
    interpreter.invoke()
    assert interpreter.get_tensor(y).tolist() == [[-8], [7], [1]]
    with pytest.raises(ValueError, match="INT4 holds -8 to 7"):
        interpreter.set_tensor(x, np.array([8, 0, 0], np.int8))


def copier(type: TensorType, shape: tuple[int, ...], **fields: object) -> Interpreter:
    """An allocated interpreter whose output is its input in one dimension."""
    make = ModelMaker()
    x, y = make.tensor(shape, type, "x", **fields), make.tensor((int(np.prod(shape)),), type, "y")
    make.op("RESHAPE", [x], [y], ReshapeOptions(new_shape=(int(np.prod(shape)),)))
    make.io([x], [y])
    made = Interpreter(model_content=make.model())
    made.allocate_tensors()
    return made


def test_scalars_come_as_numpy_scalars_and_are_no_views() -> None:
    interpreter = copier(TensorType.FLOAT32, (), has_rank=True)
    interpreter.set_tensor(0, np.float32(3))
    assert type(interpreter.get_tensor(0)) is np.float32
    held = interpreter.tensor(0)()
    assert type(held) is np.float32
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [3]


@pytest.mark.parametrize(("type", "dtype"), [(TensorType.STRING, np.bytes_), (TensorType.RESOURCE, np.object_)])
def test_types_in_details_that_are_not_those_of_the_arrays(type: TensorType, dtype: object) -> None:
    make = ModelMaker()
    x, y = make.tensor((1,), type), make.tensor((1, 1), type)
    make.op("RESHAPE", [x], [y], ReshapeOptions(new_shape=(1, 1)))
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    assert interpreter.get_input_details()[0]["dtype"] is dtype
    assert interpreter._get_op_details(0)["operand_types"] == [dtype]


def _mean() -> bytes:
    make = ModelMaker()
    x, y = make.tensor((2, 3), name="x"), make.tensor((2,), name="y")
    axis = make.constant([1], np.int32, TensorType.INT32, name="axis")
    make.op("MEAN", [x, axis], [y])
    make.io([x], [y])
    return make.model()


def test_scratch_tensors_have_details_once_they_are_asked_for() -> None:
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=_mean(), experimental_op_resolver_type=resolver)
    assert [details["name"] for details in interpreter.get_tensor_details()] == ["x", "y", "axis"]
    interpreter.allocate_tensors()
    details = interpreter.get_tensor_details()
    assert len(details) > 3
    assert {entry["name"] for entry in details[3:]} == {""}
    missing = set(range(3, 8)) - {entry["index"] for entry in details}
    assert missing
    with pytest.raises(ValueError, match=r"Tensor with no type found|Invalid tensor index"):
        interpreter._get_tensor_details(min(missing), 0)


def test_nodes_that_a_delegate_runs_have_no_scratch_tensors() -> None:
    interpreter = Interpreter(model_content=_mean())
    interpreter.allocate_tensors()
    assert interpreter.delegate_claims()
    assert [details["name"] for details in interpreter.get_tensor_details()] == ["x", "y", "axis"]
    with pytest.raises(ValueError, match="exceeds max tensor index 3"):
        interpreter._get_tensor_details(3, 0)
    interpreter.resize_tensor_input(0, (4, 3))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((4, 3), np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), [1, 1, 1, 1])
    assert len(interpreter.get_tensor_details()) == 3


def test_variables_cannot_be_reset_before_they_have_memory() -> None:
    make = ModelMaker()
    x, h, y = make.tensor((1, 1)), make.tensor((1, 1), is_variable=True), make.tensor((1, 1))
    one = make.constant([[1]], np.float32, TensorType.FLOAT32)
    bias = make.constant([0], np.float32, TensorType.FLOAT32)
    make.op("RNN", [x, one, one, bias, h], [y], RNNOptions())
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    with pytest.raises(RuntimeError, match=r"have no memory yet\. Run allocate_tensors\(\) first"):
        interpreter.reset_all_variables()
    interpreter.allocate_tensors()
    interpreter.reset_all_variables()


def test_a_path_may_be_bytes_and_content_is_never_a_path(tmp_path: Path) -> None:
    path = tmp_path / "adder.tflite"
    path.write_bytes(adder())
    assert Interpreter(str(path).encode()).get_input_details()[0]["name"] == "x"
    with pytest.raises(TypeError, match="model_content takes the bytes of a model, got a str"):
        Interpreter(model_content=str(path))


@pytest.mark.parametrize("index", [0.0, "0", None])
@pytest.mark.parametrize("call", ["get_tensor", "set_tensor", "resize_tensor_input", "tensor"])
def test_an_index_is_an_integer(interpreter: Interpreter, call: str, index: object) -> None:
    more = {"set_tensor": [np.zeros((2, 3), np.float32)], "resize_tensor_input": [[2, 3]]}.get(call, [])
    function = getattr(interpreter, call)
    with pytest.raises(TypeError):
        function(index, *more)()  # what tensor() gives is called


def test_values_of_another_byte_order_are_values(interpreter: Interpreter) -> None:
    interpreter.set_tensor(0, np.arange(6, dtype=">f4").reshape(2, 3))
    np.testing.assert_array_equal(interpreter.get_tensor(0), np.arange(6).reshape(2, 3))


@pytest.mark.parametrize("type", [TensorType.INT4, TensorType.UINT4])
def test_four_bit_tensors_take_any_shape_of_as_many_elements(type: TensorType) -> None:
    interpreter = copier(type, (2, 3))
    interpreter.set_tensor(0, np.arange(6, dtype=interpreter.get_input_details()[0]["dtype"]))
    assert interpreter.get_tensor(0).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="Dimension mismatch"):
        interpreter.set_tensor(0, np.zeros(5, interpreter.get_input_details()[0]["dtype"]))


@pytest.mark.parametrize("type", [TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2])
def test_float8_takes_its_bytes(type: TensorType) -> None:
    interpreter = copier(type, (3,))
    for raw in (np.uint8, np.int8):
        interpreter.set_tensor(0, np.array([1, 2, 3], raw))
        assert interpreter.get_tensor(0).view(np.uint8).tolist() == [1, 2, 3]
