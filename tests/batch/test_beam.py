"""A model in ``RunInference``, run by Beam's own runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.batch import Predictor
from gossamer.errors import InputError
from tests.batch.test_predictor import doubled
from tests.conftest import ROOT

DIGITS = ROOT / "examples" / "digits.tflite"

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]  # Beam's own warnings


@pytest.fixture(autouse=True)
def beam() -> Any:
    return pytest.importorskip("apache_beam", reason="the extra 'beam' is not installed")


def test_keyed_examples_and_what_is_wrong_with_them(beam: Any) -> None:
    """What Beam says of them is what the predictor does."""
    from apache_beam.ml.inference.base import KeyedModelHandler, RunInference
    from apache_beam.testing.util import assert_that

    from gossamer.batch.beam import ModelHandler

    images = [np.random.default_rng(key).random((8, 8, 1), np.float32) for key in range(40)]
    known = Predictor(DIGITS)({"image": images})["probabilities"]

    def check(found: list[Any]) -> None:
        answers = dict(found)
        assert sorted(answers) == list(range(41))
        for key, expected in enumerate(known):
            assert np.array_equal(answers[key].inference["probabilities"], expected)
            assert answers[key].inference["error"] is None
            assert answers[key].model_id == "digits.tflite"
        assert list(answers[40].inference) == ["error"]
        assert answers[40].inference["error"].startswith("input 'image'")

    examples = [*enumerate(images), (40, np.zeros((2, 2), np.float32))]
    handler = KeyedModelHandler(ModelHandler(DIGITS, max_batch_size=8))
    with beam.Pipeline(runner="DirectRunner") as pipeline:
        assert_that(pipeline | beam.Create(examples) | RunInference(handler), check)


def test_examples_of_several_inputs(beam: Any) -> None:
    from apache_beam.ml.inference.base import RunInference
    from apache_beam.testing.util import assert_that, equal_to

    from gossamer.batch.beam import ModelHandler

    b = gossamer.Builder()
    x, y = b.input("x", (1, 2), "float32"), b.input("y", (1, 2), "float32")
    b.output("sum", b.add("ADD", x, y))
    example = {"x": [1.0, 2.0], "y": [10.0, 20.0]}
    with beam.Pipeline(runner="DirectRunner") as pipeline:
        found = pipeline | beam.Create([example]) | RunInference(ModelHandler(bytes(b.finish())))
        assert_that(found | beam.Map(lambda one: one.inference["sum"].tolist()), equal_to([[11.0, 22.0]]))


def test_what_beam_asks_a_handler(tmp_path: Path) -> None:
    from gossamer.batch.beam import ModelHandler

    handler = ModelHandler(DIGITS, min_batch_size=2, max_batch_size=8)
    assert handler.batch_elements_kwargs() == {"min_batch_size": 2, "max_batch_size": 8}
    assert handler.get_num_bytes([np.zeros((8, 8), np.float32), {"image": b"12345"}]) == 8 * 8 * 4 + 5
    assert handler.get_metrics_namespace() == "BeamML_Gossamer"
    with pytest.raises(InputError, match="got seed"):
        handler.validate_inference_args({"seed": 1})
    with pytest.raises(InputError, match="there is no signature 'serve'"):
        ModelHandler(DIGITS, "serve")


def test_a_model_is_replaced(tmp_path: Path) -> None:
    from gossamer.batch.beam import ModelHandler

    (tmp_path / "next.tflite").write_bytes(doubled((1, 2)))
    handler = ModelHandler(DIGITS)
    handler.update_model_path(str(tmp_path / "next.tflite"))
    (answer,) = handler.run_inference([[1.0, 2.0]], handler.load_model())
    assert answer.inference["y"].tolist() == [2.0, 4.0]
    assert answer.model_id == "next.tflite"
