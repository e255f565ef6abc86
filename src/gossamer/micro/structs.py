"""The structures that TFLite Micro keeps in the arena, field by field as its headers declare them.

Sources: micro_allocator.h, micro_allocation_info.h, single_arena_buffer_allocator.h, greedy_memory_planner.h,
recording_micro_allocator.h, micro_resource_variable.h (tensorflow/lite/micro), common.h (lite/core/c, as built with
TF_LITE_STATIC_MEMORY). What the operators keep stands beside their kernels, in `gossamer.micro.kernels`.
"""

from __future__ import annotations

from gossamer.micro.abi import Array, Struct, WithCompression, boolean, enumeration, float32, int8, int32, pointer, size

TENSOR = Struct(
    quantization=Struct(type=int32, params=pointer),
    params=Struct(scale=float32, zero_point=int32),
    data=pointer,
    dims=pointer,
    bytes=size,
    type=enumeration,
    allocation_type=enumeration,
    is_variable=boolean,
)
"""TfLiteTensor."""

EVAL_TENSOR = Struct(data=pointer, dims=pointer, type=enumeration)
"""TfLiteEvalTensor."""

AFFINE_QUANTIZATION = Struct(scale=pointer, zero_point=pointer, quantized_dimension=int32)
"""TfLiteAffineQuantization."""

NODE = Struct(
    inputs=pointer,
    outputs=pointer,
    intermediates=pointer,
    user_data=pointer,
    builtin_data=pointer,
    custom_initial_data=pointer,
    custom_initial_data_size=int32,
)
"""TfLiteNode."""

NODE_AND_REGISTRATION = Struct(node=NODE, registration=pointer)

SUBGRAPH_ALLOCATIONS = Struct(node_and_registrations=pointer, tensors=pointer, compressed=WithCompression(pointer))

COMPRESSION_TENSOR_DATA = Struct(scheme=int8, lut_data=pointer)

LOOKUP_TABLE_DATA = Struct(value_table=pointer, value_table_channel_stride=int8, widths_and_flags=int8)

SCRATCH_BUFFER_REQUEST = Struct(bytes=size, node_idx=int32, subgraph_idx=int32)

SCRATCH_BUFFER_HANDLE = Struct(data=pointer)

ALLOCATION_INFO = Struct(
    bytes=size,
    output_ptr=pointer,
    first_created=int32,
    last_used=int32,
    offline_offset=int32,
    needs_allocating=boolean,
)

SINGLE_ARENA_BUFFER_ALLOCATOR = Struct(
    non_persistent_table=pointer,
    persistent_table=pointer,
    buffer_head=pointer,
    buffer_tail=pointer,
    head=pointer,
    tail=pointer,
    temp=pointer,
    temp_buffer_ptr_check_sum=pointer,
    temp_buffer_count=int32,
)
"""It has two base classes with virtual functions, and so two pointers to their tables."""

RECORDING_SINGLE_ARENA_BUFFER_ALLOCATOR = Struct(
    base=SINGLE_ARENA_BUFFER_ALLOCATOR,
    requested_head_bytes=size,
    requested_tail_bytes=size,
    used_bytes=size,
    alloc_count=size,
)

PERSISTENT_ARENA_BUFFER_ALLOCATOR = Struct(table=pointer, buffer_head=pointer, buffer_tail=pointer, tail_temp=pointer)

NON_PERSISTENT_ARENA_BUFFER_ALLOCATOR = Struct(
    table=pointer,
    buffer_head=pointer,
    buffer_tail=pointer,
    head_temp=pointer,
    next_temp=pointer,
    temp_buffer_ptr_check_sum=pointer,
    temp_buffer_count=int32,
    resizable_buffer_allocated=boolean,
)

GREEDY_MEMORY_PLANNER = Struct(
    table=pointer,
    max_buffer_count=int32,
    buffer_count=int32,
    requirements=pointer,
    buffer_sizes_sorted=pointer,
    buffer_ids_sorted=pointer,
    buffers_sorted_by_offset=pointer,
    next_free_entry=int32,
    first_entry_index=int32,
    buffer_offsets=pointer,
    need_to_calculate_offsets=boolean,
)

LINEAR_MEMORY_PLANNER = Struct(
    table=pointer, buffer_offsets=Array(size, 1024), current_buffer_count=int32, next_free_offset=size
)

BUILTIN_DATA_ALLOCATOR = Struct(table=pointer, persistent_allocator=pointer)
"""MicroBuiltinDataAllocator."""

MICRO_ALLOCATOR = Struct(
    table=pointer,
    non_persistent_buffer_allocator=pointer,
    persistent_buffer_allocator=pointer,
    builtin_data_allocator=pointer,
    memory_planner=pointer,
    model_is_allocating=boolean,
    scratch_buffer_request_count=size,
    scratch_buffer_head=pointer,
    max_head_buffer_usage=size,
)

_RECORDED = Struct(requested_bytes=size, used_bytes=size, count=size)

RECORDING_MICRO_ALLOCATOR = Struct(
    base=MICRO_ALLOCATOR,
    recording_memory_allocator=pointer,
    recorded=Array(_RECORDED, 7),
    recorded_compression_data=WithCompression(_RECORDED),
)

RESOURCE_VARIABLE = Struct(
    container=pointer, shared_name=pointer, resource_buffer=pointer, bytes=size, default_value=int8
)
"""MicroResourceVariable."""

RESOURCE_VARIABLES = Struct(resource_variables=pointer, max_variable_count=int32, num_resource_variables=int32)
"""MicroResourceVariables."""


def int_array(length: int) -> Struct:
    """TfLiteIntArray of so many elements."""
    return Struct(size=int32, data=Array(int32, length))
