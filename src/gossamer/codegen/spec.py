"""What every kernel declares: a spec, whose name follows from its fields, and the layout of its argument block."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

ENTRY = "k"
"""The one external function of every module."""

WORD = 8
"""Bytes of a word of an argument block, on every target."""

# f32_gemm_relu6_14x2__avx512, or with a variant f32_gemm_relu6_14x2__avx512_prefetch
_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*__[a-z0-9]+(_[a-z0-9]+)*")

ArgumentType = Literal["ptr", "i64"]
T = TypeVar("T")


class Argument(NamedTuple):
    """A word of an argument block: its name, its LLVM type, and where it lies, in bytes."""

    name: str
    type: ArgumentType
    offset: int


class ArgumentBlock:
    """The layout of what a kernel reads at its argument pointer: words of 8 bytes, by name and in order.

    ``ArgumentBlock("*a *b count")``, in which a star marks pointers, is read by the emitter, word by word, and filled
    by ``block.words(a=..., b=..., count=...)``. A row of a table inside a block is declared in the same way.
    """

    def __init__(self, *words: str) -> None:
        self.arguments = tuple(
            Argument(word.lstrip("*"), "ptr" if word[0] == "*" else "i64", WORD * at)
            for at, word in enumerate(" ".join(words).split())
        )
        self._by_name = {argument.name: argument for argument in self.arguments}
        if len(self._by_name) < len(self.arguments):
            raise CompileError(f"The names of arguments must differ, got {' '.join(words)}.")

    def __iter__(self) -> Iterator[Argument]:
        return iter(self.arguments)

    def __len__(self) -> int:
        return len(self.arguments)

    def __getitem__(self, name: str) -> Argument:
        return self._by_name[name]

    @property
    def size(self) -> int:
        """Bytes."""
        return WORD * len(self.arguments)

    def words(self, **values: T) -> tuple[T, ...]:
        """The values in the order of the layout. Every argument must be there, and nothing else."""
        return self.filled(values)

    def filled(self, values: Mapping[str, T]) -> tuple[T, ...]:
        """The same of values by name."""
        try:
            words = tuple([values[name] for name in self._by_name])
        except KeyError:
            words = ()
        if len(words) != len(values) or len(words) != len(self._by_name):
            missing = [name for name in self._by_name if name not in values]
            unknown = [name for name in values if name not in self._by_name]
            raise CompileError(
                f"The argument block has {', '.join(self._by_name)}; missing {missing}, not among them {unknown}."
            )
        return words

    def chosen(self, values: Mapping[str, T]) -> dict[str, T]:
        """Of these values, the arguments of this block."""
        return {name: value for name, value in values.items() if name in self._by_name}

    def named(self, words: tuple[T, ...]) -> Mapping[str, T]:
        """The words of a filled block by name, for people and profilers."""
        return dict(zip(self._by_name, words, strict=True))


@cache
def _name(spec: KernelSpec) -> str:
    ends = "_".join(filter(None, (spec.isa, spec.variant)))
    name = "_".join(filter(None, spec.parts)) + f"__{ends}"
    if not _NAME.fullmatch(name):
        raise CompileError(f"The name of a kernel is lower case, digits and underscores, got {name}.")
    return name


@record(frozen=True)
class KernelSpec(ABC):
    """A kernel as a value: kind, types, fused expression, tile and ISA. Equal specs are equal machine code.

    A subclass is a frozen dataclass whose fields say all that is decided when the kernel is compiled; shapes, strides,
    counts and addresses are arguments. Two specs that differ must differ in name.

    The module of a spec defines one external function, ``k``, and refers to nothing outside. That of a driver is
    ``void k(ptr args, i64 tid, i64 nt)``: thread ``tid`` of ``nt`` does its share, which depends on nothing else. That
    of a microkernel is stated in its file.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock()

    targets: ClassVar[Literal["plain", "bytes", "tiles", "bf16"]] = "plain"
    """What kernels of the kind are made for: targets that extend no other, those with their own products of bytes, or
    registers of tiles; or products of bfloat16, for which nothing ships."""

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """By field, what is chosen among, where its type does not say it."""

    isa: str
    """The name of the target."""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """The name without the ISA, in parts: type, kind, activation (may be empty), tile."""

    @property
    def variant(self) -> str:
        """What follows the ISA in the name, where one tile comes in several forms."""
        return ""

    @property
    def name(self) -> str:
        """``f32_gemm_relu6_14x2__avx512``: key of the archive, test id, row of benchmark and profiler."""
        return _name(self)

    def general(self) -> Iterator[KernelSpec]:
        """Kernels that may take its place, the most like it first: they take the same arguments and give the same bits.

        Where nothing can be compiled, the first one that is at hand does (`gossamer.codegen.commands.Build`).
        """
        return iter(())

    @classmethod
    def ships(cls, target: Target) -> Iterator[KernelSpec]:
        """What ships of the kind (`gossamer.codegen.basis`): every form of one with nothing but flags and choices to
        decide; other fields have their defaults. Nothing, if one has none."""
        forms: list[Sequence[Any]] = []
        hints: dict[str, Any] = get_type_hints(cls)
        for name, type in hints.items():
            if get_origin(type) is ClassVar or name == "isa":
                continue
            flags = (False, True) if type is bool else get_args(type) if get_origin(type) is Literal else ()
            defaults = (getattr(cls, name),) if hasattr(cls, name) else ()
            forms.append(cls.choices.get(name) or flags or defaults)
        yield from (cls(target.name, *form) for form in product(*forms))

    @abstractmethod
    def emit(self, target: Target) -> str:
        """The LLVM IR text of the module."""
