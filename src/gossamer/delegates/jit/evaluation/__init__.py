"""The kernel graph on arrays: what machine code computes, bit for bit of integers, where there is no machine code.

An operator says once, in its ``lower``, what LiteRT's default path computes. Machine code is one reading of it, this is
another: `evaluate` walks the kernels of a graph, each a function of arrays, and what it writes are the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.elements import ELEMENT_OF, ELEMENTS
from gossamer.codegen.expression import IDENTITY, parameters_of
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.config import is_strict
from gossamer.delegates.delegate import NodeInfo
from gossamer.delegates.jit.evaluation.functions import DTYPES, apply, converted
from gossamer.delegates.jit.evaluation.kinds import KINDS, Fault
from gossamer.delegates.jit.lowered import Calls, Lowered, Refused
from gossamer.delegates.jit.lowering import lower
from gossamer.dtypes import is_packed, numpy_dtype, pack, unpack
from gossamer.log import logger
from gossamer.ops.op_def import InvokeContext, TensorInfo
from gossamer.views import Buffer, State, View

__all__ = ["Fault", "evaluate", "kernel_of"]

Array = NDArray[Any]


def kernel_of(node: NodeInfo) -> tuple[Callable[[InvokeContext], Any] | None, bool]:
    """What runs a node that is prepared as the default path does, ``None`` where its reference kernel does; and whether
    that is so whenever the node is prepared for these shapes.

    The reference kernel runs what cannot be lowered, and operators that call subgraphs, whose nodes run by themselves.
    """
    op, reference = node.op, node.op.reference_function
    # A value that some operator has worked out may be another one the next time.
    lasts = all(one is None or one.is_stored or not one.is_constant for one in node.inputs)
    if reference is None:
        return None, lasts
    lowered = Lowered(calls=Calls(most=0), is_running=True)
    try:
        lower(node, lowered)
        graph = lowered.finish(tensor for tensor in node.outputs if tensor.index >= 0)
    except Refused:
        return None, lasts
    except Exception:
        if is_strict():
            raise
        return None, lasts
    lasts &= not any(isinstance(buffer, State) for buffer in graph.inputs.values())
    inputs = [(at, tensor.index) for at, tensor in enumerate(node.inputs) if tensor is not None]
    read = [(at, index) for at, index in inputs if index in graph.inputs]

    def run(ctx: InvokeContext) -> Any:
        try:
            values = evaluate(graph, {index: _bytes_of(ctx, at) for at, index in read})
        except Fault:
            return reference(ctx)
        except Exception as error:  # whatever it is, the reference kernel can do it
            if is_strict():
                raise
            logger.warning("%s runs on its reference kernel: %s: %s", op.name, type(error).__name__, error)
            return reference(ctx)
        # Others are constants, or left out.
        return tuple([_elements_of(values[t.index], t) if t.index in values else None for t in ctx.outputs])

    return run, lasts


def _bytes_of(ctx: InvokeContext, position: int) -> Array:
    """An input as it lies in memory."""
    value, type = ctx.value(position), ctx.input(position).type
    return pack(value, type) if is_packed(type) else value


def _elements_of(value: Array, tensor: TensorInfo) -> Array:
    """The value of a tensor that lies in memory so."""
    shape = tensor.shape
    return (unpack(value, tensor.type, math.prod(shape)) if is_packed(tensor.type) else value).reshape(shape)


def evaluate(graph: KernelGraph, inputs: Mapping[int, Array]) -> dict[int, Array]:
    """The outputs of a graph by tensor, given its inputs, those of them that it updates in place.

    Passes that make other kinds of kernels must not have been over it. Raises `Fault`.
    """
    memory = _Memory()
    for index, buffer in graph.inputs.items():
        memory.put(buffer, buffer.kept if isinstance(buffer, State) else inputs[index])
    for kernel in graph.kernels:
        memory.run(kernel)
    return {index: memory.array(buffer.view()) for index, buffer in graph.outputs.items()}


class _Memory:
    """The bytes of buffers, each dense."""

    def __init__(self) -> None:
        self._bytes: dict[int, NDArray[np.uint8]] = {}

    def put(self, buffer: Buffer, value: Array) -> NDArray[np.uint8]:
        """Let a buffer be an array, which is not copied if it is dense."""
        bytes = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        self._bytes[id(buffer)] = bytes
        return bytes

    def bytes(self, buffer: Buffer) -> NDArray[np.uint8]:
        """All of a buffer: what has been written, a constant, or what is still to be written."""
        found = self._bytes.get(id(buffer))
        if found is None:
            array = buffer.array
            found = self.put(buffer, np.empty(buffer.shape, numpy_dtype(buffer.type)) if array is None else array)
        return found

    def array(self, view: View, *, repeats: bool = True) -> Array:
        """A view as an array; unless it ``repeats``, with size 1 where elements would be repeated."""
        dtype, shape = numpy_dtype(view.type), view.shape
        if not repeats and 0 in view.strides:
            shape = tuple([size if stride else 1 for size, stride in zip(shape, view.strides, strict=True)])
        strides = [dtype.itemsize * stride for stride in view.strides]
        return np.ndarray(shape, dtype, self.bytes(view.buffer), dtype.itemsize * view.offset, strides)

    def words(self, view: View) -> Array:
        """All elements of a buffer from where a view of it begins: parameters."""
        return self.bytes(view.buffer).view(numpy_dtype(view.type))[view.offset :]

    def run(self, kernel: Kernel) -> None:
        """Write the result of a kernel."""
        if kernel.regions:
            self._run_regions(kernel)
            return
        arity, y, is_map = kernel.arity, kernel.y, kernel.kind == "map"
        operands = [self.array(view, repeats=not is_map) for view in kernel.operands[:arity]]
        if kernel.kind in ("push", "put", "scatter"):
            operands.append(self.array(y))
        result = KINDS[kernel.kind](kernel, *operands)
        if kernel.also:
            result, *others = result
            for view, value in zip(kernel.also, others, strict=True):
                self.array(view)[...] = value
        if is_map or kernel.epilogue != IDENTITY:
            result = self._finished(kernel, result)
        if id(y.buffer) not in self._bytes and y.is_whole and result.shape == y.shape:
            # An array that has no base is nobody else's.
            self.put(y.buffer, np.array(result, numpy_dtype(y.type), copy=None if result.base is None else True))
        else:
            self.array(y)[...] = result

    def _finished(self, kernel: Kernel, result: Array) -> Array:
        """What the epilogue makes of a result, as elements of y."""
        parameters = parameters_of(kernel.epilogue)
        extras = [
            self.words(view) if at in parameters else _computed(self.array(view, repeats=False))
            for at, view in enumerate(kernel.extras, 1)
        ]
        value = apply(kernel.epilogue, [_computed(result), *extras])
        computed = ELEMENTS[ELEMENT_OF[kernel.y.type]].computed
        return converted(value, DTYPES[computed]).astype(numpy_dtype(kernel.y.type), copy=False)

    def _run_regions(self, kernel: Kernel) -> None:
        flag, (first, second) = kernel.operands[0], kernel.regions
        if kernel.kind == "branch":
            self._run_all(first if self.words(flag)[0] else second)
            return
        self._run_all(second)  # of a loop, the condition
        while self.words(flag)[0]:
            self._run_all(first)
            self._run_all(second)

    def _run_all(self, region: KernelGraph) -> None:
        for kernel in region.kernels:
            self.run(kernel)


def _computed(x: Array) -> Array:
    """Elements as expressions know them: float16 and bfloat16 are float32 there."""
    return x.astype(np.float32) if x.dtype.kind in "fV" and x.dtype.itemsize == 2 else x
