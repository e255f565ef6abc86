"""What a model's metadata say of its inputs: how pictures are normalized, at which rate sounds are sampled."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.inputs.pictures import Normalization
from gossamer.inputs.port import Port
from gossamer.model import Model
from gossamer.schema.metadata import AudioProperties, ModelMetadata, NormalizationOptions, SubGraphMetadata


def properties(
    metadata: ModelMetadata | None, model: Model, subgraph: int, ports: Sequence[Port]
) -> tuple[dict[int, Normalization], int | None]:
    """Mean and std by the position of the input, and the sampling rate in hertz, as far as they are there."""
    parts = metadata.subgraph_metadata if metadata is not None else ()
    part = parts[subgraph] if subgraph < len(parts) else SubGraphMetadata()
    normalization: dict[int, Normalization] = {}
    rate = None
    inputs = model.subgraphs[subgraph].inputs
    for port in ports:
        place = inputs.index(port.index)
        if place >= len(part.input_tensor_metadata):
            continue
        stored = part.input_tensor_metadata[place]
        for unit in stored.process_units:
            options = unit.options
            if (
                isinstance(options, NormalizationOptions)
                and options.mean.size
                and options.std.size
                and options.std.all()
            ):
                normalization[port.position] = options.mean.tolist(), options.std.tolist()
        content = stored.content.content_properties if stored.content is not None else None
        if isinstance(content, AudioProperties) and content.sample_rate:
            rate = content.sample_rate
    return normalization, rate
