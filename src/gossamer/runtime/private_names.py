"""The private names of the peers' interpreters that well-known tools use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.delegates.delegate import Delegate
from gossamer.runtime.details import Details, op_details
from gossamer.runtime.engine import Engine
from gossamer.runtime.signature import signature_list

SignatureDefs = dict[str, dict[str, dict[str, int]]]


class InterpreterWrapper:
    """An interpreter by the names of the C++ class of LiteRT that is behind ``Interpreter._interpreter``.

    ``subgraph_index``: -1 for the first, whose default delegate is applied then. Raises what the interpreter raises.
    """

    def __init__(self, interpreter: Any) -> None:
        self._own = interpreter

    def AllocateTensors(self, subgraph_index: int = -1) -> None:
        if subgraph_index < 0:
            self._own.allocate_tensors()
        else:
            self._own._subgraph(subgraph_index).allocate_tensors()

    def Invoke(self, subgraph_index: int = -1) -> None:
        if subgraph_index < 0:
            self._own.invoke()
        else:
            self._own._subgraph(subgraph_index).invoke()

    def ResizeInputTensor(self, i: int, value: ArrayLike, strict: bool, subgraph_index: int = 0) -> None:
        if subgraph_index <= 0:
            self._own.resize_tensor_input(i, value, strict)
        else:
            shape = tuple(np.asarray(value).tolist())
            self._own._subgraph(subgraph_index).resize_input(i, shape, strict=strict)

    def SetTensor(self, i: int, value: ArrayLike, subgraph_index: int = 0) -> None:
        self._own._set_tensor(i, value, subgraph_index)

    def GetTensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        return self._own.get_tensor(tensor_index, subgraph_index)

    def tensor(self, base_object: object, tensor_index: int, subgraph_index: int = 0) -> Any:
        if subgraph_index:
            raise ValueError("there are views of tensors of the first subgraph only")
        return self._own.tensor(tensor_index)()

    def InputIndices(self) -> NDArray[np.int32]:
        return np.array(self._own._subgraph(0).inputs, np.int32)

    def OutputIndices(self) -> NDArray[np.int32]:
        return np.array(self._own._subgraph(0).outputs, np.int32)

    def NumSubgraphs(self) -> Any:
        return self._own.num_subgraphs()

    def NumTensors(self, subgraph_index: int) -> int:
        return len(self._own._subgraph(subgraph_index).tensors)

    def NumNodes(self) -> int:
        return len(self._own._subgraph(0).nodes)

    def NodeName(self, node_index: int) -> str:
        return str(self._own._get_op_details(node_index)["op_name"])

    def NodeInputs(self, node_index: int) -> NDArray[np.int32]:
        inputs: NDArray[np.int32] = self._own._get_op_details(node_index)["inputs"]
        return inputs

    def NodeOutputs(self, node_index: int) -> NDArray[np.int32]:
        outputs: NDArray[np.int32] = self._own._get_op_details(node_index)["outputs"]
        return outputs

    def TensorName(self, tensor_index: int, subgraph_index: int) -> Any:
        return self._own._subgraph(subgraph_index).tensor(tensor_index).name

    def TensorType(self, tensor_index: int, subgraph_index: int) -> Any:
        return self._detail("dtype", tensor_index, subgraph_index)

    def TensorSize(self, tensor_index: int, subgraph_index: int) -> Any:
        return self._detail("shape", tensor_index, subgraph_index)

    def TensorSizeSignature(self, tensor_index: int, subgraph_index: int) -> Any:
        return self._detail("shape_signature", tensor_index, subgraph_index)

    def TensorQuantization(self, tensor_index: int, subgraph_index: int) -> Any:
        return self._detail("quantization", tensor_index, subgraph_index)

    def TensorQuantizationParameters(self, tensor_index: int, subgraph_index: int) -> tuple[Any, ...]:
        """Scales, zero points, quantized dimension and block size."""
        return tuple(self._detail("quantization_parameters", tensor_index, subgraph_index).values())

    def TensorSparsityParameters(self, tensor_index: int, subgraph_index: int) -> Any:
        return self._detail("sparsity_parameters", tensor_index, subgraph_index)

    def GetSignatureDefs(self) -> Any:
        return self._own._get_full_signature_list()

    def GetSubgraphIndexFromSignature(self, signature_key: str) -> Any:
        return self._own._signature_subgraph(signature_key)

    def ModifyGraphWithDelegate(self, delegate: Delegate) -> Any:
        return self._own.modify_graph_with_delegate(delegate)

    def ResetVariableTensors(self) -> None:
        self._own.reset_all_variables()

    def SetNumThreads(self, num_threads: int) -> NoReturn:
        raise RuntimeError("the number of threads is an argument of the constructor, num_threads")

    def interpreter(self) -> Any:
        return self._own._native_handle()

    def _detail(self, name: str, tensor_index: int, subgraph_index: int) -> Any:
        return self._own._get_tensor_details(tensor_index, subgraph_index)[name]


class PrivateNames:
    """What `Interpreter` has of them."""

    _engine: Engine
    _held: set[Any]

    @property
    def _interpreter(self) -> InterpreterWrapper:
        return InterpreterWrapper(self)

    @property
    def _delegates(self) -> Sequence[Delegate]:
        return list(self._engine.delegates)

    @property
    def _signature_defs(self: Any) -> dict[str, dict[str, list[str]]]:
        signatures: dict[str, dict[str, list[str]]] = self.get_signature_list()
        return signatures

    def _safe_to_run(self) -> bool:
        return not self._held

    def _get_full_signature_list(self) -> SignatureDefs:
        return signature_list(self._engine.model)

    def _signature_subgraph(self, signature_key: str) -> int:
        return self._engine.model.signatures[signature_key].subgraph_index

    def _get_op_details(self, op_index: int) -> Details:
        graph = self._engine.subgraph(0)
        if not 0 <= op_index < len(graph.nodes):
            raise ValueError("Invalid node index")
        return op_details(graph.nodes[op_index], graph.tensors)

    def _get_ops_details(self) -> list[Details]:
        return [self._get_op_details(index) for index in range(len(self._engine.subgraph(0).nodes))]

    def _native_handle(self) -> int:
        raise RuntimeError(
            "who asks for the address of a C++ interpreter of TFLite wants to call C++ code with it; there is none "
            "behind this one: it is Python"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"cannot pickle '{type(self).__name__}' object: open the model again where it shall run, or, in another "
            "thread, use clone()"
        )
