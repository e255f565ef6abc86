"""`dynamic`: floats onto a grid of 255 steps that is laid over their own range, as hybrid operators do it in every run.

What is quantized together, a row or an image, has a scale and a zero point of its own: a `HEADER` of 16 bytes. Rows
carry it in front of their levels, where the kernels find it that multiply them (`gossamer.codegen.kernels.outputs`).
Levels of the type ``u8``, and their zero points, are 128 more: dot products on x86 take them as they are.

The rules are those of two libraries, to the bit; a range always contains 0:

- ``qd8``, XNNPACK's, everything in float32: steps = 255 / (high - low), 1 if there is no range. The zero point is
  -128 - low * steps, or 127 - high * steps if (-128 + low * steps) + (127 + high * steps) is not above 0; brought into
  -128..127, then rounded. level = clamp(round(x * steps) + zero point), halves to even; the scale is 1 / steps.
- ``builtin``, LiteRT's own kernels' (`gossamer.ops._dynamic_range`): scale = (high - low) / 255 and the zero point in
  double precision; level = clamp(round(x * (1 / scale)) + zero point), halves away from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from gossamer.codegen.dots import Byte, narrowed, rounded
from gossamer.codegen.ir import F32, I32, Function, Module, Part, Value, vector
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

Rule = Literal["qd8", "builtin"]

HEADER = 16
"""Bytes: the scale (float32), the zero point (int32), the reciprocal of the scale (float32), nothing."""

ZERO_POINT, RECIPROCAL = 4, 8
"""Where in a header they are."""

BLOCKS = 16
"""Parts of an image whose ranges are found by themselves; so many lows, then so many highs make the range of it."""

_VECTORS = 4

_LARGE, _LARGE_BITS = 12582912.0, 0x4B400000


class Grid(NamedTuple):
    """A scale and a zero point."""

    scale: Value
    zero_point: Value
    """An i32."""
    reciprocal: Value


def grid(f: Function, rule: Rule, low: Value, high: Value) -> Grid:
    """What a rule makes of a range, or of a vector of them."""
    type, numbers = low.type, low.type.with_element("i32")
    empty = f.compare("oeq", low, high)
    one = f.constant(type, 1.0)
    if rule == "qd8":
        steps = f.select(empty, one, 255.0 / (high - low))
        below, above = low * steps, high * steps
        errors = (below + -128.0) + (above + 127.0)
        point = f.select(f.compare("ogt", errors, 0.0), -128.0 - below, 127.0 - above)
        point = f.minimum(f.maximum(point, -128.0), 127.0)
        point = f.emit(numbers, f"fptosi {f.intrinsic('llvm.rint', point)} to {numbers}")
        return Grid(one / steps, point, steps)
    wide = type.with_element("double")
    wide_low, wide_range, wide_high = (f.emit(wide, f"fpext {x} to {wide}") for x in (low, high - low, high))
    scale = wide_range / 255.0
    below, above = wide_low / scale, wide_high / scale
    from_low = f.compare("olt", f.intrinsic("llvm.fabs", below) + 128.0, f.intrinsic("llvm.fabs", above) + 127.0)
    point = f.minimum(f.maximum(f.select(from_low, -128.0 - below, 127.0 - above), -128.0), 127.0)
    point = f.emit(numbers, f"fptosi {f.intrinsic('llvm.round', point)} to {numbers}")
    narrow = f.select(empty, one, f.emit(type, f"fptrunc {scale} to {type}"))
    return Grid(narrow, f.select(empty, f.constant(numbers, 0), point), one / narrow)


def levels_of_four(f: Function, type: Byte, xs: Sequence[Value], reciprocal: Value, zero_point: Value) -> Value:
    """As `levels`, of four registers, one after the other; ``zero_point`` is a vector of i16."""
    lanes = f.lanes
    found = narrowed(f, [rounded(f, f.minimum(x * reciprocal, 32767.0)) for x in xs], zero_point, type)
    return f.shuffle(found, found, [16 * (lane // 4) + 4 * v + lane % 4 for v in range(4) for lane in range(lanes)])


def levels(f: Function, type: Byte, x: Value, reciprocal: Value, zero_point: Value) -> Value:
    """Floats as levels of a type, after the rule ``qd8``."""
    # The sum with 1.5 x 2^23 has the rounded number in its low bits. What no grid has a level for, as all is infinitely
    # many steps of a range that small, is the end that it is for XNNPACK.
    shifted = f.bits(f.minimum(x * reciprocal, 32767.0) + _LARGE, "i32")
    # Signed bytes are what 32 bits are saturated to by one instruction.
    level = f.wrapping("add", shifted, f.wrapping("sub", zero_point, _LARGE_BITS + _least(type) + 128))
    level = f.intrinsic("llvm.smax", level, f.constant(level.type, -128))
    level = f.intrinsic("llvm.smin", level, f.constant(level.type, 127))
    level = f.emit(level.type.with_element("i8"), f"trunc {level} to {level.type.with_element('i8')}")
    return level if type == "i8" else level ^ -128


def _least(type: Byte) -> int:
    return -128 if type == "i8" else 0


def centred(f: Function, x: Value, reciprocal: Value, low: Value, high: Value) -> Value:
    """Floats as levels less the zero point, which are from ``low`` to ``high``, after the rule ``builtin``."""
    scaled = x * reciprocal
    half = f.intrinsic("llvm.copysign", f.constant(x.type, 0.5), scaled)
    return f.minimum(f.maximum(f.intrinsic("llvm.trunc", scaled + half), low), high)


def _range(f: Function, x: Value, count: Value, bounds: list[Value]) -> list[Value]:
    """The bounds, 2 x `_VECTORS` vectors, widened by contiguous floats."""

    def widen(at: Value, parts: list[Part], known: list[Value]) -> list[Value]:
        known = list(known)
        for v, part in enumerate(parts):
            value = part.load(f.at(f.offset(x, at), v * f.lanes))
            known[2 * v], known[2 * v + 1] = f.minimum(value, known[2 * v]), f.maximum(value, known[2 * v + 1])
        return known

    return f.vectors(count, widen, _VECTORS, carry=bounds)


def _bounds(f: Function, ranges: list[Value]) -> tuple[Value, Value]:
    """The lowest and the highest of vectors of lows and highs."""
    low, high = ranges[0], ranges[1]
    for at in range(2, len(ranges), 2):
        low, high = f.minimum(ranges[at], low), f.maximum(ranges[at + 1], high)
    return f.fold(f.minimum, low), f.fold(f.maximum, high)


def _check_rule(rule: Rule) -> None:
    if rule not in ("qd8", "builtin"):
        raise CompileError(f"A rule is qd8 or builtin, got {rule!r}.")


def levels_of(target: Target) -> Byte:
    """The type of levels that its dot products take as they are."""
    return "u8" if target.dot == "unsigned" else "i8"


def _masked(target: Target) -> bool:
    return target.vector_bits == 512  # masks on bytes


def _folded(f: Function, combine: Callable[[Value, Value], Value], rows: list[Value]) -> Value:
    """The lanes of each of one, two or four vectors combined; a vector of the results."""
    if len(rows) == 1:
        return f.fold(combine, rows[0])
    runs = 1  # of neighbouring lanes, each of a row
    while len(rows) > 1 or rows[0].type.lanes > runs:
        lanes = rows[0].type.lanes
        if len(rows) == 1:
            rows = [*rows, rows[0]]
        run = lanes // runs
        pairs = list(zip(rows[::2], rows[1::2], strict=True))
        both = runs if rows[0] is rows[1] else 2 * runs
        halves = [
            [run * number + half * (run // 2) + lane for number in range(both) for lane in range(run // 2)]
            for half in (0, 1)
        ]
        rows = [combine(*(f.shuffle(first, second, half) for half in halves)) for first, second in pairs]
        runs = both
    return rows[0]


@record(frozen=True)
class QuantizeRows(KernelSpec):
    """Each of ``rows`` rows of ``count`` contiguous floats onto a grid of its own: y is a header, then levels.

    ``type`` is that of levels. ``x_row`` and ``y_row`` are the bytes between rows; y is aligned to 4 bytes. Threads
    share rows, ``together`` of them at a time (1 or 4, and there are at least so many): the last ones overlap.
    """

    type: Byte = "i8"
    together: int = 1

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"together": (1, 4)}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y rows count x_row y_row")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", self.type, "quantize", f"rows{self.together}")

    def emit(self, target: Target) -> str:
        if self.together not in (1, 4):
            raise CompileError(f"Rows are quantized one by one or four together, got {self.together}.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        together = self.together
        vectors = _VECTORS // together
        with f.share((a.rows + (together - 1)) // together) as task:
            first = f.least(task * together, a.rows - together)
            xs, ys = (
                [f.offset(base, (first + at) * stride) for at in range(together)]
                for base, stride in ((a.x, a.x_row), (a.y, a.y_row))
            )

            def widen(at: Value, parts: list[Part], known: list[Value]) -> list[Value]:
                known = list(known)
                for number, x in enumerate(xs):
                    for v, part in enumerate(parts):
                        low = 2 * (number * vectors + v)
                        value = part.load(f.at(f.offset(x, at), v * f.lanes))
                        known[low : low + 2] = f.minimum(value, known[low]), f.maximum(value, known[low + 1])
                return known

            zeros = [f.constant(f.f32, 0.0)] * (2 * _VECTORS)
            bounds = f.vectors(a.count, widen, vectors, carry=zeros)
            lows, highs = bounds[::2], bounds[1::2]
            while len(lows) > together:
                lows = [f.minimum(p, q) for p, q in zip(lows[::2], lows[1::2], strict=True)]
                highs = [f.maximum(p, q) for p, q in zip(highs[::2], highs[1::2], strict=True)]
            grids = grid(f, "qd8", _folded(f, f.minimum, lows), _folded(f, f.maximum, highs))
            points = f.wrapping("add", grids.zero_point, _least(self.type) + 128)
            for number, (x, y) in enumerate(zip(xs, ys, strict=True)):
                own = [_lane(f, value, number) for value in (grids.scale, points, grids.reciprocal)]
                self._quantize(f, target, a.count, x, y, *own)
        return module.text()

    def _quantize(
        self, f: Function, target: Target, count: Value, x: Value, y: Value, scale: Value, point: Value, steps: Value
    ) -> None:
        f.store(scale, y)
        f.store(point, f.offset(y, ZERO_POINT))
        to = f.offset(y, HEADER)
        short = f.splat(f.emit(vector("i16", 1), f"trunc {point} to i16"), 2 * f.lanes)

        def quantize(at: Value, parts: list[Part], _: list[Value]) -> None:
            part, all_steps = parts[0], parts[0].splat(steps)
            values = [one.load(f.at(f.at(x, at), v * f.lanes)) for v, one in enumerate(parts)]
            if len(parts) == 4:
                level = levels_of_four(f, self.type, values, all_steps, short)
            else:
                level = levels(f, self.type, values[0], all_steps, part.splat(point))
            part.store(level, f.offset(to, at))

        f.vectors(count, quantize, 4, size=1, masked=_masked(target))


def _lane(f: Function, x: Value, number: int) -> Value:
    return x if x.type.lanes == 1 else f.emit(x.type.scalar, f"extractelement {x}, i32 {number}")


@record(frozen=True)
class Range(KernelSpec):
    """The ranges of ``images`` of ``rows`` x ``columns`` runs of ``count`` contiguous floats, in `BLOCKS` blocks of
    rows each: y is [images, 2, BLOCKS]. Strides are in bytes. Threads share images x blocks.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y images rows columns count x_image x_row x_column")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "range")

    def emit(self, target: Target) -> str:
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.images * BLOCKS) as task:
            image = task // BLOCKS
            block = task - image * BLOCKS
            x = f.offset(a.x, image * a.x_image)
            first, end = (a.rows * block) // BLOCKS, (a.rows * (block + 1)) // BLOCKS
            with f.loop(first, end, carry=[f.constant(f.f32, 0.0)] * (2 * _VECTORS)) as rows:
                row = f.offset(x, rows.index * a.x_row)
                with f.loop(0, a.columns, carry=rows.values) as columns:
                    columns.hand_on(_range(f, f.offset(row, columns.index * a.x_column), a.count, columns.values))
                rows.hand_on(columns.results)
            low, high = _bounds(f, rows.results)
            y = f.at(f.at(a.y, image * (2 * BLOCKS)), block)
            f.store(low, y)
            f.store(high, f.at(y, BLOCKS))
        return module.text()


@record(frozen=True)
class Grids(KernelSpec):
    """The headers, one after the other, of ``images`` whose ranges lie in blocks. Threads share images.

    ``type`` is that of levels, after the rule ``qd8``.
    """

    rule: Rule
    type: Byte = "i8"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock("*x *y images")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", self.type, "grid", self.rule)

    def emit(self, target: Target) -> str:
        _check_rule(self.rule)
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        with f.share(a.images) as image:
            x = f.at(a.x, image * (2 * BLOCKS))
            lows, highs = (f.load(vector("float", BLOCKS), f.at(x, at)) for at in (0, BLOCKS))
            own = grid(f, self.rule, f.fold(f.minimum, lows), f.fold(f.maximum, highs))
            y = f.offset(a.y, image * HEADER)
            point = f.wrapping("add", own.zero_point, _least(self.type) + 128)
            for value, at in ((own.scale, 0), (point, ZERO_POINT), (own.reciprocal, RECIPROCAL)):
                f.store(value, f.offset(y, at))
            f.store(f.constant(I32, 0), f.offset(y, 12))
        return module.text()


@record(frozen=True)
class QuantizeImages(KernelSpec):
    """``images`` of ``rows`` x ``columns`` runs of ``count`` contiguous floats onto the grids of their ``headers``.

    After the rule ``qd8``, y holds levels of ``type``; after ``builtin``, levels less the zero point as floats. Threads
    share images x rows. Strides are in bytes.
    """

    rule: Rule
    type: Byte = "i8"

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y *headers images rows columns count x_image x_row x_column y_image y_row y_column"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", self.type if self.rule == "qd8" else "f32", "quantize", "images", self.rule)

    def emit(self, target: Target) -> str:
        _check_rule(self.rule)
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        to_bytes = self.rule == "qd8"
        with f.share(a.images * a.rows) as task:
            image = task // a.rows
            row = task - image * a.rows
            header = f.offset(a.headers, image * HEADER)
            point = f.load(I32, f.offset(header, ZERO_POINT))
            reciprocal = f.load(F32, f.offset(header, RECIPROCAL))
            zero = f.to_float(point)
            low, high = -128.0 - zero, 127.0 - zero
            x = f.offset(f.offset(a.x, image * a.x_image), row * a.x_row)
            y = f.offset(f.offset(a.y, image * a.y_image), row * a.y_row)
            with f.loop(0, a.columns) as columns:
                source = f.offset(x, columns.index * a.x_column)
                destination = f.offset(y, columns.index * a.y_column)

                def quantize(
                    at: Value, parts: list[Part], _: list[Value], x: Value = source, y: Value = destination
                ) -> None:
                    for v, part in enumerate(parts):
                        here = at + v * f.lanes if v else at
                        value, step = part.load(f.at(x, here)), part.splat(reciprocal)
                        if to_bytes:
                            part.store(levels(f, self.type, value, step, part.splat(point)), f.offset(y, here))
                        else:
                            part.store(centred(f, value, step, part.splat(low), part.splat(high)), f.at(y, here))

                f.vectors(a.count, quantize, _VECTORS, size=1, masked=not to_bytes or _masked(target))
        return module.text()
