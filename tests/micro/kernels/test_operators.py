"""Every operator against TFLite Micro, which was asked for ``tests/micro/tflm.json``.

``cases`` are the ``CASES`` of the operator's own tests: whether TFLite Micro runs them, the bytes that they use (with
pointers of 4 and of 8 bytes), and the smallest arenas (the same). ``random`` are those of `random_cases`, with the
first 64 bits of the SHA-256 of the outputs of two invocations.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from gossamer.errors import GossamerError
from gossamer.micro import MicroInterpreter, all_ops, measure
from gossamer.micro.kernels import find_kernel
from gossamer.model import read_model
from gossamer.ops import find_op, module_name
from tests.conftest import ROOT
from tests.micro.kernels.random_cases import random_cases
from tests.ops.cases import Case, Operand, assert_same, model_of

RECORDED: dict[str, dict[str, Any]] = json.loads((ROOT / "tests" / "micro" / "tflm.json").read_text())
RANDOM = {key: (model, fed) for key, model, fed in random_cases()}

COMPUTES_OTHERWISE = {
    "ADD/int16_power_of_two": "pot_scale_int16 is ignored",
    "DEQUANTIZE/per_channel": "only the first scale counts",
    "DEQUANTIZE/per_channel_constant": "only the first scale counts",
    "FULLY_CONNECTED/int8_rounds_halves_away_from_zero": "rounds twice",
    "RELU6/int8": "does not rescale",
    "SPACE_TO_BATCH_ND/padded_with_the_zero_point": "pads with 0",
    "SUB/int16_power_of_two": "pot_scale_int16 is ignored",
}
"""Cases in which TFLite Micro's answer is not that of the full runtime."""

STOPS_THERE = {
    "CONCATENATION/constant_scalars": "an assertion",
    "DEPTHWISE_CONV_2D/int8_x_int4_without_bias": "an assertion",
    "DIV/int32": "divides by 0, an error there",
    "DIV/int8_zero_is_a_step_off": "an assertion of gemmlowp",
    "MEAN/nothing": "an assertion",
    "TFLite_Detection_PostProcess/uint8": "its own kind of uint8",
}
"""Cases that run here and not there."""

REFUSED_HERE = {
    "DEQUANTIZE/unquantized": "there the scale is 0",
    "EMBEDDING_LOOKUP/a_scale_for_each_row": "there only the first scale counts",
    "GREATER/int16_as_stored": "there with parameters that nobody has set",
    "GREATER/int16_plain": "there with parameters that nobody has set",
}
"""Cases in which TFLite Micro gives an answer that means nothing."""

LARGER_HERE = {"ARG_MAX/empty", "ARG_MIN/empty", "BATCH_MATMUL/empty_depth", "EMBEDDING_LOOKUP/int8_dequantized"}
"""Smallest arenas in which something overlaps on the device that does not matter there."""


def _cases(name: str) -> Iterator[tuple[str, Case]]:
    kernel = find_kernel(name) or find_kernel(name, custom=True)
    assert kernel is not None
    stem = module_name(name, custom=kernel.custom).rpartition(".")[2]
    for case in getattr(importlib.import_module(f"tests.ops.test_{stem}"), "CASES", []):
        if f"{name}/{case.id}" in RECORDED["cases"]:
            yield f"{name}/{case.id}", case


def _run(model: bytes, fed: list[Operand], calls: int) -> tuple[MicroInterpreter, bytes]:
    interpreter = MicroInterpreter(model, arena=1 << 20, pointer_size=8)
    interpreter.allocate_tensors()
    outputs = []
    for _ in range(calls):
        for i, operand in enumerate(fed):
            interpreter.input(i).store(operand.value)
        interpreter.invoke()
        count = len(interpreter.model.subgraphs[0].outputs)
        outputs += [interpreter.output(i).array().tobytes() for i in range(count)]
    return interpreter, b"".join(outputs)


def _sizes(model: bytes) -> list[int]:
    reports = [measure(read_model(model), pointer_size=size) for size in (4, 8)]
    return [*(report.used_bytes for report in reports), *(report.minimum_arena_bytes for report in reports)]


@pytest.mark.parametrize("name", [name for name in all_ops() if name != "CIRCULAR_BUFFER"])
def test_cases(name: str) -> None:
    op = find_op(name) or find_op(name, custom=True)
    assert op is not None
    for key, case in _cases(name):
        model, recorded = model_of(op, case), RECORDED["cases"][key]
        fed = [x for x in case.inputs if x is not None and not x.constant and not x.variable]
        if (recorded is None and key not in STOPS_THERE) or key in REFUSED_HERE:
            with pytest.raises(GossamerError):
                _run(model, fed, case.calls)
            continue
        interpreter, _ = _run(model, fed, case.calls)
        if key in COMPUTES_OTHERWISE:
            with pytest.raises(AssertionError):
                _compare(interpreter, case)
        else:
            _compare(interpreter, case)
        if recorded is not None:
            sizes = _sizes(model)
            assert sizes[:2] == recorded[:2], key
            assert key in LARGER_HERE or sizes[2:] == recorded[2:], key


def _compare(interpreter: MicroInterpreter, case: Case) -> None:
    for i, operand in enumerate(case.outputs):
        assert_same(interpreter.output(i).array(), operand.value, case)


@pytest.mark.parametrize("key", RANDOM)
def test_random_cases_bit_for_bit(key: str) -> None:
    model, fed = RANDOM[key]
    *sizes, outputs = RECORDED["random"][key]
    assert hashlib.sha256(_run(model, fed, 2)[1]).hexdigest()[:16] == outputs
    ours = _sizes(model)
    assert ours[:2] == sizes[:2]
    # What BATCH_MATMUL takes to transpose into is not written to before the model runs.
    assert ours == sizes or (key.startswith("BATCH_MATMUL") and ours > sizes)
