"""Where a quantized model loses what the float model has, why, and what to do about it."""

from __future__ import annotations

from gossamer.quantize.debugger.diagnosis import Cause
from gossamer.quantize.debugger.layers import Layer, Report, debug
from gossamer.quantize.debugger.numeric_verify import with_numeric_verify
from gossamer.quantize.debugger.quantization_debugger import QuantizationDebugger, QuantizationDebugOptions

__all__ = [
    "Cause",
    "Layer",
    "QuantizationDebugOptions",
    "QuantizationDebugger",
    "Report",
    "debug",
    "with_numeric_verify",
]
