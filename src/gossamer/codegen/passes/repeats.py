"""What is broadcast along short rows is repeated first, so that rows are long.

Short are rows of bytes, and those of other elements that do not fill a line of the cache.

A map of [56, 56, 16] bytes with a factor for each channel, as squeeze-and-excitation has it, would compute rows of 16
in registers of 64. With the 16 factors written down 32 times, rows have 512. Where it can be, rows begin with a line of
the cache: those of 144 bytes become 576, not 1008, and take three quarters of the time.

Measured on Zen 4, one thread: [1, 56, 56, 16] takes 3 us instead of 26, [1, 112, 112, 32] 21 instead of 102.

Where each short row has one element of an operand, as [5, 32, 32, 3, 1] with [3] has it, the map goes along the
columns, which takes a copy of what it writes, and of what is dense: 10 us instead of 117.

What is repeated as a whole, but lies in short rows, as the heads of keys and values that queries share, is gathered
once, and then copied in long rows: 32 heads of [64, 4] out of [64, 4, 4] take 1.3 us instead of 5.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from gossamer.codegen.expression import parameters_of
from gossamer.codegen.graph import COPY, MAP, Kernel, KernelGraph
from gossamer.codegen.passes.borders import needs_border
from gossamer.dtypes import element_bits
from gossamer.sizes import computed
from gossamer.views import Buffer, View

ROW = 512
"""Bytes that a row should have, or more, if that makes whole lines of the cache."""

MOST = 2048
"""Bytes of the longest row."""

LINE = 64

LEAST = 8192
"""Elements from which it pays. That is asked last: of most kernels it decides nothing, and what is decided by a size
that is open (`gossamer.sizes`) is a graph of its own for each answer."""


def run(graph: KernelGraph) -> None:
    """Repeat what is worth it."""
    kernels: list[Kernel] = []
    # A border lies between rows.
    bordered = {
        id(view.buffer) for kernel in graph.kernels for view in kernel.operands[:1] if needs_border(kernel, view.buffer)
    }
    for kernel in graph.kernels:
        before, behind = _helped(kernel, bordered)
        kernels += [*before, kernel, *behind]
    graph.kernels = kernels


def _helped(kernel: Kernel, bordered: Container[int]) -> tuple[Sequence[Kernel], Sequence[Kernel]]:
    """The copies that are worth it before a kernel and behind it, which is changed."""
    if any(id(view.buffer) in bordered for view in (kernel.y, *kernel.operands)):
        return (), ()
    if kernel.kind == COPY:
        return _gathered(kernel), ()
    copies = _lengthened(kernel) if kernel.kind == MAP else ()
    return (copies, ()) if copies or kernel.kind != MAP else _turned(kernel)


def _turned(kernel: Kernel) -> tuple[Sequence[Kernel], Sequence[Kernel]]:
    """Let a map whose rows are short, with one element of an operand for each, go along the columns; the copies that
    this takes."""
    y, tables = kernel.y, parameters_of(kernel.epilogue)
    count = y.shape[-1] if y.shape else 1
    tensors = [view for number, view in enumerate(kernel.operands) if number not in tables]
    if not y.is_dense or not any(any(view.strides) and not view.strides[-1] for view in tensors):
        return (), ()
    if count == 1 or count * element_bits(y.type) >= 8 * LINE or y.size < LEAST:
        return (), ()
    if any(any(view.strides) for number, view in enumerate(kernel.operands) if number in tables):
        return (), ()
    last = len(y.shape) - 1
    outer = [axis for axis in range(last) if y.shape[axis] > 1]
    if not all(_is_even(view.permute(outer)) for view in tensors):
        return (), ()  # columns would be short too
    copies: list[Kernel] = []
    for number, view in enumerate(kernel.operands):
        columns = view.permute((last, *outer))
        if columns.strides[-1] not in (0, 1):
            copied = Buffer(columns.shape, view.type).view()
            copies.append(Kernel(COPY, [columns], copied, origin=kernel.origin))
            columns = copied
        kernel.operands[number] = columns
    rows = y.permute((*outer, last))
    kernel.y = Buffer((rows.shape[-1], *rows.shape[:-1]), y.type).view()
    written = kernel.y.permute((*range(1, len(rows.shape)), 0))
    return copies, [Kernel(COPY, [written], rows, origin=kernel.origin)]


def _lengthened(kernel: Kernel) -> Sequence[Kernel]:
    """Give a map longer rows; the copies that this takes."""
    y = kernel.y
    if len(y.shape) < 2 or not y.is_dense:
        return ()
    *outer, count = y.shape
    bytes = count * element_bits(y.type) // 8
    if (element_bits(y.type) != 8 and bytes >= LINE) or y.size < LEAST:
        return ()
    rows = 1
    at = len(outer)
    tables = parameters_of(kernel.epilogue)
    tensors = [view for number, view in enumerate(kernel.operands) if number not in tables and any(view.strides)]
    # The dimensions in front of the row along which all operands are dense or repeat.
    while at and all(_is_dense(view, at - 1) or _repeats(view, at - 1) for view in tensors):
        at -= 1
        rows *= outer[at]
    repeated = [view for view in tensors if _repeats(view, at)]
    if not repeated or len(repeated) == len(tensors) or rows == 1:
        return ()
    times = computed(_times, bytes, rows)
    if times == 1:
        return ()
    shape = (*outer[:at], rows // times, times, count)
    copies: list[Kernel] = []
    operands: list[View] = []
    for number, view in enumerate(kernel.operands):
        if number in tables or not any(view is other for other in repeated):
            seen = view.reshape(shape)
        else:
            *front, _ = view.strides
            if any(stride and size > 1 for stride, size in zip(front[:at], outer[:at], strict=True)):
                return ()
            several = Buffer((times, count), view.type).view()
            one = View(view.buffer, (times, count), (0, view.strides[-1]), view.offset)
            copies.append(Kernel(COPY, [one], several, origin=kernel.origin))
            seen = several.broadcast(shape)
        if seen is None:
            return ()
        operands.append(seen)
    written = y.reshape(shape)
    if written is None:
        return ()
    kernel.operands, kernel.y = operands, written
    return copies


def _times(bytes: int, rows: int) -> int:
    """How many of these rows one becomes."""
    fitting = [n for n in range(1, MOST // bytes + 1) if rows % n == 0]
    whole = [n for n in fitting if n * bytes >= ROW and n * bytes % LINE == 0]
    return min(whole) if whole else max((n for n in fitting if n * bytes <= 2 * ROW), default=1)


def _is_even(view: View) -> bool:
    """Whether all dimensions are as one, with one stride."""
    steps = zip(view.strides, view.strides[1:], view.shape[1:], strict=False)
    return all(stride == following * size for stride, following, size in steps)


def _gathered(kernel: Kernel) -> Sequence[Kernel]:
    """Give a copy that repeats one operand in long rows; the copy that this takes."""
    (view,) = kernel.operands
    repeated = [axis for axis, size in enumerate(view.shape) if size > 1 and not view.strides[axis]]
    if not repeated:
        return ()
    behind = prod(view.shape[repeated[-1] + 1 :])
    if behind * element_bits(view.type) < 8 * ROW or view.size < LEAST:
        return ()
    row = next(
        (prod(view.shape[axis:]) for axis in range(repeated[-1] + 1, len(view.shape)) if _is_dense(view, axis)), 1
    )
    if row * element_bits(view.type) >= 8 * LINE:
        return ()
    shape = tuple([1 if axis in repeated else size for axis, size in enumerate(view.shape)])
    once = Buffer(shape, view.type).view()
    kernel.operands = [once.broadcast(view.shape)]
    return [Kernel(COPY, [View(view.buffer, shape, view.strides, view.offset)], once, origin=kernel.origin)]


def _is_dense(view: View, axis: int) -> bool:
    """Whether what is in front of the row follows from the row, from this dimension on."""
    size = 1
    for extent, stride in zip(view.shape[:axis:-1], view.strides[:axis:-1], strict=True):
        if extent > 1 and stride != size:
            return False
        size *= extent
    return view.shape[axis] == 1 or view.strides[axis] == size


def _repeats(view: View, axis: int) -> bool:
    """Whether it has one row of neighbours, over and over, from this dimension on."""
    *front, last = view.strides
    sizes = view.shape[:-1]
    return (
        last == 1
        and view.shape[-1] > 1
        and not any(stride for stride, size in zip(front[axis:], sizes[axis:], strict=True) if size > 1)
    )
