"""Instructions that one inference executes, Gossamer's and LiteRT's: where a CPU can be emulated and not timed.

    python benchmarks/instructions.py MODEL.tflite --run "qemu-aarch64 -cpu cortex-a76 -L ROOT -plugin libinsn.so \\
        -d plugin ROOT/usr/bin/python3"
    python benchmarks/instructions.py MODEL.tflite --run "perf stat -e instructions:u python"

``--run`` starts a Python that has Gossamer and LiteRT, under something that says at the end how many instructions there
were: `perf`, or QEMU's plugin `insn`. What several inferences take more than few, divided by their number, is what one
takes: imports, loading and the first call are in both. One thread; the same inputs for both engines.

Off by: the largest difference between the outputs, in steps of integers, or relative to the largest float.

QEMU 7 and older shows a process the /proc/cpuinfo of its host, which LiteRT reads, and ends if it is not that of an Arm
CPU: put one into ROOT/proc/cpuinfo.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from compare import ENGINES, Array, difference, values_of

FEW = 2
"""Calls of the shorter run: the first may do more than others."""

TOTAL = re.compile(r"total insns: *(\d+)|([\d.,]+),* *instructions")
"""What QEMU and `perf` say."""

COMPARED = ("litert", "gossamer")


def total(said: str) -> int:
    """The number of instructions in what was said."""
    found = TOTAL.search(said)
    if found is None:
        raise ValueError(f"nobody said how many instructions there were: {said[-300:]}")
    return int(re.sub(r"\D", "", found[1] or found[2]))


def counted(run: str, engine: str, model: Path, calls: int, inputs: Path, outputs: Path) -> int:
    """The instructions of a process that runs a model so often, and leaves its outputs in a file."""
    command = [*shlex.split(run), __file__, "--once", engine, str(model), str(calls), str(inputs), str(outputs)]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr[-600:]}")
    return total(done.stdout + done.stderr)


def once(engine: str, model: Path, calls: int, inputs: Path, outputs: Path) -> None:
    """What `counted` wants, in the process that it has started."""
    ready = ENGINES[engine](model, 1, arrays(inputs))
    for _ in range(calls):
        ready.call()
    np.savez(outputs, *ready.outputs())


def arrays(path: Path) -> list[Array]:
    """Those of a file, in their order."""
    with np.load(path) as stored:
        return [stored[name] for name in stored.files]


def compared(run: str, model: Path, calls: int) -> tuple[dict[str, float], float]:
    """Instructions of one inference by engine, and how far apart the outputs are."""
    instructions: dict[str, float] = {}
    results = []
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
        np.savez(inputs, *values_of(model))
        for engine in COMPARED:
            least, most = (counted(run, engine, model, n, inputs, outputs) for n in (FEW, FEW + calls))
            instructions[engine] = (most - least) / calls
            results.append(arrays(outputs))
    return instructions, difference(*results)


def models_of(paths: list[Path]) -> Iterator[Path]:
    """Files, and those of folders."""
    for path in paths:
        yield from sorted(path.rglob("*.tflite")) if path.is_dir() else [path]


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, help="files, or folders of them")
    parser.add_argument("--run", required=True, help="how Python is started")
    parser.add_argument("--calls", type=int, default=1, help="by which the two runs of each engine differ")
    arguments = parser.parse_args()
    print(f"{'millions of instructions':40} {'LiteRT':>10} {'Gossamer':>10} {'ratio':>6} {'off by':>8}")
    for model in models_of(arguments.models):
        instructions, off = compared(arguments.run, model, arguments.calls)
        litert, gossamer = (instructions[engine] / 1e6 for engine in COMPARED)
        print(f"{model.stem:40} {litert:10.3f} {gossamer:10.3f} {litert / gossamer:6.2f} {off:8.2g}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        _, _, engine, model, calls, inputs, outputs = sys.argv
        once(engine, Path(model), int(calls), Path(inputs), Path(outputs))
    else:
        main()
