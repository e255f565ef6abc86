"""Fixtures that tests of batches share with those of the tools."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tools.conftest import gossamer, place

__all__ = ["gossamer", "picture", "place"]


@pytest.fixture
def picture() -> Callable[..., bytes]:
    """A PNG of one color: ``picture(255, 0, 0)``."""
    image = pytest.importorskip("PIL.Image", reason="the extra 'image' is not installed")

    def encoded(*color: int) -> bytes:
        file = io.BytesIO()
        image.fromarray(np.full((4, 6, 3), color, np.uint8)).save(file, "PNG")
        return file.getvalue()

    return encoded


def softmax(*color: int) -> list[float]:
    """What `tests.tools.models.colors` says of a color."""
    values: Any = 4 * np.array(color, np.float64) / 255
    exponentials = np.exp(values - values.max())
    return list((exponentials / exponentials.sum()).tolist())
