"""`dynamic_range`: the lows and the highs of images [N, H, W, C], in blocks: y is [N, 2, blocks]."""

from __future__ import annotations

from typing import Any

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.dynamic import Range
from gossamer.views import View


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    build.command(Range(build.target.name), y=build.address(node.y), **walk(build, x=node.operands[0]))


def walk(build: Build, **images: View) -> dict[str, Any]:
    """What kernels are told that go through images of one shape, run by run."""
    strides = {name: build.strides(view) for name, view in images.items()}
    count, rows, columns, channels = next(iter(images.values())).shape
    together = all(each[2] == channels * each[3] or columns == 1 for each in strides.values())
    words: dict[str, Any] = {
        "images": count,
        "rows": rows,
        "columns": 1 if together else columns,
        "count": columns * channels if together else channels,
    }
    for name, view in images.items():
        words[name] = build.address(view)
        ways = (f"{name}_image", f"{name}_row", f"{name}_column")
        words |= dict(zip(ways, strides[name][:3], strict=True))
    return words
