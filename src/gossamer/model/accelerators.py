"""Which accelerator a compiled part of a model was made for, as far as the file says it.

Compilers for accelerators replace operators by a custom operator that holds a program. It is read here to tell people
what they have; nobody but the accelerator can run it.
"""

from __future__ import annotations

from gossamer.errors import ModelError
from gossamer.model.model import Model
from gossamer.model.reader import read_root
from gossamer.records import record
from gossamer.schema import flexbuffers
from gossamer.schema.edge_tpu import PACKAGE_IDENTIFIER, Executable, MultiExecutable, Package

LITERT_STAMP = "LiteRtStamp"
VELA_VERSION = "vela_version"

_ETHOS_U = ("Ethos-U55", "Ethos-U65", "Ethos-U85")
_COMMAND_STREAM = b"COP1"
_CONFIGURE = 1


@record(frozen=True)
class EdgeTpuProgram:
    """A program for an Edge TPU: the chip (that of Coral's is ``beagle``), the oldest runtime that takes it, and the
    compiler, where it says so."""

    chip: str
    min_runtime_version: int
    compiler: str


def edge_tpu_program(custom_options: bytes) -> EdgeTpuProgram:
    """The program in the options of an ``edgetpu-custom-op``. Raises `ModelError` if they hold none."""
    try:
        options = flexbuffers.loads(custom_options)
    except ValueError as error:
        raise ModelError(f"the options of edgetpu-custom-op are no flexbuffer: {error}") from None
    for value in options.values() if isinstance(options, dict) else ():
        data = value.encode() if isinstance(value, str) else value
        if isinstance(data, bytes) and data[4:8] == PACKAGE_IDENTIFIER:
            package = read_root(Package, memoryview(data), PACKAGE_IDENTIFIER)
            return EdgeTpuProgram(_chip(package), package.min_runtime_version, package.compiler_version)
    raise ModelError("the options of edgetpu-custom-op hold no Edge TPU program")


def _chip(package: Package) -> str:
    inner = package.serialized_multi_executable.tobytes()
    for text in read_root(MultiExecutable, memoryview(inner), inner[4:8]).serialized_executables:
        data = text.encode("utf-8", "surrogateescape")
        chip = read_root(Executable, memoryview(data), data[4:8]).chip
        if chip:
            return chip
    return ""


def ethos_u(command_stream: bytes) -> str | None:
    """The processor that a command stream of Arm's compiler Vela is for, such as ``Ethos-U55-256``: the number is that
    of multiplications in a cycle. ``None`` if it does not say."""
    words = [int.from_bytes(command_stream[at : at + 4], "little") for at in (4, 8)]
    if len(command_stream) < 12 or command_stream[:4] != _COMMAND_STREAM or words[0] & 0xFF != _CONFIGURE:
        return None
    product, macs = words[1] >> 28, 1 << (words[1] & 15)
    return f"{_ETHOS_U[product]}-{macs}" if product < len(_ETHOS_U) else None


def vela_version(model: Model) -> str:
    """The version of the compiler Vela that a model went through; ``""`` if it does not say."""
    data = model.metadata_data(VELA_VERSION)
    return "" if data is None else data.tobytes().rstrip(b"\0").decode("ascii", "replace")


def npu(model: Model) -> tuple[str, str]:
    """Maker and model of the chip that LiteRT compiled a model for; ``""`` for what it does not say."""
    data = model.metadata_data(LITERT_STAMP)
    stored = data.tobytes() if data is not None else b""
    maker, chip, *_ = *(text.decode("ascii", "replace") for text in stored.split(b"\0") if text), "", ""
    return maker, chip
