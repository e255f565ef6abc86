"""A worker process in which a mutant may crash, hang or ask for a terabyte: that costs the case, not the run."""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import Any

from tests.conftest import ROOT
from tests.fuzz.driving import Outcome

MEMORY = 1 << 29
"""Bytes of address space that a worker may take beyond what Python and NumPy take."""

SECONDS = 120.0

LIFE = 1000
"""Mutants that a worker drives: each may add kernels to the archive, whose old files stay mapped."""


class Sandbox:
    """Drives models in a worker, which is started again when it dies. A context manager."""

    def __init__(self, memory: int = MEMORY, seconds: float = SECONDS) -> None:
        self._memory = memory
        self._seconds = seconds
        self._worker: subprocess.Popen[bytes] | None = None
        self._driven = 0
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the sandbox

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop()
        self._noise.close()

    def drive(self, content: bytes, seed: int = 0) -> Outcome:
        """`tests.fuzz.driving.drive_both` in the worker."""
        if self._driven == LIFE:
            self._stop()
        worker = self._worker or self._start()
        self._driven += 1
        start = time.monotonic()
        assert worker.stdin is not None
        try:
            _send(worker.stdin.fileno(), (content, seed))
            outcome = self._receive(worker)
        except (EOFError, BrokenPipeError):
            outcome = Outcome("crash", "", f"exit status {worker.wait()}", self._said())
            self._stop()
        except TimeoutError:
            worker.send_signal(signal.SIGUSR1)  # it tells where it is
            time.sleep(0.2)
            outcome = Outcome("hang", "", "", self._said(), time.monotonic() - start)
            outcome.where = _hanging_in(outcome.detail)
            self._stop()
        else:
            said = self._said()
            if said:
                outcome = Outcome("noise", outcome.stage, said[:200], said, outcome.seconds, outcome.peak_mib)
        return outcome

    def _receive(self, worker: subprocess.Popen[bytes]) -> Outcome:
        assert worker.stdout is not None
        return _receive(worker.stdout.fileno(), time.monotonic() + self._seconds)

    def _start(self) -> subprocess.Popen[bytes]:
        self._driven = 0
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_PERTURB_": "165"}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *sys.path])
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.sandbox", str(self._memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._noise,
            cwd=ROOT,
            env=environment,
        )
        return self._worker

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.communicate()
            self._worker = None

    def _said(self) -> str:
        self._noise.seek(0)
        said = self._noise.read().decode(errors="replace")
        self._noise.seek(0)
        self._noise.truncate()
        return said


def _hanging_in(dump: str) -> str:
    lines = [line.strip() for line in dump.splitlines() if "/src/gossamer/" in line]
    return f"hang at {lines[0]}" if lines else "hang"


def _send(file: int, value: Any) -> None:
    data = pickle.dumps(value)
    data = struct.pack("<Q", len(data)) + data
    while data:
        data = data[os.write(file, data) :]


def _receive(file: int, deadline: float | None = None) -> Any:
    (size,) = struct.unpack("<Q", _read(file, 8, deadline))
    return pickle.loads(_read(file, size, deadline))


def _read(file: int, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        if deadline is not None and not select.select([file], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        part = os.read(file, size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _work(memory: int) -> None:
    import faulthandler
    import resource

    import numpy as np

    from tests.fuzz.driving import drive_both
    from tests.fuzz.guards import guards, model

    np.ones((64, 64), np.float32) @ np.ones((64, 64), np.float32)  # BLAS takes its buffers while it can
    with open("/proc/self/statm") as statm:
        base = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (base + memory, base + memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    # What anybody prints must not get between the frames.
    answers = os.dup(1)
    os.dup2(2, 1)
    while True:
        try:
            content, seed = _receive(0)
        except EOFError:
            return
        with open("/proc/self/clear_refs", "w") as peaks:
            peaks.write("5")
        if seed % 4:
            with guards(seed):
                outcome = drive_both(model(content), seed)
        else:
            outcome = drive_both(content, seed)
        with open("/proc/self/status") as status:
            outcome.peak_mib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024
        sys.stdout.flush()
        _send(answers, outcome)


if __name__ == "__main__":
    _work(int(sys.argv[1]))
