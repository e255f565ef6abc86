"""From (builtin code or custom name, version) to an `OpDef`: TFLite's op resolvers.

Keys are exact: a version that is not registered is not found, and there is no "nearest" one.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from gossamer.errors import UnsupportedOpError
from gossamer.ops import all_ops, find_op
from gossamer.ops.op_def import OpDef
from gossamer.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class OpResolverType(Enum):
    """Which operators and kernels an `Interpreter` uses. The values are those of `tf.lite`.

    ``AUTO`` and ``BUILTIN``: all operators, with the default delegate. ``BUILTIN_REF``: the reference kernels behind
    TFLite's narrower reference list and version ranges. ``BUILTIN_WITHOUT_DEFAULT_DELEGATES``: all operators, on the
    reference kernels.

    >>> how = gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    >>> gossamer.Interpreter("digits.tflite", experimental_op_resolver_type=how).delegate_claims()
    []
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class OpResolver:
    """Finds operators. Subclasses say where.

    >>> issubclass(gossamer.MutableOpResolver, gossamer.OpResolver)
    True
    """

    def find_builtin(self, code: BuiltinOperator, version: int) -> OpDef | None:
        """The builtin operator of this code in exactly this version, or ``None``."""
        raise NotImplementedError

    def find_custom(self, name: str, version: int) -> OpDef | None:
        """The custom operator of this name in exactly this version, or ``None``."""
        raise NotImplementedError


class BuiltinOpResolver(OpResolver):
    """All operators that ship, found by name when they are asked for.

    ``reference``: only what TFLite's reference resolver registers, with its lower version ranges, and the operators of
    TFLite Micro.
    """

    def __init__(self, *, reference: bool = False) -> None:
        self.reference = reference

    def max_version(self, op: OpDef) -> int:
        """The highest version of an operator in this resolver; 0 if it has none."""
        if self.reference and op.reference_version is not None:
            return op.reference_version
        return op.max_version

    def find_builtin(self, code: BuiltinOperator, version: int) -> OpDef | None:
        """See `OpResolver.find_builtin`."""
        op = find_op(code.name)
        return op if op is not None and op.versions[0].number <= version <= self.max_version(op) else None

    def find_custom(self, name: str, version: int) -> OpDef | None:
        """See `OpResolver.find_custom`."""
        op = find_op(name, custom=True)
        return op if op is not None and op.versions[0].number <= version <= self.max_version(op) else None


class InstalledOpResolver(OpResolver):
    """The custom operators that installed packages offer under the entry point group ``gossamer.ops``: the name of an
    entry is that of the operator in models, what it refers to an `OpDef`. One is imported when a model asks for it."""

    GROUP = "gossamer.ops"

    def find_builtin(self, code: BuiltinOperator, version: int) -> OpDef | None:
        """``None``: nobody replaces a builtin operator by being installed."""
        return None

    def find_custom(self, name: str, version: int) -> OpDef | None:
        """See `OpResolver.find_custom`. Raises `UnsupportedOpError` for an entry that is no such operator."""
        if name not in self._offered:
            return None
        op = _loaded(self._offered[name])
        return op if op.min_version <= version <= op.max_version else None

    @cached_property
    def _offered(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points

        return {entry.name: entry for entry in entry_points(group=self.GROUP)}


class FlexOpResolver(OpResolver):
    """TensorFlow's own operators, custom ones whose names begin with ``Flex``; `gossamer.flex` is imported when a model
    has one."""

    def find_builtin(self, code: BuiltinOperator, version: int) -> OpDef | None:
        """``None``: they are custom operators."""
        return None

    def find_custom(self, name: str, version: int) -> OpDef | None:
        """See `OpResolver.find_custom`."""
        if not name.startswith("Flex") or version != 1:
            return None
        found: OpDef | None = import_module("gossamer.flex").operator(name)
        return found


def _loaded(entry: EntryPoint) -> OpDef:
    try:
        op = entry.load()
    except Exception as error:
        raise UnsupportedOpError(f"{entry.value}, installed for the custom operator {entry.name}: {error}") from error
    if not isinstance(op, OpDef) or not op.custom or op.name != entry.name:
        raise UnsupportedOpError(f"{entry.value}, installed for the custom operator {entry.name}, is not its OpDef")
    return op


class MutableOpResolver(OpResolver):
    """A resolver to add operators to: its own first, then those it is chained to, in order.

    >>> resolver = gossamer.MutableOpResolver()
    >>> resolver.add_custom("Double", gossamer.custom_op("Double", shape="x")(lambda x: 2 * x))
    >>> resolver.find_custom("Double", 1).name
    'Double'
    """

    def __init__(self, *chain: OpResolver) -> None:
        self._builtins: dict[tuple[BuiltinOperator, int], OpDef] = {}
        self._customs: dict[tuple[str, int], OpDef] = {}
        self._chain: list[OpResolver] = list(chain)

    def add_builtin(self, code: BuiltinOperator, op: OpDef | None, min_version: int = 1, max_version: int = 1) -> None:
        """Register an operator for versions ``min_version`` to ``max_version``, replacing what is there; a ``None``
        operator is ignored."""
        if op is not None:
            for version in range(min_version, max_version + 1):
                self._builtins[code, version] = op

    def add_custom(self, name: str, op: OpDef | None, min_version: int = 1, max_version: int | None = None) -> None:
        """Register a custom operator for ``min_version`` to ``max_version`` (by default that one version)."""
        if op is not None:
            for version in range(min_version, (min_version if max_version is None else max_version) + 1):
                self._customs[name, version] = op

    def add(self, op: OpDef) -> None:
        """Register an operator under its own name, in its own versions."""
        if op.custom:
            self.add_custom(op.name, op, op.min_version, op.max_version)
        else:
            self.add_builtin(op.code, op, op.min_version, op.max_version)

    def add_all(self, other: OpResolver) -> None:
        """Copy every registration of another resolver, replacing what is there. A chain is not followed."""
        if isinstance(other, MutableOpResolver):
            self._builtins.update(other._builtins)
            self._customs.update(other._customs)
        elif isinstance(other, BuiltinOpResolver):
            for op in all_ops():
                if op.custom:
                    self.add_custom(op.name, op, op.min_version, other.max_version(op))
                else:
                    self.add_builtin(op.code, op, op.min_version, other.max_version(op))
        else:
            raise TypeError(f"add_all takes a BuiltinOpResolver or a MutableOpResolver, got {type(other).__name__}")

    def chain(self, other: OpResolver) -> None:
        """Ask another resolver for what this one does not have, after those chained before."""
        self._chain.append(other)

    def find_builtin(self, code: BuiltinOperator, version: int) -> OpDef | None:
        """See `OpResolver.find_builtin`."""
        found = self._builtins.get((code, version))
        for other in self._chain:
            if found is not None:
                break
            found = other.find_builtin(code, version)
        return found

    def find_custom(self, name: str, version: int) -> OpDef | None:
        """See `OpResolver.find_custom`."""
        found = self._customs.get((name, version))
        for other in self._chain:
            if found is not None:
                break
            found = other.find_custom(name, version)
        return found
