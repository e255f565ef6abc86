"""Every public name has an example in its docstring, which says what it shows."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import numpy as np
import pytest

import gossamer
from tests.conftest import ROOT

NAMES = [name for name in gossamer.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "examples" / "digits.tflite", tmp_path)
    monkeypatch.chdir(tmp_path)
    text = getattr(gossamer, name).__doc__ or ""
    example = doctest.DocTestParser().get_doctest(text, {"gossamer": gossamer, "np": np}, name, None, None)
    assert example.examples, f"the docstring of gossamer.{name} has no example"
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not failed, "".join(said)
