"""What became of every operator of a source, and what cannot be converted: all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gossamer.convert.export import graphs_of
from gossamer.convert.graph import Graph, Origin, Refused, Signature
from gossamer.errors import ConvertError, GossamerError

MOST_SHOWN = 20
"""Refused operators that an error lists."""


class Unavailable(NamedTuple):
    """Stands for what a refused operator would have given, so that the rest can be looked at."""

    origin: Origin


class Entry(NamedTuple):
    """An operator of the source: the operators that it became (none if it was folded, or nobody needs it), or why not.

    ``operators`` are names, each once, in the order of execution.
    """

    origin: Origin
    operators: tuple[str, ...]
    refused: str = ""
    note: str = ""


class RefusedError(ConvertError):
    """Operators that cannot be converted, all of them: ``entries`` has each with the reason."""

    def __init__(self, message: str, entries: Sequence[Entry]) -> None:
        super().__init__(message)
        self.entries = list(entries)


class Report:
    """Notes of one conversion. ``progress`` is told how many of about ``total`` operators have been looked at."""

    def __init__(self, progress: Callable[[str, int, int], None] | None = None, total: int = 0) -> None:
        self.progress = progress
        self.total = total
        self.origins: dict[Origin, None] = {}
        self.refused: dict[Origin, str] = {}
        self.notes: dict[Origin, str] = {}
        self.entries: list[Entry] = []

    @contextmanager
    def lowering(self, graph: Graph, origin: Origin) -> Iterator[None]:
        """Around the lowering of an operator: what is added to the graph stands for it, what is refused is noted.

        Whoever uses it finds afterwards in ``refused`` whether it was.
        """
        self.origins[origin] = None
        if self.progress is not None:
            self.progress("operators", len(self.origins), max(self.total, len(self.origins)))
        with graph.at(origin):
            try:
                yield
            except Refused as error:
                self.refused.setdefault(origin, str(error))
            except GossamerError:
                raise
            except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
                self.refused.setdefault(origin, f"{type(error).__name__}: {error}")

    def note(self, origin: Origin, text: str) -> None:
        """Something that its user should know."""
        self.notes[origin] = text

    def check(self, what: str) -> None:
        """Raises `RefusedError`, which says all that is refused, if anything is."""
        if not self.refused:
            return
        lines = [f"  {origin.op} {origin.name!r}: {why}" for origin, why in self.refused.items()]
        if len(lines) > MOST_SHOWN:
            lines = [*lines[:MOST_SHOWN], f"  and {len(lines) - MOST_SHOWN} more"]
        count = len(self.refused)
        raise RefusedError(
            f"{what}: {count} of {len(self.origins)} operators cannot be converted:\n" + "\n".join(lines),
            [Entry(origin, (), why) for origin, why in self.refused.items()],
        )

    def finish(self, signatures: Iterable[Signature]) -> None:
        """Note what is left of each operator in the graphs as they are now."""
        became: dict[Origin, dict[str, None]] = {}
        for graph in graphs_of(list(signatures)):
            for node in graph.ordered():
                for origin in node.origins:
                    became.setdefault(origin, {})[node.op] = None
        self.entries = [
            Entry(origin, tuple(became.get(origin, ())), self.refused.get(origin, ""), self.notes.get(origin, ""))
            for origin in self.origins
        ]
