"""Lifetimes in scopes: chains, callees inside their callers, scratch buffers, offline offsets."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.micro import MicroInterpreter, measure
from gossamer.model import read_model
from gossamer.model.metadata import OFFLINE_ALLOCATION, OfflineAllocation, with_metadata, with_offline_allocation
from gossamer.schema import CallOnceOptions, IfOptions, TensorType, WhileOptions
from tests.micro.models import chain, chooser
from tests.runtime.graphs import ModelMaker, adder


def lifetimes(model: bytes) -> dict[str, tuple[int, int]]:
    return {buffer.name: (buffer.first_use, buffer.last_use) for buffer in measure(read_model(model)).buffers}


def test_an_input_is_not_kept() -> None:
    assert lifetimes(chain()) == {"x24_0": (0, 1), "x16_1": (1, 2), "x16_2": (2, 3), "x32_3": (3, 3)}


def test_branches_lie_within_the_if() -> None:
    # Scope 1 is the IF, 2 and 6 open its branches, the others are their operators.
    report = measure(read_model(chooser()))
    by_place = {(b.subgraph, b.name): (b.first_use, b.last_use) for b in report.buffers}
    assert by_place == {
        (0, "c"): (0, 7),
        (0, "x"): (0, 7),
        (0, "y"): (1, 7),
        (1, "x24_0"): (2, 3),
        (1, "x16_1"): (3, 4),
        (1, "x16_2"): (4, 5),
        (1, "x32_3"): (5, 5),
        (2, "x24_0"): (6, 7),
        (2, "x32_1"): (7, 7),
    }
    assert report.scopes[1] == ("IF", 0, 0)
    assert report.scopes[3] == ("FULLY_CONNECTED", 0, 1)


def test_a_tensor_that_nobody_uses_has_a_place_all_the_same() -> None:
    make = ModelMaker()
    x, y = make.tensor((4,), name="x"), make.tensor((4,), name="y")
    make.tensor((8,), name="idle")
    make.op("ABS", [x], [y])
    make.io([x], [y])
    assert lifetimes(make.model())["idle"] == (-1, -1)


def test_scratch_buffers_of_a_mirror_pad() -> None:
    make = ModelMaker()
    x, y = make.tensor((4, 4), name="x"), make.tensor((6, 6), name="y")
    pads = make.constant([[1, 1], [1, 1]], np.int32, TensorType.INT32)
    z = make.tensor((6, 6), name="z")
    make.op("MIRROR_PAD", [x, pads], [y])
    make.op("ABS", [y], [z])
    make.io([x], [z])
    scratch = [b for b in measure(read_model(make.model())).buffers if b.tensor is None]
    assert [(b.name, b.size, b.first_use, b.last_use) for b in scratch] == [
        ("MIRROR_PAD (node 0) scratch", 16, 1, 1),
        ("MIRROR_PAD (node 0) scratch", 16, 1, 1),
    ]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("IF", IfOptions(then_subgraph_index=0, else_subgraph_index=0)),
        ("WHILE", WhileOptions(cond_subgraph_index=0, body_subgraph_index=0)),
        ("CALL_ONCE", CallOnceOptions(init_subgraph_index=0)),
    ],
)
def test_a_subgraph_that_calls_itself(name: str, options: object) -> None:
    make = ModelMaker()
    c = make.tensor((1,), TensorType.BOOL, name="c")
    x, y = make.tensor((1,), TensorType.BOOL), make.tensor((1,), TensorType.BOOL)
    operands = {"IF": ([c, x], [y]), "WHILE": ([c], [y]), "CALL_ONCE": ([], [])}[name]
    make.op(name, *operands, options)  # type: ignore[arg-type]
    make.io({"IF": [x], "WHILE": [c], "CALL_ONCE": []}[name], [] if name == "CALL_ONCE" else [y])
    with pytest.raises(ModelError, match="subgraph 0 calls itself"):
        MicroInterpreter(make.model(), arena=4096).allocate_tensors()


def test_offline_offsets_are_obeyed() -> None:
    model = with_offline_allocation(read_model(adder()), OfflineAllocation((64, -1, 0, -1)))
    assert {b.name: b.offset for b in measure(model).buffers} == {"x": 64, "middle": 0, "y": 32}


def test_offline_offsets_for_other_tensors() -> None:
    model = with_metadata(read_model(adder()), OFFLINE_ALLOCATION, np.array([1, 1, 3, -1, -1, -1], "<i4").tobytes())
    with pytest.raises(ModelError, match="has 3 offsets for the 4 tensors of the model"):
        measure(model)
