"""Functions of C's library, bit for bit."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import numpy as np
import pytest

from gossamer.ops._libm import expf, single


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


@pytest.mark.parametrize("name", ["erfcf", "expm1f", "logf", "tanhf"])
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_functions_are_those_of_the_library(name: str) -> None:
    function = getattr(ctypes.CDLL("libm.so.6"), name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    x = np.random.default_rng(0).random((4, 100), np.float32) * 3
    assert single(name, _none)(x).tolist() == [[function(float(number)) for number in row] for row in x]


def test_what_no_library_has_is_rounded() -> None:
    x = np.array([[-0.3, 2]], np.float32)
    got = single("no_such_function", np.tanh)(x)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.tanh(x.astype(np.float64)).astype(np.float32))


def _none(x: Any) -> Any:
    raise AssertionError
