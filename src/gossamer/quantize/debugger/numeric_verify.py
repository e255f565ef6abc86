"""Quantized models that compare themselves with the float model: TFLite's debug mode.

Behind each operator that gives integers is the operator of the float model, and a NumericVerify, which gives the
difference of both: ``dequantized - float``. By layer, which is the default, the float operator is given what the
quantized one is given, dequantized; for the whole model what the float operators before it gave
(prepare_quantize and quantization_utils.h of TFLite's converter: enable_numeric_verify, whole_model_verify).
"""

from __future__ import annotations

from gossamer.convert.export import to_model
from gossamer.convert.graph import Graph, Node, Value
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.quantize.debugger.pairs import SAME_VALUE, Pairs, constant_of, pairs, root
from gossamer.schema.enums import TensorType
from gossamer.schema.flexbuffers import dumps

NUMERIC_VERIFY = "NumericVerify"
TOLERANCE = 5.0
"""In scales of the tensor; the converter's default. It is looked at only if a failure is to be logged."""


def with_numeric_verify(float_model: Model, quantized: Model, *, whole_model: bool = False) -> bytes:
    """The quantized model in debug mode, as the bytes of a file. Raises `ConvertError` as `pairs` does."""
    found = pairs(float_model, quantized)
    graphs = {id(signature.graph): signature.graph for signature in found.quantized.signatures}
    for graph in graphs.values():
        _Instrumented(graph, found, whole_model).instrument()
    return write_model(_named(to_model(found.quantized.signatures)))


def _named(model: Model) -> Model:
    """Results of NumericVerify have the number of what they look at behind their names."""
    subgraphs = []
    for subgraph in model.subgraphs:
        tensors = list(subgraph.tensors)
        for operator in subgraph.operators:
            if model.operator_name(operator) == NUMERIC_VERIFY:
                (result,) = operator.outputs
                tensors[result] = tensors[result].replace(name=f"{tensors[result].name}:{operator.inputs[0]}")
        subgraphs.append(subgraph.replace(tensors=tuple(tensors)))
    return model.replace(subgraphs=tuple(subgraphs))


class _Instrumented:
    """A graph of the quantized model that gets operators of the float model."""

    def __init__(self, graph: Graph, found: Pairs, whole_model: bool) -> None:
        self.graph = graph
        self.found = found
        self.whole_model = whole_model
        self.nodes = graph.ordered()
        self.own = {root(found.values[value]): value for value in graph.inputs if value in found.values}
        for node in self.nodes:
            for value in node.outputs if node.op not in SAME_VALUE else ():
                if value in found.values:
                    self.own[root(found.values[value])] = value
        self.copies: dict[Node, Node] = {}

    def instrument(self) -> None:
        """Adds a NumericVerify to each value that is integers and has a partner that an operator makes."""
        for node in self.nodes:
            for value in node.outputs if node.op not in SAME_VALUE else ():
                partner = self.found.values.get(value)
                if value.quantization and partner is not None and partner.node is not None:
                    with self.graph.at(*node.origins, position=node.order[0]):
                        self._verify(value, partner.name, self._copy(partner, node.order[0]))

    def _verify(self, value: Value, name: str, reference: Value) -> None:
        options = dumps({"tolerance": TOLERANCE, "log_if_failed": False})
        sizes = [value.size(axis) for axis in range(value.rank)]
        (verify,) = self.graph.add_custom(
            NUMERIC_VERIFY, [value, reference], [(TensorType.FLOAT32, sizes)], options, effect=True
        )
        # Who reads these names takes a digit off at the end, as one that makes the name of the integers unique.
        verify.name = f"{NUMERIC_VERIFY}/{name}{'1' if name[-1:].isdigit() else ''}"

    def _copy(self, value: Value, position: int) -> Value:
        """What the float model's operator makes, here."""
        node = value.node
        if node is None:
            return value
        if node not in self.copies:
            inputs = [None if one is None else self._operand(one, position) for one in node.inputs]
            outputs = [Value(old.type, old.shapes, None, f"{old.name}_float") for old in node.outputs]
            order = (position, -1)  # before what is compared with it
            copy = Node(node.op, inputs, outputs, node.options, order, (), node.custom_options, node.graphs)
            copy.intermediates = node.intermediates
            self.copies[node] = copy
        return self.copies[node].outputs[value.index]

    def _operand(self, value: Value, position: int) -> Value:
        if constant_of(value) is not None:
            return self._copy(value, position)
        own = self.own.get(root(value))
        if own is None or (self.whole_model and own.node is not None):
            return self._copy(value, position)
        if not own.quantization:
            return own
        known = next((node.output for node in own.users if node.op == "DEQUANTIZE"), None)
        if known is None:
            where = position if own.node is None else own.node.order[0]
            known = Value(TensorType.FLOAT32, own.shapes, None, f"{own.name}_dequantized")
            Node("DEQUANTIZE", [own], [known], None, (where, 1 << 62), ())
        return known
