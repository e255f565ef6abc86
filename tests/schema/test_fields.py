from __future__ import annotations

import numpy as np
import pytest

from gossamer.schema import BuiltinOptions, Conv2DOptions, Padding, QuantizationParameters, Tensor, TensorType
from gossamer.schema.fields import Table, i32, string, u8, union, vector


def test_absent_fields_read_as_their_defaults() -> None:
    options = Conv2DOptions(stride_w=2)
    assert (options.padding, options.stride_w, options.dilation_w_factor) == (Padding.SAME, 2, 1)
    assert options.has("stride_w")
    assert not options.has("padding")
    assert Tensor().quantization is None
    assert QuantizationParameters().scale.size == 0


def test_slots_follow_the_order_of_declaration_and_a_union_takes_two() -> None:
    class Last(Table):
        text: str = string()

    class First(Table):
        number: int = i32(7)
        options: Table | None = union(BuiltinOptions)
        items: tuple[Last, ...] = vector(Last)

    assert [(field.name, field.slot) for field in First.FIELDS] == [("number", 0), ("options", 1), ("items", 3)]
    assert First().number == 7


def test_a_subclass_has_the_fields_of_its_table() -> None:
    class Longer(Tensor):
        extra: int = u8(3)

    assert [field.name for field in Longer.FIELDS] == [*(field.name for field in Tensor.FIELDS), "extra"]
    assert Longer.FIELD["extra"].slot == sum(field.slots for field in Tensor.FIELDS)
    assert (Longer(name="a").name, Longer().extra) == ("a", 3)


def test_a_table_of_no_kind_has_no_fields_and_leaves_the_others_theirs() -> None:
    class Later(Table):
        number: int = i32(7)

    assert Table().FIELDS == ()
    assert Table().FIELD == {}
    assert Later(number=8).number == 8


def test_tables_are_immutable_values() -> None:
    tensor = Tensor(shape=(1, 2), type=TensorType.INT8)
    with pytest.raises(AttributeError, match=r"Tensor is immutable; use replace\(shape=...\)"):
        tensor.shape = (3,)
    assert tensor.replace(shape=(3,)) == Tensor(shape=(3,), type=TensorType.INT8)
    assert tensor == Tensor(shape=(1, 2), type=TensorType.INT8, buffer=0)
    assert tensor != Tensor(shape=(1, 2))
    with pytest.raises(TypeError, match="Tensor has no field 'shap'; it has shape"):
        Tensor(shap=(1,))


def test_arrays_compare_by_value() -> None:
    scale = np.array([1, np.nan], np.float32)
    assert QuantizationParameters(scale=scale) == QuantizationParameters(scale=scale.copy())
    assert QuantizationParameters(scale=scale) != QuantizationParameters(scale=scale[:1])


def test_defaults_cannot_be_written_to() -> None:
    assert not QuantizationParameters().scale.flags.writeable
