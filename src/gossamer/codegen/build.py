"""A kernel graph into a program: passes, layout, commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.commands import Build, Step
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.layout import lay_out
from gossamer.codegen.passes import (
    borders,
    copies,
    fuse,
    gaps,
    in_place,
    padding,
    pads,
    repeats,
    rows,
    scales,
    shared,
    strassen,
    strides,
    tables,
    turns,
    winograd,
)
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.program import ProgramPlan
from gossamer.records import record
from gossamer.targets import Target

Passes = tuple[Callable[[KernelGraph], Any], ...]

PASSES: Passes = (
    shared.run,
    fuse.run,
    tables.run,
    padding.run,
    pads.run,
    strides.run,
    scales.run,
    rows.run,
    winograd.run,
    strassen.run,
    copies.run,
    in_place.run,
    repeats.run,
    turns.run,
)
"""What is done to a graph, in this order, before its images get their borders."""

PLAIN: Passes = (fuse.run_within, pads.run, copies.run)
"""The same where every operator is to need the kernels that it would need alone."""


@record(frozen=True, eq=False)
class Built:
    """A program before it meets memory: its plan, the specs of its kernels by name, and the bytes of its constants.

    ``steps`` tells of each command which kernel it runs for which kernel of the graph.
    """

    plan: ProgramPlan
    specs: Mapping[str, KernelSpec]
    constants: NDArray[np.uint8]
    steps: tuple[Step, ...]
    graph: KernelGraph
    passes: Passes

    @property
    def is_final(self) -> bool:
        """Whether all passes have been over it."""
        return self.passes is PASSES


def build(graph: KernelGraph, target: Target, model: tuple[int, int] | None = None, passes: Passes = PASSES) -> Built:
    """Plan a graph, which is changed on the way. ``model``: the addresses between which stored constants lie.

    Constants there are read in place, through the base ``model``; all others through ``constants``.
    """
    for change in passes:
        for part in graph.parts():
            change(part)
    parts = graph.parts()
    edges = {buffer: border for part in parts for buffer, border in borders.run(part).items()}
    apart = {buffer for part in parts for buffer in gaps.run(part)}
    fills = {buffer: byte for part in parts for buffer, byte in borders.fills(part).items()}
    layout = lay_out(graph, edges, apart, fills)
    made = Build(target, layout, model)
    plan = made.emit(graph)
    return Built(plan, made.specs, made.constants(), tuple(made.steps), graph, passes)
