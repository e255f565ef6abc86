"""The delegate that changes nothing: it claims what it is told to and runs the reference kernels."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.delegates.delegate import (
    Delegate,
    DelegateFlags,
    DelegateKernel,
    NodeInfo,
    Partition,
    PartitionInvokeContext,
)

Claim = Callable[[NodeInfo], bool | str]


class NullDelegate(Delegate):
    """``claim`` decides as `Delegate.is_node_supported` does, or names operators: ``"SIN,COS"``. By default all.

    The other settings are those of `Delegate`; numbers may come as text, as they do from a command line.
    """

    name = "null"

    def __init__(
        self,
        claim: Claim | str = "",
        *,
        flags: int | str = 0,
        max_delegated_partitions: int | str = 0,
        min_nodes_per_partition: int | str = 0,
    ) -> None:
        self._claim = _claim_by_name(claim) if isinstance(claim, str) else claim
        self.flags = DelegateFlags(int(flags))
        self.max_delegated_partitions = int(max_delegated_partitions)
        self.min_nodes_per_partition = int(min_nodes_per_partition)

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        """See `Delegate.is_node_supported`."""
        return self._claim(node)

    def create_kernel(self, partition: Partition) -> DelegateKernel:
        """See `Delegate.create_kernel`."""
        return NullKernel()


class NullKernel(DelegateKernel):
    """Runs the nodes of its partition as if there were no delegate."""

    def invoke(self, ctx: PartitionInvokeContext) -> None:
        """See `DelegateKernel.invoke`."""
        for node in ctx.nodes:
            ctx.run(node)


def _claim_by_name(names: str) -> Claim:
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    return lambda node: not wanted or node.op.name in wanted or f"only {', '.join(sorted(wanted))}"
