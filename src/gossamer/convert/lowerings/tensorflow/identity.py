"""Operators that hand something on, and calls of functions."""

from __future__ import annotations

from typing import Any

from gossamer.convert.graph import Refused, constant
from gossamer.convert.lowerings.tensorflow import Call, Variable, lowers


@lowers("Const")
def const(call: Call) -> Any:
    return constant(call.attributes.tensor("value"), None, call.node.name)


@lowers(
    "Identity",
    "Snapshot",
    "StopGradient",
    "PreventGradient",
    "CheckNumerics",
    "CheckNumericsV2",
    "EnsureShape",
    "PlaceholderWithDefault",
    "DeepCopy",
    "OptimizationBarrier",
)
def first(call: Call) -> Any:
    return call.inputs[0]


@lowers("IdentityN")
def all_of_them(call: Call) -> Any:
    return call.inputs


@lowers("NoOp", "Assert", "PrintV2", "Print", "ControlTrigger")
def nothing(call: Call) -> Any:
    return [call.inputs[0]] if call.op == "Print" else []


@lowers("Placeholder")
def placeholder(call: Call) -> Any:
    raise Refused(f"it is an input that nobody gives; name it among the inputs ({call.node.name})")


@lowers("PartitionedCall", "StatefulPartitionedCall", "RemoteCall")
def inlined(call: Call) -> Any:
    return call.importer.inline(call.graph, call.attributes.function("f").name, call.inputs)


@lowers("VarHandleOp", "VariableV2", "Variable")
def variable(call: Call) -> Any:
    found = call.importer.variable(call.node)
    return found if call.op == "VarHandleOp" else found.read(call.graph)


@lowers("ReadVariableOp")
def read_variable(call: Call) -> Any:
    found = call.inputs[0]
    if not isinstance(found, Variable):
        raise Refused(f"it reads a {found!r}, which is no variable")
    return found.read(call.graph)
