"""What each operator of a source becomes: functions found by the operator's name, one package for each kind of source.

A module of such a package registers what it has::

    @lowers("Conv2D")
    def conv_2d(call: Call) -> Value: ...

Nothing lists the modules: all of a package are imported when a first operator is looked for.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

C = TypeVar("C")
Function = TypeVar("Function", bound=Callable[..., Any])


class Lowerings(Generic[C]):
    """The lowerings of one kind of source: functions of a call of type ``C`` by operator names."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._functions: dict[str, Callable[[C], Any]] = {}
        self._loaded = False

    def __call__(self, *names: str) -> Callable[[Function], Function]:
        """Decorator: the function lowers the operators of these names. Raises `ValueError` if another one does."""

        def register(function: Function) -> Function:
            for name in names:
                known = self._functions.get(name)
                again = known is not None and _place(known) == _place(function)  # a module that failed, tried once more
                if known is not None and not again:
                    raise ValueError(f"{name} is lowered by {known.__module__} already")
                self._functions[name] = function
            return function

        return register

    def all(self) -> Mapping[str, Callable[[C], Any]]:
        """Every lowering by the operator's name."""
        if not self._loaded:
            package = importlib.import_module(self._package)
            for info in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{self._package}.{info.name}")
            self._loaded = True
        return self._functions

    def find(self, name: str) -> Callable[[C], Any] | None:
        """The lowering of an operator, ``None`` if there is none."""
        return self.all().get(name)


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__
