"""Lines of an image that follow each other are one row of pixels, wherever those of the result are."""

from __future__ import annotations

import pytest

from gossamer.schema import TensorType
from tests.delegates.jit.running import TARGETS, machine_code
from tests.delegates.jit.test_spared_copies import Layers, kinds

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")


@pytest.mark.parametrize(
    ("columns", "joined"), [(5, True), (14, True), (8, False), (3, False)], ids=["5", "14", "whole tiles", "short"]
)
@pytest.mark.parametrize("channels", [20, 37])
def test_results_with_borders(channels: int, columns: int, joined: bool) -> None:
    make = Layers(TensorType.INT8)
    x = make.activations(2, 6, columns, channels)
    a = make.convolution(x, channels)
    y = make.depthwise(make.add(make.convolution(make.depthwise(a), channels), a))
    kinds(make, x, y)
    make.io([x], [y])
    found = []
    for target in TARGETS:
        _, kernel = machine_code(make.model(), 1, target)
        assert kernel.built is not None
        forms = [name.split("__avx2_")[1] for name in kernel.built.specs if "_inner_" in name and "__avx2_" in name]
        found += [target.name] * any("lines" in form for form in forms)
    assert found == [target.name for target in TARGETS if joined and target.name == "avx2"]
