"""Calls in any order with any arguments: documented exceptions at worst, and afterwards the model still works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gossamer import Interpreter
from gossamer.runtime.subgraph import State
from gossamer.schema import ReshapeOptions, TensorType, VarHandleOptions
from tests.runtime.graphs import ModelMaker, adder


def reshaper() -> bytes:
    """y = reshape(x, shape) with both fed: the shape of y is only known when it runs; then y + 1."""
    make = ModelMaker()
    x = make.tensor((2, 3), name="x", shape_signature=(-1, -1))
    shape = make.tensor((2,), TensorType.INT32, name="shape")
    one = make.constant([1.0], np.float32, TensorType.FLOAT32, name="one")
    middle, y = make.tensor((3, 2), name="middle"), make.tensor((3, 2), name="y")
    make.op("RESHAPE", [x, shape], [middle], ReshapeOptions())
    make.op("ADD", [middle, one], [y])
    make.io([x, shape], [y])
    make.signature("reshape", {"x": x, "shape": shape}, {"y": y})
    return make.model()


def variable() -> bytes:
    """y = x + v, where v is a resource variable that was x before it was read."""
    make = ModelMaker()
    x = make.tensor((2,), name="x")
    handle, old, y = make.tensor((), TensorType.RESOURCE), make.tensor((2,)), make.tensor((2,), name="y")
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(container="c", shared_name="v"))
    make.op("ASSIGN_VARIABLE", [handle, x], [])
    make.op("READ_VARIABLE", [handle], [old])
    make.op("ADD", [x, old], [y])
    make.io([x], [y])
    return make.model()


def words() -> bytes:
    """Two strings picked from a fed vector of strings by constant indices."""
    make = ModelMaker()
    x = make.tensor((3,), TensorType.STRING, name="x")
    picked = make.constant([2, 0], np.int32, TensorType.INT32)
    y = make.tensor((2,), TensorType.STRING, name="y")
    make.op("GATHER", [x, picked], [y], version=4)
    make.io([x], [y])
    return make.model()


MODELS = {"adder": adder(), "reshaper": reshaper(), "variable": variable(), "words": words()}

GOOD_INDICES = st.integers(-1, 7)
INDICES = GOOD_INDICES | st.sampled_from([-(1 << 63), 1 << 31, 1 << 70, None, "0", 1.5, (), np.int64(1), True])
SIZES = st.integers(0, 4)
SHAPES = st.lists(SIZES, max_size=5) | st.sampled_from(
    [
        [2, 3],
        [-1],
        [2, -3],
        [1 << 31],
        [-(1 << 31)],
        [(1 << 31) - 1, (1 << 31) - 1, 9],
        [1 << 30, 1 << 29],
        [1 << 70],
        None,
        5,
        "shape",
        [[1, 2], [3]],
        [1.5, 2],
        [None],
        [],
        np.array([2, 3], np.int64),
        np.zeros((2, 2), int),
        [1] * 40,
    ]
)
VALUES = st.sampled_from(
    [
        np.ones((2, 3), np.float32),
        np.ones((2, 3), np.float64),
        np.ones((2,), np.float32),
        np.ones((4, 3), np.float32)[::2],
        np.asfortranarray(np.ones((2, 3), np.float32)),
        np.ones((2, 3), ">f4"),
        np.array([3, 2], np.int32),
        np.array([-1, 2], np.int32),
        np.array([-1, -1], np.int32),
        np.array([0, 7], np.int32),
        np.array([(1 << 31) - 1, (1 << 31) - 1], np.int32),
        np.float32(1),
        np.ones((1,) * 32, np.float32),
        np.array([b"a", b"", b"c" * 100], object),
        np.array(["a", "\u00e9", "c"]),
        np.array([1, None, "c"], object),
        np.array(["\ud800", "", ""], object),
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(3, [("a", int)]),
        [[1.0, 2.0], [3.0]],
        None,
        "text",
        {},
        [1 << 70],
        np.ma.masked_array([1.0, 2.0], [True, False], np.float32),
    ]
)
DOCUMENTED = (ValueError, RuntimeError)


class Calls(RuleBasedStateMachine):
    """One interpreter, called in any order."""

    @initialize(name=st.sampled_from(sorted(MODELS)))
    def make(self, name: str) -> None:
        self.name = name
        self.interpreter = Interpreter(model_content=MODELS[name])
        self.views: list[Any] = []

    def attempt(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except DOCUMENTED:
            return None
        except TypeError as error:
            if not _of_the_call(error):
                raise
            return None

    @rule()
    def allocate(self) -> None:
        self.attempt(self.interpreter.allocate_tensors)

    @rule()
    def invoke(self) -> None:
        self.attempt(self.interpreter.invoke)

    @rule(index=INDICES, shape=SHAPES, strict=st.booleans())
    def resize(self, index: Any, shape: Any, strict: bool) -> None:
        self.attempt(lambda: self.interpreter.resize_tensor_input(index, shape, strict=strict))

    @rule(index=GOOD_INDICES, shape=st.lists(SIZES, min_size=1, max_size=3))
    def resize_well(self, index: int, shape: list[int]) -> None:
        self.attempt(lambda: self.interpreter.resize_tensor_input(index, shape))

    @rule(index=INDICES, value=VALUES)
    def set(self, index: Any, value: Any) -> None:
        self.attempt(lambda: self.interpreter.set_tensor(index, value))

    @rule(position=st.integers(0, 1), seed=st.integers(0, 9))
    def set_well(self, position: int, seed: int) -> None:
        details = self.interpreter.get_input_details()[position:][:1]
        for detail in details:
            if detail["dtype"] is not np.object_ and detail["dtype"] is not np.bytes_:
                value = np.full(detail["shape"], seed, detail["dtype"])
                self.attempt(lambda value=value, detail=detail: self.interpreter.set_tensor(detail["index"], value))

    @rule(index=INDICES, subgraph=GOOD_INDICES)
    def get(self, index: Any, subgraph: Any) -> None:
        value = self.attempt(lambda: self.interpreter.get_tensor(index, subgraph))
        if isinstance(value, np.ndarray) and value.flags.writeable and value.dtype.kind == "f":
            value[...] = 77  # a copy: nobody notices

    @rule(index=INDICES)
    def view(self, index: Any) -> None:
        function = self.attempt(lambda: self.interpreter.tensor(index))
        if function is not None:
            self.attempt(function)

    @rule(index=GOOD_INDICES)
    def hold(self, index: int) -> None:
        view = self.attempt(self.interpreter.tensor(index))
        if view is not None:
            self.views.append(view)

    @rule()
    def let_go(self) -> None:
        self.views.clear()

    @rule(subgraph=INDICES)
    def look(self, subgraph: Any) -> None:
        self.attempt(lambda: self.interpreter.get_tensor_details(subgraph))
        self.attempt(lambda: self.interpreter.memory_plan(subgraph))
        self.attempt(lambda: self.interpreter.memory_plan(subgraph, persistent=True))
        self.interpreter.get_input_details(), self.interpreter.get_output_details()

    @rule()
    def reset(self) -> None:
        self.attempt(self.interpreter.reset_all_variables)

    @rule(
        key=st.sampled_from(["add", "reshape", None, "", "x", 5, []]), value=VALUES, other=VALUES, extra=st.booleans()
    )
    def call_signature(self, key: Any, value: Any, other: Any, extra: bool) -> None:
        def call() -> None:
            runner = self.interpreter.get_signature_runner(key)
            runner.get_input_details(), runner.get_output_details()
            values = {"x": value, "shape": other} if extra else {"x": value}
            runner(**values)

        self.attempt(call)

    @invariant()
    def is_consistent(self) -> None:
        """Shapes, sizes and memory agree, whatever was refused."""
        if not hasattr(self, "interpreter"):
            return
        for subgraph in self.interpreter._subgraphs:
            for tensor in subgraph.tensors:
                assert all(size >= 0 for size in tensor.shape), tensor.shape
                if not tensor.has_objects and not tensor.is_stored and not tensor.postponed:
                    assert tensor.bytes == tensor.required_bytes(tensor.shape)
                    if tensor.buffer is not None and subgraph.state is State.INVOKABLE:
                        assert tensor.buffer.size == tensor.bytes

    def teardown(self) -> None:
        if not hasattr(self, "interpreter"):
            return
        self.views.clear()
        answers = {"adder": self._adds, "reshaper": self._reshapes, "variable": self._doubles, "words": self._picks}
        answers[self.name]()

    def _run(self, shapes: list[tuple[int, ...]], values: list[Any]) -> Any:
        interpreter = self.interpreter
        for tensor in interpreter._subgraphs[0].tensors:
            if tensor.stored is not None and not tensor.is_constant:  # any of them may have been resized
                interpreter.resize_tensor_input(tensor.index, tensor.stored.shape)
        for details, shape in zip(interpreter.get_input_details(), shapes, strict=True):
            interpreter.resize_tensor_input(details["index"], shape)
        interpreter.allocate_tensors()
        for details, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    def _adds(self) -> None:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(self._run([(2, 3)], [x]), x + 2)

    def _reshapes(self) -> None:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        shape = np.array([6, 1], np.int32)
        np.testing.assert_array_equal(self._run([(2, 3), (2,)], [x, shape]), x.reshape(6, 1) + 1)

    def _doubles(self) -> None:
        np.testing.assert_array_equal(self._run([(2,)], [np.ones(2, np.float32)]), [2, 2])

    def _picks(self) -> None:
        assert self._run([(3,)], [np.array([b"a", b"b", b"c"], object)]).tolist() == [b"c", b"a"]


def _of_the_call(error: BaseException) -> bool:
    """Whether the arguments were turned down where they came in, and not on the way through the operators."""
    trace, files = error.__traceback__, []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return not any("/gossamer/ops/" in name or name.endswith("runtime/node.py") for name in files)


TestCalls = Calls.TestCase
TestCalls.settings = settings(
    max_examples=150, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
