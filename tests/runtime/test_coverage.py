"""Which operators run on the reference kernels: who counts, and what is said of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import gossamer
from gossamer import Interpreter, OpResolverType, PrepareError
from gossamer.delegates.jit import default_delegate
from gossamer.runtime import engine
from gossamer.runtime.coverage import Coverage
from gossamer.schema import AddOptions, ReshapeOptions, TensorType
from tests.runtime.graphs import ModelMaker


@gossamer.custom_op("Flip", shape="x", trace=False)
def flip(x: np.ndarray) -> np.ndarray:
    return x[::-1].copy()


def model() -> bytes:
    make = ModelMaker()
    x, a, b, y = (make.tensor((4,), name=name) for name in "xaby")
    make.op("RELU", [x], [a])
    make.op("Flip", [a], [b], custom=True)
    make.op("ADD", [a, b], [y], AddOptions())
    make.io([x], [y])
    return make.model()


@pytest.mark.skipif(default_delegate() is None, reason="no machine code for this CPU")
def test_operators_without_machine_code_are_counted_but_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    interpreter = Interpreter(model_content=model(), custom_ops=[flip])
    interpreter.allocate_tensors()
    found = interpreter._engine.coverage()
    assert found.operators == 3
    ((name, reason),) = found.left
    assert (name, found.left[name, reason]) == ("Flip", 1)
    assert found.sentences().startswith("1 of 3 operators runs on the reference kernels")
    assert found.sentences().endswith(f"1 Flip: {reason}.")
    assert found.plain()["reasons"] == [{"operator": "Flip", "reason": reason, "count": 1}]
    assert not caplog.records


def test_without_delegate_all_are_counted() -> None:
    how = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=model(), custom_ops=[flip], experimental_op_resolver_type=how)
    interpreter.allocate_tensors()
    found = interpreter._engine.coverage()
    assert (found.operators, found.left.total()) == (3, 3)
    assert found.sentences().endswith("of machine code. The default delegate is not wanted.")


def test_a_cpu_without_machine_code_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine, "_default_delegate", lambda settings: None)
    monkeypatch.setattr(engine, "_told", set())
    for _ in range(2):
        Interpreter(model_content=model(), custom_ops=[flip]).allocate_tensors()
    (record,) = caplog.records
    assert record.getMessage().startswith("3 of 3 operators of the model run on the reference kernels")
    assert record.getMessage().endswith("There is no machine code for this CPU, or its features are not told.")


def test_what_is_said_is_short() -> None:
    assert Coverage(3, Counter()).sentences() == ""
    many = Counter({(f"OP{number}", f"reason {number}"): 10 - number for number in range(5)})
    text = Coverage(100, many).sentences("the model")
    assert text.startswith("40 of 100 operators of the model run on the reference kernels, in NumPy")
    assert "10 OP0: reason 0. 9 OP1: reason 1. 8 OP2: reason 2. There are 2 more reasons" in text
    shared = Counter({(f"OP{number}", "one reason."): 1 for number in range(5)})
    assert "1 OP0, 1 OP1, 1 OP2 and 2 more: one reason." in Coverage(9, shared).sentences()


@pytest.mark.skipif(default_delegate() is None, reason="no machine code for this CPU")
def test_a_shape_that_cannot_be_is_told_by_the_node_that_refuses_it() -> None:
    make = ModelMaker()
    x = make.tensor((2, 4), name="x")
    for _ in range(30):
        y = make.tensor((2, 4))
        make.op("RELU", [x], [y])
        x = y
    z = make.tensor((8,), name="z")
    make.op("RESHAPE", [x, make.constant([8], np.int32, TensorType.INT32)], [z], ReshapeOptions())
    make.io([0], [z])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [3, 4])
    with pytest.raises(PrepareError) as error:
        interpreter.allocate_tensors()
    first, *rest = str(error.value).splitlines()
    assert first.startswith('RESHAPE (node 30, output "z"): cannot reshape [3, 4] (12 elements) to [8] (8 elements)')
    assert rest[1:] == ["It is one of 31 nodes that jit runs.", "Node number 31 (jit) failed to prepare."]
