"""What a Flex operator's options must say, and what is told if they do not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from gossamer import Interpreter
from gossamer.convert.flex import flex_options
from gossamer.convert.flex_operators import FLEX_OPERATORS, KNOWN_OPERATORS, flex_operator
from gossamer.convert.messages.tensorflow import AttrValue, DataType, NodeDef
from gossamer.convert.wire import write
from gossamer.errors import ConvertError
from gossamer.flex.kernels import all_kernels
from gossamer.flex.node import flex_node, types_of
from gossamer.schema import TensorType, flexbuffers
from tests.flex.models import FlexMaker, attribute

FLOAT = AttrValue(type=DataType.DT_FLOAT)


def options(op: str, inputs: int = 1, **attributes: AttrValue) -> bytes:
    """Options as they are, without defaults."""
    node = NodeDef(op=op, name="n", input=("",) * inputs, attr=attributes)
    return flexbuffers.dumps([op, flexbuffers.String(write(node))])


def test_every_definition_can_be_read() -> None:
    assert len(KNOWN_OPERATORS) > len(FLEX_OPERATORS) == 744
    for name in KNOWN_OPERATORS:
        definition = flex_operator(name)
        names = {item.name for item in definition.attr}
        for argument in (*definition.input_arg, *definition.output_arg):
            assert {argument.type_attr, argument.number_attr, argument.type_list_attr} - {""} <= names
    assert set(all_kernels()) <= set(KNOWN_OPERATORS)


def test_defaults_are_those_of_tensorflow() -> None:
    node = flex_node(options("ArgMax", 2, T=FLOAT))
    assert node.attributes.type("output_type") == TensorType.INT64
    assert types_of(node.inputs) == [TensorType.FLOAT32, TensorType.INT32]
    assert types_of(node.outputs) == [TensorType.INT64]


def test_lists_of_operands() -> None:
    node = flex_node(options("ConcatV2", 4, T=FLOAT, N=AttrValue(i=3)))
    assert types_of(node.inputs) == [TensorType.FLOAT32] * 3 + [TensorType.INT32]
    assert node.inputs[0].is_list
    assert not node.inputs[1].is_list


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (b"", "no flexbuffer"),
        (flexbuffers.dumps({"a": 1}), "two strings"),
        (flexbuffers.dumps(["Erf"]), "two strings"),
        (flexbuffers.dumps(["Erf", 1]), "two strings"),
        (flexbuffers.dumps(["Erf", flexbuffers.String(b"\xff\xff\xff")]), ""),
        (flexbuffers.dumps(["Sin", flexbuffers.String(write(NodeDef(op="Erf")))]), "'Sin', its NodeDef 'Erf'"),
        (options("Erf"), "attribute 'T' of Erf is missing"),
        (options("Erf", T=AttrValue(i=1)), "must be of kind type, it is i"),
        (options("Erf", T=AttrValue(type=DataType.DT_INT32)), "is int32, it must be one of float, double"),
        (options("Erf", T=FLOAT, U=FLOAT), "has no attribute 'U'; it has T"),
        (options("ConcatV2", T=FLOAT, N=AttrValue(i=1)), "must be 2 or more, got 1"),
        (options("ConcatV2", T=FLOAT, N=AttrValue(i=1 << 40)), "says that there are 1099511627776"),
        (
            options("Conv2D", 2, T=FLOAT, strides=attribute("list(int)", [1] * 4), padding=AttrValue(s=b"ROUND")),
            "is ROUND, it must be one of SAME, VALID, EXPLICIT",
        ),
    ],
)
def test_what_is_wrong_is_said(given: bytes, words: str) -> None:
    with pytest.raises(ConvertError) as error:
        flex_node(given)
    assert words in str(error.value)


def test_attributes_of_the_graph_are_ignored() -> None:
    assert flex_node(options("Erf", T=FLOAT, _output_shapes=attribute("list(shape)", [[1]]))).op == "Erf"


def refusal(op: str, shapes: list[tuple[int, ...]], types: list[TensorType], made: bytes, out: TensorType) -> str:
    make = FlexMaker()
    inputs = [make.tensor(shape, type, has_rank=True) for shape, type in zip(shapes, types, strict=True)]
    output = make.tensor((2,), out, "y", has_rank=True)
    make.op(f"Flex{op}", inputs, [output], custom=True, custom_options=made)
    make.io(inputs, [output])
    with pytest.raises(RuntimeError) as error:
        Interpreter(model_content=make.model()).allocate_tensors()
    return str(error.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([(2,)] * 2, [TensorType.FLOAT32] * 2, TensorType.FLOAT32), "needs 1 inputs (x), got 2"),
        (([(2,)], [TensorType.FLOAT64], TensorType.FLOAT32), "input 'x' must be float32, got float64"),
        (([(2,)], [TensorType.FLOAT32], TensorType.INT32), "output 'y' must be float32, got int32"),
    ],
)
def test_operands_are_those_of_the_definition(arguments: Any, words: str) -> None:
    shapes, types, out = arguments
    text = refusal("Erf", shapes, types, options("Erf", T=FLOAT), out)
    assert words in text
    assert 'FlexErf (node 0, output "y")' in text


def test_shapes_that_do_not_fit_are_refused_when_allocated() -> None:
    made = options("AddV2", 2, T=FLOAT)
    text = refusal("AddV2", [(2, 3), (4, 5)], [TensorType.FLOAT32] * 2, made, TensorType.FLOAT32)
    assert 'FlexAddV2 (node 0, output "y"): shape mismatch' in text


def test_a_model_without_them_imports_nothing_of_it() -> None:
    """In a process of its own, since here all is imported."""
    program = (
        "import sys, gossamer; from tests.runtime.graphs import adder\n"
        "made = gossamer.Interpreter(model_content=adder()); made.allocate_tensors()\n"
        "print([name for name in sys.modules if name.startswith(('gossamer.flex', 'gossamer.convert', 'PIL'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_options_of_the_converter_are_read_back() -> None:
    node = NodeDef(name="n", op="MatMul", input=("a", "b"), attr={"T": FLOAT, "transpose_b": AttrValue(b=True)})
    read = flex_node(flex_options(node))
    assert (read.attributes.bool("transpose_a"), read.attributes.bool("transpose_b")) == (False, True)
