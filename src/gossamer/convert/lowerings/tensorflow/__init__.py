"""What TensorFlow's operators become. See `Call` for what a lowering is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gossamer.convert.graph import Dims, Graph, Refused, Value, constant
from gossamer.convert.lowerings import Lowerings
from gossamer.convert.messages.tensorflow import NodeDef
from gossamer.schema.enums import TensorType

if TYPE_CHECKING:
    from gossamer.arrays import NDArray
    from gossamer.convert.report import Report
    from gossamer.convert.request import Request
    from gossamer.convert.sources.attributes import Attributes
    from gossamer.convert.sources.saved_model import Asset


class Handle:
    """What an edge carries that is no tensor in TFLite: it exists only while a model is converted."""


class AssetPath(Handle):
    """Where a file is that belongs to the model."""

    def __init__(self, asset: Asset) -> None:
        self.asset = asset

    def __repr__(self) -> str:
        return f"path {self.asset.path!r}"


class Importer(Protocol):
    """Who walks the graph, as lowerings of calls, control flow and state see it."""

    request: Request
    report: Report

    def inline(self, graph: Graph, name: str, arguments: Sequence[Any]) -> list[Any]:
        """The results of a function, its operators put into the graph. Raises `ConvertError`."""

    def handed_on(self, name: str) -> list[int | None]:
        """For each result of a function, which argument it is, if it is one."""

    def variable(self, node: NodeDef) -> Variable:
        """The variable that a node stands for."""

    def handle(self, node: NodeDef, make: Callable[[], Handle]) -> Handle:
        """The one handle of a node of the graph."""


class Variable(Handle):
    """A variable: a constant, if nobody writes it. ``initial`` reads its first value; ``None`` if it has none."""

    def __init__(
        self,
        name: str,
        container: str,
        type: TensorType,
        shape: Dims | None,
        is_written: bool,
        initial: Callable[[], Value] | None,
    ) -> None:
        self.name = name
        self.container = container
        self.type = type
        self.shape = shape
        self.is_written = is_written
        self.initial = initial
        self._value: Value | None = None
        self._handles: dict[int, tuple[Graph, Value]] = {}

    def of(self, graph: Graph) -> Value:
        """The handle in a graph."""
        if id(graph) not in self._handles:
            handle = graph.add(
                "VAR_HANDLE", type=TensorType.RESOURCE, container=self.container, shared_name=self.name, shape=()
            )
            self._handles[id(graph)] = (graph, handle)
        return self._handles[id(graph)][1]

    @property
    def is_used(self) -> bool:
        """Whether any graph has it."""
        return bool(self._handles)

    def read(self, graph: Graph) -> Value:
        """The value. Raises `Refused` if the variable was not saved."""
        if not self.is_written:
            if self._value is None:
                if self.initial is None:
                    raise Refused(f"variable {self.name!r} has no value in the file; save the model with its variables")
                self._value = self.initial()
            return self._value
        shape = self.shape
        if shape is None and self.initial is not None:
            shape = self.initial().dims
        if shape is None or None in shape:
            raise Refused(f"variable {self.name!r} has no fixed shape; give it one")
        return graph.add(
            "READ_VARIABLE", self.of(graph), type=self.type, shape=[size for size in shape if size is not None]
        )

    def __repr__(self) -> str:
        return f"variable {self.name!r}"


class Call:
    """A node to be lowered: its ``inputs`` (values, or handles), its ``attributes``, and the graph that takes it."""

    def __init__(
        self, importer: Importer, graph: Graph, node: NodeDef, attributes: Attributes, inputs: Sequence[Any]
    ) -> None:
        self.importer = importer
        self.graph = graph
        self.node = node
        self.attributes = attributes
        self.inputs = inputs

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.node.op

    def value(self, position: int) -> Value:
        """An input that is a tensor. Raises `Refused`."""
        if position >= len(self.inputs):
            raise Refused(f"input {position} is missing")
        found = self.inputs[position]
        if not isinstance(found, Value):
            raise Refused(f"input {position} is a {found!r}, it must be a tensor")
        return found

    def values(self, start: int = 0, stop: int | None = None) -> list[Value]:
        """The inputs from one to before another, all tensors. Raises `Refused`."""
        return [self.value(position) for position in range(start, len(self.inputs) if stop is None else stop)]

    def constant(self, position: int, what: str) -> NDArray[Any]:
        """The value of an input that must be a constant. Raises `Refused`; ``what`` names it."""
        found = self.value(position).data
        if found is None:
            raise Refused(f"{what} (input {position}) must be a constant, it is computed")
        return found

    def add(self, op: str, *operands: Any, **options: Any) -> Value:
        """`Graph.add`."""
        return self.graph.add(op, *operands, **options)


lowers: Lowerings[Call] = Lowerings(__name__)

__all__ = ["AssetPath", "Call", "Handle", "Variable", "constant", "lowers"]
