"""Shapes of a model whose inputs have other ones, as each operator's own ``prepare`` says them.

Sizes may be left open: then all is inferred for two different numbers, and what comes out differently is open too
(`gossamer.convert.graph` has these worlds). What depends on values stays as the file has it.

Variables get a place for each example, if their number is known. A constant that holds the old batch stops that: the
shape of a RESHAPE, the size of a SLICE. It is changed where its operator can be shown to treat the examples of a batch
one by one: its operand has more of them than before and is else as it was; with the first number of the constant in
proportion, or -1, the result has as many more, and is else as it was. Both are stored one example behind the other, so
each example's part is what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from gossamer.convert.graph import MOST_SPECULATED, WORLDS, Node, Size, Value, shapes_of
from gossamer.convert.importers.tflite import graphs_of_model
from gossamer.convert.infer import Call, Operand, Result, evaluate, infer
from gossamer.errors import ConvertError, EditError, GossamerError, PrepareError
from gossamer.model.model import Model
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef
from gossamer.schema.enums import TensorType
from gossamer.schema.tables import Buffer, Tensor

Array = np.ndarray[Any, Any]
Key = tuple[int, int]
"""A tensor: the numbers of subgraph and tensor."""

SHAPE_ONLY = ("SHAPE", "RANK", "ZEROS_LIKE")
"""Operators whose results say what their operands' shapes are."""


class Change(NamedTuple):
    """A constant that held the old batch: the operator that takes it, and its values before and after."""

    subgraph: int
    node: int
    op: str
    old: tuple[int, ...]
    new: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.op} (node {self.node}): {list(self.old)} became {list(self.new)}"


def with_shapes(
    model: Model, shapes: Mapping[int, Sequence[int | Size]], custom_ops: Sequence[OpDef] = ()
) -> tuple[Model, list[Change]]:
    """A model whose inputs have these shapes, by the numbers of their tensors in the first subgraph, and the constants
    that were changed for it.

    Raises `EditError` for an operator that refuses, or would mix the examples of a batch.
    """
    try:
        return _Inference(model, custom_ops).run(shapes)
    except ConvertError as error:
        raise EditError(f"shapes cannot be worked out again: {error}") from error


class _Inference:
    def __init__(self, model: Model, custom_ops: Sequence[OpDef]) -> None:
        self.model = model
        self.custom = {op.name: op for op in custom_ops}
        stored = graphs_of_model(model)
        self.graphs = stored.graphs
        self.values = stored.values
        self.unranked = stored.unranked
        self.numbers = {id(graph): number for number, graph in enumerate(stored.graphs)}
        self.keys = {id(value): (s, t) for s, values in enumerate(stored.values) for t, value in enumerate(values)}
        self.nodes = [self._nodes(number) for number in range(len(stored.graphs))]
        self.old = {id(value): value.shapes for values in stored.values for value in values}
        self.open: set[int] = set()
        self.changed: set[int] = set()
        self.constants: dict[int, dict[int, Array]] = {}
        self.changes: list[Change] = []
        self.done: dict[int, tuple[tuple[tuple[int, ...], ...], ...]] = {}

    def _nodes(self, number: int) -> list[Node]:
        """The operators of a subgraph in the order of the file."""
        found: dict[int, Node] = {}
        for node in _all_nodes(self.values[number]):
            found[node.order[0]] = node
        return [found[order] for order in sorted(found)]

    def run(self, shapes: Mapping[int, Sequence[int | Size]]) -> tuple[Model, list[Change]]:
        for number, shape in shapes.items():
            self._set(self.values[0][number], shapes_of(shape))
        self._subgraph(0)
        return self._written(), self.changes

    def _set(self, value: Value, shapes: tuple[tuple[int, ...], ...]) -> None:
        if value.shapes != shapes:
            value.shapes = shapes
            self.changed.add(id(value))

    def _subgraph(self, number: int) -> None:
        for index, node in enumerate(self.nodes[number]):
            inputs = [value for value in node.inputs if value is not None]
            if any(id(value) in self.open for value in inputs):
                self.open.update(map(id, node.outputs))  # what depends on values stays as it is stored
            elif any(id(value) in self.changed or self._is_computed(value) for value in inputs):
                self._node(number, index, node)

    def _is_computed(self, value: Value) -> bool:
        return value.node is not None and value.known is not None

    def _node(self, number: int, index: int, node: Node) -> None:
        if node.graphs:
            self._call(number, index, node)
            return
        op = self.custom.get(node.op) or find_op(node.op, custom=node.is_custom)
        if op is None:
            if any(id(value) in self.changed for value in node.inputs if value is not None):
                raise EditError(
                    f"nobody knows what {node.op} (node {index}) gives for other shapes: "
                    "pass the operator as custom_ops, or cut it off"
                )
            return
        try:
            results = self._results(op, node)
            error: PrepareError | None = None
        except PrepareError as refused:
            results, error = None, refused
        if results is None or self._loses_batch(node, results):
            adapted = self._adapted(number, index, op, node)
            if adapted is None:
                raise EditError(self._cause(index, node, error))
            results = adapted
        for value, worlds in zip(node.outputs, results, strict=True):
            if any(result.shape is None for result in worlds):
                self.open.add(id(value))
                continue
            self._set(value, tuple([result.shape for result in worlds if result.shape is not None]))
            known = [result.value for result in worlds if result.value is not None]
            value.known = tuple(known) if len(known) == WORLDS else None
        if any(result.shape is None for worlds in results for result in worlds):
            self.open.update(map(id, node.outputs))

    def _results(self, op: OpDef, node: Node, replaced: Mapping[int, Array] | None = None) -> list[list[Result]]:
        """Each output in each world."""
        found = []
        for world in range(WORLDS):
            operands = [
                None if value is None else self._operand(value, world, (replaced or {}).get(position))
                for position, value in enumerate(node.inputs)
            ]
            call = Call(
                op,
                node.options if type(node.options) is op.options else op.options(),
                operands,
                len(node.outputs),
                [value.type for value in node.outputs],
                node.outputs[0].quantization if node.outputs else Value(TensorType.FLOAT32, ()).quantization,
                node.custom_options or b"",
                [self._operand(value, world, None) for value in node.intermediates],
            )
            results = infer(call)
            known = [operand for operand in operands if operand is not None]
            small = all(operand.value is not None and operand.value.size <= MOST_SPECULATED for operand in known)
            if known and small and not op.side_effects and all(result.value is None for result in results):
                with suppress(GossamerError):  # what it says it says when the model runs
                    results = evaluate(call)
            found.append(results)
        return [[results[n] for results in found] for n in range(len(node.outputs))]

    def _operand(self, value: Value, world: int, replaced: Array | None) -> Operand:
        operand = value.operand(world)
        if replaced is not None:
            operand.value = replaced
        operand.index = self.keys[id(value)][1]
        operand.name = value.name
        return operand

    # -- batches

    def _more(self, node: Node) -> tuple[int, ...] | None:
        """How the first size of the operands that changed did in each world, old and new, if nothing else did."""
        ratios = set()
        for value in node.inputs:
            if value is None or id(value) not in self.changed:
                continue
            old = self.old[id(value)]
            for world, (before, now) in enumerate(zip(old, value.shapes, strict=True)):
                if len(before) != len(now) or before[1:] != now[1:] or not before:
                    return None
                ratios.add((world, before[0], now[0]))
        found = sorted(ratios)
        return tuple([n for one in found for n in one]) if found else None

    def _loses_batch(self, node: Node, results: list[list[Result]]) -> bool:
        """Whether more examples go in, and as many as before come out."""
        more = self._more(node)
        if more is None or node.op in SHAPE_ONLY or not results:
            return False
        for value, worlds in zip(node.outputs, results, strict=True):
            old = self.old[id(value)]
            if any(
                result.shape is None or result.value is not None or result.shape != old[w]
                for w, result in enumerate(worlds)
            ):
                return False
        return True

    def _adapted(self, number: int, index: int, op: OpDef, node: Node) -> list[list[Result]] | None:
        """The results with a constant changed so that the operator does for each example what it did."""
        changed = [v for v in node.inputs if v is not None and id(v) in self.changed]
        if self._more(node) is None or not changed:
            return None
        before, now = self.old[id(changed[0])][0][0], [shape[0] for shape in changed[0].shapes]
        if before <= 0:
            return None
        state = [v for v in node.inputs if v is not None and v.is_variable and v.shapes[0][:1] == (before,)]
        if state and len(set(now)) == 1:
            for one in state:
                self._set(one, tuple([(now[0], *shape[1:]) for shape in one.shapes]))
            try:
                return self._results(op, node)
            except PrepareError:
                return None
        for position, value in enumerate(node.inputs):
            data = None if value is None or value.node is not None else value.data
            if data is None or data.ndim != 1 or not data.size or data.dtype.kind != "i" or data.size > 8:
                continue
            first, fixed = int(data[0]), len(set(now)) == 1
            if first <= 0 or (fixed and first * now[0] % before):
                continue
            scaled = first * now[0] // before if fixed else -1
            new = data.copy()
            new[0] = scaled
            try:
                results = self._results(op, node, {position: new})
            except GossamerError:
                continue
            if all(
                self._in_proportion(v, worlds, before, now) for v, worlds in zip(node.outputs, results, strict=True)
            ):
                self.constants.setdefault(id(node), {})[position] = new
                self.changes.append(Change(number, index, node.op, tuple(data.tolist()), tuple(new.tolist())))
                return results
        return None

    def _in_proportion(self, value: Value, worlds: list[Result], before: int, now: list[int]) -> bool:
        old = self.old[id(value)]
        return all(
            result.shape is not None
            and len(result.shape) == len(old[w])
            and bool(old[w])
            and result.shape[0] * before == old[w][0] * now[w]
            and result.shape[1:] == old[w][1:]
            for w, result in enumerate(worlds)
        )

    def _cause(self, index: int, node: Node, error: PrepareError | None) -> str:
        shapes = ", ".join(str(list(value.dims)).replace("None", "?") for value in node.inputs if value is not None)
        where = (
            f"{node.op} (node {index}, output {node.outputs[0].name!r})"
            if node.outputs
            else f"{node.op} (node {index})"
        )
        fixed = [value for value in node.inputs if value is not None and value.node is None and value.data is not None]
        small = next(
            (v.data.tolist() for v in fixed if v.data is not None and v.data.size <= 8 and v.data.dtype.kind == "i"),
            None,
        )
        if small is not None:
            return f"{where} is made for the old shape: its constant is {small}, its operands would be {shapes}"
        if error is None:
            return (
                f"{where} would give as much for more examples as for those before: it mixes them (operands {shapes})"
            )
        text = str(error).partition(" [version ")[0].partition(": ")[2] or str(error)
        return f"{where} refuses the new shapes, {shapes}: {text}"

    # -- subgraphs

    def _call(self, number: int, index: int, node: Node) -> None:
        for graph in dict.fromkeys(node.graphs.values()):
            callee = self.numbers[id(graph)]
            operands = [v for v in node.inputs if v is not None][-len(graph.inputs) :] if graph.inputs else []
            if len(operands) != len(graph.inputs):
                raise EditError(f"{node.op} (node {index}) has {len(operands)} operands for {len(graph.inputs)} inputs")
            shapes = tuple([value.shapes for value in operands])
            if callee in self.done:
                if self.done[callee] != shapes:
                    raise EditError(
                        f"{node.op} (node {index}) calls a subgraph that another one calls with other shapes"
                    )
                continue
            self.done[callee] = shapes
            for value, operand in zip(graph.inputs, operands, strict=True):
                self._set(value, operand.shapes)
            self._subgraph(callee)
            results = graph.outputs
            if len(results) == len(node.outputs):
                for value, result in zip(node.outputs, results, strict=True):
                    if id(result) in self.open:
                        self.open.add(id(value))
                    elif len(result.shapes[0]) == len(value.shapes[0]):
                        self._set(value, result.shapes)
            if node.op == "WHILE" and len(results) == len(operands):
                for operand, result in zip(operands, results, strict=True):
                    if id(result) not in self.open and result.shapes != operand.shapes:
                        raise EditError(
                            f"{node.op} (node {index}) would change the shape of {operand.name!r} as it turns"
                        )

    # -- the result

    def _written(self) -> Model:
        buffers = list(self.model.buffers)
        subgraphs = []
        for number, subgraph in enumerate(self.model.subgraphs):
            tensors = list(subgraph.tensors)
            operators = list(subgraph.operators)
            for index, value in enumerate(self.values[number]):
                if id(value) in self.changed and id(value) not in self.open and value not in self.unranked:
                    tensors[index] = _with_dims(tensors[index], value.dims)
            for index, node in enumerate(self.nodes[number]):
                for position, data in self.constants.get(id(node), {}).items():
                    old = operators[index].inputs[position]
                    buffers.append(Buffer(data=np.frombuffer(data.tobytes(), np.uint8)))
                    tensors.append(tensors[old].replace(buffer=len(buffers) - 1, name=f"{tensors[old].name}_of_batch"))
                    inputs = list(operators[index].inputs)
                    inputs[position] = len(tensors) - 1
                    operators[index] = _reshaped(operators[index].replace(inputs=tuple(inputs)), data)
            subgraphs.append(
                subgraph.replace(tensors=tuple(tensors), operators=tuple(operators))
                if subgraph.has("operators")
                else subgraph.replace(tensors=tuple(tensors))
            )
        return self.model.replace(buffers=tuple(buffers), subgraphs=tuple(subgraphs))


def _all_nodes(values: Sequence[Value]) -> list[Node]:
    """The operators that make or take these values."""
    found: dict[int, Node] = {}
    for value in values:
        for node in (*value.users, *([] if value.node is None else [value.node])):
            found[id(node)] = node
    return list(found.values())


def _with_dims(tensor: Tensor, dims: Sequence[int | None]) -> Tensor:
    shape = tuple([1 if size is None else size for size in dims])
    if None in dims:
        return tensor.replace(shape=shape, shape_signature=tuple([-1 if size is None else size for size in dims]))
    if tensor.has("shape_signature"):
        return tensor.replace(shape=shape, shape_signature=shape)
    return tensor.replace(shape=shape)


def _reshaped(operator: Any, data: Array) -> Any:
    """RESHAPE says its shape twice."""
    options = operator.builtin_options
    if options is None or "new_shape" not in options.FIELD or not options.has("new_shape"):
        return operator
    return operator.replace(builtin_options=options.replace(new_shape=tuple(data.tolist())))
