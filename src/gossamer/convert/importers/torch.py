"""Programs of torch.export: a graph of ATen's operators with its weights.

Operators that change a tensor in place become functional ones: what is read later under any name that shows the same
memory is made of the new value. Symbolic sizes are open, each another number, within the ranges that the program has.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks import shapes
from gossamer.convert.blocks.indexing import broadcast_to
from gossamer.convert.graph import WORLDS, Graph, Origin, Signature, Size, Value, refuse, shapes_of, unknown
from gossamer.convert.infer import tensor_type
from gossamer.convert.lowerings.torch import Call, Meta, dtype_of, lowers, packet_of, type_of, undoes
from gossamer.convert.report import Report, Unavailable
from gossamer.convert.request import Imported, Request
from gossamer.convert.sources import symbolic
from gossamer.convert.sources import torch_export as source
from gossamer.errors import ConvertError
from gossamer.schema.enums import TensorType

SIGNATURE = "serving_default"

IRRELEVANT = frozenset(
    {"device", "layout", "pin_memory", "memory_format", "non_blocking", "generator", "cudnn_enabled", "cudnn_enable"}
)
"""Arguments that do not change a result."""


def import_source(path: str | os.PathLike[str], format: str, request: Request) -> Imported:
    """The graph of a ``.pt2`` file. Raises `ConvertError` for what is none."""
    return import_program(source.read(path), request)


def import_program(program: source.ExportedProgram, request: Request) -> Imported:
    """The graph of a program that has been read. Raises `ConvertError` if sizes or signatures cannot be had."""
    if request.signature_keys is not None and list(request.signature_keys) != [SIGNATURE]:
        raise ConvertError(f"a program has the signature {SIGNATURE!r} alone, not {list(request.signature_keys)}")
    symbols = _symbols(program, request)
    imported, changed = _imported(program, symbols, {})
    if changed:  # buffers that keep what a call makes of them: known only when all operators have been seen
        imported, _ = _imported(program, symbols, changed)
    return imported


def _imported(
    program: source.ExportedProgram, symbols: Sequence[Mapping[str, int]], variables: Mapping[str, str]
) -> tuple[Imported, dict[str, str]]:
    """The graph with these buffers as variables (by input, what they are called), and those that it changes."""
    report = Report()
    graph = Graph()
    walk = _Walk(graph, program.graph, symbols, report)
    inputs: dict[str, Value] = {}
    start = Graph("NoOp")
    handles: dict[str, Value] = {}
    for spec in program.inputs:
        if not isinstance(spec.value, source.Value):
            continue
        name = spec.value.name
        if spec.target is not None:
            value = _stored(graph, program.state[spec.target], spec.target)
            if name in variables:
                start.add_many("ASSIGN_VARIABLE", [_handle(start, spec.target), value], 0)
                handles[name] = _handle(graph, spec.target)
                value = graph.add("READ_VARIABLE", handles[name], type=value.type, shape=value.shape)
            walk.define(name, value)
        elif name in program.graph.tensors:
            meta = program.graph.tensors[name]
            inputs[name] = graph.input(name, tensor_type(meta.dtype), walk.sizes(meta.shape))
            walk.define(name, shapes.cast(graph, inputs[name], type_of(meta.dtype)))
        else:
            inputs[name] = walk.number_input(name)
    walk.run()
    final = {name: walk.found[name].read() for name in handles if walk.found[name].version}
    outputs: dict[str, Value] = {}
    for result in program.outputs:
        if not isinstance(result.value, source.Value):
            continue
        name = result.value.name
        found = walk.read(result.value)
        if isinstance(found, Unavailable):
            walk.miss(found)
        elif result.kind == "user_output":
            outputs[name] = graph.value(found)
            if name in program.graph.tensors:
                outputs[name] = shapes.cast(graph, outputs[name], tensor_type(program.graph.tensors[name].dtype))
        elif result.kind == "user_input_mutation":
            report.note(Origin(result.kind, result.target or ""), "the new value of this input is not handed back")
        else:
            final[next(spec.value.name for spec in program.inputs if spec.target == result.target)] = found
    stored = {spec.value.name: spec.target for spec in program.inputs if spec.target is not None}
    changed = {name: stored[name] for name in stored if name in final or walk.found[name].version}
    for name, handle in handles.items():
        graph.add_many("ASSIGN_VARIABLE", [handle, final[name]], 0)
    if handles:
        graph.begin("CALL_ONCE", {"init_subgraph_index": start})
    graph.outputs = list(outputs.values())
    return Imported([Signature(SIGNATURE, graph, inputs, outputs)], report), changed


def _handle(graph: Graph, name: str) -> Value:
    return graph.add("VAR_HANDLE", type=TensorType.RESOURCE, shared_name=name, shape=())


def _stored(graph: Graph, array: NDArray[Any], name: str) -> Value:
    """A parameter, buffer or constant."""
    dtype = dtype_of(type_of(array.dtype))
    return graph.constant(array if array.dtype == dtype else array.astype(dtype), name=name)


# -- symbols


def _symbols(program: source.ExportedProgram, request: Request) -> list[dict[str, int]]:
    """What each symbol is in each world. Raises `ConvertError` if the sizes asked for cannot be."""
    given: dict[str, int] = {}
    places = [
        (spec.value.name, axis, size, len(program.graph.tensors[spec.value.name].shape))
        for spec in program.inputs
        if spec.kind == "user_input" and isinstance(spec.value, source.Value)
        if spec.value.name in program.graph.tensors
        for axis, size in enumerate(program.graph.tensors[spec.value.name].shape)
    ]
    wanted: list[tuple[str, int, Any, int]] = []
    for name, axis, size, rank in places:
        shape = request.given_shape(name, rank)
        asked = shape[axis] if shape is not None else request.batch if axis == 0 else None
        if asked is None or (isinstance(size, int) and shape is None):
            continue
        wanted.append((name, axis, size, asked))
        if isinstance(size, symbolic.Symbol):
            given.setdefault(size.name, asked)
    large = {
        symbol for _, axis, size, rank in places if axis >= 2 and rank >= 3 for symbol in symbolic.symbols_of(size)
    }
    worlds: list[dict[str, int]] = [{} for _ in range(WORLDS)]
    names = sorted({*program.ranges, *[symbol for _, _, size, _ in places for symbol in symbolic.symbols_of(size)]})
    for number, name in enumerate(names):
        low, high = program.ranges.get(name, (None, None))
        if name in given:
            if given[name] < (low or 0) or (high is not None and given[name] > high):
                raise ConvertError(f"the size {name} is {given[name]}, and the program is for {low} to {high}")
            for world in worlds:
                world[name] = given[name]
            continue
        for world, value in zip(
            worlds, unknown(number, large=name in large, low=low or 1, high=high).worlds, strict=True
        ):
            world[name] = value
    for name, axis, size, asked in wanted:
        is_size = {symbolic.evaluate(size, world) for world in worlds}
        if is_size != {asked}:
            raise ConvertError(
                f"input {name!r} has {symbolic.shown(size)} elements along axis {axis}, {asked} cannot be had: export "
                "the program for it"
            )
    return worlds


# -- tensors and what shows them


class _Tensor:
    """A tensor of the program: its value, until what it shows (``base``) is changed; ``redo`` makes the value of
    base's, ``undo`` base's of a new one."""

    __slots__ = ("base", "redo", "seen", "undo", "value", "version")

    def __init__(
        self,
        value: Value,
        base: _Tensor | None = None,
        redo: Callable[[Value], Value] | None = None,
        undo: Callable[[Value, Value], Value] | None = None,
    ) -> None:
        self.value = value
        self.base, self.redo, self.undo = base, redo, undo
        self.version = 0
        self.seen = 0 if base is None else base.version

    def read(self) -> Value:
        """The value as it is now."""
        if self.base is not None and self.redo is not None:
            shown = self.base.read()
            if self.base.version != self.seen:
                self.value = self.redo(shown)
                self.seen = self.base.version
                self.version += 1
        return self.value

    def write(self, value: Value) -> None:
        """Give it a new value, and so to all that shows the same."""
        if self.base is not None and self.undo is not None:
            self.base.write(self.undo(self.base.read(), value))
            self.seen = self.base.version
        self.value = value
        self.version += 1


class _Walk:
    """Operators of one graph of the program, in order, added to ours."""

    def __init__(
        self, graph: Graph, program: source.Graph, symbols: Sequence[Mapping[str, int]], report: Report
    ) -> None:
        self.graph = graph
        self.program = program
        self.symbols = symbols
        self.report = report
        self.found: dict[str, Any] = {}

    # -- values

    def define(self, name: str, value: Value) -> None:
        """A tensor that is there from the beginning."""
        self.found[name] = _Tensor(value)

    def number_input(self, name: str) -> Value:
        """An input that is a number."""
        size = self.program.numbers.get(name, 0)
        value = self.graph.input(name, TensorType.INT32, ())
        if not isinstance(size, (bool, int, float)):
            value.known = tuple([np.array(symbolic.evaluate(size, world), np.int32) for world in self.symbols])
        self.found[name] = value
        return value

    def size(self, size: symbolic.Size) -> int | Size:
        """A size in all worlds."""
        if isinstance(size, int):
            return size
        worlds = tuple([symbolic.evaluate(size, world) for world in self.symbols])
        return worlds[0] if len(set(worlds)) == 1 else Size(worlds)

    def sizes(self, shape: Sequence[symbolic.Size]) -> tuple[int | Size, ...]:
        """A shape in all worlds."""
        return tuple([self.size(size) for size in shape])

    def read(self, value: Any) -> Any:
        """An argument: tensors as they are now."""
        if isinstance(value, source.Value):
            found = self.found[value.name]
            return found.read() if isinstance(found, _Tensor) else found
        if isinstance(value, list):
            return [self.read(element) for element in value]
        if isinstance(value, np.dtype):
            return type_of(value)
        return value

    # -- operators

    def run(self) -> None:
        """All operators."""
        for node in self.program.nodes:
            first = next((output.name for output in node.outputs if output is not None), "")
            origin = Origin(node.target, first or node.target)
            given = [(argument.name, self.read(argument.value)) for argument in node.arguments]
            missing = next(
                (one for _, value in given for one in _elements(value) if isinstance(one, Unavailable)), None
            )
            if missing is not None:
                self.miss(missing)
                self._fail(node, missing.origin)
                continue
            with self.report.lowering(self.graph, origin):
                self._lower(node, [(name, value) for name, value in given if name not in IRRELEVANT])
            if origin in self.report.refused:
                self._fail(node, origin)

    def miss(self, result: Unavailable) -> None:
        """Somebody needs a result that is not there: it was refused, or no lowering computes it."""
        self.report.refused.setdefault(result.origin, "one of its results that is needed cannot be computed")

    def _fail(self, node: source.Node, origin: Origin) -> None:
        for output in node.outputs:
            if output is not None:
                self.found[output.name] = Unavailable(origin)

    def _lower(self, node: source.Node, given: Sequence[tuple[str, Any]]) -> None:
        metas = [None if output is None else self.program.tensors.get(output.name) for output in node.outputs]
        results = tuple([None if meta is None else Meta(type_of(meta.dtype), self.sizes(meta.shape)) for meta in metas])
        target = _lowered(node.target)
        function = lowers.find(target) or lowers.find(packet_of(target))
        call = Call(self.graph, target, results, self._call)
        positional = [value for name, value in given if not name]
        named = {name: value for name, value in given if name}
        if function is None:
            refuse(f"{node.target} is no operator that can be converted" + _hint(node.target))
        unknown_names = _unknown_names(function, named)
        if unknown_names:
            refuse(f"the argument {', '.join(unknown_names)} of {node.target} is not known")
        result = function(call, *positional, **named)
        values = list(result) if isinstance(result, (list, tuple)) else [result]
        shown = self._shown(node, call.packet)
        if _is_in_place(node.target) and shown is None:
            self._write(node, values[0])
            return
        for position, output in enumerate(node.outputs):
            if output is None:
                continue
            value = values[position] if position < len(values) else None
            if value is None:
                self.found[output.name] = Unavailable(Origin(node.target, output.name))
                continue
            if results[position] is None:
                self.found[output.name] = self._number(output.name, value)
                continue
            value = self._checked(call, position, value)
            self.found[output.name] = (
                _Tensor(value) if shown is None else self._view(shown, value, call, function, named, position)
            )
            if _is_in_place(node.target):  # ``squeeze_`` and others give a tensor another shape
                self.found[node.arguments[0].value.name] = self.found[output.name]

    def _checked(self, call: Call, position: int, value: Value) -> Value:
        """A result in the type that torch says. Raises `Refused` if it has another shape: then a lowering is wrong."""
        meta = call.results[position]
        if meta is None:
            return value
        value = shapes.cast(self.graph, self.graph.value(value), meta.type)
        if value.shapes != shapes_of(meta.shape):
            refuse(f"becomes {list(value.shapes)}, and torch says {list(shapes_of(meta.shape))}")
        return value

    def _call(self, program: source.Graph, graph: Graph, operands: Sequence[Any]) -> list[Any]:
        """The operators of a graph that an operator calls, added to one of ours; its outputs."""
        walk = _Walk(graph, program, self.symbols, self.report)
        for place, operand in zip(program.inputs, operands, strict=True):
            if place.name in program.tensors:
                walk.define(place.name, graph.value(operand))
            else:
                walk.found[place.name] = operand
        walk.run()
        results = [walk.read(value) for value in program.outputs]
        if any(isinstance(result, Unavailable) for result in results):
            refuse(f"the graph {program.name} cannot be converted")
        return results

    def _number(self, name: str, value: Any) -> Any:
        """A number that is known as Python's; one that only data decide is in each world what its symbol is."""
        if not isinstance(value, Value) or value.rank:
            return value
        if value.data is not None:
            return value.data.item()
        size = self.program.numbers.get(name)
        if value.known is None and size is not None and not isinstance(size, (bool, int, float)):
            value.known = tuple([np.array(symbolic.evaluate(size, world), value.dtype) for world in self.symbols])
        return value

    # -- views

    def _shown(self, node: source.Node, packet: str) -> _Tensor | None:
        """What the results of an operator show, if they are no values of their own."""
        if undoes.find(packet) is None or not node.arguments:
            return None
        base = node.arguments[0].value
        if not isinstance(base, source.Value) or not isinstance(self.found[base.name], _Tensor):
            return None
        output = next((output for output in node.outputs if output is not None), None)
        if output is None or not _shares(
            self.program.tensors[base.name], self.program.tensors[output.name], packet, self.symbols[0]
        ):
            return None
        found: _Tensor = self.found[base.name]
        return found

    def _view(
        self,
        base: _Tensor,
        value: Value,
        call: Call,
        function: Callable[..., Any],
        named: dict[str, Any],
        position: int,
    ) -> _Tensor:
        inverse: Any = undoes.find(call.packet)
        first, others = next(iter(named)), dict(list(named.items())[1:])

        def redo(shown: Value) -> Value:
            result = function(call, **{first: shown}, **others)
            return self._checked(call, position, result[position] if isinstance(result, (list, tuple)) else result)

        def undo(shown: Value, new: Value) -> Value:
            more = {"position": position} if len(call.results) > 1 else {}
            made: Value = inverse(call, new, **{first: shown}, **others, **more)
            return made

        return _Tensor(value, base, redo, undo)

    def _write(self, node: source.Node, value: Any) -> None:
        place = node.arguments[0].value
        target = self.found[place.name]
        meta = self.program.tensors[place.name]
        value = shapes.cast(self.graph, self.graph.value(value), type_of(meta.dtype))
        if value.shapes != target.read().shapes:
            value = broadcast_to(self.graph, value, shapes.size_vector(self.graph, target.read()))
        target.write(value)
        for output in node.outputs:
            if output is not None:
                self.found[output.name] = target


def _elements(value: Any) -> list[Any]:
    return [element for one in value for element in _elements(one)] if isinstance(value, list) else [value]


def _is_in_place(target: str) -> bool:
    """Whether an operator changes its first argument, by the rule for names: ``relu_``, but not ``__or__``."""
    packet = packet_of(target)
    return packet.startswith("aten.") and packet.endswith("_") and not packet.endswith("__")


def _lowered(target: str) -> str:
    """The name of the operator whose lowering gives the result: that of the functional one for ``relu_``, of the view
    for ``view_copy``; the name itself if there is none."""
    packet = packet_of(target)
    if lowers.find(target) or lowers.find(packet):
        return target
    for ending in ("_", "_copy"):
        if packet.endswith(ending) and not packet.endswith("__"):
            same = _lowered(packet.removesuffix(ending) + target.removeprefix(packet))
            if lowers.find(same) or lowers.find(packet_of(same)):
                return same
    return target


def _hint(target: str) -> str:
    space = target.partition(".")[0]
    if space == "aten":
        return "; export().run_decompositions() may make others of it"
    return f"; {space} is no namespace of ATen: decompose it before the export"


def _unknown_names(function: Callable[..., Any], named: Mapping[str, Any]) -> list[str]:
    parameters = inspect.signature(function).parameters
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values()):
        return []
    return [name for name in named if name not in parameters]


def _shares(base: source.TensorMeta, view: source.TensorMeta, packet: str, symbols: Mapping[str, int]) -> bool:
    """Whether a result that may be a view is one: torch's rule is whether the memory can be seen so."""
    if packet in ("aten.reshape", "aten.flatten", "aten.reshape_as"):
        shape, strides, new = [
            [symbolic.evaluate(size, symbols) for size in sizes] for sizes in (base.shape, base.strides, view.shape)
        ]
        return _can_be_seen_as(shape, strides, new)
    if packet in ("aten.contiguous", "aten.to", "aten.type_as", "aten.dropout"):
        return base.dtype == view.dtype and base.strides == view.strides
    return True


def _can_be_seen_as(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> bool:
    """Whether elements that lie so have the other shape without a copy: each group of axes that are multiplied or
    taken apart together must lie in one piece."""
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    wanted = [size for size in new if size != 1]
    while old and wanted:
        have, want, group = old[0][0], wanted.pop(0), [old.pop(0)]
        while have != want:
            if have < want:
                if not old:
                    return False
                group.append(old.pop(0))
                have *= group[-1][0]
            elif not wanted:
                return False
            else:
                want *= wanted.pop(0)
        if any(left[1] != right[0] * right[1] for left, right in itertools.pairwise(group)):
            return False
    return True
