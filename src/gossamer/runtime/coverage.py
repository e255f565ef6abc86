"""Which operators of a model run on the reference kernels, in NumPy, and why: what makes a model slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gossamer.runtime.arenas import called_subgraphs
from gossamer.runtime.subgraph import Subgraph

SLOWER = "30 to 3,000 times"
"""How much more time the reference kernels take than machine code: for eight of ten models, 170 times for half of them.

Measured with a thread on Zen 4 (AVX-512 VNNI), with 39 networks of 40 KB to 100 MB, floats and integers."""

_SHOWN = 3
"""Reasons that are told, those of most operators first."""


class Coverage(NamedTuple):
    """``operators``: how many run. ``left``: by operator and reason, how many of them on the reference kernels."""

    operators: int
    left: Counter[tuple[str, str]]

    def plain(self) -> dict[str, Any]:
        """The same as plain values."""
        left = [
            {"operator": name, "reason": reason, "count": count} for (name, reason), count in self.left.most_common()
        ]
        return {"operators": self.operators, "on_reference_kernels": self.left.total(), "reasons": left}

    def sentences(self, of: str = "") -> str:
        """All of it for people; nothing if all is machine code. ``of``: which model."""
        count, reasons = self.left.total(), Counter[str]()
        if not count:
            return ""
        for (_, reason), times in self.left.items():
            reasons[reason] += times
        told = [self._because(reason) for reason, _ in reasons.most_common(_SHOWN)]
        if len(reasons) == 1 and count == self.operators:
            told = [_sentence(*reasons)]
        if len(reasons) > _SHOWN:
            told.append(f"There are {len(reasons) - _SHOWN} more reasons: gossamer inspect --partitions lists them.")
        of = f" of {of}" if of else ""
        verb = "runs" if count == 1 else "run"
        return (
            f"{count:,} of {self.operators:,} operators{of} {verb} on the reference kernels, in NumPy, which take "
            f"{SLOWER} the time of machine code. {' '.join(told)}"
        )

    def _because(self, reason: str) -> str:
        names = [f"{times} {name}" for (name, given), times in self.left.most_common() if given == reason]
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        return f"{shown}: {_sentence(reason)}"


def _sentence(reason: str) -> str:
    return reason if reason.endswith(".") else f"{reason}."


def coverage(subgraphs: Iterable[Subgraph], why_not: str | None = None) -> Coverage:
    """Of subgraphs with delegates on them. ``why_not``: why there is no default delegate, if there is none."""
    made = {subgraph.index: subgraph for subgraph in subgraphs}
    waiting = [index for index, subgraph in made.items() if subgraph.is_entry]
    operators, left = 0, Counter[tuple[str, str]]()
    for index in waiting:
        subgraph = made[index]
        operators += len(subgraph.original_plan)
        left.update(_left(subgraph, why_not))
        # Those that operators call, unless a delegate has taken them together with the operator.
        options = [
            node.options for node in subgraph.planned_nodes if node.delegate is None and node.options is not None
        ]
        called = dict.fromkeys(callee for each in options for callee in called_subgraphs(each))
        waiting += [callee for callee in called if callee in made and callee not in waiting]
    return Coverage(operators, left)


def _left(subgraph: Subgraph, why_not: str | None) -> Iterator[tuple[str, str]]:
    claims = subgraph.delegation.claims
    for node in subgraph.planned_nodes:
        if node.delegate is None:
            reasons = [one.refusals[node.index] for one in claims if node.index in one.refusals]
            yield node.op.name, why_not or next(iter(reasons), "no delegate was asked")
    for kernel, partition in zip(subgraph.delegation.kernels, subgraph.delegation.partitions, strict=True):
        if kernel.failure is not None:
            for info in partition.nodes:
                yield info.op.name, kernel.failure
