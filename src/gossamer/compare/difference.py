"""How far the values of two tensors are apart, whatever numbers stand for them, and what is too far."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.importers.tflite import stored_quantization
from gossamer.dtypes import numpy_dtype
from gossamer.quantization import Quantization
from gossamer.quantize.debugger.measures import EXACT, Errors
from gossamer.quantize.debugger.pairs import dequantized
from gossamer.quantize.parameters import LIMITS, quantized
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.tables import Tensor

Array = NDArray[Any]

RELATIVE = 1e-4
"""What floats may differ by unless told otherwise, beside the largest magnitude in the tensor."""

SQNR = 15.0
"""Decibels that a tensor in another form, as int8 instead of float, has at least unless told otherwise."""

ROUNDING = 1.0
"""Steps between two integers that such a tensor may always be away: values that are small beside the step have no
decibels to speak of."""


class Form:
    """How the numbers of a tensor are stored: their type and quantization."""

    def __init__(self, tensor: Tensor) -> None:
        self.type = TensorType(tensor.type)
        self.quantization: Quantization = stored_quantization(tensor)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Form) or self.type != other.type:
            return False
        return not (self.is_quantized or other.is_quantized) or self.quantization == other.quantization

    __hash__ = None  # type: ignore[assignment]  # nobody needs it

    @property
    def is_quantized(self) -> bool:
        """Whether integers stand for real numbers."""
        return self.type in LIMITS and bool(self.quantization)

    @property
    def is_real(self) -> bool:
        """Whether the values are real numbers, however they are stored."""
        return self.is_quantized or self.dtype.kind == "f" or "float" in self.dtype.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the arrays."""
        return numpy_dtype(self.type)

    @property
    def scale(self) -> float:
        """The step between two integers; 0 if there is none, or several."""
        return self.quantization.scale if self.is_quantized else 0.0

    def real(self, values: Array) -> Array:
        """The numbers that the values stand for."""
        return dequantized(values, self.quantization) if self.is_quantized else values

    def stored(self, values: Array) -> Array:
        """The values that stand for real numbers, the nearest ones."""
        if self.is_quantized:
            return quantized(values, self.quantization, self.type)
        return values.astype(self.dtype)

    def converted(self, values: Array, other: Form) -> Array:
        """Values of this form in another one."""
        return values if self == other else other.stored(self.real(values))


class Difference:
    """How far the values ``b`` of a tensor are from its values ``a``, of all elements of all runs.

    ``errors``: of the real numbers (`gossamer.quantize.debugger.measures.Errors`); ``count`` of the elements, of which
    ``equal`` are the same: as stored where both are stored in one form, else as real numbers; NaN is NaN. ``steps``:
    the largest difference in steps between two integers, ``None`` where neither has such. ``strange``: how many
    elements are NaN or infinite in one and something else in the other. ``misfit``: why they cannot be compared, if so.
    """

    def __init__(self, a: Form, b: Form) -> None:
        self.a, self.b = a, b
        self.errors = Errors()
        self.count = self.equal = self.strange = 0
        self.misfit = ""
        self.largest_reference = 0.0
        self._steps = 0.0
        self._product = self._square = 0.0

    def add(self, a: Array, b: Array) -> None:
        """Counts the elements of one run, arrays as they are stored."""
        if a.shape != b.shape:
            self.misfit = f"shape {list(a.shape)} against {list(b.shape)}"
            return
        self.count += a.size
        if a.dtype.hasobject or b.dtype.hasobject:
            self.equal += int(np.count_nonzero(np.asarray(a == b)))
            return
        x, y = _floats(self.a.real(a)), _floats(self.b.real(b))
        if self.a == self.b:
            same = (a == b) | ((a != a) & (b != b))
        else:
            same = _alike(x, y)
        self.equal += int(np.count_nonzero(same))
        if not a.size:
            return
        self.errors.add(y, x)
        finite = np.isfinite(x) & np.isfinite(y)
        if not finite.all():
            self.strange += int(np.count_nonzero(~finite & ~_alike(x, y)))
            x, y = x[finite], y[finite]
        if x.size:
            self.largest_reference = max(self.largest_reference, float(np.abs(x).max()))
            self._product += float(np.vdot(x, y))
            self._square += float(np.vdot(y, y))
        if self.a == self.b and self.a.dtype.kind in "iu" and not self.a.quantization.per_channel:
            self._steps = max(self._steps, float(np.abs(a.astype(np.int64) - b.astype(np.int64)).max()))

    @property
    def is_exact(self) -> bool:
        """Whether all elements are equal."""
        return not self.misfit and self.equal == self.count

    @property
    def is_incomparable(self) -> bool:
        """Whether no figures tell what they differ by: other shapes, other strings, NaN or infinities elsewhere."""
        return bool(self.misfit or self.strange) or (not self.is_exact and not self.errors.count)

    @property
    def steps(self) -> float | None:
        """The largest difference in steps between two integers: LSB. Of different forms, in those of ``b``, or else of
        ``a``."""
        if self.a == self.b:
            return self._steps if self.a.dtype.kind in "iu" and not self.a.quantization.per_channel else None
        scale = self.b.scale or self.a.scale
        return self.errors.largest / scale if scale else None

    @property
    def rmse_by_scale(self) -> float | None:
        """The root mean square error in steps between two integers: 0.29 is rounding alone."""
        scale = self.b.scale or self.a.scale
        return self.errors.rmse / scale if scale else None

    @property
    def sqnr(self) -> float:
        """The ratio of ``a`` to the differences in decibels; `EXACT` without any."""
        if self.misfit or self.strange:
            return -EXACT
        return self.errors.sqnr if self.errors.count or self.is_exact else -EXACT

    @property
    def cosine(self) -> float:
        """The cosine of the angle between both, of all elements as one vector; 1 if both are 0."""
        lengths = math.sqrt(self.errors.signal * self._square)
        return self._product / lengths if lengths else float(self.errors.signal == self._square)

    def to_json(self) -> dict[str, Any]:
        """All figures, as plain values."""
        return {
            "elements": self.count,
            "equal": self.equal,
            "sqnr_db": None if self.errors.noise == 0 else self.errors.sqnr,
            "rmse": self.errors.rmse,
            "rmse_by_scale": self.rmse_by_scale,
            "cosine": self.cosine,
            "max_error": self.errors.largest,
            "max_lsb": self.steps,
            "not_finite": self.strange,
            "misfit": self.misfit or None,
        }


def _floats(values: Array) -> NDArray[np.float64]:
    """Numbers as float64; a complex one is two of them, in a further dimension of 2."""
    if values.dtype.kind == "c":
        return np.stack([values.real, values.imag], -1).astype(np.float64)
    return values.astype(np.float64)


def _alike(x: Array, y: Array) -> NDArray[np.bool_]:
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))


@record(frozen=True)
class Tolerance:
    """What two tensors may differ by. What is given counts for every tensor that it says something of, as the whole
    models compute it; a tensor of which nothing given says anything is judged by default.

    ``relative``: the largest difference beside the largest magnitude of ``a``. ``lsb``: the largest difference in steps
    between two integers. ``sqnr``: decibels at least. By default, in models of one graph with the same types, integers
    must be equal and floats within `RELATIVE`; if they are quantized and run on two paths, which may round differently,
    that is asked of each operator alone, and integers may be one step off; so where a zero point is another. In other
    models, and where a scale is another, it is asked of each operator alone that it is within `SQNR` or one step. NaN
    and infinities must be at the same places, strings equal.
    """

    relative: float | None = None
    lsb: float | None = None
    sqnr: float | None = None

    def judged(
        self, whole: Difference, alone: Difference | None, *, is_alike: bool, may_round: bool
    ) -> tuple[bool, bool]:
        """Whether a tensor differs by more than that, in the whole model and alone; ``is_alike``: whether the models
        have one graph and the same types; ``may_round``: whether they are quantized and run on two paths."""
        is_given = self.relative is not None or self.sqnr is not None
        if is_given or (self.lsb is not None and whole.steps is not None):
            is_exceeded = self._is_exceeded
        elif is_alike and whole.a == whole.b and not may_round:
            is_exceeded = _is_unequal
        elif is_alike and (whole.a == whole.b or whole.a.scale == whole.b.scale > 0):
            is_exceeded = _is_more_than_rounded
        else:
            is_exceeded = _is_wrong
        by_itself = alone is not None and is_exceeded(alone)
        counts_alone = alone is not None and is_exceeded in (_is_more_than_rounded, _is_wrong)
        return by_itself if counts_alone else is_exceeded(whole), by_itself

    def _is_exceeded(self, difference: Difference) -> bool:
        if difference.is_incomparable:
            return True
        errors, steps = difference.errors, difference.steps
        return (
            (self.relative is not None and errors.largest > self.relative * difference.largest_reference)
            or (self.lsb is not None and steps is not None and steps > self.lsb)
            or (self.sqnr is not None and errors.sqnr < self.sqnr)
        )


def _is_unequal(difference: Difference) -> bool:
    if difference.is_incomparable or difference.a.dtype.kind in "iub":
        return not difference.is_exact
    return difference.errors.largest > RELATIVE * difference.largest_reference


def _is_more_than_rounded(difference: Difference) -> bool:
    steps = difference.steps if difference.a.is_quantized else None
    return _is_unequal(difference) and (difference.is_incomparable or steps is None or steps > ROUNDING)


def _is_wrong(difference: Difference) -> bool:
    if difference.is_incomparable:
        return True
    steps = difference.steps
    return difference.errors.sqnr < SQNR and (steps is None or steps > ROUNDING)
