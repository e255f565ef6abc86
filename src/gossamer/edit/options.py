"""The options of an operator as a user writes them: names of the schema, values checked, enums by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer.dtypes import type_name
from gossamer.errors import EditError, did_you_mean
from gossamer.model.verifier import options_class
from gossamer.ops import all_ops, find_op
from gossamer.ops.op_def import OpDef
from gossamer.schema.enums import BuiltinOperator, TensorType
from gossamer.schema.fields import Field, Table

SHORT = {"activation": "fused_activation_function"}
"""Options that have a shorter name here."""


def builtin(name: str) -> OpDef:
    """The builtin operator of a name. Raises `EditError` if there is none, or it is not known here."""
    found = find_op(name) if name in BuiltinOperator.__members__ else None
    if found is None:
        raise EditError(f"there is no operator {name!r}{did_you_mean(name.upper(), [op.name for op in all_ops()])}")
    return found


def tensor_type(name: Any) -> TensorType:
    """A type of elements by its name, ``"float32"``, or as NumPy has it. Raises `EditError` if there is none."""
    if isinstance(name, TensorType):
        return name
    import numpy as np

    text = name if isinstance(name, str) else np.dtype(name).name
    if text.upper() in TensorType.__members__:
        return TensorType[text.upper()]
    known = [type_name(one) for one in TensorType]
    raise EditError(f"there is no type {text!r}{did_you_mean(text, known)} The types are {', '.join(known)}.")


def stored_options(op: OpDef, given: Mapping[str, Any], old: Table | None = None) -> Table:
    """The options of an operator with these values, else those that it has, else the defaults of the schema.

    Raises `EditError` for an option that it does not have and a value that the option cannot hold.
    """
    table = op.options
    if table is Table:  # operators that look at no option have a table all the same
        table = options_class(op.code) or Table
    fields = {}
    for name, value in given.items():
        name = SHORT.get(name, name)
        if name not in table.FIELD:
            has = [field for field in table.FIELD if field not in SHORT.values()]
            has += [short for short, field in SHORT.items() if field in table.FIELD]
            raise EditError(
                f"{op.name} has no option {name!r}{did_you_mean(name, has)} It has {', '.join(has) or 'none'}."
            )
        fields[name] = option_value(op, table.FIELD[name], value)
    return table(**fields) if type(old) is not table else old.replace(**fields)


def option_value(op: OpDef, field: Field, value: Any) -> Any:
    """A value as the option holds it; texts, as a command line has them, are read. Raises `EditError`."""
    if field.kind == "enum":
        members = field.enum.__members__  # type: ignore[union-attr]
        if field.enum is TensorType:
            return tensor_type(value)
        name = str(value).upper()
        if isinstance(value, int) and value in field.enum._value2member_map_:  # type: ignore[union-attr]
            return field.enum(value)  # type: ignore[misc]
        if name in members:
            return members[name]
        raise _misfit(op, field, value, ", ".join(members))
    if field.kind == "scalar":
        return _scalar(op, field, value)
    if field.kind == "string" and isinstance(value, str):
        return value
    if field.kind == "numbers":
        items = value.split(",") if isinstance(value, str) else value
        return tuple([_scalar(op, field, item) for item in items])
    if field.kind in ("array", "data"):
        import numpy as np

        return np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value, field.of.dtype)
    raise _misfit(op, field, value, "nothing that can be given here")


def _scalar(op: OpDef, field: Field, value: Any) -> Any:
    code = field.of.code
    if code == "?":
        truth = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
        if truth in (True, False):
            return bool(truth)
        raise _misfit(op, field, value, "true or false")
    try:
        number = float(value) if code == "f" else int(value)
    except (TypeError, ValueError):
        raise _misfit(op, field, value, "a number" if code == "f" else "an integer") from None
    if code != "f":
        bits = 8 * field.of.size
        low, high = (0, (1 << bits) - 1) if code.isupper() else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        if not low <= number <= high or number != (number if isinstance(value, str) else value):
            raise _misfit(op, field, value, f"an integer from {low} to {high}")
    return number


def _misfit(op: OpDef, field: Field, value: Any, allowed: str) -> EditError:
    return EditError(f"{op.name}: option {field.name} cannot be {value!r}; it is {allowed}")
