"""What converting models of keras.applications costs, beside TensorFlow's own converter, and whether the result is
what Keras computes.

    python benchmarks/conversion.py MobileNetV2 ResNet50 --tensorflow-python PYTHON

``PYTHON`` is an interpreter that has TensorFlow; this one has Gossamer and, for the columns of it, ai-edge-litert. For
each model, random weights (also random moving statistics) are saved as ``.keras``, ``.h5`` and SavedModel, of which
TensorFlow converts the last; every conversion is a process of its own. Columns: seconds of the conversion alone,
without imports; seconds of processor and peak memory (MB) of the whole process, imports included; operators of the two
files; the largest deviation from Keras' answer, relative to the largest number in it; the time of an inference in
LiteRT beside that of TensorFlow's file. Without arguments: all of `MODELS`.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODELS = (
    "MobileNet", "MobileNetV2", "MobileNetV3Small", "MobileNetV3Large", "EfficientNetB0", "EfficientNetV2B0",
    "ResNet50", "ResNet50V2", "DenseNet121", "NASNetMobile", "InceptionV3", "InceptionResNetV2", "Xception", "VGG16",
    "ConvNeXtTiny",
)  # fmt: skip


SOURCES = {"keras": "model.keras", "h5": "model.h5", "saved": "saved_model"}
"""What models are saved as."""

TURNS = 21
"""Inferences of which a median is taken."""


def peak() -> float:
    """Most memory that this process had, in MB; Linux alone says it without that of whoever started the process."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(re.findall(r"VmHWM:\s*(\d+)", status.read_text())[0]) / 1024


def make(name: str, place: Path) -> None:
    """Save a model with random weights, an input and what Keras makes of it."""
    import keras

    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, name)(weights=None, classifier_activation=None)
    rng = np.random.default_rng(0)
    for variable in model.variables:
        if "moving_mean" in variable.path:
            variable.assign(rng.normal(size=variable.shape) * 0.1)
        elif "moving_variance" in variable.path:
            variable.assign(rng.uniform(0.5, 1.5, variable.shape))
    x = rng.normal(size=(1, *[size or 224 for size in model.inputs[0].shape[1:]])).astype(np.float32)
    model.save(place / "model.keras")
    model.save(place / "model.h5")
    model.export(place / "saved_model", verbose=False)
    np.save(place / "input.npy", x)
    np.save(place / "output.npy", np.asarray(model(x, training=False)))


def tensorflow(place: Path, target: Path) -> dict[str, float]:
    """Convert with TensorFlow."""
    import tensorflow as tf

    start = time.perf_counter()
    data = tf.lite.TFLiteConverter.from_saved_model(str(place / "saved_model")).convert()
    seconds = time.perf_counter() - start
    target.write_bytes(data)
    return {"seconds": seconds, "peak": peak()}


def gossamer(source: Path, target: Path) -> dict[str, float]:
    """Convert with Gossamer."""
    from gossamer.convert import convert

    start = time.perf_counter()
    data = convert(source)
    seconds = time.perf_counter() - start
    target.write_bytes(data)
    return {"seconds": seconds, "peak": peak()}


def operators(path: Path) -> int:
    """How many operators a file has."""
    from gossamer import Interpreter, OpResolverType

    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(str(path), experimental_op_resolver_type=plain)
    return sum(1 for _ in interpreter._get_ops_details())


def deviation(interpreter: Any, place: Path) -> float:
    """The largest difference from Keras' answer, relative to its largest number."""
    x, wanted = np.load(place / "input.npy"), np.load(place / "output.npy")
    run = interpreter.get_signature_runner("serving_default")
    (name,) = run.get_input_details()
    (got,) = run(**{name: x}).values()
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def faster(ours: Path, theirs: Path, x: NDArray[Any]) -> float:
    """The processor time of an inference of our file in LiteRT beside theirs: medians of runs that take turns."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    interpreters = [LiteRT(str(path), num_threads=1) for path in (ours, theirs)]
    for interpreter in interpreters:
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
    seconds: list[list[float]] = [[], []]
    for turn in range(TURNS):
        for which in (0, 1) if turn % 2 else (1, 0):
            start = time.process_time()
            interpreters[which].invoke()
            seconds[which].append(time.process_time() - start)
    return float(np.median(seconds[0]) / np.median(seconds[1]))


def processor() -> float:
    """Seconds of processor of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def child(python: str, *arguments: str) -> dict[str, float]:
    """Run this script's part in a process of its own; the last line that it prints is its result."""
    before = processor()
    done = subprocess.run([python, __file__, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-600:] or f"exit status {done.returncode}")
    lines = done.stdout.strip().splitlines()
    found = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    return {**found, "processor": processor() - before}


def compare(name: str, place: Path, python: str | None, runs: int, sources: Sequence[str]) -> dict[str, Any]:
    """A row of the table."""
    from gossamer import Interpreter

    row: dict[str, Any] = {"model": name}
    for suffix in sources:
        source = SOURCES[suffix]
        found = [child(sys.executable, "--gossamer", f"{place}/{source}", ours(place, suffix)) for _ in range(runs)]
        row[f"s {suffix}"] = float(np.median([one["seconds"] for one in found]))
        row[f"CPU {suffix}"] = float(np.median([one["processor"] for one in found]))
        row[f"MB {suffix}"] = float(np.median([one["peak"] for one in found]))
        row[f"ops {suffix}"] = operators(place / f"{suffix}.tflite")
    row["error"] = max(deviation(Interpreter(ours(place, suffix)), place) for suffix in sources)
    if {"keras", "h5"} <= set(sources):
        row["same"] = (place / "keras.tflite").read_bytes() == (place / "h5.tflite").read_bytes()
    try:
        from ai_edge_litert.interpreter import Interpreter as LiteRT
    except ImportError:
        pass
    else:
        row["error LiteRT"] = max(deviation(LiteRT(ours(place, suffix)), place) for suffix in sources)
    if python is not None:
        one = child(python, "--tensorflow", str(place), str(place / "tf.tflite"))
        row["s TF"], row["CPU TF"], row["MB TF"] = one["seconds"], one["processor"], one["peak"]
    if (place / "tf.tflite").exists():
        row["ops TF"] = operators(place / "tf.tflite")
        if "error LiteRT" in row:
            row["time"] = faster(place / f"{sources[-1]}.tflite", place / "tf.tflite", np.load(place / "input.npy"))
    return row


def ours(place: Path, suffix: str) -> str:
    """Where Gossamer's file of a source is."""
    return str(place / f"{suffix}.tflite")


def shown(value: Any) -> str:
    """A cell."""
    if isinstance(value, float):
        return f"{value:.1e}" if value < 1e-2 else f"{value:.2f}" if value < 10 else f"{value:.0f}"
    return str(value)


def main() -> None:
    """Parse arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--tensorflow-python", help="an interpreter with TensorFlow; makes the models")
    parser.add_argument("--runs", type=int, default=1, help="conversions of which the median is taken")
    parser.add_argument("--sources", nargs="+", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--keep", type=Path, help="a directory for the models, which are used again")
    parser.add_argument("--without-tensorflow", action="store_true", help="do not convert with TensorFlow")
    arguments = parser.parse_args()
    unused = set(SOURCES) - set(arguments.sources)
    columns = [column for column in COLUMNS if column.split()[-1] not in unused]
    print("| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.models:
            place = (arguments.keep or Path(scratch)) / name
            place.mkdir(parents=True, exist_ok=True)
            try:
                if not (place / "output.npy").exists():
                    child(arguments.tensorflow_python, "--make", name, str(place))
                python = None if arguments.without_tensorflow else arguments.tensorflow_python
                row = compare(name, place, python, arguments.runs, arguments.sources)
            except RuntimeError as error:
                row = {"model": f"{name}: {error}"}
            print("| " + " | ".join(shown(row.get(column, "")) for column in columns) + " |", flush=True)


COLUMNS = (
    "model", "s keras", "s h5", "s saved", "s TF", "CPU keras", "CPU h5", "CPU saved", "CPU TF", "MB keras", "MB h5",
    "MB saved", "MB TF", "ops keras", "ops saved", "ops TF", "error", "error LiteRT", "same", "time",
)  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--tensorflow"]:
        print(json.dumps(tensorflow(Path(sys.argv[2]), Path(sys.argv[3]))))
    elif sys.argv[1:2] == ["--gossamer"]:
        print(json.dumps(gossamer(Path(sys.argv[2]), Path(sys.argv[3]))))
    else:
        main()
