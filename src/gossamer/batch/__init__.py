"""Many rows through one model: tables, folders, archives in, Parquet out; by itself, or in an engine of a cluster."""

from gossamer.batch.job import Summary, run
from gossamer.batch.model_file import ModelFile
from gossamer.batch.predictor import Prediction, Predictor
from gossamer.inputs.samples import Preparation

__all__ = ["ModelFile", "Prediction", "Predictor", "Preparation", "Summary", "run"]
