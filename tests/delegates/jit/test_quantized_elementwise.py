"""Elementwise operators of quantized bytes on the default path: LiteRT's formulas, and tables in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.codegen.kernels.scale import has_dots, runs
from gossamer.dtypes import numpy_dtype
from gossamer.programs.program import WEIGHTS
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    GeluOptions,
    LeakyReluOptions,
    MulOptions,
    QuantizationParameters,
    SquaredDifferenceOptions,
    SubOptions,
    Table,
    TensorType,
)
from tests.delegates.jit.running import TARGETS, machine_code, outputs
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

I8, U8, F32, BOOL = TensorType.INT8, TensorType.UINT8, TensorType.FLOAT32, TensorType.BOOL
NONE = ActivationFunctionType.NONE
Array = np.ndarray[Any, Any]
both = pytest.mark.parametrize("type", [I8, U8], ids=["int8", "uint8"])


class Maker(ModelMaker):
    """Models of quantized operators, and what goes in."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)
        self.values: dict[int, Array] = {}

    def bytes(self, type: TensorType, scale: float, zero_point: int, shape: tuple[int, ...]) -> int:
        quantization = QuantizationParameters(scale=np.float32([scale]), zero_point=np.int64([zero_point]))
        return self.tensor(shape, type, quantization=quantization)

    def given(
        self, type: TensorType, scale: float, zero_point: int, shape: tuple[int, ...], *, fixed: bool = False
    ) -> int:
        """An input, or a constant."""
        drawn = self.rng.integers(0, 256, shape).astype(np.uint8).view(numpy_dtype(type))
        if drawn.size >= 256:
            drawn.reshape(-1)[:256] = np.arange(256, dtype=np.uint8).view(drawn.dtype)
        if fixed:
            quantization = QuantizationParameters(scale=np.float32([scale]), zero_point=np.int64([zero_point]))
            return self.constant(drawn, drawn.dtype, type, quantization=quantization)
        tensor = self.bytes(type, scale, zero_point, shape)
        self.values[tensor] = drawn
        return tensor

    def finish(self, *results: int) -> bytes:
        self.io(list(self.values), results)
        return self.model()


def run(make: Maker, *results: int) -> list[Array]:
    """What the default path makes of it, which leaves nothing to reference kernels."""
    model = make.finish(*results)
    interpreter = gossamer.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals, dict(claims.refusals)
    return outputs(interpreter, make.values)


def limits(type: TensorType) -> tuple[int, int]:
    info = np.iinfo(numpy_dtype(type))
    return info.min, info.max


@both
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_swish_is_one_table(type: TensorType, target: Any) -> None:
    low, _ = limits(type)
    make = Maker()
    x = make.given(type, 0.05, low + 131, (1, 8, 8, 24))
    inner, y = make.bytes(type, 1 / 256, low, (1, 8, 8, 24)), make.bytes(type, 0.04, low + 20, (1, 8, 8, 24))
    make.op("LOGISTIC", [x], [inner], version=2)
    make.op("MUL", [x, inner], [y], MulOptions(), version=2)
    model = make.finish(y)
    interpreter, kernel = machine_code(model, target=target)
    program = kernel.program
    assert program is not None
    assert len(program.plan.commands) == len(program.plan.packing) == 1
    assert program.plan.sizes[WEIGHTS] == 256

    value = make.values[x]
    real = (value.astype(np.float32) - (low + 131)) * np.float32(0.05)
    level = np.rint((1 / (1 + np.exp(-real.astype(np.float64)))).astype(np.float32) * 256 + low)
    logistic = np.clip(level, *limits(type)).astype(np.int32)
    product = (value.astype(np.int32) - (low + 131)) * (logistic - low)
    scale = np.float32(0.05) * np.float32(1 / 256) / np.float32(0.04)
    wanted = np.clip(np.rint(product.astype(np.float32) * scale) + low + 20, *limits(type))
    (got,) = outputs(interpreter, make.values)
    np.testing.assert_array_equal(got, wanted)


@both
@pytest.mark.parametrize("zero", [-128, 5])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("shape", [(1, 9, 8, 16), (2, 5, 3, 67), (1, 3, 4, 640)])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_images_times_factors(type: TensorType, target: Any, shape: tuple[int, ...], swapped: bool, zero: int) -> None:
    low, _ = limits(type)
    zero += low + 128
    make = Maker()
    x, factors = make.given(type, 0.05, low + 131, shape), make.given(type, 1 / 256, zero, (1, 1, 1, shape[-1]))
    y = make.bytes(type, 0.025, low + 20, shape)
    make.op("MUL", [factors, x] if swapped else [x, factors], [y], MulOptions(), version=2)
    interpreter, kernel = machine_code(make.finish(y), target=target)
    assert kernel.program is not None
    is_scaled = any("_scale_rows_" in name for name in kernel.program.plan.kernels)
    assert is_scaled == (runs(target) and type == I8 and (zero == -128 or not has_dots(target)))

    product = (make.values[x].astype(np.int32) - (low + 131)) * (make.values[factors].astype(np.int32) - zero)
    scale = np.float32(0.05) * np.float32(1 / 256) / np.float32(0.025)
    wanted = np.clip(np.rint(product.astype(np.float32) * scale) + low + 20, *limits(type))
    (got,) = outputs(interpreter, make.values)
    np.testing.assert_array_equal(got, wanted)


@both
@pytest.mark.parametrize("scale", [2e-3, 1e-5, 1e-9, 1e-34])
@pytest.mark.parametrize("subtracts", [False, True])
def test_sums_on_a_much_smaller_scale(type: TensorType, scale: float, subtracts: bool) -> None:
    """What XNNPACK does not take, and LiteRT shifts by less than 0 bits: sums saturate, but for 0."""
    zero = limits(type)[0] + 131
    make = Maker()
    x, z = make.given(type, 2.0, zero, (9, 40)), make.given(type, 2.0, zero, (40,))
    y = make.bytes(type, scale, zero, (9, 40))
    make.op("SUB" if subtracts else "ADD", [x, z], [y], (SubOptions if subtracts else AddOptions)(), version=2)
    (got,) = run(make, y)
    first, second = (make.values[at].astype(np.float64) - zero for at in (x, z))
    level = np.clip((first - second if subtracts else first + second) * 2 / np.float32(scale) + zero, *limits(type))
    np.testing.assert_array_equal(got, level)


@pytest.mark.parametrize(
    ("activation", "levels"),
    [(NONE, [38, 10, -2, -3]), (ActivationFunctionType.RELU6, [9, 9, -2, -3])],
    ids=["plain", "relu6"],
)
def test_a_tensor_times_itself_rounds_with_its_zero_point(activation: Any, levels: list[int]) -> None:
    """12.5 - 3 is 10 then, though 12.5 is 12."""
    make = Maker()
    x, y = make.bytes(I8, 0.5, -3, (4,)), make.bytes(I8, 0.5, -3, (4,))
    make.values[x] = np.array([-12, 2, -4, -3], np.int8)
    make.op("MUL", [x, x], [y], MulOptions(fused_activation_function=activation), version=2)
    make.io([x], [y])
    interpreter, _ = machine_code(make.model())
    (found,) = outputs(interpreter, make.values)
    assert found.tolist() == levels


def test_floats_between_bytes_are_one_table() -> None:
    make = Maker()
    x = make.given(I8, 0.05, 3, (5, 77))
    real, negated, y = make.tensor((5, 77)), make.tensor((5, 77)), make.bytes(I8, 0.06, -4, (5, 77))
    make.op("DEQUANTIZE", [x], [real], version=2)
    make.op("NEG", [real], [negated])
    make.op("QUANTIZE", [negated], [y])
    interpreter, kernel = machine_code(make.finish(y))
    assert kernel.program is not None
    assert len(kernel.program.plan.commands) == 1
    level = -(make.values[x].astype(np.float32) - 3) * np.float32(0.05) * (np.float32(1) / np.float32(0.06))
    (got,) = outputs(interpreter, make.values)
    np.testing.assert_array_equal(got, np.clip(np.rint(level) - 4, -128, 127))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_large_function_with_a_byte_for_each_row_is_a_matrix(target: Any) -> None:
    make = Maker()
    x, mean = make.given(I8, 0.05, 3, (2, 40, 300)), make.given(I8, 0.02, -7, (2, 40, 1))
    y = make.bytes(I8, 0.2, -120, (2, 40, 300))
    make.op("SQUARED_DIFFERENCE", [x, mean], [y], SquaredDifferenceOptions(), 2)
    model = make.finish(y)
    interpreter, kernel = machine_code(model, target=target)
    program = kernel.program
    assert program is not None
    assert len(program.plan.commands) == len(program.plan.packing) == 1
    assert program.plan.sizes[WEIGHTS] == 256 * 256
    (got,) = outputs(interpreter, make.values)
    plain = gossamer.Interpreter(
        model_content=model,
        experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    plain.allocate_tensors()
    (wanted,) = outputs(plain, make.values)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.peer
def test_a_normalization_of_rows_is_equal_to_litert() -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed (extra 'bench')")
    make = Maker()
    rows, shape = (1, 64, 1), (1, 64, 256)
    x, mean, root = make.given(I8, 0.05, 3, shape), make.given(I8, 0.02, -7, rows), make.given(I8, 0.01, -128, rows)
    gamma, beta = make.given(I8, 0.008, 0, (256,), fixed=True), make.given(I8, 0.01, 5, (256,), fixed=True)
    factor, scaled, shift, rest, y = (
        make.bytes(I8, scale, zero_point, shape)
        for scale, zero_point in ((0.01, -100), (0.03, 3), (0.02, -4), (0.03, 9), (0.05, 1))
    )
    none = {"fused_activation_function": NONE}
    make.op("MUL", [root, gamma], [factor], MulOptions(**none), 2)
    make.op("MUL", [x, factor], [scaled], MulOptions(**none), 2)
    make.op("MUL", [mean, factor], [shift], MulOptions(**none), 2)
    make.op("SUB", [beta, shift], [rest], SubOptions(**none), 2)
    make.op("ADD", [scaled, rest], [y], AddOptions(**none), 2)
    (got,) = run(make, y)
    peer = litert.Interpreter(model_content=make.model())
    peer.allocate_tensors()
    (wanted,) = outputs(peer, make.values)
    np.testing.assert_array_equal(got, wanted)


def test_a_single_element() -> None:
    make = Maker()
    x = make.given(I8, 0.05, 3, (1,))
    inner, y = make.bytes(I8, 1 / 256, -128, (1,)), make.bytes(I8, 0.04, 20, (1,))
    make.op("LOGISTIC", [x], [inner], version=2)
    make.op("MUL", [x, inner], [y], MulOptions(), version=2)
    model = make.finish(y)
    interpreter, _ = machine_code(model)
    for value in (-128, 0, 127):
        first = outputs(interpreter, {x: np.array([value], np.int8)})
        make.values[x] = np.array([value], np.int8)
        np.testing.assert_array_equal(first, run_again(model, make.values))


def run_again(model: bytes, values: dict[int, Array]) -> list[Array]:
    interpreter = gossamer.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    return outputs(interpreter, values)


@both
def test_leaky_relu_rounds_halves_up(type: TensorType) -> None:
    low, _ = limits(type)
    make = Maker()
    x = make.given(type, 0.5, low + 100, (256,))
    y = make.bytes(type, 0.5, low + 90, (256,))
    make.op("LEAKY_RELU", [x], [y], LeakyReluOptions(alpha=-0.5), version=2)
    q = make.values[x].astype(np.int64) - (low + 100)
    wanted = np.where(q > 0, q, (q * -128 + 128) >> 8) + low + 90
    np.testing.assert_array_equal(run(make, y)[0], np.clip(wanted, *limits(type)))


@pytest.mark.parametrize(("count", "levels"), [(32, [-1, 0, 0, 0, 1, 2]), (15, [-2, -1, 0, 0, 1, 2])])
def test_between_types_the_halves_of_whole_vectors_go_up(count: int, levels: list[int]) -> None:
    make = Maker()
    x = make.given(I8, 0.25, 0, (count,))
    y = make.bytes(U8, 1.0, 128, (count,))
    make.op("QUANTIZE", [x], [y], version=2)
    make.values[x][:6] = [-6, -2, -1, 0, 2, 6]
    assert (run(make, y)[0][:6].astype(int) - 128).tolist() == levels


@pytest.mark.parametrize(("name", "zero"), [("RSQRT", -3), ("SQRT", 5)])
def test_bytes_that_are_errors(name: str, zero: int) -> None:
    """The reference kernel says so, and runs where there is such a byte."""
    make = Maker()
    x = make.given(I8, 0.5, zero, (16,))
    y = make.bytes(I8, 0.5, 0, (16,))
    make.op(name, [x], [y], version=2)
    interpreter = gossamer.Interpreter(model_content=make.finish(y))
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals
    interpreter.set_tensor(x, np.arange(zero, zero + 16).astype(np.int8))
    interpreter.invoke()
    interpreter.set_tensor(x, np.arange(zero - 1, zero + 15).astype(np.int8))
    with pytest.raises(gossamer.InvokeError, match="is only defined for"):
        interpreter.invoke()


# Random scales, zero points and shapes against LiteRT.


def scale_of(make: Maker, low: float, high: float) -> float:
    return float(np.float32(2.0 ** make.rng.uniform(low, high)))


def zero_of(make: Maker, type: TensorType) -> int:
    low, high = limits(type)
    return int(make.rng.integers(low, high + 1))


def unary(name: str, options: Table | None = None, version: int = 1, same: bool = False) -> Callable[..., int]:
    def make_one(make: Maker, type: TensorType) -> int:
        low, _ = limits(type)
        x = make.given(type, scale_of(make, -8, 0), zero_of(make, type), (256,))
        scale, zero = scale_of(make, -8, -1), zero_of(make, type)
        if name == "LOGISTIC":
            scale, zero = 1 / 256, low
        if name == "HARD_SWISH":
            scale = max(scale, float(make.graphs[-1].tensors[x].quantization.scale[0]) / 100)
        y = make.bytes(type, scale, zero, (256,))
        make.op(name, [x], [y], options, version)
        return y

    return make_one


SHAPES = [((4, 64), (4, 64)), ((2, 5, 6, 17), (17,)), ((3, 2, 40), (3, 1, 40)), ((5, 64), (5, 1)), ((3, 100), ())]


def binary(name: str, options: Callable[..., Table], least: float = -8) -> Callable[..., int]:
    def make_one(make: Maker, type: TensorType) -> int:
        shapes = list(SHAPES[make.rng.integers(len(SHAPES))])
        make.rng.shuffle(shapes)
        fixed = int(make.rng.integers(3))
        x, y = (
            make.given(type, scale_of(make, -8, -2), zero_of(make, type), shape, fixed=at == fixed)
            for at, shape in enumerate(shapes)
        )
        z = make.bytes(type, scale_of(make, least, -1), zero_of(make, type), np.broadcast_shapes(*shapes))
        activation = make.rng.choice([0, 1, 2, 3])
        chosen = options() if options is SquaredDifferenceOptions else options(fused_activation_function=activation)
        make.op(name, [x, y], [z], chosen, 2)
        return z

    return make_one


def quantize(make: Maker, type: TensorType) -> int:
    x = make.given(type, scale_of(make, -10, 1), zero_of(make, type), (3, 101))
    y = make.bytes([I8, U8][make.rng.integers(2)], scale_of(make, -8, -1), zero_of(make, type) & 127, (3, 101))
    make.op("QUANTIZE", [x], [y], version=2)
    return y


def quantize_floats(make: Maker, type: TensorType) -> int:
    x = make.tensor((3, 101))
    scale = scale_of(make, -8, -1)
    value = make.rng.standard_normal((3, 101)).astype(np.float32) * np.float32(5)
    value[0] = (np.arange(101) - 50.5) * np.float32(scale)
    make.values[x] = value
    y = make.bytes(type, scale, zero_of(make, type), (3, 101))
    make.op("QUANTIZE", [x], [y])
    return y


def dequantize(make: Maker, type: TensorType) -> int:
    fixed = bool(make.rng.integers(2))
    x = make.given(type, scale_of(make, -8, 0), zero_of(make, type), (3, 101), fixed=fixed)
    y = make.tensor((3, 101))
    make.op("DEQUANTIZE", [x], [y], version=2)
    if not fixed:
        return y
    other, total = make.tensor((3, 101)), make.tensor((3, 101))
    make.values[other] = np.zeros((3, 101), np.float32)
    make.op("ADD", [y, other], [total], AddOptions())
    return total


def prelu(make: Maker, type: TensorType) -> int:
    x = make.given(type, scale_of(make, -8, 0), zero_of(make, type), (3, 8, 16))
    shape = [(16,), (1, 1, 16), (1,), (8, 16)][make.rng.integers(4)]
    alpha = make.given(type, scale_of(make, -8, -4), zero_of(make, type), shape, fixed=bool(make.rng.integers(2)))
    y = make.bytes(type, scale_of(make, -8, -1), zero_of(make, type), (3, 8, 16))
    make.op("PRELU", [x, alpha], [y])
    return y


def comparison(name: str) -> Callable[..., int]:
    def make_one(make: Maker, type: TensorType) -> int:
        x = make.given(type, scale_of(make, -9, -1), zero_of(make, type), (4, 64))
        y = make.given(type, scale_of(make, -9, -1), zero_of(make, type), (4, 64))
        z = make.tensor((4, 64), BOOL)
        make.op(name, [x, y], [z], version=2)
        return z

    return make_one


OPERATORS: dict[str, Callable[..., int]] = {
    **{name: unary(name, version=2) for name in ("LOGISTIC", "TANH", "RELU", "RELU6")},
    **{name: unary(name) for name in ("RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH")},
    "GELU": unary("GELU", GeluOptions(approximate=False), 2),
    "GELU approximate": unary("GELU", GeluOptions(approximate=True), 2),
    **{f"LEAKY_RELU {a}": unary("LEAKY_RELU", LeakyReluOptions(alpha=a), 2) for a in (0.1, 0.3, -0.5, 1.5, 0.0)},
    "PRELU": prelu,
    "ADD": binary("ADD", AddOptions),
    "SUB": binary("SUB", SubOptions),
    "MUL": binary("MUL", MulOptions, -10),
    "QUANTIZE": quantize,
    "QUANTIZE floats": quantize_floats,
    "DEQUANTIZE": dequantize,
    **{name: comparison(name) for name in ("EQUAL", "LESS", "GREATER_EQUAL")},
}
OF_INT8: dict[str, Callable[..., int]] = {
    "ELU": unary("ELU"),
    **{name: unary(name, version=2) for name in ("ABS", "EXP", "LOG")},
    "SQUARED_DIFFERENCE": binary("SQUARED_DIFFERENCE", SquaredDifferenceOptions, -9),
}


@pytest.mark.peer
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("name", "type"),
    [*((name, type) for name in OPERATORS for type in (I8, U8)), *((name, I8) for name in OF_INT8)],
    ids=lambda value: value.name.lower() if isinstance(value, TensorType) else value,
)
def test_equal_to_litert(name: str, type: TensorType, seed: int) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed (extra 'bench')")
    make = Maker(seed)
    result = {**OPERATORS, **OF_INT8}[name](make, type)
    got = run(make, result)
    peer = litert.Interpreter(model_content=make.model())
    peer.allocate_tensors()
    for value, wanted in zip(got, outputs(peer, make.values), strict=True):
        np.testing.assert_array_equal(value, wanted)
