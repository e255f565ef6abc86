"""ONNX's recurrent operators against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.convert.onnx import reference
from tests.convert.onnx.one_node import run

UNITS, INPUTS, BATCH = 3, 4, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def drawn(op: str, directions: int, time: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    gates = GATES[op]
    shapes = {
        "x": (time, BATCH, INPUTS),
        "w": (directions, gates * UNITS, INPUTS),
        "r": (directions, gates * UNITS, UNITS),
        "b": (directions, 2 * gates * UNITS),
        "h": (directions, BATCH, UNITS),
        "c": (directions, BATCH, UNITS),
        "p": (directions, 3 * UNITS),
    }
    return {name: (rng.standard_normal(shape) / 2).astype(np.float32) for name, shape in shapes.items()}


def one_way(op: str, a: dict[str, Any], d: int, **options: Any) -> tuple[Any, ...]:
    numbers = [a[name][d].astype(np.float64) for name in ("w", "r", "b", "h")]
    x = a["x"][::-1] if options.get("backwards") else a["x"]
    if op == "LSTM":
        found = reference.lstm(x, *numbers, a["c"][d], options.get("p"))
    elif op == "GRU":
        found = reference.gru(x, *numbers, after=options.get("after", False))  # type: ignore[assignment]
    else:
        found = reference.rnn(x, *numbers)  # type: ignore[assignment]
    return (found[0][::-1] if options.get("backwards") else found[0], *found[1:])


@pytest.mark.parametrize("time", [1, 5, 20])
@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(tmp_path: Path, op: str, direction: str, time: int) -> None:
    """Unrolled and as a loop; with first states."""
    count = 2 if direction == "bidirectional" else 1
    a = drawn(op, count, time)
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    found = [one_way(op, a, d, backwards=way) for d, way in enumerate(ways)]
    order = ["x", "w", "r", "b", "", "h", "c"][: 7 if op == "LSTM" else 6]
    given = {name: a[name] for name in ("x", "h", "c") if name in order}
    outputs: list[Any] = [("float32", None)] * (3 if op == "LSTM" else 2)
    ran = run(
        tmp_path,
        op,
        given,
        outputs,
        constants={name: a[name] for name in ("w", "r", "b")},
        order=order,
        hidden_size=UNITS,
        direction=direction,
    )
    np.testing.assert_allclose(ran.outputs["out0"], np.stack([one[0] for one in found], 1), rtol=1e-4, atol=1e-5)
    for n in range(1, len(outputs)):
        np.testing.assert_allclose(ran.outputs[f"out{n}"], np.stack([one[n] for one in found]), rtol=1e-4, atol=1e-5)
    assert ("WHILE" in ran.operators) == (time == 20)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_open_batch_and_time(tmp_path: Path, op: str) -> None:
    a = drawn(op, 1, 6)
    a["h"], a["c"] = np.zeros_like(a["h"]), np.zeros_like(a["c"])
    ran = run(
        tmp_path,
        op,
        {"x": a["x"]},
        [("float32", None), ("float32", None)],
        constants={name: a[name] for name in ("w", "r", "b")},
        shapes={"x": ["t", "n", INPUTS]},
        hidden_size=UNITS,
    )
    want = one_way(op, a, 0)
    np.testing.assert_allclose(ran.outputs["out0"][:, 0], want[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ran.outputs["out1"][0], want[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("time", [4, 12])
def test_peepholes_lengths_and_layout(tmp_path: Path, time: int) -> None:
    a = drawn("LSTM", 1, time)
    a["h"], a["c"] = np.zeros_like(a["h"]), np.zeros_like(a["c"])
    weights = {name: a[name] for name in ("w", "r", "b")}
    ran = run(
        tmp_path,
        "LSTM",
        {"x": a["x"]},
        [("float32", None)],
        constants={**weights, "p": a["p"]},
        order=["x", "w", "r", "b", "", "", "", "p"],
        hidden_size=UNITS,
    )
    want = one_way("LSTM", a, 0, p=a["p"][0])[0]
    np.testing.assert_allclose(ran.outputs["out0"][:, 0], want, rtol=1e-4, atol=1e-5)
    lengths = np.array([time - 2, time], np.int32)
    for direction in ("forward", "reverse"):
        ran = run(
            tmp_path,
            "GRU",
            {"x": drawn("GRU", 1, time)["x"], "l": lengths},
            [("float32", None), ("float32", None)],
            constants={name: drawn("GRU", 1, time)[name] for name in ("w", "r", "b")},
            order=["x", "w", "r", "b", "l"],
            hidden_size=UNITS,
            direction=direction,
            linear_before_reset=1,
        )
        for n, length in enumerate(lengths):
            own = drawn("GRU", 1, time)
            own["x"], own["h"] = own["x"][:length, n : n + 1], np.zeros((1, 1, UNITS), np.float32)
            want, last = one_way("GRU", own, 0, after=True, backwards=direction == "reverse")
            np.testing.assert_allclose(ran.outputs["out0"][:length, 0, n], want[:, 0], rtol=1e-4, atol=1e-5)
            assert not ran.outputs["out0"][length:, 0, n].any()
            np.testing.assert_allclose(ran.outputs["out1"][0, n], last[0], rtol=1e-4, atol=1e-5)
    ran = run(
        tmp_path,
        "LSTM",
        {"x": a["x"].transpose(1, 0, 2)},
        [("float32", None), ("float32", None)],
        constants=weights,
        hidden_size=UNITS,
        layout=1,
    )
    want, last, _ = one_way("LSTM", a, 0)
    np.testing.assert_allclose(ran.outputs["out0"][:, :, 0], want.transpose(1, 0, 2), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ran.outputs["out1"][:, 0], last, rtol=1e-4, atol=1e-5)


def test_activations_and_clip(tmp_path: Path) -> None:
    a = drawn("RNN", 1, 5)
    a["h"] = np.zeros_like(a["h"])
    ran = run(
        tmp_path,
        "RNN",
        {"x": a["x"], "w": a["w"], "r": a["r"]},
        [("float32", None)],
        constants={"b": a["b"]},
        hidden_size=UNITS,
        activations=["Affine"],
        activation_alpha=[0.5],
        activation_beta=[0.25],
        clip=0.5,
    )
    h = a["h"][0]
    for n, step in enumerate(a["x"]):
        total = step @ a["w"][0].T + h @ a["r"][0].T + sum(np.split(a["b"][0], 2))
        h = 0.5 * np.clip(total, -0.5, 0.5) + 0.25
        np.testing.assert_allclose(ran.outputs["out0"][n, 0], h, rtol=1e-4, atol=1e-5)


def test_nothing_stays_from_one_invocation_to_the_next(tmp_path: Path) -> None:
    import gossamer
    from gossamer.convert import convert

    a = drawn("LSTM", 1, 12)
    run(
        tmp_path,
        "LSTM",
        {"x": a["x"]},
        [("float32", None)],
        constants={name: a[name] for name in ("w", "r", "b")},
        hidden_size=UNITS,
    )
    runner = gossamer.Interpreter(model_content=convert(tmp_path / "model.onnx")).get_signature_runner()
    first, second = [runner(x=a["x"])["out0"].copy() for _ in range(2)]
    np.testing.assert_array_equal(first, second)
