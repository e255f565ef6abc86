"""Models that are served in tests, small and of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import Builder
from gossamer.edit import side_by_side
from gossamer.model import Model
from tests.edit.models import counter_net as counter_net


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def double_net(type: str = "float32", shape: Any = ("n", 4)) -> Model:
    """y = x + x, of any number of rows."""
    b = Builder()
    x = b.input("x", shape, type)
    b.output("y", b.add("ADD", x, x))
    return b.finish()


def dense_net() -> Model:
    """Two layers and a softmax, of any number of rows."""
    b = Builder()
    x = b.input("x", ("n", 64))
    y = b.add("FULLY_CONNECTED", x, weights(96, 64), activation="RELU")
    b.output("y", b.add("SOFTMAX", b.add("FULLY_CONNECTED", y, weights(16, 96, seed=1)), beta=1.0))
    return b.finish()


def int8_net() -> Model:
    """A layer of integers, of any number of rows."""
    b = Builder()
    x = b.input("x", ("n", 16), "int8", scale=0.5, zero_point=3)
    rng = np.random.default_rng(0)
    filter = b.constant(rng.integers(-127, 128, (8, 16), np.int8), scale=0.02)
    bias = b.constant(np.arange(8, dtype=np.int32), scale=0.01)
    b.output("y", b.add("FULLY_CONNECTED", x, filter, bias, scale=0.7, zero_point=-5))
    return b.finish()


def strings_net() -> Model:
    """The rows of a string tensor chosen by numbers."""
    b = Builder()
    words, places = b.input("words", ("n",), "string"), b.input("places", ("m",), "int32")
    b.output("chosen", b.add("GATHER", words, places, axis=0))
    return b.finish()


def dynamic_net() -> Model:
    """Where x is above 0: as many rows as there are such places."""
    b = Builder()
    x = b.input("x", ("n",))
    b.output("places", b.add("WHERE", b.add("GREATER", x, np.float32(0)), shape=("k", 1)))
    return b.finish()


def lookup_net() -> Model:
    """Row i of a table of three, of any number of i: others are refused by the operator."""
    b = Builder()
    i = b.input("i", ("n",), "int32")
    b.output("row", b.add("GATHER", weights(3, 2), i, axis=0))
    return b.finish()


def square_net() -> Model:
    """The sum of the products of all pairs of n numbers: memory for n * n."""
    b = Builder()
    x = b.input("x", ("n",))
    pairs = b.add("MUL", b.add("RESHAPE", x, np.int32([-1, 1])), b.add("RESHAPE", x, np.int32([1, -1])))
    b.output("y", b.add("SUM", b.add("TANH", pairs), np.int32([0, 1])))
    return b.finish()


def grown_net() -> Model:
    """As many sines as a request says, in rows of as many, summed: its values decide the memory that it takes."""
    b = Builder()
    rows, columns = b.input("rows", (1,), "int32"), b.input("columns", (1,), "int32")
    line = b.add("FILL", columns, np.float32(0.5), shape=("k",))
    tiled = b.add("TILE", line, rows, shape=("n",))
    b.output("sum", b.add("SUM", b.add("SIN", tiled), np.int32([0])))
    return b.finish()


def count_net() -> Model:
    """Counts to ``limit``, one turn of a loop after the other: minutes, or until it is cancelled."""
    b = Builder()
    limit = b.input("limit", (), "int32")
    condition, body = b.graph("condition"), b.graph("body")
    taken = [(inner.input("i", (), "int32"), inner.input("limit", (), "int32")) for inner in (condition, body)]
    condition.output("less", condition.add("LESS", *taken[0]))
    body.output("next", body.add("ADD", taken[1][0], 1))
    body.output("end", taken[1][1])
    counted, _ = b.add("WHILE", np.int32(0), limit, cond_subgraph_index=condition, body_subgraph_index=body)
    b.output("counted", counted)
    return b.finish()


def recurrent_net() -> Model:
    """An RNN whose state is a variable of the model."""
    b = Builder()
    x = b.input("x", (1, 3))
    state = b.variable("state", (1, 4))
    y = b.add("UNIDIRECTIONAL_SEQUENCE_RNN", b.add("RESHAPE", x, [1, 1, 3]), weights(4, 3), weights(4, 4, seed=1),
              np.zeros(4, np.float32), state, activation="TANH")  # fmt: skip
    b.output("y", y)
    return b.finish()


def complex_net() -> Model:
    """Complex numbers, which the protocol does not have."""
    b = Builder()
    x = b.input("x", (2,), "complex64")
    b.output("y", b.add("REAL", x))
    return b.finish()


def two_signatures_net(negated: str = "x") -> Model:
    """``double``, whose input is ``x``, and ``negate``, subgraphs of one model."""
    models = []
    for key, name, op in (("double", "x", "ADD"), ("negate", negated, "NEG")):
        b = Builder(signature=key)
        x = b.input(name, (2,))
        b.output("y", b.add(op, *[x, x][: 1 + (op == "ADD")]))
        models.append(b.finish())
    return side_by_side(*models)
