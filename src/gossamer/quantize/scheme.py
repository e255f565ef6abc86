"""What becomes of an operator: the types that it computes with, and those of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer.convert.graph import Node
from gossamer.schema.enums import TensorType


class Scheme(NamedTuple):
    """The types of an operator when it is quantized; by default it stays as it is.

    ``activations``: INT8 or INT16 of operators that compute with integers throughout, in ranges that were seen.
    ``weights``: INT8 or INT4, of the operand that is multiplied with, or FLOAT16, of all constants. Integers have a
    scale for each channel where the operator knows channels (``per_channel``), or for each ``block`` of elements of a
    row; ``clipping`` says how their range is found (see `gossamer.quantize.clipping`), by default it is that of all.
    Those that become floats again have zero points where they are not ``symmetric``.
    ``least``: weights with fewer elements stay float. ``tables``: tables that operators look up are weights too.
    ``dequantized``: weights alone, those of FLOAT16 too, become floats again before they are used. ``only``: an
    operator that has no integer form is an error, and so is a call whose values stay float. ``bias``: the type of
    biases, if it is not the usual one of the activations.
    """

    activations: TensorType = TensorType.FLOAT32
    weights: TensorType = TensorType.FLOAT32
    per_channel: bool = True
    block: int = 0
    clipping: str = ""
    symmetric: bool = True
    least: int = 0
    tables: bool = False
    dequantized: bool = False
    only: bool = False
    bias: TensorType | None = None

    @property
    def is_static(self) -> bool:
        """Whether activations are integers, the ranges of which must be known."""
        return self.activations != TensorType.FLOAT32

    @property
    def biases(self) -> TensorType:
        """The type of what is added to products."""
        if self.bias is not None:
            return self.bias
        return TensorType.INT64 if self.activations == TensorType.INT16 else TensorType.INT32


FLOAT = Scheme()
INT8 = Scheme(TensorType.INT8, TensorType.INT8)
INT16X8 = Scheme(TensorType.INT16, TensorType.INT8)
INT8_WEIGHTS = Scheme(weights=TensorType.INT8)
INT4_WEIGHTS = Scheme(weights=TensorType.INT4)
BLOCKS = (32, 64, 128, 256)

MODES: Mapping[str, Scheme] = {
    "float32": FLOAT,
    "float16": Scheme(weights=TensorType.FLOAT16),
    "dynamic_range": INT8_WEIGHTS._replace(least=1024, tables=True),
    "int8_weight_only": INT8_WEIGHTS._replace(dequantized=True),
    "int4_weight_only": INT4_WEIGHTS._replace(dequantized=True),
    "int4_dynamic": INT4_WEIGHTS,
    **{f"int4_block{size}": INT4_WEIGHTS._replace(block=size) for size in BLOCKS},
    **{f"int8_weight_only_block{size}": INT8_WEIGHTS._replace(block=size, dequantized=True) for size in BLOCKS},
    **{f"int4_weight_only_block{size}": INT4_WEIGHTS._replace(block=size, dequantized=True) for size in BLOCKS},
    "int8": INT8,
    "int8_only": INT8._replace(only=True),
    "int16x8": INT16X8,
    "int16x8_only": INT16X8._replace(only=True),
}
"""The schemes that have names. Those of TFLite's converter: dynamic_range (minimum_elements_for_weights in
prepare_quantize_dynamic_range.cc), float16, int8, int16x8; those of ai-edge-quantizer's recipes, which quantize small
weights too: weight_only_wi8_afp32, weight_only_wi4_afp32, dynamic_wi4_afp32, dynamic_wi4b32_afp32."""

Schemes = Mapping[Node, Scheme]
"""The scheme of each operator of a model."""
