"""Which values a float model's tensors have: its samples, run on our own interpreter with every tensor watched.

Statistics are those of TFLite's calibrator: the least and the greatest value of all elements over all samples, without
averaging. Samples are lists in the order of the inputs, dictionaries by their names, or pairs of a signature's key and
a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.ops.op_def import TensorInfo
from gossamer.runtime.interpreter import Interpreter

Ranges = dict[tuple[int, int], tuple[float, float]]
"""The least and the greatest value, by the numbers of subgraph and tensor."""

Sample = Any


def calibrate(model: Model, samples: Iterable[Sample], progress: Callable[[int], object] | None = None) -> Ranges:
    """The ranges of all float tensors that are computed. Raises `ConvertError` for a sample that does not fit, saying
    which, and if there is none."""
    interpreter = Interpreter(model_content=write_model(model))
    ranges: Ranges = {}

    def watch(subgraph: int, tensor: TensorInfo, value: NDArray[Any]) -> None:
        if value.dtype.kind == "f" and value.size:
            key = (subgraph, tensor.index)
            low, high = float(np.nanmin(value)), float(np.nanmax(value))
            known = ranges.get(key, (low, high))
            ranges[key] = min(known[0], low), max(known[1], high)

    for subgraph in range(len(model.subgraphs)):
        interpreter.tap(partial(watch, subgraph), subgraph_index=subgraph)
    count = 0
    for sample in samples:
        try:
            _run(interpreter, sample)
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise ConvertError(f"sample {count} of the calibration does not fit the model: {error}") from error
        count += 1
        if progress is not None:
            progress(count)
    if not count:
        raise ConvertError("the representative dataset gives no samples for the calibration")
    return ranges


def _run(interpreter: Interpreter, sample: Sample) -> None:
    key = None
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str):
        key, sample = sample
    if isinstance(sample, Mapping):
        runner = interpreter.get_signature_runner(key)
        names = list(runner.get_input_details())
        if len(names) == len(sample) == 1:  # nothing can be mixed up
            sample = dict(zip(names, sample.values(), strict=True))
        runner(**{name: np.asarray(value) for name, value in sample.items()})
        return
    details = interpreter.get_input_details()
    values: Sequence[Any] = list(sample)
    if len(values) != len(details):
        raise ValueError(f"it has {len(values)} arrays, the model {len(details)} inputs")
    for detail, value in zip(details, values, strict=True):
        array = np.asarray(value)
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, values, strict=True):
        interpreter.set_tensor(detail["index"], np.asarray(value, detail["dtype"]))
    interpreter.invoke()
