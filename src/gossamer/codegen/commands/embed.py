"""`embed`: sums of rows of a table, times weights, by the row of y to which they belong: operands are the numbers of
both, weights, and the table."""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.embed import Embed


def commands(node: Kernel, build: Build) -> None:
    """One command."""
    ids, places, weights, table = node.operands
    build.command(
        Embed(build.target.name, node.settings["combiner"]),
        ids=build.address(ids),
        places=build.address(places),
        weights=build.address(weights),
        table=build.address(table),
        y=build.address(node.y),
        fault=build.fault(),
        entries=ids.size,
        rows=node.y.shape[0],
        columns=node.y.shape[1],
        table_rows=table.shape[0],
        table_row=build.strides(table)[0],
    )
