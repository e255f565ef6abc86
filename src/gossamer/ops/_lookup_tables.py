"""TFLite's lookup tables of quantized functions: of 8-bit values an entry for each, of int16 interpolated ones.

Real functions of int8 and int16 (LUTPopulate, LUTLookup), and the sigmoid of int16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.ops._elementwise import prepare_unary, require_scale, require_symmetric
from gossamer.ops._fixed_point import Int, wrap_int32
from gossamer.ops._rescaling import FIRST
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, PrepareContext, TensorInfo
from gossamer.quantization import checked_log2, round_half_away, saturated
from gossamer.schema.enums import TensorType
from gossamer.views import View


def prepare_unary_quantized(ctx: PrepareContext) -> bool:
    """`prepare_unary`, and whether the operand is quantized: int8 always, int16 if it has a scale, with zero points of
    0. Raises for a quantized operand without one scale above 0."""
    prepare_unary(ctx)
    x, output = ctx.input(0), ctx.output()
    if x.type != TensorType.INT8 and not (x.type == TensorType.INT16 and x.quantization):
        return False
    require_scale(ctx, "input", x)
    require_scale(ctx, "output", output)
    if x.type == TensorType.INT16:
        require_symmetric(ctx, x, output)
    return True


def prepare_float_or_quantized(ctx: PrepareContext) -> bool:
    """The same for operators that have no use for plain integers: int16 must be quantized too."""
    quantized = prepare_unary_quantized(ctx)
    if not quantized and ctx.input(0).type == TensorType.INT16:
        require_scale(ctx, "input", ctx.input(0))
    return quantized


def byte_table(source: TensorInfo, target: TensorInfo, function: Callable[[Array], Array]) -> Array:
    """``function`` of every value of an 8-bit tensor, quantized for ``target`` of the same type: 256 entries in the
    order of the bytes, as `look_up` takes them. TFLite's LUTPopulate, in float32."""
    q = np.arange(256, dtype=np.uint8).view(numpy_dtype(source.type)).astype(np.float32)
    x = np.float32(source.quantization.scale) * (q - np.float32(source.quantization.zero_point))
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / np.float32(target.quantization.scale)
        level = round_half_away(function(x) * inverse) + np.float32(target.quantization.zero_point)
    # A NaN becomes the least value, as the conversion instruction of x86 has it.
    return saturated(np.nan_to_num(np.trunc(level), nan=-np.inf), source.type)


def look_up(x: Array, table: Array) -> Array:
    """The entries of a 256-entry table in the order of the bytes."""
    values: Array = table[x.view(np.uint8)]
    return values


def interpolation_table(
    function: Callable[[Array], Array],
    source: tuple[float, int],
    target: tuple[float, int],
    dtype: Any = np.float32,
) -> NDArray[np.int16]:
    """``function`` at 513 even steps over the range of int16, as int16; (scale, zero point) of input and output.

    TFLite's LUTPopulate for int16, in float32 unless told otherwise. Half the error that interpolation makes in the
    middle of a step is taken off at its start. `interpolate` reads the table.
    """
    real = np.dtype(dtype).type
    (input_scale, input_zero), (output_scale, output_zero) = source, target
    start = real(input_scale) * real(-32768 - input_zero)
    end = real(input_scale) * real(32767 - input_zero)
    output_span = real(output_scale) * real(32767 - output_zero) - real(output_scale) * real(-32768 - output_zero)
    inverse = real(65536) / output_span
    step = (end - start) / real(512)
    i = np.arange(513).astype(dtype)
    with np.errstate(all="ignore"):
        exact = function(start + i * step) * inverse
        middle = round_half_away(function(start + i[:-1] * step + step / real(2)) * inverse)
        sample = round_half_away(exact)
        interpolated = round_half_away((exact[1:] + sample[:-1]) / real(2))
        sample[:-1] -= round_half_away((interpolated - middle) / real(2))
        sample[-1] = round_half_away(function(np.asarray([end], dtype)) * inverse)[0]
    # Where the function overflows, infinity less infinity gives NaN; the conversion instruction of x86 makes it 0.
    return saturated(np.nan_to_num(sample), TensorType.INT16)


def interpolate(x: Array, table: NDArray[np.int16]) -> NDArray[np.int16]:
    """int16 values through a table of `interpolation_table`."""
    wide = np.asarray(x, np.int32)
    index = (wide >> 7) + 256
    base = table[index].astype(np.int32)
    slope = (table[index + 1] - table[index]).astype(np.int32)
    result: NDArray[np.int16] = (base + ((slope * (wide & 0x7F) + 64) >> 7)).astype(np.int16)
    return result


def function_table(x: TensorInfo, output: TensorInfo, function: Callable[[Array], Array]) -> Array:
    """The table of a function of float32 numbers for int8 or int16 operands: `apply_table` reads it."""
    if x.type == TensorType.INT8:
        return byte_table(x, output, function)
    source, target = x.quantization, output.quantization
    return interpolation_table(function, (source.scale, source.zero_point), (target.scale, target.zero_point))


def apply_table(x: Array, table: Array) -> Array:
    """Values of int8 looked up, of int16 interpolated."""
    return look_up(x, table) if x.dtype == np.int8 else interpolate(x, table)


def lower_interpolation(graph: Lowering, table: Array) -> None:
    """State an int16 function by a table of 513 entries."""
    graph.result(interpolated(graph, graph.value(0), table))


def interpolated(graph: Lowering, x: View, table: Array) -> View:
    """int16 values, of whatever type, through a table of 513 entries."""
    return graph.map(("interpolate", FIRST, 1), x, pairs(graph, table), type=TensorType.INT16)


def pairs(graph: Lowering, table: Array) -> View:
    """A table of 513 entries as kernels read it: each with the step to the next, in 16 bits each."""
    low = table.astype(np.int64)
    steps = (low[1:] - low[:-1]).astype(np.int16).astype(np.int64)
    return graph.array(((low[:-1] & 0xFFFF) | (steps << 16)).astype(np.int32))


def table_multiplier(scale: float, exact: tuple[int, ...]) -> tuple[int, int]:
    """(multiplier, right shift) that bring int16 values of this scale to 1 / (3 * 4096), the step of `table_logistic`
    and `table_tanh`. The scales 2**-12 * 2**e of the exponents ``exact`` are met without rounding."""
    log2 = checked_log2(scale)
    if log2 is not None and log2 + 12 in exact:
        return 3 << (log2 + 12), 0
    multiplier = scale * 4096.0 * 3.0
    shift = 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        shift += 1
        multiplier *= 2.0
    return int(min(multiplier, 2.0**31 - 1)), shift


def table_logistic(x: Array, multiplier: int, shift: int) -> NDArray[np.int16]:
    """logistic of int16 values through the sigmoid table, in units of 2**-15. TFLite's int16 Logistic."""
    scaled = _scaled(x, multiplier, shift)
    magnitude = np.abs(scaled)
    index = np.minimum(magnitude >> 9, 254)
    low = SIGMOID[index]
    result = (low << 9) + (magnitude & 0x1FF) * (SIGMOID[index + 1] - low)
    result = np.where(magnitude >> 9 >= 255, 0x7FFF << 10, result)
    result = np.where(scaled >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1)
    return (result >> 10).astype(np.int16)


def table_tanh(x: Array, multiplier: int, shift: int) -> NDArray[np.int16]:
    """tanh of int16 values through the sigmoid table, in units of 2**-15: 2 sigmoid(2x) - 1. TFLite's int16 Tanh."""
    scaled = _scaled(x, multiplier, shift)
    magnitude = np.abs(scaled)
    index = np.minimum(magnitude >> 8, 254)
    low = SIGMOID[index]
    result = (low << 8) + (magnitude & 0xFF) * (SIGMOID[index + 1] - low)
    result = np.where(magnitude >> 8 >= 255, 0xFFFF << 8, result)
    result = np.where(scaled >= 0, result - (1 << 23) + (1 << 7), (1 << 23) - result + (1 << 7) - 1)
    return (result >> 8).astype(np.int16)


def _scaled(x: Array, multiplier: int, shift: int) -> Int:
    rounding = 1 << (shift - 1) if shift > 0 else 0
    return wrap_int32(x.astype(np.int64) * multiplier + rounding) >> shift


def lower_sigmoid(graph: Lowering, function: Literal["sigmoid16", "tanh16"], to: tuple[int, int]) -> None:
    """State a sigmoid of int16; ``to``: a multiplier and a right shift to the steps of the table.

    Scales that TFLite meets without rounding, 2^-12 and of tanh 2^-11, are those of its optimized kernels, which
    compute in fixed point (gemmlowp) instead of looking up.
    """
    multiplier, shift = to
    if shift == 0 and multiplier in (3, 6):
        level = FIRST if multiplier == 3 else ("saturate16", ("add", FIRST, FIRST))
        fixed = {"sigmoid16": "fixedlogistic", "tanh16": "fixedtanh3"}[function]
        graph.result(graph.map((fixed, level), graph.value(0), type=TensorType.INT16))
        return
    pairs = SIGMOID[:-1] | (SIGMOID[1:] << 16)
    words = np.concatenate([np.array(to, np.uint32), pairs.astype(np.uint32)]).view(np.int32)
    graph.result(graph.map((function, FIRST, 1), graph.value(0), graph.array(words), type=TensorType.INT16))


# sigmoid(i / 24) * 65536, as TFLite tabulates it (not everywhere the nearest integer).
# fmt: off
SIGMOID = np.array([
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064, 42688,
    43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409,
    51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
    57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110,
    61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186,
    63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
    64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900,
    64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208,
    65221, 65234, 65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
    65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449,
    65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491,
    65493, 65495, 65497, 65498, 65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
    65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
    65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530,
    65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535,
], np.int64)
# fmt: on
