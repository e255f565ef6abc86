"""Files with a byte changed or the end cut off: what is in them is read, or a `ConvertError` is raised."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.tensorflow import DataType, GraphDef
from gossamer.convert.sources.graph_def import read_graph_def
from gossamer.convert.sources.onnx import read_onnx
from gossamer.convert.sources.saved_model import OBJECT_GRAPH, Asset, Variable, read_saved_model
from gossamer.convert.sources.tensor_bundle import TensorBundle
from gossamer.convert.sources.tensor_proto import tensor_array
from gossamer.convert.wire import write
from gossamer.errors import ConvertError
from tests.convert.arbitrary import onnx_model, write_bundle, write_saved_model_pb

KINDS = ("saved_model", "index", "object graph", "graph", "onnx")


def everything(step: Callable[[], Any]) -> None:
    with suppress(ConvertError):
        step()


def look_at_saved_model(place: Path) -> None:
    """Reads it and all that it leads to, each thing on its own."""
    model = read_saved_model(place)
    for name in model.graph.functions:
        model.captures(name)
    for item in [*model.objects, *model.variables.values()]:
        if isinstance(item, Variable):
            everything(item.value)
        elif isinstance(item, Asset):
            everything(item.content)
    look_at_constants(model.graph.definition)


def look_at_constants(graph: GraphDef) -> None:
    for node in graph.node:
        tensor = node.attr["value"].tensor if "value" in node.attr else None
        if tensor is not None:
            everything(lambda tensor=tensor: tensor_array(tensor))


def look_at_onnx(data: bytes) -> None:
    model = read_onnx(data)
    for tensor in model.initializers.values():
        everything(lambda tensor=tensor: model.array(tensor))
    for item in model.sparse_initializers.values():
        everything(lambda item=item: model.sparse_array(item))


def mutants(data: bytes, seed: str) -> Iterator[bytes]:
    """Every end cut off, or some of a large file; single bits, single bytes, and pieces that moved."""
    some = random.Random(seed)
    for size in range(0, len(data), 1 + len(data) // 150):
        yield data[:size]
    for _ in range(300):
        changed = bytearray(data)
        changed[some.randrange(len(data))] ^= 1 << some.randrange(8)
        yield bytes(changed)
    for _ in range(150):
        changed = bytearray(data)
        changed[some.randrange(len(data))] = some.choice([0, 1, 0x7F, 0x80, 0xFF, some.randrange(256)])
        yield bytes(changed)
    for _ in range(50):
        start, end, place = (some.randrange(len(data)) for _ in range(3))
        yield data[:place] + data[start:end] + data[place:]


def look_at_graph(data: bytes) -> None:
    look_at_constants(read_graph_def(data).definition)


def saved_model_with(place: Path, name: str) -> Callable[[bytes], None]:
    def look(data: bytes) -> None:
        (place / name).write_bytes(data)
        look_at_saved_model(place)

    return look


def with_object_graph(place: Path) -> Callable[[bytes], None]:
    def look(data: bytes) -> None:
        stored = DataType.DT_STRING, np.array(data, object)
        write_bundle(place / "variables" / "variables", {OBJECT_GRAPH: stored})
        look_at_saved_model(place)

    return look


def look_at_index(place: Path) -> Callable[[bytes], None]:
    def look(data: bytes) -> None:
        (place / "variables" / "variables.index").write_bytes(data)
        bundle = TensorBundle(place / "variables" / "variables")
        for key in bundle:
            everything(lambda key=key: bundle.read(key))

    return look


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_give_documented_errors(tmp_path: Path, kind: str) -> None:
    tensors = write_saved_model_pb(tmp_path)
    write_bundle(tmp_path / "variables" / "variables", tensors)
    whole, look = {
        "saved_model": ((tmp_path / "saved_model.pb").read_bytes(), saved_model_with(tmp_path, "saved_model.pb")),
        "index": ((tmp_path / "variables" / "variables.index").read_bytes(), look_at_index(tmp_path)),
        "object graph": (tensors[OBJECT_GRAPH][1].item(), with_object_graph(tmp_path)),
        "graph": (write(read_saved_model(tmp_path).graph.definition), look_at_graph),
        "onnx": (write(onnx_model()), look_at_onnx),
    }[kind]
    look(whole)
    refused = 0
    for number, data in enumerate(mutants(whole, kind)):
        traced = number % 25 == 0
        if traced:
            tracemalloc.start()
        try:
            look(data)
        except ConvertError:
            refused += 1
        finally:
            if traced:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
        assert peak < 8 << 20
    assert refused > 100
