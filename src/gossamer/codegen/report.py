"""What a built program does, for people and scripts: its commands, with the work that each of them has.

Figures are counted on the kernel graph, not on the machine code. A multiplication and the addition of its product are
two floating-point operations; a function of an expression is one for each element, however many instructions it takes.
Bytes are those that must be read and written at least: each element once, and what is repeated by a view not again.
Convolutions count as what they compute, also where an algorithm (Winograd's, Strassen's) multiplies less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import NamedTuple

from gossamer.codegen.build import Built
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.gather import Aim
from gossamer.codegen.kinds import functions_in, kind_of
from gossamer.codegen.layout import item_bytes
from gossamer.codegen.spec import WORD, ArgumentBlock
from gossamer.programs.program import KERNELS
from gossamer.programs.team import JUMP
from gossamer.views import Shape, View


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
        if step.kernel == last[key] and not isinstance(built.specs.get(step.kernel), Aim):  # which reads an index
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

    jump = ArgumentBlock(*["*" * (type == "ptr") + name for name, type in JUMP.items()])
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
    views = {_key(view): view for view in node.operands}.values()
    read = sum(_bytes(view) for view in views)
    if node.kind == "jump":
        return Work(0, read, 0)
    kind, written = kind_of(node), _bytes(y)
    if kind.moves == "from":
        read -= max(0, _bytes(node.operands[0]) - written)
    if kind.moves == "into":
        written = _bytes(node.operands[0])
    return Work(kind.flops(node) + y.size * functions_in(node.epilogue), read, written)


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
