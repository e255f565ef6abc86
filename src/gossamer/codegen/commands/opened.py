"""Commands with sizes left open: told once for kernels that are alike, and filled in for each shape.

What makes commands of a kernel is given one whose sizes are `gossamer.sizes.Size`, on stand-ins for its buffers: it
sees neither where these lie nor what is in them. What it asks of `Build` is written down as a Python function, and what
is decided on the way tells for which other sizes that is right; for others it is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np

from gossamer.codegen.build import Drawn, Emitted
from gossamer.codegen.commands import AtHand, Build, base_of_known, dense_bytes
from gossamer.codegen.commands.casting import Casting
from gossamer.codegen.commands.filling import Filling, OpenBuild, OpenFilling, Stored, Value, room_for
from gossamer.codegen.commands.flow import Flow, Leap, Visit, told_of
from gossamer.codegen.commands.telling import Choices, Sight, Telling, Told, has_sizes, sight_of
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.layout import Layout, Place, item_bytes, pack, spread_out
from gossamer.codegen.spec import KernelSpec
from gossamer.programs.program import ARENA, Address
from gossamer.sizes import Size, Sizes, known, told
from gossamer.targets import Target
from gossamer.views import Buffer, Late

MOST_FORMS = 32
"""Forms of a kernel's commands that are told apart."""


class Fitting(NamedTuple):
    """A program for some sizes, which is one for all others for which the same is decided: words ``at`` some places
    are then others."""

    emitted: Emitted
    at: list[int]
    numbers: list[Size]
    decided: Iterable[str]


class _How(NamedTuple):
    """What commands of all kernels are told with."""

    choices: Choices
    target: Target
    layout: Layout
    sizes: Sizes


class _Form(NamedTuple):
    """For sizes for which something holds: a function of them that tells numbers, and what is told of them."""

    holds: Callable[..., bool]
    numbers: Callable[..., list[int]]
    told: Told
    decided: Iterable[str]
    asked: Mapping[int, bool]
    """By the number of a buffer, whether threads must have written some channels each of it."""
    by_channel: tuple[int, ...]
    """Those of which they have afterwards."""
    asks: bool
    """Whether somebody has asked which way weights are read."""

    def suits(self, given: Sequence[int], by_channel: Collection[int]) -> bool:
        """Whether it is right for these sizes, and for what is known of these images."""
        try:
            if self.asked and any((at in by_channel) != answer for at, answer in self.asked.items()):
                return False
            return self.holds(*given)
        except ZeroDivisionError:
            return False


class _Alike:
    """Kernels of the graph that differ in their buffers alone. ``draws``: there is a border, which they draw;
    ``is_repeated`` and ``goes_back`` as in `Visit`."""

    def __init__(self, how: _How, sight: Sight, visit: Visit) -> None:
        self._how = how
        self._sight = sight
        self._visit = visit
        self._forms: list[_Form] = []

    def _tell(self, by_channel: Sequence[int]) -> _Form:
        choices, target, layout, sizes = self._how
        telling = Telling(choices, target, self._sight, layout, by_channel)
        telling.is_repeated, telling.goes_back = self._visit.is_repeated, self._visit.goes_back or None
        with sizes.noting() as decided:
            told = telling.told(self._visit.draws)
        holds, asks = sizes.holds(decided), telling.goes_back is not None
        form = _Form(holds, sizes.numbers(told.numbers), told, tuple(decided), *telling.channels(), asks)
        self._forms.insert(0, form)
        del self._forms[MOST_FORMS:]
        return form

    def form(self, given: Sequence[int], by_channel: Sequence[int]) -> _Form:
        """What fills in these sizes. ``by_channel``: the numbers of images of which threads have written some channels
        each."""
        for at, form in enumerate(self._forms):
            if form.suits(given, by_channel):
                if at:
                    self._forms.insert(0, self._forms.pop(at))  # the next sizes are often like these
                return form
        self._how.sizes.move(given)
        return self._tell(by_channel)


class _Step(NamedTuple):
    """A kernel of the graph, or a jump."""

    form: Callable[[Sequence[int], Sequence[int]], _Form]
    """What fills in sizes: see `_Alike.form`."""
    places: list[Any]
    """Where its buffers are: numbers of those in the arena or that are computed once, constants, and bases."""
    once: tuple[str, int] | None
    """If it runs once: the base of what it computes, and the number of that."""


class _Way(NamedTuple):
    """How all kernels of the graph run one after the other, for sizes for which something holds."""

    holds: Callable[..., bool]
    decided: Iterable[str]
    steps: list[_Step]
    casting: list[Casting]
    """One, unless commands are made in another way."""


class OpenCommands:
    """The commands of a graph that has had its passes, with sizes left open."""

    def __init__(self, drawn: Drawn, target: Target, sizes: Sizes, at_hand: AtHand | None = None) -> None:
        """``at_hand``: as in `Build`. Raises `TypeError`, or what somebody makes of it, where commands cannot be told
        so, and `NotAtHand`."""
        self._graph = drawn.graph
        layout, lives = spread_out(drawn.graph, drawn.borders, drawn.gaps, drawn.fills)
        self._target = target
        self._layout = layout
        self._sizes = sizes
        self._how = _How(Choices(at_hand), target, layout, sizes)
        self._lives = [(first, last) for _, first, last in lives]
        self._model: tuple[int, int] | None = None
        for at, buffer in enumerate(layout.aimed):
            layout.places[buffer].base = f"aimed{at}"
        places = [buffer for buffer, *_ in lives] + _placed_once(drawn.graph, layout)
        self._bytes = _Numbers(sizes, [layout.places[buffer].bytes for buffer in places])
        self._borders = _Numbers(sizes, [layout.places[buffer].inside for buffer, *_ in lives])
        self._alike: dict[Any, _Alike] = {}
        self._inner = {id(buffer): at for at, buffer in enumerate(places)}
        self._steps: dict[Visit, _Step] = {}
        self._unfixed: list[_Step] = []
        self._ways: list[_Way] = []
        self.late: list[Buffer] = []
        """Constants that are others for each shape."""
        self._way([size.value for size in sizes.open])

    @property
    def is_cast(self) -> bool:
        """Whether they are put together of arrays."""
        return all(way.casting for way in self._ways)

    def _way(self, given: Sequence[int]) -> _Way:
        """How kernels run for these sizes."""
        for way in self._ways:
            with suppress(ZeroDivisionError):
                if way.holds(*given):
                    return way
        self._sizes.move(given)
        by_channel: set[Any] = set()
        with self._sizes.noting() as decided:

            def asks(visit: Visit) -> bool:
                form = self._form(self._step(visit, given, by_channel), given, by_channel)
                if visit.is_repeated:
                    decided.update(dict.fromkeys(form.decided))
                return form.asks

            flow = Flow(self._target, self._layout, self._how.choices.at_hand, asks)
            flow.region(self._graph)
        steps = [
            self._leap(visit) if isinstance(visit, Leap) else self._step(visit, given, by_channel)
            for visit in flow.visits
        ]
        if self._layout.aimed:
            steps = self._aimed(flow.visits, steps)
        way = _Way(self._sizes.holds(decided), tuple(decided), steps, [])
        with suppress(TypeError):
            once = [step.once for step in steps]
            way.casting.append(Casting([step.places for step in steps], once, len(self._inner)))
        self._ways.insert(0, way)
        del self._ways[MOST_FORMS:]
        return way

    def _step(self, visit: Visit, given: Sequence[int], by_channel: set[Any]) -> _Step:
        step = self._steps.get(visit)
        if step is not None:
            return step
        kernel = visit.kernel
        once = (self._layout.places[kernel.y.buffer].base, self._inner[id(kernel.y.buffer)]) if visit.is_once else None
        shared = sight_of(kernel, shows=False)
        places = [self._place(buffer) for buffer in shared.buffers]
        known = _description(shared, self._layout), *visit[1:]
        if known not in self._alike:
            self._alike[known] = _Alike(self._how, shared, visit)
        step = _Step(self._alike[known].form, places, once)
        try:
            self._form(step, given, {*by_channel})
        except TypeError:
            if not any(view.is_constant for view in kernel.operands):
                raise
            step = step._replace(form=_Alike(self._how, sight_of(kernel, shows=True), visit).form)
        self._steps[visit] = step
        self._unfixed.append(step)
        return step

    def _aimed(self, visits: Sequence[Visit | Leap], steps: Sequence[_Step]) -> list[_Step]:
        """The same with a base for each gather that tells where a row lies, behind which those read that follow it."""
        now: dict[Any, Address] = {}
        aimed = []
        for number, (visit, step) in enumerate(zip(visits, steps, strict=True)):
            if isinstance(visit, Visit) and visit.kernel.y.buffer in self._layout.aimed:
                now[self._place(visit.kernel.y.buffer)] = Address(f"aimed at {number}")
            if any(type(place) is Address and place in now for place in step.places):
                step = step._replace(places=[now.get(p, p) if type(p) is Address else p for p in step.places])
                self._unfixed.append(step)
            aimed.append(step)
        return aimed

    def _leap(self, leap: Leap) -> _Step:
        places, inside = [], 0
        if leap.flag is not None:
            if leap.flag.is_constant:
                raise TypeError("the flag of a jump is a constant")
            places = [self._place(leap.flag.buffer)]
            inside = self._layout.address(leap.flag).offset
        told = told_of(leap, inside)
        form = _Form(lambda *given: True, self._sizes.numbers(told.numbers), told, (), {}, (), False)
        return _Step(lambda given, images: form, places, None)

    def _form(self, step: _Step, given: Sequence[int], by_channel: set[Any]) -> _Form:
        """What fills in a kernel. ``by_channel``: the places of images of which threads have written some channels
        each, which become more."""
        places = step.places
        images = [at for at, place in enumerate(places) if _is_written(place) and place in by_channel]
        form = step.form(given, images)
        by_channel.update([places[at] for at in form.by_channel])
        return form

    def _place(self, buffer: Buffer) -> Any:
        if not buffer.is_constant:
            return self._inner.get(id(buffer), Address(self._layout.places[buffer].base))
        is_late = isinstance(buffer, Late) or has_sizes(buffer)
        if is_late and not any(one is buffer for one in self.late):
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
        to = Filling(build)
        instead: dict[int, Any] = {id(one): made for one, made in zip(self.late, late, strict=True)}
        way = self._way(given)
        self._fix(build, model)
        forms = self._forms(way.steps, given)
        if way.casting and not any(form.asked for form in {id(one): one for one, *_ in forms}.values()):
            told = [(form.told, numbers, kernels) for form, numbers, kernels in forms]
            try:
                emitted = way.casting[0].emitted(to, told, [offset for _, offset in inner], bytes, instead)
            except TypeError:
                way.casting.clear()
            else:
                if emitted is not None:
                    return emitted
            build = Build(self._target, layout, model)
            to = Filling(build)
        inner += [None] * (len(bytes) - len(inner))
        for step, (form, numbers, kernels) in zip(way.steps, forms, strict=True):
            _, places, once = step
            to.begin("" if once is None else once[0])
            if once is not None:
                inner[once[1]] = tuple(build.of_known(bytes[once[1]]))
            at = [inner[place] if type(place) is int else instead.get(id(place), place) for place in places]
            form.told.fill(to, numbers, kernels, at)
        to.land()
        return Emitted(build.planned(), build.specs, build.constants())

    def _forms(
        self, steps: Sequence[_Step], given: Sequence[int]
    ) -> list[tuple[_Form, list[int], list[tuple[str, KernelSpec]]]]:
        """Of each kernel, what fills it in for these sizes, the numbers, and the kernels that depend on these."""
        forms: dict[Any, tuple[_Form, list[int], list[tuple[str, KernelSpec]]]] = {}
        by_channel: set[Any] = set()
        found = []
        for step in steps:
            known = forms.get(step.form)
            if known is None or known[0].asked:
                form = self._form(step, given, by_channel)
                numbers = form.numbers(*given)
                known = forms[step.form] = form, numbers, form.told.kernels(numbers)
            elif known[0].by_channel:
                by_channel.update([step.places[at] for at in known[0].by_channel])
            found.append(known)
        return found

    def fitting(self, given: Sequence[int], model: tuple[int, int] | None) -> Fitting:
        """The program for these sizes, and what makes it that for others. Raises `TypeError` where more than words of
        it would be others."""
        way = self._way(given)
        if not all(_is_uniform(one) for one in self.late) or any(step.once is not None for step in way.steps):
            raise TypeError("constants depend on sizes")
        self._sizes.move(given)
        with self._sizes.noting() as decided:
            decided.update(dict.fromkeys(way.decided))
            layout = Layout(set())
            lives = [(room_for(size), *life) for size, life in zip(self._bytes.numbers, self._lives, strict=True)]
            offsets, layout.arena_bytes = pack(lives)
            build = OpenBuild(self._target, layout, model)
            inner = [(ARENA, offset + inside) for offset, inside in zip(offsets, self._borders.numbers, strict=True)]
            self._fix(build, model)
            more = {id(one): _repeated(one) for one in self.late}
            to = OpenFilling(build)
            by_channel: set[Any] = set()
            for step in way.steps:
                form = self._form(step, given, by_channel)
                to.begin("")
                told = form.told
                at = [inner[place] if type(place) is int else more.get(id(place), place) for place in step.places]
                told.fill(to, told.numbers, told.kernels(told.numbers), at)
                decided.update(dict.fromkeys(form.decided))
            to.land()
            closed, numbers = build.closed()
            emitted = Emitted(build.planned(), build.specs, build.constants())
        return Fitting(emitted, closed, numbers, tuple(decided))

    def _fix(self, build: Build, model: tuple[int, int] | None) -> None:
        """Look where constants of the file are, which they are for all shapes."""
        if model != self._model and self._model is not None:
            raise TypeError("the file is elsewhere")
        self._model = model
        late = {*map(id, self.late)}
        for step in self._unfixed:
            places = step.places
            for at, one in enumerate(places):
                if isinstance(one, Buffer) and id(one) not in late and one.memory is not None:
                    place = build.stored(one)
                    if place is None:
                        array = np.asarray(one.array)
                        places[at] = Value(array.tobytes(), array)
                    else:
                        places[at] = Stored(one, place.offset)
        self._unfixed.clear()


def _placed_once(graph: KernelGraph, layout: Layout) -> list[Buffer]:
    """Give places to the buffers that are computed once, and return these."""
    once: list[Buffer] = []
    for kernel in [kernel for part in graph.parts() for kernel in part]:
        buffer = kernel.y.buffer
        if id(buffer) in layout.known and buffer not in layout.places:
            size = item_bytes(buffer) * prod(buffer.shape)
            layout.places[buffer] = Place(base_of_known(kernel, layout), 0, dense_bytes(buffer), size)
            once.append(buffer)
    return once


def _is_uniform(buffer: Buffer) -> bool:
    return isinstance(buffer, Late) and buffer.is_uniform


def _repeated(buffer: Buffer) -> Value:
    """A uniform constant with as many elements as there is room for."""
    room = room_for(item_bytes(buffer) * prod(buffer.shape)) // item_bytes(buffer)
    element = known(cast(Late, buffer).value).reshape(-1)[:1]
    if not element.size:
        raise TypeError("there is no element of a constant")
    array = np.repeat(element, room)
    return Value(array.tobytes(), array)


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


def _description(sight: Sight, layout: Layout) -> Any:
    """What is the same of kernels that are alike."""
    kernel = sight.kernel
    slots = {id(buffer): at for at, buffer in enumerate(sight.stand_ins)}
    views = [
        (slots[id(view.buffer)], told(view.shape), told(view.strides), told(view.offset))
        for view in (*kernel.operands, *kernel.results)
    ]
    places = [layout.places.get(real) for real in sight.buffers]
    buffers = [
        (
            *(type(buffer), told(buffer.shape), buffer.type, real in layout.aimed),
            *((told(at.strides), told(at.border), at.fill) if at else ()),
        )
        for buffer, real, at in zip(sight.stand_ins, sight.buffers, places, strict=True)
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
