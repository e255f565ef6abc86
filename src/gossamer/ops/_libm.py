"""e^x in single precision, bit for bit as glibc (2.27 and later) computes it for C's ``expf``.

LiteRT's kernels fill tables by it. x = (k + r) ln 2 / 32 with whole k: e^x is 2^(k/32), from a table, times a cubic
polynomial of r, all in double precision, and rounded at the end (Arm's optimized routines, math/expf.c).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray

_STEPS = 32
_DIGITS = ("0x1.c6af84b912394p-5", "0x1.ebfce50fac4f3p-3", "0x1.62e42ff0c52d6p-1")
_CUBIC = tuple([float.fromhex(digits) / _STEPS ** (3 - n) for n, digits in enumerate(_DIGITS)])
_INVERSE_LN_2 = float.fromhex("0x1.71547652b82fep+0")


def expf(x: NDArray[Any]) -> NDArray[np.float32]:
    """Of float32 numbers, none NaN."""
    wide = np.asarray(x, np.float32).astype(np.float64)
    scaled = np.clip(wide, -200.0, 200.0) * (_INVERSE_LN_2 * _STEPS)
    k = np.rint(scaled)
    r = scaled - k
    power = np.exp2(k / _STEPS)
    a, b, c = _CUBIC
    with np.errstate(over="ignore", under="ignore"):
        result: NDArray[np.float32] = (((a * r + b) * (r * r) + (c * r + 1)) * power).astype(np.float32)
    return result
