"""The tables of a program for the Edge TPU, as far as they say what it is for: libedgetpu's ``executable.fbs``.

A package holds executables, each a FlatBuffer of its own inside a text of the one around it.
"""

from __future__ import annotations

from gossamer.schema.fields import Array, Table, data, i32, string, strings, table, vector

PACKAGE_IDENTIFIER = b"DWN1"


class Unread(Table):
    """A table that nobody here looks into."""


class Executable(Table):
    """One program for one chip."""

    version: int = i32()
    name: str = string()
    serialized_model: Array = data()
    batch_size: int = i32()
    scratch_size_bytes: int = i32()
    instruction_bitstreams: tuple[Unread, ...] = vector(Unread)
    parameters: Array = data()
    dma_hints: Unread | None = table(Unread)
    input_layers: tuple[Unread, ...] = vector(Unread)
    output_layers: tuple[Unread, ...] = vector(Unread)
    chip: str = string()


class MultiExecutable(Table):
    """The programs of a package, each a serialized `Executable`."""

    serialized_executables: tuple[str, ...] = strings()


class Package(Table):
    """The root."""

    min_runtime_version: int = i32()
    serialized_multi_executable: Array = data()
    signature: Array = data()
    keypair_version: int = i32()
    compiler_version: str = string()
    virtual_chip_id: int = i32()
