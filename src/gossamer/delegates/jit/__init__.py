"""The default delegate: machine code for this CPU, made of the kernel graph."""

from __future__ import annotations

from gossamer.delegates.delegate import Delegate
from gossamer.delegates.jit.delegate import JitDelegate
from gossamer.log import logger
from gossamer.programs import host
from gossamer.programs.generator import is_llvm_here
from gossamer.programs.library import kernel_library
from gossamer.targets import Target, all_targets, host_target, reduced

__all__ = ["JitDelegate", "default_delegate"]

all_targets()  # imported now: a first model need not wait for them either


class DefaultDelegate(JitDelegate):
    """A `JitDelegate`, and what goes on where it ends."""

    def late(self) -> Delegate:
        """See `Delegate.late`."""
        from gossamer.delegates.jit.late import LateDelegate

        return LateDelegate(self)


def default_delegate(num_threads: int = 1, allow_reduced_precision: bool = False) -> Delegate | None:
    """The delegate for this machine; ``None`` where no machine code can be made for it.

    ``allow_reduced_precision``: products of float32 may be those of bfloat16, if this CPU has them.
    """
    target = host_target(host.cpu_features())
    if target is None:
        return None
    if allow_reduced_precision:
        target = _reduced(target)
    return DefaultDelegate(num_threads, target)


def _reduced(target: Target) -> Target:
    """The target with reduced precision, or, where that cannot be had, as it is; the log says why."""
    found = reduced(target, host.cpu_features())
    if found is None:
        why = f"this CPU, or {target.name}, has no products of bfloat16 (avx512_bf16)"
    elif not (is_llvm_here() and kernel_library(found).runs_new_kernels):
        why = "its kernels do not ship, and nothing can be compiled here"
    else:
        return found
    logger.info("allow_reduced_precision changes nothing: %s", why)
    return target
