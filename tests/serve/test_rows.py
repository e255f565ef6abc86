"""Which models have independent rows, and run several requests at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer import Builder
from gossamer.model import Model
from gossamer.serve.model import ModelOptions, ServedModel, Signature
from gossamer.serve.rows import decide
from tests.serve import models


def signature(model: Model, **options: Any) -> Signature:
    served = ServedModel(bytes(model), "m", "1", ModelOptions(workers=1, **{"max_batch_size": 8, **options}))
    decide(served, served.default)
    return served.default


@pytest.mark.parametrize("make", [models.int8_net, models.double_net, models.lookup_net])
def test_the_same_bits(make: Callable[[], Model]) -> None:
    found = signature(make(), exact_batches=True)
    assert (found.max_rows, found.batching) == (8, "up to 8 rows, the same bits")


def test_floats_that_are_added_in_another_order() -> None:
    found = signature(models.dense_net())
    assert found.max_rows == 8
    assert found.batching.startswith("up to 8 rows, ")
    exact = signature(models.dense_net(), exact_batches=True)
    assert (exact.max_rows == 1) == ("rounding" in found.batching)


def test_nobody_asks_for_batches() -> None:
    found = signature(models.int8_net(), max_batch_size=1)
    assert (found.max_rows, found.batching) == (1, "off")


def mixed(add: Callable[[Builder, Any], Any]) -> Model:
    b = Builder()
    b.output("y", add(b, b.input("x", ("n", 4))))
    return b.finish()


FIRST = np.int32([0])
TURNED = np.int32([1, 0])


def softmax_of_columns(b: Builder, x: Any) -> Any:
    return b.add("TRANSPOSE", b.add("SOFTMAX", b.add("TRANSPOSE", x, TURNED), beta=1.0), TURNED)


def nearly_alone(b: Builder, x: Any) -> Any:
    """Another row matters by no more than rounding."""
    return b.add("ADD", x, b.add("MUL", b.add("REVERSE_V2", x, FIRST), np.float32(1e-7)))


@pytest.mark.parametrize(
    ("add", "says"),
    [
        (lambda b, x: b.add("SUB", x, b.add("MEAN", x, FIRST, keep_dims=True)), "does not grow with the rows"),
        (lambda b, x: b.add("BATCH_MATMUL", b.add("BATCH_MATMUL", x, x, adj_y=True), x), "does not grow with the rows"),
        (lambda b, x: b.add("REVERSE_V2", x, FIRST), "a row of output 'y' depends on other rows|is not|differs by"),
        (lambda b, x: b.add("CUMSUM", x, np.int32(0)), "a row of output 'y' depends on other rows"),
        (softmax_of_columns, "a row of output 'y' depends on other rows"),
        (nearly_alone, "a row of output 'y' depends on other rows"),
        (lambda b, x: b.add("CONCATENATION", x, x, axis=0), r"'y'.*shape \[2, 4\] for 1 rows"),
        (lambda b, x: b.add("SUM", x, FIRST), "the first size of 'y' is not open"),
    ],
)
def test_rows_that_depend_on_others(add: Callable[[Builder, Any], Any], says: str) -> None:
    found = signature(mixed(add))
    assert found.max_rows == 1
    assert re.search(says, found.batching), found.batching


def test_sizes_that_are_not_open() -> None:
    assert signature(models.double_net(shape=(1, 4))).batching == "off: the first size of 'x' is not open: [1, 4]"
    assert signature(models.count_net()).batching == "off: the first size of 'limit' is not open: []"


def test_strings_and_inputs_of_different_lengths() -> None:
    assert signature(models.strings_net()).max_rows == 1
    assert signature(models.dynamic_net()).max_rows == 1


def test_other_open_sizes_stay_open() -> None:
    found = signature(models.double_net(shape=("n", "m", 3)))
    assert found.max_rows == 8


def test_state() -> None:
    assert signature(models.counter_net()).batching == "off: the model keeps values from one run to the next"


def test_shapes_that_are_worked_out_of_shapes() -> None:
    """As Keras has them for layers over sequences: they belong to no row, and have as many elements for all."""
    b = Builder()
    x = b.input("x", ("n", "m", 4))
    size = b.add("SHAPE", x, out_type="int32")
    first, second = (
        b.add("STRIDED_SLICE", size, np.int32([at]), np.int32([at + 1]), np.int32([1]), shrink_axis_mask=1)
        for at in (0, 1)
    )
    rows = b.add("RESHAPE", x, np.int32([-1, 4]), shape=("k", 4))
    made = b.add("FULLY_CONNECTED", rows, models.weights(3, 4), shape=("k", 3))
    whole = b.add("PACK", first, second, np.int32(3), values_count=3)
    b.output("y", b.add("RESHAPE", made, whole, shape=("n", "m", 3)))
    found = signature(b.finish())
    assert found.max_rows == 8, found.batching
