"""Registers of tiles (AMX) in memory, for CPUs that have none: the text of a kernel that calls functions instead.

They do what Intel's manual says of the instructions, byte by byte, so that nothing is read or written that a register's
shape does not cover. Shapes that the CPU would refuse are counted in `faults`. Every thread has registers of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from gossamer.codegen import compiler
from gossamer.codegen.ir import I32, I64, PTR, Function, Module, Value, vector
from gossamer.records import replace
from gossamer.targets import all_targets
from tests.codegen.kernels import harness

VNNI, AMX = (all_targets()[name] for name in ("avx512vnni", "amx"))

SOFTWARE = replace(AMX, features=VNNI.features, requires=VNNI.requires)
"""What such kernels are compiled for. It is not the key of kernels that need tiles."""

I8, I16 = (vector(element, 1) for element in ("i8", "i16"))
_THREADS = 4096
_TILE, _TILES = 1024, 8
_CONFIGURATION = _TILE * _TILES
_THREAD = _CONFIGURATION + 64

_files = np.zeros(_THREADS * _THREAD, np.uint8)
_faults = np.zeros(1, np.int64)

_DECLARATION = re.compile(r"declare .*@llvm\.x86\.(?:ldtile|tile|tdp).*\n")
_CALL = re.compile(r"@llvm\.x86\.((?:ld)?tile\w+|tdp\w+)\(")


def faults() -> int:
    """How often a shape was refused, since it was asked last."""
    count = int(_faults[0])
    _faults[0] = 0
    return count


def in_software(text: str) -> str:
    """The IR text of a kernel without instructions of tiles."""
    if not _CALL.search(text):
        return text
    return _CALL.sub(r"@software.\1(", _DECLARATION.sub("", text)) + _definitions()


@contextmanager
def software_tiles() -> Iterator[None]:
    """Kernels are compiled without instructions of tiles meanwhile."""
    parse: Callable[..., Any] = compiler._parse

    def parse_in_software(llvm: Any, text: str, name: str, target: Any) -> Any:
        return parse(llvm, in_software(text), name, target)

    faults()
    harness.load.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_parse", parse_in_software)
        yield
    harness.load.cache_clear()
    assert faults() == 0


class _Registers:
    """Those of the thread that runs a function."""

    def __init__(self, f: Function) -> None:
        self.f = f
        f.module.declare("declare ptr @llvm.thread.pointer.p0()")
        number = f.emit(I64, f"ptrtoint {f.emit(PTR, 'call ptr @llvm.thread.pointer.p0()')} to i64")
        # What belongs to a thread lies in pages of its own.
        place = (number // 4096) % _THREADS * _THREAD + _files.ctypes.data
        self.first = f.emit(PTR, f"inttoptr {place} to ptr")
        self.configuration = f.offset(self.first, _CONFIGURATION)

    def at(self, register: Value) -> Value:
        return self.f.offset(self.first, self._wide(register) * _TILE)

    def shape(self, register: Value) -> tuple[Value, Value]:
        """Rows, and bytes of each."""
        f, number = self.f, self._wide(register)
        rows = f.load(I8, f.offset(self.configuration, number + 48))
        columns = f.load(I16, f.offset(self.configuration, number * 2 + 16))
        self.refuse_if(f.compare("eq", self._wide(rows), 0))
        return self._wide(rows), self._wide(columns)

    def clear(self, start: Value, bytes: int) -> None:
        f = self.f
        with f.loop(0, bytes, 64) as line:
            f.store(f.constant(vector("i8", 64), 0), f.offset(start, line.index))

    def refuse_if(self, condition: Value) -> None:
        f = self.f
        count = f.emit(PTR, f"inttoptr i64 {_faults.ctypes.data} to ptr")
        with f.when(condition):
            f.store(f.load(I64, count) + 1, count)

    def _wide(self, value: Value) -> Value:
        return self.f.emit(I64, f"zext {value} to i64")


def _definitions() -> str:
    module = Module(VNNI)

    def function(name: str, *parameters: tuple[Any, str]) -> tuple[Function, _Registers]:
        f = module.function(f"software.{name}", *parameters, internal=True)
        return f, _Registers(f)

    f, registers = function("ldtilecfg", (PTR, "configuration"))
    f.store(f.load(vector("i8", 64), f.parameters[0]), registers.configuration)
    registers.clear(registers.first, _CONFIGURATION)
    f, registers = function("tilerelease")
    registers.clear(registers.first, _THREAD)
    for name in ("tileloadd64", "tilestored64"):
        f, registers = function(name, (I8, "register"), (PTR, "memory"), (I64, "stride"))
        register, memory, stride = f.parameters
        rows, columns = registers.shape(register)
        inside = registers.at(register)
        if name == "tileloadd64":
            registers.clear(inside, _TILE)
        with f.loop(0, rows) as row, f.loop(0, columns) as column:
            here = f.offset(f.offset(inside, row.index * 64), column.index)
            there = f.offset(f.offset(memory, row.index * stride), column.index)
            source, destination = (there, here) if name == "tileloadd64" else (here, there)
            f.store(f.load(I8, source), destination)
    for name, extend in (("tdpbssd", "sext"), ("tdpbusd", "zext")):
        f, registers = function(name, (I8, "sums"), (I8, "a"), (I8, "b"))
        (rows, width), (a_rows, depth), (b_rows, b_width) = (registers.shape(each) for each in f.parameters)
        for one, other in ((rows, a_rows), (width, b_width), (depth, b_rows * 4)):
            registers.refuse_if(f.compare("ne", one, other))
        sums, a, b = (registers.at(each) for each in f.parameters)
        with f.loop(0, rows) as row, f.loop(0, width, 4) as column:
            place = f.offset(f.offset(sums, row.index * 64), column.index)
            with f.loop(0, depth, 4, carry=[f.load(I32, place)]) as step:
                total = step.values[0]
                for byte in range(4):
                    left = f.load(I8, f.offset(f.offset(a, row.index * 64), step.index + byte))
                    right = f.load(I8, f.offset(f.offset(b, step.index * 16), column.index + byte))
                    wide = f.emit(I32, f"{extend} {left} to i32"), f.emit(I32, f"sext {right} to i32")
                    total = f.wrapping("add", total, f.wrapping("mul", *wide))
                step.hand_on([total])
            f.store(step.results[0], place)
    return module.text()
