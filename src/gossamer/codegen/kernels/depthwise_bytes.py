"""Bytes of a block of channels: how depthwise kernels load those of a pixel, and make and store those of its sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from gossamer.codegen.dots import Byte, packed, rounded
from gossamer.codegen.ir import Arguments, Function, Part, Value, vector


class Spec(Protocol):
    """What a kernel says of the bytes that it makes, as `QuantizedRows` does."""

    @property
    def type(self) -> Byte: ...
    @property
    def width(self) -> int: ...
    @property
    def ragged(self) -> bool: ...
    @property
    def clamps(self) -> bool: ...
    @property
    def saturates(self) -> bool: ...


class Writer:
    """Sums of a pixel, in ``parts`` vectors, to bytes."""

    def __init__(self, f: Function, spec: Spec, parts: int, shape: Arguments) -> None:
        self._f = f
        self._width, self._parts = spec.width, parts
        self._signed, self._clamps = spec.type == "i8", spec.clamps
        self._pixel = Channels(f, spec.width, shape.count if spec.ragged else None)
        self._lanes = spec.width // parts
        element = "i8" if parts == 4 else "i16"
        self._zero_point, self._low, self._high = (
            f.splat(f.emit(vector(element, 1), f"trunc {word} to {element}"), lanes)
            for word, element, lanes in (
                (shape.zero_point, "i16", 2 * self._lanes),
                (shape.low, element, spec.width),
                (shape.high, element, spec.width),
            )
        )
        self._most: Value | None = None
        if spec.saturates:
            self._most = f.splat(f.to_float(shape.high - shape.zero_point), self._lanes)

    def bias(self, panel: Value, part: int) -> Value:
        """What the sums of a part begin with."""
        return self._f.load(vector("i32", self._lanes), self._f.offset(panel, 4 * self._lanes * part))

    def scale(self, panel: Value, part: int) -> Value:
        """The scales of a part."""
        at = 4 * self._width + 4 * self._lanes * part
        return self._f.load(vector("float", self._lanes), self._f.offset(panel, at))

    def level(self, sum: Value, scale: Value) -> Value:
        """A sum times its scale, to the nearest integer."""
        f = self._f
        real = f.emit(scale.type, f"sitofp {sum} to {scale.type}") * scale
        if self._most is not None:
            real = f.minimum(real, self._most)
        return rounded(f, real)

    def store_all(self, pixels: Iterable[tuple[Sequence[Value], Value]]) -> None:
        """The levels of several pixels, as bytes, each at its pointer."""
        f, width = self._f, self._width
        if f.target.vector_bits != 256 or self._parts != 2:
            for levels, to in pixels:
                self.store(levels, to)
            return
        # Two pixels of 16 channels are packed together, 8 channels of each within 128 bits.
        found = list(pixels)
        for first in range(0, len(found), 2):
            two = found[first : first + 2]
            words = [self._words(levels)[0] for levels, _ in two]
            bytes = packed(f, "i8", words[0], words[-1], self._signed)
            if self._clamps:
                type = vector("i8", width)
                low, high = (f.emit(type, f"trunc {x} to {type}") for x in (self._low, self._high))
                low, high = (f.shuffle(x, x, [*range(width), *range(width)]) for x in (low, high))
                bytes = self._bounded(bytes, low, high)
            for number, (_, to) in enumerate(two):
                half = [8 * (number + 2 * run) + byte for run in range(2) for byte in range(8)]
                self._pixel.store(f.shuffle(bytes, bytes, half), to)

    def _words(self, levels: Sequence[Value]) -> list[Value]:
        """Levels plus the zero point, in 16 bits."""
        return [
            self._f.intrinsic("llvm.sadd.sat", packed(self._f, "i16", a, b, True), self._zero_point)
            for a, b in zip(levels[::2], levels[1::2], strict=True)
        ]

    def _bounded(self, bytes: Value, low: Value, high: Value) -> Value:
        sign = "s" if self._signed else "u"
        bytes = self._f.intrinsic(f"llvm.{sign}max", bytes, low)
        return self._f.intrinsic(f"llvm.{sign}min", bytes, high)

    def store(self, levels: Sequence[Value], to: Value) -> None:
        """Plus the zero point, clamped, as bytes."""
        f = self._f
        words = self._words(levels)
        if len(words) == 2:
            bytes = packed(f, "i8", words[0], words[1], self._signed)
            if self._clamps:
                bytes = self._bounded(bytes, self._low, self._high)
            self._pixel.store(bytes, to)
            return
        narrow = words[0].type.with_element("i8")
        if not self._clamps and f.target.vector_bits == 128:  # more are narrowed within 128 bits
            self._pixel.store(f.narrowed(packed(f, "i8", words[0], words[0], self._signed), narrow.lanes), to)
            return
        bounded = f.intrinsic("llvm.smin", f.intrinsic("llvm.smax", words[0], self._low), self._high)
        self._pixel.store(f.emit(narrow, f"trunc {bounded} to {narrow}"), to)


class Channels:
    """A vector of bytes of a pixel, or the first ``count`` of them."""

    def __init__(self, f: Function, width: int, count: Value | None) -> None:
        self._f = f
        self._type = vector("i8", width)
        self._count = count
        self._part: Part | None = None
        self._room: Value | None = None
        if count is not None and f.target.vector_bits == 512:
            self._part = Part(f, self._type, count)
        elif count is not None:
            self._room = f.stack(self._type, 1)
            f.store(f.constant(self._type, 0), self._room)

    def load(self, pointer: Value) -> Value:
        """The bytes at a pointer; those that are not there are 0."""
        if self._part is not None:
            return self._part.load(pointer)
        if self._room is None:
            return self._f.load(self._type, pointer)
        self._move(pointer, self._room)
        return self._f.load(self._type, self._room)

    def store(self, value: Value, pointer: Value) -> None:
        """Write them."""
        if self._part is not None:
            self._part.store(value, pointer)
        elif self._room is None:
            self._f.store(value, pointer)
        else:
            self._f.store(value, self._room)
            self._move(self._room, pointer)

    def _move(self, source: Value, destination: Value) -> None:
        f = self._f
        byte = vector("i8", 1)
        with f.loop(0, f.least(self._count or 0, self._type.lanes)) as bytes:
            f.store(f.load(byte, f.offset(source, bytes.index)), f.offset(destination, bytes.index))
