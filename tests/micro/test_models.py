"""The models of ``../shared/micro`` to the byte: every figure is what TFLite Micro says of them.

Recorded from TFLite Micro of August 2026 (C++, reference kernels): 8-byte pointers on x86-64, 4-byte pointers for
Cortex-M. The smallest arenas were probed in steps of 16 bytes.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import pytest

import gossamer
from gossamer.arrays import NDArray
from gossamer.errors import ArenaError
from gossamer.micro import Category, MicroInterpreter, RecordingMicroAllocator, measure
from gossamer.micro.abi import abi
from gossamer.model import read_model
from gossamer.model.model import Model
from tests.runtime.test_memory_plan import model_path


class Figures(NamedTuple):
    """Bytes; pairs are for pointers of 4 and of 8 bytes. ``tail`` and ``buffers`` are those of the recording allocator.

    ``used`` = head + tail of the plain one, ``smallest`` the smallest arena with 8-byte pointers. ``outputs`` are the
    first 64 bits of the SHA-256 of what two invocations give, the same with both pointers.
    """

    tensors: int
    nodes: int
    used: tuple[int, int]
    head: int
    tail: tuple[int, int]
    buffers: tuple[int, int]
    smallest: int
    outputs: str
    variables: tuple[int, int] = (0, 0)


FIGURES = {
    "hello_world_int8": Figures(10, 3, (676, 1184), 32, (756, 1360), (185, 232), 1616, "046fac2b6f405cf0"),
    "micro_speech_quantized": Figures(10, 4, (6788, 7312), 5968, (932, 1552), (268, 324), 7312, "d7b5f390618bbba2"),
    "keyword_scrambled_8bit": Figures(
        54, 15, (8052, 9600), 672, (7492, 9136), (740, 832), 12512, "7c600a6b78d84fa6", (5128, 5120)
    ),
    "person_detect": Figures(89, 31, (82292, 85024), 55296, (27092, 29936), (23828, 24304), 85024, "8a639809702fb72d"),
    "kws_ref_model": Figures(35, 13, (22772, 24000), 16000, (6868, 8208), (5352, 5540), 24000, "a0688206f359dd91"),
    "vww_96_int8": Figures(89, 31, (100660, 103392), 73728, (27028, 29872), (23784, 24252), 103392, "d6171c86b0e649dd"),
    "pretrainedResnet_quant": Figures(
        38, 16, (54340, 55712), 49152, (5284, 6768), (3624, 3812), 55712, "71e56292443ffe75"
    ),
    "ad01_int8": Figures(31, 10, (2260, 3424), 768, (1604, 2864), (522, 672), 4080, "a7372ff274cfe579"),
}

POINTERS = (4, 8)


def stored(name: str) -> Model:
    return read_model(model_path(f"{name}.tflite"))


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("pointer", POINTERS)
def test_used_bytes(name: str, pointer: int) -> None:
    report = measure(stored(name), pointer_size=pointer)
    figures = FIGURES[name]
    assert report.used_bytes == figures.used[POINTERS.index(pointer)]
    assert report.head_bytes == figures.head
    assert report.tail_bytes == report.used_bytes - figures.head


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("pointer", POINTERS)
def test_categories(name: str, pointer: int) -> None:
    recording = RecordingMicroAllocator(1 << 20, abi=abi(pointer))
    MicroInterpreter(stored(name), arena=recording).allocate_tensors()
    figures, which = FIGURES[name], POINTERS.index(pointer)
    assert (recording.head_bytes, recording.tail_bytes) == (figures.head, figures.tail[which])
    used = {category: recorded.used_bytes for category, recorded in recording.recorded.items()}
    assert used == {
        Category.EVAL_TENSORS: (12, 24)[which] * figures.tensors,
        Category.PERSISTENT_TENSORS: 2 * (32, 64)[which],
        Category.QUANTIZATION: 2 * (20, 32)[which],
        Category.PERSISTENT_BUFFERS: figures.buffers[which],
        Category.VARIABLES: figures.variables[which],
        Category.NODES: (32, 64)[which] * figures.nodes,
        Category.OP_DATA: 0,
    }


@pytest.mark.parametrize("name", FIGURES)
def test_smallest_arena(name: str) -> None:
    model, smallest = stored(name), FIGURES[name].smallest
    assert measure(model, pointer_size=8).minimum_arena_bytes == smallest
    arena = np.zeros(smallest, np.uint8)
    with pytest.raises(ArenaError, match=f"The arena has {smallest - 16} bytes, {smallest} are needed: 16 are missing"):
        MicroInterpreter(model, arena=arena[:-16], pointer_size=8).allocate_tensors()
    # The buffer that was too small is as good as before, as a part of a larger one.
    again = MicroInterpreter(model, arena=arena, pointer_size=8)
    again.allocate_tensors()
    assert again.invoke()


def test_one_byte_too_few() -> None:
    model, smallest = stored("vww_96_int8"), FIGURES["vww_96_int8"].smallest
    with pytest.raises(ArenaError, match=f"{smallest} are needed: 1 are missing"):
        MicroInterpreter(model, arena=smallest - 1, pointer_size=8).allocate_tensors()


@pytest.mark.parametrize("name", FIGURES)
def test_outputs_are_those_of_tflite_micro(name: str) -> None:
    values = b"".join(value.tobytes() for value in _outputs(name))
    assert hashlib.sha256(values).hexdigest()[:16] == FIGURES[name].outputs


@pytest.mark.parametrize("name", FIGURES)
def test_outputs_are_those_of_the_reference_kernels(name: str) -> None:
    ours, theirs = _outputs(name), _reference_outputs(name)
    if name == "ad01_int8":
        # TFLite's reference kernel of a fully connected layer rounds once, TFLite Micro's twice.
        assert [int((one != other).sum()) for one, other in zip(ours, theirs, strict=True)] == [291, 228]
        assert max(int(np.abs(one.astype(int) - other).max()) for one, other in zip(ours, theirs, strict=True)) <= 2
    else:
        assert all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


def _inputs(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> list[NDArray[np.generic]]:
    random = np.random.RandomState(1)
    return [random.randint(-128, 128, shape).astype(dtype) for _ in range(2)]


def _outputs(name: str) -> list[NDArray[np.generic]]:
    interpreter = MicroInterpreter(stored(name), arena=128 * 1024)
    interpreter.allocate_tensors()
    outputs = []
    for value in _inputs(interpreter.input(0).shape, interpreter.input(0).dtype):
        interpreter.input(0).store(value)
        interpreter.invoke()
        outputs.append(interpreter.output(0).array().copy())
    return outputs


def _reference_outputs(name: str) -> list[NDArray[np.generic]]:
    interpreter = gossamer.Interpreter(
        model_path=model_path(f"{name}.tflite"),
        experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    (fed,), (read,) = interpreter.get_input_details(), interpreter.get_output_details()
    outputs = []
    for value in _inputs(tuple(fed["shape"]), np.dtype(fed["dtype"])):
        interpreter.set_tensor(fed["index"], value)
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(read["index"]))
    return outputs
