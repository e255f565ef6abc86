from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest

from gossamer.codegen import kernels
from gossamer.codegen.shipped import Layer, layers_that_ship, shipped_kernels, specs_of
from gossamer.codegen.spec import KernelSpec
from gossamer.targets import Target, all_targets

on_every_target = pytest.mark.parametrize("target", all_targets().values(), ids=list(all_targets()))


def kernel_types() -> Iterator[type[KernelSpec]]:
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(found, KernelSpec) and not inspect.isabstract(found) and found.__module__ == module.name:
                yield found
