"""Names of classes: from a file with one on each line, or with a number before each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gossamer.tools._command import Failure, existing_file

Labels = Mapping[int, str]


def read_labels(path: str) -> Labels:
    """The labels in a file. Raises `Failure` if it is not UTF-8 text."""
    existing_file(path, "label file")
    return parse_labels(Path(path).read_bytes(), path)


def parse_labels(raw: bytes, where: str) -> Labels:
    """Labels by class number: the line's own number if every line begins with one ("17  cat"), else that of the line."""
    try:
        lines = raw.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise Failure(f"{where}: labels must be UTF-8 text ({error}).") from None
    while lines and not lines[-1].strip():
        lines.pop()
    numbered = [re.fullmatch(r"\s*(\d+)\s*[:,\s]\s*(\S.*)", line) for line in lines if line.strip()]
    pairs = [(int(match[1]), match[2].strip()) for match in numbered if match]
    numbers = [number for number, _ in pairs]
    # "3 of clubs" among other labels is a label; numbers that rise without a gap in kind are numbers.
    if pairs and len(pairs) == len(numbered) and all(a < b for a, b in zip(numbers, numbers[1:], strict=False)):
        return dict(pairs)
    return {number: line.strip() for number, line in enumerate(lines)}


def name_of(labels: Labels, number: int) -> str:
    """The label of a class; its number if it has none."""
    return labels.get(number) or str(number)
