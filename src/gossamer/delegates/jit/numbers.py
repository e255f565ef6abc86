"""Small integers of a kernel graph as sums of what it does not compute itself, and what a condition says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gossamer.affine import Affine, Element
from gossamer.arrays import NDArray
from gossamer.codegen.expression import Expression
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.dtypes import numpy_dtype
from gossamer.schema.enums import TensorType
from gossamer.sizes import is_open, whole
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


def numbers_of(view: View, graph: KernelGraph) -> list[Affine] | None:
    """The elements of a view of integers, which has been written; ``None`` if they are many."""
    if view.type not in INTEGERS or view.size > MOST:
        return None
    numbers = _Numbers(graph)
    return [numbers.element((view.buffer, _number(view, place)), DEEP) for place in _places(view)]


def constant_of(view: View, graph: KernelGraph) -> NDArray[Any] | None:
    """A view of integers, if all that it is computed of is constant."""
    numbers = numbers_of(view, graph)
    if numbers is None or not all(number.is_constant for number in numbers):
        return None
    known = [number.constant for number in numbers]
    return np.array(known, object if is_open(known) else numpy_dtype(view.type)).reshape(view.shape)


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


def truth_of(flag: View, graph: KernelGraph) -> bool | None:
    """A flag that the graph computes, if it is known now."""
    return _Numbers(graph).truth((flag.buffer, flag.offset), DEEP)


class _Numbers:
    """What is known of elements of the buffers of a graph. What is written is not changed any more: variables, which
    are, get their next values when all that reads them has been lowered."""

    def __init__(self, graph: KernelGraph) -> None:
        self._writers = graph.writers()
        self._known: dict[Element, Affine] = {}

    def element(self, element: Element, deep: int) -> Affine:
        """An integer: as a sum of others, or as itself."""
        if element not in self._known:
            self._known[element] = self._element(element, deep)
        return self._known[element]

    def _element(self, element: Element, deep: int) -> Affine:
        buffer, number = element
        if buffer.array is not None:
            return Affine(whole(buffer.array.reshape(-1)[number]))
        itself = Affine(0, {element: 1})
        writers = self.writers(element) if prod(buffer.shape) <= MOST else []
        if len(writers) != 1 or not deep:
            return itself
        kernel, operands = writers[0]
        if kernel.kind not in ("map", "copy") or any(of.type not in INTEGERS for of, _ in operands):
            return itself
        found = self._sum(kernel.epilogue, operands, deep - 1)
        limits = np.iinfo(numpy_dtype(buffer.type))
        wraps = found is not None and found.is_constant and not limits.min <= found.constant <= limits.max
        return itself if found is None or wraps else found

    def _sum(self, expression: Expression, operands: Sequence[Element], deep: int) -> Affine | None:
        if isinstance(expression, int):
            return self.element(operands[expression], deep)
        name, *arguments = expression
        if name not in _SUMS:
            return None
        x, y = (self._sum(argument, operands, deep) for argument in arguments)
        return None if x is None or y is None else _SUMS[name](x, y)

    def truth(self, element: Element, deep: int) -> bool | None:
        """A bool, if it is known."""
        buffer, number = element
        if buffer.array is not None:
            return bool(buffer.array.reshape(-1)[number])
        writers = self.writers(element)
        if len(writers) != 1 or not deep or writers[0][0].kind not in ("map", "copy"):
            return None
        kernel, operands = writers[0]
        name, *sides = kernel.epilogue if isinstance(kernel.epilogue, tuple) else ("and", 0)
        if not all(isinstance(side, int) for side in sides):
            return None
        if name in _COMPARISONS and all(operands[side][0].type in INTEGERS for side in sides):
            sums = _COMPARISONS[name](*(self.element(operands[side], DEEP) for side in sides))
            return all(one.constant <= 0 for one in sums) if all(one.is_constant for one in sums) else None
        found = [self.truth(operands[side], deep - 1) for side in sides] if name in _CONNECTIVES else []
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
