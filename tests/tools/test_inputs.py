"""Arguments into arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import ml_dtypes
import numpy as np
import pytest

from gossamer.errors import InputError
from gossamer.inputs.port import Port
from gossamer.tools._inputs import Call, Options, expectation, fit, plan_calls
from tests.inputs.ports import port
from tests.inputs.test_sounds import wav


def calls_of(arguments: list[str], ports: list[Port]) -> list[Call]:
    return [call for planned in plan_calls(arguments, ports, Options()) for call in planned.read()]


def values(argument: str, to: Port) -> Any:
    (call,) = calls_of([argument], [to])
    return call.values[0]


@pytest.mark.parametrize(
    ("array", "to", "expected"),
    [
        (np.array([[1, 2]], np.float32), port(1, 2), [[1.0, 2.0]]),
        (np.array([1, 2], np.float64), port(1, 2), [[1.0, 2.0]]),
        (np.array([1, 2], np.int64), port(1, 2), [[1.0, 2.0]]),
        (np.array([1, 2], np.int64), port(1, 2, dtype=np.int32), [[1, 2]]),
        (np.array([1.0, 2.0]), port(1, 2, dtype=np.int32), [[1, 2]]),
        (np.array([1, 2, 3, 4], np.float32), port(2, 2), [[1.0, 2.0], [3.0, 4.0]]),
        (np.array([-128, 127], np.int8), port(2, dtype=np.int8, scale=0.5), [-128, 127]),
        (np.array([-1.0, 2.0]), port(2, dtype=np.int8, scale=0.5, zero_point=1), [-1, 5]),
        (np.array([0, 1]), port(2, dtype=np.bool_), [False, True]),
        (np.array([0.5, 1]), port(2, dtype=ml_dtypes.bfloat16), [0.5, 1.0]),
        (np.zeros((3, 2), np.float32), port(-1, 2), [[0.0, 0.0]] * 3),
        (np.array(["a", "bc"]), port(2, dtype=np.object_), [b"a", b"bc"]),
        (np.array([b"a"]), port(1, dtype=np.object_), [b"a"]),
    ],
)
def test_arrays_that_fit(array: Any, to: Port, expected: Any) -> None:
    result = fit(array, to, "in.npy")
    assert result.dtype == to.dtype
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("array", "to", "message"),
    [
        (np.zeros((1, 3)), port(1, 2), 'in.npy: shape [1, 3], the input "x" is [1, 2].'),
        (np.zeros((2, 3, 4)), port(-1, 2), 'in.npy: shape [2, 3, 4], the input "x" is [?, 2].'),
        (np.array([1.5]), port(1, dtype=np.int32), 'in.npy: 1.5 is no int32, which the input "x" int32 [1] takes.'),
        (np.array([300]), port(1, dtype=np.uint8), 'in.npy: 300 is no uint8, which the input "x" uint8 [1] takes.'),
        (
            np.array([1, 2], np.int64),
            port(2, dtype=np.int8, scale=0.5),
            'in.npy: values are int64, the input "x" int8 [2], quantized 0.5 * q takes int8 as they are, '
            "or real numbers (float32).",
        ),
        (
            np.array([np.nan]),
            port(1, dtype=np.int8, scale=0.5),
            'in.npy: NaN or infinite values cannot be quantized for the input "x" int8 [1], quantized 0.5 * q.',
        ),
        (np.array([1j]), port(1), 'in.npy: values are complex128, the input "x" float32 [1] takes float32.'),
        (np.array([1]), port(1, dtype=np.object_), 'in.npy: values are int64, the input "x" string [1] takes string.'),
    ],
)
def test_arrays_that_do_not_fit(array: Any, to: Port, message: str) -> None:
    with pytest.raises(InputError) as caught:
        fit(array, to, "in.npy")
    assert str(caught.value) == message


def test_values_on_the_command_line() -> None:
    assert values("1,2.5", port(1, 2)).tolist() == [[1.0, 2.5]]
    assert values("x=-1,2", port(2, dtype=np.int32)).tolist() == [-1, 2]
    assert values("1", port(1, dtype=np.int8, scale=0.5, zero_point=3)).tolist() == [5]
    assert values("zeros", port(-1, 2)).tolist() == [[0.0, 0.0]]
    assert values("zeros", port(2, dtype=np.int8, scale=0.5, zero_point=3)).tolist() == [3, 3]
    assert values("a text", port(1, dtype=np.object_)).tolist() == [b"a text"]
    assert values("a\nb\nc\nd", port(-1, 2, dtype=np.object_)).tolist() == [[b"a", b"b"], [b"c", b"d"]]


def test_files(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.array([1, 2], np.float32))
    assert values(str(tmp_path / "in.npy"), port(1, 2)).tolist() == [[1.0, 2.0]]
    (tmp_path / "in.csv").write_text("1, 2\n3; 4\n")
    assert values(str(tmp_path / "in.csv"), port(2, 2)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    (tmp_path / "in.txt").write_text("one line\n")
    assert values(str(tmp_path / "in.txt"), port(dtype=np.object_)).tolist() == b"one line"


def test_archives_by_name_and_by_position(tmp_path: Path) -> None:
    ports = [port(1, name="a", aliases=("first",)), port(2, name="b", position=1)]
    np.savez(tmp_path / "in.npz", b=np.array([1, 2]), first=np.array([3]))
    (call,) = calls_of([str(tmp_path / "in.npz")], ports)
    assert [value.tolist() for value in call.values] == [[3.0], [1.0, 2.0]]
    assert call.sources == (f"{tmp_path / 'in.npz'}:first", f"{tmp_path / 'in.npz'}:b")
    np.savez(tmp_path / "in.npz", np.array([3]), np.array([1, 2]))
    (call,) = calls_of([str(tmp_path / "in.npz")], ports)
    assert [value.tolist() for value in call.values] == [[3.0], [1.0, 2.0]]
    np.savez(tmp_path / "in.npz", c=np.array([3]))
    with pytest.raises(InputError, match=r"in\.npz: 'c' is no input of the model\. Its inputs are a, first, b\."):
        calls_of([str(tmp_path / "in.npz")], ports)
    np.savez(tmp_path / "in.npz", b=np.array([1, 2]))
    with pytest.raises(click.UsageError, match='The input "b" is given twice'):
        calls_of([str(tmp_path / "in.npz"), "b=1,2"], ports)


def test_files_that_are_not_what_their_names_say(tmp_path: Path) -> None:
    for name, message in (
        ("in.npy", r"in\.npy: not an array of numbers"),
        ("in.npz", r"in\.npz: not an \.npz archive of arrays"),
        ("in.csv", r"in\.csv: not a list of numbers, which the input \"x\" float32 \[2\] needs\."),
        ("in.doc", r"in\.doc: unknown kind of file '\.doc'; the input \"x\" float32 \[2\] takes a \.npy file"),
    ):
        (tmp_path / name).write_bytes(b"word")
        with pytest.raises(InputError, match=message):
            values(str(tmp_path / name), port(2))
    np.save(tmp_path / "in.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(InputError, match=r"in\.npy: not an array of numbers"):
        values(str(tmp_path / "in.npy"), port(1))
    np.savez(tmp_path / "in.npz", x=np.zeros(2))
    with pytest.raises(InputError, match=r"an \.npz file names its inputs itself"):
        values(f"x={tmp_path / 'in.npz'}", port(2))


def test_too_few_lines_of_text() -> None:
    message = r"'a\\nb': 2 lines of text, the input \"x\" string \[3\] takes 3 strings, one on a line\."
    with pytest.raises(InputError, match=message):
        values("a\nb", port(3, dtype=np.object_))


def test_names_may_contain_an_equals_sign() -> None:
    ports = [port(1, name="a"), port(1, name="a=b", position=1)]
    (call,) = calls_of(["a=b=1", "a=2"], ports)
    assert [value.tolist() for value in call.values] == [[2.0], [1.0]]


def test_text_may_contain_an_equals_sign() -> None:
    assert values("1 + 1 = 2", port(1, dtype=np.object_)).tolist() == [b"1 + 1 = 2"]


def test_counts() -> None:
    ports = [port(1, name="a"), port(1, name="b", position=1)]
    assert len(calls_of(["1", "2", "3", "4"], ports)) == 2
    assert len(calls_of([], [])) == 1
    for arguments in ([], ["1"], ["1", "2", "3"], ["a=1"], ["a=1", "b=2", "3"]):
        with pytest.raises(click.UsageError, match="The model takes 2 inputs, got"):
            calls_of(arguments, ports)
    with pytest.raises(click.UsageError, match='The input "a" is given twice'):
        calls_of(["a=1", "a=2", "3"], ports)


def test_windows_of_a_sound_are_further_calls(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", np.arange(5, dtype="<i2"))
    ports = [port(2, dtype=np.int16, name="sound"), port(1, name="gain", position=1)]
    calls = calls_of([path, "2", path, "3"], ports)
    assert [call.values[0].tolist() for call in calls] == [[0, 1], [2, 3], [4, 0]] * 2
    assert [call.values[1].tolist() for call in calls] == [[2.0]] * 3 + [[3.0]] * 3
    assert [call.sources[0] for call in calls[:2]] == [f"{path} 0.00-0.02 s", f"{path} 0.02-0.04 s"]


def test_expectations() -> None:
    assert expectation(port(1, dtype=np.object_)) == "text, or a .txt file"
    assert expectation(port(1, 8, 8, 3)) == "a picture, a .npy file, numbers separated by commas or zeros"
    assert expectation(port(1, 16000)) == "a .wav file, a .npy file, numbers separated by commas or zeros"
    assert expectation(port(1, 8)) == "a .npy file, numbers separated by commas or zeros"
    assert expectation(port(1, 8, 8, dtype=np.bool_)) == "a .npy file, numbers separated by commas or zeros"
    assert expectation(port(1, 8, dtype=np.int8)) == "a .npy file, numbers separated by commas or zeros"
