"""Constants that are compressed, by TFLM_DECODE and as tensors of the file; memory that is not the arena's.

Bytes are those of TFLite Micro, the package tflite-micro of October 2026, built for compressed tensors, with pointers
of 8 bytes.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from gossamer.arrays import NDArray
from gossamer.errors import ModelError, PrepareError
from gossamer.micro import Category, MicroAllocator, MicroInterpreter, measure
from gossamer.micro.compression import COMPRESSION_METADATA
from gossamer.micro.runtime import Interpreter
from gossamer.model import read_model
from gossamer.model.metadata import with_metadata
from gossamer.model.writer import write_model
from gossamer.ops.custom.tflm_decode import op
from gossamer.schema.compression import CompressionMetadata, LutTensor, Subgraph
from tests.micro.compressed import compressed, root
from tests.micro.kernels.random_cases import random_cases
from tests.ops.cases import model_of
from tests.ops.test_tflm_decode import CASES

DECODE = {case.id: model_of(op, case) for case in CASES}


def used(interpreter: Interpreter) -> tuple[int, int]:
    """Bytes of the arena, and of its head."""
    allocator = interpreter.interpreter.allocator
    return allocator.used_bytes, allocator.head_bytes


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_decode_on_a_device(case: Any) -> None:
    interpreter = MicroInterpreter(DECODE[case.id], arena=1 << 12)
    interpreter.invoke()
    for i, operand in enumerate(case.outputs):
        assert interpreter.output(i).array().tobytes() == operand.value.tobytes()


DECODED = {
    "lut_2_bits": [(816, 16), (816, 0)],
    "pruned_to_zero_points": [(868, 16), (868, 0)],
    "huffman_int16": [(800, 16), (800, 0)],
    "two": [(1056, 32), (1040, 0)],
}
"""Arena and head without memory besides the arena, and with 40 bytes of it."""


@pytest.mark.parametrize("id", DECODED)
def test_what_decode_takes(id: str) -> None:
    interpreters = [
        Interpreter.from_bytes(DECODE[id], arena_size=4096, alt_decompression_memory_size=size) for size in (0, 40)
    ]
    assert [used(interpreter) for interpreter in interpreters] == DECODED[id]
    one, other = interpreters
    for interpreter in interpreters:
        interpreter.invoke()
    assert one.get_output(0).tobytes() == other.get_output(0).tobytes()


def test_operators_share_the_memory_besides_the_arena() -> None:
    interpreter = MicroInterpreter(DECODE["two"], decompression_memory=40)
    interpreter.allocate_tensors()
    memory = interpreter.decompression_memory
    assert interpreter.output(0).data.base is interpreter.output(1).data.base is memory.region  # type: ignore[union-attr]
    memory.reset()
    assert [memory.allocate(size) is None for size in (1, 16, 8, 1)] == [False, False, False, True]


def weighted(key: str) -> tuple[bytes, list[NDArray[Any]], list[int]]:
    """A model with weights of few values, what is fed to it, and which tensors are weights and bias."""
    model, fed = next((model, fed) for name, model, fed in random_cases() if name == key)
    parsed = read_model(model)
    inputs = parsed.subgraphs[0].operators[0].inputs
    constants = [inputs[1], inputs[-1]]
    buffer = parsed.subgraphs[0].tensors[inputs[1]].buffer
    buffers = list(parsed.buffers)
    coarse = np.asarray(parsed.buffer_data(buffer)).view(np.int8) // 8 * 8
    buffers[buffer] = buffers[buffer].replace(data=np.frombuffer(coarse.tobytes(), np.uint8))
    return write_model(parsed.replace(buffers=tuple(buffers))), [operand.value for operand in fed], constants


COMPRESSED = {
    "CONV_2D/0": [(3152, 1984), (3104, 1936), "aa9d2d2d9f526f8c"],
    "CONV_2D/1": [(2352, 1184), (2320, 1152), "fffd83ca57ba8ca6"],
    "DEPTHWISE_CONV_2D/1": [(2240, 1072), (2128, 960), "89d9f29bf80dc213"],
    "FULLY_CONNECTED/0": [(2800, 1632), (2720, 1552), "e6e16ecd3bc45a39"],
    "FULLY_CONNECTED/1": [(2080, 1008), (2032, 960), "8792bd7ff2dd5a8b"],
    "TRANSPOSE_CONV/0": [(14576, 13376), (14544, 13328), "b383aa3fbbf97122"],
    "TRANSPOSE_CONV/1": [(8080, 6880), (8064, 6848), "d8724b536beb0e8a"],
}
"""Arena and head without memory besides the arena, and with 128 bytes of it; the first 64 bits of the SHA-256 of what
comes out. The package has later options for FULLY_CONNECTED, which take 16 bytes more than are given."""


@pytest.mark.parametrize("key", COMPRESSED)
def test_compressed_tensors(key: str) -> None:
    model, fed, constants = weighted(key)
    interpreters = [
        Interpreter.from_bytes(compressed(model, constants), arena_size=1 << 16, alt_decompression_memory_size=size)
        for size in (0, 128)
    ]
    plain = Interpreter.from_bytes(model, arena_size=1 << 16)
    outputs = []
    for interpreter in (*interpreters, plain):
        for i, value in enumerate(fed):
            interpreter.set_input(value, i)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0).tobytes())
    assert len(set(outputs)) == 1
    digest = hashlib.sha256(outputs[0]).hexdigest()[:16]
    assert [*(used(interpreter) for interpreter in interpreters), digest] == COMPRESSED[key]


def test_a_model_of_compressed_tensors_is_measured_for_a_device_that_takes_them() -> None:
    model, _, constants = weighted("CONV_2D/1")
    plain, small = measure(read_model(model)), measure(read_model(compressed(model, constants)))
    assert (plain.scratch_requests, small.scratch_requests) == (0, 2)
    # Two tables of three pointers' worth, and a pointer for each tensor.
    assert small.categories[Category.COMPRESSION].requested_bytes == 2 * (8 + 8) + 4 * 4
    with pytest.raises(ModelError, match="abi is not built for compression"):
        MicroInterpreter(compressed(model, constants), arena=MicroAllocator(1 << 16))


def with_entry(model: bytes, *luts: tuple[int, int, int], version: int = 1, subgraphs: int = 1) -> bytes:
    """The model with these entries for its subgraph: tensor, buffer of values, bits."""
    entries = tuple(LutTensor(tensor=t, value_buffer=b, index_bitwidth=w) for t, b, w in luts)
    metadata = CompressionMetadata(schema_version=version, subgraphs=(Subgraph(lut_tensors=entries),) * subgraphs)
    return write_model(with_metadata(read_model(model), COMPRESSION_METADATA, root(metadata)))


@pytest.mark.parametrize(
    ("luts", "how", "message"),
    [
        ([(1, 2, 1)], {"version": 2}, "schema version 2 is not known, only 1"),
        ([(1, 2, 1)], {"subgraphs": 0}, "it has 0 subgraphs, the model 1"),
        ([(1, 2, 1)], {"subgraphs": 2}, "it has 2 subgraphs, the model 1"),
        ([], {}, "subgraph 0 has no LutTensor"),
        ([(9, 2, 1)], {}, "subgraph 0 has no tensor 9, or it is there twice"),
        ([(1, 2, 1), (1, 2, 1)], {}, "subgraph 0 has no tensor 1, or it is there twice"),
        ([(0, 2, 1)], {}, "has no indices or no values"),
        ([(1, 99, 1)], {}, r"buffers\[99\] does not exist"),
        ([(1, 2, 8)], {}, "indices must have 1 to 7 bits, got 8"),
        ([(1, 2, 7)], {}, "an index needs value 124 of 20"),
    ],
)
def test_metadata_that_do_not_fit(luts: list[tuple[int, int, int]], how: dict[str, int], message: str) -> None:
    model, _, _ = weighted("CONV_2D/1")
    with pytest.raises(ModelError, match=f"metadata 'COMPRESSION_METADATA': .*{message}"):
        MicroInterpreter(with_entry(model, *luts, **how))


def test_damaged_metadata() -> None:
    model, _, _ = weighted("CONV_2D/1")
    with pytest.raises(ModelError, match=r"metadata 'COMPRESSION_METADATA': .*not a valid Flatbuffer"):
        MicroInterpreter(write_model(with_metadata(read_model(model), COMPRESSION_METADATA, b"\xff" * 12)))


def test_an_operator_that_decompresses_nothing() -> None:
    model = next(model for key, model, _ in random_cases() if key == "PRELU/0")
    with pytest.raises(PrepareError, match="input 1 is compressed, which TFLite Micro has no kernel for"):
        MicroInterpreter(compressed(model, [1])).allocate_tensors()
