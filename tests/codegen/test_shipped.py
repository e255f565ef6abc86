"""What ships. Lowering every shape of the table takes half a minute for a target."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from gossamer import Interpreter
from gossamer.codegen import kernels
from gossamer.codegen.spec import KernelSpec
from gossamer.programs import host, library
from gossamer.programs.library import kernel_library
from gossamer.targets import Target, all_targets, host_target
from gossamer.tools._ship import TABLES
from tests.conftest import ROOT

NOT_SHIPPED = {"Turns"}
"""A loop's own statements, compiled into one; without a compiler they run as commands."""

OF_TILES = {"TileGemm", "WithTiles"}
"""What only targets with tiles of bytes have."""

OF_VNNI = {"ScaleRows"}
"""What only targets with dot products of 512 bits have."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow) for name in all_targets()],
)
def shipped(request: pytest.FixtureRequest) -> dict[str, KernelSpec]:
    target = all_targets()[request.param]
    specs = {spec.name: spec for spec in family_kernels(target)}
    assert {spec.isa for spec in specs.values()} <= {member.name for member in target.family()}
    return specs


def family_kernels(target: Target) -> Iterator[KernelSpec]:
    """What ships for a target and those that it extends."""
    return (spec for member in target.family() for table in TABLES for spec in table(member))


def kernel_types() -> Iterator[type[KernelSpec]]:
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(found, KernelSpec) and not inspect.isabstract(found) and found.__module__ == module.name:
                yield found


def test_every_kind_of_kernel_ships(shipped: dict[str, KernelSpec]) -> None:
    missing = {found.__name__ for found in kernel_types()} - {type(spec).__name__ for spec in shipped.values()}
    has_tiles = any(all_targets()[spec.isa].tiles for spec in shipped.values())
    has_vnni = any(spec.isa == "avx512vnni" for spec in shipped.values())
    expected = NOT_SHIPPED | (set() if has_tiles else OF_TILES) | (set() if has_vnni else OF_VNNI)
    assert missing <= expected, "add layers that need these kernels to codegen/shipped.py or delegates/jit/shipped.py"
    assert missing >= expected, "what ships by now needs no exemption"


def test_every_kernel_that_ships_can_be_emitted(shipped: dict[str, KernelSpec]) -> None:
    for spec in shipped.values():
        assert "@k(" in spec.emit(all_targets()[spec.isa])


@pytest.mark.slow
@pytest.mark.parametrize("example", ["digits", "digits_int8"])
def test_what_the_examples_need_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    target = host_target(host.cpu_features())
    if target is None:
        pytest.skip("no target for this CPU, or its features are not told")
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(library, "SHIPPED", tmp_path / "none")
    Interpreter(ROOT / "examples" / f"{example}.tflite").allocate_tensors()
    needed = kernel_library(target).archives[-1].names()
    assert len(needed) > 5
    assert set(needed) - {spec.name for spec in family_kernels(target)} == set()
