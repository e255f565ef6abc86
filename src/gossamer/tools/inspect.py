"""Show what is in a model: operators, tensors, signatures, metadata, sizes, memory plan and machine code."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gossamer import ConvertError, GossamerError, Interpreter, ModelError, OpResolverType
from gossamer.dtypes import type_name
from gossamer.inputs.port import affine
from gossamer.model import Model, read_model, verify_model
from gossamer.model.metadata import file_names, min_runtime_version, model_metadata, read_file
from gossamer.model.model import code_name, resolved_code
from gossamer.planner.planner import Plan
from gossamer.programs import host
from gossamer.programs.library import can_compile
from gossamer.resolver import BuiltinOpResolver, InstalledOpResolver, MutableOpResolver
from gossamer.schema import BuiltinOperator, Operator, OperatorCode, SubGraph, Tensor
from gossamer.targets import all_targets, host_target
from gossamer.tools._command import (
    Failure,
    Tool,
    console,
    existing_file,
    json_option,
    plural,
    table,
    write_json,
)
from gossamer.tools._machine_code import (
    describe_partitions,
    describe_programs,
    dump,
    partition_line,
    partition_tables,
    program_table,
)

if TYPE_CHECKING:
    from gossamer.runtime.coverage import Coverage

_HELP = """Show what is in MODEL: subgraphs, operators with versions (and which have no kernel here), inputs, outputs,
signatures, metadata, appended files, sizes, and the memory plan in figures.

The model is not run, but its tensors are allocated to plan the memory. If that fails, the reason stands in the place
of the plan and the exit code is still 0. --json has everything, whatever the other options say.

--partitions and --kernels show, instead, the machine code that runs it: which operators become which programs and why
the others do not, and the commands of the programs with the operations and the bytes that each has at least. --dump-ir
and --dump-asm write the kernels' texts, each into a file named after the kernel. --target shows what other CPUs would
run.
"""

_MANY = 16
"""Different zero points up to this number are in the report."""
_FEW = 3
"""Faults up to this number are printed."""


@click.command(
    cls=Tool, help=_HELP, short_help="Show what is in a model.", example="gossamer inspect mobilenet.tflite --tensors"
)
@click.argument("model")
@click.option("--tensors", is_flag=True, help="List every tensor.")
@click.option("--operators", is_flag=True, help="List every operator in the order of execution.")
@click.option("--partitions", is_flag=True, help="List what becomes machine code, and why the rest does not.")
@click.option("--kernels", is_flag=True, help="List the commands of the programs, with their kernels and their work.")
@click.option("--target", type=click.Choice(sorted(all_targets())), help="Show the machine code for this target.")
@click.option("--dump-ir", metavar="DIR", default=None, help="Write the LLVM IR of every kernel to DIR/KERNEL.ll.")
@click.option("--dump-asm", metavar="DIR", default=None, help="Write the assembly of every kernel to DIR/KERNEL.s.")
@click.option("--top", type=click.IntRange(min=0), default=5, show_default=True, help="How many constants to list.")
@json_option
def command(
    model: str,
    tensors: bool,
    operators: bool,
    partitions: bool,
    kernels: bool,
    target: str | None,
    dump_ir: str | None,
    dump_asm: str | None,
    top: int,
    as_json: bool,
) -> None:
    """See ``_HELP``, which click shows."""
    report = describe(existing_file(model, "model"))
    dumps = [(directory, suffix) for directory, suffix in ((dump_ir, ".ll"), (dump_asm, ".s")) if directory]
    asked = bool(partitions or kernels or dumps)
    shown = all_targets()[target] if target else None
    interpreter = _compiled(model, lenient=not asked) if asked or as_json else None
    coverage = _coverage(model) if interpreter is None else interpreter._engine.coverage()
    report["coverage"] = coverage.plain() if coverage is not None else None
    if interpreter is not None:
        report["partitions"] = describe_partitions(interpreter, shown)
        report["programs"] = describe_programs(interpreter, shown)
    notes = []
    for directory, suffix in dumps:
        files = dump(interpreter, Path(directory), suffix, shown) if interpreter else []
        if not files:
            raise Failure(f"{model}: no machine code runs it, so there is nothing to write; --partitions says why.")
        notes.append(f"wrote {plural(len(files), 'file')} to {directory}")
    if as_json:
        write_json(report)
        return
    if asked:
        _print_machine_code(report, partitions, kernels, notes)
    else:
        _print(report, tensors, operators, top, coverage.sentences() if coverage is not None else "")


def _coverage(path: str) -> Coverage | None:
    """Which operators run on the reference kernels, if that can be told without compiling kernels and the model can
    run; ``None`` else."""
    target = host_target(host.cpu_features())
    if target is not None and can_compile(target):
        return None
    try:
        engine = Interpreter(path)._engine
        engine.apply_default_delegate()
    except GossamerError:
        return None
    return engine.coverage()


def _compiled(path: str, lenient: bool) -> Interpreter | None:
    """The model with its programs. One that cannot be allocated is an error, or ``None`` if ``lenient``."""
    try:
        interpreter = Interpreter(path)
        interpreter.allocate_tensors()
    except GossamerError:
        if lenient:
            return None  # the report on memory says why
        raise
    return interpreter


def describe(path: str) -> dict[str, Any]:
    """What ``gossamer inspect`` knows of a model file, as plain values. Raises `ModelError` for a file that is none."""
    model = read_model(path)
    faults = verify_model(model, lenient=True)
    constants = _constants(model)
    by_type: Counter[str] = Counter()
    for entry in constants:
        by_type[entry["type"]] += entry["bytes"]
    size, stored = os.path.getsize(path), sum(by_type.values())
    return {
        "model": path,
        "schema_version": model.version,
        "description": model.description,
        "min_runtime_version": min_runtime_version(model),
        "operators": _operators(model),
        "subgraphs": [_subgraph(model, subgraph, index) for index, subgraph in enumerate(model.subgraphs)],
        "signatures": [
            {
                "key": signature.signature_key,
                "subgraph": signature.subgraph_index,
                "inputs": {entry.name: entry.tensor_index for entry in signature.inputs},
                "outputs": {entry.name: entry.tensor_index for entry in signature.outputs},
            }
            for signature in model.signature_defs
        ],
        "metadata": _metadata(model),
        "files": _files(model),
        "sizes": {"file": size, "constants": stored, "rest": size - stored, "by_type": dict(by_type.most_common())},
        "constants": constants,
        "faults": [{"subgraph": fault.subgraph, "place": fault.place, "message": fault.message} for fault in faults],
        **_memory(path, model),
    }


def _operators(model: Model) -> list[dict[str, Any]]:
    # One row for each operator and version, the most frequent first.
    counts = Counter(operator.opcode_index for subgraph in model.subgraphs for operator in subgraph.operators)
    rows = [
        {
            "name": code_name(code),
            "custom": resolved_code(code) == BuiltinOperator.CUSTOM,
            "version": code.version,
            "count": counts[index],
            "kernel": _has_kernel(code),
        }
        for index, code in enumerate(model.operator_codes)
    ]
    return sorted(rows, key=lambda row: (-int(row["count"]), str(row["name"]), int(row["version"])))


def _has_kernel(code: OperatorCode) -> bool:
    resolver, number = MutableOpResolver(BuiltinOpResolver(), InstalledOpResolver()), resolved_code(code)
    if number == BuiltinOperator.CUSTOM:
        found = resolver.find_custom(code.custom_code, code.version) is not None
        if found or not code.custom_code.startswith("Flex"):
            return found
        from gossamer.flex.kernels import find_kernel

        return find_kernel(code.custom_code.removeprefix("Flex")) is not None
    try:
        return resolver.find_builtin(BuiltinOperator(number), code.version) is not None
    except ValueError:
        return False


def _attributes(model: Model, operator: Operator) -> dict[str, Any]:
    """What one of TensorFlow's operators says of itself."""
    if not model.operator_name(operator).startswith("Flex"):
        return {}
    from gossamer.flex.node import flex_node
    from gossamer.flex.user import said

    try:
        return {"attributes": said(flex_node(model.custom_options(operator).tobytes()))}
    except ConvertError as error:
        return {"attributes": {}, "fault": str(error)}


def _subgraph(model: Model, subgraph: SubGraph, index: int) -> dict[str, Any]:
    return {
        "index": index,
        "name": subgraph.name,
        "inputs": list(subgraph.inputs),
        "outputs": list(subgraph.outputs),
        "operators": [
            {
                "index": position,
                "name": model.operator_name(operator),
                "version": model.operator_code(operator).version,
                "inputs": list(operator.inputs),
                "outputs": list(operator.outputs),
                **_attributes(model, operator),
            }
            for position, operator in enumerate(subgraph.operators)
        ],
        "tensors": [_tensor(model, tensor, position) for position, tensor in enumerate(subgraph.tensors)],
    }


def _tensor(model: Model, tensor: Tensor, index: int) -> dict[str, Any]:
    data = model.tensor_data(tensor)
    size = len(data) if data is not None else model.tensor_bytes(tensor)
    kind = "constant" if data is not None else "variable" if tensor.is_variable else "computed"
    return {
        "index": index,
        "name": tensor.name,
        "type": type_name(tensor.type),
        "shape": list(tensor.shape),
        "shape_signature": list(tensor.shape_signature or tensor.shape),
        "kind": kind,
        "bytes": size,
        "sparse": tensor.sparsity is not None,
        "quantization": _quantization(tensor),
    }


def _quantization(tensor: Tensor) -> dict[str, Any] | None:
    stored = tensor.quantization
    if stored is None or not (stored.scale.size or stored.details is not None):
        return None
    result: dict[str, Any] = {"dimension": stored.quantized_dimension, "scales": stored.scale.size}
    if stored.scale.size:
        result["least_scale"], result["greatest_scale"] = float(stored.scale.min()), float(stored.scale.max())
        result["zero_points"] = sorted({int(point) for point in stored.zero_point})[:_MANY]
    if stored.details is not None:
        result["details"] = type(stored.details).__name__
    return result


def _constants(model: Model) -> list[dict[str, Any]]:
    # The largest first; a buffer that several tensors share counts once, under the first of them.
    seen: set[int] = set()
    rows = []
    for number, subgraph in enumerate(model.subgraphs):
        for index, tensor in enumerate(subgraph.tensors):
            data = model.tensor_data(tensor)
            if data is None or tensor.buffer in seen:
                continue
            seen.add(tensor.buffer)
            rows.append(
                {
                    "subgraph": number,
                    "tensor": index,
                    "name": tensor.name,
                    "type": type_name(tensor.type),
                    "shape": list(tensor.shape),
                    "bytes": len(data),
                }
            )
    return sorted(rows, key=lambda row: -int(row["bytes"]))


def _metadata(model: Model) -> dict[str, Any]:
    entries = []
    for entry in model.metadata:
        data = model.metadata_data(entry.name)
        entries.append({"name": entry.name, "bytes": 0 if data is None else len(data)})
    result: dict[str, Any] = {"entries": entries}
    try:
        stored = model_metadata(model)
    except ModelError as error:
        return {**result, "error": str(error)}
    if stored is not None:
        for name in ("name", "description", "version", "author", "license"):
            result[name] = getattr(stored, name)
    return result


def _files(model: Model) -> list[dict[str, Any]]:
    return [{"name": name, **_file_size(model, name)} for name in file_names(model)]


def _file_size(model: Model, name: str) -> dict[str, Any]:
    try:
        return {"bytes": len(read_file(model, name))}
    except ModelError as error:
        return {"bytes": None, "error": str(error)}


def _memory(path: str, model: Model) -> dict[str, list[dict[str, Any]]]:
    try:
        # The plan of TFLite: delegates take tensors out of it.
        interpreter = Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        interpreter.allocate_tensors()
    except GossamerError as error:
        return {"memory": [{"subgraph": 0, "error": " ".join(str(error).split())}], "shared_memory": []}
    rows = []
    for number, subgraph in enumerate(model.subgraphs):
        try:
            plan = interpreter.memory_plan(number)
            persistent = interpreter.memory_plan(number, persistent=True)
        except RuntimeError:
            rows.append({"subgraph": number, "error": "planned when it is called"})
            continue
        rows.append(
            {
                "subgraph": number,
                "arena": plan.size,
                "persistent": persistent.size,
                "lower_bound": plan.lower_bound(),
                "peak": _peak(plan, model, subgraph),
            }
        )
    report = interpreter.memory_report()
    shared = [
        {
            "subgraphs": list(block.subgraphs),
            "bytes": block.bytes,
            "saved": sum(report.arenas[index] for index in block.subgraphs) - block.bytes,
        }
        for block in report.shared
        if len(block.subgraphs) > 1
    ]
    return {"memory": rows, "shared_memory": shared}


def _peak(plan: Plan, model: Model, subgraph: SubGraph) -> dict[str, Any] | None:
    """The first operator at which the most bytes are alive, ``None`` where there is none."""
    alive = [0] * (len(subgraph.operators) + 1)
    for _, request in plan.placements:
        if request.shares is None and request.first_use < len(subgraph.operators):
            alive[request.first_use] += request.size
            alive[min(request.last_use + 1, len(subgraph.operators))] -= request.size
    if not subgraph.operators:
        return None
    for position in range(1, len(alive)):
        alive[position] += alive[position - 1]
    index = max(range(len(subgraph.operators)), key=lambda position: alive[position])
    operator = subgraph.operators[index]
    outputs = [subgraph.tensors[i].name for i in operator.outputs if 0 <= i < len(subgraph.tensors)]
    return {"operator": index, "name": model.operator_name(operator), "outputs": outputs, "bytes": alive[index]}


def _print(report: dict[str, Any], tensors: bool, operators: bool, top: int, left: str) -> None:
    out = console()
    for name, value in (*_lines(report), *[("slow", left)] * bool(left)):
        out.print(f"{name:<14}{value}", markup=False)
    out.print()
    out.print(table([">count", "operator", ">version", "kernel"], _operator_rows(report["operators"])))
    for subgraph in report["subgraphs"]:
        if len(report["subgraphs"]) > 1:
            out.print(_subgraph_title(subgraph), markup=False)
        for columns, rows in _subgraph_tables(subgraph, tensors, operators):
            out.print(table(columns, rows))
    for columns, rows in _closing_tables(report, top):
        if rows:
            out.print(table(columns, rows))


def _print_machine_code(report: dict[str, Any], partitions: bool, kernels: bool, notes: Sequence[str]) -> None:
    out = console()
    if not report["partitions"]:
        out.print("no delegate: there is no machine code for this CPU", markup=False)
    for claims in report["partitions"]:
        out.print(partition_line(claims), markup=False)
        for columns, rows in partition_tables(claims) if partitions else ():
            if rows:
                out.print(table(columns, rows))
    if kernels and report["programs"]:
        out.print(table(*program_table(report["programs"])))
    for note in notes:
        out.print(note, markup=False)


def _lines(report: dict[str, Any]) -> Iterator[tuple[str, object]]:
    sizes, metadata = report["sizes"], report["metadata"]
    yield "model", report["model"]
    if report["description"]:
        yield "description", report["description"]
    if report["min_runtime_version"]:
        yield "runtime", f"{report['min_runtime_version']} or later"
    parts = ", ".join(f"{plural(count, 'byte')} of {name}" for name, count in sizes["by_type"].items())
    constants = f"{sizes['constants']:,} of constants" + (f" ({parts})" if parts else "")
    yield "size", f"{plural(sizes['file'], 'byte')}: {constants}, {sizes['rest']:,} of all else"
    for row in report["memory"]:
        yield "memory" if len(report["memory"]) == 1 else f"memory [{row['subgraph']}]", _memory_line(row)
    for block in report["shared_memory"]:
        names = ", ".join(map(str, block["subgraphs"]))
        yield "shared", f"subgraphs {names} take turns in {plural(block['bytes'], 'byte')}, {block['saved']:,} saved"
    for key in ("name", "version", "author", "license", "error"):
        if metadata.get(key):
            yield f"meta {key}", metadata[key]
    for fault in report["faults"][:_FEW]:
        yield "fault", f"{fault['place']}: {fault['message']}"
    if len(report["faults"]) > _FEW:
        yield "", f"and {len(report['faults']) - _FEW} more, which --json has"


def _memory_line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"no plan: {row['error']}"
    text = f"{plural(row['arena'], 'byte')} of arena, at least {row['lower_bound']:,} needed"
    if row["persistent"]:
        text += f", {plural(row['persistent'], 'byte')} persistent"
    if row["peak"]:
        text += f"; {row['peak']['bytes']:,} alive at {row['peak']['name']} (node {row['peak']['operator']})"
    return text


def _operator_rows(operators: Sequence[dict[str, Any]]) -> _Rows:
    return [
        (
            row["count"],
            row["name"] + (" (custom)" if row["custom"] else ""),
            row["version"],
            "yes" if row["kernel"] else "none",
        )
        for row in operators
    ]


def _subgraph_title(subgraph: dict[str, Any]) -> str:
    name = f' "{subgraph["name"]}"' if subgraph["name"] else ""
    counts = f"{plural(len(subgraph['operators']), 'operator')}, {plural(len(subgraph['tensors']), 'tensor')}"
    return f"subgraph {subgraph['index']}{name}: {counts}"


_Rows = list[tuple[object, ...]]
_TENSOR_COLUMNS = (">tensor", "name", "type", "shape", ">bytes", "quantization")


def _subgraph_tables(subgraph: dict[str, Any], tensors: bool, operators: bool) -> Iterator[tuple[Sequence[str], _Rows]]:
    everything = subgraph["tensors"]
    ends: _Rows = []
    for what in ("input", "output"):
        ends += [(what, *_tensor_row(everything[i])) for i in subgraph[f"{what}s"] if 0 <= i < len(everything)]
    yield ("", *_TENSOR_COLUMNS), ends
    if operators:
        flex = any("attributes" in o for o in subgraph["operators"])
        columns = (">node", "operator", ">version", "inputs", "outputs", *(["attributes"] if flex else []))
        yield columns, [_operator_row(o, flex) for o in subgraph["operators"]]
    if tensors:
        yield ("kind", *_TENSOR_COLUMNS), [(t["kind"], *_tensor_row(t)) for t in everything]


def _operator_row(operator: dict[str, Any], flex: bool) -> tuple[object, ...]:
    row = operator["index"], operator["name"], operator["version"], operator["inputs"], operator["outputs"]
    said = ", ".join(f"{name}={value}" for name, value in operator.get("attributes", {}).items())
    return (*row, operator.get("fault", said)) if flex else row


def _closing_tables(report: dict[str, Any], top: int) -> Iterator[tuple[Sequence[str], _Rows]]:
    yield (
        ("signature", ">subgraph", "inputs", "outputs"),
        [(s["key"], s["subgraph"], ", ".join(s["inputs"]), ", ".join(s["outputs"])) for s in report["signatures"]],
    )
    yield ("metadata", ">bytes"), [(entry["name"], f"{entry['bytes']:,}") for entry in report["metadata"]["entries"]]
    yield ("appended file", ">bytes"), [(f["name"], f.get("error") or f"{f['bytes']:,}") for f in report["files"]]
    yield (
        (">tensor", "largest constants", "type", "shape", ">bytes"),
        [(c["tensor"], c["name"], c["type"], c["shape"], f"{c['bytes']:,}") for c in report["constants"][:top]],
    )


def _tensor_row(tensor: dict[str, Any]) -> tuple[object, ...]:
    shape = "[" + ", ".join("?" if n < 0 else str(n) for n in tensor["shape_signature"]) + "]"
    size = "" if tensor["bytes"] is None else f"{tensor['bytes']:,}"
    return tensor["index"], tensor["name"], tensor["type"], shape, size, _quantization_text(tensor["quantization"])


def _quantization_text(stored: dict[str, Any] | None) -> str:
    if stored is None:
        return ""
    if not stored["scales"]:
        return str(stored["details"])
    points = stored["zero_points"] or [0]
    if stored["scales"] == 1:
        return affine(stored["least_scale"], points[0])
    spread = f"{stored['least_scale']:.3g} to {stored['greatest_scale']:.3g}"
    text = f"{stored['scales']} scales {spread} along {stored['dimension']}"
    return text if points == [0] else f"{text}, zero points {points[0]} to {points[-1]}"
