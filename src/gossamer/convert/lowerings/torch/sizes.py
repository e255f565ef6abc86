"""Numbers that follow from sizes: int32 scalars, plain where they are known. Checks of them are nothing here."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.reductions import count
from gossamer.convert.blocks.shapes import cast, reshape, size_vector
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.torch import Call, Number, lowers
from gossamer.schema.enums import TensorType


@lowers("aten.sym_size", "aten.size")
def sym_size(call: Call, self: Value, dim: int) -> Number:
    axis = dim % self.rank
    known = self.dims[axis]
    if known is not None:
        return known
    return call.add("STRIDED_SLICE", size_vector(call.graph, self), [axis], [axis + 1], [1], shrink_axis_mask=1)


@lowers("aten.sym_numel", "aten.numel")
def sym_numel(call: Call, self: Value) -> Number:
    return count(call.graph, self, None, TensorType.INT32)


@lowers("aten.sym_stride", "aten.sym_storage_offset")
def sym_stride(call: Call, self: Value, dim: int = 0) -> Number:
    refuse("asks how a tensor lies in memory; reshape it instead")


@lowers("aten.item", "aten._local_scalar_dense")
def item(call: Call, self: Value) -> Value:
    type = TensorType.FLOAT32 if self.dtype.kind == "f" else TensorType.INT32
    return reshape(call.graph, cast(call.graph, self, self.type if self.type == TensorType.BOOL else type), [])


@lowers("aten._assert_async", "aten._assert_scalar", "aten._assert_tensor_metadata", "aten.sym_constrain_range")
@lowers("aten.sym_constrain_range_for_size", "aten._functional_assert_async", "aten._functional_sym_constrain_range")
@lowers("aten._functional_assert_scalar", "aten._print", "higher_order.print", "aten._make_dep_token")
def nothing(call: Call, *ignored: Any, **others: Any) -> list[Value]:
    return []


_PLAIN: dict[str, Callable[..., Any]] = {
    "_operator.add": operator.add,
    "_operator.sub": operator.sub,
    "_operator.mul": operator.mul,
    "_operator.floordiv": operator.floordiv,
    "_operator.mod": operator.mod,
    "_operator.truediv": operator.truediv,
    "_operator.pow": operator.pow,
    "_operator.neg": operator.neg,
    "_operator.pos": operator.pos,
    "_operator.eq": operator.eq,
    "_operator.ne": operator.ne,
    "_operator.lt": operator.lt,
    "_operator.le": operator.le,
    "_operator.gt": operator.gt,
    "_operator.ge": operator.ge,
    "_operator.and_": operator.and_,
    "_operator.or_": operator.or_,
    "_operator.not_": operator.not_,
    "_operator.abs": abs,
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "math.trunc": math.trunc,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_float": float,
    "torch.sym_int": int,
    "torch.sym_not": operator.not_,
    "torch._sym_sqrt": math.sqrt,
}
"""Functions of numbers; those that follow from open sizes become the operator in `_OPERATORS`."""

_OPERATORS = {
    "add": "ADD",
    "sub": "SUB",
    "mul": "MUL",
    "floordiv": "FLOOR_DIV",
    "mod": "FLOOR_MOD",
    "truediv": "DIV",
    "pow": "POW",
    "neg": "NEG",
    "eq": "EQUAL",
    "ne": "NOT_EQUAL",
    "lt": "LESS",
    "le": "LESS_EQUAL",
    "gt": "GREATER",
    "ge": "GREATER_EQUAL",
    "and_": "LOGICAL_AND",
    "or_": "LOGICAL_OR",
    "not_": "LOGICAL_NOT",
    "abs": "ABS",
    "floor": "FLOOR",
    "ceil": "CEIL",
    "sym_max": "MAXIMUM",
    "sym_min": "MINIMUM",
    "sym_not": "LOGICAL_NOT",
    "_sym_sqrt": "SQRT",
}


@lowers(*_PLAIN)
def number(call: Call, *numbers: Number, **named: Number) -> Number:
    given = [*numbers, *named.values()]
    if not any(isinstance(one, Value) for one in given):
        found: Number = _PLAIN[call.target](*given)
        return found
    name = call.target.rpartition(".")[2]
    first = next(one for one in given if isinstance(one, Value))
    floats = name in ("truediv", "sym_float", "_sym_sqrt") or any(
        isinstance(one, float) or (isinstance(one, Value) and one.dtype.kind == "f") for one in given
    )
    if name == "sym_float":
        return cast(call.graph, first, TensorType.FLOAT32)
    if name in ("pos", "sym_int", "trunc"):
        return cast(call.graph, first, TensorType.INT32)
    if first.type == TensorType.BOOL:
        type = TensorType.BOOL
    else:
        type = TensorType.FLOAT32 if floats else TensorType.INT32
    if not floats and name in ("floor", "ceil"):
        return first
    made = widened(call.graph, _OPERATORS[name], *[call.operand(one, type) for one in given])
    return cast(call.graph, made, TensorType.INT32) if name in ("floor", "ceil") else made


@lowers("torch.sym_ite")
def sym_ite(call: Call, *given: Number) -> Number:
    condition, then, otherwise = given
    if not isinstance(condition, Value):
        return then if condition else otherwise
    return call.add("SELECT_V2", condition, *[call.operand(one, TensorType.INT32) for one in (then, otherwise)])


@lowers("torch.sym_sum")
def sym_sum(call: Call, args: Any) -> Number:
    total: Number = 0
    for one in args:
        if isinstance(total, Value) or isinstance(one, Value):
            total = call.add("ADD", *[call.operand(x, TensorType.INT32) for x in (total, one)])
        else:
            total = total + one
    return total
