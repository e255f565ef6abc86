"""Which types a model of integers has, and what of it stays float."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from gossamer.convert.graph import Node
from gossamer.schema.enums import TensorType


class Scheme(NamedTuple):
    """The types of a mode. ``only``: nothing may stay float but the interface. ``keep``: operators, and the names of
    their outputs, that stay float."""

    activations: TensorType
    biases: TensorType
    only: bool = False
    keep: Container[str] = ()
    per_channel: bool = True

    def keeps(self, node: Node) -> bool:
        """Whether an operator is one of those that stay float."""
        return node.op in self.keep or any(value.name in self.keep for value in node.outputs)


INT8 = Scheme(TensorType.INT8, TensorType.INT32)
INT16X8 = Scheme(TensorType.INT16, TensorType.INT64)
