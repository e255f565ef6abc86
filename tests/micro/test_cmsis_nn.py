"""The arena with CMSIS-NN's kernels: every figure is what TFLite Micro says of a model, built with them.

Recorded from TFLite Micro of August 2026 and CMSIS-NN, built for Cortex-M4 and Cortex-M55 and run by qemu. Those for a
Cortex-M55 were built without KERNELS_OPTIMIZED_FOR_SPEED, which is what KERNELS_OPTIMIZED_FOR_SIZE is for these models.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.micro import MicroInterpreter, MicroReport, measure
from gossamer.micro.kernels import all_kernels
from gossamer.micro.kernels.cmsis_nn import Extension, Target, cmsis_nn_kernel
from gossamer.micro.resolver import CmsisNnOpResolver
from gossamer.model import read_model
from gossamer.model.model import Model
from tests.micro.models import chain
from tests.runtime.test_memory_plan import model_path

CORTEX_M4 = {
    # used bytes, and head
    "hello_world_int8": (772, 32),
    "micro_speech_quantized": (6836, 5968),
    "keyword_scrambled_8bit": (8212, 672),
    "person_detect": (82308, 55296),
    "kws_ref_model": (22820, 16000),
    "vww_96_int8": (100708, 73728),
    "pretrainedResnet_quant": (54996, 49728),
    "ad01_int8": (2580, 768),
}

CORTEX_M55 = {"hello_world_int8": (836, 96), "kws_ref_model": (27300, 20464)}


def taken(model: Model, target: Target) -> MicroReport:
    return measure(model, resolver=CmsisNnOpResolver(target))


@pytest.mark.parametrize("name", CORTEX_M4)
def test_on_a_cortex_m4(name: str) -> None:
    report = taken(read_model(model_path(f"{name}.tflite")), Target(Extension.DSP))
    assert (report.used_bytes, report.head_bytes) == CORTEX_M4[name]


@pytest.mark.parametrize("name", CORTEX_M55)
def test_on_a_cortex_m55(name: str) -> None:
    report = taken(read_model(model_path(f"{name}.tflite")), Target(Extension.MVE, for_size=True))
    assert (report.used_bytes, report.head_bytes) == CORTEX_M55[name]


@pytest.mark.parametrize("extension", Extension)
def test_results_are_those_of_tflite_micros_own_kernels(extension: Extension) -> None:
    model, x = read_model(chain()), np.arange(24, dtype=np.float32).reshape(1, 24)
    outputs = []
    for resolver in (None, CmsisNnOpResolver(Target(extension))):
        interpreter = MicroInterpreter(model, resolver, arena=8192)
        interpreter.allocate_tensors()
        interpreter.input(0).store(x)
        assert interpreter.invoke()
        outputs.append(interpreter.output(0).array().copy())
    np.testing.assert_array_equal(*outputs)


def test_what_cmsis_nn_does_not_have_stays() -> None:
    target = Target(Extension.DSP)
    changed = {kernel.name for kernel in all_kernels() if cmsis_nn_kernel(kernel, target) is not kernel}
    assert {"CONV_2D", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"} <= changed
    assert not {"ADD", "PAD", "RESHAPE", "LOGISTIC"} & changed
