"""Summaries: what TensorBoard shows, as messages."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gossamer.convert.wire import Message, double, float_, message, messages, read, string, write
from gossamer.errors import ConvertError
from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import require_same_shape
from gossamer.flex.objects import strings
from gossamer.schema.fields import Array as FieldArray


class HistogramProto(Message):
    min: float = double(1)
    max: float = double(2)
    num: float = double(3)
    sum: float = double(4)
    sum_squares: float = double(5)
    bucket_limit: FieldArray = double.array(6)
    bucket: FieldArray = double.array(7)


class Summary(Message):
    class Value(Message):
        tag: str = string(1)
        simple_value: float = float_(2, oneof="value")
        histo: HistogramProto | None = message(5, "HistogramProto", oneof="value")

    value: tuple[Value, ...] = messages(1, "Summary.Value")


def _written(*values: Summary.Value) -> Array:
    return strings([write(Summary(value=values))], ())


@kernel("ScalarSummary", shape=lambda node, shapes: [()])
def scalar_summary(call: Call, tags: Array, values: Array) -> Array:
    """A number for each tag."""
    require_same_shape(call, "tags and values", tags, values)
    pairs = zip(tags.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True)
    return _written(*[Summary.Value(tag=tag.decode(errors="replace"), simple_value=float(one)) for tag, one in pairs])


def _bucket_limits() -> Array:
    """Each limit is 1.1 times the one before, from 1e-12 to 1e20, on both sides of 0."""
    limits = []
    limit = 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    positive = np.array([*limits, sys.float_info.max])
    return np.concatenate([-positive[::-1], [0.0], positive])


@kernel("HistogramSummary", shape=lambda node, shapes: [()])
def histogram_summary(call: Call, tag: Array, values: Array) -> Array:
    """How many values there are between the limits, runs of empty buckets in one."""
    flat = values.reshape(-1).astype(np.float64)
    call.require(np.all(np.isfinite(flat)), "a histogram is of finite numbers")
    limits = _bucket_limits()
    counts = np.bincount(np.searchsorted(limits, flat, "right"), minlength=limits.size).astype(np.float64)
    is_last = (counts > 0) | np.append(counts[1:] > 0, True)
    numbers = {
        "min": flat.min(initial=sys.float_info.max),
        "max": flat.max(initial=-sys.float_info.max),
        "num": flat.size,
        "sum": _total(flat),
        "sum_squares": _total(np.square(flat)),
    }
    stored = {field: float(value) for field, value in numbers.items() if value}  # as a proto3 message is written
    histogram = HistogramProto(**stored, bucket_limit=limits[is_last], bucket=counts[is_last])
    name = tag.reshape(-1)[0].decode(errors="replace")
    return _written(Summary.Value(tag=name, histo=histogram))


def _total(x: Array) -> float:
    """The sum, one after the other."""
    return float(np.cumsum(x)[-1]) if x.size else 0.0


def _read(call: Call, content: bytes) -> Summary:
    try:
        return read(Summary, content)
    except ConvertError as error:
        call.fail(str(error))


@kernel("MergeSummary", shape=lambda node, shapes: [()])
def merge_summary(call: Call, inputs: list[Array]) -> Array:
    """The values of all summaries; tags must differ."""
    values: list[Any] = []
    for content in [one for operand in inputs for one in operand.reshape(-1).tolist()]:
        values += _read(call, content).value
    tags = [value.tag for value in values if value.tag]
    call.require(len(set(tags)) == len(tags), f"tags must differ, got {tags}")
    return _written(*values)
