"""A smaller head than the device's own planner finds: as it could be, and as an offline plan that a device obeys."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.micro.report import MicroReport, measure
from gossamer.model.metadata import OfflineAllocation, offline_allocation, with_offline_allocation
from gossamer.model.model import Model
from gossamer.ops import find_op
from gossamer.ops.op_def import InPlace
from gossamer.planner.memory_planner import ONLINE
from gossamer.planner.planner import Plan
from gossamer.planner.search import SearchMemoryPlanner

_INPUTS = (InPlace.INPUT_0, InPlace.INPUT_1, InPlace.INPUT_2)


def with_offline_plan(model: Model) -> Model:
    """A copy of a model with the smallest plan that is found for its tensors; an older offline plan is dropped.

    Scratch buffers and variables have no place in an offline plan: the device plans them around it. Where that spoils
    the gain, the plan leaves everything open, and the device has its own. Raises what `measure` raises.
    """
    open_plan = OfflineAllocation((ONLINE,) * sum(len(subgraph.tensors) for subgraph in model.subgraphs))
    unplanned = with_offline_allocation(model, open_plan)
    before = measure(unplanned)
    plan = smallest_plan(before)
    first, starts = 0, []
    for subgraph in model.subgraphs:
        starts.append(first)
        first += len(subgraph.tensors)
    offsets = list(open_plan.offsets)
    for buffer in before.buffers:
        if buffer.tensor is not None:
            offsets[starts[buffer.subgraph] + buffer.tensor] = plan.offsets[buffer.number]
    planned = with_offline_allocation(model, OfflineAllocation(tuple(offsets)))
    return planned if measure(planned).head_bytes < before.head_bytes else unplanned


def is_planned_offline(model: Model) -> bool:
    """Whether a model carries an offline plan that places anything. Raises `ModelError` for one that does not fit."""
    plan = offline_allocation(model)
    return plan is not None and any(offset != ONLINE for offset in plan.offsets)


def smallest_plan(report: MicroReport) -> Plan:
    """The smallest plan that is found for the buffers of a head, wherever they lie now."""
    return _searched((buffer.size, buffer.first_use, buffer.last_use) for buffer in report.buffers)


def smallest_plan_in_place(model: Model, report: MicroReport) -> Plan:
    """The same if operators wrote over an input where their `OpDef` allows it and nobody else needs the value.

    Only operators of the main subgraph are looked at. A buffer of the plan may stand for several tensors.
    """
    subgraph = model.subgraphs[0]
    spans = {
        buffer.tensor: (buffer.size, buffer.first_use, buffer.last_use)
        for buffer in report.buffers
        if buffer.subgraph == 0 and buffer.tensor is not None
    }
    others = [b for b in report.buffers if b.subgraph != 0 or b.tensor is None]
    for operator in subgraph.operators:
        op = find_op(model.operator_name(operator))
        output = operator.outputs[0] if operator.outputs else -1
        if op is None or output not in spans:
            continue
        for tensor, flag in zip(operator.inputs, _INPUTS, strict=False):
            if op.in_place & flag and tensor in spans and tensor != output:
                size, first_use, last_use = spans[tensor]
                if (size, last_use) == spans[output][:2]:
                    spans[output] = size, first_use, spans[output][2]
                    del spans[tensor]
                    break
    return _searched([*spans.values(), *((b.size, b.first_use, b.last_use) for b in others)])


def _searched(spans: Iterable[tuple[int, int, int]]) -> Plan:
    planner = SearchMemoryPlanner()
    for span in spans:
        planner.add_buffer(*span)
    return planner.plan()
