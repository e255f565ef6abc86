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

SQNR = 10.0
"""Decibels that a tensor of other numbers, as float against int8, has at least unless told otherwise."""


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
    ``equal`` are the same: as stored where both are stored in one form, else as real numbers; NaN is NaN. ``steps``: the
    largest difference in steps between two integers, ``None`` where neither has such. ``strange``: how many elements
    are NaN or infinite in one and something else in the other. ``misfit``: why they cannot be compared, if so.
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
    """What two tensors may differ by. What is given counts for every tensor that it says something of; a tensor of
    which nothing given says anything is judged by the default of its kind.

    ``relative``: the largest difference beside the largest magnitude of ``a`` (floats: 1e-4). ``lsb``: the largest
    difference in steps between two integers (integers of one form: 0). ``sqnr``: decibels at least (other pairs: 10).
    NaN and infinities must be at the same places, strings equal.
    """

    relative: float | None = None
    lsb: float | None = None
    sqnr: float | None = None

    def is_exceeded(self, difference: Difference) -> bool:
        """Whether the difference is more than that."""
        if difference.misfit or difference.strange:
            return True
        if difference.is_exact:
            return False
        if not difference.errors.count:
            return True  # strings
        relative, lsb, sqnr = self.relative, self.lsb, self.sqnr
        steps = difference.steps
        if relative is None and sqnr is None and (lsb is None or steps is None):
            if difference.a != difference.b:
                sqnr = SQNR
            elif difference.a.is_quantized or not difference.a.is_real:
                lsb, steps = 0.0, math.inf
            else:
                relative = RELATIVE
        return (
            (relative is not None and difference.errors.largest > relative * difference.largest_reference)
            or (lsb is not None and steps is not None and steps > lsb)
            or (sqnr is not None and difference.errors.sqnr < sqnr)
        )
