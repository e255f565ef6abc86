"""The arena with CMSIS-NN's kernels: every figure is what TFLite Micro says of a model, built with them.

Recorded from TFLite Micro of August 2026 and CMSIS-NN of that time, built for Cortex-M4 and Cortex-M55 and run by qemu:
with KERNELS_OPTIMIZED_FOR_SPEED, and without, which for these models is what KERNELS_OPTIMIZED_FOR_SIZE is.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from gossamer.errors import PrepareError
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

CORTEX_M55 = {
    "hello_world_int8": 916,
    "micro_speech_quantized": 7812,
    "keyword_scrambled_8bit": 9892,
    "person_detect": 82356,
    "kws_ref_model": 27348,
    "vww_96_int8": 100772,
    "pretrainedResnet_quant": 55028,
    "ad01_int8": 9268,
}

CORTEX_M55_FOR_SIZE = {"hello_world_int8": (836, 96), "kws_ref_model": (27300, 20464)}

SINGLE_OPERATORS = {
    # of the corpus: used bytes on a Cortex-M4 and on a Cortex-M55
    "models/small keras_lstm_mnist_ptq": (4276, 4324),
    "models/small trained_lstm_int8": (4052, 4100),
    "ops_direct/AVERAGE_POOL_2D 000": (1808, 1808),
    "ops_direct/AVERAGE_POOL_2D 005": (756, 740),
    "ops_direct/AVERAGE_POOL_2D 010": (1268, 1204),
    "ops_direct/BATCH_MATMUL 000": (1088, 1088),
    "ops_direct/BATCH_MATMUL 013": (660, 692),
    "ops_direct/BATCH_MATMUL 017": (660, 676),
    "ops_direct/CONV_2D 000": (5440, 5440),
    "ops_direct/CONV_2D 022": (3172, 3348),
    "ops_direct/DEPTHWISE_CONV_2D 012": (3188, 3188),
    "ops_direct/DEPTHWISE_CONV_2D 027": (660, 772),
    "ops_direct/FULLY_CONNECTED 027": (612, 644),
    "ops_direct/FULLY_CONNECTED 032": (836, 916),
    "ops_direct/FULLY_CONNECTED 035": (596, 596),
    "ops_direct/SVDF 000": (832, 832),
    "ops_direct/TRANSPOSE_CONV 000": (1952, 1952),
    "ops_direct/TRANSPOSE_CONV 015": (1204, 1204),
    "ops_direct/TRANSPOSE_CONV 016": (1572, 1572),
    "ops_zip/keras 010": (1268, 1284),
    "ops_zip/keras 034": (1488, 1568),
    "ops_zip/softmax 010": (752, 752),
}


def taken(model: Model, target: Target) -> MicroReport:
    return measure(model, resolver=CmsisNnOpResolver(target))


@pytest.mark.parametrize("name", CORTEX_M4)
def test_on_a_cortex_m4(name: str) -> None:
    report = taken(read_model(model_path(f"{name}.tflite")), Target(Extension.DSP))
    assert (report.used_bytes, report.head_bytes) == CORTEX_M4[name]


@pytest.mark.parametrize("name", CORTEX_M55)
def test_on_a_cortex_m55(name: str) -> None:
    model = read_model(model_path(f"{name}.tflite"))
    assert taken(model, Target(Extension.MVE)).used_bytes == CORTEX_M55[name]


@pytest.mark.parametrize("name", CORTEX_M55_FOR_SIZE)
def test_on_a_cortex_m55_for_size(name: str) -> None:
    report = taken(read_model(model_path(f"{name}.tflite")), Target(Extension.MVE, for_size=True))
    assert (report.used_bytes, report.head_bytes) == CORTEX_M55_FOR_SIZE[name]


@pytest.mark.parametrize("case", SINGLE_OPERATORS)
def test_single_operators(case: str, corpus: Path) -> None:
    archive, number = case.split()
    model = read_model(zipfile.ZipFile(corpus / "open" / f"{archive}.zip").read(f"{number}.tflite"))
    found = tuple(taken(model, Target(extension)).used_bytes for extension in (Extension.DSP, Extension.MVE))
    assert found == SINGLE_OPERATORS[case]


def test_what_would_read_where_nothing_is(corpus: Path) -> None:
    model = read_model(zipfile.ZipFile(corpus / "open" / "ops_direct" / "TRANSPOSE_CONV.zip").read("011.tflite"))
    assert measure(model).used_bytes
    with pytest.raises(PrepareError, match="needs a bias with int16 inputs"):
        taken(model, Target(Extension.DSP))


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
