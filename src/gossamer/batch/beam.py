"""A model as a `ModelHandler` for ``RunInference`` of Apache Beam."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gossamer.batch.model_file import ModelFile
from gossamer.batch.predictor import ERROR, Predictor
from gossamer.errors import InputError
from gossamer.inputs.samples import Preparation
from gossamer.model import Model

try:
    from apache_beam.ml.inference import base
except ImportError as missing:
    raise ImportError("gossamer.batch.beam needs Apache Beam; install gossamer[beam].") from missing


class ModelHandler(base.ModelHandler[Any, base.PredictionResult, Predictor]):  # type: ignore[misc]  # no stubs
    """Loads a ``.tflite`` model once in a process, whose threads share it, and predicts batches of examples.

    An example is the cell of an input as of `Predictor`, or, for a model with several, a dictionary of cells by the
    names of the inputs. A prediction is ``PredictionResult(example, inference, model_id)``: ``inference`` has the
    outputs by name and ``error``, which is ``None`` where all is well; where it is not, it has no outputs.

    ``batching``: Beam's own arguments, such as ``max_batch_size``. The others are those of `Predictor`. The model may
    be replaced while a pipeline runs, by the path that ``model_metadata_pcoll`` gives.

    Raises `InputError` for arguments that the model cannot have.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes | Model | ModelFile,
        signature: str | None = None,
        preparation: Preparation | None = None,
        *,
        dequantize: bool = False,
        batch_size: int | None = None,
        threads: int = 1,
        **batching: Any,
    ) -> None:
        super().__init__(**batching)
        self._model = model if isinstance(model, ModelFile) else ModelFile(model)
        self._arguments = (signature, preparation)
        self._options = {"dequantize": dequantize, "batch_size": batch_size, "threads": threads}
        self.load_model()  # what is wrong is said here, not by a worker

    def load_model(self) -> Predictor:
        """The model, ready to run in this process."""
        return Predictor(self._model, *self._arguments, **self._options)  # type: ignore[arg-type]

    def run_inference(
        self, batch: Sequence[Any], model: Predictor, inference_args: Mapping[str, Any] | None = None
    ) -> Iterable[base.PredictionResult]:
        """A prediction for each example, in their order."""
        found = model.predictions(_columns(batch, model))
        for example, one in zip(batch, found, strict=True):
            yield base.PredictionResult(example, {**(one.outputs or {}), ERROR: one.error}, model.model.name)

    def get_num_bytes(self, batch: Sequence[Any]) -> int:
        """Of the cells of examples."""
        cells = [cell for one in batch for cell in (one.values() if isinstance(one, Mapping) else [one])]
        return sum(map(_size, cells))

    def get_metrics_namespace(self) -> str:
        """Under which Beam counts."""
        return "BeamML_Gossamer"

    def validate_inference_args(self, inference_args: Mapping[str, Any] | None) -> None:
        """Raises `InputError` for any: a ``.tflite`` model takes inputs alone."""
        if inference_args:
            raise InputError(f"there are no further arguments of a run; got {', '.join(inference_args)}.")

    def update_model_path(self, model_path: str | None = None) -> None:
        """Load this one from now on."""
        if model_path:
            self._model = ModelFile(model_path)


def _columns(batch: Sequence[Any], model: Predictor) -> list[list[Any]]:
    columns = []
    for port in model.inputs:
        cells = []
        for example in batch:
            if isinstance(example, Mapping):
                cells.append(next((cell for name, cell in example.items() if port.answers_to(name)), None))
            else:
                cells.append(example if len(model.inputs) == 1 else None)
        columns.append(cells)
    return columns


def _size(cell: Any) -> int:
    if isinstance(cell, (bytes, str)):
        return len(cell)
    return cell.nbytes if hasattr(cell, "nbytes") else len(pickle.dumps(cell))
