"""Small models of every kind that the API tells apart, for comparing interpreters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gossamer.dtypes import encode_strings
from gossamer.schema import (
    ActivationFunctionType,
    AssignVariableOptions,
    Buffer,
    CallOnceOptions,
    Conv2DOptions,
    DimensionMetadata,
    DimensionType,
    FullyConnectedOptions,
    GatherOptions,
    IfOptions,
    Int32Vector,
    Padding,
    QuantizationParameters,
    ReducerOptions,
    ReshapeOptions,
    RNNOptions,
    SparsityParameters,
    TensorType,
    VarHandleOptions,
    WhileOptions,
)
from tests.runtime.graphs import ModelMaker, adder


def quantized(scale: list[float], zero_point: list[int] | None = None, dimension: int = 0) -> QuantizationParameters:
    return QuantizationParameters(
        scale=np.array(scale, np.float32),
        zero_point=np.array(zero_point or [0] * len(scale), np.int64),
        quantized_dimension=dimension,
    )


def int8_conv() -> bytes:
    """CONV_2D with int8 weights per channel, and RELU6 fused."""
    make = ModelMaker()
    rng = np.random.default_rng(0)
    x = make.tensor((1, 4, 4, 2), TensorType.INT8, "image", quantization=quantized([0.5], [-3]))
    w = make.constant(
        rng.integers(-127, 128, (3, 3, 3, 2)),
        np.int8,
        TensorType.INT8,
        name="weights",
        quantization=quantized([0.01, 0.02, 0.03]),
    )
    b = make.constant(
        [10, -20, 30], np.int32, TensorType.INT32, name="bias", quantization=quantized([0.005, 0.01, 0.015])
    )
    y = make.tensor((1, 4, 4, 3), TensorType.INT8, "conv", quantization=quantized([0.1], [5]))
    options = Conv2DOptions(
        padding=Padding.SAME, stride_w=1, stride_h=1, fused_activation_function=ActivationFunctionType.RELU6
    )
    make.op("CONV_2D", [x, w, b], [y], options, version=3)
    make.io([x], [y])
    make.signature("serving_default", {"image": x}, {"conv": y})
    return make.model()


def quantize_dequantize() -> bytes:
    """Float to uint8 and back."""
    make = ModelMaker()
    x = make.tensor((2, 2), name="x", shape_signature=(-1, 2))
    q = make.tensor((2, 2), TensorType.UINT8, "q", quantization=quantized([0.25], [128]))
    y = make.tensor((2, 2), name="y")
    make.op("QUANTIZE", [x], [q])
    make.op("DEQUANTIZE", [q], [y])
    make.io([x], [q, y])
    return make.model()


def hybrid() -> bytes:
    """FULLY_CONNECTED of floats with int8 weights: scratch tensors."""
    make = ModelMaker()
    rng = np.random.default_rng(1)
    x = make.tensor((2, 8), name="x")
    w = make.constant(
        rng.integers(-127, 128, (4, 8)), np.int8, TensorType.INT8, name="w", quantization=quantized([0.02])
    )
    y = make.tensor((2, 4), name="y")
    make.op("FULLY_CONNECTED", [x, w, -1], [y], FullyConnectedOptions(), version=3)
    make.io([x], [y])
    return make.model()


def sparse() -> bytes:
    """A sparse float constant, densified by DENSIFY."""
    make = ModelMaker()
    sparsity = SparsityParameters(
        traversal_order=(0, 1),
        block_map=(),
        dim_metadata=(
            DimensionMetadata(format=DimensionType.DENSE, dense_size=3),
            DimensionMetadata(
                format=DimensionType.SPARSE_CSR,
                array_segments=Int32Vector(values=(0, 1, 2, 3)),
                array_indices=Int32Vector(values=(0, 2, 1)),
            ),
        ),
    )
    make.buffers.append(Buffer(data=np.frombuffer(np.array([1, 2, 3], np.float32).tobytes(), np.uint8)))
    s = make.tensor((3, 3), name="sparse", buffer=len(make.buffers) - 1, sparsity=sparsity)
    x = make.tensor((3, 3), name="x")
    d = make.tensor((3, 3), name="dense")
    y = make.tensor((3, 3), name="y")
    make.op("DENSIFY", [s], [d])
    make.op("ADD", [x, d], [y])
    make.io([x], [y])
    return make.model()


def strings() -> bytes:
    """GATHER of an input of strings, and a constant of strings as an output."""
    make = ModelMaker()
    x = make.tensor((3,), TensorType.STRING, "words")
    i = make.constant([2, 0], np.int32, TensorType.INT32, name="which")
    words = np.array([b"a", b"", b"cde"], object)
    make.buffers.append(Buffer(data=np.frombuffer(encode_strings(words), np.uint8)))
    c = make.tensor((3,), TensorType.STRING, "constant", buffer=len(make.buffers) - 1)
    y = make.tensor((2,), TensorType.STRING, "chosen")
    z = make.tensor((2,), TensorType.STRING, "chosen_constants")
    make.op("GATHER", [x, i], [y], GatherOptions(), version=1)
    make.op("GATHER", [c, i], [z], GatherOptions(), version=1)
    make.io([x], [y, z])
    make.signature("gather", {"words": x}, {"chosen": y, "constants": z})
    return make.model()


def string_scalar() -> bytes:
    """RESHAPE of a scalar string."""
    make = ModelMaker()
    x = make.tensor((), TensorType.STRING, "word", has_rank=True)
    y = make.tensor((1,), TensorType.STRING, "words")
    make.op("RESHAPE", [x], [y], ReshapeOptions(new_shape=(1,)))
    make.io([x], [y])
    return make.model()


def recurrent() -> bytes:
    """RNN: its state is a variable tensor."""
    make = ModelMaker()
    rng = np.random.default_rng(2)
    x = make.tensor((1, 3), name="x")
    w = make.constant(rng.normal(size=(2, 3)), np.float32, TensorType.FLOAT32, name="w")
    r = make.constant(rng.normal(size=(2, 2)), np.float32, TensorType.FLOAT32, name="r")
    b = make.constant([0.1, -0.1], np.float32, TensorType.FLOAT32, name="b")
    h = make.tensor((1, 2), name="h", is_variable=True)
    y = make.tensor((1, 2), name="y")
    make.op("RNN", [x, w, r, b, h], [y], RNNOptions(fused_activation_function=ActivationFunctionType.TANH))
    make.io([x], [y])
    make.signature("step", {"x": x}, {"y": y})
    return make.model()


def resource_variable() -> bytes:
    """A counter: signatures to add to it and to read it, each in a subgraph, and another that sets it once."""
    make = ModelMaker()

    def handle() -> int:
        h = make.tensor((), TensorType.RESOURCE, "handle")
        make.op("VAR_HANDLE", [], [h], VarHandleOptions(container="", shared_name="counter"))
        return h

    x = make.tensor((2,), name="x")
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=2))
    h = handle()
    old = make.tensor((2,), name="old")
    make.op("READ_VARIABLE", [h], [old])
    new = make.tensor((2,), name="new")
    make.op("ADD", [old, x], [new])
    make.op("ASSIGN_VARIABLE", [h, new], [], AssignVariableOptions())
    make.io([x], [new])
    make.signature("add", {"x": x}, {"sum": new})
    read = make.subgraph("read")
    h = handle()
    value = make.tensor((2,), name="value")
    make.op("READ_VARIABLE", [h], [value])
    make.io([], [value])
    make.signature("read", {}, {"value": value}, read)
    make.subgraph("init")
    h = handle()
    zero = make.constant([10, 20], np.float32, TensorType.FLOAT32, name="zero")
    make.op("ASSIGN_VARIABLE", [h, zero], [], AssignVariableOptions())
    make.io([], [])
    return make.model()


def branches() -> bytes:
    """IF over two subgraphs; the branches have signatures too, the main graph has two inputs and outputs."""
    make = ModelMaker()
    c = make.tensor((1,), TensorType.BOOL, "condition")
    x = make.tensor((2, 2), name="x", shape_signature=(-1, 2))
    y = make.tensor((2, 2), name="y")
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([c, x], [y, x])
    make.signature("main", {"condition": c, "a_x": x}, {"result": y})
    for name, op in (("then", "NEG"), ("else", "ABS")):
        index = make.subgraph(name)
        x = make.tensor((2, 2), name="x", shape_signature=(-1, 2))
        y = make.tensor((2, 2), name="y")
        make.op(op, [x], [y])
        make.io([x], [y])
        make.signature(name, {"z": x}, {"out": y}, index)
    return make.model()


def loop() -> bytes:
    """WHILE that doubles a number until it is large."""
    make = ModelMaker()
    x, y = make.tensor((1,), TensorType.INT32, "x"), make.tensor((1,), TensorType.INT32, "y")
    make.op("WHILE", [x], [y], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x], [y])
    make.subgraph("cond")
    x = make.tensor((1,), TensorType.INT32, "x")
    limit = make.constant([100], np.int32, TensorType.INT32, name="limit")
    c = make.tensor((1,), TensorType.BOOL, "c")
    make.op("LESS", [x, limit], [c])
    make.io([x], [c])
    make.subgraph("body")
    x, y = make.tensor((1,), TensorType.INT32, "x"), make.tensor((1,), TensorType.INT32, "y")
    make.op("ADD", [x, x], [y])
    make.io([x], [y])
    return make.model()


def dynamic() -> bytes:
    """RESHAPE to a shape that is an input, and what follows it."""
    make = ModelMaker()
    x = make.tensor((6,), name="x")
    s = make.tensor((2,), TensorType.INT32, "shape")
    m = make.tensor((), name="reshaped", shape_signature=(-1, -1))
    y = make.tensor((), name="y", shape_signature=(-1, -1))
    make.op("RESHAPE", [x, s], [m])
    make.op("NEG", [m], [y])
    make.io([x, s], [y])
    make.signature("reshape", {"x": x, "shape": s}, {"y": y})
    return make.model()


def dynamic_output() -> bytes:
    """RESHAPE to a shape that is an input."""
    make = ModelMaker()
    x = make.tensor((6,), name="x")
    s = make.tensor((2,), TensorType.INT32, "shape")
    y = make.tensor((2, 3), name="y", shape_signature=(-1, -1))
    make.op("RESHAPE", [x, s], [y])
    make.io([x, s], [y])
    return make.model()


def where() -> bytes:
    """WHERE: as many rows as there are trues, also none."""
    make = ModelMaker()
    x = make.tensor((2, 3), TensorType.BOOL, "x")
    y = make.tensor((0, 2), TensorType.INT64, "y", shape_signature=(-1, 2))
    make.op("WHERE", [x], [y])
    make.io([x], [y])
    return make.model()


def mean() -> bytes:
    """MEAN with temporaries, over an axis that is an input: dynamic."""
    make = ModelMaker()
    x = make.tensor((2, 3), name="x")
    axis = make.constant([1], np.int32, TensorType.INT32, name="axis")
    y = make.tensor((2,), name="y")
    make.op("MEAN", [x, axis], [y], ReducerOptions())
    make.io([x], [y])
    return make.model()


def int4() -> bytes:
    """int4 in, as it comes out: an odd number of elements."""
    make = ModelMaker()
    x = make.tensor((3,), TensorType.INT4, "x", quantization=quantized([0.5]))
    y = make.tensor((3, 1), TensorType.INT4, "y", quantization=quantized([0.5]))
    make.op("RESHAPE", [x], [y], ReshapeOptions(new_shape=(3, 1)))
    make.io([x], [y])
    return make.model()


def int4_weights() -> bytes:
    """FULLY_CONNECTED with an int4 constant."""
    make = ModelMaker()
    make.buffers.append(Buffer(data=np.array([0x21, 0x43, 0xF5, 0x8E], np.uint8)))
    x = make.tensor((1, 4), TensorType.INT8, "x", quantization=quantized([0.5], [1]))
    w = make.tensor((2, 4), TensorType.INT4, "w", quantization=quantized([0.25]), buffer=len(make.buffers) - 1)
    y = make.tensor((1, 2), TensorType.INT8, "y", quantization=quantized([0.3], [-1]))
    make.op("FULLY_CONNECTED", [x, w, -1], [y], FullyConnectedOptions(), version=10)
    make.io([x], [y])
    return make.model()


def of_type(type: TensorType) -> Callable[[], bytes]:
    def build() -> bytes:
        make = ModelMaker()
        x = make.tensor((2, 2), type, "x")
        y = make.tensor((4,), type, "y")
        make.op("RESHAPE", [x], [y], ReshapeOptions(new_shape=(4,)))
        make.io([x], [y])
        return make.model()

    build.__doc__ = f"RESHAPE of {type.name}."
    return build


def zero_size() -> bytes:
    """Tensors without elements, one of them a constant."""
    make = ModelMaker()
    x = make.tensor((0, 3), name="x", shape_signature=(-1, 3))
    c = make.constant(np.zeros((0, 3)), np.float32, TensorType.FLOAT32, name="empty")
    y, z = make.tensor((0, 3), name="y"), make.tensor((0, 3), name="z")
    make.op("NEG", [x], [y])
    make.op("ABS", [y], [z])
    make.io([x], [z, c])
    return make.model()


def scalar() -> bytes:
    """Scalars in and out, float and int, and a scalar constant."""
    make = ModelMaker()
    x, n = make.tensor((), name="x", has_rank=True), make.tensor((), TensorType.INT32, "n", has_rank=True)
    two = make.constant(2, np.float32, TensorType.FLOAT32, name="two")
    y, m = make.tensor((), name="y", has_rank=True), make.tensor((), TensorType.INT32, "m", has_rank=True)
    make.op("MUL", [x, two], [y])
    make.op("ADD", [n, n], [m])
    make.io([x, n], [y, m])
    make.signature("scalars", {"x": x, "n": n}, {"y": y, "m": m})
    return make.model()


def no_operators() -> bytes:
    """The outputs are an input and a constant."""
    make = ModelMaker()
    x = make.tensor((2,), name="x")
    c = make.constant([1, 2], np.float32, TensorType.FLOAT32, name="c")
    make.io([x], [x, c])
    return make.model()


def nothing() -> bytes:
    """No tensors at all."""
    return ModelMaker().model()


def custom() -> bytes:
    """A custom operator that nobody has, after one that runs."""
    make = ModelMaker()
    x, m, y = (make.tensor((2,), name=name) for name in "xmy")
    make.op("NEG", [x], [m])
    make.op("MyOp", [m], [y], custom=True)
    make.io([x], [y])
    make.signature("mine", {"x": x}, {"y": y})
    return make.model()


def flex() -> bytes:
    """A TensorFlow operator that nobody has: others run in Gossamer without TensorFlow."""
    make = ModelMaker()
    x, y = make.tensor((2,), name="x"), make.tensor((2,), name="y")
    make.op("FlexNoSuchOp", [x], [y], custom=True)
    make.io([x], [y])
    return make.model()


def optional_input() -> bytes:
    """FULLY_CONNECTED without a bias."""
    make = ModelMaker()
    x = make.tensor((1, 2), name="x")
    w = make.constant([[1, 2], [3, 4]], np.float32, TensorType.FLOAT32, name="w")
    y = make.tensor((1, 2), name="y")
    make.op("FULLY_CONNECTED", [x, w, -1], [y], FullyConnectedOptions())
    make.io([x], [y])
    return make.model()


def unused() -> bytes:
    """An input that nothing reads, a tensor that nothing writes, a tensor without a name."""
    make = ModelMaker()
    x, u = make.tensor((2,), name="x"), make.tensor((3,), TensorType.INT32, "unused")
    make.tensor((5,), name="nowhere")
    y = make.tensor((2,))
    make.graphs[-1].tensors[y] = make.graphs[-1].tensors[y].replace(name="")
    make.op("NEG", [x], [y])
    make.io([x, u], [y])
    return make.model()


def chain() -> bytes:
    """Six operators, whose intermediates share memory and are worked on in place."""
    make = ModelMaker()
    x = make.tensor((2, 3), name="x", shape_signature=(-1, 3))
    last, names = x, []
    for op in ("NEG", "ABS", "SQRT", "RELU", "TANH", "LOGISTIC"):
        following = make.tensor((2, 3), name=op.lower())
        make.op(op, [last], [following])
        names.append(following)
        last = following
    make.io([x], [names[2], last])
    make.signature("first", {"x": x}, {"b": last, "a": names[2]})
    make.signature("another", {"y": x}, {"middle": names[1]})
    return make.model()


def fails_in_invoke() -> bytes:
    """GATHER whose index is an input, and may be out of range."""
    make = ModelMaker()
    x, i = make.tensor((3,), name="x"), make.tensor((1,), TensorType.INT32, "i")
    y = make.tensor((1,), name="y")
    make.op("GATHER", [x, i], [y], GatherOptions())
    make.io([x, i], [y])
    return make.model()


def fails_in_prepare() -> bytes:
    """ADD of shapes that do not broadcast."""
    make = ModelMaker()
    x, z, y = make.tensor((2, 3), name="x"), make.tensor((4,), name="z"), make.tensor((2, 3), name="y")
    make.op("ADD", [x, z], [y])
    make.io([x, z], [y])
    make.signature("add", {"x": x, "z": z}, {"y": y})
    return make.model()


def inconsistent() -> bytes:
    """A node that names a tensor that is not there."""
    make = ModelMaker()
    x, y = make.tensor((2,), name="x"), make.tensor((2,), name="y")
    make.op("NEG", [77], [y])
    make.io([x], [y])
    return make.model()


MODELS: dict[str, Callable[[], bytes]] = {
    builder.__name__: builder
    for builder in (
        adder,
        int8_conv,
        quantize_dequantize,
        hybrid,
        sparse,
        strings,
        string_scalar,
        recurrent,
        resource_variable,
        branches,
        loop,
        dynamic,
        dynamic_output,
        where,
        mean,
        int4,
        int4_weights,
        zero_size,
        scalar,
        no_operators,
        nothing,
        custom,
        flex,
        optional_input,
        unused,
        chain,
        fails_in_invoke,
        fails_in_prepare,
        inconsistent,
    )
}
TYPES = [type for type in TensorType if type not in (TensorType.VARIANT, TensorType.RESOURCE)]
MODELS |= {f"type_{type.name.lower()}": of_type(type) for type in TYPES}
