"""`softmax`: along the last dimension. Settings are (beta, whether the logarithm is wanted)."""

from __future__ import annotations

from itertools import product

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.softmax import Softmax
from gossamer.codegen.layout import merged
from gossamer.programs.program import Address


def commands(node: Kernel, build: Build) -> None:
    """A command for all rows that are evenly apart, which are mostly all of them."""
    (x,) = node.operands[:1]
    beta, log = node.settings
    y = node.y
    rows = merged(y.shape[:-1], build.strides(x)[:-1], build.strides(y)[:-1]) or [(1, 0, 0)]
    *outer, (count, x_row, y_row) = rows
    x_address, y_address = build.address(x), build.address(y)
    for place in product(*(range(size) for size, _, _ in outer)):
        x_offset = sum(i * stride for i, (_, stride, _) in zip(place, outer, strict=True))
        y_offset = sum(i * stride for i, (_, _, stride) in zip(place, outer, strict=True))
        build.command(
            Softmax(build.target.name, log),
            x=Address(x_address.base, x_address.offset + x_offset),
            y=Address(y_address.base, y_address.offset + y_offset),
            beta=build.number(beta),
            rows=count,
            count=y.shape[-1],
            x_row=x_row,
            y_row=y_row,
        )
