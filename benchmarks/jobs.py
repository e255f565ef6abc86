"""What `gossamer run --jobs` saves on a folder of pictures, beside two processes with half of them each.

    python benchmarks/jobs.py MODEL.tflite [--pictures 1000] [--size 640x480] [--jobs 2] [--rounds 5]

Pictures are JPEG files of noise that is as smooth as photographs are. Three ways take turns: one thread, so many jobs,
and so many processes with a part of the pictures each, which is what the machine can do at best. Seconds are of whole
commands; ratios are medians of rounds, so that what else the machine does weighs the same on all three.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image


def make_pictures(folder: Path, count: int, width: int, height: int) -> list[Path]:
    """So many JPEG files of a size."""
    noise = np.random.default_rng(0)
    paths = [folder / f"{number:05}.jpg" for number in range(count)]
    for path in paths:
        coarse = Image.fromarray(noise.integers(0, 256, (height // 32, width // 32, 3), dtype=np.uint8))
        coarse.resize((width, height), Image.Resampling.BICUBIC).save(path, quality=90)
    return paths


def seconds(commands: Sequence[Sequence[str]]) -> float:
    """What commands take that run at the same time."""
    start = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit("a command failed")
    return time.perf_counter() - start


def main() -> None:
    """Measure, and print seconds and ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--size", default="640x480")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = make_pictures(folder, options.pictures, width, height)
        parts = []
        for part in range(options.jobs):
            parts.append(folder / f"part{part}.txt")
            parts[-1].write_text("".join(f"{path}\n" for path in paths[part :: options.jobs]))
        run = [sys.executable, "-m", "gossamer", "run", options.model, "--jsonl"]
        ways = {
            "one thread": [[*run, name]],
            f"--jobs {options.jobs}": [[*run, name, "--jobs", str(options.jobs)]],
            f"{options.jobs} processes": [[*run, "--files-from", str(part)] for part in parts],
        }
        seconds([[*run, str(paths[0])]])  # what is planned and compiled is kept
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, commands in ways.items():
                taken[way].append(seconds(commands))
    alone = taken["one thread"]
    for way, figures in taken.items():
        ratio = statistics.median(a / b for a, b in zip(figures, alone, strict=True))
        print(f"{way:12}  {statistics.median(figures):7.2f} s  {ratio:5.2f}")


if __name__ == "__main__":
    main()
