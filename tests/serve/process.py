"""A server in a process of its own, as users start it, and what it has of the system's resources."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import HANGS, ROOT


@dataclass(frozen=True)
class Usage:
    """What a process and its children have, at ``seconds`` of the monotonic clock. Sizes are MiB."""

    seconds: float
    rss: float
    pss: float
    threads: int
    descriptors: int


def descendants(number: int) -> list[int]:
    """A process and all that it has started, which still run (Linux)."""
    found = [number]
    for parent in found:
        for thread in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, thread.read_text().split())
    return found


def usage(number: int) -> Usage:
    """Of a process and its children. Raises `OSError` if it is gone."""
    totals = np.zeros(4)
    for process in descendants(number):
        folder = Path(f"/proc/{process}")
        sizes = {line.split()[0]: line.split()[1] for line in (folder / "smaps_rollup").read_text().splitlines()[1:]}
        threads, descriptors = len(list(folder.glob("task/*"))), len(list(folder.glob("fd/*")))
        totals += [int(sizes["Rss:"]) / 1024, int(sizes["Pss:"]) / 1024, threads, descriptors]
    return Usage(time.monotonic(), float(totals[0]), float(totals[1]), int(totals[2]), int(totals[3]))


def slope(samples: Sequence[Usage], what: str) -> float:
    """By how much something grows in an hour: least squares through the second half of the samples. In the first
    a server warms up: there are as many buffers as there have ever been requests at a time."""
    kept = samples[len(samples) // 2 :]
    if len(kept) < 2:
        return 0.0
    hours = [sample.seconds / 3600 for sample in kept]
    return float(np.polyfit(np.array(hours) - hours[0], [getattr(sample, what) for sample in kept], 1)[0])


class ServerProcess:
    """``gossamer serve`` with ports that the system chooses. A context manager: entered when it is ready, and at the
    end it is told to stop (SIGTERM), unless it has been. `log` has the events that it logged so far."""

    def __init__(
        self, *arguments: str | os.PathLike[str], command: Sequence[str] = ("-m", "gossamer", "serve")
    ) -> None:
        self._command = [sys.executable, *command, *map(os.fspath, arguments)]
        self._command += ["--port", "0", "--grpc-port", "0", "--log-format", "json"]
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end

    def __enter__(self) -> ServerProcess:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=self._noise, stderr=self._noise, env=environment
        )
        until = time.monotonic() + HANGS
        while not (ready := [line for line in self.log if line["event"] == "started"]):
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise RuntimeError(f"the server does not start: {self.said[-3000:]}")
            time.sleep(0.02)
        host = ready[0]["host"]
        self.http, self.grpc = (host, ready[0]["http_port"]), (host, ready[0]["grpc_port"])
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        self._noise.close()

    def stop(self) -> int:
        """SIGTERM; the exit status, when all that was accepted has been answered."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """The exit status. A server that does not end is killed."""
        try:
            return self.process.wait(HANGS)
        finally:
            self.process.kill()

    @property
    def said(self) -> str:
        """All that it printed."""
        file = self._noise.fileno()  # its position is the server's
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    @property
    def log(self) -> list[dict[str, Any]]:
        """The events among it."""
        lines = [line for line in self.said.splitlines() if line.startswith("{") and line.endswith("}")]
        return [json.loads(line) for line in lines]

    @property
    def usage(self) -> Usage:
        """What it has now."""
        return usage(self.process.pid)
