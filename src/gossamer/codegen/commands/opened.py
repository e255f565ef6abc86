"""Commands with sizes left open: told once for kernels that are alike, and filled in for each shape.

What makes commands of a kernel is given one whose sizes are `gossamer.sizes.Size`, on stand-ins for its buffers: it
sees neither where these lie nor what is in them. What it asks of `Build` is written down as a Python function, and what
is decided on the way tells for which other sizes that is right; for others it is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.build import Drawn, Emitted
from gossamer.codegen.commands import AtHand, Build, NotAtHand, base_of_known, dense_bytes
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.layout import Layout, Place, is_bordered, item_bytes, pack, spread_out
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.program import ARENA, BLOCKS, COMPUTED, FAULT, KERNELS, MODEL, SCRATCH, WEIGHTS, Address, Word
from gossamer.records import replace
from gossamer.sizes import Later, Size, Sizes, computed, is_open, settled, sizes_in, told
from gossamer.targets import Target
from gossamer.views import Buffer, Derived, Late, View, Widened

T = TypeVar("T")

MOST_FORMS = 32
"""Forms of a kernel's commands that are told apart."""


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


class _Sight(NamedTuple):
    """A kernel on stand-ins for its buffers, these, and the buffers for which they stand, in the same order."""

    kernel: Kernel
    stand_ins: list[Buffer]
    buffers: list[Buffer]


def _sight(kernel: Kernel, shows: bool) -> _Sight:
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
        elif shows and not isinstance(buffer, Late) and not _has_sizes(buffer):
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
    return _Sight(seen, stand_ins, buffers)


def _has_sizes(buffer: Buffer) -> bool:
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


class _Choices:
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


class _Telling(Build):
    """Writes down what the commands of one kernel are, with sizes left open."""

    def __init__(
        self, choices: _Choices, target: Target, sight: _Sight, layout: Layout, by_channel: Sequence[int]
    ) -> None:
        """``by_channel``: the numbers of buffers of which threads have written some channels each."""
        super().__init__(target, Layout(set()), None, choices.at_hand)
        self._choices = choices
        self._slots = {id(buffer): at for at, buffer in enumerate(sight.stand_ins)}
        for at, (buffer, real) in enumerate(zip(sight.stand_ins, sight.buffers, strict=True)):
            if not buffer.is_constant:
                place = layout.places[real]
                self.layout.places[buffer] = replace(place, base=f"p{at}", offset=0)
        self._kernel = sight.kernel
        self._asked = self.by_channel = _ByChannel([sight.stand_ins[at] for at in by_channel])
        self.numbers: dict[Any, Size] = {}
        self.lines = [f"p{at}b, p{at}o = places[{at}]" for at, b in enumerate(sight.stand_ins) if not b.is_constant]
        self.known: dict[str, Any] = {"Address": Address}
        self._told: dict[Any, Address] = {}

    def told(self, draws: bool) -> tuple[Callable[..., None], list[Size]]:
        """A function of a `_Filling`, numbers and places that makes the commands, and of what sizes the numbers are.

        ``draws``: there is a border around the result, which they draw first.
        """
        y = self._kernel.y.buffer
        if draws:
            self._draw_border(y, self.layout.places[y])
            self._told.clear()
        self._run(self._kernel)
        exec("\n    ".join(["def fill(to, n, places):", *(self.lines or ["pass"])]), self.known)
        return self.known["fill"], list(self.numbers.values())

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

    def pack(self, spec: KernelSpec, /, reads: int = 0, **arguments: Word) -> None:
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
            f"({gone}), {self._written(reads)})",
        ]

    def _run_parts(self, parts: Iterable[Kernel]) -> None:
        name = f"h{len(self.lines)}"
        self.lines.append(f"{name} = to.build._held")
        super()._run_parts(parts)
        self.lines.append(f"to.build._held = {name}")

    def held(self, bytes: int) -> Address:
        return Address(self._new("m", f"to.build.held({self._written(bytes)})"))

    def _mark(self) -> tuple[Any, ...]:
        grown = self.numbers, self.known, self._told, self._packed, self.layout.places
        return [*self.lines], *map(dict[Any, Any], grown)

    def _reset(self, mark: tuple[Any, ...]) -> None:
        self.lines, self.numbers, self.known, self._told, self._packed, self.layout.places = mark

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
        return f"{self._name(self._choices.of(spec))}({', '.join(map(self._written, sizes))})"

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
        self._told[key] = Address(BLOCKS, name)  # type: ignore[arg-type]  # as above
        return self._told[key]

    def table_of(self, make: Callable[..., Sequence[Word]], *parts: Any) -> Address:
        if not sizes_in(parts):
            return super().table_of(make, *parts)
        name = f"t{len(self.lines)}"
        arguments = ", ".join(map(self._written, parts))
        self.lines.append(f"{name} = to.table(tuple({self._name(make)}({arguments})), (), ())")
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


class _Filling:
    """What told commands become part of."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.builder = build._builder
        self.there: set[int] = set()
        """Offsets of weights that others have packed."""
        self.alike: dict[Any, Any] = {}
        """What is made once for all kernels of the same key."""
        self._tables: dict[Any, int] = {}

    def begin(self, base_of_known: str) -> None:
        """The commands of another kernel of the graph, which may run once, for this base."""
        self.build._is_known = base_of_known
        self._tables.clear()
        self.build._blocks.clear()

    def constant(self, buffer: Buffer | _Value | _Stored) -> tuple[str, int]:
        if isinstance(buffer, _Value):
            return self.build.kept(buffer.content, buffer.array)
        if isinstance(buffer, _Stored):
            return MODEL, buffer.offset
        place = self.build.place(buffer)
        return place.base, place.offset

    def aligned(self, buffer: Buffer | _Value | _Stored, inside: int, is_whole: bool) -> tuple[str, int]:
        base, offset = self.constant(buffer)
        if is_whole and isinstance(buffer, _Stored):
            return self.build.at_line(Address(base, offset + inside), buffer.buffer)
        return base, offset + inside

    def weights(self, bytes: int, key: Any) -> Address:
        known = None if key is None else self.build.packed(key)
        if known is not None:
            self.there.add(known.offset)
            return known
        address = self.build.weights(bytes, key)
        self.there.discard(address.offset)
        return address

    def kernel(self, named: tuple[str, KernelSpec]) -> int:
        name, spec = named
        self.build.specs[name] = spec
        return self.builder.kernel(name).offset

    def table(self, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> int:
        key = words, bases
        known = self._tables.get(key)
        if known is None:
            known = self._tables[key] = self.builder.placed(words, at, bases)
            if self.build._is_known == WEIGHTS:
                self._pack_reads(known, words, at, bases)
        return known

    def packing_table(self, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> int:
        offset = self.table(words, at, bases)
        self._pack_reads(offset, words, at, bases)
        return offset

    def _pack_reads(self, offset: int, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> None:
        meant: list[Word] = list(words)
        for place, base in zip(at, bases, strict=True):
            meant[place] = Address(base, words[place])
        self.build._tables[offset] = tuple(meant)

    def pack(self, named: tuple[str, KernelSpec], block: int, source: tuple[str, int] | tuple[()], reads: int) -> None:
        name, spec = named
        self.build.specs[name] = spec
        at = Address(BLOCKS, block)
        gone = (Address(*source), reads) if source and source[0] == MODEL and reads else None
        self.builder.pack(name, at, reads=gone)
        self.build._packing.append((name, at))

    def command(self, named: tuple[str, KernelSpec], block: int, barrier: int) -> None:
        name, spec = named
        self.build.specs[name] = spec
        at = Address(BLOCKS, block)
        if self.build._is_known == COMPUTED:
            self.builder.compute(name, at)
        elif self.build._is_known:
            self.builder.pack(name, at, barrier=True)
            self.build._packing.append((name, at))
        else:
            self.builder.command(name, at, barrier=bool(barrier))


def _room(bytes: int) -> int:
    """Bytes that suffice for a number of them, of which that is noted, and for some more."""
    if not isinstance(bytes, Size):
        return bytes
    room = 1 << max(bytes.value - 1, 63).bit_length()
    return room if bytes <= room else 0  # which it is


class _OpenBuild(Build):
    """Words may be open; what they say of memory is right for all sizes for which that suffices."""

    def passing(self, bytes: int) -> Address:
        return super().passing(_room(bytes))

    def held(self, bytes: int) -> Address:
        return super().held(_room(bytes))

    def scratch(self, bytes: int) -> int:
        return super().scratch(_room(bytes))

    def closed(self) -> tuple[list[int], list[Size]]:
        """Close the words that are open: which ones, and the sizes that they were."""
        words = self._builder._words
        at = [place for place, word in enumerate(words) if isinstance(word, Size)]
        if any(not set(at).isdisjoint(places) for places in self._builder._relocations.values()):
            raise TypeError("an address depends on sizes")
        numbers: list[Any] = [words[place] for place in at]
        for place in at:
            words[place] = numbers[at.index(place)].value
        return at, numbers


class _AsTold(dict[Any, Any]):
    """By keys in which sizes may be open."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(told(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(told(key), value)


class _OpenFilling(_Filling):
    """The same with sizes that stay open."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        self.alike = _AsTold()

    def table(self, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> int:
        key = told(words), bases
        known = self._tables.get(key)
        if known is None:
            known = self._tables[key] = self.builder.placed(words, at, bases)
        return known


class Fitting(NamedTuple):
    """A program for some sizes, which is one for all others for which the same is decided: words ``at`` some places
    are then others."""

    emitted: Emitted
    at: list[int]
    numbers: list[Size]
    decided: Iterable[str]


class _Value(NamedTuple):
    """A constant that is the same for all sizes and lies in no file."""

    content: bytes
    array: NDArray[Any]


class _Stored(NamedTuple):
    """A constant that lies in the file, and where."""

    buffer: Buffer
    offset: int


class _Form(NamedTuple):
    """For sizes for which something holds: a function of them that tells numbers, and one that fills these in."""

    holds: Callable[..., bool]
    numbers: Callable[..., list[int]]
    fill: Callable[..., None]
    open: list[Size]
    """The numbers while sizes are open."""
    decided: Iterable[str]
    asked: Mapping[int, bool]
    """By the number of a buffer, whether threads must have written some channels each of it."""
    by_channel: tuple[int, ...]
    """Those of which they have afterwards."""

    def suits(self, given: Sequence[int], by_channel: Collection[int]) -> bool:
        """Whether it is right for these sizes, and for what is known of these images."""
        try:
            if self.asked and any((at in by_channel) != answer for at, answer in self.asked.items()):
                return False
            return self.holds(*given)
        except ZeroDivisionError:
            return False


class _Alike:
    """Kernels of the graph that differ in their buffers alone. ``draws``: there is a border, which they draw."""

    def __init__(
        self, choices: _Choices, target: Target, sight: _Sight, layout: Layout, sizes: Sizes, draws: bool
    ) -> None:
        self._how = choices, target, sight, layout
        self._sizes = sizes
        self._draws = draws
        self._forms: list[_Form] = []

    def _tell(self, by_channel: Sequence[int]) -> _Form:
        telling = _Telling(*self._how, by_channel)
        with self._sizes.noting() as decided:
            fill, numbers = telling.told(self._draws)
        holds = self._sizes.holds(decided)
        form = _Form(holds, self._sizes.numbers(numbers), fill, numbers, tuple(decided), *telling.channels())
        self._forms = [*self._forms[1 - MOST_FORMS :], form]
        return form

    def form(self, given: Sequence[int], by_channel: Sequence[int]) -> _Form:
        """What fills in these sizes. ``by_channel``: the numbers of images of which threads have written some channels
        each."""
        form = next((form for form in self._forms if form.suits(given, by_channel)), None)
        if form is None:
            self._sizes.move(given)
            form = self._tell(by_channel)
        return form


class _Step(NamedTuple):
    """A kernel of the graph."""

    alike: _Alike
    places: list[Any]
    """Where its buffers are: numbers of those in the arena or that are computed once, constants, and bases."""
    once: tuple[str, int] | None
    """If it runs once: the base of what it computes, and the number of that."""


class OpenCommands:
    """The commands of a graph that has had its passes, with sizes left open."""

    def __init__(self, drawn: Drawn, target: Target, sizes: Sizes, at_hand: AtHand | None = None) -> None:
        """``at_hand``: as in `Build`. Raises `TypeError`, or what somebody makes of it, where commands cannot be told
        so, and `NotAtHand`."""
        graph = drawn.graph
        if any(kernel.regions for kernel in graph):
            raise TypeError("regions")
        layout, lives = spread_out(graph, drawn.borders, drawn.gaps, drawn.fills)
        self._target = target
        self._sizes = sizes
        self._lives = [(first, last) for _, first, last in lives]
        self._model: tuple[int, int] | None = None
        places = [buffer for buffer, *_ in lives] + _placed_once(graph, layout)
        self._bytes = _Numbers(sizes, [layout.places[buffer].bytes for buffer in places])
        self._borders = _Numbers(sizes, [layout.places[buffer].inside for buffer, *_ in lives])
        alike: dict[Any, _Alike] = {}
        choices = _Choices(at_hand)
        inner = {id(buffer): at for at, buffer in enumerate(places)}
        self._steps: list[_Step] = []
        self.late: list[Buffer] = []
        """Constants that are others for each shape."""
        now = [size.value for size in sizes.open]
        by_channel: set[Any] = set()
        written: set[Buffer] = set()
        for kernel in graph:
            buffer = kernel.y.buffer
            place = layout.places[buffer]
            is_once = id(buffer) in layout.known
            draws = not is_once and buffer not in written and is_bordered(place.border)
            written.add(buffer)
            shared = _sight(kernel, shows=False)
            at = [self._place(buffer, layout, inner) for buffer in shared.buffers]
            key = _description(shared, layout), draws
            if key not in alike:
                alike[key] = _Alike(choices, target, shared, layout, sizes, draws)
            step = _Step(alike[key], at, (place.base, inner[id(buffer)]) if is_once else None)
            try:
                self._form(step, now, by_channel)
            except TypeError:
                if not any(view.is_constant for view in kernel.operands):
                    raise
                step = step._replace(alike=_Alike(choices, target, _sight(kernel, shows=True), layout, sizes, draws))
                self._form(step, now, by_channel)
            self._steps.append(step)

    def _form(self, step: _Step, given: Sequence[int], by_channel: set[Any]) -> _Form:
        """What fills in a kernel. ``by_channel``: the places of images of which threads have written some channels
        each, which become more."""
        places = step.places
        images = [at for at, place in enumerate(places) if _is_written(place) and place in by_channel]
        form = step.alike.form(given, images)
        by_channel.update([places[at] for at in form.by_channel])
        return form

    def _place(self, buffer: Buffer, layout: Layout, inner: Mapping[int, int]) -> Any:
        if not buffer.is_constant:
            return inner.get(id(buffer), Address(layout.places[buffer].base))
        if isinstance(buffer, Late) or _has_sizes(buffer):
            self.late.append(buffer)
        return buffer

    def filled(self, given: Sequence[int], model: tuple[int, int] | None, late: Sequence[Buffer]) -> Emitted:
        """The program for these sizes; ``late``: the constants of this name for them."""
        layout = Layout(set())
        bytes = self._bytes(given)
        lives = [(size, *life) for size, life in zip(bytes, self._lives)]  # noqa: B905 (those of the arena come first)
        offsets, layout.arena_bytes = pack(lives)
        build = Build(self._target, layout, model)
        inner: list[Any] = [
            (ARENA, offset + inside) for offset, inside in zip(offsets, self._borders(given), strict=True)
        ]
        inner += [None] * (len(bytes) - len(inner))
        self._fix(build, model)
        to = _Filling(build)
        forms: dict[int, tuple[_Form, list[int]]] = {}
        by_channel: set[Any] = set()
        instead: dict[int, Any] = {id(one): made for one, made in zip(self.late, late, strict=True)}
        for step in self._steps:
            alike, places, once = step
            known = forms.get(id(alike))
            if known is None or known[0].asked:
                form = self._form(step, given, by_channel)
                known = forms[id(alike)] = form, form.numbers(*given)
            elif known[0].by_channel:
                by_channel.update([places[at] for at in known[0].by_channel])
            to.begin("" if once is None else once[0])
            if once is not None:
                inner[once[1]] = tuple(build.of_known(bytes[once[1]]))
            at = [inner[place] if type(place) is int else instead.get(id(place), place) for place in places]
            known[0].fill(to, known[1], at)
        return Emitted(build.planned(), build.specs, build.constants())

    def fitting(self, given: Sequence[int], model: tuple[int, int] | None) -> Fitting:
        """The program for these sizes, and what makes it that for others. Raises `TypeError` where more than words of
        it would be others."""
        if self.late or any(step.once is not None for step in self._steps):
            raise TypeError("constants depend on sizes")
        self._sizes.move(given)
        with self._sizes.noting() as decided:
            layout = Layout(set())
            lives = [(_room(size), *life) for size, life in zip(self._bytes.numbers, self._lives, strict=True)]
            offsets, layout.arena_bytes = pack(lives)
            build = _OpenBuild(self._target, layout, model)
            inner = [(ARENA, offset + inside) for offset, inside in zip(offsets, self._borders.numbers, strict=True)]
            self._fix(build, model)
            to = _OpenFilling(build)
            by_channel: set[Any] = set()
            for step in self._steps:
                form = self._form(step, given, by_channel)
                to.begin("")
                form.fill(to, form.open, [inner[place] if type(place) is int else place for place in step.places])
                decided.update(dict.fromkeys(form.decided))
            at, numbers = build.closed()
            emitted = Emitted(build.planned(), build.specs, build.constants())
        return Fitting(emitted, at, numbers, tuple(decided))

    def _fix(self, build: Build, model: tuple[int, int] | None) -> None:
        """Look where constants of the file are, which they are for all shapes."""
        if model == self._model:
            return
        if self._model is not None:
            raise TypeError("the file is elsewhere")
        self._model = model
        late = {*map(id, self.late)}
        for step in self._steps:
            places = step.places
            for at, one in enumerate(places):
                if isinstance(one, Buffer) and id(one) not in late and one.memory is not None:
                    place = build.stored(one)
                    if place is None:
                        array = np.asarray(one.array)
                        places[at] = _Value(array.tobytes(), array)
                    else:
                        places[at] = _Stored(one, place.offset)


def _placed_once(graph: KernelGraph, layout: Layout) -> list[Buffer]:
    """Give places to the buffers that are computed once, and return these."""
    once: list[Buffer] = []
    for kernel in graph:
        buffer = kernel.y.buffer
        if id(buffer) in layout.known:
            size = item_bytes(buffer) * prod(buffer.shape)
            layout.places[buffer] = Place(base_of_known(kernel, layout), 0, dense_bytes(buffer), size)
            once.append(buffer)
    return once


def _is_written(place: Any) -> bool:
    return type(place) in (int, Address)


class _Numbers:
    """Numbers some of which are open."""

    def __init__(self, sizes: Sizes, numbers: Sequence[Any]) -> None:
        self.numbers = list(numbers)
        self._open = [at for at, number in enumerate(numbers) if isinstance(number, Size)]
        self._known = sizes.numbers([numbers[at] for at in self._open])

    def __call__(self, given: Sequence[int]) -> list[int]:
        numbers = list(self.numbers)
        for at, number in zip(self._open, self._known(*given), strict=True):
            numbers[at] = number
        return numbers


def _description(sight: _Sight, layout: Layout) -> Any:
    """What is the same of kernels that are alike."""
    kernel = sight.kernel
    slots = {id(buffer): at for at, buffer in enumerate(sight.stand_ins)}
    views = [
        (slots[id(view.buffer)], told(view.shape), told(view.strides), told(view.offset))
        for view in (*kernel.operands, *kernel.results)
    ]
    places = [layout.places.get(real) for real in sight.buffers]
    buffers = [
        (type(buffer), told(buffer.shape), buffer.type, *((told(at.strides), told(at.border), at.fill) if at else ()))
        for buffer, at in zip(sight.stand_ins, places, strict=True)
    ]
    return kernel.kind, kernel.arity, _settings(kernel.epilogue), _settings(kernel.settings), *views, *buffers


def _settings(thing: Any) -> Any:
    """The same of settings, which are themselves where they cannot be compared."""
    if isinstance(thing, dict):
        return tuple([(key, _settings(value)) for key, value in thing.items()])
    if isinstance(thing, (tuple, list)):
        return type(thing), tuple([_settings(part) for part in thing])
    layout = getattr(type(thing), "__record__", None)
    if layout is not None:
        return type(thing), tuple([_settings(getattr(thing, name)) for name in layout.names])
    if isinstance(thing, float):
        return repr(thing)  # 0.0 is not -0.0
    if isinstance(thing, (Size, int, str, type(None))):
        return type(thing), told(thing)
    return id(thing)
