"""JSON whose types are checked where it is asked, so that a damaged file says what is wrong and where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gossamer.errors import ConvertError

INT64 = range(-(1 << 63), 1 << 63)


class Json:
    """A value of a JSON document and its place in it. Every question raises `ConvertError` if the answer is of another
    type."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: str) -> None:
        self.value = value
        self.place = place

    @classmethod
    def parse(cls, text: bytes | str, place: str) -> Json:
        """A document."""
        try:
            return cls(json.loads(text), place)
        except (ValueError, RecursionError) as error:
            raise ConvertError(f"{place} is no JSON: {error}") from error

    def __getitem__(self, key: str) -> Json:
        """The member of this name, which has to be there."""
        found = self.get(key)
        if found is None:
            raise ConvertError(f"{self.place} has no {key!r}")
        return found

    def get(self, key: str) -> Json | None:
        """The member of this name; ``None`` if it is not there, or null."""
        value = self.members().get(key)
        return None if value is None else Json(value, f"{self.place}.{key}")

    def members(self) -> dict[str, Any]:
        """The object."""
        return self._of(dict, "an object")  # type: ignore[no-any-return]

    def items(self) -> Iterator[tuple[str, Json]]:
        """The members of an object, by name."""
        for key, value in self.members().items():
            yield key, Json(value, f"{self.place}.{key}")

    def only(self) -> tuple[str, Json]:
        """The one member of an object that stands for a union, and its name."""
        if len(self.members()) != 1:
            raise self.wrong("an object of one member")
        return next(self.items())

    def elements(self) -> list[Json]:
        """The elements of an array."""
        return [Json(value, f"{self.place}[{k}]") for k, value in enumerate(self._of(list, "an array"))]

    def text(self) -> str:
        """The string."""
        return self._of(str, "a string")  # type: ignore[no-any-return]

    def boolean(self) -> bool:
        """The truth value."""
        return self._of(bool, "a truth value")  # type: ignore[no-any-return]

    def integer(self, minimum: int = INT64.start) -> int:
        """The integer of 64 bits."""
        value = self.value
        if type(value) is not int or value < minimum or value not in INT64:
            raise self.wrong("an integer of 64 bits" if minimum < 0 else f"an integer of at least {minimum}")
        return value

    def number(self) -> float:
        """The number; torch writes those that JSON does not have as strings."""
        value = self.value
        if isinstance(value, str) and value in ("Infinity", "-Infinity", "NaN"):
            return float(value.replace("Infinity", "inf"))
        return float(self.integer()) if type(value) is not float else value

    def wrong(self, expected: str) -> ConvertError:
        """That the value is not what is expected here."""
        got = repr(self.value)
        return ConvertError(f"{self.place} is not {expected}: {got if len(got) < 80 else got[:80] + '...'}")

    def _of(self, type: type, words: str) -> Any:
        if not isinstance(self.value, type):
            raise self.wrong(words)
        return self.value
