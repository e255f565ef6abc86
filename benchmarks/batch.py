"""What `gossamer batch` makes of a folder of pictures: a loop without it, one thread, several, and a Ray cluster.

    python benchmarks/batch.py [MODEL.tflite] [--count 1000] [--size 640x480] [--jobs 2] [--nodes 3] [--workers 4]

Pictures are JPEG files of noise that is as smooth as photographs are; the model is by default the int8 MobileNetV2 of
`networks.py`. Needs `gossamer[ray,compile]` and Linux. The nodes are simulated on this machine, with an actor of one
thread each, so that all of them share its cores, with Ray's own processes: what an actor reaches there that only reads,
prepares and invokes, a line says, too.

The loop reads a picture, prepares it, invokes and keeps the answer. Its rate with all cores is that of a loop on each
at the same time: that is what the machine can do. A ratio is a rate to that of as many loops as there are cores for the
threads; "begun" is without what is there once, which is what the same takes with one picture. Rates are in seconds, and
but for a cluster in seconds of CPU time, which what else the machine does changes less. All ways must give the same
table, or it ends with an error. Then a node is killed in the middle, and must not be missed.

Memory of a node is that of its processes, in MiB: of the one that runs the model the resident set, of all of them,
Ray's own included, the proportional set size, which shares out what several have.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from jobs import make_pictures
from networks import forms

import gossamer.batch
from gossamer.inputs.samples import Reading
from gossamer.inputs.session import Session

RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""No statistics to anybody, workers with this Python, and loopback addresses."""

STORE = 100 << 20
"""Bytes of a node's object store."""

_BLOCKS = 32
"""Tasks for each actor of Ray Data."""


class Plain:
    """What a user writes without it: one file after another. As it is, it is an actor of Ray Data, too."""

    def __init__(self, model: str) -> None:
        self.session = Session(model, threads=1)
        self.reading = Reading.of(self.session.interpreter, None, gossamer.batch.Preparation(), None)

    def answer(self, path: str) -> Any:
        """What the model says of a file."""
        return self.session.call([self.reading.windows(path, self.session.inputs[0], "")[0]])[0]

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the model says of files."""
        answers = [self.answer(path).tobytes() for path in batch["file"]]
        return {"file": batch["file"], "scores": np.array(answers, object)}


def loop(model: str, folder: str) -> None:
    """Prints seconds, those of the CPU and a sum of the answers."""
    plain = Plain(model)
    paths = files(Path(folder))
    plain.answer(paths[0])
    print("ready", flush=True)
    sys.stdin.readline()
    started, begun = time.perf_counter(), time.process_time()
    answers = {path: plain.answer(path) for path in paths}
    taken = time.perf_counter() - started, time.process_time() - begun
    print(*taken, sum(int(answer.astype(np.int64).sum()) for answer in answers.values()))


def files(folder: Path) -> list[str]:
    """The pictures in a folder."""
    return sorted(map(str, folder.glob("*.jpg")))


def plain_actors(model: str, folder: Path, output: Path, nodes: int, address: str) -> float:
    """Seconds that Ray Data takes with an actor of ours on each node, which knows nothing of `gossamer batch`."""
    import ray
    import ray.data

    rmtree(output, ignore_errors=True)
    ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        started = time.perf_counter()
        paths = ray.data.from_items([{"file": path} for path in files(folder)], override_num_blocks=_BLOCKS * nodes)
        compute = ray.data.ActorPoolStrategy(size=nodes)
        actors = {"compute": compute, "num_cpus": 0.5, "batch_size": 64}
        paths.map_batches(Plain, fn_constructor_args=(model,), **actors).write_parquet(str(output))
        return time.perf_counter() - started
    finally:
        ray.shutdown()


def loops(model: str, folder: Path, count: int) -> tuple[float, float, int]:
    """Seconds of so many loops at the same time over all pictures each, those of the CPU for one, and what it gives."""
    command = [sys.executable, __file__, model, "--loop", str(folder)]
    running = [subprocess.Popen(command, stdin=-1, stdout=-1, text=True) for _ in range(count)]
    for process in running:
        assert process.stdout is not None  # noqa: S101 (for mypy)
        process.stdout.readline()
    for process in running:
        assert process.stdin is not None  # noqa: S101 (for mypy)
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate()[0].split() for process in running]
    seconds, busy = (sum(float(one[place]) for one in said) / count for place in (0, 1))
    return seconds, busy, int(said[0][2])


@contextmanager
def cluster(nodes: int, cpus: int) -> Iterator[tuple[Any, list[Any]]]:
    """A Ray cluster on this machine whose head does no work."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield made, [made.add_node(num_cpus=cpus, object_store_memory=STORE) for _ in range(nodes)]
    finally:
        made.shutdown()


def memory(node: Any) -> tuple[float, float]:
    """Of a node: MiB of its processes that run the model, and of all."""
    found = processes(node)
    actors = [p for p in found if b"MapWorker" in Path(f"/proc/{p}/cmdline").read_bytes()]
    return sum(_kibibytes(p, "Rss") for p in actors) / 1024, sum(_kibibytes(p, "Pss") for p in found) / 1024


def processes(node: Any) -> list[int]:
    """Those of a node, its raylet first."""
    (raylet,) = node.all_processes["raylet"]
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [raylet.process.pid]
    for process in found:
        found += children.get(process, [])
    return found


def _kibibytes(process: int, kind: str) -> int:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))


class Once:
    """Calls something when a run is so far, once. What it gives is ``answer``."""

    def __init__(self, share: float, function: Callable[[], Any]) -> None:
        self.share = share
        self.function = function
        self.answer: Any = None
        self._is_done = False

    def __call__(self, what: str, done: int, total: int) -> None:
        if not self._is_done and done >= self.share * total:
            self._is_done = True
            self.answer = self.function()


def scores_of(table: Any) -> Any:
    """All numbers of the column that is neither a file nor an error."""
    (scores,) = (name for name in table.column_names if name not in ("file", "error"))
    return table.column(scores).combine_chunks().flatten().to_numpy()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--size", default="640x480")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        loop(options.model, options.loop)
        return
    os.environ.update(RAY)
    with TemporaryDirectory() as name:
        place = Path(name)
        model = options.model or str(place / "mobilenet_v2_int8.tflite")
        if options.model is None:
            Path(model).write_bytes(dict(forms("mobilenet_v2"))["mobilenet_v2_int8"]())
        measure(model, place, options)


def measure(model: str, place: Path, options: argparse.Namespace) -> None:
    """All ways, one after another."""
    pictures, some, one = place / "pictures", place / "some", place / "one"
    width, height = map(int, options.size.split("x"))
    for folder, count in ((pictures, options.count), (some, min(options.count, 1000)), (one, 1)):
        folder.mkdir()
        make_pictures(folder, count, width, height)
    cores = os.cpu_count() or 1
    output = place / "answers.parquet"
    tables: dict[str, Any] = {}
    rates: dict[int, tuple[float, float]] = {}

    def command(what: str, folder: Path, jobs: int = 1) -> tuple[float, float]:
        """Seconds that `gossamer batch` takes, and those of the CPU: a process of its own, as a loop is."""
        output.unlink(missing_ok=True)
        line = [sys.executable, "-m", "gossamer", "batch", model, str(folder), "-o", str(output), "--jobs", str(jobs)]
        before = os.times()
        done = subprocess.run([*line, "--json"], stdout=-1, check=True)
        after = os.times()
        tables[what] = pq.read_table(output)
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        return json.loads(done.stdout)["seconds"], spent

    def run(what: str, folder: Path, tell: Any = None, **how: Any) -> tuple[float, float]:
        """Seconds on a cluster; those of the CPU are not known, as actors are gone at the end."""
        output.unlink(missing_ok=True)
        summary = gossamer.batch.run(model, [str(folder)], output, tell=tell, **how)
        if summary.errors:
            raise SystemExit(f"{what}: {summary.errors} pictures failed")
        tables[what] = pq.read_table(output)
        return summary.seconds, 0.0

    def say(what: str, threads: int, whole: tuple[float, float], start: tuple[float, float] = (0.0, 0.0)) -> None:
        used = min(threads, cores)
        per_second, per_busy = rates[used]
        rate, begun = options.count / whole[0], options.count / (whole[0] - start[0])
        told = f"{what:34} {whole[0]:8.1f} {rate:8.1f} {rate / per_second:6.2f} {begun:8.1f} {begun / per_second:6.2f}"
        if whole[1] > 0:
            spent = options.count / (whole[1] - start[1])
            told += f" {spent:8.1f} {spent / per_busy:6.2f}"
        print(told, flush=True)

    print(f"{options.count} pictures of {options.size}, {cores} cores, {Path(model).name}")
    units = f"{'per s':>8} {'ratio':>6} {'begun':>8} {'ratio':>6} {'CPU s':>8} {'ratio':>6}"
    print(f"{'':34} {'seconds':>8} {units}", flush=True)
    for count in sorted({1, min(options.jobs, cores), min(options.nodes, cores)}):
        seconds, spent, total = loops(model, some, count)
        few = len(list(some.iterdir()))
        rates[count] = count * few / seconds, few / spent
        what = "plain loop" if count == 1 else f"plain loop on {count} cores"
        first, second = rates[count]
        print(f"{what:34} {'':8} {first:8.1f} {1:6.2f} {first:8.1f} {1:6.2f} {second:8.1f} {1:6.2f}", flush=True)
    start = command("one", one)
    command("some", some)
    if int(scores_of(tables.pop("some")).astype(np.int64).sum()) != total:
        raise SystemExit("the plain loop gives something else")
    say("gossamer batch", 1, command("one thread", pictures), start)
    say(f"gossamer batch --jobs {options.jobs}", options.jobs, command("jobs", pictures, options.jobs), start)
    with cluster(options.nodes, 1) as (made, nodes):
        least, most = (
            (plain_actors(model, folder, place / "plain", options.nodes, made.address), 0.0)
            for folder in (one, pictures)
        )
        say(f"plain class in Ray Data, {options.nodes} nodes", options.nodes, most, least)
        start = run("one", one, ray=made.address)
        say(
            f"gossamer batch --ray, {options.nodes} nodes", options.nodes, run("ray", pictures, ray=made.address), start
        )
        killed = Once(0.5, lambda: made.remove_node(nodes[0], allow_graceful=False))
        say("  a node killed in the middle", options.nodes, run("killed", pictures, killed, ray=made.address), start)
    for what, table in tables.items():
        if what != "one" and not table.equals(tables["one thread"]):
            raise SystemExit(f"{what}: not the table of one thread")
    plain = pq.read_table(place / "plain").sort_by("file").column("scores").to_pylist()
    if b"".join(plain) != scores_of(tables["one thread"]).tobytes():
        raise SystemExit("the plain class gives something else")
    print(f"all tables are equal, {tables['killed'].num_rows} rows each")
    print(f"{'memory of a node, MiB':34} {'model':>8} {'all':>9}")
    used: dict[int, tuple[float, float]] = {}
    for workers in (1, options.workers):
        with cluster(1, workers) as (made, (node,)):
            middle = Once(0.5, lambda node=node: memory(node))
            run("some", some, middle, ray=made.address, jobs=workers)
        used[workers] = middle.answer
        what = f"{workers} workers" if workers > 1 else "one worker"
        print(f"{what:34} {used[workers][0]:8.1f} {used[workers][1]:9.1f}", flush=True)
    ratios = [most / least for most, least in zip(used[options.workers], used[1], strict=True)]
    print(f"{'ratio':34} {ratios[0]:8.2f} {ratios[1]:9.2f}")


if __name__ == "__main__":
    main()
