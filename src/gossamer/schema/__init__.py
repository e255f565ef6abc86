"""The .tflite file format: enums, tables and unions, as the published schema (version 3) names them.

Options of operators are imported when somebody asks for them: a model that is known needs none (`runtime.known`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gossamer.schema.enums import *
from gossamer.schema.fields import Field as Field
from gossamer.schema.fields import Table as Table
from gossamer.schema.fields import Union as Union
from gossamer.schema.tables import *

if TYPE_CHECKING:
    from gossamer.schema.options import *


def __getattr__(name: str) -> Any:
    if "Options" in name:
        return getattr(import_module("gossamer.schema.options"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
