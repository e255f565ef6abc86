"""Whole programs for AArch64 under an emulator, which is what every test here has for a CPU.

They are a small convolution net, and the tests of the other modules once more.
"""

from __future__ import annotations

import pytest

from tests.delegates.jit import (
    test_constants,
    test_elementwise,
    test_float16,
    test_geometry,
    test_hybrid,
    test_indices,
    test_matmul,
    test_moving,
    test_passes,
    test_reductions,
    test_rows_and_images,
    test_sequences,
    test_volumes,
)
from tests.delegates.jit.running import check, machine_code
from tests.delegates.jit.test_delegate import images, mobile_net

pytestmark = pytest.mark.emulator


def test_a_convolution_net() -> None:
    model = mobile_net()
    check(model, {0: images(1)}, threads=(1, 2, 3), within=1e-5)
    _, kernel = machine_code(model, 2)
    assert kernel.target.name == "neon"
    assert kernel.program is not None
    assert all("__neon" in name for name in kernel.program.plan.kernels)


for module in (
    test_constants,
    test_elementwise,
    test_float16,
    test_geometry,
    test_hybrid,
    test_indices,
    test_matmul,
    test_moving,
    test_passes,
    test_reductions,
    test_rows_and_images,
    test_sequences,
    test_volumes,
):
    subject = module.__name__.rpartition(".")[2]
    globals().update(
        {name.replace("test", subject, 1): test for name, test in vars(module).items() if name.startswith("test_")}
    )
