"""`search`: where values belong among sorted keys, by halving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from gossamer.codegen.elements import element
from gossamer.codegen.ir import I32, Module, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

Rule = Literal["upper", "equal"]
TYPES = ("f32", "f64", "i32")


@record(frozen=True)
class Search(KernelSpec):
    """y[row, i], i32, = a place among keys[row, :size] for x[row, i], of ``type``, i below ``count``.

    ``upper``: how many keys are not greater, for keys in ascending order; NaN is greater than all others. ``equal``:
    which key C's ``bsearch`` comes upon that is x, or -1. Rows are contiguous, ``keys_row``, ``x_row`` and ``y_row``
    bytes apart; size is less than 2^31. Threads share rows x blocks: ``blocks`` of ``block`` elements of x.
    """

    rule: Rule
    type: str = "f32"

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": TYPES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*keys *x *y rows size count block blocks keys_row x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "search", self.rule)

    def emit(self, target: Target) -> str:
        if self.type not in TYPES or self.rule not in get_args(Rule):
            raise CompileError(f"{self.name}: nothing is searched so.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        memory = element(self.type).memory
        scalar = vector(memory, 1)
        is_float, none = scalar.is_float, f.integer(-1)
        with f.share(a.rows * a.blocks) as task:
            row = task // a.blocks
            first = (task - row * a.blocks) * a.block
            keys, x = f.offset(a.keys, row * a.keys_row), f.offset(a.x, row * a.x_row)
            y = f.offset(a.y, row * a.y_row)
            with f.loop(first, f.least(first + a.block, a.count)) as each:
                value = f.load(scalar, f.at(x, each.index, memory))
                with f.loop(0, a.size, carry=[f.integer(0), a.size, none]) as looks:
                    low, high, found = looks.values
                    middle = f.wrapping("lshr", low + high, 1)
                    key = f.load(scalar, f.at(keys, middle, memory))
                    # An unordered comparison holds: NaN is not less than any key.
                    is_behind = f.compare("uge" if is_float else "sge", value, key)
                    if self.rule == "equal":
                        found = f.select(f.compare("oeq" if is_float else "eq", value, key), middle, found)
                    low, high = f.select(is_behind, middle + 1, low), f.select(is_behind, high, middle)
                    looks.goes_on = f.compare("slt", low, high) & f.compare("eq", found, -1)
                    looks.hand_on([low, high, found])
                low, _, found = looks.results
                place = found if self.rule == "equal" else low
                f.store(f.emit(I32, f"trunc {place} to i32"), f.at(y, each.index, "i32"))
        return module.text()
