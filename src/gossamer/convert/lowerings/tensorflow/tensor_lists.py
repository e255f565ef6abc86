"""Lists of tensors as tensors: element ``n`` of a list is row ``n`` of one tensor, which all share their shape.

A list that is only reserved has no tensor yet: its elements' shape is that of the first one put into it. Inside of a
loop nobody has put one in before the first turn; the loop is converted once more when it is known (`control_flow`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import shapes
from gossamer.convert.graph import Dims, Graph, Refused, Size, Value, unknown
from gossamer.convert.lowerings.tensorflow import Call, Handle, lowers
from gossamer.dtypes import numpy_dtype
from gossamer.schema.enums import TensorType

GROWN = 19
"""Number of the open size of a list that grows as values decide."""


class TensorList(Handle):
    """A list: ``value`` has its elements along the first axis, ``None`` while their shape is not known. ``count`` is
    how many it has then: a scalar."""

    def __init__(self, type: TensorType, value: Value | None, count: Value | None = None) -> None:
        self.type = type
        self.value = value
        self.count = count

    def with_value(self, value: Value) -> TensorList:
        """The list with other elements."""
        return TensorList(self.type, value)

    def elements(self) -> Value:
        """The tensor. Raises `Refused` if nothing was ever put into the list."""
        if self.value is None:
            raise Refused("a list of tensors is read whose elements have no known shape")
        return self.value

    def of_elements(self, graph: Graph, sizes: Sequence[int | Size], *sources: Value) -> TensorList:
        """The list with zeros for elements of this shape; sizes that are open are among those of ``sources``."""
        return TensorList(self.type, _zeros(graph, self.type, self.count, sizes, *sources))

    def __repr__(self) -> str:
        return f"list of {self.value!r}"


def _zeros(
    graph: Graph, type: TensorType, count: Value | None, element: Sequence[int | Size], *sources: Value
) -> Value:
    """``count`` elements of zeros."""
    number = 0 if count is None else (None if count.data is None else int(count.data))
    if number is not None and not any(isinstance(size, Size) for size in element):
        shape = (number, *[size for size in element if not isinstance(size, Size)])
        return graph.add("FILL", np.array(shape, np.int32), np.zeros((), numpy_dtype(type)))
    known = [*sources, *graph.inputs]
    rest = shapes.shape_value(graph, element, *known)
    if number is not None or count is None:
        first = graph.constant(np.array([number or 0], np.int32))
    else:
        first = graph.add("RESHAPE", count, np.array([1], np.int32), new_shape=(1,))
    vector = graph.add("CONCATENATION", first, rest, axis=0)
    return graph.add("FILL", vector, np.zeros((), numpy_dtype(type)))


def _list(call: Call, position: int = 0) -> TensorList:
    found = call.inputs[position]
    if not isinstance(found, TensorList):
        raise Refused(f"input {position} is {found!r}, it must be a list of tensors")
    return found


def _element_dims(call: Call, position: int) -> Dims | None:
    """The shape of elements as the operator is told; ``None`` if that says nothing."""
    known = call.value(position).known
    if known is None or known[0].ndim == 0:
        return None
    return tuple(
        [int(size) if size >= 0 and all(w[n] == size for w in known) else None for n, size in enumerate(known[0])]
    )


def _scalar(call: Call, position: int) -> Value:
    return shapes.cast(call.graph, call.value(position), TensorType.INT32)


@lowers("TensorListReserve", "EmptyTensorList")
def reserve(call: Call) -> Any:
    """Zeros, as soon as it is known of which shape."""
    type = call.attributes.type("element_dtype")
    count = _scalar(call, 1) if call.op == "TensorListReserve" else call.graph.constant(np.array(0, np.int32))
    dims = _element_dims(call, 0)
    if dims is not None and None not in dims:
        return TensorList(type, _zeros(call.graph, type, count, [size for size in dims if size is not None]))
    return TensorList(type, None, count)


@lowers("TensorListFromTensor")
def from_tensor(call: Call) -> Any:
    return TensorList(call.value(0).type, call.value(0))


@lowers("TensorListStack")
def stack(call: Call) -> Any:
    return _list(call).elements()


@lowers("TensorListLength")
def length(call: Call) -> Any:
    found = _list(call)
    if found.value is None:
        return found.count
    return _count(call.graph, found.value)


def _count(graph: Graph, value: Value) -> Value:
    vector = shapes.size_vector(graph, value)
    return graph.add("STRIDED_SLICE", vector, [0], [1], [1], shrink_axis_mask=1)


@lowers("TensorListElementShape")
def element_shape(call: Call) -> Any:
    vector = shapes.size_vector(call.graph, _list(call).elements(), call.attributes.type("shape_type"))
    return call.add("STRIDED_SLICE", vector, [1], [0], [1], end_mask=1)


@lowers("TensorListGetItem")
def get_item(call: Call) -> Any:
    found = _list(call)
    if found.value is None:
        dims = _element_dims(call, 2)
        if dims is None or None in dims:
            raise Refused("an element is read of a list whose elements have no known shape")
        return call.graph.constant(np.zeros([size for size in dims if size is not None], numpy_dtype(found.type)))
    return call.add("GATHER", found.value, _scalar(call, 1), axis=0)


@lowers("TensorListSetItem")
def set_item(call: Call) -> Any:
    """DYNAMIC_UPDATE_SLICE of one row."""
    found, index, item = _list(call), _scalar(call, 1), call.value(2)
    if found.value is None:
        found = found.of_elements(call.graph, shapes.sizes(item), item)
    value = found.elements()
    row = shapes.reshape(call.graph, item, [1, *shapes.sizes(item)])
    if value.data is not None and not value.shapes[0][0] and index.data is not None and not int(index.data):
        return found.with_value(row)
    if call.attributes.bool("resize_if_index_out_of_bounds", False):
        value = _at_least(call, value, index)
    first = call.add("RESHAPE", index, np.array([1], np.int32), new_shape=(1,))
    rest = np.zeros(item.rank, np.int32)
    start = call.add("CONCATENATION", first, rest, axis=0) if item.rank else first
    return found.with_value(call.add("DYNAMIC_UPDATE_SLICE", value, row, start))


def _at_least(call: Call, value: Value, index: Value) -> Value:
    """A list that has an element of this number, with zeros behind those that it had."""
    missing = call.add("SUB", call.add("ADD", index, np.int32(1)), _count(call.graph, value))
    if missing.data is not None and int(missing.data) <= 0:
        return value
    behind = np.zeros((value.rank, 2), np.int32)
    behind[0, 1] = 1
    paddings = call.add("MUL", behind, call.add("MAXIMUM", missing, np.int32(0)))
    return call.add("PAD", value, paddings, shape=[unknown(GROWN), *shapes.sizes(value)[1:]])


@lowers("TensorListPushBack")
def push_back(call: Call) -> Any:
    found, item = _list(call), call.value(1)
    row = shapes.reshape(call.graph, item, [1, *shapes.sizes(item)])
    if found.value is None:
        if found.count is not None and found.count.data is not None and not int(found.count.data):
            return TensorList(found.type, row)
        found = found.of_elements(call.graph, shapes.sizes(item), item)
    return found.with_value(call.add("CONCATENATION", found.elements(), row, axis=0))


@lowers("TensorListPopBack")
def pop_back(call: Call) -> Any:
    value = _list(call).elements()
    rank = value.rank
    last = call.add("STRIDED_SLICE", value, [-1], [0], [1], end_mask=1, shrink_axis_mask=1) if rank else value
    rest = call.add("STRIDED_SLICE", value, [0], [-1], [1])
    return TensorList(value.type, rest), last


@lowers("TensorListGather")
def gather(call: Call) -> Any:
    return call.add("GATHER", _list(call).elements(), _scalar_vector(call, 1), axis=0)


def _scalar_vector(call: Call, position: int) -> Value:
    return shapes.cast(call.graph, call.value(position), TensorType.INT32)


@lowers("TensorListScatter", "TensorListScatterV2", "TensorListScatterIntoExistingList")
def scatter(call: Call) -> Any:
    """SCATTER_ND of rows, which adds up those of one index."""
    if call.op == "TensorListScatterIntoExistingList":
        raise Refused("elements are put into an existing list at once; write them one by one")
    value, indices = call.value(0), _scalar_vector(call, 1)
    places, wanted = indices.data, call.value(3).data if call.op == "TensorListScatterV2" else np.array(-1)
    if places is None or wanted is None or len(set(places.tolist())) < places.size or (places < 0).any():
        raise Refused("the places of elements are not known, or there is one twice")
    count = int(wanted.item()) if wanted.item() >= 0 else int(places.max(initial=-1)) + 1
    if (places >= count).any():
        raise Refused(f"index {places.max()} is not among the {count} elements of the list")
    if count == places.size and (places == np.arange(count)).all():
        return TensorList(value.type, value)
    column = shapes.reshape(call.graph, indices, [*shapes.sizes(indices), 1])
    shape = shapes.size_vector(call.graph, value)
    if count != places.size:
        rest = call.add("SLICE", shape, np.array([1], np.int32), np.array([-1], np.int32))
        shape = call.add("CONCATENATION", np.array([count], np.int32), rest, axis=0)
    return TensorList(value.type, call.add("SCATTER_ND", column, value, shape))


@lowers("TensorListConcat", "TensorListConcatV2")
def concat(call: Call) -> Any:
    """The rows one behind another: a reshape, since all have one shape."""
    value = _list(call).elements()
    sizes = shapes.sizes(value)
    if value.rank < 2:
        raise Refused("scalars are concatenated; stack them")
    whole = tuple([shape[0] * shape[1] for shape in value.shapes])
    first = whole[0] if len(set(whole)) == 1 else Size(whole)
    joined = shapes.reshape(call.graph, value, [first, *sizes[2:]])
    lengths = call.add(
        "FILL",
        call.add("RESHAPE", _count(call.graph, value), np.array([1], np.int32), new_shape=(1,)),
        call.add(
            "STRIDED_SLICE", shapes.size_vector(call.graph, value, TensorType.INT64), [1], [2], [1], shrink_axis_mask=1
        ),
    )
    return joined, lengths


@lowers("TensorListSplit")
def split(call: Call) -> Any:
    value, lengths = call.value(0), call.constant(2, "the lengths of the parts")
    if lengths.size == 0 or (lengths != lengths[0]).any():
        raise Refused(f"a tensor is split into parts of different lengths {lengths.tolist()}")
    sizes = shapes.sizes(value)
    return TensorList(value.type, shapes.reshape(call.graph, value, [int(lengths.size), int(lengths[0]), *sizes[1:]]))


@lowers("TensorListResize")
def resize(call: Call) -> Any:
    """Rows cut off, or zeros put behind them."""
    found = _list(call)
    if found.value is None:
        return TensorList(found.type, None, _scalar(call, 1))
    value, size = found.value, call.constant(1, "the new length of a list")
    count = value.size(0)
    if isinstance(count, Size):
        raise Refused("a list whose length is open is resized")
    if int(size) <= count:
        return found.with_value(call.add("SLICE", value, [0] * value.rank, [int(size), *[-1] * (value.rank - 1)]))
    paddings = np.zeros((value.rank, 2), np.int32)
    paddings[0, 1] = int(size) - count
    return found.with_value(call.add("PAD", value, paddings))
