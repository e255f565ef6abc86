"""TFLM_DECODE on a device (decode.cc, decode_state*.cc): where it writes, and what it keeps of each output."""

from __future__ import annotations

from gossamer.micro.abi import Array, Struct, boolean, int8, pointer, size
from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.kernel import MicroKernel
from gossamer.ops.custom.tflm_decode import HUFFMAN, LUT, PRUNING, Decoded

_BASE = {"table": pointer, "context": pointer, "micro_profiler": pointer}
_CHANNELS = {
    "compressed_indices": pointer,
    "count_indices": size,
    "num_channels": size,
    "elements_per_channel": size,
    "value_table": pointer,
}

STATES = {
    LUT: Struct(
        **_BASE, **_CHANNELS, value_table_channel_stride=int8, compressed_bit_width=int8, use_alternate_axis=boolean
    ),
    HUFFMAN: Struct(
        **_BASE,
        compressed_codewords=pointer,
        count_codewords=size,
        huffman_tables=pointer,
        use_32bit_table=boolean,
        initial_table_size=int8,
    ),
    PRUNING: Struct(**_BASE, **_CHANNELS, zero_points=pointer, single_zero_point=int8, use_alternate_axis=boolean),
}


def _prepare(ctx: MicroPrepareContext) -> None:
    decoded: list[Decoded] = ctx.node.data
    ctx.persistent(Array(pointer, len(decoded)))
    alternate = ctx.micro.decompression_memory
    alternate.reset()
    for position, (one, output) in enumerate(zip(decoded, ctx.tensors_out, strict=True)):
        ctx.temp_input(2 * position)
        ctx.temp_input(2 * position + 1)
        ctx.temp_output(position)
        ctx.persistent(STATES[one.kind])
        if output.data is None:
            # Outputs with bytes of their own need no place in the head.
            output.data = alternate.allocate(output.bytes)
        if one.channel_zeros:
            ctx.persistent(one.channel_zeros)


KERNELS = (MicroKernel("TFLM_DECODE", prepare=_prepare, custom=True),)
