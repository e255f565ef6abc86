"""Names of classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.tools._command import Failure
from gossamer.tools._labels import name_of, numbered, read_labels


def test_a_label_on_each_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes("\ufeffcat\r\n dog \r\n\r\nbird\n\n".encode())
    labels = read_labels(str(path))
    assert labels == {0: "cat", 1: "dog", 2: "", 3: "bird"}
    assert [name_of(labels, number) for number in range(5)] == ["cat", "dog", "2", "bird", "4"]


def test_numbers_before_labels() -> None:
    assert numbered(["0  person", "2  car", "17: cat"]) == {0: "person", 2: "car", 17: "cat"}
    assert numbered(["3 of clubs", "joker"]) == {0: "3 of clubs", 1: "joker"}
    assert numbered(["3 of clubs", "2 of clubs"]) == {0: "3 of clubs", 1: "2 of clubs"}
    assert numbered(["0", "1", "2"]) == {0: "0", 1: "1", 2: "2"}
    assert numbered([]) == {}


def test_what_is_no_label_file(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    with pytest.raises(Failure, match=r"label file .* does not exist"):
        read_labels(str(path))
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(Failure, match=r"labels must be UTF-8 text, one label on a line"):
        read_labels(str(path))
