"""Products of bytes in registers of tiles, in software: what vectors of bytes compute, in many shapes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.programs import host
from gossamer.schema import Padding
from gossamer.targets import Target
from tests.codegen.tiles import AMX, SOFTWARE, VNNI, software_tiles
from tests.delegates.jit import test_quantized_contractions as contractions
from tests.delegates.jit.running import TARGETS, machine_code

RELU, RELU6 = contractions.RELU, contractions.RELU6
HERE = AMX.runs_on(host.cpu_features())

pytestmark = [
    pytest.mark.skipif(VNNI not in TARGETS, reason="the CPU has no AVX-512 with dot products of bytes"),
    pytest.mark.parametrize(
        "tiles",
        [SOFTWARE, pytest.param(AMX, marks=pytest.mark.skipif(not HERE, reason="the CPU has no tiles"))],
        ids=("software", "here"),
        indirect=True,
    ),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels are that know addresses of this process."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, place: Path) -> Iterator[list[str]]:
    """Checks are of a target with tiles and of one without. The kernels that the first has called."""
    target: Target = request.param
    called: list[str] = []

    def noted(model: bytes, threads: int, target: Target) -> Any:
        interpreter, kernel = machine_code(model, threads, target)
        if target.tiles:
            assert kernel.built is not None
            called.extend(name for step in kernel.built.steps for name in (step.kernel, *step.calls))
        return interpreter, kernel

    monkeypatch.setattr(contractions, "machine_code", noted)
    kept, TARGETS[:] = TARGETS[:], [target, VNNI]
    if target is AMX:
        yield called
    else:
        monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(place))
        with software_tiles():
            yield called
    TARGETS[:] = kept


class OfSignedWeights(contractions.Numbers):
    """Weights of uint8 whose zero point is the one that makes them int8."""

    def __init__(self, rng: np.random.Generator, type: type, channels: int, depth: int, w_zero: bool = True) -> None:
        super().__init__(rng, type, channels, depth, w_zero)
        self.w_zero = 128 if type is np.uint8 else 0


# (images, rows, columns, channels), (filters, rows, columns), and what differs from stride 1, SAME and one group.
CONVOLUTIONS: list[tuple[Any, Any, dict[str, Any]]] = [
    ((1, 6, 7, 64), (70, 1, 1), {"activation": RELU6}),
    ((1, 56, 1, 64), (256, 1, 1), {}),
    ((2, 5, 5, 96), (100, 1, 1), {"activation": RELU}),
    ((1, 4, 4, 144), (24, 1, 1), {}),
    ((1, 8, 8, 184), (40, 1, 1), {}),
    ((1, 7, 7, 960), (160, 1, 1), {}),
    ((1, 9, 7, 16), (20, 3, 3), {}),
    ((1, 20, 23, 32), (12, 3, 3), {"activation": RELU}),
    ((2, 7, 7, 72), (64, 3, 3), {}),
    ((1, 9, 9, 80), (16, 1, 1), {"stride": 2}),
    ((1, 11, 11, 40), (8, 3, 3), {"dilation": 2}),
    ((1, 12, 12, 116), (33, 3, 3), {"stride": 2, "padding": Padding.VALID}),
    ((1, 9, 9, 128), (48, 3, 3), {"groups": 2}),
    ((1, 7, 7, 512), (1000, 1, 1), {}),
]


@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize(("shape", "filter", "more"), CONVOLUTIONS)
def test_convolutions(
    tiles: list[str], monkeypatch: pytest.MonkeyPatch, shape: Any, filter: Any, more: dict[str, Any], type: type
) -> None:
    monkeypatch.setattr(contractions, "Numbers", OfSignedWeights)
    contractions.test_convolutions(shape, filter, more, type)
    assert [name for name in tiles if "_tile_" in name]


@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize(("rows", "depth", "units"), [(8, 64, 16), (17, 104, 33), (49, 64, 200), (64, 1024, 48)])
def test_fully_connected(
    tiles: list[str], monkeypatch: pytest.MonkeyPatch, rows: int, depth: int, units: int, type: type
) -> None:
    monkeypatch.setattr(contractions, "Numbers", OfSignedWeights)
    contractions.test_fully_connected(rows, depth, units, type)
    assert [name for name in tiles if "_tile_" in name]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("shape", [(2, 20, 72, 33), (3, 9, 64, 64)])
def test_batch_matmul(tiles: list[str], shape: Any, constant: bool) -> None:
    contractions.test_batch_matmul(shape, constant, (False, True), 0)
    assert [name for name in tiles if "_tile_" in name]


@pytest.mark.parametrize(
    ("rows", "depth", "units"),
    [(1, 640, 128), (7, 256, 64), (64, 60, 64), (64, 257, 64)],
    ids=("one row", "few rows", "little depth", "no whole steps"),
)
def test_what_suits_vectors_better(tiles: list[str], rows: int, depth: int, units: int) -> None:
    contractions.test_fully_connected(rows, depth, units, np.int8)
    assert tiles
    assert not [name for name in tiles if "tile_" in name]


def test_weights_with_a_zero_point_are_multiplied_in_vectors(tiles: list[str]) -> None:
    contractions.test_fully_connected(49, 64, 200, np.uint8)
    assert not [name for name in tiles if "_tile_" in name]
