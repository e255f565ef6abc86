"""Element types: how they lie in memory, what arithmetic they have in registers, and how one becomes another.

bool is a byte in memory and a mask in registers. float16 and bfloat16 are computed in float32, to which they are
widened when they are loaded; so an expression knows neither. complex64 is an integer of the bits of both its parts.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from gossamer.codegen.ir import Value
from gossamer.errors import CompileError
from gossamer.schema.enums import TensorType

Kind = Literal["float", "double", "signed", "unsigned", "bool", "complex"]


class Element(NamedTuple):
    """An element type."""

    memory: str
    """LLVM's name of what is loaded and stored."""
    bits: int
    kind: Kind
    register: str
    """LLVM's name of what is computed with."""
    computed: str
    """The element type that it is in expressions."""


ELEMENTS: dict[str, Element] = {
    "f32": Element("float", 32, "float", "float", "f32"),
    "f16": Element("half", 16, "float", "float", "f32"),
    "bf16": Element("i16", 16, "float", "float", "f32"),
    "f64": Element("double", 64, "double", "double", "f64"),
    **{f"i{bits}": Element(f"i{bits}", bits, "signed", f"i{bits}", f"i{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": Element(f"i{bits}", bits, "unsigned", f"i{bits}", f"u{bits}") for bits in (8, 16, 32, 64)},
    "bool": Element("i8", 8, "bool", "i1", "bool"),
    "c64": Element("i64", 64, "complex", "i64", "c64"),
}
"""All of them, by name."""

ELEMENT_OF: dict[TensorType, str] = {
    TensorType.FLOAT32: "f32",
    TensorType.FLOAT16: "f16",
    TensorType.BFLOAT16: "bf16",
    TensorType.FLOAT64: "f64",
    TensorType.INT8: "i8",
    TensorType.INT16: "i16",
    TensorType.INT32: "i32",
    TensorType.INT64: "i64",
    TensorType.UINT8: "u8",
    TensorType.UINT16: "u16",
    TensorType.UINT32: "u32",
    TensorType.UINT64: "u64",
    TensorType.BOOL: "bool",
    TensorType.COMPLEX64: "c64",
}
"""The names of those that tensors have."""


def element(name: str) -> Element:
    """The element type of this name. Raises `CompileError` if there is none."""
    found = ELEMENTS.get(name)
    if found is None:
        raise CompileError(f"An element type is one of {', '.join(ELEMENTS)}, got {name!r}.")
    return found


def loaded(value: Value, name: str) -> Value:
    """What has been loaded, as expressions know it."""
    f, type = value.function, value.type
    if name == "bool":
        return f.compare("ne", value, 0)
    if name == "f16":
        return f.emit(type.with_element("float"), f"fpext {value} to {type.with_element('float')}")
    if name == "bf16":
        wide = type.with_element("i32")
        return f.bits(f.emit(wide, f"zext {value} to {wide}") << 16, "float")
    return value


def stored(value: Value, name: str) -> Value:
    """A value as expressions know it, as it is stored."""
    f, type = value.function, value.type
    if name == "bool":
        return f.emit(type.with_element("i8"), f"zext {value} to {type.with_element('i8')}")
    if name == "f16":
        return f.emit(type.with_element("half"), f"fptrunc {value} to {type.with_element('half')}")
    if name == "bf16":
        # To nearest even; a NaN keeps its sign and becomes quiet.
        bits = f.bits(value, "i32")
        high = f.emit(bits.type, f"lshr {bits}, {f.constant(bits.type, 16).text}")
        rounded = f.wrapping("add", bits, f.wrapping("add", high & 1, 0x7FFF))
        rounded = f.emit(bits.type, f"lshr {rounded}, {f.constant(bits.type, 16).text}")
        rounded = f.select(f.compare("uno", value, value), high | 0x40, rounded)
        return f.emit(type.with_element("i16"), f"trunc {rounded} to {type.with_element('i16')}")
    return value


def convert(value: Value, source: str, target: str) -> Value:
    """What CAST makes of values: floats become integers by truncation, saturated, NaN the greatest one; integers wrap;
    bool is whether a number is not 0. A complex number is its
    real part."""
    source, target = element(source).computed, element(target).computed
    if source == target:
        return value
    f = value.function
    from_, to = ELEMENTS[source], ELEMENTS[target]
    if from_.kind == "complex":
        return convert(parts(value)[0], "f32", target)
    if to.kind == "complex":
        real = convert(value, source, "f32")
        return joined(real, f.constant(real.type, 0.0))
    type = value.type.with_element(to.register)
    if to.kind == "bool":
        return f.compare("une" if value.type.is_float else "ne", value, 0)
    if value.type.is_float:
        if type.is_float:
            return f.emit(type, f"{'fpext' if to.bits > from_.bits else 'fptrunc'} {value} to {type}")
        return _truncated(value, to)
    signed = from_.kind == "signed"
    if type.is_float:
        return f.emit(type, f"{'sitofp' if signed else 'uitofp'} {value} to {type}")
    if from_.kind != "bool" and to.bits == from_.bits:
        return value
    if from_.kind != "bool" and to.bits < from_.bits:
        return f.emit(type, f"trunc {value} to {type}")
    return f.emit(type, f"{'sext' if signed else 'zext'} {value} to {type}")


def parts(value: Value) -> tuple[Value, Value]:
    """The real and the imaginary part of complex numbers."""
    f, words = value.function, value.type.with_element("i32")
    high = f.wrapping("lshr", value, f.constant(value.type, 32))
    real, imaginary = (f.bits(f.emit(words, f"trunc {part} to {words}"), "float") for part in (value, high))
    return real, imaginary


def joined(real: Value, imaginary: Value) -> Value:
    """Complex numbers of their parts."""
    f, type = real.function, real.type.with_element("i64")
    low, high = (f.emit(type, f"zext {f.bits(part, 'i32')} to {type}") for part in (real, imaginary))
    return low | (high << 32)


def _truncated(value: Value, to: Element) -> Value:
    """Floats as integers. LLVM leaves undefined what does not fit, so nothing of that kind reaches it."""
    f = value.function
    signed = to.kind == "signed"
    low, end = (-(2.0 ** (to.bits - 1)), 2.0 ** (to.bits - 1)) if signed else (0.0, 2.0**to.bits)
    instruction = "fptosi" if signed else "fptoui"
    bounded = f.maximum(value, low)  # NaN becomes the bound, and is replaced below
    digits = 53 if value.type.element == "double" else 24
    if to.bits < digits:
        # The greatest integer is a float: NaN becomes it too. Instructions convert to 32 bits.
        bounded = f.maximum(f.minimum(value, end - 1), low)
        wide = value.type.with_element("i32" if to.bits < 32 else to.register)
        whole = f.emit(wide, f"{instruction} {bounded} to {wide}")
        narrow = wide.with_element(to.register)
        return whole if narrow == wide else f.emit(narrow, f"trunc {whole} to {narrow}")
    fits = f.compare("olt", value, end)
    type = value.type.with_element(to.register)
    inside = f.select(fits, bounded, 0.0)
    whole = f.emit(type, f"{instruction} {inside} to {type}")
    return f.select(fits, whole, int(end) - 1)
