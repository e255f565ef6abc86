"""What `tests.delegates.jit.test_hybrid` cannot see: names, refusals, and targets that this CPU does not run."""

from __future__ import annotations

import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.depthwise import HybridDepthwiseRow
from gossamer.codegen.kernels.dynamic import levels_of
from gossamer.codegen.kernels.outputs import Dequantized
from gossamer.codegen.kernels.quantized_contract import QuantizedGemm
from gossamer.targets import Target, all_targets

every_target = pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)


@every_target
def test_compiles(target: Target) -> None:
    type, added = levels_of(target), Dequantized(("relu", ("add", 0, 1)))
    assembly(QuantizedGemm(target.name, 4, 2, type, Dequantized()), target)
    assembly(QuantizedGemm(target.name, 2, 1, type, added, "steps", 3, ragged=True), target)
    assembly(HybridDepthwiseRow(target.plain.name, 4, ("relu6", 0), (3, 3, 1)), target.plain)


@pytest.mark.parametrize("name", [target.name for target in all_targets().values() if target.dot])
def test_dot_products_take_levels_as_they_are(name: str) -> None:
    target = all_targets()[name]
    text, other = (QuantizedGemm(name, 4, 2, type, Dequantized()).emit(target) for type in ("i8", "u8"))
    if levels_of(target) == "u8":
        text, other = other, text
    assert text.count(" xor ") < other.count(" xor ")


def test_names() -> None:
    added = Dequantized(("add", 0, 1))
    assert QuantizedGemm("avx512vnni", 14, 2, "u8", added).name == "f32_hybrid_u8_gemm_add_14x2__avx512vnni"
    assert QuantizedGemm("neon", 4, 1, "i8", Dequantized(), ragged=True).name == "f32_hybrid_i8_gemm_4x1__neon_ragged"
    assert HybridDepthwiseRow("avx2", 7, 0, (3, 3, 2)).name == "hybrid_f32_dwconv_3x3s2_7x1__avx2"
