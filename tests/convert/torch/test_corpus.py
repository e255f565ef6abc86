"""The programs of the conversion corpus: what their conversions compute is what torch answered."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert import convert
from gossamer.errors import ConvertError
from tests.convert.test_corpus import conversion_corpus

pytestmark = pytest.mark.corpus


def cases() -> list[dict[str, Any]]:
    place = conversion_corpus()
    if place is None:
        return []
    found = map(json.loads, (place / "index.jsonl").read_text().splitlines())
    return [case for case in found if case["suite"] == "torch" and case["format"] == "torch_export"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    place = conversion_corpus()
    assert place is not None
    archive, _, inside = case["source"].partition(":")
    with zipfile.ZipFile(place / archive) as files:
        path = files.extract(inside, tmp_path)
    if case["expect"]["status"] == "error":
        with pytest.raises(ConvertError) as error:
            convert(path)
        assert not case["expect"]["words"] or any(word in str(error.value) for word in case["expect"]["words"])
        return
    interpreter = Interpreter(model_content=convert(path))
    archive, _, inside = case["data"].partition(":")
    with zipfile.ZipFile(place / archive) as files:
        for number, step in enumerate(case["steps"]):
            given = {
                name: np.load(io.BytesIO(files.read(f"{inside}i{number}.{n}.npy"))) for n, name in enumerate(step["in"])
            }
            found = interpreter.get_signature_runner(step.get("sig") or "serving_default")(**given)
            for n, name in enumerate(step["out"]):
                expected = np.load(io.BytesIO(files.read(f"{inside}o{number}.{n}.npy")))
                assert (found[name].dtype, found[name].shape) == (expected.dtype, expected.shape)
                if expected.dtype.kind == "f":
                    tolerance = case["tol"][name]
                    np.testing.assert_allclose(found[name], expected, tolerance["rtol"], tolerance["atol"])
                else:
                    np.testing.assert_array_equal(found[name], expected)
