"""Models of the conformance corpus: cut at random places, halves and merged models compute what they did, to the bit,
and the halves merged are the file."""

from __future__ import annotations

import importlib.util
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gossamer
from gossamer import EditError, GossamerError, OpResolverType, edit
from gossamer.dtypes import numpy_dtype
from gossamer.model import Model, read_model, verify_model
from gossamer.schema import TensorType
from tests.edit.models import Array

SUITES = ("models", "ops_graph", "ops_zip")
MOST = 3_000_000
"""Bytes of models that are run."""

LARGE, SIDE = 10_000_000, 64
"""Elements of an input from which on it is given another shape, and what the sizes of that are at most."""


def contents(corpus: Path, every: int) -> Iterator[tuple[str, bytes]]:
    """Models of the corpus, some of those of each suite but all of the whole ones."""
    spec = importlib.util.spec_from_file_location("run_corpus", corpus / "run_corpus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    root = corpus / "open"
    store = module.Store([str(root)])
    for suite in SUITES:
        seen: set[str] = set()
        for number, line in enumerate((root / suite / "index.jsonl").read_text().splitlines()):
            case = json.loads(line)
            name = case.get("model")
            if not name or name in seen or case.get("mutation") or case["expect"]["status"] != "ok":
                continue
            seen.add(name)
            if suite == "models" or number % every == 0:
                yield case["id"], store.model(str(root / suite), name, case)
    for archive, _ in store.zips.values():
        archive.close()


def answers(content: bytes, given: dict[str, Array]) -> dict[str, Array] | None:
    """What a model answers by the reference kernels, by the names of tensors; ``given`` gets what it was asked for what
    was not given. ``None`` for a model that cannot be run."""
    interpreter = gossamer.Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    try:
        for detail in interpreter.get_input_details():
            name, shape = detail["name"], detail["shape"]
            if name not in given:
                given[name] = values(np.minimum(shape, SIDE) if math.prod(shape) > LARGE else shape, detail["dtype"])
            if tuple(shape) != given[name].shape:
                interpreter.resize_tensor_input(detail["index"], given[name].shape)
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], given[detail["name"]])
        interpreter.invoke()
    except GossamerError:
        return None
    return {detail["name"]: interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()}


def values(shape: Array, dtype: type) -> Array:
    rng = np.random.default_rng(0)
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    return np.asarray(rng.integers(0, 4, shape)).astype(dtype)


def plain(model: Model) -> bool:
    """Whether names tell tensors apart, and what goes in can be made up."""
    main = model.subgraphs[0]
    names = [tensor.name for tensor in main.tensors]
    types = {main.tensors[number].type for number in main.inputs}
    return (
        len(set(names)) == len(names)
        and not types & {TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT}
        and all(numpy_dtype(type).kind in "fiub" for type in types)
    )


@pytest.mark.corpus
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:overflow", "ignore:invalid value", "ignore:divide by zero"
)
def test_models_cut_anywhere(corpus: Path) -> None:
    rng, seen = random.Random(5), Counter[str]()
    for name, content in contents(corpus, 11):
        try:
            model = read_model(content)
            count = len(model.subgraphs[0].operators)
            head, tail = edit.split(model, f"node:{rng.randrange(max(count - 1, 1))}")
        except EditError:
            seen["not cut"] += 1
            continue
        halves = [bytes(half) for half in (head, tail)]
        for half in halves:
            assert not [fault for fault in verify_model(read_model(half)) if fault.subgraph is not None], name
        assert bytes(edit.merge(*map(read_model, halves))) == content, name
        seen["merged"] += 1
        if len(content) > MOST or not plain(model) or any(t.is_variable for s in model.subgraphs for t in s.tensors):
            continue
        given: dict[str, Array] = {}
        expected = answers(content, given)
        if expected is None:
            continue
        between = answers(halves[0], given)
        assert between is not None, name
        found = {**between, **(answers(halves[1], {**given, **between}) or {})}
        for key, value in expected.items():
            assert np.array_equal(found[key], value, equal_nan=value.dtype.kind == "f"), (name, key)
        seen["computed"] += 1
    assert seen["merged"] > 80
    assert seen["computed"] > 50
