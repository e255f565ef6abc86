"""Inference through a signature: inputs and outputs by name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from gossamer.arrays import ArrayLike, NDArray
from gossamer.model.model import Model
from gossamer.runtime.details import Details
from gossamer.runtime.subgraph import Subgraph


def signature_list(model: Model) -> dict[str, dict[str, dict[str, int]]]:
    """``{signature key: {"inputs": {name: tensor index}, "outputs": ...}}``."""
    # Tensor maps are sorted by name in TFLite, whatever their order in the file.
    return {
        key: {
            "inputs": {entry.name: entry.tensor_index for entry in sorted(stored.inputs, key=_entry_name)},
            "outputs": {entry.name: entry.tensor_index for entry in sorted(stored.outputs, key=_entry_name)},
        }
        for key, stored in model.signatures.items()
    }


def _entry_name(entry: Any) -> str:
    return str(entry.name)


class SignedModel(Protocol):
    """An `Interpreter` as the runners of its signatures see it."""

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]: ...
    def _signature_subgraph(self, signature_key: str) -> int: ...
    def _subgraph(self, index: int) -> Subgraph: ...
    def _ensure_safe(self) -> None: ...
    def _invocation(self, timeout: float | None) -> AbstractContextManager[None]: ...
    def _resize_input(self, tensor_index: int, shape: tuple[int, ...], subgraph_index: int) -> None: ...
    def _set_tensor(self, tensor_index: int, value: ArrayLike, subgraph_index: int) -> None: ...
    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> Details: ...
    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> NDArray[Any]: ...


class SignatureRunner:
    """Runs one signature of a model; made by `Interpreter.get_signature_runner`.

    Raises `ValueError` without an interpreter or key, and for a key that the model does not have.

    >>> b = gossamer.Builder()
    >>> b.output("y", b.add("NEG", b.input("x", (1, 2))))
    >>> run = gossamer.Interpreter(model_content=bytes(b.finish())).get_signature_runner()
    >>> run(x=np.float32([[1, 2]]))
    {'y': array([[-1., -2.]], dtype=float32)}
    """

    def __init__(self, interpreter: SignedModel | None = None, signature_key: str | None = None) -> None:
        if not interpreter:
            raise ValueError("None interpreter provided.")
        if not signature_key:
            raise ValueError("None signature_key provided.")
        signatures = interpreter._get_full_signature_list()
        if signature_key not in signatures:
            known = ", ".join(repr(key) for key in signatures) or "none"
            raise ValueError(f'Invalid signature_key provided: "{signature_key}". The model has {known}.')
        self._interpreter = interpreter
        self._signature_key = signature_key
        self._inputs: dict[str, int] = signatures[signature_key]["inputs"]
        self._outputs: dict[str, int] = signatures[signature_key]["outputs"]
        self._subgraph_index = interpreter._signature_subgraph(signature_key)

    def __repr__(self) -> str:
        """The key, and the names that go in and out: ``<SignatureRunner "serve"(x) -> (y)>``."""
        inputs, outputs = ", ".join(self._inputs), ", ".join(self._outputs)
        return f'<{type(self).__name__} "{self._signature_key}"({inputs}) -> ({outputs})>'

    def __call__(self, /, **kwargs: Any) -> dict[str, NDArray[Any]]:
        """Resize every input to the value given, allocate, set, invoke; copies of the outputs by name.

        Raises as `run` does.
        """
        return self.run(kwargs)

    def run(self, inputs: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, NDArray[Any]]:
        """The same for inputs by name, with the ``timeout`` of `Interpreter.invoke`.

        Raises `ValueError` for a wrong number or name of inputs or a wrong dtype, and what ``allocate_tensors`` and
        ``invoke`` raise: what cancels these cancels this.
        """
        self.set_inputs(inputs)
        self.invoke(timeout=timeout)
        return self.get_outputs()

    def set_inputs(self, inputs: Mapping[str, Any]) -> None:
        """The first part of `run`: resize every input to the value given, allocate, set. Raises as `run` does."""
        if len(inputs) != len(self._inputs):
            raise ValueError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(inputs)}. It takes {', '.join(self._inputs)}."
            )
        self._interpreter._ensure_safe()
        for name, value in inputs.items():
            if name not in self._inputs:
                raise ValueError(f"Invalid Input name ({name}) for SignatureDef. It takes {', '.join(self._inputs)}.")
            self._interpreter._resize_input(self._inputs[name], tuple(np.shape(value)), self._subgraph_index)
        self._interpreter._subgraph(self._subgraph_index).allocate_tensors()
        for name, value in inputs.items():
            self._interpreter._set_tensor(self._inputs[name], value, self._subgraph_index)

    def invoke(self, *, timeout: float | None = None) -> None:
        """The second part of `run`, on the inputs that are set. Raises as `Interpreter.invoke` does."""
        with self._interpreter._invocation(timeout):
            self._interpreter._subgraph(self._subgraph_index).invoke()

    def get_outputs(self) -> dict[str, NDArray[Any]]:
        """The last part of `run`: copies of the outputs by name."""
        return {
            name: self._interpreter.get_tensor(index, self._subgraph_index) for name, index in self._outputs.items()
        }

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Details of the inputs by name; see `Interpreter.get_input_details`."""
        return self._details(self._inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Details of the outputs by name; see `Interpreter.get_output_details`."""
        return self._details(self._outputs)

    def _details(self, tensors: dict[str, int]) -> dict[str, dict[str, Any]]:
        interpreter, subgraph = self._interpreter, self._subgraph_index
        return {name: interpreter._get_tensor_details(index, subgraph) for name, index in tensors.items()}
