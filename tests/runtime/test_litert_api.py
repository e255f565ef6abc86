"""The API of LiteRT's interpreter and Gossamer's, call by call: values, types, details, errors, and when they come.

Every difference that is meant to be is in ``DELIBERATE``, with its reason, or in a test of its own.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer.interpreter
from tests.conftest import corpus_directory
from tests.runtime import api_scripts
from tests.runtime.api_models import MODELS, adder, int8_conv, strings
from tests.runtime.outcomes import CRASH, Api, Outcome, Script, outcomes, outcomes_apart, same

pytestmark = pytest.mark.peer

OURS = Api(gossamer.interpreter)

ML_DTYPES = {"type_bfloat16", "type_float8_e4m3fn", "type_float8_e5m2"}
"""Their details have the dtypes of ml_dtypes here; LiteRT has int8 for float8, and no details for bfloat16."""
NOT_SETTABLE = {"type_int2"}
"""LiteRT cannot set such a tensor at all."""
COMPARED = sorted(set(MODELS) - ML_DTYPES - NOT_SETTABLE)


def litert() -> Api:
    return Api(pytest.importorskip("ai_edge_litert.interpreter"))


def _is_error(outcome: Outcome, text: str = "") -> bool:
    return outcome[0] == "error" and text in outcome[2]


def _within_one(ours: Outcome, theirs: Outcome) -> bool:
    return bool((np.abs(np.subtract(ours[1][3], theirs[1][3], dtype=np.int32)) <= 1).all())


def _without_names(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_names(item) for item in value if not (isinstance(item, tuple) and item[0] == "name")]
    return tuple(_without_names(item) for item in value) if isinstance(value, tuple) else value


def _without_signatures(value: Any) -> Any:
    lost = ("shape_signature", "quantization_parameters")
    if isinstance(value, list):
        return [_without_signatures(item) for item in value if not (isinstance(item, tuple) and item[0] in lost)]
    return tuple(_without_signatures(item) for item in value) if isinstance(value, tuple) else value


CONSTANT_INPUTS = {"test_custom_node_with_init_data.tflite", "test_model.tflite", "test_model_versioned_ops.tflite"}

DELIBERATE: dict[str, Callable[[str, str, Outcome, Outcome], bool]] = {
    "a tensor without elements can be read; LiteRT refuses if it has an address": (
        lambda model, call, ours, theirs: _is_error(theirs, "Invalid tensor size.") and ours[0] == "value"
    ),
    "a tensor without elements that is resized to its own shape stays ready; in LiteRT it has no address yet": (
        lambda model, call, ours, theirs: (
            model == "zero_size" and call.endswith("invoke") and _is_error(theirs, "not ready")
        )
    ),
    "a dynamic tensor has no value before invoke; LiteRT gives uninitialized memory": (
        lambda model, call, ours, theirs: _is_error(ours, "Tensor data is null") and theirs[0] == "value"
    ),
    "tensors keep the names of the file; LiteRT renames the output of DENSIFY and scratch of BATCH_MATMUL": (
        lambda model, call, ours, theirs: "details" in call and same(_without_names(ours), _without_names(theirs))
    ),
    "setting strings keeps shape_signature and quantization; LiteRT forgets them": (
        lambda model, call, ours, theirs: (
            "string" in model and same(_without_signatures(ours), _without_signatures(theirs))
        )
    ),
    "a constant cannot be set, also if it is an input; LiteRT writes into the model, or dies": (
        lambda model, call, ours, theirs: (
            _is_error(ours, "is a constant of the model") or (model in CONSTANT_INPUTS and "get_tensor" in call)
        )
    ),
    "what can be known before invoke fails in allocate_tensors": (
        lambda model, call, ours, theirs: (
            "allocate" in call
            and ours[0] == "error"
            and theirs[0] == "value"
            and model in {"type_string", "tensor_string_data_type.tflite"}
        )
    ),
    "a view of a sparse constant has its stored values; LiteRT's has the dense shape and reads past the end": (
        lambda model, call, ours, theirs: model == "sparse" and "tensor(0)()" in call
    ),
    "packed integers are unpacked by tensor() too; LiteRT's view has a shape that its memory has not": (
        lambda model, call, ours, theirs: "int4" in model and (call.startswith(("write through", "output ")))
    ),
    "values of another byte order are converted; LiteRT takes their bytes": (
        lambda model, call, ours, theirs: call.endswith("big endian)")
    ),
    "the int4 kernel of FULLY_CONNECTED rounds as the reference kernel does": (
        lambda model, call, ours, theirs: (
            model == "int4_weights" and call.endswith(("(2, 0)", "output 2")) and _within_one(ours, theirs)
        )
    ),
    "scratch tensors of TRANSPOSE_CONV are those in the arena; LiteRT's optimized kernel has others of its own": (
        lambda model, call, ours, theirs: (
            model.startswith("transpose_conv") and call == "allocated: get_tensor_details(0)"
        )
    ),
    "an output keeps its shape when the kernel refuses; LiteRT has resized it by then": (
        lambda model, call, ours, theirs: (
            model.startswith("transpose_conv") and call.endswith(("get_output_details", "get_tensor_details(0)"))
        )
    ),
    "a subgraph that a composite calls keeps its memory": (
        lambda model, call, ours, theirs: (
            "odml" in model and call.endswith(", 1)") and _is_error(theirs, "data is null")
        )
    ),
    "strings may come as a list, as numbers may": (
        lambda model, call, ours, theirs: call.endswith(", list)") and _is_error(theirs, "is not a numpy array")
    ),
    "a resize that fails changes nothing; after LiteRT's the interpreter is not ready": (
        lambda model, call, ours, theirs: (
            call.startswith("allocated: invoke after resize") and _is_error(theirs, "not ready")
        )
    ),
    "a size beyond 32 bits is a ValueError; what it is in LiteRT depends on NumPy's version": (
        lambda model, call, ours, theirs: "resize to large" in call and _is_error(ours) and "ValueError" in ours[1]
    ),
    "XNNPACK rounds int8 its own way": (
        lambda model, call, ours, theirs: (model, call[-6:]) == ("int8_conv", ": conv") and _within_one(ours, theirs)
    ),
    "any bytes are a model's content, not only bytes": (
        lambda model, call, ours, theirs: call in {"content as bytearray", "content as memoryview"}
    ),
}


TEXTS = (
    "`model_path` or `model_content` must be specified.",
    "Can't both provide `model_path` and `model_content`",
    "Could not open '",
    ".The model allocation is null/empty",
    "The model is not a valid Flatbuffer buffer",
    "num_threads should >= 1",
    "type of num_threads should be int",
    "Unrecognized passed in op resolver type: ",
    "Tensor data is null. Run allocate_tensors() first",
    "Cannot set tensor: Got value of type ",
    " but expected type ",
    "Cannot set tensor: Dimension mismatch. Got ",
    "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first",
    "Invoke called on model that is not ready.",
    "Invalid tensor index ",
    "Invalid subgraph index ",
    "Invalid node index",
    "subgraph_index is out of range: ",
    "Shape should be 1D instead of ",
    "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1.",
    "Attempting to resize a fixed-size tensor",
    "Encountered unresolved custom op: MyOp.\nSee instructions: https://www.tensorflow.org/lite/guide/ops_custom",
    "Select TensorFlow op(s), included in the given model, is(are) not supported by this interpreter.",
    "failed to prepare.",
    "AllocateTensors() called on inconsistent model.",
    "SignatureDef signature_key is None and model has ",
    "Invalid signature_key provided: ",
    "Invalid number of inputs provided for running a SignatureDef, expected ",
    "Invalid Input name (",
    "None interpreter provided.",
    "None signature_key provided.",
    "There is at least 1 reference to internal data\n      in the interpreter in the form of a numpy array or slice.",
)
"""What people search for: where LiteRT's text of a call has one of these, so has Gossamer's."""


def lacking(ours: Outcome, theirs: Outcome, before: str) -> list[str]:
    """Which words are missing in an error; LiteRT's messages begin with those of earlier calls."""
    if not (_is_error(ours) and _is_error(theirs)) or _is_error(ours, " holding "):  # which names the odd element
        return []
    text = theirs[2].removeprefix(before)
    return [words for words in TEXTS if words in text and words not in ours[2]]


def differences(model: str, script: Script) -> list[str]:
    """What differs and is not deliberate."""
    theirs, ours = outcomes_apart(script, litert()), outcomes(script, OURS)
    found = []
    before = ""
    for (our_call, our_outcome), (call, outcome) in zip(ours, theirs, strict=False):
        if call != our_call:
            return [*found, f"Gossamer comes to {our_call!r}, LiteRT to {call!r} ({outcome})"]
        if not same(our_outcome, outcome) and not any(
            rule(model, call, our_outcome, outcome) for rule in DELIBERATE.values()
        ):
            found.append(f"{call}: Gossamer {our_outcome}, LiteRT {outcome}")
        if missing := lacking(our_outcome, outcome, before):
            found.append(f"{call}: {missing} is missing in {our_outcome[2]!r}, LiteRT: {outcome[2]!r}")
        before = outcome[2] if _is_error(outcome) and "RuntimeError" in outcome[1] else before
    if len(ours) != len(theirs):
        found.append(f"Gossamer ends after {ours[-1:]}, LiteRT after {theirs[-1:]}")
    return found


@pytest.mark.parametrize("script", ["lifecycle", "everything_kept", "resizing", "wrong_values", "signatures", "views"])
@pytest.mark.parametrize("model", COMPARED)
def test_calls_come_to_the_same(model: str, script: str) -> None:
    assert differences(model, getattr(api_scripts, script)(MODELS[model]())) == []


@pytest.mark.parametrize("calls", ["indices", "sizes"])
def test_odd_indices_and_sizes_come_to_the_same(calls: str) -> None:
    assert differences("adder", api_scripts.fresh_each_time(adder(), getattr(api_scripts, calls)())) == []


def test_arguments_come_to_the_same(tmp_path: Path) -> None:
    assert differences("adder", api_scripts.arguments(adder(), tmp_path)) == []


@pytest.mark.parametrize("model", ["adder", "int8_conv", "quantize_dequantize", "chain", "branches", "recurrent"])
@pytest.mark.parametrize("resolver", ["AUTO", "BUILTIN_REF"])
def test_ends_are_the_same_with_every_resolver(model: str, resolver: str) -> None:
    def script(api: Api, record: Any) -> None:
        interpreter = api.open(MODELS[model](), resolver=resolver)
        record("inputs", interpreter.get_input_details)
        record("allocate", interpreter.allocate_tensors)
        for seed in range(3):
            api_scripts.feed(record, interpreter, f"run {seed}", seed)
            record("invoke", interpreter.invoke)
            for details in interpreter.get_output_details():
                record(f"run {seed}: {details['name']}", interpreter.get_tensor, details["index"])
        record("outputs", interpreter.get_output_details)

    assert differences(model, script) == []


@pytest.mark.parametrize("compress", [True, False])
def test_compressed_zero_points_are_the_same(compress: bool) -> None:
    script = api_scripts.lifecycle(int8_conv(), experimental_compress_quantization_zero_points=compress)
    assert differences("int8_conv", script) == []


TOO_LARGE = {"conv_huge_im2col.tflite", "conv3d_huge_im2col.tflite"}
"""Take minutes and gigabytes to run."""


def _corpus_models() -> list[str]:
    place = corpus_directory()
    archive = place / "open" / "models" / "small.zip" if place else None
    if archive is None or not archive.exists():
        return []
    with zipfile.ZipFile(archive) as models:
        return sorted(set(models.namelist()) - TOO_LARGE)


@pytest.mark.corpus
@pytest.mark.parametrize("model", _corpus_models())
def test_models_of_the_corpus_come_to_the_same(model: str, corpus: Path) -> None:
    with zipfile.ZipFile(corpus / "open" / "models" / "small.zip") as models:
        content = models.read(model)
    found = differences(model, api_scripts.lifecycle(content))
    found += differences(model, api_scripts.signatures(content, mistakes=False))
    assert found == []


DEADLY: dict[str, tuple[bytes, Callable[[Any], Any], type[Exception] | None]] = {
    "a string that is not set": (strings(), lambda i: i.allocate_tensors() or i.get_tensor(0), ValueError),
    "tensor() of strings": (
        strings(),
        lambda i: (
            i.allocate_tensors(),
            i.set_tensor(0, np.array([b"a", b"b", b"c"], object)),
            i.invoke(),
            np.array(i.tensor(3)()),
        ),
        None,
    ),
    "a resource before allocation": (MODELS["resource_variable"](), lambda i: i.get_tensor(1), ValueError),
}


@pytest.mark.parametrize("name", DEADLY)
def test_what_kills_litert_does_no_harm(name: str) -> None:
    content, call, error = DEADLY[name]

    def script(api: Api, record: Any) -> None:
        record(name, call, api.open(content))

    ((_, (kind, *what)),) = outcomes(script, OURS)
    assert (kind == "error" and error.__name__ in what[0]) if error else kind == "value"
    assert outcomes_apart(script, litert())[-1][1] == CRASH


def test_a_runner_is_no_view() -> None:
    """While a SignatureRunner is held, LiteRT refuses to invoke the interpreter itself."""
    for api, fails in ((OURS, False), (litert(), True)):
        interpreter = api.open(adder())
        runner = interpreter.get_signature_runner()
        if fails:
            with pytest.raises(RuntimeError, match="There is at least 1 reference to internal data"):
                interpreter.allocate_tensors()
        else:
            interpreter.allocate_tensors()
        del runner


def test_a_runner_takes_what_numpy_takes() -> None:
    x = [[1.0, 2.0, 3.0]]
    with pytest.raises(AttributeError, match="'list' object has no attribute 'shape'"):
        litert().open(adder()).get_signature_runner()(x=x)
    with pytest.raises(ValueError, match="Got value of type FLOAT64 but expected type FLOAT32"):
        OURS.open(adder()).get_signature_runner()(x=x)
