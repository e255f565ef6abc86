"""The recording delegate keeps a record of every call, in order."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from gossamer.delegates.recording import Call, RecordingDelegate
from tests.delegates.graphs import Interpreter, chain


def test_every_call_is_recorded() -> None:
    delegate = RecordingDelegate(lambda node: node.node_index > 0)
    interpreter = Interpreter(model_content=chain("SIN", "NEG", "SIN"), experimental_delegates=[delegate])
    interpreter.set_tensor(0, np.zeros(4, np.float32))
    interpreter.invoke()
    del interpreter
    gc.collect()
    assert delegate.calls == [
        Call("is_node_supported", 0),
        Call("is_node_supported", 1),
        Call("is_node_supported", 2),
        Call("create_kernel", (1, 2)),
        Call("init", (1, 2)),
        Call("prepare", (1, 2)),
        Call("invoke", (1, 2)),
        Call("free", (1, 2)),
    ]
    assert delegate.stages() == ["create_kernel", "init", "prepare", "invoke", "free"]


def test_it_fails_where_it_is_told_to() -> None:
    delegate = RecordingDelegate(fail_at="create_kernel")
    with pytest.raises(RuntimeError, match="told to fail at create_kernel"):
        Interpreter(model_content=chain("SIN"), experimental_delegates=[delegate])
    assert delegate.stages() == ["create_kernel"]
    assert delegate.calls[-1] == Call("create_kernel", (0,))
