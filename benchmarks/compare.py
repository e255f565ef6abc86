"""Gossamer beside LiteRT and OpenVINO on the same .tflite files, in one run.

    python -m pip install ".[bench]"
    python benchmarks/compare.py                              # the networks of networks.py, one thread
    python benchmarks/compare.py resnet50 --threads 2         # those whose names begin so
    python benchmarks/compare.py --load --no-speed            # from the constructor to the first output
    python benchmarks/compare.py --zoo FOLDER                 # every .tflite file of a folder
    python benchmarks/compare.py my_model.tflite --require 1  # exit code 1 if a peer is quicker

Speed: the engines take turns in bursts of calls, as in a service, whose weights stay in the caches, and then call by
call, as in an application that does other things between; medians in milliseconds, `burst / single`. The ratio is the
time of the best peer divided by Gossamer's, of bursts: above 1, Gossamer is ahead.

Load: the median of three fresh processes, from the constructor to the first output, imports left out, and the peak of
their resident memory; Gossamer once with an empty cache (new) and once more (known).

Off by: the largest difference from LiteRT's outputs, in steps of integers, or relative to the largest float.

Only ratios of one run mean something on a machine that others use, and they move by some hundredths. An engine that
cannot run a model is left out, and named at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import networks
import numpy as np

BURST = 0.03
"""Seconds of a burst."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Input:
    """What an engine has to be given."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: float
    zero_point: int

    def value(self, draw: np.random.Generator) -> Array:
        """Numbers from -1 to 1, as the input has them."""
        value = draw.random(self.shape, np.float32) * 2 - 1
        if self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            value = np.clip(np.round(value / (self.scale or 1 / 128)) + self.zero_point, limits.min, limits.max)
        return value.astype(self.dtype)


@dataclass(frozen=True)
class Engine:
    """A model that is ready: one inference, and the outputs of the last one."""

    call: Callable[[], object]
    outputs: Callable[[], list[Array]]


def inputs_of(path: Path) -> list[Input]:
    """The inputs of a model."""
    import gossamer

    found = []
    for detail in gossamer.Interpreter(model_path=str(path)).get_input_details():
        scale, zero_point = detail["quantization"]
        found.append(Input(tuple(detail["shape"]), np.dtype(detail["dtype"]), scale, zero_point))
    return found


def interpreter(make: Callable[..., Any], path: Path, threads: int, values: Sequence[Array]) -> Engine:
    """An engine with the methods of `tf.lite.Interpreter`. Inputs without a value are zeros."""
    it = make(model_path=str(path), num_threads=threads)
    it.allocate_tensors()
    for detail, value in zip(it.get_input_details(), values, strict=False):
        it.set_tensor(detail["index"], value)
    places = [detail["index"] for detail in it.get_output_details()]
    return Engine(it.invoke, lambda: [it.get_tensor(place) for place in places])


def gossamer(path: Path, threads: int, values: Sequence[Array]) -> Engine:
    from gossamer import Interpreter

    return interpreter(Interpreter, path, threads, values)


def litert(path: Path, threads: int, values: Sequence[Array]) -> Engine:
    from ai_edge_litert.interpreter import Interpreter

    return interpreter(Interpreter, path, threads, values)


def openvino(path: Path, threads: int, values: Sequence[Array]) -> Engine:
    """As for a single stream, in float32."""
    from openvino import Core, Tensor

    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    model = Core().compile_model(str(path), "CPU", options)
    request = model.create_infer_request()
    for place, value in enumerate(values):
        request.set_input_tensor(place, Tensor(value))
    count = len(model.outputs)
    return Engine(request.infer, lambda: [request.get_output_tensor(place).data.copy() for place in range(count)])


ENGINES: Mapping[str, Callable[[Path, int, Sequence[Array]], Engine]] = {
    make.__name__: make for make in (gossamer, litert, openvino)
}


MODULES = {"gossamer": "gossamer", "litert": "ai_edge_litert.interpreter", "openvino": "openvino"}


def values_of(path: Path) -> list[Array]:
    """The same numbers for every engine."""
    draw = np.random.default_rng(0)
    return [input.value(draw) for input in inputs_of(path)]


def ready(name: str, path: Path, threads: int, values: Sequence[Array]) -> Engine | str:
    """The engine after an inference, or why there is none."""
    try:
        engine = ENGINES[name](path, threads, values)
        engine.call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    return engine


def milliseconds(call: Callable[[], object], calls: int) -> float:
    """Of one call, on average."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls * 1e3


def speed(engines: Mapping[str, Engine], seconds: float) -> dict[str, tuple[float, float]]:
    """By engine: the median of bursts, and that of single calls, in milliseconds; they take turns."""
    once = {}
    for name, engine in engines.items():
        milliseconds(engine.call, 3)
        once[name] = milliseconds(engine.call, 3)
    calls = {name: max(1, min(2000, int(BURST * 1e3 / took))) for name, took in once.items()}
    rounds = max(5, min(60, int(seconds * 1e3 / sum(once[name] * calls[name] for name in engines))))
    bursts: dict[str, list[float]] = {name: [] for name in engines}
    singles: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, engine in engines.items():
            engine.call()  # its own weights are in the caches again
            bursts[name].append(milliseconds(engine.call, calls[name]))
    for _ in range(max(15, rounds)):
        for name, engine in engines.items():
            singles[name].append(milliseconds(engine.call, 1))
    return {name: (statistics.median(bursts[name]), statistics.median(singles[name])) for name in engines}


def difference(found: Sequence[Array], wanted: Sequence[Array]) -> float:
    """In steps of integers, or relative to the largest float."""
    worst = 0.0
    for ours, theirs in zip(found, wanted, strict=True):
        if theirs.size:
            off = float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max())
            worst = max(worst, off if theirs.dtype.kind in "iu" else off / max(float(np.abs(theirs).max()), 1e-12))
    return worst


def load(engine: str, path: Path, threads: int, cache: str) -> dict[str, float]:
    """In a fresh process: milliseconds to the first output, and MiB of memory at the peak and of the imports."""
    command = [sys.executable, __file__, "--load-once", engine, str(path), "--threads", str(threads)]
    environment = {**os.environ, "GOSSAMER_CACHE_DIR": cache}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def load_here(engine: str, path: Path, threads: int) -> dict[str, float]:
    """What `load` wants, in the process that it has started. Inputs are zeros."""
    import_module(MODULES[engine])
    imports = peak_memory()
    start = time.perf_counter()
    ready = ENGINES[engine](path, threads, ())
    ready.call()
    ready.outputs()
    return {"ms": (time.perf_counter() - start) * 1e3, "peak": peak_memory(), "imports": imports}


def peak_memory() -> float:
    """Of this process, in MiB; unlike `ru_maxrss`, ``VmHWM`` forgets the process that started it (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def loads(engines: Sequence[str], path: Path, threads: int) -> dict[str, dict[str, float]]:
    """By engine, and for Gossamer new and known: the load of median time."""
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(3):
        for name in engines:
            with tempfile.TemporaryDirectory() as cache:
                for state in ("new", "known") if name == "gossamer" else ("",):
                    found.setdefault(f"{name} {state}".strip(), []).append(load(name, path, threads, cache))
    return {name: sorted(times, key=lambda load: load["ms"])[1] for name, times in found.items()}


def paths_of(names: Sequence[str], zoo: Path | None) -> list[Path]:
    """Files, and those of the zoo whose names begin with one of the others; without a zoo, the networks are made."""
    files = [Path(name) for name in names if Path(name).is_file()]
    prefixes = tuple(name for name in names if not Path(name).is_file())
    if names and not prefixes:
        return files
    if zoo is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gossamer-networks"
        known = networks.write(cache)
    else:
        known = sorted(zoo.rglob("*.tflite"))
    return files + [path for path in known if not prefixes or path.name.startswith(prefixes)]


def measured(path: Path, arguments: argparse.Namespace, left_out: list[str]) -> dict[str, Any]:
    """All figures of a model."""
    values = values_of(path)
    tried = {name: ready(name, path, arguments.threads, values) for name in arguments.engines.split(",")}
    engines = {name: engine for name, engine in tried.items() if isinstance(engine, Engine)}
    left_out += [f"{name} on {path.stem}: {why}" for name, why in tried.items() if isinstance(why, str)]
    row: dict[str, Any] = {"model": path.stem}
    if "litert" in engines:
        wanted = engines["litert"].outputs()
        row["off by"] = {n: difference(e.outputs(), wanted) for n, e in engines.items() if n != "litert"}
    if not arguments.no_speed:
        row["ms"] = speed(engines, arguments.seconds)
        peers = [burst for name, (burst, _) in row["ms"].items() if name != "gossamer"]
        if peers and "gossamer" in row["ms"]:
            row["ratio"] = min(peers) / row["ms"]["gossamer"][0]
    if arguments.load:
        row["load"] = loads(list(engines), path, arguments.threads)
    return row


def said(row: Mapping[str, Any]) -> str:
    """A row, for people."""
    text = f"{row['model']:28}"
    text += "".join(f" {name} {burst:.3g} / {single:.3g} " for name, (burst, single) in row.get("ms", {}).items())
    if "ratio" in row:
        text += f" best peer / Gossamer {row['ratio']:.2f} "
    text += "".join(f" {name} off by {off:.2g}" for name, off in row.get("off by", {}).items())
    for name, load in row.get("load", {}).items():
        memory = f"peak {load['peak']:.0f} MiB, of which imports {load['imports']:.0f}"
        text += f"\n    {name:16} {load['ms']:8.1f} ms to the first output, {memory}"
    return text


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="files, or how names of the zoo begin; all of it by default")
    parser.add_argument("--zoo", type=Path, help="a folder of .tflite files, in place of the networks of networks.py")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--seconds", type=float, default=2.0, help="of bursts, for a model")
    parser.add_argument("--load", action="store_true", help="also measure loads, in fresh processes (Linux)")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--require", type=float, help="exit code 1 if the geometric mean of the ratios is less")
    parser.add_argument("--require-each", type=float, help="exit code 1 if a ratio is less")
    parser.add_argument("--load-once", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load_once:
        print(json.dumps(load_here(arguments.load_once, Path(arguments.models[0]), arguments.threads)))
        return 0
    left_out: list[str] = []
    rows = []
    for path in paths_of(arguments.models, arguments.zoo):
        rows.append(measured(path, arguments, left_out))
        print(said(rows[-1]), flush=True)
    for line in sorted(left_out):
        print("left out:", line)
    ratios = {row["model"]: row["ratio"] for row in rows if "ratio" in row}
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
        worst = min(ratios, key=lambda name: ratios[name])
        print(f"best peer / Gossamer, geometric mean of {len(ratios)}: {mean:.2f}; least {ratios[worst]:.2f} ({worst})")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if arguments.require is not None and (not ratios or mean < arguments.require):
        return 1
    if arguments.require_each is not None and (not ratios or ratios[worst] < arguments.require_each):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
