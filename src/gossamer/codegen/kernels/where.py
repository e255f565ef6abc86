"""`where`: the coordinates of the elements that are not zero, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.elements import element
from gossamer.codegen.ir import I64, Module, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

READ = ("f32", "i8", "i32", "i64")


def read_as(type: str) -> str:
    """The element type of which the same elements are zero."""
    return type if type == "f32" else f"i{element(type).bits}"


@record(frozen=True)
class Where(KernelSpec):
    """y[n, :rank] = the coordinates, i64, of the n-th element of x that is not 0; the number of these at ``count``.

    x has ``elements`` elements, dense, in the order of its coordinates; ``sizes`` are its dimensions. y has room for
    all of them. NaN is not 0. One thread does it.

    At first the place of every element is written, and the next one takes the same room unless the element counts; then
    places become coordinates, the last ones first, as they take more room.
    """

    type: str

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": READ}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *count *sizes elements rank")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "where")

    def emit(self, target: Target) -> str:
        memory = element(self.type).memory
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(f.integer(1)):
            with f.loop(0, a.elements, carry=[f.integer(0)]) as places:
                (count,) = places.values
                value = f.load(vector(memory, 1), f.at(a.x, places.index, memory))
                f.store(places.index, f.at(a.y, count, "i64"))
                counts = f.compare("une" if value.type.is_float else "ne", value, 0)
                places.hand_on([count + f.emit(I64, f"zext {counts} to i64")])
            (count,) = places.results
            f.store(count, a.count)
            with f.loop(0, f.select(f.compare("sgt", a.rank, 1), count, 0)) as found:
                at = count - found.index - 1
                place, row = f.load(I64, f.at(a.y, at, "i64")), f.at(a.y, at * a.rank, "i64")
                with f.loop(0, a.rank - 1, carry=[place]) as axes:
                    (rest,) = axes.values
                    axis = a.rank - axes.index - 1
                    quotient = rest // f.load(I64, f.at(a.sizes, axis, "i64"))
                    f.store(rest - quotient * f.load(I64, f.at(a.sizes, axis, "i64")), f.at(row, axis, "i64"))
                    axes.hand_on([quotient])
                f.store(axes.results[0], row)
        return module.text()
