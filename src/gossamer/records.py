"""Records: dataclasses that are quick to define.

``dataclasses`` writes and compiles methods for every class, 0.3 to 1 ms each; with some 130 of them that was 40 % of
what importing the package and loading a first model took (54 ms of imports became 32, and 24 became 15). The methods
of a record are the same functions for all of them. To readers and type checkers a record is a dataclass.

Of a class that is made often, they are written after all: a record of four fields takes 0.25 us then, not 1.3.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

OFTEN = 100
"""Records of a class after which its methods are written, which takes as long as 100 of them."""

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import field, replace
else:

    class _Field:
        __slots__ = ("compare", "default", "factory", "init", "repr")

        def __init__(self, default, factory, init, repr, compare):
            self.default, self.factory, self.init, self.repr, self.compare = default, factory, init, repr, compare

    _MISSING = object()

    def field(*, default=_MISSING, default_factory=_MISSING, init=True, repr=True, compare=True):
        """As `dataclasses.field`."""
        return _Field(default, default_factory, init, repr, compare)

    class _Layout:
        """What the methods need to know of a record class."""

        def __init__(self, bases):
            self.fields = {}
            for base in bases:
                self.fields.update(base.fields)

        def finish(self):
            self.names = tuple([name for name, f in self.fields.items() if f.init])
            self.known = frozenset(self.names)
            self.defaults = {name: f.default for name, f in self.fields.items() if f.default is not _MISSING}
            self.factories = [(name, f.factory) for name, f in self.fields.items() if f.factory is not _MISSING]
            given = {name for name, _ in self.factories}
            self.required = tuple([name for name in self.names if name not in self.defaults and name not in given])
            self.compared = tuple([name for name, f in self.fields.items() if f.compare])
            self.shown = tuple([name for name, f in self.fields.items() if f.repr])
            self.made = 0

        def write(self, cls):
            """Give the class methods of its own in the place of those of all records, where it has these."""
            names, own = self.compared, vars(cls)
            if own.get("__hash__") is _hash:
                values = "".join(f"values[{name!r}], " for name in names)
                cls.__hash__ = _written(f"__hash__(self):\n    values = self.__dict__\n    return hash(({values}))")
            if own.get("__eq__") is _eq:
                same = " and ".join([f"mine[{name!r}] == others[{name!r}]" for name in names]) or "True"
                cls.__eq__ = _written(
                    "__eq__(self, other):\n    if other.__class__ is not self.__class__:\n        return NotImplemented"
                    f"\n    mine, others = self.__dict__, other.__dict__\n    return {same}"
                )
            if own.get("__init__") is _init:
                with suppress(SyntaxError):  # of a field without a default behind one that has one
                    cls.__init__ = self._initializer(cls)

        def _initializer(self, cls):
            known = {"_missing": _MISSING}
            known |= {f"_default_{name}": default for name, default in self.defaults.items()}
            known |= {f"_make_{name}": factory for name, factory in self.factories}
            parameters, lines = ["self"], ["_values = self.__dict__"]
            for name in self.fields:
                default = f"_default_{name}" if name in self.defaults else ""
                made = f"_make_{name}()" if f"_make_{name}" in known else ""
                value = default or made
                if name in self.known:
                    default = default or ("_missing" if made else "")
                    parameters.append(f"{name}={default}" if default else name)
                    value = f"{made} if {name} is _missing else {name}" if made else name
                if value:  # else `__post_init__` sets it
                    lines.append(f"_values[{name!r}] = {value}")
            if hasattr(cls, "__post_init__"):
                lines.append("self.__post_init__()")
            body = "\n    ".join(lines)
            return _written(f"__init__({', '.join(parameters)}):\n    {body}", known)

    def _written(text, known=None):
        """The function with this signature and body."""
        known = {} if known is None else known
        exec(f"def {text}", known)
        return known[text.partition("(")[0]]

    def record(cls=None, /, *, frozen=False, eq=True, slots=False):
        """As `dataclasses.dataclass`; ``slots`` changes nothing."""

        def define(cls):
            layout = _Layout([vars(base)["__record__"] for base in cls.__mro__[:0:-1] if "__record__" in vars(base)])
            for name, annotation in cls.__annotations__.items():  # its own, not those of its bases
                if "ClassVar" in str(annotation):
                    continue
                default = cls.__dict__.get(name, _MISSING)
                if isinstance(default, _Field):
                    layout.fields[name] = default
                    if default.default is not _MISSING:
                        setattr(cls, name, default.default)
                    else:
                        delattr(cls, name)
                else:
                    layout.fields[name] = _Field(default, _MISSING, True, True, True)
            layout.finish()
            cls.__record__ = layout
            cls.__match_args__ = layout.names
            own = cls.__dict__
            if "__init__" not in own:
                cls.__init__ = _init
            if "__repr__" not in own:
                cls.__repr__ = _repr
            if eq:
                if "__eq__" not in own:
                    cls.__eq__ = _eq
                if frozen:
                    if own.get("__hash__") is None:
                        cls.__hash__ = _hash
                elif "__hash__" not in own:
                    cls.__hash__ = None
            if frozen:
                cls.__setattr__, cls.__delattr__ = _setattr, _delattr
            return cls

        return define if cls is None else define(cls)

    def replace(instance, /, **changes):
        """As `dataclasses.replace`."""
        values = {name: getattr(instance, name) for name in instance.__record__.names}
        return type(instance)(**{**values, **changes})

    def _init(self, *arguments, **named):
        layout = self.__record__
        layout.made += 1
        if layout.made == OFTEN:
            layout.write(next(cls for cls in type(self).__mro__ if vars(cls).get("__record__") is layout))
        values = self.__dict__
        values.update(layout.defaults)
        for name, factory in layout.factories:
            values[name] = factory()
        names = layout.names
        if len(arguments) > len(names):
            raise TypeError(
                f"{type(self).__name__}.__init__() takes from {1 + len(layout.required)} to {1 + len(names)} "
                f"positional arguments but {1 + len(arguments)} were given"
            )
        values.update(zip(names, arguments))  # noqa: B905 (fewer arguments than names are fine)
        if named:
            if not layout.known.issuperset(named):
                unknown = next(name for name in named if name not in layout.known)
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument {unknown!r}")
            if arguments and not named.keys().isdisjoint(names[: len(arguments)]):
                twice = next(name for name in names[: len(arguments)] if name in named)
                raise TypeError(f"{type(self).__name__}.__init__() got multiple values for argument {twice!r}")
            values.update(named)
        for name in layout.required:
            if name not in values:
                missing = ", ".join(repr(name) for name in layout.required if name not in values)
                raise TypeError(f"{type(self).__name__}.__init__() misses {missing}")
        after = getattr(self, "__post_init__", None)
        if after is not None:
            after()

    def _repr(self):
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__record__.shown)
        return f"{type(self).__qualname__}({shown})"

    def _eq(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        mine, others = self.__dict__, other.__dict__
        return all(mine[name] == others[name] for name in self.__record__.compared)

    def _hash(self):
        values = self.__dict__
        return hash(tuple([values[name] for name in self.__record__.compared]))

    def _setattr(self, name, value):
        raise AttributeError(f"cannot assign to field {name!r}: a {type(self).__name__} does not change")

    def _delattr(self, name):
        raise AttributeError(f"cannot delete field {name!r}: a {type(self).__name__} does not change")


__all__ = ["field", "record", "replace"]
