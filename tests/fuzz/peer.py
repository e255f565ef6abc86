"""LiteRT beside: how a mutant goes there, with each of its resolvers.

It does not survive many a mutant. So a process that has imported it, and does nothing else, forks for each one.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from typing import Any

from tests.conftest import ROOT
from tests.fuzz.driving import APART, EXTREME, ORDERLY, Outcome, difference, drive
from tests.fuzz.sandbox import _receive, _send

SECONDS = 5
"""What a mutant may take with one resolver."""

MEMORY = 1 << 31
"""Bytes of address space that it may take beyond."""


class Peer:
    """Drives mutants on LiteRT. A context manager."""

    def __enter__(self) -> Peer:
        # In memory that nobody has written, each finds something else.
        self._servers = [_server(perturbation) for perturbation in (165, 83)]
        return self

    def __exit__(self, *_: Any) -> None:
        for server in self._servers:
            server.kill()
            server.communicate()

    def drive(self, content: bytes, seed: int, resolver: str, memory: int = 0) -> Outcome:
        """How it went with a resolver, in memory that first held this or that."""
        server = self._servers[memory]
        assert server.stdin is not None
        assert server.stdout is not None
        _send(server.stdin.fileno(), (content, seed, resolver))
        outcome: Outcome = _receive(server.stdout.fileno())
        return outcome


def _server(perturbation: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["MALLOC_PERTURB_"] = str(perturbation)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.peer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=environment,
    )


DEFAULT = ("AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
REFERENCE = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
"""What each of our paths is to do as, the first first."""

JUDGEMENTS = {
    "apart": "LiteRT takes what a path does not take, or refuses earlier, or has results of other shapes",
    "unlike": "LiteRT has other results",
    "unjudged": "LiteRT does not survive it",
    "undefined": "LiteRT reads what it has not written",
    "extreme": "LiteRT has other results, but only of NaN, infinities and the like",
    "optimized": "the reference path does as LiteRT's optimized kernels",
    "broader": "LiteRT refuses what runs here",
}
"""What LiteRT can say against a path, the worst first."""


def judge(outcome: Outcome, peer: Peer, content: bytes, seed: int) -> Outcome:
    """What LiteRT says to a mutant that ran, or whose paths went apart: ``ran`` or ``settled`` if it agrees with each,
    else one of `JUDGEMENTS`."""
    assert outcome.paths is not None
    went_apart = outcome.verdict in APART
    paths = list(zip(("default", "reference"), outcome.paths, (DEFAULT, REFERENCE), strict=True))
    against = [_against(*path, peer, content, seed) for path in (paths if went_apart else paths[1:])]
    found = sorted((one for one in against if one), key=lambda one: list(JUDGEMENTS).index(one.verdict))
    if not found:
        return replace(outcome, verdict="settled" if went_apart else outcome.verdict)
    detail = f"between the paths: {outcome.where}: {outcome.detail}\n" * went_apart
    return replace(found[0], detail=detail + found[0].detail, seconds=outcome.seconds)


def _against(
    name: str, path: Outcome, resolvers: tuple[str, str], peer: Peer, content: bytes, seed: int
) -> Outcome | None:
    """In what a path and LiteRT go apart; ``None`` if in nothing."""
    first = peer.drive(content, seed, resolvers[0])
    if first.verdict in ORDERLY and difference(path, first) is None:
        return None
    resolver = resolvers[0]
    lacks = first.verdict not in ORDERLY or "Didn't find op" in first.detail
    if lacks or name == "default":
        other = peer.drive(content, seed, resolvers[1])
        if other.verdict in ORDERLY and difference(path, other) is None:
            return None
        if lacks and other.verdict in ORDERLY:
            first, resolver = other, resolvers[1]
    if first.verdict not in ORDERLY:
        return Outcome("unjudged", "", f"{name} {path.verdict}, LiteRT: {first.verdict}")
    if name == "default" and lacks:
        return Outcome("unjudged", "", f"{name} {path.verdict}, of LiteRT's resolvers only another is alive")
    found = difference(path, first)
    assert found is not None
    if path.verdict == "ran" and first.verdict == "refused" and len(path.results) > len(first.results):
        return Outcome("broader", found.stage, f"{name} takes more: {found.where}", found.detail)
    again = peer.drive(content, seed, resolver, memory=1)
    if again.verdict not in ORDERLY or difference(first, again) is not None:
        return replace(found, verdict="undefined", where=f"{name}: {found.where}")
    if name == "reference" and resolver == resolvers[0]:
        other = peer.drive(content, seed, resolvers[1])
        if other.verdict in ORDERLY and difference(path, other) is None:
            return replace(found, verdict="optimized", where=f"{name}: {found.where}")
    verdict = "extreme" if found.stage == f"get {EXTREME}" else found.verdict
    return replace(found, verdict=verdict, where=f"{name} and LiteRT: {found.where}")


def _drive_here(content: bytes, seed: int, resolver: str, answers: int) -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm") as statm:
        base = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (base + MEMORY, base + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    signal.alarm(4 * SECONDS)
    outcome = drive(content, seed, Interpreter, experimental_op_resolver_type=OpResolverType[resolver], num_threads=1)
    if outcome.verdict not in ORDERLY:
        outcome.verdict = "refused"
    _send(answers, outcome)


def _one(content: bytes, seed: int, resolver: str) -> Outcome:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(read)
            _drive_here(content, seed, resolver, write)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    parts = []
    while part := os.read(read, 1 << 20):
        parts.append(part)
    os.close(read)
    _, status = os.waitpid(child, 0)
    data = b"".join(parts)
    if len(data) > 8 and len(data) == 8 + int.from_bytes(data[:8], "little"):
        outcome: Outcome = pickle.loads(data[8:])
        return outcome
    slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)
    return Outcome("hang" if slow else "crash", "", f"status {status}")


def _serve() -> None:
    import ai_edge_litert.interpreter  # noqa: F401 - for all that are forked

    answers = os.dup(1)
    os.dup2(2, 1)
    while True:
        try:
            content, seed, resolver = _receive(0)
        except EOFError:
            return
        _send(answers, _one(content, seed, resolver))


if __name__ == "__main__":
    _serve()
