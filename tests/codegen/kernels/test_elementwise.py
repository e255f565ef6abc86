from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import FUNCTIONS, Expression
from gossamer.codegen.kernels.elementwise import MAX_OPERANDS, Map
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, filled, guarded, normal, on_every_target, run


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(math.erf)

WANTED: dict[str, Callable[..., np.ndarray]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "exp": np.exp,
    "floor": np.floor,
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
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sign": np.sign,
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
    "add": np.add,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "prelu": lambda x, a: np.where(x < 0, a * x, x),
    "sqrdiff": lambda x, y: (x - y) ** 2,
    "sub": np.subtract,
}
POSITIVE = ("log", "rsqrt", "sqrt")
# In units of 2^-24 of the result (of 1 for gelu, whose factor 1 + erf loses digits far below 0).
UNITS = {"exp": 3, "log": 2, "logistic": 5, "tanh": 6, "elu": 8, "gelu": 12, "gelutanh": 12, "rsqrt": 3}


UNARY, BINARY = ([name for name, function in FUNCTIONS.items() if function.arity == n] for n in (1, 2))


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
        size = np.maximum(np.abs(want), 1) if name.startswith("gelu") else np.maximum(np.abs(want), 1e-28)
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
    ):
        x = guarded(np.array(given, np.float32)[None, None])
        y = filled(x.shape)
        spec = Map(target.name, (name, 0))
        compute(spec, y, [x])
        np.testing.assert_allclose(y[0, 0], np.array(wanted, np.float32), rtol=1e-6, atol=1e-30, err_msg=name)


@on_every_target
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_operands(target: Target, name: str, threads: int) -> None:
    rng = np.random.default_rng(1)
    lanes = target.lanes()
    for count in (1, lanes - 1, lanes, lanes + 1, 3 * lanes, 4 * lanes + 3):
        x = normal(rng, 5, 3, count)
        for shape in ((5, 3, count), (1, 1, count), (5, 1, count), (1, 3, count), (5, 3, 1), (5, 1, 1), (1, 1, 1)):
            other = normal(rng, *shape)
            for first, second in ((x, other), (other, x)):
                y = filled(x.shape)
                compute(Map(target.name, (name, 0, 1), letters(first, second)), y, [first, second], 0, threads)
                np.testing.assert_allclose(y, WANTED[name](first, second), rtol=1e-6)


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
    (Map("avx2", 0, ""), "1 to 6 operands, each v or s, got ''"),
    (Map("avx2", 0, "vvvvvvv"), "1 to 6 operands"),
    (Map("avx2", 0, "c"), "each v or s, got 'c'"),
    (Map("avx2", ("reluc", 0)), "no function 'reluc'"),
])  # fmt: skip
def test_what_cannot_be(spec: Map, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        spec.emit(all_targets()["avx2"])


def test_names() -> None:
    assert Map("avx2", ("relu", ("add", ("mul", 0, 1), 2)), "vvs").name == "f32_map_mul_add_relu_vvs__avx2"
    assert Map("avx2", 0).name == "f32_map_copy_v__avx2"


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_every_function_compiles(target: Target) -> None:
    for name, function in FUNCTIONS.items():
        assembly(Map(target.name, (name, *range(function.arity)), "v" * function.arity), target)
