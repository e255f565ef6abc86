"""One and two threads, alone and beside a process that occupies a CPU: matrix products, and a model beside LiteRT.

    python -m pip install ".[bench]"
    python benchmarks/threads.py MODEL.tflite [--seconds 180]

The program of 60 matrix products of MobileNetV2's sizes, a barrier after each, runs as any other does, and once more
with exactly two threads whatever happens. All take turns, in bursts, with the other process and without it (it is
stopped and continued). Figures are milliseconds of a call, medians of the means of bursts, and of the slowest call of
a burst; the ratio of busy to quiet is what the other process costs. On Linux, a burst during which anybody else used a
CPU is not counted.

Shares its arrays and argument blocks with the tests of the kernels: run it in a checkout.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import gossamer
from gossamer.codegen.tiles import gemm_tile
from gossamer.programs.program import Program, ProgramBuilder
from gossamer.programs.team import run_together
from gossamer.targets import Target
from tests.codegen.kernels import harness
from tests.programs.kernels import kernels_in_memory, target_here

# Side of the image, channels in, channels out.
EXPAND_AND_PROJECT = (
    *((112, 32, 16), (112, 16, 96), (56, 96, 24), (56, 24, 144), (56, 144, 24), (56, 24, 144), (28, 144, 32)),
    *((28, 32, 192), (28, 192, 32), (28, 32, 192), (28, 192, 32), (28, 32, 192), (14, 192, 64)),
    *((14, 64, 384), (14, 384, 64), (14, 64, 384), (14, 384, 64), (14, 64, 384), (14, 384, 64), (14, 64, 384)),
    *((14, 384, 96), (14, 96, 576), (14, 576, 96), (14, 96, 576), (14, 576, 96), (14, 96, 576), (7, 576, 160)),
    *((7, 160, 960), (7, 960, 160), (7, 160, 960), (7, 960, 160), (7, 160, 960), (7, 960, 320), (7, 320, 1280)),
)
COMMANDS = 60
SETTLE, BURST = 1.0, 0.25
"""Seconds of calls before those that are measured, and of these: who uses fewer threads for a while shall have noticed
what has changed, and the scheduler gives slices of milliseconds."""

FOREIGN = 0.1
"""Share of a CPU that others may use during a burst."""

Call = Callable[[], Any]


class Burst(NamedTuple):
    """Milliseconds of a call, on average and at worst."""

    mean: float
    worst: float


def products(target: Target) -> Program:
    """The program of GEMMs, which holds its arrays."""
    rng = np.random.default_rng(0)
    builder = ProgramBuilder()
    convolutions = []
    for number in range(COMMANDS):
        side, depth, channels = EXPAND_AND_PROJECT[number % len(EXPAND_AND_PROJECT)]
        x, weights, bias = (
            rng.standard_normal(shape, np.float32)
            for shape in ((1, side, side, depth), (channels, 1, 1, depth), channels)
        )
        y = np.zeros((1, side, side, channels), np.float32)
        tile = gemm_tile(target, side * side, channels, depth)
        convolution = harness.Convolution(target, x, weights, bias, y, tile)
        builder.command(convolution.spec.name, builder.block(convolution.arguments.tolist()))
        convolutions.append(convolution)
    specs = {convolution.spec for convolution in convolutions}
    program = Program(builder.plan(), kernels_in_memory(specs, target), target)
    HELD.extend(convolutions)
    return program


HELD: list[Any] = []


def model(interpreter_class: Any, path: str, num_threads: int) -> Call:
    """A model with the default delegate."""
    interpreter = interpreter_class(model_path=path, num_threads=num_threads)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    return interpreter.invoke


@contextmanager
def occupant() -> Iterator[subprocess.Popen[bytes]]:
    """A process that computes for ever, stopped."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        process.send_signal(signal.SIGSTOP)
        yield process
    finally:
        process.kill()
        process.wait()


def cpu_seconds(*processes: int) -> float:
    """CPU time that everybody but these processes has used; 0 where nobody tells."""
    if sys.platform != "linux":
        return 0
    ticks = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    ours = 0
    for process in processes:
        ours += sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return (user + nice + system + irq + softirq - ours) / ticks


def burst(call: Call, known: tuple[int, ...]) -> Burst | None:
    """Calls for a while, or nothing if anybody else was at work meanwhile."""
    until = time.perf_counter() + SETTLE
    while time.perf_counter() < until:
        call()
    times = []
    others = cpu_seconds(*known)
    start = now = time.perf_counter()
    while now < start + BURST:
        call()
        times.append(-now + (now := time.perf_counter()))
    if cpu_seconds(*known) - others > FOREIGN * BURST + 0.02:
        return None
    return Burst(statistics.mean(times) * 1e3, max(times) * 1e3)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=180)
    arguments = parser.parse_args()

    from ai_edge_litert.interpreter import Interpreter as LiteRT

    target = target_here()
    program = products(target)
    exact = products(target)
    calls: dict[str, Call] = {
        "products, 1 thread": lambda: program.run(1),
        "products, 2 threads": lambda: program.run(2),
        "products, exactly 2": lambda: run_together(2, exact._walker, exact._commands, COMMANDS),
        "model, 1 thread": model(gossamer.Interpreter, arguments.model, 1),
        "model, 2 threads": model(gossamer.Interpreter, arguments.model, 2),
        "LiteRT, 1 thread": model(LiteRT, arguments.model, 1),
        "LiteRT, 2 threads": model(LiteRT, arguments.model, 2),
    }
    quiet: dict[str, list[Burst]] = {name: [] for name in calls}
    busy: dict[str, list[Burst]] = {name: [] for name in calls}
    left_out = 0
    with occupant() as process:
        known = (os.getpid(), process.pid)
        until = time.monotonic() + arguments.seconds
        while time.monotonic() < until:
            for signal_, bursts in ((signal.SIGSTOP, quiet), (signal.SIGCONT, busy)):
                process.send_signal(signal_)
                for name, call in calls.items():
                    if (result := burst(call, known)) is not None:
                        bursts[name].append(result)
                    else:
                        left_out += 1
    print(f"{'':22}{'quiet':>8}{'worst':>8}{'busy':>8}{'worst':>8}{'ratio':>8}")
    for name in calls:
        if not quiet[name] or not busy[name]:
            raise SystemExit("Others kept the machine busy.")
        figures = [statistics.median(column) for bursts in (quiet, busy) for column in zip(*bursts[name], strict=True)]
        print(f"{name:22}" + "".join(f"{figure:8.2f}" for figure in (*figures, figures[2] / figures[0])))
    print(f"{left_out} bursts left out because of others")


if __name__ == "__main__":
    main()
