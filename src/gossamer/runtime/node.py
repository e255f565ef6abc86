"""A node: an operator bound to an `OpDef` and to tensors, and the contexts through which its functions see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from itertools import count
from typing import Any, NoReturn, Protocol

import numpy as np

from gossamer.arrays import NDArray
from gossamer.delegates.delegate import CalleeInfo, Delegate, NodeInfo
from gossamer.dtypes import is_packed, type_name
from gossamer.errors import GossamerError, InvokeError, PrepareError
from gossamer.model.structure import Dependencies
from gossamer.ops.op_def import Context, InvokeContext, OpDef, PrepareContext, Resources, SubgraphCall, TensorInfo
from gossamer.planner.planner import AllocationType
from gossamer.runtime.arenas import called_subgraphs
from gossamer.runtime.cancellation import Cancellation
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import TensorType
from gossamer.sizes import Later, whole

Array = NDArray[Any]
Shape = tuple[int, ...]

TRIPPED = (ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
"""What an operator raises that trips over hostile options or values, or is short of memory: it must still say which one
it is, and where."""


MOST_FOLDED = 1024
"""Bytes of an operand of a node that is run when it is prepared."""

WHOLE = frozenset({TensorType.INT32, TensorType.INT64, TensorType.BOOL})
"""Types of numbers that stand for themselves, and are never rounded."""

_generations = count(1)


class _OpenShapes(PrepareError):
    """What an operator objects to shapes that are open."""


class Node:
    """Tensor indices of one operator (-1: optional input left out), its options, and the data its prepare made.

    ``outputs`` are the ``declared_outputs`` of the file, but -1 where nobody reads one and its prepare leaves it out.

    ``shapes`` are those of the inputs that it is prepared for, ``shapes_out`` those that it gave its outputs.
    ``generation`` changes whenever it is prepared, and is then that of no other node.
    ``delegate`` is set on a node that stands for a partition. ``objection`` is why it cannot run: see
    `Context.require_shapes`. ``evaluated``: shapes of inputs and outputs, and what runs it for these on the default
    path, ``None`` where its reference kernel does.
    """

    __slots__ = (
        "custom_options",
        "data",
        "declared_outputs",
        "delegate",
        "evaluated",
        "generation",
        "index",
        "inputs",
        "intermediates",
        "objection",
        "op",
        "options",
        "outputs",
        "shapes",
        "shapes_out",
        "temporaries",
        "version",
    )

    def __init__(
        self,
        index: int,
        op: OpDef,
        version: int,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        options: Any = None,
        custom_options: bytes = b"",
        intermediates: tuple[int, ...] = (),
    ) -> None:
        self.index = index
        self.op = op
        self.version = version
        self.inputs = inputs
        self.outputs = self.declared_outputs = outputs
        self.evaluated: tuple[Any, Callable[[InvokeContext], Any] | None] | None = None
        self.intermediates = intermediates
        self.options = options
        self.custom_options = custom_options
        self.temporaries: list[int] = []
        self.data: Any = None
        self.shapes: list[Shape | None] = []
        self.shapes_out: list[Shape] = []
        self.generation = 0
        self.delegate: Delegate | None = None
        self.objection = ""

    @property
    def has_kernel(self) -> bool:
        """Whether it can be prepared and run: a custom operator that nobody registered is left for a delegate."""
        return self.op.reference_function is not None

    @property
    def is_prepared(self) -> bool:
        """Whether it has been prepared, for whatever shapes, and had no objection; without operands there are none."""
        return not self.objection and bool(self.shapes or self.shapes_out or not (self.inputs or self.outputs))

    @property
    def in_place(self) -> int:
        """What the planner may do with this node's buffers: `gossamer.ops.op_def.InPlace`."""
        return self.op.in_place


class Call(SubgraphCall, Protocol):
    """Another subgraph as a node that calls it has it until it is done."""

    def release(self) -> None:
        """The operator that calls it is done: what it holds is void, and its variables begin anew."""


class Scope(Protocol):
    """Where a node runs: in a subgraph, or in a partition of one. ``resized``: a shape has come out of a value.

    ``is_default_path``: nodes compute what LiteRT does by default, not what their reference kernels do.
    ``is_for_sizes``: nodes are prepared for the sizes that there are, and others if these change.
    """

    resized: bool
    is_default_path: bool
    is_for_sizes: bool
    cancellation: Cancellation
    dependencies: Dependencies | None

    @property
    def graph(self) -> object:
        """The graph that the nodes are of."""

    @property
    def fingerprint(self) -> str | None:
        """See `Graph.fingerprint`."""

    def propagate_shapes(self) -> object:
        """Prepare all nodes as far as their shapes are known. Raises `PrepareError`."""

    @property
    def tensors(self) -> Sequence[Tensor] | Mapping[int, Tensor]:
        """The tensors by index; at least those of the nodes that run here."""

    @property
    def resources(self) -> Resources: ...

    def is_read(self, index: int) -> bool:
        """Whether a node reads a tensor that is written here, or somebody else may."""

    def is_settled(self, index: int, node: Node) -> bool:
        """Whether a tensor that a node writes has its type from elsewhere: it comes in, stays, or an operator before
        has it too."""

    def callee(self, index: int) -> Call:
        """Another subgraph. Raises `PrepareError` for an index that does not exist."""

    def inlined(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        """Another subgraph as a part of this one. Raises `PrepareError`."""

    def settle(self, node: Node, index: int, shape: Shape) -> None:
        """A tensor that a node writes has this shape, which was left to its value: see `NodeInfo.settle`."""

    def begin_temporaries(self, node: Node) -> None:
        """A node is prepared anew: its scratch requests are void."""

    def add_temporary(self, node: Node, tensor_type: TensorType, shape: Shape, home: AllocationType) -> None:
        """A node asks for scratch memory. Raises `ValueError` for a shape that cannot be."""


class _NodeContext(Context):
    """What all contexts of a node share: the tensors behind its operands."""

    def __init__(self, scope: Scope, node: Node) -> None:
        tensors = scope.tensors
        inputs = tuple([tensors[i] if i >= 0 else None for i in node.inputs])
        # An output that nobody reads may be left out too; its tensor is a stand-in that nothing refers to.
        outputs = tuple([tensors[i] if i >= 0 else _nowhere() for i in node.outputs])
        self.node = node
        self.owner = scope
        self.tensors_in: tuple[Tensor | None, ...] = inputs
        self.tensors_out: tuple[Tensor, ...] = outputs
        super().__init__(
            node.op,
            node.version,
            node.index,
            node.options,
            node.custom_options,
            inputs,
            outputs,
            tuple([tensors[i] for i in node.intermediates if i >= 0]),
        )

    def subgraph(self, index: int) -> Call:
        try:
            return self.owner.callee(index)
        except PrepareError as error:
            self.fail(str(error))

    def constant(self, position: int) -> Array | None:
        tensor = self.tensors_in[position] if position < len(self.tensors_in) else None
        if tensor is None:
            return None
        if not tensor.is_constant:
            tensor.miss()
            return None
        if self.owner.dependencies is not None:
            self.owner.dependencies.add(tensor.buffer)
        return tensor.array()

    @property
    def resources(self) -> Resources:
        return self.owner.resources


def _nowhere() -> Tensor:
    return Tensor(-1, TensorType.FLOAT32, (0,), AllocationType.MEM_NONE)


class NodeView(_NodeContext, NodeInfo):
    """A node as delegates see it."""

    _written: tuple[int, ...] = ()

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """Those of the node as it is prepared now, which may leave some out."""
        if self._written is not self.node.outputs:
            self._written, tensors = self.node.outputs, self.owner.tensors
            self.tensors_out = tuple([tensors[i] if i >= 0 else _nowhere() for i in self._written])
        return self.tensors_out

    @outputs.setter
    def outputs(self, outputs: Sequence[TensorInfo]) -> None:
        self._written = self.node.outputs

    @property
    def data(self) -> Any:
        return self.node.data

    @property
    def is_prepared(self) -> bool:
        return self.node.is_prepared

    @property
    def graph(self) -> object:
        return self.owner.graph

    @property
    def fingerprint(self) -> str | None:
        return self.owner.fingerprint

    @property
    def dependencies(self) -> Dependencies | None:
        return self.owner.dependencies

    def stored(self, position: int) -> tuple[Array, Callable[[], object]] | None:
        tensor = self.tensors_in[position]
        if tensor is None or not tensor.is_stored:
            return None
        memory = (
            tensor.buffer[: tensor.bytes] if is_packed(tensor.type) and tensor.buffer is not None else tensor.array()
        )
        return memory, partial(self.constant, position)

    def computed(self, position: int) -> Array | Later | None:
        tensor = self.tensors_in[position]
        if tensor is not None and tensor.later is not None:
            return tensor.later
        if tensor is None or tensor.is_supposed or not tensor.is_constant:
            return None  # without a word that it is missed: it is read where it lies
        return self.constant(position)

    def propagate_shapes(self) -> None:
        self.owner.propagate_shapes()

    def callee(self, index: int, shapes: Sequence[Shape]) -> CalleeInfo:
        return self.owner.inlined(index, shapes)

    def settle(self, position: int, shape: Shape) -> None:
        self.owner.settle(self.node, self.outputs[position].index, shape)


class NodePrepareContext(_NodeContext, PrepareContext):
    """The prepare phase: writes shapes and storage classes of the outputs into the scope's tensors."""

    def __init__(self, scope: Scope, node: Node) -> None:
        super().__init__(scope, node)
        self.previous = node.data

    def require_shapes(self, condition: object, message: str) -> None:
        try:
            self.require(condition, message)
        except PrepareError as error:
            if any(tensor is not None and tensor.is_open for tensor in self.tensors_in):
                raise _OpenShapes(str(error)) from None
            raise

    def is_left_open(self, position: int) -> bool:
        return not self.owner.is_for_sizes and super().is_left_open(position)

    def set_type(self, position: int, type: TensorType) -> None:
        tensor = self.tensors_out[position]
        if tensor.type != type and self.owner.is_settled(tensor.index, self.node):
            self.fail(
                f"output {position} must be {type_name(type)}, got {type_name(tensor.type)}, as which it is used by "
                "others"
            )
        tensor.retype(type)

    def set_shape(self, position: int, shape: Sequence[int]) -> None:
        tensor = self.tensors_out[position]
        try:
            tensor.resize(tuple([whole(size) for size in shape]))
            if tensor.is_dynamic and not tensor.has_objects:
                tensor.own_memory()
        except (ValueError, MemoryError) as error:
            self.fail(f"output {position}: {error}")

    def set_dynamic(self, position: int) -> None:
        tensor = self.tensors_out[position]
        if tensor.allocation_type != AllocationType.DYNAMIC:
            tensor.allocation_type = AllocationType.DYNAMIC
            tensor.buffer = tensor.objects = None

    def postpone_shape(self, position: int, operand: int) -> None:
        tensor, source = self.tensors_out[position], self.tensors_in[operand]
        if tensor.allocation_type != AllocationType.ARENA_RW or source is None:
            self.set_dynamic(position)
        else:
            tensor.postpone(source.bytes)

    def set_constant(self, position: int, value: Array) -> None:
        tensor = self.tensors_out[position]
        if value.dtype == object and not tensor.has_objects:  # sizes that are open, and do not wrap
            limits = np.iinfo(tensor.dtype)
            self.require(all(limits.min <= size <= limits.max for size in value.flat), "sizes are too large")
        tensor.allocation_type = AllocationType.PERSISTENT_RO
        tensor.resize(value.shape)
        if tensor.buffer is None:
            tensor.own_memory()
        tensor.assign(value)

    def set_persistent(self, position: int) -> None:
        tensor = self.tensors_out[position]
        tensor.allocation_type = AllocationType.ARENA_RW_PERSISTENT

    def drop_unread(self, position: int) -> bool:
        tensor = self.tensors_out[position]
        if tensor.index >= 0:
            if self.owner.is_read(tensor.index):
                return False
            tensor.forget()
            self.tensors_out = _without(self.tensors_out, position, _nowhere())
            self.outputs = self.tensors_out
            self.node.outputs = _without(self.node.outputs, position, -1)
        return True

    def temporary(self, tensor_type: TensorType, shape: Sequence[int], *, persistent: bool = False) -> None:
        home = AllocationType.ARENA_RW_PERSISTENT if persistent else AllocationType.ARENA_RW
        try:
            self.owner.add_temporary(self.node, tensor_type, tuple([whole(size) for size in shape]), home)
        except ValueError as error:
            self.fail(f"scratch memory: {error}")


def _without(items: tuple[Any, ...], position: int, instead: object) -> tuple[Any, ...]:
    return (*items[:position], instead, *items[position + 1 :])


class NodeInvokeContext(_NodeContext, InvokeContext):
    """The invoke phase: arrays over the tensors' memory. Valid as long as the node has this ``generation``."""

    def __init__(self, scope: Scope, node: Node) -> None:
        super().__init__(scope, node)
        self.data = node.data
        self.generation = node.generation
        self._callees: dict[int, Call] = {}
        self.fed = [(at, t) for at, t in enumerate(self.tensors_in) if t is not None and not t.is_stored]
        # Others are written once, computed by prepare, or left out.
        self._written = [
            (at, t, t.is_dynamic) for at, t in enumerate(self.tensors_out) if t.index >= 0 and not t.is_constant
        ]
        for position, (tensor, prepared) in enumerate(zip(self.tensors_in, node.shapes, strict=True)):
            if tensor is not None and tensor.shape != prepared:
                self._fail_by_shape(f"input {position}", tensor, prepared)
        for position, (tensor, prepared) in enumerate(zip(self.tensors_out, node.shapes_out, strict=True)):
            if tensor.shape != prepared and tensor.index >= 0 and not tensor.is_dynamic:
                self._fail_by_shape(f"output {position}", tensor, prepared)

    def _fail_by_shape(self, operand: str, tensor: Tensor, prepared: Shape | None) -> NoReturn:
        self.fail(
            f"{operand} has shape {list(tensor.shape)}, it had {list(prepared or ())} when this operator was prepared: "
            "an operator that comes later writes it"
        )

    def value(self, position: int) -> Array:
        tensor = self.tensors_in[position] if position < len(self.tensors_in) else None
        if tensor is None:
            self.fail(f"input {position} is missing")
        if tensor.cached is not None:
            return tensor.cached
        try:
            return tensor.array()
        except ValueError as error:
            self.fail(str(error))

    def out(self, position: int) -> Array | None:
        tensor = self.tensors_out[position]
        if tensor.buffer is None or tensor.is_dynamic or tensor.is_constant or is_packed(tensor.type):
            return None
        return tensor.array()

    def subgraph(self, index: int) -> Call:
        callee = self._callees.get(index)
        if callee is None:
            callee = self._callees[index] = super().subgraph(index)
        return callee

    def poll(self) -> None:
        cancellation = self.owner.cancellation
        if cancellation.pending:
            cancellation.poll(f"in {self.op.name} (node {self.node_index})")

    @cached_property
    def kernel(self) -> Callable[[InvokeContext], Any] | None:
        """What runs the node: its reference kernel; on the default path what it lowers to, if it does."""
        if not self.owner.is_default_path or self.op.lower_function is None or self.op.is_checked:
            return self.op.reference_function
        node = self.node
        key = node.shapes, node.shapes_out
        if node.evaluated is None or node.evaluated[0] != key:
            # Found by name, and only where there is no machine code: the runtime knows no delegate.
            made, lasts = import_module("gossamer.delegates.jit.evaluation").kernel_of(NodeView(self.owner, node))
            node.evaluated = (key, made) if lasts else None  # behind a computed shape it is prepared in every run
            return made or self.op.reference_function
        return node.evaluated[1] or self.op.reference_function

    def results(self) -> Sequence[Array | None]:
        """Call the kernel: what it returns for each output. Whoever calls this has told NumPy to be silent."""
        kernel = self.kernel
        if kernel is None:
            self.fail("has no kernel")
        if self.node.objection:
            raise InvokeError(self.node.objection)
        try:
            results = kernel(self)
        except GossamerError:
            raise
        except TRIPPED as error:
            self.fail(f"{type(error).__name__}: {error}")
        finally:
            for callee in self._callees.values():
                callee.release()
        if not isinstance(results, (tuple, list)):  # tuple | list would be made anew each time
            results = (results,)
        if len(results) != len(self.tensors_out):
            self.fail(f"kernel returned {len(results)} arrays for {len(self.tensors_out)} outputs")
        return results  # type: ignore[no-any-return]  # the operator's word

    def run(self) -> None:
        """Call the kernel and store what it returns, as `results` does."""
        results = self.results()
        for position, tensor, is_dynamic in self._written:
            value = results[position]
            if value is None:
                continue
            if value is tensor.cached and not is_dynamic:
                tensor.data_is_stale = False
                continue  # written where it is wanted
            shape, buffer = tensor.shape, tensor.buffer
            try:
                tensor.store(value)
            except (ValueError, MemoryError) as error:
                self.fail(f"output {position} {error}")
            if is_dynamic and (tensor.shape != shape or tensor.buffer is not buffer):
                self.owner.resized = True

    again = run
    """Once more, where nothing has been prepared since and no input is in a buffer of a delegate."""


def prepare_node(scope: Scope, node: Node) -> None:
    """Check the operands and run the operator's prepare. Raises `PrepareError`."""
    node.generation = next(_generations)
    node.outputs = node.declared_outputs
    node.objection = ""
    node.shapes, node.shapes_out = [], []
    ctx = NodePrepareContext(scope, node)
    shapes = [tensor.shape if tensor is not None else None for tensor in ctx.tensors_in]
    try:
        node.op.check_operands(ctx)
        for position, tensor in enumerate(ctx.tensors_out):
            if tensor.home == AllocationType.MMAP_RO:
                ctx.fail(f"output {position} is a constant of the file and cannot be written")
            if tensor.allocation_type != tensor.home or tensor.postponed:
                tensor.allocation_type, tensor.postponed = tensor.home, False
                tensor.buffer = tensor.objects = tensor.cached = None
        scope.begin_temporaries(node)
        if node.op.prepare_function is not None:
            with np.errstate(all="ignore"):
                node.data = node.op.prepare_function(ctx)
        node.op.check_output_types(ctx)
    except _OpenShapes as error:
        node.data, node.objection = None, str(error)
        for position in range(len(ctx.tensors_out)):
            ctx.set_dynamic(position)
    except PrepareError:
        raise
    except TRIPPED as error:
        ctx.fail(f"{type(error).__name__}: {error}")
    node.shapes = shapes
    node.shapes_out = [tensor.shape for tensor in ctx.tensors_out]
    if scope.is_default_path and not node.objection:
        _fold(scope, node, ctx)


def has_sizes(tensor: Tensor) -> bool:
    """Whether elements of a constant may be sizes that are open (`gossamer.sizes`)."""
    return tensor.cached is not None and tensor.cached.dtype == object and not tensor.has_objects


def _fold(scope: Scope, node: Node, ctx: NodePrepareContext) -> None:
    """Run a node now whose operands are all known, if they are small: sizes that are worked out from shapes are known
    before anything runs, and so are the shapes that they decide. An operand without elements is known, too."""
    inputs = [tensor for tensor in ctx.tensors_in if tensor is not None]
    if not inputs or not all(_is_known(tensor) and tensor.bytes <= MOST_FOLDED for tensor in inputs):
        return
    if any(tensor.is_supposed for tensor in inputs):
        return  # it is the same for this value alone
    outputs = ctx.tensors_out
    if any(tensor.home != AllocationType.ARENA_RW or tensor.bytes > MOST_FOLDED for tensor in outputs):
        return
    is_whole = all(tensor.type in WHOLE for tensor in (*inputs, *outputs))
    if not is_whole and any(map(has_sizes, inputs)):
        return  # which are no real numbers
    op = node.op
    if op.side_effects or op.custom or node.delegate is not None or list(called_subgraphs(node.options)):
        return
    if all(tensor.is_constant for tensor in outputs):
        return  # prepare has done it
    for position, tensor in enumerate(ctx.tensors_in):
        if tensor is not None and tensor.is_stored:
            ctx.constant(position)  # which notes that it has been looked at
    try:
        run = NodeInvokeContext(scope, node)
        if is_whole:
            run.kernel = op.reference_function  # which computes the same, and need not be lowered
        with np.errstate(all="ignore"):
            results = run.results()
    except GossamerError:
        return  # which is said when it runs
    for position, value in enumerate(results):
        array = None if value is None else np.asarray(value)  # NumPy makes numbers of scalars that are objects
        if array is not None and array.nbytes <= MOST_FOLDED:
            ctx.set_constant(position, array)
    node.shapes_out = [tensor.shape for tensor in outputs]


def _is_known(tensor: Tensor) -> bool:
    return tensor.is_constant or (0 in tensor.shape and not tensor.is_dynamic and not tensor.is_variable)


def prepared(scope: Scope, nodes: Iterable[Node]) -> Iterator[Node]:
    """Prepare nodes in their order, each as it is asked for; the last is the first that leaves the shape of an output
    to its value. Raises `PrepareError`."""
    for node in nodes:
        prepare_node(scope, node)
        yield node
        if any(index >= 0 and scope.tensors[index].is_dynamic for index in node.outputs):
            return
