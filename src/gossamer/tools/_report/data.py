"""All that a report shows of a model, as plain values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer import GossamerError, Interpreter, OpResolverType, __version__
from gossamer.micro import measure
from gossamer.model import Model, read_model
from gossamer.planner.greedy import GreedyMemoryPlanner
from gossamer.planner.linear import MAX_BUFFERS, LinearMemoryPlanner
from gossamer.planner.memory_planner import MemoryPlanner
from gossamer.planner.planner import NEVER, Plan
from gossamer.planner.search import SearchMemoryPlanner
from gossamer.quantize.calibrate import Sample
from gossamer.schema import Operator, flexbuffers
from gossamer.schema.enumeration import IntEnum
from gossamer.schema.fields import Table
from gossamer.tools import inspect, micro, versions
from gossamer.tools._command import Failure
from gossamer.tools._machine_code import describe_partitions, describe_programs
from gossamer.tools._report import statistics
from gossamer.tools._report.layers import LAYER, draw, fold

LETTER, SMALL_LETTER, MARGIN, NARROWEST = 8.6, 6.2, 22.0, 90.0
"""Pixels of a character in the first and in the second line of a box, of the space beside them, of the least box."""

EXPANDED = "operators of this subgraph run as several others, which have numbers of their own"

MOST_SHOWN = 64
"""Elements of an option that are shown."""


def describe(
    path: str,
    profile: Callable[[], dict[str, Any] | None] | None = None,
    samples: Iterable[Sample] | None = None,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Any]:
    """The report on a model file. ``profile`` measures it, ``samples`` are run for the statistics of its tensors.

    Raises `ModelError` for a file that is no model, and `ConvertError` for a sample that does not fit. A model that
    cannot be allocated has a report too, with the reason.
    """
    model = read_model(path)
    seen = inspect.describe(path)
    graphs = seen.pop("subgraphs")
    constants = seen.pop("constants")
    interpreter, failure = _allocated(path, OpResolverType.AUTO)
    plain, _ = _allocated(path, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    partitions = describe_partitions(interpreter) if interpreter else []
    programs = describe_programs(interpreter) if interpreter else []
    measured = profile() if profile is not None and interpreter is not None else None
    for graph in graphs:
        _add_drawing(graph)
        _add_options(model, graph)
        _add_paths(graph, partitions)
    _add_statistics(model, graphs, plain, samples, progress)
    if measured is not None:
        _add_times(graphs, measured)
    work = Counter[str]()
    for program in programs:
        work.update({name: program["total"][name] for name in ("flops", "read", "written")})
    return {
        "gossamer": __version__,
        "summary": {
            **seen,
            "operator_count": sum(len(graph["operators"]) for graph in graphs),
            "tensor_count": sum(len(graph["tensors"]) for graph in graphs),
            "parameters": _parameters(model),
            "largest_constants": constants[:10],
            "failure": failure,
            "work": dict(work),
            "programs": [
                {"subgraph": p["subgraph"], "program": p["program"], "target": p["target"], "memory": p["memory"],
                 "commands": len(p["commands"]), "kernels": len(p["kernels"])}
                for p in programs
            ],
        },
        "subgraphs": graphs,
        "arenas": list(_arenas(model, plain)) if plain else [],
        "profile": None if measured is None else _for_page(measured),
        "versions": _versions(model, path),
        "micro": _micro(model, path),
        "sampled": samples is not None,
        "row_height": LAYER,
    }  # fmt: skip


def _allocated(path: str, resolver: OpResolverType) -> tuple[Interpreter | None, str | None]:
    try:
        interpreter = Interpreter(path, experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
    except GossamerError as error:
        return None, " ".join(str(error).split())
    return interpreter, None


def _parameters(model: Model) -> int:
    """Elements of the constants that are floats or quantized, each buffer once: what was trained."""
    seen: dict[int, int] = {}
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            stored = tensor.quantization
            trained = "FLOAT" in tensor.type.name or (stored is not None and stored.scale.size > 0)
            if trained and model.tensor_data(tensor) is not None:
                seen[tensor.buffer] = math.prod(tensor.shape)
    return sum(seen.values())


def _add_drawing(graph: dict[str, Any]) -> None:
    """Boxes for inputs, operators and outputs, in this order, and the edges between them: ``[from, to, tensor,
    bends]``. A box has its text, its width in pixels, its place (pixels to the right, rows downwards) and its layer."""
    tensors, operators = graph["tensors"], graph["operators"]
    boxes = [{"input": index} for index in graph["inputs"]]
    maker: dict[int, int] = {index: number for number, index in enumerate(graph["inputs"])}
    edges: dict[tuple[int, int], int] = {}

    def lead(index: int, number: int) -> None:
        if index in maker and maker[index] != number:
            edges.setdefault((maker[index], number), index)

    for position, operator in enumerate(operators):
        for index in operator["inputs"]:
            lead(index, len(boxes))
        maker.update({index: len(boxes) for index in operator["outputs"]})
        boxes.append({"operator": position})
    for index in graph["outputs"]:
        lead(index, len(boxes))
        boxes.append({"output": index})
    for box in boxes:
        _name(box, operators, tensors)
    widths = [box["width"] for box in boxes]
    drawing = draw(widths, list(edges))
    folded = fold(drawing, widths, edges)
    for box, (x, y), (_, layer) in zip(boxes, folded.places, drawing.places, strict=True):
        box.update(x=x, y=y, layer=layer)
    graph["boxes"] = boxes
    graph["edges"] = [[*edge, index, folded.bends.get(edge, [])] for edge, index in edges.items()]


def _name(box: dict[str, Any], operators: Sequence[dict[str, Any]], tensors: Sequence[dict[str, Any]]) -> None:
    if "operator" in box:
        operator = operators[box["operator"]]
        title, index = operator["name"], next(iter(operator["outputs"]), -1)
    else:
        ((title, index),) = box.items()
    shape = tensors[index] if 0 <= index < len(tensors) else None
    below = "" if shape is None else f"{shape['type']} {'x'.join(map(str, shape['shape'])) or 'scalar'}"
    width = max(NARROWEST, MARGIN + LETTER * len(title), MARGIN + SMALL_LETTER * len(below))
    box.update(title=title, below=below, width=round(width))


def _add_options(model: Model, graph: dict[str, Any]) -> None:
    stored = model.subgraphs[graph["index"]].operators
    for row, operator in zip(graph["operators"], stored, strict=True):
        row["options"] = _options(model, operator)


def _options(model: Model, operator: Operator) -> dict[str, Any]:
    table = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    if table is not None:
        return {field.name: _plain(getattr(table, field.name)) for field in table.FIELDS}
    custom = model.custom_options(operator).tobytes()
    if not custom:
        return {}
    try:
        known = flexbuffers.loads(custom)
    except ValueError:
        known = None
    return _plain(known) if isinstance(known, Mapping) else {"custom_options": f"{len(custom)} bytes"}


def _plain(value: Any) -> Any:
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, Table):
        return {field.name: _plain(getattr(value, field.name)) for field in value.FIELDS}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (np.ndarray, list, tuple)):
        items = [_plain(item) for item in value[:MOST_SHOWN]]
        return items if len(value) <= MOST_SHOWN else [*items, f"and {len(value) - MOST_SHOWN} more"]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _add_paths(graph: dict[str, Any], partitions: Sequence[dict[str, Any]]) -> None:
    """What runs each operator, ``delegate``: the program's number, or ``None`` for the reference kernel, and why."""
    for operator in graph["operators"]:
        operator["delegate"], operator["why"] = None, "no delegate took it"
    for claims in partitions:
        if claims["subgraph"] != graph["index"]:
            continue
        if claims["operators"] != len(graph["operators"]):
            for operator in graph["operators"]:
                operator["why"] = EXPANDED
            return
        for refusal in claims["refusals"]:
            graph["operators"][refusal["node"]]["why"] = refusal["reason"]
        for number, partition in enumerate(claims["partitions"]):
            for node in partition["nodes"]:
                runs = partition["failure"] is None
                label = f"{claims['delegate']} {number}" if runs else None
                graph["operators"][node].update(delegate=label, why=partition["failure"])


def _add_times(graphs: Sequence[dict[str, Any]], measured: dict[str, Any]) -> None:
    """``us``: microseconds of each operator. Those that are computed as one share the time evenly; ``shared`` is how
    many they are, and ``kernels`` which they run, with their times."""
    numbered = [all(operator["why"] != EXPANDED for operator in graph["operators"]) for graph in graphs]
    for row in measured["operators"]:
        for node in row["nodes"] if numbered[row["subgraph"]] else ():
            operator = graphs[row["subgraph"]]["operators"][node]
            operator.update(us=row["us"] / len(row["nodes"]), shared=len(row["nodes"]), kernels=[])
    for program in measured["programs"]:
        operators = graphs[program["subgraph"]]["operators"]
        for command in program["commands"]:
            nodes = [int(origin.rpartition(" ")[2]) for origin in command["operators"]]
            for node in nodes if numbered[program["subgraph"]] else ():
                operators[node].setdefault("kernels", []).append([command["kernel"], command["us"], len(nodes)])


def _add_statistics(
    model: Model,
    graphs: Sequence[dict[str, Any]],
    interpreter: Interpreter | None,
    samples: Iterable[Sample] | None,
    progress: Callable[[int], object] | None,
) -> None:
    found = statistics.constants(model, interpreter) if interpreter is not None else {}
    if samples is not None:
        found |= statistics.computed(model, samples, progress)
    for (subgraph, index), one in found.items():
        graphs[subgraph]["tensors"][index]["statistics"] = one.plain()


PLANNERS: tuple[type[MemoryPlanner], ...] = (GreedyMemoryPlanner, SearchMemoryPlanner, LinearMemoryPlanner)
"""What TFLite's plan is compared with, on the same buffers."""


def _arenas(model: Model, interpreter: Interpreter) -> Iterator[dict[str, Any]]:
    """The plans of each subgraph's arena: TFLite's first, then those of the planners of one fixed arena."""
    for number, subgraph in enumerate(model.subgraphs):
        try:
            plan = interpreter.memory_plan(number)
        except RuntimeError:
            continue  # it is planned when it is called
        if not plan.placements:
            continue
        steps = len(subgraph.operators)
        plans = [{"planner": "TFLite", **_plan(plan, steps)}]
        for planner in PLANNERS:
            other = _planned(planner(), plan, steps)
            if other is not None:
                plans.append({"planner": f"TFLite Micro, {planner.name}" if planner is not SearchMemoryPlanner
                              else planner.name, **_plan(other, steps)})  # fmt: skip
        yield {"subgraph": number, "steps": steps, "plans": plans}


def _planned(planner: MemoryPlanner, plan: Plan, steps: int) -> Plan | None:
    """The buffers of a plan that have bytes of their own, by another planner, with the same numbers."""
    requests = [request for _, request in plan.placements if request.shares is None]
    if isinstance(planner, LinearMemoryPlanner) and len(requests) > MAX_BUFFERS:
        return None
    for request in requests:
        planner.add_buffer(request.size, max(request.first_use, 0), min(request.last_use, steps))
    placed = planner.plan()
    numbered = zip(placed.placements, requests, strict=True)
    return Plan(
        placed.arena,
        placed.size,
        tuple(placement._replace(request=request) for placement, request in numbered),
    )


def _plan(plan: Plan, steps: int) -> dict[str, Any]:
    return {
        "bytes": plan.size,
        "lower_bound": plan.lower_bound(),
        "buffers": [
            [r.buffer, offset, r.size, max(r.first_use, 0), steps if r.last_use == NEVER else min(r.last_use, steps)]
            for offset, r in plan.placements
            if r.size and r.shares is None and r.first_use != NEVER
        ],
    }


def _for_page(measured: dict[str, Any]) -> dict[str, Any]:
    programs = []
    for program in measured["programs"]:
        commands = [{k: v for k, v in c.items() if k != "arguments"} for c in program["commands"]]
        programs.append({**program, "commands": commands})
    return {**{k: v for k, v in measured.items() if k != "operators"}, "programs": programs}


def _versions(model: Model, path: str) -> dict[str, Any]:
    found = versions.describe(model, path)
    return {**found, "operators": versions.grouped(found["operators"])}


def _micro(model: Model, path: str) -> dict[str, Any]:
    try:
        micro.require_operators(model, path)
        found = micro.describe(model, path, measure(model))
    except Failure as error:
        return {"error": error.message.removeprefix(f"{path}: ")}
    except GossamerError as error:
        return {"error": " ".join(str(error).split())}
    found.pop("plan")
    return found
