"""Steps of the same nodes at whatever sizes: a program that they have in common, and what makes it that of each.

Where shapes come out of values, they are hardly ever the same for long. So from the third on, sizes are left open
(`gossamer.delegates.jit.template`): those of what nodes read, and the integers that decide shapes. A program that is
fitted to others takes some words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.library import ensure
from gossamer.delegates.delegate import PartitionInvokeContext, ResizedNodes
from gossamer.delegates.jit.compiling import range_of
from gossamer.delegates.jit.shapes import MOST_SEEN
from gossamer.delegates.jit.template import FIRST_TRIED, Fit, Fitted, Opened, Template
from gossamer.dtypes import numpy_dtype
from gossamer.ops.op_def import Shape, TensorInfo
from gossamer.programs.library import kernel_library
from gossamer.programs.program import Program
from gossamer.schema.enums import TensorType
from gossamer.sizes import is_open

if TYPE_CHECKING:
    from gossamer.delegates.jit.delegate import Arena, JitDelegate

FEWEST_SEEN = 3
"""Sizes there have been before they are left open: some loops end soon."""

INTEGERS = (TensorType.INT32, TensorType.INT64)

MOST_FITTED = 16
"""Programs of a template, which differ in what is decided by sizes."""

Numbers = Mapping[int, Shape]
"""By index, the shapes of tensors; by what it is inverted, the integers in one."""


class Shared:
    """A program that is one for several steps. ``places``: to what it is bound, for each of its ``boundaries``."""

    def __init__(self, program: Program, fitted: Fitted | Opened, fit: Fit) -> None:
        self.program = program
        self.boundaries = fitted.boundaries
        self.places: list[NDArray[Any] | None] = [None] * len(fitted.boundaries)
        self.fitted = fitted if isinstance(fitted, Fitted) else None
        self._fit = fit

    def enter(self, fit: Fit) -> bool:
        """Make it that of a step; whether it was not."""
        if self._fit is fit or self.fitted is None:
            return False
        self.program.write(self.fitted.at, fit.words)
        self._fit = fit
        return True


class _Known(NamedTuple):
    template: Template
    shared: list[Shared]


class Sizing:
    """What steps of the same nodes have in common. ``read``: what these read and do not write, less what is stored;
    ``asked``: those of it whose integers decide shapes."""

    def __init__(
        self,
        jit: JitDelegate,
        nodes: slice,
        read: Sequence[TensorInfo],
        asked: Sequence[TensorInfo],
        outputs: list[int],
    ) -> None:
        self.nodes = nodes
        self.outputs = outputs
        self._jit = jit
        self._asked = {tensor.index: (tensor, tensor.shape) for tensor in asked}
        self._flags = [tensor for tensor in asked if tensor.type == TensorType.BOOL]
        self._read = [tensor for tensor in read if tensor.index not in self._asked]
        self._seen: dict[bytes, list[Numbers]] = {}
        """By flags, which decide what nodes become."""
        self._known: dict[bytes, list[_Known]] = {}
        self._left = FIRST_TRIED if all(tensor.type in (*INTEGERS, TensorType.BOOL) for tensor in asked) else 0
        self.failure = ""
        """Why there is no program for several sizes, if that has been tried."""

    def fitting(self, ctx: PartitionInvokeContext, arena: Arena) -> tuple[Shared, Fit] | None:
        """The program for what there is now, and how it is fitted to that; ``None`` if there is none."""
        if any(tensor.shape != shape for tensor, shape in self._asked.values()):
            return None
        numbers, flags = self._numbers(ctx), b"".join([ctx.value(one).tobytes() for one in self._flags])
        for known in self._known.get(flags, ()):
            sizes = known.template.sizes(numbers)
            if sizes is not None:
                return self._shared(ctx, known, sizes, arena)
        ranks = [len(one) for one in numbers.values()]
        before = self._seen.get(flags, [])
        seen = [one for one in before if [len(shape) for shape in one.values()] == ranks]
        self._seen[flags] = [*before[1 - MOST_SEEN :], numbers]
        if len(seen) + 1 < FEWEST_SEEN or self._left < 1 or any(0 in one for one in numbers.values()):
            return None
        self._left -= 1
        try:
            template = Template(
                lambda shapes: self._copies(ctx, shapes), [*seen, numbers], self._jit.target, guesses=True
            )
        except Exception as error:  # somebody needs a size, whatever they make of that
            self.failure, self._left = f"{type(error).__name__}: {error}", 0
            return None
        if any(one.resource is not None for one in template.boundaries):
            self.failure, self._left = "variables are bound for each step", 0
            return None
        known = _Known(template, [])
        self._known.setdefault(flags, []).insert(0, known)
        sizes = template.sizes(numbers)
        return None if sizes is None else self._shared(ctx, known, sizes, arena)

    def known(
        self, shapes: Mapping[int, Shape], asked: Sequence[TensorInfo], flags: bytes
    ) -> tuple[Template, list[int], Shared, Fit] | None:
        """What there is already for these shapes and flags, which are all that is asked."""
        if list(asked) != self._flags or any(shapes[index] != shape for index, (_, shape) in self._asked.items()):
            return None
        numbers = {tensor.index: shapes[tensor.index] for tensor in self._read}
        for known in self._known.get(flags, ()):
            sizes = known.template.sizes(numbers)
            for shared in known.shared if sizes is not None else ():
                fit = None if sizes is None or shared.fitted is None else shared.fitted.fit(sizes)
                if fit is not None and sizes is not None:
                    return known.template, sizes, shared, fit
        return None

    def _numbers(self, ctx: PartitionInvokeContext) -> Numbers:
        numbers: dict[int, Shape] = {tensor.index: tensor.shape for tensor in self._read}
        for index, (tensor, _) in self._asked.items():
            if tensor.type in INTEGERS:
                numbers[~index] = tuple(ctx.value(tensor).reshape(-1).tolist())
        return numbers

    def _copies(self, ctx: PartitionInvokeContext, numbers: Numbers) -> ResizedNodes:
        values = {
            index: np.array(numbers[~index], object if is_open(numbers[~index]) else numpy_dtype(tensor.type)).reshape(
                shape
            )
            for index, (tensor, shape) in self._asked.items()
            if tensor.type in INTEGERS
        }
        values |= {tensor.index: ctx.value(tensor).copy() for tensor in self._flags}
        shapes = {index: shape for index, shape in numbers.items() if index >= 0}
        return ctx.opened(self.nodes, shapes, values, self.outputs)

    def _shared(
        self, ctx: PartitionInvokeContext, known: _Known, sizes: Sequence[int], arena: Arena
    ) -> tuple[Shared, Fit] | None:
        for shared in known.shared:
            fit = None if shared.fitted is None else shared.fitted.fit(sizes)
            if fit is not None:
                return shared, fit
        model, fitted = range_of(ctx.source), None
        if len(known.shared) < MOST_FITTED:
            fitted = known.template.fitted(sizes, model)
        made = fitted or known.template.opened(sizes, model)
        if made is None:
            self.failure = known.template.closed
            return None
        if kernel_library(self._jit.target).missing(made.emitted.specs):
            ensure(made.emitted.specs.values(), self._jit.target)
        if isinstance(made, Opened):
            fit = Fit([], [one.bytes for one in made.boundaries], made.shapes)
        else:
            fit = made.fit(sizes)
        if fit is None:
            return None
        program = self._jit.program(ctx, made.emitted.plan, made.emitted.constants.tobytes(), arena)
        shared = Shared(program, made, fit)
        if fitted is not None:
            known.shared.insert(0, shared)
        return shared, fit
