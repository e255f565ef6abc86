"""TensorFlow's operators in a model, without TensorFlow: what its converter leaves to the Flex delegate.

Nothing of it is imported for a model without them: `gossamer.resolver` asks for `operator` when it meets one.
"""

from __future__ import annotations

from gossamer.flex.operator import operator
from gossamer.flex.user import flex_op

__all__ = ["flex_op", "operator"]
