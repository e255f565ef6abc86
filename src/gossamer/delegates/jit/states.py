"""What programs find and leave from run to run, resource variables and variable tensors, and how a fault undoes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype
from gossamer.ops.op_def import Array, Resources, Shape, TensorInfo
from gossamer.programs.program import FAULT, Program
from gossamer.schema.enums import TensorType


class Variables:
    """The resource variables that a program reads and writes where they lie: of each the base that is bound to it, its
    name, type and shape, and whether it must have a value when the program begins."""

    def __init__(self, known: Sequence[tuple[str, tuple[str, str], int, Shape, bool]] = ()) -> None:
        self._known = [
            (base, name, numpy_dtype(TensorType(type)), shape, is_read) for base, name, type, shape, is_read in known
        ]
        self._bound: list[tuple[int, Array]] = []
        self._before: list[tuple[int, Array | None]] = []

    def __bool__(self) -> bool:
        return bool(self._known)

    def bind(self, program: Program, resources: Resources) -> bool:
        """Bind a program to what the variables are now; whether they are as it needs them."""
        ids, variables = resources.ids, resources.variables
        numbers = [ids.setdefault(name, len(ids)) for _, name, *_ in self._known]
        found = [variables.get(number) for number in numbers]
        fit = [
            value is not None and value.dtype == dtype and value.shape == shape and value.flags.carray
            for value, (_, _, dtype, shape, _) in zip(found, self._known, strict=True)
        ]
        if not all(fits or not one[-1] for fits, one in zip(fit, self._known, strict=True)):
            return False
        if FAULT in program.memory:
            self._before = [(n, None if v is None else v.copy()) for n, v in zip(numbers, found, strict=True)]
        self._bound = []
        for number, fits, (base, _, dtype, shape, _) in zip(numbers, fit, self._known, strict=True):
            if not fits:
                variables[number] = np.zeros(shape, dtype)
            program.bind(base, variables[number].ctypes.data)
            self._bound.append((number, variables[number]))
        return True

    def restore(self, resources: Resources) -> None:
        """Give the variables back the values that they had when the program was bound to them, which met a fault."""
        for number, value in self._before:
            if value is None:
                resources.variables.pop(number, None)
            else:
                resources.variables[number] = value

    def again(
        self, program: Program, resources: Resources, enter: Callable[[], object] | None
    ) -> Callable[[], object] | None:
        """What goes on as `Program.again`, as long as the variables are those that the program is bound to."""
        if enter is None or FAULT in program.memory:
            return None
        variables, bound = resources.variables, self._bound

        def again() -> object:
            for number, value in bound:
                if variables.get(number) is not value:
                    return True
            return enter()

        return again


class States:
    """The variable tensors that a program changes where they lie, and what they were before, if it may meet a fault."""

    def __init__(self, program: Program, bound: Iterable[tuple[TensorInfo, NDArray[np.uint8] | None]] = ()) -> None:
        self._program = program
        places = [place.data for tensor, place in bound if place is not None and tensor.is_variable]
        self._kept = [(place, memoryview(bytearray(place))) for place in places if FAULT in program.memory]

    def keep(self) -> None:
        """Before a run: take down what they are, unless that is what a run has left that met a fault."""
        if not self._program.is_faulty:
            for place, kept in self._kept:
                kept[:] = place

    def restore(self) -> None:
        """Give them back what they were before the run, which met a fault."""
        for place, kept in self._kept:
            place[:] = kept

    def again(self, enter: Callable[[], object] | None) -> Callable[[], object] | None:
        """What goes on as `Program.again`."""
        if enter is None or not self._kept:
            return enter
        keep, run = self.keep, enter

        def again() -> object:
            keep()
            return run()

        return again
