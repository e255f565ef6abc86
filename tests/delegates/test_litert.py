"""Partitions, execution plans and memory plans with delegates are those of LiteRT, on random graphs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.delegates.null import NullDelegate
from gossamer.model import read_model
from gossamer.model.control_dependencies import CONTROL_DEPENDENCIES, encode
from gossamer.model.metadata import with_metadata
from gossamer.model.writer import write_model
from gossamer.schema import (
    AssignVariableOptions,
    CallOnceOptions,
    ConcatenationOptions,
    SplitOptions,
    TensorType,
    VarHandleOptions,
)
from tests.delegates.graphs import FLOAT, Interpreter, sine_model
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.peer

MODES: list[dict[str, bool]] = [
    {},
    {"experimental_disable_delegate_clustering": True},
    {"experimental_disable_delegate_node_fusion": True},
    {"experimental_preserve_all_tensors": True},
]


KINDS = ["SIN", "ADD", "MUL", "NEG", "SPLIT", "CONCATENATION"]


def random_model(rng: random.Random, *, side_effects: bool) -> tuple[bytes, int]:
    """A model of 1 to 14 nodes over float32 tensors of several sizes, and the number of nodes."""
    make = ModelMaker()
    init = 0
    make.tensor((4,))
    axis = make.constant([0], np.int32, TensorType.INT32)
    live = {size: [make.tensor((size,))] for size in (4, 8, 100)}
    inputs = [tensors[0] for tensors in live.values()]
    live[4].append(make.constant([1.0, 2, 3, 4], np.float32, FLOAT))
    handles: list[int] = []
    nodes = rng.randint(1, 14)
    for node in range(nodes):
        size = rng.choice(sorted(live))
        kind = rng.choice(KINDS + ["STATE"] * (3 if side_effects else 0))
        if kind == "SPLIT":
            halves = [make.tensor((size // 2,)), make.tensor((size // 2,))]
            make.op("SPLIT", [axis, rng.choice(live[size])], halves, SplitOptions(num_splits=2))
            live.setdefault(size // 2, []).extend(halves)
            if size // 2 == 1 or (size // 2) % 2:
                live.pop(size // 2)
        elif kind == "STATE":
            choice = rng.choice(["VAR_HANDLE", "ASSIGN_VARIABLE", "CALL_ONCE"])
            if choice == "ASSIGN_VARIABLE" and handles:
                make.op(choice, [rng.choice(handles), rng.choice(live[size])], [], AssignVariableOptions())
            elif choice == "CALL_ONCE":
                init = 1
                make.op(choice, [], [], CallOnceOptions(init_subgraph_index=1))
            else:
                handles.append(make.tensor((1,), TensorType.RESOURCE))
                options = VarHandleOptions(container="", shared_name=f"v{node}")
                make.op("VAR_HANDLE", [], [handles[-1]], options)
        elif kind == "CONCATENATION":
            made = make.tensor((2 * size,))
            operands = [rng.choice(live[size]), rng.choice(live[size])]
            make.op(kind, operands, [made], ConcatenationOptions(axis=0))
            live.setdefault(2 * size, []).append(made)
        else:
            made = make.tensor((size,))
            arity = 2 if kind in ("ADD", "MUL") else 1
            make.op(kind, [rng.choice(live[size]) for _ in range(arity)], [made])
            live[size].append(made)
    produced = [tensor for operator in make.graphs[0].operators for tensor in operator.outputs if tensor not in handles]
    outputs = rng.sample(produced, min(len(produced), rng.randint(1, 3))) if produced else inputs[:1]
    make.io(inputs, outputs)
    if init:
        make.subgraph("init")
    return make.model(), nodes


def ours(model: bytes, nodes: set[int], flags: int, **arguments: Any) -> gossamer.Interpreter:
    return Interpreter(
        model_content=model,
        experimental_delegates=[NullDelegate(lambda node: node.node_index in nodes, flags=flags)],
        **arguments,
    )


def compare(model: bytes, nodes: list[int], mode: dict[str, bool], flags: int, *, memory: bool) -> None:
    from tests.delegates.litert import observe

    seen = observe(model, nodes, flags=flags, **mode)
    interpreter = ours(model, set(nodes), flags, **mode)
    interpreter.allocate_tensors()
    claims = interpreter.delegate_claims()[0]
    partitions = [(list(s.nodes), list(s.inputs), list(s.outputs)) for s in claims.partitions]
    assert partitions == seen.partitions
    planned = interpreter._subgraphs[0].planned_nodes
    assert [(node.index, list(node.inputs), list(node.outputs)) for node in planned] == seen.plan
    if memory:
        assert interpreter.memory_plan().offsets == seen.offsets


@pytest.mark.filterwarnings("ignore:experimental_preserve_all_tensors")
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: next(iter(mode), "default"))
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed: int, mode: dict[str, bool]) -> None:
    rng = random.Random(seed)
    side_effects = seed % 3 == 2
    model, count = random_model(rng, side_effects=side_effects)
    nodes = [node for node in range(count) if rng.random() < rng.choice([0.3, 0.5, 0.8])]
    compare(model, nodes, mode, flags=1 if side_effects else 0, memory=not side_effects)


@pytest.mark.parametrize("mode", MODES[:3], ids=lambda mode: next(iter(mode), "default"))
@pytest.mark.parametrize("seed", range(30))
def test_random_control_dependencies(seed: int, mode: dict[str, bool]) -> None:
    rng = random.Random(seed)
    model, count = random_model(rng, side_effects=False)
    pairs = [sorted(rng.sample(range(count), 2)) for _ in range(rng.randint(0, 4))] if count > 1 else []
    edges = encode([[(before, after) for before, after in pairs]])
    model = bytes(write_model(with_metadata(read_model(model), CONTROL_DEPENDENCIES, edges)))
    nodes = [node for node in range(count) if rng.random() < 0.5]
    compare(model, nodes, mode, flags=0, memory=True)


def test_a_static_delegate_is_refused_with_the_same_words(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    from tests.delegates.litert import observe
    from tests.delegates.test_applying import dynamic_model

    Interpreter(model_content=dynamic_model(), experimental_delegates=[NullDelegate("SIN")])
    (ours,) = caplog.messages
    with pytest.raises(RuntimeError):
        observe(dynamic_model(), [0])
    assert ours.partition("(tensor#")[0] in capfd.readouterr().err


@pytest.mark.filterwarnings("ignore:experimental_preserve_all_tensors")
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: next(iter(mode), "default"))
def test_the_sine_example(mode: dict[str, bool]) -> None:
    compare(sine_model(), [0, 3], mode, flags=0, memory=True)
