"""Representative kernels, and checksums of their IR texts: what a refactor must not change without knowing it.

    python -m tests.codegen.goldens write DIRECTORY    every text, one file per kernel
    python -m tests.codegen.goldens diff [REVISION]    what differs from a revision (default: HEAD), as a diff

`python -m pytest tests/codegen/test_goldens.py --update-goldens` takes the texts as they are for right.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from gossamer.codegen.dots import adds_pairs, crosses, multiplies_pairs
from gossamer.codegen.expression import FUNCTIONS, Expression, type_of
from gossamer.codegen.kernels.advance import Advance
from gossamer.codegen.kernels.arg_reduce import ArgReduce
from gossamer.codegen.kernels.bf16_rows import Bf16Rows
from gossamer.codegen.kernels.contract import (
    ContractGroups,
    ContractPanels,
    ContractSingle,
    ContractState,
    ContractTiles,
    Gemm,
)
from gossamer.codegen.kernels.contract16 import Depthwise16, Dot16, PairGemm, Product16
from gossamer.codegen.kernels.contract24 import Gemm24, Pack24, narrows
from gossamer.codegen.kernels.depthwise import Depthwise, DepthwiseRow, HybridDepthwiseRow
from gossamer.codegen.kernels.dot import Dot
from gossamer.codegen.kernels.dynamic import Grids, QuantizeImages, QuantizeRows, Range
from gossamer.codegen.kernels.elementwise import Map
from gossamer.codegen.kernels.embed import Embed
from gossamer.codegen.kernels.enter import EnterSpec
from gossamer.codegen.kernels.fill import Fill
from gossamer.codegen.kernels.gather import Aim, Gather
from gossamer.codegen.kernels.hash_signs import HashSigns
from gossamer.codegen.kernels.inner_products import InnerProductGemm, InnerProductRows
from gossamer.codegen.kernels.move import Border, Copy, Transpose
from gossamer.codegen.kernels.nonzero import Nonzero
from gossamer.codegen.kernels.normalize import LocalResponse, Normalize
from gossamer.codegen.kernels.outputs import Dequantized, Requantized, Rescaled, Sums
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.kernels.pack_depthwise import PackDepthwise, widths
from gossamer.codegen.kernels.packed_bits import PackBits, UnpackBits
from gossamer.codegen.kernels.peak import MultiplyAdd, MultiplyAddBytes, Read
from gossamer.codegen.kernels.private import Private
from gossamer.codegen.kernels.push import Push
from gossamer.codegen.kernels.quantized_contract import QuantizedGemm, QuantizedPack
from gossamer.codegen.kernels.quantized_depthwise import QuantizedDepthwise, QuantizedRows, pixels_of
from gossamer.codegen.kernels.quantized_normalize import QuantizedNormalize
from gossamer.codegen.kernels.quantized_product import QuantizedProduct
from gossamer.codegen.kernels.quantized_reduce import QuantizedReduce
from gossamer.codegen.kernels.quantized_resize import QuantizedResize
from gossamer.codegen.kernels.quantized_softmax import QuantizedSoftmax
from gossamer.codegen.kernels.quantized_strassen import (
    QuantizedStrassenInput,
    QuantizedStrassenOutput,
    QuantizedStrassenWeights,
)
from gossamer.codegen.kernels.quantized_window import QuantizedWindow
from gossamer.codegen.kernels.quantized_winograd import (
    QuantizedWinogradInput,
    QuantizedWinogradOutput,
    QuantizedWinogradProduct,
    QuantizedWinogradWeights,
)
from gossamer.codegen.kernels.random import Random
from gossamer.codegen.kernels.reduce import Reduce
from gossamer.codegen.kernels.repeat import Repeat
from gossamer.codegen.kernels.resize import ResizeBilinear, ResizeNearest
from gossamer.codegen.kernels.rows import RowPipeline
from gossamer.codegen.kernels.scale import ScaleRows
from gossamer.codegen.kernels.scan import Scan
from gossamer.codegen.kernels.scatter import Scatter
from gossamer.codegen.kernels.search import Search
from gossamer.codegen.kernels.segments import Segments
from gossamer.codegen.kernels.softmax import Softmax
from gossamer.codegen.kernels.softmax16 import Softmax16
from gossamer.codegen.kernels.sort import Sort
from gossamer.codegen.kernels.strassen import (
    Strassen,
    StrassenInnerOutput,
    StrassenInput,
    StrassenOutput,
    StrassenWeights,
)
from gossamer.codegen.kernels.suppress import Suppress
from gossamer.codegen.kernels.tile_contract import TileGemm, WithTiles
from gossamer.codegen.kernels.topk import TopK
from gossamer.codegen.kernels.turns import Statement, Turns
from gossamer.codegen.kernels.unique import Unique
from gossamer.codegen.kernels.walk import WalkSpec
from gossamer.codegen.kernels.where import Where
from gossamer.codegen.kernels.widen import Widen
from gossamer.codegen.kernels.window import Window
from gossamer.codegen.kernels.winograd import Size, Winograd, WinogradInput, WinogradOutput, WinogradWeights
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.records import replace
from gossamer.targets import Target, all_targets, reduced
from tests.conftest import ROOT

FILE = Path(__file__).with_name("goldens.txt")

BF16 = reduced(all_targets()["avx512vnni"], {"avx512bf16"})
assert BF16 is not None
TARGETS = [*all_targets().values(), BF16]

SIZES: tuple[Size, ...] = (2, 4)
WORDS_ADDED: Expression = ("scaleout", ("add", ("scalein", ("toi32", 0), 2), ("scalein", ("toi32", 1), 3)), 4)
ADDED = Requantized(("qadd", 0, 1, 2), clamps=True)
RESIDUAL: Expression = ("relu", ("add", 0, 1))
SILU: Expression = ("mul", 0, ("logistic", 0))


def representatives(target: Target) -> Iterator[KernelSpec]:
    """A few kernels of every kind: each form of it, and each function of expressions, once."""
    isa = target.name
    yield Gemm(isa, 4, 2)
    yield Gemm(isa, 4, 2, ("relu6", 0), conv=True)
    yield Gemm(isa, 3, 2, RESIDUAL, ragged=True)
    yield Gemm(isa, 1, 4, prefetch=2)
    yield Gemm(isa, 2, 2, accumulate=True)
    if target.vector_bits == 512:
        yield Gemm(isa, 2, 2, half=True, ragged=True)
    yield Gemm(isa, 2, 1, weights="f16")
    yield ContractTiles(isa)
    yield ContractSingle(isa)
    yield ContractState(isa)
    yield ContractPanels(isa)
    yield DepthwiseRow(isa, 4, ("relu6", 0), (3, 3, 1))
    yield DepthwiseRow(isa, 2, SILU, (5, 5, 2))
    yield DepthwiseRow(isa, 2)
    yield DepthwiseRow(isa, 2, kernel=(3, 3, 1), multiplier=2)
    yield Depthwise(isa)
    yield Dot(isa, 1, 1, weights="f16")
    yield Dot(isa, 2, 1, ("relu", 0))
    yield from _maps(isa)
    yield Map(isa, ("add", ("mul", 0, 1), 2), "vsv")
    yield Copy(isa)
    yield from (Transpose(isa, bits) for bits in (8, 64))
    yield Border(isa)
    yield from (Pack(isa, by_depth) for by_depth in (False, True))
    yield Pack(isa, weights="f16")
    yield from (Reduce(isa, "mean", along) for along in (False, True))
    yield Reduce(isa, "max", epilogue=("relu", 0))
    yield from (Reduce(isa, "sum", along, type="i32", result="i64") for along in (False, True))
    yield Reduce(isa, "prod", type="i8", result="i8")
    width = widths(target)[-1]
    yield QuantizedRows(isa, "i8", width, (3, 3, 1), 2, pixels_of(target, True, False))
    yield QuantizedRows(isa, "u8", width, (3, 3, 0), 2, clamps=True, layers=2)
    yield QuantizedRows(isa, "i8", width, (3, 3, 0), spread=4, saturates=True)
    yield QuantizedRows(isa, "i8", width, ragged=True)
    if multiplies_pairs(target):
        yield ScaleRows(isa)
        yield ScaleRows(isa, clamps=True)
    if target.dot or multiplies_pairs(target):
        yield QuantizedRows(isa, "i8", width, (5, 5, 1), 2, 2 if target.dot else 1, staged=True)
    yield QuantizedDepthwise(isa)
    yield PackDepthwise(isa, "u8", 1, 2)
    if crosses(target):
        yield ContractGroups(isa)
        yield from (InnerProductRows(isa, type) for type in ("i8", "u8"))
        yield InnerProductRows(isa, "i8", 4)
        yield from (InnerProductRows(isa, "i8", block, True) for block in (16, 4))
        yield InnerProductGemm(isa, 4, 2)
        yield InnerProductGemm(isa, 4, 2, lines=True)
        yield InnerProductGemm(isa, 3, 1, "u8", ADDED, ragged=True)
        yield InnerProductGemm(isa, 2, 2, "i8", Sums())
        yield Strassen(isa, widened=True)
        yield QuantizedStrassenWeights(isa)
        yield QuantizedStrassenInput(isa)
        yield QuantizedStrassenOutput(isa, "i8", ADDED)
        yield QuantizedPack(isa, wide=True)
        yield QuantizedPack(isa, True, True, True)
        yield QuantizedGemm(isa, 1, 4, by_sign=True)
        yield QuantizedGemm(isa, 8, 1, walk="steps", widened=True)
        yield Widen(isa, "i8")
        yield QuantizedPack(isa, by_sign=True)
    yield from (QuantizedGemm(isa, 3, 2, type) for type in ("i8", "u8"))
    if adds_pairs(target):
        yield QuantizedGemm(isa, 3, 2, narrow=True)
    yield QuantizedGemm(isa, 2, 3, "i8", ADDED, "taps", ragged=True)
    yield QuantizedGemm(isa, 2, 1, "i8", Requantized(large=True), "steps", 3, shifted=True, prefetch=1)
    yield QuantizedGemm(isa, 2, 2, "i8", Sums(), ragged=True)
    yield QuantizedGemm(isa, 2, 2, "i8", Requantized(nudged=True), shifted=True)
    yield from (QuantizedPack(isa, *form) for form in ((False, False), (True, False), (False, True)))
    yield QuantizedNormalize(isa)
    yield from (QuantizedReduce(isa, "sum", along) for along in (False, True))
    yield QuantizedReduce(isa, "max", type="u8")
    yield QuantizedResize(isa)
    yield from (QuantizedSoftmax(isa, log=log) for log in (False, True))
    yield QuantizedWindow(isa, "max")
    yield QuantizedWindow(isa, "mean", "u8", wide=True)
    yield QuantizedWinogradWeights(isa)
    yield from (QuantizedWinogradInput(isa, type) for type in ("i8", "u8"))
    yield QuantizedWinogradProduct(isa, 2)
    yield QuantizedWinogradOutput(isa)
    yield QuantizedWinogradWeights(isa, deep=True)
    yield QuantizedWinogradInput(isa, "i8", deep=True)
    yield QuantizedWinogradProduct(isa, 2, deep=True)
    yield QuantizedWinogradOutput(isa, deep=True)
    yield QuantizedWinogradOutput(isa, "u8", replace(ADDED, large=True))
    yield from (RowPipeline(isa, expand) for expand in (False, True))
    yield from (Softmax(isa, log) for log in (False, True))
    yield from (Window(isa, reduction) for reduction in ("max", "mean", "l2"))
    yield from (WalkSpec(isa, timed=timed) for timed in (False, True))
    yield EnterSpec(isa)
    if target.triple.startswith("x86_64"):
        yield WalkSpec(isa, "win64", timed=True)
    yield Gather(isa, 8)
    yield Gather(isa, 32, 64, clamps=True)
    yield Gather(isa, 32, puts=True)
    yield Aim(isa)
    yield from (WinogradWeights(isa, size) for size in SIZES)
    yield WinogradWeights(isa, 2, "f16")
    yield from (WinogradInput(isa, size) for size in SIZES)
    yield from (WinogradOutput(isa, size) for size in SIZES)
    yield WinogradOutput(isa, 4, RESIDUAL)
    yield Winograd(isa)
    yield from (StrassenWeights(isa, twice) for twice in (False, True))
    yield StrassenInput(isa)
    yield StrassenInnerOutput(isa)
    yield StrassenOutput(isa)
    yield StrassenOutput(isa, RESIDUAL)
    yield from (Strassen(isa, twice) for twice in (False, True))
    yield Normalize(isa, "layer", ("add", ("mul", 0, 1), 2), "vv")
    yield Normalize(isa, "rms", ("mul", 0, 1), "s")
    yield Normalize(isa, "l2")
    yield LocalResponse(isa)
    yield ResizeNearest(isa)
    yield ResizeBilinear(isa)
    yield from (Scan(isa, exclusive) for exclusive in (False, True))
    yield from (Search(isa, rule) for rule in ("upper", "equal"))
    yield Scatter(isa, "f32", "add")
    yield Scatter(isa, "i8", "set")
    yield from (Random(isa, algorithm) for algorithm in ("philox", "threefry"))
    yield from (Suppress(isa, soft) for soft in (False, True))
    yield TopK(isa)
    yield Sort(isa)
    yield QuantizedProduct(isa, "i8")
    yield from (Unique(isa, type) for type in ("f32", "i64"))
    yield Where(isa, "i8")
    yield Segments(isa, "f32")
    yield Embed(isa, "mean")
    yield from (ArgReduce(isa, greatest, along) for greatest in (False, True) for along in (False, True))
    yield from (Fill(isa, bits) for bits in (8, 32))
    yield HashSigns(isa)
    yield from (UnpackBits(isa, bits) for bits in (2, 4))
    yield from (PackBits(isa, bits) for bits in (2, 4))
    yield Nonzero(isa, "f32")
    yield Nonzero(isa, "i32")
    yield Repeat(isa)
    count, decay = Statement(("add", 0, 1), (0, 2), ("i32", 1)), Statement(("mul", 0, 1), (1, 4), ("f32", 20))
    more = Statement(("less", 0, 1), (5, 3), ("bool", 1))
    others = (("i32", 1), ("i32", 1), ("f32", 1))
    yield Turns(isa, (("i32", 1), ("f32", 20)), others, (count, decay, more), (5, 6), 7)
    yield PairGemm(isa, 4, 2)
    yield PairGemm(isa, 1, 1, Rescaled("once"), wide=True, ragged=True)
    yield PairGemm(isa, 2, 1, Rescaled("twice", WORDS_ADDED))
    yield PairGemm(isa, 1, 1, Rescaled("double"))
    yield from (Depthwise16(isa, output) for output in (None, Rescaled("once")))
    yield from (Product16(isa, output) for output in (None, Rescaled("once")))
    yield from (Dot16(isa, type) for type in ("i8", "i16"))
    yield from (Push(isa, bits) for bits in (8, 16))
    yield Advance(isa)
    yield Softmax16(isa)
    yield Private(isa)
    yield from (QuantizeRows(isa, type, together) for type, together in (("i8", 1), ("u8", 4)))
    yield Range(isa)
    yield from (Grids(isa, rule) for rule in ("qd8", "builtin"))
    yield from (QuantizeImages(isa, rule) for rule in ("qd8", "builtin"))
    yield QuantizedGemm(isa, 3, 2, "i8", Dequantized(RESIDUAL), ragged=True)
    yield HybridDepthwiseRow(isa, 4, 0, (3, 3, 1))
    yield MultiplyAdd(isa)
    yield MultiplyAddBytes(isa)
    yield Read(isa)
    if narrows(target):
        yield from _of_24_bits(isa)
    if target.tiles:
        yield from _of_tiles(isa)


def chosen(target: Target) -> Iterator[KernelSpec]:
    """The representatives of a target that have checksums: not those that are much the same for what it extends."""
    if target.base is None:
        yield from representatives(target)
    elif target.bf16:
        yield from _of_bf16(target.name)
    elif target.tiles:
        yield from _of_tiles(target.name)
    elif narrows(target):
        yield from _of_24_bits(target.name)


def _of_bf16(isa: str) -> Iterator[KernelSpec]:
    """Kernels of reduced precision."""
    yield Bf16Rows(isa)
    yield Gemm(isa, 4, 2, prefetch=1, weights="bf16")
    yield Gemm(isa, 2, 2, RESIDUAL, ragged=True, half=True, weights="bf16")
    yield from (Pack(isa, by_depth, "f32", "bf16") for by_depth in (False, True))
    yield Pack(isa, weights="f16", packed="bf16")


def _of_24_bits(isa: str) -> Iterator[KernelSpec]:
    """Products of a row with weights of 24 bits."""
    yield Gemm24(isa, 8)
    yield Gemm24(isa, 3, RESIDUAL, ragged=True)
    yield Pack24(isa)


def _of_tiles(isa: str) -> Iterator[KernelSpec]:
    """Kernels for registers of tiles, and for dot products of 512 bits, which are where these are."""
    yield ScaleRows(isa)
    yield ScaleRows(isa, clamps=True)
    yield QuantizedGemm(isa, 2, 3, ragged=True, half=True)
    yield WithTiles(isa)
    yield from (TileGemm(isa, 2, 2, type) for type in ("i8", "u8"))
    yield TileGemm(isa, 1, 3, "i8", ADDED, conv=True, rest=True, ragged=True)
    yield TileGemm(isa, 4, 1, "i8", Requantized(large=True))


def _maps(isa: str) -> Iterator[KernelSpec]:
    """Every function of expressions, of the first types that it takes."""
    for name in FUNCTIONS:
        yield example(name, isa)


def example(name: str, isa: str) -> Map:
    """A function of expressions, of the first types that it takes."""
    function = FUNCTIONS[name]
    expression = (name, *range(function.arity))
    letters = "v" * (function.arity - 1) + "vp"[function.reads is not None]
    letters = {"lookuprow": "vsp"}.get(name, letters)
    for first in ("f32", "i32", "i8", "f64", "i64", "bool"):
        types = [first] * function.arity
        if function.chooses:
            types[0] = "bool"
        try:
            return Map(isa, expression, letters, (*types, type_of(expression, types)))
        except CompileError:
            continue
    raise AssertionError(f"no types for {name}")


def texts() -> dict[str, str]:
    """The IR text of every representative, by name, for every target."""
    return {spec.name: spec.emit(target) for target in TARGETS for spec in chosen(target)}


def checksums(texts: dict[str, str]) -> dict[str, str]:
    """By kernel, the beginning of the SHA-256 of its text."""
    return {name: sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def read() -> dict[str, str]:
    """The checksums that are kept."""
    return dict(line.split() for line in FILE.read_text().splitlines())


def update(texts: dict[str, str]) -> None:
    """Keep the checksums of the texts as they are."""
    FILE.write_text("".join(f"{name} {check}\n" for name, check in sorted(checksums(texts).items())))


def difference(kept: dict[str, str], found: dict[str, str]) -> str:
    """What to tell somebody whose kernels changed; nothing if they did not."""
    groups = {
        "changed": [name for name in kept if name in found and kept[name] != found[name]],
        "are new": [name for name in found if name not in kept],
        "are gone": [name for name in kept if name not in found],
    }
    lines = [f"{len(names)} {what}: {' '.join(sorted(names))}" for what, names in groups.items() if names]
    if not lines:
        return ""
    return "\n".join(
        [
            "The IR of kernels is not what tests/codegen/goldens.txt says:",
            *lines,
            "To see what differs from the last commit: python -m tests.codegen.goldens diff",
            "If that is meant: python -m pytest tests/codegen/test_goldens.py --update-goldens",
        ]
    )


def write(directory: Path, texts: dict[str, str]) -> None:
    """Every text into a file of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (directory / f"{name}.ll").write_text(text)


def diff(revision: str) -> Iterator[str]:
    """What differs between the texts of a revision, made by its own sources, and those of this tree."""
    with tempfile.TemporaryDirectory() as place:
        then, now, tree = (Path(place) / name for name in ("then", "now", "tree"))
        archive = subprocess.run(
            ["git", "archive", revision, "src", "tests"], cwd=ROOT, check=True, capture_output=True
        )
        tree.mkdir()
        subprocess.run(["tar", "-x"], cwd=tree, input=archive.stdout, check=True)
        if not (tree / "tests" / "codegen" / "goldens.py").exists():
            sys.exit(f"{revision} is older than this file: its kernels cannot be compared.")
        for root, directory in ((tree, then), (ROOT, now)):
            command = [sys.executable, "-m", "tests.codegen.goldens", "write", str(directory)]
            path = os.pathsep.join((str(root / "src"), str(root)))
            subprocess.run(command, cwd=root, check=True, env={**os.environ, "PYTHONPATH": path})
        names = {file.name for directory in (then, now) for file in directory.iterdir()}
        for name in sorted(names):
            old, new = (
                file.read_text().splitlines() if (file := directory / name).exists() else []
                for directory in (then, now)
            )
            yield from difflib.unified_diff(old, new, f"{revision}/{name}", name, lineterm="")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.codegen.goldens", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("directory", type=Path)
    commands.add_parser("diff").add_argument("revision", nargs="?", default="HEAD")
    arguments = parser.parse_args()
    if arguments.command == "write":
        write(arguments.directory, texts())
    else:
        sys.stdout.writelines(f"{line}\n" for line in diff(arguments.revision))


if __name__ == "__main__":
    main()
