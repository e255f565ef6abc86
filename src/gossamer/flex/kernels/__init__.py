"""What TensorFlow's operators compute, in NumPy: one module for each family, one function for each operator.

A kernel is a function of a call and the operands as TensorFlow declares them, found by the operator's name::

    @kernel("Cross", shape=elementwise)
    def cross(call: Call, a: Array, b: Array) -> Array: ...

An operand that is declared as a list comes as a list; strings are ``bytes`` objects in arrays of objects; a variant is
the object itself (an array of objects where it is no scalar), a resource its number as an integer. What a kernel
returns is an array (or what becomes one), or a tuple of them with a list for each result that is declared as one;
results are cast to the declared type. Nothing that comes in is written to.

Nothing lists the modules: all are imported when a first kernel is looked for.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.sources.attributes import Attributes
from gossamer.dtypes import numpy_dtype
from gossamer.flex.node import FlexNode
from gossamer.ops.op_def import InvokeContext, Resources

Array = NDArray[Any]
Shape = tuple[int, ...]
ShapeRule = Callable[[FlexNode, Sequence[Shape]], Sequence[Shape]]
"""The shapes of the results by those of the operands. Raises `ValueError` if the operands do not fit."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Call:
    """One run of an operator. ``attributes`` are those of its NodeDef with all defaults; ``state`` is what the node
    keeps as long as the interpreter lives."""

    def __init__(self, node: FlexNode, context: InvokeContext, state: dict[str, Any]) -> None:
        self.node = node
        self.state = state
        self._context = context

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.node.op

    @property
    def attributes(self) -> Attributes:
        """The attributes, by methods that say of which kind each is."""
        return self.node.attributes

    def dtype(self, attribute: str) -> np.dtype[Any]:
        """NumPy's dtype for a type among the attributes."""
        return numpy_dtype(self.attributes.type(attribute))

    @property
    def resources(self) -> Resources:
        """State that all subgraphs of the interpreter share."""
        return self._context.resources

    def run_uncalled(self) -> None:
        """Run the subgraphs that nobody calls, once."""
        for index in set(self.resources.uncalled) - self.resources.initialized:
            self.resources.initialized.add(index)
            self._context.subgraph(index).call([])

    def poll(self) -> None:
        """To be called now and then in what runs long: raises when the invocation is to end."""
        self._context.poll()

    def fail(self, message: str) -> NoReturn:
        """Raise `InvokeError`: which operator, where, what is wrong."""
        self._context.fail(message)

    def require(self, condition: object, message: str) -> None:
        """Raise `InvokeError` unless the condition holds."""
        self._context.require(condition, message)


class Kernel(NamedTuple):
    """What computes an operator, and the rule that tells the shapes of its results before it runs, if there is one."""

    function: Callable[..., Any]
    shape: ShapeRule | None


_kernels: dict[str, Kernel] = {}
_modules: set[str] = set()


def kernel(*names: str, shape: ShapeRule | None = None) -> Callable[[Function], Function]:
    """Decorator: the function computes the operators of these names. Raises `ValueError` if another one does."""

    def register(function: Function) -> Function:
        for name in names:
            known = _kernels.get(name)
            if known is not None and known.function.__module__ != function.__module__:
                raise ValueError(f"{name} is computed in {known.function.__module__} already")
            _kernels[name] = Kernel(function, shape)
        return function

    return register


def find_kernel(name: str) -> Kernel | None:
    """The kernel of an operator, ``None`` if there is none."""
    return all_kernels().get(name)


def all_kernels() -> dict[str, Kernel]:
    """Every kernel by the operator's name."""
    if not _modules:
        for info in pkgutil.iter_modules(__path__):
            importlib.import_module(f"{__name__}.{info.name}")
            _modules.add(info.name)
    return _kernels


def elementwise(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    """Results have the shape that the operands broadcast to."""
    return [np.broadcast_shapes(*shapes)] * len(node.outputs)


def like_first(node: FlexNode, shapes: Sequence[Shape]) -> list[Shape]:
    """Results have the shape of the first operand."""
    return [tuple(shapes[0])] * len(node.outputs)
