"""Names of classes: from a file with one on each line, or with a number before each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gossamer.tools._command import Failure, existing_file

Labels = Mapping[int, str]


def read_labels(path: str) -> Labels:
    """The labels in a file. Raises `Failure` if there is none, or it is not UTF-8 text."""
    existing_file(path, "label file")
    try:
        return numbered(Path(path).read_text(encoding="utf-8-sig").rstrip().splitlines())
    except UnicodeDecodeError as error:
        raise Failure(f"{path}: labels must be UTF-8 text, one label on a line ({error}).") from None


def numbered(lines: Sequence[str]) -> Labels:
    """Labels by class number: the number that a line begins with ("17  cat"), or that of the line.

    Numbers count as such only if every line has one and they rise: "3 of clubs" is a label.
    """
    pairs: list[tuple[int, str]] = []
    for line in lines:
        match = re.fullmatch(r"\s*(\d+)\s*[:,\s]\s*(\S.*)", line)
        number = int(match[1]) if match else -1
        if match is None or (pairs and number <= pairs[-1][0]):
            return {position: text.strip() for position, text in enumerate(lines)}
        pairs.append((number, match[2].strip()))
    return dict(pairs)


def name_of(labels: Labels, number: int) -> str:
    """The label of a class; its number if it has none."""
    return labels.get(number) or str(number)
