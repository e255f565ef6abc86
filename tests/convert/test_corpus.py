"""The files of the conversion corpus: SavedModels, frozen graphs and ONNX models that others wrote."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.convert.messages.onnx import ModelProto
from gossamer.convert.messages.tensorflow import GraphDef, SavedModel
from gossamer.convert.sources.graph_def import read_graph_def
from gossamer.convert.sources.onnx import read_onnx
from gossamer.convert.sources.saved_model import Variable, read_saved_model
from gossamer.convert.sources.tensor_proto import tensor_array
from gossamer.convert.wire import read, write
from gossamer.errors import ConvertError
from tests.conftest import ROOT

pytestmark = pytest.mark.corpus

BROKEN = {"refuse/empty_directory", "refuse/garbage_graph", "refuse/truncated_saved_model"}
"""Keys of cases whose files are damaged or missing on purpose."""


def conversion_corpus() -> Path | None:
    """``open/`` of the conversion corpus, which lies beside the conformance corpus."""
    given = os.environ.get("GOSSAMER_CORPUS")
    for place in (Path(given).parent if given else None, ROOT.parent / "shared"):
        if place is not None and (place / "convert" / "open" / "index.jsonl").exists():
            return place / "convert" / "open"
    return None


@pytest.fixture(scope="module")
def cases() -> dict[str, list[tuple[str, Path, str]]]:
    """By format: the key, the archive and the place in it of every case; a source is there once."""
    place = conversion_corpus()
    if place is None:
        pytest.skip("the conversion corpus is not here (beside GOSSAMER_CORPUS or in ../shared/convert)")
    found: dict[str, dict[str, tuple[str, Path, str]]] = {}
    for line in (place / "index.jsonl").read_text().splitlines():
        case = json.loads(line)
        archive, _, inside = case["source"].partition(":")
        found.setdefault(case["format"], {})[case["source"]] = (case["key"], place / archive, inside)
    return {kind: list(sources.values()) for kind, sources in found.items()}


def is_broken(key: str) -> bool:
    return key.rpartition("/")[0] in BROKEN


def extracted(cases: list[tuple[str, Path, str]], into: Path) -> Iterator[tuple[str, Path]]:
    for number, (key, archive, inside) in enumerate(cases):
        with zipfile.ZipFile(archive) as files:
            names = [name for name in files.namelist() if name.startswith(inside)]
            files.extractall(into / str(number), names)
        yield key, into / str(number) / inside


def test_saved_models(cases: dict[str, list[tuple[str, Path, str]]], tmp_path: Path) -> None:
    """They come back byte for byte; both ways to a variable's value lead to the same."""
    variables = constants = 0
    for key, place in extracted(cases["saved_model"], tmp_path):
        if is_broken(key):
            with pytest.raises(ConvertError, match=r"saved_model|SavedModel"):
                read_saved_model(place)
            continue
        model = read_saved_model(place)
        data = (place / "saved_model.pb").read_bytes()
        assert write(read(SavedModel, data)) == data
        by_key = {item.key: item for item in model.objects if isinstance(item, Variable)}
        assert {variable.key for variable in model.variables.values()} == by_key.keys()
        for variable in model.variables.values():
            assert variable.value() is not None
            assert by_key[variable.key].dtype == variable.dtype
            assert by_key[variable.key].shape == variable.shape
            variables += 1
        for name, function in model.graph.functions.items():
            names = [item.name for item in function.signature.input_arg]
            captured = list(model.captures(name))
            assert captured == names[len(names) - len(captured) :]
        nodes = [*model.graph.definition.node]
        for function in model.graph.functions.values():
            nodes += function.node_def
        for node in nodes:
            if node.op == "Const":
                assert tensor_array(node.attr["value"].tensor).dtype is not None
                constants += 1
    assert variables > 300
    assert constants > 5000


def test_frozen_graphs(cases: dict[str, list[tuple[str, Path, str]]], tmp_path: Path) -> None:
    for key, place in extracted(cases["graph_def"], tmp_path):
        if is_broken(key):
            with pytest.raises(ConvertError, match="no valid GraphDef"):
                read_graph_def(place)
            continue
        assert read_graph_def(place).nodes
        assert write(read(GraphDef, place.read_bytes())) == place.read_bytes()


def test_onnx_models(cases: dict[str, list[tuple[str, Path, str]]], tmp_path: Path) -> None:
    initializers = 0
    for _, place in extracted(cases["onnx"], tmp_path):
        model = read_onnx(place)
        assert model.graph.node
        assert write(read(ModelProto, place.read_bytes())) == place.read_bytes()
        for tensor in model.initializers.values():
            assert model.array(tensor).shape == tuple(tensor.dims)
            initializers += 1
    assert initializers > 900
