"""Recurrent networks and loops as TensorFlow's converter writes them, beside LiteRT.

    python -m pip install tensorflow-cpu
    python benchmarks/recurrent.py make FOLDER [NAME ...]
    python -m pip install ".[bench]"
    python benchmarks/recurrent.py measure FOLDER [NAME ...]

``make`` builds them with a batch of one and a fixed length and converts them: layers of Keras as float32 and with
dynamic range, functions with ``tf.while_loop``, ``tf.scan`` and ``tf.map_fn`` as float32. ``measure`` runs each in both
engines, one thread, in one process and in bursts that take turns. Its columns: operators of the first subgraph in
machine code of all; microseconds of the quickest burst, LiteRT's and ours, and their ratio; the largest difference of
an output, relative to the largest number in it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

LENGTH, DEPTH, UNITS, TOKENS = 32, 28, 64, 50

BURST, SECONDS = 5e-3, 1.0
"""Of inferences in a row, and of all bursts of a model."""

LAYERS: dict[str, Callable[[Any], Sequence[Any]]] = {
    "lstm": lambda L: [L.LSTM(UNITS)],
    "lstm_sequences": lambda L: [L.LSTM(UNITS, return_sequences=True)],
    "lstm_masked": lambda L: [L.Masking(), L.LSTM(UNITS, return_sequences=True), L.LSTM(UNITS)],
    "lstm_stacked": lambda L: [L.LSTM(UNITS, return_sequences=True), L.LSTM(UNITS)],
    "lstm_wide": lambda L: [L.LSTM(256)],
    "lstm_backwards": lambda L: [L.LSTM(UNITS, go_backwards=True)],
    "lstm_bidirectional": lambda L: [L.Bidirectional(L.LSTM(UNITS, return_sequences=True))],
    "gru": lambda L: [L.GRU(UNITS)],
    "gru_sequences": lambda L: [L.GRU(UNITS, return_sequences=True)],
    "gru_masked": lambda L: [L.Masking(), L.GRU(UNITS, return_sequences=True)],
    "gru_plain": lambda L: [L.GRU(UNITS, reset_after=False)],
    "gru_stacked": lambda L: [L.GRU(UNITS, return_sequences=True), L.GRU(UNITS)],
    "gru_bidirectional": lambda L: [L.Bidirectional(L.GRU(UNITS))],
    "rnn": lambda L: [L.SimpleRNN(UNITS)],
    "rnn_sequences": lambda L: [L.SimpleRNN(UNITS, return_sequences=True)],
}
"""Layers of Keras, before a dense one."""

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {}
"""Functions of an input [1, LENGTH, DEPTH] by name."""


def function(make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Add a function to the table."""
    FUNCTIONS[make.__name__] = make
    return make


def weights(tf: Any, *shape: int) -> Any:
    return tf.constant(np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32) / shape[0] ** 0.5)


def cell(tf: Any, x: Any, h: Any) -> Any:
    return tf.tanh(x @ weights(tf, DEPTH, UNITS) + h @ weights(tf, UNITS, UNITS))


@function
def while_index(tf: Any, x: Any) -> Any:
    """A state, and a row of the input for each turn."""

    def body(i: Any, h: Any) -> Any:
        return i + 1, cell(tf, x[:, i], h)

    return tf.while_loop(lambda i, h: i < LENGTH, body, (tf.constant(0), tf.zeros((1, UNITS))))[1]


@function
def while_window(tf: Any, x: Any) -> Any:
    """Three rows for each turn."""

    def body(i: Any, h: Any) -> Any:
        return i + 1, cell(tf, tf.reduce_mean(x[:, i : i + 3], 1), h)

    return tf.while_loop(lambda i, h: i < LENGTH - 3, body, (tf.constant(0), tf.zeros((1, UNITS))))[1]


@function
def while_array(tf: Any, x: Any) -> Any:
    """States that are written to a TensorArray."""

    def body(i: Any, h: Any, states: Any) -> Any:
        h = cell(tf, x[:, i], h)
        return i + 1, h, states.write(i, h)

    states = tf.TensorArray(tf.float32, LENGTH, element_shape=(1, UNITS))
    return tf.while_loop(lambda i, *_: i < LENGTH, body, (tf.constant(0), tf.zeros((1, UNITS)), states))[2].stack()


@function
def while_greedy(tf: Any, x: Any) -> Any:
    """Tokens, of which each is the most likely after the one before, put into a vector."""
    embedding, output = weights(tf, TOKENS, DEPTH), weights(tf, UNITS, TOKENS)

    def body(i: Any, token: Any, h: Any, tokens: Any) -> Any:
        h = cell(tf, tf.gather(embedding, token), h)
        token = tf.argmax(h @ output, -1, tf.int32)
        tokens = tf.concat([tokens[:, :i], token[:, None], tokens[:, i + 1 :]], 1)
        tokens.set_shape((1, LENGTH))
        return i + 1, token, h, tokens

    first = (tf.constant(0), tf.constant([1]), tf.reduce_mean(x, 1) @ weights(tf, DEPTH, UNITS))
    return tf.while_loop(lambda i, *_: i < LENGTH, body, (*first, tf.zeros((1, LENGTH), tf.int32)))[3]


@function
def while_attention(tf: Any, x: Any) -> Any:
    """Keys that are put into a buffer of fixed size; those that are not there yet are masked."""

    def body(i: Any, query: Any, keys: Any) -> Any:
        keys = tf.concat([keys[:, :i], query[:, None], keys[:, i + 1 :]], 1)
        keys.set_shape((1, LENGTH, DEPTH))
        scores = tf.einsum("bd,btd->bt", query, keys) + tf.where(tf.range(LENGTH) <= i, 0.0, -1e9)
        return i + 1, tf.einsum("bt,btd->bd", tf.nn.softmax(scores), keys) * 0.5 + x[:, i], keys

    first = (tf.constant(0), x[:, 0], tf.zeros((1, LENGTH, DEPTH)))
    return tf.while_loop(lambda i, *_: i < LENGTH, body, first)[1]


def grown(tf: Any, item: Callable[[Any], Any], first: Any) -> Any:
    """A sequence that grows by an item in each turn."""

    def body(i: Any, sequence: Any) -> Any:
        return i + 1, tf.concat([sequence, item(sequence)], 1)

    shapes = (tf.TensorShape(()), tf.TensorShape((1, None, DEPTH)))
    return tf.while_loop(lambda i, _: i < LENGTH, body, (tf.constant(0), first), shape_invariants=shapes)[1]


@function
def while_growing(tf: Any, x: Any) -> Any:
    """A sequence of which the last item makes the next."""
    back = weights(tf, UNITS, DEPTH)
    return grown(tf, lambda s: (cell(tf, s[:, -1], tf.zeros((1, UNITS))) @ back)[:, None] + x[:, :1], x[:, :1])


@function
def while_growing_attention(tf: Any, x: Any) -> Any:
    """A sequence of which all items make the next."""

    def item(sequence: Any) -> Any:
        last = sequence[:, -1:]
        return tf.nn.softmax(last @ tf.transpose(sequence, (0, 2, 1))) @ sequence @ weights(tf, DEPTH, DEPTH)

    return grown(tf, item, x[:, :1])


@function
def scan(tf: Any, x: Any) -> Any:
    """The states of all turns."""
    return tf.scan(lambda h, row: cell(tf, row, h), tf.transpose(x, (1, 0, 2)), tf.zeros((1, UNITS)))


@function
def map_fn(tf: Any, x: Any) -> Any:
    """A product for each row."""
    return tf.map_fn(lambda row: tf.tanh(row @ weights(tf, DEPTH, UNITS)), tf.transpose(x, (1, 0, 2)))


def make(folder: Path, names: Sequence[str]) -> None:
    """Write the models."""
    import keras
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(0)

    def write(name: str, converter: Any) -> None:
        content = converter.convert()
        (folder / f"{name}.tflite").write_bytes(content)
        print(f"{name}: {len(content):,} bytes", flush=True)

    for name, layers in LAYERS.items():
        if names and name not in names:
            continue
        x = y = keras.Input((LENGTH, DEPTH), batch_size=1)
        for layer in (*layers(keras.layers), keras.layers.Dense(10)):
            y = layer(y)
        for form in ("float32", "dynamic"):
            converter = tf.lite.TFLiteConverter.from_keras_model(keras.Model(x, y))
            if form == "dynamic":
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
            write(f"{name}_{form}", converter)
    for name, of in FUNCTIONS.items():
        if not names or name in names:
            traced = tf.function(lambda x, of=of: of(tf, x))
            concrete = traced.get_concrete_function(tf.TensorSpec((1, LENGTH, DEPTH), tf.float32))
            write(name, tf.lite.TFLiteConverter.from_concrete_functions([concrete], traced))


def loaded(interpreter: Any) -> Any:
    """An interpreter that has run, on numbers from -1 to 1."""
    interpreter.allocate_tensors()
    for details in interpreter.get_input_details():
        numbers = np.random.default_rng(1).uniform(-1, 1, details["shape"])
        interpreter.set_tensor(details["index"], numbers.astype(details["dtype"]))
    interpreter.invoke()
    return interpreter


def results(interpreter: Any) -> list[np.ndarray]:
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def burst(interpreter: Any, runs: int) -> float:
    """Microseconds of CPU time of an inference."""
    start = time.process_time()
    for _ in range(runs):
        interpreter.invoke()
    return (time.process_time() - start) / runs * 1e6


def measure(folder: Path, names: Sequence[str]) -> None:
    """Run the models and print a table."""
    from ai_edge_litert.interpreter import Interpreter

    import gossamer

    print(f"{'model':28}{'operators':>11}{'LiteRT':>11}{'ours':>11}{'ratio':>8}{'difference':>12}")
    for path in sorted(folder.glob("*.tflite")):
        if names and not path.stem.startswith(tuple(names)):
            continue
        engines = [loaded(each(str(path), num_threads=1)) for each in (Interpreter, gossamer.Interpreter)]
        subsets = [subset for claims in engines[1].delegate_claims() for subset in claims.partitions]
        ran = sum(len(subset.nodes) for subset in subsets)
        operators = f"{ran}/{len(engines[1].model.subgraphs[0].operators)}"
        runs = [max(1, int(BURST * 1e6 / burst(each, 3))) for each in engines]
        bursts: list[list[float]] = [[], []]
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or len(bursts[1]) < 5:
            for of, each, count in zip(bursts, engines, runs, strict=True):
                of.append(burst(each, count))
        theirs, ours = map(min, bursts)
        apart = [
            np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-9) if a.shape == b.shape else np.inf
            for a, b in zip(results(engines[1]), results(engines[0]), strict=True)
        ]
        figures = f"{theirs:11.1f}{ours:11.1f}{theirs / ours:8.2f}{max(apart):12.2g}"
        print(f"{path.stem:28}{operators:>11}{figures}", flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("make", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="models, or how their names begin; default all")
    arguments = parser.parse_args()
    (make if arguments.command == "make" else measure)(arguments.folder, arguments.names)


if __name__ == "__main__":
    main()
