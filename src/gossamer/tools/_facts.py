"""What a model says of itself that a tool can use: labels, normalization, sampling rate, who makes its output."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ModelError
from gossamer.inputs.pictures import Normalization
from gossamer.inputs.properties import picture_size, properties
from gossamer.inputs.session import Session
from gossamer.model import Model
from gossamer.model.metadata import exporter_facts, model_metadata
from gossamer.model.metadata import labels as stored_labels
from gossamer.records import record
from gossamer.schema import TensorType
from gossamer.tools._answers import Question
from gossamer.tools._labels import Labels, numbered

Array = NDArray[Any]

_PASS_ON = ("DEQUANTIZE", "QUANTIZE", "RESHAPE", "SQUEEZE", "CAST")
"""Operators that hand values on: what counts is the operator before them."""


@record(frozen=True)
class Facts:
    """Facts of the subgraph that a session runs; ``fault`` says why the metadata could not be read.

    ``normalization`` is by position of the input; ``assumed`` tells the user of one that only the outputs suggest.
    ``maker`` is the operator that makes the first output. ``size`` is the height and width of the pictures that the
    model takes, ``keypoints`` how many it says its objects have, ``turned`` whether it says that boxes are turned, and
    ``constants`` gives its constant tensors of a shape.
    """

    labels: Labels
    normalization: Mapping[int, Normalization]
    rate: int | None
    maker: str
    fault: str | None = None
    assumed: str = ""
    size: tuple[int, int] | None = None
    keypoints: int = 0
    turned: bool = False
    constants: Callable[[tuple[int, ...]], Sequence[Array]] = lambda shape: ()

    def question(self, labels: Labels, top_k: int, threshold: float, iou: float, max_boxes: int) -> Question:
        """What is asked of outputs, with these labels and options."""
        return Question(
            labels, self.maker, top_k, threshold, iou, max_boxes, self.size, self.keypoints, self.turned, self.constants
        )


def read_facts(session: Session) -> Facts:
    """The facts in the metadata, the appended files and the operators of a model."""
    model = session.model
    made = maker(model, session.subgraph, session.outputs[0].index) if session.outputs else ""
    size = picture_size(session.inputs)
    constants = partial(_constants, model, session.subgraph)
    try:
        metadata, exported = model_metadata(model), exporter_facts(model)
        labels = numbered(stored_labels(model) or [])
    except ModelError as error:
        return Facts({}, {}, None, made, str(error), size=size, constants=constants)
    known = properties(metadata, exported, model, session.subgraph, session.inputs, session.outputs)
    match exported.get("kpt_shape"):
        case [int(keypoints), 3]:
            pass
        case _:
            keypoints = 0
    turned = exported.get("task") == "obb"
    return Facts(labels, known.normalization, known.rate, made, None, known.assumed, size, keypoints, turned, constants)


def _constants(model: Model, subgraph: int, shape: tuple[int, ...]) -> list[Array]:
    found = []
    for tensor in model.subgraphs[subgraph].tensors:
        if tuple(tensor.shape) == shape and tensor.type == TensorType.FLOAT32:
            data = model.tensor_data(tensor)
            if data is not None and data.size == 4 * math.prod(shape):
                found.append(data.view(np.float32).reshape(shape))
    return found


def maker(model: Model, subgraph: int, tensor: int) -> str:
    """The name of the operator that makes a tensor, looking through those that only reshape or convert it."""
    operators = model.subgraphs[subgraph].operators
    makers = {output: operator for operator in operators for output in operator.outputs}
    for _ in operators:
        operator = makers.get(tensor)
        if operator is None:
            return ""
        name = model.operator_name(operator)
        if name not in _PASS_ON or not operator.inputs:
            return name
        tensor = operator.inputs[0]
    return ""
