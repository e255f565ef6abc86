"""What is said of packing: programs for several shapes share weights by it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gossamer.codegen.commands import Build, columns_of
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.layout import Layout
from gossamer.programs.program import MODEL, Address, Word
from gossamer.targets.avx2 import TARGET


def packs(change: Callable[[Build, dict[str, Word]], None] = lambda build, arguments: None, nv: int = 2) -> int:
    """`ProgramPlan.packs` of a program that packs a matrix of the model and one of its own."""
    build = Build(TARGET, Layout(known=set()), None)
    arguments: dict[str, Word] = {word.name: 0 for word in Pack.arguments}
    arguments |= {"source": Address(MODEL, 64), "destination": build.weights(4096), "channels": 32, "nv": nv}
    change(build, arguments)
    build.pack(Pack(TARGET.name), **arguments)
    return build.emit(KernelGraph()).packs


def test_the_same_is_packed() -> None:
    assert packs() == packs()
    assert packs() != packs(nv=4)
    assert packs() != packs(lambda build, arguments: arguments.update(source=Address(MODEL, 128)))


def test_constants_count_by_what_they_are_and_not_by_where() -> None:
    def reading(values: list[float], before: int = 0, at: int = 0) -> Callable[[Build, dict[str, Word]], None]:
        def change(build: Build, arguments: dict[str, Word]) -> None:
            for number in range(before):
                build.number(1000.0 + number)
            place = build.constant(np.array(values))
            arguments["source"] = Address(place.base, place.offset + at)

        return change

    assert packs(reading([1, 2])) == packs(reading([1, 2], before=3))
    assert packs(reading([1, 2])) != packs(reading([1, 3]))
    assert packs(reading([1, 2])) != packs(reading([1, 2], at=8))


def test_tables_count_by_what_is_in_them() -> None:
    def reading(*words: int) -> Callable[[Build, dict[str, Word]], None]:
        def change(build: Build, arguments: dict[str, Word]) -> None:
            arguments["source_row"] = build.table(words)

        return change

    assert packs(reading(1, 2)) == packs(reading(1, 2)) != packs(reading(1, 3))


def test_what_is_run_each_time_does_not_count() -> None:
    def running(build: Build, arguments: dict[str, Word]) -> None:
        build.command(Pack(TARGET.name, by_depth=True), **arguments)

    assert packs(running) == packs()


def test_short_runs_of_a_single_dimension_are_shared_in_parts() -> None:
    assert columns_of(225, 12) == 225  # one task
    assert columns_of(6400, 64) == 100
    assert columns_of(6400, 4096) == 100
    assert columns_of(50, 4096) == 1
    assert columns_of(6389, 64) == 1  # a prime number
