"""Metadata, labels, files, signatures."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

import gossamer
from gossamer import EditError, edit
from gossamer.model.metadata import associated_files, labels, model_metadata
from tests.edit.models import picture_net, reread, run, weights


def test_what_is_said_is_read() -> None:
    model = edit.describe(
        picture_net(),
        name="Net",
        author="me",
        tensors={"x": "a picture", "scores": "one for each class"},
        normalization={"x": (127.5, [1, 2, 3])},
        labels=["cat", "dog"],
        files={"readme.txt": b"hello"},
    )
    stored = reread(model)
    metadata = model_metadata(stored)
    assert metadata is not None
    assert (metadata.name, metadata.author, metadata.license) == ("Net", "me", "")
    (graph,) = metadata.subgraph_metadata
    assert [record.description for record in graph.input_tensor_metadata] == ["a picture"]
    assert graph.output_tensor_metadata[0].name == "scores"
    assert labels(stored) == ["cat", "dog"]
    assert associated_files(stored) == {"labels.txt": b"cat\ndog\n", "readme.txt": b"hello"}
    assert zipfile.ZipFile(io.BytesIO(bytes(stored))).read("labels.txt") == b"cat\ndog\n"
    x = weights(1, 8, 8, 3)
    assert np.array_equal(run(stored, x)[0], run(picture_net(), x)[0])


def test_what_is_not_said_stays() -> None:
    model = edit.describe(picture_net(), name="Net", labels=["cat", "dog"], files={"a": b"1"})
    more = reread(edit.describe(model, author="me", files={"a": b"2"}))
    metadata = model_metadata(more)
    assert metadata is not None
    assert (metadata.name, metadata.author) == ("Net", "me")
    assert labels(more) == ["cat", "dog"]
    assert associated_files(more)["a"] == b"2"
    assert edit.describe(more, author="me", files={"a": b"2"}) is more


def test_entries_of_any_name() -> None:
    model = edit.describe(picture_net(), entries={"note": b"abc"})
    data = reread(model).metadata_data("note")
    assert data is not None
    assert data.tobytes() == b"abc"
    assert reread(edit.describe(model, entries={"note": None})).metadata_data("note") is None


def test_signatures() -> None:
    model = edit.sign(picture_net(), "classify", {"picture": "x"}, {"classes": "scores"})
    assert list(model.signatures) == ["serving_default", "classify"]
    x = weights(1, 8, 8, 3)
    runner = gossamer.Interpreter(model_content=bytes(model)).get_signature_runner("classify")
    assert np.array_equal(runner(picture=x)["classes"], run(model, x)[0])
    assert list(edit.unsign(model, "serving_default").signatures) == ["classify"]
    plain = picture_net()
    assert edit.sign(plain, "serving_default") is plain
    with pytest.raises(EditError, match="there is no signature 'clasify'; did you mean 'classify'"):
        edit.unsign(model, "clasify")
    with pytest.raises(EditError, match="'sum' is no input"):
        edit.sign(model, "k", {"a": "sum"})
    with pytest.raises(EditError, match="leaves out inputs: 'x'"):
        edit.sign(model, "k", {})


def test_what_is_no_end_has_no_record() -> None:
    with pytest.raises(EditError, match="'sum' is no input and no output; they are 'x', 'scores'"):
        edit.describe(picture_net(), tensors={"sum": "a sum"})
    with pytest.raises(EditError, match="a label is one line"):
        edit.describe(picture_net(), labels=["two\nlines"])
