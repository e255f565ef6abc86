"""Plans with sizes left open: filled in, they are the plans that would have been made for these shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, InvokeError, PrepareError
from gossamer.arrays import NDArray
from gossamer.codegen.kernels.contract24 import narrows
from gossamer.delegates.jit import compiling, template
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.delegates.jit.template import FEWEST_SEEN, Template
from gossamer.programs import plans
from gossamer.schema import (
    BatchMatMulOptions,
    CallOnceOptions,
    CastOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    GatherOptions,
    PackOptions,
    Padding,
    Pool2DOptions,
    RangeOptions,
    ReducerOptions,
    ReshapeOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    ShapeOptions,
    SoftmaxOptions,
    StridedSliceOptions,
    SubOptions,
    TensorType,
    TransposeOptions,
    VarHandleOptions,
)
from tests.codegen.test_basis import made_of_what_ships, shipped
from tests.delegates.jit.running import outputs
from tests.random_graphs import FORMS, Form, RandomGraph
from tests.runtime.graphs import ModelMaker

Array = NDArray[Any]
FLOAT, INT = TensorType.FLOAT32, TensorType.INT32


class Net(ModelMaker):
    """Operators one after the other, each a method that returns what it writes."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def then(self, name: str, inputs: Sequence[int], rank: int, options: Any = None, type: TensorType = FLOAT) -> int:
        y = self.tensor((1,) * rank, type)
        self.op(name, inputs, [y], options)
        return y

    def ints(self, *values: int) -> int:
        return self.constant(values, np.int32, INT)

    def scalar(self, value: int) -> int:
        return self.constant(value, np.int32, INT)

    def weights(self, *shape: int) -> int:
        return self.constant(self.rng.standard_normal(shape), np.float32, FLOAT)

    def size(self, x: int, axis: int) -> int:
        """A dimension of a tensor, as TensorFlow's converter has it."""
        shape = self.then("SHAPE", [x], 1, ShapeOptions(out_type=INT), INT)
        ends = [self.ints(axis), self.ints(axis + 1), self.ints(1)]
        return self.then("STRIDED_SLICE", [shape, *ends], 0, StridedSliceOptions(shrink_axis_mask=1), INT)

    def pack(self, *numbers: int) -> int:
        return self.then("PACK", numbers, 1, PackOptions(values_count=len(numbers)), INT)

    def dense(self, x: int, depth: int, units: int) -> int:
        options = FullyConnectedOptions(keep_num_dims=True)
        return self.then("FULLY_CONNECTED", [x, self.weights(units, depth), self.weights(units)], 3, options)


def attention() -> bytes:
    """A layer of a transformer, of any batch and length, with a mask, and the mean of all rows."""
    net = Net()
    x, mask = net.tensor((1, 4, 16)), net.tensor((1, 1, 1, 4))
    batch, length = net.size(x, 0), net.size(x, 1)
    heads = net.pack(batch, length, net.scalar(2), net.scalar(8))
    order = net.ints(0, 2, 1, 3)

    def head() -> int:
        rows = net.then("RESHAPE", [net.dense(x, 16, 16), heads], 4, ReshapeOptions())
        return net.then("TRANSPOSE", [rows, order], 4, TransposeOptions())

    q, k, v = head(), head(), head()
    scores = net.then("BATCH_MATMUL", [q, k], 4, BatchMatMulOptions(adj_y=True))
    masked = net.then("ADD", [scores, mask], 4)
    found = net.then("BATCH_MATMUL", [net.then("SOFTMAX", [masked], 4, SoftmaxOptions(beta=1.0)), v], 4)
    rows = net.then("TRANSPOSE", [found, order], 4, TransposeOptions())
    joined = net.then("RESHAPE", [rows, net.pack(batch, net.scalar(-1), net.scalar(16))], 3, ReshapeOptions())
    hidden = net.then("GELU", [net.dense(net.then("ADD", [x, joined], 3), 16, 40)], 3)
    net.io([x, mask], [net.then("MEAN", [net.dense(hidden, 40, 16), net.ints(1)], 2, ReducerOptions())])
    return net.model()


def images() -> bytes:
    """Convolutions, pools and resizes of images of any size, and the size of the input again."""
    net = Net()
    x = net.tensor((1, 8, 8, 3))
    down = Conv2DOptions(padding=Padding.SAME, stride_h=2, stride_w=2)
    y = net.then("CONV_2D", [x, net.weights(8, 3, 3, 3), net.weights(8)], 4, down)
    one = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1)
    y = net.then("DEPTHWISE_CONV_2D", [y, net.weights(1, 3, 3, 8), net.weights(8)], 4, one)
    pool = Pool2DOptions(padding=Padding.SAME, stride_h=2, stride_w=2, filter_height=3, filter_width=3)
    z = net.then("MAX_POOL_2D", [y], 4, pool)
    sizes = net.then(
        "STRIDED_SLICE",
        [net.then("SHAPE", [x], 1, ShapeOptions(out_type=INT), INT), net.ints(1), net.ints(3), net.ints(1)],
        1,
        StridedSliceOptions(),
        INT,
    )
    a = net.then("RESIZE_BILINEAR", [y, sizes], 4, ResizeBilinearOptions(half_pixel_centers=True))
    b = net.then("RESIZE_NEAREST_NEIGHBOR", [z, sizes], 4, ResizeNearestNeighborOptions())
    net.io([x], [net.then("CONCATENATION", [x, a, b], 4, ConcatenationOptions(axis=3))])
    return net.model()


def positions() -> bytes:
    """Rows of tables: for tokens, for the numbers of their places, and the first of a table."""
    net = Net()
    tokens = net.tensor((1, 4), INT)
    length = net.size(tokens, 1)
    numbers = net.then("RANGE", [net.scalar(0), length, net.scalar(1)], 1, RangeOptions(), INT)
    first = StridedSliceOptions(begin_mask=3, end_mask=2)
    table = net.weights(80, 8)
    ends = net.pack(length, net.scalar(0))
    y = net.then("GATHER", [net.weights(50, 8), tokens], 3, GatherOptions())
    y = net.then("ADD", [y, net.then("GATHER", [net.weights(80, 8), numbers], 2, GatherOptions())], 3)
    slice = net.then("STRIDED_SLICE", [table, net.ints(0, 0), ends, net.ints(1, 1)], 2, first)
    net.io([tokens], [net.then("MUL", [y, slice], 3)])
    return net.model()


def rotary() -> bytes:
    """A decoder's layer of any batch and length: rotary embeddings of a RANGE of it, a causal mask that compares
    two of these, a root mean square, a gate; its scores are scaled by the logarithm of the length."""
    net = Net()
    x = net.tensor((1, 4, 16))
    batch, length = net.size(x, 0), net.size(x, 1)
    numbers = net.then("RANGE", [net.scalar(0), length, net.scalar(1)], 1, RangeOptions(), INT)
    steps = net.then("RESHAPE", [net.then("CAST", [numbers], 1, CastOptions(), FLOAT), net.ints(-1, 1)], 2)
    half = net.then("MUL", [steps, net.constant([[1.0, 0.3, 0.1, 0.03]], np.float32, FLOAT)], 2)
    angles = net.then("CONCATENATION", [half, half], 2, ConcatenationOptions(axis=1))
    cos, sin = net.then("COS", [angles], 2), net.then("SIN", [angles], 2)
    rows, columns = (net.then("RESHAPE", [numbers, net.ints(*to)], 2, type=INT) for to in ((-1, 1), (1, -1)))
    sees = net.then("GREATER_EQUAL", [rows, columns], 2, type=TensorType.BOOL)
    zero, low = (net.constant(value, np.float32, FLOAT) for value in (0, -1e9))
    mask = net.then("SELECT_V2", [sees, zero, low], 2)
    scale = net.then("LOG", [net.then("CAST", [length], 0, CastOptions(), FLOAT)], 0)
    heads, order = net.pack(batch, length, net.scalar(2), net.scalar(8)), net.ints(0, 2, 1, 3)

    def normed(y: int) -> int:
        spread = net.then("MEAN", [net.then("MUL", [y, y], 3), net.ints(-1)], 3, ReducerOptions(keep_dims=True))
        least = net.constant(1e-6, np.float32, FLOAT)
        return net.then("MUL", [y, net.then("RSQRT", [net.then("ADD", [spread, least], 3)], 3)], 3)

    def head(y: int) -> int:
        rows = net.then("RESHAPE", [net.dense(y, 16, 16), heads], 4, ReshapeOptions())
        return net.then("TRANSPOSE", [rows, order], 4, TransposeOptions())

    def turned(y: int) -> int:
        def half(first: int) -> int:
            ends = [net.ints(0, 0, 0, first), net.ints(0, 0, 0, first + 4), net.ints(1, 1, 1, 1)]
            return net.then("STRIDED_SLICE", [y, *ends], 4, StridedSliceOptions(begin_mask=7, end_mask=7))

        other = net.then("CONCATENATION", [net.then("NEG", [half(4)], 4), half(0)], 4, ConcatenationOptions(axis=3))
        return net.then("ADD", [net.then("MUL", [y, cos], 4), net.then("MUL", [other, sin], 4)], 4)

    y = normed(x)
    scores = net.then("BATCH_MATMUL", [turned(head(y)), turned(head(y))], 4, BatchMatMulOptions(adj_y=True))
    masked = net.then("ADD", [net.then("MUL", [scores, scale], 4), mask], 4)
    found = net.then("BATCH_MATMUL", [net.then("SOFTMAX", [masked], 4, SoftmaxOptions(beta=1.0)), head(y)], 4)
    rows = net.then("TRANSPOSE", [found, order], 4, TransposeOptions())
    joined = net.then("RESHAPE", [rows, net.pack(batch, length, net.scalar(16))], 3, ReshapeOptions())
    x1 = net.then("ADD", [x, net.dense(joined, 16, 16)], 3)
    y = normed(x1)
    gate = net.then("LOGISTIC", [net.dense(y, 16, 40)], 3)
    net.io([x], [net.dense(net.then("MUL", [gate, net.dense(y, 16, 40)], 3), 40, 16)])
    return net.model()


def frames() -> bytes:
    """Overlapping pieces of a sound of any length, as ``tf.signal.frame`` has them: a GATHER at computed places, whose
    number is a quotient."""
    net = Net()
    x = net.tensor((1, 64))
    count = net.then("FLOOR_DIV", [net.size(x, 1), net.scalar(8)], 0, type=INT)
    ends = [
        net.ints(0, 0),
        net.pack(net.scalar(0), net.then("MUL", [count, net.scalar(8)], 0, type=INT)),
        net.ints(1, 1),
    ]
    even = net.then("STRIDED_SLICE", [x, *ends], 2, StridedSliceOptions(begin_mask=3, end_mask=1))
    pieces = net.then("RESHAPE", [even, net.pack(net.scalar(1), count, net.scalar(8))], 3, ReshapeOptions())
    last = net.then("SUB", [count, net.scalar(1)], 0, SubOptions(), INT)
    starts = net.then("RANGE", [net.scalar(0), last, net.scalar(1)], 1, RangeOptions(), INT)
    places = net.then("ADD", [net.then("RESHAPE", [starts, net.ints(-1, 1)], 2, type=INT), net.ints(0, 1)], 2, type=INT)
    pairs = net.then("GATHER", [pieces, places], 4, GatherOptions(axis=1))
    wide = net.then("RESHAPE", [pairs, net.pack(net.scalar(1), last, net.scalar(16))], 3, ReshapeOptions())
    net.io([x], [net.dense(wide, 16, 10)])
    return net.model()


def products() -> bytes:
    """Layers of any number of rows."""
    net = Net()
    x = y = net.tensor((1, 1, 24))
    for depth, units in ((24, 64), (64, 7)):
        y = net.then("RELU", [net.dense(y, depth, units)], 3)
    net.io([x], [y])
    return net.model()


def kernel_of(interpreter: Any) -> JitKernel:
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    assert kernel.program is not None
    return kernel


def run(interpreter: Any, shapes: Sequence[Sequence[int]]) -> list[Array]:
    """What it makes of numbers of these shapes."""
    rng = np.random.default_rng(7)
    details = interpreter.get_input_details()
    for detail, shape in zip(details, shapes, strict=True):
        interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
    values = {
        detail["index"]: rng.integers(0, 50, shape).astype(np.int32)
        if detail["dtype"] == np.int32
        else rng.standard_normal(shape).astype(np.float32)
        for detail, shape in zip(details, shapes, strict=True)
    }
    return outputs(interpreter, values)


Shapes = Callable[[np.random.Generator], Sequence[Sequence[int]]]


def of_attention(rng: np.random.Generator) -> Sequence[Sequence[int]]:
    batch, length = int(rng.integers(1, 4)), int(rng.integers(1, 71))
    return [[batch, length, 16], [batch, 1, 1, length]]


def of_one_attention(rng: np.random.Generator) -> Sequence[Sequence[int]]:
    length = int(rng.integers(1, 71))
    return [[1, length, 16], [1, 1, 1, length]]


@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (attention, of_attention),
        (attention, of_one_attention),
        (images, lambda rng: [[1, int(rng.integers(5, 40)), int(rng.integers(5, 40)), 3]]),
        (images, lambda rng: [[int(rng.integers(1, 31)), 9, 9, 3]]),
        (positions, lambda rng: [[1, int(rng.integers(1, 71))]]),
        (rotary, lambda rng: [[int(rng.integers(1, 3)), int(rng.integers(1, 40)), 16]]),
        (rotary, lambda rng: [[1, int(rng.integers(225, 275)), 16]]),
        (frames, lambda rng: [[1, int(rng.integers(64, 900))]]),
        (products, lambda rng: [[1, int(rng.integers(1, 71)), 24]]),
    ],
    ids=[
        "attention",
        "attention of one",
        "images",
        "batches of images",
        "positions",
        "rotary",
        "long rotary",
        "frames",
        "products",
    ],
)
def test_filled_in_it_is_what_the_shape_alone_would_become(model: Callable[[], bytes], shapes: Shapes) -> None:
    content, rng = model(), np.random.default_rng(1)
    interpreter = Interpreter(model_content=content)
    filled = 0
    for _ in range(14):
        chosen = shapes(rng)
        results = run(interpreter, chosen)
        alone = Interpreter(model_content=content)
        wanted = run(alone, chosen)
        assert [one.tobytes() for one in results] == [one.tobytes() for one in wanted]
        assert [one.shape for one in results] == [one.shape for one in wanted]
        kernel, fresh = kernel_of(interpreter), kernel_of(alone)
        assert not fresh.is_filled
        assert kernel.program is not None
        assert fresh.program is not None
        if kernel.is_filled:
            filled += 1
            assert plans.plain(kernel.program.plan) == plans.plain(fresh.program.plan)
        # What there is to say of commands is about those that run.
        assert kernel.built is not None
        assert len(kernel.built.steps) == len(kernel.program.plan.commands)
    assert filled >= 6
    templates = kernel_of(interpreter)._templates
    assert templates is not None
    assert not templates.failure
    assert not any(template.closed for template in templates._made)
    assert all(template.is_cast for template in templates._made)


def one_template_serves(content: bytes, shapes: Sequence[list[int]]) -> Interpreter:
    """Shapes of the only input, from the second on: to the bit what a fresh plan gives, and the same plan."""
    interpreter = Interpreter(model_content=content)
    for number, shape in enumerate(shapes):
        results, alone = run(interpreter, [shape]), Interpreter(model_content=content)
        assert [one.tobytes() for one in results] == [one.tobytes() for one in run(alone, [shape])]
        kernel, fresh = kernel_of(interpreter), kernel_of(alone)
        assert kernel.is_filled == (number >= 1)
        assert kernel.program is not None
        assert fresh.program is not None
        assert plans.plain(kernel.program.plan) == plans.plain(fresh.program.plan)
    templates = kernel_of(interpreter)._templates
    assert templates is not None
    (only,) = templates._made
    assert not only.closed
    return interpreter


def test_padding_of_even_and_of_odd_images_is_one_template() -> None:
    net = Net()
    x = y = net.tensor((1, 8, 8, 3))
    down = Conv2DOptions(padding=Padding.SAME, stride_h=2, stride_w=2)
    for depth, units in ((3, 8), (8, 5)):
        y = net.then("CONV_2D", [y, net.weights(units, 3, 3, depth), net.weights(units)], 4, down)
    net.io([x], [y])
    content = net.model()
    one_template_serves(content, [[1, size, size, 3] for size in (40, 41, 42, 43, 44, 45)])


def waves() -> bytes:
    """Sines of the numbers below a length, which are added to as many numbers and weight them."""
    net = Net()
    x = net.tensor((4,))
    numbers = net.then("RANGE", [net.scalar(0), net.size(x, 0), net.scalar(1)], 1, RangeOptions(), INT)
    step = net.constant(0.3, np.float32, FLOAT)
    angles = net.then("MUL", [net.then("CAST", [numbers], 1, CastOptions(), FLOAT), step], 1)
    waves = net.then("SIN", [angles], 1)
    weights = net.then("SOFTMAX", [net.then("ADD", [x, waves], 1)], 1, SoftmaxOptions(beta=1.0))
    net.io([x], [net.then("MUL", [weights, waves], 1)])
    return net.model()


def wide_attention() -> bytes:
    """Heads of 48 numbers, of any length, which become rows of 96 again, with a layer norm's factor for each."""
    net = Net()
    x = net.tensor((1, 4, 96))
    heads = net.pack(net.size(x, 0), net.size(x, 1), net.scalar(2), net.scalar(48))
    order = net.ints(0, 2, 1, 3)

    def head() -> int:
        rows = net.then("RESHAPE", [net.dense(x, 96, 96), heads], 4, ReshapeOptions())
        return net.then("TRANSPOSE", [rows, order], 4, TransposeOptions())

    q, k, v = head(), head(), head()
    scores = net.then("BATCH_MATMUL", [q, k], 4, BatchMatMulOptions(adj_y=True))
    found = net.then("BATCH_MATMUL", [net.then("SOFTMAX", [scores], 4, SoftmaxOptions(beta=1.0)), v], 4)
    rows = net.then("TRANSPOSE", [found, order], 4, TransposeOptions())
    joined = net.then("RESHAPE", [rows, net.pack(net.size(x, 0), net.scalar(-1), net.scalar(96))], 3, ReshapeOptions())
    mean = net.then("MEAN", [joined, net.ints(2)], 3, ReducerOptions(keep_dims=True))
    net.io([x], [net.then("MUL", [net.then("SUB", [joined, mean], 3), net.weights(96)], 3)])
    return net.model()


def test_ends_of_panels_are_numbers_and_make_no_commands_of_their_own() -> None:
    net = Net()
    x = net.tensor((1, 4, 16))
    net.io([x], [net.then("BATCH_MATMUL", [x, x], 3, BatchMatMulOptions(adj_y=True))])
    lengths = [length for length in range(33, 64) if length % 16 in (1, 7, 8, 9, 15)]
    interpreter = one_template_serves(net.model(), [[1, length, 16] for length in lengths])
    templates = kernel_of(interpreter)._templates
    assert templates is not None
    commands = templates._made[0]._commands
    assert commands is not None
    assert [len(step.form.__self__._forms) for step in commands._steps.values()] == [2]  # of three vectors, and of four


def test_lengths_on_both_sides_of_the_depth_of_a_head_and_of_long_maps_are_one_template() -> None:
    content = wide_attention()
    lengths = (40, 41, 42, 43, 48, 49, 90, 96)  # rows of 96 floats are 8192 from 86 on
    one_template_serves(content, [[1, length, 96] for length in lengths])


@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (attention, of_one_attention),
        (waves, lambda rng: [[int(rng.integers(257, 400))]]),  # computed once, in parts
        pytest.param(rotary, lambda rng: [[1, int(rng.integers(1, 40)), 16]], marks=pytest.mark.slow),
        pytest.param(images, lambda rng: [[1, *[int(rng.integers(5, 40))] * 2, 3]], marks=pytest.mark.slow),
    ],
    ids=["attention", "waves", "rotary", "images"],
)
def test_without_a_compiler_it_is_the_same_of_what_ships(
    model: Callable[[], bytes], shapes: Shapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels that do not ship fall into parts, and others take their place, as they do for each shape alone."""
    for module in (compiling, template):
        monkeypatch.setattr(module, "at_hand_for", lambda target: shipped(target).__contains__)
    monkeypatch.setattr(compiling, "compiled_of", made_of_what_ships)
    content, rng = model(), np.random.default_rng(1)
    interpreter = Interpreter(model_content=content)
    filled = 0
    for _ in range(6):
        chosen = shapes(rng)
        results, alone = run(interpreter, chosen), Interpreter(model_content=content)
        assert [one.tobytes() for one in results] == [one.tobytes() for one in run(alone, chosen)]
        kernel, fresh = kernel_of(interpreter), kernel_of(alone)
        assert kernel.program is not None
        assert fresh.program is not None
        assert plans.plain(kernel.program.plan) == plans.plain(fresh.program.plan)
        assert set(kernel.program.plan.kernels) <= shipped(kernel.target).keys()
        filled += kernel.is_filled
    assert filled >= 3
    templates = kernel_of(interpreter)._templates
    assert templates is not None
    assert not any(one.closed for one in templates._made)
    assert all(one.is_cast for one in templates._made)


def random_rows(seed: int) -> bytes:
    """Layers at random of rows [batch, length, 24], both of any size."""
    net = Net(seed)
    x = y = net.tensor((1, 4, 24))
    order, last = net.ints(0, 2, 1), net.ints(2)

    def dense(y: int) -> int:
        units = int(net.rng.integers(1, 140))
        return net.dense(net.then("RELU", [net.dense(y, 24, units)], 3), units, 24)

    def attention(y: int) -> int:
        scores = net.then("BATCH_MATMUL", [y, net.dense(y, 24, 24)], 3, BatchMatMulOptions(adj_y=True))
        return net.then("BATCH_MATMUL", [net.then("SOFTMAX", [scores], 3, SoftmaxOptions(beta=1.0)), y], 3)

    def turned(y: int) -> int:
        columns = net.then("TRANSPOSE", [y, order], 3, TransposeOptions())
        return net.then("TRANSPOSE", [net.then("SOFTMAX", [columns], 3, SoftmaxOptions(beta=1.0)), order], 3)

    def normalized(y: int) -> int:
        mean = net.then("MEAN", [y, last], 3, ReducerOptions(keep_dims=True))
        apart = net.then("SQUARED_DIFFERENCE", [y, mean], 3)
        spread = net.then("MEAN", [apart, last], 3, ReducerOptions(keep_dims=True))
        return net.then("MUL", [net.then("SUB", [y, mean], 3), net.then("RSQRT", [spread], 3)], 3)

    def over_rows(y: int) -> int:
        kind = ("SUM", "MEAN", "REDUCE_MAX")[int(net.rng.integers(3))]
        return net.then("ADD", [y, net.then(kind, [y, net.ints(1)], 3, ReducerOptions(keep_dims=True))], 3)

    def twice(y: int) -> int:
        both = net.then("CONCATENATION", [y, net.then("TANH", [y], 3)], 3, ConcatenationOptions(axis=1))
        ends = [net.ints(0, 0, 0), net.ints(0, 0, 0), net.ints(1, 2, 1)]
        return net.then("STRIDED_SLICE", [both, *ends], 3, StridedSliceOptions(begin_mask=7, end_mask=7))

    layers = (dense, attention, turned, normalized, over_rows, twice)
    for _ in range(5):
        made = layers[int(net.rng.integers(len(layers)))](y)
        y = net.then("ADD", [y, made], 3) if net.rng.integers(2) else made
    net.io([x], [y])
    return net.model()


@pytest.mark.parametrize("seed", range(6))
def test_random_rows(seed: int) -> None:
    content, rng = random_rows(seed), np.random.default_rng(seed)
    interpreter = Interpreter(model_content=content)
    filled = 0
    for _ in range(9):
        shapes = [[int(rng.integers(1, 3)), int(rng.integers(1, 60)), 24]]
        results, alone = run(interpreter, shapes), Interpreter(model_content=content)
        assert [one.tobytes() for one in results] == [one.tobytes() for one in run(alone, shapes)]
        kernel, fresh = kernel_of(interpreter), kernel_of(alone)
        filled += kernel.is_filled
        assert kernel.program is not None
        assert fresh.program is not None
        assert plans.plain(kernel.program.plan) == plans.plain(fresh.program.plan)
    assert filled
    templates = kernel_of(interpreter)._templates
    assert templates is not None
    assert not templates.failure
    assert not any(template.closed for template in templates._made)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "dynamic"])  # whose constants are of one batch
@pytest.mark.parametrize("seed", range(2))
def test_random_batches(seed: int, form: Form) -> None:
    graph = RandomGraph(seed, form)
    content = graph.model()
    interpreter, rng = Interpreter(model_content=content), np.random.default_rng(seed)
    for _ in range(7):
        batch = [int(rng.integers(1, 20)), *graph.input_shape[1:]]
        for one in (interpreter, alone := Interpreter(model_content=content)):
            one.resize_tensor_input(one.get_input_details()[0]["index"], batch)
            one.allocate_tensors()
        kernel, fresh = kernel_of(interpreter), kernel_of(alone)
        assert kernel.program is not None
        assert fresh.program is not None
        assert plans.plain(kernel.program.plan) == plans.plain(fresh.program.plan)


def test_lengths_that_grow_and_shrink_and_are_nothing() -> None:
    content = attention()
    interpreter = Interpreter(model_content=content)
    filled = 0
    for length in (5, 6, 7, 8, 1, 0, 9, 12, 0, 1, 2, 90, 33, 3, 64, 90):
        shapes = [[1, length, 16], [1, 1, 1, length]]
        results = run(interpreter, shapes)
        assert [one.tobytes() for one in results] == [
            one.tobytes() for one in run(Interpreter(model_content=content), shapes)
        ]
        filled += kernel_of(interpreter).is_filled
    assert filled


def test_batches_of_nothing_are_no_templates_and_leave_others_theirs(caplog: pytest.LogCaptureFixture) -> None:
    interpreter = Interpreter(model_content=attention())
    for batch, length in ((1, 4), (0, 5), (2, 0), (0, 6)):
        (found,) = run(interpreter, [(batch, length, 16), (1, 1, 1, length)])
        assert found.shape == (batch, 16)
        assert not kernel_of(interpreter).is_filled
    run(interpreter, [(3, 7, 16), (1, 1, 1, 7)])
    assert kernel_of(interpreter).is_filled
    assert not caplog.records


def test_weights_that_kernels_share_are_packed_once() -> None:
    net = Net()
    x = y = net.tensor((1, 4, 24))
    weights, bias = net.weights(24, 24), net.weights(24)
    for _ in range(3):
        y = net.then("FULLY_CONNECTED", [y, weights, bias], 3, FullyConnectedOptions(keep_num_dims=True))
        y = net.then("TANH", [y], 3)
    net.io([x], [y])
    content = net.model()
    interpreter = Interpreter(model_content=content)
    for length in (4, 20, 21, 22, 45):
        run(interpreter, [[1, length, 24]])
        kernel, fresh = kernel_of(interpreter), Interpreter(model_content=content)
        run(fresh, [[1, length, 24]])
        alone = kernel_of(fresh).program
        assert kernel.program is not None
        assert alone is not None
        assert plans.plain(kernel.program.plan) == plans.plain(alone.plan)
    assert kernel.is_filled
    assert len(kernel.program.plan.packing) == 1
    assert kernel._templates is not None
    assert all(template.is_cast for template in kernel._templates._made)


def test_threads_meet_before_what_they_have_packed_is_packed_again() -> None:
    """With AVX-512 VBMI2, weights of 128 KB and one row become panels of floats, and these words of 24 bits."""
    net = Net()
    x = net.tensor((1, 4, 160))
    mean = net.then("MEAN", [x, net.ints(1)], 2, ReducerOptions())
    net.io(
        [x], [net.then("FULLY_CONNECTED", [mean, net.weights(256, 160), net.weights(256)], 2, FullyConnectedOptions())]
    )
    interpreter = one_template_serves(net.model(), [[1, length, 160] for length in (4, 20, 21, 22)])
    program = kernel_of(interpreter).program
    assert program is not None
    target = kernel_of(interpreter).target
    is_narrow = narrows(target) and target.lanes() == 16
    assert any("i24_pack" in name for name in program.plan.kernels) == is_narrow
    assert program.plan.packing[:, 2].any() == is_narrow


def test_what_is_worked_out_of_scalar_sizes_is_read() -> None:
    net = Net()
    x = net.tensor((4,), INT)
    least = net.then("SUB", [net.size(x, 0), net.scalar(3)], 0, SubOptions(), INT)
    net.io([x], [net.then("MAXIMUM", [x, net.then("NEG", [least], 0, type=INT)], 1, type=INT)])
    interpreter = Interpreter(model_content=net.model())
    for size in (5, 6, 7, 8, 90):
        interpreter.resize_tensor_input(0, [size])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.arange(size, dtype=np.int32) - 50)
        interpreter.invoke()
        assert kernel_of(interpreter)
        wanted = np.maximum(np.arange(size) - 50, 3 - size)
        assert np.array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), wanted)


def test_a_known_shape_is_neither_made_nor_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = Interpreter(model_content=products())
    made = []
    make = JitKernel._make
    monkeypatch.setattr(JitKernel, "_make", lambda *arguments: made.append(1) or make(*arguments))
    for rows in (5, 6, 7, 8, 9, 6, 8, 9, 5):
        run(interpreter, [[1, rows, 24]])
    assert len(made) == 5
    assert kernel_of(interpreter).is_filled is False  # five rows, planned before there was a template


def test_templates_wait_until_a_shape_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    begin = Template.__init__
    monkeypatch.setattr(Template, "__init__", lambda *arguments: made.append(1) or begin(*arguments))
    interpreter = Interpreter(model_content=products())
    for number, rows in enumerate(range(20, 20 + FEWEST_SEEN + 3), 1):
        run(interpreter, [[1, rows, 24]])
        assert not made or number >= FEWEST_SEEN
    assert len(made) == 1


def test_real_numbers_of_sizes_alone() -> None:
    """They are worked out by who would do it if sizes were known: when nodes are prepared as long as they are few, and
    then by the program."""
    content = waves()
    interpreter = Interpreter(model_content=content)
    filled = []
    for size in (3, 4, 5, 6, 7, 8, 200, 256, 257, 258, 300, 400):
        results = run(interpreter, [[size]])
        alone = Interpreter(model_content=content)
        assert results[0].tobytes() == run(alone, [[size]])[0].tobytes()
        kernel, fresh = kernel_of(interpreter), kernel_of(alone)
        assert kernel.program is not None
        assert fresh.program is not None
        assert plans.plain(kernel.program.plan) == plans.plain(fresh.program.plan)
        assert kernel.program.memory["constants"].view() == fresh.program.memory["constants"].view()
        filled.append(kernel.is_filled)
        assert bool(len(kernel.program.plan.computing)) == (size > 256)
    assert sum(filled) == 11
    templates = kernel_of(interpreter)._templates
    assert templates is not None
    assert not templates.failure
    assert not any(template.closed for template in templates._made)


def test_lengths_share_weights_beside_what_is_computed_of_them() -> None:
    interpreter = Interpreter(model_content=rotary())
    programs = []
    for length in (280, 290, 300, 310, 320):
        run(interpreter, [[1, length, 16]])
        programs.append(kernel_of(interpreter).program)
    assert kernel_of(interpreter).is_filled
    made = [program for program in programs if program is not None]
    assert len({program.plan.packs for program in made}) == 1
    assert len({program.memory["weights"].address for program in made}) == 1
    assert len({program.memory["computed"].address for program in made}) == len(made) == 5
    assert all(len(program.plan.computing) for program in made)


def test_plans_that_a_template_makes_are_written_when_the_kernel_goes(tmp_path: Path) -> None:
    path = tmp_path / "products.tflite"
    path.write_bytes(products())
    interpreter = Interpreter(model_path=path)
    for rows in range(30, 36):
        run(interpreter, [[1, rows, 24]])
    kernel = kernel_of(interpreter)
    assert kernel.is_filled
    assert kernel.is_known
    assert not kernel.is_kept
    kernel.free()
    another = Interpreter(model_path=path)
    run(another, [[1, 35, 24]])
    assert kernel_of(another).is_known
    assert kernel_of(another).is_kept
    assert not kernel_of(another).is_filled


def test_errors_are_those_of_the_nodes() -> None:
    interpreter, alone = Interpreter(model_content=positions()), Interpreter(model_content=positions())
    for length in (3, 4, 5, 6, 7):
        run(interpreter, [[1, length]])
    assert kernel_of(interpreter).is_filled
    messages = []
    for one in (interpreter, alone):
        one.resize_tensor_input(0, [1, 7])
        one.allocate_tensors()
        one.set_tensor(0, np.full((1, 7), 99, np.int32))
        with pytest.raises(InvokeError) as error:
            one.invoke()
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    for one in (interpreter, alone):
        one.resize_tensor_input(0, [1, 100])
        with pytest.raises(PrepareError) as refusal:
            one.allocate_tensors()
        messages.append(str(refusal.value))
    assert messages[2] == messages[3]
    assert run(interpreter, [[1, 9]])[0].tobytes() == run(alone, [[1, 9]])[0].tobytes()


def running_total() -> bytes:
    """The sum of all rows so far, of any number, in a variable."""
    net = Net()
    x, handle = net.tensor((1, 4)), net.tensor((1,), TensorType.RESOURCE)
    before, total, y = net.tensor((1, 4)), net.tensor((1, 4)), net.tensor((1, 4))
    net.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    net.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    net.op("READ_VARIABLE", [handle], [before])
    net.op("SUM", [x, net.ints(0)], [total], ReducerOptions(keep_dims=True))
    net.op("ADD", [before, total], [y])
    net.op("ASSIGN_VARIABLE", [handle, y], [])
    net.io([x], [y])
    net.subgraph("init")
    handle = net.tensor((1,), TensorType.RESOURCE)
    net.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    net.op("ASSIGN_VARIABLE", [handle, net.constant(np.zeros((1, 4)), np.float32, FLOAT)], [])
    net.io([], [])
    return net.model()


def test_variables_stay_where_shapes_change() -> None:
    interpreter, total = Interpreter(model_content=running_total()), np.zeros((1, 4), np.float32)
    for count in (5, 8, 3, 12, 7, 12):
        x = np.full((count, 4), 0.5, np.float32)
        interpreter.resize_tensor_input(0, x.shape)
        interpreter.allocate_tensors()
        for _ in range(2):
            total = total + x.sum(0)
            np.testing.assert_array_equal(outputs(interpreter, {0: x})[0], total)
    assert kernel_of(interpreter).is_filled
