"""A tensor that runs: its type, shape and quantization, and where its bytes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer import dtypes
from gossamer.arrays import NDArray
from gossamer.delegates.delegate import Delegate
from gossamer.dtypes import byte_size, decode_strings, numpy_dtype, string_array, type_name
from gossamer.errors import DelegateError, InvokeError
from gossamer.limits import require_memory
from gossamer.model.structure import Dependencies
from gossamer.planner.planner import AllocationType
from gossamer.quantization import UNQUANTIZED, Blocks, Quantization
from gossamer.records import replace
from gossamer.schema.enums import TensorType
from gossamer.schema.fields import Table
from gossamer.schema.tables import BlockwiseQuantization
from gossamer.schema.tables import Tensor as StoredTensor
from gossamer.sizes import Later

Array = NDArray[Any]
Shape = tuple[int, ...]

MAX_BYTES = (1 << 63) - 1

_OBJECTS = frozenset({TensorType.STRING, TensorType.VARIANT})

_CONSTANT = (AllocationType.MMAP_RO, AllocationType.PERSISTENT_RO)


class Tensor:
    """One tensor of a subgraph.

    ``buffer`` is its memory as uint8, a slice of an arena, of the mapped file, or its own, and ``None`` while it has
    none. Strings and variants have ``objects`` instead: an object array of ``bytes`` or any values. ``delegate`` is who
    writes the tensor, if not a node of the graph; it may keep the value in a buffer of its own, behind
    ``buffer_handle``, and while ``data_is_stale`` it is only there.
    """

    __slots__ = (
        "_quantization",
        "allocation_type",
        "awaited",
        "buffer",
        "buffer_handle",
        "bytes",
        "cached",
        "data_is_stale",
        "delegate",
        "home",
        "index",
        "name",
        "objects",
        "postponed",
        "shape",
        "stored",
        "type",
    )

    later: Later | None = None
    """What will be its value, where sizes are open that decide it."""

    def __init__(self, index: int, tensor_type: TensorType, shape: Shape, home: AllocationType) -> None:
        self.index = index
        self.name = ""
        self.type = tensor_type
        self.shape = shape
        self.stored: StoredTensor | None = None
        self.home = self.allocation_type = home
        self.buffer: NDArray[np.uint8] | None = None
        self.objects: NDArray[np.object_] | None = None
        self._quantization: Quantization | None = None
        self.cached: Array | None = None
        """What `array` has given, for as long as it would give it again."""
        self.bytes = 0
        self.postponed = self.awaited = False
        """Whether its shape is only known once its value is, though its place in an arena is. ``awaited``: there is
        none yet."""
        self.delegate: Delegate | None = None
        self.buffer_handle: int | None = None
        self.data_is_stale = False

    @property
    def shape_signature(self) -> Shape:
        """The stored signature, -1 where a dimension may change; the shape where there is none."""
        return (self.stored.shape_signature if self.stored is not None else ()) or self.shape

    @property
    def quantization(self) -> Quantization:
        """Scales and zero points; `UNQUANTIZED` if the file gives none."""
        if self._quantization is None:
            self._quantization = _quantization(self.stored)
        return self._quantization

    @property
    def sparsity(self) -> Table | None:
        """The stored sparsity record, of a sparse constant."""
        return self.stored.sparsity if self.stored is not None and self.is_constant else None

    @property
    def is_variable(self) -> bool:
        """Whether the value stays from one invocation to the next."""
        return self.home == AllocationType.ARENA_RW_PERSISTENT

    @property
    def is_stored(self) -> bool:
        """Whether the value is stored in the file."""
        return self.home == AllocationType.MMAP_RO

    @property
    def is_constant(self) -> bool:
        """Whether the value is stored in the file, or was computed by a prepare."""
        return self.allocation_type in _CONSTANT

    @property
    def is_supposed(self) -> bool:
        """Whether it only passes for a constant, until its value changes."""
        return False

    def miss(self) -> None:
        """Somebody could do more if this was a constant."""

    @property
    def is_dynamic(self) -> bool:
        """Whether the shape is only known once the value is; as a rule, it has memory of its own then."""
        return self.allocation_type == AllocationType.DYNAMIC or self.postponed

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of its shape but the rank: the file leaves every size open, and nobody gave one."""
        signature = self.stored.shape_signature if self.stored is not None and not self.is_constant else ()
        return bool(signature) and all(size == -1 for size in signature) and all(size == 1 for size in self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of ``array()``."""
        return numpy_dtype(self.type)

    @property
    def has_objects(self) -> bool:
        """Whether the elements are Python objects and not numbers."""
        return self.type in _OBJECTS

    @property
    def has_data(self) -> bool:
        """Whether there is a value to read; a tensor without elements always has one."""
        return self.buffer is not None or self.objects is not None or (self.bytes == 0 and not self.has_objects)

    def resize(self, shape: Shape) -> None:
        """Take a new shape and forget the memory, unless nothing changes. Raises `ValueError` for a negative
        dimension or more bytes than an address can hold, `MemoryError` for more than are given (`memory_limit`)."""
        if self.has_data and shape == self.shape and not self.has_objects:
            return
        self.bytes = self.required_bytes(shape)
        self.shape = shape
        self.buffer = self.objects = self.cached = None

    def retype(self, type: TensorType) -> None:
        """Take another type and forget the value."""
        if type != self.type:
            self.type = type
            self.forget()
            self.bytes = self.required_bytes(self.shape)

    def postpone(self, size: int) -> None:
        """Have a place of so many bytes, and a shape that comes with the value. If the value then lies in that place
        already, it stays there."""
        self.bytes, self.postponed, self.awaited = size, True, True
        self.buffer = self.cached = None

    def return_to(self, shape: Shape, size: int, memory: NDArray[np.uint8] | None) -> None:
        """Have a shape, bytes and a place again that it has had."""
        self.allocation_type, self.postponed = self.home, False
        self.shape, self.bytes, self.buffer = shape, size, memory
        self.objects = self.cached = None

    def forget(self) -> None:
        """Have no value and no memory any more."""
        self.allocation_type, self.postponed = self.home, False
        self.buffer = self.objects = self.cached = None

    def settle(self, shape: Shape) -> None:
        """Have a shape after all that was left to the value. Raises `ValueError` as `resize` does."""
        self.allocation_type, self.postponed = self.home, False
        self.resize(shape)

    def find_blocks(self, tensors: Sequence[Tensor], dependencies: Dependencies | None) -> None:
        """Look up the scales of blocks, which are values of other tensors of the subgraph."""
        quantization = self.quantization
        details = quantization.details
        if not isinstance(details, BlockwiseQuantization):
            return
        scales = _elements(tensors, details.scales, dependencies)
        zero_points = _elements(tensors, details.zero_points, dependencies)
        if scales is not None and (zero_points is not None or details.zero_points < 0):
            self._quantization = replace(quantization, blocks=Blocks(details.block_size, scales, zero_points))

    def release(self) -> None:
        """Become a scratch tensor that nobody asked for: no elements, no memory."""
        self.home = self.allocation_type = AllocationType.MEM_NONE
        self.resize((0,))

    def required_bytes(self, shape: Shape) -> int:
        """Bytes that the shape takes; 0 for strings. Raises `ValueError` and `MemoryError` as `resize` does."""
        elements = 1
        for size in shape:
            if size < 0:
                raise ValueError(f"shape {list(shape)} has a negative dimension")
            elements *= size
        size_in_bytes = byte_size(self.type, elements)
        if size_in_bytes > MAX_BYTES:
            raise ValueError(f"shape {list(shape)} of {type_name(self.type)} needs {size_in_bytes} bytes: too large")
        require_memory(size_in_bytes)
        return size_in_bytes

    def own_memory(self) -> None:
        """Allocate zeroed memory of its own for the present shape. Raises `MemoryError` if there is not so much."""
        try:
            self.buffer = np.zeros(self.bytes, np.uint8)
        except (MemoryError, ValueError) as error:
            raise MemoryError(f'tensor {self.index} "{self.name}" needs {self.bytes} bytes') from error
        self.cached = None

    def place(self, memory: NDArray[np.uint8]) -> None:
        """Use this piece of an arena."""
        self.buffer = memory
        self.cached = None

    def lie_in(self, array: Array) -> None:
        """Use the memory of an array of this dtype and as many elements, contiguous."""
        self.buffer = array.reshape(-1).view(np.uint8)
        self.cached = array if array.shape == self.shape else array.reshape(self.shape)
        self.data_is_stale = False

    def array(self) -> Array:
        """The value in its shape: a view of ``buffer``; packed integers are unpacked into a new array.

        Raises `ValueError` when there is no value.
        """
        if self.cached is not None:
            return self.cached
        if self.has_objects:
            return self._object_array()
        dtype = numpy_dtype(self.type)
        if self.buffer is None:
            if self.bytes:
                raise ValueError(f'tensor {self.index} "{self.name}" has no data')
            return self._shaped(np.empty(0, dtype))
        if self.sparsity is not None:
            return self.buffer.view(dtype)
        if dtypes.is_packed(self.type):
            elements = 1
            for size in self.shape:
                elements *= size
            value = dtypes.unpack(self.buffer[: self.bytes], self.type, elements).reshape(self.shape)
            if self.is_constant:
                self.cached = value
            return value
        self.cached = self._shaped(self.buffer[: self.bytes].view(dtype))
        return self.cached

    def _shaped(self, flat: Array) -> Array:
        try:
            return flat.reshape(self.shape)
        except ValueError as error:  # more than 64 dimensions (32 in NumPy 1), or the others of an empty array are vast
            raise ValueError(f'tensor {self.index} "{self.name}" is no array: {error}') from None

    def _object_array(self) -> Array:
        if self.objects is None:
            if self.buffer is None:
                if 0 in self.shape:
                    return np.empty(self.shape, object)
                raise ValueError(f'tensor {self.index} "{self.name}" has no data')
            self.objects = decode_strings(self.buffer, self.shape)
        return self.objects

    def store(self, value: Array) -> None:
        """Copy a value in that was computed, sizing a dynamic tensor to it. Raises `ValueError` for another shape or
        dtype than the tensor has, `MemoryError` where there is not so much."""
        place = self.cached
        if (
            place is not None
            and self.buffer is not None
            and value.dtype is place.dtype
            and value.shape == place.shape
            and not self.postponed
        ):  # as most of the time
            place[...] = value
            self.data_is_stale = False
            return
        if self.postponed:
            stays = self.buffer is None or _place(value) == _place(self.buffer)
            if stays and value.nbytes == self.bytes and (self.buffer is not None or not self.bytes):
                self.shape, self.cached, self.data_is_stale, self.awaited = value.shape, None, False, False
                return
            self.allocation_type, self.postponed, self.buffer = AllocationType.DYNAMIC, False, None
        has_objects = self.has_objects
        if self.shape != value.shape or (self.buffer is None and not has_objects):
            if self.is_dynamic:
                self.resize(value.shape)
                if not has_objects:
                    self.own_memory()
            elif self.shape != value.shape:
                raise ValueError(f"has shape {list(self.shape)}, the kernel returned {list(value.shape)}")
        if not has_objects and value.dtype != self.dtype:
            raise ValueError(f"is {self.dtype}, the kernel returned {value.dtype}")
        self.assign(value)

    def claim(self, delegate: Delegate) -> None:
        """Belong to a delegate, which writes it. Raises `DelegateError` if another one does."""
        if self.delegate not in (None, delegate):
            raise DelegateError(
                f'tensor {self.index} "{self.name}" belongs to the delegate {self.delegate.name}; '
                f"{delegate.name} cannot have it too"
            )
        self.delegate = delegate

    def set_buffer_handle(self, handle: int | None, delegate: Delegate) -> None:
        """Tie to a buffer of a delegate, or untie with ``None``; the handle before is freed. Raises `DelegateError`."""
        self.claim(delegate)
        former, self.buffer_handle = self.buffer_handle, handle
        if former not in (None, handle):
            delegate.free_buffer_handle(former)

    def make_readable(self) -> None:
        """Copy the value from the delegate's buffer, if it is only there. Raises `InvokeError`."""
        if not self.data_is_stale:
            return
        if self.delegate is None or self.buffer_handle is None:
            raise InvokeError(f'tensor {self.index} "{self.name}" is stale, but has no buffer handle to copy from')
        try:
            self.store(self.delegate.copy_from_buffer_handle(self.buffer_handle, self))
        except Exception as error:
            raise InvokeError(
                f'tensor {self.index} "{self.name}" cannot be read from buffer {self.buffer_handle} of the delegate '
                f"{self.delegate.name}: {error}"
            ) from error

    def assign(self, value: Array) -> None:
        """Copy a value of this shape in. The dtype must be that of the tensor: nothing is cast."""
        self.data_is_stale = False
        if self.type == TensorType.STRING:
            self.objects = string_array(value)
        elif self.has_objects:
            self.objects = value.astype(object)
        elif self.buffer is None:
            return
        elif dtypes.is_packed(self.type):
            self.buffer[: self.bytes] = dtypes.pack(value, self.type)
        else:
            self.array()[...] = value


def _elements(tensors: Sequence[Tensor], index: int, dependencies: Dependencies | None) -> Array | None:
    """What is stored in the file as the value of a dense tensor. ``None`` if there is no such value, or none of this
    shape: that is told by who needs it."""
    tensor = tensors[index] if 0 <= index < len(tensors) else None
    if tensor is None or not tensor.is_stored or tensor.sparsity is not None:
        return None
    if dependencies is not None:
        dependencies.add(tensor.buffer)
    try:
        return tensor.array().reshape(-1)
    except ValueError:
        return None


def _place(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def constant_tensor(index: int, stored: StoredTensor, data: NDArray[np.uint8]) -> Tensor:
    """A tensor whose value lies in the file."""
    tensor = stored_tensor(index, stored, AllocationType.MMAP_RO)
    tensor.buffer = data
    tensor.bytes = data.size if tensor.has_objects or stored.sparsity is not None else tensor.bytes
    return tensor


def stored_tensor(index: int, stored: StoredTensor, home: AllocationType) -> Tensor:
    """A tensor as the file declares it."""
    tensor = Tensor(index, stored.type, stored.shape, home)
    tensor.stored = stored
    tensor.name = stored.name
    if not tensor.has_objects:
        tensor.bytes = tensor.required_bytes(stored.shape)
    return tensor


def _quantization(stored: StoredTensor | None) -> Quantization:
    record = stored.quantization if stored is not None else None
    if record is None or (not record.scale.size and record.details is None):
        return UNQUANTIZED
    return Quantization(
        record.scale.astype(np.float32, copy=False),
        record.zero_point.astype(np.int32),
        # The verifier lets a vector name a dimension that it does not have.
        record.quantized_dimension if stored is not None and len(stored.shape) != 1 else 0,
        record.details,
    )
