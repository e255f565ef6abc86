"""TensorFlow's part of quantization.py: networks, and TensorFlow's files of them. It runs where TensorFlow is.

    PYTHON benchmarks/quantization_keras.py kinds|digits|speed FOLDER

For each network a folder has: ``saved_model``; ``calibration.npz`` and ``inputs.npz``, arrays by the names of inputs
with a sample in each row; ``answers.npz``, what Keras says to the inputs; and for each mode ``MODE.tflite``, or
``MODE.txt`` with why there is none. ``digits`` trains on ``digits.npz`` in the folder (images [n, 8, 8], labels [n]).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MODES = ("float32", "float16", "dynamic_range", "int8", "int16x8")
UNSEEN = 360
"""The last pictures are kept for the test: other writers drew them."""


def normalized(x: Any, rng: np.random.Generator) -> Any:
    """Batch normalization that has seen something."""
    import keras

    layer = keras.layers.BatchNormalization()
    y = layer(x)
    size = layer.gamma.shape
    around = [rng.uniform(0.5, 1.5, size), rng.normal(0, 0.3, size), rng.normal(0, 0.3, size)]
    layer.set_weights([*around, rng.uniform(0.5, 2, size)])
    return y


def kinds() -> dict[str, Callable[[], Any]]:
    """Networks of the kinds that are quantized most, with random weights."""
    import keras
    from keras import layers as k

    rng = np.random.default_rng(7)

    def bn(x: Any) -> Any:
        return normalized(x, rng)

    def mlp() -> Any:
        x = i = k.Input((32,))
        for size in (40, 24):
            x = k.Dense(size, "relu")(x)
        return keras.Model(i, k.Dense(8, "softmax")(x))

    def cnn() -> Any:
        x = i = k.Input((24, 24, 3))
        for size in (8, 16):
            x = k.MaxPool2D()(k.ReLU()(bn(k.Conv2D(size, 3, padding="same")(x))))
        return keras.Model(i, k.Dense(10, "softmax")(k.Flatten()(x)))

    def mobilenet_v2() -> Any:
        x = i = k.Input((32, 32, 3))
        x = k.ReLU(6.0)(bn(k.Conv2D(8, 3, strides=2, padding="same")(x)))
        for size, stride, factor in ((8, 1, 1), (12, 2, 4), (12, 1, 4), (16, 2, 4), (16, 1, 4)):
            y = k.ReLU(6.0)(bn(k.Conv2D(x.shape[-1] * factor, 1)(x)))
            y = k.ReLU(6.0)(bn(k.DepthwiseConv2D(3, strides=stride, padding="same")(y)))
            y = bn(k.Conv2D(size, 1)(y))
            x = k.Add()([x, y]) if stride == 1 and x.shape[-1] == size else y
        return keras.Model(i, k.Dense(10, "softmax")(k.GlobalAveragePooling2D()(x)))

    def mobilenet_v3() -> Any:
        def hard_sigmoid(x: Any) -> Any:
            return k.ReLU(6.0)(x + 3.0) * (1.0 / 6.0)

        x = i = k.Input((32, 32, 3))
        x = bn(k.Conv2D(8, 3, strides=2, padding="same")(x))
        x = x * hard_sigmoid(x)
        for size, stride in ((8, 1), (12, 2), (12, 1)):
            y = bn(k.Conv2D(x.shape[-1] * 3, 1)(x))
            y = y * hard_sigmoid(y)
            y = bn(k.DepthwiseConv2D(3, strides=stride, padding="same")(y))
            y = y * hard_sigmoid(y)
            gate = k.GlobalAveragePooling2D(keepdims=True)(y)
            gate = k.Conv2D(y.shape[-1], 1)(k.Conv2D(y.shape[-1] // 4, 1, activation="relu")(gate))
            y = bn(k.Conv2D(size, 1)(y * hard_sigmoid(gate)))
            x = k.Add()([x, y]) if stride == 1 and x.shape[-1] == size else y
        return keras.Model(i, k.Dense(10, "softmax")(k.GlobalAveragePooling2D()(x)))

    def separable() -> Any:
        x = i = k.Input((24, 24, 3))
        for size in (16, 24, 32):
            x = k.MaxPool2D()(k.ReLU()(bn(k.SeparableConv2D(size, 3, padding="same")(x))))
        return keras.Model(i, k.Dense(7)(k.Flatten()(x)))

    def residual() -> Any:
        x = i = k.Input((24, 24, 3))
        x = k.ReLU()(bn(k.Conv2D(12, 3, padding="same")(x)))
        for _ in range(3):
            y = bn(k.Conv2D(12, 3, padding="same")(k.ReLU()(bn(k.Conv2D(12, 3, padding="same")(x)))))
            x = k.ReLU()(k.Add()([x, y]))
        return keras.Model(i, k.Dense(10)(k.GlobalAveragePooling2D()(x)))

    def unet() -> Any:
        x = i = k.Input((32, 32, 3))
        skips = []
        for size in (8, 16):
            x = k.Conv2D(size, 3, padding="same", activation="relu")(x)
            skips.append(x)
            x = k.MaxPool2D()(x)
        x = k.Conv2D(32, 3, padding="same", activation="relu")(x)
        for size in (16, 8):
            x = k.Concatenate()([k.Conv2DTranspose(size, 2, strides=2)(x), skips.pop()])
            x = k.Conv2D(size, 3, padding="same", activation="relu")(x)
        return keras.Model(i, k.Conv2D(2, 1, activation="sigmoid")(x))

    def conv1d() -> Any:
        x = i = k.Input((64, 4))
        x = k.Conv1D(16, 5, activation="relu", padding="causal")(x)
        x = k.Conv1D(16, 5, activation="relu", padding="same", strides=2)(x)
        return keras.Model(i, k.Dense(4, "softmax")(k.GlobalMaxPooling1D()(x)))

    def autoencoder() -> Any:
        x = i = k.Input((48,))
        for size in (32, 16, 8, 16, 32):
            x = k.Dense(size, "relu" if size != 8 else "elu")(x)
        return keras.Model(i, k.Dense(48, "sigmoid")(x))

    def two_inputs() -> Any:
        a, b = k.Input((16, 16, 3), name="a"), k.Input((12,), name="b")
        x = k.Dense(16, "relu")(k.Flatten()(k.Conv2D(8, 3, activation="relu")(a)))
        y = k.Dense(16, "tanh")(b)
        both = k.Dense(5, "softmax")(k.Concatenate()([x, y]))
        return keras.Model([a, b], {"class": both, "value": k.Dense(1)(k.Multiply()([x, y]))})

    def transformer() -> Any:
        i = k.Input((16, 24))
        return keras.Model(i, k.Dense(6, "softmax")(k.GlobalAveragePooling1D()(encoded(k.Dense(32)(i), 2))))

    def vision_transformer() -> Any:
        i = k.Input((32, 32, 3))
        x = k.Reshape((16, 48))(k.Conv2D(48, 8, strides=8)(i))
        return keras.Model(i, k.Dense(10)(k.LayerNormalization()(encoded(x, 2))[:, 0]))

    recurrent = {
        "lstm": lambda: k.LSTM(12),
        "gru": lambda: k.GRU(12),
        "rnn": lambda: k.SimpleRNN(12),
        "bilstm": lambda: k.Bidirectional(k.LSTM(8)),
    }

    def over_time(layer: Callable[[], Any]) -> Callable[[], Any]:
        def made() -> Any:
            i = k.Input((10, 8), batch_size=1)
            return keras.Model(i, k.Dense(3)(layer()(i)))

        return made

    plain = (
        mlp, cnn, mobilenet_v2, mobilenet_v3, separable, residual, unet, conv1d, autoencoder, two_inputs, transformer,
        vision_transformer,
    )  # fmt: skip
    return {**{one.__name__: one for one in plain}, **{name: over_time(layer) for name, layer in recurrent.items()}}


def encoded(x: Any, blocks: int, heads: int = 4) -> Any:
    """Encoder blocks of a transformer with GELU, normalized before each part."""
    from keras import layers as k

    size = x.shape[-1]
    for _ in range(blocks):
        y = k.LayerNormalization(epsilon=1e-6)(x)
        x = k.Add()([x, k.MultiHeadAttention(heads, size // heads)(y, y)])
        y = k.LayerNormalization(epsilon=1e-6)(x)
        x = k.Add()([x, k.Dense(size)(k.Dense(2 * size, "gelu")(y))])
    return x


def of_digits() -> dict[str, Any]:
    """Networks that read digits of 8 x 8 pixels; the recurrent one takes rows as steps, the transformer as words."""
    import keras
    from keras import layers as k

    i = k.Input((8, 8))
    x = k.Reshape((8, 8, 1))(i)
    for size in (16, 32):
        x = k.ReLU()(k.BatchNormalization()(k.Conv2D(size, 3, padding="same")(x)))
    cnn = keras.Model(i, k.Dense(10, "softmax")(k.Dropout(0.3)(k.Flatten()(k.MaxPool2D()(x)))))
    i = k.Input((8, 8))
    lstm = keras.Model(i, k.Dense(10, "softmax")(k.LSTM(32)(i)))
    i = k.Input((8, 8))
    place = k.Embedding(8, 32)(np.arange(8))
    x = encoded(k.Dense(32)(i) + place, 2)
    transformer = keras.Model(i, k.Dense(10, "softmax")(k.GlobalAveragePooling1D()(k.LayerNormalization()(x))))
    i = k.Input((8, 8))
    x = k.Reshape((8, 8, 1))(i)
    x = k.Activation("hard_swish")(k.BatchNormalization()(k.Conv2D(16, 3, padding="same")(x)))
    for stride in (2, 1):
        y = k.Activation("hard_swish")(k.BatchNormalization()(k.Conv2D(48, 1)(x)))
        y = k.DepthwiseConv2D(3, strides=stride, padding="same")(y)
        y = k.Activation("hard_swish")(k.BatchNormalization()(y))
        gate = k.Conv2D(12, 1, activation="relu")(k.GlobalAveragePooling2D(keepdims=True)(y))
        y = y * k.Activation("hard_sigmoid")(k.Conv2D(48, 1)(gate))
        y = k.BatchNormalization()(k.Conv2D(16, 1)(y))
        x = k.Add()([x, y]) if stride == 1 else y
    mobilenet = keras.Model(i, k.Dense(10, "softmax")(k.GlobalAveragePooling2D()(x)))
    return {"cnn": cnn, "lstm": lstm, "transformer": transformer, "mobilenet_v3": mobilenet}


def plant(model: Any) -> None:
    """Makes a layer of the CNN hard to quantize, and leaves its answers: the channels of the first convolution get
    scales of a factor of 300, which the second takes out again (ReLU lets factors through)."""
    convolutions = [layer for layer in model.layers if type(layer).__name__ == "Conv2D"]
    norms = [layer for layer in model.layers if type(layer).__name__ == "BatchNormalization"]
    factors = np.ones(convolutions[0].filters, np.float32)
    factors[::8] = 300
    gamma, beta, mean, variance = norms[0].get_weights()
    norms[0].set_weights([gamma * factors, beta * factors, mean, variance])
    kernel, bias = convolutions[1].get_weights()
    convolutions[1].set_weights([kernel / factors[:, None], bias])


def save(model: Any, place: Path, calibration: dict[str, Any], inputs: dict[str, Any]) -> None:
    """Save a network with its arrays, and have TensorFlow convert it in every mode."""
    import keras
    import tensorflow as tf

    place.mkdir(parents=True, exist_ok=True)

    def serve(*arrays: Any) -> dict[str, Any]:
        found = model(list(arrays) if len(arrays) > 1 else arrays[0], training=False)
        return found if isinstance(found, dict) else {"output_0": found}

    archive = keras.export.ExportArchive()
    archive.track(model)
    signature = [tf.TensorSpec((1, *one.shape[1:]), name=one.name) for one in model.inputs]
    run = archive.add_endpoint("serve", serve, input_signature=signature)
    archive.write_out(str(place / "saved_model"), verbose=False)
    answers = [run(*[tf.constant(row[one.name]) for one in model.inputs]) for row in rows(inputs)]
    np.savez(place / "calibration.npz", **calibration)
    np.savez(place / "inputs.npz", **inputs)
    np.savez(place / "answers.npz", **{name: np.concatenate([one[name] for one in answers]) for name in answers[0]})
    while left := missing(place):
        done = subprocess.run([sys.executable, __file__, "convert", place, *left], capture_output=True, check=False)
        if done.returncode:  # a file took the process with it
            (place / f"{missing(place)[0]}.txt").write_text(f"exit status {done.returncode}")


def missing(place: Path) -> list[str]:
    """The modes of which there is neither a file nor why there is none."""
    return [mode for mode in MODES if not any((place / f"{mode}{end}").exists() for end in (".tflite", ".txt"))]


def rows(arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """Batches of one."""
    count = len(next(iter(arrays.values())))
    return [{name: array[n : n + 1] for name, array in arrays.items()} for n in range(count)]


def convert(place: Path, modes: list[str]) -> None:
    """TensorFlow's files; what is missing when this process ends it could not make."""
    import tensorflow as tf

    with np.load(place / "calibration.npz") as stored:
        samples = {name: stored[name] for name in stored.files}
    for mode in modes:
        converter = tf.lite.TFLiteConverter.from_saved_model(str(place / "saved_model"))
        if mode != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if mode == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if mode.startswith("int"):
            converter.representative_dataset = lambda: iter(rows(samples))
        if mode == "int16x8":
            sixteen = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
            converter.target_spec.supported_ops = [sixteen, tf.lite.OpsSet.TFLITE_BUILTINS]
        try:
            (place / f"{mode}.tflite").write_bytes(converter.convert())
        except Exception as error:
            (place / f"{mode}.txt").write_text(str(error))


def make_kinds(folder: Path) -> None:
    """The networks of `kinds`."""
    import keras

    for name, made in kinds().items():
        if (folder / name / "int16x8.tflite").exists() or (folder / name / "int16x8.txt").exists():
            continue
        keras.utils.set_random_seed(11)
        model, rng = made(), np.random.default_rng(5)
        for weight in model.trainable_variables:
            if "bias" in weight.path:
                weight.assign(rng.normal(0, 0.1, weight.shape))
        draws = [
            {one.name: rng.normal(size=(count, *one.shape[1:])).astype(np.float32) for one in model.inputs}
            for count in (32, 8)
        ]
        save(model, folder / name, *draws)


def make_digits(folder: Path) -> None:
    """The networks of `of_digits`, trained, and the CNN once more with a planted layer."""
    import keras

    with np.load(folder / "digits.npz") as stored:
        images, labels = stored["images"].astype(np.float32), stored["labels"]
    known, unseen = slice(None, -UNSEEN), slice(-UNSEEN, None)
    keras.utils.set_random_seed(3)
    models = of_digits()
    for model in models.values():
        model.compile("adam", "sparse_categorical_crossentropy")
        model.fit(images[known], labels[known], batch_size=32, epochs=30, verbose=0)
    models["planted"] = keras.models.clone_model(models["cnn"])
    models["planted"].set_weights(models["cnn"].get_weights())
    plant(models["planted"])
    for name, model in models.items():
        (one,) = model.inputs
        save(model, folder / name, {one.name: images[known][::5]}, {one.name: images[unseen]})


def speed(folder: Path) -> dict[str, float]:
    """Quantize a SavedModel with the pictures beside it, as int8."""
    import tensorflow as tf

    pictures = np.load(folder / "pictures.npy", mmap_mode="r")
    start = time.perf_counter()
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder / "saved_model"))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([picture[None]] for picture in pictures)
    (folder / "tensorflow.tflite").write_bytes(converter.convert())
    return {"seconds": time.perf_counter() - start}


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "convert":
        convert(where, sys.argv[3:])
    elif what == "speed":
        print(json.dumps(speed(where)))
    else:
        {"kinds": make_kinds, "digits": make_digits}[what](where)
