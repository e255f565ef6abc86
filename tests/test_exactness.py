"""Models on the default path, with and without machine code: every integer is what LiteRT's default path computes, bit
for bit, and every float is as near as sums in another order leave it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.model import read_model
from gossamer.model.model import Model
from gossamer.model.writer import write_model

pytestmark = pytest.mark.peer

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
ZOO = Path(os.environ.get("GOSSAMER_ZOO", SHARED / "zoo"))
TINY = Path(os.environ.get("GOSSAMER_TINY", SHARED / "micro"))
CORAL = Path(os.environ.get("GOSSAMER_CORPUS", SHARED / "corpus")) / "open" / "models" / "files"

FILES = {
    path.stem: path
    for pattern in (ZOO / "*_int8.tflite", TINY / "*.tflite", CORAL / "*_quant.tflite", CORAL / "*_ptq.tflite")
    for path in sorted(pattern.parent.glob(pattern.name))
}
REFUSED = ("person_detect",)
"""Models that LiteRT's Python API refuses."""

CRASHES = ("keyword_scrambled_8bit",)
"""Models that crash LiteRT, at the latest when its interpreter is deleted."""

SEEDS = 3

NEARNESS = 1e-4
"""Of floats, relative, and to the largest of a tensor."""


def with_all_outputs(model: Model) -> Model:
    """The model with every tensor that its operators compute among its outputs."""
    (subgraph,) = model.subgraphs
    computed = {tensor for operator in subgraph.operators for tensor in operator.outputs if tensor >= 0}
    rest = sorted(computed - set(subgraph.outputs))
    return model.replace(subgraphs=(subgraph.replace(outputs=(*subgraph.outputs, *rest)),), signature_defs=())


def values(details: list[dict[str, Any]], seed: int) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Inputs over all of their range."""
    draw = np.random.default_rng(seed)
    for detail in details:
        shape, dtype = detail["shape"], detail["dtype"]
        if np.issubdtype(dtype, np.integer):
            bounds = np.iinfo(dtype)
            yield detail["index"], draw.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
        else:
            yield detail["index"], draw.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("path", ["machine code", "arrays"])
@pytest.mark.parametrize("exposed", [False, True], ids=["as it is", "every tensor"])
@pytest.mark.parametrize("name", [name for name in FILES if name not in (*REFUSED, *CRASHES)])
def test_every_tensor_is_what_litert_computes(
    monkeypatch: pytest.MonkeyPatch, name: str, exposed: bool, path: str
) -> None:
    from ai_edge_litert.interpreter import Interpreter

    if path == "arrays":
        monkeypatch.setenv("GOSSAMER_TARGET", "none")
    content = FILES[name].read_bytes()
    if exposed:
        content = write_model(with_all_outputs(read_model(content)))
    ours, theirs = gossamer.Interpreter(model_content=content), Interpreter(model_content=content)
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
    for seed in range(SEEDS):
        for index, value in values(ours.get_input_details(), seed):
            ours.set_tensor(index, value)
            theirs.set_tensor(index, value)
        ours.invoke()
        theirs.invoke()
        for detail in ours.get_output_details():
            got, expected = ours.get_tensor(detail["index"]), theirs.get_tensor(detail["index"])
            if detail["dtype"] != np.float32:
                np.testing.assert_array_equal(got, expected, err_msg=detail["name"])
            else:
                assert got.shape == expected.shape
                atol = NEARNESS * max(1.0, float(np.abs(expected).max(initial=0)))
                np.testing.assert_allclose(got, expected, NEARNESS, atol, err_msg=detail["name"])
