"""Factors, inverses and solutions of the matrices in the last two dimensions.

LAPACK, by NumPy, chooses signs as Eigen does, which TensorFlow has, but for eigenvectors and singular vectors, whose
signs are nobody's promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, Shape, kernel, like_first
from gossamer.flex.kernels._checks import require_least_rank, widened
from gossamer.flex.kernels.matrices import adjoint
from gossamer.flex.node import FlexNode


def _square(call: Call, name: str, x: Array) -> Array:
    """The matrices in a type that LAPACK has; fails unless they are square."""
    require_least_rank(call, name, x, 2)
    call.require(x.shape[-1] == x.shape[-2], f"{name} must be square matrices, got shape {list(x.shape)}")
    return widened(x)


def _tried(call: Call, what: str, function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    try:
        return function(*operands, **options)
    except np.linalg.LinAlgError as error:
        call.fail(f"{what} ({error})")


@kernel("Cholesky", "BatchCholesky", shape=like_first)
def cholesky(call: Call, x: Array) -> Any:
    """The lower factor, NaN for a matrix that is not positive definite; only the lower triangle is looked at."""
    square = _square(call, "input", x)
    try:
        return np.linalg.cholesky(square)
    except np.linalg.LinAlgError:
        return np.array([_factor(one) for one in square.reshape(-1, *square.shape[-2:])]).reshape(square.shape)


def _factor(matrix: Array) -> Array:
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.tril(np.full_like(matrix, np.nan))


@kernel("MatrixInverse", "BatchMatrixInverse", shape=like_first)
def matrix_inverse(call: Call, x: Array) -> Any:
    """The inverse of the matrix, or of its adjoint."""
    square = _square(call, "input", x)
    square = adjoint(square) if call.attributes.bool("adjoint") else square
    return _tried(call, "the matrix has no inverse", np.linalg.inv, square)


@kernel("MatrixDeterminant", "BatchMatrixDeterminant", shape=lambda node, shapes: [tuple(shapes[0][:-2])])
def matrix_determinant(call: Call, x: Array) -> Any:
    """The determinant."""
    return np.linalg.det(_square(call, "input", x))


@kernel("LogMatrixDeterminant", shape=lambda node, shapes: [tuple(shapes[0][:-2])] * 2)
def log_matrix_determinant(call: Call, x: Array) -> Any:
    """The sign of the determinant and the logarithm of its magnitude."""
    return tuple(np.linalg.slogdet(_square(call, "input", x)))


@kernel("MatrixSolve")
def matrix_solve(call: Call, matrix: Array, rhs: Array) -> Any:
    """x of ``matrix @ x = rhs``, or of the adjoint matrix."""
    square = _square(call, "matrix", matrix)
    require_least_rank(call, "rhs", rhs, 2)
    call.require(
        rhs.shape[:-1] == matrix.shape[:-1],
        f"matrix {list(matrix.shape)} and rhs {list(rhs.shape)} must have the same batch and rows",
    )
    square = adjoint(square) if call.attributes.bool("adjoint") else square
    return _tried(call, "the matrix has no inverse", np.linalg.solve, square, widened(rhs))


@kernel("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def matrix_triangular_solve(call: Call, matrix: Array, rhs: Array) -> Array:
    """x of ``matrix @ x = rhs``, one row after the other; the other triangle is not looked at."""
    square, right = _square(call, "matrix", matrix), widened(rhs)
    require_least_rank(call, "rhs", rhs, 2)
    size = square.shape[-1]
    call.require(rhs.shape[-2] == size, f"rhs must have {size} rows, got shape {list(rhs.shape)}")
    forward = call.attributes.bool("lower")
    if call.attributes.bool("adjoint"):
        square, forward = adjoint(square), not forward
    diagonal = np.diagonal(square, axis1=-2, axis2=-1)
    call.require(np.all(diagonal != 0), "the matrix has no inverse: there is a 0 in its diagonal")
    batch = np.broadcast_shapes(square.shape[:-2], right.shape[:-2])
    result = np.zeros((*batch, *right.shape[-2:]), right.dtype)
    for row in range(size) if forward else range(size - 1, -1, -1):
        done = slice(0, row) if forward else slice(row + 1, size)
        known = np.matmul(square[..., row : row + 1, done], result[..., done, :])[..., 0, :]
        result[..., row, :] = (right[..., row, :] - known) / square[..., row, row, None]
        call.poll()
    return result


def _qr_shape(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    (shape,) = shapes
    if len(shape) < 2:
        raise ValueError(f"input must be matrices, got shape {list(shape)}")
    *batch, rows, columns = shape
    inner = rows if node.attributes.bool("full_matrices") else min(rows, columns)
    return [(*batch, rows, inner), (*batch, inner, columns)]


@kernel("Qr", shape=_qr_shape)
def qr(call: Call, x: Array) -> Any:
    """Orthogonal and upper triangular factors."""
    require_least_rank(call, "input", x, 2)
    mode = "complete" if call.attributes.bool("full_matrices") else "reduced"
    q, r = np.linalg.qr(widened(x), mode)  # type: ignore[call-overload]  # it is one of two modes
    return q, r


@kernel("SelfAdjointEigV2")
def self_adjoint_eig(call: Call, x: Array) -> Any:
    """Eigenvalues of Hermitian matrices, increasing, and eigenvectors; only the lower triangle is looked at."""
    square = _square(call, "input", x)
    if not call.attributes.bool("compute_v"):
        return np.linalg.eigvalsh(square, "L"), np.zeros((), x.dtype)
    values, vectors = np.linalg.eigh(square, "L")
    return values, vectors


@kernel("Svd")
def svd(call: Call, x: Array) -> Any:
    """Singular values, decreasing, with left and right singular vectors."""
    require_least_rank(call, "input", x, 2)
    if not call.attributes.bool("compute_uv"):
        none = np.zeros((), x.dtype)
        return np.linalg.svd(widened(x), compute_uv=False), none, none
    u, s, vh = np.linalg.svd(widened(x), full_matrices=call.attributes.bool("full_matrices"))
    return s, u, adjoint(vh)
