from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.quantized_sums import TYPES
from gossamer.codegen.kernels.quantized_window import QuantizedWindow, is_wide, whole_columns
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run
from tests.codegen.kernels.test_quantized_reduce import DTYPES, numbers

FORMS = [(reduction, type) for reduction in ("max", "mean") for type in TYPES]


class Pool:
    """A window of a size, a stride and a padding in front, over both axes."""

    def __init__(self, size: tuple[int, int], stride: int = 1, pad: int = 0) -> None:
        self.size, self.stride, self.pad = size, stride, pad

    def run(self, target: Target, reduction: str, type: str, x: np.ndarray, y: np.ndarray, threads: int = 1) -> None:
        """With the kernel, unclamped."""
        wide = reduction == "mean" and is_wide(self.size[0] * self.size[1])
        spec = QuantizedWindow(target.name, reduction, type, wide)  # type: ignore[arg-type]
        images, rows, columns, channels = y.shape
        whole, whole_end = whole_columns(x.shape[2], self.size[1], self.stride, self.pad, columns)
        limits = np.iinfo(x.dtype)
        arguments = block(
            spec.arguments,
            x=x,
            y=y,
            images=images,
            rows=rows,
            columns=columns,
            channels=channels,
            height=x.shape[1],
            width=x.shape[2],
            window_rows=self.size[0],
            window_columns=self.size[1],
            stride_rows=self.stride,
            stride_columns=self.stride,
            pad_rows=self.pad,
            pad_columns=self.pad,
            whole=whole,
            whole_end=whole_end,
            low=limits.min,
            high=limits.max,
            x_image=x.strides[0],
            x_row=x.strides[1],
            x_column=x.strides[2],
            y_image=y.strides[0],
            y_row=y.strides[1],
            y_column=y.strides[2],
        )
        run(spec, arguments, threads)

    def expected(self, reduction: str, x: np.ndarray) -> np.ndarray:
        """Element by element; as many outputs as windows begin inside the image."""
        rows, columns = (-(-(size + self.pad) // self.stride) for size in x.shape[1:3])
        y = np.zeros((len(x), rows, columns, x.shape[3]), x.dtype)
        for i in range(rows):
            for j in range(columns):
                top, left = i * self.stride - self.pad, j * self.stride - self.pad
                part = x[:, max(top, 0) : top + self.size[0], max(left, 0) : left + self.size[1]]
                if reduction == "max":
                    y[:, i, j] = part.max(axis=(1, 2))
                else:
                    total, count = part.sum(axis=(1, 2), dtype=np.int64), part.shape[1] * part.shape[2]
                    y[:, i, j] = np.sign(total) * ((np.abs(total) + count // 2) // count)
        return y


POOLS = [Pool((3, 3), 2, 1), Pool((2, 2), 2), Pool((3, 2)), Pool((1, 1)), Pool((9, 11), 3, 2), Pool((20, 17), 5, 1)]


@on_every_target
@pytest.mark.parametrize(("reduction", "type"), FORMS)
def test_windows(target: Target, reduction: str, type: str) -> None:
    lanes = target.lanes(8)
    for pool in POOLS:
        for channels in (1, 3, 8, 24, lanes, 2 * lanes + 9):
            x = numbers(type, 2, 13, 17, channels)[:, 1:, :-1]
            wanted = pool.expected(reduction, x)
            for threads in (1, 3):
                y = guarded(np.zeros_like(wanted))
                pool.run(target, reduction, type, x, y, threads)
                np.testing.assert_array_equal(y, wanted)


@on_every_target
@pytest.mark.parametrize("type", TYPES)
def test_means_of_all_sums(target: Target, type: str) -> None:
    """Of every count the sums around whole numbers and halves."""
    limits = np.iinfo(DTYPES[type])
    rng = np.random.default_rng(0)
    for count in (2, 3, 7, 48, 49, 125, 256, 289):
        x = rng.choice([limits.min, limits.max, 0, 1], (1, 1, count, 400)).astype(DTYPES[type])
        x[..., :9] = np.arange(9)
        pool = Pool((1, count), count)
        y = guarded(np.zeros((1, 1, 1, 400), x.dtype))
        pool.run(target, "mean", type, guarded(x), y)
        np.testing.assert_array_equal(y, pool.expected("mean", x))


def test_names_and_refusals() -> None:
    assert QuantizedWindow("avx2", "max").name == "i8_maxpool__avx2"
    assert QuantizedWindow("avx2", "mean", "u8", True).name == "u8_avgpool_wide__avx2"
    with pytest.raises(CompileError, match="maxima and means of i8, u8, i16"):
        QuantizedWindow("avx2", "max", "i32").emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for reduction, type in FORMS:
        assembly(QuantizedWindow(target.name, reduction, type), target)  # type: ignore[arg-type]
    assembly(QuantizedWindow(target.name, "mean", "i8", True), target)
