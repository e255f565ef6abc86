"""`unique`: the different elements of a vector in the order in which they first appear, and which of them each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.elements import element
from gossamer.codegen.ir import I32, I64, Function, Module, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

READ = ("f32", "i8", "i16", "i32", "i64")

_MIXES = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)


def read_as(type: str) -> str:
    """The element type of which the same elements are equal."""
    return type if type == "f32" else f"i{element(type).bits}"


@record(frozen=True)
class Unique(KernelSpec):
    """y[:n] = the different elements of x[:elements], indices[i], i32, = the one that x[i] is, and n at ``count``.

    y has room for all elements. ``slots`` is memory for as many i32 as ``last`` and one more, a power of 2 that is
    greater than ``elements``; elements are fewer than 2^31. One thread does it.

    As in a tree that is ordered by "less", NaN is taken for the least element before it, and any number for a NaN that
    comes first. 0.0 and -0.0 are equal.
    """

    type: str

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"type": READ}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y *indices *count *slots elements last")

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.type, "unique")

    def emit(self, target: Target) -> str:
        memory = element(self.type).memory
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        scalar, none, one = vector(memory, 1), f.constant(I32, 0), f.constant(I32, 1)
        with f.share(f.integer(1)):
            with f.loop(0, a.last + 1) as slots:
                f.store(none, f.at(a.slots, slots.index, "i32"))
            elements = a.elements
            with f.loop(0, elements, carry=[f.integer(0), none, f.constant(scalar, 0)]) as each:
                count, least_at, least = each.values
                value = f.load(scalar, f.at(a.x, each.index, memory))
                key = self._key(f, value)
                # 0 is a free slot, 1 the first element. Where there is no order nobody looks any further.
                strange = None
                if scalar.is_float:
                    first = f.load(scalar, a.x)
                    is_first = f.compare("eq", each.index, 0)
                    strange = f.compare("uno", value, first) & f.compare("ne", each.index, 0)
                with f.loop(0, a.last + 1, carry=[self._hash(f, key) & a.last, none]) as looks:
                    slot, _ = looks.values
                    found = f.load(I32, f.at(a.slots, slot, "i32"))
                    number = f.emit(I64, f"zext {f.select(f.compare('eq', found, 0), one, found)} to i64") - 1
                    there = f.at(a.y, number, memory)
                    other = self._key(
                        f, f.load(scalar, f.select(f.compare("eq", found, 0), f.at(a.x, each.index, memory), there))
                    )
                    looks.goes_on = f.compare("ne", found, 0) & f.compare("ne", other, key)
                    if strange is not None:
                        looks.goes_on = looks.goes_on & f.compare("eq", strange, f.constant(strange.type, 0))
                    looks.hand_on([f.select(looks.goes_on, (slot + 1) & a.last, slot), found])
                slot, found = looks.results
                is_new = f.compare("eq", found, 0)
                index = f.emit(I32, f"sub {found}, 1")
                if strange is not None:
                    first_is_none = f.compare("uno", first, first)
                    index = f.select(strange, f.select(first_is_none, none, least_at), index)
                    is_new = is_new & f.compare("eq", strange, f.constant(strange.type, 0))
                narrow = f.emit(I32, f"trunc {count} to i32")
                with f.when(is_new):
                    f.store(value, f.at(a.y, count, memory))
                    f.store(f.emit(I32, f"add {narrow}, 1"), f.at(a.slots, slot, "i32"))
                index = f.select(is_new, narrow, index)
                f.store(index, f.at(a.indices, each.index, "i32"))
                if scalar.is_float:
                    less = is_first | f.compare("olt", value, least)
                    least_at, least = f.select(less, index, least_at), f.select(less, value, least)
                each.hand_on([count + f.emit(I64, f"zext {is_new} to i64"), least_at, least])
            f.store(each.results[0], a.count)
        return module.text()

    def _key(self, f: Function, value: Value) -> Value:
        """Bits that are the same of equal elements."""
        if value.type.is_float:
            value = f.bits(f.emit(value.type, f"fadd {value}, 0.0"), "i32")
        return value if value.type == I64 else f.emit(I64, f"zext {value} to i64")

    def _hash(self, f: Function, key: Value) -> Value:
        for factor in _MIXES:
            key = key ^ f.emit(I64, f"lshr {key}, 33")
            key = f.emit(I64, f"mul {key}, {factor - (1 << 64)}")
        return key ^ f.emit(I64, f"lshr {key}, 33")
