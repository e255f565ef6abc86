"""How a table of the .tflite schema is declared: one class, one line per field, in the order of the published schema.

A declaration is all that the reader, the writer and the verifier know of a table::

    class Conv2DOptions(Table):
        padding: Padding = enum(Padding, i8)
        stride_w: int = i32()
        dilation_w_factor: int = i32(1)

The position of a field is its slot in the FlatBuffers vtable (a union takes two). An instance stores only the fields
that are present in the file; the others read as the default of the schema, which is the attribute of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

if TYPE_CHECKING:
    from gossamer.arrays import NDArray

    Array = NDArray[Any]
else:
    Array = np.ndarray  # numpy.typing takes two milliseconds to import

T = TypeVar("T", bound="Table")


class Scalar:
    """A FlatBuffers scalar: ``code`` is its `struct` code, ``size`` its bytes. Calling it declares a field.

    ``dtype`` is its NumPy type in a file, ``empty`` the empty array that an absent vector of it reads as.
    """

    __slots__ = ("code", "dtype", "empty", "size")

    def __init__(self, code: str, size: int) -> None:
        self.code = code
        self.size = size
        self.dtype = np.dtype("<" + code)
        self.empty: Array = np.empty(0, self.dtype)
        self.empty.flags.writeable = False

    def __call__(self, default: Any = 0) -> Any:
        return Field("scalar", self, default)

    def __repr__(self) -> str:
        return f"Scalar({self.code!r})"


boolean = Scalar("?", 1)
i8 = Scalar("b", 1)
u8 = Scalar("B", 1)
u16 = Scalar("H", 2)
i32 = Scalar("i", 4)
u32 = Scalar("I", 4)
f32 = Scalar("f", 4)
i64 = Scalar("q", 8)
u64 = Scalar("Q", 8)


class Union:
    """The member tables of a FlatBuffers union in order; member ``n`` has type code ``n + 1``, 0 is none."""

    __slots__ = ("codes", "members")

    def __init__(self, *members: type[Table]) -> None:
        self.members = members
        self.codes = {member: code for code, member in enumerate(members, 1)}


class Field:
    """One field: what it holds (``kind``), of which element (``of``), its default, its vtable slot.

    Kinds: ``scalar`` (of a `Scalar`), ``enum`` (of a `Scalar`, converted by ``enum``), ``string``, ``table`` and
    ``tables`` (of a `Table` class), ``union`` (of a `Union`; ``slot`` holds the type code, ``slot + 1`` the table),
    ``strings`` (a vector of texts, read as a tuple), ``numbers`` (a short vector of a `Scalar`, read as a tuple),
    ``array`` (a vector of a `Scalar`, read as a NumPy view), ``data`` (bytes, read as a uint8 view and never copied).
    ``align``: alignment of a vector, in bytes.
    """

    __slots__ = ("align", "default", "enum", "kind", "name", "of", "slot")

    def __init__(self, kind: str, of: Any, default: Any, enum: type | None = None, align: int = 0) -> None:
        self.kind = kind
        self.of = of
        self.default = default
        self.enum = enum
        self.align = align
        self.name = ""
        self.slot = 0

    @property
    def slots(self) -> int:
        """Number of vtable slots that the field takes."""
        return 2 if self.kind == "union" else 1

    def __get__(self, instance: Table | None, owner: type[Table]) -> Any:
        owner.FIELDS  # noqa: B018 - the first look declares the table, and its default replaces this field
        return self.default


def enum(enumeration: type, scalar: Scalar, default: int = 0) -> Any:
    """A scalar whose known values become members of ``enumeration``; unknown ones stay ``int``."""
    known: Callable[[int], Any] = enumeration
    return Field("enum", scalar, known(default), enum=enumeration)


def string() -> Any:
    """UTF-8 text; absent reads as the empty string."""
    return Field("string", None, "")


def strings() -> Any:
    """A vector of texts, read as a tuple."""
    return Field("strings", None, ())


def table(cls: type[Table]) -> Any:
    """A single table, or ``None``."""
    return Field("table", cls, None)


def vector(cls: type[Table]) -> Any:
    """A vector of tables, read as a tuple."""
    return Field("tables", cls, ())


def union(members: Union | Callable[[], Union]) -> Any:
    """One table of the union's members, or ``None``. A function of the union is called when the table is first used."""
    return Field("union", members, None)


def numbers(scalar: Scalar, align: int = 0) -> Any:
    """A short vector of scalars, read as a tuple."""
    return Field("numbers", scalar, (), align=align)


def array(scalar: Scalar) -> Any:
    """A vector of scalars, read as a read-only NumPy view of the file."""
    return Field("array", scalar, scalar.empty)


def data(align: int = 0) -> Any:
    """A vector of bytes, read as a read-only uint8 view of the file."""
    return Field("data", u8, u8.empty, align=align)


class _Declared:
    """Stands for ``FIELDS`` and ``FIELD`` until a table is first used: declaring all 180 at import would be slow."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Table | None, owner: type[Table]) -> Any:
        if owner is Table:  # to declare it would hide this from all others
            return () if self.name == "FIELDS" else {}
        _declare(owner)
        return vars(owner)[self.name]


def _declare(cls: type[Table]) -> None:
    """Gives the fields of a table their names and slots, and the class its defaults as plain attributes."""
    fields = [field for base in cls.__bases__ if base is not Table and issubclass(base, Table) for field in base.FIELDS]
    slot = sum(field.slots for field in fields)
    for name, field in list(vars(cls).items()):
        if isinstance(field, Field):
            field.name, field.slot = name, slot
            of = field.of
            if field.kind == "union" and not isinstance(of, Union):
                field.of = of()
            slot += field.slots
            fields.append(field)
            setattr(cls, name, field.default)
    cls.FIELDS = tuple(fields)
    cls.FIELD = {field.name: field for field in fields}


class Table:
    """A stored table: immutable, compared by value, made by the reader or with keyword arguments.

    Raises `TypeError` for a field that the table does not have, `AttributeError` when assigned to.
    """

    if TYPE_CHECKING:
        FIELDS: ClassVar[tuple[Field, ...]]
        FIELD: ClassVar[dict[str, Field]]
    else:
        FIELDS = _Declared("FIELDS")
        FIELD = _Declared("FIELD")

    unknown_slots: tuple[int, ...] = ()
    """Vtable slots of fields from a newer schema that the reader found in the file and left out."""

    unknown_members: Mapping[str, int] = MappingProxyType({})
    """Type codes of union members from a newer schema, by field; the field itself reads ``None``."""

    def __init_subclass__(cls) -> None:
        if cls.__base__ is not Table:  # or the fields of the parent would be taken for its own
            cls.FIELDS = _Declared("FIELDS")  # type: ignore[assignment]
            cls.FIELD = _Declared("FIELD")  # type: ignore[assignment]

    def __init__(self, **values: Any) -> None:
        for name in values:
            if name not in self.FIELD:
                raise TypeError(
                    f"{type(self).__name__} has no field {name!r}; it has {', '.join(self.FIELD) or 'none'}"
                )
        self.__dict__.update(values)

    def has(self, name: str) -> bool:
        """Whether the field is present, even if it is empty or equal to its default."""
        return name in self.__dict__

    def replace(self: T, **changes: Any) -> T:
        """A copy with some fields changed. Raises `TypeError` for a field that the table does not have."""
        present = {name: value for name, value in self.__dict__.items() if name in self.FIELD}
        return type(self)(**{**present, **changes})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use replace({name}=...)")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in self.FIELDS)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_brief(value)}" for name, value in self.__dict__.items() if name in self.FIELD)
        return f"{type(self).__name__}({shown})"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=np.asarray(a).dtype.kind == "f"))
    return bool(a == b)


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"<{value.size} x {value.dtype}>"
    if isinstance(value, tuple) and len(value) > 8:
        return f"<{len(value)} items>"
    return repr(value)
