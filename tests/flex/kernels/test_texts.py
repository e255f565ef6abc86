"""Texts, hashes and random numbers against what TensorFlow 2.21 computes: recorded_texts.jsonl, in the form of
`tests.flex.kernels.test_recorded`. What is drawn is exact but for the last bit of logarithm and sine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import GossamerError
from tests.flex.kernels.test_recorded import array, label
from tests.flex.models import run

CASES = [json.loads(line) for line in Path(__file__).with_name("recorded_texts.jsonl").read_text().splitlines()]
ROUNDED = ("Normal", "Gamma")
BITS = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-7, "float64": 5e-16}


@pytest.mark.parametrize("case", CASES, ids=label)
def test_kernel_computes_what_tensorflow_does(case: dict[str, Any]) -> None:
    operands = [array(stored) for stored in case["inputs"]]
    if "refused" in case:
        with pytest.raises(GossamerError, match=f"Flex{case['op']}"):
            run(case["op"], *operands, **case["attributes"])
        return
    results = run(case["op"], *operands, **case["attributes"])
    for result, stored in zip(results if isinstance(results, list) else [results], case["outputs"], strict=True):
        want = array(stored)
        assert (result.shape, result.dtype) == (want.shape, want.dtype)
        if any(word in case["op"] for word in ROUNDED):
            np.testing.assert_allclose(result, want, rtol=3 * BITS[want.dtype.name], atol=BITS[want.dtype.name])
        else:
            np.testing.assert_array_equal(result, want)
