from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.normalize import MAX_OPERANDS, LocalResponse, Normalize
from gossamer.errors import CompileError
from gossamer.ops.l2_normalization import op as L2_NORMALIZATION
from gossamer.schema import L2NormOptions
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, filled, guarded, normal, on_every_target, run
from tests.ops.cases import Case, tensor
from tests.ops.reference import output_of

SCALE_AND_SHIFT: Expression = ("add", ("mul", 0, 1), 2)


def normalize(
    target: Target,
    kind: str,
    x: np.ndarray,
    y: np.ndarray,
    epsilon: float = 1e-6,
    epilogue: Expression = IDENTITY,
    operands: tuple[np.ndarray, ...] = (),
    threads: int = 1,
) -> None:
    """Rows of matrices; operands are vectors, matrices or single elements."""
    letters = "".join("s" if operand.shape[-1] == 1 else "v" for operand in operands)
    spec = Normalize(target.name, kind, epilogue, letters)  # type: ignore[arg-type]
    others: dict[str, object] = {}
    for at in range(1, MAX_OPERANDS + 1):
        operand = operands[at - 1] if at <= len(operands) else None
        row = operand.strides[0] if operand is not None and operand.ndim == 2 else 0
        others |= {f"x{at}": operand, f"x{at}_row": row}
    arguments = block(
        spec.arguments,
        x=x,
        y=y,
        epsilon=np.array([epsilon], np.float32),
        rows=x.shape[0],
        count=x.shape[1],
        x_row=x.strides[0],
        y_row=y.strides[0],
        **others,
    )
    run(spec, arguments, threads)


def expected(kind: str, x: np.ndarray, epsilon: float = 1e-6) -> np.ndarray:
    wide = x.astype(np.float64)
    if kind == "layer":
        return (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + epsilon)
    if kind == "rms":
        return wide / np.sqrt(np.square(wide).mean(1, keepdims=True) + epsilon)
    return wide / np.maximum(np.sqrt(np.square(wide).sum(1, keepdims=True)), epsilon)


def counts(target: Target) -> tuple[int, ...]:
    lanes = target.lanes()
    return (1, 2, lanes - 1, lanes, lanes + 1, 4 * lanes, 6 * lanes + 5, 768)


@on_every_target
@pytest.mark.parametrize("kind", ["layer", "rms", "l2"])
def test_rows(target: Target, kind: str) -> None:
    rng = np.random.default_rng(0)
    for count in counts(target):
        x = (normal(rng, 5, count + 3) * 3 + 10)[:, :count]
        scale, shift = normal(rng, count), normal(rng, count)
        results = []
        for threads in (1, 2, 3):
            y = filled((5, count))
            normalize(target, kind, x, y, 1e-6, SCALE_AND_SHIFT, (scale, shift), threads)
            results.append(y.tobytes())
        np.testing.assert_allclose(y, expected(kind, x) * scale + shift, rtol=2e-5, atol=2e-5)
        assert len(set(results)) == 1


@on_every_target
def test_epilogue_with_rows_of_its_own(target: Target) -> None:
    rng = np.random.default_rng(1)
    x, other, factor = normal(rng, 4, 37), normal(rng, 4, 40)[:, :37], normal(rng, 1)
    y = filled(x.shape)
    normalize(target, "layer", x, y, epilogue=("relu", ("add", ("mul", 0, 2), 1)), operands=(other, factor))
    np.testing.assert_allclose(y, np.maximum(expected("layer", x) * factor + other, 0), rtol=1e-5, atol=1e-5)
    normalize(target, "layer", x, x)
    np.testing.assert_allclose(x[0].mean(), 0, atol=1e-6)


@on_every_target
def test_a_mean_far_from_the_variance(target: Target) -> None:
    x = guarded((10000 + np.random.default_rng(2).integers(-8, 8, (3, 999))).astype(np.float32))
    y = filled(x.shape)
    normalize(target, "layer", x, y)
    np.testing.assert_allclose(y, expected("layer", x), atol=3e-4)


@on_every_target
def test_l2_normalization(target: Target) -> None:
    rng = np.random.default_rng(3)
    for count in counts(target):
        x = normal(rng, 6, count)
        x[0], x[1] = 0, 1e-9
        y = filled(x.shape)
        normalize(target, "l2", x, y)
        want = output_of(L2_NORMALIZATION, Case("", [tensor(x)], [tensor(x)], L2NormOptions()))
        np.testing.assert_allclose(y, want, rtol=3e-6)


def sliding(x: np.ndarray, radius: int) -> np.ndarray:
    """Sums of each element and its neighbours along the last axis, in float32, as they slide along."""
    padded = np.pad(x, [(0, 0)] * 3 + [(radius, radius)])
    sums = np.empty(x.shape, np.float64)
    total = np.zeros(x.shape[:-1], np.float32)
    for at in range(2 * radius):
        total = total + padded[..., at]
    for at in range(x.shape[-1]):
        total = total + padded[..., at + 2 * radius]
        sums[..., at] = total
        total = total - padded[..., at]
    return sums


@on_every_target
@pytest.mark.parametrize("radius", [0, 1, 2, 5, 100])
@pytest.mark.parametrize(("bias", "alpha"), [(1.0, 1e-4), (2.0, 0.5), (0.1, 1.0)])
def test_local_response(target: Target, radius: int, bias: float, alpha: float) -> None:
    rng = np.random.default_rng(4)
    spec = LocalResponse(target.name)
    for count in counts(target)[:-1]:
        x = normal(rng, 1, 1, 3, count)
        want = np.float32(bias) + sliding(np.square(x) * np.float32(alpha), radius)
        for threads in (1, 2):
            y = filled(x.shape)
            arguments = block(
                spec.arguments,
                x=x,
                y=y,
                factors=np.array([bias, alpha], np.float32),
                rows=3,
                count=count,
                radius=radius,
                x_row=x.strides[2],
                y_row=y.strides[2],
            )
            run(spec, arguments, threads)
            np.testing.assert_allclose(y, want, rtol=3e-6)


@on_every_target
def test_nothing_to_normalize(target: Target) -> None:
    for shape in ((0, 5), (5, 0)):
        normalize(target, "layer", filled(shape), filled(shape), threads=2)


def test_names_and_refusals() -> None:
    assert Normalize("avx2", "layer", SCALE_AND_SHIFT, "vv").name == "f32_layernorm_mul_add_vv__avx2"
    assert Normalize("avx2", "l2").name == "f32_l2norm__avx2"
    assert LocalResponse("neon").name == "f32_localresponse__neon"
    for spec, message in (
        (Normalize("avx2", "batch"), "layer, rms or l2, got 'batch'"),  # type: ignore[arg-type]
        (Normalize("avx2", "rms", ("mul", 0, 1)), "needs more operands than ''"),
        (Normalize("avx2", "rms", 0, "vvvvv"), "up to 4 operands, each v or s"),
    ):
        with pytest.raises(CompileError, match=message):
            spec.emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for kind in ("layer", "rms", "l2"):
        assembly(Normalize(target.name, kind, SCALE_AND_SHIFT, "vv"), target)  # type: ignore[arg-type]
    assembly(LocalResponse(target.name), target)
