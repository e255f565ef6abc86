"""Other names for tensors, inputs, outputs and subgraphs."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.edit.edited import Source, finished, opened
from gossamer.edit.names import Graph, Name, subgraph_of
from gossamer.errors import EditError
from gossamer.model.model import Model
from gossamer.schema.tables import SignatureDef, TensorMap


def rename(source: Source, names: Mapping[Name, str], *, subgraph: int | str = 0) -> Model:
    """A model whose tensors have other names: new ones by the old ones, by those of arguments and results, or by
    numbers. Inputs and outputs are called so in the signatures too.

    Raises `EditError` if there is no such tensor, or a name would be another one's.
    """
    model = opened(source)
    graph = Graph(model, subgraph_of(model, subgraph))
    new = {graph.tensor(old): name for old, name in names.items()}
    tensors = list(graph.subgraph.tensors)
    for number, name in new.items():
        tensors[number] = tensors[number].replace(name=name) if tensors[number].name != name else tensors[number]
    for number, name in new.items():
        other = next((n for n, tensor in enumerate(tensors) if tensor.name == name and n != number), None)
        if other is not None:
            raise EditError(f"tensor {other} is called {name!r} already")
    signatures = tuple(
        [
            _renamed(signature, new) if signature.subgraph_index == graph.number else signature
            for signature in model.signature_defs
        ]
    )
    subgraphs = list(model.subgraphs)
    subgraphs[graph.number] = graph.subgraph.replace(tensors=tuple(tensors))
    changes = {"signature_defs": signatures} if signatures else {}
    return finished(model, model.replace(subgraphs=tuple(subgraphs), **changes))


def _renamed(signature: SignatureDef, new: Mapping[int, str]) -> SignatureDef:
    def side(entries: tuple[TensorMap, ...]) -> tuple[TensorMap, ...]:
        named = tuple([one.replace(name=new[one.tensor_index]) if one.tensor_index in new else one for one in entries])
        if len({one.name for one in named}) < len(named):
            raise EditError(f"signature {signature.signature_key!r} would have two of a name")
        return named

    return signature.replace(inputs=side(signature.inputs), outputs=side(signature.outputs))
