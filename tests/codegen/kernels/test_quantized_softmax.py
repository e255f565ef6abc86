from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.quantized_softmax import LANES, MOST, PIECE, ROWS, QuantizedSoftmax
from gossamer.errors import CompileError
from gossamer.ops._libm import expf
from gossamer.quantization import round_half_away
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, guarded, on_every_extension, on_every_target, run
from tests.codegen.kernels.test_quantized_reduce import DTYPES, numbers

FORMS = [(type, result) for type in ("i8", "u8") for result in (type, "i16")]
SCALE = np.float32(0.04)
TABLE = expf(-SCALE * np.arange(255, -1, -1).astype(np.float32))


def softmax(
    spec: QuantizedSoftmax, x: np.ndarray, y: np.ndarray, scale: float, zero_point: int, threads: int = 1
) -> None:
    """Of the rows of a matrix."""
    output = guarded(np.array([np.float32(scale).view(np.int32), SCALE.view(np.int32), zero_point], np.int32))
    table = guarded(TABLE)
    arguments = block(
        spec.arguments,
        x=x,
        y=y,
        table=table,
        output=output,
        rows=x.shape[0],
        count=x.shape[1],
        x_row=x.strides[0],
        y_row=y.strides[0],
    )
    run(spec, arguments, threads)


def powers(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """e^(x - max x), and their sums, one after the other."""
    exps = TABLE[255 - (x.max(axis=1, keepdims=True).astype(np.int64) - x)]
    total = np.zeros((len(x), 1), np.float32)
    for column in exps.T:
        total[:, 0] += column
    return exps, total


@on_every_extension
@pytest.mark.parametrize(("type", "result"), FORMS)
@pytest.mark.parametrize("count", [1, 2, 16, 33, 128, MOST, MOST + LANES, PIECE, PIECE + 1, 2 * PIECE + 7])
def test_softmax(target: Target, type: str, result: str, count: int) -> None:
    x = numbers(type, 2 * LANES + ROWS + 3, count)
    limits = np.iinfo(DTYPES[result])
    scale, zero_point = (2.0**-16, -(1 << 15)) if result == "i16" else (2.0**-8, limits.min)
    exps, total = powers(x)
    levels = exps * (np.float32(1) / (total * np.float32(scale)))
    levels = np.trunc(levels + np.float32(0.5)) if result == "u8" else round_half_away(levels) + zero_point
    wanted = np.clip(levels, limits.min, limits.max).astype(DTYPES[result])
    for threads in (1, 2):
        y = guarded(np.zeros(x.shape, DTYPES[result]))
        softmax(QuantizedSoftmax(target.name, type, result), x, y, scale, zero_point, threads)
        np.testing.assert_array_equal(y, wanted)


@on_every_target
@pytest.mark.parametrize("type", ["i8", "u8"])
def test_logarithm(target: Target, type: str) -> None:
    limits = np.iinfo(DTYPES[type])
    for count in (1, 12, 33, 128):
        x = numbers(type, ROWS + 1, count)
        most = x.max(axis=1, keepdims=True).astype(np.float32)
        _, total = powers(x)
        scale = np.float32(1 / 16)
        least = (SCALE * most + np.log(total)) / scale
        levels = np.rint(SCALE / scale * x.astype(np.float32) - least) + limits.max
        wanted = np.clip(levels, limits.min, limits.max).astype(x.dtype)
        y = guarded(np.zeros_like(x))
        softmax(QuantizedSoftmax(target.name, type, type, log=True), x, y, 1 / 16, limits.max)
        np.testing.assert_array_equal(y, wanted)


def test_names_and_refusals() -> None:
    assert QuantizedSoftmax("avx2").name == "i8_softmax__avx2"
    assert QuantizedSoftmax("avx2", "u8", "i16").name == "u8_i16_softmax__avx2"
    assert QuantizedSoftmax("avx2", log=True).name == "i8_logsoftmax__avx2"
    with pytest.raises(CompileError, match="of i8 or u8, and makes the same or i16"):
        QuantizedSoftmax("avx2", "i8", "u8").emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", all_targets().values(), ids=all_targets())
def test_it_compiles(target: Target) -> None:
    for type, result in FORMS:
        assembly(QuantizedSoftmax(target.name, type, result), target)
    assembly(QuantizedSoftmax(target.name, log=True), target)
