"""The operators of TensorFlow that `gossamer.convert.flex_operators` defines, as text.

The names of those that are ``ALLOWED`` are those of the allow list ``GetFlexAllowlist`` in ``allowlisted_flex_ops.cc``
of TensorFlow Lite's converter (LiteRT of 2026, commit f6745779), which TensorFlow 2.21 obeys. Not there are the
operators that it allows only where their libraries are loaded (TensorFlow Text, SentencePiece), and those that users
name themselves (``experimental_select_user_tf_ops``), some of which are ``BEYOND``. The delegate itself asks for no
list.

An operator, "!" if it is stateful; operands > results | attributes; indented lines go on. An operand is name:type: of
an attribute or by name, [types] of a list, N*type so many, & a reference to a variable. An attribute is name:kind, then
=default (an AttrValue on the wire), >=minimum, {allowed} (types by their letters).
"""

from __future__ import annotations

ALLOWED = """
Abort > | error_msg:s=1200 exit_without_error:b=2800
Abs x:T > y:T | T:t{fdiwclgh}
Add x:T y:T > z:T | T:t{fdiBwcsClgZh}
AddN inputs:N*T > sum:T | N:i>=1 T:t{fdiBwcClqQegrRWZhvIL}
AddV2 x:T y:T > z:T | T:t{fdiBwcClgWZhIL}
AdjustContrast images:T contrast_factor:float min_value:float max_value:float > output:float | T:t{fdiBwcl}
AdjustContrastv2 images:T contrast_factor:float > output:T | T:t=3001{fh}
AdjustHue images:T delta:float > output:T | T:t=3001{fh}
AdjustSaturation images:T scale:float > output:T | T:t=3001{fh}
All input:bool reduction_indices:Tidx > output:bool | keep_dims:b=2800 Tidx:t=3003{il}
Angle input:T > output:Tout | T:t=3008{CZ} Tout:t=3001{fd}
Any input:bool reduction_indices:Tidx > output:bool | keep_dims:b=2800 Tidx:t=3003{il}
ApplyAdaMax var:&T m:&T v:&T beta1_power:T lr:T beta1:T beta2:T epsilon:T grad:T > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ApplyAdadelta var:&T accum:&T accum_update:&T lr:T rho:T epsilon:T grad:T > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800
ApplyAdagrad var:&T accum:&T lr:T grad:T > out:&T | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
    update_slots:b=2801
ApplyAdagradDA var:&T gradient_accumulator:&T gradient_squared_accumulator:&T grad:T lr:T l1:T l2:T
    global_step:int64 > out:&T | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ApplyAdagradV2 var:&T accum:&T lr:T epsilon:T grad:T > out:&T | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
    update_slots:b=2801
ApplyAdam var:&T m:&T v:&T beta1_power:T beta2_power:T lr:T beta1:T beta2:T epsilon:T grad:T > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800 use_nesterov:b=2800
ApplyAddSign var:&T m:&T lr:T alpha:T sign_decay:T beta:T grad:T > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800
ApplyCenteredRMSProp var:&T mg:&T ms:&T mom:&T lr:T rho:T momentum:T epsilon:T grad:T > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ApplyFtrl var:&T accum:&T linear:&T grad:T lr:T l1:T l2:T lr_power:T > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800 multiply_linear_by_lr:b=2800
ApplyFtrlV2 var:&T accum:&T linear:&T grad:T lr:T l1:T l2:T l2_shrinkage:T lr_power:T > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800 multiply_linear_by_lr:b=2800
ApplyGradientDescent var:&T alpha:T delta:T > out:&T | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ApplyMomentum var:&T accum:&T lr:T grad:T momentum:T > out:&T | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
    use_nesterov:b=2800
ApplyPowerSign var:&T m:&T lr:T logbase:T sign_decay:T beta:T grad:T > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800
ApplyProximalAdagrad var:&T accum:&T lr:T l1:T l2:T grad:T > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800
ApplyProximalGradientDescent var:&T alpha:T l1:T l2:T delta:T > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800
ApplyRMSProp var:&T ms:&T mom:&T lr:T rho:T momentum:T epsilon:T grad:T > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800
ApproximateEqual x:T y:T > z:bool | T:t{fdiBwcClqQegrRWZhIL} tolerance:f=25acc52737
ArgMax input:T dimension:Tidx > output:output_type | T:t{fdiBwclbqQegrRWhIL} Tidx:t=3003{iwl}
    output_type:t=3009{iwlW}
ArgMin input:T dimension:Tidx > output:output_type | T:t{fdiBwclbqQegrRWhIL} Tidx:t=3003{il}
    output_type:t=3009{il}
AsString input:T > output:string | T:t{fdiBwcsClbgWZhvIL} precision:i=18ffffffffffffffffff01 scientific:b=2800
    shortest:b=2800 width:i=18ffffffffffffffffff01 fill:s=1200
Assert! condition:bool data:[T] > | T:[t]>=1 summarize:i=1803
Assign ref:&T value:T > output_ref:&T | T:t validate_shape:b=2801 use_locking:b=2801
AssignAdd ref:&T value:T > output_ref:&T | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
AssignAddVariableOp! resource:resource value:dtype > | dtype:t
AssignSub ref:&T value:T > output_ref:&T | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
AssignSubVariableOp! resource:resource value:dtype > | dtype:t
AssignVariableOp! resource:resource value:dtype > | dtype:t validate_shape:b=2800
Atan x:T > y:T | T:t{fdCgZh}
Atan2 y:T x:T > z:T | T:t{fdgh}
AudioSpectrogram input:float > spectrogram:float | window_size:i stride:i magnitude_squared:b=2800
AvgPool value:T > output:T | ksize:[i]>=4 strides:[i]>=4 padding:s{SAME,VALID}
    data_format:s=12044e485743{NHWC,NCHW} T:t{fdgh}
AvgPool3D input:T > output:T | ksize:[i]>=5 strides:[i]>=5 padding:s{SAME,VALID}
    data_format:s=12054e44485743{NDHWC,NCDHW} T:t{fdgh}
AvgPool3DGrad orig_input_shape:int32 grad:T > output:T | ksize:[i]>=5 strides:[i]>=5 padding:s{SAME,VALID}
    data_format:s=12054e44485743{NDHWC,NCDHW} T:t{fdgh}
AvgPoolGrad orig_input_shape:int32 grad:T > output:T | ksize:[i]>=4 strides:[i]>=4 padding:s{SAME,VALID}
    data_format:s=12044e485743{NHWC,NCHW} T:t{fdgh}
BatchCholesky input:T > output:T | T:t{fd}
BatchDatasetV2 input_dataset:variant batch_size:int64 drop_remainder:bool > handle:variant |
    parallel_copy:b=2800 output_types:[t]>=1 output_shapes:[h]>=1 metadata:s=1200
BatchMatMul x:T y:T > output:T | T:t{fdiClgZh} adj_x:b=2800 adj_y:b=2800 grad_x:b=2800 grad_y:b=2800
BatchMatMulV2 x:T y:T > output:T | T:t{fdiBwClgWZhIL} adj_x:b=2800 adj_y:b=2800 grad_x:b=2800 grad_y:b=2800
BatchMatrixBandPart input:T num_lower:int64 num_upper:int64 > band:T | T:t
BatchMatrixDeterminant input:T > output:T | T:t{fdCZ}
BatchMatrixDiag diagonal:T > output:T | T:t
BatchMatrixDiagPart input:T > diagonal:T | T:t
BatchMatrixInverse input:T > output:T | adjoint:b=2800 T:t{fd}
BatchMatrixSetDiag input:T diagonal:T > output:T | T:t
BatchMatrixTriangularSolve matrix:T rhs:T > output:T | lower:b=2801 adjoint:b=2800 T:t{fd}
BatchNormWithGlobalNormalization t:T m:T v:T beta:T gamma:T > result:T | T:t{fdiBwcClqQegrRWZhIL}
    variance_epsilon:f scale_after_normalization:b
BatchNormWithGlobalNormalizationGrad t:T m:T v:T gamma:T backprop:T > dx:T dm:T dv:T db:T dg:T |
    T:t{fdiBwcClqQegrRWZhIL} variance_epsilon:f scale_after_normalization:b
BatchToSpace input:T crops:Tidx > output:T | T:t block_size:i>=2 Tidx:t=3003{il}
BatchToSpaceND input:T block_shape:Tblock_shape crops:Tcrops > output:T | T:t Tblock_shape:t=3003{il}
    Tcrops:t=3003{il}
BiasAdd value:T bias:T > output:T | T:t{fdiBwcClqQegrRWZhIL} data_format:s=12044e485743{NHWC,NCHW}
BiasAddGrad out_backprop:T > output:T | T:t{fdiBwcClqQegrRWZhIL} data_format:s=12044e485743{NHWC,NCHW}
BiasAddV1 value:T bias:T > output:T | T:t{fdiBwcClqQegrRWZhIL}
Bincount arr:int32 size:int32 weights:T > bins:T | T:t{fdil}
Bitcast input:T > output:type | T:t{fdiBwcClqQegrRWZhIL} type:t{fdiBwcClqQegrRWZhIL}
BitwiseAnd x:T y:T > z:T | T:t{iBwclWIL}
BitwiseOr x:T y:T > z:T | T:t{iBwclWIL}
BitwiseXor x:T y:T > z:T | T:t{iBwclWIL}
BroadcastArgs s0:T s1:T > r0:T | T:t=3003{il}
BroadcastGradientArgs s0:T s1:T > r0:T r1:T | T:t=3003{il}
BroadcastTo input:T shape:Tidx > output:T | T:t Tidx:t=3003{il}
Bucketize input:T > output:int32 | T:t{fdil} boundaries:[f]
CTCBeamSearchDecoder inputs:T sequence_length:int32 > decoded_indices:top_paths*int64
    decoded_values:top_paths*int64 decoded_shape:top_paths*int64 log_probability:T | beam_width:i>=1
    top_paths:i>=1 merge_repeated:b=2801 T:t=3001{fd}
CTCGreedyDecoder inputs:T sequence_length:int32 > decoded_indices:int64 decoded_values:int64 decoded_shape:int64
    log_probability:T | merge_repeated:b=2800 blank_index:i=18ffffffffffffffffff01 T:t=3001{fd}
Case! branch_index:int32 input:[Tin] > output:[Tout] | Tin:[t]>=0 Tout:[t]>=0 branches:[F]>=1
    output_shapes:[h]=0a00
Cast x:SrcT > y:DstT | SrcT:t DstT:t Truncate:b=2800
Ceil x:T > y:T | T:t{fdgh}
CheckNumerics! tensor:T > output:T | T:t{fdgh} message:s
CheckNumericsV2! tensor:T > output:T | T:t{fdgh} message:s
Cholesky input:T > output:T | T:t{fdCZh}
ClipByValue t:T clip_value_min:T clip_value_max:T > output:T | T:t{fdiBwcClqQegrRWZhIL}
CombinedNonMaxSuppression boxes:float scores:float max_output_size_per_class:int32 max_total_size:int32
    iou_threshold:float score_threshold:float > nmsed_boxes:float nmsed_scores:float nmsed_classes:float
    valid_detections:int32 | pad_per_class:b=2800 clip_boxes:b=2801
Complex real:T imag:T > out:Tout | T:t=3001{fd} Tout:t=3008{CZ}
ComplexAbs x:T > y:Tout | T:t=3008{CZ} Tout:t=3001{fd}
Concat concat_dim:int32 values:N*T > output:T | N:i>=2 T:t
ConcatOffset concat_dim:int32 shape:N*shape_type > offset:N*shape_type | N:i>=2 shape_type:t=3003{il}
ConcatV2 values:N*T axis:Tidx > output:T | N:i>=2 T:t Tidx:t=3003{il}
Conj input:T > output:T | T:t=3008{CZv}
ConjugateTranspose x:T perm:Tperm > y:T | T:t Tperm:t=3003{il}
Const > output:dtype | value:T dtype:t
ControlTrigger >
Conv2D input:T filter:T > output:T | T:t{fdigh} strides:[i] use_cudnn_on_gpu:b=2801
    padding:s{SAME,VALID,EXPLICIT} explicit_paddings:[i]=0a00 data_format:s=12044e485743{NHWC,NCHW}
    dilations:[i]=0a061a0401010101
Conv2DBackpropFilter input:T filter_sizes:int32 out_backprop:T > output:T | T:t{fdgh} strides:[i]
    use_cudnn_on_gpu:b=2801 padding:s{SAME,VALID,EXPLICIT} explicit_paddings:[i]=0a00
    data_format:s=12044e485743{NHWC,NCHW} dilations:[i]=0a061a0401010101
Conv2DBackpropInput input_sizes:int32 filter:T out_backprop:T > output:T | T:t{fdigh} strides:[i]
    use_cudnn_on_gpu:b=2801 padding:s{SAME,VALID,EXPLICIT} explicit_paddings:[i]=0a00
    data_format:s=12044e485743{NHWC,NCHW} dilations:[i]=0a061a0401010101
Conv3D input:T filter:T > output:T | T:t{fdgh} strides:[i]>=5 padding:s{SAME,VALID}
    data_format:s=12054e44485743{NDHWC,NCDHW} dilations:[i]=0a071a050101010101
Conv3DBackpropFilter input:T filter:T out_backprop:T > output:T | T:t{fdh} strides:[i]>=5 padding:s{SAME,VALID}
    dilations:[i]=0a071a050101010101
Conv3DBackpropFilterV2 input:T filter_sizes:int32 out_backprop:T > output:T | T:t{fdgh} strides:[i]>=5
    padding:s{SAME,VALID} data_format:s=12054e44485743{NDHWC,NCDHW} dilations:[i]=0a071a050101010101
Conv3DBackpropInput input:T filter:T out_backprop:T > output:T | T:t{fdh} strides:[i]>=5 padding:s{SAME,VALID}
    dilations:[i]=0a071a050101010101
Conv3DBackpropInputV2 input_sizes:Tshape filter:T out_backprop:T > output:T | T:t{fdgh} strides:[i]>=5
    padding:s{SAME,VALID} data_format:s=12054e44485743{NDHWC,NCDHW} dilations:[i]=0a071a050101010101
    Tshape:t=3003{il}
Cos x:T > y:T | T:t{fdCgZh}
Cosh x:T > y:T | T:t{fdCgZh}
CropAndResize image:T boxes:float box_ind:int32 crop_size:int32 > crops:float | T:t{fdiBwclWh}
    method:s=120862696c696e656172{bilinear,nearest} extrapolation_value:f=2500000000
CropAndResizeGradBoxes grads:float image:T boxes:float box_ind:int32 > output:float | T:t{fdiBwclWh}
    method:s=120862696c696e656172{bilinear}
CropAndResizeGradImage grads:float boxes:float box_ind:int32 image_size:int32 > output:T | T:t{fdh}
    method:s=120862696c696e656172{bilinear,nearest}
Cumprod x:T axis:Tidx > out:T | exclusive:b=2800 reverse:b=2800 T:t{fdiBwcClqQegrRWZhIL} Tidx:t=3003{il}
Cumsum x:T axis:Tidx > out:T | exclusive:b=2800 reverse:b=2800 T:t{fdiBwcClqQegrRWZhIL} Tidx:t=3003{il}
CumulativeLogsumexp x:T axis:Tidx > out:T | exclusive:b=2800 reverse:b=2800 T:t{fdgh} Tidx:t=3003{il}
DataFormatDimMap x:T > y:T | T:t=3003{il} src_format:s=12044e485743 dst_format:s=12044e434857
DataFormatVecPermute x:T > y:T | T:t=3003{il} src_format:s=12044e485743 dst_format:s=12044e434857
DebugGradientIdentity input:T > output:T | T:t
DebugGradientRefIdentity input:&T > output:&T | T:t
DecodeAndCropJpeg contents:string crop_window:int32 > image:uint8 | channels:i=1800 ratio:i=1801
    fancy_upscaling:b=2801 try_recover_truncated:b=2800 acceptable_fraction:f=250000803f dct_method:s=1200
DecodeBase64 input:string > output:string
DecodeBmp contents:string > image:uint8 | channels:i=1800
DecodeGif contents:string > image:uint8
DecodeImage contents:string > image:dtype | channels:i=1800 dtype:t=3004{fBW} expand_animations:b=2801
DecodeJpeg contents:string > image:uint8 | channels:i=1800 ratio:i=1801 fancy_upscaling:b=2801
    try_recover_truncated:b=2800 acceptable_fraction:f=250000803f dct_method:s=1200
DecodePaddedRaw input_bytes:string fixed_length:int32 > output:out_type | out_type:t{fdiBwclgWh}
    little_endian:b=2801
DecodePng contents:string > image:dtype | channels:i=1800 dtype:t=3004{BW}
DecodeRaw bytes:string > output:out_type | out_type:t{fdiBwcClbgWZh} little_endian:b=2801
DecodeWav contents:string > audio:float sample_rate:int32 | desired_channels:i=18ffffffffffffffffff01
    desired_samples:i=18ffffffffffffffffff01
DeepCopy! x:T > y:T | T:t
DeleteSessionTensor! handle:string >
DenseBincount input:Tidx size:Tidx weights:T > output:T | Tidx:t{il} T:t{fdil} binary_output:b=2800
DenseToDenseSetOperation set1:T set2:T > result_indices:int64 result_values:T result_shape:int64 |
    set_operation:s validate_indices:b=2801 T:t{iBwcslW}
DenseToSparseSetOperation set1:T set2_indices:int64 set2_values:T set2_shape:int64 > result_indices:int64
    result_values:T result_shape:int64 | set_operation:s validate_indices:b=2801 T:t{iBwcslW}
DepthToSpace input:T > output:T | T:t block_size:i>=2 data_format:s=12044e485743{NHWC,NCHW,NCHW_VECT_C}
DepthwiseConv2dNative input:T filter:T > output:T | T:t{fdgh} strides:[i] padding:s{SAME,VALID,EXPLICIT}
    explicit_paddings:[i]=0a00 data_format:s=12044e485743{NHWC,NCHW} dilations:[i]=0a061a0401010101
DepthwiseConv2dNativeBackpropFilter input:T filter_sizes:int32 out_backprop:T > output:T | T:t{fdgh} strides:[i]
    padding:s{SAME,VALID,EXPLICIT} explicit_paddings:[i]=0a00 data_format:s=12044e485743{NHWC,NCHW}
    dilations:[i]=0a061a0401010101
DepthwiseConv2dNativeBackpropInput input_sizes:int32 filter:T out_backprop:T > output:T | T:t{fdgh} strides:[i]
    padding:s{SAME,VALID,EXPLICIT} explicit_paddings:[i]=0a00 data_format:s=12044e485743{NHWC,NCHW}
    dilations:[i]=0a061a0401010101
Dequantize input:T min_range:float max_range:float > output:dtype | T:t{qQerR}
    mode:s=120c4d494e5f434f4d42494e4544{MIN_COMBINED,MIN_FIRST,SCALED} narrow_range:b=2800
    axis:i=18ffffffffffffffffff01 dtype:t=3001{fg}
DestroyResourceOp! resource:resource > | ignore_lookup_error:b=2801
DestroyTemporaryVariable ref:&T > value:T | T:t var_name:s
Diag diagonal:T > output:T | T:t{fdiClgZh}
DiagPart input:T > diagonal:T | T:t{fdiClgZh}
Dilation2D input:T filter:T > output:T | T:t{fdiBwclgWhIL} strides:[i]>=4 rates:[i]>=4 padding:s{SAME,VALID}
Dilation2DBackpropFilter input:T filter:T out_backprop:T > filter_backprop:T | T:t{fdiBwclgWhIL} strides:[i]>=4
    rates:[i]>=4 padding:s{SAME,VALID}
Dilation2DBackpropInput input:T filter:T out_backprop:T > in_backprop:T | T:t{fdiBwclgWhIL} strides:[i]>=4
    rates:[i]>=4 padding:s{SAME,VALID}
Div x:T y:T > z:T | T:t{fdiBwcClgWZhIL}
DivNoNan x:T y:T > z:T | T:t{fdCgZh}
DynamicPartition data:T partitions:int32 > outputs:num_partitions*T | num_partitions:i>=1 T:t
DynamicStitch indices:N*int32 data:N*T > merged:T | N:i>=1 T:t
Einsum inputs:N*T > output:T | equation:s N:i>=1 T:t
Elu features:T > activations:T | T:t{fdgh}
EluGrad gradients:T outputs:T > backprops:T | T:t{fdgh}
Empty! shape:int32 > output:dtype | dtype:t init:b=2800
EmptyTensorList element_shape:shape_type max_num_elements:int32 > handle:variant | element_dtype:t
    shape_type:t{il}
EmptyTensorMap > handle:variant
EncodeBase64 input:string > output:string | pad:b=2800
EncodeJpeg image:uint8 > contents:string | format:s=1200{,grayscale,rgb} quality:i=185f progressive:b=2800
    optimize_size:b=2800 chroma_downsampling:b=2801 density_unit:s=1202696e{in,cm} x_density:i=18ac02
    y_density:i=18ac02 xmp_metadata:s=1200
EncodeJpegVariableQuality images:uint8 quality:int32 > contents:string
EncodePng image:T > contents:string | compression:i=18ffffffffffffffffff01 T:t=3004{BW}
EncodeWav audio:float sample_rate:int32 > contents:string
EnsureShape input:T > output:T | shape:h T:t
Enter data:T > output:T | T:t frame_name:s is_constant:b=2800 parallel_iterations:i=180a
Equal x:T y:T > z:bool | T:t incompatible_shape_error:b=2801
Erf x:T > y:T | T:t{fdgh}
Exit data:T > output:T | T:t
Exp x:T > y:T | T:t{fdCgZh}
ExpandDims input:T dim:Tdim > output:T | T:t Tdim:t=3003{il}
ExtractImagePatches images:T > patches:T | ksizes:[i]>=4 strides:[i]>=4 rates:[i]>=4 T:t{fdiBwcClbgWZhIL}
    padding:s{SAME,VALID}
FFT input:Tcomplex > output:Tcomplex | Tcomplex:t=3008{CZ}
FFT2D input:Tcomplex > output:Tcomplex | Tcomplex:t=3008{CZ}
FFT3D input:Tcomplex > output:Tcomplex | Tcomplex:t=3008{CZ}
FIFOQueue! > handle:&string | component_types:[t]>=1 shapes:[h]=0a00>=0 capacity:i=18ffffffffffffffffff01
    container:s=1200 shared_name:s=1200
FIFOQueueV2! > handle:resource | component_types:[t]>=1 shapes:[h]=0a00>=0 capacity:i=18ffffffffffffffffff01
    container:s=1200 shared_name:s=1200
FakeQuantWithMinMaxArgs inputs:float > outputs:float | min:f=250000c0c0 max:f=250000c040 num_bits:i=1808
    narrow_range:b=2800
FakeQuantWithMinMaxArgsGradient gradients:float inputs:float > backprops:float | min:f=250000c0c0
    max:f=250000c040 num_bits:i=1808 narrow_range:b=2800
FakeQuantWithMinMaxVars inputs:float min:float max:float > outputs:float | num_bits:i=1808 narrow_range:b=2800
FakeQuantWithMinMaxVarsGradient gradients:float inputs:float min:float max:float > backprops_wrt_input:float
    backprop_wrt_min:float backprop_wrt_max:float | num_bits:i=1808 narrow_range:b=2800
FakeQuantWithMinMaxVarsPerChannel inputs:float min:float max:float > outputs:float | num_bits:i=1808
    narrow_range:b=2800
FakeQuantWithMinMaxVarsPerChannelGradient gradients:float inputs:float min:float max:float >
    backprops_wrt_input:float backprop_wrt_min:float backprop_wrt_max:float | num_bits:i=1808
    narrow_range:b=2800
FakeQueue! resource:resource > handle:&string
Fill dims:index_type value:T > output:T | T:t index_type:t=3003{il}
FilterDataset input_dataset:variant other_arguments:[Targuments] > handle:variant | predicate:F
    Targuments:[t]>=0 output_types:[t]>=1 output_shapes:[h]>=1 metadata:s=1200
FinalizeDataset input_dataset:variant > handle:variant | has_captured_ref:b=2800 output_types:[t]>=1
    output_shapes:[h]>=1
Fingerprint data:T method:string > fingerprint:uint8 | T:t
FlatMapDataset input_dataset:variant other_arguments:[Targuments] > handle:variant | f:F Targuments:[t]>=0
    output_types:[t]>=1 output_shapes:[h]>=1 metadata:s=1200
Floor x:T > y:T | T:t{fdgh}
FloorDiv x:T y:T > z:T | T:t{fdiBwcClgWZhIL}
FloorMod x:T y:T > z:T | T:t{fdiBwclgWhIL}
FusedBatchNorm x:T scale:T offset:T mean:T variance:T > y:T batch_mean:T batch_variance:T reserve_space_1:T
    reserve_space_2:T | T:t{f} epsilon:f=2517b7d138 exponential_avg_factor:f=250000803f
    data_format:s=12044e485743{NHWC,NCHW} is_training:b=2801
FusedBatchNormGrad y_backprop:T x:T scale:T reserve_space_1:T reserve_space_2:T > x_backprop:T scale_backprop:T
    offset_backprop:T reserve_space_3:T reserve_space_4:T | T:t{f} epsilon:f=2517b7d138
    data_format:s=12044e485743{NHWC,NCHW} is_training:b=2801
FusedBatchNormGradV2 y_backprop:T x:T scale:float reserve_space_1:U reserve_space_2:U > x_backprop:T
    scale_backprop:U offset_backprop:U reserve_space_3:U reserve_space_4:U | T:t{fgh} U:t{f}
    epsilon:f=2517b7d138 data_format:s=12044e485743{NHWC,NCHW} is_training:b=2801
FusedBatchNormGradV3 y_backprop:T x:T scale:float reserve_space_1:U reserve_space_2:U reserve_space_3:U >
    x_backprop:T scale_backprop:U offset_backprop:U reserve_space_4:U reserve_space_5:U | T:t{fgh} U:t{f}
    epsilon:f=2517b7d138 data_format:s=12044e485743{NHWC,NCHW,NDHWC,NCDHW} is_training:b=2801
FusedBatchNormV2 x:T scale:U offset:U mean:U variance:U > y:T batch_mean:U batch_variance:U reserve_space_1:U
    reserve_space_2:U | T:t{fgh} U:t{f} epsilon:f=2517b7d138 exponential_avg_factor:f=250000803f
    data_format:s=12044e485743{NHWC,NCHW} is_training:b=2801
FusedBatchNormV3 x:T scale:U offset:U mean:U variance:U > y:T batch_mean:U batch_variance:U reserve_space_1:U
    reserve_space_2:U reserve_space_3:U | T:t{fgh} U:t{fg} epsilon:f=2517b7d138
    exponential_avg_factor:f=250000803f data_format:s=12044e485743{NHWC,NCHW,NDHWC,NCDHW} is_training:b=2801
FusedPadConv2D input:T paddings:int32 filter:T > output:T | T:t{fdgh} mode:s{REFLECT,SYMMETRIC} strides:[i]
    padding:s{SAME,VALID}
FusedResizeAndPadConv2D input:T size:int32 paddings:int32 filter:T > output:T | T:t{fdh}
    resize_align_corners:b=2800 mode:s{REFLECT,SYMMETRIC} strides:[i] padding:s{SAME,VALID}
Gather params:Tparams indices:Tindices > output:Tparams | validate_indices:b=2801 Tparams:t Tindices:t{il}
GatherNd params:Tparams indices:Tindices > output:Tparams | Tparams:t Tindices:t{iwl} bad_indices_policy:s=1200
GatherV2 params:Tparams indices:Tindices axis:Taxis > output:Tparams | batch_dims:i=1800 Tparams:t
    Tindices:t{iwl} Taxis:t{il}
GetSessionHandle! value:T > handle:string | T:t
GetSessionHandleV2! value:T > handle:resource | T:t
GetSessionTensor! handle:string > value:dtype | dtype:t
Greater x:T y:T > z:bool | T:t{fdiBwclgWhIL}
GreaterEqual x:T y:T > z:bool | T:t{fdiBwclgWhIL}
HSVToRGB images:T > output:T | T:t=3001{fdgh}
HashTable! > table_handle:&string | container:s=1200 shared_name:s=1200 use_node_name_sharing:b=2800 key_dtype:t
    value_dtype:t
HashTableV2! > table_handle:resource | container:s=1200 shared_name:s=1200 use_node_name_sharing:b=2800
    key_dtype:t value_dtype:t
HistogramSummary tag:string values:T > summary:string | T:t=3001{fdiBwclgWhIL}
IFFT input:Tcomplex > output:Tcomplex | Tcomplex:t=3008{CZ}
IFFT2D input:Tcomplex > output:Tcomplex | Tcomplex:t=3008{CZ}
IFFT3D input:Tcomplex > output:Tcomplex | Tcomplex:t=3008{CZ}
IRFFT input:Tcomplex fft_length:int32 > output:Treal | Treal:t=3001{fd} Tcomplex:t=3008{CZ}
IRFFT2D input:Tcomplex fft_length:int32 > output:Treal | Treal:t=3001{fd} Tcomplex:t=3008{CZ}
IRFFT3D input:Tcomplex fft_length:int32 > output:Treal | Treal:t=3001{fd} Tcomplex:t=3008{CZ}
Identity input:T > output:T | T:t
IdentityN input:[T] > output:[T] | T:[t]>=1
Imag input:T > output:Tout | T:t=3008{CZ} Tout:t=3001{fd}
ImageProjectiveTransformV2 images:dtype transforms:float output_shape:int32 > transformed_images:dtype |
    dtype:t{fdiBlgh} interpolation:s fill_mode:s=1208434f4e5354414e54
ImageProjectiveTransformV3 images:dtype transforms:float output_shape:int32 fill_value:float >
    transformed_images:dtype | dtype:t{fdiBlgh} interpolation:s fill_mode:s=1208434f4e5354414e54
ImmutableConst > tensor:dtype | dtype:t shape:h memory_region_name:s
InTopK predictions:float targets:T > precision:bool | k:i T:t=3003{il}
InTopKV2 predictions:float targets:T k:T > precision:bool | T:t=3003{il}
InitializeTable table_handle:&string keys:Tkey values:Tval > | Tkey:t Tval:t
InitializeTableFromDataset! table_handle:resource dataset:variant >
InitializeTableFromTextFile table_handle:&string filename:string > | key_index:i>=-2 value_index:i>=-2
    vocab_size:i=18ffffffffffffffffff01>=-1 delimiter:s=120109 offset:i=1800
InitializeTableFromTextFileV2! table_handle:resource filename:string > | key_index:i>=-2 value_index:i>=-2
    vocab_size:i=18ffffffffffffffffff01>=-1 delimiter:s=120109 offset:i=1800
InitializeTableV2! table_handle:resource keys:Tkey values:Tval > | Tkey:t Tval:t
InplaceAdd x:T i:int32 v:T > y:T | T:t
InplaceSub x:T i:int32 v:T > y:T | T:t
InplaceUpdate x:T i:int32 v:T > y:T | T:t
Inv x:T > y:T | T:t{fdiwcClgZh}
InvGrad y:T dy:T > z:T | T:t{fdCgZh}
Invert x:T > y:T | T:t{iBwclWIL}
InvertPermutation x:T > y:T | T:t=3003{il}
IsFinite x:T > y:bool | T:t{fdgh}
IsNan x:T > y:bool | T:t{fdgh}
IsVariableInitialized ref:&dtype > is_initialized:bool | dtype:t
LRN input:T > output:T | depth_radius:i=1805 bias:f=250000803f alpha:f=250000803f beta:f=250000003f
    T:t=3001{fgh}
LeakyRelu features:T > activations:T | alpha:f=25cdcc4c3e T:t=3001{fdgh}
LeakyReluGrad gradients:T features:T > backprops:T | alpha:f=25cdcc4c3e T:t=3001{fdgh}
LeftShift x:T y:T > z:T | T:t{iBwclWIL}
Less x:T y:T > z:bool | T:t{fdiBwclgWhIL}
LessEqual x:T y:T > z:bool | T:t{fdiBwclgWhIL}
LinSpace start:T stop:T num:Tidx > output:T | T:t{fdgh} Tidx:t=3003{il}
ListDiff x:T y:T > out:T idx:out_idx | T:t out_idx:t=3003{il}
Log x:T > y:T | T:t{fdCgZh}
LogMatrixDeterminant input:T > sign:T log_abs_determinant:T | T:t{fdCZh}
LogSoftmax logits:T > logsoftmax:T | T:t{fdgh}
LogicalAnd x:bool y:bool > z:bool
LogicalNot x:bool > y:bool
LogicalOr x:bool y:bool > z:bool
LookupTableExport table_handle:&string > keys:Tkeys values:Tvalues | Tkeys:t Tvalues:t
LookupTableExportV2! table_handle:resource > keys:Tkeys values:Tvalues | Tkeys:t Tvalues:t
LookupTableFind table_handle:&string keys:Tin default_value:Tout > values:Tout | Tin:t Tout:t
LookupTableFindV2! table_handle:resource keys:Tin default_value:Tout > values:Tout | Tin:t Tout:t
LookupTableImport table_handle:&string keys:Tin values:Tout > | Tin:t Tout:t
LookupTableImportV2! table_handle:resource keys:Tin values:Tout > | Tin:t Tout:t
LookupTableInsert table_handle:&string keys:Tin values:Tout > | Tin:t Tout:t
LookupTableInsertV2! table_handle:resource keys:Tin values:Tout > | Tin:t Tout:t
LookupTableRemoveV2! table_handle:resource keys:Tin > | Tin:t
LookupTableSize table_handle:&string > size:int64
LookupTableSizeV2! table_handle:resource > size:int64
LoopCond input:bool > output:bool
MapDataset input_dataset:variant other_arguments:[Targuments] > handle:variant | f:F Targuments:[t]>=0
    output_types:[t]>=1 output_shapes:[h]>=1 use_inter_op_parallelism:b=2801 preserve_cardinality:b=2800
    force_synchronous:b=2800 metadata:s=1200
MatMul a:T b:T > product:T | transpose_a:b=2800 transpose_b:b=2800 T:t{fdiBClgWZhIL} grad_a:b=2800 grad_b:b=2800
MatrixBandPart input:T num_lower:Tindex num_upper:Tindex > band:T | T:t Tindex:t=3009{il}
MatrixDeterminant input:T > output:T | T:t{fdCZh}
MatrixDiag diagonal:T > output:T | T:t
MatrixDiagPart input:T > diagonal:T | T:t
MatrixDiagPartV2 input:T k:int32 padding_value:T > diagonal:T | T:t
MatrixDiagPartV3 input:T k:int32 padding_value:T > diagonal:T | T:t
    align:s=120a52494748545f4c454654{LEFT_RIGHT,RIGHT_LEFT,LEFT_LEFT,RIGHT_RIGHT}
MatrixDiagV2 diagonal:T k:int32 num_rows:int32 num_cols:int32 padding_value:T > output:T | T:t
MatrixDiagV3 diagonal:T k:int32 num_rows:int32 num_cols:int32 padding_value:T > output:T | T:t
    align:s=120a52494748545f4c454654{LEFT_RIGHT,RIGHT_LEFT,LEFT_LEFT,RIGHT_RIGHT}
MatrixInverse input:T > output:T | adjoint:b=2800 T:t{fdCZh}
MatrixSetDiag input:T diagonal:T > output:T | T:t
MatrixSetDiagV2 input:T diagonal:T k:int32 > output:T | T:t
MatrixSetDiagV3 input:T diagonal:T k:int32 > output:T | T:t
    align:s=120a52494748545f4c454654{LEFT_RIGHT,RIGHT_LEFT,LEFT_LEFT,RIGHT_RIGHT}
MatrixTriangularSolve matrix:T rhs:T > output:T | lower:b=2801 adjoint:b=2800 T:t{fdCgZh}
Max input:T reduction_indices:Tidx > output:T | keep_dims:b=2800 T:t{fdiBwclqQegrRWhIL} Tidx:t=3003{il}
MaxPool input:T > output:T | T:t=3001{fdiBwclqgWh} ksize:[i]>=4 strides:[i]>=4 padding:s{SAME,VALID,EXPLICIT}
    explicit_paddings:[i]=0a00 data_format:s=12044e485743{NHWC,NCHW,NCHW_VECT_C}
MaxPool3D input:T > output:T | ksize:[i]>=5 strides:[i]>=5 padding:s{SAME,VALID}
    data_format:s=12054e44485743{NDHWC,NCDHW} T:t{fgh}
MaxPool3DGrad orig_input:TInput orig_output:TInput grad:T > output:T | ksize:[i]>=5 strides:[i]>=5
    padding:s{SAME,VALID} data_format:s=12054e44485743{NDHWC,NCDHW} T:t=3001{fgh} TInput:t=3001{fgh}
MaxPool3DGradGrad orig_input:T orig_output:T grad:T > output:T | ksize:[i]>=5 strides:[i]>=5
    padding:s{SAME,VALID} data_format:s=12054e44485743{NDHWC,NCDHW} T:t{fdiBwclgWhIL}
MaxPoolGrad orig_input:T orig_output:T grad:T > output:T | ksize:[i]>=4 strides:[i]>=4
    padding:s{SAME,VALID,EXPLICIT} explicit_paddings:[i]=0a00 data_format:s=12044e485743{NHWC,NCHW}
    T:t=3001{fdiBwclgWhIL}
MaxPoolGradGrad orig_input:T orig_output:T grad:T > output:T | ksize:[i]>=4 strides:[i]>=4 padding:s{SAME,VALID}
    data_format:s=12044e485743{NHWC,NCHW} T:t{fdiBwclgWhIL}
MaxPoolGradGradV2 orig_input:T orig_output:T grad:T ksize:int32 strides:int32 > output:T | padding:s{SAME,VALID}
    data_format:s=12044e485743{NHWC,NCHW} T:t{fdiBwclgWhIL}
MaxPoolGradV2 orig_input:T orig_output:T grad:T ksize:int32 strides:int32 > output:T | padding:s{SAME,VALID}
    data_format:s=12044e485743{NHWC,NCHW} T:t=3001{fdiBwclgWhIL}
MaxPoolGradWithArgmax input:T grad:T argmax:Targmax > output:T | ksize:[i]>=4 strides:[i]>=4
    padding:s{SAME,VALID} include_batch_in_index:b=2800 Targmax:t{il} T:t{fdiBwclgWhIL}
MaxPoolV2 input:T ksize:int32 strides:int32 > output:T | T:t=3001{fdiBwclqgWh} padding:s{SAME,VALID}
    data_format:s=12044e485743{NHWC,NCHW,NCHW_VECT_C}
MaxPoolWithArgmax input:T > output:T argmax:Targmax | ksize:[i]>=4 strides:[i]>=4 Targmax:t=3009{il}
    padding:s{SAME,VALID} include_batch_in_index:b=2800 T:t{fdiBwclgWhIL}
Maximum x:T y:T > z:T | T:t{fdiBwclgWhIL}
Mean input:T reduction_indices:Tidx > output:T | keep_dims:b=2800 T:t{fdiBwcClqQegrRWZhIL} Tidx:t=3003{il}
Merge inputs:N*T > output:T value_index:int32 | T:t N:i>=1
MergeSummary inputs:N*string > summary:string | N:i>=1
MergeV2Checkpoints! checkpoint_prefixes:string destination_prefix:string > | delete_old_dirs:b=2801
    allow_missing_files:b=2800
Mfcc spectrogram:float sample_rate:int32 > output:float | upper_frequency_limit:f=2500007a45
    lower_frequency_limit:f=250000a041 filterbank_channel_count:i=1828 dct_coefficient_count:i=180d
Min input:T reduction_indices:Tidx > output:T | keep_dims:b=2800 T:t{fdiBwclqQegrRWhIL} Tidx:t=3003{il}
Minimum x:T y:T > z:T | T:t{fdiBwclgWhIL}
MirrorPad input:T paddings:Tpaddings > output:T | T:t Tpaddings:t=3003{il} mode:s{REFLECT,SYMMETRIC}
MirrorPadGrad input:T paddings:Tpaddings > output:T | T:t Tpaddings:t=3003{il} mode:s{REFLECT,SYMMETRIC}
ModelDataset input_dataset:variant > handle:variant | algorithm:i=1800 cpu_budget:i=1800 ram_budget:i=1800
    output_types:[t]>=1 output_shapes:[h]>=1
Mul x:T y:T > z:T | T:t{fdiBwcClgWZhIL}
MulNoNan x:T y:T > z:T | T:t{fdCgZh}
Multinomial! logits:T num_samples:int32 > output:output_dtype | seed:i=1800 seed2:i=1800 T:t{fdiBwclgWhIL}
    output_dtype:t=3009{il}
MutableDenseHashTable! empty_key:key_dtype > table_handle:&string | container:s=1200 shared_name:s=1200
    use_node_name_sharing:b=2800 key_dtype:t value_dtype:t value_shape:h=3a00 initial_num_buckets:i=18808008
    max_load_factor:f=25cdcc4c3f
MutableDenseHashTableV2! empty_key:key_dtype deleted_key:key_dtype > table_handle:resource | container:s=1200
    shared_name:s=1200 use_node_name_sharing:b=2800 key_dtype:t value_dtype:t value_shape:h=3a00
    initial_num_buckets:i=18808008 max_load_factor:f=25cdcc4c3f
MutableHashTable! > table_handle:&string | container:s=1200 shared_name:s=1200 use_node_name_sharing:b=2800
    key_dtype:t value_dtype:t
MutableHashTableOfTensors! > table_handle:&string | container:s=1200 shared_name:s=1200
    use_node_name_sharing:b=2800 key_dtype:t value_dtype:t value_shape:h=3a00
MutableHashTableOfTensorsV2! > table_handle:resource | container:s=1200 shared_name:s=1200
    use_node_name_sharing:b=2800 key_dtype:t value_dtype:t value_shape:h=3a00
MutableHashTableV2! > table_handle:resource | container:s=1200 shared_name:s=1200 use_node_name_sharing:b=2800
    key_dtype:t value_dtype:t
Neg x:T > y:T | T:t{fdiwcClgZh}
NextIteration data:T > output:T | T:t
NoOp >
NonMaxSuppression boxes:float scores:float max_output_size:int32 > selected_indices:int32 |
    iou_threshold:f=250000003f
NonMaxSuppressionV2 boxes:T scores:T max_output_size:int32 iou_threshold:T_threshold > selected_indices:int32 |
    T:t=3001{fh} T_threshold:t=3001{fh}
NonMaxSuppressionV3 boxes:T scores:T max_output_size:int32 iou_threshold:T_threshold score_threshold:T_threshold
    > selected_indices:int32 | T:t=3001{fh} T_threshold:t=3001{fh}
NonMaxSuppressionV4 boxes:T scores:T max_output_size:int32 iou_threshold:T_threshold score_threshold:T_threshold
    > selected_indices:int32 valid_outputs:int32 | T:t=3001{fh} T_threshold:t=3001{fh}
    pad_to_max_output_size:b=2800
NonMaxSuppressionV5 boxes:T scores:T max_output_size:int32 iou_threshold:T score_threshold:T soft_nms_sigma:T >
    selected_indices:int32 selected_scores:T valid_outputs:int32 | T:t=3001{fh} pad_to_max_output_size:b=2800
NonMaxSuppressionWithOverlaps overlaps:float scores:float max_output_size:int32 overlap_threshold:float
    score_threshold:float > selected_indices:int32
NotEqual x:T y:T > z:bool | T:t incompatible_shape_error:b=2801
OneHot indices:TI depth:int32 on_value:T off_value:T > output:T | axis:i=18ffffffffffffffffff01 T:t
    TI:t=3009{iBcl}
OnesLike x:T > y:T | T:t{fdiBwcClbgWZhIL}
OptimizeDatasetV2 input_dataset:variant optimizations_enabled:string optimizations_disabled:string
    optimizations_default:string > handle:variant | output_types:[t]>=1 output_shapes:[h]>=1
    optimization_configs:[s]=0a00
OptionalFromValue components:[Toutput_types] > optional:variant | Toutput_types:[t]>=1
OptionalGetValue optional:variant > components:[output_types] | output_types:[t]>=1 output_shapes:[h]>=1
OptionalHasValue optional:variant > has_value:bool
OptionalNone > optional:variant
Pack values:N*T > output:T | N:i>=1 T:t axis:i=1800
Pad input:T paddings:Tpaddings > output:T | T:t Tpaddings:t=3003{il}
PadV2 input:T paddings:Tpaddings constant_values:T > output:T | T:t Tpaddings:t=3003{il}
PaddingFIFOQueue! > handle:&string | component_types:[t]>=1 shapes:[h]=0a00>=0 capacity:i=18ffffffffffffffffff01
    container:s=1200 shared_name:s=1200
PaddingFIFOQueueV2! > handle:resource | component_types:[t]>=1 shapes:[h]=0a00>=0
    capacity:i=18ffffffffffffffffff01 container:s=1200 shared_name:s=1200
ParallelConcat values:N*T > output:T | N:i>=1 T:t shape:h
ParallelDynamicStitch indices:N*int32 data:N*T > merged:T | N:i>=1 T:t
ParseExample serialized:string names:string sparse_keys:Nsparse*string dense_keys:Ndense*string
    dense_defaults:[Tdense] > sparse_indices:Nsparse*int64 sparse_values:[sparse_types]
    sparse_shapes:Nsparse*int64 dense_values:[Tdense] | Nsparse:i>=0 Ndense:i>=0 sparse_types:[t]>=0{fsl}
    Tdense:[t]>=0{fsl} dense_shapes:[h]>=0
ParseExampleV2 serialized:string names:string sparse_keys:string dense_keys:string ragged_keys:string
    dense_defaults:[Tdense] > sparse_indices:num_sparse*int64 sparse_values:[sparse_types]
    sparse_shapes:num_sparse*int64 dense_values:[Tdense] ragged_values:[ragged_value_types]
    ragged_row_splits:[ragged_split_types] | Tdense:[t]>=0{fsl} num_sparse:i>=0 sparse_types:[t]>=0{fsl}
    ragged_value_types:[t]>=0{fsl} ragged_split_types:[t]>=0{il} dense_shapes:[h]>=0
ParseSequenceExample serialized:string debug_name:string context_dense_defaults:[Tcontext_dense] >
    context_sparse_indices:Ncontext_sparse*int64 context_sparse_values:[context_sparse_types]
    context_sparse_shapes:Ncontext_sparse*int64 context_dense_values:[Tcontext_dense]
    feature_list_sparse_indices:Nfeature_list_sparse*int64
    feature_list_sparse_values:[feature_list_sparse_types] feature_list_sparse_shapes:Nfeature_list_sparse*int64
    feature_list_dense_values:[feature_list_dense_types] feature_list_dense_lengths:Nfeature_list_dense*int64 |
    feature_list_dense_missing_assumed_empty:[s]>=0 context_sparse_keys:[s]>=0 context_dense_keys:[s]>=0
    feature_list_sparse_keys:[s]>=0 feature_list_dense_keys:[s]>=0 Ncontext_sparse:i=1800>=0
    Ncontext_dense:i=1800>=0 Nfeature_list_sparse:i=1800>=0 Nfeature_list_dense:i=1800>=0
    context_sparse_types:[t]=0a00>=0{fsl} Tcontext_dense:[t]=0a00>=0{fsl}
    feature_list_dense_types:[t]=0a00>=0{fsl} context_dense_shapes:[h]=0a00>=0
    feature_list_sparse_types:[t]=0a00>=0{fsl} feature_list_dense_shapes:[h]=0a00>=0
ParseSequenceExampleV2 serialized:string debug_name:string context_sparse_keys:string context_dense_keys:string
    context_ragged_keys:string feature_list_sparse_keys:string feature_list_dense_keys:string
    feature_list_ragged_keys:string feature_list_dense_missing_assumed_empty:bool
    context_dense_defaults:[Tcontext_dense] > context_sparse_indices:Ncontext_sparse*int64
    context_sparse_values:[context_sparse_types] context_sparse_shapes:Ncontext_sparse*int64
    context_dense_values:[Tcontext_dense] context_ragged_values:[context_ragged_value_types]
    context_ragged_row_splits:[context_ragged_split_types]
    feature_list_sparse_indices:Nfeature_list_sparse*int64
    feature_list_sparse_values:[feature_list_sparse_types] feature_list_sparse_shapes:Nfeature_list_sparse*int64
    feature_list_dense_values:[feature_list_dense_types] feature_list_dense_lengths:Nfeature_list_dense*int64
    feature_list_ragged_values:[feature_list_ragged_value_types]
    feature_list_ragged_outer_splits:[feature_list_ragged_split_types]
    feature_list_ragged_inner_splits:[feature_list_ragged_split_types] | Ncontext_sparse:i=1800>=0
    Tcontext_dense:[t]=0a00>=0{fsl} context_sparse_types:[t]=0a00>=0{fsl}
    context_ragged_value_types:[t]=0a00>=0{fsl} context_ragged_split_types:[t]=0a00>=0{il}
    context_dense_shapes:[h]=0a00>=0 Nfeature_list_sparse:i=1800>=0 Nfeature_list_dense:i=1800>=0
    feature_list_dense_types:[t]=0a00>=0{fsl} feature_list_sparse_types:[t]=0a00>=0{fsl}
    feature_list_ragged_value_types:[t]=0a00>=0{fsl} feature_list_ragged_split_types:[t]=0a00>=0{il}
    feature_list_dense_shapes:[h]=0a00>=0
ParseSingleExample serialized:string dense_defaults:[Tdense] > sparse_indices:num_sparse*int64
    sparse_values:[sparse_types] sparse_shapes:num_sparse*int64 dense_values:[Tdense] | num_sparse:i>=0
    sparse_keys:[s]>=0 dense_keys:[s]>=0 sparse_types:[t]>=0{fsl} Tdense:[t]>=0{fsl} dense_shapes:[h]>=0
ParseSingleSequenceExample serialized:string feature_list_dense_missing_assumed_empty:string
    context_sparse_keys:Ncontext_sparse*string context_dense_keys:Ncontext_dense*string
    feature_list_sparse_keys:Nfeature_list_sparse*string feature_list_dense_keys:Nfeature_list_dense*string
    context_dense_defaults:[Tcontext_dense] debug_name:string > context_sparse_indices:Ncontext_sparse*int64
    context_sparse_values:[context_sparse_types] context_sparse_shapes:Ncontext_sparse*int64
    context_dense_values:[Tcontext_dense] feature_list_sparse_indices:Nfeature_list_sparse*int64
    feature_list_sparse_values:[feature_list_sparse_types] feature_list_sparse_shapes:Nfeature_list_sparse*int64
    feature_list_dense_values:[feature_list_dense_types] | Ncontext_sparse:i=1800>=0 Ncontext_dense:i=1800>=0
    Nfeature_list_sparse:i=1800>=0 Nfeature_list_dense:i=1800>=0 context_sparse_types:[t]=0a00>=0{fsl}
    Tcontext_dense:[t]=0a00>=0{fsl} feature_list_dense_types:[t]=0a00>=0{fsl} context_dense_shapes:[h]=0a00>=0
    feature_list_sparse_types:[t]=0a00>=0{fsl} feature_list_dense_shapes:[h]=0a00>=0
Placeholder > output:dtype | dtype:t shape:h=3a021801
PlaceholderV2 > output:dtype | dtype:t shape:h
PlaceholderWithDefault input:dtype > output:dtype | dtype:t shape:h
PopulationCount x:T > y:uint8 | T:t{iBwclWIL}
Pow x:T y:T > z:T | T:t{fdiwcClgZh}
PreventGradient input:T > output:T | T:t message:s=1200
Print! input:T data:[U] > output:T | T:t U:[t]>=0 message:s=1200 first_n:i=18ffffffffffffffffff01
    summarize:i=1803
PrintV2! input:string > | output_stream:s=1206737464657272 end:s=12010a
Prod input:T reduction_indices:Tidx > output:T | keep_dims:b=2800 T:t{fdiBwcClqQegrRWZhIL} Tidx:t=3003{il}
Qr input:T > q:T r:T | full_matrices:b=2800 T:t{fdCZh}
QuantizeDownAndShrinkRange input:Tinput input_min:float input_max:float > output:out_type output_min:float
    output_max:float | Tinput:t{qQerR} out_type:t{qQerR}
QuantizeV2 input:float min_range:float max_range:float > output:T output_min:float output_max:float | T:t{qQerR}
    mode:s=120c4d494e5f434f4d42494e4544{MIN_COMBINED,MIN_FIRST,SCALED}
    round_mode:s=121348414c465f415741595f46524f4d5f5a45524f{HALF_AWAY_FROM_ZERO,HALF_TO_EVEN}
    narrow_range:b=2800 axis:i=18ffffffffffffffffff01 ensure_minimum_range:f=250ad7233c
QuantizedAdd x:T1 y:T2 min_x:float max_x:float min_y:float max_y:float > z:Toutput min_z:float max_z:float |
    T1:t{qQerR} T2:t{qQerR} Toutput:t=300d{qQerR}
QuantizedAvgPool input:T min_input:float max_input:float > output:T min_output:float max_output:float |
    T:t{qQerR} ksize:[i] strides:[i] padding:s{SAME,VALID}
QuantizedBatchNormWithGlobalNormalization t:Tinput t_min:float t_max:float m:Tinput m_min:float m_max:float
    v:Tinput v_min:float v_max:float beta:Tinput beta_min:float beta_max:float gamma:Tinput gamma_min:float
    gamma_max:float > result:out_type result_min:float result_max:float | Tinput:t{qQerR} out_type:t{qQerR}
    variance_epsilon:f scale_after_normalization:b
QuantizedBiasAdd input:T1 bias:T2 min_input:float max_input:float min_bias:float max_bias:float >
    output:out_type min_out:float max_out:float | T1:t{qQerR} T2:t{qQerR} out_type:t{qQerR}
QuantizedConcat concat_dim:int32 values:N*T input_mins:N*float input_maxes:N*float > output:T output_min:float
    output_max:float | N:i>=2 T:t
QuantizedConv2D input:Tinput filter:Tfilter min_input:float max_input:float min_filter:float max_filter:float >
    output:out_type min_output:float max_output:float | Tinput:t{qQerR} Tfilter:t{qQerR} out_type:t=300d{qQerR}
    strides:[i] padding:s{SAME,VALID} dilations:[i]=0a061a0401010101
QuantizedInstanceNorm x:T x_min:float x_max:float > y:T y_min:float y_max:float | T:t{qQerR}
    output_range_given:b=2800 given_y_min:f=2500000000 given_y_max:f=2500000000 variance_epsilon:f=25acc52737
    min_separation:f=256f12833a
QuantizedMatMul a:T1 b:T2 min_a:float max_a:float min_b:float max_b:float > out:Toutput min_out:float
    max_out:float | T1:t{qQerR} T2:t{qQerR} Toutput:t=300d{qQerR} transpose_a:b=2800 transpose_b:b=2800
    Tactivation:t=300c{qQerR}
QuantizedMaxPool input:T min_input:float max_input:float > output:T min_output:float max_output:float |
    T:t{qQerR} ksize:[i] strides:[i] padding:s{SAME,VALID}
QuantizedMul x:T1 y:T2 min_x:float max_x:float min_y:float max_y:float > z:Toutput min_z:float max_z:float |
    T1:t{qQerR} T2:t{qQerR} Toutput:t=300d{qQerR}
QuantizedRelu features:Tinput min_features:float max_features:float > activations:out_type min_activations:float
    max_activations:float | Tinput:t{qQerR} out_type:t=300c{qQerR}
QuantizedRelu6 features:Tinput min_features:float max_features:float > activations:out_type
    min_activations:float max_activations:float | Tinput:t{qQerR} out_type:t=300c{qQerR}
QuantizedReshape tensor:T shape:Tshape input_min:float input_max:float > output:T output_min:float
    output_max:float | T:t Tshape:t=3003{il}
QuantizedResizeBilinear images:T size:int32 min:float max:float > resized_images:T out_min:float out_max:float |
    T:t{fQe} align_corners:b=2800 half_pixel_centers:b=2800
QueueClose handle:&string > | cancel_pending_enqueues:b=2800
QueueCloseV2! handle:resource > | cancel_pending_enqueues:b=2800
QueueDequeue handle:&string > components:[component_types] | component_types:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueDequeueMany handle:&string n:int32 > components:[component_types] | component_types:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueDequeueManyV2! handle:resource n:int32 > components:[component_types] | component_types:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueDequeueUpTo handle:&string n:int32 > components:[component_types] | component_types:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueDequeueUpToV2! handle:resource n:int32 > components:[component_types] | component_types:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueDequeueV2! handle:resource > components:[component_types] | component_types:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueEnqueue handle:&string components:[Tcomponents] > | Tcomponents:[t]>=1 timeout_ms:i=18ffffffffffffffffff01
QueueEnqueueMany handle:&string components:[Tcomponents] > | Tcomponents:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueEnqueueManyV2! handle:resource components:[Tcomponents] > | Tcomponents:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueEnqueueV2! handle:resource components:[Tcomponents] > | Tcomponents:[t]>=1
    timeout_ms:i=18ffffffffffffffffff01
QueueIsClosed handle:&string > is_closed:bool
QueueIsClosedV2! handle:resource > is_closed:bool
QueueSize handle:&string > size:int32
QueueSizeV2! handle:resource > size:int32
RFFT input:Treal fft_length:int32 > output:Tcomplex | Treal:t=3001{fd} Tcomplex:t=3008{CZ}
RFFT2D input:Treal fft_length:int32 > output:Tcomplex | Treal:t=3001{fd} Tcomplex:t=3008{CZ}
RFFT3D input:Treal fft_length:int32 > output:Tcomplex | Treal:t=3001{fd} Tcomplex:t=3008{CZ}
RGBToHSV images:T > output:T | T:t=3001{fdgh}
RaggedBincount splits:int64 values:Tidx size:Tidx weights:T > output:T | Tidx:t{il} T:t{fdil}
    binary_output:b=2800
RaggedGather params_nested_splits:PARAMS_RAGGED_RANK*Tsplits params_dense_values:Tvalues indices:Tindices >
    output_nested_splits:OUTPUT_RAGGED_RANK*Tsplits output_dense_values:Tvalues | Tvalues:t Tindices:t{il}
    Tsplits:t=3009{il} PARAMS_RAGGED_RANK:i>=1 OUTPUT_RAGGED_RANK:i>=0
RaggedRange starts:T limits:T deltas:T > rt_nested_splits:Tsplits rt_dense_values:T | T:t=3003{fdilg}
    Tsplits:t=3009{il}
RaggedTensorFromVariant encoded_ragged:variant > output_nested_splits:output_ragged_rank*Tsplits
    output_dense_values:Tvalues | input_ragged_rank:i>=-1 output_ragged_rank:i>=0 Tvalues:t Tsplits:t=3009{il}
RaggedTensorToSparse rt_nested_splits:RAGGED_RANK*Tsplits rt_dense_values:T > sparse_indices:int64
    sparse_values:T sparse_dense_shape:int64 | RAGGED_RANK:i>=1 T:t Tsplits:t=3009{il}
RaggedTensorToTensor shape:Tshape values:T default_value:T
    row_partition_tensors:num_row_partition_tensors*Tindex > result:T | T:t Tindex:t{il} Tshape:t{il}
    num_row_partition_tensors:i>=1 row_partition_types:[s]
RaggedTensorToVariant rt_nested_splits:RAGGED_RANK*Tsplits rt_dense_values:Tvalues > encoded_ragged:variant |
    RAGGED_RANK:i>=0 Tvalues:t Tsplits:t=3009{il} batched_input:b
RaggedTensorToVariantGradient encoded_ragged_grad:variant row_splits:Tsplits dense_values_shape:int32 >
    dense_values_grad:Tvalues | Tvalues:t Tsplits:t=3009{il}
RandomGamma! shape:S alpha:T > output:T | seed:i=1800 seed2:i=1800 S:t{il} T:t{fdh}
RandomPoisson! shape:S rate:dtype > output:dtype | seed:i=1800 seed2:i=1800 S:t{il} dtype:t{fdh}
RandomPoissonV2! shape:S rate:R > output:dtype | seed:i=1800 seed2:i=1800 S:t{il} R:t=3002{fdilh}
    dtype:t=3009{fdilh}
RandomShuffle! value:T > output:T | seed:i=1800 seed2:i=1800 T:t
RandomStandardNormal! shape:T > output:dtype | seed:i=1800 seed2:i=1800 dtype:t{fdgh} T:t{il}
RandomUniform! shape:T > output:dtype | seed:i=1800 seed2:i=1800 dtype:t{fdgh} T:t{il}
RandomUniformInt! shape:T minval:Tout maxval:Tout > output:Tout | seed:i=1800 seed2:i=1800 Tout:t{il} T:t{il}
Range start:Tidx limit:Tidx delta:Tidx > output:Tidx | Tidx:t=3003{fdiwclgWhIL}
Rank input:T > output:int32 | T:t
ReadFile filename:string > contents:string
ReadVariableOp! resource:resource > value:dtype | dtype:t
Real input:T > output:Tout | T:t=3008{CZ} Tout:t=3001{fd}
RealDiv x:T y:T > z:T | T:t{fdiBwcClgWZhIL}
Reciprocal x:T > y:T | T:t{fdiwcClgZh}
ReciprocalGrad y:T dy:T > z:T | T:t{fdCgZh}
Recv! > tensor:tensor_type | tensor_type:t tensor_name:s send_device:s send_device_incarnation:i recv_device:s
    client_terminated:b=2800
ReduceDataset! input_dataset:variant initial_state:[Tstate] other_arguments:[Targuments] >
    components:[output_types] | f:F Tstate:[t]>=1 Targuments:[t]>=0 output_types:[t]>=1 output_shapes:[h]>=1
    use_inter_op_parallelism:b=2801 metadata:s=1200
ReduceJoin inputs:string reduction_indices:int32 > output:string | keep_dims:b=2800 separator:s=1200
RefEnter data:&T > output:&T | T:t frame_name:s is_constant:b=2800 parallel_iterations:i=180a
RefExit data:&T > output:&T | T:t
RefIdentity input:&T > output:&T | T:t
RefMerge inputs:&N*T > output:&T value_index:int32 | T:t N:i>=1
RefNextIteration data:&T > output:&T | T:t
RefSelect index:int32 inputs:&N*T > output:&T | T:t N:i>=1
RefSwitch data:&T pred:bool > output_false:&T output_true:&T | T:t
RegexFullMatch input:string pattern:string > output:bool
RegexReplace input:string pattern:string rewrite:string > output:string | replace_global:b=2801
Relu features:T > activations:T | T:t{fdiBwclqgWhIL}
Relu6 features:T > activations:T | T:t{fdiBwclgWhIL}
Relu6Grad gradients:T features:T > backprops:T | T:t{fdiBwclgWhIL}
ReluGrad gradients:T features:T > backprops:T | T:t{fdiBwclgWhIL}
RemoteCall! target:string args:[Tin] > output:[Tout] | Tin:[t]>=1 Tout:[t]>=1 f:F
RepeatDataset input_dataset:variant count:int64 > handle:variant | output_types:[t]>=1 output_shapes:[h]>=1
    metadata:s=1200
RequantizationRange input:Tinput input_min:float input_max:float > output_min:float output_max:float |
    Tinput:t{qQerR}
Requantize input:Tinput input_min:float input_max:float requested_output_min:float requested_output_max:float >
    output:out_type output_min:float output_max:float | Tinput:t{qQerR} out_type:t{qQerR}
Reshape tensor:T shape:Tshape > output:T | T:t Tshape:t=3003{il}
ResizeBicubic images:T size:int32 > resized_images:float | T:t{fdiBwclgWh} align_corners:b=2800
    half_pixel_centers:b=2800
ResizeBicubicGrad grads:float original_image:T > output:T | T:t{fd} align_corners:b=2800
    half_pixel_centers:b=2800
ResizeBilinear images:T size:int32 > resized_images:float | T:t{fdiBwclggWh} align_corners:b=2800
    half_pixel_centers:b=2800
ResizeBilinearGrad grads:float original_image:T > output:T | T:t{fdgh} align_corners:b=2800
    half_pixel_centers:b=2800
ResizeNearestNeighbor images:T size:int32 > resized_images:T | T:t{fdiBwclgWh} align_corners:b=2800
    half_pixel_centers:b=2800
ResizeNearestNeighborGrad grads:T size:int32 > output:T | T:t{fdiBcgh} align_corners:b=2800
    half_pixel_centers:b=2800
ResourceApplyAdaMax! var:resource m:resource v:resource beta1_power:T lr:T beta1:T beta2:T epsilon:T grad:T > |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceApplyAdadelta! var:resource accum:resource accum_update:resource lr:T rho:T epsilon:T grad:T > |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceApplyAdagrad! var:resource accum:resource lr:T grad:T > | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
    update_slots:b=2801
ResourceApplyAdagradDA! var:resource gradient_accumulator:resource gradient_squared_accumulator:resource grad:T
    lr:T l1:T l2:T global_step:int64 > | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceApplyAdagradV2! var:resource accum:resource lr:T epsilon:T grad:T > | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800 update_slots:b=2801
ResourceApplyAdam! var:resource m:resource v:resource beta1_power:T beta2_power:T lr:T beta1:T beta2:T epsilon:T
    grad:T > | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800 use_nesterov:b=2800
ResourceApplyAdamWithAmsgrad! var:resource m:resource v:resource vhat:resource beta1_power:T beta2_power:T lr:T
    beta1:T beta2:T epsilon:T grad:T > | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceApplyAddSign! var:resource m:resource lr:T alpha:T sign_decay:T beta:T grad:T > |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceApplyCenteredRMSProp! var:resource mg:resource ms:resource mom:resource lr:T rho:T momentum:T epsilon:T
    grad:T > | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceApplyFtrl! var:resource accum:resource linear:resource grad:T lr:T l1:T l2:T lr_power:T > |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800 multiply_linear_by_lr:b=2800
ResourceApplyFtrlV2! var:resource accum:resource linear:resource grad:T lr:T l1:T l2:T l2_shrinkage:T lr_power:T
    > | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800 multiply_linear_by_lr:b=2800
ResourceApplyGradientDescent! var:resource alpha:T delta:T > | T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceApplyKerasMomentum! var:resource accum:resource lr:T grad:T momentum:T > | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800 use_nesterov:b=2800
ResourceApplyMomentum! var:resource accum:resource lr:T grad:T momentum:T > | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800 use_nesterov:b=2800
ResourceApplyPowerSign! var:resource m:resource lr:T logbase:T sign_decay:T beta:T grad:T > |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceApplyProximalAdagrad! var:resource accum:resource lr:T l1:T l2:T grad:T > | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800
ResourceApplyProximalGradientDescent! var:resource alpha:T l1:T l2:T delta:T > | T:t{fdiBwcClqQegrRWZhIL}
    use_locking:b=2800
ResourceApplyRMSProp! var:resource ms:resource mom:resource lr:T rho:T momentum:T epsilon:T grad:T > |
    T:t{fdiBwcClqQegrRWZhIL} use_locking:b=2800
ResourceGather! resource:resource indices:Tindices > output:dtype | batch_dims:i=1800 validate_indices:b=2801
    dtype:t Tindices:t{il}
ResourceGatherNd! resource:resource indices:Tindices > output:dtype | dtype:t Tindices:t{il}
ResourceScatterAdd! resource:resource indices:Tindices updates:dtype > | dtype:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il}
ResourceScatterDiv! resource:resource indices:Tindices updates:dtype > | dtype:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il}
ResourceScatterMax! resource:resource indices:Tindices updates:dtype > | dtype:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il}
ResourceScatterMin! resource:resource indices:Tindices updates:dtype > | dtype:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il}
ResourceScatterMul! resource:resource indices:Tindices updates:dtype > | dtype:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il}
ResourceScatterNdAdd! ref:resource indices:Tindices updates:T > | T:t Tindices:t{il} use_locking:b=2801
    bad_indices_policy:s=1200
ResourceScatterNdMax! ref:resource indices:Tindices updates:T > | T:t Tindices:t{il} use_locking:b=2801
    bad_indices_policy:s=1200
ResourceScatterNdMin! ref:resource indices:Tindices updates:T > | T:t Tindices:t{il} use_locking:b=2801
    bad_indices_policy:s=1200
ResourceScatterNdSub! ref:resource indices:Tindices updates:T > | T:t Tindices:t{il} use_locking:b=2801
    bad_indices_policy:s=1200
ResourceScatterNdUpdate! ref:resource indices:Tindices updates:T > | T:t Tindices:t{il} use_locking:b=2801
    bad_indices_policy:s=1200
ResourceScatterSub! resource:resource indices:Tindices updates:dtype > | dtype:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il}
ResourceScatterUpdate! resource:resource indices:Tindices updates:dtype > | dtype:t Tindices:t{il}
ResourceSparseApplyAdadelta! var:resource accum:resource accum_update:resource lr:T rho:T epsilon:T grad:T
    indices:Tindices > | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
ResourceSparseApplyAdagrad! var:resource accum:resource lr:T grad:T indices:Tindices > |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800 update_slots:b=2801
ResourceSparseApplyAdagradDA! var:resource gradient_accumulator:resource gradient_squared_accumulator:resource
    grad:T indices:Tindices lr:T l1:T l2:T global_step:int64 > | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il}
    use_locking:b=2800
ResourceSparseApplyAdagradV2! var:resource accum:resource lr:T epsilon:T grad:T indices:Tindices > |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800 update_slots:b=2801
ResourceSparseApplyCenteredRMSProp! var:resource mg:resource ms:resource mom:resource lr:T rho:T momentum:T
    epsilon:T grad:T indices:Tindices > | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
ResourceSparseApplyFtrl! var:resource accum:resource linear:resource grad:T indices:Tindices lr:T l1:T l2:T
    lr_power:T > | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800 multiply_linear_by_lr:b=2800
ResourceSparseApplyFtrlV2! var:resource accum:resource linear:resource grad:T indices:Tindices lr:T l1:T l2:T
    l2_shrinkage:T lr_power:T > | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
    multiply_linear_by_lr:b=2800
ResourceSparseApplyKerasMomentum! var:resource accum:resource lr:T grad:T indices:Tindices momentum:T > |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800 use_nesterov:b=2800
ResourceSparseApplyMomentum! var:resource accum:resource lr:T grad:T indices:Tindices momentum:T > |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800 use_nesterov:b=2800
ResourceSparseApplyProximalAdagrad! var:resource accum:resource lr:T l1:T l2:T grad:T indices:Tindices > |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
ResourceSparseApplyProximalGradientDescent! var:resource alpha:T l1:T l2:T grad:T indices:Tindices > |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
ResourceSparseApplyRMSProp! var:resource ms:resource mom:resource lr:T rho:T momentum:T epsilon:T grad:T
    indices:Tindices > | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
ResourceStridedSliceAssign! ref:resource begin:Index end:Index strides:Index value:T > | T:t Index:t{il}
    begin_mask:i=1800 end_mask:i=1800 ellipsis_mask:i=1800 new_axis_mask:i=1800 shrink_axis_mask:i=1800
Restore! file_pattern:string tensor_name:string > tensor:dt | dt:t preferred_shard:i=18ffffffffffffffffff01
RestoreSlice! file_pattern:string tensor_name:string shape_and_slice:string > tensor:dt | dt:t
    preferred_shard:i=18ffffffffffffffffff01
RestoreV2! prefix:string tensor_names:string shape_and_slices:string > tensors:[dtypes] | dtypes:[t]>=1
Reverse tensor:T dims:bool > output:T | T:t{fdiBwcsClbgWZhIL}
ReverseSequence input:T seq_lengths:Tlen > output:T | seq_dim:i batch_dim:i=1800 T:t Tlen:t=3009{il}
ReverseV2 tensor:T axis:Tidx > output:T | Tidx:t=3003{il} T:t{fdiBwcsClbgWZhIL}
RightShift x:T y:T > z:T | T:t{iBwclWIL}
Roll input:T shift:Tshift axis:Taxis > output:T | T:t Tshift:t{il} Taxis:t{il}
Round x:T > y:T | T:t{fdiwcClgZh}
Rsqrt x:T > y:T | T:t{fdCgZh}
RsqrtGrad y:T dy:T > z:T | T:t{fdCgZh}
SampleDistortedBoundingBox! image_size:T bounding_boxes:float > begin:T size:T bboxes:float | T:t{iBwcl}
    seed:i=1800 seed2:i=1800 min_object_covered:f=25cdcccc3d aspect_ratio_range:[f]=0a0a22080000403f713daa3f
    area_range:[f]=0a0a2208cdcc4c3d0000803f max_attempts:i=1864 use_image_if_no_bounding_boxes:b=2800
SampleDistortedBoundingBoxV2! image_size:T bounding_boxes:float min_object_covered:float > begin:T size:T
    bboxes:float | T:t{iBwcl} seed:i=1800 seed2:i=1800 aspect_ratio_range:[f]=0a0a22080000403f713daa3f
    area_range:[f]=0a0a2208cdcc4c3d0000803f max_attempts:i=1864 use_image_if_no_bounding_boxes:b=2800
Save! filename:string tensor_names:string data:[T] > | T:[t]>=1
SaveSlices! filename:string tensor_names:string shapes_and_slices:string data:[T] > | T:[t]>=1
SaveV2! prefix:string tensor_names:string shape_and_slices:string tensors:[dtypes] > | dtypes:[t]>=1
ScalarSummary tags:string values:T > summary:string | T:t{fdiBwclgWhIL}
ScatterNd indices:Tindices updates:T shape:Tindices > output:T | T:t Tindices:t{iwl} bad_indices_policy:s=1200
ScatterNdAdd ref:&T indices:Tindices updates:T > output_ref:&T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il}
    use_locking:b=2800 bad_indices_policy:s=1200
ScatterNdMax ref:&T indices:Tindices updates:T > output_ref:&T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il}
    use_locking:b=2800 bad_indices_policy:s=1200
ScatterNdMin ref:&T indices:Tindices updates:T > output_ref:&T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il}
    use_locking:b=2800 bad_indices_policy:s=1200
ScatterNdNonAliasingAdd input:T indices:Tindices updates:T > output:T | T:t{fdiBwcClbqQegrRWZhIL} Tindices:t{il}
    bad_indices_policy:s=1200
ScatterNdSub ref:&T indices:Tindices updates:T > output_ref:&T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il}
    use_locking:b=2800 bad_indices_policy:s=1200
ScatterNdUpdate ref:&T indices:Tindices updates:T > output_ref:&T | T:t Tindices:t{il} use_locking:b=2801
    bad_indices_policy:s=1200
SegmentMax data:T segment_ids:Tindices > output:T | T:t{fdiBwclgWhIL} Tindices:t{il}
SegmentMean data:T segment_ids:Tindices > output:T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il}
SegmentMin data:T segment_ids:Tindices > output:T | T:t{fdiBwclgWhIL} Tindices:t{il}
SegmentProd data:T segment_ids:Tindices > output:T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il}
SegmentSum data:T segment_ids:Tindices > output:T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il}
Select condition:bool t:T e:T > output:T | T:t
SelectV2 condition:bool t:T e:T > output:T | T:t
Selu features:T > activations:T | T:t{fdgh}
SeluGrad gradients:T outputs:T > backprops:T | T:t{fdgh}
Send! tensor:T > | T:t tensor_name:s send_device:s send_device_incarnation:i recv_device:s
    client_terminated:b=2800
SerializeTensor tensor:T > serialized:string | T:t
Shape input:T > output:out_type | T:t out_type:t=3003{il}
ShapeN input:N*T > output:N*out_type | N:i>=1 T:t out_type:t=3003{il}
ShardedFilename basename:string shard:int32 num_shards:int32 > filename:string
ShardedFilespec basename:string num_shards:int32 > filename:string
Sigmoid x:T > y:T | T:t{fdCgZh}
SigmoidGrad y:T dy:T > z:T | T:t{fdCgZh}
Sign x:T > y:T | T:t{fdiwcClgZh}
Sin x:T > y:T | T:t{fdCgZh}
Sinh x:T > y:T | T:t{fdCgZh}
Size input:T > output:out_type | T:t out_type:t=3003{il}
Slice input:T begin:Index size:Index > output:T | T:t Index:t{il}
Softmax logits:T > softmax:T | T:t{fdgh}
SoftmaxCrossEntropyWithLogits features:T labels:T > loss:T backprop:T | T:t{fdgh}
Softplus features:T > activations:T | T:t{fdgh}
SoftplusGrad gradients:T features:T > backprops:T | T:t{fdgh}
Softsign features:T > activations:T | T:t{fdgh}
SoftsignGrad gradients:T features:T > backprops:T | T:t{fdgh}
SpaceToBatch input:T paddings:Tpaddings > output:T | T:t Tpaddings:t=3003{il} block_size:i>=2
SpaceToBatchND input:T block_shape:Tblock_shape paddings:Tpaddings > output:T | T:t Tblock_shape:t=3003{il}
    Tpaddings:t=3003{il}
SpaceToDepth input:T > output:T | T:t block_size:i>=2 data_format:s=12044e485743{NHWC,NCHW,NCHW_VECT_C}
SparseAdd a_indices:int64 a_values:T a_shape:int64 b_indices:int64 b_values:T b_shape:int64 thresh:Treal >
    sum_indices:int64 sum_values:T sum_shape:int64 | T:t{fdiBwcClqQegrRWZhIL} Treal:t{fdiBwclgWhIL}
SparseApplyAdadelta var:&T accum:&T accum_update:&T lr:T rho:T epsilon:T grad:T indices:Tindices > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
SparseApplyAdagrad var:&T accum:&T lr:T grad:T indices:Tindices > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il} use_locking:b=2800 update_slots:b=2801
SparseApplyAdagradDA var:&T gradient_accumulator:&T gradient_squared_accumulator:&T grad:T indices:Tindices lr:T
    l1:T l2:T global_step:int64 > out:&T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
SparseApplyAdagradV2 var:&T accum:&T lr:T epsilon:T grad:T indices:Tindices > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il} use_locking:b=2800 update_slots:b=2801
SparseApplyCenteredRMSProp var:&T mg:&T ms:&T mom:&T lr:T rho:T momentum:T epsilon:T grad:T indices:Tindices >
    out:&T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
SparseApplyFtrl var:&T accum:&T linear:&T grad:T indices:Tindices lr:T l1:T l2:T lr_power:T > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800 multiply_linear_by_lr:b=2800
SparseApplyFtrlV2 var:&T accum:&T linear:&T grad:T indices:Tindices lr:T l1:T l2:T l2_shrinkage:T lr_power:T >
    out:&T | T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800 multiply_linear_by_lr:b=2800
SparseApplyMomentum var:&T accum:&T lr:T grad:T indices:Tindices momentum:T > out:&T | T:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il} use_locking:b=2800 use_nesterov:b=2800
SparseApplyProximalAdagrad var:&T accum:&T lr:T l1:T l2:T grad:T indices:Tindices > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
SparseApplyProximalGradientDescent var:&T alpha:T l1:T l2:T grad:T indices:Tindices > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
SparseApplyRMSProp var:&T ms:&T mom:&T lr:T rho:T momentum:T epsilon:T grad:T indices:Tindices > out:&T |
    T:t{fdiBwcClqQegrRWZhIL} Tindices:t{il} use_locking:b=2800
SparseBincount indices:int64 values:Tidx dense_shape:int64 size:Tidx weights:T > output:T | Tidx:t{il} T:t{fdil}
    binary_output:b=2800
SparseCross indices:N*int64 values:[sparse_types] shapes:N*int64 dense_inputs:[dense_types] >
    output_indices:int64 output_values:out_type output_shape:int64 | N:i>=0 hashed_output:b num_buckets:i>=0
    hash_key:i sparse_types:[t]>=0{sl} dense_types:[t]>=0{sl} out_type:t{sl} internal_type:t{sl}
SparseCrossHashed indices:N*int64 values:[sparse_types] shapes:N*int64 dense_inputs:[dense_types]
    num_buckets:int64 strong_hash:bool salt:int64 > output_indices:int64 output_values:int64 output_shape:int64
    | N:i>=0 sparse_types:[t]>=0{sl} dense_types:[t]>=0{sl}
SparseCrossV2 indices:N*int64 values:[sparse_types] shapes:N*int64 dense_inputs:[dense_types] sep:string >
    output_indices:int64 output_values:string output_shape:int64 | N:i>=0 sparse_types:[t]>=0{sl}
    dense_types:[t]>=0{sl}
SparseFillEmptyRows indices:int64 values:T dense_shape:int64 default_value:T > output_indices:int64
    output_values:T empty_row_indicator:bool reverse_index_map:int64 | T:t
SparseFillEmptyRowsGrad reverse_index_map:int64 grad_values:T > d_values:T d_default_value:T | T:t
SparseReduceSum input_indices:int64 input_values:T input_shape:int64 reduction_axes:int32 > output:T |
    keep_dims:b=2800 T:t{fdiBwcClqQegrRWZhIL}
SparseReorder input_indices:int64 input_values:T input_shape:int64 > output_indices:int64 output_values:T | T:t
SparseReshape input_indices:int64 input_shape:int64 new_shape:int64 > output_indices:int64 output_shape:int64
SparseSegmentMean data:T indices:Tidx segment_ids:Tsegmentids > output:T | T:t{fdgh} Tidx:t=3003{il}
    Tsegmentids:t=3003{il} sparse_gradient:b=2800
SparseSegmentMeanGrad grad:T indices:Tidx segment_ids:Tsegmentids output_dim0:int32 > output:T | T:t{fdgh}
    Tidx:t=3003{il} Tsegmentids:t=3003{il}
SparseSegmentMeanWithNumSegments data:T indices:Tidx segment_ids:Tsegmentids num_segments:Tnumsegments >
    output:T | T:t{fdgh} Tidx:t=3003{il} Tnumsegments:t=3003{il} Tsegmentids:t=3003{il} sparse_gradient:b=2800
SparseSegmentSqrtN data:T indices:Tidx segment_ids:Tsegmentids > output:T | T:t{fdgh} Tidx:t=3003{il}
    Tsegmentids:t=3003{il} sparse_gradient:b=2800
SparseSegmentSqrtNGrad grad:T indices:Tidx segment_ids:Tsegmentids output_dim0:int32 > output:T | T:t{fdgh}
    Tidx:t=3003{il} Tsegmentids:t=3003{il}
SparseSegmentSqrtNWithNumSegments data:T indices:Tidx segment_ids:Tsegmentids num_segments:Tnumsegments >
    output:T | T:t{fdgh} Tidx:t=3003{il} Tnumsegments:t=3003{il} Tsegmentids:t=3003{il} sparse_gradient:b=2800
SparseSegmentSum data:T indices:Tidx segment_ids:Tsegmentids > output:T | T:t{fdiBwclgWhIL} Tidx:t=3003{il}
    Tsegmentids:t=3003{il} sparse_gradient:b=2800
SparseSegmentSumGrad grad:T indices:Tidx segment_ids:Tsegmentids output_dim0:int32 > output:T | T:t{fdgh}
    Tidx:t=3003{il} Tsegmentids:t=3003{il}
SparseSegmentSumWithNumSegments data:T indices:Tidx segment_ids:Tsegmentids num_segments:Tnumsegments > output:T
    | T:t{fdiBwclgWhIL} Tidx:t=3003{il} Tnumsegments:t=3003{il} Tsegmentids:t=3003{il} sparse_gradient:b=2800
SparseSlice indices:int64 values:T shape:int64 start:int64 size:int64 > output_indices:int64 output_values:T
    output_shape:int64 | T:t
SparseSoftmaxCrossEntropyWithLogits features:T labels:Tlabels > loss:T backprop:T | T:t{fdgh} Tlabels:t=3009{il}
SparseTensorDenseMatMul a_indices:Tindices a_values:T a_shape:int64 b:T > product:T | T:t Tindices:t=3009{il}
    adjoint_a:b=2800 adjoint_b:b=2800
SparseToDense sparse_indices:Tindices output_shape:Tindices sparse_values:T default_value:T > dense:T |
    validate_indices:b=2801 T:t Tindices:t{il}
SparseToSparseSetOperation set1_indices:int64 set1_values:T set1_shape:int64 set2_indices:int64 set2_values:T
    set2_shape:int64 > result_indices:int64 result_values:T result_shape:int64 | set_operation:s
    validate_indices:b=2801 T:t{iBwcslW}
Split split_dim:int32 value:T > output:num_split*T | num_split:i>=1 T:t
SplitV value:T size_splits:Tlen split_dim:int32 > output:num_split*T | num_split:i>=1 T:t Tlen:t=3009{icl}
Sqrt x:T > y:T | T:t{fdCgZh}
SqrtGrad y:T dy:T > z:T | T:t{fdCgZh}
Square x:T > y:T | T:t{fdiBwcClgWZhIL}
SquaredDifference x:T y:T > z:T | T:t{fdiClgZh}
Squeeze input:T > output:T | T:t squeeze_dims:[i]=0a00>=0
Stack! > handle:&string | elem_type:t stack_name:s=1200
StackClose handle:&string >
StackCloseV2! handle:resource >
StackPop handle:&string > elem:elem_type | elem_type:t
StackPopV2! handle:resource > elem:elem_type | elem_type:t
StackPush handle:&string elem:T > output:T | T:t swap_memory:b=2800
StackPushV2! handle:resource elem:T > output:T | T:t swap_memory:b=2800
StackV2! max_size:int32 > handle:resource | elem_type:t stack_name:s=1200
StatelessMultinomial logits:T num_samples:int32 seed:Tseed > output:output_dtype | T:t{fdiBwclgWhIL}
    Tseed:t=3009{il} output_dtype:t=3009{il}
StatelessRandomGammaV2 shape:T seed:Tseed alpha:dtype > output:dtype | dtype:t{fdh} T:t{il} Tseed:t=3009{il}
StatelessRandomGammaV3 shape:shape_dtype key:uint64 counter:uint64 alg:int32 alpha:dtype > output:dtype |
    dtype:t{fdh} shape_dtype:t=3003{il}
StatelessRandomGetAlg! > alg:int32
StatelessRandomGetKeyCounter seed:Tseed > key:uint64 counter:uint64 | Tseed:t=3009{il}
StatelessRandomGetKeyCounterAlg seed:Tseed > key:uint64 counter:uint64 alg:int32 | Tseed:t=3009{il}
StatelessRandomNormal shape:T seed:Tseed > output:dtype | dtype:t=3001{fdgh} T:t=3003{il} Tseed:t=3009{il}
StatelessRandomNormalV2 shape:Tshape key:uint64 counter:uint64 alg:int32 > output:dtype | dtype:t=3001{fdgh}
    Tshape:t=3003{il}
StatelessRandomPoisson shape:T seed:Tseed lam:Rtype > output:dtype | Rtype:t{fdilh} dtype:t{fdilh} T:t{il}
    Tseed:t=3009{il}
StatelessRandomUniform shape:T seed:Tseed > output:dtype | dtype:t=3001{fdgh} T:t=3003{il} Tseed:t=3009{il}
StatelessRandomUniformFullInt shape:T seed:Tseed > output:dtype | dtype:t=3017{ilIL} T:t=3003{il}
    Tseed:t=3009{ilIL}
StatelessRandomUniformFullIntV2 shape:Tshape key:uint64 counter:uint64 alg:int32 > output:dtype |
    dtype:t=3017{ilIL} Tshape:t=3003{il}
StatelessRandomUniformInt shape:T seed:Tseed minval:dtype maxval:dtype > output:dtype | dtype:t{il} T:t{il}
    Tseed:t=3009{il}
StatelessRandomUniformIntV2 shape:Tshape key:uint64 counter:uint64 alg:int32 minval:dtype maxval:dtype >
    output:dtype | dtype:t{ilIL} Tshape:t=3003{il}
StatelessRandomUniformV2 shape:Tshape key:uint64 counter:uint64 alg:int32 > output:dtype | dtype:t=3001{fdgh}
    Tshape:t=3003{il}
StatelessSampleDistortedBoundingBox image_size:T bounding_boxes:float min_object_covered:float seed:Tseed >
    begin:T size:T bboxes:float | T:t{iBwcl} Tseed:t{il} aspect_ratio_range:[f]=0a0a22080000403f713daa3f
    area_range:[f]=0a0a2208cdcc4c3d0000803f max_attempts:i=1864 use_image_if_no_bounding_boxes:b=2800
StatelessTruncatedNormal shape:T seed:Tseed > output:dtype | dtype:t=3001{fdgh} T:t=3003{il} Tseed:t=3009{il}
StatelessTruncatedNormalV2 shape:Tshape key:uint64 counter:uint64 alg:int32 > output:dtype | dtype:t=3001{fdgh}
    Tshape:t=3003{il}
StaticRegexFullMatch input:string > output:bool | pattern:s
StaticRegexReplace input:string > output:string | pattern:s rewrite:s replace_global:b=2801
StopGradient input:T > output:T | T:t
StridedSlice input:T begin:Index end:Index strides:Index > output:T | T:t Index:t{iwl} begin_mask:i=1800
    end_mask:i=1800 ellipsis_mask:i=1800 new_axis_mask:i=1800 shrink_axis_mask:i=1800
StridedSliceAssign ref:&T begin:Index end:Index strides:Index value:T > output_ref:&T | T:t Index:t{il}
    begin_mask:i=1800 end_mask:i=1800 ellipsis_mask:i=1800 new_axis_mask:i=1800 shrink_axis_mask:i=1800
StridedSliceGrad shape:Index begin:Index end:Index strides:Index dy:T > output:T | T:t Index:t{il}
    begin_mask:i=1800 end_mask:i=1800 ellipsis_mask:i=1800 new_axis_mask:i=1800 shrink_axis_mask:i=1800
StringFormat inputs:[T] > output:string | T:[t]>=0 template:s=12022573 placeholder:s=12022573 summarize:i=1803
StringJoin inputs:N*string > output:string | N:i>=0 separator:s=1200
StringLength input:string > output:int32 | unit:s=120442595445{BYTE,UTF8_CHAR}
StringLower input:string > output:string | encoding:s=1200
StringSplit input:string delimiter:string > indices:int64 values:string shape:int64 | skip_empty:b=2801
StringSplitV2 input:string sep:string > indices:int64 values:string shape:int64 |
    maxsplit:i=18ffffffffffffffffff01
StringStrip input:string > output:string
StringToHashBucket string_tensor:string > output:int64 | num_buckets:i>=1
StringToHashBucketFast input:string > output:int64 | num_buckets:i>=1
StringToHashBucketStrong input:string > output:int64 | num_buckets:i>=1 key:[i]
StringToNumber string_tensor:string > output:out_type | out_type:t=3001{fdilIL}
Sub x:T y:T > z:T | T:t{fdiBwcClgWZhIL}
Substr input:string pos:T len:T > output:string | T:t{il} unit:s=120442595445{BYTE,UTF8_CHAR}
Sum input:T reduction_indices:Tidx > output:T | keep_dims:b=2800 T:t{fdiBwcClqQegrRWZhIL} Tidx:t=3003{il}
Switch data:T pred:bool > output_false:T output_true:T | T:t
SymbolicGradient input:[Tin] > output:[Tout] | Tin:[t]>=1 Tout:[t]>=1 f:F
TakeDataset input_dataset:variant count:int64 > handle:variant | output_types:[t]>=1 output_shapes:[h]>=1
    metadata:s=1200
TakeWhileDataset input_dataset:variant other_arguments:[Targuments] > handle:variant | predicate:F
    Targuments:[t]>=0 output_types:[t]>=1 output_shapes:[h]>=1 metadata:s=1200
Tan x:T > y:T | T:t{fdCgZh}
Tanh x:T > y:T | T:t{fdCgZh}
TanhGrad y:T dy:T > z:T | T:t{fdCgZh}
TemporaryVariable! > ref:&dtype | shape:h dtype:t var_name:s=1200
TensorArray! size:int32 > handle:&string | dtype:t dynamic_size:b=2800 clear_after_read:b=2801
    tensor_array_name:s=1200 element_shape:h=3a021801
TensorArrayClose handle:&string >
TensorArrayCloseV2 handle:string >
TensorArrayCloseV3! handle:resource >
TensorArrayConcat handle:&string flow_in:float > value:dtype lengths:int64 | dtype:t
    element_shape_except0:h=3a021801
TensorArrayConcatV2 handle:string flow_in:float > value:dtype lengths:int64 | dtype:t
    element_shape_except0:h=3a021801
TensorArrayConcatV3! handle:resource flow_in:float > value:dtype lengths:int64 | dtype:t
    element_shape_except0:h=3a021801
TensorArrayGather handle:&string indices:int32 flow_in:float > value:dtype | dtype:t element_shape:h=3a021801
TensorArrayGatherV2 handle:string indices:int32 flow_in:float > value:dtype | dtype:t element_shape:h=3a021801
TensorArrayGatherV3! handle:resource indices:int32 flow_in:float > value:dtype | dtype:t
    element_shape:h=3a021801
TensorArrayGrad! handle:string flow_in:float > grad_handle:&string | source:s
TensorArrayGradV2! handle:string flow_in:float > grad_handle:string | source:s
TensorArrayGradV3! handle:resource flow_in:float > grad_handle:resource flow_out:float | source:s
TensorArrayGradWithShape! handle:resource flow_in:float shape_to_prepend:int32 > grad_handle:resource
    flow_out:float | source:s
TensorArrayPack handle:&string flow_in:float > value:dtype | dtype:t element_shape:h=3a021801
TensorArrayRead handle:&string index:int32 flow_in:float > value:dtype | dtype:t
TensorArrayReadV2 handle:string index:int32 flow_in:float > value:dtype | dtype:t
TensorArrayReadV3! handle:resource index:int32 flow_in:float > value:dtype | dtype:t
TensorArrayScatter handle:&string indices:int32 value:T flow_in:float > flow_out:float | T:t
TensorArrayScatterV2 handle:string indices:int32 value:T flow_in:float > flow_out:float | T:t
TensorArrayScatterV3! handle:resource indices:int32 value:T flow_in:float > flow_out:float | T:t
TensorArraySize handle:&string flow_in:float > size:int32
TensorArraySizeV2 handle:string flow_in:float > size:int32
TensorArraySizeV3! handle:resource flow_in:float > size:int32
TensorArraySplit handle:&string value:T lengths:int64 flow_in:float > flow_out:float | T:t
TensorArraySplitV2 handle:string value:T lengths:int64 flow_in:float > flow_out:float | T:t
TensorArraySplitV3! handle:resource value:T lengths:int64 flow_in:float > flow_out:float | T:t
TensorArrayUnpack handle:&string value:T flow_in:float > flow_out:float | T:t
TensorArrayV2! size:int32 > handle:string | dtype:t element_shape:h=3a021801 dynamic_size:b=2800
    clear_after_read:b=2801 tensor_array_name:s=1200
TensorArrayV3! size:int32 > handle:resource flow:float | dtype:t element_shape:h=3a021801 dynamic_size:b=2800
    clear_after_read:b=2801 identical_element_shapes:b=2800 tensor_array_name:s=1200
TensorArrayWrite handle:&string index:int32 value:T flow_in:float > flow_out:float | T:t
TensorArrayWriteV2 handle:string index:int32 value:T flow_in:float > flow_out:float | T:t
TensorArrayWriteV3! handle:resource index:int32 value:T flow_in:float > flow_out:float | T:t
TensorListConcat input_handle:variant > tensor:element_dtype lengths:int64 | element_dtype:t
    element_shape:h=3a021801
TensorListConcatLists input_a:variant input_b:variant > output:variant | element_dtype:t
TensorListConcatV2 input_handle:variant element_shape:shape_type leading_dims:int64 > tensor:element_dtype
    lengths:int64 | element_dtype:t shape_type:t{il}
TensorListElementShape input_handle:variant > element_shape:shape_type | shape_type:t{il}
TensorListFromTensor tensor:element_dtype element_shape:shape_type > output_handle:variant | element_dtype:t
    shape_type:t{il}
TensorListGather input_handle:variant indices:int32 element_shape:int32 > values:element_dtype | element_dtype:t
TensorListGetItem input_handle:variant index:int32 element_shape:Tshape > item:element_dtype | element_dtype:t
    Tshape:t=3003{il}
TensorListLength input_handle:variant > length:int32
TensorListPopBack input_handle:variant element_shape:int32 > output_handle:variant tensor:element_dtype |
    element_dtype:t
TensorListPushBack input_handle:variant tensor:element_dtype > output_handle:variant | element_dtype:t
TensorListPushBackBatch input_handles:variant tensor:element_dtype > output_handles:variant | element_dtype:t
TensorListReserve element_shape:shape_type num_elements:int32 > handle:variant | element_dtype:t
    shape_type:t{il}
TensorListResize input_handle:variant size:int32 > output_handle:variant
TensorListScatter tensor:element_dtype indices:int32 element_shape:shape_type > output_handle:variant |
    element_dtype:t shape_type:t{il}
TensorListScatterIntoExistingList input_handle:variant tensor:element_dtype indices:int32 >
    output_handle:variant | element_dtype:t
TensorListScatterV2 tensor:element_dtype indices:int32 element_shape:shape_type num_elements:int32 >
    output_handle:variant | element_dtype:t shape_type:t{il}
TensorListSetItem input_handle:variant index:int32 item:element_dtype > output_handle:variant | element_dtype:t
    resize_if_index_out_of_bounds:b=2800
TensorListSplit tensor:element_dtype element_shape:shape_type lengths:int64 > output_handle:variant |
    element_dtype:t shape_type:t{il}
TensorListStack input_handle:variant element_shape:int32 > tensor:element_dtype | element_dtype:t
    num_elements:i=18ffffffffffffffffff01
TensorMapErase input_handle:variant key:key_dtype > output_handle:variant | key_dtype:t value_dtype:t
TensorMapHasKey input_handle:variant key:key_dtype > has_key:bool | key_dtype:t
TensorMapInsert input_handle:variant key:key_dtype value:value_dtype > output_handle:variant | key_dtype:t
    value_dtype:t
TensorMapLookup input_handle:variant key:key_dtype > value:value_dtype | key_dtype:t value_dtype:t
TensorMapSize input_handle:variant > size:int32
TensorMapStackKeys input_handle:variant > keys:key_dtype | key_dtype:t
TensorScatterAdd tensor:T indices:Tindices updates:T > output:T | T:t Tindices:t{il} bad_indices_policy:s=1200
TensorScatterMax tensor:T indices:Tindices updates:T > output:T | T:t Tindices:t{il} bad_indices_policy:s=1200
TensorScatterMin tensor:T indices:Tindices updates:T > output:T | T:t Tindices:t{il} bad_indices_policy:s=1200
TensorScatterSub tensor:T indices:Tindices updates:T > output:T | T:t Tindices:t{il} bad_indices_policy:s=1200
TensorScatterUpdate tensor:T indices:Tindices updates:T > output:T | T:t Tindices:t{iwlW}
    bad_indices_policy:s=1200
TensorSliceDataset! components:[Toutput_types] > handle:variant | Toutput_types:[t]>=1 output_shapes:[h]>=1
    is_files:b=2800 metadata:s=1200 replicate_on_split:b=2800
TensorStridedSliceUpdate input:T begin:Index end:Index strides:Index value:T > output:T | T:t Index:t{il}
    begin_mask:i=1800 end_mask:i=1800 ellipsis_mask:i=1800 new_axis_mask:i=1800 shrink_axis_mask:i=1800
Tile input:T multiples:Tmultiples > output:T | T:t Tmultiples:t=3003{il}
TileGrad input:T multiples:int32 > output:T | T:t
Timestamp! > ts:double
TopK input:T > values:T indices:int32 | k:i>=0 sorted:b=2801 T:t{fdiBwclgWhIL}
TopKV2 input:T k:Tk > values:T indices:index_type | sorted:b=2801 T:t{fdiBwclgWhIL} Tk:t=3003{iwl}
    index_type:t=3003{iwl}
Transpose x:T perm:Tperm > y:T | T:t Tperm:t=3003{il}
TruncateDiv x:T y:T > z:T | T:t{fdiBwcClgWZhIL}
TruncatedNormal! shape:T > output:dtype | seed:i=1800 seed2:i=1800 dtype:t{fdgh} T:t{il}
UnicodeDecode input:string > row_splits:Tsplits char_values:int32 | input_encoding:s
    errors:s=12077265706c616365{strict,replace,ignore} replacement_char:i=18fdff03
    replace_control_characters:b=2800 Tsplits:t=3009{il}
UnicodeDecodeWithOffsets input:string > row_splits:Tsplits char_values:int32 char_to_byte_starts:int64 |
    input_encoding:s errors:s=12077265706c616365{strict,replace,ignore} replacement_char:i=18fdff03
    replace_control_characters:b=2800 Tsplits:t=3009{il}
UnicodeEncode input_values:int32 input_splits:Tsplits > output:string |
    errors:s=12077265706c616365{ignore,replace,strict} output_encoding:s{UTF-8,UTF-16-BE,UTF-32-BE}
    replacement_char:i=18fdff03 Tsplits:t=3009{il}
UnicodeTranscode input:string > output:string | input_encoding:s output_encoding:s{UTF-8,UTF-16-BE,UTF-32-BE}
    errors:s=12077265706c616365{strict,replace,ignore} replacement_char:i=18fdff03
    replace_control_characters:b=2800
Unique x:T > y:T idx:out_idx | T:t out_idx:t=3003{il}
UniqueV2 x:T axis:Taxis > y:T idx:out_idx | T:t Taxis:t=3009{il} out_idx:t=3003{il}
UniqueWithCounts x:T > y:T idx:out_idx count:out_idx | T:t out_idx:t=3003{il}
UniqueWithCountsV2 x:T axis:Taxis > y:T idx:out_idx count:out_idx | T:t Taxis:t=3009{il} out_idx:t=3003{il}
Unpack value:T > output:num*T | num:i>=0 T:t axis:i=1800
UnsortedSegmentJoin inputs:string segment_ids:Tindices num_segments:Tnumsegments > output:string |
    separator:s=1200 Tindices:t{il} Tnumsegments:t=3003{il}
UnsortedSegmentMax data:T segment_ids:Tindices num_segments:Tnumsegments > output:T | T:t{fdiBwclgWhIL}
    Tindices:t{il} Tnumsegments:t=3003{il}
UnsortedSegmentMin data:T segment_ids:Tindices num_segments:Tnumsegments > output:T | T:t{fdiBwclgWhIL}
    Tindices:t{il} Tnumsegments:t=3003{il}
UnsortedSegmentProd data:T segment_ids:Tindices num_segments:Tnumsegments > output:T | T:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{il} Tnumsegments:t=3003{il}
UnsortedSegmentSum data:T segment_ids:Tindices num_segments:Tnumsegments > output:T | T:t{fdiBwcClqQegrRWZhIL}
    Tindices:t{iwl} Tnumsegments:t=3003{il}
UnwrapDatasetVariant input_handle:variant > output_handle:variant
UpperBound sorted_inputs:T values:T > output:out_type | T:t out_type:t=3003{il}
VarHandleOp! > resource:resource | container:s=1200 shared_name:s=1200 debug_name:s=1200 dtype:t shape:h
    allowed_devices:[s]=0a00
VarIsInitializedOp! resource:resource > is_initialized:bool
Variable! > ref:&dtype | shape:h dtype:t container:s=1200 shared_name:s=1200
VariableShape! input:resource > output:out_type | out_type:t=3003{il}
VariableV2! > ref:&dtype | shape:h dtype:t container:s=1200 shared_name:s=1200
Where input:T > index:int64 | T:t=300a{fdiBwcClbqQegrRWZhIL}
WrapDatasetVariant input_handle:variant > output_handle:variant
WriteFile! filename:string contents:string >
Xdivy x:T y:T > z:T | T:t{fdCgZh}
Xlog1py x:T y:T > z:T | T:t{fdCgZh}
Xlogy x:T y:T > z:T | T:t{fdCgZh}
ZerosLike x:T > y:T | T:t
_Arg! > output:T | T:t index:i>=0
_ArrayToList input:N*T > output:[out_types] | T:t N:i>=1 out_types:[t]>=1
_DeviceArg! > output:T | T:t index:i>=0
_DeviceRetval! input:T > | T:t index:i>=0
_FusedConv2D input:T filter:T args:[TArgs] host_args:num_host_args*float > output:T | T:t{fdcqh} TArgs:[t]>=1
    num_args:i>=0 num_host_args:i=1800>=0 strides:[i] padding:s{SAME,VALID,EXPLICIT} explicit_paddings:[i]=0a00
    data_format:s=12044e485743{NHWC,NCHW,NCHW_VECT_C} filter_format:s=12044857494f{HWIO,OIHW,OIHW_VECT_I}
    dilations:[i]=0a061a0401010101 use_cudnn_on_gpu:b=2801 fused_ops:[s]=0a00 epsilon:f=2517b7d138
    leakyrelu_alpha:f=25cdcc4c3e
_HostCast x:SrcT > y:DstT | SrcT:t DstT:t Truncate:b=2800
_HostRecv! > tensor:tensor_type | tensor_type:t tensor_name:s send_device:s send_device_incarnation:i
    recv_device:s client_terminated:b=2800
_HostSend! tensor:T > | T:t tensor_name:s send_device:s send_device_incarnation:i recv_device:s
    client_terminated:b=2800
_ListToArray input:[Tin] > output:N*T | Tin:[t]>=1 T:t N:i>=1
_ParallelConcatStart! > output:dtype | shape:h dtype:t
_ParallelConcatUpdate value:T update:T > output:T | T:t loc:i
_ReadVariablesOp! resources:N*resource > values:[dtypes] | N:i>=0 dtypes:[t]>=1
_Recv! > tensor:tensor_type | tensor_type:t tensor_name:s send_device:s send_device_incarnation:i recv_device:s
    client_terminated:b=2800
_Retval! input:T > | T:t index:i>=0
_Send! tensor:T > | T:t tensor_name:s send_device:s send_device_incarnation:i recv_device:s
    client_terminated:b=2800
_SwitchN data:T output_index:int32 > outputs:num_outs*T | num_outs:i>=1 T:t
_VarHandlesOp! > resources:N*resource | containers:[s] shared_names:[s] N:i>=0 dtypes:[t] shapes:[h]
"""

BEYOND = """
Acos x:T > y:T | T:t{fdCgZh}
Acosh x:T > y:T | T:t{fdCgZh}
Asin x:T > y:T | T:t{fdCgZh}
Asinh x:T > y:T | T:t{fdCgZh}
Atanh x:T > y:T | T:t{fdCgZh}
BesselI0e x:T > y:T | T:t{fdgh}
BesselI1e x:T > y:T | T:t{fdgh}
Betainc a:T b:T x:T > z:T | T:t{fd}
Cross a:T b:T > product:T | T:t{fdiBwclgWhIL}
Digamma x:T > y:T | T:t{fdgh}
DrawBoundingBoxesV2 images:T boxes:float colors:float > output:T | T:t=3001{fh}
Erfc x:T > y:T | T:t{fdgh}
Erfinv x:T > y:T | T:t{fdgh}
EuclideanNorm input:T reduction_indices:Tidx > output:T | keep_dims:b=2800 T:t{fdiBwcClqQegrRWZhIL}
    Tidx:t=3003{il}
Expm1 x:T > y:T | T:t{fdCgZh}
ExtractVolumePatches input:T > patches:T | ksizes:[i]>=5 strides:[i]>=5 T:t{fdiBwclgWhIL} padding:s{SAME,VALID}
HistogramFixedWidth values:T value_range:T nbins:int32 > out:dtype | T:t{fdil} dtype:t=3003{il}
Igamma a:T x:T > z:T | T:t{fdgh}
IsInf x:T > y:bool | T:t{fdgh}
Lgamma x:T > y:T | T:t{fdgh}
Log1p x:T > y:T | T:t{fdCgZh}
LowerBound sorted_inputs:T values:T > output:out_type | T:t out_type:t=3003{il}
MatrixSolve matrix:T rhs:T > output:T | adjoint:b=2800 T:t{fdCZh}
Mod x:T y:T > z:T | T:t{fdilghh}
Ndtri x:T > y:T | T:t{fdgh}
NextAfter x1:T x2:T > output:T | T:t=3001{fd}
NthElement input:T n:int32 > values:T | reverse:b=2800 T:t{fdiBwclgWhIL}
ResizeArea images:T size:int32 > resized_images:float | T:t{fdiBwclgWh} align_corners:b=2800
Rint x:T > y:T | T:t{fdgh}
ScaleAndTranslate images:T size:int32 scale:float translation:float > resized_images:float | T:t{fdiBwclgWh}
    kernel_type:s=12086c616e637a6f7333 antialias:b=2801
SelfAdjointEigV2 input:T > e:T v:T | compute_v:b=2801 T:t{fdCZh}
Snapshot input:T > output:T | T:t
SparseSoftmax sp_indices:int64 sp_values:T sp_shape:int64 > output:T | T:t{fdh}
StringNGrams data:string data_splits:Tsplits > ngrams:string ngrams_splits:Tsplits | separator:s
    ngram_widths:[i]>=0 left_pad:s right_pad:s pad_width:i preserve_short_sequences:b Tsplits:t=3009{il}
StringUpper input:string > output:string | encoding:s=1200
Svd input:T > s:T u:T v:T | compute_uv:b=2801 full_matrices:b=2800 T:t{fdCZh}
TruncateMod x:T y:T > z:T | T:t{fdilgh}
UnicodeScript input:int32 > output:int32
"""
