from __future__ import annotations

import mmap
import random
import struct
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from gossamer.errors import ModelError
from gossamer.model import read_model, verify_model
from gossamer.model.reader import generate, read_root
from gossamer.model.writer import write_model, write_root
from gossamer.schema import AddOptions, Buffer, Conv2DOptions, Operator, SubGraph, Tensor, TensorType
from gossamer.schema.fields import Table, i32
from tests.model.arbitrary import add_model, all_tables, arbitrary

INVALID = "The model is not a valid Flatbuffer buffer"


@pytest.mark.parametrize("cls", all_tables(), ids=lambda cls: cls.__name__)
def test_every_table_survives_the_way_through_bytes(cls: type[Table]) -> None:
    rng = random.Random(cls.__name__)
    for presence in (0.0, 0.5, 0.5, 0.9, 1.0):
        table = arbitrary(cls, rng, presence)
        content = write_root(table, b"TEST")
        again = read_root(cls, memoryview(content), b"TEST")
        assert again == table
        assert write_root(again, b"TEST") == content


def test_bytes_are_referenced_not_copied() -> None:
    content = bytearray(write_model(add_model()))
    model = read_model(content)
    data = model.buffer_data(1)
    assert data is not None
    assert np.shares_memory(data, np.frombuffer(content, np.uint8))
    assert not data.flags.writeable
    assert model.source is not None
    assert model.source.readonly


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.frombuffer, "mmap"])
def test_sources(kind: object) -> None:
    content = write_model(add_model())
    if kind == "mmap":
        source: object = mmap.mmap(-1, len(content))
        source.write(content)  # type: ignore[attr-defined]
    else:
        source = np.frombuffer(content, np.uint8) if kind is np.frombuffer else kind(content)  # type: ignore[operator]
    assert read_model(source) == add_model()  # type: ignore[arg-type]


def test_paths(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    write_model(add_model(), path)
    for source in (path, str(path)):
        model = read_model(source)
        assert model == add_model()
        assert model.path == str(path)


def test_files_that_cannot_be_mapped(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"Could not open '.*no'\.The model allocation is null/empty: No such file"):
        read_model(tmp_path / "no")
    with pytest.raises(ModelError, match=r"The model allocation is null/empty"):
        read_model(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(
        ModelError, match=r"mmap of size 0 requested\.The model allocation is null/empty: .* empty file"
    ):
        read_model(tmp_path / "empty")
    with pytest.raises(TypeError, match="a model is read from a path or from bytes, got int"):
        read_model(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "root table: 0 bytes are too few for a model"),
        (b"abc", "root table: 3 bytes are too few for a model"),
        (b"\x18\0\0\0TFL3", r"root table: table at byte 24 ends outside the file \(8 bytes\)"),
        (b"\0\0\0\0TFL3\0\0\0\0", "root table: the offset of the root table is 0"),
        (b"\x08\0\0\0TFL4\0\0\0\0", r"identifier at byte 4 is b'TFL4', must be b'TFL3'; is this a .tflite file\?"),
        (b"PK\3\4\0\0\0\0", "this is a zip archive; extract the .tflite file"),
        (b"\x0a\0\0\0TFL3\0\0\0\0\0\0\0\0", "root table: table at byte 10 is not aligned to 4 bytes"),
        (b"\x08\0\0\0TFL3\x10\0\0\0", "root table: table at byte 8 has its vtable at byte -8"),
        (b"\x08\0\0\0TFL3\0\0\0\x80", "root table: table at byte 8 has its vtable at byte 2147483656"),
    ],
)
def test_files_that_are_no_models(content: bytes, reason: str) -> None:
    with pytest.raises(ModelError, match=f"^{INVALID}: .*{reason}"):
        read_model(content)


def _with_word(content: bytes, word: int, value: int) -> bytes:
    """The content with the only 32-bit word of a value replaced."""
    old, new = struct.pack("<I", word), struct.pack("<I", value & 0xFFFFFFFF)
    assert content.count(old) == 1
    return content.replace(old, new)


def test_messages_name_the_place() -> None:
    subgraph = add_model().subgraphs[0]
    tensors = tuple(Tensor(shape=(7,) * n, name="t" * 100) for n in range(1, 7))
    content = write_model(add_model(subgraphs=(subgraph.replace(tensors=tensors),)))
    at = content.index(struct.pack("<4I", 3, 7, 7, 7))
    broken = content[:at] + struct.pack("<I", 1 << 30) + content[at + 4 :]
    with pytest.raises(ModelError) as error:
        read_model(broken)
    assert str(error.value) == (
        f"{INVALID}: subgraphs[0].tensors[2].shape: vector of 1073741824 elements at byte {at} "
        f"ends outside the file ({len(content)} bytes)"
    )


def test_strings_end_with_zero() -> None:
    content = write_model(add_model())
    at = content.index(b"constant\0")
    broken = content[: at + 8] + b"x" + content[at + 9 :]
    with pytest.raises(
        ModelError, match=r"subgraphs\[0\]\.tensors\[1\]\.name: string of 8 bytes .* not terminated by 0"
    ):
        read_model(broken)


def test_names_need_not_be_utf_8() -> None:
    content = write_model(add_model()).replace(b"constant\0", b"c\xff\xfestant\0")
    model = read_model(content)
    assert model.subgraphs[0].tensors[1].name == "c\udcff\udcfestant"
    assert write_model(model.replace()) == content


def test_unknown_enum_values_stay_numbers() -> None:
    subgraph = add_model().subgraphs[0]
    model = add_model(subgraphs=(subgraph.replace(tensors=(Tensor(type=77),)),))
    kind = read_model(write_model(model)).subgraphs[0].tensors[0].type
    assert kind == 77
    assert not isinstance(kind, TensorType)


def test_fields_of_a_newer_schema_are_remembered_and_dropped_with_a_warning() -> None:
    class NewerTensor(Tensor):
        temperature: int = i32()

    content = write_root(NewerTensor(name="a", temperature=3), b"TEST")
    tensor = read_root(Tensor, memoryview(content), b"TEST")
    assert tensor == Tensor(name="a")
    slot = NewerTensor.FIELD["temperature"].slot
    assert tensor.unknown_slots == (slot,)
    with pytest.warns(UserWarning, match=f"fields of a newer schema are not written: Tensor slot {slot}"):
        write_root(tensor, b"TEST")


def test_unknown_union_members_keep_their_code() -> None:
    operator = Operator(inputs=(0,), builtin_options=Conv2DOptions(stride_w=3))
    content = write_root(operator, b"TEST")
    code = Operator.FIELD["builtin_options"].of.codes[Conv2DOptions]
    at = next(
        i for i in range(8, len(content)) if content[i] == code and _code_after(content, i) == 200
    )  # the byte whose change makes the type unknown
    unknown = read_root(Operator, memoryview(content[:at] + b"\xc8" + content[at + 1 :]), b"TEST")
    assert unknown.builtin_options is None
    assert unknown.unknown_members == {"builtin_options": 200}
    assert unknown.inputs == (0,)


def _code_after(content: bytes, at: int) -> int:
    try:
        operator = read_root(Operator, memoryview(content[:at] + b"\xc8" + content[at + 1 :]), b"TEST")
    except ModelError:
        return 0
    return operator.unknown_members.get("builtin_options", 0)


def test_what_tables_share_is_decoded_once() -> None:
    tensor = Tensor(shape=tuple(range(100)), name="n" * 100)
    subgraph = SubGraph(tensors=(tensor,) * 1000, inputs=(), outputs=(), operators=())
    content = write_model(add_model(subgraphs=(subgraph,) * 1000, signature_defs=()))
    assert len(content) < 12_000
    model = read_model(content)
    assert len({id(tensor) for subgraph in model.subgraphs for tensor in subgraph.tensors}) == 1
    assert len(write_model(model.replace())) == len(content)


def _overlapping(count: int, length: int) -> bytes:
    """A file whose operators' inputs are vectors of ``length`` that start at successive words of one region."""
    marks = [0x5A000000 + i for i in range(count)]
    operators = tuple(Operator(inputs=(mark,), outputs=(), builtin_options=AddOptions()) for mark in marks)
    subgraph = add_model().subgraphs[0].replace(operators=operators)
    content = bytearray(write_model(add_model(subgraphs=(subgraph,))))
    content += bytes(-len(content) % 4)
    words = np.frombuffer(bytes(content), "<u4")
    targets = 4 * np.arange(words.size) + words.astype(np.int64)
    region = len(content)
    for i, mark in enumerate(marks):
        vector = 4 * int(np.flatnonzero(words == mark)[0]) - 4
        (field,) = 4 * np.flatnonzero((targets == vector) & (words > 8))
        struct.pack_into("<I", content, int(field), region + 4 * i - int(field))
    return bytes(content) + struct.pack("<I", length) * (count + length)


def test_vectors_that_overlap_cost_no_more_than_the_file() -> None:
    content = _overlapping(1000, 4000)
    read_model(_overlapping(3, 20))  # makes the decoders of these layouts, which are no part of a file's cost
    tracemalloc.start()
    with pytest.raises(ModelError, match=r"subgraphs\[0\]\.operators\[\d+\]\.inputs: overlaps other data"):
        read_model(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A decoded int takes 36 bytes for 4 of the file, and twice the file may be decoded; the rest is tables.
    assert peak < 36 / 4 * 2 * len(content) + 1_500_000


def test_a_few_overlaps_are_legal() -> None:
    model = read_model(_overlapping(3, 20))
    assert [operator.inputs for operator in model.subgraphs[0].operators] == [(20,) * 20] * 3


def test_no_weight_is_touched() -> None:
    """Reading and checking works while the pages of the weights cannot be read at all."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs mprotect")
    program = """
import ctypes, mmap, numpy as np
from gossamer.model import read_model, verify_model
from gossamer.model.writer import write_model
from gossamer.schema import Buffer, Tensor
from tests.model.arbitrary import tensor_model
content = write_model(tensor_model(Tensor(shape=(1 << 20,), buffer=1, name="w"), bytes(4 << 20)))
mapped = mmap.mmap(-1, len(content))
mapped.write(content)
start = np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]
weights = read_model(mapped).buffer_data(1).__array_interface__["data"][0]
first = -(-weights // mmap.PAGESIZE) * mmap.PAGESIZE
pages = (weights + (4 << 20) - first) // mmap.PAGESIZE
assert pages > 1000
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(pages * mmap.PAGESIZE), 0) == 0
model = read_model(mapped)
assert verify_model(model) == ()
assert model.buffer_data(1).size == 4 << 20
print("untouched")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stdout == "untouched\n", result.stderr


def test_the_generated_decoder_can_be_read() -> None:
    source, _ = generate(Buffer, (4,))
    assert source == "\n".join(
        [
            "def decode(reading, pos):",
            "    reading.left -= 8",
            "    if reading.left < 0: reading.spend(0, pos)",
            "    try:",
            "        v0, = unpack_0(reading.data, pos)",
            "        if not v0: raise Damage('offset of data is 0', pos)",
            "        values = {",
            "            'data': read_data(reading, pos + 4 + v0),",
            "        }",
            "    except (Damage, StructError) as error:",
            "        raise locate(error, reading, pos, references, 8) from None",
            "    item = new(cls)",
            "    set_values(item, values)",
            "    return item",
        ]
    )


def test_layouts_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder costs a compilation, so a file must not ask for any number of them."""
    monkeypatch.setattr("gossamer.model.reader.MAX_LAYOUTS", 3)
    monkeypatch.setattr("gossamer.model.reader._DECODED", {})
    with pytest.raises(ModelError, match="more than 3 different vtables"):
        read_model(write_model(add_model()))


def test_half_a_union_is_checked_too() -> None:
    content = write_root(Operator(builtin_options=Conv2DOptions()), b"TEST")
    slot = 4 + 2 * Operator.FIELD["builtin_options"].slot
    (root,) = struct.unpack_from("<I", content)
    vtable = root - struct.unpack_from("<i", content, root)[0]
    no_tag = bytearray(content)
    struct.pack_into("<H", no_tag, vtable + slot, 0)
    assert read_root(Operator, memoryview(bytes(no_tag)), b"TEST") == Operator()
    (field,) = struct.unpack_from("<H", content, vtable + slot + 2)
    struct.pack_into("<I", no_tag, root + field, 1 << 20)
    with pytest.raises(ModelError, match=r"builtin_options: offset points to byte .*, outside the file"):
        read_root(Operator, memoryview(bytes(no_tag)), b"TEST")


def test_cutting_a_file_anywhere_is_noticed() -> None:
    content = write_model(add_model())
    for length in range(len(content)):
        with pytest.raises(ModelError):
            read_model(content[:length])


def _mutated(content: bytes, rng: random.Random) -> bytes:
    mutant = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(mutant))
        kind = rng.randrange(4)
        if kind == 0:
            mutant[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            mutant[at] = rng.choice((0, 1, 4, 0x7F, 0x80, 0xFF))
        elif kind == 2 and at + 4 <= len(mutant):
            at &= ~3
            word = rng.choice((0, 1, 4, len(content), 0x7FFFFFFF, 0xFFFFFFFF, rng.getrandbits(32), rng.getrandbits(8)))
            struct.pack_into("<I", mutant, at, word)
        else:
            mutant[at : at + 4] = mutant[(other := rng.randrange(len(mutant))) : other + 4]
    return bytes(mutant)


def _fuzz(cases: int, seed: int) -> int:
    """Number of mutants that still are models; each must be read, checked and written, or refused by `ModelError`."""
    rng = random.Random(seed)
    accepted = 0
    contents = [write_model(add_model())]
    for n in range(4):
        base = add_model(buffers=tuple(arbitrary(Buffer, random.Random(n)) for _ in range(4)))
        subgraph = arbitrary(SubGraph, random.Random(f"subgraph {n}"), 0.8)
        contents.append(write_model(base.replace(subgraphs=(subgraph, *base.subgraphs))))
    for _ in range(cases):
        with suppress(ModelError):
            model = read_model(_mutated(rng.choice(contents), rng))
            verify_model(model)
            write_model(model.replace())
            accepted += 1
    return accepted


@pytest.mark.filterwarnings("ignore:fields of a newer schema")
def test_mutants_cost_an_exception_at_most() -> None:
    assert 0 < _fuzz(400, 1) < 400


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:fields of a newer schema")
def test_many_mutants_cost_an_exception_at_most() -> None:
    assert _fuzz(20_000, 2) > 0
