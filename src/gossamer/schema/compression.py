"""The tables of TFLite Micro's compression metadata, schema version 1 (tensorflow/lite/micro/compression/metadata.fbs).

They are stored as a FlatBuffer of their own, without an identifier, in the buffer of the model's metadata entry
``COMPRESSION_METADATA``.
"""

from __future__ import annotations

from gossamer.schema.fields import Table, i32, u8, u32, vector

SCHEMA_VERSION = 1


class LutTensor(Table):
    """A tensor whose buffer holds indices of ``index_bitwidth`` bits into the values of another buffer."""

    tensor: int = i32()
    value_buffer: int = u32()
    index_bitwidth: int = u8()


class Subgraph(Table):
    """The compressed tensors of a subgraph, which has the same place in the model."""

    lut_tensors: tuple[LutTensor, ...] = vector(LutTensor)


class CompressionMetadata(Table):
    """The root."""

    schema_version: int = u32(SCHEMA_VERSION)
    subgraphs: tuple[Subgraph, ...] = vector(Subgraph)
