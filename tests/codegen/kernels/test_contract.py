from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import FUNCTIONS, Expression, Function, name_of, operand_count
from gossamer.codegen.kernels.contract import (
    UNROLL,
    ContractPanels,
    ContractSingle,
    ContractTiles,
    Gemm,
    panels_of,
)
from gossamer.codegen.tiles import last_vector, proposals
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import (
    PLAIN,
    Convolution,
    Product,
    filled,
    guarded,
    inner_loops,
    normal,
    on_every_target,
)
from tests.conftest import seeds

TILES = {
    "avx512": ((14, 2), (9, 3), (6, 4), (1, 8), (12, 2), (8, 3), (7, 3), (4, 4), (14, 1), (3, 2)),
    "avx2": ((6, 2), (4, 3), (8, 1), (1, 6), (3, 2)),
    "neon": ((8, 2), (5, 4), (7, 3), (1, 4), (4, 4), (8, 1)),
}

EPILOGUES: dict[Expression, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    0: lambda x, _: x,
    ("relu6", 0): lambda x, _: np.clip(x, 0, 6),
    ("add", 0, 1): np.add,
    ("relu", ("add", 0, 1)): lambda x, y: np.maximum(x + y, 0),
    ("add", ("mul", 0, ("logistic", 0)), 1): lambda x, y: x / (1 + np.exp(-x)) + y,
}


def expected(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: int = 1, dilation: int = 1) -> np.ndarray:
    """The convolution without padding, in double precision."""
    _, height, width, _ = weights.shape
    rows = (x.shape[1] - dilation * (height - 1) - 1) // stride + 1
    columns = (x.shape[2] - dilation * (width - 1) - 1) // stride + 1
    result = np.zeros((x.shape[0], rows, columns, weights.shape[0]))
    for h in range(height):
        for w in range(width):
            top, left = h * dilation, w * dilation
            part = x[:, top : top + rows * stride : stride, left : left + columns * stride : stride]
            result += part[:, :rows, :columns].astype(np.float64) @ weights[:, h, w].astype(np.float64).T
    return result + bias


def assert_close(got: np.ndarray, want: np.ndarray) -> None:
    # Sums of up to some hundred products of normal numbers, each rounded to 24 bits.
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def depths() -> tuple[int, ...]:
    return (1, 3, 4, 5, 8, 33)


@on_every_target
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    "which", [slice(4), pytest.param(slice(4, None), marks=pytest.mark.slow)], ids=["four", "others"]
)
def test_tiles_of_every_shape(target: Target, which: slice, threads: int) -> None:
    rng = np.random.default_rng(0)
    lanes = target.lanes()
    for mr, nv in TILES[target.name][which]:
        for pixels in (1, mr - 1, mr, mr + 1, 3 * mr):
            if not pixels:
                continue
            for channels in (1, lanes - 1, lanes, nv * lanes, nv * lanes + 1, 2 * nv * lanes - 1, lanes // 2):
                depth = depths()[(pixels + channels) % 6]
                x, weights = normal(rng, 1, 1, pixels, depth), normal(rng, channels, 1, 1, depth)
                bias, y = normal(rng, channels), filled((1, 1, pixels, channels))
                Convolution(target, x, weights, bias, y, (mr, nv), ("relu", 0)).run(threads)
                assert_close(y, np.maximum(expected(x, weights, bias), 0))


def is_of_floats(function: Function) -> bool:
    return "float" in function.emit and not (function.result or function.chooses or function.reads)


@on_every_target
@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if is_of_floats(function)])
def test_half_a_vector_ends_with_the_bits_of_a_whole_one(target: Target, name: str) -> None:
    rng = np.random.default_rng(0)
    lanes, ending = target.lanes(), (name, *[0] * FUNCTIONS[name].arity)
    x, weights, bias = normal(rng, 1, 1, 64, 24), normal(rng, lanes, 1, 1, 24), normal(rng, lanes)
    half, whole = filled((1, 1, 64, lanes // 2)), filled((1, 1, 64, lanes))
    Convolution(target, x, weights, bias, whole, (4, 1), ending).run()
    Convolution(target, x, weights[: lanes // 2], bias[: lanes // 2], half, (4, 1), ending).run()
    np.testing.assert_array_equal(half, whole[..., : lanes // 2])


@on_every_target
@pytest.mark.parametrize("depth", depths())
def test_every_depth(target: Target, depth: int) -> None:
    rng = np.random.default_rng(depth)
    x, weights, bias = normal(rng, 2, 5, 7, depth), normal(rng, 40, 1, 1, depth), normal(rng, 40)
    y = filled((2, 5, 7, 40))
    Convolution(target, x, weights, bias, y, (3, 2)).run()
    assert_close(y, expected(x, weights, bias))


@on_every_target
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("depth_block", [None, 8, 16, 1000])
@pytest.mark.parametrize("epilogue", EPILOGUES, ids=lambda epilogue: name_of(epilogue) or "identity")
@pytest.mark.parametrize("which", seeds(1, 2))
def test_residual_and_blocks_of_depth(
    target: Target, which: int, epilogue: Expression, depth_block: int | None, threads: int
) -> None:
    rng = np.random.default_rng(1)
    x, weights, bias = normal(rng, 1, 7, 7, 40), normal(rng, 70, 1, 1, 40), normal(rng, 70)
    residual = normal(rng, 1, 7, 7, 70)
    want = EPILOGUES[epilogue](expected(x, weights, bias), residual)
    tile = (((7, 3), (5, 4)) if target.registers > 16 else ((4, 3), (6, 2)))[which]
    y = filled((1, 7, 7, 70))
    given = residual if operand_count(epilogue) == 2 else None
    Convolution(target, x, weights, bias, y, tile, epilogue, given, depth_block=depth_block).run(threads)
    assert_close(y, want)


@on_every_target
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"),
    [((3, 3), 1, 1), ((3, 3), 2, 1), ((1, 3), 1, 1), ((5, 5), 1, 1), ((7, 7), 2, 1), ((3, 3), 1, 2), ((2, 3), 3, 2),
     ((1, 1), 2, 1)],
)  # fmt: skip
@pytest.mark.parametrize("depth_block", [None, 6])
def test_convolution(
    target: Target, kernel: tuple[int, int], stride: int, dilation: int, depth_block: int | None
) -> None:
    rng = np.random.default_rng(2)
    x, weights, bias = normal(rng, 2, 17, 19, 3), normal(rng, 37, *kernel, 3), normal(rng, 37)
    want = expected(x, weights, bias, stride, dilation)
    y = filled(want.shape)
    Convolution(target, x, weights, bias, y, (4, 2), stride=stride, dilation=dilation, depth_block=depth_block).run()
    assert_close(y, want)


@on_every_target
@pytest.mark.parametrize("depth_block", [None, 8])
@pytest.mark.parametrize("channels", [5, 40, 70])
def test_weights_of_16_bits(target: Target, channels: int, depth_block: int | None) -> None:
    rng = np.random.default_rng(6)
    x, bias = normal(rng, 1, 9, 11, 7), normal(rng, channels)
    weights = guarded(rng.standard_normal((channels, 3, 3, 7)).astype(np.float16))
    want = expected(x, weights.astype(np.float32), bias)
    y = filled(want.shape)
    Convolution(target, x, weights, bias, y, (4, 2), depth_block=depth_block, prefetch=1).run()
    assert_close(y, want)


@on_every_target
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("by_channel", [False, True])
def test_batches_of_matrices(target: Target, by_channel: bool, threads: int) -> None:
    rng = np.random.default_rng(7)
    for m, k, n in ((1, 5, 3), (7, 20, 40), (17, 33, 24), (6, 16, 32)):
        # Three heads that lie side by side, as attention has them.
        a = normal(rng, m, 3, k).transpose(1, 0, 2)
        b = normal(rng, *((n, 3, k) if by_channel else (k, 3, n))).transpose(1, 0, 2)
        y = filled((m, 3, n)).transpose(1, 0, 2)
        Product(target, a, b, y, (4, 2), by_channel).run(threads)
        assert_close(y, a.astype(np.float64) @ (b.transpose(0, 2, 1) if by_channel else b))


@on_every_target
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("channels", [5, 32, 70])
def test_a_single_tile(target: Target, channels: int, threads: int) -> None:
    rng = np.random.default_rng(8)
    x, weights, bias = normal(rng, 1, 2, 2, 9), normal(rng, channels, 1, 1, 9), normal(rng, channels)
    y = filled((1, 2, 2, channels))
    product = Convolution(target, x, weights, bias, y, (4, 2), ("relu", 0))
    assert isinstance(product.spec, ContractSingle)
    product.run(threads)
    assert_close(y, np.maximum(expected(x, weights, bias), 0))


@on_every_target
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("channels", [5, 32, 70])
def test_weights_are_not_read_for_a_row_of_zeros(target: Target, channels: int, threads: int) -> None:
    rng = np.random.default_rng(8)
    x, weights, bias = np.zeros((1, 1, 1, 9), np.float32), normal(rng, channels, 1, 1, 9), normal(rng, channels)
    y, zeros = filled((1, 1, 1, channels)), guarded(normal(rng, channels))
    none = np.full_like(weights, np.nan)
    Convolution(target, guarded(x), none, bias, y, (1, 2), ("relu", 0), zeros=zeros).run(threads)
    assert np.array_equal(y.reshape(-1), np.maximum(zeros, 0))
    for at, value in ((0, 1.5), (8, -0.25)):
        x[:] = 0
        x[..., at] = value
        Convolution(target, guarded(x), weights, bias, y, (1, 2), ("relu", 0), zeros=zeros).run(threads)
        assert_close(y, np.maximum(expected(x, weights, bias), 0))


@on_every_target
def test_groups_are_offsets(target: Target) -> None:
    rng = np.random.default_rng(3)
    x, weights, bias = normal(rng, 1, 6, 9, 8), normal(rng, 20, 3, 3, 4), normal(rng, 20)
    y = filled((1, 4, 7, 20))
    for group in range(2):
        mine = slice(10 * group, 10 * group + 10)
        part = guarded(weights[mine])
        Convolution(target, x, part, guarded(bias[mine]), y, (4, 1), group=(4 * group, 10 * group)).run()
        want = expected(x[..., 4 * group : 4 * group + 4], part, bias[mine])
        assert_close(y[..., mine], want)


@on_every_target
def test_an_output_with_a_border_keeps_it(target: Target) -> None:
    rng = np.random.default_rng(4)
    x, weights, bias = normal(rng, 1, 7, 9, 5), normal(rng, 17, 3, 3, 5), normal(rng, 17)
    bordered = filled((1, 7, 9, 17), 5.0)
    Convolution(target, x, weights, bias, bordered[:, 1:-1, 1:-1], (3, 2), ("relu", 0)).run()
    assert_close(bordered[:, 1:-1, 1:-1], np.maximum(expected(x, weights, bias), 0))
    inside = np.zeros(bordered.shape, bool)
    inside[:, 1:-1, 1:-1] = True
    assert (bordered[~inside] == 5.0).all()


@on_every_target
@pytest.mark.parametrize(("depth_block", "by_tile"), [(None, False), (16, False), (16, True)])
def test_bits_do_not_depend_on_threads(target: Target, depth_block: int | None, by_tile: bool) -> None:
    rng = np.random.default_rng(5)
    x, weights, bias = normal(rng, 1, 10, 11, 48), normal(rng, 100, 1, 1, 48), normal(rng, 100)
    results = []
    for threads in (1, 2, 3, 7, 50):
        y = filled((1, 10, 11, 100))
        how = {"depth_block": depth_block, "prefetch": 1, "by_tile": by_tile}
        Convolution(target, x, weights, bias, y, (4, 2), ("logistic", 0), **how).run(threads)
        results.append(y.tobytes())
    assert len(set(results)) == 1


@on_every_target
@pytest.mark.parametrize("depth_block", [None, 16])
@pytest.mark.parametrize("columns", [6, 7, 13, 14, 15])
def test_rows_in_tiles_of_two_sizes(target: Target, columns: int, depth_block: int | None) -> None:
    rng = np.random.default_rng(6)
    x, weights, bias = normal(rng, 1, 5, columns + 1, 48), normal(rng, 100, 1, 1, 48), normal(rng, 100)
    results = []
    for evenly in (True, False):
        for threads in (1, 3):
            bordered = filled((1, 7, columns + 2, 100), 5.0)
            y = bordered[:, 1:-1, 1:-1]
            how = {"depth_block": depth_block, "prefetch": 1, "evenly": evenly}
            Convolution(target, x, weights, bias, y, (4, 2), ("relu", 0), **how).run(threads)
            results.append(bordered.tobytes())
    assert_close(y, np.maximum(expected(x[:, :, :-1], weights, bias), 0))
    assert len(set(results)) == 1


@pytest.mark.parametrize(("channels", "panels"), [
    (1, (0, 1, 1, 1)), (16, (0, 1, 16, 1)), (17, (0, 2, 1, 2)), (32, (1, 0, 16, 2)), (33, (1, 1, 1, 3)),
    (70, (2, 1, 6, 5)),
])  # fmt: skip
def test_panels(channels: int, panels: tuple[int, ...]) -> None:
    assert tuple(panels_of(channels, 2, 16)) == panels


def test_the_last_vector() -> None:
    avx512, avx2 = all_targets()["avx512"], all_targets()["avx2"]
    assert [last_vector(avx512, tail) for tail in (1, 8, 9, 16)] == [
        (True, True), (False, True), (True, False), (False, False)]  # fmt: skip
    assert [last_vector(avx2, tail) for tail in (1, 4, 8)] == [(True, False), (True, False), (False, False)]


def test_names() -> None:
    assert Gemm("avx512", 14, 2, half=True).name == "f32_gemm_14x2__avx512_half"
    assert Gemm("avx512", 14, 2, ("relu6", 0)).name == "f32_gemm_relu6_14x2__avx512"
    assert Gemm("avx2", 4, 3, ("relu", ("add", 0, 1)), True, True, True, 2).name == (
        "f32_conv_add_relu_4x3__avx2_accumulate_ragged_p2"
    )
    assert ContractTiles("neon").name == "x8_contract_tiles__neon"
    assert ContractSingle("neon").name == "x8_contract_single__neon"
    assert ContractPanels("neon").name == "x8_contract_panels__neon"


@pytest.mark.parametrize(("spec", "message"), [
    (Gemm("avx2", 14, 2), "needs 30 registers, avx2 has 16"),
    (Gemm("avx2", 15, 1), "mr must be 1 to 14"),
    (Gemm("avx2", 2, 1, ("mul", ("add", 0, 1), 2)), "one operand beside the sum"),
    (Gemm("avx2", 2, 1, ("frobnicate", 0)), "no function 'frobnicate'"),
])  # fmt: skip
def test_what_cannot_be(spec: Gemm, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        spec.emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("conv", [False, True])
def test_inner_loops_do_not_spill(target: Target, conv: bool) -> None:
    for mr, nv in {*TILES[target.name], *proposals(target, "gemm")}:
        text = assembly(Gemm(target.name, mr, nv, ("relu", 0), conv, prefetch=2), target)
        loops = inner_loops(text, "fmadd|fmla")
        assert loops, (mr, nv)
        for loop in loops:
            assert not [line for line in loop.splitlines() if "(%rsp)" in line or "[sp" in line], (mr, nv)


def test_factors_are_elements_of_registers() -> None:
    target = all_targets()["neon"]
    for mr, nv in proposals(target, "gemm"):
        loop, *_ = inner_loops(assembly(Gemm("neon", mr, nv), target), "fmla")
        assert len(re.findall(r"fmla.*\.s\[[0-3]\]", loop)) == mr * nv * UNROLL
        assert not re.findall(r"\b(ld1r|ldr\ts)", loop), (mr, nv)
