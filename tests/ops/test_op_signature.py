"""The vocabulary in which operator files say what needs a version."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.ops.op_def import OpDef, Version, versions
from gossamer.ops.op_signature import (
    HAS_OPTIONS,
    Condition,
    OpSignature,
    TensorSpec,
    broadcasts_above,
    given,
    in_and_out,
    in_or_out,
    input_count,
    input_type,
    operand_types,
    option,
    output_per_channel,
    output_type,
    per_channel,
    quantized,
    rank_above,
    rank_is,
    sparse,
)
from gossamer.schema import (
    AddOptions,
    BuiltinOperator,
    FullyConnectedOptions,
    QuantizationParameters,
    Table,
    TensorType,
)

INT8, FLOAT32 = TensorType.INT8, TensorType.FLOAT32


def signature(*inputs: TensorSpec, output: TensorSpec | None = None, options: Table | None = None) -> OpSignature:
    return OpSignature(BuiltinOperator.ADD, inputs, () if output is None else (output,), options)


def of(*shape: int, type: TensorType | None = INT8, scales: int | None = None, dimension: int = 0) -> TensorSpec:
    stored = None
    if scales is not None:
        stored = QuantizationParameters(scale=np.ones(scales, np.float32), quantized_dimension=dimension)
    return TensorSpec(type, shape, stored)


LEFT_OUT = TensorSpec()

CONDITIONS: list[tuple[Condition, OpSignature, bool]] = [
    (input_type(1, INT8, FLOAT32), signature(LEFT_OUT, of(type=FLOAT32)), True),
    (input_type(1, INT8), signature(of()), False),
    (output_type(0, INT8), signature(output=of()), True),
    (output_type(0, INT8), signature(of()), False),
    (in_and_out(INT8), signature(of(), output=of()), True),
    (in_and_out(INT8), signature(of(), output=of(type=FLOAT32)), False),
    (in_or_out(INT8), signature(of(type=FLOAT32), output=of()), True),
    (in_or_out(INT8), signature(of(type=FLOAT32), output=of(type=FLOAT32)), False),
    (operand_types(INT8, FLOAT32, INT8), signature(of(), of(type=FLOAT32), output=of()), True),
    (operand_types(INT8, INT8, INT8), signature(of(), of(type=FLOAT32), output=of()), False),
    (rank_is(0, 2), signature(of(1, 1)), True),
    (rank_is(0, 2), signature(of(1, 1, 1)), False),
    (rank_above(0, 2), signature(of(1, 1, 1)), True),
    (rank_above(0, 2), signature(of(1, 1)), False),
    (broadcasts_above(1), signature(of(2, 2), of(2)), True),
    (broadcasts_above(1), signature(of(2, 2), of(2, 2)), False),
    (broadcasts_above(2), signature(of(2, 2), of(2)), False),
    (broadcasts_above(1), signature(of(2, 2)), False),
    (option("keep_num_dims"), signature(options=FullyConnectedOptions(keep_num_dims=True)), True),
    (option("keep_num_dims"), signature(options=FullyConnectedOptions()), False),
    (option("keep_num_dims"), signature(options=AddOptions()), False),
    (option("pot_scale_int16"), signature(options=AddOptions()), True),
    (option("pot_scale_int16"), signature(), False),
    (option("pot_scale_int16", 1), signature(options=AddOptions()), True),
    (HAS_OPTIONS, signature(options=AddOptions()), True),
    (HAS_OPTIONS, signature(), False),
    (input_count(2), signature(of(), LEFT_OUT), True),
    (input_count(2), signature(of()), False),
    (given(1), signature(of(), of()), True),
    (given(1), signature(of(), LEFT_OUT), False),
    (given(1), signature(of()), False),
    (sparse(0), signature(TensorSpec(INT8, is_sparse=True)), True),
    (sparse(0), signature(of()), False),
    (quantized(0), signature(of(scales=0)), True),
    (quantized(0), signature(of()), False),
    (per_channel(0, 1), signature(of(2, 3, scales=3)), True),
    (per_channel(0, 0), signature(of(2, 3, scales=3, dimension=1)), False),
    (per_channel(0, 0), signature(of(1, 3, scales=1)), True),
    (per_channel(0, 0, least=2), signature(of(1, 3, scales=1)), False),
    (per_channel(0), signature(of(2, 3, scales=3, dimension=1)), True),
    (per_channel(0), signature(of(2, 3, scales=3, dimension=7)), False),
    (per_channel(0), signature(of(2, 3)), False),
    (per_channel(0), signature(of(0, scales=0)), False),
    (output_per_channel(0), signature(output=of(2, scales=2)), True),
    (output_per_channel(0), signature(of(2, scales=2)), False),
]


@pytest.mark.parametrize(("condition", "example", "expected"), CONDITIONS, ids=[repr(row[0]) for row in CONDITIONS])
def test_conditions(condition: Condition, example: OpSignature, expected: bool) -> None:
    assert condition(example) is expected
    assert (~condition)(example) is not expected
    assert (~~condition).describe() == condition.describe() != (~condition).describe()


def test_words() -> None:
    a, b, c = input_type(0, INT8), option("narrow_range"), given(2)
    names = ("x", "weights", "bias?")
    assert a.describe(names) == "x is int8"
    assert a.describe() == "input 0 is int8"
    assert (a & b & c).describe(names) == "x is int8, narrow_range is set and bias is given"
    assert (a | b | c).describe(names) == "x is int8, narrow_range is set or bias is given"
    assert (~(a | b)).describe(names) == "x is not int8 and narrow_range is not set"
    assert (~(a & b)).describe(names) == "x is not int8 or narrow_range is not set"
    assert (a | (b & c)).describe(names) == "x is int8 or (narrow_range is set and bias is given)"
    assert (a & ~(b | c)).describe(names) == "x is int8, narrow_range is not set and bias is left out"
    assert output_type(0, INT8, FLOAT32).describe((), ("y",)) == "y is int8 or float32"
    assert input_type(7, INT8).describe(("axis", "values*")) == "values is int8"


def test_the_highest_version_that_is_needed_is_the_version() -> None:
    stated = (Version(2, "1.0"), Version(3, "1.1", given(0)), Version(4, "1.2"), Version(5, "1.3", given(1)))
    op = OpDef("Mine", ("x", "y?"), ("z",), stated, custom=True)
    assert [op.needed_version(signature(*[of()] * count)).number for count in range(3)] == [2, 3, 5]
    assert [op.reason(version) for version in stated] == ["", "x is given", "", "y is given"]
    plain = OpDef("Mine", ("x",), ("y",), versions("1.0", "1.1"), custom=True)
    assert plain.needed_version(signature()).number == 1


def test_names_of_signatures() -> None:
    assert OpSignature(BuiltinOperator.CONV_2D).name == "CONV_2D"
    assert OpSignature(BuiltinOperator.CUSTOM, custom_name="Mine").name == "Mine"
    assert OpSignature(300).name == "BUILTIN_300"
