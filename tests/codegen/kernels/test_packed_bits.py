from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.packed_bits import SIZES, PackBits, UnpackBits
from gossamer.dtypes import pack, unpack
from gossamer.schema import TensorType
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

TYPES = {(4, True): TensorType.INT4, (4, False): TensorType.UINT4, (2, True): TensorType.INT2}
COUNTS = (1, 2, 3, 4, 5, 31, 32, 33, 64, 130, 517)


@on_every_target
@pytest.mark.parametrize(("bits", "signed"), TYPES)
def test_elements_of_bytes_and_back(target: Target, bits: int, signed: bool) -> None:
    rng, type = np.random.default_rng(0), TYPES[bits, signed]
    for count in COUNTS:
        packed = guarded(rng.integers(0, 256, -(-count * bits // 8)).astype(np.uint8))
        for size, threads in ((len(packed), 1), (17, 3)):
            blocks = {"count": count, "block": size, "blocks": -(-len(packed) // size)}
            spec, elements = UnpackBits(target.name, bits, signed), guarded(np.full(count, 99, np.uint8))
            run(spec, block(spec.arguments, x=packed, y=elements, **blocks), threads)
            want = unpack(packed, type, count)
            np.testing.assert_array_equal(elements.view(want.dtype), want)
            elements[:] = rng.integers(0, 256, count)  # of which the low bits count
            back, y = PackBits(target.name, bits), guarded(np.full(len(packed), 99, np.uint8))
            run(back, block(back.arguments, x=elements, y=y, **blocks), threads)
            np.testing.assert_array_equal(y, pack(elements, type))


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles_for_every_target(target: Target) -> None:
    for bits in SIZES:
        assembly(UnpackBits(target.name, bits), target)
        assembly(PackBits(target.name, bits), target)


def test_names() -> None:
    assert UnpackBits("avx2", 4).name == "i4_unpackbits__avx2"
    assert UnpackBits("avx2", 4, False).name == "u4_unpackbits__avx2"
    assert PackBits("avx2", 2).name == "x2_packbits__avx2"
