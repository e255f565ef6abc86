"""CPU families, one file each: what can be emitted for them and which tiles suit them. No LLVM here."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from gossamer.config import target_name
from gossamer.records import replace
from gossamer.targets.target import Target

__all__ = ["Target", "all_targets", "host_target", "reduced"]

_BF16 = "avx512bf16"


@cache
def all_targets() -> dict[str, Target]:
    """Every target by name: the modules of this directory that define ``TARGET``."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    targets = [module.TARGET for module in modules if hasattr(module, "TARGET")]
    return {target.name: target for target in targets}


def host_target(features: Collection[str]) -> Target | None:
    """The target with the widest vectors that a host with these features runs, or the one ``GOSSAMER_TARGET`` names.

    ``None`` if the host runs none, or that says ``none``. Raises `ValueError` if it does not run the one that is named.
    """
    runnable = {target.name: target for target in all_targets().values() if target.runs_on(features)}
    chosen = target_name()
    if chosen is None:
        return max(runnable.values(), key=lambda target: (target.vector_bits, len(target.requires)), default=None)
    if chosen == "none":
        return None
    if chosen not in runnable:
        here = ", ".join(runnable) or "no target"
        raise ValueError(f"GOSSAMER_TARGET is {chosen!r}, but this CPU runs {here}")
    return runnable[chosen]


def reduced(target: Target, features: Collection[str]) -> Target | None:
    """The same target with products of bfloat16 in the place of those of float32, where a host with these features has
    them; else ``None``.

    It is none of `all_targets`: nobody gets it unasked, and nothing ships for it.
    """
    if target.vector_bits < 512 or _BF16 not in features:
        return None
    return replace(
        target,
        name=f"{target.name}bf16",
        features=(*target.features, f"+{_BF16}"),
        requires=target.requires | {_BF16},
        base=target,
        bf16=True,
    )
