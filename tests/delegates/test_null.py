"""The null delegate changes nothing: every case of every operator gives the same through it."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

import gossamer
import tests.ops
from gossamer import DelegateFlags
from gossamer.delegates.null import NullDelegate
from gossamer.model import read_model, verify_model
from tests.delegates.graphs import Interpreter, sine_model
from tests.ops.cases import model_of, run_case

MODULES = [info.name for info in pkgutil.iter_modules(tests.ops.__path__) if info.name.startswith("test_")]


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DelegateFlags.ALLOW_DYNAMIC_TENSORS], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_operators_give_the_same(name: str, flags: DelegateFlags) -> None:
    module = importlib.import_module(f"tests.ops.{name}")
    for case in getattr(module, "CASES", ()):
        op = getattr(module, "op", None)
        # Some cases need subgraphs, which their own test adds.
        if op is None or verify_model(read_model(model_of(op, case))):
            continue

        def interpreter(**arguments: Any) -> gossamer.Interpreter:
            return Interpreter(experimental_delegates=[NullDelegate(flags=flags)], **arguments)

        run_case(interpreter, op, case)


def test_claims_by_name() -> None:
    def nodes(delegate: NullDelegate) -> list[tuple[int, ...]]:
        preview = Interpreter(model_content=sine_model()).preview_delegate(delegate)
        return [subset.nodes for subset in preview.partitions]

    assert nodes(NullDelegate()) == [(0, 1, 2, 3, 4)]
    assert nodes(NullDelegate("SIN")) == [(0,), (3,)]
    assert nodes(NullDelegate("SIN, MUL")) == [(0, 2, 3)]
    assert nodes(NullDelegate("COS")) == []
    assert nodes(NullDelegate(lambda node: node.node_index > 2)) == [(3, 4)]
