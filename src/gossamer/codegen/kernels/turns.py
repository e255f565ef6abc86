"""`turns`: a whole loop of small maps, whose variables stay in registers."""

from __future__ import annotations

from hashlib import blake2s
from typing import ClassVar

from gossamer.codegen import elements
from gossamer.codegen.elements import element
from gossamer.codegen.expression import Expression, apply, type_of
from gossamer.codegen.ir import F32, PTR, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

Small = tuple[str, int]
"""The element type and the number of elements of a value."""


@record(frozen=True)
class Statement:
    """An expression of values, given by their numbers: of its own size, or single ones. ``result`` is what it makes."""

    expression: Expression
    operands: tuple[int, ...]
    result: Small


@record(frozen=True)
class Turns(KernelSpec):
    """Turns of a loop, as long as a byte that the last one made is not 0, and ``turns`` at most. For one thread.

    Values are numbered: ``variables``, ``others``, which no turn changes, and what the ``statements`` make, one after
    the other. ``following`` are the numbers of what variables become after a turn, ``going`` is that of the bool which
    says whether there is another. ``places`` is a table of addresses, of variables and others; variables and the flag
    are written in the end. The name has a checksum for all that.
    """

    variables: tuple[Small, ...]
    others: tuple[Small, ...]
    statements: tuple[Statement, ...]
    following: tuple[int, ...]
    going: int

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*places *flag turns")

    @property
    def parts(self) -> tuple[str, ...]:
        text = repr((self.variables, self.others, self.statements, self.following, self.going))
        of = dict.fromkeys(f"{type}x{count}" for type, count in self.variables)
        return ("turns", str(len(self.statements)), *of, blake2s(text.encode(), digest_size=8).hexdigest())

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        known = (*self.variables, *self.others)
        places = [f.load(PTR, f.at(a.places, number, "i64")) for number in range(len(known))]
        loaded = [_load(f, place, *value) for place, value in zip(places, known, strict=True)]
        variables, others = loaded[: len(self.variables)], loaded[len(self.variables) :]
        flag = f.load(vector("i8", 1), a.flag)
        with f.loop(0, a.turns, carry=[*(part for value in variables for part in value), flag]) as turns:
            carried = iter(turns.values)
            values = [[next(carried) for _ in value] for value in variables] + others
            types = [type for type, _ in known]
            for statement in self.statements:
                values.append(_result(f, statement, values, types))
                types.append(statement.result[0])
            (going,) = values[self.going]
            turns.hand_on([*(part for number in self.following for part in values[number]), going])
            turns.goes_on = f.compare("ne", going, 0)
        results = iter(turns.results)
        for place, (type, count) in zip(places, self.variables, strict=False):
            for at, part in enumerate(_parts(f, count)):
                part.store(next(results), f.at(place, at * f.lanes, element(type).memory))
        f.store(next(results), a.flag)
        return module.text()


def _parts(f: Function, count: int) -> list[Part]:
    """Registers for so many elements."""
    if count == 1:
        return [Part(f, F32)]
    whole = vector("float", f.lanes)
    rest = count % f.lanes
    return [Part(f, whole) for _ in range(count // f.lanes)] + ([Part(f, whole, f.integer(rest))] if rest else [])


def _load(f: Function, place: Value, type: str, count: int) -> list[Value]:
    memory, fill = element(type).memory, 1.0 if type == "f32" else 0
    return [part.load(f.at(place, at * f.lanes, memory), fill, memory) for at, part in enumerate(_parts(f, count))]


def _result(f: Function, statement: Statement, values: list[list[Value]], types: list[str]) -> list[Value]:
    """What a statement makes, as it would lie in memory."""
    expression, (made, count) = statement.expression, statement.result
    names = [types[number] for number in statement.operands]
    of_result = type_of(expression, names)
    results = []
    for at in range(1 if count == 1 else -(-count // f.lanes)):
        operands = []
        for number, name in zip(statement.operands, names, strict=True):
            value = values[number]
            part = value[at] if len(value) > 1 or value[0].type.lanes > 1 else value[0]
            if count > 1 and part.type.lanes == 1:
                part = f.splat(part, f.lanes)
            operands.append(elements.loaded(part, name))
        result = elements.convert(apply(expression, f, operands, names), of_result, made)
        results.append(elements.stored(result, made))
    return results
