"""Weights of 24 bits: how far they are from floats, what keeps panels floats, and what becomes of sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.contract import Gemm, panels_of
from gossamer.codegen.kernels.contract24 import HEADER, MOST, Gemm24, Pack24, header_bytes, narrows
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import RUNNABLE, address, block, call, filled, guarded, normal, pack, place, run

TARGETS = [target for target in RUNNABLE if narrows(target)]
on_every_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)

ROUNDED = 2.0**-24


class Panel(NamedTuple):
    """What lies where one is."""

    is_narrow: bool
    factors: np.ndarray
    words: np.ndarray
    """[depth, channels]: integers, or the floats."""


class Packed:
    """Weights [channels, depth] in panels of ``nv`` vectors."""

    def __init__(self, target: Target, weights: np.ndarray, nv: int, threads: int = 1) -> None:
        self.target, self.nv, self.lanes = target, nv, target.lanes()
        channels, self.depth = weights.shape
        self.panels = panels_of(channels, nv, self.lanes)
        widths = [nv] * self.panels.whole + [self.panels.rest_nv] * bool(self.panels.rest_nv)
        self.widths = widths
        headers = sum(header_bytes(self.lanes, width) for width in widths)
        floats = pack(target.plain, weights, nv).view(np.uint8)
        self.memory = guarded(np.concatenate([np.full(headers, 0xAA, np.uint8), floats]))
        arguments = block(
            Pack24.arguments,
            weights=self.memory[headers:],
            headers=self.memory,
            depth=self.depth,
            nv=nv,
            panels=self.panels.whole,
            rest_nv=self.panels.rest_nv,
        )
        run(Pack24(target.name), arguments, threads)

    def __getitem__(self, number: int) -> Panel:
        width, start = self.widths[number], number * header_bytes(self.lanes, self.nv)
        begin, is_narrow = self.memory[start : start + 16].view(np.int64)
        count, lanes = self.lanes * width, self.lanes
        factors = self.memory[start + HEADER : start + HEADER + 4 * count].view(np.float32)
        lines = width - width // 4 if is_narrow else width
        stored = self.memory[start + begin : start + begin + 4 * lanes * lines * self.depth]
        if not is_narrow:
            return Panel(False, factors, stored.view(np.float32).reshape(self.depth, count))
        rows = stored.view(np.uint32).reshape(self.depth, lines, lanes)
        words = []
        for group in range(width // 4):
            a, b, c = rows[:, 3 * group], rows[:, 3 * group + 1], rows[:, 3 * group + 2]
            words += [a, b, c << 8, a << 24 | (b & 0xFF) << 16 | c >> 24 << 8 | (c >> 16 & 0xFF)]
        words += [rows[:, 3 * (width // 4) + v] for v in range(width % 4)]
        return Panel(True, factors, np.stack(words, 1).reshape(self.depth, count).view(np.int32))

    def product(
        self,
        x: np.ndarray,
        bias: np.ndarray,
        epilogue: Expression = IDENTITY,
        residual: np.ndarray | None = None,
    ) -> np.ndarray:
        """A row times the weights, panel by panel."""
        y = filled(bias.shape)
        shape = block(
            Gemm.arguments,
            depth=self.depth,
            taps=1,
            tap_offsets=0,
            a_stride=0,
            c_stride=0,
            residual_stride=0,
            tail=self.panels.tail,
        )
        for number, width in enumerate(self.widths):
            is_last = number == self.panels.whole
            spec = Gemm24(self.target.name, width, epilogue, is_last and self.panels.tail < self.lanes)
            header = place(self.memory) + number * header_bytes(self.lanes, self.nv)
            at = 4 * number * self.nv * self.lanes
            other = 0 if residual is None else place(residual) + at
            call(address(spec), place(x), header, place(bias) + at, place(y) + at, other, 0, place(shape))
        return y


def uniform(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """None is far larger than the others, so that they are allowed 24 bits from a few on."""
    return guarded(rng.uniform(-2, 2, shape).astype(np.float32))


def plain(target: Target, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """What microkernels of floats make of them: rounded after each multiply-add, from the bias on."""
    total = bias.astype(np.float32)
    for value, column in zip(x, weights.T, strict=True):
        # Products of floats are exact in double precision, so that this is rounded twice at most.
        total = (value.astype(np.float64) * column + total).astype(np.float32)
    return total


@on_every_target
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("channels", [1, 16, 23, 64, 100, 128, 200, 384, 391])
def test_weights_are_the_nearest_that_there_are(target: Target, channels: int, threads: int) -> None:
    rng = np.random.default_rng(channels)
    weights = uniform(rng, channels, 70)
    nv = min(MOST, -(-channels // target.lanes()))
    packed = Packed(target, weights, nv, threads)
    for number, width in enumerate(packed.widths):
        panel, first = packed[number], number * nv * target.lanes()
        here = weights[first : first + width * target.lanes()].T.astype(np.float64)
        there = panel.words[:, : here.shape[1]] * panel.factors[: here.shape[1]].astype(np.float64)
        largest = np.abs(here).max(axis=0)
        assert panel.is_narrow
        # Half of the 256 between words with the same last byte, and what division rounds before that.
        assert np.max(np.abs(here - there) - ROUNDED * (1.001 * largest + np.abs(here))) <= 0


@on_every_target
@pytest.mark.parametrize("epilogue", [IDENTITY, ("add", 0, 1)], ids=["plain", "residual"])
@pytest.mark.parametrize("depth", [1, 33, 64, 70, 256])
@pytest.mark.parametrize("channels", [5, 32, 64, 100, 391])
def test_sums_are_those_of_the_weights(target: Target, channels: int, depth: int, epilogue: Expression) -> None:
    rng = np.random.default_rng(depth)
    weights, x, bias, residual = (normal(rng, *shape) for shape in ((channels, depth), (depth,), *[(channels,)] * 2))
    packed = Packed(target, weights, min(MOST, -(-channels // 16)))
    got = packed.product(x, bias, epilogue, residual)
    want = weights.astype(np.float64) @ x + bias + (residual if epilogue else 0)
    np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * depth**0.5)


@on_every_target
@pytest.mark.parametrize("depth", [64, 192, 256, 512])
@pytest.mark.parametrize(("largest", "bound"), [(0, 1.2), (0.49, 1.45)], ids=["even", "just allowed"])
def test_errors_are_not_much_larger_than_those_of_floats(
    target: Target, depth: int, largest: float, bound: float
) -> None:
    # 1.4 times where a channel's largest is half of its length, as the docstring has it.
    rng = np.random.default_rng(depth)
    channels = 512
    weights = uniform(rng, channels, depth)
    if largest:
        weights[:, 0] = largest / (1 - largest**2) ** 0.5 * np.linalg.norm(weights[:, 1:], axis=1)
    bias = guarded(np.zeros(channels, np.float32))
    packed = Packed(target, weights, MOST)
    assert all(packed[number].is_narrow for number in range(len(packed.widths)))
    errors = {"24": 0.0, "32": 0.0}
    for _ in range(8):
        x = normal(rng, depth)
        exact = weights.astype(np.float64) @ x
        errors["24"] += float(np.square(packed.product(x, bias) - exact).sum())
        errors["32"] += float(np.square(plain(target, x, weights, bias) - exact).sum())
    assert 0 < errors["24"] <= bound**2 * errors["32"]


OTHERS = {
    "outlier": lambda w: w[3].__setitem__(5, 100),
    "few": lambda w: w[3].__setitem__(slice(3, None), 0),
    "infinity": lambda w: w[3].__setitem__(5, np.inf),
    "nan": lambda w: w[3].__setitem__(5, np.nan),
    "huge": lambda w: w[3].__imul__(np.float32(2.0**100)),
    "tiny": lambda w: w[3].__imul__(np.float32(2.0**-60)),
    "denormal": lambda w: w[3].__imul__(np.float32(2.0**-130)),
    "integers": lambda w: np.rint(w * 10, out=w),
    "float16": lambda w: w.__setitem__(slice(None), w.astype(np.float16)),
    "zeros": lambda w: w.__setitem__(slice(None), 0),
}
"""What keeps a panel's weights as floats."""


@on_every_target
@pytest.mark.parametrize("name", OTHERS)
def test_other_panels_stay_floats(target: Target, name: str) -> None:
    rng, each = np.random.default_rng(7), 4 * target.lanes()
    weights = uniform(rng, 3 * each + 5, 61)
    with np.errstate(under="ignore"):
        OTHERS[name](weights[each : 2 * each])
    x, bias = normal(rng, 61), normal(rng, len(weights))
    for threads in (1, 2):
        packed = Packed(target, weights, 4, threads)
        assert [packed[number].is_narrow for number in range(4)] == [True, False, True, True]
        np.testing.assert_array_equal(packed[1].words, weights[each : 2 * each].T)
        with np.errstate(invalid="ignore"):
            want = plain(target, x, weights[each : 2 * each], bias[each : 2 * each])
        got = packed.product(x, bias)
        np.testing.assert_allclose(got[each : 2 * each], want, rtol=1e-6)
        np.testing.assert_array_equal(
            got[each : 2 * each], floats(target, x, weights[each : 2 * each], bias[each : 2 * each])
        )
        others = np.r_[0:each, 2 * each : len(weights)]
        np.testing.assert_allclose(got[others], weights[others].astype(np.float64) @ x + bias[others], atol=3e-5)


def floats(target: Target, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """One panel of them, by the microkernel of floats."""
    y = filled(bias.shape)
    words = {"depth": len(x), "taps": 1, "tail": target.lanes()}
    rest = dict.fromkeys(("tap_offsets", "a_stride", "c_stride", "residual_stride"), 0)
    shape, packed = block(Gemm.arguments, **words, **rest), pack(target.plain, weights, 4)
    pointers = [place(array) for array in (x, packed, bias, y)]
    call(address(Gemm(target.plain.name, 1, 4)), *pointers, 0, 0, place(shape))
    return y


@on_every_target
def test_a_channel_of_zeros_leaves_the_others_as_they_are(target: Target) -> None:
    weights = uniform(np.random.default_rng(0), 64, 64)
    weights[9] = 0
    packed, bias = Packed(target, weights, 4), guarded(np.ones(64, np.float32))
    assert packed[0].is_narrow
    assert packed.product(guarded(np.full(64, 1e30, np.float32)), bias)[9] == 1


@on_every_target
@pytest.mark.parametrize("exponent", [-140, -100, -60, 60, 90, 100, 120])
def test_inputs_may_be_of_any_size(target: Target, exponent: int) -> None:
    rng = np.random.default_rng(1)
    weights, x = uniform(rng, 64, 128), normal(rng, 128)
    x *= np.float32(2.0**exponent)
    bias = guarded(np.zeros(64, np.float32))
    got = Packed(target, weights, 4).product(x, bias)
    exact = weights.astype(np.float64) @ x
    np.testing.assert_allclose(got, exact, rtol=0, atol=max(3e-6 * 2.0**exponent * 12, 2.0**-140))


@on_every_target
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_no_number_stays_none(target: Target, value: float) -> None:
    rng = np.random.default_rng(1)
    weights, x = uniform(rng, 64, 128), normal(rng, 128)
    x[77] = value
    got = Packed(target, weights, 4).product(x, guarded(np.zeros(64, np.float32)))
    np.testing.assert_array_equal(got, weights[:, 77] * np.float32(value))


def test_other_targets_have_no_such_kernels() -> None:
    for target in all_targets().values():
        assert bool(list(Gemm24.ships(target))) is bool(list(Pack24.ships(target))) is narrows(target)


@on_every_target
@pytest.mark.parametrize("spec", [(9,), (0,), (4, ("add", ("add", 0, 1), 2))])
def test_what_there_is_not(target: Target, spec: tuple[int, Expression]) -> None:
    with pytest.raises(CompileError):
        Gemm24(target.name, *spec).emit(target)
