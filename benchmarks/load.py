"""From the file to a model that is ready to be invoked, beside LiteRT in the same process.

    python -m pip install ".[bench]"
    python benchmarks/load.py MODEL.tflite

Both engines take turns; the figures are medians in milliseconds of the constructor and of ``allocate_tensors``, and
the ratio of their sums (above 1: LiteRT takes longer). LiteRT is measured as it comes (XNNPACK delegate, which packs
the weights when tensors are allocated) and without default delegates.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import gossamer


def load(make: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds of the constructor and of ``allocate_tensors``."""
    start = time.perf_counter()
    interpreter = make()
    built = time.perf_counter()
    interpreter.allocate_tensors()
    return (built - start) * 1e3, (time.perf_counter() - built) * 1e3


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=31)
    arguments = parser.parse_args()

    from ai_edge_litert import interpreter as litert

    path = arguments.model
    bare = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    engines: dict[str, Callable[[], Any]] = {
        "gossamer": lambda: gossamer.Interpreter(model_path=path),
        "litert": lambda: litert.Interpreter(model_path=path),
        "litert, no delegate": lambda: litert.Interpreter(model_path=path, experimental_op_resolver_type=bare),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for _ in range(arguments.runs):
        for name, make in engines.items():
            times[name].append(load(make))
    # The first round imports operators and creates delegates.
    medians = {n: [statistics.median(column) for column in zip(*rows[1:], strict=True)] for n, rows in times.items()}
    print(f"{'engine':20} {'construct':>10} {'allocate':>10} {'sum':>10} {'ratio':>7} {'first':>10}")
    for name, (built, allocated) in medians.items():
        ratio = (built + allocated) / sum(medians["gossamer"])
        figures = f"{built:10.2f} {allocated:10.2f} {built + allocated:10.2f} {ratio:7.2f} {sum(times[name][0]):10.2f}"
        print(f"{name:20} {figures}")


if __name__ == "__main__":
    main()
