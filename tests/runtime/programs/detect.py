"""Object detection in the style of Coral's examples: pycoral.adapters.common and detect, pasted in."""

import collections
import sys

import numpy as np
from ai_edge_litert import interpreter as tflite

Object = collections.namedtuple("Object", ["id", "score", "bbox"])


class BBox(collections.namedtuple("BBox", ["xmin", "ymin", "xmax", "ymax"])):
    __slots__ = ()

    def scale(self, sx, sy):
        return BBox(xmin=sx * self.xmin, ymin=sy * self.ymin, xmax=sx * self.xmax, ymax=sy * self.ymax)

    def map(self, f):
        return BBox(xmin=f(self.xmin), ymin=f(self.ymin), xmax=f(self.xmax), ymax=f(self.ymax))


def make_interpreter(model_path_or_content):
    if isinstance(model_path_or_content, bytes):
        return tflite.Interpreter(model_content=model_path_or_content, experimental_delegates=[])
    return tflite.Interpreter(model_path=model_path_or_content, experimental_delegates=[])


def output_tensor(interpreter, i):
    return interpreter.tensor(interpreter.get_output_details()[i]["index"])()


def input_details(interpreter, key):
    return interpreter.get_input_details()[0][key]


def input_size(interpreter):
    _, height, width, _ = input_details(interpreter, "shape")
    return width, height


def input_tensor(interpreter):
    tensor_index = input_details(interpreter, "index")
    return interpreter.tensor(tensor_index)()[0]


def set_resized_input(interpreter, size, pixels):
    width, height = input_size(interpreter)
    w, h = size
    scale = min(width / w, height / h)
    w, h = int(w * scale), int(h * scale)
    tensor = input_tensor(interpreter)
    tensor.fill(0)
    _, _, channel = tensor.shape
    rows = (np.arange(h) / scale).astype(int)
    columns = (np.arange(w) / scale).astype(int)
    result = pixels[rows][:, columns]
    tensor[:h, :w] = np.reshape(result, (h, w, channel))
    return (scale, scale)


def get_objects(interpreter, score_threshold=-float("inf"), image_scale=(1.0, 1.0)):
    signature_list = interpreter.get_signature_list()
    if signature_list:
        if len(signature_list) > 1:
            raise ValueError("Only support model with one signature.")
        signature = signature_list[next(iter(signature_list))]
        count = int(output_tensor(interpreter, 2)[0])
        assert len(signature["outputs"]) == 4
        scores = output_tensor(interpreter, 0)[0]
        class_ids = output_tensor(interpreter, 3)[0]
        boxes = output_tensor(interpreter, 1)[0]
    elif output_tensor(interpreter, 3).size == 1:
        boxes = output_tensor(interpreter, 0)[0]
        class_ids = output_tensor(interpreter, 1)[0]
        scores = output_tensor(interpreter, 2)[0]
        count = int(output_tensor(interpreter, 3)[0])
    else:
        boxes = output_tensor(interpreter, 1)[0]
        class_ids = output_tensor(interpreter, 3)[0]
        scores = output_tensor(interpreter, 0)[0]
        count = int(output_tensor(interpreter, 2)[0])

    width, height = input_size(interpreter)
    image_scale_x, image_scale_y = image_scale
    sx, sy = width / image_scale_x, height / image_scale_y

    def make(i):
        ymin, xmin, ymax, xmax = boxes[i]
        return Object(
            id=int(class_ids[i]),
            score=float(scores[i]),
            bbox=BBox(xmin=xmin, ymin=ymin, xmax=xmax, ymax=ymax).scale(sx, sy).map(int),
        )

    return [make(i) for i in range(count) if scores[i] >= score_threshold]


interpreter = make_interpreter(sys.argv[1])
interpreter.allocate_tensors()
for seed in range(3):
    pixels = np.random.default_rng(seed).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    image_scale = set_resized_input(interpreter, (64, 48), pixels)
    interpreter.invoke()
    for obj in get_objects(interpreter, 0.4, image_scale):
        print(obj.id, f"{obj.score:.4f}", obj.bbox)
