from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.convert.flex import PREFIX, flex_options
from gossamer.convert.flex_operators import FLEX_OPERATORS, flex_operator
from gossamer.convert.messages.tensorflow import AttrValue, DataType, NodeDef, OpDef
from gossamer.convert.sources.saved_model import read_saved_model
from gossamer.convert.wire import read, write
from gossamer.errors import ConvertError
from gossamer.model.reader import read_model
from gossamer.schema import flexbuffers
from tests.convert.test_corpus import conversion_corpus


def definition(*attributes: OpDef.AttrDef) -> OpDef:
    return OpDef(name="Op", attr=attributes)


def node_def(options: bytes) -> NodeDef:
    stored = flexbuffers.loads(options)[1]
    return read(NodeDef, stored if isinstance(stored, bytes) else stored.encode())


def test_the_bytes() -> None:
    """Name and NodeDef with their sizes, the vector of where they are, their types, the root."""
    node = NodeDef(name="Erf", op="Erf", input=("x",), attr={"T": AttrValue(type=DataType.DT_FLOAT)})
    inside = bytes.fromhex("1203457266 1a00 2a07 0a0154 12023001 3205 0a03457266")
    assert write(node_def(flex_options(node))) == inside
    assert flex_options(node) == b"\x03Erf\x00\x17" + inside + bytes.fromhex("00 02 1e 1a 14 14 04 28 01")


def test_what_belongs_to_the_graph_is_left_out() -> None:
    node = NodeDef(
        name="a/n",
        op="Op",
        device="/cpu:0",
        input=("x", "y:1", "^z"),
        attr={"b": AttrValue(i=1), "_output_shapes": AttrValue(list=AttrValue.ListValue()), "a": AttrValue(b=True)},
    )
    found = node_def(flex_options(node, function="f"))
    assert found == NodeDef(
        op="Op",
        input=("", ""),
        attr={"a": AttrValue(b=True), "b": AttrValue(i=1)},
        experimental_debug_info=NodeDef.ExperimentalDebugInfo(original_node_names=("a/n",), original_func_names=("f",)),
    )
    assert list(found.attr) == ["a", "b"]


def test_attributes_are_those_of_the_definition() -> None:
    join = NodeDef(name="n", op="StringJoin", attr={"N": AttrValue(i=2), "_output_shapes": AttrValue()})
    assert node_def(flex_options(join)).attr == {"N": AttrValue(i=2), "separator": AttrValue(s=b"")}
    node = NodeDef(name="n", op="Op", attr={"a": AttrValue(i=1), "other": AttrValue(i=2), "_class": AttrValue(s=b"c")})
    attributes = [OpDef.AttrDef(name=name, default_value=AttrValue(i=7)) for name in "ab"]
    assert node_def(flex_options(node, definition(*attributes))).attr == {"a": AttrValue(i=1), "b": AttrValue(i=7)}
    with pytest.raises(ConvertError, match=r"node 'n' \(Op\) has no attribute 'c', and this has no default"):
        flex_options(node, definition(*attributes, OpDef.AttrDef(name="c")))


def test_a_node_need_not_be_text() -> None:
    """A long NodeDef whose bytes are no UTF-8: a string for the format nevertheless, with a size of two bytes."""
    node = NodeDef(name="n", op="Op", attr={"s": AttrValue(s=b"\xff" * 300)})
    options = flex_options(node)
    assert options[-2:] == bytes([flexbuffers.VECTOR << 2 | 1, 1])
    assert isinstance(flexbuffers.loads(options)[1], bytes)
    assert node_def(options).attr == node.attr


def test_the_operators() -> None:
    assert len(FLEX_OPERATORS) == 744
    assert {"Erf", "TensorListReserve", "StringSplitV2", "AddV2"} < FLEX_OPERATORS.keys()
    assert not {"While", "If", "Lgamma", "Svd", "SentencepieceOp", "PyFunc"} & FLEX_OPERATORS.keys()
    for name in FLEX_OPERATORS:
        assert all(item.name for item in flex_operator(name).attr)
    assert [item.name for item in flex_operator("FFT").attr] == ["Tcomplex"]


def flex_nodes(model: bytes) -> Iterator[tuple[bytes, NodeDef, int]]:
    """The options of the Flex operators, the NodeDef in them, and how many operands the operator has."""
    stored = read_model(model)
    for subgraph in stored.subgraphs:
        for operator in subgraph.operators:
            code = stored.operator_codes[operator.opcode_index].custom_code or ""
            if code.startswith(PREFIX):
                options = bytes(operator.custom_options)
                yield options, node_def(options), len(operator.inputs)


@pytest.mark.corpus
def test_the_options_are_those_of_tensorflow(tmp_path: Path) -> None:
    """Debug information says which node each was; where the operator is still the same one, so is all but the order."""
    place = conversion_corpus()
    if place is None:
        pytest.skip("the conversion corpus is not here (beside GOSSAMER_CORPUS or in ../shared/convert)")
    same = rewritten = 0
    changed: set[tuple[str, str]] = set()
    for number, line in enumerate((place / "index.jsonl").read_text().splitlines()):
        case = json.loads(line)
        made = case.get("tf", {})
        if case["format"] != "saved_model" or not made.get("flex") or not made.get("model"):
            continue
        archive, _, inside = made["model"].partition(":")
        with zipfile.ZipFile(place / archive) as files:
            model = files.read(inside)
        archive, _, inside = case["source"].partition(":")
        with zipfile.ZipFile(place / archive) as files:
            files.extractall(tmp_path / str(number), [name for name in files.namelist() if name.startswith(inside)])
        graph = read_saved_model(tmp_path / str(number) / inside).graph
        for options, stored, _ in flex_nodes(model):
            debug = stored.experimental_debug_info
            assert debug is not None
            function = debug.original_func_names[-1]
            body = graph.functions[function].node_def if function in graph.functions else ()
            sources = [node for node in body if node.name in debug.original_node_names and node.op == stored.op]
            if len(sources) != 1 or len(debug.original_node_names) != 1:
                rewritten += 1
                continue
            if stored.op in graph.op_defs:  # the table says what the file says
                declared = graph.op_defs[stored.op].attr
                assert [(item.name, item.default_value) for item in flex_operator(stored.op).attr] == [
                    (item.name, item.default_value) for item in declared
                ]
            own = flex_options(sources[0], graph.op_defs.get(stored.op), function)
            assert node_def(own).replace(attr={}) == stored.replace(attr={})
            theirs = {name: write(value) for name, value in stored.attr.items()}
            mine = {name: write(value) for name, value in node_def(own).attr.items()}
            assert mine.keys() == theirs.keys()
            changed |= {(stored.op, name) for name in mine if mine[name] != theirs[name]}
            assert len(own) == len(options)
            same += 1
    assert changed == {("MatMul", "transpose_b")}  # the converter transposes the second operand
    assert same > 50
    assert rewritten < 5


@pytest.mark.corpus
def test_the_layout_is_that_of_tensorflow() -> None:
    """Whatever the NodeDef is: bytes for bytes."""
    place = conversion_corpus()
    flex = place.parent.parent / "flex" / "open" if place is not None else None
    if flex is None or not flex.exists():
        pytest.skip("the models with Flex operators are not here (../shared/flex)")
    seen = known = 0
    for archive in sorted(flex.glob("flex_[!b]*/cases.zip")):
        with zipfile.ZipFile(archive) as files:
            for name in files.namelist():
                if not name.endswith(".tflite"):
                    continue
                for options, stored, operands in flex_nodes(files.read(name)):
                    assert flexbuffers.dumps([stored.op, flexbuffers.String(write(stored))]) == options
                    assert stored.input == ("",) * operands
                    if stored.op in FLEX_OPERATORS:
                        assert {item.name for item in flex_operator(stored.op).attr} == stored.attr.keys()
                        known += 1
                    seen += 1
    assert seen > 1500
    assert known > seen - 100
