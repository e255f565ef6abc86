"""A stream through a recurrent network: its state stays in the interpreter, and is reset between streams."""

import sys

import ai_edge_litert.interpreter as tflite
import numpy as np


class Stream:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.interpreter = tflite.Interpreter(model_content=f.read(), num_threads=1)
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]["index"]
        self.output = self.interpreter.tensor(self.interpreter.get_output_details()[0]["index"])

    def reset(self):
        self.interpreter.reset_all_variables()

    def step(self, frame):
        self.interpreter.set_tensor(self.input, frame[np.newaxis])
        self.interpreter.invoke()
        return self.output()[0].copy()


stream = Stream(sys.argv[1])
frames = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
first = [stream.step(frame) for frame in frames]
stream.reset()
second = [stream.step(frame) for frame in frames]
third = [stream.step(frame) for frame in frames]
print(np.array_equal(first, second), np.array_equal(first, third))
for values in (*first, *third):
    print(" ".join(f"{value:.4f}" for value in values))
