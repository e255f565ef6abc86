"""``gossamer edit``: files in, files out; what each command says, and how it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer.model import read_model
from gossamer.model.metadata import associated_files, labels, model_metadata
from gossamer.tools.edit import command
from tests.edit.models import integer_net, picture_net, run, weights
from tests.tools.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A folder with a model, ``net.tflite``, which is the current one."""
    monkeypatch.chdir(tmp_path)
    content = bytes(picture_net())
    Path("net.tflite").write_bytes(content)
    return content


def test_every_command_has_help_with_an_example_and_json(gossamer: Run) -> None:
    for name in command.commands:  # type: ignore[attr-defined]
        result = gossamer("edit", name, "--help")
        assert result.code == 0
        assert f"Example: gossamer edit {name} " in result.out
        assert "--json" in result.out
        assert "--output OUT" in result.out


def test_cut_split_merge(gossamer: Run, net: bytes) -> None:
    result = gossamer("edit", "cut", "net.tflite", "--from", "first", "--to", "sum", "-o", "part.tflite")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[1:] == [
        "inputs    first float32 [1, 8, 8, 16]",
        "outputs   sum float32 [1, 8, 8, 16]",
        "operators 2, 6 before",
    ]
    assert gossamer("edit", "split", "net.tflite", "--at", "sum", "-o", "a.tflite", "-o", "b.tflite").code == 0
    report = gossamer("edit", "merge", "a.tflite", "b.tflite", "-o", "c.tflite", "--json").json
    assert Path("c.tflite").read_bytes() == net
    assert report["bytes"] == len(net)
    assert report["outputs"] == [{"name": "scores", "type": "float32", "shape": [1, 10]}]
    assert [part["operators"] for part in report["before"]] == [3, 3]
    assert sorted(path.name for path in Path().iterdir()) == [
        "a.tflite", "b.tflite", "c.tflite", "net.tflite", "part.tflite",
    ]  # fmt: skip


def test_what_changes_nothing_is_written_byte_for_byte(gossamer: Run, net: bytes) -> None:
    result = gossamer("edit", "rename", "net.tflite", "x=x", "-o", "same.tflite")
    assert f"({len(net):,} bytes, unchanged)" in result.out
    assert Path("same.tflite").read_bytes() == net
    assert gossamer("edit", "retype", "net.tflite", "--input-type", "float32", "-o", "net.tflite").code == 0
    assert Path("net.tflite").read_bytes() == net


def test_names_types_shapes(gossamer: Run, net: bytes) -> None:
    assert gossamer("edit", "rename", "net.tflite", "x=picture", "-o", "net.tflite").code == 0
    result = gossamer("edit", "retype", "net.tflite", "--input-type", "picture=uint8,0.25,3", "-o", "bytes.tflite")
    assert "inputs    picture uint8 [1, 8, 8, 3]" in result.out
    report = gossamer("edit", "shape", "bytes.tflite", "--batch", "?", "-o", "any.tflite", "--json").json
    assert report["inputs"][0]["shape"] == [None, 8, 8, 3]
    assert report["constants"] == ["RESHAPE (node 5): [1, 16] became [-1, 16]"]
    pixels = np.random.default_rng(0).integers(0, 9, (2, 8, 8, 3)).astype(np.uint8)
    (scores,) = run(Path("any.tflite").read_bytes(), pixels)
    assert np.array_equal(scores[1:], run(net, (pixels[1:].astype(np.float32) - 3) * np.float32(0.25))[0])
    result = gossamer("edit", "shape", "net.tflite", "picture=1x16x?x3", "-o", "wide.tflite")
    assert "inputs    picture float32 [1, 16, ?, 3]" in result.out


def test_operators_and_ends(gossamer: Run, net: bytes) -> None:
    x = weights(1, 8, 8, 3)
    assert gossamer("edit", "insert", "net.tflite", "scores", "MUL", "0.5", "-o", "half.tflite").code == 0
    assert np.array_equal(run(Path("half.tflite").read_bytes(), x)[0], run(net, x)[0] / 2)
    assert gossamer("edit", "delete", "half.tflite", "node:6", "-o", "whole.tflite").code == 0
    assert np.array_equal(run(Path("whole.tflite").read_bytes(), x)[0], run(net, x)[0])
    arguments = ("node:2", "Mine", "--custom", "--option", "factor=2.5", "--option", "mode=fast")
    assert gossamer("edit", "replace", "net.tflite", *arguments, "-o", "mine.tflite").code == 0
    assert [code.custom_code for code in read_model("mine.tflite").operator_codes][-1] == "Mine"
    arguments = ("--normalize", "1,2,3", "2", "--type", "uint8", "--resize", "?x?", "--softmax", "--top-k", "2")
    result = gossamer("edit", "add", "net.tflite", *arguments, "-o", "app.tflite")
    assert "inputs    x uint8 [1, ?, ?, 3]" in result.out
    assert "outputs   values float32 [1, 2], indices int32 [1, 2]" in result.out
    assert run(Path("app.tflite").read_bytes(), np.zeros((1, 9, 4, 3), np.uint8))[1].shape == (1, 2)


def test_what_it_says_of_itself(gossamer: Run, net: bytes) -> None:
    Path("classes.txt").write_text("cat\ndog\n")
    Path("words.bin").write_bytes(b"words")
    arguments = ("--name", "Net", "--labels", "classes.txt", "--mean-std", "x=1,2", "--file", "words.bin")
    assert gossamer("edit", "describe", "net.tflite", *arguments, "-o", "told.tflite").code == 0
    told = read_model("told.tflite")
    metadata = model_metadata(told)
    assert metadata is not None
    assert metadata.name == "Net"
    assert labels(told) == ["cat", "dog"]
    assert associated_files(told)["words.bin"] == b"words"
    result = gossamer("edit", "signature", "told.tflite", "classify", "--input", "picture=x", "-o", "told.tflite")
    assert result.code == 0
    assert list(read_model("told.tflite").signatures) == ["serving_default", "classify"]
    assert gossamer("edit", "strip", "told.tflite", "--keep", "files", "--signatures", "-o", "bare.tflite").code == 0
    bare = read_model("bare.tflite")
    assert (bare.signature_defs, labels(bare)) == ((), ["cat", "dog"])


def test_side_by_side(gossamer: Run, net: bytes) -> None:
    Path("other.tflite").write_bytes(bytes(integer_net()))
    arguments = ("net.tflite", "other.tflite", "--side-by-side", "--key", "see", "--key", "count")
    assert gossamer("edit", "merge", *arguments, "-o", "both.tflite", "--json").json["signatures"] == ["see", "count"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("cut", "net.tflite", "--to", "frist"), 1, "Error: there is no tensor 'frist'; near it: 'first'\n"),
        (("cut", "nte.tflite", "--to", "first"), 1, "did you mean 'net.tflite'?"),
        (("split", "net.tflite", "--at", "sum"), 2, "a split writes two files, got 1 name: -o HEAD -o TAIL"),
        (("merge", "net.tflite"), 2, "give two models or more"),
        (("merge", "net.tflite", "net.tflite"), 1, "does not fit input 'x': its shape is [1, 10], not [1, 8, 8, 3]"),
        (("rename", "net.tflite", "x"), 1, "'x' is not NAME=VALUE"),
        (("retype", "net.tflite"), 2, "give --input-type or --output-type"),
        (("retype", "net.tflite", "--input-type", "int8"), 1, "say scale and zero point"),
        (("retype", "net.tflite", "--input-type", "int8,1"), 1, "a type is NAME or NAME,SCALE,ZERO_POINT"),
        (("shape", "net.tflite"), 2, "give --batch, or shapes of inputs"),
        (("shape", "net.tflite", "x=1xax8x3"), 1, "a shape is sizes with x between them"),
        (("replace", "net.tflite", "sum", "RELUU"), 1, "there is no operator 'RELUU'; did you mean"),
        (("replace", "net.tflite", "sum", "--option", "activation=RELU9"), 1, "cannot be 'RELU9'"),
        (("add", "net.tflite"), 2, "say what to add"),
        (("add", "net.tflite", "--argmax", "--top-k", "2"), 2, "give one of --argmax, --top-k, --nms"),
        (("add", "net.tflite", "--normalize", "a", "1"), 1, "'a' is no number"),
        (("signature", "net.tflite", "no", "--remove"), 1, "there is no signature 'no'"),
        (("describe", "net.tflite", "--labels", "no.txt"), 1, "labels 'no.txt' does not exist"),
    ],
)
def test_what_goes_wrong(gossamer: Run, net: bytes, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = gossamer("edit", *arguments, "-o", "out.tflite")
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert not Path("out.tflite").exists()
