"""Random numbers: those with a state have the distribution, those without one are TensorFlow's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.tensorflow import DataType
from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Array, Fixed, run_one

SHAPE = Fixed(np.array([40, 50], np.int32))
SEEDS = {"seed": 3, "seed2": 5}
FLOAT = {"dtype": DataType.DT_FLOAT}


def test_numbers_of_a_state(tmp_path: Path) -> None:
    uniform = run_one("RandomUniform", SHAPE, path=tmp_path, **SEEDS, **FLOAT)
    assert uniform.operators == ["RANDOM_UNIFORM"]
    assert uniform.value.shape == (40, 50)
    assert uniform.value.min() >= 0
    assert uniform.value.max() < 1
    assert abs(uniform.value.mean() - 0.5) < 0.03
    normal = run_one("RandomStandardNormal", SHAPE, path=tmp_path, **SEEDS, **FLOAT).value
    assert abs(normal.mean()) < 0.1
    assert abs(normal.std() - 1) < 0.1
    cut = run_one("TruncatedNormal", SHAPE, path=tmp_path, **SEEDS, **FLOAT).value
    assert abs(cut).max() <= 2
    assert abs(cut.mean()) < 0.1
    assert abs(cut.std() - 0.8796) < 0.05
    bounds = [Fixed(np.array(bound, np.int64)) for bound in (-2, 5)]
    whole = run_one("RandomUniformInt", SHAPE, *bounds, path=tmp_path, **SEEDS).value
    assert whole.dtype == np.int64
    assert set(whole.reshape(-1)) == set(range(-2, 5))
    computed = run_one("RandomUniform", np.array([2, 3], np.int32), path=tmp_path, **SEEDS, **FLOAT).value
    assert computed.shape == (2, 3)


def test_choices_and_orders(tmp_path: Path) -> None:
    logits = np.array([[0, -50, 0], [-50, 0, -50]], np.float32)
    drawn = run_one("Multinomial", logits, Fixed(np.array(30, np.int32)), path=tmp_path, **SEEDS).value
    assert drawn.dtype == np.int64
    assert set(drawn[0]) == {0, 2}
    assert set(drawn[1]) == {1}
    rows = np.arange(20).reshape(10, 2).astype(np.int64)
    shuffled = run_one("RandomShuffle", rows, path=tmp_path, opened={0: [0]}, **SEEDS).value
    assert sorted(map(tuple, shuffled)) == sorted(map(tuple, rows))
    assert shuffled.tolist() != rows.tolist()


def stateless(op: str, shape: list[int], seed: list[int], path: Path, *more: Any, **attributes: Any) -> Array:
    operands = [Fixed(np.array(shape, np.int32)), Fixed(np.array(seed, np.int32)), *map(Fixed, more)]
    return run_one(op, *operands, path=path, **attributes).value


def test_numbers_of_seeds(tmp_path: Path) -> None:
    """Those of TensorFlow's documentation of ``tf.random.split``."""
    seeds = stateless("StatelessRandomUniformFullInt", [3, 2], [1, 2], tmp_path, dtype=DataType.DT_INT32)
    assert seeds.tolist() == [[1105988140, 1738052849], [-335576002, 370444179], [10670227, -246211131]]
    normal = stateless("StatelessRandomNormal", [3], seeds[0].tolist(), tmp_path, **FLOAT)
    np.testing.assert_allclose(normal, [-0.59835213, -0.9578608, 0.9002807], rtol=1e-6)


def test_numbers_without_a_state(tmp_path: Path) -> None:
    found = stateless("StatelessRandomUniform", [10], [1, 2], tmp_path, **FLOAT)
    assert found.dtype == np.float32
    assert len(set(found)) == 10
    np.testing.assert_array_equal(found[:4], stateless("StatelessRandomUniform", [4], [1, 2], tmp_path, **FLOAT))
    key = run_one("StatelessRandomGetKeyCounter", Fixed(np.array([1, 2])), path=tmp_path, outputs=2).values
    newer = [Fixed(np.array([10], np.int32)), *map(Fixed, key), Fixed(np.array(1, np.int32))]
    np.testing.assert_array_equal(run_one("StatelessRandomUniformV2", *newer, path=tmp_path, **FLOAT).value, found)
    normal = stateless("StatelessRandomNormal", [2000], [1, 2], tmp_path, **FLOAT)
    assert abs(normal.mean()) < 0.1
    assert abs(normal.std() - 1) < 0.1
    bounds = [np.array(bound, np.int32) for bound in (-2, 5)]
    whole = stateless("StatelessRandomUniformInt", [200], [1, 2], tmp_path, *bounds, dtype=DataType.DT_INT32)
    assert set(whole) == set(range(-2, 5))


def test_seeds_that_are_computed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="the seed"):
        run_one("StatelessRandomUniform", SHAPE, np.array([1, 2]), path=tmp_path, **FLOAT)
