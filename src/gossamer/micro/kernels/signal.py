"""The memory of TFLite Micro's operators for signals, which custom models name Signal*.

Sources: signal/micro/kernels, and signal/src for what they keep: circular buffers and the state of kissfft. A circular
buffer has its samples twice, so that those in use are always in one piece.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from gossamer.micro.abi import Array, Struct, boolean, enumeration, float32, int16, int32, pointer, size, uint64
from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.kernel import MicroKernel, nothing
from gossamer.ops.custom import signaldelay, signalfilterbank, signalfilterbankspectralsubtraction
from gossamer.ops.custom.signalframer import Frames
from gossamer.ops.custom.signaloverlapadd import Overlap
from gossamer.ops.custom.signalrfft import fft_length
from gossamer.ops.custom.signalstacker import Stack
from gossamer.schema.enums import TensorType

_CIRCULAR_BUFFER = Struct(capacity=size, read=size, write=size, empty=int32, buffer_size=int32, buffer=pointer)

OP_DATA_DELAY = Struct(
    frame_size=int32, delay_length=int32, outer_dims=int32, state_buffers=pointer, circular_buffers=pointer
)
OP_DATA_ENERGY = Struct(end_index=int32, start_index=int32)
OP_DATA_FILTER_BANK = Struct(
    config=Struct(
        num_channels=int32,
        channel_frequency_starts=pointer,
        channel_weight_starts=pointer,
        channel_widths=pointer,
        weights=pointer,
        unweights=pointer,
        output_scale=int32,
        input_correction_bits=int32,
    ),
    work_area=pointer,
)
OP_DATA_FILTER_BANK_LOG = Struct(input_correction_bits=int32, output_scale=int32)
OP_DATA_SPECTRAL_SUBTRACTION = Struct(
    config=Struct(
        num_channels=int32,
        smoothing=int32,
        one_minus_smoothing=int32,
        min_signal_remaining=int32,
        alternate_smoothing=int32,
        alternate_one_minus_smoothing=int32,
        smoothing_bits=int32,
        spectral_subtraction_bits=int32,
        clamping=boolean,
    ),
    noise_estimate=pointer,
    noise_estimate_size=size,
)
OP_DATA_FRAMER = Struct(
    frame_size=int32,
    frame_step=int32,
    outer_dims=int32,
    n_frames=int32,
    prefill=boolean,
    state_buffers=pointer,
    circular_buffers=pointer,
)
OP_DATA_IRFFT = Struct(
    fft_length=int32, input_size=int32, input_length=int32, output_length=int32, fft_type=enumeration, state=pointer
)
OP_DATA_RFFT = Struct(
    fft_length=int32,
    input_size=int32,
    input_length=int32,
    output_length=int32,
    fft_type=enumeration,
    work_area=pointer,
    scratch_buffer_index=int32,
    state=pointer,
)
OP_DATA_OVERLAP_ADD = Struct(
    frame_size=int32, frame_step=int32, outer_dims=int32, n_frames=int32, type=enumeration, state_buffers=pointer
)
OP_DATA_PCAN = Struct(snr_shift=int32)
OP_DATA_STACKER = Struct(
    num_channels=int32,
    stacker_left_context=int32,
    stacker_right_context=int32,
    stacker_step=int32,
    buffer_size=size,
    step_size=size,
    stacker_has_first_frame=boolean,
    state=pointer,
    circular_buffer=pointer,
)
OP_DATA_WINDOW = Struct(shift=int32, input_size=int32)

_REAL = {TensorType.INT16: int16, TensorType.INT32: int32, TensorType.FLOAT32: float32}


def _fft_state(ctx: MicroPrepareContext) -> Struct:
    """What kissfft keeps for a transform of real samples: that of half as many complex values, and room for them."""
    half = fft_length(ctx) // 2
    real = _REAL.get(ctx.input(0).type)
    if real is None:
        ctx.fail("input must be float32, int16 or int32")
    value = Struct(real=real, imaginary=real)
    complex_state = Struct(nfft=int32, inverse=int32, factors=Array(int32, 64), twiddles=Array(value, half))
    return Struct(
        substate=pointer,
        tmpbuf=pointer,
        super_twiddles=pointer,
        complex_state=complex_state,
        values=Array(value, half * 3 // 2),
    )


def _init_rfft(ctx: MicroPrepareContext) -> None:
    ctx.persistent(_packed_size(ctx, _fft_state(ctx)))


def _init_irfft(ctx: MicroPrepareContext) -> None:
    # The result of kissfft for floats is divided by their number, which is kept before its state.
    head = Struct(fft_length=int32, cfg=pointer) if ctx.input(0).type == TensorType.FLOAT32 else Struct()
    ctx.persistent(ctx.micro.size_of(head) + _packed_size(ctx, _fft_state(ctx)))


def _packed_size(ctx: MicroPrepareContext, struct: Struct) -> int:
    """Bytes of structures that follow each other without padding."""
    return sum(ctx.micro.size_of(field) for field in struct.fields.values())


def _init_filter_bank(ctx: MicroPrepareContext) -> None:
    ctx.persistent(Array(uint64, signalfilterbank.num_channels(ctx) + 1))


def _init_spectral_subtraction(ctx: MicroPrepareContext) -> None:
    ctx.persistent(Array(int32, signalfilterbankspectralsubtraction.num_channels(ctx)))


def _init_stacker(ctx: MicroPrepareContext) -> None:
    _circular_buffer(ctx, Stack(ctx).size)


def _circular_buffer(ctx: MicroPrepareContext, capacity: int) -> None:
    ctx.persistent(ctx.micro.size_of(_CIRCULAR_BUFFER) + ctx.micro.size_of(Array(int16, 2 * capacity)))


def _circular_buffers(ctx: MicroPrepareContext, capacity: int) -> None:
    """One for each channel."""
    channels = prod(ctx.input(0).shape[:-1])
    for _ in ("state_buffers", "circular_buffers"):
        ctx.persistent(Array(pointer, channels))
    for _ in range(channels):
        _circular_buffer(ctx, capacity)


def _prepare_delay(ctx: MicroPrepareContext) -> None:
    _circular_buffers(ctx, ctx.input(0).shape[-1] + signaldelay.delay_length(ctx))


def _prepare_framer(ctx: MicroPrepareContext) -> None:
    frames: Frames = ctx.node.data
    _circular_buffers(ctx, -(-frames.size // frames.step) * frames.step)


def _prepare_overlap_add(ctx: MicroPrepareContext) -> None:
    overlap: Overlap = ctx.node.data
    ctx.persistent(Array(pointer, len(overlap.sums)))
    for channel in overlap.sums:
        ctx.persistent(channel.nbytes)


def _prepare_rfft(ctx: MicroPrepareContext) -> None:
    ctx.scratch(ctx.node.data * ctx.micro.size_of(_REAL[ctx.input(0).type]))


def _kernel(
    name: str,
    op_data: Struct | None = None,
    *,
    init: Callable[[MicroPrepareContext], None] = nothing,
    prepare: Callable[[MicroPrepareContext], None] = nothing,
    ranks: Callable[[int], tuple[int, ...]] | None = lambda rank: (rank, rank),
) -> MicroKernel:
    """A kernel whose Prepare looks at all operands. ``ranks``: how many dimensions the outputs must have, by those of
    input 0; elsewhere TFLite Micro only counts elements."""

    def look_and_prepare(ctx: MicroPrepareContext) -> None:
        for output, rank in zip(ctx.outputs, ranks(len(ctx.input(0).shape)) if ranks is not None else (), strict=False):
            got = len(output.shape)
            ctx.require(got == rank, f'output "{output.name}" must have {rank} dimensions, got {got}')
        for position in range(len(ctx.inputs)):
            ctx.temp_input(position)
        for position in range(len(ctx.outputs)):
            ctx.temp_output(position)
        prepare(ctx)

    return MicroKernel(name, op_data=op_data, init=init, prepare=look_and_prepare, custom=True)


KERNELS = (
    _kernel("SignalDelay", OP_DATA_DELAY, prepare=_prepare_delay, ranks=None),
    _kernel("SignalEnergy", OP_DATA_ENERGY),
    _kernel("SignalFftAutoScale", ranks=lambda rank: (rank, 0)),
    _kernel("SignalFilterBank", OP_DATA_FILTER_BANK, init=_init_filter_bank),
    _kernel("SignalFilterBankLog", OP_DATA_FILTER_BANK_LOG),
    _kernel("SignalFilterBankSpectralSubtraction", OP_DATA_SPECTRAL_SUBTRACTION, init=_init_spectral_subtraction),
    _kernel("SignalFilterBankSquareRoot"),
    _kernel("SignalFramer", OP_DATA_FRAMER, prepare=_prepare_framer, ranks=lambda rank: (rank + 1, 0)),
    _kernel("SignalIrfft", OP_DATA_IRFFT, init=_init_irfft),
    _kernel("SignalOverlapAdd", OP_DATA_OVERLAP_ADD, prepare=_prepare_overlap_add, ranks=lambda rank: (rank - 1,)),
    _kernel("SignalPCAN", OP_DATA_PCAN),
    _kernel("SignalRfft", OP_DATA_RFFT, init=_init_rfft, prepare=_prepare_rfft),
    _kernel("SignalStacker", OP_DATA_STACKER, init=_init_stacker, ranks=lambda rank: (rank, 0)),
    _kernel("SignalWindow", OP_DATA_WINDOW),
)
