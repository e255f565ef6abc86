"""Functions of one tensor of bytes become tables, and so do chains of them: 256 entries say all.

LOGISTIC by a table and MUL by the same tensor, as an activation is written in quantized models, is one table; so is a
table behind another, and a float function between DEQUANTIZE and QUANTIZE. Fusing has made one expression of them.
A table is filled by the kernel that would have computed the tensor, from all values that a byte may have: once, when
the program is made, as all that it reads is known then (`KernelGraph.known`). Epilogues are treated alike.

A lone function that is no table stays: it is as quick, but for sums and products in an epilogue.

So do chains that are part of a map's expression; and in large maps, sums and products alone that are part of one, and
functions of a tensor and of one byte for each of its rows, as normalization has them: (x - mean)^2 is, for each mean, a
table, and all means have a matrix.

Measured on Zen 4, one thread: SQUARED_DIFFERENCE of [128, 256] and the mean of each row takes 1.2 us instead of 23.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.elements import ELEMENT_OF, element
from gossamer.codegen.expression import Expression, calls, parameters_of, substitute, type_of
from gossamer.codegen.graph import MAP, Kernel, KernelGraph
from gossamer.codegen.kernels.elementwise import MAX_OPERANDS
from gossamer.codegen.quantized import TABLE
from gossamer.dtypes import numpy_dtype
from gossamer.schema.enums import TensorType
from gossamer.views import Buffer, View

OF_ELEMENT = {"i8": TensorType.INT8, "u8": TensorType.UINT8}
BYTES = frozenset(OF_ELEMENT.values())

SLOW = ("qadd", "qmul")
"""Functions of bytes that are computed with wider numbers."""

LEAST = TABLE * TABLE // 4
"""Elements from which matrices are made for parts of a map: one has four times as many entries, computed once."""

CHAIN = 3
"""Functions of wider numbers that are worth a table in maps that are smaller."""

LEAST_ROW = TABLE // 2
"""Elements of a row for which it pays to read a row of a matrix."""


def run(graph: KernelGraph) -> None:
    """Replace what is worth it."""
    known = graph.known()
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        found = _table(kernel, known) if _is_worth_it(kernel) else None
        if found is not None:
            table, x = found
            kernels.append(table)
            entries = View(table.y.buffer, kernel.y.shape, (0,) * len(kernel.y.shape), 0)
            kernel.operands = [*([x] if kernel.kind == MAP else kernel.operands[: kernel.arity]), entries]
            kernel.epilogue = ("lookup", 0, 1)
        elif kernel.kind == MAP and _has_rows(kernel):
            kernels += _Parts(kernel, known).tables()
        kernels.append(kernel)
    graph.kernels = kernels


class _Parts:
    """The tables that parts of a map's expression become."""

    def __init__(self, kernel: Kernel, known: set[int]) -> None:
        self._kernel = kernel
        self._is_large = kernel.y.size >= LEAST and kernel.y.shape[-1] >= LEAST_ROW
        self._operands = list(kernel.operands)
        self._tables: list[Kernel] = []
        self._known: dict[Expression, Expression] = {}
        fixed = {at for at, view in enumerate(kernel.operands) if id(view.buffer) in known and _is_single(view)}
        self._fixed = fixed | parameters_of(kernel.epilogue).keys()

    def tables(self) -> list[Kernel]:
        """Change the map, and return what fills its tables."""
        kernel = self._kernel
        whole, written = kernel.epilogue, ELEMENT_OF[kernel.y.type]
        expression = self._replaced(whole if self._type(whole) == written else (f"to{written}", whole))
        used = sorted(_operands_of(expression))
        if not self._tables or len(used) > MAX_OPERANDS:
            return []
        kernel.epilogue = substitute(expression, {number: at for at, number in enumerate(used)})
        kernel.operands = [self._operands[number] for number in used]
        return self._tables

    def _replaced(self, part: Expression) -> Expression:
        if isinstance(part, int):
            return part
        if part not in self._known:
            self._known[part] = self._table((part[0], *(self._replaced(argument) for argument in part[1:])))
        return self._known[part]

    def _table(self, part: tuple[Any, ...]) -> Expression:
        """A table in the place of a function, if it can be one."""
        leaves: list[Expression] = []
        inner = list(self._within(part, leaves))
        moving = [leaf for leaf in leaves if leaf not in self._fixed]
        of_rows: list[Expression] = [
            leaf for leaf in moving if isinstance(leaf, int) and not self._operands[leaf].strides[-1]
        ]
        others = [leaf for leaf in moving if leaf not in of_rows]
        if len(others) != 1 or len(of_rows) > 1 or self._type(part) not in OF_ELEMENT:
            return part
        types = {self._type(leaf) for leaf in moving}
        if len(types) > 1 or not types <= OF_ELEMENT.keys():
            return part
        slow = sum(map(self._is_slow, inner))
        if slow < (1 if self._is_large else CHAIN) or (of_rows and not self._is_large):
            return part
        shape = (TABLE,) * len(moving)
        operands: list[View] = []
        for at, leaf in enumerate(others + of_rows):
            type = OF_ELEMENT[self._type(leaf)]
            every: NDArray[Any] = np.arange(TABLE, dtype=np.uint8).view(numpy_dtype(type))
            strides = (1,) if len(moving) == 1 else (at, 1 - at)
            operands.append(View(Buffer((TABLE,), type, -1, every), shape, strides, 0))
        numbers = [number for number in sorted(self._fixed) if number in leaves]
        for view in (self._operands[number] for number in numbers):
            operands.append(View(view.buffer, shape, (0,) * len(shape), view.offset))
        y = Buffer(shape, OF_ELEMENT[self._type(part)]).view()
        expression = _with(part, {leaf: at for at, leaf in enumerate([*others, *of_rows, *numbers])})
        self._tables.append(Kernel(MAP, operands, y, None, expression, 1, self._kernel.origin))
        rank = len(self._kernel.y.shape)
        self._operands.append(View(y.buffer, self._kernel.y.shape, (0,) * rank, 0))
        return ("lookuprow" if of_rows else "lookup", *others, *of_rows, len(self._operands) - 1)

    def _within(self, part: tuple[Any, ...], leaves: list[Expression]) -> Iterator[tuple[Any, ...]]:
        """The functions from bytes to these bytes; what they are applied to becomes known as ``leaves``."""
        yield part
        for argument in part[1:]:
            if not isinstance(argument, int) and self._type(argument) not in OF_ELEMENT:
                yield from self._within(argument, leaves)
            elif argument not in leaves:
                leaves.append(argument)

    def _is_slow(self, call: tuple[Any, ...]) -> bool:
        return call[0] in SLOW or self._type(call) not in OF_ELEMENT

    def _type(self, part: Expression) -> str:
        return type_of(part, [ELEMENT_OF[view.type] for view in self._operands])


def _operands_of(expression: Expression) -> set[int]:
    return {expression} if isinstance(expression, int) else set().union(*map(_operands_of, expression[1:]))


def _with(part: Expression, operands: Mapping[Expression, int]) -> Expression:
    """The expression with operands in the place of others."""
    if part in operands:
        return operands[part]
    return part if isinstance(part, int) else (part[0], *(_with(argument, operands) for argument in part[1:]))


def _has_rows(kernel: Kernel) -> bool:
    """Whether it makes rows of bytes of what lies in rows."""
    views = (kernel.y, *kernel.operands)
    return kernel.y.type in BYTES and all(view.strides and view.strides[-1] in (0, 1) for view in views)


def _table(kernel: Kernel, known: set[int]) -> tuple[Kernel, View] | None:
    """What fills the table that an expression is, and the operand of which it is a function: what an epilogue is
    applied to, or one of a map. ``None`` if there is not just one."""
    tables = parameters_of(kernel.epilogue)
    views = kernel.operands if kernel.kind == MAP else [kernel.y, *kernel.extras]
    found: View | None = None
    operands: list[View] = []
    for at, view in enumerate(views):
        if at in tables or (id(view.buffer) in known and (_is_single(view) or _is_repeated(view))):
            operands.append(View(view.buffer, (TABLE,), (0,), view.offset))
        elif found is None and view.type in BYTES:
            found = view
            every: NDArray[Any] = np.arange(TABLE, dtype=np.uint8).view(numpy_dtype(view.type))
            operands.append(Buffer((TABLE,), view.type, -1, every).view())
        else:
            return None
    if found is None:
        return None
    y = Buffer((TABLE,), kernel.y.type).view()
    return Kernel(MAP, operands, y, None, kernel.epilogue, 1, kernel.origin), found


def _is_worth_it(kernel: Kernel) -> bool:
    """Whether bytes are made by more than one function, or by one that computes with other types."""
    if kernel.y.type not in BYTES or kernel.epilogue == 0:
        return False
    found = list(calls(kernel.epilogue))
    if kernel.kind != MAP:
        return len(found) > 1 or found[0][0] in SLOW
    types = [ELEMENT_OF[view.type] for view in kernel.operands]
    return len(found) > 1 or any(element(type_of(call, types)).bits > 8 for call in found)


def _is_single(view: View) -> bool:
    """Whether it is one element, however often."""
    return not any(stride for stride, size in zip(view.strides, view.shape, strict=True) if size > 1)


def _is_repeated(view: View) -> bool:
    """Whether it is a constant row of one number, as epilogues have it where a map has one element."""
    array = view.buffer.array
    return array is not None and array.ndim == 1 and bool((array == array[0]).all())
