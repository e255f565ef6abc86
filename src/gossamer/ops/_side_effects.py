"""Whether a function of the user's is more than a function of its arguments, as far as its code tells."""

from __future__ import annotations

import dis
import os
from collections import deque
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

_VISIBLE = frozenset({"print", "input", "open", "exec", "eval"})
_CHANGING = frozenset(
    {"append", "add", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "sort", "update", "write"}
)


def side_effect(function: Callable[..., Any], seen: frozenset[CodeType] = frozenset()) -> str | None:
    """Why a function is more than a function of its arguments, as far as its code tells: it writes to names outside of
    it, changes lists or dictionaries there, or prints. So do the functions that it calls by their names."""
    function = getattr(function, "__func__", function)  # of a method
    if not isinstance(function, FunctionType):
        return None
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    outside = {**function.__globals__, **{name: _content(cell) for name, cell in closure.items()}}
    return _side_effect_in(function.__code__, outside, frozenset(closure), seen)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _side_effect_in(
    code: CodeType, outside: Mapping[str, Any], free: frozenset[str], seen: frozenset[CodeType]
) -> str | None:
    if code in seen:
        return None
    seen |= {code}
    line, names = code.co_firstlineno, deque([""] * 3, 3)
    for instruction in dis.get_instructions(code):
        starts: Any = instruction.starts_line  # from Python 3.13 on, whether it starts one
        line = getattr(instruction, "line_number", starts) or line
        name, argument = instruction.opname, instruction.argval
        what = ""
        if name in ("STORE_GLOBAL", "DELETE_GLOBAL") or (name == "STORE_DEREF" and argument in free):
            what = f"it writes {argument!r}, which is not its own"
        elif name == "STORE_ATTR":
            what = f"it writes the attribute {argument!r} of something"
        elif name == "STORE_SUBSCR" and _can_change(outside.get(names[-2])):
            what = f"it changes {names[-2]!r}, which is not its own"
        elif name in ("LOAD_ATTR", "LOAD_METHOD") and argument in _CHANGING and _can_change(outside.get(names[-1])):
            what = f"it changes {names[-1]!r}, which is not its own"
        is_outside = name == "LOAD_GLOBAL" or (name == "LOAD_DEREF" and argument in free)
        names.append(argument if is_outside else "")
        if is_outside and argument in _VISIBLE and argument not in outside:
            what = f"it calls {argument}()"
        if what:
            return f"{os.path.basename(code.co_filename)}, line {line}: {what}"
        value = outside.get(argument) if is_outside else None
        if isinstance(value, FunctionType) and not _is_numpy(value):
            found = side_effect(value, seen)
            if found is not None:
                return found
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found = _side_effect_in(constant, outside, free & {*constant.co_freevars}, seen)
            if found is not None:
                return found
    return None


def _can_change(value: object) -> bool:
    return isinstance(value, list | dict | set | bytearray | deque) or hasattr(value, "write")


def _is_numpy(function: FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] in ("numpy", "gossamer")
