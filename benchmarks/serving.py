"""What a server of models does: requests a second, waiting times, memory over time, and what hostile clients bring.

    python benchmarks/serving.py [MODEL.tflite[.xz] ...] [--clients 200] [--seconds 10] [--rounds 3] [--minutes 10]

`gossamer serve` with each model, without and with dynamic batching, and the same server with the interpreter of
LiteRT or tflite-runtime (``--peer``) in the place of ours, answer as many clients as wrk keeps busy: binary tensors in
HTTP over connections that stay open. Ways take turns in rounds, so that what else the machine does weighs the same on
all of them; figures are medians. A client asks again as soon as it has its answer, so p50 is about clients / requests a
second, and p99 says what queueing adds.

Then one server with all models runs for ``--minutes`` under the clients of wrk and, at the same time, attacks of
`tests/serve/hostile.py` (``--attacks``), slow clients, and clients who compare each answer with that of an interpreter
here. RSS, PSS, threads and descriptors are looked at each second; a straight line through those of the second half
says what grows: buffers reach their greatest number in the first. "Trimmed" is what is left afterwards, when the C
library has given back the memory that nobody uses (glibc's malloc_trim): a leak would be in it. It ends with SIGTERM
under load. The exit status is 1 if an answer was lost or wrong, an attack found something, or the server died.

Needs wrk (Debian: wrk), the extras serve and bench. Without models: MobileNetV2 and a transformer encoder with random
weights (`networks.py`); a multilayer perceptron with an open batch is always among them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import lzma
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from networks import NETWORKS, RELU, Network

from gossamer.convert.graph import Size
from gossamer.serve.model import ModelOptions, ServedModel
from gossamer.serve.protocol import DATATYPES
from tests.fuzz.service import examples
from tests.serve.hostile import FOUND, Attacker, Good, attack, slow
from tests.serve.process import ServerProcess, slope

DEFAULT = ("mobilenet_v2", "transformer_enc")
BATCHING = ("--max-batch-size", "16", "--batch-delay", "2")
QUIET = ("--no-log-requests", "--no-watch", "--queue-size", "4096")
TRIMS = (
    "-c",
    """
import ctypes, gc, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: (gc.collect(), ctypes.CDLL(None).malloc_trim(0)))
from gossamer.tools.cli import main
sys.argv[1:1] = ["serve"]
main()
""",
)
"""`gossamer serve`, which gives back unused memory at SIGUSR1."""

ATTACKERS, SLOW = 24, 4

WRK = """
local file = io.open("{body}", "rb")
wrk.method, wrk.path, wrk.body = "POST", "{path}", file:read("*a")
wrk.headers["Inference-Header-Content-Length"] = "{head}"
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '{{"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "max": %f, "errors": %d, "refused": %d}}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, e.connect + e.read + e.write + e.timeout, e.status))
end
"""


def perceptron() -> bytes:
    """784 numbers, two layers of 1024, ten classes; any number of rows."""
    net = Network((Size((2, 3)), 784))  # type: ignore[arg-type]
    x = net.input
    for depth, units, options in ((784, 1024, RELU), (1024, 1024, RELU), (1024, 10, {})):
        x = net.graph.add("FULLY_CONNECTED", x, net.weights(units, depth, fan_in=depth), **options)
    return net.model(net.graph.add("SOFTMAX", x, beta=1.0))


def write_models(folder: Path, given: Sequence[Path]) -> list[Path]:
    """The models as files of a folder, named as they will be asked for."""
    contents = {"mlp": perceptron()}
    for path in given:
        data = path.read_bytes()
        contents[path.name.partition(".")[0]] = lzma.decompress(data) if path.suffix == ".xz" else data
    if not given:
        contents |= {name: NETWORKS[name]() for name in DEFAULT}
    paths = []
    for name, content in contents.items():
        paths.append(folder / f"{name}.tflite")
        paths[-1].write_bytes(content)
    return paths


def write_script(model: Path, folder: Path) -> Path:
    """What wrk sends: one row of random numbers, and a wish for binary outputs."""
    (port,) = ServedModel(model.read_bytes(), model.stem).metadata.inputs
    shape = [max(1, size) for size in port.shape]
    dtype = DATATYPES[port.datatype].dtype
    values = np.random.default_rng(0).uniform(-1, 1, shape)
    array = values.astype(dtype) if dtype.kind == "f" else (127 * values).astype(dtype)
    tensor = {
        "name": port.name,
        "shape": shape,
        "datatype": port.datatype,
        "parameters": {"binary_data_size": array.nbytes},
    }
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    body = folder / f"{model.stem}.body"
    body.write_bytes(head + array.tobytes())
    script = folder / f"{model.stem}.lua"
    script.write_text(WRK.format(body=body, path=f"/v2/models/{model.stem}/infer", head=len(head)))
    return script


def wrk(script: Path, address: tuple[str, int], clients: int, seconds: float) -> subprocess.Popen[str]:
    """Start it. One thread of it can keep a server of many CPUs busy."""
    host, port = address
    options = ["-t1", f"-c{clients}", f"-d{max(1, round(seconds))}s", "--timeout", "120s", "--latency"]
    command = ["wrk", *options, "-s", str(script), f"http://{host}:{port}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def figures(running: subprocess.Popen[str]) -> dict[str, float]:
    """What it counted. Raises `RuntimeError` if it failed."""
    out, _ = running.communicate()
    if running.returncode:
        raise RuntimeError(f"wrk failed: {out}")
    found: dict[str, float] = json.loads(out.splitlines()[-1])
    found["rate"] = found["requests"] / found["seconds"]
    return found


def serve_peer(arguments: Sequence[str]) -> None:
    """`gossamer serve` with another interpreter: the class that the first argument names, behind the same server."""
    from gossamer.serve import repository
    from gossamer.tools.cli import main

    module, *rest = arguments
    base: Any = importlib.import_module(module).Interpreter

    class Nothing:
        total = 0

    class Peer(base):  # type: ignore[misc]
        """What our interpreters can besides."""

        num_subgraphs = staticmethod(lambda: 0)
        memory_report = staticmethod(Nothing)
        cancel = staticmethod(lambda: None)

    class PeerModel(ServedModel):
        """Checked by ours, run by the other."""

        def __init__(self, content: bytes, name: str, version: str, options: ModelOptions) -> None:
            self._content = content
            super().__init__(content, name, version, options)

        def interpreter(self) -> Any:
            made = Peer(model_content=self._content, num_threads=self.options.num_threads)
            made.allocate_tensors()
            return made

    repository.ServedModel = PeerModel  # type: ignore[misc]
    sys.argv[1:] = ["serve", *rest]
    main()


def servers(peer: str | None) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The ways: their names, what is run, and with which options."""
    for batching, options in (("", ()), (", batches", BATCHING)):
        yield f"gossamer{batching}", ("-m", "gossamer", "serve"), options
        if peer is not None:
            command = (str(Path(__file__).resolve()), "--as-peer", peer)
            yield f"{peer.partition('.')[0]}{batching}", command, options


def compare(models: Sequence[Path], options: argparse.Namespace, folder: Path) -> None:
    """Requests a second and waiting times of each way, in turns."""
    print(f"{options.clients} clients, {options.seconds:g} s a round, medians of {options.rounds}")
    print(f"{'model':22} {'server':32} {'requests/s':>10} {'p50 ms':>8} {'p99 ms':>8} {'failed':>6} {'ratio':>6}")
    ways = list(servers(options.peer))
    for model in models:
        script = write_script(model, folder)
        taken: dict[str, list[dict[str, float]]] = {name: [] for name, _, _ in ways}
        with ExitStack() as stack:
            running = {
                name: stack.enter_context(ServerProcess(model, *QUIET, *options.serve, *chosen, command=command))
                for name, command, chosen in ways
            }
            for server in running.values():
                figures(wrk(script, server.http, options.clients, 1))
            for _ in range(options.rounds):
                for name, server in running.items():
                    taken[name].append(figures(wrk(script, server.http, options.clients, options.seconds)))
        first = [each["rate"] for each in taken[ways[0][0]]]
        for name, found in taken.items():
            rate, p50, p99 = (statistics.median(each[key] for each in found) for key in ("rate", "p50", "p99"))
            failed = int(sum(each["errors"] + each["refused"] for each in found))
            ratio = statistics.median(each["rate"] / one for each, one in zip(found, first, strict=True))
            print(f"{model.stem:22} {name:32} {rate:10.1f} {p50:8.2f} {p99:8.2f} {failed:6} {ratio:6.2f}", flush=True)


@contextmanager
def attacks(attacker: Attacker, count: int, seconds: float) -> Iterator[Counter[str]]:
    """So many attacks, spread over so many seconds, and slow clients all the time."""
    found: Counter[str] = Counter()
    stop = threading.Event()

    def run(first: int) -> None:
        # Answers take longer under load; who is late does not wait.
        for seed in range(first, count, ATTACKERS):
            if stop.wait(max(0.0, begin + seconds * seed / count - time.monotonic())):
                return
            found[": ".join(attack(attacker, seed))] += 1

    def run_slow(seed: int) -> None:
        while not stop.is_set():
            found[": ".join(attack(attacker, seed, {"slow": slow}))] += 1
            seed += SLOW

    begin = time.monotonic()
    with ThreadPoolExecutor(ATTACKERS + SLOW) as pool:
        for first in range(ATTACKERS):
            pool.submit(run, first)
        for first in range(SLOW):
            pool.submit(run_slow, first)
        try:
            yield found
        finally:
            stop.set()


def endure(models: Sequence[Path], options: argparse.Namespace, folder: Path) -> bool:
    """One server under everything at once. Whether all was right."""
    import grpc

    seconds = 60 * options.minutes
    rows = examples(models[0])
    samples, problems = [], []
    with ServerProcess(*models, *QUIET, *options.serve, *BATCHING, command=TRIMS) as server:
        scripts = [write_script(model, folder) for model in models]
        shares = [options.clients // len(models)] * len(models)
        shares[0] += options.clients - sum(shares)
        with grpc.insecure_channel("{}:{}".format(*server.grpc)) as channel, ExitStack() as stack:
            attacker = Attacker(server.http, server.grpc, rows, channel=channel)
            good = [stack.enter_context(Good(server.http, rows, pause=0.05)) for _ in range(4)]
            loads = [wrk(script, server.http, share, seconds) for script, share in zip(scripts, shares, strict=True)]
            found = stack.enter_context(attacks(attacker, options.attacks, 0.9 * seconds))
            until, said = time.monotonic() + seconds, 0.0
            while time.monotonic() < until and server.process.poll() is None:
                samples.append(server.usage)
                if samples[-1].seconds > said + 60:
                    said = samples[-1].seconds
                    now = samples[-1]
                    print(
                        f"  {seconds - until + said:5.0f} s: RSS {now.rss:.1f} MiB, PSS {now.pss:.1f} MiB, "
                        f"{now.threads} threads, {now.descriptors} descriptors, {sum(found.values())} attacks",
                        flush=True,
                    )
                time.sleep(min(1.0, max(0.0, until - time.monotonic())))
            counted = [figures(load) for load in loads]
        time.sleep(1)
        idle = trimmed = samples[-1]
        if server.process.poll() is None:
            idle = server.usage
            server.process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            trimmed = server.usage
        late = wrk(scripts[0], server.http, options.clients, 2)
        time.sleep(1)
        status = server.stop()
        late.communicate()
        lost = [event["lost"] for event in server.log if event["event"] == "stopped"]
        bugs = [event for event in server.log if event["event"] == "bug" or "traceback" in event]

    print(f"\n{options.minutes:g} minutes, {options.clients} clients of wrk, batches")
    print(f"{'model':22} {'clients':>7} {'requests':>10} {'requests/s':>10} {'p50 ms':>8} {'p99 ms':>8} {'failed':>6}")
    for model, share, each in zip(models, shares, counted, strict=True):
        failed = int(each["errors"] + each["refused"])
        problems += [f"{failed} requests for {model.stem} failed"] if failed else []
        times = f"{each['p50']:8.2f} {each['p99']:8.2f}"
        print(f"{model.stem:22} {share:7} {each['requests']:10.0f} {each['rate']:10.1f} {times} {failed:6}")
    asked, right = sum(each.asked for each in good), sum(each.right for each in good)
    print(f"clients who compare: {right} of {asked} answers were there and right")
    problems += [text for each in good for text in each.wrong[:5]]
    made = sum(count for name, count in found.items() if not name.startswith("slow"))
    slowly = sum(count for name, count in found.items() if name.startswith("slow"))
    findings = [f"{count} x {name}" for name, count in found.items() if f": {FOUND} " in name]
    problems += findings
    print(f"attacks: {made}, slow clients: {slowly}, findings: {len(findings)}")
    print(f"{'':22} {'first':>9} {'median':>9} {'last':>9} {'idle':>9} {'trimmed':>9} {'an hour':>9}")
    for what, name in (
        ("rss", "RSS, MiB"),
        ("pss", "PSS, MiB"),
        ("threads", "threads"),
        ("descriptors", "descriptors"),
    ):
        line = [getattr(sample, what) for sample in samples]
        line += [getattr(idle, what), getattr(trimmed, what)]
        shown = (line[0], statistics.median(line[:-2]), *line[-3:])
        print(f"{name:22} " + " ".join(f"{each:9.1f}" for each in shown) + f" {slope(samples, what):+9.1f}")
    problems += [] if status == 0 else [f"the server ended with {status}"]
    problems += [] if lost == [0] else [f"at the end, lost: {lost}"]
    problems += [f"the server had a bug: {bug}" for bug in bugs[:5]]
    print(f"SIGTERM under load: exit status {status}, lost {lost}")
    for problem in problems:
        print(f"PROBLEM {problem}")
    return not problems


def main() -> None:
    """Measure, and print tables."""
    if sys.argv[1:2] == ["--as-peer"]:
        serve_peer(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10, help="of a round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="0: no comparison (default: %(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=10, help="under everything; 0: not at all (default: %(default)s)"
    )
    parser.add_argument("--attacks", type=int, default=5000, help="in that time (default: %(default)s)")
    parser.add_argument("--peer", metavar="MODULE", help="ai_edge_litert.interpreter, tflite_runtime.interpreter")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[], help="options for gossamer serve, at the end")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("needs wrk (Debian: apt-get install wrk)")
    with TemporaryDirectory() as name:
        folder = Path(name)
        models = write_models(folder, options.models)
        if options.rounds:
            compare(models, options, folder)
        if options.minutes and not endure(models, options, folder):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
