# ruff: noqa: T201 - it prints what it finds
"""``python -m tests.fuzz.service``: a server, good clients, and hostile ones for as long as you like."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from gossamer import Interpreter
from tests.conftest import ROOT
from tests.serve.hostile import FOUND, GRPC, HTTP, Attacker, Example, Good, attack, slow
from tests.serve.process import ServerProcess

MODEL = ROOT / "examples" / "digits.tflite"


def examples(model: Path = MODEL, count: int = 8) -> list[Example]:
    """Right requests for the digits, and what they get."""
    interpreter = Interpreter(model_path=str(model), num_threads=1)
    runner = interpreter.get_signature_runner()
    ((name, detail),) = runner.get_input_details().items()
    made = []
    for x in np.random.default_rng(1).uniform(0, 1, (count, *detail["shape"])).astype(np.float32):
        (y,) = runner(**{name: x}).values()
        made.append(Example(model.stem, name, x, y))
    return made


def main() -> None:
    import grpc

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.service", description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="attacks (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--seed", type=int, default=1, help="of the first attack (default: %(default)s)")
    parser.add_argument("--only", default="", help="attacks whose name contains this")
    parser.add_argument("--side-by-side", type=int, default=8, help="attacks at a time (default: %(default)s)")
    parser.add_argument("--slow", type=int, default=8, help="slow clients besides (default: %(default)s)")
    parser.add_argument("--good", type=int, default=4, help="good clients (default: %(default)s)")
    options = parser.parse_args()
    kinds = {name: each for name, each in {**HTTP, **GRPC}.items() if options.only in name}
    outcomes: Counter[tuple[str, str]] = Counter()
    seeds: dict[tuple[str, str], int] = {}
    begin = time.monotonic()
    rows = examples()

    def note(seed: int, which: dict[str, object]) -> None:
        if time.monotonic() < begin + options.seconds:
            happened = attack(attacker, seed, which)  # type: ignore[arg-type]
            outcomes[happened] += 1
            if seeds.setdefault(happened, seed) == seed and happened[1].startswith(FOUND):
                print(f"-- seed {seed} {': '.join(happened)}", flush=True)

    with ServerProcess(MODEL, "--no-log-requests", "--max-body", "4M") as server, ExitStack() as stack:
        channel = stack.enter_context(grpc.insecure_channel("{}:{}".format(*server.grpc)))
        attacker = Attacker(server.http, server.grpc, rows, channel=channel)
        good = [stack.enter_context(Good(server.http, rows)) for _ in range(options.good)]
        slowly = stack.enter_context(ThreadPoolExecutor(max(1, options.slow)))
        first = server.usage
        for seed in range(options.slow):
            slowly.submit(note, seed, {"slow": slow})
        with ThreadPoolExecutor(options.side_by_side) as pool:
            for part in range(0, options.count, 1000):
                numbers = range(options.seed + part, options.seed + min(part + 1000, options.count))
                list(pool.map(note, numbers, [kinds] * len(numbers)))
                now = server.usage
                print(
                    f"after {sum(outcomes.values())} and {time.monotonic() - begin:.0f} s: RSS {now.rss:.1f} MiB, "
                    f"{now.threads} threads, {now.descriptors} descriptors",
                    flush=True,
                )
        slowly.shutdown()
        for each in good:
            each.stop()
        channel.close()
        last = server.usage
        status = server.stop()
        events = [event for event in server.log if event["event"] == "bug" or "traceback" in event]
        noise = [line for line in server.said.splitlines() if "Traceback" in line and not line.startswith("{")]

    print(f"\n{'attack':20} outcomes")
    for name in sorted({name for name, _ in outcomes}):
        print(f"{name:20} " + ", ".join(f"{n} {what}" for (kind, what), n in sorted(outcomes.items()) if kind == name))
    asked, right = sum(each.asked for each in good), sum(each.right for each in good)
    wrong = [text for each in good for text in each.wrong]
    print(f"good clients: {right} of {asked} answers were right", *wrong[:5], sep="\n  ")
    print(f"RSS {first.rss:.1f} to {last.rss:.1f} MiB, descriptors {first.descriptors} to {last.descriptors}")
    print(f"exit status {status}, {len(events)} bugs logged, {len(noise)} tracebacks printed", *events[:5], sep="\n  ")
    found = any(what.startswith(FOUND) for _, what in outcomes)
    raise SystemExit(bool(found or wrong or status or events or noise))


if __name__ == "__main__":
    main()
