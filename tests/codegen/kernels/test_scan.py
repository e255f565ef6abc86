from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.scan import TYPES, Scan
from gossamer.errors import CompileError
from gossamer.ops.cumsum import op as CUMSUM
from gossamer.schema import CumsumOptions
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run
from tests.ops.cases import Case, const, tensor
from tests.ops.reference import output_of

DTYPES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64"}


def scan(spec: Scan, x: np.ndarray, y: np.ndarray, size: int = 0, threads: int = 1) -> None:
    """Along the second of three dimensions."""
    outer, count, inner = x.shape
    size = size or max(inner, 1)
    arguments = block(
        spec.arguments,
        x=x,
        y=y,
        outer=outer,
        count=count,
        inner=inner,
        block=size,
        blocks=-(-inner // size),
        x_outer=x.strides[0],
        x_step=x.strides[1],
        y_outer=y.strides[0],
        y_step=y.strides[1],
    )
    run(spec, arguments, threads)


@on_every_target
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums(target: Target, type: str, exclusive: bool, reverse: bool) -> None:
    rng = np.random.default_rng(0)
    spec = Scan(target.name, exclusive, type)
    dtype, lanes = DTYPES[type], target.lanes()
    options = CumsumOptions(exclusive=exclusive, reverse=reverse)
    step = -1 if reverse else 1
    for inner in (1, lanes - 1, lanes, 3 * lanes + 2):
        for count in (1, 2, 9, *([2 * lanes + 3] if inner == 1 else [])):
            numbers = rng.standard_normal((3, count, inner)) * 4e8
            x = guarded((numbers if type == "f32" else np.rint(numbers)).astype(dtype))
            summed = "int64" if type == "f64" else dtype  # CUMSUM takes none, and these sums are exact
            want = output_of(CUMSUM, Case("", [tensor(x, summed), const(1)], [tensor(x, summed)], options))
            for size, threads in ((0, 1), (16, 2), (0, 3)):
                y = guarded(np.zeros(x.shape, dtype))
                scan(spec, x[:, ::step], y[:, ::step], size, threads)
                np.testing.assert_array_equal(y, want)
            scan(spec, x[:, ::step], x[:, ::step])
            np.testing.assert_array_equal(x, want)


@on_every_target
def test_nothing_to_sum(target: Target) -> None:
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        nothing = guarded(np.zeros(shape, np.float32))
        scan(Scan(target.name), nothing, nothing, threads=2)


def test_names_and_refusals() -> None:
    assert Scan("avx2").name == "f32_scan_inclusive__avx2"
    assert Scan("avx2", True, "i64").name == "i64_scan_exclusive__avx2"
    with pytest.raises(CompileError, match="running sums of f32, f64, i32, i64, got 'i8'"):
        Scan("avx2", type="i8").emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for type in TYPES:
        assembly(Scan(target.name, True, type), target)
