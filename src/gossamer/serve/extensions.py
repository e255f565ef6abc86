"""Triton's extensions of the protocol that tell something of a model: its configuration, and statistics of its runs.

https://github.com/triton-inference-server/server/tree/main/docs/protocol. Both are objects as JSON has them; the
messages of gRPC have the same fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gossamer.serve.settings import Settings

if TYPE_CHECKING:
    from gossamer.serve.metrics import Metrics
    from gossamer.serve.model import Port, ServedModel
    from gossamer.serve.repository import Repository


def supported(extensions: Sequence[str], settings: Settings) -> list[str]:
    """The names of those that a server has: models are loaded for clients where they may ask for it."""
    return [name for name in extensions if name != "model_repository" or settings.repository_control]


def config(model: ServedModel) -> dict[str, Any]:
    """``ModelConfig``. Sizes without the first one, if rows of requests run together (``max_batch_size`` rows at most),
    else all of them."""
    signature, options = model.default, model.options
    rows = signature.max_rows if signature.max_rows > 1 else 0
    made: dict[str, Any] = {
        "name": model.name,
        "platform": model.metadata.platform,
        "backend": "gossamer",
        "max_batch_size": rows,
        "input": [_port(port, rows > 0) for port in signature.inputs],
        "output": [_port(port, rows > 0) for port in signature.outputs],
        "instance_group": [{"name": model.name, "count": options.workers, "kind": "KIND_CPU"}],
    }
    if rows:
        made["dynamic_batching"] = {"max_queue_delay_microseconds": round(1e6 * options.batch_delay)}
    return made


def statistics(metrics: Metrics, repository: Repository, name: str, version: str) -> dict[str, Any]:
    """``ModelStatistics`` of a version of a model; without a version of all that are ready; without a name of all
    models. ``inference_count`` counts requests, ``execution_count`` runs; nanoseconds are sums over requests, those of
    ``compute_infer`` over runs. Raises `UnknownModel`, `NotReady`."""
    if name:
        repository.get(name, version)
    figures = metrics.by_model()
    return {
        "model_stats": [
            {"name": entry.name, "version": entry.version, **_figures(figures.get((entry.name, entry.version), {}))}
            for entry in repository.index()
            if entry.state == "READY" and name in ("", entry.name) and version in ("", entry.version)
        ]
    }


def _figures(figures: dict[str, float]) -> dict[str, Any]:
    def duration(histogram: str) -> dict[str, int]:
        count, seconds = figures.get(f"{histogram}_count", 0.0), figures.get(f"{histogram}_sum", 0.0)
        return {"count": int(count), "ns": round(1e9 * seconds)}

    queue, compute = duration("gossamer_queue_seconds"), duration("gossamer_compute_seconds")
    return {
        "inference_count": queue["count"],
        "execution_count": compute["count"],
        "inference_stats": {
            "success": duration("gossamer_request_seconds"),
            "queue": queue,
            "compute_infer": compute,
        },
    }


def _port(port: Port, has_rows: bool) -> dict[str, Any]:
    datatype = port.metadata.datatype
    kind = "STRING" if datatype == "BYTES" else datatype
    return {"name": port.name, "data_type": f"TYPE_{kind}", "dims": list(port.shape[1:] if has_rows else port.shape)}
