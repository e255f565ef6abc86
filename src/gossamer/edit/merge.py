"""Several models as one: one behind the other, or side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gossamer.dtypes import type_name
from gossamer.edit.documented import records_of, with_records
from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.names import Graph, Name, unique
from gossamer.edit.origin import restored
from gossamer.edit.portion import OF_THE_WHOLE
from gossamer.edit.references import inline, moved_operator, moved_subgraph, moved_tensor
from gossamer.errors import EditError
from gossamer.model.control_dependencies import CONTROL_DEPENDENCIES, control_dependencies, encode
from gossamer.model.metadata import MODEL_METADATA, associated_files, with_files, with_metadata
from gossamer.model.model import Model, resolved_code
from gossamer.schema.tables import (
    Buffer,
    Metadata,
    OperatorCode,
    SignatureDef,
    SubGraph,
    Tensor,
    TensorMap,
)

SHORT = 64
"""Bytes of data that are not looked for among those that are there."""

Pairs = list[tuple[int, int]]
"""Connections: an output of the first model, an input of the second one, by the numbers of tensors."""


def merge(
    *sources: Source,
    connect: Mapping[Name, Name] | Sequence[tuple[Name, Name]] | None = None,
    keep: bool = False,
) -> Model:
    """Models one behind the other: outputs of each go to inputs of the next. ``connect`` says which, by name or number,
    for two models; else those of equal names, or if there are none all in their order.

    Inputs that nothing goes to are inputs of the result, behind those of the model before; so are outputs that nobody
    takes, and with ``keep`` those that somebody takes too. Signatures of the main graphs become one. If the models are
    the parts of one that `cut` or `split` made, and nothing changed them, the result is that model, byte for byte.

    Raises `EditError` if types or shapes do not fit, or it is not clear what goes where.
    """
    models = [opened(source) for source in sources]
    if len(models) < 2:
        raise EditError("a merge needs two models or more")
    if connect is not None and len(models) > 2:
        raise EditError("connect says what goes from one model to another: merge two at a time")
    if connect is None and not keep:
        whole = restored(models)
        if whole is not None:
            return opened(whole)
    merged = models[0]
    for model in models[1:]:
        merged = _behind(merged, model, connect, keep)
    return merged


def side_by_side(*sources: Source, keys: Sequence[str] = ()) -> Model:
    """Models next to each other in one file, each called by its own signatures: a model without one gets one. ``keys``:
    what to call the first signature of each; a key that is taken gets a number.

    Equal constants are stored once. Raises `EditError` for another number of keys.
    """
    models = [opened(source) for source in sources]
    if keys and len(keys) != len(models):
        raise EditError(f"{len(models)} models have {len(keys)} keys")
    merged = _signed(models[0], keys[0] if keys else None, ())
    for number, model in enumerate(models[1:], 1):
        merged = _beside(merged, _signed(model, keys[number] if keys else None, merged.signatures))
    return finished(models[0], merged)


def _signed(model: Model, key: str | None, used: Mapping[str, Any] | tuple[()]) -> Model:
    """A model all of whose signatures have keys that are not used yet."""
    signatures = list(model.signature_defs)
    if not any(signature.subgraph_index == 0 for signature in signatures):
        signatures.insert(0, signature_of(Graph(model, 0), "main"))
    if key is not None:
        signatures[0] = signatures[0].replace(signature_key=key)
    keys: list[str] = []
    for signature in signatures:
        keys.append(unique(signature.signature_key, [*used, *keys]))
    return model.replace(
        signature_defs=tuple([one.replace(signature_key=key) for one, key in zip(signatures, keys, strict=True)])
    )


def signature_of(graph: Graph, key: str) -> SignatureDef:
    """A signature of all inputs and outputs of a graph, by their names."""

    def entries(tensors: Sequence[int], what: str) -> tuple[TensorMap, ...]:
        names: dict[str, int] = {}
        for position, number in enumerate(tensors):
            names[unique(graph.subgraph.tensors[number].name or f"{what}_{position}", names)] = number
        return tuple([TensorMap(name=name, tensor_index=number) for name, number in names.items()])

    inputs, outputs = entries(graph.subgraph.inputs, "input"), entries(graph.subgraph.outputs, "output")
    return SignatureDef(inputs=inputs, outputs=outputs, signature_key=key, subgraph_index=graph.number)


class _Joined:
    """The tables of two models: those of the second one behind those of the first."""

    def __init__(self, first: Model, second: Model) -> None:
        self.first, self.second = inline(first), inline(second)
        self.buffers: list[Buffer] = list(self.first.buffers)
        self.codes: list[OperatorCode] = list(self.first.operator_codes)
        self.new_buffers = {0: 0}
        self.contents: dict[tuple[int, bytes], int] = {}
        for number, buffer in enumerate(self.buffers):
            self.contents.setdefault(_sample(buffer), number)
        for number, buffer in enumerate(self.second.buffers):
            if number:
                self.new_buffers[number] = self._buffer(buffer)
        self.new_codes = {number: self._code(code) for number, code in enumerate(self.second.operator_codes)}
        external = {record.id for record in self.first.external_buffers}
        if self.second.external_buffers and external:
            raise EditError("both models have weights in other files: those cannot be told apart when they are one")

    def _buffer(self, buffer: Buffer) -> int:
        """The number of a buffer; equal ones are one."""
        known = self.contents.setdefault(_sample(buffer), len(self.buffers))
        if buffer.data.size >= SHORT and known < len(self.buffers) and self.buffers[known] == buffer:
            return known
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def _code(self, code: OperatorCode) -> int:
        for number, known in enumerate(self.codes):
            if (resolved_code(known), known.custom_code) == (resolved_code(code), code.custom_code):
                self.codes[number] = known.replace(version=max(known.version, code.version))
                return number
        self.codes.append(code)
        return len(self.codes) - 1

    def model(self, subgraphs: Sequence[SubGraph], signatures: Sequence[SignatureDef]) -> Model:
        """The first model with these subgraphs and all that the second one says of itself that the first does not."""
        said = {entry.name for entry in self.first.metadata} | {*OF_THE_WHOLE, CONTROL_DEPENDENCIES, MODEL_METADATA}
        entries = [entry for entry in self.first.metadata if entry.name not in (*OF_THE_WHOLE, CONTROL_DEPENDENCIES)]
        entries += [
            Metadata(name=entry.name, buffer=self.new_buffers[entry.buffer])
            for entry in self.second.metadata
            if entry.name not in said and entry.buffer in self.new_buffers
        ]
        changes: dict[str, Any] = {
            "buffers": tuple(self.buffers),
            "operator_codes": tuple(self.codes),
            "subgraphs": tuple(subgraphs),
            "signature_defs": tuple(signatures),
            "metadata": tuple(entries),
        }
        for name in ("external_buffers", "external_buffer_groups"):
            changes[name] = getattr(self.first, name) or getattr(self.second, name)
        model = self.first.replace(**{name: value for name, value in changes.items() if value or self.first.has(name)})
        files = {**associated_files(self.second), **associated_files(self.first)}
        return with_files(model, files) if files else model


def _sample(buffer: Buffer) -> tuple[int, bytes]:
    """What tells most different buffers apart."""
    data = buffer.data
    return data.size, data[:: max(1, data.size // 1021)].tobytes()


def _beside(first: Model, second: Model) -> Model:
    joined = _Joined(first, second)
    base = len(joined.first.subgraphs)
    numbers = {number: base + number for number in range(len(joined.second.subgraphs))}
    moved = [moved_subgraph(one, joined.new_buffers, joined.new_codes, numbers) for one in joined.second.subgraphs]
    signatures = [one.replace(subgraph_index=base + one.subgraph_index) for one in joined.second.signature_defs]
    model = joined.model([*joined.first.subgraphs, *moved], [*joined.first.signature_defs, *signatures])
    edges = [control_dependencies(one) or ((),) * len(one.subgraphs) for one in (first, second)]
    return _with_edges(model, [*edges[0], *edges[1]])


def _with_edges(model: Model, edges: Sequence[Sequence[tuple[int, int]]]) -> Model:
    return with_metadata(model, CONTROL_DEPENDENCIES, encode(edges)) if any(edges) else model


def _behind(first: Model, second: Model, connect: Any, keep: bool) -> Model:
    one, two = Graph(first, 0), Graph(second, 0)
    pairs = _pairs(one, two, connect)
    joined = _Joined(first, second)
    a, b = joined.first.subgraphs[0], joined.second.subgraphs[0]
    numbers = {number: len(joined.first.subgraphs) + number - 1 for number in range(len(joined.second.subgraphs))}
    numbers[0] = 0
    fed = {target: source for source, target in pairs}
    tensors = dict(fed)
    for number in range(len(b.tensors)):
        if number not in fed:
            tensors[number] = len(a.tensors) + len(tensors) - len(fed)
    renamed = _renamed(a, [(number, tensor) for number, tensor in enumerate(b.tensors) if number not in fed])
    added = [moved_tensor(tensor, joined.new_buffers, tensors) for tensor in renamed]
    used = set(fed.values())
    operators = [moved_operator(operator, tensors, joined.new_codes, numbers) for operator in b.operators]
    outputs = [number for number in a.outputs if keep or number not in used]
    outputs += [tensors[number] for number in b.outputs if tensors[number] not in outputs]
    inputs = [*a.inputs, *[tensors[number] for number in b.inputs if number not in fed]]
    main = a.replace(
        tensors=(*a.tensors, *added),
        operators=(*a.operators, *operators),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )
    called = [moved_subgraph(s, joined.new_buffers, joined.new_codes, numbers) for s in joined.second.subgraphs[1:]]
    signatures = _signatures(one, two, main, tensors)
    model = joined.model([main, *joined.first.subgraphs[1:], *called], signatures)
    shift = len(a.operators)
    edges = [control_dependencies(m) or ((),) * len(m.subgraphs) for m in (first, second)]
    behind = [(x + shift, y + shift) for x, y in edges[1][0]]
    model = _with_edges(model, [[*edges[0][0], *behind], *edges[0][1:], *edges[1][1:]])
    return finished(first, _documented(model, first, second, tensors))


def _renamed(a: SubGraph, others: Sequence[tuple[int, Tensor]]) -> list[Tensor]:
    """The tensors of the second model, called otherwise where the first one has the name."""
    used = {tensor.name for tensor in a.tensors}
    own = {tensor.name for _, tensor in others}
    renamed = []
    for _, tensor in others:
        if tensor.name and tensor.name in used:
            tensor = tensor.replace(name=unique(tensor.name, used | own))
            used.add(tensor.name)
        renamed.append(tensor)
    return renamed


def _pairs(one: Graph, two: Graph, connect: Any) -> Pairs:
    outputs, inputs = one.subgraph.outputs, two.subgraph.inputs
    if connect is not None:
        named = connect.items() if isinstance(connect, Mapping) else connect
        pairs = [(one.output(output), two.input(name)) for output, name in named]
        if len({target for _, target in pairs}) < len(pairs):
            raise EditError("an input is fed twice")
    else:
        names = {one.argument(number, True): number for number in reversed(outputs)}
        names |= {one.name(number): number for number in reversed(outputs)}
        pairs = []
        for number in inputs:
            name = next((name for name in (two.name(number), two.argument(number, False)) if name in names), None)
            if name is not None:
                pairs.append((names[name], number))
        if not pairs and len(outputs) == len(inputs):
            pairs = list(zip(outputs, inputs, strict=True))
        if not pairs:
            raise EditError(
                f"it is not clear what goes where: the outputs are {one.shown(outputs)}, "
                f"the inputs {two.shown(inputs)}; say it, OUTPUT=INPUT"
            )
    for source, target in pairs:
        _check(one, source, two, target)
    return pairs


def _check(one: Graph, source: int, two: Graph, target: int) -> None:
    """Raise for a connection of what is not alike."""
    a, b = one.subgraph.tensors[source], two.subgraph.tensors[target]
    what = f"output {one.brief(source)} does not fit input {two.brief(target)}"
    if a.type != b.type:
        raise EditError(f"{what}: it is {type_name(a.type)}, not {type_name(b.type)}; retype one of them")
    sizes = [tensor.shape_signature or tensor.shape for tensor in (a, b)]
    ranked = all(tensor.shape or tensor.has_rank for tensor in (a, b))
    if ranked and (
        len(sizes[0]) != len(sizes[1]) or any(x != y and -1 not in (x, y) for x, y in zip(*sizes, strict=True))
    ):
        raise EditError(f"{what}: its shape is {list(sizes[0])}, not {list(sizes[1])}")
    scales = [() if t.quantization is None else tuple(t.quantization.scale.tolist()) for t in (a, b)]
    points = [() if t.quantization is None else tuple(t.quantization.zero_point.tolist()) for t in (a, b)]
    if scales[0] != scales[1] or (scales[0] and points[0] != points[1]):
        raise EditError(
            f"{what}: its scale and zero point are {_brief(scales[0], points[0])}, not {_brief(scales[1], points[1])}; "
            "retype both to float32, or one of them to the numbers of the other"
        )


def _brief(scales: tuple[float, ...], points: tuple[int, ...]) -> str:
    if not scales:
        return "none"
    return f"{scales[0]:.6g} and {points[0] if points else 0}" + (" …" if len(scales) > 1 else "")


def _signatures(one: Graph, two: Graph, main: SubGraph, tensors: Mapping[int, int]) -> list[SignatureDef]:
    """One signature of the main graphs if one of them has any, and the others as they are."""
    merged: list[SignatureDef] = []
    if one.signature is not None or two.signature is not None:
        sides = []
        for outputs, ends in ((False, main.inputs), (True, main.outputs)):
            named = {
                tensors[n]: two.argument(n, outputs) for n in (two.subgraph.outputs if outputs else two.subgraph.inputs)
            }
            named |= {n: one.argument(n, outputs) for n in (one.subgraph.outputs if outputs else one.subgraph.inputs)}
            names: dict[str, int] = {}
            for number in ends:
                names[unique(named[number], names)] = number
            sides.append(tuple([TensorMap(name=name, tensor_index=number) for name, number in names.items()]))
        key = (one.signature or two.signature).signature_key  # type: ignore[union-attr]
        merged.append(SignatureDef(inputs=sides[0], outputs=sides[1], signature_key=key))
    merged += [signature for signature in one.model.signature_defs if signature.subgraph_index]
    base = len(one.model.subgraphs) - 1
    for signature in two.model.signature_defs:
        if signature.subgraph_index:
            key = unique(signature.signature_key, [other.signature_key for other in merged])
            number = base + signature.subgraph_index
            merged.append(signature.replace(signature_key=key, subgraph_index=number))
    return merged


def _documented(model: Model, first: Model, second: Model, tensors: Mapping[int, int]) -> Model:
    """What the metadata of both say of the inputs and outputs that are left."""
    from gossamer.edit.documented import changed_metadata
    from gossamer.schema.metadata import TensorMetadata

    told = records_of(first), records_of(second)
    if told[0] is None and told[1] is None:
        return model
    graphs = first.subgraphs[0], second.subgraphs[0]
    sides: list[tuple[TensorMetadata, ...]] = []
    for side, ends in enumerate((model.subgraphs[0].inputs, model.subgraphs[0].outputs)):
        found: dict[int, TensorMetadata] = {}
        for records, graph, new in ((told[1], graphs[1], tensors), (told[0], graphs[0], None)):
            old = graph.outputs if side else graph.inputs
            if records is not None:
                found |= {n if new is None else new[n]: r for n, r in zip(old, records[side], strict=True)}
        sides.append(tuple([found.get(number, TensorMetadata()) for number in ends]))
    if told[0] is None:
        model = changed_metadata(model, lambda metadata: metadata)
    return with_records(model, sides[0], sides[1])
