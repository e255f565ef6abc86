"""`pack`: weights into the panels that the contraction microkernels read, straight from the model's bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

from gossamer.codegen.bf16 import rounded
from gossamer.codegen.ir import BYTES, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

AHEAD = 192
"""Bytes by which rows are prefetched. CPUs do not do it: they follow fewer streams than a square of weights has rows.

Measured on Zen 4, AVX-512: the weights of MobileNetV1 take 2.4 ms instead of 4.1, and the sums of weights of a
transformer's encoder for Strassen's algorithm, 22 MB, 3.9 instead of 6.2.
"""


@record(frozen=True)
class Pack(KernelSpec):
    """Panels of ``nv`` vectors of channels: [panel][depth][nv x lanes]. They may also be computed in every run.

    ``channels`` x ``depth`` weights are read at ``source``: a row for every channel (TFLite's convolution and fully
    connected weights), or, ``by_depth``, a row for every step of depth (the second operand of a matrix product).
    ``source_row`` is the bytes between rows; inside they are contiguous. There are ``panels`` whole panels; what is
    left of the channels makes one panel of ``rest_nv`` vectors. ``source`` and ``destination`` may be the first of
    ``images`` matrices, ``source_image`` and ``destination_image`` bytes apart. Threads share images x vectors.

    ``weights`` and ``packed`` are the types of both. ``destination`` has ``depth`` elements for every channel, rounded
    up to whole vectors. In the last vector, the channels that do not exist repeat the last that does, or are 0
    (``by_depth``). Of bf16, rounded to the nearest, two steps of depth are pairs, in the place of one of f32; behind an
    odd depth is a 0.
    """

    by_depth: bool = False
    weights: Literal["f32", "f16"] = "f32"
    packed: Literal["f32", "f16", "bf16"] = "f32"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *destination channels depth source_row nv panels rest_nv images source_image destination_image"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        types = (self.weights, self.packed) if self.weights != self.packed else (self.weights,)
        return (*types, "pack", "depth" if self.by_depth else "channel")

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for by_depth in (False, True):
            yield from (cls(target.name, by_depth, *types) for types in (("f32",), ("f16",), ("f16", "f16")))

    def emit(self, target: Target) -> str:
        if (self.weights, self.packed) == ("f32", "f16"):
            raise CompileError(f"{self.name}: packing does not round.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        lanes = f.lanes
        element, stored = ("half" if type == "f16" else "float" for type in (self.weights, self.packed))
        size = BYTES[stored] * lanes
        # Steps of depth that are one in a panel.
        together = 2 if self.packed == "bf16" else 1
        steps = (a.depth + 1) // 2 if together == 2 else a.depth

        def store(columns: list[Value], to: Value) -> None:
            if element != stored:
                columns = [f.emit(f.f32, f"fpext {column} to {f.f32}") for column in columns]
            if together == 2:
                both = rounded(f, *columns)
                columns = [f.shuffle(both, both, [lane + half for lane in range(lanes) for half in (0, lanes)])]
            f.store(columns[0], to)

        def some(first: Value, column: Callable[[Value], Value]) -> list[Value]:
            """The columns of a step of a panel; 0 behind the last."""
            columns = [column(first)]
            if together == 2:
                second = column(f.least(first + 1, a.depth - 1))
                there = f.compare("slt", first + 1, a.depth)
                columns.append(f.select(there, second, f.constant(second.type, 0)))
            return columns

        vectors = (a.channels + (lanes - 1)) // lanes
        with f.share(a.images * vectors) as task:
            image = task // vectors
            number = task - image * vectors
            panel = number // a.nv
            inside = number - panel * a.nv
            width = f.select(f.compare("eq", panel, a.panels), a.rest_nv, a.nv)
            step = width * size
            source = f.offset(a.source, image * a.source_image)
            destination = f.offset(a.destination, image * a.destination_image)
            destination = f.offset(destination, panel * a.nv * steps * size + inside * size)
            first = number * lanes
            if self.by_depth:
                part = Part(f, vector(element, lanes), f.least(a.channels - first, lanes))
                with f.loop(0, a.depth, together) as depth:

                    def column(at: Value) -> Value:
                        return part.load(f.at(f.offset(source, at * a.source_row), first, element))

                    store(some(depth.index, column), f.offset(destination, depth.index // together * step))
            else:
                rows = [f.offset(source, f.least(first + lane, a.channels - 1) * a.source_row) for lane in range(lanes)]
                whole = a.depth & -lanes
                with f.loop(0, whole, lanes) as blocks:
                    columns = [f.load(vector(element, lanes), f.at(row, blocks.index, element)) for row in rows]
                    for row in rows:
                        f.prefetch(f.offset(f.at(row, blocks.index, element), AHEAD))
                    to = f.offset(destination, blocks.index // together * step)
                    columns = transpose(f, columns)
                    for at in range(0, lanes, together):
                        store(columns[at : at + together], to)
                        to = f.offset(to, step)
                with f.loop(whole, a.depth, together) as depth:

                    def gathered(at: Value) -> Value:
                        column = Value(f, vector(element, lanes), "poison")
                        for lane, row in enumerate(rows):
                            value = f.load(vector(element, 1), f.at(row, at, element))
                            column = f.emit(column.type, f"insertelement {column}, {value}, i32 {lane}")
                        return column

                    store(some(depth.index, gathered), f.offset(destination, depth.index // together * step))
        return module.text()


def transpose(f: Function, rows: list[Value]) -> list[Value]:
    """The columns of a square of vectors. Exchanges ever larger blocks across the diagonal."""
    lanes = len(rows)
    width = 1
    while width < lanes:
        swapped = list(rows)
        for i in range(lanes):
            if not i & width:
                upper, lower = rows[i], rows[i | width]
                low = [c if not c & width else lanes + (c ^ width) for c in range(lanes)]
                high = [c | width if not c & width else lanes + c for c in range(lanes)]
                swapped[i], swapped[i | width] = f.shuffle(upper, lower, low), f.shuffle(upper, lower, high)
        rows = swapped
        width *= 2
    return rows
