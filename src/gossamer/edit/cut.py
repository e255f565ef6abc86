"""Parts of a model: what lies between some tensors, or two halves that are the model again when they are merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.names import Graph, Name, subgraph_of
from gossamer.edit.origin import remembering
from gossamer.edit.portion import Part, portion
from gossamer.edit.references import all_called, called, constant_data, given, taken
from gossamer.errors import EditError
from gossamer.model.model import Model
from gossamer.schema.enums import TensorType

HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)
"""Types of tensors that only name what an interpreter keeps."""


def cut(
    source: Source,
    inputs: Name | Sequence[Name] | None = None,
    outputs: Name | Sequence[Name] | None = None,
    *,
    subgraph: int | str = 0,
    remember: bool = True,
) -> Model:
    """The part of a model that computes ``outputs`` from ``inputs``: tensors by name or number, or ``node:7`` for what
    an operator takes or gives. Left out, they are those of the model, as far as the part has to do with them.

    ``subgraph``: its number, or the key of a signature that calls it. Names, types, quantization, signatures and
    metadata stay; of constants and of subgraphs that operators call only those that are needed. The part remembers the
    model that it is of, all but the weights, so that `merge` gives that back, byte for byte; not with ``remember``
    false.

    Raises `EditError` if there is no such tensor, ``outputs`` need more than ``inputs``, or state is cut apart.
    """
    model = opened(source)
    graph = Graph(model, subgraph_of(model, subgraph))
    flow = _Flow(graph)
    start = graph.subgraph.inputs if inputs is None else tuple(_named(graph.before, inputs))
    stored = [tensor for tensor in start if not flow.flows(tensor)]
    if stored:
        raise EditError(f"{graph.shown(stored)} is stored in the model, it cannot be an input")
    if outputs is not None:
        end = tuple(_named(graph.behind, outputs))
    else:
        reached = flow.downstream(start)
        made = {tensor for number in reached for tensor in given(graph.subgraph.operators[number])}
        end = tuple([tensor for tensor in graph.subgraph.outputs if inputs is None or tensor in made])
        if not end:
            raise EditError(f"no output of the model depends on {graph.shown(start)}")
    both = [tensor for tensor in end if tensor in start]
    if both and (inputs is not None and outputs is not None):
        raise EditError(f"{graph.shown(both)} would be input and output at once: there is nothing between")
    operators, needed = flow.needed(end, start)
    loose = [tensor for tensor in needed if tensor not in start]
    if inputs is not None and not set(start) & set(needed):
        raise EditError(f"{graph.shown(end)} does not depend on {graph.shown(start)}")
    if loose:
        raise EditError(
            f"{graph.shown(end)} cannot be computed from {graph.shown(start)} alone: "
            f"{graph.shown(loose)} is needed too; name it as well, or a tensor between"
        )
    if inputs is None:
        start = tuple([tensor for tensor in start if tensor in needed or tensor in end])
    else:
        unused = [tensor for tensor in start if tensor not in needed]
        if unused:
            raise EditError(f"{graph.shown(end)} does not depend on {graph.shown(unused)}")
    return _part(flow, Part(graph.number, tuple(operators), start, end), remember)


def split(
    source: Source, at: Name | Sequence[Name], *, subgraph: int | str = 0, remember: bool = True
) -> tuple[Model, Model]:
    """A model in two: the second half is all that depends on the tensors ``at``, the first one is the rest and gives
    what the second one takes. Besides ``at`` these may be others that go past them; inputs of the model may go to both.

    `merge` makes the model of them again, byte for byte, unless ``remember`` is false. Names and the rest as in `cut`.
    Raises `EditError` if there is no such tensor, nothing depends on one, or state is cut apart.
    """
    model = opened(source)
    graph = Graph(model, subgraph_of(model, subgraph))
    flow = _Flow(graph)
    places = _named(graph.behind, at)
    operators = graph.subgraph.operators
    second = flow.downstream(places)
    if any(flow.keeps_state(number) for number in second):  # what keeps state stays together
        keeping = [number for number in range(len(operators)) if flow.keeps_state(number)]
        behind = flow.downstream([tensor for number in keeping for tensor in given(operators[number])])
        second = sorted({*second, *keeping, *behind})
    first = [number for number in range(len(operators)) if number not in set(second)]
    made = {tensor for number in second for tensor in given(operators[number])}
    crossing = sorted({t for number in second for t in taken(operators[number]) if flow.flows(t) and t not in made})
    unused = [tensor for tensor in places if tensor not in crossing]
    if unused:
        inner = [tensor for tensor in unused if tensor in made]
        why = "is computed by the second half" if inner else "goes to no operator"
        raise EditError(f"the model cannot be split at {graph.shown(inner or unused)}: it {why}")
    takes = [*places, *[tensor for tensor in crossing if tensor not in places]]
    ends = graph.subgraph.outputs
    gives = [tensor for tensor in takes if tensor not in graph.subgraph.inputs]
    gives += [tensor for tensor in ends if tensor not in made and tensor not in gives]
    if not gives or not first:
        raise EditError(f"nothing lies before {graph.shown(places)}: one of the halves would be the model")
    wanted = {tensor for number in first for tensor in taken(operators[number])} | set(gives)
    start = [t for t in graph.subgraph.inputs if t in wanted or t not in takes]
    last = [tensor for tensor in ends if tensor in made]
    if not last:
        raise EditError(f"no output of the model depends on {graph.shown(places)}")
    return (
        _part(flow, Part(graph.number, tuple(first), tuple(start), tuple(gives)), remember),
        _part(flow, Part(graph.number, tuple(second), tuple(takes), tuple(last)), remember),
    )


def _named(find: object, names: Name | Sequence[Name]) -> list[int]:
    several: Iterable[Name] = [names] if isinstance(names, (str, int)) else names
    return list(dict.fromkeys([tensor for name in several for tensor in find(name)]))  # type: ignore[operator]


def _part(flow: _Flow, part: Part, remember: bool) -> Model:
    graph = flow.graph
    flow.check_state(part)
    for tensor in (*part.inputs, *part.outputs):
        stored = graph.subgraph.tensors[tensor]
        if stored.type in HANDLES and not (tensor in graph.subgraph.inputs or tensor in graph.subgraph.outputs):
            raise EditError(
                f"{graph.brief(tensor)} names what an interpreter keeps, which no other one has: cut elsewhere"
            )
    made = portion(graph.model, part)
    model = finished(graph.model, made.model)
    return remembering(graph.model, part, model) if remember else model


class _Flow:
    """What depends on what in a subgraph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers: dict[int, list[int]] = {}
        self.users: dict[int, list[int]] = {}
        for number, operator in enumerate(graph.subgraph.operators):
            for tensor in given(operator):
                self.makers.setdefault(tensor, []).append(number)
            for tensor in taken(operator):
                self.users.setdefault(tensor, []).append(number)

    def flows(self, tensor: int) -> bool:
        """Whether a tensor gets its value in each run."""
        stored = self.graph.subgraph.tensors[tensor]
        return tensor in self.makers or not (stored.is_variable or constant_data(self.graph.model, stored))

    def downstream(self, tensors: Iterable[int]) -> list[int]:
        """The operators that depend on tensors, in order."""
        found: set[int] = set()
        waiting = list(tensors)
        while waiting:
            for number in self.users.get(waiting.pop(), ()):
                if number not in found:
                    found.add(number)
                    waiting += given(self.graph.subgraph.operators[number])
        return sorted(found)

    def needed(self, ends: Iterable[int], start: Iterable[int]) -> tuple[list[int], list[int]]:
        """The operators that compute ``ends`` from ``start``, in order; and the tensors that come from outside: of
        ``start`` and beyond it. With one of the operators that keep state come all of them."""
        operators = self.graph.subgraph.operators
        found: set[int] = set()
        outside: set[int] = set()
        seen: set[int] = set()
        start = set(start)
        waiting = list(ends)
        kept = False
        while waiting:
            while waiting:
                tensor = waiting.pop()
                if tensor in seen:
                    continue
                seen.add(tensor)
                if tensor in start or tensor not in self.makers:
                    if self.flows(tensor):
                        outside.add(tensor)
                    continue
                for number in self.makers[tensor]:
                    found.add(number)
                    waiting += taken(operators[number])
            if not kept and any(self.keeps_state(number) for number in found):
                kept = True
                for number in range(len(operators)):
                    if self.keeps_state(number) and number not in found:
                        found.add(number)
                        waiting += taken(operators[number])
        return sorted(found), sorted(outside)

    def keeps_state(self, number: int) -> bool:
        """Whether an operator, or one that it calls, has to do with what an interpreter keeps."""
        model, operator = self.graph.model, self.graph.subgraph.operators[number]
        tensors = [self.graph.subgraph.tensors[tensor] for tensor in (*taken(operator), *given(operator))]
        tensors += [tensor for n in all_called(model, called(operator)) for tensor in model.subgraphs[n].tensors]
        return not operator.outputs or any(tensor.type == TensorType.RESOURCE for tensor in tensors)

    def check_state(self, part: Part) -> None:
        """Raise for a part that has some of what goes together, and not all."""
        inside = set(part.operators)
        states = [self.keeps_state(number) for number in range(len(self.graph.subgraph.operators))]
        sides = {number in inside for number, keeps in enumerate(states) if keeps}
        if len(sides) > 1:
            raise EditError("both sides of this cut have to do with the resources that an interpreter keeps")
        for tensor, users in self.users.items():
            if self.graph.subgraph.tensors[tensor].is_variable and len({user in inside for user in users}) > 1:
                raise EditError(f"both sides of this cut use the variable {self.graph.brief(tensor)}")
