"""The declarations against the schema module that LiteRT generates."""

from __future__ import annotations

import pytest

from gossamer.schema import BuiltinOptions, BuiltinOptions2, enums
from gossamer.schema.fields import Table, Union
from gossamer.schema.tables import QuantizationDetails, SparseIndexVector
from tests.model.arbitrary import all_tables

pytestmark = pytest.mark.peer


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def test_every_enum_has_the_published_names_and_values() -> None:
    peer = pytest.importorskip("ai_edge_litert.schema_py_generated")
    for name, ours in vars(enums).items():
        if isinstance(ours, type) and hasattr(ours, "__members__") and name != "IntEnum" and len(ours):
            theirs = {key: value for key, value in vars(getattr(peer, name)).items() if key.isupper()}
            ours_by_name = {member.name: int(member) for member in ours}
            assert theirs.items() <= ours_by_name.items(), name


def test_every_union_has_the_published_codes() -> None:
    peer = pytest.importorskip("ai_edge_litert.schema_py_generated")
    unions: dict[str, Union] = {
        "BuiltinOptions": BuiltinOptions,
        "BuiltinOptions2": BuiltinOptions2,
        "QuantizationDetails": QuantizationDetails,
        "SparseIndexVector": SparseIndexVector,
    }
    for name, ours in unions.items():
        theirs = {key: value for key, value in vars(getattr(peer, name)).items() if key[0] != "_" and value}
        assert theirs.items() <= {member.__name__: code for member, code in ours.codes.items()}.items(), name


@pytest.mark.parametrize(
    "cls",
    [cls for cls in all_tables() if cls.__module__.endswith((".tables", ".options"))],
    ids=lambda cls: cls.__name__,
)
def test_every_table_has_the_published_fields(cls: type[Table]) -> None:
    peer = pytest.importorskip("ai_edge_litert.schema_py_generated")
    theirs = getattr(peer, f"{cls.__name__}T", None)
    if theirs is None:
        pytest.skip(f"this release of LiteRT has no {cls.__name__}")
    ours = [_camel(f"{f.name}_type") for f in cls.FIELDS if f.kind == "union"] + [_camel(f.name) for f in cls.FIELDS]
    assert set(vars(theirs())) <= set(ours)
