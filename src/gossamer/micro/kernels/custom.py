"""Custom operators that TFLite Micro ships: CIRCULAR_BUFFER and TFLite_Detection_PostProcess.

Sources: circular_buffer.cc, circular_buffer_common.cc, detection_postprocess.cc. The operators for signals (Signal*)
are a family of their own; ethos-u is a device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.micro.abi import Array, Struct, boolean, float32, int32
from gossamer.micro.context import MicroInvokeContext, MicroPrepareContext
from gossamer.micro.graph import Abort
from gossamer.micro.kernels.kernel import FLOAT32, INT8, UINT8, MicroKernel, input_and_output
from gossamer.ops.op_def import OpDef, versions
from gossamer.schema import flexbuffers

_QUANTIZATION = Struct(scale=float32, zero_point=int32)

OP_DATA_DETECTION = Struct(
    max_detections=int32,
    max_classes_per_detection=int32,
    detections_per_class=int32,
    non_max_suppression_score_threshold=float32,
    intersection_over_union_threshold=float32,
    num_classes=int32,
    use_regular_non_max_suppression=boolean,
    scale_values=Array(float32, 4),
    scratch_indices=Array(int32, 11),
    input_box_encodings=_QUANTIZATION,
    input_class_predictions=_QUANTIZATION,
    input_anchors=_QUANTIZATION,
)


def _detection(ctx: MicroPrepareContext) -> None:
    for position in range(3):
        ctx.temp_input(position)
    parameters = ctx.node.data
    boxes, classes = ctx.input(0).shape[1], ctx.input(1).shape[2]
    many = 4 * boxes * parameters.max_detections
    ctx.scratch(boxes)
    ctx.scratch(16 * boxes)
    ctx.scratch(4 * boxes * classes)
    ctx.scratch(4 * boxes)
    ctx.scratch(4 * boxes)
    ctx.scratch(many)
    ctx.scratch(many)
    ctx.scratch(4 * boxes)
    ctx.scratch(many)
    ctx.scratch(4 * boxes * max(parameters.num_classes, parameters.max_detections))
    ctx.scratch(4 * boxes * min(boxes, parameters.max_detections))


class Period:
    """How many invocations there are from one on which the operators behind a buffer run to the next."""

    def __init__(self, cycles: int) -> None:
        self.cycles = self.until_run = cycles


_ONE_CYCLE = (5, 13, 25)
_LAST = (5, (2, 96))


def _circular_buffer(ctx: MicroPrepareContext) -> Period:
    input_and_output(ctx)
    x, output = ctx.input(0), ctx.output()
    ctx.require(len(x.shape) == len(output.shape) == 4, "input and output must have 4 dimensions")
    ctx.require(
        x.shape[1] == 1 and (x.shape[0], *x.shape[2:]) == (output.shape[0], *output.shape[2:]),
        f"an input of {list(x.shape)} is no slot of {list(output.shape)}",
    )
    cycles = 0
    if ctx.custom_options:
        try:
            options = flexbuffers.loads(ctx.custom_options)
        except ValueError as error:
            ctx.fail(f"custom_options are not a flexbuffer ({error})")
        values = list(options.values()) if isinstance(options, dict) else options
        ctx.require(isinstance(values, list) and values, "custom_options must hold cycles_max")
        cycles = int(values[0])
    return Period(cycles if cycles > 0 else _guessed_cycles(ctx))


def _guessed_cycles(ctx: MicroPrepareContext) -> int:
    """TFLite Micro knows two models that do not say it, by the shapes of their buffers."""
    nodes = ctx.micro.graph.subgraphs[ctx.micro.graph.current_subgraph].nodes
    earlier = sum(node.name == "CIRCULAR_BUFFER" for node in nodes[: ctx.node_index])
    shape = ctx.output().shape
    return 1 if shape[1] in _ONE_CYCLE or (earlier + 1, shape[2:]) == _LAST else 2


def _shifted(ctx: MicroInvokeContext) -> NDArray[Any]:
    output, period = ctx.tensors_out[0].array(), ctx.data
    slots: NDArray[np.int8] = np.concatenate([output[:, 1:], ctx.value(0)], axis=1)
    period.until_run -= 1
    if period.until_run != 0:
        ctx.store(slots)
        raise Abort
    period.until_run = period.cycles
    return slots


_CIRCULAR_BUFFER = OpDef(
    "CIRCULAR_BUFFER",
    inputs=("input",),
    outputs=("output",),
    versions=versions(""),
    types={"input": (INT8,), "output": (INT8,)},
    custom=True,
)


@_CIRCULAR_BUFFER.reset
def _begin(period: Period) -> None:
    period.until_run = period.cycles


KERNELS = (
    MicroKernel(
        "CIRCULAR_BUFFER",
        (INT8,),
        op_data=Struct(cycles_until_run=int32, cycles_max=int32),
        prepare=_circular_buffer,
        reference=_shifted,
        op=_CIRCULAR_BUFFER,
        own_prepare=True,
        custom=True,
    ),
    MicroKernel(
        "TFLite_Detection_PostProcess",
        (FLOAT32, UINT8),
        op_data=OP_DATA_DETECTION,
        prepare=_detection,
        custom=True,
    ),
)
