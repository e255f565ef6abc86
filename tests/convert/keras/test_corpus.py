"""The Keras files of the conversion corpus: what their conversions compute is what TensorFlow answered."""

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
from tests.convert.test_corpus import conversion_corpus

pytestmark = pytest.mark.corpus


def cases() -> list[dict[str, Any]]:
    """Those of the suite of networks that are to be converted to float32."""
    place = conversion_corpus()
    if place is None:
        return []
    found = map(json.loads, (place / "index.jsonl").read_text().splitlines())
    return [case for case in found if case["id"].endswith(("/keras_float32", "/h5_float32"))]


def arrays(place: Path, case: dict[str, Any], kind: str, number: int, names: list[str]) -> dict[str, Any]:
    """Inputs (``i``) or outputs (``o``) of a step by their names."""
    archive, _, prefix = case["data"].partition(":")
    with zipfile.ZipFile(place / archive) as files:
        return {
            name: np.load(io.BytesIO(files.read(f"{prefix}{kind}{number}.{position}.npy")))
            for position, name in enumerate(names)
        }


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_networks(case: dict[str, Any], tmp_path: Path) -> None:
    place = conversion_corpus()
    assert place is not None
    archive, _, inside = case["source"].partition(":")
    with zipfile.ZipFile(place / archive) as files:
        source = Path(files.extract(inside, tmp_path))
    run = Interpreter(model_content=convert(source)).get_signature_runner("serving_default")
    for number, step in enumerate(case["steps"]):
        data = step.get("data", number)
        given = arrays(place, case, "i", data, step["in"])  # named by the tensors of Keras' session, not in the file
        got = run(**dict(zip(run.get_input_details(), given.values(), strict=True)))
        for name, wanted in arrays(place, case, "o", data, step["out"]).items():
            tolerance = case["tol"][name] if name in case["tol"] else case["tol"]
            np.testing.assert_allclose(got[name], wanted, rtol=tolerance["rtol"], atol=tolerance["atol"])
