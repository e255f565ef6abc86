"""XLA's messages that attributes of TensorFlow's nodes hold as bytes; the numbers are those of ``xla_data.proto``."""

from __future__ import annotations

from gossamer.convert.wire import Message, int64


class ConvolutionDimensionNumbers(Message):
    kernel_input_feature_dimension: int = int64(3)
    kernel_output_feature_dimension: int = int64(4)
    kernel_spatial_dimensions: tuple[int, ...] = int64.repeated(6)
    input_batch_dimension: int = int64(7)
    input_feature_dimension: int = int64(8)
    output_batch_dimension: int = int64(9)
    output_feature_dimension: int = int64(10)
    input_spatial_dimensions: tuple[int, ...] = int64.repeated(11)
    output_spatial_dimensions: tuple[int, ...] = int64.repeated(12)


class DotDimensionNumbers(Message):
    lhs_contracting_dimensions: tuple[int, ...] = int64.repeated(1)
    rhs_contracting_dimensions: tuple[int, ...] = int64.repeated(2)
    lhs_batch_dimensions: tuple[int, ...] = int64.repeated(3)
    rhs_batch_dimensions: tuple[int, ...] = int64.repeated(4)


class GatherDimensionNumbers(Message):
    offset_dims: tuple[int, ...] = int64.repeated(1)
    collapsed_slice_dims: tuple[int, ...] = int64.repeated(2)
    start_index_map: tuple[int, ...] = int64.repeated(3)
    index_vector_dim: int = int64(4)


class ScatterDimensionNumbers(Message):
    update_window_dims: tuple[int, ...] = int64.repeated(1)
    inserted_window_dims: tuple[int, ...] = int64.repeated(2)
    scatter_dims_to_operand_dims: tuple[int, ...] = int64.repeated(3)
    index_vector_dim: int = int64(4)
