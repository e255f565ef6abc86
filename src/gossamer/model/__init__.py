"""Stored models: read, checked, changed and written."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gossamer.model.model import Model
from gossamer.model.reader import ModelFile, map_model, read_model

if TYPE_CHECKING:
    from gossamer.model.verifier import Fault, verify_model
    from gossamer.model.writer import write_model

__all__ = ["Fault", "Model", "ModelFile", "map_model", "read_model", "verify_model", "write_model"]

_LATE = {"Fault": "verifier", "verify_model": "verifier", "write_model": "writer"}
"""What a model that is known does not need, by module."""


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f"gossamer.model.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
