from __future__ import annotations

import copy
import enum
import json
import pickle
from typing import Any

import pytest

from gossamer.schema import Padding, TensorType
from gossamer.schema.enumeration import IntEnum


class Theirs(enum.IntEnum):
    A = 0
    B = 7


class Ours(IntEnum):
    """Documented."""

    A = 0
    B = 7


@pytest.mark.parametrize(
    "question",
    [
        lambda e: [m.name for m in e],
        lambda e: [m.value for m in e],
        lambda e: list(e.__members__),
        lambda e: (len(e), e(7).name, e["A"].value, 7 in e._value2member_map_, 8 in e._value2member_map_),
        lambda e: (e.A == 0, e.A < e.B, e.B + 1, hash(e.B), {7: "x"}[e.B], e.A is e(0), bool(e.A)),
        lambda e: repr(e.B).partition(".")[2],
        lambda e: json.dumps([e.B]),
        lambda e: (copy.deepcopy(e.B) is e.B, copy.copy(e.B) is e.B),
        lambda e: isinstance(e.A, int) and isinstance(e.A, e),
        lambda e: f"{e.B:03d}",
    ],
)
def test_the_same_answers_as_the_standard_library(question: Any) -> None:
    assert question(Ours) == question(Theirs)


def test_unknown_values_and_names() -> None:
    with pytest.raises(ValueError, match="8 is not a valid Ours"):
        Ours(8)
    with pytest.raises(KeyError):
        Ours["C"]


def test_members_print_as_numbers_and_pickle() -> None:
    assert (str(TensorType.INT8), f"{TensorType.INT8}") == ("9", "9")
    assert pickle.loads(pickle.dumps(Padding.VALID)) is Padding.VALID
    assert Ours.__doc__ == "Documented."
