"""Stored models: read, checked, changed and written."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gossamer.model.model import Model
from gossamer.model.reader import ModelFile, map_model, read_model

if TYPE_CHECKING:
    from gossamer.model.verifier import Fault, verify_model

__all__ = ["Fault", "Model", "ModelFile", "map_model", "read_model", "verify_model"]


def __getattr__(name: str) -> Any:
    if name in ("Fault", "verify_model"):  # a model that is known is not verified
        return getattr(import_module("gossamer.model.verifier"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
