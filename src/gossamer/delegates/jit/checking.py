"""Custom operators as machine code are compared with their functions when a program runs for the first time.

A traced function is what it says of itself when it is prepared, and it could have said otherwise. So the first run of a
program also runs one that keeps what goes into such operators and what comes out, and calls the functions with the
same: integers and booleans must be equal, floats as `tolerance` says. An operator that differs is told of, once, and
runs in NumPy from then on; what is before and behind it stays machine code, in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from gossamer.delegates.delegate import NodeInfo, PartitionInvokeContext
from gossamer.delegates.jit.compiling import compiled_of
from gossamer.delegates.jit.lowered import Lowered
from gossamer.delegates.jit.parts import lowered_of
from gossamer.delegates.jit.verdicts import AGREES, settle, verdict
from gossamer.dtypes import numpy_dtype
from gossamer.errors import InvokeError
from gossamer.log import logger
from gossamer.ops.op_def import Array, InvokeContext, Resources, SubgraphCall, TensorInfo
from gossamer.programs.program import Program, ProgramPlan
from gossamer.targets import Target

UNITS = 128
"""How far floats may be apart: so many units in the last place of themselves and of the greatest one beside them. The
functions of machine code are within 5, and sums are added in another order."""

Make = Callable[[ProgramPlan, bytes], Program]


def tolerance(expected: Array) -> Array:
    """How far floats may be from these, element by element."""
    size = np.nan_to_num(np.abs(expected.astype(np.float64)), posinf=0)
    eps = float(np.finfo(expected.dtype).eps)
    units = 2 if expected.dtype.itemsize == 2 else UNITS
    return np.asarray(units * eps * (size + np.max(size, initial=0)) + float(np.finfo(expected.dtype).tiny))


def difference(got: Array, expected: Array) -> str:
    """How two results differ that should be alike; ``""`` if they do not."""
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return f"{expected.dtype.name} {list(expected.shape)} is {got.dtype.name} {list(got.shape)}"
    if expected.dtype.kind != "f":
        wrong = got != expected
        apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    else:
        with np.errstate(all="ignore"):
            apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
            alike = (got == expected) | (np.isnan(got) & np.isnan(expected))
            wrong = ~alike & ~(apart <= tolerance(expected))
    if not wrong.any():
        return ""
    apart = np.asarray(np.where(wrong, np.where(np.isnan(apart), np.inf, apart), -1))
    at = np.unravel_index(int(np.argmax(apart)), apart.shape)
    place = f" at {[int(one) for one in at]}" if at else ""
    return f"by up to {float(apart[at]):.6g}: {got[at]} instead of {expected[at]}{place}"


class Piece:
    """Some nodes of a partition, which are ``lowered``, as a program whose results are arrays of its own. Raises
    `CompileError`."""

    def __init__(
        self,
        ctx: PartitionInvokeContext,
        nodes: Sequence[NodeInfo],
        lowered: Lowered,
        outputs: Sequence[TensorInfo],
        target: Target,
        make: Make,
    ) -> None:
        built, boundaries = compiled_of(lowered.finish(outputs), ctx.source, target)
        self._program = make(built.plan, built.constants.tobytes())
        self._outputs = outputs
        self._boundaries = boundaries
        self._tensors = {t.index: t for node in nodes for t in (*node.inputs, *node.outputs) if t is not None}

    def run(self, ctx: PartitionInvokeContext, num_threads: int, *, alone: bool = False) -> dict[int, Array]:
        """The results by tensor. ``alone``: what it changes beside them stays as it was."""
        results = {tensor.index: np.empty(tensor.shape, numpy_dtype(tensor.type)) for tensor in self._outputs}
        held = []
        for number, base, _, state, _ in self._boundaries:
            array = results.get(number)
            if array is None:
                array = state if state is not None else np.ascontiguousarray(ctx.value(self._tensors[number]))
                array = array.copy() if alone else array
            self._program.bind(base, array.ctypes.data)
            held.append(array)
        self._program.run(num_threads, poll=ctx.poll)
        return results


class _Given(InvokeContext):
    """A node as its reference kernel sees it, with values that are given."""

    def __init__(self, node: NodeInfo, values: Mapping[int, Array]) -> None:
        super().__init__(
            node.op, node.version, node.node_index, node.options, node.custom_options, node.inputs, node.outputs
        )
        self.data = node.data
        self._values = values

    def value(self, position: int) -> Array:
        return self._values[position]

    def subgraph(self, index: int) -> SubgraphCall:
        self.fail("a custom operator calls no subgraph")

    @property
    def resources(self) -> Resources:
        self.fail("a custom operator has no resources")


def check(
    ctx: PartitionInvokeContext,
    nodes: Sequence[NodeInfo],
    lowered: Lowered,
    target: Target,
    make: Make,
    num_threads: int,
) -> None:
    """Settle the verdict on nodes of a partition, all of which are in ``lowered``, by its inputs of now; those that
    differ are told of. Raises what making and running a program does."""
    written = {tensor.index for node in ctx.nodes for tensor in node.outputs}
    watched = {
        tensor.index: tensor
        for node in nodes
        for tensor in (*node.inputs, *node.outputs)
        if tensor is not None and tensor.index in written and not tensor.is_constant
    }
    piece = Piece(ctx, ctx.nodes, lowered, list(watched.values()), target, make)
    results = piece.run(ctx, num_threads, alone=True)
    for node in nodes:
        if verdict(node) is None:
            found = _difference(ctx, node, results)
            settle(node, f"its machine code differs from the function {found}" if found else AGREES)
            if found:
                logger.warning(
                    "%s (node %d): machine code differs from the function %s. It runs in NumPy from now on; "
                    "custom_op(..., trace=False) says so from the beginning",
                    node.op.name,
                    node.node_index,
                    found,
                )


def _difference(ctx: PartitionInvokeContext, node: NodeInfo, results: Mapping[int, Array]) -> str:
    values: dict[int, Array] = {}
    for position, tensor in enumerate(node.inputs):
        if tensor is not None:
            known = node.constant(position)
            value = results.get(tensor.index) if known is None else known
            values[position] = ctx.value(tensor) if value is None else value
    given, reference = _Given(node, values), node.op.reference_function
    try:
        with np.errstate(all="ignore"):
            expected = () if reference is None else reference(given)
    except InvokeError as error:
        return f"where that raises {str(error).splitlines()[0]}"
    if len(expected) != len(node.outputs):
        return f"which returns {len(expected)} arrays"
    for tensor, one in zip(node.outputs, expected, strict=True):
        if tensor.index >= 0 and one is not None:
            found = difference(results[tensor.index], np.asarray(one))
            if found:
                return found
    return ""


class Pieces:
    """A partition in which some nodes run in NumPy. Raises `CompileError` where there are no kernels for the others."""

    def __init__(self, ctx: PartitionInvokeContext, target: Target, make: Make, num_threads: int) -> None:
        self._num_threads = num_threads
        self._pieces: list[tuple[Piece | None, Sequence[NodeInfo]]] = []
        wanted = {tensor.index for tensor in ctx.outputs}
        stretches = list(_stretches(ctx.nodes))
        for number, (is_apart, nodes) in enumerate(stretches):
            if is_apart:
                self._pieces.append((None, nodes))
                continue
            later = (node for _, following in stretches[number + 1 :] for node in following)
            read = wanted | {tensor.index for node in later for tensor in node.inputs if tensor is not None}
            written = {tensor.index: tensor for node in nodes for tensor in node.outputs}
            outputs = [tensor for index, tensor in written.items() if index in read and not tensor.is_constant]
            self._pieces.append((Piece(ctx, nodes, lowered_of(nodes), outputs, target, make), nodes))

    def run(self, ctx: PartitionInvokeContext) -> None:
        """All of them. Raises `IndexFault`."""
        tensors = {tensor.index: tensor for node in ctx.nodes for tensor in node.outputs}
        for piece, nodes in self._pieces:
            if piece is None:
                for node in nodes:
                    ctx.run(node)
                continue
            for index, value in piece.run(ctx, self._num_threads).items():
                ctx.set_value(tensors[index], value)


def _stretches(nodes: Sequence[NodeInfo]) -> Iterator[tuple[bool, list[NodeInfo]]]:
    """Nodes in their order, and whether they differ from their functions."""
    found: list[tuple[bool, list[NodeInfo]]] = []
    for node in nodes:
        is_apart = node.op.is_checked and verdict(node) != AGREES
        if not found or found[-1][0] != is_apart:
            found.append((is_apart, []))
        found[-1][1].append(node)
    return iter(found)
