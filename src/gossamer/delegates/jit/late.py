"""Nodes whose shapes only the run tells: a program for each shape, and each small value, that has come up.

Behind a value that decides shapes nothing can be made before it is there. Then everything is known, and stays right for
as long as the value does: so programs are made when they are first needed, and found again by what they were made for.
Where a node itself writes what decides the shapes behind it, a program ends, and another one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.config import is_strict
from gossamer.delegates.delegate import (
    Delegate,
    DelegateFlags,
    NodeInfo,
    Partition,
    PartitionInvokeContext,
    PartitionPrepareContext,
    SupposedNodes,
)
from gossamer.delegates.jit.delegate import MOST_KEPT, Arena, JitDelegate, kept_bytes
from gossamer.delegates.jit.lowered import COUNTS, Lowered, Refused
from gossamer.delegates.jit.lowering import HANDLED, lower
from gossamer.delegates.jit.states import Variables
from gossamer.delegates.jit.steps import Counted, Look, Step, SteppedKernel
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.errors import CompileError, DelegateError, InvokeError
from gossamer.log import logger
from gossamer.ops.op_def import Shape, TensorInfo
from gossamer.programs.program import Program
from gossamer.schema import WhileOptions
from gossamer.schema.enums import TensorType

if TYPE_CHECKING:
    from gossamer.delegates.jit.sizing import Sizing
    from gossamer.delegates.jit.turns import Turns

Array = NDArray[Any]

MOST_STEPS = 2048
"""For so many shapes and values it is kept how nodes go on."""

MOST_IN_VAIN = 64
"""So many runs make steps before it is asked whether any is ever used again."""


class LateDelegate(Delegate):
    """Claims what `JitDelegate` leaves behind a shape that depends on values, where the operator has machine code."""

    name = "jit late"
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def __init__(self, jit: JitDelegate) -> None:
        self._jit = jit

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        """See `Delegate.is_node_supported`."""
        operands = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None]
        if node.is_prepared and not any(tensor.is_dynamic for tensor in operands):
            return "its shapes are known, jit has left it"
        if self._jit.disability is not None:
            return self._jit.disability
        if node.op.lower_function is None:
            return node.op.reference_only or f"{node.op.name} has no machine code yet"
        if node.op.is_checked:
            return f"{node.op.name} is a custom operator, whose machine code is for shapes that are known before"
        handles = {TensorType.RESOURCE} if node.op.side_effects else set()
        strange = [tensor.type for tensor in operands if tensor.type not in HANDLED | handles]
        return f"no kernels for {type_name(strange[0])}" if strange else True

    def create_kernel(self, partition: Partition) -> LateKernel:
        """See `Delegate.create_kernel`."""
        return LateKernel(self._jit)


class LateKernel(SteppedKernel):
    """Runs a partition step by step, and makes the steps that have not come up before.

    ``steps`` are those of the last run, ``turns``: by node, what
    runs loops that are part of no program. ``failure``: why the reference kernels run instead, for good.
    """

    def __init__(self, jit: JitDelegate) -> None:
        self._jit = jit
        self._arena = Arena()
        self._first: Look | None = None
        self._nodes: Sequence[NodeInfo] = ()
        self._handles: Sequence[TensorInfo] = ()
        self._tensors: dict[int, TensorInfo] = {}
        self._programs: list[Program] = []
        self._states: dict[int, Array] = {}
        self._made = self._in_vain = self._used = 0
        self._no_parts: set[int] = set()
        """Loops that have been refused as parts of programs."""
        self.turns: dict[int, Turns | None] = {}
        self.steps: list[Step] = []
        self.failure: str | None = None

    def prepare(self, ctx: PartitionPrepareContext) -> None:
        """Leave all shapes to the run. What can be said against the nodes before, is said now."""
        self.again = None
        if not any(tensor.is_dynamic for tensor in ctx.inputs):
            ctx.propagate_shapes()
        for tensor in ctx.outputs:
            ctx.set_dynamic(tensor)
        self._nodes = ctx.nodes
        self._handles = [tensor for tensor in ctx.inputs if tensor.type == TensorType.RESOURCE]
        self._tensors = {t.index: t for node in ctx.nodes for t in (*node.inputs, *node.outputs) if t is not None}
        # Such constants may have been worked out from shapes; what operators keep begins anew.
        computed = any(tensor.is_constant and not tensor.is_stored for tensor in ctx.inputs)
        if self._first is None or computed or self._states:
            self._states = {}
            self._forget(ctx)

    def _forget(self, ctx: Partition) -> None:
        self._first = self._look(0)
        self._programs.clear()

    def _look(self, first: int) -> Look:
        """What decides how nodes go on from this one."""
        return Look(self._read(first, len(self._nodes)), self._handles)

    def _read(self, first: int, stop: int) -> list[TensorInfo]:
        """What nodes read that they do not write and that is no constant."""
        nodes = self._nodes[first:stop]
        written = {tensor.index for node in nodes for tensor in node.outputs}
        read = {t.index: t for node in nodes for t in node.inputs if t is not None and not t.is_constant}
        return [tensor for index, tensor in read.items() if index not in written]

    def _written(self, ctx: PartitionInvokeContext, first: int, stop: int) -> list[int]:
        """What nodes write that others read."""
        read = {t.index for node in self._nodes[stop:] for t in node.inputs if t is not None}
        read |= {tensor.index for tensor in ctx.outputs}
        written = dict.fromkeys(t.index for node in self._nodes[first:stop] for t in node.outputs if t.index >= 0)
        return [index for index in written if index in read]

    def invoke(self, ctx: PartitionInvokeContext) -> None:
        """Run the steps that fit what there is, or make them."""
        self.again = None
        look, steps, made, stays = self._first, list[Step](), self._made, True
        while look is not None and (not steps or steps[-1].stop < len(self._nodes)):
            if self.failure is not None:
                for node in self._nodes[steps[-1].stop if steps else 0 :]:
                    ctx.run(node)
                return
            step = look.steps.get(look.key(ctx))
            if step is None:
                step = self._step(ctx, look, steps[-1].stop if steps else 0)
            stays &= step.run(ctx, self._jit.num_threads)
            steps.append(step)
            look = step.after
        self.steps = steps
        if made < self._made:
            self._judge(ctx)
        else:
            self._used += 1
            # The first result does not wait for what makes later ones faster.
            self.again = self._again(ctx) if stays else None

    def _judge(self, ctx: PartitionInvokeContext) -> None:
        self._in_vain += 1
        if kept_bytes(self._programs) > MOST_KEPT:
            self._forget(ctx)
        if not self.is_patient and self._in_vain > MOST_IN_VAIN and self._used < self._in_vain // 4:
            self.failure = f"what {self._in_vain} runs made for their shapes and values was hardly ever used again"
            logger.info("jit: nodes %s run one by one: %s", ctx.node_numbers, self.failure)

    def _step(self, ctx: PartitionInvokeContext, look: Look, first: int) -> Step:
        """Make the next step, for what is written now, as long as it can be."""
        if len(look.steps) == MOST_STEPS:
            look.steps.clear()
        step = None if look.sizing is None else self._fitted(ctx, look, look.sizing)
        if step is not None:
            look.steps[look.key(ctx)] = step
            return step
        supposed = ctx.suppose(first)
        lowered = Lowered(states=self._states, counts={}, guesses=True)
        stop, asked = first, set[int]()
        for node in supposed.nodes:
            if node.node_index in self._no_parts or not _add(node, supposed, lowered):
                break
            stop, asked = stop + 1, set(supposed.asked)
            if lowered.counts:
                break  # how large it is decides how nodes go on
        while step is None and stop > first:
            step = self._compiled(ctx, look, supposed, lowered, first, stop)
            stop = first + (stop - first) // 2  # fewer, where kernels are missing: the next step begins there
        if step is None:
            step = Step(self._nodes[first : first + 1], first + 1, self._after(look, first + 1))
            turns = self._loop(ctx, self._nodes[first])
            if turns is None:
                self._made += 1
            else:
                wanted = frozenset(self._written(ctx, first, first + 1))
                step.alone = partial(_run_turns, node=self._nodes[first], turns=turns, wanted=wanted)
        else:
            self._made += 1
        if step.program is not None and not asked <= {tensor.index for tensor in look.asked}:
            look.asked = [self._tensors[index] for index in sorted(asked | {tensor.index for tensor in look.asked})]
            look.steps.clear()
        look.steps[look.key(ctx)] = step
        nodes = slice(first, step.stop)
        from gossamer.delegates.jit.sizing import Sizing

        if step.program is not None and (look.sizing is None or look.sizing.nodes != nodes):
            outputs = self._written(ctx, first, step.stop)
            look.sizing = Sizing(self._jit, nodes, self._read(first, step.stop), look.asked, outputs)
            look.sizing.fitting(ctx, self._arena)
        return step

    def _loop(self, ctx: PartitionInvokeContext, node: NodeInfo) -> Turns | None:
        """What runs a loop that is no part of a program turn by turn, if that can be."""
        if not isinstance(node.options, WhileOptions):
            return None
        # One that begins with nothing is refused for that, though it may be part of a program with something.
        if not any(0 in tensor.shape for tensor in node.inputs if tensor is not None):
            self._no_parts.add(node.node_index)
        if node.node_index not in self.turns:
            from gossamer.delegates.jit.turns import Turns

            try:
                self.turns[node.node_index] = Turns(
                    ctx, LateDelegate(self._jit), self._jit.target, self._jit.num_threads, node.options
                )
            except (InvokeError, DelegateError) as reason:
                logger.info("jit: %s (node %d) runs in NumPy: %s", node.op.name, node.node_index, reason)
                self.turns[node.node_index] = None
        return self.turns[node.node_index]

    def course(self) -> tuple[Look | None, int]:
        """See `SteppedKernel.course`."""
        return None if self.failure is not None else self._first, len(self._nodes)

    def path(self) -> Iterator[tuple[Look, Step]]:
        """See `SteppedKernel.path`."""
        look = self._first
        for step in self.steps if self.failure is None else ():
            if look is not None:
                yield look, step
                look = step.after

    def _after(self, look: Look, stop: int) -> Look:
        return look.after.get(stop) or look.after.setdefault(stop, self._look(stop))

    def _fitted(self, ctx: PartitionInvokeContext, look: Look, sizing: Sizing) -> Step | None:
        """The step that its nodes are for what is written now, of a program for other sizes, too."""
        found = sizing.fitting(ctx, self._arena)
        if found is None:
            return None
        shared, fit = found
        if shared.program not in self._programs:
            self._programs.append(shared.program)
            self._made += 1
        step = Step(self._nodes[sizing.nodes], sizing.nodes.stop, self._after(look, sizing.nodes.stop))
        step.program, step.shared = shared.program, found
        outputs = [(self._tensors[index], shape, None) for index, shape in zip(sizing.outputs, fit.shapes, strict=True)]
        boundaries = [(one.tensor, one.base, size) for one, size in zip(shared.boundaries, fit.bytes, strict=True)]
        self._bound(ctx, step, outputs, boundaries)
        step.places = shared.places
        return step

    def _compiled(
        self, ctx: PartitionInvokeContext, look: Look, supposed: SupposedNodes, lowered: Lowered, first: int, stop: int
    ) -> Step | None:
        """A step of these nodes as one program; ``None`` if there are no kernels for them."""
        from gossamer.delegates.jit.compiling import compiled_of

        written = {t.index: t for node in supposed.nodes[: stop - first] for t in node.outputs}
        outputs = [written[index] for index in self._written(ctx, first, stop)]
        try:
            built, boundaries = compiled_of(lowered.finish(outputs), ctx.source, self._jit.target)
            program = self._jit.program(ctx, built.plan, built.constants.tobytes(), self._arena)
        except Exception as error:  # whatever it is, the reference kernels can do it
            if is_strict() and not isinstance(error, CompileError):
                raise
            self._jit.warn(str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}")
            return None
        self._programs.append(program)
        step = Step(self._nodes[first:stop], stop, self._after(look, stop))
        step.program = program
        known = [
            (self._tensors[one.index], one.shape, supposed.constant(one) if one.is_constant else None)
            for one in outputs
        ]
        tensors = [one[:3] for one in boundaries if one.state is None and one.resource is None]
        self._bound(ctx, step, known, tensors, lowered.counts or ())
        step.variables = Variables([(one.base, *one.resource) for one in boundaries if one.resource is not None])
        for boundary in boundaries:
            if boundary.state is not None:
                program.bind(boundary.base, boundary.state.ctypes.data)
                step.keeps = True
        return step

    def _bound(
        self,
        ctx: PartitionInvokeContext,
        step: Step,
        outputs: Iterable[tuple[TensorInfo, Shape, Array | None]],
        boundaries: Iterable[tuple[int, str, int]],
        counts: Container[int] = (),
    ) -> None:
        """Say what a step writes, with the values of what is known, and what its program reads and writes. ``counts``:
        what has some of its rows."""
        crossing = {tensor.index for tensor in ctx.outputs}
        inside: dict[int, Array] = {}
        for tensor, shape, constant in outputs:
            if tensor.index in counts:
                rows = inside[tensor.index] = np.empty(shape, numpy_dtype(tensor.type))
                number = inside[COUNTS + tensor.index] = np.zeros(1, np.int64)
                step.counted.append(Counted(tensor, rows, number, tensor.index in crossing))
                continue
            step.shapes.append((tensor, shape))
            if constant is not None or 0 in shape:
                step.values.append(
                    (tensor, np.empty(shape, numpy_dtype(tensor.type)) if constant is None else constant)
                )
            elif tensor.index not in crossing:
                inside[tensor.index] = np.empty(shape, numpy_dtype(tensor.type))
                step.values.append((tensor, inside[tensor.index]))
        step.boundaries = [
            (self._tensors[number % COUNTS], base, size, inside.get(number)) for number, base, size in boundaries
        ]
        step.places = [None] * len(step.boundaries)
        step.written = {tensor.index for tensor, _ in step.shapes}

    def _again(self, ctx: PartitionInvokeContext) -> Callable[[], object] | None:
        """See `DelegateKernel.again`: the steps of the last run, as long as what they were made for stays."""
        if any(tensor.is_variable for tensor in ctx.inputs):
            return None
        stages: list[tuple[list[tuple[Array, bytes]], Callable[[], object], list[Counted]]] = []
        look = self._first
        for step in self.steps:
            enter = None if step.program is None else step.program.again(self._jit.num_threads)
            if step.program is not None and step.variables:
                enter = step.variables.again(step.program, ctx.resources, enter)
            if enter is None or look is None:
                return None
            values = [ctx.value(tensor) for tensor in look.asked]
            stages.append(([(value, value.tobytes()) for value in values], enter, step.counted))
            look = step.after

        def again() -> bool:
            for looks, enter, counted in stages:
                for value, before in looks:
                    if value.tobytes() != before:
                        return True
                if enter():
                    return True
                for one in counted:
                    if one.again():
                        return True
            return False

        (looks, enter, counted), *others = stages
        if others or looks or len(counted) > 1:
            return again
        return _entered(enter, counted[0].again) if counted else enter

    def free(self) -> None:
        """See `DelegateKernel.free`."""
        self.again = self._first = None
        self.steps = []
        self._programs.clear()


def _entered(enter: Callable[[], object], again: Callable[[], bool]) -> Callable[[], object]:
    """One after the other, in the least time; a truth if one of them returns one."""
    return lambda: enter() or again()


def _add(node: NodeInfo, supposed: SupposedNodes, lowered: Lowered) -> bool:
    """Lower a node, if its shapes are known then: by those of its inputs, or else by what small ones hold."""
    for offer in (False, True):
        if not supposed.prepare(node, offer=offer) and not node.op.tells_shapes:
            continue
        try:
            lower(node, lowered)
        except Refused:
            continue
        except Exception:
            if is_strict():
                raise
            continue
        if not any(tensor.is_dynamic for tensor in node.outputs):
            return True
    return False


def _run_turns(ctx: PartitionInvokeContext, node: NodeInfo, turns: Turns, wanted: Container[int]) -> None:
    """Run a loop. ``wanted``: those of its outputs that somebody reads."""
    values = turns.run(ctx, [ctx.value(tensor) for tensor in node.inputs if tensor is not None])
    for tensor, value in zip(node.outputs, values, strict=True):
        if tensor.index not in wanted:
            continue
        shape = tensor.shape if value.size == 1 and tensor.shape in ((), (1,)) else value.shape
        ctx.resize(tensor, shape)
        if tensor in ctx.outputs:
            ctx.memory(tensor)[:] = value.reshape(-1).view(np.uint8)
        else:
            ctx.set_value(tensor, value.reshape(shape))
