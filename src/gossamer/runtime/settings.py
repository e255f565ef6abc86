"""How an interpreter runs its model: what its arguments come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gossamer.delegates.delegate import Delegate
from gossamer.ops.op_def import OpDef
from gossamer.records import record
from gossamer.resolver import (
    BuiltinOpResolver,
    FlexOpResolver,
    InstalledOpResolver,
    MutableOpResolver,
    OpResolver,
    OpResolverType,
)

PLAIN = {
    "preserve_all_tensors": False,
    "delegate_clustering": True,
    "delegate_fusion": True,
    "profile_delegates": False,
}
"""Settings of `Subgraph` with which a model is run unless its user wants others."""


@record(frozen=True)
class Settings:
    """What an interpreter and its clones have in common.

    ``subgraphs``: arguments of `build_subgraphs`. ``is_plain``: what is kept of a file was made with the operators that
    ship and with these settings.
    """

    resolver: OpResolver
    num_threads: int
    subgraphs: Mapping[str, bool]
    has_default_delegate: bool
    is_plain: bool
    compress_zero_points: bool
    allow_reduced_precision: bool = False


def resolver_of(choice: OpResolverType | OpResolver, custom_ops: Iterable[OpDef] = ()) -> OpResolver:
    """What finds operators, those of the user first. Raises `ValueError`."""
    if isinstance(choice, OpResolver):
        resolver = choice
    elif isinstance(choice, OpResolverType):
        reference = choice is OpResolverType.BUILTIN_REF
        resolver = MutableOpResolver(BuiltinOpResolver(reference=reference), InstalledOpResolver(), FlexOpResolver())
    else:
        raise ValueError(f"Unrecognized passed in op resolver type: {choice}")
    own = MutableOpResolver(resolver)
    for op in custom_ops:
        if not isinstance(op, OpDef):
            raise ValueError(f"custom_ops takes what @gossamer.custom_op(name) makes, got {op!r}")
        own.add(op)
    return own if custom_ops else resolver


def checked_delegate(delegate: Any, argument: str) -> Delegate:
    """The delegate, if it is one. Raises `ValueError`."""
    if isinstance(delegate, Delegate):
        return delegate
    if hasattr(delegate, "_get_native_delegate_pointer"):
        what = "a C++ delegate for LiteRT's own runtime"
    else:
        what = f"a {type(delegate).__name__}"
    raise ValueError(f"{argument} takes instances of gossamer.Delegate, got {what}")
