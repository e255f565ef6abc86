"""The ONNX models of the conversion corpus: what their conversions compute is what their answers say."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert import convert
from gossamer.errors import ConvertError
from tests.convert.tensorflow.test_corpus import array, source_of
from tests.convert.test_corpus import conversion_corpus

pytestmark = pytest.mark.corpus

ON_STRINGS = ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit")
"""Operators that TFLite has nothing for."""


def cases() -> list[dict[str, Any]]:
    place = conversion_corpus()
    if place is None:
        return []
    found = map(json.loads, (place / "index.jsonl").read_text().splitlines())
    return [case for case in found if case["format"] == "onnx" and not case.get("soft")]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_onnx_models(case: dict[str, Any], tmp_path: Path) -> None:
    place = conversion_corpus()
    assert place is not None
    file = source_of(case, place, tmp_path)
    if case["family"] in ON_STRINGS:
        with pytest.raises(ConvertError, match="do it before the model"):
            convert(file, **case["args"])
        return
    run = Interpreter(model_content=convert(file, **case["args"])).get_signature_runner()
    archive, _, prefix = case["data"].partition(":")
    with zipfile.ZipFile(place / archive) as files:
        for number, step in enumerate(case["steps"]):
            data = step.get("data", number)
            given = {name: array(files, f"{prefix}i{data}.{n}") for n, name in enumerate(step["in"])}
            found = run(**given)
            for n, name in enumerate(step["out"]):
                want, near = array(files, f"{prefix}o{data}.{n}"), case["tol"].get(name, case["tol"])
                assert found[name].shape == want.shape
                if near.get("stat"):
                    continue
                if want.dtype.kind in "Obiu":
                    np.testing.assert_array_equal(found[name], want)
                else:
                    limits = {"rtol": near.get("rtol", 1e-4), "atol": near.get("atol", 1e-6)}
                    np.testing.assert_allclose(found[name], want, **limits)
