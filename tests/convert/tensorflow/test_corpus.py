"""The operators, loops and graphs of the conversion corpus: what their conversions compute is what TensorFlow answered.

Cases that TensorFlow's own converter refuses are among them: ours may, too. Those with Flex operators in the result
are not.
"""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert import convert
from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Array
from tests.convert.test_corpus import conversion_corpus

pytestmark = pytest.mark.corpus

SUITES = ("dynamic", "flow", "tf_ops", "v1")


def cases() -> list[dict[str, Any]]:
    place = conversion_corpus()
    if place is None:
        return []
    found = map(json.loads, (place / "index.jsonl").read_text().splitlines())
    return [case for case in found if case["suite"] in SUITES and not case.get("no_run") and not case.get("soft")]


def array(files: zipfile.ZipFile, stem: str) -> Array:
    """An array; strings are stored as their bytes, the ends of each, and their shape."""

    def read(kind: str) -> Array:
        return np.load(io.BytesIO(files.read(f"{stem}{kind}.npy")))  # type: ignore[no-any-return]

    if f"{stem}.npy" in files.namelist():
        return read("")
    octets, ends = read("#b").tobytes(), read("#o")
    words = [octets[first:last] for first, last in itertools.pairwise(ends)]
    return np.array(words, object).reshape(read("#s"))


def source_of(case: dict[str, Any], place: Path, into: Path) -> Path:
    archive, _, inside = case["source"].partition(":")
    with zipfile.ZipFile(place / archive) as files:
        files.extractall(into, [name for name in files.namelist() if name.startswith(inside)])
    return into / inside


def same(found: Array, expected: Array, tolerance: dict[str, Any]) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if tolerance.get("stat"):  # random numbers
        return
    if expected.dtype.kind in "Obiu":
        np.testing.assert_array_equal(found, expected)
    else:
        near = {"rtol": tolerance.get("rtol", 1e-4), "atol": tolerance.get("atol", 1e-6)}
        np.testing.assert_allclose(found, expected, **near)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_conversions(case: dict[str, Any], tmp_path: Path) -> None:
    place = conversion_corpus()
    assert place is not None
    try:
        model = convert(source_of(case, place, tmp_path), **case["args"])
    except ConvertError as error:
        if case["expect"]["status"] == "error" and any(word in str(error) for word in case["expect"]["words"]):
            return
        raise
    run = Interpreter(model_content=model).get_signature_runner()
    archive, _, prefix = case["data"].partition(":")
    with zipfile.ZipFile(place / archive) as files:
        for number, step in enumerate(case["steps"]):
            data = step.get("data", number)
            given = {name: array(files, f"{prefix}i{data}.{n}") for n, name in enumerate(step["in"])}
            found = run(**given)
            for n, name in enumerate(step["out"]):
                same(found[name], array(files, f"{prefix}o{data}.{n}"), case["tol"].get(name, case["tol"]))
