"""`pack`: weights into the panels that the contraction microkernels read, straight from the model's bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gossamer.codegen.ir import F32, Function, Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.targets import Target


@dataclass(frozen=True)
class Pack(KernelSpec):
    """Panels of ``nv`` vectors of channels: [panel][depth][nv x lanes].

    ``channels`` x ``depth`` weights are read at ``source``: a row for every channel (TFLite's convolution and fully
    connected weights), or, ``by_depth``, a row for every step of depth (the second operand of a matrix product).
    ``source_row`` is the bytes between rows; inside they are contiguous. There are ``panels`` whole panels; what is
    left of the channels makes one panel of ``rest_nv`` vectors. Threads share the vectors of channels.

    ``destination`` has ``depth x 4`` bytes for every channel, rounded up to whole vectors. In the last vector, the
    channels that do not exist repeat the last that does, or are 0 (``by_depth``).
    """

    by_depth: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        source="ptr",
        destination="ptr",
        channels="i64",
        depth="i64",
        source_row="i64",
        nv="i64",
        panels="i64",
        rest_nv="i64",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "pack", "depth" if self.by_depth else "channel")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        lanes, size = f.lanes, 4 * f.lanes
        with f.share((a.channels + (lanes - 1)) // lanes) as number:
            panel = number // a.nv
            inside = number - panel * a.nv
            width = f.select(f.compare("eq", panel, a.panels), a.rest_nv, a.nv)
            step = width * size
            destination = f.offset(a.destination, panel * a.nv * a.depth * size + inside * size)
            first = number * lanes
            if self.by_depth:
                part = Part(f, f.f32, f.least(a.channels - first, lanes))
                with f.loop(0, a.depth) as depth:
                    row = f.at(f.offset(a.source, depth.index * a.source_row), first)
                    f.store(part.load(row), f.offset(destination, depth.index * step))
            else:
                rows = [
                    f.offset(a.source, f.least(first + lane, a.channels - 1) * a.source_row) for lane in range(lanes)
                ]
                whole = a.depth & -lanes
                with f.loop(0, whole, lanes) as blocks:
                    columns = [f.load(f.f32, f.at(row, blocks.index)) for row in rows]
                    to = f.offset(destination, blocks.index * step)
                    for column in _transpose(f, columns):
                        f.store(column, to)
                        to = f.offset(to, step)
                with f.loop(whole, a.depth) as depth:
                    column = Value(f, f.f32, "poison")
                    for lane, row in enumerate(rows):
                        element = f.load(F32, f.at(row, depth.index))
                        column = f.emit(f.f32, f"insertelement {column}, {element}, i32 {lane}")
                    f.store(column, f.offset(destination, depth.index * step))
        return module.text()


def _transpose(f: Function, rows: list[Value]) -> list[Value]:
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
