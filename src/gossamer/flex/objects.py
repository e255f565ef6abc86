"""What variant and resource tensors stand for: lists, maps, ragged tensors; arrays, queues, stacks and tables.

Variants are values: an operator that changes one makes another. Resources are shared by all subgraphs of an
interpreter, and a tensor holds the number of one: those of variables are builtin VAR_HANDLE's, all others are below 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.flex.kernels import Array, Call
from gossamer.flex.kernels._checks import checked_shape
from gossamer.ops._hash_table import HashTable
from gossamer.records import field, record
from gossamer.schema.enums import TensorType

Partial = tuple[int | None, ...] | None
"""A shape of which sizes, or the rank, may not be known."""

KEPT = 256
"""Objects that a node made and that are kept, where each of its runs makes another one."""

MOST_ITEMS = 1 << 22
"""More items than a list or an array may be told to have."""

Object = TypeVar("Object")


@record(frozen=True)
class TensorList:
    """A list of tensors; ``None`` stands for an element that nobody set. ``most``: how many there may be, -1 for any
    number."""

    type: TensorType
    shape: Partial
    items: tuple[Array | None, ...] = ()
    most: int = -1


@record(frozen=True)
class TensorMap:
    """A map of tensors: what `map_key` makes of a key -> key and value."""

    entries: dict[Any, tuple[Array, Array]] = field(default_factory=dict)


@record(frozen=True)
class Ragged:
    """A ragged tensor of rank ``len(splits)``, or a slice of one: row splits from the outermost, and the values."""

    splits: tuple[Array, ...]
    values: Array


@record
class TensorArray:
    """An array of tensors. ``is_read``: which were read and cleared."""

    type: TensorType
    shape: Partial
    items: list[Array | None]
    is_read: set[int]
    grows: bool
    clears: bool
    has_one_shape: bool


@record
class Queue:
    """Tuples of tensors, first in, first out. ``shapes`` are those of the components, empty if none are said.
    ``pads``: what is dequeued together is padded to one shape."""

    types: tuple[TensorType, ...]
    shapes: tuple[Partial, ...]
    capacity: int
    pads: bool
    items: deque[tuple[Array, ...]] = field(default_factory=deque)
    is_closed: bool = False


@record
class Stack:
    """Tensors, last in, first out; ``most`` of them, if that is not negative."""

    type: TensorType
    most: int
    items: list[Array] = field(default_factory=list)


@record
class Table(HashTable):
    """A hash table of TensorFlow's operators, which builtin operators may ask too. ``key_shape`` and ``shape`` are
    those of a key and of a value. ``is_mutable``: it is filled from the start. ``barred``: keys that it cannot hold."""

    key_shape: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    is_mutable: bool = False
    barred: tuple[Any, ...] = ()


def boxed(value: Any) -> Array:
    """A value as an operand comes: an array of its own; an object as an array without dimensions."""
    if isinstance(value, np.ndarray):
        return value.copy()
    box = np.empty((), object)
    box[()] = value
    return box


def strings(items: Sequence[bytes], shape: Sequence[int]) -> Array:
    """An array of strings, which NumPy would not make without cutting off NULs at the end."""
    return np.fromiter(items, object, len(items)).reshape(tuple(shape))


def zeros(call: Call, type: TensorType, shape: Sequence[int]) -> Array:
    """What an element is that nobody set."""
    sizes = checked_shape(call, shape)
    return np.full(sizes, b"", object) if type == TensorType.STRING else np.zeros(sizes, numpy_dtype(type))


def partial_shape(call: Call, sizes: Array) -> Partial:
    """The shape that an operand tells: -1 for a size that is not known, or as a scalar for a rank that is not."""
    if not sizes.ndim:
        call.require(int(sizes) == -1, f"the shape of elements is a scalar, which must be -1, got {int(sizes)}")
        return None
    call.require(sizes.ndim == 1, f"the shape of elements must be a vector, got shape {list(sizes.shape)}")
    found = sizes.tolist()
    call.require(all(size >= -1 for size in found), f"the shape of elements has a negative size: {found}")
    return tuple([None if size < 0 else size for size in found])


def fits(shape: Sequence[int], wanted: Partial) -> bool:
    """Whether a shape may be one that is partially known."""
    return merged(tuple(shape), wanted) is not NO_SHAPE


NO_SHAPE: Partial = (-1,)
"""What `merged` gives where there is no such shape."""


def merged(a: Partial, b: Partial) -> Partial:
    """What two partially known shapes say together, `NO_SHAPE` if they contradict each other."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b) or any(x != y for x, y in zip(a, b, strict=True) if None not in (x, y)):
        return NO_SHAPE
    return tuple([y if x is None else x for x, y in zip(a, b, strict=True)])


def known(shape: Partial) -> tuple[int, ...] | None:
    """The shape, if it is known as a whole."""
    return None if shape is None or None in shape else tuple([int(size or 0) for size in shape])


def shown(shape: Partial) -> str:
    """A shape in a message."""
    return "unknown" if shape is None else str([-1 if size is None else size for size in shape])


def require_item(call: Call, value: Array, type: TensorType, shape: Partial, found: TensorType) -> None:
    """Raise unless a value may be an element of this type and shape."""
    require_same_type(call, found, type)
    call.require(fits(value.shape, shape), f"elements have shape {shown(shape)}, got {list(value.shape)}")


def require_same_type(call: Call, got: TensorType, held: TensorType) -> None:
    """Raise unless the operator means the type that the object holds."""
    call.require(got == held, f"elements are {type_name(held)}, the operator is of {type_name(got)}")


def map_key(key: Array) -> Any:
    """What stands for a tensor as a key: the same for equal ones alone."""
    content = tuple(key.reshape(-1).tolist()) if key.dtype == object else key.tobytes()
    return key.dtype.str, key.shape, content


def named(call: Call, kind: str, name: str, make: Callable[[], Object]) -> int:
    """The number of the object of a kind that has this name, in the container of the node; without a name, of the
    node's own. It is made when it is first asked for."""
    ids = call.resources.object_ids
    if not name:
        name = call.state.setdefault("name", f"\0{len(ids)}")
    container = call.attributes.text("container", "")
    number = ids.setdefault((kind, container, name), -1 - len(ids))
    place = call.resources.hash_tables if kind == "table" else call.resources.objects
    if number not in place:
        place[number] = make()
    return number


def fresh(call: Call, made: Object) -> int:
    """The number of an object that each run of the node makes anew. The last `KEPT` of them are kept."""
    ids = call.resources.object_ids
    numbers: deque[int] = call.state.setdefault("made", deque())
    if len(numbers) == KEPT:
        number = numbers.popleft()
    else:
        number = -1 - len(ids)
        ids["fresh", "", f"\0{number}"] = number
    numbers.append(number)
    call.resources.objects[number] = made
    return number


def found(call: Call, number: int, kind: type[Object]) -> Object:
    """The object with a number. Raises if there is none of this kind."""
    place = call.resources.hash_tables if issubclass(kind, HashTable) else call.resources.objects
    thing = place.get(number)
    if not isinstance(thing, kind):
        call.fail(f"resource {number} is no {kind.__name__}: what makes it must run first, and it must not be closed")
    return thing


def filled(call: Call, number: int) -> tuple[HashTable, dict[Any, Any]]:
    """A hash table and its entries. Subgraphs that nobody calls may fill it. Raises if nobody did."""
    held = found(call, number, HashTable)
    if held.entries is None:
        call.run_uncalled()
    if held.entries is None:
        call.fail("the hash table has not been filled")
    return held, held.entries
