"""`InterpreterWithCustomOps`: the constructor of ``tf.lite`` that takes custom operators by functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gossamer.errors import RegistererError
from gossamer.ops.op_def import OpDef
from gossamer.resolver import MutableOpResolver, OpResolverType
from gossamer.runtime.interpreter import Interpreter
from gossamer.runtime.settings import resolver_of


class InterpreterWithCustomOps(Interpreter):
    """An `Interpreter` with custom operators: each of ``custom_op_registerers`` is called with a `MutableOpResolver`,
    or is an operator that `gossamer.custom_op` made.

    Raises `RegistererError`, a `ValueError`, for a registerer that is a symbol name: those live in C++ libraries.

    >>> double = gossamer.custom_op("Double", shape="x")(lambda x: 2 * x)
    >>> gossamer.InterpreterWithCustomOps([double], model_path="digits.tflite").num_subgraphs()
    1
    """

    def __init__(
        self,
        custom_op_registerers: Sequence[OpDef | Callable[[MutableOpResolver], None]] | None = None,
        **kwargs: Any,
    ) -> None:
        base = resolver_of(kwargs.pop("experimental_op_resolver_type", OpResolverType.AUTO))
        resolver = MutableOpResolver(base)
        for registerer in custom_op_registerers or ():
            if isinstance(registerer, OpDef):
                resolver.add(registerer)
            elif callable(registerer):
                registerer(resolver)
            else:
                raise RegistererError(
                    f"Looking up symbol '{registerer}' failed: a registerer here is a Python function that takes a "
                    "MutableOpResolver"
                )
        super().__init__(experimental_op_resolver_type=resolver, **kwargs)
