"""`loop`: a body, and a condition that says whether it runs once more. Its regions are in this order; operand 0 is the
flag that the condition writes, a byte.

Control enters at the condition, which stands behind the body, so that a turn takes one jump.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.graph import BRANCH, LOOP, Kernel
from gossamer.codegen.kernels.turns import Turns
from gossamer.codegen.passes.turns import Turn
from gossamer.programs.team import Jump

COMMAND, ELEMENTS = 10, 8
"""What a command costs at least, in ns, and how many elements of what it reads and writes cost one more."""

MEETING = 500
"""What it costs a command to be shared by threads, in ns."""

LONG = 50_000
"""How long a command may take that runs turns of a loop itself, in ns."""


def commands(node: Kernel, build: Build) -> None:
    """Jumps, and the commands of both regions. One thread runs them alone where a turn is short.

    Without regions, it is turns of a loop that are one command (`_turns`).
    """
    if not node.regions:
        spec, turns = node.settings
        flag, *places = [build.address(view) for view in node.operands]
        build.command(spec, places=build.table(places), flag=flag, turns=turns)
        return
    part = build.jump(Jump.PART) if not build.is_alone and _is_short(node) else None
    build.is_alone |= part is not None
    before = build.is_repeated, build.goes_back
    build.is_repeated, build.goes_back = True, None
    if node.settings is None or not build.has(_kernel(node.settings, build)):
        _commands(node, build)
    else:
        _turns(node, node.settings, build)
    build.is_repeated, build.goes_back = before
    if part is not None:
        build.is_alone = False
        build.land(part)
        build.jump(Jump.JOIN)


def _commands(node: Kernel, build: Build) -> None:
    """What reads many weights does so back and forth: two turns, the second of which goes the other way."""
    body, condition = node.regions
    flag = node.operands[0]
    enter = build.jump(Jump.GO)
    start = build.next_command
    build.region(body)
    if build.next_command == start:  # threads must meet between two looks at the flag
        build.jump(Jump.BACK, flag, target=start + 1, cost=COMMAND)
    cost, over = COMMAND + sum(map(_cost, _turn(node))), None
    if build.goes_back is not None:
        build.region(condition)
        over = build.jump(Jump.UNLESS, flag)
        build.goes_back, cost = True, 2 * cost
        build.region(body)
    build.land(enter)
    build.region(condition)
    build.jump(Jump.BACK, flag, target=start, cost=cost)
    if over is not None:
        build.land(over)


def _kernel(turn: Turn, build: Build) -> Turns:
    return Turns(build.target.name, turn.variables, turn.others, turn.statements, turn.following, turn.going)


def _turns(node: Kernel, turn: Turn, build: Build) -> None:
    """One command for many turns, once the condition holds."""
    flag = node.operands[0]
    build.region(node.regions[1])
    over = build.jump(Jump.UNLESS, flag)
    start = build.next_command
    cost = sum(map(_cost, _turn(node)))
    turns = max(1, LONG // cost)
    settings = _kernel(turn, build), turns
    build.run(Kernel(LOOP, [flag, *turn.places], node.y, settings, origin=node.origin))
    build.jump(Jump.BACK, flag, target=start, cost=turns * cost)
    build.land(over)


def _turn(loop: Kernel) -> list[Kernel]:
    """The kernels of a turn that are not in loops themselves."""
    found: list[Kernel] = []
    for region in loop.regions:
        for kernel in region.kernels:
            if kernel.kind == BRANCH:
                found += _turn(kernel)
            elif kernel.kind != LOOP:
                found.append(kernel)
    return found


def _cost(kernel: Kernel) -> int:
    return COMMAND + sum(view.size for view in (*kernel.operands, kernel.y)) // ELEMENTS


def _is_short(loop: Kernel) -> bool:
    """Whether to share commands costs threads more than they gain, in loops inside too."""
    if loop.settings is not None:
        return True
    turn = _turn(loop)
    inner = [kernel for region in loop.regions for part in region.parts() for kernel in part.kernels]
    alike = all(_is_short(kernel) for kernel in inner if kernel.kind == LOOP)
    return alike and sum(map(_cost, turn)) <= MEETING * len(turn)
