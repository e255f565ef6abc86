"""Custom operators that no resolver has: they are left for a delegate, and say what would supply them if none takes
them."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Callable

from gossamer.errors import ModelError, PrepareError
from gossamer.model import accelerators
from gossamer.model.model import Model
from gossamer.ops.op_def import OpDef, PrepareContext, Version
from gossamer.resolver import OpResolver
from gossamer.schema import flexbuffers

_UNRESOLVED = (
    "Encountered unresolved custom op: {}.\nSee instructions: https://www.tensorflow.org/lite/guide/ops_custom"
)
_SELECT_TF = (
    "Select TensorFlow op(s), included in the given model, is(are) not supported by this interpreter. Make sure you "
    'apply/link the Flex delegate before inference. For the Android, it can be resolved by adding "org.tensorflow:'
    'tensorflow-lite-select-tf-ops" dependency. See instructions: https://www.tensorflow.org/lite/guide/ops_select'
)
_MOST_OPTIONS = 12
_MOST_OPERANDS = 4
_MOST_VERSIONS = 32

Advice = tuple[str, str]
"""What is known of an operator, and what to do about it."""


def unresolved_custom_op(name: str, model: Model, resolver: OpResolver) -> OpDef:
    """A stand-in for a custom operator that a resolver does not have: it can be delegated, but not prepared."""
    op = OpDef(name, inputs=("inputs*",), outputs=("outputs*",), versions=(Version(1, ""),), custom=True)

    @op.prepare
    def prepare(ctx: PrepareContext) -> None:
        first = _SELECT_TF if name.startswith("Flex") else _UNRESOLVED.format(name)
        output = f', output "{ctx.outputs[0].name}"' if ctx.outputs else ""
        what, help_ = _advice(ctx, model, resolver)
        raise PrepareError(
            f"{first} Node number {ctx.node_index} ({name}) failed to prepare.\n"
            f"{name} (node {ctx.node_index}{output}): {what} [version {ctx.version}].\n{help_}"
        )

    return op


def _advice(ctx: PrepareContext, model: Model, resolver: OpResolver) -> Advice:
    name = ctx.op.name
    have = [version for version in range(1, _MOST_VERSIONS + 1) if resolver.find_custom(name, version) is not None]
    if have:
        listed = ", ".join(map(str, have))
        return f"it is registered, but only in version {listed}", "A version is found by its exact number."
    for pattern, advise in FAMILIES.items():
        if re.fullmatch(pattern, name, re.DOTALL):
            return advise(ctx, model)
    return "no resolver has it and no delegate claimed it", _sketch(ctx)


def _edge_tpu(ctx: PrepareContext, model: Model) -> Advice:
    help_ = _original(model, r"(_cocompiled_with_.*|_segment_\d+_of_\d+)?_edgetpu")
    try:
        program = accelerators.edge_tpu_program(ctx.custom_options)
    except ModelError as error:
        return f"it should hold a program for the Coral Edge TPU, but {error}", help_
    which = "the Coral Edge TPU" if program.chip in ("beagle", "") else "an Edge TPU"
    chip = f"chip {program.chip!r}, " if program.chip else ""
    oldest = f"{chip}runtime version {program.min_runtime_version} or later"
    return f"it holds a program for {which} ({oldest}), which nothing else runs", help_


def _ethos_u(ctx: PrepareContext, model: Model) -> Advice:
    stream = ctx.constant(0)
    processor = accelerators.ethos_u(stream.tobytes()) if stream is not None else None
    compiler = f"Vela {accelerators.vela_version(model)}".rstrip()
    what = f"it holds commands for an Arm {processor or 'Ethos-U'}, made by {compiler}, which nothing else runs"
    return what, _original(model, "_vela")


def _dispatch(ctx: PrepareContext, model: Model) -> Advice:
    chip = " ".join(text for text in accelerators.npu(model) if text)
    which = f"an NPU ({chip})" if chip else "an NPU"
    return f"it holds bytecode for {which}, made ahead of time by LiteRT, which nothing else runs", _original(model)


def _original(model: Model, suffix: str = "") -> str:
    stem = os.path.splitext(os.path.basename(model.path or ""))[0]
    former = re.sub(f"{suffix}$", "", stem)
    name = f", {former}.tflite by its name" if former != stem else ""
    return f"Run the model that it was compiled from{name}."


def _flex(ctx: PrepareContext, model: Model) -> Advice:
    name = ctx.op.name.removeprefix("Flex")
    inputs = ["x", "y", "z", "w"][: len(ctx.inputs)] if len(ctx.inputs) <= _MOST_OPERANDS else ["*inputs"]
    return (
        f"the converter kept it as TensorFlow's {name}, which is not here",
        "Convert the model without SELECT_TF_OPS, if the builtin operators suffice.\n"
        "To supply it, write (docs/flex.md)\n"
        f"    @gossamer.flex_op({_quoted(name)})\n"
        f"    def {_words(name)}({', '.join(inputs)}): ...\n"
        f"and pass it: Interpreter(..., custom_ops=[{_words(name)}])",
    )


def _belongs_to(owner: str) -> Callable[[PrepareContext, Model], Advice]:
    return lambda ctx, model: (f"it belongs to {owner}", _sketch(ctx))


FAMILIES: dict[str, Callable[[PrepareContext, Model], Advice]] = {
    r"edgetpu-custom-op": _edge_tpu,
    r"ethos-u": _ethos_u,
    r"DISPATCH_OP": _dispatch,
    r"Flex.*": _flex,
    r"Lce[A-Z].*": _belongs_to("Larq Compute Engine, for binarized networks, whose interpreter has it"),
    r"TFText>.*|TFSentencepiece.*": _belongs_to("TensorFlow Text"),
    r"MTKEXT_.*": _belongs_to("MediaTek's NeuroPilot"),
    r"vsi-npu": _belongs_to("VeriSilicon's NPU, whose delegate runs it"),
    r"odml\..*": _belongs_to("LiteRT's operators for generative models"),
    r"Posenet_?Decoder_?Op": _belongs_to("Coral's PoseNet, whose library has it"),
}
"""Custom operators that come from somewhere known: a pattern for the name, and what to say of a node."""


def _sketch(ctx: PrepareContext) -> str:
    """The lines to write for an operator, with the operands and options of this node."""
    name = ctx.op.name
    function = _words(name)
    inputs = ["x", "y", "z", "w"][: len(ctx.inputs)] if len(ctx.inputs) <= _MOST_OPERANDS else ["*inputs"]
    options = _sketched_options(ctx.custom_options, inputs)
    star = [] if inputs == ["*inputs"] or not options or options == ["**options"] else ["*"]
    how = [_quoted(name)]
    if ctx.version != 1:
        how.append(f"versions={ctx.version}")
    if len(ctx.outputs) > 1:
        few = len(ctx.outputs) <= _MOST_OPERANDS
        outputs = [f"output_{i}" for i in range(len(ctx.outputs))] if few else ["outputs*"]
        how.append(f"outputs=[{', '.join(map(_quoted, outputs))}]")
    return (
        "To supply it, write (docs/custom-operators.md)\n"
        f"    @gossamer.custom_op({', '.join(how)})\n"
        f"    def {function}({', '.join([*inputs, *star, *options])}): ...\n"
        f"and pass it: Interpreter(..., custom_ops=[{function}])"
    )


def _words(name: str) -> str:
    """The name of a function for an operator."""
    words = re.sub(r"\W", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)).lower().lstrip("_0123456789")
    return f"{words}_" if keyword.iskeyword(words) or not words else words


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def _sketched_options(custom_options: bytes, taken: list[str]) -> list[str]:
    if not custom_options:
        return []
    try:
        options = flexbuffers.loads(custom_options)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        return ["custom_options"]
    named = {key: value for key, value in options.items() if not key.startswith("_")}
    clear = all(
        key.isidentifier() and not keyword.iskeyword(key) and key not in taken and isinstance(value, bool | int | float)
        for key, value in named.items()
    )
    if not clear or len(named) > _MOST_OPTIONS:
        return ["**options"]
    return [f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}" for key, value in named.items()]
