"""The stored model: the root table of a .tflite file and the bytes that it was read from."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gossamer.dtypes import NO_ARENA, byte_size
from gossamer.errors import ModelError
from gossamer.schema import tables
from gossamer.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from gossamer.arrays import NDArray
    from gossamer.schema.tables import (
        Buffer,
        ExternalBuffer,
        Operator,
        OperatorCode,
        SignatureDef,
        Tensor,
    )

M = TypeVar("M", bound="Model")

NO_OFFSET = 1
"""Offsets up to this one mean that nothing is stored behind the FlatBuffer; converters write 1 to keep the place."""


class Model(tables.ModelTable):
    """A stored model: the fields of the schema's table, and where they came from. Immutable.

    ``source`` is the whole file as a read-only memoryview, ``path`` its name; both are ``None`` for a model that was
    made in memory. Constants stay views of the source, which lives as long as one of them does.
    """

    source: memoryview | None = None
    path: str | None = None
    identity: str | None = None
    """What tells the file that was read from every other one, and from itself after a change; ``None`` if unknown."""
    unchanged: bool = False
    """Whether the model says exactly what its source says, so that writing it gives the same bytes."""
    appended: Mapping[str, bytes] | None = None
    """The files that are written behind the model, by name; ``None``: those behind its source."""

    def __repr__(self) -> str:
        """Where it is from, and how large: ``<Model of m.tflite: 1 subgraph, 64 operators, 171 tensors, 9 bytes>``."""
        counts = {
            "subgraph": len(self.subgraphs),
            "operator": sum(len(subgraph.operators) for subgraph in self.subgraphs),
            "tensor": sum(len(subgraph.tensors) for subgraph in self.subgraphs),
            "byte": len(self.source) if self.source is not None else 0,
        }
        parts = [f"{count:,} {name}{'s' * (count != 1)}" for name, count in counts.items() if count]
        of = f" of {os.path.basename(self.path)}" if self.path else ""
        return f"<{type(self).__name__}{of}: {', '.join(parts)}>"

    def with_source(
        self: M,
        source: memoryview | None,
        path: str | None = None,
        unchanged: bool = False,
        identity: str | None = None,
    ) -> M:
        """The same tables over other bytes, which the offsets of its external data then refer to."""
        model = super().replace()
        vars(model).update(source=source, path=path, unchanged=unchanged, identity=identity)
        return model

    def replace(self: M, **changes: Any) -> M:
        """A copy with some fields changed, still over the same source. Raises `TypeError` for an unknown field."""
        model = super().replace(**changes)
        vars(model).update(source=self.source, path=self.path, appended=self.appended)
        return model

    def __bytes__(self) -> bytes:
        """The bytes of the file, as `gossamer.model.writer.write_model` gives them."""
        content: bytes = import_module("gossamer.model.writer").write_model(self)
        return content

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, completely or not at all; constants go there from where they lie, without a copy in between.

        Raises `ModelError` as `gossamer.model.writer.write_model`, `OSError` if the file cannot be written.
        """
        import_module("gossamer.model.writer").save_model(self, path)

    def buffer_data(self, index: int) -> NDArray[np.uint8] | None:
        """The bytes of a buffer as a read-only view; ``None`` for a buffer without data, which buffer 0 always is.

        Raises `ModelError` if there is no such buffer, or its data lie outside the source.
        """
        if not 0 <= index < len(self.buffers):
            raise ModelError(f"buffers[{index}] does not exist: the model has {len(self.buffers)} buffers")
        buffer = self.buffers[index]
        if index == 0:
            return None
        if buffer.has("data"):
            return buffer.data
        if buffer.offset > NO_OFFSET:
            return self._stored(buffer.offset, buffer.size, f"buffers[{index}]")
        return None

    def custom_options(self, operator: Operator) -> NDArray[np.uint8]:
        """The options of a custom operator, wherever they are stored; empty if it has none.

        Raises `ModelError` if they lie outside the source.
        """
        if not operator.has("custom_options") and operator.large_custom_options_offset > NO_OFFSET:
            return self._stored(
                operator.large_custom_options_offset, operator.large_custom_options_size, "custom options"
            )
        return operator.custom_options

    def _stored(self, offset: int, size: int, what: str) -> NDArray[np.uint8]:
        source = self.source if self.source is not None else memoryview(b"")
        if offset + size > len(source):
            raise ModelError(
                f"{what}: {size} bytes at byte {offset} end outside the file ({len(source)} bytes); "
                "is it cut short, or was the model taken out of its file?"
            )
        return np.frombuffer(source, np.uint8)[offset : offset + size]

    def tensor_data(self, tensor: Tensor) -> NDArray[np.uint8] | None:
        """The stored bytes of a constant tensor as a read-only view; ``None`` for any other tensor."""
        return self.buffer_data(tensor.buffer) if tensor.buffer else None

    def tensor_bytes(self, tensor: Tensor) -> int | None:
        """Bytes that a dense tensor of the stored shape needs; ``None`` for types whose values decide their size.

        Raises `ModelError` for a negative dimension, an unknown type and more than 2**64 - 1 bytes.
        """
        return required_bytes(tensor)

    def operator_code(self, operator: Operator) -> OperatorCode:
        """The operator code that an operator refers to. Raises `ModelError` if it does not exist."""
        if operator.opcode_index >= len(self.operator_codes):
            raise ModelError(
                f"Missing registration for opcode_index {operator.opcode_index}: "
                f"the model has {len(self.operator_codes)} operator codes"
            )
        return self.operator_codes[operator.opcode_index]

    def builtin_code(self, operator: Operator) -> int:
        """The builtin code of an operator, a `BuiltinOperator` if known. Raises `ModelError` as `operator_code`."""
        return resolved_code(self.operator_code(operator))

    def operator_name(self, operator: Operator) -> str:
        """``CONV_2D``; for a custom operator its custom code; for an unknown builtin ``BUILTIN_300``."""
        return code_name(self.operator_code(operator))

    def external_buffer(self, tensor: Tensor) -> ExternalBuffer | None:
        """Where the data of a tensor are in another file; ``None`` if they are not. Raises `ModelError` if unknown."""
        if not tensor.external_buffer:
            return None
        for record in self.external_buffers:
            if record.id == tensor.external_buffer:
                return record
        raise ModelError(
            f"tensor {tensor.name!r} asks for external buffer {tensor.external_buffer}, "
            f"the model has {', '.join(str(record.id) for record in self.external_buffers) or 'none'}"
        )

    @property
    def signatures(self) -> Mapping[str, SignatureDef]:
        """The signatures by their key, in the order of the file."""
        return {signature.signature_key: signature for signature in self.signature_defs}

    def metadata_data(self, name: str) -> NDArray[np.uint8] | None:
        """The bytes of a metadata entry as a read-only view; ``None`` if there is no such entry or it has no data."""
        for entry in self.metadata:
            if entry.name == name and entry.buffer < len(self.buffers):
                buffer: Buffer = self.buffers[entry.buffer]
                return buffer.data if buffer.has("data") else self.buffer_data(entry.buffer)
        return None


def resolved_code(code: OperatorCode) -> int:
    """The builtin code of an operator code: old files have only the int8 field, new ones both, the greater counts."""
    number = max(code.builtin_code, code.deprecated_builtin_code)
    return BuiltinOperator._value2member_map_.get(number, number)  # type: ignore[return-value]


def code_name(code: OperatorCode) -> str:
    """The name of an operator code, see `Model.operator_name`."""
    number = resolved_code(code)
    if number == BuiltinOperator.CUSTOM:
        return code.custom_code or "CUSTOM"
    try:
        return BuiltinOperator(number).name
    except ValueError:
        return f"BUILTIN_{number}"


def element_count(shape: tuple[int, ...]) -> int:
    """The product of the dimensions. Raises `ModelError` for a negative one, or if the count does not fit 64 bits."""
    count = 1
    for dimension in shape:
        if dimension < 0:
            raise ModelError(f"shape {list(shape)} has a negative dimension")
        count *= dimension
        if count >> 64:
            raise ModelError(f"shape {list(shape)} has more than 2**64 - 1 elements")
    return count


def required_bytes(tensor: Tensor) -> int | None:
    """See `Model.tensor_bytes`."""
    if tensor.type in NO_ARENA:
        return None
    try:
        size = byte_size(tensor.type, element_count(tensor.shape))
    except KeyError:
        raise ModelError(f"Unsupported data type {tensor.type} in tensor") from None
    if size >> 64:
        raise ModelError(f"shape {list(tensor.shape)} needs more than 2**64 - 1 bytes")
    return size
