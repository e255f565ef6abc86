"""`topk`: where the greatest elements of a row are, in descending order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.basis import COMPARED
from gossamer.codegen.elements import element
from gossamer.codegen.ir import I32, I64, Module, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
class TopK(KernelSpec):
    """y[row, :k] = the indices, i32, of the k greatest of x[row, :count], the greatest first.

    Of equal elements the first comes first; NaN comes after all numbers. ``type`` is that of x. Rows are contiguous,
    ``x_row`` and ``y_row`` bytes apart; k is at most count, which is less than 2^31. Threads share rows.

    The best so far stand in y, sorted; an element that is better than the last of them is inserted. Vectors without
    such an element, which is most of them in a row without an order, are passed over.
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
        last = a.k - 1
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

            def consider(at: Value) -> None:
                """Insert an element if it is better than the last one, which then goes."""
                value = f.load(scalar, f.at(x, at, of_x.memory))
                with f.when(better(value, standing(last)[1])):
                    insert(at, value, last)

            with f.loop(0, a.k) as first:
                insert(first.index, f.load(scalar, f.at(x, first.index, of_x.memory)), first.index)
            lanes = f.lanes
            whole = a.k + ((a.count - a.k) & -lanes)
            with f.loop(a.k, whole, lanes) as vectors:
                values = f.load(vector(of_x.memory, lanes), f.at(x, vectors.index, of_x.memory))
                worst = f.splat(standing(last)[1], lanes)
                # NaN on either side counts as better here: that is looked at one by one.
                candidates = f.compare(f"{'u' if of_x.kind == 'float' else prefix}gt", values, worst)
                with f.when(f.any(candidates)), f.loop(0, lanes) as lane:
                    consider(vectors.index + lane.index)
            with f.loop(whole, a.count) as rest:
                consider(rest.index)
        return module.text()
