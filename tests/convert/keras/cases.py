"""The cases of `fixtures.json.xz` (made by `make_fixtures.py`) as files and arrays."""

from __future__ import annotations

import base64
import io
import json
import lzma
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np

Array = np.ndarray[Any, Any]


@cache
def cases() -> dict[str, dict[str, Any]]:
    """By name."""
    stored = lzma.decompress((Path(__file__).parent / "fixtures.json.xz").read_bytes())
    return {case["name"]: case for case in json.loads(stored)}


def unpacked(stored: dict[str, Any]) -> Array:
    """An array."""
    data = np.frombuffer(base64.b64decode(stored["data"]), np.dtype(stored["dtype"]))
    return data.reshape(stored["shape"])


def arrays(stored: dict[str, Any]) -> dict[str, Array]:
    """Arrays by name."""
    return {name: unpacked(value) for name, value in stored.items()}


def write_archive(case: dict[str, Any], path: Path) -> None:
    """The ``.keras`` file of a case."""
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        for place, value in arrays(case["weights"]).items():
            file[place] = value
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", json.dumps(case["metadata"]))
        archive.writestr("config.json", json.dumps(case["config"]))
        archive.writestr("model.weights.h5", weights.getvalue())


def write_legacy(case: dict[str, Any], path: Path) -> None:
    """The ``.h5`` file of a case that has one."""
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(case["legacy"]["config"])
        file.attrs["keras_version"] = case["metadata"]["keras_version"]
        group = file.create_group("model_weights")
        for layer, values in case["legacy"]["weights"].items():
            own = group.create_group(layer)
            own.attrs["weight_names"] = [name.encode() for name in values] or np.zeros(0)
            for name, value in arrays(values).items():
                own[name] = value
