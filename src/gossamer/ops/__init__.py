"""The operators, one file each, named after the operator; whoever needs one finds it by its name.

``CONV_2D`` is ``conv_2d.py``, ``WHILE`` is ``while_.py`` (a keyword gets an underscore), the custom operator
``TFLite_Detection_PostProcess`` is ``custom/tflite_detection_postprocess.py``. A file is imported when a model first
uses its operator; there is no list to keep.
"""

from __future__ import annotations

import importlib
import keyword
import re
from collections.abc import Iterator
from functools import cache

from gossamer.ops.op_def import OpDef


def module_name(name: str, *, custom: bool = False) -> str:
    """The module that holds an operator, by rule; it need not exist."""
    stem = re.sub(r"\W", "_", name.lower())
    if keyword.iskeyword(stem):
        stem += "_"
    return f"{__name__}.custom.{stem}" if custom else f"{__name__}.{stem}"


@cache
def find_op(name: str, *, custom: bool = False) -> OpDef | None:
    """The operator of this name, or ``None`` if there is no such file."""
    path = module_name(name, custom=custom)
    if not name.isascii() or not path.rpartition(".")[2].isidentifier():
        return None
    try:
        op = getattr(importlib.import_module(path), "op", None)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return None
    return op if isinstance(op, OpDef) and op.name == name else None


def all_ops() -> Iterator[OpDef]:
    """Every operator that ships, builtin ones first, in alphabetical order of their files."""
    import pkgutil

    from gossamer.ops import custom

    for package in (importlib.import_module(__name__), custom):
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
            op = getattr(importlib.import_module(f"{package.__name__}.{info.name}"), "op", None)
            if isinstance(op, OpDef):
                yield op
