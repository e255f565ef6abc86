"""Stored models: read, checked, changed and written."""

from gossamer.model.model import Model
from gossamer.model.reader import ModelFile, map_model, read_model
from gossamer.model.verifier import Fault, verify_model

__all__ = ["Fault", "Model", "ModelFile", "map_model", "read_model", "verify_model"]
