"""Operator versions in both directions: every table of TFLite's, derived from the operator files."""

from __future__ import annotations

import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.model import Model, read_model
from gossamer.model.metadata import min_runtime_version, with_min_runtime_version
from gossamer.ops import all_ops, find_op
from gossamer.ops.op_def import OpDef, Version
from gossamer.ops.op_signature import OpSignature, TensorSpec
from gossamer.resolver import BuiltinOpResolver
from gossamer.schema import (
    BuiltinOperator,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    QuantizationParameters,
    Table,
    TensorType,
)
from gossamer.versions import (
    get_builtin_operator_version,
    lowered_op_versions,
    minimum_runtime_version,
    needed_versions,
    op_signature,
    operators,
    release_key,
    runtime_version,
    update_op_versions,
    with_minimum_runtime_version,
)
from tests.runtime.graphs import ModelMaker

DATA = Path(__file__).parent / "data"
TFLITE = json.loads((DATA / "op_versions.json").read_text())
BUILTIN = [op for op in all_ops() if not op.custom]


# Tables of TFLite's


def test_the_default_resolver_has_these_operators() -> None:
    assert {op.name for op in BUILTIN} == {name for name, facts in TFLITE.items() if facts["default"]}


@pytest.mark.parametrize("op", BUILTIN, ids=lambda op: op.name)
@pytest.mark.parametrize("resolver", ["default", "reference"])
def test_resolvers_have_the_ranges_of_tflite(op: OpDef, resolver: str) -> None:
    find = BuiltinOpResolver(reference=resolver == "reference").find_builtin
    low, high = TFLITE[op.name][resolver] or (1, 0)
    assert [version for version in range(40) if find(op.code, version)] == list(range(low, high + 1))


def test_every_entry_of_the_runtime_version_map() -> None:
    entries = [
        (name, int(version), release)
        for name, facts in TFLITE.items()
        for version, release in facts["releases"].items()
    ]
    assert len(entries) == 441
    # No runtime has a kernel for it, and so there is no file that could say its version.
    assert find_op("STABLEHLO_CBRT") is None
    entries.remove(("STABLEHLO_CBRT", 1, "2.17.0"))
    assert [(name, version, runtime_version(name, version)) for name, version, _ in entries] == entries
    for op in BUILTIN:
        known = {version.number for version in op.versions if version.since is not None}
        assert known == {version for name, version, _ in entries if name == op.name}
    assert runtime_version(BuiltinOperator.ADD, 6) == "2.23.0"
    assert runtime_version("ADD", 7) == runtime_version("NOBODY", 1) == ""


@pytest.mark.parametrize("op", BUILTIN, ids=lambda op: op.name)
def test_the_versions_that_are_needed_are_those_of_tflite(op: OpDef) -> None:
    needed = [op.min_version] + [version.number for version in op.versions if version.when is not None]
    assert needed == (TFLITE[op.name]["needed"] or [1])


# What needs which version

Case = tuple[str, int, OpSignature, str]


def cases() -> Iterator[Case]:
    names: list[str] = []
    for line in (DATA / "op_version_cases.txt").read_text().splitlines():
        if line.startswith("  "):
            version, inputs, outputs, options = re.fullmatch(r"  (\d+): (.*) -> ([^;]*)(?:; (.*))?", line).groups()  # type: ignore[union-attr]
            for name in names:
                op = find_op(name)
                assert op is not None
                signature = OpSignature(op.code, specs(inputs), specs(outputs), parsed_options(op, options or ""))
                yield name, int(version), signature, f"{name}-{line.strip()}"
        elif not line.startswith("#"):
            names = line.split()


def specs(text: str) -> tuple[TensorSpec, ...]:
    return tuple(spec(word) for word in text.split())


def spec(word: str) -> TensorSpec:
    if word == "_":
        return TensorSpec()
    match = re.fullmatch(r"(\w+)(?:\[(.*?)\])?(~?)(?:\{(.*?)\}(?:@(\d))?)?", word)
    assert match is not None
    kind, shape, sparse, scales, dimension = match.groups()
    quantization = None
    if scales is not None:
        numbers = [float(scale) for scale in scales.split(",") if scale]
        quantization = QuantizationParameters(
            scale=np.array(numbers, np.float32), quantized_dimension=int(dimension or 0)
        )
    dimensions = tuple(int(size) for size in (shape or "").split(",") if size)
    return TensorSpec(TensorType[kind.upper()], dimensions, quantization, is_sparse=bool(sparse))


def parsed_options(op: OpDef, text: str) -> Table | None:
    if text == "no options":
        return None
    pairs = (pair.split("=") for pair in text.split())
    return op.options(**{name: int(value) for name, value in pairs})


CASES = list(cases())


@pytest.mark.parametrize(("version", "signature"), [case[1:3] for case in CASES], ids=[case[3] for case in CASES])
def test_what_needs_which_version(version: int, signature: OpSignature) -> None:
    assert get_builtin_operator_version(signature) == version


def test_there_is_a_case_for_every_condition_of_tflite() -> None:
    tested = defaultdict(set)
    for name, version, _, _ in CASES:
        tested[name].add(version)
    assert tested == {name: set(facts["needed"]) for name, facts in TFLITE.items() if facts["needed"]}
    assert len(tested) == 89
    assert sum(map(len, tested.values())) == 354


def test_what_depends_on_nothing_needs_the_first_version() -> None:
    for op in BUILTIN:
        if not TFLITE[op.name]["needed"]:
            assert get_builtin_operator_version(OpSignature(op.code, specs("int8"), specs("int8"))) == 1
    assert get_builtin_operator_version(OpSignature(BuiltinOperator.CUSTOM, custom_name="ADD")) == 1
    assert get_builtin_operator_version(OpSignature(BuiltinOperator.STABLEHLO_CBRT)) == 1
    assert get_builtin_operator_version(OpSignature(9999)) == 1


@pytest.mark.parametrize("op", BUILTIN, ids=lambda op: op.name)
def test_a_condition_holds_or_not_whatever_the_signature(op: OpDef) -> None:
    nothing = OpSignature(op.code)
    odd = OpSignature(op.code, (TensorSpec(99, (-1,)),) * 40, (TensorSpec(99, (-1,)),) * 4, Table())
    for version in op.versions:
        if version.when is not None:
            for signature in (nothing, odd):
                assert version.when(signature) is not (~version.when)(signature)
            assert re.search(r"[{}]|\bNone\b", op.reason(version)) is None
        else:
            assert op.reason(version) == ""


def test_reasons_name_operands() -> None:
    def reason(name: str, number: int) -> str:
        op = find_op(name)
        assert op is not None
        return op.reason(next(version for version in op.versions if version.number == number))

    assert reason("CONV_2D", 7) == (
        "input is int8, filter is int4, output is int8 and input and filter have the same channels"
    )
    assert reason("DEPTHWISE_CONV_2D", 2) == "dilation_w_factor is not 1 or dilation_h_factor is not 1"
    assert reason("FULLY_CONNECTED", 6) == "it has 2 inputs"
    assert reason("FULLY_CONNECTED", 2) == "weights_format is SHUFFLED4x16INT8"
    assert reason("EMBEDDING_LOOKUP", 4) == "value is int4 or value has a scale for each channel"
    assert reason("MUL", 7) == (
        "(x is int16, x has no quantization parameters and y has no quantization parameters) or x is uint32"
    )


# Models


def convolution(version: int = 1, **options: int) -> Model:
    make = ModelMaker()
    x, y = make.tensor((1, 5, 5, 1)), make.tensor((1, 3, 3, 1))
    filter = make.constant(np.ones((1, 3, 3, 1)), np.float32, TensorType.FLOAT32)
    bias = make.constant([0], np.float32, TensorType.FLOAT32)
    chosen = DepthwiseConv2DOptions(padding=1, stride_w=1, stride_h=1, depth_multiplier=1, **options)
    make.op("DEPTHWISE_CONV_2D", [x, filter, bias], [y], chosen, version=version)
    make.io([x], [y])
    return read_model(make.model())


def needed(model: Model) -> list[int]:
    return [get_builtin_operator_version(op_signature(model, *place)) for place in operators(model)]


def stored(model: Model) -> list[int]:
    return [code.version for code in model.operator_codes]


def test_a_dilation_added_to_a_convolution_needs_version_2_only_when_it_is_not_1() -> None:
    assert needed(convolution()) == [1]
    assert needed(convolution(dilation_w_factor=1, dilation_h_factor=1)) == [1]
    assert needed(convolution(dilation_w_factor=2)) == [2]
    assert needed(convolution(dilation_h_factor=2)) == [2]


def test_files_from_before_the_dilation_read_as_1() -> None:
    old = convolution()
    (_, operator), *_ = operators(old)
    assert not operator.builtin_options.has("dilation_w_factor")
    assert operator.builtin_options.dilation_w_factor == operator.builtin_options.dilation_h_factor == 1
    assert Conv2DOptions().dilation_w_factor == Conv2DOptions().dilation_h_factor == 1
    interpreter = gossamer.Interpreter(model_content=bytes(old.source or b""))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((1, 5, 5, 1), np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == np.full((1, 3, 3, 1), 9.0).tolist()


def test_updating_only_raises() -> None:
    assert stored(update_op_versions(convolution(dilation_w_factor=2))) == [2]
    assert stored(update_op_versions(convolution(version=6, dilation_w_factor=2))) == [6]
    model = convolution()
    assert update_op_versions(model) is model


def test_lowering_only_lowers() -> None:
    assert stored(lowered_op_versions(convolution(version=6, dilation_w_factor=2))) == [2]
    assert stored(lowered_op_versions(convolution(version=6))) == [1]
    model = convolution(dilation_w_factor=2)
    assert lowered_op_versions(model) is model


def shared() -> Model:
    """Two additions with one code, of which one needs version 2; a code that nothing uses; a custom operator."""
    make = ModelMaker()
    x, y, z = make.tensor((1,)), make.tensor((1,)), make.tensor((1,))
    a, b = (make.tensor((1,), TensorType.INT8, quantization=QuantizationParameters()) for _ in "ab")
    make.op("ADD", [x, x], [y], version=4)
    make.op("ADD", [a, a], [b], version=4)
    make.op("Mine", [y], [z], version=3, custom=True)
    make.op("MUL", [x, x], [y], version=5)
    make.graphs[-1].operators.pop()
    make.io([x, a], [z, b])
    return read_model(make.model())


def test_operators_of_one_code_have_one_version() -> None:
    model = shared()
    assert needed(model) == [1, 2, 1]
    assert stored(lowered_op_versions(model)) == [2, 3, 1]
    assert stored(update_op_versions(model.replace(operator_codes=lowered(model, 1)))) == [2, 1, 1]


def lowered(model: Model, version: int) -> tuple[Any, ...]:
    return tuple(code.replace(version=version) for code in model.operator_codes)


def test_the_minimum_release() -> None:
    assert minimum_runtime_version(shared()) == "2.6.0"
    assert minimum_runtime_version(lowered_op_versions(shared())) == "1.14.0"
    model = with_minimum_runtime_version(with_min_runtime_version(shared(), "9.9"))
    assert min_runtime_version(model) == "2.6.0"
    make = ModelMaker()
    make.op("Mine", [make.tensor((1,))], [make.tensor((1,))], custom=True)
    assert minimum_runtime_version(read_model(make.model())) == ""
    model = read_model(make.model())
    assert with_minimum_runtime_version(model) is model


def test_releases_compare_as_dotted_integers() -> None:
    ordered = ["", "1.5.0", "1.9", "1.10.1", "1.13", "1.14", "1.14.1", "2.0.0", "2.4.0", "2.14.4", "2.23.0"]
    assert sorted(set(ordered), key=release_key) == ordered
    assert release_key("1.14") == release_key("1.14.0")
    for wrong in ("two", "2.x", "2..1", "-1", "2.5.0-rc1", "²"):
        with pytest.raises(ValueError, match="is no release"):
            release_key(wrong)


# A version that a resolver lacks


def refusal(name: str, version: int, **settings: Any) -> str:
    make = ModelMaker()
    x, y = make.tensor((1,)), make.tensor((1,))
    op = find_op(name)
    make.op(name, [x, x], [y], None if op is None or op.options is Table else op.options(), version=version)
    make.io([x], [y])
    with pytest.raises(gossamer.UnsupportedOpError) as error:
        gossamer.Interpreter(model_content=make.model(), **settings)
    return str(error.value)


def test_a_version_that_nobody_has() -> None:
    text = refusal("ADD", 9)
    assert "opcode 'ADD' version '9'" in text
    assert "This resolver has ADD up to version 6; no known release has version 9.\n" in text
    assert text.endswith(
        "`gossamer versions MODEL --lower OUT` writes the model with the lowest versions that it can do with."
    )
    assert "This resolver has BROADCAST_TO in versions 2 to 4; no known release has version 1.\n" in refusal(
        "BROADCAST_TO", 1
    )


def test_a_version_that_the_default_resolver_has() -> None:
    reference = {"experimental_op_resolver_type": gossamer.OpResolverType.BUILTIN_REF}
    assert (
        "This resolver has ADD up to version 5; version 6 came with release 2.23.0, and the default resolver has it.\n"
    ) in refusal("ADD", 6, **reference)
    assert "This resolver does not have CEIL; the default one does." in refusal("CEIL", 1, **reference)


def test_an_operator_that_nobody_has() -> None:
    assert "STABLEHLO_CBRT has no kernel here yet." in refusal("STABLEHLO_CBRT", 1)


def test_a_version_that_converters_write_and_no_release_has() -> None:
    for name in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"):
        op = find_op(name)
        assert op is not None
        assert (op.versions[-1].number, op.versions[-1].since, op.max_version) == (5, None, 4)
        assert runtime_version(name, 5) == ""
        assert f"This resolver has {name} up to version 4; no known release has version 5." in refusal(name, 5)


def test_a_custom_operator_has_versions_too() -> None:
    op = OpDef("Mine", ("x",), ("y",), (Version(2, "1.0"), Version(3, "1.1")), custom=True)
    assert (op.min_version, op.max_version, op.runtime_version(3)) == (2, 3, "1.1")


# The corpus

EXCEPTIONS = {
    "16x8: the quantizer behind the converter wrote the versions of int8, and left the minimum release of floats": """
        zip/avg_pool/3 zip/batch_to_space_nd/0 zip/batch_to_space_nd/25 zip/concat/10 zip/conv/3 zip/conv_relu/1
        zip/conv_relu/16 zip/conv_relu/23 zip/conv_relu1/16 zip/conv_relu1/23 zip/conv_relu6/1 zip/conv_relu6/16
        zip/exp/0 zip/exp/13 zip/exp/5 zip/keras/70 zip/keras/72 zip/keras/77 zip/leaky_relu/0 zip/leaky_relu/15
        zip/leaky_relu/18 zip/leaky_relu/4 zip/leaky_relu/8 zip/log/12 zip/log/13 zip/log/3 zip/max_pool/3
        zip/mirror_pad/8 zip/rsqrt/1 zip/rsqrt/13 zip/rsqrt/3 zip/space_to_batch_nd/0
    """,
    "quantized after the conversion by a tool that leaves the versions of floats": """
        model/src/LiteRT/litert/test/testdata/mul_quant.tflite
        model/src/LiteRT/litert/test/testdata/simple_quantized_ops.tflite
        model/src/LiteRT/litert/test/testdata/single_add_default_a8w8_recipe_quantized.tflite
        model/src/LiteRT/litert/test/testdata/single_mul_default_a8w8_recipe_quantized.tflite
        model/src/LiteRT/litert/test/testdata/single_rsqrt_default_a16w8_recipe_quantized.tflite
        model/src/LiteRT/litert/test/testdata/single_rsqrt_default_a8w8_recipe_quantized.tflite
        model/src/LiteRT/litert/test/testdata/static_w8_a16_quantized_k_einsum.tflite
        model/src/LiteRT/litert/test/testdata/static_w8_a16_quantized_q_einsum.tflite
        model/src/LiteRT/litert/test/testdata/static_w8_a16_quantized_v_einsum.tflite
    """,
    "TOCO, the converter before 2020: CONV_2D 2 for int8, SPLIT 3 for floats, MUL 1 from before there was a 3": """
        model/src/LiteRT/tflite/converter/quantization/lite/testdata/split.bin
        model/src/test_data/automl_video_ondevice/traffic_model.tflite
        model/src/tflite-micro/tensorflow/lite/micro/models/person_detect.tflite
    """,
}
EXCEPTED = {name for names in EXCEPTIONS.values() for name in names.split()}


def converted(corpus: Path, suite: str) -> Iterator[tuple[str, Model]]:
    """The models that the TensorFlow converter wrote, old or new."""
    seen = set()
    for line in (corpus / "open" / suite / "index.jsonl").read_text().splitlines():
        case = json.loads(line)
        name, folder = case["model"], corpus / "open" / suite
        if name in seen or case["expect"].get("stage") == "construct":
            continue
        seen.add(name)
        archive, _, member = name.partition(":")
        content = zipfile.ZipFile(folder / archive).read(member) if member else (folder / name).read_bytes()
        model = read_model(content)
        if model.description in ("MLIR Converted.", "TOCO Converted."):
            yield case["id"], model


@pytest.mark.corpus
@pytest.mark.parametrize(("suite", "models", "count"), [("ops_zip", 2163, 4914), ("models", 109, 1280)])
def test_the_versions_that_the_converter_wrote(corpus: Path, suite: str, models: int, count: int) -> None:
    different = {}
    compared = [0, 0]
    for name, model in converted(corpus, suite):
        compared[0] += 1
        compared[1] += sum(1 for _ in operators(model))
        used = {operator.opcode_index for _, operator in operators(model)}
        found = {
            index: (model.operator_codes[index].version, version)
            for index, version in needed_versions(model).items()
            if index in used and model.operator_codes[index].version != version
        }
        if found:
            different[name] = found
    assert compared == [models, count]
    assert set(different) == {name for name in EXCEPTED if name.startswith("zip/" if suite == "ops_zip" else "model/")}


@pytest.mark.corpus
def test_the_minimum_release_that_the_converter_wrote(corpus: Path) -> None:
    different = {}
    compared = 0
    for name, model in converted(corpus, "ops_zip"):
        said = min_runtime_version(model)
        if said is not None:
            compared += 1
            if said != minimum_runtime_version(model):
                different[name] = (said, minimum_runtime_version(model))
    assert compared == 2099
    assert set(different) <= EXCEPTED
