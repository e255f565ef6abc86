"""Ctrl-C ends the command ``gossamer`` quietly, also while it still imports what it needs.

It is what the package imports first. In other programs it does nothing: they handle signals as they like.
"""

from __future__ import annotations

import os
import sys
from typing import Any

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of the signal, as shells have it."""


def is_command() -> bool:
    """Whether this process is the command: the script of that name, ``python -m gossamer``, or a process of theirs."""
    script = next(iter(getattr(sys, "argv", ())), "")
    if script == "-m":  # which it is until the module is found
        words = iter(sys.orig_argv)
        return "-m" in words and next(words, "") == "gossamer"
    folder, name = os.path.split(script)
    name = os.path.splitext(name)[0]
    return name == "gossamer" or (name, os.path.basename(folder)) == ("__main__", "gossamer")


def leave(*_: Any) -> None:
    """End the process at once: what is under way has nothing to tidy up, and nothing to say."""
    os._exit(INTERRUPTED)


def leave_at_once() -> None:
    """From now on Ctrl-C ends the process where it stands, unless it is ignored, or somebody handles it."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)


def raise_again() -> None:
    """From now on Ctrl-C raises `KeyboardInterrupt`, where `leave_at_once` has changed that."""
    import signal

    if signal.getsignal(signal.SIGINT) is leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if is_command():
    leave_at_once()
