"""Models whose constants are compressed by lookup tables, as their metadata say: TFLite Micro's older scheme.

A device decompresses such a tensor for each operator that takes it, into scratch memory. Here that memory is counted,
and the tensor is decompressed once.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype, type_name
from gossamer.errors import ModelError
from gossamer.model.model import Model
from gossamer.model.reader import read_root
from gossamer.ops._decoding import channels_of, look_up
from gossamer.schema.compression import SCHEMA_VERSION, CompressionMetadata, LutTensor
from gossamer.schema.enums import TensorType
from gossamer.schema.tables import Buffer, Tensor

COMPRESSION_METADATA = "COMPRESSION_METADATA"
TYPES = tuple(TensorType[name] for name in ("BOOL", "FLOAT32", "INT8", "INT16", "INT32", "INT64"))


def decompressed(model: Model) -> tuple[Model, list[list[int]]]:
    """A model with what its compressed tensors stand for, and for each subgraph their indices in the file's order.

    Raises `ModelError` for metadata that are damaged or do not fit the model.
    """
    none: list[list[int]] = [[] for _ in model.subgraphs]
    data = model.metadata_data(COMPRESSION_METADATA)
    if data is None or not data.size:
        return model, none
    try:
        metadata = read_root(CompressionMetadata, data.data, None)
        return _decompressed(model, metadata, none)
    except (ModelError, ValueError) as error:
        raise ModelError(f"metadata {COMPRESSION_METADATA!r}: {error}") from None


def _decompressed(model: Model, metadata: CompressionMetadata, found: list[list[int]]) -> tuple[Model, list[list[int]]]:
    if metadata.schema_version > SCHEMA_VERSION:
        raise ValueError(f"schema version {metadata.schema_version} is not known, only {SCHEMA_VERSION}")
    if not 0 < len(metadata.subgraphs) <= len(model.subgraphs):
        raise ValueError(f"it has {len(metadata.subgraphs)} subgraphs, the model {len(model.subgraphs)}")
    buffers, subgraphs = list(model.buffers), list(model.subgraphs)
    for index, compressed in enumerate(metadata.subgraphs):
        if not compressed.lut_tensors:
            raise ValueError(f"subgraph {index} has no LutTensor")
        tensors = list(subgraphs[index].tensors)
        for lut in compressed.lut_tensors:
            if not 0 <= lut.tensor < len(tensors) or lut.tensor in found[index]:
                raise ValueError(f"subgraph {index} has no tensor {lut.tensor}, or it is there twice")
            found[index].append(lut.tensor)
            stored = tensors[lut.tensor]
            buffers.append(Buffer(data=_values(model, stored, lut)))
            tensors[lut.tensor] = stored.replace(buffer=len(buffers) - 1)
        subgraphs[index] = subgraphs[index].replace(tensors=tuple(tensors))
    return model.replace(buffers=tuple(buffers), subgraphs=tuple(subgraphs)), found


def _values(model: Model, tensor: Tensor, lut: LutTensor) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    if tensor.type not in TYPES:
        raise ValueError(f'tensor "{tensor.name}" is {type_name(tensor.type)}, which cannot be compressed')
    if not tensor.has("shape") or min(tensor.shape, default=0) < 0:
        raise ValueError(f'tensor "{tensor.name}": scalar tensors are not supported')
    packed, values = model.buffer_data(tensor.buffer), model.buffer_data(lut.value_buffer)
    if packed is None or values is None:
        raise ValueError(f'tensor "{tensor.name}" has no indices or no values')
    dtype = numpy_dtype(tensor.type)
    table = np.frombuffer(values[: values.size // dtype.itemsize * dtype.itemsize].tobytes(), dtype)
    quantization = tensor.quantization
    scales = len(quantization.scale) if quantization is not None and quantization.has("scale") else 0
    axis = quantization.quantized_dimension if quantization is not None and scales > 1 else 0
    try:
        channels = channels_of(tensor.shape, axis, scales)
        # A device keeps the stride in a byte.
        looked_up = look_up(packed, lut.index_bitwidth, table, table.size // max(scales, 1) & 0xFF, channels)
    except ValueError as error:
        raise ValueError(f'tensor "{tensor.name}": {error}') from None
    return np.frombuffer(looked_up.tobytes(), np.uint8)
