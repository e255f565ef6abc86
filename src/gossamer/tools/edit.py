"""Change a model: cut, merge, rename, retype, resize, add to it, describe it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from gossamer import edit
from gossamer.dtypes import type_name
from gossamer.edit.options import builtin, stored_options
from gossamer.edit.strip import PARTS
from gossamer.errors import EditError
from gossamer.model import Model, read_model
from gossamer.tools._command import (
    Failure,
    Group,
    Tool,
    console,
    existing_file,
    json_option,
    output_file,
    plural,
    write_json,
)

_HELP = """Change a model, and write it as another file. What an edit does not name stays what it is: names, order,
quantization, signatures, metadata. The result is checked before it is written, and a model that an edit leaves as it is
is written byte for byte.

Tensors are named as gossamer inspect names them, or by number; node:7 is the operator with the number 7. Each command
takes --json, which says what the new model is.
"""

Function = TypeVar("Function", bound=Callable[..., Any])


class _Group(Tool, Group):
    """A tool with commands of its own."""


@click.group(
    cls=_Group,
    help=_HELP,
    short_help="Change a model: cut, merge, rename, retype, resize, add to it, describe it.",
    example="gossamer edit cut detector.tflite --to backbone/out -o backbone.tflite",
)
def command() -> None:
    """See ``_HELP``, which click shows."""


def _output(function: Function) -> Function:
    """Decorator: the options of a command that writes one model."""
    out = click.option("-o", "--output", callback=output_file, required=True, metavar="OUT", help="The file to write.")
    return out(json_option(function))


def _subgraph(function: Function) -> Function:
    return click.option(
        "--subgraph", default="0", metavar="N|KEY", help="Of which subgraph: its number, or the key of a signature."
    )(function)


_model = click.argument("model")


def _read(path: str) -> Model:
    return read_model(existing_file(path, "model"))


@command.command(cls=Tool, example="gossamer edit cut net.tflite --from pool/out --to node:40 -o middle.tflite")
@_model
@click.option("--from", "inputs", multiple=True, metavar="TENSOR", help="Becomes an input.  [default: its inputs]")
@click.option("--to", "outputs", multiple=True, metavar="TENSOR", help="Becomes an output.  [default: its outputs]")
@click.option("--forget", is_flag=True, help="Do not note what it was cut from, which merge uses to put it together.")
@_subgraph
@_output
def cut(
    model: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    forget: bool,
    subgraph: str,
    output: str,
    as_json: bool,
) -> None:
    """Write the part of MODEL between some tensors, with the constants that it needs and no others."""
    old = _read(model)
    new = edit.cut(old, inputs or None, outputs or None, subgraph=subgraph, remember=not forget)
    _write(old, [(new, output)], as_json)


@command.command(cls=Tool, example="gossamer edit split net.tflite --at node:12 -o head.tflite -o tail.tflite")
@_model
@click.option("--at", required=True, multiple=True, metavar="TENSOR", help="What the first half hands to the second.")
@click.option(
    "--forget", is_flag=True, help="Do not note what they were cut from, which merge uses to put it together."
)
@_subgraph
@click.option(
    "-o",
    "--output",
    callback=output_file,
    required=True,
    multiple=True,
    metavar="OUT",
    help="The files to write: give it twice.",
)
@json_option
def split(model: str, at: tuple[str, ...], forget: bool, subgraph: str, output: tuple[str, ...], as_json: bool) -> None:
    """Write MODEL in two: all that depends on some tensors, and the rest. Merged they are MODEL again."""
    if len(output) != 2:
        raise click.UsageError(f"a split writes two files, got {plural(len(output), 'name')}: -o HEAD -o TAIL")
    old = _read(model)
    halves = edit.split(old, at, subgraph=subgraph, remember=not forget)
    _write(old, list(zip(halves, output, strict=True)), as_json)


@command.command(cls=Tool, example="gossamer edit merge head.tflite tail.tflite -o net.tflite")
@click.argument("models", nargs=-1, required=True, metavar="MODEL MODEL...")
@click.option("--connect", multiple=True, metavar="OUTPUT=INPUT", help="What goes where.  [default: by name, or order]")
@click.option("--keep", is_flag=True, help="What goes on to the next model stays an output too.")
@click.option("--side-by-side", is_flag=True, help="One file with the signatures of all, which share nothing.")
@click.option("--key", "keys", multiple=True, metavar="KEY", help="With --side-by-side: what to call each, in order.")
@_output
def merge(
    models: tuple[str, ...],
    connect: tuple[str, ...],
    keep: bool,
    side_by_side: bool,
    keys: tuple[str, ...],
    output: str,
    as_json: bool,
) -> None:
    """Write several models as one, each behind the one before it. The parts of one model become it, byte for byte."""
    if len(models) < 2:
        raise click.UsageError("give two models or more")
    if side_by_side and (connect or keep):
        raise click.UsageError("models side by side are not connected")
    if keys and not side_by_side:
        raise click.UsageError("--key is for --side-by-side")
    stored = [_read(path) for path in models]
    if side_by_side:
        new = edit.side_by_side(*stored, keys=keys)
    else:
        new = edit.merge(*stored, connect=[_pair(one) for one in connect] or None, keep=keep)
    _write(stored, [(new, output)], as_json)


@command.command(
    cls=Tool, example="gossamer edit rename net.tflite serving_default_x:0=picture Identity=scores -o out.tflite"
)
@_model
@click.argument("names", nargs=-1, required=True, metavar="OLD=NEW...")
@_subgraph
@_output
def rename(model: str, names: tuple[str, ...], subgraph: str, output: str, as_json: bool) -> None:
    """Give tensors of MODEL, inputs and outputs too, other names."""
    old = _read(model)
    _write(old, [(edit.rename(old, dict(map(_pair, names)), subgraph=subgraph), output)], as_json)


@command.command(
    cls=Tool, example="gossamer edit retype net_int8.tflite --input-type uint8 --output-type float32 -o out.tflite"
)
@_model
@click.option(
    "--input-type", "inputs", multiple=True, metavar="[NAME=]TYPE", help="Of inputs; TYPE[,SCALE,ZERO_POINT]."
)
@click.option("--output-type", "outputs", multiple=True, metavar="[NAME=]TYPE", help="Of outputs, likewise.")
@_subgraph
@_output
def retype(
    model: str, inputs: tuple[str, ...], outputs: tuple[str, ...], subgraph: str, output: str, as_json: bool
) -> None:
    """Give inputs and outputs of MODEL other types: float32, int8, uint8, int16, int32, int64."""
    if not inputs and not outputs:
        raise click.UsageError("give --input-type or --output-type")
    old = _read(model)
    _write(old, [(edit.retype(old, _types(inputs), _types(outputs), subgraph=subgraph), output)], as_json)


def _types(said: Sequence[str]) -> Any:
    if not said:
        return None
    if len(said) == 1 and "=" not in said[0]:
        return _type(said[0])
    return {name: _type(type) for name, type in map(_pair, said)}


def _type(text: str) -> Any:
    name, *numbers = text.split(",")
    if not numbers:
        return name
    try:
        scale, zero_point = numbers
        return name, float(scale), int(zero_point)
    except ValueError:
        raise EditError(f"a type is NAME or NAME,SCALE,ZERO_POINT, got {text!r}") from None


@command.command(cls=Tool, example="gossamer edit shape net.tflite --batch 8 -o batch8.tflite")
@_model
@click.argument("shapes", nargs=-1, metavar="[INPUT=SIZES]...")
@click.option("--batch", metavar="N|?", help="The first size of all inputs; ? leaves it open until the model runs.")
@_output
def shape(model: str, shapes: tuple[str, ...], batch: str | None, output: str, as_json: bool) -> None:
    """Give inputs of MODEL other shapes, INPUT=1x320x320x3; a ? leaves a size open. All else follows from them.

    Constants that hold the old batch, such as the shape of a RESHAPE, are changed where that is right for each example.
    """
    if bool(shapes) == (batch is not None):
        raise click.UsageError("give --batch, or shapes of inputs")
    old = _read(model)
    changes: list[str] = []

    def told(change: object) -> None:
        changes.append(str(change))

    if batch is not None:
        new = edit.batch(old, _sizes(batch)[0], on_change=told)
    else:
        new = edit.reshape(old, {name: _sizes(sizes) for name, sizes in map(_pair, shapes)}, on_change=told)
    _write(old, [(new, output)], as_json, {"constants": changes})


def _sizes(text: str) -> list[int | None]:
    sizes: list[int | None] = []
    for part in text.replace(",", "x").split("x"):
        if part.strip() not in ("?", "-1") and not part.strip().isdecimal():
            raise EditError(f"a shape is sizes with x between them, ? for an open one: 1x?x?x3; got {text!r}")
        sizes.append(None if part.strip() in ("?", "-1") else int(part))
    return sizes


@command.command(cls=Tool, example="gossamer edit replace net.tflite node:7 RELU6 -o out.tflite")
@_model
@click.argument("node")
@click.argument("operator", required=False)
@click.option("--custom", is_flag=True, help="OPERATOR is the name of a custom operator.")
@click.option(
    "--input", "inputs", multiple=True, metavar="TENSOR", help="What it takes, in order.  [default: as before]"
)
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option, as the schema names it.")
@_subgraph
@_output
def replace(
    model: str,
    node: str,
    operator: str | None,
    custom: bool,
    inputs: tuple[str, ...],
    options: tuple[str, ...],
    subgraph: str,
    output: str,
    as_json: bool,
) -> None:
    """Put OPERATOR in the place of NODE (node:7, or a tensor that it gives); without OPERATOR, change its options."""
    old = _read(model)
    new = edit.replace(
        old,
        node,
        operator,
        custom=custom,
        inputs=inputs or None,
        options=_options(operator, options, custom),
        subgraph=subgraph,
    )
    _write(old, [(new, output)], as_json)


@command.command(cls=Tool, example="gossamer edit insert net.tflite logits MUL 0.5 -o out.tflite")
@_model
@click.argument("tensor")
@click.argument("operator")
@click.argument("operands", nargs=-1, type=float)
@click.option("--custom", is_flag=True, help="OPERATOR is the name of a custom operator.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option, as the schema names it.")
@_subgraph
@_output
def insert(
    model: str,
    tensor: str,
    operator: str,
    operands: tuple[float, ...],
    custom: bool,
    options: tuple[str, ...],
    subgraph: str,
    output: str,
    as_json: bool,
) -> None:
    """Put OPERATOR on TENSOR, for all that takes it; OPERANDS are numbers that it takes besides."""
    old = _read(model)
    given = _options(operator, options, custom)
    new = edit.insert(old, tensor, operator, *operands, custom=custom, options=given, subgraph=subgraph)
    _write(old, [(new, output)], as_json)


@command.command(cls=Tool, example="gossamer edit delete net.tflite node:30 -o out.tflite")
@_model
@click.argument("node")
@_subgraph
@_output
def delete(model: str, node: str, subgraph: str, output: str, as_json: bool) -> None:
    """Leave NODE out: what took its result takes its operand, which must be alike."""
    old = _read(model)
    _write(old, [(edit.delete(old, node, subgraph=subgraph), output)], as_json)


def _options(operator: str | None, said: Sequence[str], custom: bool) -> dict[str, Any] | None:
    """Options as a command line has them; those of custom operators are JSON, or else texts."""
    pairs = [_pair(one) for one in said]
    if operator is not None and not custom:
        stored_options(builtin(operator), dict(pairs))
        return dict(pairs)
    if not pairs:
        return None
    return {name: _json(value) for name, value in pairs}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@command.command(
    cls=Tool, example="gossamer edit add net.tflite --normalize 127.5 127.5 --type uint8 --softmax -o out.tflite"
)
@_model
@click.option("--input", "entry", metavar="NAME", help="Before which input.  [default: the only one]")
@click.option("--resize", metavar="HxW", help="Take pictures of this size, ? for any; bring them to the model's.")
@click.option("--method", type=click.Choice(["bilinear", "nearest"]), default="bilinear", help="How to resize.")
@click.option("--normalize", nargs=2, metavar="MEAN STD", help="Take plain values: (x - MEAN) / STD; R,G,B for each.")
@click.option("--type", "type_", metavar="TYPE", help="Of the input that is normalized, as uint8.  [default: float32]")
@click.option("--of", "exits", metavar="NAME", multiple=True, help="Behind which output.  [default: the only one]")
@click.option("--softmax", is_flag=True, help="Make probabilities of scores.")
@click.option("--argmax", is_flag=True, help="Give the index of the greatest value along the last dimension.")
@click.option("--top-k", type=click.IntRange(min=1), metavar="K", help="Give the K greatest values and their indices.")
@click.option(
    "--nms", type=click.Choice(list(edit.BOXES)), help="Leave out boxes that overlap better ones; their form."
)
@click.option("--max-boxes", type=click.IntRange(min=1), default=100, help="With --nms.", show_default=True)
@click.option("--iou", type=click.FloatRange(0, 1), default=0.5, help="With --nms.", show_default=True)
@click.option("--score", type=float, default=0.25, help="With --nms.", show_default=True)
@click.option("--keep", is_flag=True, help="The outputs that it has stay, too.")
@_output
def add(
    model: str,
    entry: str | None,
    resize: str | None,
    method: str,
    normalize: tuple[str, str] | None,
    type_: str | None,
    exits: tuple[str, ...],
    softmax: bool,
    argmax: bool,
    top_k: int | None,
    nms: str | None,
    max_boxes: int,
    iou: float,
    score: float,
    keep: bool,
    output: str,
    as_json: bool,
) -> None:
    """Put pre-processing before MODEL, and post-processing behind it.

    Pictures are resized, then normalized; outputs go through a softmax, then one of the others. For --nms, --of names
    the boxes and then the scores, or the one output that has both.
    """
    if type_ is not None and normalize is None:
        raise click.UsageError("--type is of the input that --normalize makes")
    if sum([argmax, top_k is not None, nms is not None]) > 1:
        raise click.UsageError("give one of --argmax, --top-k, --nms")
    old = new = _read(model)
    where = exits[0] if exits else None
    if normalize is not None:
        mean, std = (_numbers(text) for text in normalize)
        new = edit.normalize(new, mean, std, type=type_, input=entry)
    if resize is not None:
        sizes = _sizes(resize)
        if len(sizes) != 2:
            raise click.UsageError(f"a size is HxW, got {resize!r}")
        new = edit.resize(new, *sizes, method=method, input=entry)
    if softmax:
        before = {tensor.name for tensor in new.subgraphs[0].tensors}
        new = edit.softmax(new, where, keep=keep)
        graph = new.subgraphs[0]
        where = next(graph.tensors[n].name for n in graph.outputs if graph.tensors[n].name not in before)
    if argmax:
        new = edit.argmax(new, where, keep=keep)
    if top_k is not None:
        new = edit.top_k(new, top_k, where, keep=keep)
    if nms is not None:
        scores = exits[1] if len(exits) > 1 else None
        new = edit.nms(new, where, scores, form=nms, most=max_boxes, iou=iou, score=score, keep=keep)
    if new is old:
        raise click.UsageError("say what to add: --normalize, --resize, --softmax, --argmax, --top-k or --nms")
    _write(old, [(new, output)], as_json)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise EditError(f"{text!r} is no number, and no list of them as 123.7,116.3,103.5") from None


@command.command(cls=Tool, example="gossamer edit strip net.tflite -o small.tflite")
@_model
@click.option("--keep", multiple=True, type=click.Choice(PARTS), help="What to leave, of what is stripped by default.")
@click.option("--names", is_flag=True, help="Strip names of tensors too, but those of inputs and outputs.")
@click.option("--signatures", is_flag=True, help="Strip signatures too.")
@_output
def strip(model: str, keep: tuple[str, ...], names: bool, signatures: bool, output: str, as_json: bool) -> None:
    """Write MODEL without unused tensors and constants, metadata that no runtime reads, files, and its description."""
    old = _read(model)
    parts = {part: part not in keep for part in PARTS}
    _write(old, [(edit.strip(old, **parts, names=names, signatures=signatures), output)], as_json)


@command.command(cls=Tool, example="gossamer edit describe net.tflite --name Birds --labels birds.txt -o out.tflite")
@_model
@click.option("--name", help="Of the model.")
@click.option("--description", help="What it does.")
@click.option("--author", help="Who made it.")
@click.option("--version", help="Of the model.")
@click.option("--license", help="Of the model.")
@click.option("--tensor", "tensors", multiple=True, metavar="NAME=TEXT", help="What an input or output is.")
@click.option("--mean-std", multiple=True, metavar="INPUT=MEAN,STD", help="How the values of an input were normalized.")
@click.option("--labels", multiple=True, metavar="[OUTPUT=]FILE", help="The names of classes, one in each line.")
@click.option("--file", "files", multiple=True, metavar="FILE", help="Append a file, as vocabularies are.")
@click.option("--entry", "entries", multiple=True, metavar="NAME=[FILE]", help="A metadata entry; no FILE removes it.")
@_output
def describe(
    model: str,
    tensors: tuple[str, ...],
    mean_std: tuple[str, ...],
    labels: tuple[str, ...],
    files: tuple[str, ...],
    entries: tuple[str, ...],
    output: str,
    as_json: bool,
    **texts: str | None,
) -> None:
    """Write MODEL with TFLite metadata: texts, labels, normalization, appended files."""
    old = _read(model)
    listed: Any = None
    if len(labels) == 1 and "=" not in labels[0]:
        listed = _lines(labels[0])
    elif labels:
        listed = {name: _lines(path) for name, path in map(_pair, labels)}
    pairs = [(name, _numbers(text)) for name, text in map(_pair, mean_std)]
    if any(len(numbers) != 2 for _, numbers in pairs):
        raise click.UsageError("--mean-std is INPUT=MEAN,STD")
    new = edit.describe(
        old,
        **texts,
        tensors=dict(map(_pair, tensors)),
        normalization={name: (numbers[0], numbers[1]) for name, numbers in pairs},
        labels=listed,
        files={Path(path).name: Path(existing_file(path, "file")).read_bytes() for path in files},
        entries={
            name: Path(existing_file(path, "file")).read_bytes() if path else None for name, path in map(_pair, entries)
        },
    )
    _write(old, [(new, output)], as_json)


def _lines(path: str) -> list[str]:
    return Path(existing_file(path, "labels")).read_text(encoding="utf-8-sig").rstrip().splitlines()


@command.command(cls=Tool, example="gossamer edit signature net.tflite serving_default --input image=x -o out.tflite")
@_model
@click.argument("key")
@click.option("--input", "inputs", multiple=True, metavar="NAME=TENSOR", help="An argument.  [default: all inputs]")
@click.option("--result", "results", multiple=True, metavar="NAME=TENSOR", help="A result.  [default: all outputs]")
@click.option("--remove", is_flag=True, help="Remove the signature.")
@click.option("--subgraph", type=int, default=0, metavar="N", help="Which subgraph it calls.")
@_output
def signature(
    model: str,
    key: str,
    inputs: tuple[str, ...],
    results: tuple[str, ...],
    remove: bool,
    subgraph: int,
    output: str,
    as_json: bool,
) -> None:
    """Give MODEL a signature with this KEY, in the place of one that it has, or remove it."""
    old = _read(model)
    if remove:
        new = edit.unsign(old, key)
    else:
        sides = [dict(map(_pair, said)) or None for said in (inputs, results)]
        new = edit.sign(old, key, *sides, subgraph=subgraph)
    _write(old, [(new, output)], as_json)


def _pair(text: str) -> tuple[str, str]:
    """``NAME=VALUE``; names may have a ``=`` in them."""
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise Failure(f"{text!r} is not NAME=VALUE")
    return name, value


def _write(
    old: Model | Sequence[Model], made: Sequence[tuple[Model, str]], as_json: bool, more: dict[str, Any] | None = None
) -> None:
    """Write what was made, and say what it is."""
    before = [old] if isinstance(old, Model) else list(old)
    summaries = [summary(model, model.path) for model in before]
    for new, path in made:
        new.save(path)
    reports = [{**summary(new, path), "changed": new is not before[0]} for new, path in made]
    if as_json:
        report: dict[str, Any] = {"before": summaries[0] if len(before) == 1 else summaries, **(more or {})}
        report |= reports[0] if len(reports) == 1 else {"parts": reports}
        write_json(report)
        return
    out = console()
    for report in reports:
        changed = "" if report["changed"] else ", unchanged"
        out.print(f"{'wrote':<10}{report['model']} ({plural(report['bytes'], 'byte')}{changed})", markup=False)
        for what in ("inputs", "outputs"):
            shown = ", ".join(_shown(one) for one in report[what])
            out.print(f"{what:<10}{shown or 'none'}", markup=False)
        counts = " and ".join(str(one["operators"]) for one in summaries)
        out.print(f"{'operators':<10}{report['operators']}, {counts} before", markup=False)
    for change in (more or {}).get("constants", ()):
        out.print(f"{'changed':<10}{change}", markup=False)


def _shown(end: dict[str, Any]) -> str:
    sizes = ", ".join("?" if size is None else str(size) for size in end["shape"])
    return f"{end['name'].partition(';')[0]} {end['type']} [{sizes}]"


def summary(model: Model, path: str | None) -> dict[str, Any]:
    """What a model is, as plain values."""
    main = model.subgraphs[0]

    def ends(numbers: Sequence[int]) -> list[dict[str, Any]]:
        tensors = [main.tensors[number] for number in numbers]
        return [
            {
                "name": tensor.name,
                "type": type_name(tensor.type),
                "shape": [None if size < 0 else size for size in tensor.shape_signature or tensor.shape],
            }
            for tensor in tensors
        ]

    return {
        "model": path,
        "bytes": Path(path).stat().st_size if path is not None and Path(path).exists() else None,
        "inputs": ends(main.inputs),
        "outputs": ends(main.outputs),
        "operators": sum(len(subgraph.operators) for subgraph in model.subgraphs),
        "subgraphs": len(model.subgraphs),
        "signatures": list(model.signatures),
        "metadata": [entry.name for entry in model.metadata],
    }
