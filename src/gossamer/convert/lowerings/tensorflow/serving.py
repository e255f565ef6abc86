"""Operators of models that are served: batching and accelerators change nothing of what is computed."""

from __future__ import annotations

from typing import Any

from gossamer.convert.lowerings.tensorflow import Call, lowers


@lowers("BatchFunction")
def batch_function(call: Call) -> Any:
    """Calls that come at the same time would be run as one; here each is run by itself."""
    return call.importer.inline(call.graph, call.attributes.function("f").name, call.inputs)


@lowers("TPUPartitionedCall")
def tpu_partitioned_call(call: Call) -> Any:
    """The last input is the number of a device."""
    return call.importer.inline(call.graph, call.attributes.function("f").name, call.inputs[:-1])


@lowers("GuaranteeConst", "Copy", "CopyHost", "TPUReplicatedInput", "TPUReplicatedOutput", "XlaSetBound")
def unchanged(call: Call) -> Any:
    """There is one copy of the model: what is meant for each is meant for it."""
    return call.inputs[0]


@lowers("TPUReplicateMetadata", "ConfigureDistributedTPU", "ConfigureTPUEmbedding")
def nothing(call: Call) -> Any:
    return []
