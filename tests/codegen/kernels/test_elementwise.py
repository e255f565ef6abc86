from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from llvmlite.binding import parse_assembly

from gossamer.codegen.basis import TO_LEVELS
from gossamer.codegen.compiler import assembly
from gossamer.codegen.elements import ELEMENTS
from gossamer.codegen.expression import FUNCTIONS, Expression, type_of
from gossamer.codegen.kernels.elementwise import MAX_OPERANDS, Map
from gossamer.errors import CompileError
from gossamer.ops import all_ops
from gossamer.ops.cast import op as CAST
from gossamer.ops.dequantize import op as DEQUANTIZE
from gossamer.ops.floor_mod import op as FLOOR_MOD
from gossamer.ops.quantize import op as QUANTIZE
from gossamer.quantization import round_half_away
from gossamer.schema import CastOptions, FloorModOptions, Table
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, RUNNABLE, block, filled, guarded, normal, on_every_target, run
from tests.conftest import seeds
from tests.ops.cases import Case, Operand, tensor
from tests.ops.reference import output_of


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(math.erf)

WANTED: dict[str, Callable[..., np.ndarray]] = {
    "abs": np.abs,
    "atan2": np.arctan2,
    "ceil": np.ceil,
    "cos": np.cos,
    "elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "exp": np.exp,
    "finite": lambda x: np.clip(x, -np.finfo(np.float32).max, np.finfo(np.float32).max),
    "floor": np.floor,
    "floordiv": lambda x, y: np.floor(x / y),
    "floormod": np.mod,
    "gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "gelutanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "log": np.log,
    "logistic": logistic,
    "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0),
    "relu01": lambda x: np.clip(x, 0, 1),
    "relu6": lambda x: np.clip(x, 0, 6),
    "relun1": lambda x: np.clip(x, -1, 1),
    "round": np.rint,
    "roundaway": round_half_away,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
    "add": np.add,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "pow": np.power,
    "prelu": lambda x, a: np.where(x < 0, a * x, x),
    "sqrdiff": lambda x, y: (x - y) ** 2,
    "sub": np.subtract,
}
POSITIVE = ("log", "rsqrt", "sqrt")
# In units of 2^-24 of the result (of 1 for gelu, whose factor 1 + erf loses digits far below 0).
UNITS = {
    "exp": 4,
    "log": 2,
    "logistic": 8,
    "tanh": 10,
    "elu": 6,
    "gelu": 8,
    "gelutanh": 12,
    "hardswish": 3,
    "rsqrt": 3,
    "sin": 3,
    "cos": 3,
}


UNARY, BINARY = (
    [
        name
        for name, function in FUNCTIONS.items()
        if function.arity == n and "float" in function.emit and not function.result
    ]
    for n in (1, 2)
)


def compute(spec: Map, y: np.ndarray, operands: list[np.ndarray], size: int = 0, threads: int = 1) -> None:
    """y = the expression of [rows, columns, count] arrays; operands broadcast."""
    rows, columns, count = y.shape
    size = size or max(count, 1)
    values = {
        "y": y,
        "y_row": y.strides[0],
        "y_column": y.strides[1],
        "rows": rows,
        "columns": columns,
        "count": count,
        "block": size,
        "blocks": -(-count // size),
    }
    for at in range(MAX_OPERANDS):
        x = operands[at] if at < len(operands) else None
        row, column = (0, 0) if x is None else (x.strides[d] * (x.shape[d] > 1) for d in (0, 1))
        values |= {f"x{at}": x, f"x{at}_row": row, f"x{at}_column": column}
    run(spec, block(spec.arguments, **values), threads)


def letters(*operands: np.ndarray) -> str:
    """How operands lie along the innermost dimension."""
    return "".join("s" if x.shape[2] == 1 else "v" for x in operands)


@on_every_target
@pytest.mark.parametrize("name", UNARY)
def test_functions(target: Target, name: str) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([
        rng.standard_normal(2000) * scale for scale in (1e-6, 1e-3, 0.1, 1, 3, 10, 25)
    ] + [[0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5]])  # fmt: skip
    if name in POSITIVE:
        x = np.abs(x) + 1e-30
    x = guarded(x.astype(np.float32)[None, None])
    y = filled(x.shape)
    spec = Map(target.name, (name, 0))
    compute(spec, y, [x])
    want = WANTED[name](x.astype(np.float64))
    if name in UNITS:
        size = (
            np.maximum(np.abs(want), 1) if name.startswith(("gelu", "hardswish")) else np.maximum(np.abs(want), 1e-28)
        )
        error = np.max(np.abs(y - want) / size) * 2**24
        assert error < UNITS[name], error
    else:
        np.testing.assert_allclose(y, want, rtol=4e-7)


@on_every_target
@pytest.mark.parametrize("name", UNARY)
def test_nan_stays(target: Target, name: str) -> None:
    x = guarded(np.full((1, 1, 19), np.nan, np.float32))
    y = filled(x.shape, 0.0)
    spec = Map(target.name, (name, 0))
    compute(spec, y, [x])
    assert np.isnan(y).all()


@on_every_target
def test_ends_of_the_range(target: Target) -> None:
    inf = np.inf
    for name, given, wanted in (
        ("exp", [-inf, -200, -104, 88, 89, inf], [0, 0, 0, np.exp(np.float32(88)), inf, inf]),
        ("logistic", [-inf, -200, 200, inf], [0, 0, 1, 1]),
        ("tanh", [-inf, -20, 20, inf], [-1, -1, 1, 1]),
        ("log", [0, -1, inf, 1], [-inf, np.nan, inf, 0]),
        ("relu6", [-inf, inf], [0, 6]),
        ("gelu", [-100, 100], [0, 100]),
        ("finite", [-inf, inf, 1], [-3.4028235e38, 3.4028235e38, 1]),
    ):
        x = guarded(np.array(given, np.float32)[None, None])
        y = filled(x.shape)
        spec = Map(target.name, (name, 0))
        compute(spec, y, [x])
        np.testing.assert_allclose(y[0, 0], np.array(wanted, np.float32), rtol=1e-6, atol=1e-30, err_msg=name)


@on_every_target
@pytest.mark.parametrize(("name", "units"), [("log", 1.0), ("rsqrt", 1.5)])
def test_units_over_all_exponents(target: Target, name: str, units: float) -> None:
    bits = np.random.default_rng(0).integers(0, 0x7F800000, 2**14, np.uint32)
    near = np.concatenate([np.arange(middle - 500, middle + 500) for middle in (0x3F800000, 0x3F3504F3, 0x3FB504F3)])
    x = guarded(np.concatenate([bits, near.astype(np.uint32), np.arange(500, dtype=np.uint32)]).view(np.float32))
    y = filled((1, 1, len(x)))
    compute(Map(target.name, (name, 0)), y, [x[None, None]])
    with np.errstate(divide="ignore"):
        want = WANTED[name](x.astype(np.float64))
    finite = np.isfinite(want)
    np.testing.assert_array_equal(y[0, 0][~finite], want[~finite])
    error = np.abs(y[0, 0][finite] - want[finite]) / np.spacing(np.abs(want[finite]).astype(np.float32))
    assert error.max() < units


@on_every_target
@pytest.mark.parametrize("name", ["log", "rsqrt"])
def test_strange_numbers_change_nothing_beside_them(target: Target, name: str) -> None:
    strange = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, -1.0, -1e-40, 1e-45, 1e-40, 1.1754942e-38]
    spec = Map(target.name, (name, 0))
    x = np.array([strange] * 3, np.float32)
    alone, together = filled((33, 1, 1)), filled((1, 1, 66))
    compute(spec, alone, [guarded(x.reshape(33, 1, 1))])
    compute(spec, together, [guarded(np.stack([x.ravel(), np.full(33, 2.5, np.float32)], 1).reshape(1, 1, 66))])
    with np.errstate(all="ignore"):
        want = WANTED[name](x.ravel())
    np.testing.assert_allclose(alone.ravel(), want, rtol=2.5e-7)
    np.testing.assert_array_equal(together[0, 0, ::2], alone.ravel())
    assert len(set(together[0, 0, 1::2])) == 1


@on_every_target
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_operands(target: Target, name: str, threads: int) -> None:
    rng = np.random.default_rng(1)
    lanes = target.lanes()
    counts = (1, lanes - 1, lanes, lanes + 1, 3 * lanes, 4 * lanes + 3) if threads == 1 else (1, 4 * lanes + 3)
    for count in counts:
        x = normal(rng, 5, 3, count)
        for shape in ((5, 3, count), (1, 1, count), (5, 1, count), (1, 3, count), (5, 3, 1), (5, 1, 1), (1, 1, 1)):
            other = normal(rng, *shape)
            for first, second in ((x, other), (other, x)):
                y = filled(x.shape)
                compute(Map(target.name, (name, 0, 1), letters(first, second)), y, [first, second], 0, threads)
                with np.errstate(invalid="ignore"):
                    want = WANTED[name](first, second)
                np.testing.assert_allclose(y, want, rtol=1e-6)


@on_every_target
def test_chain_with_strides_and_blocks(target: Target) -> None:
    rng = np.random.default_rng(2)
    whole = normal(rng, 4, 6, 50)
    x = whole[:, 1:5, 3:45]
    scale, shift, other = normal(rng, 1, 1, 42), normal(rng, 1, 1, 1), normal(rng, 4, 1, 1)
    want = np.maximum((x * scale + shift) - other, 0) + x
    results = []
    for size, threads in ((0, 1), (16, 1), (32, 2), (16, 3)):
        to = filled((4, 6, 44), 7.0)
        y = to[:, 1:5, 1:43]
        expression: Expression = ("add", ("relu", ("sub", ("add", ("mul", 0, 1), 2), 3)), 0)
        compute(Map(target.name, expression, "vvss"), y, [x, scale, shift, other], size, threads)
        np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-6)
        assert (to[:, :, 43] == 7).all()
        assert (to[:, 0] == 7).all()
        results.append(y.tobytes())
    assert len(set(results)) == 1


NAMES = {
    "float32": "f32", "float16": "f16", "float64": "f64", "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16",
    "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64",
}  # fmt: skip


def everything(dtype: str, count: int) -> np.ndarray:
    """Numbers of a type, with the ends of its range, in a buffer of their own."""
    rng = np.random.default_rng(count)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype == "complex64":
        return everything("float32", 2 * count).view(dtype)
    if dtype.startswith("float"):
        special = [0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, -0.5, 1.5, 2.5, -2.5, 127.5, -128.5, 2.0**31, -(2.0**31),
                   2.0**32, 2.0**63, -(2.0**63), 3e9, 1e10, -1e10, 1e30, 65504.0, 1e-7, 2147483520.0]  # fmt: skip
        numbers = np.concatenate([special, rng.standard_normal(count) * 10.0 ** rng.integers(-3, 12, count)])
        with np.errstate(over="ignore"):
            return numbers[:count].astype(dtype)
    info = np.iinfo(dtype)
    special = [info.min, info.max, 0, 1, info.max - 1, info.min + 1, 7]
    return np.concatenate([special, rng.integers(info.min, info.max, count, dtype, endpoint=True)])[:count].astype(
        dtype
    )


def zeros(x: np.ndarray, dtype: str = "float32", **quantization: float) -> Operand:
    """An output of the shape of x, as a model declares it."""
    return tensor(np.zeros(x.shape), dtype, **quantization)  # type: ignore[arg-type]


def typed(target: Target, expression: Expression, dtype: str, *operands: np.ndarray) -> np.ndarray:
    """The expression of vectors and single elements."""
    x = [guarded(operand.reshape(1, 1, -1)) for operand in operands]
    y = guarded(np.zeros((1, 1, max(operand.size for operand in operands)), dtype))
    names = tuple(NAMES[array.dtype.name] for array in (*x, y))
    compute(Map(target.name, expression, letters(*x), names), y, x)
    return y[0, 0]


@on_every_target
@pytest.mark.parametrize("step", seeds(4, len(NAMES)))
def test_conversions_are_those_of_cast(target: Target, step: int) -> None:
    for source, dtype in zip(NAMES, [*NAMES][step:] + [*NAMES][:step], strict=True):
        x = everything(source, 999)
        with np.errstate(over="ignore"):
            want = output_of(CAST, Case("", [tensor(x, source)], [zeros(x, dtype)], CastOptions()))
        for count in (1, 5, target.lanes(), 3 * target.lanes() + 1, 999):
            np.testing.assert_array_equal(typed(target, 0, dtype, x[:count]), want[:count])


@on_every_target
@pytest.mark.parametrize("step", seeds(2, len(NAMES)))
def test_functions_that_convert_do_as_storing_does(target: Target, step: int) -> None:
    for source, dtype in zip(NAMES, [*NAMES][step:] + [*NAMES][:step], strict=True):
        if dtype != "float16":  # which is float32 in expressions
            x = everything(source, 999)
            wanted = typed(target, 0, dtype, x)
            np.testing.assert_array_equal(typed(target, (f"to{NAMES[dtype]}", 0), dtype, x), wanted)


@on_every_target
def test_bfloat16(target: Target) -> None:
    x = everything("float32", 999)
    with np.errstate(over="ignore"):
        pattern = x.astype(ml_dtypes.bfloat16)
    y = guarded(np.zeros((1, 1, x.size), np.uint16))
    compute(Map(target.name, 0, "v", ("f32", "bf16")), y, [guarded(x[None, None])])
    np.testing.assert_array_equal(y[0, 0].view(ml_dtypes.bfloat16).astype(np.float32), pattern.astype(np.float32))
    back = filled((1, 1, x.size))
    compute(Map(target.name, 0, "v", ("bf16", "f32")), back, [y])
    np.testing.assert_array_equal(back[0, 0], pattern.astype(np.float32))


OPERATORS: list[tuple[str, str, tuple[str, ...], str]] = [
    # Operator, function, types that it takes, type of the result ("" for the same).
    ("ADD", "add", ("float32", "int16", "int32", "int64"), ""),
    ("SUB", "sub", ("float32", "int32", "int64"), ""),
    ("MUL", "mul", ("float32", "int32", "int64"), ""),
    ("DIV", "div", ("float32", "int32"), ""),
    ("FLOOR_DIV", "floordiv", ("float32", "int8", "int16", "int32"), ""),
    ("FLOOR_MOD", "floormod", ("float32", "int8", "int16", "int32", "int64"), ""),
    ("MAXIMUM", "max", ("float32", "int8", "uint8", "int16", "int32", "int64"), ""),
    ("MINIMUM", "min", ("float32", "int8", "uint8", "int16", "int32", "int64"), ""),
    ("SQUARED_DIFFERENCE", "sqrdiff", ("float32", "int32"), ""),
    ("PRELU", "prelu", ("float32",), ""),
    ("LESS", "less", ("float32", "int16", "int32", "int64", "uint8"), "bool"),
    ("LESS_EQUAL", "lessequal", ("float32", "int32", "int64"), "bool"),
    ("GREATER", "greater", ("float32", "int32", "int64"), "bool"),
    ("GREATER_EQUAL", "greaterequal", ("float32", "int32", "int64"), "bool"),
    ("EQUAL", "equal", ("float32", "int32", "int64", "bool"), "bool"),
    ("NOT_EQUAL", "notequal", ("float32", "int32", "int64", "bool"), "bool"),
    ("LOGICAL_AND", "and", ("bool",), ""),
    ("LOGICAL_OR", "or", ("bool",), ""),
    ("LOGICAL_NOT", "not", ("bool",), ""),
    ("BITWISE_XOR", "xor", ("int8", "uint8", "int16", "uint16", "int32", "uint32"), ""),
    ("STABLEHLO_SHIFT_LEFT", "shiftleft", ("int8", "int16", "int32"), ""),
    ("RIGHT_SHIFT", "shiftright", ("int8", "uint8", "int16", "uint16", "int32", "uint32"), ""),
    ("ABS", "abs", ("float32", "int32"), ""),
    ("NEG", "neg", ("float32", "int8", "int16", "int32", "int64"), ""),
    ("SIGN", "sign", ("float32", "int32"), ""),
    ("SQUARE", "square", ("float32",), ""),
    ("RELU", "relu", ("float32",), ""),
    ("RELU6", "relu6", ("float32",), ""),
    ("RELU_N1_TO_1", "relun1", ("float32",), ""),
    ("CEIL", "ceil", ("float32",), ""),
    ("FLOOR", "floor", ("float32",), ""),
    ("ROUND", "round", ("float32",), ""),
    ("SQRT", "sqrt", ("float32",), ""),
]


@on_every_target
@pytest.mark.parametrize(("operator", "function", "types", "result"), OPERATORS, ids=lambda value: str(value))
def test_functions_are_those_of_the_operators(
    target: Target, operator: str, function: str, types: tuple[str, ...], result: str
) -> None:
    op = next(op for op in all_ops() if op.name == operator)
    clamps = operator in ("ADD", "SUB", "MUL", "DIV")  # TFLite's floats are clamped to their finite range
    for dtype in types:
        x, y = everything(dtype, 501), everything(dtype, 508)[7:]
        if "DIV" in operator or operator == "FLOOR_MOD":
            y = np.where(y == 0, np.array(3, dtype), y)
        operands = [x, y][: FUNCTIONS[function].arity]
        case = Case("", [tensor(operand, dtype) for operand in operands], [zeros(x, result or dtype)])
        case = replace(case, options=None if op.options is Table else op.options())
        with np.errstate(all="ignore"):
            want = output_of(op, case)
        for count in (3, target.lanes() + 1, 501):
            some = [operand[:count] for operand in operands]
            got = typed(target, (function, *range(len(some))), result or dtype, *some)
            if clamps and dtype == "float32":
                got = np.clip(got, np.finfo(np.float32).min, np.finfo(np.float32).max)
            np.testing.assert_array_equal(got, want[:count])


@on_every_target
def test_quantize_and_dequantize(target: Target) -> None:
    x = everything("float32", 999)
    x[np.abs(x) > 1e8] = 5.0  # beyond int32, TFLite's result is undefined
    x = np.concatenate([x, (np.arange(-300, 300) / 2).astype(np.float32)])
    for dtype, scale, point in (("int8", 0.05, -3), ("uint8", 0.7, 200), ("int16", 0.001, 0), ("int8", 1.0, 127)):
        scales, points = np.array([scale], np.float32), np.array([point], np.float32)
        case = Case("", [tensor(x)], [zeros(x, dtype, scale=scale, zero_point=point)])
        expression = (f"quantize{NAMES[dtype]}", 0, 1, 2)
        q = typed(target, expression, dtype, x, scales, points)
        np.testing.assert_array_equal(q, output_of(QUANTIZE, case))
        case = Case("", [tensor(q, dtype, scale=scale, zero_point=point)], [zeros(x)])
        real = typed(
            target, ("mul", ("tof32", ("sub", ("toi32", 0), 1)), 2), "float32", q, points.astype(np.int32), scales
        )
        np.testing.assert_array_equal(real, output_of(DEQUANTIZE, case))


@on_every_target
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_four_vectors_of_levels_are_those_of_one(target: Target, dtype: str) -> None:
    limits = np.iinfo(dtype)
    special = [np.nan, np.inf, -np.inf, 1e30, -1e30, 3e4, -3e4, 4e4, -4e4, -0.0, 1e-45]
    halves = np.arange(-300, 300) / 2
    x = guarded(np.concatenate([special, halves, np.nextafter(halves, np.inf)]).astype(np.float32))
    type = {"int8": "i8", "uint8": "u8"}[dtype]
    spec = Map(target.name, TO_LEVELS, "vss", ("f32", "f32", "f32", type))
    for point in (limits.min, 5, limits.max):
        numbers = [guarded(np.float32([number])) for number in (1, point)]
        y, one_by_one = guarded(np.zeros(x.size, dtype)), guarded(np.zeros(x.size, dtype))
        for shape, result in (((1, 1, x.size), y), ((x.size, 1, 1), one_by_one)):
            compute(spec, result.reshape(shape), [x.reshape(shape), *(n.reshape(1, 1, 1) for n in numbers)])
        np.testing.assert_array_equal(y, one_by_one)
        wanted = np.where(np.isnan(x), limits.max, np.clip(np.rint(x) + point, limits.min, limits.max))
        np.testing.assert_array_equal(y, wanted)


@on_every_target
def test_select(target: Target) -> None:
    for dtype in NAMES:
        for count in (1, 6, 40):
            condition, x, y = everything("bool", count), everything(dtype, count), everything(dtype, count + 9)[9:]
            got = typed(target, ("select", 0, 1, 2), dtype, condition, x, y)
            np.testing.assert_array_equal(got, np.where(condition, x, y))


@on_every_target
def test_exponentials_of_doubles(target: Target) -> None:
    x = np.random.default_rng(0).uniform(-708, 709, 3001)
    x[:6] = 0.0, 1.0, -1e-300, 1e-9, -708.5, -np.inf
    y, want = typed(target, ("exp", 0), "float64", x), np.exp(x)
    np.testing.assert_array_equal(y[[0, 4, 5]], [1, 0, 0])
    np.testing.assert_allclose(y[6:], want[6:], rtol=2.0**-52)
    np.testing.assert_allclose(y[:4], want[:4], rtol=2.0**-52)


@on_every_target
def test_power_and_arc_tangent_of_special_numbers(target: Target) -> None:
    numbers = [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, 1e-40, 1e38, 16777217, -7.5]
    x, y = (a.reshape(-1).astype(np.float32) for a in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(typed(target, ("pow", 0, 1), "float32", x, y), np.power(x, y), rtol=2e-7)
        np.testing.assert_allclose(typed(target, ("atan2", 0, 1), "float32", x, y), np.arctan2(x, y), rtol=4e-7)


@on_every_target
@pytest.mark.parametrize("count", [1, 16, 4000])
def test_angles_of_many_turns(target: Target, count: int) -> None:
    rng = np.random.default_rng(count)
    x = (rng.standard_normal(count) * 2.0 ** rng.integers(20, 126, count)).astype(np.float32)
    for name, function in (("sin", np.sin), ("cos", np.cos)):
        want = function(x.astype(np.float64))
        np.testing.assert_allclose(typed(target, (name, 0), "float32", x), want, rtol=2e-7, atol=1e-7)


@on_every_target
@pytest.mark.parametrize("apart", [-1, 0, 1])
def test_angles_next_to_quarters_of_a_turn(target: Target, apart: int) -> None:
    # Where little is left of them, all that is known of a quarter counts; beyond 2^10 that is another computation.
    x = (np.arange(1, 1000) * (np.pi / 2)).astype(np.float32)
    x = x if apart == 0 else np.nextafter(x, np.float32(apart * np.inf))
    x = np.concatenate([x, -x, np.float32([2**10, 2**10 - 2**-14, -(2**10)])])
    for name, function in (("sin", np.sin), ("cos", np.cos)):
        want = function(x.astype(np.float64))
        np.testing.assert_allclose(typed(target, (name, 0), "float32", x), want, rtol=2.4e-7)


@on_every_target
def test_results_do_not_depend_on_neighbours(target: Target) -> None:
    x = np.random.default_rng(0).uniform(-1000, 1000, 640).astype(np.float32)
    far = np.where(np.arange(640) % 7, x, np.float32(1e9))
    for name in ("sin", "cos"):
        alone, among = (typed(target, (name, 0), "float32", values) for values in (x, far))
        np.testing.assert_array_equal(alone[far == x], among[far == x])


@on_every_target
@pytest.mark.parametrize("count", [1, 16, 4000])
def test_remainders_are_exact(target: Target, count: int) -> None:
    rng = np.random.default_rng(count)
    scales = 2.0 ** rng.integers(-140, 126, (2, count))
    x, y = (rng.standard_normal((2, count)) * scales).astype(np.float32)
    y[y == 0] = 1
    want = output_of(FLOOR_MOD, Case("", [tensor(x), tensor(y)], [zeros(x)], FloorModOptions()))
    np.testing.assert_array_equal(typed(target, ("floormod", 0, 1), "float32", x, y), want)


@on_every_target
def test_nothing_to_do(target: Target) -> None:
    spec = Map(target.name, ("relu", 0))
    for shape in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
        x, y = filled(shape), filled(shape)
        compute(spec, y, [x], 16, 2)


@on_every_target
def test_in_place(target: Target) -> None:
    x = guarded(np.arange(-20, 21, dtype=np.float32)[None, None])
    compute(Map(target.name, ("relu", 0)), x, [x])
    np.testing.assert_array_equal(x[0, 0], np.maximum(np.arange(-20, 21), 0))


@on_every_target
def test_six_operands(target: Target) -> None:
    x = [normal(np.random.default_rng(at), 2, 3, 21 if at % 2 else 1) for at in range(6)]
    expression: Expression = 0
    for at in range(1, 6):
        expression = ("add", expression, ("mul", at, at))
    y = filled((2, 3, 21))
    compute(Map(target.name, expression, "svsvsv"), y, x)
    np.testing.assert_allclose(y, x[0] + sum(np.square(other) for other in x[1:]), rtol=1e-6)


@pytest.mark.parametrize(("spec", "message"), [
    (Map("avx2", ("add", 0, 1)), "needs 2 operands, got 'v'"),
    (Map("avx2", 0, ""), "1 to 8 operands, each v, s or p, got ''"),
    (Map("avx2", 0, "v" * 9), "1 to 8 operands"),
    (Map("avx2", 0, "c"), "each v, s or p, got 'c'"),
    (Map("avx2", ("reluc", 0)), "no function 'reluc'"),
    (Map("avx2", 0, "v", ("f32",)), "types for its 1 operands and y"),
    (Map("avx2", ("add", 0, 1), "vv", ("f32", "i32", "f32")), "add takes arguments of one type, got f32 and i32"),
    (Map("avx2", ("exp", 0), "v", ("i32", "f32")), "There is no exp of i32"),
    (Map("avx2", ("select", 0, 0, 0)), "first argument of select must be a bool"),
    (Map("avx2", 0, "v", ("i4", "f32")), "An element type is one of f32, .*, got 'i4'"),
])  # fmt: skip
def test_what_cannot_be(spec: Map, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        spec.emit(all_targets()["avx2"])


def test_names() -> None:
    assert Map("avx2", ("relu", ("add", ("mul", 0, 1), 2)), "vvs").name == "f32_map_mul_add_relu_vvs__avx2"
    assert Map("avx2", 0).name == "f32_map_copy_v__avx2"
    assert Map("avx2", ("add", 0, 1), "vs", ("i32",) * 3).name == "i32_map_add_vs__avx2"
    assert Map("avx2", ("less", 0, 1), "vv", ("f32", "f32", "bool")).name == "f32_f32_bool_map_less_vv__avx2"


# Where it can run, it does, in the other tests.
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one type", "every type"])
@pytest.mark.parametrize("target", [t for t in PLAIN if t not in RUNNABLE], ids=lambda t: t.name)
def test_every_function_compiles(target: Target, every: bool) -> None:
    for name, function in FUNCTIONS.items():
        kinds = {
            "float": ("f32", "f16", "bf16"), "double": ("f64",), "bool": ("bool",),
            "signed": ("i8", "i16", "i32", "i64"), "unsigned": ("u8", "u16", "u32"), "complex": ("c64",),
        }  # fmt: skip
        letters = "v" * (function.arity - 1) + "vp"[function.reads is not None]
        letters = {"lookuprow": "vsp"}.get(name, letters)
        taken = [[e for e in kinds[kind] if function.bits in (0, ELEMENTS[e].bits)] for kind in function.emit]
        for element in (element for elements in taken for element in elements[: None if every else 1]):
            types = ["bool" if function.chooses and at == 0 else element for at in range(function.arity)]
            expression = (name, *range(function.arity))
            spec = Map(target.name, expression, letters, (*types, type_of(expression, types)))
            assembly(spec, target)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_llvm_takes_every_function_of_half_floats(target: Target, type: str) -> None:
    """Tails of these are elements, where those of other types are parts of vectors."""
    for name, function in FUNCTIONS.items():
        if "float" not in function.emit or function.bits or function.chooses or function.reads is not None:
            continue
        types = [type] * function.arity
        expression = (name, *range(function.arity))
        spec = Map(target.name, expression, "v" * function.arity, (*types, type_of(expression, types)))
        parse_assembly(spec.emit(target)).verify()
