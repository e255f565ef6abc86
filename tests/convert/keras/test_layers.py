"""Every layer of Keras, and every operation that models contain: what its conversion computes is what Keras answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, OpResolverType
from gossamer.convert import convert
from gossamer.errors import GossamerError

pytest.importorskip("h5py", reason="Keras files are read by h5py (the extra 'keras')")

from tests.convert.keras.cases import arrays, cases, write_archive, write_legacy

TOLERANCE = 2e-5
"""Of float32; a case may have its own."""


def check(data: bytes, case: dict[str, Any]) -> None:
    """That a model gives the outputs of a case, by their names, shapes and types."""
    interpreter = Interpreter(
        model_content=data,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    run = interpreter.get_signature_runner("serving_default")
    got, wanted = run(**arrays(case["inputs"])), arrays(case["outputs"])
    assert got.keys() == wanted.keys()
    tolerance = case.get("tolerance", TOLERANCE)
    for name, value in wanted.items():
        assert got[name].shape == value.shape
        assert got[name].dtype == value.dtype
        np.testing.assert_allclose(got[name], value, rtol=5 * tolerance, atol=tolerance)


FAMILIES = sorted({case["family"] for case in cases().values()})


@pytest.mark.parametrize("family", FAMILIES)
def test_archives(family: str, tmp_path: Path) -> None:
    """The cases of a family (hundreds of tests of their own take pytest longer than they take)."""
    path, failures = tmp_path / "model.keras", {}
    for name, case in cases().items():
        if case["family"] == family:
            try:
                write_archive(case, path)
                check(convert(path), case)
            except (AssertionError, GossamerError) as error:
                failures[name] = str(error)
    assert not failures


@pytest.mark.parametrize("name", [name for name, case in cases().items() if "legacy" in case])
def test_legacy_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    write_legacy(cases()[name], path)
    check(convert(path), cases()[name])
