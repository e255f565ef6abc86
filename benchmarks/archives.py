"""What it costs to have kernels: the version of the generator, opening archives, finding kernels, checksums.

    python benchmarks/archives.py [KERNELS]

The archive has that many kernels of 1.5 KB (default 1800, as a shipped one); 40 are looked for, as by a model.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from zlib import crc32

from gossamer.programs import generator
from gossamer.programs.archive import KernelArchive, archive_key
from gossamer.programs.generator import SEAL, generator_version, seal, version_of_sources
from gossamer.programs.kernel_file import Blob
from gossamer.targets import all_targets

SIZE, MODEL, REPEAT = 1500, 40, 200


def milliseconds(function: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * median(times)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1800
    target = all_targets()["avx512"]
    random.seed(0)
    kernels = {f"f32_gemm_relu6_{n}x2__avx512_accumulate_p1": Blob(random.randbytes(SIZE), 0) for n in range(count)}
    names = random.sample(list(kernels), MODEL)
    with tempfile.TemporaryDirectory() as place:
        generator.SHIPPED = Path(place)
        (Path(place) / SEAL).write_text(seal())
        key = archive_key(target, generator_version())
        directory = Path(place) / "kernels"
        KernelArchive(directory, key).add(kernels)

        def find() -> KernelArchive:
            archive = KernelArchive(directory, key)
            if archive.find(names[0]) is None or not all(map(archive.find, names)):
                raise SystemExit("a kernel is not found")
            return archive

        opening = milliseconds(lambda: KernelArchive(directory, key))
        code = bytes(SIZE * MODEL)
        for what, took in {
            "version, from the sources": milliseconds(version_of_sources),
            "version, from the seal": milliseconds(generator_version.__wrapped__),
            f"open an archive of {count} kernels": opening,
            f"find {MODEL} of them": milliseconds(find) - opening,
            "of that, checksums": milliseconds(lambda: crc32(code)),
        }.items():
            print(f"{what:<36}{took:7.3f} ms")


if __name__ == "__main__":
    main()
