"""FULLY_CONNECTED: every combination of types, sparse and shuffled weights, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gossamer
from gossamer.errors import GossamerError, PrepareError
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.ops.fully_connected import op
from gossamer.programs.host import cpu_features
from gossamer.schema import (
    ActivationFunctionType,
    Buffer,
    DimensionMetadata,
    DimensionType,
    FullyConnectedOptions,
    FullyConnectedOptionsWeightsFormat,
    Int32Vector,
    SparsityParameters,
    TensorType,
)
from tests import qd8
from tests.ops.blocks import model_in_blocks, run_model
from tests.ops.cases import Case, const, model_of, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused

RELU, RELU6, TANH = ActivationFunctionType.RELU, ActivationFunctionType.RELU6, ActivationFunctionType.TANH
SHUFFLED = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8

X = [[1, 2, 3], [-4, 5, 0.5]]
W = [[1, 0, -1], [2, 3, 4]]


def options(**fields: Any) -> FullyConnectedOptions:
    return FullyConnectedOptions(**fields)


def w(values: Any, dtype: Any = np.float32, **how: Any) -> Any:
    return const(values, dtype, **how)


CASES = [
    Case("float", [tensor(X), w(W), w([10, 20], np.float32)], [tensor([[8, 40], [5.5, 29]])], options()),
    Case("no_bias", [tensor(X), w(W), None], [tensor([[-2, 20], [-4.5, 9]])], options()),
    Case("two_inputs", [tensor(X), tensor(W)], [tensor([[-2, 20], [-4.5, 9]])], options()),
    Case("relu6", [tensor(X), w(W), None], [tensor([[0, 6], [0, 6]])], options(fused_activation_function=RELU6)),
    Case("any_shape", [tensor(X, shape=(3, 1, 2)), w(W), None], [tensor([[-2, 20], [-4.5, 9]])], options()),
    Case(
        "keep_num_dims",
        [tensor(X, shape=(2, 1, 3)), w(W), None],
        [tensor([[[-2, 20]], [[-4.5, 9]]])],
        options(keep_num_dims=True),
        version=5,
    ),
    Case("no_rows", [tensor(np.zeros((0, 3))), w(W), None], [tensor(np.zeros((0, 2)))], options()),
    Case(
        "no_depth",
        [tensor(np.zeros((2, 0))), w(np.zeros((3, 0))), w([1, 2, 3], np.float32)],
        [tensor(np.zeros((2, 3)))],
        options(),
        notes="the bias is left out too",
    ),
    # Rows 127 and 254 times their scales; a weight of 64 / 64 is 1.
    Case(
        "hybrid",
        [tensor([[127, 0], [0, -254], [0, 0]]), w([[64, 32], [-64, 0]], np.int8, scale=1 / 64), w([1, 2], np.float32)],
        [tensor([[128, -125], [-126, 2], [1, 2]])],
        options(),
        version=3,
    ),
    # The range -1 to 254 has scale 1 and zero point -127; -0.5 becomes -1, away from 0.
    Case(
        "hybrid_asymmetric",
        [tensor([[-1, 254, -0.5]]), w([[2, 1, 4], [0, 0, 3]], np.int8, scale=[0.5, 1]), None],
        [tensor([[124, -3]])],
        options(asymmetric_quantize_inputs=True),
        version=9,
        default=[tensor([[126, 0]])],  # XNNPACK rounds the halves of the level of -0.5 to even
    ),
    Case(
        "hybrid_int4",
        [tensor([[127, 127, -127]]), w([[7, -8, 1], [1, 2, 3]], np.int8, type=TensorType.INT4, scale=0.5), None],
        [tensor([[-127, 0]])],
        options(),
        version=10,
    ),
    Case(
        "hybrid_int4_with_an_even_depth",
        [tensor([[127, -127]]), w([[7, -8], [1, 2]], np.int8, type=TensorType.INT4, scale=0.5), None],
        [tensor([[952.5, -63.5]])],
        options(),
        version=10,
        atol=4,  # LiteRT's grid of 127 steps, XNNPACK's of 255
    ),
    Case(
        "hybrid_uint8_is_read_as_int8",
        [tensor([[127, 0]]), w([[255, 1], [2, 3]], np.uint8, scale=0.5, zero_point=127), None],
        [tensor([[-63.5, 127]])],
        options(),
        version=3,
    ),
    Case(
        "hybrid_tanh",
        [tensor([[1.27]]), w([[100]], np.int8, scale=0.01), w([-0.27], np.float32)],
        [tensor([[np.tanh(1.0)]])],
        options(fused_activation_function=TANH),
        version=3,
    ),
    Case(
        "hybrid_zero_input_leaves_the_bias",
        [tensor([[0, 0]]), w([[1, 2]], np.int8, scale=1), w([-3], np.float32)],
        [tensor([[0]])],
        options(fused_activation_function=RELU),
        version=3,
    ),
    # Sums of (x - 1) * w are 1*3 + 2*5 = 13 and -4, with bias 23 and -3; half of that is 11.5 and -1.5.
    Case(
        "int8_rounds_halves_away_from_zero",
        [
            tensor([[2, 3]], np.int8, scale=0.5, zero_point=1),
            w([[3, 5], [-2, -1]], np.int8, scale=1),
            w([10, 1], np.int32, scale=0.5),
        ],
        [tensor([[13, -1]], np.int8, scale=1, zero_point=1)],
        options(),
        version=4,
    ),
    Case(
        "int8_a_scale_for_each_unit",
        [tensor([[2, 3]], np.int8, scale=0.5), w([[3, 5], [-2, -1]], np.int8, scale=[1, 2]), None],
        [tensor([[11, -7]], np.int8, scale=1)],
        options(),
        version=12,
        default=[tensor([[10, -7]], np.int8)],  # XNNPACK rounds halves to even
    ),
    Case(
        "int8_saturates_and_activates",
        [tensor([[100], [-100]], np.int8, scale=1), w([[100], [1]], np.int8, scale=1), None],
        [tensor([[127, 90], [-10, -10]], np.int8, scale=1, zero_point=-10)],
        options(fused_activation_function=RELU),
        version=4,
    ),
    Case(
        "int8_weights_with_zero_point",
        [tensor([[2, 3]], np.int8, scale=1, zero_point=1), w([[3, 5]], np.int8, scale=1, zero_point=2), None],
        [tensor([[7]], np.int8, scale=1)],
        options(),
        version=4,
    ),
    Case(
        "int4_weights",
        [tensor([[2, 3, 4]], np.int8, scale=1), w([[7, -8, 1]], np.int8, type=TensorType.INT4, scale=1), None],
        [tensor([[-6]], np.int8, scale=1)],
        options(),
        version=10,
    ),
    Case(
        "int2_weights",
        [tensor([[2, 3, 4]], np.int8, scale=1), w([[1, -2, 0]], np.int8, type=TensorType.INT2, scale=1), None],
        [tensor([[-4]], np.int8, scale=1)],
        options(),
        version=14,
    ),
    Case(
        "uint8",
        [
            tensor([[130, 126]], np.uint8, scale=1, zero_point=128),
            w([[5, 1], [0, 10]], np.uint8, scale=0.5, zero_point=4),
            w([1, 0], np.int32, scale=0.5),
        ],
        [tensor([[105, 76]], np.uint8, scale=0.5, zero_point=96)],
        options(),
        version=4,
    ),
    Case(
        "uint8_to_int16",
        [
            tensor([[130, 126]], np.uint8, scale=1, zero_point=128),
            w([[5, 1]], np.uint8, scale=1, zero_point=4),
            w([100], np.int32, scale=1),
        ],
        [tensor([[216]], np.int16, scale=0.5)],
        options(),
    ),
    Case(
        "int16",
        [
            tensor([[1000, -3]], np.int16, scale=1),
            w([[2, 1], [-127, 0]], np.int8, scale=1),
            w([1, 1 << 40], np.int64, scale=1),
        ],
        [tensor([[200, -32768]], np.int16, scale=10)],
        options(),
        version=7,
        notes="1998 / 10; a tenth of 2**40 is beyond int32, and the conversion of x86 makes that its least value",
    ),
    Case(
        "int16_weights",
        [tensor([[1000, -3]], np.int16, scale=1), w([[300, 1]], np.int16, scale=1), w([3], np.int64, scale=1)],
        [tensor([[30000]], np.int16, scale=10)],
        options(quantized_bias_type=TensorType.INT64),
        version=13,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def sparse(case: Case, stored: Any, sparsity: SparsityParameters) -> bytes:
    """The model of a case with its weights stored sparse."""
    model = read_model(model_of(op, case))
    graph = model.subgraphs[0]
    tensors = list(graph.tensors)
    tensors[1] = tensors[1].replace(sparsity=sparsity)
    buffers = list(model.buffers)
    buffers[tensors[1].buffer] = Buffer(data=np.frombuffer(stored.tobytes(), np.uint8))
    return write_model(model.replace(subgraphs=(graph.replace(tensors=tuple(tensors)),), buffers=tuple(buffers)))


def rows_of(segments: Any, indices: Any, block: int = 0) -> SparsityParameters:
    metadata = [
        DimensionMetadata(format=DimensionType.DENSE, dense_size=len(segments) - 1),
        DimensionMetadata(
            format=DimensionType.SPARSE_CSR,
            array_segments=Int32Vector(values=segments),
            array_indices=Int32Vector(values=indices),
        ),
    ]
    if not block:
        return SparsityParameters(traversal_order=(0, 1), dim_metadata=tuple(metadata))
    metadata.append(DimensionMetadata(format=DimensionType.DENSE, dense_size=block))
    return SparsityParameters(traversal_order=(0, 1, 2), block_map=(1,), dim_metadata=tuple(metadata))


def output_of_model(backend: Any, model: bytes, x: Any) -> Any:
    interpreter = backend(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_sparse_float(backend: Any) -> None:
    dense = np.array([[0, 2, 0, 0], [3, 0, 0, 4]], np.float32)
    case = Case("", [tensor(np.zeros((1, 4))), w(dense), None], [tensor(np.zeros((1, 2)))], options(), version=8)
    model = sparse(case, dense[dense != 0], rows_of((0, 1, 3), (1, 0, 3)))
    got = output_of_model(backend, model, np.array([[1, 10, 100, 1000]], np.float32))
    np.testing.assert_allclose(got, [[20, 4003]])
    interpreter = gossamer.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    assert not [claims for claims in interpreter.delegate_claims() if claims.refusals]


def blocks_1x16() -> tuple[Any, Any, SparsityParameters]:
    dense = np.zeros((2, 32), np.int8)
    dense[0, 16:] = np.arange(16)
    dense[1, :16] = 1
    return dense, np.concatenate([dense[0, 16:], dense[1, :16]]), rows_of((0, 1, 2), (1, 0), 16)


def test_sparse_int8(backend: Any) -> None:
    dense, stored, sparsity = blocks_1x16()
    x = tensor(np.zeros((1, 32)), np.int8, scale=1, zero_point=1)
    outputs = [tensor(np.zeros((1, 2)), np.int8, scale=2, zero_point=3)]
    model = sparse(Case("", [x, w(dense, np.int8, scale=1), None], outputs, options(), version=8), stored, sparsity)
    got = output_of_model(backend, model, np.array([[3] * 16 + [2] * 16], np.int8))
    np.testing.assert_array_equal(got, [[63, 19]])  # 120 / 2 + 3, 32 / 2 + 3


@pytest.mark.parametrize("asymmetric", [False, True])
def test_sparse_hybrid(backend: Any, asymmetric: bool) -> None:
    dense, stored, sparsity = blocks_1x16()
    chosen = options(asymmetric_quantize_inputs=asymmetric)
    inputs = [tensor(np.zeros((1, 32))), w(dense, np.int8, scale=0.5), w([1, 2], np.float32)]
    model = sparse(Case("", inputs, [tensor(np.zeros((1, 2)))], chosen, version=8), stored, sparsity)
    x = np.linspace(-1, 1, 32, dtype=np.float32)[None]
    want = x @ dense.T * 0.5 + [1, 2]
    np.testing.assert_allclose(output_of_model(backend, model, x), want, atol=0.3)


@pytest.mark.parametrize("rows", [1, 4])
def test_shuffled(backend: Any, rows: int) -> None:
    random = np.random.default_rng(rows)
    x, plain = random.integers(0, 256, (rows, 32), np.uint8), random.integers(0, 256, (8, 32), np.uint8)
    shuffled = (plain ^ 0x80).reshape(2, 4, 2, 16).transpose(0, 2, 1, 3).reshape(8, 32)
    case = Case(
        "",
        [
            tensor(x, np.uint8, scale=1, zero_point=128),
            w(shuffled, np.uint8, scale=1, zero_point=128),
            w(np.arange(8), np.int32, scale=1),
        ],
        [tensor(np.zeros((rows, 8)), np.int16, scale=64), tensor(np.zeros((rows, 32)), np.uint8)],
        options(weights_format=SHUFFLED),
        version=2,
    )
    centred = x.astype(int) - 128
    case.outputs[0].value[...] = np.floor((centred @ (plain.astype(int) - 128).T + np.arange(8)) / 64 + 0.5)
    tiles = (x ^ 0x80).reshape(rows, 2, 16)
    case.outputs[1].value[...] = (tiles if rows == 1 else tiles.transpose(1, 0, 2)).reshape(rows, 32)
    sums = centred @ (plain.astype(int) - 128).T + np.arange(8)
    assert not np.any(sums % 64 == 32)  # no halves: the kernels round them apart from the formula above
    run_case(backend, op, case)


def test_int32_bias_counts_where_its_type_is_not_stated() -> None:
    case = Case(
        "",
        [tensor([[1]], np.int16, scale=1), w([[1], [1]], np.int8, scale=1), w([10, 20], np.int32, scale=1)],
        [tensor([[11, 21]], np.int16, scale=1)],
        options(),
        version=11,
    )
    run_case(REFERENCE, op, case)


I8_X = tensor([[1, 2]], np.int8, scale=1)
I8_OUT = tensor([[0]], np.int8, scale=1)
I16_X, I16_OUT = tensor([[1, 2]], np.int16, scale=1), tensor([[0]], np.int16, scale=1)
OUT = tensor([[0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("weights must have 2 dimensions, got 1 [3]", Case("", [tensor(X), w([1, 2, 3])], [OUT], options())),
        (
            "bias must have 2 elements, one a unit, got [3]",
            Case("", [tensor(X), w(W), w([1, 2, 3], np.float32)], [OUT], options()),
        ),
        ("not made of whole rows of 3 elements", Case("", [tensor([1, 2, 3, 4]), w(W), None], [OUT], options())),
        (
            "last dimension must be the weights' depth 3, got [3, 2]",
            Case("", [tensor(X, shape=(3, 2)), w(W), None], [OUT], options(keep_num_dims=True)),
        ),
        (
            "no kernel for int16 input and uint8 weights",
            Case("", [I16_X, w([[1, 2]], np.uint8, scale=1)], [I16_OUT], options()),
        ),
        (
            "output must be int8 for int8 input and int8 weights, got int16",
            Case("", [I8_X, w([[1, 2]], np.int8, scale=1)], [I16_OUT], options()),
        ),
        (
            "bias must be float32 for float32 input and float32 weights, got int32",
            Case("", [tensor(X), w(W), w([1, 2], np.int32)], [OUT], options()),
        ),
        (
            "fused_activation_function 4 is not supported",
            Case("", [tensor(X), w(W)], [OUT], options(fused_activation_function=TANH)),
        ),
        ("weights must have scales", Case("", [I8_X, w([[1, 2]], np.int8)], [I8_OUT], options())),
        (
            "input of type int8 needs a positive scale",
            Case("", [tensor([[1, 2]], np.int8), w([[1, 2]], np.int8, scale=1)], [I8_OUT], options()),
        ),
        (
            "weights must have 1 scale or 1 along dimension 0, got 2 along dimension 1",
            Case("", [I8_X, w([[1, 2]], np.int8, scale=[1, 1], dimension=1)], [I8_OUT], options()),
        ),
        (
            "must have zero points of 0",
            Case(
                "", [I8_X, w([[1, 2]], np.int8, type=TensorType.INT4, scale=1, zero_point=1)], [I8_OUT], options(), 10
            ),
        ),
        (
            "bias scale 2 must be input scale x weight scale = 1 to within 2 %",
            Case("", [I8_X, w([[1, 2]], np.int8, scale=1), w([1], np.int32, scale=2)], [I8_OUT], options()),
        ),
        (
            "output zero point must be 0 for int16, got 5",
            Case(
                "", [I16_X, w([[1, 2]], np.int8, scale=1)], [tensor([[0]], np.int16, scale=1, zero_point=5)], options()
            ),
        ),
        (
            "bias must be int32 as quantized_bias_type says, got int64",
            Case(
                "",
                [I16_X, w([[1, 2]], np.int8, scale=1), w([1], np.int64, scale=1)],
                [I16_OUT],
                options(quantized_bias_type=TensorType.INT32),
            ),
        ),
        (
            "needs 2 outputs with weights_format SHUFFLED4x16INT8, got 1",
            Case("", [tensor(X), w(W)], [OUT], options(weights_format=SHUFFLED)),
        ),
        (
            "shuffled weights need uint8 input",
            Case("", [tensor(X), w(W)], [OUT, tensor([0], np.uint8)], options(weights_format=SHUFFLED)),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


def test_refuses_sparse_int8_weights_in_other_blocks() -> None:
    dense = np.array([[0, 2], [3, 0]], np.int8)
    case = Case(
        "", [I8_X, w(dense, np.int8, scale=1), None], [tensor([[0, 0]], np.int8, scale=1)], options(), version=8
    )
    interpreter = REFERENCE(model_content=sparse(case, dense[dense != 0], rows_of((0, 1, 2), (1, 0))))
    with pytest.raises(ValueError, match="must be stored in blocks of 1 x 16"):
        interpreter.allocate_tensors()


I4 = TensorType.INT4
HALVES = np.array([[0.5, 2], [1, 0.25]], np.float16)


def in_blocks(x: Any, weights: Any, *rest: Any, **fields: Any) -> Case:
    values = np.asarray(weights, np.int8)
    output = tensor(np.zeros((len(x), len(values)), np.float32))
    inputs = [tensor(x), w(values, np.int8, type=I4), *(w(bias, np.float32) for bias in rest)]
    return Case("", inputs, [output], options(**fields), version=10)


SMALL_BLOCKS = in_blocks([[-128, 127, 1, 0]], [[1, 2, 3, 4], [-8, 7, -6, 5]], [10, 20])


def test_a_scale_for_each_block() -> None:
    """On a grid of whole numbers: (-128 + 254) / 2 + 3 * 2 + 10, and 1024 + 889 - 6 / 4 + 20."""
    content = model_in_blocks(op, SMALL_BLOCKS, 2, HALVES)
    x = SMALL_BLOCKS.inputs[0].value  # type: ignore[union-attr]
    assert run_model(REFERENCE(model_content=content), x).tolist() == [[79, 1931.5]]
    # Which XNNPACK leaves to TFLite, as blocks are not made of 32.
    assert run_model(gossamer.Interpreter(model_content=content), x).tolist() == [[79, 1931.5]]


@pytest.mark.parametrize("data", [b"123", b"1234", b""])
@pytest.mark.parametrize("shape", [(2, 2), (1,) * 70])
def test_scales_of_blocks_that_cannot_be_read_are_told_at_allocation(shape: tuple[int, ...], data: bytes) -> None:
    model = read_model(model_in_blocks(op, SMALL_BLOCKS, 2, HALVES))
    (graph,) = model.subgraphs
    levels = (
        DimensionMetadata(format=DimensionType.DENSE, dense_size=2),
        DimensionMetadata(
            format=DimensionType.SPARSE_CSR,
            array_segments=Int32Vector(values=(0, 1, 2)),
            array_indices=Int32Vector(values=(1, 0)),
        ),
    )
    sparse = SparsityParameters(traversal_order=(0, 1), dim_metadata=levels)
    *tensors, scales = graph.tensors
    assert scales.type == TensorType.FLOAT16
    scales = scales.replace(shape=shape, sparsity=sparse if shape == (2, 2) else None)
    buffers = list(model.buffers)
    buffers[scales.buffer] = Buffer(data=np.frombuffer(data, np.uint8))
    changed = graph.replace(tensors=(*tensors, scales))
    content = write_model(model.replace(subgraphs=(changed,), buffers=tuple(buffers)))
    for make in (REFERENCE, gossamer.Interpreter):
        try:
            interpreter = make(model_content=content)
        except GossamerError:  # the verifier's
            continue
        with pytest.raises(PrepareError):
            interpreter.allocate_tensors()


def test_blocks_and_an_activation() -> None:
    content = model_in_blocks(
        op, in_blocks([[-128, 127]], [[1, 2], [-1, 0]], fused_activation_function=RELU6), 1, HALVES
    )
    assert run_model(REFERENCE(model_content=content), [[-128, 127]]).tolist() == [[6, 6]]


def random_blocks(seed: int, **fields: Any) -> tuple[Case, int, NDArray[np.float16]]:
    draw = np.random.default_rng(seed)
    size = int(draw.choice([32, 64, 96, 128]))
    rows, units, blocks = (int(draw.integers(low, high)) for low, high in ((1, 20), (4, 40), (1, 6)))
    x = draw.normal(draw.normal(), 2, (rows, size * blocks)).astype(np.float32)
    weights = draw.integers(-8, 8, (units, size * blocks))
    scales = draw.uniform(0.001, 0.1, (units, blocks)).astype(np.float16)
    return in_blocks(x, weights, draw.normal(size=units), **fields), size, scales


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("activation", [0, RELU])
def test_the_default_path_multiplies_blocks_as_xnnpack(seed: int, activation: int) -> None:
    case, size, scales = random_blocks(seed, fused_activation_function=activation)
    x, weights, bias = (operand.value for operand in case.inputs if operand is not None)
    expected = qd8.blockwise(x, weights, scales, bias)
    expected = np.maximum(expected, 0) if activation == RELU else expected
    result = run_model(gossamer.Interpreter(model_content=model_in_blocks(op, case, size, scales)), x)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.peer
@pytest.mark.parametrize("seed", range(6))
def test_blocks_are_multiplied_as_by_litert(seed: int) -> None:
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    case, size, scales = random_blocks(seed)
    x, content = case.inputs[0].value, model_in_blocks(op, case, size, scales)  # type: ignore[union-attr]
    builtin = peer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    theirs = peer.Interpreter(model_content=content, experimental_op_resolver_type=builtin)
    ours = REFERENCE(model_content=content)
    np.testing.assert_array_equal(run_model(ours, x), run_model(theirs, x))
    assert str(ours.get_tensor_details()) == str(theirs.get_tensor_details()[: len(ours.get_tensor_details())])

    result = run_model(gossamer.Interpreter(model_content=content), x)
    default = run_model(peer.Interpreter(model_content=content), x)
    if "avx512vnni" in cpu_features():
        np.testing.assert_array_equal(result, default)
    else:  # where XNNPACK adds up in another order
        np.testing.assert_allclose(result, default, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("scales of blocks must be float16", {"scales": HALVES.astype(np.float32)}),
        ("which are not made of whole blocks of 3", {"size": 3}),
        ("which are not made of whole blocks of 0", {"size": 0}),
        ("which are not made of whole blocks of -2", {"size": -2}),
        ("must have 2 scales, one for each block, got 4", {"size": 4}),
        ("zero points of blocks must be 0", {"zero_points": (0, 0, 0, 1)}),
        ("must be stored in the model", {"stored": False}),
        ("must be stored in the model", {"scales": np.empty(0, np.float16)}),
        ("must have quantized_dimension 0, got 1", {"dimension": 1}),
    ],
)
def test_refuses_blocks(message: str, fields: dict[str, Any]) -> None:
    content = model_in_blocks(op, SMALL_BLOCKS, **({"size": 2, "scales": HALVES} | fields))
    with pytest.raises(PrepareError, match=message):
        REFERENCE(model_content=content).allocate_tensors()


def test_zero_points_of_0_are_none() -> None:
    content = model_in_blocks(op, SMALL_BLOCKS, 2, HALVES, (0, 0, 0, 0))
    assert run_model(REFERENCE(model_content=content), [[-128, 127, 1, 0]]).tolist() == [[79, 1931.5]]


def test_refuses_blocks_of_int8_weights() -> None:
    case = Case("", [tensor([[1, 2]]), w([[1, 2]], np.int8), None], [OUT], options(), version=3)
    content = model_in_blocks(op, case, 2, np.ones((1, 1), np.float16))
    with pytest.raises(PrepareError, match="int8 weights must have scales for units, not blocks"):
        REFERENCE(model_content=content).allocate_tensors()
