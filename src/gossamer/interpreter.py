"""For programs that say ``import tflite_runtime.interpreter as tflite``: the same names under ``gossamer.interpreter``."""

from gossamer.delegates import load_delegate
from gossamer.resolver import OpResolverType
from gossamer.runtime.interpreter import Interpreter, InterpreterWithCustomOps
from gossamer.runtime.signature import SignatureRunner

__all__ = ["Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate"]
