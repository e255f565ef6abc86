"""A model made ready to run, and its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gossamer.inputs.session import Session
from gossamer.schema import TensorType
from tests.inputs.ports import port
from tests.tools import models

Place = Callable[[str, bytes], Path]


def test_a_port_describes_itself() -> None:
    assert port(-1, 2).describe() == '"x" float32 [?, 2]'
    assert port(1, dtype=np.uint8, scale=0.5, zero_point=128).describe() == '"x" uint8 [1], quantized 0.5 * (q - 128)'
    assert port(2, dtype=np.object_).describe() == '"x" string [2]'


def test_quantization_of_a_port_goes_both_ways() -> None:
    quantized = port(4, dtype=np.int8, scale=0.5, zero_point=10)
    assert quantized.real_range == (-69.0, 58.5)
    integers = quantized.quantize(np.array([-1000, -0.25, 1, 1000]))
    assert integers.dtype == np.int8
    assert integers.tolist() == [-128, 10, 12, 127]
    assert quantized.dequantize(integers).tolist() == [-69.0, 0.0, 1.0, 58.5]
    assert port(4).dequantize(integers) is integers


def test_names_come_from_tensors_signatures_and_metadata(place: Place) -> None:
    session = Session(str(place("a.tflite", models.addition())))
    assert [(p.name, p.aliases) for p in session.inputs] == [("a", ("left",)), ("b", ("right",))]
    assert [(p.name, p.aliases) for p in session.outputs] == [("sum", ("total",))]
    session = Session(str(place("b.tflite", models.described(models.echo((1, 2)), output_names=["result"]))))
    assert session.inputs[0].aliases == ("input", "result")
    session = Session(str(place("a.tflite", models.addition())), "add")
    assert [(p.name, p.aliases) for p in session.inputs] == [("left", ("a",)), ("right", ("b",))]


def test_a_session_resizes_free_dimensions_and_keeps_its_memory_otherwise(place: Place) -> None:
    session = Session(str(place("a.tflite", models.addition())))
    for rows in (1, 3, 3, 1):
        ones = np.ones((rows, 2), np.float32)
        (total,) = session.call([ones, ones])
        assert total.tolist() == [[2.0, 2.0]] * rows


@pytest.mark.parametrize("signature", [None, "serving_default"])
def test_a_session_can_be_called_again(place: Place, signature: str | None) -> None:
    session = Session(str(place("c.tflite", models.colors(stored=models.quantization(1 / 255, 0)))), signature)
    image = np.zeros((1, 4, 6, 3), np.uint8)
    image[..., 1] = 255
    first = session.call([image])[0].copy()
    session.reset()
    np.testing.assert_array_equal(session.call([image])[0], first)
    assert first.argmax() == 1


def test_the_reference_kernels_can_be_asked_for(place: Place) -> None:
    session = Session(str(place("a.tflite", models.addition())), threads=1, reference=True)
    one = np.ones((1, 2), np.float32)
    assert session.call([one, one])[0].tolist() == [[2.0, 2.0]]


def test_nameless_inputs_are_called_by_their_position(place: Place) -> None:
    from tests.runtime.graphs import ModelMaker

    make = ModelMaker()
    make.tensor((1,), TensorType.FLOAT32)
    make.graphs[0].tensors[0] = make.graphs[0].tensors[0].replace(name="")
    make.io([0], [0])
    assert Session(str(place("n.tflite", make.model()))).inputs[0].name == "0"
