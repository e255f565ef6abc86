"""Runs on a Ray cluster: three nodes that are simulated on this machine."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.batch import Predictor, run, sources, writer
from gossamer.errors import InputError, PrepareError
from tests.batch.test_predictor import MISSING, doubled
from tests.conftest import ROOT
from tests.tools import models

pa = pytest.importorskip("pyarrow", reason=MISSING)
parquet = pytest.importorskip("pyarrow.parquet", reason=MISSING)

DIGITS = ROOT / "examples" / "digits.tflite"

engines = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings


def marked(test: Any) -> Any:
    """A test that needs Ray."""
    for mark in engines:
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes of a CPU each, on loopback. A node that is killed is missed after a few seconds."""
    pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**quiet, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}.items():
            patch.setenv(name, value)
        from ray.cluster_utils import Cluster

        size = {"num_cpus": 1, "object_store_memory": 100 << 20}
        head = {**size, "include_dashboard": False, "_system_config": {"health_check_period_ms": 500}}
        made = Cluster(initialize_head=True, head_node_args=head)
        try:
            made.add_node(**size)
            made.add_node(**size)
            yield made
        finally:
            made.shutdown()


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 480 pictures that take some milliseconds each, and two that are none; in chunks of 16."""
    image = pytest.importorskip("PIL.Image", reason="the extra 'image' is not installed")
    monkeypatch.setattr(sources, "CHUNK_ROWS", 16)
    noise = np.random.default_rng(0)
    contents = []
    for number in range(8):
        file = tmp_path / f"{number}.jpg"
        coarse = image.fromarray(noise.integers(0, 256, (30, 40, 3), dtype=np.uint8))
        coarse.resize((640, 480)).save(file)
        contents.append(file.read_bytes())
    rows = [b"none" if k in (100, 101) else contents[k % 8] for k in range(480)]
    path = tmp_path / "pictures.parquet"
    parquet.write_table(pa.table({"picture": rows, "name": [f"n{k}" for k in range(480)]}), path, row_group_size=200)
    return path


def actors(node: Any) -> list[int]:
    """The processes of a node that run the model."""
    (raylet,) = node.all_processes["raylet"]
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                name = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(parent) == raylet.process.pid and b"MapWorker" in name:
                found.append(int(entry.name))
    return found


def resident(process: int) -> int:
    """Of a process, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) << 10


@marked
def test_any_number_of_threads_gives_the_table_of_one(tmp_path: Path, pictures: Path, cluster: Any) -> None:
    """And each node has one process for all of them, which is little larger with four threads than with one."""
    alone = tmp_path / "alone.parquet"
    assert run(DIGITS, pictures, alone, key="name").errors == 2
    largest = {}
    for jobs in (1, 4):
        output = tmp_path / f"{jobs}.parquet"
        seen: dict[int, int] = {}

        def look(what: str, done: int, total: int, seen: dict[int, int] = seen) -> None:
            if done % 64:
                return
            processes = [actors(node) for node in cluster.list_all_nodes()]
            assert all(len(one) <= 1 for one in processes), processes
            seen.update({process: resident(process) for one in processes for process in one})

        summary = run(DIGITS, pictures, output, key="name", jobs=jobs, ray=cluster.address, tell=look)
        assert (summary.rows, summary.errors) == (480, 2)
        assert parquet.read_table(output).equals(parquet.read_table(alone))
        assert len(seen) == 3
        largest[jobs] = max(seen.values())
    assert largest[4] <= 1.3 * largest[1], largest


@marked
def test_a_run_goes_on_on_a_cluster(
    tmp_path: Path, pictures: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And off it again: it is one job."""
    monkeypatch.setattr(writer, "PART_BYTES", 1)

    def stop(what: str, done: int, total: int) -> None:
        if done >= 208:
            raise KeyboardInterrupt

    alone, output = tmp_path / "alone.parquet", tmp_path / "output"
    run(DIGITS, pictures, alone)
    with pytest.raises(KeyboardInterrupt):
        run(DIGITS, pictures, output, tell=stop)
    with pytest.raises(KeyboardInterrupt):
        run(DIGITS, pictures, output, ray=cluster.address, tell=lambda *now: stop("", now[1] - 100, 0))
    summary = run(DIGITS, pictures, output)
    assert summary.rows == 480
    assert summary.resumed > 300
    assert parquet.read_table(output).equals(parquet.read_table(alone))


@marked
def test_a_run_is_left_while_ray_is_busy(
    tmp_path: Path, pictures: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of Ray Data that takes longer than Ray waits for ended the process once it was disconnected."""
    import ray
    from ray.data._internal.execution.streaming_executor import StreamingExecutor

    step, shutdown = StreamingExecutor._scheduling_loop_step, ray.shutdown
    alive = []

    def slow(self: Any, topology: Any) -> Any:
        goes_on = step(self, topology)
        if self._shutdown:
            time.sleep(3)
        return goes_on

    def seen() -> None:
        alive.append([thread for thread in threading.enumerate() if isinstance(thread, StreamingExecutor)])
        shutdown()

    def stop(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamingExecutor, "_scheduling_loop_step", slow)
    monkeypatch.setattr(ray, "shutdown", seen)
    with pytest.raises(KeyboardInterrupt):
        run(DIGITS, pictures, tmp_path / "output", ray=cluster.address, tell=stop)
    assert alive == [[]]


@marked
def test_a_model_that_cannot_run(tmp_path: Path, cluster: Any) -> None:
    from tests.runtime.graphs import ModelMaker

    make = ModelMaker()
    x, other, y = make.tensor((1, 2), name="x"), make.constant([1, 2, 3], np.float32, models.FLOAT), make.tensor((1, 2))
    make.op("ADD", [x, other], [y], models.AddOptions())
    make.io([x], [y])
    np.save(tmp_path / "x.npy", np.zeros((4, 2), np.float32))
    with pytest.raises(PrepareError):
        run(make.model(), tmp_path / "x.npy", tmp_path / "y.parquet", ray=cluster.address)


@marked
def test_a_predictor_for_map_batches(cluster: Any) -> None:
    import ray.data

    values = np.random.default_rng(0).random((40, 2), np.float32)
    ray.init(cluster.address, log_to_driver=False)
    try:
        dataset = ray.data.from_items([{"x": row, "key": key} for key, row in enumerate(values)])
        predicted = dataset.map_batches(Predictor, fn_constructor_args=(doubled(),), batch_size=16, concurrency=1)
        rows = sorted(predicted.take_all(), key=lambda row: row["key"])
    finally:
        ray.shutdown()
    assert [row["key"] for row in rows] == list(range(40))
    assert np.array_equal(np.stack([row["y"] for row in rows]), 2 * values)
    assert {row["error"] for row in rows} == {None}


@marked
def test_a_node_is_killed_in_the_middle(tmp_path: Path, pictures: Path, cluster: Any) -> None:
    """While it works: nothing is missing, and nothing is there twice."""
    alone, output = tmp_path / "alone.parquet", tmp_path / "output.parquet"
    run(DIGITS, pictures, alone)
    victim = sorted(cluster.worker_nodes, key=id)[0]
    killed = []

    def kill(what: str, done: int, total: int) -> None:
        if not killed:
            killed.append((done, actors(victim)))
            cluster.remove_node(victim, allow_graceful=False)

    summary = run(DIGITS, pictures, output, ray=cluster.address, tell=kill)
    ((done, processes),) = killed
    assert done < 240
    assert len(processes) == 1
    assert (summary.rows, summary.errors) == (480, 2)
    assert parquet.read_table(output).equals(parquet.read_table(alone))


@marked
def test_no_cluster_at_an_address(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    with socket.socket() as nobody:  # bound, and does not listen
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        np.save(tmp_path / "x.npy", np.zeros((4, 2), np.float32))
        with pytest.raises(InputError, match=f"there is no Ray cluster at '{address}'"):
            run(doubled(), tmp_path / "x.npy", tmp_path / "y.parquet", ray=address)


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    np.save(tmp_path / "x.npy", np.zeros((4, 2), np.float32))
    with pytest.raises(InputError, match=r"install gossamer\[ray\]"):
        run(doubled(), tmp_path / "x.npy", tmp_path / "y.parquet", ray="local")
