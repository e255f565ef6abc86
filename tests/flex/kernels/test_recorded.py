"""Kernels against what TensorFlow 2.21 computes: small cases of every operator that needs no state, in recorded.jsonl.

A line is an operator with its attributes, its operands, and either TensorFlow's results or that it refuses them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import GossamerError
from tests.flex.models import run

CASES = [json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text().splitlines()]
PICTURES = {"DecodePng", "DecodeJpeg", "DecodeImage", "DecodeGif", "DecodeAndCropJpeg"}
HALF = {"float16": 2e-3, "bfloat16": 2e-2}


def array(stored: dict[str, Any]) -> Any:
    """An array as it is stored: texts by their bytes, complex numbers by their parts."""
    values = stored["values"]
    if stored["type"] == "string":
        result = np.empty(len(values), object)
        result[:] = [value.encode("latin1") for value in values]
        return result.reshape(stored["shape"])
    if stored["type"].startswith("complex"):
        values = [complex(*value) for value in values]
    return np.array(values, object).astype(stored["type"]).reshape(stored["shape"])


def label(case: dict[str, Any]) -> str:
    types = "-".join(dict.fromkeys(stored["type"] for stored in case["inputs"]))
    return f"{case['op']}-{types}" + ("-refused" if "refused" in case else "")


@pytest.mark.parametrize("case", CASES, ids=label)
def test_kernel_computes_what_tensorflow_does(case: dict[str, Any]) -> None:
    if case["op"] in PICTURES:
        pytest.importorskip("PIL", reason="Pillow decodes pictures")
    operands = [array(stored) for stored in case["inputs"]]
    if "refused" in case:
        with pytest.raises(GossamerError, match=f"Flex{case['op']}"):
            run(case["op"], *operands, **case["attributes"])
        return
    results = run(case["op"], *operands, **case["attributes"])
    results = results if isinstance(results, list) else [results]
    wanted = [array(stored) for stored in case["outputs"]]
    assert len(results) == len(wanted)
    for result, want in zip(results, wanted, strict=True):
        assert result.shape == want.shape
        assert result.dtype == want.dtype
        if want.dtype.kind in "biuO":
            assert result.tolist() == want.tolist()
        else:
            rtol = max(case.get("rtol", 1e-5), HALF.get(want.dtype.name, 0.0))
            if want.dtype.itemsize // (1 + (want.dtype.kind == "c")) == 8:
                rtol *= 1e-6
            np.testing.assert_allclose(result, want, rtol=rtol, atol=case.get("atol", 1e-6), equal_nan=True)
