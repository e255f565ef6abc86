"""Every kind of kernel has one record, from which all that passes and reports ask is derived."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import gossamer.codegen.commands
import gossamer.codegen.passes
from gossamer.codegen.graph import Kernel, KernelGraph, Quantized
from gossamer.codegen.kinds import KINDS, geometry_of, kind_of, window_of, with_window
from gossamer.codegen.passes import borders, padding
from gossamer.codegen.passes.rows import Rows
from gossamer.codegen.passes.winograd import Tiles
from gossamer.schema.enums import TensorType
from gossamer.views import Buffer, Geometry, Requantization, View

ZERO = 7
REQUANTIZING = Requantization(ZERO, 0, np.ones(1, np.float32), 0, -128, 127)
VALID = Geometry((3, 3), (1, 1), (1, 1), (0, 0), (8, 8))
PADDED = Geometry((3, 3), (1, 1), (1, 1), (1, 1), (8, 8))
STORED = sorted(name for name, kind in KINDS.items() if kind.window is not None and kind.window.stored)


def settings_of(name: str, geometry: Geometry) -> object:
    """Settings of a kind with a window."""
    settings = KINDS[name].settings
    found = {
        Geometry: geometry,
        Quantized: Quantized(geometry, REQUANTIZING),
        Rows: Rows(None, geometry, 0),
        Tiles: Tiles(geometry, 2),
    }
    return found[settings] if isinstance(settings, type) else {"geometry": geometry}


def padded(name: str, value: int) -> KernelGraph:
    """An image of 8x8 pixels that a kernel writes, padded all around, and read by a kernel of a kind."""
    graph = KernelGraph()
    source = Buffer((1, 8, 8, 4), TensorType.INT8, 0)
    graph.inputs[0] = source
    x = graph.add("nonzero", [source.view()], (1, 8, 8, 4), TensorType.INT8)
    number = Buffer((), TensorType.INT8, -1, np.array(value, np.int8)).view()
    frame = graph.add("pad", [x, number], (1, 10, 10, 4), TensorType.INT8, (0, 1, 1, 0))
    names = [each for each in KINDS[name].operands if not each.endswith("?")]
    others = [Buffer((4,), TensorType.INT8, -1, np.zeros(4, np.int8)).view() for _ in names[1:]]
    y = graph.add(name, [frame, *others], (1, 8, 8, 4), TensorType.INT8, settings_of(name, VALID))
    graph.outputs[1] = y.buffer
    return graph


def test_every_kind_has_commands_and_all_commands_are_of_a_kind() -> None:
    (folder,) = gossamer.codegen.commands.__path__
    modules = {path.stem for path in Path(folder).glob("*.py") if "\ndef commands(" in path.read_text(encoding="utf-8")}
    assert modules == {name for name, kind in KINDS.items() if not kind.passing}
    assert all(name == kind.name for name, kind in KINDS.items())


def test_a_kind_is_spelled_in_one_file() -> None:
    """Beside its record and the name of its module: where it is made, or where its name is that all others use."""
    folder = Path(*gossamer.codegen.__path__)
    spelled: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        # Names of machine code, of its blocks, and of the tables of targets are others.
        if path.name in ("kinds.py", "ir.py", "tiles.py") or path.parent.name == "kernels":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        others = {  # keys of tables, which are about something else
            id(key)
            for node in ast.walk(tree)
            for key in (node.keys if isinstance(node, ast.Dict) else [getattr(node, "slice", None)])
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in KINDS and id(node) not in others:
                spelled.setdefault(str(node.value), set()).add(str(path.relative_to(folder)))
    assert {name: files for name, files in spelled.items() if len(files) > 1} == {}
    assert {name: spelled[name] for name in ("rows", "strassen", "winograd")} == {
        name: {f"passes/{name}.py"} for name in ("rows", "strassen", "winograd")
    }


@pytest.mark.parametrize("name", sorted(KINDS))
def test_records_agree_with_themselves(name: str) -> None:
    kind = KINDS[name]
    assert (kind.extras > 0) <= (kind.epilogue is not None)
    assert (kind.row > 1) <= (kind.lies == "rows")
    assert kind.operands[0][-1] != "?"
    assert [kind.role(len(kind.operands), at) for at in range(len(kind.operands))] == [
        each.strip("?*") for each in kind.operands
    ]
    assert kind.role(1, 1) == "extra"
    if kind.thins:
        assert kind.window is not None


@pytest.mark.parametrize("name", STORED)
def test_a_kind_with_a_window_has_borders_and_takes_padding(name: str) -> None:
    kind = KINDS[name]
    assert kind.window is not None
    zero = kind.window.zero(settings_of(name, VALID))
    graph = padded(name, zero)
    padding.run(graph)
    first, last = graph.kernels
    assert window_of(last) == geometry_of(last) == PADDED
    assert last.operands[0] is first.y
    assert borders.needs_border(last, first.y.buffer)
    assert borders.run(graph) == {first.y.buffer: (1, 1, 1, 1)}
    assert borders.fills(graph) == ({first.y.buffer: zero} if zero else {})


@pytest.mark.parametrize("name", STORED)
def test_what_is_padded_with_something_else_stays(name: str) -> None:
    graph = padded(name, 3)
    padding.run(graph)
    assert [kernel.kind for kernel in graph.kernels] == ["nonzero", "pad", name]


@pytest.mark.parametrize("name", sorted(KINDS.keys() - STORED))
def test_a_kind_without_one_has_none(name: str) -> None:
    image: View = Buffer((1, 8, 8, 4), TensorType.INT8).view()
    settings = {"window": ("max", PADDED), "quantized_window": {"geometry": PADDED}}.get(name)
    kernel = Kernel(name, [image], image, settings)
    assert geometry_of(kernel) is None
    assert borders.run(KernelGraph([kernel])) == {}
    assert not borders.needs_border(kernel, image.buffer)


def test_windows_are_exchanged() -> None:
    image = Buffer((1, 8, 8, 4), TensorType.INT8).view()
    for name in STORED:
        kernel = Kernel(name, [image], image, settings_of(name, VALID))
        kernel.settings = with_window(kernel, PADDED)
        assert geometry_of(kernel) == PADDED
        assert type(kernel.settings) is type(settings_of(name, VALID))
    expanded = Kernel("rows", [image], image, Rows((VALID, 0), VALID, 0))
    rows = with_window(expanded, PADDED)
    assert (rows.border, rows.geometry) == (PADDED, VALID)
    with pytest.raises(ValueError, match="copy has no window"):
        window_of(Kernel("copy", [image], image))
    with pytest.raises(ValueError, match="copy has no window"):
        with_window(Kernel("copy", [image], image), PADDED)


def test_operands_and_settings_are_those_of_the_kind() -> None:
    view = Buffer((1, 8, 8, 4), TensorType.FLOAT32).view()
    good = Kernel("contract", [view] * 3, view, PADDED)
    assert kind_of(good).takes(good)
    assert kind_of(good).takes(Kernel("contract", [view] * 4, view, PADDED))
    assert not kind_of(good).takes(Kernel("contract", [view] * 2, view, PADDED))
    assert not kind_of(good).takes(Kernel("contract", [view] * 3, view, {"geometry": PADDED}))
    levels = Kernel("dynamic_quantize", [view] * 2, view, {"rule": "qd8"})
    assert kind_of(levels).takes(levels)
    assert not kind_of(levels).takes(Kernel("dynamic_quantize", [view] * 2, view, {}))
    assert not kind_of(levels).takes(Kernel("dynamic_quantize", [view] * 2, view, {"rule": "qd8", "more": 0}))
