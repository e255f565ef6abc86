"""Good models to damage: a case of every operator's tests, whole graphs, and the small models of the corpus."""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gossamer.ops import all_ops, module_name
from tests.ops.cases import model_of
from tests.runtime import graphs

LARGEST = 24_000
"""Bytes of a model of the corpus that is still small."""

SUITES = ("ops_direct", "ops_graph", "ops_zip", "models")

FLEX_SUITES = ("flex_ops", "flex_state", "flex_models")


def own_seeds(cases_per_operator: int = 3) -> Iterator[tuple[str, bytes]]:
    """Names and models that need nothing but the tests: the first cases of every operator, and graphs."""
    yield "graph/adder", graphs.adder()
    for op in all_ops():
        stem = module_name(op.name, custom=op.custom).rpartition(".")[2]
        module = importlib.import_module(f"tests.ops.test_{stem}")
        cases = getattr(module, "CASES", [])
        step = max(1, len(cases) // cases_per_operator)
        for case in cases[::step][:cases_per_operator]:
            yield f"{op.name}/{case.id}", model_of(op, case)


def corpus_seeds(corpus: Path, suites: Sequence[str] = SUITES) -> Iterator[tuple[str, bytes]]:
    """Names and models of the open half of the corpus."""
    for suite in suites:
        folder = corpus / "open" / suite
        seen: set[str] = set()
        archives: dict[str, zipfile.ZipFile] = {}
        for line in (folder / "index.jsonl").read_text().splitlines():
            place = json.loads(line)["model"]
            if place in seen:
                continue
            seen.add(place)
            archive, _, member = place.partition(":")
            if not member:
                content = (folder / archive).read_bytes() if (folder / archive).stat().st_size <= LARGEST else b""
            else:
                if archive not in archives:
                    archives[archive] = zipfile.ZipFile(folder / archive)
                content = archives[archive].read(member)
            if 0 < len(content) <= LARGEST:
                yield f"{suite}/{place}", content
        for opened in archives.values():
            opened.close()


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Names and models of the small files of a folder."""
    for path in sorted(folder.glob("*.tflite")):
        if path.stat().st_size <= LARGEST:
            yield path.stem, path.read_bytes()
