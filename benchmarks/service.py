"""What a service costs in memory, and what threads and processes bring: clones, interpreters and workers of one model.

    python benchmarks/service.py MODEL.tflite --workers 4

Memory is what the system would get back if that part went, in MiB (Linux): pages that nobody else has, and a share of
those that several have (the proportional set size of `/proc/PID/smaps_rollup`), summed over processes. Throughput is
inferences per second of all workers together, each with one thread, in a window of two seconds; where it stops growing
there are no more free CPUs.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gossamer

WINDOW = 2.0


def memory(*processes: Any) -> float:
    """Proportional set size of this process and others, in MiB."""
    total = 0
    for number in ("self", *(process.pid for process in processes)):
        lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def ready(path: str) -> gossamer.Interpreter:
    """An interpreter that has run once."""
    interpreter = gossamer.Interpreter(model_path=path)
    interpreter.allocate_tensors()
    interpreter.invoke()
    return interpreter


def count(interpreter: gossamer.Interpreter, until: float) -> int:
    """Inferences until then."""
    done = 0
    while time.monotonic() < until:
        interpreter.invoke()
        done += 1
    return done


def in_threads(interpreters: list[gossamer.Interpreter]) -> float:
    """Inferences per second of a thread for each interpreter."""
    done: list[int] = []
    until = time.monotonic() + WINDOW
    threads = [threading.Thread(target=lambda it=it: done.append(count(it, until))) for it in interpreters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / WINDOW


def work(make: Callable[[], gossamer.Interpreter], pipe: Any) -> None:
    """A worker: says that it is ready, waits, counts, and says how many."""
    interpreter = make()
    pipe.send(0)
    pipe.recv()
    pipe.send(count(interpreter, time.monotonic() + WINDOW))
    pipe.recv()


class Loads:
    """Makes the interpreter of a process that starts empty."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self) -> gossamer.Interpreter:
        return ready(self.path)


def in_processes(method: str, make: Callable[[], gossamer.Interpreter], workers: int) -> tuple[float, float]:
    """Memory of all processes, less that of this one before, and inferences per second."""
    context = multiprocessing.get_context(method)
    before = memory()
    pipes, processes = [], []
    for _ in range(workers):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(make, theirs), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    for pipe in pipes:
        pipe.send(None)
    done = sum(pipe.recv() for pipe in pipes)
    used = memory(*processes) - before
    for pipe in pipes:
        pipe.send(None)
    for process in processes:
        process.join()
    return used, done / WINDOW


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()
    path, workers = arguments.model, arguments.workers
    print(f"{'':44} {'MiB':>7} {'each':>7} {'inferences/s':>13}")

    def say(what: str, mebibytes: float, further: int, rate: float) -> None:
        print(f"{what:44} {mebibytes:7.1f} {mebibytes / further:7.1f} {rate:13.0f}", flush=True)

    before = memory()
    first = ready(path)
    say("one interpreter", memory() - before, 1, in_threads([first]))

    before = memory()
    clones = [first.clone() for _ in range(workers - 1)]
    for clone in clones:
        clone.invoke()
    say(f"{workers - 1} clones of it, {workers} threads", memory() - before, workers - 1, in_threads([first, *clones]))
    clones.clear()
    gc.collect()

    before = memory()
    others = [ready(path) for _ in range(workers - 1)]
    say(f"{workers - 1} other interpreters", memory() - before, workers - 1, in_threads([first, *others]))
    others.clear()
    gc.collect()

    used, rate = in_processes("fork", first.clone, workers)
    say(f"{workers} processes forked behind it, a clone each", used, workers, rate)
    used, rate = in_processes("spawn", Loads(path), workers)
    say(f"{workers} processes started anew", used, workers, rate)


if __name__ == "__main__":
    main()
