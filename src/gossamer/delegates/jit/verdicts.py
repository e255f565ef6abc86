"""What is known of operators whose machine code has been compared with what they say that they are (`checking`)."""

from __future__ import annotations

import zlib
from typing import Any
from weakref import WeakKeyDictionary

from gossamer.delegates.delegate import NodeInfo
from gossamer.ops.op_def import OpDef

AGREES = ""

_verdicts: WeakKeyDictionary[OpDef, dict[Any, str]] = WeakKeyDictionary()


def _key(node: NodeInfo) -> Any:
    """What machine code of an operator depends on."""
    operands: list[Any] = []
    for position, tensor in enumerate(node.inputs):
        value = None if tensor is None else node.constant(position)
        check = None if value is None or value.dtype == object else zlib.crc32(value.tobytes())
        operands.append(None if tensor is None else (tensor.type, tensor.shape, check))
    return node.version, bytes(node.custom_options), tuple(operands), tuple([tensor.type for tensor in node.outputs])


def verdict(node: NodeInfo) -> str | None:
    """Why the machine code of a node is not to run, or `AGREES`; ``None`` if nobody has looked yet."""
    return _verdicts.get(node.op, {}).get(_key(node))


def settle(node: NodeInfo, found: str) -> None:
    """Say it, for all nodes of this operator, with these types, shapes, options and constants."""
    _verdicts.setdefault(node.op, {})[_key(node)] = found
