"""Custom operators in NumPy as machine code: what is traced says what NumPy says, and what is not says why."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import OpResolverType
from gossamer.codegen.basis import basis
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.library import ensure
from gossamer.delegates.jit import checking, compiling
from gossamer.delegates.jit.checking import difference
from gossamer.delegates.jit.evaluation import kernel_of
from gossamer.ops.tracing import traceable
from gossamer.runtime.node import NodeInvokeContext, NodeView
from gossamer.targets import Target
from tests.conftest import ROOT
from tests.ops.cases import Case, model_of, tensor
from tests.ops.traced import Array, check, interpreter_of, refusal, refusals, run
from tests.programs.kernels import target_here
from tests.runtime.graphs import ModelMaker

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
Y = RANDOM.normal(size=(3, 1)).astype(np.float32)
P = np.abs(X) + np.float32(0.1)
N = RANDOM.integers(-50, 50, (2, 3, 4)).astype(np.int32)
J = np.where(RANDOM.random((3, 4)) < 0.3, 0, RANDOM.integers(-9, 9, (3, 4))).astype(np.int32)
B = X > 0
W = RANDOM.normal(size=(4, 5)).astype(np.float32)
V = RANDOM.normal(size=4).astype(np.float32)
SPECIAL = np.float32([1, np.nan, -np.inf, np.inf, -0.0, 1e-40])


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[:, 0] = x[:, 1]
    y[..., 2:] = 1
    y[0] = x[1] * 2
    y[y > 1] = 0
    return y


def in_place(x: Any) -> Any:
    y = x * 2
    y += 1
    z = y
    z *= x
    np.exp(y, out=y)
    return y


CASES: dict[str, tuple[Any, ...]] = {
    "hard_swish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, X * 4),
    "of_floats": (
        lambda x: (
            *(np.exp(x), np.expm1(x), np.tanh(x), np.sin(x), np.cos(x), np.tan(x), np.arctan(x), np.floor(x)),
            *(np.ceil(x), np.rint(x), np.trunc(x), np.abs(x), np.fabs(x), -x, +x, np.sign(x), np.square(x), 1 / x),
            *(np.reciprocal(x), np.isnan(x), np.isinf(x), np.isfinite(x), x.round(), np.round(x, 2), np.nan_to_num(x)),
        ),
        X,
    ),
    "of_positive_floats": (
        lambda x: (
            *(np.sqrt(x), np.log(x), np.log2(x), np.log10(x), np.log1p(x), x**2, x**0.5, x**3, x**1.5, np.exp2(x)),
            *(np.power(x, x), 2**x),
        ),
        P,
    ),
    "angles": (lambda x: (np.arcsin(x), np.arccos(x)), np.clip(X, -1, 1)),
    "of_two": (
        lambda x, y: (
            *(x + y, x - y, x * y, x / y, np.maximum(x, y), np.minimum(x, y), np.fmax(x, y), np.fmin(x, y), x // y),
            *(
                x % y,
                *divmod(x, y),
                np.arctan2(x, y),
                np.hypot(x, y),
                np.logical_and(x, y),
                np.logical_xor(x > 0, y > 0),
            ),
            *(x < y, x <= y, x > y, x >= y, x == y, x != y, np.logical_or(x, y), np.logical_not(x)),
        ),
        *(X, Y),
    ),
    "int32": (
        lambda i: (
            *(i + 1, 3 - i, i * i, i // 7, i % -7, i / 7, -i, abs(i), np.sign(i), i**3, i << 2, i >> 1, ~i, i & 3),
            *(i | 1, i ^ 5, np.maximum(i, 2), i * np.float32(2), i * 2.5, i > 3, i.astype(np.int8), i.sum(), i.mean(1)),
        ),
        N,
    ),
    "integers_over_zeros": (lambda i, j: (i // j, i % j), N, J),
    "uint8": (
        lambda u: (u + 1, u * u, u // 7, np.maximum(u, 2), ~u, u / 2, u.sum(), u.max(0), u.astype(np.int32) - 128),
        N.astype(np.uint8),
    ),
    "int8": (
        lambda i: (i + 1, i // 3, i * i, (i - 3.0) * 0.5, i.sum(axis=1), i.max(1), i.argmax(1), np.sign(i)),
        N.astype(np.int8),
    ),
    "int64": (lambda i: (i + 1, i // 3, i.sum(), i.max(0), i.min(), i.cumsum(1), i.prod(0)), N.astype(np.int64)),
    "float64": (
        lambda x: (
            x + 1,
            x / 3,
            np.sqrt(abs(x)),
            -x,
            np.maximum(x, 0),
            x.sum(1),
            x.mean(),
            x > 0,
            x.astype(np.float32),
        ),
        X.astype(np.float64),
    ),
    "promotion": (
        lambda x, i: (x + i, i * np.float32(2), x * 2, x * np.float64(2), i + True, np.where(x > 0, i, 1.5), x + [1.0]),
        *(X, N),
    ),
    "bool": (
        lambda b: (
            *(b & True, b | ~b, b ^ True, b.any(), b.all(1), b.sum(), b.mean(), b.astype(np.float32), b + b, b * b),
            *(b < True, np.where(b, 1.0, 2.0), np.where(b, 1, 2), b.argmax(1), np.count_nonzero(b, axis=0), b.max(0)),
        ),
        B,
    ),
    "float16_is_moved": (
        lambda h: (h[0], h.max(1), np.concatenate([h, h]), (h.astype(np.float32) * 2).astype(np.float16)),
        X.astype(np.float16),
    ),
    "reductions": (
        lambda x: (
            *(x.sum(), x.sum(0), x.sum((0, 2)), np.sum(x, -1, keepdims=True), np.mean(x, axis=1), x.max(), x.min(2)),
            *(x.prod(1), x.argmax(), x.argmin(1), np.argmax(x, 2, keepdims=True), x.var(), np.std(x, 0, ddof=1)),
            *(np.amax(x, 1), x.cumsum(1), np.cumsum(x), np.any(x > 0, 1), np.linalg.norm(x, axis=1), np.linalg.norm(x)),
            *(np.add.reduce(x), np.maximum.reduce(x, axis=2), x.sum(dtype=np.float64)),
        ),
        X,
    ),
    "softmax": (lambda x: (e := np.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True), X),
    "layer_norm": (lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5), X),
    "indices": (
        lambda x: (
            *(x[0], x[:, 1], x[..., 1:3], x[:, ::-1], x[::2, None], x[-1, -1, -1], x[:, [2, 0]], x[:, [-1, 0, 0]]),
            *(x[..., np.array([[0, 1], [2, 3]])], x[:, np.array([True, False, True])], x.take([1, 1], axis=2), x[()]),
            *(np.take(x, [0, 5, 7]), x[...], x[:, 0:0].sum(1) * 0 if False else x[np.int64(1)], *x),
        ),
        X,
    ),
    "shapes": (
        lambda x: (
            *(x.reshape(6, 4), x.reshape((3, -1)), x.T, x.transpose(1, 0, 2), np.expand_dims(x, (0, 2)), x.ravel()),
            *(
                np.squeeze(x[:1], 0),
                np.concatenate([x, x + 1], 1),
                np.stack([x, x], -1),
                np.pad(x, ((0, 0), (1, 2), (0, 1))),
            ),
            *(
                np.pad(x, 1, constant_values=2),
                np.broadcast_to(x, (2, 2, 3, 4)),
                x.swapaxes(0, 2),
                np.moveaxis(x, 0, -1),
            ),
            *(np.flip(x, 1), np.roll(x, 1, 1), np.roll(x, 3), np.tile(x, (2, 1, 1)), np.repeat(x, 2, 1), x.flatten()),
            *(np.vstack([x, x]), np.hstack([x, x]), np.split(x, 3, 1)[1], np.tril(x), np.triu(x, 1), np.diff(x), x.mT),
            *(
                np.full_like(x, 3) * x,
                np.ones_like(x) - x,
                x.copy(),
                np.atleast_2d(x[0, 0]),
                np.outer(x[0, 0], x[1, 1]),
            ),
        ),
        X,
    ),
    "products": (
        lambda x, w, v: (
            *(
                x @ w,
                np.dot(x, w),
                np.einsum("abc,cd->dab", x, w),
                np.tensordot(x, w, 1),
                np.einsum("abc,cd->ad", x, w),
            ),
            *(x @ v, v @ w, np.dot(v, v), np.outer(v, v), np.einsum("abc,abd->acd", x, x), np.matmul(x, x.mT)),
            *(
                np.einsum("...c,cd->...d", x, w),
                np.einsum("...c,cd", x, w),
                np.einsum("...bc,...dc->...bd", x, x[0]),
                np.einsum("abc->cab", x),
                np.einsum("a...->...", x),
                np.einsum("cba", x),
            ),
        ),
        *(X, W, V),
    ),
    "truncated": (
        lambda x, w: (
            np.float32(2) * (x @ w * 9).astype(np.int32).astype(np.float32),
            np.maximum((x @ w).astype(np.int32).astype(np.float32), 0.5),
            np.tanh((x @ w + x[..., :1]).astype(np.int32).astype(np.float32)),
            (np.isnan(x).astype(np.float32) + x + 3 * x).astype(np.int32).astype(np.float32),
        ),
        *(X, W),
    ),
    "what_is_known": (
        lambda x: (
            x * (np.ndim(x) + np.size(x, 1) + np.shape(x)[0] + x.itemsize + x.nbytes + np.iscomplexobj(x)),
            *(
                x.real * np.isrealobj(x),
                np.amin(x),
                np.around(x),
                np.empty_like(x, shape=(2,)) * 0,
                x.dot(V),
                x.size * x,
            ),
            *(np.atleast_1d(x[0, 0, 0]), x.astype(np.result_type(x, 1.0)), x.T.dtype.type(3) * x, len(x) * x, x.prod()),
        ),
        X,
    ),
    "writing": (written, X),
    "in_place": (in_place, X),
    "idioms": (
        lambda x: (
            *(1 / (1 + np.exp(-x)), x / (1 + np.exp(-x)), np.maximum(x, 0), np.clip(x, 0, 6), np.clip(x, -1, 1)),
            *(
                np.minimum(np.maximum(0, x), 1),
                x * (np.minimum(np.maximum(x + 3, 0), 6) / 6),
                2 / (1 + np.exp(x * -1.0)),
            ),
        ),
        X * 3,
    ),
    "what_is_no_number": (
        lambda x: (
            *(np.maximum(x, 0), np.minimum(x, 1), np.maximum(x, x * 2), np.minimum(1, x), np.fmax(x, 1), x.argmax()),
            *(np.clip(x, 0, 6), np.where(np.isnan(x), 0, x), np.sign(x), np.nan_to_num(x), x * 0, np.sqrt(x), x < x),
        ),
        SPECIAL,
    ),
    "scalar": (lambda x: (x * 2, x.reshape(1) + 1, np.exp(x), x.sum()), np.float32(2)),
    "part_without_elements": (lambda x: (x[:0] * 2, x[:0].sum(1), x), X),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_traced_is_one_program_that_says_what_numpy_says(name: str) -> None:
    function, *values = CASES[name]
    target_here()
    check(function, *values)


def test_constants_are_arrays_that_may_decide() -> None:
    target_here()
    check(lambda x, w: x @ w * (2 if w[0, 0] > 0 else 3) + len(w.tolist()), X, W, constant=[1])


def test_options_and_inputs_left_out() -> None:
    def scaled(x: Any, bias: Any = None, *, factor: float = 2.0, axes: tuple[int, ...] = (0,)) -> Any:
        return x.sum(axes) * np.float32(factor) if bias is None else x + bias

    target_here()
    check(scaled, X)
    check(scaled, X, Y)


def test_without_elements_and_with_a_shape() -> None:
    target_here()
    empty = np.zeros((0, 3), np.float32)
    op = gossamer.custom_op("Double", shape="x")(lambda x: np.concatenate([x, x * 2])[: len(x)])
    interpreter = interpreter_of(op, [tensor(empty, empty.dtype)], [empty])
    assert refusals(interpreter) == []
    np.testing.assert_array_equal(run(interpreter, [empty])[0], empty)


def test_several_operators_are_one_program_with_what_is_around_them() -> None:
    target_here()
    make = ModelMaker()
    x, y, z, u = (make.tensor((2, 3)) for _ in range(4))
    make.op("Swish", [x], [y], custom=True)
    make.op("NEG", [y], [z])
    make.op("Swish", [z], [u], custom=True)
    make.io([x], [u])
    op = gossamer.custom_op("Swish")(lambda x: x / (1 + np.exp(-x)))
    interpreter = gossamer.Interpreter(model_content=make.model(), custom_ops=[op])
    interpreter.allocate_tensors()
    (claims,) = [one for one in interpreter.delegate_claims() if one.delegate == "jit"]
    assert [subset.nodes for subset in claims.partitions] == [(0, 1, 2)]
    assert sorted(interpreter.memory_plan().offsets) == [x, u]

    def swish(x: Array) -> Array:
        return np.asarray(x / (1 + np.exp(-x)))

    for _ in range(2):
        (found,) = run(interpreter, [X[0, :2, :3]])
        np.testing.assert_allclose(found, swish(-swish(X[0, :2, :3])), rtol=1e-5)


def shipped(target: Target) -> set[str]:
    return {spec.name for member in target.family() for spec in basis(member)}


@pytest.mark.parametrize(
    "name", [name if name in ("hard_swish", "bool") else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_what_is_traced_needs_no_kernels_but_those_that_ship(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = shipped(target_here())

    def compiled_of(graph: KernelGraph, source: memoryview | None, target: Target) -> compiling.Made:
        made = compiling.made_of(graph, source, target, here.__contains__)
        assert made[0].specs.keys() <= here
        ensure(made[0].specs.values(), target)
        return made

    for module in (compiling, checking):
        monkeypatch.setattr(module, "compiled_of", compiled_of)
    function, *values = CASES[name]
    check(function, *values)


# What is not


count: int = 0
noted: list[Any] = []
settings: dict[str, float] = {"factor": 2.0}
generator = np.random.default_rng()


def branching(x: Any) -> Any:
    if x.max() > 0:
        return x * 2
    return x


def counting(x: Any) -> Any:
    global count
    count += 1
    return x * 2


def noting(x: Any) -> Any:
    noted.append(x.shape)
    return x * 2


class Counter:
    """Remembers how often it was called."""

    calls = 0

    def count(self, x: Any) -> Any:
        self.calls += 1
        return x * 2


def storing(x: Any) -> Any:
    settings["last"] = 1
    return x * settings["factor"]


def calling(x: Any) -> Any:
    return noting(x)


def catching(x: Any) -> Any:
    try:
        float(x)
    except Exception:
        return x
    return x


def printing(x: Any) -> Any:
    print("hello")  # noqa: T201 (what users may do)
    return x


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (branching, "if x.max() > 0:): a condition depends on a value, which only the run knows"),
    (counting, "it writes 'count', which is not its own"),
    (noting, "it changes 'noted', which is not its own"),
    (Counter().count, "it writes the attribute 'calls' of something"),
    (storing, "it changes 'settings', which is not its own"),
    (calling, "it changes 'noted', which is not its own"),
    (catching, "float(x)): float() takes a value, which only the run knows"),
    (printing, "it calls print()"),
    (lambda x: x * x.sum().item(), "item() takes a value, which only the run knows"),
    (lambda x: x * np.float32(math.exp(x[0, 0, 0])), "float() takes a value"),
    (lambda x: np.asarray(x), "NumPy, or a function of another library, takes the values, which only the run knows"),
    (lambda x: x[x > 0], "how many elements a mask takes is a value, which only the run knows"),
    (lambda x: x[:, x.argmax() % 3], "an index is a value, which only the run knows"),
    (lambda x: np.sort(x), "there is no machine code for np.sort"),
    (lambda x: np.sinh(x), "np.sinh has no machine code"),
    (lambda x: np.linalg.pinv(x), "there is no machine code for np.linalg.pinv"),
    (lambda x: x.argsort(), "there is no machine code for argsort of an array"),
    (lambda x: np.add(x, 1, where=np.ones(4, bool), out=np.zeros(x.shape, np.float32)), "np.add with where="),
    (lambda x: x.astype(np.float16) * np.float16(2), "np.multiply of float16 rounds each result"),
    (lambda x: np.sin(x.astype(np.float64)), "there is no sin of f64"),
    (lambda x: x.astype(np.complex128) * 1j, "there is no arithmetic of complex128"),
    (lambda x: np.pad(x, 1, mode="reflect"), "np.pad with mode 'reflect'"),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED)
def test_what_cannot_be_traced_says_why_and_runs_in_numpy(function: Callable[..., Any], reason: str) -> None:
    target_here()
    assert reason in refusal(function, X)


def draws(x: Any) -> Any:
    return x + np.float32(np.random.rand())  # noqa: NPY002 (what users may call)


def draws_by_itself(x: Any) -> Any:
    return x + np.float32(generator.random())


def remembers(x: Any) -> Any:
    noted.insert(0, x)
    return x


def keeps(store: dict[str, Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        before = store.get("x", 0)
        store["x"] = x
        return x + before

    return function


def keeps_well_hidden(store: list[Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        before, store[:] = [*store, 0][0], [x]
        return x + before

    return function


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (draws, "it draws random numbers"),
        (draws_by_itself, "it does not say the same twice"),
        (remembers, "it changes 'noted', which is not its own"),
        (keeps({}), "it changes 'store', which is not its own"),
        (keeps_well_hidden([]), "it keeps arrays from one call to the next"),
        (lambda x: (x, x), "it returns 2 arrays for 1 outputs"),
        (lambda x: x.astype(np.float64), "it returns float64 for output 0, which is float32"),
        (lambda x: {}["a"], "KeyError: 'a'"),
    ],
)
def test_what_is_no_function_of_its_arguments_is_not_traced(function: Callable[..., Any], reason: str) -> None:
    target_here()
    op = gossamer.custom_op("Untraced")(function)
    (found,) = refusals(interpreter_of(op, [tensor(X)], [X]))
    assert reason in found


def test_a_shape_that_is_declared_is_kept() -> None:
    target_here()
    op = gossamer.custom_op("Untraced", shape="x")(lambda x: x[0])
    (reason,) = refusals(interpreter_of(op, [tensor(X)], [X]))
    assert reason == "it returns [3, 4] for output 0, which is [2, 3, 4]"


def test_tracing_can_be_declined() -> None:
    target_here()
    assert refusal(lambda x: x * 2, X, trace=False) == "trace=False"


def test_reference_kernels_and_cpus_without_machine_code_run_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    op = gossamer.custom_op("Double")(lambda x: (calls.append(type(x)), x * 2)[1])
    model = model_of(op, Case("", [tensor(X)], [tensor(X)]))
    for kind in (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.BUILTIN_REF, OpResolverType.AUTO):
        if kind == OpResolverType.AUTO:
            monkeypatch.setenv("GOSSAMER_TARGET", "none")
        interpreter = gossamer.Interpreter(model_content=model, custom_ops=[op], experimental_op_resolver_type=kind)
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(run(interpreter, [X])[0], X * 2)
    assert calls == [np.ndarray] * 3


# Any functions


class Composition:
    """A function of two arrays that NumPy computes without a warning that counts, made by a seed."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        kinds = [np.float32, np.float32, np.int32, np.int8, np.uint8, np.bool_, np.float64]
        shape = tuple(chance.choice((1, 2, 3)) for _ in range(chance.randint(0, 3)))
        other = tuple(1 if chance.random() < 0.3 else size for size in shape[chance.randint(0, len(shape)) :])
        values = np.random.default_rng(seed)
        self.inputs = [np.asarray(values.normal(size=one) * 3).astype(chance.choice(kinds)) for one in (shape, other)]
        self.seeds = [chance.random() for _ in range(chance.randint(1, 8))]

    def __call__(self, x: Any, y: Any) -> Any:
        pool = [x, y]
        for seed in self.seeds:
            chance = random.Random(seed)
            pool.append(self._step(chance, chance.choice(pool), chance.choice([*pool, 2, 0.5, True])))
        return pool[-1]

    def _step(self, chance: random.Random, x: Any, y: Any) -> Any:
        two = [
            np.add,
            np.multiply,
            np.maximum,
            np.minimum,
            np.less,
            np.equal,
            np.logical_and,
            np.fmax,
            np.greater_equal,
        ]
        one: list[Callable[[Any], Any]] = [
            *(np.tanh, np.abs, np.square, np.sign, np.sqrt, np.floor, np.negative, np.isnan, np.logical_not, np.rint),
            *(lambda x: x.sum(), lambda x: x.max(keepdims=True), lambda x: x.astype(np.float32), lambda x: x.T),
            *(lambda x: x.reshape(-1), lambda x: x[..., None], lambda x: x.mean(), lambda x: np.stack([x, x])),
            *(lambda x: np.where(x > 0, x, 1), lambda x: x.any(), lambda x: np.flip(x), lambda x: np.clip(x, 0, 1)),
            *(
                lambda x: x[::-1] if x.ndim else x,
                lambda x: x[..., :1] if x.ndim else x * 1,
                lambda x: x.astype(np.int64),
            ),
        ]
        if chance.random() < 0.5:
            try:
                np.broadcast_shapes(np.shape(x), np.shape(y))
                return chance.choice(two)(x, y)
            except ValueError:
                pass
        function = chance.choice(one)
        if isinstance(function, np.ufunc) and function is not np.logical_not and x.dtype == np.bool_:
            x = x.astype(np.int32)
        if function in (np.sqrt, np.tanh, np.floor, np.rint) and x.dtype != np.float32:
            x = x.astype(np.float32)
        return function(abs(x) if function is np.sqrt else x)


def traced_graph(function: Callable[..., Any], inputs: list[Array], expected: Array) -> Callable[[], Array] | None:
    """What a function is traced to, on arrays; ``None`` if it cannot be traced."""
    op = gossamer.custom_op("Random", shape=lambda x, y: expected.shape)(function)
    case = Case("", [tensor(one, one.dtype) for one in inputs], [tensor(expected, expected.dtype)])
    kind = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = gossamer.Interpreter(
        model_content=model_of(op, case), custom_ops=[op], experimental_op_resolver_type=kind
    )
    interpreter.allocate_tensors()
    graph = interpreter._subgraphs[0]
    made, _ = kernel_of(NodeView(graph, graph.nodes[0]))
    if made is None:
        return None

    def result() -> Array:
        for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], value)
        with np.errstate(all="ignore"):
            (found,) = made(NodeInvokeContext(graph, graph.nodes[0]))
        return np.asarray(found)

    return result


def test_random_functions_are_traced_to_what_they_compute() -> None:
    """The kernel graph of what is traced, on arrays."""
    traced = 0
    for seed in range(100):
        function = Composition(seed)
        with np.errstate(all="ignore"):
            expected = np.asarray(function(*function.inputs))
        result = traced_graph(
            lambda x, y: function(x, y),  # noqa: B023 (called before the next)
            function.inputs,
            expected,
        )
        if result is not None:
            assert difference(result(), expected) == "", seed
            traced += 1
    assert traced == 100


# The manual


TABLE = re.compile(r"^(<!-- traced -->\n)(.*?)(^<!-- end of traced -->)", re.DOTALL | re.MULTILINE)


def table() -> str:
    """What can be traced, as the page on custom operators has it."""
    rows = {
        "elementwise": "operators such as `+` and `@`, and `np.`",
        "functions": "`np.`",
        "methods": "of an array, `x.`",
    }
    lines = ["| | what is traced |", "|---|---|"]
    for kind, names in traceable().items():
        lines.append(f"| {kind}: {rows[kind]} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n" + "\n".join(lines) + "\n\n"


def test_the_page_on_custom_operators_says_what_is_traced(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "custom-operators.md"
    said = page.read_text()
    found, count = TABLE.subn(lambda match: match[1] + table() + match[3], said)
    assert count == 1
    if request.config.getoption("--update-goldens"):
        page.write_text(found)
    else:
        assert found == said


def test_all_that_is_traced_is_tested() -> None:
    source = Path(__file__).read_text()
    used = set(re.findall(r"\bnp\.([\w.]+)", source)) | set(re.findall(r"\.(\w+)\b", source))
    spelled = {"add", "subtract", "multiply", "divide", "floor_divide", "remainder", "positive", "absolute", "invert"}
    spelled |= {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "less_equal", "not_equal"}
    spelled |= {"greater", "divmod"}
    names = {name for found in traceable().values() for name in found}
    assert names - used - spelled == set()
