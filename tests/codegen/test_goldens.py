"""The IR of representative kernels is what it was, and can be compiled."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import get_origin

import pytest

from gossamer.codegen import kernels
from gossamer.codegen.compiler import compile_text
from gossamer.codegen.dots import crosses, multiplies_pairs
from gossamer.codegen.kernels.bf16_rows import Bf16Rows
from gossamer.codegen.kernels.contract import ContractGroups
from gossamer.codegen.kernels.contract24 import Gemm24, Pack24, narrows
from gossamer.codegen.kernels.inner_products import InnerProductGemm, InnerProductRows
from gossamer.codegen.kernels.quantized_strassen import (
    QuantizedStrassenInput,
    QuantizedStrassenOutput,
    QuantizedStrassenWeights,
)
from gossamer.codegen.kernels.scale import ScaleRows
from gossamer.codegen.kernels.tile_contract import TileGemm, WithTiles
from gossamer.codegen.kernels.widen import Widen
from gossamer.codegen.spec import KernelSpec
from gossamer.targets import Target, all_targets
from tests.codegen import goldens

TARGETS = all_targets()

PAIRS_OF_BYTES = {
    *(ContractGroups, InnerProductGemm, InnerProductRows, Widen),
    *(QuantizedStrassenInput, QuantizedStrassenOutput, QuantizedStrassenWeights),
}
"""What only targets have where products of bytes are crossed."""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return goldens.texts()


def test_kernels_are_what_they_were(request: pytest.FixtureRequest, texts: dict[str, str]) -> None:
    if request.config.getoption("--update-goldens"):
        goldens.update(texts)
    report = goldens.difference(goldens.read(), goldens.checksums(texts))
    if report:
        pytest.fail(report, pytrace=False)


def test_every_kind_of_kernel_has_its_representatives() -> None:
    modules = [import_module(f"{kernels.__name__}.{module.name}") for module in iter_modules(kernels.__path__)]
    kinds = {
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type)
        and get_origin(found) is None
        and issubclass(found, KernelSpec)
        and found.__module__ == module.__name__
    }
    for target in TARGETS.values():
        missing = {Bf16Rows} | (set() if target.tiles else {TileGemm, WithTiles})
        missing |= set() if target.tiles or multiplies_pairs(target) else {ScaleRows}
        missing |= set() if crosses(target) else PAIRS_OF_BYTES
        missing |= set() if narrows(target) else {Gemm24, Pack24}
        assert {type(spec) for spec in goldens.representatives(target)} == kinds - missing


def test_names_tell_representatives_apart() -> None:
    for target in TARGETS.values():
        specs = list(goldens.representatives(target))
        assert len({spec.name for spec in specs}) == len(set(specs)) == len(specs)


def test_what_changed_is_named_and_how_to_look_at_it() -> None:
    assert goldens.difference({"a": "1", "b": "2"}, {"b": "2", "a": "1"}) == ""
    report = goldens.difference({"a": "1", "b": "2", "c": "3"}, {"a": "1", "c": "4", "d": "5", "e": "6"})
    assert report.splitlines() == [
        "The IR of kernels is not what tests/codegen/goldens.txt says:",
        "1 changed: c",
        "2 are new: d e",
        "1 are gone: b",
        "To see what differs from the last commit: python -m tests.codegen.goldens diff",
        "If that is meant: python -m pytest tests/codegen/test_goldens.py --update-goldens",
    ]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(target, marks=() if target.name in ("avx2", "neon") else pytest.mark.slow, id=target.name)
        for target in goldens.TARGETS
        if any(goldens.chosen(target))
    ],
)
def test_what_is_written_can_be_compiled(target: Target, texts: dict[str, str], tmp_path: Path) -> None:
    """One kernel of each kind, from the file that ``goldens write`` makes of it."""
    first: dict[type, str] = {}
    for spec in goldens.chosen(target):
        first.setdefault(type(spec), spec.name)
    goldens.write(tmp_path, {name: texts[name] for name in first.values()})
    for name in first.values():
        assert compile_text((tmp_path / f"{name}.ll").read_text(), target, name).code
