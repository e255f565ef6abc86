"""The open half of the conformance corpus, on the reference path and on the default path, suite by suite.

On the default path, what arrays compute is what machine code does.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer

SUITES = ("models", "real", "corrupt", "ops_bad", "ops_direct", "ops_graph", "ops_refused", "ops_zip")
# The cores are shared with the other processes of pytest-xdist.
JOBS = max(1, (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
GOOD = ("pass", "pass_alt", "soft_error", "soft_fail")

# Cases that do not pass, and why. A case that passes after all must leave this list.
EXCEPTIONS = {
    "reference": {
        "zip/gelu/5": "1.1e-7 off where two terms cancel: LiteRT's tanh rounds differently; the peers differ as much",
    },
    "default": {},
}


@pytest.mark.corpus
@pytest.mark.parametrize("path", EXCEPTIONS)
@pytest.mark.parametrize("suite", SUITES)
def test_every_case_of_the_suite_passes(corpus: Path, suite: str, path: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, str(corpus / "run_corpus.py"), "--impl", "gossamer:Interpreter", "--suite", suite]
    if path == "reference":
        command += ["--kw", "experimental_op_resolver_type=gossamer:OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES"]
    command += ["--root", str(corpus), "--jobs", str(JOBS), "--json", str(report), str(corpus / "open")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert report.exists(), done.stderr
    cases = json.loads(report.read_text())["cases"]
    assert len(cases) > 20
    failed = {case["id"]: f"{case['v']}: {case.get('why', '')}" for case in cases if case["v"] not in GOOD}
    unexpected = {name: why for name, why in failed.items() if name not in EXCEPTIONS[path]}
    assert unexpected == {}
    assert {name for name in EXCEPTIONS[path] if any(case["id"] == name for case in cases)} <= set(failed)


NEARNESS = 1e-4
"""Of floats, relative, and to the largest of an output."""

PART = 1 << 18
"""Elements that are compared at once: a cache holds what that makes of them."""


def runnable_cases(corpus: Path, suite: str) -> Iterator[tuple[str, Any]]:
    """The ids of cases of a suite that LiteRT runs, and functions that run them: the outputs, step by step."""
    spec = importlib.util.spec_from_file_location("run_corpus", corpus / "run_corpus.py")
    assert spec is not None
    assert spec.loader is not None
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    base = str(corpus / "open" / suite)
    store = runner.Store([str(corpus / "open")])
    for line in (corpus / "open" / suite / "index.jsonl").read_text().splitlines():
        case = json.loads(line)
        if case.get("expect", {}).get("status", "ok") != "ok" or case.get("tol", {}).get("stat"):
            continue
        try:
            steps, model = runner.load_inputs(case, base, store), store.model(base, case["model"], case)
        except FileNotFoundError:
            continue

        def run(model: bytes = model, steps: Any = steps) -> Any:
            return runner.execute(gossamer.Interpreter, {}, model, steps)

        yield case["id"], run


# The runner leaves files open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.corpus
@pytest.mark.parametrize("suite", ["models", "real", "ops_direct", "ops_graph", "ops_zip"])
def test_arrays_compute_what_machine_code_does(corpus: Path, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    for name, run in runnable_cases(corpus, suite):
        outputs = []
        for target in (None, "none"):
            with monkeypatch.context() as patch:
                if target is not None:
                    patch.setenv("GOSSAMER_TARGET", target)
                try:
                    outputs.append(run())
                except Exception as error:
                    outputs.append([{"error": np.array(str(error))}])
        for ours, wanted in zip(*outputs, strict=True):
            assert ours.keys() == wanted.keys(), name
            for key, value in wanted.items():
                assert_near(ours[key], value, f"{name}, output {key}")
                count += 1
    assert count > 20


def assert_near(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], what: str) -> None:
    """The same integers, or floats but for the order of their sums."""
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, wanted, err_msg=what)
        return
    assert got.shape == wanted.shape, what
    parts = [
        (got.reshape(-1)[start : start + PART], wanted.reshape(-1)[start : start + PART])
        for start in range(0, wanted.size, PART)
    ]
    largest = max((float(np.abs(part[np.isfinite(part)]).max(initial=0)) for _, part in parts), default=0.0)
    for part, of in parts:
        np.testing.assert_allclose(part, of, rtol=NEARNESS, atol=NEARNESS * max(1.0, largest), err_msg=what)
