"""Whether sizes that are open stay as they are, for many at once that are some steps ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.sizes import Size, Sizes, of_variables


class _Column(np.ndarray[Any, Any]):
    """What a variable is for each of many sizes."""


class Ahead:
    """Tells for which of many sizes, some steps from others, all is decided as it was, and numbers are as many steps
    from what they were."""

    def __init__(self, sizes: Sizes, decided: Iterable[str], numbers: Iterable[Any] = ()) -> None:
        self._sizes = sizes
        conditions = [f"~({one[4:]})" if one.startswith("not ") else f"({one})" for one in decided]
        texts = dict.fromkeys(number.text for number in numbers if isinstance(number, Size))
        # One expression each: they are written in less time.
        self._texts = " & ".join(conditions) or "True", f"[{', '.join(texts)}]"
        self._written: dict[str, Callable[[_Columns], Any]] = {}

    def __call__(self, given: Sequence[int], steps: NDArray[Any], points: NDArray[Any]) -> NDArray[Any]:
        """For each row of ``points``, which are how often each of ``steps`` is gone from the sizes ``given``. The first
        row is 0, and each step is gone alone in one of the next."""
        columns = _Columns(self, (np.asarray(given) + points @ steps).T.view(_Column))
        conditions, numbers = self._texts
        ones = [int(np.flatnonzero((points == unit).all(1))[0]) for unit in np.eye(points.shape[1], dtype=np.int64)]
        try:
            with np.errstate(divide="raise"):
                holds: NDArray[Any] = np.ones(len(points), bool) & self.evaluated(conditions, columns)
                for number in self.evaluated(numbers, columns):
                    found = np.broadcast_to(number, len(points))
                    holds &= found == found[0] + points @ (found[ones] - found[0])
        except (ArithmeticError, TypeError, ValueError):
            return np.zeros(len(points), bool)
        return holds

    def evaluated(self, text: str, columns: _Columns) -> Any:
        """The value of an expression."""
        written = self._written.get(text)
        if written is None:
            functions = {name: _each(one) if callable(one) else one for name, one in self._sizes.functions.items()}
            written = self._written[text] = eval(of_variables(text), functions)
        return written(columns)

    def column(self, number: int, columns: _Columns) -> Iterable[tuple[int, Any]]:
        """What a variable is worked out to be, and those that are with it."""
        text, numbers = self._sizes.expression(number)
        found = self.evaluated(text, columns)
        return zip(numbers, found, strict=True) if numbers else [(number, found)]


class _Columns(dict[int, Any]):
    """What variables are for many sizes, by number; worked out when somebody asks."""

    def __init__(self, ahead: Ahead, given: NDArray[Any]) -> None:
        super().__init__(enumerate(given))
        self._ahead = ahead

    def __missing__(self, number: int) -> Any:
        self.update(self._ahead.column(number, self))
        return self[number]


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function for each row of what its arguments are for many sizes."""

    def all_rows(*arguments: Any) -> Any:
        count = next((len(one) for one in arguments if isinstance(one, _Column)), 0)
        rows = [
            function(*[int(one[at]) if isinstance(one, _Column) else one for one in arguments]) for at in range(count)
        ]
        return np.array(rows).T.view(_Column) if count else function(*arguments)

    return all_rows
