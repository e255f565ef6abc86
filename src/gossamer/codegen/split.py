"""What nobody has compiled, in parts that ship: a kernel, what is before and behind it, an expression, its functions.

A map falls apart where it converts what it has computed: there, fusing has joined the maps of two operators. One that
does not becomes maps of what recurrent cells are made of, of its other functions, and of as many of those at once as
there are kernels for. Each does what it did in the one; so the bits stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import permutations, product
from typing import Any

from gossamer.codegen.basis import CELLS, PRELU, SCALED
from gossamer.codegen.elements import ELEMENT_OF, element
from gossamer.codegen.expression import COMMUTATIVE, IDENTITY, Expression, parameters_of, type_of
from gossamer.codegen.graph import MAP, REDUCE, Kernel
from gossamer.codegen.layout import merged
from gossamer.schema.enums import TensorType
from gossamer.views import Buffer, View, dense_strides

_CELLS = (*(cell for cell, _ in CELLS), SCALED, PRELU)
"""What stays together; peepholes are sums like the last one."""

_LANES = 16
"""Elements of the largest vectors of float32."""

TYPES: dict[str, TensorType] = {name: type for type, name in ELEMENT_OF.items()}

MOST_AT_ONCE = 3
"""Functions that one map is tried with, instead of one each."""


def split(kernel: Kernel, is_at_hand: Callable[[Kernel], bool] = lambda _: False) -> list[Kernel]:
    """Kernels that do in turn what one does; nothing if it is of one piece. What lies between them has new buffers.

    ``is_at_hand`` is asked about maps of several functions; those of single ones are taken to be.
    """
    if kernel.kind == MAP:
        parts = _Parts(kernel, is_at_hand)
        return parts.operators() or parts.functions(cells=True) or parts.functions()
    if kernel.kind == REDUCE and kernel.settings[2] != IDENTITY:
        (x, *extras), (reduction, axes, prologue) = kernel.operands, kernel.settings
        between = Buffer(x.shape, x.type).view()
        map = Kernel(MAP, [x], between, None, prologue, 1, kernel.origin)
        settings = reduction, axes, IDENTITY
        return [map, Kernel(REDUCE, [between, *extras], kernel.y, settings, kernel.epilogue, 1, kernel.origin)]
    if kernel.epilogue == IDENTITY or kernel.regions:
        return []
    # What the epilogue is applied to is written where the result will be, if nobody reads what is there.
    y = kernel.y
    if any(view.buffer is y.buffer for view in kernel.operands) or _has_rests(kernel):
        y = Buffer(y.shape, y.type).view()
    own = kernel.operands[: kernel.arity]
    plain = Kernel(kernel.kind, own, y, kernel.settings, IDENTITY, kernel.arity, kernel.origin)
    map = Kernel(MAP, [y, *kernel.extras], kernel.y, None, kernel.epilogue, 1, kernel.origin)
    return [plain, map]


def _has_rests(kernel: Kernel) -> bool:
    """Whether the epilogue goes along rows that are no whole vectors. In place, each would wait for the rest of the one
    before, which is stored with a mask in the line from which it is loaded: 8 ns (Zen 4), up to five times the rest."""
    tables = parameters_of(kernel.epilogue)
    views = [kernel.y, *(view for number, view in enumerate(kernel.extras, 1) if number not in tables)]
    rows = merged(kernel.y.shape, *(view.strides for view in views))
    return len(rows) > 1 and rows[-1][0] % _LANES > 0


class _Parts:
    """The maps of its parts that a map of an expression is."""

    def __init__(self, kernel: Kernel, is_at_hand: Callable[[Kernel], bool]) -> None:
        self._kernel = kernel
        self._is_at_hand = is_at_hand
        self._types = [ELEMENT_OF[view.type] for view in kernel.operands]
        self._tables = parameters_of(kernel.epilogue)
        self._known: dict[Expression, View] = {}
        self._views: dict[Expression, View] = {}
        self._maps: list[Kernel] = []
        self._cells: tuple[Expression, ...] = ()

    def operators(self) -> list[Kernel]:
        """Those between conversions of what has been computed; nothing if there are none."""
        whole = self._kernel.epilogue
        if not isinstance(whole, int) and whole[0] == f"to{ELEMENT_OF[self._kernel.y.type]}":
            whole = whole[1]  # which is what writing another type is
        self._joined(whole, None)
        return self._maps if len(self._maps) > 1 else []

    def _joined(self, whole: Expression, type: str | None) -> View:
        """A part up to the conversions in it, as a tensor of a type; without one, the result."""
        views: dict[Expression, View] = {}

        def collect(part: Expression) -> None:
            if isinstance(part, int):
                views[part] = self._kernel.operands[part]
                return
            if _is_conversion(part) and not (isinstance(part[1], int) or _is_conversion(part[1])):
                before, after = type_of(part[1], self._types), part[0][2:]
                # Between, there is the smaller type: who reads it, or who writes it, converts.
                leaf, type = (part[1], before) if _is_smaller(before, after) else (part, after)
                if leaf not in self._known:
                    self._known[leaf] = self._joined(part[1], type)
                views[leaf] = self._known[leaf]
                return
            for argument in part[1:]:
                collect(argument)

        collect(whole)
        # As operators have them: tensors, what is the same everywhere, parameters.
        order = sorted(views, key=lambda leaf: 2 if leaf in self._tables else not any(views[leaf].strides))
        tensors = [views[leaf] for leaf in order if leaf not in self._tables]
        y = self._kernel.y if type is None else self._between(tensors, type)
        return self._add(_with(whole, {leaf: at for at, leaf in enumerate(order)}), [views[leaf] for leaf in order], y)

    def functions(self, cells: bool = False) -> list[Kernel]:
        """All of them, those of ``cells`` together; nothing if it is one, whose types need no conversion."""
        self._known, self._maps, self._views, self._cells = {}, [], {}, _CELLS if cells else ()
        kernel, whole = self._kernel, self._kernel.epilogue
        if isinstance(whole, int):
            return []
        written = ELEMENT_OF[kernel.y.type]
        if whole[0] == f"to{written}":
            # A conversion is what writing another type is.
            self._add(IDENTITY, [self._value(whole[1])], kernel.y)
        elif type_of(whole, self._types) == written:
            self._apply(whole, kernel.y)
        else:
            self._add(IDENTITY, [self._value(whole)], kernel.y)
        # One that reads its operands in another order is itself again, in this one.
        return self._maps if len(self._maps) > 1 or self._maps[0].epilogue != whole else []

    def _value(self, part: Expression) -> View:
        """What a part of the expression is, as a tensor of the type that it is computed in."""
        y = self._view(part)
        if part in self._known:
            return y
        if isinstance(part, int):
            if y is self._kernel.operands[part]:
                return y
            self._add(IDENTITY, [self._kernel.operands[part]], y)
        elif _is_conversion(part):
            self._add(IDENTITY, [self._value(part[1])], y)
        else:
            self._apply(part, y)
        self._known[part] = y
        return y

    def _view(self, part: Expression) -> View:
        """Where that will be: an operand, if it is one that is read as it is."""
        if part in self._views:
            return self._views[part]
        if isinstance(part, int):
            view, type = self._kernel.operands[part], element(self._types[part]).computed
            is_read = part in self._tables or type == self._types[part]
            self._views[part] = view if is_read else self._between([view], type)
        else:
            views = [self._view(argument) for argument in part[1:] if argument not in self._tables]
            type = part[0][2:] if _is_conversion(part) else type_of(part, self._types)
            self._views[part] = self._between(views, type)
        return self._views[part]

    def _apply(self, call: tuple[Any, ...], y: View) -> None:
        """The map of a function, and of those before it for which there is a kernel."""
        for cell in self._cells:
            found = _operands(cell, call, {})
            if found is None or not all(type_of(part, self._types) == "f32" for part in found.values()):
                continue
            # What would be computed inside and beside the cell is computed once.
            if _operands(cell, _with(call, {part: number for number, part in found.items()}), {}) is not None:
                self._add(cell, [self._value(found[number]) for number in range(len(found))], y)
                return
        for expression, leaves in _together(call):
            if self._is_at_hand(self._map(expression, [self._view(leaf) for leaf in leaves], y)):
                self._add(expression, [self._value(leaf) for leaf in leaves], y)
                return
        function, *arguments = call
        self._add((function, *range(len(arguments))), [self._value(argument) for argument in arguments], y)

    def _between(self, views: list[View], type: str) -> View:
        """A new tensor that is as large as what it is computed of; its view is as large as the result."""
        shape = self._kernel.y.shape
        small = tuple(
            [
                size if any(view.strides[axis] for view in views) or axis == len(shape) - 1 else 1
                for axis, size in enumerate(shape)
            ]
        )
        buffer = Buffer(small, TYPES[type])
        strides = [
            0 if own != size else step for own, size, step in zip(small, shape, dense_strides(small), strict=True)
        ]
        return View(buffer, shape, tuple(strides), 0)

    def _add(self, expression: Expression, views: list[View], y: View) -> View:
        self._maps.append(self._map(expression, views, y))
        return y

    def _map(self, expression: Expression, views: list[View], y: View) -> Kernel:
        """A map; one that fills a small tensor is as small."""
        target, operands = y, views
        if y is not self._kernel.y and y.buffer.shape != y.shape:
            target = y.buffer.view()
            operands = [View(view.buffer, target.shape, view.strides, view.offset) for view in views]
        return Kernel(MAP, operands, target, None, expression, 1, self._kernel.origin)


@lru_cache(256)  # networks repeat what they do
def _together(call: tuple[Any, ...]) -> tuple[tuple[Expression, tuple[Expression, ...]], ...]:
    """What may be one map with the function that is applied last, the most functions first: as an expression, and the
    distinct parts that it is applied to, in the order in which they occur."""
    found = []
    for functions in sorted(_cuts(call, MOST_AT_ONCE), key=len, reverse=True)[:-1]:
        leaves = tuple(dict.fromkeys(_leaves(call, set(functions))))
        found.append((_with(call, {leaf: at for at, leaf in enumerate(leaves)}), leaves))
    return tuple(found)


def _cuts(call: tuple[Any, ...], most: int) -> Iterator[tuple[Expression, ...]]:
    """The functions that may be one map with the one that is applied last, which is the first of them: up to so many,
    each applied to what the next ones make; conversions are none."""
    yield (call,)
    if most == 1:
        return
    choices = []
    for argument in dict.fromkeys(call[1:]):
        is_applied = not isinstance(argument, int) and not _is_conversion(argument)
        choices.append([(), *_cuts(argument, most - 1)] if is_applied else [()])
    for chosen in product(*choices):
        inner = tuple(dict.fromkeys(part for parts in chosen for part in parts))
        if inner and len(inner) < most:
            yield (call, *inner)


def _leaves(call: tuple[Any, ...], inner: set[Expression]) -> Iterator[Expression]:
    """What functions are applied to and is none of them, in order."""
    for argument in call[1:]:
        if argument in inner and not isinstance(argument, int):
            yield from _leaves(argument, inner)
        else:
            yield argument


def _is_smaller(type: str, other: str) -> bool:
    return type in TYPES and element(type).bits < element(other).bits


def _is_conversion(part: Expression) -> bool:
    return not isinstance(part, int) and part[0].startswith("to") and part[0][2:] in TYPES


def _operands(known: Expression, part: Expression, found: dict[int, Expression]) -> dict[int, Expression] | None:
    """What is in an expression in the place of the operands of a known one, with ``found``; ``None``: it is another."""
    if isinstance(known, int):
        return {**found, known: part} if found.get(known, part) == part else None
    if isinstance(part, int) or part[0] != known[0]:
        return None
    for arguments in permutations(part[1:]) if part[0] in COMMUTATIVE else (part[1:],):
        operands: dict[int, Expression] | None = found
        for inner, argument in zip(known[1:], arguments, strict=True):
            operands = None if operands is None else _operands(inner, argument, operands)
        if operands is not None:
            return operands
    return None


def _with(part: Expression, leaves: Mapping[Expression, int]) -> Expression:
    """An expression with numbers of operands in the place of parts."""
    if part in leaves or isinstance(part, int):
        return leaves[part]
    return (part[0], *(_with(argument, leaves) for argument in part[1:]))
