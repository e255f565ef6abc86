"""The default delegate: partitions as programs of machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary
from zlib import crc32

import numpy as np

from gossamer import kept
from gossamer.arrays import NDArray
from gossamer.delegates.delegate import (
    Delegate,
    DelegateFlags,
    DelegateKernel,
    NodeInfo,
    Partition,
    PartitionInvokeContext,
    PartitionPrepareContext,
)
from gossamer.errors import CompileError, InvokeError
from gossamer.log import logger
from gossamer.ops.op_def import TensorInfo
from gossamer.programs import host, plans
from gossamer.programs.archive import user_directory
from gossamer.programs.generator import plan_version
from gossamer.programs.library import kernel_library
from gossamer.programs.program import (
    CONSTANTS,
    MODEL,
    WEIGHTS,
    CommandTime,
    IndexFault,
    Program,
    ProgramPlan,
    walker_name,
)
from gossamer.targets import Target, host_target

if TYPE_CHECKING:
    from gossamer.codegen.build import Built


_warned: set[str] = set()

_weights: WeakValueDictionary[Any, host.Memory] = WeakValueDictionary()
"""Packed weights, as long as a program holds them."""


class Known:
    """What is known of a graph: by node, why not to claim it (``None``: claim it); by partition, what became of it.

    It lasts as long as the fingerprint that it is kept under. Without one it is forgotten.
    """

    def __init__(self, target: Target, fingerprint: str | None) -> None:
        self._directory = user_directory() if fingerprint is not None else None
        self._key = f"{plan_version()}\n{target.name}\n{fingerprint}"
        found = kept.load(self._directory, self._key)
        self.refusals: dict[int, str | None] = found.get("refusals", {})
        self.programs: dict[Any, Any] = found.get("programs", {})

    def save(self) -> None:
        """Keep it for the next process."""
        kept.save(self._directory, self._key, {"refusals": self.refusals, "programs": self.programs})


class JitDelegate(Delegate):
    """Claims every node whose operator lowers to the kernel graph, and runs a partition as one program.

    ``num_threads``: how many run it together. ``target``: what code is made for; by default the best that this CPU has.
    """

    name = "jit"
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def __init__(self, num_threads: int = 1, target: Target | None = None) -> None:
        target = target or host_target(host.cpu_features())
        if target is None:
            raise ValueError("There is no machine code for this CPU")
        self.target = target
        self.num_threads = num_threads
        self._has_warned = False
        self._known: dict[str | None, Known] = {}

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        """See `Delegate.is_node_supported`."""
        fingerprint = node.fingerprint
        known = self.known(fingerprint)
        if node.node_index not in known.refusals or fingerprint is None:
            from gossamer.delegates.jit.lowering import refusal

            node.propagate_shapes()
            reason = refusal(node)
            if reason is None and (lacking := self._lacking(node)):
                return lacking  # not known for good: a compiler may come
            known.refusals[node.node_index] = reason
        return known.refusals[node.node_index] or True

    def _lacking(self, node: NodeInfo) -> str | None:
        from gossamer.delegates.jit.compiling import unavailable

        reason = unavailable(node, self.target)
        if reason is not None:
            self.warn(reason)
        return reason

    def known(self, fingerprint: str | None) -> Known:
        """What is known of the graph with this fingerprint."""
        found = self._known.get(fingerprint)
        if found is None:
            found = self._known[fingerprint] = Known(self.target, fingerprint)
        return found

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
        self.program: Program | None = None
        self.failure: str | None = None
        self._built: Built | None = None
        self._partition: Partition | None = None
        self._observer: Callable[[list[CommandTime]], None] | None = None
        self._tensors: list[tuple[TensorInfo, str, int]] = []
        self._bound: list[NDArray[np.uint8] | None] = []

    @property
    def target(self) -> Target:
        """What the machine code is for."""
        return self._delegate.target

    @property
    def built(self) -> Built | None:
        """The kernel graph behind the program, made again if the plan came from a file."""
        if self._built is None and self.program is not None:
            self._built = self.built_for(self.target)
        return self._built

    def built_for(self, target: Target) -> Built | None:
        """What the partition would be on any target, which need not run here; ``None`` where there is no program."""
        if self.program is None or self._partition is None:
            return None
        from gossamer.delegates.jit.compiling import built_of

        self._partition.propagate_shapes()
        built, _ = built_of(self._partition, target)
        return built

    def prepare(self, ctx: PartitionPrepareContext) -> None:
        """Make the program, and pack weights. What cannot be compiled is left to the reference kernels, with a warning.

        A plan that is known from before is used as it is, if its kernels are at hand: nothing is prepared or lowered.
        """
        self._built = self.program = self.failure = None
        self._partition = ctx
        known = self._delegate.known(ctx.fingerprint)
        key = (tuple(node.node_index for node in ctx.nodes), tuple(tensor.shape for tensor in ctx.inputs))
        made = known.programs.get(key) if ctx.fingerprint is not None else None
        if any(tensor.is_dynamic for tensor in ctx.inputs):
            made = None  # another delegate writes it, and not always with the same shape
        if made is not None:
            plan = plans.plan_of(made["plan"])
            library = kernel_library(self.target)
            if not library.missing((*plan.kernels, walker_name(self.target))):
                for tensor, shape in zip(ctx.outputs, made["shapes"], strict=True):
                    ctx.set_shape(tensor, shape)
                self._start(ctx, plan, made["constants"], made["boundaries"])
                return
        self._make(ctx, known, key)

    def _make(self, ctx: PartitionPrepareContext, known: Known, key: Any) -> None:
        from gossamer.delegates.jit.compiling import compiled_of
        from gossamer.delegates.jit.lowering import Refused

        ctx.prepare_nodes()
        try:
            self._built, boundaries = compiled_of(ctx, self.target)
        except Refused as reason:
            logger.info("jit: partition of %d nodes runs on the reference kernels: %s", len(ctx.nodes), reason)
            self.failure = str(reason)
            return
        except Exception as error:  # whatever it is, the reference kernels can do it
            self.failure = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
            self._delegate.warn(self.failure)
            self._built = None
            return
        constants = self._built.constants.tobytes()
        # Kept is what would be made again: not what a missing compiler has kept apart, nor outputs that are constants.
        if self._built.is_final and not any(tensor.is_constant for tensor in ctx.outputs):
            known.programs[key] = {
                "plan": plans.plain(self._built.plan),
                "constants": constants,
                "boundaries": [tuple(boundary) for boundary in boundaries],
                "shapes": [tensor.shape for tensor in ctx.outputs],
            }
            known.save()
        plan, self._built = self._built.plan, None  # which is large, and can be made again
        self._start(ctx, plan, constants, boundaries)

    def _start(self, ctx: Partition, plan: ProgramPlan, constants: bytes, boundaries: Any) -> None:
        memory = host.Memory(max(len(constants), 1))
        memory.view()[: len(constants)] = constants
        model = np.frombuffer(ctx.source, np.uint8).ctypes.data if ctx.source is not None else 0
        # Interpreters of one model share its packed weights. Who holds them holds the bytes that they were made of, so
        # other bytes are not at that address.
        of = ctx.fingerprint or (model, len(ctx.source or b""))
        nodes = tuple(node.node_index for node in ctx.nodes)
        key = (of, nodes, self.target, crc32(plan.words.tobytes()))
        weights = _weights.get(key)
        shared = {CONSTANTS: memory} if weights is None else {CONSTANTS: memory, WEIGHTS: weights}
        self.program = Program(plan, kernel_library(self.target), self.target, shared)
        self.program.bind(MODEL, model)
        if weights is None:
            # What was packed need not stay in memory twice, if it can be read again: a file that is mapped.
            self.program.pack(self._delegate.num_threads, release=ctx.fingerprint is not None)
            if WEIGHTS in self.program.memory:
                _weights[key] = self.program.memory[WEIGHTS]
        tensors = {tensor.index: tensor for tensor in (*ctx.inputs, *ctx.outputs)}
        self._tensors = [(tensors[index], base, size) for index, base, size in boundaries if index in tensors]
        self._bound = [None] * len(self._tensors)

    def invoke(self, ctx: PartitionInvokeContext) -> None:
        """One native call. What is wrong with an index out of range or a divisor of 0, the reference kernels say."""
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

        Raises `CompileError` if no archive has the walker that looks at the clock, and there is no compiler.
        """
        if observer is not None:
            from gossamer.codegen.library import ensure, walker

            ensure([walker(self.target, timed=True)], self.target)
        self._observer = observer

    def free(self) -> None:
        """See `DelegateKernel.free`."""
        self.program = self._built = self._partition = None


def _run_reference(ctx: PartitionInvokeContext) -> None:
    for node in ctx.nodes:
        ctx.run(node)
