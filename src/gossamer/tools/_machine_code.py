"""The default delegate's programs of a model, as plain values and as tables: partitions, kernels, texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gossamer import Interpreter
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.profiling.programs import running
from gossamer.programs import team
from gossamer.tools._command import plural

if TYPE_CHECKING:
    from gossamer.codegen.build import Built
    from gossamer.codegen.spec import KernelSpec
    from gossamer.delegates.delegate import Claims
    from gossamer.targets import Target

Rows = list[tuple[object, ...]]
Table = tuple[Sequence[str], Rows]

_SHOWN = 12
"""Numbers of nodes up to which they are all printed."""

JUMP = "jump"
"""In the place of the kernel of a command that has none."""

PROGRAM_COLUMNS = (">program", "nodes", "operators", ">commands", ">kernels")
REFUSAL_COLUMNS = (">count", "left to the reference kernel", "because", "nodes")
COMMAND_COLUMNS = (">command", "kernel, and those that it calls", "operators", "result")


def describe_partitions(interpreter: Interpreter, target: Target | None = None) -> list[dict[str, Any]]:
    """For each subgraph and delegate: what it took, and why not the rest. ``target``: see `describe_programs`."""
    return [
        _describe_claims(interpreter, subgraph, claims, target)
        for subgraph in range(interpreter.num_subgraphs())
        for claims in interpreter.delegate_claims(subgraph)
    ]


def _describe_claims(interpreter: Interpreter, subgraph: int, claims: Claims, target: Target | None) -> dict[str, Any]:
    graph = interpreter.model.subgraphs[subgraph]
    names = [interpreter.model.operator_name(operator) for operator in graph.operators]
    partitions: list[dict[str, Any]] = []
    kernels = {found.nodes: found.kernel for found in running(interpreter) if found.subgraph == subgraph}
    for subset in claims.partitions:
        kernel = kernels.get(subset.nodes)
        built = _built(kernel, target) if kernel is not None else None
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
            {"node": node, "operator": names[node], "reason": reason}
            for node, reason in claims.refusals.items()
            if node < len(names)  # those behind stand for what another delegate took before
        ],
    }


def describe_programs(interpreter: Interpreter, target: Target | None = None) -> list[dict[str, Any]]:
    """Every program: the memory that it needs, its kernels, and its commands with the work of each.

    ``target``: as it would be there (default: as it is here).
    """
    from gossamer.codegen.report import arguments_of, commands_of, total

    programs = []
    for found in running(interpreter):
        built = _built(found.kernel, target)
        if built is None:
            continue
        commands = commands_of(built)
        arguments, barriers = arguments_of(built), built.plan.commands[:, 2].tolist()
        programs.append(
            {
                "subgraph": found.subgraph,
                "program": found.number,
                "nodes": list(found.nodes),
                "target": (target or found.kernel.target).name,
                "memory": {**built.plan.sizes, "constants": built.constants.nbytes},
                "kernels": sorted(built.specs),
                "total": total(command.work for command in commands)._asdict(),
                "commands": [
                    {
                        "kernel": command.kernel or JUMP,
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


def partition_line(claims: dict[str, Any]) -> str:
    """What a delegate took of a subgraph, in a sentence."""
    running = [partition for partition in claims["partitions"] if partition["failure"] is None]
    taken = sum(len(partition["nodes"]) for partition in running)
    return (
        f"subgraph {claims['subgraph']}: {claims['delegate']} runs {taken} of "
        f"{plural(claims['operators'], 'operator')} in {plural(len(running), 'program')}"
    )


def partition_tables(claims: dict[str, Any]) -> Iterator[Table]:
    """The partitions, and what is left with the reasons."""
    rows: Rows = []
    for number, partition in enumerate(claims["partitions"]):
        operators = ", ".join(f"{count} {name}" for name, count in partition["operators"].items())
        made = (partition["commands"], partition["kernels"])
        if partition["failure"] is not None:
            made = (f"none: {partition['failure']}", "")
        elif partition["commands"] is None:
            made = ("made when it runs", "")
        rows.append((number, node_ranges(partition["nodes"]), operators, *made))
    yield PROGRAM_COLUMNS, rows
    left: dict[tuple[str, str], list[int]] = {}
    for refusal in claims["refusals"]:
        left.setdefault((refusal["operator"], refusal["reason"]), []).append(refusal["node"])
    yield REFUSAL_COLUMNS, [(len(nodes), *key, node_ranges(nodes)) for key, nodes in left.items()]


def program_table(programs: Sequence[dict[str, Any]]) -> Table:
    """A row for each command of all programs, and the sum."""
    rows: Rows = [(*cells, *_figures(command)) for cells, command in numbered_commands(programs)]
    sums = {name: sum(program["total"][name] for program in programs) for name in ("flops", "read", "written")}
    rows.append(("", "total", "", "", *_figures(sums)))
    return (*COMMAND_COLUMNS, ">MFLOP", ">kB read", ">kB written"), rows


def numbered_commands(programs: Sequence[dict[str, Any]]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """What the columns `COMMAND_COLUMNS` say of every command, and the command.

    Its number is ``12``, or with several programs ``3.12``.
    """
    for program in programs:
        prefix = f"{program['program']}." if len(programs) > 1 else ""
        for number, command in enumerate(program["commands"]):
            kernels = _jump(command["arguments"]) or ", ".join((command["kernel"], *command["calls"]))
            shape = "x".join(map(str, command["shape"])) or "1"
            yield (f"{prefix}{number}", kernels, ", ".join(command["operators"]), shape), command


def _jump(arguments: dict[str, Any]) -> str:
    """Where a jump goes, in words; none for a kernel."""
    if arguments.keys() != team.JUMP.keys():
        return ""
    target = arguments["target"]
    return {
        team.Jump.GO: f"go on at {target}",
        team.Jump.PART: f"one thread alone, the others wait at {target}",
        team.Jump.JOIN: "all threads together",
        team.Jump.IF: f"if set, go on at {target}",
        team.Jump.UNLESS: f"if not set, go on at {target}",
        team.Jump.BACK: f"if set, back to {target}",
    }[arguments["kind"]]


def _figures(work: dict[str, Any]) -> tuple[str, str, str]:
    return f"{work['flops'] / 1e6:,.3f}", f"{work['read'] / 1e3:,.2f}", f"{work['written'] / 1e3:,.2f}"


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


def dump(interpreter: Interpreter, directory: Path, suffix: str, target: Target | None = None) -> list[Path]:
    """Write the text of every kernel of the programs, and of the walker: ``.ll`` or ``.s``, named after the kernel.

    ``target``: see `describe_programs`.
    """
    from gossamer.codegen.compiler import assembly
    from gossamer.codegen.library import walker

    write: Callable[[KernelSpec, Target], str] = _ir if suffix == ".ll" else assembly
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    for found in running(interpreter):
        built, here = _built(found.kernel, target), target or found.kernel.target
        for spec in (*built.specs.values(), walker(here)) if built is not None else ():
            if spec.name not in written:
                path = written[spec.name] = directory / f"{spec.name}{suffix}"
                path.write_text(write(spec, here), encoding="utf-8")
    return list(written.values())


def _built(kernel: JitKernel, target: Target | None) -> Built | None:
    return kernel.built if target is None else kernel.built_for(target)


def _ir(spec: KernelSpec, target: Target) -> str:
    from gossamer.codegen.compiler import kernel_text, target_of

    target = target_of(spec, target)
    features = f" -mattr={','.join(target.features)}" if target.features else ""
    llc = f"llc -O1 -mtriple={target.triple} -mcpu={target.cpu}{features} -relocation-model=pic -disable-lsr"
    return f"; {llc} {spec.name}.ll\n{kernel_text(spec, target)}"
