"""Models whose constants are compressed, made from models whose constants are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.micro.compression import COMPRESSION_METADATA
from gossamer.model import read_model
from gossamer.model.metadata import with_metadata
from gossamer.model.writer import write_model, write_root
from gossamer.schema.compression import CompressionMetadata, LutTensor, Subgraph
from gossamer.schema.tables import Buffer


def packed(indices: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Numbers of so many bits, one after the other."""
    return np.packbits(((indices.reshape(-1, 1) >> np.arange(bits)[::-1]) & 1).astype(np.uint8))


def tables(values: NDArray[Any], axis: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Tables of the values that occur, [channels, values] filled up with zeros, and the index of each element."""
    slices = [values] if axis is None else list(np.moveaxis(values, axis, 0))
    found = [np.unique(part, return_inverse=True) for part in slices]
    table = np.zeros((len(found), max(unique.size for unique, _ in found)), values.dtype)
    for row, (unique, _) in zip(table, found, strict=True):
        row[: unique.size] = unique
    indices = [inverse.reshape(part.shape) for part, (_, inverse) in zip(slices, found, strict=True)]
    return table, indices[0] if axis is None else np.moveaxis(np.stack(indices), 0, axis)


def compressed(content: bytes, which: Iterable[int], *, subgraph: int = 0) -> bytes:
    """The model with these tensors of a subgraph, constants of at most 128 values in a channel, as lookup tables."""
    model = read_model(content)
    buffers, luts = list(model.buffers), []
    stored = list(model.subgraphs[subgraph].tensors)
    for index in which:
        tensor = stored[index]
        data = model.buffer_data(tensor.buffer)
        assert data is not None
        quantization = tensor.quantization
        is_per_channel = quantization is not None and len(quantization.scale) > 1
        axis = quantization.quantized_dimension if quantization is not None and is_per_channel else None
        table, indices = tables(data.view(numpy_dtype(tensor.type)).reshape(tensor.shape), axis)
        bits = max(1, int(table.shape[1] - 1).bit_length())
        buffers[tensor.buffer] = Buffer(data=packed(indices, bits))
        luts.append(LutTensor(tensor=index, value_buffer=len(buffers), index_bitwidth=bits))
        buffers.append(Buffer(data=np.frombuffer(table.tobytes(), np.uint8)))
    metadata = CompressionMetadata(subgraphs=(Subgraph(lut_tensors=tuple(luts)),))
    return write_model(with_metadata(model.replace(buffers=tuple(buffers)), COMPRESSION_METADATA, root(metadata)))


def root(metadata: CompressionMetadata) -> bytes:
    """The bytes of metadata; nobody looks at the identifier."""
    return write_root(metadata, bytes(4))
