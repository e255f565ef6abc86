"""Checkpoints, in the directory that the user names for them (`gossamer.flex.files`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.convert.messages.tensorflow import DataType
from gossamer.convert.sources.tensor_bundle import TensorBundle
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.errors import ConvertError
from gossamer.flex.checkpoint import write_checkpoint
from gossamer.flex.files import allowed_file
from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.objects import strings
from gossamer.schema.enums import TensorType


@kernel("SaveV2")
def save(call: Call, prefix: Array, tensor_names: Array, shape_and_slices: Array, tensors: Sequence[Array]) -> None:
    """Write tensors under their names."""
    _require_whole(call, shape_and_slices)
    _save(call, prefix, tensor_names, tensors, "dtypes")


@kernel("Save")
def save_v1(call: Call, filename: Array, tensor_names: Array, data: Sequence[Array]) -> None:
    """The same, also in the form of `save`: ``filename`` is what the names of files begin with."""
    _save(call, filename, tensor_names, data, "T")


@kernel("RestoreV2")
def restore(call: Call, prefix: Array, tensor_names: Array, shape_and_slices: Array) -> tuple[list[Array]]:
    """The tensors with these names."""
    _require_whole(call, shape_and_slices)
    types = call.attributes.types("dtypes")
    names = tensor_names.reshape(-1).tolist()
    call.require(len(names) == len(types), f"{len(names)} names are given for {len(types)} tensors")
    return (_restored(call, prefix, names, types),)


@kernel("Restore")
def restore_v1(call: Call, file_pattern: Array, tensor_name: Array) -> Array:
    """The tensor with this name."""
    (value,) = _restored(call, file_pattern, [tensor_name.item()], [call.attributes.type("dt")])
    return value


@kernel("ShardedFilename")
def sharded_filename(call: Call, basename: Array, shard: Array, num_shards: Array) -> Array:
    """The name of one of several files."""
    return strings([b"%s-%05d-of-%05d" % (basename.item(), shard.item(), num_shards.item())], ())


def _require_whole(call: Call, slices: Array) -> None:
    call.require(not any(slices.reshape(-1).tolist()), "tensors are saved and restored as a whole, not in slices")


def _save(call: Call, prefix: Array, tensor_names: Array, tensors: Sequence[Array], types: str) -> None:
    names = [name.decode(errors="surrogateescape") for name in tensor_names.reshape(-1).tolist()]
    call.require(len(names) == len(tensors), f"{len(names)} names are given for {len(tensors)} tensors")
    call.require(len(set(names)) == len(names) and "" not in names, "names must be different, and not empty")
    listed = call.attributes.values[types].list
    stored = listed.type if listed is not None else ()
    path = allowed_file(call, prefix.item())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_checkpoint(path, dict(zip(names, zip(map(DataType, stored), tensors, strict=True), strict=True)))
    except OSError as error:
        call.fail(f"the checkpoint cannot be written: {error}")


def _restored(call: Call, prefix: Array, names: Sequence[bytes], types: Sequence[TensorType]) -> list[Array]:
    try:
        bundle = TensorBundle(allowed_file(call, prefix.item()))
        found = []
        for name, type in zip(names, types, strict=True):
            key = name.decode(errors="surrogateescape")
            call.require(key in bundle, f"the checkpoint has no tensor {key!r}; it has {', '.join(list(bundle)[:8])}")
            value = np.array(bundle.read(key))
            call.require(value.dtype == numpy_dtype(type), f"{key!r} is {value.dtype}, not {type_name(type)}")
            found.append(value)
    except (ConvertError, OSError) as error:
        call.fail(f"the checkpoint cannot be read: {error}")
    return found
