"""Stored models: read, checked, changed and written."""

from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.verifier import Fault, verify_model

__all__ = ["Fault", "Model", "read_model", "verify_model"]
