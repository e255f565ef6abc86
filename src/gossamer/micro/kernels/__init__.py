"""The kernels of TFLite Micro, family by family: a module holds `KERNELS`, one record for each operator."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache

from gossamer.micro.kernels.kernel import MicroKernel
from gossamer.micro.kernels.options import OPTIONS

FAMILIES = (
    "activations",
    "arithmetic",
    "control_flow",
    "convolution",
    "custom",
    "decode",
    "lstm",
    "matmul",
    "more_types",
    "pooling",
    "reductions",
    "resizing",
    "shapes",
    "signal",
    "softmax",
    "variables",
)


@cache
def _kernels() -> dict[tuple[str, bool], MicroKernel]:
    kernels: dict[tuple[str, bool], MicroKernel] = {}
    for family in FAMILIES:
        for kernel in importlib.import_module(f"{__name__}.{family}").KERNELS:
            kernel.options = OPTIONS.get(kernel.name)
            kernels[kernel.name, kernel.custom] = kernel
    return dict(sorted(kernels.items(), key=lambda item: (item[1].custom, item[0])))


def find_kernel(name: str, *, custom: bool = False) -> MicroKernel | None:
    """The kernel of a builtin operator, or of a custom one; ``None`` if there is none."""
    return _kernels().get((name, custom))


def all_kernels() -> Iterator[MicroKernel]:
    """All kernels, builtin ones first, by name."""
    return iter(_kernels().values())
