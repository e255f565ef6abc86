"""What passes tensors on after a look at them, prints them, or does nothing."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

import numpy as np

from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.text import summary


@kernel("IdentityN", shape=lambda node, shapes: list(map(tuple, shapes)))
def identity_n(call: Call, inputs: list[Any]) -> Any:
    """The operands themselves."""
    return (inputs,)


@kernel("NoOp", "ControlTrigger")
def nothing(call: Call) -> None:
    """Nothing."""


@kernel("Timestamp", shape=lambda node, shapes: [()])
def timestamp(call: Call) -> float:
    """Seconds since 1970."""
    return time.time()


@kernel("Abort")
def abort(call: Call) -> None:
    """Ends the invocation with an error, unless ``exit_without_error``."""
    if not call.attributes.bool("exit_without_error"):
        call.fail(call.attributes.text("error_msg") or "the model ends here")


@kernel("Placeholder", "PlaceholderV2")
def placeholder(call: Call) -> None:
    """Fails: what is to be fed is an input of the model."""
    call.fail("there is nothing that could feed a placeholder; the converter makes inputs of them")


@kernel("Assert")
def assert_(call: Call, condition: Array, data: list[Any]) -> None:
    """Fails with the data unless the condition holds."""
    if not np.all(condition):
        most = call.attributes.int("summarize")
        shown = b" ".join([summary(np.asarray(one), most) for one in data])
        call.fail(f"assertion failed: {shown.decode(errors='replace')}")


@kernel("CheckNumerics", "CheckNumericsV2", shape=like_first)
def check_numerics(call: Call, tensor: Array) -> Array:
    """The operand; fails if there is an infinity or no number in it."""
    strange = [name for name, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(tensor).any()]
    call.require(not strange, f"{call.attributes.text('message')} : tensor has {' and '.join(strange)} values")
    return tensor


@kernel("Print", shape=like_first)
def print_(call: Call, x: Any, data: list[Any]) -> Any:
    """The operand; the data is printed to the standard error, ``first_n`` times."""
    printed = call.state.get("printed", 0)
    most = call.attributes.int("first_n")
    if most < 0 or printed < most:
        call.state["printed"] = printed + 1
        shown = b"".join([summary(np.asarray(one), call.attributes.int("summarize")) for one in data])
        _show(sys.stderr, call.attributes.text("message") + shown.decode(errors="replace") + "\n")
    return x


@kernel("PrintV2")
def print_v2(call: Call, text: Array) -> None:
    """Prints a string to a stream; into a file (``file://``) nothing is printed."""
    stream, end = call.attributes.text("output_stream"), call.attributes.text("end")
    call.require(not stream.startswith("file://"), f"output_stream {stream!r}: models print into no files here")
    shown: str = text.reshape(-1)[0].decode(errors="replace")
    _show(sys.stdout if stream in ("stdout", "log(info)") else sys.stderr, shown + end)


def _show(stream: TextIO, text: str) -> None:
    """What a model prints is what its user asked for."""
    stream.write(text)
    stream.flush()
