"""What goes wrong, by whose fault and when. Each class is also the built-in type that `tf.lite` raises there."""

from __future__ import annotations

from collections.abc import Iterable


class GossamerError(Exception):
    """Base of every error that this package raises on purpose.

    >>> try:
    ...     gossamer.Interpreter(model_content=b"no model")
    ... except gossamer.GossamerError as error:
    ...     print(type(error).__name__)
    ModelError
    """


class ModelError(GossamerError, ValueError):
    """The file is damaged, contradicts itself or is not a .tflite model; raised before anything of it is used.

    >>> issubclass(gossamer.ModelError, (gossamer.GossamerError, ValueError))
    True
    """


class UnsupportedOpError(GossamerError, ValueError, NotImplementedError):
    """No operator is registered for the code and version, or the custom name, that a model asks for.

    >>> issubclass(gossamer.UnsupportedOpError, (gossamer.GossamerError, ValueError))
    True
    """


class PrepareError(GossamerError, ValueError, RuntimeError):
    """Shapes, types, options or quantization that an operator refuses; raised by ``allocate_tensors``.

    >>> issubclass(gossamer.PrepareError, (gossamer.GossamerError, ValueError))
    True
    """


class InvokeError(GossamerError, RuntimeError):
    """The call cannot be carried out: not allocated, data missing, or values that an operator refuses.

    >>> issubclass(gossamer.InvokeError, (gossamer.GossamerError, RuntimeError))
    True
    """


class CancelledError(InvokeError):
    """An invocation was ended before it was done, because somebody wanted it; the next one runs.

    >>> issubclass(gossamer.CancelledError, (gossamer.GossamerError, RuntimeError))
    True
    """


class DeadlineExceededError(CancelledError, TimeoutError):
    """An invocation took longer than it was given, and was ended before it was done; the next one runs.

    >>> issubclass(gossamer.DeadlineExceededError, (gossamer.GossamerError, TimeoutError))
    True
    """


class DelegateError(GossamerError, RuntimeError):
    """A delegate failed when it was applied, and is off again, or it takes what is another's.

    >>> issubclass(gossamer.DelegateError, (gossamer.GossamerError, RuntimeError))
    True
    """


class DelegateLoadError(GossamerError, OSError, ValueError):
    """There is no such delegate, or it is none of this runtime: clients of TFLite catch either built-in type."""


class CompiledModelError(GossamerError, RuntimeError):
    """A `gossamer.compiled_model.CompiledModel` cannot be made, or cannot do what it is asked for."""


class RegistererError(GossamerError, ValueError, RuntimeError):
    """Custom operators are named that are functions of C++ libraries."""


class SizeOverflowError(GossamerError, OverflowError, ValueError):
    """A size of a shape does not fit 32 bits."""


class CompileError(GossamerError, RuntimeError):
    """A kernel could not be compiled.

    >>> issubclass(gossamer.CompileError, (gossamer.GossamerError, RuntimeError))
    True
    """


class ArenaError(GossamerError, RuntimeError):
    """A memory plan is wrong or does not fit.

    >>> issubclass(gossamer.ArenaError, (gossamer.GossamerError, RuntimeError))
    True
    """


class ConvertError(GossamerError, ValueError):
    """A source cannot be converted: what, where, got, what to do.

    >>> issubclass(gossamer.ConvertError, (gossamer.GossamerError, ValueError))
    True
    """


class EditError(GossamerError, ValueError):
    """A model cannot be changed so: what is not there, what does not fit, what would be no sound model.

    >>> issubclass(gossamer.EditError, gossamer.GossamerError)
    True
    """


class InputError(GossamerError, ValueError):
    """A file or a value that is no picture, sound or array, or does not fit the input that it is for."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known word, else a full stop."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else "."


def explain(error: BaseException) -> str:
    """The message of an error, with its kind where the message alone would say little."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    return str(error) or type(error).__name__
