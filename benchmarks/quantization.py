"""Quantizing beside TensorFlow's converter: how near the integers come to the floats, how often they are right on real
data, and what making them costs.

    python benchmarks/quantization.py kinds  --tensorflow-python PYTHON
    python benchmarks/quantization.py corpus --corpus FOLDER
    python benchmarks/quantization.py digits --tensorflow-python PYTHON
    python benchmarks/quantization.py speed  --tensorflow-python PYTHON

``PYTHON`` is an interpreter that has TensorFlow; this one has Gossamer, ai-edge-litert, and for ``digits``
scikit-learn. Every file, ours and TensorFlow's, is run by LiteRT.

``kinds``: networks of random weights (`quantization_keras.kinds`), each mode, ours / TensorFlow's: the ratio of signal
to noise of the worst output over unseen inputs in dB, against what Keras computes; 99 is the same. "-" is a file that
cannot be made or does not run. ``corpus``: the same for the nets of the conversion corpus of the shared material, whose
index says what TensorFlow's files reach. ``--methods`` and ``--ranges`` choose ours.

``digits``: networks trained on scikit-learn's digits: the share of 360 unseen digits, by other writers, that are read
right. A row ``planted`` is the CNN with a layer that cannot be quantized (`quantization_keras.plant`), and after it
what ``keep_accuracy`` makes of it.

``speed``: MobileNetV2 with 200 pictures of 224 x 224 to int8, from a SavedModel: processes of Gossamer and TensorFlow
take turns; seconds and seconds of processor, imports included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODES = ("float32", "float16", "dynamic_range", "int8", "int16x8")
KERAS = Path(__file__).with_name("quantization_keras.py")
PICTURES = 200
Answers = dict[str, "NDArray[Any]"]


def rows(path: Path) -> list[Answers]:
    """The samples of an .npz file, in batches of one."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return [{name: array[n : n + 1] for name, array in arrays.items()} for n in range(len(next(iter(arrays.values()))))]


def answers(content: bytes, inputs: Iterable[Answers]) -> Answers:
    """What LiteRT answers, one input after another."""
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(model_content=content).get_signature_runner()
    found = [run(**one) for one in inputs]
    return {name: np.concatenate([np.array(one[name]) for one in found]) for name in found[0]}


def ratio(got: Answers, wanted: Answers) -> float:
    """Signal to noise in dB of the worst output: ``10 log10(sum wanted**2 / sum (got - wanted)**2)``."""
    ratios = []
    for name, signal in wanted.items():
        noise = float(np.square(got[name].astype(np.float64) - signal).sum())
        power = float(np.square(signal.astype(np.float64)).sum())
        ratios.append(99.0 if noise == 0 else 10 * np.log10(power / noise))
    return min(99.0, *ratios)


def ours(place: Path, mode: str, **options: Any) -> bytes:
    """Our file of a saved network."""
    from gossamer.convert import convert
    from gossamer.quantize import quantize

    content = convert(place / "saved_model", signature_keys=["serving_default"])
    return content if mode == "float32" else quantize(content, mode, rows(place / "calibration.npz"), **options)


def theirs(place: Path, mode: str) -> bytes:
    """TensorFlow's file. Raises OSError if it made none."""
    return (place / f"{mode}.tflite").read_bytes()


def attempt(measure: Callable[[bytes], float], make: Callable[[], bytes]) -> float | None:
    """The figure of a file; ``None`` if it cannot be made or does not run."""
    try:
        return measure(make())
    except (OSError, ValueError, RuntimeError):
        return None


def shown(value: float | None, form: str) -> str:
    """A figure, or what stands for none."""
    return "-" if value is None else format(value, form)


def row(name: str, cells: Iterable[str]) -> None:
    """Print a row of a table."""
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def header(first: str, columns: Iterable[str]) -> None:
    """Print the head of a table."""
    columns = list(columns)
    row(first, columns)
    print("|---" * (len(columns) + 1) + "|")


def kinds(folder: Path, options: dict[str, Any]) -> None:
    """The table of networks with random weights."""
    header("network, dB ours / TensorFlow's", MODES)
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        inputs = rows(place / "inputs.npz")
        with np.load(place / "answers.npz") as stored:
            wanted = {name: stored[name] for name in stored.files}

        def measure(content: bytes, inputs: list[Answers] = inputs, wanted: Answers = wanted) -> float:
            return ratio(answers(content, inputs), wanted)

        row(place.name, [pair(measure, place, mode, ".1f", options) for mode in MODES])


def pair(measure: Callable[[bytes], float], place: Path, mode: str, form: str, options: dict[str, Any]) -> str:
    """The figures of our file and of TensorFlow's."""
    chosen = options if mode.startswith("int") else {}
    made = attempt(measure, partial(ours, place, mode, **chosen)), attempt(measure, partial(theirs, place, mode))
    return " / ".join(shown(value, form) for value in made)


def corpus(folder: Path, options: dict[str, Any]) -> None:
    """The table of the corpus' nets: `run_convert.py` there judges, its index has TensorFlow's figures."""
    from ai_edge_litert.interpreter import Interpreter

    from gossamer.convert import convert
    from gossamer.quantize import quantize

    sys.path.insert(0, str(folder))
    judge: Any = import_module("run_convert")

    def made(path: str, *, mode: str, calibration: Any, **others: Any) -> bytes:
        types = [others.pop(f"inference_{end}_type", "float32") for end in ("input", "output")]
        content = convert(path, mode="float32", **others)
        chosen = options if mode.startswith("int") and calibration else {}
        return quantize(content, mode, calibration, input_type=types[0], output_type=types[1], **chosen)

    cases: dict[str, dict[str, Any]] = {}
    modes = ("float16", "dynamic_range", "int8", "int16x8", "int8_weight_only", "int4_weight_only", "int4_dynamic")
    with open(folder / "open" / "index.jsonl", encoding="utf-8") as index:
        for case in map(json.loads, index):
            mode = case["args"].get("mode", "float32")
            if case["suite"] == "nets" and set(case["args"]) == {"mode"} and mode in modes:
                cases.setdefault(case["key"].partition("/")[2], {}).setdefault(mode, case)
    header("net, dB ours / TensorFlow's", modes)
    for name, found in sorted(cases.items()):
        cells = []
        for mode in modes:
            case = found.get(mode)
            if case is None:
                cells.append("")
                continue
            case = {**case, "tol": {"snr": {}}}  # where TensorFlow's file does not run it asks for equal numbers
            reached = judge.judge(str(folder / "open"), case, made, Interpreter, {}).get("snr_db") or {}
            known = (case.get("tf") or {}).get("snr_db") or {}
            best = [min(one.values()) if one else None for one in (reached, known)]
            cells.append(" / ".join(shown(value, ".0f") for value in best))
        row(name, cells)


def digits(folder: Path, options: dict[str, Any]) -> None:
    """The table of networks that read digits, and what is done about a planted layer."""
    from gossamer.quantize.mixed_precision import keep_accuracy

    with np.load(folder / "digits.npz") as stored:
        labels = stored["labels"]

    def right(content: bytes, inputs: list[Answers]) -> float:
        (scores,) = answers(content, inputs).values()
        return 100 * float(np.mean(scores.argmax(1) == labels[-len(scores) :]))

    header("network, % right, ours / TensorFlow's", MODES)
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        measure = partial(right, inputs=rows(place / "inputs.npz"))
        row(place.name, [pair(measure, place, mode, ".1f", options) for mode in MODES])
    place = folder / "planted"
    inputs, samples = rows(place / "inputs.npz"), rows(place / "calibration.npz")
    floats = ours(place, "float32")
    for fallback in ("float32", "int16x8"):
        metric = partial(_known, folder)
        content, report = keep_accuracy(floats, "0.5%", "int8", samples, metric=metric, fallback=fallback)
        print(f"\nplanted, int8 but for {fallback}, 0.5 % may be lost: {right(content, inputs):.1f} %\n{report}")


def _known(folder: Path, interpreter: Any) -> float:
    """The share of the first digits that an interpreter reads right: those that networks have seen."""
    with np.load(folder / "digits.npz") as stored:
        images, labels = stored["images"][:400].astype(np.float32), stored["labels"][:400]
    run = interpreter.get_signature_runner()
    (name,) = run.get_input_details()
    found = [next(iter(run(**{name: image[None]}).values())).argmax() for image in images]
    return float(np.mean(np.array(found) == labels))


def gossamer(folder: Path) -> dict[str, float]:
    """Quantize a SavedModel with the pictures beside it, as int8."""
    from gossamer.convert import convert
    from gossamer.quantize import quantize

    pictures = np.load(folder / "pictures.npy", mmap_mode="r")
    start = time.perf_counter()
    content = quantize(convert(folder / "saved_model"), "int8", ([picture[None]] for picture in pictures))
    (folder / "gossamer.tflite").write_bytes(content)
    return {"seconds": time.perf_counter() - start}


def speed(folder: Path, python: str, runs: int) -> None:
    """What a process of ours costs, and one of TensorFlow's."""
    if not (folder / "saved_model").exists():
        maker = Path(__file__).with_name("conversion.py")
        subprocess.run([python, maker, "--make", "MobileNetV2", folder], capture_output=True, check=True)
        coarse = np.random.default_rng(0).normal(size=(PICTURES, 14, 14, 3)).astype(np.float32)
        np.save(folder / "pictures.npy", np.clip(np.kron(coarse, np.ones((1, 16, 16, 1), np.float32)), -1, 1))
    commands = {
        "Gossamer": [sys.executable, __file__, "gossamer", "--keep", str(folder)],
        "TensorFlow": [python, str(KERAS), "speed", str(folder)],
    }
    figures: dict[str, list[tuple[float, ...]]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            before, start = processor(), time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            whole = time.perf_counter() - start
            alone = json.loads(done.stdout.strip().splitlines()[-1])["seconds"]
            figures[name].append((whole, processor() - before, alone))
    header("process", ["seconds", "of processor", "without imports"])
    medians = {name: np.median(found, axis=0) for name, found in figures.items()}
    for name, found in medians.items():
        row(name, [f"{value:.2f}" for value in found])
    row("ratio", [f"{value:.1f}" for value in medians["TensorFlow"] / medians["Gossamer"]])


def processor() -> float:
    """Seconds of processor of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make(what: str, folder: Path, python: str | None) -> None:
    """Have TensorFlow make the networks that are not in the folder yet."""
    if what == "digits" and not (folder / "digits.npz").exists():
        from sklearn.datasets import load_digits

        data = load_digits()
        np.savez(folder / "digits.npz", images=data.images / 16, labels=data.target)
    if python is not None:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run([python, KERAS, what, folder], capture_output=True, check=True, env=environment)


def main() -> None:
    """Parse arguments and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kinds", "corpus", "digits", "speed", "gossamer"))
    parser.add_argument("--tensorflow-python", help="an interpreter with TensorFlow; makes the networks")
    parser.add_argument("--corpus", type=Path, help="the folder of the conversion corpus")
    parser.add_argument("--keep", type=Path, help="a folder for what is made, which is used again")
    parser.add_argument("--methods", default="", help="of gossamer.quantize, with commas, for integer activations")
    parser.add_argument("--ranges", help="of gossamer.quantize, for integer activations")
    parser.add_argument("--runs", type=int, default=3, help="of which medians are taken, for speed")
    arguments = parser.parse_args()
    options = {"methods": [name for name in arguments.methods.split(",") if name], "ranges": arguments.ranges}
    if arguments.what == "gossamer":
        print(json.dumps(gossamer(arguments.keep)))
        return
    if arguments.what == "corpus":
        corpus(arguments.corpus, options)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.what == "speed":
            speed(folder, arguments.tensorflow_python, arguments.runs)
        else:
            make(arguments.what, folder, arguments.tensorflow_python)
            {"kinds": kinds, "digits": digits}[arguments.what](folder, options)


if __name__ == "__main__":
    main()
