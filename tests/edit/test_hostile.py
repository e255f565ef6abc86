"""Edits of damaged models: a result that is sound, or an error that says what is wrong. Nothing else."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer import edit
from gossamer.edit.portion import ORIGIN
from gossamer.errors import EditError, GossamerError, ModelError
from gossamer.model import Model, read_model, verify_model
from gossamer.model.metadata import with_metadata
from gossamer.model.writer import write_model
from tests.edit.models import counter_net, integer_net, loop_net, picture_net, reread
from tests.fuzz.mutations import mutant

SEEDS = (picture_net(), integer_net(), loop_net(), counter_net())

EDITS: dict[str, Callable[[Any, random.Random], Any]] = {
    "cut": lambda m, r: edit.cut(m, outputs=f"node:{r.randrange(4)}"),
    "split": lambda m, r: edit.split(m, f"node:{r.randrange(4)}")[0],
    "merge": lambda m, r: edit.merge(m, m),
    "side_by_side": lambda m, r: edit.side_by_side(m, m),
    "rename": lambda m, r: edit.rename(m, {r.randrange(5): "other"}),
    "retype": lambda m, r: edit.retype(m, r.choice(["int8", "float32", "uint8"]), "float32"),
    "batch": lambda m, r: edit.batch(m, r.choice([None, 2, 3])),
    "replace": lambda m, r: edit.replace(m, f"node:{r.randrange(4)}", r.choice(["ADD", "RELU", "MUL"])),
    "insert": lambda m, r: edit.insert(m, r.randrange(6), "MUL", 2.0),
    "delete": lambda m, r: edit.delete(m, f"node:{r.randrange(4)}"),
    "softmax": lambda m, r: edit.softmax(m),
    "normalize": lambda m, r: edit.normalize(m, 1, 2),
    "strip": lambda m, r: edit.strip(m, names=True, signatures=True),
    "describe": lambda m, r: edit.describe(m, name="x", labels=["a"]),
    "sign": lambda m, r: edit.sign(m, "key"),
}


@pytest.mark.filterwarnings("ignore:fields of a newer schema")
@pytest.mark.parametrize("name", EDITS)
def test_damaged_models(name: str) -> None:
    done = refused = 0
    for seed in range(10):
        content = mutant(bytes(SEEDS[seed % len(SEEDS)]), seed)
        try:
            made = EDITS[name](content, random.Random(seed))
            written = bytes(made)
        except (EditError, ModelError):
            refused += 1
            continue
        except GossamerError as error:  # a pass behind an edit speaks for itself
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}")
        assert not [fault for fault in verify_model(read_model(written)) if fault.subgraph is not None]
        done += 1
    assert refused > 0
    assert done > 0 or name in ("merge",)


def stored_origin(model: Model) -> tuple[dict[str, Any], bytes, list[Any]]:
    data = model.metadata_data(ORIGIN)
    assert data is not None
    content = data.tobytes()
    end = 4 + int.from_bytes(content[:4], "little")
    head, _, rest = zlib.decompress(content[4:end]).partition(b"\0")
    return json.loads(head), rest, json.loads(zlib.decompress(content[end:]))


def with_origin(model: Model, head: Any, rest: bytes, part: Any) -> Model:
    whole = zlib.compress(json.dumps(head).encode() + b"\0" + rest)
    of_part = zlib.compress(json.dumps(part).encode())
    return reread(with_metadata(model, ORIGIN, len(whole).to_bytes(4, "little") + whole + of_part))


def test_an_origin_that_lies_is_not_believed() -> None:
    model = picture_net()
    halves = list(map(reread, edit.split(model, "sum")))
    plain = write_model(edit.merge(*edit.split(model, "sum", remember=False)))

    def merged(change: Callable[[dict[str, Any], bytes, list[Any]], tuple[Any, bytes, Any]]) -> bytes:
        return bytes(edit.merge(*[with_origin(half, *change(*stored_origin(half))) for half in halves]))

    assert merged(lambda head, rest, part: (head, rest, part)) == bytes(model)
    lies: list[Callable[[dict[str, Any], bytes, list[Any]], tuple[Any, bytes, Any]]] = [
        lambda head, rest, part: ({**head, "size": 1 << 60}, rest, part),
        lambda head, rest, part: ({**head, "holes": [[0, 1 << 60]]}, rest, part),
        lambda head, rest, part: ({**head, "holes": [[-5, 10], *head["holes"]]}, rest, part),
        lambda head, rest, part: ({**head, "holes": []}, rest, part),
        lambda head, rest, part: ({"size": "x"}, rest, part),
        lambda head, rest, part: ([], rest, part),
        lambda head, rest, part: (head, rest[:-1] + b"!", part),
        lambda head, rest, part: (head, rest[: len(rest) // 2], part),
        lambda head, rest, part: (head, bytes(len(rest)), part),
        lambda head, rest, part: (head, rest, [0, [[0, 1 << 60]], [], []]),
        lambda head, rest, part: (head, rest, [7, *part[1:]]),
        lambda head, rest, part: (head, rest, [0, [[0, 99]], *part[2:]]),
        lambda head, rest, part: (head, rest, []),
        lambda head, rest, part: (head, rest, [0, [[0, 3]], [[0, 1]], [[900, 1]]]),
    ]
    for lie in lies:
        content = merged(lie)
        again = read_model(content)
        assert content == plain or len(again.subgraphs[0].operators) == 6
        assert not [fault for fault in verify_model(again) if fault.subgraph is not None]


def test_bytes_that_are_no_origin() -> None:
    halves = edit.split(picture_net(), "sum")
    rng = np.random.default_rng(0)
    for size in (0, 3, 4, 100):
        content = rng.integers(0, 256, size, np.uint8).tobytes()
        merged = edit.merge(*[with_metadata(half, ORIGIN, content) for half in halves])
        assert len(merged.subgraphs[0].operators) == 6
