"""The attributes of `tf.lite.TFLiteConverter` that ask for quantization, as arguments of `gossamer.quantize.quantize`.

What they mean is in TensorFlow's lite.py (QuantizationMode) and debugger.py (the ones that keep operators float).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from gossamer.errors import ConvertError
from gossamer.quantize.recipe import Recipe, Rule, scheme_of
from gossamer.schema.enums import TensorType

SIZES = {"int8": 1, "float16": 2, "int16": 2, "bfloat16": 2, "float32": 4}
"""Bytes of the types that weights may be asked to have."""

BIASES = {"int8": (TensorType.INT32,), "int16x8": (TensorType.INT64, TensorType.INT32)}
"""Types of biases, the usual one first, by mode."""


def mode_of(optimize: bool, ops: Collection[str], types: Collection[str], has_dataset: bool) -> str:
    """The mode that ``supported_ops`` and ``supported_types`` ask for, by the names of their values; ``optimize``:
    whether any optimization but sparsity is asked for. Raises `ConvertError` for what contradicts itself."""
    for name in types:
        if name not in SIZES:
            raise ConvertError(f"supported_types are {', '.join(SIZES)}, not {name!r}")
    if set(types) == {"int8"}:
        ops = ["TFLITE_BUILTINS_INT8"]
    sixteen = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8" in ops
    integers = sixteen or "TFLITE_BUILTINS_INT8" in ops
    only = "TFLITE_BUILTINS" not in ops and "SELECT_TF_OPS" not in ops
    if set(ops) == {"TFLITE_BUILTINS_INT8"} and set(types) - {"int8"}:
        raise ConvertError("operators are to be those of int8: supported_types must be int8 then, or not given")
    if integers and not optimize:
        raise ConvertError("integer operators are asked for: set `optimizations` to [Optimize.DEFAULT]")
    if integers and not has_dataset:
        raise ConvertError(
            "integer operators need a representative dataset (`representative_dataset`): samples of inputs"
        )
    if not optimize:
        return "float32"
    if integers:
        return ("int16x8" if sixteen else "int8") + ("_only" if only else "")
    smallest = min((SIZES[name] for name in types), default=1)
    if smallest == 1:
        return "int8" if has_dataset else "dynamic_range"
    return "float16" if "float16" in types else "float32"


def arguments(attributes: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """``denylisted_ops``, ``denylisted_nodes`` and the switches whose names begin with ``_experimental_`` as ``keep``
    and ``recipe``. Raises `ConvertError` for types of biases that there are not."""
    scheme = scheme_of(mode)._replace(per_channel=not attributes.get("_experimental_disable_per_channel", False))
    bias = attributes.get("_experimental_full_integer_quantization_bias_type")
    if bias is not None:
        kinds = {kind.name.lower(): kind for kind in BIASES.get(mode.removesuffix("_only"), ())}
        if type_name_of(bias) not in kinds:
            raise ConvertError(f"biases of mode {mode} are {' or '.join(kinds) or 'float'}, not {type_name_of(bias)}")
        scheme = scheme._replace(bias=kinds[type_name_of(bias)])
    rules = [Rule(scheme)]
    if attributes.get("_experimental_disable_per_channel_quantization_for_dense_layers", False):
        rules.append(Rule(scheme._replace(per_channel=False), "FULLY_CONNECTED"))
    kept = [*(attributes.get("denylisted_ops") or ()), *(attributes.get("denylisted_nodes") or ())]
    return {"recipe": Recipe(tuple(rules)), "keep": kept}


def type_name_of(type: Any) -> str:
    """The name of a type of NumPy or TensorFlow; of none that of float32."""
    return "float32" if type is None else str(getattr(type, "name", None) or np.dtype(type).name)
