"""Functions and networks of JAX, converted and compared with what JAX itself makes of the same inputs.

JAX is no dependency of the tests: where it is not installed they are skipped. The other tests of this folder make their
jaxprs by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="compares with JAX, which is not installed")

import jax.numpy as jnp  # noqa: E402  (after the line that skips)
from jax import lax  # noqa: E402

from gossamer import Interpreter, TFLiteConverter  # noqa: E402

# The compiler of kernels forks, which a process with threads is warned of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:os.fork"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RANDOM = np.random.default_rng(0)
I32 = np.int32
X = RANDOM.normal(size=(2, 5, 4)).astype(np.float32)
P = np.abs(X) + np.float32(0.1)
K = RANDOM.integers(-50, 50, (3, 4)).astype(I32)
N = RANDOM.integers(1, 9, (3, 4)).astype(I32)
M = RANDOM.normal(size=(4, 6)).astype(np.float32)
AT = np.array([1, 0, 1], I32)
PICTURE = RANDOM.normal(size=(2, 9, 8, 3)).astype(np.float32)
FILTER = RANDOM.normal(size=(3, 3, 3, 5)).astype(np.float32)
LAYOUT = ("NHWC", "HWIO", "NHWC")


def interpreters() -> Iterator[Any]:
    """Gossamer's, and LiteRT's where it is installed."""
    yield Interpreter
    if find_spec("ai_edge_litert"):
        yield import_module("ai_edge_litert.interpreter").Interpreter


def compare(
    function: Callable[..., Any], *arguments: Any, examples: Any = None, rtol: float = 2e-5, atol: float = 2e-5
) -> list[str]:
    """Convert, run and compare; the operators of the model."""
    names = [f"x{n}" for n in range(len(jax.tree_util.tree_leaves(arguments)))]
    made = jax.tree_util.tree_leaves(jax.jit(function)(*arguments))
    outputs = [f"y{n}" for n in range(len(made))]
    converter = TFLiteConverter.from_jax(function, *(examples or arguments), names=names, outputs=outputs)
    content = converter.convert()
    given = dict(zip(names, map(np.asarray, jax.tree_util.tree_leaves(arguments)), strict=True))
    for interpreter in interpreters():
        runner = interpreter(model_content=content).get_signature_runner()
        needed = runner.get_input_details()
        found = runner(**{name: value for name, value in given.items() if name in needed})
        for name, expected in zip(outputs, map(np.asarray, made), strict=True):
            assert (found[name].shape, found[name].dtype) == (expected.shape, expected.dtype)
            wide = np.complex64 if expected.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(found[name].astype(wide), expected.astype(wide), rtol=rtol, atol=atol)
    return [op for entry in converter.report for op in entry.operators]


def each(names: str, case: Callable[[str], tuple[Any, ...]], what: str = "") -> dict[str, tuple[Any, ...]]:
    """A case for each name."""
    return {f"{what} {name}".strip(): case(name) for name in names.split()}


def setting(name: str, place: Callable[[Any], Any]) -> Callable[..., Any]:
    """x.at[...].name(2), at a place that is computed."""
    return lambda x, i: getattr(x.at[place(i)], name)(2.0)


def along(name: str) -> Callable[..., Any]:
    return lambda x: getattr(jnp, name)(x, axis=1)


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **each(
        "abs ceil cos exp floor negative sign sin tanh arctan sinh cosh arcsinh tan cbrt square expm1 exp2 isfinite "
        "isnan rint deg2rad nan_to_num sinc trunc ravel transpose",
        lambda name: (getattr(jnp, name), X),
    ),
    **each("log log1p log2 log10 sqrt reciprocal", lambda name: (getattr(jnp, name), P)),
    **each("arcsin arccos arctanh", lambda name: (getattr(jnp, name), np.tanh(X))),
    **each(
        "relu relu6 gelu silu sigmoid softplus elu selu celu leaky_relu hard_swish hard_sigmoid hard_tanh log_sigmoid "
        "soft_sign softmax log_softmax logsumexp standardize mish squareplus glu",
        lambda name: (getattr(jax.nn, name), X),
        "nn",
    ),
    **each("erf erfc lgamma digamma bessel_i0e bessel_i1e rsqrt", lambda name: (getattr(lax, name), P), "lax"),
    **each(
        "add subtract multiply divide maximum minimum arctan2 hypot logaddexp copysign heaviside fmod remainder "
        "floor_divide power",
        lambda name: (getattr(jnp, name), P, X[:1]),
        "floats",
    ),
    **each(
        "add subtract multiply maximum minimum remainder floor_divide bitwise_and bitwise_or bitwise_xor fmod "
        "true_divide gcd equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor",
        lambda name: (getattr(jnp, name), K, N),
        "integers",
    ),
    **each(
        "sum mean prod max min var std any all argmax argmin cumsum cumprod median ptp nansum nanmean count_nonzero "
        "sort argsort flip diff",
        lambda name: (along(name), X),
        "along",
    ),
    **each(
        "set add multiply min max subtract divide", lambda name: (setting(name, lambda i: np.s_[:, i]), X, AT), "at"
    ),
    **each("set add multiply min", lambda name: (setting(name, lambda i: i[0]), X, AT), "at one"),
    **each("set add max", lambda name: (setting(name, lambda i: np.s_[:, i * 7]), X, AT), "outside"),
    "erf_inv": (lax.erf_inv, np.tanh(X)),
    "where": (lambda x: jnp.where(x > 0, x, -1), X),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), X),
    "round": (lambda x: lax.round(x * 2), X),
    "select": (lambda x: jnp.select([x < -1, x < 0], [x, x * 2], 0.0), X),
    "powers": (lambda x: (x**3, x**-2, x**0.5), P),
    "norms": (lambda x: (jnp.linalg.norm(x, axis=-1), jnp.linalg.norm(x, 1, axis=-1)), X),
    "top_k": (lambda x: lax.top_k(x, 2), X),
    "percentile": (lambda x: jnp.percentile(x, 30, axis=1), X),
    "split": (lambda x: jnp.array_split(x, 3, 1), X),
    "tile": (lambda x: jnp.tile(x, (1, 2, 3)), X),
    "repeat": (lambda x: jnp.repeat(x, 3, 1), X),
    "roll": (lambda x: jnp.roll(x, 2, 1), X),
    "stack": (lambda x: jnp.stack([x, x * 2], 1), X),
    "pads": (lambda x: [jnp.pad(x, ((0, 0), (1, 2), (0, 1)), mode=m) for m in ("constant", "reflect", "edge")], X),
    "slices": (lambda x: (x[:, 1:4:2, ::-1], x[-1, ..., -2], x[:, None]), X),
    "at positions": (lambda x, i: (x[i], x[:, i], x[0, :, i], x[i, i], x[i[0]], x[:, i[0], i[1]]), X, AT),
    "take": (lambda x, i: [jnp.take(x, i * 9, axis=1, mode=m) for m in ("clip", "fill", "wrap")], X, AT),
    "take along": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), X),
    "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (0, i[0] * 9, i[1]), (2, 3, 2)), X, AT),
    "slices of each": (lambda x, i: jax.vmap(lambda y, j: lax.dynamic_slice(y, (j, 0), (2, 3)))(x, i[:2]), X, AT),
    "one hot": (lambda i: jax.nn.one_hot(i, 5), AT),
    "segments": (lambda x: jax.ops.segment_sum(x[0], np.array([0, 1, 1, 0, 2]), 3), X),
    "count": (lambda i: jnp.bincount(i, length=4), AT),
    "products": (lambda x: (x @ M, x @ x.transpose(0, 2, 1), x @ M[:, 0], M.T @ x[0].T, jnp.outer(x[0], x[1])), X),
    "einsum": (lambda x: jnp.einsum("bhqd,bkhd->bhqk", x.reshape(2, 2, 5, 2), x.reshape(2, 5, 2, 2)), X),
    "integer product": (lambda k: k @ k.T, K),
    "masks": (lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.diag(x[0, 0]), x[:, :4] + jnp.eye(4)), X),
    "types": (lambda x: ((x * 3).astype(I32), x.astype(bool), lax.bitcast_convert_type(x, I32)), X),
    "bytes": (lambda k: ((k.astype(np.uint8) + 3) * 2, (k.astype(np.int8) * 30).astype(I32)), N),
    "half floats": (lambda x: (x.astype(jnp.bfloat16) * 2).astype(np.float32), np.round(X * 4)),
    "Fourier": (lambda x: (jnp.abs(jnp.fft.rfft(x)), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.fft(x, axis=1).real), X),
    "attention": (lambda x: jax.nn.dot_product_attention(x, x, x, is_causal=True), X[:, :, None]),
    "interp": (lambda x: jnp.interp(x, jnp.arange(3.0), jnp.array([1.0, 3.0, 2.0])), X),
    "searchsorted": (lambda x: jnp.searchsorted(jnp.arange(3.0), x), X),
    "resize": (lambda x: jax.image.resize(x, (2, 18, 16, 3), "bilinear"), PICTURE),
    "random": (lambda x: x + jax.random.normal(jax.random.key(0), (4,)), X),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: -y, x), X),
    "switch": (lambda x, i: lax.switch(i[0], [lambda y: y, lambda y: y * 2, lambda y: y * 3], x), X, AT),
    "while": (lambda x: lax.while_loop(lambda c: (c**2).sum() < 1000, lambda c: c * 1.5, x), X),
    "fori": (lambda x, i: lax.fori_loop(0, i[0] * 5, lambda j, c: c * 0.9 + x[0] * j, x[0]), X, AT),
    "scan": (lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c.sum()), jnp.zeros(4), x.reshape(10, 4), reverse=True), X),
    "associative scan": (lambda x: lax.associative_scan(jnp.add, x, axis=1), X),
    "checkpoint": (lambda x: jax.checkpoint(lambda y: jnp.sin(y) * 2)(x), X),
    "gradient": (lambda x: jax.grad(lambda y: (jnp.tanh(y @ M) ** 2).sum())(x), X),
    "trees": (lambda d: {"s": d["a"] + d["b"][0], "t": (d["a"], d["b"][1])}, {"a": X, "b": [X, P]}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, *arguments = FUNCTIONS[name]
    compare(function, *arguments)


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 2), (0, 1))])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows(padding: Any, stride: int) -> None:
    steps = (1, stride, stride, 1)

    def windows(x: Any) -> Any:
        whole = padding if isinstance(padding, str) else ((0, 0), *padding, (0, 0))
        yield lax.conv_general_dilated(x, FILTER, steps[1:3], padding, dimension_numbers=LAYOUT)
        yield lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), steps, whole)
        yield lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), steps, whole) / 4
        if isinstance(padding, str):
            yield lax.conv_transpose(x, FILTER, steps[1:3], padding)

    compare(lambda x: list(windows(x)), PICTURE, rtol=1e-4, atol=1e-4)


# -- networks


def weights(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * scale + shift


def perceptron() -> Callable[..., Any]:
    w = [weights(4, 16), weights(16), weights(16, 3)]
    return lambda x: jax.nn.softmax(jax.nn.relu(x @ w[0] + w[1]) @ w[2])


def convolutional() -> Callable[..., Any]:
    first, second, last = weights(3, 3, 3, 8), weights(3, 3, 1, 8), weights(8, 5)
    scale, shift, mean, variance = weights(8), weights(8), weights(8), np.abs(weights(8)) + 0.5

    def network(x: Any) -> Any:
        x = lax.conv_general_dilated(x, first, (1, 1), "SAME", dimension_numbers=LAYOUT)
        x = jax.nn.relu((x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = lax.conv_general_dilated(x, second, (1, 1), "SAME", dimension_numbers=LAYOUT, feature_group_count=8)
        return jax.nn.log_softmax(jax.nn.silu(x).mean((1, 2)) @ last)

    return network


def encoder(heads: int = 2, size: int = 8) -> Callable[..., Any]:
    table, places = jnp.asarray(weights(50, size)), jnp.asarray(weights(64, size))
    w = [weights(size, size) for _ in range(4)]
    norms = [weights(size) for _ in range(4)]
    wide, narrow = weights(size, 4 * size), weights(4 * size, size)

    def network(tokens: Any) -> Any:
        x = table[tokens] + places[: tokens.shape[1]]
        y = layer_norm(x, *norms[:2])
        q, k, v = [(y @ one).reshape(*y.shape[:2], heads, size // heads) for one in w[:3]]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(size // heads)
        seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        shares = jax.nn.softmax(jnp.where(seen, scores, -1e9))
        x = x + jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape) @ w[3]
        return x + jax.nn.gelu(layer_norm(x, *norms[2:]) @ wide) @ narrow

    return network


def lstm(units: int = 6) -> Callable[..., Any]:
    w, r, b = weights(4, 4 * units), weights(units, 4 * units), weights(4 * units)

    def network(x: Any) -> Any:
        def step(states: Any, element: Any) -> Any:
            hidden, cell = states
            i, f, g, o = jnp.split(element @ w + hidden @ r + b, 4, -1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        zero = jnp.zeros((x.shape[0], units))
        return lax.scan(step, (zero, zero), x.transpose(1, 0, 2))[1]

    return network


def opened(text: str, dtype: Any = np.float32, constraints: tuple[str, ...] = ()) -> Any:
    return jax.ShapeDtypeStruct(jax.export.symbolic_shape(text, constraints=constraints), dtype)


def test_a_perceptron_of_any_batch() -> None:
    for x in (X[0], X[1, :1]):
        assert set(compare(perceptron(), x, examples=[opened("b, 4")])) == {"FULLY_CONNECTED", "SOFTMAX"}


def test_a_convolutional_network_of_any_batch() -> None:
    for x in (PICTURE, PICTURE[:1]):
        operators = set(compare(convolutional(), x, examples=[opened("b, 9, 8, 3")], rtol=1e-4, atol=1e-5))
        assert operators == {
            "CONV_2D", "MAX_POOL_2D", "DEPTHWISE_CONV_2D", "LOGISTIC", "MUL", "MEAN", "FULLY_CONNECTED", "LOG_SOFTMAX",
        }  # fmt: skip


def test_an_encoder_of_any_batch_and_length() -> None:
    tokens = RANDOM.integers(0, 50, (3, 12)).astype(I32)
    for some in (tokens, tokens[:1, :7]):
        operators = compare(encoder(), some, examples=[opened("b, s", I32, ("s <= 64",))], rtol=1e-4, atol=1e-5)
        assert {"SOFTMAX", "GELU", "BATCH_MATMUL", "FULLY_CONNECTED"} <= set(operators)


def test_a_recurrent_network_of_any_batch_and_length() -> None:
    x = RANDOM.normal(size=(2, 20, 4)).astype(np.float32)
    for some in (x, x[:1, :11]):
        assert "WHILE" in compare(lstm(), some, examples=[opened("b, t, 4")], rtol=1e-4, atol=1e-5)


def test_networks_of_flax() -> None:
    linen = pytest.importorskip("flax.linen", reason="flax is not installed")

    class Network(linen.Module):  # type: ignore[misc, name-defined]
        @linen.compact
        def __call__(self, x: Any) -> Any:
            x = linen.relu(linen.BatchNorm(use_running_average=True)(linen.Conv(8, (3, 3))(x)))
            x = linen.avg_pool(linen.GroupNorm(4)(x), (2, 2), (2, 2))
            x = linen.ConvTranspose(4, (3, 3), strides=(2, 2))(x)
            x = x.reshape(*x.shape[:1], -1, 4)
            x = linen.MultiHeadDotProductAttention(2)(linen.LayerNorm()(x), linen.Dropout(0.5, deterministic=True)(x))
            return linen.Dense(3)(linen.RNN(linen.GRUCell(5))(x)[:, -1])

    module = Network()
    state = module.init(jax.random.key(1), PICTURE)
    compare(lambda x: module.apply(state, x), PICTURE, rtol=1e-4, atol=1e-4)
