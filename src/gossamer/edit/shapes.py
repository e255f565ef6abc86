"""Other shapes for inputs, and for all that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gossamer.convert.graph import Size, unknown
from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.infer import Change, with_shapes
from gossamer.edit.names import Graph, Name
from gossamer.errors import EditError
from gossamer.model.model import Model
from gossamer.ops.op_def import OpDef

Told = Callable[[Change], object]
"""Is told of each constant that was changed."""


def batch(
    source: Source, size: int | None, *, custom_ops: Sequence[OpDef] = (), on_change: Told | None = None
) -> Model:
    """A model for another number of examples at once, the first size of its inputs; ``None`` leaves it open.

    Constants that hold the old number are changed where the operator that takes them does the same for each example.
    Raises `EditError` where one does not, or mixes examples; see `reshape`.
    """
    model = opened(source)
    inputs = model.subgraphs[0].inputs
    shapes: dict[Name, Sequence[int | None]] = {}
    tensors = [model.subgraphs[0].tensors[number] for number in inputs]
    first = {tensor.shape[0] for tensor in tensors if tensor.shape}
    for number, tensor in zip(inputs, tensors, strict=True):
        if tensor.shape and (tensor.shape[0] == max(first) or tensor.shape_signature[:1] == (-1,)):
            sizes = tensor.shape_signature or tensor.shape
            shapes[number] = [size, *[None if one < 0 else one for one in sizes[1:]]]
    if not shapes:
        raise EditError("no input has a size that could be a batch: all are scalars")
    return reshape(model, shapes, custom_ops=custom_ops, on_change=on_change)


def reshape(
    source: Source,
    shapes: Mapping[Name, Sequence[int | None]],
    *,
    custom_ops: Sequence[OpDef] = (),
    on_change: Told | None = None,
) -> Model:
    """A model whose inputs, by name or number, have other shapes; ``None`` or -1 leaves a size open until it runs. All
    other shapes follow from them, as each operator's own ``prepare`` says.

    ``custom_ops``: operators that only you have. ``on_change`` is told of constants that were changed.
    Raises `EditError` for an operator that refuses the new shapes, is made for the old ones, or is not known.
    """
    model = opened(source)
    graph = Graph(model, 0)
    wanted: dict[int, list[int | Size]] = {}
    for name, sizes in shapes.items():
        number = graph.input(name)
        tensor = graph.subgraph.tensors[number]
        if len(sizes) != len(tensor.shape) and (tensor.shape or tensor.has_rank):
            raise EditError(f"input {graph.brief(number)} has {len(tensor.shape)} dimensions, got {list(sizes)}")
        wanted[number] = [_size(size, axis, tensor.shape) for axis, size in enumerate(sizes)]
    changed, constants = with_shapes(model, wanted, custom_ops)
    for change in constants:
        if on_change is not None:
            on_change(change)
    return finished(model, changed)


def _size(size: int | None, axis: int, shape: Sequence[int]) -> int | Size:
    if size is None or size == -1:
        return unknown(axis, large=axis > 0 and len(shape) == 4)
    if not isinstance(size, int) or size < 0:
        raise EditError(f"a size is a number, or None for one that is left open; got {size!r}")
    return size
