"""The IR of representative kernels is what it was, and a text that was kept compiles to the same code."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import get_origin

import pytest

from gossamer.codegen import kernels
from gossamer.codegen.compiler import compile_kernel, compile_text
from gossamer.codegen.kernels.scale import ScaleRows
from gossamer.codegen.kernels.tile_contract import TileGemm, WithTiles
from gossamer.codegen.spec import KernelSpec
from gossamer.targets import Target, all_targets
from tests.codegen import goldens

TARGETS = all_targets()


def test_kernels_are_what_they_were(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        goldens.update()
    report = goldens.difference(goldens.read(), goldens.checksums(goldens.texts()))
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
        missing = set() if target.tiles else {ScaleRows, TileGemm, WithTiles}
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


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("goldens")
    goldens.write(place)
    return place


@pytest.mark.parametrize(
    "target",
    [pytest.param(t, marks=() if t.name in ("avx2", "neon") else pytest.mark.slow) for t in TARGETS.values()],
    ids=list(TARGETS),
)
def test_a_text_that_was_kept_compiles_to_the_same_code(target: Target, kept: Path) -> None:
    seen: set[type] = set()
    for spec in goldens.representatives(target):
        if type(spec) in seen:
            continue
        seen.add(type(spec))
        text = (kept / f"{spec.name}.ll").read_text()
        assert compile_text(text, TARGETS[spec.isa], spec.name) == compile_kernel(spec, target)
