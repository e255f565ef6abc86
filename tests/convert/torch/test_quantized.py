"""Quantized numbers, and real ones of them."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.torch.programs import Fixed, Program, check_one

X = np.linspace(-9, 9, 12, dtype=np.float32).reshape(3, 4)
INT8 = np.dtype(np.int8)


def test_there_and_back() -> None:
    p = Program()
    given = {"scale": 0.05, "zero_point": 3, "quant_min": -128, "quant_max": 127, "dtype": INT8}
    q = np.clip(np.round(X / np.float32(0.05)) + 3, -128, 127).astype(np.int8)
    quantized = p.call("quantized_decomposed.quantize_per_tensor.default", q, input=p.input("x", X), **given)
    y = (q.astype(np.float32) - 3) * np.float32(0.05)
    p.output(p.call("quantized_decomposed.dequantize_per_tensor.default", y, input=quantized, **given), y)
    assert p.check().operators == ["QUANTIZE", "DEQUANTIZE"]


def test_weights_of_channels() -> None:
    q = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    scales, points = np.array([0.5, 1, 2], np.float32), np.zeros(3, np.int64)
    p = Program()
    given = {"scales": p.stored("s", scales, "buffer"), "zero_points": p.stored("z", points, "buffer"), "axis": 0}
    y = q * scales[:, None]
    w = p.call("quantized_decomposed.dequantize_per_channel.default", y, input=p.stored("q", q, "buffer"),
               quant_min=-127, quant_max=127, dtype=INT8, **given)  # fmt: skip
    x = p.input("x", X)
    p.output(p.call("aten.mm.default", X @ y.T, self=x, mat2=p.call("aten.t.default", y.T, self=w)), X @ y.T)
    assert p.check(rtol=1e-4).operators[-1] == "FULLY_CONNECTED"


def test_a_narrower_range() -> None:
    q = np.clip(np.round(X), -7, 7).astype(np.int8)
    operators = check_one("quantized_decomposed.quantize_per_tensor.default", q, input=X, scale=1.0, zero_point=0,
                          quant_min=-7, quant_max=7, dtype=INT8)  # fmt: skip
    assert operators == ["MAXIMUM", "MINIMUM", "QUANTIZE"]


def test_other_types_are_refused() -> None:
    with pytest.raises(ConvertError, match="int32; int8"):
        check_one("quantized_decomposed.quantize_per_tensor.default", X.astype(np.int32), input=X, scale=1.0,
                  zero_point=0, quant_min=0, quant_max=1, dtype=np.dtype(np.int32))  # fmt: skip
    integers = np.arange(4, dtype=np.int32)
    check_one("quantized_decomposed.dequantize_per_tensor.default", integers * np.float32(0.5), input=Fixed(integers),
              scale=0.5, zero_point=0)  # fmt: skip
