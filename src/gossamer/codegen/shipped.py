"""What a wheel ships: the kernels of well-known networks, and of single layers in many shapes.

They go through the passes and commands that models go through, so that what ships is what such models ask for, whatever
the passes and the choice of tiles become.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from gossamer.codegen.build import PASSES, PLAIN
from gossamer.codegen.elements import ELEMENT_OF, ELEMENTS
from gossamer.codegen.expression import FUNCTIONS, IDENTITY, Expression
from gossamer.codegen.graph import Boxes
from gossamer.codegen.kernels.enter import EnterSpec
from gossamer.codegen.kernels.peak import MultiplyAdd, Read
from gossamer.codegen.kernels.walk import Convention, WalkSpec
from gossamer.codegen.networks import (
    FUSED,
    HARD_SIGMOID,
    HARD_SWISH,
    LOGISTIC,
    MOST_WEIGHTS,
    RELU,
    SILU,
    Network,
    efficientnet,
    mobilenet_v1,
    mobilenet_v2,
    mobilenet_v3,
    resnet,
    same,
    transformer,
)
from gossamer.codegen.spec import KernelSpec
from gossamer.schema.enums import TensorType
from gossamer.targets import Target
from gossamer.views import Shape, View

SIZES = (224, 192, 160, 128, 96, 256, 320)
"""Rows and columns of the pictures that networks see."""

SIDES = (1, 2, 4, 5, 6, 7, 8, 10, 12, 14, 16, 19, 20, 28, 32, 56, 64, 80, 112)
"""Rows and columns of the images between layers."""

LENGTHS = (1, 4, 16, 49, 64, 100, 128, 196, 197, 256, 384, 512)
"""Elements of sequences."""

CHANNELS = (
    *(4, 8, 10, 12, 16, 20, 24, 32, 40, 48, 52, 64, 72, 96, 112, 128, 144, 160, 192, 240, 256, 384, 512, 1001, 2048),
)
DEPTHS = (4, 64, 256, 1024)

GELU: Expression = ("gelu", 0)
GELU_TANH: Expression = ("gelutanh", 0)
ALONE = (IDENTITY, *FUSED)
"""What a layer has behind it where no other operator is fused with it. It can always be had without LLVM."""

ACTIVATIONS = (*ALONE, HARD_SWISH, SILU)

F32, INT32, INT64 = TensorType.FLOAT32, TensorType.INT32, TensorType.INT64
INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16
MOVED = (TensorType.INT8, TensorType.INT16, F32, INT64)
"""An element type of every size."""

NUMBERS = (F32, TensorType.FLOAT16, TensorType.INT8, TensorType.UINT8, INT32, INT64, TensorType.BOOL)
"""What is often converted into each other."""

_MOST_PIXELS = 112 * 112 * 96

Layer = Callable[[Network], View]


def shipped_kernels(target: Target) -> Iterator[KernelSpec]:
    """The specs of everything that ships for a target, each once; without most of what one that it extends has.

    `gossamer.delegates.jit.shipped` has what quantised networks need beyond that.
    """
    specs: dict[str, KernelSpec] = {}
    if target.base is None:  # floats gain nothing from extensions
        for find in (_of_networks, _of_families, _tools):
            specs |= {spec.name: spec for spec in find(target)}
    for layer in _others():
        specs |= _specs(layer, IDENTITY, target)
    return iter(specs.values())


def _of_networks(target: Target) -> Iterator[KernelSpec]:
    for fill, passes in product(_networks(), (PASSES, PLAIN)):
        net = Network()
        fill(net)
        yield from net.specs(target, passes).values()


def _of_families(target: Target) -> Iterator[KernelSpec]:
    for layers, activations in _families():
        # Shapes decide the tile, and most of them for one that others have had: those need no more activations.
        seen: set[str] = set()
        for layer in layers:
            found = _specs(layer, RELU, target)
            if not found.keys() <= seen:
                seen |= found.keys()
                yield from found.values()
                for activation in activations:
                    yield from _specs(layer, activation, target).values()


def _tools(target: Target) -> Iterator[KernelSpec]:
    """What no model asks for."""
    conventions: tuple[Convention, ...] = ("", "win64") if target.triple.startswith("x86_64") else ("",)
    for convention in conventions:
        yield EnterSpec(target.name, convention)
        for timed in (False, True):
            yield WalkSpec(target.name, convention, timed)
    yield MultiplyAdd(target.name)
    yield Read(target.name)


def _networks() -> Iterator[Callable[[Network], None]]:
    for size in SIZES:
        for width in (1.0, 0.75, 0.5, 0.25):
            yield partial(mobilenet_v1, size=size, width=width)
        for width in (1.0, 1.4, 0.75, 0.5, 0.35):
            yield partial(mobilenet_v2, size=size, width=width)
        for large, width in product((False, True), (1.0, 0.75)):
            yield partial(mobilenet_v3, size=size, width=width, large=large)
        for lite, width in product((False, True), (1.0, 1.1, 1.2)):
            yield partial(efficientnet, size=size, width=width, lite=lite)
        yield partial(resnet, size=size, blocks=(3, 4, 6, 3), bottleneck=True)
        yield partial(resnet, size=size, blocks=(2, 2, 2, 2), bottleneck=False)
    sequences = ((128, 128, 2), (128, 256, 4), (128, 512, 8), (197, 192, 3), (197, 384, 6), (197, 768, 12))
    for (length, width, heads), activation, shifts in product(sequences, (GELU, GELU_TANH, RELU), (False, True)):
        yield partial(transformer, length=length, width=width, heads=heads, activation=activation, shifts=shifts)


def _families() -> Iterator[tuple[Iterable[Layer], Iterable[Expression]]]:
    """Layers, and the activations that each of them has somewhere."""
    yield _convolutions(1, 1, DEPTHS), ALONE
    yield _convolutions(3, 1, DEPTHS), ALONE
    yield _convolutions(3, 2, (1, 3)), ALONE
    yield _dense(LENGTHS), ALONE
    yield _dense((1,)), (*ACTIVATIONS, LOGISTIC, HARD_SIGMOID, ("tanh", 0))
    for kernel, stride in product((3, 5), (1, 2)):
        yield (partial(_depthwise, side, kernel, stride) for side in SIDES), ACTIVATIONS
    yield (partial(_depthwise, side, 7, 1) for side in SIDES), (IDENTITY,)
    yield (partial(_pool, reduction) for reduction in ("max", "mean", "l2")), ALONE


def _others() -> Iterator[Layer]:
    """Operators of other kinds, which have nothing behind them."""
    image, pixels = (1, 8, 8, 32), (1, 8, 8)
    for reduction, axes in product(("sum", "mean", "prod", "max", "min"), ((1, 2), (3,))):
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(image))
        yield partial(_operator, "reduce", F32, [(image, F32)], shape, (reduction, axes))
    for log in (False, True):
        yield partial(_operator, "softmax", F32, [(image, F32)], image, (1.0, log))
    yield partial(_operator, "normalize", F32, [(image, F32)], image, {"norm": "l2", "epsilon": 1e-6})
    factors = {"radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5}
    yield partial(_operator, "localresponse", F32, [(image, F32)], image, factors)
    for rows in ((0, 0, 1, 1), ((0, 1, 0.0), (0, 1, 0.5), (1, 1, 0.0), (1, 1, 0.5))):
        yield partial(_operator, "resize", F32, [((1, 2, 2, 32), F32)], (1, 4, 4, 32), {"rows": rows, "columns": rows})
    for axis, exclusive, type in product((1, 3), (False, True), (F32, INT32)):
        settings: dict[str, Any] = {"axis": axis, "exclusive": exclusive, "reverse": False}
        yield partial(_operator, "scan", type, [(image, type)], image, settings)
    for axis, greatest, index in product((1, 3), (False, True), (INT32, INT64)):
        shape = image[:axis] + image[axis + 1 :]
        yield partial(_operator, "extreme", index, [(image, F32)], shape, {"axis": axis, "greatest": greatest})
    yield partial(_operator, "topk", INT32, [(image, F32)], (*image[:-1], 5), None)
    yield partial(_operator, "nonzero", INT32, [(image, INT32)], image, None)
    yield from _over_bytes(image)
    for type in MOVED:
        yield partial(_transpose, (2, 1, 0), type)
        yield partial(_transpose, (5, 3, 1, 4, 2, 0), type)
        yield partial(_broadcast, type)
        yield partial(_operator, "pad", type, [(image, type), ((), type)], (1, 10, 9, 32), (0, 1, 1, 0))
        for index, axis in product((INT32, INT64), (0, 2)):
            sizes = [1 if at == axis else size for at, size in enumerate(pixels)]
            operands = [(pixels, type), ((5, 1), index)]
            yield partial(_operator, "gather", type, operands, (5, *sizes), Boxes((axis,), tuple(sizes)))
    for type, other in product(NUMBERS, NUMBERS):
        if type != other:
            yield partial(_cast, type, other)
    for (name, function), type in product(FUNCTIONS.items(), (F32, INT32, TensorType.BOOL)):
        fits = function.bits in (0, ELEMENTS[ELEMENT_OF[type]].bits) and function.reads is None
        if fits and ELEMENTS[ELEMENT_OF[type]].kind in function.emit:
            types = [type] * function.arity
            if function.chooses:
                types[0] = TensorType.BOOL
            for scalars in product((False, True), repeat=function.arity):
                if not all(scalars):
                    yield partial(_map, name, types, scalars)


def _over_bytes(image: Shape) -> Iterator[Layer]:
    """Reductions and the like of quantized integers."""
    for type, axes, reduction in product((INT8, UINT8, INT16), ((1, 2), (3,)), ("sum", "max", "min")):
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(image))
        rescaled = reduction == "sum" and type != INT16
        operands = [(image, type), ((2,), F32)][: 1 + rescaled]
        result = INT32 if reduction == "sum" and type == INT16 else type
        yield partial(_operator, "quantized_reduce", result, operands, shape, {"reduction": reduction, "axes": axes})
    for type, reduction, size in product((INT8, UINT8, INT16), ("max", "mean"), (3, 17)):
        big = (1, 32, 32, 32)
        pool = {"reduction": reduction, "geometry": same(big, size, 2), "low": 0, "high": 100}
        yield partial(_operator, "quantized_window", type, [(big, type)], (1, 16, 16, 32), pool)
    for type in (INT8, UINT8):
        numbers = [((256,), F32), ((3,), INT32)]
        for result, log in ((type, False), (type, True), (INT16, False)):
            yield partial(_operator, "quantized_softmax", result, [(image, type), *numbers], image, {"log": log})
        yield partial(_operator, "quantized_normalize", type, [(image, type)], image, {"zero_point": 0})
        rows = ((0, 1, 0), (0, 1, 1024), (1, 1, 0), (1, 1, 1024))
        places = {"rows": rows, "columns": rows}
        yield partial(_operator, "resize", type, [((1, 2, 2, 32), type)], (1, 4, 4, 32), places)


def _specs(layer: Layer, activation: Expression, target: Target) -> dict[str, KernelSpec]:
    """The kernels of a layer that has nothing else around it."""
    net = Network()
    net.output(net.activated(layer(net), activation))
    return net.specs(target)


def _convolutions(kernel: int, stride: int, depths: Iterable[int]) -> Iterator[Layer]:
    for side, depth, channels in product(SIDES, depths, CHANNELS):
        size = side * stride
        if kernel**2 * depth * channels <= MOST_WEIGHTS and max(size**2 * depth, side**2 * channels) <= _MOST_PIXELS:
            yield partial(_convolution, (1, size, size, depth), channels, kernel, stride)


def _convolution(shape: tuple[int, ...], channels: int, kernel: int, stride: int, net: Network) -> View:
    return net.convolution(net.input(*shape), channels, kernel, stride)


def _dense(lengths: Iterable[int]) -> Iterator[Layer]:
    for length, depth, channels in product(lengths, DEPTHS, CHANNELS):
        if depth * channels <= MOST_WEIGHTS:
            yield partial(_connected, length, depth, channels)


def _connected(length: int, depth: int, channels: int, net: Network) -> View:
    return net.dense(net.input(length, depth), channels)


def _depthwise(side: int, kernel: int, stride: int, net: Network) -> View:
    return net.depthwise(net.input(1, side * stride, side * stride, 32), kernel, stride)


def _pool(reduction: str, net: Network) -> View:
    return net.add("window", [net.input(1, 8, 8, 32)], (1, 4, 4, 32), (reduction, same((1, 8, 8, 32), 3, 2)))


def _operator(
    kind: str, type: TensorType, operands: Iterable[tuple[Shape, TensorType]], shape: Shape, settings: Any, net: Network
) -> View:
    return net.add(kind, [net.input(*shape, type=type) for shape, type in operands], shape, settings, type)


def _cast(type: TensorType, other: TensorType, net: Network) -> View:
    return net.cast(net.input(1, 8, 8, 32, type=type), other)


def _transpose(axes: Sequence[int], type: TensorType, net: Network) -> View:
    return net.copy(net.input(*range(2, 2 + len(axes)), type=type).permute(axes))


def _broadcast(type: TensorType, net: Network) -> View:
    return net.copy(net.input(4, 1, type=type).broadcast((4, 8)))


def _map(name: str, types: Sequence[TensorType], scalars: Sequence[bool], net: Network) -> View:
    shapes = [() if is_scalar else (1, 8, 8, 32) for is_scalar in scalars]
    operands = [net.input(*shape, type=type) for shape, type in zip(shapes, types, strict=True)]
    return net.map((name, *range(len(types))), *operands)
