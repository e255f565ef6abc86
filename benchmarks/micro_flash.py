"""How much flash TFLite Micro's interpreter and operators take: built and linked for a Cortex-M4.

    apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib
    python benchmarks/micro_flash.py TFLITE_MICRO THIRD_PARTY OBJECTS [--kernels cmsis-nn] [--write] [--jobs N]

TFLITE_MICRO is a checkout of tflite-micro, THIRD_PARTY a folder with flatbuffers, gemmlowp, ruy, kissfft and cmsis_nn
in it, OBJECTS where compiled files are kept. It is built as TFLite Micro's makefile builds a release: error strings
stripped, the core with -Os, kernels with -O2, and the linker drops what nobody calls. A firmware with one operator is
linked for each, and the map of the linker says which pieces of code that takes beyond the firmware with none. A piece
that several operators take is there once in a firmware with all of them, so pieces with the same operators are summed
and written as one line. At last, firmwares with several operators are linked and compared with the sums.

``--table`` writes what src/gossamer/micro/code_size.py has: the groups, where small ones are given to their operators.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gossamer.micro.adders import ADDERS, CUSTOM_ADDERS

MACHINE = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=auto")
SECTIONS = ("-ffunction-sections", "-fdata-sections", "-funsigned-char", "-fomit-frame-pointer", "-w")
DEFINES = (
    *("-DTF_LITE_STATIC_MEMORY", "-DTF_LITE_MCU_DEBUG_LOG", "-DNDEBUG", "-DTF_LITE_STRIP_ERROR_STRINGS"),
    *("-DTF_LITE_USE_GLOBAL_CMATH_FUNCTIONS", "-DTF_LITE_USE_GLOBAL_MIN", "-DTF_LITE_USE_GLOBAL_MAX"),
    "-DTF_LITE_DISABLE_X86_NEON",
)
CPP = ("-std=c++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-fno-unwind-tables")
LINK = ("-lm", "--specs=nano.specs", "--specs=nosys.specs", "-Wl,--gc-sections")

CORE = (
    *(f"tensorflow/lite/micro{below}" for below in ("", "/arena_allocator", "/memory_planner", "/tflite_bridge")),
    *(f"tensorflow/lite/{name}" for name in ("core/api", "core/c", "c", "kernels", "kernels/internal")),
    *(f"tensorflow/lite/{name}" for name in ("kernels/internal/reference", "schema")),
    *(f"tensorflow/compiler/mlir/lite/{name}" for name in ("core/api", "schema")),
)
KERNELS = ("tensorflow/lite/micro/kernels", "signal/micro/kernels", "signal/src", "signal/src/kiss_fft_wrappers")
LEFT_OUT = re.compile(r"test|mock|fake|benchmark|recording|debug_log|system_setup|micro_time")

SMALL, MANY = 200, 45
"""Bytes below which a group is given to its operators, and operators above which it is given to the interpreter."""

TOGETHER = (
    "FULLY_CONNECTED",
    "RESHAPE DEPTHWISE_CONV_2D FULLY_CONNECTED SOFTMAX",
    "CONV_2D DEPTHWISE_CONV_2D AVERAGE_POOL_2D RESHAPE FULLY_CONNECTED SOFTMAX",
    "CONV_2D ADD AVERAGE_POOL_2D RESHAPE FULLY_CONNECTED SOFTMAX",
    "SVDF SPLIT FULLY_CONNECTED SOFTMAX QUANTIZE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM FULLY_CONNECTED TANH UNPACK PACK",
    "CONV_2D DEPTHWISE_CONV_2D ADD MUL SUB MEAN CONCATENATION RESIZE_BILINEAR LOGISTIC SOFTMAX PAD STRIDED_SLICE "
    "TRANSPOSE QUANTIZE DEQUANTIZE MAX_POOL_2D",
)
"""Operators of firmwares that are linked for comparison."""

FIRMWARE = """
#include "tensorflow/lite/micro/debug_log.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_time.h"
#include "tensorflow/lite/micro/system_setup.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" void DebugLog(const char*, va_list) {{}}
extern "C" int DebugVsnprintf(char*, size_t, const char*, va_list) {{ return 0; }}
namespace tflite {{
void InitializeTarget() {{}}
uint32_t ticks_per_second() {{ return 0; }}
uint32_t GetCurrentTimeTicks() {{ return 0; }}
}}
using Resolver = tflite::MicroMutableOpResolver<{count}>;
{adders}
unsigned char* volatile model;
alignas(16) static unsigned char arena[1024];

int main() {{
  static Resolver resolver;
  tflite::MicroInterpreter interpreter(tflite::GetModel(model), resolver, arena, sizeof(arena));
  if (interpreter.AllocateTensors() != kTfLiteOk) return 1;
  for (;;) {{
    interpreter.input(0)->data.int8[0] = 1;
    if (interpreter.Invoke() != kTfLiteOk) return 2;
    model[0] = interpreter.output(0)->data.int8[0];
  }}
}}
"""

Pieces = dict[str, int]
"""Bytes of each piece of code in a firmware, by object file and section."""


class Build:
    """TFLite Micro, compiled."""

    def __init__(self, checkout: Path, third_party: Path, objects: Path, kernels: str) -> None:
        self.checkout = checkout
        self.objects = objects
        self.cmsis_nn = third_party / "cmsis_nn" if kernels == "cmsis-nn" else None
        folders = [third_party / name for name in ("gemmlowp", "ruy", "kissfft", "cmsis_nn", "cmsis_nn/Include")]
        includes = [f"-I{folder}" for folder in (checkout, third_party / "flatbuffers/include", *folders)]
        self.flags = [*MACHINE, *SECTIONS, *DEFINES, *includes, *(["-DCMSIS_NN"] if self.cmsis_nn else [])]

    def sources(self) -> Iterator[tuple[Path, str]]:
        """Files to compile, and how far to optimize."""
        replaced = {path.name: path for path in self.checkout.glob("tensorflow/lite/micro/kernels/cmsis_nn/*.cc")}
        for folders, level in ((CORE, "-Os"), (KERNELS, "-O2")):
            for folder in folders:
                for path in sorted((self.checkout / folder).glob("*.cc")):
                    if not LEFT_OUT.search(path.name):
                        own = self.cmsis_nn is not None and folder == KERNELS[0]
                        yield replaced.get(path.name, path) if own else path, level
        if self.cmsis_nn is not None:
            for path in sorted(self.cmsis_nn.glob("Source/**/*.c")):
                if not path.stem.endswith(("_f16", "_f32")):
                    yield path, "-O2"

    def compile(self, source: tuple[Path, str]) -> Path:
        """Compile a file, unless it was."""
        path, level = source
        root = self.cmsis_nn.parent.parent if self.cmsis_nn and path.suffix == ".c" else self.checkout
        made = self.objects / (str(path.relative_to(root)).replace("/", "__") + ".o")
        if not made.exists():
            compiler = ["arm-none-eabi-gcc", "-std=c17"] if path.suffix == ".c" else ["arm-none-eabi-g++", *CPP]
            subprocess.run([*compiler, *self.flags, level, "-c", str(path), "-o", str(made)], check=True)
        return made

    def library(self, jobs: int) -> Path:
        """All objects in an archive."""
        self.objects.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(jobs) as threads:
            made = list(threads.map(self.compile, self.sources()))
        library = self.objects / "tflm.a"
        library.unlink(missing_ok=True)
        subprocess.run(["arm-none-eabi-ar", "rcs", str(library), *map(str, made)], check=True)
        return library

    def firmware(self) -> Path:
        """The application: a function for each operator that adds it, of which the linker takes those it is told."""
        methods = {**ADDERS, **CUSTOM_ADDERS}
        adders = "\n".join(
            f'extern "C" void add_{i}(Resolver& r) {{ r.{method}(); }}' for i, method in enumerate(methods.values())
        )
        source = self.objects / "firmware.cc"
        source.write_text(FIRMWARE.format(count=len(methods), adders=adders))
        made = source.with_suffix(".o")
        subprocess.run(["arm-none-eabi-g++", *CPP, *self.flags, "-Os", "-c", str(source), "-o", str(made)], check=True)
        return made


def link(firmware: Path, library: Path, operators: Sequence[str]) -> tuple[int, Pieces]:
    """Bytes of a firmware with these operators, and its pieces."""
    names = [*ADDERS, *CUSTOM_ADDERS]
    with tempfile.TemporaryDirectory() as folder:
        elf, map_ = f"{folder}/firmware.elf", f"{folder}/firmware.map"
        roots = [f"-Wl,-u,add_{names.index(operator)}" for operator in operators]
        command = ["arm-none-eabi-g++", *MACHINE, str(firmware), str(library), *roots, *LINK, f"-Wl,-Map,{map_}"]
        subprocess.run([*command, "-o", elf], check=True, stderr=subprocess.DEVNULL)
        sizes = subprocess.run(["arm-none-eabi-size", elf], check=True, capture_output=True, text=True)
        text, data = map(int, sizes.stdout.splitlines()[1].split()[:2])
        return text + data, pieces(Path(map_).read_text())


def pieces(text: str) -> Pieces:
    """What lies in flash by the linker's map. Long names of sections stand in a line of their own."""
    text = re.sub(r"\n (\.\S+)\n +0x", r"\n \1 0x", text.split("Linker script and memory map")[1])
    found: Pieces = defaultdict(int)
    kept = r"^ (\.(?:text|rodata|data|init_array|ARM\S*)\S*) +0x([0-9a-f]+) +0x([0-9a-f]+) (\S.*)$"
    for name, address, size, file in re.findall(kept, text, re.MULTILINE):
        if int(address, 16) >= 0x1000:
            found[f"{file.rsplit('/', 1)[-1]}:{name}"] += int(size, 16)
    return {piece: size for piece, size in found.items() if size}


Groups = dict[tuple[str, ...], int]
"""Bytes by the operators that take them, each once for all of them."""


def merged(base: int, groups: Groups) -> tuple[int, Groups]:
    """Fewer groups: what is small goes to the operators, or to the interpreter where nearly all take it."""
    fewer: dict[tuple[str, ...], int] = defaultdict(int)
    for operators, size in groups.items():
        if len(operators) == 1 or size >= SMALL:
            fewer[operators] += size
        elif len(operators) > MANY:
            base += size
        else:
            for operator in operators:
                fewer[operator,] += size // 2
    return base, fewer


def estimated(base: int, groups: Groups, operators: Sequence[str]) -> int:
    """Bytes of a firmware with these operators."""
    return base + sum(size for names, size in groups.items() if set(names) & set(operators))


def table(base: int, groups: Groups) -> str:
    """Bytes of the interpreter, and of each group before the names of its operators."""
    rows = sorted(groups.items(), key=lambda group: (len(group[0]), group[0]))
    words = " ".join([str(base), *(" ".join([str(size), *names]) for names, size in rows if size)])
    return textwrap.fill(words, 116, initial_indent="    ", subsequent_indent="    ") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("third_party", type=Path)
    parser.add_argument("objects", type=Path)
    parser.add_argument("--kernels", choices=("reference", "cmsis-nn"), default="reference")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write what the table of the product is made of")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    build = Build(args.checkout.resolve(), args.third_party.resolve(), args.objects.resolve(), args.kernels)
    library, firmware = build.library(args.jobs), build.firmware()
    base, shared = link(firmware, library, [])
    takers: dict[str, list[str]] = defaultdict(list)
    size: Pieces = {}
    for operator in (*ADDERS, *CUSTOM_ADDERS):
        if operator == "ethos-u":
            continue  # its driver is no part of TFLite Micro
        total, taken = link(firmware, library, [operator])
        for piece, count in taken.items():
            more = count - shared.get(piece, 0)
            if more > 0:
                takers[piece].append(operator)
                size[piece] = max(size.get(piece, 0), more)
        print(f"{operator:<40}{total - base:8,}", flush=True)
    groups: dict[tuple[str, ...], int] = defaultdict(int)
    for piece, operators in takers.items():
        groups[tuple(operators)] += size[piece]
    print(f"interpreter {base:,}; {len(groups)} groups of pieces")
    base, fewer = merged(base, groups)
    for line in TOGETHER:
        chosen = line.split()
        total, estimate = link(firmware, library, chosen)[0], estimated(base, fewer, chosen)
        print(f"{estimate:8,} estimated, {total:8,} linked, {estimate / total - 1:+.1%}: {line}")
    if args.table:
        args.table.write_text(table(base, fewer))


if __name__ == "__main__":
    main()
