"""What LiteRT does with a delegate: its partitions, its execution plan and its memory plan, for `peer` tests.

LiteRT takes delegates from C only, so this one is a C structure whose functions are Python, by ctypes: it claims the
nodes that it is given, and its kernels do nothing. A second delegate behind it looks at the plan that comes out.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ai_edge_litert.interpreter import Interpreter, OpResolverType

from tests.planner.litert_offsets import ARENAS, IntArray, Node, Registration, Tensor, c_ptr

int_array = ctypes.POINTER(IntArray)


class Params(ctypes.Structure):
    _fields_ = [("delegate", c_ptr), ("nodes", int_array), ("inputs", int_array), ("outputs", int_array)]


class Context(ctypes.Structure):
    pass


class Delegate(ctypes.Structure):
    pass


context_ptr = ctypes.POINTER(Context)
delegate_ptr = ctypes.POINTER(Delegate)
GetExecutionPlan = ctypes.CFUNCTYPE(ctypes.c_int, context_ptr, ctypes.POINTER(int_array))
GetNode = ctypes.CFUNCTYPE(
    ctypes.c_int,
    context_ptr,
    ctypes.c_int,
    ctypes.POINTER(ctypes.POINTER(Node)),
    ctypes.POINTER(ctypes.POINTER(Registration)),
)
Replace = ctypes.CFUNCTYPE(ctypes.c_int, context_ptr, Registration, int_array, delegate_ptr)
Preview = ctypes.CFUNCTYPE(
    ctypes.c_int, context_ptr, int_array, ctypes.POINTER(ctypes.POINTER(Params)), ctypes.POINTER(ctypes.c_int)
)
Prepare = ctypes.CFUNCTYPE(ctypes.c_int, context_ptr, delegate_ptr)
Init = ctypes.CFUNCTYPE(c_ptr, c_ptr, c_ptr, ctypes.c_size_t)
Free = ctypes.CFUNCTYPE(None, c_ptr, c_ptr)
Run = ctypes.CFUNCTYPE(ctypes.c_int, c_ptr, c_ptr)

Context._fields_ = [
    ("tensors_size", ctypes.c_size_t),
    ("GetExecutionPlan", GetExecutionPlan),
    ("tensors", ctypes.POINTER(Tensor)),
    ("impl", c_ptr),
    ("ResizeTensor", c_ptr),
    ("ReportError", c_ptr),
    ("AddTensors", c_ptr),
    ("GetNodeAndRegistration", GetNode),
    ("ReplaceNodeSubsetsWithDelegateKernels", Replace),
    ("recommended_num_threads", ctypes.c_int),
    ("GetExternalContext", c_ptr),
    ("SetExternalContext", c_ptr),
    ("allow_fp32_relax_to_fp16", ctypes.c_bool),
    ("profiler", c_ptr),
    ("AllocatePersistentBuffer", c_ptr),
    ("AllocateBufferForEval", c_ptr),
    ("RequestScratchBufferInArena", c_ptr),
    ("GetScratchBuffer", c_ptr),
    ("ResizeTensorExplicit", c_ptr),
    ("PreviewDelegatePartitioning", Preview),
]
Delegate._fields_ = [
    ("data", c_ptr),
    ("Prepare", Prepare),
    ("CopyFromBufferHandle", c_ptr),
    ("CopyToBufferHandle", c_ptr),
    ("FreeBufferHandle", c_ptr),
    ("flags", ctypes.c_int64),
    ("builder", c_ptr),
]


@dataclass
class Seen:
    """``partitions``: nodes, inputs and outputs of each. ``plan``: the number, inputs and outputs of each node in
    execution order. ``offsets``: by tensor, its first byte in the arena; none for tensors outside."""

    partitions: list[tuple[list[int], list[int], list[int]]] = field(default_factory=list)
    plan: list[tuple[int, list[int], list[int]]] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)


class _Native:
    """A C delegate; the interpreter asks for a pointer."""

    def __init__(self, flags: int) -> None:
        # Whatever C may call has to stay alive.
        self.prepare_callback = Prepare(self.prepare)
        self.struct = Delegate(Prepare=self.prepare_callback, flags=flags)

    def _get_native_delegate_pointer(self) -> int:
        return ctypes.addressof(self.struct)

    def prepare(self, context: Any, delegate: Any) -> int:
        raise NotImplementedError


class _Claiming(_Native):
    def __init__(self, nodes: Iterable[int], flags: int, seen: Seen) -> None:
        super().__init__(flags)
        self.nodes = list(nodes)
        self.seen = seen
        self.subgraphs = 0
        self.callbacks = (
            Init(lambda context, buffer, length: 1),
            Free(lambda context, data: None),
            Run(lambda context, node: 0),
            Run(lambda context, node: 0),
        )

    def prepare(self, context: Any, delegate: Any) -> int:
        self.subgraphs += 1
        if self.subgraphs > 1 or not self.nodes:
            return 0
        storage = (ctypes.c_int * (len(self.nodes) + 1))(len(self.nodes), *self.nodes)
        nodes = ctypes.cast(storage, int_array)
        params, count = ctypes.POINTER(Params)(), ctypes.c_int()
        context.contents.PreviewDelegatePartitioning(context, nodes, ctypes.byref(params), ctypes.byref(count))
        for made in params[: count.value]:
            self.seen.partitions.append(
                (made.nodes.contents.tolist(), made.inputs.contents.tolist(), made.outputs.contents.tolist())
            )
        addresses = [ctypes.cast(callback, c_ptr) for callback in self.callbacks]
        registration = Registration(custom_name=b"test", version=1)
        registration.callbacks = (c_ptr * 5)(*addresses, None)
        status: int = context.contents.ReplaceNodeSubsetsWithDelegateKernels(context, registration, nodes, delegate)
        return status


class _Looking(_Native):
    def __init__(self, seen: Seen) -> None:
        super().__init__(flags=1)
        self.seen = seen
        self.context: Any = None

    def prepare(self, context: Any, delegate: Any) -> int:
        if self.context is not None:
            return 0
        self.context = context.contents
        plan = int_array()
        self.context.GetExecutionPlan(context, ctypes.byref(plan))
        for index in plan.contents.tolist():
            node, registration = ctypes.POINTER(Node)(), ctypes.POINTER(Registration)()
            self.context.GetNodeAndRegistration(context, index, ctypes.byref(node), ctypes.byref(registration))
            inputs, outputs = node.contents.inputs.contents.tolist(), node.contents.outputs.contents.tolist()
            self.seen.plan.append((index, inputs, outputs))
        return 0

    def offsets(self) -> dict[int, int]:
        tensors: Sequence[Tensor] = self.context.tensors[: self.context.tensors_size]
        placed = {i: t.data for i, t in enumerate(tensors) if ARENAS.get(t.allocation_type) == "arena" and t.data}
        base = min(placed.values(), default=0)
        return {index: address - base for index, address in placed.items()}


def observe(model: bytes, nodes: Iterable[int], *, flags: int = 0, **arguments: Any) -> Seen:
    """What LiteRT makes of subgraph 0 when a delegate claims these nodes. Raises what LiteRT raises."""
    seen = Seen()
    claiming, looking = _Claiming(nodes, flags, seen), _Looking(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = Interpreter(
            model_content=model,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_delegates=[claiming, looking],
            **arguments,
        )
    interpreter.allocate_tensors()
    seen.offsets = looking.offsets()
    return seen
