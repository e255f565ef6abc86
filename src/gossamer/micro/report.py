"""Will it fit, and what lies where: the facts of an allocated model as plain values."""

from __future__ import annotations

from typing import Any

from gossamer.micro.allocation_info import Scope
from gossamer.micro.allocator import Category, MicroAllocator, RecordedAllocation
from gossamer.micro.interpreter import MicroInterpreter
from gossamer.micro.resolver import MicroOpResolver, needed_ops
from gossamer.model.model import Model
from gossamer.planner.memory_planner import MemoryPlanner
from gossamer.planner.planner import Plan
from gossamer.records import record


@record(frozen=True)
class PlannedBuffer:
    """One buffer of the head: ``offset`` and ``size`` in bytes, and the scopes from ``first_use`` to ``last_use``.

    ``name`` is that of the tensor, or of the operator that works in a scratch buffer; ``tensor`` is its index or
    ``None``, ``number`` that of the buffer in the plan.
    """

    number: int
    name: str
    subgraph: int
    tensor: int | None
    offset: int
    size: int
    first_use: int
    last_use: int


@record(frozen=True)
class MicroReport:
    """What a model takes on a device, in bytes.

    ``used_bytes`` is what `arena_used_bytes` says there: ``head_bytes`` of planned buffers and ``tail_bytes`` of what
    stays. ``minimum_arena_bytes`` is the smallest arena (a multiple of 16) in which the model can be allocated, and
    ``lower_bound_bytes`` what no planner can go below. ``categories`` are those of TFLite Micro's recording allocator,
    for this one; what they do not cover are its own objects, the options of operators and tables.
    """

    pointer_size: int
    used_bytes: int
    head_bytes: int
    tail_bytes: int
    minimum_arena_bytes: int
    lower_bound_bytes: int
    categories: dict[Category, RecordedAllocation]
    operators: tuple[str, ...]
    scratch_requests: int
    buffers: tuple[PlannedBuffer, ...]
    plan: Plan
    scopes: dict[int, Scope]
    """What runs in each scope of the main subgraph and of those that it calls."""

    @property
    def peak(self) -> tuple[int, int]:
        """The first scope in which the most bytes are alive, and their number."""
        alive = {
            scope: sum(buffer.size for buffer in self.buffers if buffer.first_use <= scope <= buffer.last_use)
            for scope in sorted({buffer.first_use for buffer in self.buffers})
        }
        scope = max(alive, key=lambda scope: alive[scope], default=0)
        return scope, alive.get(scope, 0)

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "pointer_size": self.pointer_size,
            "arena_used_bytes": self.used_bytes,
            "minimum_arena_bytes": self.minimum_arena_bytes,
            "head_bytes": self.head_bytes,
            "tail_bytes": self.tail_bytes,
            "lower_bound_bytes": self.lower_bound_bytes,
            "categories": {
                category.name.lower(): {"requested": requested, "used": used, "count": count}
                for category, (requested, used, count) in self.categories.items()
            },
            "operators": list(self.operators),
            "scratch_requests": self.scratch_requests,
        }


def measure(
    model: Model,
    *,
    pointer_size: int = 4,
    planner: MemoryPlanner | None = None,
    resource_variables: int | None = None,
    resolver: MicroOpResolver | None = None,
) -> MicroReport:
    """What a model takes, found in an arena without limits. ``resource_variables`` is by default as many as it names.

    Raises what `MicroInterpreter.allocate_tensors` raises.
    """
    count = count_resource_variables(model) if resource_variables is None else resource_variables
    interpreter = MicroInterpreter(
        model, resolver, pointer_size=pointer_size, planner=planner, resource_variables=count
    )
    interpreter.allocate_tensors()
    return report(interpreter)


def report(interpreter: MicroInterpreter) -> MicroReport:
    """The facts of an interpreter whose tensors are allocated."""
    allocator = interpreter.allocator
    plan = allocator.plan
    if plan is None:
        raise ValueError("there is no memory plan yet; call allocate_tensors first")
    return MicroReport(
        pointer_size=allocator.abi.pointer,
        used_bytes=allocator.used_bytes,
        head_bytes=allocator.head_bytes,
        tail_bytes=allocator.tail_bytes,
        minimum_arena_bytes=allocator.minimum_arena_bytes,
        lower_bound_bytes=plan.lower_bound(),
        categories=dict(allocator.recorded),
        operators=needed_ops(interpreter.model),
        scratch_requests=len(allocator.scratch_requests),
        buffers=tuple(_buffers(interpreter, allocator, plan)),
        plan=plan,
        scopes=dict(allocator.scopes),
    )


def _buffers(interpreter: MicroInterpreter, allocator: MicroAllocator, plan: Plan) -> list[PlannedBuffer]:
    scratch = iter(allocator.scratch_requests)
    buffers = []
    placed = iter(plan.placements)
    for info in allocator.infos:
        request = next(scratch) if info.tensor is None else None
        if not info.needs_allocating:
            continue
        offset, (number, size, first_use, last_use, _) = next(placed)
        name, tensor = "", None
        if info.tensor is not None:
            name, tensor = info.tensor.name, info.tensor.index
        elif request is not None:
            node = interpreter.graph.subgraphs[request.subgraph].nodes[request.node]
            name = f"{node.name} (node {node.index}) scratch"
        buffers.append(PlannedBuffer(number, name, info.subgraph, tensor, offset, size, first_use, last_use))
    return buffers


def count_resource_variables(model: Model) -> int:
    """How many resource variables a model names."""
    return len(
        {
            getattr(operator.builtin_options, "shared_name", "")
            for subgraph in model.subgraphs
            for operator in subgraph.operators
            if model.operator_name(operator) == "VAR_HANDLE"
        }
    )
