"""What comes before and after a model: a small model is built and merged with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.convert.graph import Value
from gossamer.edit.builder import Builder
from gossamer.edit.documented import records_of, with_records
from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.merge import merge
from gossamer.edit.names import Graph, Name, unique
from gossamer.edit.options import tensor_type
from gossamer.errors import EditError
from gossamer.model.model import Model
from gossamer.schema.enums import TensorType
from gossamer.schema.metadata import AssociatedFileType, TensorMetadata
from gossamer.schema.tables import Tensor, TensorMap

BOXES = ("yxyx", "xyxy", "cxcywh")
"""How a box is said: two corners, y or x first, or centre and size."""


def prepend(source: Source, build: Callable[[Builder, str, Tensor], Value], input: Name | None = None) -> Model:
    """A model with operators before an input. ``build(b, name, tensor)`` makes an input of ``b``, a `Builder`, of that
    name, and returns what goes to the model, whose input is ``tensor``. The other inputs keep their places.

    Raises `EditError` if what it returns does not fit.
    """
    model = opened(source)
    graph = Graph(model, 0)
    number = graph.input(input)
    name = graph.name(number)
    b = Builder("before", signature=None)
    b.output(unique(f"{name}_prepared", _names(model)), build(b, name, graph.subgraph.tensors[number]))
    small = b.finish()
    merged = merge(small, model, connect=[(small.subgraphs[0].outputs[0], number)])
    inputs, count = list(merged.subgraphs[0].inputs), len(small.subgraphs[0].inputs)
    place = graph.subgraph.inputs.index(number)
    inputs[:] = [*inputs[count : count + place], *inputs[:count], *inputs[count + place :]]
    ended = _with_ends(merged, inputs, None, {name: graph.argument(number, False)}, "inputs")
    told = records_of(model)
    if told is not None:  # what is done before the model now need not be done by who calls it
        first = list(told[0])
        first[place] = first[place].replace(process_units=())
        ended = with_records(ended, tuple(first), told[1], model)
    return finished(model, ended)


def append(
    source: Source,
    build: Callable[..., Value | Sequence[Value]],
    outputs: Name | Sequence[Name] | None = None,
    *,
    names: Sequence[str] = (),
    keep: bool = False,
) -> Model:
    """A model with operators behind outputs. ``build(b, *values)`` puts them on the values of these outputs, the only
    one if left out, with ``b``, a `Builder`, and returns what comes out, under ``names``. The results take the place of
    the outputs, which stay before them with ``keep``.

    Raises `EditError` if an operator refuses.
    """
    model = opened(source)
    graph = Graph(model, 0)
    listed = [outputs] if outputs is None or isinstance(outputs, (str, int)) else list(outputs)
    numbers = [graph.output(one) for one in listed]
    b = Builder("behind", signature=None)
    used = _names(model)
    values = [_as_input(b, unique(f"{graph.name(n)}_raw", used), graph.subgraph.tensors[n]) for n in numbers]
    made = build(b, *values)
    results = [made] if isinstance(made, Value) else list(made)
    for position, value in enumerate(results):
        called = names[position] if position < len(names) else f"{graph.name(numbers[0])}_{value.name or position}"
        b.output(unique(called, used), value)
    small = b.finish()
    merged = merge(model, small, connect=list(zip(numbers, small.subgraphs[0].inputs, strict=True)), keep=keep)
    ends = list(merged.subgraphs[0].outputs)
    if not keep:
        place = graph.subgraph.outputs.index(numbers[0])
        place -= sum(graph.subgraph.outputs.index(n) < place for n in numbers)
        new = ends[-len(results) :]
        rest = ends[: -len(results)]
        ends = [*rest[:place], *new, *rest[place:]]
    ended = _with_ends(merged, None, ends, {}, "outputs")
    told = records_of(model)
    if told is not None:
        known = dict(zip(graph.subgraph.outputs, told[1], strict=True))
        new = [ended.subgraphs[0].outputs.index(n) for n in ends if n not in graph.subgraph.outputs]
        records = [known.get(n, TensorMetadata()) for n in ends]
        records[new[0]] = _of_result(known[numbers[0]], results[0], values[0])
        ended = with_records(ended, told[0], tuple(records), model)
    return finished(model, ended)


def _of_result(record: TensorMetadata, result: Value, value: Value) -> TensorMetadata:
    """What was said of an output, of what becomes of it: labels of its classes are those of values that are indices."""
    if result.dims == value.dims:
        return record
    if result.node is None or not result.node.op.startswith("ARG_"):
        return TensorMetadata()
    files = tuple([file.replace(type=AssociatedFileType.TENSOR_VALUE_LABELS) for file in record.associated_files])
    return TensorMetadata(name=record.name, description=record.description, associated_files=files)


def _names(model: Model) -> set[str]:
    return {tensor.name for tensor in model.subgraphs[0].tensors}


def _with_ends(model: Model, inputs: Any, outputs: Any, arguments: dict[str, str], side: str) -> Model:
    main, *others = model.subgraphs
    changes = {name: tuple(ends) for name, ends in (("inputs", inputs), ("outputs", outputs)) if ends is not None}
    main = main.replace(**changes)
    signatures = []
    for signature in model.signature_defs:
        if signature.subgraph_index == 0:
            entries = sorted(getattr(signature, side), key=lambda entry: getattr(main, side).index(entry.tensor_index))
            named = [
                TensorMap(name=arguments.get(one.name, one.name), tensor_index=one.tensor_index) for one in entries
            ]
            signature = signature.replace(**{side: tuple(named)})
        signatures.append(signature)
    fields = {"signature_defs": tuple(signatures)} if signatures else {}
    return model.replace(subgraphs=(main, *others), **fields)


def _sizes(tensor: Tensor) -> list[int | None]:
    return [None if size < 0 else size for size in tensor.shape_signature or tensor.shape]


def _quantized(tensor: Tensor) -> tuple[float, int] | None:
    stored = tensor.quantization
    if stored is None or stored.scale.size != 1 or tensor.type == TensorType.FLOAT32:
        return None
    return float(stored.scale[0]), int(stored.zero_point[0]) if stored.zero_point.size else 0


def _as_input(b: Builder, name: str, tensor: Tensor) -> Value:
    scale, zero_point = _quantized(tensor) or (None, 0)
    return b.input(name, _sizes(tensor), tensor.type, scale=scale, zero_point=zero_point)


def _ints(values: Sequence[int | None]) -> NDArray[np.int32]:
    return np.array(values, np.int32)


def _as_float(b: Builder, value: Value) -> Value:
    """The value as float32."""
    if value.type == TensorType.FLOAT32:
        return value
    found: Value
    if value.quantization or value.type == TensorType.FLOAT16:
        found = b.add("DEQUANTIZE", value)
    else:
        found = b.add("CAST", value, type="float32", in_data_type=value.type, out_data_type="float32")
    return found


def _as_tensor(b: Builder, value: Value, tensor: Tensor) -> Value:
    """Floats as an input of the model takes them."""
    quantization = _quantized(tensor)
    if quantization is not None:
        scale, zero_point = quantization
        quantized: Value = b.add("QUANTIZE", value, type=tensor.type, scale=scale, zero_point=zero_point)
        return quantized
    if tensor.type == TensorType.FLOAT32:
        return value
    cast: Value = b.add("CAST", value, type=tensor.type, in_data_type=TensorType.FLOAT32, out_data_type=tensor.type)
    return cast


def normalize(
    source: Source, mean: ArrayLike = 0.0, std: ArrayLike = 1.0, *, type: Any = None, input: Name | None = None
) -> Model:
    """A model that takes values as they are, and computes ``(x - mean) * (1 / std)`` in float32 first; ``mean`` and
    ``std`` are numbers, or one for each channel. ``type``: that of the new input, as ``"uint8"`` for pictures, else
    float32. Where the model takes quantized values, they are quantized behind that.

    Raises `EditError` for a ``std`` of 0 and an input that these do not fit.
    """
    means, stds = np.asarray(mean, np.float32), np.asarray(std, np.float32)
    if not (np.isfinite(means).all() and np.isfinite(stds).all() and stds.all()):
        raise EditError(f"mean and std are numbers, std not 0; got {mean!r} and {std!r}")

    def build(b: Builder, name: str, tensor: Tensor) -> Value:
        value = b.input(name, _sizes(tensor), TensorType.FLOAT32 if type is None else tensor_type(type))
        value = _as_float(b, value)
        if means.any():
            value = b.add("SUB", value, means, name=f"{name}_centred")
        if (stds != 1).any():
            value = b.add("MUL", value, np.float32(1) / stds, name=f"{name}_scaled")
        return _as_tensor(b, value, tensor)

    return prepend(source, build, input)


def resize(
    source: Source, height: int | None, width: int | None, *, method: str = "bilinear", input: Name | None = None
) -> Model:
    """A model that takes pictures of another size, ``None`` for any, and brings them to its own first: ``method`` is
    ``"bilinear"`` or ``"nearest"``, both with half-pixel centres.

    Raises `EditError` if the input is no batch of pictures.
    """
    ops = {"bilinear": "RESIZE_BILINEAR", "nearest": "RESIZE_NEAREST_NEIGHBOR"}
    if method not in ops:
        raise EditError(f"method is {' or '.join(map(repr, ops))}, got {method!r}")

    def build(b: Builder, name: str, tensor: Tensor) -> Value:
        sizes = _sizes(tensor)
        if len(sizes) != 4 or None in sizes[1:3]:
            raise EditError(f"input {name!r} is no batch of pictures of a known size: its shape is {sizes}")
        scale, zero_point = _quantized(tensor) or (None, 0)
        value = b.input(name, [sizes[0], height, width, sizes[3]], tensor.type, scale=scale, zero_point=zero_point)
        made: Value = b.add(ops[method], value, _ints(sizes[1:3]), half_pixel_centers=True)
        return made

    return prepend(source, build, input)


def softmax(source: Source, output: Name | None = None, *, beta: float = 1.0, keep: bool = False) -> Model:
    """A model whose output goes through a softmax along its last dimension, in float32."""
    return append(source, lambda b, x: b.add("SOFTMAX", _as_float(b, x), beta=beta), output, keep=keep)


def argmax(
    source: Source, output: Name | None = None, *, axis: int = -1, type: Any = "int32", keep: bool = False
) -> Model:
    """A model that gives the index of the greatest value along a dimension, int32 or int64."""
    kind = tensor_type(type)
    return append(
        source, lambda b, x: b.add("ARG_MAX", x, np.int32(axis), type=kind, output_type=kind), output, keep=keep
    )


def top_k(source: Source, k: int, output: Name | None = None, *, keep: bool = False) -> Model:
    """A model that gives the ``k`` greatest values along the last dimension, and their indices."""
    return append(source, lambda b, x: b.add("TOPK_V2", x, np.int32(k)), output, names=("values", "indices"), keep=keep)


def nms(
    source: Source,
    boxes: Name | None = None,
    scores: Name | None = None,
    *,
    form: str = "yxyx",
    most: int = 100,
    iou: float = 0.5,
    score: float = 0.25,
    keep: bool = False,
) -> Model:
    """A model that leaves out boxes which overlap better ones of the same picture by more than ``iou``, whatever their
    classes, and those of a score under ``score``. For one picture at a time.

    ``boxes``: an output [1, n, 4], in the ``form`` yxyx, xyxy or cxcywh; ``scores``: one [1, n] or [1, n, classes].
    Without ``scores`` the output has both, as YOLO's have: [1, 4 + classes, n] or [1, n, 4 + classes]. It gives boxes
    [most, 4] as yxyx, scores [most], classes [most] and how many there are, count; those behind that are 0.

    Raises `EditError` for other shapes.
    """
    if form not in BOXES:
        raise EditError(f"form is {', '.join(BOXES)}, got {form!r}")

    def build(b: Builder, *values: Value) -> list[Value]:
        floats = [_as_float(b, value) for value in values]
        corners, confidence = (floats[0], floats[1]) if len(floats) == 2 else _apart(b, floats[0])
        if corners.rank != 3 or corners.shape[0] != 1 or corners.shape[2] != 4 or confidence.rank not in (2, 3):
            raise EditError(f"boxes are [1, n, 4], scores [1, n] or [1, n, classes]; got {corners}, {confidence}")
        count = corners.shape[1]
        if confidence.shape[:2] != (1, count):
            raise EditError(f"there are {count} boxes, and scores {list(confidence.shape)}")
        flat = _corners(b, b.add("RESHAPE", corners, _ints([count, 4])), form)
        if confidence.rank == 3:
            table = b.add("RESHAPE", confidence, _ints([count, confidence.shape[2]]))
            best = b.add("REDUCE_MAX", table, _ints([1]))
            classes = b.add("ARG_MAX", table, np.int32(1), type="int32", output_type="int32")
        else:
            best = b.add("RESHAPE", confidence, _ints([count]))
            classes = b.add(
                "CAST", b.add("MUL", best, 0.0), type="int32", in_data_type="float32", out_data_type="int32"
            )
        chosen, found = b.add(
            "NON_MAX_SUPPRESSION_V4", flat, best, np.int32(most), np.float32(iou), np.float32(score), outputs=2
        )
        return [
            *[_kept(b, b.add("GATHER", one, chosen, axis=0), found, most) for one in (flat, best, classes)],
            found,
        ]

    names = ("boxes", "scores", "classes", "count")
    return append(source, build, boxes if scores is None else [_one(boxes), scores], names=names, keep=keep)


def _one(boxes: Name | None) -> Name:
    if boxes is None:
        raise EditError("say which output has the boxes")
    return boxes


def _kept(b: Builder, values: Value, found: Value, most: int) -> Value:
    """The first so many; the others 0."""
    place = np.arange(most, dtype=np.int32).reshape([-1] + [1] * (values.rank - 1))
    there = b.add("LESS", b.constant(place), found)
    whole = b.add("CAST", there, type=values.type, in_data_type="bool", out_data_type=values.type)
    made: Value = b.add("MUL", values, whole)
    return made


def _apart(b: Builder, both: Value) -> tuple[Value, Value]:
    """Boxes and scores of one tensor; the shorter one of its two dimensions are the numbers of a box."""
    if both.rank != 3 or both.shape[0] != 1 or min(both.shape[1:]) < 5:
        raise EditError(f"an output with boxes and scores is [1, 4 + classes, n] or [1, n, 4 + classes]; got {both}")
    if both.shape[1] < both.shape[2]:
        both = b.add("TRANSPOSE", both, _ints([0, 2, 1]))
    _, count, numbers = both.shape
    parts = [
        b.add("SLICE", both, _ints([0, 0, start]), _ints([1, count, size]))
        for start, size in ((0, 4), (4, numbers - 4))
    ]
    return parts[0], parts[1]


def _corners(b: Builder, boxes: Value, form: str) -> Value:
    """Boxes [n, 4] as yxyx."""
    if form == "yxyx":
        return boxes
    if form == "xyxy":
        order: Value = b.add("GATHER", boxes, _ints([1, 0, 3, 2]), axis=1)
        return order
    count = boxes.shape[0]
    centre, size = (
        b.add("GATHER", boxes, _ints(places), axis=1, name=name)
        for places, name in (([1, 0], "centres"), ([3, 2], "sizes"))
    )
    half = b.add("MUL", size, 0.5)
    if centre.shape != (count, 2):
        raise EditError(f"boxes have four numbers each, got {boxes}")
    whole: Value = b.add("CONCATENATION", b.add("SUB", centre, half), b.add("ADD", centre, half), axis=1)
    return whole
