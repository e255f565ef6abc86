"""Every model of the conformance corpus: read as LiteRT's own reader does, refused where LiteRT refuses it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.model import read_model, verify_model
from gossamer.model.writer import write_model
from gossamer.schema.fields import Table

RESOLVER = ("Didn't find op for builtin opcode", "Op builtin_code out of range", "must be specified")
"""Refusals that are not the file's: the resolver's, and of an interpreter without a model."""


def _cases(corpus: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    spec = importlib.util.spec_from_file_location("run_corpus", corpus / "run_corpus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    root = corpus / "open"
    store = module.Store([str(root)])
    for index in sorted(root.glob("*/index.jsonl")):
        for line in index.read_text().splitlines():
            case = json.loads(line)
            if case.get("model"):
                try:
                    yield case, store.model(str(index.parent), case["model"], case)
                except FileNotFoundError:
                    continue
    for archive, _ in store.zips.values():
        archive.close()


def _refusal(content: bytes) -> str | None:
    try:
        model = read_model(content)
        faults = verify_model(model)
    except ModelError as error:
        return str(error)
    assert write_model(model) == content
    return None if all(fault.subgraph is None for fault in faults) else "later"


@pytest.mark.corpus
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_models_are_refused_where_litert_refuses_them(corpus: Path) -> None:
    wrong = []
    for case, content in _cases(corpus):
        expected, refusal = case["expect"], _refusal(content)
        text = expected.get("text", "")
        at_construction = expected["status"] == "error" and expected["stage"] == "construct"
        if at_construction and any(part in text for part in RESOLVER):
            agrees = True
        elif refusal == "later":
            agrees = expected["status"] == "error"
        else:
            agrees = (refusal is not None) == at_construction or bool(case.get("either") and refusal)
        if not agrees:
            wrong.append(f"{case['id']}: {refusal or 'accepted'}; LiteRT: {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_litert_reads_the_same(corpus: Path) -> None:
    peer = pytest.importorskip("ai_edge_litert.schema_py_generated")
    compared = 0
    for n, (case, content) in enumerate(_cases(corpus)):
        if (n % 40 == 0 or case["suite"] == "models") and not case.get("mutation") and len(content) < 2_000_000:
            try:
                model = read_model(content)
            except ModelError:
                continue
            _compare(model, peer.ModelT.InitFromPackedBuf(content), case["id"])
            rewritten = write_model(model.replace())
            assert read_model(rewritten) == _both_codes(model)
            compared += 1
    assert compared > 50


def _both_codes(model: Any) -> Any:
    codes = []
    for code in model.operator_codes:
        number = max(code.builtin_code, code.deprecated_builtin_code)
        codes.append(code.replace(builtin_code=number, deprecated_builtin_code=min(number, 127)))
    return model.replace(operator_codes=tuple(codes))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _compare(ours: Any, theirs: Any, place: str) -> None:
    """Every field that the peer's object has is what the table says."""
    for field in ours.FIELDS:
        name = _camel(field.name)
        if not hasattr(theirs, name):
            assert not ours.has(field.name) or field.name == "deprecated_tag", place
            continue
        mine, other, where = getattr(ours, field.name), getattr(theirs, name), f"{place}.{field.name}"
        if isinstance(mine, Table):
            _compare(mine, other, where)
        elif field.kind == "tables":
            assert len(mine) == len(other or ()), where
            for i, (one, two) in enumerate(zip(mine, other or (), strict=True)):
                _compare(one, two, f"{where}[{i}]")
        elif mine is None or other is None:
            assert mine is None or len(mine) == 0, where
            assert other is None, where
        elif field.kind == "string":
            assert mine.encode("utf-8", "surrogateescape") == other, where
        elif field.kind in ("numbers", "array", "data"):
            assert np.array_equal(np.asarray(mine), np.asarray(other), equal_nan=field.kind == "array"), where
        else:
            assert mine == other or (mine != mine and other != other), where
