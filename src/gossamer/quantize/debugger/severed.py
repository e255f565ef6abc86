"""A model taken apart: each operator is given what the caller says, not what the operator before it computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.runtime.interpreter import Interpreter
from gossamer.schema import tables

Values = Mapping[int, NDArray[Any]]
"""Arrays by the numbers of tensors."""


class Severed:
    """Runs the operators of a model, each by itself.

    ``cuts``: by subgraph, the tensors that are given: operators that read one of them read what is given, and what is
    computed goes nowhere but out. ``wanted``: by subgraph, the tensors that are asked for. ``constants``: values that
    take the place of stored ones, of the same type and shape, by subgraph and tensor.
    """

    def __init__(
        self,
        model: Model,
        cuts: Mapping[int, Collection[int]],
        wanted: Mapping[int, Collection[int]],
        constants: Mapping[tuple[int, int], NDArray[Any]] | None = None,
    ) -> None:
        if constants:
            model = _with_constants(model, constants)
        self._places: dict[int, dict[int, int]] = {}
        self._numbers: dict[int, int] = {}
        subgraphs, signatures = list(model.subgraphs), []
        for number in wanted:
            subgraph, place = severed(model.subgraphs[number], cuts.get(number, ()), wanted[number])
            self._places[number], self._numbers[number] = place, len(subgraphs)
            signatures.append(_signature(number, len(subgraphs), subgraph))
            subgraphs.append(subgraph)
        # The whole model stays for the sake of the subgraphs that its operators call.
        whole = model.replace(subgraphs=tuple(subgraphs), signature_defs=tuple(signatures))
        self.interpreter = Interpreter(model_content=write_model(whole))
        self._runners = {number: self.interpreter.get_signature_runner(str(number)) for number in wanted}
        self.given = {number: {*model.subgraphs[number].inputs, *self._places[number]} for number in wanted}
        """By subgraph, the tensors that `run` must be told: its inputs, and what is cut."""

    def running(self, number: int) -> int:
        """The number of the subgraph that is run for a subgraph."""
        return self._numbers[number]

    def run(self, number: int, values: Values) -> dict[int, NDArray[Any]]:
        """What the operators of a subgraph compute; ``values`` are by the numbers that its tensors had."""
        place = self._places[number]
        inputs = {str(place.get(tensor, tensor)): value for tensor, value in values.items()}
        return {int(name): value for name, value in self._runners[number].run(inputs).items()}


def severed(
    subgraph: tables.SubGraph, cuts: Collection[int], wanted: Collection[int]
) -> tuple[tables.SubGraph, dict[int, int]]:
    """The subgraph with a new input for each tensor that is cut and computed, and the numbers of these inputs."""
    tensors = list(subgraph.tensors)
    place: dict[int, int] = {}
    for tensor in sorted(set(cuts) - set(subgraph.inputs)):
        place[tensor] = len(tensors)
        tensors.append(tensors[tensor].replace(name=f"{tensors[tensor].name} given"))
    operators = [
        operator.replace(inputs=tuple([place.get(index, index) for index in operator.inputs]))
        for operator in subgraph.operators
    ]
    made = subgraph.replace(
        tensors=tuple(tensors),
        inputs=(*subgraph.inputs, *place.values()),
        outputs=tuple(sorted(wanted)),
        operators=tuple(operators),
        name=f"{subgraph.name} severed",
    )
    return made, place


def _signature(number: int, index: int, subgraph: tables.SubGraph) -> tables.SignatureDef:
    def named(tensors: Sequence[int]) -> tuple[tables.TensorMap, ...]:
        return tuple([tables.TensorMap(name=str(tensor), tensor_index=tensor) for tensor in tensors])

    return tables.SignatureDef(
        inputs=named(subgraph.inputs),
        outputs=named(subgraph.outputs),
        signature_key=str(number),
        subgraph_index=index,
    )


def _with_constants(model: Model, constants: Mapping[tuple[int, int], NDArray[Any]]) -> Model:
    buffers = list(model.buffers)
    subgraphs = [list(subgraph.tensors) for subgraph in model.subgraphs]
    for (number, index), value in constants.items():
        subgraphs[number][index] = subgraphs[number][index].replace(buffer=len(buffers))
        buffers.append(tables.Buffer(data=np.ascontiguousarray(value).reshape(-1).view(np.uint8)))
    return model.replace(
        buffers=tuple(buffers),
        subgraphs=tuple(
            [
                subgraph.replace(tensors=tuple(tensors))
                for subgraph, tensors in zip(model.subgraphs, subgraphs, strict=True)
            ]
        ),
    )
