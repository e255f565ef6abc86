"""What must lie in the head at the same time: sizes and lifetimes of tensors and scratch buffers.

As the AllocationInfoBuilder of micro_allocation_info.cc has it.

Time is counted in scopes. Each operator is one; IF, WHILE and CALL_ONCE open the scopes of the subgraphs that they call
inside their own, so that a tensor of a callee lives within the lifetime of its caller's. Unlike in TFLite an input is
not kept after its last reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gossamer.errors import ModelError
from gossamer.micro.tensor import EvalTensor
from gossamer.model.model import Model
from gossamer.planner.memory_planner import ONLINE
from gossamer.schema.enums import BuiltinOperator
from gossamer.schema.tables import Operator

NOT_USED = -1
"""First and last use of a tensor that no operator has: it is planned all the same, in a scope of its own."""


class ScratchBufferRequest(NamedTuple):
    """So many bytes for one operator of one subgraph, while it runs."""

    bytes: int
    node: int
    subgraph: int


class Scope(NamedTuple):
    """Who is at work in a scope: an operator by name, its place among the operators of its subgraph."""

    operator: str
    node: int
    subgraph: int

    def __str__(self) -> str:
        return f"{self.operator} (node {self.node})" + (f" of subgraph {self.subgraph}" if self.subgraph else "")


class AllocationInfo:
    """One buffer that may need a place: of a tensor, or of a scratch request if ``tensor`` is ``None``."""

    def __init__(
        self, size: int, tensor: EvalTensor | None, subgraph: int, needs_allocating: bool, offset: int
    ) -> None:
        self.bytes = size
        self.tensor = tensor
        self.subgraph = subgraph
        self.needs_allocating = needs_allocating
        self.offline_offset = offset
        self.first_created = NOT_USED
        self.last_used = NOT_USED

    def created(self, scope: int) -> None:
        """It exists from here, if it did not before."""
        if self.first_created == NOT_USED:
            self.first_created = scope

    def used(self, scope: int) -> None:
        """It is used here."""
        self.last_used = scope


def called_subgraphs(operator: Operator, code: int) -> tuple[int, ...]:
    """The subgraphs that an operator calls, in the order in which they are planned."""
    options: Any = operator.builtin_options
    if code == BuiltinOperator.IF:
        return options.then_subgraph_index, options.else_subgraph_index
    if code == BuiltinOperator.WHILE:
        return options.cond_subgraph_index, options.body_subgraph_index
    return (options.init_subgraph_index,) if code == BuiltinOperator.CALL_ONCE else ()


def allocation_info(
    model: Model,
    subgraphs: Sequence[Sequence[EvalTensor]],
    requests: Sequence[ScratchBufferRequest],
    offsets: Sequence[int] | None,
) -> tuple[list[AllocationInfo], dict[int, Scope]]:
    """All tensors of all subgraphs, then the scratch requests, with their lifetimes; and what runs in each scope.

    Raises `ModelError` for subgraphs that call themselves, and for intermediate tensors that need memory.
    """
    builder = _Builder(model, subgraphs, requests, offsets)
    return builder.info, builder.scopes


class _Builder:
    def __init__(
        self,
        model: Model,
        subgraphs: Sequence[Sequence[EvalTensor]],
        requests: Sequence[ScratchBufferRequest],
        offsets: Sequence[int] | None,
    ) -> None:
        self.model = model
        self.scope = 0
        self.scopes: dict[int, Scope] = {}
        self.calling: list[int] = []
        planned = iter(offsets) if offsets is not None else None
        self.tensors = [
            [self._of_tensor(tensor, index, planned) for tensor in tensors] for index, tensors in enumerate(subgraphs)
        ]
        self.requests = requests
        self.scratch = [AllocationInfo(request.bytes, None, request.subgraph, True, ONLINE) for request in requests]
        for index, tensors in enumerate(self.tensors):
            for operator in model.subgraphs[index].operators:
                for i in operator.intermediates:
                    if i >= 0 and tensors[i].bytes:
                        raise ModelError(
                            f"Does not support intermediate tensor with non-zero size: {tensors[i].bytes} "
                            f"(tensor {i} of subgraph {index})"
                        )
        self._mark(0)
        self.info = [*(info for tensors in self.tensors for info in tensors), *self.scratch]

    def _of_tensor(self, tensor: EvalTensor, subgraph: int, planned: Iterator[int] | None) -> AllocationInfo:
        offset = ONLINE if planned is None else next(planned)
        needs = tensor.data is None and not tensor.is_variable and tensor.bytes != 0
        return AllocationInfo(
            tensor.bytes, tensor, subgraph, needs or (tensor.is_variable and offset != ONLINE), offset
        )

    def _mark(self, index: int) -> None:
        if index in self.calling:
            raise ModelError(f"subgraph {index} calls itself, directly or through others; TFLite has no recursion")
        self.calling.append(index)
        subgraph, tensors = self.model.subgraphs[index], self.tensors[index]
        for i in _given(subgraph.inputs):
            tensors[i].created(self.scope)
            tensors[i].used(self.scope)
        for node, operator in enumerate(subgraph.operators):
            self.scope += 1
            begin = self.scope
            self.scopes[begin] = Scope(self.model.operator_name(operator), node, index)
            for i in _given(operator.outputs):
                tensors[i].created(begin)
            for callee in called_subgraphs(operator, self.model.builtin_code(operator)):
                if callee != -1:
                    self.scope += 1
                    self._mark(callee)
            for i in _given((*operator.inputs, *operator.outputs)):
                tensors[i].used(self.scope)
            for info, request in zip(self.scratch, self.requests, strict=True):
                if (request.node, request.subgraph) == (node, index):
                    info.created(begin)
                    info.used(self.scope)
        for i in _given(subgraph.outputs):
            tensors[i].created(self.scope)
            tensors[i].used(self.scope)
        self.calling.pop()


def _given(indices: Sequence[int]) -> list[int]:
    return [i for i in indices if i >= 0]
