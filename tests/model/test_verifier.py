from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from gossamer.dtypes import encode_strings
from gossamer.errors import ModelError
from gossamer.model import Fault, Model, verify_model
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.schema import (
    AddOptions,
    BlockwiseQuantization,
    Buffer,
    BuiltinOperator,
    CastOptions,
    Conv2DOptions,
    DimensionMetadata,
    DimensionType,
    IfOptions,
    Int32Vector,
    Metadata,
    MultiAxisQuantization,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SignatureDef,
    SparsityParameters,
    StablehloCaseOptions,
    SubGraph,
    Tensor,
    TensorMap,
    TensorType,
)
from tests.model.arbitrary import add_model, tensor_model


def _refusal(model: Model) -> str:
    with pytest.raises(ModelError) as error:
        verify_model(model)
    return str(error.value)


def _subgraph(**changes: Any) -> SubGraph:
    return add_model().subgraphs[0].replace(**changes)


def _operator(**changes: Any) -> tuple[Fault, ...]:
    operator = add_model().subgraphs[0].operators[0].replace(**changes)
    return verify_model(add_model(subgraphs=(_subgraph(operators=(operator,)),)))


def test_a_sound_model_has_no_faults() -> None:
    assert verify_model(add_model()) == ()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"version": 4}, "Model provided is schema version 4 not equal to supported version 3."),
        ({"version": 0xFFFFFFFF}, "Model provided is schema version -1 not equal to supported version 3."),
        ({"subgraphs": ()}, "No subgraph in the model."),
        (
            {"operator_codes": (OperatorCode(builtin_code=BuiltinOperator.CUSTOM),)},
            "Operator with CUSTOM builtin_code has no custom_code.",
        ),
        ({"subgraphs": (SubGraph(),)}, "Did not get tensors in subgraph 0."),
        ({"operator_codes": ()}, "Missing registration for opcode_index 0"),
        ({"signature_defs": (SignatureDef(),)}, "Missing exported method name for SignatureDef"),
    ],
)
def test_what_tflite_refuses_of_models(changes: dict[str, Any], text: str) -> None:
    assert _refusal(add_model(**changes)).startswith(text)


def test_a_model_without_buffers() -> None:
    model = add_model()
    values = {field.name: getattr(model, field.name) for field in model.FIELDS if field.name != "buffers"}
    assert _refusal(Model(**values)).startswith("No buffers in the model.")


def test_the_first_refusal_is_tflites_first() -> None:
    broken = add_model(version=4, subgraphs=(), operator_codes=())
    assert "schema version" in _refusal(broken)
    assert "No subgraph" in _refusal(broken.replace(version=3))


@pytest.mark.parametrize(
    ("tensor", "data", "text"),
    [
        (Tensor(type=77), None, 'Unsupported data type 77 in tensor (subgraphs[0].tensors[0] "": '),
        (
            Tensor(buffer=55),
            None,
            "Tensor 0 specifies out of range buffer 55 (only 1 buffers).",
        ),
        (Tensor(buffer=0xFFFFFFFF), None, "Tensor 0 specifies out of range buffer -1 (only 1 buffers)."),
        (Tensor(shape=(2, -1), name="t"), None, "BytesRequired number of elements overflowed."),
        (Tensor(shape=(1 << 30,) * 3), None, "BytesRequired number of elements overflowed."),
        (Tensor(shape=(1 << 31, 1 << 31, 4, 0)), None, "BytesRequired number of elements overflowed."),
        (
            Tensor(shape=(1 << 30, 1 << 30), buffer=1, name="w"),
            b"12345678",
            "required_bytes <= bytes was not true. Tensor 0 is invalidly specified in schema. "
            '(subgraphs[0].tensors[0] "w": FLOAT32 [1073741824, 1073741824] needs 4611686018427387904 bytes, '
            "buffers[1] holds 8)",
        ),
        (Tensor(shape=(3,), type=TensorType.INT4, buffer=1), b"1", "required_bytes <= bytes was not true."),
        (Tensor(is_variable=True, shape=(1,), buffer=1), b"1234", "Tensor 0 is a variable tensor with buffer"),
        (Tensor(external_buffer=1, shape=(1,), buffer=1), b"1234", "Tensor 0 is a variable tensor with buffer"),
        (Tensor(type=TensorType.STRING, is_variable=True), None, "String variable tensor isn't supported."),
        (Tensor(buffer=1, shape=(0,), sparsity=SparsityParameters()), b"", "Invalid sparsity parameter. Tensor 0 has"),
        (
            Tensor(
                buffer=1,
                shape=(2,),
                sparsity=SparsityParameters(
                    traversal_order=(0,), dim_metadata=(DimensionMetadata(format=DimensionType.SPARSE_CSR),)
                ),
            ),
            b"",
            "The 0th sparse dimension has invalid parameters. Tensor 0 has invalid sparsity parameters.",
        ),
        (
            Tensor(
                buffer=1,
                sparsity=SparsityParameters(traversal_order=(0,), dim_metadata=(DimensionMetadata(format=7),)),
            ),
            b"",
            "The 0th dimension has unknown type: 7.",
        ),
    ],
)
def test_what_tflite_refuses_of_tensors(tensor: Tensor, data: bytes | None, text: str) -> None:
    assert _refusal(tensor_model(tensor, data)).startswith(text)


@pytest.mark.parametrize(
    ("tensor", "data"),
    [
        (Tensor(shape=(3,), type=TensorType.INT4, buffer=1), b"12"),
        (Tensor(shape=(1,), buffer=1), b"12345678"),
        (Tensor(shape=(0,), buffer=1), b""),
        (Tensor(type=TensorType.RESOURCE), None),
        (Tensor(shape=(2, 3), is_variable=True), None),
        (Tensor(shape=(1,), type=TensorType.STRING, buffer=1), struct.pack("<3i", 1, 12, 14) + b"ab"),
    ],
)
def test_tensors_that_are_sound(tensor: Tensor, data: bytes | None) -> None:
    assert verify_model(tensor_model(tensor, data)) == ()


def _quantized(shape: tuple[int, ...], **values: Any) -> Model:
    arrays = {"scale": np.float32, "zero_point": np.int64}
    fields = {name: np.array(value, arrays[name]) if name in arrays else value for name, value in values.items()}
    tensor = Tensor(shape=shape, type=TensorType.INT8, quantization=QuantizationParameters(**fields))
    return tensor_model(tensor)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (_quantized((2,), scale=[1]), "Quantization parameters has non-null scale but null zero_point."),
        (
            _quantized((2,), scale=[1, 1], zero_point=[0]),
            "QuantizationParam has 1 zero_point values and 2 scale values. Must have same number.",
        ),
        (
            _quantized((2, 2), scale=[1], zero_point=[0], quantized_dimension=3),
            "quantized_dimension must be in range [0, 2). Was 3. Tensor 0 has invalid quantization parameters.",
        ),
        (_quantized((2,), scale=[1], zero_point=[0], quantized_dimension=-1), "quantized_dimension must be in range"),
        (
            _quantized((4, 2), scale=[1] * 3, zero_point=[0] * 3, quantized_dimension=1),
            "num_scales must be 1 for per-layer quantization, or 2 for per-axis quantization, but got 3.",
        ),
        (_quantized((2,), details=MultiAxisQuantization()), "Invalid MultiAxisQuantization parameters."),
        (
            _quantized((2,), details=MultiAxisQuantization(scales=9, quantized_dimensions=(0,))),
            "MultiAxisQuantization scales tensor index must be in range [0, 1). Was 9.",
        ),
        (
            _quantized((2,), details=MultiAxisQuantization(zero_points=-2, quantized_dimensions=(0,))),
            "MultiAxisQuantization zero_points tensor index must be in range [0, 1), or -1 if optional. Was -2.",
        ),
        (
            _quantized((2,), details=MultiAxisQuantization(block_size=-1, quantized_dimensions=(0,))),
            "MultiAxisQuantization block_size must be non-negative. Was -1.",
        ),
        (
            _quantized((2,), details=MultiAxisQuantization(quantized_dimensions=())),
            "MultiAxisQuantization must have at least one quantized dimension.",
        ),
        (
            _quantized((2,), details=MultiAxisQuantization(quantized_dimensions=(0, 1))),
            "MultiAxisQuantization quantized_dimensions must be in range [0, 1). Value 1 at index 1 is invalid.",
        ),
    ],
)
def test_what_tflite_refuses_of_quantization(model: Model, text: str) -> None:
    assert _refusal(model).startswith(text)
    (fault,) = verify_model(model, lenient=True)
    assert fault.subgraph is None
    assert fault.message.startswith(text.split(" Tensor 0")[0])


@pytest.mark.parametrize(
    "model",
    [
        _quantized((4, 2), scale=[1] * 2, zero_point=[0] * 2, quantized_dimension=1),
        _quantized((), scale=[1, 2], zero_point=[0, 0], quantized_dimension=7),
        _quantized((2,), zero_point=[1]),
        _quantized((2,), details=BlockwiseQuantization(scales=99)),
    ],
)
def test_quantization_that_is_sound(model: Model) -> None:
    assert verify_model(model) == ()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1\0\0",
        struct.pack("<i", -1),
        struct.pack("<2i", 1 << 29, 8),
        struct.pack("<3i", 1, 8, 12),
        struct.pack("<3i", 1, 12, 99),
        struct.pack("<4i", 2, 16, 12, 16),
        struct.pack("<4i", 2, 16, 20, 18) + b"abcd",
    ],
)
def test_string_buffers_that_lead_astray_forbid_allocation(data: bytes) -> None:
    (fault,) = verify_model(tensor_model(Tensor(shape=(1,), type=TensorType.STRING, buffer=1), data))
    assert fault.subgraph == 0
    assert fault.place == 'subgraphs[0].tensors[0] ""'
    assert "string buffer" in fault.message


def _sparse(**changes: Any) -> tuple[Fault, ...]:
    """A 2 x 4 float32 tensor in compressed rows with three elements, with some fields changed."""
    values: dict[str, Any] = {
        "order": (0, 1),
        "segments": (0, 1, 3),
        "indices": (2, 0, 3),
        "rows": 2,
        "data": bytes(12),
        "blocks": (),
        **changes,
    }
    sparsity = SparsityParameters(
        traversal_order=values["order"],
        block_map=values["blocks"],
        dim_metadata=(
            DimensionMetadata(dense_size=values["rows"]),
            DimensionMetadata(
                format=DimensionType.SPARSE_CSR,
                array_segments=Int32Vector(values=values["segments"]),
                array_indices=Int32Vector(values=values["indices"]),
            ),
        ),
    )
    return verify_model(tensor_model(Tensor(shape=(2, 4), buffer=1, sparsity=sparsity), values["data"]))


def test_sparse_tensors() -> None:
    assert _sparse() == ()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"order": (0,)}, "traversal_order has 1 entries, dim_metadata 2, the shape 2"),
        ({"order": (1, 1)}, "traversal_order [1, 1] must be a permutation"),
        ({"rows": 3}, "dim_metadata[0] has 3 entries, its dimension 2"),
        ({"segments": (0, 3)}, "dim_metadata[1]: array_segments has 2 entries for 2 rows"),
        ({"segments": (0, 2, 1)}, "dim_metadata[1]: array_segments must rise to 3"),
        ({"segments": (0, 1, 9)}, "dim_metadata[1]: array_segments must rise to 3"),
        ({"indices": (2, 0, 4)}, "dim_metadata[1]: array_indices must be in [0, 4), got 0 to 4"),
        ({"data": bytes(8)}, "3 elements need 12 bytes, the buffer holds 8"),
    ],
)
def test_sparse_tensors_that_lead_astray_forbid_allocation(changes: dict[str, Any], text: str) -> None:
    (fault,) = _sparse(**changes)
    assert fault.subgraph == 0
    assert fault.message.startswith(text)


@pytest.mark.parametrize(
    ("changes", "place", "message"),
    [
        (
            {"inputs": (0, 9)},
            "subgraphs[0].operators[0].inputs[1]",
            "Invalid tensor index 9 in node inputs. The subgraph has 3 tensors",
        ),
        (
            {"outputs": (-2,)},
            "subgraphs[0].operators[0].outputs[0]",
            "Invalid tensor index -2 in node outputs. The subgraph has 3 tensors",
        ),
        ({"outputs": (1,)}, "subgraphs[0].operators[0] ADD", "Tensor 1 is both input 1 and output 0"),
    ],
)
def test_broken_graphs_are_reported_for_allocation(changes: dict[str, Any], place: str, message: str) -> None:
    assert _operator(**changes) == (Fault(0, place, message),)


def test_absent_optional_inputs_are_no_fault() -> None:
    assert _operator(inputs=(0, -1)) == ()


def test_subgraph_inputs_and_outputs() -> None:
    faults = verify_model(add_model(subgraphs=(_subgraph(inputs=(3,), outputs=(-5,)),)))
    assert [str(fault) for fault in faults] == [
        "subgraphs[0].inputs[0]: Invalid tensor index 3 in inputs. The subgraph has 3 tensors",
        "subgraphs[0].outputs[0]: Invalid tensor index -5 in outputs. The subgraph has 3 tensors",
    ]


def test_operators_without_parameters_may_work_in_place() -> None:
    codes = (OperatorCode(builtin_code=BuiltinOperator.FLOOR),)
    subgraph = _subgraph(operators=(Operator(inputs=(0,), outputs=(0,)),))
    assert verify_model(add_model(operator_codes=codes, subgraphs=(subgraph,))) == ()


def test_options_that_name_unknown_types() -> None:
    model = add_model(operator_codes=(OperatorCode(builtin_code=BuiltinOperator.CAST),))
    operator = Operator(inputs=(0,), outputs=(2,), builtin_options=CastOptions(out_data_type=77))
    refusal = _refusal(model.replace(subgraphs=(_subgraph(operators=(operator,)),)))
    assert refusal.startswith("Unsupported data type 77 in tensor (subgraphs[0].operators[0].out_data_type: ")


def test_options_of_another_operator_are_noted() -> None:
    (fault,) = _operator(builtin_options=Conv2DOptions())
    assert fault == Fault(
        None, "subgraphs[0].operators[0]", "ADD has Conv2DOptions and will use the defaults of AddOptions"
    )


def test_control_flow_to_a_subgraph_that_is_not_there() -> None:
    codes = (OperatorCode(builtin_code=BuiltinOperator.IF),)
    options = IfOptions(then_subgraph_index=0, else_subgraph_index=1)
    operator = Operator(inputs=(0,), outputs=(2,), builtin_options=options)
    (fault,) = verify_model(add_model(operator_codes=codes, subgraphs=(_subgraph(operators=(operator,)),)))
    assert fault.subgraph == 0
    assert str(fault) == ("subgraphs[0].operators[0].else_subgraph_index: subgraph 1 does not exist: the model has 1")


def test_operators_that_tflite_does_not_build_without_options() -> None:
    codes = (OperatorCode(builtin_code=BuiltinOperator.STABLEHLO_CASE),)
    model = add_model(operator_codes=codes)
    assert _refusal(model).startswith("Could not get 'stablehlo.case' operation parameters.")
    operator = Operator(inputs=(0,), outputs=(2,), builtin_options_2=StablehloCaseOptions(branch_subgraph_indices=(0,)))
    assert verify_model(model.replace(subgraphs=(_subgraph(operators=(operator,)),))) == ()


def test_data_behind_the_end_of_the_file() -> None:
    model = tensor_model(Tensor(buffer=1)).replace(buffers=(Buffer(), Buffer(offset=100, size=8)))
    assert _refusal(model).startswith("Constant buffer 1 specified an out of range offset.")
    operator = Operator(inputs=(), outputs=(), large_custom_options_offset=100, large_custom_options_size=1 << 63)
    codes = (OperatorCode(builtin_code=BuiltinOperator.CUSTOM, custom_code="mine"),)
    model = add_model(operator_codes=codes, subgraphs=(_subgraph(operators=(operator,)),))
    assert _refusal(model).startswith("Custom Option Offset for opcode_index 0 is out of bound")


def test_names_that_lead_nowhere_hinder_no_run() -> None:
    signatures = (
        SignatureDef(signature_key="a", subgraph_index=4),
        SignatureDef(signature_key="b", inputs=(TensorMap(name="x", tensor_index=3),)),
    )
    model = add_model(signature_defs=signatures, metadata=(Metadata(name="m", buffer=7),))
    assert verify_model(model) == (
        Fault(None, "signature_defs[0].subgraph_index", "subgraph 4 does not exist: the model has 1"),
        Fault(None, "signature_defs[1].inputs[0]", '"x" is tensor 3, the subgraph has 3 tensors'),
        Fault(None, "metadata[0].buffer", '"m" is in buffer 7, the model has 2 buffers'),
    )


def test_old_files_name_the_operator_in_the_deprecated_field() -> None:
    codes = (OperatorCode(deprecated_builtin_code=int(BuiltinOperator.CUSTOM)),)
    assert "no custom_code" in _refusal(add_model(operator_codes=codes))
    assert _operator(builtin_options=AddOptions()) == ()


@pytest.mark.parametrize("scales", [1, 2])
def test_a_vector_may_name_a_dimension_that_it_does_not_have(scales: int) -> None:
    model = _quantized((2,), scale=[1] * scales, zero_point=[0] * scales, quantized_dimension=3)
    (fault,) = verify_model(model)
    assert fault.subgraph is None
    assert "Was 3" in fault.message


@pytest.mark.parametrize("what", ["inputs", "shape", "subgraphs", "strings"])
def test_a_small_file_that_says_the_same_again_and_again(what: str) -> None:
    many = tuple(range(3000))
    tensors = tuple(Tensor(shape=(1,), name="t") for _ in many)
    operators: tuple[Operator, ...] = ()
    copies, data = 1, encode_strings(np.array([b""] * 3000, object))
    if what == "inputs":
        operators = tuple(Operator(inputs=many, outputs=(0,)) for _ in many)
    elif what == "shape":
        tensors = (Tensor(shape=(1,) * 3000),) * 3000
    elif what == "strings":
        tensors = (Tensor(shape=(3000,), type=TensorType.STRING, buffer=1),) * 3000
    else:
        copies = 3000
    graph = SubGraph(tensors=tensors, inputs=(), outputs=(), operators=operators)
    buffers = (Buffer(), Buffer(data=np.frombuffer(data, np.uint8)))
    content = write_model(add_model(subgraphs=(graph,) * copies, buffers=buffers, signature_defs=()))
    assert len(content) < 250_000
    with pytest.raises(ModelError, match="share their vectors too often"):
        verify_model(read_model(content))
