"""Functions of one tensor of bytes become tables, and so do chains of them: 256 entries say all.

LOGISTIC by a table and MUL by the same tensor, as an activation is written in quantized models, is one table; so is a
table behind another, and a float function between DEQUANTIZE and QUANTIZE. Fusing has made one expression of them.
A table is filled by the kernel that would have computed the tensor, from all values that a byte may have: once, when
the program is made, as all that it reads is known then (`KernelGraph.known`). Epilogues are treated alike.

A lone function that is no table stays: it is as quick.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.elements import ELEMENT_OF, element
from gossamer.codegen.expression import calls, parameters_of, type_of
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.quantized import TABLE
from gossamer.dtypes import numpy_dtype
from gossamer.schema.enums import TensorType
from gossamer.views import Buffer, View

BYTES = frozenset((TensorType.INT8, TensorType.UINT8))


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
            kernel.operands = [*([x] if kernel.kind == "map" else kernel.operands[: kernel.arity]), entries]
            kernel.epilogue = ("lookup", 0, 1)
        kernels.append(kernel)
    graph.kernels = kernels


def _table(kernel: Kernel, known: set[int]) -> tuple[Kernel, View] | None:
    """What fills the table that an expression is, and the operand of which it is a function: what an epilogue is
    applied to, or one of a map. ``None`` if there is not just one."""
    tables = parameters_of(kernel.epilogue)
    views = kernel.operands if kernel.kind == "map" else [kernel.y, *kernel.extras]
    found: View | None = None
    operands: list[View] = []
    for at, view in enumerate(views):
        if at in tables or (id(view.buffer) in known and _is_single(view)):
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
    return Kernel("map", operands, y, None, kernel.epilogue, 1, kernel.origin), found


def _is_worth_it(kernel: Kernel) -> bool:
    """Whether bytes are made by more than one function, or by one that computes other types."""
    if kernel.y.type not in BYTES or kernel.epilogue == 0:
        return False
    found = list(calls(kernel.epilogue))
    if kernel.kind != "map":
        return len(found) > 1
    types = [ELEMENT_OF[view.type] for view in kernel.operands]
    return len(found) > 1 or any(element(type_of(call, types)).bits > 8 for call in found)


def _is_single(view: View) -> bool:
    """Whether it is one element, however often."""
    return not any(stride for stride, size in zip(view.strides, view.shape, strict=True) if size > 1)
