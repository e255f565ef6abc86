"""The default delegate's programs of a model, as plain values and as tables: partitions, kernels, texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gossamer import Interpreter
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.tools._command import plural

if TYPE_CHECKING:
    from gossamer.codegen.spec import KernelSpec
    from gossamer.targets import Target

Rows = list[tuple[object, ...]]
Table = tuple[Sequence[str], Rows]

_SHOWN = 12
"""Numbers of nodes up to which they are all printed."""

PROGRAM_COLUMNS = (">program", ">nodes", "operators", ">commands", ">kernels")
REFUSAL_COLUMNS = (">count", "operator", "nodes", "why it is left to the reference kernel")
COMMAND_COLUMNS = ("kernel", "calls", "operators", "result")


class Running(NamedTuple):
    """A partition of the default delegate: its subgraph, its number there, its nodes, and what runs it."""

    subgraph: int
    number: int
    nodes: tuple[int, ...]
    kernel: JitKernel


def running(interpreter: Interpreter) -> Iterator[Running]:
    """The partitions of the default delegate in an allocated interpreter, whether they have a program or not."""
    for subgraph in range(interpreter.num_subgraphs()):
        subsets = [subset for claims in interpreter.delegate_claims(subgraph) for subset in claims.partitions]
        for number, (subset, kernel) in enumerate(zip(subsets, interpreter.delegate_kernels(subgraph), strict=True)):
            if isinstance(kernel, JitKernel):
                yield Running(subgraph, number, subset.nodes, kernel)


def describe_partitions(interpreter: Interpreter) -> list[dict[str, Any]]:
    """For each subgraph and delegate: what it took, and why not the rest."""
    return [
        _describe_claims(interpreter, subgraph, claims)
        for subgraph in range(interpreter.num_subgraphs())
        for claims in interpreter.delegate_claims(subgraph)
    ]


def _describe_claims(interpreter: Interpreter, subgraph: int, claims: Any) -> dict[str, Any]:
    graph = interpreter.model.subgraphs[subgraph]
    names = [interpreter.model.operator_name(operator) for operator in graph.operators]
    partitions: list[dict[str, Any]] = []
    kernels = {found.nodes: found.kernel for found in running(interpreter) if found.subgraph == subgraph}
    for subset in claims.partitions:
        kernel = kernels.get(subset.nodes)
        built = kernel.built if kernel is not None else None
        partitions.append(
            {
                "nodes": list(subset.nodes),
                "operators": dict(Counter(names[node] for node in subset.nodes)),
                "commands": len(built.plan.commands) if built else None,
                "kernels": len(built.specs) if built else None,
                "failure": kernel.failure if kernel is not None else None,
            }
        )
    return {
        "subgraph": subgraph,
        "delegate": claims.delegate,
        "operators": len(names),
        "partitions": partitions,
        "refusals": [
            {"node": node, "operator": names[node], "reason": reason} for node, reason in claims.refusals.items()
        ],
    }


def describe_programs(interpreter: Interpreter) -> list[dict[str, Any]]:
    """Every program: the memory that it needs, its kernels, and its commands with the work of each."""
    from gossamer.codegen.report import arguments_of, commands_of, total

    programs = []
    for found in running(interpreter):
        built = found.kernel.built
        if built is None:
            continue
        commands = commands_of(built)
        arguments, barriers = arguments_of(built), built.plan.commands[:, 2].tolist()
        programs.append(
            {
                "subgraph": found.subgraph,
                "program": found.number,
                "nodes": list(found.nodes),
                "target": found.kernel.target.name,
                "memory": {**built.plan.sizes, "constants": built.constants.nbytes},
                "kernels": sorted(built.specs),
                "total": total(command.work for command in commands)._asdict(),
                "commands": [
                    {
                        "kernel": command.kernel,
                        "calls": list(command.calls),
                        "kind": command.kind,
                        "operators": list(command.operators),
                        "shape": list(command.shape),
                        "operands": [list(shape) for shape in command.operands],
                        **command.work._asdict(),
                        "barrier": bool(barrier),
                        "arguments": block,
                    }
                    for command, block, barrier in zip(commands, arguments, barriers, strict=True)
                ],
            }
        )
    return programs


def partition_lines(report: Iterable[dict[str, Any]]) -> Iterator[str]:
    """What each delegate took, in a sentence."""
    for claims in report:
        taken = sum(len(partition["nodes"]) for partition in claims["partitions"] if partition["failure"] is None)
        count = sum(partition["failure"] is None for partition in claims["partitions"])
        yield (
            f"subgraph {claims['subgraph']}: {claims['delegate']} runs {taken} of "
            f"{plural(claims['operators'], 'operator')} in {plural(count, 'program')}"
        )


def partition_tables(report: Iterable[dict[str, Any]]) -> Iterator[Table]:
    """The partitions, and what is left with the reasons, of each delegate."""
    for claims in report:
        rows: Rows = []
        for number, partition in enumerate(claims["partitions"]):
            made = (partition["commands"], partition["kernels"])
            if partition["failure"] is not None:
                made = (f"reference kernels: {partition['failure']}", "")
            operators = ", ".join(f"{count} {name}" for name, count in partition["operators"].items())
            rows.append((number, node_ranges(partition["nodes"]), operators, *made))
        yield PROGRAM_COLUMNS, rows
        left: dict[tuple[str, str], list[int]] = {}
        for refusal in claims["refusals"]:
            left.setdefault((refusal["operator"], refusal["reason"]), []).append(refusal["node"])
        yield (
            REFUSAL_COLUMNS,
            [(len(nodes), name, node_ranges(nodes), reason) for (name, reason), nodes in left.items()],
        )


def program_table(programs: Sequence[dict[str, Any]]) -> Table:
    """A row for each command of all programs, and the sum."""
    columns = (">command", *COMMAND_COLUMNS, ">MFLOP", ">kB read", ">kB written")
    rows: Rows = []
    sums = dict.fromkeys(("flops", "read", "written"), 0)
    for program in programs:
        for number, command in enumerate(program["commands"]):
            rows.append((command_number(programs, program, number), *command_cells(command), *_figures(command)))
        for name in sums:
            sums[name] += program["total"][name]
    rows.append(("", "total", "", "", "", *_figures(sums)))
    return columns, rows


def command_number(programs: Sequence[dict[str, Any]], program: dict[str, Any], number: int) -> str:
    """``12``, or with several programs ``3.12``."""
    return f"{number}" if len(programs) == 1 else f"{programs.index(program)}.{number}"


def command_cells(command: dict[str, Any]) -> tuple[str, str, str, str]:
    """What the columns `COMMAND_COLUMNS` say of a command."""
    shape = "x".join(map(str, command["shape"])) or "1"
    return command["kernel"], ", ".join(command["calls"]), ", ".join(command["operators"]), shape


def _figures(work: dict[str, Any]) -> tuple[str, str, str]:
    return f"{work['flops'] / 1e6:,.3f}", f"{work['read'] / 1e3:,.1f}", f"{work['written'] / 1e3:,.1f}"


def node_ranges(nodes: Iterable[int]) -> str:
    """``0, 2-6, 8``; ``…`` for what is too long."""
    ranges: list[list[int]] = []
    for node in sorted(nodes):
        if ranges and ranges[-1][1] == node - 1:
            ranges[-1][1] = node
        else:
            ranges.append([node, node])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    return ", ".join(texts[:_SHOWN] + ["…"] * (len(texts) > _SHOWN))


def dump(interpreter: Interpreter, directory: Path, suffix: str) -> list[Path]:
    """Write the text of every kernel of the programs, and of the walker: ``.ll`` or ``.s``, named after the kernel."""
    from gossamer.codegen.compiler import assembly
    from gossamer.codegen.library import walker

    write: Callable[[KernelSpec, Target], str] = _ir if suffix == ".ll" else assembly
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    for found in running(interpreter):
        if found.kernel.built is None:
            continue
        target = found.kernel.target
        for spec in (*found.kernel.built.specs.values(), walker(target)):
            if spec.name not in written:
                path = written[spec.name] = directory / f"{spec.name}{suffix}"
                path.write_text(write(spec, target), encoding="utf-8")
    return list(written.values())


def _ir(spec: KernelSpec, target: Target) -> str:
    from gossamer.codegen.compiler import kernel_text

    features = f" -mattr={','.join(target.features)}" if target.features else ""
    llc = f"llc -O1 -mtriple={target.triple} -mcpu={target.cpu}{features} -relocation-model=pic -disable-lsr"
    return f"; {llc} {spec.name}.ll\n{kernel_text(spec, target)}"
