"""Detection heads: what a detector's last tensors hold, read as boxes.

A file for each family of heads; `read` tries them in order. A head is known by shapes that follow from the size of the
model's picture, by names, by metadata, and by values that cannot be otherwise: the rules stand at the top of each file.
"""

from __future__ import annotations

from gossamer.tools._heads import centernet, listed, mediapipe, posenet, ssd, yolo
from gossamer.tools._heads.head import Found, Outputs

_FAMILIES = (listed, yolo, mediapipe, ssd, centernet, posenet)

HEADS = tuple(name for family in _FAMILIES for name in family.HEADS)
"""Names of heads that can be asked for."""


def read(outputs: Outputs) -> Found | None:
    """The boxes of the first head whose rule holds, or of the one that is asked for.

    Raises `Unclear` if a head is there of which something is missing.
    """
    families = [family for family in _FAMILIES if outputs.asked in family.HEADS] or _FAMILIES
    for family in families:
        found: Found | None = family.read(outputs)
        if found is not None:
            return found
    return None
