"""Lists, maps, arrays, queues, stacks, tables and variables: what lives longer than an operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.convert.sources.tensor_bundle import TensorBundle
from gossamer.errors import InvokeError
from gossamer.schema import TensorType, VarHandleOptions
from gossamer.schema.options import AssignVariableOptions
from tests.flex.graphs import FlexGraph, results

F32, I32, I64 = np.float32, np.int32, np.int64
ANY = np.array(-1, I32)


def i32(*values: int) -> Any:
    return np.array(values, I32)


def scalar(value: Any, dtype: Any = I32) -> Any:
    return np.array(value, dtype)


def reserved(graph: FlexGraph, count: int, shape: Any = ANY) -> int:
    made: int = graph.add("TensorListReserve", shape, scalar(count), element_dtype=F32)
    return made


def stacked(graph: FlexGraph, handle: int, shape: Any = ANY) -> int:
    made: int = graph.add("TensorListStack", handle, shape, element_dtype=F32)
    return made


def test_a_list_is_a_value() -> None:
    graph = FlexGraph()
    before = graph.add("TensorListFromTensor", np.array([[1, 2], [3, 4]], F32), i32(2))
    after = graph.add("TensorListSetItem", before, scalar(0), np.array([9, 9], F32))
    first, second = graph.run(stacked(graph, before), stacked(graph, after))
    assert first.tolist() == [[1, 2], [3, 4]]
    assert second.tolist() == [[9, 9], [3, 4]]


def test_elements_that_nobody_set_are_zeros_of_the_shape_that_others_have() -> None:
    graph = FlexGraph()
    held = graph.add("TensorListSetItem", reserved(graph, 3), scalar(1), np.array([[1, 2]], F32))
    item = graph.add("TensorListGetItem", held, scalar(0), ANY, element_dtype=F32)
    joined, lengths = graph.add("TensorListConcatV2", held, ANY, np.array([2, 2, 3], I64), element_dtype=F32)
    got = graph.run(stacked(graph, held), item, joined, lengths)
    assert got[0].tolist() == [[[0, 0]], [[1, 2]], [[0, 0]]]
    assert got[1].tolist() == [[0, 0]]
    assert got[2].tolist() == [[0, 0], [0, 0], [1, 2], [0, 0], [0, 0], [0, 0]]
    assert got[3].tolist() == [2, 1, 3]


def test_a_list_grows_shrinks_and_is_measured() -> None:
    graph = FlexGraph()
    held = graph.add("EmptyTensorList", np.array([-1], I64), scalar(-1), element_dtype=F32)
    for size in (1, 2, 3):
        held = graph.add("TensorListPushBack", held, np.arange(size, dtype=F32))
    shorter, last = graph.add("TensorListPopBack", held, ANY, element_dtype=F32)
    longer = graph.add("TensorListResize", shorter, scalar(5))
    doubled = graph.add("TensorListConcatLists", longer, longer, element_dtype=F32)
    shape = graph.add("TensorListElementShape", held, shape_type=I64)
    lengths = [graph.add("TensorListLength", one) for one in (held, shorter, longer, doubled)]
    *counts, popped, sizes = graph.run(*lengths, last, shape)
    assert [int(count) for count in counts] == [3, 2, 5, 10]
    assert popped.tolist() == [0, 1, 2]
    assert sizes.tolist() == [-1]


def test_elements_are_scattered_and_split() -> None:
    graph = FlexGraph()
    rows = np.array([[1, 1], [2, 2]], F32)
    sparse = graph.add("TensorListScatterV2", rows, i32(3, 1), i32(2), scalar(-1))
    into = graph.add("TensorListScatterIntoExistingList", sparse, rows, i32(0, 4))
    pieces = graph.add("TensorListSplit", np.arange(6, dtype=F32).reshape(3, 2), i32(-1, 2), np.array([1, 2], I64))
    item = graph.add("TensorListGetItem", pieces, scalar(1), ANY, element_dtype=F32)
    chosen = graph.add("TensorListGather", into, i32(4, 0), ANY, element_dtype=F32)
    got = graph.run(stacked(graph, sparse), stacked(graph, into), item, chosen)
    assert got[0].tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]
    assert got[1].tolist() == [[1, 1], [2, 2], [0, 0], [1, 1], [2, 2]]
    assert got[2].tolist() == [[2, 3], [4, 5]]
    assert got[3].tolist() == [[2, 2], [1, 1]]


REFUSED_LISTS: dict[str, tuple[Callable[[FlexGraph], int], str]] = {
    "index": (
        lambda g: g.add("TensorListGetItem", reserved(g, 2, i32(1)), scalar(2), ANY, element_dtype=F32),
        "index 2 is not among the 2 elements",
    ),
    "unknown shape": (lambda g: stacked(g, reserved(g, 2)), "must be known, got unknown"),
    "other type": (
        lambda g: g.add("TensorListGetItem", reserved(g, 2, i32(1)), scalar(0), ANY, element_dtype=I32),
        "elements are float32, the operator is of int32",
    ),
    "other shape": (
        lambda g: g.add("TensorListSetItem", reserved(g, 2, i32(1)), scalar(0), np.zeros(2, F32)),
        r"elements have shape \[1\], got \[2\]",
    ),
    "too many": (lambda g: reserved(g, 1 << 30), "may have 0 to"),
    "negative": (lambda g: reserved(g, -1), "may have 0 to"),
    "too large": (lambda g: stacked(g, reserved(g, 1 << 20, i32(1 << 20))), "more than"),
    "empty": (
        lambda g: g.add("TensorListPopBack", reserved(g, 0), ANY, element_dtype=F32)[1],
        "the list is empty",
    ),
}


@pytest.mark.parametrize(("build", "message"), REFUSED_LISTS.values(), ids=REFUSED_LISTS)
def test_what_a_list_cannot_do_is_said(build: Callable[[FlexGraph], int], message: str) -> None:
    graph = FlexGraph()
    with pytest.raises(InvokeError, match=message):
        graph.run(graph.add("Identity", build(graph)))


def test_a_map() -> None:
    graph = FlexGraph()
    empty = graph.add("EmptyTensorMap")
    one = graph.add("TensorMapInsert", empty, scalar("a", object), np.array([1, 2], F32))
    two = graph.add("TensorMapInsert", one, scalar("b", object), np.array([3, 4], F32))
    other = graph.add("TensorMapInsert", two, scalar("a", object), np.array([5, 6], F32))
    less = graph.add("TensorMapErase", other, scalar("b", object), value_dtype=F32)
    found = [graph.add("TensorMapLookup", held, scalar("a", object), value_dtype=F32) for held in (one, other)]
    sizes = [graph.add("TensorMapSize", held) for held in (empty, one, two, other, less)]
    keys = graph.add("TensorMapStackKeys", two, key_dtype=object)
    has = graph.add("TensorMapHasKey", less, scalar("b", object))
    *values, names, there = graph.run(*found, *sizes, keys, has)
    assert [value.tolist() for value in values] == [[1, 2], [5, 6], 0, 1, 2, 2, 1]
    assert (names.tolist(), bool(there)) == ([b"a", b"b"], False)


def test_an_array_is_written_once() -> None:
    graph = FlexGraph()
    handle, flow = graph.add("TensorArrayV3", scalar(2), dtype=F32, element_shape=None, dynamic_size=True)
    for at in (0, 2):
        flow = graph.add("TensorArrayWriteV3", handle, scalar(at), np.full(2, at, F32), flow)
    size = graph.add("TensorArraySizeV3", handle, flow)
    values = graph.add("TensorArrayGatherV3", handle, i32(2, 0), flow, dtype=F32)
    for _ in range(2):  # each run makes an array anew
        count, got = graph.run(size, values)
        assert (int(count), got.tolist()) == (3, [[2, 2], [0, 0]])
    again = graph.add("TensorArrayWriteV3", handle, scalar(0), np.zeros(2, F32), flow)
    with pytest.raises(InvokeError, match="element 0 has been written already"):
        graph.run(again)


def test_an_array_is_split_and_joined() -> None:
    graph = FlexGraph()
    handle, flow = graph.add("TensorArrayV3", scalar(2), dtype=F32, clear_after_read=True)
    flow = graph.add("TensorArraySplitV3", handle, np.arange(3, dtype=F32), np.array([1, 2], I64), flow)
    joined, lengths = graph.add("TensorArrayConcatV3", handle, flow, dtype=F32)
    got = graph.run(joined, lengths)
    assert [value.tolist() for value in got] == [[0, 1, 2], [1, 2]]
    with pytest.raises(InvokeError, match="element 0 has been read"):
        graph.run(graph.add("TensorArrayReadV3", handle, scalar(0), flow, dtype=F32))


def test_a_queue() -> None:
    graph = FlexGraph()
    queue = graph.add("FIFOQueueV2", component_types=[F32, I32], shapes_=[[2], []], capacity=3)
    graph.add("QueueEnqueueManyV2", queue, [np.array([[1, 2], [3, 4]], F32), i32(7, 8)])
    graph.add("QueueEnqueueV2", queue, [np.array([5, 6], F32), scalar(9)])
    first = graph.add("QueueDequeueV2", queue, component_types=[F32, I32])
    size = graph.add("QueueSizeV2", queue)
    rest = graph.add("QueueDequeueManyV2", queue, scalar(2), component_types=[F32, I32])
    got = graph.run(*first, size, *rest)
    assert [value.tolist() for value in got] == [[1, 2], 7, 2, [[3, 4], [5, 6]], [8, 9]]
    for _ in range(2):
        graph.add("QueueEnqueueManyV2", queue, [np.zeros((2, 2), F32), i32(0, 0)])
    with pytest.raises(InvokeError, match="the queue is full: it has 3 tuples"):
        graph.run(size)


def test_nobody_waits_for_a_queue() -> None:
    graph = FlexGraph()
    queue = graph.add("PaddingFIFOQueueV2", component_types=[F32], shapes_=[[None]])
    for size in (1, 3):
        graph.add("QueueEnqueueV2", queue, [np.ones(size, F32)])
    padded = graph.add("QueueDequeueManyV2", queue, scalar(2), component_types=[F32])
    assert graph.run(padded)[0].tolist() == [[1, 0, 0], [1, 1, 1]]
    with pytest.raises(InvokeError, match="nobody will add one"):
        graph.run(graph.add("QueueDequeueV2", queue, component_types=[F32]))


def test_a_stack() -> None:
    graph = FlexGraph()
    stack = graph.add("StackV2", scalar(1), elem_type=F32)
    pushed = graph.add("StackPushV2", stack, np.array([1, 2], F32))
    popped = graph.add("StackPopV2", stack, elem_type=F32)
    assert [value.tolist() for value in graph.run(pushed, popped)] == [[1, 2], [1, 2]]
    graph.add("StackPushV2", stack, np.zeros(1, F32))
    with pytest.raises(InvokeError, match="the stack is full: it has 1 elements"):
        graph.run(graph.add("StackPushV2", stack, np.zeros(1, F32)))


def test_a_table_keeps_its_entries_from_one_run_to_the_next() -> None:
    graph = FlexGraph()
    table = graph.add("MutableHashTableV2", key_dtype=object, value_dtype=F32)
    found = graph.add("LookupTableFindV2", table, np.array(["a", "z"], object), scalar(-1, F32))
    graph.add("LookupTableInsertV2", table, np.array(["a", "b", "a"], object), np.array([1, 2, 3], F32))
    size = graph.add("LookupTableSizeV2", table)
    before, first, after, second = graph.run(found, size, runs=2)
    assert (before.tolist(), after.tolist(), int(first), int(second)) == ([-1, -1], [3, -1], 2, 2)


def test_tables_of_vectors() -> None:
    graph = FlexGraph()
    table = graph.add("MutableHashTableOfTensorsV2", key_dtype=object, value_dtype=F32, value_shape=[2])
    graph.add("LookupTableInsertV2", table, np.array(["a"], object), np.array([[1, 2]], F32))
    each = graph.add("LookupTableFindV2", table, np.array(["a", "z"], object), np.array([[7, 8], [5, 6]], F32))
    dense = graph.add("MutableDenseHashTableV2", np.array([0, 0]), np.array([-1, -1]), value_dtype=F32, value_shape=[])
    graph.add("LookupTableInsertV2", dense, np.array([[1, 2], [3, 4]]), np.array([1, 2], F32))
    graph.add("LookupTableRemoveV2", dense, np.array([[3, 4]]))
    found = graph.add("LookupTableFindV2", dense, np.array([[1, 2], [3, 4]]), scalar(9, F32))
    keys, values = graph.add("LookupTableExportV2", dense, Tkeys=I64, Tvalues=F32)
    got = graph.run(each, found, keys, values)
    assert [value.tolist() for value in got] == [[[1, 2], [5, 6]], [1, 9], [[1, 2]], [1]]
    with pytest.raises(InvokeError, match="may not be keys"):
        graph.run(graph.add("LookupTableFindV2", dense, np.array([[0, 0]]), scalar(9, F32)))


def test_a_static_table_is_filled_once() -> None:
    graph = FlexGraph()
    table = graph.add("HashTableV2", key_dtype=object, value_dtype=I64, shared_name="t")
    for value in (1, 2):
        graph.add("InitializeTableV2", table, np.array(["a"], object), np.array([value], I64))
    found = graph.add("LookupTableFindV2", table, np.array(["a"], object), scalar(-1, I64))
    assert graph.run(found)[0].tolist() == [1]
    graph.add("InitializeTableV2", table, np.array(["a", "a"], object), np.array([1, 2], I64))
    with pytest.raises(InvokeError, match="is there twice, with two values"):
        graph.run(found)


def test_what_nobody_calls_fills_a_table() -> None:
    graph = FlexGraph()
    table = graph.add("HashTableV2", key_dtype=object, value_dtype=I64, shared_name="t")
    found = graph.add("LookupTableFindV2", table, np.array(["2", "z"], object), scalar(-1, I64))
    graph.make.io(list(graph.fed), [found])
    graph.make.subgraph("initializer")
    handle = graph.make.flex("HashTableV2", [], key_dtype=object, value_dtype=I64, shared_name="t")[0]
    keys = graph.make.constant([1, 2], I64, TensorType.INT64)
    # TFLite stores texts in a form of their own; numbers do here.
    names = graph.make.flex("AsString", [graph.make.constant([1, 2], I64, TensorType.INT64)])[0]
    graph.make.flex("LookupTableImportV2", [handle, names, keys])
    graph.make.io([], [])
    interpreter = gossamer.Interpreter(model_content=graph.make.model())
    interpreter.allocate_tensors()
    for index, value in graph.fed.items():
        interpreter.set_tensor(index, value)
    for _ in range(2):
        interpreter.invoke()
        assert interpreter.get_tensor(found).tolist() == [2, -1]


def test_a_table_that_nobody_fills_is_told() -> None:
    graph = FlexGraph()
    table = graph.add("HashTableV2", key_dtype=object, value_dtype=I64)
    with pytest.raises(InvokeError, match="the hash table has not been filled"):
        graph.run(graph.add("LookupTableFindV2", table, np.array(["a"], object), scalar(-1, I64)))


def test_a_variable_is_that_of_builtin_operators() -> None:
    graph = FlexGraph()
    handle = graph.make.tensor([], TensorType.RESOURCE)
    graph.make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="v", container=""))
    value = graph.input(np.array([1, 2], F32))
    graph.make.op("ASSIGN_VARIABLE", [handle, value], [], AssignVariableOptions())
    same = graph.add("VarHandleOp", shared_name="v", dtype=F32, shape=[2])
    graph.add("AssignAddVariableOp", same, np.array([10, 10], F32))
    assert graph.run(graph.add("ReadVariableOp", same, dtype=F32))[0].tolist() == [11, 12]


def updated(op: str, value: Any, *operands: Any, **attributes: Any) -> Any:
    graph = FlexGraph()
    handle = graph.add("VarHandleOp", shared_name="v", dtype=value.dtype, shape=None)
    graph.add("AssignVariableOp", handle, value)
    graph.add(op, handle, *operands, **attributes)
    return graph.run(graph.add("ReadVariableOp", handle, dtype=value.dtype))[0].tolist()


SCATTERED = [
    ("Update", [0, 10, 2, 30]),
    ("Add", [0, 11, 2, 53]),
    ("Sub", [0, -9, 2, -47]),
    ("Mul", [0, 10, 2, 1800]),
    ("Div", [0, 0.1, 2, 0.005]),
    ("Min", [0, 1, 2, 3]),
    ("Max", [0, 10, 2, 30]),
]


@pytest.mark.parametrize(("how", "want"), SCATTERED)
def test_a_variable_is_scattered_into(how: str, want: list[float]) -> None:
    got = updated(f"ResourceScatter{how}", np.arange(4.0), i32(1, 3, 3), np.array([10.0, 20, 30]))
    assert got == pytest.approx(want)


def test_other_updates_of_a_variable() -> None:
    whole = np.arange(6, dtype=F32).reshape(2, 3)
    assert updated("ResourceScatterNdAdd", whole, i32([0, 1], [0, 1]), np.array([10, 10], F32)) == [
        [0, 21, 2],
        [3, 4, 5],
    ]
    assert updated("ResourceScatterDiv", i32(7, -7), i32(0, 1), i32(2, 2)) == [3, -3]
    assert updated("ResourceStridedSliceAssign", whole, i32(0, 2), i32(2, 0), i32(1, -1), np.full((2, 2), 9, F32)) == [
        [0, 9, 9],
        [3, 9, 9],
    ]
    with pytest.raises(InvokeError, match=r"indices must be in \[0, 2\)"):
        updated("ResourceScatterAdd", whole, i32(2), np.zeros((1, 3), F32))


def test_a_variable_is_gathered_from_and_measured() -> None:
    graph = FlexGraph()
    handle = graph.add("VarHandleOp", shared_name="v", dtype=F32, shape=None)
    ready = graph.add("VarIsInitializedOp", handle)
    graph.add("AssignVariableOp", handle, np.arange(6, dtype=F32).reshape(2, 3))
    rows = graph.add("ResourceGather", handle, i32(1, 0), dtype=F32)
    batch = graph.add("ResourceGather", handle, i32([2, 0], [1, 1]), dtype=F32, batch_dims=1)
    items = graph.add("ResourceGatherNd", handle, i32([1, 2], [0, 0]), dtype=F32)
    shape = graph.add("VariableShape", handle)
    got = graph.run(ready, rows, batch, items, shape)
    assert [value.tolist() for value in got] == [
        False,
        [[3, 4, 5], [0, 1, 2]],
        [[2, 0], [4, 4]],
        [5, 0],
        [2, 3],
    ]


OPTIMIZERS = [
    ("ResourceApplyGradientDescent", 0, [0.5], [0.95, 0.95]),
    ("ResourceApplyMomentum", 1, [0.1, "grad", 0.9], [0.9, 0.9]),
    ("ResourceApplyKerasMomentum", 1, [0.1, "grad", 0.9], [1.89, 1.89]),
    ("ResourceApplyAdagrad", 1, [0.1, "grad"], [0.99004963, 0.99004963]),
    ("ResourceApplyAdam", 2, [0.9, 0.99, 0.1, 0.9, 0.99, 1e-3, "grad"], [0.908638, 0.908638]),
    ("ResourceSparseApplyAdagrad", 1, [0.1, "grad", "indices"], [1.0, 0.98014814]),
]


@pytest.mark.parametrize(("op", "slots", "numbers", "want"), OPTIMIZERS, ids=[item[0] for item in OPTIMIZERS])
def test_optimizers(op: str, slots: int, numbers: list[Any], want: list[float]) -> None:
    graph = FlexGraph()
    handles = []
    for name in ["var", *[f"slot{n}" for n in range(slots)]]:
        handles.append(graph.add("VarHandleOp", shared_name=name, dtype=F32, shape=None))
        graph.add("AssignVariableOp", handles[-1], np.ones(2, F32))
    special = {"grad": np.full(2, 0.1, F32), "indices": i32(1, 1)}
    operands = [special[one] if isinstance(one, str) else scalar(one, F32) for one in numbers]
    if op.endswith("GradientDescent"):
        operands.append(special["grad"])
    graph.add(op, *handles, *operands)
    (got,) = graph.run(graph.add("ReadVariableOp", handles[0], dtype=F32))
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_files_are_refused_unless_the_user_names_a_directory(tmp_path: Path, monkeypatch: Any) -> None:
    graph = FlexGraph()
    name = scalar("some/ck", object)
    texts = np.array([b"", b"a\0b\xff"], object)
    graph.add(
        "SaveV2", name, np.array(["w", "s"], object), np.array(["", ""], object), [np.arange(3, dtype=F32), texts]
    )
    restored = graph.add(
        "RestoreV2", name, np.array(["s", "w"], object), np.array(["", ""], object), dtypes=[object, F32]
    )
    monkeypatch.delenv("GOSSAMER_FLEX_FILES", raising=False)
    with pytest.raises(InvokeError, match="GOSSAMER_FLEX_FILES names a directory"):
        graph.run(*restored)
    monkeypatch.setenv("GOSSAMER_FLEX_FILES", str(tmp_path))
    got = graph.run(*restored)
    assert got[0].tolist() == texts.tolist()
    assert got[1].tolist() == [0, 1, 2]
    assert list(TensorBundle(tmp_path / "some" / "ck")) == ["s", "w"]
    assert sorted(path.name for path in (tmp_path / "some").iterdir()) == ["ck.data-00000-of-00001", "ck.index"]


@pytest.mark.parametrize("name", ["../ck", "/etc/passwd", "", "a/../../ck"])
def test_no_file_elsewhere_is_touched(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("GOSSAMER_FLEX_FILES", str(tmp_path / "inside"))
    graph = FlexGraph()
    value = graph.add("Restore", scalar(name, object), scalar("w", object), dt=F32)
    with pytest.raises(InvokeError, match="is not within GOSSAMER_FLEX_FILES"):
        graph.run(value)


def test_a_table_is_filled_from_a_file(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "words").write_bytes(b"zero\none\n")
    monkeypatch.setenv("GOSSAMER_FLEX_FILES", str(tmp_path))
    graph = FlexGraph()
    table = graph.add("HashTableV2", key_dtype=object, value_dtype=I64, shared_name="t")
    graph.add("InitializeTableFromTextFileV2", table, scalar("words", object), key_index=-2, value_index=-1)
    found = graph.add("LookupTableFindV2", table, np.array(["one", "two"], object), scalar(-1, I64))
    assert graph.run(found)[0].tolist() == [1, -1]


def test_seeded_operators_go_on_where_they_stopped() -> None:
    first, second = results("RandomUniform", i32(15), seed=3, seed2=4, dtype=F32, runs=2)
    again, _ = results("RandomUniform", i32(15), seed=3, seed2=4, dtype=F32, runs=2)
    assert first.tolist() == again.tolist() != second.tolist()
    np.testing.assert_array_equal(second[:3], np.array(SECOND, F32))


SECOND = [0.9962863, 0.6576264, 0.8233299]


def test_unseeded_operators_differ() -> None:
    one, other = (results("RandomUniform", i32(8), dtype=F32)[0].tolist() for _ in range(2))
    assert one != other


DRAWN: list[tuple[str, list[Any], dict[str, Any], list[Any]]] = [
    ("RandomShuffle", [np.arange(6)], {}, [[3, 1, 0, 5, 2, 4], [3, 0, 1, 5, 4, 2]]),
    (
        "RandomGamma",
        [i32(2), np.array([2.5], F32)],
        {},
        [[[0.8535101413726807], [2.0175464153289795]], [[2.0944902896881104], [2.3762805461883545]]],
    ),
    (
        "RandomPoissonV2",
        [i32(5), np.array([20], F32)],
        {"dtype": I32},
        [[[21], [23], [23], [24], [18]], [[15], [22], [20], [24], [26]]],
    ),
    ("RandomUniformInt", [i32(4), scalar(0), scalar(100)], {}, [[61, 60, 41, 94], [63, 19, 50, 42]]),
    ("Multinomial", [np.array([[1, 2, 3]], F32), scalar(5)], {}, [[[2, 2, 1, 2, 0]], [[2, 2, 1, 2, 2]]]),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "want"), DRAWN, ids=[item[0] for item in DRAWN])
def test_streams_of_two_runs(op: str, operands: list[Any], attributes: dict[str, Any], want: list[Any]) -> None:
    got = results(op, *operands, seed=3, seed2=4, runs=2, **attributes)
    for value, wanted in zip(got, want, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=3e-7)


def test_a_distorted_box() -> None:
    box = np.array([[[0.1, 0.2, 0.5, 0.6]]], F32)
    got = results("SampleDistortedBoundingBoxV2", i32(40, 60, 3), box, scalar(0.1, F32), seed=3, seed2=4, runs=2)
    assert [value.tolist() for value in (got[0], got[1], got[3], got[4])] == [
        [9, 10, 0],
        [29, 37, -1],
        [3, 11, 0],
        [35, 40, -1],
    ]
    np.testing.assert_array_equal(got[2], np.array([[[9 / 40, 10 / 60, 38 / 40, 47 / 60]]], F32))
