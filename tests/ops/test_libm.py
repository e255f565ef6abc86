"""Functions of C's library, bit for bit."""

from __future__ import annotations

import ctypes
import platform

import numpy as np
import pytest

from gossamer.ops._libm import expf


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_expf_is_that_of_glibc() -> None:
    function = ctypes.CDLL("libm.so.6").expf
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            -rng.random(20000) * 30,
            rng.standard_normal(20000) * 40,
            [0, -0.0, 88.7, 89, -87, -103, -104, -150, 1e30, -1e30],
        ]
    ).astype(np.float32)
    expected = np.array([function(float(number)) for number in x], np.float32)
    assert expf(x).tobytes() == expected.tobytes()


def test_exact_values() -> None:
    np.testing.assert_array_equal(expf(np.array([0, -200, 200], np.float32)), np.array([1, 0, np.inf], np.float32))
    assert expf(np.float32(1)) == np.float32(np.e)
