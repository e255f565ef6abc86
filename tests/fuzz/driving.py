"""One hostile model through everything that a program does with a model, on both paths, and a judgement of how it
went."""

from __future__ import annotations

import linecache
import math
import random
import re
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gossamer
from gossamer.errors import GossamerError
from gossamer.schema import BuiltinOperator

SOURCE = str(Path(gossamer.__file__).parent)
REFERENCE = gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
ORDERLY = ("ran", "refused")
OWN_LIMITS = re.compile("not enough memory|MemoryError|requested cancel")
"""Of refusals that are about the time and the memory that a path takes."""

LOOPS = (BuiltinOperator.WHILE, BuiltinOperator.STABLEHLO_WHILE)
LOOP_SECONDS = 2.0
"""Time of a model with loops, which may be told to run on and on."""

CALL_SIZE = 1 << 20
"""Elements of an input above which it is left as it is."""


@dataclass
class Outcome:
    """How a mutant went. ``verdict``: ``ran``; ``refused`` in good order; ``clumsy``: refused in good order, but only
    because something tripped over it; ``leak``: an exception that is not documented; ``noise``: a warning or output;
    ``apart``: the reference path does not take what the default path takes, or the other way round, or gives results
    of other shapes; and of the worker ``crash`` and ``hang``. ``where``: what to look at, equal for equal causes."""

    verdict: str
    stage: str = ""
    where: str = ""
    detail: str = ""
    seconds: float = 0.0
    peak_mib: int = 0
    results: list[str] = field(default_factory=list)
    """dtype and shape of every result that was read."""


def drive_both(content: bytes, seed: int = 0) -> Outcome:
    """`drive` on the default path and on the reference path: the worse of the two, or what sets them apart."""
    default = drive(content, seed)
    reference = drive(content, seed, experimental_op_resolver_type=REFERENCE)
    seconds = default.seconds + reference.seconds
    if default.verdict not in ORDERLY or reference.verdict not in ORDERLY:
        worse = default if default.verdict not in ORDERLY else reference
    elif OWN_LIMITS.search(default.detail + reference.detail):
        worse = default
    elif default.verdict != reference.verdict:
        refusal = re.sub(r"[^a-z ]+", "", (default.detail or reference.detail).partition("):")[2])
        where = f"default {default.verdict}, reference {reference.verdict}: {refusal[:60].strip()}"
        words = f"default: {default.detail or default.verdict}; reference: {reference.detail or reference.verdict}"
        worse = Outcome("apart", (default if default.verdict == "refused" else reference).stage, where, words)
    elif default.results != reference.results:
        words = f"default: {default.results}; reference: {reference.results}"
        worse = Outcome("apart", "get", "results of other shapes", words)
    else:
        worse = default
    worse.seconds = seconds
    return worse


def drive(content: bytes, seed: int = 0, **arguments: Any) -> Outcome:
    """Builds, allocates, feeds, invokes, reads; twice, the second time resized at random."""
    rng = random.Random(seed)
    stage = ["construct"]
    results: list[str] = []
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _drive(content, rng, stage, results, arguments)
        outcome = Outcome("ran", stage[0], results=results)
    except Warning as warning:
        outcome = Outcome("noise", stage[0], _place(warning), f"{type(warning).__name__}: {warning}")
    except Exception as error:
        outcome = judged(error, stage[0])
    outcome.seconds = time.perf_counter() - start
    return outcome


def _drive(content: bytes, rng: random.Random, stage: list[str], results: list[str], arguments: dict[str, Any]) -> None:
    interpreter = gossamer.Interpreter(model_content=content, **arguments)
    if any(code.builtin_code in LOOPS for code in interpreter.model.operator_codes):
        until = time.monotonic() + LOOP_SECONDS
        interpreter.set_cancellation_function(lambda: time.monotonic() > until)
    stage[0] = "details"
    interpreter.get_input_details(), interpreter.get_output_details(), interpreter.get_signature_list()
    stage[0] = "allocate"
    interpreter.allocate_tensors()
    for again in (False, True):
        stage[0] = "set"
        for details in interpreter.get_input_details():
            value = value_for(details, rng, extreme=again)
            if value is not None:
                with _refusals():  # a constant as input
                    interpreter.set_tensor(details["index"], value)
        stage[0] = "invoke"
        interpreter.invoke()
        stage[0] = "get"
        for details in interpreter.get_output_details():
            with _refusals():  # an output that nobody writes
                value = np.asarray(interpreter.get_tensor(details["index"]))
                results.append(f"{value.dtype}{list(value.shape)}")
                interpreter.tensor(details["index"])()
        if not again and rng.random() < 0.3:
            stage[0] = "resize"
            for details in interpreter.get_input_details():
                shape = [rng.choice((size, size, 0, 1, 2, size + 1)) for size in details["shape"].tolist()]
                interpreter.resize_tensor_input(details["index"], shape)
            stage[0] = "reallocate"
            interpreter.allocate_tensors()
    stage[0] = "details"
    for subgraph in range(interpreter.num_subgraphs()):
        with _refusals():  # scales in a tensor without a value
            interpreter.get_tensor_details(subgraph)
    for signature in list(interpreter.get_signature_list())[:2]:
        stage[0] = "signature"
        runner = interpreter.get_signature_runner(signature)
        values = {name: value_for(details, rng) for name, details in runner.get_input_details().items()}
        if all(value is not None for value in values.values()):
            runner(**values)
    stage[0] = "end"


@contextmanager
def _refusals() -> Iterator[None]:
    """Goes on after a call that was turned down in good order."""
    try:
        yield
    except ValueError as error:
        if judged(error, "").verdict != "refused":
            raise


def value_for(details: dict[str, Any], rng: random.Random, *, extreme: bool = False) -> NDArray[Any] | None:
    """A value of the shape and dtype of an input; ``None`` where it would be too large."""
    shape, dtype = details["shape"].tolist(), np.dtype(details["dtype"])
    elements = 1
    for size in shape:
        elements *= size
    if (
        elements > CALL_SIZE
        or any(size < 0 for size in shape)
        or math.prod(size or 1 for size in shape) > 1 << 58
        or len(shape) > 32
    ):
        return None  # no array of NumPy, even if it were empty
    if dtype.kind in "OSU":
        return np.full(shape, rng.choice((b"", b"a", b"a b c", b"\xff" * 9)), object)
    value = np.zeros(shape, dtype)
    if not extreme or not elements:
        return value
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        choices: list[Any] = [int(info.min), int(info.max), 1, 2, int(info.max) // 2]
        choices += [-1] if info.min else []
    elif dtype.kind == "b":
        choices = [True, False]
    elif dtype.kind in "fc":
        choices = [1.0, -1.0, np.nan, np.inf, -np.inf, 3e38, 1e-45, 0.5, 1e10]
    else:
        return value
    with np.errstate(all="ignore"):
        if rng.random() < 0.5:
            value[...] = np.array(rng.choice(choices)).astype(dtype)
        else:
            pool = np.array(choices).astype(dtype)
            flat = np.random.default_rng(rng.getrandbits(32)).choice(pool, min(elements, 4096))
            value[...] = np.resize(flat, shape)
    return value


def judged(error: BaseException, stage: str) -> Outcome:
    """Whether an exception is one of those that the documentation promises, and one that was meant."""
    detail = f"{type(error).__name__}: {error}"
    if not isinstance(error, GossamerError) and not (type(error) in (ValueError, RuntimeError) and _was_meant(error)):
        return Outcome("leak", stage, _place(error), detail + "\n" + "".join(traceback.format_exception(error)[-8:]))
    reason = error
    while reason.__cause__ is not None or (reason.__context__ is not None and not reason.__suppress_context__):
        reason = reason.__cause__ or reason.__context__  # type: ignore[assignment]
    if not isinstance(reason, MemoryError) and not _was_meant(reason) and not _is_about_the_file(reason):
        return Outcome("clumsy", stage, _place(reason), detail)
    return Outcome("refused", stage, "", detail)


def _is_about_the_file(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and any(part in frames[-1].filename for part in ("/gossamer/model/", "<layout of"))


def _was_meant(error: BaseException) -> bool:
    """Whether a ``raise`` of this package raised it, and nothing that it called."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not frames[-1].filename.startswith(SOURCE):
        return False
    return linecache.getline(frames[-1].filename, frames[-1].lineno or 0).strip().startswith("raise")


def _place(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(SOURCE)]
    if not frames:
        return type(error).__name__
    last = frames[-1]
    return f"{type(error).__name__} at {last.filename[len(SOURCE) + 1 :]}:{last.lineno} {last.line}"
