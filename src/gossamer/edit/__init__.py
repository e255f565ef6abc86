"""Models changed: parts of them, several as one, other names, types, sizes, operators, ends; what they say of themselves.

Each function takes a model (a `gossamer.model.Model`, the path of a file, or bytes) and returns another one, which
makes sense as `gossamer.model.verify_model` has it; or the same one if nothing changed, which is then written as it was
read, byte for byte. ``bytes(model)`` is its file, ``model.save(path)`` writes it.
"""

from gossamer.edit.cut import cut, split
from gossamer.edit.merge import merge, side_by_side

__all__ = ["cut", "merge", "side_by_side", "split"]
