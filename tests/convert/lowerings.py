"""What the operators of sources become, as the code says it: the tables of the manual's page on converting."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gossamer.convert.lowerings import Lowerings
from gossamer.schema.enums import BuiltinOperator

SOURCES = ("tensorflow", "keras", "onnx", "torch", "jax")

DEEP = 6
"""Functions that call functions: so far are operators looked for."""


def lowerings(source: str) -> Mapping[str, Callable[..., Any]]:
    """The lowerings of a kind of source by the operator's name."""
    found: Lowerings[Any] = import_module(f"gossamer.convert.lowerings.{source}").lowers
    return found.all()


def table(source: str) -> list[str]:
    """The rows of a kind of source: operators that become the same are in one row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, function in lowerings(source).items():
        rows.setdefault(tuple(sorted(operators(name, function))), []).append(name)
    lines = sorted((", ".join(f"`{name}`" for name in sorted(names)), ", ".join(key)) for key, names in rows.items())
    return [f"| {names} | {became or 'nothing of its own'} |" for names, became in lines]


def operators(name: str, function: Callable[..., Any]) -> set[str]:
    """TFLite's operators that a lowering mentions: itself, in functions that it calls, and in tables of which it
    uses the row of the operator."""
    found: set[str] = set()
    waiting: list[tuple[Any, int]] = [(function, 0)]
    seen = set()
    while waiting:
        one, depth = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        words, names = mentioned(one)
        found |= words
        for item in named(one, names):
            if isinstance(item, dict) and name in item:
                found |= set(builtins_in(item[name]))
                waiting += [(part, depth) for part in parts(item[name]) if isinstance(part, types.FunctionType)]
            elif (
                isinstance(item, types.FunctionType) and depth < DEEP and item.__module__.startswith("gossamer.convert")
            ):
                if item.__module__.endswith(".blocks.shapes"):
                    found |= mentioned(item)[0]  # how open sizes are computed is nothing to tell
                elif not item.__module__.endswith((".graph", ".lowerings")):
                    waiting.append((item, depth + 1))
    return found


def parts(item: Any) -> Iterator[Any]:
    """An item, or what is in it."""
    yield from item if isinstance(item, (list, tuple)) else [item]


def builtins_in(item: Any) -> Iterator[str]:
    """The names of operators in a row of a table."""
    for part in parts(item):
        if isinstance(part, str) and part in BuiltinOperator.__members__:
            yield part


@cache
def functions_of(path: str) -> Mapping[int, ast.AST]:
    """The functions of a file by the number of their first line."""
    kinds = (ast.FunctionDef, ast.Lambda)
    found: dict[int, ast.AST] = {}
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, kinds):
            first = min([node.lineno, *[one.lineno for one in getattr(node, "decorator_list", ())]])
            found.setdefault(first, node)
    return found


@cache
def mentioned(function: Callable[..., Any]) -> tuple[frozenset[str], frozenset[str]]:
    """The operators and the names that the text of a function has."""
    code = function.__code__  # type: ignore[attr-defined]
    words, names = set(), set()
    for node in ast.walk(functions_of(code.co_filename)[code.co_firstlineno]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= set(builtins_in(node.value))
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
    return frozenset(words), frozenset(names)


def named(function: Callable[..., Any], names: frozenset[str]) -> Iterator[Any]:
    """What the names stand for in the module of a function."""
    space = function.__globals__  # type: ignore[attr-defined]
    for name in sorted(names):
        first, _, rest = name.partition(".")
        item = space.get(first)
        if rest and isinstance(item, types.ModuleType):
            yield getattr(item, rest, None)
        elif not rest and item is not None:
            yield item
