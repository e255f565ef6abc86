"""What calls of an interpreter come to, as plain data: for comparing two implementations call by call.

A script is a function of an `Api` and a `Recorder`. LiteRT runs it in a process of its own, because some of the calls
kill it: the script's outcomes then end with ``CRASH``.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Outcome = tuple[Any, ...]
Outcomes = list[tuple[str, Outcome]]

CRASH = ("crash",)
RTOL = ATOL = 1e-5


@dataclass(frozen=True)
class Api:
    """The names that a program imports: ``Interpreter``, ``InterpreterWithCustomOps``, ``OpResolverType``,
    ``SignatureRunner``, ``load_delegate``."""

    module: Any

    def open(self, content: bytes | None = None, *, resolver: str = "BUILTIN_WITHOUT_DEFAULT_DELEGATES", **how: Any):
        """An interpreter without default delegates, which would hide what tensors and nodes there are."""
        if content is not None:
            how["model_content"] = content
        how.setdefault("experimental_op_resolver_type", getattr(self.module.OpResolverType, resolver))
        return self.module.Interpreter(**how)


Script = Callable[[Api, "Recorder"], None]


class Recorder:
    """``record(label, function)`` calls the function and notes what comes of it; gives its value, or ``None``."""

    def __init__(self, emit: Callable[[tuple[str, Outcome]], None]) -> None:
        self._emit = emit

    def __call__(self, label: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = function(*arguments, **named)
            except Exception as error:
                kinds = [kind.__name__ for kind in type(error).__mro__]
                self._emit((label, ("error", kinds, str(error))))
                return None
            self._emit((label, ("value", plain(value))))
        return value


def plain(value: Any) -> Any:
    """A value with its types, as data that pickles and compares."""
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype == np.object_ else np.array(value)
        return ("array", str(value.dtype), value.shape, content)
    if isinstance(value, np.generic):
        return ("scalar", str(value.dtype), (), np.array(value))
    if isinstance(value, type):
        return ("type", value.__name__)
    if isinstance(value, dict):
        return ("dict", [(key, plain(item)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [plain(item) for item in value])
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return (type(value).__name__, value)
    return ("object", type(value).__name__)


def form(value: Any) -> tuple[str, str, tuple[int, ...]]:
    """The type, dtype and shape of an array, for where its content is not defined."""
    return (type(value).__name__, str(value.dtype), value.shape)


def same(ours: Any, theirs: Any) -> bool:
    """Whether two outcomes agree: floats within a tolerance, errors by type (ours may be derived from theirs)."""
    if isinstance(theirs, np.ndarray):
        if not isinstance(ours, np.ndarray) or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return False
        if ours.dtype.kind in "fc":
            return np.allclose(ours, theirs, RTOL, ATOL, equal_nan=True)
        return np.array_equal(ours, theirs)
    if isinstance(theirs, tuple) and theirs[:1] == ("error",):
        return ours[0] == "error" and theirs[1][0] in ours[1]
    if isinstance(theirs, tuple | list):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            return False
        return all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    return type(ours) is type(theirs) and ours == theirs


def outcomes(script: Script, api: Api) -> Outcomes:
    """What the calls of a script come to, here."""
    found: Outcomes = []
    script(api, Recorder(found.append))
    return found


def outcomes_apart(script: Script, api: Api, seconds: float = 60) -> Outcomes:
    """What the calls of a script come to in a process of its own, which may die."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def run() -> None:
        script(api, Recorder(sending.send))
        sending.send(None)

    process = context.Process(target=run, daemon=True)
    process.start()
    sending.close()
    found: Outcomes = []
    try:
        while receiving.poll(seconds):
            item = receiving.recv()
            if item is None:
                break
            found.append(item)
        else:
            found.append(("", CRASH))
    except EOFError:
        found.append(("", CRASH))
    finally:
        process.kill()
        process.join()
        receiving.close()
    return found
