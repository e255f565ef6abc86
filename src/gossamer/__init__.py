"""Gossamer: TensorFlow Lite in Python."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

import gossamer.interrupts as _interrupts  # noqa: F401 (before all that takes time)

# isort: split
import gossamer.delegates.jit as _jit  # noqa: F401 (found by name; a first model need not wait for its import)
from gossamer.delegates import load_delegate
from gossamer.delegates.delegate import Delegate, DelegateFlags, DelegateKernel
from gossamer.errors import (
    ArenaError,
    CancelledError,
    CompileError,
    ConvertError,
    DeadlineExceededError,
    DelegateError,
    EditError,
    GossamerError,
    InvokeError,
    ModelError,
    PrepareError,
    UnsupportedOpError,
)
from gossamer.ops.custom_op import custom_op
from gossamer.release import __version__
from gossamer.resolver import MutableOpResolver, OpResolver, OpResolverType
from gossamer.runtime.custom_ops import InterpreterWithCustomOps
from gossamer.runtime.interpreter import Interpreter
from gossamer.runtime.signature import SignatureRunner

if TYPE_CHECKING:
    from gossamer import edit
    from gossamer.compare.comparison import diff
    from gossamer.convert.tflite_converter import (
        OpsSet,
        Optimize,
        RepresentativeDataset,
        TargetSpec,
        TFLiteConverter,
    )
    from gossamer.edit.builder import Builder
    from gossamer.flex.user import flex_op
    from gossamer.profiling.profile import profile
    from gossamer.quantize.debugger import QuantizationDebugger, QuantizationDebugOptions

_LATE = {
    "gossamer": ("edit",),
    "gossamer.compare.comparison": ("diff",),
    "gossamer.convert.tflite_converter": (
        "OpsSet",
        "Optimize",
        "RepresentativeDataset",
        "TFLiteConverter",
        "TargetSpec",
    ),
    "gossamer.edit.builder": ("Builder",),
    "gossamer.flex.user": ("flex_op",),
    "gossamer.profiling.profile": ("profile",),
    "gossamer.quantize.debugger": ("QuantizationDebugOptions", "QuantizationDebugger"),
}
"""What is imported when it is asked for, by module; of the package itself, its modules."""

__all__ = [
    "ArenaError",
    "Builder",
    "CancelledError",
    "CompileError",
    "ConvertError",
    "DeadlineExceededError",
    "Delegate",
    "DelegateError",
    "DelegateFlags",
    "DelegateKernel",
    "EditError",
    "GossamerError",
    "Interpreter",
    "InterpreterWithCustomOps",
    "InvokeError",
    "ModelError",
    "MutableOpResolver",
    "OpResolver",
    "OpResolverType",
    "OpsSet",
    "Optimize",
    "PrepareError",
    "QuantizationDebugOptions",
    "QuantizationDebugger",
    "RepresentativeDataset",
    "SignatureRunner",
    "TFLiteConverter",
    "TargetSpec",
    "UnsupportedOpError",
    "__version__",
    "custom_op",
    "diff",
    "edit",
    "flex_op",
    "load_delegate",
    "profile",
]


def __getattr__(name: str) -> _Any:
    # Who runs models need not wait for the converter.
    for module, names in _LATE.items():
        if name in names:
            return _import_module(f"{module}.{name}") if module == "gossamer" else getattr(_import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
