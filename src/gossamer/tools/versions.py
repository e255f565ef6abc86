"""Show which operator versions a model needs and why, and which runtimes have them; write it for older ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gossamer.model import Model, read_model
from gossamer.model.metadata import min_runtime_version
from gossamer.model.model import code_name, resolved_code
from gossamer.model.writer import write_model
from gossamer.ops import find_op
from gossamer.schema import BuiltinOperator
from gossamer.tools._command import Tool, console, existing_file, json_option, output_file, plural, table, write_json
from gossamer.versions import (
    lowered_op_versions,
    minimum_runtime_version,
    op_signature,
    release_key,
    with_minimum_runtime_version,
)

_HELP = """Show the version of each operator in MODEL, the release of TensorFlow Lite that introduced it, the version
that the operator needs, and why; then the first release that has them all.

With --for, say which operators stop a release; the exit code is 1 if there are any. With --lower, write the model with
the lowest versions that its contents allow; --for then judges what is written. Custom operators come with the
application, not with a release, and do not count.
"""


_COLUMNS = (">count", "operator", ">version", "since", ">needs", "since", "why")
_ALIKE = ("operator", "custom", "version", "release", "needed", "needed_release", "reason")


def _release(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        release_key(value or "")
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


@click.command(
    cls=Tool,
    help=_HELP,
    short_help="Show which operator versions a model needs, and why.",
    example="gossamer versions mobilenet.tflite --for 2.5.0 --lower older.tflite",
)
@click.argument("model")
@click.option("--for", "release", metavar="RELEASE", callback=_release, help="Say what stops this release, as 2.5.0.")
@click.option(
    "--lower", callback=output_file, metavar="OUT", help="Write the model with the lowest versions that it needs."
)
@json_option
@click.pass_context
def command(ctx: click.Context, model: str, release: str | None, lower: str | None, as_json: bool) -> None:
    """See ``_HELP``, which click shows."""
    stored = read_model(existing_file(model, "model"))
    report = describe(stored, model)
    if lower is not None:
        lowered = lowered_op_versions(stored)
        if lowered is not stored:
            lowered = with_minimum_runtime_version(lowered)
        write_model(lowered, lower)
        report["lowered"] = {**describe(lowered, lower), "changes": _changes(stored, lowered)}
    if release is not None:
        report["for"] = {"release": release, "stops": _stops(report.get("lowered", report), release)}
    if as_json:
        write_json(report)
    else:
        _print(report)
    if release is not None and report["for"]["stops"]:
        ctx.exit(1)


def describe(model: Model, path: str) -> dict[str, Any]:
    """All that ``gossamer versions`` knows of a model, as plain values."""
    return {
        "model": path,
        "minimum_release": minimum_runtime_version(model),
        "min_runtime_version": min_runtime_version(model),
        "operators": list(_operators(model)),
    }


def _operators(model: Model) -> Iterator[dict[str, Any]]:
    # A code that nothing uses is resolved by runtimes all the same.
    used = set()
    for number, subgraph in enumerate(model.subgraphs):
        for index, operator in enumerate(subgraph.operators):
            used.add(operator.opcode_index)
            signature = op_signature(model, subgraph, operator)
            row = _row(model, operator.opcode_index)
            op = find_op(row["operator"]) if not row["custom"] else None
            if op is not None:
                needed = op.needed_version(signature)
                row.update(needed=needed.number, needed_release=needed.since or "", reason=op.reason(needed))
            yield {"subgraph": number, "index": index, **row}
    for code in sorted(set(range(len(model.operator_codes))) - used):
        yield {"subgraph": None, "index": None, **_row(model, code), "reason": "no operator uses this code"}


def _row(model: Model, index: int) -> dict[str, Any]:
    code = model.operator_codes[index]
    custom = resolved_code(code) == BuiltinOperator.CUSTOM
    op = find_op(code_name(code), custom=custom)
    return {
        "operator": code_name(code),
        "custom": custom,
        "version": code.version,
        "release": "" if op is None else op.runtime_version(code.version),
        "needed": None if custom or op is None else op.min_version,
        "needed_release": "" if custom or op is None else op.runtime_version(op.min_version),
        "reason": "",
    }


def _changes(old: Model, new: Model) -> list[dict[str, Any]]:
    codes = zip(old.operator_codes, new.operator_codes, strict=True)
    return [
        {"operator": code_name(before), "from": before.version, "to": after.version}
        for before, after in codes
        if before.version != after.version
    ]


def _stops(report: dict[str, Any], release: str) -> list[dict[str, Any]]:
    """The operators that a release does not have. One whose version is in no known release stops every release."""
    limit = release_key(release)
    return [
        row
        for row in report["operators"]
        if not row["custom"] and (not row["release"] or release_key(row["release"]) > limit)
    ]


def _print(report: dict[str, Any]) -> None:
    out = console()
    for what in ("model", "lowered"):
        shown = report if what == "model" else report.get("lowered")
        if shown is None:
            continue
        out.print(f"{what:<14}{shown['model']}", markup=False)
        out.print(f"{'runs on':<14}{_minimum(shown)}", markup=False)
        if what == "lowered":
            changes = [f"{c['operator']} {c['from']} to {c['to']}" for c in shown["changes"]]
            out.print(f"{'changes':<14}{', '.join(changes) or 'none: no version was higher than needed'}", markup=False)
        else:
            out.print(table(_COLUMNS, _cells(shown["operators"])))
    if "for" not in report:
        return
    stops, release = report["for"]["stops"], report["for"]["release"]
    if not stops:
        out.print(f"{'for':<14}{release} has every operator", markup=False)
        return
    noun = plural(len(stops), "operator")
    out.print(f"{'for':<14}{noun} {'stops' if len(stops) == 1 else 'stop'} release {release}", markup=False)
    out.print(table(_COLUMNS, _cells(stops)))
    spared = sum(
        1 for row in stops if row["needed_release"] and release_key(row["needed_release"]) <= release_key(release)
    )
    if spared:
        out.print(f"--lower OUT writes the model without need of {spared} of them", markup=False)


def _minimum(report: dict[str, Any]) -> str:
    found, said = report["minimum_release"], report["min_runtime_version"]
    text = f"release {found} and later" if found else "no release is known for its operators"
    return f"{text} (its metadata say {said})" if said and said != found else text


def _who_brings(custom_code: str) -> str:
    return "TensorFlow's: a Flex delegate" if custom_code.startswith("Flex") else "comes with the application"


def grouped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Equal rows as one with their ``count``, in the order of their first."""
    counts: dict[tuple[object, ...], int] = {}
    for row in rows:
        key = tuple(row[name] for name in _ALIKE)
        counts[key] = counts.get(key, 0) + (row["index"] is not None)
    return [{"count": count, **dict(zip(_ALIKE, key, strict=True))} for key, count in counts.items()]


def _cells(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [
        (
            row["count"],
            row["operator"] + (" (custom)" if row["custom"] else ""),
            row["version"],
            row["release"] or "unknown",
            "" if row["needed"] is None else row["needed"],
            row["needed_release"],
            _who_brings(row["operator"]) if row["custom"] else row["reason"],
        )
        for row in grouped(rows)
    ]
