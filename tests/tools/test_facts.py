"""What a model says of itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gossamer.inputs.session import Session
from gossamer.model import read_model
from gossamer.schema import TensorType
from gossamer.tools._facts import maker, read_facts
from tests.runtime.graphs import ModelMaker
from tests.tools import models

Place = Callable[[str, bytes], Path]


def test_facts_of_the_metadata(place: Place) -> None:
    content = models.described(models.colors(models.FLOAT), ["0 red", "1 green", "2 blue"], ([1.0], [2.0]), 16000)
    facts = read_facts(Session(str(place("m.tflite", content))))
    assert facts.labels == {0: "red", 1: "green", 2: "blue"}
    assert facts.normalization == {0: ([1.0], [2.0])}
    assert (facts.rate, facts.maker, facts.fault) == (16000, "SOFTMAX", None)


def test_a_model_that_says_nothing(place: Place) -> None:
    facts = read_facts(Session(str(place("m.tflite", models.echo((1, 2))))))
    assert (facts.labels, facts.normalization, facts.rate, facts.maker, facts.fault) == ({}, {}, None, "", None)


def test_a_std_of_zero_is_no_normalization(place: Place) -> None:
    content = models.described(models.echo((1, 2)), normalization=([1.0], [0.0]))
    assert read_facts(Session(str(place("m.tflite", content)))).normalization == {}


def test_the_maker_of_an_output_is_looked_for_behind_conversions() -> None:
    make = ModelMaker()
    first, second, third = (make.tensor((1, 2), name=name) for name in "xyz")
    last = make.tensor((1, 2), TensorType.INT8, name="q", quantization=models.quantization(1 / 256, -128))
    shape = make.constant([1, 2], np.int32, TensorType.INT32, name="shape")
    make.op("SOFTMAX", [first], [second])
    make.op("RESHAPE", [second, shape], [third])
    make.op("QUANTIZE", [third], [last])
    make.io([first], [last])
    model = read_model(make.model())
    assert [maker(model, 0, index) for index in (last, third, second, first)] == ["SOFTMAX"] * 3 + [""]
