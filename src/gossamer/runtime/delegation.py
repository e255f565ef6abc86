"""The delegates of a subgraph: applied in order, taken off when shapes change, applied again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from gossamer.delegates.delegate import Claims, Delegate, DelegateFlags, DelegateKernel, refusal
from gossamer.delegates.partition import ControlEdge, GraphNode, NodeSubset, largest, partition
from gossamer.errors import DelegateError, GossamerError, PrepareError
from gossamer.log import logger
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.node import Node, NodeView
from gossamer.runtime.partition import RunningPartition
from gossamer.schema.enums import TensorType

_DYNAMIC = (
    "Attempting to use a delegate that only supports static-sized tensors with a graph that has dynamic-sized tensors "
    "(tensor#{} is a dynamic-sized tensor)."
)
_ALLOWS_DYNAMIC = int(DelegateFlags.ALLOW_DYNAMIC_TENSORS)
"""As an integer, for the & of an IntFlag is slow."""

_RESTORED = "Restored original execution plan after delegate application failure."


class Delegation:
    """Puts delegates on a subgraph, and takes them off.

    ``clustering`` and ``fusion`` are those of `gossamer.delegates.partition.partition`; ``control_edges`` are pairs of
    node numbers. ``claims`` holds what each applied delegate took, in order.
    """

    def __init__(
        self,
        subgraph: RunningGraph,
        *,
        control_edges: Sequence[ControlEdge] | None = None,
        clustering: bool = True,
        fusion: bool = True,
    ) -> None:
        self.control_edges = control_edges
        self.clustering = clustering
        self.fusion = fusion
        self.claims: list[Claims] = []
        self._subgraph = subgraph
        self._applied: list[Delegate] = []
        self._undone = False
        self._is_on = False
        self._partitions: list[RunningPartition] = []

    @property
    def kernels(self) -> list[DelegateKernel]:
        """What runs the partitions, in the order of `claims`; nothing while delegates are taken off."""
        return [made.kernel for made in self._partitions]

    @property
    def partitions(self) -> list[RunningPartition]:
        """The partitions, in the same order."""
        return list(self._partitions)

    @property
    def is_static(self) -> bool:
        """Whether an applied delegate relies on the shapes that it was shown."""
        return any(not int(delegate.flags) & _ALLOWS_DYNAMIC for delegate in self._applied)

    def has(self, delegate: Delegate) -> bool:
        """Whether a delegate is applied, or will be again."""
        return delegate in self._applied

    def preview(self, delegate: Delegate) -> Claims:
        """What a delegate would take, were it applied now; nothing is replaced."""
        self.redo()
        dynamic = self._dynamic_tensor(delegate)
        if dynamic is None:
            return self._claim(delegate)[0]
        plan = self._subgraph.execution_plan
        reasons = dict.fromkeys(plan, _DYNAMIC.format(dynamic))
        return Claims(delegate.name, self._subgraph.index, self._partition(()), reasons)

    def apply(self, delegate: Delegate) -> bool:
        """Let a delegate take its nodes; ``False`` if it is static and the graph is not, which then stays as it is.

        Raises `DelegateError` if the delegate fails: all delegates are off then. Raises `PrepareError` if the graph
        cannot be prepared, whoever runs it.
        """
        subgraph = self._subgraph
        self.redo()
        dynamic = self._dynamic_tensor(delegate)
        if dynamic is not None:
            logger.warning(_DYNAMIC.format(dynamic))
            with suppress(PrepareError):  # allocate_tensors will say it
                subgraph.reallocate()
            return False
        was_static, was_invokable = self.is_static, subgraph.is_invokable
        self._is_on = bool(subgraph.original_plan)
        if was_invokable and subgraph.has_dynamic_tensors:
            subgraph.replace_plan(subgraph.nodes, subgraph.execution_plan)  # the delegate may know shapes
        try:
            claims, partitions = self._claim(delegate)
            self._replace(delegate, claims, partitions)
            self._applied.append(delegate)
            self.claims.append(claims)
            # What nobody can run yet is left for the next delegate.
            if (self.is_static or was_invokable) and all(node.has_kernel for node in subgraph.planned_nodes):
                subgraph.reallocate()
                if was_static and subgraph.has_dynamic_tensors:
                    raise DelegateError(
                        f"{delegate.name}: Cannot allow dynamic tensors due to previous delegation, "
                        "resetting to original execution plan."
                    )
        except Exception as error:
            self.remove()
            reason = error if isinstance(error, GossamerError) else f"{delegate.name}: {type(error).__name__}: {error}"
            raise DelegateError(f"{reason}\n{_RESTORED}") from error
        return True

    def redo(self) -> None:
        """Apply the delegates again that `undo` took off. Raises as `apply` does; after a `PrepareError` they can be
        applied again when shapes are better."""
        if not self._undone:
            return
        logger.info("Redoing %d delegates.", len(self._applied))
        delegates, self._applied, self._undone = self._applied, [], False
        self.claims.clear()
        try:
            for delegate in delegates:
                self.apply(delegate)
        except PrepareError:
            self.undo()
            self.claims.clear()
            self._applied, self._undone = delegates, True
            raise

    def undo(self) -> None:
        """Take all delegates off until `redo`: the original plan is back, and has to be allocated."""
        if not self._is_on:
            return
        subgraph = self._subgraph
        self._free_kernels()
        subgraph.replace_plan(subgraph.nodes[: len(subgraph.original_plan)], subgraph.original_plan)
        self._is_on = False
        for tensor in subgraph.tensors:
            tensor.data_is_stale = False
            if tensor.buffer_handle is None:
                tensor.delegate = None
        self._undone = True

    def withdraw(self, kept: Collection[Delegate]) -> None:
        """Take all delegates off, for good but for some; those are applied again by `redo`."""
        self.undo()
        self._applied = [delegate for delegate in self._applied if delegate in kept]
        self.claims.clear()

    def remove(self) -> None:
        """Take all delegates off for good. The subgraph is allocated again, if it can be."""
        self.undo()
        self._applied.clear()
        self.claims.clear()
        self._undone = False
        with suppress(PrepareError):
            self._subgraph.reallocate()

    def release(self) -> None:
        """Free kernels and buffer handles: the subgraph goes."""
        self._free_kernels()
        for tensor in self._subgraph.tensors:
            if tensor.delegate is not None:
                tensor.set_buffer_handle(None, tensor.delegate)

    def _dynamic_tensor(self, delegate: Delegate) -> int | None:
        # A static delegate is shown final shapes. Once there is one, shapes are final already.
        if delegate.flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS or self.is_static:
            return None
        return self._subgraph.dynamic_tensor()

    def _claim(self, delegate: Delegate) -> tuple[Claims, list[RunningPartition]]:
        """What a delegate takes, and its partitions, which are not started yet."""
        refusals = {node.index: self._refusal(delegate, node) for node in self._subgraph.planned_nodes}
        while True:
            claims = self._claims(delegate, refusals)
            first = len(self._subgraph.nodes)
            partitions = [
                RunningPartition(self._subgraph, delegate, subset, first + number)
                for number, subset in enumerate(claims.partitions)
            ]
            reasons = {number: reason for made in partitions for number, reason in delegate.review(made).items()}
            objections = {number: reason for number, reason in reasons.items() if refusals.get(number, "") is None}
            if not objections:
                return claims, partitions
            refusals.update(objections)

    def _claims(self, delegate: Delegate, reasons: Mapping[int, str | None]) -> Claims:
        refusals = {number: reason for number, reason in reasons.items() if reason is not None}
        claimed = [number for number, reason in reasons.items() if reason is None]
        subsets = self._partition(claimed)
        most, least = delegate.max_delegated_partitions, delegate.min_nodes_per_partition
        kept = set(largest(subsets, most, least))
        if len(kept) < len(claimed):
            for subset in subsets:
                if subset.claimed and not kept.intersection(subset.nodes):
                    refusals.update(dict.fromkeys(subset.nodes, _limit(len(subset.nodes), most, least)))
            subsets = self._partition(kept)
        return Claims(delegate.name, self._subgraph.index, subsets, dict(sorted(refusals.items())))

    def _refusal(self, delegate: Delegate, node: Node) -> str | None:
        if node.delegate is not None:
            return f"already delegated to {node.delegate.name}"
        return refusal(delegate, NodeView(self._subgraph, node)) or node.objection or None

    def _partition(self, claimed: Sequence[int] | set[int]) -> tuple[NodeSubset, ...]:
        subgraph = self._subgraph
        plan = [
            GraphNode(node.index, node.inputs, node.outputs, self._has_side_effects(node))
            for node in subgraph.planned_nodes
        ]
        return partition(
            plan,
            claimed,
            (*subgraph.outputs, *subgraph.promised),
            clustering=self.clustering,
            fusion=self.fusion,
            control_edges=self._edges(),
        )

    def _edges(self) -> list[ControlEdge] | None:
        # A node that has become part of another one hands its edges on.
        if self.control_edges is None:
            return None
        place = {node: node for node in self._subgraph.original_plan}
        for made in self._partitions:
            place.update(dict.fromkeys((node.node_index for node in made.nodes), made.node.index))
        position = {node: at for at, node in enumerate(self._subgraph.execution_plan)}
        for edge in self.control_edges:
            if not all(node in place for node in edge):
                raise PrepareError(f"control dependency {edge} is between nodes that do not exist")
        edges = [(position[place[before]], position[place[after]]) for before, after in self.control_edges]
        return [(before, after) for before, after in edges if before != after]

    def _has_side_effects(self, node: Node) -> bool:
        tensors = self._subgraph.tensors
        operands = (*node.inputs, *node.outputs)
        return node.op.side_effects or any(i >= 0 and tensors[i].type == TensorType.RESOURCE for i in operands)

    def _replace(self, delegate: Delegate, claims: Claims, partitions: Iterable[RunningPartition]) -> None:
        subgraph = self._subgraph
        if not claims.partitions:
            return
        logger.info(
            "Replacing %d out of %d node(s) with delegate (%s) node, yielding %d partitions for subgraph %d (%s).",
            sum(len(subset.nodes) for subset in claims.partitions),
            len(subgraph.execution_plan),
            delegate.name,
            len(claims.subsets),
            subgraph.index,
            subgraph.name,
        )
        nodes = list(subgraph.nodes)
        plan: list[int] = []
        waiting = iter(partitions)
        for subset in claims.subsets:
            if not subset.claimed:
                plan += subset.nodes
                continue
            made = next(waiting)
            made.start()
            self._partitions.append(made)
            nodes.append(made.node)
            plan.append(made.node.index)
            for index in subset.outputs:
                subgraph.tensors[index].claim(delegate)
            for tensor in made.inner_tensors():
                tensor.forget()
        subgraph.replace_plan(nodes, plan)

    def _free_kernels(self) -> None:
        for made in self._partitions:
            made.free_kernel()
        self._partitions.clear()


def _limit(nodes: int, most: int, least: int) -> str:
    if nodes < least:
        return f"its partition has {nodes} nodes, fewer than min_nodes_per_partition, which is {least}"
    return f"its partition is not among the largest: max_delegated_partitions is {most}"
