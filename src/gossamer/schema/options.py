"""The option tables of the builtin operators and the two unions that hold them.

Names, order and defaults are those of the published schema; what an option means stands in the operator's file.
"""

from __future__ import annotations

from gossamer.schema.enums import (
    ActivationFunctionType,
    CombinerType,
    CustomOptionsFormat,
    FullyConnectedOptionsWeightsFormat,
    LSHProjectionType,
    LSTMKernelType,
    MirrorPadMode,
    Padding,
    ReduceWindowFunction,
    RngAlgorithm,
    StablehloComparisonDirection,
    StablehloComparisonType,
    TensorType,
)
from gossamer.schema.fields import (
    Array,
    Table,
    Union,
    array,
    boolean,
    data,
    enum,
    f32,
    i8,
    i32,
    i64,
    numbers,
    string,
    u32,
)


class StablehloGatherOptions(Table):
    offset_dims: tuple[int, ...] = numbers(i64)
    collapsed_slice_dims: tuple[int, ...] = numbers(i64)
    start_index_map: tuple[int, ...] = numbers(i64)
    index_vector_dim: int = i64()
    slice_sizes: tuple[int, ...] = numbers(i64)
    indices_are_sorted: bool = boolean()


class StablehloTransposeOptions(Table):
    permutation: tuple[int, ...] = numbers(i64)


class StablehloDotGeneralOptions(Table):
    lhs_batching_dimensions: tuple[int, ...] = numbers(i64)
    rhs_batching_dimensions: tuple[int, ...] = numbers(i64)
    lhs_contracting_dimensions: tuple[int, ...] = numbers(i64)
    rhs_contracting_dimensions: tuple[int, ...] = numbers(i64)
    precision_config: tuple[int, ...] = numbers(u32)


class StablehloReduceWindowOptions(Table):
    window_dimensions: tuple[int, ...] = numbers(i64)
    window_strides: tuple[int, ...] = numbers(i64)
    base_dilations: tuple[int, ...] = numbers(i64)
    window_dilations: tuple[int, ...] = numbers(i64)
    padding: tuple[int, ...] = numbers(i64)
    body_subgraph_index: int = i32()


class StablehloWhileOptions(Table):
    cond_subgraph_index: int = i32()
    body_subgraph_index: int = i32()


class StablehloSortOptions(Table):
    dimension: int = i64()
    is_stable: bool = boolean()
    comparator_subgraph_index: int = i32()


class StablehloConcatenateOptions(Table):
    dimension: int = i64()


class StablehloBroadcastInDimOptions(Table):
    broadcast_dimensions: tuple[int, ...] = numbers(i64)


class StablehloCompareOptions(Table):
    comparison_direction: StablehloComparisonDirection = enum(StablehloComparisonDirection, u32)
    compare_type: StablehloComparisonType = enum(StablehloComparisonType, u32)


class StablehloDynamicSliceOptions(Table):
    slice_sizes: tuple[int, ...] = numbers(i64)


class StablehloPadOptions(Table):
    edge_padding_low: tuple[int, ...] = numbers(i64)
    edge_padding_high: tuple[int, ...] = numbers(i64)
    interior_padding: tuple[int, ...] = numbers(i64)


class StablehloIotaOptions(Table):
    iota_dimension: int = i64()


class StablehloCustomCallOptions(Table):
    call_target_name: str = string()
    has_side_effect: bool = boolean()
    backend_config: str = string()
    api_version: int = i32()
    called_computations: tuple[int, ...] = numbers(i32)
    custom_attributes: Array = data()


class StablehloReduceOptions(Table):
    dimensions: tuple[int, ...] = numbers(i64)
    body_subgraph_index: int = i32()


class StablehloSliceOptions(Table):
    start_indices: tuple[int, ...] = numbers(i64)
    limit_indices: tuple[int, ...] = numbers(i64)
    strides: tuple[int, ...] = numbers(i64)


class StablehloConvolutionOptions(Table):
    window_strides: tuple[int, ...] = numbers(i64)
    padding: tuple[int, ...] = numbers(i64)
    lhs_dilation: tuple[int, ...] = numbers(i64)
    rhs_dilation: tuple[int, ...] = numbers(i64)
    window_reversal: tuple[bool, ...] = numbers(boolean)
    input_batch_dimension: int = i64()
    input_feature_dimension: int = i64()
    input_spatial_dimensions: tuple[int, ...] = numbers(i64)
    kernel_input_feature_dimension: int = i64()
    kernel_output_feature_dimension: int = i64()
    kernel_spatial_dimensions: tuple[int, ...] = numbers(i64)
    output_batch_dimension: int = i64()
    output_feature_dimension: int = i64()
    output_spatial_dimensions: tuple[int, ...] = numbers(i64)
    feature_group_count: int = i64()
    batch_group_count: int = i64()
    precision_config: tuple[int, ...] = numbers(u32)


class StablehloScatterOptions(Table):
    indices_are_sorted: bool = boolean()
    update_window_dims: tuple[int, ...] = numbers(i64)
    inserted_window_dims: tuple[int, ...] = numbers(i64)
    scatter_dims_to_operand_dims: tuple[int, ...] = numbers(i64)
    index_vector_dim: int = i64()
    unique_indices: bool = boolean()
    update_computation_subgraph_index: int = i32()


class StablehloCaseOptions(Table):
    branch_subgraph_indices: tuple[int, ...] = numbers(i32)


class StablehloRngBitGeneratorOptions(Table):
    algorithm: RngAlgorithm = enum(RngAlgorithm, i8)


class Conv2DOptions(Table):
    padding: Padding = enum(Padding, i8)
    stride_w: int = i32()
    stride_h: int = i32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    dilation_w_factor: int = i32(1)
    dilation_h_factor: int = i32(1)
    quantized_bias_type: TensorType = enum(TensorType, i8)


class Conv3DOptions(Table):
    padding: Padding = enum(Padding, i8)
    stride_d: int = i32()
    stride_w: int = i32()
    stride_h: int = i32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    dilation_d_factor: int = i32(1)
    dilation_w_factor: int = i32(1)
    dilation_h_factor: int = i32(1)


class Pool2DOptions(Table):
    padding: Padding = enum(Padding, i8)
    stride_w: int = i32()
    stride_h: int = i32()
    filter_width: int = i32()
    filter_height: int = i32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)


class DepthwiseConv2DOptions(Table):
    padding: Padding = enum(Padding, i8)
    stride_w: int = i32()
    stride_h: int = i32()
    depth_multiplier: int = i32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    dilation_w_factor: int = i32(1)
    dilation_h_factor: int = i32(1)


class ConcatEmbeddingsOptions(Table):
    num_channels: int = i32()
    num_columns_per_channel: tuple[int, ...] = numbers(i32)
    embedding_dim_per_channel: tuple[int, ...] = numbers(i32)


class LSHProjectionOptions(Table):
    type: LSHProjectionType = enum(LSHProjectionType, i8)


class SVDFOptions(Table):
    rank: int = i32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    asymmetric_quantize_inputs: bool = boolean()


class RNNOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    asymmetric_quantize_inputs: bool = boolean()


class SequenceRNNOptions(Table):
    time_major: bool = boolean()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    asymmetric_quantize_inputs: bool = boolean()


class BidirectionalSequenceRNNOptions(Table):
    time_major: bool = boolean()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    merge_outputs: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()


class FullyConnectedOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    weights_format: FullyConnectedOptionsWeightsFormat = enum(
        FullyConnectedOptionsWeightsFormat, i8, FullyConnectedOptionsWeightsFormat.DEFAULT
    )
    keep_num_dims: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()
    quantized_bias_type: TensorType = enum(TensorType, i8)
    quant_spec: Array = data()


class SoftmaxOptions(Table):
    beta: float = f32()


class ConcatenationOptions(Table):
    axis: int = i32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)


class AddOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    pot_scale_int16: bool = boolean(True)


class MulOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)


class L2NormOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)


class LocalResponseNormalizationOptions(Table):
    radius: int = i32()
    bias: float = f32()
    alpha: float = f32()
    beta: float = f32()


class LSTMOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    cell_clip: float = f32()
    proj_clip: float = f32()
    kernel_type: LSTMKernelType = enum(LSTMKernelType, i8, LSTMKernelType.FULL)
    asymmetric_quantize_inputs: bool = boolean()


class UnidirectionalSequenceLSTMOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    cell_clip: float = f32()
    proj_clip: float = f32()
    time_major: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()
    diagonal_recurrent_tensors: bool = boolean()


class BidirectionalSequenceLSTMOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    cell_clip: float = f32()
    proj_clip: float = f32()
    merge_outputs: bool = boolean()
    time_major: bool = boolean(True)
    asymmetric_quantize_inputs: bool = boolean()


class ResizeBilinearOptions(Table):
    new_height: int = i32()
    new_width: int = i32()
    align_corners: bool = boolean()
    half_pixel_centers: bool = boolean()


class ResizeNearestNeighborOptions(Table):
    align_corners: bool = boolean()
    half_pixel_centers: bool = boolean()


class CallOptions(Table):
    subgraph: int = u32()


class PadOptions(Table):
    """No fields."""


class PadV2Options(Table):
    """No fields."""


class ReshapeOptions(Table):
    new_shape: tuple[int, ...] = numbers(i32)


class SpaceToBatchNDOptions(Table):
    """No fields."""


class BatchToSpaceNDOptions(Table):
    """No fields."""


class SkipGramOptions(Table):
    ngram_size: int = i32()
    max_skip_size: int = i32()
    include_all_ngrams: bool = boolean()


class SpaceToDepthOptions(Table):
    block_size: int = i32()


class DepthToSpaceOptions(Table):
    block_size: int = i32()


class SubOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)
    pot_scale_int16: bool = boolean(True)


class DivOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8)


class TopKV2Options(Table):
    """No fields."""


class EmbeddingLookupSparseOptions(Table):
    combiner: CombinerType = enum(CombinerType, i8)


class GatherOptions(Table):
    axis: int = i32()
    batch_dims: int = i32()


class TransposeOptions(Table):
    """No fields."""


class ExpOptions(Table):
    """No fields."""


class CosOptions(Table):
    """No fields."""


class ReducerOptions(Table):
    keep_dims: bool = boolean()


class SqueezeOptions(Table):
    squeeze_dims: tuple[int, ...] = numbers(i32)


class SplitOptions(Table):
    num_splits: int = i32()


class SplitVOptions(Table):
    num_splits: int = i32()


class StridedSliceOptions(Table):
    begin_mask: int = i32()
    end_mask: int = i32()
    ellipsis_mask: int = i32()
    new_axis_mask: int = i32()
    shrink_axis_mask: int = i32()
    offset: bool = boolean()


class LogSoftmaxOptions(Table):
    """No fields."""


class CastOptions(Table):
    in_data_type: TensorType = enum(TensorType, i8)
    out_data_type: TensorType = enum(TensorType, i8)


class DequantizeOptions(Table):
    """No fields."""


class MaximumMinimumOptions(Table):
    """No fields."""


class TileOptions(Table):
    """No fields."""


class ArgMaxOptions(Table):
    output_type: TensorType = enum(TensorType, i8)


class ArgMinOptions(Table):
    output_type: TensorType = enum(TensorType, i8)


class GreaterOptions(Table):
    """No fields."""


class GreaterEqualOptions(Table):
    """No fields."""


class LessOptions(Table):
    """No fields."""


class LessEqualOptions(Table):
    """No fields."""


class NegOptions(Table):
    """No fields."""


class SelectOptions(Table):
    """No fields."""


class SliceOptions(Table):
    """No fields."""


class TransposeConvOptions(Table):
    padding: Padding = enum(Padding, i8)
    stride_w: int = i32()
    stride_h: int = i32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType, i8, ActivationFunctionType.NONE)
    quantized_bias_type: TensorType = enum(TensorType, i8)


class ExpandDimsOptions(Table):
    """No fields."""


class SparseToDenseOptions(Table):
    validate_indices: bool = boolean()


class EqualOptions(Table):
    """No fields."""


class NotEqualOptions(Table):
    """No fields."""


class ShapeOptions(Table):
    out_type: TensorType = enum(TensorType, i8)


class RankOptions(Table):
    """No fields."""


class PowOptions(Table):
    """No fields."""


class FakeQuantOptions(Table):
    min: float = f32()
    max: float = f32()
    num_bits: int = i32()
    narrow_range: bool = boolean()


class PackOptions(Table):
    values_count: int = i32()
    axis: int = i32()


class LogicalOrOptions(Table):
    """No fields."""


class OneHotOptions(Table):
    axis: int = i32()


class AbsOptions(Table):
    """No fields."""


class HardSwishOptions(Table):
    """No fields."""


class LogicalAndOptions(Table):
    """No fields."""


class LogicalNotOptions(Table):
    """No fields."""


class UnpackOptions(Table):
    num: int = i32()
    axis: int = i32()


class FloorDivOptions(Table):
    """No fields."""


class SquareOptions(Table):
    """No fields."""


class ZerosLikeOptions(Table):
    """No fields."""


class FillOptions(Table):
    """No fields."""


class FloorModOptions(Table):
    """No fields."""


class RangeOptions(Table):
    """No fields."""


class LeakyReluOptions(Table):
    alpha: float = f32()


class SquaredDifferenceOptions(Table):
    """No fields."""


class MirrorPadOptions(Table):
    mode: MirrorPadMode = enum(MirrorPadMode, i8)


class UniqueOptions(Table):
    idx_out_type: TensorType = enum(TensorType, i8, TensorType.INT32)


class ReverseV2Options(Table):
    """No fields."""


class AddNOptions(Table):
    """No fields."""


class GatherNdOptions(Table):
    """No fields."""


class WhereOptions(Table):
    """No fields."""


class ReverseSequenceOptions(Table):
    seq_dim: int = i32()
    batch_dim: int = i32()


class MatrixDiagOptions(Table):
    """No fields."""


class QuantizeOptions(Table):
    """No fields."""


class MatrixSetDiagOptions(Table):
    """No fields."""


class IfOptions(Table):
    then_subgraph_index: int = i32()
    else_subgraph_index: int = i32()


class CallOnceOptions(Table):
    init_subgraph_index: int = i32()


class WhileOptions(Table):
    cond_subgraph_index: int = i32()
    body_subgraph_index: int = i32()


class NonMaxSuppressionV4Options(Table):
    """No fields."""


class NonMaxSuppressionV5Options(Table):
    """No fields."""


class ScatterNdOptions(Table):
    """No fields."""


class SelectV2Options(Table):
    """No fields."""


class DensifyOptions(Table):
    """No fields."""


class SegmentSumOptions(Table):
    """No fields."""


class BatchMatMulOptions(Table):
    adj_x: bool = boolean()
    adj_y: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()


class CumsumOptions(Table):
    exclusive: bool = boolean()
    reverse: bool = boolean()


class BroadcastToOptions(Table):
    """No fields."""


class Rfft2dOptions(Table):
    """No fields."""


class HashtableOptions(Table):
    table_id: int = i32()
    key_dtype: TensorType = enum(TensorType, i8)
    value_dtype: TensorType = enum(TensorType, i8)


class HashtableFindOptions(Table):
    """No fields."""


class HashtableImportOptions(Table):
    """No fields."""


class HashtableSizeOptions(Table):
    """No fields."""


class VarHandleOptions(Table):
    container: str = string()
    shared_name: str = string()


class ReadVariableOptions(Table):
    """No fields."""


class AssignVariableOptions(Table):
    """No fields."""


class RandomOptions(Table):
    seed: int = i64()
    seed2: int = i64()


class BucketizeOptions(Table):
    boundaries: Array = array(f32)


class GeluOptions(Table):
    approximate: bool = boolean()


class DynamicUpdateSliceOptions(Table):
    """No fields."""


class UnsortedSegmentProdOptions(Table):
    """No fields."""


class UnsortedSegmentMaxOptions(Table):
    """No fields."""


class UnsortedSegmentSumOptions(Table):
    """No fields."""


class ATan2Options(Table):
    """No fields."""


class UnsortedSegmentMinOptions(Table):
    """No fields."""


class SignOptions(Table):
    """No fields."""


class BitcastOptions(Table):
    """No fields."""


class BitwiseXorOptions(Table):
    """No fields."""


class RightShiftOptions(Table):
    """No fields."""


class DilateOptions(Table):
    """No fields."""


class ReduceWindowOptions(Table):
    reduce_function: ReduceWindowFunction = enum(ReduceWindowFunction, i32)


class StableHLOCompositeOptions(Table):
    name: str = string()
    decomposition_subgraph_index: int = i32()
    composite_attributes: Array = data()
    composite_attributes_format: CustomOptionsFormat = enum(CustomOptionsFormat, i8)
    version: int = i32()


class StablehloShiftLeftOptions(Table):
    """No fields."""


BuiltinOptions = Union(
    Conv2DOptions,
    DepthwiseConv2DOptions,
    ConcatEmbeddingsOptions,
    LSHProjectionOptions,
    Pool2DOptions,
    SVDFOptions,
    RNNOptions,
    FullyConnectedOptions,
    SoftmaxOptions,
    ConcatenationOptions,
    AddOptions,
    L2NormOptions,
    LocalResponseNormalizationOptions,
    LSTMOptions,
    ResizeBilinearOptions,
    CallOptions,
    ReshapeOptions,
    SkipGramOptions,
    SpaceToDepthOptions,
    EmbeddingLookupSparseOptions,
    MulOptions,
    PadOptions,
    GatherOptions,
    BatchToSpaceNDOptions,
    SpaceToBatchNDOptions,
    TransposeOptions,
    ReducerOptions,
    SubOptions,
    DivOptions,
    SqueezeOptions,
    SequenceRNNOptions,
    StridedSliceOptions,
    ExpOptions,
    TopKV2Options,
    SplitOptions,
    LogSoftmaxOptions,
    CastOptions,
    DequantizeOptions,
    MaximumMinimumOptions,
    ArgMaxOptions,
    LessOptions,
    NegOptions,
    PadV2Options,
    GreaterOptions,
    GreaterEqualOptions,
    LessEqualOptions,
    SelectOptions,
    SliceOptions,
    TransposeConvOptions,
    SparseToDenseOptions,
    TileOptions,
    ExpandDimsOptions,
    EqualOptions,
    NotEqualOptions,
    ShapeOptions,
    PowOptions,
    ArgMinOptions,
    FakeQuantOptions,
    PackOptions,
    LogicalOrOptions,
    OneHotOptions,
    LogicalAndOptions,
    LogicalNotOptions,
    UnpackOptions,
    FloorDivOptions,
    SquareOptions,
    ZerosLikeOptions,
    FillOptions,
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    UnidirectionalSequenceLSTMOptions,
    FloorModOptions,
    RangeOptions,
    ResizeNearestNeighborOptions,
    LeakyReluOptions,
    SquaredDifferenceOptions,
    MirrorPadOptions,
    AbsOptions,
    SplitVOptions,
    UniqueOptions,
    ReverseV2Options,
    AddNOptions,
    GatherNdOptions,
    CosOptions,
    WhereOptions,
    RankOptions,
    ReverseSequenceOptions,
    MatrixDiagOptions,
    QuantizeOptions,
    MatrixSetDiagOptions,
    HardSwishOptions,
    IfOptions,
    WhileOptions,
    DepthToSpaceOptions,
    NonMaxSuppressionV4Options,
    NonMaxSuppressionV5Options,
    ScatterNdOptions,
    SelectV2Options,
    DensifyOptions,
    SegmentSumOptions,
    BatchMatMulOptions,
    CumsumOptions,
    CallOnceOptions,
    BroadcastToOptions,
    Rfft2dOptions,
    Conv3DOptions,
    HashtableOptions,
    HashtableFindOptions,
    HashtableImportOptions,
    HashtableSizeOptions,
    VarHandleOptions,
    ReadVariableOptions,
    AssignVariableOptions,
    RandomOptions,
    BucketizeOptions,
    GeluOptions,
    DynamicUpdateSliceOptions,
    UnsortedSegmentProdOptions,
    UnsortedSegmentMaxOptions,
    UnsortedSegmentMinOptions,
    UnsortedSegmentSumOptions,
    ATan2Options,
    SignOptions,
    BitcastOptions,
    BitwiseXorOptions,
    RightShiftOptions,
)
BuiltinOptions2 = Union(
    StablehloConcatenateOptions,
    StablehloBroadcastInDimOptions,
    StablehloSliceOptions,
    StablehloConvolutionOptions,
    StablehloCustomCallOptions,
    StablehloReduceOptions,
    StablehloScatterOptions,
    StablehloCompareOptions,
    StablehloDynamicSliceOptions,
    StablehloPadOptions,
    StablehloIotaOptions,
    StablehloDotGeneralOptions,
    StablehloReduceWindowOptions,
    StablehloSortOptions,
    StablehloWhileOptions,
    StablehloGatherOptions,
    StablehloTransposeOptions,
    DilateOptions,
    StablehloRngBitGeneratorOptions,
    ReduceWindowOptions,
    StableHLOCompositeOptions,
    StablehloShiftLeftOptions,
    StablehloCaseOptions,
)
