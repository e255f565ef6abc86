"""The subgraphs of a model on a device and who runs in them (MicroInterpreterGraph)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.dtypes import type_name
from gossamer.errors import ArenaError, GossamerError, InvokeError, PrepareError
from gossamer.micro.context import MicroContext, MicroInvokeContext, MicroPrepareContext, refuse
from gossamer.micro.kernels.kernel import MicroKernel
from gossamer.micro.node import NodeData
from gossamer.micro.tensor import EvalTensor
from gossamer.ops.op_def import OpDef

if TYPE_CHECKING:
    from gossamer.micro.resource_variables import MicroResourceVariables

TRIPPED = (ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
"""What an operator raises that trips over hostile options or values: it must still say which one it is, and where."""

MAX_DEPTH = 100
"""Subgraphs that call each other deeper than this would not fit the stack of a device."""


class Abort(Exception):
    """Raised by an operator that wants the rest of this invocation not to run: no error (kTfLiteAbort)."""


class MicroNode(NodeData):
    """One operator of a subgraph, with its kernel."""

    def __init__(
        self,
        index: int,
        kernel: MicroKernel,
        op: OpDef,
        version: int,
        inputs: Sequence[int],
        outputs: Sequence[int],
        intermediates: Sequence[int],
        options: Any,
        custom_options: bytes,
    ) -> None:
        super().__init__(index, op, version, inputs, outputs, intermediates, options, custom_options)
        self.kernel = kernel
        self.invoke_context: MicroInvokeContext | None = None


class MicroSubgraph:
    """Tensors and nodes; inputs and outputs by tensor index."""

    def __init__(
        self, tensors: list[EvalTensor], nodes: list[MicroNode], inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        self.tensors = tensors
        self.nodes = nodes
        self.inputs = inputs
        self.outputs = outputs


class MicroGraph:
    """All subgraphs. Operators of one run in another through `invoke_subgraph`."""

    def __init__(self, resource_variables: MicroResourceVariables | None) -> None:
        self.subgraphs: list[MicroSubgraph] = []
        self.resource_variables = resource_variables
        self.current_subgraph = 0
        self.before_node: Callable[[str], int] | None = None
        self.after_node: Callable[[int], None] | None = None
        self._depth = 0

    @property
    def tensors(self) -> list[EvalTensor]:
        """Those of the present subgraph."""
        return self.subgraphs[self.current_subgraph].tensors

    def subgraph_inputs(self, index: int) -> list[EvalTensor]:
        """The inputs of a subgraph."""
        subgraph = self.subgraphs[index]
        return [subgraph.tensors[i] for i in subgraph.inputs]

    def subgraph_outputs(self, index: int) -> list[EvalTensor]:
        """The outputs of a subgraph."""
        subgraph = self.subgraphs[index]
        return [subgraph.tensors[i] for i in subgraph.outputs]

    def init_subgraphs(self, micro: MicroContext) -> None:
        """Let every operator take its data. Raises `ArenaError`."""
        for index, subgraph in enumerate(self.subgraphs):
            with self._in(index):
                for node in subgraph.nodes:
                    ctx = MicroPrepareContext(micro, node)
                    try:
                        if node.kernel.op_data is not None and micro.size_of(node.kernel.op_data):
                            node.user_data = ctx.persistent(node.kernel.op_data)
                        node.kernel.init(ctx)
                    except ArenaError as error:
                        refuse(ctx, error)

    def prepare_subgraphs(self, micro: MicroContext, finish: Callable[[int], None]) -> None:
        """Prepare every operator; call ``finish`` with its index after each. Raises `PrepareError` and `ArenaError`."""
        for index, subgraph in enumerate(self.subgraphs):
            with self._in(index):
                for node in subgraph.nodes:
                    ctx = MicroPrepareContext(micro, node)
                    try:
                        _prepare(ctx, node)
                        self._refuse_dynamic(ctx, node)
                        finish(node.index)
                    except ArenaError as error:
                        refuse(ctx, error)
                    except TRIPPED as error:
                        if isinstance(error, GossamerError):
                            raise
                        ctx.fail(f"{type(error).__name__}: {error}")

    def _refuse_dynamic(self, ctx: MicroPrepareContext, node: MicroNode) -> None:
        for tensor in ctx.tensors_out:
            if tensor.shape != (0,) and min(tensor.shape, default=1) <= 0:
                raise PrepareError(
                    f"Op#{node.index} ({node.name}) of subgraph {self.current_subgraph} has dynamic tensor "
                    f"#{tensor.index} of shape {list(tensor.shape)}\nDynamic tensors are not supported"
                )

    def reset_subgraphs(self) -> None:
        """Bring every operator back to where it was before the first invoke."""
        for subgraph in self.subgraphs:
            for node in subgraph.nodes:
                if node.op.reset_function is not None:
                    node.op.reset_function(node.data)

    def reset_variable_tensors(self) -> None:
        """Zero the variable tensors, and the resource variables; an int8 tensor gets its zero point."""
        for subgraph in self.subgraphs:
            for tensor in subgraph.tensors:
                if tensor.is_variable:
                    tensor.reset()
        if self.resource_variables is not None:
            self.resource_variables.reset_all()

    def invoke_subgraph(self, micro: MicroContext, index: int) -> None:
        """Run the operators of a subgraph in order. Raises `InvokeError`."""
        if self._depth >= MAX_DEPTH:
            raise InvokeError(f"subgraphs call each other more than {MAX_DEPTH} deep")
        self._depth += 1
        try:
            with self._in(index):
                for node in self.subgraphs[index].nodes:
                    event = self.before_node(node.name) if self.before_node is not None else -1
                    _invoke(micro, node)
                    if self.after_node is not None:
                        self.after_node(event)
        finally:
            self._depth -= 1

    @contextmanager
    def _in(self, index: int) -> Iterator[None]:
        if not 0 <= index < len(self.subgraphs):
            raise InvokeError(f"Accessing subgraph {index} but only {len(self.subgraphs)} subgraphs found")
        previous, self.current_subgraph = self.current_subgraph, index
        try:
            yield
        finally:
            self.current_subgraph = previous


def _prepare(ctx: MicroPrepareContext, node: MicroNode) -> None:
    kernel = node.kernel
    node.op.check_operands(ctx)
    node.op.check_output_types(ctx)
    for position, tensor in enumerate(ctx.tensors_out):
        if tensor.is_stored:
            ctx.fail(f"output {position} is a constant of the file and cannot be written")
    if kernel.types and ctx.input(kernel.typed).type not in kernel.types:
        names = ", ".join(type_name(t) for t in kernel.types)
        got = type_name(ctx.input(kernel.typed).type)
        ctx.fail(f"input {kernel.typed} is {got}; TFLite Micro has this kernel for {names}")
    with np.errstate(all="ignore"):
        if node.op.prepare_function is not None and not kernel.own_prepare:
            node.data = node.op.prepare_function(ctx)
        made = kernel.prepare(ctx)
    if made is not None:
        node.data = made
    node.constants = ctx.constants
    ctx.check_compressed()
    ctx.release_temps()
    ctx.micro.decompression_memory.reset()


def _invoke(micro: MicroContext, node: MicroNode) -> None:
    ctx = node.invoke_context
    if ctx is None:
        ctx = node.invoke_context = MicroInvokeContext(micro, node)
    run = node.kernel.reference or node.op.reference_function
    if run is None:
        ctx.fail("has no kernel")
    try:
        with np.errstate(all="ignore"):
            ctx.store(run(ctx))
    except GossamerError:
        raise
    except TRIPPED as error:
        ctx.fail(f"{type(error).__name__}: {error}")
