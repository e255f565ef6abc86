# ruff: noqa: T201 - it prints what it finds
"""``python -m tests.fuzz``: mutants for as long as you like, and a table of what they found.

``--sizes``: undamaged models, resized again and again, each compared with interpreters that know no other shape.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.conftest import corpus_directory
from tests.fuzz.compound import compound
from tests.fuzz.driving import APART, ORDERLY, Outcome
from tests.fuzz.hunting import hunt
from tests.fuzz.mutations import mutant
from tests.fuzz.peer import JUDGEMENTS, Peer, judge
from tests.fuzz.sandbox import SECONDS, Sandbox
from tests.fuzz.seeds import FLEX_SUITES, corpus_seeds, files, own_seeds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--mutants", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--seed", type=int, default=1, help="of the first mutant (default: %(default)s)")
    parser.add_argument("--only", default="", help="seeds whose name contains this")
    parser.add_argument("--models", type=Path, help="a folder of more models to damage")
    parser.add_argument("--limit", type=float, default=SECONDS, help="seconds that a mutant may take")
    parser.add_argument("--keep", type=Path, help="folder to write one mutant of each finding to")
    parser.add_argument("--compound", action="store_true", help="damage several things at once")
    parser.add_argument("--peer", action="store_true", help="let LiteRT judge where the paths differ")
    parser.add_argument("--reference", action="store_true", help="with --peer: also where they do not")
    parser.add_argument("--sizes", action="store_true", help="good models, at many shapes")
    parser.add_argument("--flex", action="store_true", help="models with TensorFlow's operators")
    options = parser.parse_args()
    corpus = corpus_directory()
    seeds = list(corpus_seeds(corpus.parent / "flex", FLEX_SUITES)) if options.flex and corpus else []
    seeds = seeds or [
        *own_seeds(),
        *(corpus_seeds(corpus) if corpus else ()),
        *(files(options.models) if options.models else ()),
    ]
    seeds = [(name, content) for name, content in seeds if options.only in name]
    if options.sizes:
        hunt(seeds, options.seed, options.seconds, peer=options.peer)
        return
    print(f"{len(seeds)} models, {options.mutants} mutants from seed {options.seed}")
    verdicts: Counter[str] = Counter()
    found: dict[tuple[str, str], tuple[int, str, int, Outcome]] = {}
    slowest: list[tuple[float, int, str, int]] = []
    # Of numbers, the paths may differ as LiteRT's do, and that is for LiteRT to say.
    quiet = {*ORDERLY, "settled", *list(JUDGEMENTS)[2:]} if options.peer else {*ORDERLY, "unlike"}
    begin = time.monotonic()
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(seconds=options.limit))
        peer = stack.enter_context(Peer()) if options.peer else None
        for seed in range(options.seed, options.seed + options.mutants):
            if time.monotonic() > begin + options.seconds:
                break
            if not seed % 1000:
                print(f"at seed {seed} after {time.monotonic() - begin:.0f} s: {dict(verdicts)}", flush=True)
            rng = random.Random(seed)
            name, content = rng.choice(seeds)
            damaged = compound(content, rng.choice(seeds)[1], seed) if options.compound else mutant(content, seed)
            outcome = sandbox.drive(damaged, seed)
            if peer is not None and outcome.verdict in (*APART, *["ran"] * options.reference):
                outcome = judge(outcome, peer, damaged, seed)
            verdicts[outcome.verdict] += 1
            if outcome.seconds > 1 or outcome.peak_mib > 500:
                slowest.append((outcome.seconds, outcome.peak_mib, name, seed))
            if outcome.verdict not in quiet:
                family = name.partition(":")[0] if outcome.verdict in APART else ""
                key = outcome.verdict, f"{outcome.where} {family}".strip()
                count = found[key][0] if key in found else 0
                if not count:
                    print(f"-- {outcome.verdict} {name} seed {seed} {outcome.stage} | {key[1]}", flush=True)
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
