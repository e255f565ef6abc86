"""Which operators a firmware has (MicroMutableOpResolver)."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.errors import UnsupportedOpError
from gossamer.micro.adders import adder
from gossamer.micro.kernels import all_kernels, find_kernel
from gossamer.micro.kernels.cmsis_nn import Target, cmsis_nn_kernel
from gossamer.micro.kernels.kernel import MicroKernel
from gossamer.model.model import Model, code_name, resolved_code
from gossamer.schema.enums import BuiltinOperator


class MicroOpResolver:
    """Finds kernels; all that ship. Unlike a resolver of TFLite it knows no versions."""

    def find_builtin(self, code: int) -> MicroKernel | None:
        """The kernel of a builtin operator."""
        return find_kernel(BuiltinOperator(code).name) if code in _CODES else None

    def find_custom(self, name: str) -> MicroKernel | None:
        """The kernel of a custom operator."""
        return find_kernel(name, custom=True)


class CmsisNnOpResolver(MicroOpResolver):
    """Finds the kernels of a firmware with CMSIS-NN for what it is built for. They tell what they take from the arena;
    what they compute is what TFLite Micro's own compute."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def find_builtin(self, code: int) -> MicroKernel | None:
        """See `MicroOpResolver`."""
        kernel = super().find_builtin(code)
        return None if kernel is None else cmsis_nn_kernel(kernel, self.target)


class MicroMutableOpResolver(MicroOpResolver):
    """Room for ``size`` operators, which are added one by one: ``resolver.add("CONV_2D")``."""

    def __init__(self, size: int, operators: Iterable[str | MicroKernel] = ()) -> None:
        self.size = size
        self._builtins: dict[str, MicroKernel] = {}
        self._customs: dict[str, MicroKernel] = {}
        for operator in operators:
            self.add(operator)

    def __len__(self) -> int:
        return len(self._builtins) + len(self._customs)

    def add(self, operator: str | MicroKernel) -> None:
        """Register a kernel, or the one that ships for a builtin operator or a custom name.

        Raises `UnsupportedOpError` for one that TFLite Micro does not have, a second one of the same name, and for one
        more than there is room for.
        """
        kernel = operator if isinstance(operator, MicroKernel) else _shipped(operator)
        known = self._customs if kernel.custom else self._builtins
        if kernel.name in known:
            raise UnsupportedOpError(
                f"{kernel.name} is registered already: the same op more than once is not supported"
            )
        if len(self) >= self.size:
            raise UnsupportedOpError(f"Couldn't register {kernel.name}, resolver size is too small ({self.size})")
        known[kernel.name] = kernel

    def find_builtin(self, code: int) -> MicroKernel | None:
        """See `MicroOpResolver`."""
        return self._builtins.get(BuiltinOperator(code).name) if code in _CODES else None

    def find_custom(self, name: str) -> MicroKernel | None:
        """See `MicroOpResolver`."""
        return self._customs.get(name)


def all_ops() -> tuple[str, ...]:
    """The names of the operators that TFLite Micro's resolver can add and that ship here: builtin ones, then custom."""
    return tuple(kernel.name for kernel in all_kernels())


def needed_ops(model: Model) -> tuple[str, ...]:
    """The names of the operators that a firmware must register for a model, in the order of their first use."""
    used = [model.operator_code(op) for subgraph in model.subgraphs for op in subgraph.operators]
    return tuple(dict.fromkeys(code_name(code) for code in used))


def resolve(model: Model, resolver: MicroOpResolver) -> list[MicroKernel | None]:
    """The kernel of each operator code of a model.

    Raises `UnsupportedOpError` for a builtin operator that the resolver does not have. A custom operator is missed
    when a node asks for it.
    """
    kernels: list[MicroKernel | None] = []
    for stored in model.operator_codes:
        code = resolved_code(stored)
        if code == BuiltinOperator.CUSTOM:
            kernels.append(resolver.find_custom(stored.custom_code))
        elif code not in _CODES:
            raise UnsupportedOpError(f"Op builtin_code out of range: {code}.")
        else:
            kernels.append(resolver.find_builtin(code))
    return kernels


def missing(name: str, resolver: MicroOpResolver) -> UnsupportedOpError:
    """The error for an operator that a resolver does not have."""
    shipped = find_kernel(name) or find_kernel(name, custom=True)
    if shipped is None:
        advice = "TFLite Micro has no such operator, or none that runs here"
    else:
        advice = f'register it: resolver.add("{name}"), in C++ resolver.{adder(name)}()'
    return UnsupportedOpError(f"Didn't find op for opcode '{name}'. {advice}.")


def _shipped(name: str) -> MicroKernel:
    kernel = find_kernel(name) or find_kernel(name, custom=True)
    if kernel is None:
        raise UnsupportedOpError(f"TFLite Micro has no operator {name!r}, or none that runs here; see all_ops()")
    return kernel


_CODES = frozenset(int(code) for code in BuiltinOperator)
