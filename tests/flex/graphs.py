"""Models of several operators of TensorFlow, node by node, and what they give, run after run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gossamer import Interpreter, OpResolverType
from gossamer.convert.sources.tensor_proto import tensor_type
from tests.flex.models import FlexMaker, data_type

REFERENCE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
"""With it, the operators stay TensorFlow's, and no builtin ones take their place."""


class FlexGraph:
    """A model that is built node by node: values among the operands become its inputs, which are fed when it runs."""

    def __init__(self) -> None:
        self.make = FlexMaker()
        self.fed: dict[int, NDArray[Any]] = {}

    def add(self, op: str, *operands: Any, **attributes: Any) -> Any:
        """A node: its only result, or a list of them. Operands are results, values, or lists of them."""
        inputs: list[int] = []
        for operand in operands:
            inputs.extend(map(self.input, operand if isinstance(operand, list) else [operand]))
        results = self.make.flex(op, inputs, **attributes)
        return results[0] if len(results) == 1 else results

    def input(self, value: Any) -> int:
        """A result as it is; an input of the model for a value."""
        if type(value) is int:
            return value
        array = as_array(value)
        index = self.make.tensor(array.shape, tensor_type(data_type(array.dtype)), f"x{len(self.fed)}", has_rank=True)
        self.fed[index] = array
        return index

    def interpreter(self, outputs: Sequence[int], resolver: OpResolverType = REFERENCE) -> Interpreter:
        """An interpreter of the model with these outputs, whose inputs are set."""
        self.make.io(list(self.fed), list(outputs))
        made = Interpreter(model_content=self.make.model(), experimental_op_resolver_type=resolver)
        made.allocate_tensors()
        for index, value in self.fed.items():
            made.set_tensor(index, value)
        return made

    def run(self, *outputs: int, runs: int = 1, resolver: OpResolverType = REFERENCE) -> list[Any]:
        """The values of these tensors after each run in turn."""
        interpreter, values = self.interpreter(outputs, resolver), []
        for _ in range(runs):
            interpreter.invoke()
            values += [interpreter.get_tensor(index) for index in outputs]
        return values


def results(op: str, *operands: Any, runs: int = 1, **attributes: Any) -> list[Any]:
    """All results of one operator, in each run in turn."""
    graph = FlexGraph()
    made = graph.add(op, *operands, **attributes)
    return graph.run(*(made if isinstance(made, list) else [made]), runs=runs)


def result(op: str, *operands: Any, **attributes: Any) -> Any:
    """The only result of one operator."""
    (value,) = results(op, *operands, **attributes)
    return value


def as_array(value: Any) -> NDArray[Any]:
    """An array of a value; texts become ``bytes`` objects."""
    array = np.asarray(value)
    if array.dtype.kind not in "SUO":
        return array
    objects = np.asarray(value, object)
    items = [item.encode() if isinstance(item, str) else item for item in objects.reshape(-1).tolist()]
    return np.fromiter(items, object, len(items)).reshape(objects.shape)
