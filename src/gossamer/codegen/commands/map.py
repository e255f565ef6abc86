"""`map`: an expression of every element. Operands are as large as the result; what is broadcast has stride 0, and so
have parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gossamer.codegen.commands import Build, blocks_of, columns_of
from gossamer.codegen.commands.tiled import moved
from gossamer.codegen.elements import ELEMENT_OF, element
from gossamer.codegen.expression import calls, parameters_of
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.elementwise import Map, operands_of
from gossamer.codegen.kernels.scale import ScaleRows, has_dots, runs
from gossamer.codegen.layout import item_bytes, merged
from gossamer.programs.program import Word
from gossamer.schema.enums import TensorType
from gossamer.views import View

ROWS = 4
"""Rows from which on factors are prepared for them."""


def commands(node: Kernel, build: Build) -> None:
    """One command: the kernel has loops over three dimensions, and is repeated over what broadcasting leaves beyond."""
    if _scale_rows(node, build):
        return
    form = _form_of(node, build, build.strides)
    build.repeat(
        form.spec,
        form.outer,
        form.pointers,
        y=build.address(node.y),
        **operands_of(*zip(map(build.address, node.operands), form.rows, form.columns, strict=True)),
        **form.words,
    )


def spec_of(node: Kernel, build: Build) -> Map:
    """The kernel of a map, whose operands need no places yet."""
    return _form_of(node, build, build.planned_strides).spec


class _Form(NamedTuple):
    """The kernel, the dimensions over which it is repeated, the pointers that move, bytes from row to row and column to
    column of each operand, and what else a command is told, less where things lie."""

    spec: Map
    outer: list[tuple[int, ...]]
    pointers: tuple[str, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    words: dict[str, Any]


def _form_of(node: Kernel, build: Build, strides_of: Callable[[View], tuple[int, ...]]) -> _Form:
    strides = [strides_of(view) for view in (node.y, *node.operands)]
    types = tuple([ELEMENT_OF[view.type] for view in (*node.operands, node.y)])
    return build.alike(
        (Map, node.epilogue, types, node.y.shape, *strides),
        lambda: _form(build, node, merged(node.y.shape, *strides), types),
    )


def _form(build: Build, node: Kernel, dimensions: list[tuple[int, ...]], types: tuple[str, ...]) -> _Form:
    sizes = [item_bytes(view.buffer) for view in (node.y, *node.operands)]
    none = (1, *([0] * len(sizes)))
    if not dimensions or any(s not in (0, size) for s, size in zip(dimensions[-1][1:], sizes, strict=True)):
        dimensions.append(none)
    count, *inner = dimensions.pop()
    # Threads share rows. The largest dimensions are loops: the others have the fewest turns.
    if len(dimensions) == 1:
        rows, *steps = dimensions.pop()
        columns = columns_of(rows, count * max(sizes))
        dimensions += (rows // columns, *(columns * step for step in steps)), (columns, *steps)
    largest: Sequence[int] = range(len(dimensions))
    if len(dimensions) > 2:
        largest = sorted(largest, key=lambda at: -dimensions[at][0])[:2]
    row, column = [*(dimensions[at] for at in sorted(largest)), none, none][:2]
    outer = [dimension for at, dimension in enumerate(dimensions) if at not in largest]
    tables = parameters_of(node.epilogue)
    found = list(calls(node.epilogue))
    table_rows = [call[2] for call in found if call[0] == "lookuprow"]
    letters = "".join(
        "p" if at in tables else "s" if (stride == 0 and count > 1) or at in table_rows else "v"
        for at, stride in enumerate(inner[1:])
    )
    isa = build.target
    if any(call[0] in ("lookup", "lookuprow") for call in found):
        isa = build.dots if build.dots.has("avx512vbmi") else isa
        if all(call[0] in ("lookup", "lookuprow") for call in found) and element(types[-1]).bits == 8:
            types = ("u8",) * len(types)  # whatever they mean
    spec = Map(isa.name, node.epilogue, letters, () if set(types) == {"f32"} else types)
    block, blocks = blocks_of(count, row[0])
    words: dict[str, Word] = {
        "rows": row[0],
        "columns": column[0],
        "count": count,
        "block": block,
        "blocks": blocks,
        "y_row": row[1],
        "y_column": column[1],
    }
    pointers = ("y", *(f"x{at}" for at in range(len(node.operands))))
    return _Form(spec, outer, pointers, row[2:], column[2:], words)


def _scale_rows(node: Kernel, build: Build) -> bool:
    """Make the command of `ScaleRows`, if that is what the map is."""
    if node.epilogue != ("qmul", 0, 1, 2) or node.y.type != TensorType.INT8 or not runs(build.dots):
        return False
    numbers = node.operands[2].buffer.array
    if numbers is None:
        return False
    strides = [build.strides(view) for view in (node.y, *node.operands[:2])]
    dimensions = merged(node.y.shape, *strides)
    if len(dimensions) != 2 or dimensions[1][1:] != (1, 1, 1):
        return False
    rows, y_row, *steps = dimensions[0]
    if rows < ROWS or 0 not in steps:
        return False
    factors = steps.index(0)
    zeros, words = numbers[:2].tolist(), numbers.tolist()
    if zeros[factors] != -128 and has_dots(build.dots):
        return False
    build.command(
        ScaleRows(build.dots.name, clamps=tuple(words[4:6]) != (-128, 127)),
        x=build.address(node.operands[1 - factors]),
        factors=build.address(node.operands[factors]),
        y=build.address(node.y),
        rows=rows,
        count=dimensions[1][0],
        x_row=steps[1 - factors],
        y_row=y_row,
        zero=zeros[1 - factors],
        factor_zero=zeros[factors],
        scale=moved(build.address(node.operands[2]), 8),
        zero_point=words[3],
        low=words[4],
        high=words[5],
    )
    return True
