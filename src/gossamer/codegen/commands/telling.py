"""What the commands of one kernel are, written down with sizes left open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, NoReturn, TypeVar

from gossamer.arrays import NDArray
from gossamer.codegen.commands import AtHand, Build, NotAtHand, dense_bytes
from gossamer.codegen.graph import Kernel
from gossamer.codegen.layout import Layout, Place
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.program import BLOCKS, FAULT, KERNELS, SCRATCH, Address, Word
from gossamer.records import replace
from gossamer.sizes import Later, Size, computed, is_open, settled, sizes_in, told
from gossamer.targets import Target
from gossamer.views import Buffer, Derived, Late, View, Widened

T = TypeVar("T")


class Hidden(Buffer):
    """A stand-in for a constant. Kernels may read it, but nobody can look at it."""

    @property
    def is_constant(self) -> bool:
        """It is."""
        return True

    @property
    def memory(self) -> NoReturn:
        """Not to be had."""
        raise TypeError("commands depend on the value of a constant")

    @property
    def array(self) -> NoReturn:  # type: ignore[override]  # a value that nobody sees
        """Not to be had."""
        raise TypeError("commands depend on the value of a constant")


class _ByChannel(set[Buffer]):
    """Of the images of a kernel, those of which threads have written some channels each: who asks depends on it."""

    def __init__(self, images: Iterable[Buffer]) -> None:
        super().__init__(images)
        self.asked: dict[Buffer, bool] = {}
        self.added: set[Buffer] = set()

    def add(self, buffer: Buffer) -> None:
        super().add(buffer)
        self.added.add(buffer)

    def __contains__(self, buffer: object) -> bool:
        answer = super().__contains__(buffer)
        if isinstance(buffer, Buffer):
            self.asked.setdefault(buffer, answer)
        return answer


class Sight(NamedTuple):
    """A kernel on stand-ins for its buffers, these, and the buffers for which they stand, in the same order."""

    kernel: Kernel
    stand_ins: list[Buffer]
    buffers: list[Buffer]


def sight_of(kernel: Kernel, shows: bool) -> Sight:
    """``shows``: constants stand for themselves."""
    instead: dict[int, Buffer] = {}
    stand_ins: list[Buffer] = []
    buffers: list[Buffer] = []

    def stand_in(buffer: Buffer) -> Buffer:
        known = instead.get(id(buffer))
        if known is not None:
            return known
        if isinstance(buffer, Widened):
            made: Buffer = buffer if shows else Widened(stand_in(buffer.narrow))
            if shows:
                stand_in(buffer.narrow)
        elif not buffer.is_constant:
            made = Buffer(buffer.shape, buffer.type, buffer.tensor)
        elif shows and not isinstance(buffer, Late) and not has_sizes(buffer):
            made = buffer
        else:
            made = Hidden(buffer.shape, buffer.type)
        instead[id(buffer)] = made
        stand_ins.append(made)
        buffers.append(buffer)
        return made

    def view(view: View) -> View:
        return View(stand_in(view.buffer), view.shape, view.strides, view.offset)

    operands = [view(operand) for operand in kernel.operands]
    y, also = view(kernel.y), tuple([view(result) for result in kernel.also])
    seen = Kernel(kernel.kind, operands, y, kernel.settings, kernel.epilogue, kernel.arity, (), (), also)
    return Sight(seen, stand_ins, buffers)


def has_sizes(buffer: Buffer) -> bool:
    """Whether elements of a constant may be open."""
    if type(buffer) not in (Buffer, Derived):
        return False
    return buffer.array is not None and buffer.array.dtype == object


class _Said(NamedTuple):
    """A word that depends on the commands before, by its name in the function that is written."""

    name: str


def _sizes_of(spec: KernelSpec) -> list[Size]:
    """What is open in a kernel."""
    return [value for value in vars(spec).values() if isinstance(value, Size)]


Choice = Callable[..., "tuple[str, KernelSpec] | None"]
"""A function of the numbers that are open in a kernel: its name and itself, or those of one at hand that may take its
place; ``None`` if there is none."""


class Choices:
    """Kernels whose numbers are open until commands are filled in. ``at_hand``: as in `Build`."""

    def __init__(self, at_hand: AtHand | None) -> None:
        self.at_hand = at_hand
        self._made: dict[Any, Choice] = {}

    def of(self, spec: KernelSpec) -> Choice:
        """What such a kernel will be."""
        fields, kind, at_hand = vars(spec), type(spec), self.at_hand
        key = kind, tuple([Size if isinstance(value, Size) else value for value in fields.values()])
        if key not in self._made:
            names = [name for name, value in fields.items() if isinstance(value, Size)]

            @cache
            def chosen(*numbers: int) -> tuple[str, KernelSpec] | None:
                one = kind(**{**fields, **dict(zip(names, numbers, strict=True))})
                if at_hand is None:
                    return one.name, one
                return next(((some.name, some) for some in (one, *one.general()) if at_hand(some.name)), None)

            def choice(*numbers: int) -> tuple[str, KernelSpec] | None:
                return chosen(*map(settled, numbers))

            self._made[key] = choice
        return self._made[key]


def _is_there(choice: Choice, *numbers: int) -> int:
    return int(choice(*numbers) is not None)


class Told(NamedTuple):
    """The commands of a kernel."""

    fill: Callable[..., None]
    """A function of a `Filling`, numbers, kernels and places that makes them part of a program."""
    kernels: Callable[[Sequence[Any]], list[tuple[str, KernelSpec]]]
    """Those that depend on numbers, by their names and as they are."""
    numbers: list[Size]
    """What the numbers are."""


class Telling(Build):
    """Writes down what the commands of one kernel are, with sizes left open."""

    def __init__(
        self, choices: Choices, target: Target, sight: Sight, layout: Layout, by_channel: Sequence[int]
    ) -> None:
        """``by_channel``: the numbers of buffers of which threads have written some channels each."""
        super().__init__(target, Layout(set()), None, choices.at_hand)
        self._choices = choices
        self._slots = {id(buffer): at for at, buffer in enumerate(sight.stand_ins)}
        for at, (buffer, real) in enumerate(zip(sight.stand_ins, sight.buffers, strict=True)):
            if not buffer.is_constant:
                place = layout.places[real]
                self.layout.places[buffer] = replace(place, base=f"p{at}", offset=0)
        self.layout.aimed = [
            buffer for buffer, real in zip(sight.stand_ins, sight.buffers, strict=True) if real in layout.aimed
        ]
        self._kernel = sight.kernel
        self._asked = self.by_channel = _ByChannel([sight.stand_ins[at] for at in by_channel])
        self.numbers: dict[Any, Size] = {}
        self.lines = [f"p{at}b, p{at}o = places[{at}]" for at, b in enumerate(sight.stand_ins) if not b.is_constant]
        self.known: dict[str, Any] = {"Address": Address}
        self._told: dict[Any, Address] = {}
        self._kernels: dict[Any, str] = {}
        self._like: dict[str, Any] = {}
        """By the names of tables, what those have in common that may be equal; ``None`` for one of any length."""

    def told(self, draws: bool) -> Told:
        """The commands. ``draws``: there is a border around the result, which they draw first."""
        y = self._kernel.y.buffer
        if draws:
            self._draw_border(y, self.layout.places[y])
            self._told.clear()
        self.run(self._kernel)
        if self.is_repeated and not any(line.lstrip().startswith("to.command(") for line in self.lines):
            raise TypeError("a turn of a loop may have no commands")
        alike = Counter(self._like.values())
        alone = tuple([f"{name} = to.table(" for name, form in self._like.items() if alike[form] == 1 > alike[None]])
        lines = [
            line.replace("to.table(", "to.place(", 1) if line.lstrip().startswith(alone) else line
            for line in self.lines
        ]
        exec("\n    ".join(["def fill(to, n, k, places):", *(lines or ["pass"])]), self.known)
        exec(f"def kernels(n):\n    return [{', '.join(self._kernels.values())}]", self.known)
        return Told(self.known["fill"], self.known["kernels"], list(self.numbers.values()))

    def _name(self, thing: Any) -> str:
        name = f"k{len(self.known)}"
        self.known[name] = thing
        return name

    def channels(self) -> tuple[dict[int, bool], tuple[int, ...]]:
        """What has been asked of images, by their numbers, of which threads have written some channels each; and of
        which they have in these commands."""
        slots, of = self._slots, self._asked
        asked = {slots[id(buffer)]: answer for buffer, answer in of.asked.items() if id(buffer) in slots}
        return asked, tuple(sorted([slots[id(buffer)] for buffer in of.added if id(buffer) in slots]))

    def _written(self, thing: Any) -> str:
        """The expression that makes a thing again."""
        if isinstance(thing, Size):
            key = told(thing)
            self.numbers.setdefault(key, thing)
            return f"n[{list(self.numbers).index(key)}]"
        if isinstance(thing, Address):
            if thing.base in (BLOCKS, KERNELS):
                raise TypeError("what is packed depends on kernels")
            return f"Address({thing.base}b, {thing.base}o + {self._written(thing.offset)})"
        if thing is None or type(thing) in (int, bool, str, float):
            return repr(thing)
        if isinstance(thing, Later):
            return f"{self._name(thing.make)}({', '.join(map(self._written, thing.parts))})"
        if callable(thing) or (isinstance(thing, KernelSpec) and not is_open(vars(thing).values())):
            return self._name(thing)
        if isinstance(thing, tuple) and not isinstance(thing, _Said):
            inside = "".join(f"{self._written(part)}, " for part in thing)
            return f"({inside})" if type(thing) is tuple else f"{self._name(type(thing))}({inside})"
        raise TypeError(f"a {type(thing).__name__} with sizes that are open")

    def _new(self, kind: str, made: str) -> str:
        name = f"{kind}{len(self.lines)}"
        self.lines.append(f"{name}b, {name}o = {made}")
        return name

    def _constant(self, buffer: Buffer) -> Place:
        at = self._slots[id(buffer)]
        self.lines.append(f"p{at}b, p{at}o = to.constant(places[{at}])")
        return Place(f"p{at}", 0, dense_bytes(buffer), 0)

    def aligned(self, view: View) -> Address:
        if not isinstance(view.buffer, Hidden):
            return super().aligned(view)
        inside = self.address(view).offset
        at = self._slots[id(view.buffer)]
        return Address(self._new("v", f"to.aligned(places[{at}], {self._written(inside)}, {view.is_whole})"))

    def constant(self, value: NDArray[Any]) -> Address:
        return Address(self._new("c", f"to.build.constant({self._name(value.copy())})"))

    def fault(self) -> Address:
        self.lines.append("to.build.fault()")
        return Address(FAULT)

    def aimed(self, buffer: Buffer, of: Address) -> Address:
        box = self.layout.places[buffer].base
        return Address(self._new("r", f"to.aimed({box}b, {self._written(of)})"))

    def passing(self, bytes: int) -> Address:
        return Address(self._new("m", f"to.build.passing({self._written(bytes)})"))

    def weights(self, bytes: int, key: Any = None) -> Address:
        name = self._new("w", f"to.weights({self._written(bytes)}, {self._written(key)})")
        address = Address(name)
        if key is not None:
            self._packed[told(key)] = address
        return address

    def packed(self, key: Any) -> Address | None:
        return self._packed.get(told(key))

    def _pack(self, spec: KernelSpec, arguments: Mapping[str, Word], reads: int, *, waits: bool) -> None:
        mine = next((w.base for w in arguments.values() if isinstance(w, Address) and w.base.startswith("w")), None)
        if mine is None:
            raise TypeError("what is packed goes nowhere")
        # Who finds weights packed makes no tables for that.
        start = next(at for at, line in enumerate(self.lines) if line.startswith(f"{mine}b, "))
        tables = [line for line in self.lines[start:] if line.startswith("t")]
        names = {line.partition(" = ")[0] for line in tables}
        self.lines[start:] = [line for line in self.lines[start:] if line not in tables]
        self._told = {key: block for key, block in self._told.items() if str(block.offset) not in names}
        for word in arguments.values():
            if isinstance(word, Address) and word.base in (BLOCKS, KERNELS) and str(word.offset) not in names:
                raise TypeError("what is packed depends on kernels")
        source = arguments.get("source")
        gone = f"{source.base}b, {source.base}o" if isinstance(source, Address) and source.base not in _FIXED else ""
        self.lines += [
            f"if {mine}o not in to.there:",
            *(f"    {line.replace('to.table(', 'to.packing_table(')}" for line in tables),
            f"    to.pack({self._spec(spec)}, to.packing_table({self._inside(spec.arguments.filled(arguments))}), "
            f"({gone}), {self._written(reads)}, {int(waits)})",
        ]

    def _run_parts(self, parts: Iterable[Kernel]) -> None:
        name = f"h{len(self.lines)}"
        self.lines.append(f"{name} = to.build._held")
        super()._run_parts(parts)
        self.lines.append(f"to.build._held = {name}")

    def held(self, bytes: int) -> Address:
        return Address(self._new("m", f"to.build.held({self._written(bytes)})"))

    def _mark(self) -> tuple[Any, ...]:
        grown = self.numbers, self.known, self._told, self._packed, self._kernels, self._like, self.layout.places
        return [*self.lines], *map(dict[Any, Any], grown)

    def _reset(self, mark: tuple[Any, ...]) -> None:
        self.lines, self.numbers, self.known, self._told, self._packed, *others = mark
        self._kernels, self._like, self.layout.places = others

    def _choose(self, spec: KernelSpec) -> KernelSpec | None:
        """The kernel itself, if one that does what it does is at hand, which is a condition where sizes are open."""
        sizes = _sizes_of(spec)
        if self._at_hand is None or not sizes:
            return super()._choose(spec)
        return spec if computed(_is_there, self._choices.of(spec), *sizes) else None

    def _spec(self, spec: KernelSpec) -> str:
        """An expression for the name of a kernel, and the kernel."""
        chosen, sizes = self._choose(spec), _sizes_of(spec)
        if chosen is None:
            raise NotAtHand(f"a {type(spec).__name__} for {spec.isa}")
        if not sizes:
            return self._name((chosen.name, chosen))
        key = type(spec), told(tuple(vars(spec).values()))
        if key not in self._kernels:
            named = self._name(self._choices.of(spec))
            self._kernels[key] = f"{named}({', '.join(map(self._written, sizes))})"
        return f"k[{list(self._kernels).index(key)}]"

    def kernel(self, spec: KernelSpec) -> Address:
        name = f"f{len(self.lines)}"
        self.lines.append(f"{name} = to.kernel({self._spec(spec)})")
        return Address(KERNELS, name)  # type: ignore[arg-type]  # it is written, not linked

    def table(self, words: Sequence[Word]) -> Address:
        words = tuple(words)
        key = told(words)
        known = self._told.get(key)
        if known is not None:
            return known
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = to.table({self._inside(words)})")
        self._like[name] = len(words), tuple([isinstance(word, Address) for word in words])
        self._told[key] = Address(BLOCKS, name)  # type: ignore[arg-type]  # as above
        return self._told[key]

    def table_of(self, make: Callable[..., Sequence[Word]], *parts: Any) -> Address:
        if not sizes_in(parts):
            return super().table_of(make, *parts)
        name = f"t{len(self.lines)}"
        arguments = ", ".join(map(self._written, parts))
        self.lines.append(f"{name} = to.table(tuple({self._name(make)}({arguments})), (), ())")
        self._like[name] = None
        return Address(BLOCKS, name)  # type: ignore[arg-type]  # as above

    def _inside(self, words: Iterable[Word]) -> str:
        """The arguments that make a table of words: these, which of them are addresses, and behind what bases."""
        written, at, bases = "", [], ""
        for place, word in enumerate(words):
            written += f"{self._word(word)}, "
            if isinstance(word, Address):
                at.append(place)
                bases += f"{word.base!r}, " if word.base in _FIXED else f"{word.base}b, "
        return f"({written}), {tuple(at)}, ({bases})"

    def _word(self, word: Word) -> str:
        if isinstance(word, _Said):
            return word.name
        if not isinstance(word, Address):
            return self._written(int(word) if isinstance(word, bool) else word)
        if word.base in (BLOCKS, KERNELS):
            return str(word.offset)
        offset = self._written(word.offset)
        if word.base in _FIXED:
            return offset
        return f"{word.base}o" if offset == "0" else f"{word.base}o + {offset}"

    def command(self, spec: KernelSpec, /, *, barrier: bool = True, **arguments: Word) -> None:
        named = self._spec(spec)
        block = self.table(spec.arguments.filled(arguments))
        self.lines.append(f"to.command({named}, {block.offset}, {int(bool(barrier))})")

    def alike(self, key: Any, make: Callable[[], T]) -> T:
        start = len(self.lines)
        made = make()
        inside = self.lines[start:]
        names = "".join(f"{line.partition(' = ')[0]}, " for line in inside)
        if names:
            a = f"a{start}"
            self.lines[start:] = [
                f"{a} = to.alike.get({self._written(key)})",
                f"if {a} is None:",
                *(f"    {line}" for line in inside),
                f"    {a} = to.alike[{self._written(key)}] = ({names})",
                f"{names} = {a}",
            ]
        return made

    def scratch(self, bytes: int) -> int:
        name = f"s{len(self.lines)}"
        self.lines.append(f"{name} = to.build.scratch({self._written(bytes)})")
        return _Said(name)  # type: ignore[return-value]  # a word, whatever it is

    def jump(self, *arguments: Any, **settings: Any) -> int:
        raise TypeError("commands jump")


_FIXED = (BLOCKS, KERNELS, FAULT, SCRATCH)
"""Bases whose names are the same wherever anything lies."""
