"""The default delegate: partitions as programs of machine code."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gossamer.codegen.build import Built, build
from gossamer.codegen.commands import CONSTANTS
from gossamer.codegen.layout import boundary, item_bytes
from gossamer.codegen.library import ensure, walker
from gossamer.delegates.delegate import (
    Delegate,
    DelegateFlags,
    DelegateKernel,
    NodeInfo,
    Partition,
    PartitionInvokeContext,
    PartitionPrepareContext,
)
from gossamer.delegates.jit.lowering import Lowered, Refused, lower, refusal
from gossamer.errors import CompileError, InvokeError
from gossamer.ops.op_def import TensorInfo
from gossamer.programs import host
from gossamer.programs.program import MODEL, CommandTime, IndexFault, Program
from gossamer.targets import Target, host_target

logger = logging.getLogger("gossamer")

_warned: set[str] = set()


class JitDelegate(Delegate):
    """Claims every node whose operator lowers to the kernel graph, and runs a partition as one program.

    ``num_threads``: how many run it together. ``target``: what code is made for; by default the best that this CPU has.
    """

    name = "jit"
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    def __init__(self, num_threads: int = 1, target: Target | None = None) -> None:
        target = target or host_target(host.cpu_features())
        if target is None:
            raise ValueError("There is no machine code for this CPU")
        self.target = target
        self.num_threads = num_threads
        self._has_warned = False

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        """See `Delegate.is_node_supported`."""
        return refusal(node) or True

    def create_kernel(self, partition: Partition) -> DelegateKernel:
        """See `Delegate.create_kernel`."""
        return JitKernel(self)

    def warn(self, failure: str) -> None:
        """Say, once, that the reference kernels run and why: not for every partition, nor for every interpreter."""
        if not self._has_warned and failure not in _warned:
            logger.warning("Machine code is not available, the reference kernels run instead: %s", failure)
        self._has_warned = True
        _warned.add(failure)


class JitKernel(DelegateKernel):
    """The program of a partition, for the shapes that it is prepared for; without one, the reference kernels.

    ``built`` and ``program`` are ``None`` where the reference kernels run, for the reason in ``failure``.
    """

    def __init__(self, delegate: JitDelegate) -> None:
        self._delegate = delegate
        self.built: Built | None = None
        self.program: Program | None = None
        self.failure: str | None = None
        self._observer: Callable[[list[CommandTime]], None] | None = None
        self._tensors: list[tuple[TensorInfo, str, int]] = []
        self._bound: list[NDArray[np.uint8] | None] = []

    @property
    def target(self) -> Target:
        """What the machine code is for."""
        return self._delegate.target

    def prepare(self, ctx: PartitionPrepareContext) -> None:
        """Lower, build, and pack weights. What cannot be compiled is left to the reference kernels, with a warning."""
        self.built = self.program = self.failure = None
        try:
            lowered = Lowered()
            for node in ctx.nodes:
                lower(node, lowered)
            graph = lowered.finish(ctx.outputs)
        except Refused as reason:
            logger.info("jit: partition of %d nodes runs on the reference kernels: %s", len(ctx.nodes), reason)
            self.failure = str(reason)
            return
        model, keep = _stored(ctx.nodes)
        try:
            self.built = build(graph, self._delegate.target, model)
            kernels = ensure(self.built.specs.values(), self._delegate.target)
        except Exception as error:  # whatever it is, the reference kernels can do it
            self.failure = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
            self._delegate.warn(self.failure)
            self.built = None
            return
        constants = host.Memory(max(self.built.constants.nbytes, 1))
        constants.view()[: self.built.constants.nbytes] = self.built.constants.tobytes()
        self.program = Program(self.built.plan, kernels, self._delegate.target, {CONSTANTS: constants})
        if model is not None:
            self.program.bind(MODEL, model[0])
        self._keep = keep
        self.program.pack(self._delegate.num_threads)
        tensors = {tensor.index: tensor for tensor in (*ctx.inputs, *ctx.outputs)}
        self._tensors = [
            (tensors[index], boundary(index), item_bytes(buffer) * math.prod(buffer.shape))
            for index, buffer in (*graph.inputs.items(), *graph.outputs.items())
            if index in tensors
        ]
        self._bound = [None] * len(self._tensors)

    def invoke(self, ctx: PartitionInvokeContext) -> None:
        """One native call. If a kernel meets an index out of range, the reference kernels say which."""
        program = self.program
        if program is None:
            _run_reference(ctx)
            return
        for at, (tensor, base, size) in enumerate(self._tensors):
            memory = ctx.memory(tensor)
            if memory is not self._bound[at]:
                if memory.nbytes < size:
                    raise InvokeError(
                        f'tensor {tensor.index} "{tensor.name}" has {memory.nbytes} bytes, it had {size} when the '
                        "program was made"
                    )
                program.bind(base, memory.ctypes.data)
                self._bound[at] = memory
        try:
            if self._observer is None:
                program.run(self._delegate.num_threads)
            else:
                self._observer(program.profile(self._delegate.num_threads))
        except IndexFault:
            _run_reference(ctx)

    def observe(self, observer: Callable[[list[CommandTime]], None] | None) -> None:
        """Have the commands of every run timed, and the observer told; ``None`` ends it.

        Raises `CompileError` if there is no archive with the walker that looks at the clock, and no compiler.
        """
        if observer is not None:
            ensure([walker(self._delegate.target, timed=True)], self._delegate.target)
        self._observer = observer

    def free(self) -> None:
        """See `DelegateKernel.free`."""
        self.program = self.built = None


def _run_reference(ctx: PartitionInvokeContext) -> None:
    for node in ctx.nodes:
        ctx.run(node)


def _stored(nodes: Sequence[NodeInfo]) -> tuple[tuple[int, int] | None, list[Any]]:
    """The addresses between which the constants of the file lie, and the arrays that keep them there."""
    arrays = []
    for node in nodes:
        for position, tensor in enumerate(node.inputs):
            if tensor is not None and tensor.is_stored:
                array = node.constant(position)
                if array is not None and array.nbytes and not array.flags.owndata:
                    arrays.append(array)
    if not arrays:
        return None, []
    starts = [array.ctypes.data for array in arrays]
    return (min(starts), max(start + a.nbytes for start, a in zip(starts, arrays, strict=True))), arrays


