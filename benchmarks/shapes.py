"""What a shape costs that a model has not had before, and what it costs that shapes alternate, beside LiteRT.

    python -m pip install ".[bench]"
    python benchmarks/shapes.py MODEL.tflite [--axes 1] [--first 16] [--count 50] [--json FILE]

Example: the batches 2 to 21 of a model of any batch.

    python benchmarks/shapes.py transformer.tflite --axes 0 --first 2 --count 20

Dimensions of the first input, and those of other inputs that are as large along the same axes, take ``count`` sizes,
``step`` apart: sequences that grow by a token, batches by an example, or, with ``--axes 1,2 --step 32``, images that
stay square. A process with a cache of its own goes through all sizes, so that every kernel is compiled; then plans are
deleted, and another process measures, in milliseconds of one thread:

- ``load``: the constructor and ``allocate_tensors``, of the shape in the file;
- ``new shape``: ``resize_tensor_input`` and ``allocate_tensors``, the median of all sizes; and for 100 nodes;
- ``invoke``: the median of all sizes, each several times in a row;
- ``alternating``: ``resize_tensor_input``, ``allocate_tensors`` and ``invoke``, the median of sizes in random order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROUNDS = 3
"""Of the sizes, when they alternate; and inferences in a row, when they do not."""


def milliseconds(call: Callable[..., Any], *arguments: Any) -> float:
    """What a call takes."""
    start = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - start) * 1e3


class Resizing:
    """An interpreter whose inputs take sizes along some axes."""

    def __init__(self, interpreter: Any, axes: Sequence[int]) -> None:
        self._interpreter = interpreter
        details = interpreter.get_input_details()
        moving = [(axis, details[0]["shape"][axis]) for axis in axes]
        self._inputs = []
        for one in details:
            shape = [int(size) for size in one["shape"]]
            along = [axis for axis, size in moving if axis < len(shape) and shape[axis] == size]
            self._inputs.append((one["index"], shape, along))
        self.invoke = interpreter.invoke

    def resize(self, size: int) -> None:
        """Let the inputs have this size."""
        for index, shape, along in self._inputs:
            if along:
                changed = [size if axis in along else own for axis, own in enumerate(shape)]
                self._interpreter.resize_tensor_input(index, changed)
        self._interpreter.allocate_tensors()

    def run(self, size: int) -> None:
        """The same, and an inference of zeros."""
        self.resize(size)
        for index, *_ in self._inputs:
            self._interpreter.tensor(index)()[...] = 0
        self.invoke()


def measured(make: Callable[[], Any], axes: Sequence[int], sizes: Sequence[int]) -> dict[str, float]:
    """Every figure of an engine."""
    start = time.perf_counter()
    interpreter = make()
    interpreter.allocate_tensors()
    load = (time.perf_counter() - start) * 1e3
    engine = Resizing(interpreter, axes)
    new = [milliseconds(engine.resize, size) for size in sizes]
    single = []
    for size in sizes:
        engine.run(size)
        single += [milliseconds(engine.invoke) for _ in range(ROUNDS)]
    order = [size for _ in range(ROUNDS) for size in random.Random(0).sample(sizes, len(sizes))]
    return {
        "load": load,
        "new shape": statistics.median(new),
        "invoke": statistics.median(single),
        "alternating": statistics.median(milliseconds(engine.run, size) for size in order),
    }


def figures(model: str, axes: Sequence[int], sizes: Sequence[int], *, warm: bool) -> dict[str, dict[str, float]]:
    """Of each engine; nothing of LiteRT if it is only about kernels (``warm``)."""
    import gossamer

    found = {"gossamer": measured(lambda: gossamer.Interpreter(model_path=model), axes, sizes)}
    if not warm:
        from ai_edge_litert.interpreter import Interpreter

        found["litert"] = measured(lambda: Interpreter(model_path=model), axes, sizes)
        nodes = len(gossamer.Interpreter(model_path=model).model.subgraphs[0].operators)
        for row in found.values():
            row["of 100 nodes"] = row["new shape"] / nodes * 100
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--axes", default="1", help="of the first input, with commas between them (default: 1)")
    parser.add_argument("--first", type=int, default=16, help="the first size (default: 16)")
    parser.add_argument("--step", type=int, default=1, help="from one size to the next (default: 1)")
    parser.add_argument("--count", type=int, default=50, help="of sizes (default: 50)")
    parser.add_argument("--json", metavar="FILE", help="write every figure here")
    parser.add_argument("--child", choices=["warm", "measure"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    axes = [int(axis) for axis in arguments.axes.split(",")]
    sizes = range(arguments.first, arguments.first + arguments.step * arguments.count, arguments.step)
    if arguments.child:
        print(json.dumps(figures(arguments.model, axes, sizes, warm=arguments.child == "warm")))
        return

    from gossamer import disk_cache

    with TemporaryDirectory() as place:
        for child in ("warm", "measure"):
            command = [sys.executable, *sys.argv, "--child", child]
            environment = {**os.environ, "GOSSAMER_CACHE_DIR": place}
            output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout
            disk_cache.clear(Path(place) / "kernels")
    found: dict[str, dict[str, float]] = json.loads(output.splitlines()[-1])
    columns = ("load", "new shape", "of 100 nodes", "invoke", "alternating")
    print(f"{'engine':10}" + "".join(f"{column:>14}" for column in columns))
    for engine, row in found.items():
        print(f"{engine:10}" + "".join(f"{row[column]:14.2f}" for column in columns))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
