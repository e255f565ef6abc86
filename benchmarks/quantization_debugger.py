"""The debugger of quantized models beside TensorFlow's: the same layers, the same statistics.

    python benchmarks/quantization_debugger.py MODEL.tflite SAMPLES.npz --tensorflow-python PYTHON

``PYTHON`` is an interpreter that has TensorFlow; this one has Gossamer. The float model is calibrated and quantized by
TensorFlow in debug mode, where a NumericVerify compares each integer operator with the float one, by layer and for the
whole model. TensorFlow's QuantizationDebugger and Gossamer's run these, and TensorFlow's also runs what Gossamer writes
for the same two models. Printed is how many layers there are, whether names and operators are the same, and the largest
difference of a statistic, in scales (squared errors: in their squares); and the first layer with more than 0.001.

Layers that differ so far, and why: BATCH_MATMUL of int8, which TensorFlow 2.21's own interpreter computes wrongly and
LiteRT 2.3 does not; AVERAGE_POOL_2D in TensorFlow's debug models, where the quantized operator is compared with itself.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from gossamer import QuantizationDebugger
from gossamer.model.reader import read_model
from gossamer.quantize.debugger import with_numeric_verify

STATISTICS = ("stddev", "mean_error", "max_abs_error", "mean_squared_error")
MODELS = ("layer", "whole", "ours")

MAKE = """
import sys
import numpy as np, tensorflow as tf
from tensorflow.lite.python import convert, lite
source, samples, folder = sys.argv[1:]
with np.load(samples) as stored:
    arrays = [stored[name] for name in stored.files]
def data():
    return ([array[n : n + 1] for array in arrays] for n in range(len(arrays[0])))
from tensorflow.lite.python.optimize import calibrator
content = open(source, "rb").read()
calibrated = calibrator.Calibrator(content).calibrate(data)
for name, whole in (("layer", False), ("whole", True)):
    model = convert.mlir_quantize(calibrated, enable_numeric_verify=True, enable_whole_model_verify=whole)
    open(f"{folder}/{name}.tflite", "wb").write(model)
open(f"{folder}/quantized.tflite", "wb").write(convert.mlir_quantize(calibrated))
"""

RUN = """
import sys
import numpy as np, tensorflow as tf
samples, folder = sys.argv[1:]
with np.load(samples) as stored:
    arrays = [stored[name] for name in stored.files]
def data():
    return ([array[n : n + 1] for array in arrays] for n in range(len(arrays[0])))
for name in ("layer", "whole", "ours"):
    debugger = tf.lite.experimental.QuantizationDebugger(f"{folder}/{name}.tflite", debug_dataset=data)
    debugger.run()
    with open(f"{folder}/{name}.csv", "w") as file:
        debugger.layer_statistics_dump(file)
"""

Rows = list[dict[str, str]]


def ours(model: Path, samples: Path) -> Rows:
    """The rows of Gossamer's debugger."""
    with np.load(samples) as stored:
        arrays = [stored[name] for name in stored.files]
    debugger = QuantizationDebugger(
        str(model), debug_dataset=lambda: ([array[n : n + 1] for array in arrays] for n in range(len(arrays[0])))
    )
    debugger.run()
    file = io.StringIO()
    debugger.layer_statistics_dump(file)
    return list(csv.DictReader(io.StringIO(file.getvalue())))


def difference(row: dict[str, str], other: dict[str, str]) -> float:
    """The largest difference of a statistic, in scales."""
    scale = float(other["scale"])
    powers = {name: 2 if name == "mean_squared_error" else 1 for name in STATISTICS}
    return max(abs(float(row[name]) - float(other[name])) / scale**power for name, power in powers.items())


def told(what: str, rows: Rows, others: Rows) -> str:
    """One comparison, in a line."""
    same = [(row["tensor_name"], row["op_name"]) for row in rows] == [
        (row["tensor_name"], row["op_name"]) for row in others
    ]
    differences = [difference(row, other) for row, other in zip(rows, others, strict=False)]
    far = next((row for row, value in zip(rows, differences, strict=False) if value > 1e-3), None)
    first = "" if far is None else f", first {far['op_name']} {far['tensor_name']}"
    layers = f"{len(rows)} and {len(others)} layers, {'the same' if same else 'others'}"
    return f"{what}: {layers}; largest difference {max(differences, default=0):.2g}{first}"


def main() -> None:
    """See the docstring of the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--tensorflow-python", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = [options.tensorflow_python, "-c"]
        subprocess.run([*python, MAKE, options.model, options.samples, folder], check=True, capture_output=True)
        quantized = read_model(folder / "quantized.tflite")
        (folder / "ours.tflite").write_bytes(with_numeric_verify(read_model(options.model), quantized))
        subprocess.run([*python, RUN, options.samples, folder], check=True, capture_output=True)
        theirs = {model: list(csv.DictReader((folder / f"{model}.csv").read_text().splitlines())) for model in MODELS}
        found = {model: ours(folder / f"{model}.tflite", options.samples) for model in MODELS}
    for model, what in (("layer", "by layer"), ("whole", "whole model"), ("ours", "Gossamer's debug model")):
        print(told(what, found[model], theirs[model]))
    print(told("Gossamer's and TensorFlow's debug models", found["ours"], theirs["layer"]))


if __name__ == "__main__":
    main()
