"""What a wheel ships: the kernels of the layers that float models are made of.

The layers are a table. They go through the passes and commands that models go through, so that what ships is what
models of such layers ask for, whatever the passes and the choice of tiles become.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gossamer.codegen.build import build
from gossamer.codegen.expression import FUNCTIONS, IDENTITY, Expression, operand_count
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.kernels.walk import WalkSpec
from gossamer.codegen.spec import KernelSpec
from gossamer.schema.enums import TensorType
from gossamer.targets import Target
from gossamer.views import POINTWISE, Buffer, Geometry, Shape, View

SIDES = (1, 2, 4, 5, 6, 7, 8, 10, 12, 14, 16, 19, 20, 28, 32, 56, 64, 80, 112)
"""Rows of images, and pixels of their rows."""

LENGTHS = (4, 16, 49, 64, 100, 128, 196, 197, 256, 384, 512)
"""Elements of sequences."""

CHANNELS = (8, 16, 24, 32, 40, 48, 64, 72, 96, 112, 128, 144, 160, 192, 240, 256, 384, 480, 512, 576, 1001, 2048)
DEPTHS = (16, 64, 256, 576, 1024, 2048)

ACTIVATIONS: tuple[Expression, ...] = (
    IDENTITY,
    ("relu", 0),
    ("relu6", 0),
    ("hardswish", 0),
    ("mul", 0, ("logistic", 0)),
)
RESIDUAL: Expression = ("add", 0, 1)
AFTER_CONVOLUTIONS: tuple[Expression, ...] = (*ACTIVATIONS, RESIDUAL, ("relu", RESIDUAL))
AFTER_SEQUENCES: tuple[Expression, ...] = (
    IDENTITY,
    ("relu", 0),
    ("gelu", 0),
    ("gelutanh", 0),
    ("logistic", 0),
    ("tanh", 0),
    RESIDUAL,
)

_MOST_WEIGHTS = 5 << 20
_MOST_PIXELS = 112 * 112 * 96
_TOGETHER = 100

_F32 = TensorType.FLOAT32


class Layer(NamedTuple):
    """A kernel of the graph. What its epilogue takes beside its own operands is as large as the result."""

    kind: str
    inputs: tuple[Shape, ...]
    constants: tuple[Shape, ...]
    shape: Shape
    settings: Any = None
    epilogue: Expression = IDENTITY


def shipped_kernels(target: Target) -> Iterator[KernelSpec]:
    """The specs of everything that ships for a target, each once."""
    specs: dict[str, KernelSpec] = {}
    layers = iter(layers_that_ship())
    while some := list(islice(layers, _TOGETHER)):
        specs.update(specs_of(some, target))
    for convention, timed in product(("", "win64") if target.triple.startswith("x86_64") else ("",), (False, True)):
        spec = WalkSpec(target.name, convention, timed)
        specs[spec.name] = spec
    return iter(specs.values())


def specs_of(layers: Iterable[Layer], target: Target) -> dict[str, KernelSpec]:
    """The kernels of layers that have nothing to do with each other."""
    graph = KernelGraph()
    values = np.empty(_MOST_WEIGHTS, np.float32)  # of all constants, and never touched
    numbers = iter(range(1 << 30))

    def operand(shape: Shape) -> View:
        buffer = Buffer(shape, _F32, next(numbers))
        graph.inputs[buffer.tensor] = buffer
        return buffer.view()

    def constant(shape: Shape) -> View:
        return Buffer(shape, _F32, -1, values[: prod(shape)].reshape(shape)).view()

    for layer in layers:
        operands = [*map(operand, layer.inputs), *map(constant, layer.constants)]
        arity = 1 if layer.kind == "map" else len(operands)
        if layer.kind != "map":
            operands += [operand(layer.shape) for _ in range(operand_count(layer.epilogue) - 1)]
        y = graph.add(layer.kind, operands, layer.shape, _F32, layer.settings, epilogue=layer.epilogue, arity=arity)
        y.buffer.tensor = next(numbers)
        graph.outputs[y.buffer.tensor] = y.buffer
    start = values.ctypes.data
    return dict(build(graph, target, (start, start + values.nbytes)).specs)


def layers_that_ship() -> Iterator[Layer]:
    """The table."""
    return chain(_contractions(), _depthwise(), _elementwise(), _others())


def _contractions() -> Iterator[Layer]:
    def layer(image: Shape, channels: int, kernel: int, stride: int, epilogue: Expression) -> Iterator[Layer]:
        height, width, depth = image
        weights = (channels, kernel, kernel, depth)
        geometry = POINTWISE if kernel == 1 else _same(height, width, kernel, stride)
        output = (height, width) if kernel == 1 else geometry.output
        if prod(weights) <= _MOST_WEIGHTS and max(prod(image), prod(output) * channels) <= _MOST_PIXELS:
            shape = (1, *output, channels)
            yield Layer("contract", ((1, *image),), (weights, (channels,)), shape, geometry, epilogue)

    for side, channels, depth, epilogue in product(SIDES, CHANNELS, DEPTHS, AFTER_CONVOLUTIONS):
        yield from layer((side, side, depth), channels, 1, 1, epilogue)
    for length, channels, depth, epilogue in product((1, *LENGTHS), CHANNELS, DEPTHS, AFTER_SEQUENCES):
        yield from layer((1, length, depth), channels, 1, 1, epilogue)
    for side, channels, depth, epilogue in product(SIDES[3:], CHANNELS, DEPTHS, AFTER_CONVOLUTIONS):
        yield from layer((side, side, depth), channels, 3, 1, epilogue)
    for side, kernel, depth, channels, epilogue in product(SIDES[5:], (3, 5, 7), (1, 3), CHANNELS, ACTIVATIONS):
        yield from layer((2 * side, 2 * side, depth), channels, kernel, 2, epilogue)


def _depthwise() -> Iterator[Layer]:
    for side, kernel, stride, epilogue in product(SIDES, (3, 5, 7), (1, 2), ACTIVATIONS):
        geometry = _same(side * stride, side * stride, kernel, stride)
        image = (1, side * stride, side * stride, 32)
        yield Layer("depthwise", (image,), ((kernel, kernel, 32), (32,)), (1, side, side, 32), geometry, epilogue)


def _elementwise() -> Iterator[Layer]:
    shape = (1, 4, 4, 32)
    for name, function in FUNCTIONS.items():
        yield Layer("map", (shape,) * function.arity, (), shape, None, (name, *range(function.arity)))


def _others() -> Iterator[Layer]:
    image = (1, 8, 8, 32)
    for reduction, axes in product(("sum", "mean", "prod", "max", "min"), ((1, 2), (3,))):
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(image))
        yield Layer("reduce", (image,), (), shape, (reduction, axes))
    for reduction, epilogue in product(("max", "mean", "l2"), ACTIVATIONS[:3]):
        yield Layer("window", (image,), (), (1, 4, 4, 32), (reduction, _same(8, 8, 3, 2)), epilogue)
    for log in (False, True):
        yield Layer("softmax", ((4, 100),), (), (4, 100), (1.0, log))


def _same(height: int, width: int, kernel: int, stride: int) -> Geometry:
    """A square window with TFLite's padding SAME."""
    output = -(-height // stride), -(-width // stride)
    top, left = (
        max(0, (count - 1) * stride + kernel - size) // 2 for count, size in zip(output, (height, width), strict=True)
    )
    return Geometry((kernel, kernel), (stride, stride), (1, 1), (top, left), output)
