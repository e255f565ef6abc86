"""What operators become in the modes; modes, statistics and methods: tables of the manual, made from the code."""

from __future__ import annotations

import inspect
import sys

import numpy as np

from gossamer.dtypes import type_name
from gossamer.ops import all_ops
from gossamer.ops.op_def import OpDef, Quantizes
from gossamer.quantize.calibrate import STATISTICS
from gossamer.quantize.forms import FORMS
from gossamer.quantize.methods import METHODS
from gossamer.quantize.scheme import MODES, Scheme
from gossamer.schema import TensorType
from gossamer.tools._picture import DARK, PALETTE, ROW, Label, Line, Picture, Rectangle, Shape

FLOAT = TensorType.FLOAT32


def tables() -> dict[str, list[str]]:
    """The tables by their names."""
    return {
        "modes": ["| mode | activations | weights | |", "|---|---|---|---|", *modes()],
        "operators": ["| operator | int8 | int16x8 | weights alone |", "|---|---|---|---|", *operators()],
        "statistics": ["| ranges | |", "|---|---|", *statistics()],
        "methods": ["| method | |", "|---|---|", *methods()],
    }


def modes() -> list[str]:
    """The rows of modes; those that differ in the size of blocks alone are in one."""
    alike: dict[Scheme, list[str]] = {}
    for name, scheme in MODES.items():
        alike.setdefault(scheme._replace(block=min(scheme.block, 1)), []).append(name)
    rows = []
    for names in alike.values():
        scheme = MODES[names[0]]
        sizes = [str(MODES[name].block) for name in names if MODES[name].block]
        weights = _weights(scheme, f"{', '.join(sizes[:-1])} or {sizes[-1]} of a row" if sizes else "channel")
        told = " … ".join(f"`{name}`" for name in dict.fromkeys([names[0], names[-1]]))
        rows.append(f"| {told} | {_activations(scheme)} | {weights} | {_also(scheme)} |")
    return rows


def _activations(scheme: Scheme) -> str:
    if scheme.is_static:
        return type_name(scheme.activations)
    computed = scheme.weights not in (FLOAT, TensorType.FLOAT16) and not scheme.dequantized
    return "quantized as the model runs" if computed else "float32"


def _weights(scheme: Scheme, shared: str) -> str:
    integers = scheme.weights not in (FLOAT, TensorType.FLOAT16)
    return type_name(scheme.weights) + (f", a scale for each {shared}" if integers else "")


def _also(scheme: Scheme) -> str:
    parts = ["nothing else stays float"] if scheme.only else []
    parts += [f"biases are {type_name(scheme.biases)}"] if scheme.is_static else []
    parts += [f"weights of {scheme.least:,} elements and more"] if scheme.least else []
    parts += ["tables too"] if scheme.tables else []
    parts += ["made floats again before they are used"] if scheme.dequantized else []
    return ", ".join(parts)


def operators() -> list[str]:
    """The rows of operators: those of which the same becomes are in one."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for op in all_ops():
        if op.quantizes is not None or op.name in FORMS:
            cells = (_integers(op, TensorType.INT8), _integers(op, TensorType.INT16), _alone(op))
            rows.setdefault(cells, []).append(op.name)
    lines = sorted((", ".join(sorted(names)), " | ".join(cells)) for cells, names in rows.items())
    return [f"| {names} | {cells} |" for names, cells in lines]


def _integers(op: OpDef, kind: TensorType) -> str:
    rule = op.quantizes
    first = next((name for name in op.inputs if FLOAT in op.types.get(name.rstrip("?*"), ())), op.inputs[0])
    if rule is None or kind not in op.types.get(first.rstrip("?*"), ()):
        return "in other words" if op.name in FORMS else "float"
    parts = ["integers"]
    if rule.cell is not None:
        parts.append("the cell's state int16")
    if rule.same_scale or (rule.same_scale_16 and kind == TensorType.INT16):
        parts.append("one scale for inputs and outputs")
    if kind in rule.fixed:
        scale, point = rule.fixed[kind]
        parts.append(f"the result always 1/{round(1 / scale)}" + (f", {point}" if point else ""))
    if rule.weights is not None:
        parts.append(_of_weights(op, rule))
    return ", ".join(parts)


def _of_weights(op: OpDef, rule: Quantizes) -> str:
    assert rule.weights is not None
    along = "one scale" if rule.channel is None else f"scales along dimension {rule.channel}"
    return f"{op.inputs[rule.weights].rstrip('?*')} symmetric, {along}"


def _alone(op: OpDef) -> str:
    rule = op.quantizes
    if rule is None:
        return ""
    if rule.hybrid and rule.weights is not None:
        return op.inputs[rule.weights].rstrip("?*")
    if rule.table is not None:
        return f"{op.inputs[rule.table].rstrip('?*')}, as a table"
    return "all weights" if rule.cell_weights else ""


def _first(text: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split())


def statistics() -> list[str]:
    """The rows of statistics."""
    return [f"| `{name}` | {_first(made.__doc__)} |" for name, made in STATISTICS.items()]


def methods() -> list[str]:
    """The rows of methods, with all that their files say before the code."""
    rows = []
    for name, method in METHODS.items():
        said = inspect.cleandoc(sys.modules[method.__module__].__doc__ or "")
        rows.append(f"| `{name}` | {' '.join(said.split())} |")
    return rows


def ranges_picture() -> Picture:
    """How often the values of a tensor are seen, on a scale of logarithms, and the ranges that the statistics give: of
    values that fall off exponentially, those below zero faster."""
    places = (np.arange(20000) + 0.5) / 20000 - 0.5
    values = -np.sign(places) * np.log(1 - 2 * np.abs(places)) * np.where(places < 0, 0.6, 1)
    low, high = float(values.min()), float(values.max())
    left, right, floor, bins = 120.0, 620.0, 150.0, 100

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    counts, edges = np.histogram(values, bins)
    shapes: list[Shape] = [Label(8, ROW, "20,000 values, how many on a scale of logarithms, and ranges:")]
    for count, edge in zip(counts, edges, strict=False):
        height = float(np.log1p(count) / np.log1p(counts.max())) * (floor - 2 * ROW)
        width = (right - left) / bins
        shapes.append(Rectangle(at(float(edge)), floor - height, width, height, PALETTE[0], f"{count} from {edge:.2f}"))
    for number, (name, made) in enumerate(STATISTICS.items()):
        statistic, y = made(), floor + (number + 1) * ROW
        for sample in np.split(values[np.argsort(np.arange(20000) * 7919 % 20000)], 20):
            statistic.add(sample.astype(np.float32))
        ends = statistic.range()
        shapes.append(Label(left - 8, y, name, "end"))
        shapes.append(Rectangle(at(ends[0]), y - 4, at(ends[1]) - at(ends[0]), 8, PALETTE[1 + number]))
        shapes.append(Label(right + 8, y, f"{ends[0]:.2f} to {ends[1]:.2f}"))
    return Picture(740, int(floor) + 6 * ROW, [*shapes, Line(at(0), floor, at(0), floor + 5.5 * ROW, DARK)])
