"""One hostile model through everything that a program does with a model, on both paths, and a judgement of how it
went. `drive` drives LiteRT as well."""

from __future__ import annotations

import linecache
import math
import random
import re
import time
import traceback
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gossamer
from gossamer.errors import GossamerError, ModelError
from gossamer.model.reader import read_model
from gossamer.schema import BuiltinOperator

SOURCE = str(Path(gossamer.__file__).parent)
REFERENCE = gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
ORDERLY = ("ran", "refused")
APART = ("apart", "unlike")
OWN_LIMITS = re.compile("not enough memory|MemoryError|requested cancel")
"""Of refusals that are about the time and the memory that a path takes."""

LOOPS = (BuiltinOperator.WHILE, BuiltinOperator.STABLEHLO_WHILE)
LOOP_SECONDS = 2.0
"""Time of a model with loops, which may be told to run on and on."""

CALL_SIZE = 1 << 20
"""Elements of an input above which it is left as it is."""

KEPT = 1 << 18
"""Bytes of a result above which its shape is all that is kept."""

TURNS = ("zeros", "ordinary", "extreme")
EXTREME = TURNS.index("extreme")
"""What inputs are in each invocation."""

NOISE = re.compile("RANDOM|MULTINOMIAL")
"""Operators that no two runs agree on."""

TOLERANCE = 1e-3
"""Of floats, as a part of the largest magnitude: that of the conformance corpus for the paths of LiteRT itself."""

LARGEST = 3.4028e38
"""A float32 above which is as good as infinite."""

Result = tuple[str, str, tuple[int, ...], "NDArray[Any] | None"]
"""What was read where: stage, dtype, shape, value (``None`` if it is large)."""


@dataclass
class Outcome:
    """How a mutant went. ``verdict``: ``ran``; ``refused`` in good order; ``clumsy``: refused in good order, but only
    because something tripped over it; ``leak``: an exception that is not documented; ``noise``: a warning or output;
    ``apart``: the reference path does not take what the default path takes, or the other way round, or gives results
    of other shapes; ``unlike``: the same with other numbers, about which LiteRT is to be asked: so do its own paths;
    and of the worker ``crash`` and ``hang``. ``where``: what to look at, equal for equal causes."""

    verdict: str
    stage: str = ""
    where: str = ""
    detail: str = ""
    seconds: float = 0.0
    peak_mib: int = 0
    results: list[Result] = field(default_factory=list)
    """Every result that was read."""

    paths: tuple[Outcome, Outcome] | None = None
    """Of `drive_both`: how it went on the default path and on the reference path."""


def drive_both(content: bytes, seed: int = 0) -> Outcome:
    """`drive` on the default path and on the reference path: the worse of the two, or what sets them apart."""
    default = drive(content, seed)
    reference = drive(content, seed, experimental_op_resolver_type=REFERENCE)
    if default.verdict not in ORDERLY or reference.verdict not in ORDERLY:
        found = default if default.verdict not in ORDERLY else reference
    elif OWN_LIMITS.search(default.detail + reference.detail):
        found = default
    else:
        found = difference(default, reference) or default
    return replace(found, seconds=default.seconds + reference.seconds, results=[], paths=(default, reference))


def difference(one: Outcome, other: Outcome) -> Outcome | None:
    """Where two runs of one mutant part: ``apart`` or ``unlike``, with the place; ``None`` if nowhere."""
    for left, right in zip(one.results, other.results, strict=False):
        stage, how = left[0], _unlike(left, right)
        if how:
            verdict = "unlike" if left[:3] == right[:3] else "apart"
            return Outcome(verdict, stage, how, f"{_told(left)}; {_told(right)}")
    if one.verdict == other.verdict and (one.verdict == "ran" or len(one.results) == len(other.results)):
        return None
    first = one if one.verdict == "refused" else other
    refusal = re.sub(r"[^a-z ]+", "", first.detail.partition("):")[2] or first.detail)
    where = f"{one.verdict}, {other.verdict}: {refusal[:60].strip()}"
    return Outcome("apart", first.stage, where, f"{one.detail or one.verdict}; {other.detail or other.verdict}")


def _unlike(left: Result, right: Result) -> str:
    """In what two results differ; nothing if they are one result."""
    if left[:3] != right[:3]:
        return "results of other shapes"
    a, b = left[3], right[3]
    if a is None or b is None:
        return ""
    if a.dtype.kind in "fc" or a.dtype.name == "bfloat16":
        with np.errstate(all="ignore"):
            a, b = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
            # Kernels that clamp to all floats have no infinities.
            a, b = (np.where(np.abs(v) >= LARGEST, np.copysign(np.inf, v.real), v) for v in (a, b))
            most = max(float(np.abs(v[np.isfinite(v)]).max(initial=0)) for v in (a, b))
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= TOLERANCE * most + 1e-6)
        wild = not all(np.isfinite(v).all() for v in (a, b))
        return "" if same.all() else "other infinities or NaN" if wild else "other floats"
    if a.dtype.kind in "biu":
        apart = np.abs(a.astype(object) - b.astype(object)).max(initial=0) if not np.array_equal(a, b) else 0
        return "" if not apart else f"{a.dtype}: one apart" if apart == 1 else f"{a.dtype}: more apart"
    return "" if a.shape == b.shape and a.tolist() == b.tolist() else f"other {a.dtype}"


def _told(result: Result) -> str:
    stage, dtype, shape, value = result
    return f"{stage}: {dtype}{list(shape)} {'' if value is None else value.reshape(-1)[:24].tolist()}"


def drive(content: bytes, seed: int = 0, make: Callable[..., Any] = gossamer.Interpreter, **arguments: Any) -> Outcome:
    """Builds, allocates, feeds, invokes, reads; more than once, resized at random.

    The inputs depend on the seed, their position and their shape alone. ``make``: the class of the interpreter.
    """
    stage = ["construct"]
    results: list[Result] = []
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _drive(lambda: make(model_content=content, **arguments), seed, stage, results, _constants(content))
        outcome = Outcome("ran", stage[0])
    except Warning as warning:
        outcome = Outcome("noise", stage[0], _place(warning), f"{type(warning).__name__}: {warning}")
    except Exception as error:
        outcome = judged(error, stage[0])
    outcome.results = results
    outcome.seconds = time.perf_counter() - start
    return outcome


def _constants(content: Any) -> set[int]:
    """The tensors of the first subgraph that have a value in the file, into which LiteRT lets one write."""
    try:
        model = read_model(content)
        tensors, buffers = model.subgraphs[0].tensors, model.buffers
        filled = {i for i, buffer in enumerate(buffers) if buffer.data.size or buffer.offset}
        return {i for i, tensor in enumerate(tensors) if tensor.buffer in filled}
    except (ModelError, IndexError):
        return set()


def _drive(
    make: Callable[[], Any], seed: int, stage: list[str], results: list[Result], constants: Container[int]
) -> None:
    interpreter = make()
    noisy = False
    if isinstance(interpreter, gossamer.Interpreter):
        codes = interpreter.model.operator_codes
        if any(code.builtin_code in LOOPS for code in codes):
            until = time.monotonic() + LOOP_SECONDS
            interpreter.set_cancellation_function(lambda: time.monotonic() > until)
        noisy = any(NOISE.search(str(getattr(code.builtin_code, "name", "")) + code.custom_code) for code in codes)

    def keep(value: Any) -> None:
        value = np.asarray(value)
        if not value.size:
            return  # LiteRT has no data then, or has it
        kept = None if noisy or value.nbytes > KEPT else value.copy()
        results.append((stage[0], str(value.dtype), value.shape, kept))

    stage[0] = "details"
    interpreter.get_input_details(), interpreter.get_output_details(), interpreter.get_signature_list()
    stage[0] = "allocate"
    interpreter.allocate_tensors()
    for turn, kind in enumerate(TURNS):
        stage[0] = f"set {turn}"
        for position, details in enumerate(interpreter.get_input_details()):
            value = value_for(details, random.Random(f"{seed} {turn} {position}"), kind)
            if value is not None and details["index"] not in constants:
                with _refusals():  # a tensor that nobody reads
                    interpreter.set_tensor(details["index"], value)
        stage[0] = f"invoke {turn}"
        interpreter.invoke()
        stage[0] = f"get {turn}"
        for details in interpreter.get_output_details():
            with _refusals():  # an output that nobody writes
                keep(interpreter.get_tensor(details["index"]))
                interpreter.tensor(details["index"])()
        rng = random.Random(f"{seed} {turn}")
        if turn < 2 and rng.random() < 0.3:
            stage[0] = f"resize {turn}"
            for details in interpreter.get_input_details():
                shape = [rng.choice((size, size, 0, 1, 2, size + 1)) for size in details["shape"].tolist()]
                interpreter.resize_tensor_input(details["index"], shape)
            stage[0] = f"reallocate {turn}"
            interpreter.allocate_tensors()
    stage[0] = "details at the end"
    if isinstance(interpreter, gossamer.Interpreter):
        for subgraph in range(interpreter.num_subgraphs()):
            with _refusals():  # scales in a tensor without a value
                interpreter.get_tensor_details(subgraph)
    for signature in sorted(interpreter.get_signature_list())[:2]:
        stage[0] = "signature"
        runner = interpreter.get_signature_runner(signature)
        details = runner.get_input_details()
        values = {name: value_for(details[name], random.Random(f"{seed} {name}")) for name in details}
        if all(value is not None for value in values.values()):
            with _refusals():  # LiteRT, of a result without elements
                outputs = runner(**values)
                for name in sorted(outputs):
                    keep(outputs[name])
    stage[0] = "end"


@contextmanager
def _refusals() -> Iterator[None]:
    """Goes on after a call that was turned down in good order."""
    try:
        yield
    except ValueError as error:
        if judged(error, "").verdict != "refused":
            raise


def value_for(details: dict[str, Any], rng: random.Random, kind: str = "zeros") -> NDArray[Any] | None:
    """A value of the shape and dtype of an input: ``zeros``, ``ordinary`` or ``extreme``; ``None`` where it would be
    too large."""
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
    if kind == "zeros" or not elements:
        return value
    draw = np.random.default_rng(rng.getrandbits(32))
    if kind == "ordinary":
        if dtype.kind == "b":
            drawn: Any = draw.integers(0, 2, shape)
        elif dtype.kind in "iu":
            few = dtype.itemsize > 2 or rng.random() < 0.2  # perhaps indices or sizes
            drawn = draw.integers(0, 4, shape) if few else draw.integers(0, 1 << 8 * dtype.itemsize, shape)
        else:
            drawn = draw.standard_normal(shape)
        return np.asarray(drawn).astype(dtype)
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
            flat = draw.choice(pool, min(elements, 4096))
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
    """Whether a ``raise`` of this package raised it, and nothing that it called. What LiteRT raises, it means."""
    frames = traceback.extract_tb(error.__traceback__)
    if frames and "ai_edge_litert" in frames[-1].filename:
        return True
    if not frames or not frames[-1].filename.startswith(SOURCE):
        return False
    return linecache.getline(frames[-1].filename, frames[-1].lineno or 0).strip().startswith("raise")


def _place(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(SOURCE)]
    if not frames:
        return type(error).__name__
    last = frames[-1]
    return f"{type(error).__name__} at {last.filename[len(SOURCE) + 1 :]}:{last.lineno} {last.line}"
