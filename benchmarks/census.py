"""Where Gossamer is slower than LiteRT: one inference of every case of a conformance corpus, in both engines.

    python -m pip install ".[bench]"
    python benchmarks/census.py CORPUS --suite models real
    python benchmarks/census.py CORPUS --suite ops_zip ops_direct --sample 600 --json census.json
    python benchmarks/census.py CORPUS --suite ops_zip ops_direct --least 30 --require 0

CORPUS is the folder of ``run_corpus.py``; of its half ``open``, the cases that LiteRT runs are taken, with the inputs
and shapes of their first step. Both engines, with one thread and their default delegates, take turns in bursts of
``invoke``; a time is the median of the bursts, in microseconds of CPU time. Cases that an engine refuses, or that kill
it, are left out and counted.

Prints how the ratios (LiteRT's time / ours) are distributed, and the worst with what our machine code leaves to NumPy
and why. Exit status 1 with ``--require PERCENT`` if a larger share takes more than twice LiteRT's time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from typing import Any

BURST, MOST_CALLS, BURSTS = 3e-3, 300, 5
"""Seconds and calls of a burst, and how many bursts of each engine count."""

TWICE = 0.5


@cache
def corpus_tools(corpus: Path) -> Any:
    """The module that knows how cases are stored, and a store of shared files."""
    spec = importlib.util.spec_from_file_location("run_corpus", corpus / "run_corpus.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{corpus} has no run_corpus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.Store([str(corpus / "open" / "models" / "files")])


def cases_of(corpus: Path, suite: str) -> Iterator[dict[str, Any]]:
    """The cases of a suite that LiteRT runs through `Interpreter.invoke`."""
    for line in (corpus / "open" / suite / "index.jsonl").read_text().splitlines():
        case = json.loads(line)
        if case.get("expect", {}).get("status") == "ok" and not case.get("soft") and not case["steps"][0].get("sig"):
            yield case


def prepared(engine: Callable[..., Any], model: Any, step: dict[str, Any]) -> Any:
    """An interpreter that has its inputs and has run twice."""
    stored = {"model_path": model} if isinstance(model, str) else {"model_content": model}
    interpreter = engine(**stored, num_threads=1)
    for position, shape in (step.get("resize") or {}).items():
        index = interpreter.get_input_details()[int(position)]["index"]
        interpreter.resize_tensor_input(index, list(shape), strict=bool(step.get("strict")))
    interpreter.allocate_tensors()
    for _ in range(2):
        for details, value in zip(interpreter.get_input_details(), step["inputs"], strict=False):
            if value is not None:
                interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
    return interpreter


def left_to_numpy(interpreter: Any) -> list[str]:
    """The operators that are no machine code, and why."""
    names = {node.index: node.op.name for node in interpreter._subgraphs[0].nodes}
    refusals = [item for claims in interpreter.delegate_claims() for item in claims.refusals.items()]
    failures = [kernel.failure for kernel in interpreter.delegate_kernels() if getattr(kernel, "failure", None)]
    return list(dict.fromkeys([*(f"{names[number]}: {why}" for number, why in refusals), *failures]))


def burst(call: Callable[[], object], count: int) -> float:
    """Microseconds of CPU time of a call."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count * 1e6


def measure(corpus: Path, suite: str, case: dict[str, Any]) -> dict[str, Any]:
    """The times of both engines. Runs in a process of its own, which LiteRT may end."""
    from ai_edge_litert.interpreter import Interpreter

    import gossamer

    tools, store = corpus_tools(corpus)
    base = str(corpus / "open" / suite)
    found = store.path(base, case["model"]) if case.get("by_path") else store.model(base, case["model"], case)
    step = tools.load_inputs(case, base, store)[0]
    litert, ours = (prepared(engine, found, step) for engine in (Interpreter, gossamer.Interpreter))
    calls = (litert.invoke, ours.invoke)
    counts = [max(1, min(MOST_CALLS, int(BURST * 1e6 / burst(call, 1)))) for call in calls]
    bursts = [[burst(*each) for each in zip(calls, counts, strict=True)] for _ in range(BURSTS)]
    theirs, mine = (statistics.median(column) for column in zip(*bursts, strict=True))
    row = {"id": case["id"], "litert_us": theirs, "gossamer_us": mine, "ratio": theirs / mine}
    return {**row, "numpy": left_to_numpy(ours)}


def measured(corpus: Path, cases: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The rows of all cases that both engines run."""
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, spawn)
    for suite, case in cases:
        running = pool.submit(measure, corpus, suite, case)
        error = running.exception()
        if error is None:
            yield running.result()
        else:
            print(f"{case['id']}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
        if isinstance(error, BrokenProcessPool):
            pool = ProcessPoolExecutor(1, spawn)
    pool.shutdown()


def report(rows: Sequence[dict[str, Any]], total: int, worst: int) -> None:
    """Print how the ratios are distributed, and the worst."""
    ratios = sorted(row["ratio"] for row in rows)
    at = {f"p{percent}": ratios[len(ratios) * percent // 100] for percent in (1, 10, 50, 90)}
    slower = {times: sum(ratio < 1 / times for ratio in ratios) for times in (1, 2, 10)}
    print(f"{len(rows)} of {total} cases; LiteRT / Gossamer:", *(f"{name} {ratio:.2f}" for name, ratio in at.items()))
    for times, count in slower.items():
        print(f"  more than {times} x LiteRT's time: {count} ({count / len(rows):.1%})")
    print(f"{'ratio':>7}{'LiteRT':>10}{'ours':>10}  case")
    for row in sorted(rows, key=lambda row: row["ratio"])[:worst]:
        print(f"{row['ratio']:7.3f}{row['litert_us']:10.1f}{row['gossamer_us']:10.1f}  {row['id']}")
        for why in row["numpy"]:
            print(f"{'':29}{why}")


def main() -> int:
    """The command; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="the folder of run_corpus.py")
    parser.add_argument("--suite", nargs="+", default=["models", "real"], help="folders of CORPUS/open")
    parser.add_argument("--sample", type=int, help="so many cases, chosen at random, always the same")
    parser.add_argument("--least", type=float, default=0, metavar="US", help="only cases that take LiteRT so long")
    parser.add_argument("--worst", type=int, default=20, help="how many to list")
    parser.add_argument("--json", type=Path, help="write all rows here")
    parser.add_argument(
        "--require", type=float, metavar="PERCENT", help="at most so many take more than twice the time"
    )
    arguments = parser.parse_args()
    corpus = arguments.corpus.resolve()
    cases = [(suite, case) for suite in arguments.suite for case in cases_of(corpus, suite)]
    random.Random(1).shuffle(cases)
    cases = cases[: arguments.sample]
    rows = [row for row in measured(corpus, cases) if row["litert_us"] >= arguments.least]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if not rows:
        raise SystemExit("no case was measured")
    report(rows, len(cases), arguments.worst)
    slow = sum(row["ratio"] < TWICE for row in rows) / len(rows)
    return int(arguments.require is not None and 100 * slow > arguments.require)


if __name__ == "__main__":
    sys.exit(main())
