"""Inputs and outputs of a model under the names that a user knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import ModelError
from gossamer.model import Model
from gossamer.model.metadata import model_metadata
from gossamer.records import record

if TYPE_CHECKING:
    from gossamer.runtime.interpreter import Interpreter

Array = NDArray[Any]


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
