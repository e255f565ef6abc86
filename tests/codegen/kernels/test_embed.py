from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.embed import Combiner, Embed
from gossamer.errors import CompileError
from gossamer.ops._embedding import combined
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

COMBINERS = get_args(Combiner)


def embedded(target: Target, combiner: Combiner, ids: list[int], places: list[int], rows: int) -> tuple:
    """What is written, what is to be, and whether there was a fault."""
    rng = np.random.default_rng(0)
    spec, table = Embed(target.name, combiner), guarded(rng.standard_normal((6, 21)).astype(np.float32))
    weights = guarded(rng.standard_normal(len(ids)).astype(np.float32))
    y, fault = guarded(np.full((rows, 21), 7, np.float32)), guarded(np.zeros(1, np.int64))
    words = {"ids": guarded(np.array(ids, np.int32)), "places": guarded(np.array(places, np.int64)), "y": y}
    counts = {"entries": len(ids), "rows": rows, "columns": 21, "table_rows": 6, "table_row": table.strides[0]}
    run(spec, block(spec.arguments, **words, weights=weights, table=table, fault=fault, **counts), 2)
    return y, (words["ids"], words["places"], weights, table, rows, combiner), int(fault[0])


@on_every_target
@pytest.mark.parametrize("combiner", COMBINERS)
def test_sums(target: Target, combiner: Combiner) -> None:
    for ids, places in (([2, 0, 5, 5], [0, 0, 2, 3]), ([1], [3]), ([1, 2, 3], [1, 0, 1]), ([], [])):
        y, operands, fault = embedded(target, combiner, ids, places, 4)
        assert not fault
        assert y.tobytes() == combined(*operands).tobytes()


@on_every_target
@pytest.mark.parametrize("wild", [-1, 6, 2**31 - 1, -(2**31)])
def test_numbers_that_lead_outside(target: Target, wild: int) -> None:
    for combiner in COMBINERS:
        assert embedded(target, combiner, [0, wild, 1], [0, 1, 2], 3)[2] == 1
        assert embedded(target, combiner, [0, 1, 1], [0, wild, 2], 3)[2] == 1


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("combiner", COMBINERS)
def test_compiles_for_every_target(target: Target, combiner: Combiner) -> None:
    assembly(Embed(target.name, combiner), target)


def test_refusals() -> None:
    with pytest.raises(CompileError, match="no such combiner"):
        Embed("avx2", "product").emit(PLAIN[0])  # type: ignore[arg-type]
