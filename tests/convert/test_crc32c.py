from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert.crc32c import POLYNOMIAL, SHORT, crc32c, masked


def bit_by_bit(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (POLYNOMIAL if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def test_known_checksums() -> None:
    # RFC 3720, B.4
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0


def test_masked_rotates_and_adds() -> None:
    assert masked(0) == 0xA282EAD8
    assert masked(1 << 15) == 0xA282EAD9
    assert masked(0xFFFFFFFF) == 0xA282EAD7


@pytest.mark.parametrize("size", [1, 7, SHORT - 1, SHORT, SHORT + 1, 3 * SHORT + 5, 40_001])
def test_lanes_make_no_difference(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size + 1, dtype=np.uint8).tobytes()
    assert crc32c(memoryview(data)[1:]) == bit_by_bit(data[1:])
