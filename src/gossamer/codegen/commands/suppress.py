"""`suppress`: the best boxes without those that overlap better ones; see `gossamer.codegen.kernels.suppress`.

Operands are boxes [4, n], scores [rows, n], and scalars: the least score, the overlap from which on a box goes, and, if
it is soft, the factor in the exponent. ``repeats`` says whether a box may be taken twice.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.suppress import Suppress


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    boxes, scores, least, most, *decay = node.operands
    rows, count = scores.shape
    build.command(
        Suppress(build.target.name, bool(decay)),
        boxes=build.address(boxes),
        scores=build.address(scores),
        score_threshold=build.address(least),
        iou_threshold=build.address(most),
        decay=build.address(decay[0]) if decay else build.number(0),
        rest=build.passing(4 * scores.size),
        y=build.address(node.y),
        fault=build.fault(),
        rows=rows,
        count=count,
        limit=node.y.shape[1] // 2,
        repeats=int(node.settings["repeats"]),
        plane=build.strides(boxes)[0],
        scores_row=build.strides(scores)[0],
        y_row=build.strides(node.y)[0],
    )
