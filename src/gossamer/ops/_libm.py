"""C's functions of single precision, by which LiteRT's kernels fill tables.

Their last bits are those of the library that a process runs with, LiteRT's and ours: `single` asks it. ``expf`` is
written out for whole arrays, bit for bit as in glibc (2.27 and later). x = (k + r) ln 2 / 32 with whole k: e^x is
2^(k/32), from a table, times a cubic polynomial of r, all in double precision, and rounded at the end (Arm's optimized
routines, math/expf.c).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gossamer.arrays import NDArray

Function = Callable[[NDArray[Any]], NDArray[Any]]

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


@cache
def single(name: str, double: Function) -> Function:
    """C's function of float32 numbers of this name, such as ``tanhf``; where no library has it ``double``, a function
    of float64 arrays, rounded."""
    try:
        function = getattr(ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None), name)
    except (AttributeError, OSError):
        return lambda x: np.asarray(double(np.asarray(x, np.float64)), np.float32)
    function.argtypes, function.restype = (ctypes.c_float,), ctypes.c_float

    def of_array(x: NDArray[Any]) -> NDArray[np.float32]:
        values = np.asarray(x, np.float32)
        return np.array([function(value) for value in values.ravel().tolist()], np.float32).reshape(values.shape)

    return of_array
