"""Sums of products in the order in which TensorFlow's calibrator adds them up."""

from __future__ import annotations

import collections
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.convert import convert
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.quantize.eigen import matrix_product, products, with_eigen
from tests.convert.test_corpus import conversion_corpus
from tests.quantize.test_equal_bits import extracted, samples
from tests.quantize.test_quantize import SAMPLES, answers, network
from tests.runtime.graphs import ModelMaker

DRAW = np.random.default_rng(5)


@pytest.mark.parametrize("columns", [1, 2, 4, 7])
@pytest.mark.parametrize("units", [1, 3, 4, 8, 13, 16, 31])
@pytest.mark.parametrize("depth", [1, 6, 8, 27, 64])
def test_all_products_are_in_the_sum(columns: int, units: int, depth: int) -> None:
    x, y = (DRAW.integers(-9, 10, (size, depth)).astype(np.float32) for size in (columns, units))
    np.testing.assert_array_equal(matrix_product(x, y), x @ y.T)


LARGE = [2.0**24, 1.0, -(2.0**24), 0, 0, 0, 0, 0]
"""One after the other the 1 is lost; apart from the others it stays."""


@pytest.mark.parametrize(
    ("columns", "units", "total"), [(4, 16, 0.0), (4, 8, 1.0), (4, 4, 1.0), (4, 1, 1.0), (3, 8, 0.0)]
)
def test_the_order(columns: int, units: int, total: float) -> None:
    x = np.tile(np.float32(LARGE), (columns, 1))
    np.testing.assert_array_equal(matrix_product(x, np.ones((units, 8), np.float32)), np.full((columns, units), total))


def test_a_single_column_adds_up_eight_sums() -> None:
    x = np.float32([[2.0**24, 1, 0, 0, -(2.0**24), 0, 0, 0]])
    assert matrix_product(x, np.ones((2, 8), np.float32)).tolist() == [[1.0, 1.0]]
    assert matrix_product(x[:, :5], np.ones((2, 5), np.float32)).tolist() == [[0.0, 0.0]]


def test_a_model_computes_the_same() -> None:
    source = network()
    assert products(read_model(source)) == 8 * 8 * 6 * 36
    model, custom_ops = with_eigen(read_model(source))
    interpreter = Interpreter(model_content=write_model(model), custom_ops=custom_ops)
    run = interpreter.get_signature_runner()
    found = np.concatenate([run(**sample)["y"] for sample in SAMPLES])
    np.testing.assert_allclose(found, answers(source), atol=1e-6)


def test_hard_swish_is_rounded_after_each_step() -> None:
    make, x = ModelMaker(), DRAW.normal(size=1000).astype(np.float32)
    source, result = make.tensor(x.shape), make.tensor(x.shape)
    make.op("HARD_SWISH", [source], [result])
    make.io([source], [result])
    model, custom_ops = with_eigen(read_model(make.model()))
    interpreter = Interpreter(model_content=write_model(model), custom_ops=custom_ops)
    interpreter.allocate_tensors()
    interpreter.set_tensor(source, x)
    interpreter.invoke()
    wanted = x * (np.clip(x + np.float32(3), 0, 6) * np.float32(1 / 6))
    np.testing.assert_array_equal(interpreter.get_tensor(result), wanted)


def nets() -> list[dict[str, Any]]:
    """The cases of the conversion corpus of which TensorFlow's parameters are known."""
    place = conversion_corpus()
    lines = [] if place is None else (place / "index.jsonl").read_text().splitlines()
    cases = [case for case in map(json.loads, lines) if case["suite"] == "nets" and case["tf"].get("quant")]
    return [case for case in cases if case["args"] in ({"mode": "int8"}, {"mode": "int16x8"})]


def _key(shape: Any, scales: Any, points: Any) -> tuple[tuple[int, ...], bytes, bytes]:
    points = np.unique(points)  # one is written for all channels
    return tuple(shape), np.asarray(scales, np.float32).tobytes(), points.astype(np.int64).tobytes()


@pytest.mark.corpus
@pytest.mark.parametrize("mode", ["int8", "int16x8"])
def test_parameters_are_tensorflows_to_the_bit(mode: str, tmp_path: Path) -> None:
    """Of nets whose operators are TensorFlow's in its order. Those with batch normalization have other weights, in
    their last bits: TensorFlow folds it with the approximation of RSQRT that the processor has."""
    place = conversion_corpus()
    assert place is not None
    same = count = 0
    for number, case in enumerate(nets()):
        if case["args"]["mode"] != mode:
            continue
        source = extracted(place, case, tmp_path / str(number))
        content = convert(source, format=case["format"], mode=mode, calibration=samples(place, case))
        model = read_model(content)
        if [model.operator_name(operator) for operator in model.subgraphs[0].operators] != case["tf"]["ops"][0]:
            continue
        archive, _, inside = case["tf"]["quant"].partition(":")
        expected = json.loads(zipfile.ZipFile(place / archive).read(inside))["main"]
        known = collections.Counter(_key(one["shape"], one["scale"], one["zp"]) for one in expected)
        for tensor in model.subgraphs[0].tensors:
            quantization = tensor.quantization
            if quantization is not None and quantization.scale.size:
                key = _key(tensor.shape, quantization.scale, quantization.zero_point)
                count += 1
                same += known[key] > 0
                known[key] -= 1
    assert count > 50
    assert same / count > 0.85, (same, count)
