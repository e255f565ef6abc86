"""The operators of TensorFlow that a converter may leave to the Flex delegate, with their attributes.

The names are those of the allow list ``GetFlexAllowlist`` in ``allowlisted_flex_ops.cc`` of TensorFlow Lite's converter
(LiteRT of 2026, commit f6745779), which TensorFlow 2.21 obeys. Not here are the operators that it allows only where
their libraries are loaded (TensorFlow Text, SentencePiece), and those that users name themselves
(``experimental_select_user_tf_ops``). The delegate itself asks for no list.

The attributes and their defaults are those that TensorFlow 2.21 registers. A SavedModel leaves out attributes at their
default and brings definitions, but not of every operator that only the body of a loop or a branch contains.
"""

from __future__ import annotations

import re

from gossamer.convert.messages.tensorflow import AttrValue, OpDef
from gossamer.convert.wire import read

# An operator and its attributes, indented lines go on; a default is an AttrValue on the wire.
_TABLE = """
Abort error_msg=1200 exit_without_error=2800
Abs T
Add T
AddN N T
AddV2 T
AdjustContrast T
AdjustContrastv2 T=3001
AdjustHue T=3001
AdjustSaturation T=3001
All keep_dims=2800 Tidx=3003
Angle T=3008 Tout=3001
Any keep_dims=2800 Tidx=3003
ApplyAdaMax T use_locking=2800
ApplyAdadelta T use_locking=2800
ApplyAdagrad T use_locking=2800 update_slots=2801
ApplyAdagradDA T use_locking=2800
ApplyAdagradV2 T use_locking=2800 update_slots=2801
ApplyAdam T use_locking=2800 use_nesterov=2800
ApplyAddSign T use_locking=2800
ApplyCenteredRMSProp T use_locking=2800
ApplyFtrl T use_locking=2800 multiply_linear_by_lr=2800
ApplyFtrlV2 T use_locking=2800 multiply_linear_by_lr=2800
ApplyGradientDescent T use_locking=2800
ApplyMomentum T use_locking=2800 use_nesterov=2800
ApplyPowerSign T use_locking=2800
ApplyProximalAdagrad T use_locking=2800
ApplyProximalGradientDescent T use_locking=2800
ApplyRMSProp T use_locking=2800
ApproximateEqual T tolerance=25acc52737
ArgMax T Tidx=3003 output_type=3009
ArgMin T Tidx=3003 output_type=3009
AsString T precision=18ffffffffffffffffff01 scientific=2800 shortest=2800 width=18ffffffffffffffffff01 fill=1200
Assert T summarize=1803
Assign T validate_shape=2801 use_locking=2801
AssignAdd T use_locking=2800
AssignAddVariableOp dtype
AssignSub T use_locking=2800
AssignSubVariableOp dtype
AssignVariableOp dtype validate_shape=2800
Atan T
Atan2 T
AudioSpectrogram window_size stride magnitude_squared=2800
AvgPool ksize strides padding data_format=12044e485743 T
AvgPool3D ksize strides padding data_format=12054e44485743 T
AvgPool3DGrad ksize strides padding data_format=12054e44485743 T
AvgPoolGrad ksize strides padding data_format=12044e485743 T
BatchCholesky T
BatchDatasetV2 parallel_copy=2800 output_types output_shapes metadata=1200
BatchMatMul T adj_x=2800 adj_y=2800 grad_x=2800 grad_y=2800
BatchMatMulV2 T adj_x=2800 adj_y=2800 grad_x=2800 grad_y=2800
BatchMatrixBandPart T
BatchMatrixDeterminant T
BatchMatrixDiag T
BatchMatrixDiagPart T
BatchMatrixInverse adjoint=2800 T
BatchMatrixSetDiag T
BatchMatrixTriangularSolve lower=2801 adjoint=2800 T
BatchNormWithGlobalNormalization T variance_epsilon scale_after_normalization
BatchNormWithGlobalNormalizationGrad T variance_epsilon scale_after_normalization
BatchToSpace T block_size Tidx=3003
BatchToSpaceND T Tblock_shape=3003 Tcrops=3003
BiasAdd T data_format=12044e485743
BiasAddGrad T data_format=12044e485743
BiasAddV1 T
Bincount T
Bitcast T type
BitwiseAnd T
BitwiseOr T
BitwiseXor T
BroadcastArgs T=3003
BroadcastGradientArgs T=3003
BroadcastTo T Tidx=3003
Bucketize T boundaries
CTCBeamSearchDecoder beam_width top_paths merge_repeated=2801 T=3001
CTCGreedyDecoder merge_repeated=2800 blank_index=18ffffffffffffffffff01 T=3001
Case Tin Tout branches output_shapes=0a00
Cast SrcT DstT Truncate=2800
Ceil T
CheckNumerics T message
CheckNumericsV2 T message
Cholesky T
ClipByValue T
CombinedNonMaxSuppression pad_per_class=2800 clip_boxes=2801
Complex T=3001 Tout=3008
ComplexAbs T=3008 Tout=3001
Concat N T
ConcatOffset N shape_type=3003
ConcatV2 N T Tidx=3003
Conj T=3008
ConjugateTranspose T Tperm=3003
Const value dtype
ControlTrigger
Conv2D T strides use_cudnn_on_gpu=2801 padding explicit_paddings=0a00 data_format=12044e485743
    dilations=0a061a0401010101
Conv2DBackpropFilter T strides use_cudnn_on_gpu=2801 padding explicit_paddings=0a00 data_format=12044e485743
    dilations=0a061a0401010101
Conv2DBackpropInput T strides use_cudnn_on_gpu=2801 padding explicit_paddings=0a00 data_format=12044e485743
    dilations=0a061a0401010101
Conv3D T strides padding data_format=12054e44485743 dilations=0a071a050101010101
Conv3DBackpropFilter T strides padding dilations=0a071a050101010101
Conv3DBackpropFilterV2 T strides padding data_format=12054e44485743 dilations=0a071a050101010101
Conv3DBackpropInput T strides padding dilations=0a071a050101010101
Conv3DBackpropInputV2 T strides padding data_format=12054e44485743 dilations=0a071a050101010101 Tshape=3003
Cos T
Cosh T
CropAndResize T method=120862696c696e656172 extrapolation_value=2500000000
CropAndResizeGradBoxes T method=120862696c696e656172
CropAndResizeGradImage T method=120862696c696e656172
Cumprod exclusive=2800 reverse=2800 T Tidx=3003
Cumsum exclusive=2800 reverse=2800 T Tidx=3003
CumulativeLogsumexp exclusive=2800 reverse=2800 T Tidx=3003
DataFormatDimMap T=3003 src_format=12044e485743 dst_format=12044e434857
DataFormatVecPermute T=3003 src_format=12044e485743 dst_format=12044e434857
DebugGradientIdentity T
DebugGradientRefIdentity T
DecodeAndCropJpeg channels=1800 ratio=1801 fancy_upscaling=2801 try_recover_truncated=2800
    acceptable_fraction=250000803f dct_method=1200
DecodeBase64
DecodeBmp channels=1800
DecodeGif
DecodeImage channels=1800 dtype=3004 expand_animations=2801
DecodeJpeg channels=1800 ratio=1801 fancy_upscaling=2801 try_recover_truncated=2800 acceptable_fraction=250000803f
    dct_method=1200
DecodePaddedRaw out_type little_endian=2801
DecodePng channels=1800 dtype=3004
DecodeRaw out_type little_endian=2801
DecodeWav desired_channels=18ffffffffffffffffff01 desired_samples=18ffffffffffffffffff01
DeepCopy T
DeleteSessionTensor
DenseBincount Tidx T binary_output=2800
DenseToDenseSetOperation set_operation validate_indices=2801 T
DenseToSparseSetOperation set_operation validate_indices=2801 T
DepthToSpace T block_size data_format=12044e485743
DepthwiseConv2dNative T strides padding explicit_paddings=0a00 data_format=12044e485743 dilations=0a061a0401010101
DepthwiseConv2dNativeBackpropFilter T strides padding explicit_paddings=0a00 data_format=12044e485743
    dilations=0a061a0401010101
DepthwiseConv2dNativeBackpropInput T strides padding explicit_paddings=0a00 data_format=12044e485743
    dilations=0a061a0401010101
Dequantize T mode=120c4d494e5f434f4d42494e4544 narrow_range=2800 axis=18ffffffffffffffffff01 dtype=3001
DestroyResourceOp ignore_lookup_error=2801
DestroyTemporaryVariable T var_name
Diag T
DiagPart T
Dilation2D T strides rates padding
Dilation2DBackpropFilter T strides rates padding
Dilation2DBackpropInput T strides rates padding
Div T
DivNoNan T
DynamicPartition num_partitions T
DynamicStitch N T
Einsum equation N T
Elu T
EluGrad T
Empty dtype init=2800
EmptyTensorList element_dtype shape_type
EmptyTensorMap
EncodeBase64 pad=2800
EncodeJpeg format=1200 quality=185f progressive=2800 optimize_size=2800 chroma_downsampling=2801 density_unit=1202696e
    x_density=18ac02 y_density=18ac02 xmp_metadata=1200
EncodeJpegVariableQuality
EncodePng compression=18ffffffffffffffffff01 T=3004
EncodeWav
EnsureShape shape T
Enter T frame_name is_constant=2800 parallel_iterations=180a
Equal T incompatible_shape_error=2801
Erf T
Exit T
Exp T
ExpandDims T Tdim=3003
ExtractImagePatches ksizes strides rates T padding
FFT Tcomplex=3008
FFT2D Tcomplex=3008
FFT3D Tcomplex=3008
FIFOQueue component_types shapes=0a00 capacity=18ffffffffffffffffff01 container=1200 shared_name=1200
FIFOQueueV2 component_types shapes=0a00 capacity=18ffffffffffffffffff01 container=1200 shared_name=1200
FakeQuantWithMinMaxArgs min=250000c0c0 max=250000c040 num_bits=1808 narrow_range=2800
FakeQuantWithMinMaxArgsGradient min=250000c0c0 max=250000c040 num_bits=1808 narrow_range=2800
FakeQuantWithMinMaxVars num_bits=1808 narrow_range=2800
FakeQuantWithMinMaxVarsGradient num_bits=1808 narrow_range=2800
FakeQuantWithMinMaxVarsPerChannel num_bits=1808 narrow_range=2800
FakeQuantWithMinMaxVarsPerChannelGradient num_bits=1808 narrow_range=2800
FakeQueue
Fill T index_type=3003
FilterDataset predicate Targuments output_types output_shapes metadata=1200
FinalizeDataset has_captured_ref=2800 output_types output_shapes
Fingerprint T
FlatMapDataset f Targuments output_types output_shapes metadata=1200
Floor T
FloorDiv T
FloorMod T
FusedBatchNorm T epsilon=2517b7d138 exponential_avg_factor=250000803f data_format=12044e485743 is_training=2801
FusedBatchNormGrad T epsilon=2517b7d138 data_format=12044e485743 is_training=2801
FusedBatchNormGradV2 T U epsilon=2517b7d138 data_format=12044e485743 is_training=2801
FusedBatchNormGradV3 T U epsilon=2517b7d138 data_format=12044e485743 is_training=2801
FusedBatchNormV2 T U epsilon=2517b7d138 exponential_avg_factor=250000803f data_format=12044e485743 is_training=2801
FusedBatchNormV3 T U epsilon=2517b7d138 exponential_avg_factor=250000803f data_format=12044e485743 is_training=2801
FusedPadConv2D T mode strides padding
FusedResizeAndPadConv2D T resize_align_corners=2800 mode strides padding
Gather validate_indices=2801 Tparams Tindices
GatherNd Tparams Tindices bad_indices_policy=1200
GatherV2 batch_dims=1800 Tparams Tindices Taxis
GetSessionHandle T
GetSessionHandleV2 T
GetSessionTensor dtype
Greater T
GreaterEqual T
HSVToRGB T=3001
HashTable container=1200 shared_name=1200 use_node_name_sharing=2800 key_dtype value_dtype
HashTableV2 container=1200 shared_name=1200 use_node_name_sharing=2800 key_dtype value_dtype
HistogramSummary T=3001
IFFT Tcomplex=3008
IFFT2D Tcomplex=3008
IFFT3D Tcomplex=3008
IRFFT Treal=3001 Tcomplex=3008
IRFFT2D Treal=3001 Tcomplex=3008
IRFFT3D Treal=3001 Tcomplex=3008
Identity T
IdentityN T
Imag T=3008 Tout=3001
ImageProjectiveTransformV2 dtype interpolation fill_mode=1208434f4e5354414e54
ImageProjectiveTransformV3 dtype interpolation fill_mode=1208434f4e5354414e54
ImmutableConst dtype shape memory_region_name
InTopK k T=3003
InTopKV2 T=3003
InitializeTable Tkey Tval
InitializeTableFromDataset
InitializeTableFromTextFile key_index value_index vocab_size=18ffffffffffffffffff01 delimiter=120109 offset=1800
InitializeTableFromTextFileV2 key_index value_index vocab_size=18ffffffffffffffffff01 delimiter=120109 offset=1800
InitializeTableV2 Tkey Tval
InplaceAdd T
InplaceSub T
InplaceUpdate T
Inv T
InvGrad T
Invert T
InvertPermutation T=3003
IsFinite T
IsNan T
IsVariableInitialized dtype
LRN depth_radius=1805 bias=250000803f alpha=250000803f beta=250000003f T=3001
LeakyRelu alpha=25cdcc4c3e T=3001
LeakyReluGrad alpha=25cdcc4c3e T=3001
LeftShift T
Less T
LessEqual T
LinSpace T Tidx=3003
ListDiff T out_idx=3003
Log T
LogMatrixDeterminant T
LogSoftmax T
LogicalAnd
LogicalNot
LogicalOr
LookupTableExport Tkeys Tvalues
LookupTableExportV2 Tkeys Tvalues
LookupTableFind Tin Tout
LookupTableFindV2 Tin Tout
LookupTableImport Tin Tout
LookupTableImportV2 Tin Tout
LookupTableInsert Tin Tout
LookupTableInsertV2 Tin Tout
LookupTableRemoveV2 Tin
LookupTableSize
LookupTableSizeV2
LoopCond
MapDataset f Targuments output_types output_shapes use_inter_op_parallelism=2801 preserve_cardinality=2800
    force_synchronous=2800 metadata=1200
MatMul transpose_a=2800 transpose_b=2800 T grad_a=2800 grad_b=2800
MatrixBandPart T Tindex=3009
MatrixDeterminant T
MatrixDiag T
MatrixDiagPart T
MatrixDiagPartV2 T
MatrixDiagPartV3 T align=120a52494748545f4c454654
MatrixDiagV2 T
MatrixDiagV3 T align=120a52494748545f4c454654
MatrixInverse adjoint=2800 T
MatrixSetDiag T
MatrixSetDiagV2 T
MatrixSetDiagV3 T align=120a52494748545f4c454654
MatrixTriangularSolve lower=2801 adjoint=2800 T
Max keep_dims=2800 T Tidx=3003
MaxPool T=3001 ksize strides padding explicit_paddings=0a00 data_format=12044e485743
MaxPool3D ksize strides padding data_format=12054e44485743 T
MaxPool3DGrad ksize strides padding data_format=12054e44485743 T=3001 TInput=3001
MaxPool3DGradGrad ksize strides padding data_format=12054e44485743 T
MaxPoolGrad ksize strides padding explicit_paddings=0a00 data_format=12044e485743 T=3001
MaxPoolGradGrad ksize strides padding data_format=12044e485743 T
MaxPoolGradGradV2 padding data_format=12044e485743 T
MaxPoolGradV2 padding data_format=12044e485743 T=3001
MaxPoolGradWithArgmax ksize strides padding include_batch_in_index=2800 Targmax T
MaxPoolV2 T=3001 padding data_format=12044e485743
MaxPoolWithArgmax ksize strides Targmax=3009 padding include_batch_in_index=2800 T
Maximum T
Mean keep_dims=2800 T Tidx=3003
Merge T N
MergeSummary N
MergeV2Checkpoints delete_old_dirs=2801 allow_missing_files=2800
Mfcc upper_frequency_limit=2500007a45 lower_frequency_limit=250000a041 filterbank_channel_count=1828
    dct_coefficient_count=180d
Min keep_dims=2800 T Tidx=3003
Minimum T
MirrorPad T Tpaddings=3003 mode
MirrorPadGrad T Tpaddings=3003 mode
ModelDataset algorithm=1800 cpu_budget=1800 ram_budget=1800 output_types output_shapes
Mul T
MulNoNan T
Multinomial seed=1800 seed2=1800 T output_dtype=3009
MutableDenseHashTable container=1200 shared_name=1200 use_node_name_sharing=2800 key_dtype value_dtype
    value_shape=3a00 initial_num_buckets=18808008 max_load_factor=25cdcc4c3f
MutableDenseHashTableV2 container=1200 shared_name=1200 use_node_name_sharing=2800 key_dtype value_dtype
    value_shape=3a00 initial_num_buckets=18808008 max_load_factor=25cdcc4c3f
MutableHashTable container=1200 shared_name=1200 use_node_name_sharing=2800 key_dtype value_dtype
MutableHashTableOfTensors container=1200 shared_name=1200 use_node_name_sharing=2800 key_dtype value_dtype
    value_shape=3a00
MutableHashTableOfTensorsV2 container=1200 shared_name=1200 use_node_name_sharing=2800 key_dtype value_dtype
    value_shape=3a00
MutableHashTableV2 container=1200 shared_name=1200 use_node_name_sharing=2800 key_dtype value_dtype
Neg T
NextIteration T
NoOp
NonMaxSuppression iou_threshold=250000003f
NonMaxSuppressionV2 T=3001 T_threshold=3001
NonMaxSuppressionV3 T=3001 T_threshold=3001
NonMaxSuppressionV4 T=3001 T_threshold=3001 pad_to_max_output_size=2800
NonMaxSuppressionV5 T=3001 pad_to_max_output_size=2800
NonMaxSuppressionWithOverlaps
NotEqual T incompatible_shape_error=2801
OneHot axis=18ffffffffffffffffff01 T TI=3009
OnesLike T
OptimizeDatasetV2 output_types output_shapes optimization_configs=0a00
OptionalFromValue Toutput_types
OptionalGetValue output_types output_shapes
OptionalHasValue
OptionalNone
Pack N T axis=1800
Pad T Tpaddings=3003
PadV2 T Tpaddings=3003
PaddingFIFOQueue component_types shapes=0a00 capacity=18ffffffffffffffffff01 container=1200 shared_name=1200
PaddingFIFOQueueV2 component_types shapes=0a00 capacity=18ffffffffffffffffff01 container=1200 shared_name=1200
ParallelConcat N T shape
ParallelDynamicStitch N T
ParseExample Nsparse Ndense sparse_types Tdense dense_shapes
ParseExampleV2 Tdense num_sparse sparse_types ragged_value_types ragged_split_types dense_shapes
ParseSequenceExample feature_list_dense_missing_assumed_empty context_sparse_keys context_dense_keys
    feature_list_sparse_keys feature_list_dense_keys Ncontext_sparse=1800 Ncontext_dense=1800
    Nfeature_list_sparse=1800 Nfeature_list_dense=1800 context_sparse_types=0a00 Tcontext_dense=0a00
    feature_list_dense_types=0a00 context_dense_shapes=0a00 feature_list_sparse_types=0a00
    feature_list_dense_shapes=0a00
ParseSequenceExampleV2 Ncontext_sparse=1800 Tcontext_dense=0a00 context_sparse_types=0a00
    context_ragged_value_types=0a00 context_ragged_split_types=0a00 context_dense_shapes=0a00
    Nfeature_list_sparse=1800 Nfeature_list_dense=1800 feature_list_dense_types=0a00 feature_list_sparse_types=0a00
    feature_list_ragged_value_types=0a00 feature_list_ragged_split_types=0a00 feature_list_dense_shapes=0a00
ParseSingleExample num_sparse sparse_keys dense_keys sparse_types Tdense dense_shapes
ParseSingleSequenceExample Ncontext_sparse=1800 Ncontext_dense=1800 Nfeature_list_sparse=1800 Nfeature_list_dense=1800
    context_sparse_types=0a00 Tcontext_dense=0a00 feature_list_dense_types=0a00 context_dense_shapes=0a00
    feature_list_sparse_types=0a00 feature_list_dense_shapes=0a00
Placeholder dtype shape=3a021801
PlaceholderV2 dtype shape
PlaceholderWithDefault dtype shape
PopulationCount T
Pow T
PreventGradient T message=1200
Print T U message=1200 first_n=18ffffffffffffffffff01 summarize=1803
PrintV2 output_stream=1206737464657272 end=12010a
Prod keep_dims=2800 T Tidx=3003
Qr full_matrices=2800 T
QuantizeDownAndShrinkRange Tinput out_type
QuantizeV2 T mode=120c4d494e5f434f4d42494e4544 round_mode=121348414c465f415741595f46524f4d5f5a45524f narrow_range=2800
    axis=18ffffffffffffffffff01 ensure_minimum_range=250ad7233c
QuantizedAdd T1 T2 Toutput=300d
QuantizedAvgPool T ksize strides padding
QuantizedBatchNormWithGlobalNormalization Tinput out_type variance_epsilon scale_after_normalization
QuantizedBiasAdd T1 T2 out_type
QuantizedConcat N T
QuantizedConv2D Tinput Tfilter out_type=300d strides padding dilations=0a061a0401010101
QuantizedInstanceNorm T output_range_given=2800 given_y_min=2500000000 given_y_max=2500000000
    variance_epsilon=25acc52737 min_separation=256f12833a
QuantizedMatMul T1 T2 Toutput=300d transpose_a=2800 transpose_b=2800 Tactivation=300c
QuantizedMaxPool T ksize strides padding
QuantizedMul T1 T2 Toutput=300d
QuantizedRelu Tinput out_type=300c
QuantizedRelu6 Tinput out_type=300c
QuantizedReshape T Tshape=3003
QuantizedResizeBilinear T align_corners=2800 half_pixel_centers=2800
QueueClose cancel_pending_enqueues=2800
QueueCloseV2 cancel_pending_enqueues=2800
QueueDequeue component_types timeout_ms=18ffffffffffffffffff01
QueueDequeueMany component_types timeout_ms=18ffffffffffffffffff01
QueueDequeueManyV2 component_types timeout_ms=18ffffffffffffffffff01
QueueDequeueUpTo component_types timeout_ms=18ffffffffffffffffff01
QueueDequeueUpToV2 component_types timeout_ms=18ffffffffffffffffff01
QueueDequeueV2 component_types timeout_ms=18ffffffffffffffffff01
QueueEnqueue Tcomponents timeout_ms=18ffffffffffffffffff01
QueueEnqueueMany Tcomponents timeout_ms=18ffffffffffffffffff01
QueueEnqueueManyV2 Tcomponents timeout_ms=18ffffffffffffffffff01
QueueEnqueueV2 Tcomponents timeout_ms=18ffffffffffffffffff01
QueueIsClosed
QueueIsClosedV2
QueueSize
QueueSizeV2
RFFT Treal=3001 Tcomplex=3008
RFFT2D Treal=3001 Tcomplex=3008
RFFT3D Treal=3001 Tcomplex=3008
RGBToHSV T=3001
RaggedBincount Tidx T binary_output=2800
RaggedGather Tvalues Tindices Tsplits=3009 PARAMS_RAGGED_RANK OUTPUT_RAGGED_RANK
RaggedRange T=3003 Tsplits=3009
RaggedTensorFromVariant input_ragged_rank output_ragged_rank Tvalues Tsplits=3009
RaggedTensorToSparse RAGGED_RANK T Tsplits=3009
RaggedTensorToTensor T Tindex Tshape num_row_partition_tensors row_partition_types
RaggedTensorToVariant RAGGED_RANK Tvalues Tsplits=3009 batched_input
RaggedTensorToVariantGradient Tvalues Tsplits=3009
RandomGamma seed=1800 seed2=1800 S T
RandomPoisson seed=1800 seed2=1800 S dtype
RandomPoissonV2 seed=1800 seed2=1800 S R=3002 dtype=3009
RandomShuffle seed=1800 seed2=1800 T
RandomStandardNormal seed=1800 seed2=1800 dtype T
RandomUniform seed=1800 seed2=1800 dtype T
RandomUniformInt seed=1800 seed2=1800 Tout T
Range Tidx=3003
Rank T
ReadFile
ReadVariableOp dtype
Real T=3008 Tout=3001
RealDiv T
Reciprocal T
ReciprocalGrad T
Recv tensor_type tensor_name send_device send_device_incarnation recv_device client_terminated=2800
ReduceDataset f Tstate Targuments output_types output_shapes use_inter_op_parallelism=2801 metadata=1200
ReduceJoin keep_dims=2800 separator=1200
RefEnter T frame_name is_constant=2800 parallel_iterations=180a
RefExit T
RefIdentity T
RefMerge T N
RefNextIteration T
RefSelect T N
RefSwitch T
RegexFullMatch
RegexReplace replace_global=2801
Relu T
Relu6 T
Relu6Grad T
ReluGrad T
RemoteCall Tin Tout f
RepeatDataset output_types output_shapes metadata=1200
RequantizationRange Tinput
Requantize Tinput out_type
Reshape T Tshape=3003
ResizeBicubic T align_corners=2800 half_pixel_centers=2800
ResizeBicubicGrad T align_corners=2800 half_pixel_centers=2800
ResizeBilinear T align_corners=2800 half_pixel_centers=2800
ResizeBilinearGrad T align_corners=2800 half_pixel_centers=2800
ResizeNearestNeighbor T align_corners=2800 half_pixel_centers=2800
ResizeNearestNeighborGrad T align_corners=2800 half_pixel_centers=2800
ResourceApplyAdaMax T use_locking=2800
ResourceApplyAdadelta T use_locking=2800
ResourceApplyAdagrad T use_locking=2800 update_slots=2801
ResourceApplyAdagradDA T use_locking=2800
ResourceApplyAdagradV2 T use_locking=2800 update_slots=2801
ResourceApplyAdam T use_locking=2800 use_nesterov=2800
ResourceApplyAdamWithAmsgrad T use_locking=2800
ResourceApplyAddSign T use_locking=2800
ResourceApplyCenteredRMSProp T use_locking=2800
ResourceApplyFtrl T use_locking=2800 multiply_linear_by_lr=2800
ResourceApplyFtrlV2 T use_locking=2800 multiply_linear_by_lr=2800
ResourceApplyGradientDescent T use_locking=2800
ResourceApplyKerasMomentum T use_locking=2800 use_nesterov=2800
ResourceApplyMomentum T use_locking=2800 use_nesterov=2800
ResourceApplyPowerSign T use_locking=2800
ResourceApplyProximalAdagrad T use_locking=2800
ResourceApplyProximalGradientDescent T use_locking=2800
ResourceApplyRMSProp T use_locking=2800
ResourceGather batch_dims=1800 validate_indices=2801 dtype Tindices
ResourceGatherNd dtype Tindices
ResourceScatterAdd dtype Tindices
ResourceScatterDiv dtype Tindices
ResourceScatterMax dtype Tindices
ResourceScatterMin dtype Tindices
ResourceScatterMul dtype Tindices
ResourceScatterNdAdd T Tindices use_locking=2801 bad_indices_policy=1200
ResourceScatterNdMax T Tindices use_locking=2801 bad_indices_policy=1200
ResourceScatterNdMin T Tindices use_locking=2801 bad_indices_policy=1200
ResourceScatterNdSub T Tindices use_locking=2801 bad_indices_policy=1200
ResourceScatterNdUpdate T Tindices use_locking=2801 bad_indices_policy=1200
ResourceScatterSub dtype Tindices
ResourceScatterUpdate dtype Tindices
ResourceSparseApplyAdadelta T Tindices use_locking=2800
ResourceSparseApplyAdagrad T Tindices use_locking=2800 update_slots=2801
ResourceSparseApplyAdagradDA T Tindices use_locking=2800
ResourceSparseApplyAdagradV2 T Tindices use_locking=2800 update_slots=2801
ResourceSparseApplyCenteredRMSProp T Tindices use_locking=2800
ResourceSparseApplyFtrl T Tindices use_locking=2800 multiply_linear_by_lr=2800
ResourceSparseApplyFtrlV2 T Tindices use_locking=2800 multiply_linear_by_lr=2800
ResourceSparseApplyKerasMomentum T Tindices use_locking=2800 use_nesterov=2800
ResourceSparseApplyMomentum T Tindices use_locking=2800 use_nesterov=2800
ResourceSparseApplyProximalAdagrad T Tindices use_locking=2800
ResourceSparseApplyProximalGradientDescent T Tindices use_locking=2800
ResourceSparseApplyRMSProp T Tindices use_locking=2800
ResourceStridedSliceAssign T Index begin_mask=1800 end_mask=1800 ellipsis_mask=1800 new_axis_mask=1800
    shrink_axis_mask=1800
Restore dt preferred_shard=18ffffffffffffffffff01
RestoreSlice dt preferred_shard=18ffffffffffffffffff01
RestoreV2 dtypes
Reverse T
ReverseSequence seq_dim batch_dim=1800 T Tlen=3009
ReverseV2 Tidx=3003 T
RightShift T
Roll T Tshift Taxis
Round T
Rsqrt T
RsqrtGrad T
SampleDistortedBoundingBox T seed=1800 seed2=1800 min_object_covered=25cdcccc3d
    aspect_ratio_range=0a0a22080000403f713daa3f area_range=0a0a2208cdcc4c3d0000803f max_attempts=1864
    use_image_if_no_bounding_boxes=2800
SampleDistortedBoundingBoxV2 T seed=1800 seed2=1800 aspect_ratio_range=0a0a22080000403f713daa3f
    area_range=0a0a2208cdcc4c3d0000803f max_attempts=1864 use_image_if_no_bounding_boxes=2800
Save T
SaveSlices T
SaveV2 dtypes
ScalarSummary T
ScatterNd T Tindices bad_indices_policy=1200
ScatterNdAdd T Tindices use_locking=2800 bad_indices_policy=1200
ScatterNdMax T Tindices use_locking=2800 bad_indices_policy=1200
ScatterNdMin T Tindices use_locking=2800 bad_indices_policy=1200
ScatterNdNonAliasingAdd T Tindices bad_indices_policy=1200
ScatterNdSub T Tindices use_locking=2800 bad_indices_policy=1200
ScatterNdUpdate T Tindices use_locking=2801 bad_indices_policy=1200
SegmentMax T Tindices
SegmentMean T Tindices
SegmentMin T Tindices
SegmentProd T Tindices
SegmentSum T Tindices
Select T
SelectV2 T
Selu T
SeluGrad T
Send T tensor_name send_device send_device_incarnation recv_device client_terminated=2800
SerializeTensor T
Shape T out_type=3003
ShapeN N T out_type=3003
ShardedFilename
ShardedFilespec
Sigmoid T
SigmoidGrad T
Sign T
Sin T
Sinh T
Size T out_type=3003
Slice T Index
Softmax T
SoftmaxCrossEntropyWithLogits T
Softplus T
SoftplusGrad T
Softsign T
SoftsignGrad T
SpaceToBatch T Tpaddings=3003 block_size
SpaceToBatchND T Tblock_shape=3003 Tpaddings=3003
SpaceToDepth T block_size data_format=12044e485743
SparseAdd T Treal
SparseApplyAdadelta T Tindices use_locking=2800
SparseApplyAdagrad T Tindices use_locking=2800 update_slots=2801
SparseApplyAdagradDA T Tindices use_locking=2800
SparseApplyAdagradV2 T Tindices use_locking=2800 update_slots=2801
SparseApplyCenteredRMSProp T Tindices use_locking=2800
SparseApplyFtrl T Tindices use_locking=2800 multiply_linear_by_lr=2800
SparseApplyFtrlV2 T Tindices use_locking=2800 multiply_linear_by_lr=2800
SparseApplyMomentum T Tindices use_locking=2800 use_nesterov=2800
SparseApplyProximalAdagrad T Tindices use_locking=2800
SparseApplyProximalGradientDescent T Tindices use_locking=2800
SparseApplyRMSProp T Tindices use_locking=2800
SparseBincount Tidx T binary_output=2800
SparseCross N hashed_output num_buckets hash_key sparse_types dense_types out_type internal_type
SparseCrossHashed N sparse_types dense_types
SparseCrossV2 N sparse_types dense_types
SparseFillEmptyRows T
SparseFillEmptyRowsGrad T
SparseReduceSum keep_dims=2800 T
SparseReorder T
SparseReshape
SparseSegmentMean T Tidx=3003 Tsegmentids=3003 sparse_gradient=2800
SparseSegmentMeanGrad T Tidx=3003 Tsegmentids=3003
SparseSegmentMeanWithNumSegments T Tidx=3003 Tnumsegments=3003 Tsegmentids=3003 sparse_gradient=2800
SparseSegmentSqrtN T Tidx=3003 Tsegmentids=3003 sparse_gradient=2800
SparseSegmentSqrtNGrad T Tidx=3003 Tsegmentids=3003
SparseSegmentSqrtNWithNumSegments T Tidx=3003 Tnumsegments=3003 Tsegmentids=3003 sparse_gradient=2800
SparseSegmentSum T Tidx=3003 Tsegmentids=3003 sparse_gradient=2800
SparseSegmentSumGrad T Tidx=3003 Tsegmentids=3003
SparseSegmentSumWithNumSegments T Tidx=3003 Tnumsegments=3003 Tsegmentids=3003 sparse_gradient=2800
SparseSlice T
SparseSoftmaxCrossEntropyWithLogits T Tlabels=3009
SparseTensorDenseMatMul T Tindices=3009 adjoint_a=2800 adjoint_b=2800
SparseToDense validate_indices=2801 T Tindices
SparseToSparseSetOperation set_operation validate_indices=2801 T
Split num_split T
SplitV num_split T Tlen=3009
Sqrt T
SqrtGrad T
Square T
SquaredDifference T
Squeeze T squeeze_dims=0a00
Stack elem_type stack_name=1200
StackClose
StackCloseV2
StackPop elem_type
StackPopV2 elem_type
StackPush T swap_memory=2800
StackPushV2 T swap_memory=2800
StackV2 elem_type stack_name=1200
StatelessMultinomial T Tseed=3009 output_dtype=3009
StatelessRandomGammaV2 dtype T Tseed=3009
StatelessRandomGammaV3 dtype shape_dtype=3003
StatelessRandomGetAlg
StatelessRandomGetKeyCounter Tseed=3009
StatelessRandomGetKeyCounterAlg Tseed=3009
StatelessRandomNormal dtype=3001 T=3003 Tseed=3009
StatelessRandomNormalV2 dtype=3001 Tshape=3003
StatelessRandomPoisson Rtype dtype T Tseed=3009
StatelessRandomUniform dtype=3001 T=3003 Tseed=3009
StatelessRandomUniformFullInt dtype=3017 T=3003 Tseed=3009
StatelessRandomUniformFullIntV2 dtype=3017 Tshape=3003
StatelessRandomUniformInt dtype T Tseed=3009
StatelessRandomUniformIntV2 dtype Tshape=3003
StatelessRandomUniformV2 dtype=3001 Tshape=3003
StatelessSampleDistortedBoundingBox T Tseed aspect_ratio_range=0a0a22080000403f713daa3f
    area_range=0a0a2208cdcc4c3d0000803f max_attempts=1864 use_image_if_no_bounding_boxes=2800
StatelessTruncatedNormal dtype=3001 T=3003 Tseed=3009
StatelessTruncatedNormalV2 dtype=3001 Tshape=3003
StaticRegexFullMatch pattern
StaticRegexReplace pattern rewrite replace_global=2801
StopGradient T
StridedSlice T Index begin_mask=1800 end_mask=1800 ellipsis_mask=1800 new_axis_mask=1800 shrink_axis_mask=1800
StridedSliceAssign T Index begin_mask=1800 end_mask=1800 ellipsis_mask=1800 new_axis_mask=1800 shrink_axis_mask=1800
StridedSliceGrad T Index begin_mask=1800 end_mask=1800 ellipsis_mask=1800 new_axis_mask=1800 shrink_axis_mask=1800
StringFormat T template=12022573 placeholder=12022573 summarize=1803
StringJoin N separator=1200
StringLength unit=120442595445
StringLower encoding=1200
StringSplit skip_empty=2801
StringSplitV2 maxsplit=18ffffffffffffffffff01
StringStrip
StringToHashBucket num_buckets
StringToHashBucketFast num_buckets
StringToHashBucketStrong num_buckets key
StringToNumber out_type=3001
Sub T
Substr T unit=120442595445
Sum keep_dims=2800 T Tidx=3003
Switch T
SymbolicGradient Tin Tout f
TakeDataset output_types output_shapes metadata=1200
TakeWhileDataset predicate Targuments output_types output_shapes metadata=1200
Tan T
Tanh T
TanhGrad T
TemporaryVariable shape dtype var_name=1200
TensorArray dtype dynamic_size=2800 clear_after_read=2801 tensor_array_name=1200 element_shape=3a021801
TensorArrayClose
TensorArrayCloseV2
TensorArrayCloseV3
TensorArrayConcat dtype element_shape_except0=3a021801
TensorArrayConcatV2 dtype element_shape_except0=3a021801
TensorArrayConcatV3 dtype element_shape_except0=3a021801
TensorArrayGather dtype element_shape=3a021801
TensorArrayGatherV2 dtype element_shape=3a021801
TensorArrayGatherV3 dtype element_shape=3a021801
TensorArrayGrad source
TensorArrayGradV2 source
TensorArrayGradV3 source
TensorArrayGradWithShape source
TensorArrayPack dtype element_shape=3a021801
TensorArrayRead dtype
TensorArrayReadV2 dtype
TensorArrayReadV3 dtype
TensorArrayScatter T
TensorArrayScatterV2 T
TensorArrayScatterV3 T
TensorArraySize
TensorArraySizeV2
TensorArraySizeV3
TensorArraySplit T
TensorArraySplitV2 T
TensorArraySplitV3 T
TensorArrayUnpack T
TensorArrayV2 dtype element_shape=3a021801 dynamic_size=2800 clear_after_read=2801 tensor_array_name=1200
TensorArrayV3 dtype element_shape=3a021801 dynamic_size=2800 clear_after_read=2801 identical_element_shapes=2800
    tensor_array_name=1200
TensorArrayWrite T
TensorArrayWriteV2 T
TensorArrayWriteV3 T
TensorListConcat element_dtype element_shape=3a021801
TensorListConcatLists element_dtype
TensorListConcatV2 element_dtype shape_type
TensorListElementShape shape_type
TensorListFromTensor element_dtype shape_type
TensorListGather element_dtype
TensorListGetItem element_dtype Tshape=3003
TensorListLength
TensorListPopBack element_dtype
TensorListPushBack element_dtype
TensorListPushBackBatch element_dtype
TensorListReserve element_dtype shape_type
TensorListResize
TensorListScatter element_dtype shape_type
TensorListScatterIntoExistingList element_dtype
TensorListScatterV2 element_dtype shape_type
TensorListSetItem element_dtype resize_if_index_out_of_bounds=2800
TensorListSplit element_dtype shape_type
TensorListStack element_dtype num_elements=18ffffffffffffffffff01
TensorMapErase key_dtype value_dtype
TensorMapHasKey key_dtype
TensorMapInsert key_dtype value_dtype
TensorMapLookup key_dtype value_dtype
TensorMapSize
TensorMapStackKeys key_dtype
TensorScatterAdd T Tindices bad_indices_policy=1200
TensorScatterMax T Tindices bad_indices_policy=1200
TensorScatterMin T Tindices bad_indices_policy=1200
TensorScatterSub T Tindices bad_indices_policy=1200
TensorScatterUpdate T Tindices bad_indices_policy=1200
TensorSliceDataset Toutput_types output_shapes is_files=2800 metadata=1200 replicate_on_split=2800
TensorStridedSliceUpdate T Index begin_mask=1800 end_mask=1800 ellipsis_mask=1800 new_axis_mask=1800
    shrink_axis_mask=1800
Tile T Tmultiples=3003
TileGrad T
Timestamp
TopK k sorted=2801 T
TopKV2 sorted=2801 T Tk=3003 index_type=3003
Transpose T Tperm=3003
TruncateDiv T
TruncatedNormal seed=1800 seed2=1800 dtype T
UnicodeDecode input_encoding errors=12077265706c616365 replacement_char=18fdff03 replace_control_characters=2800
    Tsplits=3009
UnicodeDecodeWithOffsets input_encoding errors=12077265706c616365 replacement_char=18fdff03
    replace_control_characters=2800 Tsplits=3009
UnicodeEncode errors=12077265706c616365 output_encoding replacement_char=18fdff03 Tsplits=3009
UnicodeTranscode input_encoding output_encoding errors=12077265706c616365 replacement_char=18fdff03
    replace_control_characters=2800
Unique T out_idx=3003
UniqueV2 T Taxis=3009 out_idx=3003
UniqueWithCounts T out_idx=3003
UniqueWithCountsV2 T Taxis=3009 out_idx=3003
Unpack num T axis=1800
UnsortedSegmentJoin separator=1200 Tindices Tnumsegments=3003
UnsortedSegmentMax T Tindices Tnumsegments=3003
UnsortedSegmentMin T Tindices Tnumsegments=3003
UnsortedSegmentProd T Tindices Tnumsegments=3003
UnsortedSegmentSum T Tindices Tnumsegments=3003
UnwrapDatasetVariant
UpperBound T out_type=3003
VarHandleOp container=1200 shared_name=1200 debug_name=1200 dtype shape allowed_devices=0a00
VarIsInitializedOp
Variable shape dtype container=1200 shared_name=1200
VariableShape out_type=3003
VariableV2 shape dtype container=1200 shared_name=1200
Where T=300a
WrapDatasetVariant
WriteFile
Xdivy T
Xlog1py T
Xlogy T
ZerosLike T
_Arg T index
_ArrayToList T N out_types
_DeviceArg T index
_DeviceRetval T index
_FusedConv2D T TArgs num_args num_host_args=1800 strides padding explicit_paddings=0a00 data_format=12044e485743
    filter_format=12044857494f dilations=0a061a0401010101 use_cudnn_on_gpu=2801 fused_ops=0a00 epsilon=2517b7d138
    leakyrelu_alpha=25cdcc4c3e
_HostCast SrcT DstT Truncate=2800
_HostRecv tensor_type tensor_name send_device send_device_incarnation recv_device client_terminated=2800
_HostSend T tensor_name send_device send_device_incarnation recv_device client_terminated=2800
_ListToArray Tin T N
_ParallelConcatStart shape dtype
_ParallelConcatUpdate T loc
_ReadVariablesOp N dtypes
_Recv tensor_type tensor_name send_device send_device_incarnation recv_device client_terminated=2800
_Retval T index
_Send T tensor_name send_device send_device_incarnation recv_device client_terminated=2800
_SwitchN num_outs T
_VarHandlesOp containers shared_names N dtypes shapes
"""

FLEX_OPERATORS = {name: rest for name, _, rest in [item.partition(" ") for item in re.split(r"\n(?! )", _TABLE)[1:-1]]}
"""Attributes as they are in the table, by operator."""


def flex_operator(name: str) -> OpDef:
    """The operator's definition, of which the attributes are kept. Raises `KeyError` for one that is not allowed."""
    attributes = []
    for text in FLEX_OPERATORS[name].split():
        key, has_default, default = text.partition("=")
        attribute = OpDef.AttrDef(name=key)
        if has_default:
            attribute = attribute.replace(default_value=read(AttrValue, bytes.fromhex(default)))
        attributes.append(attribute)
    return OpDef(name=name, attr=tuple(attributes))
