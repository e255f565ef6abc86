"""What KServe's clients make of a server, as JSON: ``python -m tests.serve.kserve_client HTTP_PORT GRPC_PORT``.

A program of its own: generated modules of ``kserve`` and ``tritonclient`` cannot be in one process.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig


def requests(binary: bool) -> dict[str, InferRequest]:
    """A request to each model, by the model's name."""
    numbers = InferInput("x", [2, 4], "FP32")
    numbers.set_data_from_numpy(np.arange(8, dtype=np.float32).reshape(2, 4), binary_data=binary)
    small = InferInput("x", [1, 16], "INT8")
    small.set_data_from_numpy(np.arange(16, dtype=np.int8).reshape(1, 16), binary_data=binary)
    words = InferInput("words", [2], "BYTES")
    words.set_data_from_numpy(np.array([b"no", b"yes"], object), binary_data=binary)
    places = InferInput("places", [3], "INT32")
    places.set_data_from_numpy(np.int32([1, 0, 1]), binary_data=binary)
    open_size = InferInput("x", [3], "FP32")
    open_size.set_data_from_numpy(np.float32([1, -1, 1]), binary_data=binary)
    inputs = {"double": [numbers], "int8": [small], "strings": [words, places], "dynamic": [open_size]}
    return {name: InferRequest(name, each, request_id=f"id of {name}") for name, each in inputs.items()}


def shown(response: Any) -> dict[str, Any]:
    outputs = {each.name: np.asarray(each.as_numpy()).tolist() for each in response.outputs}
    texts = {
        name: [value.decode() if isinstance(value, bytes) else value for value in values]
        for name, values in outputs.items()
    }
    return {"id": response.id, "model": response.model_name, "outputs": texts}


async def main(http_port: str, grpc_port: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    base = f"http://127.0.0.1:{http_port}"
    rest = InferenceRESTClient(RESTConfig(protocol="v2"))
    async with InferenceGRPCClient(f"127.0.0.1:{grpc_port}") as grpc:
        found["rest"] = [
            await rest.is_server_live(base),
            await rest.is_server_ready(base),
            await rest.is_model_ready(base, "double"),
            await rest.is_model_ready(base, "nothing"),
        ]
        found["grpc"] = [
            await grpc.is_server_live(),
            await grpc.is_server_ready(),
            await grpc.is_model_ready("double"),
            await grpc.is_model_ready("nothing"),
        ]
        for binary in (False, True):
            key = "binary" if binary else "plain"
            for name, request in requests(binary).items():
                found[f"rest {key} {name}"] = shown(await rest.infer(base, request, model_name=name))
            for name, request in requests(binary).items():
                found[f"grpc {key} {name}"] = shown(await grpc.infer(request))
    await rest.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))  # noqa: T201 - its output
