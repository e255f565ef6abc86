"""Resource variables, which builtin operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import require_range

ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"
"""The shared name of a variable that each operator has for itself (TensorFlow's ResourceHandle::ANONYMOUS_NAME)."""

COMBINED = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Min": np.minimum,
    "Max": np.maximum,
}
"""What scatters make of an element and an update, by the end of the operator's name; ``Update`` takes the update."""


def variable(call: Call, number: int, dtype: np.dtype[Any] | None = None) -> Array:
    """The value of a variable, not to be written to. Raises if it has none, or one of another type."""
    value = call.resources.variables.get(number)
    if value is None:
        call.fail(f"variable {number} has no value: it must be assigned first")
    call.require(dtype is None or value.dtype == dtype, f"the variable is {value.dtype}, {dtype} is wanted")
    return value


@kernel("VarHandleOp")
def handle(call: Call) -> Array:
    """The number of the variable with this name."""
    name = call.attributes.text("shared_name")
    if name == ANONYMOUS:
        name = call.state.setdefault("name", f"\0{len(call.resources.ids)}")
    return np.array(_number(call, call.attributes.text("container"), name))


@kernel("_VarHandlesOp")
def handles(call: Call) -> tuple[list[Array]]:
    """The numbers of several variables."""
    containers, names = call.attributes.texts("containers"), call.attributes.texts("shared_names")
    return ([np.array(_number(call, *which)) for which in zip(containers, names, strict=True)],)


@kernel("ReadVariableOp")
def read(call: Call, resource: int) -> Array:
    """The value."""
    return variable(call, resource, call.dtype("dtype"))


@kernel("_ReadVariablesOp")
def read_many(call: Call, resources: Sequence[int]) -> tuple[list[Array]]:
    """The values."""
    types = call.attributes.types("dtypes")
    return ([variable(call, one, numpy_dtype(type)) for one, type in zip(resources, types, strict=True)],)


@kernel("AssignVariableOp")
def assign(call: Call, resource: int, value: Array) -> None:
    """Have this value; with ``validate_shape`` of the shape that it has."""
    known = call.resources.variables.get(resource)
    if known is not None:
        call.require(known.dtype == value.dtype, f"the variable is {known.dtype}, got {value.dtype}")
        if call.attributes.bool("validate_shape"):
            call.require(
                known.shape == value.shape, f"the variable has shape {list(known.shape)}, got {list(value.shape)}"
            )
    call.resources.variables[resource] = value.copy()


@kernel("AssignAddVariableOp", "AssignSubVariableOp")
def assign_changed(call: Call, resource: int, value: Array) -> None:
    """Add a value, or subtract it."""
    known = variable(call, resource, value.dtype)
    call.require(known.shape == value.shape, f"the variable has shape {list(known.shape)}, got {list(value.shape)}")
    call.resources.variables[resource] = known + value if "Add" in call.op else known - value


@kernel("VarIsInitializedOp")
def is_initialized(call: Call, resource: int) -> Array:
    """Whether it has a value."""
    return np.array(resource in call.resources.variables)


@kernel("VariableShape")
def shape(call: Call, resource: int) -> Array:
    """The shape of the value."""
    return np.array(variable(call, resource).shape, np.int64)


@kernel("DestroyResourceOp")
def destroy(call: Call, resource: int) -> None:
    """Forget the value of a variable, or another object."""
    there = [
        held
        for held in (call.resources.variables, call.resources.objects, call.resources.hash_tables)
        if resource in held
    ]
    call.require(there or call.attributes.bool("ignore_lookup_error"), f"there is no resource {resource}")
    for held in there:
        del held[resource]


@kernel("ResourceGather")
def gather(call: Call, resource: int, indices: Array) -> Array:
    """Slices of the value at ``indices``, along the dimension behind ``batch_dims`` that both have."""
    value, batch = variable(call, resource, call.dtype("dtype")), call.attributes.int("batch_dims")
    call.require(
        0 <= batch <= indices.ndim and batch < value.ndim and value.shape[:batch] == indices.shape[:batch],
        f"batch_dims {batch} does not fit a variable of {list(value.shape)} and indices of {list(indices.shape)}",
    )
    require_range(call, "indices", indices, value.shape[batch])
    grids = np.ogrid[tuple(slice(size) for size in indices.shape[:batch])]
    along = tuple([grid.reshape(grid.shape + (1,) * (indices.ndim - batch)) for grid in grids])
    picked: Array = value[(*along, indices)]
    return picked


@kernel("ResourceGatherNd")
def gather_nd(call: Call, resource: int, indices: Array) -> Array:
    """Slices of the value at the indices in the last dimension of ``indices``."""
    value = variable(call, resource, call.dtype("dtype"))
    picked: Array = value[_vectors(call, value, indices)]
    return picked


@kernel("ResourceScatterUpdate", *[f"ResourceScatter{how}" for how in COMBINED])
def scatter(call: Call, resource: int, indices: Array, updates: Array) -> None:
    """Put slices of ``updates``, or one number, into those of the value at ``indices``."""
    value = variable(call, resource, call.dtype("dtype")).copy()
    call.require(value.ndim, "the variable must have a dimension")
    require_range(call, "indices", indices, value.shape[0])
    wanted = indices.shape + value.shape[1:]
    call.require(
        updates.shape in ((), wanted), f"updates must have shape {list(wanted)} or [], got {list(updates.shape)}"
    )
    _combine(call.op.removeprefix("ResourceScatter"), value, (indices,), updates)
    call.resources.variables[resource] = value


@kernel(*[f"ResourceScatterNd{how}" for how in ("Update", "Add", "Sub", "Min", "Max")])
def scatter_nd(call: Call, resource: int, indices: Array, updates: Array) -> None:
    """Put slices of ``updates`` into those of the value at the indices in the last dimension of ``indices``."""
    value = variable(call, resource, updates.dtype).copy()
    places = _vectors(call, value, indices)
    wanted = indices.shape[:-1] + value.shape[indices.shape[-1] :]
    call.require(updates.shape == wanted, f"updates must have shape {list(wanted)}, got {list(updates.shape)}")
    _combine(call.op.removeprefix("ResourceScatterNd"), value, places, updates)
    call.resources.variables[resource] = value


@kernel("ResourceStridedSliceAssign")
def strided_slice_assign(call: Call, resource: int, begin: Array, end: Array, strides: Array, value: Array) -> None:
    """Put ``value`` into a slice of the variable."""
    result = variable(call, resource, value.dtype).copy()
    place = result[_slices(call, begin.tolist(), end.tolist(), strides.tolist())]
    call.require(
        value.size == place.size and np.squeeze(value).shape == np.squeeze(place).shape,
        f"the slice has shape {list(place.shape)}, got {list(value.shape)}",
    )
    place[...] = value.reshape(place.shape)
    call.resources.variables[resource] = result


def _number(call: Call, container: str, name: str) -> int:
    ids = call.resources.ids
    return ids.setdefault((container, name), len(ids))


def _combine(how: str, value: Array, places: tuple[Array, ...], updates: Array) -> None:
    if how == "Update":
        value[places] = updates
    elif how == "Div" and value.dtype.kind in "iu":
        flat = places[0].reshape(-1)
        for at, update in zip(
            flat,
            np.broadcast_to(updates, places[0].shape + value.shape[1:]).reshape(flat.shape + value.shape[1:]),
            strict=True,
        ):
            if not np.all(update):
                raise ZeroDivisionError("a variable of integers is divided by 0")
            value[at] = np.trunc(value[at] / update)
    else:
        COMBINED[how].at(value, places, updates)


def _vectors(call: Call, value: Array, indices: Array) -> tuple[Array, ...]:
    call.require(
        indices.ndim and indices.shape[-1] <= value.ndim,
        f"indices of shape {list(indices.shape)} do not fit a variable of {list(value.shape)}",
    )
    places = np.moveaxis(indices, -1, 0)
    for axis, along in enumerate(places):
        require_range(call, f"indices[..., {axis}]", along, value.shape[axis])
    return tuple(places)


def _slices(call: Call, begin: list[int], end: list[int], strides: list[int]) -> tuple[Any, ...]:
    """NumPy's index that means the same as a strided slice with its masks."""
    call.require(len(begin) == len(end) == len(strides), "begin, end and strides must have the same length")
    call.require(0 not in strides, "strides must not be 0")
    masks = {
        name: call.attributes.int(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }

    def has(mask: str, at: int) -> bool:
        return bool(masks[mask] >> at & 1)

    index: list[Any] = []
    for at, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
        if has("ellipsis", at):
            index.append(Ellipsis)
        elif has("new_axis", at):
            index.append(None)
        elif has("shrink_axis", at):
            index.append(first)
        else:
            index.append(slice(None if has("begin", at) else first, None if has("end", at) else last, stride))
    call.require(index.count(Ellipsis) <= 1, "a slice may have one ellipsis")
    return tuple(index)
