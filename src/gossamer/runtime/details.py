"""Tensors and nodes in the dictionaries that `tf.lite.Interpreter` describes them with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import type_name
from gossamer.runtime.node import Node
from gossamer.runtime.subgraph import Subgraph
from gossamer.runtime.tensor import Tensor
from gossamer.schema import BlockwiseQuantization, DimensionType, TensorType

Details = dict[str, Any]

_SHOWN = 3
"""Tensors that a `repr` names."""

_TYPES: dict[int, type[np.generic]] = {TensorType.STRING: np.bytes_, TensorType.RESOURCE: np.object_}
"""Types that are not those of the arrays."""


def tensor_details(
    tensor: Tensor,
    subgraph_of: Callable[[], Subgraph],
    read: Callable[[Tensor], NDArray[Any]],
    compress_zero_points: bool,
) -> Details:
    """What ``get_tensor_details`` says of a tensor. Scales of blocks lie in another tensor of its subgraph, which is
    only asked for then, and read by ``read``. ``compress_zero_points``: equal ones become one. Raises `ValueError` if
    there are no such scales."""
    quantization = tensor.quantization
    zero_points = quantization.zero_points
    if compress_zero_points and zero_points.size > 1 and (zero_points == zero_points[0]).all():
        zero_points = zero_points[:1]
    parameters: Details = {
        "scales": quantization.scales.copy(),
        "zero_points": zero_points.copy(),
        "quantized_dimension": int(quantization.dimension),
        "block_size": 0,
    }
    details = quantization.details
    if isinstance(details, BlockwiseQuantization):
        subgraph = subgraph_of()
        parameters["scales"] = read(subgraph.tensor(details.scales)).reshape(-1).copy()
        if 0 <= details.zero_points < len(subgraph.tensors):
            parameters["zero_points"] = read(subgraph.tensor(details.zero_points)).reshape(-1).copy()
        parameters["block_size"] = int(details.block_size)
    return {
        "name": tensor.name,
        "index": tensor.index,
        "shape": np.array(tensor.shape, np.int32),
        "shape_signature": np.array(tensor.shape_signature, np.int32),
        "dtype": _type(tensor),
        "quantization": (quantization.scale, quantization.zero_point),
        "quantization_parameters": parameters,
        "sparsity_parameters": _sparsity_details(tensor.sparsity),
    }


def in_words(tensors: Sequence[Tensor]) -> str:
    """Names, types and shapes, of the first few: ``image float32[1, 224, 224, 3]``."""
    texts = [
        f"{tensor.name} {type_name(tensor.type)}[{', '.join('?' * (n < 0) or str(n) for n in _sizes(tensor))}]"
        for tensor in tensors[:_SHOWN]
    ]
    return ", ".join(texts) + (f" and {len(tensors) - _SHOWN} more" if len(tensors) > _SHOWN else "")


def _sizes(tensor: Tensor) -> Sequence[int]:
    """What the file leaves open is so until there is memory for something else."""
    return tensor.shape if tensor.has_data else tensor.shape_signature


def op_details(node: Node, tensors: Sequence[Tensor]) -> Details:
    """What ``_get_op_details`` says of a node of a subgraph with these tensors."""
    types = [[_type(tensors[i]) for i in indices if i != -1] for indices in (node.inputs, node.outputs)]
    return {
        "index": node.index,
        "op_name": node.op.name,
        "inputs": np.array(node.inputs, np.int32),
        "outputs": np.array(node.outputs, np.int32),
        "operand_types": types[0],
        "result_types": types[1],
    }


def _type(tensor: Tensor) -> type[np.generic]:
    return _TYPES.get(tensor.type) or tensor.dtype.type


def _sparsity_details(sparsity: Any) -> Details:
    if sparsity is None:
        return {}
    dimensions = []
    for dimension in sparsity.dim_metadata:
        entry: Details = {"format": int(dimension.format)}
        if dimension.format == DimensionType.DENSE:
            entry["dense_size"] = dimension.dense_size
        else:
            entry["array_segments"] = _index_vector(dimension.array_segments)
            entry["array_indices"] = _index_vector(dimension.array_indices)
        dimensions.append(entry)
    return {
        "traversal_order": np.array(sparsity.traversal_order, np.int32),
        "block_map": np.array(sparsity.block_map, np.int32),
        "dim_metadata": dimensions,
    }


def _index_vector(stored: Any) -> NDArray[np.int32]:
    return np.array(stored.values if stored is not None else (), np.int32)
