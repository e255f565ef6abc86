"""Rows of activations as bfloat16, as the products of pairs read them (`gossamer.codegen.bf16`)."""

from __future__ import annotations

from typing import ClassVar

from gossamer.codegen.bf16 import rounded
from gossamer.codegen.ir import I64, PTR, Module, Part, Value
from gossamer.codegen.spec import ENTRY, ArgumentBlock, KernelSpec
from gossamer.records import record
from gossamer.targets import Target

LINE = 64
"""Bytes of a vector of bfloat16."""


def row_bytes(depth: int) -> int:
    """Between rows of so many elements: whole vectors, and one more, which what is behind a tap may take, and which
    keeps rows from being a multiple of 4096 bytes apart."""
    return -(-2 * depth // LINE) * LINE + LINE


@record(frozen=True)
class Bf16Rows(KernelSpec):
    """Rows of float32, rounded to the nearest bfloat16, tap behind tap.

    ``void k(ptr a, ptr rows, ptr shape, i64 count)``: what `ContractGroups` calls ``input``. Rows, ``a_stride`` bytes
    apart, have ``taps`` of ``depth`` elements, ``tap_offsets`` bytes from their start; rounded ones are ``v_stride``
    bytes apart, at least `row_bytes`. Behind an odd number of elements is a 0.
    """

    targets = "bf16"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("a_stride v_stride depth taps *tap_offsets")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "bf16", "rows")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.function(ENTRY, *((PTR, name) for name in ("a", "rows", "shape")), (I64, "count"))
        a, rows, pointer, count = f.parameters
        shape = f.arguments(self.arguments, pointer)
        step = 2 * f.lanes
        whole = shape.depth & -step
        with f.loop(0, count) as row, f.loop(0, shape.taps) as taps:
            source = f.offset(a, row.index * shape.a_stride)
            tap = f.offset(source, f.load(I64, f.at(shape.tap_offsets, taps.index, "i64")))
            place = f.offset(f.offset(rows, row.index * shape.v_stride), taps.index * shape.depth * 2)

            def copy(first: Value, parts: list[Part]) -> None:
                halves = [part.load(f.at(tap, first + at * f.lanes)) for at, part in enumerate(parts)]
                f.store(rounded(f, *halves), f.offset(place, first * 2))

            with f.loop(0, whole, step) as vectors:
                copy(vectors.index, [Part(f, f.f32)] * 2)
            with f.when(f.compare("slt", whole, shape.depth)):
                # Whole vectors are written: the next tap follows, or nothing.
                left = shape.depth - whole
                copy(whole, [Part(f, f.f32, left), Part(f, f.f32, left - f.lanes)])
        return module.text()
