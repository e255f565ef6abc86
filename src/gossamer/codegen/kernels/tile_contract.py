"""`tile_contract`: the tiles of `quantized_contract` in registers of tiles (AMX): 16 rows of 64 bytes each.

A product of tiles is 16 rows x 16 channels x 64 bytes of depth in one instruction. Panels are those of
`quantized_contract`, but activations are multiplied as they are, signed or not: 16 steps of a vector of channels are a
tile of weights, whose rows lie as far apart as the steps of the panel. Sums are stored and come back as vectors, for
the same epilogue.

Which part of a register is used is configured before (`configuration`), for all kernels of a command: rows for as many
pixels as there are, columns for as much depth. So nothing is read that is not there, and no kernel knows the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import ClassVar

from gossamer.codegen.basis import BYTE_ENDINGS, BYTES
from gossamer.codegen.dots import Byte
from gossamer.codegen.expression import IDENTITY, name_of
from gossamer.codegen.ir import I64, Arguments, Function, Module, Value, vector
from gossamer.codegen.kernels.outputs import WALK, Requantized, Tile, rows_at
from gossamer.codegen.kernels.quantized_contract import HEADER, STEP
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record, replace
from gossamer.targets import Target

ROWS = 16
"""Of a register, and the channels that it has sums of."""

DEPTH = 64
"""Bytes of a row of a register."""

SUMS = 4
"""Registers of sums, 0 to 3. The others, 4 to 7, are for both factors."""

REST = (6, 7)
"""Those for a rest of depth; blocks have one register less for each factor then."""

TURN = 4
"""Rows of sums that come back to bytes together."""

_PALETTE = 1
_COLUMNS_AT, _ROWS_AT, _CONFIGURATION = 16, 48, 64


def factors(mr: int, has_rest: bool) -> tuple[list[int], list[int]]:
    """The registers of blocks of a and b: one for each row of tiles, if one is left for b."""
    if has_rest:
        return [SUMS], [SUMS + 1]
    registers = list(range(SUMS, 8))
    return registers[: min(mr, 3)], registers[min(mr, 3) :]


def configuration(mr: int, rows: int, block: int, rest: int) -> list[int]:
    """The words that configure registers for ``mr`` rows of tiles of ``rows`` rows, blocks of depth of ``block`` bytes,
    and one of ``rest`` bytes (0: none) at the end of a tap."""
    of_a, of_b = factors(mr, rest > 0)
    shapes = dict.fromkeys(range(SUMS), (rows, 4 * ROWS))
    shapes |= dict.fromkeys(of_a, (rows, block)) | dict.fromkeys(of_b, (block // STEP, 4 * ROWS))
    if rest:
        shapes |= {REST[0]: (rows, rest), REST[1]: (rest // STEP, 4 * ROWS)}
    content = bytearray(_CONFIGURATION)
    content[0] = _PALETTE
    for register, (height, width) in shapes.items():
        content[_COLUMNS_AT + 2 * register] = width
        content[_ROWS_AT + register] = height
    return [int.from_bytes(content[at : at + 8], "little") for at in range(0, _CONFIGURATION, 8)]


@record(frozen=True)
class TileGemm(KernelSpec):
    """A microkernel: c = epilogue(requantized(bias + a b)) for mr rows of tiles and nv vectors of channels.

    Its interface is that of `QuantizedGemm`, so are ``type``, ``output`` and ``ragged``; ``conv``: there is a table
    of taps. Beyond that, ``shape`` has, as the registers are configured,

    - ``rows``: rows of a tile. ``a_tile``, ``c_tile``, ``residual_tile``: bytes from one row of tiles to the next.
    - ``block``: bytes of depth of a tile; ``whole``: bytes of a tap that are whole blocks. With ``rest``, there is a
      smaller one behind them.
    """

    mr: int
    nv: int
    type: Byte = "i8"
    output: Requantized = Requantized()
    conv: bool = False
    rest: bool = False
    ragged: bool = False

    targets = "tiles"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        WALK, Requantized.words, "rows a_tile c_tile residual_tile block whole"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return (
            self.type,
            "tile",
            "conv" if self.conv else "gemm",
            name_of(self.output.epilogue),
            f"{self.mr}x{self.nv}",
        )

    @property
    def variant(self) -> str:
        return "_".join(filter(None, (*self.output.flags, "ragged" * self.ragged, "rest" * self.rest)))

    def general(self) -> Iterator[KernelSpec]:
        yield from (replace(self, conv=True, output=output) for output in self.output.general())

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        for mr, nv, type, rest, ragged in product(
            range(1, SUMS + 1), range(1, SUMS + 1), BYTES, (False, True), (False, True)
        ):
            if mr * nv <= SUMS:
                for ending in BYTE_ENDINGS if type == "i8" else (IDENTITY,):
                    yield cls(target.name, mr, nv, type, Requantized(ending), True, rest, ragged)
                yield cls(target.name, mr, nv, type, Requantized(clamps=True, large=True), True, rest, ragged)

    def emit(self, target: Target) -> str:
        if not target.tiles:
            raise CompileError(f"{self.name}: {target.name} has no tiles.")
        if not (self.mr >= 1 and 1 <= self.mr * self.nv <= SUMS):
            raise CompileError(f"{self.name}: there are registers for {SUMS} tiles of sums.")
        module = Module(target)
        f = module.microkernel("a", "b", "bias", "c", "residual", "next", "shape")
        a, b, _, c, residual, _, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        sums = f.stack(vector("i32", ROWS), SUMS * ROWS, align=64)
        step = self.nv * 4 * ROWS
        for i in range(self.mr):
            for v in range(self.nv):
                # Every row begins with the bias.
                _tile(f, "tileloadd64", self._sum(i, v), f.offset(b, 4 * ROWS * v), f.integer(0))
        self._multiply(f, shape, a, f.offset(b, HEADER * step))
        for i in range(self.mr):
            for v in range(self.nv):
                to = f.offset(f.offset(sums, shape.rows * (i * step)), 4 * ROWS * v)
                _tile(f, "tilestored64", self._sum(i, v), to, f.integer(step))
        self._finish(f, shape, sums, f.offset(b, step), c, residual)
        return module.text()

    def _sum(self, i: int, v: int) -> int:
        return i * self.nv + v

    def _multiply(self, f: Function, shape: Arguments, a: Value, b: Value) -> None:
        """Add all of the depth to the sums."""
        of_a, of_b = factors(self.mr, self.rest)
        step = self.nv * 4 * ROWS
        with f.loop(0, shape.taps if self.conv else 1) as taps:
            if self.conv:
                a = f.offset(a, f.load(I64, f.at(shape.tap_offsets, taps.index, "i64")))
                b = f.offset(b, taps.index * (shape.depth * (step // STEP)))
            with f.loop(0, shape.whole, shape.block) as blocks:
                weights = f.offset(b, blocks.index * (step // STEP))
                self._block(f, shape, of_a, f.offset(a, blocks.index), of_b, weights)
            if self.rest:
                weights = f.offset(b, shape.whole * (step // STEP))
                self._block(f, shape, REST[:1], f.offset(a, shape.whole), REST[1:], weights)

    def _block(
        self, f: Function, shape: Arguments, of_a: Sequence[int], a: Value, of_b: Sequence[int], b: Value
    ) -> None:
        """Add a block of depth to the sums; ``of_a`` and ``of_b``: registers for the tiles at ``a`` and ``b``."""
        step = self.nv * 4 * ROWS

        def load_a(i: int, register: int) -> None:
            _tile(f, "tileloadd64", register, f.offset(a, shape.a_tile * i), shape.a_stride)

        def load_b(v: int, register: int) -> None:
            _tile(f, "tileloadd64", register, f.offset(b, 4 * ROWS * v), f.integer(step))

        rows, vectors = _Held(of_a, load_a), _Held(of_b, load_b)
        product = "tdpbssd" if self.type == "i8" else "tdpbusd"
        f.module.declare(f"declare void @llvm.x86.{product}(i8, i8, i8)")
        for i in range(self.mr):
            # To and fro: what the last row ended with is still there.
            for v in range(self.nv) if i % 2 == 0 else reversed(range(self.nv)):
                registers = (self._sum(i, v), rows.get(i), vectors.get(v))
                f.line(f"call void @llvm.x86.{product}({', '.join(f'i8 {register}' for register in registers)})")

    def _finish(self, f: Function, shape: Arguments, sums: Value, scales: Value, c: Value, residual: Value) -> None:
        """Bring the sums back to bytes."""
        step = self.nv * 4 * ROWS
        words = vector("i32", ROWS)
        tile = Tile(f, shape, self.type, 1, self.nv, self.ragged)
        numbers = self.output.numbers(tile)
        with f.loop(0, self.mr) as tiles:
            from_, to = f.offset(sums, tiles.index * shape.rows * step), f.offset(c, tiles.index * shape.c_tile)
            added = f.offset(residual, tiles.index * shape.residual_tile)
            together = shape.rows & -TURN
            for start, stop, rows in ((f.integer(0), together, TURN), (together, shape.rows, 1)):
                with f.loop(start, stop, rows) as turn:
                    at = f.offset(from_, turn.index * step)
                    totals = [f.load(words, f.offset(at, 4 * ROWS * number)) for number in range(rows * self.nv)]
                    y = f.offset(to, turn.index * shape.c_stride)
                    x = f.offset(added, turn.index * shape.residual_stride)
                    pixels, others = rows_at(f, y, shape.c_stride, rows), rows_at(f, x, shape.residual_stride, rows)
                    self.output.store(tile._replace(mr=rows), numbers, totals, scales, pixels, others)


class _Held:
    """Which tiles some registers hold. What is not held takes the place of what was loaded first."""

    def __init__(self, registers: Sequence[int], load: Callable[[int, int], None]) -> None:
        self._registers = registers
        self._load = load
        self._tiles: dict[int, int] = {}

    def get(self, tile: int) -> int:
        """The register that holds a tile, which is loaded if none does."""
        if tile not in self._tiles:
            if len(self._tiles) < len(self._registers):
                register = self._registers[len(self._tiles)]
            else:
                register = self._tiles.pop(next(iter(self._tiles)))
            self._load(tile, register)
            self._tiles[tile] = register
        return self._tiles[tile]


def _tile(f: Function, operation: str, register: int, pointer: Value, stride: Value) -> None:
    """Move a tile from or to memory, whose rows are ``stride`` bytes apart."""
    f.module.declare(f"declare void @llvm.x86.{operation}(i8, ptr, i64)")
    f.line(f"call void @llvm.x86.{operation}(i8 {register}, {pointer}, {stride})")


@record(frozen=True)
class WithTiles(KernelSpec):
    """A driver: calls another, ``kernel``, with its ``block``, while registers are as ``configuration`` says."""

    targets = "tiles"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*kernel *block *configuration")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("x8", "with", "tiles")

    def emit(self, target: Target) -> str:
        if not target.tiles:
            raise CompileError(f"{self.name}: {target.name} has no tiles.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        module.declare("declare void @llvm.x86.ldtilecfg(ptr)")
        module.declare("declare void @llvm.x86.tilerelease()")
        f.line(f"call void @llvm.x86.ldtilecfg({a.configuration})")
        f.call(a.kernel, a.block, *f.parameters[1:])
        # A thread whose tiles are in use is slower to switch away from.
        f.line("call void @llvm.x86.tilerelease()")
        return module.text()
