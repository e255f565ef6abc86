"""Classification as TensorFlow Lite's label_image.py does it, with one channel where the model has one."""

import argparse

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image


def load_labels(filename):
    with open(filename) as f:
        return [line.strip() for line in f.readlines()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-i", "--image")
    parser.add_argument("-m", "--model_file")
    parser.add_argument("-l", "--label_file")
    parser.add_argument("--input_mean", default=127.5, type=float)
    parser.add_argument("--input_std", default=127.5, type=float)
    parser.add_argument("--num_threads", default=None, type=int)
    args = parser.parse_args()

    interpreter = Interpreter(model_path=args.model_file, experimental_delegates=None, num_threads=args.num_threads)
    interpreter.allocate_tensors()

    input_details = interpreter.get_input_details()
    output_details = interpreter.get_output_details()
    floating_model = input_details[0]["dtype"] == np.float32

    height = input_details[0]["shape"][1]
    width = input_details[0]["shape"][2]
    channels = input_details[0]["shape"][3]
    img = Image.open(args.image).convert("L" if channels == 1 else "RGB").resize((width, height))
    input_data = np.expand_dims(np.array(img).reshape(height, width, channels), axis=0)

    if floating_model:
        input_data = (np.float32(input_data) - args.input_mean) / args.input_std
    else:
        scale, zero_point = input_details[0]["quantization"]
        real = (np.float32(input_data) - args.input_mean) / args.input_std
        info = np.iinfo(input_details[0]["dtype"])
        input_data = np.clip(np.round(real / scale) + zero_point, info.min, info.max).astype(input_details[0]["dtype"])

    interpreter.set_tensor(input_details[0]["index"], np.ascontiguousarray(input_data, input_details[0]["dtype"]))
    interpreter.invoke()

    output_data = interpreter.get_tensor(output_details[0]["index"])
    results = np.squeeze(output_data)
    top_k = results.argsort()[-5:][::-1]
    labels = load_labels(args.label_file)
    scale, zero_point = output_details[0]["quantization"]
    for i in top_k:
        real = float(results[i]) if scale == 0 else (int(results[i]) - zero_point) * scale
        print(f"{real:8.5f}: {labels[i]}")
