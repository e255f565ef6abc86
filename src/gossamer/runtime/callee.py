"""A subgraph as the operator that calls it sees it: where its inputs are read and its outputs written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import is_packed
from gossamer.errors import InvokeError, PrepareError
from gossamer.planner.planner import AllocationType
from gossamer.runtime.graph import RunningGraph
from gossamer.runtime.tensor import Tensor
from gossamer.schema.enums import BuiltinOperator

Array = NDArray[Any]
Shape = tuple[int, ...]

SMALL = 1 << 14
"""Bytes up to which a value is copied to where programs have been told that it lies, which takes longer."""

_SINGLE = ((), (1,))
"""Shapes between which TFLite's control flow makes no difference."""


class Callee:
    """See `gossamer.ops.op_def.SubgraphCall`.

    Inputs lie where the caller's values lie, and outputs where it wants them, as TFLite has it (kTfLiteCustom), unless
    users may run the subgraph themselves: then it keeps its own. Nor do those lie elsewhere that are small or no plain
    numbers, are variables or constants, or have no shape yet; these are copied.
    """

    def __init__(self, subgraph: RunningGraph) -> None:
        self._subgraph = subgraph
        self.inputs = [subgraph.tensors[i] for i in subgraph.inputs if i >= 0]
        self.outputs = [subgraph.tensors[i] for i in subgraph.outputs if i >= 0]
        written = {index for node in subgraph.nodes for index in node.outputs}
        self._lendable = [
            tensor.home == AllocationType.ARENA_RW and tensor.index not in written and not subgraph.is_entry
            for tensor in self.inputs
        ]
        positions = {tensor.index: at for at, tensor in enumerate(self.inputs) if tensor.index not in written}
        self._feeds = [
            (tensor, tensor.has_objects, lendable and not is_packed(tensor.type))
            for tensor, lendable in zip(self.inputs, self._lendable, strict=True)
        ]
        self.handed_on = [positions.get(tensor.index) for tensor in self.outputs]
        self._generation = -1
        self._movable: list[bool] = []

    @property
    def operators(self) -> list[BuiltinOperator]:
        """The codes of its operators in order."""
        return [self._subgraph.nodes[index].op.code for index in self._subgraph.original_plan]

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether a shape in it, as it is allocated, depends on values."""
        return self._subgraph.has_dynamic_tensors

    def allocate(self, shapes: Sequence[Shape], *, own_inputs: bool = False) -> None:
        """Resize the inputs where they differ, prepare and plan. Raises `PrepareError`."""
        subgraph = self._subgraph
        if len(shapes) != len(self.inputs):
            raise PrepareError(
                f'subgraph {subgraph.index} "{subgraph.name}" has {len(self.inputs)} inputs, '
                f"its caller gives {len(shapes)}"
            )
        for tensor, lendable in zip(self.inputs, self._lendable, strict=True):
            if tensor.is_stored:
                raise PrepareError(
                    f'subgraph {subgraph.index} input {tensor.index} "{tensor.name}" is a constant of the file '
                    "and cannot be written"
                )
            if lendable:
                subgraph.set_planned(tensor, own_inputs and subgraph.is_read(tensor.index))
        self._resize(shapes)

    def _resize(self, shapes: Sequence[Shape]) -> None:
        fits = self._subgraph.is_invokable
        for tensor, shape in zip(self.inputs, shapes, strict=True):
            if tensor.shape != shape:
                self._subgraph.resize_input(tensor.index, tuple(shape))
                fits = False
        if not fits:  # the call before may have been of these shapes, though they are left to values
            self._subgraph.allocate_tensors()

    def room(self, position: int, number: int) -> Array:
        """Memory for an output of fixed shape, apart from its place in the arena."""
        return self._subgraph.room(self.outputs[position], number)

    def call(self, values: Sequence[Array], out: Sequence[Array | None] = ()) -> list[Array]:
        """Run on these inputs; the outputs. Raises `PrepareError` and `InvokeError`."""
        subgraph = self._subgraph
        shapes = [tensor.shape for tensor in self.inputs]
        values_in = values
        if not subgraph.is_invokable or [value.shape for value in values] != shapes:
            values_in = [
                value.reshape(shape) if value.shape in _SINGLE and shape in _SINGLE else value
                for shape, value in zip(shapes, values, strict=True)
            ]
            self._resize([value.shape for value in values_in])
        for (tensor, has_objects, lendable), value in zip(self._feeds, values_in, strict=True):
            place = tensor.cached
            if place is value:
                continue
            if has_objects and value.shape == tensor.shape:
                tensor.objects, tensor.data_is_stale = value, False  # which nobody writes to
            elif lendable and tensor.bytes > SMALL:
                self._lend(tensor, value)
            elif place is not None and value.dtype is place.dtype and value.shape == place.shape:  # most of the time
                place[...] = value
                tensor.data_is_stale = False
            else:
                self._feed(tensor, value)
        results: dict[int, Array] = {}
        places = [*out, *[None] * (len(self.outputs) - len(out))]
        for tensor, place, movable in zip(self.outputs, places, self._may_move(), strict=True):
            if movable and place is not None and place.dtype == tensor.dtype and place.nbytes == tensor.bytes:
                subgraph.move(tensor, place)
                results[tensor.index] = place
            else:
                subgraph.move_back(tensor)
        subgraph.invoke(is_silent=True)
        subgraph.make_outputs_readable()
        for tensor, position in zip(self.outputs, self.handed_on, strict=True):
            if tensor.index not in results:
                array = tensor.array() if position is None else values[position]
                stays = position is not None or tensor.is_constant or tensor.has_objects
                results[tensor.index] = array if stays else array.copy()
        return [results[tensor.index] for tensor in self.outputs]

    def release(self) -> None:
        """See `gossamer.runtime.node.Call.release`."""
        if not self._subgraph.preserve_all_tensors:
            self._subgraph.is_released = True

    def _feed(self, tensor: Tensor, value: Array) -> None:
        self._check(tensor, value)
        if tensor.buffer is None and not tensor.has_objects:
            self._subgraph.lend(tensor, None)
        tensor.assign(value)

    def _lend(self, tensor: Tensor, value: Array) -> None:
        self._check(tensor, value)
        flags = value.flags
        self._subgraph.lend(tensor, value if flags.c_contiguous and flags.aligned else np.array(value))

    def _check(self, tensor: Tensor, value: Array) -> None:
        if not tensor.has_objects and value.dtype != tensor.dtype:
            raise InvokeError(
                f'subgraph {self._subgraph.index} input "{tensor.name}" is {tensor.dtype}, got {value.dtype}'
            )
        if value.shape != tensor.shape:  # it is more than one of the inputs
            raise InvokeError(
                f'subgraph {self._subgraph.index} input "{tensor.name}" must have shape {list(tensor.shape)}, which '
                f"another value for it has, got {list(value.shape)}"
            )

    def _may_move(self) -> list[bool]:
        """Which outputs may be written elsewhere than in the arena, as the subgraph is allocated now."""
        subgraph = self._subgraph
        if self._generation != subgraph.generation:
            self._generation = subgraph.generation
            fixed = not subgraph.is_entry and not subgraph.has_dynamic_tensors
            self._movable = [
                fixed
                and tensor.allocation_type == tensor.home == AllocationType.ARENA_RW
                and position is None
                and tensor.index not in subgraph.inputs
                and not is_packed(tensor.type)
                for tensor, position in zip(self.outputs, self.handed_on, strict=True)
            ]
        return self._movable
