"""The contract of an operator: one `OpDef` record per file, and the contexts its functions receive.

An operator is three plain functions. ``prepare`` sees shapes, types, options and constants and says what comes out;
``reference`` sees arrays and returns arrays; ``lower`` (optional) states the operator in terms of kernels. All that a
runtime does around them, storage, order, planning, threads, is not their business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, MutableMapping, Sequence
from enum import IntFlag
from typing import Any, NoReturn, Protocol, TypeVar

from gossamer.arrays import NDArray
from gossamer.dtypes import type_name
from gossamer.errors import InvokeError, PrepareError
from gossamer.ops.op_signature import Condition, OpSignature
from gossamer.quantization import Quantization
from gossamer.records import field, record
from gossamer.schema.enums import BuiltinOperator, TensorType
from gossamer.schema.fields import Table

Array = NDArray[Any]
Shape = tuple[int, ...]
Function = TypeVar("Function", bound=Callable[..., Any])


class InPlace(IntFlag):
    """What TFLite's planner may do with the buffers of an operator (the values of TfLiteInPlaceOp)."""

    NONE = 0
    DATA_UNMODIFIED = 1
    INPUT_0 = 4
    INPUT_1 = 8
    INPUT_2 = 16


@record(frozen=True)
class CellOperand:
    """What an operand of a recurrent operator is in integers: of ``type``, no greater than ``most`` and with 0 for 0;
    with a zero point where ``most`` is 0. Its scale follows from its values; it is a power of two, if that is said; or
    it is ``factor`` times the scales of the operands in ``product``. ``like``: an operand whose parameters it has.
    """

    type: TensorType
    most: int = 0
    power_of_two: bool = False
    product: tuple[str, ...] | None = None
    factor: float = 1.0
    like: str = ""


CellOperands = Callable[[Container[str]], Mapping[str, CellOperand]]
"""The operands of a recurrent operator that has those with these names, and its intermediate tensors, by name."""


@record(frozen=True)
class Quantizes:
    """What becomes of an operator when a float model is quantized to integers (the traits and interfaces of TFLite's
    converter, tfl_ops.td): an operator without it stays float.

    ``same_scale``: inputs and outputs have the same parameters; ``same_scale_16``: they have in 16 bits. ``fixed``:
    (scale, zero point) of the output by its type, whatever was observed. ``weights``: the operand that has a scale for
    each index of dimension ``channel`` (``None``: one scale), symmetric, where it is constant. ``bias``: the operand
    that has the scale of input times weights. ``hybrid``: the weights may be quantized alone, and the operator computes
    with them and float inputs. ``table``: an operand that is no weight of a product, but is quantized where weights are
    quantized alone. ``cell``: the operands of a recurrent operator; ``intermediates``: names of its intermediate
    tensors; ``cell_weights``: all that is quantized where weights are quantized alone.
    """

    same_scale: bool = False
    same_scale_16: bool = False
    fixed: Mapping[TensorType, tuple[float, int]] = field(default_factory=dict)
    weights: int | None = None
    channel: int | None = None
    bias: int | None = None
    hybrid: bool = False
    table: int | None = None
    cell: CellOperands | None = None
    intermediates: tuple[str, ...] = ()
    cell_weights: tuple[int, ...] = ()


SAME_SCALE = Quantizes(same_scale=True)
INT = Quantizes()
"""Of an operator whose inputs and outputs have parameters of their own each."""


@record(frozen=True)
class Version:
    """A version of an operator's contract, the first runtime release that has it, such as ``"2.3.0"``, and what an
    operator of a model must have to need it.

    A version without a condition, other than the first, is known to runtimes but needed by nothing. ``since`` is
    ``None`` for a version that converters write and no release has.
    """

    number: int
    since: str | None
    when: Condition | None = None


def versions(*since: str) -> tuple[Version, ...]:
    """Versions 1, 2, ... with the releases that introduced them, needed by nothing but the first."""
    return tuple(Version(number, release) for number, release in enumerate(since, 1))


class TensorInfo(Protocol):
    """What an operator may know of a tensor before it holds data."""

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> TensorType: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def shape_signature(self) -> Shape: ...
    @property
    def quantization(self) -> Quantization: ...
    @property
    def sparsity(self) -> Table | None: ...
    @property
    def is_constant(self) -> bool:
        """The value is known when the model is prepared: stored in the file, or computed by a prepare."""

    @property
    def is_stored(self) -> bool:
        """The value is stored in the file."""

    @property
    def is_dynamic(self) -> bool:
        """The shape is only known once the value is."""

    @property
    def is_variable(self) -> bool:
        """The value stays from one invocation to the next."""


class SubgraphCall(Protocol):
    """Another subgraph of the model, as IF, WHILE, CALL_ONCE and composites see it."""

    @property
    def inputs(self) -> Sequence[TensorInfo]: ...
    @property
    def outputs(self) -> Sequence[TensorInfo]: ...
    @property
    def operators(self) -> Sequence[BuiltinOperator]:
        """The codes of its operators in order: some operators look at their body instead of calling it."""

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether a shape in it, as it is allocated, depends on values."""

    @property
    def handed_on(self) -> Sequence[int | None]:
        """For each output, which input it is, if it is one: its value is handed on unchanged."""

    def allocate(self, shapes: Sequence[Shape], *, own_inputs: bool = False) -> None:
        """Resize the inputs where they differ, and prepare and plan the subgraph. Raises `PrepareError`.

        ``own_inputs``: as TFLite plans a condition: inputs that are read have places in the arena of the subgraph.
        """

    def room(self, position: int, number: int) -> Array:
        """Memory for an output of fixed shape, apart from its place in the arena: as many as are asked for."""

    def call(self, values: Sequence[Array], out: Sequence[Array | None] = ()) -> list[Array]:
        """Run it on these inputs (resizing where shapes differ); the outputs.

        Inputs are read where they lie. An output is written into its array of ``out``, which is returned, if that fits
        a fixed shape; it must not be where an input lies. What an output hands on is the array that came in; of others
        there are copies.
        """


class Resources(Protocol):
    """State that all subgraphs of an interpreter share."""

    @property
    def ids(self) -> MutableMapping[tuple[str, str], int]:
        """(container, shared name) -> resource id."""

    @property
    def variables(self) -> MutableMapping[int, Array]:
        """Resource id -> value of a resource variable."""

    @property
    def hash_tables(self) -> MutableMapping[int, Any]:
        """Resource id -> hash table."""

    @property
    def objects(self) -> MutableMapping[int, Any]:
        """Resource id -> what else operators share: queues, stacks, arrays."""

    @property
    def object_ids(self) -> MutableMapping[tuple[str, str, str], int]:
        """(kind, container, name) -> resource id of what TensorFlow's operators name."""

    @property
    def uncalled(self) -> Sequence[int]:
        """Subgraphs without inputs and outputs that nobody calls, nor users."""

    @property
    def initialized(self) -> set[int]:
        """Subgraphs that CALL_ONCE has run."""


@record(eq=False)
class OpDef:
    """All that is true of an operator for everybody.

    ``inputs`` and ``outputs`` name the operands in order; ``"bias?"`` may be missing (-1 or left off at the end),
    ``"values*"`` stands for any number. ``types`` gives the legal element types of an operand by name; combinations
    are for ``prepare`` to check. ``sparse`` names the operand that may be a sparse constant. ``reference_version`` is
    the highest version in TFLite's narrower reference resolver: ``None`` when it has them all, 0 when it lacks the
    operator. ``reserved_tensors``: how many tensor indices TFLite's kernel takes for scratch memory when a node is
    built, and when it is first prepared, whether or not it uses them; they decide between equals in a memory plan.
    ``reference_only`` says, in a few words, why an operator that ships has no ``lower``. ``tells_shapes``: its
    ``lower`` copes with outputs whose shapes ``prepare`` leaves to the run, and tells them, or refuses. ``is_checked``:
    what it is, ``reference`` says; machine code of its ``lower`` is compared with that when it first runs, and where
    there is none, ``reference`` runs. ``quantizes``: how the quantizer treats it.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    versions: tuple[Version, ...]
    options: type[Table] = Table
    types: Mapping[str, tuple[TensorType, ...]] = field(default_factory=dict)
    sparse: str = ""
    reference_version: int | None = None
    in_place: InPlace = InPlace.NONE
    reserved_tensors: tuple[int, int] = (0, 0)
    side_effects: bool = False
    reference_only: str = ""
    tells_shapes: bool = False
    is_checked: bool = False
    custom: bool = False
    quantizes: Quantizes | None = None
    doc: str = ""
    prepare_function: Callable[[PrepareContext], Any] | None = None
    reference_function: Callable[[InvokeContext], Any] | None = None
    lower_function: Callable[[Any], Any] | None = None
    reset_function: Callable[[Any], None] | None = None

    @property
    def code(self) -> BuiltinOperator:
        """The builtin code; CUSTOM for a custom operator."""
        return BuiltinOperator.CUSTOM if self.custom else BuiltinOperator[self.name]

    @property
    def min_version(self) -> int:
        """The lowest version."""
        return self.versions[0].number

    @property
    def max_version(self) -> int:
        """The highest version that a release has."""
        return next(version.number for version in reversed(self.versions) if version.since is not None)

    def needed_version(self, signature: OpSignature) -> Version:
        """The version that an operator of a model needs: the highest whose condition holds, else the first."""
        for version in reversed(self.versions):
            if version.when is not None and version.when(signature):
                return version
        return self.versions[0]

    def runtime_version(self, version: int) -> str:
        """The first release that has a version; ``""`` if none is known."""
        return next((known.since or "" for known in self.versions if known.number == version), "")

    def reason(self, version: Version) -> str:
        """What makes an operator need a version, in words; ``""`` for the first."""
        return "" if version.when is None else version.when.describe(self.inputs, self.outputs)

    def prepare(self, function: Function) -> Function:
        """Decorator: ``prepare(ctx: PrepareContext)`` checks, sets output shapes and returns data for ``reference``."""
        self.prepare_function = function
        return function

    def reference(self, function: Function) -> Function:
        """Decorator: ``reference(ctx: InvokeContext)`` returns the output array, or a tuple, one for each output."""
        self.reference_function = function
        return function

    def lower(self, function: Function) -> Function:
        """Decorator: ``lower(graph)`` states the operator in the kernel graph."""
        self.lower_function = function
        return function

    def reset(self, function: Function) -> Function:
        """Decorator: ``reset(data)``, for an operator that remembers: brings what ``prepare`` returned back to where it
        was before the first invocation."""
        self.reset_function = function
        return function

    def check_operands(self, ctx: Context) -> None:
        """Raise for a wrong number of operands, a missing one, or an input of a type outside ``types``."""
        if self._takes_all:
            return
        inputs, outputs = (self._input_rules, ctx.inputs), (self._output_rules, ctx.outputs)
        for what, ((names, needed, most), tensors) in (("input", inputs), ("output", outputs)):
            if not needed <= len(tensors) <= most:
                allowed = f"{needed} or more" if most == _ANY else _span(needed, most)
                listed = ", ".join(name for name, _, _ in names)
                ctx.fail(f"needs {allowed} {what}s ({listed}), got {len(tensors)}")
            last = len(names) - 1
            for position, tensor in enumerate(tensors):
                name, optional, legal = names[position if position < last else last]
                if tensor is None or tensor.index < 0:
                    if not optional:
                        ctx.fail(f"{what} {position} ({name}) is missing (tensor -1); it is not optional")
                elif tensor.sparsity is not None and name != self.sparse:
                    ctx.fail(f"{name} is a sparse constant, it must be dense")
                elif what == "input":
                    _check_type(ctx, name, legal, tensor)

    def check_output_types(self, ctx: Context) -> None:
        """Raise for an output of a type outside ``types``: to be called when prepare has set those that it sets."""
        names, _, _ = self._output_rules
        for position, tensor in enumerate(ctx.outputs):
            name, _, legal = names[min(position, len(names) - 1)]
            if tensor.index >= 0:
                _check_type(ctx, name, legal, tensor)

    def __post_init__(self) -> None:
        self._input_rules = self._rules(self.inputs)
        self._output_rules = self._rules(self.outputs)
        # As the operator of a delegate does, whose inputs are all weights of a model.
        only = all(len(names) == 1 and names[0].endswith("*") for names in (self.inputs, self.outputs))
        self._takes_all = only and not self.types and self.sparse == self.inputs[0].rstrip("*")

    def _rules(self, declared: tuple[str, ...]) -> tuple[list[_Operand], int, int]:
        operands = [(name.rstrip("?*"), name[-1] in "?*", self.types.get(name.rstrip("?*"))) for name in declared]
        most = _ANY if declared and declared[-1].endswith("*") else len(declared)
        return operands, sum(not optional for _, optional, _ in operands), most


_Operand = tuple[str, bool, "tuple[TensorType, ...] | None"]
_ANY = 1 << 31


def _check_type(ctx: Context, name: str, legal: tuple[TensorType, ...] | None, tensor: TensorInfo) -> None:
    if legal is not None and tensor.type not in legal:
        allowed = _listed([type_name(t) for t in legal])
        ctx.fail(f"{name} must be {allowed}, got {type_name(tensor.type)}")


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class Context:
    """What both phases know: the node, its operands, its options. ``None`` stands for an optional operand left out."""

    error: type[PrepareError] | type[InvokeError] = PrepareError
    phase = "prepare"

    def __init__(
        self,
        op: OpDef,
        version: int,
        node_index: int,
        options: Any,
        custom_options: bytes,
        inputs: Sequence[TensorInfo | None],
        outputs: Sequence[TensorInfo],
        intermediates: Sequence[TensorInfo] = (),
    ) -> None:
        self.op = op
        self.version = version
        self.node_index = node_index
        self.options = options
        self.custom_options = custom_options
        self.inputs = inputs
        self.outputs = outputs
        self.intermediates = intermediates

    def input(self, position: int) -> TensorInfo:
        """The input at a position; an error if it was left out."""
        tensor = self.optional(position)
        if tensor is None:
            self.fail(f"input {position} is missing")
        return tensor

    def optional(self, position: int) -> TensorInfo | None:
        """The input at a position, or ``None`` if it was left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def output(self, position: int = 0) -> TensorInfo:
        """The output at a position."""
        return self.outputs[position]

    def attributes(self) -> dict[str, Any]:
        """The custom options of a custom operator, a flexbuffer map, as a dictionary. Raises if they are not one."""
        if not self.custom_options:
            return {}
        from gossamer.schema import flexbuffers

        try:
            values = flexbuffers.loads(self.custom_options)
        except ValueError as error:
            self.fail(f"custom_options are not a flexbuffer ({error})")
        if not isinstance(values, dict):
            self.fail(f"custom_options must hold a flexbuffer map, got {type(values).__name__}")
        return values

    def require(self, condition: object, message: str) -> None:
        """Raise with this message unless the condition holds."""
        if not condition:
            self.fail(message)

    def require_shapes(self, condition: object, message: str) -> None:
        """`require` of the shapes of operands. Where the file leaves such a shape open, so that it is none yet, TFLite
        does not look before the operator runs: prepare ends here then, outputs are dynamic, and running it raises."""
        self.require(condition, message)

    def fail(self, message: str) -> NoReturn:
        """Raise `PrepareError` or `InvokeError`: which operator, where, what is wrong."""
        output = f', output "{self.outputs[0].name}"' if self.outputs else ""
        raise self.error(
            f"{self.op.name} (node {self.node_index}{output}): {message} [version {self.version}].\n"
            f"Node number {self.node_index} ({self.op.name}) failed to {self.phase}."
        )


class PrepareContext(Context, ABC):
    """What ``prepare`` may ask and say. What it returns is ``data`` of the `InvokeContext`, and ``previous`` when the
    node is prepared again, for other shapes; the first time that is ``None``."""

    previous: Any = None

    @abstractmethod
    def constant(self, position: int) -> Array | None:
        """The value of an input if it is known now, else ``None``. What is kept of a model depends on values that are
        asked for: whether one is known, the input says."""

    def all_known(self, *positions: int) -> list[Array] | None:
        """The values of several inputs if all are known now, else ``None``."""
        if not all(self.input(position).is_constant for position in positions):
            return None
        values = [self.constant(position) for position in positions]
        return [value for value in values if value is not None]

    def is_left_open(self, position: int) -> bool:
        """Whether the file leaves sizes of an input open, where some of TFLite's operators leave shapes to the run,
        whatever is known. Not where a node is prepared for the sizes that there are."""
        return -1 in self.input(position).shape_signature

    @abstractmethod
    def set_type(self, position: int, type: TensorType) -> None:
        """Give an output its type, whatever the file says: for operators whose TFLite kernels set it. Others check."""

    @abstractmethod
    def set_shape(self, position: int, shape: Sequence[int]) -> None:
        """Fix the shape of an output."""

    @abstractmethod
    def set_dynamic(self, position: int) -> None:
        """Leave the shape of an output to what ``reference`` returns."""

    def postpone_shape(self, position: int, operand: int) -> None:
        """Leave the shape of an output to what ``reference`` returns, which has as many bytes as an input: memory is
        planned for it, that of the input itself where the operator is `InPlace`."""
        self.set_dynamic(position)

    @abstractmethod
    def set_constant(self, position: int, value: Array) -> None:
        """Give an output its value now; operators after this one see a constant."""

    @abstractmethod
    def set_persistent(self, position: int) -> None:
        """Keep the memory of an output from one invocation to the next, as TFLite does where it writes it once."""

    def drop_unread(self, position: int) -> bool:
        """Leave an output out if nobody reads it: it gets no memory, and has no shape. Whether it is left out."""
        return False

    @abstractmethod
    def temporary(self, tensor_type: TensorType, shape: Sequence[int], *, persistent: bool = False) -> None:
        """Ask for scratch memory that TFLite's kernel takes, so that memory plans are equal."""

    @abstractmethod
    def subgraph(self, index: int) -> SubgraphCall:
        """Another subgraph of the model."""

    @property
    @abstractmethod
    def resources(self) -> Resources:
        """State shared by all subgraphs."""


class InvokeContext(Context, ABC):
    """What ``reference`` may use. ``data`` is what ``prepare`` returned."""

    error = InvokeError
    phase = "invoke"
    data: Any

    def poll(self) -> None:
        """For operators that run long: to be called now and then, it costs little. Raises `CancelledError`, to be let
        through, when the invocation is to end."""

    @abstractmethod
    def value(self, position: int) -> Array:
        """An input as an array of its shape, not to be written to; strings are ``bytes`` objects, packed integers
        come unpacked as int8 or uint8."""

    def optional_value(self, position: int) -> Array | None:
        """The same, or ``None`` if the input was left out."""
        return None if self.optional(position) is None else self.value(position)

    def out(self, position: int) -> Array | None:
        """Where an output is wanted, if it has such a place: an array that is returned need not be copied then."""
        return None

    def variable(self, position: int) -> Array:
        """A variable tensor among the inputs as a writable view."""
        tensor = self.inputs[position]
        if tensor is None or not tensor.is_variable:
            self.fail(f"input {position} must be a variable tensor")
        return self.value(position)

    def observe(self, tensor: TensorInfo, value: Array) -> None:
        """Tell those who watch it a value on the way: of a float intermediate tensor, of a state in each step."""

    @abstractmethod
    def subgraph(self, index: int) -> SubgraphCall:
        """Another subgraph of the model."""

    @property
    @abstractmethod
    def resources(self) -> Resources:
        """State shared by all subgraphs."""
