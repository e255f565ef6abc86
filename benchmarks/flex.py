"""What models with TensorFlow's operators cost, beside the same models of builtin operators and beside TensorFlow.

    python benchmarks/flex.py CORPUS [--tensorflow-python PYTHON] [--only TEXT] [--suite nets --suite flex]

``CORPUS`` is the conversion corpus, whose SavedModels are converted twice: to builtin operators, and with
``SELECT_TF_OPS`` alone, which makes every operator TensorFlow's. Columns: operators of the two files, and how many of
TensorFlow's are left when the second one runs; the median time of an inference of the second over that of the first
(one thread, interleaved); milliseconds from start to the first answer, imports included. ``PYTHON`` is an interpreter
with TensorFlow, which runs the SavedModel's signature: the time of a call over ours, and its milliseconds from start to
the first answer, also with imports.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

import gossamer
from gossamer.convert import convert

TURNS = 41

REFERENCE = gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES

OURS = """
import sys, time, json
begin = time.perf_counter()
import numpy as np
import gossamer
interpreter = gossamer.Interpreter(sys.argv[1])
run = interpreter.get_signature_runner(sys.argv[3])
run(**np.load(sys.argv[2], allow_pickle=True))
print(json.dumps({"first": time.perf_counter() - begin}))
"""

THEIRS = """
import sys, time, json
begin = time.perf_counter()
import numpy as np
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
run = tf.saved_model.load(sys.argv[1]).signatures[sys.argv[3]]
given = {name: tf.constant(value) for name, value in np.load(sys.argv[2], allow_pickle=True).items()}
run(**given)
first = time.perf_counter() - begin
times = []
for _ in range(41):
    start = time.perf_counter()
    {name: value.numpy() for name, value in run(**given).items()}
    times.append(time.perf_counter() - start)
print(json.dumps({"first": first, "call": sorted(times)[len(times) // 2]}))
"""


def sources(corpus: Path, suites: list[str], only: str) -> Iterator[tuple[str, str]]:
    """SavedModels of the corpus, each once: its name, and where it is in which archive."""
    seen = set()
    for line in (corpus / "index.jsonl").read_text().splitlines():
        case = json.loads(line)
        if case["format"] != "saved_model" or case["suite"] not in suites or only not in case["id"]:
            continue
        if case["source"] not in seen:
            seen.add(case["source"])
            yield case["id"], case["source"]


def child(python: str, program: str, *arguments: object) -> dict[str, float] | None:
    """What a program prints last, as JSON; ``None`` if it fails."""
    done = subprocess.run([python, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def timed(runs: list[Callable[[], object]]) -> list[float]:
    """Medians of several functions, called in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for run, found in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    return [median(found) for found in times]


def inputs_of(details: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    given = {}
    for name, detail in details.items():
        shape = tuple(detail["shape"])
        if detail["dtype"] is np.bytes_:
            given[name] = np.full(shape, b"some words of text", object)
        else:
            given[name] = (rng.random(shape) * 4).astype(detail["dtype"])
    return given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--tensorflow-python")
    parser.add_argument("--only", default="")
    parser.add_argument("--suite", action="append")
    options = parser.parse_args()
    print(f"{'model':38} builtin  flex  left  flex/builtin  first ms  TF/ours   TF ms")
    slower, beside = [], []
    for name, place in sources(options.corpus, options.suite or ["nets", "flex"], options.only):
        archive, _, inside = place.partition(":")
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(options.corpus / archive) as files:
            files.extractall(folder, [member for member in files.namelist() if member.startswith(inside)])
            saved, file, data = Path(folder) / inside, Path(folder) / "flex.tflite", Path(folder) / "inputs.npz"
            try:
                builtin = convert(saved, target_ops=("TFLITE_BUILTINS", "SELECT_TF_OPS"))
                flex = convert(saved, target_ops=("SELECT_TF_OPS",))
            except gossamer.ConvertError as error:
                print(f"{name:38} {str(error).splitlines()[0][:90]}")
                continue
            file.write_bytes(flex)
            made = [gossamer.Interpreter(model_content=content, num_threads=1) for content in (builtin, flex)]
            key = next(iter(made[0].get_signature_list()))
            runners = [one.get_signature_runner(key) for one in made]
            given = inputs_of(runners[0].get_input_details())
            try:
                for run in runners:
                    run(**given)
            except (RuntimeError, ValueError) as error:
                print(f"{name:38} {str(error).splitlines()[0][:90]}")
                continue
            np.savez(data, **given)
            ours = timed([partial(run, **given) for run in runners])
            stored = gossamer.Interpreter(model_content=flex, experimental_op_resolver_type=REFERENCE)
            counts = [len(m.subgraphs[0].operators) for m in (made[0].model, stored.model)]
            left = sum(
                made[1].model.operator_name(node).startswith("Flex")
                for graph in made[1].model.subgraphs
                for node in graph.operators
            )
            first = child(sys.executable, OURS, file, data, key)
            theirs = child(options.tensorflow_python, THEIRS, saved, data, key) if options.tensorflow_python else None
            slower.append(ours[1] / ours[0])
            row = f"{name:38} {counts[0]:7} {counts[1]:5} {left:5} {slower[-1]:13.2f}"
            row += f" {1e3 * first['first']:9.0f}" if first else "         -"
            if theirs is not None:
                beside.append(theirs["call"] / ours[1])
                row += f" {beside[-1]:8.1f} {1e3 * theirs['first']:7.0f}"
            print(row, flush=True)
    if slower:
        print(f"flex / builtin: geometric mean {geometric_mean(slower):.2f}, most {max(slower):.2f}")
    if beside:
        print(f"TensorFlow / ours: geometric mean {geometric_mean(beside):.1f}, least {min(beside):.1f}")


if __name__ == "__main__":
    main()
