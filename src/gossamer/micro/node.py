"""An operator of a subgraph as data: what its functions see, whatever kernel they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.ops.op_def import OpDef


class NodeData:
    """The operands of an operator by tensor index, its options, and what its prepare made."""

    def __init__(
        self,
        index: int,
        op: OpDef,
        version: int,
        inputs: Sequence[int],
        outputs: Sequence[int],
        intermediates: Sequence[int],
        options: Any,
        custom_options: bytes,
    ) -> None:
        self.index = index
        self.op = op
        self.version = version
        self.inputs = inputs
        self.outputs = outputs
        self.intermediates = intermediates
        self.options = options
        self.custom_options = custom_options
        self.data: Any = None
        self.user_data: Any = None
        self.constants: dict[int, Any] = {}

    @property
    def name(self) -> str:
        """The builtin operator, or the custom name."""
        return self.op.name
