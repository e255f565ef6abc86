"""LLVM IR as text: modules, functions, and values that know their type, fold integer constants and carry arithmetic.

A kernel is written with Python operators on `Value`; control flow is a `with` statement:

    module = Module(target)
    f = module.driver()
    arguments = f.arguments(BLOCK)
    with f.loop(0, arguments.rows) as rows:
        p = f.offset(arguments.x, rows.index * arguments.x_row)

Every loop tests its bound before the first iteration. Strides and offsets are in bytes, counts in elements. Nothing
here imports LLVM: the text is compiled elsewhere, and can be compared, hashed and kept.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Union

from gossamer.codegen.spec import ENTRY, ArgumentBlock
from gossamer.records import field, record
from gossamer.targets import Target


@record(frozen=True)
class Type:
    """A first-class LLVM type: an element, and how many of them make a vector (1: no vector)."""

    element: str
    lanes: int = 1
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>")

    def __str__(self) -> str:
        return self.text

    @property
    def is_float(self) -> bool:
        """Whether arithmetic on it is floating point."""
        return self.element in ("half", "float", "double")

    @property
    def scalar(self) -> Type:
        """The type of one element."""
        return vector(self.element, 1)

    @property
    def suffix(self) -> str:
        """How the names of intrinsics spell this type: ``v16f32``."""
        element = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(self.element, self.element)
        return element if self.lanes == 1 else f"v{self.lanes}{element}"

    def with_element(self, element: str) -> Type:
        """As many lanes of another element."""
        return vector(element, self.lanes)


@cache
def vector(element: str, lanes: int) -> Type:
    """The type of ``lanes`` elements."""
    return Type(element, lanes)


I32, I64, F32, PTR = (vector(element, 1) for element in ("i32", "i64", "float", "ptr"))
_FEW = 8
"""Elements that are left of the last vector, where there are no masks: so many at a time, then one."""

BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}


class Value:
    """An SSA value or a constant. Operators emit instructions into the function that the value belongs to."""

    __slots__ = ("function", "text", "type")

    def __init__(self, function: Function, type: Type, text: str) -> None:
        self.function = function
        self.type = type
        self.text = text

    def __str__(self) -> str:
        return f"{self.type} {self.text}"

    @property
    def constant(self) -> int | None:
        """The number, if this is an integer constant."""
        return None if self.text[0] == "%" or self.type is not I64 else int(self.text)

    def __add__(self, other: Operand) -> Value:
        return self.function.binary("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return self.function.binary("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.function.binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.function.binary("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.function.binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self.function.binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.function.binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.function.binary("div", other, self)

    def __floordiv__(self, other: Operand) -> Value:
        """Of integers, unsigned."""
        return self.function.binary("udiv", self, other)

    def __mod__(self, other: Operand) -> Value:
        """Of integers, unsigned."""
        return self.function.binary("urem", self, other)

    def __and__(self, other: Operand) -> Value:
        return self.function.binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.function.binary("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return self.function.binary("xor", self, other)

    def __lshift__(self, other: Operand) -> Value:
        return self.function.binary("shl", self, other)

    def __neg__(self) -> Value:
        if self.type.is_float:
            return self.function.emit(self.type, f"fneg {self}")
        return self.function.binary("sub", 0, self)


# Read when this module is imported, so not the | of annotations.
Operand = Union[Value, int, float]  # noqa: UP007


class Loop:
    """A loop in the making: its index, and the values that iterations hand on."""

    def __init__(self, index: Value, values: list[Value]) -> None:
        self.index = index
        self.values = values
        self.results = values
        """What the last iteration handed on (the initial values if there was none); after the ``with`` block."""
        self.goes_on: Value | None = None
        """Set inside, a truth without which there is no further iteration."""

    def hand_on(self, values: Sequence[Value]) -> None:
        """Replace the carried values for the next iteration."""
        self.values = list(values)


class Arguments:
    """The words of an argument block, loaded, as attributes."""

    def __init__(self, values: dict[str, Value]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Value:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"The argument block has {', '.join(self._values)}; no {name}.") from None


class Part:
    """The lanes of a vector that are in use: all of them, or the first ``count``. Loads and stores touch no other."""

    def __init__(self, function: Function, type: Type, count: Value | None = None) -> None:
        self.function = function
        self.type = type
        self.count = count
        self._masks: dict[str, str] = {}
        if count is not None:
            self._count = count
            narrow = function.emit(I32, f"trunc {count} to i32")
            self._limit = function.splat(narrow, type.lanes)

    def constant(self, number: float) -> Value:
        """A number in every lane."""
        return self.function.constant(self.type, number)

    def splat(self, x: Value) -> Value:
        """A scalar in every lane."""
        return self.function.splat(x, self.type.lanes)

    def load(self, pointer: Value, fill: float = 0.0, element: str = "") -> Value:
        """The elements at ``pointer``, of another type if told so; ``fill`` in the lanes that are not in use."""
        f, type = self.function, self.type.with_element(element or self.type.element)
        if self.count is None:
            return f.load(type, pointer)
        function = f"llvm.masked.load.{type.suffix}.p0"
        mask = type.with_element("i1")
        f.module.declare(f"declare {type} @{function}(ptr, {mask}, {type})")
        align = BYTES[type.element]
        return f.emit(
            type, f"call {type} @{function}(ptr align {align} {pointer.text}, {self.mask}, {f.constant(type, fill)})"
        )

    def store(self, value: Value, pointer: Value) -> None:
        """Write the lanes in use."""
        f, type = self.function, value.type
        if self.count is None:
            f.store(value, pointer)
            return
        function = f"llvm.masked.store.{type.suffix}.p0"
        mask = type.with_element("i1")
        f.module.declare(f"declare void @{function}({type}, ptr, {mask})")
        f.line(f"call void @{function}({value}, ptr align {BYTES[type.element]} {pointer.text}, {self.mask})")

    def keep(self, value: Value, fill: float) -> Value:
        """``value`` in the lanes in use, ``fill`` in the others."""
        if self.count is None:
            return value
        f = self.function
        return f.emit(value.type, f"select {self.mask}, {value}, {f.constant(value.type, fill)}")

    @property
    def mask(self) -> str:
        # Made again in every block: a vector of i1 that lives across blocks is stored in bytes where the target has no
        # mask registers, and a mask is one or two instructions.
        f = self.function
        if f.block not in self._masks:
            registers = self.type.lanes > f.lanes
            self._masks[f.block] = str(
                self._shifted() if registers and f.target.vector_bits == 512 else self._compared()
            )
        return self._masks[f.block]

    def _compared(self) -> Value:
        lanes = self.type.lanes
        numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
        number = f"<{numbers}>" if lanes > 1 else "0"
        return self.function.emit(
            self.type.with_element("i1"), f"icmp slt {vector('i32', lanes)} {number}, {self._limit.text}"
        )

    def _shifted(self) -> Value:
        # A comparison would be one for each register of 32-bit lanes.
        f, lanes = self.function, self.type.lanes
        word = vector(f"i{lanes}", 1)
        unused = f.emit(I64, f"sub i64 {lanes}, {self._count.text}")
        if word != I64:
            unused = f.emit(word, f"trunc {unused} to {word}")
        bits = f.emit(word, f"lshr {word} -1, {unused.text}")
        mask = self.type.with_element("i1")
        return f.emit(mask, f"bitcast {bits} to {mask}")


class Module:
    """The text of one kernel: its functions and the intrinsics that they call."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.functions: list[Function] = []
        self._declarations: set[str] = set()

    def declare(self, declaration: str) -> None:
        """Have an intrinsic declared."""
        self._declarations.add(declaration)

    def function(self, name: str, *parameters: tuple[Type, str], internal: bool = False) -> Function:
        """A new function; its parameters are `Function.parameters`."""
        function = Function(self, name, parameters, internal)
        self.functions.append(function)
        return function

    def driver(self) -> Function:
        """The entry of a driver: ``void k(ptr args, i64 tid, i64 nt)``."""
        return self.function(ENTRY, (PTR, "args"), (I64, "tid"), (I64, "nt"))

    def microkernel(self, *pointers: str) -> Function:
        """The entry of a microkernel, which takes pointers."""
        return self.function(ENTRY, *((PTR, name) for name in pointers))

    def text(self) -> str:
        """The IR."""
        return "\n".join([*sorted(self._declarations), *(function.text() for function in self.functions)]) + "\n"


class Function:
    """A function in the making, and the instructions that can be appended to it."""

    def __init__(self, module: Module, name: str, parameters: Sequence[tuple[Type, str]], internal: bool) -> None:
        self.module = module
        self.target = module.target
        self.name = name
        self.block = "entry"
        self.parameters = [Value(self, type, f"%{parameter}") for type, parameter in parameters]
        self._linkage = "internal " if internal else ""
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._number = 0

    @property
    def lanes(self) -> int:
        """Floats in a vector register."""
        return self.target.lanes(32)

    @property
    def f32(self) -> Type:
        """A vector of floats as wide as a register."""
        return vector("float", self.lanes)

    @property
    def has_masks(self) -> bool:
        """Whether masked loads and stores are instructions. Elsewhere LLVM makes branches of them."""
        return self.target.triple.startswith("x86_64")

    def text(self) -> str:
        """The definition."""
        parameters = ", ".join(str(parameter) for parameter in self.parameters)
        # What `floats.reciprocal` becomes. The float experiment (Intel, AVX-512) halved a depthwise kernel with SiLU by
        # an estimate and a Newton step; on Zen 4 the estimate makes LOGISTIC a fifth slower than division, with AVX2 a
        # third, so only 512 bits have it.
        estimates = "divf:1,vec-divf:1" if self.target.vector_bits == 512 else "none"
        attributes = f'nounwind "reciprocal-estimates"="{estimates}"'
        head = f"define {self._linkage}void @{self.name}({parameters}) {attributes} {{"
        return "\n".join([head, "entry:", *self._entry, *self._lines, " ret void", "}"])

    # Instructions

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(" " + text)

    def emit(self, type: Type, text: str) -> Value:
        """Append an instruction; its result."""
        self._number += 1
        name = f"%v{self._number}"
        self._lines.append(f" {name} = {text}")
        return Value(self, type, name)

    def integer(self, number: Value | int) -> Value:
        """An i64."""
        return number if isinstance(number, Value) else Value(self, I64, str(number))

    def constant(self, type: Type, number: float) -> Value:
        """A constant in every lane."""
        if type.is_float:
            # LLVM spells a float as the bits of the double that equals it.
            if type.element == "float":
                number = struct.unpack("<f", struct.pack("<f", number))[0]
            text = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
        else:
            text = str(int(number))
        if text in ("0", "0x0000000000000000") and type.lanes > 1:
            return Value(self, type, "zeroinitializer")
        return Value(self, type, text if type.lanes == 1 else f"splat ({type.element} {text})")

    def binary(self, operation: str, a: Operand, b: Operand) -> Value:
        """``add``, ``sub``, ``mul``, ``div`` by the type of the operands; ``udiv``, ``urem`` and bit operations."""
        type = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else I64
        if type is I64:
            x, y = self._number_of(a), self._number_of(b)
            folded = _fold(operation, x, y)
            if folded is not None:
                return self.integer(folded)
            if _leaves_first(operation, y):
                return self._value(type, a)
            if _leaves_first(operation, x) and operation in ("add", "mul"):
                return self._value(type, b)
        left, right = self._value(type, a), self._value(type, b)
        if type.is_float:
            operation = "f" + operation
        elif operation in ("add", "sub", "mul") and type is I64:
            operation += " nsw"
        return self.emit(type, f"{operation} {left}, {right.text}")

    def wrapping(self, operation: str, a: Value, b: Operand) -> Value:
        """``add``, ``sub``, ``mul``, ``shl`` of integers that may overflow, as data may (addresses may not)."""
        return self.emit(a.type, f"{operation} {a}, {self._value(a.type, b).text}")

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c, rounded once."""
        return self.intrinsic("llvm.fma", a, b, c)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """Call an intrinsic that is overloaded on one type, that of its operands and its result."""
        type = operands[0].type
        function = f"@{name}.{type.suffix}"
        types = ", ".join([type.text] * len(operands))
        self.module.declare(f"declare {type} {function}({types})")
        return self.emit(type, f"call {type} {function}({', '.join(map(str, operands))})")

    def compare(self, condition: str, a: Operand, b: Operand) -> Value:
        """``icmp`` or ``fcmp``, by the type of the operands: ``slt``, ``eq``, ``olt``, ``une`` …"""
        type = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else I64
        left, right = self._value(type, a), self._value(type, b)
        instruction = "fcmp" if type.is_float else "icmp"
        return self.emit(type.with_element("i1"), f"{instruction} {condition} {left}, {right.text}")

    def select(self, condition: Value, a: Value, b: Operand) -> Value:
        """a where the condition holds, else b."""
        return self.emit(a.type, f"select {condition}, {a}, {self._value(a.type, b)}")

    def any(self, condition: Value) -> Value:
        """Whether the condition holds in any lane."""
        type = condition.type
        if type.lanes == 1:
            return condition
        self.module.declare(f"declare i1 @llvm.vector.reduce.or.{type.suffix}({type})")
        return self.emit(type.scalar, f"call i1 @llvm.vector.reduce.or.{type.suffix}({condition})")

    def least(self, a: Operand, b: Operand) -> Value:
        """The smaller integer."""
        left, right = self._value(I64, a), self._value(I64, b)
        if left.constant is not None and right.constant is not None:
            return self.integer(min(left.constant, right.constant))
        return self.select(self.compare("slt", left, right), left, right)

    def greatest(self, a: Operand, b: Operand) -> Value:
        """The larger integer."""
        left, right = self._value(I64, a), self._value(I64, b)
        if left.constant is not None and right.constant is not None:
            return self.integer(max(left.constant, right.constant))
        return self.select(self.compare("sgt", left, right), left, right)

    def maximum(self, a: Value, b: Operand) -> Value:
        """a > b ? a : b, lane by lane: b where one of them is NaN. One instruction on x86."""
        right = self._value(a.type, b)
        return self.select(self.compare("ogt", a, right), a, right)

    def minimum(self, a: Value, b: Operand) -> Value:
        """a < b ? a : b, lane by lane: b where one of them is NaN. One instruction on x86."""
        right = self._value(a.type, b)
        return self.select(self.compare("olt", a, right), a, right)

    def at_least(self, x: Value, bound: float) -> Value:
        """x, or the bound where x is below it; NaN stays."""
        return self.maximum(self.constant(x.type, bound), x)

    def at_most(self, x: Value, bound: float) -> Value:
        """x, or the bound where x is above it; NaN stays."""
        return self.minimum(self.constant(x.type, bound), x)

    def bits(self, x: Value, element: str) -> Value:
        """The same bits as another element of the same size."""
        type = x.type.with_element(element)
        return self.emit(type, f"bitcast {x} to {type}")

    def to_float(self, x: Value) -> Value:
        """Integers as floats."""
        type = x.type.with_element("float")
        return self.emit(type, f"sitofp {x} to {type}")

    def splat(self, x: Value, lanes: int | None = None) -> Value:
        """A scalar in every lane of a vector."""
        type = vector(x.type.element, self.lanes if lanes is None else lanes)
        if type.lanes == 1:
            return x
        first = self.emit(type, f"insertelement {type} poison, {x}, i32 0")
        return self.emit(type, f"shufflevector {first}, {type} poison, {vector('i32', type.lanes)} zeroinitializer")

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """The lanes with these numbers of a and b, one after the other; below 0, whatever is easiest."""
        numbers = ", ".join(f"i32 {lane if lane >= 0 else 'poison'}" for lane in lanes)
        return self.emit(
            vector(a.type.element, len(lanes)), f"shufflevector {a}, {b}, <{len(lanes)} x i32> <{numbers}>"
        )

    def widened(self, x: Value, lanes: int) -> Value:
        """A vector of more lanes that begins with those of x, or with the scalar x, the others whatever is easiest."""
        if x.type.lanes > 1:
            return self.shuffle(x, x, [*range(x.type.lanes), *[-1] * (lanes - x.type.lanes)])
        type = vector(x.type.element, lanes)
        return self.emit(type, f"insertelement {type} poison, {x}, i32 0")

    def narrowed(self, x: Value, lanes: int) -> Value:
        """The first lanes of a vector; a scalar if that is one."""
        if lanes > 1:
            return self.shuffle(x, x, range(lanes))
        return self.emit(x.type.scalar, f"extractelement {x}, i32 0")

    def gathered(self, type: Type, pointers: Sequence[Value]) -> Value:
        """The elements at pointers, as the lanes of a vector. Pointers need not be aligned."""
        elements = [self.emit(type, f"load {type}, {pointer}, align 1") for pointer in pointers]
        if len(elements) == 1:
            return elements[0]
        whole = Value(self, vector(type.element, len(elements)), "poison")
        for lane, element in enumerate(elements):
            whole = self.emit(whole.type, f"insertelement {whole}, {element}, i32 {lane}")
        return whole

    def fold(self, combine: Callable[[Value, Value], Value], x: Value) -> Value:
        """Combine the lanes of a vector to a scalar, by halves."""
        while x.type.lanes > 2:
            half = x.type.lanes // 2
            x = combine(self.shuffle(x, x, range(half)), self.shuffle(x, x, range(half, 2 * half)))
        first, second = (self.emit(x.type.scalar, f"extractelement {x}, i32 {lane}") for lane in (0, 1))
        return combine(first, second)

    # Memory

    def offset(self, pointer: Value, bytes: Operand) -> Value:
        """The pointer moved by bytes."""
        return self._move(pointer, bytes, "i8")

    def at(self, pointer: Value, index: Operand, element: str = "float") -> Value:
        """The pointer moved by elements."""
        return self._move(pointer, index, element)

    def load(self, type: Type, pointer: Value) -> Value:
        """The value at a pointer that is aligned to an element."""
        return self.emit(type, f"load {type}, {pointer}, align {BYTES[type.element]}")

    def store(self, value: Value, pointer: Value) -> None:
        """Write a value at a pointer that is aligned to an element."""
        self.line(f"store {value}, {pointer}, align {BYTES[value.type.element]}")

    def broadcast(self, pointer: Value) -> Value:
        """The float at the pointer in every lane."""
        return self.splat(self.load(F32, pointer))

    def prefetch(self, pointer: Value, level: int = 2) -> None:
        """Fetch the line at the pointer into the first-level cache or the second. Never faults."""
        self.module.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.line(f"call void @llvm.prefetch.p0({pointer}, i32 0, i32 {4 - level}, i32 1)")

    def keep_order(self) -> None:
        """No load moves across this point; no instruction results.

        In long unrolled loops LLVM's scheduler moves loads up until registers run out. Between the steps of depth of
        a GEMM this took 12 references to the stack out of the inner loop of 14x2 with two prefetches (112
        multiplications), and all of 9x3, and of 6x4 and 7x3 on NEON. Tiles that are too large still spill (7x4).
        """
        self.line('fence syncscope("singlethread") acq_rel')

    def pinned(self, values: Sequence[Value]) -> list[Value]:
        """The same values in registers, in front of all that is computed of them; no instruction results.

        LLVM's scheduler would rather finish one value after the other.
        """
        register = "w" if self.target.triple.startswith("aarch64") else "v"
        return [self.emit(x.type, f'call {x.type} asm sideeffect "", "={register},0"({x})') for x in values]

    def stack(self, type: Type, count: int, align: int = 8) -> Value:
        """Room for ``count`` values in the frame of the function."""
        self._number += 1
        name = f"%s{self._number}"
        self._entry.append(f" {name} = alloca {type}, i64 {count}, align {align}")
        return Value(self, PTR, name)

    def arguments(self, block: ArgumentBlock, pointer: Value | None = None) -> Arguments:
        """Load the words of the block at a pointer (default: the first parameter)."""
        base = self.parameters[0] if pointer is None else pointer
        types = {"ptr": PTR, "i64": I64}
        return Arguments({name: self.load(types[type], self.offset(base, at)) for name, type, at in block})

    # Control flow

    def call(self, kernel: Value, *pointers: Value) -> None:
        """Call a microkernel through its address."""
        self.line(f"call void {kernel.text}({', '.join(map(str, pointers))})")

    @contextmanager
    def loop(self, start: Operand, stop: Operand, step: Operand = 1, carry: Sequence[Value] = ()) -> Iterator[Loop]:
        """Repeat while the index, from ``start`` in steps, is less than ``stop``.

        ``carry`` are values that change from one iteration to the next: `Loop.values` inside, `Loop.hand_on` at the
        end, `Loop.results` behind. A loop that is known to run once leaves no trace.
        """
        first, end, stride = (self._value(I64, bound) for bound in (start, stop, step))
        turns = _turns(first.constant, end.constant, stride.constant)
        if turns == 1:
            once = Loop(first, list(carry))
            yield once
            once.results = once.values
            return
        number = self._label()
        body, behind = f"loop{number}", f"end{number}"
        before = self.block
        guarded = not turns
        if guarded:
            some = self.compare("slt", first, end)
            self.line(f"br {some}, label %{body}, label %{behind}")
        else:
            self.line(f"br label %{body}")
        self._begin(body)
        index = Value(self, I64, f"%i{number}")
        inside = [Value(self, value.type, f"%c{number}.{at}") for at, value in enumerate(carry)]
        phis = len(self._lines)
        self._lines.append("")
        loop = Loop(index, inside)
        yield loop
        following = self.emit(I64, f"add nsw i64 {index.text}, {stride.text}")
        more = self.compare("slt", following, end)
        if loop.goes_on is not None:
            more = more & loop.goes_on
        last = self.block
        self.line(f"br {more}, label %{body}, label %{behind}")
        lines = [f" {index.text} = phi i64 [ {first.text}, %{before} ], [ {following.text}, %{last} ]"]
        for initial, phi, final in zip(carry, inside, loop.values, strict=True):
            lines.append(f" {phi.text} = phi {phi.type} [ {initial.text}, %{before} ], [ {final.text}, %{last} ]")
        self._lines[phis] = "\n".join(lines)
        self._begin(behind)
        loop.results = loop.values
        if guarded:
            loop.results = [
                self.emit(
                    initial.type,
                    f"phi {initial.type} [ {initial.text}, %{before} ], [ {final.text}, %{last} ]",
                )
                for initial, final in zip(carry, loop.values, strict=True)
            ]

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Do this if the condition holds."""
        number = self._label()
        self.line(f"br {condition}, label %then{number}, label %else{number}")
        self._begin(f"then{number}")
        yield
        self.line(f"br label %else{number}")
        self._begin(f"else{number}")

    @contextmanager
    def share(self, count: Value) -> Iterator[Value]:
        """The share of this thread of ``count`` tasks, one task after the other. In a driver."""
        _, tid, nt = self.parameters
        first, end = (count * tid) // nt, (count * (tid + 1)) // nt
        with self.loop(first, end) as tasks:
            yield tasks.index

    def vectors(
        self,
        count: Value,
        body: Callable[[Value, list[Part], list[Value]], Sequence[Value] | None],
        unroll: int | Sequence[int] = 1,
        carry: Sequence[Value] = (),
        size: int = 4,
        masked: bool = True,
        lanes: int = 0,
    ) -> list[Value]:
        """Walk over ``count`` elements: ``body(offset, parts, carried values)`` for vectors one after the other.

        The offset is the index times ``size``: bytes of floats, unless told otherwise. First ``unroll`` vectors at a
        time (or several such numbers, one after the other: falling powers of 2), then one, then what is left of the
        last: with a mask, or, where the target has none (or ``masked`` is false) and nothing is carried, element by
        element. ``body`` returns the values that it carries; so does this. ``lanes``: elements of a vector, as many as
        a register has floats unless told otherwise.
        """
        carried = list(carry)
        start = self.integer(0)
        lanes = lanes or self.lanes
        whole = vector("float", lanes)
        for number in dict.fromkeys([*([unroll] if isinstance(unroll, int) else unroll), 1]):
            end = count & -(number * lanes)
            with self.loop(start, end, number * lanes, carry=carried) as loop:
                parts = [Part(self, whole) for _ in range(number)]
                loop.hand_on(body(loop.index * size, parts, loop.values) or ())
            carried, start = loop.results, end
        if not carry and not (self.has_masks and masked):
            if lanes > _FEW:
                end = count & -_FEW
                with self.loop(start, end, _FEW) as loop:
                    body(loop.index * size, [Part(self, vector("float", _FEW))], [])
                start = end
            with self.loop(start, count) as loop:
                body(loop.index * size, [Part(self, F32)], [])
            return []
        rest = count & (lanes - 1)
        # A loop of one turn or none: what it carries comes out either way.
        with self.loop(0, rest, lanes, carry=carried) as loop:
            loop.hand_on(body(start * size, [Part(self, whole, rest)], loop.values) or ())
        return loop.results

    # Helpers

    def _value(self, type: Type, operand: Operand) -> Value:
        return operand if isinstance(operand, Value) else self.constant(type, operand)

    def _number_of(self, operand: Operand) -> int | None:
        return operand.constant if isinstance(operand, Value) else int(operand)

    def _move(self, pointer: Value, index: Operand, element: str) -> Value:
        amount = self._value(I64, index)
        if amount.constant == 0:
            return pointer
        return self.emit(PTR, f"getelementptr {element}, {pointer}, {amount}")

    def _label(self) -> int:
        self._number += 1
        return self._number

    def _begin(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self.block = label


def _fold(operation: str, x: int | None, y: int | None) -> int | None:
    if operation == "mul" and 0 in (x, y):
        return 0
    if x is None or y is None or operation not in ("add", "sub", "mul", "and", "shl"):
        return None
    return {"add": x + y, "sub": x - y, "mul": x * y, "and": x & y, "shl": x << y if y >= 0 else 0}[operation]


def _turns(start: int | None, stop: int | None, step: int | None) -> int | None:
    """How often a loop with these bounds runs, if they are known."""
    return None if start is None or stop is None or step is None else max(0, -((start - stop) // step))


def _leaves_first(operation: str, y: int | None) -> bool:
    return y is not None and (operation, y) in (("add", 0), ("sub", 0), ("mul", 1), ("udiv", 1), ("shl", 0))
