"""CIRCULAR_BUFFER, which stops the model until its slots are new; checked against TFLite Micro with period 1."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import PrepareError
from gossamer.micro import MicroInterpreter
from gossamer.schema import TensorType, flexbuffers
from tests.runtime.graphs import ModelMaker


def model(slots: int, options: bytes = b"", width: int = 2) -> bytes:
    make = ModelMaker()
    x = make.tensor((1, 1, 2, width), TensorType.INT8, name="x")
    y, z = (make.tensor((1, slots, 2, 2), TensorType.INT8, name=name) for name in ("y", "z"))
    make.op("CIRCULAR_BUFFER", [x], [y], custom=True, custom_options=options)
    make.op("MAXIMUM", [y, y], [z])
    make.io([x], [z])
    return make.model()


def ready(content: bytes) -> MicroInterpreter:
    interpreter = MicroInterpreter(content, arena=8192)
    interpreter.allocate_tensors()
    return interpreter


def feed(interpreter: MicroInterpreter, value: int) -> tuple[bool, list[int]]:
    interpreter.input(0).store(np.full((1, 1, 2, 2), value, np.int8))
    finished = interpreter.invoke()
    return finished, [int(v) for v in interpreter.output(0).array()[0, :, 0, 0]]


def test_slots_move_up() -> None:
    interpreter = ready(model(5))
    for value in range(1, 8):
        finished, slots = feed(interpreter, value)
        assert finished
        assert slots == [max(0, value - 4 + i) for i in range(5)]


def test_what_follows_runs_once_in_a_period() -> None:
    interpreter = ready(model(3, flexbuffers.dumps({"cycles_max": 3})))
    results = [feed(interpreter, value) for value in (1, 2, 3, 4)]
    assert [finished for finished, _ in results] == [False, False, True, False]
    assert results[2][1] == [1, 2, 3]


def test_reset_begins_a_period() -> None:
    interpreter = ready(model(3, flexbuffers.dumps({"cycles_max": 2})))
    assert not feed(interpreter, 1)[0]
    interpreter.reset()
    assert [feed(interpreter, value)[0] for value in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model(3, width=3), "is no slot of"),
        (model(3, b"\xff\xff\xff"), "not a flexbuffer|must hold cycles_max"),
    ],
)
def test_refused(content: bytes, message: str) -> None:
    with pytest.raises(PrepareError, match=message):
        ready(content)
