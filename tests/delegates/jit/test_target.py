"""What machine code is made for, as the environment says."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer
from gossamer.delegates.jit import default_delegate
from gossamer.delegates.jit.delegate import JitDelegate
from gossamer.ops import add
from gossamer.schema import AddOptions
from gossamer.targets import Target
from tests.delegates.jit.running import TARGETS, machine_code
from tests.ops.cases import Case, model_of, tensor


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_environment_names_the_target(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    monkeypatch.setenv("GOSSAMER_TARGET", target.name)
    delegate = default_delegate()
    assert isinstance(delegate, JitDelegate)
    assert delegate.target is target
    x = np.arange(5, dtype=np.float32)
    _, kernel = machine_code(model_of(add.op, Case("", [tensor(x), tensor(x)], [tensor(2 * x)], AddOptions())))
    assert kernel.built is not None
    assert {spec.isa for spec in kernel.built.specs.values()} == {target.plain.name}


def test_a_target_that_does_not_run_here_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_TARGET", "pdp11")
    with pytest.raises(ValueError, match="GOSSAMER_TARGET is 'pdp11', but this CPU runs "):
        default_delegate()
    x = np.zeros(1, np.float32)
    model = model_of(add.op, Case("", [tensor(x), tensor(x)], [tensor(x)], AddOptions()))
    with pytest.raises(ValueError, match="GOSSAMER_TARGET is 'pdp11'"):
        gossamer.Interpreter(model_content=model).allocate_tensors()
