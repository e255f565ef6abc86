"""`fill`: one element over runs of contiguous ones: what is padded with, or broadcast along the last dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gossamer.codegen.ir import Module, Type, Value, vector
from gossamer.codegen.kernels.move import SIZES, in_pieces
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target


@record(frozen=True)
class Fill(KernelSpec):
    """[groups, rows, columns] runs of ``run`` bytes of ``destination``, each filled with an element of ``source``.

    An element has ``bits`` bits, a run a whole number of them. Each dimension has a stride in bytes of its own on both
    sides. A run is cut into blocks of ``block`` bytes; threads share groups x rows x blocks.
    """

    bits: int

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"bits": SIZES}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*source *destination groups rows columns run block blocks source_group source_row source_column "
        "destination_group destination_row destination_column"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (f"x{self.bits}", "fill")

    def emit(self, target: Target) -> str:
        if self.bits not in SIZES:
            raise CompileError(f"An element has {SIZES} bits, got {self.bits}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        bytes = vector("i8", target.lanes(8))
        with f.share(a.groups * a.rows * a.blocks) as task:
            line = task // a.blocks
            start = (task - line * a.blocks) * a.block
            group = line // a.rows
            row = line - group * a.rows
            count = f.least(a.block, a.run - start)
            source = f.offset(a.source, group * a.source_group + row * a.source_row)
            destination = f.offset(a.destination, group * a.destination_group + row * a.destination_row + start)
            with f.loop(0, a.columns) as columns:
                element = f.load(vector(f"i{self.bits}", 1), f.offset(source, columns.index * a.source_column))
                there = f.offset(destination, columns.index * a.destination_column)
                value = f.emit(bytes, f"bitcast {f.splat(element, target.lanes(self.bits))} to {bytes}")

                def store(type: Type, at: Value, value: Value = value, there: Value = there) -> None:
                    if type.lanes == 1:
                        value = f.emit(type, f"extractelement {value}, i32 0")
                    elif type != value.type:
                        value = f.shuffle(value, value, range(type.lanes))
                    f.store(value, f.offset(there, at))

                in_pieces(f, count, store)
        return module.text()
