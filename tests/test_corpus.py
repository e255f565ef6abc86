"""The open half of the conformance corpus, on the reference path and on the default path, suite by suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
