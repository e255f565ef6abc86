"""Tensors whose value stays in a buffer of a delegate until somebody else reads it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from gossamer import DelegateError, InvokeError
from gossamer.delegates.delegate import DelegateKernel, Partition, PartitionInvokeContext
from gossamer.delegates.null import NullDelegate
from gossamer.delegates.recording import RecordingDelegate
from gossamer.schema import TensorType
from tests.delegates.graphs import Interpreter, chain, sine_model, sine_of
from tests.runtime.graphs import ModelMaker

X = np.array([0.5, 1, 2], np.float32)
COPIES = ("copy_from_buffer_handle", "copy_to_buffer_handle", "free_buffer_handle")


def copies(delegate: RecordingDelegate) -> list[tuple[str, int]]:
    return [(call.stage, call.about) for call in delegate.calls if call.stage in COPIES]


def run(interpreter: Interpreter, x: np.ndarray = X) -> np.ndarray:
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_stale_inputs_are_copied_before_other_nodes_read_them() -> None:
    delegate = RecordingDelegate("SIN", device=True)
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    assert interpreter.get_buffer_handle(2) == (1, delegate)
    assert interpreter.get_buffer_handle(5) == (2, delegate)
    assert interpreter.get_buffer_handle(0) == (None, None)
    np.testing.assert_array_equal(run(interpreter), sine_of(X))
    assert copies(delegate) == [
        ("copy_to_buffer_handle", 1),
        ("copy_from_buffer_handle", 1),
        ("copy_to_buffer_handle", 2),
        ("copy_from_buffer_handle", 2),
    ]


def test_outputs_are_made_readable_after_invoke() -> None:
    delegate = RecordingDelegate(device=True)
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    assert copies(delegate) == [("copy_to_buffer_handle", 1), ("copy_from_buffer_handle", 1)]
    np.testing.assert_array_equal(interpreter.get_tensor(6), sine_of(X))
    assert copies(delegate)[2:] == []


def test_outputs_may_stay_where_they_are_until_they_are_read() -> None:
    delegate = RecordingDelegate(device=True)
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    interpreter.allow_buffer_handle_output = True
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    assert copies(delegate) == [("copy_to_buffer_handle", 1)]
    np.testing.assert_array_equal(interpreter.get_tensor(6), sine_of(X))
    assert copies(delegate)[1:] == [("copy_from_buffer_handle", 1)]
    np.testing.assert_array_equal(interpreter.tensor(6)(), sine_of(X))
    assert copies(delegate)[2:] == []


def test_a_signature_reads_its_outputs() -> None:
    make = ModelMaker()
    x, y = make.tensor((3,)), make.tensor((3,))
    make.op("SIN", [x], [y])
    make.io([x], [y])
    make.signature("sine", {"x": x}, {"y": y})
    delegate = RecordingDelegate(device=True)
    runner = Interpreter(model_content=make.model(), experimental_delegates=[delegate]).get_signature_runner("sine")
    np.testing.assert_array_equal(runner(x=X)["y"], np.sin(X))
    np.testing.assert_array_equal(runner(x=X[:1])["y"], np.sin(X[:1]))


def test_nothing_is_copied_between_kernels_of_one_delegate() -> None:
    class Device(RecordingDelegate):
        """Its kernels read the buffers of their inputs themselves."""

        def create_kernel(self, partition: Partition) -> DelegateKernel:
            super().create_kernel(partition)
            return DeviceKernel(self)

    class DeviceKernel(DelegateKernel):
        def __init__(self, delegate: Device) -> None:
            self.delegate = delegate

        def init(self, partition: Partition) -> None:
            partition.set_buffer_handle(partition.outputs[0], self.delegate.new_buffer())

        def invoke(self, ctx: PartitionInvokeContext) -> None:
            handle = ctx.buffer_handle(ctx.inputs[0])
            x = ctx.value(ctx.inputs[0]) if handle is None else self.delegate.buffers[handle]
            assert x is not None
            (output,) = ctx.outputs
            made = ctx.buffer_handle(output)
            assert made is not None
            self.delegate.buffers[made] = np.sin(x)
            ctx.set_stale(output)

    delegate = Device("SIN")
    interpreter = Interpreter(
        model_content=chain("SIN", "SIN", "SIN"),
        experimental_delegates=[delegate],
        experimental_disable_delegate_node_fusion=True,
    )
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(interpreter, x), np.sin(np.sin(np.sin(x))))
    assert copies(delegate) == [("copy_from_buffer_handle", 3)]


def test_a_new_handle_frees_the_old_and_none_unties() -> None:
    delegate = RecordingDelegate("SIN")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    interpreter.set_buffer_handle(0, 7, delegate)
    assert interpreter.get_buffer_handle(0) == (7, delegate)
    interpreter.set_buffer_handle(0, 7, delegate)
    assert copies(delegate) == []
    interpreter.set_buffer_handle(0, 8, delegate)
    interpreter.set_buffer_handle(0, None, delegate)
    assert copies(delegate) == [("free_buffer_handle", 7), ("free_buffer_handle", 8)]
    assert interpreter.get_buffer_handle(0) == (None, delegate)


def test_the_tensor_of_another_delegate_is_refused() -> None:
    first, second = RecordingDelegate("SIN"), NullDelegate()
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[first])
    with pytest.raises(DelegateError, match='tensor 2 "a" belongs to the delegate recording; null cannot have it too'):
        interpreter.set_buffer_handle(2, 1, second)
    interpreter.set_buffer_handle(6, 1, first)
    with pytest.raises(RuntimeError, match='tensor 6 "y" belongs to the delegate recording; null cannot have it too'):
        interpreter.modify_graph_with_delegate(second)


def test_handles_outlive_a_resize_and_are_freed_in_the_end() -> None:
    delegate = RecordingDelegate("SIN", device=True)
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    run(interpreter)
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    assert interpreter.get_buffer_handle(2) == (1, delegate)
    np.testing.assert_array_equal(run(interpreter, X[:2]), sine_of(X[:2]))
    del interpreter
    gc.collect()
    assert copies(delegate)[-2:] == [("free_buffer_handle", 1), ("free_buffer_handle", 2)]
    assert delegate.buffers == {}


def test_a_copy_that_fails_is_an_error_and_may_be_tried_again() -> None:
    delegate = RecordingDelegate("SIN", device=True, fail_at="copy_from_buffer_handle")
    interpreter = Interpreter(model_content=sine_model(), experimental_delegates=[delegate])
    interpreter.set_tensor(0, X)
    with pytest.raises(InvokeError) as error:
        interpreter.invoke()
    assert str(error.value) == (
        'tensor 2 "a" cannot be read from buffer 1 of the delegate recording: told to fail at copy_from_buffer_handle'
    )
    delegate.fail_at = ""
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.sin(X))
    interpreter.invoke()


def test_a_delegate_without_the_callback() -> None:
    class NoCallback(NullDelegate):
        def create_kernel(self, partition: Partition) -> DelegateKernel:
            partition.set_buffer_handle(partition.outputs[0], 5)
            return Stale()

    class Stale(DelegateKernel):
        def invoke(self, ctx: PartitionInvokeContext) -> None:
            ctx.set_stale(ctx.outputs[0])

    interpreter = Interpreter(model_content=chain("SIN"), experimental_delegates=[NoCallback()])
    with pytest.raises(InvokeError, match="null does not copy from buffer handles"):
        interpreter.invoke()
    with pytest.raises(InvokeError, match="null does not copy to buffer handles"):
        NullDelegate().copy_to_buffer_handle(1, interpreter._subgraphs[0].tensors[0], X)


def test_what_is_set_is_not_stale() -> None:
    delegate = RecordingDelegate("SIN", device=True)
    interpreter = Interpreter(model_content=chain("SIN"), experimental_delegates=[delegate])
    interpreter.allow_buffer_handle_output = True
    x = np.arange(4, dtype=np.float32)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    interpreter.set_tensor(1, x)
    np.testing.assert_array_equal(interpreter.get_tensor(1), x)
    assert ("copy_from_buffer_handle", 1) not in copies(delegate)


def test_a_stale_output_whose_shape_is_in_its_value() -> None:
    make = ModelMaker()
    x, shape = make.tensor((4,)), make.tensor((2,), TensorType.INT32)
    wide, y = make.tensor((2, 2)), make.tensor((2, 2))
    make.op("RESHAPE", [x, shape], [wide])
    make.op("NEG", [wide], [y])
    make.io([x, shape], [y])
    delegate = RecordingDelegate("RESHAPE", device=True, flags=1)
    interpreter = Interpreter(model_content=make.model(), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    for size in ((2, 2), (1, 4)):
        interpreter.set_tensor(shape, np.array(size, np.int32))
        values = np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(run(interpreter, values), -values.reshape(size))
