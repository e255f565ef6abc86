"""Inner loops for AArch64 in instructions, and in cycles of LLVM's model of a CPU: nothing is run.

    python benchmarks/inner_loops.py [--target neon] [--cpu neoverse-n1] [--mca llvm-mca] [FILE.S ...]

Of the best tiles of products, and of depthwise kernels, the loop with most multiply-adds; of files of assembly theirs,
counted alike. Cycles are those that llvm-mca says (19 and newer knows the models of more CPUs), where everything is in
the first-level cache.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from gossamer.codegen.compiler import assembly
from gossamer.codegen.dots import adds_pairs
from gossamer.codegen.kernels.contract import Gemm
from gossamer.codegen.kernels.depthwise import DepthwiseRow
from gossamer.codegen.kernels.pack_depthwise import widths
from gossamer.codegen.kernels.quantized_contract import QuantizedGemm
from gossamer.codegen.kernels.quantized_depthwise import QuantizedRows, pixels_of
from gossamer.codegen.kernels.quantized_winograd import QuantizedWinogradProduct, tiles_of
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.tiles import depthwise_tile, proposals
from gossamer.targets import Target, all_targets

TURNS = 100

Loop = list[tuple[str, str]]
"""Mnemonics and operands."""

PRODUCTS = re.compile(r"(fmla|[su]mlal2?|[su]mull2?|([su]dot))$")
RESULT = re.compile(r"v\d+\.(\d+)[bhsd]", re.I)
JUMP = re.compile(r"(b|b\.\w+|cbn?z|tbn?z)$")


def kernels(target: Target) -> Iterator[KernelSpec]:
    """What is counted for a target: of tiles the first three that it proposes, and that of a single row."""
    isa, plain = target.name, target.plain.name
    if target.base is None:
        for mr, nv in _some(target, "gemm"):
            yield Gemm(isa, mr, nv)
    for mr, nv in _some(target, "quantized_gemm"):
        yield QuantizedGemm(isa, mr, nv, narrow=adds_pairs(target))
    if not target.dot:
        yield QuantizedWinogradProduct(isa, tiles_of(target))
    for size, stride in ((3, 1), (3, 2), (5, 1), (5, 2)):
        window = (size, size, stride)
        if target.base is None:
            yield DepthwiseRow(plain, depthwise_tile(target, 56), ("relu6", 0), window)
        staged = bool(target.dot) and size == 5 and stride == 1
        pixels = pixels_of(target, True, staged)
        yield QuantizedRows(isa, "i8", widths(target)[-1], window, 3 - stride, pixels, staged=staged)


def _some(target: Target, kind: str) -> list[tuple[int, int]]:
    tiles = proposals(target, kind)
    return [*tiles[:3], next(tile for tile in tiles if tile[0] == 1)]


def loops(text: str) -> Iterator[Loop]:
    """The innermost loops of assembly text: from a label to what jumps back to it, if no other one ends between."""
    found: Loop = []
    labels: dict[str, int] = {}
    end = 0
    for line in text.splitlines():
        code = line.split("//")[0].strip()
        if label := re.match(r"([\w.$]+):", code):
            labels[label[1]] = len(found)
        elif re.match(r"[A-Za-z]\w*(\.\w+)?(\s|$)", code):
            name, _, operands = " ".join(code.split()).partition(" ")
            found.append((name.lower(), operands))
            to = re.sub(r"^(\d+)b$", r"\1", operands.rpartition(",")[2].strip(), flags=re.I)
            if JUMP.match(name.lower()) and labels.get(to, -1) >= end:
                yield found[labels[to] :]
                end = len(found)


def multiply_adds(loop: Loop) -> int:
    """Of vectors."""
    total = 0
    for name, operands in loop:
        product, result = PRODUCTS.match(name), RESULT.match(operands)
        if product and result:
            total += int(result[1]) * (4 if product[2] else 1)
    return total


def cycles(loop: Loop, mca: str, cpu: str) -> float:
    """Of a turn."""
    lines = [
        f"{name} {operands.rpartition(',')[0] and operands.rpartition(',')[0] + ', '}0"
        if JUMP.match(name)
        else f"{name} {operands}"
        for name, operands in loop
    ]
    command = [mca, "-mtriple=aarch64", "-mattr=+dotprod", f"-mcpu={cpu}", f"-iterations={TURNS}"]
    done = subprocess.run(command, input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    return int(re.findall(r"Total Cycles:\s+(\d+)", done.stdout)[0]) / TURNS


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.S")
    parser.add_argument("--target", default="neon", choices=[n for n, t in all_targets().items() if t.by_element])
    parser.add_argument("--cpu", default="neoverse-n1")
    parser.add_argument("--mca", default="llvm-mca")
    options = parser.parse_args()
    target = all_targets()[options.target]
    texts = {file.stem: file.read_text() for file in options.files}
    texts = texts or {spec.name: assembly(spec, target) for spec in kernels(target)}
    print(f"{'':60}instructions  loads  stack  multiply-adds  per instruction  per cycle of {options.cpu}")
    for name, text in texts.items():
        loop = max(loops(text), key=multiply_adds)
        done = multiply_adds(loop)
        loads, stack = (sum(found) for found in zip(*((n.startswith("ld"), "[sp" in o) for n, o in loop), strict=True))
        rate = done / cycles(loop, options.mca, options.cpu)
        print(f"{name:60}{len(loop):12}{loads:7}{stack:7}{done:15}{done / len(loop):17.2f}{rate:11.1f}")


if __name__ == "__main__":
    main()
