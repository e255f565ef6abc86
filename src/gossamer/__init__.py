"""Gossamer: TensorFlow Lite in Python."""

import gossamer.delegates.jit as _jit  # noqa: F401 (found by name; a first model need not wait for its import)
from gossamer.delegates import load_delegate
from gossamer.delegates.delegate import Delegate, DelegateFlags, DelegateKernel
from gossamer.errors import (
    ArenaError,
    CancelledError,
    CompileError,
    DeadlineExceededError,
    DelegateError,
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

__all__ = [
    "ArenaError",
    "CancelledError",
    "CompileError",
    "DeadlineExceededError",
    "Delegate",
    "DelegateError",
    "DelegateFlags",
    "DelegateKernel",
    "GossamerError",
    "Interpreter",
    "InterpreterWithCustomOps",
    "InvokeError",
    "ModelError",
    "MutableOpResolver",
    "OpResolver",
    "OpResolverType",
    "PrepareError",
    "SignatureRunner",
    "UnsupportedOpError",
    "__version__",
    "custom_op",
    "load_delegate",
]
