"""Whether rows of a batch are independent, so that requests may run together.

A model promises nothing about its first dimension. `decide` looks, in this order:

1. The first size of every input and output is open, and the model keeps nothing from one run to the next.
2. With twice as many rows, each tensor that depends on the inputs has twice as many elements. What adds up, counts or
   decides over all rows does not; neither does a product of the rows with each other.
3. A row has the same bits whatever the others hold: one, a thousand times as large, zeros; at the first place, in the
   middle and at the end. As the shapes are the same, so are the kernels, and nothing else could change a bit.
4. Rows have the values that they have alone: the same bits for integers. Other kernels run for other shapes, and add
   floats in another order: differences of rounding are allowed, unless ``exact_batches``.

That finds all that mixes rows whatever their values are. A model that would do so for rare values only would pass; that
is why somebody has to ask for batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import GossamerError
from gossamer.inputs.port import Port as Described
from gossamer.inputs.random_values import random_input
from gossamer.runtime.subgraph import Subgraph
from gossamer.serve.model import Instance, Port, ServedModel, Signature

Array = NDArray[Any]

ROUNDING = 1e-4
"""By how much floats may differ from those of the row alone, relative to the largest of an output."""

_OPEN_SIZE = 5
"""What the other sizes that are open are tried with: then 1."""


class _Dependent(Exception):
    """Rows may not run together, for this reason."""


def decide(model: ServedModel, signature: Signature) -> None:
    """Set how many rows of a signature may run together, and why: ``max_rows``, ``batching``."""
    if model.options.max_batch_size == 1:
        return
    try:
        if model.is_stateful:
            raise _Dependent("the model keeps values from one run to the next")
        for port in (*signature.inputs, *signature.outputs):
            if not port.shape or port.shape[0] != -1:
                raise _Dependent(f"the first size of {port.name!r} is not open: {list(port.shape)}")
        if not signature.inputs:
            raise _Dependent("there are no inputs")
        difference = _measure(model, signature)
    except _Dependent as reason:
        signature.max_rows, signature.batching = 1, f"off: {reason}"
        return
    if difference and model.options.exact_batches:
        signature.batching = f"off: floats differ by up to {difference:.1e} from those of a row alone"
        return
    signature.max_rows = model.options.max_batch_size
    differs = f"floats may differ by rounding, here {difference:.1e} of the largest" if difference else "the same bits"
    signature.batching = f"up to {signature.max_rows} rows, {differs}"


def _measure(model: ServedModel, signature: Signature) -> float:
    """The largest difference of a row from what it is alone, relative to the largest value of the output."""
    try:
        return _Trial(model, signature, _OPEN_SIZE).difference()
    except GossamerError:  # sizes that do not fit
        pass
    try:
        return _Trial(model, signature, 1).difference()
    except GossamerError as error:
        reason = str(error).partition("\n")[0]
        raise _Dependent(f"it does not run on several rows of random values: {reason}") from None


class _Trial:
    """A signature run on random rows, with one size for whatever else is open."""

    def __init__(self, model: ServedModel, signature: Signature, size: int) -> None:
        self.model, self.signature = model, signature
        self.tails = [tuple(size if n == -1 else n for n in port.shape[1:]) for port in signature.inputs]
        self.most = model.options.max_batch_size

    def difference(self) -> float:
        """See `_measure`."""
        self.instance = Instance(self.model)
        rows = self.most + 1
        values = [
            self._random(port, (rows, *tail)) for port, tail in zip(self.signature.inputs, self.tails, strict=True)
        ]
        alone = [self._run([value[row : row + 1] for value in values], 1) for row in range(rows)]
        self._require_proportional()
        found = 0.0
        sizes = sorted({min(1 << power, self.most) for power in range(1, self.most.bit_length() + 1)} | {self.most})
        for size in sizes:
            together = self._run([value[:size] for value in values], size)
            self._require_independent(values, together, size)
            for port, outputs, *rows_alone in zip(self.signature.outputs, together, *alone, strict=True):
                found = max(found, _difference(port, outputs, np.concatenate(rows_alone[:size])))
        return found

    def _run(self, values: Sequence[Array], rows: int) -> list[Array]:
        outputs = self.instance.run(self.signature, values, rows)
        for port, output in zip(self.signature.outputs, outputs, strict=True):
            if output.ndim == 0 or len(output) != rows:
                raise _Dependent(f"output {port.name!r} has shape {list(output.shape)} for {rows} rows")
        return outputs

    def _random(self, port: Port, shape: tuple[int, ...], seed: int = 0) -> Array:
        if port.dtype.hasobject:
            source = np.random.default_rng(seed)
            made = np.empty(shape, object)
            made.reshape(-1)[:] = [b"%d" % number for number in source.integers(0, 100, math.prod(shape))]
            return made
        low, high = port.limits or (None, None)
        bounds = (0.0, 1.0) if port.dtype.kind in "iu" and port.dtype.itemsize > 1 else None
        bounds = bounds if low is None or high is None else (float(low), float(high))
        position = self.signature.inputs.index(port)
        described = Described(position, port.name, (), port.index, port.dtype, shape, shape, 0.0, 0)
        return random_input(described, shape, bounds, (seed,))

    def _require_independent(self, values: Sequence[Array], together: Sequence[Array], rows: int) -> None:
        """Change all rows but one, and look at that one."""
        others = [
            self._random(port, value[:rows].shape, 1) for port, value in zip(self.signature.inputs, values, strict=True)
        ]
        for at, scale in {0: 1.0, rows // 2: 1000.0, rows - 1: 0.0}.items():
            mixed = [_scaled(other, scale) for other in others]
            for mine, value in zip(mixed, values, strict=True):
                mine[at] = value[at]
            outputs = self._run(mixed, rows)
            for port, output, before in zip(self.signature.outputs, outputs, together, strict=True):
                if not _same_bits(output[at], before[at]):
                    raise _Dependent(f"a row of output {port.name!r} depends on other rows")

    def _require_proportional(self) -> None:
        """Of all tensors that depend on inputs, the elements are as many times more as there are more rows."""
        counts = []
        for rows in (2, 4):
            shapes = {port.index: (rows, *tail) for port, tail in zip(self.signature.inputs, self.tails, strict=True)}
            counts.append(self._elements(self.model.shapes_for(self.signature.subgraph, shapes)))
        for index, few in counts[0].items():
            many = counts[1].get(index)
            if few is None or many is None or many != 2 * few:
                name = self.model.model.subgraphs[self.signature.subgraph].tensors[index].name
                raise _Dependent(f"tensor {name!r} depends on the inputs, and does not grow with the rows")

    def _elements(self, subgraph: Subgraph) -> dict[int, int | None]:
        """By index of a tensor that depends on values of the inputs, its elements; `None` where only a run tells."""
        found: dict[int, int | None] = {port.index: None for port in self.signature.inputs}
        for operator in self.model.model.subgraphs[self.signature.subgraph].operators:
            if not any(index in found for index in operator.inputs):
                continue
            for index in operator.outputs:
                tensor = subgraph.tensors[index]
                if index >= 0 and not tensor.is_constant:
                    found[index] = None if tensor.is_dynamic else math.prod(tensor.shape)
        return {index: count for index, count in found.items() if index not in self._fed}

    @property
    def _fed(self) -> set[int]:
        return {port.index for port in self.signature.inputs}


def _scaled(values: Array, scale: float) -> Array:
    if values.dtype.kind in "fV" or "float" in values.dtype.name:
        return (values.astype(np.float64) * scale).astype(values.dtype)
    if values.dtype.hasobject:
        return values.copy()
    return values.copy() if scale else np.zeros_like(values)


def _same_bits(one: Array, other: Array) -> bool:
    if one.dtype.hasobject or other.dtype.hasobject:
        return one.shape == other.shape and one.tolist() == other.tolist()
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _difference(port: Port, together: Array, alone: Array) -> float:
    """0.0 for the same bits. Raises `_Dependent` if it is more than rounding."""
    if _same_bits(together, alone):
        return 0.0
    if port.dtype.kind in "iubO":
        raise _Dependent(f"output {port.name!r} is not what it is for a row alone")
    one, other = together.astype(np.float64), alone.astype(np.float64)
    largest = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
    with np.errstate(invalid="ignore"):
        difference = float(np.max(np.abs(one - other))) / max(largest, 1e-30)
    rounding = max(ROUNDING, 4 * float(np.finfo(np.float16).eps) if port.dtype.itemsize == 2 else 0.0)
    if not difference <= rounding:
        raise _Dependent(f"output {port.name!r} differs by {difference:.1e} from that of a row alone")
    return difference
