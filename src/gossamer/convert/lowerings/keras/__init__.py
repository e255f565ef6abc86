"""What the layers of Keras become, by the names of their classes; operations of ``keras.ops`` as ``"ops.Add"``.

A lowering receives a `Call` and returns the layer's output: a value, or a tuple of them. A layer that hands a mask on
returns `Masked`. The axes of a file are kept: the batch is axis 0, channels come last unless ``data_format`` says
otherwise. Training does not exist: what only happens there (dropout, noise, augmentation, updates) is nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import shapes
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings import Lowerings
from gossamer.convert.sources.keras import Layer
from gossamer.records import record
from gossamer.schema.enums import TensorType


class Masked(NamedTuple):
    """What a layer gives, and the masks of that in the same structure (``None``: everything counts)."""

    result: Any
    mask: Any


@record(frozen=True, eq=False)
class Call:
    """A call of a layer. ``args`` and ``kwargs`` hold values in lists and dictionaries as the layer takes them,
    ``masks`` their masks in the same places: (those of ``args``, those of ``kwargs``).

    ``lower`` is for the layers within a layer: it takes one of ``layer.parts`` and what that is called with, and
    returns what it gives and its masks. ``version`` is that of the Keras that wrote the file.
    """

    graph: Graph
    layer: Layer
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    masks: tuple[tuple[Any, ...], dict[str, Any]]
    lower: Callable[..., Masked]
    version: tuple[int, ...]

    # -- what it is called with

    @property
    def x(self) -> Value:
        """The one tensor that most layers take, or the first of a list. Raises `Refused` if it is none."""
        found = next(tensors(self.args[0] if self.args else list(self.kwargs.values())), None)
        return found if found is not None else refuse("is called without a tensor")

    @property
    def inputs(self) -> list[Value]:
        """The tensors of the first argument, which is one or a list of them."""
        return list(tensors(self.args[:1]))

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by its place or its name."""
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)

    def argument_mask(self, position: int, name: str) -> Any:
        """The mask that came with an argument."""
        args, kwargs = self.masks
        return args[position] if position < len(args) else kwargs.get(name)

    @property
    def handed_mask(self) -> Any:
        """The mask that the layer hands on if it changes no places: the one it was given, or that of its input."""
        given = self.kwargs.get("mask")
        if given is not None:
            return given
        args, kwargs = self.masks
        return args[0] if args else next(iter(kwargs.values()), None)

    @property
    def mask(self) -> Any:
        """The mask that the layer takes into account: Keras looks for none of the input's where a layer has several
        tensors as arguments."""
        given = self.kwargs.get("mask")
        several = sum(any(True for _ in tensors(arg)) for arg in [*self.args, *self.kwargs.values()]) > 1
        return given if given is not None or several else self.handed_mask

    def keeping_mask(self, result: Any) -> Masked:
        """The result of a layer that hands its mask on."""
        return Masked(result, self.handed_mask)

    # -- what it is

    def config(self, key: str, default: Any = None) -> Any:
        """A member of the layer's config; ``default`` if there is none, or it is null."""
        value = self.layer.config.get(key)
        return default if value is None else value

    def array(self, name: str) -> NDArray[Any] | None:
        """A variable's value; of floats in float32, in which everything is computed."""
        value = self.layer.variable(name)
        if value is not None and value.dtype != np.float32 and value.dtype.kind not in "biu":
            value = value.astype(np.float32)
        return value

    def weight(self, name: str) -> NDArray[Any]:
        """A variable that the layer must have. Raises `Refused`."""
        value = self.array(name)
        return value if value is not None else refuse(f"has no variable {name!r}")

    def constant(self, array: NDArray[Any], name: str) -> Value:
        """A constant of the layer: ``name`` as in Keras, after the layer's."""
        return self.graph.constant(array, name=f"{self.layer.name}/{name}")

    @property
    def channels_first(self) -> bool:
        """Whether channels come before places."""
        return bool(self.config("data_format") == "channels_first")

    def places_last(self, x: Value, function: Callable[[Value], Value]) -> Value:
        """A function of pictures whose channels come last, for either layout."""
        if not self.channels_first:
            return function(x)
        return shapes.channels_first(self.graph, function(shapes.channels_last(self.graph, x)))


def tensors(structure: Any) -> Iterator[Value]:
    """The values in lists and dictionaries; of dictionaries in the order of their keys, as Keras has them."""
    if isinstance(structure, Value):
        yield structure
    elif isinstance(structure, dict):
        for key in sorted(structure):
            yield from tensors(structure[key])
    elif isinstance(structure, (list, tuple)):
        for element in structure:
            yield from tensors(element)


def floating(graph: Graph, x: Value) -> Value:
    """A value as float32."""
    return shapes.cast(graph, x, TensorType.FLOAT32)


def is_floating(x: Value) -> bool:
    """Whether the elements are floats."""
    return x.dtype.kind == "f"


def pair(value: Any, rank: int) -> tuple[int, ...]:
    """A number for each axis, where one stands for all."""
    return tuple([int(number) for number in value]) if isinstance(value, Sequence) else (int(value),) * rank


lowers = Lowerings[Call](__name__)
