"""Nodes into a kernel graph: the builder that an operator's ``lower`` is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any, Literal, NoReturn

import numpy as np

from gossamer.affine import Affine, Stretch
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.expression import IDENTITY, parameters_of, type_of
from gossamer.codegen.graph import NONZERO, REDUCE, Boxes, Kernel, KernelGraph, Quantized, broadcast_shape, same
from gossamer.codegen.kernels.depthwise import MAX_KERNEL_ROWS, MULTIPLIERS
from gossamer.codegen.kinds import kind_of
from gossamer.delegates.delegate import NodeInfo
from gossamer.delegates.jit import control_flow
from gossamer.delegates.jit.lowered import RESOURCES, STATES, Lowered, Refused
from gossamer.delegates.jit.numbers import constant_of, greatest, numbers_of
from gossamer.delegates.jit.verdicts import verdict
from gossamer.dtypes import byte_size, element_bits, is_packed, numpy_dtype, pack, type_name, unpacked_type
from gossamer.errors import CompileError
from gossamer.ops import _int16
from gossamer.ops.lowering import Expression, Lowering, Reduction, is_grid
from gossamer.ops.op_def import Array, TensorInfo
from gossamer.schema.enums import TensorType
from gossamer.sizes import Later, whole
from gossamer.views import (
    POINTWISE,
    Buffer,
    FixedPoint,
    Geometry,
    Requantization,
    Shape,
    View,
    Widened,
    derived,
    worked_out,
)

ELEMENTS = frozenset(
    {
        *(TensorType.UINT8, TensorType.INT8, TensorType.BOOL, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2),
        *(TensorType.UINT16, TensorType.INT16, TensorType.FLOAT16, TensorType.BFLOAT16),
        *(TensorType.UINT32, TensorType.INT32, TensorType.FLOAT32),
        *(TensorType.UINT64, TensorType.INT64, TensorType.FLOAT64, TensorType.COMPLEX64),
    }
)
"""Types whose elements kernels can at least move: one element to one, two, four or eight bytes."""

HANDLED = ELEMENTS | {TensorType.INT4, TensorType.UINT4, TensorType.INT2}
"""With those that are unpacked to bytes."""

QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)

PADDING = 16
MOST_PADDING = 1 << 20
"""Padding is stored, and refused if it has so many times the elements of the image, and that many more."""

MOST_SUMMANDS = 256
"""Products of int16 and int8 whose sum is certainly one of int32."""

INTO = frozenset({"copy", "put", "push", "scatter"})
"""Kinds that change nothing where they are given nothing."""

MOST_GROUPS = 1024
"""Of a convolution, each of which is a command."""


def lower(node: NodeInfo, lowered: Lowered) -> None:
    """Add a node to the graph. Raises `Refused`, and leaves kernels that nobody reads."""
    if lowered.subgraph is None:
        lowered.calls.begin()
    function = node.op.lower_function
    is_computed = bool(node.outputs) and all(tensor.is_constant for tensor in node.outputs)
    if function is None and not is_computed:
        raise Refused(node.op.reference_only or f"{node.op.name} has no machine code yet")
    if node.op.is_checked and lowered.subgraph is not None:
        raise Refused("a custom operator is compared with its function, for which it must run by itself")
    outputs = [tensor for tensor in node.outputs if tensor.index >= 0]
    operands = [*(tensor for tensor in node.inputs if tensor is not None), *outputs]
    without_xnnpack = any(tensor.type == TensorType.INT16 for tensor in operands)
    for tensor in operands:
        if tensor.type == TensorType.STRING:
            raise Refused("strings live in Python")
        if tensor.type in QUANTIZED and not is_grid(tensor, with_dead_channels=without_xnnpack):
            raise Refused(f'the quantization of "{tensor.name}" is none of {type_name(tensor.type)}')
    for tensor in operands:
        is_told = tensor in node.inputs if lowered.is_running else node.op.tells_shapes
        if tensor.is_dynamic and not is_told:
            raise Refused(_unknown_shape(tensor))
    if is_computed or function is None:
        return  # prepare has done it
    differs = verdict(node) if node.op.is_checked else None
    if differs:
        raise Refused(differs)
    has_state = any(tensor is not None and tensor.is_variable for tensor in node.inputs)
    is_empty = bool(outputs) and not has_state and all(0 in one.shape and not one.is_dynamic for one in outputs)
    builder = GraphLowering(node, lowered)
    builder.is_empty = is_empty
    before = len(lowered.graph.kernels)
    try:
        with np.errstate(all="ignore"):  # of scales, as the reference kernels do
            function(builder)
        for tensor in outputs:
            if tensor.index not in lowered.values and tensor.index not in lowered.stretches:
                raise CompileError(f"{node.op.name} lowers without saying what its output {tensor.index} is")
        if is_empty:  # there is nothing to compute, but a divisor of 0 is wrong nonetheless
            kernels = [one for one in lowered.graph.kernels[before:] if all(view.size for view in one.operands)]
            if any(kind_of(kernel).checks and kernel.kind != NONZERO for kernel in kernels):
                builder.refuse(f'"{outputs[0].name}" has no elements')
            checks = KernelGraph(kernels)
            checks.remove_unread(lambda kernel: kernel.kind == NONZERO)
            lowered.graph.kernels[before:] = checks.kernels
        else:
            lowered.graph.kernels[before:] = _with_elements(lowered.graph.kernels[before:], builder)
    except BaseException as error:  # what checks would stay, though nobody reads its result
        del lowered.graph.kernels[before:]
        empty = next((tensor.name for tensor in operands if 0 in tensor.shape), None)
        if empty is None or is_empty or not isinstance(error, Exception):
            raise
        raise Refused(f'"{empty}" has no elements') from None  # which operators need not expect


def _with_elements(kernels: Sequence[Kernel], builder: GraphLowering) -> list[Kernel]:
    """Those of the kernels of a node that write something. Refuses one that makes it of nothing."""
    kept = []
    for kernel in kernels:
        lacks = not all(view.size for view in kernel.operands)
        if lacks and kernel.y.size and kernel.kind not in INTO:
            builder.refuse("an operand has no elements")
        if kernel.y.size and not lacks:
            kept.append(kernel)
        elif any(view.size for view in kernel.also):
            builder.refuse("an operand has no elements")
    return kept


def _unknown_shape(tensor: TensorInfo) -> str:
    return f'the shape of "{tensor.name}" is only known when the model runs'


class GraphLowering(Lowering):
    """See `Lowering`."""

    def __init__(self, node: NodeInfo, lowered: Lowered) -> None:
        super().__init__(
            node.op,
            node.version,
            node.node_index,
            node.options,
            node.custom_options,
            node.inputs,
            node.outputs,
            node.intermediates,
        )
        self.data = node.data
        self._node = node
        self._lowered = lowered
        self.is_empty = False
        """Whether nothing that the node writes has elements."""
        self._graph = lowered.graph
        self._origin = f"{node.op.name} {node.node_index}"
        if lowered.subgraph is not None:
            self._origin += f" of subgraph {lowered.subgraph}"

    def require_elements(self, tensor: TensorInfo) -> None:
        """Refuse a tensor without elements, unless nothing that the node writes has any."""
        if 0 in tensor.shape and not self.is_empty:
            self.refuse(f'"{tensor.name}" has no elements')

    def _nothing(self, shape: Shape, type: TensorType) -> View:
        """What has no elements: nobody computes it."""
        return self.array(np.empty(shape, numpy_dtype(type)), unpacked_type(type))

    def value(self, position: int) -> View:
        tensor = self.input(position)
        if tensor.is_dynamic and not self._lowered.is_running:
            self.refuse(_unknown_shape(tensor))
        if tensor.is_variable:
            return self.copy(self.variable(position))
        if tensor.type not in HANDLED:
            self.refuse(f"no kernels for {type_name(tensor.type)}")
        if tensor.sparsity is not None:
            self.refuse(f"input {position} is sparse")
        if 0 in tensor.shape and not self.is_empty:
            if self.op.tells_shapes:  # where it may be a part of what has elements
                self.require_elements(tensor)
            return self._nothing(tensor.shape, tensor.type)
        if is_packed(tensor.type):
            return self._unpacked(position)
        stored = self._node.stored(position)
        if stored is not None:
            return self._lowered.stored(tensor, *stored)
        return self._lowered.value(tensor, self._node.computed(position))

    def _unpacked(self, position: int) -> View:
        """An input of elements smaller than a byte, one to a byte: its tensor is known as the bytes that it has."""
        tensor = self.input(position)
        value = self._node.constant(position)
        if value is not None:
            return self.array(value, unpacked_type(tensor.type))
        return self.reshape(self.unpacked(self.packed(position), tensor.type, prod(tensor.shape)), tensor.shape)

    def packed(self, position: int) -> View:
        tensor = self.input(position)
        shape, type = (byte_size(tensor.type, prod(tensor.shape)),), TensorType.UINT8
        self.require_elements(tensor)
        stored = self._node.stored(position)
        if stored is not None:
            return self._lowered.stored(tensor, *stored, shape, type)
        value = self._node.constant(position)
        return self._lowered.input(tensor, shape, type) if value is None else self.array(pack(value, tensor.type))

    def unpacked(self, bytes: View, type: TensorType, count: int) -> View:
        of_a_byte = unpacked_type(type)
        settings = {"bits": element_bits(type), "signed": of_a_byte == TensorType.INT8}
        return self.kernel("unpackbits", bytes, shape=(count,), type=of_a_byte, **settings)

    def _packed(self, view: View, type: TensorType) -> View:
        """The bytes of a tensor of elements that are smaller, from those that have one each."""
        for kernel in self._graph.kernels:
            if kernel.kind == "unpackbits" and kernel.y.buffer is view.buffer and view.is_whole:
                return kernel.operands[0]  # where they come from
        flat, bits = self.reshape(view, (view.size,)), element_bits(type)
        return self.kernel("packbits", flat, shape=(byte_size(type, view.size),), type=TensorType.UINT8, bits=bits)

    def pairs(self, position: int) -> View:
        tensor = self.input(position)
        if tensor.type != TensorType.COMPLEX128:
            return self.kernel("bitcast", self.value(position), shape=(*tensor.shape, 2), type=TensorType.FLOAT32)
        # What has 16 bytes no kernel moves; so nobody knows the tensor otherwise.
        self.require_elements(tensor)
        value = self._node.computed(position)
        if isinstance(value, Later):
            self.refuse(f"the value of input {position} depends on sizes")
        if value is not None:
            return self.array(value.reshape(-1).view(np.float64).reshape(*tensor.shape, 2))
        return self._lowered.input(tensor, (*tensor.shape, 2), TensorType.FLOAT64)

    def piece(self, position: int) -> View | Stretch:
        stretch = self._lowered.stretches.get(self.input(position).index)
        return self.value(position) if stretch is None else stretch

    def optional_value(self, position: int) -> View | None:
        return None if self.optional(position) is None else self.value(position)

    def variable(self, position: int) -> View:
        tensor = self.input(position)
        if not tensor.is_variable:
            self.refuse(f"input {position} is no variable")
        self.require_elements(tensor)
        return self._lowered.value(tensor, None)

    def state(self, array: Array) -> View:
        if self._lowered.subgraph is not None:
            self.refuse("it keeps something from one call to the next")
        return self._lowered.state(array, STATES + self._node.node_index)

    def resource(self, position: int, of: TensorInfo) -> View:
        if self._lowered.subgraph is not None or self._lowered.is_running:
            self.refuse("variables belong to all subgraphs")
        if of.type not in ELEMENTS:
            self.refuse(f"no kernels for {type_name(of.type)}")
        self.require_elements(of)
        number = int(self.known(position).item())
        names = [name for name, known in self._node.resources.ids.items() if known == number]
        if not names:
            self.refuse(f"nothing has the resource handle {number}")
        return self._lowered.resource(number, names[0], self._shape_of_resource(number, of), of.type)

    def _shape_of_resource(self, number: int, of: TensorInfo) -> Shape:
        if not of.is_dynamic:
            return of.shape
        is_running = self._lowered.states is not None
        now = self._lowered.values.get(RESOURCES + number) or self._node.resources.variables.get(number)
        if now is None or not is_running:
            self.refuse(_unknown_shape(of))
        return now.shape

    def run_before(self) -> None:
        if self._lowered.subgraph is not None or self._lowered.is_running:
            self.refuse("it runs once for an interpreter")

    def constant(self, position: int) -> Array | None:
        array = self._node.constant(position)
        tensor = self.optional(position)
        if array is None and self._lowered.subgraph is not None and tensor is not None:
            view = self._lowered.values.get(tensor.index)
            return None if view is None else constant_of(view, self._graph)
        return array

    def numbers(self, position: int) -> Sequence[Affine]:
        array = self.constant(position)
        if array is not None:
            return [Affine(whole(number)) for number in array.reshape(-1)]
        numbers = numbers_of(self.value(position), self._graph, self._lowered.ranges)
        if numbers is None:
            self.refuse(f"{self.op.inputs[position]} is only known when the model runs")
        return numbers

    def element(self, position: int, number: int) -> View:
        found = self.numbers(position)[number]
        if found.constant == 0 and list(found.terms.values()) == [1]:
            ((buffer, at),) = found.terms
            if buffer.type == self.input(position).type:
                return View(buffer, (1,), (1,), at)
        view = self.value(position)
        return self.reshape(view, (view.size,)).slice(0, number, 1)

    def is_at_most(self, number: Affine | int, other: Affine | int) -> bool:
        most = greatest(Affine(0) + number - other, self._graph, self._lowered.ranges)
        return most is not None and most <= 0

    @property
    def guesses(self) -> bool:
        return self._lowered.guesses

    def array(self, value: Array, type: TensorType | None = None) -> View:
        value = np.ascontiguousarray(value).reshape(np.shape(value))  # which makes scalars vectors
        return Buffer(value.shape, TensorType[value.dtype.name.upper()] if type is None else type, -1, value).view()

    def worked_out(self, shape: Sequence[int], type: TensorType, make: Callable[..., Array], *parts: Any) -> View:
        return worked_out(tuple(shape), type, make, *parts).view()

    def result(self, view: View, position: int = 0) -> None:
        tensor = self.outputs[position]
        if tensor.index < 0:
            return  # left out
        is_open = tensor.is_dynamic
        if is_open:
            self._node.settle(position, view.shape)
        if view.type != unpacked_type(tensor.type) or (view.shape != tensor.shape and not is_open):
            raise CompileError(
                f"{self._origin} lowers output {position} to {type_name(view.type)} {list(view.shape)}, "
                f"it is {type_name(tensor.type)} {list(tensor.shape)}"
            )
        if 0 in view.shape and not self.is_empty:
            self._lowered.values[tensor.index] = self._nothing(view.shape, tensor.type)
            return
        self._lowered.values[tensor.index] = self._packed(view, tensor.type) if is_packed(tensor.type) else view

    def counted(self, view: View, number: View, position: int = 0) -> None:
        tensor = self.outputs[position]
        if not tensor.is_dynamic:
            self.result(view.slice(0, 0, tensor.shape[0]), position)
            return
        if self._lowered.counts is None or tensor.index < 0:
            self.refuse(_unknown_shape(tensor))
        self.result(view, position)
        self._lowered.counts[tensor.index] = number

    def sized(
        self, kind: str, *operands: View, results: Sequence[tuple[Sequence[int], TensorType]], **settings: Any
    ) -> tuple[View, ...]:
        y, *others = (self.empty(shape, type) for shape, type in (*results, ((1,), TensorType.INT64)))
        kernel = Kernel(kind, list(operands), y, settings or None, also=tuple(others), origin=(self._origin,))
        self._graph.kernels.append(kernel)
        return (y, *others)

    def stretch(self, stretch: Stretch, position: int = 0) -> None:
        tensor = self.outputs[position]
        if self._lowered.subgraph is None:  # where a partition may end behind it
            self.refuse(_unknown_shape(tensor))
        self._lowered.stretches[tensor.index] = stretch

    def update(self, position: int, view: View) -> None:
        # Values that are still to be computed from the old state are computed already: kernels run in order.
        variable = self.variable(position)
        self._graph.copy(view, variable, self._origin)

    def refuse(self, reason: str) -> NoReturn:
        raise Refused(reason)

    def limit(self, reason: str) -> None:
        if not self._lowered.is_running:
            self.refuse(reason)

    def reshape(self, view: View, shape: Sequence[int]) -> View:
        if prod(shape) != view.size:  # what the file says of a tensor that another operator shapes when it runs
            self.refuse(f"the shapes {list(view.shape)} and {list(shape)} contradict each other until the model runs")
        reshaped = view.reshape(shape)
        if reshaped is None:
            reshaped = self.copy(view).reshape(shape)
        if reshaped is None:
            raise CompileError(f"{self._origin}: cannot reshape {list(view.shape)} to {list(shape)}")
        return reshaped

    def copy(self, view: View, into: View | None = None) -> View:
        copied = Buffer(view.shape, view.type).view() if into is None else into
        self._graph.copy(view, copied, self._origin)
        return copied

    def empty(self, shape: Sequence[int], type: TensorType) -> View:
        return Buffer(tuple(shape), type).view()

    def concat(self, pieces: Sequence[View | Stretch], axis: int) -> View:
        views = [piece for piece in pieces if isinstance(piece, View)]
        if len(views) < len(pieces):
            return self._replaced(pieces, views, axis)
        shape = list(views[0].shape)
        shape[axis] = sum(view.shape[axis] for view in views)
        joined = Buffer(tuple(shape), views[0].type).view()
        start = 0
        for view in views:
            if view.size:
                self._graph.copy(view, joined.slice(axis, start, view.shape[axis]), self._origin)
            start += view.shape[axis]
        return joined

    def _replaced(self, pieces: Sequence[View | Stretch], views: Sequence[View], axis: int) -> View:
        """A copy of a view with other elements along an axis, between what is left of it on either side."""
        before, behind = pieces[0], pieces[-1]
        if not views or len(views) + 2 != len(pieces) or isinstance(before, View) or isinstance(behind, View):
            self.refuse("it is not known how long all are together")
        x, other = before.view, self.concat(views, axis)
        shape = [other.shape[axis] if dim == axis else size for dim, size in enumerate(x.shape)]
        if not (
            same(x, behind.view)
            and before.axis == behind.axis == axis
            and before.begin == Affine(0)
            and before.stop is not None
            and behind.begin - before.end == Affine(shape[axis])
            and behind.end == Affine(x.shape[axis])
            and other.shape == tuple(shape)
            and shape[axis] <= x.shape[axis]
            and other.type == x.type
        ):
            self.refuse("it is not known how long all are together")
        result = self.copy(x)
        boxes = Boxes((axis,), other.shape)
        self._graph.kernels.append(Kernel("put", [other, before.stop], result, boxes, origin=(self._origin,)))
        return result

    def pad(self, view: View, before: Sequence[int], after: Sequence[int], value: View | float = 0) -> View:
        if not any(before) and not any(after):
            return view
        shape = [b + size + a for b, size, a in zip(before, view.shape, after, strict=True)]
        fill = value if isinstance(value, View) else self.scalar(value, view)
        if 0 in view.shape and not self.is_empty:
            return self.copy(self.reshape(fill, ()).broadcast(shape))
        return self._graph.add("pad", [view, fill], shape, view.type, tuple(before), origin=self._origin)

    def gather(
        self,
        x: View,
        vectors: View,
        axes: Sequence[int],
        sizes: Sequence[int],
        *,
        batch_dims: int = 0,
        clamps: bool = False,
        order: Sequence[int] | None = None,
    ) -> View:
        if not self.is_empty and any(size > extent for size, extent in zip(sizes, x.shape, strict=True)):
            self.refuse("a box is larger than what it is of")
        shape = (*vectors.shape[:-1], *sizes)
        order = range(len(shape)) if order is None else order
        result = Buffer(tuple([shape[dim] for dim in order]), x.type).view()
        y = result.permute([list(order).index(dim) for dim in range(len(shape))])
        boxes = Boxes(tuple(axes), tuple(sizes), batch_dims, clamps)
        self._graph.kernels.append(Kernel("gather", [x, vectors], y, boxes, origin=(self._origin,)))
        return result

    def put(self, box: View, into: View, vector: View, axes: Sequence[int] | None = None) -> None:
        boxes = Boxes(tuple(range(len(box.shape)) if axes is None else axes), box.shape, clamps=True)
        self._graph.kernels.append(Kernel("put", [box, vector], into, boxes, origin=(self._origin,)))

    def scatter(
        self,
        x: View,
        places: View,
        into: View,
        combine: Literal["set", "add", "mul", "max", "min"],
        *,
        skips: bool = False,
    ) -> None:
        settings = {"combine": combine, "skips": skips}
        self._graph.kernels.append(Kernel("scatter", [x, places], into, settings, origin=(self._origin,)))

    def push(self, variable: View, newest: View) -> None:
        self._graph.kernels.append(Kernel("push", [newest], variable, origin=(self._origin,)))

    def map(self, expression: Expression, *operands: View, type: TensorType | None = None) -> View:
        if isinstance(expression, str):
            expression = (expression, *range(len(operands)))
        tables = parameters_of(expression)
        shape = broadcast_shape([view for at, view in enumerate(operands) if at not in tables])
        views = [
            View(view.buffer, shape, (0,) * len(shape), view.offset) if at in tables
            else view if view.shape == shape else view.broadcast(shape)
            for at, view in enumerate(operands)
        ]  # fmt: skip
        element = operands[0].type if type is None else type
        for one in (element, *(view.type for view in operands)):
            if one not in ELEMENT_OF:
                self.refuse(f"there is no arithmetic of {type_name(one)}")
        try:
            type_of(expression, [ELEMENT_OF[view.type] for view in operands])
        except CompileError as error:
            reason = str(error).rstrip(".")
            self.refuse(reason[:1].lower() + reason[1:])
        return self._graph.add("map", views, shape, element, epilogue=expression, arity=1, origin=self._origin)

    def cast(self, x: View, type: TensorType) -> View:
        if x.type == type:
            return x
        if type == TensorType.FLOAT32 and x.type == TensorType.FLOAT16 and x.is_constant and x.is_whole:
            return self.reshape(Widened(x.buffer).view(), x.shape)
        if x.is_constant and x.is_whole and np.can_cast(numpy_dtype(x.type), numpy_dtype(type), "safe"):
            return derived(x.buffer, x.shape, type, _converted, x.shape, numpy_dtype(type)).view()
        return self.map(0, x, type=type)

    def convolution(self, x: View, weights: View, bias: View | None, geometry: Geometry) -> View:
        self._check_padding(x, geometry)
        if x.shape[3] // weights.shape[3] > MOST_GROUPS:
            self.limit(f"there are more than {MOST_GROUPS} groups")
        shape = (x.shape[0], *geometry.output, weights.shape[0])
        bias = self._bias(bias, weights.shape[0], x.type)
        return self._graph.add("contract", [x, weights, bias], shape, x.type, geometry, origin=self._origin)

    def depthwise(self, x: View, weights: View, bias: View | None, geometry: Geometry) -> View:
        self._check_padding(x, geometry)
        if geometry.kernel[0] > MAX_KERNEL_ROWS:
            self.limit(f"the filter has more than {MAX_KERNEL_ROWS} rows")
        if weights.shape[2] // x.shape[3] not in MULTIPLIERS:
            x = self._repeated(x, weights.shape[2])
        shape = (x.shape[0], *geometry.output, weights.shape[2])
        bias = self._bias(bias, weights.shape[2], x.type)
        return self._graph.add("depthwise", [x, weights, bias], shape, x.type, geometry, origin=self._origin)

    def quantized_convolution(
        self,
        x: View,
        weights: View,
        bias: View | None,
        geometry: Geometry,
        requantization: Requantization | FixedPoint | None,
        type: TensorType | None = None,
    ) -> View:
        self._check_padding(x, geometry)
        if x.shape[3] // weights.shape[3] > MOST_GROUPS:
            self.limit(f"there are more than {MOST_GROUPS} groups")
        shape = (x.shape[0], *geometry.output, weights.shape[0])
        if bias is not None and not bias.is_constant and isinstance(requantization, FixedPoint):
            sums = self._sums_of_int16(x, weights, geometry, requantization)
            return _int16.requantized(self, sums, self.reshape(bias, (weights.shape[0],)), requantization)
        if type == TensorType.INT32 and isinstance(requantization, Requantization):
            # Constants are packed; what is computed is no part of the kernel.
            if bias is not None and not bias.is_constant:
                sums = self.quantized_convolution(x, weights, None, geometry, requantization, type)
                return self.map("add", sums, self.reshape(bias, (weights.shape[0],)))
            if not weights.is_constant:
                sums = self._sums_of_floats(x, weights, geometry, requantization)
                return sums if bias is None else self.map("add", sums, self.reshape(bias, (weights.shape[0],)))
        bias = self._integer_bias(bias, weights.shape[0])
        if not weights.is_constant:
            self.limit("weights are only known when the model runs")
        settings = Quantized(geometry, requantization)
        type = x.type if type is None else type
        return self._graph.add("quantized_contract", [x, weights, bias], shape, type, settings, origin=self._origin)

    def _sums_of_int16(self, x: View, weights: View, geometry: Geometry, to: FixedPoint) -> View:
        """The sums of a convolution of int16, of 64 bits in parts that do not wrap in 32."""
        depth = weights.shape[3]
        step = depth if to.rounding == "twice" else MOST_SUMMANDS // (weights.shape[1] * weights.shape[2])
        if step < depth and (not step or x.shape[3] != depth):
            self.refuse("the bias is only known when the model runs")
        parts = []
        for start in range(0, depth, step):
            size = min(step, depth - start)
            image, filter = x.slice(3, start, size), weights.slice(3, start, size)
            parts.append(self.quantized_convolution(image, filter, None, geometry, None, TensorType.INT32))
        total = ("add", ("toi64", 0), ("toi64", 1))
        return reduce(lambda sums, part: self.map(total, sums, part, type=TensorType.INT64), parts)

    def _sums_of_floats(self, x: View, weights: View, geometry: Geometry, numbers: Requantization) -> View:
        """The sums of a convolution of bytes by that of floats, as which integers are exact up to 2^24."""
        most = (1 << 24) // (255 * (255 if numbers.weight_zero or weights.type == TensorType.UINT8 else 128))
        taps = weights.shape[1] * weights.shape[2]
        depth = weights.shape[3]
        step = most // taps
        if step < depth and (not step or x.shape[3] != depth):
            self.limit("weights are only known when the model runs")
        image, filter = (
            self.map(("tof32", ("sub", ("toi32", 0), 1)), levels, zero, type=TensorType.FLOAT32)
            for levels, zero in (
                (x, self.array(np.array(numbers.x_zero, np.int32))),
                (weights, self.array(np.array(numbers.weight_zero, np.int32))),
            )
        )
        if depth == 1 and x.shape[3] > 1:  # as many groups as channels
            filter = self.reshape(filter, filter.shape[:3]).permute((1, 2, 0))
            return self.cast(self.depthwise(image, filter, None, geometry), TensorType.INT32)
        if step >= depth:
            return self.cast(self.convolution(image, filter, None, geometry), TensorType.INT32)
        starts = range(0, depth, step)
        sizes = [min(step, depth - start) for start in starts]
        parts = [
            self.convolution(image.slice(3, start, size), filter.slice(3, start, size), None, geometry)
            for start, size in zip(starts, sizes, strict=True)
        ]
        summands = [self.cast(part, TensorType.INT32) for part in parts]
        return reduce(lambda sums, part: self.map("add", sums, part), summands)

    def quantized_matmul(
        self,
        x: View,
        y: View,
        requantization: Requantization | FixedPoint | None,
        type: TensorType | None = None,
        bias: View | None = None,
    ) -> View:
        if y.type == TensorType.INT16 and y.strides[-1] != 1:
            y = self.copy(y)
        if bias is not None and not bias.is_constant and isinstance(requantization, FixedPoint):
            sums = self.quantized_matmul(x, y, None, TensorType.INT64)
            return _int16.requantized(self, sums, self.reshape(bias, (y.shape[-1],)), requantization)
        left, right, shape = self._batches(x, y)
        bias = self._integer_bias(bias, shape[-1])
        type, settings = x.type if type is None else type, Quantized(POINTWISE, requantization)
        return self._graph.add("quantized_matmul", [left, right, bias], shape, type, settings, origin=self._origin)

    def quantized_depthwise(
        self,
        x: View,
        weights: View,
        bias: View | None,
        geometry: Geometry,
        requantization: Requantization | FixedPoint | None,
        type: TensorType | None = None,
    ) -> View:
        self._check_padding(x, geometry)
        if geometry.kernel[0] > MAX_KERNEL_ROWS:
            self.limit(f"the filter has more than {MAX_KERNEL_ROWS} rows")
        if x.type == TensorType.INT16 and geometry.kernel[0] * geometry.kernel[1] > MOST_SUMMANDS:
            self.limit(f"the filter has more than {MOST_SUMMANDS} elements")
        if bias is not None and not bias.is_constant and isinstance(requantization, FixedPoint):
            sums = self.quantized_depthwise(x, weights, None, geometry, None, TensorType.INT32)
            return _int16.requantized(self, sums, self.reshape(bias, (weights.shape[2],)), requantization)
        x = self._repeated(x, weights.shape[2])
        shape = (x.shape[0], *geometry.output, weights.shape[2])
        bias = self._integer_bias(bias, weights.shape[2])
        if not weights.is_constant:
            self.limit("weights are only known when the model runs")
        type, settings = x.type if type is None else type, Quantized(geometry, requantization)
        return self._graph.add("quantized_depthwise", [x, weights, bias], shape, type, settings, origin=self._origin)

    def hybrid_depthwise(
        self, x: View, weights: View, scales: View, bias: View, headers: View, geometry: Geometry
    ) -> View:
        self._check_padding(x, geometry)
        if geometry.kernel[0] > MAX_KERNEL_ROWS:
            self.limit(f"the filter has more than {MAX_KERNEL_ROWS} rows")
        if weights.shape[2] // x.shape[3] not in MULTIPLIERS:
            x = self._repeated(x, weights.shape[2])
        shape = (x.shape[0], *geometry.output, weights.shape[2])
        operands = [x, weights, scales, bias, headers]
        return self._graph.add("hybrid_depthwise", operands, shape, x.type, geometry, origin=self._origin)

    def matmul(self, x: View, y: View, bias: View | None = None) -> View:
        *batch, rows, depth = x.shape
        columns = y.shape[-1]
        bias = self._bias(bias, columns, x.type)
        if y.is_constant and len(y.shape) == 2:
            # Every row of every batch meets the same weights: one matrix.
            count = 1
            for size in (*batch, rows):
                count *= size
            image = self.reshape(x, (1, 1, count, depth))
            weights = self.reshape(y.permute((1, 0)), (columns, 1, 1, depth))
            product = self._graph.add(
                "contract", [image, weights, bias], (1, 1, count, columns), x.type, POINTWISE, origin=self._origin
            )
            return self.reshape(product, (*batch, rows, columns))
        left, right, shape = self._batches(x, y)
        return self._graph.add("matmul", [left, right, bias], shape, x.type, origin=self._origin)

    def _batches(self, x: View, y: View) -> tuple[View, View, Shape]:
        """Operands of a matrix product whose leading dimensions are broadcast, and the shape of the product."""
        *batch, rows, depth = x.shape
        *batch_y, _, columns = y.shape
        rank = max(len(batch), len(batch_y))
        common = broadcast_shape(
            [View(x.buffer, tuple(batch), (0,) * len(batch), 0), View(y.buffer, tuple(batch_y), (0,) * len(batch_y), 0)]
        )
        left = self.reshape(x, (1,) * (rank - len(batch)) + x.shape).broadcast((*common, rows, depth))
        right = self.reshape(y, (1,) * (rank - len(batch_y)) + y.shape).broadcast((*common, depth, columns))
        return left, right, (*common, rows, columns)

    def window(self, reduction: Literal["max", "mean", "l2"], x: View, geometry: Geometry) -> View:
        shape = (x.shape[0], *geometry.output, x.shape[3])
        return self._graph.add("window", [x], shape, x.type, (reduction, geometry), origin=self._origin)

    def reduce(self, reduction: Reduction, x: View, axes: Sequence[int], type: TensorType | None = None) -> View:
        runs = _runs(x.shape, axes)
        while len(runs) > 2:  # more than a kernel takes
            x, axes = self.reduce(reduction, x, runs[0], type), [axis for axis in axes if axis not in runs[0]]
            runs = runs[1:]
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        settings = (reduction, tuple(sorted(axes)), IDENTITY)
        return self._graph.add(REDUCE, [x], shape, x.type if type is None else type, settings, origin=self._origin)

    def softmax(self, x: View, beta: float = 1.0, *, log: bool = False) -> View:
        return self._graph.add("softmax", [x], x.shape, x.type, (beta, log), origin=self._origin)

    def call(self, subgraph: int, operands: Sequence[View]) -> Sequence[View]:
        return control_flow.call(self._node, subgraph, operands, self._lowered, lower)

    def branch(self, flags: Sequence[View], subgraphs: Sequence[int], operands: Sequence[View]) -> Sequence[View]:
        return control_flow.branch(self._node, flags, subgraphs, operands, self._lowered, lower, self._origin)

    def either(self, flag: View, first: Callable[[], View], second: Callable[[], View]) -> View:
        outer, regions, views = self._graph, list[KernelGraph](), list[View]()
        try:
            for state in (first, second):
                regions.append(KernelGraph())
                self._graph = regions[-1]
                views.append(state())
        finally:
            self._graph = outer
        return control_flow.either(outer, flag, regions, views, self._origin)

    def loop(self, condition: int, body: int, operands: Sequence[View]) -> Sequence[View]:
        return control_flow.loop(self._node, condition, body, operands, self._lowered, lower, self._origin)

    def turns(
        self,
        count: int,
        variables: Sequence[View],
        body: Callable[[View, Sequence[View]], Sequence[View]],
        into: Sequence[View] = (),
    ) -> Sequence[View]:
        limit = self.worked_out((1,), TensorType.INT32, np.full, 1, count, np.int32)
        around, self._graph = self._graph, KernelGraph()
        number, *values = [Buffer(view.shape, view.type).view() for view in (limit, *variables)]
        try:
            following = list(body(number, values))
            following.insert(0, self.map("add", number, self.array(np.ones(1, np.int32))))  # last, so where it lies
            turn, self._graph = self._graph, KernelGraph()
            flag = self.map("less", number, limit, type=TensorType.BOOL)
            condition = self._graph
        finally:
            self._graph = around
        for view, value in zip([self.array(np.zeros(1, np.int32)), *variables], (number, *values), strict=True):
            self.copy(view, value)
        control_flow.add_loop(around, flag, turn, condition, (number, *values), following, into, self._origin)
        return values

    def kernel(self, kind: str, *operands: View, shape: Sequence[int], type: TensorType, **settings: Any) -> View:
        return self._graph.add(kind, operands, shape, type, settings, origin=self._origin)

    def _repeated(self, x: View, channels: int) -> View:
        """An image of as many channels as there are filters, each as often as there are filters for it."""
        *image, own = x.shape
        if own == channels:
            return x
        repeated = self.reshape(x, (*image, own, 1)).broadcast((*image, own, channels // own))
        return self.reshape(repeated, (*image, channels))

    def _check_padding(self, x: View, geometry: Geometry) -> None:
        (top, left), (bottom, right) = geometry.before, geometry.after(*x.shape[1:3])
        images, height, width, channels = x.shape
        if images * (top + height + bottom) * (left + width + right) * channels > MOST_PADDING + PADDING * x.size:
            self.limit(f"its padding is more than {PADDING} times as large as the image")

    def _integer_bias(self, bias: View | None, channels: int) -> View:
        bias = self.array(np.zeros(channels, np.int32)) if bias is None else self.reshape(bias, (channels,))
        if not bias.is_constant:  # which is packed
            self.limit("the bias is only known when the model runs")
        return bias

    def _bias(self, bias: View | None, channels: int, type: TensorType) -> View:
        if bias is None:
            return self.worked_out((channels,), type, np.zeros, channels, np.float32)
        return self.reshape(bias, (channels,))


def _runs(shape: Shape, axes: Sequence[int]) -> list[list[int]]:
    """The axes that are neighbours, where dimensions of one element are not there."""
    runs: list[list[int]] = []
    inside = False
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if axis in axes:
            if not inside:
                runs.append([])
            runs[-1].append(axis)
        inside = axis in axes
    return runs


def _converted(array: Array, shape: Shape, dtype: np.dtype[Any]) -> Array:
    return array.astype(dtype).reshape(shape)
