"""Products of matrices, diagonals and systems of equations, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.errors import ConvertError
from tests.convert.tensorflow.one_node import Array, Fixed, run_one


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize("exchanged", [(False, False), (True, False), (False, True)])
def test_products(exchanged: tuple[bool, bool], dtype: Any, tmp_path: Path) -> None:
    x, y = numbers(3, 4, dtype=dtype), numbers(4, 5, dtype=dtype)
    a, b = (v.T.copy() if turn else v for v, turn in zip((x, y), exchanged, strict=True))
    options = {"transpose_a": exchanged[0], "transpose_b": exchanged[1]}
    for right in (b, Fixed(b)):
        found = run_one("MatMul", a, right, path=tmp_path, **options)
        np.testing.assert_array_equal(found.value, x @ y)
        if dtype == np.float32:
            assert ("FULLY_CONNECTED" in found.operators) == isinstance(right, Fixed)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
def test_products_of_stacks(dtype: Any, tmp_path: Path) -> None:
    x, y = numbers(2, 3, 4, dtype=dtype), numbers(2, 4, 5, dtype=dtype)
    np.testing.assert_array_equal(run_one("BatchMatMulV2", x, y, path=tmp_path, opened={0: [0], 1: [0]}).value, x @ y)
    right = np.swapaxes(y, 1, 2).copy()
    found = run_one("BatchMatMulV2", x, right, path=tmp_path, adj_y=True).value
    np.testing.assert_array_equal(found, x @ np.conj(np.swapaxes(right, 1, 2)))
    np.testing.assert_array_equal(run_one("BatchMatMulV2", x, Fixed(y[0]), path=tmp_path).value, x @ y[0])
    six = numbers(1, 2, 1, 2, 3, 4, dtype=dtype)
    found = run_one("BatchMatMul", six, np.swapaxes(six, 4, 5).copy(), path=tmp_path).value
    np.testing.assert_array_equal(found, six @ np.swapaxes(six, 4, 5))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
        ("bhqk,bkhd->bqhd", [(2, 2, 3, 4), (2, 4, 2, 5)]),
        ("...ij,jk->...ik", [(2, 2, 3), (3, 4)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij->ji", [(2, 3)]),
        ("ijk->j", [(2, 3, 4)]),
        ("ii->i", [(3, 3)]),
        ("bii->b", [(2, 3, 3)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]], tmp_path: Path) -> None:
    operands = [numbers(*shape) for shape in shapes]
    found = run_one("Einsum", *operands, path=tmp_path, equation=equation).value
    np.testing.assert_array_equal(found, np.einsum(equation, *operands))


def test_cross_product(tmp_path: Path) -> None:
    x, y = numbers(2, 4, 3), numbers(4, 2, 3).reshape(2, 4, 3)
    np.testing.assert_array_equal(run_one("Cross", x, y, path=tmp_path).value, np.cross(x, y))


# -- diagonals: the definitions of TensorFlow's documentation, element by element


def place(number: int, column: int, rows: int, columns: int, width: int, align: str) -> int:
    """Where element ``column`` of the row of diagonal ``number`` lies along the diagonal."""
    length = min(rows + min(number, 0), columns - max(number, 0))
    superior, inferior = align.split("_")
    side = superior if number >= 0 else inferior
    return column - (width - length if side == "RIGHT" else 0)


def diagonals_of(x: Array, lower: int, upper: int, padding: float, align: str) -> Array:
    rows, columns = x.shape
    width = min(rows + min(upper, 0), columns - max(lower, 0))
    found = np.full((upper - lower + 1, width), padding, x.dtype)
    for number in range(lower, upper + 1):
        for column in range(width):
            n = place(number, column, rows, columns, width, align)
            row, col = n - min(number, 0), n + max(number, 0)
            if n >= 0 and row < rows and col < columns:
                found[upper - number, column] = x[row, col]
    return found if lower != upper else found[0]


def with_diagonals(x: Array, diagonals: Array, lower: int, upper: int, align: str) -> Array:
    found, (rows, columns) = x.copy(), x.shape
    several = diagonals if lower != upper else diagonals[None]
    for number in range(lower, upper + 1):
        for column in range(several.shape[1]):
            n = place(number, column, rows, columns, several.shape[1], align)
            row, col = n - min(number, 0), n + max(number, 0)
            if n >= 0 and row < rows and col < columns:
                found[row, col] = several[upper - number, column]
    return found


BANDS = [(0, 0), (1, 1), (-2, -2), (-1, 1), (0, 2), (-2, -1)]
ALIGNS = ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"]


def scalar(number: int) -> Fixed:
    return Fixed(np.array(number, np.int32))


@pytest.mark.parametrize("align", ALIGNS)
def test_diagonals(align: str, tmp_path: Path) -> None:
    x = numbers(2, 3, 4)
    for lower, upper in BANDS:
        band = Fixed(np.array([lower, upper], np.int32))
        parts = np.stack([diagonals_of(one, lower, upper, 7, align) for one in x])
        found = run_one("MatrixDiagPartV3", x, band, np.float32(7), path=tmp_path, align=align).value
        np.testing.assert_array_equal(found, parts)
        found = run_one("MatrixSetDiagV3", x, parts + 1, band, path=tmp_path, align=align).value
        expected = [with_diagonals(*pair, lower, upper, align) for pair in zip(x, parts + 1, strict=True)]
        np.testing.assert_array_equal(found, expected)
        found = run_one(
            "MatrixDiagV3", parts, band, scalar(3), scalar(4), Fixed(np.float32(9)), path=tmp_path, align=align
        ).value
        expected = [with_diagonals(np.full((3, 4), 9, np.float32), one, lower, upper, align) for one in parts]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.float16])
def test_main_diagonals(dtype: Any, tmp_path: Path) -> None:
    x = numbers(2, 3, dtype=dtype)
    found = run_one("MatrixDiag", x, path=tmp_path, opened={0: [0]})
    np.testing.assert_array_equal(found.value, x[:, :, None] * np.eye(3, dtype=dtype))
    defaults = [scalar(0), scalar(-1), scalar(-1), Fixed(np.zeros((), dtype))]
    assert "MATRIX_DIAG" in run_one("MatrixDiagV3", x, *defaults, path=tmp_path).operators
    np.testing.assert_array_equal(run_one("MatrixDiagPart", found.value, path=tmp_path).value, x)
    square = numbers(2, 3, 3, dtype=dtype)
    put = run_one("MatrixSetDiag", square, x, path=tmp_path).value
    np.testing.assert_array_equal(np.diagonal(put, axis1=1, axis2=2), x)
    whole = run_one("Diag", x, path=tmp_path).value
    np.testing.assert_array_equal(whole.reshape(6, 6), np.diag(x.reshape(-1)))
    np.testing.assert_array_equal(run_one("DiagPart", whole, path=tmp_path).value, x)


@pytest.mark.parametrize("ends", [(0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1), (5, 1)])
def test_bands(ends: tuple[int, int], tmp_path: Path) -> None:
    x = numbers(2, 4, 5)
    rows, columns = np.indices((4, 5))
    low, high = ends
    kept = ((low < 0) | (rows - columns <= low)) & ((high < 0) | (columns - rows <= high))
    for given in ([scalar(low), scalar(high)], [np.array(low, np.int32), np.array(high, np.int32)]):
        np.testing.assert_array_equal(run_one("MatrixBandPart", x, *given, path=tmp_path).value, np.where(kept, x, 0))
    found = run_one("MatrixBandPart", x, scalar(low), scalar(high), path=tmp_path, opened={0: [0, 1, 2]}).value
    np.testing.assert_array_equal(found, np.where(kept, x, 0))


def test_systems_of_equations(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    x, right = random.normal(size=(3, 4, 4)).astype(np.float32), random.normal(size=(3, 4, 2)).astype(np.float32)
    x[0, 0, 0] = 0  # a pivot must be looked for
    near = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(run_one("MatrixInverse", x, path=tmp_path).value, np.linalg.inv(x), **near)
    np.testing.assert_allclose(run_one("MatrixDeterminant", x, path=tmp_path).value, np.linalg.det(x), **near)
    sign, size = run_one("LogMatrixDeterminant", x, path=tmp_path, outputs=2).values
    np.testing.assert_allclose(sign * np.exp(size), np.linalg.det(x), **near)
    np.testing.assert_allclose(run_one("MatrixSolve", x, right, path=tmp_path).value, np.linalg.solve(x, right), **near)
    found = run_one("MatrixInverse", x[0], path=tmp_path, adjoint=True).value
    np.testing.assert_allclose(found, np.linalg.inv(x[0]).T, **near)
    square = x @ np.swapaxes(x, 1, 2) + np.eye(4, dtype=np.float32)
    np.testing.assert_allclose(run_one("Cholesky", square, path=tmp_path).value, np.linalg.cholesky(square), **near)
    for lower in (True, False):
        for adjoint in (False, True):
            triangle = (np.tril(square) if lower else np.triu(square)).astype(np.float64)
            expected = np.linalg.solve(np.swapaxes(triangle, 1, 2) if adjoint else triangle, right)
            found = run_one("MatrixTriangularSolve", square, right, path=tmp_path, lower=lower, adjoint=adjoint).value
            np.testing.assert_allclose(found, expected, **near)


def test_large_systems_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="matrices of 64 rows"):
        run_one("MatrixInverse", np.eye(64, dtype=np.float32), path=tmp_path)
