"""Sizes left open: integers that stand for all that they may be, and note what is decided by them.

What is worked out of shapes with `Size` in the place of some of their numbers is right for all numbers for which the
same is decided. A `Size` is a polynomial of those that are open, with quotients that do not come out even as variables
of their own; each comparison is answered as it is for one set of numbers, and noted by the `Sizes` that it is of.

Whoever needs the number itself (an index, a hash, an array of integers) gets a `TypeError`, so nothing can depend on it
unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from operator import eq, ge, gt, index, le, lt, ne
from typing import Any, TypeVar

T = TypeVar("T")

Relation = Callable[[Any, Any], bool]

Terms = Mapping[tuple[int, ...], int]
"""By product of variables, its factor."""

_SYMBOLS: dict[Relation, str] = {eq: "==", ne: "!=", lt: "<", le: "<=", gt: ">", ge: ">="}

_CONSTANT: tuple[int, ...] = ()

_NAME, _INDEXED = re.compile(r"\bs(\d+)\b"), r"s[\1]"
"""Of a variable, and how one is looked up."""


class Sizes:
    """The sizes that are open together, and what has been decided by them.

    ``values``: what they are where decisions are made.
    """

    def __init__(self, values: Sequence[int]) -> None:
        self._variables: list[int] = []
        self._results: dict[Any, Any] = {}
        self._steps: dict[int, tuple[str, Sequence[int]]] = {}
        """By variable that is worked out, the expression, and the numbers of those whose values it has, if several."""
        self._written_steps: dict[int, tuple[Callable[[_Values], Any], Sequence[int]]] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._decided: dict[str, None] = {}
        self._answers: dict[Any, tuple[str, bool]] = {}
        """Of what has been compared since sizes were others: the condition, and the answer."""
        self._last = _Values(self, ())
        self.moment = object()
        """It is another one whenever the sizes are."""
        self.open: list[Any] = [self._variable(value) for value in values]

    def _variable(self, value: int) -> Size:
        self._variables.append(value)
        return Size(self, value, {(len(self._variables) - 1,): 1})

    def value(self, terms: Terms) -> int:
        """What a polynomial is where decisions are made."""
        variables = self._variables
        return sum(factor * prod([variables[number] for number in product]) for product, factor in terms.items())

    def move(self, values: Sequence[int]) -> None:
        """Have decisions made elsewhere from now on; where nothing can be computed of some sizes, they are 0 there."""
        if self._variables[: len(values)] == list(values):
            return
        self._answers.clear()
        self.moment = object()
        known = self._values(tuple(values))
        self._variables = [known.found(number) for number in range(len(self._variables))]

    def _values(self, given: tuple[int, ...]) -> _Values:
        """What variables are for these sizes. What follows each other asks for the same ones."""
        known = self._last
        if known.given != given:
            known = self._last = _Values(self, given)
        return known

    def step(self, number: int) -> tuple[Callable[[_Values], Any], Sequence[int]]:
        """What works a variable out, and the numbers of those whose values it returns, if these are several."""
        known = self._written_steps.get(number)
        if known is None:
            text, numbers = self._steps[number]
            known = self._written_steps[number] = self._written(text), numbers
        return known

    @contextmanager
    def noting(self) -> Iterator[dict[str, None]]:
        """Have what is decided meanwhile noted apart."""
        before, self._decided = self._decided, {}
        try:
            yield self._decided
        finally:
            self._decided = before

    def holds(self, decided: Iterable[str] | None = None) -> Callable[..., bool]:
        """A function of the open sizes that tells whether all is decided as it was, or as ``decided`` says."""
        return self._compiled(" and ".join(self._decided if decided is None else decided) or "True")

    def numbers(self, sizes: Iterable[Size | int]) -> Callable[..., list[int]]:
        """A function of the open sizes that tells what these are."""
        texts = [size.text if isinstance(size, Size) else str(size) for size in sizes]
        return self._compiled(f"[{', '.join(texts)}]")

    @property
    def decided(self) -> Iterable[str]:
        """What has been decided: conditions, in terms of variables."""
        return self._decided

    @property
    def functions(self) -> Mapping[str, Any]:
        """What expressions call, by name."""
        return self._functions

    def expression(self, number: int) -> tuple[str, Sequence[int]]:
        """How a variable is worked out, and the numbers of those whose values that has, if these are several."""
        return self._steps[number]

    def _compiled(self, result: str) -> Callable[..., Any]:
        function, values = self._written(result), self._values
        return lambda *given: function(values(given))

    def _written(self, result: str) -> Callable[[_Values], Any]:
        """A function of what variables are that returns the value of an expression."""
        return eval(of_variables(result), self._functions)  # type: ignore[no-any-return]

    def decide(self, size: Size, other: Any, relation: Relation) -> bool:
        """Whether a size is in this relation to another one, or to a number, which is noted."""
        key = size.text, other.text if isinstance(other, Size) else other, relation
        known = self._answers.get(key)
        if known is None:
            difference = size - other
            answer = relation(_value(difference), 0)
            condition = f"{difference.text} {_SYMBOLS[relation]} 0" if isinstance(difference, Size) else ""
            known = self._answers[key] = condition if answer or not condition else f"not {condition}", answer
        condition, answer = known
        if condition:
            self._decided[condition] = None
        return answer

    def quotient(self, size: Size, divisor: Size | int) -> Size:
        """What is rounded down, as a variable."""
        key = size.text, divisor.text if isinstance(divisor, Size) else str(divisor)
        if key not in self._results:
            made = self._variable(size.value // _value(divisor))
            self._results[key] = made
            self._steps[len(self._variables) - 1] = f"({key[0]}) // ({key[1]})", ()
        return self._results[key]  # type: ignore[no-any-return]  # as above

    def computed(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """What a function makes of arguments, some of which are open: variables for the integers that it returns."""
        texts = tuple([one.text if isinstance(one, Size) else one for one in arguments])
        key = function, texts
        if key not in self._results:
            values = function(*[_value(one) if isinstance(one, Size) else one for one in arguments])
            several = isinstance(values, tuple)
            made = tuple([self._variable(value) for value in (values if several else (values,))])
            parts = [self._named(one) if text is one else text for one, text in zip(arguments, texts, strict=True)]
            text = f"{self._named(function)}({', '.join(parts)})"
            numbers = range(len(self._variables) - len(made), len(self._variables))
            self._steps.update(dict.fromkeys(numbers, (text, numbers if several else ())))
            self._results[key] = made if several else made[0]
        return self._results[key]

    def _named(self, thing: Any) -> str:
        name = f"f{len(self._functions)}"
        self._functions[name] = thing
        return name


def of_variables(expression: str) -> str:
    """A function of what variables are, as Python has it."""
    return f"lambda s: {_NAME.sub(_INDEXED, expression)}"


class _Values(dict[int, int]):
    """What variables are for some sizes, by number; worked out when somebody asks."""

    def __init__(self, sizes: Sizes, given: tuple[int, ...]) -> None:
        super().__init__(enumerate(given))
        self.given = given
        self._sizes = sizes

    def __missing__(self, number: int) -> int:
        evaluated, numbers = self._sizes.step(number)
        if numbers:
            self.update(zip(numbers, evaluated(self), strict=True))
        else:
            self[number] = evaluated(self)
        return self[number]

    def found(self, number: int) -> int:
        """The value of a variable, 0 where none can be worked out."""
        try:
            return self[number]
        except ZeroDivisionError:
            return 0


class Size:
    """A size that is open. Sums, differences, products and quotients are sizes or, where nothing is open, integers."""

    __slots__ = ("_moment", "_text", "_value", "sizes", "terms")
    __hash__ = None  # type: ignore[assignment]  # it would depend on the number
    __array_ufunc__ = None  # arithmetic with NumPy's numbers is done here

    def __init__(self, sizes: Sizes, value: int, terms: Terms) -> None:
        self.sizes = sizes
        self.terms = terms
        self._text = ""
        self._value = value
        self._moment = sizes.moment

    @property
    def value(self) -> int:
        """What it is where decisions are made."""
        if self._moment is not self.sizes.moment:
            self._value, self._moment = self.sizes.value(self.terms), self.sizes.moment
        return self._value

    @property
    def text(self) -> str:
        """The expression, which for a variable is its name: the same one for equal polynomials."""
        if not self._text:
            self._text = " + ".join(
                "*".join(
                    [*([str(factor)] if factor != 1 or not product else []), *(f"s{number}" for number in product)]
                )
                for product, factor in sorted(self.terms.items())
            )
        return self._text

    def __repr__(self) -> str:
        return f"{self.value} ({self.text})"

    def __add__(self, other: Any) -> Any:
        terms = dict(self.terms)
        if type(other) is int:  # most are
            terms[_CONSTANT] = terms.get(_CONSTANT, 0) + other
            if not terms[_CONSTANT]:
                del terms[_CONSTANT]
            return Size(self.sizes, self.value + other, terms)
        for product, factor in _terms(other).items():
            terms[product] = terms.get(product, 0) + factor
        return self._made(self.value + _value(other), terms)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            scaled = {product: factor * other for product, factor in self.terms.items()}
            return Size(self.sizes, self.value * other, scaled) if other else 0
        terms: dict[tuple[int, ...], int] = {}
        for mine, factor in self.terms.items():
            for product, times in _terms(other).items():
                both = tuple(sorted(mine + product)) if product else mine
                terms[both] = terms.get(both, 0) + factor * times
        return self._made(self.value * _value(other), terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if _value(other) == 0:
            raise ZeroDivisionError
        if isinstance(other, Size):
            if not other:
                raise ZeroDivisionError
            even = _even(self.terms, other.terms)
            return self.sizes.quotient(self, other) if even is None else self._made(self.value // other.value, even)
        divisor = index(other)
        even = {product: factor // divisor for product, factor in self.terms.items() if factor % divisor == 0}
        value = self.sizes.value(even)
        rest = {product: factor for product, factor in self.terms.items() if factor % divisor}
        remains = self._made(self.value - value * divisor, rest)
        quotient = self.sizes.quotient(remains, divisor) if isinstance(remains, Size) else remains // divisor
        return self._made(value, even) + quotient

    def __rfloordiv__(self, other: Any) -> Any:
        if not self:
            raise ZeroDivisionError
        return self.sizes.quotient(Size(self.sizes, index(other), _terms(other)), self) if index(other) else 0

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient, self - quotient * other

    def __rdivmod__(self, other: Any) -> Any:
        quotient = other // self
        return quotient, other - quotient * self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __bool__(self) -> bool:
        return self.sizes.decide(self, 0, ne)

    def __eq__(self, other: object) -> bool:
        return self is other or self.sizes.decide(self, other, eq)

    def __ne__(self, other: object) -> bool:
        return self is not other and self.sizes.decide(self, other, ne)

    def __lt__(self, other: Any) -> bool:
        return self.sizes.decide(self, other, lt)

    def __le__(self, other: Any) -> bool:
        return self.sizes.decide(self, other, le)

    def __gt__(self, other: Any) -> bool:
        return self.sizes.decide(self, other, gt)

    def __ge__(self, other: Any) -> bool:
        return self.sizes.decide(self, other, ge)

    def _made(self, value: int, terms: Terms) -> Any:
        terms = {product: factor for product, factor in terms.items() if factor}
        return Size(self.sizes, value, terms) if terms.keys() - {_CONSTANT} else value


def _terms(number: Any) -> Terms:
    return number.terms if isinstance(number, Size) else {_CONSTANT: index(number)}


def _value(number: Any) -> int:
    return number.value if isinstance(number, Size) else index(number)


def _even(terms: Terms, divisor: Terms) -> Terms | None:
    """A quotient that comes out even for all numbers; ``None`` if that is not seen."""
    if len(divisor) > 1:
        return None
    ((by, times),) = divisor.items()
    quotient: dict[tuple[int, ...], int] = {}
    for product, factor in terms.items():
        left = list(product)
        for variable in by:
            if variable not in left:
                return None
            left.remove(variable)
        if factor % times:
            return None
        quotient[tuple(left)] = factor // times
    return quotient


def settled(number: Any) -> int:
    """What a number is: that it is this one is noted."""
    if not isinstance(number, Size):
        return int(number)
    value = number.value
    return value if number == value else 0  # which it is


def computed(function: Callable[..., T], *arguments: Any) -> T:
    """The integer, or the tuple of integers, that a function makes of arguments: variables, if a size among these is
    open."""
    size = next((one for one in arguments if isinstance(one, Size)), None)
    return function(*arguments) if size is None else size.sizes.computed(function, arguments)


def told(thing: Any) -> Any:
    """What tells a thing of tuples, numbers and text from others, as a key: equal polynomials are equal."""
    if isinstance(thing, Size):
        return Size, thing.text
    return tuple([told(part) for part in thing]) if isinstance(thing, tuple) else thing


def whole(number: Any) -> int:
    """A number as an integer of Python; what is open stays so."""
    return int(number) if not isinstance(number, Size) else number  # type: ignore[return-value]  # it passes for one


class Later:
    """What a function makes of parts among which sizes are open, once they are known."""

    __slots__ = ("make", "parts")

    def __init__(self, make: Callable[..., Any], parts: Sequence[Any]) -> None:
        self.make = make
        self.parts = parts


def known(part: Any, numbers: Iterator[int] | None = None) -> Any:
    """What something is that `Later`, lists and tuples hold, for the sizes of ``numbers`` in their order; by default as
    they are where decisions are made."""
    if isinstance(part, Size):
        return part.value if numbers is None else next(numbers)
    if isinstance(part, Later):
        return part.make(*known(part.parts, numbers))
    return [known(inner, numbers) for inner in part] if isinstance(part, (list, tuple)) else part


def sizes_in(part: Any) -> list[Size]:
    """The sizes in something, in the order of `known`."""
    if isinstance(part, Size):
        return [part]
    inside = part.parts if isinstance(part, Later) else part if isinstance(part, (list, tuple)) else ()
    return [size for inner in inside for size in sizes_in(inner)]


def later(make: Callable[..., Any], *parts: Any) -> Any:
    """What a function makes of parts: now, or, if one is open, `Later`."""
    return Later(make, parts) if is_open(parts) else make(*parts)


def is_open(numbers: Iterable[Any]) -> bool:
    """Whether one of these is open."""
    return any(isinstance(number, Size) for number in numbers)
