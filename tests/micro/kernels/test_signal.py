"""Operators for signals against TFLite Micro, which was asked for ``tests/micro/signals.json``.

For each of `signal_cases`: the bytes that it uses and the smallest arena (with pointers of 4 and of 8 bytes), and the
first 64 bits of the SHA-256 of the outputs of eight invocations, with a reset after the fifth. Asked was the package
tflite-micro of October 2026, which is for pointers of 8 bytes; those of 4 are computed here, from the same structures.
That package is built for compressed tensors and records what it allocates, which takes 240 bytes more than are given.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

import gossamer
from gossamer.errors import PrepareError
from gossamer.micro import MicroInterpreter, all_ops, measure
from gossamer.model import read_model
from gossamer.schema import TensorType, flexbuffers
from tests.conftest import ROOT
from tests.micro.kernels.signal_cases import MAKERS, signal_cases
from tests.ops.reference import REFERENCE
from tests.runtime.graphs import ModelMaker

RECORDED: dict[str, Any] = json.loads((ROOT / "tests" / "micro" / "signals.json").read_text())
CASES = {key: (model, fed) for key, model, fed in signal_cases()}


def test_every_operator_has_cases() -> None:
    assert {name for name in all_ops() if name.startswith("Signal")} == set(MAKERS)
    assert set(RECORDED) == set(CASES)


@pytest.mark.parametrize("key", CASES)
def test_micro_bit_for_bit_and_byte_for_byte(key: str) -> None:
    model, fed = CASES[key]
    *sizes, outputs = RECORDED[key]
    interpreter = MicroInterpreter(model, arena=sizes[3], pointer_size=8)
    interpreter.allocate_tensors()
    digest = hashlib.sha256()
    for call, values in enumerate(fed):
        if call == 5:
            interpreter.reset()
        for i, value in enumerate(values):
            interpreter.input(i).store(value)
        assert interpreter.invoke()
        for i in range(len(interpreter.model.subgraphs[0].outputs)):
            digest.update(interpreter.output(i).array().tobytes())
    assert digest.hexdigest()[:16] == outputs
    reports = [measure(read_model(model), pointer_size=size) for size in (4, 8)]
    assert sizes == [*(report.used_bytes for report in reports), *(report.minimum_arena_bytes for report in reports)]


@pytest.mark.parametrize("make", [gossamer.Interpreter, REFERENCE], ids=["default", "reference"])
@pytest.mark.parametrize("key", CASES)
def test_the_full_runtime_bit_for_bit(key: str, make: Any) -> None:
    model, fed = CASES[key]
    interpreter = make(model_content=model)
    interpreter.allocate_tensors()
    digest = hashlib.sha256()
    for call, values in enumerate(fed):
        if call == 5:
            interpreter.reset_all_variables()
        for details, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        for details in interpreter.get_output_details():
            digest.update(interpreter.get_tensor(details["index"]).tobytes())
    assert digest.hexdigest()[:16] == RECORDED[key][-1]


def test_two_interpreters_remember_each_for_itself() -> None:
    model, fed = CASES["SignalDelay/0"]
    one = gossamer.Interpreter(model_content=model)
    one.allocate_tensors()
    one.set_tensor(0, fed[0][0] | 1)
    one.invoke()
    other = one.clone()
    other.set_tensor(0, fed[0][0] | 1)
    other.invoke()
    assert other.get_tensor(1).tobytes() == one.get_tensor(1).tobytes()
    one.invoke()
    assert other.get_tensor(1).tobytes() != one.get_tensor(1).tobytes()


def test_a_device_takes_no_other_number_of_dimensions() -> None:
    make = ModelMaker()
    x, y = make.tensor((4,), TensorType.INT16), make.tensor((1, 2), TensorType.UINT32, name="y")
    make.op("SignalEnergy", [x], [y], custom=True, custom_options=flexbuffers.dumps({"start_index": 0, "end_index": 2}))
    make.io([x], [y])
    with pytest.raises(PrepareError, match='output "y" must have 1 dimensions, got 2'):
        MicroInterpreter(make.model()).allocate_tensors()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("SignalRfft", {"T": 7, "fft_length": 22}, "twice a product of 2, 3 and 5, .* got 22"),
        ("SignalStacker", {}, "num_channels must be an integer"),
        ("SignalFilterBank", {"num_channels": -1}, r"num_channels must be in \[1, 16777216\], got -1"),
        ("SignalFilterBankSpectralSubtraction", {"num_channels": "4"}, "num_channels must be an integer"),
    ],
)
def test_what_is_allocated_by_options_is_checked_first(name: str, options: dict[str, Any], message: str) -> None:
    make = ModelMaker()
    x, y = make.tensor((4,), TensorType.INT16), make.tensor((4,), TensorType.INT16)
    make.op(name, [x], [y], custom=True, custom_options=flexbuffers.dumps(options))
    make.io([x], [y])
    with pytest.raises(PrepareError, match=message):
        MicroInterpreter(make.model()).allocate_tensors()
