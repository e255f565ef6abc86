"""Record where LiteRT puts every tensor of a model: the facts that `ArenaPlanner` has to reproduce.

Run with the peer (`ai_edge_litert`) installed; writes `litert_offsets.json` beside this file:

    python tests/planner/litert_offsets.py MODEL.tflite... [--out FILE | --print]

LiteRT's Python API shows neither allocation types, nor temporaries, nor in-place flags. A delegate sees all of them,
so this one looks at the graph, claims nothing, and keeps the pointers. It declares that it allows dynamic tensors, so
that applying it does not plan anything, and the plan is the one of an interpreter without delegates.

LiteRT 2.3 refuses some old models (person_detect) whose biases are quantized along a dimension that they do not have;
these are recorded with that dimension set to 0, which no plan depends on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

ALLOW_DYNAMIC_TENSORS = 1
ARENAS = {2: "arena", 3: "persistent"}
OP_NAMES = {code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}

# Layouts of tflite/core/c/common.h; what follows the last field of interest is left out.
c_ptr = ctypes.c_void_p


class IntArray(ctypes.Structure):
    _fields_ = [("size", ctypes.c_int), ("data", ctypes.c_int * 0)]

    def tolist(self) -> list[int]:
        return list((ctypes.c_int * self.size).from_address(ctypes.addressof(self) + IntArray.data.offset))


class Tensor(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("data", c_ptr),
        ("dims", ctypes.POINTER(IntArray)),
        ("scale", ctypes.c_float),
        ("zero_point", ctypes.c_int32),
        ("allocation_type", ctypes.c_int),
        ("bytes", ctypes.c_size_t),
        ("allocation", c_ptr),
        ("name", ctypes.c_char_p),
        ("delegate", c_ptr),
        ("buffer_handle", ctypes.c_int),
        ("data_is_stale", ctypes.c_bool),
        ("is_variable", ctypes.c_bool),
        ("quantization_type", ctypes.c_int),
        ("quantization_params", c_ptr),
        ("sparsity", c_ptr),
        ("dims_signature", c_ptr),
    ]


class Node(ctypes.Structure):
    _fields_ = [(name, ctypes.POINTER(IntArray)) for name in ("inputs", "outputs", "intermediates", "temporaries")]


class Registration(ctypes.Structure):
    _fields_ = [
        ("callbacks", c_ptr * 5),
        ("builtin_code", ctypes.c_int32),
        ("custom_name", ctypes.c_char_p),
        ("version", ctypes.c_int),
        ("registration_external", c_ptr),
        ("async_kernel", c_ptr),
        ("inplace_operator", ctypes.c_uint64),
    ]


class Context(ctypes.Structure):
    pass


GetExecutionPlan = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Context), ctypes.POINTER(ctypes.POINTER(IntArray)))
GetNode = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(Context),
    ctypes.c_int,
    ctypes.POINTER(ctypes.POINTER(Node)),
    ctypes.POINTER(ctypes.POINTER(Registration)),
)
Context._fields_ = [
    ("tensors_size", ctypes.c_size_t),
    ("GetExecutionPlan", GetExecutionPlan),
    ("tensors", ctypes.POINTER(Tensor)),
    ("impl", c_ptr),
    ("callbacks", c_ptr * 3),
    ("GetNodeAndRegistration", GetNode),
]


class Delegate(ctypes.Structure):
    pass


Prepare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Context), ctypes.POINTER(Delegate))
Delegate._fields_ = [
    ("data", c_ptr),
    ("Prepare", Prepare),
    ("callbacks", c_ptr * 3),
    ("flags", ctypes.c_int64),
    ("builder", c_ptr),
]


class Onlooker:
    """A delegate that claims nothing and remembers the first subgraph's context and nodes in execution order."""

    def __init__(self) -> None:
        self.context: Any = None
        self.nodes: list[tuple[Node, Registration]] = []
        self._struct = Delegate(Prepare=Prepare(self._prepare), flags=ALLOW_DYNAMIC_TENSORS)

    def _get_native_delegate_pointer(self) -> int:
        return ctypes.addressof(self._struct)

    def _prepare(self, context: Any, _delegate: Any) -> int:
        if self.context is None:
            self.context = context.contents
            plan = ctypes.POINTER(IntArray)()
            self.context.GetExecutionPlan(context, ctypes.byref(plan))
            for index in plan.contents.tolist():
                node, registration = ctypes.POINTER(Node)(), ctypes.POINTER(Registration)()
                self.context.GetNodeAndRegistration(context, index, ctypes.byref(node), ctypes.byref(registration))
                self.nodes.append((node.contents, registration.contents))
        return 0


def repaired(model: bytes) -> bytes:
    """The model, rewritten if a tensor's quantized_dimension is not one of its dimensions."""
    stored = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model, 0))
    wrong = [
        tensor.quantization
        for tensor in stored.subgraphs[0].tensors
        if tensor.quantization and tensor.quantization.quantizedDimension >= max(len(tensor.shape), 1)
    ]
    if not wrong:
        return model
    for quantization in wrong:
        quantization.quantizedDimension = 0
    builder = flatbuffers.Builder(len(model))
    builder.Finish(stored.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def observe(model: bytes, **interpreter_arguments: Any) -> dict[str, Any]:
    """The graph of subgraph 0 as LiteRT plans it after allocate_tensors, with offsets in bytes.

    `tensors` has one row [allocation type, bytes, offset] for each tensor, temporaries included; the offset counts from
    the lowest address in that tensor's arena (the planner fills an arena from 0) and is None outside the arenas.
    """
    model = repaired(model)
    onlooker = Onlooker()
    interpreter = Interpreter(
        model_content=model,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_delegates=[onlooker],
        **interpreter_arguments,
    )
    interpreter.allocate_tensors()

    stored = schema.Model.GetRootAs(model, 0).Subgraphs(0)
    tensors = onlooker.context.tensors[: onlooker.context.tensors_size]
    placed = [t for t in tensors if t.allocation_type in ARENAS and t.data]
    base = {kind: min((t.data for t in placed if t.allocation_type == kind), default=0) for kind in ARENAS}
    end = {kind: max((t.data + t.bytes for t in placed if t.allocation_type == kind), default=0) for kind in ARENAS}

    def row(tensor: Tensor) -> list[int | None]:
        kind = tensor.allocation_type
        return [kind, tensor.bytes, tensor.data - base[kind] if kind in ARENAS and tensor.data else None]

    def op(node: Node, registration: Registration) -> dict[str, Any]:
        code = registration.builtin_code
        lists = {name: getattr(node, name) for name in ("inputs", "outputs", "temporaries")}
        return {
            "op": OP_NAMES.get(code, str(code)),
            "inplace": registration.inplace_operator,
            **{name: array.contents.tolist() if array else [] for name, array in lists.items()},
        }

    stored_count = stored.TensorsLength()
    return {
        "arena_bytes": end[2] - base[2],
        "persistent_bytes": end[3] - base[3],
        "stored_tensors": stored_count,
        "inputs": [int(stored.Inputs(i)) for i in range(stored.InputsLength())],
        "outputs": [int(stored.Outputs(i)) for i in range(stored.OutputsLength())],
        "variables": [i for i in range(stored_count) if stored.Tensors(i).IsVariable()],
        "nodes": [op(node, registration) for node, registration in onlooker.nodes],
        "tensors": [row(tensor) for tensor in tensors],
    }


def dumps(recorded: dict[str, Any]) -> str:
    """JSON with one node or tensor to the line, so that a difference can be read."""
    models = []
    for name, facts in sorted(recorded.items()):
        fields = []
        for key, value in facts.items():
            if key in ("nodes", "tensors"):
                rows = ",\n      ".join(json.dumps(row) for row in value)
                fields.append(f'    "{key}": [\n      {rows}\n    ]')
            else:
                fields.append(f'    "{key}": {json.dumps(value)}')
        models.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n  }")
    return "{\n" + ",\n".join(models) + "\n}\n"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Record LiteRT's tensor offsets.")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--print", action="store_true", help="print instead of writing")
    arguments = parser.parse_args(argv)
    text = dumps({path.name: observe(path.read_bytes()) for path in arguments.models})
    if arguments.print:
        sys.stdout.write(text)
    else:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
