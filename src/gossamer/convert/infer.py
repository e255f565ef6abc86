"""What an operator gives for operands of which types and shapes are known: its own ``prepare`` and ``reference``.

A converter needs no table of result shapes, of legal types or of foldings: the operator files have them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import GossamerError, PrepareError
from gossamer.ops.op_def import InvokeContext, OpDef, PrepareContext, Resources, SubgraphCall
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Table

Array = NDArray[Any]
Shape = tuple[int, ...]

TYPE_OPTIONS = ("output_type", "out_type", "out_data_type", "idx_out_type")
"""Options of the schema that name the type of the last output."""

TRIPPED = (ValueError, TypeError, LookupError, ArithmeticError)
"""What operators raise that trip over what nobody expected."""


class Operand:
    """A tensor as operators see it: one of `gossamer.ops.op_def.TensorInfo`.

    ``value`` is ``None`` where it is not known; so is the shape of a result that depends on values.
    """

    is_variable = False
    sparsity: Table | None = None

    def __init__(
        self,
        type: TensorType,
        shape: Shape,
        value: Array | None = None,
        quantization: Quantization = UNQUANTIZED,
        index: int = 0,
    ) -> None:
        self.type = type
        self.shape = self.shape_signature = shape
        self.value = value
        self.quantization = quantization
        self.index = index
        self.name = ""
        self.is_dynamic = False

    @property
    def is_constant(self) -> bool:
        """Whether its value is known."""
        return self.value is not None

    is_stored = is_constant


class Result(NamedTuple):
    """An output: its ``shape`` is ``None`` if values decide it, its ``value`` if it is not known."""

    type: TensorType
    shape: Shape | None
    value: Array | None


class Call(NamedTuple):
    """An operator and what it is called with. ``types`` are those of the outputs where the caller knows them."""

    op: OpDef
    options: Table
    inputs: Sequence[Operand | None]
    outputs: int = 1
    types: Sequence[TensorType | None] = ()
    quantization: Quantization = UNQUANTIZED
    custom_options: bytes = b""
    intermediates: Sequence[Operand] = ()


class _Prepare(PrepareContext):
    def __init__(self, call: Call, outputs: Sequence[Operand]) -> None:
        super().__init__(
            *(call.op, call.op.max_version, 0, call.options, call.custom_options),
            *(tuple(call.inputs), tuple(outputs), tuple(call.intermediates)),
        )
        self.operands, self.results = call.inputs, outputs

    def constant(self, position: int) -> Array | None:
        operand = self.operands[position] if position < len(self.operands) else None
        return None if operand is None else operand.value

    def set_type(self, position: int, type: TensorType) -> None:
        self.results[position].type = type

    def set_shape(self, position: int, shape: Iterable[int]) -> None:
        sizes = tuple([int(size) for size in shape])
        if any(size < 0 for size in sizes):
            self.fail(f"output {position} would have the shape {list(sizes)}")
        self.results[position].shape = sizes

    def set_dynamic(self, position: int) -> None:
        self.results[position].is_dynamic = True

    def set_constant(self, position: int, value: Array) -> None:
        self.results[position].shape = value.shape
        self.results[position].value = value

    def set_persistent(self, position: int) -> None:
        """Nothing is kept here."""

    def temporary(self, tensor_type: TensorType, shape: Sequence[int], *, persistent: bool = False) -> None:
        """No memory is planned here."""

    def subgraph(self, index: int) -> SubgraphCall:
        self.fail("calls another subgraph, whose shapes its caller knows")

    @property
    def resources(self) -> Resources:
        return _Empty()


class _Invoke(InvokeContext):
    def __init__(self, call: Call, outputs: Sequence[Operand], data: Any) -> None:
        super().__init__(
            call.op, call.op.max_version, 0, call.options, call.custom_options, tuple(call.inputs), tuple(outputs)
        )
        self.operands, self.data = call.inputs, data

    def value(self, position: int) -> Array:
        operand = self.operands[position] if position < len(self.operands) else None
        if operand is None or operand.value is None:
            self.fail(f"input {position} is missing")
        return operand.value

    def subgraph(self, index: int) -> SubgraphCall:
        self.fail("calls another subgraph")

    @property
    def resources(self) -> Resources:
        self.fail("has state, which nothing is known of before it runs")


class _Empty:
    """State as it is before anything has run."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, str], int] = {}
        self.variables: dict[int, Array] = {}
        self.hash_tables: dict[int, Any] = {}
        self.object_ids: dict[tuple[str, str, str], int] = {}
        self.objects: dict[int, Any] = {}
        self.uncalled: tuple[int, ...] = ()
        self.initialized: set[int] = set()


def infer(call: Call) -> list[Result]:
    """Types and shapes of the outputs, and their values where ``prepare`` knows them. Raises `PrepareError`."""
    return _results(_prepared(call)[0])


def evaluate(call: Call) -> list[Result]:
    """The values of the outputs, all inputs being known: what the reference kernel computes. Raises `GossamerError`."""
    outputs, data = _prepared(call)
    if all(output.is_constant for output in outputs):
        return _results(outputs)
    kernel = call.op.reference_function
    ctx = _Invoke(call, outputs, data)
    if kernel is None:
        ctx.fail("has no kernel")
    try:
        with np.errstate(all="ignore"):
            values = kernel(ctx)
    except TRIPPED as error:
        if isinstance(error, GossamerError):
            raise
        ctx.fail(f"{type(error).__name__}: {error}")
    values = values if isinstance(values, (tuple, list)) else (values,)
    return [
        Result(output.type, output.shape if value is None else value.shape, output.value if value is None else value)
        for output, value in zip(outputs, values, strict=True)
    ]


def _results(outputs: Sequence[Operand]) -> list[Result]:
    return [Result(output.type, None if output.is_dynamic else output.shape, output.value) for output in outputs]


def _prepared(call: Call) -> tuple[list[Operand], Any]:
    """The outputs, prepared with the first types that the operator takes, and the data that its prepare made."""
    first: PrepareError | None = None
    shapes = [operand.shape for operand in call.inputs if operand is not None]
    widest = max(shapes, key=len) if shapes and all(math.prod(shape) == 1 for shape in shapes) else ()
    for types in _candidates(call):
        # Operators that leave the output's shape as it is stored (SELECT of single elements) mean the broadcast one.
        outputs = [Operand(type, widest, None, call.quantization, index) for index, type in enumerate(types)]
        ctx = _Prepare(call, outputs)
        data = None
        try:
            call.op.check_operands(ctx)
            if call.op.prepare_function is not None:
                with np.errstate(all="ignore"):
                    data = call.op.prepare_function(ctx)
            call.op.check_output_types(ctx)
        except PrepareError as error:
            first = first or error
            continue
        except TRIPPED as error:
            ctx.fail(f"{type(error).__name__}: {error}")
        return outputs, data
    raise first or PrepareError(f"{call.op.name} has no outputs")


def _candidates(call: Call) -> list[list[TensorType]]:
    """Types that the outputs may have: what the caller, an option or the operator says, else those of inputs."""
    names = [call.op.outputs[min(n, len(call.op.outputs) - 1)].rstrip("?*") for n in range(call.outputs)]
    given = list(dict.fromkeys(operand.type for operand in call.inputs if operand is not None)) or [TensorType.FLOAT32]
    fixed: list[TensorType | None] = [*call.types, *[None] * call.outputs][: call.outputs]
    for option in TYPE_OPTIONS:
        if hasattr(call.options, option) and fixed and fixed[-1] is None:
            fixed[-1] = TensorType(getattr(call.options, option))
    choices: list[list[TensorType]] = []
    for name, type in zip(names, fixed, strict=True):
        legal = call.op.types.get(name, ())
        if type is not None:
            choices.append([type])
        elif len(legal) == 1:
            choices.append([legal[0]])
        else:
            choices.append([choice for choice in given if not legal or choice in legal] or list(legal[:1]))
    most = max(map(len, choices), default=1)
    return [[choice[min(n, len(choice) - 1)] for choice in choices] for n in range(most)]


def tensor_type(dtype: np.dtype[Any]) -> TensorType:
    """The type of a tensor with these elements. Raises `KeyError` for a dtype that no tensor has."""
    if dtype.hasobject or dtype.kind in "SU":
        return TensorType.STRING
    return TensorType[dtype.name.upper()]
