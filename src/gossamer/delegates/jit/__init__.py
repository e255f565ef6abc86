"""The default delegate: machine code for this CPU, made of the kernel graph."""

from __future__ import annotations

from gossamer.delegates.delegate import Delegate
from gossamer.delegates.jit.delegate import JitDelegate
from gossamer.programs import host
from gossamer.targets import all_targets, host_target

__all__ = ["JitDelegate", "default_delegate"]

all_targets()  # imported now: a first model need not wait for them either


class DefaultDelegate(JitDelegate):
    """A `JitDelegate`, and what goes on where it ends."""

    def late(self) -> Delegate:
        """See `Delegate.late`."""
        from gossamer.delegates.jit.late import LateDelegate

        return LateDelegate(self)


def default_delegate(num_threads: int = 1) -> Delegate | None:
    """The delegate for this machine; ``None`` where no machine code can be made for it."""
    target = host_target(host.cpu_features())
    return None if target is None else DefaultDelegate(num_threads, target)
