"""Small integers of a kernel graph as sums of what it does not compute itself, and what a condition says of them.

Exporters clamp indices and count from the end, though they are inside: the least of i and 19, or i + 20 if i is less
than 0, is i where ranges tell so. What they do not tell has limits at least, those of the clamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gossamer.affine import Affine, Element, Limits, Ranges, of_known
from gossamer.arrays import NDArray
from gossamer.codegen.expression import Expression
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.dtypes import numpy_dtype
from gossamer.schema.enums import TensorType
from gossamer.views import View

MOST = 64
"""Elements of a buffer that is looked into: what has more is no index."""

DEEP = 64
"""Kernels that are looked at, one behind the other."""

INTEGERS = (TensorType.INT16, TensorType.INT32, TensorType.INT64)

_SUMS: Mapping[str, Callable[[Affine, Affine], Affine | None]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y.constant if y.is_constant else y * x.constant if x.is_constant else None,
}

_CHOICES = ("min", "max")

_COMPARISONS: Mapping[str, Callable[[Affine, Affine], Sequence[Affine]]] = {
    "less": lambda x, y: [x - y + 1],
    "lessequal": lambda x, y: [x - y],
    "greater": lambda x, y: [y - x + 1],
    "greaterequal": lambda x, y: [y - x],
    "equal": lambda x, y: [x - y, y - x],
}
"""Sums that are not more than 0 if a comparison holds."""


_CONNECTIVES: Mapping[str, Callable[[Sequence[bool | None]], bool | None]] = {
    "and": lambda of: False if False in of else None if None in of else True,
    "or": lambda of: True if True in of else None if None in of else False,
    "not": lambda of: None if of[0] is None else not of[0],
}
"""Of flags, of which some are not known."""


def numbers_of(view: View, graph: KernelGraph, ranges: Ranges | None = None) -> list[Affine] | None:
    """The elements of a view of integers, which has been written; ``None`` if they are many."""
    if view.type not in INTEGERS or view.size > MOST:
        return None
    numbers = _Numbers(graph, ranges)
    return [numbers.element((view.buffer, _number(view, place)), DEEP) for place in _places(view)]


def constant_of(view: View, graph: KernelGraph) -> NDArray[Any] | None:
    """A view of integers, if all that it is computed of is constant."""
    numbers = numbers_of(view, graph)
    if numbers is None or not all(number.is_constant for number in numbers):
        return None
    return np.array([number.constant for number in numbers], numpy_dtype(view.type)).reshape(view.shape)


def conditions_of(flag: View, graph: KernelGraph) -> list[Affine]:
    """Sums that are not more than 0 if a flag is set: those of comparisons that must all hold for that."""
    numbers = _Numbers(graph)
    sums: list[Affine] = []
    flags = [(flag.buffer, flag.offset)]
    for element in flags:
        writers = numbers.writers(element)
        if len(writers) != 1 or len(flags) > DEEP:
            continue
        kernel, operands = writers[0]
        name, *sides = kernel.epilogue if isinstance(kernel.epilogue, tuple) else ("and", 0)
        if kernel.kind not in ("map", "copy") or not all(isinstance(side, int) for side in sides):
            continue
        if name == "and":
            flags += [operands[side] for side in sides]
        elif name in _COMPARISONS and all(operands[side][0].type in INTEGERS for side in sides):
            sums += _COMPARISONS[name](*(numbers.element(operands[side], DEEP) for side in sides))
    return sums


def greatest(number: Affine, graph: KernelGraph, ranges: Ranges) -> int | None:
    """What a sum is known not to be more than; ``None`` if nothing is."""
    numbers = _Numbers(graph, ranges)
    return ranges.greatest(number, {element: numbers.limits(element, DEEP) for element in number.terms})


def truth_of(flag: View, graph: KernelGraph) -> bool | None:
    """A flag that the graph computes, if it is known now."""
    return _Numbers(graph).truth((flag.buffer, flag.offset), DEEP)


class _Numbers:
    """What is known of elements of the buffers of a graph. What is written is not changed any more: variables, which
    are, get their next values when all that reads them has been lowered."""

    def __init__(self, graph: KernelGraph, ranges: Ranges | None = None) -> None:
        self._writers = graph.writers()
        self._ranges = Ranges() if ranges is None else ranges
        self._known: dict[Element, Affine] = {}
        self._limited: dict[Element, Limits] = {}
        self._true: dict[Element, bool | None] = {}

    def element(self, element: Element, deep: int) -> Affine:
        """An integer: as a sum of others, or as itself."""
        if element not in self._known:
            self._known[element] = self._element(element, deep)
        return self._known[element]

    def _element(self, element: Element, deep: int) -> Affine:
        buffer, number = element
        if buffer.array is not None:
            return Affine(int(buffer.array.reshape(-1)[number]))
        itself = Affine(0, {element: 1})
        made = self._made(element, deep)
        found = None if made is None else self._sum(*made, deep - 1)
        if found is None:
            return itself
        limits = np.iinfo(numpy_dtype(buffer.type))
        wraps = found.is_constant and not limits.min <= found.constant <= limits.max
        return itself if wraps else found

    def _made(self, element: Element, deep: int) -> tuple[Expression, list[Element]] | None:
        """The expression that an element is of others, if it is one."""
        buffer, _ = element
        writers = self.writers(element) if deep and buffer.array is None and prod(buffer.shape) <= MOST else []
        if len(writers) != 1 or writers[0][0].kind not in ("map", "copy"):
            return None
        kernel, operands = writers[0]
        return kernel.epilogue, operands

    def _sum(self, expression: Expression, operands: Sequence[Element], deep: int) -> Affine | None:
        if isinstance(expression, int):
            element = operands[expression]
            return self.element(element, deep) if element[0].type in INTEGERS else None
        name, *arguments = expression
        if name == "select":
            holds = self._holds(arguments[0], operands, deep)
            return None if holds is None else self._sum(arguments[1 if holds else 2], operands, deep)
        if name not in _SUMS and name not in _CHOICES:
            return None
        x, y = (self._sum(argument, operands, deep) for argument in arguments)
        if x is None or y is None:
            return None
        if name in _SUMS:
            return _SUMS[name](x, y)
        less, more = (x, y) if self._is_at_most(x - y, 0) else (y, x) if self._is_at_most(y - x, 0) else (None, None)
        return less if name == "min" else more

    def _is_at_most(self, x: Affine, limit: int) -> bool:
        most = self._ranges.greatest(x)
        return most is not None and most <= limit

    def limits(self, element: Element, deep: int) -> Limits:
        """What an integer is known not to be less, and not to be more than."""
        if element not in self._limited:
            self._limited[element] = self._limits(element, deep)
        return self._limited[element]

    def _limits(self, element: Element, deep: int) -> Limits:
        itself = Affine(0, {element: 1})
        below, high = self._ranges.greatest(itself * -1), self._ranges.greatest(itself)
        made = self._made(element, deep)
        least, most = (None, None) if made is None else self._chosen(*made, deep - 1)
        low = None if below is None else -below
        return max(of_known((low, least)), default=None), min(of_known((high, most)), default=None)

    def _chosen(self, expression: Expression, operands: Sequence[Element], deep: int) -> Limits:
        """The limits of what is one of several numbers."""
        number = self._sum(expression, operands, deep)
        if number is not None and number.is_constant:
            return number.constant, number.constant
        if isinstance(expression, int):
            return self.limits(operands[expression], deep)
        name, *arguments = expression
        if name not in (*_CHOICES, "select"):
            return None, None
        lows, highs = zip(*(self._chosen(argument, operands, deep) for argument in arguments[-2:]), strict=True)
        least, most = of_known(lows), of_known(highs)
        low = max(least, default=None) if name == "max" else min(least) if len(least) == len(lows) else None
        high = min(most, default=None) if name == "min" else max(most) if len(most) == len(highs) else None
        return low, high

    def truth(self, element: Element, deep: int) -> bool | None:
        """A bool, if it is known."""
        if element not in self._true:
            self._true[element] = self._truth(element, deep)
        return self._true[element]

    def _truth(self, element: Element, deep: int) -> bool | None:
        buffer, number = element
        if buffer.array is not None:
            return bool(buffer.array.reshape(-1)[number])
        made = self._made(element, deep)
        return None if made is None else self._holds(*made, deep - 1)

    def _holds(self, expression: Expression, operands: Sequence[Element], deep: int) -> bool | None:
        if isinstance(expression, int):
            return self.truth(operands[expression], deep)
        name, *sides = expression
        if name in _COMPARISONS:
            x, y = (self._sum(side, operands, deep) for side in sides)
            sums = [] if x is None or y is None else _COMPARISONS[name](x, y)
            if any(self._is_at_most(one * -1, -1) for one in sums):
                return False
            return True if sums and all(self._is_at_most(one, 0) for one in sums) else None
        found = [self._holds(side, operands, deep) for side in sides] if name in _CONNECTIVES else []
        return _CONNECTIVES[name](found) if found else None

    def writers(self, element: Element) -> list[tuple[Kernel, list[Element]]]:
        """The kernels that write an element, with what these read for it if each element is computed of others."""
        buffer, number = element
        return [
            (kernel, [(x.buffer, _number(x, place)) for x in kernel.operands if len(x.shape) == len(y.shape)])
            for kernel in self._writers.get(buffer, ())
            for y in kernel.results
            if y.buffer is buffer
            for place in _places(y)
            if _number(y, place) == number
        ]


def _places(view: View) -> Iterator[tuple[int, ...]]:
    return product(*map(range, view.shape))


def _number(view: View, place: Sequence[int]) -> int:
    """Which element of its buffer is at a place of a view."""
    return view.offset + sum(index * stride for index, stride in zip(place, view.strides, strict=True))
