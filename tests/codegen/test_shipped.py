"""What ships. Every target takes seconds; the narrowest stands for them unless the slow tests run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest

from gossamer.codegen import kernels
from gossamer.codegen.shipped import shipped_kernels
from gossamer.codegen.spec import KernelSpec
from gossamer.targets import all_targets

NOT_SHIPPED = {"Peak"}
"""Kernels that no model runs."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=() if target.name == "avx2" else pytest.mark.slow)
        for name, target in all_targets().items()
    ],
)
def shipped(request: pytest.FixtureRequest) -> dict[str, KernelSpec]:
    specs = list(shipped_kernels(all_targets()[request.param]))
    assert len({spec.name for spec in specs}) == len(specs)
    assert all(spec.isa == request.param for spec in specs)
    return {spec.name: spec for spec in specs}


def kernel_types() -> Iterator[type[KernelSpec]]:
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(found, KernelSpec) and not inspect.isabstract(found) and found.__module__ == module.name:
                yield found


def test_every_kind_of_kernel_ships(shipped: dict[str, KernelSpec]) -> None:
    types = {found.__name__ for found in kernel_types()}
    assert types - {type(spec).__name__ for spec in shipped.values()} == NOT_SHIPPED


def test_every_kernel_that_ships_can_be_emitted(shipped: dict[str, KernelSpec]) -> None:
    for spec in shipped.values():
        assert "@k(" in spec.emit(all_targets()[spec.isa])
