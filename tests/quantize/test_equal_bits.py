"""Quantized models give the same bits wherever they run: on the default path those of LiteRT's, in the reference
kernels those of LiteRT's and, in 8 bits, of a device. Between the two LiteRT itself rounds some otherwise, by one step
(docs/quantized-numbers.md)."""

from __future__ import annotations

import importlib
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, OpResolverType, PrepareError, UnsupportedOpError
from gossamer.convert import convert
from gossamer.micro import MicroInterpreter
from gossamer.quantize import quantize
from tests.convert.test_corpus import conversion_corpus
from tests.quantize.test_quantize import loop, network

Sample = dict[str, np.ndarray]
Bits = list[list[np.ndarray]]
DRAW = np.random.default_rng(11)
KINDS = ["int8_only", "int16x8_only"]


def models() -> dict[str, tuple[bytes, list[Sample]]]:
    pictures = [{"x": DRAW.normal(size=(1, 8, 8, 4)).astype(np.float32)} for _ in range(8)]
    rows = [{"x": DRAW.normal(size=(1, 6)).astype(np.float32)} for _ in range(8)]
    dense = network(lambda graph, y: graph.add("TANH", graph.add("FULLY_CONNECTED", y, np.eye(6, dtype=np.float32))))
    return {"convolution": (network(), pictures), "dense": (dense, pictures), "loop": (loop(), rows)}


MODELS = models()


def run(interpreter: Any, samples: list[Sample]) -> Bits:
    """All outputs for all samples."""
    found = []
    for sample in samples:
        details = interpreter.get_input_details()
        given = _in_order([detail["name"] for detail in details], sample)
        for detail, value in zip(details, given, strict=True):
            if tuple(detail["shape"]) != value.shape:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        for detail, value in zip(details, given, strict=True):
            interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
        interpreter.invoke()
        found.append([interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()])
    return found


def _in_order(names: list[str], sample: Sample) -> list[np.ndarray]:
    """The values by the names of the inputs, which have those of the sample in them; else as they come."""
    found = [next((value for key, value in sample.items() if key in name), None) for name in names]
    return list(sample.values()) if any(value is None for value in found) else [v for v in found if v is not None]


def on_a_device(content: bytes, samples: list[Sample]) -> Bits:
    interpreter = MicroInterpreter(content, arena=1 << 24)
    interpreter.allocate_tensors()
    inputs, outputs = (getattr(interpreter.model.subgraphs[0], name) for name in ("inputs", "outputs"))
    names = [interpreter.model.subgraphs[0].tensors[index].name for index in inputs]
    found = []
    for sample in samples:
        for position, value in enumerate(_in_order(names, sample)):
            interpreter.input(position).store(value)
        assert interpreter.invoke()
        found.append([interpreter.output(position).array().copy() for position in range(len(outputs))])
    return found


def default(content: bytes, samples: list[Sample]) -> Bits:
    return run(Interpreter(model_content=content), samples)


def reference(content: bytes, samples: list[Sample]) -> Bits:
    resolver = OpResolverType.BUILTIN_REF
    return run(Interpreter(model_content=content, experimental_op_resolver_type=resolver), samples)


def litert(content: bytes, samples: list[Sample], resolver: str = "AUTO") -> Bits:
    module = importlib.import_module("ai_edge_litert.interpreter")
    kind = getattr(module.OpResolverType, resolver)
    return run(module.Interpreter(model_content=content, experimental_op_resolver_type=kind), samples)


def same(first: Bits, second: Bits) -> bool:
    pairs = [pair for some, others in zip(first, second, strict=True) for pair in zip(some, others, strict=True)]
    return all(np.array_equal(*pair) for pair in pairs)


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_equal_bits(name: str, mode: str) -> None:
    source, samples = MODELS[name]
    content = quantize(source, mode, samples)
    expected = reference(content, samples)
    if mode == "int16x8_only":
        assert same(default(content, samples), expected)
    if name != "loop":  # of an open batch: devices have none
        assert same(on_a_device(content, samples), expected)


@pytest.mark.peer
@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_equal_bits_in_litert(name: str, mode: str) -> None:
    pytest.importorskip("ai_edge_litert")
    source, samples = MODELS[name]
    content = quantize(source, mode, samples)
    assert same(default(content, samples), litert(content, samples))
    assert same(reference(content, samples), litert(content, samples, "BUILTIN_REF"))


def nets() -> list[dict[str, Any]]:
    """One case of the conversion corpus for each net that is quantized."""
    place = conversion_corpus()
    lines = [] if place is None else (place / "index.jsonl").read_text().splitlines()
    found: dict[str, dict[str, Any]] = {}
    for case in map(json.loads, lines):
        if case["suite"] == "nets" and case.get("calibration"):
            found.setdefault(case["family"], case)
    return list(found.values())


OTHER_IN_REFERENCE = {"l2embed"}
"""Nets with a SUM, for which LiteRT's reference kernel takes another zero point than its others do."""

OTHER_ON_DEVICES = {("lstm_seq_b1", "int8_only")}
"""Nets whose int8 operators round otherwise in TFLite Micro, by one step; many of 16 bits do."""


@pytest.mark.corpus
@pytest.mark.peer
@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("case", nets(), ids=lambda case: case["family"])
def test_equal_bits_of_nets(case: dict[str, Any], mode: str, tmp_path: Path) -> None:
    place = conversion_corpus()
    assert place is not None
    content = convert(
        extracted(place, case, tmp_path), format=case["format"], mode=mode, calibration=samples(place, case)
    )
    given = samples(place, case)[:3]
    assert same(default(content, given), litert(content, given))
    try:
        expected = reference(content, given)
    except UnsupportedOpError:
        return  # ELU has no reference kernel
    if case["family"] not in OTHER_IN_REFERENCE:
        assert same(expected, litert(content, given, "BUILTIN_REF"))
    try:
        on_device = on_a_device(content, given)
    except (PrepareError, UnsupportedOpError):
        return  # TFLite Micro has no such kernel
    if mode == "int8_only":
        assert same(on_device, expected) == ((case["family"], mode) not in OTHER_ON_DEVICES)


def extracted(place: Path, case: dict[str, Any], into: Path) -> str:
    """The source of a case."""
    archive, _, inside = case["source"].partition(":")
    with zipfile.ZipFile(place / archive) as files:
        files.extractall(into, [name for name in files.namelist() if name.startswith(inside)])
    return str(into / inside)


def samples(place: Path, case: dict[str, Any]) -> list[Sample]:
    """The calibration data of a case."""
    archive, _, inside = case["calibration"]["file"].partition(":")
    stored = np.load(BytesIO(zipfile.ZipFile(place / archive).read(inside)))
    return [{key: stored[key][n : n + 1] for key in stored.files} for n in range(case["calibration"]["n"])]
