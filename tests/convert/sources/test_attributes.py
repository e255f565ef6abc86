from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.tensorflow import (
    AttrValue,
    DataType,
    NameAttrList,
    NodeDef,
    OpDef,
    TensorProto,
    TensorShapeProto,
)
from gossamer.convert.sources.attributes import Attributes
from gossamer.convert.sources.tensor_proto import tensor_type
from gossamer.errors import ConvertError
from gossamer.schema.enums import TensorType
from tests.convert.arbitrary import shape

MANY = AttrValue.ListValue
VALUES = {
    "int": (AttrValue(i=-3), -3),
    "float": (AttrValue(f=0.5), 0.5),
    "bool": (AttrValue(b=False), False),
    "text": (AttrValue(s="ä".encode()), "ä"),
    "bytes": (AttrValue(s=b"\xff"), b"\xff"),
    "type": (AttrValue(type=DataType.DT_FLOAT), TensorType.FLOAT32),
    "shape": (AttrValue(shape=shape(2, -1)), (2, None)),
    "function": (AttrValue(func=NameAttrList(name="f")), NameAttrList(name="f")),
    "ints": (AttrValue(list=MANY(i=(1, 2))), (1, 2)),
    "floats": (AttrValue(list=MANY(f=(0.5,))), (0.5,)),
    "bools": (AttrValue(list=MANY(b=(True, False))), (True, False)),
    "texts": (AttrValue(list=MANY(s=(b"a", b""))), ("a", "")),
    "types": (AttrValue(list=MANY(type=(DataType.DT_HALF,))), (TensorType.FLOAT16,)),
    "shapes": (AttrValue(list=MANY(shape=(shape(1), TensorShapeProto(unknown_rank=True)))), ((1,), None)),
    "functions": (AttrValue(list=MANY(func=(NameAttrList(name="f"),))), (NameAttrList(name="f"),)),
}


def attributes(op_def: OpDef | None = None, **values: AttrValue) -> Attributes:
    return Attributes(NodeDef(name="n", op="Op", attr=values), op_def)


@pytest.mark.parametrize("kind", VALUES)
def test_every_kind(kind: str) -> None:
    stored, expected = VALUES[kind]
    found = getattr(attributes(a=stored), kind)("a")
    assert found == expected
    assert type(found) is type(expected)
    with pytest.raises(ConvertError, match=r"attribute 'b' of node 'n' \(Op\) is missing; it must be a"):
        getattr(attributes(a=stored), kind)("b")
    wrong = AttrValue(placeholder="T")
    with pytest.raises(ConvertError, match=r"attribute 'a' of node 'n' \(Op\) is a parameter of the function, must be"):
        getattr(attributes(a=wrong), kind)("a")
    with pytest.raises(ConvertError, match="is empty, must be"):
        getattr(attributes(a=AttrValue()), kind)("a")


def test_tensors_are_arrays() -> None:
    stored = TensorProto(dtype=DataType.DT_FLOAT, tensor_shape=shape(2), float_val=np.float32([1.5]))
    np.testing.assert_array_equal(attributes(value=AttrValue(tensor=stored)).tensor("value"), np.float32([1.5, 1.5]))
    strange = AttrValue(tensor=TensorProto(dtype=DataType.DT_VARIANT))
    with pytest.raises(ConvertError, match=r"attribute 'value' of node 'n' \(Op\) is of DT_VARIANT"):
        attributes(value=strange).tensor("value")


@pytest.mark.parametrize(
    ("kind", "default"),
    [("int", 0), ("float", 0.0), ("bool", False), ("text", ""), ("type", TensorType.FLOAT32), ("ints", ())],
)
def test_defaults(kind: str, default: Any) -> None:
    """The node's own value comes first, then the definition's default, then the caller's."""
    stored, expected = VALUES[kind]
    definition = OpDef(name="Op", attr=(OpDef.AttrDef(name="a", default_value=stored), OpDef.AttrDef(name="b")))
    assert getattr(attributes(), kind)("a", default) == default
    assert getattr(attributes(definition), kind)("a", default) == expected
    assert getattr(attributes(definition), kind)("b", default) == default
    assert getattr(attributes(OpDef(), a=stored), kind)("a", default) == expected
    assert "a" in attributes(definition)
    assert "b" not in attributes(definition)


def test_lists() -> None:
    """An empty list is one of any kind."""
    assert attributes(a=AttrValue(list=MANY())).ints("a") == ()
    assert attributes(a=AttrValue(list=MANY())).texts("a") == ()
    with pytest.raises(ConvertError, match="is a list with a text, must be one of an integer"):
        attributes(a=AttrValue(list=MANY(s=(b"1",)))).ints("a")


def test_texts_are_utf_8() -> None:
    with pytest.raises(ConvertError, match="which is no UTF-8"):
        attributes(a=AttrValue(s=b"\xff")).text("a")


def test_types() -> None:
    known = {item: tensor_type(item) for item in DataType if item.name not in UNKNOWN}
    assert sorted(known.values()) == sorted(TensorType)
    assert known[DataType.DT_DOUBLE] == TensorType.FLOAT64
    assert tensor_type(DataType.DT_FLOAT + 100) == TensorType.FLOAT32  # a reference
    for unknown in [DataType[name] for name in UNKNOWN] + [100, 77, -1]:
        with pytest.raises(ConvertError, match=r"is of D.*, which no .tflite model has"):
            tensor_type(unknown)
    with pytest.raises(ConvertError, match=r"attribute 'T' of node 'n' \(Op\) is of DT_QINT8, which"):
        attributes(T=AttrValue(type=DataType.DT_QINT8)).type("T")


UNKNOWN = [item.name for item in DataType if item.name.startswith(("DT_Q", "DT_INVALID", "DT_FLOAT4"))]
UNKNOWN += ["DT_FLOAT8_E4M3FNUZ", "DT_FLOAT8_E4M3B11FNUZ", "DT_FLOAT8_E5M2FNUZ", "DT_UINT2"]
