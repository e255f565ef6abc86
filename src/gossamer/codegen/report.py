"""What a built program does, for people and scripts: its commands, with the work that each of them has.

Figures are counted on the kernel graph, not on the machine code. A multiplication and the addition of its product are
two floating-point operations; a function of an expression is one for each element, however many instructions it takes.
Bytes are those that must be read and written at least: each element once, and what is repeated by a view not again.
Convolutions count as what they compute, also where an algorithm (Winograd's, Strassen's) multiplies less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import NamedTuple

from gossamer.codegen.build import Built
from gossamer.codegen.expression import Expression
from gossamer.codegen.graph import Kernel
from gossamer.codegen.layout import item_bytes
from gossamer.codegen.passes.rows import Rows
from gossamer.codegen.spec import WORD, ArgumentBlock
from gossamer.programs.program import KERNELS
from gossamer.programs.team import JUMP
from gossamer.views import Geometry, Shape, View


class Work(NamedTuple):
    """Floating-point operations, and bytes that are read and written."""

    flops: int
    read: int
    written: int


class Command(NamedTuple):
    """A command of a program: its kernel, the kernels that this one calls, and what it is for. A jump has no kernel.

    ``kind``: of the graph's kernel. ``operators``: those that it comes from, with their node numbers. ``shape``: of the
    result, and ``operands``: of what is read. ``work``: where a kernel of the graph takes several commands, those that
    run the last one's kernel share it, and what prepares for them has none.
    """

    kernel: str
    calls: tuple[str, ...]
    kind: str
    operators: tuple[str, ...]
    shape: Shape
    operands: tuple[Shape, ...]
    work: Work


def commands_of(built: Built) -> list[Command]:
    """The commands of a run, in their order."""
    last = {id(step.node): step.kernel for step in built.steps}
    working = [id(step.node) for step in built.steps if step.kernel == last[id(step.node)]]
    counts, done = Counter(working), Counter[int]()
    commands = []
    for step in built.steps:
        node, key, share = step.node, id(step.node), Work(0, 0, 0)
        if step.kernel == last[key]:
            share = _share(work_of(node), done[key], counts[key])
            done[key] += 1
        shapes = tuple(view.shape for view in node.operands)
        commands.append(Command(step.kernel, step.calls, node.kind, node.origin, node.y.shape, shapes, share))
    return commands


def arguments_of(built: Built) -> list[dict[str, int | str]]:
    """What each command of a run reads in its argument block: numbers, ``base+offset`` for places, names of kernels.

    A table of further words is a place in ``blocks``.
    """
    plan = built.plan
    bases = {at: base for base, places in plan.relocations.items() for at in places.tolist()}

    def word(at: int) -> int | str:
        value, base = int(plan.words[at]), bases.get(at)
        if base is None:
            return value
        return plan.kernels[value] if base == KERNELS else f"{base}+{value}"

    jump = ArgumentBlock(**JUMP)
    return [
        {
            argument.name: word((block + argument.offset) // WORD)
            for argument in (jump if number < 0 else built.specs[plan.kernels[number]].arguments)
        }
        for number, block, _ in plan.commands.tolist()
    ]


def total(works: Iterable[Work]) -> Work:
    """The sum."""
    listed = list(works)
    return Work(*(sum(work[field] for work in listed) for field in range(len(Work._fields))))


def work_of(node: Kernel) -> Work:
    """The work of a kernel of the graph."""
    y = node.y
    if node.kind == "border":
        top, bottom, left, right = node.settings
        images, height, width, depth = y.shape
        around = (height + top + bottom) * (width + left + right) - height * width
        return Work(0, 0, images * around * depth * item_bytes(y.buffer))
    own = FLOPS.get(node.kind, _none)(node)
    views = {_key(view): view for view in node.operands}.values()
    read = sum(_bytes(view) for view in views)
    written = _bytes(y)
    if node.kind == "jump":
        return Work(0, read, 0)
    if node.kind == "gather":  # as much of the first operand as it writes
        read -= max(0, _bytes(node.operands[0]) - written)
    if node.kind == "put":  # into y, the first operand
        written = _bytes(node.operands[0])
    return Work(own + y.size * _functions(node.epilogue), read, written)


def _none(node: Kernel) -> int:
    return 0


def _convolution(node: Kernel) -> int:
    # Weights are [O, h, w, C / groups], or of a volume [O, d, h, w, C]; the bias is one more.
    return node.y.size * (2 * prod(node.operands[1].shape[1:]) + 1)


def _hybrid(node: Kernel) -> int:
    weights = node.operands[1]
    return node.y.size * (2 * (weights.size // weights.shape[0]) + 1)


def _elementwise(node: Kernel) -> int:
    return node.y.size


def _contract16(node: Kernel) -> int:
    # The sums are some more than there are channels.
    channels, *taps = node.operands[1].shape
    return prod(node.y.shape[:-1]) * channels * 2 * prod(taps)


def _dot(node: Kernel) -> int:
    return 2 * node.operands[0].size


def _depthwise(node: Kernel) -> int:
    return node.y.size * (2 * prod(node.operands[1].shape[:2]) + 1)


def _matmul(node: Kernel) -> int:
    return node.y.size * (2 * node.operands[0].shape[-1] + (node.arity > 2))


def _window(node: Kernel) -> int:
    settings = node.settings
    geometry: Geometry = settings["geometry"] if isinstance(settings, dict) else settings[1]
    return node.y.size * prod(geometry.kernel)


def _rows(node: Kernel) -> int:
    # Operands are x, weights and bias of the expansion, if there is one, of the filter and of the projection.
    settings: Rows = node.settings
    images, rows, columns, _ = node.y.shape
    filter, project = node.operands[node.arity - 4], node.operands[node.arity - 2]
    height, width, channels = filter.shape
    flops = images * rows * columns * channels * (2 * height * width + 1 + _functions(settings.epilogue))
    flops += node.y.size * (2 * prod(project.shape[1:]) + 1)
    if settings.expand:
        geometry, epilogue = settings.expand
        x, weights = node.operands[:2]
        height, width = x.shape[1:3] if geometry.is_pointwise else geometry.output
        each = 2 * prod(weights.shape[1:]) + 1 + _functions(epilogue)
        flops += images * height * width * weights.shape[0] * each
    return flops


def _reduce(node: Kernel) -> int:
    return node.operands[0].size


def _normalize(node: Kernel) -> int:
    # Of each element: for a layer the sum, less the mean, squared, the sum, less the mean, over the deviation; for the
    # others squared, the sum, over the norm.
    return (6 if node.settings.get("norm") == "layer" else 3) * node.y.size


def _local_response(node: Kernel) -> int:
    # Of each element: its square, the sum over its neighbours, times alpha, plus bias, to a power, the product.
    neighbours: int = min(2 * max(node.settings["radius"], 0) + 1, node.y.shape[-1])
    return (neighbours + 5) * node.y.size


def _resize(node: Kernel) -> int:
    # Between two elements is a difference, a product and a sum; of four, it is that three times.
    return 9 * node.y.size if isinstance(node.settings["rows"][0], tuple) else 0


def _softmax(node: Kernel) -> int:
    # Of each element: times beta, the maximum, less the maximum, the exponential, the sum, over the sum.
    return 6 * node.y.size


FLOPS: Mapping[str, Callable[[Kernel], int]] = {
    "bitcast": _none,
    "branch": _none,
    "contract": _convolution,
    "contract16": _contract16,
    "copy": _none,
    "depthwise": _depthwise,
    "depthwise16": _depthwise,
    "dot16": _dot,
    "extreme": _reduce,
    "gather": _none,
    "grid": _none,
    "hybrid": _hybrid,
    "hybrid_depthwise": _depthwise,
    "levels": _elementwise,
    "localresponse": _local_response,
    "loop": _none,
    "map": _none,
    "matmul": _matmul,
    "nonzero": _none,
    "normalize": _normalize,
    "product16": _matmul,
    "push": _none,
    "put": _none,
    "quantize": _elementwise,
    "quantized_contract": _convolution,
    "quantized_depthwise": _depthwise,
    "quantized_matmul": _matmul,
    "quantized_normalize": _normalize,
    "quantized_reduce": _reduce,
    "quantized_softmax": _softmax,
    "quantized_window": _window,
    "quantized_winograd": _convolution,
    "range": _reduce,
    "reduce": _reduce,
    "resize": _resize,
    "rows": _rows,
    "scan": _reduce,
    "softmax": _softmax,
    "softmax16": _softmax,
    "topk": _none,
    "strassen": _convolution,
    "volume": _convolution,
    "window": _window,
    "winograd": _convolution,
}
"""By kind of kernel, its floating-point operations without the epilogue."""


def _functions(expression: Expression) -> int:
    """The functions of an expression; what occurs in it twice is computed once."""
    found: set[Expression] = set()

    def walk(part: Expression) -> None:
        if not isinstance(part, int) and part not in found:
            found.add(part)
            for argument in part[1:]:
                walk(argument)

    walk(expression)
    return len(found)


def _bytes(view: View) -> int:
    elements = prod(size for size, stride in zip(view.shape, view.strides, strict=True) if stride)
    return elements * item_bytes(view.buffer)


def _key(view: View) -> tuple[object, ...]:
    return id(view.buffer), view.shape, view.strides, view.offset


def _share(work: Work, number: int, count: int) -> Work:
    """Part ``number`` of ``count`` nearly equal ones."""

    def part(whole: int) -> int:
        return whole * (number + 1) // count - whole * number // count

    return Work(part(work.flops), part(work.read), part(work.written))
