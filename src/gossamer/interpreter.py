"""The names of ``tflite_runtime.interpreter``, for programs that import that module as ``tflite``."""

from gossamer.delegates import load_delegate
from gossamer.delegates.delegate import Delegate
from gossamer.resolver import OpResolverType
from gossamer.runtime.custom_ops import InterpreterWithCustomOps
from gossamer.runtime.interpreter import Interpreter
from gossamer.runtime.signature import SignatureRunner

__all__ = ["Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate"]
