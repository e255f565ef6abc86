"""Chains of operators that move elements, against the reference kernels: every byte must come out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

from gossamer.codegen.kernels.gather import Gather
from gossamer.dtypes import numpy_dtype
from gossamer.errors import InvokeError
from gossamer.schema import (
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    CumsumOptions,
    GatherOptions,
    MirrorPadMode,
    MirrorPadOptions,
    PackOptions,
    Padding,
    SplitOptions,
    StridedSliceOptions,
    TensorType,
    UnpackOptions,
)
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

TYPES = (
    *(TensorType.FLOAT32, TensorType.FLOAT32, TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8),
    *(TensorType.INT16, TensorType.INT32, TensorType.INT64),
)

LARGEST = 20_000


class Moves(ModelMaker):
    """A model of operators that move elements of one type, and, if that is float32, of a few that compute."""

    def __init__(self, choose: random.Random, type: TensorType) -> None:
        super().__init__()
        self.choose, self.type = choose, type
        self.shapes: dict[int, tuple[int, ...]] = {}

    def made(
        self, name: str, inputs: Sequence[int], shape: Sequence[int], options: Any = None, version: int = 1
    ) -> int:
        (y,) = self.made_several(name, inputs, [shape], options, version)
        return y

    def made_several(
        self, name: str, inputs: Sequence[int], shapes: Sequence[Sequence[int]], options: Any = None, version: int = 1
    ) -> list[int]:
        made = [self.tensor(shape, self.type) for shape in shapes]
        self.shapes.update(zip(made, map(tuple, shapes), strict=True))
        self.op(name, inputs, made, options, version)
        return made

    def numbers(self, values: Any) -> int:
        return self.constant(values, np.int32, TensorType.INT32)

    def axis(self, x: int) -> int:
        return self.choose.randrange(len(self.shapes[x]))

    def transpose(self, x: int) -> int:
        shape = self.shapes[x]
        order = self.choose.sample(range(len(shape)), len(shape))
        return self.made("TRANSPOSE", [x, self.numbers(order)], [shape[axis] for axis in order])

    def reshape(self, x: int) -> int:
        rest, shape = prod(self.shapes[x]), []
        while rest > 1 and len(shape) < 4:
            shape.append(self.choose.choice([n for n in range(1, rest + 1) if rest % n == 0]))
            rest //= shape[-1]
        shape.append(rest)
        return self.made("RESHAPE", [x, self.numbers(shape)], shape)

    def concat(self, x: int, *others: int) -> int:
        axis = self.axis(x)
        shape = list(self.shapes[x])
        fitting = [
            other
            for other in others
            if len(self.shapes[other]) == len(shape)
            and all(n == axis or a == b for n, (a, b) in enumerate(zip(shape, self.shapes[other], strict=True)))
        ]
        parts = [x, *self.choose.choices(fitting, k=self.choose.choice([1, 2, 3]))]
        shape[axis] = sum(self.shapes[part][axis] for part in parts)
        return self.made("CONCATENATION", parts, shape, ConcatenationOptions(axis=axis))

    def slice(self, x: int) -> int:
        sizes = [self.choose.randint(1, size) for size in self.shapes[x]]
        begin = [self.choose.randint(0, room - size) for room, size in zip(self.shapes[x], sizes, strict=True)]
        return self.made("SLICE", [x, self.numbers(begin), self.numbers(sizes)], sizes)

    def strided_slice(self, x: int) -> int:
        steps = [self.choose.choice([1, 1, 2, 3, -1, -2]) for _ in self.shapes[x]]
        sizes = [-(-size // abs(step)) for size, step in zip(self.shapes[x], steps, strict=True)]
        everything = (1 << len(steps)) - 1
        options = StridedSliceOptions(begin_mask=everything, end_mask=everything)
        zeros = self.numbers([0] * len(steps))
        return self.made("STRIDED_SLICE", [x, zeros, zeros, self.numbers(steps)], sizes, options)

    def pad(self, x: int) -> int:
        pairs = [(self.choose.choice([0, 0, 1, 3]), self.choose.choice([0, 0, 2])) for _ in self.shapes[x]]
        shape = [before + size + after for size, (before, after) in zip(self.shapes[x], pairs, strict=True)]
        return self.made("PAD", [x, self.numbers(pairs)], shape, version=4)

    def mirror_pad(self, x: int) -> int:
        reflects = self.choose.random() < 0.5
        pairs = [[self.choose.randint(0, min(4, size - reflects)) for _ in range(2)] for size in self.shapes[x]]
        shape = [before + size + after for size, (before, after) in zip(self.shapes[x], pairs, strict=True)]
        mode = MirrorPadMode.REFLECT if reflects else MirrorPadMode.SYMMETRIC
        return self.made("MIRROR_PAD", [x, self.numbers(pairs)], shape, MirrorPadOptions(mode=mode))

    def tile(self, x: int) -> int:
        factors = [self.choose.choice([1, 1, 1, 2, 3]) for _ in self.shapes[x]]
        shape = [size * n for size, n in zip(self.shapes[x], factors, strict=True)]
        return self.made("TILE", [x, self.numbers(factors)], shape)

    def broadcast(self, x: int) -> int:
        shape = [self.choose.choice([2, 5]) if size == 1 else size for size in self.shapes[x]]
        shape = [self.choose.choice([1, 3])] * (len(shape) < 4) + shape
        return self.made("BROADCAST_TO", [x, self.numbers(shape)], shape, version=2)

    def reverse(self, x: int) -> int:
        return self.made("REVERSE_V2", [x, self.numbers([self.axis(x)])], self.shapes[x])

    def split(self, x: int) -> int:
        axis, shape = self.axis(x), list(self.shapes[x])
        parts = self.choose.choice([n for n in (1, 2, 3, 4) if shape[axis] % n == 0])
        shape[axis] //= parts
        made = self.made_several("SPLIT", [self.numbers(axis), x], [shape] * parts, SplitOptions(num_splits=parts))
        return self.choose.choice(made)

    def pack(self, x: int) -> int:
        shape = list(self.shapes[x])
        axis, count = self.choose.randint(0, len(shape)), self.choose.choice([1, 2, 3])
        options = PackOptions(values_count=count, axis=axis)
        return self.made("PACK", [x] * count, [*shape[:axis], count, *shape[axis:]], options)

    def unpack(self, x: int) -> int:
        axis, shape = self.axis(x), list(self.shapes[x])
        count = shape.pop(axis)
        made = self.made_several("UNPACK", [x], [shape] * count, UnpackOptions(num=count, axis=axis))
        return self.choose.choice(made)

    def gather(self, x: int) -> int:
        shape, axis = self.shapes[x], self.axis(x)
        batch = self.choose.randint(0, axis)
        picked = [*shape[:batch], *self.choose.choice([[], [3], [2, 2]])]
        indices = np.random.default_rng(self.choose.getrandbits(32)).integers(0, shape[axis], picked)
        options = GatherOptions(axis=axis, batch_dims=batch)
        result = [*shape[:axis], *picked[batch:], *shape[axis + 1 :]]
        return self.made("GATHER", [x, self.numbers(indices)], result, options, version=5)

    def gather_nd(self, x: int) -> int:
        shape = self.shapes[x]
        components = self.choose.randint(1, len(shape))
        make = np.random.default_rng(self.choose.getrandbits(32))
        vectors = np.stack([make.integers(0, size, (3,)) for size in shape[:components]], -1)
        return self.made("GATHER_ND", [x, self.numbers(vectors)], (3, *shape[components:]))

    def cumsum(self, x: int) -> int:
        options = CumsumOptions(exclusive=self.choose.random() < 0.5, reverse=self.choose.random() < 0.5)
        return self.made("CUMSUM", [x, self.numbers([self.axis(x)])], self.shapes[x], options)

    def bitcast(self, x: int) -> int:
        """To bytes and back."""
        shape, size = self.shapes[x], numpy_dtype(self.type).itemsize
        bytes = self.tensor((*shape, size) if size > 1 else shape, TensorType.INT8)
        self.op("BITCAST", [x], [bytes])
        return self.made("BITCAST", [bytes], shape)

    def update(self, x: int) -> int:
        part = self.slice(x)
        starts = [self.choose.randint(-1, size) for size in self.shapes[x]]
        return self.made("DYNAMIC_UPDATE_SLICE", [x, part, self.numbers(starts)], self.shapes[x])

    def add(self, x: int) -> int:
        return self.made("ADD", [x, x], self.shapes[x], AddOptions())

    def convolution(self, x: int) -> int:
        size = self.choose.choice([1, 3])
        *image, depth = self.shapes[x]
        weights = np.random.default_rng(0).integers(-2, 3, (4, size, size, depth))
        filter = self.constant(weights, np.float32, TensorType.FLOAT32)
        bias = self.constant(np.zeros(4), np.float32, TensorType.FLOAT32)
        options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
        return self.made("CONV_2D", [x, filter, bias], [*image, 4], options)


MOVES = (
    *("transpose", "reshape", "concat", "concat", "slice", "strided_slice", "pad", "mirror_pad", "tile", "broadcast"),
    *("reverse", "split", "pack", "unpack", "update", "gather", "gather_nd"),
    "bitcast",
)


@pytest.mark.parametrize("seed", seeds(50, 150))
def test_moves(seed: int) -> None:
    choose = random.Random(seed)
    type = choose.choice(TYPES)
    net = Moves(choose, type)
    shape = [choose.choice([1, 2, 3, 4, 6, 8, 17]) for _ in range(choose.choice([2, 3, 4, 4]))]
    x = net.tensor(shape, type)
    net.shapes[x] = tuple(shape)
    known = [x]
    for _ in range(choose.choice([1, 2, 4, 8])):
        source = choose.choice(known[-3:])
        shape = list(net.shapes[source])
        moves = [move for move in MOVES if move != "unpack" or (len(shape) > 1 and type != TensorType.INT64)]
        if len(shape) >= 5:
            moves = ["reshape", "strided_slice", "gather", "gather_nd"]
        if type in (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64):
            moves.append("cumsum")
        if type == TensorType.FLOAT32:
            moves += ["add", "add"] + ["convolution"] * 3 * (len(shape) == 4)
        move = getattr(net, choose.choice(moves))
        y = move(source, *known) if move.__name__ == "concat" else move(source)
        if not net.shapes[y] or prod(net.shapes[y]) > LARGEST:
            continue
        known.append(y)
    results = {known[-1] if len(known) > 1 else net.transpose(x), *choose.sample(known[1:], min(len(known) - 1, 2))}
    net.io([x], sorted(results))
    values = np.random.default_rng(seed).integers(-9, 10, net.shapes[x]).astype(numpy_dtype(type))
    check(net.model(), {x: values}, target=choose.choice(TARGETS))


@pytest.mark.parametrize(
    ("type", "run", "kernel"),
    [
        (TensorType.FLOAT32, 2, "x64_transpose"),
        (TensorType.INT8, 4, "x32_transpose"),
        (TensorType.INT8, 3, "x8_copy"),
        (TensorType.FLOAT32, 1, "x32_transpose"),
        (TensorType.FLOAT32, 4, "x8_copy"),
    ],
)
def test_short_runs_are_elements(type: TensorType, run: int, kernel: str) -> None:
    make = ModelMaker()
    x, y = make.tensor((9, 21, run), type), make.tensor((21, 9, run), type)
    make.op("TRANSPOSE", [x, make.constant([1, 0, 2], np.int32, TensorType.INT32)], [y])
    make.io([x], [y])
    value = np.arange(9 * 21 * run).reshape(9, 21, run).astype(numpy_dtype(type))
    check(make.model(), {x: value})
    _, made = machine_code(make.model(), target=TARGETS[0])
    assert made.built is not None
    assert [step.kernel.split("__")[0] for step in made.built.steps] == [kernel]


def test_reversed_along_an_axis_that_is_computed() -> None:
    make = ModelMaker()
    x, axis = make.tensor((3, 4, 5), TensorType.INT16), make.tensor((1,), TensorType.INT32)
    y = make.tensor((3, 4, 5), TensorType.INT16)
    make.op("REVERSE_V2", [x, axis], [y], version=3)
    make.io([x, axis], [y])
    numbers = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    for along in (0, 1, -1):
        check(make.model(), {x: numbers, axis: np.int32([along])})


def test_a_box_whose_begin_and_size_are_computed() -> None:
    """The file says how large it is; where the run says another size, it is an error."""
    make = ModelMaker()
    x, begin, size = (
        make.tensor(shape, type)
        for shape, type in (((3, 4, 5), TensorType.INT16), ((3,), TensorType.INT64), ((3,), TensorType.INT64))
    )
    y = make.tensor((2, 4, 3), TensorType.INT16)
    make.op("SLICE", [x, begin, size], [y], version=4)
    make.io([x, begin, size], [y])
    fed = {x: np.arange(60, dtype=np.int16).reshape(3, 4, 5)}
    for first, count in (([0, 0, 0], [2, 4, 3]), ([1, 0, 2], [-1, -1, 3]), ([1, 0, 1], [2, -1, 3])):
        check(make.model(), {**fed, begin: np.int64(first), size: np.int64(count)})
    interpreter, _ = machine_code(make.model())
    for first, count in (
        ([0, 0, 0], [1, 4, 3]),
        ([0, 0, 0], [-1, 4, 3]),
        ([-1, 0, 0], [2, 4, 3]),
        ([1, 0, 3], [2, 4, 3]),
    ):
        with pytest.raises(InvokeError):
            outputs(interpreter, {**fed, begin: np.int64(first), size: np.int64(count)})


@pytest.mark.parametrize(("rows", "width", "groups"), [(700, 16, 3), (41, 100, 2), (5, 5000, 5)])
def test_rows_are_gathered_many_at_a_time(rows: int, width: int, groups: int) -> None:
    """As many as are worth a task; the last one has what is left."""
    make = ModelMaker()
    x, at, y = (
        make.tensor(shape, type)
        for shape, type in (
            ((9, width), TensorType.INT8),
            ((rows,), TensorType.INT32),
            ((rows, width), TensorType.INT8),
        )
    )
    make.op("GATHER", [x, at], [y], GatherOptions(), version=2)
    make.io([x, at], [y])
    rng = np.random.default_rng(0)
    check(make.model(), {x: rng.integers(-99, 99, (9, width), np.int8), at: rng.integers(0, 9, rows, np.int32)})
    _, made = machine_code(make.model(), target=TARGETS[0])
    assert made.program is not None
    plan = made.program.plan
    ((_, block, _),) = plan.commands
    found = {name: plan.words[(block + Gather.arguments[name].offset) // 8] for name in ("groups", "positions", "last")}
    assert found["groups"] == groups
    assert (groups - 1) * found["positions"] + found["last"] == rows
