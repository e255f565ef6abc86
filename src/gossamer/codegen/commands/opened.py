"""Commands with sizes left open: told once for kernels that are alike, and filled in for each shape.

What makes commands of a kernel is given one whose sizes are `gossamer.sizes.Size`, on stand-ins for its buffers: it
sees neither where these lie nor what is in them. What it asks of `Build` is written down as a Python function, and what
is decided on the way tells for which other sizes that is right; for others it is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from gossamer.arrays import NDArray
from gossamer.codegen.build import Drawn, Emitted
from gossamer.codegen.commands import AtHand, Build, NotAtHand, dense_bytes, is_of_shape
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.layout import ALIGNMENT, Layout, Place, item_bytes, pack, spread_out
from gossamer.codegen.spec import KernelSpec
from gossamer.codegen.split import split
from gossamer.programs.program import ARENA, BLOCKS, COMPUTED, FAULT, KERNELS, MODEL, SCRATCH, Address, Word
from gossamer.sizes import Size, Sizes, is_open, settled, told
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


class _Nobody(set[Buffer]):
    """Images of which threads have written some channels each: what is known of them depends on sizes."""

    def __contains__(self, buffer: object) -> bool:
        raise TypeError("commands depend on those before")


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


class _Telling(Build):
    """Writes down what the commands of one kernel are, with sizes left open."""

    def __init__(self, target: Target, sight: _Sight, layout: Layout, at_hand: AtHand | None) -> None:
        super().__init__(target, Layout(set()), None, at_hand)
        self._slots = {id(buffer): at for at, buffer in enumerate(sight.stand_ins)}
        for at, (buffer, real) in enumerate(zip(sight.stand_ins, sight.buffers, strict=True)):
            if not buffer.is_constant:
                place = layout.places[real]
                self.layout.places[buffer] = Place(f"p{at}", 0, place.strides, place.bytes, spread=place.spread)
        self._kernel = sight.kernel
        self.by_channel = _Nobody()
        self.numbers: dict[Any, Size] = {}
        self.lines = [f"p{at}b, p{at}o = places[{at}]" for at, b in enumerate(sight.stand_ins) if not b.is_constant]
        self.known: dict[str, Any] = {"Address": Address}
        self._told: dict[Any, Address] = {}

    def told(self) -> tuple[Callable[..., None], list[Size]]:
        """A function of a `_Filling`, numbers and places that makes the commands, and of what sizes the numbers are."""
        self._tell(self._kernel)
        exec("\n    ".join(["def fill(to, n, places):", *(self.lines or ["pass"])]), self.known)
        return self.known["fill"], list(self.numbers.values())

    def _tell(self, kernel: Kernel) -> None:
        lines, places, known, packed = len(self.lines), len(self.layout.places), dict(self._told), dict(self._packed)
        try:
            import_module(f"gossamer.codegen.commands.{kernel.kind}").commands(kernel, self)
        except NotAtHand as missing:
            parts = split(kernel)
            if not parts:
                missing.kind = missing.kind or kernel.kind
                raise
            del self.lines[lines:]
            while len(self.layout.places) > places:
                self.layout.places.popitem()
            self._told, self._packed = known, packed
            for part in parts:
                self._hold(part.y.buffer)
                self._tell(part)

    def _hold(self, buffer: Buffer) -> None:
        if buffer not in self.layout.places:
            strides, bytes = dense_bytes(buffer), item_bytes(buffer) * prod(buffer.shape)
            held = self._new("h", f"to.hold({self._written(bytes)})")
            self.layout.places[buffer] = Place(held, 0, strides, bytes)

    def _name(self, thing: Any) -> str:
        name = f"k{len(self.known)}"
        self.known[name] = thing
        return name

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
        if isinstance(thing, type) or (isinstance(thing, KernelSpec) and not is_open(vars(thing).values())):
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
        at = self._slots.get(id(buffer))
        if at is None:  # of a part
            made = self.constant(np.asarray(buffer.array))
            return Place(made.base, made.offset, dense_bytes(buffer), 0)
        self.lines.append(f"p{at}b, p{at}o = to.constant(places[{at}])")
        return Place(f"p{at}", 0, dense_bytes(buffer), 0)

    def aligned(self, view: View) -> Address:
        raise TypeError("commands depend on where a constant lies")

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

    def _spec(self, spec: KernelSpec) -> str:
        """An expression for the name of a kernel, and the kernel."""
        fields = vars(spec)
        sizes = [value for value in fields.values() if isinstance(value, Size)]
        if not sizes:
            chosen = self._at_hand_for(spec)
            return self._name((chosen.name, chosen))
        names = [name for name, value in fields.items() if isinstance(value, Size)]

        @cache
        def made(*numbers: int) -> tuple[str, KernelSpec]:
            values = {**fields, **dict(zip(names, numbers, strict=True))}
            one = self._at_hand_for(type(spec)(**values))
            return one.name, one

        def named(*numbers: int) -> tuple[str, KernelSpec]:
            return made(*map(settled, numbers))

        return f"{self._name(named)}({', '.join(map(self._written, sizes))})"

    def _choose(self, spec: KernelSpec) -> KernelSpec | None:
        fields = vars(spec)
        if self._at_hand is not None and is_open(fields.values()):
            values: dict[str, Any] = {name: settled(v) if isinstance(v, Size) else v for name, v in fields.items()}
            spec = type(spec)(**values)
        return super()._choose(spec)

    def _at_hand_for(self, spec: KernelSpec) -> KernelSpec:
        chosen = self._choose(spec)
        if chosen is None:
            raise NotAtHand(spec.name)
        return chosen

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
        self._is_once = False

    def begin(self, is_once: bool) -> None:
        """The commands of another kernel of the graph, which may run once."""
        self._is_once = is_once
        self._tables.clear()
        self.build._blocks.clear()
        self.build._held = 0

    def hold(self, bytes: int) -> Address:
        """Passing memory that stays for the other parts of a kernel."""
        room = _room(bytes)
        held = self.build.passing(room)
        self.build._held += -(-room // ALIGNMENT) * ALIGNMENT
        return held

    def constant(self, buffer: Buffer | _Value | tuple[str, int]) -> tuple[str, int]:
        if isinstance(buffer, _Value):
            return self.build.kept(buffer.content, buffer.array)
        if isinstance(buffer, tuple):
            return buffer
        place = self.build.place(buffer)
        return place.base, place.offset

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
        return known

    def packing_table(self, words: tuple[int, ...], at: tuple[int, ...], bases: tuple[str, ...]) -> int:
        meant: list[Word] = list(words)
        for place, base in zip(at, bases, strict=True):
            meant[place] = Address(base, words[place])
        offset = self.table(words, at, bases)
        self.build._tables[offset] = tuple(meant)
        return offset

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
        if self._is_once:
            self.builder.compute(name, Address(BLOCKS, block))
        else:
            self.builder.command(name, Address(BLOCKS, block), barrier=bool(barrier))


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


class _Form(NamedTuple):
    """For sizes for which something holds: a function of them that tells numbers, and one that fills these in."""

    holds: Callable[..., bool]
    numbers: Callable[..., list[int]]
    fill: Callable[..., None]
    open: list[Size]
    """The numbers while sizes are open."""
    decided: Iterable[str]

    def suits(self, given: Sequence[int]) -> bool:
        """Whether it is right for these sizes."""
        try:
            return self.holds(*given)
        except ZeroDivisionError:
            return False


class _Alike:
    """Kernels of the graph that differ in their buffers alone."""

    def __init__(self, target: Target, sight: _Sight, layout: Layout, sizes: Sizes, at_hand: AtHand | None) -> None:
        self._how = target, sight, layout, at_hand
        self._sizes = sizes
        self._forms: list[_Form] = []
        self._tell()

    def _tell(self) -> _Form:
        telling = _Telling(*self._how)
        with self._sizes.noting() as decided:
            fill, numbers = telling.told()
        form = _Form(self._sizes.holds(decided), self._sizes.numbers(numbers), fill, numbers, tuple(decided))
        self._forms = [*self._forms[1 - MOST_FORMS :], form]
        return form

    def form(self, given: Sequence[int]) -> _Form:
        """What fills in these sizes."""
        form = next((form for form in self._forms if form.suits(given)), None)
        if form is None:
            self._sizes.move(given)
            form = self._tell()
        return form


class OpenCommands:
    """The commands of a graph that has had its passes, with sizes left open."""

    def __init__(self, drawn: Drawn, target: Target, sizes: Sizes, at_hand: AtHand | None = None) -> None:
        """``at_hand``: as in `gossamer.codegen.build.emitted`.

        Raises `TypeError`, or what somebody makes of it, where commands cannot be told so, and `NotAtHand`.
        """
        graph = drawn.graph
        if drawn.borders or any(kernel.regions for kernel in graph):
            raise TypeError("images with borders, or regions")
        layout, lives = spread_out(graph, {}, drawn.gaps)
        once = _placed_once(graph, layout)
        self._target = target
        self._sizes = sizes
        self._lives = [(first, last) for _, first, last in lives]
        self._model: tuple[int, int] | None = None
        places = [buffer for buffer, *_ in lives] + once
        self._bytes = _Numbers(sizes, [layout.places[buffer].bytes for buffer in places])
        alike: dict[Any, _Alike] = {}
        inner = {id(buffer): at for at, buffer in enumerate(places)}
        self._kernels: list[tuple[_Alike, list[Any], bool]] = []
        """What fills in a kernel, where its buffers are, and whether it runs once."""
        self.late: list[Buffer] = []
        """Constants that are others for each shape."""
        for kernel in graph:
            shared = _sight(kernel, shows=False)
            key = _description(shared, drawn.gaps)
            if key not in alike:
                try:
                    alike[key] = _Alike(target, shared, layout, sizes, at_hand)
                except TypeError:
                    if not any(view.is_constant for view in kernel.operands):
                        raise
                    alike[id(kernel)] = _Alike(target, _sight(kernel, shows=True), layout, sizes, at_hand)
            mine = alike.get(key) or alike[id(kernel)]
            at = [self._place(buffer, layout, inner) for buffer in shared.buffers]
            self._kernels.append((mine, at, id(kernel.y.buffer) in layout.known))

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
        lives, once = bytes[: len(self._lives)], bytes[len(self._lives) :]
        offsets, layout.arena_bytes = pack([(size, *life) for size, life in zip(lives, self._lives, strict=True)])
        build = Build(self._target, layout, model)
        inner = [*((ARENA, offset) for offset in offsets), *(tuple(build.computed(size)) for size in once)]
        self._fix(build, model)
        to = _Filling(build)
        forms: dict[int, Any] = {}
        instead: dict[int, Any] = {id(one): made for one, made in zip(self.late, late, strict=True)}
        for alike, places, is_once in self._kernels:
            form = forms.get(id(alike))
            if form is None:
                told = alike.form(given)
                form = forms[id(alike)] = told.fill, told.numbers(*given)
            to.begin(is_once)
            at = [inner[place] if type(place) is int else instead.get(id(place), place) for place in places]
            form[0](to, form[1], at)
        return Emitted(build.planned(), build.specs, build.constants())

    def fitting(self, given: Sequence[int], model: tuple[int, int] | None) -> Fitting:
        """The program for these sizes, and what makes it that for others. Raises `TypeError` where more than words of
        it would be others."""
        if self.late or any(is_once for *_, is_once in self._kernels):
            raise TypeError("constants depend on sizes")
        self._sizes.move(given)
        with self._sizes.noting() as decided:
            layout = Layout(set())
            lives = [(_room(size), *life) for size, life in zip(self._bytes.numbers, self._lives, strict=True)]
            offsets, layout.arena_bytes = pack(lives)
            build = _OpenBuild(self._target, layout, model)
            inner = [(ARENA, offset) for offset in offsets]
            self._fix(build, model)
            to = _OpenFilling(build)
            forms: dict[int, _Form] = {}
            for alike, places, _ in self._kernels:
                form = forms.get(id(alike)) or forms.setdefault(id(alike), alike.form(given))
                to.begin(is_once=False)
                form.fill(to, form.open, [inner[place] if type(place) is int else place for place in places])
            at, numbers = build.closed()
            emitted = Emitted(build.planned(), build.specs, build.constants())
        for form in forms.values():
            decided.update(dict.fromkeys(form.decided))
        return Fitting(emitted, at, numbers, tuple(decided))

    def _fix(self, build: Build, model: tuple[int, int] | None) -> None:
        """Look where constants of the file are, which they are for all shapes."""
        if model == self._model:
            return
        if self._model is not None:
            raise TypeError("the file is elsewhere")
        self._model = model
        late = {*map(id, self.late)}
        for _, places, _ in self._kernels:
            for at, one in enumerate(places):
                if isinstance(one, Buffer) and id(one) not in late and one.memory is not None:
                    place = build.stored(one)
                    if place is None:
                        array = np.asarray(one.array)
                        places[at] = _Value(array.tobytes(), array)
                    else:
                        places[at] = (place.base, place.offset)


def _placed_once(graph: KernelGraph, layout: Layout) -> list[Buffer]:
    """Give places to the buffers that are computed once, and return these. Raises `TypeError` where that is not done
    for each shape."""
    once: list[Buffer] = []
    for kernel in graph:
        buffer = kernel.y.buffer
        if id(buffer) in layout.known:
            if not any(is_of_shape(view.buffer, layout) for view in kernel.operands):
                raise TypeError("something is computed once, for all shapes")
            size = item_bytes(buffer) * prod(buffer.shape)
            layout.places[buffer] = Place(COMPUTED, 0, dense_bytes(buffer), size)
            once.append(buffer)
    return once


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


def _description(sight: _Sight, gaps: set[Buffer]) -> Any:
    """What is the same of kernels that are alike. ``gaps``: images whose pixels are kept apart."""
    kernel = sight.kernel
    slots = {id(buffer): at for at, buffer in enumerate(sight.stand_ins)}
    views = [
        (slots[id(view.buffer)], told(view.shape), told(view.strides), told(view.offset))
        for view in (*kernel.operands, *kernel.results)
    ]
    buffers = [
        (type(buffer), told(buffer.shape), buffer.type, real in gaps)
        for buffer, real in zip(sight.stand_ins, sight.buffers, strict=True)
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
