"""A float model with the ranges of its values in it: what TFLite's converter calls calibrated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.quantize.calibrate import calibrate
from gossamer.schema import tables


def calibrated(model: Model, samples: Iterable[Any]) -> bytes:
    """The model, with the least and the greatest value of each float tensor that is computed in the fields ``min`` and
    ``max`` of its quantization, as the bytes of a file. Raises `ConvertError` as `calibrate` does."""
    ranges = calibrate(model, samples)
    subgraphs = []
    for number, subgraph in enumerate(model.subgraphs):
        tensors = [
            tensor.replace(
                quantization=tables.QuantizationParameters(
                    min=np.array([ranges[number, index][0]], np.float32),
                    max=np.array([ranges[number, index][1]], np.float32),
                )
            )
            if (number, index) in ranges
            else tensor
            for index, tensor in enumerate(subgraph.tensors)
        ]
        subgraphs.append(subgraph.replace(tensors=tuple(tensors)))
    return write_model(model.replace(subgraphs=tuple(subgraphs)))
