"""The graph that all sources become: nodes are TFLite's operators, values its tensors, before they have numbers.

A value's sizes may be open until the model runs. Nothing symbolic is kept of them: whatever is inferred is inferred in
two *worlds*, in which open sizes are different numbers, and what differs between the worlds is open. So a size that
follows from known ones is known, whatever way it was computed; so is what a chain of SHAPE, GATHER and PACK makes of
it; and an operator's own ``prepare`` is all that anybody needs to know about its shapes.

A graph has no list of nodes: it is what its outputs, and the effects that must happen, lead back to. What nobody needs
any more is gone. `Graph.ordered` gives an order of execution, that of creation where data leave it open.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, NoReturn

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.convert.infer import TYPE_OPTIONS, Call, Operand, Result, evaluate, infer, tensor_type
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.errors import ConvertError, GossamerError, PrepareError
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef
from gossamer.quantization import UNQUANTIZED, Quantization
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Table

Array = NDArray[Any]
Shape = tuple[int, ...]
Dims = tuple["int | None", ...]
WORLDS = 2

MOST_SPECULATED = 1024
"""Elements of a value that is computed for each world although it is not the same in all of them."""

MOST_FOLDED = 1 << 16
"""Bytes that a folded constant may have whatever it was computed from; more only if its operands have as many."""


class Refused(ConvertError):
    """An operator of the source that cannot be converted: why, and what to do about it."""


@record(frozen=True)
class Origin:
    """An operator of the source: its type, and what it is called there."""

    op: str
    name: str


class Size(NamedTuple):
    """A size that is open: a number for each world."""

    worlds: tuple[int, ...]


class Value:
    """A tensor. ``shapes``: its shape in each world; ``known``: its value in each, ``None`` if that is not known.

    ``node`` is what makes it, as output number ``index``; ``None`` for an input of a graph, and for a constant, which
    belongs to no graph: any may use it. ``users`` are the nodes that take it, as often as they do.
    """

    __slots__ = ("index", "is_variable", "known", "name", "node", "quantization", "shapes", "type", "users")

    def __init__(
        self,
        type: TensorType,
        shapes: tuple[Shape, ...],
        known: tuple[Array, ...] | None = None,
        name: str = "",
        quantization: Quantization = UNQUANTIZED,
    ) -> None:
        self.type = type
        self.shapes = shapes
        self.known = known
        self.name = name
        self.quantization = quantization
        self.node: Node | None = None
        self.index = 0
        self.users: list[Node] = []
        self.is_variable = False

    @property
    def dims(self) -> Dims:
        """The sizes, ``None`` for those that are open."""
        first, *others = self.shapes
        return tuple([size if all(o[n] == size for o in others) else None for n, size in enumerate(first)])

    @property
    def shape(self) -> Shape:
        """The sizes, where all are known. Raises `Refused` otherwise."""
        if self.shapes[0] != self.shapes[-1]:
            raise Refused(f"the shape of {self.name!r} is {list(self.dims)}, it must be known; give it with --shape")
        return self.shapes[0]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shapes[0])

    @property
    def is_static(self) -> bool:
        """Whether no size is open."""
        return self.shapes[0] == self.shapes[-1]

    @property
    def data(self) -> Array | None:
        """The value, if it is the same whatever open sizes are: that of a constant."""
        if self.known is None or any(other is not self.known[0] for other in self.known):
            return None
        return self.known[0]

    def size(self, axis: int) -> int | Size:
        """A size, or what it is in each world."""
        sizes = tuple([shape[axis] for shape in self.shapes])
        return sizes[0] if len(set(sizes)) == 1 else Size(sizes)

    def operand(self, world: int) -> Operand:
        """The tensor as operators see it in a world."""
        known = None if self.known is None else self.known[world]
        operand = Operand(self.type, self.shapes[world], known, self.quantization)
        operand.is_variable = self.is_variable
        return operand

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of the elements."""
        return numpy_dtype(self.type)

    def __repr__(self) -> str:
        return f"{type_name(self.type)}{list(self.dims)} {self.name!r}"


class Node:
    """An operator: its ``inputs`` (``None`` where an optional one is left out), ``outputs`` and options.

    ``op`` is the builtin's name, or that of a custom operator if there are ``custom_options``. ``graphs``: those that
    it calls, by the option that will hold their number. ``intermediates``: what has the scales of values within an
    integer LSTM. ``after``: an effect that must have happened before.
    """

    __slots__ = (
        "after",
        "custom_options",
        "graphs",
        "inputs",
        "intermediates",
        "op",
        "options",
        "order",
        "origins",
        "outputs",
    )

    def __init__(
        self,
        op: str,
        inputs: list[Value | None],
        outputs: list[Value],
        options: Table | None,
        order: tuple[int, int],
        origins: tuple[Origin, ...],
        custom_options: bytes | None = None,
        graphs: Mapping[str, Graph] | None = None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.options = options
        self.order = order
        self.origins = origins
        self.custom_options = custom_options
        self.graphs = dict(graphs or {})
        self.intermediates: list[Value] = []
        self.after: Node | None = None
        for index, output in enumerate(outputs):
            output.node, output.index = self, index
        for value in inputs:
            if value is not None:
                value.users.append(self)

    @property
    def output(self) -> Value:
        """The first output."""
        return self.outputs[0]

    def input(self, position: int) -> Value:
        """An input that is there. Raises `IndexError`."""
        value = self.inputs[position]
        if value is None:
            raise IndexError(f"input {position} of {self.op} is left out")
        return value

    def constant(self, position: int) -> Array | None:
        """The value of an input that is a constant, else ``None``."""
        value = self.inputs[position] if position < len(self.inputs) else None
        return None if value is None else value.data

    @property
    def is_custom(self) -> bool:
        """Whether it is no builtin."""
        return self.custom_options is not None

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.inputs))})"


_serials = itertools.count()


class Graph:
    """A graph in the making: `add` puts operators on values and says what comes out. ``folds``: operators all of whose
    operands are known are run there and then, and no part of it.

    ``origin`` is the operator of the source that is being converted, and ``position`` where in the order of execution
    what it becomes belongs; both are set around the lowering of each.
    """

    def __init__(self, name: str = "main", *, folds: bool = True) -> None:
        self.name = name
        self.folds = folds
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.effects: list[Node] = []
        self.origins: tuple[Origin, ...] = ()
        self._position: int | None = None
        self._made: list[Node] | None = None
        self._gone: list[Node] | None = None

    # -- values

    def input(self, name: str, type: TensorType, shape: Iterable[int | Size]) -> Value:
        """A new input of the graph."""
        value = Value(type, shapes_of(shape), None, name)
        self.inputs.append(value)
        return value

    def constant(self, value: ArrayLike, type: TensorType | None = None, name: str = "") -> Value:
        """A constant. Python's floats become float32, its integers int32, ``bytes`` and ``str`` strings."""
        if isinstance(value, np.ndarray):
            array = value
        elif type is not None:
            array = np.asarray(value, numpy_dtype(type))
        else:
            array = np.asarray(value)
            if array.dtype == np.float64:
                array = array.astype(np.float32)
            elif array.dtype == np.int64:
                array = array.astype(np.int32)
        if array.dtype.kind in "SU":
            array = np.asarray(array, object)
        return constant(array, type, name)

    def value(self, operand: Any) -> Value:
        """The value itself, or a constant of it."""
        return operand if isinstance(operand, Value) else self.constant(operand)

    # -- operators

    def add(
        self,
        op: str,
        *operands: Any,
        type: TensorType | None = None,
        name: str = "",
        quantization: Quantization = UNQUANTIZED,
        shape: Iterable[int | Size] | None = None,
        **options: Any,
    ) -> Value:
        """An operator with one output. See `add_many`."""
        shapes = None if shape is None else [shape]
        return self.add_many(
            op, operands, 1, types=[type], name=name, quantization=quantization, shapes=shapes, **options
        )[0]

    def add_many(
        self,
        op: str,
        operands: Sequence[Any],
        outputs: int,
        *,
        types: Sequence[TensorType | None] = (),
        name: str = "",
        quantization: Quantization = UNQUANTIZED,
        shapes: Sequence[Iterable[int | Size]] | None = None,
        **options: Any,
    ) -> list[Value]:
        """A builtin operator on values (or what `value` makes constants of; ``None`` is left out): its outputs.

        ``options`` are those of the schema; one that names the type of the last output follows from ``types``, and is
        int32 else. Types and shapes of the outputs are those that the operator's prepare
        gives, ``types`` helps where several are possible, and ``shapes`` says what depends on values. If all operands
        are known, the operator is run and gone. Raises `Refused` if the operator refuses the operands.
        """
        found = find_op(op)
        if found is None:
            raise KeyError(op)
        inputs = [None if operand is None else self.value(operand) for operand in operands]
        while inputs and inputs[-1] is None:
            inputs.pop()
        for option in TYPE_OPTIONS:
            if option in found.options.FIELD and option not in options:
                options[option] = (types[-1] if types else None) or TensorType.INT32
        stored = found.options(**options)
        given = None if shapes is None else [shapes_of(shape) for shape in shapes]
        try:
            results = _in_worlds(found, stored, inputs, outputs, types, quantization, given)
        except PrepareError as error:
            raise Refused(_cause(error, found, inputs)) from error
        name = name or (self.origins[0].name if self.origins else "")
        values = []
        for position, worlds in enumerate(results):
            known = _same(worlds)
            value = Value(worlds[0].type, tuple([_shape(result) for result in worlds]), known, name, quantization)
            if position:
                value.name = f"{name}:{position}" if name else ""
            values.append(value)
        if self.folds and all(value.data is not None for value in values) and not found.side_effects:
            return values
        node = self._node(op, inputs, values, stored if found.options is not Table else None)
        if found.side_effects:
            self._effect(node, not values)
        return values

    def add_custom(
        self,
        name: str,
        operands: Sequence[Any],
        outputs: Sequence[tuple[TensorType, Iterable[int | Size]]],
        custom_options: bytes = b"",
        *,
        effect: bool = False,
    ) -> list[Value]:
        """A custom operator, of which nothing is known but what the caller says: types and shapes of its outputs."""
        inputs = [None if operand is None else self.value(operand) for operand in operands]
        values = [Value(type, shapes_of(shape), None, self._name(n)) for n, (type, shape) in enumerate(outputs)]
        node = self._node(name, inputs, values, None, custom_options)
        if effect:
            self._effect(node, True)
        return values

    def call(
        self,
        op: str,
        operands: Sequence[Any],
        outputs: Sequence[Value],
        graphs: Mapping[str, Graph],
        options: Mapping[str, Any] | None = None,
        *,
        effect: bool = False,
    ) -> list[Value]:
        """An operator that runs other graphs: IF, WHILE, CALL_ONCE. ``outputs`` show types and shapes of the results;
        ``graphs`` are by the option of the schema that names them. ``effect``: it must run if nobody needs results."""
        found = find_op(op)
        if found is None:
            raise KeyError(op)
        inputs = [None if operand is None else self.value(operand) for operand in operands]
        values = [Value(value.type, value.shapes, None, self._name(n)) for n, value in enumerate(outputs)]
        node = self._node(op, inputs, values, found.options(**options or {}), None, graphs)
        if effect:
            self._effect(node, True)
        return values

    def _node(
        self,
        op: str,
        inputs: list[Value | None],
        outputs: list[Value],
        options: Table | None,
        custom_options: bytes | None = None,
        graphs: Mapping[str, Graph] | None = None,
    ) -> Node:
        serial = next(_serials)
        order = (serial if self._position is None else self._position, serial)
        node = Node(op, inputs, outputs, options, order, self.origins, custom_options, graphs)
        if self._made is not None:
            self._made.append(node)
        return node

    def begin(self, op: str, graphs: Mapping[str, Graph]) -> None:
        """An operator without operands that calls other graphs, before all other effects."""
        nodes = self.ordered()
        self.call(op, [], [], graphs, effect=True)
        first = self.effects.pop()
        self.effects.insert(0, first)
        first.after = None
        for node in nodes:
            found = find_op(node.op)
            if node.after is None and found is not None and (found.side_effects or node in self.effects):
                node.after = first

    def _name(self, index: int) -> str:
        name = self.origins[0].name if self.origins else ""
        return f"{name}:{index}" if index and name else name

    def _effect(self, node: Node, happens: bool) -> None:
        """Puts a node behind the last one that ``happens`` whether or not somebody needs what it gives."""
        node.after = self.effects[-1] if self.effects else None
        if happens:
            self.effects.append(node)

    # -- changes

    @contextmanager
    def at(self, *origins: Origin, position: int | None = None) -> Iterator[None]:
        """What is added inside stands for these operators of the source."""
        before = self.origins, self._position
        self.origins, self._position = origins, position
        try:
            yield
        finally:
            self.origins, self._position = before

    @contextmanager
    def recorded(self) -> Iterator[tuple[list[Node], list[Node]]]:
        """The nodes that are made inside, and those that nobody needs any more."""
        before = self._made, self._gone
        made: list[Node] = []
        gone: list[Node] = []
        self._made, self._gone = made, gone
        try:
            yield made, gone
        finally:
            self._made, self._gone = before

    def replace(self, old: Value, new: Value) -> None:
        """Whoever takes one value takes another one of the same type instead. Values that nobody takes any more
        release what they were made from."""
        if old is new:
            return
        for user in dict.fromkeys(old.users):
            user.inputs = [new if value is old else value for value in user.inputs]
        new.users += old.users
        old.users = []
        if old in self.outputs:
            self.outputs = [new if value is old else value for value in self.outputs]
        self.release(old.node)

    def set_input(self, node: Node, position: int, new: Value | None) -> None:
        """Another input for a node."""
        old = node.inputs[position]
        if old is new:
            return
        node.inputs[position] = new
        if new is not None:
            new.users.append(node)
        if old is not None and node in old.users:
            old.users.remove(node)
            self.release(old.node)

    def is_needed(self, node: Node) -> bool:
        """Whether somebody takes an output of a node, or it has an effect."""
        return any(value.users or value in self.outputs for value in node.outputs) or node in self.effects

    def release(self, node: Node | None) -> None:
        """Nobody needs a node, unless somebody does; then it takes nothing any more."""
        waiting = [] if node is None else [node]
        while waiting:
            node = waiting.pop()
            if self.is_needed(node):
                continue
            if self._gone is not None:
                self._gone.append(node)
            for value in node.inputs:
                if value is not None and node in value.users:
                    value.users = [user for user in value.users if user is not node]
                    if value.node is not None:
                        waiting.append(value.node)

    def ordered(self) -> list[Node]:
        """The nodes that are needed, in an order in which they can run. ``users`` of values are those among them.

        Raises `ConvertError` for a cycle.
        """
        needed: dict[Node, set[Node]] = {}
        waiting = [value.node for value in self.outputs if value.node is not None] + list(self.effects)
        while waiting:
            node = waiting.pop()
            if node in needed:
                continue
            before = {value.node for value in node.inputs if value is not None and value.node is not None}
            if node.after is not None:
                before.add(node.after)
            needed[node] = before
            waiting += before
        followers: dict[Node, list[Node]] = {node: [] for node in needed}
        for node, before in needed.items():
            for one in before:
                followers[one].append(node)
        open_ = {node: len(before) for node, before in needed.items()}
        ready = [(node.order, id(node), node) for node, count in open_.items() if not count]
        heapq.heapify(ready)
        order = []
        while ready:
            node = heapq.heappop(ready)[2]
            order.append(node)
            for follower in followers[node]:
                open_[follower] -= 1
                if not open_[follower]:
                    heapq.heappush(ready, (follower.order, id(follower), follower))
        if len(order) < len(needed):
            raise ConvertError(f"graph {self.name!r}: operators that wait for each other")
        self._count_users(order)
        return order

    def _count_users(self, order: list[Node]) -> None:
        for value in [*self.inputs, *self.outputs]:
            value.users = []
        for node in order:
            for operand in [*node.inputs, *node.outputs]:
                if operand is not None:
                    operand.users = []
        for node in order:
            for operand in node.inputs:
                if operand is not None:
                    operand.users.append(node)


class Signature(NamedTuple):
    """What can be called from outside: a graph, its inputs and outputs by the names of arguments and results."""

    key: str
    graph: Graph
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]


def after(signatures: Sequence[Signature], change: Callable[[], object]) -> list[Signature]:
    """The signatures after a change of their graphs, in which other values may take the places of outputs."""
    places = [[one.graph.outputs.index(value) for value in one.outputs.values()] for one in signatures]
    change()
    return [
        one._replace(outputs={name: one.graph.outputs[n] for name, n in zip(one.outputs, where, strict=True)})
        for one, where in zip(signatures, places, strict=True)
    ]


def constant(array: Array, type: TensorType | None = None, name: str = "") -> Value:
    """A constant of an array, which is not copied and must not change."""
    return Value(type or tensor_type(array.dtype), (array.shape,) * WORLDS, (array,) * WORLDS, name)


def shapes_of(shape: Iterable[int | Size]) -> tuple[Shape, ...]:
    """The shape in each world."""
    sizes = tuple(shape)
    return tuple(
        [tuple([size.worlds[w] if isinstance(size, Size) else int(size) for size in sizes]) for w in range(WORLDS)]
    )


def unknown(number: int, *, large: bool = False, low: int = 1, high: int | None = None) -> Size:
    """An open size, the same for the same ``number``. ``large`` for those of pictures: it can be halved often, and is
    no less after windows and strides than what networks need. ``low`` and ``high`` bound it."""
    first, second = (64 * (9 + number), 64 * (15 + number)) if large else (12 * (2 + number), 20 * (2 + number))
    if first < low:
        first, second = low + number, 2 * (low + number)
    if high is not None and second > high:  # far apart: what is halved often and rounded up must not become the same
        second = max(high - number % max((high - low) // 4, 1), low + 1)
        first = max(second // 2, low)
    return Size((first, second))


def _in_worlds(
    op: OpDef,
    options: Table,
    inputs: Sequence[Value | None],
    outputs: int,
    types: Sequence[TensorType | None],
    quantization: Quantization,
    shapes: Sequence[tuple[Shape, ...]] | None,
) -> list[list[Result]]:
    """Each output in each world; worlds that are the same for the operator are looked at once."""
    present = [value for value in inputs if value is not None]
    alike = all(value.is_static and (value.known is None or value.data is not None) for value in present)
    runs = all(value.known is not None for value in present) and not op.side_effects and bool(present)
    found: list[list[Result]] = []
    for world in range(1 if alike else WORLDS):
        operands = [None if value is None else value.operand(world) for value in inputs]
        call = Call(op, options, operands, outputs, types, quantization)
        results = infer(call)
        if runs and _worth(results, operands, alike):
            with suppress(GossamerError):  # what it says it says when the model runs
                results = evaluate(call)
        found.append(results)
    if alike:
        found = found * WORLDS
    if shapes is not None:
        found = [
            [
                result if result.shape is not None else Result(result.type, shapes[n][world], result.value)
                for n, result in enumerate(results)
            ]
            for world, results in enumerate(found)
        ]
    return [[results[n] for results in found] for n in range(outputs)]


def _worth(results: Sequence[Result], operands: Sequence[Operand | None], alike: bool) -> bool:
    """Whether to run an operator whose operands are known now."""
    if any(result.shape is None for result in results):
        sizes = [operand.value.size for operand in operands if operand is not None and operand.value is not None]
        return max(sizes, default=0) <= MOST_SPECULATED
    elements = sum(math.prod(result.shape) for result in results if result.shape is not None)
    if not alike:
        return elements <= MOST_SPECULATED
    made = sum(math.prod(r.shape) * numpy_dtype(r.type).itemsize for r in results if r.shape is not None)
    given = sum(operand.value.nbytes for operand in operands if operand is not None and operand.value is not None)
    return made <= max(given, MOST_FOLDED)


def _same(worlds: Sequence[Result]) -> tuple[Array, ...] | None:
    """What is known in each world: one array if it is the same in all."""
    values = [result.value for result in worlds if result.value is not None]
    if len(values) < len(worlds):
        return None
    first = values[0]
    if all(
        value is first or (value.shape == first.shape and value.tobytes() == first.tobytes())
        if not first.dtype.hasobject
        else value.tolist() == first.tolist()
        for value in values
    ):
        return (first,) * len(worlds)
    return tuple(values)


def _shape(result: Result) -> Shape:
    if result.shape is None:
        raise Refused("the shape of a result depends on values, and nothing else tells it")
    return result.shape


def _cause(error: PrepareError, op: OpDef, inputs: Sequence[Value | None]) -> str:
    text = str(error).partition(" [version ")[0].replace(' (node 0, output "")', "")
    got = ", ".join("-" if value is None else f"{type_name(value.type)}{list(value.dims)}" for value in inputs)
    return f"{text} (inputs: {got})"


def refuse(why: str) -> NoReturn:
    """Raise `Refused`."""
    raise Refused(why)
