"""Seeded damage to several things at once that stay well formed: operands swapped, graphs of other models spliced in,
numbers that contradict each other, tensors that are written twice. The same seed and donor, the same mutant."""

from __future__ import annotations

import math
import random
import struct
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer import dtypes
from gossamer.errors import ModelError
from gossamer.model.model import Model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.schema import (
    Buffer,
    BuiltinOperator,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SignatureDef,
    SubGraph,
    Tensor,
    TensorMap,
    TensorType,
)
from tests.fuzz.mutations import _other_operator, _other_options, _other_wiring, damaged_bytes

FLOATS = (0.0, -0.0, -1.0, -0.05, 1e-45, 1e-39, 1e-7, 0.05, 1.0, 7.0, 1e30, 3.4e38, math.inf, -math.inf, math.nan)
POINTS = (0, 0, 1, -1, 127, 128, -128, -129, 255, 256, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40)

Damage = Callable[["Draft", random.Random], None]


class Draft:
    """A model under damage: lists where it has tuples."""

    def __init__(self, model: Model, donor: Model) -> None:
        self.model, self.donor = model, donor
        self.graphs: list[SubGraph] = list(model.subgraphs)
        self.codes: list[OperatorCode] = list(model.operator_codes)
        self.buffers: list[Buffer] = list(model.buffers)
        self.signatures: list[SignatureDef] = list(model.signature_defs)

    def written(self) -> bytes:
        """The file. Raises what the writer raises for values that the format cannot express."""
        changed = {
            "subgraphs": tuple(self.graphs),
            "operator_codes": tuple(self.codes),
            "buffers": tuple(self.buffers),
            "signature_defs": tuple(self.signatures),
        }
        return bytes(write_model(self.model.replace(**changed)))

    def graph(self, rng: random.Random) -> int:
        """A subgraph, mostly the first."""
        return 0 if rng.random() < 0.7 else rng.randrange(len(self.graphs))

    def edit(self, graph: int, **fields: Any) -> None:
        """Change fields of a subgraph."""
        self.graphs[graph] = self.graphs[graph].replace(**fields)

    def edit_tensor(self, graph: int, index: int, **fields: Any) -> None:
        """Change fields of a tensor."""
        tensors = list(self.graphs[graph].tensors)
        tensors[index] = tensors[index].replace(**fields)
        self.edit(graph, tensors=tuple(tensors))

    def edit_operator(self, graph: int, index: int, **fields: Any) -> None:
        """Change fields of an operator."""
        operators = list(self.graphs[graph].operators)
        operators[index] = operators[index].replace(**fields)
        self.edit(graph, operators=tuple(operators))

    def tensor(self, rng: random.Random) -> tuple[int, int, Tensor]:
        """A tensor that some operator names, if there is one: subgraph, index, record."""
        graph = self.graph(rng)
        tensors = self.graphs[graph].tensors
        named = [i for op in self.graphs[graph].operators for i in (*op.inputs, *op.outputs) if 0 <= i < len(tensors)]
        index = rng.choice(named or range(len(tensors)))
        return graph, index, tensors[index]

    def operator(self, rng: random.Random) -> tuple[int, int, Operator]:
        """An operator: subgraph, index, record."""
        graph = self.graph(rng)
        index = rng.randrange(len(self.graphs[graph].operators))
        return graph, index, self.graphs[graph].operators[index]

    def data(self, tensor: Tensor) -> Any:
        """The bytes of a constant; none for others."""
        return self.buffers[tensor.buffer].data if 0 < tensor.buffer < len(self.buffers) else np.empty(0, np.uint8)

    def add_buffer(self, data: Any) -> int:
        """The number of a new buffer."""
        self.buffers.append(Buffer(data=np.frombuffer(bytes(data), np.uint8)))
        return len(self.buffers) - 1


def swapped_operands(draft: Draft, rng: random.Random) -> None:
    graph, index, operator = draft.operator(rng)
    sides = {"inputs": list(operator.inputs), "outputs": list(operator.outputs)}
    one, other = (rng.choice(("inputs", "inputs", "outputs")) for _ in range(2))
    a, b = rng.randrange(len(sides[one])), rng.randrange(len(sides[other]))
    sides[one][a], sides[other][b] = sides[other][b], sides[one][a]
    draft.edit_operator(graph, index, **{side: tuple(indices) for side, indices in sides.items()})


def swapped_between_operators(draft: Draft, rng: random.Random) -> None:
    graph = draft.graph(rng)
    operators = list(draft.graphs[graph].operators)
    a, b = rng.randrange(len(operators)), rng.randrange(len(operators))
    side = rng.choice(("inputs", "outputs", "options", "opcode_index"))
    names = ("builtin_options", "builtin_options_2") if side == "options" else (side,)
    one, other = operators[a], operators[b]
    operators[a] = one.replace(**{name: getattr(other, name) for name in names})
    operators[b] = other.replace(**{name: getattr(one, name) for name in names})
    draft.edit(graph, operators=tuple(operators))


def spliced(draft: Draft, rng: random.Random) -> None:
    """Operators of another model, wired to tensors that are here."""
    graph = draft.graph(rng)
    theirs = draft.donor.subgraphs[rng.randrange(len(draft.donor.subgraphs))]
    here = draft.graphs[graph]
    tensors, operators = list(here.tensors), list(here.operators)
    first = rng.randrange(len(theirs.operators))
    places: dict[int, int] = {-1: -1}
    ready = [i for i in here.inputs if i >= 0] + [i for op in operators for i in op.outputs if i >= 0]
    produced: set[int] = set()
    added = []
    for operator in theirs.operators[first : first + rng.randint(1, 4)]:
        for index in (*operator.inputs, *operator.outputs, *operator.intermediates):
            if index in places:
                continue
            tensor = theirs.tensors[index]
            constant = 0 < tensor.buffer < len(draft.donor.buffers) and draft.donor.buffers[tensor.buffer].data.size
            like = [i for i in ready if tensors[i].type == tensor.type] if rng.random() < 0.9 else ready
            if index in operator.inputs and index not in produced and not constant and like:
                places[index] = rng.choice(like)
                if rng.random() < 0.6:  # as if it fitted
                    tensors[places[index]] = tensors[places[index]].replace(shape=tensor.shape)
                continue
            number = draft.add_buffer(draft.donor.buffers[tensor.buffer].data.tobytes()) if constant else 0
            places[index] = len(tensors)
            tensors.append(tensor.replace(buffer=number))
        produced.update(operator.outputs)
        code = draft.donor.operator_codes[operator.opcode_index]
        if code not in draft.codes:
            draft.codes.append(code)
        sides = {
            side: tuple(places[index] for index in getattr(operator, side))
            for side in ("inputs", "outputs", "intermediates")
        }
        added.append(operator.replace(opcode_index=draft.codes.index(code), **sides))
    at = rng.choice((len(operators), len(operators), rng.randrange(len(operators) + 1)))
    operators[at:at] = added
    outputs = here.outputs
    if added and rng.random() < 0.7:  # else they are dead
        outputs = (*outputs, *added[-1].outputs) if rng.random() < 0.5 else added[-1].outputs
    draft.edit(graph, tensors=tuple(tensors), operators=tuple(operators), outputs=tuple(outputs))


def called_from_elsewhere(draft: Draft, rng: random.Random) -> None:
    """A subgraph of another model, which operators may call."""
    theirs = rng.choice(draft.donor.subgraphs)
    tensors = []
    for tensor in theirs.tensors:
        constant = 0 < tensor.buffer < len(draft.donor.buffers) and draft.donor.buffers[tensor.buffer].data.size
        number = draft.add_buffer(draft.donor.buffers[tensor.buffer].data.tobytes()) if constant else 0
        tensors.append(tensor.replace(buffer=number))
    operators = []
    for operator in theirs.operators:
        code = draft.donor.operator_codes[operator.opcode_index]
        if code not in draft.codes:
            draft.codes.append(code)
        operators.append(operator.replace(opcode_index=draft.codes.index(code)))
    added = theirs.replace(tensors=tuple(tensors), operators=tuple(operators))
    if rng.random() < 0.5 and len(draft.graphs) > 1:
        draft.graphs[rng.randrange(1, len(draft.graphs))] = added
    else:
        draft.graphs.append(added)


def contradicting_quantization(draft: Draft, rng: random.Random) -> None:
    graph, index, tensor = draft.tensor(rng)
    record = tensor.quantization or QuantizationParameters()
    count = record.scale.size or 1
    kind = rng.choice(("scale", "scale", "point", "point", "count", "axis", "none", "other", "one", "channels"))
    if kind == "scale":
        scale = np.array(record.scale if record.scale.size else [1.0], np.float32)
        with np.errstate(all="ignore"):
            scale[rng.randrange(scale.size)] = np.float32(rng.choice(FLOATS))
        record = record.replace(scale=scale)
    elif kind == "point":
        points = np.array(record.zero_point if record.zero_point.size else [0], np.int64)
        points[rng.randrange(points.size)] = rng.choice(POINTS)
        record = record.replace(zero_point=points)
        if not record.scale.size:
            record = record.replace(scale=np.ones(1, np.float32))
    elif kind == "count":
        many = rng.choice((0, 1, 2, count - 1, count + 1, 1000))
        fields = rng.choice((("scale",), ("zero_point",), ("scale", "zero_point")))
        parts: dict[str, Any] = {"scale": np.resize(record.scale if record.scale.size else [0.1], many)}
        parts["scale"] = parts["scale"].astype(np.float32)
        parts["zero_point"] = np.resize(record.zero_point if record.zero_point.size else [0], many).astype(np.int64)
        record = record.replace(**{name: parts[name] for name in fields})
    elif kind == "axis":
        record = record.replace(quantized_dimension=rng.choice((-1, 0, 1, 2, 3, len(tensor.shape), 1 << 30)))
    elif kind == "channels":
        axis = rng.randrange(len(tensor.shape)) if tensor.shape else 0
        many = max(0, min(4096, tensor.shape[axis] if tensor.shape else 1))
        scale = np.array([rng.choice((0.1, 0.02, 1e-3)) for _ in range(many)], np.float32)
        points = np.array([rng.choice((0, 0, 0, 3)) for _ in range(many)], np.int64)
        record = record.replace(scale=scale, zero_point=points, quantized_dimension=axis)
    elif kind == "one":
        record = QuantizationParameters(
            scale=np.array([rng.choice((0.1, 0.5, 0.0039, 2.0))], np.float32),
            zero_point=np.array([rng.choice((0, 0, 3, -7, 128))], np.int64),
        )
    elif kind == "other":
        record = rng.choice(draft.graphs[graph].tensors).quantization or QuantizationParameters()
    draft.edit_tensor(graph, index, quantization=None if kind == "none" else record)


def other_shape(draft: Draft, rng: random.Random) -> None:
    """A shape that its buffer, or its neighbours, do not have."""
    graph, index, tensor = draft.tensor(rng)
    shape = list(tensor.shape)
    kind = rng.choice(("size", "size", "zero", "scalar", "one", "more", "fewer", "turn", "same", "large", "negative"))
    if kind in ("size", "zero", "large", "negative") and shape:
        at = rng.randrange(len(shape))
        shape[at] = {
            "zero": 0,
            "large": rng.choice((1 << 16, 1 << 30, (1 << 31) - 1)),
            "negative": -1,
            "size": rng.choice((1, 2, 3, 5, shape[at] + 1, max(0, shape[at] - 1), shape[at] * 2)),
        }[kind]
    elif kind == "scalar":
        shape = []
    elif kind == "one":
        shape = [1] * rng.choice((1, 1, len(shape)))
    elif kind == "more":
        shape.insert(rng.randint(0, len(shape)), rng.choice((1, 1, 2)))
    elif kind == "fewer" and shape:
        del shape[rng.randrange(len(shape))]
    elif kind == "turn":
        rng.shuffle(shape)
    else:
        shape = list(rng.choice(draft.graphs[graph].tensors).shape)
    if not all(-(1 << 31) <= size < 1 << 31 for size in shape):
        return
    fields: dict[str, Any] = {"shape": tuple(shape)}
    data = draft.data(tensor)
    if data.size and rng.random() < 0.5 and math.prod(shape) < 1 << 16 and min(shape, default=1) >= 0:
        needed = dtypes.byte_size(tensor.type, math.prod(shape))
        fields["buffer"] = draft.add_buffer(np.resize(data, needed).tobytes())
    draft.edit_tensor(graph, index, **fields)


def other_type(draft: Draft, rng: random.Random) -> None:
    """Another type of a tensor, of all operands of an operator, or of all tensors of a type."""
    graph, index, tensor = draft.tensor(rng)
    common = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32)
    rarer = (TensorType.INT64, TensorType.BOOL, TensorType.FLOAT16, TensorType.FLOAT64, TensorType.INT4)
    type = rng.choice(common) if rng.random() < 0.6 else rng.choice((*rarer, *TensorType))
    tensors = list(draft.graphs[graph].tensors)
    whom: Sequence[int] = [index]
    reach = rng.random()
    if reach < 0.4:
        _, _, operator = draft.operator(rng)
        whom = [i for i in (*operator.inputs, *operator.outputs) if 0 <= i < len(tensors) and i not in whom]
    elif reach < 0.6:
        whom = [i for i, other in enumerate(tensors) if other.type == tensor.type]
    for i in whom:
        fields: dict[str, Any] = {"type": type}
        data = draft.data(tensors[i])
        if data.size and rng.random() < 0.7:  # as many elements as before
            fits = dtypes.byte_size(type, max(0, math.prod(tensors[i].shape)))
            if 0 < fits < 1 << 18:
                fields["buffer"] = draft.add_buffer(np.resize(data, fits).tobytes())
        tensors[i] = tensors[i].replace(**fields)
    draft.edit(graph, tensors=tuple(tensors))


def other_code(draft: Draft, rng: random.Random) -> None:
    """Another operator for one node, or another version or custom name."""
    graph, index, operator = draft.operator(rng)
    code = draft.codes[operator.opcode_index]
    kind = rng.choice(("version", "version", "builtin", "builtin", "custom", "deprecated", "donor"))
    if kind == "version":
        code = code.replace(version=rng.choice((1, 2, 3, 4, 5, 6, 7, 0, -1, 99)))
    elif kind == "builtin":
        builtin = rng.choice([*BuiltinOperator])
        code = OperatorCode(builtin_code=builtin, deprecated_builtin_code=min(int(builtin), 127), version=1)
    elif kind == "custom":
        name = rng.choice(
            ("Mfcc", "AudioSpectrogram", "TFLite_Detection_PostProcess", "FlexAdd", "", "Nobody", "\u4e16")
        )
        code = OperatorCode(
            builtin_code=BuiltinOperator.CUSTOM, deprecated_builtin_code=32, custom_code=name, version=1
        )
    elif kind == "deprecated":
        code = code.replace(deprecated_builtin_code=rng.choice((0, 1, 32, 127, -1)))
    else:
        code = rng.choice(draft.donor.operator_codes)
    draft.codes.append(code)
    draft.edit_operator(graph, index, opcode_index=len(draft.codes) - 1)


def other_signature(draft: Draft, rng: random.Random) -> None:
    count = len(draft.graphs[0].tensors)
    if not draft.signatures or rng.random() < 0.3:
        sides = (
            tuple(TensorMap(name=f"{side}{i}", tensor_index=index) for i, index in enumerate(indices) if index >= 0)
            for side, indices in (("x", draft.graphs[0].inputs), ("y", draft.graphs[0].outputs))
        )
        inputs, outputs = sides
        draft.signatures.append(SignatureDef(inputs=inputs, outputs=outputs, signature_key=rng.choice(("s", "", "t"))))
    at = rng.randrange(len(draft.signatures))
    signature = draft.signatures[at]
    kind = rng.choice(("index", "index", "name", "graph", "drop", "twice", "swap", "key"))
    side = rng.choice(("inputs", "outputs"))
    entries = list(getattr(signature, side))
    if kind == "index" and entries:
        wild = rng.choice((rng.randrange(count + 1), count, (1 << 32) - 1))
        at_entry = rng.randrange(len(entries))
        entries[at_entry] = entries[at_entry].replace(tensor_index=wild)
    elif kind == "name" and entries:
        entries[rng.randrange(len(entries))] = rng.choice(entries).replace(name=rng.choice(("", "x0", "y0")))
    elif kind == "drop" and entries:
        del entries[rng.randrange(len(entries))]
    elif kind == "twice":
        entries = entries * 2
    draft.signatures[at] = signature.replace(**{side: tuple(entries)})
    if kind == "graph":
        draft.signatures[at] = signature.replace(subgraph_index=rng.choice((0, 1, 7, (1 << 32) - 1)))
    elif kind == "swap":
        draft.signatures[at] = signature.replace(inputs=signature.outputs, outputs=signature.inputs)
    elif kind == "key":
        draft.signatures.append(signature)


def other_shape_signature(draft: Draft, rng: random.Random) -> None:
    graph, index, tensor = draft.tensor(rng)
    if rng.random() < 0.5 and draft.graphs[graph].inputs:
        index = rng.choice(draft.graphs[graph].inputs)
        if not 0 <= index < len(draft.graphs[graph].tensors):
            return
        tensor = draft.graphs[graph].tensors[index]
    signature = [rng.choice((-1, size)) for size in tensor.shape]
    kind = rng.random()
    if kind < 0.1:
        signature.append(-1)
    elif kind < 0.2:
        signature = [rng.choice((-2, 0, 1, 3, -1)) for _ in signature]
    elif kind < 0.4:
        signature = [-1] * len(tensor.shape)
        draft.edit_tensor(graph, index, shape=(1,) * len(signature))
    draft.edit_tensor(graph, index, shape_signature=tuple(signature))


def written_twice(draft: Draft, rng: random.Random) -> None:
    """An operator writes what another writes, an input of the model, its own input, a constant; or one tensor twice."""
    graph, index, operator = draft.operator(rng)
    here = draft.graphs[graph]
    outputs = list(operator.outputs)
    at = rng.randrange(len(outputs))
    others = [i for other in here.operators for i in other.outputs]
    constants = [i for i, tensor in enumerate(here.tensors) if draft.data(tensor).size]
    choices = (others, here.inputs, operator.inputs, constants, outputs, here.outputs)
    chosen = rng.choice([choice for choice in choices if choice])
    outputs[at] = rng.choice(chosen)
    draft.edit_operator(graph, index, outputs=tuple(outputs))


def read_twice(draft: Draft, rng: random.Random) -> None:
    """An operator reads one tensor in two places, or something that is written later."""
    graph, index, operator = draft.operator(rng)
    inputs = list(operator.inputs)
    source = inputs if rng.random() < 0.6 else [i for op in draft.graphs[graph].operators for i in op.outputs]
    inputs[rng.randrange(len(inputs))] = rng.choice(source)
    draft.edit_operator(graph, index, inputs=tuple(inputs))


def other_ends(draft: Draft, rng: random.Random) -> None:
    """Outputs that are inputs, constants, dead or named twice; inputs that nobody reads."""
    graph = draft.graph(rng)
    here = draft.graphs[graph]
    side = rng.choice(("inputs", "outputs", "outputs"))
    indices = list(getattr(here, side))
    kind = rng.choice(("add", "add", "other side", "drop", "turn", "twice", "optional"))
    if kind == "add":
        indices.insert(rng.randint(0, len(indices)), rng.randrange(len(here.tensors)))
    elif kind == "other side":
        indices += here.outputs if side == "inputs" else here.inputs
    elif kind == "drop" and indices:
        del indices[rng.randrange(len(indices))]
    elif kind == "turn":
        rng.shuffle(indices)
    elif kind == "twice" and indices:
        indices.append(rng.choice(indices))
    elif kind == "optional" and rng.random() < 0.3:
        indices.append(-1)
    draft.edit(graph, **{side: tuple(indices)})


def dead_or_doubled(draft: Draft, rng: random.Random) -> None:
    """Operators whose results nobody reads, that run twice, or in another order."""
    graph = draft.graph(rng)
    here = draft.graphs[graph]
    operators, tensors = list(here.operators), list(here.tensors)
    at = rng.randrange(len(operators))
    kind = rng.choice(("dead", "dead", "double", "reverse", "later", "drop"))
    if kind == "dead":
        outputs = []
        for index in operators[at].outputs:
            outputs.append(len(tensors))
            tensors.append(tensors[index])
        operators.insert(rng.randint(at, len(operators)), operators[at].replace(outputs=tuple(outputs)))
    elif kind == "double":
        operators.insert(rng.randint(at, len(operators)), operators[at])
    elif kind == "reverse":
        operators.reverse()
    elif kind == "later":
        operators.insert(rng.randrange(len(operators)), operators.pop(at))
    elif len(operators) > 1:
        del operators[at]
    draft.edit(graph, operators=tuple(operators), tensors=tuple(tensors))


def variable(draft: Draft, rng: random.Random) -> None:
    graph, index, tensor = draft.tensor(rng)
    draft.edit_tensor(graph, index, is_variable=not tensor.is_variable)


def other_buffer(draft: Draft, rng: random.Random) -> None:
    """A constant that becomes an input, an activation that becomes a constant, bytes that two constants share."""
    graph, index, tensor = draft.tensor(rng)
    kind = rng.choice(("input", "plain", "constant", "share", "cut", "more"))
    data = draft.data(tensor)
    if kind in ("input", "plain") and data.size:
        draft.edit_tensor(graph, index, buffer=0)
        if kind == "input":
            draft.edit(graph, inputs=(*draft.graphs[graph].inputs, index))
    elif kind == "constant" and 0 < math.prod(tensor.shape) < 1 << 14 and min(tensor.shape, default=1) >= 0:
        size = dtypes.byte_size(tensor.type, math.prod(tensor.shape))
        filled = rng.choice((bytes(size), rng.randbytes(size), b"\x01" * size))
        draft.edit_tensor(graph, index, buffer=draft.add_buffer(filled))
        if rng.random() < 0.7:
            inputs = tuple(i for i in draft.graphs[graph].inputs if i != index)
            draft.edit(graph, inputs=inputs)
    elif kind == "share":
        draft.edit_tensor(graph, index, buffer=rng.choice(draft.graphs[graph].tensors).buffer)
    elif data.size:
        some = data.tobytes()[: rng.randrange(data.size)] if kind == "cut" else data.tobytes() + bytes(16)
        draft.edit_tensor(graph, index, buffer=draft.add_buffer(some))


def other_values(draft: Draft, rng: random.Random) -> None:
    """Constants with NaN, infinities, indices and sizes that are out of range or negative."""
    graph = draft.graph(rng)
    constants = [i for i, tensor in enumerate(draft.graphs[graph].tensors) if draft.data(tensor).size]
    index = rng.choice(constants)
    tensor = draft.graphs[graph].tensors[index]
    raw = bytearray(draft.data(tensor).tobytes())
    code = {"FLOAT32": "f", "INT32": "i", "INT64": "q", "INT16": "h", "FLOAT16": "e", "FLOAT64": "d"}
    form = "<" + code.get(getattr(tensor.type, "name", ""), "b")
    size = struct.calcsize(form)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if len(raw) < size:
            return
        at = size * rng.randrange(len(raw) // size)
        number: Any = rng.choice(FLOATS) if form[1] in "fed" else rng.choice((0, 0, 1, -1, 2, 3, 5, 100, -100))
        if form[1] == "e":
            number = rng.choice((0.0, math.inf, math.nan, -1.0))
        struct.pack_into(form, raw, at, number)
    draft.edit_tensor(graph, index, buffer=draft.add_buffer(raw))


def through(damage: Callable[[Model, random.Random], Model]) -> Damage:
    """Damage of `tests.fuzz.mutations` to a draft."""

    def to_draft(draft: Draft, rng: random.Random) -> None:
        changed = damage(_model_of(draft), rng)
        draft.graphs, draft.codes = list(changed.subgraphs), list(changed.operator_codes)

    to_draft.__name__ = damage.__name__
    return to_draft


def _model_of(draft: Draft) -> Model:
    return draft.model.replace(
        subgraphs=tuple(draft.graphs), operator_codes=tuple(draft.codes), buffers=tuple(draft.buffers)
    )


KINDS: tuple[tuple[int, Damage], ...] = (
    (3, swapped_operands),
    (2, swapped_between_operators),
    (5, spliced),
    (1, called_from_elsewhere),
    (5, contradicting_quantization),
    (4, other_shape),
    (3, other_type),
    (2, other_code),
    (1, other_signature),
    (2, other_shape_signature),
    (4, written_twice),
    (3, read_twice),
    (4, other_ends),
    (3, dead_or_doubled),
    (2, variable),
    (3, other_buffer),
    (3, other_values),
    (2, through(_other_options)),
    (1, through(_other_operator)),
    (1, through(_other_wiring)),
)


def compound(content: bytes, donor: bytes, seed: int) -> bytes:
    """The mutant of a model, and of another that lends parts, which a seed stands for: two to five kinds of damage."""
    rng = random.Random(seed)
    try:
        model, lender = read_model(content), read_model(donor)
    except ModelError:  # the seed itself is no model
        return damaged_bytes(content, rng)
    weights, kinds = zip(*KINDS, strict=True)
    for _ in range(50):
        draft = Draft(model, lender)
        done, wanted = 0, rng.choice((2, 2, 2, 3, 3, 4, 5))
        for _ in range(20):
            (damage,) = rng.choices(kinds, weights)
            try:
                damage(draft, rng)
                done += 1
            except (IndexError, KeyError, ValueError, OverflowError, struct.error):
                continue  # there is nothing of the kind here
            if done == wanted:
                break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return draft.written()
        except (ModelError, struct.error, OverflowError, MemoryError):
            continue  # a value that the format cannot even express
    return damaged_bytes(content, rng)
