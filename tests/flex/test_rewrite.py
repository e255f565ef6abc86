"""Flex operators that become builtin ones when a model is loaded."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer
from gossamer import Interpreter, OpResolverType
from gossamer.convert.flex import flex_options
from gossamer.convert.messages.tensorflow import AttrValue, NodeDef
from gossamer.flex.rewrite import rewritten
from gossamer.model.reader import read_model
from gossamer.resolver import FlexOpResolver
from gossamer.schema import LessOptions, TensorType, WhileOptions
from tests.flex.models import FlexMaker, run


def operators(model: bytes) -> list[str]:
    """The operators of a model as it runs, subgraph by subgraph."""
    found = rewritten(read_model(model), FlexOpResolver().find_custom)
    return [found.operator_name(node) for graph in found.subgraphs for node in graph.operators]


def one(op: str, shape: tuple[int, ...], signature: tuple[int, ...] = (), **attributes: object) -> bytes:
    make = FlexMaker()
    x = make.tensor(shape, name="x", shape_signature=signature, has_rank=True)
    outputs = make.flex(op, [x], [signature or shape], **attributes)
    make.io([x], outputs)
    return make.model()


def interpreter(model: bytes, reference: bool = False) -> Interpreter:
    kind = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if reference else OpResolverType.AUTO
    made = Interpreter(model_content=model, experimental_op_resolver_type=kind)
    made.allocate_tensors()
    return made


def test_an_operator_in_disguise_is_a_builtin_one() -> None:
    assert operators(one("Tanh", (2, 3))) == ["TANH"]
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(run("Tanh", x, rewritten=True), np.tanh(x), rtol=1e-6)


def test_compositions_are_several() -> None:
    assert not any(name.startswith("Flex") for name in operators(one("Softplus", (4,))))
    assert not any(name.startswith("Flex") for name in operators(one("Erf", (4,))))


def test_types_that_no_builtin_computes_in_stay() -> None:
    make = FlexMaker()
    x = make.tensor((3,), TensorType.FLOAT64, "x", has_rank=True)
    make.io([x], make.flex("Tanh", [x], [(3,)]))
    assert operators(make.model()) == ["FlexTanh"]
    assert run("Tanh", np.array([0.5]), rewritten=True)[0] == np.tanh(0.5)


def test_random_numbers_and_state_stay() -> None:
    make = FlexMaker()
    shape = make.constant([2, 2], np.int32, TensorType.INT32)
    make.io([], make.flex("RandomUniform", [shape], [(2, 2)], dtype="float", seed=1, seed2=2))
    assert operators(make.model()) == ["FlexRandomUniform"]


def test_ones_own_operator_stays() -> None:
    @gossamer.flex_op("Tanh")
    def tanh(x: np.ndarray) -> np.ndarray:
        return np.full_like(x, 7)

    made = Interpreter(model_content=one("Tanh", (2,)), custom_ops=[tanh])
    made.allocate_tensors()
    made.set_tensor(0, np.zeros(2, np.float32))
    made.invoke()
    assert made.get_tensor(made.get_output_details()[0]["index"]).tolist() == [7, 7]


def test_an_operator_that_nobody_knows_can_be_written() -> None:
    make = FlexMaker()
    x = make.tensor((2,), name="x", has_rank=True)
    y = make.tensor((2,), name="y", has_rank=True)
    node = NodeDef(op="Shift", name="n", input=("x",), attr={"by": AttrValue(f=2.5), "names": AttrValue(s=b"ab")})
    make.op("FlexShift", [x], [y], custom=True, custom_options=flex_options(node))
    make.io([x], [y])

    @gossamer.flex_op("Shift", shape=lambda x: [x])
    def shift(x: np.ndarray, *, by: float, names: str, missing: int = 3) -> np.ndarray:
        assert (names, missing) == ("ab", 3)
        return x + by

    made = Interpreter(model_content=make.model(), custom_ops=[shift])
    made.allocate_tensors()
    made.set_tensor(x, np.array([1, 2], np.float32))
    made.invoke()
    assert made.get_tensor(y).tolist() == [3.5, 4.5]


def test_the_reference_path_runs_kernels_as_they_are() -> None:
    made = interpreter(one("Tanh", (2,)), reference=True)
    assert [op["op_name"] for op in made._get_ops_details()] == ["FlexTanh"]


def test_tensors_keep_their_names_and_numbers() -> None:
    make = FlexMaker()
    x = make.tensor((2, 3), name="x", has_rank=True)
    (y,) = make.flex("Softplus", [x], [(2, 3)])
    (z,) = make.flex("Identity", [y], [(2, 3)])
    make.io([x], [z])
    model = make.model()
    ends = [
        [(detail["name"], detail["index"]) for detail in (*made.get_input_details(), *made.get_output_details())]
        for made in (interpreter(model), interpreter(model, reference=True))
    ]
    assert ends[0] == ends[1] == [("x", x), ("Identity:0", z)]


def test_other_sizes_than_those_of_the_file() -> None:
    """What was folded for the file's sizes is not used for others."""
    make = FlexMaker()
    x = make.tensor((2, 3), name="x", has_rank=True)
    (shape,) = make.flex("Shape", [x], [(2,)], out_type=np.int32)
    (ones,) = make.flex("Fill", [shape, make.constant(1.0, np.float32, TensorType.FLOAT32)], [(2, 3)])
    make.io([x], make.flex("AddV2", [x, ones], [(2, 3)]))
    assert operators(make.model()) == ["ADD"]
    made = interpreter(make.model())
    made.resize_tensor_input(0, (4, 1))
    made.allocate_tensors()
    made.set_tensor(0, np.zeros((4, 1), np.float32))
    made.invoke()
    assert made.get_tensor(made.get_output_details()[0]["index"]).tolist() == [[1]] * 4


def test_open_sizes_stay_open() -> None:
    model = one("Softplus", (1, 3), (-1, 3))
    assert not any(name.startswith("Flex") for name in operators(model))
    made = interpreter(model)
    for rows in (5, 2):
        made.resize_tensor_input(0, (rows, 3))
        made.allocate_tensors()
        x = np.random.default_rng(rows).standard_normal((rows, 3), np.float32)
        made.set_tensor(0, x)
        made.invoke()
        np.testing.assert_allclose(made.get_tensor(made.get_output_details()[0]["index"]), np.log1p(np.exp(x)), 1e-5)


def list_loop(rows: int = -1) -> bytes:
    """y[i] = 2 x[i], written into a list of tensors by a loop."""
    make = FlexMaker()
    x = make.tensor((1, 3), name="x", shape_signature=(rows, 3), has_rank=True)
    int32 = TensorType.INT32
    (sizes,) = make.flex("Shape", [x], [(2,)], out_type=np.int32)
    bounds = [make.constant([n], np.int32, int32) for n in (0, 1, 1)]
    (count,) = make.flex("StridedSlice", [sizes, *bounds], [()], shrink_axis_mask=1)
    element = make.constant([3], np.int32, int32)
    (items,) = make.flex("TensorListReserve", [element, count], [()], element_dtype="float")
    start = make.constant(0, np.int32, int32)
    loop = [make.tensor((), int32, "i"), make.tensor((), TensorType.VARIANT, "items", has_rank=True)]
    loop += [make.tensor((1, 3), name="x_out", shape_signature=(rows, 3), has_rank=True), make.tensor((), int32, "n")]
    make.op("WHILE", [start, items, x, count], loop, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x], make.flex("TensorListStack", [loop[1], element], [(rows, 3)], element_dtype="float"))

    def arguments() -> list[int]:
        types = ((), int32), ((), TensorType.VARIANT), ((1, 3), TensorType.FLOAT32), ((), int32)
        return [
            make.tensor(shape, type, has_rank=True, shape_signature=(rows, 3) if shape else ()) for shape, type in types
        ]

    make.subgraph("cond")
    given = arguments()
    less = make.tensor((), TensorType.BOOL)
    make.op("LESS", [given[0], given[3]], [less], LessOptions())
    make.io(given, [less])
    make.subgraph("body")
    i, items, x, n = arguments()
    (row,) = make.flex("GatherV2", [x, i, make.constant(0, np.int32, int32)], [(3,)])
    (double,) = make.flex("AddV2", [row, row], [(3,)])
    (items2,) = make.flex("TensorListSetItem", [items, i, double], [()])
    (next_i,) = make.flex("AddV2", [i, make.constant(1, np.int32, int32)], [()])
    make.io([i, items, x, n], [next_i, items2, x, n])
    return make.model()


@pytest.mark.parametrize("rows", [-1, 1], ids=["open", "fixed"])
def test_lists_in_loops_are_tensors(rows: int) -> None:
    model = list_loop(rows)
    found = operators(model)
    assert not any(name.startswith("Flex") for name in found)
    made, kernels = interpreter(model), interpreter(model, reference=True)
    results = []
    for one_of in (made, kernels):
        one_of.resize_tensor_input(0, (4, 3))
        one_of.allocate_tensors()
        one_of.set_tensor(0, np.arange(12, dtype=np.float32).reshape(4, 3))
        one_of.invoke()
        results.append(one_of.get_tensor(one_of.get_output_details()[0]["index"]))
    assert results[0].tolist() == results[1].tolist() == (2 * np.arange(12).reshape(4, 3)).tolist()


def test_a_model_without_them_is_itself() -> None:
    model = read_model(one("Tanh", (2,)))
    assert rewritten(model, lambda name, version: None) is model
