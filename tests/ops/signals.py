"""Cases of the operators of TFLite Micro's signal library.

What is expected was computed by TFLite Micro itself, the package tflite-micro of October 2026: each case as a model of
one operator, invoked ``calls`` times with the same inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.schema import flexbuffers
from tests.ops.cases import Case, Operand


def signal(id: str, inputs: Sequence[Operand], outputs: Sequence[Operand], *, calls: int = 1, **options: Any) -> Case:
    """A case with these custom options, which must come out to the last bit."""
    return Case(id, inputs, outputs, custom_options=flexbuffers.dumps(options), rtol=0, atol=0, calls=calls)
