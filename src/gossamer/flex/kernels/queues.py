"""Queues and stacks. Nobody fills a queue while an operator waits: what TensorFlow would wait for is an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.objects import Queue, Stack, boxed, fits, found, fresh, known, named, require_same_type, shown, zeros


@kernel("FIFOQueueV2", "PaddingFIFOQueueV2")
def queue(call: Call) -> Array:
    """A queue of tuples; its name says which."""
    attributes = call.attributes
    types, shapes = attributes.types("component_types"), attributes.shapes("shapes")
    call.require(not shapes or len(shapes) == len(types), f"{len(shapes)} shapes are given for {len(types)} components")
    pads = call.op.startswith("Padding")
    number = named(
        call,
        "queue",
        attributes.text("shared_name") or call.node.node.name,
        lambda: Queue(types, shapes, attributes.int("capacity"), pads),
    )
    held = found(call, number, Queue)
    call.require((held.types, held.pads) == (types, pads), "a queue of this name has other components")
    return np.array(number)


@kernel("QueueEnqueueV2")
def enqueue(call: Call, handle: int, components: Sequence[Any]) -> None:
    """One more tuple at the end."""
    _enqueue(call, found(call, handle, Queue), [tuple(map(boxed, components))])


@kernel("QueueEnqueueManyV2")
def enqueue_many(call: Call, handle: int, components: Sequence[Array]) -> None:
    """The slices of all components along their first dimension, as tuples."""
    counts = {part.shape[:1] for part in components}
    call.require(len(counts) == 1 and () not in counts, f"components have {sorted(counts)} rows")
    (count,) = next(iter(counts))
    _enqueue(
        call,
        found(call, handle, Queue),
        [tuple([part[at : at + 1].reshape(part.shape[1:]).copy() for part in components]) for at in range(count)],
    )


@kernel("QueueDequeueV2")
def dequeue(call: Call, handle: int) -> tuple[list[Array]]:
    """The first tuple."""
    (first,) = _dequeue(call, found(call, handle, Queue), 1, 1)
    return (list(first),)


@kernel("QueueDequeueManyV2")
def dequeue_many(call: Call, handle: int, n: Array) -> tuple[list[Array]]:
    """The first ``n`` tuples, stacked."""
    return (_together(call, found(call, handle, Queue), int(n.item()), int(n.item())),)


@kernel("QueueDequeueUpToV2")
def dequeue_up_to(call: Call, handle: int, n: Array) -> tuple[list[Array]]:
    """The first ``n`` tuples, stacked; of a closed queue fewer, if there are fewer, but one."""
    held = found(call, handle, Queue)
    return (_together(call, held, int(n.item()), min(int(n.item()), 1) if held.is_closed else int(n.item())),)


@kernel("QueueSizeV2")
def queue_size(call: Call, handle: int) -> Array:
    """How many tuples there are."""
    return np.array(len(found(call, handle, Queue).items))


@kernel("QueueCloseV2")
def queue_close(call: Call, handle: int) -> None:
    """Take no more tuples."""
    found(call, handle, Queue).is_closed = True


@kernel("QueueIsClosedV2")
def queue_is_closed(call: Call, handle: int) -> Array:
    """Whether no more tuples are taken."""
    return np.array(found(call, handle, Queue).is_closed)


@kernel("StackV2")
def stack(call: Call, max_size: Array) -> Array:
    """A new stack of ``max_size`` elements at most, of any number if that is negative."""
    return np.array(fresh(call, Stack(call.attributes.type("elem_type"), int(max_size.item()))))


@kernel("StackPushV2")
def push(call: Call, handle: int, elem: Any) -> Any:
    """One more element, which is handed on."""
    held = found(call, handle, Stack)
    require_same_type(call, call.attributes.type("T"), held.type)
    call.require(held.most < 0 or len(held.items) < held.most, f"the stack is full: it has {held.most} elements")
    held.items.append(boxed(elem))
    return elem


@kernel("StackPopV2")
def pop(call: Call, handle: int) -> Array:
    """The last element."""
    held = found(call, handle, Stack)
    require_same_type(call, call.attributes.type("elem_type"), held.type)
    call.require(held.items, "the stack is empty")
    return held.items.pop()


@kernel("StackCloseV2")
def close(call: Call, handle: int) -> None:
    """Forget the stack."""
    found(call, handle, Stack)
    del call.resources.objects[handle]


def _enqueue(call: Call, held: Queue, tuples: Iterable[tuple[Array, ...]]) -> None:
    call.require(not held.is_closed, "the queue is closed")
    call.require(call.attributes.types("Tcomponents") == held.types, "the queue has components of other types")
    for items in tuples:
        for item, shape in zip(items, held.shapes or [None] * len(items), strict=True):
            call.require(fits(item.shape, shape), f"the queue has components {shown(shape)}, got {list(item.shape)}")
        call.require(
            held.capacity < 0 or len(held.items) < held.capacity, f"the queue is full: it has {held.capacity} tuples"
        )
        held.items.append(items)


def _dequeue(call: Call, held: Queue, count: int, least: int) -> list[tuple[Array, ...]]:
    call.require(call.attributes.types("component_types") == held.types, "the queue has components of other types")
    call.require(count >= 0, f"{count} tuples are wanted")
    call.require(
        len(held.items) >= least,
        f"the queue has {len(held.items)} tuples, {least} are wanted"
        + ("" if held.is_closed else "; nobody will add one while this operator waits"),
    )
    return [held.items.popleft() for _ in range(min(count, len(held.items)))]


def _together(call: Call, held: Queue, count: int, least: int) -> list[Array]:
    shapes = [known(shape) for shape in held.shapes]
    call.require(
        held.shapes and (held.pads or None not in shapes), "the shapes of components must be known to stack them"
    )
    tuples = _dequeue(call, held, count, least)
    stacked = []
    for at, type in enumerate(held.types):
        parts = [items[at] for items in tuples]
        shape = shapes[at]
        if shape is None:
            sizes = held.shapes[at] or ()
            shape = tuple(
                [
                    max([0, *[part.shape[axis] for part in parts]]) if size is None else size
                    for axis, size in enumerate(sizes)
                ]
            )
        together = zeros(call, type, (len(parts), *shape))
        for row, part in enumerate(parts):
            place: tuple[Any, ...] = (row, *map(slice, part.shape))
            together[place] = part if part.ndim else part.item()
        stacked.append(together)
    return stacked
