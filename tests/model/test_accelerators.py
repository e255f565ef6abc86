"""What compiled parts of a model say of the accelerator that they are for."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.model import accelerators, read_model
from gossamer.model.model import Model
from gossamer.model.writer import write_root
from gossamer.schema import Buffer, Metadata
from gossamer.schema.edge_tpu import PACKAGE_IDENTIFIER, Executable, MultiExecutable, Package
from gossamer.schema.flexbuffers import dumps


def options(chip: str = "beagle") -> bytes:
    """Custom options of an ``edgetpu-custom-op``, as its compiler writes them."""
    executable = write_root(Executable(name="net", batch_size=1, chip=chip), PACKAGE_IDENTIFIER)
    inner = write_root(
        MultiExecutable(serialized_executables=(executable.decode("utf-8", "surrogateescape"),)), PACKAGE_IDENTIFIER
    )
    package = Package(
        min_runtime_version=13,
        serialized_multi_executable=np.frombuffer(inner, np.uint8),
        compiler_version="cl/343520747",
    )
    return dumps({"1": 0, "4": write_root(package, PACKAGE_IDENTIFIER)})


def with_metadata(name: str, data: bytes) -> Model:
    buffers = (Buffer(), Buffer(data=np.frombuffer(data, np.uint8)))
    return Model(version=3, buffers=buffers, metadata=(Metadata(name=name, buffer=1),))


@pytest.mark.parametrize("chip", ["beagle", "other", ""])
def test_an_edge_tpu_program(chip: str) -> None:
    expected = accelerators.EdgeTpuProgram(chip, 13, "cl/343520747")
    assert accelerators.edge_tpu_program(options(chip)) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "are no flexbuffer: 0 bytes are too few"),
        (dumps([1]), "hold no Edge TPU program"),
        (dumps({"1": 5, "4": "text"}), "hold no Edge TPU program"),
        (dumps({"4": b"\xff\xff\xff\x7fDWN1"}), "not a valid Flatbuffer"),
    ],
)
def test_what_is_no_edge_tpu_program(data: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        accelerators.edge_tpu_program(data)


def test_a_damaged_edge_tpu_program_is_an_error_or_another_program() -> None:
    whole = options()
    for position in range(len(whole)):
        for value in (0, 0x7F, 0xFF):
            damaged = bytearray(whole)
            damaged[position] = value
            try:
                accelerators.edge_tpu_program(bytes(damaged))
            except ModelError:
                continue


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ((0x00010001, 0x00003008), "Ethos-U55-256"),
        ((0x00010001, 0x10003009), "Ethos-U65-512"),
        ((0x00000001, 0x2000000B), "Ethos-U85-2048"),
        ((0x00010001, 0x70000008), None),
        ((0x00010002, 0x00003008), None),
    ],
)
def test_a_command_stream(words: tuple[int, int], name: str | None) -> None:
    stream = b"COP1" + b"".join(word.to_bytes(4, "little") for word in words)
    assert accelerators.ethos_u(stream) == name
    assert accelerators.ethos_u(stream[:-1]) is None
    assert accelerators.ethos_u(b"COP2" + stream[4:]) is None


def test_metadata_of_compilers() -> None:
    assert accelerators.vela_version(with_metadata("vela_version", b"3.11.0\0\0")) == "3.11.0"
    assert accelerators.npu(with_metadata("LiteRtStamp", b"Qualcomm\0\0\0\0SM8650\0\0")) == ("Qualcomm", "SM8650")
    assert accelerators.npu(with_metadata("LiteRtStamp", b"Qualcomm\0\0\0\0")) == ("Qualcomm", "")
    assert accelerators.vela_version(Model(version=3)) == ""
    assert accelerators.npu(Model(version=3)) == ("", "")


def test_models_of_the_corpus_name_their_accelerator(corpus: Path) -> None:
    models = corpus / "open" / "models"
    archive = zipfile.ZipFile(models / "small.zip")
    compiled = [read_model(path) for path in sorted((models / "files").glob("*_edgetpu.tflite"))]
    compiled.append(read_model(archive.read("split_concat_edgetpu.tflite")))
    assert len(compiled) == 8
    for model in compiled:
        (operator,) = (node for node in model.subgraphs[0].operators if model.custom_options(node).size)
        assert accelerators.edge_tpu_program(model.custom_options(operator).tobytes()).chip == "beagle"
    makers = {
        accelerators.npu(read_model(archive.read(name)))[0]
        for name in archive.namelist()
        if "precompiled" in name or "sm8750" in name
    }
    assert makers == {"MediaTek", "Qualcomm", ""}
