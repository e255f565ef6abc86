"""What a model hears in a sound of several windows: its classes over time, and of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.records import record
from gossamer.tools._command import table
from gossamer.tools._labels import Labels, name_of

if TYPE_CHECKING:
    from rich.console import RenderableType

Array = NDArray[Any]


@record(frozen=True)
class Clip:
    """``scores`` [windows, classes] of windows that begin and end at ``times`` (seconds). ``quantity`` says what they
    are; a class's score of the whole is its mean over time, so that a last window of little sound counts little."""

    scores: Array
    times: Sequence[tuple[float, float]]
    labels: Labels
    quantity: str
    top_k: int

    def windows(self) -> list[dict[str, Any]]:
        """For each window when it is and its classes, best first."""
        return [
            {"start_seconds": start, "end_seconds": end, "classes": self._best(scores)}
            for (start, end), scores in zip(self.times, self.scores, strict=True)
        ]

    def data(self) -> dict[str, Any]:
        """``classes`` of the whole by falling mean score, with the greatest of each and when that is."""
        spans = [end - start for start, end in self.times]
        classes = self._best(np.average(self.scores.astype(np.float64), axis=0, weights=spans))
        for entry in classes:
            at = int(self.scores[:, entry["index"]].argmax())
            entry["peak"] = float(self.scores[at, entry["index"]])
            entry["peak_seconds"] = self.times[at][0]
        return {"classes": classes}

    def show(self) -> RenderableType:
        """A table of the best class of each window, and one of the best classes of the whole."""
        from rich.console import Group

        over_time = [
            (f"{start:.2f}", f"{end:.2f}", best["index"], best["label"], f"{best[self.quantity]:.4f}")
            for (start, end), scores in zip(self.times, self.scores, strict=True)
            for best in self._best(scores)[:1]
        ]
        whole = [
            (
                rank,
                entry["index"],
                entry["label"],
                f"{entry[self.quantity]:.4f}",
                f"{entry['peak']:.4f}",
                f"{entry['peak_seconds']:.2f}",
            )
            for rank, entry in enumerate(self.data()["classes"], 1)
        ]
        return Group(
            table([">from s", ">to s", ">class", "label", f">{self.quantity}"], over_time),
            table([">rank", ">class", "label", f">mean {self.quantity}", ">greatest", ">at s"], whole),
        )

    def _best(self, scores: Array) -> list[dict[str, Any]]:
        order = np.argsort(-scores.astype(np.float64), kind="stable")[: self.top_k]
        return [
            {"index": int(i), "label": name_of(self.labels, int(i)), self.quantity: float(scores[i])} for i in order
        ]
