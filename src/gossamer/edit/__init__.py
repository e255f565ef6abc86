"""Models changed: parts, several as one, other names, types, sizes, operators and ends, what they say of themselves.

Each function takes a model (a `gossamer.model.Model`, the path of a file, or bytes) and returns another one, which
makes sense as `gossamer.model.verify_model` has it; or the same one if nothing changed, which is then written as it was
read, byte for byte. ``bytes(model)`` is its file, ``model.save(path)`` writes it. All raise `gossamer.EditError` for
what cannot be done, and `gossamer.ModelError` for a model that is damaged.

>>> model = gossamer.edit.rename("digits.tflite", {"image": "picture"})
>>> gossamer.Interpreter(model_content=bytes(model))
<Interpreter: picture float32[1, 8, 8, 1] -> probabilities float32[1, 10], not allocated>
"""

from gossamer.edit.builder import Builder
from gossamer.edit.cut import cut, split
from gossamer.edit.describe import describe, sign, unsign
from gossamer.edit.ends import BOXES, append, argmax, nms, normalize, prepend, resize, softmax, top_k
from gossamer.edit.merge import merge, side_by_side
from gossamer.edit.operators import delete, insert, replace
from gossamer.edit.rename import rename
from gossamer.edit.retype import retype
from gossamer.edit.shapes import batch, reshape
from gossamer.edit.strip import strip

__all__ = [
    "BOXES",
    "Builder",
    "append",
    "argmax",
    "batch",
    "cut",
    "delete",
    "describe",
    "insert",
    "merge",
    "nms",
    "normalize",
    "prepend",
    "rename",
    "replace",
    "reshape",
    "resize",
    "retype",
    "side_by_side",
    "sign",
    "softmax",
    "split",
    "strip",
    "top_k",
    "unsign",
]
