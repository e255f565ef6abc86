"""How a model's pictures are normalized, and at which rate its sounds are sampled: what its metadata say, what its
exporter noted, and what its outputs suggest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gossamer.inputs.feature_pyramid import takes_fractions
from gossamer.inputs.pictures import Layout, Normalization
from gossamer.inputs.port import Port
from gossamer.model import Model
from gossamer.records import record
from gossamer.schema.metadata import AudioProperties, ModelMetadata, NormalizationOptions, SubGraphMetadata


@record(frozen=True)
class Properties:
    """``normalization``: mean and std by the position of the input; ``assumed`` tells the user of one that only the
    outputs suggest. ``rate``: in hertz."""

    normalization: Mapping[int, Normalization]
    rate: int | None
    assumed: str = ""


def properties(
    metadata: ModelMetadata | None,
    exported: Mapping[str, Any],
    model: Model,
    subgraph: int,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
) -> Properties:
    """What is known of the inputs of a subgraph. ``exported``: `gossamer.model.metadata.exporter_facts`, whose models
    take pixels from 0 to 1 if nothing else is said."""
    normalization, rate = _stored(metadata, model, subgraph, inputs)
    shown = [port for port in inputs if port.is_float and Layout.of(port) is not None]
    fractions: dict[int, Normalization] = {port.position: ([0.0], [255.0]) for port in shown}
    size = picture_size(inputs)
    if exported:
        return Properties(fractions | normalization, rate)
    if fractions and not normalization and size and takes_fractions([port.shape for port in outputs], *size):
        assumed = "pixels scaled to 0..1, as YOLO takes them; the model does not say; --mean and --std change it"
        return Properties(fractions, rate, assumed)
    return Properties(normalization, rate)


def picture_size(inputs: Sequence[Port]) -> tuple[int, int] | None:
    """The height and width of the pictures that a model takes, where they are known."""
    layouts = [Layout.of(port) for port in inputs]
    return next(((one.height, one.width) for one in layouts if one and one.height and one.width), None)


def _stored(
    metadata: ModelMetadata | None, model: Model, subgraph: int, ports: Sequence[Port]
) -> tuple[dict[int, Normalization], int | None]:
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
