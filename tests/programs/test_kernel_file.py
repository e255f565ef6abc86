from __future__ import annotations

import pytest

from gossamer.programs.kernel_file import Blob, KernelFile, day_place, encode

KERNELS = {f"f32_k{number}__here": Blob(bytes([number]) * (number + 1), 0, 1 << number % 13) for number in range(40)}


def reading(content: bytes) -> KernelFile:
    return KernelFile(memoryview(content))


def test_what_is_written_is_read() -> None:
    days = {name: number for number, name in enumerate(KERNELS)}
    content = encode("here\n1 µ", KERNELS, days)
    file = reading(content)
    assert file.key == "here\n1 µ"
    assert len(file) == 40
    assert file.kernels() == KERNELS
    assert file.days() == days
    assert sorted(name for name, _ in file) == sorted(KERNELS)
    for name, blob in KERNELS.items():
        record = file.find(name)
        assert record is not None
        assert (bytes(file.code(record)), record.entry, record.alignment) == (blob.code, blob.entry, blob.alignment)
        assert record.offset % max(blob.alignment, 1) == 0
        assert record.offset >= 4096
        assert file.is_sound(name, record)
    assert file.find("f32_k40__here") is None
    assert file.find("") is None


def test_the_order_of_kernels_changes_nothing() -> None:
    days = dict.fromkeys(KERNELS, 0)
    assert encode("key", KERNELS, days) == encode("key", dict(reversed(KERNELS.items())), days)


def test_code_lies_in_the_order_of_names() -> None:
    file = reading(encode("key", KERNELS, dict.fromkeys(KERNELS, 0)))
    places = {name: (record.offset, record.name_at) for name, record in file}
    assert sorted(places) == sorted(places, key=places.__getitem__)


def test_an_archive_may_be_empty() -> None:
    file = reading(encode("key", {}, {}))
    assert (file.key, len(file), file.find("k")) == ("key", 0, None)


def test_names_of_one_hash_are_told_apart() -> None:
    # Equal CRC-32.
    twins = {"plumless": Blob(b"\1", 0), "buckeroo": Blob(b"\2", 0)}
    file = reading(encode("key", twins, dict.fromkeys(twins, 0)))
    for name, blob in twins.items():
        record = file.find(name)
        assert record is not None
        assert bytes(file.code(record)) == blob.code


def test_only_the_day_may_change() -> None:
    content = bytearray(encode("key", KERNELS, dict.fromkeys(KERNELS, 0)))
    record = reading(content).find("f32_k3__here")
    assert record is not None
    at, stamp = day_place(record, 20_000)
    content[at : at + len(stamp)] = stamp
    assert reading(content).days() == {name: 20_000 * (name == "f32_k3__here") for name in KERNELS}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: b"", "is too short"),
        (lambda content: content[:30], "is too short"),
        (lambda content: b"E" + content[1:], "is not an archive of kernels of this format"),
        (lambda content: content[:16] + b"\x63" + content[17:], "is not an archive of kernels of this format"),
        (lambda content: content[:-1], "is truncated"),
        (lambda content: content + b"\0", "is truncated"),
        (lambda content: content[:20] + b"\xff\xff\xff\xff" + content[24:], "is damaged"),
        (lambda content: content[:28] + b"\xff\xff\xff\xff" + content[32:], "is damaged"),
        (lambda content: content.replace(b"key", b"kex"), "is damaged"),
    ],
)
def test_what_is_no_archive_is_said_to_be_none(damage: object, message: str) -> None:
    content = encode("key", KERNELS, dict.fromkeys(KERNELS, 0))
    assert callable(damage)
    with pytest.raises(ValueError, match=message):
        reading(damage(content))


def test_code_of_another_kernel_is_not_sound() -> None:
    content = bytearray(encode("key", {"a": Blob(b"aaaa", 0), "b": Blob(b"bbbb", 0)}, {"a": 0, "b": 0}))
    file = reading(bytes(content))
    a, b = file.find("a"), file.find("b")
    assert a is not None
    assert b is not None
    content[a.offset : a.offset + 4], content[b.offset : b.offset + 4] = b"bbbb", b"aaaa"
    swapped = reading(content)
    assert not swapped.is_sound("a", a)
    assert not swapped.is_sound("b", b)
    assert swapped.kernels() == {}
