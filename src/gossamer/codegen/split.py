"""What nobody has compiled, in parts that ship: a kernel and its epilogue, an expression and its functions.

A map of many functions is as many maps, each of which does what the function does in the one; so the bits stay.
"""

from __future__ import annotations

from gossamer.codegen.elements import ELEMENT_OF, element
from gossamer.codegen.expression import IDENTITY, Expression, parameters_of, type_of
from gossamer.codegen.graph import MAP, Kernel
from gossamer.schema.enums import TensorType
from gossamer.views import Buffer, View, dense_strides

TYPES: dict[str, TensorType] = {name: type for type, name in ELEMENT_OF.items()}


def split(kernel: Kernel) -> list[Kernel]:
    """Kernels that do in turn what one does; nothing if it is of one piece. What lies between them has new buffers."""
    if kernel.kind == MAP:
        return _Functions(kernel).maps()
    if kernel.epilogue == IDENTITY or kernel.regions:
        return []
    # What the epilogue is applied to is written where the result will be, if nobody reads what is there.
    y = kernel.y
    if any(view.buffer is y.buffer for view in kernel.operands):
        y = Buffer(y.shape, y.type).view()
    own = kernel.operands[: kernel.arity]
    plain = Kernel(kernel.kind, own, y, kernel.settings, IDENTITY, kernel.arity, kernel.origin)
    map = Kernel(MAP, [y, *kernel.extras], kernel.y, None, kernel.epilogue, 1, kernel.origin)
    return [plain, map]


class _Functions:
    """The maps of single functions that a map of an expression is."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._types = [ELEMENT_OF[view.type] for view in kernel.operands]
        self._tables = parameters_of(kernel.epilogue)
        self._known: dict[Expression, View] = {}
        self._maps: list[Kernel] = []

    def maps(self) -> list[Kernel]:
        """All of them; nothing if it is one, whose types need no conversion."""
        kernel, whole = self._kernel, self._kernel.epilogue
        if isinstance(whole, int):
            return []
        written = ELEMENT_OF[kernel.y.type]
        if whole[0] == f"to{written}":
            # A conversion is what writing another type is.
            self._add(IDENTITY, [self._value(whole[1])], kernel.y)
        elif type_of(whole, self._types) == written:
            self._apply(whole, kernel.y)
        else:
            self._add(IDENTITY, [self._value(whole)], kernel.y)
        # One that reads its operands in another order is itself again, in this one.
        return self._maps if len(self._maps) > 1 or self._maps[0].epilogue != whole else []

    def _value(self, part: Expression) -> View:
        """What a part of the expression is, as a tensor of the type that it is computed in."""
        if isinstance(part, int):
            view, type = self._kernel.operands[part], self._types[part]
            computed = element(type).computed
            if part in self._tables or computed == type:
                return view
            if part not in self._known:
                self._known[part] = self._add(IDENTITY, [view], self._between([view], computed))
            return self._known[part]
        if part not in self._known:
            if part[0].startswith("to") and part[0][2:] in TYPES:
                x = self._value(part[1])
                self._known[part] = self._add(IDENTITY, [x], self._between([x], part[0][2:]))
            else:
                self._known[part] = self._apply(part, None)
        return self._known[part]

    def _apply(self, call: tuple[object, ...], y: View | None) -> View:
        function, *arguments = call
        views = [self._value(argument) for argument in arguments]  # type: ignore[arg-type]
        tensors = [view for view, of in zip(views, arguments, strict=True) if of not in self._tables]
        if y is None:
            y = self._between(tensors, type_of(call, self._types))
        return self._add((function, *range(len(views))), views, y)

    def _between(self, views: list[View], type: str) -> View:
        """A new tensor that is as large as what it is computed of; its view is as large as the result."""
        shape = self._kernel.y.shape
        small = tuple(
            [
                size if any(view.strides[axis] for view in views) or axis == len(shape) - 1 else 1
                for axis, size in enumerate(shape)
            ]
        )
        buffer = Buffer(small, TYPES[type])
        strides = [
            0 if own != size else step for own, size, step in zip(small, shape, dense_strides(small), strict=True)
        ]
        return View(buffer, shape, tuple(strides), 0)

    def _add(self, expression: Expression, views: list[View], y: View) -> View:
        """A map; one that fills a small tensor is as small."""
        target, operands = y, views
        if y is not self._kernel.y and y.buffer.shape != y.shape:
            target = y.buffer.view()
            operands = [View(view.buffer, target.shape, view.strides, view.offset) for view in views]
        self._maps.append(Kernel(MAP, operands, target, None, expression, 1, self._kernel.origin))
        return y
