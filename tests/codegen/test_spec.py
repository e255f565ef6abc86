from __future__ import annotations

import pytest

from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
class Tile(KernelSpec):
    activation: str = ""
    rows: int = 14
    prefetch: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "gemm", self.activation, f"{self.rows}x2")

    @property
    def variant(self) -> str:
        return "prefetch" if self.prefetch else ""

    def emit(self, target: Target) -> str:
        return ""


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (Tile("avx512"), "f32_gemm_14x2__avx512"),
        (Tile("avx512", "relu6"), "f32_gemm_relu6_14x2__avx512"),
        (Tile("neon", "", 8, True), "f32_gemm_8x2__neon_prefetch"),
    ],
)
def test_names_follow_from_fields(spec: Tile, name: str) -> None:
    assert spec.name == name


@pytest.mark.parametrize("part", ["Relu6", "a-b", "__x", "a b", "x_"])
def test_other_names_are_refused(part: str) -> None:
    with pytest.raises(CompileError, match="lower case"):
        _ = Tile("avx512", part).name


def test_specs_are_values() -> None:
    assert Tile("avx512") == Tile("avx512") != Tile("avx2")
    assert len({Tile("avx512"), Tile("avx512"), Tile("avx2")}) == 2


BLOCK = ArgumentBlock("*a count *b")


def test_a_block_knows_where_its_words_lie() -> None:
    assert [(argument.name, argument.type, argument.offset) for argument in BLOCK] == [
        ("a", "ptr", 0),
        ("count", "i64", 8),
        ("b", "ptr", 16),
    ]
    assert (len(BLOCK), BLOCK.size, BLOCK["b"].offset) == (3, 24, 16)


def test_a_block_is_filled_by_name() -> None:
    words = BLOCK.words(b=3, a=1, count=2)
    assert words == (1, 2, 3)
    assert BLOCK.named(words) == {"a": 1, "count": 2, "b": 3}


def test_a_block_is_filled_completely_and_with_nothing_else() -> None:
    with pytest.raises(CompileError, match=r"missing \['b'\], not among them \['c'\]"):
        BLOCK.words(a=1, count=2, c=3)


def test_names_of_words_differ() -> None:
    with pytest.raises(CompileError, match="must differ"):
        ArgumentBlock("*x x")
