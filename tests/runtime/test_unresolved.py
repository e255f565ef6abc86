"""What is said of a custom operator that nobody has."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import gossamer
from gossamer.model.metadata import with_metadata
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.schema import TensorType
from gossamer.schema.flexbuffers import dumps
from tests.model.test_accelerators import options as edge_tpu_options
from tests.runtime.graphs import ModelMaker


def model_with(name: str, custom_options: bytes = b"", *, inputs: int = 1, outputs: int = 1, version: int = 1) -> bytes:
    make = ModelMaker()
    tensors = [make.tensor((1,), name=f"t{index}") for index in range(inputs + outputs)]
    make.op(name, tensors[:inputs], tensors[inputs:], custom=True, custom_options=custom_options, version=version)
    make.io(tensors[:inputs], tensors[inputs:])
    return make.model()


def message(model: bytes | Path) -> str:
    source = {"model_path": model} if isinstance(model, Path) else {"model_content": model}
    interpreter = gossamer.Interpreter(**source)
    with pytest.raises(gossamer.PrepareError) as error:
        interpreter.allocate_tensors()
    return str(error.value)


def test_the_words_of_litert_come_first_and_then_what_to_write() -> None:
    assert message(model_with("MyOp", dumps({"alpha": 0.25, "_left": 1, "axis": 2}), inputs=2, version=3)) == (
        "Encountered unresolved custom op: MyOp.\n"
        "See instructions: https://www.tensorflow.org/lite/guide/ops_custom Node number 0 (MyOp) failed to prepare.\n"
        'MyOp (node 0, output "t2"): no resolver has it and no delegate claimed it [version 3].\n'
        "To supply it, write (docs/custom-operators.md)\n"
        '    @gossamer.custom_op("MyOp", versions=3)\n'
        "    def my_op(x, y, *, alpha=0.25, axis=2): ...\n"
        "and pass it: Interpreter(..., custom_ops=[my_op])"
    )


@pytest.mark.parametrize(
    ("name", "options", "inputs", "outputs", "sketch"),
    [
        ("plain", b"", 1, 1, '@gossamer.custom_op("plain")\n    def plain(x): ...'),
        ("a-b.c", b"", 1, 1, '@gossamer.custom_op("a-b.c")\n    def a_b_c(x): ...'),
        ("while", b"", 0, 1, "def while_(): ..."),
        ("7", b"", 1, 1, "def _(x): ..."),
        ('say "so"', b"", 1, 1, '@gossamer.custom_op("say \\"so\\"")'),
        ("Many", b"", 5, 5, '@gossamer.custom_op("Many", outputs=["outputs*"])\n    def many(*inputs): ...'),
        ("Many", dumps({"a": True}), 5, 2, 'outputs=["output_0", "output_1"])\n    def many(*inputs, a=True): ...'),
        ("Raw", b"ABC", 1, 1, "def raw(x, *, custom_options): ..."),
        ("Raw", dumps(["a"]), 1, 1, "def raw(x, *, custom_options): ..."),
        ("Odd", dumps({"a": [1]}), 1, 1, "def odd(x, **options): ..."),
        ("Odd", dumps({"x": 1}), 1, 1, "def odd(x, **options): ..."),
        ("Odd", dumps({"not a name": 1}), 1, 1, "def odd(x, **options): ..."),
        ("Odd", dumps({"class": 1}), 1, 1, "def odd(x, **options): ..."),
        ("Odd", dumps({f"o{i}": 1 for i in range(13)}), 1, 1, "def odd(x, **options): ..."),
    ],
)
def test_the_sketch_fits_the_node(name: str, options: bytes, inputs: int, outputs: int, sketch: str) -> None:
    assert sketch in message(model_with(name, options, inputs=inputs, outputs=outputs))


def test_the_sketch_is_python_that_runs() -> None:
    model = model_with("My Op", dumps({"a": 1, "b": 0.5}), inputs=2, outputs=2)
    lines = [line.strip() for line in message(model).splitlines() if line.startswith("    ")]
    names: dict[str, object] = {"gossamer": gossamer}
    exec("\n".join(lines).replace(": ...", ": return x, y"), names)
    op = names["my_op"]
    assert isinstance(op, gossamer.ops.op_def.OpDef)
    gossamer.Interpreter(model_content=model, custom_ops=[op]).allocate_tensors()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("LceBconv2d", "it belongs to Larq Compute Engine"),
        ("TFText>NgramsStringJoin", "it belongs to TensorFlow Text"),
        ("MTKEXT_CONV_2D", "it belongs to MediaTek's NeuroPilot"),
        ("vsi-npu", "it belongs to VeriSilicon's NPU"),
        ("odml.update_kv_cache", "it belongs to LiteRT's operators for generative models"),
        ("Posenet_Decoder_Op", "it belongs to Coral's PoseNet"),
    ],
)
def test_families_say_where_they_come_from(name: str, words: str) -> None:
    text = message(model_with(name))
    assert words in text
    assert f'@gossamer.custom_op("{name}")' in text


def test_an_unknown_operator_of_tensorflow_says_how_to_write_it() -> None:
    text = message(model_with("FlexNoSuchOp"))
    assert "the converter kept it as TensorFlow's NoSuchOp, which is not here [version 1].\nConvert the model" in text
    assert '@gossamer.flex_op("NoSuchOp")' in text
    assert "custom_ops=[no_such_op]" in text


def test_an_edge_tpu_model_names_its_accelerator_and_the_model_to_run(tmp_path: Path) -> None:
    content = model_with("edgetpu-custom-op", edge_tpu_options())
    words = "a program for the Coral Edge TPU (chip 'beagle', runtime version 13 or later), which nothing else runs"
    text = message(content)
    assert text.startswith("Encountered unresolved custom op: edgetpu-custom-op.\nSee instructions: ")
    assert f"{words} [version 1].\nRun the model that it was compiled from." in text
    for name in ("net_edgetpu.tflite", "net_segment_2_of_4_edgetpu.tflite", "net_cocompiled_with_b_edgetpu.tflite"):
        (tmp_path / name).write_bytes(content)
        assert message(tmp_path / name).endswith("compiled from, net.tflite by its name.")
    other = message(model_with("edgetpu-custom-op", edge_tpu_options("other")))
    assert "a program for an Edge TPU (chip 'other', " in other
    assert "should hold a program for the Coral Edge TPU, but" in message(model_with("edgetpu-custom-op", b"?"))


def test_an_ethos_u_model_names_the_processor(tmp_path: Path) -> None:
    make = ModelMaker()
    commands = make.constant(list(b"COP1\x01\x00\x10\x00\x08\x30\x00\x00"), np.uint8, TensorType.UINT8)
    x, y = make.tensor((1,)), make.tensor((1,))
    make.op("ethos-u", [commands, x], [y], custom=True, custom_options=dumps(1))
    make.io([x], [y])
    model = with_metadata(read_model(make.model()), "vela_version", b"3.11.0")
    (tmp_path / "net_vela.tflite").write_bytes(write_model(model))
    text = message(tmp_path / "net_vela.tflite")
    assert "it holds commands for an Arm Ethos-U55-256, made by Vela 3.11.0, which nothing else runs" in text
    assert text.endswith("Run the model that it was compiled from, net.tflite by its name.")
    assert "for an Arm Ethos-U, made by Vela, which" in message(model_with("ethos-u"))


def test_a_dispatch_model_names_the_chip() -> None:
    plain = model_with("DISPATCH_OP")
    assert "it holds bytecode for an NPU, made ahead of time by LiteRT" in message(plain)
    stamped = write_model(with_metadata(read_model(plain), "LiteRtStamp", b"Qualcomm\0\0SM8650\0\0"))
    assert "it holds bytecode for an NPU (Qualcomm SM8650), made ahead of time by LiteRT" in message(stamped)


def test_models_of_the_corpus(corpus: Path) -> None:
    models = corpus / "open" / "models"
    said = {
        "edgetpu-custom-op": "a program for the Coral Edge TPU (chip 'beagle', runtime version 1",
        "ethos-u": "commands for an Arm Ethos-U55-256, made by Vela 3.11.0",
        "DISPATCH_OP": "bytecode for an NPU",
    }
    counts = dict.fromkeys(said, 0)
    for line in (models / "index.jsonl").read_text().splitlines():
        case = json.loads(line)
        name = next((name for name in said if f"CUSTOM:{name}" in case["ops"]), None)
        if name is None:
            continue
        archive, _, member = case["model"].partition(":")
        text = message(zipfile.ZipFile(models / archive).read(member) if member else models / archive)
        assert text.startswith(case["expect"]["text"])
        assert said[name] in text
        counts[name] += 1
    assert counts == {"edgetpu-custom-op": 8, "ethos-u": 1, "DISPATCH_OP": 6}
