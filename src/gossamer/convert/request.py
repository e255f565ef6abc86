"""What somebody wants converted, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gossamer.convert.graph import Signature
from gossamer.convert.report import Report
from gossamer.errors import ConvertError
from gossamer.records import field, record

BUILTINS, SELECT = "TFLITE_BUILTINS", "SELECT_TF_OPS"

Progress = Callable[[str, int, int], None]
"""Is told what is done, how many of how many."""


@record
class Request:
    """The arguments of `gossamer.convert.convert` that a front end looks at.

    ``shapes``: sizes of inputs by name, ``None`` for those that stay open; ``batch``: the first size of all that leave
    it open. ``inputs`` and ``outputs`` name tensors where a source does not say which those are.
    """

    target_ops: tuple[str, ...] = (BUILTINS,)
    signature_keys: Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    shapes: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    batch: int | None = None
    allow_custom_ops: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None

    @property
    def allows_builtins(self) -> bool:
        """Whether builtin operators may be used; if not, all that can be is left to Flex."""
        return BUILTINS in self.target_ops

    @property
    def allows_flex(self) -> bool:
        """Whether TensorFlow's own operators may be used."""
        return SELECT in self.target_ops

    def given_shape(self, name: str, rank: int | None = None) -> Sequence[int | None] | None:
        """The shape that is asked for an input. Raises `ConvertError` if it has another number of dimensions."""
        shape = self.shapes.get(name)
        if shape is not None and rank is not None and len(shape) != rank:
            raise ConvertError(f"input {name!r} has {rank} dimensions, the shape {list(shape)} has {len(shape)}")
        return shape


class Imported(NamedTuple):
    """What a front end gives: the graphs, and what became of the source's operators so far."""

    signatures: list[Signature]
    report: Report
