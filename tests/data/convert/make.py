"""Made the SavedModels beside it, with TensorFlow 2.21: `python make.py`. Nothing in the tests needs TensorFlow."""

import shutil
from pathlib import Path

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent


class TwoSignatures(tf.Module):
    """An encoder and a decoder that share nothing but the object that has their variables, which have one name."""

    def __init__(self) -> None:
        super().__init__()
        draw = np.random.default_rng(0)
        self.down = tf.Variable(draw.standard_normal((4, 2)).astype(np.float32), name="weights")
        self.up = tf.Variable(draw.standard_normal((2, 4)).astype(np.float32), name="weights")

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32, "picture")])
    def encode(self, picture):
        return {"code": tf.nn.relu(picture @ self.down)}

    @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.float32, "code")])
    def decode(self, code):
        return {"picture": tf.nn.sigmoid(code @ self.up)}


module = TwoSignatures()
target = HERE / "two_signatures"
shutil.rmtree(target, ignore_errors=True)
tf.saved_model.save(module, str(target), signatures={"encode": module.encode, "decode": module.decode})
