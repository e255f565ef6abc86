"""Whole programs for AArch64 under an emulator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.emulator import NEON, machine
from tests.delegates.jit.running import check, machine_code, outputs
from tests.delegates.jit.test_delegate import images, in_two_parts, mobile_net

pytestmark = pytest.mark.emulator


def there(model: bytes) -> np.ndarray:
    """A model in memory of the machine, for weights that are not packed."""
    memory = machine().memory(len(model), to_the_end=False)
    memory[:] = np.frombuffer(model, np.uint8)
    return memory


def test_a_convolution_net() -> None:
    check(there(mobile_net()), {0: images(1)}, threads=(1, 2, 3), within=1e-5, target=NEON)
