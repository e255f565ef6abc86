"""The default delegate: partitions as programs of machine code."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize, ref

import numpy as np

from gossamer import disk_cache
from gossamer.arrays import NDArray
from gossamer.config import is_strict, user_directory
from gossamer.delegates.delegate import (
    Delegate,
    DelegateFlags,
    DelegateKernel,
    NodeInfo,
    Partition,
    PartitionInvokeContext,
    PartitionPrepareContext,
)
from gossamer.delegates.jit.shapes import MOST_SEEN, Shapes, key_for_shapes, key_of, shapes_of, shapes_out_of
from gossamer.delegates.jit.states import States, Variables
from gossamer.errors import CancelledError, CompileError, InvokeError
from gossamer.log import logger
from gossamer.model.structure import Dependencies
from gossamer.ops.op_def import Shape, TensorInfo
from gossamer.programs import host, plans
from gossamer.programs.generator import is_llvm_here, plan_version
from gossamer.programs.library import can_compile, kernel_library, why_nothing_runs
from gossamer.programs.program import (
    ARENA,
    CONSTANTS,
    MODEL,
    SLACK,
    WEIGHTS,
    CommandTime,
    IndexFault,
    Program,
    ProgramPlan,
    walker_name,
)
from gossamer.records import record
from gossamer.targets import Target, host_target

if TYPE_CHECKING:
    from gossamer.codegen.build import Built, Emitted
    from gossamer.delegates.jit.checking import Pieces
    from gossamer.delegates.jit.compiling import Boundary, Made
    from gossamer.delegates.jit.lowered import Calls, Lowered
    from gossamer.delegates.jit.parts import Draft, Parts
    from gossamer.delegates.jit.template import Opened, Templates


_warned: set[str] = set()

MOST_KEPT = 256 << 20
"""Bytes of the programs that a kernel keeps for shapes of its inputs, those of the last one apart."""

MOST_PLANS = 64
"""For so many shapes it keeps plans, from which programs are quickly made: in memory the last ones, in files the first,
as more would take the place of what is kept of other models."""

_weights: WeakValueDictionary[Any, host.Memory] = WeakValueDictionary()
"""Packed weights, as long as a program holds them."""

_constants: WeakValueDictionary[bytes, host.Memory] = WeakValueDictionary()
"""What lies in no file, as long as a program holds it: that of many shapes is the same."""

_sources: WeakKeyDictionary[host.Memory, memoryview | None] = WeakKeyDictionary()
"""What they were packed from, which therefore lives as long: other bytes are not at that address."""


class Known:
    """What is known of a graph: by node, why not to claim it (``None``: claim it); by partition, what became of it.

    It lasts as long as the fingerprint that it is kept under, and the constants that it depends on. Without a
    fingerprint it is forgotten.
    """

    def __init__(self, target: Target, fingerprint: str | None, dependencies: Dependencies | None) -> None:
        self._directory = user_directory() if fingerprint is not None else None
        self._key = _key(target, fingerprint)
        self._dependencies = None if dependencies is None else ref(dependencies)
        self._constants: Mapping[tuple[int, int], int] = {}
        self._made: dict[Any, dict[str, Any]] = {}

    @cached_property
    def _found(self) -> dict[str, Any]:
        """What there is in a file. Who only adds a program need not know."""
        found = disk_cache.load(self._directory, self._key)
        dependencies = None if self._dependencies is None else self._dependencies()
        return found if dependencies is not None and dependencies.include(found.get("constants", {})) else {}

    @cached_property
    def refusals(self) -> dict[int, str | None]:
        """By node, why not to claim it."""
        refusals: dict[int, str | None] = self._found.get("refusals", {})
        return refusals

    def program(self, key: Any, in_file: bool) -> dict[str, Any] | None:
        """What became of a partition. ``in_file``: what a process before has kept counts, too."""
        return self._made.get(key) or (self._found.get("programs", {}).get(key) if in_file else None)

    def add(self, key: Any, program: dict[str, Any]) -> None:
        """Know that this became of a partition."""
        self._made[key] = program

    def forget(self, key: Any) -> None:
        """Know it no more, less what a file has."""
        self._made.pop(key, None)

    def savable(self, dependencies: Dependencies | None) -> bool:
        """Whether the next process can have it: not if the file has changed since it was looked at."""
        self._constants = dict(dependencies.constants) if dependencies is not None else {}
        return dependencies is not None and dependencies.are_unchanged()

    def save(self) -> None:
        """Keep what is `savable` for the next process. The file is not looked at."""
        found = self.__dict__.get("_found")
        if found is None:
            found = disk_cache.load(self._directory, self._key)
            if not found.get("constants", {}).items() <= self._constants.items():
                found = {}
        programs = {**found.get("programs", {}), **self._made}
        refusals = self.__dict__.get("refusals", found.get("refusals", {}))
        values = {"refusals": refusals, "programs": programs, "constants": self._constants}
        disk_cache.save(self._directory, self._key, values)


def _key(target: Target, of: str | None) -> str:
    # Without a compiler, programs consist of the kernels that there are; once there is one, they are made again.
    compiler = "llvm" if is_llvm_here() and kernel_library(target).runs_new_kernels else "none"
    return f"{plan_version()}\n{target.name}\n{compiler}\n{of}"


@record(eq=False)
class Prepared:
    """A program for some shapes, the ``key`` of these, and what it is bound to, tensors and resource variables; the
    shapes of the outputs, and of the kernel that had it made whether it was known and filled in.

    Once it has run, what it finds and leaves from run to run, and what does so again where it is bound to the same.
    """

    key: Any
    program: Program
    tensors: list[tuple[TensorInfo, str, int]]
    bound: list[NDArray[np.uint8] | None]
    variables: Variables
    shapes: list[Shape]
    how: tuple[bool, bool]
    held: States | None = None
    again: Callable[[], object] | None = None


def kept_bytes(programs: Iterable[Program]) -> int:
    """Bytes of programs, each memory counted once."""
    return sum({id(memory): memory.size for program in programs for memory in program.memories}.values())


class Arena:
    """Memory that programs share which never run at the same time: as large as the largest of them needs, and more once
    it has grown, as shapes are others again and again."""

    def __init__(self) -> None:
        self._memory = host.Memory(0)

    def of(self, plan: ProgramPlan) -> dict[str, host.Memory]:
        """For a program that is to be made."""
        size = plan.sizes[ARENA] + SLACK
        if self._memory.size < size:
            self._memory = host.Memory(size + size // 4 if self._memory.size else size)
        return {ARENA: self._memory}

    def give(self, program: Program) -> None:
        """Let a program have what has grown since it was made."""
        if program.memory[ARENA] is not self._memory:
            program.bind(ARENA, self._memory)


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
        self.failures: dict[str, None] = {}
        self._known: WeakKeyDictionary[Dependencies, dict[str, Known]] = WeakKeyDictionary()
        self._calls: Calls | None = None
        self._parts: WeakKeyDictionary[Any, Parts] = WeakKeyDictionary()
        self._drafts: WeakKeyDictionary[Partition, Draft] = WeakKeyDictionary()

    def __repr__(self) -> str:
        """``<JitDelegate "jit" for avx2, 2 threads>``."""
        threads = f"{self.num_threads} thread{'s' * (self.num_threads != 1)}"
        return f'<{type(self).__name__} "{self.name}" for {self.target.name}, {threads}>'

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        """See `Delegate.is_node_supported`."""
        if self.disability is not None:
            self.failures[self.disability] = None
            return self.disability
        fingerprint = node.fingerprint
        known = self.known(node)
        if node.node_index not in known.refusals or fingerprint is None:
            from gossamer.delegates.jit.lowered import Calls
            from gossamer.delegates.jit.parts import Parts

            node.propagate_shapes()
            self._calls = self._calls or Calls()
            known.refusals[node.node_index] = self._parts.setdefault(node.graph, Parts(self._calls)).refusal(node)
        elif self._parts:
            self._parts.pop(node.graph, None)  # of other shapes
        return known.refusals[node.node_index] or True

    @cached_property
    def disability(self) -> str | None:
        """Why it claims nothing here, if so. That is not known for good: a compiler may come."""
        return why_nothing_runs(self.target)

    def review(self, partition: Partition) -> Mapping[int, str]:
        """See `Delegate.review`: without a compiler, nodes whose kernels are in no archive are left out.

        That is not known for good, either. What can be made is kept, though: not every subgraph is run by everybody.
        """
        if self.plan(partition) is not None or can_compile(self.target):
            return {}
        from gossamer.delegates.jit.compiling import in_library, made_of, unavailable
        from gossamer.delegates.jit.parts import Draft, Parts

        draft = self._draft(partition) or Draft(key_for_shapes(partition))
        try:
            partition.propagate_shapes()
            made = made_of(draft.graph(partition), partition.source, self.target, in_library(self.target))
        except CompileError:
            pass
        except Exception:  # which is told when the program is made
            if is_strict():
                raise
            return {}
        else:
            shapes = draft.shapes or shapes_out_of(partition)
            if shapes is None or self.keep(partition, *made, shapes) is None:
                self._drafts[partition] = Draft(draft.key, shapes, made=made)
            return {}
        parts = self._parts.get(partition.graph) or Parts()
        lacking = {node.node_index: unavailable(parts.alone(node), self.target) for node in partition.nodes}
        reasons = {number: reason for number, reason in lacking.items() if reason is not None}
        self.failures.update(dict.fromkeys(reasons.values()))
        return reasons

    def _draft(self, partition: Partition) -> Draft | None:
        if partition.graph not in self._parts:
            return None
        return self._parts[partition.graph].draft(partition, key_for_shapes(partition))

    def plan(self, partition: Partition, *, in_file: bool = True) -> dict[str, Any] | None:
        """What is known of a partition with these shapes, if its kernels are at hand; see `JitKernel.prepare`.

        ``in_file``: what a process before has kept counts, too.
        """
        if partition.fingerprint is None or any(tensor.is_dynamic for tensor in partition.fed):
            return None  # such a tensor is written by another delegate, and not always with the same shape
        plan: dict[str, Any] | None = self.known(partition).program(key_of(partition), in_file)
        if plan is None or kernel_library(self.target).missing((*plan["plan"][0], walker_name(self.target))):
            return None
        return plan

    def keep(
        self,
        partition: Partition,
        emitted: Emitted,
        boundaries: Sequence[Boundary],
        shapes: Sequence[Shape],
        *,
        in_file: bool = True,
    ) -> tuple[Known, Any] | None:
        """Keep what became of a partition, with the shapes of its outputs: for this process, and for the next ones if
        the file can be told from others. Where it is kept; ``None`` if it would not be made again: with outputs that
        are constants, or what operators keep themselves."""
        if any(one.state is not None for one in boundaries) or any(one.is_constant for one in partition.outputs):
            return None
        if partition.fingerprint is None:
            return None
        known, key = self.known(partition), key_of(partition)
        program = {
            "plan": plans.plain(emitted.plan),
            "constants": emitted.constants.tobytes(),
            "boundaries": [(*boundary[:3], boundary.resource and tuple(boundary.resource)) for boundary in boundaries],
            "shapes": list(shapes),
        }
        known.add(key, program)
        if in_file and known.savable(partition.dependencies):
            known.save()
        return known, key

    def known(self, of: NodeInfo | Partition) -> Known:
        """What is known of the graph of a node or a partition."""
        fingerprint, dependencies = of.fingerprint, of.dependencies
        if fingerprint is None or dependencies is None:
            return Known(self.target, None, None)
        graphs = self._known.setdefault(dependencies, {})
        found = graphs.get(fingerprint)
        if found is None:
            found = graphs[fingerprint] = Known(self.target, fingerprint, dependencies)
        return found

    def create_kernel(self, partition: Partition) -> DelegateKernel:
        """See `Delegate.create_kernel`."""
        draft = self._drafts.pop(partition, None) or self._draft(partition)
        if partition.graph in self._parts:
            self._parts[partition.graph].drop(partition.node_numbers)
        return JitKernel(self, draft)

    def program(self, of: Partition, plan: ProgramPlan, constants: bytes, arena: Arena) -> Program:
        """A program of a partition, with its weights packed."""
        memory = _constants.get(constants)
        if memory is None:
            memory = _constants[constants] = host.Memory(max(len(constants), 1))
            memory.view()[: len(constants)] = constants
        model = _address(of.source)
        file = (model, len(of.source or b"")) if of.dependencies is None else of.dependencies.key
        key = (file, self.target, plan.packs, plan.sizes.get(WEIGHTS))
        # Interpreters of one model share its packed weights, and so do programs for several shapes. Those that map the
        # file again look whether they would be the same: it may have been edited since.
        weights = _weights.get(key)
        is_packed = weights is not None and _address(_sources[weights]) == model
        shared = {CONSTANTS: memory, **arena.of(plan)}
        if weights is not None and is_packed:
            shared[WEIGHTS] = weights
        program = Program(plan, kernel_library(self.target), self.target, shared)
        program.bind(MODEL, model)
        if not is_packed:
            # What was packed need not stay in memory twice, if it can be read again: a file that is mapped.
            program.pack(self.num_threads, release=of.fingerprint is not None)
            packed = program.memory.get(WEIGHTS)
            if packed is not None and weights is not None and np.array_equal(packed.view(), weights.view()):
                program.bind(WEIGHTS, weights)
            elif packed is not None:
                _weights[key], _sources[packed] = packed, of.source
        program.compute(self.num_threads)
        return program

    def recall(self, identity: str) -> Mapping[str, Any]:
        """See `Delegate.recall`."""
        return disk_cache.load(user_directory(), _key(self.target, identity), disk_cache.GRAPHS)

    def remember(self, identity: str, values: Mapping[str, Any]) -> None:
        """See `Delegate.remember`."""
        disk_cache.save(user_directory(), _key(self.target, identity), dict(values), disk_cache.GRAPHS)

    def warn(self, failure: str) -> None:
        """Say, once, that the reference kernels run and why: not for every partition, nor for every interpreter."""
        if failure not in _warned:
            logger.warning("Machine code is not available, the reference kernels run instead: %s", failure)
        _warned.add(failure)


class JitKernel(DelegateKernel):
    """The program of a partition, for the shapes that it is prepared for; without one, the reference kernels. Programs
    for the shapes before are kept (`MOST_KEPT`).

    ``built`` and ``program`` are ``None`` where the reference kernels run, for the reason in ``failure``.
    """

    def __init__(self, delegate: JitDelegate, draft: Draft | None = None) -> None:
        self._delegate = delegate
        self._draft = draft
        self.program: Program | None = None
        self.failure: str | None = None
        self._built: Built | None = None
        self._partition: Partition | None = None
        self._observer: Callable[[list[CommandTime]], None] | None = None
        self._tensors: list[tuple[TensorInfo, str, int]] = []
        self._bound: list[NDArray[np.uint8] | None] = []
        self._variables = Variables()
        self._first: list[NodeInfo] = []
        self._held: States | None = None
        self._before: list[NodeInfo] = []
        """Nodes that run before the program, the first time."""
        self._prepared: dict[Any, Prepared] = {}
        self._running: Prepared | None = None
        """That of them which it is prepared for."""
        self._kept_at_most = 0
        """Bytes of these, memory that they share counted for each until there is too much."""
        self._arena = Arena()
        self._planned: deque[tuple[Known, Any]] = deque()
        self._unsaved: list[Known] = []
        self._save = finalize(self, _save_all, self._unsaved)
        """Called when nobody has the kernel any more, or the process ends."""
        self._seen: deque[Shapes] = deque(maxlen=MOST_SEEN)
        """The last shapes of which something had to be looked for."""
        self._templates: Templates | None = None
        self.is_filled = False
        """Whether the program is a template filled in, so that no node was prepared or lowered for it."""
        self._states: list[NDArray[Any]] = []
        """What operators keep from one run to the next. Each `prepare` begins with another one."""
        self._to_check: list[NodeInfo] = []
        """Nodes whose machine code is still to be compared with their functions."""
        self._lowered: Lowered | None = None
        """What these were lowered to."""
        self._pieces: Pieces | None = None
        """What runs instead of the program, if one of them differs."""

    def __repr__(self) -> str:
        """``<JitKernel of 64 nodes: 71 commands for avx2>``, or why there are none."""
        if self.program is not None:
            what = f"{len(self.program.plan.commands)} commands for {self.target.name}"
        else:
            what = f"reference kernels, {self.failure}" if self.failure else "not prepared"
        nodes = len(self._partition.node_numbers) if self._partition is not None else 0
        return f"<{type(self).__name__} of {nodes} node{'s' * (nodes != 1)}: {what}>"

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
        from gossamer.delegates.jit.compiling import built_of, made_again
        from gossamer.delegates.jit.parts import Draft

        self._partition.propagate_shapes()
        make = made_again if target == self.target else built_of
        return make(Draft().graph(self._partition), self._partition.source, target)[0]

    @property
    def is_kept(self) -> bool:
        """Whether the next process will find its plan, for the shapes that it is prepared for."""
        ctx = self._partition
        if ctx is None or not self.is_known:
            return False
        return Known(self.target, ctx.fingerprint, ctx.dependencies).program(key_of(ctx), in_file=True) is not None

    def prepare(self, ctx: PartitionPrepareContext) -> None:
        """Make the program, and pack weights. What cannot be compiled is left to the reference kernels, with a warning.

        A plan that is known from before is used as it is, if its kernels are at hand: nothing is prepared or lowered.
        """
        if ctx is not self._partition:
            self._partition = ctx
            # A node without operands runs before the program: CALL_ONCE.
            self._first = [] if ctx.graph is None else [one for one in ctx.nodes if not one.inputs and not one.outputs]
        self._clear()
        # What ships needs no check; what does not has no fingerprint.
        self._to_check = [node for node in ctx.nodes if node.op.is_checked] if ctx.fingerprint is None else []
        draft, self._draft = self._draft, None
        key = key_for_shapes(ctx)
        # Nodes are the same each time, and many.
        shapes_key = None if key is None else (key[0], key[1][1])
        prepared = self._prepared.pop(shapes_key, None)
        if prepared is not None:
            self._set_shapes(ctx, prepared.shapes)
            self._prepared[shapes_key] = prepared
            self._take(prepared)
            return
        seen = shapes_of(ctx)
        if seen is not None and seen not in self._seen:
            self._seen.append(seen)
        # Who has a template need not look whether there is a plan in a file.
        is_told = self._templates is not None and not self._to_check and self._templates.known(ctx) is not None
        known = self._delegate.plan(ctx, in_file=not is_told)
        if known is None:
            self._make(ctx, draft if draft is not None and draft.key == key is not None else None)
        else:
            self._set_shapes(ctx, known["shapes"])
            self._start(ctx, plans.plan_of(known["plan"]), known["constants"], known["boundaries"])
            self.is_known = True
        shapes = shapes_out_of(ctx)
        if key is not None and self.program is not None and shapes is not None and not self._states:
            how = self.is_known, self.is_filled
            self._running = self._prepared[shapes_key] = Prepared(
                shapes_key, self.program, self._tensors, self._bound, self._variables, shapes, how
            )
            self._kept_at_most += kept_bytes([self.program])
            while len(self._prepared) > 1 and self._kept_at_most > MOST_KEPT:
                self._kept_at_most = kept_bytes(one.program for one in self._prepared.values())
                if self._kept_at_most > MOST_KEPT:
                    del self._prepared[next(iter(self._prepared))]

    def resumption(self) -> Callable[[PartitionInvokeContext], bool] | None:
        """See `DelegateKernel.resumption`."""
        if self._running is None or self._to_check:
            return None
        key = self._running.key

        def resume(ctx: PartitionInvokeContext) -> bool:
            prepared = self._prepared.pop(key, None)
            if prepared is None:
                return False
            self._prepared[key] = prepared
            self._clear()
            self._take(prepared)
            ends = zip(prepared.tensors, prepared.bound, strict=True)
            if all(ctx.memory(tensor) is memory for (tensor, *_), memory in ends):
                self._held = prepared.held
                self.again = None if self._first or self._observer is not None else prepared.again
            return True

        return resume

    def _clear(self) -> None:
        self._built = self.program = self.failure = self.again = self._held = self._running = None
        self.is_known = self.is_filled = False
        self._states = []
        self._pieces = self._lowered = None
        self._before = self._first

    def _take(self, prepared: Prepared) -> None:
        self._arena.give(prepared.program)
        self.program, self._tensors, self._bound = prepared.program, prepared.tensors, prepared.bound
        self._variables = prepared.variables
        self.is_known, self.is_filled = prepared.how
        self._running = prepared

    def _set_shapes(self, ctx: PartitionPrepareContext, shapes: Iterable[Shape]) -> None:
        for tensor, shape in zip(ctx.outputs, shapes, strict=True):
            ctx.set_shape(tensor, shape)

    def _make(self, ctx: PartitionPrepareContext, draft: Draft | None) -> None:
        emitted: Emitted | None
        # A template states no operator of the user's: whether it does what its function does is told by each shape.
        opened = None if draft is not None or self._to_check else self._fill(ctx)
        self.is_filled = opened is not None
        if opened is not None:
            emitted, boundaries, shapes = opened
            self._set_shapes(ctx, shapes)
        else:
            emitted, boundaries = self._compile(ctx, draft)
        if emitted is None:
            return
        if self._to_check and any(one.resource is not None for one in boundaries):
            self.failure = "operators of the user's are compared with their functions beside no variables"
            return
        constants = emitted.constants.tobytes()
        self._states = [one.state for one in boundaries if one.state is not None]
        in_file = len(self._planned) < MOST_PLANS
        outputs = [one.shape for one in ctx.outputs]
        kept = self._delegate.keep(ctx, emitted, boundaries, outputs, in_file=in_file and not self.is_filled)
        if kept is not None:
            if in_file and self.is_filled and kept[0].savable(ctx.dependencies):
                self._unsaved.append(kept[0])  # what is quickly made again need not be written now
            self._planned.append(kept)
            if len(self._planned) > MOST_PLANS:
                oldest, key = self._planned.popleft()
                oldest.forget(key)
            self.is_known = True
        program = self._start(ctx, emitted.plan, constants, boundaries)
        for one in boundaries:
            if one.state is not None:
                program.bind(one.base, one.state.ctypes.data)

    def _compile(
        self, ctx: PartitionPrepareContext, draft: Draft | None
    ) -> tuple[Emitted | None, tuple[Boundary, ...]]:
        """The program of the nodes, which are prepared; ``None`` with a `failure` where the reference kernels run."""
        from gossamer.delegates.jit.compiling import compiled_of
        from gossamer.delegates.jit.lowered import Refused
        from gossamer.delegates.jit.parts import Draft, lowered_of

        made: Made | None = None
        draft = draft or Draft()
        if draft.shapes is None:
            ctx.propagate_shapes()
        try:
            if self._to_check:
                self._lowered = draft.lowered or lowered_of(ctx.nodes)
                draft = draft._replace(lowered=self._lowered)
            made = draft.made or compiled_of(draft.graph(ctx), ctx.source, self.target)
        except Refused as reason:
            logger.info("jit: partition of %d nodes runs on the reference kernels: %s", len(ctx.nodes), reason)
            self.failure = str(reason)
        except Exception as error:  # whatever it is, the reference kernels can do it
            if is_strict():
                raise
            self.failure = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
            self._delegate.failures[self.failure] = None
        if draft.shapes is None:  # which lowering may have told
            ctx.prepare_nodes()
        else:
            self._set_shapes(ctx, draft.shapes)
        return made or (None, ())

    def _fill(self, ctx: Partition) -> Opened | None:
        """What a template becomes, if there is one."""
        from gossamer.codegen.library import ensure
        from gossamer.delegates.jit.compiling import boundaries_of, emitted_of, range_of
        from gossamer.delegates.jit.template import Opened, Templates

        self._templates = self._templates or Templates(self._seen)
        found = self._templates.found(ctx, self.target)
        if found is None:
            return None
        template, sizes = found
        opened = template.opened(sizes, range_of(ctx.source))
        if opened is not None:
            if kernel_library(self.target).missing(opened.emitted.specs):
                ensure(opened.emitted.specs.values(), self.target)
            return opened
        filled = template.filled(sizes)
        built = emitted_of(filled.drawn, ctx.source, self.target) if filled is not None else None
        if filled is None or built is None:
            return None
        return Opened(built, boundaries_of(filled.drawn.graph), filled.shapes)

    def _start(self, ctx: Partition, plan: ProgramPlan, constants: bytes, boundaries: Any) -> Program:
        self.program = self._delegate.program(ctx, plan, constants, self._arena)
        tensors = {tensor.index: tensor for tensor in (*ctx.inputs, *ctx.outputs)}
        self._tensors = [(tensors[index], base, size) for index, base, size, *_ in boundaries if index in tensors]
        self._bound = [None] * len(self._tensors)
        self._variables = Variables([(base, *more[-1]) for _, base, _, *more in boundaries if more[-1]])
        return self.program

    def invoke(self, ctx: PartitionInvokeContext) -> None:
        """One native call. What is wrong with an index out of range or a divisor of 0, the reference kernels say."""
        if self._before and not self._run_before(ctx):
            return
        if self._to_check and self.program is not None:
            self._check(ctx)
        program = self.program
        if program is None:
            _run_reference(ctx)
            return
        if self._pieces is not None:
            try:
                self._pieces.run(ctx)
            except IndexFault:
                _run_reference(ctx)
            return
        moved = False
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
                moved = True
        if moved or self._held is None:
            self._held = States(program, zip([one[0] for one in self._tensors], self._bound, strict=True))
        states, variables = self._held, self._variables
        states.keep()
        if variables and not variables.bind(program, ctx.resources):
            _run_reference(ctx)
            return
        try:
            if self._observer is None:
                program.run(self._delegate.num_threads, poll=ctx.poll)
                # The first result does not wait for what makes later ones faster.
                self.again = None if moved else states.again(program.again(self._delegate.num_threads, ctx.poll))
                if variables:
                    self.again = variables.again(program, ctx.resources, self.again)
                if self._running is not None:
                    self._running.held, self._running.again = states, self.again
            else:
                self._observer(program.profile(self._delegate.num_threads, poll=ctx.poll))
        except IndexFault:
            states.restore()
            variables.restore(ctx.resources)
            _run_reference(ctx)

    def _run_before(self, ctx: PartitionInvokeContext) -> bool:
        """Run what comes before the program; whether that was not all."""
        before, self._before = self._before, []
        first = ctx.nodes.index(before[-1])
        if any(node.op.side_effects and node.inputs for node in ctx.nodes[:first]):
            _run_reference(ctx)  # in which these come first
            return False
        for node in before:
            ctx.run(node)
        return True

    @property
    def is_checked(self) -> bool:
        """Whether all operators of the user's in it do what their functions do; only a run tells."""
        return not self._to_check and self._pieces is None

    def _check(self, ctx: PartitionInvokeContext) -> None:
        """Compare operators of the user's with their functions, by this run; see `gossamer.delegates.jit.checking`."""
        from gossamer.delegates.jit.checking import Pieces, check
        from gossamer.delegates.jit.parts import lowered_of
        from gossamer.delegates.jit.verdicts import AGREES, verdict

        def made(plan: ProgramPlan, constants: bytes) -> Program:
            return self._delegate.program(ctx, plan, constants, Arena())

        ctx.propagate_shapes()
        how = self.target, made, self._delegate.num_threads
        unknown = [node for node in self._to_check if verdict(node) is None]
        try:
            if unknown:
                check(ctx, unknown, self._lowered or lowered_of(ctx.nodes), *how)
            if any(verdict(node) != AGREES for node in self._to_check):
                self._pieces = Pieces(ctx, *how)
        except CancelledError:
            raise
        except IndexFault:
            return  # which the run finds too
        except Exception as error:  # whatever it is, all of it can run in NumPy
            if is_strict() and not isinstance(error, CompileError):
                raise
            self.failure, self.program = f"{type(error).__name__}: {error}", None
            self._delegate.warn(self.failure)
        self._to_check, self._lowered = [], None

    def observe(self, observer: Callable[[list[CommandTime]], None] | None) -> None:
        """Have the commands of every run timed, and the observer told; ``None`` ends it.

        Raises `CompileError` if no archive has the walker that looks at the clock, and there is no compiler.
        """
        if observer is not None:
            from gossamer.codegen.library import ensure, walker

            ensure([walker(self.target, timed=True)], self.target)
        self._observer = observer
        self.again = None

    def free(self) -> None:
        """See `DelegateKernel.free`."""
        self.program = self._built = self._partition = self.again = self._templates = self._running = None
        self._prepared.clear()
        self._kept_at_most = 0
        self._save()


def _save_all(unsaved: Iterable[Known]) -> None:
    for known in unsaved:
        known.save()


def _address(source: memoryview | None) -> int:
    return 0 if source is None else np.frombuffer(source, np.uint8).ctypes.data


def _run_reference(ctx: PartitionInvokeContext) -> None:
    for node in ctx.nodes:
        ctx.run(node)
