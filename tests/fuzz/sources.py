# ruff: noqa: T201 - it prints what it finds
"""Damaged sources of the converter: ``python -m tests.fuzz.sources`` converts mutants of the conversion corpus.

Each is converted in a process of its own, which may die, hang or ask for a terabyte. In good order are a model and a
`ConvertError`; anything else is a finding.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import random
import re
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gossamer.convert.converter import convert
from gossamer.errors import ConvertError
from tests.conftest import ROOT

MEMORY = 1 << 30
"""Bytes of address space that a conversion may take beyond what its process has."""

SECONDS = 120.0

LARGEST = 200_000
"""Bytes of a source that is still small."""

ORDERLY = ("converted", "refused")

Files = dict[str, bytes]
"""A source: its files by their path; one that is a single file has the path ""."""


class Seed(NamedTuple):
    """A good source: its format, and what its conversion is told."""

    name: str
    format: str
    files: Files
    args: dict[str, object]


class Outcome(NamedTuple):
    """``converted``, ``refused``, ``leak`` (another exception), ``death`` or ``hang``; where, and in words."""

    verdict: str
    where: str = ""
    detail: str = ""


def corpus_seeds(corpus: Path) -> Iterator[Seed]:
    """The small float sources of the open half of the conversion corpus, one for each file."""
    seen: set[str] = set()
    for line in (corpus / "open" / "index.jsonl").read_text().splitlines():
        case = json.loads(line)
        if case["source"] in seen or case["args"].get("mode", "float32") != "float32":
            continue
        seen.add(case["source"])
        archive, _, member = case["source"].partition(":")
        with zipfile.ZipFile(corpus / "open" / archive) as opened:
            names = [name for name in opened.namelist() if name.startswith(member) and not name.endswith("/")]
            files = {name[len(member) :]: opened.read(name) for name in names}
        if files and sum(map(len, files.values())) <= LARGEST:
            args = {k: v for k, v in case["args"].items() if k in ("input_arrays", "output_arrays", "signature_keys")}
            yield Seed(case["id"], case["format"], files, args)


def mutant(seed: Seed, number: int) -> Files:
    """The source with one to four kinds of damage."""
    rng = random.Random(number)
    files = dict(seed.files)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        name = rng.choice(sorted(files))
        files[name] = damaged(files[name], rng)
    return files


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Bytes with one kind of damage that fits what they are: an archive, text, messages of protobuf, or just bytes."""
    if content[:4] == b"PK\3\4" and rng.random() < 0.8:
        return _archive(content, rng)
    if content[:1] in (b"{", b"[") and rng.random() < 0.9:
        return _text(content, rng)
    if rng.random() < 0.6:
        return damaged_message(content, rng)
    return _bytes(content, rng)


def _bytes(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    if not data:
        return bytes([rng.randrange(256)])
    place = rng.randrange(len(data))
    kind = rng.randrange(5)
    if kind == 0:
        data[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[place] = rng.choice((0, 0x7F, 0x80, 0xFF))
    elif kind == 2:
        del data[place:]
    elif kind == 3:
        length = rng.randrange(1, 64)
        data[place:place] = data[place : place + length]
    else:
        del data[place : place + rng.randrange(1, 64)]
    return bytes(data)


def _archive(content: bytes, rng: random.Random) -> bytes:
    """One member damaged, the archive whole."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as opened:
            members = [(item, opened.read(item)) for item in opened.infolist()]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError):
        return _bytes(content, rng)
    chosen = rng.randrange(len(members))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        for number, (item, data) in enumerate(members):
            if number == chosen and rng.random() < 0.1:
                continue
            written.writestr(item, damaged(data, rng) if number == chosen else data)
    return made.getvalue()


HOSTILE = ("0", "-1", "1e400", "9223372036854775807", "4294967296", "1000000000", "null", '"x"', "[]", "{}", "true")


def _text(content: bytes, rng: random.Random) -> bytes:
    """A number, a word or a piece of JSON that is another one."""
    text = content.decode("utf-8", "replace")
    pieces = list(re.finditer(r'-?\d+(\.\d+)?|"[^"\\]*"|true|false|null', text))
    if not pieces or rng.random() < 0.1:
        return _bytes(content, rng)
    piece = rng.choice(pieces)
    other = rng.choice(HOSTILE) if rng.random() < 0.5 else rng.choice(pieces)[0]
    return (text[: piece.start()] + other + text[piece.end() :]).encode()


class Field(NamedTuple):
    """A field of a message: where it begins, where its value does, where it ends, and how it is written."""

    start: int
    value: int
    end: int
    wire: int


def _fields(data: bytes, start: int, end: int) -> list[Field] | None:
    """The fields between two places, ``None`` if that is no message."""
    found = []
    while start < end:
        key, place = _varint(data, start, end)
        if place is None or not key >> 3:
            return None
        wire = key & 7
        if wire == 0:
            _, after = _varint(data, place, end)
            value = place
        elif wire == 1:
            value, after = place, place + 8
        elif wire == 5:
            value, after = place, place + 4
        elif wire == 2:
            length, begin = _varint(data, place, end)
            if begin is None:
                return None
            value, after = begin, begin + length
        else:
            return None
        if after is None or after > end:
            return None
        found.append(Field(start, value, after, wire))
        start = after
    return found


def _varint(data: bytes, place: int, end: int) -> tuple[int, int | None]:
    number = shift = 0
    while place < end and shift < 70:
        byte = data[place]
        number |= (byte & 127) << shift
        shift += 7
        place += 1
        if byte < 128:
            return number, place
    return 0, None


def _coded(number: int) -> bytes:
    coded = bytearray()
    number &= (1 << 64) - 1
    while number > 127:
        coded.append(number & 127 | 128)
        number >>= 7
    coded.append(number)
    return bytes(coded)


def damaged_message(content: bytes, rng: random.Random) -> bytes:
    """A message with one field somewhere in it damaged, lengths put right around it."""
    return _inside(content, rng, 0)


def _inside(data: bytes, rng: random.Random, depth: int) -> bytes:
    fields = _fields(data, 0, len(data))
    if not fields:
        return _bytes(data, rng)
    field = rng.choice(fields)
    raw = data[field.value : field.end]
    before, after = data[: field.start], data[field.end :]
    key = data[field.start : field.value] if field.wire != 2 else _coded(_varint(data, field.start, field.end)[0])
    if field.wire == 2 and depth < 20 and rng.random() < 0.8:
        new = _inside(raw, rng, depth + 1) if _fields(raw, 0, len(raw)) else _bytes(raw, rng)
        return before + key + _coded(len(new)) + new + after
    kind = rng.randrange(4)
    if kind == 0:
        return before + after
    if kind == 1:
        return before + data[field.start : field.end] * 2 + after
    if kind == 2:
        other = rng.choice(fields)
        return before + data[other.start : other.end] + after
    if field.wire == 0:
        return before + key + _coded(rng.choice((0, 1, -1, 1 << 31, 1 << 62, (1 << 63) - 1, rng.randrange(64)))) + after
    return before + _bytes(data[field.start : field.end], rng) + after


def write(files: Files, folder: Path, format: str) -> Path:
    """The source as files; where it is."""
    if list(files) == [""]:
        suffix = {"keras": ".keras", "h5": ".h5", "graph_def": ".pb", "onnx": ".onnx", "torch_export": ".pt2"}[format]
        place = folder / f"model{suffix}"
        place.write_bytes(files[""])
        return place
    place = folder / "model"
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return place


def judged(seed: Seed, files: Files, seconds: float = SECONDS) -> Outcome:
    """How the conversion of a source goes in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="gossamer-mutant-"))
    reading, writing = os.pipe()
    try:
        place = write(files, folder, seed.format)
        child = os.fork()
        if not child:
            _convert(place, seed, writing)
        os.close(writing)
        writing = -1
        answer = b""
        deadline = time.monotonic() + seconds
        while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                break
            answer += part
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Outcome("hang", "", f"more than {seconds:g} s")
        status = os.waitpid(child, 0)[1]
        return pickle.loads(answer) if answer else Outcome("death", f"status {status}")
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
        shutil.rmtree(folder, ignore_errors=True)


def _convert(place: Path, seed: Seed, writing: int) -> None:
    """The child: never returns."""
    try:
        with open("/proc/self/statm") as statm:
            base = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (base + MEMORY, base + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            convert(place, format=seed.format, **seed.args)  # type: ignore[arg-type]
            outcome = Outcome("converted")
        except ConvertError as error:
            outcome = Outcome("refused", "", str(error)[:300])
        except BaseException as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if "/gossamer/" in f.filename]
            last = frames[-1] if frames else None
            where = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}" if last else repr(error)
            outcome = Outcome("leak", where, "".join(traceback.format_exception(error))[-1500:])
        os.write(writing, pickle.dumps(outcome))
    finally:
        os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sources", description=__doc__)
    parser.add_argument("--mutants", type=int, default=5000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first mutant (default: %(default)s)")
    parser.add_argument("--only", default="", help="sources whose name contains this")
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "convert", help="the conversion corpus")
    options = parser.parse_args()
    seeds: Sequence[Seed] = [seed for seed in corpus_seeds(options.corpus) if options.only in seed.name]
    print(f"{len(seeds)} sources, {options.mutants} mutants from seed {options.seed}")
    verdicts: Counter[str] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    for number in range(options.seed, options.seed + options.mutants):
        if not number % 500:
            print(f"at {number}: {dict(verdicts)}", flush=True)
        seed = random.Random(number).choice(seeds)
        outcome = judged(seed, mutant(seed, number))
        verdicts[outcome.verdict] += 1
        if outcome.verdict not in ORDERLY:
            if not found[outcome.verdict, outcome.where]:
                print(f"-- {outcome.verdict} {seed.name} seed {number} {outcome.where}\n{outcome.detail}", flush=True)
            found[outcome.verdict, outcome.where] += 1
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    for (verdict, where), count in found.most_common():
        print(f"{count:6} {verdict} {where}")


if __name__ == "__main__":
    main()
