"""Records behave as dataclasses do, wherever the package relies on it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import pytest

from gossamer import records


def classes(record, field):  # type: ignore[no-untyped-def]  # of either module
    @record(frozen=True)
    class Point:
        kind: ClassVar[str] = "point"
        x: int
        y: int = 2
        tags: tuple[str, ...] = ()
        note: str = field(default="", compare=False)

    @record(frozen=True)
    class Named(Point):
        name: str = field(default="n", repr=False)
        size: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", self.x * self.y)

    @record
    class Bag:
        items: list[int] = field(default_factory=list)

    @record(frozen=True, eq=False)
    class Self:
        x: int

    return Point, Named, Bag, Self


OURS = classes(records.record, records.field)
OFTEN = classes(records.record, records.field)
THEIRS = classes(dataclasses.dataclass, dataclasses.field)
for cls in (OFTEN[0], OFTEN[1], OFTEN[3]):
    for number in range(records.OFTEN):
        cls(number)
for _ in range(records.OFTEN):
    OFTEN[2]()


def test_an_initializer_is_written_for_what_is_made_often() -> None:
    assert all(often.__init__ is not ours.__init__ for often, ours in zip(OFTEN, OURS, strict=True))
    assert len({ours.__init__ for ours in OURS}) == 1


@pytest.mark.parametrize("records_of", [OURS, OFTEN], ids=["new", "often"])
@pytest.mark.parametrize("number", range(2))
def test_construction_equality_hash_and_repr(number: int, records_of: tuple[type, ...]) -> None:
    for arguments, named in (((1,), {}), ((1, 5), {}), ((1,), {"tags": ("a",)}), ((), {"x": 3, "note": "!"})):
        ours, theirs = records_of[number](*arguments, **named), THEIRS[number](*arguments, **named)
        assert repr(ours).rpartition(".")[2] == repr(theirs).rpartition(".")[2]
        assert vars(ours) == vars(theirs)
        assert ours == records_of[number](*arguments, **named)
        assert hash(ours) == hash(records_of[number](*arguments, **named)) == hash(theirs)
        assert ours != records_of[number](99)
    assert records_of[number](1, note="a") == records_of[number](1, note="b")
    assert records_of[0](1) != records_of[1](1)
    assert records_of[number].__match_args__ == THEIRS[number].__match_args__


@pytest.mark.parametrize("of", [OURS, OFTEN, THEIRS], ids=["records", "often", "dataclasses"])
def test_what_is_refused(of: tuple[type, ...]) -> None:
    point, named, bag, itself = of
    for arguments, values in (((), {}), ((1, 2, (), "", 5), {}), ((1,), {"x": 2}), ((1,), {"z": 2})):
        with pytest.raises(TypeError):
            point(*arguments, **values)
    with pytest.raises(TypeError):
        named(1, size=3)
    with pytest.raises(AttributeError, match="cannot assign to field 'x'"):
        point(1).x = 2
    with pytest.raises(AttributeError, match="cannot delete field 'x'"):
        del point(1).x
    with pytest.raises(TypeError, match="unhashable"):
        hash(bag())
    assert itself(1) != itself(1)
    assert len({itself(1), itself(1)}) == 2


@pytest.mark.parametrize("of", [OURS, OFTEN], ids=["new", "often"])
def test_factories_and_replacement(of: tuple[type, ...]) -> None:
    _, named, bag, _ = of
    first, second = bag(), bag()
    first.items.append(1)
    assert second.items == []
    changed = records.replace(named(2, 3, name="a"), x=5)
    assert (changed.x, changed.y, changed.name, changed.size) == (5, 3, "a", 15)
