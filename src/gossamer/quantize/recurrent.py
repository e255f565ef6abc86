"""Recurrent operators: their states and the values within them have parameters of their own, and all of their weights
are quantized, or none.

What each operand becomes, the operator says (`gossamer.ops.op_def.CellOperand`). What a cell computes on its way is
seen by giving it float intermediate tensors, of which its reference kernel tells those who calibrate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from gossamer.convert.graph import WORLDS, Node, Value
from gossamer.ops import find_op
from gossamer.ops.op_def import CellOperand
from gossamer.quantization import Quantization
from gossamer.quantize.calls import Range
from gossamer.quantize.parameters import LEAST_RANGE, bias, quantized
from gossamer.quantize.scheme import Scheme
from gossamer.quantize.static import Pair
from gossamer.quantize.weights import takes
from gossamer.schema.enums import TensorType

FLOAT = TensorType.FLOAT32


def add_intermediates(node: Node) -> None:
    """Gives a float operator the intermediate tensors that its integer kernel has."""
    op = find_op(node.op)
    if op is None or op.quantizes is None or node.intermediates:
        return
    for name in op.quantizes.intermediates:
        node.intermediates.append(Value(FLOAT, ((0,),) * WORLDS, None, f"{node.output.name}_{name}"))


def quantize_cell(pair: Pair, node: Node, scheme: Scheme, seen: Mapping[Value, Range]) -> bool:
    """Adds a recurrent operator of integers, if there is one for its operands, and all of its values were seen."""
    op = find_op(node.op)
    rule = None if op is None else op.quantizes
    if op is None or rule is None or rule.cell is None or scheme.activations not in op.types[op.inputs[0]]:
        return False
    names = [name.rstrip("?") for name in op.inputs]
    values = {name: value for name, value in zip(names, node.inputs, strict=False) if value is not None}
    values |= {"output": node.output, **dict(zip(rule.intermediates, node.intermediates, strict=False))}
    cell = _Cell(values, rule.cell(values.keys()), pair.parameters[scheme.activations], seen)
    try:
        parameters = {name: cell.parameters(name) for name in values}
    except KeyError:  # of a value that was not seen
        return False

    def integer(name: str, value: Value) -> Value:
        found = cell.rules.get(name)
        if found is None:
            return pair.as_integer(value, (scheme.activations, parameters[name]))
        typed = found.type, parameters[name]
        if value.data is not None:
            fill = bias if found.product is not None else partial(quantized, narrow=True)
            return pair.stored(value, typed, partial(fill, quantization=typed[1], type=found.type))
        new = Value(found.type, value.shapes, None, value.name, parameters[name])
        new.is_variable = value.is_variable
        return new

    integers = {name: integer(name, value) for name, value in values.items() if name != "output"}
    inputs = [integers.get(name) for name in names[: len(node.inputs)]]
    inner = [integers[name] for name in rule.intermediates]
    if not takes(op, inputs, node.options, [scheme.activations], parameters["output"], inner):
        return False
    output = Value(scheme.activations, node.output.shapes, None, node.output.name, parameters["output"])
    pair.made.copy(node, inputs, {}, [output], intermediates=inner)
    del pair.made.values[node.output]
    pair.integers[node.output, b""] = output
    return True


class _Cell:
    """The operands of a cell by name, what they become, and the parameters that follow."""

    def __init__(
        self,
        values: Mapping[str, Value],
        rules: Mapping[str, CellOperand],
        known: Mapping[Value, Quantization],
        seen: Mapping[Value, Range],
    ) -> None:
        self.values = values
        self.rules = rules
        self.known = known
        self.seen = seen

    def parameters(self, name: str) -> Quantization:
        """Those of an operand. Raises `KeyError` if it was not seen."""
        value, rule = self.values[name], self.rules.get(name)
        if rule is None:
            return self.known[value]
        if rule.like:
            return self.parameters(rule.like)
        if rule.product is not None:
            scale = np.float32(rule.factor)
            for other in rule.product:
                scale = scale * self.parameters(other).scales[0]
        elif not rule.most:
            return self.known[value]
        else:
            scale = self._symmetric(value, rule)
        return Quantization(np.array([scale], np.float32), np.zeros(1, np.int32))

    def _symmetric(self, value: Value, rule: CellOperand) -> np.float32:
        """``max |x| / most``, of a constant or of what was seen."""
        if value.data is not None:
            largest = float(np.abs(value.data).max(initial=0))
        else:
            largest = max(map(abs, self.seen[value]))
        if rule.power_of_two:
            largest = 2.0 ** max(math.ceil(math.log2(max(largest, LEAST_RANGE))), 0)
        return np.float32(max(largest, LEAST_RANGE / 2) / rule.most)
