from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.model import Model, read_model, verify_model
from gossamer.model.metadata import (
    OfflineAllocation,
    append_files,
    associated_files,
    conversion_metadata,
    exporter_facts,
    file_names,
    labels,
    min_runtime_version,
    model_metadata,
    offline_allocation,
    read_file,
    with_metadata,
    with_min_runtime_version,
    with_model_metadata,
    with_offline_allocation,
)
from gossamer.model.writer import write_model
from gossamer.schema.metadata import (
    AssociatedFile,
    AssociatedFileType,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    SubGraphMetadata,
    TensorMetadata,
)
from tests.model.arbitrary import add_model


def _described(*files: AssociatedFile) -> ModelMetadata:
    normalization = NormalizationOptions(mean=np.array([127.5], np.float32), std=np.array([127.5], np.float32))
    return ModelMetadata(
        name="adder",
        subgraph_metadata=(
            SubGraphMetadata(
                input_tensor_metadata=(TensorMetadata(process_units=(ProcessUnit(options=normalization),)),),
                output_tensor_metadata=(TensorMetadata(dimension_names=("batch", "class"), associated_files=files),),
            ),
        ),
    )


def _entry(model: Model, name: str) -> bytes:
    data = model.metadata_data(name)
    assert data is not None
    return data.tobytes()


def test_tflite_metadata() -> None:
    assert model_metadata(add_model()) is None
    model = read_model(write_model(with_model_metadata(add_model(), _described())))
    assert model_metadata(model) == _described()
    assert verify_model(model) == ()


def test_damaged_metadata() -> None:
    with pytest.raises(ModelError, match=r"metadata 'TFLITE_METADATA': .* identifier at byte 4 is b'4567'"):
        model_metadata(with_metadata(add_model(), "TFLITE_METADATA", b"01234567"))


def test_an_entry_is_replaced_without_disturbing_others() -> None:
    model = with_metadata(with_metadata(add_model(), "a", b"1"), "b", b"2")
    model = with_metadata(model, "a", b"345")
    assert [entry.name for entry in model.metadata] == ["a", "b"]
    assert len(model.buffers) == 4
    shared = model.replace(metadata=tuple(entry.replace(buffer=2) for entry in model.metadata))
    changed = with_metadata(shared, "a", b"6")
    assert [_entry(changed, name) for name in "ab"] == [b"6", b"345"]


def test_min_runtime_version() -> None:
    assert min_runtime_version(add_model()) is None
    model = with_min_runtime_version(add_model(), "2.14.0")
    assert min_runtime_version(model) == "2.14.0"
    assert _entry(model, "min_runtime_version") == b"2.14.0".ljust(16, b"\0")
    with pytest.raises(ValueError, match="has 16 bytes, at most 15 fit"):
        with_min_runtime_version(add_model(), "1" * 16)


def test_conversion_metadata() -> None:
    assert conversion_metadata(add_model()) is None
    assert conversion_metadata(with_metadata(add_model(), "CONVERSION_METADATA", b"raw")) == b"raw"


def test_offline_allocation() -> None:
    assert offline_allocation(add_model()) is None
    plan = OfflineAllocation((0, -1, 64))
    model = with_offline_allocation(add_model(), plan)
    data = model.metadata_data("OfflineMemoryAllocation")
    assert data is not None
    assert data.view("<i4").tolist() == [1, 1, 3, 0, -1, 64]
    assert offline_allocation(read_model(write_model(model))) == plan


def test_an_offline_allocation_has_the_tensors_of_all_subgraphs() -> None:
    model = add_model(subgraphs=add_model().subgraphs * 2)
    plan = OfflineAllocation((0, -1, 64, 128, -1, 192))
    planned = with_offline_allocation(model, plan)
    data = planned.metadata_data("OfflineMemoryAllocation")
    assert data is not None
    assert data.view("<i4").tolist() == [1, 2, 6, 0, -1, 64, 128, -1, 192]
    assert offline_allocation(planned) == plan
    with pytest.raises(ModelError, match="has 3 offsets for the 6 tensors of the model"):
        with_offline_allocation(model, OfflineAllocation((0, -1, 64)))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1, 0], "has 8 bytes; it is a vector of at least 3 int32"),
        ([1, 0, 4, 0, 0, 0], "says 4 offsets and holds 3"),
        ([1, 0, -1, 0, 0, 0], "says -1 offsets and holds 3"),
        ([1, 1, 1, 0], "has 1 offsets for the 3 tensors of the model"),
        ([1, 0, 3, 0, -2, 0], "has offset -2 for tensor 1"),
    ],
)
def test_offline_allocations_that_do_not_fit(values: list[int], reason: str) -> None:
    model = with_metadata(add_model(), "OfflineMemoryAllocation", np.array(values, "<i4"))
    with pytest.raises(ModelError, match=reason):
        offline_allocation(model)


def test_appended_files(tmp_path: Path) -> None:
    content = append_files(write_model(add_model()), {"labels.txt": b"one\ntwo\n", "readme.md": b"# hi"})
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["labels.txt", "readme.md"]
        assert archive.testzip() is None
    model = read_model(path)
    assert model == add_model()
    assert file_names(model) == ("labels.txt", "readme.md")
    assert read_file(model, "readme.md") == b"# hi"
    with pytest.raises(ModelError, match=r"the model has no file 'no'; it has labels\.txt, readme\.md"):
        read_file(model, "no")


def test_appended_files_survive_a_change_and_can_be_replaced() -> None:
    content = append_files(write_model(add_model()), {"a.txt": b"1", "b.txt": b"2"})
    changed = write_model(read_model(content).replace(description="much longer than before" * 9))
    assert associated_files(read_model(changed)) == {"a.txt": b"1", "b.txt": b"2"}
    replaced = append_files(changed, {"a.txt": b"3"})
    assert associated_files(read_model(replaced)) == {"a.txt": b"3", "b.txt": b"2"}
    with zipfile.ZipFile(io.BytesIO(replaced)) as archive:
        assert archive.testzip() is None


def test_appending_is_deterministic() -> None:
    content = write_model(add_model())
    assert append_files(content, {"a": b"1"}) == append_files(content, {"a": b"1"})


def test_models_without_files() -> None:
    model = read_model(write_model(add_model()) + b"PK\5\6 is not an archive")
    assert file_names(model) == ()
    assert labels(model) is None
    assert labels(add_model()) is None


def test_labels() -> None:
    file = AssociatedFile(name="classes", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    described = write_model(with_model_metadata(add_model(), _described(file)))
    with_both = append_files(described, {"classes": b"cat\r\ndog\n", "other.txt": b"no"})
    assert labels(read_model(with_both)) == ["cat", "dog"]
    with pytest.raises(ModelError, match="the model has no file 'classes'"):
        labels(read_model(described))
    plain = append_files(write_model(add_model()), {"labels.txt": "caf\u00e9\n\nx\n\n".encode()})
    assert labels(read_model(plain)) == ["caf\u00e9", "", "x"]


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("metadata.json", b'{"task": "obb", "names": {"1": "dog", "0": "cat"}}', ["cat", "dog"]),
        ("temp_meta.txt", b"{'stride': 32, 'names': {0: 'cat', 1: 'dog'}}", ["cat", "dog"]),
        ("meta.txt", b"{'stride': 32, 'names': ['cat', 'dog']}", ["cat", "dog"]),
        ("meta.json", b"{'names': {0: 'cat', 5: 'dog'}}", None),
        ("meta.json", b'{"labels": ["cat"]}', None),
        ("meta.json", b"[1, 2]", None),
        ("meta.json", b"{" * 5000, None),
        ("meta.json", b"{[]: 1, 'names': []}", None),
        ("meta.bin", b"{'names': ['cat']}", None),
    ],
)
def test_what_an_exporter_notes(name: str, content: bytes, names: list[str] | None) -> None:
    model = read_model(append_files(write_model(add_model()), {name: content}))
    assert labels(model) == names
    assert (exporter_facts(model).get("names") is None) == (not content.startswith(b"{") or b"names" not in content
        or name.endswith(".bin") or b"[]:" in content)  # fmt: skip
    # The same where metadata take it for a file of labels.
    file = AssociatedFile(name=name, type=AssociatedFileType.TENSOR_AXIS_LABELS)
    described = write_model(with_model_metadata(add_model(), _described(file)))
    if names is not None:
        assert labels(read_model(append_files(described, {name: content}))) == names


def test_an_archive_that_claims_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.model.appended.MAX_FILE", 10)
    model = read_model(append_files(write_model(add_model()), {"a.txt": b"12345678901"}))
    with pytest.raises(ModelError, match=r"appended file 'a\.txt' claims 11 bytes, allowed are 10"):
        labels(model)
