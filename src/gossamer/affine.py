"""Integers that a program computes, as sums of multiples of others: what tells that a size is always the same.

``x[i:i + 3]`` has (i + 3) - i = 3 elements, whatever i is; and ``x[:i]``, one element and ``x[i + 1:]`` are together as
many as x has. The integers are those of mathematics and do not wrap: what is read or written is checked in the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gossamer.records import field, record
from gossamer.views import Buffer, View

Element = tuple[Buffer, int]
"""An element of a buffer, by its number."""

Limits = tuple[int | None, int | None]
"""What a number is not less, and not more than; ``None`` where nothing is known."""


@record(frozen=True)
class Affine:
    """``constant``, and for each of some elements so many times its value."""

    constant: int
    terms: Mapping[Element, int] = field(default_factory=dict)

    @property
    def is_constant(self) -> bool:
        """Whether it is known now."""
        return not self.terms

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms)
        terms = dict(self.terms)
        for element, factor in other.terms.items():
            terms[element] = terms.get(element, 0) + factor
        return Affine(self.constant + other.constant, {element: factor for element, factor in terms.items() if factor})

    def __mul__(self, factor: int) -> Affine:
        terms = {element: factor * number for element, number in self.terms.items()} if factor else {}
        return Affine(factor * self.constant, terms)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + other * -1


@record(frozen=True, eq=False)
class Stretch:
    """Elements from ``begin`` to before ``end`` of a view along an axis: how many, only the run tells.

    ``stop`` is the element that holds the end, if it is not a constant. The run finds a fault, or 0 <= begin <= end.
    """

    view: View
    axis: int
    begin: Affine
    end: Affine
    stop: View | None = None


class Ranges:
    """What is known of elements: numbers that they are not less than, and sums that are not more than 0.

    ``asked``: the elements whose least numbers somebody wanted to know.
    """

    def __init__(
        self,
        least: Mapping[Element, int] | None = None,
        sums: Sequence[Affine] = (),
        asked: set[Element] | None = None,
    ) -> None:
        self._least = dict(least or {})
        self._sums = tuple(sums)
        self.asked: set[Element] = set() if asked is None else asked

    def within(self, least: Mapping[Element, int], sums: Sequence[Affine]) -> Ranges:
        """The same, and more."""
        return Ranges({**self._least, **least}, (*self._sums, *sums), self.asked)

    def greatest(self, number: Affine, limits: Mapping[Element, Limits] | None = None) -> int | None:
        """What a number is known not to be more than; ``None`` if nothing is. ``limits`` of elements are known, too."""
        limits = limits or {}
        least = [self._least_of((number - known) * -1, limits) for known in (Affine(0), *self._sums)]
        return min([-one for one in of_known(least)], default=None)

    def _least_of(self, number: Affine, limits: Mapping[Element, Limits]) -> int | None:
        total, is_known = number.constant, True
        for element, factor in number.terms.items():
            self.asked.add(element)
            low, high = limits.get(element, (None, None))
            end = max(of_known((low, self._least.get(element))), default=None) if factor > 0 else high
            is_known &= end is not None
            total += 0 if end is None else factor * end
        return total if is_known else None


def of_known(numbers: Iterable[int | None]) -> list[int]:
    """Those that are not ``None``."""
    return [number for number in numbers if number is not None]
