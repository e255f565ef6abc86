"""Float models to models of integers: what values are seen (`calibrate`), which scales follow (`parameters`), which
operators take them (`static`), or weights alone (`weights`)."""

from __future__ import annotations

from gossamer.inputs.samples import samples_from
from gossamer.quantize.quantizer import quantize
from gossamer.quantize.round_trips import dequantize, requantize

__all__ = ["dequantize", "quantize", "requantize", "samples_from"]
