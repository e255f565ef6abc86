"""The structures in which TFLite Micro's parser keeps the options of builtin operators (builtin_op_data.h).

An operator that is not in `OPTIONS` has no options, or none that the parser keeps. On ARM the ones that consist of
enumerations and booleans are so small that what follows them in the tail is aligned otherwise.
"""

from __future__ import annotations

from gossamer.micro.abi import Array, Struct, boolean, enumeration, float32, int32, pointer

_ACTIVATION = Struct(activation=enumeration)
_ADD = Struct(activation=enumeration, pot_scale_int16=boolean)
_ARG = Struct(output_type=enumeration)
_BLOCK_SIZE = Struct(block_size=int32)
_PADDING_VALUES = Struct(width=int32, height=int32, width_offset=int32, height_offset=int32)
_POOL = Struct(
    padding=enumeration,
    stride_width=int32,
    stride_height=int32,
    filter_width=int32,
    filter_height=int32,
    activation=enumeration,
    computed=_PADDING_VALUES,
)
_REDUCER = Struct(keep_dims=boolean)
_RESIZE = Struct(align_corners=boolean, half_pixel_centers=boolean)
_SPLIT = Struct(num_splits=int32)

OPTIONS = {
    "ADD": _ADD,
    "ARG_MAX": _ARG,
    "ARG_MIN": _ARG,
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": Struct(adj_x=boolean, adj_y=boolean, asymmetric_quantize_inputs=boolean),
    "CALL_ONCE": Struct(init_subgraph_index=int32),
    "CAST": Struct(in_data_type=enumeration, out_data_type=enumeration),
    "CONCATENATION": Struct(axis=int32, activation=enumeration),
    "CONV_2D": Struct(
        padding=enumeration,
        stride_width=int32,
        stride_height=int32,
        activation=enumeration,
        dilation_width_factor=int32,
        dilation_height_factor=int32,
        quantized_bias_type=enumeration,
    ),
    "CUMSUM": Struct(exclusive=boolean, reverse=boolean),
    "DEPTH_TO_SPACE": _BLOCK_SIZE,
    "DEPTHWISE_CONV_2D": Struct(
        padding=enumeration,
        stride_width=int32,
        stride_height=int32,
        depth_multiplier=int32,
        activation=enumeration,
        dilation_width_factor=int32,
        dilation_height_factor=int32,
    ),
    "DIV": _ACTIVATION,
    "FULLY_CONNECTED": Struct(
        activation=enumeration,
        weights_format=enumeration,
        keep_num_dims=boolean,
        asymmetric_quantize_inputs=boolean,
        quantized_bias_type=enumeration,
    ),
    "GATHER": Struct(axis=int32, batch_dims=int32),
    "IF": Struct(then_subgraph_index=int32, else_subgraph_index=int32),
    "L2_NORMALIZATION": _ACTIVATION,
    "L2_POOL_2D": _POOL,
    "LEAKY_RELU": Struct(alpha=float32),
    "MAX_POOL_2D": _POOL,
    "MEAN": _REDUCER,
    "MIRROR_PAD": Struct(mode=enumeration),
    "MUL": _ACTIVATION,
    "PACK": Struct(values_count=int32, axis=int32),
    "REDUCE_ALL": _REDUCER,
    "REDUCE_MAX": _REDUCER,
    "REDUCE_MIN": _REDUCER,
    "RESHAPE": Struct(shape=Array(int32, 8), num_dimensions=int32),
    "RESIZE_BILINEAR": _RESIZE,
    "RESIZE_NEAREST_NEIGHBOR": _RESIZE,
    "SHAPE": Struct(out_type=enumeration),
    "SOFTMAX": Struct(beta=float32),
    "SPACE_TO_DEPTH": _BLOCK_SIZE,
    "SPLIT": _SPLIT,
    "SPLIT_V": _SPLIT,
    "SQUEEZE": Struct(squeeze_dims=Array(int32, 8), num_squeeze_dims=int32),
    "STRIDED_SLICE": Struct(
        begin_mask=int32,
        end_mask=int32,
        ellipsis_mask=int32,
        new_axis_mask=int32,
        shrink_axis_mask=int32,
        offset=boolean,
    ),
    "SUB": _ADD,
    "SUM": _REDUCER,
    "SVDF": Struct(rank=int32, activation=enumeration, asymmetric_quantize_inputs=boolean),
    "TRANSPOSE_CONV": Struct(
        padding=enumeration,
        stride_width=int32,
        stride_height=int32,
        activation=enumeration,
        quantized_bias_type=enumeration,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Struct(
        activation=enumeration,
        cell_clip=float32,
        proj_clip=float32,
        time_major=boolean,
        asymmetric_quantize_inputs=boolean,
        diagonal_recurrent_tensors=boolean,
    ),
    "UNPACK": Struct(num=int32, axis=int32),
    "VAR_HANDLE": Struct(container=pointer, shared_name=pointer),
    "WHILE": Struct(cond_subgraph_index=int32, body_subgraph_index=int32),
}
