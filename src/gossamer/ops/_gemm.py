"""Matrix products of integers through floating-point BLAS, where every partial sum is exactly representable."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray


def integer_matmul(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.int64]:
    """a @ b of integer arrays, exact, as int64.

    float32 holds integers up to 2**24 and float64 up to 2**53 exactly; a product whose bound is larger is summed in
    int64. The bound is inner size x max|a| x max|b|, so no order of summation can round.
    """
    if a.size == 0 or b.size == 0:
        return np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), np.int64)
    bound = a.shape[-1] * _magnitude(a) * _magnitude(b)
    exact_in: type[np.float32 | np.float64 | np.int64] = np.int64
    if bound < 1 << 24:
        exact_in = np.float32
    elif bound < 1 << 53:
        exact_in = np.float64
    product: NDArray[Any] = np.matmul(a.astype(exact_in), b.astype(exact_in))
    return product.astype(np.int64)


def _magnitude(x: NDArray[Any]) -> int:
    return max(abs(int(x.min())), abs(int(x.max())))
