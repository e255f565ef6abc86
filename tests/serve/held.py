"""A repository whose answers the test gives, when it likes."""

from __future__ import annotations

import queue
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import numpy as np

from gossamer.serve.protocol import (
    IndexEntry,
    InferenceRequest,
    InferenceResponse,
    ModelMetadata,
    TensorMetadata,
    UnknownModel,
)

PATIENCE = 120.0
"""Seconds after which something is taken for hanging."""


class Served:
    """What `HeldRepository.get` gives: a model with the input x and the output y, float32 of any length."""

    version = "1"
    metadata = ModelMetadata(
        "m", ("1",), "test", (TensorMetadata("x", "FP32", (-1,)),), (TensorMetadata("y", "FP32", (-1,)),)
    )


class HeldRepository:
    """One model, ``m``. ``asked``: requests and the futures of their answers, as they come."""

    ready = True

    def __init__(self) -> None:
        self.asked: queue.Queue[tuple[InferenceRequest, Future[InferenceResponse]]] = queue.Queue()
        self.calls: list[tuple[str, str]] = []
        self.at_once: Any = None

    def hurry(self) -> None:
        """There is nothing that waits for others."""

    def get(self, name: str, version: str = "") -> Served:
        if name != "m" or version not in ("", "1"):
            raise UnknownModel(f"there is no model {name!r}")
        return Served()

    def metadata(self, name: str, version: str = "") -> ModelMetadata:
        return self.get(name, version).metadata

    def is_ready(self, name: str, version: str = "") -> bool:
        self.get(name, version)
        return True

    def infer(self, request: InferenceRequest) -> Future[InferenceResponse]:
        self.get(request.model_name, request.model_version)
        future: Future[InferenceResponse] = Future()
        if self.at_once is not None:
            future.set_result(self.at_once(request))
        else:
            self.asked.put((request, future))
        return future

    def next(self) -> tuple[InferenceRequest, Future[InferenceResponse]]:
        """The next request that comes."""
        return self.asked.get(timeout=PATIENCE)

    def index(self) -> list[IndexEntry]:
        return [IndexEntry("m", "1", "READY"), IndexEntry("bad", "2", "UNAVAILABLE", "no model")]

    def queue_lengths(self) -> Iterable[tuple[str, str, int]]:
        return [("m", "1", self.asked.qsize())]

    def load(self, name: str) -> None:
        self.calls.append(("load", name))

    def unload(self, name: str) -> None:
        self.calls.append(("unload", name))

    def close(self, timeout: float | None = None) -> None:
        self.calls.append(("close", ""))


def doubled(request: InferenceRequest) -> InferenceResponse:
    """The answer of the model: y is twice x."""
    y = np.asarray(request.inputs["x"] * 2)
    return InferenceResponse("m", "1", request.id, {"y": y})
