from __future__ import annotations

import numpy as np
import pytest

from gossamer.convert import crc32c as module
from gossamer.convert.crc32c import BEHIND, BLOCKS, LONG, POLYNOMIAL, SHORT, crc32c, joined, masked, unmasked


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


def test_a_stored_checksum_is_unmasked() -> None:
    for checksum in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0xE3069283):
        assert unmasked(masked(checksum)) == checksum


@pytest.mark.parametrize("sizes", [[0], [9], [4, 0, 5], [1, 1, 3000, 70_001, 2]])
def test_checksums_of_parts_are_joined(sizes: list[int]) -> None:
    data = np.random.default_rng(len(sizes)).integers(0, 256, sum(sizes), dtype=np.uint8).tobytes()
    parts = np.split(np.frombuffer(data, np.uint8), np.cumsum(sizes)[:-1])
    assert joined([crc32c(part) for part in parts], sizes) == crc32c(data)


@pytest.mark.parametrize("size", [1, 7, SHORT - 1, SHORT, SHORT + 1, 3 * SHORT + 5, 40_001])
def test_lanes_make_no_difference(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size + 1, dtype=np.uint8).tobytes()
    assert crc32c(memoryview(data)[1:]) == bit_by_bit(data[1:])


def test_what_shortens_long_data_is_a_multiple_of_the_polynomial() -> None:
    powers, power = [], 1 << 31  # a register holds the highest power in its lowest bit
    for _ in range(BEHIND[-1] + 1):
        powers.append(power)
        power = power >> 1 ^ (POLYNOMIAL if power & 1 else 0)
    assert powers[BEHIND[-1]] ^ powers[BEHIND[-1] - BEHIND[0]] ^ powers[BEHIND[-1] - BEHIND[1]] == powers[0]


@pytest.mark.parametrize("size", [LONG - 1, LONG, LONG + 3, 8 * BLOCKS * BEHIND[0], 16 * BLOCKS * BEHIND[0] + 13])
def test_long_data_are_shortened(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(size).integers(0, 256, size + 1, dtype=np.uint8).tobytes()
    found = crc32c(memoryview(data)[1:])
    monkeypatch.setattr(module, "LONG", size + 1)
    assert found == crc32c(memoryview(data)[1:])
