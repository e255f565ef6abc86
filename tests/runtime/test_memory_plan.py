"""Memory plans of real models: every offset equals the address that LiteRT gives the tensor, arena and temporaries.

``tests/planner/litert_offsets.json`` was recorded from LiteRT without delegates by the script of that name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.planner.planner import AllocationType
from tests.conftest import ROOT

RECORDED: dict[str, Any] = json.loads((ROOT / "tests" / "planner" / "litert_offsets.json").read_text())
MODELS = ROOT.parent / "shared" / "micro"


def model_path(name: str) -> Path:
    path = MODELS / name
    if not path.exists():
        pytest.skip(f"{name} is not here (../shared/micro)")
    return path


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_every_offset_is_litert_s(name: str) -> None:
    recorded = RECORDED[name]
    interpreter = gossamer.Interpreter(
        model_path=model_path(name),
        experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    for kind, arena in ((AllocationType.ARENA_RW, "arena"), (AllocationType.ARENA_RW_PERSISTENT, "persistent")):
        plan = interpreter.memory_plan(persistent=arena == "persistent")
        plan.check()
        expected = {i: at for i, (type_, _, at) in enumerate(recorded["tensors"]) if type_ == kind and at is not None}
        assert plan.offsets == expected
        assert plan.size == recorded[f"{arena}_bytes"]
