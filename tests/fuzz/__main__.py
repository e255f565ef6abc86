# ruff: noqa: T201 - it prints what it finds
"""``python -m tests.fuzz``: mutants for as long as you like, and a table of what they found."""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

from tests.conftest import corpus_directory
from tests.fuzz.driving import ORDERLY, Outcome
from tests.fuzz.mutations import mutant
from tests.fuzz.sandbox import SECONDS, Sandbox
from tests.fuzz.seeds import corpus_seeds, own_seeds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--mutants", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--seed", type=int, default=1, help="of the first mutant (default: %(default)s)")
    parser.add_argument("--only", default="", help="seeds whose name contains this")
    parser.add_argument("--limit", type=float, default=SECONDS, help="seconds that a mutant may take")
    parser.add_argument("--keep", type=Path, help="folder to write one mutant of each finding to")
    options = parser.parse_args()
    corpus = corpus_directory()
    seeds = [*own_seeds(), *(corpus_seeds(corpus) if corpus else ())]
    seeds = [(name, content) for name, content in seeds if options.only in name]
    print(f"{len(seeds)} models, {options.mutants} mutants from seed {options.seed}")
    verdicts: Counter[str] = Counter()
    found: dict[tuple[str, str], tuple[int, str, int, Outcome]] = {}
    slowest: list[tuple[float, int, str, int]] = []
    until = time.monotonic() + options.seconds
    with Sandbox(seconds=options.limit) as sandbox:
        for seed in range(options.seed, options.seed + options.mutants):
            if time.monotonic() > until:
                break
            name, content = random.Random(seed).choice(seeds)
            damaged = mutant(content, seed)
            outcome = sandbox.drive(damaged, seed)
            verdicts[outcome.verdict] += 1
            if outcome.seconds > 1 or outcome.peak_mib > 500:
                slowest.append((outcome.seconds, outcome.peak_mib, name, seed))
            if outcome.verdict not in ORDERLY:
                key = outcome.verdict, outcome.where
                count = found[key][0] if key in found else 0
                if not count:
                    print(f"-- {outcome.verdict} {name} seed {seed} {outcome.stage} | {outcome.where}", flush=True)
                    print("      " + outcome.detail[-2500:].replace("\n", "\n      "), flush=True)
                    if options.keep is not None:
                        options.keep.mkdir(parents=True, exist_ok=True)
                        (options.keep / f"{outcome.verdict}-{seed}.tflite").write_bytes(damaged)
                found[key] = (count + 1, name, seed, outcome)
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    for (verdict, where), (count, name, seed, _) in sorted(found.items(), key=lambda item: -item[1][0]):
        print(f"{count:6} {verdict:7} {where}  ({name}, last seed {seed})")
    for seconds, mebibytes, name, seed in sorted(slowest, reverse=True)[:40]:
        print(f"{seconds:6.1f} s {mebibytes:5} MiB  {name}, seed {seed}")


if __name__ == "__main__":
    main()
