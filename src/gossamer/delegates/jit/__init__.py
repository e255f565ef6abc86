"""The default delegate: machine code for this CPU, made of the kernel graph."""

from __future__ import annotations

from gossamer.delegates.delegate import Delegate
from gossamer.delegates.jit.delegate import JitDelegate
from gossamer.delegates.jit.late import LateDelegate
from gossamer.programs import host
from gossamer.targets import all_targets, host_target

__all__ = ["JitDelegate", "default_delegate"]

all_targets()  # imported now: a first model need not wait for them either


def default_delegate(num_threads: int = 1) -> Delegate | None:
    """The delegate for this machine; ``None`` where no machine code can be made for it."""
    target = host_target(host.cpu_features())
    if target is None:
        return None
    delegate = JitDelegate(num_threads, target)
    delegate.late = LateDelegate(delegate)
    return delegate
