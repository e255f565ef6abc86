"""A kernel graph into a program: passes, layout, commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.commands import AtHand, Build, Step
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.layout import Border, lay_out
from gossamer.codegen.passes import (
    borders,
    common_subexpressions,
    copies,
    expanded,
    fuse,
    gaps,
    in_place,
    padding,
    pads,
    prologues,
    repeats,
    rows,
    scales,
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
from gossamer.views import Buffer

Passes = tuple[Callable[[KernelGraph], Any], ...]

PASSES: Passes = (
    common_subexpressions.run,
    expanded.run,
    fuse.run,
    prologues.run,
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

BASIC: Passes = (pads.run, copies.run)
"""Those that there must be."""


def passes_of(target: Target) -> Passes:
    """Those for a target: with products of bfloat16, which take half the time, none by Strassen's algorithm."""
    return without(PASSES, strassen.KIND) if target.bf16 else PASSES


def without(passes: Passes, kind: str) -> Passes:
    """The passes less the one that makes kernels of a kind of others, if one does; then less all that may be spared."""
    makers = {maker.KIND: maker.run for maker in (rows, winograd, strassen)}
    fewer = tuple([change for change in passes if change is not makers.get(kind)])
    return fewer if fewer != passes else BASIC


@record(frozen=True, eq=False)
class Emitted:
    """A program before it meets memory: its plan, the specs of its kernels by name, and the bytes of its constants."""

    plan: ProgramPlan
    specs: Mapping[str, KernelSpec]
    constants: NDArray[np.uint8]


@record(frozen=True, eq=False)
class Built(Emitted):
    """The same, and what it was made of. ``steps`` tells of each command which kernel it runs for which kernel of the
    graph."""

    steps: tuple[Step, ...]
    graph: KernelGraph
    passes: Passes


@record(eq=False)
class Drawn:
    """A graph that is changed no more: the borders of its images, those with gaps between pixels, and bytes that
    borders consist of where these are not 0. ``passes`` are those that it has had."""

    graph: KernelGraph
    borders: dict[Buffer, Border]
    gaps: set[Buffer]
    fills: dict[Buffer, int]
    passes: Passes


def draw(graph: KernelGraph, passes: Passes = PASSES) -> Drawn:
    """Do all that is done to a graph, which is changed on the way."""
    for change in passes:
        for part in graph.parts():
            change(part)
    parts = graph.parts()
    edges = {buffer: border for part in parts for buffer, border in borders.run(part).items()}
    apart = {buffer for part in parts for buffer in gaps.run(part)}
    fills = {buffer: byte for part in parts for buffer, byte in borders.fills(part).items()}
    return Drawn(graph, edges, apart, fills, passes)


def emitted(drawn: Drawn, target: Target, model: tuple[int, int] | None = None, at_hand: AtHand | None = None) -> Built:
    """Lay a graph out, and make commands of it. ``model``: the addresses between which stored constants lie.

    Constants there are read in place, through the base ``model``; all others through ``constants``. ``at_hand`` tells
    which kernels there are, if they cannot be compiled; then `NotAtHand` is raised where these do not suffice.
    """
    layout = lay_out(drawn.graph, drawn.borders, drawn.gaps, drawn.fills)
    made = Build(target, layout, model, at_hand)
    plan = made.emit(drawn.graph)
    return Built(plan, made.specs, made.constants(), tuple(made.steps), drawn.graph, drawn.passes)


def build(
    graph: KernelGraph,
    target: Target,
    model: tuple[int, int] | None = None,
    passes: Passes = PASSES,
    at_hand: AtHand | None = None,
) -> Built:
    """Plan a graph, which is changed on the way: see `emitted`."""
    return emitted(draw(graph, passes), target, model, at_hand)
