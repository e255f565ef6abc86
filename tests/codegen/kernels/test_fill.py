from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.fill import Fill
from gossamer.codegen.kernels.move import SIZES
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run


@on_every_target
@pytest.mark.parametrize("bits", SIZES)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 64, 100])
def test_runs_of_one_element(target: Target, bits: int, count: int) -> None:
    size = bits // 8
    source = guarded(np.random.default_rng(0).integers(0, 2**bits - 1, (2, 3, 4), f"u{size}"))
    for each, threads in ((max(count, 1), 1), (8, 3)):
        whole = guarded(np.zeros((2, 3, 4, count + 1), source.dtype))
        destination = whole[..., 1:]
        arguments = block(
            Fill.arguments,
            source=source,
            destination=destination,
            groups=2,
            rows=3,
            columns=4,
            run=size * count,
            block=size * each,
            blocks=-(-count // each),
            **{
                f"{side}_{name}": array.strides[at]
                for side, array in (("source", source), ("destination", destination))
                for at, name in enumerate(("group", "row", "column"))
            },
        )
        run(Fill(target.name, bits), arguments, threads)
        assert (destination == source[..., None]).all()
        assert not whole[..., 0].any()


def test_names_and_refusals() -> None:
    assert Fill("avx2", 16).name == "x16_fill__avx2"
    with pytest.raises(CompileError, match="8, 16, 32, 64"):
        Fill("avx2", 24).emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for bits in SIZES:
        assembly(Fill(target.name, bits), target)
