"""Inputs and outputs of a model under the names that a user knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ModelError
from gossamer.model import Model
from gossamer.model.metadata import model_metadata
from gossamer.records import record, replace

if TYPE_CHECKING:
    from gossamer.runtime.interpreter import Interpreter
    from gossamer.schema import TensorMap

Array = NDArray[Any]

DEFAULT_SIGNATURE = "serving_default"
"""The key of the signature that is meant where none is named: TensorFlow's exporters give it to the only one."""


def affine(scale: float, zero_point: int) -> str:
    """The real number that a quantized value q stands for: ``0.5 * (q - 3)``."""
    if zero_point == 0:
        return f"{scale:g} * q"
    return f"{scale:g} * (q {'-' if zero_point > 0 else '+'} {abs(zero_point)})"


@record(frozen=True)
class Port:
    """An input or an output of a model. ``aliases`` are names that signatures give it; -1 in ``signature`` is any."""

    position: int
    name: str
    aliases: tuple[str, ...]
    index: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    scale: float
    zero_point: int

    @property
    def is_text(self) -> bool:
        """Whether the elements are strings."""
        return self.dtype.kind in "SUO"

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers; those of ml_dtypes (bfloat16, float8) are."""
        return self.dtype.kind == "f" or (self.dtype.kind == "V" and "float" in self.dtype.name)

    @property
    def is_quantized(self) -> bool:
        """Whether the elements are integers that stand for real numbers."""
        return self.scale != 0.0 and self.dtype.kind in "iu"

    @property
    def type_name(self) -> str:
        """The element type for messages and tables."""
        return "string" if self.is_text else self.dtype.name

    @property
    def real_range(self) -> tuple[float, float]:
        """The real numbers that the least and the greatest integer of a quantized port stand for."""
        info = np.iinfo(self.dtype)
        return self.scale * (info.min - self.zero_point), self.scale * (info.max - self.zero_point)

    def answers_to(self, name: str) -> bool:
        """Whether this is a name of the port."""
        return name == self.name or name in self.aliases

    def describe(self) -> str:
        """Name, type, shape and quantization, as messages show them."""
        quantized = f", quantized {affine(self.scale, self.zero_point)}" if self.is_quantized else ""
        shape = ", ".join("?" if n < 0 else str(n) for n in self.signature)
        return f'"{self.name}" {self.type_name} [{shape}]{quantized}'

    def dequantize(self, values: Array) -> Array:
        """The real numbers that the values of this port stand for, float32; others as they are."""
        if not self.is_quantized:
            return values
        real: Array = np.float32(self.scale) * (values.astype(np.int64) - self.zero_point).astype(np.float32)
        return real

    def quantize(self, values: Array) -> Array:
        """The nearest integers of a quantized port for real numbers, saturated."""
        info = np.iinfo(self.dtype)
        scaled = np.rint(values.astype(np.float64) / self.scale) + self.zero_point
        integers: Array = np.clip(scaled, info.min, info.max).astype(self.dtype)
        return integers


def _aliases(model: Model) -> dict[int, list[str]]:
    # What signatures and metadata call the inputs and outputs of the first subgraph.
    names: dict[int, list[str]] = {}
    for signature in model.signature_defs:
        if signature.subgraph_index == 0:
            for entry in (*signature.inputs, *signature.outputs):
                names.setdefault(entry.tensor_index, []).append(entry.name)
    try:
        metadata = model_metadata(model)
    except ModelError:
        return names  # what reads them for more says why
    if metadata is not None and metadata.subgraph_metadata:
        part, subgraph = metadata.subgraph_metadata[0], model.subgraphs[0]
        for indices, tensors in (
            (subgraph.inputs, part.input_tensor_metadata),
            (subgraph.outputs, part.output_tensor_metadata),
        ):
            for index, tensor in zip(indices, tensors, strict=False):
                if tensor.name:
                    names.setdefault(index, []).append(tensor.name)
    return names


def _port(position: int, name: str, aliases: Iterable[str], details: Mapping[str, Any]) -> Port:
    shape = tuple(int(n) for n in details["shape"])
    signature = tuple(int(n) for n in details["shape_signature"])
    scale, zero_point = details["quantization"]
    return Port(
        position=position,
        name=name or f"{position}",
        aliases=tuple(alias for alias in aliases if alias != name),
        index=int(details["index"]),
        dtype=np.dtype(details["dtype"]),
        shape=shape,
        signature=signature if len(signature) == len(shape) else shape,
        scale=float(scale),
        zero_point=int(zero_point),
    )


def ports(interpreter: Interpreter, signature: str | None = None) -> tuple[list[Port], list[Port]]:
    """The inputs and outputs of an interpreter's first subgraph, or of one of its signatures, with their names there.

    Raises ValueError for a signature that there is not.
    """
    if signature is None:
        aliases = _aliases(interpreter.model)
        sides = (interpreter.get_input_details(), interpreter.get_output_details())
        made = [
            [_port(i, d["name"], aliases.get(d["index"], ()), d) for i, d in enumerate(details)] for details in sides
        ]
    else:
        runner = interpreter.get_signature_runner(signature)
        named = (runner.get_input_details(), runner.get_output_details())
        made = [[_port(i, n, [d["name"]], d) for i, (n, d) in enumerate(details.items())] for details in named]
    return made[0], made[1]


def named_by_signature(model: Model, inputs: Sequence[Port], outputs: Sequence[Port]) -> tuple[list[Port], list[Port]]:
    """Inputs and outputs of the first subgraph under the names that a signature gives them, where one does: the default
    one, ``serving_default``, or the first. What the file calls them is an alias then."""
    found = [one for one in model.signature_defs if one.subgraph_index == 0]
    if not found:
        return list(inputs), list(outputs)
    chosen = next((one for one in found if one.signature_key == DEFAULT_SIGNATURE), found[0])
    return _renamed(inputs, chosen.inputs), _renamed(outputs, chosen.outputs)


def _renamed(ports: Sequence[Port], entries: Sequence[TensorMap]) -> list[Port]:
    names: dict[int, list[str]] = {}
    for entry in entries:
        names.setdefault(entry.tensor_index, []).append(entry.name)
    made = []
    for port in ports:
        known = names.get(port.index) or [port.name]
        name = known.pop(0) if len(known) > 1 else known[0]  # one tensor may be several outputs
        aliases = dict.fromkeys((*port.aliases, port.name))
        made.append(replace(port, name=name, aliases=tuple(alias for alias in aliases if alias != name)))
    return made
