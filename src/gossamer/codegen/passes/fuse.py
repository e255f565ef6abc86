"""Maps into what computes their operands: one pass over memory instead of two.

A map goes into the map, or into the epilogue of the kernel, that writes one of its operands, if nobody else reads that.
The fused kernel runs where the map ran, so that its further operands are there.

Maps of any types become one, which converts in between as their buffers did; but what was float16 or bfloat16 would no
longer be rounded, and stays a buffer. Epilogues of other kernels are of float32 only, or of the bytes or int16 that
they make; then there is one tensor beside their result, and parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.elements import ELEMENT_OF, element
from gossamer.codegen.expression import Expression, calls, canonical, parameters_of, substitute, type_of
from gossamer.codegen.graph import MAP, Kernel, KernelGraph, same
from gossamer.codegen.kinds import kind_of
from gossamer.schema.enums import TensorType
from gossamer.views import View, derived, repeating

LARGEST = 64
"""Functions in the longest expression. It is spelled in names, and what it uses twice twice."""


def run(graph: KernelGraph) -> None:
    """Fuse until nothing changes."""
    writers = {id(kernel.y.buffer): kernel for kernel in graph.kernels}
    writes = _later_writes(graph)
    readers = {id(buffer): len(found) for buffer, found in graph.readers().items()}
    positions = {id(kernel): at for at, kernel in enumerate(graph.kernels)}
    gone: set[int] = set()
    for kernel in graph.kernels:
        while kernel.kind == MAP:
            tables = parameters_of(kernel.epilogue)
            producers = {
                id(p): p
                for at, view in enumerate(kernel.operands)
                if at not in tables
                and (p := writers.get(id(view.buffer))) is not None
                and id(p) not in gone
                and readers[id(view.buffer)] == 1
                and not graph.is_boundary(view.buffer)
                and id(view.buffer) not in writes
            }
            # The latest: what the others write is there by then.
            for producer in sorted(producers.values(), key=lambda p: -positions[id(p)]):
                fused = _fused(producer, kernel)
                moved = range(positions[id(producer)], positions[id(kernel)])
                written = (at for view in producer.operands for at in writes.get(id(view.buffer), ()))
                if fused is not None and not any(at in moved for at in written):
                    break
            else:
                break
            gone.add(id(producer))
            before = {id(view.buffer) for view in kernel.operands}
            kernel.kind, kernel.settings, kernel.arity = producer.kind, producer.settings, producer.arity
            kernel.operands, kernel.epilogue, kernel.y = fused
            kernel.origin = (*producer.origin, *(o for o in kernel.origin if o not in producer.origin))
            # What both read has one reader less.
            for buffer in before & {id(view.buffer) for view in producer.operands}:
                readers[buffer] -= 1
    graph.kernels = [kernel for kernel in graph.kernels if id(kernel) not in gone]


def _later_writes(graph: KernelGraph) -> dict[int, list[int]]:
    """By buffer that is written piece by piece, or is a variable, who writes it: no reader may pass them."""
    writes: dict[int, list[int]] = {}
    for at, kernel in enumerate(graph.kernels):
        for view in kernel.results:
            writes.setdefault(id(view.buffer), []).append(at)
    variables = {id(buffer) for buffer in graph.inputs.values()} | graph.outer.keys()
    return {buffer: found for buffer, found in writes.items() if len(found) > 1 or buffer in variables}


def _fused(producer: Kernel, kernel: Kernel) -> tuple[list[View], Expression, View] | None:
    """Operands, epilogue and result of both in one, or ``None`` if the producer cannot take the map."""
    kind = kind_of(producer)
    if kind.epilogue is None or not producer.y.is_whole:
        return None
    if (kind.epilogue == "floats" and not _is_of_floats(kernel)) or (
        kind.epilogue == "quantized" and not _is_of_one_type(kernel)
    ):
        return None
    result = _result(producer) if producer.kind == MAP else producer.epilogue
    if result is None:
        return None
    shape = producer.y.shape
    operands = list(producer.operands)
    mapping: dict[int, Expression] = {}
    tables = parameters_of(kernel.epilogue)
    for number, view in enumerate(kernel.operands):
        reshaped = view if view.shape == shape else view.reshape(shape)
        if reshaped is None:
            return None
        if view.buffer is producer.y.buffer:
            if not same(reshaped, producer.y):
                return None
            mapping[number] = result
            continue
        extra = reshaped if number in tables else _extra(reshaped, producer)
        if extra is None:
            return None
        for at, known in enumerate(operands[producer.arity - (producer.kind == MAP) :]):
            if same(known, extra):
                mapping[number] = at + (producer.kind != MAP)
                break
        else:
            mapping[number] = len(operands) - producer.arity + 1
            operands.append(extra)
    if len(operands) - producer.arity > kind.extras:
        return None
    y, expression = kernel.y.reshape(shape), canonical(substitute(kernel.epilogue, mapping))
    if kind.epilogue == "floats" and type_of(expression, ["f32"] * (len(operands) - producer.arity + 1)) != "f32":
        expression = ("tof32", expression)  # maps convert where they write another type, such kernels do not
    if kind.epilogue == "quantized" and len(operands) - producer.arity - len(parameters_of(expression)) > 1:
        return None
    return None if y is None or _functions_in(expression) > LARGEST else (operands, expression, y)


def _functions_in(expression: Expression) -> int:
    return 0 if isinstance(expression, int) else 1 + sum(map(_functions_in, expression[1:]))


def _result(map: Kernel) -> Expression | None:
    """What a map writes, as an expression of its operands; ``None`` if there is none."""
    written = ELEMENT_OF[map.y.type]
    if element(written).computed != written:
        return None
    made = type_of(map.epilogue, [ELEMENT_OF[view.type] for view in map.operands])
    return map.epilogue if made == written else (f"to{written}", map.epilogue)


def _is_of_floats(map: Kernel) -> bool:
    return all(view.type == TensorType.FLOAT32 for view in (map.y, *map.operands))


def _is_of_one_type(map: Kernel) -> bool:
    """Whether all its tensors are bytes of one type, as is all that it computes, or int16."""
    types = [ELEMENT_OF[view.type] for view in map.operands]
    tables = parameters_of(map.epilogue)
    found = {ELEMENT_OF[map.y.type], *(type for number, type in enumerate(types) if number not in tables)}
    if found == {"i16"}:
        return True
    return len(found) == 1 and found <= {"i8", "u8"} and {type_of(call, types) for call in calls(map.epilogue)} <= found


def _extra(view: View, producer: Kernel) -> View | None:
    """A further operand as an epilogue reads it: along the channels, one after the other."""
    if producer.kind == MAP or not view.shape or view.shape[-1] == 1 or view.strides[-1] == 1:
        return view
    if view.strides[-1] or any(view.strides) or not view.is_constant:
        return None
    size = view.shape[-1]
    return derived(view.buffer, (size,), view.type, _row, size, view.offset).view().broadcast(view.shape)


@repeating
def _row(array: NDArray[Any], size: int, offset: int) -> NDArray[Any]:
    return np.full(size, array.reshape(-1)[offset], array.dtype)
