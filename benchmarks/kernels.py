"""Every float kernel on shapes of MobileNetV2 and ResNet-50, beside LiteRT running the same operators.

    python -m pip install ".[bench]"
    python benchmarks/kernels.py [--target avx2] [--only conv] [--runs 15]

One thread. A contraction is first tried with every tile of the target, with and without blocks of depth, and the
best is kept; then both engines take turns. Figures are of the quickest turn of each: microseconds, GFLOP/s (GB/s
where nothing is multiplied), and LiteRT's time divided by ours. LiteRT's time includes its way to the operator, about
2 us; ours reads input that has its border already, which in a model the kernel before writes.

Shares its arrays and argument blocks with the tests of the kernels: run it in a checkout.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

sys.path.insert(0, str(Path(__file__).parent.parent))

from gossamer.codegen.expression import Expression
from gossamer.codegen.kernels.arg_reduce import ArgReduce
from gossamer.codegen.kernels.dot import MAX_ROWS, rows_of_weights
from gossamer.codegen.kernels.elementwise import Map
from gossamer.codegen.kernels.move import Copy, Transpose
from gossamer.codegen.kernels.scan import Scan
from gossamer.codegen.kernels.winograd import planes_of
from gossamer.codegen.layout import merged
from gossamer.codegen.tiles import gemm_tile, proposals, winograd_group
from gossamer.errors import CompileError
from gossamer.ops import all_ops
from gossamer.programs import host
from gossamer.schema.enums import ActivationFunctionType, Padding, TensorType
from gossamer.schema.options import (
    AddOptions,
    ArgMaxOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    L2NormOptions,
    Pool2DOptions,
    ReducerOptions,
    ResizeBilinearOptions,
    SoftmaxOptions,
)
from gossamer.targets import Target, all_targets, host_target
from tests.codegen.kernels import (
    harness,
    test_arg_reduce,
    test_depthwise,
    test_dot,
    test_elementwise,
    test_move,
    test_normalize,
    test_reduce,
    test_resize,
    test_rows,
    test_scan,
    test_softmax,
    test_window,
    test_winograd,
)
from tests.ops.cases import Case, const, model_of, tensor
from tests.runtime.graphs import ModelMaker

RNG = np.random.default_rng(0)
Run = Callable[[], Any]


class Row(NamedTuple):
    """A shape: what it is called, the work of one run, its unit, our runs by variant, and LiteRT's run."""

    name: str
    work: float
    unit: str
    ours: dict[str, Run]
    peer: Run


def timed(run: Run, seconds: float = 2e-3) -> float:
    """Seconds of one run, from as many as take a while."""
    start = time.perf_counter()
    run()
    count = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count


def litert(name: str, inputs: list[Any], shape: tuple[int, ...], options: Any = None, dtype: Any = np.float32) -> Run:
    """The operator in a model of its own."""
    op = next(op for op in all_ops() if op.name == name)
    case = Case("", inputs, [tensor(np.zeros(shape), dtype)], options)
    return peer_of(model_of(op, case), [one.value for one in inputs if not one.constant])


def peer_of(model: bytes, inputs: list[Any]) -> Run:
    """LiteRT with a model."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    return interpreter.invoke


def random(*shape: int) -> np.ndarray:
    """Normally distributed numbers on memory of their own, which begins at a line of the cache, as in the arena."""
    return aligned(RNG.standard_normal(shape).astype(np.float32))


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a line of the cache."""
    memory = np.empty(array.nbytes + 63, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


DRIVER = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)
"""A driver: its arguments, which thread it is, of how many."""


def native(spec: Any, arguments: np.ndarray) -> Run:
    """One run of a driver."""
    function, at = DRIVER(harness.address(spec)), arguments.ctypes.data
    return lambda: function(at, 0, 1)


def contraction(
    target: Target,
    name: str,
    size: int,
    kernel: int,
    stride: int,
    depth: int,
    channels: int,
    fully_connected: bool = False,
) -> Row:
    """A convolution of a square image (``size`` is its side), or a fully connected layer of ``size`` rows."""
    pad = kernel // 2
    out = 1 if fully_connected else -(-size // stride)
    before = pad - (1 if stride == 2 and kernel > 1 else 0)  # SAME puts the odd element behind
    columns = size if fully_connected else out
    image = random(1, out if fully_connected else size, size, depth)
    x = aligned(np.zeros((1, image.shape[1] + 2 * pad, image.shape[2] + 2 * pad, depth), np.float32))
    x[:, before : before + image.shape[1], before : before + image.shape[2]] = image
    weights, bias = random(channels, kernel, kernel, depth) * np.float32(0.1), random(channels)
    y = aligned(np.zeros((1, out, columns, channels), np.float32))
    total = kernel * kernel * depth
    pixels = out * columns
    ours: dict[str, Run] = {}
    keep = []
    for mr, nv in proposals(target, "gemm"):
        if mr > pixels or nv > -(-channels // target.lanes()):
            continue
        blocks: list[tuple[int | None, int]] = [(None, 0)]
        if total * channels > 100_000 and pixels > 1:
            block = max(4, 512 // nv // 4 * 4)
            if block < depth * (kernel if kernel > 1 else 1) or kernel == 1:
                blocks.append((min(block, total), -(-4 * nv // (-(-pixels // mr)))))
        for depth_block, prefetch in blocks:
            try:
                run = harness.Convolution(
                    target, x, weights, bias, y, (mr, nv), ("relu6", 0), None, stride, depth_block=depth_block,
                    prefetch=prefetch,
                )  # fmt: skip
                harness.address(run.spec)
            except CompileError:
                continue
            keep.append(run)
            ours[f"{mr}x{nv}" + (f" b{depth_block}p{prefetch}" if depth_block else "")] = native(
                run.spec, run.arguments
            )
    if kernel == 3 and stride == 1 and depth % target.lanes() == 0:
        for number, tiles_wide in ((4, -(-out // 4)), (2, -(-out // 2))):
            group = winograd_group(target, planes_of(number), tiles_wide**2, depth, channels)
            tile = gemm_tile(target, group, channels, depth, 4 * depth)
            fast = test_winograd.Convolution(target, x, weights, bias, y, number, tile, group, ("relu6", 0))
            keep.append(fast)
            ours[f"winograd {number}x{number}"] = native(fast.spec, fast.arguments)
    if fully_connected and columns <= MAX_ROWS:
        nr = rows_of_weights(target, columns, weights.nbytes)
        flat = (image[0, 0], weights[:, 0, 0], bias, y[0, 0])
        ours[f"dot {columns}x{nr}"] = captured(lambda: test_dot.dot(target, *flat, nr, ("relu6", 0)))
    if pixels == 1:
        for nv in (4, 6, 8):
            run = harness.Convolution(target, x, weights, bias, y, (1, nv), ("relu6", 0))
            keep.append(run)
            ours[f"1x{nv}"] = native(run.spec, run.arguments)
    relu6 = ActivationFunctionType.RELU6
    peer: Run
    if fully_connected:
        peer = litert(
            "FULLY_CONNECTED",
            [tensor(image[0, 0]), const(weights[:, 0, 0], np.float32), const(bias, np.float32)],
            (size, channels),
            FullyConnectedOptions(fused_activation_function=relu6),
        )
    else:
        peer = litert(
            "CONV_2D",
            [tensor(image), const(weights, np.float32), const(bias, np.float32)],
            y.shape,
            Conv2DOptions(padding=Padding.SAME, stride_w=stride, stride_h=stride, fused_activation_function=relu6),
        )
    HELD.extend(keep)
    return Row(name, 2 * pixels * channels * total, "GF/s", ours, peer)


HELD: list[Any] = []


def depthwise(target: Target, size: int, kernel: int, stride: int, channels: int) -> Row:
    """A depthwise convolution with RELU6."""
    pad = kernel // 2
    out = -(-size // stride)
    before = pad - (1 if stride == 2 else 0)
    image = random(1, size, size, channels)
    x = aligned(np.zeros((1, size + 2 * pad, size + 2 * pad, channels), np.float32))
    x[:, before : before + size, before : before + size] = image
    weights, bias = random(kernel, kernel, channels), random(channels)
    y = aligned(np.zeros((1, out, out, channels), np.float32))
    ours: dict[str, Run] = {}
    for pixels, _ in proposals(target, "depthwise"):
        for known in (True, False):
            if pixels > out:
                continue

            def run(pixels: int = pixels, known: bool = known) -> None:
                test_depthwise.depthwise(target, x, weights, bias, y, pixels, stride, 1, ("relu6", 0), known)

            ours[f"{pixels}x1" + ("" if known else " any")] = captured(run)
    options = DepthwiseConv2DOptions(
        padding=Padding.SAME,
        stride_w=stride,
        stride_h=stride,
        depth_multiplier=1,
        fused_activation_function=ActivationFunctionType.RELU6,
    )
    inputs = [tensor(image), const(weights[None], np.float32), const(bias, np.float32)]
    peer = litert("DEPTHWISE_CONV_2D", inputs, y.shape, options)
    return Row(
        f"dwconv {kernel}x{kernel}s{stride} {size}x{size}x{channels}", 2 * kernel**2 * y.size, "GF/s", ours, peer
    )


def block(target: Target, size: int, depth: int, wide: int, channels: int, stride: int) -> Row:
    """Expand, depthwise 3x3, project, and the input added where it fits; LiteRT runs a model of these operators."""
    out = -(-size // stride)
    x, y = random(1, size, size, depth), aligned(np.zeros((1, out, out, channels), np.float32))
    expand = random(wide, depth), random(wide)
    filter, project = (random(3, 3, wide), random(wide)), (random(channels, wide), random(channels))
    residual = x if stride == 1 and depth == channels else None
    pad = (1, 1, 1, 1) if stride == 1 else (0, 1, 0, 1)
    ours = {}
    for tile in proposals(target, "gemm"):
        for pixels in (7, 4):
            if pixels <= out:
                run = test_rows.Rows(
                    target, x, expand, filter, project, y, pad, stride, 1, residual, tile, pixels
                )  # fmt: skip
                HELD.append(run)
                ours["{}x{} {}x1".format(*tile, pixels)] = native(run.spec, run.arguments)
    make, F32 = ModelMaker(), TensorType.FLOAT32
    relu6, same = ActivationFunctionType.RELU6, Padding.SAME
    first, middle, last, result = (
        make.tensor(shape) for shape in (x.shape, (*x.shape[:3], wide), (*y.shape[:3], wide), y.shape)
    )

    def convolution(name: str, source: int, weights: np.ndarray, bias: np.ndarray, to: int, options: Any) -> None:
        make.op(name, [source, *(make.constant(value, np.float32, F32) for value in (weights, bias))], [to], options)

    options = Conv2DOptions(padding=same, stride_w=1, stride_h=1, fused_activation_function=relu6)
    convolution("CONV_2D", first, expand[0][:, None, None], expand[1], middle, options)
    depthwise_options = DepthwiseConv2DOptions(
        padding=same, stride_w=stride, stride_h=stride, depth_multiplier=1, fused_activation_function=relu6
    )
    convolution("DEPTHWISE_CONV_2D", middle, filter[0][None], filter[1], last, depthwise_options)
    options = Conv2DOptions(padding=same, stride_w=1, stride_h=1)
    convolution("CONV_2D", last, project[0][:, None, None], project[1], result, options)
    if residual is not None:
        total = make.tensor(y.shape)
        make.op("ADD", [result, first], [total], AddOptions())
        result = total
    make.io([first], [result])
    work = 2 * wide * (size**2 * depth + out**2 * (9 + channels))
    name = f"block {size}x{size} {depth}->{wide}s{stride}->{channels}"
    return Row(name, work, "GF/s", ours, peer_of(make.model(), [x]))


def products(target: Target) -> Iterator[Row]:
    """Batches of matrix products; the second matrix is packed in every run."""
    for images, m, k, n, by_channel in ((8, 128, 64, 128, True), (8, 128, 128, 64, False)):
        a, b = random(images, m, k), random(images, *((n, k) if by_channel else (k, n)))
        y = aligned(np.zeros((images, m, n), np.float32))
        tile = gemm_tile(target, m, n, k, 4 * k)
        product = harness.Product(target, a, b, y, tile, by_channel)
        pack = captured(lambda b=b, nv=tile[1], by=by_channel: harness.pack_batch(target, b, nv, by_depth=not by))
        multiply = native(product.spec, product.arguments)
        HELD.append(product)
        peer = litert("BATCH_MATMUL", [tensor(a), tensor(b)], y.shape, BatchMatMulOptions(adj_y=by_channel))
        name = f"matmul {images}x{m}x{k}x{n}{' adj_y' * by_channel}"
        both = {"": lambda pack=pack, multiply=multiply: (pack(), multiply())}
        yield Row(name, 2 * images * m * k * n, "GF/s", both, peer)


def captured(call: Run) -> Run:
    """What a helper of the tests runs, without making the argument blocks anew."""
    seen: list[tuple[Any, np.ndarray]] = []
    held: list[Any] = []
    original_run, original_block = harness.run, harness.block

    def run(spec: Any, arguments: np.ndarray, threads: int = 1) -> None:
        seen.append((spec, arguments))

    def block(*layout: Any, **values: Any) -> np.ndarray:
        made = original_block(*layout, **values)
        held.append((made, values))
        return made

    modules = (
        harness,
        test_depthwise,
        test_dot,
        test_elementwise,
        test_arg_reduce,
        test_move,
        test_normalize,
        test_reduce,
        test_resize,
        test_scan,
        test_softmax,
        test_window,
    )
    for module in modules:
        module.run, module.block = run, block  # type: ignore[attr-defined]
    try:
        call()
    finally:
        for module in modules:
            module.run, module.block = original_run, original_block  # type: ignore[attr-defined]
    ((spec, arguments),) = seen
    HELD.append(held)
    return native(spec, arguments)


def pools(target: Target) -> Iterator[Row]:
    """MaxPool of ResNet, AveragePool of MobileNet, means, softmax."""
    image, y = random(1, 112, 112, 64), np.zeros((1, 56, 56, 64), np.float32)
    options = Pool2DOptions(padding=Padding.SAME, stride_w=2, stride_h=2, filter_width=3, filter_height=3)
    ours = captured(lambda: test_window.pool(target, "max", image, y, (3, 3), (2, 2), (0, 0)))
    peer = litert("MAX_POOL_2D", [tensor(image)], y.shape, options)
    yield Row("maxpool 3x3s2 112x112x64", image.nbytes + y.nbytes, "GB/s", {"": ours}, peer)
    deep, one = random(1, 7, 7, 1280), np.zeros((1, 1, 1, 1280), np.float32)
    options = Pool2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1, filter_width=7, filter_height=7)
    ours = captured(lambda: test_window.pool(target, "mean", deep, one, (7, 7), (1, 1), (0, 0)))
    peer = litert("AVERAGE_POOL_2D", [tensor(deep)], one.shape, options)
    yield Row("avgpool 7x7 7x7x1280", deep.nbytes, "GB/s", {"": ours}, peer)
    ours = captured(lambda: test_reduce.reduce(target, "mean", False, deep, one[0, 0], 1280))
    peer = litert("MEAN", [tensor(deep), const([1, 2])], (1, 1280), ReducerOptions())
    yield Row("mean 7x7x1280", deep.nbytes, "GB/s", {"": ours}, peer)
    long, sums = random(128, 1, 768, 1), np.zeros((128, 1), np.float32)
    ours = captured(lambda: test_reduce.reduce(target, "sum", True, long, sums))
    peer = litert("SUM", [tensor(long[:, 0, :, 0]), const([1])], (128,), ReducerOptions())
    yield Row("sum 128x768 along", long.nbytes, "GB/s", {"": ours}, peer)
    for rows, count in ((1, 1000), (1536, 128)):
        x, z = random(rows, count), np.zeros((rows, count), np.float32)
        ours = captured(lambda x=x, z=z: test_softmax.softmax(target, x, z))
        peer = litert("SOFTMAX", [tensor(x)], z.shape, SoftmaxOptions(beta=1.0))
        yield Row(f"softmax {rows}x{count}", 2 * x.nbytes, "GB/s", {"": ours}, peer)


def maps(target: Target) -> Iterator[Row]:
    """Elementwise operators."""
    x, other = random(1, 56, 56, 256), random(1, 56, 56, 256)
    y = aligned(np.zeros_like(x))

    def run(expression: Expression, *operands: np.ndarray) -> Run:
        spec = Map(target.name, expression, "v" * len(operands))
        flat = [operand.reshape(1, 1, -1) for operand in operands]
        return captured(lambda: test_elementwise.compute(spec, y.reshape(1, 1, -1), flat))

    relu = ActivationFunctionType.RELU
    pair = [tensor(x), tensor(other)]
    peer = litert("ADD", pair, x.shape, AddOptions(fused_activation_function=relu))
    yield Row("add relu 56x56x256", 3 * x.nbytes, "GB/s", {"": run(("relu", ("add", 0, 1)), x, other)}, peer)
    for name, step in (
        ("RELU6", "relu6"), ("LOGISTIC", "logistic"), ("TANH", "tanh"), ("HARD_SWISH", "hardswish"), ("EXP", "exp"),
        ("GELU", "gelu"), ("ELU", "elu"),
    ):  # fmt: skip
        yield Row(
            f"{step} 56x56x256", 2 * x.nbytes, "GB/s", {"": run((step, 0), x)}, litert(name, [tensor(x)], x.shape)
        )


def moves(target: Target) -> Iterator[Row]:
    """Transpositions and copies."""
    for shape, axes in (
        ((1, 224, 224, 3), (0, 3, 1, 2)), ((1, 3, 224, 224), (0, 2, 3, 1)), ((1, 56, 56, 256), (0, 3, 1, 2)),
        ((1, 256, 56, 56), (0, 2, 3, 1)), ((1, 128, 12, 64), (0, 2, 1, 3)), ((1, 128, 12, 64), (0, 2, 3, 1)),
        ((512, 768), (1, 0)),
    ):  # fmt: skip
        x = random(*shape)
        y = aligned(np.zeros([shape[axis] for axis in axes], np.float32))
        ours = captured(lambda x=x, y=y, axes=axes: move(target, x.transpose(axes), y))
        peer = litert("TRANSPOSE", [tensor(x), const(axes)], y.shape)
        yield Row(f"transpose {'x'.join(map(str, shape))} {axes}", 2 * x.nbytes, "GB/s", {"": ours}, peer)


def move(target: Target, source: np.ndarray, destination: np.ndarray) -> None:
    """The copy of a view, as `gossamer.codegen.commands.copy` would have it."""
    dimensions = merged(destination.shape, source.strides, destination.strides)
    runs = dimensions.pop()[0] * 4 if dimensions[-1][1:] == (4, 4) else 0
    loops = [*[(1, 0, 0)] * ((3 if runs else 5) - len(dimensions)), *dimensions]
    if not runs:
        loops.insert(-1, loops.pop(next(at for at, d in enumerate(loops) if d[1] == 4)))
    sizes, strides, to_strides = zip(*loops, strict=True)
    views = as_strided(source, sizes, strides), as_strided(destination, sizes, to_strides)
    if runs:
        test_move.move(Copy(target.name), *views, run=runs, block=runs, blocks=1)
    else:
        test_move.move(Transpose(target.name, 32), *views)


def others(target: Target) -> Iterator[Row]:
    """Resizing, normalizations, running sums, indices of extremes."""
    for size, new_size, channels in ((33, 257, 21), (28, 56, 128), (7, 224, 3)):
        x, y = random(1, size, size, channels), aligned(np.zeros((1, new_size, new_size, channels), np.float32))
        name = f"{size}x{size} -> {new_size}x{new_size}x{channels}"
        ours = captured(lambda x=x, y=y: test_resize.bilinear(target, x, y, False, True))
        options = ResizeBilinearOptions(half_pixel_centers=True)
        peer = litert("RESIZE_BILINEAR", [tensor(x), const([new_size] * 2)], y.shape, options)
        yield Row(f"resize bilinear {name}", y.nbytes, "GB/s", {"": ours}, peer)
        ours = captured(lambda x=x, y=y: test_resize.nearest(target, x, y, False, False))
        peer = litert("RESIZE_NEAREST_NEIGHBOR", [tensor(x), const([new_size] * 2)], y.shape)
        yield Row(f"resize nearest {name}", y.nbytes, "GB/s", {"": ours}, peer)
    x = random(128, 768)
    y = aligned(np.zeros_like(x))
    ours = captured(lambda: test_normalize.normalize(target, "l2", x, y))
    peer = litert("L2_NORMALIZATION", [tensor(x)], x.shape, L2NormOptions())
    yield Row("l2norm 128x768", 2 * x.nbytes, "GB/s", {"": ours}, peer)
    scale, shift = random(768), random(768)
    ours = captured(
        lambda: test_normalize.normalize(target, "layer", x, y, 1e-6, ("add", ("mul", 0, 1), 2), (scale, shift))
    )
    yield Row("layernorm 128x768 (LiteRT: l2norm)", 2 * x.nbytes, "GB/s", {"": ours}, peer)
    ours = captured(lambda: test_scan.scan(Scan(target.name), x[None], y[None]))
    yield Row("cumsum 128x768", 2 * x.nbytes, "GB/s", {"": ours}, litert("CUMSUM", [tensor(x), const(0)], x.shape))
    for along, shape in ((True, (257 * 257, 21, 1)), (False, (1, 128, 4096)), (True, (128, 30522, 1))):
        x, index = random(*shape), np.zeros((shape[0], shape[2]), np.int32)
        ours = captured(
            lambda x=x, index=index, along=along: test_arg_reduce.extreme(ArgReduce(target.name, True, along), x, index)
        )
        options = ArgMaxOptions(output_type=TensorType.INT32)
        peer = litert("ARG_MAX", [tensor(x), const(1)], index.shape, options, np.int32)
        yield Row(f"argmax {'x'.join(map(str, shape))}", x.nbytes, "GB/s", {"": ours}, peer)


def packing(target: Target) -> Iterator[Row]:
    """Weights into panels, beside NumPy."""
    weights = random(1280, 320)
    for nv in (2,):
        out = np.zeros((weights.shape[0] // (nv * target.lanes()), weights.shape[1], nv * target.lanes()), np.float32)
        panels = weights.reshape(-1, nv * target.lanes(), weights.shape[1])
        peer = lambda panels=panels, out=out: np.copyto(out, panels.transpose(0, 2, 1))  # noqa: E731
        ours = captured(lambda nv=nv: harness.pack(target, weights, nv))
        yield Row("pack 1280x320 (NumPy)", 2 * weights.nbytes, "GB/s", {"": ours}, peer)


def rows(target: Target) -> Iterator[Row]:
    """All shapes."""
    for size, depth, channels in (
        (112, 32, 16), (56, 24, 144), (56, 144, 24), (28, 192, 32), (14, 384, 64), (14, 512, 512), (7, 960, 160),
        (7, 320, 1280), (56, 64, 256), (28, 512, 128), (14, 1024, 256), (7, 2048, 512),
    ):  # fmt: skip
        yield contraction(target, f"conv 1x1 {size}x{size} {depth}->{channels}", size, 1, 1, depth, channels)
    for size, kernel, stride, depth, channels in (
        (224, 3, 2, 3, 32), (224, 7, 2, 3, 64), (56, 3, 1, 64, 64), (28, 3, 1, 128, 128), (14, 3, 1, 256, 256),
        (7, 3, 1, 512, 512),
    ):  # fmt: skip
        name = f"conv {kernel}x{kernel}s{stride} {size}x{size} {depth}->{channels}"
        yield contraction(target, name, size, kernel, stride, depth, channels)
    for size, depth, wide, channels, stride in (
        (112, 16, 96, 24, 2), (56, 24, 144, 24, 1), (28, 32, 192, 32, 1), (14, 64, 384, 64, 1), (14, 96, 576, 160, 2),
    ):  # fmt: skip
        yield block(target, size, depth, wide, channels, stride)
    yield from products(target)
    for batch, depth, channels in ((1, 1280, 1000), (4, 1280, 1000), (128, 1024, 256)):
        yield contraction(target, f"fc {batch}x{depth} -> {channels}", batch, 1, 1, depth, channels, True)
    for size, kernel, stride, channels in (
        (112, 3, 1, 32), (112, 3, 2, 96), (56, 3, 1, 144), (14, 3, 1, 384), (14, 3, 2, 576), (7, 3, 1, 960),
        (14, 5, 1, 480),
    ):  # fmt: skip
        yield depthwise(target, size, kernel, stride, channels)
    yield from pools(target)
    yield from maps(target)
    yield from moves(target)
    yield from others(target)
    yield from packing(target)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=list(all_targets()))
    parser.add_argument("--only", default="", help="rows whose name begins with this")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--variants", action="store_true", help="show every variant that was tried")
    arguments = parser.parse_args()
    target = all_targets()[arguments.target] if arguments.target else host_target(host.cpu_features())
    if target is None:
        raise SystemExit("No target runs on this machine.")
    print(f"{'shape (' + target.name + ')':34} {'variant':16} {'us':>9} {'rate':>11} {'LiteRT us':>10} {'ratio':>6}")
    ratios = []
    for row in rows(target):
        if not row.name.startswith(arguments.only):
            continue
        tried = {name: min(timed(run, 1e-3) for _ in range(4)) for name, run in row.ours.items()}
        best = min(tried, key=lambda name: tried[name])
        ours, theirs = [], []
        for _ in range(arguments.runs):
            ours.append(timed(row.ours[best]))
            theirs.append(timed(row.peer))
        mine, peer = min(ours), min(theirs)
        ratio = peer / mine
        ratios.append(ratio)
        rate = f"{row.work / mine / 1e9:6.1f} {row.unit}"
        print(f"{row.name:34} {best:16} {mine * 1e6:9.1f} {rate:>11} {peer * 1e6:10.1f} {ratio:6.2f}", flush=True)
        if arguments.variants:
            for name, seconds in sorted(tried.items(), key=lambda item: item[1]):
                print(f"{'':34} {name:16} {seconds * 1e6:9.1f} {row.work / seconds / 1e9:6.1f} {row.unit}")
        HELD.clear()
    print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
