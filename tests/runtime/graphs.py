"""Small models of several operators, for tests of the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.schema import (
    Buffer,
    BuiltinOperator,
    BuiltinOptions,
    Operator,
    OperatorCode,
    SignatureDef,
    SubGraph,
    Table,
    Tensor,
    TensorMap,
    TensorType,
)


@dataclass
class Graph:
    """A subgraph under construction; every method returns tensor indices."""

    name: str = "main"
    tensors: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


class ModelMaker:
    """Builds a model subgraph by subgraph: ``make.tensor``, ``make.op``, then ``make.model()``."""

    def __init__(self) -> None:
        self.buffers = [Buffer()]
        self.codes: list[OperatorCode] = []
        self.graphs = [Graph()]
        self.signatures: list[SignatureDef] = []

    def subgraph(self, name: str) -> int:
        """Start another subgraph; what follows goes into it."""
        self.graphs.append(Graph(name))
        return len(self.graphs) - 1

    def tensor(self, shape: Sequence[int], type: TensorType = TensorType.FLOAT32, name: str = "", **fields: Any) -> int:
        tensors = self.graphs[-1].tensors
        tensors.append(Tensor(shape=tuple(shape), type=type, name=name or f"t{len(tensors)}", **fields))
        return len(tensors) - 1

    def constant(self, values: ArrayLike, dtype: Any, type: TensorType, **fields: Any) -> int:
        array = np.array(values, dtype)
        self.buffers.append(Buffer(data=np.frombuffer(array.tobytes(), np.uint8)))
        return self.tensor(array.shape, type, buffer=len(self.buffers) - 1, **fields)

    def op(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: Table | None = None,
        version: int = 1,
        custom: bool = False,
        custom_options: bytes = b"",
    ) -> None:
        builtin = BuiltinOperator.CUSTOM if custom else BuiltinOperator[name]
        fields: dict[str, Any] = {"custom_code": name} if custom else {}
        code = OperatorCode(
            builtin_code=builtin, deprecated_builtin_code=min(int(builtin), 127), version=version, **fields
        )
        if code not in self.codes:
            self.codes.append(code)
        chosen: dict[str, Any] = {}
        if options is not None:
            chosen["builtin_options" if type(options) in BuiltinOptions.codes else "builtin_options_2"] = options
        if custom_options:
            chosen["custom_options"] = np.frombuffer(custom_options, np.uint8)
        self.graphs[-1].operators.append(
            Operator(opcode_index=self.codes.index(code), inputs=tuple(inputs), outputs=tuple(outputs), **chosen)
        )

    def io(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.graphs[-1].inputs, self.graphs[-1].outputs = tuple(inputs), tuple(outputs)

    def signature(self, key: str, inputs: dict[str, int], outputs: dict[str, int], subgraph: int = 0) -> None:
        entries = [
            tuple(TensorMap(name=name, tensor_index=index) for name, index in side.items())
            for side in (inputs, outputs)
        ]
        self.signatures.append(
            SignatureDef(signature_key=key, inputs=entries[0], outputs=entries[1], subgraph_index=subgraph)
        )

    def model(self) -> bytes:
        return write_model(
            Model(
                version=3,
                operator_codes=tuple(self.codes),
                subgraphs=tuple(
                    SubGraph(
                        name=graph.name,
                        tensors=tuple(graph.tensors),
                        operators=tuple(graph.operators),
                        inputs=graph.inputs,
                        outputs=graph.outputs,
                    )
                    for graph in self.graphs
                ),
                buffers=tuple(self.buffers),
                signature_defs=tuple(self.signatures),
            )
        )


def adder() -> bytes:
    """y = (x + 1) + 1 over float32 [2, 3], the first dimension free; with a signature ``add``."""
    make = ModelMaker()
    x = make.tensor((2, 3), name="x", shape_signature=(-1, 3))
    one = make.constant([1.0], np.float32, TensorType.FLOAT32, name="one")
    middle = make.tensor((2, 3), name="middle")
    y = make.tensor((2, 3), name="y", shape_signature=(-1, 3))
    make.op("ADD", [x, one], [middle])
    make.op("ADD", [middle, one], [y])
    make.io([x], [y])
    make.signature("add", {"x": x}, {"sum": y})
    return make.model()
