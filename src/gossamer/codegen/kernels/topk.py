"""`topk`: where the greatest elements of a row are, in descending order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.basis import COMPARED
from gossamer.codegen.elements import element
from gossamer.codegen.ir import I32, I64, Module, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

FEW = 32
"""So many are kept sorted."""


@record(frozen=True)
class TopK(KernelSpec):
    """y[row, :k] = the indices, i32, of the k greatest of x[row, :count], the greatest first.

    Of equal elements the first comes first; NaN comes after all numbers. ``type`` is that of x. Rows are contiguous,
    ``x_row`` and ``y_row`` bytes apart; k is at most count, which is less than 2^31. Threads share rows.

    The best so far stand in y, a few of them sorted, more as a heap that is sorted at the end; an element that is
    better than the worst of them is inserted. Vectors without such an element, which is most of them in a row without
    an order, are passed over.
    """

    type: str = "f32"

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": COMPARED}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y rows count k x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "topk")

    def emit(self, target: Target) -> str:
        of_x = element(self.type)
        if of_x.kind not in ("float", "signed", "unsigned") or self.type != of_x.computed:
            raise CompileError(f"{self.name}: there is no order of {self.type}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        last, lanes = a.k - 1, f.lanes
        scalar, prefix = vector(of_x.memory, 1), {"float": "o", "signed": "s"}.get(of_x.kind, "u")
        with f.share(a.rows) as row:
            x, y = f.offset(a.x, row * a.x_row), f.offset(a.y, row * a.y_row)

            def better(value: Value, other: Value) -> Value:
                """Whether it comes before the other, which has the smaller index."""
                greater = f.compare(f"{prefix}gt", value, other)
                if of_x.kind != "float":
                    return greater
                return greater | f.compare("uno", other, other) & f.compare("ord", value, value)

            def standing(place: Value) -> tuple[Value, Value]:
                """What stands at a place: the index, and the element."""
                index = f.load(I32, f.at(y, place, "i32"))
                return index, f.load(scalar, f.at(x, f.emit(I64, f"sext {index} to i64"), of_x.memory))

            def insert(at: Value, value: Value, free: Value) -> None:
                """Put an element where it belongs, from a free place on: those behind it make room."""
                with f.loop(0, free, carry=[free]) as places:
                    before = free - places.index - 1
                    index, element_before = standing(before)
                    moves = better(value, element_before)
                    with f.when(moves):
                        f.store(index, f.at(y, before + 1, "i32"))
                    places.goes_on = moves
                    places.hand_on([f.select(moves, before, before + 1)])
                f.store(f.emit(I32, f"trunc {at} to i32"), f.at(y, places.results[0], "i32"))

            def passing(worst: Value, take: Callable[[Value, Value], None]) -> None:
                """Take those behind the first k that are better than the worst of the best, which stands at a place."""

                def consider(at: Value) -> None:
                    value = f.load(scalar, f.at(x, at, of_x.memory))
                    with f.when(better(value, standing(worst)[1])):
                        take(at, value)

                whole = a.k + ((a.count - a.k) & -lanes)
                with f.loop(a.k, whole, lanes) as vectors:
                    values = f.load(vector(of_x.memory, lanes), f.at(x, vectors.index, of_x.memory))
                    bound = f.splat(standing(worst)[1], lanes)
                    # NaN on either side counts as better here: that is looked at one by one.
                    candidates = f.compare(f"{'u' if of_x.kind == 'float' else prefix}gt", values, bound)
                    with f.when(f.any(candidates)), f.loop(0, lanes) as lane:
                        consider(vectors.index + lane.index)
                with f.loop(whole, a.count) as rest:
                    consider(rest.index)

            def sift(start: Value, stop: Value, index: Value, value: Value) -> None:
                """Put an element where it belongs in a heap of which the worst is the root, from a free place down."""
                with f.loop(0, f.integer(64), carry=[start]) as steps:
                    (free,) = steps.values
                    left = free * 2 + 1
                    is_inner, has_right = f.compare("slt", left, stop), f.compare("slt", left + 1, stop)
                    left = f.select(is_inner, left, free)
                    right = f.select(has_right, left + 1, left)
                    first, second = standing(left), standing(right)
                    is_right = worse(second, first)
                    child = f.select(is_right, right, left)
                    index_there, value_there = (f.select(is_right, b, a) for a, b in zip(first, second, strict=True))
                    moves = is_inner & worse((index_there, value_there), (index, value))
                    with f.when(moves):
                        f.store(index_there, f.at(y, free, "i32"))
                    steps.goes_on = moves
                    steps.hand_on([f.select(moves, child, free)])
                f.store(index, f.at(y, steps.results[0], "i32"))

            def worse(one: tuple[Value, Value], other: tuple[Value, Value]) -> Value:
                """Whether one comes behind the other; of equal elements, the one with the greater index."""
                (index, value), (other_index, other_value) = one, other
                is_behind = f.compare("sgt", index, other_index) & (better(value, other_value) ^ 1)
                return better(other_value, value) | is_behind

            def narrow(at: Value) -> Value:
                return f.emit(I32, f"trunc {at} to i32")

            many = f.compare("sgt", a.k, FEW)
            zero = f.integer(0)
            with f.when(many):
                with f.loop(0, a.k) as first:
                    f.store(narrow(first.index), f.at(y, first.index, "i32"))
                half = f.wrapping("lshr", a.k, 1)
                with f.loop(0, half) as inner:
                    place = half - 1 - inner.index
                    sift(place, a.k, *standing(place))
                passing(zero, lambda at, value: sift(zero, a.k, narrow(at), value))
                with f.loop(0, last) as sorts:
                    end = last - sorts.index
                    item = standing(end)
                    f.store(standing(zero)[0], f.at(y, end, "i32"))
                    sift(zero, end, *item)
            with f.when(many ^ 1):
                with f.loop(0, a.k) as first:
                    insert(first.index, f.load(scalar, f.at(x, first.index, of_x.memory)), first.index)
                passing(last, lambda at, value: insert(at, value, last))
        return module.text()
